# SPDX-License-Identifier: BSD-3-Clause
"""Compiled operations on Gaussian kernel matrices.

    gaussian_gram       K_ij = exp(-|x_i - x_j|^2 / (2 b_i b_j)), one bandwidth b or one
                        per point; exactly symmetric with unit diagonal
    gaussian_rows       the same between two sets of points
    gaussian_log_votes  log sum_{j: y_j = y} alpha_j K(x_i, x_j) for every cluster y
    product             (K - diag K) V for a few columns
    similarity          S_ij = 2 (alpha_i + alpha_j - lam alpha_i alpha_j) K_ij, degrees
    components          connected components of the graph of S
    HadamardRows        rows of scale * K o (Y Y'), made on demand for the QP solver

Arrays arrive checked, C-contiguous and allocated; bandwidths arrive as the factors
w_i = 1 / (sqrt(2) b_i). Values are computed in double precision and stored as float32
or float64. Loops over tiles and rows run on OpenMP threads; each entry has one owner
and a fixed order of summation, so results do not depend on the number of threads. Long
loops look at pending signals between strips. The inner loops are in _simd.c.

Cost: O(n^2 d) for K, O(n^2 m) for a product with m columns.
"""
import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from cython cimport floating
from cython.parallel cimport prange
from libc.math cimport HUGE_VAL, log

from cdsk._simd cimport (
    CDSK_MAX_COLUMNS,
    CDSK_PRODUCT_ROWS,
    CDSK_TILE,
    cdsk_simd,
    cdsk_simd_select,
)
from cdsk._smo cimport RowSource, row_function
from cdsk._threads cimport useful_threads

cdef const cdsk_simd* simd = cdsk_simd_select()

# Multiplications between two looks at pending signals: some 100 ms on one core.
cdef double STRIP = 1e9


def simd_level():
    """Name of the instruction set in use: base, v3 or v4."""
    return simd.name.decode()


# ---------------------------------------------------------------- Gaussian tiles

cdef Py_ssize_t n_tiles(Py_ssize_t n) noexcept nogil:
    return (n + CDSK_TILE - 1) // CDSK_TILE


cdef void pack_tile(
    const floating* X,        # (n, d) in
    Py_ssize_t n, Py_ssize_t d, Py_ssize_t tile,
    double* packed,           # (d, TILE) out
) noexcept nogil:
    cdef Py_ssize_t i, k
    cdef Py_ssize_t first = tile * CDSK_TILE
    for i in range(CDSK_TILE):
        for k in range(d):
            packed[k * CDSK_TILE + i] = X[(first + i) * d + k] if first + i < n else 0.0


cdef pack(const floating[:, ::1] X, int n_threads):
    """Points of X as (n_tiles, d, TILE) float64, padded with zeros."""
    cdef Py_ssize_t n = X.shape[0]
    cdef Py_ssize_t d = X.shape[1]
    cdef Py_ssize_t count = n_tiles(n)
    cdef Py_ssize_t tile
    cdef double[:, :, ::1] packed = np.empty((count, d, CDSK_TILE))
    for tile in prange(
        count, nogil=True, schedule="static",
        num_threads=useful_threads(n_threads, <double> n * d),
    ):
        pack_tile(&X[0, 0], n, d, tile, &packed[tile, 0, 0])
    return packed


cdef pad(const double[::1] values):
    """Values as (n_tiles * TILE,) float64, padded with zeros."""
    padded = np.zeros(n_tiles(values.shape[0]) * CDSK_TILE)
    padded[: values.shape[0]] = values
    return padded


cdef inline void gaussian_tile(
    const double* a, const double* b, Py_ssize_t d,
    const double* wa, const double* wb, Py_ssize_t na, Py_ssize_t nb,
    floating* out, floating* mirror, Py_ssize_t stride,
) noexcept nogil:
    if floating is double:
        simd.gaussian_f64(a, b, d, wa, wb, na, nb, out, mirror, stride)
    else:
        simd.gaussian_f32(a, b, d, wa, wb, na, nb, out, mirror, stride)


