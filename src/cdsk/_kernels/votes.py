# SPDX-License-Identifier: BSD-3-Clause
"""New points -> weighted votes of the support, the classifier of the paper.

    h(x, y) = sum_{i: y_i = y} alpha_i K(x, x_i),     predict = argmax_y h(x, y)

Only points with alpha_i > 0 count. Gaussian votes are computed as logarithms, so that
far from all data the nearest support decides instead of 0/0.
"""

import numpy as np
from scipy import sparse

from cdsk import _kernel
from cdsk._block import inner
from cdsk._kernels.neighbours import Neighbours, PointSearch
from cdsk._validation import check_kernel_values, in_one_dtype

# Largest distance, in bandwidths and in the unit of the data, of which the square is an
# ordinary number with room for sums.
_FARTHEST = 1e150

# Kernel values made at a time: 64 MiB of them.
_CHUNK_VALUES = 2**23


def check_reach(X, bandwidth):
    """Refuse points so far away that the exponent of a Gaussian overflows.

    ``bandwidth`` is the smallest one.
    """
    most = _FARTHEST * min(float(bandwidth), 1.0) / np.sqrt(X.shape[1])
    size = np.abs(X).max(axis=1, initial=0.0)
    if (size > most).any():
        row = int(np.argmax(size > most))
        raise ValueError(
            f"X must hold coordinates of magnitude {most:.1e} at most, so that squared "
            "distances in units of the bandwidth are ordinary numbers; got "
            f"{float(size[row]):.1e} at row {row}."
        )


class GaussianVotes:
    """Log votes under a Gaussian kernel; one bandwidth, or one per training point.

    ``factor`` gives the bandwidth of new points as a part of their scale; None means
    that all points have the same bandwidth.
    """

    def __init__(self, X, labels, weights, bandwidth, factor, n_clusters, n_threads=1):
        self.bandwidth = bandwidth
        self.factor = factor
        # local bandwidths of new points need all the old ones
        self.training = None if factor is None else Neighbours(X, n_threads=n_threads)
        self.n_clusters = n_clusters
        # the support, sorted by cluster
        support = np.flatnonzero(weights > 0)
        support = support[np.argsort(labels[support], kind="stable")]
        self.points = X[support]
        self.bandwidths = np.broadcast_to(bandwidth, len(X))[support]
        self.weights = weights[support]
        self.offsets = np.searchsorted(labels[support], np.arange(n_clusters + 1))

    def log_votes(self, X, n_threads):
        check_reach(X, self.bandwidths.min())
        votes = np.empty((len(X), self.n_clusters))
        if self.training is None:
            bandwidth = np.full(len(X), self.bandwidth)
        else:
            bandwidth = self.factor * self.training.scales_of(X, n_threads)
        new, points = in_one_dtype(X, self.points)
        _kernel.gaussian_log_votes(
            new,
            points,
            bandwidth,
            self.bandwidths,
            self.weights,
            self.offsets,
            votes,
            n_threads,
        )
        return votes

    def log_normaliser(self, n_features):
        if np.ndim(self.bandwidth):
            return 0.0
        return -n_features * np.log(np.sqrt(2 * np.pi) * self.bandwidth)


class NeighbourVotes:
    """Log votes under a Gaussian kernel truncated to neighbours.

    The k nearest training points that carry weight vote, so that every point has a
    vote, however far from the others it is. ``factor`` gives the bandwidth of new
    points as a part of their scale; None means that all points have the same bandwidth.
    """

    def __init__(self, neighbours, labels, weights, bandwidth, factor, n_clusters):
        support = np.flatnonzero(weights)
        self.neighbours = neighbours
        self.factor = factor
        self.n_clusters = n_clusters
        self.search = PointSearch(neighbours.X[support])
        self.labels = labels[support]
        self.log_weights = np.log(weights[support])
        self.bandwidth = np.broadcast_to(bandwidth, len(weights))[support]

    def log_votes(self, X, n_threads):
        check_reach(X, self.bandwidth.min())
        k = min(self.neighbours.k, len(self.labels))
        bandwidth = np.full(len(X), self.bandwidth[0])
        if self.factor is not None:
            bandwidth = self.factor * self.neighbours.scales_of(X, n_threads)
        indices, distances = self.search.nearest_to(X, k, n_threads)
        exponents = self.log_weights[indices] - distances**2 / (
            2.0 * bandwidth[:, np.newaxis] * self.bandwidth[indices]
        )
        peak = exponents.max(axis=1, keepdims=True)
        votes = np.zeros((len(X), self.n_clusters))
        rows = np.arange(len(X))[:, np.newaxis]
        np.add.at(votes, (rows, self.labels[indices]), np.exp(exponents - peak))
        with np.errstate(divide="ignore"):
            return np.log(votes) + peak

    def log_normaliser(self, n_features):
        return 0.0  # the integral of a truncated kernel is not known


