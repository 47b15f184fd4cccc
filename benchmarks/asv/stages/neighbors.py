# SPDX-License-Identifier: BSD-3-Clause
"""Nearest neighbors: by bounding boxes, by products, and by both."""

from . import data, quality
from .private import Neighbors


class Search:
    params = ([1000, 4000], [2, 50, 784], [1, 2])
    param_names = ("n", "d", "n_threads")

    def setup(self, n, d, n_threads):
        self.X = data.blobs(n, d)[0]

    def run(self, n_threads):
        return Neighbors(self.X, 20, n_threads=n_threads)

    def time_search(self, n, d, n_threads):
        self.run(n_threads)

    def peakmem_search(self, n, d, n_threads):
        self.run(n_threads)

    def track_missed(self, n, d, n_threads):
        found = self.run(n_threads)
        return quality.missed_neighbors(self.X, found.indices, found.distances)
