# SPDX-License-Identifier: BSD-3-Clause
"""The kernel matrix held in memory, and its similarity as an operator.

S is never formed: with b = 1 - penalty alpha,

    S v = 2 [alpha o (K v) + b o K (alpha o v)],

one product of K with two vectors, or with one where all weights are equal. Every term
is non-negative, so degrees lose no digits. An indefinite K = K+ - K- adds -4 penalty
alpha o K- (alpha o v) and may make entries negative, which are set to 0 by a sparse
matrix that is added to S (indefinite.py).
"""

import numpy as np

from cdsk import _rows
from cdsk._kernels.indefinite import NegativePart
from cdsk._kernels.interface import NEGLIGIBLE_EDGE, Kernel, Similarity
from cdsk._kernels.matrix import SymmetricMatrix
from cdsk._kernels.neighbours import nearest_among


def scale_by_masses(K, masses):
    """Make K_ij m_i m_j of K, exactly symmetric; None: all masses are 1."""
    if masses is not None:
        for row, mass in zip(K, masses, strict=True):
            row *= mass * masses


def loops_of(diagonal, masses):
    """m_i (m_i - 1) K_ii from the diagonal m_i^2 K_ii; None: all masses are 1.

    A mass below 1 is less than one copy.
    """
    return None if masses is None else diagonal * np.maximum(1.0 - 1.0 / masses, 0.0)


class DenseKernel(SymmetricMatrix, Kernel):
    """A symmetric non-negative n x n matrix K.

    ``negative`` is the negative part of an indefinite K; None if K is semi-definite.
    K has been scaled by ``masses``.
    """

    def __init__(
        self,
        K,
        n_threads,
        points=None,
        negative=None,
        remedy="a kernel with larger values",
        masses=None,
    ):
        super().__init__(K, n_threads)
        self.masses, self.loops = masses, loops_of(self.diagonal, masses)
        self.points = points
        self.remedy = remedy
        self.negative = NegativePart.none(self.n) if negative is None else negative
        self.n_negative = self.negative.rank

    def as_array(self):
        return self.K

    @property
    def absolute_diagonal(self):
        return self.diagonal + 2.0 * self.negative.diagonal

    def absolute_product(self, vectors):
        product = self.product(vectors)
        if self.n_negative:
            product += 2.0 * self.negative.product(vectors)
        return product

    def absolute_rows(self):
        return self.negative.absolute_rows(self.rows())

    def similarity(self, weights, penalty):
        return DenseSimilarity(self, weights, penalty)


class ProductSimilarity(Similarity):
    """S of a kernel that is known by its products; subclasses set the degrees."""

    is_sparse = False

    def __init__(self, kernel, weights, penalty):
        self.n = kernel.n
        self.n_threads = kernel.n_threads
        self.remedy = kernel.remedy
        self._kernel = kernel
        self._weights = weights
        # alpha <= 1 / penalty up to rounding
        self._rest = np.maximum(1.0 - penalty * weights, 0.0)
        self._uniform = bool((weights == weights[0]).all())
        self._loops = 0.0
        if kernel.loops is not None:
            self._loops = 2.0 * weights * (1.0 + self._rest) * kernel.loops

    def normalised_product(self, vectors):
        return self._product(vectors * self._inverse_root) * self._inverse_root

    def _product(self, vectors):
        """S times each vector."""
        if self._uniform:
            factor = 2.0 * self._weights[0] * (1.0 + self._rest[0])
            return factor * self._kernel.product(vectors) + self._loops * vectors
        m = len(vectors)
        both = self._kernel.product(np.concatenate([vectors, vectors * self._weights]))
        product = 2.0 * (self._weights * both[:m] + self._rest * both[m:])
        return product + self._loops * vectors

    def nearest(self, points, candidates):
        return nearest_among(self._kernel.points, points, candidates, self.n_threads)


class DenseSimilarity(ProductSimilarity):
    """S of a ``DenseKernel``."""

    def __init__(self, kernel, weights, penalty):
        super().__init__(kernel, weights, penalty)
        self._penalty = penalty
        k_weights = (
            weights * kernel.row_sums
            if self._uniform
            else kernel.product(weights[np.newaxis])[0]
        )
        degrees = 2.0 * (weights * kernel.row_sums + self._rest * k_weights)
        degrees += self._loops
        self._clipped = kernel.negative.clipped(
            kernel.rows(), weights, penalty, degrees
        )
        self.n_clipped = self._clipped.nnz // 2
        self._set_degrees(degrees + self._negative_product(np.ones((1, self.n)))[0])

    def _product(self, vectors):
        return super()._product(vectors) + self._negative_product(vectors)

    def _negative_product(self, vectors):
        """What K- and the clipped entries add to S times each vector."""
        if not self._kernel.n_negative:
            return np.zeros_like(vectors)
        product = self._kernel.negative.product(vectors * self._weights)
        clipped = (self._clipped @ vectors.T).T
        return clipped - 4.0 * self._penalty * self._weights * product

    def components(self):
        return _rows.components(
            self._kernel.rows(),
            self._kernel.negative.rows,
            self._weights,
            self._penalty,
            self.degrees,
            NEGLIGIBLE_EDGE,
        )

    def nearest(self, points, candidates):
        # by distance where the data are known, since the kernel of far points is zero
        if self._kernel.points is None:
            K = self._kernel.K
            return candidates[np.argmax(K[np.ix_(points, candidates)], axis=1)]
        return super().nearest(points, candidates)
