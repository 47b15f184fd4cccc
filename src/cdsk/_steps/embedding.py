# SPDX-License-Identifier: BSD-3-Clause
"""The spectral step: similarity -> leading eigenvectors -> unit rows.

Y holds D^-1/2 times the c leading eigenvectors of A = D^-1/2 S D^-1/2; the rows of Y
are scaled to unit length. At useful bandwidths the graph of S is often disconnected or
nearly so; then the eigenvalue 1 is multiple, and a Lanczos method started from one
vector returns only part of its eigenspace without saying so. Therefore

1. the components of the graph are found first. Each contributes the vector D^1/2 1_C
   (eigenvalue 1), known without any iteration;
2. a block method (block_lanczos.py), which sees every copy of a multiple eigenvalue, finds the
   others from a random start, or from the vectors of the previous round;
3. small problems, and those that want a large part of the spectrum, are solved densely;
   sparse similarities can be factorised, and the block method then works on the inverse
   of the shifted matrix, which pulls apart the eigenvalues that crowd at 1.

Points that belong to no component in use (isolated ones, and the components beyond the
c largest) are *stray*: they have no similarity to judge by and take the row of their
nearest neighbour.
"""

import warnings
from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cdsk._block import combine, inner
from cdsk._eigh import eigh, largest_eigenpairs
from cdsk._runtime import check_memory
from cdsk._steps.block_lanczos import GUARDS, Eigenpairs, leading_eigenpairs

# Up to here a dense solver is as quick as any.
DENSE_SIZE = 64

# An edge below this fraction of the smaller degree of its ends moves no eigenvalue by
# more than n times as much.
NEGLIGIBLE_EDGE = 1e-13

# Accuracy of the eigenvectors: the norm of A v - theta v.
TOLERANCE = 1e-6

# Products with a block before the spectral step is given up.
_MAX_BLOCK_PRODUCTS = 1000

# A similarity whose factors may be dense gets so many products before it is factorised,
# as long as they lead there. Measured, 8000 images of 784 pixels: 0.6 s for them, 2.3 s
# for a factorisation.
_FEW_PRODUCTS = 60

# The inverse is that of (1 + shift) I - A, and gets so many solves. Usually 5 to 10
# suffice. Where dozens of eigenvalues crowd within the first shift, as outliers of a
# narrow kernel make them, the second pulls them apart.
_SHIFTS_AND_SOLVES = (1e-7, 30), (1e-11, 100)


@dataclass
class Embedding:
    """Spectral embedding of all points.

    Attributes
    ----------
    columns : ndarray of shape (c, n)
        The columns of the embedding with unit rows (C-contiguous, a column per row).
    lengths : ndarray of shape (n,)
        What the rows were divided by: Y with Y'DY = I is ``columns * lengths``.
    eigenvalues : ndarray of shape (c,)
        Leading eigenvalues of A, largest first.
    residual : float
        Largest norm of A v - theta v.
    stray : ndarray of bool, shape (n,)
        Points that took the row of their nearest neighbour.
    vectors : ndarray of shape (m, n)
        Eigenvectors beyond those of the components, a start for a similar problem.
    n_clipped : int
        Pairs of points whose similarity was negative and was set to 0.
    """

    columns: np.ndarray
    lengths: np.ndarray
    eigenvalues: np.ndarray
    residual: float
    stray: np.ndarray
    vectors: np.ndarray
    n_clipped: int

    @property
    def trace(self):
        """Sum of the c smallest eigenvalues of the normalised Laplacian."""
        return float(np.sum(1.0 - self.eigenvalues))


class NoSimilarityError(ValueError):
    """All points are stray. Who knows the kernel knows what to do about it."""


def spectral_step(similarity, n_clusters, rng, start=None):
    """Return the ``Embedding`` of a ``Similarity``.

    ``start`` is the embedding of a similar problem, used as a first guess.
    """
    count, label = similarity.components(NEGLIGIBLE_EDGE)
    known, used = _component_vectors(similarity, label, count, n_clusters)
    if not used.any():
        raise NoSimilarityError(
            "No two points have any similarity: every kernel value between different "
            "points is zero. Expected some that are not."
        )
    missing = n_clusters - len(known)
    if missing == 0:
        values, vectors, residual = np.empty(0), known[:0], 0.0
    elif similarity.n <= DENSE_SIZE or n_clusters > similarity.n // 5:
        values, vectors, residual = _dense(similarity, known, missing)
    else:
        values, vectors, residual = _iterative(similarity, known, missing, rng, start)
    columns, lengths = _unit_rows(
        similarity, np.concatenate([known, _fixed_sign(vectors)]), used
    )
    return Embedding(
        columns=columns,
        lengths=lengths,
        eigenvalues=np.concatenate([np.ones(len(known)), values]),
        residual=residual,
        stray=~used,
        vectors=vectors,
        n_clipped=similarity.n_clipped,
    )


