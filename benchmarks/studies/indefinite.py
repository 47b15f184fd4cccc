# SPDX-License-Identifier: BSD-3-Clause
"""Indefinite kernels: compare |K|, K itself and a shifted K in the weight step.

usage: python -m benchmarks.studies.indefinite DATA [--cap 600] [--out docs/results]

Compares four fits with lam = 0.3 for every set and kernel: uniform weights; K as it is
(psd=True); the split K = K+ - K- (psd=False); K minus its smallest eigenvalue on the
diagonal (psd=True). Labels are used for scores only.
"""

import argparse
import csv
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.neighbors import NearestNeighbors

import cdsk
from benchmarks.studies import sets

LAM = 0.3


def local_kernel(X, factor):
    scale = NearestNeighbors(n_neighbors=7).fit(X).kneighbors()[0][:, -1]
    scale = np.where(scale > 0, scale, scale[scale > 0].min())
    return cdsk.gaussian_gram(X, factor * scale)


def truncated_kernel(X, factor, k):
    neighbors = NearestNeighbors(n_neighbors=k).fit(X).kneighbors_graph()
    kept = ((neighbors + neighbors.T).toarray() > 0) | np.eye(len(X), dtype=bool)
    return np.where(kept, local_kernel(X, factor), 0.0)


KERNELS = {
    "local 0.25": lambda X: local_kernel(X, 0.25),
    "local 0.5": lambda X: local_kernel(X, 0.5),
    "local 1": lambda X: local_kernel(X, 1.0),
    "7 neighbors, local 1": lambda X: truncated_kernel(X, 1.0, 7),
}


def ways(K):
    smallest = np.linalg.eigvalsh(K)[0]
    shifted = K + max(-smallest, 0.0) * np.eye(len(K))
    return {
        "uniform": (K, {"max_iter": 0, "psd": True}),
        "as it is": (K, {"psd": True}),
        "split": (K, {"psd": False}),
        "shifted": (shifted, {"psd": True}),
    }, smallest


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
        for kernel, make in KERNELS.items():
            K = make(X)
            table, smallest = ways(K)
            for way, (matrix, parameters) in table.items():
                began = time.perf_counter()
                model = cdsk.CDSK(
                    n_clusters,
                    kernel="precomputed",
                    lam=LAM,
                    random_state=0,
                    n_threads=1,
                    **parameters,
                ).fit(matrix)
                seconds = time.perf_counter() - began
                nmi, ari = sets.scores(y, model.labels_, counted)
                pairs = len(X) * (len(X) - 1) / 2
                row = (
                    name, len(X), kernel, way, round(smallest, 5), model.n_negative_,
                    round(model.n_clipped_ / pairs, 6), model.n_iter_,
                    len(model.support_), round(nmi, 4), round(ari, 4),
                    round(seconds, 3),
                )  # fmt: skip
                rows.append(row)
                print(*row, sep="\t", flush=True)
    header = (
        "set", "n", "kernel", "way", "smallest_eigenvalue", "n_negative",
        "clipped_pairs", "rounds", "support", "nmi", "ari", "seconds",
    )  # fmt: skip
    with open(Path(options.out, "general.csv"), "w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    print("\nkernel, way: NMI, ARI, seconds (means)")
    for kernel in KERNELS:
        for way in ("uniform", "as it is", "split", "shifted"):
            part = np.array([r[9:] for r in rows if r[2] == kernel and r[3] == way])
            print(f"{kernel:24s}{way:10s}", *part.mean(axis=0).round(3))


if __name__ == "__main__":
    main()
