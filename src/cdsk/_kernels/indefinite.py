# SPDX-License-Identifier: BSD-3-Clause
"""Similarities that need not be positive semi-definite: the negative part of K.

The eigen-decomposition splits a symmetric K into K+ - K-, both semi-definite (the
paper's Lemma on the decomposition of a similarity), and |K| = K+ + K- = K + 2 K-. CDS
regularises with |K| in the place of K:

    S_ij = 2 (alpha_i + alpha_j) K_ij - 2 penalty alpha_i alpha_j |K|_ij
    minimise  q'a + penalty a'(|K| o G)a,      q_i = sum_j K_ij (1 - 2 G_ij)

and |K| o G is semi-definite, so the weight step is convex for every K. For a
semi-definite K the negative part is empty and both are the formulas of CDSK: there is
one code for both, in which a dense kernel has a ``NegativePart``, usually of rank 0.

K- = F'F is kept by its factor F (r, n), one row per negative eigenvalue. Products and
rows of |K| then cost O(nr) more than those of K, and the fit has no second n x n array.
Where r is a large part of n, that would take longer than finding F; then K- is stored.
The eigenpairs come from the block Lanczos method applied to -K, and a Cholesky
factorisation of K + K- shows that none is missing; where the method takes too long,
because they are many or crowd at 0, they come from LAPACK.
"""

from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.linalg import eigh

from cdsk import _rows
from cdsk._block import combine, inner
from cdsk._kernels.interface import NEGLIGIBLE_EDGE
from cdsk._kernels.matrix import is_semidefinite
from cdsk._linalg.block_lanczos import GUARDS, leading_by_block_lanczos
from cdsk._runtime import check_memory, one_blas_thread

# Relative to the largest row sum of K, a bound of the spectrum. Eigenvalues above minus
# this are taken for 0, which changes |K| by at most twice as much. It moves the
# gradient of the weight step by at most 4e-6 sqrt(n lam) of its scale, less than qp_tol
# asks for, and is what float32 entries leave of a semi-definite matrix.
NEGLIGIBLE = 1e-6

# Accuracy of the negative eigenvectors, as a residual relative to the same bound. The
# error of K- is of the same order, however close to each other eigenvalues are.
_TOLERANCE = 1e-9

# Up to here LAPACK is as quick as anything; beyond the second it takes three minutes
# and more, and is refused (docs/notes/2026-11-16-indefinite.md).
_SMALL = 1000
_LARGEST_DENSE = 10_000

# Part of the eigenvalues that have to be negative for K- to be stored as a matrix.
# LAPACK, which finds so many, took more memory.
_STORED_FROM = 1 / 8

# Eigenpairs asked for at first; twice as many each time all of them were negative.
_FIRST_BATCH = 8

# Products of K with a column that the block method may take. LAPACK costs as much as n
# of them or more, so that a search in vain adds a quarter to its time at most.
_FEWEST_VECTORS = 720


