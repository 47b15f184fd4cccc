# SPDX-License-Identifier: BSD-3-Clause
"""First weights: uniform, given, or the paper's sparse start (tests/test_start.py).

The sparse start approximates every point by one combination of all the others:

    F(a) = sum_i |x_i - sum_{j != i} x_j a_j|^2 + tau |a|_0,     a >= 0.

With the Gram matrix A = X X' and s = diag A the sum of squares is

    a'[(n - 2) A + diag s] a + 2 a'(s - A 1) + sum(s),

so A is needed only as an operator. F is minimized by iterative hard thresholding: a
gradient step of length 1 / L, then entries up to sqrt(2 tau / L), the smallest that pay
their cost, are set to 0. L is doubled until F does not increase. Such steps are short:
L belongs to the mean of the points, and what distinguishes them moves a thousand times
slower. So a step that keeps the support is followed by one to the minimum of the sum of
squares over the support, a convex quadratic function, as far as entries stay
non-negative. The limit is a point where neither kind of step helps; the problem itself
is NP-hard.

The weights of a fit sum to 1 and are at most 1 / (n lam), so the solution is scaled to
sum 1 and projected on such points. If fewer than n lam points have weight, the others
share the rest equally.
"""

from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cdsk._eigensolvers import largest_eigenvalue
from cdsk._operators.base import Array, Kernel, Product
from cdsk._preprocessing import Points
from cdsk._products import combine, inner
from cdsk._threads import resolve_n_threads
from cdsk._utils import explain_memory_error, limit_blas_threads, warn
from cdsk._validation import (
    check_integer,
    check_number,
    check_points,
    check_simplex_point,
)

# The paper's cost of a non-zero entry.
TAU = 0.1

# Relative decrease of F by both kinds of steps at which the iteration stops.
_TOLERANCE = 1e-7

# Conjugate gradients on the support stop at this fraction of the first residual, or
# after so many products. For points in d dimensions d + 1 suffice.
_CG_TOLERANCE, _CG_STEPS = 1e-9, 200

# Largest curvature of the sum of squares whose sums over the points do not overflow.
_MAX_CURVATURE = 1e300


@dataclass(frozen=True)
class SparseStart:
    """Result of ``sparse_start``.

    Attributes
    ----------
    coefficients : ndarray of shape (n_samples,)
        The sparse combination, non-negative.
    weights : ndarray of shape (n_samples,)
        Coefficients scaled to sum 1 (uniform if all of them are 0), and the nearest
        such weights within the bound if there is one.
    objective : ndarray of shape (n_iter + 1,)
        Objective of the start and after every iteration; never increases.
    n_iter : int
        Number of iterations.
    converged : bool
        False if ``max_iter`` ended the iteration.
    """

    coefficients: NDArray[np.float64]
    weights: NDArray[np.float64]
    objective: NDArray[np.float64]
    n_iter: int
    converged: bool


def sparse_start(
    X: ArrayLike,
    *,
    tau: float = TAU,
    lam: float | None = None,
    max_iter: int = 1000,
    n_threads: int | None = None,
) -> SparseStart:
    """Compute sparse weights of the points, the paper's initialization.

    Minimizes ``sum_i |x_i - sum_{j != i} x_j a_j|^2 + tau |a|_0`` over ``a >= 0`` by
    iterative hard thresholding from uniform weights, with steps to the minimum on the
    support whenever that does not change.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Data.
    tau : float, default=0.1
        Cost of a non-zero entry, in the squared unit of the data.
    lam : float in (0, 1], default=None
        Regularization of the fit the weights are for, which bounds them by
        ``1 / (n_samples * lam)``. None leaves them as they are.
    max_iter : int, default=1000
        Maximum number of iterations; a ``ConvergenceWarning`` tells if it was reached.
    n_threads : int, default=None
        Number of threads; None means all. The result does not depend on it.

    Returns
    -------
    result : SparseStart

    Examples
    --------
    >>> import numpy as np
    >>> from cdsk import sparse_start
    >>> sparse_start(np.array([[1.0], [1.0], [1.0]]), tau=10.0).weights
    array([0.33333333, 0.33333333, 0.33333333])
    """
    X = check_points(X)
    check_number(tau, "tau", at_least=0)
    check_integer(max_iter, "max_iter", 0)
    if lam is not None:
        check_number(lam, "lam", above=0, at_most=1)
    upper = 1.0 if lam is None else max_weight(len(X), lam)
    with limit_blas_threads(), explain_memory_error("computing the sparse start"):
        F = SparseObjective.from_points(X, tau, resolve_n_threads(n_threads))
        return threshold_iteratively(F, upper, max_iter)


