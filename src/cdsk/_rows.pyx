# SPDX-License-Identifier: BSD-3-Clause
"""Rows of symmetric matrices, the input of the QP solver (tests/test_smo.py).

    StoredRows       rows of a matrix in memory; asymmetry() compares it with K'
    SparseRows       rows of a sparse matrix, or of scale * K o (Y' Y) for a sparse K
    CachedRows       rows of another source, with a cache
    HadamardRows     rows of scale * K o (Y' Y)

and for an indefinite K with the negative part K- = F'F, F (r, n):

    NegativeRows     rows of K-, computed from F or stored
    AbsoluteRows     rows of |K| = K + 2 K-
    clipped_pairs    the pairs i < j with negative similarity, and minus its value:
                     S_ij = 2 (alpha_i + alpha_j) K_ij
                            - 2 penalty alpha_i alpha_j |K|_ij
    components       connected components of the graph of max(S, 0)

F is passed together with its transpose: a row of K- is a combination of the rows of F
with a contiguous row of coefficients. Such a row costs O(n r), so each pass
over all pairs costs O(n^2 r), unless K- is stored. Both passes use one thread: they run
once per spectral step, which makes tens of passes over K.
"""
import numpy as np

from cython cimport floating
from cython.parallel cimport prange
from libc.math cimport HUGE_VAL, fabs

from cdsk._signals cimport (
    check_signals,
    gather_work,
    product_work,
    work_interval,
)
from cdsk._simd cimport cdsk_simd, cdsk_simd_select
from cdsk._threads cimport useful_threads

cdef const cdsk_simd* simd = cdsk_simd_select()


cdef class RowSource:
    """Rows and diagonal of a symmetric matrix; subclasses set every field."""

    def row_array(self, Py_ssize_t i):
        """Return a copy of row i."""
        cdef Py_ssize_t j
        if not 0 <= i < self.n:
            raise IndexError(f"Row {i} is out of range for a matrix of {self.n} rows.")
        cdef double[::1] out = np.empty(self.n)
        cdef const double* row = self.row(self.user, i, &out[0])
        for j in range(self.n):
            out[j] = row[j]
        return np.asarray(out)


cdef const double* _stored_row(
    void* user, Py_ssize_t i, double* scratch
) noexcept nogil:
    cdef stored_matrix* matrix = <stored_matrix*> user
    cdef Py_ssize_t j
    if matrix.f64 != NULL:
        return matrix.f64 + i * matrix.n
    for j in range(matrix.n):
        scratch[j] = matrix.f32[i * matrix.n + j]
    return scratch


cdef class StoredRows(RowSource):
    """Rows of a C-contiguous float32 or float64 matrix, which is not copied."""

    def __cinit__(self, matrix):
        cdef const double[:, ::1] f64
        cdef const float[:, ::1] f32
        self.owner = matrix
        self.matrix.f64 = NULL
        self.matrix.f32 = NULL
        self.n = self.matrix.n = matrix.shape[0]
        if matrix.dtype == np.float32:
            f32 = matrix
            self.matrix.f32 = &f32[0, 0]
        else:
            f64 = matrix
            self.matrix.f64 = &f64[0, 0]
        self.diagonal = np.ascontiguousarray(np.diagonal(matrix), dtype=np.float64)
        self.row = _stored_row
        self.user = &self.matrix
        self.row_work = self.n


# Rows and columns compared at once: they fit a near cache and touch few pages.
cdef enum:
    TILE = 64


