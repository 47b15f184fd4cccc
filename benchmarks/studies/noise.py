# SPDX-License-Identifier: BSD-3-Clause
"""Which points are noise: compare CDSK(noise=) with other rules and HDBSCAN.

usage: python -m benchmarks.studies.noise DATA [--cap 800] [--rate 0.01]

DATA is a folder as described in sets.py. The first part has data without noise: blobs
of several shapes and dimensions, moons, circles, digits, and the planar batteries
without noise. The fraction marked should be at most the rate. The second part has blobs
and moons in 10 to 30 % of uniform noise: precision, recall and F1 of the noise, and ARI
of the true points that are not marked. The sets "design" were used to design the rule,
"later" and the seeds 10 to 14 only after the first decisions.

Labels are those of a default fit, then the true ones (noise has that of the nearest
true point), which show how much the rule loses by errors of the clustering. Prints the
tables, which docs/notes/2026-11-17-noise.md discusses.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
from scipy import special, stats
from sklearn import datasets
from sklearn.cluster import HDBSCAN
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import KNeighborsClassifier

from benchmarks.studies import sets
from benchmarks.studies.defaults import noisy
from cdsk import CDSK
from cdsk import _voting as noise
from cdsk._neighbors import Neighbors

DESIGN, FRESH = range(5), range(10, 15)
SHARES = 0.1, 0.2, 0.3
BATTERIES = {"design": ("fcps", "graves"), "later": ("wut", "deric")}


class Data:
    """A data set with the labels of a fit, or given ones."""

    def __init__(self, X, n_clusters, labels=None):
        X = np.unique(X, axis=0) if labels is None else X
        model = CDSK(n_clusters, random_state=0, n_threads=1).fit(X)
        self.X = X
        self.labels = model.labels_ if labels is None else labels
        self.Z = model.representation_.transform(X)
        self.typicality = model.typicality_

    def neighbors(self, k):
        return Neighbors(self.Z, k, scale_neighbor=k)


def ours(data, rate, k=noise.NOISE_NEIGHBOR):
    """Apply the rule of CDSK, with any neighbor."""
    neighbors = data.neighbors(k)
    values, n = np.log(neighbors.scales), len(data.labels)
    thresholds = noise._thresholds(
        values, data.labels, rate, np.ones(n), k, data.Z.shape[1]
    )
    return values > thresholds[data.labels]


def in_clusters(values, data, rule):
    """Apply a rule for the values of one cluster to all clusters."""
    marks = np.zeros(len(values), dtype=bool)
    for y in np.unique(data.labels):
        marks[data.labels == y] = rule(values[data.labels == y])
    return marks


def by_mad(values, rate):
    """Mark outliers of a normal distribution with this median and MAD."""
    middle = np.median(values)
    deviation = np.median(np.abs(values - middle)) / stats.norm.isf(0.25)
    return values > middle + stats.norm.isf(rate) * deviation


def by_dimension(data, rate, k=7):
    """Assume normal clusters of the estimated dimension (Levina & Bickel)."""
    distances = np.maximum(data.neighbors(20).distances, 1e-300)
    marks = np.zeros(len(distances), dtype=bool)
    rng = np.random.RandomState(0)
    for y in np.unique(data.labels):
        near = distances[data.labels == y]
        dimension = 1.0 / np.mean(np.log(near[:, -1:] / near[:, :-1]))
        dimension = np.clip(dimension, 0.5, data.Z.shape[1])
        drawn = rng.chisquare(dimension, 20000) / 2.0
        drawn += np.log(rng.gamma(k, size=20000))
        values = dimension * np.log(near[:, k - 1])
        far = np.quantile(drawn, 1.0 - rate) - np.median(drawn)
        marks[data.labels == y] = values > np.median(values) + far
    return marks


def of_many_points(data, rate, k=7):
    """Use the quantiles of infinitely many points, starting with all points."""

    def quantile(share):
        # of log Gamma(k) + Exp(1): the survival function at x = exp(t)
        t = np.linspace(-10, 40, 20001)
        x = np.exp(t)
        tail = special.gammaincc(k, x) + k / x * special.gammainc(k + 1, x)
        return np.interp(share, 1.0 - tail, t)

    low, mid, high = (quantile(share * (1.0 - rate)) for share in (0.1, 0.5, 1.0))
    ratio = (high - mid) / (mid - low)

    def rule(values):
        kept = np.ones(len(values), dtype=bool)
        while True:
            low, mid = np.quantile(values[kept], [0.1, 0.5])
            now = kept & (values <= mid + ratio * (mid - low))
            if (now == kept).all():
                return ~kept
            kept = now

    return in_clusters(np.log(data.neighbors(k).scales), data, rule)


def minus_log_typicality(data):
    """Return minus the log of the typicality, finite also where that is 0."""
    return -np.log(np.maximum(data.typicality, np.finfo(float).tiny))


RULES = {
    "**ours**, 12th neighbor": ours,
    "ours, 7th": lambda data, rate: ours(data, rate, 7),
    "ours, 20th": lambda data, rate: ours(data, rate, 20),
    "many points": of_many_points,
    "dimension": by_dimension,
    "MAD, 7th": lambda data, rate: in_clusters(
        np.log(data.neighbors(7).scales), data, lambda values: by_mad(values, rate)
    ),
    "MAD, typicality": lambda data, rate: in_clusters(
        minus_log_typicality(data), data, lambda values: by_mad(values, rate)
    ),
    "quantile": lambda data, rate: (
        data.neighbors(7).scales > np.quantile(data.neighbors(7).scales, 1.0 - rate)
    ),
    "HDBSCAN": lambda data, rate: HDBSCAN(copy=True).fit_predict(data.Z) < 0,
}


def generated():
    """Yield (family, X, number of clusters) of generated sets without noise."""
    for seed in range(3):
        rng = np.random.RandomState(seed)
        for d in (2, 3, 5, 10, 20):
            X, _ = datasets.make_blobs(
                500, d, centers=4, center_box=(-10, 10), random_state=seed
            )
            yield f"4 blobs, {d} dimensions", X, 4
            if d == 2:
                yield "4 sheared blobs", X @ [[0.6, -0.6], [-0.4, 0.8]], 4
        X, _ = datasets.make_blobs(
            [400, 150, 50], centers=[[0, 0], [8, 0], [0, 8]], random_state=seed
        )
        yield "blobs of 400, 150, 50", X, 3
        X, _ = datasets.make_blobs(250, 5, centers=10, center_box=(-30, 30),
                                   random_state=seed)  # fmt: skip
        yield "10 blobs of 25, 5 dimensions", X, 10
        X = rng.uniform(size=(500, 2)) + np.repeat([[0, 0], [2, 0]], 250, axis=0)
        yield "2 squares", X, 2
        X = rng.standard_t(3, (500, 2)) + np.repeat([[0, 0], [30, 0]], 250, axis=0)
        yield "2 clusters of Student's t, 3 degrees", X, 2
        yield "moons", datasets.make_moons(500, noise=0.07, random_state=seed)[0], 2
        X, _ = datasets.make_circles(500, noise=0.05, factor=0.5, random_state=seed)
        yield "circles", X, 2
    yield "digits", datasets.load_digits().data[:900], 10
    yield "iris", datasets.load_iris().data, 3


def iter_planar_sets(folder, cap):
    """Yield (family, X, number of clusters) of the planar sets without noise."""
    for name, X, y, counted in sets.load(folder, cap):
        for use, batteries in BATTERIES.items():
            named = any(word in name for word in ("nois", "outlier"))
            small = X.shape[1] <= 3 and counted.all() and not named
            if small and name.split("/")[0] in batteries:
                yield f"{' and '.join(batteries)} ({use})", X, len(np.unique(y))


def print_clean(source, rate):
    """Print the fractions that are marked, by family."""
    found: dict[str, list] = {}
    for family, X, n_clusters in source:
        data = Data(X, n_clusters)
        marked = [rule(data, rate).mean() for rule in RULES.values()]
        found.setdefault(family, []).append(marked)
    print(f"\nPercent marked of data without noise, rate {rate:.1%}\n")
    print(f"| | sets | {' | '.join(RULES)} |\n{'| --- ' * (2 + len(RULES))}|")
    found["all"] = [marked for rows in found.values() for marked in rows]
    for family, rows in found.items():
        shown = " | ".join(f"{100 * value:.1f}" for value in np.mean(rows, axis=0))
        print(f"| {family} | {len(rows)} | {shown} |")


def scores(y, marks, labels):
    """Return F1, precision and recall of noise, and ARI of unmarked true points."""
    true = y < 0
    both = np.sum(true & marks)
    rest = ~true & ~marks
    return (
        2 * both / (true.sum() + marks.sum()),
        both / max(marks.sum(), 1),
        both / true.sum(),
        adjusted_rand_score(y[rest], labels[rest]),
    )


def print_noisy(seeds, rate):
    """Print F1 by set and fraction of noise, and the means of all scores."""
    for of_fit in (True, False):
        found: dict[str, dict] = {rule: {} for rule in RULES}
        for seed in seeds:
            for share in SHARES:
                for name, X, y in noisy(np.random.RandomState(seed), seed, share):
                    true = y >= 0
                    nearest = KNeighborsClassifier(1).fit(X[true], y[true]).predict(X)
                    n_clusters = len(np.unique(y[true]))
                    data = Data(X, n_clusters, nearest)
                    if of_fit:
                        model = CDSK(n_clusters, random_state=0, n_threads=1)
                        data.labels = model.fit(X).labels_
                    for rule, rows in found.items():
                        result = scores(y, RULES[rule](data, rate), data.labels)
                        rows.setdefault(f"{name[6:]} {share:.0%}", []).append(result)
        columns = list(found["HDBSCAN"])
        which = "of the fit" if of_fit else "true"
        print(f"\nF1 of noise, seeds {seeds[0]} to {seeds[-1]}, labels {which}\n")
        means = "F1 | precision | recall | ARI of the rest"
        print(f"| | {' | '.join(columns)} | {means} |")
        print(f"{'| --- ' * (5 + len(columns))}|")
        for rule, rows in found.items():
            single = [np.mean(rows[column], axis=0)[0] for column in columns]
            means = np.mean([result for rows in rows.values() for result in rows], 0)
            print(f"| {rule} | {' | '.join(f'{v:.2f}' for v in [*single, *means])} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder of data sets")
    parser.add_argument("--cap", type=int, default=800, help="most points of a set")
    parser.add_argument("--rate", type=float, default=0.01)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    rate = arguments.rate
    print_clean(generated(), rate)
    print_clean(iter_planar_sets(arguments.data, arguments.cap), rate)
    for seeds in (DESIGN, FRESH):
        print_noisy(seeds, rate)


if __name__ == "__main__":
    main()
