# SPDX-License-Identifier: BSD-3-Clause
"""Criteria for lam: the value that each selects without labels, and its scores.

usage: python -m benchmarks.studies.lam DATA [--cap 600] [--bandwidth neighbor]
           [--seeds 1] [--step 1] [--out docs/results]

Every value of the grid (every STEPth) is fitted to the whole set and scored with the
labels. Each criterion selects one value on its sample, without labels.
"""

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np

from benchmarks.studies import sets
from cdsk import CDSK, select_lambda

CRITERIA = ("entropy", "paper", "cut", "stability")
GRID = [round(0.05 * i, 2) for i in range(1, 11)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("--cap", type=int, default=600)
    parser.add_argument("--bandwidth", default="neighbor")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--step", type=int, default=1)
    parser.add_argument("--out", default="docs/results")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    grid = GRID[options.step - 1 :: options.step]
    parameters = {"bandwidth": options.bandwidth, "n_threads": 1, "psd": True}
    header = "set", "criterion", "seed", "lam", "spread", "nmi", "ari"
    rows = []
    with open(Path(options.out, "lambda.csv"), "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        for name, X, y, counted in sets.load(options.data, options.cap):
            n_clusters = len(np.unique(y[counted]))
            table = {}
            for lam in grid:
                model = CDSK(n_clusters, lam=lam, random_state=0, **parameters)
                table[lam] = sets.scores(y, model.fit(X).labels_, counted)
            new = [(name, "fixed", "", lam, "", *table[lam]) for lam in grid]
            for seed in range(options.seeds):
                for criterion in CRITERIA:
                    choice = select_lambda(
                        X,
                        n_clusters,
                        grid=grid,
                        criterion=criterion,
                        random_state=seed,
                        **parameters,
                    )
                    spread = np.ptp(choice.curve) / max(choice.curve.max(), 1e-300)
                    scores = table[choice.lam]
                    new.append((name, criterion, seed, choice.lam, spread, *scores))
            writer.writerows(new)
            file.flush()
            rows += new
            print(name, len(X), flush=True)
    summarize(rows, grid)


def summarize(rows, grid):
    by_set = {}
    for r in rows:
        if r[1] == "fixed":
            by_set.setdefault(r[0], []).append(r[5:])
    table = np.array(list(by_set.values()))  # sets, grid, (nmi, ari)
    print(f"\nmean NMI, ARI over {len(table)} sets")
    for lam, score in zip(grid, table.mean(axis=0), strict=True):
        print(f"  fixed {lam:4.2f}            {score[0]:.4f} {score[1]:.4f}")
    print("  mean over the grid    ", *table.mean(axis=(0, 1)).round(4))
    print("  best for each set     ", *table.max(axis=1).mean(axis=0).round(4))
    print("  worst for each set    ", *table.min(axis=1).mean(axis=0).round(4))
    for criterion in CRITERIA:
        part = [r for r in rows if r[1] == criterion]
        nmi, ari = np.mean([r[5:] for r in part], axis=0)
        print(
            f"  {criterion:12s} {nmi:.4f} {ari:.4f}  mean lam "
            f"{np.mean([r[3] for r in part]):.2f}, median relative spread "
            f"{np.median([r[4] for r in part]):.1e}"
        )


if __name__ == "__main__":
    main()
