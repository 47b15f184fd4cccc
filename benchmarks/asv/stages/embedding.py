# SPDX-License-Identifier: BSD-3-Clause
"""The spectral step, from a random start and from the embedding of other weights.

Also k-means of an embedding, and that of scikit-learn.
"""

import numpy as np
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from . import data
from .private import kmeans


class SpectralStep:
    timeout = 600  # on a busy machine
    params = ([1000, 4000], ["cold", "warm"], [1, 2])
    param_names = ("n", "start", "n_threads")

    def setup(self, n, start, n_threads):
        kernel = data.kernel(data.blobs(n)[0], n_threads)
        self.arguments = (kernel,)
        if start == "warm":
            problem = data.weight_problem(kernel)
            weights = problem.solve(data.uniform(n), 1e-4).x
            self.arguments = (kernel, weights, data.embedding(kernel))

    def time_step(self, n, start, n_threads):
        data.embedding(*self.arguments)

    def peakmem_step(self, n, start, n_threads):
        data.embedding(*self.arguments)

    def track_residual(self, n, start, n_threads):
        return data.embedding(*self.arguments).residual


class Labels:
    """Ten runs of k-means, on rows of unit length near the axes."""

    timeout = 600  # on a busy machine
    params = ([200, 5000, 50_000], ["cdsk", "scikit-learn"])
    param_names = ("n", "package")

    def setup(self, n, package):
        rng = np.random.RandomState(0)
        rows = np.eye(data.CLUSTERS)[rng.randint(data.CLUSTERS, size=n)]
        rows += 0.15 * rng.normal(size=rows.shape)
        self.rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def _labels(self, package):
        if package == "cdsk":
            rng = np.random.RandomState(0)
            return kmeans(self.rows.T, data.CLUSTERS, n_init=10, rng=rng)
        model = KMeans(data.CLUSTERS, n_init=10, random_state=0)
        with threadpool_limits(1):
            return model.fit(self.rows).labels_

    def time_labels(self, n, package):
        self._labels(package)

    def track_inertia(self, n, package):
        labels = self._labels(package)
        clusters = [self.rows[labels == j] for j in range(data.CLUSTERS)]
        return sum(float(np.sum((X - X.mean(axis=0)) ** 2)) for X in clusters)
