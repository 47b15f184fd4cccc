# SPDX-License-Identifier: BSD-3-Clause
"""How often suggest_n_clusters and other rules find the number of clusters.

usage: python -m benchmarks.studies.n_clusters DATA [--cap 800] [--out docs/results]

DATA is a folder as described in sets.py. The rule was designed on its images, on
ionosphere and on the batteries fcps, graves and wut ("design"). The tables t_* and the
battery deric were added later ("later"), and the sets of scikit-learn last ("fresh").
Labels are used for scores only. Rules based on k-means, and HDBSCAN, use the first 50
principal components if there are more features.

The second part scores several hundred rules that use the agreement between scales: the
best ones on one half of the folder are tested on the other. The third part compares
rules for the view in which clusters of few features are counted, on these sets, on
tables in their own units and on blobs in several units.

Writes count.csv (every set) and prints the tables. count.md, which discusses them, is
written by hand.
"""

import argparse
import csv
import itertools
import sys
import time
import zlib
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import calinski_harabasz_score, silhouette_score

from benchmarks.studies import sets
from cdsk import CDSK, suggest_n_clusters
from cdsk import _count_choice as count
from cdsk._candidates import MANY_FEATURES
from cdsk._cdsk import make_context
from cdsk._count_choice import represent_for_counting
from cdsk._partition_choice import select_partition
from cdsk._preprocessing import Points

CANDIDATES = np.arange(2, 20)
# 2 to 1/8 times the distance to the 7th neighbor, and subsets by their indices
FACTORS = tuple(2.0 ** (-0.5 * i) for i in range(-2, 7))
SCALES = {
    "1 to 0.5": [2, 3, 4],  # in suggest_n_clusters
    "0.7 to 1/8": [3, 4, 5, 6, 7, 8],  # in a fit
    "2 to 0.5": [0, 1, 2, 3, 4],
    "1 to 0.25": [2, 3, 4, 5, 6],
    "1.4 to 0.5": [1, 2, 3, 4],
    "1 to 0.35": [2, 3, 4, 5],
    "all": list(range(9)),
}
OURS, SIX = "1 to 0.5", "0.7 to 1/8"
RULES = (
    "suggest_n_clusters",
    "times agreement",
    "times balanced agreement",
    "balanced agreement",
    "plain eigengap",
    "silhouette",
    "Calinski-Harabasz",
    "HDBSCAN",
)
SEEDS = range(3, 6)
UNIT_SEEDS = range(12)
COMPONENTS = 50


class Curves:
    """Gaps, agreement and balance of the partitions of a view at every scale."""

    def __init__(self, X, view):
        largest = int(CANDIDATES[-1])
        points = Points.from_distinct_rows(X)
        context = make_context(CDSK("auto", random_state=0, n_threads=1))
        views = represent_for_counting(points, "auto", largest, context)
        views = {one.view: one for one in views}
        view = views[view]
        points = points.spatially_sorted(view.transform(points.X))
        found = count._embed_at_scales(points, largest + 1, context, FACTORS)
        self.eigenvalues = np.array([one.eigenvalues for one in found])
        smallest = count.NEGLIGIBLE_CUT / len(points)
        self.gaps = count._gaps(self.eigenvalues, CANDIDATES, smallest)
        partitions = [count._partitions(one, CANDIDATES, None) for one in found]
        of_scales = zip(*partitions, strict=True)
        choices = [
            select_partition(FACTORS, *pair)
            for pair in zip(of_scales, CANDIDATES.tolist(), strict=True)
        ]
        self.indices = np.array([choice.agreement for choice in choices])
        self.balance = np.array([choice.balance for choice in choices])

    def gap(self, scales):
        """Return the mean gap of every candidate."""
        return self.gaps[SCALES[scales]].mean(axis=0)

    def agreement(self, scales, balance=0.0, power=1):
        """Return the mean over pairs of (b_i b_j)^balance ARI_ij^power."""
        first, second = np.transpose(list(itertools.combinations(SCALES[scales], 2)))
        index = np.maximum(self.indices[:, first, second], 0.0)
        both = self.balance[:, first] * self.balance[:, second]
        return np.mean(both**balance * index**power, axis=1)


def variants():
    """Yield names and score functions of rules that use the agreement."""

    def excess(agreement):
        """Return how much it exceeds that of one more cluster."""
        return agreement - np.append(agreement[1:], agreement[-1])

    # functions of the gap g, the agreement a and a constant k
    forms = {
        "g a^k": ((1, 2, 4), lambda g, a, k: g * a**k),
        "g + k a": ((0.5, 1, 2, 4), lambda g, a, k: g + k * a),
        "g + k excess": ((0.5, 1, 2, 4), lambda g, a, k: g + k * excess(a)),
        "g - log(1 - a + k)": (
            (0.01, 0.03, 0.1, 0.3),
            lambda g, a, k: g - np.log(1 - a + k),
        ),
        "-g log(1 - a + k)": (
            (0.01, 0.03, 0.1, 0.3),
            lambda g, a, k: -g * np.log(1 - a + k),
        ),
    }
    for of_gap, of_agreement, balance in itertools.product(
        (OURS, "1 to 0.25"), SCALES, (0.0, 0.5, 1.0)
    ):
        where = f"gap at {of_gap}, agreement at {of_agreement}, balance^{balance}"

        def pair(curves, power=1, how=(of_gap, of_agreement, balance)):
            gap, scales, balance = how
            return curves.gap(gap), curves.agreement(scales, balance, power)

        for form, (constants, score) in forms.items():
            for k in constants:
                yield (
                    f"{form}, k = {k}, {where}",
                    lambda curves, score=score, k=k, pair=pair: score(*pair(curves), k),
                )
        for power in (2, 4):
            yield (
                f"g times mean of ARI^{power}, {where}",
                lambda curves, pair=pair, power=power: np.prod(
                    pair(curves, power), axis=0
                ),
            )


