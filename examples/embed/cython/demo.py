# SPDX-License-Identifier: BSD-3-Clause
"""Learn from 600 labeled points, then classify a stream of batches.

Build and run it with cdsk, meson and Cython installed:

    meson setup build && meson compile -C build && PYTHONPATH=build python demo.py
"""

import numpy as np
from sklearn.datasets import make_moons
from stream import StreamClassifier

BANDWIDTH = 0.2


def batches(n_batches=20, size=200):
    """Yield batches of noisy moons."""
    for seed in range(1, n_batches + 1):
        yield make_moons(size, noise=0.15, random_state=seed)


if __name__ == "__main__":
    X, y = make_moons(600, noise=0.15, random_state=0)
    model = StreamClassifier(X, y, BANDWIDTH)
    accuracy = [np.mean(model.classify(batch) == truth) for batch, truth in batches()]
    print(f"{np.count_nonzero(model.weights)} of {len(X)} points have positive weight")
    print(f"accuracy {np.mean(accuracy):.3f} over {len(accuracy)} batches")
