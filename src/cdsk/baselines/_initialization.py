# SPDX-License-Identifier: BSD-3-Clause
"""Initial labels by k-means (tests/test_baselines_max_margin.py)."""

import numpy as np

from cdsk._spectral import kmeans


def center_and_scale(X):
    """Return X minus its center, divided by the root mean square distance to it.

    Also returns the center and that distance, 1 if all points are equal.
    """
    center = X.mean(axis=0)
    points = X - center
    # two steps, so that squares neither overflow nor underflow
    largest = float(np.abs(points).max()) or 1.0
    points /= largest
    size = float(np.sqrt(np.mean(np.sum(points**2, axis=1)))) or 1.0
    points /= size
    return points, center, largest * size


def run_kmeans(points, n_clusters, n_init, rng):
    """Return the labels (n,) of the best of ``n_init`` runs of k-means."""
    return kmeans(points.T, n_clusters, n_init=n_init, rng=rng)
