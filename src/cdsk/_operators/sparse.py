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

from dataclasses import dataclass
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
    MIN_DEGREE,
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


@dataclass(frozen=True, eq=False)
class NeighborGraph:
    """Pairs of neighbors and their squared distances, shared by all kernels of X.

    With ``multiplicity`` m (n,), of median 1, its kernels are K_ij m_i m_j. Copies of a
    point are not among its k neighbors, and up to k of them have no self-loops, which
    would outweigh all neighbors. Further copies have: many equal points are a cluster.
    """

    neighbors: Neighbors | PrecomputedNeighbors
    multiplicity: Array | None = None

    @cached_property
    def squared_distances(self) -> sparse.csr_array:
        """Symmetric sparse matrix of squared distances, both directions of a pair."""
        directed = self.neighbors.kneighbors_graph()
        nnz, shape = directed.nnz, directed.shape
        check_memory(50 * nnz, "The graph of neighbors", "Use fewer neighbors.")
        # merged by entry numbers: a distance may be 0, and both directions get the same
        integer = np.int32 if 2 * nnz < 2**31 else np.int64
        numbers = np.arange(1, nnz + 1, dtype=integer)
        indices, indptr = directed.indices.astype(integer), directed.indptr
        numbered = sparse.csr_array((numbers, indices, indptr.astype(integer)), shape)
        merged = numbered.maximum(numbered.T.tocsr())
        squared = directed.data[merged.data - 1] ** 2
        return sparse.csr_array((squared, merged.indices, merged.indptr), shape)

    @cached_property
    def ordering(self) -> BandedOrdering:
        """Ordering of the pattern for factorizations, computed if one is needed."""
        return BandedOrdering(self.squared_distances)

    def __getstate__(self) -> dict[str, Any]:
        return {"neighbors": self.neighbors, "multiplicity": self.multiplicity}

    def kernel(self, bandwidth: float | Array, n_threads: int) -> "SparseKernel":
        """Return the Gaussian kernel with one bandwidth, or one per point.

        With an infinite one it is 1 for every pair of neighbors.
        """
        squared, m, loops = self.squared_distances, self.multiplicity, None
        indices, indptr = squared.indices, squared.indptr
        b = np.broadcast_to(bandwidth, squared.shape[0])
        b_i, b_j = np.repeat(b, np.diff(indptr)), b[indices]
        values = np.exp(-squared.data / (2.0 * (b_i * b_j)))
        if m is not None:
            values = scale_entries(indptr, indices, values, m, n_threads)
            k = self.neighbors.kneighbors_graph().nnz / len(m)
            loops = m * np.maximum(m - 1.0 - k, 0.0)
            loops = loops if loops.any() else None
        matrix = sparse.csr_array((values, indices, indptr), squared.shape)
        return SparseKernel(
            matrix, n_threads, graph=self, multiplicity=m, self_loops=loops
        )

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


@dataclass(eq=False)
class SparseKernel(Kernel):
    """A symmetric non-negative sparse K.

    ``matrix`` holds K, scaled by ``multiplicity``, without its diagonal, which is 1 or
    what makes K semi-definite; ``graph`` is the ``NeighborGraph`` that it was computed
    from, if any.
    """

    matrix: sparse.csr_array
    n_threads: int
    graph: NeighborGraph | None = None
    hint: str = "Increase `bandwidth` or `n_neighbors`"
    multiplicity: Array | None = None
    self_loops: Array | None = None
    # Number of rows that each point stands for (n,); None: one.
    counts: Array | None = None

    def __post_init__(self) -> None:
        self.n = self.matrix.shape[0]
        self.points = None if self.graph is None else self.graph.neighbors.X

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
        if multiplicity is not None:
            entries = matrix.indptr, matrix.indices, matrix.data
            matrix.data = scale_entries(*entries, multiplicity, n_threads)
        return cls(matrix, n_threads, hint=hint, multiplicity=multiplicity)

    @cached_property
    def ordering(self) -> BandedOrdering:
        """Ordering of the pattern for factorizations, if there are no self-loops."""
        graph = self.graph
        return BandedOrdering(self.matrix) if graph is None else graph.ordering

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
    def duplicate_similarity(self) -> Array:
        return np.ones(self.n) if self.multiplicity is None else self.multiplicity**2

    def product(self, vectors: Array) -> Array:
        return multiply(self.matrix, vectors, self.n_threads)

    absolute_product = product

    def row(self, i: int) -> Array:
        K = self.matrix
        return SparseRows(K.indptr, K.indices, K.data, self.diagonal).row_array(i)

    def weight_rows(self, vectors: Array, scale: float) -> SparseRows:
        K = self.matrix
        rows = SparseRows(K.indptr, K.indices, K.data, self.diagonal)
        return rows.hadamard(vectors, scale, self.n_threads)

    def as_array(self) -> Array:
        check_memory(8 * self.n**2, "The kernel as a full matrix", "Use fewer points.")
        K: Array = self.matrix.toarray()
        np.fill_diagonal(K, self.diagonal)
        return K

    def neighborhood(self) -> Kernel:
        return self if self.graph is None else self.graph.kernel(np.inf, self.n_threads)

    def similarity(
        self,
        weights: Array,
        penalty: float,
        is_kept: NDArray[np.bool_] | None = None,
    ) -> "SparseSimilarity":
        """Return the similarity; points that are not kept lose their edges."""
        K, loops, n_threads = self.matrix, self.self_loops, self.n_threads
        if is_kept is not None:
            mask = is_kept.astype(np.float64)
            values = scale_entries(K.indptr, K.indices, K.data, mask, n_threads)
            K = sparse.csr_array((values, K.indices, K.indptr), K.shape)
            loops = None if loops is None else loops * mask
        if loops is not None:
            K = (K + sparse.diags_array(loops)).tocsr()
            K.sort_indices()
        indptr, indices = K.indptr, K.indices
        values = similarity(indptr, indices, K.data, weights, penalty, n_threads)
        S = sparse.csr_array((values, indices, indptr), K.shape)
        degrees = multiply(S, np.ones((1, self.n)), 1)[0]
        isolated = degrees < MIN_DEGREE
        root = 1.0 / np.sqrt(np.maximum(degrees, MIN_DEGREE))
        root[isolated] = 0.0
        values = scale_entries(indptr, indices, values, root, n_threads)
        return SparseSimilarity(
            kernel=self,
            weights=weights,
            penalty=penalty,
            is_kept=is_kept,
            matrix=S,
            normalized=sparse.csr_array((values, indices, indptr), K.shape),
            degrees=degrees,
            isolated=isolated,
        )


