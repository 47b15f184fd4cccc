# SPDX-License-Identifier: BSD-3-Clause
"""The Gaussian kernel by a matrix of low rank, K ~ F'F + diag(residual).

F (m, n) is a partial Cholesky factor with random pivots (Chen, Epperly, Tropp & Webber,
Randomly pivoted Cholesky, 2022). A pivot is drawn with a probability proportional to
the residual diagonal, diag(K - F'F); its row of K - F'F is the next row of F. Only m
rows of K are computed: O(nm) memory, O(nm^2) time. Pivots come in blocks, and each is
accepted with the probability that the accepted ones before it leave of its residual,
which is the same distribution as one after the other (RejectionCholesky: Epperly, Tropp
& Webber, Embrace rejection, 2024) and turns updates into matrix products. If the rank
is given, twice as many pivots are drawn and F is truncated to its leading directions,
which at equal rank is closer to K.

F'F never exceeds K, so that F'F + diag(residual), with the diagonal of K, is
semi-definite as the weight step requires. Its entries may be slightly negative where
those of K are small. The row of a point that F hardly reproduces may consist of little
else: its sum would be an arbitrary small number, by whose root the spectral step would
divide. For signs z a row of non-negative entries has |sum_j z_j S_ij| <= sum_j S_ij.
Points that violate this for one of a few random z are not resolved by the approximation
and count as isolated: they take the label of their nearest neighbor, with a warning.

Entries up to 1e-13, the rounding of products, connect no points: components are those
of the pivots' rows of K, whatever the weights. If weights separate them further, the
spectral step has a multiple eigenvalue, all copies of which the block method finds.
"""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from cdsk import _kernel
from cdsk._eigensolvers import all_eigenpairs
from cdsk._operators.base import NEGLIGIBLE_EDGE, Array, Indices, Kernel
from cdsk._operators.dense import (
    ProductSimilarity,
    compute_self_loops,
    scale_by_multiplicity,
)
from cdsk._products import combine, inner
from cdsk._utils import check_memory, limit_blas_threads, warn

# The rank is the smallest at which the residual diagonal sums to this fraction of
# tr(K) - sum(K) / n, the trace of the centered kernel: what all points have in common
# separates no clusters, and may be nearly all of a wide kernel.
TRACE_TOLERANCE = 0.05
MAX_COMPONENTS = 2000

# Pivots drawn at once. Each draw reads all points; of large blocks more are rejected.
_BLOCK_SIZE = 128

# Twice the given rank is drawn up to this number: LAPACK truncates it in a second.
_MAX_OVERSAMPLED = 1500

# A residual below this is rounding.
_ROUNDING = 1e-12

# Components of a product by BLAS: a third of a second for 4000 points, during which
# signals are not handled.
_CHUNK_COMPONENTS = 1000

# Random entries that are compared with K, and how many at a time.
_N_SAMPLED, _SAMPLE_SIZE = 10_000, 1000

# Random signs that test rows for negative entries, and the fraction of the sum that is
# left to rounding.
_N_PROBES, _PROBE_TOLERANCE = 8, 0.1


@dataclass(frozen=True)
class Approximation:
    """Error of an approximate kernel matrix.

    Attributes
    ----------
    rank : int
        Rank m of F'F.
    trace_error : float
        tr(K - F'F) / tr(K). K - F'F is semi-definite, so this is also its relative
        error in the trace norm. The diagonal itself is corrected afterwards.
    largest_error : float
        Largest difference from K in 10,000 random entries.
    """

    rank: int
    trace_error: float
    largest_error: float


