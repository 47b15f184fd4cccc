# SPDX-License-Identifier: BSD-3-Clause
"""Partitions of points by minimum spanning trees.

    neighbors --> spanning_trees --> tree_partitions --> ten labelings

The clusters of a minimum spanning tree may have any shape, as no center or kernel is
involved. There are two trees, one by distances d, and the *core tree* by mutual
reachability, max(d_ij, core_i, core_j), where core_i is the distance of point i to its
5th neighbor: it connects dense regions first (Campello, Moulavi & Sander,
Density-based clustering based on hierarchical density estimates, 2013). Along each,
``_trees.pyx`` merges clusters with a bound on the Gini index of their sizes, or cuts
edges with a bound on the mass of the pieces; both keep outliers from being clusters.

A tree is that of the neighbor graph, which has at most 20 neighbors of each point, and
not of all pairs. Connected components of the graph are connected by their closest pairs
of points, found by an exact search, as in the tree of all pairs.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.cluster.hierarchy import cophenet, linkage
from scipy.sparse.csgraph import breadth_first_order, connected_components
from scipy.spatial.distance import squareform

from cdsk._neighbors import (
    IndexArray,
    NeighborIndex,
    Neighbors,
    PrecomputedNeighbors,
    entry_ranks,
    entry_rows,
)
from cdsk._operators.base import Array, Indices
from cdsk._spectral import Labels, relabel_by_appearance
from cdsk._trees import cut_edges, merge_clusters, spanning_tree

# Neighbors of each point in the graph, and the one whose distance is that of the core.
_N_NEIGHBORS, _CORE_NEIGHBOR = 20, 5

# Limits of the Gini index, and the least mass of pieces relative to the mean cluster,
# rounded down to points of mean mass.
_GINI_LIMITS, _LEAST_SHARES = (0.1, 0.3), (0.02, 0.25, 0.5)

# Points in a piece at least, of mean mass.
_MIN_POINTS = 2

# Relative rounding error of distances, and of sums of three of them.
_ROUNDING = 1e-9

# Sizes of points are integers of at most this mean.
_MEAN_SIZE = 64

# Components that are joined by their distances, of which there are as many squared.
_MAX_COMPONENTS = 4000


def tree_partitions(
    neighbors: Neighbors | PrecomputedNeighbors,
    n_clusters: int,
    multiplicity: Array | None = None,
    n_threads: int = 1,
) -> dict[str, Labels]:
    """Return ten partitions of n points into n_clusters, or n if these are fewer.

    Parameters
    ----------
    neighbors : Neighbors or PrecomputedNeighbors
        Of distinct points.
    n_clusters : int
    multiplicity : array (n,), default=None
        Sizes of the points, 1 by default. Only their ratios count; they are rounded
        unless they are small multiples of the smallest one.
    n_threads : int, default=1

    Returns
    -------
    partitions : dict of arrays (n,)
        "tree, Gini 0.1", "tree, cut 0.25" and similar names, and those of the core
        tree; clusters are numbered in the order in which they appear.
    """
    trees = spanning_trees(neighbors, n_threads)
    n = len(trees["tree"]) + 1
    sizes = _integer_sizes(np.ones(n) if multiplicity is None else multiplicity)
    n_clusters, total = min(n_clusters, n), float(sizes.sum())
    partitions, labels = {}, np.empty(n, dtype=np.int32)
    for name, tree in trees.items():
        for limit in _GINI_LIMITS:
            merge_clusters(tree, sizes, n_clusters, limit, labels)
            partitions[f"{name}, Gini {limit}"] = relabel_by_appearance(labels)
        rooted = _root_tree(tree)
        for share in _LEAST_SHARES:
            n_least = max(_MIN_POINTS, int(share * n / n_clusters))
            least = n_least * total / n
            cut_edges(*rooted, sizes, n_clusters, least, labels)
            partitions[f"{name}, cut {share}"] = relabel_by_appearance(labels)
    return partitions


def _integer_sizes(multiplicity: Array) -> NDArray[np.int64]:
    """Return positive integers proportional to the multiplicity, some of them rounded.

    Sums of integers are exact, and clusters have few distinct sizes.
    """
    sizes = multiplicity / multiplicity.min()
    is_exact = np.allclose(sizes, np.rint(sizes), rtol=1e-9, atol=0.0)
    if not is_exact or sizes.mean() > _MEAN_SIZE:
        sizes = multiplicity * (_MEAN_SIZE / multiplicity.mean())
    return np.asarray(np.maximum(np.rint(sizes), 1), dtype=np.int64)


def _root_tree(tree: IndexArray) -> tuple[IndexArray, IndexArray, IndexArray]:
    """Return an order from the root on, the parents, and the lower ends of edges."""
    graph = _tree_graph(tree, len(tree) + 1)
    order, parent = breadth_first_order(graph, 0, directed=False)
    is_child = parent[tree[:, 0]] == tree[:, 1]
    children = np.where(is_child, tree[:, 0], tree[:, 1])
    return order, parent, children


def spanning_trees(
    neighbors: Neighbors | PrecomputedNeighbors, n_threads: int = 1
) -> dict[str, IndexArray]:
    """Return the edges (n - 1, 2) of "tree" and of "core tree", shortest first.

    Of edges of equal mutual reachability the nearer points come first. The components
    of a graph given by the caller are connected with the largest one by edges of
    infinite length, those of small components first, as distances between them are not
    known; so are more components than have distances of reasonable size.
    """
    edges, distances, core = _neighbor_edges(neighbors)
    edges, distances = _sort_edges(edges, distances)
    tree = _spanning_tree(edges, len(core))
    if len(tree) < len(core) - 1:
        _, component = connected_components(_tree_graph(tree, len(core)), False)
        is_known = isinstance(neighbors, Neighbors)
        if is_known and component.max() < _MAX_COMPONENTS:
            between, lengths = _closest_pairs(neighbors.X, component, n_threads)
        else:
            between, lengths = _infinite_edges(component)
        edges, distances = _sort_edges(
            np.concatenate([edges, between]), np.concatenate([distances, lengths])
        )
        tree = _spanning_tree(edges, len(core))
    reachability = np.maximum(distances, core[edges].max(axis=1))
    edges, _ = _sort_edges(edges, reachability)
    return {"tree": tree, "core tree": _spanning_tree(edges, len(core))}


def _neighbor_edges(
    neighbors: Neighbors | PrecomputedNeighbors,
) -> tuple[IndexArray, Array, Array]:
    """Return edges (m, 2) to neighbors, distances (m,) and those of the cores (n,).

    Points with fewer than 5 neighbors have the distance to their last one.
    """
    if isinstance(neighbors, Neighbors):
        distances = neighbors.distances[:, :_N_NEIGHBORS]
        indices = neighbors.indices[:, :_N_NEIGHBORS]
        n, k = indices.shape
        rows = np.broadcast_to(np.arange(n, dtype=np.int32)[:, np.newaxis], (n, k))
        # of (i, j) and (j, i) one is enough, if both are there
        is_used = (rows < indices) | (distances >= distances[indices, -1])
        edges = np.column_stack([rows[is_used], indices[is_used]])
        core = distances[:, min(_CORE_NEIGHBOR, k) - 1]
        return edges, distances[is_used], core
    graph = neighbors.kneighbors_graph()
    ranks, points = entry_ranks(graph), entry_rows(graph)
    core, is_near = np.zeros(graph.shape[0]), ranks < _CORE_NEIGHBOR
    np.maximum.at(core, points[is_near], graph.data[is_near])
    is_used = ranks < _N_NEIGHBORS
    edges = np.column_stack([points, graph.indices])[is_used]
    return edges.astype(np.int32), graph.data[is_used], core


def _sort_edges(edges: IndexArray, keys: Array) -> tuple[IndexArray, Array]:
    order = np.argsort(keys, kind="stable")
    return edges[order], keys[order]


def _spanning_tree(edges: IndexArray, n: int) -> IndexArray:
    """Return the edges of a minimum spanning tree, or of one for each component."""
    tree = np.empty((n - 1, 2), dtype=np.int32)
    return tree[: spanning_tree(edges, tree)]


def _tree_graph(tree: IndexArray, n: int) -> sparse.csr_array:
    parts = np.ones(len(tree)), (tree[:, 0], tree[:, 1])
    return sparse.csr_array(parts, shape=(n, n))


# Connected components of the neighbor graph.


def _split_by_size(component: Indices) -> list[Indices]:
    """Return the points of each component, the largest one first."""
    points = np.argsort(component, kind="stable")
    parts = np.split(points, np.cumsum(np.bincount(component))[:-1])
    return sorted(parts, key=lambda part: (-len(part), part[0]))


def _infinite_edges(component: Indices) -> tuple[IndexArray, Array]:
    """Return edges (m, 2) of the largest component to others, the smallest first."""
    largest, *others = _split_by_size(component)
    edges = [(largest[0], other[0]) for other in reversed(others)]
    return np.array(edges, dtype=np.int32), np.full(len(edges), np.inf)


def _closest_pairs(
    X: Any, component: Indices, n_threads: int
) -> tuple[IndexArray, Array]:
    """Return closest pairs (m, 2) of points of two components, and their distances.

    Among them are those of a minimum spanning tree. Their mutual reachability is the
    distance, because points of other components are farther than all neighbors.
    Components are searched by the points of smaller ones: at most n^2 / 2 pairs are
    compared.
    """
    parts = _split_by_size(component)
    is_needed = _near_components(X, parts, n_threads)
    pairs, distances = [], []
    for t, inside in enumerate(parts):
        others = [parts[u] for u in np.flatnonzero(is_needed[t]) if u > t]
        if not others:
            continue
        outside = np.concatenate(others)
        sizes = np.array([len(other) for other in others])
        index = NeighborIndex(X[inside])
        found, nearest = index.kneighbors(X[outside], 1, n_threads=n_threads)
        smallest = np.minimum.reduceat(found[:, 0], np.cumsum(sizes) - sizes)
        is_closest = found[:, 0] == np.repeat(smallest, sizes)
        closest = outside[is_closest], inside[nearest[is_closest, 0]]
        pairs.append(np.column_stack(closest).astype(np.int32))
        distances.append(found[is_closest, 0])
    return np.concatenate(pairs), np.concatenate(distances)


def _near_components(X: Any, parts: list[Indices], n_threads: int) -> NDArray[np.bool_]:
    """Return which pairs of components (m, m) may be connected in the tree.

    The first points of components are at known distances, and all others within radii
    around them. A pair is left out if it is farther apart, by this lower bound, than
    the longest step from one to the other by way of first points.
    """
    firsts = X[[part[0] for part in parts]]
    lengths, radii = np.empty((len(parts), len(parts))), np.empty(len(parts))
    for t, part in enumerate(parts):
        index = NeighborIndex(firsts[[t]])
        lengths[t] = index.kneighbors(firsts, 1, n_threads=n_threads)[0][:, 0]
        radii[t] = index.kneighbors(X[part], 1, n_threads=n_threads)[0].max()
    steps = cophenet(linkage(squareform(lengths, checks=False), "single"))
    lower = lengths - radii[:, np.newaxis] - radii
    return np.asarray(lower <= squareform(steps) + _ROUNDING * lengths)