cdef double tile_work(Py_ssize_t tiles, Py_ssize_t tiles_b, Py_ssize_t d) noexcept:
    """Multiplications for tiles x tiles_b tiles; an exp counts as 16."""
    return <double> tiles * tiles_b * CDSK_TILE * CDSK_TILE * (d + 16)


cdef Py_ssize_t strip_tiles(Py_ssize_t tiles, Py_ssize_t d) noexcept:
    """How many rows of tiles to work on between two looks at pending signals."""
    return max(1, <Py_ssize_t> (STRIP / tile_work(1, tiles, d)))


def gaussian_gram(
    const floating[:, ::1] X,     # (n, d) in
    const double[::1] w,          # (n,) in, 1 / (sqrt(2) bandwidth)
    floating[:, ::1] out,         # (n, n) out
    int n_threads,
):
    """Fill out with K; only tiles on and above the diagonal are computed."""
    cdef Py_ssize_t n = X.shape[0]
    cdef Py_ssize_t d = X.shape[1]
    cdef Py_ssize_t tiles = n_tiles(n)
    cdef Py_ssize_t strip = strip_tiles(tiles, d)
    cdef double[:, :, ::1] packed = pack(X, n_threads)
    cdef double[::1] scale = pad(w)
    cdef Py_ssize_t first, last, task, tile_a, tile_b, i, j
    n_threads = useful_threads(n_threads, tile_work(tiles, tiles, d))
    for first in range(0, tiles, strip):
        last = min(first + strip, tiles)
        for task in prange(
            (last - first) * tiles, nogil=True, num_threads=n_threads,
            schedule="dynamic", chunksize=4,
        ):
            tile_a = first + task // tiles
            tile_b = task % tiles
            i = tile_a * CDSK_TILE
            j = tile_b * CDSK_TILE
            if j >= i:
                gaussian_tile[floating](
                    &packed[tile_a, 0, 0], &packed[tile_b, 0, 0], d, &scale[i],
                    &scale[j], min(CDSK_TILE, n - i), min(CDSK_TILE, n - j),
                    &out[i, j], &out[j, i] if j > i else NULL, n,
                )
        PyErr_CheckSignals()


def gaussian_rows(
    const floating[:, ::1] A,     # (n_a, d) in
    const floating[:, ::1] B,     # (n_b, d) in
    const double[::1] wa,         # (n_a,) in, 1 / (sqrt(2) bandwidth)
    const double[::1] wb,         # (n_b,) in
    floating[:, ::1] out,         # (n_a, n_b) out
    int n_threads,
):
    """Fill out with the kernel between the rows of A and those of B."""
    cdef Py_ssize_t n_a = A.shape[0]
    cdef Py_ssize_t n_b = B.shape[0]
    cdef Py_ssize_t d = A.shape[1]
    cdef Py_ssize_t tiles = n_tiles(n_a)
    cdef Py_ssize_t tiles_b = n_tiles(n_b)
    cdef Py_ssize_t strip = strip_tiles(tiles_b, d)
    cdef double[:, :, ::1] packed_a = pack(A, n_threads)
    cdef double[:, :, ::1] packed_b = pack(B, n_threads)
    cdef double[::1] scale_a = pad(wa)
    cdef double[::1] scale_b = pad(wb)
    cdef Py_ssize_t first, last, task, tile_a, tile_b, i, j
    n_threads = useful_threads(n_threads, tile_work(tiles, tiles_b, d))
    for first in range(0, tiles, strip):
        last = min(first + strip, tiles)
        for task in prange(
            (last - first) * tiles_b, nogil=True, num_threads=n_threads,
            schedule="dynamic", chunksize=4,
        ):
            tile_a = first + task // tiles_b
            tile_b = task % tiles_b
            i = tile_a * CDSK_TILE
            j = tile_b * CDSK_TILE
            gaussian_tile[floating](
                &packed_a[tile_a, 0, 0], &packed_b[tile_b, 0, 0], d, &scale_a[i],
                &scale_b[j], min(CDSK_TILE, n_a - i), min(CDSK_TILE, n_b - j),
                &out[i, j], NULL, n_b,
            )
        PyErr_CheckSignals()


