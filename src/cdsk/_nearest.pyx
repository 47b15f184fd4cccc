# SPDX-License-Identifier: BSD-3-Clause
"""Exact nearest neighbours by tiles of points (tests/test_neighbours.py).

    Tiles(X).nearest_others(...)    the k nearest of each point of X among the others
    Tiles(X).nearest_to(A, ...)     the k points of X nearest to each point of A

Points are ordered by halving them again and again at the median of the feature that
varies most, so that the 48 of a tile are near each other; 8 tiles are a group, and a
tree of boxes is over the groups. A tile of points meets the groups from the nearest on:

    box of the tile and box of a group      too far for all 48: none of the group's
    point and box of a tile                 too far for the point: not this tile
    |a - b|^2 from products in float32      too far for sure: not this pair
    |a - b|^2 from differences in float64   what counts

With few features the boxes leave little to do, with many the products in float32 do
nearly all of it. Only what cannot be among the k nearest is left out, rounding taken
into account at each stage: distances are those of the last line, the same from both
ends and 0 between equal points. Of points at the same distance the first ones are
taken: nothing depends on the order of the search or on the number of threads.
"""
import time

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from cython cimport floating
from cython.parallel cimport prange, threadid
from libc.math cimport INFINITY, NAN, fabs, frexp, ldexp, sqrt
from libc.stdint cimport INT32_MAX, int32_t, uint64_t
from libc.string cimport memcpy

from cdsk._simd cimport (
    CDSK_SINGLE_DEPTH,
    CDSK_TILE,
    cdsk_simd,
    cdsk_simd_select,
)
from cdsk._threads cimport useful_threads

cdef extern from * nogil:
    int first_bit "__builtin_ctzll"(unsigned long long) noexcept

cdef const cdsk_simd* simd = cdsk_simd_select()

cdef enum:
    GROUP = 8                     # tiles
    SAMPLE = 64                   # points that tell which feature varies most
    DEEPEST = 64                  # levels of the tree
    PAIRS = 64                    # features from which on each pair is taken once

# Rounding units of float32 and float64.
cdef double SINGLE = 2.0 ** -24, DOUBLE = 2.0 ** -53

# Scaled coordinates beyond this are not left to float32.
cdef double FARTHEST = 1e15

# Seconds between two looks at pending signals, roughly.
cdef double PAUSE = 0.1


cdef struct tiled:
    Py_ssize_t n, d, tiles, groups
    double scale                  # a power of two: coordinates are about 1 then
    const void* rows              # (n, d) in order
    bint is_single                # rows are float32
    const int32_t* order          # (n,) numbers of the points
    const float* packed           # (tiles, d, TILE) from the centre of the group on
    const float* shift            # (tiles, TILE) -|b|^2 / 2
    const float* low              # (tiles, d) boxes
    const float* high
    const int32_t* first          # (tiles,) smallest number of a point
    const double* centre          # (groups, d)
    const double* radius          # (groups,) largest |b|
    const double* node_low        # (2 groups - 1, d) boxes; a node, its left part, its
    const double* node_high       # right part
    const int32_t* node_first     # (2 groups - 1,)


cdef struct points:
    Py_ssize_t n
    const void* rows              # (n, d) in order
    bint is_single
    const int32_t* order          # (n,) where the results go
    bint itself                   # they are the points of the tiles


# The nearest of a point so far.
cdef struct nearest:
    double* distances             # (k,) ascending, squared
    int32_t* indices              # (k,)
    double bound                  # the last distance
    double root                   # its square root
    int32_t last                  # the last index


# The tile of points that is searching.
cdef struct query:
    Py_ssize_t first, n, k
    nearest* best                 # (TILE,)
    double* rows                  # (TILE, d)
    double* columns               # (d, TILE)
    double* low                   # (d,)
    double* high
    float* packed                 # (d, TILE)
    double worst                  # the largest bound
    int32_t latest                # the largest of the last indices
    double norms[CDSK_TILE]
    float least[CDSK_TILE]        # of points_near_box and near_pairs
    float reach[CDSK_TILE]
    float of_a[CDSK_TILE]
    double error
    Py_ssize_t tested, kept


cdef inline Py_ssize_t n_parts(Py_ssize_t n, Py_ssize_t size) noexcept nogil:
    return (n + size - 1) // size


