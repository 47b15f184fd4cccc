# SPDX-License-Identifier: BSD-3-Clause
"""The l1-graph, or sparse subspace clustering."""

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

from cdsk._preprocessing import unique_rows
from cdsk._validation import check_number
from cdsk.baselines._base import AffinityBaseline
from cdsk.baselines._sparse_codes import (
    expand_duplicates,
    keep_largest_entries,
    linear_gram,
    sparse_code,
    stack_codes,
)


class L1Graph(AffinityBaseline):
    """l1-graph: spectral clustering of sparse codes of points by other points.

    Each point, scaled to unit length, is a sparse combination of the others, ::

        min_a  1/2 |x_i - sum_j a_j x_j|^2 + alpha |a|_1,   a_i = 0,

    and ``W = (|A| + |A'|) / 2`` is clustered. In a union of subspaces, points are
    combinations of points of the same subspace (Elhamifar & Vidal, 2009: sparse
    subspace clustering, SSC; Cheng et al., 2010: the l1-graph). The lasso is solved
    exactly, except for a ridge of 1e-10. Equal rows count as one point.

    Time is O(n^2 (d + s)) and more if points are nearly parallel, memory O(n^2), with s
    points in a combination. On one core 2,414 faces of 1,024 pixels take 3 s.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    alpha : float, default=0.1
        Weight of the l1 norm. The code of a point is zero unless its absolute cosine to
        another point exceeds alpha.
    mass : float, default=1.0
        Share of the l1 norm of each code that is kept, in its largest coefficients.
    assign_labels : {"kmeans", "cluster_qr", "discretize", "auto"}, default="kmeans"
        As in ``CDSK``.
    n_init : int, default=10
        Number of k-means initializations.
    random_state : int, RandomState or None, default=None
        Seed of k-means.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample, numbered in order of appearance.
    coef_ : csr_array of shape (n_samples, n_samples)
        A: row i is the code of sample i, before ``mass`` is applied.
    affinity_matrix_ : csr_array of shape (n_samples, n_samples)
        W.

    References
    ----------
    E. Elhamifar, R. Vidal. Sparse subspace clustering. CVPR, 2009. B. Cheng, J. Yang,
    S. Yan, Y. Fu, T. S. Huang. Learning with l1-graph for image analysis. IEEE
    Transactions on Image Processing, 2010.
    """

    coef_: sparse.csr_array

    def __init__(
        self,
        n_clusters=8,
        *,
        alpha=0.1,
        mass=1.0,
        assign_labels="kmeans",
        n_init=10,
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.alpha = alpha
        self.mass = mass
        self.assign_labels = assign_labels
        self.n_init = n_init
        self.random_state = random_state

    def _check_parameters(self):
        super()._check_parameters()
        check_number(self.alpha, "alpha", above=0)
        check_number(self.mass, "mass", above=0, at_most=1)

    def _compute_affinity(self, X, rng):
        row_of, point_of = unique_rows(X)
        # divided by the largest entry first, as squares may overflow or underflow
        largest = np.abs(X[row_of]).max(axis=1, keepdims=True)
        points = normalize(X[row_of] / np.where(largest > 0, largest, 1.0))
        gram = linear_gram(points)
        A = stack_codes(self._compute_codes(points, gram))
        codes = A[point_of]
        self.coef_ = sparse.csr_array(
            (codes.data, row_of[codes.indices], codes.indptr), shape=(len(X), len(X))
        )
        self.coef_.sort_indices()
        A = abs(keep_largest_entries(A, self.mass))
        W = expand_duplicates((A + A.T) / 2, point_of)
        if W.nnz == 0:
            np.fill_diagonal(gram, 0.0)
            raise ValueError(
                "All codes are zero: alpha must be less than the largest |cosine| of "
                f"two points, {np.abs(gram).max():.3g}; got {self.alpha}."
            )
        return W

    def _compute_codes(self, points, gram):
        return [
            sparse_code(gram, gram[i], self.alpha, excluded=[i])
            for i in range(len(gram))
        ]
