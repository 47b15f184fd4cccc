# SPDX-License-Identifier: BSD-3-Clause
"""Nearest neighbors, local scales, and neighbor graphs given by the caller.

Dense points are searched by the compiled ``Tiles``: distances are summed from
differences, and the result is the same for any number of threads; of points at equal
distances those of smaller index come first. Sparse points are searched over all pairs,
a chunk of rows at a time; the distances to the neighbors found are computed again from
differences, because products lose the digits of near points. Memory is O(nk) beside the
data.

The *local scale* s_i of a point is the distance to its 7th neighbor (Zelnik-Manor &
Perona, Self-tuning spectral clustering, 2004). With scales of their own, however
large, a few outliers would be as similar to each other as the points of a cluster are.
So scales may be capped at twice their upper quartile: a sparse cluster of more than a
quarter of the points keeps its scales.
"""

import time
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import pairwise_distances_chunked

from cdsk._approximate import (
    SEED,
    estimate_seconds,
    find_approximately,
    is_worthwhile,
)
from cdsk._nearest import Tiles
from cdsk._operators.base import Array, Indices
from cdsk._utils import Progress, check_memory
from cdsk._validation import check_extent

# The neighbor whose distance is the local scale of a point.
SCALE_NEIGHBOR = 7

# Robust scales are at most this factor times this quantile of all scales.
_CAP_QUANTILE, _CAP_FACTOR = 0.75, 2.0

# A new point this near to a training point, relative to the scale of the latter, is the
# same point up to the rounding of the caller's preprocessing.
_SAME_POINT_TOLERANCE = 1e-6

# A distance of a point to itself above this fraction of the largest in its row is not
# rounding: the graph does not hold distances.
_SELF_DISTANCE_TOLERANCE = 0.01

# Seconds after which the duration of a search is estimated, and the shortest remaining
# time that is announced.
_ESTIMATE_AFTER, _ANNOUNCE_FROM = 2.0, 60.0

_SEARCH_MEMORY = "The search for neighbors", "Use fewer points."

# Points at which the recall of an approximate search is measured, and the rounding of
# distances computed in another order.
_RECALL_SAMPLE, _ROUNDING = 1000, 1e-9

# Coordinates of new points searched for at a time, and the fewest points.
_CHUNK_SIZE, _MIN_CHUNK_ROWS = 2**23, 2**10

# MiB of distances between sparse rows at a time: signals and progress are handled
# between chunks.
_WORKING_MEMORY = 64

# Called now and then with the fraction of a search that is done.
Callback = Callable[[float], object]
IndexArray = NDArray[np.int32]


class SparseState:
    """Saves CSR attributes as their parts: saved models hold plain arrays only."""

    def __getstate__(self) -> dict[str, Any]:
        packed = {
            name: (M.data, M.indices, M.indptr, list(M.shape))
            for name, M in self.__dict__.items()
            if sparse.issparse(M)
        }
        plain = {name: v for name, v in self.__dict__.items() if name not in packed}
        return plain | {"_sparse": packed}

    def __setstate__(self, state: dict[str, Any]) -> None:
        matrices = {
            name: sparse.csr_array(tuple(parts), shape=tuple(shape))
            for name, (*parts, shape) in state["_sparse"].items()
        }
        self.__dict__.update(state | matrices)
        del self.__dict__["_sparse"]


