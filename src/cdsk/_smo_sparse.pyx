# SPDX-License-Identifier: BSD-3-Clause
"""SMO for a sparse Q: the steps of _smo.pyx at O(k) each (tests/test_smo.py).

Q has k entries per row. The steps are those of the dense solver, in the same order and
with the same rounding. The gradients are the leaves of a tree of minima
(_min_tree.pxd), whose root gives j and the KKT gap. The partner i is

    - a neighbor of j, by its entry Q_ij, or
    - any other point, where the curvature is Q_ii + Q_jj: it lies below a node whose
      largest gradient and smallest diagonal entry allow a better score than the best
      one so far. With a constant diagonal that is the largest gradient of all.
"""
import numpy as np

from libc.math cimport HUGE_VAL

from cdsk._min_tree cimport (
    MAX_LEVELS,
    SHIFT,
    argmin_high,
    argmin_low,
    build_tree,
    children_end,
    min_of_children,
    min_tree,
    pair,
    set_leaf,
    set_sizes,
)
from cdsk._rows cimport SparseRows, sparse_matrix
from cdsk._signals cimport check_signals, gather_work, work_interval
from cdsk._simd cimport cdsk_simd, cdsk_simd_select
from cdsk._smo_common cimport (
    SMO_CONVERGED,
    SMO_INVALID,
    SMO_MAX_ITER,
    SMO_STALLED,
    final_status,
    min_curvature,
    move_weight,
)

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

# Gradients that are updated at once.
cdef enum:
    BATCH = 64

# A score is skipped without dividing only if it is smaller than the best one by more
# than rounding.
cdef double SCORE_MARGIN = 1.0 - 1e-12

cdef double[BATCH] zeros     # static memory, which C fills with zeros


cdef struct sparse_state:
    sparse_matrix Q
    double* x
    double upper
    double min_curvature
    double min_diagonal
    min_tree tree            # (g_i or inf where x_i = upper, -g_i or inf where x_i = 0)
    double* diagonal[MAX_LEVELS]      # smallest diagonal entry below each node
    Py_ssize_t work_done     # entries and nodes visited


cdef struct working_pair:
    Py_ssize_t j             # its weight increases
    double g, diagonal       # of j
    Py_ssize_t highest       # largest gradient among positive weights
    Py_ssize_t i             # its weight decreases; -1: none yet
    double score, gain, q    # of i; q is Q_ij


cdef inline double gradient_of(pair leaf) noexcept nogil:
    return leaf.low if leaf.low < HUGE_VAL else -leaf.high


cdef inline pair make_leaf(double g, double x, double upper) noexcept nogil:
    return pair(g if x < upper else HUGE_VAL, -g if x > 0.0 else HUGE_VAL)


cdef inline bint may_be_best(
    const sparse_state* s, const working_pair* c, double gain, double diagonal, double q
) noexcept nogil:
    """Return whether this gain and diagonal may give the best score; no division."""
    cdef double curvature = max(diagonal - 2.0 * q + c.diagonal, s.min_curvature)
    return gain > 0.0 and gain * gain >= SCORE_MARGIN * c.score * curvature


cdef inline void consider_partner(
    sparse_state* s, working_pair* c, Py_ssize_t i, double q
) noexcept nogil:
    """Take i with Q_ij = q as the partner if its score is the best one so far.

    Of equal scores the smallest index wins, as in smo_partner.
    """
    cdef double gain = -s.tree.level[0][i].high - c.g
    cdef double curvature, score
    if not may_be_best(s, c, gain, s.min_diagonal, q):
        return
    curvature = max(s.Q.diagonal[i] - 2.0 * q + c.diagonal, s.min_curvature)
    score = gain * gain / curvature
    if score > c.score or (score == c.score and i < c.i):
        c.i, c.score, c.gain, c.q = i, score, gain, q


cdef Py_ssize_t find_entry(
    const sparse_matrix* Q, Py_ssize_t i, Py_ssize_t j
) noexcept nogil:
    """Return the position of Q_ij among the entries, or -1."""
    cdef Py_ssize_t first = Q.starts[i], end = Q.starts[i + 1], middle
    while first < end:
        middle = (first + end) >> 1
        if Q.columns[middle] < j:
            first = middle + 1
        else:
            end = middle
    return first if first < Q.starts[i + 1] and Q.columns[first] == j else -1


