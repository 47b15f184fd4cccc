# SPDX-License-Identifier: BSD-3-Clause
"""Margins of the votes, as in a silhouette plot (tests/test_plot.py)."""

from typing import TYPE_CHECKING

import numpy as np

from cdsk._blocks.estimator import LandmarkEstimator
from cdsk._estimator import CDSK
from cdsk.plot._common import (
    DARK,
    axes_or_current,
    cluster_colours,
    drawn,
    number_ticks,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def margins(
    model: CDSK | LandmarkEstimator,
    *,
    ax: "Axes | None" = None,
    title: str | None = None,
) -> "Axes":
    """Draw a bar per point for its margin, sorted within its cluster.

    A full cluster with a square shoulder is certain; bars to the left of 0 are points
    whose label the votes of the other points contradict. The dashed line is the mean.

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
    from matplotlib.ticker import MaxNLocator

    ax = axes_or_current(ax)
    labels, values = model.clusters_, model.margins_
    colours = cluster_colours(labels)
    n, n_clusters = len(labels), len(colours)
    space = 0.15 * n / n_clusters
    begin, middles = 0.0, np.empty(n_clusters)
    for y in range(n_clusters):
        bars = np.sort(values[labels == y])[::-1]
        edges = begin + np.arange(len(bars) + 1)
        ax.stairs(
            *(bars, edges),
            orientation="horizontal",
            fill=True,
            color=colours[y],
            # bars thinner than a pixel, as the few below 0, must not be rounded away
            linewidth=0.4,
            snap=False,
        )
        middles[y] = begin + len(bars) / 2
        begin = edges[-1] + space
    ax.axvline(0.0, color=DARK, linewidth=0.8)
    ax.axvline(values.mean(), color=DARK, linewidth=0.8, linestyle="--")
    ax.set(xlim=(min(1.1 * values.min(), -0.02), 1.02), ylim=(begin, -space))
    ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.set(xlabel="margin", ylabel="cluster", title=title)
    number_ticks(ax.yaxis, middles, begin / 20)
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    return ax
