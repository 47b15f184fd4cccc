# SPDX-License-Identifier: BSD-3-Clause
"""Rows that are made where they are needed, the same for any blocks."""

import dask.array as da
import numpy as np

CLUSTERS, FEATURES = 20, 8
# of the rarest cluster, and of rows that belong to none
RARE, NOISE = 0.001, 0.05
# every cluster is so many times the next
_SIZES = np.geomspace(0.25, RARE, CLUSTERS)
_SIZES *= (1 - NOISE) / _SIZES.sum()
# rows that are drawn together
ATOM = 10_000


def rows(first, count, seed=0):
    """(X, y) of so many rows from ``first`` on, a multiple of ATOM; y is 20 for noise.

    Twenty clusters of unequal width in 8 dimensions, one of them rare.
    """
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-10, 10, (CLUSTERS, FEATURES))
    widths = rng.uniform(0.5, 1.5, CLUSTERS)
    sizes = np.append(_SIZES, NOISE)
    atoms = [
        _atom((seed, i // ATOM), min(ATOM, first + count - i), centres, widths, sizes)
        for i in range(first, first + count, ATOM)
    ]
    X, y = zip(*atoms, strict=True)
    return np.concatenate(X), np.concatenate(y)


def _atom(seed, count, centres, widths, sizes):
    rng = np.random.default_rng(seed)
    y = rng.choice(CLUSTERS + 1, ATOM, p=sizes)
    X = rng.normal(size=(ATOM, FEATURES))
    noise = y == CLUSTERS
    kind = y[~noise]
    X[~noise] = X[~noise] * widths[kind, np.newaxis] + centres[kind]
    X[noise] = rng.uniform(-12, 12, (noise.sum(), FEATURES))
    return X[:count], y[:count]


def _block(block_info=None, seed=0, part=0):
    first, end = block_info[None]["array-location"][0]
    return rows(first, end - first, seed)[part]


def lazily(n, block, seed=0):
    """(X, y) as dask arrays of n rows, ``block`` of them in a chunk."""
    chunks = tuple(min(block, n - i) for i in range(0, n, block))
    X = da.map_blocks(
        _block, chunks=(chunks, (FEATURES,)), dtype=float, seed=seed, part=0
    )
    y = da.map_blocks(_block, chunks=(chunks,), dtype=int, seed=seed, part=1)
    return X, y
