"""Layers: nested partitions, their tree, their labels of new points, the report."""

import copy
import functools
import json
import pickle
import warnings
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from scipy.cluster.hierarchy import cut_tree, dendrogram, is_monotonic, is_valid_linkage
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import KNeighborsTransformer

from cdsk import CDSK, BlockCDSK, Layers
from cdsk._layers import merge_leaves

X = make_blobs(150, 3, centers=6, random_state=0)[0]
POSITIVE = X - X.min()
HOLED = np.where(np.random.default_rng(2).random(X.shape) < 0.1, np.nan, X)
GRAPH = KNeighborsTransformer(mode="distance", n_neighbors=15).fit_transform(X)

CASES = {
    "default": (X, {}),
    "auto": (X, {"n_clusters": "auto"}),
    "noise": (X, {"noise": 0.05}),
    "one bandwidth": (X, {"bandwidth": 2.0}),
    "callable": (X, {"kernel": rbf_kernel}),
    "indefinite": (X, {"kernel": "laplacian", "psd": False}),
    "lowrank": (X, {"approximation": "lowrank", "bandwidth": 3.0, "rank": 5}),
    "layout": (X, {"representation": "layout"}),
    "sparse": (sparse.csr_array(X), {}),
    "missing": (HOLED, {}),
    "neighbors": (GRAPH, {"kernel": "precomputed_neighbors"}),
    "one cluster": (X, {"n_clusters": 1}),
    "more clusters than leaves": (X, {"n_clusters": 60}),
}


def fit(data, n_clusters=4, **options):
    with warnings.catch_warnings():
        # of kernels, tested elsewhere
        warnings.simplefilter("ignore")
        return CDSK(n_clusters, random_state=0, **options).fit(data)


@functools.cache
def fit_case(name):
    data, options = CASES[name]
    return fit(data, **options)


def check_nested(labels):
    """Each partition is a union of the clusters of the next, which has one more."""
    for coarse, fine in pairwise(labels):
        kept = coarse >= 0
        n_fine = len(np.unique(fine[kept]))
        pairs = set(zip(coarse[kept].tolist(), fine[kept].tolist(), strict=True))
        assert len(pairs) == n_fine == len(np.unique(coarse[kept])) + 1


def nested_blobs(n_each=12, seed=0):
    """Return three blobs of three blobs of three, and the labels of each level."""
    angle = 2 * np.pi * np.arange(3) / 3
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    centers, labels = np.zeros((1, 2)), np.zeros((1, 0), dtype=int)
    for radius in (400.0, 50.0, 7.0):
        centers = (centers[:, np.newaxis] + radius * circle).reshape(-1, 2)
        labels = np.repeat(labels, 3, axis=0)
        labels = np.column_stack([labels, np.arange(len(labels))])
    rows = np.repeat(np.arange(27), n_each)
    rng = np.random.RandomState(seed)
    return centers[rows] + 0.7 * rng.randn(len(rows), 2), labels[rows]


@pytest.fixture(scope="module")
def model():
    return fit_case("default")


# ---------------------------------------------------------------- partitions and tree


@pytest.mark.parametrize("case", CASES)
def test_layers_are_nested_and_one_is_the_fit(case):
    data, model = CASES[case][0], fit_case(case)
    layers = model.layers_
    assert layers.n_leaves >= layers.n_clusters == len(np.unique(model.clusters_))
    every = [layers.labels(k) for k in range(1, layers.n_leaves + 1)]
    check_nested(every)
    np.testing.assert_array_equal(every[layers.n_clusters - 1], model.labels_)
    assert ((every[-1] < 0) == (model.labels_ < 0)).all()
    # as good as predict is: rows of the fit have the labels of their layer
    is_same = model.predict(data) == model.labels_
    assert is_same.mean() > 0.9
    for k in (1, 2, layers.n_clusters, layers.n_leaves):
        predicted = model.predict(data, layer=k)
        np.testing.assert_array_equal(predicted[is_same], every[k - 1][is_same])


