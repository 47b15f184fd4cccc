# SPDX-License-Identifier: BSD-3-Clause
"""Leading eigenpairs by ``scipy.sparse.linalg.eigsh`` (tests/test_eigen.py).

ARPACK builds its Krylov space from one vector, and such a space contains one copy of a
multiple eigenvalue; the others appear through rounding, or not at all. So what it found
is *completed*: a random guard, orthogonal to what was found, is driven to the largest
eigenvalue that is left. Its Ritz value is never above that, so one above the smallest
eigenvalue found proves that a copy was missed, and the search goes on among the rest.
The guard has done its duty when its residual is smaller than its distance to them.

BLAS has one thread meanwhile: labels must not depend on how many there are, and each
wait for the others costs a slice of the scheduler where processors are shared.
"""

import inspect
from dataclasses import replace

import numpy as np
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from cdsk._linalg.block_lanczos import ritz_pairs
from cdsk._linalg.dense import largest_eigenpairs
from cdsk._runtime import one_blas_thread

# Basis vectors of ARPACK for a single eigenpair.
_SMALL_BASIS = 20

# Accuracy at which a guard is looked at first, and by how much more each time it says
# nothing yet.
_SETTLED, _TIGHTER = 0.05, 0.1

# A Ritz value above another by this part is larger, whatever rounding did.
_ROUNDING = 1e-10

# Newer versions of ARPACK draw a new vector where a Krylov space is exhausted.
_SEEDED = {"rng": 0} if "rng" in inspect.signature(eigsh).parameters else {}

# Up to here the operator is written out and solved by LAPACK.
_SMALL = 32

# What is taken off the eigenvalues of known vectors; those of interest are above -1.
_BELOW = 4.0

# Accuracy of a single eigenvalue, and products for it.
_ROUGH = 1e-3
_MOST_ROUGH_PRODUCTS = 1000


def leading_by_eigsh(
    product, start, k, *, known, tol, basis, max_products, n_threads, rng
):
    """Find the k leading eigenpairs orthogonal to ``known``, every copy of them.

    As ``leading_by_block_lanczos``, but for: ``basis``, the number of basis vectors of
    ARPACK; ``max_products``, about the most products with a single vector; ``tol``,
    relative to any eigenvalue; and ``rng``, which makes the guards.
    """
    spent = 0

    def search(product, start, k, tol, basis):
        nonlocal spent
        found = _search(product, start, k, tol, basis, max_products - spent, n_threads)
        spent += found.n_products
        return found

    product = _deflated(product, known)
    with one_blas_thread():
        found = search(product, start, k, tol, basis)
        # what cannot be resolved need not be complete
        while found.residuals.max() <= 10.0 * tol:
            smallest, rest = found.values[-1], _deflated(product, found.vectors)
            vectors, settled = rng.standard_normal((1, start.shape[1])), _SETTLED
            while True:
                guard = search(rest, vectors, 1, settled, _SMALL_BASIS)
                value, size = guard.values[0], max(abs(guard.values[0]), 1.0)
                missed = value > smallest + _ROUNDING * size
                certain = size * guard.residuals[0] <= max(smallest - value, tol * size)
                if missed or certain or spent >= max_products:
                    break
                vectors, settled = guard.vectors, _TIGHTER * settled
            if not missed:
                if not certain:  # nobody knows what is left
                    found.residuals[-1] = guard.residuals[0]
                break
            more = search(rest, guard.vectors, 1, tol, _SMALL_BASIS)
            both = np.concatenate([found.vectors, more.vectors])
            found = ritz_pairs(product, both, k, n_threads)
    return replace(found, n_products=spent)


def _deflated(product, known):
    """The operator with known eigenvectors moved below everything that is wanted."""

    def deflated(vectors):
        image = product(vectors)
        # also what rounding adds along them where their eigenvalues are large
        return image - ((image + _BELOW * vectors) @ known.T) @ known

    return deflated


def _search(product, start, k, tol, basis, max_products, n_threads):
    """One run of ARPACK, its pairs filled up by rough ones if it did not converge."""
    n = start.shape[1]
    if n <= _SMALL:
        matrix = product(np.eye(n))
        vectors = largest_eigenpairs(0.5 * (matrix + matrix.T), k)[1]
        return ritz_pairs(product, vectors, k, n_threads)
    calls = 0

    def single(vector):
        nonlocal calls
        calls += 1
        return product(vector.reshape(1, n))[0]

    basis = min(n, basis)
    try:
        _, columns = eigsh(
            LinearOperator((n, n), matvec=single, dtype=np.float64),
            k,
            which="LA",
            v0=start.sum(axis=0),
            ncv=basis,
            tol=tol,
            maxiter=max(1, max_products // basis),
            **_SEEDED,
        )
    except ArpackNoConvergence as error:
        columns = error.eigenvectors
    vectors = np.concatenate([columns.T, start[: k - columns.shape[1]]])
    found = ritz_pairs(product, vectors, k, n_threads)
    return replace(found, n_products=calls)


def largest_eigenvalue(product, bound, n, n_threads):
    """The largest eigenvalue of an operator, or up to a thousandth of ``bound`` more.

    ``bound`` is one of the magnitude of all eigenvalues, as a largest row sum.
    """
    if bound == 0.0:
        return 0.0
    start = np.random.RandomState(0).standard_normal((1, n))
    with one_blas_thread():
        found = _search(
            lambda vectors: product(vectors) / bound,
            *(start, 1, _ROUGH, _SMALL_BASIS, _MOST_ROUGH_PRODUCTS, n_threads),
        )
    # a residual bounds the distance to some eigenvalue, not to the largest
    return bound * min(float(found.values[0] + max(found.residuals[0], _ROUGH)), 1.0)
