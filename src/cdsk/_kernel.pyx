# SPDX-License-Identifier: BSD-3-Clause
"""Compiled operations on Gaussian kernel matrices.

    gaussian_gram       K_ij = exp(-|x_i - x_j|^2 / (2 b_i b_j)), one bandwidth b or one
                        per point; exactly symmetric with unit diagonal
    gaussian_rows       the same between two sets of points
    gaussian_log_votes  log sum_{j: y_j = y} alpha_j K(x_i, x_j) for every cluster y
    product             (K - diag K) V for a few columns
    similarity          S_ij = 2 (alpha_i + alpha_j - penalty alpha_i alpha_j) K_ij,
                        and its degrees; penalty is the paper's lambda

Arrays arrive checked, C-contiguous and allocated. Values are computed in double
precision and stored as float32 or float64. Loops over tiles and rows run on OpenMP
threads; each entry is computed by one thread in a fixed order of summation, so results
do not depend on the number of threads. Long loops check for signals between strips. The
inner loops are in _simd/simd.c.

Cost: O(n^2 d) for K, O(n^2 m) for a product with m columns.
"""
import numpy as np

from cython cimport floating
from cython.parallel cimport prange
from libc.float cimport DBL_MAX
from libc.math cimport HUGE_VAL, M_SQRT1_2, log

from cdsk._signals cimport check_signals, product_work, work_interval
from cdsk._simd cimport (
    CDSK_GROUP,
    CDSK_MAX_COLUMNS,
    CDSK_PRODUCT_ROWS,
    CDSK_TILE,
    cdsk_simd,
    cdsk_simd_select,
)
from cdsk._threads cimport useful_threads
from cdsk._tiles cimport MAX_TILE_ROWS, n_tiles, pack_tile, tile_rows

cdef const cdsk_simd* simd = cdsk_simd_select()

# Smallest number of features for which expanded squared distances are faster, and the
# largest |x|^2 / (2 b^2) of centered points for which they are accurate. The error of
# |a|^2 + |b|^2 - 2ab, as an absolute error of the exponent, is some eps times
# (|a|^2 + |b|^2) / (2 b_a b_b), which is at most 6 times this limit where K > 1e-30:
# less than 1e-12, as sums are added up in parts (DEPTH in _simd/simd.c).
cdef Py_ssize_t MIN_EXPANDED_FEATURES = 16
cdef double MAX_EXPANDED_NORM = 50.0

# Largest ratio of bandwidths for which points are centered: the rounding of centered
# points of large bandwidth is large in units of a small one.
cdef double MAX_BANDWIDTH_RATIO = 4096.0

# As in _validation.py: beyond these the factors of the exponent overflow.
cdef double MIN_BANDWIDTH = 1e-150
cdef double MAX_BANDWIDTH = 1e150

# New memory of at least TOUCH_FROM bytes is touched in chunks before it is filled, to
# check for signals in between. The system provides less memory in less than a second.
cdef Py_ssize_t TOUCH_FROM = 1 << 29
cdef Py_ssize_t TOUCH_CHUNK = 1 << 26
cdef Py_ssize_t PAGE = 4096


def simd_level():
    """Return the name of the instruction set in use: base, v3 or v4."""
    return simd.name.decode()


# ---------------------------------------------------------------- packed points

cdef struct packed_points:
    Py_ssize_t n, d, tiles
    double* points       # (tiles, d, TILE), see _simd/simd.h
    double* scale        # (tiles * TILE,) 1 / (sqrt(2) bandwidth), padded with zeros
    # (tiles * TILE,) squared norms, -1 if too large to expand; NULL: use differences
    double* norms


cdef Py_ssize_t cdsk_packed_size(Py_ssize_t n, Py_ssize_t d) noexcept nogil:
    if n < 1 or d < 1:
        return 0
    # points, scale, norms and the center; one more group for the alignment
    return n_tiles(n) * CDSK_TILE * (d + 2) + CDSK_GROUP + d


cdef bint is_step(Py_ssize_t bandwidth_step) noexcept nogil:
    """Return whether the step is 0 (one bandwidth for all points) or 1 (one each)."""
    return bandwidth_step == 0 or bandwidth_step == 1