def _vector_budget(n):
    return max(_FEWEST_VECTORS, n // 4)


class NegativePart:
    """K- = F'F of a kernel, from the factor F (r, n); r = 0 if K is semi-definite."""

    def __init__(self, factor, n_threads):
        self.factor = np.ascontiguousarray(factor)
        self.n_threads = n_threads

    @classmethod
    def none(cls, n):
        """The negative part of a semi-definite kernel of size n."""
        return cls(np.empty((0, n)), 1)

    @property
    def rank(self):
        """Number of negative eigenvalues."""
        return len(self.factor)

    @cached_property
    def diagonal(self):
        """Diagonal of K-."""
        return np.einsum("rn,rn->n", self.factor, self.factor)

    @cached_property
    def rows(self):
        """Compiled rows of K-; None if it is empty."""
        if not self.rank:
            return None
        if self.rank <= _STORED_FROM * self.factor.shape[1]:
            return _rows.NegativeRows(self.factor, np.ascontiguousarray(self.factor.T))
        with one_blas_thread():
            return _rows.NegativeRows(self.factor.T @ self.factor)

    def product(self, vectors):
        """Off-diagonal K- times each vector (m, n)."""
        coefficients = inner(self.factor, np.ascontiguousarray(vectors), self.n_threads)
        product = combine(coefficients, self.factor, self.n_threads)
        return product - self.diagonal * vectors

    def absolute_rows(self, rows):
        """Compiled rows of |K|, given those of K."""
        return _rows.AbsoluteRows(rows, self.rows) if self.rank else rows

    def clipped(self, rows, weights, penalty, degrees):
        """Sparse matrix of minus the negative entries of S, its diagonal left out.

        S plus this matrix is max(S, 0). A pair with K_ij >= 2 K-_ij is never in it as
        long as weights are at most 1 / penalty, since then S_ij >= 2 max(alpha_i,
        alpha_j) (K_ij - 2 K-_ij). Entries that are negligible beside ``degrees`` are
        left out; there would be many.
        """
        n = self.factor.shape[1]
        if not self.rank:
            return sparse.csr_array((n, n))
        i, j, values = _rows.clipped_pairs(
            rows, self.rows, weights, penalty, degrees, NEGLIGIBLE_EDGE
        )
        ends = np.concatenate([i, j]), np.concatenate([j, i])
        return sparse.csr_array((np.tile(values, 2), ends), shape=(n, n))


def split(matrix, psd):
    """``NegativePart`` of a ``SymmetricMatrix`` of non-negative entries.

    If ``psd``, there is none; None looks whether there is one.
    """
    if psd or (psd is None and _shows_no_negative_part(matrix)):
        return NegativePart.none(matrix.n)
    return negative_part(matrix)


def _shows_no_negative_part(matrix):
    """True if no eigenvalue of K is below minus ``NEGLIGIBLE`` times the bound.

    By a Cholesky factorisation; where that is too much, by the smallest Ritz value. One
    that is negative is a proof, so that a short search comes first.
    """
    none = np.empty((0, matrix.n))
    if matrix.n <= _LARGEST_DENSE:
        return _factorises(matrix, none)
    minus = _Minus(matrix)
    found = minus.search(none, 1, none, NEGLIGIBLE, _vector_budget(matrix.n) // 10)
    if found.values[0] <= NEGLIGIBLE < found.residuals[0]:
        found = minus.search(found.vectors, 1, none, NEGLIGIBLE, minus.vectors_left)
    return bool(found.values[0] <= NEGLIGIBLE)


def negative_part(matrix):
    """``NegativePart`` of a matrix that may be indefinite.

    Eigenvalues above minus ``NEGLIGIBLE`` times the bound count as 0. The block method
    is tried first; it succeeds if the negative eigenvalues are few and apart from 0.
    """
    factor = _factor_by_block_method(matrix) if matrix.n > _SMALL else None
    if factor is None:
        if matrix.n > _LARGEST_DENSE:
            _refuse(matrix.n)
        factor = _factor_by_lapack(matrix)
    # a point without neighbours is a component of its own: K- is 0 there but for noise
    factor[:, matrix.row_sums == 0] = 0.0
    return NegativePart(factor, matrix.n_threads)


def _factor_by_block_method(matrix):
    """The factor F of K- = F'F, or None where it takes too many products.

    A search that need not converge shows negative eigenvalues, which are then refined.
    They are complete if K + F'F factorises; or, where a factorisation is too much, if
    the search converged and its last eigenvalue is not negative.
    """
    minus = _Minus(matrix)
    certified = matrix.n <= _LARGEST_DENSE
    values, vectors = np.empty(0), np.empty((0, matrix.n))
    batch = _FIRST_BATCH
    while minus.vectors_left > 0:
        found = minus.search(
            vectors[:0], batch, vectors, NEGLIGIBLE, minus.vectors_left // 3
        )
        negative = found.values > NEGLIGIBLE
        complete = found.residuals.max() <= NEGLIGIBLE and not negative.all()
        if negative.any():
            found = minus.search(
                found.vectors[negative],
                np.count_nonzero(negative),
                vectors,
                _TOLERANCE,
                minus.vectors_left,
                in_pace=True,
            )
            if found.residuals.max() > _TOLERANCE:
                return None
            values = np.concatenate([values, found.values])
            vectors = np.concatenate([vectors, found.vectors])
        factor = np.sqrt(matrix.bound * values)[:, np.newaxis] * vectors
        if complete or (certified and _factorises(matrix, factor)):
            return factor
        if not negative.any():
            return None
        batch *= 2
    return None


class _Minus:
    """The operator -K / bound, which counts how many vectors it may still take."""

    def __init__(self, matrix):
        self.matrix = matrix
        self.vectors_left = _vector_budget(matrix.n)
        # the same for every call, so that a kernel can be made again
        self._rng = np.random.RandomState(0)

    def __call__(self, vectors):
        self.vectors_left -= len(vectors)
        product = self.matrix.product(vectors) + self.matrix.diagonal * vectors
        return product / -self.matrix.bound

    def search(self, start, k, known, tol, max_vectors, *, in_pace=False):
        """K leading eigenpairs from a start that is filled up with random vectors."""
        width = k + GUARDS
        guards = self._rng.standard_normal((width - len(start), self.matrix.n))
        return leading_by_block_lanczos(
            self,
            np.concatenate([start, guards]),
            k,
            known=known,
            tol=tol,
            max_steps=max_vectors // width,
            n_threads=self.matrix.n_threads,
            in_pace=in_pace,
        )


def _factorises(matrix, factor):
    """True if K + F'F, with what is negligible added to the diagonal, is definite."""
    check_memory(
        (2 if len(factor) else 1) * 8 * matrix.n**2,
        "Testing if a similarity is positive semi-definite",
        "Use fewer points, or psd=True, which makes no test.",
    )
    copy = matrix.K.astype(np.float64)
    if len(factor):
        copy += factor.T @ factor
    return is_semidefinite(copy, NEGLIGIBLE * matrix.bound)


def _factor_by_lapack(matrix):
    """The factor F of K- = F'F from a dense eigen-decomposition."""
    check_memory(
        3 * 8 * matrix.n**2,
        "Splitting an indefinite similarity into its positive and negative part",
        "Use fewer points, or psd=True, which uses the similarity as it is.",
    )
    # One thread: the result must not depend on how many there are.
    with one_blas_thread():
        values, vectors = eigh(
            matrix.K.astype(np.float64),
            subset_by_value=[-np.inf, -NEGLIGIBLE * matrix.bound],
            overwrite_a=True,
            check_finite=False,
        )
    return np.sqrt(-values)[:, np.newaxis] * vectors.T


def _refuse(n):
    seconds = 1.5 * (n / 2000) ** 3  # measured at 2000; cubic
    raise ValueError(
        f"The similarity of {n} points is not positive semi-definite, and its negative "
        f"part was not found in {_vector_budget(n)} products with a vector: it has "
        f"many eigenvalues, or some near 0. LAPACK would take some {seconds:.0f} s and "
        f"{3 * 8 * n * n:,} bytes, and is used for at most {_LARGEST_DENSE} points. "
        "Expected fewer points; or psd=True, which uses the similarity as it is, in a "
        "weight step that is then not convex; or a larger diagonal: adding minus the "
        "smallest eigenvalue to it makes a matrix semi-definite and changes no "
        "similarity between different points."
    )
