# SPDX-License-Identifier: BSD-3-Clause
"""Seeded data, and the inputs of the stages computed from them; no downloads."""

import numpy as np
from sklearn.datasets import load_digits, make_blobs
from sklearn.neighbors import NearestNeighbors

from cdsk import gaussian_gram

from .private import (
    DenseKernel,
    NeighborGraph,
    Neighbors,
    WeightProblem,
    spectral_step,
)

CLUSTERS = 10
LAM = 0.3


def blobs(n, d=50, dtype=np.float64):
    """Return ten Gaussian clusters and their labels.

    They overlap at d = 50: spectral clustering has a Rand index of 0.95.
    """
    X, y = make_blobs(n, d, centers=CLUSTERS, center_box=(-1.0, 1.0), random_state=0)
    return X.astype(dtype), y


def digits():
    """Return scikit-learn's digits and their labels."""
    return load_digits(return_X_y=True)


def bandwidth(X):
    """Return the bandwidth of the rule "neighbor" for at most 2000 points."""
    distances, _ = NearestNeighbors(n_neighbors=7).fit(X[:2000]).kneighbors()
    return 0.5 * float(distances[:, -1].mean())


def uniform(n):
    """Return the initial weights of a fit."""
    return np.full(n, 1.0 / n)


def kernel(X, n_threads):
    """Return the dense kernel of X."""
    K = gaussian_gram(X, bandwidth(X), n_threads=n_threads)
    return DenseKernel(K, n_threads, points=X)


def embedding(kernel, weights=None, start=None):
    """Return the result of the spectral step, by default for uniform weights."""
    weights = uniform(kernel.n) if weights is None else weights
    similarity = kernel.similarity(weights, kernel.n * LAM)
    rng = np.random.RandomState(0)
    return spectral_step(similarity, CLUSTERS, rng, start)


def weight_problem(kernel):
    """Return the first weight step of a fit."""
    return WeightProblem(kernel, embedding(kernel).vectors, kernel.n * LAM)


def sparse_weight_problem(n):
    """Return a weight step on the neighbor graph of blobs in the plane.

    The embedding is the indicator matrix of their labels plus noise, because a spectral
    step of 10^6 points would take too long.
    """
    X, y = make_blobs(n, 2, centers=CLUSTERS, random_state=0)
    neighbors = Neighbors(X, 20)
    kernel = NeighborGraph(neighbors).kernel(0.7 * neighbors.scales, 1)
    vectors = np.equal.outer(np.arange(CLUSTERS), y).astype(np.float64)
    vectors += 0.3 * np.random.default_rng(0).normal(size=vectors.shape)
    vectors /= np.linalg.norm(vectors, axis=0)
    return WeightProblem(kernel, vectors, n * LAM)