class GraphVotes:
    """The same, where new points find their neighbours as the old ones did.

    Of the neighbours in their row of the graph those that carry weight vote.
    """

    def __init__(self, neighbours, labels, weights, bandwidth, factor, n_clusters):
        self.neighbours = neighbours
        self.labels = labels
        self.factor = factor
        self.n_clusters = n_clusters
        with np.errstate(divide="ignore"):
            self.log_weights = np.log(weights)
        self.bandwidth = np.broadcast_to(bandwidth, len(weights))

    def log_votes(self, X, n_threads):
        graph = self.neighbours.graph_of(X)
        bandwidth = np.full(graph.shape[0], self.bandwidth[0])
        if self.factor is not None:
            bandwidth = self.factor * self.neighbours.scales_in(graph)
        row = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
        exponents = self.log_weights[graph.indices] - graph.data**2 / (
            2.0 * bandwidth[row] * self.bandwidth[graph.indices]
        )
        peak = np.full(graph.shape[0], -np.inf)
        np.maximum.at(peak, row, exponents)
        peak[np.isneginf(peak)] = 0.0  # nobody votes
        votes = np.zeros((graph.shape[0], self.n_clusters))
        values = np.exp(exponents - peak[row])
        np.add.at(votes, (row, self.labels[graph.indices]), values)
        with np.errstate(divide="ignore"):
            return np.log(votes) + peak[:, np.newaxis]

    def log_normaliser(self, n_features):
        return 0.0  # the integral of a truncated kernel is not known


class KernelVotes:
    """Log votes from kernel values.

    ``kernel(A, B)`` gives the values between two sets of points; None means that new
    points arrive as rows of kernel values to all training points.
    """

    def __init__(self, kernel, X, labels, weights, n_clusters):
        self.kernel = kernel
        self.support = np.flatnonzero(weights)
        self.points = None if kernel is None else X[self.support]
        members = labels[self.support] == np.arange(n_clusters)[:, np.newaxis]
        self.votes = np.where(members, weights[self.support], 0.0)

    def log_votes(self, X, n_threads):
        if sparse.issparse(X):
            return self._log_votes(X, n_threads)
        step = max(1, _CHUNK_VALUES // len(self.support))
        chunks = [X[i : i + step] for i in range(0, len(X), step)]
        return np.concatenate([self._log_votes(chunk, n_threads) for chunk in chunks])

    def _log_votes(self, X, n_threads):
        if self.kernel is None:
            values = X[:, self.support]
        else:
            values = self.kernel(X, self.points)
        check_kernel_values(values, "The kernel")
        if sparse.issparse(values):
            return self._sparse_log_votes(values)
        values = np.ascontiguousarray(values, dtype=np.float64)
        # exact, and keeps the digits of values whose unit is extreme
        _, exponents = np.frexp(values.max(axis=1, keepdims=True))
        votes = inner(np.ldexp(values, -exponents), self.votes, n_threads)
        with np.errstate(divide="ignore"):
            return np.log(votes) + exponents * np.log(2.0)

    def _sparse_log_votes(self, values):
        values = sparse.csr_array(values, dtype=np.float64)
        _, exponents = np.frexp(values.max(axis=1).toarray())
        each = np.repeat(exponents, np.diff(values.indptr))
        parts = np.ldexp(values.data, -each), values.indices, values.indptr
        votes = sparse.csr_array(parts, shape=values.shape) @ self.votes.T
        with np.errstate(divide="ignore"):
            return np.log(votes) + exponents[:, np.newaxis] * np.log(2.0)

    def log_normaliser(self, n_features):
        return 0.0  # nothing is known of the kernel's integral
