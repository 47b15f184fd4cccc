# SPDX-License-Identifier: BSD-3-Clause
"""Sparse positive definite systems by a banded Cholesky factorisation.

Rows and columns are put in reverse Cuthill-McKee order, which brings the entries of a
neighbour graph near the diagonal. With the half-bandwidth b known, so are the costs
before anything is done: 8 n (b + 1) bytes and n b^2 operations, which LAPACK's pbtrf
makes at the rate of a matrix product. A general sparse factorisation has neither: its
fill is known only afterwards. Measured against SuperLU, one thread: 800 points of 30
features 5 and 38 ms, 4000 of 5 features 0.16 and 0.86 s, 20 000 in a plane 0.15 and
0.20 s (docs/notes/2026-11-17-eigensolvers.md).
"""

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dpbtrf, dpbtrs
from scipy.sparse.csgraph import reverse_cuthill_mckee

from cdsk._runtime import available_bytes, one_blas_thread

# The most operations and the largest part of the available memory for a factorisation:
# below a second on one core, during which Ctrl-C is not heard.
MOST_OPERATIONS = 2e10
_PART_OF_MEMORY = 0.25


class BandOrder:
    """Where the entries of a symmetric sparse pattern lie once it is put in order."""

    def __init__(self, pattern):
        n = pattern.shape[0]
        self.order = reverse_cuthill_mckee(pattern, symmetric_mode=True)
        self.place = np.empty(n, dtype=np.intp)
        self.place[self.order] = np.arange(n)
        row = np.repeat(self.place, np.diff(pattern.indptr))
        column = self.place[pattern.indices]
        self._lower = row >= column
        self._column = column[self._lower]
        self._below = row[self._lower] - self._column
        self.width = int(self._below.max(initial=0))

    @property
    def is_cheap(self):
        """Whether a factorisation takes little time and memory."""
        n = len(self.order)
        available = available_bytes()
        fits = available is None or 8 * n * (self.width + 1) <= (
            _PART_OF_MEMORY * available
        )
        return n * float(self.width) ** 2 <= MOST_OPERATIONS and fits

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
