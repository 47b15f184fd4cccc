# SPDX-License-Identifier: BSD-3-Clause
"""Nearest neighbours: left to boxes, to both, and to products."""

import numpy as np

from . import data
from .private import Neighbours


class Search:
    params = ([1000, 4000], [2, 50, 784], [1, 2])
    param_names = ("n", "d", "n_threads")

    def setup(self, n, d, n_threads):
        self.X = data.blobs(n, d)[0]

    def run(self, n_threads):
        return Neighbours(self.X, 20, n_threads=n_threads)

    def time_search(self, n, d, n_threads):
        self.run(n_threads)

    def peakmem_search(self, n, d, n_threads):
        self.run(n_threads)

    def track_missed(self, n, d, n_threads):
        """Points that are nearer than the last neighbour and not among them, of 50."""
        found, missed = self.run(n_threads), 0
        for i in range(0, n, n // 50):
            distances = np.linalg.norm(self.X - self.X[i], axis=1)
            nearer = np.flatnonzero(distances < found.distances[i, -1] * (1 - 1e-12))
            missed += len(np.setdiff1d(nearer, [*found.indices[i], i]))
        return missed
