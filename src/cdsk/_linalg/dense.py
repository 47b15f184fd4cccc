# SPDX-License-Identifier: BSD-3-Clause
"""LAPACK's symmetric eigenproblems, largest values first (tests/test_eigen.py).

For the matrices of the spectral step, up to 200 rows, threads gain nothing, and where
processors are shared each wait for them costs a slice of the scheduler: measured 4 ms
in place of 0.1 ms. Larger ones get one thread so that labels do not depend on their
number.
"""

import numpy as np
from scipy.linalg import LinAlgError, eigh

from cdsk._runtime import one_blas_thread


def all_eigenpairs(matrix):
    """Eigenvalues (n,) and eigenvectors (n, n), a column each, of a small matrix.

    Only the symmetric part counts.
    """
    with one_blas_thread():
        values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    return values[::-1], vectors[:, ::-1]


def largest_eigenpairs(matrix, k):
    """The k largest eigenvalues (k,) and their vectors (k, n); destroys the matrix."""
    n, diagonal = len(matrix), np.diagonal(matrix).copy()
    how = {"overwrite_a": True, "check_finite": False}
    with one_blas_thread():
        try:
            values, vectors = eigh(matrix, subset_by_index=(n - k, n - 1), **how)
        except LinAlgError:
            # The way to some of the pairs can fail where many values are equal; it
            # leaves what is above the diagonal as it was.
            np.fill_diagonal(matrix, diagonal)
            values, vectors = eigh(matrix, lower=False, driver="evd", **how)
            values, vectors = values[n - k :], vectors[:, n - k :]
    return values[::-1], fixed_sign(np.ascontiguousarray(vectors.T[::-1]))


def fixed_sign(vectors):
    """Each vector (m, n) with its entry of largest magnitude positive."""
    peak = np.argmax(np.abs(vectors), axis=1)
    return vectors * np.sign(vectors[np.arange(len(vectors)), peak])[:, np.newaxis]
