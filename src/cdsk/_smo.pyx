# SPDX-License-Identifier: BSD-3-Clause
"""Sequential minimal optimization of a QP over the simplex with an upper bound.

    minimize    p'x + x'Qx
    subject to  sum(x) = 1,  0 <= x_i <= upper,

with Q symmetric positive semi-definite. The gradient is g = p + 2Qx, and x is optimal
exactly when the KKT gap

    max{g_i : x_i > 0} - min{g_j : x_j < upper}

is not positive. One step moves weight t from a coordinate i to a coordinate j:

    j = argmin{g_j : x_j < upper}                                first order
    i = argmax{(g_i - g_j)^2 / (Q_ii + Q_jj - 2Q_ij) : x_i > 0}  second order
    t = (g_i - g_j) / (2 (Q_ii + Q_jj - 2Q_ij)), cut off at the box
    g += 2t (Q_j - Q_i)

Invariants: x stays in the box. A coordinate within rounding of a bound is set to it
exactly; otherwise a pair could be chosen repeatedly for a remainder of rounding size. g
belongs to x up to the rounding of the updates; callers recompute it for a certificate.

The solver sees Q only through a RowSource. A step costs two rows and O(n); from uniform
weights about n steps are usual. _smo_sparse.pyx takes the same steps at O(k) each for a
sparse Q with k entries per row.

Reference: Fan, Chen & Lin, Working set selection using second order information for
training support vector machines, JMLR 6 (2005), 1889-1918.
"""
import numpy as np

from libc.limits cimport INT_MAX
from libc.math cimport HUGE_VAL

from cdsk._rows cimport RowSource, SparseRows, row_function
from cdsk._signals cimport check_signals, work_interval
from cdsk._simd cimport cdsk_simd, cdsk_simd_select
from cdsk._smo_common cimport (
    SMO_CONVERGED,
    SMO_INVALID,
    SMO_MAX_ITER,
    SMO_STALLED,
    final_status,
    is_valid_problem,
    min_curvature,
    move_weight,
)
from cdsk._smo_sparse cimport solve_arrays, solve_sparse

cdef const cdsk_simd* simd = cdsk_simd_select()

cpdef enum Status:
    CONVERGED = SMO_CONVERGED
    MAX_ITER = SMO_MAX_ITER
    STALLED = SMO_STALLED


cdef struct smo_state:
    Py_ssize_t n
    double* x
    double* g
    double* can_increase     # 0 where x_j < upper, else +inf
    double* can_decrease     # 0 where x_i > 0, else -inf
    const double* diagonal
    double upper
    double min_curvature
    Py_ssize_t j             # next coordinate to increase, or -1
    double low, high         # min{g_j : x_j < upper}, max{g_i : x_i > 0}


cdef void set_weight(smo_state* s, Py_ssize_t i, double value) noexcept nogil:
    s.x[i] = value
    s.can_increase[i] = 0.0 if value < s.upper else HUGE_VAL
    s.can_decrease[i] = 0.0 if value > 0.0 else -HUGE_VAL


cdef double take_step(
    smo_state* s, Py_ssize_t i, Py_ssize_t j, double q_ij
) noexcept nogil:
    """Move the optimal feasible weight from i to j and return it (0: no change)."""
    cdef double curvature = max(
        s.diagonal[i] + s.diagonal[j] - 2.0 * q_ij, s.min_curvature
    )
    cdef double t = move_weight(
        &s.x[i], &s.x[j], (s.g[i] - s.g[j]) / (2.0 * curvature), s.upper
    )
    set_weight(s, i, s.x[i])
    set_weight(s, j, s.x[j])
    return t


cdef Py_ssize_t run(
    smo_state* s, row_function row, void* user, double tol, Py_ssize_t max_steps,
    double* scratch_i, double* scratch_j, int* status,
) noexcept nogil:
    """Take at most max_steps steps; return the number of steps taken."""
    cdef Py_ssize_t step, i, j
    cdef const double* q_i
    cdef const double* q_j
    cdef double t
    for step in range(max_steps):
        if not s.high - s.low > tol:
            status[0] = SMO_CONVERGED
            return step
        j = s.j
        q_j = row(user, j, scratch_j)
        i = simd.smo_partner(
            s.g, s.can_decrease, s.diagonal, q_j, s.g[j], s.diagonal[j],
            s.min_curvature, s.n,
        )
        if i < 0:
            status[0] = SMO_STALLED
            return step
        q_i = row(user, i, scratch_i)
        t = take_step(s, i, j, q_j[i])
        if t == 0.0:
            status[0] = SMO_STALLED
            return step
        # g += 2t (Q_j - Q_i), and the next j
        s.j = simd.smo_update(
            s.g, q_j, q_i, 2.0 * t, s.can_increase, s.can_decrease, s.n, &s.low, &s.high
        )
    status[0] = SMO_MAX_ITER if s.high - s.low > tol else SMO_CONVERGED
    return max_steps


