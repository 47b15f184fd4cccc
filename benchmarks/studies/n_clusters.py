# SPDX-License-Identifier: BSD-3-Clause
"""How often the number of clusters is found: suggest_n_clusters and simple rivals.

usage: python -m benchmarks.studies.n_clusters DATA [--cap 800] [--out docs/results]

DATA is a folder as sets.py describes it; its sets were used to design the rule. Those
of scikit-learn, which follow, were not. Labels are used for scores only.
Rules based on k-means see the first 50 principal components where there are more
features, which takes them a tenth of the time. Writes count.csv (every set) and prints
the tables; count.md, which has them with what they mean, is written by hand.
"""

import argparse
import csv
import sys
import time
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import (
    adjusted_rand_score,
    calinski_harabasz_score,
    silhouette_score,
)

from benchmarks.studies import sets
from cdsk import suggest_n_clusters

CANDIDATES = range(2, 20)
RULES = (
    "suggest_n_clusters",
    "score times agreement",
    "agreement alone",
    "plain eigengap",
    "silhouette",
    "Calinski-Harabasz",
    "k-means stability",
)
SEEDS = range(3, 6)
COMPONENTS = 50


def suggested(X):
    """By our score, by it times the agreement, by the agreement, by the plain gap.

    And our runner-up. The plain gap is that of the middle scale.
    """
    choice = suggest_n_clusters(X, CANDIDATES, random_state=0)
    eigenvalues = choice.eigenvalues[len(choice.eigenvalues) // 2]
    plain = -np.diff(eigenvalues)[choice.candidates - 1]
    product = choice.scores * choice.agreement
    curves = (choice.scores, product, choice.agreement, plain)
    found = [int(choice.candidates[np.argmax(curve)]) for curve in curves]
    return found, choice.runner_up


def by_k_means(X):
    """Largest silhouette and Calinski-Harabasz index of the partitions of k-means."""
    partitions = [
        KMeans(c, n_init=5, random_state=0).fit_predict(X) for c in CANDIDATES
    ]
    return [
        CANDIDATES[np.argmax([index(X, labels) for labels in partitions])]
        for index in (silhouette_score, calinski_harabasz_score)
    ]


def by_stability(X, pairs=5, share=0.8):
    """Largest mean ARI of k-means on pairs of random parts, where they overlap."""
    rng = np.random.RandomState(0)
    stability = np.zeros(len(CANDIDATES))
    for _ in range(pairs):
        parts = [rng.permutation(len(X))[: int(share * len(X))] for _ in range(2)]
        _, first, second = np.intersect1d(*parts, return_indices=True)
        for i, c in enumerate(CANDIDATES):
            a, b = (
                KMeans(c, n_init=3, random_state=0).fit_predict(X[p]) for p in parts
            )
            stability[i] += adjusted_rand_score(a[first], b[second]) / pairs
    return CANDIDATES[np.argmax(stability)]


def of_scikit_learn(cap):
    """Yield (name, X, y, counted points) of sets that were not used for the design."""
    for name in ("iris", "wine", "breast_cancer", "digits"):
        data = getattr(datasets, f"load_{name}")()
        spread = data.data.std(axis=0)
        X = (data.data - data.data.mean(axis=0)) / np.where(spread > 0, spread, 1)
        part = np.random.RandomState(0).permutation(len(X))[:cap]
        yield name, X[part], data.target[part], slice(None)
    for seed in SEEDS:
        X, y = datasets.make_moons(500, noise=0.07, random_state=seed)
        yield f"moons, seed {seed}", X, y, slice(None)
        X, y = datasets.make_circles(500, noise=0.06, factor=0.5, random_state=seed)
        yield f"circles, seed {seed}", X, y, slice(None)
        for c in range(3, 13):
            d = 2 + (c + seed) % 5
            X, y = datasets.make_blobs(500, d, centers=c, random_state=seed)
            yield f"{c} blobs in {d} dimensions, seed {seed}", X, y, slice(None)


def rows_of(source, used):
    for name, X, y, counted in source:
        true = len(np.unique(y[counted]))
        if true not in CANDIDATES:
            print(f"{name}: {true} clusters, out of range", file=sys.stderr)
            continue
        start = time.perf_counter()
        ours, second = suggested(X)
        seconds = time.perf_counter() - start
        Z = X
        if min(X.shape) > COMPONENTS:
            Z = PCA(COMPONENTS, random_state=0).fit_transform(X)
        found = [*ours, *by_k_means(Z), by_stability(Z)]
        print(f"{name}: {true}, found {found}, {seconds:.1f} s", file=sys.stderr)
        yield [used, name, len(X), X.shape[1], true, *found, second, f"{seconds:.2f}"]


def print_table(title, rows):
    print(f"\n{title}: {len(rows)} sets\n")
    print("| rule | exact | within 1 | mean error |\n| --- | --- | --- | --- |")
    true = np.array([row[4] for row in rows])
    for i, rule in enumerate(RULES):
        error = np.abs(np.array([row[5 + i] for row in rows]) - true)
        exact, close = np.sum(error == 0), np.sum(error <= 1)
        print(f"| {rule} | {exact} | {close} | {error.mean():.2f} |")
    either = sum(row[4] in (row[5], row[-2]) for row in rows)
    print(f"\nThe suggestion or its runner-up is right in {either} cases.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder of data sets")
    parser.add_argument("--cap", type=int, default=800, help="most points of a set")
    parser.add_argument("--out", type=Path, default=Path("docs/results"))
    arguments = parser.parse_args()
    folder = arguments.data
    if not any(folder.glob("*.npz")) and not (folder / "clustering-data-v1").is_dir():
        parser.error(
            f"{folder} holds neither NAME.npz files nor a folder clustering-data-v1; "
            "benchmarks/studies/sets.py says what is expected."
        )
    rows = list(rows_of(sets.load(folder, arguments.cap), "design"))
    fresh = list(rows_of(of_scikit_learn(arguments.cap), "fresh"))
    arguments.out.mkdir(parents=True, exist_ok=True)
    with (arguments.out / "count.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            [
                "use",
                "set",
                "samples",
                "features",
                "clusters",
                *RULES,
                "runner-up",
                "seconds",
            ]
        )
        writer.writerows(rows + fresh)
    print_table("Sets used for the design", rows)
    print_table("Sets not used for the design", fresh)


if __name__ == "__main__":
    main()
