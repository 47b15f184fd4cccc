# SPDX-License-Identifier: BSD-3-Clause
"""Sample -> landmarks, and points -> weights on them (tests/test_blocks_landmarks.py).

A point x is seen through its r nearest landmarks u,

    z_u(x) ~ exp(-|x - u|^2 / (2 f^2 s(x) s(u))),     sum_u z_u(x) = 1,

with the scales s of self-tuning kernels: distances to the 7th nearest landmark, capped
for outliers, and a factor f of them. Weights are whole numbers of 2^-15, so that what
is summed over points is exact.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from cdsk._choices.representation import represent
from cdsk._kernels.neighbours import SCALE_NEIGHBOUR, Neighbours, PointSearch
from cdsk._kernels.votes import check_reach
from cdsk._points import Points, first_of_equal_rows

# What the weights of a point sum to, rounding aside.
ONE = 2**15

# Landmarks whose weight is not 0, at most.
NEAREST = 5

# Where landmarks are.
WAYS = ("kmeans", "uniform")

# k-means on the sample: rounds in which its first centres are drawn, and passes. What
# the rounds are worth: docs/notes/2026-11-17-blocks.md.
_ROUNDS, _PASSES = 5, 5


def decide(points, n_clusters, m, how, view, n_components, rng, n_threads):
    """The ``Representation`` and at most m ``Landmarks`` for the points of a sample."""
    distinct = Points.distinct(points)
    representation = represent(
        *(distinct.X, n_clusters, view, rng, n_threads),
        *(n_components, distinct.relative_masses),
    )
    represented = representation.of_checked(points, n_threads)
    places = place_landmarks(represented, m, how, rng, n_threads)
    if len(places) == 1:  # of one there are no distances
        places = places[[0, 0]]
    landmarks = Landmarks(places)
    landmarks.neighbours  # noqa: B018  once, before several threads ask for it
    return representation, landmarks


def place_landmarks(points, m, how, rng, n_threads):
    """At most m different landmarks for a sample that is in a random order.

    "uniform": its first different points. "kmeans": the centres that m points become.
    """
    points = np.ascontiguousarray(points, dtype=np.float64)
    first, point_of = first_of_equal_rows(points)
    order = np.argsort(first)
    different, copies = points[first[order]], np.bincount(point_of)[order]
    if how == "uniform" or len(different) <= m:
        return different[:m]
    centres = different[_spread(different, copies, m, rng, n_threads)]
    for _ in range(_PASSES):
        # not by KMeans of scikit-learn, a pass of which hears no Ctrl-C
        nearest, _ = PointSearch(centres).nearest_to(points, 1, n_threads)
        ones = np.ones(len(points)), nearest[:, 0], np.arange(len(points) + 1)
        members = sparse.csr_array(ones, shape=(len(points), len(centres)))
        size = members.sum(axis=0)
        sums = members.T @ points
        # one that is nobody's nearest stays where it is
        some = size > 0
        centres[some] = sums[some] / size[some, np.newaxis]
    return centres[np.sort(first_of_equal_rows(centres)[0])]


def _spread(points, copies, m, rng, n_threads):
    """Numbers of m points: the first, then by chance, far ones rather, in rounds.

    The weight of a row is D^2, D the distance to those of the rounds before, as in
    k-means|| (Bahmani et al., 2012); but every round takes its part of the m, and there
    is nothing to choose among more of them.
    """
    ends = np.unique(np.ceil(np.linspace(0, m, _ROUNDS + 1)).astype(int))
    rounds = [np.arange(ends[1])]
    distances = np.full(len(points), np.inf)
    for count in np.diff(ends)[1:]:
        search = PointSearch(points[rounds[-1]])
        found = search.nearest_to(points, 1, n_threads)[1][:, 0]
        distances = np.minimum(distances, found)
        # the smallest of exponential numbers divided by weights: without replacement
        with np.errstate(divide="ignore"):
            keys = rng.exponential(size=len(points)) / (copies * distances**2)
        rounds.append(np.argsort(keys, kind="stable")[:count])
    return np.concatenate(rounds)


@dataclass(frozen=True)
class Landmarks:
    """What is known of the landmarks by whoever meets a block."""

    points: np.ndarray
    n_nearest: int = NEAREST

    @cached_property
    def neighbours(self):
        """The landmarks as neighbours of each other, with their scales."""
        found = Neighbours(self.points, robust=True)
        if not found.own_scales.any():  # all in one place: any scale will do
            found.own_scales[:] = 1.0
        return found

    def __len__(self):
        return len(self.points)

    def nearest(self, X):
        """Indices and distances of the landmarks nearest to points, nearest first.

        As many as have weights, or give the points their scales.
        """
        X = np.asarray(X, dtype=np.float64)
        check_reach(X, self.neighbours.scales.min())
        k = min(max(self.n_nearest, SCALE_NEIGHBOUR), len(self))
        return self.neighbours.nearest_to(X, k)

    def weights(self, indices, distances, factor):
        """Weights (n, r) on the r nearest landmarks, in units of 1 / ONE."""
        scales = self.neighbours.scales
        last = min(SCALE_NEIGHBOUR, len(self)) - 1
        own = np.minimum(distances[:, last], scales.max())
        own = np.where(own > 0, own, scales.min())
        r = min(self.n_nearest, len(self))
        near, far = indices[:, :r], distances[:, :r]
        exponents = -np.square(far / factor) / (2.0 * own[:, np.newaxis] * scales[near])
        exponents -= exponents.max(axis=1, keepdims=True)
        z = np.exp(exponents)
        z /= z.sum(axis=1, keepdims=True)
        return np.rint(ONE * z).astype(np.int64)
