# SPDX-License-Identifier: BSD-3-Clause
"""Exponents p of time = n^p, by least squares on logarithms."""

from functools import partial

import numpy as np

from benchmarks.asv.stages import data
from benchmarks.peers.measure import best_time
from cdsk import CDSK, gaussian_gram

SIZES = (1000, 2000, 4000, 8000, 16_000)
QUICK_SIZES = (250, 500)
STAGES = ("Gram", "QP", "fit")


def growth(quick, n_threads):
    """Return times for several n and the exponent, one dictionary per stage."""
    sizes = QUICK_SIZES if quick else SIZES
    times = zip(*(_times(n, n_threads) for n in sizes), strict=True)
    return [
        {
            "stage": stage,
            "n": list(sizes),
            "seconds": seconds,
            "exponent": float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0]),
        }
        for stage, seconds in zip(STAGES, times, strict=True)
    ]


def _times(n, n_threads):
    """Return the best times of ``STAGES``."""
    X, _ = data.blobs(n)
    bandwidth = data.bandwidth(X)
    problem = data.weight_problem(data.kernel(X, n_threads))
    model = CDSK(
        data.CLUSTERS, bandwidth=bandwidth, random_state=0, n_threads=n_threads
    )
    return (
        best_time(3, partial(gaussian_gram, X, bandwidth, n_threads=n_threads)),
        best_time(3, problem.solve, data.uniform(n), 1e-4),
        best_time(3, model.fit, X),
    )
