# SPDX-License-Identifier: BSD-3-Clause
"""Embedding -> labels, numbered in the order in which clusters first appear."""

import numpy as np
from scipy.linalg import qr, svd

from cdsk._kmeans import KMeans


def assign_labels(columns, method, *, n_init, random_state):
    """Labels of the points whose embedding rows are the columns of ``columns``."""
    if method == "kmeans":
        labels = _kmeans(columns, n_init, random_state)
    else:
        labels = _cluster_qr(columns)
    return _in_order_of_appearance(labels)


def _kmeans(columns, n_init, random_state):
    n_clusters = len(columns)
    model = KMeans(n_clusters, n_init=n_init, random_state=random_state)
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


def _in_order_of_appearance(labels):
    values, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(values), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(values))
    return rank[inverse]