cdef void _compare_with_transpose(
    const floating* M, Py_ssize_t n, Py_ssize_t first,
    double* largest, double* difference,
) noexcept nogil:
    """Compare TILE rows from `first` on, in the columns from `first` on."""
    cdef floating[TILE * TILE] transpose
    cdef double largest_upper = 0.0, largest_lower = 0.0, largest_difference = 0.0
    cdef double upper, lower, delta
    cdef double nan_if_infinite = 0.0     # NaN as soon as an entry is not finite
    cdef Py_ssize_t i, j, columns, tile = first, rows = min(n - first, TILE)
    cdef const floating* row
    while tile < n:
        columns = min(n - tile, TILE)
        for j in range(columns):
            row = M + (tile + j) * n + first
            for i in range(rows):
                transpose[i * TILE + j] = row[i]
        for i in range(rows):
            row = M + (first + i) * n + tile
            for j in range(columns):
                upper, lower = row[j], transpose[i * TILE + j]
                nan_if_infinite += 0.0 * upper + 0.0 * lower
                delta, upper, lower = fabs(upper - lower), fabs(upper), fabs(lower)
                if delta > largest_difference:
                    largest_difference = delta
                if upper > largest_upper:
                    largest_upper = upper
                if lower > largest_lower:
                    largest_lower = lower
        tile += TILE
    difference[0] = largest_difference
    largest[0] = max(largest_upper, largest_lower)
    if nan_if_infinite != 0.0:
        largest[0] = HUGE_VAL


def asymmetry(const floating[:, ::1] matrix, int n_threads):
    """Return max |M_ij|, inf if an entry is not finite, and max |M_ij - M_ji|."""
    cdef Py_ssize_t n = matrix.shape[0], strip, first, end
    cdef Py_ssize_t n_strips = (n + TILE - 1) // TILE
    cdef double strip_work = <double> TILE * n
    cdef Py_ssize_t step = max(n_threads, <Py_ssize_t> (work_interval() / strip_work))
    cdef double[:, ::1] maxima = np.empty((2, n_strips))
    for first in range(0, n_strips, step):
        end = min(first + step, n_strips)
        for strip in prange(
            first, end, nogil=True, schedule="dynamic",
            num_threads=useful_threads(n_threads, <double> n * n),
        ):
            _compare_with_transpose(
                &matrix[0, 0], n, strip * TILE, &maxima[0, strip], &maxima[1, strip]
            )
        check_signals((end - first) * strip_work)
    return np.max(maxima[0]), np.max(maxima[1])


cdef const double* _cached_row(
    void* user, Py_ssize_t i, double* scratch
) noexcept nogil:
    cdef row_cache* cache = <row_cache*> user
    cdef Py_ssize_t slot = i % cache.slots
    cdef double* values = cache.values + slot * cache.n
    cdef const double* row
    if cache.held[slot] != i:
        if slot == cache.last:
            # the row in this slot is still in use: the solver works with two at a time
            return cache.row(cache.user, i, scratch)
        row = cache.row(cache.user, i, values)
        if row != values:  # stored in memory, no need for a copy
            return row
        cache.held[slot] = i
    cache.last = slot
    return values


