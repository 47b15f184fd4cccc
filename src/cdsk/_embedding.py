# SPDX-License-Identifier: BSD-3-Clause
"""The spectral step: similarity -> leading eigenvectors -> unit rows.

Y holds D^-1/2 times the c leading eigenvectors of A = D^-1/2 S D^-1/2; the rows of Y are
scaled to unit length. At useful bandwidths the graph of S is often disconnected or nearly
so; then the eigenvalue 1 is multiple, and a Lanczos method started from one vector returns
only part of its eigenspace without saying so. Therefore

1. the components of the graph are found first. Each contributes the vector D^1/2 1_C
   (eigenvalue 1), known without any iteration;
2. these vectors are deflated and ``eigsh`` finds the remaining ones;
3. a second search, with everything found deflated too, looks for the largest eigenvalue
   that is left. If it exceeds the smallest one found, a copy was missed: it is taken in and
   the search goes on. The result is thereby complete, and its eigengap known;
4. small problems, and those that want a large part of the spectrum, are solved densely.

Points that belong to no component in use (isolated ones, and the components beyond the c
largest) are *stray*: they have no similarity to judge by and take the row of their nearest
neighbour.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from sklearn.exceptions import ConvergenceWarning

# Up to here a dense solver takes less than the 20 products ARPACK starts with.
DENSE_SIZE = 400

# An edge below this fraction of the smaller degree of its ends moves no eigenvalue by
# more than n times as much.
NEGLIGIBLE_EDGE = 1e-13

# ARPACK's relative accuracy, and the residual |A v - theta v| that is reported as a fault.
EIGEN_TOLERANCE = 1e-9
LARGEST_RESIDUAL = 1e-6


@dataclass
class Embedding:
    """Spectral embedding of all points.

    Attributes
    ----------
    columns : ndarray of shape (c, n)
        The columns of the embedding with unit rows (C-contiguous, a column per row).
    eigenvalues : ndarray of shape (c,)
        Leading eigenvalues of A, largest first.
    residual : float
        Largest norm of A v - theta v.
    stray : ndarray of bool, shape (n,)
        Points that took the row of their nearest neighbour.
    """

    columns: np.ndarray
    eigenvalues: np.ndarray
    residual: float
    stray: np.ndarray

    @property
    def trace(self):
        """Sum of the c smallest eigenvalues of the normalised Laplacian."""
        return float(np.sum(1.0 - self.eigenvalues))


def spectral_step(similarity, n_clusters, rng, start=None):
    """Return the ``Embedding`` of a ``Similarity``.

    ``start`` is the embedding of a similar problem, used as a first guess.
    """
    count, label = similarity.components(NEGLIGIBLE_EDGE)
    known, used = _component_vectors(similarity, label, count, n_clusters)
    if not used.any():
        raise ValueError(
            "No two points have any similarity: every kernel value between different "
            "points is zero. Expected a larger bandwidth."
        )
    missing = n_clusters - len(known)
    if missing == 0:
        values, vectors = np.ones(n_clusters), known
    elif similarity.n <= DENSE_SIZE or n_clusters > similarity.n // 5:
        values, vectors = _dense(similarity, known, missing)
    else:
        values, vectors = _lanczos(similarity, known, missing, rng, start)
    residual = float(
        np.max(
            np.linalg.norm(
                similarity.normalised_product(vectors) - values[:, np.newaxis] * vectors,
                axis=1,
            )
        )
    )
    if residual > LARGEST_RESIDUAL:
        warnings.warn(
            f"The spectral step did not converge: residual {residual:.1e}, expected at "
            f"most {LARGEST_RESIDUAL:.0e}.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return Embedding(_unit_rows(similarity, vectors, used), values, residual, ~used)


def _component_vectors(similarity, label, count, n_clusters):
    """Constant vectors D^1/2 1_C of the largest components, and the points in them."""
    volume = np.bincount(label, weights=similarity.degrees, minlength=count)
    largest = np.argsort(-volume, kind="stable")[:n_clusters]
    largest = largest[volume[largest] > 0]
    vectors = np.where(
        label == largest[:, np.newaxis], np.sqrt(similarity.degrees), 0.0
    )
    vectors[:, similarity.isolated] = 0.0
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors, np.isin(label, largest) & ~similarity.isolated


def _dense(similarity, known, missing):
    matrix = similarity.normalised_product(np.eye(similarity.n))
    # Deflated to -2, below the spectrum, so that the wanted ones stay on top.
    matrix = 0.5 * (matrix + matrix.T) - 3.0 * known.T @ known
    n = similarity.n
    values, vectors = eigh(matrix, subset_by_index=[n - missing, n - 1])
    return _with_known(known, values, vectors.T)


def _lanczos(similarity, known, missing, rng, start):
    if start is None:
        first = rng.standard_normal(similarity.n)
    else:
        # the noise keeps a part of every direction the previous embedding lacks
        first = start.columns.sum(axis=0) + 0.1 * rng.standard_normal(similarity.n)
    values, vectors = _leading(similarity, known, missing, first)
    # One look at what is left per round of the loop; a missed copy is found and kept.
    while len(values):
        found = np.concatenate([known, vectors])
        left_value, left_vector = _leading(
            similarity, found, 1, rng.standard_normal(similarity.n)
        )
        if not len(left_value) or left_value[0] <= values.min() + EIGEN_TOLERANCE:
            break
        order = np.argsort(-np.append(values, left_value), kind="stable")[:missing]
        values = np.append(values, left_value)[order]
        vectors = np.concatenate([vectors, left_vector])[order]
    return _with_known(known, values, vectors)


def _leading(similarity, deflated, k, first):
    """k leading eigenpairs with the rows of ``deflated`` projected out."""

    def product(v):
        v = v.ravel() - deflated.T @ (deflated @ v.ravel())
        w = similarity.normalised_product(v[np.newaxis])[0]
        return w - deflated.T @ (deflated @ w)

    operator = LinearOperator((similarity.n,) * 2, matvec=product, dtype=np.float64)
    try:
        values, vectors = eigsh(
            operator, k=k, which="LA", v0=first, tol=EIGEN_TOLERANCE
        )
    except ArpackNoConvergence as failure:
        values, vectors = failure.eigenvalues, failure.eigenvectors
        warnings.warn(
            f"The spectral step did not converge: ARPACK found {len(values)} of {k} "
            "eigenvectors.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return values, vectors.T


def _with_known(known, values, vectors):
    """Known vectors (eigenvalue 1) first, then the others, largest first."""
    order = np.argsort(-values, kind="stable")
    vectors = vectors[order]
    # a fixed sign: the entry of largest magnitude is positive
    peak = np.argmax(np.abs(vectors), axis=1)
    vectors = vectors * np.sign(vectors[np.arange(len(vectors)), peak])[:, np.newaxis]
    return (
        np.concatenate([np.ones(len(known)), values[order]]),
        np.concatenate([known, vectors]),
    )


def _unit_rows(similarity, vectors, used):
    """Columns of Y with unit rows; stray points copy their nearest neighbour's."""
    columns = np.zeros_like(vectors)
    columns[:, used] = vectors[:, used] / np.sqrt(similarity.degrees[used])
    columns[:, used] /= np.linalg.norm(columns[:, used], axis=0)
    if not used.all():
        stray, candidates = np.flatnonzero(~used), np.flatnonzero(used)
        columns[:, stray] = columns[:, similarity.kernel.nearest(stray, candidates)]
    return columns
