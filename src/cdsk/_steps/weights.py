# SPDX-License-Identifier: BSD-3-Clause
"""The weight step: embedding -> kernel weights, a convex QP.

With G = Y Y' for unit rows Y and the paper's lambda as ``penalty``,

    minimise    q'a + penalty a'(|K| o G)a,    q_i = sum_j K_ij (1 - 2 G_ij)
    subject to  sum(a) = 1,  0 <= a_i <= 1 / penalty,

where |K| is K itself if K is semi-definite. Its value at (a, Y) is the merit of the
alternation. Everything about K is asked as products with vectors and rows of |K| o G,
which is stored only where K is sparse.
"""

from dataclasses import dataclass

import numpy as np

from cdsk._block import combine
from cdsk._steps.block_qp import descend_in_blocks
from cdsk._steps.qp import better_start, descend
from cdsk._warn import warn

# Steps allowed per point. About one is usual from uniform weights.
_STEPS_PER_POINT = 1000

# Where there are no rows: blocks allowed, and the coordinates of one. So many that its
# entries cost about as much as the gradient, between these limits.
_MOST_BLOCKS = 1000
_SMALLEST_BLOCK, _LARGEST_BLOCK = 1000, 4000


@dataclass
class Weights:
    """Solution of the weight step; ``gap`` is its KKT gap relative to max |q|."""

    alpha: np.ndarray
    gap: float
    n_iter: int


class WeightProblem:
    """The QP of one embedding: merit, gradient and solution.

    ``vectors`` (c, n) are the coordinates of the points, of unit length for each.
    """

    def __init__(self, kernel, vectors, penalty):
        self.kernel = kernel
        self.vectors = vectors
        self.penalty = penalty
        # off-diagonal row sums of K o G
        self.own = np.einsum("ln,ln->n", vectors, kernel.product(vectors))
        # G_ii = 1, so the diagonal adds K_ii - 2 K_ii
        self.q = kernel.row_sums - 2.0 * self.own - kernel.diagonal
        self.scale = max(float(np.max(np.abs(self.q))), np.finfo(float).tiny)

    def _similarity_product(self, alpha):
        """(|K| o G) alpha."""
        if not self.kernel.n_negative and (alpha == alpha[0]).all():
            # no need to read K again
            return alpha[0] * (self.own + self.kernel.diagonal)
        product = self.kernel.absolute_product(self.vectors * alpha)
        off_diagonal = np.einsum("ln,ln->n", self.vectors, product)
        return off_diagonal + self.kernel.absolute_diagonal * alpha

    def _block(self, points):
        """Entries of penalty |K| o G between some points."""
        vectors = np.ascontiguousarray(self.vectors[:, points])
        similar = combine(vectors, vectors, self.kernel.n_threads)
        return self.penalty * self.kernel.block(points) * similar

    def merit(self, alpha):
        """Value of the objective."""
        # np.sum and not @: a threaded dot product would depend on the threads of BLAS
        return float(
            np.sum(alpha * (self.q + self.penalty * self._similarity_product(alpha)))
        )

    def gradient(self, alpha):
        """Gradient of the objective."""
        return self.q + 2.0 * self.penalty * self._similarity_product(alpha)

    def solve(self, alpha, tol):
        """Return the optimal ``Weights``, starting from ``alpha`` or a better point."""
        upper = min(1.0 / self.penalty, 1.0)
        alpha, gradient = better_start(alpha, self.q, upper, self.gradient)
        problem = alpha, gradient, self.gradient, upper, tol * self.scale
        rows = self.kernel.weight_rows(self.vectors, self.penalty)
        if rows is None:
            size = int(2.0 * np.sqrt(self.vectors.size))
            size = min(max(size, _SMALLEST_BLOCK), _LARGEST_BLOCK)
            _, gap, n_iter, status = descend_in_blocks(
                self._block, *problem, size, _MOST_BLOCKS
            )
        else:
            _, gap, n_iter, status = descend(
                rows,
                *problem,
                _STEPS_PER_POINT * len(alpha),
            )
        gap /= self.scale
        if status != "converged":
            warn(
                f"The weight step did not converge: relative KKT gap {gap:.1e} after "
                f"{n_iter} steps, expected at most qp_tol={tol:.1e}.",
            )
        return Weights(alpha, gap, n_iter)
