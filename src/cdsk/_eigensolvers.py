# SPDX-License-Identifier: BSD-3-Clause
"""Leading eigenpairs of A = D^-1/2 S D^-1/2, by several solvers (tests/test_eigen.py).

"dense"          A is written out and solved by LAPACK
"eigsh"          ARPACK on A, as long as products cost no more than a factorization
                 would; then, if that is cheap, on ((1 + s) I - A)^-1, which separates
                 the eigenvalues that crowd at 1
"block_lanczos"  block Lanczos on A
"multilevel"     the same, with residuals preconditioned by a hierarchy of smaller
                 graphs; for sparse S only
"randomized"     subspace iteration from a random block
"auto"           "dense" for small problems and for a large part of the spectrum, else
                 "block_lanczos" where K is in memory; for sparse S "eigsh" if a
                 factorization is cheap, "multilevel" if not

All solvers give the same certificate: eigenvectors that are known, those of the
components of the graph, are *locked* (left out of the search); random *guard vectors*
search for every copy of an eigenvalue; and the residual of every pair is computed with
A itself. The number of products is bounded, and the residuals tell if it was too small.
docs/notes/2026-11-17-eigensolvers.md has the measurements.
"""

import inspect
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.linalg import LinAlgError, eigh, eigh_tridiagonal
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from cdsk._operators.base import Array, Product, Similarity
from cdsk._products import combine, inner
from cdsk._utils import check_memory

# Largest norm of A v - theta v. Where candidates are compared, a rough one suffices for
# the iterative solvers: it changes less than 0.1 % of the labels
# (docs/notes/2026-11-17-large.md).
TOLERANCE = 1e-6
ROUGH = 1e-4

# Number of points up to which, and fraction of the spectrum from which, LAPACK is as
# fast as any other solver.
DENSE_SIZE = 250
DENSE_FRACTION = 1 / 12

# Products of a spectral step: with a vector, with a block, with a preconditioned block.
MAX_PRODUCTS = 5000
MAX_BLOCK_PRODUCTS = 1000
_MAX_PRECONDITIONED_PRODUCTS = 200

# Cost of a factorization, in products, up to which "auto" uses it.
_MAX_FACTORIZATION_COST = 250

# Basis vectors of eigsh on A, per eigenpair and at least. Measured on 10 000 images of
# MNIST, ten eigenpairs: 30, 60 and 100 take the same time where clusters are separated,
# and more need fewer products where eigenvalues crowd. On the inverse the default of
# SciPy suffices.
_BASIS_FACTOR, _MIN_BASIS = 4, 60

# The inverse is that of (1 + shift) I - A. Where dozens of eigenvalues crowd within the
# first shift, as outliers of a narrow kernel make them, the second separates them. Its
# eigenvectors have this accuracy relative to its norm; the residuals of A are at most
# four times as large, relative to the norm of A.
SHIFTS = 1e-7, 1e-11
_INVERSE_TOLERANCE = 1e-10
_MAX_SOLVES = 1000

# Number of guard vectors, and the residual at which the first one has converged.
N_GUARDS = 4
GUARD_TOLERANCE = 0.05


@dataclass
class Eigenpairs:
    """Leading eigenpairs, largest first."""

    values: Array  # (k,)
    vectors: Array  # (k, n)
    # norms of A v - theta v, relative to theta where that is above 1
    residuals: Array
    n_products: int
    used_inverse: bool = False


@dataclass(frozen=True)
class EigenProblem:
    """The k leading eigenpairs of an operator that are orthogonal to ``locked`` ones.

    ``product`` applies the operator to each row of an (m, n) array; ``locked`` holds
    orthonormal eigenvectors (m, n). Results do not depend on ``n_threads``.
    """

    product: Product
    k: int
    locked: Array
    n_threads: int


