# SPDX-License-Identifier: BSD-3-Clause
"""The spectral embedding in the plane (tests/test_plot.py).

Rows of the embedding have unit length, and those of well separated clusters are
orthogonal: no two of c coordinates show them all. Instead every cluster gets a corner
of a regular polygon. A row u = sum_y t_y m_y of the mean directions m_y of the clusters
is drawn at the mean of the corners with shares t_y^2, divided by their sum. Points that
lie between clusters leave the corners. Clusters that have points between them get
neighbouring corners.
"""

from typing import TYPE_CHECKING

import numpy as np

from cdsk._estimator import CDSK
from cdsk.plot._common import (
    GREY,
    axes_or_current,
    draw_points,
    point_colours,
    require_fitted,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# More corners are not all numbered.
_MOST_NUMBERS = 40


def embedding(
    model: CDSK, *, ax: "Axes | None" = None, title: str | None = None
) -> "Axes":
    """Draw the spectral embedding, large and opaque where points carry weight.

    Of two clusters the two coordinates are shown, on their unit circle. Of more, every
    cluster is a corner of a polygon, and a point lies at the mean of the corners,
    weighted by how much it has of the direction of each cluster.

    Parameters
    ----------
    model : CDSK
        Fitted model.
    ax : matplotlib Axes, default=None
        Where to draw; None means the current ones of pyplot.
    title : str, default=None
        Title of the axes.

    Returns
    -------
    ax : matplotlib Axes
    """
    require_fitted(model)
    ax = axes_or_current(ax)
    labels = model.clusters_
    directions = mean_directions(model.embedding_, labels)
    if model.embedding_.shape[1] == 2:
        places, corners = model.embedding_, directions
        angle = np.linspace(0.0, 2.0 * np.pi, 200)
        outline = np.column_stack([np.sin(angle), np.cos(angle)])
    else:
        shares = direction_shares(model.embedding_, directions)
        corners = polygon(shares, labels)
        places = shares @ corners
        order = np.argsort(np.arctan2(*corners.T))
        outline = corners[np.append(order, order[0])]
    ax.plot(*outline.T, color=GREY, linewidth=0.5, zorder=1)
    draw_points(ax, places, point_colours(model.labels_), model.weights_)
    _number(ax, corners)
    ax.set(xlim=(-1.2, 1.2), ylim=(-1.2, 1.2), aspect="equal", title=title)
    ax.set_axis_off()
    return ax


def mean_directions(rows, labels):
    """Unit mean row of each cluster."""
    members = labels == np.arange(labels.max() + 1)[:, np.newaxis]
    means = members @ rows
    return means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-300)


def direction_shares(rows, directions):
    """Share of each direction in each row, (n, c); rows sum to 1."""
    shares = np.square(rows @ np.linalg.pinv(directions))
    # all equal for a row that has nothing of any direction
    shares += np.finfo(float).tiny
    return shares / shares.sum(axis=1, keepdims=True)


def polygon(shares, labels):
    """Corners of the clusters on the unit circle, related ones side by side."""
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    n_clusters = shares.shape[1]
    if n_clusters == 1:
        return np.array([[0.0, 1.0]])
    members = labels == np.arange(n_clusters)[:, np.newaxis]
    mixture = members @ shares / members.sum(axis=1, keepdims=True)
    distance = 1.0 - 0.5 * (mixture + mixture.T)
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance), "average", optimal_ordering=True)
    angle = np.empty(n_clusters)
    angle[leaves_list(tree)] = 2.0 * np.pi * np.arange(n_clusters) / n_clusters
    # the first corner on top, then clockwise
    return np.column_stack([np.sin(angle), np.cos(angle)])


def _number(ax, corners):
    """Numbers of the clusters outside of their corners."""
    around = np.argsort(np.arctan2(*corners.T))
    step = -(-len(corners) // _MOST_NUMBERS)
    for y in around[::step]:
        ax.text(*(1.13 * corners[y]), str(y), ha="center", va="center", size="small")
