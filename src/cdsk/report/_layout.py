# SPDX-License-Identifier: BSD-3-Clause
"""Two-dimensional layout of the spectral embedding (tests/test_plot.py).

Rows of the embedding have unit length, and those of well separated clusters are
orthogonal: no two of the c coordinates show all clusters. Instead every cluster is a
corner of a regular polygon. With the mean directions m_y of the clusters, a row
u = sum_y t_y m_y is drawn at the mean of the corners weighted by t_y^2 / sum_z t_z^2.
Points between clusters lie between their corners. Clusters with points between them get
neighboring corners.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Layout:
    """Positions of the points (n, 2), of the clusters (c, 2), and their outline."""

    points: NDArray[np.float64]
    corners: NDArray[np.float64]
    outline: NDArray[np.float64]


def compute_layout(embedding, labels):
    """Return the ``Layout`` of an embedding (n, c); two columns are drawn as they are.

    These lie on the unit circle.
    """
    directions = compute_mean_directions(embedding, labels)
    if embedding.shape[1] == 2:
        angle = np.linspace(0.0, 2.0 * np.pi, 200)
        circle = np.column_stack([np.sin(angle), np.cos(angle)])
        return Layout(points=embedding, corners=directions, outline=circle)
    proportions = compute_proportions(embedding, directions)
    corners = arrange_corners(proportions, labels)
    order = np.argsort(np.arctan2(*corners.T))
    outline = corners[np.append(order, order[0])]
    return Layout(points=proportions @ corners, corners=corners, outline=outline)


def compute_mean_directions(rows, labels):
    """Return the mean row of each cluster, scaled to unit length, (c, d)."""
    members = labels == np.arange(labels.max() + 1)[:, np.newaxis]
    means = members @ rows
    return means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-300)


def compute_proportions(rows, directions):
    """Return the proportion of each direction in each row, (n, c); rows sum to 1."""
    proportions = np.square(rows @ np.linalg.pinv(directions))
    # equal proportions for a row orthogonal to all directions
    proportions += np.finfo(float).tiny
    return proportions / proportions.sum(axis=1, keepdims=True)


def arrange_corners(proportions, labels):
    """Return the corners of the clusters on the unit circle, similar ones adjacent."""
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    n_clusters = proportions.shape[1]
    if n_clusters == 1:
        return np.array([[0.0, 1.0]])
    members = labels == np.arange(n_clusters)[:, np.newaxis]
    mixture = members @ proportions / members.sum(axis=1, keepdims=True)
    distance = 1.0 - 0.5 * (mixture + mixture.T)
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance), "average", optimal_ordering=True)
    angle = np.empty(n_clusters)
    angle[leaves_list(tree)] = 2.0 * np.pi * np.arange(n_clusters) / n_clusters
    # clockwise from the top
    return np.column_stack([np.sin(angle), np.cos(angle)])
