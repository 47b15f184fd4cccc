# SPDX-License-Identifier: BSD-3-Clause
"""First weights: uniform, given, or the paper's sparse start.

The sparse start describes every point by one combination of all the others:

    F(a) = sum_i |x_i - sum_{j != i} x_j a_j|^2 + tau |a|_0,     a >= 0.

With the Gram matrix A = X X' and s = diag A the sum of squares is

    a'[(n - 2) A + diag s] a + 2 a'(s - A 1) + sum(s),

so A is needed only as an operator. F is lowered by iterative hard thresholding: a
gradient step of length 1 / L, then entries up to sqrt(2 tau / L), the smallest that pay
their price, are set to 0. L is doubled until F does not rise, so F never does. Such
steps are short: L belongs to the mean of the points, and what distinguishes them moves
a thousand times slower. So each step that leaves the support as it was is followed by
one to the minimum of the sum of squares over the support, where F is a convex quadratic
function, as far as entries stay non-negative. The limit is a point where neither kind
of step helps; the problem itself is NP-hard.

The weights of a fit sum to 1 and are at most 1 / (n lam), so the solution is scaled to
sum 1 and replaced by the nearest such point. If fewer than n lam points carry weight,
the others share the rest equally.
"""

from bisect import bisect
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cdsk._block import combine, inner
from cdsk._linalg.eigsh import largest_eigenvalue
from cdsk._runtime import said_in_words
from cdsk._threads import resolve_n_threads
from cdsk._validation import (
    check_integer,
    check_number,
    check_points,
    check_simplex_point,
)
from cdsk._warn import warn

# The paper's weight of the number of non-zero entries.
TAU = 0.1

# Relative decrease of F by both kinds of steps at which the iteration ends.
_TOLERANCE = 1e-7

# Conjugate gradients on the support end at this part of the first residual, or after so
# many products. For points in d dimensions d + 1 suffice.
_CG_TOLERANCE, _CG_STEPS = 1e-9, 200

# Largest curvature of the sum of squares that leaves room for sums over the points.
_LARGEST_CURVATURE = 1e300


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
    """Sparse weights of the points: the paper's initialisation.

    Lowers ``sum_i |x_i - sum_{j != i} x_j a_j|^2 + tau |a|_0`` over ``a >= 0`` by
    iterative hard thresholding, from uniform weights, with steps to the minimum on the
    support wherever it has settled.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Data.
    tau : float, default=0.1
        Price of an entry that is not 0, in the squared unit of the data.
    lam : float in (0, 1], default=None
        Regularisation of the fit the weights are for, which bounds them by
        ``1 / (n_samples * lam)``. None leaves them as they are.
    max_iter : int, default=1000
        Most iterations. Where they do not suffice a ``ConvergenceWarning`` says so.
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
    upper = 1.0 if lam is None else upper_bound(len(X), lam)
    with said_in_words("A sparse start of so many points"):
        gram = Gram.of_points(X, resolve_n_threads(n_threads))
        return hard_thresholding(gram, tau, upper, max_iter)


def first_weights(kernel, lam, init):
    """First weights of a fit, feasible for lam; ``init`` may hold them."""
    n, upper = kernel.n, upper_bound(kernel.n, lam)
    if not isinstance(init, str):
        return init
    if init == "uniform":
        return np.full(n, 1.0 / n)
    if kernel.points is None:
        gram = Gram.of_kernel(kernel)
    else:
        gram = Gram.of_points(kernel.points, kernel.n_threads)
    return hard_thresholding(gram, TAU, upper).weights


def check_init(init, points, lam):
    """The ``init`` of an estimator: a name, or weights of rows, made those of points.

    Where several rows are one point, they are the nearest feasible ones.
    """
    if isinstance(init, str):
        return init
    n = len(points.point_of)
    init = check_simplex_point(init, n, upper_bound(n, lam), "init")
    init = points.from_rows(init)
    if len(points) == n:
        return init
    init = init / max(np.sum(init), np.finfo(float).tiny)
    return nearest_feasible(init, upper_bound(len(points), lam))


def upper_bound(n, lam):
    """Largest weight of n points."""
    return min(1.0 / (n * lam), 1.0)


@dataclass
class Gram:
    """A Gram matrix A as an operator on vectors (m, n), and its diagonal."""

    product: Callable[[np.ndarray], np.ndarray]
    diagonal: np.ndarray
    n_threads: int

    @classmethod
    def of_points(cls, X, n_threads):
        """A = X X'."""
        features = np.ascontiguousarray(X.T, dtype=np.float64)

        def product(vectors):
            return combine(inner(features, vectors, n_threads), features, n_threads)

        longest = float(np.abs(features).max())
        n = features.shape[1]
        most = np.sqrt(_LARGEST_CURVATURE / features.size) / n
        if longest > most:
            raise ValueError(
                "X must hold numbers whose squares can be summed for the sparse start, "
                f"of magnitude {most:.1e} at most; got {longest:.1e}."
            )
        return cls(product, np.einsum("dn,dn->n", features, features), n_threads)

    @classmethod
    def of_kernel(cls, kernel):
        """A = K, the Gram matrix of the points in the feature space of the kernel."""

        def product(vectors):
            return kernel.product(vectors) + kernel.diagonal * vectors

        return cls(product, kernel.diagonal, kernel.n_threads)


