# SPDX-License-Identifier: BSD-3-Clause
"""What the stages of a fit hand on, and its result (tests/test_prediction.py)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdsk._constraints import ConstraintCheck
from cdsk._count_choice import CountChoice
from cdsk._eigensolvers import Eigenpairs
from cdsk._lam_choice import LambdaChoice
from cdsk._neighbors import NeighborIndex
from cdsk._operators.base import Array, Candidate, Kernel, Votes
from cdsk._partition_choice import Choice, WeightChoice
from cdsk._preprocessing import Points, Representation
from cdsk._sizes import SizeChange
from cdsk._spectral import Embedding
from cdsk._voting import LeaveOneOutVotes, NoiseRule

Labels = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What a fit solves: distinct points, their number of clusters, and lam."""

    points: Points
    representation: Representation
    # number of clusters that was asked for, or selected
    n_requested: int
    # the same, but at most that of distinct points: if it is theirs, every cluster is
    # one distinct point and nothing is learned
    n_clusters: int
    count_choice: CountChoice | None = None
    lam: float
    lambda_choice: LambdaChoice | None = None
    # of the data, in warnings
    name: str = "X"
    # the same in other views, which are fitted too if anything is known of the rows
    others: "tuple[Problem, ...]" = ()


@dataclass(frozen=True)
class Iteration:
    """An iteration of the alternation, as it is reported."""

    number: int
    objective: float
    embedding: Embedding
    weights: Array
    qp_gap: float
    accepted: bool


@dataclass(frozen=True, kw_only=True)
class Alternation:
    """Result of ``alternate``."""

    initial_weights: Array
    weights: Array
    embedding: Embedding
    history: list[float]
    n_iter: int
    qp_gap: float
    # that of the initial weights, without its solution; None: not kept
    initial_embedding: Embedding | None
    # eigenpairs of the initial weights: a start for a similar kernel
    first_solution: Eigenpairs | None
    # warning of the fit that is selected; None if it converged
    convergence_message: str | None


@dataclass(frozen=True)
class CandidateFit:
    """A candidate with its alternation and partition."""

    candidate: Candidate
    alternation: Alternation
    labels: Labels
    # partition of the initial weights
    initial_labels: Labels
    # None if there are several candidates: their kernels are made again when needed
    kernel: Kernel | None
    # between learned and initial weights; None: not compared
    weight_choice: WeightChoice | None = None


@dataclass(frozen=True, kw_only=True)
class ViewFit:
    """The candidates of a problem, fitted, and the choice among all partitions."""

    problem: Problem
    fits: list[CandidateFit]
    # those of the candidates by learned, then by initial weights, and by trees
    partitions: list[Labels]
    choice: Choice
    # None if nothing is known of the rows
    constraints: ConstraintCheck | None = None


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
        self, X: Any, n_threads: int, *, embedding: Array, eigenvalues: Array
    ) -> Array:
        """Return the embedding of new points, given that of the rows of the fit."""
        # an eigenvector of eigenvalue 0 is not a mean of anything
        zeros = np.zeros_like(eigenvalues)
        inverse = np.divide(1.0, eigenvalues, out=zeros, where=eigenvalues != 0)
        values = embedding[self.points.first_row]
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
    """A fit: its problem, the winner among the candidates, and values of the rows."""

    problem: Problem
    choice: Choice
    winner: CandidateFit
    # that of the winner
    kernel: Kernel
    predictor: Predictor
    clusters: Labels
    # the same, -1 for noise
    labels: Labels
    weights: Array
    unconnected: NDArray[np.intp]
    embedding: Array
    margins: Array
    typicality: Array
    bandwidth: float | Array | None
    # None: sizes are not bounded
    sizes: SizeChange | None
    # smallest of all approximate searches for neighbors; None: there was none
    neighbor_recall: float | None
    # None if nothing is known of the rows
    constraints: ConstraintCheck | None = None
