# SPDX-License-Identifier: BSD-3-Clause
"""Functions on kernel matrices for users (tests/test_kernel.py)."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cdsk import _kernel
from cdsk._runtime import check_memory, said_in_words
from cdsk._threads import resolve_n_threads
from cdsk._validation import (
    check_bandwidth,
    check_kernel_matrix,
    check_number,
    check_points,
    check_simplex_point,
    in_one_dtype,
)

_LESS_MEMORY = (
    "Use fewer points. Functions and CDSK need half as much for float32 data, and CDSK "
    'with one bandwidth and approximation="lowrank" needs no matrix.'
)


@said_in_words("The kernel matrix")
def gaussian_gram(
    X: ArrayLike,
    bandwidth: ArrayLike,
    *,
    n_threads: int | None = None,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Gaussian kernel matrix of the rows of X.

    ``K_ij = exp(-|x_i - x_j|^2 / (2 b_i b_j))``, exactly symmetric with unit diagonal.
    Distances are computed in double precision, from differences or, where that loses no
    digits, from norms and inner products of centred points; data far from the origin
    keep their digits. Values below the smallest normal number of the dtype are 0.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Data. float32 and float64 are kept, anything else becomes float64.
    bandwidth : float or array-like of shape (n_samples,)
        One bandwidth b, or one per point (local scaling).
    n_threads : int, default=None
        Number of threads; None means all. The result does not depend on it.
    out : ndarray of shape (n_samples, n_samples), default=None
        C-contiguous array of the dtype of X to be filled; None makes a new one.

    Returns
    -------
    K : ndarray of shape (n_samples, n_samples)

    Examples
    --------
    >>> import numpy as np
    >>> from cdsk import gaussian_gram
    >>> gaussian_gram(np.array([[0.0], [1.0]]), 1.0).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """
    X = check_points(X)
    n = X.shape[0]
    bandwidth = check_bandwidth(bandwidth, n)
    out = _output(out, (n, n), X.dtype, "The kernel matrix")
    _kernel.gaussian_gram(X, bandwidth, out, resolve_n_threads(n_threads))
    return out


@said_in_words("The kernel rows")
def gaussian_rows(
    A: ArrayLike,
    B: ArrayLike,
    bandwidth: ArrayLike,
    bandwidth_b: ArrayLike | None = None,
    *,
    n_threads: int | None = None,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Gaussian kernel between the rows of A and the rows of B.

    Computed as by ``gaussian_gram``. A row of the result depends on that row of A and
    on B only, to the last bit, as long as no bandwidth of A is smaller than one of B by
    more than a factor of 4096.

    Parameters
    ----------
    A : array-like of shape (n_a, n_features)
        Points, one per row of the result.
    B : array-like of shape (n_b, n_features)
        Points, one per column of the result.
    bandwidth : float or array-like of shape (n_a,)
        One bandwidth, or one per row of A.
    bandwidth_b : float or array-like of shape (n_b,), default=None
        Bandwidths of B where they differ; None means ``bandwidth``, which must then be
        one number.
    n_threads : int, default=None
        Number of threads; None means all. The result does not depend on it.
    out : ndarray of shape (n_a, n_b), default=None
        C-contiguous array of the dtype of A to be filled; None makes a new one.

    Returns
    -------
    K : ndarray of shape (n_a, n_b)
        float32 if both A and B are, else float64.
    """
    A, B = in_one_dtype(check_points(A, "A"), check_points(B, "B"))
    if A.shape[1] != B.shape[1]:
        raise ValueError(
            "A and B must have the same number of features; got "
            f"{A.shape[1]} and {B.shape[1]}."
        )
    if bandwidth_b is None and np.ndim(bandwidth) != 0:
        raise ValueError(
            "bandwidth_b must be given when bandwidth holds one value per row of A; "
            "got None."
        )
    if bandwidth_b is None:
        bandwidth_b = bandwidth
    bandwidth_a = check_bandwidth(bandwidth, len(A))
    bandwidth_b = check_bandwidth(bandwidth_b, len(B), "bandwidth_b")
    out = _output(out, (len(A), len(B)), A.dtype, "The kernel rows")
    _kernel.gaussian_rows(
        A, B, bandwidth_a, bandwidth_b, out, resolve_n_threads(n_threads)
    )
    return out


@said_in_words("The similarity matrix")
def similarity_matrix(
    K: ArrayLike,
    weights: ArrayLike,
    lam: float,
    *,
    n_threads: int | None = None,
    out: NDArray[Any] | None = None,
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Discriminative similarity and its degrees.

    ``S_ij = 2 (a_i + a_j - L a_i a_j) K_ij`` with the paper's ``L = n * lam``.

    Parameters
    ----------
    K : array-like of shape (n_samples, n_samples)
        Symmetric non-negative kernel matrix.
    weights : array-like of shape (n_samples,)
        Kernel weights a with ``0 <= a_i <= 1 / (n * lam)`` and sum 1.
    lam : float in (0, 1]
        Regularisation in the estimator's units.
    n_threads : int, default=None
        Number of threads; None means all. The result does not depend on it.
    out : ndarray of shape (n_samples, n_samples), default=None
        C-contiguous array of the dtype of K to be filled, K itself included.

    Returns
    -------
    S : ndarray of shape (n_samples, n_samples)
        Similarity, diagonal as the formula says.
    degrees : ndarray of shape (n_samples,)
        Row sums of S without the diagonal, as the spectral step uses them.
    """
    K = check_kernel_matrix(K)
    lam = check_number(lam, "lam", above=0, at_most=1)
    n = len(K)
    weights = check_simplex_point(weights, n, 1.0 / (n * lam), "weights")
    out = _output(out, (n, n), K.dtype, "The similarity matrix")
    degrees = np.empty(n)
    _kernel.similarity(K, weights, n * lam, out, degrees, resolve_n_threads(n_threads))
    return out, degrees


def _output(out, shape, dtype, what):
    if out is None:
        check_memory(shape[0] * shape[1] * dtype.itemsize, what, _LESS_MEMORY)
        return np.empty(shape, dtype)
    received = type(out).__name__
    if isinstance(out, np.ndarray):
        ordered, writeable = out.flags.c_contiguous, out.flags.writeable
        if (out.shape, out.dtype) == (shape, dtype) and ordered and writeable:
            return out
        received = (
            f"shape {out.shape}, {out.dtype}, C-contiguous {ordered}, "
            f"writeable {writeable}"
        )
    raise ValueError(
        f"out must be a writeable C-contiguous {dtype} array of shape {shape}; got "
        f"{received}."
    )