class LowRankKernel(Kernel):
    """A Gaussian kernel of one bandwidth, approximated.

    ``rank=None`` chooses the rank by ``TRACE_TOLERANCE``. The same seed gives the same
    kernel. With ``multiplicity`` m it is K_ij m_i m_j.
    """

    hint = "Increase `bandwidth` or `rank`"

    def __init__(
        self,
        points: NDArray[Any],
        bandwidth: float,
        rank: int | None,
        seed: int,
        n_threads: int,
        multiplicity: Array | None = None,
    ) -> None:
        self.points: NDArray[Any] = points
        self.n, self.n_threads = len(points), n_threads
        self.multiplicity = multiplicity
        X = np.ascontiguousarray(points, dtype=np.float64)
        self._entries = partial(_gaussian_entries, X, float(bandwidth), n_threads)
        rng = np.random.RandomState(seed)
        max_rank, tolerance = MAX_COMPONENTS, TRACE_TOLERANCE
        if rank is not None:
            max_rank, tolerance = max(rank, min(2 * rank, _MAX_OVERSAMPLED)), 0.0
        # one thread: the factor must not depend on their number
        with limit_blas_threads():
            factor = pivoted_cholesky(
                self._entries, self.n, min(max_rank, self.n), tolerance, rng, n_threads
            )
            self.F, self.component_labels = factor.F, factor.component_labels
            if rank is not None and len(self.F) > rank:
                self.F = truncate_rank(self.F, rank, n_threads)
        self._factor_diagonal = np.einsum("mn,mn->n", self.F, self.F)
        residual = np.maximum(1.0 - self._factor_diagonal, 0.0)
        self.approximation = Approximation(
            rank=len(self.F),
            trace_error=float(np.mean(residual)),
            largest_error=_largest_error(self.F, X, bandwidth, rng),
        )
        if factor.relative_error > TRACE_TOLERANCE and rank is None:
            n_bytes = points.itemsize * self.n**2
            warn(
                f"The kernel of {self.n} points is not of low rank: {len(self.F)} "
                f"components miss {factor.relative_error:.1%} of the trace of the "
                f"centered kernel, expected at most {TRACE_TOLERANCE:.1%}. Iterations "
                "are slow and labels may differ from those of the kernel itself. "
                f"Increase `bandwidth`, set `rank` above {len(self.F)}, or use "
                f"approximation=None, whose matrix needs {n_bytes / 1e9:.2g} GB."
            )
        if multiplicity is not None:
            self.F = self.F * multiplicity
            self._factor_diagonal = self._factor_diagonal * multiplicity**2
        self.self_loops = compute_self_loops(self.diagonal, multiplicity)

    @cached_property
    def diagonal(self) -> Array:
        # 1, or that of F'F where rounding made it larger, so that K is semi-definite
        exact = 1.0 if self.multiplicity is None else self.multiplicity**2
        return np.asarray(np.maximum(self._factor_diagonal, exact))

    def product(self, vectors: Array) -> Array:
        vectors = np.ascontiguousarray(vectors)
        image = combine(inner(self.F, vectors, self.n_threads), self.F, self.n_threads)
        image -= self._factor_diagonal * vectors
        return image

    absolute_product = product

    def submatrix(self, points: Indices) -> Array:
        matrix = np.zeros((len(points), len(points)))
        # BLAS sums over many components ten times as fast as ``combine``
        for i in range(0, len(self.F), _CHUNK_COMPONENTS):
            chunk = self.F[i : i + _CHUNK_COMPONENTS, points]
            matrix += chunk.T @ chunk
        np.fill_diagonal(matrix, self.diagonal[points])
        return matrix

    def row(self, i: int) -> Array:
        row = combine(np.ascontiguousarray(self.F[:, [i]]), self.F, self.n_threads)[0]
        row[i] = self.diagonal[i]
        return np.asarray(row)

    def weight_rows(self, vectors: Array, scale: float) -> None:
        return None

    def as_array(self) -> Array:
        """Return the Gaussian kernel itself, which votes for new points."""
        check_memory(8 * self.n**2, "The kernel matrix", "Use fewer points.")
        K = self._entries(np.arange(self.n))
        scale_by_multiplicity(K, self.multiplicity)
        return K

    def similarity(self, weights: Array, penalty: float) -> "LowRankSimilarity":
        return LowRankSimilarity(self, weights, penalty)