cdef class CachedRows(RowSource):
    """Rows of another source, with a direct-mapped cache of some bytes.

    Row i is cached in slot i modulo the number of slots: SMO returns to the same rows
    again and again, and a better replacement policy would cost more than it saves.
    """

    def __cinit__(self, RowSource rows, Py_ssize_t bytes):
        cdef double[:, ::1] values
        cdef Py_ssize_t[::1] held
        self.n = self.cache.n = rows.n
        self.cache.slots = min(rows.n, max(1, bytes // (8 * rows.n)))
        values = np.empty((self.cache.slots, rows.n))
        held = np.full(self.cache.slots, -1, dtype=np.intp)
        self.owner = rows, values, held
        self.cache.row = rows.row
        self.cache.user = rows.user
        self.cache.values = &values[0, 0]
        self.cache.held = &held[0]
        self.cache.last = -1
        self.diagonal = rows.diagonal
        self.row = _cached_row
        self.user = &self.cache
        self.row_work = rows.row_work


cdef const double* _sparse_row(
    void* user, Py_ssize_t i, double* scratch
) noexcept nogil:
    cdef sparse_matrix* matrix = <sparse_matrix*> user
    cdef Py_ssize_t k
    for k in range(matrix.n):
        scratch[k] = 0.0
    for k in range(matrix.starts[i], matrix.starts[i + 1]):
        scratch[matrix.columns[k]] = matrix.values[k]
    scratch[i] = matrix.diagonal[i]
    return scratch


cdef class SparseRows(RowSource):
    """Rows of a sparse matrix in CSR format with a separate diagonal.

    Columns of type int32 are not copied.
    """

    def __cinit__(
        self,
        starts,                           # (n + 1,) in, integers
        columns,                          # (n_entries,) in, integers, n < 2^31
        const double[::1] values,         # (n_entries,) in
        const double[::1] diagonal,       # (n,) in
    ):
        cdef const Py_ssize_t[::1] first = np.ascontiguousarray(starts, dtype=np.intp)
        cdef const int[::1] indices = np.ascontiguousarray(columns, dtype=np.intc)
        self.owner = first, indices, values, diagonal
        self.n = self.matrix.n = diagonal.shape[0]
        if first.shape[0] != self.n + 1 or not (
            first[self.n] == indices.shape[0] == values.shape[0]
        ):
            raise ValueError(
                f"A sparse matrix of {self.n} rows must have {self.n + 1} starts, the "
                "last of which is the number of its columns and of its values; got "
                f"{first.shape[0]} starts, {indices.shape[0]} columns and "
                f"{values.shape[0]} values."
            )
        self.matrix.starts = &first[0]
        # a matrix without entries has no address of the first one
        self.matrix.columns = &indices[0] if indices.shape[0] else NULL
        self.matrix.values = &values[0] if values.shape[0] else NULL
        self.matrix.diagonal = &diagonal[0]
        self.diagonal = np.asarray(diagonal)
        self.row = _sparse_row
        self.user = &self.matrix
        self.row_work = self.n + gather_work(<double> values.shape[0] / self.n)

    def hadamard(self, const double[:, ::1] vectors, double scale, int n_threads):
        """Return ``SparseRows`` of scale * K o (Y' Y)."""
        cdef Py_ssize_t n = self.n, c = vectors.shape[0]
        cdef Py_ssize_t n_entries = self.matrix.starts[n], first, end, i
        # the vector of a point contiguous, as neighbors are at random positions
        cdef const double[:, ::1] Y = np.ascontiguousarray(np.asarray(vectors).T)
        cdef double[::1] values = np.empty(n_entries)
        cdef int threads = useful_threads(n_threads, <double> n_entries * c)
        cdef double row_work = <double> n_entries / n * (10 + c)
        cdef Py_ssize_t step = max(
            threads, <Py_ssize_t> min(work_interval() / max(row_work, 1.0), n)
        )
        for first in range(0, n if n_entries else 0, step):
            end = min(first + step, n)
            for i in prange(
                first, end, nogil=True, schedule="dynamic", chunksize=256,
                num_threads=threads,
            ):
                _hadamard_entries(&self.matrix, i, &Y[0, 0], c, scale, &values[0])
            check_signals((end - first) * row_work)
        starts, columns, _, _ = self.owner
        diagonal = scale * self.diagonal * np.einsum("ln,ln->n", vectors, vectors)
        return SparseRows(starts, columns, values, diagonal)


cdef void _hadamard_entries(
    const sparse_matrix* K, Py_ssize_t i, const double* Y, Py_ssize_t c, double scale,
    double* values,
) noexcept nogil:
    """Compute row i of scale * K o (Y' Y), which is exactly symmetric if K is."""
    cdef const double* y_i = Y + i * c
    cdef const double* y_j
    cdef double product
    cdef Py_ssize_t k, m
    for k in range(K.starts[i], K.starts[i + 1]):
        y_j = Y + K.columns[k] * c
        product = 0.0
        for m in range(c):
            product += y_i[m] * y_j[m]
        values[k] = scale * K.values[k] * product


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
    """Rows of scale * K o (Y' Y), from rows of K and the vectors Y (c, n)."""

    def __cinit__(self, RowSource rows, const double[:, ::1] vectors, double scale):
        cdef double[::1] scratch = np.empty(vectors.shape[0])
        self.owner = (rows, vectors, scratch)
        self.n = self.matrix.n = rows.n
        self.matrix.c = vectors.shape[0]
        self.matrix.row = rows.row
        self.matrix.user = rows.user
        self.matrix.Y = &vectors[0, 0]
        self.matrix.y = &scratch[0]
        self.matrix.scale = scale
        self.diagonal = scale * rows.diagonal * np.einsum("ln,ln->n", vectors, vectors)
        self.row = _hadamard_row
        self.user = &self.matrix
        self.row_work = rows.row_work + self.n * (
            1.0 + product_work(vectors.shape[0])
        )


# ---------------------------------------------------------------- the negative part


cdef inline double similarity(
    double k, double negative, double alpha_i, double alpha_j, double penalty
) noexcept nogil:
    """Return S_ij from K_ij and the entry of K-."""
    cdef double both = penalty * (alpha_i * alpha_j)
    return 2.0 * ((alpha_i + alpha_j - both) * k - 2.0 * both * negative)


cdef struct negative_matrix:
    const double* stored     # (n, n) or NULL
    const double* factor     # (r, n)
    const double* transpose  # (n, r)
    double* scratch          # (n,)
    Py_ssize_t n, r


cdef inline const double* negative_row(
    const negative_matrix* m, Py_ssize_t i, Py_ssize_t first
) noexcept nogil:
    """Return row i of K-; entries before `first` are undefined."""
    if m.stored != NULL:
        return m.stored + i * m.n
    simd.combine(
        m.transpose + i * m.r, m.factor, m.r, 1, m.n, first, m.n, m.scratch
    )
    return m.scratch


cdef class NegativeRows:
    """Rows of K- = F'F from F (r, n) and its transpose, or of a stored matrix."""

    cdef negative_matrix matrix
    cdef const double[:, ::1] first
    cdef const double[:, ::1] second
    cdef double[::1] scratch
    cdef readonly object diagonal     # (n,)
    cdef readonly double row_work

    def __cinit__(
        self,
        const double[:, ::1] first,           # (r, n) or the stored (n, n), r > 0
        const double[:, ::1] second = None,   # (n, r); None: `first` is the stored K-
    ):
        self.first = first
        self.second = second
        self.matrix.n = first.shape[1]
        self.matrix.r = first.shape[0]
        self.matrix.stored = NULL
        if second is None:
            self.matrix.stored = &first[0, 0]
            self.diagonal = np.diagonal(first).copy()
            self.row_work = self.matrix.n
        else:
            self.scratch = np.empty(first.shape[1])
            self.matrix.factor = &first[0, 0]
            self.matrix.transpose = &second[0, 0]
            self.matrix.scratch = &self.scratch[0]
            self.diagonal = np.einsum("rn,rn->n", first, first)
            self.row_work = product_work(<double> self.matrix.n * self.matrix.r)


cdef struct absolute_matrix:
    row_function row         # of K
    void* user
    const negative_matrix* negative
    Py_ssize_t n


cdef const double* _absolute_row(
    void* user, Py_ssize_t i, double* scratch
) noexcept nogil:
    cdef absolute_matrix* m = <absolute_matrix*> user
    cdef const double* k = m.row(m.user, i, scratch)
    cdef const double* negative = negative_row(m.negative, i, 0)
    cdef Py_ssize_t j
    for j in range(m.n):
        scratch[j] = k[j] + 2.0 * negative[j]
    return scratch


cdef class AbsoluteRows(RowSource):
    """Rows of |K| = K + 2 K-, from rows of both."""

    cdef absolute_matrix matrix
    cdef RowSource rows
    cdef NegativeRows negative

    def __cinit__(self, RowSource rows, NegativeRows negative):
        self.rows = rows
        self.negative = negative
        self.n = self.matrix.n = rows.n
        self.matrix.row = rows.row
        self.matrix.user = rows.user
        self.matrix.negative = &negative.matrix
        self.diagonal = rows.diagonal + 2.0 * negative.diagonal
        self.row = _absolute_row
        self.user = &self.matrix
        self.row_work = rows.row_work + negative.row_work + self.n


def clipped_pairs(
    RowSource rows,                   # of K
    NegativeRows negative_rows,       # of K-
    const double[::1] alpha,          # (n,) in
    double penalty,
    const double[::1] degrees,        # (n,) in
    double negligible,
):
    """Return arrays i, j, -S_ij of the pairs i < j with S_ij clearly negative.

    That is S_ij < -negligible * min(degree_i, degree_j). Both weights of a pair are
    positive: elsewhere S_ij is a multiple of K_ij.
    """
    cdef Py_ssize_t n = rows.n
    cdef double[::1] scratch = np.empty(n)
    cdef double[::1] values = np.empty(n)
    cdef int[::1] indices = np.empty(n, dtype=np.intc)
    cdef const double* k
    cdef const double* negative
    cdef Py_ssize_t i, j, count
    cdef double value
    first, second, excess = [], [], []
    for i in range(n):
        if not alpha[i] > 0.0:
            continue
        count = 0
        with nogil:
            k = rows.row(rows.user, i, &scratch[0])
            negative = negative_row(&negative_rows.matrix, i, i + 1)
            for j in range(i + 1, n):
                if alpha[j] > 0.0:
                    value = similarity(
                        k[j], negative[j], alpha[i], alpha[j], penalty
                    )
                    if value < -negligible * min(degrees[i], degrees[j]):
                        indices[count] = <int> j
                        values[count] = -value
                        count += 1
        if count:
            first.append(np.full(count, i, dtype=np.intc))
            second.append(np.array(indices[:count]))
            excess.append(np.array(values[:count]))
        check_signals(rows.row_work + negative_rows.row_work + n)
    if not first:
        return np.empty(0, np.intc), np.empty(0, np.intc), np.empty(0)
    return np.concatenate(first), np.concatenate(second), np.concatenate(excess)


def components(
    RowSource rows,                   # of K
    NegativeRows negative_rows,       # of K-; None if K is semi-definite
    const double[::1] alpha,          # (n,) in
    double penalty,
    const double[::1] degrees,        # (n,) in, degrees of max(S, 0)
    double negligible,
):
    """Return the number and the labels of the connected components of max(S, 0).

    Points i and j are connected if S_ij > negligible * min(degree_i, degree_j).
    """
    cdef Py_ssize_t n = rows.n
    cdef Py_ssize_t[::1] label = np.empty(n, dtype=np.intp)
    # breadth-first search: queue[:n_reached] have been reached, queue[n_reached:] not
    cdef Py_ssize_t[::1] queue = np.arange(n, dtype=np.intp)
    cdef Py_ssize_t n_reached = 0, next_point = 0, count = 0, i, j, place
    cdef double[::1] scratch = np.empty(n)
    cdef const negative_matrix* minus = NULL
    cdef const double* k
    cdef const double* negative = NULL
    cdef double value, row_work = rows.row_work + n, work_done = 0.0
    if negative_rows is not None:
        minus = &negative_rows.matrix
        row_work += negative_rows.row_work
    with nogil:
        while n_reached < n:
            label[queue[n_reached]] = count
            n_reached += 1
            while next_point < n_reached < n:
                i = queue[next_point]
                next_point += 1
                k = rows.row(rows.user, i, &scratch[0])
                if minus != NULL:
                    negative = negative_row(minus, i, 0)
                for place in range(n_reached, n):
                    j = queue[place]
                    value = similarity(
                        k[j], 0.0 if negative == NULL else negative[j],
                        alpha[i], alpha[j], penalty,
                    )
                    if value > negligible * min(degrees[i], degrees[j]):
                        label[j] = count
                        queue[place] = queue[n_reached]
                        queue[n_reached] = j
                        n_reached += 1
                work_done += row_work
                if work_done + row_work > work_interval():
                    check_signals(work_done)
                    work_done = 0.0
            count += 1
    return count, np.asarray(label)
