# SPDX-License-Identifier: BSD-3-Clause
"""The spectral embedding as a picture (tests/test_plot.py)."""

from typing import TYPE_CHECKING

import numpy as np

from cdsk._blocks.estimator import LandmarkEstimator
from cdsk._estimator import CDSK
from cdsk._explain.places import in_plane
from cdsk.plot._common import (
    GREY,
    axes_or_current,
    draw_points,
    drawn,
    point_colours,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# More corners are not all numbered.
_MOST_NUMBERS = 40


def embedding(
    model: CDSK | LandmarkEstimator,
    *,
    ax: "Axes | None" = None,
    title: str | None = None,
) -> "Axes":
    """Draw the spectral embedding, large and opaque where points carry weight.

    Of two clusters the two coordinates are shown, on their unit circle. Of more, every
    cluster is a corner of a polygon, and a point lies at the mean of the corners,
    weighted by how much it has of the direction of each cluster.

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
    ax = axes_or_current(ax)
    places = in_plane(model.embedding_, model.clusters_)
    ax.plot(*places.outline.T, color=GREY, linewidth=0.5, zorder=1)
    draw_points(ax, places.points, point_colours(model.labels_), model.weights_)
    _number(ax, places.corners)
    ax.set(xlim=(-1.2, 1.2), ylim=(-1.2, 1.2), aspect="equal", title=title)
    ax.set_axis_off()
    return ax


def _number(ax, corners):
    """Numbers of the clusters outside of their corners."""
    around = np.argsort(np.arctan2(*corners.T))
    step = -(-len(corners) // _MOST_NUMBERS)
    for y in around[::step]:
        ax.text(*(1.13 * corners[y]), str(y), ha="center", va="center", size="small")
