"""
Eight shapes, four methods
==========================

CDSK compared with scikit-learn's KMeans, SpectralClustering on nearest neighbors and
HDBSCAN. All have default settings and the true number of clusters, except HDBSCAN,
which finds the number itself. None of them separates two crossing bars.
"""

import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import HDBSCAN, KMeans, SpectralClustering
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

from cdsk import CDSK, plot

# %%
# The shapes, with 500 points each.

rng = np.random.default_rng(0)
n = 500


def make_spirals():
    y = np.repeat([0, 1], n // 2)
    angle = np.sqrt(rng.uniform(0.06, 1, n)) * 3 * np.pi
    rotated = angle + np.pi * y
    X = angle[:, np.newaxis] * np.stack([np.cos(rotated), np.sin(rotated)], axis=1)
    return X + rng.normal(scale=0.25, size=X.shape), y


def make_stretched():
    X, y = make_blobs(n, centers=3, random_state=170)
    return X @ [[0.6, -0.6], [-0.4, 0.8]], y


def make_cross():
    y = np.repeat([0, 1], n // 2)
    X = rng.normal(size=(n, 2)) * np.where(y[:, np.newaxis], (4, 0.12), (0.12, 4))
    return X, y


def make_ring_and_blobs():
    X, y = make_circles(n // 2, factor=0.999, noise=0.05, random_state=0)
    blobs, blob_labels = make_blobs(
        n // 2, centers=[[-0.4, 0], [0.4, 0]], cluster_std=0.1, random_state=0
    )
    return np.concatenate([3 * X, 3 * blobs]), np.concatenate([0 * y, 1 + blob_labels])


def make_noisy_blobs():
    X, y = make_blobs(450, centers=[[0, 0], [5, 5], [0, 6]], random_state=1)
    noise = rng.uniform(-4, 10, (50, 2))
    return np.concatenate([X, noise]), np.concatenate([y, np.full(50, -1)])


shapes = {
    "moons": make_moons(n, noise=0.08, random_state=0),
    "rings": make_circles(n, factor=0.5, noise=0.06, random_state=0),
    "spirals": make_spirals(),
    "stretched": make_stretched(),
    "uneven": make_blobs(
        [300, 150, 50],
        centers=[[0, 0], [6, 4], [6, -2]],
        cluster_std=[2.0, 0.8, 0.4],
        random_state=0,
    ),
    "cross": make_cross(),
    "ring, two blobs": make_ring_and_blobs(),
    "blobs in noise": make_noisy_blobs(),
}

# %%
# The numbers are the adjusted Rand index, without points generated as noise, and the
# time in seconds.


def make_models(c):
    return {
        "k-means": KMeans(c, random_state=0),
        "SpectralClustering": SpectralClustering(
            c, affinity="nearest_neighbors", random_state=0
        ),
        "HDBSCAN": HDBSCAN(copy=True),
        "CDSK": CDSK(c, random_state=0),
    }


scores = {name: [] for name in make_models(2)}
figure, axes = plt.subplots(4, 8, figsize=(14, 7.2), layout="constrained")
for column, (shape, (X, y)) in zip(axes.T, shapes.items(), strict=True):
    is_scored = y >= 0
    for ax, (name, model) in zip(
        column, make_models(len(np.unique(y[is_scored]))).items(), strict=True
    ):
        start = time.perf_counter()
        with warnings.catch_warnings():
            # expected for well separated clusters
            warnings.filterwarnings("ignore", "Graph is not fully connected")
            model.fit(X)
        seconds = time.perf_counter() - start
        score = adjusted_rand_score(y[is_scored], model.labels_[is_scored])
        scores[name].append(score)
        plot.scatter(model, X, ax=ax)
        for dots in ax.collections:  # small panels
            dots.set_sizes(0.4 * dots.get_sizes())
        ax.set(xticks=[], yticks=[], ylabel="", aspect="equal", adjustable="datalim")
        ax.set_xlabel(f"{score:z.2f}, {seconds:.2f} s", labelpad=2)
        ax.spines[:].set_visible(False)
    column[0].set_title(shape)
for ax, name in zip(axes[:, 0], scores, strict=True):
    ax.set_ylabel(name, fontsize=11)
for name, values in scores.items():
    print(f"{name:20s} mean adjusted Rand index {np.mean(values):.2f}")
plt.show()
