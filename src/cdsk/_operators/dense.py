# SPDX-License-Identifier: BSD-3-Clause
"""The kernel matrix in memory, and its similarity as an operator.

S is never formed: with b = 1 - penalty alpha,

    S v = 2 [alpha o (K v) + b o K (alpha o v)],

one product of K with two vectors, or with one if all weights are equal: O(n^2) time, no
further n x n array. Every term is non-negative, so degrees lose no digits. An
indefinite K = K+ - K- adds -4 penalty alpha o K- (alpha o v) and may make entries
negative; these are set to 0 by a sparse matrix that is added to S (indefinite.py).
"""

from dataclasses import KW_ONLY, InitVar, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdsk import _kernel, _rows
from cdsk._neighbors import find_nearest
from cdsk._operators.base import (
    MIN_DEGREE,
    NEGLIGIBLE_EDGE,
    Array,
    Indices,
    Kernel,
    Similarity,
)
from cdsk._operators.indefinite import split_negative_part
from cdsk._rows import AbsoluteRows, CachedRows, HadamardRows, RowSource, StoredRows

# Bytes for cached rows of |K| o G. Digits (n = 1797) requests 5300 rows, 1100 of which
# are different.
_CACHE_BYTES = 16 << 20


def scale_by_multiplicity(K: NDArray[Any], multiplicity: Array | None) -> None:
    """Multiply K_ij by m_i m_j in place, exactly symmetric; None: all m_i are 1."""
    if multiplicity is not None:
        for row, m in zip(K, multiplicity, strict=True):
            row *= m * multiplicity


def compute_self_loops(diagonal: Array, multiplicity: Array | None) -> Array | None:
    """Return m_i (m_i - 1) K_ii from the diagonal m_i^2 K_ii; None: all m_i are 1.

    A multiplicity below 1 counts as one copy.
    """
    if multiplicity is None:
        return None
    return np.asarray(diagonal * np.maximum(1.0 - 1.0 / multiplicity, 0.0))


@dataclass(eq=False)
class DenseKernel(Kernel):
    """A symmetric non-negative n x n matrix K, float32 or float64.

    ``psd`` is True if K is semi-definite; False splits off its negative part; None
    tests whether there is one. K has been scaled by ``multiplicity``.
    """

    K: NDArray[Any]
    n_threads: int
    points: NDArray[Any] | None = None
    _: KW_ONLY
    psd: InitVar[bool | None] = True
    hint: str = "Use a kernel with larger values"
    multiplicity: Array | None = None

    def __post_init__(self, psd: bool | None) -> None:
        self.n = len(self.K)
        self.self_loops = compute_self_loops(self.diagonal, self.multiplicity)
        self.negative = split_negative_part(self, psd)
        self.n_negative = len(self.negative.factor)
        self.negative_diagonal = self.negative.diagonal

    @cached_property
    def diagonal(self) -> Array:
        return np.ascontiguousarray(np.diagonal(self.K), dtype=np.float64)

    @cached_property
    def spectral_bound(self) -> float:
        """The largest absolute row sum, which bounds the eigenvalues of K."""
        return float(np.max(self.row_sums + np.abs(self.diagonal)))

    def product(self, vectors: Array) -> Array:
        out = np.empty_like(vectors)
        _kernel.product(self.K, vectors, out, self.n_threads)
        return out

    def absolute_product(self, vectors: Array) -> Array:
        product = self.product(vectors)
        if self.n_negative:
            product += 2.0 * self.negative.product(vectors)
        return product

    def row(self, i: int) -> Array:
        return np.asarray(self.K[i], dtype=np.float64)

    def absolute_rows(self) -> RowSource:
        """Return compiled access to the rows of |K|, diagonal entries included."""
        rows, negative = StoredRows(self.K), self.negative.rows
        return rows if negative is None else AbsoluteRows(rows, negative)

    def weight_rows(self, vectors: Array, scale: float) -> RowSource:
        rows = HadamardRows(self.absolute_rows(), vectors, scale)
        return CachedRows(rows, _CACHE_BYTES)

    def as_array(self) -> NDArray[Any]:
        return self.K

    def similarity(self, weights: Array, penalty: float) -> "DenseSimilarity":
        return DenseSimilarity(self, weights, penalty)


