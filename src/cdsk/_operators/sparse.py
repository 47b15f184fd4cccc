# SPDX-License-Identifier: BSD-3-Clause
"""Gaussian kernels truncated to nearest neighbors, as sparse matrices.

    K_ij = exp(-|x_i - x_j|^2 / (2 b_i b_j))   if j is one of the k nearest neighbors
                                               of i or i one of j, else 0

A narrow kernel vanishes beyond a few neighbors anyway; a wide one would let many far
points outvote the few near ones. The neighbors are searched once for all bandwidths.
Memory is O(nk), and a product with m vectors costs O(nkm).

Truncation can make K indefinite. The diagonal is then raised until it is not: K_ii is
the similarity of a point to itself, which the spectral step leaves out, so only the
regularizer of the weight step depends on it.
"""

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cdsk._eigensolvers import largest_eigenvalue
from cdsk._graph import components, multiply, scale_entries, similarity
from cdsk._multilevel import BandedOrdering, Multilevel
from cdsk._neighbors import (
    SCALE_NEIGHBOR,
    Neighbors,
    PrecomputedNeighbors,
    find_nearest,
    is_diagonal,
    select_entries,
)
from cdsk._operators.base import (
    NEGLIGIBLE_EDGE,
    Array,
    Indices,
    Kernel,
    Product,
    Similarity,
)
from cdsk._rows import SparseRows
from cdsk._utils import check_memory
from cdsk._validation import check_kernel_values, check_symmetric_sparse

# Edges below this fraction of the median degree are weak. Groups of at least this many
# rows are kept, as they have neighbors enough among themselves; so are all groups if
# more than this share of the points is weak. docs/notes/2026-11-17-large.md.
_WEAK_EDGE = 1e-4
_LARGE_GROUP = 21
_MAX_WEAK_SHARE = 0.25

# Added to the singular Laplacian of a preconditioner.
_PRECONDITIONER_SHIFT = 1e-8


class NeighborGraph:
    """Pairs of neighbors and their squared distances, shared by all kernels of X.

    With ``multiplicity`` m (n,), of median 1, its kernels are K_ij m_i m_j. Copies of a
    point are not among its k neighbors, and up to k of them have no self-loops, which
    would outweigh all neighbors. Further copies have: many equal points are a cluster.
    """

    def __init__(
        self,
        neighbors: Neighbors | PrecomputedNeighbors,
        multiplicity: Array | None = None,
    ) -> None:
        self.neighbors = neighbors
        self.multiplicity = multiplicity

    @cached_property
    def squared_distances(self) -> sparse.csr_array:
        """Symmetric sparse matrix of squared distances, both directions of a pair."""
        directed = self.neighbors.kneighbors_graph()
        nnz = directed.nnz
        check_memory(50 * nnz, "The graph of neighbors", "Use fewer neighbors.")
        # merged by entry numbers: a distance may be 0, and both directions get the same
        integer = np.int32 if 2 * nnz < 2**31 else np.int64
        numbers = np.arange(1, nnz + 1, dtype=integer)
        parts = directed.indices.astype(integer), directed.indptr.astype(integer)
        numbered = sparse.csr_array((numbers, *parts), shape=directed.shape)
        merged = numbered.maximum(numbered.T.tocsr())
        return _with_values(merged, directed.data[merged.data - 1] ** 2)

    @cached_property
    def ordering(self) -> BandedOrdering:
        """Ordering of the pattern for factorizations, computed if one is needed."""
        return BandedOrdering(self.squared_distances)

    def __getstate__(self) -> dict[str, Any]:
        return {"neighbors": self.neighbors, "multiplicity": self.multiplicity}

    def kernel(self, bandwidth: float | Array, n_threads: int) -> "SparseKernel":
        """Return the Gaussian kernel with one bandwidth, or one per point."""
        squared = self.squared_distances
        b = np.broadcast_to(bandwidth, squared.shape[0])
        b_i, b_j = np.repeat(b, np.diff(squared.indptr)), b[squared.indices]
        return self._kernel(np.exp(-squared.data / (2.0 * (b_i * b_j))), n_threads)

    def indicator(self, n_threads: int) -> "SparseKernel":
        """Return the kernel that is 1 for every pair of neighbors."""
        return self._kernel(np.ones(self.squared_distances.nnz), n_threads)

    def _kernel(self, values: Array, n_threads: int) -> "SparseKernel":
        multiplicity = self.multiplicity
        kernel = SparseKernel(
            _with_values(self.squared_distances, values),
            n_threads,
            graph=self,
            ordering=lambda: self.ordering,
            multiplicity=multiplicity,
        )
        if multiplicity is not None:
            k = self.neighbors.kneighbors_graph().nnz / kernel.n
            loops = multiplicity * np.maximum(multiplicity - 1.0 - k, 0.0)
            kernel.self_loops = loops if loops.any() else None
        return kernel

    def find_nearest(
        self, points: Indices, candidates: Indices, n_threads: int
    ) -> Indices:
        """Return for each index in ``points`` the nearest one in ``candidates``.

        Nearly always one of its neighbors, else found by a search.
        """
        is_candidate = np.zeros(self.squared_distances.shape[0], dtype=bool)
        is_candidate[candidates] = True
        graph = self.neighbors.kneighbors_graph()[points].tocoo()
        mask = is_candidate[graph.col]
        row, column, distance = graph.row[mask], graph.col[mask], graph.data[mask]
        order = np.lexsort((column, distance, row))
        rows, first = np.unique(row[order], return_index=True)
        nearest = np.full(len(points), -1, dtype=np.intp)
        nearest[rows] = column[order][first]
        missing = nearest < 0
        if missing.any():
            X = self.neighbors.X
            nearest[missing] = find_nearest(X, points[missing], candidates, n_threads)
        return nearest


