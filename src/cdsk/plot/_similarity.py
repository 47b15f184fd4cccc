# SPDX-License-Identifier: BSD-3-Clause
"""Plot of the similarity matrix ordered by cluster (tests/test_plot.py).

A matrix has more entries than a plot has pixels. The points of a cluster, sorted along
the embedding, are divided into groups, and a cell shows the mean similarity of two
groups. Unlike a sample of the points, which shows hardly any entry of a sparse matrix,
the means include all entries. They require only products with the group indicators.
"""

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from cdsk._cdsk import CDSK
from cdsk.blocks._estimator import LandmarkEstimator
from cdsk.plot._common import (
    DARK,
    get_axes,
    get_fitted_model,
    label_clusters,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Groups of points on each side, and the smallest size of a group.
_N_GROUPS = 160
_MIN_GROUP_SIZE = 5


def similarity(
    model: CDSK | LandmarkEstimator,
    X: ArrayLike | None = None,
    *,
    ax: "Axes | None" = None,
    title: str | None = None,
) -> "Axes":
    """Plot the normalized discriminative similarity, ordered by cluster.

    The leading eigenvectors of this matrix are the embedding. Values are relative to
    the mean of the matrix, and gray levels follow their power 0.35, so that small
    values are visible. The points of a cluster are sorted along the embedding and
    averaged in small groups. Frames on the diagonal mark the clusters.

    Parameters
    ----------
    model : CDSK or BlockCDSK
        Fitted model; for BlockCDSK, its landmarks are plotted.
    X : array-like of shape (n_samples, n_features) or (n_samples, n_samples)
        Data or kernel matrix of ``fit``. Required if ``kernel="precomputed"``, because
        models do not store kernel matrices; otherwise None means the stored data.
    ax : matplotlib Axes, default=None
        Axes to plot on; None means the current pyplot axes.
    title : str, default=None
        Title of the axes.

    Returns
    -------
    ax : matplotlib Axes
    """
    model = get_fitted_model(model)
    from matplotlib.colors import PowerNorm
    from matplotlib.patches import Rectangle

    cells, edges, borders = compute_group_means(model, X)
    ax = get_axes(ax)
    ax.pcolormesh(
        edges,
        edges,
        cells,
        cmap="Greys",
        # small similarities show which clusters are related
        norm=PowerNorm(0.35, vmin=0.0, vmax=max(np.quantile(cells, 0.995), 1e-300)),
        rasterized=True,
    )
    width = 0.9 if len(borders) <= 21 else 0.4
    for begin, end in pairwise(borders):
        side = end - begin
        ax.add_patch(
            Rectangle((begin, begin), side, side, fill=False, ec=DARK, lw=width)
        )
    n = borders[-1]
    ax.set(xlim=(0, n), ylim=(n, 0), aspect="equal", title=title)
    centers = (borders[:-1] + borders[1:]) / 2
    # columns have the order of the rows
    label_clusters(ax.yaxis, centers, min_distance=n / 20)
    ax.tick_params(length=0)
    ax.set(xticks=[], ylabel="cluster")
    return ax


def sort_points(rows, labels):
    """Return points by cluster, within it along the line between two extreme rows."""
    order = []
    for y in range(labels.max() + 1):
        members = np.flatnonzero(labels == y)
        # one end is the farthest from the mean, the other the farthest from this one
        first = _find_farthest(rows[members], rows[members].mean(axis=0))
        line = _find_farthest(rows[members], first) - first
        order.append(members[np.argsort(rows[members] @ line, kind="stable")])
    return np.concatenate(order)


def _find_farthest(rows, point):
    return rows[np.argmax(np.square(rows - point).sum(axis=1))]


def compute_group_means(model, X=None):
    """Return mean similarities of groups of points, relative to the overall mean.

    Also return the first point of each group and of each cluster in the sorted order,
    both followed by the number of points.
    """
    labels = model.clusters_
    order = sort_points(model.embedding_, labels)
    sizes = np.bincount(labels)
    n_groups = np.clip(len(labels) // _MIN_GROUP_SIZE, 1, _N_GROUPS)
    counts = np.maximum(1, np.round(n_groups * sizes / len(labels)).astype(int))
    borders = np.concatenate([[0], np.cumsum(sizes)])
    edges = np.concatenate(
        [
            np.round(np.linspace(begin, end, count, endpoint=False)).astype(int)
            for (begin, end), count in zip(pairwise(borders), counts, strict=True)
        ]
        + [borders[-1:]]
    )
    group_sizes = np.diff(edges)
    groups = np.arange(len(group_sizes))
    group = np.empty(len(labels), dtype=int)
    group[order] = np.repeat(groups, group_sizes)
    members = (group == groups[:, np.newaxis]).astype(np.float64)
    sums = members @ (model.similarity_operator(X) @ members.T)
    cells = sums / np.outer(group_sizes, group_sizes)
    return cells * len(labels) ** 2 / sums.sum(), edges, borders
