# SPDX-License-Identifier: BSD-3-Clause
"""Lines of the tables of large fits: ours and peers on the same input, and targets.

A task is created with its input, of n points or, for a test, of fewer. Its methods in
``METHODS`` take a number of threads and run; ``scores`` measures a result.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.cluster import MiniBatchKMeans, SpectralClustering
from sklearn.datasets import make_blobs, make_moons
from sklearn.neighbors import NearestNeighbors

from benchmarks.asv.stages import quality
from benchmarks.asv.stages.private import Neighbors
from benchmarks.peers.lines import StoredQP
from benchmarks.studies import sets
from cdsk import CDSK

# name in the tables -> method of a task
METHODS = {
    "ours": "ours",
    "SpectralClustering": "spectral",
    "MiniBatchKMeans": "kmeans",
    "brute force": "brute",
    "faiss flat": "faiss",
    "libsvm": "libsvm",
}

NEIGHBORS = 20


class Unavailable(Exception):
    """A line, or a method of it, cannot be measured here; the message says why."""


@dataclass(frozen=True)
class Target:
    """Upper bound on a quantity, lower bound on a score; "ratio" is ours / peer's."""

    quantity: str
    bound: float
    peer: str = ""

    @property
    def at_least(self):
        return self.quantity in ("ARI", "NMI")


@dataclass(frozen=True)
class Line:
    """A line of the tables; ``make(folder, quick)`` returns its task."""

    what: str
    make: Callable
    peers: tuple[str, ...]
    targets: tuple[Target, ...] = ()
    # number of runs; the median time is reported
    runs: int = 1


class Fit:
    """A default fit."""

    def __init__(self, load, n, c, few, folder, quick):
        self.X, self.y = load(folder, min(n, few) if quick else n)
        # a subset of few points has fewer classes
        self.c = len(np.unique(self.y)) if quick else c
        self.n = len(self.X)

    def ours(self, n_threads):
        model = CDSK(self.c, random_state=0, n_threads=n_threads)
        return model.fit_predict(self.X)

    def spectral(self, n_threads):
        return SpectralClustering(
            self.c,
            affinity="nearest_neighbors",
            assign_labels="kmeans",
            n_jobs=n_threads,
            random_state=0,
        ).fit_predict(self.X)

    def kmeans(self, n_threads):
        model = MiniBatchKMeans(self.c, n_init=3, random_state=0)
        return model.fit_predict(self.X)

    def scores(self, labels):
        nmi, ari = sets.scores(self.y, labels, np.ones(self.n, bool))
        return {"ARI": ari, "NMI": nmi}


class Search:
    """Exact nearest neighbors of all points."""

    def __init__(self, load, n, folder, quick):
        self.X = load(folder, min(n, 400) if quick else n)[0]
        self.n = len(self.X)

    def ours(self, n_threads):
        found = Neighbors(self.X, NEIGHBORS, n_threads=n_threads)
        return found.indices, found.distances

    def brute(self, n_threads):
        search = NearestNeighbors(n_neighbors=NEIGHBORS, algorithm="brute")
        distances, indices = search.fit(self.X).kneighbors()
        return indices, distances

    def faiss(self, n_threads):
        try:
            import faiss
        except ImportError as error:
            raise Unavailable("faiss is not installed") from error
        faiss.omp_set_num_threads(n_threads)
        X = self.X.astype(np.float32)
        index = faiss.IndexFlatL2(X.shape[1])
        index.add(X)
        # one more neighbor: each point finds itself
        squares, indices = index.search(X, NEIGHBORS + 1)
        return indices, np.sqrt(np.maximum(squares, 0.0))

    def scores(self, found):
        return {"missed": quality.missed_neighbors(self.X, *found)}


class QP:
    """``solve_qp`` and libsvm on the same problem, that of benchmarks/peers."""

    def __init__(self, folder, quick):
        line = StoredQP("digits", quick=quick)
        self.ours, self.libsvm, self.gap = line.ours, line.peer, line.gap
        self.n = len(line.q)

    def scores(self, alpha):
        return {"KKT gap": self.gap(alpha)}


def moons(folder, n):
    return make_moons(n, noise=0.05, random_state=0)


def blobs(folder, n, d):
    """Return ten touching clusters; assigning the nearest true center has ARI 0.997."""
    spread = {2: 0.5, 10: 2.5, 50: 7.5}[d]
    return make_blobs(n, d, centers=10, cluster_std=spread, random_state=0)


