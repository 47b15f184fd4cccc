# SPDX-License-Identifier: BSD-3-Clause
"""Kernel functions for other compiled code: ``from cdsk cimport cdsk_gram_f64``.

Plain C: pointers to C-contiguous arrays, sizes, int status. All memory is the caller's;
no function allocates, raises, or needs the GIL, and all may run on several threads at
once. Each returns 0, or -1 if a size, bandwidth or weight is out of range (then outputs
are undefined). Results do not depend on n_threads, which must be at least 1.

A bandwidth comes with a step: 0 means one number for all points, 1 one per point.
Arrays of ``work`` are scratch space of the size stated, in doubles.
"""

# Doubles of work space for n points of d features.
cdef Py_ssize_t cdsk_packed_size(Py_ssize_t n, Py_ssize_t d) noexcept nogil

# K_ij = exp(-|x_i - x_j|^2 / (2 b_i b_j)).   work: cdsk_packed_size(n, d)
cdef int cdsk_gram_f64(
    const double* X,              # (n, d) in
    Py_ssize_t n, Py_ssize_t d,
    const double* bandwidth, Py_ssize_t bandwidth_step,
    double* K,                    # (n, n) out
    double* work, int n_threads,
) noexcept nogil
cdef int cdsk_gram_f32(
    const float* X, Py_ssize_t n, Py_ssize_t d,
    const double* bandwidth, Py_ssize_t bandwidth_step,
    float* K, double* work, int n_threads,
) noexcept nogil

# K_ij = exp(-|a_i - b_j|^2 / (2 bandwidth_a_i bandwidth_b_j)).
# work: cdsk_packed_size(n_a, d) + cdsk_packed_size(n_b, d)
cdef int cdsk_rows_f64(
    const double* A,              # (n_a, d) in
    Py_ssize_t n_a,
    const double* B,              # (n_b, d) in
    Py_ssize_t n_b, Py_ssize_t d,
    const double* bandwidth_a, Py_ssize_t bandwidth_a_step,
    const double* bandwidth_b, Py_ssize_t bandwidth_b_step,
    double* K,                    # (n_a, n_b) out
    double* work, int n_threads,
) noexcept nogil
cdef int cdsk_rows_f32(
    const float* A, Py_ssize_t n_a, const float* B, Py_ssize_t n_b, Py_ssize_t d,
    const double* bandwidth_a, Py_ssize_t bandwidth_a_step,
    const double* bandwidth_b, Py_ssize_t bandwidth_b_step,
    float* K, double* work, int n_threads,
) noexcept nogil

# votes[i, y] = log of the sum over the points j of cluster y of alpha_j K(a_i, b_j);
# -inf for an empty cluster. Points of B are sorted by cluster: those of cluster y are
# offsets[y] ... offsets[y + 1] - 1.
# work: cdsk_packed_size(n_a, d) + cdsk_packed_size(n_b, d)
cdef int cdsk_log_votes_f64(
    const double* A,              # (n_a, d) in
    Py_ssize_t n_a,
    const double* B,              # (n_b, d) in
    Py_ssize_t n_b, Py_ssize_t d,
    const double* bandwidth_a, Py_ssize_t bandwidth_a_step,
    const double* bandwidth_b, Py_ssize_t bandwidth_b_step,
    const double* alpha,          # (n_b,) in, > 0
    const Py_ssize_t* offsets,    # (n_clusters + 1,) in
    Py_ssize_t n_clusters,
    double* votes,                # (n_a, n_clusters) out
    double* work, int n_threads,
) noexcept nogil
cdef int cdsk_log_votes_f32(
    const float* A, Py_ssize_t n_a, const float* B, Py_ssize_t n_b, Py_ssize_t d,
    const double* bandwidth_a, Py_ssize_t bandwidth_a_step,
    const double* bandwidth_b, Py_ssize_t bandwidth_b_step,
    const double* alpha, const Py_ssize_t* offsets, Py_ssize_t n_clusters,
    double* votes, double* work, int n_threads,
) noexcept nogil

# out[l] = (K - diag K) columns[l]
cdef int cdsk_product_f64(
    const double* K,              # (n, n) in
    Py_ssize_t n,
    const double* columns,        # (m, n) in, one column per row
    Py_ssize_t m,
    double* out,                  # (m, n) out
    int n_threads,
) noexcept nogil
cdef int cdsk_product_f32(
    const float* K, Py_ssize_t n, const double* columns, Py_ssize_t m, double* out,
    int n_threads,
) noexcept nogil

# S_ij = 2 (alpha_i + alpha_j - n lam alpha_i alpha_j) K_ij, and its row sums without
# the diagonal
cdef int cdsk_similarity_f64(
    const double* K,              # (n, n) in
    Py_ssize_t n,
    const double* alpha,          # (n,) in
    double lam,                   # in the estimator's units
    double* S,                    # (n, n) out, may be K
    double* degrees,              # (n,) out
    int n_threads,
) noexcept nogil
cdef int cdsk_similarity_f32(
    const float* K, Py_ssize_t n, const double* alpha, double lam, float* S,
    double* degrees, int n_threads,
) noexcept nogil