def _with_values(pattern: sparse.csr_array, values: Array) -> sparse.csr_array:
    parts = values, pattern.indices, pattern.indptr
    return sparse.csr_array(parts, shape=pattern.shape)


class SparseKernel(Kernel):
    """A symmetric non-negative sparse K.

    ``matrix`` holds K without its diagonal, which is 1 or what makes K semi-definite;
    ``graph`` is the ``NeighborGraph`` that it was computed from, if any. ``ordering()``
    returns the ``BandedOrdering`` of the pattern, if it is shared. With
    ``multiplicity`` m the kernel is K_ij m_i m_j.
    """

    # Number of rows that each point stands for (n,); None: one.
    counts: Array | None = None

    def __init__(
        self,
        matrix: sparse.csr_array,
        n_threads: int,
        *,
        graph: NeighborGraph | None = None,
        ordering: Callable[[], BandedOrdering] | None = None,
        hint: str = "Increase `bandwidth` or `n_neighbors`",
        multiplicity: Array | None = None,
    ) -> None:
        if multiplicity is not None:
            parts = matrix.indptr, matrix.indices, matrix.data
            matrix = _with_values(
                matrix, scale_entries(*parts, multiplicity, n_threads)
            )
        self.matrix = matrix
        self.multiplicity = multiplicity
        self.graph = graph
        self._shared_ordering = ordering
        self.n = matrix.shape[0]
        self.n_threads = n_threads
        self.points = None if graph is None else graph.neighbors.X
        self.hint = hint

    @classmethod
    def from_similarities(
        cls,
        matrix: Any,
        name: str,
        hint: str,
        n_threads: int,
        multiplicity: Array | None = None,
    ) -> "SparseKernel":
        """Return the kernel of a sparse matrix of similarities, which is checked.

        As in neighbor graphs, the largest similarity becomes 1, and the diagonal is
        what makes K semi-definite, whatever that of the matrix is.
        """
        check_memory(
            60 * matrix.nnz, "A fit of these similarities", "Use fewer of them."
        )
        matrix = check_symmetric_sparse(matrix, name)
        check_kernel_values(matrix, name)
        matrix = select_entries(matrix, ~is_diagonal(matrix) & (matrix.data > 0))
        # exactly symmetric
        matrix = (0.5 * matrix + 0.5 * matrix.T).tocsr()
        matrix.data /= matrix.data.max(initial=np.finfo(float).tiny)
        return cls(matrix, n_threads, hint=hint, multiplicity=multiplicity)

    @cached_property
    def ordering(self) -> BandedOrdering:
        """Ordering of the pattern for factorizations, computed if one is needed."""
        if self._shared_ordering is None:
            return BandedOrdering(self.matrix)
        return self._shared_ordering()

    @cached_property
    def row_sums(self) -> Array:
        return self.product(np.ones((1, self.n))).ravel()

    @cached_property
    def diagonal(self) -> Array:
        # Row sums of at most 1 mean diagonal dominance. The same value for all points,
        # whatever their multiplicity, makes the search for pairs as fast as it can be.
        bound = float(self.row_sums.max())
        if bound <= 1.0:
            return np.ones(self.n)
        negated = partial(multiply, -self.matrix, n_threads=self.n_threads)
        raised = largest_eigenvalue(negated, bound, self.n, self.n_threads)
        return np.full(self.n, max(1.0, raised))

    @property
    def absolute_diagonal(self) -> Array:
        return self.diagonal

    @property
    def duplicate_similarity(self) -> Array:
        return np.ones(self.n) if self.multiplicity is None else self.multiplicity**2

    def product(self, vectors: Array) -> Array:
        return multiply(self.matrix, vectors, self.n_threads)

    absolute_product = product

    def _rows(self) -> SparseRows:
        K = self.matrix
        return SparseRows(K.indptr, K.indices, K.data, self.diagonal)

    def row(self, i: int) -> Array:
        return self._rows().row_array(i)

    def weight_rows(self, vectors: Array, scale: float) -> SparseRows:
        return self._rows().hadamard(vectors, scale, self.n_threads)

    def as_array(self) -> Array:
        check_memory(8 * self.n**2, "The kernel as a full matrix", "Use fewer points.")
        K: Array = self.matrix.toarray()
        np.fill_diagonal(K, self.diagonal)
        return K

    def neighborhood(self) -> Kernel:
        return self if self.graph is None else self.graph.indicator(self.n_threads)

    def similarity(self, weights: Array, penalty: float) -> "SparseSimilarity":
        return SparseSimilarity(self, weights, penalty)

    def mask_points(self, is_kept: NDArray[np.bool_]) -> "SparseKernel":
        """Return K without the edges of the points that are not kept."""
        K, mask = self.matrix, is_kept.astype(np.float64)
        masked = SparseKernel(
            _with_values(
                K, scale_entries(K.indptr, K.indices, K.data, mask, self.n_threads)
            ),
            self.n_threads,
            graph=self.graph,
            ordering=lambda: self.ordering,
            hint=self.hint,
        )
        masked.multiplicity = self.multiplicity
        masked.self_loops = None if self.self_loops is None else self.self_loops * mask
        return masked


