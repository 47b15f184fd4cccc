# SPDX-License-Identifier: BSD-3-Clause
"""The Gaussian kernel of more points than K has room for: K ~ F'F + diag(rest).

F (m, n) is a partial Cholesky factor with random pivots (Chen, Epperly, Tropp & Webber,
Randomly pivoted Cholesky, 2022). A pivot is drawn in proportion to the *rest*, the part
of the diagonal that F does not reproduce yet; its row of K, less what F has of it, is
the next row of F. Of a Gaussian kernel only m rows are ever made, O(nm) memory. Pivots
are drawn in blocks, and of a block each is kept with the probability that its rest has
left after those kept before it, which is the same distribution as one after the other
(Epperly, Tropp & Webber, Embrace rejection, 2024) and makes products of the updates.
Where a rank is given, twice as many pivots are drawn and F is cut to its leading
directions: at equal rank that is closer to K than m pivots, however they are drawn.

F'F never exceeds K, so that F'F + diag(rest), with the diagonal of K, is semi-definite
as the weight step wants it. Its entries may be slightly negative where those of K are
small. The row of a point that F hardly reproduces may consist of little else: its sum
would be an arbitrary small number, by whose root the spectral step would divide. For
signs z a row of non-negative entries has |sum_j z_j S_ij| <= sum_j S_ij. Points that
break this for one of a few random z are not resolved by the approximation, and are
isolated: they take the label of their nearest neighbour, with a warning.

Entries up to 1e-13, the rounding of products, join nobody: components are those of the
pivots' rows of K, whatever the weights. Where weights part them further, the spectral
step sees a multiple eigenvalue, all copies of which the block method finds.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular

from cdsk import _kernel
from cdsk._block import combine, inner
from cdsk._kernels.dense import ProductSimilarity, loops_of, scale_by_masses
from cdsk._kernels.interface import NEGLIGIBLE_EDGE, Kernel
from cdsk._linalg.dense import all_eigenpairs
from cdsk._rows import StoredRows
from cdsk._runtime import check_memory, one_blas_thread
from cdsk._warn import warn

# The rank is that at which the rest is this part of tr(K) - sum(K) / n, the trace of
# the centred kernel: what all points have in common tells no clusters apart, and may be
# nearly all of a wide kernel. And most components, where nobody asks for more.
TOLERANCE = 0.05
MOST_COMPONENTS = 2000

# Pivots drawn at once. Each draw reads all points; more are rejected where few remain.
_BLOCK = 128

# Where the rank is given, twice as many pivots are drawn, up to this number, and their
# factor is cut to its leading directions. LAPACK finds those in about a second.
_MOST_CUT = 1500

# A rest below this is rounding.
_ROUNDING = 1e-12

# Components of a product by BLAS: a third of a second for 4000 points.
_PART = 1000

# Random pairs of points whose entries are compared with K.
_PAIRS = 10_000

# Signs that look for rows which cannot be non-negative, and the part of the sum that is
# left to rounding.
_PROBES, _SLACK = 8, 0.1

_LESS_MEMORY = "Expected a smaller n_components, a larger bandwidth, or fewer points."


@dataclass(frozen=True)
class Approximation:
    """How far an approximated kernel matrix is from K.

    Attributes
    ----------
    n_components : int
        Rank m of F'F.
    trace_error : float
        tr(K - F'F) / tr(K). K - F'F is semi-definite, so this is also its relative
        error in the trace norm. The diagonal itself is put right afterwards.
    largest_error : float
        Largest difference from K in 10,000 random entries.
    """

    n_components: int
    trace_error: float
    largest_error: float


class LowRankKernel(Kernel):
    """A Gaussian kernel of one bandwidth, approximated.

    ``n_components`` is the rank; None takes the one that ``TOLERANCE`` asks for. The
    same seed makes the same kernel. With ``masses`` m it is K_ij m_i m_j.
    """

    remedy = "a larger bandwidth, or more components"

    def __init__(self, points, bandwidth, n_components, seed, n_threads, masses=None):
        self.points = points
        self.n = len(points)
        self.n_threads = n_threads
        rng = np.random.RandomState(seed)
        self._bandwidth = bandwidth
        values = _GaussianValues(points, bandwidth, n_threads)
        most, tolerance = MOST_COMPONENTS, TOLERANCE
        if n_components is not None:
            most, tolerance = max(n_components, min(2 * n_components, _MOST_CUT)), 0.0
        found = pivoted_cholesky(
            values, self.n, min(most, self.n), tolerance, rng, n_threads
        )
        self.F, self.component_labels = found.F, found.components
        if n_components is not None and len(self.F) > n_components:
            self.F = leading_part(self.F, n_components, n_threads)
        self._own = np.einsum("mn,mn->n", self.F, self.F)
        self.approximation = Approximation(
            n_components=len(self.F),
            trace_error=float(np.mean(np.maximum(1.0 - self._own, 0.0))),
            largest_error=self._largest_error(values, rng),
        )
        if found.missing > TOLERANCE and n_components is None:
            warn(
                f"The kernel of {self.n} points is not of low rank: {len(self.F)} "
                f"components miss {found.missing:.1%} of the trace of the centred "
                f"kernel, expected at most {TOLERANCE:.1%}. Rounds are slow and labels "
                "may differ from those of the kernel itself. This takes a larger "
                f"bandwidth, n_components above {len(self.F)}, or approximation=None, "
                f"whose matrix needs {points.itemsize * self.n**2 / 1e9:.2g} GB.",
            )
        self.masses = masses
        if masses is not None:
            self.F = self.F * masses
            self._own = self._own * masses**2
        self.loops = loops_of(self.diagonal, masses)

    @cached_property
    def diagonal(self):
        # 1; where rounding made F'F larger, that, so that nothing is indefinite
        return np.maximum(self._own, 1.0 if self.masses is None else self.masses**2)

    def product(self, vectors):
        vectors = np.ascontiguousarray(vectors)
        image = combine(inner(self.F, vectors, self.n_threads), self.F, self.n_threads)
        image -= self._own * vectors
        return image

    def block(self, points):
        block = np.zeros((len(points), len(points)))
        # BLAS sums over many components ten times as fast as ``combine``. In parts, for
        # it does not hear Ctrl-C.
        with one_blas_thread():
            for i in range(0, len(self.F), _PART):
                part = self.F[i : i + _PART, points]
                block += part.T @ part
        np.fill_diagonal(block, self.diagonal[points])
        return block

    def row(self, i):
        row = combine(np.ascontiguousarray(self.F[:, [i]]), self.F, self.n_threads)[0]
        row[i] = self.diagonal[i]
        return row

    def as_array(self):
        """The Gaussian itself, by which new points are judged."""
        check_memory(8 * self.n**2, "The kernel matrix", "Use fewer points.")
        values = _GaussianValues(self.points, self._bandwidth, self.n_threads)
        K = values(np.arange(self.n))
        scale_by_masses(K, self.masses)
        return K

    def rows(self):
        check_memory(8 * self.n**2, "The rows of the kernel", "Use fewer points.")
        return StoredRows(self.block(np.arange(self.n)))

    def weight_rows(self, vectors, scale):
        return None

    def similarity(self, weights, penalty):
        return LowRankSimilarity(self, weights, penalty)

    def _largest_error(self, values, rng):
        """The largest difference from K in random entries off the diagonal."""
        largest = 0.0
        for _ in range(_PAIRS // 1000 if self.n > 1 else 0):
            i = rng.randint(self.n, size=1000)
            j = (i + rng.randint(1, self.n, size=1000)) % self.n
            found = np.einsum("mp,mp->p", self.F[:, i], self.F[:, j])
            largest = max(largest, float(np.abs(found - values.of_pairs(i, j)).max()))
        return largest


class LowRankSimilarity(ProductSimilarity):
    """S of a ``LowRankKernel``; points that it does not resolve are isolated."""

    def __init__(self, kernel, weights, penalty):
        super().__init__(kernel, weights, penalty)
        signs = np.random.RandomState(0).choice([-1.0, 1.0], (_PROBES, self.n))
        vectors = np.concatenate([np.ones((1, self.n)), signs])
        # that of a negligible entry of K
        smallest = 4.0 * weights.max() * NEGLIGIBLE_EDGE
        resolved = np.ones(self.n, dtype=bool)
        while True:
            sums = self._product(vectors * resolved)
            least = (1.0 - _SLACK) * np.abs(sums[1:]).max(axis=0)
            lost = resolved & ~(sums[0] > np.maximum(least, smallest))
            if not lost.any():
                break
            # nor do they count for the others
            resolved &= ~lost
        self._set_degrees(np.where(resolved, sums[0], 0.0))

    def components(self):
        labels = np.unique(self._kernel.component_labels, return_inverse=True)[1]
        return int(labels.max()) + 1, labels


class _GaussianValues:
    """Entries of the Gaussian kernel of some points, in double precision."""

    def __init__(self, points, bandwidth, n_threads):
        self._X = np.ascontiguousarray(points, dtype=np.float64)
        self._bandwidth = float(bandwidth)
        self._n_threads = n_threads

    def __call__(self, rows, columns=None):
        A = self._X[rows]
        B = self._X if columns is None else self._X[columns]
        out = np.empty((len(A), len(B)))
        _kernel.gaussian_rows(
            *(A, B, np.full(len(A), self._bandwidth), np.full(len(B), self._bandwidth)),
            *(out, self._n_threads),
        )
        return out

    def of_pairs(self, i, j):
        difference = (self._X[i] - self._X[j]) / self._bandwidth
        return np.exp(-0.5 * np.einsum("pd,pd->p", difference, difference))


@dataclass
class Factor:
    """Result of ``pivoted_cholesky``."""

    # (m, n)
    F: np.ndarray
    pivots: np.ndarray
    # diag(K - F'F) (n,)
    rest: np.ndarray
    # labels of the components of the pivots' rows of K (n,)
    components: np.ndarray
    # sum of the rest as a part of the trace of the centred K
    missing: float


def pivoted_cholesky(values, n, most, tolerance, rng, n_threads):
    """Factor of K by randomly chosen pivots.

    ``values(rows, columns)`` are entries of K, whose diagonal is 1, for two arrays of
    indices; without columns, for all. Ends with ``most`` rows, or as soon as the rest
    is at most ``tolerance`` of the trace of the centred K.
    """
    F, m, pivots = np.empty((0, n)), 0, []
    rest, components = np.ones(n), np.arange(n)
    total = 0.0  # sum of the entries of F'F
    while True:
        left, centred = float(np.sum(rest)), n - total / n
        if left <= max(tolerance * centred, _ROUNDING * n) or m >= most:
            break
        drawn = rng.choice(n, min(_BLOCK, most - m), p=rest / left)
        known = np.ascontiguousarray(F[:m, drawn])
        square = values(drawn, drawn) - combine(known, known, n_threads)
        rest[drawn[np.diagonal(square) <= _ROUNDING]] = 0.0
        kept, lower = rejection_cholesky(square, rng)
        if not kept:
            continue
        drawn = drawn[kept]
        F = _with_room(F, m, m + len(drawn), most)
        rows = values(drawn)
        components = joined(components, rows > NEGLIGIBLE_EDGE)
        rows -= combine(np.ascontiguousarray(known[:, kept]), F[:m], n_threads)
        new = F[m : m + len(drawn)]
        with one_blas_thread():
            inverse = solve_triangular(lower, np.eye(len(lower)), lower=True)
        new[:] = combine(np.ascontiguousarray(inverse.T), rows, n_threads)
        rest = np.maximum(rest - np.einsum("mn,mn->n", new, new), 0.0)
        rest[drawn] = 0.0
        total += float(np.sum(np.square(np.sum(new, axis=1))))
        pivots.append(drawn)
        m += len(drawn)
    pivots = np.concatenate([np.empty(0, dtype=np.intp), *pivots])
    missing = left / max(centred, _ROUNDING * n)
    return Factor(F[:m], pivots, rest, components, missing)


def leading_part(F, m, n_threads):
    """The factor (m, n) of the best approximation of F'F of rank m.

    It takes away from F'F, so that what holds for its rest holds as before.
    """
    check_memory(
        8 * m * F.shape[1],
        f"An approximation of the kernel by {m} components",
        _LESS_MEMORY,
    )
    _, rotation = all_eigenpairs(inner(F, F, n_threads))
    return combine(np.ascontiguousarray(rotation[:, :m]), F, n_threads)


def rejection_cholesky(square, rng):
    """Pivots of a block to be kept, and the Cholesky factor of their entries.

    ``square`` (q, q) are the entries of K - F'F between the pivots drawn, in their
    order; it is used up. A pivot is kept with the probability (what those kept before
    it have left of its diagonal entry) / (its diagonal entry).
    """
    drawn = np.diagonal(square) * rng.uniform(size=len(square))
    kept = []
    for i in range(len(square)):
        if square[i, i] > max(drawn[i], _ROUNDING):
            column = square[i:, i] / np.sqrt(square[i, i])
            square[i:, i:] -= np.outer(column, column)
            square[i:, i] = column
            kept.append(i)
    return kept, np.tril(square[np.ix_(kept, kept)])


def joined(labels, rows):
    """Labels of components after all points in each row of a mask (q, n) were joined.

    A component has the least index of its points for a label.
    """
    for row in rows:
        if not labels.any():
            break
        found = labels[row]
        if found.max() > found.min():
            renamed = np.arange(len(labels))
            renamed[found] = found.min()
            labels = renamed[labels]
    return labels


def _with_room(F, m, needed, most):
    """F with its first m rows, and room for ``needed`` of them or more."""
    if needed <= len(F):
        return F
    n = F.shape[1]
    rows = min(max(2 * len(F), needed, _BLOCK), most)
    # and three blocks on the way
    check_memory(
        8 * n * (rows + 3 * _BLOCK),
        f"An approximation of the kernel by {rows} components",
        _LESS_MEMORY,
    )
    larger = np.empty((rows, n))
    larger[:m] = F[:m]
    return larger
