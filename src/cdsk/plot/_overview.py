# SPDX-License-Identifier: BSD-3-Clause
"""Figure of all plots of a model (tests/test_plot.py)."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from cdsk._cdsk import CDSK
from cdsk.blocks._estimator import LandmarkEstimator
from cdsk.plot._choice import choice
from cdsk.plot._common import get_fitted_model
from cdsk.plot._eigenvalues import eigenvalues
from cdsk.plot._embedding import embedding
from cdsk.plot._margins import margins
from cdsk.plot._scatter import scatter
from cdsk.plot._similarity import similarity

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Size of a panel in inches, and of its font in points, for two columns of a paper.
_WIDTH, _HEIGHT = 3.6, 3.3
_FONT_SIZE = 8.5


def overview(model: CDSK | LandmarkEstimator, X: ArrayLike | None = None) -> "Figure":
    """Return a figure of all plots of a model.

    The panels are points, embedding, similarity, margins, model selection and
    eigenvalues. Points are omitted for a kernel matrix, model selection for a single
    candidate.

    Parameters
    ----------
    model : CDSK or BlockCDSK
        Fitted model; for BlockCDSK, its landmarks are plotted.
    X : array-like of shape (n_samples, n_features) or (n_samples, n_samples)
        Data or kernel matrix of ``fit``; not required for BlockCDSK.

    Returns
    -------
    figure : matplotlib Figure
        Not registered with pyplot; ``figure.savefig`` writes it.

    Examples
    --------
    >>> from cdsk import CDSK, plot
    >>> figure = plot.overview(CDSK(3).fit(X), X)  # doctest: +SKIP
    >>> figure.savefig("overview.pdf")  # doctest: +SKIP
    """
    fitted = get_fitted_model(model)
    if X is None and isinstance(model, LandmarkEstimator):
        X = model.landmarks_
    if X is None:
        raise ValueError("X must be the data or kernel matrix of fit; got None.")
    model = fitted
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    panels: dict[str, Callable[..., Axes]] = {
        "Points": partial(scatter, X=X, boundaries=model.n_features_in_ == 2),
        "Embedding": embedding,
        "Similarity": partial(similarity, X=X),
        "Margins": margins,
        "Model selection": choice,
        "Eigenvalues": eigenvalues,
    }
    if model.params_["kernel"] == "precomputed":
        del panels["Points"]
    if len(model.choice_.names) == 1:
        del panels["Model selection"]
    rows = _arrange_panels(list(panels))
    figure = Figure(
        figsize=(_WIDTH * len(rows[0]), _HEIGHT * len(rows)), layout="constrained"
    )
    with rc_context({"font.size": _FONT_SIZE}):
        axes = figure.subplot_mosaic(rows)
        for letter, (name, ax) in zip("abcdef", axes.items(), strict=False):
            panels[name](model, ax=ax)
            ax.set_title(rf"$\bf{{{letter}}}$  {name}", loc="left")
            # ticks are created when the figure is drawn, outside of rc_context
            ax.tick_params(labelsize=_FONT_SIZE)
    return figure


def _arrange_panels(names):
    """Return two rows of panels; with five panels, the margins span both rows."""
    if len(names) == 5:
        names.remove("Margins")
        return [["Margins", *names[:2]], ["Margins", *names[2:]]]
    half = len(names) // 2
    return [names[:half], names[half:]]