cdef void initialize(
    smo_state* s, Py_ssize_t n, double* x, double* g, const double* diagonal,
    double upper, double* can_increase, double* can_decrease,
) noexcept nogil:
    """Fill the state for weights x with gradient g."""
    cdef Py_ssize_t i
    s.n, s.x, s.g, s.diagonal, s.upper = n, x, g, diagonal, upper
    s.can_increase, s.can_decrease = can_increase, can_decrease
    s.min_curvature = min_curvature(diagonal, n)
    for i in range(n):
        set_weight(s, i, x[i])
    s.j = simd.smo_update(
        g, NULL, NULL, 0.0, can_increase, can_decrease, n, &s.low, &s.high
    )


# ---------------------------------------------------------------- from Python


def solve(
    RowSource rows,           # of Q
    double[::1] x,            # (n,) in/out, feasible
    double[::1] g,            # (n,) in/out, p + 2Qx
    double upper,
    double tol,               # absolute KKT gap
    Py_ssize_t max_iter,
):
    """Run SMO from x in place; return (status, gap, number of steps).

    x and g are consistent whenever Python sees them, also when Ctrl-C ends the solve.
    """
    cdef Py_ssize_t n = rows.n
    cdef Py_ssize_t n_iter = 0, n_steps, max_steps
    cdef int status = SMO_MAX_ITER
    cdef double gap, step_work
    if isinstance(rows, SparseRows):
        n_iter = solve_sparse(rows, x, g, upper, tol, max_iter, &status, &gap)
        return Status(status), max(gap, 0.0), n_iter
    cdef const double[::1] diagonal = rows.diagonal
    cdef double[:, ::1] work = np.empty((4, n))
    cdef smo_state s
    # two rows, the search for the partner and the update of the gradient
    step_work = 2.0 * (rows.row_work + n)
    max_steps = max(1, <Py_ssize_t> (work_interval() / step_work))
    initialize(&s, n, &x[0], &g[0], &diagonal[0], upper, &work[0, 0], &work[1, 0])
    while True:
        with nogil:
            n_steps = run(
                &s, rows.row, rows.user, tol, min(max_steps, max_iter - n_iter),
                &work[2, 0], &work[3, 0], &status,
            )
        n_iter += n_steps
        if status != SMO_MAX_ITER or n_iter >= max_iter:
            break
        check_signals(n_steps * step_work)
    return Status(status), max(s.high - s.low, 0.0), n_iter


def kkt_gap(
    const double[::1] x,      # (n,) in
    const double[::1] g,      # (n,) in, p + 2Qx
    double upper,
):
    """Return max{g_i : x_i > 0} - min{g_j : x_j < upper}, at least 0."""
    cdef Py_ssize_t i
    cdef double low = HUGE_VAL
    cdef double high = -HUGE_VAL
    for i in range(x.shape[0]):
        if x[i] > 0.0:
            high = max(high, g[i])
        if x[i] < upper:
            low = min(low, g[i])
    return max(high - low, 0.0)


# ---------------------------------------------------------------- from C
# Contracts are in _smo.pxd.


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
    cdef int status = SMO_MAX_ITER
    cdef Py_ssize_t i, j
    cdef const double* q
    if upper > 1.0:
        upper = 1.0  # no x_i can exceed 1, and rounding at a bound is relative to it
    if not is_valid_problem(n, p, upper, tol, max_iter, x):
        return SMO_INVALID
    # g = p + 2Qx, from the rows of the weights that are not zero
    for i in range(n):
        x[i] = min(x[i], upper)
        gradient[i] = p[i]
    for i in range(n):
        if x[i] > 0.0:
            q = row(user, i, work)
            for j in range(n):
                gradient[j] += 2.0 * x[i] * q[j]
    initialize(&s, n, x, gradient, diagonal, upper, work, work + n)
    n_iter[0] = run(
        &s, row, user, tol, max_iter, work + 2 * n, work + 3 * n, &status
    )
    gap[0] = s.high - s.low
    return final_status(n, gradient, gap, status)


cdef int cdsk_solve_qp_csr(
    Py_ssize_t n, const Py_ssize_t* indptr, const int* indices, const double* values,
    const double* diagonal, const double* p, double upper,
    double tol, Py_ssize_t max_iter,
    double* x, double* gradient, double* work,
    double* gap, Py_ssize_t* n_iter,
) noexcept nogil:
    if upper > 1.0:
        upper = 1.0
    if n > INT_MAX or not is_valid_problem(n, p, upper, tol, max_iter, x):
        return SMO_INVALID
    return solve_arrays(
        n, indptr, indices, values, diagonal, p, upper, tol, max_iter, x, gradient,
        work, gap, n_iter,
    )
