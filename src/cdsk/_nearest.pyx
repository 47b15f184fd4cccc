# SPDX-License-Identifier: BSD-3-Clause
"""Exact nearest neighbor search in tiles of points (tests/test_neighbors.py).

    Tiles(X).nearest_others(...)    the k nearest of each point of X among the others
    Tiles(X).nearest_to(A, ...)     the k points of X nearest to each point of A

Points are sorted as in a k-d tree, by recursive splits at the median of the feature of
largest variance: the 48 points of a tile are close to each other. 8 tiles are a group,
and the groups are the leaves of a tree of bounding boxes. A tile of query points visits
the groups, nearest first, and prunes in four stages:

    distance of two boxes                   prunes a group for all 48 query points
    distance of a point and a box           prunes a tile for one query point
    |a - b|^2 by inner products, float32    prunes a pair
    |a - b|^2 by differences, float64       the distance that is returned

With few features the boxes prune nearly everything, with many the inner products in
float32. Every bound allows for rounding, so no neighbor is missed. Distances are those
of the last stage, symmetric, and 0 between equal points. Ties go to the smaller index.
Results do not depend on the order of the search or the number of threads.
"""
import numpy as np

from cython cimport floating
from cython.parallel cimport prange, threadid
from libc.math cimport INFINITY, NAN, fabs, frexp, ldexp, sqrt
from libc.stdint cimport INT32_MAX, int32_t, uint64_t
from libc.string cimport memcpy

from cdsk._signals cimport (
    add_work,
    check_signals,
    gather_work,
    product_work,
    work_interval,
)
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
    VARIANCE_SAMPLE = 64          # points that estimate the variances of features
    MAX_DEPTH = 64                # levels of the tree
    MIN_PAIR_FEATURES = 64        # smallest d for which each pair is computed once

# Indices of points are int32, and INT32_MAX marks an empty place of a list.
MAX_POINTS = INT32_MAX

# Unit roundoff of float32 and float64.
cdef double EPS_F32 = 2.0 ** -24, EPS_F64 = 2.0 ** -53

# Largest scaled coordinate for which float32 may prune.
cdef double MAX_COORDINATE = 1e15

cdef struct tiled_points:
    Py_ssize_t n, d, tiles, groups
    double scale                  # a power of two: coordinates are about 1 then
    const void* rows              # (n, d) in order
    bint is_single                # rows are float32
    const int32_t* order          # (n,) indices of the points
    const float* packed           # (tiles, d, TILE) minus the center of the group
    const float* shift            # (tiles, TILE) -|b|^2 / 2
    const float* low              # (tiles, d) boxes
    const float* high
    const int32_t* min_index      # (tiles,) smallest index of a point
    const double* center          # (groups, d)
    const double* radius          # (groups,) largest |b|
    const double* node_low        # (2 groups - 1, d) boxes: node, left, right subtree
    const double* node_high
    const int32_t* node_min_index     # (2 groups - 1,)


cdef struct query_points:
    Py_ssize_t n
    const void* rows              # (n, d) in order
    bint is_single
    const int32_t* order          # (n,) rows of the results
    bint is_same_set              # the query points are those of the tiles


# The k nearest neighbors of a query point so far.
cdef struct neighbor_list:
    double* distances             # (k,) ascending, squared
    int32_t* indices              # (k,)
    double bound                  # the last distance
    double root                   # its square root
    int32_t last_index


# A tile of query points.
cdef struct query:
    Py_ssize_t first, n, k
    neighbor_list* best           # (TILE,)
    double* rows                  # (TILE, d)
    double* columns               # (d, TILE)
    double* low                   # (d,)
    double* high
    float* packed                 # (d, TILE)
    double max_bound
    int32_t max_last_index
    double norms[CDSK_TILE]
    float least[CDSK_TILE]        # arguments of points_near_box and near_pairs
    float reach[CDSK_TILE]
    float bound_a[CDSK_TILE]
    double error
    Py_ssize_t tested, kept       # points by their distance from boxes
    double work                   # done so far (unit: _signals.pxd)
    double last_check             # work at the last check for signals
    double* checked               # sum of work at checks; NULL: do not check


cdef inline Py_ssize_t ceil_div(Py_ssize_t n, Py_ssize_t size) noexcept nogil:
    return (n + size - 1) // size