cdef inline float below(double x) noexcept nogil:
    return <float> (x - 2.5 * SINGLE * fabs(x) - 1e-43)


cdef inline float above(double x) noexcept nogil:
    return <float> (x + 2.5 * SINGLE * fabs(x) + 1e-43)


# ---------------------------------------------------------------- order

cdef inline bint comes_before(
    double key, int32_t index, double other, int32_t other_index
) noexcept nogil:
    return key < other or (key == other and index < other_index)


cdef void select(
    double* keys, int32_t* order, Py_ssize_t low, Py_ssize_t high, Py_ssize_t middle
) noexcept nogil:
    """Order low ... high - 1 so that those before middle have the smaller keys."""
    cdef Py_ssize_t i, j
    cdef double pivot
    cdef int32_t index
    high -= 1
    while low < high:
        i = low + (high - low) // 2
        pivot, index = keys[i], order[i]
        i, j = low, high
        while i <= j:
            while comes_before(keys[i], order[i], pivot, index):
                i += 1
            while comes_before(pivot, index, keys[j], order[j]):
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return


cdef Py_ssize_t most_varying(
    const floating* X, Py_ssize_t d, const int32_t* order,
    Py_ssize_t begin, Py_ssize_t end,
    double* sums,                 # (2, d) scratch
) noexcept nogil:
    """The feature of the largest variance, by a few of the points."""
    cdef Py_ssize_t step = n_parts(end - begin, SAMPLE), i, k, best = 0
    cdef const floating* origin = X + order[begin] * d
    cdef const floating* x
    cdef double difference, count = <double> n_parts(end - begin, step)
    for k in range(2 * d):
        sums[k] = 0.0
    for i in range(n_parts(end - begin, step)):
        x = X + order[begin + i * step] * d
        for k in range(d):
            difference = <double> x[k] - origin[k]
            sums[k] += difference
            sums[d + k] += difference * difference
    for k in range(d):
        sums[k] = sums[d + k] - sums[k] * sums[k] / count
        if sums[k] > sums[best]:
            best = k
    return best


def order_points(
    const floating[:, ::1] X,     # (n, d) in
    int32_t[::1] order,           # (n,) out
):
    """Fill order so that points near each other come into the same tile."""
    cdef Py_ssize_t n = X.shape[0], d = X.shape[1], i, begin, middle, end, whole, k
    cdef Py_ssize_t n_stacked = 1, since = 0
    cdef double[::1] keys = np.empty(n)
    cdef double[::1] sums = np.empty(2 * d)
    cdef Py_ssize_t[2 * DEEPEST] begins, ends
    for i in range(n):
        order[i] = <int32_t> i
    begins[0], ends[0] = 0, n_parts(n, CDSK_TILE)
    while n_stacked:
        n_stacked -= 1
        begin, end = begins[n_stacked], ends[n_stacked]
        if end - begin <= 1:
            continue
        whole = GROUP if end - begin > GROUP else 1
        middle = begin + n_parts(n_parts(end - begin, whole), 2) * whole
        begins[n_stacked], ends[n_stacked] = middle, end
        begins[n_stacked + 1], ends[n_stacked + 1] = begin, middle
        n_stacked += 2
        begin, middle = begin * CDSK_TILE, middle * CDSK_TILE
        end = min(end * CDSK_TILE, n)
        with nogil:
            k = most_varying(&X[0, 0], d, &order[0], begin, end, &sums[0])
            for i in range(begin, end):
                keys[i] = X[order[i], k]
            select(&keys[0], &order[0], begin, end, middle)
        since += end - begin + SAMPLE * d
        if since > 10**6:
            PyErr_CheckSignals()
            since = 0


# ---------------------------------------------------------------- tiles