def _component_vectors(similarity, label, count, n_clusters):
    """Constant vectors D^1/2 1_C of the largest components, and the points in them."""
    degrees = np.where(similarity.isolated, 0.0, similarity.degrees)
    volume = np.bincount(label, weights=degrees, minlength=count)
    largest = np.argsort(-volume, kind="stable")[:n_clusters]
    largest = largest[volume[largest] > 0]
    vectors = np.where(label == largest[:, np.newaxis], np.sqrt(degrees), 0.0)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors, np.isin(label, largest) & ~similarity.isolated


def _dense(similarity, known, missing):
    n = similarity.n
    check_memory(
        4 * 8 * n * n,
        "A spectral step for so many clusters",
        f"Ask for at most n_samples / 5 = {n // 5} clusters.",
    )
    matrix = similarity.normalised_product(np.eye(n))
    # Deflated to -2, below the spectrum, so that the wanted ones stay on top.
    n_threads = similarity.kernel.n_threads
    matrix = 0.5 * (matrix + matrix.T) - 3.0 * combine(known, known, n_threads)
    values, vectors = largest_eigenpairs(matrix, missing)
    image = combine(np.ascontiguousarray(vectors.T), matrix, n_threads)
    difference = image - values[:, np.newaxis] * vectors
    return values, vectors, float(np.linalg.norm(difference, axis=1).max())


def _iterative(similarity, known, missing, rng, start):
    # Guards are random each time: what one round missed, the next can find.
    old = known[:0] if start is None else start.vectors[:missing]
    fresh = rng.standard_normal((missing + GUARDS - len(old), similarity.n))
    block = np.concatenate([old, fresh])
    search = partial(
        leading_eigenpairs,
        k=missing,
        known=known,
        tol=TOLERANCE,
        n_threads=similarity.kernel.n_threads,
    )
    if not similarity.can_be_factorised:
        found = search(
            similarity.normalised_product, block, max_steps=_MAX_BLOCK_PRODUCTS
        )
    else:
        if not similarity.has_sparse_factors:
            found = search(
                similarity.normalised_product,
                block,
                max_steps=_FEW_PRODUCTS,
                in_pace=True,
            )
            block = np.concatenate([found.vectors, block[missing:]])
        if similarity.has_sparse_factors or found.residuals.max() > TOLERANCE:
            found = _by_inverse(search, similarity, known, missing, block)
    residual = float(found.residuals.max())
    if residual > TOLERANCE:
        warnings.warn(
            f"The spectral step did not converge: residual {residual:.1e} after "
            f"{found.n_products} block products, expected at most {TOLERANCE:.0e}.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return found.values, found.vectors, residual


def _by_inverse(search, similarity, known, missing, block):
    for shift, max_steps in _SHIFTS_AND_SOLVES:
        # Residuals of A are at most |B^-1| / min(theta, 1) <= 4 times those of its
        # inverse B, and Rayleigh-Ritz may gather sqrt(k) of them in one.
        found = search(
            _without(known, similarity.inverse(shift), similarity.kernel.n_threads),
            block,
            tol=TOLERANCE / (4.0 * np.sqrt(missing)),
            max_steps=max_steps,
        )
        found = _of_the_similarity(similarity, found)
        if found.residuals.max() <= TOLERANCE:
            break
        block = np.concatenate([found.vectors, block[missing:]])
    return found


def _without(known, product, n_threads):
    """``product`` less what rounding, divided by the shift, adds along ``known``."""

    def project(rows):
        image = product(rows)
        return image - combine(inner(known, image, n_threads), known, n_threads)

    return project


def _of_the_similarity(similarity, inverse):
    """Eigenpairs of the inverse as those of the similarity itself (Rayleigh-Ritz)."""
    image = similarity.normalised_product(inverse.vectors)
    n_threads = similarity.kernel.n_threads
    projected = inner(inverse.vectors, image, n_threads)
    values, rotation = eigh(0.5 * (projected + projected.T))
    values, rotation = values[::-1], np.ascontiguousarray(rotation[:, ::-1])
    vectors = combine(rotation, inverse.vectors, n_threads)
    residuals = combine(rotation, image, n_threads) - values[:, np.newaxis] * vectors
    norms = np.linalg.norm(residuals, axis=1)
    return Eigenpairs(values, vectors, norms, inverse.n_products)


def _fixed_sign(vectors):
    """Each vector with its entry of largest magnitude positive."""
    peak = np.argmax(np.abs(vectors), axis=1)
    return vectors * np.sign(vectors[np.arange(len(vectors)), peak])[:, np.newaxis]


def _unit_rows(similarity, vectors, used):
    """Columns of Y with unit rows, and their lengths before.

    Stray points copy their nearest neighbour's.
    """
    columns, lengths = np.zeros_like(vectors), np.zeros(similarity.n)
    columns[:, used] = vectors[:, used] / np.sqrt(similarity.degrees[used])
    lengths[used] = np.linalg.norm(columns[:, used], axis=0)
    columns[:, used] /= lengths[used]
    if not used.all():
        stray, candidates = np.flatnonzero(~used), np.flatnonzero(used)
        nearest = similarity.kernel.nearest(stray, candidates)
        columns[:, stray], lengths[stray] = columns[:, nearest], lengths[nearest]
    return columns, lengths
