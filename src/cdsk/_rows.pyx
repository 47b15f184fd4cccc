# SPDX-License-Identifier: BSD-3-Clause
"""Rows of a symmetric matrix for the QP solver, which knows nothing else of it."""
import numpy as np

from cdsk._simd cimport cdsk_simd, cdsk_simd_select

cdef const cdsk_simd* simd = cdsk_simd_select()


cdef class RowSource:
    """Rows and diagonal of a symmetric matrix; subclasses set every field."""

    def row_array(self, Py_ssize_t i):
        """Return a copy of row i."""
        cdef Py_ssize_t j
        if not 0 <= i < self.n:
            raise IndexError(f"row {i} of a matrix with {self.n} rows")
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


cdef const double* _cached_row(
    void* user, Py_ssize_t i, double* scratch
) noexcept nogil:
    cdef row_cache* cache = <row_cache*> user
    cdef Py_ssize_t slot = i % cache.slots
    cdef double* values = cache.values + slot * cache.n
    cdef const double* row
    if cache.held[slot] != i:
        if slot == cache.last:
            # The row in it is still in use: the solver compares two at a time.
            return cache.row(cache.user, i, scratch)
        row = cache.row(cache.user, i, values)
        if row != values:  # it lies in memory already
            return row
        cache.held[slot] = i
    cache.last = slot
    return values


cdef class CachedRows(RowSource):
    """Rows of another source that makes them, kept in some bytes of memory.

    Row i has its place in slot i modulo the number of slots: SMO comes back to the same
    few rows, and a better rule than the last one to come would cost more than it saves.
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
    """Rows of a sparse matrix in CSR form whose diagonal is stored apart."""

    def __cinit__(
        self,
        const Py_ssize_t[::1] starts,        # (n + 1,) in
        const Py_ssize_t[::1] columns,    # (n_entries,) in
        const double[::1] values,         # (n_entries,) in
        const double[::1] diagonal,       # (n,) in
    ):
        self.owner = starts, columns, values, diagonal
        self.n = self.matrix.n = diagonal.shape[0]
        self.matrix.starts = &starts[0]
        # a matrix without entries has no first one
        self.matrix.columns = &columns[0] if columns.shape[0] else NULL
        self.matrix.values = &values[0] if values.shape[0] else NULL
        self.matrix.diagonal = &diagonal[0]
        self.diagonal = np.asarray(diagonal)
        self.row = _sparse_row
        self.user = &self.matrix


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

    def __cinit__(self, RowSource rows, const double[:, ::1] columns, double scale):
        cdef double[::1] scratch = np.empty(columns.shape[0])
        self.owner = (rows, columns, scratch)
        self.n = self.matrix.n = rows.n
        self.matrix.c = columns.shape[0]
        self.matrix.row = rows.row
        self.matrix.user = rows.user
        self.matrix.Y = &columns[0, 0]
        self.matrix.y = &scratch[0]
        self.matrix.scale = scale
        self.diagonal = scale * rows.diagonal * np.einsum("ln,ln->n", columns, columns)
        self.row = _hadamard_row
        self.user = &self.matrix