class ProductSimilarity(Similarity):
    """S of a kernel that is known by its products; subclasses set the degrees."""

    kernel: Any
    is_sparse = False

    def __init__(self, kernel: Any, weights: Array, penalty: float) -> None:
        self.kernel, self._weights = kernel, weights
        # b = 1 - penalty alpha; alpha <= 1 / penalty up to rounding
        self._b = np.maximum(1.0 - penalty * weights, 0.0)
        self._is_uniform = bool((weights == weights[0]).all())
        self._self_loops: Any = 0.0
        if kernel.self_loops is not None:
            self._self_loops = 2.0 * weights * (1.0 + self._b) * kernel.self_loops

    def _set_degrees(self, degrees: Array) -> None:
        self.degrees, self.isolated = degrees, degrees < MIN_DEGREE
        root = 1.0 / np.sqrt(np.maximum(degrees, MIN_DEGREE))
        self._inverse_root = np.where(self.isolated, 0.0, root)

    def normalized_product(self, vectors: Array) -> Array:
        return self._product(vectors * self._inverse_root) * self._inverse_root

    def _product(self, vectors: Array) -> Array:
        """Return S times each vector (m, n)."""
        if self._is_uniform:
            factor = 2.0 * self._weights[0] * (1.0 + self._b[0])
            product = factor * self.kernel.product(vectors)
        else:
            m = len(vectors)
            stacked = np.concatenate([vectors, vectors * self._weights])
            image = self.kernel.product(stacked)
            product = 2.0 * (self._weights * image[:m] + self._b * image[m:])
        product += self._self_loops * vectors
        return np.asarray(product)

    def find_nearest(self, points: Indices, candidates: Indices) -> Indices:
        X, n_threads = self.kernel.points, self.kernel.n_threads
        # by distance where the data are known, since the kernel of far points is zero
        if X is not None:
            return find_nearest(X, points, candidates, n_threads)
        among = self.kernel.K[np.ix_(points, candidates)]
        return np.asarray(candidates[np.argmax(among, axis=1)])


class DenseSimilarity(ProductSimilarity):
    """S of a ``DenseKernel``."""

    def __init__(self, kernel: DenseKernel, weights: Array, penalty: float) -> None:
        super().__init__(kernel, weights, penalty)
        self._penalty = penalty
        k_weights = weights * kernel.row_sums
        if not self._is_uniform:
            k_weights = kernel.product(weights[np.newaxis])[0]
        degrees = 2.0 * (weights * kernel.row_sums + self._b * k_weights)
        degrees += self._self_loops
        self._rows, negative = StoredRows(kernel.K), kernel.negative
        self._clipped = negative.clipped_entries(self._rows, weights, penalty, degrees)
        self.n_clipped = self._clipped.nnz // 2
        self._set_degrees(degrees + self._negative_product(np.ones((1, kernel.n)))[0])

    def _product(self, vectors: Array) -> Array:
        return super()._product(vectors) + self._negative_product(vectors)

    def _negative_product(self, vectors: Array) -> Array:
        """Return what K- and the clipped entries add to S times each vector."""
        if not self.kernel.n_negative:
            return np.zeros_like(vectors)
        product = self.kernel.negative.product(vectors * self._weights)
        clipped = (self._clipped @ vectors.T).T
        return np.asarray(clipped - 4.0 * self._penalty * self._weights * product)

    def components(self) -> tuple[int, Indices]:
        negative, bound = self.kernel.negative.rows, NEGLIGIBLE_EDGE
        return _rows.components(
            self._rows, negative, self._weights, self._penalty, self.degrees, bound
        )
