# SPDX-License-Identifier: BSD-3-Clause
"""Uniform sample of rows, independent of blocks (tests/test_blocks_sample.py).

A row is in the sample if the hash of (seed, row index) is among the smallest. Blocks
share no state, and a smaller sample is the head of a larger one.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cdsk._utils import check_memory

_MASK = 2**64 - 1


@dataclass(frozen=True)
class Sample:
    """Sampled rows sorted by their keys, and the number of rows they were drawn from.

    Attributes
    ----------
    keys : ndarray of shape (size,)
        Hashes, in increasing order.
    rows : ndarray of shape (size,)
        Row indices in X.
    points : ndarray of shape (size, n_features)
        The rows themselves.
    n_rows : int
        Number of rows that were hashed.
    """

    keys: NDArray[np.uint64]
    rows: NDArray[np.int64]
    points: NDArray[np.floating]
    n_rows: int

    def head(self, size):
        """Return the sample of a smaller size."""
        return Sample(
            keys=self.keys[:size],
            rows=self.rows[:size],
            points=self.points[:size],
            n_rows=self.n_rows,
        )


def hash_rows(seed, first_row, n_rows):
    """Return splitmix64 of (seed, row) for consecutive rows, all distinct."""
    rows = np.arange(first_row, first_row + n_rows, dtype=np.uint64)
    offset = np.uint64(seed * 0xD1B54A32D192ED03 & _MASK)
    with np.errstate(over="ignore"):
        z = (rows + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + offset
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def sample_rows(X, first_row, seed, size, key_bound=None):
    """Return the ``Sample`` of consecutive rows X (n, d), ``first_row`` the first.

    Rows whose key is not below ``key_bound`` are skipped.
    """
    keys = hash_rows(seed, first_row, len(X))
    kept = np.arange(len(X)) if key_bound is None else np.flatnonzero(keys < key_bound)
    kept = kept[np.argsort(keys[kept])[:size]]
    return Sample(
        keys=keys[kept],
        rows=first_row + kept.astype(np.int64),
        points=X[kept],
        n_rows=len(X),
    )


def merge_samples(a, b, size):
    """Return the ``Sample`` of the rows of both."""
    n_bytes = 2 * (a.points.nbytes + b.points.nbytes)
    check_memory(n_bytes, "The sample", "Use a smaller sample_size.")
    keys = np.concatenate([a.keys, b.keys])
    kept = np.argsort(keys)[:size]
    return Sample(
        keys=keys[kept],
        rows=np.concatenate([a.rows, b.rows])[kept],
        points=np.concatenate([a.points, b.points])[kept],
        n_rows=a.n_rows + b.n_rows,
    )
