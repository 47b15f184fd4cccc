# SPDX-License-Identifier: BSD-3-Clause
"""False and true alarms about drift of BlockCDSK.partial_fit, on generated data.

usage: python -m benchmarks.studies.updates [--seeds 20] [--n 1500]

Blobs in 2, 10 and 50 dimensions are fitted, with 100 landmarks and with the default
number, and updated by rows of the same law, by these and a tenth of rows of one blob
that is shifted by some of its standard deviations, or by rows of one blob alone. One
line per case: the share of updates with a warning, and the mean time of an update.
docs/notes/2026-11-19-sizes.md discusses them.
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.datasets import make_blobs

from cdsk import BlockCDSK

SHIFTS = (0.0, 2.0, 4.0, 8.0)


def make_rows(n, d, seed):
    """Return rows of five blobs, and their centers."""
    rng = np.random.default_rng(seed)
    centers = rng.uniform(-10.0, 10.0, size=(5, d))
    return make_blobs(n, centers=centers, random_state=seed)[0], centers


def has_alarm(model, rows):
    """Return whether an update warns of drift, and its seconds."""
    begun = time.perf_counter()
    model.partial_fit(rows)
    return model.drift_.has_drifted.any(), time.perf_counter() - begun


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--n", type=int, default=1500)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    n = options.n
    for d in (2, 10, 50):
        for n_landmarks in (100, None):
            found = {}
            for seed in range(options.seeds):
                X, centers = make_rows(2 * n, d, seed)
                rng = np.random.default_rng(seed)
                model = BlockCDSK(5, n_landmarks=n_landmarks, random_state=seed)
                cases = {"one blob alone": X[n:][model.fit(X[:n]).predict(X[n:]) == 0]}
                for shift in SHIFTS:
                    direction = rng.normal(size=d)
                    direction *= shift / np.linalg.norm(direction)
                    moved = rng.normal(centers[0] + direction, size=(n // 10, d))
                    cases[f"shifted by {shift:g}"] = np.concatenate([X[n:], moved])
                for name, rows in cases.items():
                    model.fit(X[:n])
                    found.setdefault(name, []).append(has_alarm(model, rows))
            for name, pairs in found.items():
                alarms, seconds = np.mean(pairs, axis=0)
                print(
                    f"d={d:2d}, {len(model.landmarks_)} landmarks, {name}: "
                    f"{alarms:.0%} alarms, {seconds:.2f} s",
                    flush=True,
                )


if __name__ == "__main__":
    main()
