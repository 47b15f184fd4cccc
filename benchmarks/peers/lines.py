# SPDX-License-Identifier: BSD-3-Clause
"""Lines of the comparison, one class each: ours and a peer on the same input.

A line is created with its input. ``ours`` and ``peer`` take a number of threads and
run; ``quality`` measures both results from the definition of the problem, and ``limit``
is a lower bound on the time.
"""

import subprocess
import sys
from functools import partial
from unittest.mock import patch

import numpy as np
from sklearn.cluster import SpectralClustering
from sklearn.manifold import spectral_embedding
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import OneClassSVM

from benchmarks.asv.stages import data, quality
from benchmarks.asv.stages.private import DenseKernel, eigen
from benchmarks.peers import limits
from benchmarks.peers.measure import time_call
from cdsk import CDSK, gaussian_gram, gaussian_rows, solve_qp


class Line:
    """Defaults of a line."""

    # Target of the ratio: the peer's time / ours; if at_most, ours / the peer's.
    target = 1.0
    at_most = False
    threaded = True
    measure = ""

    def seconds(self, method, n_threads):
        """Return the time of "ours" or "peer"."""
        return time_call(getattr(self, method), n_threads)

    def quality(self, ours, peer):
        """Return ``measure`` of both results, and a remark."""
        return None, None, ""

    def limit(self, n_threads):
        """Return a lower bound on the time on this machine, or None."""
        return None


class Gram(Line):
    """The Gaussian kernel matrix."""

    peer_name = "rbf_kernel"
    measure = "relative error"

    def __init__(self, n, d, dtype, target, *, quick):
        self.n = n // 10 if quick else n
        self.target, self.dtype = target, dtype
        self.what = f"Gram {np.dtype(dtype)}, n={self.n} d={d}"
        self.X = data.blobs(self.n, d, dtype)[0]
        self.bandwidth = data.bandwidth(self.X)

    def ours(self, n_threads):
        return gaussian_gram(self.X, self.bandwidth, n_threads=n_threads)

    def peer(self, n_threads):
        return rbf_kernel(self.X, gamma=0.5 / self.bandwidth**2)

    def quality(self, ours, peer):
        error = partial(
            quality.kernel_error, A=self.X, B=self.X, bandwidth=self.bandwidth
        )
        return error(ours), error(peer), ""

    def limit(self, n_threads):
        return limits.gram(*self.X.shape, self.dtype, n_threads)


class Rows(Line):
    """Kernel values between new points and the support."""

    peer_name = "rbf_kernel"
    measure = "relative error"
    target = 2.5

    def __init__(self, *, quick):
        n, m, d = (2000, 500, 50) if quick else (20_000, 5000, 50)
        self.what = f"rows for prediction, {n} x {m}, d={d}"
        X = data.blobs(n + m, d)[0]
        self.A, self.B = X[m:], X[:m]
        self.bandwidth = data.bandwidth(X)

    def ours(self, n_threads):
        return gaussian_rows(self.A, self.B, self.bandwidth, n_threads=n_threads)

    def peer(self, n_threads):
        return rbf_kernel(self.A, self.B, gamma=0.5 / self.bandwidth**2)

    def quality(self, ours, peer):
        error = partial(
            quality.kernel_error, A=self.A, B=self.B, bandwidth=self.bandwidth
        )
        return error(ours), error(peer), ""

    def limit(self, n_threads):
        n, m, d = len(self.A), *self.B.shape
        return limits.product(n, m, d) + limits.store(n * m, np.float64, n_threads)


class WeightStep(Line):
    """The QP of the first weight step: ours computes rows of K o G on demand.

    min q'a + a'Qa over sum(a) = 1, 0 <= a <= 1/L is a one-class SVM with the kernel
    2 Q + q1' + 1q' and nu = L/n, in the variables L a. Its gradient is L times ours (up
    to a multiple of 1), and so is its gap. libsvm gets that matrix precomputed, and the
    gap that ours reaches as its tolerance. It is faster here without shrinking.
    """

    peer_name = "OneClassSVM"
    measure = "KKT gap"
    target = 2.0

    def __init__(self, source, *, quick):
        if source == "digits":
            X = data.digits()[0][:: 4 if quick else 1]
        else:
            X = data.blobs(500 if quick else 5000)[0]
        self.what = f"QP, {source}, n={len(X)}"
        kernel = data.kernel(X, 1)
        self.problem = data.weight_problem(kernel)
        self.q, self.upper = self.problem.q, 1.0 / self.problem.penalty
        vectors = self.problem.vectors
        self.Q = self.problem.penalty * kernel.K * (vectors.T @ vectors)
        self.start = data.uniform(kernel.n)
        self.H = 2.0 * self.Q + self.q[:, np.newaxis] + self.q
        # a constant does not change the solution, and small H suits libsvm's float32
        self.H -= self.q.min() + self.q.max()
        self.tol = self.gap(self.ours(1))

    def gap(self, alpha):
        return quality.relative_gap(self.Q, self.q, alpha, self.upper)

    def ours(self, n_threads):
        self.problem.kernel.n_threads = n_threads
        return self.problem.solve(self.start, 1e-4).x

    def peer(self, n_threads):
        tol = self.tol * self.problem.scale * self.problem.penalty
        svm = OneClassSVM(
            kernel="precomputed", nu=data.LAM, tol=tol, shrinking=False, cache_size=2000
        ).fit(self.H)
        alpha = np.zeros(len(self.q))
        alpha[svm.support_] = svm.dual_coef_[0] / self.problem.penalty
        return alpha

    def quality(self, ours, peer):
        value = [self.q @ alpha + alpha @ self.Q @ alpha for alpha in (ours, peer)]
        excess = (value[0] - value[1]) / abs(value[1])
        return self.gap(ours), self.gap(peer), f"objective {excess:+.1e} of the peer's"

    def limit(self, n_threads):
        # two rows of K per step: 4 steps/n times half of K
        steps = self.problem.solve(self.start, 1e-4).n_iter
        return 4 * steps / len(self.q) * limits.read_half(self.problem.kernel.K)


