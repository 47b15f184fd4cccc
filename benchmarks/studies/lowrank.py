# SPDX-License-Identifier: BSD-3-Clause
"""Error of the low-rank kernel, compared with scikit-learn's Nystroem.

usage: python -m benchmarks.studies.lowrank DATA [--cap 2000] [--rank 100] [--seeds 5]

For every set and for two bandwidths, the median distance and half of it, the mean
relative error of K at equal rank: in the trace norm, and in the Frobenius norm of a
sample of 500 points.
"""

import argparse
import warnings

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.kernel_approximation import Nystroem

from benchmarks.studies import sets
from cdsk import gaussian_gram
from cdsk._operators.low_rank import LowRankKernel

FACTORS = 1.0, 0.5
SAMPLE = 500


def errors(F, K, sample):
    """Return the relative errors of F'F: trace norm, and Frobenius norm of a sample."""
    part = F[:, sample].T @ F[:, sample]
    return (
        # if both are rounding errors, the sign is arbitrary
        abs(1.0 - np.sum(np.square(F)) / F.shape[1]),
        np.linalg.norm(K - part) / np.linalg.norm(K),
    )


def compared(X, bandwidth, rank, seeds):
    """Return mean errors (2, 2): ours and Nystroem, trace and Frobenius norm."""
    sample = np.random.RandomState(0).permutation(len(X))[:SAMPLE]
    K = gaussian_gram(X[sample], bandwidth)
    found = []
    for seed in range(seeds):
        ours = LowRankKernel(X, bandwidth, rank, seed, 1).F
        nystroem = Nystroem(
            gamma=0.5 / bandwidth**2, n_components=rank, random_state=seed
        )
        theirs = nystroem.fit_transform(X).T
        found.append([errors(F, K, sample) for F in (ours, theirs)])
    return np.mean(found, axis=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("--cap", type=int, default=2000)
    parser.add_argument("--rank", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(
        "| set | n | bandwidth | rank | trace, ours | Nystroem | Frobenius, ours | "
        "Nystroem |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    closer, count = np.zeros(2, int), 0
    for name, X, _, _ in sets.load(options.data, options.cap):
        median = np.median(pdist(X[:: max(1, len(X) // 1000)]))
        rank = min(options.rank, len(X) // 5)
        for factor in FACTORS:
            ours, theirs = compared(X, factor * median, rank, options.seeds)
            closer, count = closer + (ours < theirs), count + 1
            print(
                f"| {name} | {len(X)} | {factor:g} median | {rank} | {ours[0]:.2e} | "
                f"{theirs[0]:.2e} | {ours[1]:.2e} | {theirs[1]:.2e} |",
                flush=True,
            )
    print(
        f"\nOurs is closer in {closer[0]} of {count} by the trace norm, in "
        f"{closer[1]} by the Frobenius norm."
    )


if __name__ == "__main__":
    main()
