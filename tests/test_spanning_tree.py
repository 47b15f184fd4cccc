"""Partitions by minimum spanning trees: as their definitions say, for any points."""

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from scipy.spatial.distance import cdist
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from cdsk import _spanning_tree, _trees
from cdsk._neighbors import Neighbors, PrecomputedNeighbors
from cdsk._spanning_tree import _root_tree, spanning_trees, tree_partitions
from cdsk._spectral import relabel_by_appearance

NAMES = [
    f"{tree}, {rule}"
    for tree in ("tree", "core tree")
    for rule in ("Gini 0.1", "Gini 0.3", "cut 0.02", "cut 0.25", "cut 0.5")
]


# --- slow twins ----------------------------------------------------------------------


def labels_of(edges, n):
    graph = sparse.coo_array(
        (np.ones(len(edges)), np.reshape(edges, (-1, 2)).T), (n, n)
    )
    return connected_components(graph, directed=False)[1]


def gini(sizes):
    k = len(sizes)
    differences = sum(abs(sizes[a] - sizes[b]) for a in range(k) for b in range(a))
    return differences / ((k - 1) * sum(sizes))


def merge_by_definition(tree, sizes, n_clusters, limit):
    n, merged, rest = len(sizes), [], [tuple(edge) for edge in tree]
    while n - len(merged) > n_clusters:
        labels = labels_of(merged, n)
        mass = np.bincount(labels, sizes)
        allowed = rest
        if gini(mass.tolist()) > limit:
            allowed = [e for e in rest if mass[labels[list(e)]].min() == mass.min()]
        merged.append(allowed[0])
        rest.remove(allowed[0])
    return relabel_by_appearance(labels_of(merged, n))


def cut_by_definition(tree, sizes, n_clusters, least):
    n = len(sizes)
    while True:
        kept = [tuple(edge) for edge in tree]
        for edge in reversed(kept.copy()):
            if n - len(kept) == n_clusters:
                break
            without = [other for other in kept if other != edge]
            labels = labels_of(without, n)
            if np.bincount(labels, sizes)[labels[list(edge)]].min() >= least:
                kept = without
        if n - len(kept) == n_clusters:
            return relabel_by_appearance(labels_of(kept, n)), least
        least /= 2


def tree_by_definition(W):
    """The edges of the minimum spanning tree of a matrix of weights, shortest first."""
    tree = minimum_spanning_tree(W).tocoo()
    order = np.argsort(tree.data)
    return {
        frozenset(edge) for edge in zip(tree.row[order], tree.col[order], strict=True)
    }


def reachability(D, core_neighbor=5):
    """Mutual reachability, and where it is equal the nearer points first."""
    core = np.sort(D, axis=1)[:, min(core_neighbor, len(D) - 1)]
    R = np.maximum(D, np.maximum.outer(core, core))
    return np.where(D > 0, R + 1e-9 * D, 0.0)


def as_set(tree):
    return {frozenset(edge) for edge in tree.tolist()}


# --- compiled loops ------------------------------------------------------------------


def random_tree(n, rng, shape):
    """The edges of a tree in a random order, and their ends in a random order."""
    child = np.arange(1, n)
    parent = {
        "random": (rng.random(n - 1) * child).astype(int),
        "chain": child - 1,
        "star": np.zeros(n - 1, int),
        "bushy": np.maximum(child - 1 - rng.integers(0, 4, n - 1), 0),
    }[shape]
    names = rng.permutation(n)
    edges = rng.permuted(names[np.column_stack([child, parent])], axis=1)
    return rng.permutation(edges).astype(np.int32)


def merged(tree, sizes, n_clusters, limit):
    labels = np.empty(len(sizes), np.int32)
    _trees.merge_clusters(tree, sizes, n_clusters, limit, labels)
    return relabel_by_appearance(labels)


def cut(tree, sizes, n_clusters, least):
    labels = np.empty(len(sizes), np.int32)
    last = _trees.cut_edges(*_root_tree(tree), sizes, n_clusters, least, labels)
    return relabel_by_appearance(labels), last


