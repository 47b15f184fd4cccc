# SPDX-License-Identifier: BSD-3-Clause
"""A symmetric matrix in memory: products, definiteness (tests/test_dense.py)."""

from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, cholesky

from cdsk import _kernel
from cdsk._rows import StoredRows
from cdsk._runtime import take_blas_buffers


class SymmetricMatrix:
    """A float32 or float64 n x n matrix K; sums are in double precision."""

    def __init__(self, K, n_threads):
        self.K = K
        self.n = K.shape[0]
        self.n_threads = n_threads

    @cached_property
    def diagonal(self):
        return np.ascontiguousarray(np.diagonal(self.K), dtype=np.float64)

    @cached_property
    def row_sums(self):
        return self.product(np.ones((1, self.n)))[0]

    def product(self, vectors):
        """Off-diagonal K times each vector (m, n)."""
        out = np.empty_like(vectors)
        _kernel.product(self.K, vectors, out, self.n_threads)
        return out

    def rows(self):
        return StoredRows(self.K)

    @property
    def bound(self):
        """The largest absolute row sum of a non-negative K bounds its eigenvalues."""
        return float(np.max(self.row_sums + np.abs(self.diagonal)))


def is_semidefinite(matrix, tolerance):
    """Whether no eigenvalue of a float64 array is below ``-tolerance``; destroys it.

    By a Cholesky factorisation: n^3 / 3 operations, no further memory, certain.
    """
    take_blas_buffers()
    # a zero matrix needs some shift too
    matrix.flat[:: len(matrix) + 1] += max(tolerance, np.finfo(float).tiny)
    try:
        cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return False
    return True
