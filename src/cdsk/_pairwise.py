# SPDX-License-Identifier: BSD-3-Clause
"""Kernel values between points, and bandwidths from data.

Gaussian kernels are computed by the package itself, others by
``sklearn.metrics.pairwise`` or by a callable. The theory requires values in [0, a].
Kernels with values in [-1, 1] (cosine, sigmoid) are mapped to [0, 1] by (k + 1) / 2,
for training and new points alike: the paper's remark on the range of a similarity.
Adding a constant keeps a kernel semi-definite. A range that depends on the data would
differ between fit and predict, so negative values of any other kernel are refused.

Rules for the bandwidth of the Gaussian kernel:

==========  ==========================================================================
"neighbor"  half the mean distance to the 7th nearest neighbor
"variance"  variance of the pairwise distances, as the paper prints it; depends on the
            unit of the data
"std"       their standard deviation, the scale-free reading of the same
"median"    their median
"local"     one bandwidth per point, a quarter of the distance to its 7th neighbor:
            K_ij = exp(-|x_i - x_j|^2 / (2 f^2 s_i s_j)) with f = 0.25
==========  ==========================================================================
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.spatial.distance import pdist
from sklearn.metrics.pairwise import pairwise_kernels

from cdsk import _kernel
from cdsk._neighbors import Neighbors
from cdsk._operators.base import Array
from cdsk._threads import resolve_n_threads
from cdsk._utils import check_memory, explain_memory_error
from cdsk._validation import (
    as_common_dtype,
    check_bandwidth,
    check_kernel_matrix,
    check_number,
    check_points,
    check_simplex_point,
)

_MAPPED_KERNELS = ("cosine", "sigmoid")

GLOBAL_FACTOR = 0.5
LOCAL_FACTOR = 0.25

# Statistics of pairwise distances use this many evenly spaced points at most: two
# million distances, a sampling error far below the precision of these rules.
_MAX_SAMPLE = 2000

_LESS_MEMORY = (
    "Use fewer points. Functions and CDSK need half as much for float32 data, and CDSK "
    'with one bandwidth and approximation="lowrank" needs no matrix.'
)


@explain_memory_error("computing the kernel matrix")
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
    digits, from norms and inner products of centered points; data far from the origin
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
    out = _check_out(out, (n, n), X.dtype, "The kernel matrix")
    _kernel.gaussian_gram(X, bandwidth, out, resolve_n_threads(n_threads))
    return out


@explain_memory_error("computing the kernel rows")
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
    A, B = as_common_dtype(check_points(A, "A"), check_points(B, "B"))
    if A.shape[1] != B.shape[1]:
        raise ValueError(
            "A and B must have the same number of features; got "
            f"{A.shape[1]} and {B.shape[1]}."
        )
    if bandwidth_b is None:
        if np.ndim(bandwidth) != 0:
            raise ValueError(
                "bandwidth_b must be given when bandwidth holds one value per row of "
                "A; got None."
            )
        bandwidth_b = bandwidth
    b_a = check_bandwidth(bandwidth, len(A))
    b_b = check_bandwidth(bandwidth_b, len(B), "bandwidth_b")
    out = _check_out(out, (len(A), len(B)), A.dtype, "The kernel rows")
    _kernel.gaussian_rows(A, B, b_a, b_b, out, resolve_n_threads(n_threads))
    return out


@explain_memory_error("computing the similarity matrix")
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
        Regularization in the estimator's units.
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
    out = _check_out(out, (n, n), K.dtype, "The similarity matrix")
    degrees = np.empty(n)
    _kernel.similarity(K, weights, n * lam, out, degrees, resolve_n_threads(n_threads))
    return out, degrees


def _check_out(
    out: NDArray[Any] | None, shape: tuple[int, int], dtype: np.dtype[Any], name: str
) -> NDArray[Any]:
    """Return ``out`` if it is fit to be filled, a new array if it is None."""
    if out is None:
        check_memory(shape[0] * shape[1] * dtype.itemsize, name, _LESS_MEMORY)
        return np.empty(shape, dtype)
    got = type(out).__name__
    if isinstance(out, np.ndarray):
        ordered, writeable = out.flags.c_contiguous, out.flags.writeable
        if (out.shape, out.dtype) == (shape, dtype) and ordered and writeable:
            return out
        got = f"shape {out.shape}, {out.dtype}, C-contiguous {ordered}"
        got += f", writeable {writeable}"
    expected = f"a writeable C-contiguous {dtype} array of shape {shape}"
    raise ValueError(f"out must be {expected}; got {got}.")


@dataclass(frozen=True)
class PairwiseKernel:
    """A kernel by name or callable, between the rows of A and those of B."""

    kernel: str | Callable[..., ArrayLike]
    parameters: Mapping[str, Any]

    @property
    def hint(self) -> str:
        """How to increase its values."""
        if self.kernel in ("laplacian", "chi2"):
            return "Decrease `gamma`"
        return "Use a kernel with larger values"

    def __call__(self, A: NDArray[Any], B: NDArray[Any]) -> NDArray[Any]:
        """Return the values of the kernel (len(A), len(B))."""
        if callable(self.kernel):
            returned = self.kernel(A, B, **self.parameters)
            if sparse.issparse(returned):
                raise ValueError(
                    "kernel(A, B) must return a dense array; got a sparse one. Convert "
                    "it by its method toarray."
                )
            values = np.asarray(returned)
        else:
            values = pairwise_kernels(A, B, metric=self.kernel, **self.parameters)
        if values.shape != (len(A), len(B)):
            raise ValueError(
                "kernel(A, B) must return a matrix with a value for every pair of "
                f"points, shape ({len(A)}, {len(B)}); got shape {values.shape}."
            )
        if self.kernel in _MAPPED_KERNELS:
            # rounding must not leave [0, 1]
            values = np.clip(0.5 * (values + 1.0), 0.0, 1.0)
        return values


def estimate_bandwidth(X: Any, rule: str, n_threads: int = 1) -> float | Array:
    """Return the bandwidth of X by one of the rules, (n_samples,) if "local"."""
    value: float | Array
    if rule == "neighbor":
        distances = Neighbors(X, n_threads=n_threads).kth_distances
        value = GLOBAL_FACTOR * float(np.mean(distances))
    elif rule == "local":
        value = LOCAL_FACTOR * Neighbors(X, n_threads=n_threads).scales
    else:
        distances = pdist(X[:: -(-len(X) // _MAX_SAMPLE)].astype(np.float64))
        if rule == "median":
            value = float(np.median(distances))
        else:
            spread = np.std(distances)
            # of equal distances it is rounding
            spread = 0.0 if spread <= 1e-12 * np.mean(distances) else spread
            value = float(spread**2 if rule == "variance" else spread)
    check_nonzero_bandwidth(value, X, rule)
    return value


def check_nonzero_bandwidth(value: float | Array, X: Any, rule: str) -> None:
    """Raise ValueError with the reason if a bandwidth is zero."""
    if np.all(np.asarray(value) > 0):
        return
    if not (X.max(axis=0) - X.min(axis=0)).max() > 0:
        reason = "all points are equal"
    elif rule in ("variance", "std"):
        reason = "all pairwise distances are equal"
    else:
        reason = "more than half of all pairs are duplicates"
    raise ValueError(
        f"bandwidth={rule!r} gives a bandwidth of zero for these data: {reason}. Use "
        "data that vary, or a bandwidth given as a number."
    )