def first_weights(
    kernel: Kernel, lam: float, init: str | ArrayLike, points: Points | None = None
) -> Array:
    """Return the first weights of a fit, feasible for lam.

    ``init`` is a name, or the weights of all rows of ``points``; where several rows are
    one point, the nearest feasible weights.
    """
    upper = max_weight(kernel.n, lam)
    if not isinstance(init, str):
        assert points is not None
        n = len(points.inverse)
        weights = check_simplex_point(init, n, max_weight(n, lam), "init")
        weights = weights[points.first_row]
        if kernel.n == n:
            return weights
        weights = weights / max(np.sum(weights), np.finfo(float).tiny)
        return project_to_simplex(weights, upper)
    if init == "uniform":
        return np.full(kernel.n, 1.0 / kernel.n)
    if kernel.points is None:
        F = SparseObjective.from_kernel(kernel, TAU)
    else:
        F = SparseObjective.from_points(kernel.points, TAU, kernel.n_threads)
    return threshold_iteratively(F, upper).weights


def max_weight(n: int, lam: float) -> float:
    """Return the upper bound of the weights of n points."""
    return min(1.0 / (n * lam), 1.0)


@dataclass
class SparseObjective:
    """F of a Gram matrix A, known by products with vectors (m, n) and its diagonal."""

    product: Product
    diagonal: Array
    tau: float
    n_threads: int

    def __post_init__(self) -> None:
        ones = np.ones((1, len(self.diagonal)))
        self.linear = 2.0 * (self.diagonal - self.product(ones)[0])

    @classmethod
    def from_points(
        cls, X: NDArray[np.floating], tau: float, n_threads: int
    ) -> "SparseObjective":
        """Return F of A = X X'."""
        features = np.ascontiguousarray(X.T, dtype=np.float64)

        def product(vectors: Array) -> Array:
            return combine(inner(features, vectors, n_threads), features, n_threads)

        largest = float(np.abs(features).max())
        limit = np.sqrt(_MAX_CURVATURE / features.size) / features.shape[1]
        if largest > limit:
            raise ValueError(
                "X must hold numbers whose squares can be summed for the sparse start, "
                f"of magnitude {limit:.1e} at most; got {largest:.1e}."
            )
        return cls(product, np.einsum("dn,dn->n", features, features), tau, n_threads)

    @classmethod
    def from_kernel(cls, kernel: Kernel, tau: float) -> "SparseObjective":
        """Return F of A = K, the Gram matrix in the feature space of the kernel."""

        def product(vectors: Array) -> Array:
            return kernel.product(vectors) + kernel.diagonal * vectors

        return cls(product, kernel.diagonal, tau, kernel.n_threads)

    def image(self, a: Array) -> Array:
        """Return [(n - 2) A + diag s] a."""
        product = self.product(a[np.newaxis])[0]
        return np.asarray((len(a) - 2) * product + self.diagonal * a)

    def value(self, a: Array, image: Array) -> float:
        """Return F(a)."""
        squares = np.sum(a * (image + self.linear)) + np.sum(self.diagonal)
        return float(squares + self.tau * np.count_nonzero(a))

    def curvature(self) -> float:
        """Return about the largest second derivative of the sum of squares."""
        s, n = self.diagonal, len(self.diagonal)
        largest = largest_eigenvalue(self.product, float(np.sum(s)), n, self.n_threads)
        return float(2.0 * ((n - 2) * largest + s.max()))

    def step_on_support(self, a: Array, image: Array) -> Array:
        """Return the step from ``a`` to the least sum of squares on its support.

        By conjugate gradients, which lower it with every product. The preconditioner
        diag(s) turns the matrix of points in d dimensions into the identity plus one of
        rank d.
        """
        support = a > 0
        inverse = np.zeros_like(a)
        np.divide(1.0, self.diagonal, out=inverse, where=support & (self.diagonal > 0))
        step = np.zeros_like(a)
        residual = np.where(support, -0.5 * (2.0 * image + self.linear), 0.0)
        direction = scaled = inverse * residual
        size = first_size = float(np.sum(residual * scaled))
        for _ in range(_CG_STEPS):
            if size <= _CG_TOLERANCE**2 * first_size:
                break
            product = np.where(support, self.image(direction), 0.0)
            curvature = float(np.sum(direction * product))
            if not curvature > 0.0:
                break
            step = step + (size / curvature) * direction
            residual = residual - (size / curvature) * product
            scaled = inverse * residual
            old_size, size = size, float(np.sum(residual * scaled))
            direction = scaled + (size / old_size) * direction
        return step


