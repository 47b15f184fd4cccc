# SPDX-License-Identifier: BSD-3-Clause
"""Leading eigenpairs by a block Lanczos method (tests/test_eigen.py).

Full orthogonalisation, thick restart. The problem is projected on a basis Q
(Rayleigh-Ritz), the residuals r = A v - theta v are measured, and Q is extended by
those that are still too large and by their images under A. Where the operator is a
matrix in memory, one pass over it serves the whole block, and the vectors of one
problem are a good start for the next: measured, 4000 points, 10 vectors, residual 1e-6,
a quarter of the time of ``eigsh`` (docs/notes/2026-11-17-eigensolvers.md).

Besides the k wanted vectors a few random *guards* are carried along. The search ends
only when the first of them has settled too: an eigenvalue that the start lacked pulls a
guard up and takes its place among the wanted.
"""

from dataclasses import dataclass

import numpy as np

from cdsk._block import combine, inner
from cdsk._linalg.dense import all_eigenpairs
from cdsk._runtime import check_memory

# Guards carried along, and the residual at which the first one counts as settled.
GUARDS = 4
SETTLED = 0.05

# The basis grows to four blocks, or to so many vectors if that is more, and is then
# restarted with the leading half of its Ritz vectors. Usually 10 to 20 products
# suffice. Where eigenvalues crowd there are hundreds; then a larger basis needs fewer
# of them, and the projected problem is solved only after every fourth.
_BASIS_SIZE, _LARGE_BASIS_SIZE = 80, 200
_PATIENCE = 30

_TINY = np.finfo(float).tiny


@dataclass
class Eigenpairs:
    """k leading eigenpairs, vectors as rows, largest first."""

    values: np.ndarray
    vectors: np.ndarray
    # norms of A v - theta v, relative to theta where that is above 1
    residuals: np.ndarray
    n_products: int
    # whether they were found by the inverse of the operator
    inverted: bool = False


def ritz_pairs(product, vectors, k, n_threads):
    """The k leading eigenpairs of the operator projected on the span of vectors."""
    vectors = _orthonormal(np.ascontiguousarray(vectors), (), n_threads)
    image = product(vectors)
    values, rotation = all_eigenpairs(inner(vectors, image, n_threads))
    values, rotation = values[:k], np.ascontiguousarray(rotation[:, :k])
    vectors = combine(rotation, vectors, n_threads)
    residuals = combine(rotation, image, n_threads) - values[:, np.newaxis] * vectors
    return Eigenpairs(values, vectors, _norms(residuals, values), 1)


def _norms(residuals, values):
    return np.linalg.norm(residuals, axis=1) / np.maximum(np.abs(values), 1.0)


