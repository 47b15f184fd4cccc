# SPDX-License-Identifier: BSD-3-Clause
"""Plot of the leading eigenvalues (tests/test_plot.py)."""

from typing import TYPE_CHECKING

import numpy as np

from cdsk._cdsk import CDSK
from cdsk.blocks._estimator import LandmarkEstimator
from cdsk.plot._common import COLORS, get_axes, get_fitted_model

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def eigenvalues(
    model: CDSK | LandmarkEstimator,
    *,
    ax: "Axes | None" = None,
    title: str | None = None,
) -> "Axes":
    """Plot 1 - eigenvalue for the leading eigenvalues, one per cluster.

    The number of values near 0 is the number of well separated groups, and their sum is
    the relaxed cut. To estimate the number of clusters, use ``suggest_n_clusters``.

    Parameters
    ----------
    model : CDSK or BlockCDSK
        Fitted model; for BlockCDSK, its landmarks are plotted.
    ax : matplotlib Axes, default=None
        Axes to plot on; None means the current pyplot axes.
    title : str, default=None
        Title of the axes.

    Returns
    -------
    ax : matplotlib Axes
    """
    model = get_fitted_model(model)
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    ax = get_axes(ax)
    values = 1.0 - model.eigenvalues_
    ax.plot(
        np.arange(1, len(values) + 1),
        values,
        color=COLORS[0],
        marker="o",
        markersize=np.clip(150 / len(values), 2.5, 6.0),
        linewidth=0.8,
    )
    # rounding errors are not scaled up
    top = 1.1 * values[-1] if values[-1] > 1e-12 else 1.0
    ax.set(xlim=(0.5, len(values) + 0.5), ylim=(-0.05 * top, top), title=title)
    ax.set(xlabel="index", ylabel="1 - eigenvalue")
    # no offset text above the axis, which would collide with the title
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
    ax.xaxis.set_major_locator(MaxNLocator(8, integer=True, min_n_ticks=1))
    ax.spines[["top", "right"]].set_visible(False)
    return ax