def leading_eigenpairs(
    similarity: Similarity,
    locked: Array,
    k: int,
    *,
    solver: str,
    rng: np.random.RandomState,
    tol: float = TOLERANCE,
    start: Eigenpairs | None = None,
) -> Eigenpairs:
    """Return the k leading ``Eigenpairs`` beyond the ``locked`` vectors.

    ``start`` are those of a similar problem. ARPACK and LAPACK ignore ``tol``: a higher
    accuracy costs them little.
    """
    n, n_threads = similarity.kernel.n, similarity.kernel.n_threads
    problem = EigenProblem(similarity.normalized_product, k, locked, n_threads)
    if solver == "dense" or n <= DENSE_SIZE or len(locked) + k > DENSE_FRACTION * n:
        if n > DENSE_SIZE:
            hint = f"Ask for at most n_samples / 12 = {n // 12} clusters, or another "
            hint += "eigen_solver."
            check_memory(4 * 8 * n * n, "A dense spectral step", hint)
        return _solve_dense(problem, n)
    # fresh guard vectors each time: the next iteration can find what this one missed
    old = locked[:0] if start is None else start.vectors[:k]
    guesses = np.concatenate([old, rng.standard_normal((k + N_GUARDS - len(old), n))])
    if solver == "auto" and similarity.is_sparse:
        cost = similarity.factorization_cost
        is_cheap = cost is not None and cost <= _MAX_FACTORIZATION_COST
        solver = "eigsh" if is_cheap else "multilevel"
    if solver == "eigsh":
        # what was too hard for products will be so again
        use_inverse = start is not None and start.used_inverse
        return _solve_sparse(similarity, problem, guesses, use_inverse, rng)
    if solver == "randomized":
        return solve_randomized(
            problem, guesses, tol=tol, max_products=MAX_BLOCK_PRODUCTS
        )
    inverse = similarity.preconditioner() if solver == "multilevel" else None
    max_products = MAX_BLOCK_PRODUCTS
    if inverse is not None:
        guesses[len(old) :] = inverse(guesses[len(old) :])
        max_products = _MAX_PRECONDITIONED_PRODUCTS
    return solve_block_lanczos(
        problem, guesses, tol=tol, max_products=max_products, preconditioner=inverse
    )


def _solve_dense(problem: EigenProblem, n: int) -> Eigenpairs:
    locked, n_threads = problem.locked, problem.n_threads
    matrix = problem.product(np.eye(n))
    # deflated to -2, below the spectrum
    deflated = 0.5 * (matrix + matrix.T) - 3.0 * combine(locked, locked, n_threads)
    values, vectors = largest_eigenpairs(deflated, problem.k)
    residuals = problem.product(vectors) - values[:, np.newaxis] * vectors
    return Eigenpairs(values, vectors, _relative_norms(residuals, values), n_products=1)


def _solve_sparse(
    similarity: Similarity,
    problem: EigenProblem,
    guesses: Array,
    use_inverse: bool,
    rng: np.random.RandomState,
) -> Eigenpairs:
    """Search by ``eigsh`` on A, and on its inverse if that is cheaper or fails."""
    k, cost = problem.k, similarity.factorization_cost
    n_basis = max(_BASIS_FACTOR * k, _MIN_BASIS)
    if cost is None or (cost >= 2 * n_basis and not use_inverse):
        found = solve_eigsh(
            problem,
            guesses,
            tol=0.1 * TOLERANCE,  # ARPACK estimates the residual
            n_basis=n_basis,
            max_products=cost or MAX_PRODUCTS,
            rng=rng,
        )
        if cost is None or found.residuals.max() <= TOLERANCE:
            return found
    for shift in SHIFTS:
        found = solve_eigsh(
            replace(problem, product=similarity.factorize(shift)),
            guesses,
            tol=_INVERSE_TOLERANCE,
            n_basis=max(2 * k + 1, 20),
            max_products=_MAX_SOLVES,
            rng=rng,
        )
        pairs = ritz_pairs(problem.product, found.vectors, k, problem.n_threads)
        # those of the inverse tell if a copy may have been missed
        residuals = np.maximum(pairs.residuals, found.residuals)
        if residuals.max() <= TOLERANCE:
            break
        guesses = np.concatenate([pairs.vectors, guesses[k:]])
    n_products = found.n_products
    return replace(pairs, residuals=residuals, n_products=n_products, used_inverse=True)


def ritz_pairs(product: Product, vectors: Array, k: int, n_threads: int) -> Eigenpairs:
    """Return the k leading eigenpairs of the operator projected on span(vectors)."""
    vectors = _orthonormalize(np.ascontiguousarray(vectors), (), n_threads)
    image = product(vectors)
    values, rotation = all_eigenpairs(inner(vectors, image, n_threads))
    values, rotation = values[:k], np.ascontiguousarray(rotation[:, :k])
    vectors = combine(rotation, vectors, n_threads)
    residuals = combine(rotation, image, n_threads) - values[:, np.newaxis] * vectors
    return Eigenpairs(values, vectors, _relative_norms(residuals, values), n_products=1)


