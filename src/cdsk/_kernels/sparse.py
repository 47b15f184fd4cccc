# SPDX-License-Identifier: BSD-3-Clause
"""Gaussian kernels truncated to nearest neighbours, as sparse matrices.

    K_ij = exp(-|x_i - x_j|^2 / (2 b_i b_j))   if j is one of the k nearest neighbours
                                               of i or i one of j, else 0

A narrow kernel vanishes beyond a few neighbours anyway; a wide one would let many far
points outvote the few near ones. The neighbours are searched once for all bandwidths.
Nothing here is n x n: memory is O(nk), a product with m vectors costs O(nkm).

Truncation can make K indefinite. The diagonal is then raised until it is not: K_ii is
the similarity of a point to itself, which the spectral step leaves out, so only the
regulariser of the weight step sees it.
"""

from functools import cached_property

import numpy as np
from scipy import sparse

from cdsk._graph import components, product, scaled, similarity
from cdsk._kernels.interface import NEGLIGIBLE_EDGE, Kernel, Similarity
from cdsk._kernels.neighbours import SCALE_NEIGHBOUR, nearest_among
from cdsk._linalg.banded import BandOrder
from cdsk._linalg.eigsh import largest_eigenvalue
from cdsk._linalg.multilevel import Multilevel
from cdsk._rows import SparseRows
from cdsk._runtime import check_memory

# Edges below this part of the median degree do not join the fringe to the rest. Groups
# of so many rows are none, as they have neighbours enough among themselves, nor is more
# than a quarter of all points. docs/notes/2026-11-17-large.md.
_WEAK = 1e-4
_LARGE_GROUP = 21
_LARGEST_FRINGE = 0.25

# Added to the Laplacian of a preconditioner, which is singular.
_SHIFT = 1e-8


class NeighbourGraph:
    """Pairs of neighbours and their squared distances, shared by all kernels of X.

    With ``masses`` m (n,), of median 1, its kernels are K_ij m_i m_j. Copies of a point
    do not take the places of its neighbours, and up to so many of them do not count for
    each other: those that do would outweigh all neighbours. Where there are more, the
    rest does, as a heap of copies is a cluster of its own.
    """

    def __init__(self, neighbours, masses=None):
        self.neighbours = neighbours
        self.masses = masses

    @cached_property
    def _squared(self):
        """Symmetric sparse matrix of squared distances, both directions of a pair."""
        one_way = self.neighbours.graph()
        nnz = one_way.nnz
        check_memory(50 * nnz, "The graph of neighbours", "Use fewer neighbours.")
        # merged by places, as a distance may be 0; the same one for both directions
        integer = np.int32 if 2 * nnz < 2**31 else np.int64
        parts = one_way.indices.astype(integer), one_way.indptr.astype(integer)
        places = np.arange(1, nnz + 1, dtype=integer)
        places = sparse.csr_array((places, *parts), shape=one_way.shape)
        both = places.maximum(places.T.tocsr())
        return _with_values(both, one_way.data[both.data - 1] ** 2)

    @cached_property
    def _order(self):
        return BandOrder(self._squared)

    def __getstate__(self):
        # the rest is made again where it is needed
        return {"neighbours": self.neighbours, "masses": self.masses}

    def kernel(self, bandwidth, n_threads):
        """The Gaussian kernel with one bandwidth, or one per point."""
        squared = self._squared
        b_i, b_j = _at_ends(squared, np.broadcast_to(bandwidth, squared.shape[0]))
        return self._kernel(np.exp(-squared.data / (2.0 * (b_i * b_j))), n_threads)

    def indicator(self, n_threads):
        """The kernel that is 1 for every pair of neighbours."""
        return self._kernel(np.ones(self._squared.nnz), n_threads)

    def _kernel(self, values, n_threads):
        matrix, masses = _with_values(self._squared, values), self.masses
        kernel = SparseKernel(matrix, self._order, n_threads, self, masses=masses)
        if masses is not None:
            k = self.neighbours.graph().nnz / kernel.n
            loops = masses * np.maximum(masses - 1.0 - k, 0.0)
            kernel.loops = loops if loops.any() else None
        return kernel

    def nearest_among(self, points, candidates, n_threads):
        """For each index in ``points`` the nearest one in ``candidates``.

        Nearly always one of its neighbours, else found by a search.
        """
        is_candidate = np.zeros(self._squared.shape[0], dtype=bool)
        is_candidate[candidates] = True
        own = self.neighbours.graph()[points].tocoo()
        kept = is_candidate[own.col]
        row, column, distance = own.row[kept], own.col[kept], own.data[kept]
        order = np.lexsort((column, distance, row))
        found, first = np.unique(row[order], return_index=True)
        nearest = np.full(len(points), -1, dtype=np.intp)
        nearest[found] = column[order][first]
        lost = nearest < 0
        if lost.any():
            X = self.neighbours.X
            nearest[lost] = nearest_among(X, points[lost], candidates, n_threads)
        return nearest


