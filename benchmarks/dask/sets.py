# SPDX-License-Identifier: BSD-3-Clause
"""Rows that are made where they are needed, the same for any blocks."""

import dask.array as da
import numpy as np

CLUSTERS, FEATURES = 20, 8
# shares of the smallest cluster, and of rows that belong to none
RARE, NOISE = 0.001, 0.05
# rows that are drawn together
ATOM = 10_000


def rows(first, count, seed=0):
    """(X, y) of so many rows from ``first`` on, a multiple of ATOM.

    Twenty clusters of different widths in 8 dimensions, one of them rare, and noise,
    whose y is 20.
    """
    starts = range(first, first + count, ATOM)
    X, y = zip(*(_atom(start // ATOM, seed) for start in starts), strict=True)
    return np.concatenate(X)[:count], np.concatenate(y)[:count]


def _atom(number, seed):
    rng = np.random.default_rng(seed)
    centers = rng.uniform(-10, 10, (CLUSTERS, FEATURES))
    widths = rng.uniform(0.5, 1.5, (CLUSTERS, 1))
    usual = (1 - RARE - NOISE) / (CLUSTERS - 1)
    shares = [usual] * (CLUSTERS - 1) + [RARE, NOISE]
    rng = np.random.default_rng((seed, number))
    y = rng.choice(CLUSTERS + 1, ATOM, p=shares)
    X = rng.uniform(-12, 12, (ATOM, FEATURES))
    inside = y < CLUSTERS
    normal = rng.normal(size=(inside.sum(), FEATURES))
    X[inside] = centers[y[inside]] + widths[y[inside]] * normal
    return X, y


def _part(part, seed, block_info=None):
    first, end = block_info[None]["array-location"][0]
    return rows(first, end - first, seed)[part]


def lazily(n, block, seed=0):
    """(X, y) of n rows as dask arrays in chunks of ``block``, a multiple of ATOM."""
    chunks = tuple(min(block, n - first) for first in range(0, n, block))
    shape = chunks, (FEATURES,)
    X = da.map_blocks(_part, 0, seed, chunks=shape, meta=np.empty((0, FEATURES)))
    y = da.map_blocks(_part, 1, seed, chunks=shape[:1], meta=np.empty(0, dtype=int))
    return X, y
