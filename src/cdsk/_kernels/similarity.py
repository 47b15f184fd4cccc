# SPDX-License-Identifier: BSD-3-Clause
"""Kernel and weights -> the discriminative similarity, as an operator.

    S_ij = 2 (alpha_i + alpha_j) K_ij - 2 lam alpha_i alpha_j |K|_ij,    i != j
         = 2 (alpha_i + alpha_j - lam alpha_i alpha_j) K_ij     if K is semi-definite

S is never formed: with b = 1 - lam alpha,  S v = 2 [alpha o (K v) + b o K (alpha o v)],
one product of K (without its diagonal) with two columns, or with one where all weights
are equal. Every term is non-negative, so degrees lose no digits. An indefinite K = K+ -
K- adds -4 lam alpha o K- (alpha o v) and may make entries negative, which are set to 0
by a sparse matrix that is added to S.
Here ``lam`` is the paper's lambda, n times the estimator's.
"""

import numpy as np

# Below this a degree is as good as zero: its inverse square root would overflow
# products.
SMALLEST_DEGREE = 1e-290


class Similarity:
    """Degrees, components and normalised products of S.

    ``isolated`` marks points without any similarity; their rows of the normalised
    operator are zero. ``n_clipped`` counts the pairs whose similarity was negative.
    """

    can_be_factorised = False

    def __init__(self, kernel, weights, lam):
        self.kernel = kernel
        self.weights = weights
        self.lam = lam
        self.n = kernel.n
        # alpha <= 1 / lam up to rounding
        self._rest = np.maximum(1.0 - lam * weights, 0.0)
        self._uniform = bool((weights == weights[0]).all())
        k_weights = (
            weights * kernel.row_sums
            if self._uniform
            else kernel.product(weights[np.newaxis])[0]
        )
        self.degrees = 2.0 * (weights * kernel.row_sums + self._rest * k_weights)
        self._clipped = kernel.negative.clipped(
            kernel.rows(), weights, lam, self.degrees
        )
        self.n_clipped = self._clipped.nnz // 2
        self.degrees += self._negative_product(np.ones((1, self.n)))[0]
        self.isolated = self.degrees < SMALLEST_DEGREE
        self._root = np.where(
            self.isolated,
            0.0,
            1.0 / np.sqrt(np.maximum(self.degrees, SMALLEST_DEGREE)),
        )

    def normalised_product(self, columns):
        """D^-1/2 S D^-1/2 times each row of ``columns`` (m, n)."""
        scaled = columns * self._root
        product = self._positive_product(scaled)
        return (product + self._negative_product(scaled)) * self._root

    def _positive_product(self, columns):
        """What K adds to S times each row of ``columns``."""
        if self._uniform:
            factor = 2.0 * self.weights[0] * (1.0 + self._rest[0])
            return factor * self.kernel.product(columns)
        m = len(columns)
        both = self.kernel.product(np.concatenate([columns, columns * self.weights]))
        return 2.0 * (self.weights * both[:m] + self._rest * both[m:])

    def _negative_product(self, columns):
        """What K- and the clipped entries add to S times each row of ``columns``."""
        if not self.kernel.negative.rank:
            return np.zeros_like(columns)
        product = self.kernel.negative.product(columns * self.weights)
        return (self._clipped @ columns.T).T - 4.0 * self.lam * self.weights * product

    def components(self, negligible):
        """Number and labels of the components, edges that matter to no end left out."""
        arguments = self.weights, self.lam, self.degrees, negligible
        if self.kernel.negative.rank:
            return self.kernel.negative.components(self.kernel.rows(), *arguments)
        return self.kernel.components(*arguments)
