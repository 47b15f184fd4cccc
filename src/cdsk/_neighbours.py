# SPDX-License-Identifier: BSD-3-Clause
"""Nearest neighbours: searched once, shared by everything that asks about the data.

The search is scikit-learn's, on centred points. Its distances are computed afresh from
differences: in high dimensions it expands the square, which loses digits, and a point
is then not at distance 0 of itself.
"""

from functools import cached_property

import numpy as np
from sklearn.neighbors import NearestNeighbors

# The neighbour whose distance is the scale of a point, as in self-tuning spectral
# clustering (Zelnik-Manor & Perona, 2004).
SCALE_NEIGHBOUR = 7

# Outliers: up to a quarter of the points may have scales beyond so many times those of
# all others.
_USUAL_QUANTILE, _OUTLYING = 0.75, 2.0

# A point so near to another, relative to its scale, is the same one up to the rounding
# of a transform, which may depend on how many points are transformed together.
_SAME_POINT = 1e-6


class PointSearch:
    """Search for the nearest among the points X."""

    def __init__(self, X):
        self.X = X
        self._centre = X.mean(axis=0, dtype=np.float64)
        self._search = NearestNeighbors().fit(X - self._centre)

    def nearest_to(self, new, k):
        """Indices and distances (m, k) of the points nearest to new ones, in order."""
        found = self._search.kneighbors(new - self._centre, k, return_distance=False)
        return _nearest_first(new, self.X, found)


class Neighbours(PointSearch):
    """The k nearest neighbours of every point of X among the others.

    ``robust`` keeps the scales of outliers down to twice the upper quartile of all
    scales. With scales of their own, however large, a few outliers would be as similar
    to each other as the points of a cluster are. A sparse cluster of more than a
    quarter of the points keeps its scales.

    Attributes
    ----------
    indices, distances : ndarrays of shape (n, k)
        Nearest first; k is at most n - 1.
    own_scales : ndarray of shape (n,)
        Distance to the 7th neighbour, to the farthest if there are fewer others.
    """

    def __init__(self, X, k=SCALE_NEIGHBOUR, *, robust=False):
        super().__init__(X)
        self.k = min(k, len(X) - 1)
        self._rank = min(SCALE_NEIGHBOUR, len(X) - 1)
        searched = max(self.k, self._rank)
        found = self._search.kneighbors(n_neighbors=searched, return_distance=False)
        indices, distances = _nearest_first(X, X, found)
        self.indices, self.distances = indices[:, : self.k], distances[:, : self.k]
        self.own_scales = distances[:, self._rank - 1].copy()
        self._largest_scale = np.inf
        if robust:
            # if most points are duplicates, 0: then there is nothing to compare with
            usual = np.quantile(self.own_scales, _USUAL_QUANTILE)
            self._largest_scale = _OUTLYING * usual or np.inf

    @cached_property
    def scales(self):
        """``own_scales`` kept down; zeros, as of duplicates, are the smallest other."""
        scales = np.minimum(self.own_scales, self._largest_scale)
        positive = scales > 0
        if positive.any() and not positive.all():
            scales = np.where(positive, scales, scales[positive].min())
        return scales

    def scales_of(self, new):
        """Distance of new points to their 7th nearest in X.

        A point of X does not count itself: asked as a new one it has its old scale.
        """
        k = self._rank
        _, distances = self.nearest_to(new, k + 1)
        is_old = distances[:, 0] <= _SAME_POINT * distances[:, k]
        scales = np.where(is_old, distances[:, k], distances[:, k - 1])
        scales = np.minimum(scales, self._largest_scale)
        return np.where(scales > 0, scales, self.scales.min())


def nearest_among(X, points, candidates):
    """For each index in ``points`` the index in ``candidates`` of its nearest point."""
    centred = X - X.mean(axis=0, dtype=np.float64)
    search = NearestNeighbors(n_neighbors=1).fit(centred[candidates])
    return candidates[search.kneighbors(centred[points], return_distance=False)[:, 0]]


def _nearest_first(A, B, indices):
    """Indices and distances of A[i] to the points B[indices[i]], nearest first."""
    distances = np.empty(indices.shape)
    # 256 rows at a time: the differences are k times as large as A
    for first in range(0, len(A), 256):
        rows = slice(first, first + 256)
        difference = A[rows, np.newaxis].astype(np.float64) - B[indices[rows]]
        distances[rows] = np.sqrt(np.einsum("ikd,ikd->ik", difference, difference))
    order = np.argsort(distances, axis=1, kind="stable")
    return (
        np.take_along_axis(indices, order, axis=1),
        np.take_along_axis(distances, order, axis=1),
    )
