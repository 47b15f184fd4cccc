# SPDX-License-Identifier: BSD-3-Clause
"""``fit`` and ``predict``, and the most similar estimator of scikit-learn."""

from sklearn.cluster import SpectralClustering
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from cdsk import CDSK

from . import data


class Fit:
    timeout = 600  # on a busy machine
    params = ([1000, 4000], ["float64", "float32"], [1, 2])
    param_names = ("n", "dtype", "n_threads")

    def setup(self, n, dtype, n_threads):
        self.X, self.y = data.blobs(n, dtype=dtype)
        self.model = CDSK(data.CLUSTERS, random_state=0, n_threads=n_threads)

    def time_fit(self, n, dtype, n_threads):
        self.model.fit(self.X)

    def peakmem_setup(self, n, dtype, n_threads):
        pass  # baseline for peakmem_fit

    def peakmem_fit(self, n, dtype, n_threads):
        self.model.fit(self.X)

    def track_rand_index(self, n, dtype, n_threads):
        return adjusted_rand_score(self.y, self.model.fit(self.X).labels_)


class Predict:
    timeout = 600  # on a busy machine
    params = ([1000, 4000], ["float64", "float32"], [1, 2])
    param_names = ("n_support", "dtype", "n_threads")

    def setup(self, n_support, dtype, n_threads):
        X, y = data.blobs(6 * n_support, dtype=dtype)
        self.X, self.y = X[n_support:], y[n_support:]
        # no iterations: every point has positive weight
        model = CDSK(data.CLUSTERS, max_iter=0, random_state=0, n_threads=n_threads)
        self.model = model.fit(X[:n_support])

    def time_predict(self, n_support, dtype, n_threads):
        self.model.predict(self.X)

    def peakmem_predict(self, n_support, dtype, n_threads):
        self.model.predict(self.X)

    def track_rand_index(self, n_support, dtype, n_threads):
        return adjusted_rand_score(self.y, self.model.predict(self.X))


class SpectralClusteringFit:
    """The peer, with the bandwidth of CDSK."""

    timeout = 600  # on a busy machine
    params = ([1000, 4000], [1, 2])
    param_names = ("n", "n_threads")

    def setup(self, n, n_threads):
        self.X, self.y = data.blobs(n)
        gamma = 0.5 / data.bandwidth(self.X) ** 2
        self.model = SpectralClustering(data.CLUSTERS, gamma=gamma, random_state=0)
        self.limits = threadpool_limits(n_threads)

    def teardown(self, n, n_threads):
        self.limits.restore_original_limits()

    def time_fit(self, n, n_threads):
        self.model.fit(self.X)

    def peakmem_fit(self, n, n_threads):
        self.model.fit(self.X)

    def track_rand_index(self, n, n_threads):
        return adjusted_rand_score(self.y, self.model.fit(self.X).labels_)
