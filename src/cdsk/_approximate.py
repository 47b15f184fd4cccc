# SPDX-License-Identifier: BSD-3-Clause
"""Approximate nearest neighbors by NN-descent (tests/test_approximate.py).

The neighbors of a neighbor are often neighbors: from random projection trees, lists of
neighbors improve each other until few of them change (Dong, Moses & Li 2011). The
implementation is that of ``pynndescent``. It runs on one thread, as its random numbers
depend on the number of threads, and an interrupt waits for its end. Its points are
float32, centered and scaled; distances are computed again from differences.
"""

from importlib.util import find_spec
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdsk._utils import check_memory

# Points and features from which the search takes less time than the exact one:
# docs/notes/2026-11-19-approximate.md. With few features boxes prune nearly all pairs.
MIN_POINTS, MIN_FEATURES = 20_000, 100

# Of the search, and of the points at which its recall is measured: always the same, so
# that a fit by lists without errors is that by exact ones.
SEED = 0

# Processor time of the search: of the compilation by numba, once in a process, and of
# each coordinate and each point, in seconds.
_SECONDS, _PER_COORDINATE, _PER_POINT = 45.0, 1e-7, 6e-5

# Bytes per point, beside its coordinates: candidates and updates for 21 neighbors.
_BYTES_PER_POINT = 1500

# Not all thread pools of numba survive that two threads use them.
_ONE_AT_A_TIME = Lock()

# Coordinates of differences at a time.
_CHUNK_SIZE = 2**18


def is_worthwhile(n: int, n_features: int) -> bool:
    """Return whether an approximate search is faster than an exact one."""
    return n >= MIN_POINTS and n_features >= MIN_FEATURES


def estimate_seconds(n: int, n_features: int) -> float:
    """Return about how long the search takes."""
    return _SECONDS + n * (n_features * _PER_COORDINATE + _PER_POINT)


def check_installed() -> None:
    """Raise an error with a hint if pynndescent is not installed."""
    if find_spec("pynndescent") is None:
        raise ImportError(
            'neighbors="approximate" requires pynndescent, which is not installed: pip '
            "install cdsk[approximate]"
        )


def find_approximately(
    X: NDArray[Any], k: int
) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Return distances and indices (n, k) of near points of each point, nearest first.

    Rows with fewer than k points that were found have infinite distances.
    """
    from pynndescent import NNDescent  # compiles functions for seconds

    n, d = X.shape
    stage = "The approximate search for neighbors"
    check_memory(n * (4 * d + _BYTES_PER_POINT), stage, "Use fewer points.")
    points = (X - X.mean(axis=0)).astype(np.float32, copy=False)
    points /= max(np.abs(points).max(), np.finfo(np.float32).tiny)
    with _ONE_AT_A_TIME:
        index = NNDescent(points, n_neighbors=k + 1, random_state=SEED, n_jobs=1)
    indices = index.neighbor_graph[0]
    distances = _distances(X, indices)
    # neither the point itself, nor what was not found
    distances[(indices < 0) | (indices == np.arange(n)[:, np.newaxis])] = np.inf
    order = np.lexsort((indices, distances))[:, :k]
    return (
        np.take_along_axis(distances, order, axis=1),
        np.take_along_axis(indices, order, axis=1),
    )


def _distances(X: NDArray[Any], indices: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return the distances (n, k) of each point to those of its row of indices."""
    squares = np.empty(indices.shape)
    step = max(1, _CHUNK_SIZE // (X.shape[1] * indices.shape[1]))
    for rows in (slice(i, i + step) for i in range(0, len(X), step)):
        differences = X[indices[rows]].astype(np.float64, copy=False)
        differences -= X[rows, np.newaxis]
        squares[rows] = np.einsum("ijk,ijk->ij", differences, differences)
    return np.sqrt(squares)
