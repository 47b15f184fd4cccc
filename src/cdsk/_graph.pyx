# SPDX-License-Identifier: BSD-3-Clause
"""Sparse symmetric matrices as graphs (tests/test_multilevel.py).

    product(...)         A V for a block of vectors V
    multiply(...)        A v for each row v of an array
    scale_entries(...)   diag(f) A diag(f)
    similarity(...)      S_ij = 2 (alpha_i + alpha_j - penalty alpha_i alpha_j) K_ij
    components(...)      connected components by edges above a bound
    aggregate(...)       groups of strongly connected neighbors
    coarsen(...)         P' A P, the matrix between such groups

One thread sums a row in the order of its entries: results do not depend on the number
of threads.
"""
import numpy as np

from cython cimport floating
from cython.parallel cimport prange, threadid
from libc.math cimport fmax, fmin

from cdsk._signals cimport add_work, check_signals, gather_work, work_interval
from cdsk._threads cimport useful_threads

ctypedef fused index:
    int
    long long


cdef inline Py_ssize_t rows_at_once(
    double work, Py_ssize_t n_rows, int n_threads
) noexcept nogil:
    """Return how many of n_rows rows to compute between two checks of signals.

    ``work`` is that of all rows.
    """
    return max(
        n_threads, <Py_ssize_t> min(work_interval() / max(work, 1.0) * n_rows, n_rows)
    )


cdef void multiply_row(
    const index* columns, const floating* values, Py_ssize_t count,
    const floating* block, Py_ssize_t m, floating* out,
) noexcept nogil:
    """Multiply a row by eight columns at a time, whose sums stay in registers."""
    cdef floating[8] sums
    cdef Py_ssize_t entry, column, first = 0, rest
    cdef const floating* source
    cdef floating value
    while first < m:
        rest = min(8, m - first)
        for column in range(8):
            sums[column] = 0.0
        if rest == 8:
            for entry in range(count):
                value = values[entry]
                source = block + columns[entry] * m + first
                for column in range(8):
                    sums[column] += value * source[column]
        else:
            for entry in range(count):
                value = values[entry]
                source = block + columns[entry] * m + first
                for column in range(rest):
                    sums[column] += value * source[column]
        for column in range(rest):
            out[first + column] = sums[column]
        first += rest


def product(
    const index[::1] starts,      # (n_rows + 1,) in, CSR
    const index[::1] columns,     # (n_entries,) in
    const floating[::1] values,   # (n_entries,) in
    const floating[:, ::1] block,  # (n_columns, m) in
    int n_threads,
):
    """Return the matrix times the columns of the block (n_rows, m)."""
    cdef Py_ssize_t n = starts.shape[0] - 1, m = block.shape[1]
    cdef Py_ssize_t i, begin, end, step
    cdef double work = <double> values.shape[0] * m
    cdef floating[:, ::1] out = np.zeros((n, m), np.asarray(block).dtype)
    if n == 0 or m == 0 or values.shape[0] == 0:
        return np.asarray(out)
    step = rows_at_once(work, n, n_threads)
    for begin in range(0, n, step):
        end = min(begin + step, n)
        for i in prange(
            begin, end, nogil=True, schedule="static",
            num_threads=useful_threads(n_threads, work / n * (end - begin)),
        ):
            multiply_row(
                &columns[0] + starts[i], &values[0] + starts[i],
                starts[i + 1] - starts[i], &block[0, 0], m, &out[i, 0],
            )
        check_signals(work / n * (end - begin))
    return np.asarray(out)


def multiply(matrix, vectors, int n_threads):
    """Return A v for each row v of ``vectors`` (m, n), A symmetric (CSR)."""
    columns = np.ascontiguousarray(vectors.T)
    image = product(matrix.indptr, matrix.indices, matrix.data, columns, n_threads)
    return np.ascontiguousarray(image.T)


cdef inline double similarity_of(
    double value, double a_i, double a_j, double penalty
) noexcept nogil:
    """Return S_ij; weights of at most 1 / penalty make it >= 0 up to rounding."""
    return 2.0 * fmax(a_i + a_j - penalty * (a_i * a_j), 0.0) * value


def similarity(
    const index[::1] starts,      # (n + 1,) in, CSR
    const index[::1] columns,     # (n_entries,) in
    const double[::1] values,     # (n_entries,) in, K_ij
    const double[::1] weights,    # (n,) in
    double penalty,
    int n_threads,
):
    """Return S_ij = 2 (a_i + a_j - penalty a_i a_j) K_ij for every entry."""
    cdef Py_ssize_t n = starts.shape[0] - 1, i, entry, begin, end, step
    cdef double[::1] out = np.empty(values.shape[0])
    cdef double work = gather_work(values.shape[0])
    cdef int threads = useful_threads(n_threads, values.shape[0])
    step = rows_at_once(work, n, threads)
    for begin in range(0, n if values.shape[0] else 0, step):
        end = min(begin + step, n)
        for i in prange(
            begin, end, nogil=True, schedule="static", num_threads=threads
        ):
            for entry in range(starts[i], starts[i + 1]):
                out[entry] = similarity_of(
                    values[entry], weights[i], weights[columns[entry]], penalty
                )
        check_signals(work / n * (end - begin))
    return np.asarray(out)