def gaussian_log_votes(
    const floating[:, ::1] A,     # (n_a, d) in, new points
    const floating[:, ::1] B,     # (n_b, d) in, points of one cluster
    const double[::1] wa,         # (n_a,) in, 1 / (sqrt(2) bandwidth)
    const double[::1] wb,         # (n_b,) in
    const double[::1] alpha,      # (n_b,) in, > 0
    double[::1] out,              # (n_a,) out
    int n_threads,
):
    """Fill out with log sum_j alpha_j K(a_i, b_j), finite however far a_i is."""
    cdef Py_ssize_t n_a = A.shape[0]
    cdef Py_ssize_t n_b = B.shape[0]
    cdef Py_ssize_t d = A.shape[1]
    cdef Py_ssize_t tiles = n_tiles(n_a)
    cdef Py_ssize_t tiles_b = n_tiles(n_b)
    cdef Py_ssize_t strip = strip_tiles(tiles_b, d)
    cdef double[:, :, ::1] packed_a = pack(A, n_threads)
    cdef double[:, :, ::1] packed_b = pack(B, n_threads)
    cdef double[::1] scale_a = pad(wa)
    cdef double[::1] scale_b = pad(wb)
    cdef double[::1] weight = pad(alpha)
    cdef double[::1] peak = np.full(tiles * CDSK_TILE, -HUGE_VAL)
    cdef double[::1] total = np.zeros(tiles * CDSK_TILE)
    cdef Py_ssize_t first, last, tile_a, tile_b, i, j
    n_threads = useful_threads(n_threads, tile_work(tiles, tiles_b, d))
    for first in range(0, tiles, strip):
        last = min(first + strip, tiles)
        for tile_a in prange(
            first, last, nogil=True, num_threads=n_threads, schedule="dynamic",
        ):
            i = tile_a * CDSK_TILE
            for tile_b in range(tiles_b):
                j = tile_b * CDSK_TILE
                simd.log_votes(
                    &packed_a[tile_a, 0, 0], &packed_b[tile_b, 0, 0], d, &scale_a[i],
                    &scale_b[j], &weight[j], min(CDSK_TILE, n_b - j),
                    &peak[i], &total[i],
                )
        PyErr_CheckSignals()
    for i in range(n_a):
        out[i] = log(total[i]) + peak[i]


# ---------------------------------------------------------------- products and S

def product(
    const floating[:, ::1] K,     # (n, n) in
    const double[:, ::1] V,       # (m, n) in, one column per row
    double[:, ::1] out,           # (m, n) out
    int n_threads,
):
    """Fill out with (K - diag K) V, sums in double precision.

    The diagonal is left out here, and not subtracted afterwards, because the rest of a
    row may be smaller than the rounding of its diagonal entry.
    """
    cdef Py_ssize_t n = K.shape[0]
    cdef Py_ssize_t m = V.shape[0]
    cdef Py_ssize_t blocks = (n + CDSK_PRODUCT_ROWS - 1) // CDSK_PRODUCT_ROWS
    cdef Py_ssize_t block, i, rows, first, m_part
    for first in range(0, m, CDSK_MAX_COLUMNS):
        m_part = min(CDSK_MAX_COLUMNS, m - first)
        for block in prange(
            blocks, nogil=True, schedule="static",
            num_threads=useful_threads(n_threads, <double> n * n * m_part),
        ):
            i = block * CDSK_PRODUCT_ROWS
            rows = min(CDSK_PRODUCT_ROWS, n - i)
            if floating is double:
                simd.product_f64(
                    &K[0, 0], i, rows, n, &V[first, 0], m_part, &out[first, 0]
                )
            else:
                simd.product_f32(
                    &K[0, 0], i, rows, n, &V[first, 0], m_part, &out[first, 0]
                )