def best(score):
    """Return the candidate with the largest score; ties go to the larger one."""
    return int(CANDIDATES[len(score) - 1 - np.argmax(score[::-1])])


def by_curves(curves):
    """Return the numbers selected by the rules that use the curves.

    These are our score, its products with the agreement of the six kernels, that
    agreement alone, and the plain gap of the middle scale.
    """
    ours, balanced = curves.gap(OURS), curves.agreement(SIX, 1.0)
    plain = -np.diff(curves.eigenvalues[3])[CANDIDATES - 1]
    scores = ours * curves.agreement(SIX), ours * balanced, balanced, plain
    return [best(score) for score in scores]


def by_k_means(X):
    """Return the numbers by silhouette and Calinski-Harabasz index of k-means."""
    partitions = [
        KMeans(c, n_init=5, random_state=0).fit_predict(X) for c in CANDIDATES
    ]
    return [
        int(CANDIDATES[np.argmax([index(X, labels) for labels in partitions])])
        for index in (silhouette_score, calinski_harabasz_score)
    ]


def by_hdbscan(X):
    """Return the number of clusters of HDBSCAN with its defaults, any number from 0."""
    return int(HDBSCAN(copy=True).fit_predict(X).max()) + 1


def iter_scikit_learn_sets(cap):
    """Yield (name, X, y, scored points) of sets that were not used for the design."""
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


def rows_of(source, use_of, kept):
    """Yield the rows of the table; ``kept`` receives the curves of every set."""
    for name, X, y, counted in source:
        true = len(np.unique(y[counted]))
        if true not in CANDIDATES:
            print(f"{name}: {true} clusters, out of range", file=sys.stderr)
            continue
        start = time.process_time()
        choice = suggest_n_clusters(X, CANDIDATES, random_state=0, n_threads=1)
        seconds = time.process_time() - start
        kept[name] = Curves(X, choice.view)
        Z = X
        if min(X.shape) > COMPONENTS:
            Z = PCA(COMPONENTS, random_state=0).fit_transform(X)
        found = [choice.n_clusters, *by_curves(kept[name]), *by_k_means(Z)]
        found.append(by_hdbscan(Z))
        print(f"{name}: {true}, found {found}, {seconds:.1f} s", file=sys.stderr)
        yield {
            "use": use_of(name),
            "half": half(name),
            "set": name,
            "samples": len(X),
            "features": X.shape[1],
            "clusters": true,
            **dict(zip(RULES, found, strict=True)),
            "runner-up": choice.runner_up,
            "seconds": f"{seconds:.2f}",
        }


def use_of(name):
    """Return whether a set was used to design the rule ("design") or not ("later")."""
    return "later" if name.startswith(("t_", "deric/")) else "design"


def half(name):
    """Return 0 or 1, depending on the name of a set."""
    return zlib.crc32(name.replace("/", "__").encode()) % 2


def print_table(title, rows):
    print(f"\n{title}: {len(rows)} sets\n")
    print("| rule | exact | within 1 | mean error |\n| --- | --- | --- | --- |")
    for rule in RULES:
        error = np.array([abs(row[rule] - row["clusters"]) for row in rows])
        exact, close = np.sum(error == 0), np.sum(error <= 1)
        print(f"| {rule} | {exact} | {close} | {error.mean():.2f} |")
    either = sum(row["clusters"] in (row[RULES[0]], row["runner-up"]) for row in rows)
    print(f"\nThe suggestion or its runner-up is right in {either} cases.")


def print_variants(rows, kept):
    """Print the variants that are best on one half of the sets, and test them."""
    true = np.array([row["clusters"] for row in rows])
    halves = np.array([row["half"] for row in rows])
    ours = np.array([row[RULES[0]] for row in rows])
    rules = dict(variants())
    found = np.array(
        [[best(score(kept[row["set"]])) for row in rows] for score in rules.values()]
    )
    print(f"\n{len(rules)} variants, chosen on one half of {len(rows)} sets\n")
    print("| chosen on | sets | best variant | it there | on the other | ours there |")
    print("| --- | --- | --- | --- | --- | --- |")
    for own in (0, 1):
        here, there = halves == own, halves != own
        exact = found == true
        on_own = exact[:, here].sum(axis=1)
        winners = np.flatnonzero(on_own == on_own.max())
        name = list(rules)[winners[0]]
        name += f" (one of {len(winners)})" if len(winners) > 1 else ""
        other = exact[winners][:, there].sum(axis=1).mean()
        print(
            f"| half {own} | {here.sum()} | {name} | {on_own.max()} | {other:.1f} of "
            f"{there.sum()} | {np.sum((ours == true)[there])} |"
        )
    exact = (found == true).sum(axis=1)
    print(
        f"\nOf all sets the variants hit {exact.min()} to {exact.max()}, median "
        f"{np.median(exact):.0f}; suggest_n_clusters {np.sum(ours == true)}."
    )


