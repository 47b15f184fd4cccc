# SPDX-License-Identifier: BSD-3-Clause
"""Solvers of the spectral step: leading eigenpairs of A = D^-1/2 S D^-1/2.

=========  =============================================================================
"dense"    A is written out and solved by LAPACK
"eigsh"    ARPACK on A, as long as products cost no more than a factorisation would;
           then, if that is cheap, on ((1 + s) I - A)^-1, which pulls apart the
           eigenvalues that crowd at 1
"block"    block Lanczos on A
"levels"   the same, its residuals smoothed by a hierarchy of smaller graphs; only
           where S is sparse
"auto"     "dense" for small problems and for those that want a large part of the
           spectrum; else "block" where K is in memory; where S is sparse "eigsh" if a
           factorisation is cheap, "levels" if not
=========  =============================================================================

Whoever solves, the certificate is the same: components of the graph are known and left
out of the search, every copy of an eigenvalue is looked for with random guards, and the
residual of every pair is measured with A itself. Products are bounded: what they do not
suffice for is *unresolved*, which its residual tells.
docs/notes/2026-11-17-eigensolvers.md has the measurements.
"""

import numpy as np

from cdsk._block import combine
from cdsk._linalg.block_lanczos import (
    GUARDS,
    Eigenpairs,
    leading_by_block_lanczos,
    ritz_pairs,
)
from cdsk._linalg.dense import largest_eigenpairs
from cdsk._linalg.eigsh import leading_by_eigsh
from cdsk._runtime import check_memory

SOLVERS = ("auto", "eigsh", "block", "levels", "dense")

# Accuracy of the eigenvectors: the norm of A v - theta v. Where candidates are compared
# less will do for the solvers that take longer for more: labels change by less than
# 0.1 % (docs/notes/2026-11-17-large.md).
TOLERANCE = 1e-6
ROUGH = 1e-4

# Up to here, or for more than this part of the spectrum, a dense solver is as quick as
# any.
DENSE_SIZE = 250
DENSE_PART = 1 / 12

# Products with a vector, and with a block, before a spectral step is given up.
MOST_PRODUCTS = 5000
MOST_BLOCK_PRODUCTS = 1000
_MOST_CYCLES = 200

# What a factorisation may cost, in products, to be used without being asked for.
_CHEAP_INVERSE = 250

# Basis vectors of eigsh on A, per wanted one and at least. Measured, 10 000 images of
# MNIST, ten wanted: 30, 60 and 100 need the same time where clusters are seen, and more
# need fewer products where eigenvalues crowd. On its inverse those of SciPy suffice.
_BASIS_FACTOR, _LEAST_BASIS = 4, 60

# The inverse is that of (1 + shift) I - A. Where dozens of eigenvalues crowd within the
# first shift, as outliers of a narrow kernel make them, the second pulls them apart.
# Its eigenvectors are found to this accuracy, relative to its norm; the residuals of A
# are at most four times as large, relative to that of A.
SHIFTS = 1e-7, 1e-11
_INVERSE_TOLERANCE = 1e-10
_MOST_SOLVES = 1000


def leading_eigenpairs(similarity, known, k, *, solver, rng, tol=TOLERANCE, start=None):
    """The k leading ``Eigenpairs`` beyond the ``known`` vectors.

    ``start`` are those of a similar problem. ARPACK, and LAPACK, find them as well as
    they can do whatever ``tol``: more costs them little.
    """
    n = similarity.n
    if solver == "dense" or n <= DENSE_SIZE or len(known) + k > DENSE_PART * n:
        return _dense(similarity, known, k)
    # Fresh vectors each time: what one round missed, the next can find.
    old = known[:0] if start is None else start.vectors[:k]
    guesses = np.concatenate([old, rng.standard_normal((k + GUARDS - len(old), n))])
    options = {"known": known, "n_threads": similarity.n_threads}
    if solver == "auto":
        solver = _fitting_solver(similarity)
    if solver in ("block", "levels"):
        smooth = similarity.preconditioner() if solver == "levels" else None
        if smooth is not None:
            guesses[len(old) :] = smooth(guesses[len(old) :])
        return leading_by_block_lanczos(
            similarity.normalised_product,
            *(guesses, k),
            tol=tol,
            max_steps=MOST_BLOCK_PRODUCTS if smooth is None else _MOST_CYCLES,
            precondition=smooth,
            **options,
        )
    # what was too hard for products will be so again
    inverted = start is not None and start.inverted
    return _by_eigsh(similarity, guesses, k, inverted, rng=rng, **options)


def _fitting_solver(similarity):
    if not similarity.is_sparse:
        return "block"
    cost = similarity.cost_of_inverse
    return "eigsh" if cost is not None and cost <= _CHEAP_INVERSE else "levels"


def _dense(similarity, known, k):
    n = similarity.n
    check_memory(
        4 * 8 * n * n,
        "A dense spectral step",
        f"Ask for at most n_samples / 12 = {n // 12} clusters, or another "
        "eigen_solver.",
    )
    matrix = similarity.normalised_product(np.eye(n))
    # Deflated to -2, below the spectrum, so that the wanted ones stay on top.
    deflated = 0.5 * (matrix + matrix.T) - 3.0 * combine(
        known, known, similarity.n_threads
    )
    _, vectors = largest_eigenpairs(deflated, k)
    return ritz_pairs(similarity.normalised_product, vectors, k, similarity.n_threads)


def _by_eigsh(similarity, guesses, k, inverted, **options):
    product = similarity.normalised_product
    basis = max(_BASIS_FACTOR * k, _LEAST_BASIS)
    allowed = similarity.cost_of_inverse
    if allowed is None or (allowed >= 2 * basis and not inverted):
        found = leading_by_eigsh(
            product,
            *(guesses, k),
            tol=0.1 * TOLERANCE,  # ARPACK's residual is an estimate
            basis=basis,
            max_products=allowed or MOST_PRODUCTS,
            **options,
        )
        if allowed is None or found.residuals.max() <= TOLERANCE:
            return found
    for shift in SHIFTS:
        found = leading_by_eigsh(
            similarity.inverse(shift),
            *(guesses, k),
            tol=_INVERSE_TOLERANCE,
            basis=max(2 * k + 1, 20),
            max_products=_MOST_SOLVES,
            **options,
        )
        pairs = ritz_pairs(product, found.vectors, k, similarity.n_threads)
        # those of the inverse tell if a copy may have been missed
        residuals = np.maximum(pairs.residuals, found.residuals)
        if residuals.max() <= TOLERANCE:
            break
        guesses = np.concatenate([pairs.vectors, guesses[k:]])
    return Eigenpairs(
        pairs.values, pairs.vectors, residuals, found.n_products, inverted=True
    )