@pytest.mark.parametrize("largest", [1, 3, 1000])
@pytest.mark.parametrize("shape", ["random", "chain", "star", "bushy"])
def test_loops_are_those_of_the_definitions(rng, shape, largest):
    for n in (1, 2, 3, 10, 40):
        tree = random_tree(n, rng, shape)
        sizes = rng.integers(1, largest + 1, n)
        for n_clusters in {1, 2, min(5, n), n}:
            if n_clusters > n:
                continue
            for limit in (0.0, 0.1, 0.3, 0.6, 1.0):
                np.testing.assert_array_equal(
                    merged(tree, sizes, n_clusters, limit),
                    merge_by_definition(tree, sizes, n_clusters, limit),
                )
            for share in (0.02, 0.25, 0.5, 0.9):
                least = share * sizes.sum() / n_clusters
                labels, last = cut(tree, sizes, n_clusters, least)
                expected, expected_last = cut_by_definition(
                    tree, sizes, n_clusters, least
                )
                np.testing.assert_array_equal(labels, expected)
                if n_clusters < n:
                    assert last == expected_last
                assert np.bincount(labels, sizes).min() >= min(last, sizes.sum())


def test_merging_without_a_limit_and_cutting_without_a_bound_is_single_linkage(rng):
    tree, sizes = random_tree(500, rng, "random"), np.ones(500, np.int64)
    expected = relabel_by_appearance(labels_of(tree[:-6], 500))
    np.testing.assert_array_equal(merged(tree, sizes, 7, 1.0), expected)
    np.testing.assert_array_equal(cut(tree, sizes, 7, 1.0)[0], expected)


def test_copies_of_points_are_cut_like_their_multiplicity(rng):
    n, sizes = 60, rng.integers(1, 5, 60)
    tree = random_tree(n, rng, "bushy")
    point = np.repeat(np.arange(n), sizes)
    first = np.searchsorted(point, np.arange(n))
    copies = np.setdiff1d(np.arange(len(point)), first)
    short = np.column_stack([copies, copies - 1])
    with_copies = np.concatenate([short, first[tree]]).astype(np.int32)
    ones = np.ones(len(point), np.int64)
    for least in (4.0, 10.0, 20.0):
        expected, last = cut(tree, sizes, 4, least)
        labels, last_of_copies = cut(with_copies, ones, 4, least)
        assert last == last_of_copies
        np.testing.assert_array_equal(labels, expected[point])


def test_spanning_tree_of_a_disconnected_graph(rng):
    edges = np.array([[0, 1], [1, 0], [3, 4], [1, 2], [0, 2]], np.int32)
    tree = np.full((5, 2), -1, np.int32)
    assert _trees.spanning_tree(edges, tree) == 3
    np.testing.assert_array_equal(tree[:3], edges[[0, 2, 3]])
    assert (tree[3:] == -1).all()


@pytest.mark.parametrize("loop", ["tree", "merge", "cut"])
def test_ctrl_c(check_interruptible, rng, loop):
    n = 20_000
    tree, sizes = random_tree(n, rng, "bushy"), np.ones(n, np.int64)
    rooted, labels = _root_tree(tree), np.empty(n, np.int32)
    calls = {
        "tree": lambda: _trees.spanning_tree(tree, np.empty_like(tree)),
        "merge": lambda: _trees.merge_clusters(tree, sizes, 2, 0.1, labels),
        "cut": lambda: _trees.cut_edges(*rooted, sizes, 100, 100.0, labels),
    }
    # at most a walk over all points or a search through all edges at once
    check_interruptible(calls[loop], step=20.0 * n)


@pytest.mark.parametrize("shape", ["random", "chain", "star", "bushy"])
def test_merging_is_not_quadratic(watch_checks, rng, shape):
    work = []
    for n in (5000, 20_000):
        tree, sizes = random_tree(n, rng, shape), np.ones(n, np.int64)
        with watch_checks(interval=1e4) as checks:
            merged(tree, sizes, 2, 0.1)
        work.append(checks.total_work)
    # 4.6 times as much if it is n log(n), 8 times if n sqrt(n), and 16 times if n^2
    assert work[1] < 9 * work[0]


def test_cutting_is_not_quadratic(watch_checks, rng):
    # all edges but the middle ones, which come last, leave too little on one side
    n = 20_000
    chain = np.column_stack([np.arange(n - 1), np.arange(1, n)]).astype(np.int32)
    outer = rng.permutation(np.r_[:9000, 11_000 : n - 1])
    tree = np.concatenate([chain[9000:11_000], chain[outer]])
    with watch_checks(interval=1e4) as checks:
        _, least = cut(tree, np.ones(n, np.int64), 2, 9001.0)
    assert least == 9001.0
    # two visits of each point would be 20 n, and walks to the end of the chain n^2
    assert checks.total_work < 200 * n


# --- trees ---------------------------------------------------------------------------


LAYOUTS = {
    "f64": np.asarray,
    "f32": lambda X: X.astype(np.float32),
    "sparse": sparse.csr_array,
}
each_layout = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)


