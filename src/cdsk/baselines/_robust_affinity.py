# SPDX-License-Identifier: BSD-3-Clause
"""Affinity from the paths that points share in a forest, Zhu, Loy & Gong (2014)."""

import numpy as np
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier

from cdsk._runtime import check_memory
from cdsk._validation import check_choice, check_integer
from cdsk.baselines._base import AffinityBaseline
from cdsk.baselines._forest import Leaves, unit_features

AFFINITIES = ("weighted", "path")


class RobustAffinityGraph(AffinityBaseline):
    """Spectral clustering of the paths that points share in a forest (RAG).

    A random forest learns to tell the points from as many synthetic ones, each feature
    of which is drawn from the values of that feature alone (Breiman's unsupervised
    forest). Its trees so split where features depend on each other, and features
    without structure hardly count. With P_t(x) the nodes from the root of tree t,
    without it, to the leaf of x, the leaf included, the affinity is ::

        W(x, y) = mean_t  w(P_t(x) n P_t(y)) / max(w(P_t(x)), w(P_t(y)))

    where w sums the weights of nodes: 1 / (number of points that pass a node), or 1.
    Of each row the largest entries stay, W = max(W, W').

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_estimators : int, default=200
        Trees of the forest.
    affinity : {"weighted", "path"}, default="weighted"
        Weights of nodes: variant 3 of the paper (ClustRF-Strct with adaptive
        weights), or variant 2, all 1.
    n_neighbors : int, default=10
        Entries that stay in each row, the diagonal not counted.
    min_samples_leaf : int, default=1
        Fewest points of a leaf, true and synthetic.
    assign_labels : {"kmeans", "cluster_qr", "discretize", "auto"}, default="kmeans"
        As in ``CDSK``.
    n_init : int, default=10
        Starts of k-means.
    random_state : int, RandomState or None, default=None
        Seed of the synthetic points, the forest and the starts.

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
    all for the forest. As no feature alone tells true points from synthetic ones, the
    first splits are next to random, and a hundred points with ten times as many useless
    features as useful ones may be too few.

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

    def _affinity_of(self, X, rng):
        n = len(X)
        check_memory(16 * n * n, "The affinity of all pairs", "Use fewer points.")
        X = unit_features(X)
        W = np.zeros((n, n))
        for tree in self._forest(X, rng):
            add_shared_paths(W, Leaves(tree, X), weighted=self.affinity == "weighted")
        W /= self.n_estimators
        return _nearest(W, min(self.n_neighbors, n - 1))

    def _forest(self, X, rng):
        """Trees that tell X from points whose features are independent."""
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
        passing = np.bincount(leaves.of_point) @ paths
        weights /= np.maximum(passing, 1)
    weights[0] = 0.0  # the root, which all share
    lengths = paths @ weights
    nodes = (paths @ sparse.diags_array(weights)).T.tocsr()

    def rows_of(some):
        shared = (paths[some] @ nodes).toarray()
        longest = np.maximum(lengths[some, None], lengths)
        # a tree of one leaf: all are together
        rows = np.divide(shared, longest, out=np.ones_like(shared), where=longest > 0)
        return rows[:, leaves.of_point]

    leaves.add_rows(total, rows_of)


def _nearest(W, k):
    """The k largest entries of each row beside the diagonal, symmetric, as CSR."""
    n = len(W)
    np.fill_diagonal(W, -1.0)
    columns = np.argpartition(W, n - k, axis=1)[:, n - k :]
    values = np.take_along_axis(W, columns, axis=1)
    rows = np.repeat(np.arange(n), k)
    kept = sparse.csr_array((values.ravel(), (rows, columns.ravel())), shape=(n, n))
    return kept.maximum(kept.T).tocsr()
