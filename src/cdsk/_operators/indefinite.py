# SPDX-License-Identifier: BSD-3-Clause
"""Similarities that need not be positive semi-definite: the negative part of K.

The eigen-decomposition splits a symmetric K into K+ - K-, both semi-definite (the
paper's Lemma on the decomposition of a similarity), and |K| = K+ + K- = K + 2 K-. CDS
regularizes with |K| in place of K:

    S_ij = 2 (alpha_i + alpha_j) K_ij - 2 penalty alpha_i alpha_j |K|_ij
    minimize  q'a + penalty a'(|K| o G)a,      q_i = sum_j K_ij (1 - 2 G_ij)

and |K| o G is semi-definite, so the weight step is convex for every K. For a
semi-definite K the negative part is empty and both are the formulas of CDSK: every
dense kernel has a ``NegativePart``, usually of rank 0.

K- = F'F is stored as its factor F (r, n), one row per negative eigenvalue. Products and
rows of |K| then cost O(nr) more than those of K, without a second n x n array. If r is
a large part of n, that would take longer than finding F; then K- is stored. The
eigenpairs come from the block Lanczos method applied to -K, and a Cholesky
factorization of K + K- certifies that none is missing. If the method takes too long,
because they are many or near 0, they come from LAPACK.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cholesky, eigh

from cdsk import _rows
from cdsk._eigensolvers import N_GUARDS, Eigenpairs, EigenProblem, solve_block_lanczos
from cdsk._operators.base import NEGLIGIBLE_EDGE, Array
from cdsk._products import combine, inner
from cdsk._rows import RowSource
from cdsk._utils import allocate_blas_buffers, check_memory, limit_blas_threads

if TYPE_CHECKING:
    from cdsk._operators.dense import DenseKernel

# Relative to the spectral bound of K. Eigenvalues above minus this count as 0, which
# changes |K| by at most twice as much. It moves the gradient of the weight step by at
# most 4e-6 sqrt(n lam) of its scale, less than qp_tol, and is the accuracy of a
# semi-definite matrix with float32 entries.
NEGLIGIBLE_EIGENVALUE = 1e-6

# Accuracy of the negative eigenvectors, as a residual relative to the same bound. The
# error of K- is of the same order, however close to each other eigenvalues are.
_TOLERANCE = 1e-9

# Up to the first size LAPACK is as fast as any method; beyond the second it takes more
# than three minutes and is not used (docs/notes/2026-11-16-indefinite.md).
_LAPACK_SIZE = 1000
_MAX_DENSE_SIZE = 10_000

# Share of negative eigenvalues from which K- is stored as a matrix. LAPACK, which finds
# that many, has used more memory.
_STORED_SHARE = 1 / 8

# Eigenpairs of the first search; twice as many each time all of them were negative.
_FIRST_BATCH = 8

# Products of K with a vector that the block method may take, at least. LAPACK costs as
# much as n of them or more: a search in vain adds at most a quarter to its time.
_MIN_PRODUCTS = 720


def _max_products(n: int) -> int:
    return max(_MIN_PRODUCTS, n // 4)


@dataclass(eq=False)
class NegativePart:
    """K- = F'F of a kernel, from the factor F (r, n); r = 0 if K is semi-definite."""

    factor: Array
    n_threads: int

    @cached_property
    def diagonal(self) -> Array:
        """Diagonal of K- (n,)."""
        return np.asarray(np.einsum("rn,rn->n", self.factor, self.factor))

    @cached_property
    def rows(self) -> _rows.NegativeRows | None:
        """Compiled rows of K-; None if it is empty."""
        F = self.factor
        if not len(F):
            return None
        if len(F) <= _STORED_SHARE * F.shape[1]:
            return _rows.NegativeRows(F, np.ascontiguousarray(F.T))
        with limit_blas_threads():
            return _rows.NegativeRows(F.T @ F)

    def product(self, vectors: Array) -> Array:
        """Return off-diagonal K- times each vector (m, n)."""
        coefficients = inner(self.factor, np.ascontiguousarray(vectors), self.n_threads)
        product = combine(coefficients, self.factor, self.n_threads)
        return product - self.diagonal * vectors

    def clipped_entries(
        self, rows: RowSource, weights: Array, penalty: float, degrees: Array
    ) -> sparse.csr_array:
        """Return minus the negative off-diagonal entries of S, a sparse matrix.

        S plus this matrix is max(S, 0). A pair with K_ij >= 2 K-_ij is never in it as
        long as weights are at most 1 / penalty, since then S_ij >= 2 max(alpha_i,
        alpha_j) (K_ij - 2 K-_ij). Entries that are negligible relative to ``degrees``,
        of which there are many, are left out.
        """
        n = self.factor.shape[1]
        if self.rows is None:
            return sparse.csr_array((n, n))
        i, j, values = _rows.clipped_pairs(
            rows, self.rows, weights, penalty, degrees, NEGLIGIBLE_EDGE
        )
        ends = np.concatenate([i, j]), np.concatenate([j, i])
        return sparse.csr_array((np.tile(values, 2), ends), shape=(n, n))


