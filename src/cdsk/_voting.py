# SPDX-License-Identifier: BSD-3-Clause
"""Votes of the support: labels, margins, probabilities, noise (tests/test_votes.py).

The classifier of the paper is a weighted vote of the support, the points of weight
alpha_i > 0,

    h(x, y) = sum_{i: y_i = y} alpha_i K(x, x_i),     predict(x) = argmax_y h(x, y).

Votes are logarithms, so that far from all data the nearest support decides instead of
0/0. The same votes average any values of the training points for a new point.

*Leave-one-out votes* h(i, y) = sum_{j != i, y_j = y} alpha_j K_ij of a training point
give

    margin_i = [h(i, y_i) - max_{y != y_i} h(i, y)] / sum_y h(i, y)
    typicality_i = sum_y h(i, y), in units of its median:

a point between two clusters has a small margin, one far from all a small typicality.

*Probabilities* are p(y | x) = (1 - e) h(x, y)^b / sum_z h(x, z)^b + e / c, with an
exponent b (temperature scaling: Guo et al., 2017) and the share e of points of which
votes say nothing. Both are fitted to leave-one-out votes: the largest probability
should be the share of points whose largest vote is for their label. The likelihood
counts one more point of either kind (Platt, 2000), and log b has the standard normal
prior, as any large b is as likely as another where all votes agree.

*Noise* are points whose distance to the 12th neighbor exceeds the 1 - rate quantile
expected of a Gaussian cluster in the plane with as many points; relative to what is
below the median, the tail of this law is longer than in more dimensions. Per cluster

    threshold = mid + (q3 - q2) / (q2 - q1) (mid - low)

with the 0.1 and 0.5 quantiles low, mid of the log distances, and q1, q2, q3 of the law,
q3 its 1 - rate quantile. A quantile of the data in place of q3 would mark the same
share of any data, noise or not. As noise shifts low and mid, they are those of the
points below the threshold, which starts at the median and increases until it passes no
further points: up to half of a cluster may be noise. docs/notes/2026-11-17-noise.md has
comparisons.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from scipy.special import expit, logsumexp, softmax, xlog1py, xlogy
from sklearn.utils import gen_batches

from cdsk import _kernel
from cdsk._neighbors import NeighborIndex, Neighbors, PrecomputedNeighbors, entry_rows
from cdsk._operators.base import Array, Kernel, Votes
from cdsk._products import inner
from cdsk._validation import as_common_dtype, check_kernel_values

Labels = NDArray[np.int64]

# Largest distance, in bandwidths and in the unit of the data, whose square is a finite
# number with room for sums.
_MAX_DISTANCE = 1e150

# Kernel values computed at a time: 64 MiB.
_CHUNK_VALUES = 2**23

# Largest logarithm of the exponent of a calibration: exp does not overflow.
_MAX_LOG_EXPONENT = 30.0

# The neighbor whose distance decides on noise, and the quantiles low and mid.
NOISE_NEIGHBOR = 12
_LOW, _MID = 0.1, 0.5

# Grid of the law of distances: half squared radii and their step, number of distances,
# fewest points.
_MAX_HALF_SQUARE, _STEP, _N_DISTANCES, _MIN_POINTS = 40.0, 0.1, 300, 16

# mid - low is an estimate, and one that is too small marks many points: it is enlarged
# by a fraction _SPREAD_MARGIN / sqrt(n), n of all clusters, and for small ones by
# (12 / n)^2. So Gaussian clusters of 25 to 5000 points lose 0.7 to 2.5 % at a rate of
# 0.01.
_SPREAD_MARGIN = 1.5

_TINY = np.finfo(float).tiny


# Votes for new points.


def check_coordinates(X: Any, bandwidth: float) -> None:
    """Raise ValueError if the exponent of a Gaussian would overflow.

    ``bandwidth`` is the smallest one.
    """
    largest = _MAX_DISTANCE * min(float(bandwidth), 1.0) / np.sqrt(X.shape[1])
    size = abs(X).max(axis=1)
    size = size.toarray().ravel() if sparse.issparse(X) else size
    if (size > largest).any():
        row = int(np.argmax(size > largest))
        raise ValueError(
            f"X must hold coordinates of magnitude at most {largest:.1e}, so that "
            "squared distances in units of the bandwidth do not overflow; got "
            f"{float(size[row]):.1e} at row {row}."
        )


def _divide_or_zero(sums: Array, totals: Array) -> Array:
    """Return sums (m, q) over totals (m,), 0 where these are 0."""
    return np.asarray(sums / np.where(totals > 0, totals, 1.0)[:, np.newaxis])


class GaussianVotes(Votes):
    """Votes under a Gaussian kernel with one bandwidth, or one per training point.

    ``factor`` is the bandwidth of new points in units of their local scale; None means
    that all points have the same bandwidth.
    """

    def __init__(
        self,
        X: NDArray[Any],
        labels: Labels,
        weights: Array,
        bandwidth: float | Array,
        factor: float | None,
        n_clusters: int,
        n_threads: int = 1,
    ) -> None:
        self.bandwidth, self.factor, self.n_clusters = bandwidth, factor, n_clusters
        # local bandwidths of new points need all training points
        self.neighbors = None if factor is None else Neighbors(X, n_threads=n_threads)
        # the support, sorted by cluster
        support = np.flatnonzero(weights > 0)
        support = support[np.argsort(labels[support], kind="stable")]
        self.support, self.points, self.weights = support, X[support], weights[support]
        self.bandwidths = np.broadcast_to(bandwidth, len(X))[support]
        self.offsets = np.searchsorted(labels[support], np.arange(n_clusters + 1))

    def log_votes(self, X: NDArray[Any], n_threads: int) -> Array:
        bandwidths = self._new_bandwidths(X, n_threads)
        votes = np.empty((len(X), self.n_clusters))
        new, points = as_common_dtype(X, self.points)
        _kernel.gaussian_log_votes(
            new,
            points,
            bandwidths,
            self.bandwidths,
            self.weights,
            self.offsets,
            votes,
            n_threads,
        )
        return votes

    def average(self, X: NDArray[Any], values: Array, n_threads: int) -> Array:
        bandwidth = self._new_bandwidths(X, n_threads)[:, np.newaxis]
        values = np.ascontiguousarray(values[self.support].T)
        means = np.empty((len(X), len(values)))
        for rows in gen_batches(len(X), max(1, _CHUNK_VALUES // len(self.support))):
            squares = cdist(X[rows], self.points, "sqeuclidean")
            exponents = squares / (-2.0 * bandwidth[rows] * self.bandwidths)
            exponents += np.log(self.weights)
            means[rows] = inner(softmax(exponents, axis=1), values, n_threads)
        return means

    def _new_bandwidths(self, X: NDArray[Any], n_threads: int) -> Array:
        check_coordinates(X, self.bandwidths.min())
        if self.neighbors is None or self.factor is None:
            return np.full(len(X), self.bandwidth)
        return self.factor * self.neighbors.local_scales(X, n_threads)

    def log_normalizer(self, n_features: int) -> float:
        if np.ndim(self.bandwidth):
            return 0.0
        return float(-n_features * np.log(np.sqrt(2 * np.pi) * self.bandwidth))


class NeighborVotes(Votes):
    """Votes under a Gaussian kernel truncated to neighbors.

    The k nearest points of the support vote, so that every point has a vote, however
    far from the others it is; of a given graph, those neighbors that are in the
    support. ``factor`` is as in ``GaussianVotes``.
    """

    def __init__(
        self,
        neighbors: Neighbors | PrecomputedNeighbors,
        labels: Labels,
        weights: Array,
        bandwidth: float | Array,
        factor: float | None,
        n_clusters: int,
    ) -> None:
        self.neighbors: Any = neighbors
        self.factor, self.n_clusters = factor, n_clusters
        self.index: NeighborIndex | None = None
        self.support = np.arange(len(weights))
        if isinstance(neighbors, Neighbors):
            self.support = np.flatnonzero(weights)
            self.index = NeighborIndex(neighbors.X[self.support])
        self.labels = labels[self.support]
        with np.errstate(divide="ignore"):
            self.log_weights = np.log(weights[self.support])
        self.bandwidth = np.broadcast_to(bandwidth, len(weights))[self.support]

    def log_votes(self, X: Any, n_threads: int) -> Array:
        votes, peak = self._neighbor_votes(X, n_threads)
        shape = len(peak), self.n_clusters
        places = entry_rows(votes) * self.n_clusters + self.labels[votes.indices]
        sums = np.bincount(places, votes.data, math.prod(shape)).reshape(shape)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(sums) + peak)

    def average(self, X: Any, values: Array, n_threads: int) -> Array:
        votes, _ = self._neighbor_votes(X, n_threads)
        if self.index is None:
            return _divide_or_zero(votes @ values, votes.sum(axis=1))
        shares = votes.data.reshape(votes.shape[0], -1)  # k votes for every point
        shares /= shares.sum(axis=1, keepdims=True)
        return np.asarray(votes @ values[self.support])

    def _neighbor_votes(self, X: Any, n_threads: int) -> tuple[sparse.csr_array, Array]:
        """Return votes (m, n), those of a row over exp(peak), and peak (m, 1)."""
        if self.index is None:
            graph = new = self.neighbors.kneighbors_graph(X)
        else:
            check_coordinates(X, self.bandwidth.min())
            new, n = X, len(self.labels)
            k = min(self.neighbors.k, n)
            distances, indices = self.index.kneighbors(X, k, n_threads=n_threads)
            starts = np.arange(0, indices.size + 1, k)
            found = distances.ravel(), indices.ravel(), starts
            graph = sparse.csr_array(found, shape=(len(indices), n))
        bandwidth = np.full(graph.shape[0], self.bandwidth[0])
        if self.factor is not None:
            bandwidth = self.factor * self.neighbors.local_scales(new, n_threads)
        row = entry_rows(graph)
        exponents = self.log_weights[graph.indices] - graph.data**2 / (
            2.0 * bandwidth[row] * self.bandwidth[graph.indices]
        )
        peak = np.full(graph.shape[0], -np.inf)
        np.maximum.at(peak, row, exponents)
        peak[np.isneginf(peak)] = 0.0  # no votes
        parts = np.exp(exponents - peak[row]), graph.indices, graph.indptr
        return sparse.csr_array(parts, shape=graph.shape), peak[:, np.newaxis]


class KernelVotes(Votes):
    """Votes from kernel values.

    ``kernel(A, B)`` returns the values between two sets of points; None means that new
    points are rows of kernel values to all training points.
    """

    def __init__(
        self, kernel: Any, X: Any, labels: Labels, weights: Array, n_clusters: int
    ) -> None:
        self.kernel = kernel
        self.support = np.flatnonzero(weights)
        self.points = None if kernel is None else X[self.support]
        members = labels[self.support] == np.arange(n_clusters)[:, np.newaxis]
        self.votes = np.where(members, weights[self.support], 0.0)

    def log_votes(self, X: Any, n_threads: int) -> Array:
        votes, exponents = self._products(X, self.votes, n_threads)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(votes) + exponents * np.log(2.0))

    def average(self, X: Any, values: Array, n_threads: int) -> Array:
        weights = self.votes.sum(axis=0)
        columns = np.vstack([weights * values[self.support].T, weights])
        sums, _ = self._products(X, np.ascontiguousarray(columns), n_threads)
        return _divide_or_zero(sums[:, :-1], sums[:, -1])

    def _products(
        self, X: Any, columns: Array, n_threads: int
    ) -> tuple[Array, NDArray[np.intc]]:
        """Return kernel values times columns (q, s), over 2^exponents.

        The products are (m, q), the exponents (m, 1).
        """
        m, step = X.shape[0], max(1, _CHUNK_VALUES // len(self.support))
        products = np.empty((m, len(columns)))
        exponents = np.empty((m, 1), dtype=np.intc)
        for rows in gen_batches(m, step):
            values = X[rows]
            if self.kernel is None:
                values = values[:, self.support]
            else:
                values = self.kernel(values, self.points)
            check_kernel_values(values, "The kernel")
            # powers of 2 are exact and keep the digits of values whose unit is extreme
            if sparse.issparse(values):
                values = sparse.csr_array(values, dtype=np.float64)
                _, exponent = np.frexp(values.max(axis=1).toarray())
                values.data = np.ldexp(values.data, -exponent[entry_rows(values)])
                products[rows] = values @ columns.T
            else:
                values = np.ascontiguousarray(values, dtype=np.float64)
                _, exponent = np.frexp(values.max(axis=1))
                values = np.ldexp(values, -exponent[:, np.newaxis])
                products[rows] = inner(values, columns, n_threads)
            exponents[rows, 0] = exponent
        return products, exponents


# Margins and typicality.


def leave_one_out_votes(
    kernel: Kernel,
    labels: Labels,
    weights: Array,
    multiplicity: Array | None = None,
    n_clusters: int | None = None,
) -> Array:
    """Return the votes h (c, n) of the other points for every training point.

    c is ``n_clusters``, or the number of clusters in ``labels``. With a multiplicity m
    the kernel is K_ij m_i m_j, and all copies of a point but one vote for it.
    """
    clusters = np.arange(n_clusters or labels.max() + 1)
    members = (labels == clusters[:, np.newaxis]) * weights
    # those of an approximate kernel may be slightly negative
    votes: Array = np.maximum(kernel.product(np.ascontiguousarray(members)), 0.0)
    if multiplicity is not None:
        other_copies = np.maximum(1.0 - 1.0 / multiplicity, 0.0)
        copy_votes = other_copies * weights * kernel.duplicate_similarity
        votes[labels, np.arange(len(labels))] += copy_votes
        votes /= multiplicity
    return votes


def compute_margins(
    votes: Array, labels: Labels, multiplicity: Array | None = None
) -> tuple[Array, Array, float]:
    """Return margins and typicality (n,) by ``votes`` (c, n), and the latter's unit.

    Margins are between -1 and 1, and 0 where no other point votes.
    """
    points = np.arange(len(labels))
    total = votes.sum(axis=0)
    own = votes[labels, points]
    votes = votes.copy()
    votes[labels, points] = 0.0
    margins = (own - votes.max(axis=0)) / np.where(total > 0, total, 1.0)
    if multiplicity is None:
        unit = float(np.median(total))
    else:
        unit = weighted_median(total, multiplicity)
    # more than half of the points may have no votes
    unit = unit or float(total.max()) or 1.0
    return margins, total / unit, unit


def compute_new_margins(log_votes: Array, log_unit: float) -> tuple[Array, Array]:
    """Return margins and typicality (m,) of new points by their log votes (m, c)."""
    total = logsumexp(log_votes, axis=1)
    ordered = np.sort(log_votes, axis=1)[:, ::-1]
    shares = np.exp(ordered - np.where(np.isneginf(total), 0.0, total)[:, np.newaxis])
    margins = shares[:, 0] - (shares[:, 1] if shares.shape[1] > 1 else 0.0)
    return margins, np.exp(total - log_unit)


def weighted_median(values: Array, multiplicity: Array) -> float:
    """Return the median of values that are repeated ``multiplicity`` times."""
    order = np.argsort(values)
    order = order[multiplicity[order] > 0]
    cumulative = np.cumsum(multiplicity[order])
    # where a half ends between two values it is their mean
    half = 0.5 * cumulative[-1]
    middle = [np.searchsorted(cumulative, half, side) for side in ("left", "right")]
    return float(np.mean(values[order[middle]]))


# Probabilities.


@dataclass(frozen=True)
class Calibration:
    """Map from votes to probabilities.

    Attributes
    ----------
    exponent : float
        Exponent of the votes.
    error : float
        Fraction of uninformative votes.
    """

    exponent: float
    error: float

    def predict_proba(self, log_votes: Array, shares: Array) -> Array:
        """Return probabilities (m, c), ``shares`` (c,) for rows without votes."""
        has_no_votes = np.isneginf(log_votes.max(axis=1))
        if has_no_votes.any():
            log_votes = np.where(has_no_votes[:, np.newaxis], 0.0, log_votes)
        proba: Array = (1.0 - self.error) * softmax(self.exponent * log_votes, axis=1)
        is_used = shares > 0
        proba += self.error * is_used / np.count_nonzero(is_used)
        proba[has_no_votes] = shares
        return proba


@dataclass
class LeaveOneOutVotes:
    """Leave-one-out votes of a fit, and the calibration fitted to them.

    ``log_votes`` (n, c), ``labels`` (n,) and ``counts`` (n,) are those of the rows,
    ``shares`` (c,) the shares of the clusters in all weights.
    """

    log_votes: Array
    labels: Labels
    counts: Array
    shares: Array

    @cached_property
    def calibration(self) -> Calibration:
        """The calibration, fitted at the first use."""
        has_votes = (self.counts > 0) & ~np.isneginf(self.log_votes.max(axis=1))
        log_votes = self.log_votes[has_votes]
        agrees = np.argmax(log_votes, axis=1) == self.labels[has_votes]
        log_votes = log_votes[:, self.shares > 0]
        return fit_calibration(log_votes, agrees, self.counts[has_votes])

    def __getstate__(self) -> dict[str, Any]:
        # without the calibration: saved models do not depend on their use
        return {name: v for name, v in vars(self).items() if name != "calibration"}

    def label_probabilities(self) -> Array:
        """Return the probability of the own cluster of every row (n,)."""
        proba = self.calibration.predict_proba(self.log_votes, self.shares)
        return proba[np.arange(len(self.labels)), self.labels]


def fit_calibration(
    log_votes: Array, agrees: NDArray[np.bool_], counts: Array
) -> Calibration:
    """Fit a ``Calibration`` to votes (n, c) that agree with the labels or do not.

    Every row has votes and is repeated ``counts`` times.
    """
    n_clusters = log_votes.shape[1]
    if n_clusters == 1:
        return Calibration(1.0, 0.0)
    relative = log_votes - log_votes.max(axis=1, keepdims=True)
    n_right, n_wrong = counts @ agrees, counts @ ~agrees
    target = np.where(agrees, (n_right + 1.0) / (n_right + 2.0), 1.0 / (n_wrong + 2.0))

    def loss(parameters: Array) -> float:
        exponent, error = np.exp(parameters[0]), expit(parameters[1])
        largest = 1.0 / np.exp(exponent * relative).sum(axis=1)
        p = (1.0 - error) * largest + error / n_clusters
        likelihood = xlogy(target, p) + xlog1py(1.0 - target, -p)
        return float(0.5 * parameters[0] ** 2 - counts @ likelihood)

    # an error below 1 / n leaves the loss flat
    max_logit = np.log(1.0 + counts.sum())
    result = minimize(
        loss,
        [0.0, -0.5 * max_logit],
        method="L-BFGS-B",
        bounds=[(-_MAX_LOG_EXPONENT, _MAX_LOG_EXPONENT), (-max_logit, max_logit)],
        options={"ftol": 1e-12},
    )
    # rounded to the accuracy of the minimum: repeated rows and weights agree exactly
    log_exponent, logit = np.round(result.x, 3)
    return Calibration(float(np.exp(log_exponent)), float(expit(logit)))


# Noise.


@dataclass(frozen=True)
class NoiseRule:
    """Rule that decides which points are noise.

    Attributes
    ----------
    rate : float
        False alarm rate: share of the points of a Gaussian cluster that are marked.
    n_neighbors : int
        The neighbor whose distance is compared.
    thresholds : ndarray of shape (n_found,)
        Distances beyond which the points of a cluster are noise, in the representation
        of the fit.
    """

    rate: float
    n_neighbors: int
    _log_thresholds: Array
    _neighbors: Neighbors
    _labels: Labels

    @property
    def thresholds(self) -> Array:
        """As distances."""
        return np.exp(self._log_thresholds)

    def is_noise(self) -> NDArray[np.bool_]:
        """Return whether the training points are noise (n,)."""
        return _log(self._neighbors.scales) > self._log_thresholds[self._labels]

    def predict(self, X: Any, n_threads: int) -> NDArray[np.bool_]:
        """Return whether new points are noise (m,).

        The threshold is that of the nearest training point, so that training points are
        noise as in the fit, whatever the votes for them.
        """
        _, nearest = self._neighbors.kneighbors(X, 1, n_threads=n_threads)
        log_distances = _log(self._neighbors.local_scales(X, n_threads))
        return log_distances > self._log_thresholds[self._labels[nearest[:, 0]]]


def fit_noise_rule(
    neighbors: Neighbors, labels: Labels, rate: float, multiplicity: Array | None = None
) -> NoiseRule:
    """Fit a ``NoiseRule`` to points whose scales are distances to the 12th neighbor.

    ``multiplicity`` counts in quantiles, but copies of a point are not its neighbors.
    """
    n, n_features = neighbors.X.shape
    k = min(NOISE_NEIGHBOR, n - 1)
    multiplicity = np.ones(n) if multiplicity is None else multiplicity
    log_distances = _log(neighbors.scales)
    thresholds = _thresholds(log_distances, labels, rate, multiplicity, k, n_features)
    return NoiseRule(float(rate), k, thresholds, neighbors, labels)


def _log(distances: Array) -> Array:
    return np.log(np.maximum(distances, _TINY))


def _thresholds(
    values: Array,
    labels: Labels,
    rate: float,
    multiplicity: Array,
    k: int,
    n_features: int,
) -> Array:
    """Return the threshold of every cluster, in the unit of the values."""
    clusters = []
    for y in range(labels.max() + 1):
        members = np.flatnonzero(labels == y)
        members = members[np.argsort(values[members], kind="stable")]
        clusters.append((values[members], np.cumsum(multiplicity[members])))
    # uniform points have the smallest spread: that of more even ones is uncertain
    gammas = np.log(special.gammaincinv(k, [_LOW, _MID]))
    min_spread = (gammas[1] - gammas[0]) / n_features
    thresholds = np.array([_quantile(*cluster, 0.5) for cluster in clusters])
    counts: list[int] = []
    while True:
        previous, counts, quantiles, totals = counts, [], [], []
        for (ordered, cumulative), threshold in zip(clusters, thresholds, strict=True):
            count = int(np.searchsorted(ordered, threshold, side="right"))
            below = ordered[:count], cumulative[:count]
            quantiles.append([_quantile(*below, share) for share in (_LOW, _MID)])
            totals.append(cumulative[count - 1])
            counts.append(count)
        if counts == previous:
            return thresholds
        low, mid = np.transpose(quantiles)
        # a few points do not determine a spread: it is at least the mean of all
        mean = np.average(mid - low, weights=totals)
        spread = np.maximum(mid - low, max(mean, min_spread))
        small = np.square(k / np.array(counts))
        spread *= 1.0 + _SPREAD_MARGIN / math.sqrt(sum(counts)) + small
        ratios = [tail_ratio(count, k, rate) for count in counts]
        thresholds = np.maximum(thresholds, mid + ratios * spread)


def _quantile(ordered: Array, cumulative: Array, share: float) -> float:
    """Return the first value whose cumulative multiplicity reaches the share."""
    return float(ordered[np.searchsorted(cumulative, share * cumulative[-1])])


def tail_ratio(n: int, k: int, rate: float) -> float:
    """Return (q3 - q2) / (q2 - q1) of n points, interpolated between powers of 2."""
    exponent = math.log2(max(n, _MIN_POINTS))
    floor = math.floor(exponent)
    first, second = (_ratio(2**power, k, rate) for power in (floor, floor + 1))
    return first + (exponent - floor) * (second - first)


@lru_cache(maxsize=256)
def _ratio(n: int, k: int, rate: float) -> float:
    # the points that are kept are the lower ones of a share 1 - rate
    shares = (1.0 - rate) * np.array([_LOW, _MID, 1.0])
    low, mid, high = kth_distance_quantiles(shares, n, k)
    return float((high - mid) / (mid - low))


def kth_distance_quantiles(shares: Array, n: int, k: int) -> Array:
    """Return quantiles of the log distance to the kth neighbor among n > k points.

    The points are Gaussian in the plane, with unit variances. At a radius r the number
    of others within a distance x is binomial, with the probability of the non-central
    chi-squared law of x^2; r^2 / 2 is exponential.
    """
    half_squares = np.arange(0.5 * _STEP, _MAX_HALF_SQUARE, _STEP)
    density = np.exp(-half_squares)
    nearest, farthest = 0.5 * math.log(0.02 * k / n), math.log(_MAX_HALF_SQUARE)
    distances = np.linspace(nearest, farthest, _N_DISTANCES)
    squares = np.exp(2.0 * distances)[:, np.newaxis]
    inside = special.chndtr(squares, 2, 2.0 * half_squares)
    law = special.bdtrc(k - 1, n - 1, np.clip(inside, 0.0, 1.0)) @ density
    return np.asarray(np.interp(shares, law / density.sum(), distances))
