# SPDX-License-Identifier: BSD-3-Clause
"""The spectral step, from a random start and from the embedding of other weights."""

from . import data


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
