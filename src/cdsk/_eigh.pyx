# SPDX-License-Identifier: BSD-3-Clause
"""Eigenpairs of a symmetric matrix, the same bits whatever the threads of BLAS.

    A = H T H',  H a product of reflections, T tridiagonal (Householder)
    T = Z diag(values) Z'                                  (implicit QL, shifts)

    eigh(A)                all eigenpairs of a small matrix
    largest_eigenpairs     some of those of a larger one; those of T are LAPACK's

LAPACK could do all of it, but calls a threaded BLAS from some 20 rows on. For the
matrices of the spectral step, up to 200 rows, threads gain nothing, and where
processors are shared each wait for them costs a slice of the scheduler: measured 4 ms
in place of 0.1 ms. Here all is done on the calling thread. The eigenpairs of T take
LAPACK no product of matrices, hence no threads.

Accuracy: absolute, some eps times the norm of A. Cost: about 6 n^3 operations for all
eigenpairs, 4/3 n^3 for few.
Reference: Golub & Van Loan, Matrix Computations, sections 8.3.1 and 8.3.3.
"""
import numpy as np
from scipy.linalg import eigh_tridiagonal

from cpython.exc cimport PyErr_CheckSignals
from libc.float cimport DBL_EPSILON
from libc.math cimport copysign, fabs, sqrt

from cdsk._simd cimport cdsk_simd, cdsk_simd_select

cdef const cdsk_simd* simd = cdsk_simd_select()

# Multiplications between two looks at pending signals: some 100 ms.
cdef double STRIP = 1e8

# QL steps allowed per eigenvalue; two are usual.
cdef int MOST_STEPS = 60


cdef void tridiagonalise(
    double* A,                    # (n, n) in; out: the reflections v_k in A[k, k + 1:]
    Py_ssize_t n,
    Py_ssize_t begin,             # the columns to work on; all before end are then done
    Py_ssize_t end,
    double* diagonal,             # (n,) out
    double* beside,               # (n,) out, the n - 1 entries beside the diagonal
    double* factor,               # (n,) out, H_k = 1 - factor_k v_k v_k'
    double* w,                    # (n,) scratch
) noexcept nogil:
    cdef Py_ssize_t i, j, k, rest
    cdef double* v
    cdef double tail, size, dot
    for k in range(begin, min(end, n - 1)):
        v = A + k * n
        diagonal[k] = v[k]
        tail = 0.0
        for j in range(k + 2, n):
            tail += v[j] * v[j]
        beside[k] = v[k + 1]
        factor[k] = 0.0
        if tail == 0.0:
            continue
        size = copysign(sqrt(v[k + 1] * v[k + 1] + tail), v[k + 1])
        beside[k] = -size
        v[k + 1] += size
        factor[k] = 2.0 / (v[k + 1] * v[k + 1] + tail)
        # w = factor (A v - half of its part along v),  A -= v w' + w v'
        rest = n - k - 1
        simd.inner(A + (k + 1) * n, rest, v, 1, n, k + 1, n, w + k + 1)
        dot = 0.0
        for i in range(k + 1, n):
            w[i] *= factor[k]
            dot += w[i] * v[i]
        for i in range(k + 1, n):
            w[i] -= 0.5 * factor[k] * dot * v[i]
        for i in range(k + 1, n):
            simd.add_two(
                A + i * n + k + 1, -v[i], w + k + 1, -w[i], v + k + 1, rest
            )
    if end == n:
        diagonal[n - 1] = A[n * n - 1]
        beside[n - 1] = 0.0


cdef void reflect(
    const double* A,              # (n, n) in, the reflections v_k in A[k, k + 1:]
    const double* factor,         # (n,) in
    Py_ssize_t n,
    double* Z,                    # (m, n) in/out, rows z <- H_0 ... H_{n-3} z
    Py_ssize_t m,
    Py_ssize_t begin,             # the reflections to apply, from the last on
    Py_ssize_t end,
    double* scratch,              # (m,)
) noexcept nogil:
    cdef Py_ssize_t k, r
    for k in range(min(end, n - 2) - 1, begin - 1, -1):
        if factor[k] == 0.0:
            continue
        simd.inner(Z, m, A + k * n, 1, n, k + 1, n, scratch)
        for r in range(m):
            simd.add_two(
                Z + r * n + k + 1, -factor[k] * scratch[r], A + k * n + k + 1,
                0.0, A + k * n + k + 1, n - k - 1,
            )