cdef void search_node(
    sparse_state* s, working_pair* c, int level, Py_ssize_t node
) noexcept nogil:
    """Consider the partners below a node, except for neighbors of j.

    The bound of a node is the score of its largest gradient and its smallest diagonal
    entry. Rounding is monotonic, so that no partner is missed by the last bit.
    """
    cdef Py_ssize_t child, end = children_end(&s.tree, level, node)
    cdef double gain, bound
    node = node << SHIFT
    s.work_done += end - node
    level -= 1
    for child in range(node, end):
        gain = -s.tree.level[level][child].high - c.g
        if not may_be_best(s, c, gain, s.diagonal[level][child], 0.0):
            continue
        if level == 0:
            if find_entry(&s.Q, c.j, child) < 0:
                consider_partner(s, c, child, 0.0)
            continue
        bound = gain * gain / max(
            s.diagonal[level][child] + c.diagonal, s.min_curvature
        )
        if bound > c.score or (
            bound == c.score and child << (SHIFT * level) < c.i
        ):
            search_node(s, c, level, child)
    # a bound that was too good must not lead here again
    level, node = level + 1, node >> SHIFT
    s.tree.level[level][node] = min_of_children(&s.tree, level, node)


cdef inline void prefetch_row(const sparse_state* s, Py_ssize_t i) noexcept nogil:
    """Prefetch what a step reads of point i, which is rarely in a near cache."""
    cdef Py_ssize_t k = s.Q.starts[i], end = s.Q.starts[i + 1]
    cdsk_prefetch(&s.x[i])
    cdsk_prefetch(&s.Q.diagonal[i])
    while k < end:
        cdsk_prefetch(&s.Q.columns[k])
        cdsk_prefetch(&s.Q.values[k])
        cdsk_prefetch(&s.Q.values[min(k + 8, end - 1)])
        k += 16


cdef inline void prefetch_gradients(
    const sparse_state* s, Py_ssize_t i
) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(s.Q.starts[i], s.Q.starts[i + 1]):
        cdsk_prefetch(&s.tree.level[0][s.Q.columns[k]])


cdef void choose_partner(sparse_state* s, working_pair* c) noexcept nogil:
    """Set i, the second-order choice for j."""
    cdef Py_ssize_t k
    prefetch_row(s, c.j)
    prefetch_row(s, c.highest)
    prefetch_gradients(s, c.j)
    prefetch_gradients(s, c.highest)
    c.g, c.diagonal = s.tree.level[0][c.j].low, s.Q.diagonal[c.j]
    c.i, c.score = -1, 0.0
    # the most likely partner first: a high score prunes the search for others
    k = find_entry(&s.Q, c.j, c.highest)
    consider_partner(s, c, c.highest, s.Q.values[k] if k >= 0 else 0.0)
    for k in range(s.Q.starts[c.j], s.Q.starts[c.j + 1]):
        consider_partner(s, c, s.Q.columns[k], s.Q.values[k])
    if s.tree.top > 0:
        search_node(s, c, s.tree.top, 0)


cdef void add_to_gradients(
    sparse_state* s, const int* indices, const double* difference, double step,
    Py_ssize_t m,
) noexcept nogil:
    """Compute g += step * difference at m <= BATCH different indices."""
    cdef double[BATCH] g
    cdef double low, high
    cdef pair leaf
    cdef Py_ssize_t k
    for k in range(m):
        g[k] = gradient_of(s.tree.level[0][indices[k]])
    # by the loop of the dense solver, for the same rounding
    simd.smo_update(g, difference, zeros, step, zeros, zeros, m, &low, &high)
    for k in range(m):
        leaf = s.tree.level[0][indices[k]]
        leaf.low = g[k] if leaf.low != HUGE_VAL else HUGE_VAL
        leaf.high = -g[k] if leaf.high != HUGE_VAL else HUGE_VAL
        set_leaf(&s.tree, indices[k], leaf)


