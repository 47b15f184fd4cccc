# SPDX-License-Identifier: BSD-3-Clause
"""Sparse symmetric matrices as graphs (tests/test_multilevel.py).

    product(...)      the matrix times a block of vectors
    scaled(...)       its rows and columns multiplied by factors
    similarity(...)   S of a kernel matrix and weights
    components(...)   points that edges above a bound join
    aggregate(...)    groups of strongly joined neighbours
    coarsened(...)    the matrix between such groups

A row is summed by one thread in the order of its entries: the result does not depend on
the number of threads.
"""
import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from cython cimport floating
from cython.parallel cimport prange, threadid
from libc.math cimport fmax, fmin

from cdsk._threads cimport useful_threads

ctypedef fused index:
    int
    long long

# Multiplications between two looks at pending signals: some 300 ms on one core.
cdef double STRIP = 2e8

# Points whose neighbours are visited between two such looks.
cdef Py_ssize_t SLICE = 100_000


cdef int listen(Py_ssize_t visited) except -1 nogil:
    if visited % SLICE == 0:
        with gil:
            PyErr_CheckSignals()
    return 0


cdef void multiply_row(
    const index* columns, const floating* values, Py_ssize_t count,
    const floating* block, Py_ssize_t m, floating* out,
) noexcept nogil:
    """Eight columns at a time, whose sums stay in registers, then the rest."""
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
    cdef Py_ssize_t i, begin, end, strip
    cdef double work
    cdef floating[:, ::1] out = np.zeros((n, m), np.asarray(block).dtype)
    if n == 0 or m == 0 or values.shape[0] == 0:
        return np.asarray(out)
    work = <double> values.shape[0] * m / n
    strip = max(1, <Py_ssize_t> (STRIP / work))
    for begin in range(0, n, strip):
        end = min(begin + strip, n)
        for i in prange(
            begin, end, nogil=True, schedule="static",
            num_threads=useful_threads(n_threads, work * (end - begin)),
        ):
            multiply_row(
                &columns[0] + starts[i], &values[0] + starts[i],
                starts[i + 1] - starts[i], &block[0, 0], m, &out[i, 0],
            )
        PyErr_CheckSignals()
    return np.asarray(out)


cdef inline double both_ends(
    double value, double a_i, double a_j, double penalty
) noexcept nogil:
    """S_ij, >= 0 for weights up to 1 / penalty, but for rounding."""
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
    cdef Py_ssize_t n = starts.shape[0] - 1, i, entry
    cdef double[::1] out = np.empty(values.shape[0])
    cdef int threads = useful_threads(n_threads, values.shape[0])
    for i in prange(n, nogil=True, schedule="static", num_threads=threads):
        for entry in range(starts[i], starts[i + 1]):
            out[entry] = both_ends(
                values[entry], weights[i], weights[columns[entry]], penalty
            )
    return np.asarray(out)


def scaled(
    const index[::1] starts,      # (n + 1,) in, CSR
    const index[::1] columns,     # (n_entries,) in
    const double[::1] values,     # (n_entries,) in
    const double[::1] factors,    # (n,) in
    int n_threads,
):
    """Return f_i f_j v_ij for every entry, exactly symmetric if v is."""
    cdef Py_ssize_t n = starts.shape[0] - 1, i, entry
    cdef double[::1] out = np.empty(values.shape[0])
    cdef int threads = useful_threads(n_threads, values.shape[0])
    for i in prange(n, nogil=True, schedule="static", num_threads=threads):
        for entry in range(starts[i], starts[i + 1]):
            # the two ends first
            out[entry] = values[entry] * (factors[i] * factors[columns[entry]])
    return np.asarray(out)


def components(
    const index[::1] starts,      # (n + 1,) in, CSR, symmetric
    const index[::1] columns,     # (n_entries,) in
    const double[::1] values,     # (n_entries,) in
    const double[::1] bounds,     # (n,) in
):
    """Return the number of components and the label of every point (n,).

    Points i and j are joined if their entry is above the smaller of their bounds.
    Labels are in the order of the first points.
    """
    cdef Py_ssize_t n = starts.shape[0] - 1, first, i, j, entry
    cdef Py_ssize_t n_found, next_point, visited = 0
    cdef int count = 0
    cdef int[::1] label = np.full(n, -1, dtype=np.intc)
    cdef int[::1] found = np.empty(n, dtype=np.intc)
    with nogil:
        for first in range(n):
            if label[first] >= 0:
                continue
            label[first] = count
            found[0] = <int> first
            n_found, next_point = 1, 0
            while next_point < n_found:
                i = found[next_point]
                next_point += 1
                visited += 1
                listen(visited)
                for entry in range(starts[i], starts[i + 1]):
                    j = columns[entry]
                    if label[j] < 0 and values[entry] > fmin(bounds[i], bounds[j]):
                        label[j] = count
                        found[n_found] = <int> j
                        n_found += 1
            count += 1
    return count, np.asarray(label)


