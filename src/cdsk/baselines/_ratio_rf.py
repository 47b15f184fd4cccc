# SPDX-License-Identifier: BSD-3-Clause
"""Affinity from tests in random trees answered alike, Bicego et al. (2021)."""

import math

import numpy as np
from sklearn.tree import ExtraTreeRegressor

from cdsk._runtime import check_memory
from cdsk._validation import check_integer
from cdsk.baselines._base import AffinityBaseline
from cdsk.baselines._forest import Leaves, unit_features


class RatioRF(AffinityBaseline):
    """Spectral clustering of the tests that points answer alike in random trees.

    Each tree is grown on a sample without any target: a feature at random, a threshold
    at random between its least and largest value in the node. With T_t(x) the tests on
    the way of x through tree t, the similarity is Tversky's ratio ::

        s(x, y) = mean_t  |tests of T_t(x) u T_t(y) that x and y answer alike|
                          / |T_t(x) u T_t(y)|

    where x also answers tests that are on the way of y only. D = sqrt(1 - s) is the
    distance RatioRF, and W = exp(-D^2 / 2) the affinity. Units and origins of features
    change nothing.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_estimators : int, default=100
        Trees.
    max_samples : int, default=256
        Points on which a tree is grown, drawn without replacement; all, if there are
        fewer.
    max_depth : int, default=None
        Tests on a path at most; None is log2 of the size of the samples. Many of those
        are made inside of clusters, which is noise: measured, three of 90 points of
        separate blobs have the wrong label, with 5 none.
    assign_labels : {"kmeans", "cluster_qr", "discretize", "auto"}, default="kmeans"
        As in ``CDSK``.
    n_init : int, default=20
        Starts of k-means.
    random_state : int, RandomState or None, default=None
        Seed of the trees and the starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each point.
    affinity_matrix_ : ndarray of shape (n_samples, n_samples)
        W.

    Notes
    -----
    With T trees of l leaves and depth h it takes O(T n (n + l h)) and 16 n^2 bytes:
    2 s on one core for 3000 points of 2000 features.

    References
    ----------
    M. Bicego, F. Cicalese, A. Mensi. RatioRF: a novel measure for random forest
    clustering based on the Tversky's ratio model. IEEE Transactions on Knowledge and
    Data Engineering, 2021.
    """

    random_affinity = True

    def __init__(
        self,
        n_clusters=8,
        *,
        n_estimators=100,
        max_samples=256,
        max_depth=None,
        assign_labels="kmeans",
        n_init=20,
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.max_depth = max_depth
        self.assign_labels = assign_labels
        self.n_init = n_init
        self.random_state = random_state

    def _check_parameters(self):
        super()._check_parameters()
        check_integer(self.n_estimators, "n_estimators", 1, 10**6)
        check_integer(self.max_samples, "max_samples", 2)
        if self.max_depth is not None:
            check_integer(self.max_depth, "max_depth", 1, 10**6)

    def _affinity_of(self, X, rng):
        n = len(X)
        check_memory(16 * n * n, "The affinity of all pairs", "Use fewer points.")
        X = unit_features(X)
        features = np.ascontiguousarray(X.T)
        W = np.zeros((n, n))
        for _ in range(self.n_estimators):
            add_halves_of_ratios(W, self._tree(X, rng), X, features)
        W += W.T
        # exp(-D^2 / 2), in place
        W /= 2 * self.n_estimators
        W -= 0.5
        return np.exp(W, out=W)

    def _tree(self, X, rng):
        """A completely random tree of a sample."""
        size = min(self.max_samples, len(X))
        sample = X[rng.permutation(len(X))[:size]]
        depth = self.max_depth or math.ceil(math.log2(size))
        options = {"max_features": 1, "max_depth": depth, "random_state": rng}
        # one feature is tried, so that targets decide nothing
        targets = rng.uniform(size=size)
        return ExtraTreeRegressor(**options).fit(sample, targets, check_input=False)


def add_halves_of_ratios(total, tree, X, features):
    """Add to ``total`` (n, n) a matrix that with its transpose is the ratios of a tree.

    ``features`` is the transpose of X.
    """
    leaves = Leaves(tree, X)
    leaf, tests = leaves.of_point, np.flatnonzero(tree.tree_.feature >= 0)
    if len(tests) == 0:  # all points are equal, to this tree
        total += 0.5
        return
    thresholds = tree.tree_.threshold[tests, None]
    yes = features[tree.tree_.feature[tests]] <= thresholds
    answers = np.where(yes, np.float32(1), np.float32(-1))  # (tests, n)
    paths = leaves.paths[:, tests]
    answered = paths.multiply(answers[:, leaves.example].T).tocsr()
    depth = paths.sum(axis=1, dtype=np.float64)
    by_leaf = paths.T.tocsr()
    number = np.arange(len(depth))

    def rows_of(some):
        own = depth[some, None]
        common = (paths[some] @ by_leaf).toarray()
        union = own + depth - common
        # of the tests of both all are answered alike but the last, at which they part
        alike_common = common - (number[some, None] != number)
        # each point has the tests of its own path, and half of those of both
        alike = (answered[some] @ answers + own - alike_common[:, leaf]) / 2
        return alike / union[:, leaf]

    leaves.add_rows(total, rows_of)