class StoredQP(WeightStep):
    """The same QP with Q in memory, by ``solve_qp``, which also checks its input."""

    def __init__(self, source, *, quick):
        super().__init__(source, quick=quick)
        self.what += ", Q in memory"

    def ours(self, n_threads):
        tol = 1e-4 * self.problem.scale
        return solve_qp(self.Q, self.q, self.upper, tol=tol).x


class SpectralStep(Line):
    """The spectral step; scikit-learn's solver inverts the Laplacian.

    If ``equal`` is False, the tolerance of both is 1e-6. If it is True, the peer has
    its default, machine precision, and ours the residual that the peer reaches.
    """

    peer_name = "spectral_embedding"
    measure = "residual"
    target = 6.0

    def __init__(self, equal, *, quick):
        n = 400 if quick else 4000
        self.kernel = data.kernel(data.blobs(n)[0], 1)
        self.peer_tolerance = "auto" if equal else 1e-6
        self.tolerance = 1e-6
        if equal:
            reached = quality.residual(self.kernel.K, self.peer(1))
            self.tolerance = max(reached, 1e-14)
        goal = "equal residual" if equal else "both to 1e-6"
        self.what = f"spectral step, n={n} c={data.CLUSTERS}, {goal}"

    def ours(self, n_threads):
        # a new kernel, because row sums are cached
        kernel = DenseKernel(self.kernel.K, n_threads)
        with patch.object(eigen, "TOLERANCE", self.tolerance):
            return data.embedding(kernel).solution.vectors

    def peer(self, n_threads):
        vectors = spectral_embedding(
            self.kernel.K,
            n_components=data.CLUSTERS,
            eigen_solver="arpack",
            eigen_tol=self.peer_tolerance,
            drop_first=False,
            random_state=0,
        )
        # it returns D^-1/2 times the eigenvectors
        return vectors.T * np.sqrt(self.kernel.row_sums)

    def quality(self, ours, peer):
        residual = partial(quality.residual, self.kernel.K)
        return residual(ours), residual(peer), ""

    def limit(self, n_threads):
        passes = limits.passes_over_kernel(self.ours, n_threads)
        return passes * limits.read_half(self.kernel.K)


def _fit(X, bandwidth, n_threads):
    """Return a fit with one dense kernel."""
    model = CDSK(
        data.CLUSTERS, bandwidth=bandwidth, random_state=0, n_threads=n_threads
    )
    return model.fit(X)


class Fit(Line):
    """A whole fit with all iterations, compared with one spectral clustering."""

    peer_name = "SpectralClustering"
    measure = "ARI"
    target = 3.0

    def __init__(self, source, *, quick):
        if source == "digits":
            X, self.y = (array[:: 4 if quick else 1] for array in data.digits())
        else:
            X, self.y = data.blobs(500 if quick else 5000)
        self.X, self.bandwidth = np.ascontiguousarray(X), data.bandwidth(X)
        n, d = X.shape
        self.what = f"fit, {source}, n={n} d={d} c={data.CLUSTERS}"

    def ours(self, n_threads):
        return _fit(self.X, self.bandwidth, n_threads)

    def peer(self, n_threads):
        gamma = 0.5 / self.bandwidth**2
        return SpectralClustering(data.CLUSTERS, gamma=gamma, random_state=0).fit(
            self.X
        )

    def quality(self, ours, peer):
        found = [adjusted_rand_score(self.y, m.labels_) for m in (ours, peer)]
        alike = adjusted_rand_score(ours.labels_, peer.labels_)
        return *found, f"{ours.n_iter_} iterations; ARI of ours and peer {alike:.2f}"

    def limit(self, n_threads):
        passes = limits.passes_over_kernel(self.ours, n_threads)
        half = limits.read_half(np.ones((len(self.X), len(self.X))))
        return limits.gram(*self.X.shape, np.float64, n_threads) + passes * half