def split_negative_part(kernel: "DenseKernel", psd: bool | None) -> NegativePart:
    """Return the ``NegativePart`` of a kernel; an empty one if ``psd``.

    ``psd=None`` tests whether there is one. Eigenvalues above minus
    ``NEGLIGIBLE_EIGENVALUE`` times the spectral bound count as 0.
    """
    if psd or (psd is None and _is_semidefinite_kernel(kernel)):
        return NegativePart(np.empty((0, kernel.n)), 1)
    factor = _factor_by_lanczos(kernel) if kernel.n > _LAPACK_SIZE else None
    if factor is None:
        factor = _factor_by_lapack(kernel)
    # a point without neighbors is a component of its own: K- is 0 there but for noise
    factor[:, kernel.row_sums == 0] = 0.0
    return NegativePart(np.ascontiguousarray(factor), kernel.n_threads)


def _is_semidefinite_kernel(kernel: "DenseKernel") -> bool:
    """Return whether K has no negative eigenvalue that is not negligible.

    By a Cholesky factorization or, for large K, by the smallest Ritz value. One that is
    negative is a proof, so that a short search comes first.
    """
    none, tol = np.empty((0, kernel.n)), NEGLIGIBLE_EIGENVALUE
    if kernel.n <= _MAX_DENSE_SIZE:
        return _is_complete(kernel, none)
    negated = _NegatedKernel(kernel)
    pairs = negated.search(none, 1, none, tol, _max_products(kernel.n) // 10)
    if pairs.values[0] <= tol < pairs.residuals[0]:
        pairs = negated.search(pairs.vectors, 1, none, tol, negated.n_products_left)
    return bool(pairs.values[0] <= tol)


def _factor_by_lanczos(kernel: "DenseKernel") -> Array | None:
    """Return the factor F of K- = F'F, or None if it takes too many products.

    A search that need not converge finds negative eigenvalues, which are then refined.
    They are complete if K + F'F has a Cholesky factorization; for large K, if the
    search converged and its last eigenvalue is not negative.
    """
    negated, tol, batch = _NegatedKernel(kernel), NEGLIGIBLE_EIGENVALUE, _FIRST_BATCH
    values, vectors = np.empty(0), np.empty((0, kernel.n))
    while negated.n_products_left > 0:
        n_products = negated.n_products_left // 3
        pairs = negated.search(vectors[:0], batch, vectors, tol, n_products)
        negative = pairs.values > tol
        is_complete = pairs.residuals.max() <= tol and not negative.all()
        if negative.any():
            start, n_products = pairs.vectors[negative], negated.n_products_left
            pairs = negated.search(
                start, len(start), vectors, _TOLERANCE, n_products, stop_if_slow=True
            )
            if pairs.residuals.max() > _TOLERANCE:
                return None
            values = np.concatenate([values, pairs.values])
            vectors = np.concatenate([vectors, pairs.vectors])
        factor: Array = np.sqrt(kernel.spectral_bound * values)[:, np.newaxis] * vectors
        can_be_tested = kernel.n <= _MAX_DENSE_SIZE
        if is_complete or (can_be_tested and _is_complete(kernel, factor)):
            return factor
        if not negative.any():
            return None
        batch *= 2
    return None


class _NegatedKernel:
    """The operator -K / bound, with a budget of products."""

    def __init__(self, kernel: "DenseKernel") -> None:
        self.kernel = kernel
        self.n_products_left = _max_products(kernel.n)
        # a fixed seed, so that the same kernel can be made again
        self._rng = np.random.RandomState(0)

    def __call__(self, vectors: Array) -> Array:
        self.n_products_left -= len(vectors)
        product = self.kernel.product(vectors) + self.kernel.diagonal * vectors
        return product / -self.kernel.spectral_bound

    def search(
        self,
        start: Array,
        k: int,
        known: Array,
        tol: float,
        max_products: int,
        *,
        stop_if_slow: bool = False,
    ) -> Eigenpairs:
        """Find k leading eigenpairs from a start that is completed at random."""
        width = k + N_GUARDS
        guards = self._rng.standard_normal((width - len(start), self.kernel.n))
        return solve_block_lanczos(
            EigenProblem(self, k, known, self.kernel.n_threads),
            np.concatenate([start, guards]),
            tol=tol,
            max_products=max_products // width,
            stop_if_slow=stop_if_slow,
        )


def _is_complete(kernel: "DenseKernel", factor: Array) -> bool:
    """Return whether K + F'F is semi-definite up to negligible eigenvalues."""
    check_memory(
        (2 if len(factor) else 1) * 8 * kernel.n**2,
        "Testing if a similarity is positive semi-definite",
        "Use fewer points, or psd=True to skip the test.",
    )
    matrix = kernel.K.astype(np.float64)
    if len(factor):
        matrix += factor.T @ factor
    return is_semidefinite(matrix, NEGLIGIBLE_EIGENVALUE * kernel.spectral_bound)


def _factor_by_lapack(kernel: "DenseKernel") -> Array:
    """Return the factor F of K- = F'F from a dense eigen-decomposition."""
    n = kernel.n
    if n > _MAX_DENSE_SIZE:
        seconds = 1.5 * (n / 2000) ** 3  # measured at 2000; cubic
        raise ValueError(
            f"The similarity of {n} points is not positive semi-definite, and its "
            f"negative part was not found in {_max_products(n)} products with a "
            "vector: it has many eigenvalues, or some near 0. LAPACK would take about "
            f"{seconds:.0f} s and {3 * 8 * n * n:,} bytes, and is used for at most "
            f"{_MAX_DENSE_SIZE} points. Use fewer points; or psd=True, which uses the "
            "similarity as it is in a weight step that is not convex; or add minus the "
            "smallest eigenvalue to the diagonal, which makes the matrix semi-definite "
            "and changes no similarity between different points."
        )
    check_memory(
        3 * 8 * n**2,
        "Splitting an indefinite similarity into its positive and negative part",
        "Use fewer points, or psd=True to use the similarity as it is.",
    )
    negative = -np.inf, -NEGLIGIBLE_EIGENVALUE * kernel.spectral_bound
    K = kernel.K.astype(np.float64)
    # one thread: the result must not depend on their number
    with limit_blas_threads():
        values, vectors = eigh(
            K, subset_by_value=negative, overwrite_a=True, check_finite=False
        )
    return np.asarray(np.sqrt(-values)[:, np.newaxis] * vectors.T)


def is_semidefinite(matrix: Array, tolerance: float) -> bool:
    """Return whether no eigenvalue of an array is below ``-tolerance``; destroys it.

    By a Cholesky factorization: n^3 / 3 operations, no further memory.
    """
    allocate_blas_buffers()
    # a zero matrix needs some shift too
    matrix.flat[:: len(matrix) + 1] += max(tolerance, np.finfo(float).tiny)
    try:
        cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return False
    return True
