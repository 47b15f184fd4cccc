# SPDX-License-Identifier: BSD-3-Clause
"""Gaussian kernels truncated to nearest neighbours, as sparse matrices.

    K_ij = exp(-|x_i - x_j|^2 / (2 b_i b_j))   if j is one of the k nearest neighbours
                                               of i or i one of j, else 0

A narrow kernel vanishes beyond a few neighbours anyway; a wide one would let many far
points outvote the few near ones. The neighbours are searched once for all bandwidths.
Nothing here is n x n: memory is O(nk), a product with m columns costs O(nkm).

Truncation can make K indefinite. The diagonal is then raised until it is not: K_ii is
the similarity of a point to itself, which the spectral step leaves out, so only the
regulariser of the weight step sees it.
"""

from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

from cdsk._kernels.indefinite import NegativePart
from cdsk._kernels.neighbours import nearest_among
from cdsk._kernels.similarity import SMALLEST_DEGREE
from cdsk._rows import SparseRows
from cdsk._runtime import check_memory, one_blas_thread
from cdsk._steps.block_lanczos import GUARDS, leading_eigenpairs

# The smallest eigenvalue is found to this accuracy, and the diagonal raised by as much
# more.
_EIGENVALUE_TOLERANCE = 1e-3
_MAX_BLOCK_PRODUCTS = 200

# Points and features up to which a similarity is factorised at once. Measured, 20
# neighbours: 1000 points of 768 features 0.05 s, 4000 of 50 features 6 s against 0.4 s
# by products; 20 000 points of 2 features 1 s against more than 40 s by products.
SMALL, FEW_FEATURES = 1000, 5


class NeighbourGraph:
    """Pairs of neighbours and their squared distances, shared by all kernels of X."""

    def __init__(self, neighbours):
        n, k = neighbours.indices.shape
        i = np.repeat(np.arange(n), k)
        j = neighbours.indices.ravel()
        # both directions of every pair; the same pair may come twice
        keys = np.concatenate([i * n + j, j * n + i])
        key, first = np.unique(keys, return_index=True)
        self.i, self.j = key // n, key % n
        self.squared = np.tile(neighbours.distances.ravel() ** 2, 2)[first]
        self.neighbours = neighbours

    def kernel(self, bandwidth, n_threads):
        """The Gaussian kernel with one bandwidth, or one per point."""
        bandwidth = np.broadcast_to(bandwidth, len(self.neighbours.X))
        exponent = self.squared / (2.0 * bandwidth[self.i] * bandwidth[self.j])
        return self._kernel(np.exp(-exponent), n_threads)

    def indicator(self, n_threads):
        """The kernel that is 1 for every pair of neighbours."""
        return self._kernel(np.ones(len(self.i)), n_threads)

    def _kernel(self, values, n_threads):
        n = len(self.neighbours.X)
        matrix = sparse.csr_array((values, (self.i, self.j)), shape=(n, n))
        return SparseKernel(matrix, n_threads, self.neighbours)


