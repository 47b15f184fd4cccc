# SPDX-License-Identifier: BSD-3-Clause
"""The layout of a neighbor graph: its weights, and all epochs from a spectral start."""

import numpy as np

from . import data
from .private import NeighborGraph, Neighbors, layouts


class Layout:
    timeout = 600  # on a busy machine
    params = ([1000, 10_000], [2, 10], [1, 2])
    param_names = ("n", "n_components", "n_threads")

    def setup(self, n, n_components, n_threads):
        neighbors = Neighbors(data.blobs(n)[0], 20)
        self.neighbors = neighbors.distances, neighbors.indices
        self.weights = layouts.fuzzy_weights(*self.neighbors)
        kernel = NeighborGraph(neighbors).kernel(neighbors.scales, 1)
        self.start = layouts.spectral_start(kernel, n_components)

    def run(self, n_threads):
        return layouts.layout(self.weights, self.start, n_threads=n_threads)

    def time_weights(self, n, n_components, n_threads):
        layouts.fuzzy_weights(*self.neighbors)

    def time_layout(self, n, n_components, n_threads):
        self.run(n_threads)

    def peakmem_layout(self, n, n_components, n_threads):
        self.run(n_threads)

    def track_loss(self, n, n_components, n_threads):
        return float(np.mean(layouts.layout_loss(self.weights, self.run(n_threads))))
