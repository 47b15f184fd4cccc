# SPDX-License-Identifier: BSD-3-Clause
"""A classifier for streams of batches, compiled from data to labels.

    fit       minimize q'a + n lam a'(K o G)a,  sum(a) = 1,  0 <= a_i <= 1 / (n lam)
              with G_ij = 1[y_i = y_j] and q_i = sum_j K_ij (1 - 2 G_ij): the weight
              step of CDSK for known labels
    classify  argmax_y of log sum_{i: y_i = y} a_i K(x, x_i)

Points are sorted by label, so a class is a range of them. Memory is NumPy's; the work
is done without the GIL.
"""
import numpy as np

from cdsk cimport (
    cdsk_gram_f64,
    cdsk_log_votes_f64,
    cdsk_packed_size,
    cdsk_product_f64,
    cdsk_solve_qp,
)


cdef struct labeled_kernel:
    const double* K               # (n, n)
    const Py_ssize_t* labels      # (n,)
    const Py_ssize_t* offsets     # class y is offsets[y] ... offsets[y + 1] - 1
    Py_ssize_t n
    double scale


cdef const double* labeled_row(
    void* user, Py_ssize_t i, double* scratch
) noexcept nogil:
    """Return row i of scale * K o G."""
    cdef labeled_kernel* Q = <labeled_kernel*> user
    cdef Py_ssize_t j
    for j in range(Q.n):
        scratch[j] = 0.0
    for j in range(Q.offsets[Q.labels[i]], Q.offsets[Q.labels[i] + 1]):
        scratch[j] = Q.scale * Q.K[i * Q.n + j]
    return scratch


cdef int fit(
    const double* X,              # (n, d) in, sorted by label
    const Py_ssize_t* labels,     # (n,) in
    const Py_ssize_t* offsets,    # (n_classes + 1,) in
    Py_ssize_t n, Py_ssize_t d, Py_ssize_t n_classes,
    double bandwidth, double lam, double tol, int n_threads,
    double* K,                    # (n, n) out
    double* members,              # (2, n_classes, n) scratch
    double* vectors,              # (3, n) scratch
    double* work,                 # max(4 n, cdsk_packed_size(n, d)) scratch
    double* alpha,                # (n,) out
    double* gap, Py_ssize_t* n_iter,
) noexcept nogil:
    cdef labeled_kernel Q
    cdef double* sums = members + n_classes * n
    cdef double* diagonal = vectors
    cdef double* q = vectors + n
    cdef Py_ssize_t i, y
    if cdsk_gram_f64(X, n, d, &bandwidth, 0, K, work, n_threads) != 0:
        return -1
    # sums[y, i] = sum of K_ij over the points j != i of class y
    for y in range(n_classes):
        for i in range(n):
            members[y * n + i] = labels[i] == y
    if cdsk_product_f64(K, n, members, n_classes, sums, n_threads) != 0:
        return -1
    Q.K, Q.labels, Q.offsets, Q.n, Q.scale = K, labels, offsets, n, n * lam
    for i in range(n):
        q[i] = -1.0               # of j = i
        for y in range(n_classes):
            q[i] += -sums[y * n + i] if labels[i] == y else sums[y * n + i]
        diagonal[i] = Q.scale
        alpha[i] = 1.0 / n
    return cdsk_solve_qp(
        n, labeled_row, &Q, diagonal, q, 1.0 / (n * lam), tol, 1000 * n,
        alpha, vectors + 2 * n, work, gap, n_iter,
    )


cdef class StreamClassifier:
    """Learn weights of labeled points, and classify batches by their votes.

    labels are 0 ... n_classes - 1. tol is the largest KKT gap.
    """

    cdef readonly object weights  # (n,) in the order of X
    cdef readonly double gap
    cdef readonly Py_ssize_t n_iter
    cdef double bandwidth
    cdef int n_threads
    # the points of positive weight, sorted by label
    cdef double[:, ::1] support
    cdef double[::1] alpha
    cdef Py_ssize_t[::1] offsets

    def __init__(self, X, labels, double bandwidth, double lam=0.3, double tol=1e-6,
                 int n_threads=1):
        order = np.argsort(labels, kind="stable")
        cdef double[:, ::1] points = np.asarray(X, np.float64, "C")[order]
        cdef Py_ssize_t[::1] y = np.asarray(labels, np.intp)[order]
        cdef Py_ssize_t n = points.shape[0], d = points.shape[1]
        cdef Py_ssize_t n_classes = y[n - 1] + 1
        cdef Py_ssize_t[::1] offsets = np.searchsorted(y, np.arange(n_classes + 1))
        cdef double[:, ::1] K = np.empty((n, n))
        cdef double[:, :, ::1] members = np.empty((2, n_classes, n))
        cdef double[:, ::1] vectors = np.empty((3, n))
        cdef double[::1] work = np.empty(max(4 * n, cdsk_packed_size(n, d)))
        cdef double[::1] alpha = np.empty(n)
        cdef double gap = 0.0
        cdef Py_ssize_t n_iter = 0
        cdef int status
        with nogil:
            status = fit(
                &points[0, 0], &y[0], &offsets[0], n, d, n_classes, bandwidth, lam, tol,
                n_threads, &K[0, 0], &members[0, 0, 0], &vectors[0, 0], &work[0],
                &alpha[0], &gap, &n_iter,
            )
        if status != 0:
            raise ValueError(f"fit failed with status {status}, KKT gap {gap:.1e}")
        self.gap, self.n_iter = gap, n_iter
        self.bandwidth, self.n_threads = bandwidth, n_threads
        weights = np.asarray(alpha)
        keep = weights > 0
        self.support, self.alpha = np.asarray(points)[keep], weights[keep]
        self.offsets = np.searchsorted(np.asarray(y)[keep], np.arange(n_classes + 1))
        self.weights = np.empty(n)
        self.weights[order] = weights

    def log_votes(self, const double[:, ::1] batch):
        """Return the log vote of every class for every row of the batch."""
        cdef Py_ssize_t n = self.support.shape[0], d = self.support.shape[1]
        cdef Py_ssize_t m = batch.shape[0]
        cdef Py_ssize_t n_classes = self.offsets.shape[0] - 1
        if batch.shape[1] != d:
            raise ValueError(f"expected {d} features; got {batch.shape[1]}")
        cdef double[:, ::1] votes = np.empty((m, n_classes))
        cdef double[::1] work = np.empty(
            cdsk_packed_size(m, d) + cdsk_packed_size(n, d)
        )
        cdef int status
        with nogil:
            status = cdsk_log_votes_f64(
                &batch[0, 0], m, &self.support[0, 0], n, d,
                &self.bandwidth, 0, &self.bandwidth, 0,
                &self.alpha[0], &self.offsets[0], n_classes,
                &votes[0, 0], &work[0], self.n_threads,
            )
        if status != 0:
            raise ValueError(f"log_votes failed with status {status}")
        return np.asarray(votes)

    def classify(self, batch):
        """Return the label of every row of the batch."""
        return self.log_votes(batch).argmax(axis=1)
