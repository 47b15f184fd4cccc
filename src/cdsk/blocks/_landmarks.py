# SPDX-License-Identifier: BSD-3-Clause
"""Landmarks of a sample, weights of points on them (tests/test_blocks_landmarks.py).

A point x is represented by weights on its r nearest landmarks u,

    z_u(x) ~ exp(-|x - u|^2 / (2 f^2 s(x) s(u))),     sum_u z_u(x) = 1,

with a factor f and the scales s of self-tuning kernels: distances to the 7th nearest
landmark, capped for outliers. Weights are fixed-point numbers with 15 fractional bits,
so sums over points are exact.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from cdsk._cdsk import CDSK, make_context
from cdsk._neighbors import SCALE_NEIGHBOR, NeighborIndex, Neighbors
from cdsk._preprocessing import Points, unique_rows
from cdsk._utils import limit_blas_threads
from cdsk._view_choice import select_coding, select_representation
from cdsk._voting import check_coordinates

# The integer that represents the weight 1.
FIXED_POINT_ONE = 2**15

# Largest number of landmarks with a nonzero weight for a point.
N_NEAREST = 5

LANDMARK_METHODS = ("kmeans", "uniform")

# Classes of the distances to the 6th and 7th landmark, in units of the scale of the
# nearest one: eighths of octaves, from a quarter.
_N_CLASSES, _CLASSES_PER_OCTAVE, _FIRST_OCTAVE = 64, 8, -2

# k-means on the sample: rounds of seeding, and Lloyd iterations. The effect of the
# rounds is measured in docs/notes/2026-11-17-blocks.md.
_SEEDING_ROUNDS, _LLOYD_ITERATIONS = 5, 5


@dataclass(frozen=True)
class LandmarkOptions:
    """Parameters of ``fit_landmarks``.

    Attributes
    ----------
    n_clusters : int
        Number of clusters, for which the representation is selected.
    n_landmarks : int
        Largest number of landmarks.
    method : {"kmeans", "uniform"}
        Centers of k-means, or rows of the sample.
    representation : str
        View of the data, or "auto".
    n_components : int or None
        Number of components of whitened data.
    n_categories : tuple or None
        Number of categories of every column, as in ``FitContext``.
    """

    n_clusters: int
    n_landmarks: int
    method: str
    representation: str
    n_components: int | None
    n_categories: tuple[int | None, ...] | None = None


def fit_landmarks(points, options, rng, n_threads):
    """Return the ``Representation`` and the ``Landmarks`` of sampled points (n, d)."""
    distinct = Points.from_distinct_rows(points)
    model = CDSK(
        representation=options.representation,
        n_components=options.n_components,
        n_threads=n_threads,
    )
    context = replace(make_context(model), rng=rng, n_categories=options.n_categories)
    with limit_blas_threads():
        representation = _represent(distinct, options, context)
    X = representation.transform_validated(points, n_threads)
    positions = place_landmarks(X, options.n_landmarks, options.method, rng, n_threads)
    if len(positions) == 1:  # a single landmark has no distances
        positions = positions[[0, 0]]
    landmarks = Landmarks(positions)
    landmarks.neighbors  # noqa: B018  cached before several threads use it
    return representation, landmarks


def _represent(distinct, options, context):
    """Return the representation of distinct points, or their coding."""
    if options.n_categories is not None:
        return select_coding(distinct, options.n_clusters, context)[1]
    completed, coding = distinct.completed(context)
    representation = select_representation(
        completed, options.representation, options.n_clusters, context
    )
    return replace(representation, coding=coding)


def place_landmarks(points, n_landmarks, method, rng, n_threads):
    """Return at most ``n_landmarks`` distinct landmarks of a sample in random order.

    "uniform" returns the first distinct points, "kmeans" the centers of k-means.
    """
    points = np.ascontiguousarray(points, dtype=np.float64)
    first, inverse = unique_rows(points)
    order = np.argsort(first)
    distinct, multiplicity = points[first[order]], np.bincount(inverse)[order]
    if method == "uniform" or len(distinct) <= n_landmarks:
        return distinct[:n_landmarks]
    seeds = _draw_seeds(distinct, multiplicity, n_landmarks, rng, n_threads)
    centers = distinct[seeds]
    for _ in range(_LLOYD_ITERATIONS):
        # not scikit-learn's KMeans, which ignores Ctrl-C during an iteration
        _, nearest = NeighborIndex(centers).kneighbors(points, 1, n_threads=n_threads)
        csr = np.ones(len(points)), nearest[:, 0], np.arange(len(points) + 1)
        members = sparse.csr_array(csr, shape=(len(points), len(centers)))
        size = members.sum(axis=0)
        sums = members.T @ points
        # the center of an empty cluster does not move
        occupied = size > 0
        centers[occupied] = sums[occupied] / size[occupied, np.newaxis]
    return centers[np.sort(unique_rows(centers)[0])]


def _draw_seeds(points, multiplicity, n_seeds, rng, n_threads):
    """Return the indices of the initial centers of k-means, drawn in rounds.

    The first round takes the first points. In the others the probability of a point is
    proportional to D^2, D the distance to the seeds of earlier rounds, as in k-means||
    (Bahmani et al., 2012); but every round draws its share of the seeds, and none is
    discarded.
    """
    ends = np.linspace(0, n_seeds, _SEEDING_ROUNDS + 1)
    ends = np.unique(np.ceil(ends).astype(int))
    rounds = [np.arange(ends[1])]
    distances = np.full(len(points), np.inf)
    for count in np.diff(ends)[1:]:
        index = NeighborIndex(points[rounds[-1]])
        to_last_round = index.kneighbors(points, 1, n_threads=n_threads)[0][:, 0]
        distances = np.minimum(distances, to_last_round)
        # sampling without replacement: the smallest exponential variates / weights
        with np.errstate(divide="ignore"):
            keys = rng.exponential(size=len(points)) / (multiplicity * distances**2)
        rounds.append(np.argsort(keys, kind="stable")[:count])
    return np.concatenate(rounds)


@dataclass(frozen=True)
class Landmarks:
    """Landmarks (m, d) with their scales, which weigh the points near them."""

    points: np.ndarray
    n_nearest: int = N_NEAREST

    @cached_property
    def neighbors(self):
        """The ``Neighbors`` among the landmarks, with their scales."""
        neighbors = Neighbors(self.points, robust=True)
        if not neighbors.scales.any():  # all landmarks are equal: any scale works
            neighbors.scales[:] = 1.0
        return neighbors

    def __len__(self):
        return len(self.points)

    def nearest(self, X):
        """Return indices and distances (n, k) of the nearest landmarks, sorted.

        k covers the landmarks with weights and the one that gives a point its scale.
        """
        X = np.asarray(X, dtype=np.float64)
        check_coordinates(X, self.neighbors.scales.min())
        k = min(max(self.n_nearest, SCALE_NEIGHBOR), len(self))
        distances, indices = self.neighbors.kneighbors(X, k)
        return indices, distances

    def count_classes(self, indices, distances):
        """Return the number of points (2, m, n_classes) by nearest landmark and class.

        First by the distance to the last but one landmark, then to the last one.
        """
        nearest, m = indices[:, 0].astype(np.int64), len(self)
        counts = []
        for column in distances[:, -2:].T:
            with np.errstate(divide="ignore"):
                octaves = np.log2(column / self.neighbors.scales[nearest])
            classes = np.floor(_CLASSES_PER_OCTAVE * (octaves - _FIRST_OCTAVE))
            classes = np.clip(classes, 0, _N_CLASSES - 1).astype(np.int64)
            places = _N_CLASSES * nearest + classes
            counts.append(np.bincount(places, minlength=m * _N_CLASSES))
        return np.array(counts, dtype=np.int64).reshape(2, m, _N_CLASSES)

    def weights(self, indices, distances, factor):
        """Return weights (n, r) on the r nearest landmarks, as fixed-point numbers."""
        scales = self.neighbors.scales
        last = min(SCALE_NEIGHBOR, len(self)) - 1
        own = np.minimum(distances[:, last], scales.max())
        own = np.where(own > 0, own, scales.min())
        r = min(self.n_nearest, len(self))
        near, far = indices[:, :r], distances[:, :r]
        exponents = -np.square(far / factor) / (2.0 * own[:, np.newaxis] * scales[near])
        exponents -= exponents.max(axis=1, keepdims=True)
        z = np.exp(exponents)
        z /= z.sum(axis=1, keepdims=True)
        return np.rint(FIXED_POINT_ONE * z).astype(np.int64)