def similarity(
    const floating[:, ::1] K,     # (n, n) in
    const double[::1] alpha,      # (n,) in
    double lam,                   # the paper's lambda
    floating[:, ::1] out,         # (n, n) out
    double[::1] degrees,          # (n,) out
    int n_threads,
):
    """Fill out with S and degrees with its row sums without the diagonal."""
    cdef Py_ssize_t n = K.shape[0]
    cdef Py_ssize_t i, j
    cdef double value, degree
    for i in prange(
        n, nogil=True, schedule="static",
        num_threads=useful_threads(n_threads, 4.0 * n * n),
    ):
        degree = 0.0
        for j in range(n):
            # alpha_i alpha_j first: the product commutes, so S is symmetric
            value = (
                2.0 * (alpha[i] + alpha[j] - lam * (alpha[i] * alpha[j])) * K[i, j]
            )
            out[i, j] = <floating> value
            if j != i:
                # = and not +=, which would make `degree` a reduction across threads
                degree = degree + value
        degrees[i] = degree


def components(
    const floating[:, ::1] K,     # (n, n) in
    const double[::1] alpha,      # (n,) in
    double lam,                   # the paper's lambda
    const double[::1] degrees,    # (n,) in, degrees of S
    double negligible,
):
    """Number and labels of the components of S, negligible edges left out.

    Points i and j are joined where S_ij > negligible * min(degree_i, degree_j): an edge
    that matters to at least one of its ends. Usually O(n); O(n^2) for a long chain.
    """
    cdef Py_ssize_t n = K.shape[0]
    cdef Py_ssize_t[::1] label = np.empty(n, dtype=np.intp)
    # found[:n_found] have been reached, found[n_found:] not yet
    cdef Py_ssize_t[::1] found = np.arange(n, dtype=np.intp)
    cdef Py_ssize_t n_found = 0, next_point = 0, count = 0, i, j, k
    cdef double value
    with nogil:
        while n_found < n:
            label[found[n_found]] = count
            n_found += 1
            while next_point < n_found:
                i = found[next_point]
                next_point += 1
                for k in range(n_found, n):
                    j = found[k]
                    value = 2.0 * K[i, j] * (
                        alpha[i] + alpha[j] - lam * (alpha[i] * alpha[j])
                    )
                    if value > negligible * min(degrees[i], degrees[j]):
                        label[j] = count
                        found[k] = found[n_found]
                        found[n_found] = j
                        n_found += 1
            count += 1
    return count, np.asarray(label)


# ---------------------------------------------------------------- rows for the QP

cdef struct hadamard_matrix:
    row_function row         # of K
    void* user
    const double* Y          # (c, n)
    double* y                # (c,) scratch
    double scale
    Py_ssize_t n, c


cdef const double* _hadamard_row(
    void* user, Py_ssize_t i, double* scratch
) noexcept nogil:
    cdef hadamard_matrix* h = <hadamard_matrix*> user
    cdef Py_ssize_t column
    for column in range(h.c):
        h.y[column] = h.Y[column * h.n + i]
    simd.hadamard_row(
        h.row(h.user, i, scratch), h.Y, h.y, h.scale, h.c, h.n, scratch
    )
    return scratch


cdef class HadamardRows(RowSource):
    """Rows of scale * K o (Y Y'), from rows of K and the columns Y (c, n)."""

    cdef hadamard_matrix matrix
    cdef RowSource rows
    cdef const double[:, ::1] columns
    cdef double[::1] column_scratch

    def __cinit__(self, RowSource rows, const double[:, ::1] columns, double scale):
        self.rows = rows
        self.columns = columns
        self.column_scratch = np.empty(columns.shape[0])
        self.n = self.matrix.n = rows.n
        self.matrix.c = columns.shape[0]
        self.matrix.row = rows.row
        self.matrix.user = rows.user
        self.matrix.Y = &columns[0, 0]
        self.matrix.y = &self.column_scratch[0]
        self.matrix.scale = scale
        self.diagonal = scale * rows.diagonal * np.einsum("ln,ln->n", columns, columns)
        self.row = _hadamard_row
        self.user = &self.matrix
