# SPDX-License-Identifier: BSD-3-Clause
"""Base classes of the baselines, and spectral clustering of an affinity."""

from abc import ABC, abstractmethod
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import validate_data

from cdsk._operators.dense import DenseKernel
from cdsk._operators.sparse import SparseKernel
from cdsk._preprocessing import unique_rows, warn_few_distinct
from cdsk._spectral import (
    relabel_by_appearance,
    spectral_partition,
    warn_fewer_clusters,
    warn_unconnected,
)
from cdsk._threads import resolve_n_threads
from cdsk._utils import (
    explain_memory_error,
    limit_blas_threads,
    one_thread_if_forked,
    rollback_on_error,
    warn,
)
from cdsk._validation import (
    LABEL_METHODS,
    check_choice,
    check_extent,
    check_integer,
    check_kernel_values,
    check_n_clusters,
    check_points,
    check_random_state,
    check_symmetric_matrix,
)


class Baseline(ClusterMixin, BaseEstimator, ABC):
    """A clustering method that CDSK is compared with.

    A subclass has the parameters ``n_clusters`` and ``random_state``, checks its other
    parameters in ``_check_parameters`` and clusters in ``_cluster``. BLAS uses one
    thread during the fit, so results do not depend on the number of threads.
    """

    n_clusters: int
    random_state: Any
    labels_: NDArray[np.int64]

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Cluster X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data.
        y : Ignored
            Present for the scikit-learn API.

        Returns
        -------
        self : object
        """
        with (
            rollback_on_error(self),
            one_thread_if_forked(),
            limit_blas_threads(),
            explain_memory_error("fitting"),
        ):
            validate = partial(validate_data, self, reset=True)
            X = check_points(X, validate=validate, ensure_min_samples=2)
            check_extent(X)
            check_n_clusters(self.n_clusters, len(X))
            self._check_parameters()
            rng = check_random_state(self.random_state)
            labels = self._cluster(X.astype(np.float64, copy=False), rng)
            self.labels_ = relabel_by_appearance(self._join_duplicates(X, labels))
        return self

    def _join_duplicates(self, X, labels):
        """Return labels that are the same for equal rows."""
        row_of, point_of = unique_rows(X)
        if len(row_of) < self.n_clusters:
            warn_few_distinct(len(row_of), self.n_clusters)
        return point_of if len(row_of) <= self.n_clusters else labels[row_of][point_of]

    def _check_parameters(self):
        """Raise ValueError for invalid parameters that ``fit`` does not check."""

    @abstractmethod
    def _cluster(self, X, rng):
        """Return the cluster (n,) of each row of X (n, d), numbered in any order."""


class AffinityBaseline(Baseline):
    """A baseline that clusters an affinity matrix by ``spectral_labels``.

    A subclass has the parameters ``assign_labels`` and ``n_init`` and computes the
    matrix in ``_compute_affinity``.
    """

    assign_labels: str
    n_init: int
    affinity_matrix_: NDArray[np.float64] | sparse.csr_array
    # Whether the affinity depends on the seed.
    random_affinity: ClassVar[bool] = False

    def _check_parameters(self):
        check_choice(self.assign_labels, "assign_labels", LABEL_METHODS)
        check_integer(self.n_init, "n_init", 1, 10**6)

    def _cluster(self, X, rng):
        self.affinity_matrix_ = self._compute_affinity(X, rng)
        return spectral_labels(
            self.affinity_matrix_,
            self.n_clusters,
            assign_labels=self.assign_labels,
            n_init=self.n_init,
            random_state=rng,
        )

    @abstractmethod
    def _compute_affinity(self, X, rng):
        """Return a symmetric non-negative matrix (n, n), an array or a CSR array."""


@limit_blas_threads()
def spectral_labels(
    affinity,
    n_clusters,
    *,
    assign_labels="kmeans",
    n_init=10,
    random_state=None,
    n_threads=None,
):
    """Return labels by spectral clustering of an affinity matrix, as in CDSK.

    The leading eigenvectors of D^-1/2 W D^-1/2 with W_ii = 0 are divided by the square
    roots of the degrees, and their rows are scaled to unit length (Ng, Jordan & Weiss,
    2002). CDSK does the same with its similarity in place of W.

    Parameters
    ----------
    affinity : array-like or sparse matrix of shape (n_samples, n_samples)
        W, symmetric and non-negative. Its diagonal is not used.
    n_clusters : int
        Number of clusters.
    assign_labels : {"kmeans", "cluster_qr", "discretize", "auto"}, default="kmeans"
        As in ``CDSK``.
    n_init : int, default=10
        Number of k-means initializations.
    random_state : int, RandomState or None, default=None
        Seed of k-means.
    n_threads : int, default=None
        Number of threads; None uses all processors.

    Returns
    -------
    labels : ndarray of shape (n_samples,)
    """
    rng = check_random_state(random_state)
    check_choice(assign_labels, "assign_labels", LABEL_METHODS)
    check_integer(n_init, "n_init", 1, 10**6)
    n_threads = resolve_n_threads(n_threads)
    hint = "Use an affinity with larger entries"
    if sparse.issparse(affinity):
        kernel = SparseKernel.from_similarities(affinity, "affinity", hint, n_threads)
    else:
        matrix = check_symmetric_matrix(affinity, "affinity")
        check_kernel_values(matrix, "affinity")
        kernel = DenseKernel(matrix, n_threads, hint=hint)
    check_n_clusters(n_clusters, kernel.n)
    embedding, labels = spectral_partition(
        kernel, n_clusters, rng, method=assign_labels, n_init=n_init
    )
    if embedding.convergence_message is not None:
        warn(embedding.convergence_message)
    warn_unconnected(embedding, kernel)
    warn_fewer_clusters(labels, n_clusters, kernel)
    return labels