class NeighborIndex(SparseState):
    """Exact k-nearest-neighbor search among the rows of X, dense or CSR."""

    def __init__(self, X: Any) -> None:
        self.X = X if sparse.issparse(X) else np.ascontiguousarray(X)
        self._tiles: Tiles | None = None

    def kneighbors(
        self, X: Any, k: int, *, n_threads: int = 1, callback: Callback | None = None
    ) -> tuple[Array, IndexArray]:
        """Return distances and indices (m, k) of the nearest points, nearest first.

        If X is None, the neighbors of every indexed point among the others.
        """
        queries = self.X if X is None else X
        (n, d), m = self.X.shape, queries.shape[0]
        if sparse.issparse(self.X):
            check_memory(12 * m * k, *_SEARCH_MEMORY)
            return kneighbors_sparse(queries, self.X, k, X is None, callback)
        # of the tiles a sorted copy, one in float32, and boxes
        n_bytes = n * d * (self.X.itemsize + 5) + 100 * n if self._tiles is None else 0
        check_memory(12 * m * k + n_bytes, *_SEARCH_MEMORY)
        if self._tiles is None:
            self._tiles = Tiles(self.X, n_threads)
        distances, indices = np.empty((m, k)), np.empty((m, k), dtype=np.int32)
        if X is None:
            self._tiles.nearest_others(indices, distances, n_threads, callback)
            return distances, indices
        queries = np.ascontiguousarray(queries)
        step = max(_MIN_CHUNK_ROWS, _CHUNK_SIZE // d)
        for rows in (slice(i, i + step) for i in range(0, m, step)):
            self._tiles.nearest_to(
                queries[rows], indices[rows], distances[rows], n_threads
            )
        return distances, indices

    def __getstate__(self) -> dict[str, Any]:
        # the tiles, as large as the data, are built again where they are needed
        return super().__getstate__() | {"_tiles": None}


def kneighbors_sparse(
    new: Any,
    X: Any,
    k: int,
    exclude_self: bool = False,
    callback: Callback | None = None,
) -> tuple[Array, IndexArray]:
    """Return distances and indices (m, k) of the rows of a CSR X nearest to new ones.

    If ``exclude_self``, ``new`` is X and no row is its own neighbor.
    """
    m = new.shape[0]
    distances, indices = np.empty((m, k)), np.empty((m, k), dtype=np.int32)

    def select_nearest(squares: Array, begin: int) -> Indices:
        rows = np.arange(begin, begin + len(squares))
        if exclude_self:
            squares[rows - begin, rows] = np.inf
        nearest = np.argpartition(squares, k - 1, axis=1)[:, :k]
        pairs = np.repeat(rows, k)
        differences = (new[pairs] - X[nearest.ravel()]).astype(np.float64)
        exact = np.sqrt(differences.power(2).sum(axis=1)).reshape(nearest.shape)
        order = np.lexsort((nearest, exact))
        indices[rows] = np.take_along_axis(nearest, order, axis=1)
        distances[rows] = np.take_along_axis(exact, order, axis=1)
        if callback is not None:
            callback((begin + len(squares)) / m)
        return rows

    chunks = pairwise_distances_chunked(
        new, X, reduce_func=select_nearest, working_memory=_WORKING_MEMORY, squared=True
    )
    for _ in chunks:
        pass
    return distances, indices


def find_nearest(X: Any, points: Any, candidates: Any, n_threads: int = 1) -> Indices:
    """Return for each index in ``points`` that of the nearest in ``candidates``."""
    index = NeighborIndex(X[candidates])
    _, nearest = index.kneighbors(X[points], 1, n_threads=n_threads)
    return np.asarray(candidates[nearest[:, 0]])


class SlowSearchNotice:
    """A callback that announces once that a search will take minutes.

    The remaining time is extrapolated: it depends on how many boxes are skipped. It
    names the approximate search of points X if that takes a minute less.
    """

    def __init__(self, progress: Progress, X: Any) -> None:
        self._progress, self._is_estimated = progress, False
        self._approximate = np.inf
        if not sparse.issparse(X) and is_worthwhile(*X.shape):
            self._approximate = estimate_seconds(*X.shape)
        self._started = time.perf_counter()

    def __call__(self, fraction: float) -> None:
        elapsed = time.perf_counter() - self._started
        if not self._is_estimated and elapsed > _ESTIMATE_AFTER:
            self._is_estimated = True
            remaining = elapsed / fraction - elapsed
            if remaining > _ANNOUNCE_FROM:
                line = "[CDSK] the exact neighbor search takes about "
                line += f"{remaining:.0f} s more"
                if remaining - self._approximate > _ANNOUNCE_FROM:
                    line += '; neighbors="approximate" would take about '
                    line += f"{self._approximate:.0f} s"
                self._progress.write(line)
        self._progress.update(fraction)


def _cap_scales(distances: Array, robust: bool) -> tuple[Array, float]:
    """Return the local scales by the distances to the kth neighbors, and their cap.

    Those of duplicates, 0, become the smallest positive one.
    """
    cap = np.inf
    if robust:  # infinity if it would be 0 (duplicates)
        cap = _CAP_FACTOR * float(np.quantile(distances, _CAP_QUANTILE)) or np.inf
    scales: Array = np.minimum(distances, cap)
    positive = scales > 0
    if positive.any() and not positive.all():
        scales = np.where(positive, scales, scales[positive].min())
    return scales, cap


class Neighbors(NeighborIndex):
    """The k nearest neighbors of every point of X among the others.

    ``distances`` and ``indices`` (n, k) have the nearest first; k is at most n - 1.
    ``kth_distances`` (n,) are those to the 7th neighbor, or another
    ``scale_neighbor``, or the farthest point if there are fewer; ``scales`` (n,) are
    these without zeros, capped if ``robust``.

    Of an ``approximate`` search, ``recall`` is the share of the neighbors of random
    points that it finds. The neighbors of new points are exact.
    """

    def __init__(
        self,
        X: Any,
        k: int = SCALE_NEIGHBOR,
        *,
        scale_neighbor: int = SCALE_NEIGHBOR,
        robust: bool = False,
        approximate: bool = False,
        n_threads: int = 1,
        callback: Callback | None = None,
    ) -> None:
        check_extent(X)
        super().__init__(X)
        n_others = X.shape[0] - 1
        self.k = k = min(k, n_others)
        self._scale_neighbor = min(scale_neighbor, n_others)
        k_max = max(k, self._scale_neighbor)
        self.recall: float | None = None
        if approximate:
            distances, indices = find_approximately(self.X, k_max)
            self._complete(distances, indices, n_threads)
            self.recall = self._measure_recall(distances, n_threads)
        else:
            distances, indices = self.kneighbors(
                None, k_max, n_threads=n_threads, callback=callback
            )
        self._tiles = None  # a fit needs them no more
        self.distances, self.indices = distances[:, :k], indices[:, :k]
        self.kth_distances = distances[:, self._scale_neighbor - 1].copy()
        self.scales, self._cap = _cap_scales(self.kth_distances, robust)

    def _complete(self, distances: Array, indices: IndexArray, n_threads: int) -> None:
        """Search exactly for the neighbors of rows that are incomplete."""
        rows = np.flatnonzero(np.isinf(distances[:, -1]))
        if len(rows):
            found = self._search_others(rows, distances.shape[1], n_threads)
            distances[rows], indices[rows] = found

    def _measure_recall(self, distances: Array, n_threads: int) -> float:
        """Return the share of the distances that are those of nearest neighbors."""
        n, k = distances.shape
        size = min(_RECALL_SAMPLE, n)
        rows = np.random.RandomState(SEED).choice(n, size, replace=False)
        exact, _ = self._search_others(rows, k, n_threads)
        return float(np.mean(distances[rows] <= exact[:, -1:] * (1.0 + _ROUNDING)))

    def _search_others(
        self, rows: Indices, k: int, n_threads: int
    ) -> tuple[Array, IndexArray]:
        """Return distances and indices (m, k) of the others nearest to some points."""
        found = self.kneighbors(self.X[rows], k + 1, n_threads=n_threads)
        distances, indices = found
        # equal points may come before itself, and then it may be none of them
        own = indices == rows[:, np.newaxis]
        own[~own.any(axis=1), -1] = True
        return distances[~own].reshape(-1, k), indices[~own].reshape(-1, k)

    def kneighbors_graph(self) -> sparse.csr_array:
        """Return the distances to the neighbors as a sparse matrix (n, n)."""
        n, k = self.indices.shape
        starts = np.arange(0, n * k + 1, k)
        parts = self.distances.ravel(), self.indices.ravel(), starts
        graph = sparse.csr_array(parts, shape=(n, n), copy=True)
        graph.sort_indices()
        return graph

    def local_scales(self, X: Any, n_threads: int = 1) -> Array:
        """Return the local scales of new points (m,).

        A training point does not count itself: it keeps the scale that it has.
        """
        k = self._scale_neighbor
        distances, indices = self.kneighbors(X, k, n_threads=n_threads)
        scales = np.minimum(distances[:, -1], self._cap)
        scales = np.where(scales > 0, scales, self.scales.min())
        nearest = self.scales[indices[:, 0]]
        is_same = distances[:, 0] <= _SAME_POINT_TOLERANCE * nearest
        return np.where(is_same, nearest, scales)


# Neighbor graphs given by the caller. By the convention of scikit-learn, row i holds
# the distances of point i to some training points, with or without its own distance of
# 0. Rows may have different lengths and any order; j need not be a neighbor of i where
# i is one of j.


class PrecomputedNeighbors(SparseState):
    """Neighbors from a transformer of points, or from a graph of distances.

    ``X`` are points, or the graph itself if ``transformer`` is None. The k nearest
    entries of each row are used, all if k is None.
    """

    def __init__(
        self, X: Any, k: int | None, transformer: Any = None, *, robust: bool = False
    ) -> None:
        self.transformer, self.X, graph = transformer, None, X
        self.name, self.origin = "X", "a given graph"
        if transformer is not None:
            self.transformer, self.X = clone(transformer), X
            self.origin = str(type(transformer).__name__)
            self.name = f"The graph by {self.origin}"
            graph = self.transformer.fit_transform(X)
        self.n = X.shape[0]
        if graph.shape != (self.n, self.n):
            raise ValueError(
                f"{self.name} must have a row and a column for each of the {self.n} "
                f"points; got shape {graph.shape}."
            )
        graph = _check_distance_graph(graph, self.n, self.name)
        graph = _remove_diagonal(graph, self.name)
        if not graph.data.any():
            raise ValueError(
                f"{self.name} must hold distances between different points; got "
                f"{graph.nnz} entries, all of them 0."
            )
        self.kth_distances = _kth_distances(graph)
        self.scales, self._cap = _cap_scales(self.kth_distances, robust)
        self._graph = (
            graph if k is None else select_entries(graph, entry_ranks(graph) < k)
        )

    def kneighbors_graph(self, X: Any = None) -> sparse.csr_array:
        """Return the distances to the neighbors (m, n), of new points if X is given.

        X is what the transformer takes, or else the graph of the new points.
        """
        if X is None:
            return self._graph
        if self.transformer is not None:
            X = self.transformer.transform(X)
        return _check_distance_graph(X, self.n, self.name)

    def local_scales(self, graph: sparse.csr_array, n_threads: int = 1) -> Array:
        """Return the local scales of new points (m,) from their graph of distances."""
        scales = np.minimum(_kth_distances(graph), self._cap)
        scales = np.where(scales > 0, scales, self.scales.min())
        column_scales = self.scales[graph.indices]
        is_same = graph.data <= _SAME_POINT_TOLERANCE * column_scales
        scales[entry_rows(graph)[is_same]] = column_scales[is_same]
        return scales


def _check_distance_graph(graph: Any, n: int, name: str) -> sparse.csr_array:
    """Return the graph as a sorted CSR array of finite distances to n points."""
    if not sparse.issparse(graph):
        raise ValueError(
            f"{name} must be a sparse matrix of distances; got {type(graph).__name__}."
        )
    if graph.ndim != 2 or graph.shape[1] != n:
        raise ValueError(
            f"{name} must have a column for each of the {n} training points; got shape "
            f"{graph.shape}."
        )
    graph = sparse.csr_array(graph, dtype=np.float64, copy=True)
    is_valid = (graph.data >= 0) & np.isfinite(graph.data)
    if not is_valid.all():
        raise ValueError(
            f"{name} must hold distances, finite and not negative; got "
            f"{graph.data[~is_valid][0]}."
        )
    graph.sort_indices()
    if not graph.has_canonical_format:
        raise ValueError(f"{name} must hold each pair once; got some pair twice.")
    return graph


def _remove_diagonal(graph: sparse.csr_array, name: str) -> sparse.csr_array:
    own = is_diagonal(graph)
    farthest = graph.max(axis=1).toarray().ravel()[graph.indices[own]]
    # distances computed from products of many features are not exactly 0
    if (graph.data[own] > _SELF_DISTANCE_TOLERANCE * farthest).any():
        raise ValueError(
            f"{name} must hold distances, so that a point has a distance of 0 to "
            f"itself; got {graph.data[own].max()}. If it was computed with "
            'mode="connectivity", use mode="distance".'
        )
    return select_entries(graph, ~own)


def entry_rows(matrix: sparse.csr_array) -> Indices:
    """Return the row of every entry of a CSR array (nnz,)."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def is_diagonal(matrix: sparse.csr_array) -> NDArray[np.bool_]:
    """Return whether an entry of a CSR array is on its diagonal (nnz,)."""
    return np.asarray(entry_rows(matrix) == matrix.indices)


def select_entries(
    matrix: sparse.csr_array, mask: NDArray[np.bool_]
) -> sparse.csr_array:
    """Return a CSR array of the masked entries, explicit zeros included."""
    starts = np.concatenate([[0], np.cumsum(mask)])[matrix.indptr]
    parts = matrix.data[mask], matrix.indices[mask], starts
    return sparse.csr_array(parts, shape=matrix.shape)


def entry_ranks(graph: sparse.csr_array) -> Indices:
    """Return the rank of each entry in its row, nearest first, ties by column."""
    row = entry_rows(graph)
    order = np.lexsort((graph.indices, graph.data, row))
    ranks = np.empty(graph.nnz, dtype=np.intp)
    ranks[order] = np.arange(graph.nnz) - graph.indptr[row]
    return ranks


def _kth_distances(graph: sparse.csr_array) -> Array:
    """Return the distances to the 7th neighbors, or the last; 0 for empty rows."""
    distances, row = np.zeros(graph.shape[0]), entry_rows(graph)
    last = np.minimum(np.diff(graph.indptr), SCALE_NEIGHBOR)[row] - 1
    is_kth = entry_ranks(graph) == last
    distances[row[is_kth]] = graph.data[is_kth]
    return distances


# Sparse rows.


def canonical_csr(X: Any) -> sparse.csr_array:
    """Return X as a CSR array with sorted columns, each once, and without zeros."""
    X = sparse.csr_array(X)
    if X.has_canonical_format and X.data.all():
        return X
    X = X.copy()
    X.sum_duplicates()
    X.eliminate_zeros()
    return X


def hash_rows(X: sparse.csr_array) -> list[bytes]:
    """Return a digest of every row of a canonical X, the same for equal rows only."""
    ends = zip(X.indptr[:-1], X.indptr[1:], strict=True)
    columns = X.indices.astype(np.int64)
    return [
        blake2b(columns[i:j].tobytes() + X.data[i:j].tobytes(), digest_size=16).digest()
        for i, j in ends
    ]
