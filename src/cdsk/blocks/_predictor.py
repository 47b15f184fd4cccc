# SPDX-License-Identifier: BSD-3-Clause
"""Prediction for the rows of any block (tests/test_blocks_estimator.py)."""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from cdsk._preprocessing import Representation
from cdsk.blocks._landmark_kernels import LandmarkVotes


@dataclass(frozen=True)
class LandmarkPredictor:
    """Votes of the landmarks, and their embedding (m, c).

    The methods take validated rows (n, d) and return an array with n rows.
    """

    representation: Representation
    votes: LandmarkVotes
    embedding: np.ndarray

    @property
    def work_per_row(self):
        """Number of products that compare a row with all landmarks."""
        return self.votes.landmarks.points.size

    def empty(self, method):
        """Return what the named method returns for no rows."""
        if method == "predict":
            return np.empty(0, dtype=np.int64)
        is_transform = method == "transform"
        width = self.embedding.shape[1] if is_transform else self.votes.n_clusters
        return np.empty((0, width))

    def decision_function(self, X):
        """Return the logarithm of the votes (n, n_clusters)."""
        return self.votes.log_votes(self._represent(X))

    def predict(self, X):
        """Return the cluster (n,) with the largest vote."""
        return np.argmax(self.decision_function(X), axis=1)

    def predict_proba(self, X):
        """Return the share (n, n_clusters) of every cluster in the votes."""
        log_votes = self.decision_function(X)
        return np.exp(log_votes - logsumexp(log_votes, axis=1, keepdims=True))

    def transform(self, X):
        """Return the weighted mean (n, c) of the embedding of the nearest landmarks."""
        return self.votes.average(self._represent(X), self.embedding)

    def _represent(self, X):
        return self.representation.transform_validated(np.asarray(X, dtype=np.float64))
