# SPDX-License-Identifier: BSD-3-Clause
"""Sequential minimal optimisation of a QP over the simplex with an upper bound.

    minimise    p'x + x'Qx
    subject to  sum(x) = 1,  0 <= x_i <= upper,

with Q symmetric positive semi-definite. The gradient is g = p + 2Qx, and x is optimal
exactly when the KKT gap

    max{g_i : x_i > 0} - min{g_j : x_j < upper}

is not positive. One step moves weight t from a coordinate i to a coordinate j:

    j = argmin{g_j : x_j < upper}                                first order
    i = argmax{(g_i - g_j)^2 / (Q_ii + Q_jj - 2Q_ij) : x_i > 0}  second order
    t = (g_i - g_j) / (2 (Q_ii + Q_jj - 2Q_ij)), cut off at the box
    g += 2t (Q_j - Q_i)

Invariants: x stays in the box; a coordinate within rounding of a bound is put on it
exactly, so that no pair is chosen for ever for a rest of rounding size; g belongs to x
up to the rounding of the updates (callers compute it afresh for a certificate).

Q is seen only through a RowSource. A step costs two rows and O(n); from uniform weights
about n steps are usual.

Reference: Fan, Chen & Lin, Working set selection using second order information for
training support vector machines, JMLR 6 (2005), 1889-1918.
"""
import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.float cimport DBL_MAX
from libc.math cimport HUGE_VAL, fabs

from cdsk._rows cimport RowSource, row_function
from cdsk._simd cimport cdsk_simd, cdsk_simd_select

cdef const cdsk_simd* simd = cdsk_simd_select()

# The curvature of two equal points is 0 and may be rounded below it. Relative to the
# largest diagonal entry; a step is cut off at the box, so a floor is always safe.
cdef double CURVATURE_FLOOR = 1e-12

# Relative to the upper bound: closer than this to a bound is on it. All weights
# together lose or gain at most n times as much.
cdef double SNAP = 1e-14

# Elements of Q touched between two looks at pending signals: some 50 ms.
cdef Py_ssize_t SLICE = 50_000_000

cpdef enum Status:
    CONVERGED = 0
    MAX_ITER = 1
    STALLED = 2


cdef struct smo_state:
    Py_ssize_t n
    double* x
    double* g
    double* take             # 0 where x_j < upper, else +inf
    double* give             # 0 where x_i > 0, else -inf
    const double* diagonal
    double upper
    double floor             # least curvature
    Py_ssize_t j             # next coordinate to receive weight, or -1
    double low, high         # min{g_j : x_j < upper}, max{g_i : x_i > 0}


cdef void put_weight(smo_state* s, Py_ssize_t i, double value) noexcept nogil:
    s.x[i] = value
    s.take[i] = 0.0 if value < s.upper else HUGE_VAL
    s.give[i] = 0.0 if value > 0.0 else -HUGE_VAL


cdef double pair_step(
    smo_state* s, Py_ssize_t i, Py_ssize_t j, double q_ij
) noexcept nogil:
    """Move the best feasible weight from i to j and return it (0: nothing moved)."""
    cdef double curvature = max(
        s.diagonal[i] + s.diagonal[j] - 2.0 * q_ij, s.floor
    )
    cdef double room_i = s.x[i]
    cdef double room_j = s.upper - s.x[j]
    cdef double snap = SNAP * s.upper
    cdef double t = min((s.g[i] - s.g[j]) / (2.0 * curvature), room_i, room_j)
    if s.x[j] + t == s.x[j] and s.x[i] - t == s.x[i]:
        return 0.0
    put_weight(s, i, 0.0 if room_i - t <= snap else s.x[i] - t)
    put_weight(s, j, s.upper if room_j - t <= snap else s.x[j] + t)
    return t


cdef Py_ssize_t run(
    smo_state* s, row_function row, void* user, double tol, Py_ssize_t max_steps,
    double* scratch_i, double* scratch_j, int* status,
) noexcept nogil:
    """At most max_steps steps; returns how many were made."""
    cdef Py_ssize_t step, i, j
    cdef const double* q_i
    cdef const double* q_j
    cdef double t
    for step in range(max_steps):
        if not s.high - s.low > tol:
            status[0] = CONVERGED
            return step
        j = s.j
        q_j = row(user, j, scratch_j)
        i = simd.smo_partner(
            s.g, s.give, s.diagonal, q_j, s.g[j], s.diagonal[j], s.floor, s.n
        )
        if i < 0:
            status[0] = STALLED
            return step
        q_i = row(user, i, scratch_i)
        t = pair_step(s, i, j, q_j[i])
        if t == 0.0:
            status[0] = STALLED
            return step
        # g += 2t (Q_j - Q_i), and the next j
        s.j = simd.smo_update(
            s.g, q_j, q_i, 2.0 * t, s.take, s.give, s.n, &s.low, &s.high
        )
    status[0] = MAX_ITER if s.high - s.low > tol else CONVERGED
    return max_steps


