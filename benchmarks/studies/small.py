# SPDX-License-Identifier: BSD-3-Clause
"""Small clusters next to large ones: compare methods.

usage: python -m benchmarks.studies.small [--seeds 3] [--only NAME ...]

Two kinds of generated sets. "unequal": blobs, moons and rings, one cluster with 1 to
10 % of the points of another; the rule was designed on them. "mixed": mixtures with
sizes from a Dirichlet distribution in 2 to 100 dimensions, some with heavy tails,
sheared, or in noise, which is not scored; they were generated after the rule was
designed. Every method has its defaults and the true number of clusters. Prints NMI/ARI,
which docs/notes/2026-11-18-small.md discusses.
"""

import argparse
import warnings
from functools import partial

import numpy as np
from sklearn.cluster import AgglomerativeClustering, KMeans, SpectralClustering
from sklearn.datasets import make_circles, make_moons

from benchmarks.studies.sets import scores
from cdsk import CDSK

SIZES = (
    (4950, 50),
    (980, 20),
    (1000, 100, 10),
    (2000, 200, 20),
    (900, 300, 30, 30),
    (3000, 30, 30),
)

METHODS = {
    "CDSK": lambda c: CDSK(c, random_state=0),
    "uniform weights": lambda c: CDSK(c, max_iter=0, random_state=0),
    "k-means": lambda c: KMeans(c, n_init=10, random_state=0),
    "Ward": lambda c: AgglomerativeClustering(c),
    "single linkage": lambda c: AgglomerativeClustering(c, linkage="single"),
    "k-NN spectral": lambda c: SpectralClustering(
        c, affinity="nearest_neighbors", random_state=0
    ),
}


def unequal(seeds):
    """Yield (family, X, y): blobs on a grid, moons and rings, one of them small."""
    for seed in range(seeds):
        for d in (2, 5):
            for gap in (8, 20):
                for sizes in SIZES:
                    rng = np.random.RandomState(1000 * seed + 100 * d + gap)
                    y = np.repeat(np.arange(len(sizes)), sizes)
                    X = rng.normal(size=(len(y), d))
                    X[:, 0] += gap * (y % 2)
                    X[:, 1] += gap * (y // 2)
                    yield f"blobs, {d} features, {gap} apart", X, y
        for n, kept in ((1000, 100), (1000, 50), (2000, 20)):
            X, y = make_moons(n, noise=0.05, random_state=seed)
            rows = np.sort(np.append(np.flatnonzero(y == 0), np.flatnonzero(y)[:kept]))
            yield "moons", X[rows], y[rows]
            X, y = make_circles(2 * n, noise=0.04, factor=0.1, random_state=seed)
            rows = np.sort(np.append(np.flatnonzero(y == 0), np.flatnonzero(y)[:kept]))
            yield "ring and core", X[rows], y[rows]


def mixed(seeds):
    """Yield (family, X, y) of mixtures; -1 is noise."""
    for seed in range(seeds):
        for d in (2, 3, 8, 20, 100):
            for n in (150, 600, 2000):
                rng = np.random.RandomState(1000 + 97 * seed + 7 * d + n)
                c = rng.randint(2, 9)
                for kind in ("normal", "heavy tails", "slanted", "in noise"):
                    yield kind, *_mixture(rng, c, d, n, kind)


def _mixture(rng, c, d, n, kind):
    share = rng.dirichlet(np.full(c, 2.0 if kind == "in noise" else 0.7))
    y = np.repeat(np.arange(c), np.maximum((share * n).astype(int), 8))
    centers = rng.normal(size=(c, d)) * rng.uniform(3, 8) / np.sqrt(min(d, 8) / 2)
    draw = rng.normal if kind != "heavy tails" else partial(rng.standard_t, 3)
    scatter = draw(size=(len(y), d))
    X = centers[y] + scatter * np.exp(0.4 * rng.normal(size=c))[y, np.newaxis]
    if kind == "slanted":
        X = X @ (np.eye(d) + 0.6 * rng.normal(size=(d, d)) / np.sqrt(d))
        X *= np.exp(rng.normal(size=d))
    if kind == "in noise":
        around = rng.uniform(X.min(axis=0), X.max(axis=0), size=(len(X) // 8, d))
        X, y = np.concatenate([X, around]), np.append(y, np.full(len(around), -1))
    return X, y


def main():
    """Print a table for each kind of data sets."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=METHODS, default=list(METHODS))
    options = parser.parse_args()
    for draw in (unequal, mixed):
        found = {}
        for family, X, y in draw(options.seeds):
            counted = y >= 0
            for name in options.only:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # scikit-learn's, of split graphs
                    labels = METHODS[name](y.max() + 1).fit_predict(X)
                part = found.setdefault(family, {}).setdefault(name, [])
                part.append(scores(y, labels, counted))
        _show(draw.__name__, found, options.only)


def _show(kind, found, names):
    print(f"\n| {kind} | sets | {' | '.join(names)} |")
    print("| --- |" + " --- |" * (1 + len(names)))
    found["all"] = {
        name: [pair for part in found.values() for pair in part[name]] for name in names
    }
    for family, part in found.items():
        cells = ["/".join(f"{v:.3f}" for v in np.mean(part[n], axis=0)) for n in names]
        print(f"| {family} | {len(part[names[0]])} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
