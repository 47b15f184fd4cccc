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
about n steps are usual. On the rows of a sparse Q the same steps, in the same order and
with the same rounding, cost O(k) each, k entries a row: gradients are the leaves of a
tree of extremes (_extremes.pxd), which shows j and the gap. The partner i is a
neighbour of j or, as the curvature is Q_ii + Q_jj elsewhere, lies under a node whose
largest gradient and smallest diagonal entry allow a better score than that found so
far: with a constant diagonal, the largest gradient of all.

Reference: Fan, Chen & Lin, Working set selection using second order information for
training support vector machines, JMLR 6 (2005), 1889-1918.
"""
import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.float cimport DBL_MAX
from libc.limits cimport INT_MAX
from libc.math cimport HUGE_VAL, fabs

from cdsk._extremes cimport (
    MOST_LEVELS,
    SHIFT,
    build_tree,
    end_of_children,
    extremes,
    first_highest,
    first_lowest,
    least_child,
    pair,
    put_leaf,
    shape_tree,
)
from cdsk._rows cimport RowSource, SparseRows, row_function, sparse_matrix
from cdsk._simd cimport cdsk_simd, cdsk_simd_select

cdef extern from *:
    """
    #if defined(__GNUC__)
    #define cdsk_prefetch(address) __builtin_prefetch(address)
    #else
    #define cdsk_prefetch(address) ((void)(address))
    #endif
    """
    const Py_ssize_t PY_SSIZE_T_MAX
    void cdsk_prefetch(const void* address) noexcept nogil

cdef const cdsk_simd* simd = cdsk_simd_select()

# The curvature of two equal points is 0 and may be rounded below it. Relative to the
# largest diagonal entry; a step is cut off at the box, so a floor is always safe.
cdef double CURVATURE_FLOOR = 1e-12

# Relative to the upper bound: closer than this to a bound is on it. All weights
# together lose or gain at most n times as much.
cdef double SNAP = 1e-14

# Elements of Q touched between two looks at pending signals: some 50 ms.
cdef Py_ssize_t SLICE = 50_000_000
# The same for entries of sparse rows, which lie apart.
cdef Py_ssize_t SPARSE_SLICE = 5_000_000

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


cdef double move_weight(
    double* x_i, double* x_j, double best, double upper
) noexcept nogil:
    """Move the best weight from i to j as far as there is room, and return it."""
    cdef double room_i = x_i[0]
    cdef double room_j = upper - x_j[0]
    cdef double snap = SNAP * upper
    cdef double t = min(best, room_i, room_j)
    if x_j[0] + t == x_j[0] and x_i[0] - t == x_i[0]:
        return 0.0
    x_i[0] = 0.0 if room_i - t <= snap else x_i[0] - t
    x_j[0] = upper if room_j - t <= snap else x_j[0] + t
    return t


cdef double pair_step(
    smo_state* s, Py_ssize_t i, Py_ssize_t j, double q_ij
) noexcept nogil:
    """Move the best feasible weight from i to j and return it (0: nothing moved)."""
    cdef double curvature = max(
        s.diagonal[i] + s.diagonal[j] - 2.0 * q_ij, s.floor
    )
    cdef double t = move_weight(
        &s.x[i], &s.x[j], (s.g[i] - s.g[j]) / (2.0 * curvature), s.upper
    )
    put_weight(s, i, s.x[i])
    put_weight(s, j, s.x[j])
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


# ---------------------------------------------------------------- sparse rows

# Gradients that are updated together, of the entries of two rows.
cdef enum:
    TOGETHER = 64

# What rounding may take off a score; only what is below is left out unseen.
cdef double JUST_BELOW = 1.0 - 1e-12

cdef double[TOGETHER] zeros  # C makes it so


cdef struct csr_state:
    sparse_matrix Q
    double* x
    double upper
    double floor             # least curvature
    double least_diagonal
    extremes tree            # (g_i or inf where x_i = upper, -g_i or inf where x_i = 0)
    double* diagonal[MOST_LEVELS]     # smallest diagonal entry below each node
    Py_ssize_t looks         # entries and nodes seen, a measure of the time


cdef struct choice:
    Py_ssize_t j             # receives weight
    double g, diagonal       # of j
    Py_ssize_t highest       # has the largest gradient of those that may give
    Py_ssize_t i             # gives it; -1: none yet
    double score, gain, q    # q: entry of row j


cdef inline double gradient_of(pair ends) noexcept nogil:
    return ends.low if ends.low < HUGE_VAL else -ends.high


cdef inline pair ends_of(double g, double x, double upper) noexcept nogil:
    return pair(g if x < upper else HUGE_VAL, -g if x > 0.0 else HUGE_VAL)


cdef inline bint may_win(
    const csr_state* s, const choice* c, double gain, double diagonal, double q
) noexcept nogil:
    """Whether the score of this gain and diagonal may be the best, without dividing."""
    cdef double curvature = max(diagonal - 2.0 * q + c.diagonal, s.floor)
    return gain > 0.0 and gain * gain >= JUST_BELOW * c.score * curvature


cdef inline void consider(
    csr_state* s, choice* c, Py_ssize_t i, double q
) noexcept nogil:
    """Take i, whose entry of row j is q, if it is better than the best so far.

    Of equal scores the first index wins, as in the loop over all (smo_partner).
    """
    cdef double gain = -s.tree.level[0][i].high - c.g
    cdef double curvature, score
    if not may_win(s, c, gain, s.least_diagonal, q):
        return
    curvature = max(s.Q.diagonal[i] - 2.0 * q + c.diagonal, s.floor)
    score = gain * gain / curvature
    if score > c.score or (score == c.score and i < c.i):
        c.i, c.score, c.gain, c.q = i, score, gain, q


cdef Py_ssize_t find_entry(
    const sparse_matrix* Q, Py_ssize_t i, Py_ssize_t j
) noexcept nogil:
    """Where Q_ij is among the entries, or -1."""
    cdef Py_ssize_t first = Q.starts[i], end = Q.starts[i + 1], middle
    while first < end:
        middle = (first + end) >> 1
        if Q.columns[middle] < j:
            first = middle + 1
        else:
            end = middle
    return first if first < Q.starts[i + 1] and Q.columns[first] == j else -1


cdef void search(
    csr_state* s, choice* c, int level, Py_ssize_t node
) noexcept nogil:
    """Consider what may be better below the node, except for neighbours of j.

    The bound of a node is the score of its largest gradient and its smallest diagonal
    entry. Rounding keeps the order of the two, so that none is missed by a bit.
    """
    cdef Py_ssize_t child, end = end_of_children(&s.tree, level, node)
    cdef double gain, bound
    node = node << SHIFT
    s.looks += end - node
    level -= 1
    for child in range(node, end):
        gain = -s.tree.level[level][child].high - c.g
        if not may_win(s, c, gain, s.diagonal[level][child], 0.0):
            continue
        if level == 0:
            if find_entry(&s.Q, c.j, child) < 0:
                consider(s, c, child, 0.0)
            continue
        bound = gain * gain / max(s.diagonal[level][child] + c.diagonal, s.floor)
        if bound > c.score or (
            bound == c.score and child << (SHIFT * level) < c.i
        ):
            search(s, c, level, child)
    # so that a bound that was too good is not looked behind again
    level, node = level + 1, node >> SHIFT
    s.tree.level[level][node] = least_child(&s.tree, level, node)


cdef inline void prefetch(const csr_state* s, Py_ssize_t i) noexcept nogil:
    """Ask for what a step reads of point i, most of which is in no near cache."""
    cdef Py_ssize_t k = s.Q.starts[i], end = s.Q.starts[i + 1]
    cdsk_prefetch(&s.x[i])
    cdsk_prefetch(&s.Q.diagonal[i])
    while k < end:
        cdsk_prefetch(&s.Q.columns[k])
        cdsk_prefetch(&s.Q.values[k])
        cdsk_prefetch(&s.Q.values[min(k + 8, end - 1)])
        k += 16


cdef inline void prefetch_gradients(const csr_state* s, Py_ssize_t i) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(s.Q.starts[i], s.Q.starts[i + 1]):
        cdsk_prefetch(&s.tree.level[0][s.Q.columns[k]])


cdef void choose_partner(csr_state* s, choice* c) noexcept nogil:
    """The second-order choice of i, for j."""
    cdef Py_ssize_t k
    prefetch(s, c.j)
    prefetch(s, c.highest)
    prefetch_gradients(s, c.j)
    prefetch_gradients(s, c.highest)
    c.g, c.diagonal = s.tree.level[0][c.j].low, s.Q.diagonal[c.j]
    c.i, c.score = -1, 0.0
    # most likely the one; a good start saves looks at the others
    k = find_entry(&s.Q, c.j, c.highest)
    consider(s, c, c.highest, s.Q.values[k] if k >= 0 else 0.0)
    for k in range(s.Q.starts[c.j], s.Q.starts[c.j + 1]):
        consider(s, c, s.Q.columns[k], s.Q.values[k])
    if s.tree.top > 0:
        search(s, c, s.tree.top, 0)


cdef void add_to_gradients(
    csr_state* s, const int* places, const double* difference, double step,
    Py_ssize_t m,
) noexcept nogil:
    """g += step * difference at m different places, at most TOGETHER."""
    cdef double[TOGETHER] g
    cdef double low, high
    cdef pair ends
    cdef Py_ssize_t k
    for k in range(m):
        g[k] = gradient_of(s.tree.level[0][places[k]])
    # the loop of the dense solver, which rounds as it does
    simd.smo_update(g, difference, zeros, step, zeros, zeros, m, &low, &high)
    for k in range(m):
        ends = s.tree.level[0][places[k]]
        ends.low = g[k] if ends.low != HUGE_VAL else HUGE_VAL
        ends.high = -g[k] if ends.high != HUGE_VAL else HUGE_VAL
        put_leaf(&s.tree, places[k], ends)


cdef void update(
    csr_state* s, Py_ssize_t i, Py_ssize_t j, double q_ij, double step
) noexcept nogil:
    """g += step (Q_j - Q_i), each entry of both rows once."""
    cdef const int* columns = s.Q.columns
    cdef const double* values = s.Q.values
    cdef Py_ssize_t a = s.Q.starts[j], a_end = s.Q.starts[j + 1]
    cdef Py_ssize_t b = s.Q.starts[i], b_end = s.Q.starts[i + 1], m
    cdef int[TOGETHER] places
    cdef double[TOGETHER] difference
    cdef double[2] g
    cdef double[2] own
    cdef double low, high
    cdef bint in_a, in_b
    s.looks += a_end - a + b_end - b
    # i and j are left out: they come last, with the diagonal
    while a < a_end or b < b_end:
        m = 0
        # no branch on which comes first: it cannot be foreseen
        while a < a_end and b < b_end and m < TOGETHER:
            in_a, in_b = columns[a] <= columns[b], columns[b] <= columns[a]
            places[m] = min(columns[a], columns[b])
            difference[m] = in_a * values[a] - in_b * values[b]
            m += (places[m] != i) & (places[m] != j)
            a += in_a
            b += in_b
        while b == b_end and a < a_end and m < TOGETHER:
            places[m], difference[m] = columns[a], values[a]
            m += places[m] != i
            a += 1
        while a == a_end and b < b_end and m < TOGETHER:
            places[m], difference[m] = columns[b], -values[b]
            m += places[m] != j
            b += 1
        add_to_gradients(s, places, difference, step, m)
    own[0], own[1] = s.Q.diagonal[j] - q_ij, q_ij - s.Q.diagonal[i]
    g[0] = gradient_of(s.tree.level[0][j])
    g[1] = gradient_of(s.tree.level[0][i])
    simd.smo_update(g, own, zeros, step, zeros, zeros, 2, &low, &high)
    put_leaf(&s.tree, j, ends_of(g[0], s.x[j], s.upper))
    put_leaf(&s.tree, i, ends_of(g[1], s.x[i], s.upper))


cdef double csr_gap(csr_state* s, choice* c) noexcept nogil:
    """The KKT gap; sets j and the largest gradient."""
    c.j, c.highest = first_lowest(&s.tree), first_highest(&s.tree)
    return -s.tree.level[0][c.highest].high - s.tree.level[0][c.j].low


cdef Py_ssize_t run_csr(
    csr_state* s, double tol, Py_ssize_t max_steps, Py_ssize_t max_looks, int* status
) noexcept nogil:
    """At most max_steps steps, fewer after max_looks; returns how many were made."""
    cdef Py_ssize_t step
    cdef double t, curvature
    cdef choice c
    s.looks = 0
    for step in range(max_steps):
        if not csr_gap(s, &c) > tol:
            status[0] = CONVERGED
            return step
        if s.looks > max_looks:
            status[0] = MAX_ITER
            return step
        choose_partner(s, &c)
        if c.i < 0:
            status[0] = STALLED
            return step
        curvature = max(s.Q.diagonal[c.i] + c.diagonal - 2.0 * c.q, s.floor)
        t = move_weight(&s.x[c.i], &s.x[c.j], c.gain / (2.0 * curvature), s.upper)
        if t == 0.0:
            status[0] = STALLED
            return step
        update(s, c.i, c.j, c.q, 2.0 * t)
    status[0] = MAX_ITER if csr_gap(s, &c) > tol else CONVERGED
    return max_steps


cdef bint is_csr(const sparse_matrix* Q) noexcept nogil:
    """Whether columns ascend in each row, lie within the matrix and leave out i = j."""
    cdef Py_ssize_t i, k
    cdef int before
    if Q.starts[0] != 0:
        return False
    for i in range(Q.n):
        if Q.starts[i] > Q.starts[i + 1]:
            return False
    for i in range(Q.n):
        before = -1
        for k in range(Q.starts[i], Q.starts[i + 1]):
            if not before < Q.columns[k] < Q.n or Q.columns[k] == i:
                return False
            before = Q.columns[k]
    return True


cdef void start_csr(
    csr_state* s, const sparse_matrix* Q, double* x, const double* g, double upper,
    double* work,            # (3 n + 64,)
) noexcept nogil:
    """Fill the state for weights x with gradient g."""
    cdef Py_ssize_t i, child, n = Q.n, n_pairs
    cdef double largest = 1e-300
    cdef int level
    cdef pair* leaves = <pair*> work
    s.Q, s.x, s.upper = Q[0], x, upper
    n_pairs = shape_tree(&s.tree, n)
    for i in range(n):
        largest = max(largest, Q.diagonal[i])
        leaves[i] = ends_of(g[i], x[i], upper)
    s.floor = CURVATURE_FLOOR * largest
    build_tree(&s.tree, leaves)
    s.diagonal[0] = <double*> Q.diagonal
    work += 2 * n_pairs
    for level in range(1, s.tree.top + 1):
        s.diagonal[level] = work
        work += s.tree.size[level]
        for i in range(s.tree.size[level]):
            s.diagonal[level][i] = HUGE_VAL
            for child in range(i << SHIFT, end_of_children(&s.tree, level, i)):
                s.diagonal[level][i] = min(
                    s.diagonal[level][i], s.diagonal[level - 1][child]
                )
    s.least_diagonal = s.diagonal[s.tree.top][0]


cdef void copy_gradients(const csr_state* s, double* g) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(s.Q.n):
        g[i] = gradient_of(s.tree.level[0][i])


# ---------------------------------------------------------------- from Python


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
    if isinstance(rows, SparseRows):
        return _solve_csr(rows, x, g, upper, tol, max_iter)
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


cdef _solve_csr(
    SparseRows rows, double[::1] x, double[::1] g, double upper, double tol,
    Py_ssize_t max_iter,
):
    cdef Py_ssize_t n_iter = 0
    cdef int status = MAX_ITER
    cdef double[::1] work = np.empty(3 * rows.n + 64)
    cdef csr_state s
    cdef choice c
    cdef bint valid
    with nogil:
        valid = is_csr(&rows.matrix)
    if not valid:
        raise ValueError(
            "columns of a sparse matrix must ascend in each row, lie within the matrix "
            "and leave out the diagonal"
        )
    with nogil:
        start_csr(&s, &rows.matrix, &x[0], &g[0], upper, &work[0])
    try:
        while True:
            with nogil:
                n_iter += run_csr(&s, tol, max_iter - n_iter, SPARSE_SLICE, &status)
            if status != MAX_ITER or n_iter >= max_iter:
                break
            PyErr_CheckSignals()
    finally:
        copy_gradients(&s, &g[0])
    return Status(status), max(csr_gap(&s, &c), 0.0), n_iter


# ---------------------------------------------------------------- for compiled code


cdef bint is_feasible(
    Py_ssize_t n, const double* p, double upper, double tol, Py_ssize_t max_iter,
    const double* x,
) noexcept nogil:
    """Whether x is a start, and the rest within range."""
    cdef Py_ssize_t i
    cdef double total = 0.0
    if n < 1 or max_iter < 0 or not upper > 0.0 or not tol >= 0.0:
        return False
    for i in range(n):
        total += x[i]
        if not (0.0 <= x[i] <= upper * (1.0 + 1e-9) and fabs(p[i]) <= DBL_MAX):
            return False
    return -1e-6 <= total - 1.0 <= 1e-6


cdef int finish(
    Py_ssize_t n, const double* gradient, double* gap, int status
) noexcept nogil:
    cdef Py_ssize_t i
    gap[0] = max(gap[0], 0.0)
    for i in range(n):
        # NaN compares as no gap; say what it is
        if not fabs(gradient[i]) <= DBL_MAX:
            gap[0] = HUGE_VAL
            return STALLED
    return status


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
    cdef const double* q
    if upper > 1.0:
        upper = 1.0  # no x_i exceeds it anyway, and the snap to a bound is relative
    if not is_feasible(n, p, upper, tol, max_iter, x):
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
    gap[0] = s.high - s.low
    return finish(n, gradient, gap, status)


cdef int cdsk_solve_qp_csr(
    Py_ssize_t n, const Py_ssize_t* indptr, const int* indices, const double* values,
    const double* diagonal, const double* p, double upper,
    double tol, Py_ssize_t max_iter,
    double* x, double* gradient, double* work,
    double* gap, Py_ssize_t* n_iter,
) noexcept nogil:
    cdef sparse_matrix Q = sparse_matrix(n, indptr, indices, values, diagonal)
    cdef csr_state s
    cdef choice c
    cdef int status = MAX_ITER
    cdef Py_ssize_t i, k
    if upper > 1.0:
        upper = 1.0
    if n > INT_MAX or not is_feasible(n, p, upper, tol, max_iter, x) or not is_csr(&Q):
        return -1
    for i in range(n):
        x[i] = min(x[i], upper)
        gradient[i] = p[i]
    for i in range(n):
        if x[i] > 0.0:
            gradient[i] += 2.0 * x[i] * diagonal[i]
            for k in range(indptr[i], indptr[i + 1]):
                gradient[indices[k]] += 2.0 * x[i] * values[k]
    start_csr(&s, &Q, x, gradient, upper, work)
    n_iter[0] = run_csr(&s, tol, max_iter, PY_SSIZE_T_MAX, &status)
    copy_gradients(&s, gradient)
    gap[0] = csr_gap(&s, &c)
    return finish(n, gradient, gap, status)


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