def images(folder, n, name):
    """Return the data of a file in the folder, scaled to unit rows."""
    if folder is None or not Path(folder, name).is_file():
        raise Unavailable(f"no file {name} in the folder of --data")
    return sets.read_archive(Path(folder, name), n)


def _fit(what, load, n, c, peer, *targets, runs=1, few=400):
    return Line(what, partial(Fit, load, n, c, few), (peer,), targets, runs)


def _search(what, load, n, *targets, peers=("brute force",), runs=1):
    return Line(what, partial(Search, load, n), peers, targets, runs)


_BLOBS = {d: partial(blobs, d=d) for d in (2, 10, 50)}
_MNIST = partial(images, name="mnist.npz")
_FACES = partial(images, name="mpie_s2.npz")
_SPECTRAL, _KMEANS = "SpectralClustering", "MiniBatchKMeans"
_MILLION = Target("seconds", 900), Target("memory", 8e9), Target("ARI", 0.95)

LINES = {
    "moons-200": _fit(
        "moons, 200 x 2",
        moons,
        200,
        2,
        _SPECTRAL,
        Target("processor", 0.1),
        runs=15,
    ),
    "moons-3000": _fit(
        "moons, 3000 x 2",
        moons,
        3000,
        2,
        _SPECTRAL,
        Target("processor", 0.5),
        runs=7,
    ),
    "moons-20k": _fit(
        "moons, 20 000 x 2",
        moons,
        20_000,
        2,
        _SPECTRAL,
        Target("ratio", 6.0, _SPECTRAL),
        runs=3,
    ),
    "blobs-20k": _fit(
        "blobs, 20 000 x 10",
        _BLOBS[10],
        20_000,
        10,
        _SPECTRAL,
        Target("ratio", 0.5, _SPECTRAL),
    ),
    "blobs-50k": _fit(
        "blobs, 50 000 x 50",
        _BLOBS[50],
        50_000,
        10,
        _SPECTRAL,
        Target("ratio", 0.2, _SPECTRAL),
    ),
    "mnist": _fit(
        "MNIST, 70 000 x 784",
        _MNIST,
        70_000,
        10,
        _SPECTRAL,
        Target("seconds", 240),
        Target("memory", 3e9),
        Target("NMI", 0.79),
    ),
    "faces": _fit(
        "Multi-PIE, 2030 x 2050",
        _FACES,
        2030,
        203,
        _SPECTRAL,
        Target("seconds", 30),
    ),
    "growth-10k": _fit("blobs, 10⁴ x 10", _BLOBS[10], 10**4, 10, _KMEANS, few=300),
    "growth-100k": _fit("blobs, 10⁵ x 10", _BLOBS[10], 10**5, 10, _KMEANS, few=400),
    "million-d10": _fit(
        "blobs, 10⁶ x 10", _BLOBS[10], 10**6, 10, _KMEANS, *_MILLION, few=600
    ),
    "million-d2": _fit("blobs, 10⁶ x 2", _BLOBS[2], 10**6, 10, _KMEANS, *_MILLION),
    "solve-qp": Line(
        "solve_qp, n = 1797",
        QP,
        ("libsvm",),
        (Target("ratio", 1 / 1.5, "libsvm"),),
        runs=15,
    ),
    "search-784": _search(
        "search, 10 000 x 784",
        _MNIST,
        10_000,
        Target("ratio", 1 / 2.5, "brute force"),
        Target("ratio", 1 / 1.2, "faiss flat"),
        peers=("brute force", "faiss flat"),
        runs=3,
    ),
    "search-d10": _search(
        "search, 20 000 x 10",
        _BLOBS[10],
        20_000,
        Target("ratio", 1 / 1.5, "brute force"),
        runs=3,
    ),
    "search-d50": _search(
        "search, 20 000 x 50",
        _BLOBS[50],
        20_000,
        Target("ratio", 1 / 1.5, "brute force"),
        runs=3,
    ),
    "search-mnist": _search(
        "search, 70 000 x 784", _MNIST, 70_000, Target("seconds", 90)
    ),
}

# Lines from which the exponent of a default fit is computed, and its target.
GROWTH, LARGEST_EXPONENT = ("growth-10k", "growth-100k", "million-d10"), 1.3