cdef int pack(
    const floating* X,            # (n, d) in
    Py_ssize_t n, Py_ssize_t d,
    const double* bandwidth,      # in: one if bandwidth_step is 0, n if it is 1
    Py_ssize_t bandwidth_step,
    const double* center,         # (d,) in: expand distances from here; or NULL
    double* work,                 # (cdsk_packed_size(n, d),) out
    int n_threads,
    packed_points* packed,        # out, points into work
) noexcept nogil:
    """Return 0, or -1 for sizes or bandwidths out of range."""
    cdef Py_ssize_t i, tile
    if n < 1 or d < 1 or n_threads < 1 or not is_step(bandwidth_step):
        return -1
    packed.n, packed.d, packed.tiles = n, d, n_tiles(n)
    packed.points = work + (-<size_t> work // sizeof(double)) % CDSK_GROUP
    packed.scale = packed.points + packed.tiles * CDSK_TILE * d
    packed.norms = packed.scale + packed.tiles * CDSK_TILE
    for i in range(packed.tiles * CDSK_TILE):
        packed.scale[i] = 0.0
    for i in range(n):
        if not (
            MIN_BANDWIDTH <= bandwidth[i * bandwidth_step] <= MAX_BANDWIDTH
        ):
            return -1
        packed.scale[i] = M_SQRT1_2 / bandwidth[i * bandwidth_step]
    if center == NULL:
        packed.norms = NULL
    for tile in prange(
        packed.tiles, schedule="static",
        num_threads=useful_threads(n_threads, <double> n * d),
    ):
        pack_tile(X, center, n, d, tile, packed.points + tile * d * CDSK_TILE)
        if center != NULL:
            simd.squared_norms(
                packed.points + tile * d * CDSK_TILE, d, packed.norms + tile * CDSK_TILE
            )
    if center != NULL:
        for i in range(n):
            # also if the norm is NaN
            if not (packed.norms[i] * packed.scale[i] ** 2 <= MAX_EXPANDED_NORM):
                packed.norms[i] = -1.0
    return 0


cdef int pack_around_mean(
    const floating* X, Py_ssize_t n, Py_ssize_t d,
    const double* bandwidth, Py_ssize_t bandwidth_step, bint may_expand,
    double* work, int n_threads, packed_points* packed,
) noexcept nogil:
    """Pack centered points if all of them may be expanded, else points as they are.

    The center is stored in the last d doubles of work.
    """
    cdef Py_ssize_t i, k
    cdef double* center
    if n < 1 or d < MIN_EXPANDED_FEATURES or not may_expand:
        return pack(
            X, n, d, bandwidth, bandwidth_step, NULL, work, n_threads, packed
        )
    center = work + cdsk_packed_size(n, d) - d
    for k in range(d):
        center[k] = 0.0
    for i in range(n):
        for k in range(d):
            center[k] += X[i * d + k]
    for k in range(d):
        center[k] /= n
    if pack(X, n, d, bandwidth, bandwidth_step, center, work, n_threads, packed):
        return -1
    for i in range(n):
        if packed.norms[i] < 0.0:
            return pack(
                X, n, d, bandwidth, bandwidth_step, NULL, work, n_threads, packed
            )
    return 0


cdef bint have_similar_bandwidths(
    const double* bandwidth_a, Py_ssize_t n_a, Py_ssize_t step_a,
    const double* bandwidth_b, Py_ssize_t n_b, Py_ssize_t step_b,
) noexcept nogil:
    """Return whether max(b_b) / min(b_a) is at most MAX_BANDWIDTH_RATIO."""
    cdef Py_ssize_t i
    cdef double smallest_a = HUGE_VAL, largest_b = 0.0
    for i in range(n_a if step_a else 1):
        smallest_a = min(smallest_a, bandwidth_a[i * step_a])
    for i in range(n_b if step_b else 1):
        largest_b = max(largest_b, bandwidth_b[i * step_b])
    return largest_b <= MAX_BANDWIDTH_RATIO * smallest_a


cdef int pack_support(
    const floating* B, Py_ssize_t n_b, Py_ssize_t d,
    const double* bandwidth_a, Py_ssize_t n_a, Py_ssize_t step_a,
    const double* bandwidth_b, Py_ssize_t step_b,
    double* work,                 # (cdsk_packed_size(n_b, d),) out
    int n_threads,
    packed_points* packed,        # out, points into work
    const double** center,        # out: center for packing the points of A, or NULL
) noexcept nogil:
    """Pack the support points B.

    They decide whether distances are expanded at all, and each point of A then decides
    for itself: a row of the result does not depend on other rows.
    """
    if n_a < 1 or n_b < 1 or not (is_step(step_a) and is_step(step_b)):
        return -1
    if pack_around_mean(
        B, n_b, d, bandwidth_b, step_b,
        have_similar_bandwidths(bandwidth_a, n_a, step_a, bandwidth_b, n_b, step_b),
        work, n_threads, packed,
    ):
        return -1
    center[0] = NULL if packed.norms == NULL else work + cdsk_packed_size(n_b, d) - d
    return 0


# ---------------------------------------------------------------- Gaussian tiles

cdef inline void gaussian_tile(
    const packed_points* A, Py_ssize_t tile_a,
    const packed_points* B, Py_ssize_t tile_b,
    floating* out,                # entry (0, 0) of the whole matrix
    bint mirrored,
    Py_ssize_t stride,
) noexcept nogil:
    cdef Py_ssize_t i = tile_a * CDSK_TILE
    cdef Py_ssize_t j = tile_b * CDSK_TILE
    cdef floating* mirror = out + j * stride + i if mirrored and j > i else NULL
    cdef const double* norms_a = NULL if A.norms == NULL else A.norms + i
    cdef const double* norms_b = NULL if B.norms == NULL else B.norms + j
    if floating is double:
        simd.gaussian_f64(
            A.points + i * A.d, B.points + j * B.d, A.d, A.scale + i, B.scale + j,
            norms_a, norms_b, min(CDSK_TILE, A.n - i), min(CDSK_TILE, B.n - j),
            out + i * stride + j, mirror, stride,
        )
    else:
        simd.gaussian_f32(
            A.points + i * A.d, B.points + j * B.d, A.d, A.scale + i, B.scale + j,
            norms_a, norms_b, min(CDSK_TILE, A.n - i), min(CDSK_TILE, B.n - j),
            out + i * stride + j, mirror, stride,
        )


cdef double tile_work(
    Py_ssize_t tiles_a, Py_ssize_t tiles_b, Py_ssize_t d
) noexcept nogil:
    """Return the number of multiplications; an exp counts as 16."""
    return <double> tiles_a * tiles_b * CDSK_TILE * CDSK_TILE * (d + 16)


cdef Py_ssize_t strip_tiles(Py_ssize_t tiles_b, Py_ssize_t d) noexcept nogil:
    """Return how many rows of tiles to compute between two checks of signals."""
    return max(
        1,
        <Py_ssize_t> (work_interval() / product_work(tile_work(1, tiles_b, d))),
    )


cdef void gram_strip(
    const packed_points* X, Py_ssize_t first, Py_ssize_t last, floating* K,
    int n_threads,
) noexcept nogil:
    """Compute tile rows first ... last - 1 from the diagonal on, and their mirror."""
    cdef Py_ssize_t task, begin, tile_a, tile_b
    cdef Py_ssize_t height = tile_rows(X.d)
    cdef Py_ssize_t groups = (last - first + height - 1) // height
    for task in prange(
        groups * X.tiles, schedule="dynamic", chunksize=2,
        num_threads=useful_threads(n_threads, tile_work(last - first, X.tiles, X.d)),
    ):
        begin = first + task // X.tiles * height
        tile_b = task % X.tiles
        for tile_a in range(begin, min(begin + height, last, tile_b + 1)):
            gaussian_tile[floating](X, tile_a, X, tile_b, K, True, X.n)


cdef void rows_strip(
    const packed_points* A, const packed_points* B, floating* out, int n_threads,
) noexcept nogil:
    """Compute the kernel between A and B."""
    cdef Py_ssize_t task, begin, tile_a
    cdef Py_ssize_t height = tile_rows(A.d)
    cdef Py_ssize_t groups = (A.tiles + height - 1) // height
    for task in prange(
        groups * B.tiles, schedule="dynamic", chunksize=2,
        num_threads=useful_threads(n_threads, tile_work(A.tiles, B.tiles, A.d)),
    ):
        begin = task // B.tiles * height
        for tile_a in range(begin, min(begin + height, A.tiles)):
            gaussian_tile[floating](A, tile_a, B, task % B.tiles, out, False, B.n)


cdef void log_votes_tiles(
    const packed_points* A, Py_ssize_t begin, Py_ssize_t end, const packed_points* B,
    const double* alpha, double* out, Py_ssize_t stride,
) noexcept nogil:
    cdef double[MAX_TILE_ROWS * CDSK_TILE] peak
    cdef double[MAX_TILE_ROWS * CDSK_TILE] total
    cdef Py_ssize_t first = begin * CDSK_TILE
    cdef Py_ssize_t i, j, tile_a, tile_b
    for i in range(MAX_TILE_ROWS * CDSK_TILE):
        peak[i] = -HUGE_VAL
        total[i] = 0.0
    for tile_b in range(B.tiles):
        j = tile_b * CDSK_TILE
        for tile_a in range(begin, end):
            i = tile_a * CDSK_TILE
            simd.log_votes(
                A.points + i * A.d, B.points + j * B.d, A.d, A.scale + i, B.scale + j,
                NULL if A.norms == NULL else A.norms + i,
                NULL if B.norms == NULL else B.norms + j,
                alpha + j, min(CDSK_TILE, B.n - j), peak + i - first, total + i - first,
            )
    for i in range(first, min(end * CDSK_TILE, A.n)):
        out[i * stride] = log(total[i - first]) + peak[i - first]


cdef void log_votes_strip(
    const packed_points* A, const packed_points* B, const double* alpha,
    double* out, Py_ssize_t stride, int n_threads,
) noexcept nogil:
    """Compute out[i * stride] = log sum_j alpha_j K(a_i, b_j)."""
    cdef Py_ssize_t group, begin
    cdef Py_ssize_t height = tile_rows(A.d)
    for group in prange(
        (A.tiles + height - 1) // height, schedule="dynamic",
        num_threads=useful_threads(n_threads, tile_work(A.tiles, B.tiles, A.d)),
    ):
        begin = group * height
        log_votes_tiles(A, begin, min(begin + height, A.tiles), B, alpha, out, stride)


# ---------------------------------------------------------------- products and S

cdef void product_rows(
    const floating* K,            # (n, n) in
    Py_ssize_t n,
    const double* V,              # (m, n) in, one column per row
    Py_ssize_t m,
    double* out,                  # (m, n) out
    Py_ssize_t begin,             # rows begin ... end - 1 of the product; begin is a
    Py_ssize_t end,               # multiple of PRODUCT_ROWS
    int n_threads,
) noexcept nogil:
    """Compute rows of (K - diag K) V, sums in double precision.

    The diagonal is not subtracted afterwards, because the rest of a row may be smaller
    than the rounding of its diagonal entry.
    """
    cdef Py_ssize_t group, block, i, first, part
    for group in range((m + CDSK_MAX_COLUMNS - 1) // CDSK_MAX_COLUMNS):
        first = group * CDSK_MAX_COLUMNS
        part = min(CDSK_MAX_COLUMNS, m - first)
        for block in prange(
            (end - begin + CDSK_PRODUCT_ROWS - 1) // CDSK_PRODUCT_ROWS,
            schedule="dynamic", chunksize=2,
            num_threads=useful_threads(n_threads, <double> (end - begin) * n * part),
        ):
            i = begin + block * CDSK_PRODUCT_ROWS
            if floating is double:
                simd.product_f64(
                    K, i, min(CDSK_PRODUCT_ROWS, end - i), n,
                    V + first * n, part, out + first * n,
                )
            else:
                simd.product_f32(
                    K, i, min(CDSK_PRODUCT_ROWS, end - i), n,
                    V + first * n, part, out + first * n,
                )


cdef void similarity_rows(
    const floating* K,            # (n, n) in
    Py_ssize_t n,
    const double* alpha,          # (n,) in
    double penalty,               # the paper's lambda
    floating* S,                  # (n, n) out, may be K
    double* degrees,              # (n,) out
    Py_ssize_t begin,             # rows begin ... end - 1
    Py_ssize_t end,
    int n_threads,
) noexcept nogil:
    """Compute S_ij = 2 (alpha_i + alpha_j - penalty alpha_i alpha_j) K_ij."""
    cdef Py_ssize_t i, j
    cdef double value, degree
    for i in prange(
        begin, end, schedule="static",
        num_threads=useful_threads(n_threads, 4.0 * (end - begin) * n),
    ):
        degree = 0.0
        for j in range(n):
            # alpha_i alpha_j first: the product commutes, so S is symmetric
            value = (
                2.0 * (alpha[i] + alpha[j] - penalty * (alpha[i] * alpha[j]))
                * K[i * n + j]
            )
            S[i * n + j] = <floating> value
            if j != i:
                # += would make `degree` a reduction across threads
                degree = degree + value
        degrees[i] = degree


# ---------------------------------------------------------------- from Python

cdef void touch(char* memory, Py_ssize_t size, int n_threads) noexcept nogil:
    """Write to every page of memory that holds nothing yet."""
    cdef Py_ssize_t page
    for page in prange(
        (size + PAGE - 1) // PAGE, schedule="static",
        num_threads=useful_threads(n_threads, <double> size),
    ):
        memory[page * PAGE] = 0


cdef int check_status(int status) except -1:
    """Raise a ValueError if packing points failed.

    Shapes have been checked before: only bandwidths can be wrong.
    """
    if status:
        raise ValueError(
            f"Bandwidths must be finite and between {MIN_BANDWIDTH:g} and "
            f"{MAX_BANDWIDTH:g}."
        )
    return 0


def gaussian_gram(
    const floating[:, ::1] X,     # (n, d) in
    const double[::1] bandwidth,  # (n,) in
    floating[:, ::1] out,         # (n, n) out
    int n_threads,
):
    """Fill out with K_ij = exp(-|x_i - x_j|^2 / (2 b_i b_j))."""
    cdef packed_points packed
    cdef int status
    cdef Py_ssize_t first, last, strip
    cdef Py_ssize_t size = out.shape[0] * out.shape[1] * <Py_ssize_t> sizeof(floating)
    cdef double[::1] work = np.empty(cdsk_packed_size(X.shape[0], X.shape[1]))
    with nogil:
        status = pack_around_mean(
            &X[0, 0], X.shape[0], X.shape[1], &bandwidth[0], 1, True, &work[0],
            n_threads, &packed,
        )
    check_status(status)
    # The mirror of the first strip touches all rows of K. Without this, Ctrl-C would
    # have to wait until the system has provided all that memory.
    for first in range(0, size if size > TOUCH_FROM else 0, TOUCH_CHUNK):
        with nogil:
            touch(<char*> &out[0, 0] + first, min(TOUCH_CHUNK, size - first), n_threads)
        check_signals(min(TOUCH_CHUNK, size - first))
    strip = strip_tiles(packed.tiles, packed.d)
    for first in range(0, packed.tiles, strip):
        last = min(first + strip, packed.tiles)
        with nogil:
            gram_strip(&packed, first, last, &out[0, 0], n_threads)
        check_signals(
            product_work(tile_work(last - first, packed.tiles, packed.d))
        )


def gaussian_rows(
    const floating[:, ::1] A,     # (n_a, d) in
    const floating[:, ::1] B,     # (n_b, d) in
    const double[::1] bandwidth_a,    # (n_a,) in
    const double[::1] bandwidth_b,    # (n_b,) in
    floating[:, ::1] out,         # (n_a, n_b) out
    int n_threads,
):
    """Fill out with K_ij = exp(-|a_i - b_j|^2 / (2 bandwidth_a_i bandwidth_b_j))."""
    cdef Py_ssize_t n_a = A.shape[0], n_b = B.shape[0], d = A.shape[1]
    if n_a == 0 or n_b == 0:
        return
    cdef Py_ssize_t strip = min(n_a, CDSK_TILE * strip_tiles(n_tiles(n_b), d))
    cdef Py_ssize_t first
    cdef packed_points a, b
    cdef const double* center
    cdef int status
    cdef double[::1] work = np.empty(cdsk_packed_size(strip, d))
    cdef double[::1] work_b = np.empty(cdsk_packed_size(n_b, d))
    with nogil:
        status = pack_support(
            &B[0, 0], n_b, d, &bandwidth_a[0], n_a, 1, &bandwidth_b[0], 1, &work_b[0],
            n_threads, &b, &center,
        )
    check_status(status)
    for first in range(0, n_a, strip):
        with nogil:
            status = pack(
                &A[first, 0], min(strip, n_a - first), d, &bandwidth_a[first], 1,
                center, &work[0], n_threads, &a,
            )
            if status == 0:
                rows_strip(&a, &b, &out[first, 0], n_threads)
        check_status(status)
        check_signals(product_work(tile_work(a.tiles, b.tiles, d)))


cdef bint are_positive(const double[::1] values) noexcept:
    cdef Py_ssize_t i
    for i in range(values.shape[0]):
        if not 0.0 < values[i] <= DBL_MAX:
            return False
    return True


def gaussian_log_votes(
    const floating[:, ::1] A,     # (n_a, d) in, new points
    const floating[:, ::1] B,     # (n_b, d) in, support, sorted by cluster
    const double[::1] bandwidth_a,    # (n_a,) in
    const double[::1] bandwidth_b,    # (n_b,) in
    const double[::1] alpha,      # (n_b,) in, > 0
    const Py_ssize_t[::1] offsets,    # (c + 1,) in, where the clusters begin
    double[:, ::1] out,           # (n_a, c) out
    int n_threads,
):
    """Fill out with log sum_j alpha_j K(a_i, b_j) over each cluster's points.

    Finite for any distance of a_i; -inf for a cluster without points.
    """
    cdef Py_ssize_t n_a = A.shape[0], n_b = B.shape[0], d = A.shape[1]
    cdef Py_ssize_t n_clusters = out.shape[1], strip, first, y, begin, size
    # the arrays of a model that was read from a damaged file may be inconsistent
    if not (
        B.shape[1] == d
        and bandwidth_a.shape[0] == out.shape[0] == n_a
        and bandwidth_b.shape[0] == alpha.shape[0] == n_b
        and offsets.shape[0] == n_clusters + 1
        and offsets[0] == 0 and offsets[n_clusters] == n_b
        and np.all(np.diff(offsets) >= 0)
    ):
        raise ValueError(
            "Inconsistent shapes of support points, bandwidths, weights or offsets."
        )
    if not are_positive(alpha):
        raise ValueError("Weights of support points must be positive and finite.")
    if n_a == 0 or n_b == 0:
        out[:] = -HUGE_VAL
        return
    cdef packed_points a, b
    cdef const double* center
    cdef int status
    cdef double[::1] work_b = np.empty(cdsk_packed_size(n_b, d))
    cdef double[::1] work
    with nogil:
        status = pack_support(
            &B[0, 0], n_b, d, &bandwidth_a[0], n_a, 1, &bandwidth_b[0], 1, &work_b[0],
            n_threads, &b, &center,
        )
    check_status(status)
    for y in range(n_clusters):
        begin, size = offsets[y], offsets[y + 1] - offsets[y]
        if size == 0:
            out[:, y] = -HUGE_VAL
            continue
        strip = min(n_a, CDSK_TILE * strip_tiles(n_tiles(size), d))
        work = np.empty(cdsk_packed_size(strip, d))
        with nogil:
            status = pack(
                &B[begin, 0], size, d, &bandwidth_b[begin], 1, center, &work_b[0],
                n_threads, &b,
            )
        check_status(status)
        for first in range(0, n_a, strip):
            with nogil:
                status = pack(
                    &A[first, 0], min(strip, n_a - first), d, &bandwidth_a[first], 1,
                    center, &work[0], n_threads, &a,
                )
                if status == 0:
                    log_votes_strip(
                        &a, &b, &alpha[begin], &out[first, y], n_clusters, n_threads
                    )
            check_status(status)
            check_signals(product_work(tile_work(a.tiles, b.tiles, d)))


def product(
    const floating[:, ::1] K,     # (n, n) in
    const double[:, ::1] V,       # (m, n) in, one column per row
    double[:, ::1] out,           # (m, n) out
    int n_threads,
):
    """Fill out with (K - diag K) V', one product per row."""
    cdef Py_ssize_t n = K.shape[0], m = V.shape[0], begin, end
    cdef double row_work = n + product_work(<double> n * m)
    cdef Py_ssize_t strip = CDSK_PRODUCT_ROWS * max(
        1, <Py_ssize_t> (work_interval() / (row_work * CDSK_PRODUCT_ROWS))
    )
    for begin in range(0, n, strip):
        end = min(begin + strip, n)
        with nogil:
            product_rows(&K[0, 0], n, &V[0, 0], m, &out[0, 0], begin, end, n_threads)
        check_signals((end - begin) * row_work)


def similarity(
    const floating[:, ::1] K,     # (n, n) in
    const double[::1] alpha,      # (n,) in
    double penalty,               # the paper's lambda
    floating[:, ::1] out,         # (n, n) out, may be K
    double[::1] degrees,          # (n,) out
    int n_threads,
):
    """Fill out with S and degrees with its row sums without the diagonal."""
    cdef Py_ssize_t n = K.shape[0], begin, end
    cdef Py_ssize_t strip = max(n_threads, <Py_ssize_t> (work_interval() / (2.0 * n)))
    for begin in range(0, n, strip):
        end = min(begin + strip, n)
        with nogil:
            similarity_rows(
                &K[0, 0], n, &alpha[0], penalty, &out[0, 0], &degrees[0], begin, end,
                n_threads,
            )
        check_signals(2.0 * (end - begin) * n)


# ---------------------------------------------------------------- from C
# Contracts are in _kernel.pxd.

cdef int compute_gram(
    const floating* X, Py_ssize_t n, Py_ssize_t d,
    const double* bandwidth, Py_ssize_t bandwidth_step,
    floating* K, double* work, int n_threads,
) noexcept nogil:
    cdef packed_points packed
    if pack_around_mean(
        X, n, d, bandwidth, bandwidth_step, True, work, n_threads, &packed
    ):
        return -1
    gram_strip(&packed, 0, packed.tiles, K, n_threads)
    return 0


cdef int compute_rows(
    const floating* A, Py_ssize_t n_a, const floating* B, Py_ssize_t n_b, Py_ssize_t d,
    const double* bandwidth_a, Py_ssize_t step_a,
    const double* bandwidth_b, Py_ssize_t step_b,
    floating* K, double* work, int n_threads,
) noexcept nogil:
    cdef packed_points a, b
    cdef const double* center
    if pack_support(
        B, n_b, d, bandwidth_a, n_a, step_a, bandwidth_b, step_b,
        work + cdsk_packed_size(n_a, d), n_threads, &b, &center,
    ):
        return -1
    if pack(A, n_a, d, bandwidth_a, step_a, center, work, n_threads, &a):
        return -1
    rows_strip(&a, &b, K, n_threads)
    return 0


cdef int compute_log_votes(
    const floating* A, Py_ssize_t n_a, const floating* B, Py_ssize_t n_b, Py_ssize_t d,
    const double* bandwidth_a, Py_ssize_t step_a,
    const double* bandwidth_b, Py_ssize_t step_b,
    const double* alpha, const Py_ssize_t* offsets, Py_ssize_t n_clusters,
    double* votes, double* work, int n_threads,
) noexcept nogil:
    cdef packed_points a, b
    cdef double* work_b = work + cdsk_packed_size(n_a, d)
    cdef const double* center
    cdef Py_ssize_t y, i, first, size
    if n_clusters < 1 or offsets[0] != 0 or offsets[n_clusters] != n_b:
        return -1
    for y in range(n_clusters):
        # check all before use: if a later one descends, an earlier one exceeds n_b
        if offsets[y] > offsets[y + 1]:
            return -1
    for i in range(n_b):
        if not 0.0 < alpha[i] <= DBL_MAX:
            return -1
    # one center for all clusters: A is packed once
    if pack_support(
        B, n_b, d, bandwidth_a, n_a, step_a, bandwidth_b, step_b, work_b, n_threads,
        &b, &center,
    ):
        return -1
    if pack(A, n_a, d, bandwidth_a, step_a, center, work, n_threads, &a):
        return -1
    for y in range(n_clusters):
        first = offsets[y]
        size = offsets[y + 1] - first
        if size == 0:
            for i in range(n_a):
                votes[i * n_clusters + y] = -HUGE_VAL
        elif pack(
            B + first * d, size, d, bandwidth_b + first * step_b, step_b, center,
            work_b, n_threads, &b,
        ):
            return -1
        else:
            log_votes_strip(&a, &b, alpha + first, votes + y, n_clusters, n_threads)
    return 0


cdef int cdsk_gram_f64(
    const double* X, Py_ssize_t n, Py_ssize_t d,
    const double* bandwidth, Py_ssize_t bandwidth_step,
    double* K, double* work, int n_threads,
) noexcept nogil:
    return compute_gram(X, n, d, bandwidth, bandwidth_step, K, work, n_threads)


cdef int cdsk_gram_f32(
    const float* X, Py_ssize_t n, Py_ssize_t d,
    const double* bandwidth, Py_ssize_t bandwidth_step,
    float* K, double* work, int n_threads,
) noexcept nogil:
    return compute_gram(X, n, d, bandwidth, bandwidth_step, K, work, n_threads)


cdef int cdsk_rows_f64(
    const double* A, Py_ssize_t n_a, const double* B, Py_ssize_t n_b, Py_ssize_t d,
    const double* bandwidth_a, Py_ssize_t bandwidth_a_step,
    const double* bandwidth_b, Py_ssize_t bandwidth_b_step,
    double* K, double* work, int n_threads,
) noexcept nogil:
    return compute_rows(
        A, n_a, B, n_b, d, bandwidth_a, bandwidth_a_step, bandwidth_b, bandwidth_b_step,
        K, work, n_threads,
    )


cdef int cdsk_rows_f32(
    const float* A, Py_ssize_t n_a, const float* B, Py_ssize_t n_b, Py_ssize_t d,
    const double* bandwidth_a, Py_ssize_t bandwidth_a_step,
    const double* bandwidth_b, Py_ssize_t bandwidth_b_step,
    float* K, double* work, int n_threads,
) noexcept nogil:
    return compute_rows(
        A, n_a, B, n_b, d, bandwidth_a, bandwidth_a_step, bandwidth_b, bandwidth_b_step,
        K, work, n_threads,
    )


cdef int cdsk_log_votes_f64(
    const double* A, Py_ssize_t n_a, const double* B, Py_ssize_t n_b, Py_ssize_t d,
    const double* bandwidth_a, Py_ssize_t bandwidth_a_step,
    const double* bandwidth_b, Py_ssize_t bandwidth_b_step,
    const double* alpha, const Py_ssize_t* offsets, Py_ssize_t n_clusters,
    double* votes, double* work, int n_threads,
) noexcept nogil:
    return compute_log_votes(
        A, n_a, B, n_b, d, bandwidth_a, bandwidth_a_step, bandwidth_b, bandwidth_b_step,
        alpha, offsets, n_clusters, votes, work, n_threads,
    )


cdef int cdsk_log_votes_f32(
    const float* A, Py_ssize_t n_a, const float* B, Py_ssize_t n_b, Py_ssize_t d,
    const double* bandwidth_a, Py_ssize_t bandwidth_a_step,
    const double* bandwidth_b, Py_ssize_t bandwidth_b_step,
    const double* alpha, const Py_ssize_t* offsets, Py_ssize_t n_clusters,
    double* votes, double* work, int n_threads,
) noexcept nogil:
    return compute_log_votes(
        A, n_a, B, n_b, d, bandwidth_a, bandwidth_a_step, bandwidth_b, bandwidth_b_step,
        alpha, offsets, n_clusters, votes, work, n_threads,
    )


cdef int cdsk_product_f64(
    const double* K, Py_ssize_t n, const double* columns, Py_ssize_t m, double* out,
    int n_threads,
) noexcept nogil:
    if n < 1 or m < 0 or n_threads < 1:
        return -1
    product_rows(K, n, columns, m, out, 0, n, n_threads)
    return 0


cdef int cdsk_product_f32(
    const float* K, Py_ssize_t n, const double* columns, Py_ssize_t m, double* out,
    int n_threads,
) noexcept nogil:
    if n < 1 or m < 0 or n_threads < 1:
        return -1
    product_rows(K, n, columns, m, out, 0, n, n_threads)
    return 0


cdef bint are_weights(const double* alpha, Py_ssize_t n, double lam) noexcept nogil:
    """Return whether lam and all weights are finite and not negative."""
    cdef Py_ssize_t i
    for i in range(n):
        if not 0.0 <= alpha[i] <= DBL_MAX:
            return False
    return 0.0 <= lam <= DBL_MAX


cdef int cdsk_similarity_f64(
    const double* K, Py_ssize_t n, const double* alpha, double lam, double* S,
    double* degrees, int n_threads,
) noexcept nogil:
    if n < 1 or n_threads < 1 or not are_weights(alpha, n, lam):
        return -1
    similarity_rows(K, n, alpha, n * lam, S, degrees, 0, n, n_threads)
    return 0


cdef int cdsk_similarity_f32(
    const float* K, Py_ssize_t n, const double* alpha, double lam, float* S,
    double* degrees, int n_threads,
) noexcept nogil:
    if n < 1 or n_threads < 1 or not are_weights(alpha, n, lam):
        return -1
    similarity_rows(K, n, alpha, n * lam, S, degrees, 0, n, n_threads)
    return 0
