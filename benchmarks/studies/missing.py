# SPDX-License-Identifier: BSD-3-Clause
"""Cells are removed from complete tables: what filling them does to clusters.

usage: python -m benchmarks.studies.missing DATA [--cap 500] [--repeats 2]

DATA is a folder as in sets.py, of which the tables are used: files t_*.npz and
ionosphere.npz with at most 40 features. Sets of scikit-learn, blobs and arcs are added.
10 and 30 % of the cells are removed, at random or more often where another feature is
large. Imputers of scikit-learn fill them before a fit, or the fit itself does. Prints
the mean ARI with the labels of the fit to the complete table, the mean NMI with the
classes and the mean processor time of the imputers.
docs/notes/2026-11-19-tables.md discusses them.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from benchmarks.studies import sets
from cdsk import CDSK
from cdsk._preprocessing import Representation

MAX_FEATURES = 40
SHARES = 0.1, 0.3
MECHANISMS = "at random", "by another feature"
IMPUTERS = {
    "mean": SimpleImputer(),
    "KNNImputer": KNNImputer(),
    "IterativeImputer": IterativeImputer(n_nearest_features=15, random_state=0),
    "CDSK": None,
}


def load(folder, cap):
    """Yield (name, X, y) for every complete table."""
    for path in sorted(Path(folder).glob("*.npz")):
        if path.stem.startswith("t_") or path.stem == "ionosphere":
            X, y = sets.read_archive(path, cap)
            if X.shape[1] <= MAX_FEATURES:
                yield path.stem, X, y
    for name in ("iris", "wine", "breast_cancer"):
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        rows = np.random.RandomState(0).permutation(len(X))[:cap]
        standardize = Representation.fit(X[rows], "standardize")
        yield name, standardize.transform(X[rows]), y[rows]
    for seed in range(5):
        options = {"cluster_std": 1.5, "center_box": (-3, 3), "random_state": seed}
        X, y = datasets.make_blobs(cap, 10, centers=5 + 3 * seed, **options)
        yield f"blobs {seed}", X, y
        yield f"arcs {seed}", *arcs(cap, np.random.RandomState(seed))


def arcs(n, rng):
    """Return three arcs around each other, with three more features."""
    angle, y = 6.0 * rng.uniform(size=n), rng.randint(3, size=n)
    noise = rng.normal(size=(n, 3)) * [0.2, 0.1, 0.3]
    circle = [np.cos(angle) * (1 + y), np.sin(angle) * (1 + y)]
    return np.column_stack([*circle, noise + np.c_[y, angle, 0 * y]]), y


def remove(X, share, mechanism, rng):
    """Return X with NaN in a share of its cells, but not in all of a row."""
    n, d = X.shape
    probability = np.full((n, d), share)
    if mechanism != MECHANISMS[0]:
        ranks = np.argsort(np.argsort(X, axis=0), axis=0) / n
        probability = 2.0 * share * np.roll(ranks, 1, axis=1)
    is_missing = rng.uniform(size=(n, d)) < probability
    empty = np.flatnonzero(is_missing.all(axis=1))
    is_missing[empty, rng.randint(d, size=len(empty))] = False
    return np.where(is_missing, np.nan, X)


def fit(X, n_clusters):
    """Return the labels of a default fit."""
    return CDSK(n_clusters, random_state=0, n_threads=1).fit(X).labels_


def main(arguments=None):
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data")
    parser.add_argument("--cap", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    found, seconds, n_sets = {}, dict.fromkeys(IMPUTERS, 0.0), 0
    for _, X, y in load(options.data, options.cap):
        c, n_sets = len(np.unique(y)), n_sets + 1
        complete = fit(X, c)
        for share, mechanism, seed in np.ndindex(2, 2, options.repeats):
            case = SHARES[share], MECHANISMS[mechanism]
            holed = remove(X, *case, np.random.RandomState(seed))
            for name, imputer in IMPUTERS.items():
                start = time.process_time()
                filled = holed if imputer is None else imputer.fit_transform(holed)
                seconds[name] += time.process_time() - start
                labels = fit(filled, c)
                found.setdefault((name, case), []).append(
                    (
                        adjusted_rand_score(complete, labels),
                        normalized_mutual_info_score(y, labels),
                    )
                )
    cases = [(share, mechanism) for share in SHARES for mechanism in MECHANISMS]
    head = (f"{share:.0%} {mechanism}" for share, mechanism in cases)
    print(f"| {n_sets} sets | {' | '.join(head)} | mean | seconds |")
    print("| --- " * (len(cases) + 3) + "|")
    for name in IMPUTERS:
        means = [np.mean(found[name, case], axis=0) for case in cases]
        line = (f"{ari:.3f} / {nmi:.3f}" for ari, nmi in [*means, np.mean(means, 0)])
        mean_time = seconds[name] / (n_sets * options.repeats * len(cases))
        print(f"| {name} | {' | '.join(line)} | {mean_time:.3f} |")


if __name__ == "__main__":
    main()
