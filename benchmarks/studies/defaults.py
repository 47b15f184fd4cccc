# SPDX-License-Identifier: BSD-3-Clause
"""The study behind the defaults: mean scores of all rules that were tried.

usage: python -m benchmarks.studies.defaults DATA [--cap 800] [--out docs/results]
           [--only rules kernels scales weights noise labels representation peers]

DATA is a folder as in sets.py. Generated data sets and those of scikit-learn are scored
separately, as "other": nothing was tuned on them alone. Labels are used for scores
only. Takes an hour on one core.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.cluster import AgglomerativeClustering, KMeans, SpectralClustering
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from benchmarks.studies import sets
from cdsk import CDSK
from cdsk import _neighbors as _neighbors
from cdsk._alternation import alternate
from cdsk._cdsk import make_context
from cdsk._initialization import first_weights
from cdsk._neighbors import Neighbors
from cdsk._operators.sparse import NeighborGraph
from cdsk._partition_choice import select_partition
from cdsk._preprocessing import Points
from cdsk._qp import WeightProblem
from cdsk._spectral import assign_labels, cut_ratios, spectral_step
from cdsk._validation import LABEL_METHODS
from cdsk._view_choice import COMPONENTS, select_representation
from cdsk._voting import compute_margins, leave_one_out_votes

SCALES = tuple(2.0 ** (-0.5 * i) for i in range(-1, 7))  # 1.41 ... 0.125
NEIGHBORS = (10, 20, 30)
VIEWS = ("raw", "standardize", "normal_scores", *(f"whiten {m}" for m in COMPONENTS))
FACES = (
    *("georgia_tech", "mpie_s2", "mpie_s3", "mpie_s4", "pie", "pie_pose27"),
    *("umist", "yale", "yaleb"),
)


# ---------------------------------------------------------------- data


def problems(options):
    """Yield (group, name, X, y, counted points, number of clusters)."""
    for name, X, y, counted in sets.load(options.data, options.cap):
        yield _group(name), name, X, y, counted, len(np.unique(y[counted]))
    for name, X, y in _others():
        counted = y >= 0
        yield "other", name, X, y, counted, len(np.unique(y[counted]))


def _group(name):
    if "/" in name:
        return name.split("/")[0]
    if name == "ionosphere" or name.startswith("t_"):
        return "tables"
    return "faces" if name in FACES else "images"


def _others():
    for name in ("iris", "wine", "breast_cancer", "digits"):
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        spread = np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
        yield name, ((X - X.mean(axis=0)) / spread)[:800], y[:800]
    for seed in range(3):
        rng = np.random.RandomState(seed)
        yield f"moons {seed}", *datasets.make_moons(600, noise=0.12, random_state=seed)
        yield (
            f"circles {seed}",
            *datasets.make_circles(600, noise=0.08, factor=0.5, random_state=seed),
        )
        yield (
            f"15 blobs {seed}",
            *datasets.make_blobs(
                600, centers=15, cluster_std=0.7, center_box=(-8, 8), random_state=seed
            ),
        )
        yield (
            f"densities {seed}",
            *datasets.make_blobs(
                600, centers=3, cluster_std=[1.0, 2.5, 0.5], random_state=seed
            ),
        )
        X, y = datasets.make_blobs(600, centers=3, random_state=seed)
        yield f"stretched {seed}", X @ [[0.6, -0.6], [-0.4, 0.8]], y
        yield (
            f"30 features {seed}",
            *datasets.make_blobs(
                600, 30, centers=8, cluster_std=2.2, center_box=(-2, 2),
                random_state=seed,
            ),
        )  # fmt: skip
        for name, X, y in noisy(rng, seed):
            yield f"{name} {seed}", X, y


def noisy(rng, seed, share=0.1):
    """Yield clusters with a fraction ``share`` of uniform noise, labeled -1."""
    size = round(540 * share / (1.0 - share))
    for name, (X, y) in (
        ("noisy blobs", datasets.make_blobs(540, centers=5, cluster_std=0.5,
                                            center_box=(-6, 6), random_state=seed)),
        ("noisy moons", datasets.make_moons(540, noise=0.07, random_state=seed)),
    ):  # fmt: skip
        low, high = X.min(axis=0), X.max(axis=0)
        noise = rng.uniform(1.3 * low - 0.3 * high, 1.3 * high - 0.3 * low, (size, 2))
        yield name, np.concatenate([X, noise]), np.concatenate([y, np.full(size, -1)])


# ---------------------------------------------------------------- fits


def fit(kernel, n_clusters, lam, max_iter=20):
    """Return the partition, the fit and the time of one kernel."""
    began = time.perf_counter()
    rng = np.random.RandomState(0)
    weights = first_weights(kernel, lam, "uniform")
    model = CDSK(n_clusters, lam=lam, max_iter=max_iter, random_state=rng, n_threads=1)
    result = alternate(kernel, weights, make_context(model))
    labels = assign_labels(
        result.embedding.vectors, "kmeans", n_init=10, random_state=rng
    )
    return labels, result, time.perf_counter() - began


def represent(X, n_clusters):
    """Return the default ``Representation`` of X."""
    context = make_context(CDSK(random_state=0, n_threads=1))
    points = Points.from_rows_as_they_are(X)
    return select_representation(points, "auto", n_clusters, context)


def graph_of(X, n_clusters, k):
    """Return the neighbor graph of X in its default representation."""
    X = represent(X, n_clusters).transform(X)
    return NeighborGraph(Neighbors(X, k, robust=True))


class Table:
    """Scores by row and data set, printed as means of all sets and of each group.

    Rows named "section: row" are printed in sections.
    """

    def __init__(self, title):
        self.title, self.rows = title, {}

    def add(self, row, group, score, seconds=np.nan):
        self.rows.setdefault(row, []).append((group, *score, seconds))

    def __str__(self):
        sections = {}
        for row, scores in self.rows.items():
            *section, name = row.split(": ", 1)
            sections.setdefault("".join(section), {})[name] = scores
        n_sets, n_others = (
            max(sum((s[0] == "other") == other for s in r) for r in self.rows.values())
            for other in (False, True)
        )
        parts = [
            f"# {self.title}",
            f"Mean NMI and ARI over the {n_sets} sets and over the {n_others} "
            f"other{'s' * (n_others != 1)}; seconds for all sets, one thread.",
        ]
        for section, rows in sections.items():
            parts += [f"## {section}"] if section else []
            parts += [_overall(rows), "NMI of each family:", _by_group(rows)]
        return "\n\n".join(parts) + "\n"


def _overall(rows):
    lines = [["", "NMI", "ARI", "others: NMI", "ARI", "seconds"]]
    for name, scores in rows.items():
        main = np.array([s[1:3] for s in scores if s[0] != "other"])
        rest = np.array([s[1:3] for s in scores if s[0] == "other"])
        seconds = f"{np.nansum([s[3] for s in scores]):.0f}"
        lines.append([name, *_means(main), *_means(rest), seconds])
    return _markdown(lines)


def _by_group(rows):
    groups = sorted({s[0] for scores in rows.values() for s in scores} - {"other"})
    lines = [["", *groups]]
    for name, scores in rows.items():
        means = [_mean([s[1] for s in scores if s[0] == group]) for group in groups]
        lines.append([name, *means])
    return _markdown(lines)


def _markdown(lines):
    """Return a table; the first line is its header."""
    rule = ["---"] * len(lines[0])
    return "\n".join(
        f"| {' | '.join(cells)} |" for cells in [lines[0], rule, *lines[1:]]
    )


def _mean(values):
    return f"{np.mean(values):.3f}" if len(values) else ""


def _means(pairs):
    return [_mean(column) for column in pairs.T] if len(pairs) else ["", ""]


# ---------------------------------------------------------------- studies


def rules(options):
    """Compare kernels, and rules that select one of several partitions."""
    table = Table(f"Kernels and rules, lam = 0.2, at most {options.cap} points")
    for group, _, X, y, counted, c in problems(options):
        partitions, extras, cost = {}, {}, {}
        for bandwidth in ("neighbor", "local"):
            row = f"One kernel: one full kernel, bandwidth={bandwidth!r}"
            parameters = {"bandwidth": bandwidth}
            _add_fit(table, row, group, X, y, counted, c, parameters)
        for k in NEIGHBORS:
            graph = graph_of(X, c, k)
            for scale in SCALES:
                kernel = graph.kernel(scale * graph.neighbors.scales, 1)
                labels, result, seconds = fit(kernel, c, 0.2)
                partitions[k, scale], cost[k, scale] = labels, seconds
                votes = leave_one_out_votes(kernel, labels, result.weights)
                extras[k, scale] = (
                    -np.mean(cut_ratios(kernel, labels)),
                    float(result.embedding.eigenvalues[-1]),
                    float(np.mean(compute_margins(votes, labels)[0])),
                )
                if scale in SCALES[2::2]:
                    table.add(
                        f"One kernel: one kernel, {k} neighbors, scale {scale:.3g}",
                        group, sets.scores(y, labels, counted), seconds,
                    )  # fmt: skip
        for name, keys in (
            ("10 neighbors, 0.125 - 0.7", [(10, s) for s in SCALES[2:]]),
            ("20 neighbors, 0.125 - 0.7", [(20, s) for s in SCALES[2:]]),
            ("30 neighbors, 0.125 - 0.7", [(30, s) for s in SCALES[2:]]),
            ("20 neighbors, 0.125 - 1.4", [(20, s) for s in SCALES]),
            ("20 neighbors, 0.35 - 1.4", [(20, s) for s in SCALES[:5]]),
            ("10, 20, 30 neighbors, 0.25 - 0.7",
             [(k, s) for k in NEIGHBORS for s in SCALES[2:6]]),
        ):  # fmt: skip
            found = [partitions[key] for key in keys]
            seconds = sum(cost[key] for key in keys)
            choice = select_partition(keys, found, c)
            balance, agreement = choice.balance, choice.agreement
            columns = np.array([extras[key] for key in keys]).T
            chosen = {
                "medoid": np.argmax(agreement.sum(axis=1)),
                "medoid, votes: balance x agreement^4": choice.chosen,
            }
            slower = {}
            if name.startswith("20 neighbors, 0.125 - 0.7"):
                for power in (1, 2):
                    votes = np.maximum(agreement, 0.0) ** power
                    rule = f"votes: balance x agreement^{power}"
                    chosen[rule] = np.argmax(votes @ balance)
                    rule += ", times own balance"
                    chosen[rule] = np.argmax(balance * (votes @ balance))
                beside = np.eye(len(keys), k=1) + np.eye(len(keys), k=-1)
                narrow = [i for i in reversed(range(len(keys))) if balance[i] >= 0.8]
                chosen |= {
                    "smallest scale with balance >= 0.8":
                        narrow[0] if narrow else np.argmax(balance),
                    "smallest normalized cut": np.argmax(columns[0]),
                    "largest c-th eigenvalue": np.argmax(columns[1]),
                    "largest mean margin of the votes": np.argmax(columns[2]),
                    "largest margin x balance": np.argmax(columns[2] * balance),
                    "largest agreement with the scales beside it": np.argmax(
                        (agreement * beside).sum(axis=1) / beside.sum(axis=1)
                    ),
                }  # fmt: skip
                again, more = stability(X, c, found)
                for rule, score in (
                    ("largest agreement with 80 % of the points", again),
                    ("the same, times balance", again * balance),
                ):
                    chosen[rule], slower[rule] = np.argmax(score), more
                table.add(
                    f"{name}: consensus, spectral clustering of co-membership", group,
                    sets.scores(y, consensus(found, c), counted), seconds,
                )  # fmt: skip
            every = [sets.scores(y, labels, counted) for labels in found]
            for rule, i in chosen.items():
                taken = seconds + slower.get(rule, 0.0)
                table.add(f"{name}: {rule}", group, every[i], taken)
            table.add(f"{name}: *best by the labels*", group, max(every), seconds)
    return table


def stability(X, n_clusters, partitions):
    """Return the agreement of each partition with that of 80 % of the points."""
    began = time.perf_counter()
    part = np.sort(np.random.RandomState(0).permutation(len(X))[: int(0.8 * len(X))])
    if n_clusters > len(part):
        return np.ones(len(partitions)), 0.0
    graph, found = graph_of(X[part], n_clusters, 20), []
    for scale, labels in zip(SCALES[2:], partitions, strict=True):
        kernel = graph.kernel(scale * graph.neighbors.scales, 1)
        again = fit(kernel, n_clusters, 0.2)[0]
        found.append(adjusted_rand_score(labels[part], again))
    return np.array(found), time.perf_counter() - began


def consensus(partitions, n_clusters):
    """Return the spectral clustering of the co-membership matrix of all partitions."""
    together = np.mean([np.equal.outer(p, p) for p in partitions], axis=0)
    model = SpectralClustering(n_clusters, affinity="precomputed", random_state=0)
    return model.fit_predict(together)


def weights(options):
    """Compare learned and uniform weights, with the default kernels and rule."""
    table = Table("Weights, default kernels and rule")
    for group, _, X, y, counted, c in problems(options):
        for name, parameters in (
            ("uniform (max_iter = 0)", {"max_iter": 0}),
            ("lam = 0.1", {"lam": 0.1}),
            ("lam = 0.2 (default)", {}),
            ("lam = 0.3", {"lam": 0.3}),
            ("lam = 0.2, one round", {"max_iter": 1}),
            ("lam = 'auto'", {"lam": "auto"}),
            ("lam = 0.2, sparse start", {"init": "sparse"}),
            ("lam = 0.2, start from densities", {"init": densities(X, 0.2)}),
        ):
            _add_fit(table, name, group, X, y, counted, c, parameters)
        began = time.perf_counter()
        found = by_hard_membership(X, c, 0.2)
        table.add(
            "lam = 0.2, hard co-membership, two iterations", group,
            sets.scores(y, found, counted), time.perf_counter() - began,
        )  # fmt: skip
    return table


def densities(X, lam):
    """Return weights proportional to the inverse scales, clipped to the bound."""
    weights = 1.0 / Neighbors(X, robust=True).scales
    most = 1.0 / (len(X) * lam)
    weights /= weights.sum()
    while weights.max() > most * (1 + 1e-12):
        full = weights >= most
        weights[full] = most
        weights[~full] *= (1.0 - most * full.sum()) / weights[~full].sum()
    return weights


def by_hard_membership(X, n_clusters, lam):
    """Return the default labels with cluster indicators in place of the embedding."""
    graph, partitions = graph_of(X, n_clusters, 20), []
    for scale in SCALES[2:]:
        rng = np.random.RandomState(0)
        kernel = graph.kernel(scale * graph.neighbors.scales, 1)
        weights, penalty = np.full(kernel.n, 1.0 / kernel.n), kernel.n * lam
        for last in (False, False, True):
            similarity = kernel.similarity(weights, penalty)
            vectors = spectral_step(similarity, n_clusters, rng).vectors
            labels = assign_labels(vectors, "kmeans", n_init=10, random_state=rng)
            if not last:
                members = labels == np.arange(n_clusters)[:, np.newaxis]
                problem = WeightProblem(kernel, members.astype(float), penalty)
                weights = problem.solve(weights, 1e-4).x
        partitions.append(labels)
    return partitions[select_partition(SCALES[2:], partitions, n_clusters).chosen]


def kernels(options):
    """Compare learned and uniform weights at single scales."""
    table = Table("Weights at single scales, 20 neighbors, lam = 0.2")
    for group, _, X, y, counted, c in problems(options):
        graph = graph_of(X, c, 20)
        for scale in SCALES[2:]:
            kernel = graph.kernel(scale * graph.neighbors.scales, 1)
            for name, max_iter in (("uniform", 0), ("learned", 20)):
                found, _, seconds = fit(kernel, c, 0.2, max_iter)
                table.add(
                    f"scale {scale:.3g}, {name}", group,
                    sets.scores(y, found, counted), seconds,
                )  # fmt: skip
    return table


def scales(options):
    """Compare upper limits of the scales."""
    table = Table("Largest scale, default kernels and rule")
    caps = {
        "none": (0.75, np.inf),
        "twice the median": (0.5, 2.0),
        "the upper quartile": (0.75, 1.0),
        "1.5 times the upper quartile": (0.75, 1.5),
        "twice the upper quartile (default)": (0.75, 2.0),
        "1.5 times the 80 % quantile": (0.8, 1.5),
    }
    before = _neighbors._CAP_QUANTILE, _neighbors._CAP_FACTOR
    for group, _, X, y, counted, c in problems(options):
        for name, cap in caps.items():
            _neighbors._CAP_QUANTILE, _neighbors._CAP_FACTOR = cap
            _add_fit(table, name, group, X, y, counted, c, {})
    _neighbors._CAP_QUANTILE, _neighbors._CAP_FACTOR = before
    return table


def labels(options):
    """Compare methods that assign labels in the embedding."""
    table = Table("Labels")
    for group, _, X, y, counted, c in problems(options):
        for method in LABEL_METHODS:
            parameters = {"assign_labels": method}
            _add_fit(table, method, group, X, y, counted, c, parameters)
    return table


def representation(options):
    """Compare the views of every set with several views, and the selected one."""
    table = Table("Representation")
    lines = [["set", *map(_short, VIEWS), "chosen"]]
    for group, name, X, y, counted, c in problems(options):
        chosen = represent(X, c)
        if not chosen.scores:
            continue
        scores = [f"{chosen.scores[v]:.3f}" if v in chosen.scores else ""
                  for v in VIEWS]  # fmt: skip
        lines.append([name, *scores, _short(chosen.view)])
        for view in ("auto", *chosen.scores):
            kind, _, m = view.partition(" ")
            parameters = {"representation": kind, "n_components": int(m) if m else None}
            _add_fit(table, view, group, X, y, counted, c, parameters)
    title = "Balanced agreement over the scales; numbers are whitened components:"
    return f"{table}\n{title}\n\n{_markdown(lines)}\n"


def _short(view):
    names = {"standardize": "standard", "normal_scores": "ranks"}
    return names.get(view, view.removeprefix("whiten "))


def peers(options):
    """Compare with other estimators, each with its own defaults.

    SpectralClustering with a Gaussian is left out: its bandwidth is 1 in any unit. It
    has NMI 0.534 on the first 54 sets, and takes 15 of 20 minutes.
    """
    table = Table("Peers")
    methods = {
        "k-means": lambda c: KMeans(c, n_init=10, random_state=0),
        "Ward": AgglomerativeClustering,
        "SpectralClustering, nearest neighbors": lambda c: SpectralClustering(
            c, affinity="nearest_neighbors", random_state=0
        ),
        "CDSK": lambda c: CDSK(c, random_state=0, n_threads=1),
        "CDSK, uniform weights": lambda c: CDSK(
            c, max_iter=0, random_state=0, n_threads=1
        ),
    }
    try:
        from genieclust import Genie

        methods["Genie"] = lambda c: Genie(n_clusters=c)
    except ImportError:
        print("genieclust is not installed: there is no line for Genie.")
    for group, _, X, y, counted, c in problems(options):
        for name, make in methods.items():
            began = time.perf_counter()
            found = np.asarray(make(c).fit_predict(X))
            seconds = time.perf_counter() - began
            table.add(name, group, sets.scores(y, found, counted), seconds)
    return table


def noise(options):
    """Compare learned and uniform weights and peers on data with noise.

    The scores are the ARI of the points that are not noise.
    """
    methods = {
        "CDSK": lambda c: CDSK(c, random_state=0, n_threads=1),
        "uniform weights": lambda c: CDSK(c, max_iter=0, random_state=0, n_threads=1),
        "SpectralClustering, nearest neighbors": lambda c: SpectralClustering(
            c, affinity="nearest_neighbors", random_state=0
        ),
        "k-means": lambda c: KMeans(c, n_init=10, random_state=0),
    }
    lines = [["set", *methods]]
    found = {}
    for share in (0.1, 0.2, 0.3):
        for seed in range(10):
            for name, X, y in noisy(np.random.RandomState(seed), seed, share):
                row = f"{name}, {share:.0%}, 10 seeds"
                found.setdefault(row, []).append((X, y, y >= 0))
    for name, X, y, counted in sets.load(options.data, options.cap):
        if (~counted).any() or "outliers" in name or "noisy" in name:
            found[name] = [(X, y, counted)]
    X, y = datasets.load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    found["breast cancer"] = [(X, y, y >= 0)]
    for name, sets_of_name in found.items():
        score = {method: [] for method in methods}
        for X, y, counted in sets_of_name:
            c = len(np.unique(y[counted]))
            for method, values in score.items():
                labels = methods[method](c).fit_predict(X)
                values.append(adjusted_rand_score(y[counted], labels[counted]))
        lines.append([name, *(_mean(values) for values in score.values())])
    return f"# Noise: ARI of the points that are none\n\n{_markdown(lines)}\n"


def _add_fit(table, row, group, X, y, counted, c, parameters):
    began = time.perf_counter()
    model = CDSK(c, random_state=0, n_threads=1, **parameters).fit(X)
    seconds = time.perf_counter() - began
    table.add(row, group, sets.scores(y, model.labels_, counted), seconds)


ALL = rules, kernels, scales, weights, noise, labels, representation, peers
STUDIES = {study.__name__: study for study in ALL}


def main():
    """Run the studies and write one Markdown file each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("--cap", type=int, default=800)
    parser.add_argument("--out", type=Path, default=Path("docs/results"))
    parser.add_argument("--only", nargs="+", choices=STUDIES, default=STUDIES)
    options = parser.parse_args()
    if not any(True for _ in sets.load(options.data, 2)):
        parser.error(f"no data sets in {options.data}; see benchmarks/studies/sets.py")
    # by SpectralClustering, on many sets
    warnings.filterwarnings("ignore", "Graph is not fully connected")
    for name in options.only:
        with threadpool_limits(1):
            text = str(STUDIES[name](options))
        print(text, flush=True)
        (options.out / f"defaults-{name}.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
