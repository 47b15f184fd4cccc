# SPDX-License-Identifier: BSD-3-Clause
"""The QP solver for other compiled code: ``from cdsk cimport cdsk_solve_qp``."""

# Minimize p'x + x'Qx over sum(x) = 1, 0 <= x <= upper. Q is symmetric positive
# semi-definite and accessed by `row`, which returns row i: `scratch` (n doubles) filled
# with it, or a pointer to the stored row. Two rows are in use at a time, with different
# scratch. Returns 0 if the KKT gap is at most tol, 1 if max_iter steps were too few, 2
# if rounding (or, with an infinite gap, a row that is not finite) allows no further
# progress, -1 for sizes, p or a start out of range (then x is unchanged). Calling again
# with the x returned continues from there.
cdef int cdsk_solve_qp(
    Py_ssize_t n,
    const double* (*row)(
        void* user, Py_ssize_t i, double* scratch
    ) noexcept nogil,
    void* user,                   # passed to row
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

# The same steps for a sparse Q in CSR format, at O(k) each for rows of k entries.
# Columns ascend in each row, both (i, j) and (j, i) are stored, and the diagonal is
# separate. Except for symmetry this is checked, and -1 is returned otherwise.
cdef int cdsk_solve_qp_csr(
    Py_ssize_t n,
    const Py_ssize_t* indptr,     # (n + 1,) in, where rows begin and end
    const int* indices,           # (indptr[n],) in, columns, without the diagonal
    const double* values,         # (indptr[n],) in
    const double* diagonal,       # (n,) in, of Q
    const double* p,              # (n,) in
    double upper,                 # more than 1 means 1
    double tol,                   # absolute KKT gap
    Py_ssize_t max_iter,
    double* x,                    # (n,) in/out, feasible start and solution
    double* gradient,             # (n,) out, p + 2Qx
    double* work,                 # (3 n + 64,) scratch
    double* gap,                  # out
    Py_ssize_t* n_iter,           # out
) noexcept nogil
