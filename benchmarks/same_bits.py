# SPDX-License-Identifier: BSD-3-Clause
"""Hashes of many fits, to check that a refactoring does not change a single bit.

usage: python -m benchmarks.same_bits record DATA FILE.json [--cap 2000] [--part 0/2]
       python -m benchmarks.same_bits compare BEFORE.json AFTER.json

``record`` fits every set of DATA (benchmarks/studies/sets.py) with two seeds, with the
default and with a dense kernel, and with ``BlockCDSK`` and ``cdsk.dask``; then small
sets with every other option. It writes one hash per attribute of each fit. Run it for
both commits, each time with that commit's package first on PYTHONPATH. ``compare``
lists the attributes that differ, and exits with status 1 if there are any.
"""

import argparse
import hashlib
import json
import sys
import time
import warnings

import numpy as np
from scipy import sparse
from sklearn.neighbors import KNeighborsTransformer

from benchmarks.studies.sets import load

ATTRIBUTES = (
    "labels_ clusters_ weights_ support_ unconnected_ embedding_ eigenvalues_ history_ "
    "n_iter_ qp_gap_ bandwidth_ lam_ margins_ typicality_ probabilities_ landmarks_ "
    "landmark_counts_"
).split()

# Names of attributes in earlier commits.
OLD_NAMES = {"unconnected_": "strays_", "landmark_counts_": "landmark_masses_"}


def digest(value):
    value = np.asarray(value)
    return hashlib.sha256(value.tobytes() + str(value.shape).encode()).hexdigest()[:16]


def collect_numbers(value):
    """Return all numbers in nested data, sorted; text may change between commits."""
    if isinstance(value, dict):
        value = [item for key, item in value.items() if key != "schema_version"]
    if isinstance(value, list | tuple):
        return sorted(x for item in value for x in collect_numbers(item))
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return [float(value)] if is_number and np.isfinite(value) else []


def compute_digests(model, X):
    found = {}
    for name in ATTRIBUTES:
        value = getattr(model, name, getattr(model, OLD_NAMES.get(name, name), None))
        if value is not None:
            found[name] = digest(value)
    found["choice_"] = digest(model.choice_.scores)
    found["predict"] = digest(model.predict(X[:200]))
    found["predict_proba"] = digest(model.predict_proba(X[:200]))
    found["transform"] = digest(model.transform(X[:200]))
    found["report"] = digest(collect_numbers(model.report().to_dict()))
    return found


def iter_models(name, X, c):
    """Yield the name, the unfitted model and the data of every fit of a set."""
    import dask.array as da

    import cdsk.dask
    from cdsk import CDSK, BlockCDSK

    chunks = (max(len(X) // 3, 1), X.shape[1])
    for seed in (0, 1):
        yield f"default {seed}", CDSK(c, random_state=seed), X
        dense = CDSK(c, bandwidth="median", random_state=seed)
        yield f"dense {seed}", dense, X
        yield f"block {seed}", BlockCDSK(c, random_state=seed), X
        lazy = da.from_array(X, chunks=chunks)
        yield f"dask {seed}", cdsk.dask.CDSK(c, random_state=seed), lazy
    if len(X) > 450 or X.shape[1] > 60:
        return
    one = {"random_state": 0}
    weights = np.random.RandomState(0).randint(0, 4, len(X)).astype(float)
    for option in (
        {"bandwidth": "local"},
        {"bandwidth": "local", "n_neighbors": 15},
        {"bandwidth": "std", "lam": "auto"},
        {"n_clusters": "auto"},
        {"kernel": "cosine", "representation": "standardize"},
        {"kernel": "sigmoid", "representation": "whiten"},
        {"kernel": "laplacian", "psd": False},
        {"kernel": "rbf", "psd": False},
        {"init": "sparse", "assign_labels": "auto"},
        {"assign_labels": "cluster_qr", "noise": 0.05},
        {"assign_labels": "discretize", "eigen_solver": "eigsh"},
        {"bandwidth": "median", "approximation": "lowrank"},
        {"max_iter": 0, "n_threads": 2},
        {"neighbors": KNeighborsTransformer(n_neighbors=15)},
    ):
        yield f"{option}", CDSK(**{"n_clusters": c, **one, **option}), X
    yield "float32", CDSK(c, **one), X.astype(np.float32)
    yield "sparse", CDSK(c, **one), sparse.csr_array(X)
    yield "weights", CDSK(c, **one), (X, weights)
    squares = np.square(X[:, np.newaxis] - X).sum(axis=2)
    K = np.exp(-squares / np.median(squares))
    yield "precomputed", CDSK(c, kernel="precomputed", **one), K
    thin = sparse.csr_array(np.where(K > np.quantile(K, 0.7), K, 0.0))
    yield "precomputed sparse", CDSK(c, kernel="precomputed", **one), thin
    graph = KNeighborsTransformer(n_neighbors=15).fit_transform(X)
    given = CDSK(c, kernel="precomputed_neighbors", **one)
    yield "precomputed_neighbors", given, graph


def record(args):
    which, parts = map(int, args.part.split("/"))
    found, began = {}, time.perf_counter()
    sets = sorted(load(args.data, args.cap), key=lambda one: one[1].size)
    for i, (name, X, y, counted) in enumerate(sets):
        if i % parts != which:
            continue
        c = max(len(np.unique(y[counted])), 2)
        for what, model, data in iter_models(name, X, c):
            data, weight = data if isinstance(data, tuple) else (data, None)
            how = {} if weight is None else {"sample_weight": weight}
            key = f"{name} | {what}"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    found[key] = compute_digests(model.fit(data, **how), data)
                except ValueError as error:
                    found[key] = {"error": type(error).__name__}
        print(f"{time.perf_counter() - began:6.0f} s  {name}", flush=True)
        with open(args.file, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=0)


def compare(args):
    before, after = (
        json.load(open(name, encoding="utf-8")) for name in (args.before, args.after)
    )
    differing = 0
    for key in sorted(before.keys() & after.keys()):
        one, other = before[key], after[key]
        names = [n for n in one.keys() | other.keys() if one.get(n) != other.get(n)]
        if names:
            differing += 1
            print(f"{key}: {', '.join(sorted(names))}")
    common = len(before.keys() & after.keys())
    print(f"{common} fits compared, {differing} differ")
    print(f"{len(before.keys() ^ after.keys())} fits are in one file only")
    return int(differing > 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("record")
    one.add_argument("data")
    one.add_argument("file")
    one.add_argument("--cap", type=int, default=2000)
    one.add_argument("--part", default="0/1")
    one.set_defaults(run=record)
    one = commands.add_parser("compare")
    one.add_argument("before")
    one.add_argument("after")
    one.set_defaults(run=compare)
    args = parser.parse_args()
    return args.run(args)


if __name__ == "__main__":
    sys.exit(main())
