# SPDX-License-Identifier: BSD-3-Clause
"""The weight step: embedding -> kernel weights, a convex QP.

With G = Y Y' for unit rows Y and the paper's lambda ``lam``,

    minimise    q'a + lam a'(|K| o G)a,    q_i = sum_j K_ij (1 - 2 G_ij)
    subject to  sum(a) = 1,  0 <= a_i <= 1 / lam,

where |K| = K + 2 K- is K itself if K is semi-definite (indefinite.py). Its value at (a,
Y) is the merit of the alternation. Everything about K is asked as products with columns
and rows made on demand: |K| o G is never stored.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cdsk import _smo
from cdsk._rows import CachedRows, HadamardRows
from cdsk._steps.qp import better_start

# Steps allowed per point. About one is usual from uniform weights.
_STEPS_PER_POINT = 1000

# Solves from the point reached, each with its gradient computed afresh, before the gap
# that rounding leaves is accepted.
_REFINEMENTS = 3

# Rows of |K| o G that are kept. Digits (n = 1797) asks for 5300 rows, 1100 of which are
# different ones.
_CACHE_BYTES = 16 << 20


@dataclass
class Weights:
    """Solution of the weight step; ``gap`` is its KKT gap relative to max |q|."""

    alpha: np.ndarray
    gap: float
    n_iter: int


class WeightProblem:
    """The QP of one embedding: merit, gradient and solution."""

    def __init__(self, kernel, columns, lam):
        self.kernel = kernel
        self.columns = columns
        self.lam = lam
        # row sums of K o G without the diagonal
        self.own = np.einsum("ln,ln->n", columns, kernel.product(columns))
        # G_ii = 1, so the diagonal adds K_ii - 2 K_ii
        self.q = kernel.row_sums - 2.0 * self.own - kernel.diagonal
        self.scale = max(float(np.max(np.abs(self.q))), np.finfo(float).tiny)

    def _similarity_product(self, alpha):
        """(|K| o G) alpha."""
        negative = self.kernel.negative
        if not negative.rank and (alpha == alpha[0]).all():
            # no need to read K again
            return alpha[0] * (self.own + self.kernel.diagonal)
        weighted = self.columns * alpha
        product = self.kernel.product(weighted) + 2.0 * negative.product(weighted)
        off_diagonal = np.einsum("ln,ln->n", self.columns, product)
        return off_diagonal + (self.kernel.diagonal + 2.0 * negative.diagonal) * alpha

    def merit(self, alpha):
        """Value of the objective."""
        # np.sum and not @: a threaded dot product would depend on the threads of BLAS
        return float(
            np.sum(alpha * (self.q + self.lam * self._similarity_product(alpha)))
        )

    def gradient(self, alpha):
        """Gradient of the objective."""
        return self.q + 2.0 * self.lam * self._similarity_product(alpha)

    def solve(self, alpha, tol):
        """Return the optimal ``Weights``, starting from ``alpha`` or a better point."""
        rows = self.kernel.negative.absolute_rows(self.kernel.rows())
        rows = HadamardRows(rows, self.columns, self.lam)
        rows = CachedRows(rows, _CACHE_BYTES)
        upper = min(1.0 / self.lam, 1.0)
        alpha, gradient = better_start(alpha, self.q, upper, self.gradient)
        max_iter = _STEPS_PER_POINT * len(alpha)
        n_iter = 0
        for _ in range(_REFINEMENTS):
            _, _, steps = _smo.solve(
                rows, alpha, gradient, upper, tol * self.scale, max_iter - n_iter
            )
            n_iter += steps
            gradient = self.gradient(alpha)
            gap = _smo.kkt_gap(alpha, gradient, upper) / self.scale
            if gap <= tol or n_iter >= max_iter:
                break
        if gap > tol:
            warnings.warn(
                f"The weight step did not converge: relative KKT gap {gap:.1e} after "
                f"{n_iter} steps, expected at most qp_tol={tol:.1e}.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return Weights(alpha, gap, n_iter)