def threshold_iteratively(
    F: SparseObjective, upper: float, max_iter: int = 1000
) -> SparseStart:
    """Return the ``SparseStart`` of an objective, with weights up to ``upper``."""
    n = len(F.diagonal)
    a = np.full(n, 1.0 / n)
    image = F.image(a)
    history, decrease = [F.value(a, image)], np.inf
    curvature = F.curvature()
    converged = curvature == 0.0
    while not converged and len(history) <= max_iter:
        while np.isfinite(curvature):
            step = a - (2.0 * image + F.linear) / curvature
            new = np.where(step > np.sqrt(2.0 * F.tau / curvature), step, 0.0)
            new_image = F.image(new)
            value = F.value(new, new_image)
            if value <= history[-1]:
                break
            curvature *= 2.0
        else:  # no step is short enough
            converged = True
            break
        same_support = bool(((new > 0) == (a > 0)).all())
        if same_support:
            step = F.step_on_support(new, new_image)
            for candidate in _iter_non_negative(new, step):
                candidate_image = F.image(candidate)
                lower = F.value(candidate, candidate_image)
                if lower < value:
                    new, new_image, value = candidate, candidate_image, lower
                    break
        decrease = history[-1] - value
        converged = same_support and decrease <= _TOLERANCE * abs(value)
        a, image = new, new_image
        history.append(value)
    if not converged and max_iter > 0:
        warn(
            f"The sparse start did not converge in {max_iter} iterations: the last one "
            f"decreased its objective by {decrease:.1e} to {history[-1]:.6g}, expected "
            f"at most {_TOLERANCE:.0e} of it, and {np.count_nonzero(a)} of {n} points "
            "are left. Increase `max_iter` of sparse_start.",
        )
    total = a.sum()
    weights = a / total if total > 0 else np.full(n, 1.0 / n)
    weights = project_to_simplex(weights, upper)
    return SparseStart(a, weights, np.array(history), len(history) - 1, converged)


def _iter_non_negative(a: Array, step: Array) -> Iterator[Array]:
    """Yield ``a`` plus shorter and shorter parts of a step, negative entries set to 0.

    Long ones drop many points at once but need not lower F. The last, on which the
    first entry becomes 0, always does.
    """
    falling = step < 0
    lengths = -a[falling] / step[falling]
    shortest = min(float(lengths.min(initial=1.0)), 1.0)
    length = 1.0
    while length > shortest:
        yield np.maximum(a + length * step, 0.0)
        length *= 0.25
    last = np.maximum(a + shortest * step, 0.0)
    # exactly 0, whatever rounding says
    last[np.flatnonzero(falling)[lengths <= shortest]] = 0.0
    yield last


def project_to_simplex(weights: Array, upper: float) -> Array:
    """Return the point of ``sum = 1, 0 <= a <= upper`` nearest to ``weights``.

    It is clip(weights + t, 0, upper) for the t that makes the sum 1: found between the
    sorted breakpoints where an entry leaves 0 or reaches the upper bound.
    """
    if (weights <= upper).all():
        return weights
    breakpoints = np.sort(np.concatenate([-weights, upper - weights]))

    def total(t: float) -> float:
        return float(np.clip(weights + t, 0.0, upper).sum())

    last = bisect(breakpoints, 1.0, 1, len(breakpoints) - 1, key=total)
    low, high = breakpoints[last - 1], breakpoints[last]
    below, above = total(low), total(high)  # below <= 1 <= above
    fraction = 0.0 if above <= below else (1.0 - below) / (above - below)
    t = low + min(max(fraction, 0.0), 1.0) * (high - low)
    return np.asarray(np.clip(weights + t, 0.0, upper))
