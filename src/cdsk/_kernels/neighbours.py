# SPDX-License-Identifier: BSD-3-Clause
"""Nearest neighbours: searched once, shared by everything that asks about the data.

The search is exact (_nearest.pyx), sums distances from differences and gives the same
result on any number of threads: of points at equal distances, which whole numbers have
many of, the first ones. Sparse points are searched by sparse_rows.py.
"""

import time
from functools import cached_property

import numpy as np
from scipy import sparse

from cdsk._kernels.sparse_rows import nearest_rows
from cdsk._linalg.sparse_state import SparseState
from cdsk._nearest import Tiles
from cdsk._runtime import check_memory
from cdsk._validation import check_extent

# The neighbour whose distance is the scale of a point, as in self-tuning spectral
# clustering (Zelnik-Manor & Perona, 2004).
SCALE_NEIGHBOUR = 7

# Outliers: up to a quarter of the points may have scales beyond so many times those of
# all others.
_USUAL_QUANTILE, _OUTLYING = 0.75, 2.0

# A point so near to another, relative to its scale, is the same one up to the rounding
# of what the caller did to it, which may depend on how many points come together.
SAME_POINT = 1e-6

# Seconds after which the length of a search is estimated, and from which on it is told.
_LISTENING, _LONG = 2.0, 60.0

# Numbers of new points that are searched for at a time, and points at least.
_PART, _LEAST_PART = 2**23, 2**10


class PointSearch(SparseState):
    """Search for the nearest among the points X."""

    def __init__(self, X):
        self.X = X if sparse.issparse(X) else np.ascontiguousarray(X)

    def nearest_to(self, new, k, n_threads=1):
        """Indices and distances (m, k) of the points nearest to new ones, in order."""
        if sparse.issparse(self.X):
            return nearest_rows(new, self.X, k)
        new = np.ascontiguousarray(new)
        indices, distances = _room(len(new), k)
        step = max(_LEAST_PART, _PART // new.shape[1])
        for i in range(0, len(new), step):
            part = slice(i, i + step)
            self._tiles(n_threads).nearest_to(
                new[part], indices[part], distances[part], n_threads
            )
        return indices, distances

    def nearest_others(self, k, n_threads=1, progress=None):
        """The same for each point of X among all but itself.

        ``progress`` is called now and then with the share that is done.
        """
        if sparse.issparse(self.X):
            return nearest_rows(self.X, self.X, k, others=True, progress=progress)
        indices, distances = _room(len(self.X), k)
        tiles = self._tiles(n_threads)
        tiles.nearest_others(indices, distances, n_threads, progress)
        return indices, distances

    def _tiles(self, n_threads):
        if self._made is None:
            n, d = self.X.shape
            # ordered, in float32, and boxes of 48 points
            n_bytes = n * d * (self.X.itemsize + 5) + 100 * n
            check_memory(n_bytes, "The search for neighbours", "Use fewer points.")
            self._made = Tiles(self.X, n_threads)
        return self._made

    _made: Tiles | None = None

    def __getstate__(self):
        # made again where it is needed
        return {n: v for n, v in super().__getstate__().items() if n != "_made"}


def _room(m, k):
    check_memory(12 * m * k, "The neighbours of all points", "Use fewer points.")
    return np.empty((m, k), dtype=np.int32), np.empty((m, k))


class Scales(SparseState):
    """Distances of points to their 7th neighbour.

    ``robust`` caps the scales of outliers at twice the upper quartile of all scales.
    With scales of their own, however large, a few outliers would be as similar to each
    other as the points of a cluster are. A sparse cluster of more than a quarter of the
    points keeps its scales.
    """

    def __init__(self, own_scales, robust):
        self.own_scales = own_scales
        self._largest_scale = np.inf
        if robust:
            # if most points are duplicates, 0: then there is nothing to compare with
            usual = np.quantile(own_scales, _USUAL_QUANTILE)
            self._largest_scale = _OUTLYING * usual or np.inf

    @cached_property
    def scales(self):
        """``own_scales`` capped; zeros, as of duplicates, are the smallest other."""
        scales = np.minimum(self.own_scales, self._largest_scale)
        positive = scales > 0
        if positive.any() and not positive.all():
            scales = np.where(positive, scales, scales[positive].min())
        return scales


class Neighbours(PointSearch, Scales):
    """The k nearest neighbours of every point of X among the others.

    ``indices`` and ``distances`` (n, k) have the nearest first; k is at most n - 1.
    ``own_scales`` (n,) are the distances to the 7th neighbour, or another ``rank``, to
    the farthest if there are fewer others.
    """

    def __init__(
        self,
        X,
        k=SCALE_NEIGHBOUR,
        *,
        rank=SCALE_NEIGHBOUR,
        robust=False,
        n_threads=1,
        progress=None,
    ):
        check_extent(X)
        PointSearch.__init__(self, X)
        others = X.shape[0] - 1
        self.k, self._rank = min(k, others), min(rank, others)
        searched = max(self.k, self._rank)
        indices, distances = self.nearest_others(searched, n_threads, progress)
        self._made = None  # as large as the data; made again if new points come
        self.indices, self.distances = indices[:, : self.k], distances[:, : self.k]
        Scales.__init__(self, distances[:, self._rank - 1].copy(), robust)

    def graph(self):
        """Distances to the neighbours as a sparse matrix, a row per point."""
        n, k = self.indices.shape
        ends = np.arange(0, n * k + 1, k)
        parts = self.distances.ravel(), self.indices.ravel(), ends
        graph = sparse.csr_array(parts, shape=(n, n), copy=True)
        graph.sort_indices()
        return graph

    def scales_of(self, new, n_threads=1):
        """Distance of new points to their 7th, or ``rank``, nearest in X.

        A point of X does not count itself: asked as a new one it has its old scale.
        """
        indices, distances = self.nearest_to(new, self._rank, n_threads)
        scales = np.minimum(distances[:, -1], self._largest_scale)
        scales = np.where(scales > 0, scales, self.scales.min())
        is_old = distances[:, 0] <= SAME_POINT * self.scales[indices[:, 0]]
        return np.where(is_old, self.scales[indices[:, 0]], scales)


class LongSearch:
    """A ``progress`` that says once, and early, that a search will take minutes.

    How long is measured: it depends on how much of the data boxes leave out.
    """

    def __init__(self, tell):
        self._tell = tell
        self._begun = time.perf_counter()

    def __call__(self, share):
        seconds = time.perf_counter() - self._begun
        if self._tell is not None and seconds > _LISTENING:
            left = seconds / share - seconds
            if left > _LONG:
                self._tell(
                    f"[CDSK] the exact search for neighbours takes about {left:.0f} s "
                    "more; neighbors= takes an approximate index instead"
                )
            self._tell = None


def nearest_among(X, points, candidates, n_threads=1):
    """For each index in ``points`` the index in ``candidates`` of its nearest point."""
    indices, _ = PointSearch(X[candidates]).nearest_to(X[points], 1, n_threads)
    return candidates[indices[:, 0]]
