# SPDX-License-Identifier: BSD-3-Clause
"""What a fit says of any rows (tests/test_blocks_estimator.py)."""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from cdsk._blocks.candidates import LandmarkVotes
from cdsk._choices.representation import Representation


@dataclass(frozen=True)
class Judge:
    """Landmarks with their votes and places in the embedding (m, c).

    Every method takes a checked block of rows and gives an array with a row for each.
    """

    representation: Representation
    votes: LandmarkVotes
    embedding: np.ndarray

    @property
    def work_per_row(self):
        """Products that it takes to compare a row with all landmarks."""
        return self.votes.landmarks.points.size

    def none(self, what):
        """What the method of that name gives for no rows."""
        if what == "labels":
            return np.empty(0, dtype=np.int64)
        coordinates = what == "coordinates"
        width = self.embedding.shape[1] if coordinates else self.votes.n_clusters
        return np.empty((0, width))

    def log_votes(self, block):
        """Logarithm of the votes for every cluster."""
        return self.votes.log_votes(self._seen(block))

    def labels(self, block):
        """The cluster of the largest votes."""
        return np.argmax(self.log_votes(block), axis=1)

    def shares(self, block):
        """Share of every cluster in the votes."""
        log_votes = self.log_votes(block)
        return np.exp(log_votes - logsumexp(log_votes, axis=1, keepdims=True))

    def coordinates(self, block):
        """Mean place of the landmarks near a row, by their weights."""
        return self.votes.mean(self._seen(block), self.embedding)

    def _seen(self, block):
        return self.representation.of_checked(np.asarray(block, dtype=np.float64))
