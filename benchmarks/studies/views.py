# SPDX-License-Identifier: BSD-3-Clause
"""Views of the data, scales and neighbors: rules that select a partition.

usage: python -m benchmarks.studies.views fit DATA CACHE [--cap 800] [--neighbors 20]
       python -m benchmarks.studies.views rules CACHE

``fit`` computes the partitions of every set for every view, number of neighbors and
scale, with learned and with uniform weights, and stores them in the folder CACHE, one
file per set. ``rules`` evaluates rules on these files in seconds. Labels are used for
scores only. DATA is a folder as in sets.py; the sets with noise of defaults.py are
added. Tables are used twice: standardized, and in their own units.

Rules are selected on one half of the sets and tested on the other (``half``).
"""

import argparse
import sys
import time
import zlib
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.stats import norm, rankdata
from sklearn.neighbors import kneighbors_graph
from threadpoolctl import threadpool_limits

from benchmarks.studies import sets
from benchmarks.studies.defaults import noisy
from cdsk._alternation import alternate
from cdsk._cdsk import CDSK, make_context
from cdsk._eigensolvers import ROUGH
from cdsk._initialization import first_weights
from cdsk._neighbors import Neighbors
from cdsk._operators.sparse import NeighborGraph
from cdsk._partition_choice import select_partition
from cdsk._spectral import assign_labels, spectral_partition

SCALES = (np.inf, 1.0, *(2.0 ** (-0.5 * i) for i in range(1, 7)))
COMPONENTS = (5, 10, 20, 50, 100, 200, 300)
MANY_FEATURES = 60
TIED = 0.1


# ---------------------------------------------------------------- data


def problems(data, cap):
    """Yield (name, X, y, scored points), with tables in their own units."""
    for share in (0.1, 0.2, 0.3):
        for seed in range(10):
            for name, X, y in noisy(np.random.RandomState(seed), seed, share):
                yield f"noise/{name} {share} {seed}", X, y, y >= 0
    for path in sorted(Path(data).glob("*.npz")):
        if family(path.stem) == "tables":
            with np.load(path) as archive:
                X = np.array(archive["X"], dtype=float)
                X, y = sets._cut(X, archive["y"].ravel(), cap)
            yield path.stem, X, y, np.ones(len(y), bool)
    for name, X, y, counted in sets.load(data, cap):
        if family(name) != "tables":
            yield name, X, y, counted


def family(name):
    """Return the family of a set: its battery, tables or images."""
    if "/" in name:
        return name.split("/")[0]
    return "tables" if name.startswith("t_") or name == "ionosphere" else "images"


def half(name):
    """Return 0 or 1, depending on the hash of the name."""
    return zlib.crc32(name.encode()) % 2


# ---------------------------------------------------------------- views


def views(X, table):
    """Yield (name, points) of every view."""
    X = X[:, np.ptp(X, axis=0) > 0]
    d = X.shape[1]
    centered = X - X.mean(axis=0)
    Z = centered / X.std(axis=0)
    yield "given", X
    yield "standard", Z
    yield "ranks", normal_scores(X, Z)
    if d >= MANY_FEATURES:
        length = np.linalg.norm(centered, axis=1, keepdims=True)
        yield "cosine", centered / np.maximum(length, 1e-12)
    if d >= MANY_FEATURES:
        yield from whitened(centered, "white")
    if d < MANY_FEATURES or table:
        yield from whitened(Z, "standard white")


def normal_scores(X, Z):
    """Return normal quantiles of ranks; features with many ties are standardized."""
    found, n = Z.copy(), len(X)
    for j, values in enumerate(X.T):
        if np.unique(values, return_counts=True)[1].max() <= TIED * n:
            found[:, j] = norm.ppf((rankdata(values) - 0.5) / n)
    return found / found.std(axis=0)


def whitened(centered, name):
    """Yield the leading components, scaled to equal variances."""
    vectors = np.linalg.svd(centered, full_matrices=False)[0]
    for m in COMPONENTS:
        if m < 0.7 * min(centered.shape):
            yield f"{name} {m}", vectors[:, :m] * np.sqrt(len(centered))


