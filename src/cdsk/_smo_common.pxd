# SPDX-License-Identifier: BSD-3-Clause
"""What the dense and the sparse SMO solver share: the step of a pair, and checks."""
from libc.float cimport DBL_MAX
from libc.math cimport HUGE_VAL, fabs

cdef enum:
    SMO_INVALID = -1         # sizes, p or the start are out of range
    SMO_CONVERGED = 0
    SMO_MAX_ITER = 1
    SMO_STALLED = 2          # rounding allows no further progress


cdef inline double min_curvature(const double* diagonal, Py_ssize_t n) noexcept nogil:
    """Return the smallest curvature to divide by.

    The curvature of two equal points is 0 and may be rounded to less. A step is clipped
    to the box, so a lower bound is always safe.
    """
    cdef double largest = 1e-300
    cdef Py_ssize_t i
    for i in range(n):
        largest = max(largest, diagonal[i])
    return 1e-12 * largest


cdef inline double move_weight(
    double* x_i, double* x_j, double optimal, double upper
) noexcept nogil:
    """Move the optimal weight, or what the box allows, from x_i to x_j and return it.

    A weight within rounding of a bound is set to it; over all steps the sum of weights
    changes by at most n times as much.
    """
    cdef double largest_i = x_i[0]
    cdef double largest_j = upper - x_j[0]
    cdef double rounding = 1e-14 * upper
    cdef double t = min(optimal, largest_i, largest_j)
    if x_j[0] + t == x_j[0] and x_i[0] - t == x_i[0]:
        return 0.0
    x_i[0] = 0.0 if largest_i - t <= rounding else x_i[0] - t
    x_j[0] = upper if largest_j - t <= rounding else x_j[0] + t
    return t


cdef inline bint is_valid_problem(
    Py_ssize_t n, const double* p, double upper, double tol, Py_ssize_t max_iter,
    const double* x,
) noexcept nogil:
    """Return whether x is a feasible start and p and the settings are in range."""
    cdef Py_ssize_t i
    cdef double total = 0.0
    if n < 1 or max_iter < 0 or not upper > 0.0 or not tol >= 0.0:
        return False
    for i in range(n):
        total += x[i]
        if not (0.0 <= x[i] <= upper * (1.0 + 1e-9) and fabs(p[i]) <= DBL_MAX):
            return False
    return -1e-6 <= total - 1.0 <= 1e-6


cdef inline int final_status(
    Py_ssize_t n, const double* gradient, double* gap, int status
) noexcept nogil:
    """Return the status, or SMO_STALLED with an infinite gap if a gradient is NaN.

    NaN compares as no gap and would look like convergence.
    """
    cdef Py_ssize_t i
    gap[0] = max(gap[0], 0.0)
    for i in range(n):
        if not fabs(gradient[i]) <= DBL_MAX:
            gap[0] = HUGE_VAL
            return SMO_STALLED
    return status
