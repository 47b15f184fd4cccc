# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of the landmarks from Z'Z, and votes (tests/test_blocks_candidates.py).

Z'Z is the Gram matrix of the columns of Z and therefore positive semi-definite. It
accounts for the number of points: it corresponds to K_ij m_i m_j for points with
multiplicities m. Its diagonal is the similarity between the rows of one landmark, and
is part of the kernel: many rows with a landmark of their own may be a cluster.
docs/notes/2026-11-17-blocks.md compares other normalizations.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from cdsk._neighbors import SparseState
from cdsk._operators.sparse import NeighborGraph, SparseKernel
from cdsk.blocks._landmarks import FIXED_POINT_ONE, Landmarks

# Larger than those of neighbor graphs: landmarks are farther apart than points, and
# with factors below a quarter only the nearest landmark of a point has any weight.
BANDWIDTH_FACTORS = tuple(2.0 ** (-0.5 * i) for i in range(5))

# That of the votes in tables with categories. Their kernels are wide, and in wide votes
# large clusters win rows of small ones: docs/notes/2026-11-19-tables.md.
TABLE_FACTOR = 1.0


class LandmarkKernel(SparseKernel):
    """Z'Z in units of its mean diagonal entry."""

    def __init__(self, gram, counts, landmarks, n_threads):
        diagonal = gram.diagonal().astype(np.float64)
        unit = float(diagonal.mean())
        matrix = gram.astype(np.float64)
        matrix.data /= unit
        matrix.setdiag(0)
        matrix.eliminate_zeros()
        super().__init__(
            matrix,
            n_threads,
            graph=NeighborGraph(landmarks.neighbors),
            hint="Use more landmarks or rows",
        )
        self.counts, self.multiplicity = counts, counts / np.median(counts)
        self.self_loops = self._diagonal = diagonal / unit

    @property
    def diagonal(self):
        return self._diagonal

    @property
    def duplicate_similarity(self):
        return self._diagonal

    def neighborhood(self):
        # Z'Z counts rows near both landmarks; distances between landmarks do not
        return self


@dataclass(frozen=True)
class LandmarkGraph(SparseState):
    """Candidate kernel of the landmarks: their Z'Z at one bandwidth factor."""

    landmarks: Landmarks
    gram: sparse.csr_array
    factor: float
    counts: np.ndarray
    n_threads: int

    @property
    def name(self):
        return f"{self.factor:.3g} of the scales"

    @property
    def description(self):
        return f"Gaussian, {self.name}, through landmarks"

    @property
    def bandwidth(self):
        return self.factor * self.landmarks.neighbors.scales

    def kernel(self):
        return LandmarkKernel(self.gram, self.counts, self.landmarks, self.n_threads)

    def votes(self, labels, weights, n_clusters):
        return LandmarkVotes(self.landmarks, self.factor, labels, n_clusters)


@dataclass(frozen=True)
class LandmarkVotes:
    """Votes h(x, y) = sum of z_u(x) over the landmarks u of cluster y.

    The kernel weights of the landmarks are not used: they reduce the accuracy for
    clusters with few landmarks (docs/notes/2026-11-17-blocks.md).
    """

    landmarks: Landmarks
    factor: float
    labels: np.ndarray
    n_clusters: int

    def log_votes(self, X, n_threads=1):
        """Return the logarithm of the votes (n, n_clusters) for represented points."""
        z, nearest = self._landmark_weights(X)
        votes = np.zeros((len(X), self.n_clusters), dtype=np.int64)
        rows = np.arange(len(X))[:, np.newaxis]
        np.add.at(votes, (rows, self.labels[nearest]), z)
        with np.errstate(divide="ignore"):
            return np.log(votes / FIXED_POINT_ONE)

    def average(self, X, values, n_threads=1):
        """Return the mean (n, q) of values (m, q) of the landmarks, weighted by z."""
        z, nearest = self._landmark_weights(X)
        total = np.zeros((len(X), values.shape[1]))
        # one landmark at a time: the same bits for any number of points
        for weight, index in zip(z.T, nearest.T, strict=True):
            total += weight[:, np.newaxis] * values[index]
        return total / z.sum(axis=1, keepdims=True)

    def _landmark_weights(self, X):
        """Return weights (n, r) on the nearest landmarks, and their indices (n, r).

        A point that equals a landmark has weight on that one only: if there are few
        landmarks, all of them are close.
        """
        indices, distances = self.landmarks.nearest(X)
        z = self.landmarks.weights(indices, distances, self.factor)
        z[distances[:, 0] == 0, 1:] = 0
        return z, indices[:, : z.shape[1]]

    def log_normalizer(self, n_features):
        return 0.0  # the integral of these votes is unknown