cdef void start(
    smo_state* s, Py_ssize_t n, double* x, double* g, const double* diagonal,
    double upper, double* take, double* give,
) noexcept nogil:
    """Fill the state for weights x with gradient g."""
    cdef Py_ssize_t i
    cdef double largest = 1e-300
    s.n, s.x, s.g, s.take, s.give = n, x, g, take, give
    s.diagonal, s.upper = diagonal, upper
    for i in range(n):
        largest = max(largest, diagonal[i])
        put_weight(s, i, x[i])
    s.floor = CURVATURE_FLOOR * largest
    s.j = simd.smo_update(g, NULL, NULL, 0.0, take, give, n, &s.low, &s.high)


def solve(
    RowSource rows,
    double[::1] x,            # (n,) in/out, feasible
    double[::1] g,            # (n,) in/out, p + 2Qx
    double upper,
    double tol,               # absolute KKT gap
    Py_ssize_t max_iter,
):
    """Run SMO from x in place; return (status, gap, number of steps).

    Signals are looked at every SLICE elements; x and g are consistent whenever Python
    sees them, also when Ctrl-C ends the solve.
    """
    cdef Py_ssize_t n = rows.n
    cdef Py_ssize_t n_iter = 0
    cdef Py_ssize_t slice_steps = max(1, SLICE // n)
    cdef int status = MAX_ITER
    cdef const double[::1] diagonal = rows.diagonal
    cdef double[:, ::1] work = np.empty((4, n))
    cdef smo_state s
    start(&s, n, &x[0], &g[0], &diagonal[0], upper, &work[0, 0], &work[1, 0])
    while True:
        with nogil:
            n_iter += run(
                &s, rows.row, rows.user, tol, min(slice_steps, max_iter - n_iter),
                &work[2, 0], &work[3, 0], &status,
            )
        if status != MAX_ITER or n_iter >= max_iter:
            break
        PyErr_CheckSignals()
    return Status(status), max(s.high - s.low, 0.0), n_iter


cdef int cdsk_solve_qp(
    Py_ssize_t n,
    const double* (*row)(
        void* user, Py_ssize_t i, double* scratch
    ) noexcept nogil,
    void* user, const double* diagonal, const double* p, double upper,
    double tol, Py_ssize_t max_iter,
    double* x, double* gradient, double* work,
    double* gap, Py_ssize_t* n_iter,
) noexcept nogil:
    cdef smo_state s
    cdef int status = MAX_ITER
    cdef Py_ssize_t i, j
    cdef double total = 0.0
    cdef const double* q
    if n < 1 or max_iter < 0 or not upper > 0.0 or not tol >= 0.0:
        return -1
    # no x_i exceeds 1 anyway, and the snap to a bound is relative to it
    upper = min(upper, 1.0)
    for i in range(n):
        total += x[i]
        if not (0.0 <= x[i] <= upper * (1.0 + 1e-9) and fabs(p[i]) <= DBL_MAX):
            return -1
    if not -1e-6 <= total - 1.0 <= 1e-6:
        return -1
    # g = p + 2Qx, from the rows of the weights that are not zero
    for i in range(n):
        x[i] = min(x[i], upper)
        gradient[i] = p[i]
    for i in range(n):
        if x[i] > 0.0:
            q = row(user, i, work)
            for j in range(n):
                gradient[j] += 2.0 * x[i] * q[j]
    start(&s, n, x, gradient, diagonal, upper, work, work + n)
    n_iter[0] = run(
        &s, row, user, tol, max_iter, work + 2 * n, work + 3 * n, &status
    )
    gap[0] = max(s.high - s.low, 0.0)
    for i in range(n):
        # NaN compares as no gap; say what it is
        if not fabs(gradient[i]) <= DBL_MAX:
            gap[0] = HUGE_VAL
            return STALLED
    return status


def kkt_gap(
    const double[::1] x,      # (n,) in
    const double[::1] g,      # (n,) in, p + 2Qx
    double upper,
):
    """max{g_i : x_i > 0} - min{g_j : x_j < upper}, at least 0."""
    cdef Py_ssize_t i
    cdef double low = HUGE_VAL
    cdef double high = -HUGE_VAL
    for i in range(x.shape[0]):
        if x[i] > 0.0:
            high = max(high, g[i])
        if x[i] < upper:
            low = min(low, g[i])
    return max(high - low, 0.0)
