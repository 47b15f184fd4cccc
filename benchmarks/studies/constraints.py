# SPDX-License-Identifier: BSD-3-Clause
"""Fits that know the classes of some rows, or links, scored on the other rows.

usage: python -m benchmarks.studies.constraints DATA [--cap 400] [--half even|odd]
    [--draws 1] [--only NAME]

Of every set, whose noise is left out, the mean NMI and ARI over the draws without
labels and with 1, 3 and 10 labels per class; with 3 and 10 of which 10 % are replaced
by a random class; and with 30 random links, all right, or 10 % wrong. Every column is
scored on the rows that it was not told of, and beside it stands the fit without labels
on the same rows. The means come at the end, of all sets and of those of even and odd
number, and how many of the wrong labels are among the ``conflicts`` of a fit, and how
many of these are wrong. If active-semi-supervised-clustering and metric-learn are
installed, PCKMeans is told of the same links. Then the same for the left and right
halves of four blobs, where links alone tell which two are a cluster.
docs/notes/2026-11-19-constraints.md discusses them.
"""

import argparse
import time
import warnings
from collections import defaultdict
from dataclasses import replace
from itertools import product

import numpy as np
from sklearn.datasets import make_blobs

from benchmarks.studies.sets import load, scores
from cdsk import CDSK
from cdsk._candidate_fits import refine
from cdsk._cdsk import validate_fit
from cdsk._constraints import read_constraints
from cdsk._fit import finish, preprocess, resolve_lam
from cdsk._view_fits import fit_all_views, guide

try:
    with np.errstate():  # the import changes it
        from active_semi_clustering.exceptions import EmptyClustersException
        from active_semi_clustering.semi_supervised import PCKMeans
except ImportError:
    PCKMeans = None

MAX_CLASSES = 40
LABELS = {
    "1 label": (1, 0.0),
    "3 labels": (3, 0.0),
    "10 labels": (10, 0.0),
    "3, 10 % wrong": (3, 0.1),
    "10, 10 % wrong": (10, 0.1),
}
LINKS = {"30 links": (30, 0.0), "30, 10 % wrong": (30, 0.1)}
RIVAL = ", PCKMeans"


def draw_labels(y, n_each, wrong, rng):
    """Return y, -1 but for some rows of each class; a share of them is redrawn."""
    classes = np.unique(y)
    rows = np.concatenate(
        [rng.permutation(np.flatnonzero(y == name))[:n_each] for name in classes]
    )
    partial = np.full(len(y), -1)
    partial[rows] = y[rows]
    redrawn = rows[rng.rand(len(rows)) < wrong]
    partial[redrawn] = rng.choice(classes, len(redrawn))
    # a class without rows would have no name
    lost = np.setdiff1d(classes, partial)
    for name in lost:
        partial[rows[y[rows] == name]] = name
    return partial


def draw_links(y, n_links, wrong, rng):
    """Return random must-links and cannot-links; a share of them is reversed.

    Links that contradict earlier ones are left out.
    """
    first = rng.randint(len(y), size=n_links)
    second = (first + 1 + rng.randint(len(y) - 1, size=n_links)) % len(y)
    together = (y[first] == y[second]) ^ (rng.rand(n_links) < wrong)
    pairs = np.column_stack([first, second])
    return pairs[together], pairs[~together]


class Fits:
    """Fits of one set that know different things: its views are fitted once."""

    def __init__(self, X, n_clusters):
        self.X, self.model = X, CDSK(n_clusters, random_state=0, n_threads=1)
        self.X, context = validate_fit(self.model, X, None, must_link=[[0, 1]])
        problem = resolve_lam(preprocess(self.X, context), context)
        self.context, self.in_views = context, fit_all_views(problem, context)

    def labels_alone(self):
        """Return the labels of a fit that knows nothing."""
        first = self.in_views[0]
        return first.partitions[first.choice.chosen][first.problem.points.inverse]

    def fit(self, y=None, must_link=None, cannot_link=None):
        """Return labels and conflicts; None if what is known is a contradiction."""
        constraints = read_constraints(len(self.X), y, must_link, cannot_link)
        try:
            fitted = guide(self.in_views, constraints)
        except ValueError as error:
            print(f"  refused: {error}")
            return None
        context = replace(self.context, constraints=constraints)
        result = finish(fitted, refine(fitted, context), self.X, context)
        return result.labels, result.constraints.conflicts


