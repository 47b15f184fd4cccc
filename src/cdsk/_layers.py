# SPDX-License-Identifier: BSD-3-Clause
"""Nested partitions of a fit, from coarse to fine (tests/test_layers.py).

*Leaves* are a finer partition: k-means on more eigenvectors of the learned similarity
S. A center belongs to the cluster of the fit that most of its points are in, and every
point to the nearest center of its own cluster, so that a cluster is a union of leaves.

*Merges.* With W(A, B) the sum of S between two groups of points, and v(A) that between
A and all points, a merge of A and B increases the normalized cut per cluster by

    h = W(A, A) / v(A) + W(B, B) / v(B) - W(A u B, A u B) / v(A u B):

1 if no point of A is similar to one of B, 0 if they are as similar as points of A are.
The pair of smallest h is merged, first within the clusters of the fit, so that these
are a layer, then between them. If no two groups are connected, those with the smallest
mean squared distance D between their points are merged.

*Heights.* That of a merge is log(1 + D / s) - log(max(1 - h, 0.0001)), s being D of
points of the same leaf: groups are far apart if hardly anything connects them, and if
they are far in the data. A merge that would be lower than the one before it has the
same height. docs/notes/2026-11-19-layers.md compares alternatives.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import cdist

from cdsk._eigensolvers import ROUGH
from cdsk._neighbors import NeighborIndex, PrecomputedNeighbors, entry_rows
from cdsk._operators.base import Array, Similarity
from cdsk._preprocessing import Points
from cdsk._settings import Settings
from cdsk._spectral import assign_labels, relabel_by_appearance, spectral_step
from cdsk._utils import check_memory, warn
from cdsk._validation import check_integer

Labels = NDArray[np.int64]

# Most leaves of few clusters, and of many: at most two per cluster.
_MAX_LEAVES, _MAX_LEAVES_OF_MANY = 50, 200
# Fewest points per leaf on average.
_MIN_POINTS = 5
# Squares below this fraction of the largest are rounding errors.
_ROUNDING = 1e-12
# Of 1 - h in the height: less is a few edges, whatever they weigh.
_MIN_LINK = 1e-4
# Most layers that are worth reading, and their least persistence, relative to the mean.
_MAX_LEVELS, _MIN_PERSISTENCE = 5, 2.0


@dataclass(frozen=True, repr=False, eq=False)
class Layers:
    """Nested partitions of a fit, each a union of the clusters of the next.

    They are the cuts of a binary tree of leaves. Its nodes are numbered as in SciPy:
    leaves from 0, then the merges in their order; the last one holds all points.

    Attributes
    ----------
    linkage : ndarray of shape (n_leaves - 1, 4)
        Linkage matrix of the leaves for ``scipy.cluster.hierarchy``: the two nodes of
        each merge, its height and its number of leaves.
    leaves : ndarray of shape (n_samples,)
        Leaf of each row, noise included.
    clusters : ndarray of shape (n_leaves,)
        Cluster of the fit that each leaf is a part of.
    sizes : ndarray of shape (n_nodes,)
        Number of rows of each node, by their weights, without noise.
    is_noise : ndarray of shape (n_samples,)
        Whether each row has the label -1 in all layers.
    """

    linkage: Array
    leaves: Labels
    clusters: Labels
    sizes: Array
    is_noise: NDArray[np.bool_]

    @property
    def n_leaves(self) -> int:
        """Number of clusters of the finest layer."""
        return len(self.clusters)

    @property
    def n_clusters(self) -> int:
        """Number of clusters of the layer that is the partition of the fit."""
        return int(self.clusters[-1]) + 1

    @property
    def persistence(self) -> Array:
        """How much higher each node is merged than it was made (n_nodes,).

        Infinite for the last one.
        """
        made = np.concatenate([np.zeros(self.n_leaves), self.linkage[:, 2]])
        merged = np.full(len(made), np.inf)
        merged[self.linkage[:, :2].astype(np.intp)] = self.linkage[:, 2:3]
        return np.asarray(merged - made)

    @property
    def layer_persistence(self) -> Array:
        """Range of heights in which each layer is the cut (n_leaves + 1,).

        By its number of clusters; infinite for one cluster, 0 for none and for the
        finest layer, whose end depends on how fine it is.
        """
        gaps = np.diff(self.linkage[:, 2], append=np.inf)
        return np.concatenate([[0.0], gaps[::-1], [0.0]])

    @property
    def places(self) -> Array:
        """Place of each node in a drawing of the tree without crossings (n_nodes,).

        Leaves have the places 0, 1, ...; a merge is in the middle of its two nodes.
        """
        n, places = self.n_leaves, np.empty(len(self.sizes))
        merges = self.linkage[:, :2].astype(int).tolist()
        order = [[leaf] for leaf in range(n)]
        for a, b in merges:
            first, second = sorted((order[a], order[b]), key=min)
            order.append(first + second)
        places[order[-1]] = np.arange(n)
        for i, children in enumerate(merges):
            places[n + i] = places[children].mean()
        return places

    @property
    def first_leaves(self) -> NDArray[np.intp]:
        """First leaf of each cluster of the fit (n_clusters,)."""
        return np.searchsorted(self.clusters, np.arange(self.n_clusters))

    @property
    def cluster_nodes(self) -> NDArray[np.intp]:
        """Node of each cluster of the fit (n_clusters,)."""
        return self._nodes(self.n_clusters)[self.first_leaves]

    @property
    def node_clusters(self) -> Labels:
        """Cluster of the fit that each node is a part of, -1 for more (n_nodes,)."""
        clusters = self.clusters.tolist()
        for a, b in self.linkage[:, :2].astype(int).tolist():
            clusters.append(clusters[a] if clusters[a] == clusters[b] else -1)
        return np.array(clusters)

    @property
    def levels(self) -> tuple[int, ...]:
        """Numbers of clusters of the layers that are most worth reading.

        The most persistent ones, at most five, each more than twice the mean.
        """
        persistence = self.layer_persistence[2:]
        least = _MIN_PERSISTENCE * persistence.sum() / max(len(persistence) - 1, 1)
        order = np.argsort(-persistence, kind="stable")[:_MAX_LEVELS]
        return tuple(sorted(2 + int(i) for i in order if persistence[i] > least))

    def groups(self, n_clusters: int) -> Labels:
        """Return the cluster of each leaf in a layer (n_leaves,).

        Parameters
        ----------
        n_clusters : int
            As for ``labels``.

        Returns
        -------
        groups : ndarray of shape (n_leaves,)
            Clusters are numbered by their first leaf.
        """
        name = "The number of clusters of a layer"
        k = check_integer(n_clusters, name, 1, self.n_leaves)
        return relabel_by_appearance(self._nodes(k))

    def labels(self, n_clusters: int) -> Labels:
        """Return the labels of a layer.

        Parameters
        ----------
        n_clusters : int
            Number of clusters of the layer, at most ``n_leaves``.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            -1 for noise. Those of the fit, if it has as many clusters.
        """
        return np.where(self.is_noise, -1, self.groups(n_clusters)[self.leaves])

    def to_dict(self) -> dict[str, Any]:
        """Return the tree as plain data that ``json.dumps`` accepts.

        Returns
        -------
        tree : dict
            The entry ``layers`` of a report, documented in ``docs/report.md``.
        """
        n, persistence = self.n_leaves, self.persistence.tolist()
        places = self.places.tolist()
        children = [None] * n + self.linkage[:, :2].astype(int).tolist()
        heights = [0.0] * n + self.linkage[:, 2].tolist()
        clusters = [None if y < 0 else y for y in self.node_clusters.tolist()]
        return {
            "n_clusters": self.n_clusters,
            "n_leaves": n,
            "levels": list(self.levels),
            "layer_persistence": self.layer_persistence[2:].tolist(),
            "nodes": [
                {
                    "node": i,
                    "children": children[i],
                    "cluster": clusters[i],
                    "place": places[i],
                    "size": float(size),
                    "height": heights[i],
                    "persistence": None if i == 2 * n - 2 else persistence[i],
                }
                for i, size in enumerate(self.sizes)
            ],
        }

    def _nodes(self, n_clusters: int) -> NDArray[np.intp]:
        """Return the node of each leaf in a layer."""
        node = np.arange(self.n_leaves)
        for i in range(self.n_leaves - n_clusters):
            is_child = np.isin(node, self.linkage[i, :2])
            node[is_child] = self.n_leaves + i
        return node

    def __str__(self) -> str:
        from cdsk.report._sentences import describe_layers

        return "\n".join(describe_layers(self.to_dict()))

    def __repr__(self) -> str:
        return str(self)


class LeafPredictor:
    """Leaves of new points in known clusters, so that layers are nested for them, too.

    That of the nearest point of the fit in the cluster: among the points ``X``, or, if
    these are not known, among the neighbors in a graph of distances.
    """

    def __init__(
        self, layers: Layers, points: Points, X: Any, graph: PrecomputedNeighbors | None
    ) -> None:
        self.layers, self.X, self.graph = layers, X, graph
        self.leaves = layers.leaves[points.first_row]
        self.clusters = layers.clusters[self.leaves]
        self._indices: dict[int, NeighborIndex] = {}

    def predict(self, clusters: Labels, X: Any, n_threads: int) -> Labels:
        """Return the leaf of each row of X (n_new,), given its cluster."""
        if self.graph is not None:
            return self._predict_by_graph(clusters, self.graph.kneighbors_graph(X))
        leaves = np.empty(len(clusters), dtype=np.int64)
        for y in np.unique(clusters):
            new, points = clusters == y, np.flatnonzero(self.clusters == y)
            if y not in self._indices:
                self._indices[y] = NeighborIndex(self.X[points])
            _, nearest = self._indices[y].kneighbors(X[new], 1, n_threads=n_threads)
            leaves[new] = self.leaves[points[nearest[:, 0]]]
        return leaves

    def _predict_by_graph(self, clusters: Labels, graph: sparse.csr_array) -> Labels:
        # points without neighbors in their cluster are in its first leaf
        leaves = self.layers.first_leaves[clusters]
        row, point = entry_rows(graph), graph.indices
        own = np.flatnonzero(self.clusters[point] == clusters[row])
        own = own[np.lexsort((graph.data[own], row[own]))]
        rows, first = np.unique(row[own], return_index=True)
        leaves[rows] = self.leaves[point[own[first]]]
        return leaves


def find_layers(
    similarity: Similarity,
    points: Points,
    X: Any,
    settings: Settings,
    *,
    clusters: Labels,
    labels: Labels,
    embedding: Array,
) -> Layers:
    """Return the ``Layers`` of a fit.

    ``X`` are the points, None if they are not known; ``clusters`` without noise,
    ``labels`` and ``embedding`` are those of the rows.
    """
    m = points.multiplicity
    leaves = find_leaves(similarity, clusters[points.first_row], m, settings)
    m = np.ones(len(leaves)) if m is None else m
    n_leaves = int(leaves.max()) + 1
    owner = np.empty(n_leaves, dtype=np.int64)
    owner[leaves] = clusters[points.first_row]
    members = sparse.csr_array((m, (leaves, np.arange(len(leaves)))))
    linkage = merge_leaves(
        sum_similarities(similarity, leaves),
        _relative_distances(X, members),
        members.sum(axis=1),
        owner,
    )
    rows = _assign_rows(leaves, points, clusters, embedding)
    is_noise = labels < 0
    sizes = np.zeros(2 * n_leaves - 1)
    weights = np.where(is_noise, 0.0, points.row_weights)
    sizes[:n_leaves] = np.bincount(rows, weights, n_leaves)
    for i, children in enumerate(linkage[:, :2].astype(np.intp)):
        sizes[n_leaves + i] = sizes[children].sum()
    return Layers(linkage, rows, owner, sizes, is_noise)


def find_leaves(
    similarity: Similarity,
    clusters: Labels,
    multiplicity: Array | None,
    settings: Settings,
) -> Labels:
    """Return the leaf of each point; the ``clusters`` of the fit are unions of leaves.

    Leaves are numbered by cluster, and within it in the order in which they appear.
    """
    n, n_clusters = len(clusters), int(clusters.max()) + 1
    n_leaves = max(_MAX_LEAVES, min(2 * n_clusters, _MAX_LEAVES_OF_MANY))
    n_leaves = max(min(n_leaves, n // _MIN_POINTS), 2)
    if n_leaves <= n_clusters:
        return clusters
    check_memory(24 * n * n_leaves, "The leaves", "Use fewer points.")
    # the layers are those of the fit, not of a seed
    rng = np.random.RandomState(0)
    solver = settings.eigen_solver
    embedding = spectral_step(similarity, n_leaves, rng, solver=solver, tol=ROUGH)
    if embedding.convergence_message is not None:
        warn(embedding.convergence_message)
    found = assign_labels(
        embedding.vectors,
        "kmeans",
        n_init=settings.n_init,
        random_state=rng,
        multiplicity=multiplicity,
    )
    m = np.ones(n) if multiplicity is None else multiplicity
    members = sparse.csr_array((m, (found, np.arange(n))))
    per_cluster = (members @ (clusters[:, np.newaxis] == np.arange(n_clusters))).T
    owner, Y = np.argmax(per_cluster, axis=0), embedding.vectors.T
    centers = (members @ Y) / members.sum(axis=1)[:, np.newaxis]
    leaves = np.empty(n, dtype=np.int64)
    for y in range(n_clusters):
        own, points = np.flatnonzero(owner == y), np.flatnonzero(clusters == y)
        # a cluster without a center is a leaf
        leaves[points] = len(owner) + y
        if len(own):
            leaves[points] = own[cdist(Y[points], centers[own]).argmin(axis=1)]
    numbers = clusters * np.int64(n) + relabel_by_appearance(leaves)
    return np.asarray(np.unique(numbers, return_inverse=True)[1], dtype=np.int64)


def sum_similarities(similarity: Similarity, leaves: Labels) -> Array:
    """Return the sum of S between two leaves (n_leaves, n_leaves)."""
    degrees = np.where(similarity.isolated, 0.0, similarity.degrees)
    members = leaves == np.arange(leaves.max() + 1)[:, np.newaxis]
    vectors = np.where(members, np.sqrt(degrees), 0.0)
    sums = similarity.normalized_product(vectors) @ vectors.T
    return np.asarray(0.5 * (sums + sums.T))


def _relative_distances(X: Any, members: sparse.csr_array) -> Array:
    """Return the mean squared distances of points of two leaves, over that of one.

    ``members`` (n_leaves, n_points) are the multiplicities. 1 if X is None.
    """
    n_leaves, masses = members.shape[0], members.sum(axis=1)
    if X is None:
        return np.ones((n_leaves, n_leaves))
    check_memory(16 * X.shape[0] * X.shape[1], "The layers", "Use fewer points.")
    # centered, as differences of large squares would be rounded
    Z = X if sparse.issparse(X) else X - np.asarray(X, dtype=np.float64).mean(axis=0)
    squares = Z.multiply(Z).sum(axis=1) if sparse.issparse(Z) else (Z**2).sum(axis=1)
    sums = members @ Z
    means = sums.toarray() if sparse.issparse(sums) else sums
    means = means / masses[:, np.newaxis]
    variances = (members @ squares) / masses - np.square(means).sum(axis=1)
    variances = np.maximum(variances, 0.0)
    distances = cdist(means, means, "sqeuclidean")
    distances += variances[:, np.newaxis] + variances
    within = 2.0 * np.average(variances, weights=masses)
    if within <= _ROUNDING * distances.max():  # leaves of equal points
        within = distances.mean()
    return np.asarray(distances / (within or 1.0))


def merge_leaves(W: Array, D: Array, masses: Array, owner: Labels) -> Array:
    """Return the linkage matrix of leaves, those of the same owner merged first.

    ``W`` are sums of similarities, ``D`` relative squared distances.
    """
    n, n_owners = len(W), len(np.unique(owner))
    W, D, masses = W.copy(), D.copy(), masses.copy()
    linkage, node, count = np.zeros((n - 1, 4)), np.arange(n), np.ones(n)
    increase = np.array([_cut_increase(W, a) for a in range(n)])
    is_group = np.ones(n, dtype=bool)
    is_allowed = np.triu(owner[:, np.newaxis] == owner, 1)
    for i in range(n - 1):
        if i == n - n_owners:
            is_allowed = np.triu(is_group[:, np.newaxis] & is_group, 1)
        cost = np.where(is_allowed & (W > 0), increase, np.inf)
        if np.isinf(cost.min()):
            cost = np.where(is_allowed, D, np.inf)
        a, b = np.unravel_index(np.argmin(cost), cost.shape)
        height = np.log1p(D[a, b]) - np.log(np.clip(1 - increase[a, b], _MIN_LINK, 1))
        count[a] += count[b]
        linkage[i] = *sorted([node[a], node[b]]), height, count[a]
        node[a], is_group[b] = n + i, False
        W[a] += W[b]
        W[:, a] += W[:, b]
        W[b] = W[:, b] = 0.0
        D[a] = D[:, a] = (masses[a] * D[a] + masses[b] * D[b]) / (masses[a] + masses[b])
        masses[a] += masses[b]
        is_allowed[b] = is_allowed[:, b] = False
        increase[a] = increase[:, a] = _cut_increase(W, a)
    linkage[:, 2] = np.maximum.accumulate(linkage[:, 2])
    return linkage


def _cut_increase(W: Array, a: np.integer | int) -> Array:
    """Return h of a merge of group a with each (n,), 1 where W is 0."""
    inside, volume = W.diagonal(), np.maximum(W.sum(axis=1), np.finfo(float).tiny)
    increase = inside[a] / volume[a] + inside / volume
    increase -= (inside[a] + inside + 2.0 * W[a]) / (volume[a] + volume)
    return np.where(W[a] > 0, increase, 1.0)


def _assign_rows(
    leaves: Labels, points: Points, clusters: Labels, embedding: Array
) -> Labels:
    """Return the leaf of every row.

    A row of weight 0 has that of the nearest point of its cluster in the embedding.
    """
    rows = leaves[points.inverse]
    zero, first = points.zero_weight_rows, points.first_row
    for y in np.unique(clusters[zero]):
        own, members = zero[clusters[zero] == y], np.flatnonzero(clusters[first] == y)
        index = NeighborIndex(np.ascontiguousarray(embedding[first[members]]))
        _, nearest = index.kneighbors(embedding[own], 1)
        rows[own] = leaves[members[nearest[:, 0]]]
    return rows
