# SPDX-License-Identifier: BSD-3-Clause
"""Blocks -> Z'Z, the similarity of landmarks by all points (tests/test_blocks_gram.py).

Two landmarks are as similar as there are points that lie near both. Sums of whole
numbers are exact: they do not depend on the order of the points, and there is no
overflow as long as there are fewer than 2^33 points.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cdsk._blocks.landmarks import ONE

# Of more rows an entry of Z'Z, at most their number times ONE^2, may overflow.
MOST_ROWS = 2**63 // ONE**2 - 1


@dataclass(frozen=True)
class Gram:
    """What the landmarks know of so many rows.

    Z'Z in units of 1 / ONE^2, a matrix per scale, and how many rows each landmark is
    the nearest one of.
    """

    matrices: tuple[sparse.csr_array, ...]
    counts: NDArray[np.int64]
    n_rows: int


def gram_of_block(block, representation, landmarks, factors):
    """The ``Gram`` of the rows of a block, as they are represented."""
    block = representation.of_checked(np.asarray(block, dtype=np.float64))
    indices, distances = landmarks.nearest(block)
    m = len(landmarks)
    matrices = tuple(
        _gram(indices, landmarks.weights(indices, distances, factor), m)
        for factor in factors
    )
    counts = np.bincount(indices[:, 0], minlength=m).astype(np.int64)
    return Gram(matrices, counts, len(block))


def _gram(indices, weights, m):
    n, r = weights.shape
    ends = np.arange(0, n * r + 1, r)
    parts = weights.ravel(), indices[:, :r].ravel(), ends
    # a copy: zeros are removed in place
    Z = sparse.csr_array(parts, shape=(n, m), copy=True)
    Z.eliminate_zeros()
    return _in_order(Z.T.tocsr() @ Z)


def merge_grams(a, b):
    """The ``Gram`` of the rows of both."""
    check_rows(a.n_rows + b.n_rows)
    both = zip(a.matrices, b.matrices, strict=True)
    matrices = tuple(_in_order(A + B) for A, B in both)
    return Gram(matrices, a.counts + b.counts, a.n_rows + b.n_rows)


def _in_order(matrix):
    matrix = matrix.tocsr()
    matrix.sort_indices()
    return matrix


def check_rows(n):
    """Refuse so many rows that a sum of their weights may overflow."""
    if n > MOST_ROWS:
        raise ValueError(
            f"X must have at most {MOST_ROWS:,} rows, so that sums over them are exact "
            f"in 64 bits; got {n:,}."
        )
