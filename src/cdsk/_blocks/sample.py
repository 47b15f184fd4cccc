# SPDX-License-Identifier: BSD-3-Clause
"""Blocks -> a uniform sample, the same for any blocks (tests/test_blocks_sample.py).

A row is in the sample if the hash of (seed, number of the row) is among the smallest.
No state goes from block to block, and the sample of a smaller size is the beginning of
that of a larger one.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cdsk._runtime import check_memory

_MASK = 2**64 - 1


@dataclass(frozen=True)
class Sample:
    """Rows in the order of their keys, and how many rows they were drawn from."""

    keys: NDArray[np.uint64]
    rows: NDArray[np.int64]
    points: NDArray[np.floating]
    n_rows: int

    def first(self, size):
        """The sample of another, smaller size."""
        return Sample(
            self.keys[:size], self.rows[:size], self.points[:size], self.n_rows
        )


def keys_of_rows(seed, first, count):
    """splitmix64 of (seed, row) for ``count`` rows from ``first`` on, all different."""
    rows = np.arange(first, first + count, dtype=np.uint64)
    offset = np.uint64(seed * 0xD1B54A32D192ED03 & _MASK)
    with np.errstate(over="ignore"):
        z = (rows + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + offset
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def sample_of_block(block, first, seed, size, below=None):
    """The ``Sample`` of a block; rows whose key is not ``below`` it are left out."""
    keys = keys_of_rows(seed, first, len(block))
    kept = np.arange(len(block)) if below is None else np.flatnonzero(keys < below)
    kept = kept[np.argsort(keys[kept])[:size]]
    return Sample(keys[kept], first + kept.astype(np.int64), block[kept], len(block))


def merge_samples(a, b, size):
    """The ``Sample`` of the rows of both."""
    n_bytes = 2 * (a.points.nbytes + b.points.nbytes)
    check_memory(n_bytes, "The sample", "Use a smaller sample_size.")
    keys = np.concatenate([a.keys, b.keys])
    kept = np.argsort(keys)[:size]
    rows = np.concatenate([a.rows, b.rows])[kept]
    points = np.concatenate([a.points, b.points])[kept]
    return Sample(keys[kept], rows, points, a.n_rows + b.n_rows)
