# SPDX-License-Identifier: BSD-3-Clause
"""Sparse positive definite systems by a banded Cholesky factorisation.

Rows and columns are put in reverse Cuthill-McKee order, or that of the distances from
one end of the graph, which brings the entries near the diagonal. With the half-width b
of the band known, so are the costs before anything is done: 8 n (b + 1) bytes and n b^2
operations, which LAPACK's pbtrf makes at the rate of a matrix product. A general sparse
factorisation has neither: its fill is known only afterwards. Measured against SuperLU,
one thread: 800 points of 30 features 5 and 38 ms, 4000 of 5 features 0.16 and 0.86 s,
20 000 in a plane 0.15 and 0.20 s (docs/notes/2026-11-17-eigensolvers.md).
"""

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dpbtrf, dpbtrs
from scipy.sparse.csgraph import (
    breadth_first_order,
    connected_components,
    reverse_cuthill_mckee,
)

from cdsk._runtime import available_bytes, one_blas_thread

# The most operations and the largest part of the available memory for a factorisation:
# a second or so on one core, during which Ctrl-C is not heard.
MOST_OPERATIONS = 5e10
_PART_OF_MEMORY = 0.25

# A search through one component costs as much as through all points.
_MOST_COMPONENTS = 16


class BandOrder:
    """Where the entries of a symmetric sparse pattern lie once it is put in order."""

    def __init__(self, pattern):
        n = pattern.shape[0]
        rows = np.repeat(np.arange(n), np.diff(pattern.indptr))
        orders = [reverse_cuthill_mckee(pattern, symmetric_mode=True)]
        orders += _by_levels(pattern)
        self.width = n
        for order in orders:
            place = np.empty(n, dtype=np.intp)
            place[order] = np.arange(n)
            below = place[rows] - place[pattern.indices]
            width = int(below.max(initial=0))
            if width < self.width:
                self.order, self.place, self.width = order, place, width
                self._lower = below >= 0
                self._below = below[self._lower]
                self._column = place[pattern.indices[self._lower]]

    @property
    def is_cheap(self):
        """Whether a factorisation takes little time and memory."""
        n = len(self.order)
        available = available_bytes()
        fits = available is None or 8 * n * (self.width + 1) <= (
            _PART_OF_MEMORY * available
        )
        return self.operations <= MOST_OPERATIONS and fits

    @property
    def operations(self):
        """Of a factorisation."""
        return len(self.order) * float(self.width) ** 2

    @property
    def cost_in_products(self):
        """About how many products with the matrix cost as much as its factors.

        Those of 30 entries per row, with the orthogonalisation that follows. Measured
        for widths of 200 to 2500.
        """
        return self.width**2 // 1000

    def factorise(self, diagonal, off_diagonal):
        """Product with the inverse of a definite matrix with entries of the pattern.

        ``diagonal`` is added to that of the pattern. Raises LinAlgError if the matrix
        is not positive definite.
        """
        n = len(self.order)
        # column j of the matrix, from its diagonal entry down, is row j here
        band = np.zeros((n, self.width + 1))
        band[self._column, self._below] = off_diagonal[self._lower]
        band[:, 0] += diagonal
        with one_blas_thread():
            factor, failed = dpbtrf(band.T, lower=1, overwrite_ab=1)
        if failed:
            raise LinAlgError(f"leading minor {failed} is not positive definite")

        def solve(vectors):
            solution, _ = dpbtrs(factor, vectors[:, self.order].T, lower=1)
            return np.ascontiguousarray(solution.T[:, self.place])

        return solve


def _by_levels(pattern):
    """One order: by the distance, in edges, from a point at the end of a component.

    SciPy's Cuthill-McKee begins at a point of few neighbours, which may lie in the
    middle: on two moons of 50 000 points its band is 1.8 times as wide.
    """
    count, component = connected_components(pattern, directed=False)
    if count > _MOST_COMPONENTS:
        return []
    orders = []
    for point in np.unique(component, return_index=True)[1]:
        for _ in range(3):  # the farthest point, the one farthest from that, its order
            order = breadth_first_order(pattern, point, return_predecessors=False)
            point = order[-1]
        orders.append(order)
    return [np.concatenate(orders)]