def hard_thresholding(gram, tau, upper, max_iter=1000):
    """``SparseStart`` for a Gram matrix, weights at most ``upper``."""
    s = gram.diagonal
    n = len(s)
    linear = 2.0 * (s - gram.product(np.ones((1, n)))[0])

    def quadratic(a):
        return (n - 2) * gram.product(a[np.newaxis])[0] + s * a

    def objective(a, image):
        return float(
            np.sum(a * (image + linear)) + np.sum(s) + tau * np.count_nonzero(a)
        )

    a = np.full(n, 1.0 / n)
    image = quadratic(a)
    history = [objective(a, image)]
    # the trace bounds the largest eigenvalue
    trace = float(np.sum(s))
    largest = largest_eigenvalue(gram.product, trace, n, gram.n_threads)
    curvature = 2.0 * ((n - 2) * largest + s.max())
    converged, fall = curvature == 0.0, np.inf
    while not converged and len(history) <= max_iter:
        gradient = 2.0 * image + linear
        while np.isfinite(curvature):
            step = a - gradient / curvature
            new = np.where(step > np.sqrt(2.0 * tau / curvature), step, 0.0)
            new_image = quadratic(new)
            value = objective(new, new_image)
            if value <= history[-1]:
                break
            curvature *= 2.0
        else:  # no step is short enough
            converged = True
            break
        settled = bool(((new > 0) == (a > 0)).all())
        if settled:
            direction = _towards_minimum(new, 2.0 * new_image + linear, quadratic, s)
            for candidate in _non_negative_steps(new, direction):
                candidate_image = quadratic(candidate)
                lower = objective(candidate, candidate_image)
                if lower < value:
                    new, new_image, value = candidate, candidate_image, lower
                    break
        fall = history[-1] - value
        converged = settled and fall <= _TOLERANCE * abs(value)
        a, image = new, new_image
        history.append(value)
    if not converged and max_iter > 0:
        warn(
            f"The sparse start did not converge in {max_iter} iterations: in the last "
            f"one its objective fell by {fall:.1e} to {history[-1]:.6g}, expected at "
            f"most {_TOLERANCE:.0e} of it, and {np.count_nonzero(a)} of {n} points are "
            "left. sparse_start takes a larger max_iter.",
        )
    total = a.sum()
    weights = a / total if total > 0 else np.full(n, 1.0 / n)
    weights = nearest_feasible(weights, upper)
    return SparseStart(a, weights, np.array(history), len(history) - 1, converged)


def _towards_minimum(a, gradient, quadratic, s):
    """Step from ``a`` to the least sum of squares with the same support.

    Conjugate gradients, which lower it with every product, so that it does no harm to
    end early. The preconditioner diag(s) turns the matrix of points in d dimensions
    into the identity plus one of rank d.
    """
    support = a > 0
    inverse = np.zeros_like(s)
    np.divide(1.0, s, out=inverse, where=support & (s > 0))
    step = np.zeros_like(a)
    residual = np.where(support, -0.5 * gradient, 0.0)
    scaled = inverse * residual
    direction = scaled
    size = first_size = float(np.sum(residual * scaled))
    for _ in range(_CG_STEPS):
        if size <= _CG_TOLERANCE**2 * first_size:
            break
        image = np.where(support, quadratic(direction), 0.0)
        curvature = float(np.sum(direction * image))
        if not curvature > 0.0:
            break
        step = step + (size / curvature) * direction
        residual = residual - (size / curvature) * image
        scaled = inverse * residual
        old_size, size = size, float(np.sum(residual * scaled))
        direction = scaled + (size / old_size) * direction
    return step


def _non_negative_steps(a, direction):
    """Shorter and shorter parts of a step, negative entries set to 0.

    Long ones drop many points at once but need not lower F. The last, on which the
    first entry becomes 0, always does.
    """
    falling = direction < 0
    lengths = -a[falling] / direction[falling]
    shortest = min(float(lengths.min(initial=1.0)), 1.0)
    length = 1.0
    while length > shortest:
        yield np.maximum(a + length * direction, 0.0)
        length *= 0.25
    step = np.maximum(a + shortest * direction, 0.0)
    # exactly 0, whatever rounding says
    step[np.flatnonzero(falling)[lengths <= shortest]] = 0.0
    yield step


def nearest_feasible(weights, upper):
    """The point of ``sum = 1, 0 <= a <= upper`` nearest to ``weights``.

    It is clip(weights + t, 0, upper) for the t that makes the sum 1: found between the
    sorted places where an entry leaves 0 or reaches the upper bound.
    """
    if (weights <= upper).all():
        return weights
    places = np.sort(np.concatenate([-weights, upper - weights]))

    def total(t):
        return np.clip(weights + t, 0.0, upper).sum()

    last = bisect(places, 1.0, 1, len(places) - 1, key=total)
    low, high = places[last - 1], places[last]  # total(low) <= 1 <= total(high)
    below, above = total(low), total(high)
    share = 0.0 if above <= below else (1.0 - below) / (above - below)
    t = low + min(max(share, 0.0), 1.0) * (high - low)
    return np.clip(weights + t, 0.0, upper)
