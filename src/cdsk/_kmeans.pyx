# SPDX-License-Identifier: BSD-3-Clause
"""k-means of points with weights, one coordinate per row (tests/test_kmeans.py).

    seed_centers(points, weights, c, uniforms)   greedy k-means++ -> centers (c, d)
    lloyd(points, weights, centers, tol)         -> labels (n,), centers (c, d), inertia

Greedy k-means++ (Arthur & Vassilvitskii 2007) draws several points with probabilities
proportional to weight times squared distance to the nearest center, and keeps the one
that makes the sum of these smallest. It runs on one thread. Points are divided into
blocks of fixed size whose sums are added in order: the result does not depend on the
number of threads.
"""
import numpy as np

from cython.parallel cimport prange
from libc.math cimport INFINITY
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from cdsk._signals cimport check_signals, product_work, work_interval
from cdsk._simd cimport cdsk_simd, cdsk_simd_select
from cdsk._threads cimport useful_threads

cdef const cdsk_simd* simd = cdsk_simd_select()

# Points per block: 4 coordinates of it fill a level-1 cache, 30 a level-2 cache.
cdef Py_ssize_t BLOCK = 1024

cdef int MAX_ITER = 300

# Squared relative difference between equal points and their mean, at most.
cdef double ROUNDING = 1e-24