def in_units(folder, cap):
    """Yield (kind, half, X, number) of tables in their own units, and of drawn sets."""
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as archive:
            X = np.array(archive["X"], dtype=float)
            table, y = "shape" not in archive.files, archive["y"].ravel()
        if table:
            X, y = sets._cut(X, y, cap)
            yield "raw tables", half(f"raw {path.stem}"), X, len(np.unique(y))
    for name in ("iris", "wine", "breast_cancer"):
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        yield "raw tables", half(f"raw sk {name}"), X[:cap], len(np.unique(y))
    for seed in UNIT_SEEDS:
        box, units = (-6, 6), 10 ** np.random.RandomState(seed).uniform(-1, 1, 5)
        X, _ = datasets.make_blobs(400, 5, centers=5, center_box=box, random_state=seed)
        for unit in (3, 10, 30, 100, 1000):
            yield f"5 blobs, one unit x {unit}", seed % 2, X * [1, 1, 1, 1, unit], 5
        yield "5 blobs, units 10^U(-1, 1)", seed % 2, X * units, 5
        for c, d in itertools.product((3, 4, 6), (3, 8)):
            centers = 12.0 * np.arange(c)[:, np.newaxis] * (np.arange(d) == 0)
            X, _ = datasets.make_blobs(100 * c, centers=centers, random_state=seed)
            yield "3, 4, 6 blobs in a row", seed % 2, X, c


def print_units(source):
    """Print how often rules for the view of few features are right, by half."""
    rules = {
        "as given": lambda ratio, given, standard, ours: given,
        "A: r > 100": lambda ratio, given, standard, ours: (
            standard if ratio > 100 else given
        ),
        "B: r > 2": lambda ratio, given, standard, ours: (
            standard if ratio > 2 else given
        ),
        "C: ours": lambda ratio, given, standard, ours: ours,
    }
    hits: dict[str, np.ndarray] = {}
    for kind, of, X, true in source:
        spread = X.std(axis=0)[np.ptp(X, axis=0) > 0]
        if true not in CANDIDATES or len(spread) >= MANY_FEATURES:
            continue
        how = {"random_state": 0, "n_threads": 1}
        choices = [
            suggest_n_clusters(X, CANDIDATES, representation=view, **how)
            for view in ("raw", "standardize", "auto")
        ]
        found = hits.setdefault(kind, np.zeros((1 + len(rules), 2), dtype=int))
        found[0, of] += 1
        for i, rule in enumerate(rules.values(), start=1):
            choice = rule(spread.max() / spread.min(), *choices)
            found[i, of] += choice.n_clusters == true
    print("\nViews of fewer than 60 features: exact hits, half 0 / half 1\n")
    print(f"| | sets | {' | '.join(rules)} |\n{'| --- ' * (2 + len(rules))}|")
    for kind, found in hits.items():
        print(f"| {kind} | {' | '.join(f'{a} / {b}' for a, b in found)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder of data sets")
    parser.add_argument("--cap", type=int, default=800, help="most points of a set")
    parser.add_argument("--out", type=Path, default=Path("docs/results"))
    arguments = parser.parse_args()
    folder = arguments.data
    if not any(folder.glob("*.npz")) and not (folder / "clustering-data-v1").is_dir():
        parser.error(
            f"{folder} must contain NAME.npz files or a folder clustering-data-v1; see "
            "benchmarks/studies/sets.py."
        )
    kept = {}
    rows = list(rows_of(sets.load(folder, arguments.cap), use_of, kept))
    others = iter_scikit_learn_sets(arguments.cap)
    fresh = list(rows_of(others, lambda name: "fresh", {}))
    arguments.out.mkdir(parents=True, exist_ok=True)
    with (arguments.out / "count.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows + fresh)
    tables = {"All sets of the folder": rows}
    for column in ("use", "half"):
        for value in sorted({row[column] for row in rows}):
            part = [row for row in rows if row[column] == value]
            tables[f"Of the folder, {column} {value}"] = part
    for title, part in (tables | {"Sets of scikit-learn": fresh}).items():
        print_table(title, part)
    print_variants(rows, kept)
    iter_planar_sets = (
        ("folder", half(name), X, len(np.unique(y[counted])))
        for name, X, y, counted in sets.load(folder, arguments.cap)
    )
    print_units(itertools.chain(iter_planar_sets, in_units(folder, arguments.cap)))


if __name__ == "__main__":
    main()