cdef inline float round_down(double x) noexcept nogil:
    return <float> (x - 2.5 * EPS_F32 * fabs(x) - 1e-43)


cdef inline float round_up(double x) noexcept nogil:
    return <float> (x + 2.5 * EPS_F32 * fabs(x) + 1e-43)


# ---------------------------------------------------------------- order

cdef inline bint comes_before(
    double key, int32_t index, double other, int32_t other_index
) noexcept nogil:
    return key < other or (key == other and index < other_index)


cdef int select(
    double* keys, int32_t* order, Py_ssize_t low, Py_ssize_t high, Py_ssize_t middle,
    double* work_done, double interval,
) except -1 nogil:
    """Partition low ... high - 1 so that the smallest keys come before middle.

    Checks for signals after an interval of work.
    """
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
        add_work(work_done, 5.0 * (high - low), interval)
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            break
    return 0


cdef Py_ssize_t find_widest_feature(
    const floating* X, Py_ssize_t d, const int32_t* order,
    Py_ssize_t begin, Py_ssize_t end,
    double* sums,                 # (2, d) scratch
) noexcept nogil:
    """Return the feature of the largest variance in a sample of the points."""
    cdef Py_ssize_t step = ceil_div(end - begin, VARIANCE_SAMPLE), i, k, best = 0
    cdef const floating* origin = X + order[begin] * d
    cdef const floating* x
    cdef double difference, count = <double> ceil_div(end - begin, step)
    for k in range(2 * d):
        sums[k] = 0.0
    for i in range(ceil_div(end - begin, step)):
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


def check_n_points(Py_ssize_t n):
    """Raise a ValueError unless indices of n points fit int32."""
    if n > MAX_POINTS:
        raise ValueError(
            f"The neighbor search supports at most {MAX_POINTS} points; got {n}. "
            "Cluster a random sample of the rows."
        )


def order_points(
    const floating[:, ::1] X,     # (n, d) in
    int32_t[::1] order,           # (n,) out
):
    """Fill order with a permutation that puts close points into the same tile."""
    check_n_points(X.shape[0])
    cdef Py_ssize_t n = X.shape[0], d = X.shape[1], i, first, begin, middle, end, stop
    cdef Py_ssize_t unit, k, gathered
    cdef Py_ssize_t n_stack = 1
    cdef double work_done = 0.0, interval = work_interval()
    cdef double[::1] keys = np.empty(n)
    cdef double[::1] sums = np.empty(2 * d)
    cdef Py_ssize_t[2 * MAX_DEPTH] begins, ends
    for i in range(n):
        order[i] = <int32_t> i
    gathered = max(CDSK_TILE, <Py_ssize_t> (interval / gather_work(1)))
    begins[0], ends[0] = 0, ceil_div(n, CDSK_TILE)
    while n_stack:
        n_stack -= 1
        begin, end = begins[n_stack], ends[n_stack]
        if end - begin <= 1:
            continue
        unit = GROUP if end - begin > GROUP else 1
        middle = begin + ceil_div(ceil_div(end - begin, unit), 2) * unit
        begins[n_stack], ends[n_stack] = middle, end
        begins[n_stack + 1], ends[n_stack + 1] = begin, middle
        n_stack += 2
        first = begin = begin * CDSK_TILE
        middle = middle * CDSK_TILE
        end = min(end * CDSK_TILE, n)
        with nogil:
            k = find_widest_feature(&X[0, 0], d, &order[0], begin, end, &sums[0])
            add_work(
                &work_done, gather_work(VARIANCE_SAMPLE) + VARIANCE_SAMPLE * d, interval
            )
            while begin < end:
                stop = min(begin + gathered, end)
                for i in range(begin, stop):
                    keys[i] = X[order[i], k]
                add_work(&work_done, gather_work(stop - begin), interval)
                begin = stop
            select(&keys[0], &order[0], first, end, middle, &work_done, interval)


# ---------------------------------------------------------------- tiles