def _relative_norms(residuals: Array, values: Array) -> Array:
    """Return the norms of residuals, relative to eigenvalues of magnitude above 1."""
    norms: Array = np.linalg.norm(residuals, axis=1)
    return norms / np.maximum(np.abs(values), 1.0)


# Block Lanczos with full orthogonalization and thick restart.
#
# The problem is projected on a basis Q (Rayleigh-Ritz), the residuals r = A v - theta v
# are computed, and Q is extended by those that are too large and by their images under
# A. Where the operator is a matrix in memory, one pass over it serves the whole block,
# and the vectors of one problem are a good start for the next: measured on 4000 points,
# 10 vectors, residual 1e-6, a quarter of the time of ``eigsh``.
#
# The search ends only when the first guard vector has converged too: an eigenvalue that
# the start lacked pulls a guard vector up, which becomes one of the k leading ones.

# Size of the basis, unless four blocks are larger; a restart keeps the leading half of
# its Ritz vectors. Usually 10 to 20 products suffice. Where eigenvalues crowd there are
# hundreds: then, after the first 30, a larger basis needs fewer of them, and the
# projected problem is solved only after every fourth.
_BASIS_SIZE, _LARGE_BASIS_SIZE = 80, 200
_LARGE_BASIS_FROM, _LARGE_BASIS_STRIDE = 30, 4


def solve_block_lanczos(
    problem: EigenProblem,
    start: Array,
    *,
    tol: float,
    max_products: int,
    preconditioner: Product | None = None,
    stop_if_slow: bool = False,
) -> Eigenpairs:
    """Solve an ``EigenProblem`` by a block Lanczos method.

    ``start`` (m, n) holds first guesses, the last m - k are guard vectors; ``tol`` is
    the largest norm of A v - theta v, relative to theta where that is above 1;
    ``max_products`` counts products with a block. With a ``preconditioner``, about the
    inverse of a multiple of I - A, the method is that of Davidson. ``stop_if_slow``
    stops, after a quarter of the products or later, as soon as the logarithm of the
    residuals falls too slowly to reach that of tol within max_products.
    """
    k, width = problem.k, len(start)
    space = _Subspace(problem, start)
    while True:
        # images of preconditioned residuals are of no use
        is_slow = space.n_products >= _LARGE_BASIS_FROM and preconditioner is None
        stride = _LARGE_BASIS_STRIDE if is_slow else 1
        max_size = max(4 * width, _LARGE_BASIS_SIZE if is_slow else _BASIS_SIZE)
        values, vectors, images = space.ritz_vectors(width, stride * width, max_size)
        residuals = images - values[:, np.newaxis] * vectors
        norms = np.linalg.norm(residuals, axis=1) / np.maximum(np.abs(values), 1.0)
        too_large = norms > np.where(np.arange(len(norms)) < k, tol, GUARD_TOLERANCE)
        if not too_large[: k + 1].any() or space.n_products >= max_products:
            break
        spent = space.n_products / max_products
        if stop_if_slow and spent >= 0.25 and norms[:k].max() > tol**spent:
            break
        block = residuals[too_large]
        if preconditioner is not None:
            block = preconditioner(block)
        if not space.extend(block, stride):
            break
    return Eigenpairs(values[:k], vectors[:k], norms[:k], space.n_products)