class SparseKernel:
    """A symmetric non-negative sparse K; the interface is that of ``DenseKernel``.

    ``matrix`` holds K without its diagonal, which is 1 or what makes K semi-definite.
    """

    def __init__(self, matrix, n_threads, neighbours):
        self.matrix = matrix
        self.n = matrix.shape[0]
        self.n_threads = n_threads
        self.neighbours = neighbours
        # none: the diagonal makes K semi-definite
        self.negative = NegativePart.none(self.n)

    @property
    def points(self):
        """The data K was made from."""
        return self.neighbours.X

    @cached_property
    def diagonal(self):
        """K_ii: 1, or the least number that makes K positive semi-definite."""
        value = 1.0
        # row sums of at most 1 mean diagonal dominance
        if self.row_sums.max() > 1.0:
            value = max(1.0, -self._smallest_eigenvalue())
        return np.full(self.n, value)

    def _smallest_eigenvalue(self):
        """Smallest eigenvalue of K without its diagonal, or a little less."""
        start = np.random.RandomState(0).standard_normal((1 + GUARDS, self.n))
        scale = self.row_sums.max()
        found = leading_eigenpairs(
            lambda rows: -self.product(rows) / scale,
            start,
            1,
            known=start[:0],
            tol=_EIGENVALUE_TOLERANCE,
            max_steps=_MAX_BLOCK_PRODUCTS,
            n_threads=self.n_threads,
        )
        # a residual bounds the distance to some eigenvalue, not to the smallest
        error = max(found.residuals[0], _EIGENVALUE_TOLERANCE)
        return -scale * (found.values[0] + error)

    @cached_property
    def row_sums(self):
        """Sums of the rows without their diagonal entries."""
        return self.product(np.ones((1, self.n)))[0]

    def product(self, columns):
        """(K - diag K) times each row of ``columns`` (m, n)."""
        return np.ascontiguousarray((self.matrix @ columns.T).T)

    def rows(self):
        """Compiled access to the rows, diagonal entries included."""
        return SparseRows(
            self.matrix.indptr.astype(np.intp, copy=False),
            self.matrix.indices.astype(np.intp, copy=False),
            self.matrix.data,
            self.diagonal,
        )

    def as_array(self):
        """K as an n x n array."""
        check_memory(8 * self.n**2, "The kernel as a full matrix", "Use fewer points.")
        return self.matrix.toarray() + np.diag(self.diagonal)

    def row(self, i):
        """Row i, diagonal entry included."""
        return self.rows().row_array(i)

    def similarity(self, weights, lam):
        """The discriminative similarity for some weights; ``lam`` is the paper's."""
        return SparseSimilarity(self, weights, lam)

    def nearest(self, points, candidates):
        """For each index in ``points`` the nearest index in ``candidates``."""
        return nearest_among(self.points, points, candidates, self.n_threads)


class SparseSimilarity:
    """S as a sparse matrix; the interface is that of ``Similarity``.

    Besides products it offers solves with a shifted matrix: where eigenvalues crowd at
    1, as in narrow kernels on data of few dimensions, products alone need thousands of
    passes, a factorisation a handful of solves.
    """

    n_clipped = 0
    can_be_factorised = True

    def __init__(self, kernel, weights, lam):
        self.kernel = kernel
        self.n = kernel.n
        K = kernel.matrix
        a_i = np.repeat(weights, np.diff(K.indptr))
        a_j = weights[K.indices]
        # >= 0 for weights up to 1 / lam, but for rounding
        values = 2.0 * np.maximum(a_i + a_j - lam * (a_i * a_j), 0.0) * K.data
        self._matrix = sparse.csr_array((values, K.indices, K.indptr), shape=K.shape)
        self.degrees = self._matrix @ np.ones(self.n)
        self.isolated = self.degrees < SMALLEST_DEGREE
        root = 1.0 / np.sqrt(np.maximum(self.degrees, SMALLEST_DEGREE))
        scale = sparse.diags_array(np.where(self.isolated, 0.0, root))
        self._normalised = (scale @ self._matrix @ scale).tocsr()

    def normalised_product(self, columns):
        """D^-1/2 S D^-1/2 times each row of ``columns`` (m, n)."""
        return np.ascontiguousarray((self._normalised @ columns.T).T)

    def components(self, negligible):
        """Number and labels of the components, edges that matter to no end left out."""
        edges = self._matrix.tocoo()
        smaller = np.minimum(self.degrees[edges.row], self.degrees[edges.col])
        kept = edges.data > negligible * smaller
        graph = sparse.coo_array(
            (edges.data[kept], (edges.row[kept], edges.col[kept])), shape=edges.shape
        )
        return connected_components(graph, directed=False)

    @property
    def has_sparse_factors(self):
        """Whether a factorisation is known to be cheap.

        Neighbour graphs of points in a plane or in space have sparse factors; those in
        many dimensions fill up, but there products converge quickly.
        """
        return self.n <= SMALL or self.kernel.neighbours.X.shape[1] <= FEW_FEATURES

    def inverse(self, shift):
        """The function that applies ((1 + shift) I - D^-1/2 S D^-1/2)^-1 to rows."""
        matrix = (1.0 + shift) * sparse.eye_array(self.n) - self._normalised
        # positive definite: diagonal pivots, and an ordering of the symmetric pattern
        with one_blas_thread():
            factors = splu(
                matrix.tocsc(),
                permc_spec="MMD_AT_PLUS_A",
                diag_pivot_thresh=0.0,
                options={"SymmetricMode": True},
            )

        def solve(rows):
            columns = np.ascontiguousarray(rows.T)
            with one_blas_thread():
                return np.ascontiguousarray(factors.solve(columns).T)

        return solve