@pytest.mark.parametrize("case", CASES)
def test_the_linkage_matrix_is_that_of_the_layers(case):
    layers = fit_case(case).layers_
    assert is_valid_linkage(layers.linkage, throw=True)
    assert is_monotonic(layers.linkage)
    leaves = dendrogram(layers.linkage, no_plot=True)["leaves"]
    assert sorted(leaves) == list(range(layers.n_leaves))
    for k in (2, layers.n_clusters, layers.n_leaves - 1):
        cut = cut_tree(layers.linkage, n_clusters=k).ravel()
        if len(np.unique(layers.linkage[:, 2])) == layers.n_leaves - 1:
            assert adjusted_rand_score(cut, layers.groups(k)) == 1.0


@pytest.mark.parametrize("n_clusters", [3, 9, 27])
def test_blobs_of_blobs_are_found(n_clusters):
    X, levels = nested_blobs()
    layers = fit(X, n_clusters).layers_
    for labels in levels.T:
        found = layers.labels(labels.max() + 1)
        assert adjusted_rand_score(labels, found) == 1.0
    assert layers.levels == (3, 9, 27)


def test_the_order_of_rows_does_not_matter(model):
    order = np.random.default_rng(0).permutation(len(X))
    permuted = fit(X[order]).layers_
    np.testing.assert_array_equal(permuted.leaves, model.layers_.leaves[order])
    np.testing.assert_array_equal(permuted.linkage, model.layers_.linkage)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_the_unit_of_the_data_does_not_matter(scale):
    X, levels = nested_blobs()
    layers = fit(scale * X + scale, 9).layers_
    for labels in levels.T:
        found = layers.labels(labels.max() + 1)
        assert adjusted_rand_score(labels, found) == 1.0
    assert layers.levels == (3, 9, 27)


def test_threads_and_seeds_do_not_matter(model):
    layers = model.layers_
    for n_threads in (1, 3):
        again = fit(X, n_threads=n_threads).layers_
        np.testing.assert_array_equal(again.linkage, layers.linkage)
        np.testing.assert_array_equal(again.leaves, layers.leaves)
    # layers are those of the fit: asked for later, they are the same
    other = copy.deepcopy(model)
    del other.layers_
    other.random_state = 7
    np.testing.assert_array_equal(other.layers_.linkage, layers.linkage)


def cut_increase(W, groups, a, b):
    """Return the normalized cut after a merge minus that before it, plus 1."""

    def normalized_cut(labels):
        members = (labels == np.unique(labels)[:, np.newaxis]).astype(float)
        inside = np.einsum("ai,ij,aj->a", members, W, members)
        return np.sum(1 - inside / (members @ W.sum(axis=1)))

    merged = np.where(groups == b, a, groups)
    return normalized_cut(merged) - normalized_cut(groups) + 1


def test_merges_increase_the_normalized_cut_least():
    rng = np.random.default_rng(0)
    n = 9
    W = rng.random((n, n)) ** 8
    W = W + W.T
    linkage = merge_leaves(W, np.ones((n, n)), np.ones(n), np.zeros(n, dtype=int))
    groups = np.arange(n)
    for i, children in enumerate(linkage[:, :2].astype(int)):
        left = np.unique(groups)
        pairs = [(a, b) for a in left for b in left if a < b]
        best = min(pairs, key=lambda pair: cut_increase(W, groups, *pair))
        assert best == tuple(children)
        groups[np.isin(groups, children)] = n + i


def test_unconnected_groups_are_merged_by_distance():
    # two pairs of connected leaves, and mean squared distances of points on a line
    W = np.kron(np.eye(3), np.array([[4.0, 1.0], [1.0, 4.0]]))
    places = np.array([0.0, 1.0, 30.0, 31.0, 10.0, 11.0])
    D = np.square(places[:, np.newaxis] - places) + 1.0
    linkage = merge_leaves(W, D, np.ones(6), np.zeros(6, dtype=int))
    assert linkage[:3, :2].tolist() == [[0, 1], [2, 3], [4, 5]]
    assert linkage[3:, :2].tolist() == [[6, 8], [7, 9]]
    # clusters of the fit are merged first, however far they are apart
    linkage = merge_leaves(W, D, np.ones(6), np.array([0, 0, 0, 0, 1, 1]))
    assert linkage[3, :2].tolist() == [6, 7]


