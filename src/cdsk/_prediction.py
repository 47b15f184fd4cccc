# SPDX-License-Identifier: BSD-3-Clause
"""New points: what a fitted model says of them."""

import math
import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from cdsk._runtime import check_memory, one_thread_if_forked, said_in_words
from cdsk._threads import resolve_n_threads
from cdsk._validation import can_be_cut, parts_of_rows, said_of_rows


class Prediction(BaseEstimator):
    """What the votes of the points of a fit say of new ones."""

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Cluster of new points: the one with the largest weighted kernel vote.

        -1 for noise, if ``noise`` asks for it: by the thresholds of the fit, and by the
        distances to its points.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features) or (n_new, n_samples)
            New points, or their kernel values to the training points if
            ``kernel="precomputed"``.

        Returns
        -------
        labels : ndarray of shape (n_new,)
        """
        check_is_fitted(self, "labels_")
        n_threads = resolve_n_threads(self.n_threads)
        lost = 0

        def label(votes, part):
            nonlocal lost
            _, labels, alone = self._judged(votes, part, n_threads)
            lost += np.count_nonzero(alone & (labels >= 0))
            return labels

        labels = self._from_votes(X, label)
        if lost:
            warnings.warn(
                f"{lost} of {len(labels)} points have no similarity to any "
                "training point and took the label of the heaviest cluster.",
                UserWarning,
                stacklevel=2,
            )
        return labels

    def _judged(self, log_votes, new, n_threads):
        """Clusters and labels of new points, and which of them nobody votes for."""
        alone = np.isneginf(log_votes.max(axis=1))
        clusters = np.argmax(log_votes, axis=1)
        if alone.any():
            clusters[alone] = np.argmax(self._left_out.shares)
        labels = clusters.copy()
        if self.noise_ is not None:
            labels[self.noise_.marks_new(new, n_threads)] = -1
        return clusters, labels, alone

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probability of every cluster: powers of the weighted votes, normalised.

        The power, and how far votes are to be trusted at all, are learned from the
        votes of the points of the fit for each other, so that the largest probability
        is the share of points for which such a vote agrees with the label. A row of the
        fit is judged as any new point is, its own vote included; ``probabilities_``
        leaves it out.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features) or (n_new, n_samples)
            New points as for ``predict``.

        Returns
        -------
        probabilities : ndarray of shape (n_new, n_clusters)
            Rows sum to 1 and are largest at the cluster that is voted for, whether the
            point is noise or not. Where nobody votes they are the parts of the clusters
            in the weights.
        """
        check_is_fitted(self, "labels_")
        left_out = self._left_out
        of_votes = left_out.calibration.probabilities
        return self._from_votes(X, lambda votes, _: of_votes(votes, left_out.shares))

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Logarithm of the weighted kernel votes of every cluster.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features) or (n_new, n_samples)
            New points as for ``predict``.

        Returns
        -------
        log_votes : ndarray of shape (n_new, n_clusters)
            -inf for a cluster none of whose points carries weight.
        """
        check_is_fitted(self, "labels_")
        return self._from_votes(X, lambda votes, _: votes)

    def score_samples(self, X: ArrayLike) -> NDArray[np.float64]:
        """Logarithm of the weighted kernel density.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features) or (n_new, n_samples)
            New points as for ``predict``.

        Returns
        -------
        log_density : ndarray of shape (n_new,)
            For the Gaussian kernel with one bandwidth the density integrates to 1; for
            other kernels it is the sum of the votes.
        """
        check_is_fitted(self, "labels_")
        normaliser = self._votes.log_normaliser(self.n_features_in_)
        return self._from_votes(
            X, lambda votes, _: logsumexp(votes, axis=1) + normaliser
        )

    @said_in_words("Voting for so many points")
    def _from_votes(self, X, function):
        """``function`` of log votes for rows of X, and of these, a part at a time.

        Nothing is made of all rows but the result: X may be a memory map.
        """
        n_threads = resolve_n_threads(self.n_threads)
        checked = not can_be_cut(X)
        if checked:
            X = self._check_data(X, reset=False)
        n, found = X.shape[0], None
        for rows in parts_of_rows(X):
            with one_thread_if_forked(), said_of_rows(rows):
                part = getattr(X, "iloc", X)[rows]
                if not checked:
                    first = rows.start == 0
                    part = self._check_data(part, reset=False if first else None)
                part = self.representation_.of_checked(part, n_threads)
                values = function(self._votes.log_votes(part, n_threads), part)
            if found is None:
                shape = n, *values.shape[1:]
                check_memory(8 * math.prod(shape), "The result", "Use fewer rows.")
                found = np.empty(shape, dtype=values.dtype)
            found[rows] = values
        return found
