# SPDX-License-Identifier: BSD-3-Clause
"""Nearest neighbours: searched once, shared by everything that asks about the data.

With few features by scikit-learn's tree, with many by comparing all pairs
(_nearest.pyx). Both sum distances from differences and give the same result on any
number of threads; scikit-learn's own search for many features does neither: of points
at equal distances, which whole numbers have many of, its threads keep whom they find.
"""

from functools import cached_property

import numpy as np
from sklearn.neighbors import KDTree

from cdsk._nearest import nearest
from cdsk._validation import check_extent, in_one_dtype

# The neighbour whose distance is the scale of a point, as in self-tuning spectral
# clustering (Zelnik-Manor & Perona, 2004).
SCALE_NEIGHBOUR = 7

# Outliers: up to a quarter of the points may have scales beyond so many times those of
# all others.
_USUAL_QUANTILE, _OUTLYING = 0.75, 2.0

# A point so near to another, relative to its scale, is the same one up to the rounding
# of what the caller did to it, which may depend on how many points come together.
_SAME_POINT = 1e-6

# Neighbours per neighbour asked for, at most, where all points have many duplicates.
_MOST_COPIES = 10

# Features up to which a tree is used. Measured for 20 000 points on two cores, tree and
# all pairs: 0.17 s and 0.24 s for 3 normal features, 0.52 s and 0.26 s for 5, 4 s and
# 0.3 s for 10; 0.2 s and 0.3 s for 10 features near a plane.
_TREE_FEATURES = 5

# Distances between two chances for Ctrl-C in a tree that is of no use: less than a
# second.
_PART = 5 * 10**7


class PointSearch:
    """Search for the nearest among the points X."""

    def __init__(self, X):
        self.X = np.ascontiguousarray(X)
        self._tree = KDTree(X) if X.shape[1] <= _TREE_FEATURES else None

    def nearest_to(self, new, k, n_threads=1):
        """Indices and distances (m, k) of the points nearest to new ones, in order."""
        if self._tree is not None:
            return self._ask(self._tree, new, k)
        new, X = in_one_dtype(new, self.X)
        return _compare_all(new, X, k, n_threads)

    def nearest_others(self, k, n_threads=1):
        """The same for each point of X among all but itself."""
        if self._tree is None:
            return _compare_all(self.X, self.X, k, n_threads, itself=True)
        indices, distances = self._ask(self._tree, self.X, k + 1)
        dropped = indices == np.arange(len(self.X))[:, np.newaxis]
        # duplicates may have crowded a point out of its own neighbours
        dropped[~dropped.any(axis=1), -1] = True
        shape = len(self.X), k
        return indices[~dropped].reshape(shape), distances[~dropped].reshape(shape)

    def _ask(self, tree, points, k):
        indices = np.empty((len(points), k), dtype=np.intp)
        distances = np.empty((len(points), k))
        step = max(1, _PART // len(self.X))
        for i in range(0, len(points), step):
            part = slice(i, i + step)
            distances[part], indices[part] = tree.query(points[part], k)
        return indices, distances


def _compare_all(A, B, k, n_threads, itself=False):
    indices = np.empty((len(A), k), dtype=np.intp)
    distances = np.empty((len(A), k))
    nearest(A, B, itself, indices, distances, n_threads)
    return indices, distances


class Neighbours(PointSearch):
    """The k nearest neighbours of every point of X among the others.

    ``robust`` caps the scales of outliers at twice the upper quartile of all scales.
    With scales of their own, however large, a few outliers would be as similar to each
    other as the points of a cluster are. A sparse cluster of more than a quarter of the
    points keeps its scales.

    ``indices`` and ``distances`` (n, k) have the nearest first; k is at most n - 1.
    Where the nearest of every point are duplicates, as many times k as there are of
    each, up to ten. ``own_scales`` (n,) are the distances to the 7th neighbour, to the
    farthest if there are fewer others. Where all of these are duplicates, for every
    point, duplicates are not counted.
    """

    def __init__(self, X, k=SCALE_NEIGHBOUR, *, robust=False, n_threads=1):
        check_extent(X)
        super().__init__(X)
        self._rank = min(SCALE_NEIGHBOUR, len(X) - 1)
        self._search(k, n_threads)
        if not self.own_scales.any():
            self._search_among_duplicates(k, n_threads)
        self._largest_scale = np.inf
        if robust:
            # if most points are duplicates, 0: then there is nothing to compare with
            usual = np.quantile(self.own_scales, _USUAL_QUANTILE)
            self._largest_scale = _OUTLYING * usual or np.inf

    def _search(self, k, n_threads):
        self.k = min(k, len(self.X) - 1)
        searched = max(self.k, self._rank)
        indices, distances = self.nearest_others(searched, n_threads)
        self.indices, self.distances = indices[:, : self.k], distances[:, : self.k]
        self.own_scales = distances[:, self._rank - 1].copy()

    def _search_among_duplicates(self, k, n_threads):
        """Scales from distinct points, and neighbours for each of the duplicates."""
        distinct, place = np.unique(self.X, axis=0, return_inverse=True)
        if len(distinct) == 1:
            return
        copies = min(-(-len(self.X) // len(distinct)), _MOST_COPIES)
        self._search(k * copies, n_threads)
        rank = min(SCALE_NEIGHBOUR, len(distinct) - 1)
        _, distances = PointSearch(distinct).nearest_others(rank, n_threads)
        self.own_scales = distances[place.ravel(), -1]

    @cached_property
    def scales(self):
        """``own_scales`` capped; zeros, as of duplicates, are the smallest other."""
        scales = np.minimum(self.own_scales, self._largest_scale)
        positive = scales > 0
        if positive.any() and not positive.all():
            scales = np.where(positive, scales, scales[positive].min())
        return scales

    def scales_of(self, new, n_threads=1):
        """Distance of new points to their 7th nearest in X.

        A point of X does not count itself: asked as a new one it has its old scale.
        """
        indices, distances = self.nearest_to(new, self._rank, n_threads)
        scales = np.minimum(distances[:, -1], self._largest_scale)
        scales = np.where(scales > 0, scales, self.scales.min())
        is_old = distances[:, 0] <= _SAME_POINT * self.scales[indices[:, 0]]
        return np.where(is_old, self.scales[indices[:, 0]], scales)


def nearest_among(X, points, candidates, n_threads=1):
    """For each index in ``points`` the index in ``candidates`` of its nearest point."""
    indices, _ = PointSearch(X[candidates]).nearest_to(X[points], 1, n_threads)
    return candidates[indices[:, 0]]
