# SPDX-License-Identifier: BSD-3-Clause
"""How categories become coordinates, and which kernels vote on tables with them.

usage: python -m benchmarks.studies.tables DIR [--cap 1500] [--without NAME ...]

DIR contains tables with categories, NAME.csv.gz: a header, the class in the last
column, empty cells where a value is missing. For every column, columns.csv has a line
NAME,COLUMN,KIND with KIND "number" or "category". Prints mean NMI / ARI in two parts:

    voters   groups of partitions for each coding: kernels on the neighbor graph and
             spanning trees as for numbers, and kernels on all pairs
    codings  fits with one coding, with the selected one for several gains, of landmarks
             with several factors of their votes, and k-means

docs/notes/2026-11-19-tables.md discusses them.
"""

import argparse
import csv
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA

from benchmarks.studies import sets
from benchmarks.studies.voters import record, select_among
from cdsk import CDSK, BlockCDSK
from cdsk._candidates import WIDE_FACTORS, make_candidates, wide_candidates
from cdsk._coding import CODINGS, Coding
from cdsk._columns import Columns
from cdsk.blocks import _estimator
from cdsk.blocks._landmarks import LANDMARK_METHODS

GRAPH, TREE, NEIGHBOR, HALF = "graph", "tree", "neighbor", "0.5"
WIDE = NEIGHBOR, *(f"{factor:g}" for factor in WIDE_FACTORS)

# Which partitions vote: those of these kernels, by learned and by initial weights, and
# those by spanning trees.
VOTERS = {
    "graph, neighbor, trees": (GRAPH, NEIGHBOR, TREE),
    "graph, neighbor, 0.5, trees": (GRAPH, NEIGHBOR, HALF, TREE),
    "all": (GRAPH, *WIDE, TREE),
    "graph and all wide": (GRAPH, *WIDE),
    "wide": WIDE,
    "neighbor, 0.25, 1": (NEIGHBOR, "0.25", "1"),
    "neighbor, 0.5, 1": (NEIGHBOR, HALF, "1"),
}
GAINS = 1.0, 1.2, 1.5, 2.0
COMPONENTS = ", components"
# Of the votes of landmarks, in units of their scales.
FACTORS = 1.0, 0.5, 0.25


def load(folder, cap):
    """Yield (name, frame, y) for every table, at most ``cap`` rows each."""
    with Path(folder, "columns.csv").open(encoding="utf-8") as file:
        kinds = {(name, column): kind for name, column, kind in csv.reader(file)}
    for path in sorted(Path(folder).glob("*.csv.gz")):
        name = path.name.removesuffix(".csv.gz")
        frame = pd.read_csv(path, dtype=str, keep_default_na=False, na_values=[""])
        y = frame.pop(frame.columns[-1]).factorize()[0]
        for column in frame:
            is_number = kinds[name, column] == "number"
            frame[column] = frame[column].astype(float if is_number else "category")
        if len(frame) > cap:
            rows = np.random.RandomState(0).permutation(len(frame))[:cap]
            frame, y = frame.iloc[rows], y[rows]
        yield name, frame, y


def codings(frame, n_clusters):
    """Return the coordinates of a table in every coding, and their components."""
    columns, coded = Columns.find(frame, "from_dtype"), {}
    X = columns.encode(frame)
    for name in CODINGS:
        Z = Coding.fit(X, name, columns.n_categories).transform(X)
        k = min(max(n_clusters - 1, 5), *Z.shape)
        components = PCA(k, svd_solver="full").fit_transform(Z)
        coded |= {name: Z, name + COMPONENTS: components}
    return coded


def add_wide(X, context, multiplicity, **options):
    """Return the kernels on the neighbor graph and those of tables."""
    numbers = make_candidates(X, context, multiplicity=multiplicity, **options)
    graph = [candidate for candidate in numbers if candidate.graph is not None]
    return graph + wide_candidates(X, context, multiplicity)


def winners(X, n_clusters):
    """Return the labels that every group of voters selects."""
    seen, inverse = record(X, n_clusters, add_wide, representation="raw")
    names, labels = seen["names"], {}
    kinds = [GRAPH if "scales" in name else TREE for name in names]
    wide = [i for i, name in enumerate(names) if name.startswith("bandwidth")]
    for i, place in enumerate(wide):
        kinds[place] = WIDE[i % len(WIDE)]
    for group, voters in VOTERS.items():
        kept = [i for i, kind in enumerate(kinds) if kind in voters]
        # as in a fit, no cohesion without neighbors
        n_args = 1 if GRAPH not in voters else None
        labels[group] = select_among(kept, seen, n_args)[inverse]
    return labels


def by_gain(frame, n_clusters):
    """Return the labels of one coding each, and those selected with each gain."""

    def fit(coding):
        model = CDSK(n_clusters, representation=coding, random_state=0, n_threads=1)
        return model.fit(frame)

    labels, found = {name: fit(name).labels_ for name in CODINGS}, fit("auto")
    scores = found.representation_.scores or dict.fromkeys(CODINGS, 0.0)
    first, other = CODINGS
    for gain in GAINS:
        best = other if scores[other] > gain * scores[first] else first
        labels[f"selected, gain {gain:g}"] = labels[best]
    return labels | {"default": found.labels_}


def by_landmarks(frame, n_clusters):
    """Return the labels of BlockCDSK by the kind of landmarks and factor of votes."""
    labels = {}
    for method in LANDMARK_METHODS:
        for factor in FACTORS:
            model = BlockCDSK(n_clusters, landmarks=method, random_state=0, n_threads=1)
            with mock.patch.object(_estimator, "TABLE_FACTOR", factor):
                name = f"BlockCDSK, {method}, votes at {factor:g} of the scales"
                labels[name] = model.fit(frame).labels_
    return labels


def peers(coded, n_clusters):
    """Return the labels of k-means in every coding."""
    means = KMeans(n_clusters, n_init=10, random_state=0)
    return {f"k-means, {name}": means.fit_predict(Z) for name, Z in coded.items()}


def main(arguments=None):
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--cap", type=int, default=1500)
    parser.add_argument("--without", nargs="*", default=[], metavar="NAME")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    voted, fitted, n_tables = {}, {}, 0

    def add(found, key, y, labels):
        scores = sets.scores(y, labels, np.ones(len(y), bool))
        found.setdefault(key, []).append(scores)

    for name, frame, y in load(options.folder, options.cap):
        if name in options.without:
            continue
        n_clusters, n_tables = y.max() + 1, n_tables + 1
        coded = codings(frame, n_clusters)
        for coding, Z in coded.items():
            for group, labels in winners(Z, n_clusters).items():
                add(voted, (group, coding), y, labels)
        labels_of = by_gain(frame, n_clusters) | by_landmarks(frame, n_clusters)
        labels_of |= peers(coded, n_clusters)
        for key, labels in labels_of.items():
            add(fitted, key, y, labels)

    def mean(scores):
        return " / ".join(f"{score:.3f}" for score in np.mean(scores, axis=0))

    columns = [name + part for name in CODINGS for part in ("", COMPONENTS)]
    print(f"| {n_tables} tables | {' | '.join(columns)} |")
    print("| --- " * (1 + len(columns)) + "|")
    for group in VOTERS:
        line = (mean(voted[group, coding]) for coding in columns)
        print(f"| {group} | {' | '.join(line)} |")
    print("\n|  | NMI / ARI |\n| --- | --- |")
    for key, scores in fitted.items():
        print(f"| {key} | {mean(scores)} |")


if __name__ == "__main__":
    main()
