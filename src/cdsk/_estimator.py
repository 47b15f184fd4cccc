# SPDX-License-Identifier: BSD-3-Clause
"""The scikit-learn estimator: checks, attributes, and the order of the stages."""

import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from cdsk._bandwidth import RULES, bandwidth_from_data
from cdsk._dense import DenseKernel
from cdsk._fit import alternate
from cdsk._fork import one_thread_if_forked
from cdsk._gaussian import gaussian_gram
from cdsk._labels import assign_labels
from cdsk._predict import GaussianVotes, KernelVotes, kernel_values
from cdsk._threads import resolve_n_threads
from cdsk._validation import (
    check_bandwidth,
    check_choice,
    check_integer,
    check_kernel_matrix,
    check_number,
    check_points,
)
from cdsk.theory._bound import GeneralizationBound, generalization_bound


class CDSK(ClusterMixin, BaseEstimator):
    """Clustering by discriminative similarity via unsupervised kernel classification.

    Alternates a spectral step on the similarity ``S_ij = 2 (a_i + a_j - n lam a_i a_j)
    K_ij`` with a quadratic program for the kernel weights ``a``, which fade out points
    that blur the clusters. The weighted votes of the points are a classifier for new
    ones. See ``docs/method.md`` for the equations.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, at least 2.
    kernel : {"rbf", "precomputed"} or callable, default="rbf"
        "rbf" is the Gaussian kernel. "precomputed" takes X as a kernel matrix. A
        callable ``kernel(A, B)`` returns the matrix of values between the rows of A and
        B. Kernels must be symmetric, non-negative and positive semi-definite.
    bandwidth : float or {"auto", "variance", "std", "median", "local"}, default="auto"
        Bandwidth of the Gaussian kernel, in the unit of the data. "auto": half the mean
        distance to the 7th nearest neighbour. "variance": variance of the pairwise
        distances, as the paper prints it; "std": its square root; "median": the median
        distance. "local": one per point, from its own 7th neighbour.
    lam : float in (0, 1], default=0.3
        Weight of the regulariser relative to the mean risk; the paper's lambda is
        ``n_samples * lam``. At least this fraction of the points carries weight;
        smaller means sparser.
    init : {"uniform"}, default="uniform"
        First weights.
    max_iter : int, default=20
        Most rounds. 0 keeps the first weights: plain spectral clustering on the kernel.
    tol : float, default=1e-4
        Relative decrease of the merit at which the alternation stops.
    qp_tol : float, default=1e-4
        KKT gap at which the weight step stops, relative to its largest linear term.
    assign_labels : {"kmeans", "cluster_qr"}, default="kmeans"
        How the rows of the embedding become labels.
    n_init : int, default=10
        Number of k-means starts.
    random_state : int, RandomState instance or None, default=None
        Seeds the eigensolver's start and k-means. The same seed gives the same result
        for any number of threads.
    n_threads : int, default=None
        Threads of the compiled loops; None means all.
    verbose : int, default=0
        1 prints a line per round.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each point, numbered in order of first appearance.
    weights_ : ndarray of shape (n_samples,)
        Kernel weights, sum 1.
    support_ : ndarray of shape (n_support,)
        Indices of the points with positive weight.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        Spectral embedding with unit rows.
    eigenvalues_ : ndarray of shape (n_clusters,)
        Leading eigenvalues of the normalised similarity, largest first.
    history_ : ndarray of shape (n_accepted + 1,)
        Merit of the first weights and after each accepted round; never increases.
    n_iter_ : int
        Number of rounds made, a last one that was not accepted included.
    qp_gap_ : float
        Relative KKT gap of the weights in their quadratic program; NaN if the first
        weights were kept.
    bandwidth_ : float or ndarray of shape (n_samples,)
        Bandwidth(s) in use; None for other kernels.
    lam_ : float
        Regularisation in use.
    n_features_in_ : int
        Number of features seen by ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X had any.

    References
    ----------
    Yingzhen Yang and Ping Li. Discriminative Similarity for Data Clustering. ICLR 2022.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from cdsk import CDSK
    >>> X, _ = make_moons(200, noise=0.05, random_state=0)
    >>> model = CDSK(n_clusters=2, random_state=0).fit(X)
    >>> model.predict([[0.0, 1.0], [1.0, -0.5]]).tolist() == model.predict(
    ...     [[-0.5, 0.9], [1.5, -0.4]]
    ... ).tolist()
    True
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernel: str | Callable[[NDArray[Any], NDArray[Any]], ArrayLike] = "rbf",
        bandwidth: float | str = "auto",
        lam: float = 0.3,
        init: str = "uniform",
        max_iter: int = 20,
        tol: float = 1e-4,
        qp_tol: float = 1e-4,
        assign_labels: str = "kmeans",
        n_init: int = 10,
        random_state: int | np.random.RandomState | None = None,
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.lam = lam
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.qp_tol = qp_tol
        self.assign_labels = assign_labels
        self.n_init = n_init
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Cluster X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, n_samples)
            Data, or a kernel matrix if ``kernel="precomputed"``.
        y : Ignored
            Present for the scikit-learn API.

        Returns
        -------
        self : CDSK
        """
        before = self.__dict__.copy()
        try:
            with one_thread_if_forked():
                return self._fit(X)
        except BaseException:
            # A fit that fails or is interrupted leaves the estimator as it was.
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _fit(self, X):
        X = self._check_data(X, reset=True, ensure_min_samples=2)
        self._check_parameters()
        n_samples = len(X)
        if self.n_clusters > n_samples:
            raise ValueError(
                f"n_clusters must be at most the number of samples; got n_clusters="
                f"{self.n_clusters} and n_samples={n_samples}."
            )
        n_threads = resolve_n_threads(self.n_threads)
        rng = check_random_state(self.random_state)

        bandwidth = self._resolve_bandwidth(X)
        kernel = self._kernel_matrix(X, bandwidth, n_threads)
        fit = alternate(
            kernel,
            self.n_clusters,
            n_samples * self.lam,
            np.full(n_samples, 1.0 / n_samples),
            max_iter=self.max_iter,
            tol=self.tol,
            qp_tol=self.qp_tol,
            rng=rng,
            report=_print_round if self.verbose else None,
        )
        columns = fit.embedding.columns
        labels = assign_labels(
            columns, self.assign_labels, n_init=self.n_init, random_state=rng
        )
        _warn_of_stray_points(fit.embedding.stray)

        self.labels_ = labels
        self.weights_ = fit.weights
        self.support_ = np.flatnonzero(fit.weights)
        self.embedding_ = np.ascontiguousarray(columns.T)
        self.eigenvalues_ = fit.embedding.eigenvalues
        self.history_ = np.array(fit.history)
        self.n_iter_ = fit.n_iter
        self.qp_gap_ = fit.qp_gap
        self.bandwidth_ = bandwidth
        self.lam_ = float(self.lam)
        self._votes = self._make_votes(X)
        # for generalization_bound; a precomputed matrix is too large to be kept
        self._training = None if self.kernel == "precomputed" else X
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Cluster of new points: the one with the largest weighted kernel vote.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features) or (n_new, n_samples)
            New points, or their kernel values to the training points if
            ``kernel="precomputed"``.

        Returns
        -------
        labels : ndarray of shape (n_new,)
        """
        votes = self.decision_function(X)
        labels = np.argmax(votes, axis=1)
        lost = np.isneginf(votes.max(axis=1))
        if lost.any():
            labels[lost] = np.argmax(np.bincount(self.labels_, weights=self.weights_))
            warnings.warn(
                f"{int(lost.sum())} of {len(lost)} points have no similarity to any "
                "training point and took the label of the heaviest cluster.",
                UserWarning,
                stacklevel=2,
            )
        return labels

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Logarithm of the weighted kernel votes of every cluster.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features) or (n_new, n_samples)
            New points as for ``predict``.

        Returns
        -------
        log_votes : ndarray of shape (n_new, n_clusters)
            -inf for a cluster none of whose points carries weight.
        """
        check_is_fitted(self, "labels_")
        X = self._check_data(X, reset=False)
        with one_thread_if_forked():
            return self._votes.log_votes(X, resolve_n_threads(self.n_threads))

    def score_samples(self, X: ArrayLike) -> NDArray[np.float64]:
        """Logarithm of the weighted kernel density.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features) or (n_new, n_samples)
            New points as for ``predict``.

        Returns
        -------
        log_density : ndarray of shape (n_new,)
            For the Gaussian kernel with one bandwidth the density integrates to 1; for
            other kernels it is the sum of the votes.
        """
        total = logsumexp(self.decision_function(X), axis=1)
        return total + self._votes.log_normaliser(self.n_features_in_)

    def generalization_bound(
        self, X: ArrayLike | None = None, *, gamma: float = 1.0, delta: float = 0.05
    ) -> GeneralizationBound:
        """Terms of the paper's bound on the error of ``predict``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, n_samples)
            What the model was fitted to. Needed if ``kernel="precomputed"``, as kernel
            matrices are not kept; else None means the data kept by ``fit``.
        gamma : float, default=1.0
            Margin at which a point costs nothing.
        delta : float in (0, 1], default=0.05
            Probability with which the bound may fail.

        Returns
        -------
        bound : GeneralizationBound
            See ``cdsk.theory.generalization_bound``.
        """
        check_is_fitted(self, "labels_")
        if X is None and self._training is None:
            raise ValueError(
                "X must be the kernel matrix that the model was fitted to, since "
                "precomputed matrices are not kept; got None."
            )
        X = self._training if X is None else self._check_data(X, reset=False)
        with one_thread_if_forked():
            n_threads = resolve_n_threads(self.n_threads)
            kernel = self._kernel_matrix(X, self.bandwidth_, n_threads)
            return generalization_bound(
                kernel.K, self.labels_, self.weights_, gamma=gamma, delta=delta
            )

    def __sklearn_tags__(self):
        """Tags for scikit-learn: a precomputed kernel is pairwise."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.positive_only = tags.input_tags.pairwise
        return tags

    def _check_parameters(self):
        check_integer(self.n_clusters, "n_clusters", 2)
        if not callable(self.kernel):
            check_choice(self.kernel, "kernel", ("rbf", "precomputed"))
        if isinstance(self.bandwidth, str):
            check_choice(self.bandwidth, "bandwidth", RULES)
        else:
            check_number(self.bandwidth, "bandwidth", above=0)
        check_number(self.lam, "lam", above=0, at_most=1)
        check_choice(self.init, "init", ("uniform",))
        check_integer(self.max_iter, "max_iter", 0)
        check_number(self.tol, "tol", at_least=0)
        check_number(self.qp_tol, "qp_tol", above=0)
        check_choice(self.assign_labels, "assign_labels", ("kmeans", "cluster_qr"))
        check_integer(self.n_init, "n_init", 1)

    def _check_data(self, X, *, reset, **options):
        def validate(X, **kwargs):
            return validate_data(self, X, reset=reset, **kwargs)

        return check_points(X, validate=validate, **options)

    def _resolve_bandwidth(self, X):
        if self.kernel != "rbf":
            return None
        if isinstance(self.bandwidth, str):
            return bandwidth_from_data(X, self.bandwidth)
        return float(self.bandwidth)

    def _kernel_matrix(self, X, bandwidth, n_threads):
        if self.kernel == "precomputed":
            return DenseKernel(check_kernel_matrix(X, "X"), n_threads)
        if self.kernel == "rbf":
            check_bandwidth(bandwidth, len(X))
            K = gaussian_gram(X, bandwidth, n_threads=n_threads)
        else:
            K = check_kernel_matrix(kernel_values(self.kernel, X, X), "kernel(X, X)")
        return DenseKernel(K, n_threads, points=X)

    def _make_votes(self, X):
        arguments = X, self.labels_, self.weights_
        if self.kernel == "rbf":
            return GaussianVotes(*arguments, self.bandwidth_, self.n_clusters)
        kernel = self.kernel if callable(self.kernel) else None
        return KernelVotes(kernel, *arguments, self.n_clusters)


def _print_round(result):
    status = "" if result.accepted else "  not lower: not accepted"
    print(
        f"[CDSK] round {result.number:2d}  merit {result.merit:.6g}  trace "
        f"{result.trace:.4g}  support {result.n_support}  QP gap {result.qp_gap:.1e}  "
        f"{result.seconds:.2f} s{status}"
    )


def _warn_of_stray_points(stray):
    count = int(stray.sum())
    if count:
        warnings.warn(
            f"{count} of {len(stray)} points have no similarity to any cluster and "
            "took the label of their nearest neighbour. A larger bandwidth connects "
            "them.",
            UserWarning,
            stacklevel=3,
        )
