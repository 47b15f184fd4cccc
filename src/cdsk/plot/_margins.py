# SPDX-License-Identifier: BSD-3-Clause
"""Plot of the margins, similar to a silhouette plot (tests/test_plot.py)."""

from typing import TYPE_CHECKING

import numpy as np

from cdsk._cdsk import CDSK
from cdsk.blocks._estimator import LandmarkEstimator
from cdsk.plot._common import (
    DARK,
    get_axes,
    get_fitted_model,
    label_clusters,
    make_palette,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def margins(
    model: CDSK | LandmarkEstimator,
    *,
    ax: "Axes | None" = None,
    title: str | None = None,
) -> "Axes":
    """Plot the margin of every point as a bar, sorted within each cluster.

    Margins near 1 are unambiguous. Bars to the left of 0 are points whose label is
    contradicted by the votes of the other points. The dashed line is the mean margin.

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
    from matplotlib.ticker import MaxNLocator

    ax = get_axes(ax)
    labels, values = model.clusters_, model.margins_
    colors = make_palette(int(labels.max()) + 1)
    n, n_clusters = len(labels), len(colors)
    space = 0.15 * n / n_clusters
    begin, centers = 0.0, np.empty(n_clusters)
    for y in range(n_clusters):
        bars = np.sort(values[labels == y])[::-1]
        edges = begin + np.arange(len(bars) + 1)
        ax.stairs(
            bars,
            edges,
            orientation="horizontal",
            fill=True,
            color=colors[y],
            # keep bars thinner than a pixel, such as single negative margins
            linewidth=0.4,
            snap=False,
        )
        centers[y] = begin + len(bars) / 2
        begin = edges[-1] + space
    ax.axvline(0.0, color=DARK, linewidth=0.8)
    ax.axvline(values.mean(), color=DARK, linewidth=0.8, linestyle="--")
    ax.set(xlim=(min(1.1 * values.min(), -0.02), 1.02), ylim=(begin, -space))
    ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.set(xlabel="margin", ylabel="cluster", title=title)
    label_clusters(ax.yaxis, centers, min_distance=begin / 20)
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    return ax