cdef void pack_group(
    const floating* X, Py_ssize_t n, Py_ssize_t d, Py_ssize_t group, double scale,
    const int32_t* order,
    floating* rows,               # the arrays of tiled, out
    float* packed, float* shift, float* low, float* high, int32_t* min_index,
    double* center, double* radius,
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
        center[group * d + k] = box_low[k] + 0.5 * (box_high[k] - box_low[k])
    radius[group] = 0.0
    for tile in range(begin // CDSK_TILE, ceil_div(end, CDSK_TILE)):
        begin, last = tile * CDSK_TILE, min((tile + 1) * CDSK_TILE, end)
        min_index[tile] = INT32_MAX
        for i in range(begin, last):
            min_index[tile] = min(min_index[tile], order[i])
        for k in range(d):
            lowest, highest = INFINITY, -INFINITY
            for i in range(CDSK_TILE):
                # padding points are at the center
                x = center[group * d + k]
                if begin + i < last:
                    x = rows[(begin + i) * d + k]
                    lowest, highest = min(lowest, x), max(highest, x)
                columns[k * CDSK_TILE + i] = x
            low[tile * d + k] = round_down((lowest - center[group * d + k]) * scale)
            high[tile * d + k] = round_up((highest - center[group * d + k]) * scale)
        simd.single_tile(
            columns, center + group * d, scale, d, packed + tile * CDSK_TILE * d, norms
        )
        for i in range(CDSK_TILE):
            shift[tile * CDSK_TILE + i] = <float> (-0.5 * norms[i])
            radius[group] = max(radius[group], norms[i])
    radius[group] = sqrt(radius[group])


cdef void join_boxes(
    Py_ssize_t node, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t d,
    const double* group_low, const double* group_high, const int32_t* tile_min_index,
    Py_ssize_t n_tiles, double* low, double* high, int32_t* min_index,
) noexcept nogil:
    """Fill the boxes of the subtree over groups begin ... end - 1."""
    cdef Py_ssize_t left = ceil_div(end - begin, 2), k, right
    if end - begin == 1:
        for k in range(d):
            low[node * d + k] = group_low[begin * d + k]
            high[node * d + k] = group_high[begin * d + k]
        min_index[node] = INT32_MAX
        for k in range(begin * GROUP, min(end * GROUP, n_tiles)):
            min_index[node] = min(min_index[node], tile_min_index[k])
        return
    right = node + 2 * left
    join_boxes(
        node + 1, begin, begin + left, d, group_low, group_high, tile_min_index,
        n_tiles, low, high, min_index,
    )
    join_boxes(
        right, begin + left, end, d, group_low, group_high, tile_min_index, n_tiles,
        low, high, min_index,
    )
    min_index[node] = min(min_index[node + 1], min_index[right])
    for k in range(d):
        low[node * d + k] = min(low[(node + 1) * d + k], low[right * d + k])
        high[node * d + k] = max(high[(node + 1) * d + k], high[right * d + k])


# ---------------------------------------------------------------- search

cdef void set_bounds(const tiled_points* b, Py_ssize_t group, query* q) noexcept nogil:
    """Set the bounds in float32 below which a pair or a box is pruned.

    With a, b relative to the center of the group, b may be a neighbor of a if
    ab - |b|^2 / 2 >= |a|^2 / 2 - bound / 2. The error of the left side in float32 is at
    most `error`: both points are rounded once, and each product and |b|^2 / 2 once per
    addition.
    """
    cdef Py_ssize_t d = b.d, i
    cdef double far = 0.0, radius = b.radius[group], root
    cdef double sums = (
        min(d, CDSK_SINGLE_DEPTH) + ceil_div(d, CDSK_SINGLE_DEPTH) + 2
    )
    cdef double tiny = 4 * (d + 4) * EPS_F64, slack = 1.1 * (d + 8) * EPS_F32
    for i in range(q.n):
        far = max(far, q.norms[i])
    far = sqrt(far)
    q.error = 1.01 * EPS_F32 * radius * ((sums + 3) * far + (sums + 2) * 0.5 * radius)
    q.error += 4e-38 * d * (far + radius + 2)
    for i in range(q.n):
        root = q.best[i].root * b.scale * (1 + tiny)
        q.least[i] = round_down(
            0.5 * (q.norms[i] * (1 - tiny) - root * root) - q.error
        )
        q.bound_a[i] = round_down(0.5 * q.norms[i] * (1 - tiny))
        root = (root + 1.01 * EPS_F32 * far) * (1 + slack)
        q.reach[i] = round_up(root * root)
        if not (far < MAX_COORDINATE and slack < 0.05):
            # NaN: nothing is pruned
            q.least[i] = q.reach[i] = NAN


cdef inline double squared_distance(
    const tiled_points* b, const double* a, Py_ssize_t place
) noexcept nogil:
    if b.is_single:
        return simd.squared_distance_f32(a, <const float*> b.rows + place * b.d, b.d)
    return simd.squared_distance_f64(a, <const double*> b.rows + place * b.d, b.d)


cdef inline bint may_insert(const neighbor_list* best, int32_t index) noexcept nogil:
    """Return False if the list is full of duplicates with smaller indices."""
    return best.bound != 0.0 or index < best.last_index


cdef bint insert(
    neighbor_list* best, Py_ssize_t k, double distance, int32_t index
) noexcept nogil:
    """Insert a point if it is one of the k nearest; return whether the bound falls."""
    cdef Py_ssize_t place = k - 1
    cdef double bound = best.bound
    if not comes_before(distance, index, bound, best.last_index):
        return False
    while place > 0 and comes_before(
        distance, index, best.distances[place - 1], best.indices[place - 1]
    ):
        best.distances[place] = best.distances[place - 1]
        best.indices[place] = best.indices[place - 1]
        place -= 1
    best.distances[place] = distance
    best.indices[place] = index
    best.last_index = best.indices[k - 1]
    best.bound = best.distances[k - 1]
    if best.bound == bound:
        return False
    best.root = sqrt(best.bound)
    return True


cdef Py_ssize_t rows_for_tile(
    const tiled_points* b, Py_ssize_t tile, query* q, int32_t* rows
) noexcept nogil:
    """Fill rows with the points that may have neighbors in a tile; return how many."""
    cdef Py_ssize_t n_rows, i, kept = 0
    # where boxes prune little, only the first tile of a group is tested
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
        # without padding points and points whose list is full of duplicates
        if rows[i] < q.n and may_insert(&q.best[rows[i]], b.min_index[tile]):
            rows[kept] = rows[i]
            kept += 1
    return kept


cdef void search_group(
    const tiled_points* b, const query_points* a, Py_ssize_t group, query* q
) noexcept nogil:
    cdef Py_ssize_t tile, r, i, j, place, n_rows
    cdef int32_t[CDSK_TILE] rows
    cdef uint64_t[CDSK_TILE] near
    cdef uint64_t left
    cdef int32_t index
    cdef bint changed
    cdef double distance
    simd.single_tile(
        q.columns, b.center + group * b.d, b.scale, b.d, q.packed, q.norms
    )
    set_bounds(b, group, q)
    q.work += CDSK_TILE * b.d
    for tile in range(group * GROUP, min((group + 1) * GROUP, b.tiles)):
        n_rows = rows_for_tile(b, tile, q, rows)
        q.work += product_work((1 + n_rows) * CDSK_TILE * b.d)
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
                if not may_insert(&q.best[i], index) or (
                    a.is_same_set and place == q.first + i
                ):
                    continue
                distance = squared_distance(b, q.rows + i * b.d, place)
                q.work += b.d
                changed |= insert(&q.best[i], q.k, distance, index)
        if changed:
            set_bounds(b, group, q)
    q.max_bound, q.max_last_index = 0.0, 0
    for i in range(q.n):
        q.max_bound = max(q.max_bound, q.best[i].bound)
        q.max_last_index = max(q.max_last_index, q.best[i].last_index)


cdef inline double box_distance(
    const tiled_points* b, const query* q, Py_ssize_t node, double* centers
) noexcept nogil:
    """Return a lower bound of the squared distance between the query and a node."""
    return (1 - 4 * (b.d + 4) * EPS_F64) * simd.box_distance(
        q.low, q.high, b.node_low + node * b.d, b.node_high + node * b.d, b.d, centers
    )


cdef int search_tree(
    const tiled_points* b, const query_points* a, query* q
) except -1 nogil:
    """Search the groups depth first, the nearer subtree first."""
    cdef Py_ssize_t[MAX_DEPTH] nodes, begins, ends
    cdef double[MAX_DEPTH] gaps
    cdef Py_ssize_t n_stack = 1, node, begin, end, left, near, far
    cdef double gap, near_gap, far_gap, near_center, far_center
    nodes[0], begins[0], ends[0], gaps[0] = 0, 0, b.groups, 0.0
    while n_stack:
        n_stack -= 1
        node, begin, end = nodes[n_stack], begins[n_stack], ends[n_stack]
        gap = gaps[n_stack]
        while not (
            gap > q.max_bound
            or (q.max_bound == 0.0 and b.node_min_index[node] > q.max_last_index)
        ):
            if end - begin == 1:
                search_group(b, a, begin, q)
                if q.checked != NULL and q.work - q.last_check > work_interval():
                    check_signals(q.work - q.last_check)
                    q.checked[0] += q.work - q.last_check
                    q.last_check = q.work
                break
            q.work += 2 * b.d
            left = ceil_div(end - begin, 2)
            near, far = node + 1, node + 2 * left
            near_gap = box_distance(b, q, near, &near_center)
            far_gap = box_distance(b, q, far, &far_center)
            begins[n_stack], ends[n_stack] = begin + left, end
            end = begin + left
            if far_gap < near_gap or (far_gap == near_gap and far_center < near_center):
                near, far, near_gap, far_gap = far, near, far_gap, near_gap
                begin, begins[n_stack] = begins[n_stack], begin
                end, ends[n_stack] = ends[n_stack], end
            nodes[n_stack], gaps[n_stack] = far, far_gap
            n_stack += 1
            node, gap = near, near_gap
    return 0


cdef void load_query(
    const query_points* a, Py_ssize_t d, Py_ssize_t tile, Py_ssize_t k,
    neighbor_list* best,
    double* scratch,              # scratch_size(d)
    query* q,
) noexcept nogil:
    """Make a tile of points the query."""
    cdef Py_ssize_t i, f, begin, place
    q.first, q.k, q.best, q.tested, q.kept = tile * CDSK_TILE, k, best, 0, 0
    q.work, q.last_check, q.checked = CDSK_TILE * d, 0.0, NULL
    q.n = min(a.n - q.first, CDSK_TILE)
    q.rows = scratch
    q.columns = q.rows + CDSK_TILE * d
    q.low = q.columns + CDSK_TILE * d
    q.high = q.low + d
    q.packed = <float*> (q.high + d)
    q.max_bound, q.max_last_index = INFINITY, INT32_MAX
    for i in range(CDSK_TILE):
        # padding repeats the last point
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


cdef void clear_lists(
    const query_points* a, Py_ssize_t tile, Py_ssize_t k, double* distances,
    int32_t* indices, neighbor_list* best,
) noexcept nogil:
    """Empty the lists of a tile of query points."""
    cdef Py_ssize_t first = tile * CDSK_TILE, i, rank, place
    for i in range(min(a.n - first, CDSK_TILE)):
        place = a.order[first + i] * k
        best[i].distances, best[i].indices = distances + place, indices + place
        best[i].bound = best[i].root = INFINITY
        best[i].last_index = INT32_MAX
        for rank in range(k):
            best[i].distances[rank], best[i].indices[rank] = INFINITY, INT32_MAX


cdef double search_tile(
    const tiled_points* b, const query_points* a, Py_ssize_t tile, Py_ssize_t k,
    double* distances, int32_t* indices, double* scratch,
    double* checked,              # sum of work at checks for signals; NULL: no checks
) except -1.0 nogil:
    """Search all groups for the neighbors of a tile of points; return the work."""
    cdef query q
    cdef neighbor_list[CDSK_TILE] best
    clear_lists(a, tile, k, distances, indices, best)
    load_query(a, b.d, tile, k, best, scratch, &q)
    q.checked = checked
    search_tree(b, a, &q)
    return q.work


# ---------------------------------------------------------------- each pair once
# Where boxes prune nothing, each pair is computed once for both of its points. As in a
# round-robin tournament, each of G - 1 rounds pairs each of the G groups with another:
# no two threads write to the same lists.

cdef double search_own_group(
    const tiled_points* b, const query_points* a, Py_ssize_t tile, Py_ssize_t k,
    double* distances, int32_t* indices, neighbor_list* best, double* scratch,
) noexcept nogil:
    """Search the group of a tile for the neighbors of its points; return the work."""
    cdef query q
    clear_lists(a, tile, k, distances, indices, best + tile * CDSK_TILE)
    load_query(a, b.d, tile, k, best + tile * CDSK_TILE, scratch, &q)
    search_group(b, a, tile // GROUP, &q)
    return q.work


cdef double max_bound_of(
    const neighbor_list* best, Py_ssize_t begin, Py_ssize_t end
) noexcept nogil:
    cdef double largest = 0.0
    cdef Py_ssize_t i
    for i in range(begin, end):
        largest = max(largest, best[i].bound)
    return largest


cdef double search_group_pair(
    const tiled_points* b, const query_points* a, Py_ssize_t group, Py_ssize_t other,
    const double* low, const double* high,    # (groups, d) boxes
    Py_ssize_t k, neighbor_list* best, double* scratch,
) noexcept nogil:
    """Search two groups for the neighbors of the points of both; return the work."""
    cdef Py_ssize_t size = GROUP * CDSK_TILE, d = b.d, tile, place, i, j, n
    cdef Py_ssize_t end = min((other + 1) * size, b.n), tile_b
    cdef double lowering = 1 - 4 * (d + 4) * EPS_F64, centers, distance, root
    cdef double work = 0.0
    cdef query q
    cdef float[CDSK_TILE] bound_b
    cdef int32_t[CDSK_TILE] rows
    cdef uint64_t[CDSK_TILE] near
    cdef uint64_t left
    cdef neighbor_list* other_list
    for i in range(CDSK_TILE):
        rows[i] = <int32_t> i
    for tile in range(group * GROUP, min((group + 1) * GROUP, b.tiles)):
        n = min(CDSK_TILE, b.n - tile * CDSK_TILE)
        load_query(a, d, tile, k, best + tile * CDSK_TILE, scratch, &q)
        work += q.work
        if lowering * simd.box_distance(
            q.low, q.high, low + other * d, high + other * d, d, &centers
        ) > max(max_bound_of(q.best, 0, n), max_bound_of(best, other * size, end)):
            continue
        simd.single_tile(
            q.columns, b.center + other * d, b.scale, d, q.packed, q.norms
        )
        for tile_b in range(other * GROUP, min((other + 1) * GROUP, b.tiles)):
            set_bounds(b, other, &q)
            for j in range(CDSK_TILE):
                place = min(tile_b * CDSK_TILE + j, b.n - 1)
                root = best[place].root * b.scale * (1 + 4 * (d + 4) * EPS_F64)
                bound_b[j] = round_down(-0.5 * root * root - q.error)
            simd.near_pairs(
                q.packed, b.packed + tile_b * CDSK_TILE * d, d,
                b.shift + tile_b * CDSK_TILE, q.least, q.bound_a, bound_b, rows, n,
                near,
            )
            work += product_work(CDSK_TILE * CDSK_TILE * d)
            for i in range(n):
                left = near[i]
                while left:
                    place = tile_b * CDSK_TILE + first_bit(left)
                    left &= left - 1
                    if place >= b.n:
                        break
                    other_list = best + place
                    if may_insert(&q.best[i], b.order[place]) or may_insert(
                        other_list, b.order[q.first + i]
                    ):
                        distance = squared_distance(b, q.rows + i * d, place)
                        work += d
                        insert(&q.best[i], k, distance, b.order[place])
                        insert(other_list, k, distance, b.order[q.first + i])
    return work


cdef Py_ssize_t scratch_size(Py_ssize_t d) noexcept nogil:
    # 16: threads must not share a cache line
    return 2 * CDSK_TILE * d + 2 * d + CDSK_TILE * d // 2 + 16


cdef class Tiles:
    """Index of the points X of shape (n, d), float32 or float64, for searches."""

    cdef tiled_points tiled
    cdef object arrays
    cdef double[:, :, ::1] boxes  # (2, groups, d) of the groups

    def __init__(self, X, int n_threads=1):
        check_n_points(len(X))
        order = np.empty(len(X), dtype=np.int32)
        order_points(X, order)
        self._pack(X, order, n_threads)

    def _pack(self, const floating[:, ::1] X, const int32_t[::1] order, int n_threads):
        cdef Py_ssize_t n = X.shape[0], d = X.shape[1]
        cdef Py_ssize_t tiles = ceil_div(n, CDSK_TILE)
        cdef Py_ssize_t groups = ceil_div(tiles, GROUP), group, begin, end, step
        dtype = np.float32 if floating is float else np.float64
        cdef floating[:, ::1] rows = np.empty((n, d), dtype)
        cdef float[:, :, ::1] packed = np.empty((tiles, d, CDSK_TILE), np.float32)
        cdef float[:, ::1] shift = np.empty((tiles, CDSK_TILE), np.float32)
        cdef float[:, :, ::1] boxes = np.empty((2, tiles, d), np.float32)
        cdef int32_t[::1] min_index = np.empty(tiles, np.int32)
        cdef double[:, ::1] center = np.empty((groups, d))
        cdef double[::1] radius = np.empty(groups)
        cdef double[:, :, ::1] group_boxes = np.empty((2, groups, d))
        cdef double[:, :, ::1] nodes = np.empty((2, 2 * groups - 1, d))
        cdef int32_t[::1] node_min_index = np.empty(2 * groups - 1, np.int32)
        cdef double[:, ::1] scratch = np.empty((n_threads, CDSK_TILE * d))
        cdef int exponent, used = useful_threads(n_threads, <double> n * d)
        cdef double scale, group_work = 4.0 * GROUP * CDSK_TILE * d
        extent = np.max(X, axis=0).astype(float) - np.min(X, axis=0)
        frexp(extent.max(), &exponent)
        scale = ldexp(1.0, -exponent)
        step = max(used, <Py_ssize_t> (work_interval() / group_work))
        for begin in range(0, groups, step):
            end = min(begin + step, groups)
            for group in prange(begin, end, nogil=True, num_threads=used):
                pack_group(
                    &X[0, 0], n, d, group, scale, &order[0], &rows[0, 0],
                    &packed[0, 0, 0], &shift[0, 0], &boxes[0, 0, 0], &boxes[1, 0, 0],
                    &min_index[0], &center[0, 0], &radius[0], &group_boxes[0, group, 0],
                    &group_boxes[1, group, 0], &scratch[threadid(), 0],
                )
            check_signals((end - begin) * group_work)
        join_boxes(
            0, 0, groups, d, &group_boxes[0, 0, 0], &group_boxes[1, 0, 0],
            &min_index[0], tiles, &nodes[0, 0, 0], &nodes[1, 0, 0], &node_min_index[0],
        )
        self.tiled = tiled_points(
            n=n, d=d, tiles=tiles, groups=groups, scale=scale, rows=&rows[0, 0],
            is_single=floating is float, order=&order[0], packed=&packed[0, 0, 0],
            shift=&shift[0, 0], low=&boxes[0, 0, 0], high=&boxes[1, 0, 0],
            min_index=&min_index[0], center=&center[0, 0], radius=&radius[0],
            node_low=&nodes[0, 0, 0], node_high=&nodes[1, 0, 0],
            node_min_index=&node_min_index[0],
        )
        self.arrays = (
            rows, order, packed, shift, boxes, min_index, center, radius, nodes,
            node_min_index,
        )
        self.boxes = group_boxes

    def nearest_others(
        self,
        int32_t[:, ::1] indices,  # (n, k) out, k at most n - 1
        double[:, ::1] distances,  # (n, k) out, nearest first
        int n_threads,
        progress=None,            # called with the fraction that is done, or None
    ):
        """Find the k nearest neighbors of each point among the others."""
        cdef query_points own = query_points(
            n=self.tiled.n, rows=self.tiled.rows, is_single=self.tiled.is_single,
            order=self.tiled.order, is_same_set=True,
        )
        # with fewer features boxes prune more than half of the pairs
        if self.tiled.d >= MIN_PAIR_FEATURES and self.tiled.groups > 1:
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
        """Find the k nearest neighbors of each point of A."""
        check_n_points(A.shape[0])
        cdef int32_t[::1] order = np.empty(A.shape[0], np.int32)
        order_points(A, order)
        cdef floating[:, ::1] rows = np.take(A, order, axis=0)
        cdef query_points new = query_points(
            n=A.shape[0], rows=&rows[0, 0], is_single=floating is float,
            order=&order[0], is_same_set=False,
        )
        self._search(new, indices, distances, n_threads, None)

    cdef _search(
        self, query_points a, int32_t[:, ::1] indices, double[:, ::1] distances,
        int n_threads, progress,
    ):
        cdef Py_ssize_t tiles = ceil_div(a.n, CDSK_TILE), tile, begin, end
        cdef Py_ssize_t d = self.tiled.d, k = indices.shape[1]
        cdef const tiled_points* b = &self.tiled
        cdef double[:, ::1] scratch = np.empty((n_threads, scratch_size(d)))
        cdef int used = useful_threads(n_threads, <double> a.n * min(b.n, 1000) * d)
        cdef double[::1] work = np.zeros(tiles)
        cdef double checked_work = 0.0
        cdef double* checked = &checked_work
        cdef Strips strips = Strips(tiles, used, progress)
        while strips.begin < strips.end:
            begin, end = strips.begin, strips.end
            for tile in prange(
                begin, end, nogil=True, schedule="dynamic",
                num_threads=used,
            ):
                # thread 0 is the one that called, in which Python handles signals
                work[tile] = search_tile(
                    b, &a, tile, k, &distances[0, 0], &indices[0, 0],
                    &scratch[threadid(), 0], checked if threadid() == 0 else NULL,
                )
            strips.advance(np.sum(work[begin:end]), checked_work)
            checked_work = 0.0
        np.sqrt(distances, out=np.asarray(distances))

    cdef _search_pairs(
        self, query_points a, int32_t[:, ::1] indices, double[:, ::1] distances,
        int n_threads, progress,
    ):
        cdef Py_ssize_t d = self.tiled.d, k = indices.shape[1]
        cdef Py_ssize_t tile, task, begin, end
        cdef Py_ssize_t groups = self.tiled.groups, half = ceil_div(groups, 2)
        cdef Py_ssize_t n_rounds = 2 * half - 1, round_index, group, other
        cdef const tiled_points* b = &self.tiled
        cdef double[:, ::1] scratch = np.empty((n_threads, scratch_size(d)))
        cdef double[:, :, ::1] boxes = self.boxes
        cdef char[:, ::1] lists = np.empty((a.n, sizeof(neighbor_list)), np.int8)
        cdef neighbor_list* best = <neighbor_list*> &lists[0, 0]
        cdef int used = useful_threads(n_threads, <double> a.n * min(b.n, 1000) * d)
        cdef double[::1] work = np.zeros(max(b.tiles, half))
        cdef Strips strips = Strips(b.tiles, used, None)
        while strips.begin < strips.end:
            begin, end = strips.begin, strips.end
            for tile in prange(
                begin, end, nogil=True, schedule="dynamic",
                num_threads=used,
            ):
                work[tile] = search_own_group(
                    b, &a, tile, k, &distances[0, 0], &indices[0, 0], best,
                    &scratch[threadid(), 0],
                )
            strips.advance(np.sum(work[begin:end]))
        # the last group keeps its place, the others rotate
        strips = Strips(n_rounds * half, used, progress, half)
        while strips.begin < strips.end:
            round_index = strips.begin // half
            begin = strips.begin - round_index * half
            end = strips.end - round_index * half
            work[begin:end] = 0.0
            for task in prange(
                begin, end, nogil=True, schedule="dynamic", num_threads=used,
            ):
                group = (round_index + task) % n_rounds
                other = (round_index + n_rounds - task) % n_rounds
                if task == 0:
                    other = n_rounds
                if group < groups and other < groups:
                    work[task] = search_group_pair(
                        b, &a, group, other, &boxes[0, 0, 0], &boxes[1, 0, 0], k, best,
                        &scratch[threadid(), 0],
                    )
            strips.advance(np.sum(work[begin:end]))
        np.sqrt(distances, out=np.asarray(distances))


cdef class Strips:
    """Strips begin ... end - 1 of n tasks, after each of which signals are checked.

    The size of a strip is predicted from the work of the one before, and at least
    ``min_size``. No strip crosses a multiple of ``period``.
    """

    cdef Py_ssize_t n, min_size, period, size, begin, end
    cdef object progress     # called with the fraction that is done, or None

    def __cinit__(self, Py_ssize_t n, Py_ssize_t min_size, progress, period=None):
        self.n, self.min_size, self.progress = n, min_size, progress
        self.period = period or n
        self.begin = self.end = 0
        self.size = min_size
        self.set_end()

    cdef void set_end(self) noexcept:
        self.end = min(
            self.begin + min(self.size, self.period - self.begin % self.period), self.n
        )

    cdef int advance(self, double work, double checked=0.0) except -1:
        """Check for signals after a strip of this work and go to the next one.

        ``checked`` is the part of the work that was checked already.
        """
        cdef Py_ssize_t done = self.end - self.begin
        check_signals(work - checked)
        if self.progress is not None:
            self.progress(self.end / <double> self.n)
        self.size = max(
            self.min_size,
            <Py_ssize_t> min(
                4.0 * self.size, done * work_interval() / max(work, 1.0)
            ),
        )
        self.begin = self.end
        self.set_end()
        return 0
