# SPDX-License-Identifier: BSD-3-Clause
"""New points: what a fitted model says of them."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted

from cdsk._choices.candidates import TruncatedGaussian
from cdsk._kernels.neighbours import PointSearch
from cdsk._runtime import check_memory, one_thread_if_forked, said_in_words
from cdsk._threads import resolve_n_threads
from cdsk._validation import Data, can_be_cut, parts_of_rows, said_of_rows
from cdsk._warn import warn


def search_among(candidate):
    """The search among the points of a fit by a candidate; None if it has none.

    It is the one that asks for their scales, if there is one: what is made for the
    first new point serves all.
    """
    if isinstance(candidate, TruncatedGaussian):
        neighbours = candidate.graph.neighbours
        if isinstance(neighbours, PointSearch):
            return neighbours
    return None if candidate.points is None else PointSearch(candidate.points)


class Prediction(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What the votes of the points of a fit say of new ones."""

    def predict(self, X: Data) -> NDArray[np.int64]:
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

        def label(part):
            nonlocal lost
            votes = self._votes.log_votes(part, n_threads)
            _, labels, alone = self._judged(votes, part, n_threads)
            lost += np.count_nonzero(alone & (labels >= 0))
            return labels

        labels = self._of_rows(X, label)
        if lost:
            warn(
                f"{lost} of {len(labels)} points have no similarity to any "
                "training point and took the label of the heaviest cluster.",
                UserWarning,
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

    def predict_proba(self, X: Data) -> NDArray[np.float64]:
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
        return self._from_votes(X, lambda votes: of_votes(votes, left_out.shares))

    def decision_function(self, X: Data) -> NDArray[np.float64]:
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
        return self._from_votes(X, lambda votes: votes)

    def score_samples(self, X: Data) -> NDArray[np.float64]:
        """Logarithm of the weighted kernel density.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features) or (n_new, n_samples)
            New points as for ``predict``.

        Returns
        -------
        log_density : ndarray of shape (n_new,)
            For the Gaussian kernel with one bandwidth the density integrates to 1 over
            points as they are represented; for other kernels it is the sum of the
            votes.
        """
        check_is_fitted(self, "labels_")
        points = self._candidate.points
        n_features = self.n_features_in_ if points is None else points.shape[1]
        normaliser = self._votes.log_normaliser(n_features)
        return self._from_votes(X, lambda votes: logsumexp(votes, axis=1) + normaliser)

    def transform(self, X: Data) -> NDArray[np.float64]:
        """Spectral embedding of new points, by their votes.

        The rows Y of the embedding, before they get unit length, satisfy
        ``theta Y_i = sum_j S_ij Y_j / sum_j S_ij``. A new point has no weight of its
        own, so that its similarities are the votes for it: its place is the mean of
        those of the points of the fit by their votes, over the eigenvalues theta, on
        the unit sphere (Nyström). This would be exact for a point of the fit without
        weight, if the kernel of a new point were that of the fit, which is made
        symmetric where it is truncated to neighbours.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features) or (n_new, n_samples)
            New points as for ``predict``.

        Returns
        -------
        embedding : ndarray of shape (n_new, n_components)
            As many columns as ``embedding_``. A row that equals one of the fit has the
            same place as there, unless the kernel is precomputed, which does not tell.
            Where nobody votes there are zeros.
        """
        check_is_fitted(self, "labels_")
        return self._of_rows(X, self._placed())

    def fit_transform(
        self, X: Data, y: object = None, sample_weight: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Cluster X and return ``embedding_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, n_samples)
            As for ``fit``.
        y : Ignored
            Present for the scikit-learn API.
        sample_weight : array-like of shape (n_samples,), default=None
            As for ``fit``.

        Returns
        -------
        embedding : ndarray of shape (n_samples, n_components)
        """
        return self.fit(X, sample_weight=sample_weight).embedding_

    @property
    def _n_features_out(self):
        return self.embedding_.shape[1]

    def _placed(self):
        """A function from new points, as they are represented, to their places."""
        n_threads = resolve_n_threads(self.n_threads)
        theta, search = self.eigenvalues_, self._search
        # an eigenvector of 0 is not a mean of anything
        inverse = np.divide(1.0, theta, out=np.zeros_like(theta), where=theta != 0)
        values = self._points.from_rows(self.embedding_)
        values *= self._lengths[:, np.newaxis]

        def place(new):
            found = self._votes.mean(new, values, n_threads) * inverse
            lengths = np.linalg.norm(found, axis=1, keepdims=True)
            found /= np.where(lengths > 0, lengths, 1.0)
            if search is not None:
                nearest, distances = search.nearest_to(new, 1, n_threads)
                same = distances[:, 0] == 0
                equal = self._points.row_of[nearest[same, 0]]
                found[same] = self.embedding_[equal]
            return found

        return place

    def _from_votes(self, X, function):
        """``function`` of the log votes for rows of X."""
        n_threads = resolve_n_threads(self.n_threads)
        return self._of_rows(
            X, lambda part: function(self._votes.log_votes(part, n_threads))
        )

    @said_in_words("Voting for so many points")
    def _of_rows(self, X, function):
        """``function`` of the rows of X, as they are represented, a part at a time.

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
                values = function(part)
            if found is None:
                shape = n, *values.shape[1:]
                check_memory(8 * math.prod(shape), "The result", "Use fewer rows.")
                found = np.empty(shape, dtype=values.dtype)
            found[rows] = values
        return found
