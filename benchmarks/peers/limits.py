# SPDX-License-Identifier: BSD-3-Clause
"""Lower bounds on time: the unavoidable arithmetic and memory traffic."""

from concurrent.futures import ThreadPoolExecutor
from unittest.mock import patch

import numpy as np

from benchmarks.asv.stages.private import DenseKernel
from benchmarks.peers.measure import best_time

_REPEATS = 3


def product(n, m, d):
    """Return the seconds of a matrix product (n, d) times (d, m) in float64 by BLAS."""
    rng = np.random.default_rng(0)
    A, B, out = rng.normal(size=(n, d)), rng.normal(size=(m, d)), np.zeros((n, m))
    return best_time(_REPEATS, lambda: np.matmul(A, B.T, out=out))


def store(n_values, dtype, n_threads):
    """Return the seconds to write ``n_values`` values to new memory."""

    def write():
        fresh = np.empty(n_values, dtype)
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(lambda part: part.fill(1), np.array_split(fresh, n_threads)))
        return fresh

    return best_time(_REPEATS, write)


def read_half(K):
    """Return the seconds to read half of K, measured by a dot product."""
    half = K[: (len(K) + 1) // 2].ravel()
    return best_time(_REPEATS, lambda: half @ half)


def gram(n, d, dtype, n_threads):
    """Return the seconds of half a product (K is symmetric) and one store of K."""
    return product(n // 2, n, d) + store(n * n, dtype, n_threads)


def passes_over_kernel(function, *arguments):
    """Return the number of products with K in one call."""
    with patch.object(
        DenseKernel, "product", autospec=True, side_effect=DenseKernel.product
    ) as counted:
        function(*arguments)
    return counted.call_count
