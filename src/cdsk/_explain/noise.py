# SPDX-License-Identifier: BSD-3-Clause
"""Points and clusters -> how far from others a point of each cluster may be.

A point is noise if its distance to its 12th neighbour is one that only a share ``rate``
of the points of a clean cluster would exceed. Clean means: normal points in the plane,
as many as the cluster has. The law of their distances is known (``normal_quantiles``),
and relative to what is below the median its tail is longer than in more dimensions,
if not as long as on a line. So three quantiles are enough:

    threshold = mid + (q3 - q2) / (q2 - q1) spread,     spread = mid - low

with quantiles low, mid of the logarithms of the distances in the cluster, and q1, q2,
q3 of the law, q3 that of 1 - rate. A quantile of the data in place of q3 would mark
the same share of any data, noise or not.

Noise shifts the quantiles of a cluster. They are those of the points below the
threshold, which begins at the median and rises as long as it meets further points: up
to half of a cluster may be noise. docs/notes/2026-11-17-noise.md has the comparisons.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

NEIGHBOUR = 12

# Shares of the points that are not noise, below which low and mid are.
_LOW, _MID = 0.1, 0.5

# Of the law: half squares of radii and their step, number of distances, fewest points.
_FARTHEST, _STEP, _DISTANCES, _FEWEST = 40.0, 0.1, 300, 16

# The spread is an estimate, and one that is too small marks many points: it is enlarged
# by a share _CAUTION / sqrt(n), n of all clusters, and for small ones by (12 / n)^2. So
# normal clusters of 25 to 5000 points lose 0.7 to 2.5 % at a rate of 0.01.
_CAUTION = 1.5

_TINY = np.finfo(float).tiny


@dataclass(frozen=True)
class NoiseRule:
    """Which points are noise.

    Attributes
    ----------
    rate : float
        Share of the points of a clean cluster that would be marked.
    n_neighbors : int
        The neighbour whose distance is compared.
    thresholds : ndarray of shape (n_found,)
        The distance beyond which a point of a cluster is noise, in the representation
        of the fit.
    """

    rate: float
    n_neighbors: int
    _log_thresholds: NDArray[np.float64]
    _neighbours: Any
    _labels: NDArray[np.int64]

    @property
    def thresholds(self) -> NDArray[np.float64]:
        """As distances."""
        return np.exp(self._log_thresholds)

    def marks(self):
        """Whether the points of the fit are noise."""
        return _logarithms(self._neighbours.scales) > self._log_thresholds[self._labels]

    def marks_new(self, new, n_threads):
        """The same for new points, by the thresholds for those nearest to them.

        So a point of the fit is judged as it was, whatever the votes say of it.
        """
        nearest = self._neighbours.nearest_to(new, 1, n_threads)[0][:, 0]
        scales = self._neighbours.scales_of(new, n_threads)
        return _logarithms(scales) > self._log_thresholds[self._labels[nearest]]


def find_noise(neighbours, labels, rate, masses=None):
    """The ``NoiseRule`` of points whose scales are distances to the 12th neighbour.

    ``masses`` are numbers of copies: they count in quantiles, but copies of a point are
    no neighbours of it.
    """
    n, n_features = neighbours.X.shape
    k = min(NEIGHBOUR, n - 1)
    masses = np.ones(n) if masses is None else masses
    logarithms = _logarithms(neighbours.scales)
    thresholds = _thresholds(logarithms, labels, rate, masses, k, n_features)
    return NoiseRule(float(rate), k, thresholds, neighbours, labels)


def _logarithms(distances):
    return np.log(np.maximum(distances, _TINY))


def _thresholds(values, labels, rate, masses, k, n_features):
    """Of every cluster, in the unit of the values."""
    clusters = []
    for y in range(labels.max() + 1):
        members = np.flatnonzero(labels == y)
        members = members[np.argsort(values[members], kind="stable")]
        clusters.append((values[members], np.cumsum(masses[members])))
    # uniform points have the smallest spread: what is more even is no better known
    gammas = np.log(special.gammaincinv(k, [_LOW, _MID]))
    least = (gammas[1] - gammas[0]) / n_features
    thresholds = np.array([_quantile(*cluster, 0.5) for cluster in clusters])
    counts = None
    while True:
        before = counts
        counts = [
            int(np.searchsorted(ordered, threshold, side="right"))
            for (ordered, _), threshold in zip(clusters, thresholds, strict=True)
        ]
        if counts == before:
            return thresholds
        below = [
            (ordered[:count], sums[:count])
            for (ordered, sums), count in zip(clusters, counts, strict=True)
        ]
        low, mid = (
            np.array([_quantile(*part, share) for part in below])
            for share in (_LOW, _MID)
        )
        # few points do not tell their spread: it is at least the mean of all clusters
        mean = np.average(mid - low, weights=[sums[-1] for _, sums in below])
        spread = np.maximum(mid - low, max(mean, least))
        small = np.square(k / np.array(counts))
        spread *= 1.0 + _CAUTION / math.sqrt(sum(counts)) + small
        ratios = [tail_ratio(count, k, rate) for count in counts]
        thresholds = np.maximum(thresholds, mid + ratios * spread)


def _quantile(ordered, sums, share):
    """The first value up to which there is this share of the masses."""
    return ordered[np.searchsorted(sums, share * sums[-1])]


def tail_ratio(n, k, rate):
    """(q3 - q2) / (q2 - q1) of n normal points, by those of the next powers of 2."""
    place = math.log2(max(n, _FEWEST))
    floor = math.floor(place)
    first, second = (_ratio(2**power, k, rate) for power in (floor, floor + 1))
    return first + (place - floor) * (second - first)


@lru_cache(maxsize=256)
def _ratio(n, k, rate):
    # the points that are kept are the lower ones of a share 1 - rate
    shares = (1.0 - rate) * np.array([_LOW, _MID, 1.0])
    low, mid, high = normal_quantiles(shares, n, k)
    return (high - mid) / (mid - low)


def normal_quantiles(shares, n, k):
    """Quantiles of the log distance to the kth neighbour among n > k normal points.

    In the plane, with unit variances. At a radius r the number of others within a
    distance x is binomial, with the probability of the non-central chi-squared law of
    x^2; r^2 / 2 is exponential.
    """
    half_squares = np.arange(0.5 * _STEP, _FARTHEST, _STEP)
    at_radius = np.exp(-half_squares)
    nearest, farthest = 0.5 * math.log(0.02 * k / n), math.log(_FARTHEST)
    distances = np.linspace(nearest, farthest, _DISTANCES)
    squares = np.exp(2.0 * distances)[:, np.newaxis]
    inside = special.chndtr(squares, 2, 2.0 * half_squares)
    law = special.bdtrc(k - 1, n - 1, np.clip(inside, 0.0, 1.0)) @ at_radius
    return np.interp(shares, law / at_radius.sum(), distances)