def fit_rival(X, n_clusters, must_link, cannot_link):
    """Return labels by PCKMeans, of the first start without an empty cluster, or None.

    A broken link costs as much as the mean squared distance to the mean.
    """
    model = PCKMeans(n_clusters, w=np.var(X, axis=0).sum())
    for seed in range(10):
        np.random.seed(seed)  # noqa: NPY002, it is what PCKMeans uses
        try:
            return model.fit(X, ml=must_link.tolist(), cl=cannot_link.tolist()).labels_
        except EmptyClustersException:
            pass
    return None


def four_blobs():
    """Return blobs on the corners of a square, and in which half each point is."""
    corners = [[0, 0], [0, 6], [6, 0], [6, 6]]
    X, corner = make_blobs(240, centers=corners, cluster_std=0.9, random_state=0)
    return X, corner // 2


def measure(X, y, n_draws):
    """Yield (column, NMI, ARI, the same without labels, wrong, found, named)."""
    fits = Fits(X, len(np.unique(y)))
    alone = fits.labels_alone()
    cases = [(name, *case, draw_labels) for name, case in LABELS.items()]
    cases += [(name, *case, draw_links) for name, case in LINKS.items()]
    for seed, (name, n, wrong, draw) in product(range(1, n_draws + 1), cases):
        drawn = draw(y, n, wrong, np.random.RandomState(seed))
        told, errors = np.zeros(len(y), bool), []
        if draw is draw_labels:
            told[drawn >= 0] = True
            errors = np.flatnonzero(told & (drawn != y))
            found = None if told.all() else fits.fit(drawn)
        else:
            told[np.concatenate(drawn).ravel()] = True
            found = fits.fit(None, *drawn)
        if found is not None:
            labels, conflicts = found
            yield (
                name,
                *scores(y, labels, ~told),
                *scores(y, alone, ~told),
                len(errors),
                len(np.intersect1d(errors, conflicts)),
                len(conflicts),
            )
        if found is None or draw is draw_labels or PCKMeans is None:
            continue
        rival = fit_rival(X, len(np.unique(y)), *drawn)
        if rival is not None:
            values = *scores(y, rival, ~told), *scores(y, alone, ~told)
            yield name + RIVAL, *values, 0, 0, 0


def summarize(title, columns):
    """Print the means over sets, each a mean over draws."""
    print(f"{title}\n{'':24} sets   NMI   ARI | without labels | wrong found named")
    for name, of_sets in columns.items():
        means = np.mean(list(of_sets.values()), axis=0)
        sums = np.sum(list(of_sets.values()), axis=0)
        print(
            f"{name:24} {len(of_sets):4d} {means[0]:.3f} {means[1]:.3f} |   "
            f"{means[2]:.3f} {means[3]:.3f}  | {sums[4]:5.0f} {sums[5]:5.0f} "
            f"{sums[6]:5.0f}"
        )


def main():
    """Print a line per set, and the means."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--cap", type=int, default=400)
    parser.add_argument("--half", choices=["even", "odd"])
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    halves = {"even": defaultdict(dict), "odd": defaultdict(dict)}
    number = -1
    for name, X, y, counted in load(args.folder, args.cap):
        X, y = np.ascontiguousarray(X[counted]), y[counted]
        y = np.unique(y, return_inverse=True)[1]
        if not 1 < y.max() + 1 <= MAX_CLASSES:
            continue
        number += 1
        half = ("even", "odd")[number % 2]
        if half != (args.half or half) or args.only not in name:
            continue
        begun, results = time.perf_counter(), defaultdict(list)
        for column, *values in measure(X, y, args.draws):
            results[column].append(values)
        for column, values in results.items():
            halves[half][column][name] = np.mean(values, axis=0)
        line = "  ".join(f"{np.mean(v, 0)[0]:.2f}" for v in results.values())
        print(f"{name:28} {line}  {time.perf_counter() - begun:.1f} s", flush=True)
    both = {
        column: halves["even"][column] | halves["odd"][column]
        for column in [*LABELS, *LINKS, *(name + RIVAL for name in LINKS)]
    }
    for title, columns in {**halves, "all": both}.items():
        if any(columns.values()):
            summarize(title, {c: v for c, v in columns.items() if v})
    results = defaultdict(dict)
    for i, (column, *values) in enumerate(measure(*four_blobs(), 10)):
        results[column][i] = values
    summarize("halves of four blobs, ten draws", results)


if __name__ == "__main__":
    main()
