# SPDX-License-Identifier: BSD-3-Clause
"""Regularised information maximisation."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.utils.validation import check_is_fitted, validate_data

from cdsk._kernels.gaussian import gaussian_gram, gaussian_rows
from cdsk._runtime import check_memory, one_blas_thread
from cdsk._validation import check_choice, check_integer, check_number, check_points
from cdsk._warn import warn
from cdsk.baselines._base import Baseline
from cdsk.baselines._gaussian import check_one_bandwidth, one_bandwidth
from cdsk.baselines._start import in_own_unit, kmeans_labels

KERNELS = ("linear", "rbf")

# What a factor may leave of the diagonal of K, which is 1.
_REST = 1e-6

# Relative gain of a step below which the search ends.
_TOLERANCE = 1e-7

# Steps of the logistic regression from whose weights the search starts.
_STEPS_OF_START = 50


class RIM(Baseline):
    """Regularised information maximisation (RIM).

    A classifier p(k | x) = softmax(w_k'x + b_k) without labels. Maximises the mutual
    information of points and clusters, less a penalty::

        H(mean_i p_i) - mean_i H(p_i) - regularization * mean_k |w_k|^2

    The first entropy wants clusters of equal size, the second points that lie far from
    the boundaries, the penalty simple boundaries: clusters that do not pay for
    themselves lose all their points, so that ``n_clusters`` is the most there can be.
    With the Gaussian kernel w_k is a function of its space (kernel RIM).

    L-BFGS from a logistic regression on the labels of k-means. O(n d c) for each step;
    with the Gaussian kernel O(n r c) after O(n r^2), where r is the numerical rank of
    K, n for data of many features, and up to three n x n arrays. On one core 47 s for
    2030 points of 2050 features in 203 clusters, 65 s with the Gaussian kernel.

    Parameters
    ----------
    n_clusters : int, default=8
        Largest number of clusters c.
    kernel : {"linear", "rbf"}, default="linear"
        Linear boundaries, or those of a Gaussian kernel.
    bandwidth : float or {"neighbour", "variance", "std", "median"}, default="median"
        Bandwidth of the Gaussian kernel, as in ``CDSK``.
    regularization : float, default=0.001
        Weight of the penalty, n_clusters times the paper's lambda: it sums over
        clusters, and one value would not serve few and many. Data are in units of their
        root mean square distance to their centre.
    n_init : int, default=10
        Starts of k-means.
    max_iter : int, default=1000
        Most steps.
    random_state : int, RandomState or None, default=None
        Seed of k-means.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Labels.
    coef_ : ndarray of shape (n_features or n_pivots, n_clusters)
        Weights of the features, or of the kernel with ``pivots_``.
    intercept_ : ndarray of shape (n_clusters,)
        The b_k.
    pivots_ : ndarray of shape (n_pivots, n_features) or None
        Points of the Gaussian kernel that span all others.
    objective_ : ndarray of shape (n_steps + 1,)
        The objective at the start and after each step.
    n_iter_ : int
        Number of steps.

    References
    ----------
    R. Gomes, A. Krause and P. Perona, "Discriminative clustering by regularized
    information maximization", NIPS 2010.

    Examples
    --------
    >>> from cdsk.baselines import RIM
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> model = RIM(2, random_state=0).fit(X)
    >>> model.labels_
    array([0, 0, 0, 1, 1, 1])
    >>> model.predict([[4.0]])
    array([1])
    """

    pivots_: Any

    def __init__(
        self,
        n_clusters=8,
        *,
        kernel="linear",
        bandwidth="median",
        regularization=0.001,
        n_init=10,
        max_iter=1000,
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.regularization = regularization
        self.n_init = n_init
        self.max_iter = max_iter
        self.random_state = random_state

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Clusters of new points.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        return np.argmax(self.predict_proba(X), axis=1)

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probabilities p(k | x) of the clusters of new points.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_clusters)
        """
        check_is_fitted(self)
        X = check_points(X, validate=partial(validate_data, self, reset=False))
        return softmax(self._scores(X.astype(np.float64, copy=False)), axis=1)

    def _scores(self, X):
        if self.kernel == "linear":
            features = X - self._centre
        else:
            features = gaussian_rows(X, self.pivots_, self._bandwidth)
        with one_blas_thread():
            return features @ self.coef_ + self.intercept_

    def _check_parameters(self):
        check_choice(self.kernel, "kernel", KERNELS)
        check_one_bandwidth(self.bandwidth)
        check_number(self.regularization, "regularization", at_least=0)
        check_integer(self.n_init, "n_init", 1, 10**6)
        check_integer(self.max_iter, "max_iter", 1)

    def _labels_of(self, X, rng):
        with one_blas_thread():
            points, self._centre, unit = in_own_unit(X)
            start = kmeans_labels(points, self.n_clusters, self.n_init, rng)
            if self.kernel == "linear":
                weights, intercept = self._trained(points, start)
                self.coef_, self.pivots_ = weights / unit, None
            else:
                features, pivots, triangle = self._factor(X)
                weights, intercept = self._trained(features, start)
                self.pivots_ = X[pivots]
                self.coef_ = solve_triangular(triangle, weights, trans=1, lower=True)
            self.intercept_ = intercept
            labels = np.argmax(self._scores(X), axis=1)
            # so that predict has the numbers of labels_; clusters without points last
            found, first = np.unique(labels, return_index=True)
            empty = np.setdiff1d(np.arange(self.n_clusters), found)
            order = np.concatenate([found[np.argsort(first)], empty])
            self.coef_, self.intercept_ = self.coef_[:, order], intercept[order]
        return labels

    def _factor(self, X):
        """Features (n, r) whose inner products are K, and those of the r pivots.

        A Cholesky factor with pivots, which ends where little of K is left.
        """
        n = len(X)
        self._bandwidth = one_bandwidth(X, self.bandwidth)
        check_memory(3 * 8 * n**2, "The kernel matrix", "Use fewer points.")
        factor, order, rank, _ = dpstrf(
            # of the transpose, which LAPACK takes in place
            gaussian_gram(X, self._bandwidth).T,
            tol=_REST,
            lower=True,
            overwrite_a=True,
        )
        factor, order = np.tril(factor)[:, :rank], order - 1
        features = np.empty((n, rank))
        features[order] = factor
        return features, order[:rank], factor[:rank]

    def _trained(self, features, start):
        """Weights and intercepts at a maximum of the objective; start: labels."""
        shape = features.shape[1] + 1, self.n_clusters
        arguments = features, self.regularization / self.n_clusters
        options = {"method": "L-BFGS-B", "jac": True}

        given = partial(cross_entropy, labels=start)
        steps = {"maxiter": _STEPS_OF_START}
        begin = minimize(
            penalised,
            np.zeros(shape).ravel(),
            (*arguments, given),
            **options,
            options=steps,
        ).x
        history = [-penalised(begin, *arguments, minus_information)[0]]

        def record(intermediate_result):
            history.append(-float(intermediate_result.fun))

        steps = {
            "maxiter": self.max_iter,
            "maxfun": 4 * self.max_iter + 100,
            "ftol": _TOLERANCE,
        }
        end = minimize(
            penalised,
            begin,
            (*arguments, minus_information),
            **options,
            callback=record,
            options=steps,
        )
        if end.status == 1:
            warn(
                f"RIM stopped after {end.nit} steps with a largest derivative of "
                f"{np.abs(end.jac).max():.1e}. Expected a larger max_iter.",
            )
        self.objective_, self.n_iter_ = np.array(history), max(end.nit, 1)
        weights = end.x.reshape(shape)
        return weights[:-1], weights[-1]


def penalised(parameters, features, regularization, loss):
    """Loss of the scores of all points plus the penalty, and its gradient."""
    parameters = parameters.reshape(features.shape[1] + 1, -1)
    weights = parameters[:-1]
    value, by_score = loss(log_softmax(features @ weights + parameters[-1], axis=1))
    gradient = np.empty_like(parameters)
    gradient[:-1] = features.T @ by_score + 2.0 * regularization * weights
    gradient[-1] = by_score.sum(axis=0)
    return value + regularization * np.sum(weights**2), gradient.ravel()


def minus_information(log_p):
    """Minus the mutual information of points and clusters; its derivative by scores."""
    p = np.exp(log_p)
    mean = np.maximum(p.mean(axis=0), np.finfo(float).tiny)
    ratio = log_p - np.log(mean)
    own = np.sum(p * ratio, axis=1, keepdims=True)
    return -float(np.mean(own)), -p * (ratio - own) / len(p)


def cross_entropy(log_p, labels):
    """Mean of -log p(label); its derivative by scores."""
    rows = np.arange(len(labels))
    derivative = np.exp(log_p)
    derivative[rows, labels] -= 1.0
    return -float(np.mean(log_p[rows, labels])), derivative / len(labels)
