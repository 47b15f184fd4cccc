# SPDX-License-Identifier: BSD-3-Clause
"""Criteria for lam: what each chooses without labels, and what that scores.

usage: python benchmarks/lambda/compare.py DATA [--cap 600] [--out docs/results]

For every set and bandwidth rule, all values of the grid are fitted to the whole set
(scores by labels), and each criterion chooses one from its sample (no labels).
"""

import argparse
import csv
import sys
import warnings
from pathlib import Path

import numpy as np

import cdsk
from cdsk._lambda import CRITERIA, GRID

sys.path.insert(0, str(Path(__file__).parents[1]))
import sets

BANDWIDTHS = ("auto", "local")
SEEDS = (0, 1, 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("--cap", type=int, default=600)
    parser.add_argument("--out", default="docs/results")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for name, X, y, counted in sets.load(options.data, options.cap):
        n_clusters = len(np.unique(y[counted]))
        for bandwidth in BANDWIDTHS:
            common = {"bandwidth": bandwidth, "n_threads": 1, "psd": True}
            table = []
            for lam in GRID:
                model = cdsk.CDSK(n_clusters, lam=lam, random_state=0, **common)
                table.append(sets.scores(y, model.fit(X).labels_, counted))
            for lam, (nmi, ari) in zip(GRID, table, strict=True):
                rows.append((name, bandwidth, "fixed", "", lam, "", nmi, ari))
            for criterion in CRITERIA:
                for seed in SEEDS:
                    choice = cdsk.select_lambda(
                        X, n_clusters, criterion=criterion, random_state=seed, **common
                    )
                    spread = np.ptp(choice.curve) / max(abs(choice.curve).max(), 1e-300)
                    nmi, ari = table[GRID.index(choice.lam)]
                    rows.append(
                        (name, bandwidth, criterion, seed, choice.lam, spread, nmi, ari)
                    )
        print(name, len(X), flush=True)
    header = "set", "bandwidth", "criterion", "seed", "lam", "spread", "nmi", "ari"
    with open(Path(options.out, "lambda.csv"), "w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    summarise(rows)


def summarise(rows):
    for bandwidth in BANDWIDTHS:
        mine = [r for r in rows if r[1] == bandwidth]
        fixed = [r for r in mine if r[2] == "fixed"]
        by_set = {}
        for r in fixed:
            by_set.setdefault(r[0], []).append(r[6:])
        table = np.array(list(by_set.values()))  # sets, grid, (nmi, ari)
        print(f"\nbandwidth {bandwidth}: mean NMI, ARI over {len(table)} sets")
        for lam, score in zip(GRID, table.mean(axis=0), strict=True):
            print(f"  fixed {lam:4.2f}            {score[0]:.4f} {score[1]:.4f}")
        print("  mean over the grid    ", *table.mean(axis=(0, 1)).round(4))
        print("  best for each set     ", *table.max(axis=1).mean(axis=0).round(4))
        print("  worst for each set    ", *table.min(axis=1).mean(axis=0).round(4))
        for criterion in CRITERIA:
            part = [r for r in mine if r[2] == criterion]
            nmi, ari = np.mean([r[6:] for r in part], axis=0)
            lams = [r[4] for r in part]
            spread = np.median([r[5] for r in part])
            agree = np.mean(
                [len({r[4] for r in part if r[0] == name}) == 1 for name in by_set]
            )
            print(
                f"  {criterion:12s} {nmi:.4f} {ari:.4f}  median lam "
                f"{np.median(lams):.2f}, median relative spread {spread:.1e}, same "
                f"choice for all seeds on {agree:.0%} of the sets"
            )


if __name__ == "__main__":
    main()