cdef int diagonalise(
    double* diagonal,             # (n,) in/out, becomes the eigenvalues
    double* beside,               # (n,) in, destroyed
    Py_ssize_t n,
    double* Z,                    # (n, n) in/out, rows turned as T is
) noexcept nogil:
    """Return 0, or -1 if an eigenvalue does not settle."""
    cdef Py_ssize_t low, high, i
    cdef int _step
    cdef double c, s, f, g, h, r, shift, negligible = 0.0
    for i in range(n):
        negligible = max(negligible, fabs(diagonal[i]) + fabs(beside[i]))
    negligible *= DBL_EPSILON
    for low in range(n):
        for _step in range(MOST_STEPS):
            high = low
            # not <= : also where an entry is not a number
            while high < n - 1 and not (fabs(beside[high]) <= negligible):
                high += 1
            if high == low:
                break
            # Wilkinson's shift: the eigenvalue of the leading 2 x 2 block nearest to
            # its first entry; then a rotation at the far end, chased to the front
            g = (diagonal[low + 1] - diagonal[low]) / (2.0 * beside[low])
            shift = diagonal[low] - beside[low] / (g + copysign(sqrt(g * g + 1.0), g))
            g = diagonal[high] - shift
            c = s = 1.0
            h = 0.0
            i = high - 1
            while i >= low:
                f = s * beside[i]
                r = sqrt(f * f + g * g)
                beside[i + 1] = r
                if r == 0.0:
                    # the block falls apart here
                    diagonal[i + 1] -= h
                    break
                shift = c * beside[i]
                s = f / r
                c = g / r
                g = diagonal[i + 1] - h
                r = (diagonal[i] - g) * s + 2.0 * c * shift
                h = s * r
                diagonal[i + 1] = g + h
                g = c * r - shift
                simd.rotate(Z + i * n, Z + (i + 1) * n, c, s, n)
                i -= 1
            else:
                diagonal[low] -= h
                beside[low] = g
            beside[high] = 0.0
        else:
            return -1
    return 0


cdef entries_up_to_one(matrix):
    """A copy with entries of at most 1, whose squares neither overflow nor vanish."""
    size = np.abs(matrix).max(initial=0.0)
    return np.ascontiguousarray(matrix / (size if size != 0 else 1.0)), size


def eigh(matrix):
    """Eigenvalues, smallest first, and eigenvectors as columns, as numpy's eigh."""
    scaled, size = entries_up_to_one(matrix)
    cdef double[:, ::1] A = scaled
    cdef Py_ssize_t n = A.shape[0]
    cdef double[:, ::1] Z = np.eye(n)
    cdef double[:, ::1] work = np.empty((4, n))
    cdef double* diagonal
    cdef int failed
    if n == 0:
        return np.empty(0), np.empty((0, 0))
    diagonal = &work[0, 0]
    with nogil:
        tridiagonalise(
            &A[0, 0], n, 0, n, diagonal, &work[1, 0], &work[2, 0], &work[3, 0]
        )
        failed = diagonalise(diagonal, &work[1, 0], n, &Z[0, 0])
        reflect(&A[0, 0], &work[2, 0], n, &Z[0, 0], n, 0, n, &work[3, 0])
    if failed:
        raise np.linalg.LinAlgError("The eigenvalues did not settle.")
    values = size * np.asarray(work[0])
    order = np.argsort(values, kind="stable")
    return values[order], np.asarray(Z)[order].T


def largest_eigenpairs(matrix, Py_ssize_t m):
    """The m largest eigenvalues, largest first, and their vectors as rows (m, n)."""
    scaled, size = entries_up_to_one(matrix)
    cdef double[:, ::1] A = scaled
    cdef Py_ssize_t n = A.shape[0], strip, begin, end
    cdef double[:, ::1] work = np.empty((4, n))
    cdef double[:, ::1] Z
    strip = max(1, <Py_ssize_t> (STRIP / (2.0 * n * n)))
    for begin in range(0, n, strip):
        with nogil:
            tridiagonalise(
                &A[0, 0], n, begin, min(begin + strip, n), &work[0, 0], &work[1, 0],
                &work[2, 0], &work[3, 0],
            )
        PyErr_CheckSignals()
    values, vectors = eigh_tridiagonal(
        np.asarray(work[0]), np.asarray(work[1, : n - 1]),
        select="i", select_range=(n - m, n - 1),
    )
    Z = np.ascontiguousarray(vectors.T[::-1])
    strip = max(1, <Py_ssize_t> (STRIP / (2.0 * n * m)))
    for end in range(n, 0, -strip):
        with nogil:
            reflect(
                &A[0, 0], &work[2, 0], n, &Z[0, 0], m, max(end - strip, 0), end,
                &work[3, 0],
            )
        PyErr_CheckSignals()
    return size * values[::-1], np.asarray(Z)