# ---------------------------------------------------------------- partitions


def distinct(X, c):
    """Return rows of distinct points, the point of every row, and multiplicities."""
    _, first, place, copies = np.unique(
        X, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    if not max(c, 7) < len(first) < len(X):
        return np.arange(len(X)), np.arange(len(X)), np.ones(len(X))
    order = np.argsort(first)
    rank = np.argsort(order)
    return first[order], rank[place.ravel()], copies[order].astype(float)


def partitions(V, copies, c, k, at, lam=0.2):
    """Yield (scale, learned labels, uniform labels, numbers) of distinct points."""
    neighbors = Neighbors(np.ascontiguousarray(V), k, robust=True, n_threads=1)
    graph = NeighborGraph(neighbors, copies / np.median(copies))
    start = None
    for scale in at:
        kernel = graph.kernel(scale * neighbors.scales, 1)
        rng, began = np.random.RandomState(0), time.process_time()
        context = make_context(CDSK(c, lam=lam, random_state=rng, n_threads=1))
        weights = first_weights(kernel, lam, "uniform")
        fit = alternate(kernel, weights, context, start, ROUGH)
        how = {"random_state": rng, "multiplicity": copies}
        learned = assign_labels(fit.embedding.vectors, "kmeans", n_init=10, **how)
        middle = time.process_time()
        how = {"n_init": 3, "tol": ROUGH, "start": start}
        first, uniform = spectral_partition(kernel, c, rng, **how)
        start = first.solution
        yield scale, learned, uniform, (
            float(fit.embedding.convergence_message is None),
            fit.embedding.eigenvalues[-1], first.eigenvalues[-1],
            middle - began, time.process_time() - middle,
        )  # fmt: skip


def modularity(V, labels):
    """Return the modularity of partitions in the graph of the 10 nearest neighbors."""
    near = kneighbors_graph(V, min(10, len(V) - 1))
    G = near.maximum(near.T)
    degree = np.diff(G.indptr)
    total, found = degree.sum(), []
    for p in labels:
        H = sparse.csr_array((np.ones(len(p)), (np.arange(len(p)), p)))
        inside = H.multiply(G @ H).sum(axis=0)
        found.append(np.sum(inside / total - ((H.T @ degree) / total) ** 2))
    return np.array(found)


def fit_all(options):
    """Compute all partitions and store them in the cache."""
    options.cache.mkdir(parents=True, exist_ok=True)
    if not any(True for _ in sets.load(options.data, 2)):
        sys.exit(f"no data sets in {options.data}; see benchmarks/studies/sets.py")
    for name, X, y, counted in problems(options.data, options.cap):
        if options.only and not any(only in name for only in options.only):
            continue
        c, began = len(np.unique(y[counted])), time.process_time()
        first, place, copies = distinct(X, c)
        table = family(name) == "tables"
        for k in options.neighbors:
            path = options.cache / f"{name.replace('/', '~')}~{k}.npz"
            if path.exists():
                continue
            rows, learned, uniform, extra = [], [], [], []
            for view, V in views(X, table):
                if family(name) == "noise" and view != "given":
                    continue
                if options.views and view not in options.views:
                    continue
                for scale, a, b, numbers in partitions(
                    V[first], copies, c, k, options.scales
                ):
                    rows.append((view, scale))
                    learned.append(a[place])
                    uniform.append(b[place])
                    extra.append(numbers)
                size = len(options.scales)
                quality = modularity(V, learned[-size:] + uniform[-size:])
                for i in range(size):
                    extra[i - size] += (quality[i], quality[size + i])
            spread = X.std(axis=0)
            np.savez_compressed(
                path, views=[r[0] for r in rows], scales=[r[1] for r in rows],
                learned=np.array(learned, np.int16), extra=np.array(extra),
                uniform=np.array(uniform, np.int16), y=y, counted=counted, c=c,
                spread=spread[spread > 0], shape=X.shape, n_distinct=len(first),
            )  # fmt: skip
        seconds = time.process_time() - began
        print(f"{name} {X.shape} c={c} {len(first)} {seconds:.1f} s", flush=True)


# ---------------------------------------------------------------- rules

TODAY = (0.707, 0.5, 0.354, 0.25, 0.177, 0.125)
WIDER = (1.0, *TODAY[1:])
SPREADS = 2.0
FEW_PER_CLUSTER = 25


class Case:
    """A data set with all its partitions, the input of a rule."""

    def __init__(self, path):
        name, k = path.stem.rsplit("~", 1)
        self.name, self.k = name.replace("~", "/"), int(k)
        self.family = family(self.name)
        with np.load(path) as kept:
            self.__dict__.update({key: kept[key] for key in kept.files})
        self.c, (self.n, self.d) = int(self.c), self.shape
        self.scales = np.round(self.scales, 3)
        self.ratio = self.spread.max() / self.spread.min()
        self.resolved, self.quality = self.extra[:, 0] > 0, self.extra[:, 5]
        y, counted = self.y, self.counted
        self.score = [sets.scores(y, p, counted) for p in self.learned]
        self._agreement = {}

    def at(self, view, scales):
        """Return the indices of the partitions of a view."""
        rows = list(zip(self.views, self.scales, strict=True))
        return [rows.index((view, scale)) for scale in scales]

    def votes(self, places, kind):
        """Return the balance of partitions and their agreement."""
        key = kind, tuple(places)
        if key not in self._agreement:
            parts = getattr(self, kind)[places].astype(np.int64)
            found = select_partition(places, list(parts), self.c)
            self._agreement[key] = found.balance, found.agreement
        return self._agreement[key]

    def tried(self, raw, ranks, fewest):
        """Return the views that a rule compares; tables are standardized unless raw."""
        has = set(self.views)
        as_given = "standard" if self.family == "tables" and not raw else "given"
        if self.d < MANY_FEATURES:
            first = "standard" if self.ratio > SPREADS else as_given
            return [first, "ranks"] if ranks and self.d >= 4 else [first]
        white = "white" if as_given == "given" else "standard white"
        names = [f"{white} {m}" for m in COMPONENTS[1:6] if m >= fewest(self.c)]
        return [as_given, *(v for v in ("standard", *names) if v in has)]


def balanced_agreement(case, view, scales, kind):
    """Return the mean over pairs of b_i b_j ARI_ij."""
    balance, agreement = case.votes(case.at(view, scales), kind)
    pairs = np.triu_indices(len(balance), 1)
    return np.mean((np.outer(balance, balance) * agreement)[pairs])


def voted(case, view, scales, power=4, balanced=1.0, modular=0.0):
    """Return the score of the partition with the most votes."""
    places = case.at(view, scales)
    balance, agreement = case.votes(places, "learned")
    votes = np.maximum(agreement, 0) ** power
    votes = votes @ (balance**balanced * case.resolved[places])
    votes *= np.maximum(case.quality[places], 1e-6) ** modular
    votes[~case.resolved[places]] = -1.0
    return case.score[places[int(np.argmax(votes >= votes.max() - 1e-12))]]


def rule(cases, scales=WIDER, *, few=False, pays=1.0, by=TODAY, kind="uniform",
         views=None, ranks=True, fewest=lambda c: c - 1, **vote):  # fmt: skip
    """Return the scores of all cases, and of the tables in their own units."""
    found = {}
    for (name, k), case in cases.items():
        small = few and case.d >= MANY_FEATURES and case.n < FEW_PER_CLUSTER * case.c
        if k != (5 if small else 20):
            continue
        for raw in (False, True) if case.family == "tables" else (False,):
            tried = views or case.tried(raw, ranks, fewest)
            if case.family == "noise":
                tried = ["given"]
            if views and case.family == "tables" and not raw:
                tried = ["standard"]
            view = tried[0]
            if len(tried) > 1:
                worth = [balanced_agreement(case, v, by, kind) for v in tried]
                if max(worth) > pays * worth[0]:
                    view = tried[int(np.argmax(worth))]
            found[name, raw] = voted(case, view, scales, **vote)
    return found


VARIANTS = {
    "six scales, as given": {"scales": TODAY, "views": ["given"]},
    "six scales, views, no ranks": {"scales": TODAY, "ranks": False},
    "six scales, views": {"scales": TODAY},
    "seven scales": {"scales": (1.0, *TODAY)},
    "seven, modularity": {"scales": (1.0, *TODAY), "modular": 1.0},
    "seven, modularity^2": {"scales": (1.0, *TODAY), "modular": 2.0},
    "seven, balance^1/2, agreement^6": {
        "scales": (1.0, *TODAY), "balanced": 0.5, "power": 6,
    },
    "eight, unweighted graph too": {"scales": (np.inf, 1.0, *TODAY)},
    "1 in place of 0.71": {},
    "the same, no ranks": {"ranks": False},
    "the same, views by learned weights": {"kind": "learned"},
    "the same, views by 1, 0.5, 0.25": {"by": (1.0, 0.5, 0.25)},
    "the same, any number of components": {"fewest": lambda c: 0},
    "the same, 5 neighbors of few": {"few": True},
    "recommended: 5 of few, views by four scales, must pay 1.2": {
        "few": True, "pays": 1.2, "by": TODAY[1:5],
    },
    "five: 1, 0.5, 0.35, 0.18, 0.125": {"scales": (1.0, 0.5, 0.354, 0.177, 0.125)},
}  # fmt: skip


def evaluate(options):
    """Print means of NMI/ARI: all, by half, tables raw, noise, families."""
    paths = [p for k in (20, 5) for p in sorted(options.cache.glob(f"*~{k}.npz"))]
    if not paths:
        sys.exit(f"{options.cache} contains no partitions. Run `fit` first.")
    cases = {(case.name, case.k): case for case in map(Case, paths)}
    groups = {
        "all": lambda n, raw: not raw and family(n) != "noise",
        "half 0": lambda n, raw: not raw and family(n) != "noise" and not half(n),
        "half 1": lambda n, raw: not raw and family(n) != "noise" and half(n),
        "raw tables": lambda n, raw: raw,
    }
    for name in ("noise", "images", "tables", "fcps", "graves", "wut", "deric"):
        groups[name] = lambda n, raw, name=name: not raw and family(n) == name
    print("| rule | sets |", " | ".join(groups), "|\n|", " --- |" * (len(groups) + 2))
    for name, how in VARIANTS.items():
        found = rule(cases, **how)
        of_groups = [
            [v for key, v in found.items() if of(*key)] for of in groups.values()
        ]
        cells = " | ".join(map(_mean, of_groups))
        # fewer sets for rules that need missing partitions by 5 neighbors
        print(f"| {name} | {len(found)} | {cells} |", flush=True)


def _mean(scores):
    """Return the mean NMI/ARI as text, empty without sets."""
    if not scores:
        return ""
    return "{:.3f}/{:.3f}".format(*np.mean(scores, axis=0)).replace("0.", ".")


def main():
    """Run ``fit`` or ``rules``."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    fit = commands.add_parser("fit")
    fit.add_argument("data")
    fit.add_argument("cache", type=Path)
    fit.add_argument("--cap", type=int, default=800)
    fit.add_argument("--neighbors", type=int, nargs="+", default=[20])
    fit.add_argument("--scales", type=float, nargs="+", default=SCALES)
    fit.add_argument("--only", nargs="+", help="parts of names")
    fit.add_argument("--views", nargs="+", help="names of views")
    fit.set_defaults(run=fit_all)
    rules = commands.add_parser("rules")
    rules.add_argument("cache", type=Path)
    rules.set_defaults(run=evaluate)
    options = parser.parse_args()
    with threadpool_limits(1):
        options.run(options)


if __name__ == "__main__":
    main()
