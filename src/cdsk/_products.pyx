# SPDX-License-Identifier: BSD-3-Clause
"""Products of blocks of long vectors, one vector per row.

    inner(A, B)      A B' (p, q), inner products of the rows of A (p, n) and B (q, n)
    combine(C, A)    C' A (q, n), combinations of the rows of A (p, n) by C (p, q)

A threaded BLAS sums in an order that depends on the number of its threads, which also
compete with those of the kernel products. Here the long dimension is divided into
pieces of fixed size whose sums are added in order: the result does not depend on the
number of threads.
"""
import numpy as np

from cython.parallel cimport prange

from cdsk._signals cimport check_signals, product_work, work_interval
from cdsk._simd cimport CDSK_MAX_COLUMNS, cdsk_simd, cdsk_simd_select
from cdsk._threads cimport useful_threads

cdef const cdsk_simd* simd = cdsk_simd_select()

# Elements of the long dimension per piece: 16 rows of it fit a level-2 cache.
cdef Py_ssize_t PIECE = 2048


cdef inline double piece_work(Py_ssize_t p, Py_ssize_t q) noexcept nogil:
    """Return the work of the products of one piece: read p rows, multiply them by q."""
    return PIECE * (p + product_work(<double> p * q))


cdef inline Py_ssize_t pieces_at_once(double work, int n_threads) noexcept nogil:
    """Return how many pieces of this work to compute between two checks of signals."""
    return max(n_threads, <Py_ssize_t> min(work_interval() / work, 1e9))


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
    cdef Py_ssize_t piece, first, columns, begin, end, step
    cdef double work
    cdef double[:, :, ::1] parts
    out = np.empty((p, q))
    if p == 0:
        return out
    for first in range(0, q, CDSK_MAX_COLUMNS):
        columns = min(CDSK_MAX_COLUMNS, q - first)
        work = piece_work(p, columns)
        step = pieces_at_once(work, n_threads)
        parts = np.empty((pieces, p, columns))
        for begin in range(0, pieces, step):
            end = min(begin + step, pieces)
            for piece in prange(
                begin, end, nogil=True, schedule="static",
                num_threads=useful_threads(
                    min(n_threads, end - begin), <double> p * columns * n
                ),
            ):
                simd.inner(
                    &A[0, 0], p, &B[first, 0], columns, n,
                    piece * PIECE, min((piece + 1) * PIECE, n), &parts[piece, 0, 0],
                )
            check_signals((end - begin) * work)
        out[:, first : first + columns] = np.add.reduce(np.asarray(parts), axis=0)
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
    cdef Py_ssize_t piece, begin, end, step
    cdef double work = piece_work(p, q)
    cdef double[:, ::1] out = np.zeros((q, n))
    if p > 0 and q > 0:
        step = pieces_at_once(work, n_threads)
        for begin in range(0, pieces, step):
            end = min(begin + step, pieces)
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
            check_signals((end - begin) * work)
    return np.asarray(out)
