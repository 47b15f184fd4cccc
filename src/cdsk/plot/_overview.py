# SPDX-License-Identifier: BSD-3-Clause
"""All pictures of a model in one figure (tests/test_plot.py)."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from cdsk._blocks.estimator import LandmarkEstimator
from cdsk._estimator import CDSK
from cdsk.plot._choice import choice
from cdsk.plot._common import drawn
from cdsk.plot._eigenvalues import eigenvalues
from cdsk.plot._embedding import embedding
from cdsk.plot._margins import margins
from cdsk.plot._scatter import scatter
from cdsk.plot._similarity import similarity

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Inches of a panel, and points of its letters, which suit two columns of a paper.
_WIDTH, _HEIGHT = 3.6, 3.3
_FONT_SIZE = 8.5


def overview(model: CDSK | LandmarkEstimator, X: ArrayLike | None = None) -> "Figure":
    """Figure of all pictures of a model.

    Points, embedding, similarity, margins, choice of view and kernel, eigenvalues. What
    there is nothing to tell of is left out: the points behind a kernel matrix, and the
    choice where there was one kernel only.

    Parameters
    ----------
    model : CDSK or BlockCDSK
        Fitted model; of blocks the landmarks are drawn.
    X : array-like of shape (n_samples, n_features) or (n_samples, n_samples)
        What it was fitted to; not for blocks.

    Returns
    -------
    figure : matplotlib Figure
        Not known to pyplot; ``figure.savefig`` writes it.

    Examples
    --------
    >>> from cdsk import CDSK, plot
    >>> figure = plot.overview(CDSK(3).fit(X), X)  # doctest: +SKIP
    >>> figure.savefig("overview.pdf")  # doctest: +SKIP
    """
    fitted = drawn(model)
    if X is None and isinstance(model, LandmarkEstimator):
        X = model.landmarks_
    if X is None:
        raise ValueError("X must be what the model was fitted to; got None.")
    model = fitted
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    several = len(model.representation_.scores) > 1
    chosen = f"Choice of {'view and' if several else 'the'} kernel"
    panels: dict[str, Callable[..., Axes]] = {
        "Points": partial(scatter, X=X, boundaries=model.n_features_in_ == 2),
        "Embedding": embedding,
        "Similarity": partial(similarity, X=X),
        "Margins": margins,
        chosen: choice,
        "Eigenvalues": eigenvalues,
    }
    if model.params_["kernel"] == "precomputed":
        del panels["Points"]
    if len(model.choice_.names) == 1:
        del panels[chosen]
    rows = _rows(list(panels))
    figure = Figure(
        figsize=(_WIDTH * len(rows[0]), _HEIGHT * len(rows)), layout="constrained"
    )
    with rc_context({"font.size": _FONT_SIZE}):
        axes = figure.subplot_mosaic(rows)
        for letter, (name, ax) in zip("abcdef", axes.items(), strict=False):
            panels[name](model, ax=ax)
            ax.set_title(rf"$\bf{{{letter}}}$  {name}", loc="left")
            # ticks are made when the figure is drawn
            ax.tick_params(labelsize=_FONT_SIZE)
    return figure


def _rows(names):
    """Two rows of panels; of five, the margins are as high as both."""
    if len(names) == 5:
        names.remove("Margins")
        return [["Margins", *names[:2]], ["Margins", *names[2:]]]
    half = len(names) // 2
    return [names[:half], names[half:]]