class _Subspace:
    """An orthonormal basis Q (m, n), its image A Q and the projected matrix Q'A Q."""

    def __init__(self, problem: EigenProblem, start: Array) -> None:
        self._problem = problem
        self._rows = np.empty((2, 0, start.shape[1]))  # of the basis and of its image
        self._size = self.n_products = 0
        self._projected = np.empty((0, 0))
        self.extend(start, 1)

    def extend(self, block: Array, n_products: int) -> bool:
        """Append a block, its image and so on; return False if none is independent."""
        before, n_threads = self.n_products, self._problem.n_threads
        for _ in range(n_products):
            fixed = self._problem.locked, self._rows[0, : self._size]
            block = _orthonormalize(block, fixed, n_threads)
            if not len(block):
                break
            image = self._problem.product(block)
            self._append(block, image)
            columns = inner(self._rows[0, : self._size], image, n_threads)
            upper = [self._projected, columns[: len(self._projected)]]
            self._projected = np.block([upper, [columns.T]])
            self.n_products += 1
            block = image
        return self.n_products > before

    def ritz_vectors(
        self, k: int, room: int, max_size: int
    ) -> tuple[Array, Array, Array]:
        """Return the k leading Ritz values, vectors and their images.

        If the basis has no room for so many vectors, restart it from the leading ones.
        """
        values, rotation = all_eigenpairs(self._projected)
        restart = self._size + room > max_size
        kept = max(k, max_size // 2) if restart else k
        rotation = np.ascontiguousarray(rotation[:, :kept])
        basis, image = self._rows[:, : self._size]
        vectors = combine(rotation, basis, self._problem.n_threads)
        images = combine(rotation, image, self._problem.n_threads)
        if restart:
            self._projected, self._size = np.diag(values[:kept]), 0
            self._append(vectors, images)
        return values[:k], vectors[:k], images[:k]

    def _append(self, block: Array, image: Array) -> None:
        end, n = self._size + len(block), block.shape[1]
        if end > self._rows.shape[1]:
            capacity = max(4 * end, _BASIS_SIZE)  # at first
            capacity = end + _LARGE_BASIS_SIZE if self._size else capacity
            stage = "The basis of the spectral step, with its image,"
            check_memory(2 * 8 * n * capacity, stage, "Use fewer points or clusters.")
            rows = np.empty((2, capacity, n))
            rows[:, : self._size] = self._rows[:, : self._size]
            self._rows = rows
        self._rows[0, self._size : end] = block
        self._rows[1, self._size : end] = image
        self._size = end


def _orthonormalize(vectors: Array, fixed: tuple[Array, ...], n_threads: int) -> Array:
    """Return an orthonormal basis of the span, orthogonal to ``fixed``; may be smaller.

    By the eigenvectors of the Gram matrix, twice: the second pass removes the rounding
    errors of the first one.
    """
    for _ in range(2):
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = vectors / np.maximum(length, np.finfo(float).tiny)
        for rows in fixed:
            cosines = inner(rows, vectors, n_threads)
            vectors = vectors - combine(cosines, rows, n_threads)
        values, rotation = all_eigenpairs(inner(vectors, vectors, n_threads))
        independent = values > 1e-14
        rotation = rotation[:, independent] / np.sqrt(values[independent])
        vectors = combine(np.ascontiguousarray(rotation), vectors, n_threads)
    return vectors


# Subspace iteration: the randomized range finder of Halko, Martinsson & Tropp (2011,
# algorithm 4.4), whose power iterations go on until the certificate holds.
#
# Block Lanczos keeps the images of many steps, this method those of the last one: it
# needs less memory and more products.


def solve_randomized(
    problem: EigenProblem, start: Array, *, tol: float, max_products: int
) -> Eigenpairs:
    """Solve an ``EigenProblem`` of eigenvalues in [-1, 1] by subspace iteration.

    Arguments and certificate are those of ``solve_block_lanczos``.
    """
    k, n_threads, block, n_products = problem.k, problem.n_threads, start, 0
    while True:
        basis = _orthonormalize(block, (problem.locked,), n_threads)
        image, n_products = problem.product(basis), n_products + 1
        values, rotation = all_eigenpairs(inner(basis, image, n_threads))
        rotation = np.ascontiguousarray(rotation)
        vectors = combine(rotation, basis, n_threads)
        images = combine(rotation, image, n_threads)
        norms = _relative_norms(images - values[:, np.newaxis] * vectors, values)
        bounds = np.where(np.arange(len(norms)) < k, tol, GUARD_TOLERANCE)
        if (norms <= bounds)[: k + 1].all() or n_products >= max_products:
            return Eigenpairs(values[:k], vectors[:k], norms[:k], n_products)
        block = images + vectors  # of I + A, which has no negative eigenvalues


# ``scipy.sparse.linalg.eigsh``, completed.
#
# ARPACK builds its Krylov space from one vector, and such a space contains one copy of
# a multiple eigenvalue; others appear through rounding, or not at all. So a random
# guard vector, orthogonal to the pairs found, is driven to the largest eigenvalue left.
# Its Ritz value is never above that one: if it is above the smallest eigenvalue found,
# a copy was missed, and the search continues with it. If its residual is smaller than
# its distance to them, nothing was missed.

# Basis vectors of ARPACK for a single eigenpair.
_SMALL_BASIS = 10

# Factor of the tolerance of a guard vector each time its residual decides nothing.
_GUARD_REFINEMENT = 0.1

# Relative difference of Ritz values that is not due to rounding.
_ROUNDING = 1e-10

# Newer versions of ARPACK draw a new vector where a Krylov space is exhausted.
_SEED = {"rng": 0} if "rng" in inspect.signature(eigsh).parameters else {}

# Up to this size the operator is written out and solved by LAPACK.
_LAPACK_SIZE = 32

# Subtracted from the eigenvalues of locked vectors; those searched for are above -1.
_DEFLATION = 4.0

# Accuracy and products of ``largest_eigenvalue``.
_EIGENVALUE_TOLERANCE = 1e-3
_MAX_EIGENVALUE_PRODUCTS = 1000

# Products of ``largest_eigenvalue`` between two looks at its residual.
_CHECK_INTERVAL = 5


def solve_eigsh(
    problem: EigenProblem,
    start: Array,
    *,
    tol: float,
    n_basis: int,
    max_products: int,
    rng: np.random.RandomState,
) -> Eigenpairs:
    """Solve an ``EigenProblem`` by ARPACK, with every copy of an eigenvalue.

    As ``solve_block_lanczos``, but for: ``n_basis``, the number of basis vectors of
    ARPACK; ``max_products``, about the maximum number of products with a vector;
    ``tol``, relative to any eigenvalue; and ``rng``, which draws the guard vectors.
    """
    arpack = _Arpack(max_products, problem.n_threads)
    product = _deflate(problem.product, problem.locked)
    found = arpack.search(product, start, problem.k, tol, n_basis)
    # pairs that are not resolved need not be complete
    while found.residuals.max() <= 10.0 * tol:
        rest = _deflate(product, found.vectors)
        guard = rng.standard_normal((1, start.shape[1]))
        last = found.values[-1]
        probe, is_missed, is_certain = _probe(arpack, rest, guard, last, tol)
        if not is_missed:
            if not is_certain:  # a copy may be missing
                found.residuals[-1] = probe.residuals[0]
            break
        missed = arpack.search(rest, probe.vectors, 1, tol, _SMALL_BASIS)
        vectors = np.concatenate([found.vectors, missed.vectors])
        found = ritz_pairs(product, vectors, problem.k, problem.n_threads)
    return replace(found, n_products=arpack.n_products)


def _probe(
    arpack: "_Arpack", product: Product, guard: Array, smallest: float, tol: float
) -> tuple[Eigenpairs, bool, bool]:
    """Search for an eigenvalue above ``smallest``; is there one, and is it certain."""
    guard_tol = GUARD_TOLERANCE
    while True:
        probe = arpack.search(product, guard, 1, guard_tol, _SMALL_BASIS)
        value, scale = probe.values[0], max(abs(probe.values[0]), 1.0)
        is_missed = bool(value > smallest + _ROUNDING * scale)
        error = scale * probe.residuals[0]
        is_certain = bool(error <= max(smallest - value, tol * scale))
        if is_missed or is_certain or arpack.n_products >= arpack.max_products:
            return probe, is_missed, is_certain
        guard, guard_tol = probe.vectors, _GUARD_REFINEMENT * guard_tol


def _deflate(product: Product, locked: Array) -> Product:
    """Return the operator with locked eigenvectors moved to the end of the spectrum."""

    def deflated(vectors: Array) -> Array:
        image = product(vectors)
        # also what rounding adds along them where their eigenvalues are large
        result: Array = image - ((image + _DEFLATION * vectors) @ locked.T) @ locked
        return result

    return deflated


@dataclass
class _Arpack:
    """Runs of ARPACK that share a bound of their products."""

    max_products: int
    n_threads: int
    n_products: int = 0

    def search(
        self, product: Product, start: Array, k: int, tol: float, n_basis: int
    ) -> Eigenpairs:
        """Return k pairs, those of ``start`` in place of what did not converge."""
        n = start.shape[1]
        if n <= _LAPACK_SIZE:
            self.n_products += 1
            return _solve_dense(EigenProblem(product, k, start[:0], self.n_threads), n)
        max_products, n_basis = self.max_products - self.n_products, min(n, n_basis)

        def apply(vector: Array) -> Array:
            self.n_products += 1
            image: Array = product(vector.reshape(1, n))[0]
            return image

        try:
            _, columns = eigsh(
                LinearOperator((n, n), matvec=apply, dtype=np.float64),
                k,
                which="LA",
                v0=start.sum(axis=0),
                ncv=n_basis,
                tol=tol,
                maxiter=max(1, max_products // n_basis),
                **_SEED,
            )
        except ArpackNoConvergence as error:
            columns = error.eigenvectors
        vectors = np.concatenate([columns.T, start[: k - columns.shape[1]]])
        return ritz_pairs(product, vectors, k, self.n_threads)


def largest_eigenvalue(product: Product, bound: float, n: int, n_threads: int) -> float:
    """Return the largest eigenvalue, or up to a thousandth of ``bound`` more.

    ``bound`` is one of the magnitude of all eigenvalues, such as the largest row sum.
    """
    if bound == 0.0:
        return 0.0
    tol = _EIGENVALUE_TOLERANCE
    if n <= DENSE_SIZE:
        values, _ = largest_eigenpairs(product(np.eye(n)) / bound, 1)
        return bound * min(float(values[0]) + tol, 1.0)
    # Lanczos without restarts; rounding adds copies of eigenvalues, but none above
    image, vector = np.random.RandomState(0).standard_normal((1, n)), np.zeros((1, n))
    norms, diagonal = [float(np.linalg.norm(image))], list[float]()
    value, residual = 0.0, np.inf
    while residual > tol and len(diagonal) < _MAX_EIGENVALUE_PRODUCTS:
        before, vector = vector, image / norms[-1]
        image = product(vector) / bound
        diagonal.append(float(inner(vector, image, n_threads)[0, 0]))
        image -= diagonal[-1] * vector
        if len(diagonal) > 1:
            image -= norms[-1] * before
        norms.append(float(np.sqrt(inner(image, image, n_threads)[0, 0])))
        if norms[-1] <= tol or len(diagonal) % _CHECK_INTERVAL == 0:
            last = len(diagonal) - 1
            values, vectors = eigh_tridiagonal(
                diagonal, norms[1:-1], select="i", select_range=(last, last)
            )
            value, residual = float(values[0]), norms[-1] * abs(float(vectors[-1, 0]))
    # a residual bounds the distance to some eigenvalue, not to the largest
    return bound * min(value + max(residual, tol), 1.0)


# Symmetric eigenproblems by LAPACK, largest values first.


def all_eigenpairs(matrix: Array) -> tuple[Array, Array]:
    """Return eigenvalues (n,) and eigenvectors (n, n), as columns, of a small matrix.

    Only the symmetric part counts.
    """
    values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    return values[::-1], vectors[:, ::-1]


def largest_eigenpairs(matrix: Array, k: int) -> tuple[Array, Array]:
    """Return the k largest eigenvalues (k,) and vectors (k, n); destroy the matrix."""
    n, diagonal = len(matrix), np.diagonal(matrix).copy()
    solve = partial(eigh, overwrite_a=True, check_finite=False)
    try:
        values, vectors = solve(matrix, subset_by_index=(n - k, n - 1))
    except LinAlgError:
        values = np.empty(0)
    if len(values) < k:
        # The driver for some of the pairs can fail where many values are equal, or find
        # none; it leaves what is above the diagonal as it was.
        np.fill_diagonal(matrix, diagonal)
        values, vectors = solve(matrix, lower=False, driver="evd")
        values, vectors = values[n - k :], vectors[:, n - k :]
    return values[::-1], fix_signs(np.ascontiguousarray(vectors.T[::-1]))


def fix_signs(vectors: Array) -> Array:
    """Make the entry of largest magnitude of each vector (m, n) positive."""
    peak = np.argmax(np.abs(vectors), axis=1, keepdims=True)
    signs: Array = np.sign(np.take_along_axis(vectors, peak, axis=1))
    return vectors * signs
