# SPDX-License-Identifier: BSD-3-Clause
"""The SMO solver for a sparse Q, as _smo.pyx calls it. Private."""
from cdsk._rows cimport SparseRows

# Run SMO from x in place; return the number of steps. Status and KKT gap are out.
cdef Py_ssize_t solve_sparse(
    SparseRows rows, double[::1] x, double[::1] g, double upper, double tol,
    Py_ssize_t max_iter, int* status, double* gap,
) except -1

# cdsk_solve_qp_csr for n < 2^31, a valid start and upper <= 1.
cdef int solve_arrays(
    Py_ssize_t n, const Py_ssize_t* indptr, const int* indices, const double* values,
    const double* diagonal, const double* p, double upper,
    double tol, Py_ssize_t max_iter,
    double* x, double* gradient, double* work,
    double* gap, Py_ssize_t* n_iter,
) noexcept nogil
