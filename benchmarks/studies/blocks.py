# SPDX-License-Identifier: BSD-3-Clause
"""BlockCDSK: landmarks, normalization, nearest landmarks, scales and votes.

    python -m benchmarks.studies.blocks DATA [--large [--rows 10000]] [--times 1]
        [--per-landmark 20] [--seed 0] [--only WORD ...] [--variants NAME ...]
        [--baselines]

Every variant differs from the default in one respect. The data sets are those of the
folder DATA (sets.py) with at least 2000 points, generated ones with --times as many
points, and with --large parts of COIL-100 and MNIST. The sets are divided in halves by
a hash of the name: variants are selected on half 0 and tested on half 1. Prints one
line per set and variant, then means of NMI, ARI and processor time.
"""

import argparse
import contextlib
import time
import warnings
import zlib
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
from scipy import sparse
from sklearn.cluster import MiniBatchKMeans, kmeans_plusplus
from sklearn.datasets import make_blobs, make_circles, make_moons

from benchmarks.studies import sets
from cdsk import CDSK, BlockCDSK
from cdsk._neighbors import NeighborIndex
from cdsk.blocks import _estimator as estimator
from cdsk.blocks import _landmark_kernels as candidates
from cdsk.blocks import _landmarks as landmarks
from cdsk.blocks import _passes as passes

LEAST = 2000
SIX = tuple(2.0 ** (-0.5 * i) for i in (0, 2, 3, 4, 5, 6))


class Cosine(candidates.LandmarkKernel):
    """Z'Z with a diagonal of ones: W_ij / (W_ii W_jj)^power, power 1/2."""

    power = 0.5

    def __init__(self, gram, *how):
        super().__init__(gram, *how)
        sizes = np.maximum(self.sizes(gram), 1e-9)
        root = sparse.diags_array(sizes**-self.power)
        matrix = (root @ self.matrix @ root).tocsr()
        self.matrix = (0.5 * (matrix + matrix.T)).tocsr()
        self.matrix.sort_indices()
        self.self_loops = self._diagonal = self.diagonal * sizes ** (-2 * self.power)

    def sizes(self, gram):
        return self.diagonal


class Degrees(Cosine):
    """W_ij / (d_i d_j)^power, d the row sums of W (weights of the rows)."""

    def sizes(self, gram):
        sums = np.asarray(gram.sum(axis=1), dtype=float)
        return sums / sums.mean()


class HalfDegrees(Degrees):
    power = 0.25


class HalfCosine(Cosine):
    power = 0.25


class ZeroDiagonal(candidates.LandmarkKernel):
    """Z'Z with a zero diagonal."""

    def __init__(self, *how):
        super().__init__(*how)
        self.self_loops = None


class Weighted(candidates.LandmarkVotes):
    """Votes multiplied by the weights of the landmarks."""

    def log_votes(self, X, n_threads=1):
        near = self.landmarks.nearest
        weights = np.maximum(self.weights, 1e-9 * self.weights.max())
        indices, distances = near(X)
        z = self.landmarks.weights(indices, distances, self.factor)
        indices = indices[:, : z.shape[1]]
        votes = np.zeros((len(X), self.n_clusters))
        rows = np.arange(len(X))[:, np.newaxis]
        np.add.at(votes, (rows, self.labels[indices]), z * weights[indices])
        with np.errstate(divide="ignore"):
            return np.log(votes)


def weighted_votes(graph, labels, weights, n_clusters):
    votes = Weighted(graph.landmarks, graph.factor, labels, n_clusters)
    votes.__dict__["weights"] = weights / graph.counts
    return votes


class AllRows(passes.ThreadPasses):
    """Landmarks by k-means of all rows; the representation is that of the sample."""

    def fit_landmarks(self, sample, options, rng):
        n_threads = self._n_threads
        # the representation only: the two landmarks are ignored
        two = replace(options, n_landmarks=2, method="uniform")
        representation, _ = landmarks.fit_landmarks(sample.points, two, rng, n_threads)
        parts, features = self._open()
        rows = np.concatenate([part.validate(features) for part in parts])
        rows = representation.transform_validated(rows[rng.permutation(len(rows))])
        positions = landmarks.place_landmarks(
            rows, options.n_landmarks, options.method, rng, n_threads
        )
        self._fitted = representation, landmarks.Landmarks(positions)
        return *self._fitted, rng


