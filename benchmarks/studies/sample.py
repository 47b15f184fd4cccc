# SPDX-License-Identifier: BSD-3-Clause
"""Does a sample select the kernel that all points select, and what does it cost?

usage: python -m benchmarks.studies.sample [DATA] [--n 20000] [--sizes 2500 5000 10000]

Fits generated sets, and those of a folder as in sets.py with enough points, with all
candidates on all points and with candidates on samples of different sizes. Prints
NMI/ARI and seconds of each, the agreement of its labels with those of all points, and
that of the sample with its own fit. docs/notes/2026-11-19-sample.md discusses them.
"""

import argparse
import time
import warnings
from unittest import mock

import numpy as np
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

from benchmarks.studies import sets
from cdsk import CDSK, _view_fits


def generated(n):
    """Yield (name, X, y, scored points) of n points each; noise is not scored."""
    rng = np.random.RandomState(0)
    shares = [0.55, 0.25, 0.1, 0.06, 0.04]
    sizes = np.diff(np.round(n * np.cumsum([0, *shares])).astype(int))
    yield "blobs", *make_blobs(n, 10, centers=10, cluster_std=2.5, random_state=0)
    yield "close blobs", *make_blobs(n, 4, centers=8, cluster_std=2.0, random_state=0)
    yield "unequal blobs", *make_blobs(sizes, 4, cluster_std=2.0, random_state=0)
    yield "moons", *make_moons(n, noise=0.1, random_state=0)
    yield "circles", *make_circles(n, noise=0.08, factor=0.5, random_state=0)
    X, y = make_moons(4 * n // 5, noise=0.05, random_state=0)
    noise = rng.uniform(X.min(axis=0), X.max(axis=0), size=(n - len(X), 2))
    yield "moons in noise", np.vstack([X, noise]), np.append(y, np.full(len(noise), -1))
    t = rng.uniform(0.1, 1.0, n)
    arm = rng.randint(3, size=n)
    angle = 9 * t + 2 * np.pi / 3 * arm
    X = (t * [np.cos(angle), np.sin(angle)]).T + rng.normal(0, 0.02, (n, 2))
    yield "spirals", X, arm


def problems(options):
    """Yield (name, X, y, scored points)."""
    for name, X, y in generated(options.n):
        yield name, X, y, y >= 0
    if options.data is not None:
        for name, X, y, counted in sets.load(options.data, options.n):
            if len(X) >= 2 * min(options.sizes):
                yield name, X, y, counted


def main(arguments=None):
    """Print a line for every set."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", nargs="?")
    parser.add_argument("--n", type=int, default=20_000)
    parser.add_argument("--sizes", type=int, nargs="+", default=[2500, 5000, 10_000])
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    for name, X, y, counted in problems(options):
        line, labels = f"{name:16s} {len(X):6d}", None
        for size in [len(X), *options.sizes]:
            begun = time.perf_counter()
            with mock.patch.object(_view_fits, "_SAMPLE", size):
                model = CDSK(len(np.unique(y[counted])), random_state=0).fit(X)
            seconds = time.perf_counter() - begun
            nmi, ari = sets.scores(y, model.labels_, counted)
            line += f"  {nmi:.3f}/{ari:.3f} {seconds:6.1f} s"
            labels = model.labels_ if labels is None else labels
            if model.choice_.n_sample is not None:
                same = adjusted_rand_score(labels, model.labels_)
                line += f" {same:.2f} {model.choice_.sample_agreement:.2f}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
