# SPDX-License-Identifier: BSD-3-Clause
"""The similarity matrix ordered by cluster (tests/test_plot.py).

A picture has fewer pixels than a matrix has entries. The points of a cluster, sorted
from one end of it to the other in the embedding, are divided into groups, and a cell
shows the mean similarity of two groups: no entry is left out, as in a sample of the
points, which of a sparse matrix would show next to nothing. Only products with the
indicators of the groups are needed.
"""

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from cdsk._blocks.estimator import LandmarkEstimator
from cdsk._estimator import CDSK
from cdsk.plot._common import (
    DARK,
    axes_or_current,
    drawn,
    number_ticks,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Groups of points along each side: about this many, at least so many points in each.
_GROUPS = 160
_LEAST_POINTS = 5


def similarity(
    model: CDSK | LandmarkEstimator,
    X: ArrayLike | None = None,
    *,
    ax: "Axes | None" = None,
    title: str | None = None,
) -> "Axes":
    """Draw the normalised discriminative similarity, ordered by cluster.

    It is the matrix whose eigenvectors are the embedding, in units of its mean, drawn
    the darker the larger: the 0.35th power of a value, so that small ones show. Within
    a cluster neighbours in the embedding are side by side, and averaged in small
    groups. Clusters are framed on the diagonal.

    Parameters
    ----------
    model : CDSK or BlockCDSK
        Fitted model; of blocks the landmarks are drawn.
    X : array-like of shape (n_samples, n_features) or (n_samples, n_samples)
        What the model was fitted to. Needed if ``kernel="precomputed"``, as kernel
        matrices are not kept; else None means the data kept by ``fit``.
    ax : matplotlib Axes, default=None
        Where to draw; None means the current ones of pyplot.
    title : str, default=None
        Title of the axes.

    Returns
    -------
    ax : matplotlib Axes
    """
    model = drawn(model)
    from matplotlib.colors import PowerNorm
    from matplotlib.patches import Rectangle

    cells, edges, borders = pooled_similarity(model, X)
    ax = axes_or_current(ax)
    ax.pcolormesh(
        *(edges, edges, cells),
        cmap="Greys",
        # far similarities are small but tell which clusters are related
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
    middles = (borders[:-1] + borders[1:]) / 2
    # columns are in the order of the rows
    number_ticks(ax.yaxis, middles, n / 20)
    ax.tick_params(length=0)
    ax.set(xticks=[], ylabel="cluster")
    return ax


def cluster_order(rows, labels):
    """Points by cluster, within it along the line between two ends of its rows."""
    order = []
    for y in range(labels.max() + 1):
        members = np.flatnonzero(labels == y)
        # one end is far from the mean, the other far from the first
        first = _farthest(rows[members], rows[members].mean(axis=0))
        line = _farthest(rows[members], first) - first
        order.append(members[np.argsort(rows[members] @ line, kind="stable")])
    return np.concatenate(order)


def _farthest(rows, point):
    return rows[np.argmax(np.square(rows - point).sum(axis=1))]


def pooled_similarity(model, X=None):
    """Mean similarity of groups of points, in units of the mean of the matrix.

    Returns the square array of cells, the numbers of points before each group and
    after the last (its edges), and the same of the clusters.
    """
    labels = model.clusters_
    order = cluster_order(model.embedding_, labels)
    sizes = np.bincount(labels)
    n_groups = np.clip(len(labels) // _LEAST_POINTS, 1, _GROUPS)
    parts = np.maximum(1, np.round(n_groups * sizes / len(labels)).astype(int))
    borders = np.concatenate([[0], np.cumsum(sizes)])
    edges = np.concatenate(
        [
            np.round(np.linspace(begin, end, count, endpoint=False)).astype(int)
            for (begin, end), count in zip(pairwise(borders), parts, strict=True)
        ]
        + [borders[-1:]]
    )
    count = np.diff(edges)
    group = np.empty(len(labels), dtype=int)
    group[order] = np.repeat(np.arange(len(count)), count)
    members = (group == np.arange(len(count))[:, np.newaxis]).astype(np.float64)
    sums = members @ (model.similarity_operator(X) @ members.T)
    cells = sums / np.outer(count, count)
    return cells * len(labels) ** 2 / sums.sum(), edges, borders