cdef void pack_group(
    const floating* X, Py_ssize_t n, Py_ssize_t d, Py_ssize_t group, double scale,
    const int32_t* order,
    floating* rows,               # the arrays of tiled, out
    float* packed, float* shift, float* low, float* high, int32_t* first,
    double* centre, double* radius,
    double* box_low,              # (d,) out, of the group
    double* box_high,
    double* columns,              # (d, TILE) scratch
) noexcept nogil:
    cdef Py_ssize_t begin = group * GROUP * CDSK_TILE
    cdef Py_ssize_t end = min(begin + GROUP * CDSK_TILE, n), tile, i, k, last
    cdef double[CDSK_TILE] norms
    cdef double x, lowest, highest
    cdef const floating* point
    for k in range(d):
        box_low[k], box_high[k] = INFINITY, -INFINITY
    for i in range(begin, end):
        point = X + order[i] * d
        for k in range(d):
            rows[i * d + k] = point[k]
            box_low[k] = min(box_low[k], <double> point[k])
            box_high[k] = max(box_high[k], <double> point[k])
    for k in range(d):
        centre[group * d + k] = box_low[k] + 0.5 * (box_high[k] - box_low[k])
    radius[group] = 0.0
    for tile in range(begin // CDSK_TILE, n_parts(end, CDSK_TILE)):
        begin, last = tile * CDSK_TILE, min((tile + 1) * CDSK_TILE, end)
        first[tile] = INT32_MAX
        for i in range(begin, last):
            first[tile] = min(first[tile], order[i])
        for k in range(d):
            lowest, highest = INFINITY, -INFINITY
            for i in range(CDSK_TILE):
                # missing points are at the centre
                x = centre[group * d + k]
                if begin + i < last:
                    x = rows[(begin + i) * d + k]
                    lowest, highest = min(lowest, x), max(highest, x)
                columns[k * CDSK_TILE + i] = x
            low[tile * d + k] = below((lowest - centre[group * d + k]) * scale)
            high[tile * d + k] = above((highest - centre[group * d + k]) * scale)
        simd.single_tile(
            columns, centre + group * d, scale, d, packed + tile * CDSK_TILE * d, norms
        )
        for i in range(CDSK_TILE):
            shift[tile * CDSK_TILE + i] = <float> (-0.5 * norms[i])
            radius[group] = max(radius[group], norms[i])
    radius[group] = sqrt(radius[group])


cdef void join_boxes(
    Py_ssize_t node, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t d,
    const double* group_low, const double* group_high, const int32_t* tile_first,
    Py_ssize_t n_tiles, double* low, double* high, int32_t* first,
) noexcept nogil:
    """Fill the boxes of a node over groups begin ... end - 1 and of those under it."""
    cdef Py_ssize_t left = n_parts(end - begin, 2), k, right
    if end - begin == 1:
        for k in range(d):
            low[node * d + k] = group_low[begin * d + k]
            high[node * d + k] = group_high[begin * d + k]
        first[node] = INT32_MAX
        for k in range(begin * GROUP, min(end * GROUP, n_tiles)):
            first[node] = min(first[node], tile_first[k])
        return
    right = node + 2 * left
    join_boxes(
        node + 1, begin, begin + left, d, group_low, group_high, tile_first, n_tiles,
        low, high, first,
    )
    join_boxes(
        right, begin + left, end, d, group_low, group_high, tile_first, n_tiles,
        low, high, first,
    )
    first[node] = min(first[node + 1], first[right])
    for k in range(d):
        low[node * d + k] = min(low[(node + 1) * d + k], low[right * d + k])
        high[node * d + k] = max(high[(node + 1) * d + k], high[right * d + k])


# ---------------------------------------------------------------- search

cdef void set_bounds(const tiled* b, Py_ssize_t group, query* q) noexcept nogil:
    """What a pair must have in float32 to be looked at.

    With a, b from the centre of the group on the pair counts for a if
    ab - |b|^2 / 2 >= |a|^2 / 2 - bound / 2. Its sum in float32 is off by `error` at
    most: each of the two is rounded once, and each product and |b|^2 / 2 as often as
    there are sums.
    """
    cdef Py_ssize_t d = b.d, i
    cdef double far = 0.0, radius = b.radius[group], root
    cdef double sums = (
        min(d, CDSK_SINGLE_DEPTH) + n_parts(d, CDSK_SINGLE_DEPTH) + 2
    )
    cdef double tiny = 4 * (d + 4) * DOUBLE, slack = 1.1 * (d + 8) * SINGLE
    for i in range(q.n):
        far = max(far, q.norms[i])
    far = sqrt(far)
    q.error = 1.01 * SINGLE * radius * ((sums + 3) * far + (sums + 2) * 0.5 * radius)
    q.error += 4e-38 * d * (far + radius + 2)
    for i in range(q.n):
        root = q.best[i].root * b.scale * (1 + tiny)
        q.least[i] = below(
            0.5 * (q.norms[i] * (1 - tiny) - root * root) - q.error
        )
        q.of_a[i] = below(0.5 * q.norms[i] * (1 - tiny))
        root = (root + 1.01 * SINGLE * far) * (1 + slack)
        q.reach[i] = above(root * root)
        if not (far < FARTHEST and slack < 0.05):
            # not a number: all are looked at
            q.least[i] = q.reach[i] = NAN


cdef inline double squared_distance(
    const tiled* b, const double* a, Py_ssize_t place
) noexcept nogil:
    if b.is_single:
        return simd.squared_distance_f32(a, <const float*> b.rows + place * b.d, b.d)
    return simd.squared_distance_f64(a, <const double*> b.rows + place * b.d, b.d)


cdef inline bint may_enter(const nearest* best, int32_t index) noexcept nogil:
    """False if there are enough duplicates that come earlier."""
    return best.bound != 0.0 or index < best.last


cdef bint insert(
    nearest* best, Py_ssize_t k, double distance, int32_t index
) noexcept nogil:
    """Put a point in its place if it is one of the nearest; True if the bound falls."""
    cdef Py_ssize_t place = k - 1
    cdef double bound = best.bound
    if not comes_before(distance, index, bound, best.last):
        return False
    while place > 0 and comes_before(
        distance, index, best.distances[place - 1], best.indices[place - 1]
    ):
        best.distances[place] = best.distances[place - 1]
        best.indices[place] = best.indices[place - 1]
        place -= 1
    best.distances[place] = distance
    best.indices[place] = index
    best.last = best.indices[k - 1]
    best.bound = best.distances[k - 1]
    if best.bound == bound:
        return False
    best.root = sqrt(best.bound)
    return True


cdef Py_ssize_t rows_for_tile(
    const tiled* b, Py_ssize_t tile, query* q, int32_t* rows
) noexcept nogil:
    """Those points of the query that may have neighbours in a tile."""
    cdef Py_ssize_t n_rows, i, kept = 0
    # where boxes tell nothing, they are asked now and then
    if q.tested > 1000 and q.kept > 0.9 * q.tested and tile % GROUP:
        n_rows = q.n
        for i in range(n_rows):
            rows[i] = <int32_t> i
    else:
        n_rows = simd.points_near_box(
            q.packed, b.d, b.low + tile * b.d, b.high + tile * b.d, q.reach, rows
        )
        q.tested += q.n
        q.kept += n_rows
    for i in range(n_rows):
        # beyond the query's points; or enough duplicates that come earlier
        if rows[i] < q.n and may_enter(&q.best[rows[i]], b.first[tile]):
            rows[kept] = rows[i]
            kept += 1
    return kept


cdef void search_group(
    const tiled* b, const points* a, Py_ssize_t group, query* q
) noexcept nogil:
    cdef Py_ssize_t tile, r, i, j, place, n_rows
    cdef int32_t[CDSK_TILE] rows
    cdef uint64_t[CDSK_TILE] near
    cdef uint64_t left
    cdef int32_t index
    cdef bint changed
    cdef double distance
    simd.single_tile(
        q.columns, b.centre + group * b.d, b.scale, b.d, q.packed, q.norms
    )
    set_bounds(b, group, q)
    for tile in range(group * GROUP, min((group + 1) * GROUP, b.tiles)):
        n_rows = rows_for_tile(b, tile, q, rows)
        if n_rows == 0:
            continue
        simd.near_pairs(
            q.packed, b.packed + tile * CDSK_TILE * b.d, b.d,
            b.shift + tile * CDSK_TILE, q.least, NULL, NULL, rows, n_rows, near,
        )
        changed = False
        for r in range(n_rows):
            i, left = rows[r], near[r]
            while left:
                j = first_bit(left)
                left &= left - 1
                place = tile * CDSK_TILE + j
                if place >= b.n:
                    break
                index = b.order[place]
                if not may_enter(&q.best[i], index) or (
                    a.itself and place == q.first + i
                ):
                    continue
                distance = squared_distance(b, q.rows + i * b.d, place)
                changed |= insert(&q.best[i], q.k, distance, index)
        if changed:
            set_bounds(b, group, q)
    q.worst, q.latest = 0.0, 0
    for i in range(q.n):
        q.worst = max(q.worst, q.best[i].bound)
        q.latest = max(q.latest, q.best[i].last)


cdef inline double box_distance(
    const tiled* b, const query* q, Py_ssize_t node, double* centres
) noexcept nogil:
    """Squared distance between the boxes of the query and of a node, or less."""
    return (1 - 4 * (b.d + 4) * DOUBLE) * simd.box_distance(
        q.low, q.high, b.node_low + node * b.d, b.node_high + node * b.d, b.d, centres
    )


cdef void search_tree(const tiled* b, const points* a, query* q) noexcept nogil:
    """Search the groups, of two halves the nearer one first."""
    cdef Py_ssize_t[DEEPEST] nodes, begins, ends
    cdef double[DEEPEST] gaps
    cdef Py_ssize_t n_stacked = 1, node, begin, end, left, near, far
    cdef double gap, near_gap, far_gap, near_centre, far_centre
    nodes[0], begins[0], ends[0], gaps[0] = 0, 0, b.groups, 0.0
    while n_stacked:
        n_stacked -= 1
        node, begin, end = nodes[n_stacked], begins[n_stacked], ends[n_stacked]
        gap = gaps[n_stacked]
        while not (
            gap > q.worst or (q.worst == 0.0 and b.node_first[node] > q.latest)
        ):
            if end - begin == 1:
                search_group(b, a, begin, q)
                break
            left = n_parts(end - begin, 2)
            near, far = node + 1, node + 2 * left
            near_gap = box_distance(b, q, near, &near_centre)
            far_gap = box_distance(b, q, far, &far_centre)
            begins[n_stacked], ends[n_stacked] = begin + left, end
            end = begin + left
            if far_gap < near_gap or (far_gap == near_gap and far_centre < near_centre):
                near, far, near_gap, far_gap = far, near, far_gap, near_gap
                begin, begins[n_stacked] = begins[n_stacked], begin
                end, ends[n_stacked] = ends[n_stacked], end
            nodes[n_stacked], gaps[n_stacked] = far, far_gap
            n_stacked += 1
            node, gap = near, near_gap


cdef void take_tile(
    const points* a, Py_ssize_t d, Py_ssize_t tile, Py_ssize_t k, nearest* best,
    double* scratch,              # size_of_scratch(d)
    query* q,
) noexcept nogil:
    """Make a tile of points the one that is searching."""
    cdef Py_ssize_t i, f, begin, place
    q.first, q.k, q.best, q.tested, q.kept = tile * CDSK_TILE, k, best, 0, 0
    q.n = min(a.n - q.first, CDSK_TILE)
    q.rows = scratch
    q.columns = q.rows + CDSK_TILE * d
    q.low = q.columns + CDSK_TILE * d
    q.high = q.low + d
    q.packed = <float*> (q.high + d)
    q.worst, q.latest = INFINITY, INT32_MAX
    for i in range(CDSK_TILE):
        # missing points are the last one once more
        place = min(q.first + i, a.n - 1) * d
        if a.is_single:
            for f in range(d):
                q.rows[i * d + f] = (<const float*> a.rows)[place + f]
        else:
            memcpy(q.rows + i * d, <const double*> a.rows + place, d * sizeof(double))
        q.least[i], q.reach[i] = INFINITY, -1.0
    for f in range(d):
        q.low[f] = q.high[f] = q.rows[f]
    # a cache line of features at a time
    for begin in range(0, d, 8):
        for i in range(CDSK_TILE):
            for f in range(begin, min(begin + 8, d)):
                q.columns[f * CDSK_TILE + i] = q.rows[i * d + f]
                q.low[f] = min(q.low[f], q.rows[i * d + f])
                q.high[f] = max(q.high[f], q.rows[i * d + f])


cdef void begin_lists(
    const points* a, Py_ssize_t tile, Py_ssize_t k, double* distances, int32_t* indices,
    nearest* best,
) noexcept nogil:
    """Nobody is near yet."""
    cdef Py_ssize_t first = tile * CDSK_TILE, i, rank, place
    for i in range(min(a.n - first, CDSK_TILE)):
        place = a.order[first + i] * k
        best[i].distances, best[i].indices = distances + place, indices + place
        best[i].bound = best[i].root = INFINITY
        best[i].last = INT32_MAX
        for rank in range(k):
            best[i].distances[rank], best[i].indices[rank] = INFINITY, INT32_MAX


cdef void search_tile(
    const tiled* b, const points* a, Py_ssize_t tile, Py_ssize_t k,
    double* distances, int32_t* indices, double* scratch,
) noexcept nogil:
    cdef query q
    cdef nearest[CDSK_TILE] best
    begin_lists(a, tile, k, distances, indices, best)
    take_tile(a, b.d, tile, k, best, scratch, &q)
    search_tree(b, a, &q)


# ---------------------------------------------------------------- each pair once
# Where boxes leave nothing out, half of all pairs will do: a product tells both ends.
# In each of G - 1 rounds the G groups meet in pairs, each group one other, so that no
# two threads write to the same lists.

cdef void search_own_group(
    const tiled* b, const points* a, Py_ssize_t tile, Py_ssize_t k,
    double* distances, int32_t* indices, nearest* best, double* scratch,
) noexcept nogil:
    cdef query q
    begin_lists(a, tile, k, distances, indices, best + tile * CDSK_TILE)
    take_tile(a, b.d, tile, k, best + tile * CDSK_TILE, scratch, &q)
    search_group(b, a, tile // GROUP, &q)


cdef double worst_of(
    const nearest* best, Py_ssize_t begin, Py_ssize_t end
) noexcept nogil:
    cdef double worst = 0.0
    cdef Py_ssize_t i
    for i in range(begin, end):
        worst = max(worst, best[i].bound)
    return worst


cdef void meet(
    const tiled* b, const points* a, Py_ssize_t group, Py_ssize_t other,
    const double* low, const double* high,    # (groups, d) boxes
    Py_ssize_t k, nearest* best, double* scratch,
) noexcept nogil:
    """Search two groups for the neighbours of the points of both."""
    cdef Py_ssize_t size = GROUP * CDSK_TILE, d = b.d, tile, place, i, j, n
    cdef Py_ssize_t end = min((other + 1) * size, b.n), tile_b
    cdef double lowering = 1 - 4 * (d + 4) * DOUBLE, centres, distance, root
    cdef query q
    cdef float[CDSK_TILE] of_b
    cdef int32_t[CDSK_TILE] rows
    cdef uint64_t[CDSK_TILE] near
    cdef uint64_t left
    cdef nearest* far_end
    for i in range(CDSK_TILE):
        rows[i] = <int32_t> i
    for tile in range(group * GROUP, min((group + 1) * GROUP, b.tiles)):
        n = min(CDSK_TILE, b.n - tile * CDSK_TILE)
        take_tile(a, d, tile, k, best + tile * CDSK_TILE, scratch, &q)
        if lowering * simd.box_distance(
            q.low, q.high, low + other * d, high + other * d, d, &centres
        ) > max(worst_of(q.best, 0, n), worst_of(best, other * size, end)):
            continue
        simd.single_tile(
            q.columns, b.centre + other * d, b.scale, d, q.packed, q.norms
        )
        for tile_b in range(other * GROUP, min((other + 1) * GROUP, b.tiles)):
            set_bounds(b, other, &q)
            for j in range(CDSK_TILE):
                place = min(tile_b * CDSK_TILE + j, b.n - 1)
                root = best[place].root * b.scale * (1 + 4 * (d + 4) * DOUBLE)
                of_b[j] = below(-0.5 * root * root - q.error)
            simd.near_pairs(
                q.packed, b.packed + tile_b * CDSK_TILE * d, d,
                b.shift + tile_b * CDSK_TILE, q.least, q.of_a, of_b, rows, n, near,
            )
            for i in range(n):
                left = near[i]
                while left:
                    place = tile_b * CDSK_TILE + first_bit(left)
                    left &= left - 1
                    if place >= b.n:
                        break
                    far_end = best + place
                    if may_enter(&q.best[i], b.order[place]) or may_enter(
                        far_end, b.order[q.first + i]
                    ):
                        distance = squared_distance(b, q.rows + i * d, place)
                        insert(&q.best[i], k, distance, b.order[place])
                        insert(far_end, k, distance, b.order[q.first + i])


cdef Py_ssize_t size_of_scratch(Py_ssize_t d) noexcept nogil:
    # a cache line apart from that of the next thread
    return 2 * CDSK_TILE * d + 2 * d + CDSK_TILE * d // 2 + 16


cdef class Tiles:
    """The points X (n, d), float32 or float64, ready for searches."""

    cdef tiled tiled
    cdef object arrays
    cdef double[:, :, ::1] boxes  # (2, groups, d) of the groups

    def __init__(self, X, int n_threads=1):
        order = np.empty(len(X), dtype=np.int32)
        order_points(X, order)
        self._pack(X, order, n_threads)

    def _pack(self, const floating[:, ::1] X, const int32_t[::1] order, int n_threads):
        cdef Py_ssize_t n = X.shape[0], d = X.shape[1]
        cdef Py_ssize_t tiles = n_parts(n, CDSK_TILE)
        cdef Py_ssize_t groups = n_parts(tiles, GROUP), group, begin, end
        dtype = np.float32 if floating is float else np.float64
        cdef floating[:, ::1] rows = np.empty((n, d), dtype)
        cdef float[:, :, ::1] packed = np.empty((tiles, d, CDSK_TILE), np.float32)
        cdef float[:, ::1] shift = np.empty((tiles, CDSK_TILE), np.float32)
        cdef float[:, :, ::1] boxes = np.empty((2, tiles, d), np.float32)
        cdef int32_t[::1] first = np.empty(tiles, np.int32)
        cdef double[:, ::1] centre = np.empty((groups, d))
        cdef double[::1] radius = np.empty(groups)
        cdef double[:, :, ::1] of_groups = np.empty((2, groups, d))
        cdef double[:, :, ::1] nodes = np.empty((2, 2 * groups - 1, d))
        cdef int32_t[::1] node_first = np.empty(2 * groups - 1, np.int32)
        cdef double[:, ::1] scratch = np.empty((n_threads, CDSK_TILE * d))
        cdef int exponent, used = useful_threads(n_threads, <double> n * d)
        cdef double scale
        extent = np.max(X, axis=0).astype(float) - np.min(X, axis=0)
        frexp(extent.max(), &exponent)
        scale = ldexp(1.0, -exponent)
        for begin in range(0, groups, 1000):
            end = min(begin + 1000, groups)
            for group in prange(begin, end, nogil=True, num_threads=used):
                pack_group(
                    &X[0, 0], n, d, group, scale, &order[0], &rows[0, 0],
                    &packed[0, 0, 0], &shift[0, 0], &boxes[0, 0, 0], &boxes[1, 0, 0],
                    &first[0], &centre[0, 0], &radius[0], &of_groups[0, group, 0],
                    &of_groups[1, group, 0], &scratch[threadid(), 0],
                )
            PyErr_CheckSignals()
        join_boxes(
            0, 0, groups, d, &of_groups[0, 0, 0], &of_groups[1, 0, 0], &first[0], tiles,
            &nodes[0, 0, 0], &nodes[1, 0, 0], &node_first[0],
        )
        self.tiled = tiled(
            n=n, d=d, tiles=tiles, groups=groups, scale=scale, rows=&rows[0, 0],
            is_single=floating is float, order=&order[0], packed=&packed[0, 0, 0],
            shift=&shift[0, 0], low=&boxes[0, 0, 0], high=&boxes[1, 0, 0],
            first=&first[0], centre=&centre[0, 0], radius=&radius[0],
            node_low=&nodes[0, 0, 0], node_high=&nodes[1, 0, 0],
            node_first=&node_first[0],
        )
        self.arrays = (
            rows, order, packed, shift, boxes, first, centre, radius, nodes, node_first
        )
        self.boxes = of_groups

    def nearest_others(
        self,
        int32_t[:, ::1] indices,  # (n, k) out, k at most n - 1
        double[:, ::1] distances,  # (n, k) out, nearest first
        int n_threads,
        progress=None,            # called with the share that is done
    ):
        """The k nearest of each point among the others."""
        cdef points own = points(
            n=self.tiled.n, rows=self.tiled.rows, is_single=self.tiled.is_single,
            order=self.tiled.order, itself=True,
        )
        # with fewer features boxes leave out more than half
        if self.tiled.d >= PAIRS and self.tiled.groups > 1:
            self._search_pairs(own, indices, distances, n_threads, progress)
        else:
            self._search(own, indices, distances, n_threads, progress)

    def nearest_to(
        self,
        const floating[:, ::1] A,  # (m, d) in, m > 0
        int32_t[:, ::1] indices,  # (m, k) out, k at most n
        double[:, ::1] distances,  # (m, k) out, nearest first
        int n_threads,
    ):
        """The k points nearest to each point of A."""
        cdef int32_t[::1] order = np.empty(A.shape[0], np.int32)
        order_points(A, order)
        cdef floating[:, ::1] rows = np.take(A, order, axis=0)
        cdef points new = points(
            n=A.shape[0], rows=&rows[0, 0], is_single=floating is float,
            order=&order[0], itself=False,
        )
        self._search(new, indices, distances, n_threads, None)

    cdef _search(
        self, points a, int32_t[:, ::1] indices, double[:, ::1] distances,
        int n_threads, progress,
    ):
        cdef Py_ssize_t tiles = n_parts(a.n, CDSK_TILE), tile, begin, end
        cdef Py_ssize_t d = self.tiled.d, k = indices.shape[1]
        cdef const tiled* b = &self.tiled
        cdef double[:, ::1] scratch = np.empty((n_threads, size_of_scratch(d)))
        cdef int used = useful_threads(n_threads, <double> a.n * min(b.n, 1000) * d)
        for begin, end in Strips(tiles, used, progress):
            for tile in prange(
                begin, end, nogil=True, schedule="dynamic",
                num_threads=used,
            ):
                search_tile(
                    b, &a, tile, k, &distances[0, 0], &indices[0, 0],
                    &scratch[threadid(), 0],
                )
        np.sqrt(distances, out=np.asarray(distances))

    cdef _search_pairs(
        self, points a, int32_t[:, ::1] indices, double[:, ::1] distances,
        int n_threads, progress,
    ):
        cdef Py_ssize_t d = self.tiled.d, k = indices.shape[1]
        cdef Py_ssize_t tile, meeting, begin, end
        cdef Py_ssize_t groups = self.tiled.groups, half = n_parts(groups, 2)
        cdef Py_ssize_t others = 2 * half - 1, turn, group, other
        cdef const tiled* b = &self.tiled
        cdef double[:, ::1] scratch = np.empty((n_threads, size_of_scratch(d)))
        cdef double[:, :, ::1] boxes = self.boxes
        cdef char[:, ::1] lists = np.empty((a.n, sizeof(nearest)), np.int8)
        cdef nearest* best = <nearest*> &lists[0, 0]
        cdef int used = useful_threads(n_threads, <double> a.n * min(b.n, 1000) * d)
        for begin, end in Strips(b.tiles, used, None):
            for tile in prange(
                begin, end, nogil=True, schedule="dynamic",
                num_threads=used,
            ):
                search_own_group(
                    b, &a, tile, k, &distances[0, 0], &indices[0, 0], best,
                    &scratch[threadid(), 0],
                )
        # as in a tournament: one group stays, the others go round
        for begin, end in Strips(others * half, used, progress, half):
            turn = begin // half
            for meeting in prange(
                begin - turn * half, end - turn * half,
                nogil=True, schedule="dynamic", num_threads=used,
            ):
                group = (turn + meeting) % others
                other = others if meeting == 0 else (turn + others - meeting) % others
                if group < groups and other < groups:
                    meet(
                        b, &a, group, other, &boxes[0, 0, 0], &boxes[1, 0, 0], k, best,
                        &scratch[threadid(), 0],
                    )
        np.sqrt(distances, out=np.asarray(distances))


class Strips:
    """Parts of the work, begin and end, after each of which signals are looked at.

    As many at a time as take a pause, never across a multiple of ``turn``.
    """

    def __init__(self, n, least, progress, turn=None):
        self.n, self.least, self.progress = n, least, progress
        self.turn = turn or n

    def __iter__(self):
        done, strip = 0, 2 * self.least
        while done < self.n:
            size = min(strip, self.turn - done % self.turn)
            begun = time.perf_counter()
            yield done, done + size
            PyErr_CheckSignals()
            done += size
            if self.progress is not None:
                self.progress(done / self.n)
            seconds = max(time.perf_counter() - begun, 1e-6)
            # never so few that threads wait for each other
            strip = max(self.least, min(4 * strip, int(size * PAUSE / seconds)))
