# SPDX-License-Identifier: BSD-3-Clause
"""Blocks of long vectors: inner products and linear combinations.

    inner(A, B)      A B', the inner products of the rows of A (p, n) and B (q, n)
    combine(C, A)    C' A, combinations of the rows of A (p, n) by the columns of C (p,
    q)

BLAS could do both, but a threaded BLAS sums in an order that depends on the number of
its threads, and its threads compete with those of the kernel products. Here the long
dimension is cut into pieces of fixed size that are summed in order: the result does not
depend on the number of threads.
"""
import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange

from cdsk._simd cimport CDSK_MAX_COLUMNS, cdsk_simd, cdsk_simd_select
from cdsk._threads cimport useful_threads

cdef const cdsk_simd* simd = cdsk_simd_select()

# Elements of the long dimension per piece: 16 rows of it fit a level-2 cache.
cdef Py_ssize_t PIECE = 2048

# Multiplications between two looks at pending signals: some 100 ms on one core.
cdef double STRIP = 1e9


def inner(
    const double[:, ::1] A,       # (p, n) in
    const double[:, ::1] B,       # (q, n) in
    int n_threads,
):
    """Return A B' (p, q)."""
    cdef Py_ssize_t p = A.shape[0]
    cdef Py_ssize_t q = B.shape[0]
    cdef Py_ssize_t n = A.shape[1]
    cdef Py_ssize_t pieces = (n + PIECE - 1) // PIECE
    cdef Py_ssize_t piece, first, columns
    cdef double[:, :, ::1] parts
    out = np.empty((p, q))
    if p == 0:
        return out
    for first in range(0, q, CDSK_MAX_COLUMNS):
        columns = min(CDSK_MAX_COLUMNS, q - first)
        parts = np.empty((pieces, p, columns))
        for piece in prange(
            pieces, nogil=True, schedule="static",
            num_threads=useful_threads(
                min(n_threads, pieces), <double> p * columns * n
            ),
        ):
            simd.inner(
                &A[0, 0], p, &B[first, 0], columns, n,
                piece * PIECE, min((piece + 1) * PIECE, n), &parts[piece, 0, 0],
            )
        out[:, first : first + columns] = np.add.reduce(np.asarray(parts), axis=0)
        PyErr_CheckSignals()
    return out


def combine(
    const double[:, ::1] C,       # (p, q) in
    const double[:, ::1] A,       # (p, n) in
    int n_threads,
):
    """Return C' A (q, n)."""
    cdef Py_ssize_t p = A.shape[0]
    cdef Py_ssize_t q = C.shape[1]
    cdef Py_ssize_t n = A.shape[1]
    cdef Py_ssize_t pieces = (n + PIECE - 1) // PIECE
    cdef Py_ssize_t piece, begin, end, strip
    cdef double[:, ::1] out = np.zeros((q, n))
    if p > 0 and q > 0:
        strip = max(n_threads, <Py_ssize_t> (STRIP / (<double> p * q * PIECE)))
        for begin in range(0, pieces, strip):
            end = min(begin + strip, pieces)
            for piece in prange(
                begin, end, nogil=True, schedule="static",
                num_threads=useful_threads(
                    min(n_threads, end - begin), <double> p * q * n
                ),
            ):
                simd.combine(
                    &C[0, 0], &A[0, 0], p, q, n,
                    piece * PIECE, min((piece + 1) * PIECE, n), &out[0, 0],
                )
            PyErr_CheckSignals()
    return np.asarray(out)