def _at_ends(pattern, values):
    """Values of the points i and j for every entry (i, j) of a sparse matrix."""
    return np.repeat(values, np.diff(pattern.indptr)), values[pattern.indices]


def _with_values(pattern, values):
    parts = values, pattern.indices, pattern.indptr
    return sparse.csr_array(parts, shape=pattern.shape)


def _product(matrix, vectors, n_threads):
    """A symmetric sparse matrix times each vector (m, n)."""
    block = np.ascontiguousarray(vectors.T)
    image = product(matrix.indptr, matrix.indices, matrix.data, block, n_threads)
    return np.ascontiguousarray(image.T)


class SparseKernel(Kernel):
    """A symmetric non-negative sparse K.

    ``matrix`` holds K without its diagonal, which is 1 or what makes K semi-definite;
    ``order`` is the ``BandOrder`` of its pattern, ``graph`` the
    ``NeighbourGraph`` that it was made of, if any. With ``masses`` m the kernel is
    K_ij m_i m_j.
    """

    # rows that each point stands for, None if it is one of them
    counts: np.ndarray | None = None

    def __init__(
        self,
        matrix,
        order,
        n_threads,
        graph=None,
        remedy="a larger bandwidth or n_neighbors",
        masses=None,
    ):
        if masses is not None:
            parts = matrix.indptr, matrix.indices, matrix.data
            matrix = _with_values(matrix, scaled(*parts, masses, n_threads))
        self.matrix = matrix
        self.masses = masses
        self.order = order
        self.graph = graph
        self.n = matrix.shape[0]
        self.n_threads = n_threads
        self.points = None if graph is None else graph.neighbours.X
        self.remedy = remedy

    @cached_property
    def diagonal(self):
        """K_ii: 1, or the least number that makes K positive semi-definite."""
        bound = float(self.row_sums.max())
        # The same for all points, whatever their masses: the search for a pair is then
        # as quick as it can be. Row sums of at most 1 mean diagonal dominance.
        if bound > 1.0:
            raised = largest_eigenvalue(
                lambda vectors: -self.product(vectors), bound, self.n, self.n_threads
            )
            return np.full(self.n, max(1.0, raised))
        return np.ones(self.n)

    @property
    def of_copies(self):
        return np.ones(self.n) if self.masses is None else self.masses**2

    def product(self, vectors):
        return _product(self.matrix, vectors, self.n_threads)

    def rows(self):
        return SparseRows(
            self.matrix.indptr, self.matrix.indices, self.matrix.data, self.diagonal
        )

    def neighbourhood(self):
        return self if self.graph is None else self.graph.indicator(self.n_threads)

    def weight_rows(self, vectors, scale):
        check_memory(
            8 * (self.matrix.nnz + vectors.size),
            "The matrix of the weight step",
            "Use fewer points or neighbours.",
        )
        return self.rows().hadamard(vectors, scale, self.n_threads)

    def as_array(self):
        check_memory(8 * self.n**2, "The kernel as a full matrix", "Use fewer points.")
        K = self.matrix.toarray()
        np.fill_diagonal(K, self.diagonal)
        return K

    def similarity(self, weights, penalty):
        return SparseSimilarity(self, weights, penalty)

    def restricted_to(self, kept):
        """K without the edges of the points that are not ``kept``."""
        K = self.matrix
        kept = kept.astype(np.float64)
        values = scaled(K.indptr, K.indices, K.data, kept, self.n_threads)
        matrix = _with_values(K, values)
        rest = SparseKernel(matrix, self.order, self.n_threads, self.graph, self.remedy)
        rest.masses = self.masses
        rest.loops = None if self.loops is None else self.loops * kept
        return rest

    @property
    def with_loops(self):
        """K with its loops on the diagonal, and the ``BandOrder`` of that."""
        if self.loops is None:
            return self.matrix, self.order
        matrix = (self.matrix + sparse.diags_array(self.loops)).tocsr()
        matrix.sort_indices()
        return matrix, BandOrder(matrix)


