# SPDX-License-Identifier: BSD-3-Clause
"""New points -> weighted votes of the support, the classifier of the paper.

    h(x, y) = sum_{i: y_i = y} alpha_i K(x, x_i),     predict = argmax_y h(x, y)

Only points with alpha_i > 0 count. They also say what a new point is like: the mean of
what is known of them, each counted as its vote is.

Gaussian votes are computed as logarithms, so that
far from all data the nearest support decides instead of 0/0.
"""

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from scipy.special import softmax

from cdsk import _kernel
from cdsk._block import inner
from cdsk._kernels.neighbours import Neighbours, PointSearch
from cdsk._kernels.sparse_rows import largest_of_rows
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
    if sparse.issparse(X):
        size = largest_of_rows(X)
    else:
        size = np.abs(X).max(axis=1, initial=0.0)
    if (size > most).any():
        row = int(np.argmax(size > most))
        raise ValueError(
            f"X must hold coordinates of magnitude {most:.1e} at most, so that squared "
            "distances in units of the bandwidth are ordinary numbers; got "
            f"{float(size[row]):.1e} at row {row}."
        )


def _chunks(n, n_values):
    """Slices of n rows for which so many kernel values each are made at a time."""
    step = max(1, _CHUNK_VALUES // n_values)
    return [slice(i, i + step) for i in range(0, n, step)]


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
        self.support = support
        self.points = X[support]
        self.bandwidths = np.broadcast_to(bandwidth, len(X))[support]
        self.weights = weights[support]
        self.offsets = np.searchsorted(labels[support], np.arange(n_clusters + 1))

    def log_votes(self, X, n_threads):
        check_reach(X, self.bandwidths.min())
        votes = np.empty((len(X), self.n_clusters))
        new, points = in_one_dtype(X, self.points)
        _kernel.gaussian_log_votes(
            new,
            points,
            self._bandwidth_of(X, n_threads),
            self.bandwidths,
            self.weights,
            self.offsets,
            votes,
            n_threads,
        )
        return votes

    def mean(self, X, values, n_threads):
        check_reach(X, self.bandwidths.min())
        bandwidth = self._bandwidth_of(X, n_threads)[:, np.newaxis]
        values = np.ascontiguousarray(values[self.support].T)
        means = np.empty((len(X), len(values)))
        for part in _chunks(len(X), len(self.support)):
            squares = cdist(X[part], self.points, "sqeuclidean")
            exponents = squares / (-2.0 * bandwidth[part] * self.bandwidths)
            exponents += np.log(self.weights)
            shares = softmax(exponents, axis=1)
            means[part] = inner(shares, values, n_threads)
        return means

    def _bandwidth_of(self, X, n_threads):
        if self.training is None:
            return np.full(len(X), self.bandwidth)
        return self.factor * self.training.scales_of(X, n_threads)

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
        support = self.support = np.flatnonzero(weights)
        self.neighbours = neighbours
        self.factor = factor
        self.n_clusters = n_clusters
        self.search = PointSearch(neighbours.X[support])
        self.labels = labels[support]
        self.log_weights = np.log(weights[support])
        self.bandwidth = np.broadcast_to(bandwidth, len(weights))[support]

    def log_votes(self, X, n_threads):
        indices, weights, peak = self._voters(X, n_threads)
        votes = np.zeros((len(weights), self.n_clusters))
        rows = np.arange(len(weights))[:, np.newaxis]
        np.add.at(votes, (rows, self.labels[indices]), weights)
        with np.errstate(divide="ignore"):
            return np.log(votes) + peak

    def mean(self, X, values, n_threads):
        indices, weights, _ = self._voters(X, n_threads)
        weights /= weights.sum(axis=1, keepdims=True)
        means = np.zeros((len(weights), values.shape[1]))
        for neighbour, weight in zip(indices.T, weights.T, strict=True):
            means += weight[:, np.newaxis] * values[self.support[neighbour]]
        return means

    def _voters(self, X, n_threads):
        """Places in the support and votes (m, k), these over exp(peak) (m, 1)."""
        check_reach(X, self.bandwidth.min())
        k = min(self.neighbours.k, len(self.labels))
        bandwidth = np.full(X.shape[0], self.bandwidth[0])
        if self.factor is not None:
            bandwidth = self.factor * self.neighbours.scales_of(X, n_threads)
        indices, distances = self.search.nearest_to(X, k, n_threads)
        exponents = self.log_weights[indices] - distances**2 / (
            2.0 * bandwidth[:, np.newaxis] * self.bandwidth[indices]
        )
        peak = exponents.max(axis=1, keepdims=True)
        return indices, np.exp(exponents - peak), peak

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
        voters, peak = self._voters(X)
        members = self.labels[:, np.newaxis] == np.arange(self.n_clusters)
        with np.errstate(divide="ignore"):
            return np.log(voters @ members.astype(np.float64)) + peak

    def mean(self, X, values, n_threads):
        voters, _ = self._voters(X)
        return _over(voters @ values, voters.sum(axis=1))

    def _voters(self, X):
        """Votes as a sparse matrix (m, n), those of a row over exp(peak) (m, 1)."""
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
        parts = np.exp(exponents - peak[row]), graph.indices, graph.indptr
        return sparse.csr_array(parts, shape=graph.shape), peak[:, np.newaxis]

    def log_normaliser(self, n_features):
        return 0.0  # the integral of a truncated kernel is not known


def _over(sums, totals):
    """Sums (m, q) over totals (m,), 0 where these are."""
    return sums / np.where(totals > 0, totals, 1.0)[:, np.newaxis]


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
        votes, exponents = self._sums(X, self.votes, n_threads)
        with np.errstate(divide="ignore"):
            return np.log(votes) + exponents * np.log(2.0)

    def mean(self, X, values, n_threads):
        weights = self.votes.sum(axis=0)
        columns = np.vstack([weights * values[self.support].T, weights])
        sums, _ = self._sums(X, np.ascontiguousarray(columns), n_threads)
        return _over(sums[:, :-1], sums[:, -1])

    def _sums(self, X, columns, n_threads):
        """Kernel values times each of columns (q, s), and exponents (m, 1) of 2.

        The products (m, q) are to be multiplied by these powers.
        """
        if sparse.issparse(X):
            return self._sums_of_part(X, columns, n_threads)
        parts = [
            self._sums_of_part(X[part], columns, n_threads)
            for part in _chunks(len(X), len(self.support))
        ]
        sums, exponents = zip(*parts, strict=True)
        return np.concatenate(sums), np.concatenate(exponents)

    def _sums_of_part(self, X, columns, n_threads):
        if self.kernel is None:
            values = X[:, self.support]
        else:
            values = self.kernel(X, self.points)
        check_kernel_values(values, "The kernel")
        if sparse.issparse(values):
            return self._sparse_sums(values, columns)
        values = np.ascontiguousarray(values, dtype=np.float64)
        # exact, and keeps the digits of values whose unit is extreme
        _, exponents = np.frexp(values.max(axis=1, keepdims=True))
        return inner(np.ldexp(values, -exponents), columns, n_threads), exponents

    def _sparse_sums(self, values, columns):
        values = sparse.csr_array(values, dtype=np.float64)
        _, exponents = np.frexp(values.max(axis=1).toarray())
        each = np.repeat(exponents, np.diff(values.indptr))
        parts = np.ldexp(values.data, -each), values.indices, values.indptr
        sums = sparse.csr_array(parts, shape=values.shape) @ columns.T
        return sums, exponents[:, np.newaxis]

    def log_normaliser(self, n_features):
        return 0.0  # nothing is known of the kernel's integral
