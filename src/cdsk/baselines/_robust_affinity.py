# SPDX-License-Identifier: BSD-3-Clause
"""Affinity by shared paths in a random forest, Zhu, Loy & Gong (2014)."""

import numpy as np
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier

from cdsk._utils import check_memory
from cdsk._validation import check_choice, check_integer
from cdsk.baselines._base import AffinityBaseline
from cdsk.baselines._forest import Leaves, scale_features

AFFINITIES = ("weighted", "path")


class RobustAffinityGraph(AffinityBaseline):
    """Spectral clustering of shared paths in a random forest (RAG).

    A random forest learns to distinguish the points from as many synthetic ones, whose
    features are drawn independently from their marginal distributions (Breiman's
    unsupervised forest). Its trees split where features depend on each other, and
    features without structure have little effect. With P_t(x) the nodes of tree t on
    the path to the leaf of x, without the root, the affinity is ::

        W(x, y) = mean_t  w(P_t(x) n P_t(y)) / max(w(P_t(x)), w(P_t(y)))

    where w sums the weights of nodes: 1 / (number of points in the node), or 1. The
    largest entries of each row are kept, and W = max(W, W').

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_estimators : int, default=200
        Number of trees.
    affinity : {"weighted", "path"}, default="weighted"
        Weights of nodes: variant 3 of the paper (ClustRF-Strct with adaptive
        weights), or variant 2 (all 1).
    n_neighbors : int, default=10
        Number of off-diagonal entries that are kept in each row.
    min_samples_leaf : int, default=1
        Minimum number of points of a leaf, true and synthetic.
    assign_labels : {"kmeans", "cluster_qr", "discretize", "auto"}, default="kmeans"
        As in ``CDSK``.
    n_init : int, default=10
        Number of k-means initializations.
    random_state : int, RandomState or None, default=None
        Seed of the synthetic points, the forest and k-means.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each point.
    affinity_matrix_ : csr_array of shape (n_samples, n_samples)
        W.

    Notes
    -----
    With T trees of h levels the forest takes O(T n log(n) h sqrt(d)), the affinity
    O(T n^2) and 16 n^2 bytes: 50 s on one core for 3000 points of 2000 features, nearly
    all for the forest. As no single feature distinguishes true points from synthetic
    ones, the first splits are almost random: with ten times as many irrelevant features
    as relevant ones, a hundred points may be too few.

    References
    ----------
    X. Zhu, C. C. Loy, S. Gong. Constructing robust affinity graphs for spectral
    clustering. CVPR, 2014.
    """

    random_affinity = True

    def __init__(
        self,
        n_clusters=8,
        *,
        n_estimators=200,
        affinity="weighted",
        n_neighbors=10,
        min_samples_leaf=1,
        assign_labels="kmeans",
        n_init=10,
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.n_estimators = n_estimators
        self.affinity = affinity
        self.n_neighbors = n_neighbors
        self.min_samples_leaf = min_samples_leaf
        self.assign_labels = assign_labels
        self.n_init = n_init
        self.random_state = random_state

    def _check_parameters(self):
        super()._check_parameters()
        check_integer(self.n_estimators, "n_estimators", 1, 10**6)
        check_choice(self.affinity, "affinity", AFFINITIES)
        check_integer(self.n_neighbors, "n_neighbors", 1)
        check_integer(self.min_samples_leaf, "min_samples_leaf", 1)

    def _compute_affinity(self, X, rng):
        n = len(X)
        check_memory(16 * n * n, "The affinity of all pairs", "Use fewer points.")
        X = scale_features(X)
        W = np.zeros((n, n))
        for tree in self._grow_trees(X, rng):
            add_shared_paths(W, Leaves(tree, X), weighted=self.affinity == "weighted")
        W /= self.n_estimators
        return _keep_nearest(W, min(self.n_neighbors, n - 1))

    def _grow_trees(self, X, rng):
        """Return trees that distinguish X from points with independent features."""
        synthetic = np.take_along_axis(X, rng.randint(len(X), size=X.shape), axis=0)
        forest = RandomForestClassifier(
            self.n_estimators,
            min_samples_leaf=self.min_samples_leaf,
            random_state=rng,
        )
        forest.fit(np.concatenate([X, synthetic]), np.arange(2 * len(X)) < len(X))
        return forest.estimators_


def add_shared_paths(total, leaves, weighted):
    """Add to ``total`` (n, n) the affinities of all points in one tree."""
    paths = leaves.paths
    weights = np.ones(paths.shape[1])
    if weighted:
        n_points = np.bincount(leaves.leaf_of) @ paths
        weights /= np.maximum(n_points, 1)
    weights[0] = 0.0  # the root, which all paths share
    lengths = paths @ weights
    nodes = (paths @ sparse.diags_array(weights)).T.tocsr()

    def compute_rows(batch):
        shared = (paths[batch] @ nodes).toarray()
        longest = np.maximum(lengths[batch, None], lengths)
        # 1 in a tree with a single leaf
        rows = np.divide(shared, longest, out=np.ones_like(shared), where=longest > 0)
        return rows[:, leaves.leaf_of]

    leaves.add_rows(total, compute_rows)


def _keep_nearest(W, k):
    """Return the k largest off-diagonal entries of each row, symmetrized, as CSR."""
    n = len(W)
    np.fill_diagonal(W, -1.0)
    columns = np.argpartition(W, n - k, axis=1)[:, n - k :]
    values = np.take_along_axis(W, columns, axis=1)
    rows = np.repeat(np.arange(n), k)
    kept = sparse.csr_array((values.ravel(), (rows, columns.ravel())), shape=(n, n))
    return kept.maximum(kept.T).tocsr()