# ---------------------------------------------------------------- numbers of the tree


def test_persistence(model):
    layers = model.layers_
    persistence, n = layers.persistence, layers.n_leaves
    assert (persistence >= 0).all()
    assert np.isinf(persistence[-1])
    # from a leaf to the last node lives add up to its height
    parents = np.empty(2 * n - 1, dtype=int)
    parents[layers.linkage[:, :2].astype(int)] = n + np.arange(n - 1)[:, np.newaxis]
    for leaf in range(n):
        node, total = leaf, 0.0
        while node < 2 * n - 2:
            total += persistence[node]
            node = parents[node]
        np.testing.assert_allclose(total, layers.linkage[-1, 2])
    heights = layers.linkage[:, 2]
    finite = layers.layer_persistence[2:]
    np.testing.assert_allclose(finite.sum(), heights[-1] - heights[0])
    assert 1 <= len(layers.levels) <= 5
    others = np.delete(finite, np.array(layers.levels) - 2)
    assert finite[np.array(layers.levels) - 2].min() >= others.max()


def test_sizes_and_places():
    layers = fit_case("noise").layers_
    n, merges = layers.n_leaves, layers.linkage[:, :2].astype(int)
    counts = np.bincount(layers.labels(n)[~layers.is_noise], minlength=n)
    np.testing.assert_array_equal(layers.sizes[:n], counts)
    np.testing.assert_array_equal(layers.sizes[n:], layers.sizes[merges].sum(axis=1))
    assert sorted(layers.places[:n]) == list(range(n))
    # no crossings: a node has adjacent places
    members = [{place} for place in layers.places[:n]]
    for a, b in merges:
        members.append(members[a] | members[b])
        assert max(members[-1]) - min(members[-1]) == len(members[-1]) - 1
    clusters = layers.node_clusters[layers.cluster_nodes]
    assert clusters.tolist() == list(range(layers.n_clusters))


def test_weights_are_multiplicities():
    weights = np.arange(len(X)) % 3
    weighted = CDSK(4, random_state=0).fit(X, sample_weight=weights)
    repeated = fit(np.repeat(X, weights, axis=0)).layers_
    layers = weighted.layers_
    used = np.repeat(layers.leaves, weights)
    np.testing.assert_array_equal(used, repeated.leaves)
    np.testing.assert_allclose(layers.linkage, repeated.linkage)
    np.testing.assert_allclose(layers.sizes, repeated.sizes)
    check_nested([layers.labels(k) for k in range(1, layers.n_leaves + 1)])
    np.testing.assert_array_equal(layers.labels(layers.n_clusters), weighted.labels_)


@pytest.mark.parametrize("n", [2, 3, 7])
@pytest.mark.parametrize("kind", ["distinct", "equal"])
def test_few_points(n, kind):
    data = X[:n] if kind == "distinct" else np.ones((n, 2))
    for n_clusters in {1, 2, n}:
        model = fit(data, n_clusters)
        layers = model.layers_
        assert layers.n_leaves >= 2
        check_nested([layers.labels(k) for k in range(1, layers.n_leaves + 1)])
        np.testing.assert_array_equal(layers.labels(layers.n_clusters), model.labels_)
        assert set(model.predict(data, layer=2)) <= {0, 1}


# ---------------------------------------------------------------- the model


def test_new_points_have_nested_labels(model):
    new = make_blobs(100, 3, centers=6, random_state=1)[0]
    n_leaves = model.layers_.n_leaves
    every = [model.predict(new, layer=k) for k in range(1, n_leaves + 1)]
    for coarse, fine in pairwise(every):
        pairs = set(zip(coarse.tolist(), fine.tolist(), strict=True))
        assert len(pairs) == len(np.unique(fine))
    clusters = model.layers_.n_clusters
    np.testing.assert_array_equal(every[clusters - 1], model.predict(new))


