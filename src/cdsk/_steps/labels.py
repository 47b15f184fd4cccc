# SPDX-License-Identifier: BSD-3-Clause
"""Embedding -> labels, numbered in the order in which clusters first appear."""

import numpy as np
from scipy.linalg import qr, svd

from cdsk._runtime import one_blas_thread
from cdsk._steps.kmeans import KMeans

_MOST_TURNS = 50

METHODS = ("kmeans", "cluster_qr", "rotation", "auto")


def assign_labels(columns, method, *, n_init, random_state, kernel=None):
    """Labels of the points whose embedding rows are the columns of ``columns``.

    "auto" keeps the labels with the smallest normalised cut in the graph of ``kernel``,
    of all three ways.
    """
    ways = {
        "kmeans": lambda: _kmeans(columns, n_init, random_state),
        "cluster_qr": lambda: _cluster_qr(columns),
        "rotation": lambda: np.argmax(rotated_to_axes(columns), axis=0),
    }
    if method == "auto":
        found = [way() for way in ways.values()]
        labels = min(found, key=lambda labels: normalised_cut(kernel, labels))
    else:
        labels = ways[method]()
    return _in_order_of_appearance(labels)


def _kmeans(columns, n_init, random_state):
    n_clusters = len(columns)
    model = KMeans(n_clusters, n_init=n_init, random_state=random_state)
    # It limits BLAS by itself; two threads at once would restore each other's limits.
    with one_blas_thread():
        return model.fit_predict(np.ascontiguousarray(columns.T))


def _cluster_qr(columns):
    """Damle, Minden & Ying (2019): pivoted QR picks one representative per cluster.

    The polar factor of the representatives' rows rotates the embedding onto the axes.
    """
    return np.argmax(np.abs(rotation_to_axes(columns).T @ columns), axis=0)


def rotation_to_axes(columns):
    """Orthogonal R such that the rows of the clusters in R' columns lie near axes."""
    _, _, pivots = qr(columns, mode="economic", pivoting=True)
    left, _, right = svd(columns[:, pivots[: len(columns)]])
    return left @ right


def rotated_to_axes(columns):
    """Columns of the embedding in the basis whose axes its rows lie nearest to.

    Yu & Shi (2003): each row is assigned to its largest entry, and the basis is turned
    so that rows lie as near as possible to their axes, until no assignment changes. The
    start is that of ``cluster_qr``, which for unit rows depends on rounding.
    """
    turned, labels = rotation_to_axes(columns).T @ columns, None
    for _ in range(_MOST_TURNS):
        old, labels = labels, np.argmax(turned, axis=0)
        if old is not None and (labels == old).all():
            break
        members = labels == np.arange(len(columns))[:, np.newaxis]
        left, _, right = svd(np.einsum("ln,yn->ly", columns, members.astype(float)))
        turned = (left @ right).T @ columns
    return turned


def normalised_cut(kernel, labels):
    """Mean over the clusters of cut / volume in the graph of K, without weights."""
    members = (labels == np.unique(labels)[:, np.newaxis]).astype(np.float64)
    inside = np.sum(members * kernel.product(members), axis=1)
    volume = np.sum(members * kernel.row_sums, axis=1)
    return float(np.mean(1.0 - inside / np.maximum(volume, np.finfo(float).tiny)))


def _in_order_of_appearance(labels):
    values, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(values), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(values))
    return rank[inverse]
