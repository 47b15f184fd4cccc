# SPDX-License-Identifier: BSD-3-Clause
"""Time and accuracy of bounds of cluster sizes, on random costs.

usage: python -m benchmarks.studies.sizes [--sizes 10000 100000 1000000] [--seeds 2]

Costs of moves are those of random log votes, whose clusters have unequal sizes: bounds
of 0.9 and 1.1 of the mean move a third to a half of the points. One line per problem:
sizes before and after, points moved, seconds, and how much the labels cost beyond the
bound of the relaxed problem. docs/notes/2026-11-19-sizes.md discusses them.
"""

import argparse
import time

import numpy as np

from cdsk._sizes import solve_sizes


def make_costs(n, c, seed):
    """Return costs (n, c) of moves, and the label of each point, which costs 0."""
    rng = np.random.default_rng(seed)
    votes = 3.0 * rng.normal(size=(n, c)) + 2.0 * rng.normal(size=c)
    labels, rows = votes.argmax(axis=1), np.arange(n)
    costs = np.logaddexp(0.0, votes[rows, labels, np.newaxis] - votes)
    costs[rows, labels] = 0.0
    return costs, labels


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10**4, 10**5, 10**6])
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args(arguments)
    for n in options.sizes:
        for c in (10, 50):
            if n * c > 10**7:
                continue
            for seed in range(options.seeds):
                costs, labels = make_costs(n, c, seed)
                begun = time.perf_counter()
                new, least = solve_sizes(
                    costs, np.ones(n), int(0.9 * n / c), int(1.1 * n / c)
                )
                seconds = time.perf_counter() - begun
                before, after = (np.bincount(y, minlength=c) for y in (labels, new))
                excess = costs[np.arange(n), new].sum() - least
                print(
                    f"{n:8d} points, {c:2d} clusters: {before.min()} to {before.max()} "
                    f"-> {after.min()} to {after.max()}, moved "
                    f"{np.mean(new != labels):.0%}, {seconds:.1f} s, excess "
                    f"{excess:.1e}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
