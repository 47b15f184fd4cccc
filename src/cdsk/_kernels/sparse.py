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
from scipy.sparse.csgraph import connected_components

from cdsk._kernels.interface import NEGLIGIBLE_EDGE, Kernel, Similarity
from cdsk._kernels.neighbours import nearest_among
from cdsk._linalg.banded import BandOrder
from cdsk._linalg.eigsh import largest_eigenvalue
from cdsk._rows import SparseRows
from cdsk._runtime import check_memory


class NeighbourGraph:
    """Pairs of neighbours and their squared distances, shared by all kernels of X."""

    def __init__(self, neighbours):
        self.neighbours = neighbours

    @cached_property
    def _squared(self):
        """Symmetric sparse matrix of squared distances, both directions of a pair."""
        n, k = self.neighbours.indices.shape
        i = np.repeat(np.arange(n), k)
        j = self.neighbours.indices.ravel()
        # the same pair may come twice
        key, first = np.unique(
            np.concatenate([i * n + j, j * n + i]), return_index=True
        )
        squared = np.tile(self.neighbours.distances.ravel() ** 2, 2)[first]
        ends = np.searchsorted(key, n * np.arange(n + 1))
        return sparse.csr_array((squared, key % n, ends), shape=(n, n))

    @cached_property
    def _order(self):
        return BandOrder(self._squared)

    def __getstate__(self):
        # the rest is made again where it is needed
        return {"neighbours": self.neighbours}

    def kernel(self, bandwidth, n_threads):
        """The Gaussian kernel with one bandwidth, or one per point."""
        squared = self._squared
        bandwidth = np.broadcast_to(bandwidth, squared.shape[0])
        both = (
            np.repeat(bandwidth, np.diff(squared.indptr)) * bandwidth[squared.indices]
        )
        return self._kernel(np.exp(-squared.data / (2.0 * both)), n_threads)

    def indicator(self, n_threads):
        """The kernel that is 1 for every pair of neighbours."""
        return self._kernel(np.ones(self._squared.nnz), n_threads)

    def _kernel(self, values, n_threads):
        pattern = self._squared
        matrix = sparse.csr_array(
            (values, pattern.indices, pattern.indptr), shape=pattern.shape
        )
        return SparseKernel(matrix, self._order, n_threads, self.neighbours.X)


class SparseKernel(Kernel):
    """A symmetric non-negative sparse K.

    ``matrix`` holds K without its diagonal, which is 1 or what makes K semi-definite;
    ``order`` is the ``BandOrder`` of its pattern.
    """

    remedy = "a larger bandwidth or n_neighbors"

    def __init__(self, matrix, order, n_threads, points):
        self.matrix = matrix
        self.order = order
        self.n = matrix.shape[0]
        self.n_threads = n_threads
        self.points = points

    @cached_property
    def diagonal(self):
        """K_ii: 1, or the least number that makes K positive semi-definite."""
        bound = float(self.row_sums.max())
        # row sums of at most 1 mean diagonal dominance
        if bound > 1.0:
            raised = largest_eigenvalue(
                lambda vectors: -self.product(vectors), bound, self.n, self.n_threads
            )
            return np.full(self.n, max(1.0, raised))
        return np.ones(self.n)

    @cached_property
    def row_sums(self):
        """Off-diagonal row sums."""
        return self.product(np.ones((1, self.n)))[0]

    def product(self, vectors):
        """Off-diagonal K times each vector (m, n)."""
        return np.ascontiguousarray((self.matrix @ vectors.T).T)

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

    def similarity(self, weights, penalty):
        """The discriminative similarity for some weights."""
        return SparseSimilarity(self, weights, penalty)

    def restricted_to(self, kept):
        """K without the edges of the points that are not ``kept``."""
        edges = np.repeat(kept, np.diff(self.matrix.indptr)) & kept[self.matrix.indices]
        values = np.where(edges, self.matrix.data, 0.0)
        matrix = sparse.csr_array(
            (values, self.matrix.indices, self.matrix.indptr), shape=self.matrix.shape
        )
        return SparseKernel(matrix, self.order, self.n_threads, self.points)


class SparseSimilarity(Similarity):
    """S of a ``SparseKernel``, a sparse matrix.

    Besides products it offers solves with a shifted matrix: where eigenvalues crowd at
    1, as in narrow kernels on data of few dimensions, products alone need thousands of
    passes, a factorisation a handful of solves.
    """

    is_sparse = True

    def __init__(self, kernel, weights, penalty):
        self.n = kernel.n
        self.n_threads = kernel.n_threads
        self.remedy = kernel.remedy
        self._kernel = kernel
        K = kernel.matrix
        a_i = np.repeat(weights, np.diff(K.indptr))
        a_j = weights[K.indices]
        # >= 0 for weights up to 1 / penalty, but for rounding
        values = 2.0 * np.maximum(a_i + a_j - penalty * (a_i * a_j), 0.0) * K.data
        self._matrix = sparse.csr_array((values, K.indices, K.indptr), shape=K.shape)
        self._set_degrees(self._matrix @ np.ones(self.n))
        root = self._inverse_root
        # the two ends first, so that the matrix is exactly symmetric
        values = values * (np.repeat(root, np.diff(K.indptr)) * root[K.indices])
        self._normalised = sparse.csr_array(
            (values, K.indices, K.indptr), shape=K.shape
        )

    def normalised_product(self, vectors):
        """D^-1/2 S D^-1/2 times each vector (m, n)."""
        return np.ascontiguousarray((self._normalised @ vectors.T).T)

    def components(self):
        """Number and labels of the components, negligible edges left out."""
        edges = self._matrix.tocoo()
        smaller = np.minimum(self.degrees[edges.row], self.degrees[edges.col])
        kept = edges.data > NEGLIGIBLE_EDGE * smaller
        graph = sparse.coo_array(
            (edges.data[kept], (edges.row[kept], edges.col[kept])), shape=edges.shape
        )
        return connected_components(graph, directed=False)

    def nearest(self, points, candidates):
        """For each index in ``points`` the nearest one in ``candidates``."""
        return nearest_among(self._kernel.points, points, candidates, self.n_threads)

    @property
    def cost_of_inverse(self):
        """About how many products cost as much as ``inverse``; None: far too many."""
        order = self._kernel.order
        return order.cost_in_products if order.is_cheap else None

    def inverse(self, shift):
        """Product with ((1 + shift) I - D^-1/2 S D^-1/2)^-1."""
        return self._kernel.order.factorise(1.0 + shift, -self._normalised.data)