class SparseSimilarity(Similarity):
    """S of a ``SparseKernel``, a sparse matrix.

    Besides products it offers solves with a shifted matrix: where eigenvalues crowd at
    1, as in narrow kernels on data of few dimensions, products alone need thousands of
    passes, a factorisation a handful of solves. Where that would be too large there is
    an approximate inverse.
    """

    is_sparse = True

    def __init__(self, kernel, weights, penalty):
        self.n = kernel.n
        self.n_threads = kernel.n_threads
        self.remedy = kernel.remedy
        self._kernel = self._whole = kernel
        self._weights = weights
        self._penalty = penalty
        K, self._order = kernel.with_loops
        graph = K.indptr, K.indices
        values = similarity(*graph, K.data, weights, penalty, self.n_threads)
        self._matrix = _with_values(K, values)
        self._set_degrees(_product(self._matrix, np.ones((1, self.n)), 1)[0])
        values = scaled(*graph, values, self._inverse_root, self.n_threads)
        self._normalised = _with_values(K, values)

    def normalised_product(self, vectors):
        return _product(self._normalised, vectors, self.n_threads)

    def components(self):
        return self._joined_above(NEGLIGIBLE_EDGE * self.degrees)

    def without_fringe(self, fewest):
        if fewest <= 1:
            return self
        weak = _WEAK * np.median(self.degrees)
        masses = self._kernel.masses

        def is_small(label):
            light = np.bincount(label, masses) < fewest
            few = np.bincount(label, self._kernel.counts) < _LARGE_GROUP
            return light & (few | (np.bincount(label) <= SCALE_NEIGHBOUR))

        _, group = self._joined_above(np.full(self.n, weak))
        fringe = is_small(group)[group] & ~self.isolated
        # a cluster of weak edges alone is one, if it is large enough
        count, component = self.components()
        has_more = np.zeros(count, dtype=bool)
        has_more[component[~fringe]] = True
        fringe &= (has_more | is_small(component))[component]
        if not 0 < np.count_nonzero(fringe) <= _LARGEST_FRINGE * self.n:
            return self
        rest = self._kernel.restricted_to(~fringe)
        rest = SparseSimilarity(rest, self._weights, self._penalty)
        rest._whole = self._whole  # the fringe has neighbours there
        return rest

    def _joined_above(self, bounds):
        S = self._matrix
        return components(S.indptr, S.indices, S.data, bounds)

    def nearest(self, points, candidates):
        kernel = self._whole
        if kernel.points is None:
            return self._most_similar(points, candidates)
        return kernel.graph.nearest_among(points, candidates, self.n_threads)

    def _most_similar(self, points, candidates):
        """By the kernel alone; without any similarity the one with the most of it."""
        rows = self._whole.matrix[points][:, candidates].tocsr()
        found = np.full(len(points), np.argmax(self.degrees[candidates]))
        some = rows.max(axis=1).toarray().ravel() > 0
        if some.any():
            found[some] = np.ravel(rows[some].argmax(axis=1))
        return candidates[found]

    @property
    def cost_of_inverse(self):
        return self._order.cost_in_products if self._order.is_cheap else None

    def inverse(self, shift):
        return self._order.factorise(1.0 + shift, -self._normalised.data)

    def preconditioner(self):
        return Multilevel(self._normalised, self.degrees, _SHIFT, self.n_threads)