def leading_by_block_lanczos(
    product,
    start,
    k,
    *,
    known,
    tol,
    max_steps,
    n_threads,
    precondition=None,
    in_pace=False,
):
    """Find the k leading eigenpairs orthogonal to ``known``.

    Parameters
    ----------
    product : callable
        ``product(vectors)`` applies the operator to each row of an (m, n) array.
    start : ndarray of shape (m, n), m >= k
        First guesses; the last m - k are guards.
    k : int
        Number of eigenpairs wanted.
    known : ndarray of shape (m_known, n)
        Orthonormal eigenvectors to be left out.
    tol : float
        Largest norm of A v - theta v, relative to theta where that is above 1.
    max_steps : int
        Most products with a block; the residuals tell if it ended the search.
    n_threads : int
        Number of threads; the result does not depend on it.
    precondition : callable, default=None
        ``precondition(vectors)`` approximates the inverse of a multiple of I - A. The
        method is then that of Davidson.
    in_pace : bool
        Whether to give up, after a quarter of the products or later, as soon as the
        logarithm of the residuals falls too slowly to reach that of tol in max_steps.
    """
    width = len(start)
    check_memory(
        2 * 8 * start.shape[1] * max(4 * width, _BASIS_SIZE),
        "The basis of the spectral step, with its image,",
        "Use fewer points or clusters.",
    )
    first = _orthonormal(start, (known,), n_threads)
    room = max(4 * width, _BASIS_SIZE)
    basis, image = _Rows(first, room), _Rows(product(first), room)
    # Q'AQ; only its new rows and columns are computed
    projected = inner(first, image.filled, n_threads)
    n_products = 1
    while True:
        # the images of preconditioned residuals are of no use
        hard = n_products >= _PATIENCE and precondition is None
        most = max(4 * width, _LARGE_BASIS_SIZE if hard else _BASIS_SIZE)
        stride = 4 if hard else 1

        values, rotation = all_eigenpairs(projected)
        restart = basis.count + stride * width > most
        kept = max(width, most // 2) if restart else width
        rotation = np.ascontiguousarray(rotation[:, :kept])
        vectors = combine(rotation, basis.filled, n_threads)
        images = combine(rotation, image.filled, n_threads)
        values = values[:kept]
        if restart:
            projected = np.diag(values)
            basis.count = image.count = 0
            basis.append(vectors)
            image.append(images)
        values, vectors = values[:width], vectors[:width]
        residuals = images[:width] - values[:, np.newaxis] * vectors
        norms = _norms(residuals, values)
        too_large = norms > np.where(np.arange(len(norms)) < k, tol, SETTLED)
        if not too_large[: k + 1].any() or n_products >= max_steps:
            break
        spent = n_products / max_steps
        if in_pace and spent >= 0.25 and norms[:k].max() > tol**spent:
            break

        so_far = n_products
        block = residuals[too_large]
        if precondition is not None:
            block = precondition(block)
        for _ in range(stride):
            block = _orthonormal(block, (known, basis.filled), n_threads)
            if not len(block):
                break
            basis.append(block)
            block = product(block)
            image.append(block)
            projected = _bordered(projected, inner(basis.filled, block, n_threads))
            n_products += 1
        if n_products == so_far:  # the space is exhausted
            break
    return Eigenpairs(values[:k], vectors[:k], norms[:k], n_products)


class _Rows:
    """Rows that are appended a few at a time; there is ``room`` for so many."""

    def __init__(self, first, room):
        self._room = np.empty((max(room, len(first)), first.shape[1]))
        self.count = 0
        self.append(first)

    @property
    def filled(self):
        return self._room[: self.count]

    def append(self, block):
        end = self.count + len(block)
        if end > len(self._room):
            check_memory(
                8 * block.shape[1] * (end + _LARGE_BASIS_SIZE),
                "A larger basis of the spectral step",
                "Use fewer points or clusters.",
            )
            room = np.empty((end + _LARGE_BASIS_SIZE, block.shape[1]))
            room[: self.count] = self.filled
            self._room = room
        self._room[self.count : end] = block
        self.count = end


def _bordered(matrix, last):
    """The symmetric matrix whose last columns are ``last``, the rest ``matrix``."""
    old, new = len(matrix), len(last)
    bordered = np.empty((new, new))
    bordered[:old, :old] = matrix
    bordered[:, old:] = last
    bordered[old:, :old] = last[:old].T
    return bordered


def _orthonormal(vectors, against, n_threads):
    """Orthonormal basis of the vectors' span, orthogonal to others; may be smaller.

    By the eigenvectors of their Gram matrix, twice: the second pass removes what the
    rounding of the first one leaves.
    """
    for _ in range(2):
        size = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = vectors / np.maximum(size, _TINY)
        for others in against:
            along = inner(others, vectors, n_threads)
            vectors = vectors - combine(along, others, n_threads)
        size, rotation = all_eigenpairs(inner(vectors, vectors, n_threads))
        independent = size > 1e-14
        rotation = rotation[:, independent] / np.sqrt(size[independent])
        vectors = combine(np.ascontiguousarray(rotation), vectors, n_threads)
    return vectors
