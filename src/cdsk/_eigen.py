# SPDX-License-Identifier: BSD-3-Clause
"""Leading eigenpairs of a symmetric operator, from a block of first guesses.

Block Lanczos with full orthogonalisation and thick restart. Three reasons for a block
method after ``eigsh`` has made the first guess: it refines all vectors with one pass over
the matrix per step; a block finds every copy of a multiple eigenvalue, of which a Krylov
space of one vector sees only one; and the result of one problem is a good start for the
next.

Each step solves the projected problem on the basis Q (Rayleigh-Ritz), measures the
residuals r = A v - theta v, and extends Q by those that are still too large.

Completeness. Besides the k wanted vectors a few *guards* are carried along, random at
first. The search ends only when the wanted residuals are below ``tol`` and the first guard
has settled too: an eigenvalue that the first guess missed pulls the guard up and takes its
place among the wanted ones.
"""

from dataclasses import dataclass

import numpy as np

# Guards carried along, and the residual at which the first one counts as settled.
GUARDS = 3
SETTLED = 0.05

# Restart with the leading vectors when the basis has grown to so many blocks.
_BASIS_BLOCKS = 8

_TINY = np.finfo(float).tiny


@dataclass
class Eigenpairs:
    """k leading eigenpairs and the guards behind them, as rows, largest first."""

    values: np.ndarray
    vectors: np.ndarray
    residuals: np.ndarray
    n_products: int


def leading_eigenpairs(product, start, k, *, known, tol, max_steps):
    """Refine ``start`` to the leading eigenpairs orthogonal to ``known``.

    Parameters
    ----------
    product : callable
        ``product(rows)`` applies the operator to each row of an (m, n) array.
    start : ndarray of shape (m, n), m >= k
        First guesses, guards included.
    k : int
        Number of eigenpairs that must converge.
    known : ndarray of shape (m_known, n)
        Orthonormal eigenvectors to be left out.
    tol : float
        Largest norm of A v - theta v.
    max_steps : int
        Most products with a block; the residuals tell if it ended the search.
    """
    width = len(start)
    basis = _orthonormal(start, known)
    image = product(basis)
    n_products = 1
    while True:
        projected = basis @ image.T
        values, rotation = np.linalg.eigh(0.5 * (projected + projected.T))
        values, rotation = values[: -width - 1 : -1], rotation[:, : -width - 1 : -1]
        vectors = rotation.T @ basis
        images = rotation.T @ image
        residual = images - values[:, np.newaxis] * vectors
        size = np.linalg.norm(residual, axis=1)
        wanted = np.zeros(len(values), dtype=bool)
        wanted[:k] = size[:k] > tol
        wanted[k : k + 1] = size[k : k + 1] > SETTLED
        if not wanted.any() or n_products >= max_steps:
            return Eigenpairs(values, vectors, size, n_products)
        # Guards help the wanted vectors to converge, so all that are unsettled go on.
        wanted[k:] |= size[k:] > SETTLED
        if len(basis) + width > _BASIS_BLOCKS * width:
            basis, image = vectors, images
        fresh = _orthonormal(residual[wanted], np.concatenate([known, basis]))
        if not len(fresh):
            return Eigenpairs(values, vectors, size, n_products)
        basis = np.concatenate([basis, fresh])
        image = np.concatenate([image, product(fresh)])
        n_products += 1


def _orthonormal(rows, against):
    """Orthonormal basis of the rows' span, orthogonal to ``against``; may be smaller.

    By the eigenvectors of the rows' Gram matrix, twice: the first pass leaves errors of
    the size of its rounding, the second removes them.
    """
    for _ in range(2):
        rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), _TINY)
        rows = rows - (rows @ against.T) @ against
        size, rotation = np.linalg.eigh(rows @ rows.T)
        independent = size > 1e-14
        rotation = rotation[:, independent] / np.sqrt(size[independent])
        rows = rotation.T @ rows
    return rows
