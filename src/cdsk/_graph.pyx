# SPDX-License-Identifier: BSD-3-Clause
"""Sparse symmetric matrices as graphs (tests/test_multilevel.py).

    product(...)      the matrix times a block of vectors
    scaled(...)       its rows and columns multiplied by factors
    similarity(...)   S of a kernel matrix and weights
    components(...)   points that edges above a bound join
    aggregate(...)    groups of strongly joined neighbours

A row is summed by one thread in the order of its entries: the result does not depend on
the number of threads.
"""
import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange
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
    const index* columns, const double* values, Py_ssize_t count,
    const double* block, Py_ssize_t m, double* out,
) noexcept nogil:
    """Eight columns at a time, whose sums stay in registers, then one by one."""
    cdef double[8] sums
    cdef Py_ssize_t entry, column, first = 0
    cdef const double* source
    cdef double value
    while first + 8 <= m:
        for column in range(8):
            sums[column] = 0.0
        for entry in range(count):
            value = values[entry]
            source = block + columns[entry] * m + first
            for column in range(8):
                sums[column] += value * source[column]
        for column in range(8):
            out[first + column] = sums[column]
        first += 8
    for column in range(first, m):
        value = 0.0
        for entry in range(count):
            value += values[entry] * block[columns[entry] * m + column]
        out[column] = value


def product(
    const index[::1] starts,      # (n_rows + 1,) in, CSR
    const index[::1] columns,     # (n_entries,) in
    const double[::1] values,     # (n_entries,) in
    const double[:, ::1] block,   # (n_columns, m) in
    int n_threads,
):
    """Return the matrix times the columns of the block (n_rows, m)."""
    cdef Py_ssize_t n = starts.shape[0] - 1, m = block.shape[1]
    cdef Py_ssize_t i, begin, end, strip
    cdef double work
    cdef double[:, ::1] out = np.zeros((n, m))
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
    for i in prange(
        n, nogil=True, schedule="static",
        num_threads=useful_threads(n_threads, values.shape[0]),
    ):
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
    for i in prange(
        n, nogil=True, schedule="static",
        num_threads=useful_threads(n_threads, values.shape[0]),
    ):
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