def scale_entries(
    const index[::1] starts,      # (n + 1,) in, CSR
    const index[::1] columns,     # (n_entries,) in
    const double[::1] values,     # (n_entries,) in
    const double[::1] factors,    # (n,) in
    int n_threads,
):
    """Return f_i f_j v_ij for every entry, exactly symmetric if v is."""
    cdef Py_ssize_t n = starts.shape[0] - 1, i, entry, begin, end, step
    cdef double[::1] out = np.empty(values.shape[0])
    cdef double work = gather_work(values.shape[0])
    cdef int threads = useful_threads(n_threads, values.shape[0])
    step = rows_at_once(work, n, threads)
    for begin in range(0, n if values.shape[0] else 0, step):
        end = min(begin + step, n)
        for i in prange(
            begin, end, nogil=True, schedule="static", num_threads=threads
        ):
            for entry in range(starts[i], starts[i + 1]):
                # the product of both factors first: it commutes
                out[entry] = values[entry] * (factors[i] * factors[columns[entry]])
        check_signals(work / n * (end - begin))
    return np.asarray(out)


def components(
    const index[::1] starts,      # (n + 1,) in, CSR, symmetric
    const index[::1] columns,     # (n_entries,) in
    const double[::1] values,     # (n_entries,) in
    const double[::1] bounds,     # (n,) in
):
    """Return the number of connected components and the label of every point (n,).

    Points i and j are connected if their entry exceeds the smaller of their bounds.
    Labels are numbered in the order of the first points.
    """
    cdef Py_ssize_t n = starts.shape[0] - 1, first, i, j, entry
    cdef Py_ssize_t n_reached, next_point
    cdef double work_done = 0.0, interval = work_interval()
    cdef int count = 0
    cdef int[::1] label = np.full(n, -1, dtype=np.intc)
    cdef int[::1] queue = np.empty(n, dtype=np.intc)
    with nogil:
        for first in range(n):
            if label[first] >= 0:
                continue
            label[first] = count
            queue[0] = <int> first
            n_reached, next_point = 1, 0
            while next_point < n_reached:
                i = queue[next_point]
                next_point += 1
                add_work(
                    &work_done, gather_work(1 + starts[i + 1] - starts[i]), interval
                )
                for entry in range(starts[i], starts[i + 1]):
                    j = columns[entry]
                    if label[j] < 0 and values[entry] > fmin(bounds[i], bounds[j]):
                        label[j] = count
                        queue[n_reached] = <int> j
                        n_reached += 1
            count += 1
    return count, np.asarray(label)


def aggregate(
    const index[::1] starts,      # (n + 1,) in, CSR, symmetric, >= 0
    const index[::1] columns,     # (n_entries,) in
    const double[::1] values,     # (n_entries,) in
    double strength,
):
    """Return a group for every point (n,) and the number of groups.

    Two points are strongly connected if their entry is at least ``strength`` times the
    smaller one of the largest entries of their rows. A group is a point with all its
    strong neighbors, if none of them has a group yet; each remaining point joins the
    group of its neighbor with the largest entry. A point without neighbors has the
    group -1.
    """
    cdef Py_ssize_t n = starts.shape[0] - 1, i, j, entry, best
    cdef int count = 0
    cdef bint free
    cdef double work_done = 0.0, interval = work_interval()
    cdef int[::1] group = np.full(n, -1, dtype=np.intc)
    cdef int[::1] seeded
    cdef double[::1] largest = np.zeros(n)
    with nogil:
        for i in range(n):
            add_work(&work_done, gather_work(1 + starts[i + 1] - starts[i]), interval)
            for entry in range(starts[i], starts[i + 1]):
                if columns[entry] != i:
                    largest[i] = fmax(largest[i], values[entry])
        for i in range(n):
            add_work(&work_done, gather_work(1 + starts[i + 1] - starts[i]), interval)
            free = group[i] < 0 and largest[i] > 0.0
            for entry in range(starts[i], starts[i + 1]):
                j = columns[entry]
                if not free:
                    break
                if j != i and values[entry] > 0.0 and (
                    values[entry] >= strength * fmin(largest[i], largest[j])
                ):
                    free = group[j] < 0
            if free:
                group[i] = count
                for entry in range(starts[i], starts[i + 1]):
                    j = columns[entry]
                    if values[entry] > 0.0 and (
                        values[entry] >= strength * fmin(largest[i], largest[j])
                    ):
                        group[j] = count
                count += 1
    seeded = group.copy()
    with nogil:
        for i in range(n):
            add_work(&work_done, gather_work(1 + starts[i + 1] - starts[i]), interval)
            if seeded[i] >= 0 or largest[i] == 0.0:
                continue
            best = -1
            for entry in range(starts[i], starts[i + 1]):
                if values[entry] > 0.0 and seeded[columns[entry]] >= 0 and (
                    best < 0 or values[entry] > values[best]
                ):
                    best = entry
            # a strong neighbor has a group, or the point would have one
            group[i] = seeded[columns[best]]
    return np.asarray(group), count


