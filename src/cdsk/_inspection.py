# SPDX-License-Identifier: BSD-3-Clause
"""Points of a fit: what a fitted model says of them (tests/test_prediction.py)."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from cdsk._choices.candidates import Precomputed
from cdsk._runtime import one_thread_if_forked, said_in_words
from cdsk._validation import Data

if TYPE_CHECKING:  # most fits are asked for neither, and imports take their time
    from cdsk._explain.report import Report
    from cdsk.theory import GeneralizationBound


class Inspection(BaseEstimator):
    """What there is to ask about a fit once it is made."""

    @property
    def probabilities_(self) -> NDArray[np.float64]:
        """Probability of the cluster of each point by the votes of the others."""
        check_is_fitted(self, "labels_")
        return np.where(self.labels_ < 0, 0.0, self._left_out.probabilities())

    @property
    def outlier_scores_(self) -> NDArray[np.float64]:
        """1 for a point that no other votes for, 1/2 for one of typicality 1."""
        check_is_fitted(self, "labels_")
        return 1.0 / (1.0 + self.typicality_)

    def report(
        self,
        X: Any = None,
        *,
        feature_names: Iterable[str] | None = None,
        row_names: Iterable[object] | None = None,
    ) -> "Report":
        """Summary of the fit: what was chosen and why, and what to trust.

        ``print`` shows it in words, ``to_dict`` has it as plain data, ``to_html`` makes
        a page of it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_columns), default=None
            What typical rows and outliers are to be shown with: the data, or any other
            table of the same rows. None shows their numbers alone.
        feature_names : iterable of str, default=None
            Names of the columns of X; None takes those of a data frame, or of ``fit``.
        row_names : iterable, default=None
            Names of the rows; None takes the index of a pandas frame, unless it only
            counts, or their numbers, from 0.

        Returns
        -------
        report : Report
        """
        from cdsk._explain.report import report_of

        check_is_fitted(self, "labels_")
        return report_of(self, X, feature_names, row_names)

    @said_in_words("The bound for so many points")
    def generalization_bound(
        self, X: Data | None = None, *, gamma: float = 1.0, delta: float = 0.05
    ) -> "GeneralizationBound":
        """Terms of the paper's bound on the error of the votes.

        The bound is for votes by the kernel matrix of the fit. ``predict`` votes alike,
        but for a kernel that is truncated to neighbours, as the default one is: there
        it counts the neighbours of the new point alone, while the matrix is symmetric,
        so that points also count those whose neighbours they are, and its diagonal was
        raised until it was semi-definite. For these the bound is one for a relative
        of ``predict``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, n_samples)
            What the model was fitted to. Needed if ``kernel="precomputed"``, as kernel
            matrices are not kept; else None means the data kept by ``fit``.
        gamma : float, default=1.0
            Margin at which a point costs nothing, in the unit of the kernel; where its
            largest value is below 1e-100 or above 1e100, in the power of two below it.
        delta : float in (0, 1], default=0.05
            Probability with which the bound may fail.

        Returns
        -------
        bound : GeneralizationBound
            See ``cdsk.theory.generalization_bound``.
        """
        from cdsk.theory import generalization_bound

        check_is_fitted(self, "labels_")
        K = self._points.between_rows(self._kernel_of(X).as_array())
        kept = self._points.rows
        labels, weights = self.clusters_[kept], self.weights_[kept]
        if self._points.masses is not None:
            weights = weights / weights.sum()
        with one_thread_if_forked():
            return generalization_bound(K, labels, weights, gamma=gamma, delta=delta)

    @said_in_words("The similarity of so many points")
    def similarity_operator(self, X: Data | None = None) -> LinearOperator:
        """The normalised similarity, whose leading eigenvectors are the embedding.

        ``D^-1/2 S D^-1/2`` with the discriminative similarity S of the chosen kernel
        and the learned weights, its diagonal left out, and its row sums D.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, n_samples)
            As for ``generalization_bound``.

        Returns
        -------
        operator : scipy.sparse.linalg.LinearOperator of shape (n_samples, n_samples)
        """
        check_is_fitted(self, "labels_")
        kernel = self._kernel_of(X)
        points, n = self._points, len(self.labels_)
        weights = points.from_rows(self.weights_)
        if points.masses is not None:
            weights = weights / weights.sum()
        similarity = kernel.similarity(weights, kernel.n * self.lam_)

        def product(columns):
            columns = np.asarray(columns, dtype=float)
            vectors = points.folded(columns.reshape(n, -1)).T
            image = similarity.normalised_product(np.ascontiguousarray(vectors))
            return points.unfolded(image.T).reshape(columns.shape)

        return LinearOperator((n, n), matvec=product, matmat=product, dtype=float)

    def _kernel_of(self, X=None):
        """The chosen kernel of the points of the fit."""
        candidate = self._candidate
        if X is not None:
            X = self._check_data(X, reset=False)
            if X.shape[0] != len(self.labels_):
                raise ValueError(
                    "X must be what the model was fitted to, with "
                    f"{len(self.labels_)} rows; got {X.shape[0]}."
                )
        if isinstance(candidate, Precomputed):
            if X is None:
                raise ValueError(
                    "X must be the kernel matrix that the model was fitted to, since "
                    "precomputed matrices are not kept; got None."
                )
            candidate = replace(candidate, matrix=X)
        with one_thread_if_forked():
            return candidate.kernel()
