# SPDX-License-Identifier: BSD-3-Clause
"""Kernel density classification with weighted points (equations nonuniform-kde, -xy).

    p^(x, y) = tau_0 sum_{i: y_i = y} a_i K_tau(x - x_i),    predict = argmax_y p^(x, y)

The weights are given, uniform (the usual estimate), or learned: the quadratic program
of the clustering's weight step with the labels known, that is G_ij = 1(y_i = y_j). It
minimizes the similarity form of the loss plus ``lam`` times Omega.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from cdsk._operators.dense import DenseKernel
from cdsk._pairwise import LOCAL_FACTOR, estimate_bandwidth, gaussian_gram
from cdsk._qp import WeightProblem
from cdsk._threads import resolve_n_threads
from cdsk._utils import one_thread_if_forked, warn
from cdsk._validation import (
    BANDWIDTH_RULES,
    check_bandwidth,
    check_choice,
    check_number,
    check_points,
    check_simplex_point,
)
from cdsk._voting import GaussianVotes


class KernelDensityClassifier(ClassifierMixin, BaseEstimator):
    """Classifier by weighted Gaussian kernel densities of the classes.

    Parameters
    ----------
    weights : {"uniform", "learned"} or array-like of shape (n_samples,), \
default="uniform"
        Weights of the training points. "uniform": the usual kernel density estimate.
        "learned": by the quadratic program of ``CDSK`` with known labels. An array must
        be non-negative with sum 1.
    bandwidth : float or str, default="neighbor"
        Bandwidth of the Gaussian kernel, as for ``CDSK``.
    lam : float in (0, 1], default=0.3
        Regularization of learned weights: at least this fraction of the points has
        positive weight. 1 gives uniform weights.
    qp_tol : float, default=1e-4
        KKT gap at which learning stops, relative to the largest linear term.
    n_threads : int, default=None
        Number of threads of the compiled loops; None uses all processors.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    weights_ : ndarray of shape (n_samples,)
        Weights in use, sum 1.
    support_ : ndarray of shape (n_support,)
        Indices of the points with positive weight.
    bandwidth_ : float or ndarray of shape (n_samples,)
        Bandwidth(s) in use.
    qp_gap_ : float
        Relative KKT gap of learned weights, otherwise NaN.
    n_features_in_ : int
        Number of features seen by ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X had any.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from cdsk.theory import KernelDensityClassifier
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = KernelDensityClassifier(weights="learned").fit(X, y)
    >>> model.predict([[0.0, 1.0], [1.0, -0.5]])
    array([0, 1])
    >>> len(model.support_) < 200
    True
    """

    classes_: NDArray[Any]
    weights_: NDArray[np.float64]
    support_: NDArray[np.int64]
    bandwidth_: float | NDArray[np.float64]
    qp_gap_: float
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]

    def __init__(
        self,
        *,
        weights: str | ArrayLike = "uniform",
        bandwidth: float | str = "neighbor",
        lam: float = 0.3,
        qp_tol: float = 1e-4,
        n_threads: int | None = None,
    ) -> None:
        self.weights = weights
        self.bandwidth = bandwidth
        self.lam = lam
        self.qp_tol = qp_tol
        self.n_threads = n_threads

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Store the points and compute their weights.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data.
        y : array-like of shape (n_samples,)
            Class of each point, at least two classes.

        Returns
        -------
        self : KernelDensityClassifier
        """
        X, y = self._check_training_data(X, y)
        self._check_parameters()
        classes, labels = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError("y must have at least 2 classes; got 1 class.")
        n_threads = resolve_n_threads(self.n_threads)
        if isinstance(self.bandwidth, str):
            bandwidth = estimate_bandwidth(X, self.bandwidth, n_threads)
        else:
            bandwidth = float(self.bandwidth)
        check_bandwidth(bandwidth, len(X))

        with one_thread_if_forked():
            weights, gap = self._compute_weights(
                X, labels, len(classes), bandwidth, n_threads
            )
        empty = np.bincount(labels, weights=weights) == 0
        if empty.any():
            warn(
                f"{int(empty.sum())} of {len(empty)} classes have no weight and are "
                f"never predicted, class {classes[empty][0]} first. Increase `lam` to "
                "spread the weights.",
                UserWarning,
            )
        self.classes_ = classes
        self.weights_ = weights
        self.support_ = np.flatnonzero(weights)
        self.bandwidth_ = bandwidth
        self.qp_gap_ = gap
        factor = LOCAL_FACTOR if np.ndim(bandwidth) else None
        self._votes = GaussianVotes(
            X, labels, weights, bandwidth, factor, len(classes), n_threads
        )
        return self

    def predict_joint_log_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the logarithm of the estimated joint density of point and class.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features)
            Points.

        Returns
        -------
        log_density : ndarray of shape (n_new, n_classes)
            ``log p^(x, y)``; -inf for a class without weight. For local bandwidths the
            logarithm of the votes, whose integral is unknown.
        """
        check_is_fitted(self, "classes_")

        def validate(X, **options):
            return validate_data(self, X, reset=False, **options)

        X = check_points(X, validate=validate)
        with one_thread_if_forked():
            votes = self._votes.log_votes(X, resolve_n_threads(self.n_threads))
        return votes + self._votes.log_normalizer(self.n_features_in_)

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the logarithms of the densities that ``predict`` compares.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features)
            Points.

        Returns
        -------
        decision : ndarray of shape (n_new,) or (n_new, n_classes)
            Two classes: ``log p^(x, second) - log p^(x, first)``, which has the sign of
            the paper's decision function of the second class against the first but
            does not underflow. More classes: ``predict_joint_log_proba``.
        """
        joint = self.predict_joint_log_proba(X)
        return joint[:, 1] - joint[:, 0] if joint.shape[1] == 2 else joint

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class with the largest density.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features)
            Points.

        Returns
        -------
        classes : ndarray of shape (n_new,)
        """
        joint = self.predict_joint_log_proba(X)
        return self.classes_[np.argmax(joint, axis=1)]

    def predict_log_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the logarithm of ``predict_proba``.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features)
            Points.

        Returns
        -------
        log_proba : ndarray of shape (n_new, n_classes)
        """
        joint = self.predict_joint_log_proba(X)
        # relative to the largest: far from the data all logarithms are huge
        joint = joint - joint.max(axis=1, keepdims=True)
        return joint - logsumexp(joint, axis=1, keepdims=True)

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the estimated probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features)
            Points.

        Returns
        -------
        proba : ndarray of shape (n_new, n_classes)
            ``p^(x, y) / p^(x)``.
        """
        return np.exp(self.predict_log_proba(X))

    def score_samples(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the logarithm of the weighted kernel density of all classes.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features)
            Points.

        Returns
        -------
        log_density : ndarray of shape (n_new,)
            ``log p^(x)``; p^ integrates to 1 for a global bandwidth.
        """
        return logsumexp(self.predict_joint_log_proba(X), axis=1)

    def _check_training_data(self, X, y):
        def validate(X, **options):
            nonlocal y
            X, y = validate_data(self, X, y, **options)
            return X

        X = check_points(X, validate=validate, ensure_min_samples=2)
        check_classification_targets(y)
        return X, y

    def _check_parameters(self):
        if isinstance(self.weights, str):
            check_choice(self.weights, "weights", ("uniform", "learned"))
        if isinstance(self.bandwidth, str):
            check_choice(self.bandwidth, "bandwidth", BANDWIDTH_RULES)
        else:
            check_number(self.bandwidth, "bandwidth", above=0)
        check_number(self.lam, "lam", above=0, at_most=1)
        check_number(self.qp_tol, "qp_tol", above=0)

    def _compute_weights(self, X, labels, n_classes, bandwidth, n_threads):
        """Return weights (n,), and the relative KKT gap of learned ones."""
        n = len(X)
        if not isinstance(self.weights, str):
            return check_simplex_point(self.weights, n, 1.0, "weights"), np.nan
        uniform = np.full(n, 1.0 / n)
        if self.weights == "uniform":
            return uniform, np.nan
        K = gaussian_gram(X, bandwidth, n_threads=n_threads)
        membership = np.zeros((n_classes, n))
        membership[labels, np.arange(n)] = 1.0
        problem = WeightProblem(DenseKernel(K, n_threads), membership, n * self.lam)
        solution = problem.solve(uniform, self.qp_tol)
        return solution.x, solution.gap
