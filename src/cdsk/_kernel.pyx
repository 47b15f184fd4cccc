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
threads; each entry has one owner and a fixed order of summation, so results do not
depend on the number of threads. Long loops look at pending signals between strips. The
inner loops are in _simd/simd.c.

Cost: O(n^2 d) for K, O(n^2 m) for a product with m columns.
"""
import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from cython cimport floating
from cython.parallel cimport prange
from libc.float cimport DBL_MAX
from libc.math cimport HUGE_VAL, M_SQRT1_2, log

from cdsk._points cimport MOST_ROWS, n_tiles, pack_tile, rows_together
from cdsk._simd cimport (
    CDSK_GROUP,
    CDSK_MAX_COLUMNS,
    CDSK_PRODUCT_ROWS,
    CDSK_TILE,
    cdsk_simd,
    cdsk_simd_select,
)
from cdsk._threads cimport useful_threads

cdef const cdsk_simd* simd = cdsk_simd_select()

# Features from which on expanding squared distances is the faster form, and the largest
# |x|^2 / (2 b^2) of centred points for which it is exact enough. The error of
# |a|^2 + |b|^2 - 2ab, as an absolute error of the exponent, is some eps times
# (|a|^2 + |b|^2) / (2 b_a b_b), which is at most 6 times this limit where K > 1e-30:
# less than 1e-12, as sums are added up in parts (DEPTH in _simd/simd.c).
cdef Py_ssize_t EXPANSION_PAYS = 16
cdef double LARGEST_NORM = 50.0

# Between points and others of so much larger a bandwidth, nothing is centred: the
# rounding of the centred wide ones would be large in units of the narrow.
cdef double WIDER = 4096.0

# As in _validation.py: beyond these the factors of the exponent overflow.
cdef double SMALLEST_BANDWIDTH = 1e-150
cdef double LARGEST_BANDWIDTH = 1e150

# Multiplications between two looks at pending signals: some 100 ms on one core.
cdef double STRIP = 1e9

# Bytes from which on new memory is asked of the system in parts, of such a part, and of
# a page. Below, the system takes less than a second, and a pass less is quicker.
cdef Py_ssize_t TOUCHED_FROM = 1 << 29
cdef Py_ssize_t TOUCHED = 1 << 26
cdef Py_ssize_t PAGE = 4096


def simd_level():
    """Name of the instruction set in use: base, v3 or v4."""
    return simd.name.decode()


# ---------------------------------------------------------------- packed points

cdef struct packed_points:
    Py_ssize_t n, d, tiles
    double* points       # (tiles, d, TILE), see _simd/simd.h
    double* scale        # (tiles * TILE,) 1 / (sqrt(2) bandwidth), padded with zeros
    # (tiles * TILE,) squared norms, -1: too large to expand; or NULL: use differences
    double* norms


cdef Py_ssize_t cdsk_packed_size(Py_ssize_t n, Py_ssize_t d) noexcept nogil:
    if n < 1 or d < 1:
        return 0
    # points, scale, norms, and the centre; a group more to begin at a cache line
    return n_tiles(n) * CDSK_TILE * (d + 2) + CDSK_GROUP + d


cdef bint is_step(Py_ssize_t bandwidth_step) noexcept nogil:
    """0: one bandwidth for all points, 1: one for each."""
    return bandwidth_step == 0 or bandwidth_step == 1


cdef int pack(
    const floating* X,            # (n, d) in
    Py_ssize_t n, Py_ssize_t d,
    const double* bandwidth,      # in: one if bandwidth_step is 0, n if it is 1
    Py_ssize_t bandwidth_step,
    const double* centre,         # (d,) in: expand distances from here; or NULL
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
            SMALLEST_BANDWIDTH <= bandwidth[i * bandwidth_step] <= LARGEST_BANDWIDTH
        ):
            return -1
        packed.scale[i] = M_SQRT1_2 / bandwidth[i * bandwidth_step]
    if centre == NULL:
        packed.norms = NULL
    for tile in prange(
        packed.tiles, schedule="static",
        num_threads=useful_threads(n_threads, <double> n * d),
    ):
        pack_tile(X, centre, n, d, tile, packed.points + tile * d * CDSK_TILE)
        if centre != NULL:
            simd.squared_norms(
                packed.points + tile * d * CDSK_TILE, d, packed.norms + tile * CDSK_TILE
            )
    if centre != NULL:
        for i in range(n):
            # not <= : also where the norm is not a number
            if not (packed.norms[i] * packed.scale[i] ** 2 <= LARGEST_NORM):
                packed.norms[i] = -1.0
    return 0


cdef int pack_around_mean(
    const floating* X, Py_ssize_t n, Py_ssize_t d,
    const double* bandwidth, Py_ssize_t bandwidth_step, bint may_expand,
    double* work, int n_threads, packed_points* packed,
) noexcept nogil:
    """Pack centred points if all of them may be expanded, else points as they are.

    The centre is left in the last d places of work.
    """
    cdef Py_ssize_t i, k
    cdef double* centre
    if n < 1 or d < EXPANSION_PAYS or not may_expand:
        return pack(
            X, n, d, bandwidth, bandwidth_step, NULL, work, n_threads, packed
        )
    centre = work + cdsk_packed_size(n, d) - d
    for k in range(d):
        centre[k] = 0.0
    for i in range(n):
        for k in range(d):
            centre[k] += X[i * d + k]
    for k in range(d):
        centre[k] /= n
    if pack(X, n, d, bandwidth, bandwidth_step, centre, work, n_threads, packed):
        return -1
    for i in range(n):
        if packed.norms[i] < 0.0:
            return pack(
                X, n, d, bandwidth, bandwidth_step, NULL, work, n_threads, packed
            )
    return 0


cdef bint of_like_width(
    const double* bandwidth_a, Py_ssize_t n_a, Py_ssize_t step_a,
    const double* bandwidth_b, Py_ssize_t n_b, Py_ssize_t step_b,
) noexcept nogil:
    """True if no bandwidth of A is smaller than those of B by more than WIDER."""
    cdef Py_ssize_t i
    cdef double narrow = HUGE_VAL, wide = 0.0
    for i in range(n_a if step_a else 1):
        narrow = min(narrow, bandwidth_a[i * step_a])
    for i in range(n_b if step_b else 1):
        wide = max(wide, bandwidth_b[i * step_b])
    return wide <= WIDER * narrow


cdef int pack_support(
    const floating* B, Py_ssize_t n_b, Py_ssize_t d,
    const double* bandwidth_a, Py_ssize_t n_a, Py_ssize_t step_a,
    const double* bandwidth_b, Py_ssize_t step_b,
    double* work,                 # (cdsk_packed_size(n_b, d),) out
    int n_threads,
    packed_points* packed,        # out, points into work
    const double** centre,        # out: from where to pack other points, or NULL
) noexcept nogil:
    """Pack the points that others are compared with.

    Whether to expand is decided by them, and then for each other point by itself: a row
    of the result does not depend on the others.
    """
    if n_a < 1 or n_b < 1 or not (is_step(step_a) and is_step(step_b)):
        return -1
    if pack_around_mean(
        B, n_b, d, bandwidth_b, step_b,
        of_like_width(bandwidth_a, n_a, step_a, bandwidth_b, n_b, step_b),
        work, n_threads, packed,
    ):
        return -1
    centre[0] = NULL if packed.norms == NULL else work + cdsk_packed_size(n_b, d) - d
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
    """Multiplications for so many tiles; an exp counts as 16."""
    return <double> tiles_a * tiles_b * CDSK_TILE * CDSK_TILE * (d + 16)


cdef Py_ssize_t strip_tiles(Py_ssize_t tiles_b, Py_ssize_t d) noexcept nogil:
    """How many rows of tiles to work on between two looks at pending signals."""
    return max(1, <Py_ssize_t> (STRIP / tile_work(1, tiles_b, d)))


cdef void gram_strip(
    const packed_points* X, Py_ssize_t first, Py_ssize_t last, floating* K,
    int n_threads,
) noexcept nogil:
    """Rows of tiles first ... last - 1 on and above the diagonal, and their mirror."""
    cdef Py_ssize_t task, begin, tile_a, tile_b
    cdef Py_ssize_t together = rows_together(X.d)
    cdef Py_ssize_t groups = (last - first + together - 1) // together
    for task in prange(
        groups * X.tiles, schedule="dynamic", chunksize=2,
        num_threads=useful_threads(n_threads, tile_work(last - first, X.tiles, X.d)),
    ):
        begin = first + task // X.tiles * together
        tile_b = task % X.tiles
        for tile_a in range(begin, min(begin + together, last, tile_b + 1)):
            gaussian_tile[floating](X, tile_a, X, tile_b, K, True, X.n)


cdef void rows_strip(
    const packed_points* A, const packed_points* B, floating* out, int n_threads,
) noexcept nogil:
    """The kernel between A and B."""
    cdef Py_ssize_t task, begin, tile_a
    cdef Py_ssize_t together = rows_together(A.d)
    cdef Py_ssize_t groups = (A.tiles + together - 1) // together
    for task in prange(
        groups * B.tiles, schedule="dynamic", chunksize=2,
        num_threads=useful_threads(n_threads, tile_work(A.tiles, B.tiles, A.d)),
    ):
        begin = task // B.tiles * together
        for tile_a in range(begin, min(begin + together, A.tiles)):
            gaussian_tile[floating](A, tile_a, B, task % B.tiles, out, False, B.n)


cdef void votes_tiles(
    const packed_points* A, Py_ssize_t begin, Py_ssize_t end, const packed_points* B,
    const double* alpha, double* out, Py_ssize_t stride,
) noexcept nogil:
    cdef double[MOST_ROWS * CDSK_TILE] peak
    cdef double[MOST_ROWS * CDSK_TILE] total
    cdef Py_ssize_t first = begin * CDSK_TILE
    cdef Py_ssize_t i, j, tile_a, tile_b
    for i in range(MOST_ROWS * CDSK_TILE):
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


cdef void votes_strip(
    const packed_points* A, const packed_points* B, const double* alpha,
    double* out, Py_ssize_t stride, int n_threads,
) noexcept nogil:
    """out[i * stride] = log sum_j alpha_j K(a_i, b_j)."""
    cdef Py_ssize_t group, begin
    cdef Py_ssize_t together = rows_together(A.d)
    for group in prange(
        (A.tiles + together - 1) // together, schedule="dynamic",
        num_threads=useful_threads(n_threads, tile_work(A.tiles, B.tiles, A.d)),
    ):
        begin = group * together
        votes_tiles(A, begin, min(begin + together, A.tiles), B, alpha, out, stride)


# ---------------------------------------------------------------- products and S

cdef void product_rows(
    const floating* K,            # (n, n) in
    Py_ssize_t n,
    const double* V,              # (m, n) in, one column per row
    Py_ssize_t m,
    double* out,                  # (m, n) out
    Py_ssize_t begin,             # rows of the product: a multiple of PRODUCT_ROWS,
    Py_ssize_t end,               # and one beyond the last
    int n_threads,
) noexcept nogil:
    """Rows of (K - diag K) V, sums in double precision.

    The diagonal is left out here, and not subtracted afterwards, because the rest of a
    row may be smaller than the rounding of its diagonal entry.
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
    int n_threads,
) noexcept nogil:
    """S_ij = 2 (alpha_i + alpha_j - penalty alpha_i alpha_j) K_ij, and its degrees."""
    cdef Py_ssize_t i, j
    cdef double value, degree
    for i in prange(
        n, schedule="static", num_threads=useful_threads(n_threads, 4.0 * n * n)
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
                # = and not +=, which would make `degree` a reduction across threads
                degree = degree + value
        degrees[i] = degree


# ---------------------------------------------------------------- from Python

cdef void touch(char* memory, Py_ssize_t size, int n_threads) noexcept nogil:
    """Write to every page of memory, whose contents are of no use yet."""
    cdef Py_ssize_t page
    for page in prange(
        (size + PAGE - 1) // PAGE, schedule="static",
        num_threads=useful_threads(n_threads, <double> size),
    ):
        memory[page * PAGE] = 0


def gaussian_gram(
    const floating[:, ::1] X,     # (n, d) in
    const double[::1] bandwidth,  # (n,) in
    floating[:, ::1] out,         # (n, n) out
    int n_threads,
):
    """Fill out with K."""
    cdef packed_points packed
    cdef Py_ssize_t first, last, strip
    cdef Py_ssize_t size = out.shape[0] * out.shape[1] * <Py_ssize_t> sizeof(floating)
    cdef double[::1] work = np.empty(cdsk_packed_size(X.shape[0], X.shape[1]))
    with nogil:
        pack_around_mean(
            &X[0, 0], X.shape[0], X.shape[1], &bandwidth[0], 1, True, &work[0],
            n_threads, &packed,
        )
    # The first strip alone reaches all rows of K, by its mirror. Where the system has
    # to clear all that memory first, Ctrl-C would have to wait for it.
    for first in range(0, size if size > TOUCHED_FROM else 0, TOUCHED):
        with nogil:
            touch(<char*> &out[0, 0] + first, min(TOUCHED, size - first), n_threads)
        PyErr_CheckSignals()
    strip = strip_tiles(packed.tiles, packed.d)
    for first in range(0, packed.tiles, strip):
        last = min(first + strip, packed.tiles)
        with nogil:
            gram_strip(&packed, first, last, &out[0, 0], n_threads)
        PyErr_CheckSignals()


def gaussian_rows(
    const floating[:, ::1] A,     # (n_a, d) in
    const floating[:, ::1] B,     # (n_b, d) in
    const double[::1] bandwidth_a,    # (n_a,) in
    const double[::1] bandwidth_b,    # (n_b,) in
    floating[:, ::1] out,         # (n_a, n_b) out
    int n_threads,
):
    """Fill out with the kernel between the rows of A and those of B."""
    cdef Py_ssize_t n_a = A.shape[0], n_b = B.shape[0], d = A.shape[1]
    cdef Py_ssize_t strip = min(n_a, CDSK_TILE * strip_tiles(n_tiles(n_b), d))
    cdef Py_ssize_t first
    cdef packed_points a, b
    cdef const double* centre
    cdef double[::1] work = np.empty(cdsk_packed_size(strip, d))
    cdef double[::1] work_b = np.empty(cdsk_packed_size(n_b, d))
    with nogil:
        pack_support(
            &B[0, 0], n_b, d, &bandwidth_a[0], n_a, 1, &bandwidth_b[0], 1, &work_b[0],
            n_threads, &b, &centre,
        )
    for first in range(0, n_a, strip):
        with nogil:
            pack(
                &A[first, 0], min(strip, n_a - first), d, &bandwidth_a[first], 1,
                centre, &work[0], n_threads, &a,
            )
            rows_strip(&a, &b, &out[first, 0], n_threads)
        PyErr_CheckSignals()


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

    Finite however far a_i is; -inf for a cluster without points.
    """
    cdef Py_ssize_t n_a = A.shape[0], n_b = B.shape[0], d = A.shape[1]
    cdef Py_ssize_t n_clusters = out.shape[1], strip, first, y, begin, size
    # a model that was read from a file may hold anything
    if not (
        B.shape[1] == d
        and bandwidth_a.shape[0] == out.shape[0] == n_a
        and bandwidth_b.shape[0] == alpha.shape[0] == n_b
        and offsets.shape[0] == n_clusters + 1
        and offsets[0] == 0 and offsets[n_clusters] == n_b
        and np.all(np.diff(offsets) >= 0)
    ):
        raise ValueError("The points that vote do not fit to each other.")
    cdef packed_points a, b
    cdef const double* centre
    cdef double[::1] work_b = np.empty(cdsk_packed_size(n_b, d))
    cdef double[::1] work
    with nogil:
        pack_support(
            &B[0, 0], n_b, d, &bandwidth_a[0], n_a, 1, &bandwidth_b[0], 1, &work_b[0],
            n_threads, &b, &centre,
        )
    for y in range(n_clusters):
        begin, size = offsets[y], offsets[y + 1] - offsets[y]
        if size == 0:
            out[:, y] = -HUGE_VAL
            continue
        strip = min(n_a, CDSK_TILE * strip_tiles(n_tiles(size), d))
        work = np.empty(cdsk_packed_size(strip, d))
        with nogil:
            pack(
                &B[begin, 0], size, d, &bandwidth_b[begin], 1, centre, &work_b[0],
                n_threads, &b,
            )
        for first in range(0, n_a, strip):
            with nogil:
                pack(
                    &A[first, 0], min(strip, n_a - first), d, &bandwidth_a[first], 1,
                    centre, &work[0], n_threads, &a,
                )
                votes_strip(
                    &a, &b, &alpha[begin], &out[first, y], n_clusters, n_threads
                )
            PyErr_CheckSignals()


def product(
    const floating[:, ::1] K,     # (n, n) in
    const double[:, ::1] V,       # (m, n) in, one column per row
    double[:, ::1] out,           # (m, n) out
    int n_threads,
):
    """Fill out with (K - diag K) V."""
    cdef Py_ssize_t n = K.shape[0], m = V.shape[0], begin
    cdef Py_ssize_t strip = CDSK_PRODUCT_ROWS * max(
        1, <Py_ssize_t> (STRIP / (<double> n * m * CDSK_PRODUCT_ROWS))
    )
    for begin in range(0, n, strip):
        with nogil:
            product_rows(
                &K[0, 0], n, &V[0, 0], m, &out[0, 0], begin, min(begin + strip, n),
                n_threads,
            )
        PyErr_CheckSignals()


def similarity(
    const floating[:, ::1] K,     # (n, n) in
    const double[::1] alpha,      # (n,) in
    double penalty,               # the paper's lambda
    floating[:, ::1] out,         # (n, n) out, may be K
    double[::1] degrees,          # (n,) out
    int n_threads,
):
    """Fill out with S and degrees with its row sums without the diagonal."""
    with nogil:
        similarity_rows(
            &K[0, 0], K.shape[0], &alpha[0], penalty, &out[0, 0], &degrees[0], n_threads
        )


# ---------------------------------------------------------------- from C
# Contracts are in _kernel.pxd.

cdef int gram_all(
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


cdef int rows_all(
    const floating* A, Py_ssize_t n_a, const floating* B, Py_ssize_t n_b, Py_ssize_t d,
    const double* bandwidth_a, Py_ssize_t step_a,
    const double* bandwidth_b, Py_ssize_t step_b,
    floating* K, double* work, int n_threads,
) noexcept nogil:
    cdef packed_points a, b
    cdef const double* centre
    if pack_support(
        B, n_b, d, bandwidth_a, n_a, step_a, bandwidth_b, step_b,
        work + cdsk_packed_size(n_a, d), n_threads, &b, &centre,
    ):
        return -1
    if pack(A, n_a, d, bandwidth_a, step_a, centre, work, n_threads, &a):
        return -1
    rows_strip(&a, &b, K, n_threads)
    return 0


cdef int votes_all(
    const floating* A, Py_ssize_t n_a, const floating* B, Py_ssize_t n_b, Py_ssize_t d,
    const double* bandwidth_a, Py_ssize_t step_a,
    const double* bandwidth_b, Py_ssize_t step_b,
    const double* alpha, const Py_ssize_t* offsets, Py_ssize_t n_clusters,
    double* votes, double* work, int n_threads,
) noexcept nogil:
    cdef packed_points a, b
    cdef double* work_b = work + cdsk_packed_size(n_a, d)
    cdef const double* centre
    cdef Py_ssize_t y, i, first, size
    if n_clusters < 1 or offsets[0] != 0 or offsets[n_clusters] != n_b:
        return -1
    for y in range(n_clusters):
        # all of them before any is used: a descent later means one beyond n_b before
        if offsets[y] > offsets[y + 1]:
            return -1
    for i in range(n_b):
        if not 0.0 < alpha[i] <= DBL_MAX:
            return -1
    # one centre for all clusters, so that A is packed once
    if pack_support(
        B, n_b, d, bandwidth_a, n_a, step_a, bandwidth_b, step_b, work_b, n_threads,
        &b, &centre,
    ):
        return -1
    if pack(A, n_a, d, bandwidth_a, step_a, centre, work, n_threads, &a):
        return -1
    for y in range(n_clusters):
        first = offsets[y]
        size = offsets[y + 1] - first
        if size == 0:
            for i in range(n_a):
                votes[i * n_clusters + y] = -HUGE_VAL
        elif pack(
            B + first * d, size, d, bandwidth_b + first * step_b, step_b, centre,
            work_b, n_threads, &b,
        ):
            return -1
        else:
            votes_strip(&a, &b, alpha + first, votes + y, n_clusters, n_threads)
    return 0


cdef int cdsk_gram_f64(
    const double* X, Py_ssize_t n, Py_ssize_t d,
    const double* bandwidth, Py_ssize_t bandwidth_step,
    double* K, double* work, int n_threads,
) noexcept nogil:
    return gram_all(X, n, d, bandwidth, bandwidth_step, K, work, n_threads)


cdef int cdsk_gram_f32(
    const float* X, Py_ssize_t n, Py_ssize_t d,
    const double* bandwidth, Py_ssize_t bandwidth_step,
    float* K, double* work, int n_threads,
) noexcept nogil:
    return gram_all(X, n, d, bandwidth, bandwidth_step, K, work, n_threads)


cdef int cdsk_rows_f64(
    const double* A, Py_ssize_t n_a, const double* B, Py_ssize_t n_b, Py_ssize_t d,
    const double* bandwidth_a, Py_ssize_t bandwidth_a_step,
    const double* bandwidth_b, Py_ssize_t bandwidth_b_step,
    double* K, double* work, int n_threads,
) noexcept nogil:
    return rows_all(
        A, n_a, B, n_b, d, bandwidth_a, bandwidth_a_step, bandwidth_b, bandwidth_b_step,
        K, work, n_threads,
    )


cdef int cdsk_rows_f32(
    const float* A, Py_ssize_t n_a, const float* B, Py_ssize_t n_b, Py_ssize_t d,
    const double* bandwidth_a, Py_ssize_t bandwidth_a_step,
    const double* bandwidth_b, Py_ssize_t bandwidth_b_step,
    float* K, double* work, int n_threads,
) noexcept nogil:
    return rows_all(
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
    return votes_all(
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
    return votes_all(
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
    """True if lam and all weights are finite and not negative."""
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
    similarity_rows(K, n, alpha, n * lam, S, degrees, n_threads)
    return 0


cdef int cdsk_similarity_f32(
    const float* K, Py_ssize_t n, const double* alpha, double lam, float* S,
    double* degrees, int n_threads,
) noexcept nogil:
    if n < 1 or n_threads < 1 or not are_weights(alpha, n, lam):
        return -1
    similarity_rows(K, n, alpha, n * lam, S, degrees, n_threads)
    return 0
