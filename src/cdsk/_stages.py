# SPDX-License-Identifier: BSD-3-Clause
"""Parameters of the estimator -> the stages of a fit (tests/test_estimator.py)."""

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from cdsk._choices.candidates import find_candidates
from cdsk._choices.lam import choose_lambda
from cdsk._choices.n_clusters import choose_count, default_candidates
from cdsk._choices.representation import (
    Representation,
    represent,
    represent_to_count,
)
from cdsk._kernels.neighbours import LongSearch, PointSearch
from cdsk._parameters import GIVEN
from cdsk._points import Points
from cdsk._steps.alternate import alternate
from cdsk._steps.eigen import TOLERANCE
from cdsk._steps.labels import assign_labels
from cdsk._steps.start import first_weights


class Stages(BaseEstimator):
    """What each stage of a fit is given, by the parameters."""

    # what has so many different points, in warnings
    _counted = "X"

    def _points_of(self, X, sample_weight):
        """The points of X, not yet represented."""
        if self.kernel in GIVEN:
            return Points.as_given(X, sample_weight)
        points = Points.distinct(X, sample_weight)
        return points if len(points) > 1 else points.halved()

    def _in_order(self, points, X, n_threads):
        """The points as they are represented, near ones together."""
        if self.kernel in GIVEN:
            return points
        representation = self.representation_
        points = points.near_together(representation.of_checked(points.X, n_threads))
        if len(points.lost):
            new = representation.of_checked(X[points.lost], n_threads)
            nearest, distances = PointSearch(points.X).nearest_to(new, 1, n_threads)
            points.adopt(nearest[:, 0], distances[:, 0])
        return points

    def _represent_and_count(self, points, X, rng, n_threads, progress):
        """The points as they are represented.

        Sets ``representation_``, ``n_clusters_`` and ``count_choice_``.
        """
        progress.stage("representation")
        self.count_choice_ = None
        # of two points there is nothing to count
        few = points.n_different < 3
        if few or not isinstance(self.n_clusters, str):
            counted = isinstance(self.n_clusters, str)
            self.n_clusters_ = points.n_different if counted else int(self.n_clusters)
            self._represent(points, self.n_clusters_, rng, n_threads)
            return self._in_order(points, X, n_threads)
        counts = default_candidates(len(points))
        views = self._represented(
            represent_to_count, points, int(counts[-1]), rng, n_threads
        )
        progress.stage("count", "number of clusters")
        self.count_choice_ = choose_count(points, views, counts, rng, n_threads)
        self.n_clusters_ = self.count_choice_.n_clusters
        if self.representation == "auto":
            self._represent(points, self.n_clusters_, rng, n_threads)
        else:
            (self.representation_,) = views
        return self._in_order(points, X, n_threads)

    def _represent(self, points, n_clusters, rng, n_threads):
        """Set ``representation_``."""
        self.representation_ = Representation()
        if self.kernel not in GIVEN:
            self.representation_ = self._represented(
                represent, points, n_clusters, rng, n_threads
            )

    def _represented(self, how, points, n_clusters, rng, n_threads):
        """What ``represent``, or another function of its arguments, finds."""
        view = self.representation
        # a bandwidth that was given means the data as they were given
        if view == "auto" and (self.kernel, self.bandwidth) != ("rbf", "auto"):
            view = "raw"
        more = self.n_components, points.relative_masses
        return how(points.X, n_clusters, view, rng, n_threads, *more)

    def _candidates(self, X, rng, n_threads, progress, masses=None):
        bandwidth, neighbors = self.bandwidth, self.neighbors
        n_neighbors = self.n_neighbors
        if self.kernel not in GIVEN and X.shape[0] == 2 and _are_equal(X[[0]], X[[1]]):
            # one point, halved: nothing is to be searched for, any scale will do
            neighbors = None
            bandwidth = 1.0 if bandwidth == "auto" else bandwidth
            n_neighbors = 1 if sparse.issparse(X) else n_neighbors
        return find_candidates(
            X,
            kernel=self.kernel,
            kernel_params=self.kernel_params,
            psd=self.psd,
            bandwidth=bandwidth,
            n_neighbors=n_neighbors,
            n_clusters=self.n_clusters_,
            n_features=self.representation_.n_varying,
            neighbors=neighbors,
            progress=progress.listener(LongSearch(progress.say)),
            approximation=self.approximation,
            n_components=self.n_components,
            rng=rng,
            n_threads=n_threads,
            masses=masses,
        )

    def _label(self, kernel, fit, rng, masses):
        return assign_labels(
            fit.embedding.vectors,
            self.assign_labels,
            kernel=kernel,
            masses=masses,
            n_init=self.n_init,
            random_state=rng,
        )

    def _alternate(
        self,
        kernel,
        n_clusters,
        lam,
        weights,
        max_iter,
        rng,
        progress,
        eigen_tol=TOLERANCE,
        start=None,
    ):
        return alternate(
            kernel,
            n_clusters,
            lam,
            weights,
            max_iter=max_iter,
            tol=self.tol,
            qp_tol=self.qp_tol,
            eigen_solver=self.eigen_solver,
            rng=rng,
            eigen_tol=eigen_tol,
            start=start,
            report=progress.round if progress.verbose else None,
        )

    def _choose_lambda(self, points, n_clusters, rng, n_threads, progress, **how):
        """The ``LambdaChoice``; ``how`` are grid, sample and criterion."""
        masses = points.relative_masses

        def candidates(X, rows):
            part = X[rows][:, rows] if self.kernel == "precomputed" else X[rows]
            part = part if sparse.issparse(part) else np.ascontiguousarray(part)
            theirs = None if masses is None else masses[rows]
            return self._candidates(part, rng, n_threads, progress, theirs)

        # weights given for all points are none for a sample
        init = self.init if isinstance(self.init, str) else "uniform"

        def fit(kernel, lam):
            weights = first_weights(kernel, lam, init)
            return self._alternate(
                kernel, n_clusters, lam, weights, self.max_iter, rng, progress
            )

        options = {"n_init": self.n_init, "rng": rng, **how}
        return choose_lambda(points.X, candidates, fit, n_clusters, **options)


def _are_equal(A, B):
    """Whether two sets of points, dense or sparse, are the same."""
    return (A != B).sum() == 0
