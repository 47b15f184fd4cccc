# SPDX-License-Identifier: BSD-3-Clause
"""The solver's view of a matrix: its size, its diagonal, and one row at a time."""

# Returns row i of the matrix behind `user`: either `scratch` (n doubles) filled with
# it, or a pointer to where the row already lies. Valid until scratch is used again.
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


cdef class StoredRows(RowSource):
    cdef stored_matrix matrix
    cdef object owner                 # keeps the memory of the matrix alive


# The solver for other compiled code: minimise p'x + x'Qx over sum(x) = 1,
# 0 <= x <= upper. Q is symmetric positive semi-definite and seen through `row`, which
# returns row i of it: `scratch` (n doubles) filled with it, or a pointer to where the
# row lies. Two rows are in use at a time, with different scratch. Returns 0 if the KKT
# gap is at most tol, 1 if max_iter steps were too few, 2 if rounding (or, with an
# infinite gap, a row that is not finite) allows no further progress, -1 for sizes, p or
# a start out of range (then x is unchanged). Calling again with the x returned goes on
# from there.
cdef int cdsk_solve_qp(
    Py_ssize_t n,
    const double* (*row)(
        void* user, Py_ssize_t i, double* scratch
    ) noexcept nogil,
    void* user,                   # handed to row
    const double* diagonal,       # (n,) in, of Q
    const double* p,              # (n,) in
    double upper,                 # more than 1 means 1
    double tol,                   # absolute KKT gap
    Py_ssize_t max_iter,
    double* x,                    # (n,) in/out, feasible start and solution
    double* gradient,             # (n,) out, p + 2Qx
    double* work,                 # (4 n,) scratch
    double* gap,                  # out
    Py_ssize_t* n_iter,           # out
) noexcept nogil
