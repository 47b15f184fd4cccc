# SPDX-License-Identifier: BSD-3-Clause
"""Nearest neighbours by comparing all pairs (tests/test_neighbours.py).

    nearest(A, B, ...)    the k points of B nearest to each point of A

Distances are summed from differences and are exact to rounding, the same from both ends
and 0 between equal points. Of points at the same distance the first ones are taken: the
result does not depend on the number of threads, as that of a search does whose threads
share the points of B among them.

Cost: O(n_a n_b d), hence for many features, where trees are no faster.
"""
import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from cython cimport floating
from cython.parallel cimport prange
from libc.math cimport NAN

from cdsk._points cimport n_tiles, pack_tile, rows_together
from cdsk._simd cimport CDSK_TILE, cdsk_simd, cdsk_simd_select
from cdsk._threads cimport useful_threads

cdef const cdsk_simd* simd = cdsk_simd_select()

# Differences between two looks at pending signals: some 100 ms on one core.
cdef double STRIP = 5e8


cdef void insert(
    double* distances,            # (k,) in/out, ascending
    Py_ssize_t* indices,          # (k,) in/out
    Py_ssize_t k, double distance, Py_ssize_t index,
) noexcept nogil:
    """Put a point before those that are farther; the farthest of all drops out."""
    cdef Py_ssize_t place = k - 1
    while place > 0 and not (distances[place - 1] <= distance):
        distances[place] = distances[place - 1]
        indices[place] = indices[place - 1]
        place -= 1
    distances[place] = distance
    indices[place] = index


cdef void nearest_to_tiles(
    const double* a,              # (tiles, d, TILE) in, packed
    Py_ssize_t begin,             # the points of a to work on, from a tile's first on
    Py_ssize_t end,
    const double* b,              # (tiles, d, TILE) in, packed
    Py_ssize_t n_b, Py_ssize_t d, bint itself, Py_ssize_t k,
    double* distances,            # (n_a, k) out, squared
    Py_ssize_t* indices,          # (n_a, k) out
) noexcept nogil:
    cdef double[CDSK_TILE * CDSK_TILE] squared
    cdef Py_ssize_t i, j, tile_a, tile_b, first_a, first_b
    cdef double distance
    for i in range(begin * k, end * k):
        # nobody yet: not <= any distance, not even an infinite one
        distances[i] = NAN
    for tile_b in range(n_tiles(n_b)):
        first_b = tile_b * CDSK_TILE
        for tile_a in range(n_tiles(end - begin)):
            first_a = begin + tile_a * CDSK_TILE
            simd.squared_distances(a + first_a * d, b + first_b * d, d, squared)
            for i in range(first_a, min(first_a + CDSK_TILE, end)):
                for j in range(first_b, min(first_b + CDSK_TILE, n_b)):
                    distance = squared[(i - first_a) * CDSK_TILE + j - first_b]
                    if distance >= distances[i * k + k - 1] or (itself and i == j):
                        continue
                    insert(distances + i * k, indices + i * k, k, distance, j)


cdef void pack_all(
    const floating* X, Py_ssize_t n, Py_ssize_t d, double* packed
) noexcept nogil:
    cdef Py_ssize_t tile
    for tile in range(n_tiles(n)):
        pack_tile(X, NULL, n, d, tile, packed + tile * CDSK_TILE * d)


def nearest(
    const floating[:, ::1] A,     # (n_a, d) in
    const floating[:, ::1] B,     # (n_b, d) in
    bint itself,                  # A is B, and no point is its own neighbour
    Py_ssize_t[:, ::1] indices,   # (n_a, k) out, k at most n_b, or n_b - 1 if itself
    double[:, ::1] distances,     # (n_a, k) out, nearest first
    int n_threads,
):
    """Fill indices and distances."""
    cdef Py_ssize_t n_a = A.shape[0], n_b = B.shape[0], d = A.shape[1]
    cdef Py_ssize_t k = indices.shape[1], task, first, strip
    cdef Py_ssize_t together = CDSK_TILE * rows_together(d)
    cdef double work = <double> n_b * d
    cdef double[::1] a = np.empty(n_tiles(n_a) * CDSK_TILE * d)
    cdef double[::1] b = a if itself else np.empty(n_tiles(n_b) * CDSK_TILE * d)
    if n_a == 0:
        return
    with nogil:
        pack_all(&A[0, 0], n_a, d, &a[0])
        if not itself:
            pack_all(&B[0, 0], n_b, d, &b[0])
    strip = together * max(1, <Py_ssize_t> (STRIP / (work * together)))
    for first in range(0, n_a, strip):
        for task in prange(
            (min(strip, n_a - first) + together - 1) // together,
            nogil=True, schedule="dynamic",
            num_threads=useful_threads(n_threads, work * min(strip, n_a - first)),
        ):
            nearest_to_tiles(
                &a[0], first + task * together,
                min(first + (task + 1) * together, n_a),
                &b[0], n_b, d, itself, k, &distances[0, 0], &indices[0, 0],
            )
        PyErr_CheckSignals()
    np.sqrt(distances, out=np.asarray(distances))