def aggregate(
    const index[::1] starts,      # (n + 1,) in, CSR, symmetric, >= 0
    const index[::1] columns,     # (n_entries,) in
    const double[::1] values,     # (n_entries,) in
    double strength,
):
    """Return a group for every point (n,) and the number of groups.

    Two points are strongly joined if their entry is at least ``strength`` times the
    smaller one of the largest entries of their rows. A group is a point with all its
    strong neighbours, where none of them has a group yet; those left over join the
    group of a neighbour, that of the largest entry. A point without neighbours has the
    group -1.
    """
    cdef Py_ssize_t n = starts.shape[0] - 1, i, j, entry, best
    cdef int count = 0
    cdef bint free
    cdef int[::1] group = np.full(n, -1, dtype=np.intc)
    cdef int[::1] seeded
    cdef double[::1] largest = np.zeros(n)
    with nogil:
        for i in range(n):
            listen(i)
            for entry in range(starts[i], starts[i + 1]):
                if columns[entry] != i:
                    largest[i] = fmax(largest[i], values[entry])
        for i in range(n):
            listen(i)
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
            listen(i)
            if seeded[i] >= 0 or largest[i] == 0.0:
                continue
            best = -1
            for entry in range(starts[i], starts[i + 1]):
                if values[entry] > 0.0 and seeded[columns[entry]] >= 0 and (
                    best < 0 or values[entry] > values[best]
                ):
                    best = entry
            # a strong neighbour has a group, or the point would have one
            group[i] = seeded[columns[best]]
    return np.asarray(group), count


cdef index sum_row(
    const index* starts, const index* columns, const double* values,
    const int* group, const double* root,
    const int* members, Py_ssize_t n_members,
    index* place, index first, index* out_columns, double* out_values,
) noexcept nogil:
    """Sum the rows of a group; return where the sums end, which begin at ``first``.

    ``place`` (n_groups,) says where in this row the entry of a group is, if that is not
    before ``first``. Without ``out_values`` entries are counted only.
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
            if place[other] < first:
                place[other] = end
                if out_values != NULL:
                    out_columns[end] = other
                    out_values[end] = 0.0
                end += 1
            if out_values != NULL:
                out_values[place[other]] += values[entry] * (
                    root[i] * root[columns[entry]]
                )
    return end


def coarsened(
    const index[::1] starts,      # (n + 1,) in, CSR
    const index[::1] columns,     # (n_entries,) in
    const double[::1] values,     # (n_entries,) in
    const int[::1] group,         # (n,) in, -1: none
    const double[::1] root,       # (n,) in
    Py_ssize_t count,
    int n_threads,
):
    """Return the CSR parts of the matrix sum_{i in G, j in H} r_i r_j v_ij.

    The entries of a row are in the order in which their first parts come.
    """
    cdef Py_ssize_t n = starts.shape[0] - 1, row, thread, begin, end
    cdef Py_ssize_t step = max(1, count * SLICE // max(n, 1))
    cdef int threads = useful_threads(n_threads, values.shape[0])
    of_all = np.asarray(group)
    sizes = np.bincount(of_all[of_all >= 0], minlength=count)
    cdef int[::1] bounds = np.append(0, np.cumsum(sizes)).astype(np.intc)
    by_group = np.argsort(of_all, kind="stable")
    cdef int[::1] members = by_group[n - bounds[count] :].astype(np.intc)
    integer = np.asarray(starts).dtype
    cdef index[::1] ends = np.zeros(threads, integer)
    cdef index[:, ::1] place = np.full((threads, count), -1, integer)
    cdef index[::1] out_starts = np.zeros(count + 1, integer)
    cdef index[::1] out_columns
    cdef double[::1] out_values
    if members.shape[0] == 0 or values.shape[0] == 0:
        return np.empty(0), np.empty(0, integer), np.asarray(out_starts)
    cdef const index* first_start = &starts[0]
    cdef const index* first_column = &columns[0]
    cdef const double* first_value = &values[0]
    cdef const int* of_point = &group[0]
    cdef const double* roots = &root[0]
    cdef const int* member = &members[0]
    cdef const int* bound = &bounds[0]
    cdef index* end_of = &ends[0]
    cdef index* places = &place[0, 0]
    cdef index* row_start = &out_starts[0]
    cdef index* new_column = NULL
    cdef double* new_value = NULL
    # once to count the entries of every row, once to sum them; each thread meets its
    # rows in ascending order
    for begin in range(0, count, step):
        end = min(begin + step, count)
        for row in prange(begin, end, nogil=True, schedule="static",
                          num_threads=threads):
            thread = threadid()
            row_start[row + 1] = -end_of[thread]
            end_of[thread] = sum_row(
                first_start, first_column, first_value, of_point, roots,
                member + bound[row], bound[row + 1] - bound[row],
                places + thread * count, end_of[thread], NULL, NULL,
            )
            row_start[row + 1] += end_of[thread]
        PyErr_CheckSignals()
    np.cumsum(out_starts, out=np.asarray(out_starts))
    out_columns = np.empty(out_starts[count], integer)
    out_values = np.empty(out_starts[count])
    if out_starts[count] == 0:
        return np.asarray(out_values), np.asarray(out_columns), np.asarray(out_starts)
    new_column, new_value = &out_columns[0], &out_values[0]
    place[:] = -1
    for begin in range(0, count, step):
        end = min(begin + step, count)
        for row in prange(begin, end, nogil=True, schedule="static",
                          num_threads=threads):
            sum_row(
                first_start, first_column, first_value, of_point, roots,
                member + bound[row], bound[row + 1] - bound[row],
                places + threadid() * count, row_start[row], new_column, new_value,
            )
        PyErr_CheckSignals()
    return np.asarray(out_values), np.asarray(out_columns), np.asarray(out_starts)