class LowRankSimilarity(ProductSimilarity):
    """S of a ``LowRankKernel``; points that it does not resolve are isolated."""

    def __init__(self, kernel: LowRankKernel, weights: Array, penalty: float) -> None:
        super().__init__(kernel, weights, penalty)
        n, rng = kernel.n, np.random.RandomState(0)
        signs = rng.choice([-1.0, 1.0], (_N_PROBES, n))
        vectors = np.concatenate([np.ones((1, n)), signs])
        # that of a negligible entry of K
        smallest = 4.0 * weights.max() * NEGLIGIBLE_EDGE
        is_resolved = np.ones(n, dtype=bool)
        while True:
            sums = self._product(vectors * is_resolved)
            lower = (1.0 - _PROBE_TOLERANCE) * np.abs(sums[1:]).max(axis=0)
            violates = is_resolved & ~(sums[0] > np.maximum(lower, smallest))
            if not violates.any():
                break
            # nor do they count for the others
            is_resolved &= ~violates
        self._set_degrees(np.where(is_resolved, sums[0], 0.0))

    def components(self) -> tuple[int, Indices]:
        labels = np.unique(self.kernel.component_labels, return_inverse=True)[1]
        return int(labels.max()) + 1, labels


def _gaussian_entries(
    X: Array,
    bandwidth: float,
    n_threads: int,
    rows: Indices,
    columns: Indices | None = None,
) -> Array:
    """Return entries of the Gaussian kernel, in all columns if these are None."""
    A, B = X[rows], X if columns is None else X[columns]
    b_a, b_b = np.full(len(A), bandwidth), np.full(len(B), bandwidth)
    out = np.empty((len(A), len(B)))
    _kernel.gaussian_rows(A, B, b_a, b_b, out, n_threads)
    return out


