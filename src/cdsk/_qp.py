# SPDX-License-Identifier: BSD-3-Clause
"""Convex QPs on the simplex: ``solve_qp`` and the weight step (tests/test_weights.py).

    minimize    p'x + x'Qx      subject to  sum(x) = 1,  0 <= x_i <= upper

by compiled SMO steps (tests/test_smo.py), or by blocks of coordinates where rows of Q
are expensive (tests/test_block_qp.py). Each ends with a certificate: the KKT gap of a
freshly computed gradient.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from cdsk import _smo
from cdsk._neighbors import is_diagonal, select_entries
from cdsk._operators.base import Array, Indices, Kernel, Product
from cdsk._products import combine, inner
from cdsk._rows import RowSource, SparseRows, StoredRows
from cdsk._threads import resolve_n_threads
from cdsk._utils import warn
from cdsk._validation import (
    as_floats,
    check_integer,
    check_number,
    check_simplex_point,
    check_symmetric_matrix,
    check_symmetric_sparse,
)


@dataclass(frozen=True)
class QPResult:
    """Result of ``solve_qp``.

    Attributes
    ----------
    x : ndarray of shape (n,)
        The solution: sums to 1, within the box.
    objective : float
        ``p @ x + x @ Q @ x``.
    gap : float
        KKT gap at x from a freshly computed gradient g:
        ``max(g[x > 0]) - min(g[x < upper])``. If Q is positive semi-definite,
        the objective is at most this far above its minimum.
    n_iter : int
        Number of SMO steps.
    status : {"converged", "max_iter", "stalled"}
        "stalled": rounding allows no further progress.
    """

    x: NDArray[np.float64]
    objective: float
    gap: float
    n_iter: int
    status: str


def solve_qp(
    Q: ArrayLike | sparse.sparray | sparse.spmatrix,
    p: ArrayLike,
    upper: float | None = None,
    *,
    x0: ArrayLike | None = None,
    tol: float = 1e-8,
    max_iter: int | None = None,
) -> QPResult:
    """Minimize ``p'x + x'Qx`` over ``sum(x) = 1, 0 <= x <= upper``.

    Parameters
    ----------
    Q : array-like or SciPy sparse matrix of shape (n, n)
        Symmetric positive semi-definite matrix; float32 is kept, sums are in float64.
        For a sparse one a step costs the entries of two rows.
    p : array-like of shape (n,)
        Linear term.
    upper : float, default=None
        Upper bound of every coordinate, at least ``1 / n``; None means 1 (no bound).
    x0 : array-like of shape (n,), default=None
        Feasible start; None means ``1 / n`` everywhere, or a vertex if that is better.
    tol : float, default=1e-8
        KKT gap (absolute) at which the solver stops.
    max_iter : int, default=None
        Maximum number of steps; None means ``1000 n``.

    Returns
    -------
    result : QPResult

    Examples
    --------
    >>> import numpy as np
    >>> from cdsk import solve_qp
    >>> solve_qp(np.diag([1.0, 3.0]), np.zeros(2)).x.round(6)
    array([0.75, 0.25])
    """
    rows: RowSource
    if sparse.issparse(Q):
        Q = check_symmetric_sparse(Q, "Q")
        off = select_entries(Q, ~is_diagonal(Q))
        rows = SparseRows(off.indptr, off.indices, off.data, Q.diagonal())
        product = Q.dot
    else:
        Q = check_symmetric_matrix(Q, "Q")
        rows, product = StoredRows(Q), partial(_product, Q)
    n = rows.n
    p = as_floats(p, "p", f"hold {n} numbers")
    if not np.isfinite(p).all():
        raise ValueError("p must hold finite numbers; got NaN, infinity or None.")
    if p.shape != (n,):
        raise ValueError(
            f"p must have shape ({n},), one entry per row of Q; got shape {p.shape}."
        )
    upper = 1.0 if upper is None else check_number(upper, "upper", above=0)
    # more is no bound, and the solver's rounding is relative to it
    upper = min(upper, 1.0)
    if upper * n < 1 - 1e-12:
        raise ValueError(
            f"upper must be at least 1 / n = {1 / n:.6g}, else no x sums to 1; got "
            f"{upper!r}."
        )
    tol = check_number(tol, "tol", at_least=0)
    max_iter = 1000 * n if max_iter is None else check_integer(max_iter, "max_iter", 0)
    qp = SimplexQP(p, product, upper)
    if x0 is None:
        x, gradient = choose_start(qp, np.full(n, 1.0 / n))
    else:
        x = check_simplex_point(x0, n, upper, "x0")
        gradient = qp.gradient(x)
    result = solve_smo(qp, rows, x, gradient, tol, min(max_iter, sys.maxsize))
    if result.status != "converged":
        warn(
            f"solve_qp did not converge ({result.status}): KKT gap {result.gap:.1e} "
            f"after {result.n_iter} steps, expected at most tol={tol:.1e}.",
        )
    return result


def _product(Q: NDArray[np.floating], x: Array) -> Array:
    """Return Q x in double precision without a float64 copy of a float32 Q."""
    n_threads = resolve_n_threads(None)
    step = len(Q) if Q.dtype == np.float64 else 256
    chunks = [
        inner(Q[i : i + step].astype(np.float64, copy=False), x[np.newaxis], n_threads)
        for i in range(0, len(Q), step)
    ]
    return np.concatenate(chunks)[:, 0]


@dataclass(frozen=True)
class SimplexQP:
    """The problem above; ``product(x)`` is Qx."""

    p: Array
    product: Product
    upper: float

    def gradient(self, x: Array) -> Array:
        """Return p + 2Qx; half of its sum with p, times x, is the objective."""
        return self.p + 2.0 * self.product(x)


def choose_start(qp: SimplexQP, x: Array) -> tuple[Array, Array]:
    """Return the better of two feasible points, x and a vertex, and its gradient.

    The vertex is the feasible point of least inner product with the gradient at x.
    Where nearly all coordinates end at a bound it is close to the solution (measured,
    5000 blobs: 170 steps instead of 4600); elsewhere its objective tells.
    """
    upper, gradient, vertex = qp.upper, qp.gradient(x), np.zeros_like(x)
    n_full = min(int(1.0 / upper), len(x) - 1)
    order = np.argsort(gradient, kind="stable")
    vertex[order[:n_full]] = upper
    vertex[order[n_full]] = min(max(1.0 - n_full * upper, 0.0), upper)
    vertex_gradient = qp.gradient(vertex)
    # np.sum and not @: a threaded dot product would depend on the threads of BLAS
    if np.sum(vertex * (qp.p + vertex_gradient)) < np.sum(x * (qp.p + gradient)):
        return vertex, vertex_gradient
    return x.copy(), gradient


def solve_smo(
    qp: SimplexQP,
    rows: RowSource,
    x: Array,
    gradient: Array,
    tol: float,
    max_iter: int,
) -> QPResult:
    """Run SMO from x, in place, until a fresh gradient has a KKT gap of at most tol.

    The solver updates its gradient, which drifts by rounding. So it is recomputed after
    every solve, and where the true gap is still too large SMO continues from there, as
    long as that halves it.
    """
    n_iter, gap, before = 0, _smo.kkt_gap(x, gradient, qp.upper), np.inf
    while tol < gap <= 0.5 * before and n_iter < max_iter:
        n_iter += _smo.solve(rows, x, gradient, qp.upper, tol, max_iter - n_iter)[2]
        gradient = qp.gradient(x)
        before, gap = gap, _smo.kkt_gap(x, gradient, qp.upper)
    status = "max_iter" if n_iter >= max_iter else "stalled"
    status = "converged" if gap <= tol else status
    objective = 0.5 * float(np.sum(x * (qp.p + gradient)))
    return QPResult(x, objective, float(gap), n_iter, status)


# Decomposition by blocks of coordinates.
#
# Where K is known by its products, a row of Q costs as much as a product with Q, and
# SMO would need one or two per step. Entries of Q between a few coordinates are cheap.
# So each step chooses those that violate the KKT conditions most, half of a block, and
# fills it with others between the bounds; SMO solves the problem for these, and one
# product computes the new gradient, which is the certificate as well. The pair that
# violates them most is always chosen, so that the objective decreases until the gap is
# closed (Joachims, 1999; Lin, 2001). One to ten steps suffice for a wide kernel;
# projected gradients take three to thirty times as many products
# (docs/performance.md).

# Maximum number of SMO steps in a block, per coordinate; the next block continues.
_STEPS_PER_COORDINATE = 100

# Tolerance of a block relative to that of the whole.
_BLOCK_TOLERANCE = 0.1


def solve_blocks(
    qp: SimplexQP,
    block: Callable[[Indices], Array],
    size: int,
    x: Array,
    gradient: Array,
    tol: float,
    max_iter: int,
) -> QPResult:
    """Solve block after block from x, in place, until the KKT gap is at most tol.

    ``block(indices)`` returns the entries of Q between at most ``size`` coordinates;
    ``n_iter`` of the result counts blocks.
    """
    n_iter, gap, status = 0, _smo.kkt_gap(x, gradient, qp.upper), "max_iter"
    while gap > tol and n_iter < max_iter:
        chosen = choose_working_set(x, gradient, qp.upper, size)
        rows, x_block, g_block = StoredRows(block(chosen)), x[chosen], gradient[chosen]
        max_steps = _STEPS_PER_COORDINATE * len(chosen)
        goal = _BLOCK_TOLERANCE * tol
        if not _smo.solve(rows, x_block, g_block, qp.upper, goal, max_steps)[2]:
            status = "stalled"
            break
        x[chosen] = x_block
        gradient = qp.gradient(x)
        n_iter, gap = n_iter + 1, _smo.kkt_gap(x, gradient, qp.upper)
    status = "converged" if gap <= tol else status
    objective = 0.5 * float(np.sum(x * (qp.p + gradient)))
    return QPResult(x, objective, float(gap), n_iter, status)


def choose_working_set(x: Array, gradient: Array, upper: float, size: int) -> Indices:
    """Return sorted indices of at most ``size`` coordinates to be improved together.

    A quarter are those of smallest gradient that can increase, a quarter those of
    largest that can decrease, the rest those that can do both.
    """
    order = np.argsort(gradient, kind="stable")
    can_increase, can_decrease = (x < upper)[order], (x > 0)[order]
    quarter = max(size // 4, 1)
    low, high = order[can_increase][:quarter], order[can_decrease][-quarter:]
    chosen = np.union1d(low, high)
    free = order[can_increase & can_decrease]
    # nearest to the ends first: their violation is the next largest
    distance = np.minimum(np.arange(len(free)), np.arange(len(free))[::-1])
    free = free[np.argsort(distance, kind="stable")]
    free = free[~np.isin(free, chosen)]
    return np.union1d(chosen, free[: size - len(chosen)])


# The weight step: embedding -> kernel weights.
#
# With G = Y Y' for unit rows Y and the paper's lambda as ``penalty``,
#
#     minimize    q'a + penalty a'(|K| o G)a,    q_i = sum_j K_ij (1 - 2 G_ij)
#     subject to  sum(a) = 1,  0 <= a_i <= 1 / penalty,
#
# where |K| is K itself if K is semi-definite. Its value at (a, Y) is the objective of
# the alternation. K is used by products with vectors and rows of |K| o G, which is
# stored only where K is sparse.

# Maximum number of SMO steps per point. About one is usual from uniform weights.
_STEPS_PER_POINT = 1000

# Maximum number of blocks, and bounds of their size, which is such that the entries of
# a block cost about as much as the gradient.
_MAX_BLOCKS = 1000
_MIN_BLOCK, _MAX_BLOCK = 1000, 4000


class WeightProblem:
    """The QP of one embedding, its objective and solution.

    ``vectors`` (c, n) are the coordinates of the points, of unit length for each.
    """

    def __init__(self, kernel: Kernel, vectors: Array, penalty: float) -> None:
        self.kernel, self.vectors, self.penalty = kernel, vectors, penalty
        # off-diagonal row sums of K o G
        self._row_sums = np.einsum("ln,ln->n", vectors, kernel.product(vectors))
        # G_ii = 1, so the diagonal adds K_ii - 2 K_ii
        self.q: Array = kernel.row_sums - 2.0 * self._row_sums - kernel.diagonal
        self.scale = max(float(np.max(np.abs(self.q))), np.finfo(float).tiny)

    def product(self, alpha: Array) -> Array:
        """Return penalty (|K| o G) alpha."""
        kernel = self.kernel
        absolute_diagonal = kernel.diagonal + 2.0 * kernel.negative_diagonal
        if not kernel.n_negative and (alpha == alpha[0]).all():
            # no need to read K again
            image = alpha[0] * (self._row_sums + absolute_diagonal)
        else:
            product = kernel.absolute_product(self.vectors * alpha)
            image = np.einsum("ln,ln->n", self.vectors, product)
            image = image + absolute_diagonal * alpha
        return np.asarray(self.penalty * image)

    def _block(self, points: Indices) -> Array:
        """Return the entries of penalty |K| o G between some points."""
        vectors = np.ascontiguousarray(self.vectors[:, points])
        cosines = combine(vectors, vectors, self.kernel.n_threads)
        return self.penalty * self.kernel.submatrix(points) * cosines

    def objective(self, alpha: Array) -> float:
        """Return the value of the objective."""
        return float(np.sum(alpha * (self.q + self.product(alpha))))

    def solve(self, alpha: Array, tol: float) -> QPResult:
        """Return the optimal weights, from ``alpha`` or a better point.

        The gap, and its tolerance, is relative to max |q|.
        """
        qp = SimplexQP(self.q, self.product, min(1.0 / self.penalty, 1.0))
        alpha, gradient = choose_start(qp, alpha)
        rows = self.kernel.weight_rows(self.vectors, self.penalty)
        goal, max_iter = tol * self.scale, _STEPS_PER_POINT * len(alpha)
        if rows is not None:
            found = solve_smo(qp, rows, alpha, gradient, goal, max_iter)
        else:
            size = int(2.0 * np.sqrt(self.vectors.size))
            size = min(max(size, _MIN_BLOCK), _MAX_BLOCK)
            found = solve_blocks(
                qp, self._block, size, alpha, gradient, goal, _MAX_BLOCKS
            )
        gap = found.gap / self.scale
        if found.status != "converged":
            warn(
                f"The weight step did not converge: relative KKT gap {gap:.1e} after "
                f"{found.n_iter} steps, expected at most qp_tol={tol:.1e}.",
            )
        return replace(found, gap=gap)