cdef void update_gradients(
    sparse_state* s, Py_ssize_t i, Py_ssize_t j, double q_ij, double step
) noexcept nogil:
    """Compute g += step (Q_j - Q_i), each entry of both rows once."""
    cdef const int* columns = s.Q.columns
    cdef const double* values = s.Q.values
    cdef Py_ssize_t a = s.Q.starts[j], a_end = s.Q.starts[j + 1]
    cdef Py_ssize_t b = s.Q.starts[i], b_end = s.Q.starts[i + 1], m
    cdef int[BATCH] indices
    cdef double[BATCH] difference
    cdef double[2] g
    cdef double[2] difference_ij
    cdef double low, high
    cdef bint in_a, in_b
    s.work_done += a_end - a + b_end - b
    # without i and j, which need the diagonal and come last
    while a < a_end or b < b_end:
        m = 0
        # no branch on which column is smaller: it cannot be predicted
        while a < a_end and b < b_end and m < BATCH:
            in_a, in_b = columns[a] <= columns[b], columns[b] <= columns[a]
            indices[m] = min(columns[a], columns[b])
            difference[m] = in_a * values[a] - in_b * values[b]
            m += (indices[m] != i) & (indices[m] != j)
            a += in_a
            b += in_b
        while b == b_end and a < a_end and m < BATCH:
            indices[m], difference[m] = columns[a], values[a]
            m += indices[m] != i
            a += 1
        while a == a_end and b < b_end and m < BATCH:
            indices[m], difference[m] = columns[b], -values[b]
            m += indices[m] != j
            b += 1
        add_to_gradients(s, indices, difference, step, m)
    difference_ij[0] = s.Q.diagonal[j] - q_ij
    difference_ij[1] = q_ij - s.Q.diagonal[i]
    g[0] = gradient_of(s.tree.level[0][j])
    g[1] = gradient_of(s.tree.level[0][i])
    simd.smo_update(g, difference_ij, zeros, step, zeros, zeros, 2, &low, &high)
    set_leaf(&s.tree, j, make_leaf(g[0], s.x[j], s.upper))
    set_leaf(&s.tree, i, make_leaf(g[1], s.x[i], s.upper))


cdef double find_gap(sparse_state* s, working_pair* c) noexcept nogil:
    """Return the KKT gap; set j and the largest gradient."""
    c.j, c.highest = argmin_low(&s.tree), argmin_high(&s.tree)
    return -s.tree.level[0][c.highest].high - s.tree.level[0][c.j].low


cdef Py_ssize_t run(
    sparse_state* s, double tol, Py_ssize_t max_steps, Py_ssize_t max_work, int* status
) noexcept nogil:
    """Take at most max_steps steps, fewer after max_work; return how many."""
    cdef Py_ssize_t step
    cdef double t, curvature
    cdef working_pair c
    s.work_done = 0
    for step in range(max_steps):
        if not find_gap(s, &c) > tol:
            status[0] = SMO_CONVERGED
            return step
        if s.work_done > max_work:
            status[0] = SMO_MAX_ITER
            return step
        choose_partner(s, &c)
        if c.i < 0:
            status[0] = SMO_STALLED
            return step
        curvature = max(
            s.Q.diagonal[c.i] + c.diagonal - 2.0 * c.q, s.min_curvature
        )
        t = move_weight(&s.x[c.i], &s.x[c.j], c.gain / (2.0 * curvature), s.upper)
        if t == 0.0:
            status[0] = SMO_STALLED
            return step
        update_gradients(s, c.i, c.j, c.q, 2.0 * t)
    status[0] = SMO_MAX_ITER if find_gap(s, &c) > tol else SMO_CONVERGED
    return max_steps


cdef bint has_valid_pattern(const sparse_matrix* Q) noexcept nogil:
    """Return whether columns ascend, lie within the matrix and are off the diagonal."""
    cdef Py_ssize_t i, k
    cdef int previous
    if Q.starts[0] != 0:
        return False
    for i in range(Q.n):
        if Q.starts[i] > Q.starts[i + 1]:
            return False
    for i in range(Q.n):
        previous = -1
        for k in range(Q.starts[i], Q.starts[i + 1]):
            if not previous < Q.columns[k] < Q.n or Q.columns[k] == i:
                return False
            previous = Q.columns[k]
    return True


