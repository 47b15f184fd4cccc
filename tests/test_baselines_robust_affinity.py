import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from cdsk import gaussian_gram
from cdsk.baselines import RobustAffinityGraph, spectral_labels
from cdsk.baselines._forest import scale_features


def path(tree, x):
    """Return the nodes on the path of x, with the leaf but without the root."""
    node, nodes = 0, []
    while tree.children_left[node] >= 0:
        left = x[tree.feature[node]] <= tree.threshold[node]
        node = (tree.children_left if left else tree.children_right)[node]
        nodes.append(node)
    return nodes


def affinity_by_pairs(trees, X, weighted):
    total = np.zeros((len(X), len(X)))
    for tree in trees:
        paths = [path(tree.tree_, x) for x in X]
        weight = {}
        for nodes in paths:
            for node in nodes:
                weight[node] = weight.get(node, 0) + 1
        weight = {node: 1 / k if weighted else 1 for node, k in weight.items()}
        lengths = [sum(weight[node] for node in nodes) for nodes in paths]
        for i, a in enumerate(paths):
            for j, b in enumerate(paths):
                shared = sum(weight[node] for node in a if node in b)
                most = max(lengths[i], lengths[j])
                total[i, j] += shared / most if most > 0 else 1.0
    return total / len(trees)


@pytest.mark.parametrize("affinity", ["weighted", "path"])
@pytest.mark.parametrize("min_samples_leaf", [1, 6])
def test_the_affinity_is_that_of_all_pairs_and_trees(rng, affinity, min_samples_leaf):
    X = rng.normal(size=(25, 3))
    X[5] = X[11]
    model = RobustAffinityGraph(
        2,
        affinity=affinity,
        min_samples_leaf=min_samples_leaf,
        n_estimators=7,
        n_neighbors=24,
        random_state=3,
    ).fit(X)
    X = scale_features(X)
    trees = model._grow_trees(X, np.random.RandomState(3))
    expected = affinity_by_pairs(trees, X, affinity == "weighted")
    assert expected[5, 11] == pytest.approx(1)
    np.fill_diagonal(expected, 0.0)
    np.testing.assert_allclose(model.affinity_matrix_.toarray(), expected, atol=1e-12)


def test_any_batch_size(rng, monkeypatch):
    X = rng.normal(size=(50, 3))
    model = RobustAffinityGraph(2, n_estimators=5, random_state=0)
    once = model.fit(X).affinity_matrix_
    monkeypatch.setattr("cdsk.baselines._forest._BATCH_SIZE", 7 * 50)
    assert abs(model.fit(X).affinity_matrix_ - once).max() == 0


def test_the_nearest_of_each_row_are_kept(rng):
    X = rng.normal(size=(60, 4))
    options = {"n_estimators": 20, "random_state": 0}
    full = RobustAffinityGraph(2, n_neighbors=59, **options).fit(X).affinity_matrix_
    few = RobustAffinityGraph(2, n_neighbors=4, **options).fit(X).affinity_matrix_
    full, few = full.toarray(), few.toarray()
    fourth = np.sort(full, axis=1)[:, -4]
    stays = (full >= fourth[:, None]) | (full >= fourth)
    np.testing.assert_array_equal(few, np.where(stays, full, 0.0))


def with_noise(rng):
    """Return three clusters in six features, and 20 features of larger variance."""
    X, y = make_blobs(200, 6, centers=3, random_state=3)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return np.hstack([X, rng.normal(scale=3, size=(200, 20))]), y


def test_features_without_structure_are_ignored(rng):
    X, y = with_noise(rng)
    labels = RobustAffinityGraph(3, random_state=0).fit_predict(X)
    assert adjusted_rand_score(y, labels) > 0.95
    # a Gaussian kernel does not find the clusters for any bandwidth
    for part in [0.2, 0.4, 0.7, 1.4]:
        W = gaussian_gram(X, part * np.sqrt(X.var(axis=0).sum()))
        labels = spectral_labels(W, 3, random_state=0)
        assert adjusted_rand_score(y, labels) < 0.1


def test_units_do_not_matter(rng):
    X = with_noise(rng)[0][:, :8]
    model = RobustAffinityGraph(3, n_estimators=10, random_state=0)
    labels = model.fit_predict(X)
    assert (model.fit_predict(X * 2.0 ** rng.integers(-300, 300, 8)) == labels).all()


# fewer distinct points than clusters
@pytest.mark.filterwarnings("ignore:X has . distinct point")
def test_points_that_no_tree_separates():
    model = RobustAffinityGraph(2, n_estimators=5, random_state=0).fit(np.ones((6, 2)))
    np.testing.assert_array_equal(model.affinity_matrix_.toarray(), 1 - np.eye(6))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"affinity": "leaf"}, "affinity must be one of 'weighted', 'path'"),
        ({"n_estimators": 0}, "n_estimators must be an integer of at least 1"),
        ({"n_neighbors": 1.5}, "n_neighbors must be an integer of at least 1"),
        ({"min_samples_leaf": 0}, "min_samples_leaf must be an integer"),
        ({"assign_labels": "x"}, "assign_labels must be one of"),
    ],
)
def test_invalid_parameters(wrong, message):
    with pytest.raises(ValueError, match=message):
        RobustAffinityGraph(2, **wrong).fit(np.eye(4))
