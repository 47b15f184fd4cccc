# SPDX-License-Identifier: BSD-3-Clause
"""Result of a fit: attributes and predictor (tests/test_prediction.py)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdsk._model_selection import Choice, CountChoice, LambdaChoice
from cdsk._neighbors import NeighborIndex
from cdsk._operators.base import Array, Candidate, Votes
from cdsk._operators.low_rank import Approximation
from cdsk._preprocessing import Points, Representation
from cdsk._voting import LeaveOneOutVotes, NoiseRule

Labels = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Predictor:
    """What a fitted model knows of its points, to predict for new ones."""

    candidate: Candidate
    votes: Votes
    # search among the points for those that equal new ones; None without points
    index: NeighborIndex | None
    points: Points
    # lengths of the rows of the embedding before normalization (n_points,)
    lengths: Array
    left_out: LeaveOneOutVotes
    noise: NoiseRule | None
    is_sparse: bool

    def label(
        self, log_votes: Array, X: Any, n_threads: int
    ) -> tuple[Labels, Labels, NDArray[np.bool_]]:
        """Return clusters and labels of new points, and which ones have no vote."""
        alone = np.isneginf(log_votes.max(axis=1))
        clusters = np.argmax(log_votes, axis=1)
        if alone.any():
            clusters[alone] = np.argmax(self.left_out.shares)
        labels = clusters.copy()
        if self.noise is not None:
            labels[self.noise.predict(X, n_threads)] = -1
        return clusters, labels, alone

    def embed(
        self, X: Any, embedding: Array, eigenvalues: Array, n_threads: int
    ) -> Array:
        """Return the embedding of new points, given that of the rows of the fit."""
        # an eigenvector of eigenvalue 0 is not a mean of anything
        zeros = np.zeros_like(eigenvalues)
        inverse = np.divide(1.0, eigenvalues, out=zeros, where=eigenvalues != 0)
        values = self.points.from_rows(embedding)
        values *= self.lengths[:, np.newaxis]
        embedded = self.votes.average(X, values, n_threads) * inverse
        lengths = np.linalg.norm(embedded, axis=1, keepdims=True)
        embedded /= np.where(lengths > 0, lengths, 1.0)
        if self.index is not None:
            distances, nearest = self.index.kneighbors(X, 1, n_threads=n_threads)
            is_old = distances[:, 0] == 0
            old_rows = self.points.first_row[nearest[is_old, 0]]
            embedded[is_old] = embedding[old_rows]
        return embedded


@dataclass(frozen=True, kw_only=True)
class FitResult:
    """The fitted attributes of ``CDSK``, without their trailing underscores."""

    labels: Labels
    clusters: Labels
    noise: NoiseRule | None
    n_clusters: int
    n_distinct: int
    count_choice: CountChoice | None
    sample_weight: Array
    weights: Array
    support: NDArray[np.intp]
    unconnected: NDArray[np.intp]
    embedding: Array
    eigenvalues: Array
    history: Array
    n_iter: int
    converged: bool
    qp_gap: float
    kernel: str
    bandwidth: float | Array | None
    lam: float
    margins: Array
    typicality: Array
    choice: Choice
    approximation: Approximation | None
    representation: Representation
    lambda_choice: LambdaChoice | None
    n_negative: int
    n_clipped: int
    # without an attribute of its own
    predictor: Predictor