cdef index sum_row(
    const index* starts, const index* columns, const double* values,
    const int* group, const double* root,
    const int* members, Py_ssize_t n_members,
    index* position, index first, index* out_columns, double* out_values,
) noexcept nogil:
    """Sum the rows of a group into entries from ``first`` on; return their end.

    ``position`` (n_groups,) is the position of a group's entry in this row if it is at
    least ``first``. Without ``out_values`` entries are only counted.
    """
    cdef Py_ssize_t member, i, entry
    cdef int other
    cdef index end = first
    for member in range(n_members):
        i = members[member]
        for entry in range(starts[i], starts[i + 1]):
            other = group[columns[entry]]
            if other < 0:
                continue
            if position[other] < first:
                position[other] = end
                if out_values != NULL:
                    out_columns[end] = other
                    out_values[end] = 0.0
                end += 1
            if out_values != NULL:
                out_values[position[other]] += values[entry] * (
                    root[i] * root[columns[entry]]
                )
    return end


def coarsen(
    const index[::1] starts,      # (n + 1,) in, CSR
    const index[::1] columns,     # (n_entries,) in
    const double[::1] values,     # (n_entries,) in
    const int[::1] group,         # (n,) in, -1: none
    const double[::1] root,       # (n,) in
    Py_ssize_t count,
    int n_threads,
):
    """Return values, columns and starts of P' A P, the matrix between groups.

    P_iG = r_i if point i is in group G, so that the entry of groups G and H is
    sum_{i in G, j in H} r_i r_j A_ij. The entries of a row are in the order of their
    first terms.
    """
    cdef Py_ssize_t n = starts.shape[0] - 1, row, thread, begin, end
    cdef double work = gather_work(values.shape[0])
    cdef int threads = useful_threads(n_threads, values.shape[0])
    cdef Py_ssize_t step = rows_at_once(work, count, threads)
    groups = np.asarray(group)
    sizes = np.bincount(groups[groups >= 0], minlength=count)
    cdef int[::1] bounds = np.append(0, np.cumsum(sizes)).astype(np.intc)
    by_group = np.argsort(groups, kind="stable")
    cdef int[::1] members = by_group[n - bounds[count] :].astype(np.intc)
    integer = np.asarray(starts).dtype
    cdef index[::1] ends = np.zeros(threads, integer)
    cdef index[:, ::1] position = np.full((threads, count), -1, integer)
    cdef index[::1] out_starts = np.zeros(count + 1, integer)
    cdef index[::1] out_columns
    cdef double[::1] out_values
    if members.shape[0] == 0 or values.shape[0] == 0:
        return np.empty(0), np.empty(0, integer), np.asarray(out_starts)
    cdef const index* first_start = &starts[0]
    cdef const index* first_column = &columns[0]
    cdef const double* first_value = &values[0]
    cdef const int* point_group = &group[0]
    cdef const double* roots = &root[0]
    cdef const int* member = &members[0]
    cdef const int* bound = &bounds[0]
    cdef index* thread_end = &ends[0]
    cdef index* positions = &position[0, 0]
    cdef index* row_start = &out_starts[0]
    cdef index* new_column = NULL
    cdef double* new_value = NULL
    # two passes: count the entries of every row, then sum them; each thread visits its
    # rows in ascending order
    for begin in range(0, count, step):
        end = min(begin + step, count)
        for row in prange(begin, end, nogil=True, schedule="static",
                          num_threads=threads):
            thread = threadid()
            row_start[row + 1] = -thread_end[thread]
            thread_end[thread] = sum_row(
                first_start, first_column, first_value, point_group, roots,
                member + bound[row], bound[row + 1] - bound[row],
                positions + thread * count, thread_end[thread], NULL, NULL,
            )
            row_start[row + 1] += thread_end[thread]
        check_signals(work / count * (end - begin))
    np.cumsum(out_starts, out=np.asarray(out_starts))
    out_columns = np.empty(out_starts[count], integer)
    out_values = np.empty(out_starts[count])
    if out_starts[count] == 0:
        return np.asarray(out_values), np.asarray(out_columns), np.asarray(out_starts)
    new_column, new_value = &out_columns[0], &out_values[0]
    position[:] = -1
    for begin in range(0, count, step):
        end = min(begin + step, count)
        for row in prange(begin, end, nogil=True, schedule="static",
                          num_threads=threads):
            sum_row(
                first_start, first_column, first_value, point_group, roots,
                member + bound[row], bound[row + 1] - bound[row],
                positions + threadid() * count, row_start[row], new_column, new_value,
            )
        check_signals(work / count * (end - begin))
    return np.asarray(out_values), np.asarray(out_columns), np.asarray(out_starts)