def scalable(points, copies, m, rng, n_threads):
    """Return the indices of m seeds by k-means|| (Bahmani et al., 2012).

    Every row is drawn independently with probability proportional to D^2, in five
    rounds. Of the about 2 m rows drawn, k-means++ selects m, weighted by the number of
    rows nearest to each.
    """
    n, seen, rounds = len(points), 0, 0
    drawn = rng.choice(n, 1, p=copies / copies.sum())
    nearest, distances = np.zeros(n, dtype=int), np.full(n, np.inf)
    while True:
        search = NeighborIndex(points[drawn[seen:]])
        lengths, found = search.kneighbors(points, 1, n_threads=n_threads)
        closer = lengths[:, 0] < distances
        nearest[closer] = seen + found[closer, 0]
        distances[closer] = lengths[closer, 0]
        seen = len(drawn)
        if rounds >= 5 and seen >= m:
            break
        rounds += 1
        weights = copies * distances**2
        chance = 2 * m / 5 * weights / weights.sum()
        drawn = np.append(drawn, np.flatnonzero(rng.uniform(size=n) < chance))
    counts = np.bincount(nearest, copies, minlength=seen)
    _, chosen = kmeans_plusplus(
        points[drawn], m, sample_weight=counts, random_state=rng, n_local_trials=1
    )
    return drawn[chosen]


def nearest(r):
    return mock.patch.object(landmarks.Landmarks, "n_nearest", r), mock.patch.object(
        landmarks.Landmarks.__init__, "__defaults__", (r,)
    )


def scales(factors):
    return (mock.patch.object(estimator, "BANDWIDTH_FACTORS", factors),)


def kernel(kind):
    return (mock.patch.object(candidates, "LandmarkKernel", kind),)


ALL_ROWS = (mock.patch.object(estimator, "ThreadPasses", AllRows),)
SCALABLE = (mock.patch.object(landmarks, "_draw_seeds", scalable),)

