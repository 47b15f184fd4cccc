# SPDX-License-Identifier: BSD-3-Clause
"""Verdicts of cdsk.stability on generated data: half of the rows, or bootstraps.

usage: python -m benchmarks.studies.stability [--seeds 4] [--first 0] [--n 200]
    [--scheme half]

Sets with clusters: three blobs, 8, 4 or 3 standard deviations apart, the first also in
20 % of uniform noise, and moons. Sets without: uniform in a square, Gaussian in two
dimensions, round or four times as long as wide, and in five. Of each seed one line with
the verdicts, and the means over all seeds at the end, which
docs/notes/2026-11-19-stability.md discusses. A bootstrap draws as many rows as there
are, with replacement; copies of a row are one point with a multiplicity.
"""

import argparse
from collections import defaultdict

import numpy as np
from sklearn.datasets import make_blobs, make_moons

from cdsk import CDSK, _stability

N_RESAMPLES, N_NULL = 12, 10
CENTERS = {
    8: [[0, 0], [8, 0], [0, 8]],
    4: [[0, 0], [4, 0], [2, 3.5]],
    3: [[0, 0], [3, 0], [1.5, 2.6]],
}


def clustered(n, seed):
    """Yield name, data and number of clusters of sets that have clusters."""
    rng = np.random.RandomState(1000 + seed)
    for distance, centers in CENTERS.items():
        X, _ = make_blobs(n, centers=centers, random_state=seed)
        yield f"blobs, {distance} apart", X, 3
    X, _ = make_blobs(n, centers=CENTERS[8], random_state=seed)
    yield "blobs, 8 apart, auto", X, "auto"
    X, _ = make_blobs(n - n // 5, centers=CENTERS[8], random_state=seed)
    noise = rng.uniform(-4, 12, (n // 5, 2))
    yield "blobs, 8 apart, in noise", np.vstack([X, noise]), 3
    yield "moons", make_moons(n, noise=0.1, random_state=seed)[0], 2


def unclustered(n, seed):
    """Yield the same of sets that have none."""
    rng = np.random.RandomState(2000 + seed)
    yield "square, 2", rng.rand(n, 2), 2
    yield "square, 4", rng.rand(n, 2), 4
    yield "Gaussian, 3", rng.randn(n, 2), 3
    yield "Gaussian, auto", rng.randn(n, 2), "auto"
    yield "long Gaussian, 2", rng.randn(n, 2) * [4, 1], 2
    yield "Gaussian in 5 dimensions, 3", rng.randn(n, 5), 3


def bootstrap(weights, rng):
    """Draw as many rows as there are, with replacement."""
    n = len(weights)
    drawn = np.bincount(rng.integers(0, n, n), minlength=n).astype(float)
    rows = np.flatnonzero(drawn)
    return rows, drawn[rows]


def measure(X, n_clusters, seed):
    """Return what the table shows of one set."""
    model = CDSK(n_clusters, random_state=seed, n_threads=1).fit(X)
    found = _stability.stability(
        model, X, N_RESAMPLES, n_null=N_NULL, random_state=seed
    )
    return (
        found.ari.mean(),
        found.ari_interval[0],
        found.null_ari.mean(),
        found.null_ari_limit,
        found.verdict == "stable",
        found.verdict == "unclear",
        np.mean([verdict == "stable" for verdict in found.cluster_verdicts]),
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--scheme", choices=["half", "bootstrap"], default="half")
    arguments = parser.parse_args()
    if arguments.scheme == "bootstrap":
        _stability.draw_sample = bootstrap
    table = defaultdict(list)
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        for kind in (clustered, unclustered):
            for name, X, n_clusters in kind(arguments.n, seed):
                table[name].append(measure(X, n_clusters, seed))
                values = np.array(table[name][-1], dtype=float)
                print(seed, name, *values.round(2), sep=", ", flush=True)
    print("\nset | ARI | low | null ARI | limit | stable | unclear | stable clusters")
    for name, rows in table.items():
        print(name, *np.mean(rows, axis=0).round(2), sep=" | ")


if __name__ == "__main__":
    main()