def _largest_error(
    F: Array, X: Array, bandwidth: float, rng: np.random.RandomState
) -> float:
    """Return the largest difference of F'F from K in random off-diagonal entries."""
    n, largest = len(X), 0.0
    for _ in range(_N_SAMPLED // _SAMPLE_SIZE if n > 1 else 0):
        i = rng.randint(n, size=_SAMPLE_SIZE)
        j = (i + rng.randint(1, n, size=_SAMPLE_SIZE)) % n
        difference = (X[i] - X[j]) / bandwidth
        exact = np.exp(-0.5 * np.einsum("pd,pd->p", difference, difference))
        error = np.abs(np.einsum("mp,mp->p", F[:, i], F[:, j]) - exact)
        largest = max(largest, float(error.max()))
    return largest


@dataclass
class PivotedFactor:
    """Result of ``pivoted_cholesky``."""

    # (m, n)
    F: Array
    pivots: Indices
    # diag(K - F'F) (n,)
    residual_diagonal: Array
    # labels of the components of the pivots' rows of K (n,)
    component_labels: Indices
    # sum of the residual diagonal over the trace of the centered K
    relative_error: float


def pivoted_cholesky(
    entries: Any,
    n: int,
    max_rank: int,
    tolerance: float,
    rng: np.random.RandomState,
    n_threads: int,
) -> PivotedFactor:
    """Factorize K, whose diagonal is 1, by randomly chosen pivots.

    ``entries(rows, columns)`` are those of K for two arrays of indices; without
    columns, for all. Ends at ``max_rank``, or as soon as the residual diagonal sums to
    at most ``tolerance`` of the trace of the centered K.
    """
    F, m, pivots = np.empty((0, n)), 0, [np.empty(0, dtype=np.intp)]
    residual, labels = np.ones(n), np.arange(n)
    total = 0.0  # sum of the entries of F'F
    while True:
        left, centered = float(np.sum(residual)), n - total / n
        if left <= max(tolerance * centered, _ROUNDING * n) or m >= max_rank:
            break
        drawn = rng.choice(n, min(_BLOCK_SIZE, max_rank - m), p=residual / left)
        known = np.ascontiguousarray(F[:m, drawn])
        square = entries(drawn, drawn) - combine(known, known, n_threads)
        residual[drawn[np.diagonal(square) <= _ROUNDING]] = 0.0
        accepted, lower = select_pivots(square, rng)
        if not accepted:
            continue
        drawn = drawn[accepted]
        F = _reserve_rows(F, m, m + len(drawn), max_rank)
        rows = entries(drawn)
        labels = merge_components(labels, rows > NEGLIGIBLE_EDGE)
        rows -= combine(np.ascontiguousarray(known[:, accepted]), F[:m], n_threads)
        new = F[m : m + len(drawn)]
        inverse = solve_triangular(lower, np.eye(len(lower)), lower=True)
        new[:] = combine(np.ascontiguousarray(inverse.T), rows, n_threads)
        residual = np.maximum(residual - np.einsum("mn,mn->n", new, new), 0.0)
        residual[drawn] = 0.0
        total += float(np.sum(np.square(np.sum(new, axis=1))))
        pivots.append(drawn)
        m += len(drawn)
    error = left / max(centered, _ROUNDING * n)
    return PivotedFactor(F[:m], np.concatenate(pivots), residual, labels, error)


def select_pivots(square: Array, rng: np.random.RandomState) -> tuple[list[int], Array]:
    """Return the accepted pivots of a block, and the Cholesky factor of their entries.

    ``square`` (q, q) are the entries of K - F'F between the pivots drawn, and is
    overwritten. A pivot is accepted with the probability (what the accepted ones before
    it leave of its diagonal entry) / (its diagonal entry).
    """
    threshold = np.diagonal(square) * rng.uniform(size=len(square))
    accepted = []
    for i in range(len(square)):
        if square[i, i] > max(threshold[i], _ROUNDING):
            column = square[i:, i] / np.sqrt(square[i, i])
            square[i:, i:] -= np.outer(column, column)
            square[i:, i] = column
            accepted.append(i)
    return accepted, np.tril(square[np.ix_(accepted, accepted)])


def merge_components(labels: Indices, rows: NDArray[np.bool_]) -> Indices:
    """Return component labels after connecting all points in each row of a mask (q, n).

    The label of a component is the smallest index of its points.
    """
    for row in rows:
        if not labels.any():
            break
        connected = labels[row]
        if connected.max() > connected.min():
            new_label = np.arange(len(labels))
            new_label[connected] = connected.min()
            labels = new_label[labels]
    return labels


def _reserve_rows(F: Array, m: int, n_needed: int, max_rank: int) -> Array:
    """Return F with its first m rows, and memory for ``n_needed`` rows or more."""
    if n_needed <= len(F):
        return F
    n, n_rows = F.shape[1], min(max(2 * len(F), n_needed, _BLOCK_SIZE), max_rank)
    # with three temporary blocks
    _check_factor_memory(n_rows, n, n_rows + 3 * _BLOCK_SIZE)
    larger = np.empty((n_rows, n))
    larger[:m] = F[:m]
    return larger


def truncate_rank(F: Array, m: int, n_threads: int) -> Array:
    """Return the factor (m, n) of the best approximation of F'F of rank m.

    It is at most F'F, so that the residual stays semi-definite.
    """
    _check_factor_memory(m, F.shape[1], m)
    _, rotation = all_eigenpairs(inner(F, F, n_threads))
    return combine(np.ascontiguousarray(rotation[:, :m]), F, n_threads)


def _check_factor_memory(m: int, n: int, n_rows: int) -> None:
    """Raise MemoryError if ``n_rows`` of n numbers, for m components, are too many."""
    check_memory(
        8 * n * n_rows,
        f"An approximation of the kernel by {m} components",
        "Use a smaller `rank`, a larger `bandwidth`, or fewer points.",
    )
