# SPDX-License-Identifier: BSD-3-Clause
"""Regularized information maximization."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.utils.validation import check_is_fitted, validate_data

from cdsk._pairwise import gaussian_gram, gaussian_rows
from cdsk._utils import check_memory, limit_blas_threads, warn
from cdsk._validation import check_choice, check_integer, check_number, check_points
from cdsk.baselines._base import Baseline
from cdsk.baselines._gaussian import check_global_bandwidth, resolve_bandwidth
from cdsk.baselines._initialization import center_and_scale, run_kmeans

KERNELS = ("linear", "rbf")

# Largest residual of the pivoted Cholesky factorization; the diagonal of K is 1.
_CHOLESKY_TOLERANCE = 1e-6

# Relative decrease at which L-BFGS stops.
_TOLERANCE = 1e-7

# Iterations of the logistic regression that gives the initial weights.
_INIT_ITERATIONS = 50


class RIM(Baseline):
    """Regularized information maximization (RIM).

    A classifier p(k | x) = softmax(w_k'x + b_k) without labels. Maximizes the mutual
    information of points and clusters, less a penalty::

        H(mean_i p_i) - mean_i H(p_i) - regularization * mean_k |w_k|^2

    The first entropy favors clusters of equal size, the second one points far from the
    boundaries, and the penalty simple boundaries. Clusters may lose all their points,
    so that ``n_clusters`` is a maximum. With the Gaussian kernel w_k is a function in
    its space (kernel RIM).

    L-BFGS starts from a logistic regression on the labels of k-means. O(n d c) for each
    iteration; with the Gaussian kernel O(n r c) after O(n r^2), where r is the
    numerical rank of K (n for data with many features), and up to three n x n arrays.
    On one core 47 s for 2030 points of 2050 features in 203 clusters, 65 s with the
    Gaussian kernel.

    Parameters
    ----------
    n_clusters : int, default=8
        Largest number of clusters c.
    kernel : {"linear", "rbf"}, default="linear"
        Linear boundaries, or those of a Gaussian kernel.
    bandwidth : float or {"neighbor", "variance", "std", "median"}, default="median"
        Bandwidth of the Gaussian kernel, as in ``CDSK``.
    regularization : float, default=0.001
        Weight of the penalty, n_clusters times the paper's lambda. The paper sums over
        clusters, and no value of lambda suits both few and many clusters. Data are in
        units of their root mean square distance to their center.
    n_init : int, default=10
        Number of k-means initializations.
    max_iter : int, default=1000
        Maximum number of iterations.
    random_state : int, RandomState or None, default=None
        Seed of k-means.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each point, numbered in order of appearance.
    coef_ : ndarray of shape (n_features or n_pivots, n_clusters)
        Weights of the features, or of the kernels of ``pivots_``.
    intercept_ : ndarray of shape (n_clusters,)
        The b_k.
    pivots_ : ndarray of shape (n_pivots, n_features) or None
        Points whose Gaussian kernels span those of all points.
    objective_ : ndarray of shape (n_iter + 1,)
        Initial objective, and the objective after each iteration.
    n_iter_ : int
        Number of iterations.

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
        """Return the cluster of new points.

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
        """Return the probabilities p(k | x) of the clusters of new points.

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
        with limit_blas_threads():
            scores = self._scores(X.astype(np.float64, copy=False))
        return softmax(scores, axis=1)

    def _scores(self, X):
        if self.kernel == "linear":
            features = X - self._center
        else:
            features = gaussian_rows(X, self.pivots_, self._bandwidth)
        return features @ self.coef_ + self.intercept_

    def _check_parameters(self):
        check_choice(self.kernel, "kernel", KERNELS)
        check_global_bandwidth(self.bandwidth)
        check_number(self.regularization, "regularization", at_least=0)
        check_integer(self.n_init, "n_init", 1, 10**6)
        check_integer(self.max_iter, "max_iter", 1)

    def _cluster(self, X, rng):
        points, self._center, unit = center_and_scale(X)
        initial = run_kmeans(points, self.n_clusters, self.n_init, rng)
        if self.kernel == "linear":
            weights, intercept = self._train(points, initial)
            self.coef_, self.pivots_ = weights / unit, None
        else:
            features, pivots, triangle = self._factorize_kernel(X)
            weights, intercept = self._train(features, initial)
            self.pivots_ = X[pivots]
            self.coef_ = solve_triangular(triangle, weights, trans=1, lower=True)
        self.intercept_ = intercept
        labels = np.argmax(self._scores(X), axis=1)
        # in the order of labels_, so that predict agrees; empty clusters last
        present, first = np.unique(labels, return_index=True)
        empty = np.setdiff1d(np.arange(self.n_clusters), present)
        order = np.concatenate([present[np.argsort(first)], empty])
        self.coef_, self.intercept_ = self.coef_[:, order], intercept[order]
        return labels

    def _factorize_kernel(self, X):
        """Return features (n, r) with inner products K, pivots (r,) and their rows.

        By a pivoted Cholesky factorization, which stops when the residual is small.
        """
        n = len(X)
        self._bandwidth = resolve_bandwidth(X, self.bandwidth)
        check_memory(3 * 8 * n**2, "The kernel matrix", "Use fewer points.")
        factor, order, rank, _ = dpstrf(
            # the transpose, which LAPACK overwrites without a copy
            gaussian_gram(X, self._bandwidth).T,
            tol=_CHOLESKY_TOLERANCE,
            lower=True,
            overwrite_a=True,
        )
        factor, order = np.tril(factor)[:, :rank], order - 1
        features = np.empty((n, rank))
        features[order] = factor
        return features, order[:rank], factor[:rank]

    def _train(self, features, labels):
        """Maximize the objective from initial labels; return weights and intercepts."""
        shape = features.shape[1] + 1, self.n_clusters
        arguments = features, self.regularization / self.n_clusters

        initial = minimize(
            penalized,
            np.zeros(shape).ravel(),
            (*arguments, partial(cross_entropy, labels=labels)),
            method="L-BFGS-B",
            jac=True,
            options={"maxiter": _INIT_ITERATIONS},
        ).x
        history = [-penalized(initial, *arguments, minus_information)[0]]

        def record(intermediate_result):
            history.append(-float(intermediate_result.fun))

        result = minimize(
            penalized,
            initial,
            (*arguments, minus_information),
            method="L-BFGS-B",
            jac=True,
            callback=record,
            options={
                "maxiter": self.max_iter,
                "maxfun": 4 * self.max_iter + 100,
                "ftol": _TOLERANCE,
            },
        )
        if result.status == 1:
            warn(
                f"RIM did not converge in {result.nit} iterations: the largest "
                f"derivative is {np.abs(result.jac).max():.1e}. Increase max_iter.",
            )
        self.objective_, self.n_iter_ = np.array(history), max(result.nit, 1)
        weights = result.x.reshape(shape)
        return weights[:-1], weights[-1]


def penalized(parameters, features, regularization, loss):
    """Return the loss of all scores plus the penalty, and the gradient."""
    parameters = parameters.reshape(features.shape[1] + 1, -1)
    weights = parameters[:-1]
    value, by_score = loss(log_softmax(features @ weights + parameters[-1], axis=1))
    gradient = np.empty_like(parameters)
    gradient[:-1] = features.T @ by_score + 2.0 * regularization * weights
    gradient[-1] = by_score.sum(axis=0)
    return value + regularization * np.sum(weights**2), gradient.ravel()


def minus_information(log_p):
    """Return minus the mutual information, and its derivative by the scores (n, c)."""
    p = np.exp(log_p)
    mean = np.maximum(p.mean(axis=0), np.finfo(float).tiny)
    ratio = log_p - np.log(mean)
    own = np.sum(p * ratio, axis=1, keepdims=True)
    return -float(np.mean(own)), -p * (ratio - own) / len(p)


def cross_entropy(log_p, labels):
    """Return the mean of -log p(label), and its derivative by the scores (n, c)."""
    rows = np.arange(len(labels))
    derivative = np.exp(log_p)
    derivative[rows, labels] -= 1.0
    return -float(np.mean(log_p[rows, labels])), derivative / len(labels)
