# SPDX-License-Identifier: BSD-3-Clause
"""Plot of the spectral embedding (tests/test_plot.py)."""

from typing import TYPE_CHECKING

import numpy as np

from cdsk._cdsk import CDSK
from cdsk.blocks._estimator import LandmarkEstimator
from cdsk.plot._common import (
    GRAY,
    get_axes,
    get_fitted_model,
    get_point_colors,
    plot_points,
)
from cdsk.report._layout import compute_layout

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# If there are more corners, only some are labeled.
_MAX_LABELS = 40


def embedding(
    model: CDSK | LandmarkEstimator,
    *,
    ax: "Axes | None" = None,
    title: str | None = None,
) -> "Axes":
    """Plot the spectral embedding, points larger and more opaque for larger weights.

    The embedding of two clusters is plotted on the unit circle. For more clusters,
    every cluster is a corner of a polygon, and a point is the mean of the corners
    weighted by the proportions of the cluster directions in its row of the embedding.

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
    ax = get_axes(ax)
    layout = compute_layout(model.embedding_, model.clusters_)
    ax.plot(*layout.outline.T, color=GRAY, linewidth=0.5, zorder=1)
    plot_points(
        ax, layout.points, get_point_colors(model.label_numbers_), model.weights_
    )
    _label_corners(ax, layout.corners)
    ax.set(xlim=(-1.2, 1.2), ylim=(-1.2, 1.2), aspect="equal", title=title)
    ax.set_axis_off()
    return ax


def _label_corners(ax, corners):
    """Write the numbers of the clusters next to their corners."""
    order = np.argsort(np.arctan2(*corners.T))
    step = -(-len(corners) // _MAX_LABELS)
    for cluster in order[::step]:
        x, y = 1.13 * corners[cluster]
        ax.text(x, y, str(cluster), ha="center", va="center", size="small")
