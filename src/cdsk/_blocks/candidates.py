# SPDX-License-Identifier: BSD-3-Clause
"""Z'Z -> the kernels of landmarks, and their votes (tests/test_blocks_candidates.py).

Z'Z is the Gram matrix of the columns of Z, so that it is semi-definite as it is, and
holds how many points there are: it is what K_ij m_i m_j is for points that stand for
several rows. Its diagonal is what the rows of one landmark have in common and counts as
similarity, too: a heap of rows that has a landmark for itself may be a cluster.
docs/notes/2026-11-17-blocks.md has other normalisations.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from cdsk._blocks.landmarks import ONE, Landmarks
from cdsk._kernels.sparse import NeighbourGraph, SparseKernel
from cdsk._linalg.banded import BandOrder
from cdsk._linalg.sparse_state import SparseState

# Wider than those of neighbours: landmarks are farther apart than points, and scales
# below a quarter leave a point its nearest landmark alone.
FACTORS = tuple(2.0 ** (-0.5 * i) for i in range(5))


class LandmarkKernel(SparseKernel):
    """Z'Z in units of its mean diagonal entry."""

    def __init__(self, gram, counts, landmarks, n_threads):
        diagonal = gram.diagonal().astype(np.float64)
        unit = float(diagonal.mean())
        matrix = gram.astype(np.float64)
        matrix.data /= unit
        matrix.setdiag(0)
        matrix.eliminate_zeros()
        graph = NeighbourGraph(landmarks.neighbours)
        super().__init__(
            matrix, BandOrder(matrix), n_threads, graph, "more landmarks or rows"
        )
        self.counts, self.masses = counts, counts / np.median(counts)
        self.loops = self._diagonal = diagonal / unit

    @property
    def diagonal(self):
        return self._diagonal

    @property
    def of_copies(self):
        return self._diagonal

    def neighbourhood(self):
        # rows near both landmarks, which those of landmarks among themselves are not
        return self


@dataclass(frozen=True)
class LandmarkGraph(SparseState):
    """The kernel of the landmarks by their weights at one scale."""

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
    def points(self):
        return self.landmarks.points

    @property
    def bandwidth(self):
        return self.factor * self.landmarks.neighbours.scales

    def kernel(self):
        return LandmarkKernel(self.gram, self.counts, self.landmarks, self.n_threads)

    def votes(self, labels, weights, n_clusters):
        return LandmarkVotes(self.landmarks, self.factor, labels, n_clusters)


@dataclass(frozen=True)
class LandmarkVotes:
    """h(x, y) = sum of z_u(x) over the landmarks u of cluster y.

    The weights of the landmarks have no part in it: measured, votes times weights lose
    where clusters have few landmarks.
    """

    landmarks: Landmarks
    factor: float
    labels: np.ndarray
    n_clusters: int

    def log_votes(self, X, n_threads=1):
        """Of points as they are represented."""
        z, nearest = self._voters(X)
        votes = np.zeros((len(X), self.n_clusters), dtype=np.int64)
        rows = np.arange(len(X))[:, np.newaxis]
        np.add.at(votes, (rows, self.labels[nearest]), z)
        with np.errstate(divide="ignore"):
            return np.log(votes / ONE)

    def mean(self, X, values, n_threads=1):
        """Of values (m, q) of the landmarks, by the votes for points."""
        z, nearest = self._voters(X)
        total = np.zeros((len(X), values.shape[1]))
        # one landmark after the other: the same bits for any number of points
        for weight, index in zip(z.T, nearest.T, strict=True):
            total += weight[:, np.newaxis] * values[index]
        return total / z.sum(axis=1, keepdims=True)

    def _voters(self, X):
        """Weights (n, r) on the nearest landmarks, and which they are.

        Who is a landmark has that vote alone: of few landmarks all others are near.
        """
        indices, distances = self.landmarks.nearest(X)
        z = self.landmarks.weights(indices, distances, self.factor)
        z[distances[:, 0] == 0, 1:] = 0
        return z, indices[:, : z.shape[1]]

    def log_normaliser(self, n_features):
        return 0.0  # the integral of what is seen through landmarks is not known
