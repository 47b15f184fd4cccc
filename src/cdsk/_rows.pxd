# SPDX-License-Identifier: BSD-3-Clause
"""The interface of a matrix to the QP solver: size, diagonal, and one row at a time.

Private, and not in _smo.pxd: when a module that cimports from an installed .pxd is
loaded, Cython compares the size of every class that it declares.
"""

# Returns row i of the matrix of `user`: either `scratch` (n doubles) filled with it, or
# a pointer to the stored row. Valid until scratch is used again.
ctypedef const double* (*row_function)(
    void* user, Py_ssize_t i, double* scratch
) noexcept nogil

cdef struct stored_matrix:
    Py_ssize_t n
    const double* f64    # one of the two is NULL
    const float* f32


cdef class RowSource:
    cdef readonly Py_ssize_t n
    cdef readonly object diagonal     # (n,) float64 array
    cdef row_function row
    cdef void* user
    cdef readonly double row_work     # work of a row (unit: _signals.pxd)


cdef class StoredRows(RowSource):
    cdef stored_matrix matrix
    cdef object owner                 # keeps the memory of the matrix alive


cdef struct row_cache:
    Py_ssize_t n
    row_function row         # of the source
    void* user
    Py_ssize_t slots
    double* values           # (slots, n)
    Py_ssize_t* held         # (slots,) index of the row in a slot, -1: none
    Py_ssize_t last          # slot of the last row that was returned


cdef class CachedRows(RowSource):
    cdef row_cache cache
    cdef object owner                 # keeps the memory of all of it alive


cdef struct sparse_matrix:
    Py_ssize_t n
    const Py_ssize_t* starts     # (n + 1,)
    const int* columns           # ascending in each row, without the diagonal
    const double* values
    const double* diagonal       # (n,)


cdef class SparseRows(RowSource):
    cdef sparse_matrix matrix
    cdef object owner                 # keeps the memory of the matrix alive


cdef struct hadamard_matrix:
    row_function row         # of K
    void* user
    const double* Y          # (c, n)
    double* y                # (c,) scratch
    double scale
    Py_ssize_t n, c


cdef class HadamardRows(RowSource):
    cdef hadamard_matrix matrix
    cdef object owner                 # keeps the memory of all of it alive
