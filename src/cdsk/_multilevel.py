# SPDX-License-Identifier: BSD-3-Clause
"""Multigrid preconditioner of graphs and a banded solver (tests/test_multilevel.py).

The slow modes of a large graph are smooth: nearly constant within groups of close
neighbors. So the groups become the points of a smaller graph, whose edges are sums of
edges, and so on, until the matrix can be factorized. A *V-cycle* restricts a vector to
the smaller graphs, prolongs the solution, and smooths it on every level by a step of
Jacobi's method (unsmoothed aggregation; Notay, ETNA 37, 2010).

With D the degrees, the Laplacian is L = (1 + shift) I - D^-1/2 S D^-1/2. Let a group G
have the sum of the degrees of its points. Then the prolongation

    P_iG = sqrt(D_i / D_G)  for i in G

has orthonormal columns and P' L P is the same kind of Laplacian, that of the graph of
groups, with loops. A Laplacian is at most twice its diagonal: hence Jacobi's weight.

Time and memory are linear in the number of edges. As a preconditioner of a search for
ten eigenvectors (residual 1e-6, one thread): 100 000 points in a plane 0.7 s where
``eigsh`` needs more than 5000 products, MNIST (70 000) 3 s as ``eigsh``, with narrow
kernels 10 instead of 30 s. pyamg's smoothed aggregation: 2.6, 8 and more than 21 s; it
makes dense coarse graphs where there are many features.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dpbtrf, dpbtrs
from scipy.sparse.csgraph import (
    breadth_first_order,
    connected_components,
    reverse_cuthill_mckee,
)

from cdsk._graph import aggregate, coarsen, product
from cdsk._operators.base import Array, Indices
from cdsk._utils import available_bytes

# Precision of the preconditioner: half as much to read as in float64.
_PRECISION = np.float32
Block = NDArray[np.float32]

# Weight of an edge inside a group, relative to the largest ones of its ends.
_STRENGTH = 0.5

# Jacobi's weight for eigenvalues between 0 and 2 diagonal entries.
_DAMPING = 2.0 / 3.0

# Operations of a factorization that ends the coarsening: much less than the rest.
_COARSEST_OPERATIONS = 1e9

# Graphs of fewer points may need no coarsening. For more than the second number no
# factorization is considered: finding the width of its band costs more.
_SMALL_GRAPH, _LARGE_GRAPH = 1000, 20_000

# Coarsening stops at a level that keeps more than this fraction of the points.
_MAX_KEPT = 0.8


class _Level:
    """The Laplacian of one graph, and the prolongation from the next coarser one."""

    prolongation: sparse.csr_array

    def __init__(self, matrix: sparse.csr_array, shift: float, n_threads: int) -> None:
        self.matrix, self.n_threads = matrix, n_threads
        diagonal = (1.0 + shift) - matrix.diagonal()
        self.jacobi: Block = (_DAMPING / diagonal)[:, np.newaxis].astype(_PRECISION)
        self._scale = _PRECISION(1.0 + shift)
        self._values: Block = matrix.data.astype(_PRECISION)

    def residual(self, right: Block, x: Block) -> Block:
        """Return right - L x."""
        A = self.matrix
        image = product(A.indptr, A.indices, self._values, x, self.n_threads)
        image -= self._scale * x
        image += right
        return image

    def coarsen(self, degrees: Array) -> tuple[sparse.csr_array, Array]:
        """Set the prolongation; return the matrix and the degrees of the groups."""
        A = self.matrix
        group, count = aggregate(A.indptr, A.indices, A.data, _STRENGTH)
        has_group = group >= 0
        members = group[has_group]
        total = np.bincount(members, degrees[has_group], minlength=count)
        root = np.zeros(len(group))
        root[has_group] = np.sqrt(degrees[has_group] / total[members])
        columns = np.where(has_group, group, 0).astype(A.indices.dtype)
        starts = np.arange(len(group) + 1, dtype=A.indices.dtype)
        entries = root.astype(_PRECISION), columns, starts
        self.prolongation = sparse.csr_array(entries, shape=(len(group), count))
        graph = A.indptr, A.indices, A.data
        coarse = coarsen(*graph, group, root, count, self.n_threads)
        return sparse.csr_array(coarse, shape=(count, count)), total.astype(float)


class Multilevel:
    """Product with about ((1 + shift) I - A)^-1 for a normalized similarity A.

    ``matrix`` (CSR) is A = D^-1/2 S D^-1/2 with zeros on the diagonal, ``degrees`` D.
    """

    def __init__(
        self, matrix: sparse.csr_array, degrees: Array, shift: float, n_threads: int
    ) -> None:
        self._levels = [_Level(matrix, shift, n_threads)]
        order = BandedOrdering(matrix) if len(degrees) < _SMALL_GRAPH else None
        while order is None or order.n_operations > _COARSEST_OPERATIONS:
            n = matrix.shape[0]
            matrix, degrees = self._levels[-1].coarsen(degrees)
            if matrix.shape[0] > _MAX_KEPT * n:
                break
            self._levels.append(_Level(matrix, shift, n_threads))
            if matrix.shape[0] <= _LARGE_GRAPH:
                order = BandedOrdering(matrix)
        self._solve = None
        if order is not None and order.is_cheap:
            self._solve = order.factorize(1.0 + shift, -self._levels[-1].matrix.data)

    def __call__(self, vectors: Array) -> Array:
        """Apply it to each row of an (m, n) array."""
        block = self._cycle(np.ascontiguousarray(vectors.T, dtype=_PRECISION), 0)
        return np.ascontiguousarray(block.T, dtype=np.float64)

    def _cycle(self, right: Block, depth: int) -> Block:
        level = self._levels[depth]
        if depth == len(self._levels) - 1 and self._solve is not None:
            exact = self._solve(np.ascontiguousarray(right.T, dtype=np.float64))
            return exact.T.astype(_PRECISION)
        x: Block = level.jacobi * right
        if depth == len(self._levels) - 1:
            return x
        P = level.prolongation
        coarse = np.ascontiguousarray(P.T @ level.residual(right, x))
        x += P @ self._cycle(coarse, depth + 1)
        x += level.jacobi * level.residual(right, x)
        return x


# Sparse positive definite systems by a banded Cholesky factorization.
#
# Rows and columns are put in reverse Cuthill-McKee order, or in that of the distances
# from one end of the graph, which brings the entries near the diagonal. The half-width
# b of the band gives the costs in advance: 8 n (b + 1) bytes and n b^2 operations, at
# the rate of a matrix product (LAPACK's pbtrf). The fill of a general sparse
# factorization is known only afterwards. Measured against SuperLU, one thread: 800
# points of 30 features 5 and 38 ms, 4000 of 5 features 0.16 and 0.86 s, 20 000 in a
# plane 0.15 and 0.20 s (docs/notes/2026-11-17-eigensolvers.md).

# Maximum number of operations, and fraction of the available memory, of a
# factorization: about a second on one core, during which Ctrl-C has no effect.
MAX_OPERATIONS = 5e10
_MEMORY_FRACTION = 0.25

# With more components than this, the order by distances is not tried: a search through
# one component costs as much as through all points.
_MAX_COMPONENTS = 16


class BandedOrdering:
    """An order of the points that brings a symmetric sparse pattern near the diagonal.

    ``width`` is the half-width of the band, ``order`` the points in their new order,
    ``position`` the inverse permutation.
    """

    order: Indices
    position: Indices

    def __init__(self, pattern: sparse.csr_array) -> None:
        n = pattern.shape[0]
        rows = np.repeat(np.arange(n), np.diff(pattern.indptr))
        orders = [reverse_cuthill_mckee(pattern, symmetric_mode=True)]
        orders += _order_by_distance(pattern)
        self.width = n
        for order in orders:
            position = np.empty(n, dtype=np.intp)
            position[order] = np.arange(n)
            offset = position[rows] - position[pattern.indices]
            width = int(offset.max(initial=0))
            if width < self.width:
                self.order, self.position, self.width = order, position, width
                self._lower = offset >= 0
                self._offset = offset[self._lower]
                self._column = position[pattern.indices[self._lower]]

    @property
    def is_cheap(self) -> bool:
        """Whether a factorization takes little time and memory."""
        if self.n_operations > MAX_OPERATIONS:
            return False
        available = available_bytes()
        n_bytes = 8 * len(self.order) * (self.width + 1)
        return available is None or n_bytes <= _MEMORY_FRACTION * available

    @property
    def n_operations(self) -> float:
        """Number of operations of a factorization."""
        return len(self.order) * float(self.width) ** 2

    @property
    def cost_in_products(self) -> int:
        """Number of products with the matrix that cost as much as a factorization.

        Those of 30 entries per row, with the orthogonalization that follows. Measured
        for widths of 200 to 2500.
        """
        return int(self.width**2 // 1000)

    def factorize(
        self, diagonal: float | Array, off_diagonal: Array
    ) -> Callable[[Array], Array]:
        """Return the product with the inverse of a definite matrix of this pattern.

        ``diagonal`` is added to that of the pattern. Raises LinAlgError if the matrix
        is not positive definite.
        """
        # column j of the matrix, from its diagonal entry down, is row j here
        band = np.zeros((len(self.order), self.width + 1))
        band[self._column, self._offset] = off_diagonal[self._lower]
        band[:, 0] += diagonal
        factor, failed = dpbtrf(band.T, lower=1, overwrite_ab=1)
        if failed:
            raise LinAlgError(f"leading minor {failed} is not positive definite")

        def solve(vectors: Array) -> Array:
            solution, _ = dpbtrs(factor, vectors[:, self.order].T, lower=1)
            return np.ascontiguousarray(solution.T[:, self.position])

        return solve


def _order_by_distance(pattern: sparse.csr_array) -> list[Any]:
    """Return the order by distance, in edges, from a point at the end of a component.

    SciPy's Cuthill-McKee begins at a point of few neighbors, which may lie in the
    middle: on two moons of 50 000 points its band is 1.8 times as wide.
    """
    count, component = connected_components(pattern, directed=False)
    if count > _MAX_COMPONENTS:
        return []
    orders = []
    for point in np.unique(component, return_index=True)[1]:
        for _ in range(3):  # the farthest point, the one farthest from that, its order
            order = breadth_first_order(pattern, point, return_predecessors=False)
            point = order[-1]
        orders.append(order)
    return [np.concatenate(orders)]
