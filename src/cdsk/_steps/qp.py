# SPDX-License-Identifier: BSD-3-Clause
"""``solve_qp``: the compiled SMO solver with a certificate (tests/test_smo.py)."""

import sys
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from cdsk import _smo
from cdsk._block import inner
from cdsk._rows import SparseRows, StoredRows
from cdsk._threads import resolve_n_threads
from cdsk._validation import (
    check_integer,
    check_number,
    check_simplex_point,
    check_symmetric_matrix,
    check_symmetric_sparse,
)
from cdsk._warn import warn


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
    """Minimise ``p'x + x'Qx`` over ``sum(x) = 1, 0 <= x <= upper``.

    Parameters
    ----------
    Q : array-like or SciPy sparse matrix of shape (n, n)
        Symmetric positive semi-definite matrix; float32 is kept, sums are in float64.
        A sparse one takes the same steps, each at the cost of the entries of two rows.
    p : array-like of shape (n,)
        Linear term.
    upper : float, default=None
        Upper bound of every coordinate, at least ``1 / n``; None means 1 (no bound).
    x0 : array-like of shape (n,), default=None
        Feasible start; None means ``1 / n`` everywhere, or a vertex if that is better.
    tol : float, default=1e-8
        KKT gap (absolute) at which the solver stops.
    max_iter : int, default=None
        Most steps; None means ``1000 n``.

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
    rows, product = _sparse(Q) if sparse.issparse(Q) else _stored(Q)
    n = rows.n
    try:
        p = np.asarray(p, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"p must hold {n} numbers; got {p!r}.") from None
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
    max_iter = min(max_iter, sys.maxsize)

    def gradient_at(x):
        return p + 2.0 * product(x)

    if x0 is None:
        x, gradient = better_start(np.full(n, 1.0 / n), p, upper, gradient_at)
    else:
        x = check_simplex_point(x0, n, upper, "x0")
        gradient = gradient_at(x)
    gradient, gap, n_iter, status = descend(
        rows, x, gradient, gradient_at, upper, tol, max_iter
    )
    if status != "converged":
        warn(
            f"solve_qp did not converge ({status}): KKT gap {gap:.1e} after {n_iter} "
            f"steps, expected at most tol={tol:.1e}.",
        )
    return QPResult(x, _value(x, p, gradient), float(gap), n_iter, status)


def descend(rows, x, gradient, gradient_at, upper, tol, max_iter):
    """SMO from x, in place, until a fresh gradient shows a KKT gap of at most tol.

    The solver updates its gradient, which drifts by rounding. So it is computed afresh
    after every solve, and where the true gap is still too large SMO goes on from there,
    as long as that halves it. Returns the gradient, the gap, the number of steps and
    the status, as in ``QPResult``.
    """
    n_iter, gap, before = 0, _smo.kkt_gap(x, gradient, upper), np.inf
    while tol < gap <= 0.5 * before and n_iter < max_iter:
        n_iter += _smo.solve(rows, x, gradient, upper, tol, max_iter - n_iter)[2]
        gradient = gradient_at(x)
        before, gap = gap, _smo.kkt_gap(x, gradient, upper)
    status = (
        "converged" if gap <= tol else "max_iter" if n_iter >= max_iter else "stalled"
    )
    return gradient, gap, n_iter, status


def better_start(x, p, upper, gradient_at):
    """The better of two feasible points, ``x`` and a vertex, and the gradient there.

    The vertex is the feasible point of least inner product with the gradient at x.
    Where nearly all coordinates end at a bound it is close to the solution (measured,
    5000 blobs: 170 steps in place of 4600); elsewhere its value tells.
    """
    gradient = gradient_at(x)
    vertex = np.zeros_like(x)
    n_full = min(int(1.0 / upper), len(x) - 1)
    order = np.argsort(gradient, kind="stable")
    vertex[order[:n_full]] = upper
    vertex[order[n_full]] = min(max(1.0 - n_full * upper, 0.0), upper)
    vertex_gradient = gradient_at(vertex)
    if _value(vertex, p, vertex_gradient) < _value(x, p, gradient):
        return vertex, vertex_gradient
    return x.copy(), gradient


def _value(x, p, gradient):
    """The objective p'x + x'Qx, as the gradient is p + 2Qx."""
    # np.sum and not @: a threaded dot product would depend on the threads of BLAS
    return 0.5 * float(np.sum(x * (p + gradient)))


def _stored(Q):
    """Rows of a matrix in memory, and its product with a vector."""
    Q = check_symmetric_matrix(Q, "Q")
    return StoredRows(Q), partial(_product, Q)


def _sparse(Q):
    """The same of a sparse one."""
    Q = check_symmetric_sparse(Q, "Q")
    rows = np.repeat(np.arange(Q.shape[0]), np.diff(Q.indptr))
    kept = rows != Q.indices
    starts = np.append(0, np.cumsum(np.bincount(rows[kept], minlength=Q.shape[0])))
    return SparseRows(starts, Q.indices[kept], Q.data[kept], Q.diagonal()), Q.dot


def _product(Q, x):
    """Q x in double precision without a float64 copy of a float32 Q."""
    n_threads = resolve_n_threads(None)
    step = len(Q) if Q.dtype == np.float64 else 256
    parts = [
        inner(Q[i : i + step].astype(np.float64, copy=False), x[np.newaxis], n_threads)
        for i in range(0, len(Q), step)
    ]
    return np.concatenate(parts)[:, 0]