class SparseSimilarity(Similarity):
    """S of a ``SparseKernel``, a sparse matrix.

    Besides products it offers solves with a shifted matrix: where eigenvalues crowd at
    1, as in narrow kernels on data of few dimensions, products alone need thousands of
    passes, a factorization a handful of solves. Where that would be too large there is
    an approximate inverse. ``full_kernel`` is the kernel before points were masked.
    """

    is_sparse = True

    def __init__(
        self,
        kernel: SparseKernel,
        weights: Array,
        penalty: float,
        full_kernel: SparseKernel | None = None,
    ) -> None:
        self.n = kernel.n
        self.n_threads = kernel.n_threads
        self.hint = kernel.hint
        self._kernel = kernel
        self._full_kernel = full_kernel or kernel
        self._weights = weights
        self._penalty = penalty
        K = kernel.matrix
        if kernel.self_loops is not None:
            K = (K + sparse.diags_array(kernel.self_loops)).tocsr()
            K.sort_indices()
        pattern = K.indptr, K.indices
        values = similarity(*pattern, K.data, weights, penalty, self.n_threads)
        self._matrix = _with_values(K, values)
        self._set_degrees(multiply(self._matrix, np.ones((1, self.n)), 1)[0])
        values = scale_entries(*pattern, values, self._inverse_root, self.n_threads)
        self._normalized = _with_values(K, values)

    @cached_property
    def _ordering(self) -> BandedOrdering:
        if self._kernel.self_loops is None:
            return self._kernel.ordering
        return BandedOrdering(self._matrix)

    def normalized_product(self, vectors: Array) -> Array:
        return multiply(self._normalized, vectors, self.n_threads)

    def components(self) -> tuple[int, NDArray[np.intc]]:
        return self._components_above(NEGLIGIBLE_EDGE * self.degrees)

    def _components_above(self, bounds: Array) -> tuple[int, NDArray[np.intc]]:
        S = self._matrix
        return components(S.indptr, S.indices, S.data, bounds)

    def without_weak_components(self, min_mass: float) -> "SparseSimilarity":
        if min_mass <= 1:
            return self
        kernel = self._kernel

        def is_small(label: NDArray[np.intc]) -> NDArray[np.bool_]:
            has_few_rows = np.bincount(label, kernel.counts) < _LARGE_GROUP
            has_few_rows |= np.bincount(label) <= SCALE_NEIGHBOR
            return has_few_rows & (np.bincount(label, kernel.multiplicity) < min_mass)

        threshold = _WEAK_EDGE * np.median(self.degrees)
        _, group = self._components_above(np.full(self.n, threshold))
        is_weak = is_small(group)[group] & ~self.isolated
        # a large component of weak edges alone is a cluster
        count, component = self.components()
        has_others = np.zeros(count, dtype=bool)
        has_others[component[~is_weak]] = True
        is_weak &= (has_others | is_small(component))[component]
        if not 0 < np.count_nonzero(is_weak) <= _MAX_WEAK_SHARE * self.n:
            return self
        masked = kernel.mask_points(~is_weak)
        return SparseSimilarity(masked, self._weights, self._penalty, self._full_kernel)

    def find_nearest(self, points: Indices, candidates: Indices) -> Indices:
        kernel = self._full_kernel
        if kernel.graph is not None and kernel.points is not None:
            return kernel.graph.find_nearest(points, candidates, self.n_threads)
        # by similarity; without any, the candidate of the largest degree
        rows = kernel.matrix[points][:, candidates].tocsr()
        nearest = np.full(len(points), np.argmax(self.degrees[candidates]))
        has_similarity = rows.max(axis=1).toarray().ravel() > 0
        if has_similarity.any():
            nearest[has_similarity] = np.ravel(rows[has_similarity].argmax(axis=1))
        return candidates[nearest]

    @property
    def factorization_cost(self) -> int | None:
        return self._ordering.cost_in_products if self._ordering.is_cheap else None

    def factorize(self, shift: float) -> Product:
        return self._ordering.factorize(1.0 + shift, -self._normalized.data)

    def preconditioner(self) -> Product:
        return Multilevel(
            self._normalized, self.degrees, _PRECONDITIONER_SHIFT, self.n_threads
        )
