# SPDX-License-Identifier: BSD-3-Clause
"""What all rival methods share: checks, and the way from an affinity to labels."""

from abc import ABC, abstractmethod
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import validate_data

from cdsk._kernels.dense import DenseKernel
from cdsk._kernels.graph import given_similarities
from cdsk._points import first_of_equal_rows, warn_of_copies
from cdsk._runtime import one_thread_if_forked, said_in_words, unchanged_if_it_fails
from cdsk._steps.labels import METHODS, in_order_of_appearance
from cdsk._steps.spectral import (
    spectral_partition,
    warn_of_fewer_clusters,
    warn_of_strays,
)
from cdsk._threads import resolve_n_threads
from cdsk._validation import (
    check_choice,
    check_extent,
    check_integer,
    check_kernel_values,
    check_n_clusters,
    check_points,
    check_random_state,
    check_symmetric_matrix,
)
from cdsk._warn import warn


class Baseline(ClusterMixin, BaseEstimator, ABC):
    """A clustering method beside which CDSK is measured.

    A subclass has ``n_clusters`` and ``random_state`` among its parameters, checks the
    others in ``_check_parameters`` and clusters in ``_labels_of``.
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
            unchanged_if_it_fails(self),
            one_thread_if_forked(),
            said_in_words("A fit of so many points"),
        ):
            validate = partial(validate_data, self, reset=True)
            X = check_points(X, validate=validate, ensure_min_samples=2)
            check_extent(X)
            check_n_clusters(self.n_clusters, len(X))
            self._check_parameters()
            rng = check_random_state(self.random_state)
            # one precision for all that follows
            labels = self._labels_of(X.astype(np.float64, copy=False), rng)
            self.labels_ = in_order_of_appearance(self._not_splitting(X, labels))
        return self

    def _not_splitting(self, X, labels):
        """Labels with which equal rows are together."""
        row_of, point_of = first_of_equal_rows(X)
        if len(row_of) < self.n_clusters:
            warn_of_copies(len(row_of), self.n_clusters)
        return point_of if len(row_of) <= self.n_clusters else labels[row_of][point_of]

    def _check_parameters(self):
        """Refuse parameters other than n_clusters and random_state that are wrong."""

    @abstractmethod
    def _labels_of(self, X, rng):
        """Cluster numbers of the rows of X, of any kind and in any order."""


class AffinityBaseline(Baseline):
    """A baseline that is an affinity matrix, clustered by ``spectral_labels``.

    A subclass has ``assign_labels`` and ``n_init`` among its parameters and makes the
    matrix in ``_affinity_of``.
    """

    assign_labels: str
    n_init: int
    affinity_matrix_: NDArray[np.float64] | sparse.csr_array
    # Whether two seeds give two affinities.
    random_affinity: ClassVar[bool] = False

    def _check_parameters(self):
        check_choice(self.assign_labels, "assign_labels", METHODS)
        check_integer(self.n_init, "n_init", 1, 10**6)

    def _labels_of(self, X, rng):
        self.affinity_matrix_ = self._affinity_of(X, rng)
        how = {"assign_labels": self.assign_labels, "n_init": self.n_init}
        return spectral_labels(
            self.affinity_matrix_, self.n_clusters, random_state=rng, **how
        )

    @abstractmethod
    def _affinity_of(self, X, rng):
        """A symmetric matrix without negative entries, an array or a CSR array."""


def spectral_labels(
    affinity,
    n_clusters,
    *,
    assign_labels="kmeans",
    n_init=10,
    random_state=None,
    n_threads=None,
):
    """Spectral clustering of an affinity matrix, by the steps of CDSK.

    The leading eigenvectors of D^-1/2 W D^-1/2, with W_ii = 0, rows divided by
    their degree and scaled to unit length (Ng, Jordan & Weiss, 2002). That is what
    CDSK does with W in place of its similarity.

    Parameters
    ----------
    affinity : array-like or sparse matrix of shape (n_samples, n_samples)
        W, symmetric and not negative. Its diagonal is not used.
    n_clusters : int
        Number of clusters.
    assign_labels : {"kmeans", "cluster_qr", "discretize", "auto"}, default="kmeans"
        As in ``CDSK``.
    n_init : int, default=10
        Starts of k-means.
    random_state : int, RandomState or None, default=None
        Seed of the starts.
    n_threads : int, default=None
        Threads; None uses all.

    Returns
    -------
    labels : ndarray of shape (n_samples,)
    """
    rng = check_random_state(random_state)
    check_choice(assign_labels, "assign_labels", METHODS)
    check_integer(n_init, "n_init", 1, 10**6)
    n_threads = resolve_n_threads(n_threads)
    remedy = "an affinity with larger entries"
    if sparse.issparse(affinity):
        kernel = given_similarities(affinity, "affinity", remedy, n_threads)
    else:
        matrix = check_symmetric_matrix(affinity, "affinity")
        check_kernel_values(matrix, "affinity")
        kernel = DenseKernel(matrix, n_threads, remedy=remedy)
    check_n_clusters(n_clusters, kernel.n)
    found, labels = spectral_partition(
        kernel, n_clusters, rng, method=assign_labels, n_init=n_init
    )
    if found.complaint is not None:
        warn(found.complaint)
    warn_of_strays(found, kernel)
    warn_of_fewer_clusters(labels, n_clusters, kernel)
    return labels
