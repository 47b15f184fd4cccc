# SPDX-License-Identifier: BSD-3-Clause
"""Labels of k-means to start from (tests/test_baselines_max_margin.py)."""

import warnings

import numpy as np

from cdsk._steps.labels import OneThreadKMeans


def in_own_unit(X):
    """X less its centre, in units of its root mean square distance to it.

    Returns the points, the centre and the unit, which is 1 if all points are equal.
    """
    centre = X.mean(axis=0)
    points = X - centre
    # two steps, for the squares of points in a huge or tiny unit
    largest = float(np.abs(points).max()) or 1.0
    points /= largest
    size = float(np.sqrt(np.mean(np.sum(points**2, axis=1)))) or 1.0
    points /= size
    return points, centre, largest * size


def kmeans_labels(points, n_clusters, n_init, rng):
    """Labels of k-means, the best of ``n_init`` starts; BLAS is the caller's."""
    with warnings.catch_warnings():
        # an empty cluster is nothing special to methods that start here
        warnings.filterwarnings("ignore", "Number of distinct clusters")
        model = OneThreadKMeans(n_clusters, n_init=n_init, random_state=rng)
        return model.fit_predict(points)
