# SPDX-License-Identifier: BSD-3-Clause
"""Z'Z, the similarity of landmarks, summed over all rows (tests/test_blocks_gram.py).

Two landmarks are similar if many points are close to both. Weights are fixed-point
numbers, so their sums are exact: they do not depend on the order of the points, and do
not overflow for fewer than 2^33 points.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cdsk.blocks._landmarks import FIXED_POINT_ONE

# An entry of Z'Z is at most the number of rows times FIXED_POINT_ONE^2.
MAX_ROWS = 2**63 // FIXED_POINT_ONE**2 - 1


@dataclass(frozen=True)
class Gram:
    """Sums over rows, from which the kernels of the landmarks are made.

    Attributes
    ----------
    matrices : tuple of csr_array of shape (n_landmarks, n_landmarks)
        Z'Z in units of 1 / FIXED_POINT_ONE^2, one per bandwidth factor.
    counts : ndarray of shape (n_landmarks,)
        Number of rows whose nearest landmark each is.
    classes : ndarray of shape (2, n_landmarks, n_classes)
        The same rows, by classes of their distances to the 6th and 7th landmark.
    missing : ndarray of shape (n_landmarks, n_columns)
        Number of missing cells of the same rows.
    n_rows : int
        Number of rows.
    """

    matrices: tuple[sparse.csr_array, ...]
    counts: NDArray[np.int64]
    classes: NDArray[np.int64]
    missing: NDArray[np.int64]
    n_rows: int

    def __getstate__(self):
        # saved models hold plain arrays only
        parts = [(M.data, M.indices, M.indptr) for M in self.matrices]
        return vars(self) | {"matrices": parts}

    def __setstate__(self, state):
        shape = 2 * (len(state["counts"]),)
        matrices = tuple(
            sparse.csr_array(tuple(parts), shape=shape) for parts in state["matrices"]
        )
        self.__dict__.update(state | {"matrices": matrices})


def compute_gram(X, representation, landmarks, factors):
    """Return the ``Gram`` of rows X (n, d), which are transformed here."""
    rows = np.asarray(X, dtype=np.float64)
    X = representation.transform_validated(rows)
    indices, distances = landmarks.nearest(X)
    m = len(landmarks)
    matrices = tuple(
        _gram_matrix(indices, landmarks.weights(indices, distances, factor), m)
        for factor in factors
    )
    counts = np.bincount(indices[:, 0], minlength=m).astype(np.int64)
    missing = np.zeros((m, rows.shape[1]), dtype=np.int64)
    cells = np.nonzero(np.isnan(rows))
    np.add.at(missing, (indices[cells[0], 0], cells[1]), 1)
    classes = landmarks.count_classes(indices, distances)
    return Gram(matrices, counts, classes, missing, len(X))


def _gram_matrix(indices, weights, n_landmarks):
    n, r = weights.shape
    csr = weights.ravel(), indices[:, :r].ravel(), np.arange(0, n * r + 1, r)
    # a copy: zeros are removed in place
    Z = sparse.csr_array(csr, shape=(n, n_landmarks), copy=True)
    Z.eliminate_zeros()
    return _sort_indices(Z.T.tocsr() @ Z)


def merge_grams(a, b):
    """Return the ``Gram`` of the rows of both."""
    check_n_rows(a.n_rows + b.n_rows)
    pairs = zip(a.matrices, b.matrices, strict=True)
    matrices = tuple(_sort_indices(A + B) for A, B in pairs)
    return Gram(
        matrices,
        a.counts + b.counts,
        a.classes + b.classes,
        a.missing + b.missing,
        a.n_rows + b.n_rows,
    )


def _sort_indices(matrix):
    matrix = matrix.tocsr()
    matrix.sort_indices()
    return matrix


def check_n_rows(n_rows):
    """Raise ValueError if a sum over this many rows may overflow."""
    if n_rows > MAX_ROWS:
        raise ValueError(
            f"X must have at most {MAX_ROWS:,} rows, so that sums over them are exact "
            f"in 64 bits; got {n_rows:,}."
        )