class Predict(Line):
    """Classification of new points."""

    peer_name = "rbf_kernel, matmul"
    measure = "error of log votes"
    target = 2.5

    # 20 MB of kernel values at a time, the fastest choice between 50 and 20 000 rows
    chunk = 500

    def __init__(self, *, quick):
        n, m = (4000, 500) if quick else (200_000, 5000)
        X = data.blobs(n + m)[0]
        self.X, self.support = X[m:], X[:m]
        self.bandwidth = data.bandwidth(X)
        # no iterations: uniform weights, and every point is in the support
        self.model = CDSK(
            data.CLUSTERS, bandwidth=self.bandwidth, max_iter=0, random_state=0
        ).fit(self.support)
        self.votes = np.eye(data.CLUSTERS)[self.model.labels_] / m
        self.what = f"predict {n} points, {m} support, d={X.shape[1]}"

    def ours(self, n_threads):
        return self.model.set_params(n_threads=n_threads).predict(self.X)

    def peer(self, n_threads):
        return np.argmax(self._peer_votes(self.X), axis=1)

    def _peer_votes(self, X):
        gamma = 0.5 / self.bandwidth**2
        return np.concatenate(
            [
                rbf_kernel(X[i : i + self.chunk], self.support, gamma=gamma)
                @ self.votes
                for i in range(0, len(X), self.chunk)
            ]
        )

    def quality(self, ours, peer):
        rows = np.arange(100)
        error = partial(
            quality.log_votes_error,
            rows=rows,
            A=self.X,
            B=self.support,
            labels=self.model.labels_,
            bandwidth=self.bandwidth,
        )
        few = self.X[rows]
        errors = (
            error(self.model.decision_function(few)),
            error(np.log(self._peer_votes(few))),
        )
        return *errors, f"{np.mean(ours == peer):.4%} of the labels agree"

    def limit(self, n_threads):
        # kernel values can stay in the cache
        parts = len(self.X) // self.chunk
        return parts * limits.product(self.chunk, *self.support.shape)


class Import(Line):
    """Import in a new interpreter, which measures the time itself.

    ``cdsk`` alone imports almost nothing; ``cdsk._cdsk`` contains CDSK.
    """

    peer_name = "import sklearn.cluster"
    at_most = True
    threaded = False

    def __init__(self, what, module, target, *, quick):
        self.what, self.module, self.target = what, module, target

    def seconds(self, method, n_threads):
        module = {"ours": self.module, "peer": "sklearn.cluster"}[method]
        code = (
            "from time import perf_counter as now; began = now()\n"
            f"import {module}\nprint(now() - began)"
        )
        return float(subprocess.check_output([sys.executable, "-c", code]))


class FitMemory(Line):
    """Peak memory of a fit; the kernel matrix is its only n x n array."""

    peer_name = "n² x itemsize"
    at_most = True
    target = 1.35
    threaded = False

    def __init__(self, dtype, *, quick):
        self.n = 800 if quick else 8000
        self.X = data.blobs(self.n, dtype=dtype)[0]
        self.bandwidth = data.bandwidth(self.X)
        self.matrix_bytes = self.n**2 * self.X.itemsize
        self.what = f"peak memory of a fit, {np.dtype(dtype)}, n={self.n}"

    def ours(self, n_threads):
        return _fit(self.X, self.bandwidth, n_threads)


class DefaultFit(Line):
    """The default fit (six kernels), compared with one spectral clustering."""

    peer_name = "SpectralClustering"
    measure = "ARI"
    at_most = True
    target = 3.0

    def __init__(self, *, quick):
        self.X, self.y = data.blobs(400 if quick else 2000)
        self.gamma = 0.5 / data.bandwidth(self.X) ** 2
        n, d = self.X.shape
        self.what = f"default fit, six kernels, n={n} d={d} c={data.CLUSTERS}"

    def ours(self, n_threads):
        model = CDSK(data.CLUSTERS, random_state=0, n_threads=n_threads)
        return model.fit(self.X)

    def peer(self, n_threads):
        peer = SpectralClustering(data.CLUSTERS, gamma=self.gamma, random_state=0)
        return peer.fit(self.X)

    def quality(self, ours, peer):
        found = [adjusted_rand_score(self.y, m.labels_) for m in (ours, peer)]
        return *found, ""


LINES = {
    "gram-f64-d50": partial(Gram, 8000, 50, np.float64, 3.0),
    "gram-f64-d784": partial(Gram, 6000, 784, np.float64, 2.5),
    "gram-f32-d50": partial(Gram, 8000, 50, np.float32, 3.0),
    "gram-f32-d784": partial(Gram, 6000, 784, np.float32, 2.5),
    "rows": Rows,
    "qp-digits": partial(WeightStep, "digits"),
    "qp-blobs": partial(WeightStep, "blobs"),
    "qp-stored": partial(StoredQP, "blobs"),
    "spectral": partial(SpectralStep, False),
    "spectral-equal": partial(SpectralStep, True),
    "fit-blobs": partial(Fit, "blobs"),
    "fit-digits": partial(Fit, "digits"),
    "fit-default": DefaultFit,
    "predict": Predict,
    "import": partial(Import, "from cdsk import CDSK", "cdsk._cdsk", 1.1),
    "import-bare": partial(Import, "import cdsk", "cdsk", 0.1),
    "memory-f64": partial(FitMemory, np.float64),
    "memory-f32": partial(FitMemory, np.float32),
}