# name -> patches, and parameters as a function of the default n_landmarks
VARIANTS = {
    "default": ((), None),
    "all rows": (ALL_ROWS, None),
    "scalable k-means++": (SCALABLE, None),
    "scalable k-means++, all rows": (ALL_ROWS + SCALABLE, None),
    "cosine": (kernel(Cosine), None),
    "zero diagonal": (kernel(ZeroDiagonal), None),
    "half cosine": (kernel(HalfCosine), None),
    "multiplicity": (kernel(Degrees), None),
    "half multiplicity": (kernel(HalfDegrees), None),
    "uniform centers": ((mock.patch.object(landmarks, "_SEEDING_ROUNDS", 1),), None),
    "10 rounds": ((mock.patch.object(landmarks, "_SEEDING_ROUNDS", 10),), None),
    "sample of 3 m": ((), lambda m: {"sample_size": 3 * m}),
    "sample of 30 m": ((), lambda m: {"sample_size": 30 * m}),
    "r = 3": (nearest(3), None),
    "r = 7": (nearest(7), None),
    "r = 10": (nearest(10), None),
    "half cosine, r = 7": (kernel(HalfCosine) + nearest(7), None),
    "cosine, r = 10": (kernel(Cosine) + nearest(10), None),
    "six scales": (scales(SIX), None),
    "weighted votes": (
        (mock.patch.object(candidates.LandmarkGraph, "votes", weighted_votes),),
        None,
    ),
    "uniform landmarks": ((), lambda m: {"landmarks": "uniform"}),
    "no iterations": ((), lambda m: {"max_iter": 0}),
    "m / 4": ((), lambda m: {"n_landmarks": m // 4}),
    "m / 2": ((), lambda m: {"n_landmarks": m // 2}),
    "2 m": ((), lambda m: {"n_landmarks": 2 * m}),
}


def rare(n, seed, share=0.001):
    """Return twenty clusters in 8 dimensions, one of them rare, and 5 % of noise."""
    rng = np.random.default_rng(seed)
    centers = np.append(rng.uniform(-10, 10, (20, 8)), np.zeros((1, 8)), axis=0)
    sizes = np.append(np.full(19, (0.95 - share) / 19), [share, 0.05])
    y = rng.choice(21, n, p=sizes)
    X = 0.7 * rng.normal(size=(n, 8)) + centers[y]
    noise = y == 20
    X[noise] = rng.uniform(-12, 12, (noise.sum(), 8))
    return X, y, ~noise


def drawn(seed, times=1):
    """Yield (name, X, y, counted points)."""
    yield "rare", *rare(50_000 * times, seed)
    n = 20_000 * times
    many = make_blobs(3 * n // 2, 5, centers=30, cluster_std=1.6, random_state=seed)
    blobs = make_blobs(n, 2, centers=3, random_state=170 + seed)
    for name, (X, y) in {
        "moons": make_moons(n, noise=0.12, random_state=seed),
        "circles": make_circles(n, noise=0.09, factor=0.5, random_state=seed),
        "many": many,
        "slanted": (blobs[0] @ [[0.6, -0.6], [-0.4, 0.8]], blobs[1]),
    }.items():
        yield name, X, y, np.ones(len(y), bool)


def all_sets(folder, seed, large, rows, times):
    yield from drawn(seed, times)
    for name, X, y, counted in sets.load(folder, 10**6):
        if LEAST <= len(X) <= 12_000 and "/" in name:
            yield name, X, y, counted
    for name in ("coil100", "mnist") if large else ():
        path = Path(folder, f"{name}.npz")
        X, y = sets.read_archive(path, 10**6)
        part = np.random.RandomState(seed).permutation(len(X))[:rows]
        yield name, X[part], y[part], np.ones(len(part), bool)


def fit(X, c, seed, variant, per_landmark=None):
    patches, parameters = VARIANTS[variant]
    m = estimator.default_n_landmarks(len(X), c)
    how = {}
    if per_landmark is not None:
        m = how["n_landmarks"] = max(c, len(X) // per_landmark)
    how |= parameters(m) if parameters else {}
    with contextlib.ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        model = BlockCDSK(c, random_state=seed, n_threads=1, **how)
        return model.fit(X).labels_


def fit_baseline(X, c, seed, name):
    if name == "k-means":
        return MiniBatchKMeans(c, random_state=seed, n_init=3).fit_predict(X)
    rows = np.random.RandomState(seed).permutation(len(X))[:5000]
    model = CDSK(c, random_state=seed, n_threads=1).fit(X[rows])
    return model.predict(X)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--rows", type=int, default=10_000, help="rows of large sets")
    parser.add_argument("--times", type=int, default=1, help="factor of generated rows")
    parser.add_argument("--per-landmark", type=int, help="rows (default: 2 or more)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", help="prefixes of names of sets")
    parser.add_argument("--variants", nargs="*", default=list(VARIANTS))
    parser.add_argument("--baselines", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    baselines = ["sample + predict", "k-means"] if arguments.baselines else []
    found = defaultdict(list)
    for name, X, y, counted in all_sets(
        arguments.folder,
        arguments.seed,
        arguments.large,
        arguments.rows,
        arguments.times,
    ):
        if arguments.only and not name.startswith(tuple(arguments.only)):
            continue
        half = zlib.crc32(name.encode()) % 2
        c = len(np.unique(y[counted]))
        for variant in [*arguments.variants, *baselines]:
            begun = time.process_time()
            if variant in baselines:
                labels = fit_baseline(X, c, arguments.seed, variant)
            else:
                labels = fit(X, c, arguments.seed, variant, arguments.per_landmark)
            seconds = time.process_time() - begun
            nmi, ari = sets.scores(y, labels, counted)
            found[variant, half].append((nmi, ari, seconds))
            print(
                f"{name:28} {half} {variant:28} {nmi:.3f}/{ari:.3f} {seconds:6.1f} s",
                flush=True,
            )
    print("\n| variant | half 0 | half 1 |\n| --- | --- | --- |")
    for variant in [*arguments.variants, *baselines]:
        cells = [_mean(found[variant, half]) for half in (0, 1)]
        print(f"| {variant} | {' | '.join(cells)} |")


def _mean(figures):
    if not figures:
        return "no set"
    nmi, ari, seconds = np.mean(figures, axis=0)
    return f"{nmi:.3f}/{ari:.3f}, {seconds:.1f} s"


if __name__ == "__main__":
    main()
