# SPDX-License-Identifier: BSD-3-Clause
"""Seeded data and the problems of the stages made from them; nothing is downloaded."""

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
    """Ten Gaussian clusters and their labels.

    They overlap at d = 50: spectral clustering finds them with a Rand index of 0.95.
    """
    X, y = make_blobs(n, d, centers=CLUSTERS, center_box=(-1.0, 1.0), random_state=0)
    return X.astype(dtype), y


def digits():
    """The images of digits that come with scikit-learn, and their labels."""
    return load_digits(return_X_y=True)


def bandwidth(X):
    """``bandwidth="neighbor"`` of up to 2000 points: a number any kernel can take."""
    distances, _ = NearestNeighbors(n_neighbors=7).fit(X[:2000]).kneighbors()
    return 0.5 * float(distances[:, -1].mean())


def uniform(n):
    """The weights a fit begins with."""
    return np.full(n, 1.0 / n)


def kernel(X, n_threads):
    """The kernel matrix of X as the stages take it."""
    K = gaussian_gram(X, bandwidth(X), n_threads=n_threads)
    return DenseKernel(K, n_threads, points=X)


def embedding(kernel, weights=None, start=None):
    """The spectral step for some weights, uniform ones by default."""
    weights = uniform(kernel.n) if weights is None else weights
    similarity = kernel.similarity(weights, kernel.n * LAM)
    rng = np.random.RandomState(0)
    return spectral_step(similarity, CLUSTERS, rng, start)


def weight_problem(kernel):
    """The first weight step of a fit."""
    return WeightProblem(kernel, embedding(kernel).vectors, kernel.n * LAM)


def sparse_weight_problem(n):
    """A weight step on the neighbor graph of blobs in the plane.

    The embedding is that of their labels, blurred: no spectral step for 10^6 points.
    """
    X, y = make_blobs(n, 2, centers=CLUSTERS, random_state=0)
    neighbors = Neighbors(X, 20)
    kernel = NeighborGraph(neighbors).kernel(0.7 * neighbors.scales, 1)
    vectors = np.equal.outer(np.arange(CLUSTERS), y).astype(np.float64)
    vectors += 0.3 * np.random.default_rng(0).normal(size=vectors.shape)
    vectors /= np.linalg.norm(vectors, axis=0)
    return WeightProblem(kernel, vectors, n * LAM)