def distances_between(X):
    X = X.toarray() if sparse.issparse(X) else X
    return cdist(X.astype(float), X.astype(float))


@each_layout
def test_few_points_have_the_tree_of_all_pairs(rng, layout):
    for n in (2, 4, 21):
        X = layout(rng.normal(size=(n, 3)))
        D, trees = distances_between(X), spanning_trees(Neighbors(X, 20))
        assert as_set(trees["tree"]) == tree_by_definition(D)
        assert as_set(trees["core tree"]) == tree_by_definition(reachability(D))
        lengths = D[tuple(trees["tree"].T)]
        assert (np.diff(lengths) >= 0).all()


@each_layout
@pytest.mark.parametrize("distance", [12.0, 30.0, 1000.0])
def test_components_are_connected_as_in_the_tree_of_all_pairs(rng, layout, distance):
    # within groups of 21 points all are neighbors
    centers = distance * rng.normal(size=(15, 3))
    X = layout(rng.permutation(np.repeat(centers, 21, 0) + rng.normal(size=(315, 3))))
    D, neighbors = distances_between(X), Neighbors(X, 20)
    n_components, _ = connected_components(neighbors.kneighbors_graph(), False)
    assert n_components > 5
    trees = spanning_trees(neighbors)
    if n_components == 15:
        assert as_set(trees["tree"]) == tree_by_definition(D)
        assert as_set(trees["core tree"]) == tree_by_definition(reachability(D))
    else:
        pairs = allowed_pairs(neighbors)
        assert as_set(trees["tree"]) == tree_by_definition(np.where(pairs, D, 0.0))


def allowed_pairs(neighbors):
    """Which pairs are neighbors or of different components."""
    graph = neighbors.kneighbors_graph()
    _, component = connected_components(graph, directed=False)
    A = graph.toarray() > 0
    return A | A.T | (component != component[:, np.newaxis])


@pytest.mark.parametrize("spread", [2.0, 8.0, 100.0])
def test_components_of_any_size(rng, spread):
    sizes = rng.integers(8, 60, 20)
    centers = np.repeat(spread * rng.normal(size=(20, 5)), sizes, axis=0)
    X = centers + rng.normal(size=centers.shape) * rng.random((20, 1)).repeat(sizes, 0)
    D, neighbors = distances_between(X), Neighbors(X, 6)
    pairs, trees = allowed_pairs(neighbors), spanning_trees(neighbors)
    assert as_set(trees["tree"]) == tree_by_definition(np.where(pairs, D, 0.0))
    R = np.where(pairs, reachability(D), 0.0)
    assert as_set(trees["core tree"]) == tree_by_definition(R)


# --- partitions ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(200, 2, centers=4, cluster_std=1.5, random_state=3)[0]


@pytest.mark.parametrize("multiplicity", [None, "integers"])
def test_partitions_are_those_of_the_definitions(rng, blobs, multiplicity):
    sizes = np.ones(200, int) if multiplicity is None else rng.integers(1, 6, 200)
    sizes[0] = 1
    neighbors = Neighbors(blobs, 25)
    trees = spanning_trees(neighbors)
    found = tree_partitions(neighbors, 5, None if multiplicity is None else sizes * 1.0)
    assert list(found) == NAMES
    for name, labels in found.items():
        tree, rule, bound = trees[name.split(",")[0]], *name.split()[-2:]
        if rule == "Gini":
            expected = merge_by_definition(tree, sizes, 5, float(bound))
        else:
            least = max(2, int(float(bound) * 200 / 5)) * sizes.sum() / 200
            expected, _ = cut_by_definition(tree, sizes, 5, least)
        assert labels.dtype == np.int64
        np.testing.assert_array_equal(labels, expected)


def same_partitions(ones, others):
    for name in NAMES:
        np.testing.assert_array_equal(ones[name], others[name])


def test_only_ratios_of_multiplicities_count(rng, blobs):
    neighbors, m = Neighbors(blobs, 20), rng.integers(1, 6, 200) * 1.0
    m[0] = 1.0
    same_partitions(
        tree_partitions(neighbors, 4), tree_partitions(neighbors, 4, np.full(200, 0.3))
    )
    same_partitions(
        tree_partitions(neighbors, 4, m), tree_partitions(neighbors, 4, m / 3)
    )
    # rounding to 1/64 of the mean
    m = rng.random(200) + 0.5
    same_partitions(
        tree_partitions(neighbors, 4, m), tree_partitions(neighbors, 4, 1e-9 * m)
    )


