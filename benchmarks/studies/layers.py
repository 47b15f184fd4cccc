# SPDX-License-Identifier: BSD-3-Clause
"""Dendrogram purity of ``layers_``, Ward, average linkage, Genie and HDBSCAN.

usage: python -m benchmarks.studies.layers [--data DATA] [--cap 400] [--parity 0]

Dendrogram purity (Heller & Ghahramani, ICML 2005) is the mean, over all pairs of points
of a class, of the share of that class in the smallest subtree that holds both: 1 if
every class is a subtree. Layers are those of a fit with the number of classes and of
one with ``n_clusters="auto"``; the other trees need no number. Known numbers are the
share of the numbers of classes that are those of the three most persistent layers. One
line per set, means of the sets of even and odd numbers at the end. Without --data:
generated hierarchies of three levels, scored by the classes of each, fitted with the
number of the second one.

Genie and HDBSCAN are compared if genieclust and hdbscan are installed.
"""

import argparse
import warnings

import numpy as np
from scipy.cluster.hierarchy import linkage

from benchmarks.studies.sets import load
from cdsk import CDSK


def dendrogram_purity(merges, leaves, y):
    """Return the purity of a tree, merges (child, child), of leaves with many rows."""
    n_leaves = len(merges) + 1
    counts = np.zeros((n_leaves + len(merges), int(y.max()) + 1))
    np.add.at(counts, (leaves, y), 1.0)
    below, pure = np.zeros_like(counts), 0.0
    for node in range(len(counts)):
        if node >= n_leaves:
            children = np.asarray(merges[node - n_leaves], dtype=int)
            counts[node] = counts[children].sum(axis=0)
            below[node] = _count_pairs(counts[children]).sum(axis=0)
        met = _count_pairs(counts[node]) - below[node]
        pure += met @ counts[node] / max(counts[node].sum(), 1.0)
    return pure / _count_pairs(counts[-1]).sum()


def _count_pairs(counts):
    return counts * (counts - 1) / 2


def condensed_purity(tree, y):
    """Return the purity of a condensed tree of HDBSCAN, whose points leave nodes."""
    n, n_classes = len(y), int(y.max()) + 1
    n_nodes = int(tree["parent"].max()) + 1
    counts, below = np.zeros((n_nodes, n_classes)), np.zeros((n_nodes, n_classes))
    counts[np.arange(n), y] = 1.0
    pure = 0.0
    children = [tree["child"][tree["parent"] == node] for node in range(n, n_nodes)]
    for node in range(n_nodes - 1, n - 1, -1):  # children have larger numbers
        counts[node] = counts[children[node - n]].sum(axis=0)
        below[node] = _count_pairs(counts[children[node - n]]).sum(axis=0)
        met = _count_pairs(counts[node]) - below[node]
        pure += met @ counts[node] / max(counts[node].sum(), 1.0)
    return pure / _count_pairs(counts[n]).sum()


def rivals(X):
    """Yield the name of every other tree, and the function that scores labels by it."""
    each = np.arange(len(X))
    for method in ("ward", "average"):
        merges = linkage(X, method)[:, :2]
        yield method, lambda y, merges=merges: dendrogram_purity(merges, each, y)
    try:
        from genieclust import Genie
    except ImportError:
        pass
    else:
        model = Genie(2).fit(X)
        merges = model.children_
        yield "Genie", lambda y, merges=merges: dendrogram_purity(merges, each, y)
    try:
        from hdbscan import HDBSCAN
    except ImportError:
        return
    tree = HDBSCAN(min_cluster_size=5).fit(X).condensed_tree_.to_numpy()
    yield "HDBSCAN", lambda y: condensed_purity(tree, y)


def hierarchies(n_each=12, n_sets=12):
    """Yield name, points, and the classes of three levels of blobs in blobs."""
    for seed in range(n_sets):
        rng = np.random.RandomState(seed)
        d, spread = (2, 5, 20)[seed % 3], (6.0, 3.5)[seed // 3 % 2]
        X, y = np.zeros((1, d)), np.zeros((1, 0), dtype=int)
        for level in range(3):
            scale = spread ** (2 - level) * np.sqrt(10 / d)
            n_children = rng.randint(2, 5, len(X))
            rows = np.repeat(np.arange(len(X)), n_children)
            y = np.column_stack([y[rows], np.arange(len(rows))])
            X = X[rows] + scale * rng.randn(len(rows), d)
        rows = np.repeat(np.arange(len(X)), rng.randint(n_each, 3 * n_each, len(X)))
        noise = 0.35 * rng.randn(len(rows), d)
        yield f"blobs {seed}, {d} features, {spread}", X[rows] + noise, y[rows]


def measure(X, ys, n_clusters):
    """Return the purity of every tree, the mean over the columns of ``ys``."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, count in (("layers", n_clusters), ("layers, auto", "auto")):
            layers = CDSK(count, random_state=0, n_threads=1).fit(X).layers_
            merges = layers.linkage[:, :2]
            scores = [dendrogram_purity(merges, layers.leaves, y) for y in ys]
            found[name] = np.mean(scores)
            persistent = np.argsort(-layers.layer_persistence[2:], kind="stable")[:3]
            known = [len(np.unique(y)) in 2 + persistent for y in ys]
            found[f"{name}: known numbers"] = np.mean(known)
        for name, score in rivals(X):
            found[name] = np.mean([score(y) for y in ys])
    return found


def sets(data, cap):
    """Yield name, points, classes of each level and their number in the fit."""
    if data is None:
        for name, X, y in hierarchies():
            yield name, X, list(y.T), len(np.unique(y[:, 1]))
        return
    for name, X, y, is_scored in load(data, cap):
        classes, y = np.unique(y[is_scored], return_inverse=True)
        yield name, X[is_scored], [y], len(classes)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data")
    parser.add_argument("--cap", type=int, default=400)
    parser.add_argument("--parity", type=int, choices=[0, 1])
    arguments = parser.parse_args()
    table = []
    for i, (name, *given) in enumerate(sets(arguments.data, arguments.cap)):
        if arguments.parity in (None, i % 2):
            found = measure(*given)
            table.append((i % 2, list(found.values())))
            values = (f"{key} {value:.3f}" for key, value in found.items())
            print(i, name, *values, sep=", ", flush=True)
    print("\nsets |", " | ".join(found))
    for parity, name in enumerate(("even", "odd")):
        rows = [values for own, values in table if own == parity]
        if rows:
            print(name, *np.mean(rows, axis=0).round(3), sep=" | ")


if __name__ == "__main__":
    main()
