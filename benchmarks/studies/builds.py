# SPDX-License-Identifier: BSD-3-Clause
"""Compare the processor time of several builds of the package.

usage: python -m benchmarks.studies.builds FOLDER ... [--rounds N] [--only NAME ...]

Each FOLDER is created by ``pip install --no-deps --target FOLDER WHEEL``; a second copy
of the first shows differences by chance. Measures asv benchmarks, calls of so few
points that overhead dominates, and the import. Every round runs each build in its own
process, on one thread. The best time of all rounds counts, because other processes can
only increase it. See docs/notes/2026-11-17-wheels.md.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from functools import partial
from importlib import import_module
from pathlib import Path

# name -> module, class and method in benchmarks/asv/stages, parameters
STAGES = {
    "Gram, 2000 x 50": ("kernel.GaussianGram.time_gram", (2000, 50, "float64", 1)),
    "product, 2000 x 28": ("kernel.Product.time_product", (2000, 28, "float64", 1)),
    "SMO, dense, 1000": ("smo.WeightStep.time_solve", ("1000", 1e-4, 1)),
    "SMO, sparse, 10 000": ("smo.SparseWeightStep.time_solve", (10_000,)),
    "neighbors, 4000 x 2": ("neighbors.Search.time_search", (4000, 2, 1)),
    "neighbors, 4000 x 50": ("neighbors.Search.time_search", (4000, 50, 1)),
    "fit, 200": ("estimator.Fit.time_fit", (200, "float64", 1)),
    "fit, 3000": ("estimator.Fit.time_fit", (3000, "float64", 1)),
    "predict, 5000": ("estimator.Predict.time_predict", (1000, "float64", 1)),
}
_SECONDS = 1.0  # time for the repetitions of one measurement in a round


def best(function):
    """Return the smallest processor time of a call; short calls run in a loop."""
    together, least, began = 1, float("inf"), time.perf_counter()
    while time.perf_counter() - began < _SECONDS:
        start = time.process_time()
        for _ in range(together):
            function()
        taken = time.process_time() - start
        if taken < 0.02:  # too short for the clock
            together *= 2
        else:
            least = min(least, taken / together)
    return least


def calls():
    """Return the times of calls of few points."""
    import numpy as np

    import cdsk
    from cdsk import _kernel, _threads

    X = np.random.default_rng(0).normal(size=(10, 2))
    K, out = cdsk.gaussian_gram(X, 1.0, n_threads=1), np.empty((1, 10))
    weights, ones = np.full(10, 0.1), np.ones((1, 10))
    many, large = np.full(2000, 1 / 2000), np.full((2000, 2000), 0.5)
    similarity = partial(cdsk.similarity_matrix, n_threads=1)
    found = {
        "similarity_matrix of 2000": partial(similarity, large, many, 0.3),
        "similarity_matrix of 10": partial(similarity, K, weights, 0.3),
        "gaussian_gram of 10": partial(cdsk.gaussian_gram, X, 1.0, n_threads=1),
        "solve_qp of 10": partial(cdsk.solve_qp, K, -weights),
        "_kernel.product of 10": partial(_kernel.product, K, ones, out, 1),
        "resolve_n_threads": partial(_threads.resolve_n_threads, 1),
    }
    return {name: partial(lambda call: call, call) for name, call in found.items()}


def stages():
    """Return {name: function that sets up a stage and returns the call to measure}."""

    def ready(place, parameters):
        module, kind, method = place.split(".")
        stage = getattr(import_module(f"benchmarks.asv.stages.{module}"), kind)()
        stage.setup(*parameters)
        return partial(getattr(stage, method), *parameters)

    return {name: partial(ready, *stage) for name, stage in STAGES.items()}


def figures(only):
    """Return the seconds of all measurements, or of those in ``only``."""
    import_module("cdsk._cdsk")
    found = {"import of CDSK": time.process_time()}
    for name, ready in (stages() | calls()).items():
        if not only or name in only:
            found[name] = best(ready())
    return found


def measure_build(folder, only):
    command = [sys.executable, "-m", __spec__.name, "--here", "--only", *only]
    environment = os.environ | {
        "PYTHONPATH": str(Path(folder).resolve()),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    root = Path(__file__).parents[2]
    return json.loads(subprocess.check_output(command, env=environment, cwd=root))


def shown(seconds):
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def main():
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[2])
    parser.add_argument("folders", nargs="*")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        print(json.dumps(figures(options.only)))
        return
    rounds = [
        [measure_build(folder, options.only) for folder in options.folders]
        for _ in range(options.rounds)
    ]
    heads = ["processor time", *(Path(folder).name for folder in options.folders)]
    print("|", " | ".join(heads), "|")
    print("|", " | ".join("---" for _ in heads), "|")
    for name in rounds[0][0]:
        times = ([figures[name] for figures in builds] for builds in rounds)
        first, *others = map(min, zip(*times, strict=True))
        cells = [f"{shown(other)} ({other / first:.2f})" for other in others]
        print("|", " | ".join([name, shown(first), *cells]), "|")


if __name__ == "__main__":
    main()