def seed_centers(
    const double[:, ::1] points,  # (d, n) in
    const double[::1] weights,    # (n,) in, >= 0
    Py_ssize_t n_clusters,
    const double[::1] uniforms,   # (1 + (n_clusters - 1) n_trials,) in, in [0, 1)
):
    """Return first centers (c, d), which are points, by greedy k-means++."""
    cdef Py_ssize_t d = points.shape[0], n = points.shape[1]
    cdef Py_ssize_t n_blocks = (n + BLOCK - 1) // BLOCK
    cdef Py_ssize_t n_trials = max(1, (len(uniforms) - 1) // max(1, n_clusters - 1))
    cdef Py_ssize_t i, t, b, k, drawn, best, n_places = 1, n_drawn = 0
    cdef double cost, smallest
    _check_shapes(points, weights, n_clusters, d)
    if len(uniforms) != 1 + (n_clusters - 1) * n_trials:
        raise ValueError(
            f"Expected a random number for the first of {n_clusters} centers and as "
            f"many for each of the others; got {len(uniforms)} numbers."
        )
    # squared distances to the nearest center, with each trial as a center and without
    cdef double[:, ::1] nearest = np.empty((n_trials + 1, n))
    cdef double[:, ::1] sums = np.empty((n_trials + 1, n_blocks))
    cdef double[:, ::1] places = np.empty((n_trials, d))
    cdef double[:, ::1] centers = np.empty((n_clusters, d))
    nearest[n_trials, :] = 1.0
    np.asarray(sums)[n_trials] = np.add.reduceat(weights, np.arange(0, n, BLOCK))
    smallest = np.sum(sums[n_trials])
    for i in range(n_clusters):
        with nogil:
            for t in range(n_places):
                drawn = _draw(
                    &weights[0], &nearest[n_trials, 0], n, &sums[n_trials, 0],
                    smallest * uniforms[n_drawn + t],
                )
                for k in range(d):
                    places[t, k] = points[k, drawn]
            n_drawn += n_places
            if i == 0:
                nearest[n_trials, :] = INFINITY
            smallest, best = INFINITY, 0
            for t in range(n_places):
                cost = 0.0
                for b in range(n_blocks):
                    sums[t, b] = _approach(
                        points, weights, b, &places[t, 0],
                        &nearest[n_trials, 0], &nearest[t, 0],
                    )
                    cost += sums[t, b]
                if cost < smallest:
                    smallest, best = cost, t
            centers[i, :] = places[best]
            nearest[n_trials, :] = nearest[best]
            sums[n_trials, :] = sums[best]
        check_signals(n * n_places * (1.0 + product_work(<double> d)))
        n_places = n_trials
    return np.asarray(centers)


cdef double _approach(
    const double[:, ::1] points, const double[::1] weights, Py_ssize_t block,
    const double* place, const double* nearest, double* out,
) noexcept nogil:
    """Write distances of a block with one more center; return their weighted sum."""
    cdef Py_ssize_t d = points.shape[0], n = points.shape[1]
    cdef Py_ssize_t begin = block * BLOCK, end = min(n, begin + BLOCK)
    memcpy(out + begin, nearest + begin, (end - begin) * sizeof(double))
    return simd.assign_nearest(
        &points[0, 0], n, begin, end, d, place, 1, &weights[0], out, NULL
    )


cdef Py_ssize_t _draw(
    const double* weights, const double* nearest, Py_ssize_t n, const double* sums,
    double mass,
) noexcept nogil:
    """Return the first point with more than this mass up to it; sums are of blocks."""
    cdef Py_ssize_t block = 0, i, drawn, n_blocks = (n + BLOCK - 1) // BLOCK
    cdef double part
    while block < n_blocks - 1 and mass >= sums[block]:
        mass -= sums[block]
        block += 1
    drawn = block * BLOCK
    for i in range(drawn, min(n, drawn + BLOCK)):
        part = weights[i] * nearest[i]
        if part > 0.0:  # by rounding the sum may be less: then the last of these
            drawn = i
            mass -= part
            if mass < 0.0:
                break
    return drawn


def lloyd(
    const double[:, ::1] points,     # (d, n) in
    const double[::1] weights,       # (n,) in, >= 0
    const double[:, ::1] first,      # (c, d) in
    double tol,
    int n_threads,
):
    """Return the labels, centers and inertia of k-means from the first centers.

    It ends when no label changes, or when the squared distances by which the centers
    move sum up to ``tol`` or less. A center without points moves to the point that is
    farthest from its center.
    """
    cdef Py_ssize_t d = points.shape[0], n = points.shape[1], c = first.shape[0]
    cdef Py_ssize_t n_blocks = (n + BLOCK - 1) // BLOCK, b, begin, end, step, iteration
    cdef double work, inertia = 0.0, shift = INFINITY
    cdef bint changed = True
    _check_shapes(points, weights, c, first.shape[1])
    cdef double[:, ::1] centers = np.array(first)
    cdef double[::1] nearest = np.empty(n)
    # labels before and after an iteration
    cdef int64_t[:, ::1] labels = np.full((2, n), -1, np.int64)
    # by block: sums of weight times point and of weights; inertia, and 1 if changed
    cdef double[:, :, ::1] sums = np.empty((n_blocks, c, d + 1))
    cdef double[:, ::1] totals = np.empty((n_blocks, 2))
    # work of a block, and blocks between two checks for signals
    work = BLOCK * (d + product_work(2.0 * c * d))
    step = max(n_threads, <Py_ssize_t> min(work_interval() / work, 1e9))
    for iteration in range(MAX_ITER + 1):
        for begin in range(0, n_blocks, step):
            end = min(begin + step, n_blocks)
            for b in prange(
                begin, end, nogil=True, schedule="static",
                num_threads=useful_threads(
                    min(n_threads, end - begin), <double> n * d * c
                ),
            ):
                _assign(
                    points, weights, centers, b, &nearest[0],
                    &labels[iteration % 2, 0], &labels[1 - iteration % 2, 0],
                    &sums[b, 0, 0], &totals[b, 0],
                )
            check_signals((end - begin) * work)
        inertia, changed = 0.0, False
        for b in range(n_blocks):
            inertia += totals[b, 0]
            changed |= totals[b, 1] > 0.0
        if not changed or shift <= tol:
            break
        with nogil:
            shift = _move_centers(points, weights, centers, sums, &nearest[0])
    return np.asarray(labels[iteration % 2]), np.asarray(centers), inertia


cdef void _assign(
    const double[:, ::1] points, const double[::1] weights,
    const double[:, ::1] centers, Py_ssize_t block, double* nearest, int64_t* labels,
    const int64_t* before, double* sums, double* totals,
) noexcept nogil:
    """Assign the points of a block to their nearest centers, and sum them up."""
    cdef Py_ssize_t d = points.shape[0], n = points.shape[1], c = centers.shape[0]
    cdef Py_ssize_t begin = block * BLOCK, end = min(n, begin + BLOCK), i, k
    for i in range(begin, end):
        nearest[i] = INFINITY
    totals[0] = simd.assign_nearest(
        &points[0, 0], n, begin, end, d, &centers[0, 0], c, &weights[0], nearest, labels
    )
    totals[1] = 0.0
    memset(sums, 0, c * (d + 1) * sizeof(double))
    for i in range(begin, end):
        totals[1] += labels[i] != before[i]
        sums[labels[i] * (d + 1) + d] += weights[i]
    for k in range(d):
        for i in range(begin, end):
            sums[labels[i] * (d + 1) + k] += weights[i] * points[k, i]


cdef double _move_centers(
    const double[:, ::1] points, const double[::1] weights, double[:, ::1] centers,
    double[:, :, ::1] sums, double* nearest,
) noexcept nogil:
    """Move centers to the means of their points; return the sum of squared shifts."""
    cdef Py_ssize_t d = points.shape[0], n = points.shape[1], c = centers.shape[0]
    cdef Py_ssize_t b, j, k, i, farthest, n_empty = 0
    cdef double shift = 0.0, place, norm
    for b in range(1, sums.shape[0]):
        for j in range(c):
            for k in range(d + 1):
                sums[0, j, k] += sums[b, j, k]
    for j in range(c):
        if sums[0, j, d] == 0.0:
            n_empty += 1
            continue
        for k in range(d):
            place = sums[0, j, k] / sums[0, j, d]
            shift += (place - centers[j, k]) ** 2
            centers[j, k] = place
    if n_empty == 0:
        return shift
    # distances to the centers that have points, and to those that are moved
    for i in range(n):
        nearest[i] = INFINITY
    for j in range(c):
        if sums[0, j, d] > 0.0:
            _add_center(points, weights, &centers[j, 0], nearest)
    for j in range(c):
        if sums[0, j, d] == 0.0:
            farthest = 0
            for i in range(n):
                if weights[i] * nearest[i] > 0.0:
                    if weights[farthest] == 0.0 or nearest[i] > nearest[farthest]:
                        farthest = i
            norm = 0.0
            for k in range(d):
                norm += points[k, farthest] ** 2
            if nearest[farthest] <= ROUNDING * norm:  # fewer places than centers
                break
            shift = INFINITY
            for k in range(d):
                centers[j, k] = points[k, farthest]
            _add_center(points, weights, &centers[j, 0], nearest)
    return shift


cdef void _add_center(
    const double[:, ::1] points, const double[::1] weights, const double* center,
    double* nearest,
) noexcept nogil:
    """Update the distances of all points to their nearest centers."""
    cdef Py_ssize_t d = points.shape[0], n = points.shape[1]
    simd.assign_nearest(
        &points[0, 0], n, 0, n, d, center, 1, &weights[0], nearest, NULL
    )


cdef int _check_shapes(
    const double[:, ::1] points, const double[::1] weights, Py_ssize_t n_clusters,
    Py_ssize_t d,
) except -1:
    """Raise an error if the shapes of the arguments are inconsistent."""
    if n_clusters < 1 or points.shape[0] < 1 or points.shape[1] < 1:
        raise ValueError(
            "Expected a cluster, a coordinate and a point at least; got "
            f"n_clusters={n_clusters} and points of shape "
            f"{points.shape[0], points.shape[1]}."
        )
    if weights.shape[0] != points.shape[1] or d != points.shape[0]:
        raise ValueError(
            f"Inconsistent shapes: {points.shape[1]} points with {points.shape[0]} "
            f"coordinates, {weights.shape[0]} weights, centers with {d} coordinates."
        )
    return 0