@dataclass(eq=False)
class SparseSimilarity(Similarity):
    """S of a ``SparseKernel``, a sparse matrix, and D^-1/2 S D^-1/2.

    Besides products it offers solves with a shifted matrix: where eigenvalues crowd at
    1, as in narrow kernels on data of few dimensions, products alone need thousands of
    passes, a factorization a handful of solves. Where that would be too large there is
    an approximate inverse.
    """

    kernel: SparseKernel
    weights: Array
    penalty: float
    is_kept: NDArray[np.bool_] | None
    matrix: sparse.csr_array
    normalized: sparse.csr_array
    degrees: Array
    isolated: NDArray[np.bool_]
    is_sparse = True

    @cached_property
    def _ordering(self) -> BandedOrdering:
        if self.kernel.self_loops is None:
            return self.kernel.ordering
        return BandedOrdering(self.matrix)

    def normalized_product(self, vectors: Array) -> Array:
        return multiply(self.normalized, vectors, self.kernel.n_threads)

    def components(self) -> tuple[int, NDArray[np.intc]]:
        S, bounds = self.matrix, NEGLIGIBLE_EDGE * self.degrees
        return components(S.indptr, S.indices, S.data, bounds)

    def without_weak_components(self, min_mass: float) -> "SparseSimilarity":
        if min_mass <= 1:
            return self
        kernel, S = self.kernel, self.matrix

        def is_small(label: NDArray[np.intc]) -> NDArray[np.bool_]:
            has_few_rows = np.bincount(label, kernel.counts) < _LARGE_GROUP
            has_few_rows |= np.bincount(label) <= SCALE_NEIGHBOR
            return has_few_rows & (np.bincount(label, kernel.multiplicity) < min_mass)

        bounds = np.full(kernel.n, _WEAK_EDGE * np.median(self.degrees))
        _, group = components(S.indptr, S.indices, S.data, bounds)
        is_weak = is_small(group)[group] & ~self.isolated
        # a large component of weak edges alone is a cluster
        count, component = self.components()
        has_others = np.zeros(count, dtype=bool)
        has_others[component[~is_weak]] = True
        is_weak &= (has_others | is_small(component))[component]
        if not 0 < np.count_nonzero(is_weak) <= _MAX_WEAK_SHARE * kernel.n:
            return self
        is_kept = ~is_weak if self.is_kept is None else self.is_kept & ~is_weak
        return kernel.similarity(self.weights, self.penalty, is_kept)

    def find_nearest(self, points: Indices, candidates: Indices) -> Indices:
        kernel = self.kernel
        if kernel.graph is not None and kernel.points is not None:
            return kernel.graph.find_nearest(points, candidates, kernel.n_threads)
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
        return self._ordering.factorize(1.0 + shift, -self.normalized.data)

    def preconditioner(self) -> Product:
        shift = _PRECONDITIONER_SHIFT
        return Multilevel(self.normalized, self.degrees, shift, self.kernel.n_threads)
