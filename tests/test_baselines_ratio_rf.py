import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from cdsk.baselines import RatioRF
from cdsk.baselines._forest import scale_features


def asked_of(tree, x):
    """Return the inner nodes on the path of x."""
    node, nodes = 0, set()
    while tree.children_left[node] >= 0:
        nodes.add(node)
        left = x[tree.feature[node]] <= tree.threshold[node]
        node = (tree.children_left if left else tree.children_right)[node]
    return nodes


def ratios_by_pairs(trees, X):
    total = np.zeros((len(X), len(X)))
    for tree in (tree.tree_ for tree in trees):
        tests = [asked_of(tree, x) for x in X]

        def outcome(x, node, tree=tree):
            return x[tree.feature[node]] <= tree.threshold[node]

        for i, x in enumerate(X):
            for j, y in enumerate(X):
                either = tests[i] | tests[j]
                alike = [outcome(x, node) == outcome(y, node) for node in either]
                total[i, j] += np.mean(alike) if either else 1.0
    return total / len(trees)


@pytest.mark.parametrize(
    "options", [{}, {"max_samples": 12}, {"max_depth": 99}, {"max_samples": 2}]
)
def test_the_affinity_is_that_of_all_pairs_and_trees(rng, options):
    X = rng.normal(size=(25, 3))
    X[5] = X[11]
    model = RatioRF(2, n_estimators=6, random_state=3, **options).fit(X)
    X = scale_features(X)
    seeds = np.random.RandomState(3)
    trees = [model._grow_tree(X, seeds) for _ in range(6)]
    expected = np.exp((ratios_by_pairs(trees, X) - 1) / 2)
    assert expected[5, 11] == 1
    np.testing.assert_allclose(model.affinity_matrix_, expected, rtol=1e-12)


def test_any_batch_size(rng, monkeypatch):
    X = rng.normal(size=(50, 3))
    model = RatioRF(2, n_estimators=5, random_state=0)
    once = model.fit(X).affinity_matrix_
    monkeypatch.setattr("cdsk.baselines._forest._BATCH_SIZE", 7 * 50)
    assert (model.fit(X).affinity_matrix_ == once).all()


def test_trees_are_grown_on_samples_to_a_depth(rng):
    X = scale_features(rng.normal(size=(100, 5)))
    model = RatioRF(max_samples=20, max_depth=4)
    trees = [model._grow_tree(X, np.random.RandomState(seed)) for seed in range(20)]
    assert {tree.tree_.n_node_samples[0] for tree in trees} == {20}
    assert max(tree.get_depth() for tree in trees) == 4
    # all features are used equally often
    used = np.concatenate([tree.tree_.feature for tree in trees])
    counts = np.bincount(used[used >= 0], minlength=5)
    assert counts.min() > 0.5 * counts.max()


def test_units_of_features_do_not_matter(rng):
    X, y = make_blobs(150, 4, centers=3, cluster_std=1.0, random_state=3)
    other = X * [1e-3, 1, 1e3, 1e100] + [5, -7, 1e4, 0]
    model = RatioRF(3, random_state=0)
    labels = model.fit_predict(X)
    assert adjusted_rand_score(y, labels) == 1
    assert (model.fit_predict(other) == labels).all()
    kmeans = KMeans(3, n_init=3, random_state=0).fit_predict(other)
    assert adjusted_rand_score(y, kmeans) < 0.7


def test_features_between_0_and_1(rng):
    X = rng.normal(size=(30, 4)) * [1e-140, 1, 1e140, 0] + [0, 1e3, 0, 7]
    unit = scale_features(X)
    assert unit.dtype == np.float32
    np.testing.assert_array_equal(unit.min(axis=0), 0)
    np.testing.assert_array_equal(unit.max(axis=0), [1, 1, 1, 0])
    assert (np.argsort(unit[:, :3], axis=0) == np.argsort(X[:, :3], axis=0)).all()


# fewer distinct points than clusters
@pytest.mark.filterwarnings("ignore:X has . distinct point")
def test_affinity_of_equal_points():
    model = RatioRF(2, n_estimators=5, random_state=0).fit(np.ones((6, 2)))
    np.testing.assert_array_equal(model.affinity_matrix_, 1)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_estimators": 0}, "n_estimators must be an integer of at least 1"),
        ({"max_samples": 1}, "max_samples must be an integer of at least 2"),
        ({"max_samples": 0.5}, "max_samples must be an integer of at least 2"),
        ({"max_depth": 0}, "max_depth must be an integer of at least 1"),
        ({"n_init": 0}, "n_init must be an integer of at least 1"),
    ],
)
def test_invalid_parameters(wrong, message):
    with pytest.raises(ValueError, match=message):
        RatioRF(2, **wrong).fit(np.eye(4))
