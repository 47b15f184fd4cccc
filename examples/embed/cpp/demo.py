# SPDX-License-Identifier: BSD-3-Clause
"""Select a bandwidth by hold-out, one C++ thread per candidate.

Build and run it with cdsk, meson and a C++ compiler installed:

    meson setup build && meson compile -C build && PYTHONPATH=build python demo.py
"""

import holdout
import numpy as np
from sklearn.datasets import make_moons

BANDWIDTHS = np.array([0.02, 0.05, 0.1, 0.2, 0.4, 0.8])
LAM = 0.3


def make_data(n, seed):
    """Return noisy moons sorted by label, the labels, and the class offsets."""
    X, y = make_moons(n, noise=0.25, random_state=seed)
    order = np.argsort(y, kind="stable")
    y = y[order].astype(np.intp)
    return np.ascontiguousarray(X[order]), y, np.searchsorted(y, [0, 1, 2])


def scores():
    """Return (accuracy, n_support, KKT gap, status) for each bandwidth."""
    train, _, offsets = make_data(500, 0)
    test, truth, _ = make_data(1000, 1)
    return holdout.scores(train, offsets, test, truth, BANDWIDTHS, LAM)


if __name__ == "__main__":
    print("bandwidth  support  accuracy")
    for bandwidth, (accuracy, n_support, _, _) in zip(
        BANDWIDTHS, scores(), strict=True
    ):
        print(f"{bandwidth:9.2f}{n_support:9d}{accuracy:10.3f}")
