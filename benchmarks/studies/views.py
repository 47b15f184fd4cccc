# SPDX-License-Identifier: BSD-3-Clause
"""Views of the data, scales and neighbours: which partition is taken, by which rule.

usage: python -m benchmarks.studies.views fit DATA CACHE [--cap 800] [--neighbours 20]
       python -m benchmarks.studies.views rules CACHE

``fit`` computes, once, the partitions of every set by every view, number of neighbours
and scale, with learned and with uniform weights, and keeps them in the folder CACHE, a
file per set. ``rules`` evaluates rules on what is there, in seconds. Labels are used
for scores only. DATA is a folder as in sets.py; the sets with noise of defaults.py are
added. Tables come twice: standardised, and in their own units.

A rule is chosen on one half of the sets and judged on the other: ``half``.
"""

import argparse
import time
import zlib
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.stats import norm, rankdata
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from benchmarks.studies import sets
from benchmarks.studies.defaults import noisy
from cdsk._kernels.neighbours import Neighbours
from cdsk._kernels.sparse import NeighbourGraph, SparseKernel, _at_ends, _with_values
from cdsk._steps.alternate import alternate
from cdsk._steps.eigen import ROUGH
from cdsk._steps.start import first_weights

SCALES = (np.inf, 1.0, *(2.0 ** (-0.5 * i) for i in range(1, 7)))
COMPONENTS = (5, 10, 20, 50, 100, 200, 300)
MANY_FEATURES = 60
TIED = 0.1


# ---------------------------------------------------------------- data


def problems(data, cap):
    """Yield (name, X, y, counted points); tables in their own units."""
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
    """Batteries by their folder; tables; images."""
    if "/" in name:
        return name.split("/")[0]
    return "tables" if name.startswith("t_") or name == "ionosphere" else "images"


def half(name):
    """0 or 1, by a fixed hash of the name."""
    return zlib.crc32(name.encode()) % 2


# ---------------------------------------------------------------- views


def views(X, table):
    """Yield (name, points) of every view that means something."""
    X = X[:, np.ptp(X, axis=0) > 0]
    n, d = X.shape
    centred = X - X.mean(axis=0)
    Z = centred / X.std(axis=0)
    yield "given", X
    yield "standard", Z
    yield "ranks", normal_scores(X, Z)
    if d >= MANY_FEATURES:
        length = np.linalg.norm(centred, axis=1, keepdims=True)
        yield "cosine", centred / np.maximum(length, 1e-12)
    if d >= MANY_FEATURES:
        yield from whitened(centred, "white")
    if d < MANY_FEATURES or table:
        yield from whitened(Z, "standard white")


def normal_scores(X, Z):
    """Rank -> normal quantile; a feature with many ties is standardised only."""
    found, n = Z.copy(), len(X)
    for j, values in enumerate(X.T):
        if np.unique(values, return_counts=True)[1].max() <= TIED * n:
            found[:, j] = norm.ppf((rankdata(values) - 0.5) / n)
    return found / found.std(axis=0)


def whitened(centred, name):
    """Leading components with equal variances."""
    vectors = np.linalg.svd(centred, full_matrices=False)[0]
    for m in COMPONENTS:
        if m < 0.7 * min(centred.shape):
            yield f"{name} {m}", vectors[:, :m] * np.sqrt(len(centred))


# ---------------------------------------------------------------- partitions


def distinct(X, c):
    """First rows of the distinct points, the point of every row, copies of each."""
    _, first, place, copies = np.unique(
        X, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    if not max(c, 7) < len(first) < len(X):
        return np.arange(len(X)), np.arange(len(X)), np.ones(len(X))
    order = np.argsort(first)
    rank = np.argsort(order)
    return first[order], rank[place.ravel()], copies[order].astype(float)


def partitions(V, copies, c, k, lam=0.2):
    """Yield (scale, learned labels, uniform labels, numbers) of distinct points."""
    V = np.ascontiguousarray(V)
    graph = NeighbourGraph(Neighbours(V, k, robust=True, n_threads=1))
    scales, squared, m = graph.neighbours.scales, graph._squared, copies
    m_i, m_j = _at_ends(squared, m / m.mean())
    b_i, b_j = _at_ends(squared, scales)
    start = None
    for scale in SCALES:
        values = np.exp(-squared.data / (2.0 * scale**2 * (b_i * b_j))) * m_i * m_j
        kernel = SparseKernel(_with_values(squared, values), graph._order, 1, graph)
        rng, began = np.random.RandomState(0), time.process_time()
        fit = alternate(
            kernel, c, lam, first_weights(kernel, lam, "uniform"), max_iter=20,
            tol=1e-4, qp_tol=1e-4, eigen_solver="auto", rng=rng, start=start,
            eigen_tol=ROUGH,
        )  # fmt: skip
        start = fit.first_embedding
        learned = label(fit.embedding, c, m, 10)
        middle = time.process_time()
        uniform = label(start, c, m, 3)
        yield scale, learned, uniform, (
            float(fit.resolved), fit.embedding.eigenvalues[-1], start.eigenvalues[-1],
            middle - began, time.process_time() - middle,
        )  # fmt: skip


def label(embedding, c, m, starts):
    model = KMeans(c, n_init=starts, random_state=0)
    return model.fit_predict(np.ascontiguousarray(embedding.vectors.T), sample_weight=m)


def modularity(V, labels):
    """Of partitions, in the unweighted graph of the 10 nearest neighbours."""
    graph = NeighbourGraph(Neighbours(np.ascontiguousarray(V), 10, n_threads=1))
    G = _with_values(graph._squared, np.ones(graph._squared.nnz))
    degree = np.diff(G.indptr)
    total, found = degree.sum(), []
    for p in labels:
        H = sparse.csr_array((np.ones(len(p)), (np.arange(len(p)), p)))
        inside = H.multiply(G @ H).sum(axis=0)
        found.append(np.sum(inside / total - ((H.T @ degree) / total) ** 2))
    return np.array(found)


def fit_all(options):
    """Fill the cache."""
    options.cache.mkdir(parents=True, exist_ok=True)
    for name, X, y, counted in problems(options.data, options.cap):
        if options.only and not any(only in name for only in options.only):
            continue
        c, began = len(np.unique(y[counted])), time.process_time()
        first, place, copies = distinct(X, c)
        table = family(name) == "tables"
        for k in options.neighbours:
            path = options.cache / f"{name.replace('/', '~')}~{k}.npz"
            if path.exists():
                continue
            rows, learned, uniform, extra = [], [], [], []
            for view, V in views(X, table):
                if family(name) == "noise" and view != "given":
                    continue
                for scale, a, b, numbers in partitions(V[first], copies, c, k):
                    rows.append((view, scale))
                    learned.append(a[place])
                    uniform.append(b[place])
                    extra.append(numbers)
                size = len(SCALES)
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


def main():
    """Fit or evaluate."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    fit = commands.add_parser("fit")
    fit.add_argument("data")
    fit.add_argument("cache", type=Path)
    fit.add_argument("--cap", type=int, default=800)
    fit.add_argument("--neighbours", type=int, nargs="+", default=[20])
    fit.add_argument("--only", nargs="+")
    fit.set_defaults(run=fit_all)
    options = parser.parse_args()
    with threadpool_limits(1):
        options.run(options)


if __name__ == "__main__":
    main()
