# SPDX-License-Identifier: BSD-3-Clause
"""Leading eigenvalues, as their distance from 1 (tests/test_plot.py)."""

from typing import TYPE_CHECKING

import numpy as np

from cdsk._blocks.estimator import LandmarkEstimator
from cdsk._estimator import CDSK
from cdsk.plot._common import COLOURS, axes_or_current, drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def eigenvalues(
    model: CDSK | LandmarkEstimator,
    *,
    ax: "Axes | None" = None,
    title: str | None = None,
) -> "Axes":
    """Draw 1 minus the leading eigenvalues, one for each cluster.

    As many are near 0 as there are well separated groups; their sum is the relaxed cut.
    How many clusters there are is a question for ``suggest_n_clusters``.

    Parameters
    ----------
    model : CDSK or BlockCDSK
        Fitted model; of blocks the landmarks are drawn.
    ax : matplotlib Axes, default=None
        Where to draw; None means the current ones of pyplot.
    title : str, default=None
        Title of the axes.

    Returns
    -------
    ax : matplotlib Axes
    """
    model = drawn(model)
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    ax = axes_or_current(ax)
    values = 1.0 - model.eigenvalues_
    number = np.arange(1, len(values) + 1)
    ax.plot(
        *(number, values),
        color=COLOURS[0],
        marker="o",
        markersize=np.clip(150 / len(values), 2.5, 6.0),
        linewidth=0.8,
    )
    # nothing but rounding is not worth a scale of its own
    top = 1.1 * values[-1] if values[-1] > 1e-12 else 1.0
    ax.set(xlim=(0.5, len(values) + 0.5), ylim=(-0.05 * top, top), title=title)
    ax.set(xlabel="number", ylabel="1 - eigenvalue")
    # no common factor above the axis, which would push the title up
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
    ax.xaxis.set_major_locator(MaxNLocator(8, integer=True, min_n_ticks=1))
    ax.spines[["top", "right"]].set_visible(False)
    return ax