@each_layout
def test_the_order_of_rows_does_not_matter(rng, blobs, layout):
    order, m = rng.permutation(200), rng.random(200) + 0.1
    ones = tree_partitions(Neighbors(layout(blobs), 20), 4, m)
    others = tree_partitions(Neighbors(layout(blobs[order]), 20), 4, m[order])
    for name in NAMES:
        expected = relabel_by_appearance(ones[name][order])
        np.testing.assert_array_equal(others[name], expected)


@pytest.mark.parametrize("scale", [2.0**-400, 2.0**400])
def test_the_unit_does_not_matter(blobs, scale):
    ones = tree_partitions(Neighbors(blobs, 20), 4)
    same_partitions(ones, tree_partitions(Neighbors(scale * blobs, 20), 4))


def test_distances_may_underflow(blobs):
    # two points whose squared distance is 0
    X = np.concatenate([blobs, [[0.0, 0.0], [1e-200, 0.0]]])
    neighbors = Neighbors(X, 20)
    assert neighbors.distances[200, 0] == 0.0
    for labels in tree_partitions(neighbors, 4).values():
        assert labels[200] == labels[201]


@pytest.mark.parametrize("n_clusters", [1, 2, 37, 199, 200, 1000])
def test_any_number_of_clusters(blobs, n_clusters):
    for labels in tree_partitions(Neighbors(blobs, 20), n_clusters).values():
        assert labels.max() + 1 == min(n_clusters, 200)


def test_two_points():
    neighbors = Neighbors(np.array([[0.0], [1.0]]), 20)
    for n_clusters in (1, 2, 3):
        for labels in tree_partitions(neighbors, n_clusters).values():
            np.testing.assert_array_equal(labels, [0, int(n_clusters > 1)])


def test_outliers_are_no_clusters(rng):
    X, y = make_blobs(300, 2, centers=[[0, 0], [20, 0]], random_state=0)
    X = np.concatenate([X, [[200.0, 0.0], [0.0, 300.0]]])
    found = tree_partitions(Neighbors(X, 20), 2)
    for name in NAMES:
        # a cut that leaves 0.02 of a cluster, 3 points, spares both as well
        assert abs(np.corrcoef(found[name][:300], y)[0, 1]) == pytest.approx(1.0)


# --- graphs given by the caller ------------------------------------------------------


def test_a_given_graph_of_all_neighbors_is_as_good_as_points(blobs):
    neighbors = Neighbors(blobs, 20)
    given = PrecomputedNeighbors(neighbors.kneighbors_graph(), None)
    assert connected_components(neighbors.kneighbors_graph(), False)[0] == 1
    same_partitions(tree_partitions(neighbors, 4), tree_partitions(given, 4))


def test_components_of_a_given_graph_stay_apart(rng):
    y = np.repeat(np.arange(5), [30, 50, 40, 60, 1])
    order = rng.permutation(len(y))
    D = np.where(y == y[:, np.newaxis], distances_between(rng.normal(size=(181, 2))), 0)
    y, D = y[order], D[np.ix_(order, order)]
    given = PrecomputedNeighbors(sparse.csr_array(D), None)
    found = tree_partitions(given, 4)
    # the isolated point is connected with the largest component first
    expected = relabel_by_appearance(np.where(y == 4, 3, y))
    for name in NAMES:
        if "cut" in name:
            np.testing.assert_array_equal(found[name], expected)
        assert found[name].max() == 3
    for n_clusters in (1, 2, 7):
        for labels in tree_partitions(given, n_clusters).values():
            assert labels.max() == n_clusters - 1


def test_distances_of_zero_are_edges():
    D = sparse.csr_array(
        (np.array([0.0, 1.0, 0.0]), np.array([1, 2, 3]), np.array([0, 1, 2, 3, 3])),
        shape=(4, 4),
    )
    found = tree_partitions(PrecomputedNeighbors(D, None), 2)
    for name in NAMES:
        np.testing.assert_array_equal(found[name], [0, 0, 1, 1])


def test_too_many_components_are_joined_without_distances(rng, monkeypatch):
    X = np.concatenate([rng.normal(9 * i, 1, size=(30, 2)) for i in range(6)])
    neighbors = Neighbors(X, 5)
    exact = spanning_trees(neighbors)["tree"]
    monkeypatch.setattr(_spanning_tree, "_MAX_COMPONENTS", 2)
    tree = spanning_trees(neighbors)["tree"]
    assert tree.shape == exact.shape
    labels = tree_partitions(neighbors, 6)["tree, cut 0.5"]
    assert adjusted_rand_score(np.repeat(range(6), 30), labels) == 1
