# SPDX-License-Identifier: BSD-3-Clause
"""Kernel matrices, and products with them."""

import numpy as np

from cdsk import gaussian_gram, gaussian_rows

from . import data, quality


class GaussianGram:
    timeout = 600  # on a busy machine
    params = ([1000, 4000], [50, 784], ["float64", "float32"], [1, 2])
    param_names = ("n", "d", "dtype", "n_threads")

    def setup(self, n, d, dtype, n_threads):
        self.X = data.blobs(n, d, dtype)[0]
        self.bandwidth = data.bandwidth(self.X)

    def run(self, n_threads):
        return gaussian_gram(self.X, self.bandwidth, n_threads=n_threads)

    def time_gram(self, n, d, dtype, n_threads):
        self.run(n_threads)

    def peakmem_setup(self, n, d, dtype, n_threads):
        pass  # baseline for peakmem_gram

    def peakmem_gram(self, n, d, dtype, n_threads):
        self.run(n_threads)

    def track_error(self, n, d, dtype, n_threads):
        K = self.run(n_threads)
        return quality.kernel_error(K, self.X, self.X, self.bandwidth)


class GaussianRows:
    params = ([1000, 4000], ["float64", "float32"], [1, 2])
    param_names = ("n", "dtype", "n_threads")

    def setup(self, n, dtype, n_threads):
        X = data.blobs(3 * n, dtype=dtype)[0]
        self.A, self.B = X[n:], X[:n]
        self.bandwidth = data.bandwidth(X)

    def run(self, n_threads):
        return gaussian_rows(self.A, self.B, self.bandwidth, n_threads=n_threads)

    def time_rows(self, n, dtype, n_threads):
        self.run(n_threads)

    def peakmem_rows(self, n, dtype, n_threads):
        self.run(n_threads)

    def track_error(self, n, dtype, n_threads):
        K = self.run(n_threads)
        return quality.kernel_error(K, self.A, self.B, self.bandwidth)


class Product:
    params = ([1000, 4000], [2, 28], ["float64", "float32"], [1, 2])
    param_names = ("n", "vectors", "dtype", "n_threads")

    def setup(self, n, vectors, dtype, n_threads):
        self.kernel = data.kernel(data.blobs(n, dtype=dtype)[0], n_threads)
        self.vectors = np.random.default_rng(0).normal(size=(vectors, n))

    def time_product(self, n, vectors, dtype, n_threads):
        self.kernel.product(self.vectors)

    def track_error(self, n, vectors, dtype, n_threads):
        off_diagonal = self.kernel.K.astype(np.float64)
        np.fill_diagonal(off_diagonal, 0.0)
        exact = self.vectors @ off_diagonal
        error = np.abs(self.kernel.product(self.vectors) - exact).max()
        return float(error / np.abs(exact).max())
