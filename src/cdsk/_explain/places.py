# SPDX-License-Identifier: BSD-3-Clause
"""The spectral embedding in the plane (tests/test_plot.py).

Rows of the embedding have unit length, and those of well separated clusters are
orthogonal: no two of c coordinates show them all. Instead every cluster gets a corner
of a regular polygon. A row u = sum_y t_y m_y of the mean directions m_y of the clusters
is drawn at the mean of the corners with shares t_y^2, divided by their sum. Points that
lie between clusters leave the corners. Clusters that have points between them get
neighbouring corners.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Places:
    """Points (n, 2), corners of the clusters (c, 2), and the outline around them."""

    points: NDArray[np.float64]
    corners: NDArray[np.float64]
    outline: NDArray[np.float64]


def in_plane(embedding, labels):
    """The ``Places`` of an embedding: of two clusters its coordinates on the circle."""
    directions = mean_directions(embedding, labels)
    if embedding.shape[1] == 2:
        angle = np.linspace(0.0, 2.0 * np.pi, 200)
        circle = np.column_stack([np.sin(angle), np.cos(angle)])
        return Places(embedding, directions, circle)
    shares = direction_shares(embedding, directions)
    corners = polygon(shares, labels)
    order = np.argsort(np.arctan2(*corners.T))
    return Places(shares @ corners, corners, corners[np.append(order, order[0])])


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
