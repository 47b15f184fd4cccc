# SPDX-License-Identifier: BSD-3-Clause
"""The integrated squared error of kernel density classification (theorem ise).

Two classes, signs s_i = 1 for the first and -1 for the second, the decision function
r^(x) = p^(x, 1) - p^(x, 2) = tau_0 sum_i s_i a_i K_tau(x - x_i) and the true r. Then

    ISE = int (r^ - r)^2 = int r^2 - 2 int r^ r + int r^^2

where the last term is known and the middle one estimated from the data:

    int r^^2 = tau_1 K(a),      K(a) = (s o a)' K_{sqrt(2) tau} (s o a)
    - 2 int r^ r ~ tau_0 / n ISE^,     ISE^ = - 2 s' K_tau (s o a)
    tau_0 = (2 pi)^(-d/2) tau^(-d),    tau_1 = (2 pi)^(-d/2) (sqrt(2) tau)^(-d)

These are the sums of equations hat-ise and reg-ise, rearranged.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cdsk._pairwise import gaussian_gram, similarity_matrix
from cdsk._validation import check_number, check_points, check_simplex_point
from cdsk.theory._labels import check_labels


@dataclass(frozen=True)
class ISEBound:
    """Terms of the bound on the integrated squared error.

    Attributes
    ----------
    empirical : float
        The paper's ISE^.
    regularizer : float
        The paper's K(a); ``tau_1 * regularizer`` is the integral of r^^2.
    tau_0, tau_1 : float
        Inverse integrals of the kernels of bandwidths tau and sqrt(2) tau.
    epsilon : float
        Allowed deviation of each sum: ``sqrt(log(n / delta) / (2 (n - 1)))``.
    remainder : float
        ``4 tau_0 (1 / n + epsilon)``.
    total : float
        ``tau_0 / n * empirical + tau_1 * regularizer + remainder``. With probability
        ``1 - delta`` the ISE is at most this plus the integral of the true r^2.
    delta : float
        As given.
    """

    empirical: float
    regularizer: float
    tau_0: float
    tau_1: float
    epsilon: float
    remainder: float
    total: float
    delta: float


def ise_bound(
    X: ArrayLike,
    labels: ArrayLike,
    weights: ArrayLike,
    bandwidth: float,
    *,
    delta: float = 0.05,
) -> ISEBound:
    """Return a bound on the integrated squared error of a density classifier.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Data, at least two points.
    labels : array-like of shape (n_samples,)
        Class of each point, two classes.
    weights : array-like of shape (n_samples,)
        Weights a of the points: non-negative, sum 1. The bound holds uniformly over all
        weights, so they may be learned from the same data.
    bandwidth : float
        Bandwidth tau of the Gaussian kernel, chosen without these data.
    delta : float in (0, 1], default=0.05
        Probability with which the bound may fail.

    Returns
    -------
    bound : ISEBound

    Examples
    --------
    >>> import numpy as np
    >>> from cdsk.theory import ise_bound
    >>> bound = ise_bound([[0.0], [99.0]], [0, 1], [0.5, 0.5], 1.0)
    >>> bound.empirical, bound.regularizer
    (-2.0, 0.5)
    """
    X = check_points(X, ensure_min_samples=2).astype(np.float64, copy=False)
    n, d = X.shape
    _, labels = check_labels(labels, n, 2)
    weights = check_simplex_point(weights, n, 1.0, "weights")
    bandwidth = check_number(bandwidth, "bandwidth", above=0)
    delta = check_number(delta, "delta", above=0, at_most=1)
    tau_0, tau_1 = (_kernel_height(scale * bandwidth, d) for scale in (1, np.sqrt(2)))

    signs = 1.0 - 2.0 * labels
    signed = signs * weights
    K = gaussian_gram(X, bandwidth)
    empirical = -2.0 * float(signs @ (K @ signed))
    np.sqrt(K, out=K)  # K_{sqrt(2) tau}
    regularizer = float(signed @ (K @ signed))

    epsilon = float(np.sqrt(np.log(n / delta) / (2.0 * (n - 1))))
    remainder = 4.0 * tau_0 * (1.0 / n + epsilon)
    return ISEBound(
        empirical=empirical,
        regularizer=regularizer,
        tau_0=tau_0,
        tau_1=tau_1,
        epsilon=epsilon,
        remainder=remainder,
        total=tau_0 / n * empirical + tau_1 * regularizer + remainder,
        delta=delta,
    )


def ise_similarity(K: ArrayLike, weights: ArrayLike, lam: float) -> NDArray[np.float64]:
    """Return the discriminative similarity that the ISE bound induces.

    ``4 (a_i + a_j - L a_i a_j) K_ij`` with the paper's ``L = n * lam``: twice the
    similarity of ``cdsk.similarity_matrix``.

    Parameters
    ----------
    K : array-like of shape (n_samples, n_samples)
        Symmetric non-negative kernel matrix.
    weights : array-like of shape (n_samples,)
        Kernel weights a with ``0 <= a_i <= 1 / (n * lam)`` and sum 1.
    lam : float in (0, 1]
        Regularization in the estimator's units.

    Returns
    -------
    S : ndarray of shape (n_samples, n_samples)

    Examples
    --------
    >>> import numpy as np
    >>> from cdsk.theory import ise_similarity
    >>> ise_similarity(np.eye(2), [0.5, 0.5], 0.5)
    array([[3., 0.],
           [0., 3.]])
    """
    S, _ = similarity_matrix(K, weights, lam)
    S *= 2
    return S


def _kernel_height(bandwidth, d):
    """Return the maximum of the Gaussian density in d dimensions."""
    with np.errstate(over="ignore", under="ignore"):
        height = float(np.exp(-d * np.log(np.sqrt(2 * np.pi) * bandwidth)))
    if not 0 < height < np.inf:
        raise ValueError(
            f"The density of a kernel of bandwidth {bandwidth:.6g} in {d} dimensions "
            "is beyond the range of floating-point numbers. Rescale the data so that "
            "the bandwidth is near 0.4."
        )
    return height