@pytest.mark.parametrize("layer", [0, -1, 10_000, 2.0, "2", True])
def test_a_layer_that_does_not_exist(model, layer):
    expected = f"integer of at least 1 and at most {model.layers_.n_leaves}; got "
    with pytest.raises(ValueError, match=expected):
        model.layers_.labels(layer)
    with pytest.raises(ValueError, match=expected):
        model.predict(X, layer=layer)


def test_they_are_computed_when_asked_for_and_kept(model):
    again = CDSK(4, random_state=0).fit(X)
    assert "layers_" not in vars(again)
    first = again.layers_
    assert isinstance(first, Layers)
    assert again.layers_ is first
    # a later fit has its own
    again.fit(X[:100])
    assert len(again.layers_.leaves) == 100
    assert not hasattr(clone(again), "layers_")


def test_a_saved_model_has_the_same_layers():
    model = CDSK(4, random_state=0).fit(X)
    before = pickle.loads(pickle.dumps(model))
    layers = model.layers_
    after = pickle.loads(pickle.dumps(model))
    assert "layers_" in vars(after)
    for other in (before, after):
        np.testing.assert_array_equal(other.layers_.linkage, layers.linkage)
        np.testing.assert_array_equal(
            other.predict(X, layer=9), model.predict(X, layer=9)
        )


def test_a_kernel_matrix_is_not_kept():
    model = fit(rbf_kernel(X, gamma=0.1), kernel="precomputed")
    with pytest.raises(AttributeError, match="a model does not keep a precomputed"):
        model.layers_  # noqa: B018
    with pytest.raises(AttributeError, match="does not keep"):
        model.predict(rbf_kernel(X, gamma=0.1), layer=2)
    assert not hasattr(model, "layers_")


def test_of_landmarks():
    layers = BlockCDSK(4, random_state=0).fit(X).landmark_model_.layers_
    check_nested([layers.labels(k) for k in range(1, layers.n_leaves + 1)])


# ---------------------------------------------------------------- where they show


def test_plain_data(model):
    tree = json.loads(json.dumps(model.layers_.to_dict()))
    n = tree["n_leaves"]
    assert [node["node"] for node in tree["nodes"]] == list(range(2 * n - 1))
    children = [node["children"] for node in tree["nodes"][n:]]
    assert children == model.layers_.linkage[:, :2].astype(int).tolist()
    heights = [node["height"] for node in tree["nodes"][n:]]
    assert heights == model.layers_.linkage[:, 2].tolist()
    assert tree["levels"] == list(model.layers_.levels)
    assert all(node["children"] is None for node in tree["nodes"][:n])
    assert tree["nodes"][-1]["persistence"] is None


def test_report(model, tmp_path):
    assert "Layers of 2 to" not in str(model.report())
    assert model.report().to_dict()["layers"] is None
    report = model.report(layers=True)
    assert report.to_dict()["layers"] == model.layers_.to_dict()
    text = " ".join(str(report).split())
    assert " ".join(str(model.layers_).split()) in text
    path = tmp_path / "page.html"
    report.to_html(path)
    page = path.read_text(encoding="utf-8")
    n = model.layers_.n_leaves
    assert f'id="layer" min="2" max="{n}" value="4"' in page
    assert page.count('<g class="node"') == 2 * n - 1
    data = page.split('id="layers-data">')[1].split("</script>")[0]
    assert len(json.loads(data)["cuts"]) == n - 1
    model.report().to_html(path)
    assert 'id="layer"' not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "case", ["one cluster", "default", "more clusters than leaves"]
)
def test_plot(case):
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    from cdsk import plot

    model, ax = fit_case(case), Figure().add_subplot()
    assert plot.tree(model, ax=ax, title="tree") is ax
    joins, lives = (c.get_segments() for c in ax.collections)
    n, heights = model.layers_.n_leaves, model.layers_.linkage[:, 2]
    assert (len(joins), len(lives)) == (n - 1, 2 * n - 1)
    np.testing.assert_allclose([join[0][0] for join in joins], heights)
    np.testing.assert_allclose([life[1][0] for life in lives[n:]], heights)
    # the coarsest is on the left
    left, right = ax.get_xlim()
    assert left > heights.max() and right < heights.min()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax.figure.draw_without_rendering()