cdef void initialize(
    sparse_state* s, const sparse_matrix* Q, double* x, const double* g, double upper,
    double* work,            # (3 n + 64,)
) noexcept nogil:
    """Fill the state for weights x with gradient g."""
    cdef Py_ssize_t i, child, n = Q.n, n_pairs
    cdef int level
    cdef pair* leaves = <pair*> work
    s.Q, s.x, s.upper = Q[0], x, upper
    s.min_curvature = min_curvature(Q.diagonal, n)
    n_pairs = set_sizes(&s.tree, n)
    for i in range(n):
        leaves[i] = make_leaf(g[i], x[i], upper)
    build_tree(&s.tree, leaves)
    s.diagonal[0] = <double*> Q.diagonal
    work += 2 * n_pairs
    for level in range(1, s.tree.top + 1):
        s.diagonal[level] = work
        work += s.tree.size[level]
        for i in range(s.tree.size[level]):
            s.diagonal[level][i] = HUGE_VAL
            for child in range(i << SHIFT, children_end(&s.tree, level, i)):
                s.diagonal[level][i] = min(
                    s.diagonal[level][i], s.diagonal[level - 1][child]
                )
    s.min_diagonal = s.diagonal[s.tree.top][0]


cdef void copy_gradients(const sparse_state* s, double* g) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(s.Q.n):
        g[i] = gradient_of(s.tree.level[0][i])


# ---------------------------------------------------------------- for _smo.pyx


cdef Py_ssize_t solve_sparse(
    SparseRows rows, double[::1] x, double[::1] g, double upper, double tol,
    Py_ssize_t max_iter, int* status, double* gap,
) except -1:
    cdef Py_ssize_t n_iter = 0
    cdef Py_ssize_t max_work = <Py_ssize_t> (work_interval() / gather_work(1.0))
    cdef double[::1] work = np.empty(3 * rows.n + 64)
    cdef sparse_state s
    cdef working_pair c
    cdef bint is_valid
    with nogil:
        is_valid = has_valid_pattern(&rows.matrix)
    if not is_valid:
        raise ValueError(
            "The columns of a sparse matrix must ascend in each row, lie within the "
            "matrix and leave out the diagonal."
        )
    with nogil:
        initialize(&s, &rows.matrix, &x[0], &g[0], upper, &work[0])
    try:
        while True:
            with nogil:
                n_iter += run(&s, tol, max_iter - n_iter, max_work, status)
            if status[0] != SMO_MAX_ITER or n_iter >= max_iter:
                break
            check_signals(gather_work(s.work_done))
    finally:
        copy_gradients(&s, &g[0])
    gap[0] = find_gap(&s, &c)
    return n_iter


cdef int solve_arrays(
    Py_ssize_t n, const Py_ssize_t* indptr, const int* indices, const double* values,
    const double* diagonal, const double* p, double upper,
    double tol, Py_ssize_t max_iter,
    double* x, double* gradient, double* work,
    double* gap, Py_ssize_t* n_iter,
) noexcept nogil:
    cdef sparse_matrix Q = sparse_matrix(n, indptr, indices, values, diagonal)
    cdef sparse_state s
    cdef working_pair c
    cdef int status = SMO_MAX_ITER
    cdef Py_ssize_t i, k
    if not has_valid_pattern(&Q):
        return SMO_INVALID
    for i in range(n):
        x[i] = min(x[i], upper)
        gradient[i] = p[i]
    for i in range(n):
        if x[i] > 0.0:
            gradient[i] += 2.0 * x[i] * diagonal[i]
            for k in range(indptr[i], indptr[i + 1]):
                gradient[indices[k]] += 2.0 * x[i] * values[k]
    initialize(&s, &Q, x, gradient, upper, work)
    n_iter[0] = run(&s, tol, max_iter, PY_SSIZE_T_MAX, &status)
    copy_gradients(&s, gradient)
    gap[0] = find_gap(&s, &c)
    return final_status(n, gradient, gap, status)
