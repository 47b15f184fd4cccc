"""What CDSK(n_clusters) does without tuning."""

import functools
import pickle
import tracemalloc

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

from cdsk import CDSK
from cdsk._candidates import FACTORS
from cdsk._neighbors import Neighbors
from cdsk._operators.sparse import NeighborGraph
from cdsk.cli._demo import make_noisy_moons


def fit(X, n_clusters, **parameters):
    return CDSK(n_clusters, random_state=0, **parameters).fit(X)


def unequal_blobs():
    rng = np.random.default_rng(0)
    X = np.concatenate(
        [
            0.1 * rng.normal(size=(100, 2)),
            0.5 * rng.normal(size=(100, 2)) + [3, 0],
            2.0 * rng.normal(size=(100, 2)) + [0, 14],
        ]
    )
    return X, np.arange(3).repeat(100)


EASY = {
    "moons": (make_moons(300, noise=0.06, random_state=0), 2),
    "circles": (make_circles(300, noise=0.04, factor=0.5, random_state=0), 2),
    "blobs": (make_blobs(300, 5, centers=4, random_state=0), 4),
    "blobs of different density": (unequal_blobs(), 3),
    "many features": (make_blobs(200, 100, centers=3, random_state=0), 3),
}


@functools.cache
def fitted(name):
    """The model of an easy set; tests leave it as it is."""
    (X, _), n_clusters = EASY[name]
    return fit(X, n_clusters)


@pytest.mark.parametrize("name", EASY)
def test_easy_sets_are_solved(name):
    (X, y), _ = EASY[name]
    model = fitted(name)
    assert adjusted_rand_score(y, model.labels_) > 0.97
    assert np.mean(model.predict(X) == model.labels_) > 0.98
    assert (np.abs(model.margins_) <= 1).all()
    assert np.mean(model.margins_ > 0) > 0.95
    assert (np.diff(model.history_) <= 0).all()
    assert model.weights_.sum() == pytest.approx(1, abs=1e-12)
    # the box: at least a fifth of the points carries weight
    assert model.weights_.max() <= (1 + 1e-12) / (0.2 * len(X))
    assert model.weights_.min() >= 0


@pytest.mark.parametrize("scale, shift", [(1e-6, 0.0), (1e6, 0.0), (1.0, 1e5)])
def test_unit_and_origin_of_the_data_change_nothing(scale, shift):
    (X, y), n_clusters = EASY["blobs of different density"]
    model = fit(scale * X + shift, n_clusters)
    assert adjusted_rand_score(y, model.labels_) > 0.97


def test_order_of_the_points_changes_nothing(rng):
    (X, _), n_clusters = EASY["blobs"]
    order = rng.permutation(len(X))
    labels = fitted("blobs").labels_
    assert adjusted_rand_score(fit(X[order], n_clusters).labels_, labels[order]) == 1


def score_kernels(X, y, n_clusters, max_iter):
    """Return the mean ARI of y by the wide kernels of the default, each alone."""
    graph, scores = NeighborGraph(Neighbors(X, 20, robust=True)), []
    for factor in FACTORS[:3]:
        K = graph.kernel(factor * graph.neighbors.scales, 1).matrix
        options = {"max_iter": max_iter, "random_state": 0}
        model = CDSK(n_clusters, kernel="precomputed", **options).fit(K)
        scores.append(adjusted_rand_score(y[y >= 0], model.labels_[y >= 0]))
    return np.mean(scores)


def blobs_in_noise(seed):
    rng = np.random.RandomState(seed)
    X, y = make_blobs(
        540, centers=5, cluster_std=0.5, center_box=(-6, 6), random_state=seed
    )
    low, high = X.min(axis=0), X.max(axis=0)
    room = 0.3 * (high - low)
    X = np.concatenate([X, rng.uniform(low - room, high + room, (60, 2))])
    return X, np.concatenate([y, np.full(60, -1)])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* have no similarity:UserWarning")  # outliers
@pytest.mark.parametrize(
    "make, n_clusters, least, gain",
    [(make_noisy_moons, 2, 0.95, 0.02), (blobs_in_noise, 5, 0.9, 0.1)],
)
def test_clusters_in_noise(make, n_clusters, least, gain):
    """Defaults find them, and in single kernels learned weights do better."""
    learned, uniform = [], []
    for seed in range(5):
        X, y = make(seed)
        model = fit(X, n_clusters)
        assert adjusted_rand_score(y[y >= 0], model.labels_[y >= 0]) > least
        if make is blobs_in_noise:
            # where any point is similar to no cluster, it is noise mostly
            is_noise = y[model.unconnected_] < 0
            assert np.sum(~is_noise) <= np.sum(is_noise)
        learned.append(score_kernels(X, y, n_clusters, 20))
        uniform.append(score_kernels(X, y, n_clusters, 0))
    assert np.mean(learned) > np.mean(uniform) + gain


@pytest.mark.filterwarnings("ignore:.* have no similarity:UserWarning")  # outliers
def test_learned_weights_win_on_breast_cancer():
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    graph = NeighborGraph(Neighbors(X, 20, robust=True))
    K = graph.kernel(FACTORS[1] * graph.neighbors.scales, 1).matrix
    model = CDSK(2, kernel="precomputed", random_state=0)
    assert adjusted_rand_score(y, model.fit(K).labels_) > 0.7
    model.set_params(max_iter=0)  # a few outliers are cut off
    assert adjusted_rand_score(y, model.fit(K).labels_) < 0.1


def results(model, X):
    return {
        "labels": model.labels_,
        "weights": model.weights_,
        "embedding": model.embedding_,
        "eigenvalues": model.eigenvalues_,
        "margins": model.margins_,
        "history": model.history_,
        "scores": model.choice_.scores,
        "votes": model.decision_function(X),
    }


def assert_equal(found, expected):
    for name in expected:
        assert (found[name] == expected[name]).all(), name


@pytest.mark.parametrize("name", ["moons", "many features"])
def test_number_of_threads_changes_no_bit(name):
    (X, _), n_clusters = EASY[name]
    one, three = (results(fit(X, n_clusters, n_threads=n), X) for n in (1, 3))
    assert_equal(three, one)


def test_number_of_threads_changes_no_bit_of_a_large_fit():
    # products first, factors after; d > 5, n > 1000
    X = make_moons(1300, noise=0.05, random_state=0)[0]
    X = np.concatenate([X, np.zeros((1300, 4))], axis=1)
    one, two = (results(fit(X, 2, n_threads=n), X) for n in (1, 2))
    assert_equal(two, one)


def test_same_seed_same_result_and_pickles_keep_it():
    (X, _), n_clusters = EASY["moons"]
    model = fitted("moons")
    expected = results(model, X)
    assert_equal(results(fit(X, n_clusters), X), expected)
    copy = pickle.loads(pickle.dumps(model))
    assert_equal(results(copy, X), expected)
    new = np.random.default_rng(0).normal(size=(50, 2))
    assert (copy.predict(new) == model.predict(new)).all()


def test_float32_is_close_to_float64():
    (X, _), n_clusters = EASY["blobs"]
    double, single = fitted("blobs"), fit(X.astype(np.float32), n_clusters)
    assert (single.labels_ == double.labels_).all()
    assert single.choice_.chosen == double.choice_.chosen
    np.testing.assert_allclose(single.bandwidth_, double.bandwidth_, rtol=1e-4)
    np.testing.assert_allclose(single.eigenvalues_, double.eigenvalues_, atol=1e-4)
    assert (single.predict(X) == double.predict(X)).all()


@pytest.mark.parametrize("n_neighbors", [5, 20, 10**6])
@pytest.mark.parametrize("bandwidth", ["auto", "local", "neighbor", 0.5])
def test_numbers_of_neighbors(n_neighbors, bandwidth):
    (X, y), n_clusters = EASY["moons"]
    model = fit(X, n_clusters, n_neighbors=n_neighbors, bandwidth=bandwidth)
    # one wide kernel on all pairs does not tell moons apart: no more than a clustering
    least = 0.9 if bandwidth != 0.5 and n_neighbors <= 20 else 0.1
    assert adjusted_rand_score(y, model.labels_) > least
    assert np.mean(model.predict(X) == model.labels_) > 0.9


def test_all_neighbors_equal_the_full_kernel():
    # only the diagonal, raised for safety, differs
    (X, _), n_clusters = EASY["blobs"]
    full = fit(X, n_clusters, bandwidth=2.0)
    truncated = fit(X, n_clusters, bandwidth=2.0, n_neighbors=len(X) - 1)
    assert (full.labels_ == truncated.labels_).all()
    new = X + 0.3
    assert (full.predict(new) == truncated.predict(new)).all()
    uniform, also = (
        fit(X, n_clusters, bandwidth=2.0, max_iter=0, n_neighbors=k)
        for k in (None, len(X) - 1)
    )
    np.testing.assert_allclose(uniform.eigenvalues_, also.eigenvalues_, atol=1e-9)
    np.testing.assert_allclose(
        uniform.decision_function(new), also.decision_function(new), atol=1e-9
    )
    np.testing.assert_allclose(uniform.margins_, also.margins_, atol=1e-9)


@pytest.mark.parametrize("n_neighbors", [0, -1, 2.5, "20", True])
def test_bad_numbers_of_neighbors_are_refused(n_neighbors):
    with pytest.raises(
        ValueError, match="n_neighbors must be an integer of at least 1"
    ):
        CDSK(2, n_neighbors=n_neighbors).fit(np.eye(5))


def test_neighbors_of_other_kernels_are_refused():
    with pytest.raises(ValueError, match='n_neighbors=5 truncates kernel="rbf" only'):
        CDSK(2, kernel="laplacian", n_neighbors=5).fit(np.eye(5))


def test_heaps_of_duplicates_stay_together(rng):
    clouds = [rng.normal(size=(60, 2)) + shift for shift in ([0, 0], [12, 0])]
    heap = np.tile([[6.0, 15.0]], (150, 1))
    X = np.concatenate([*clouds, heap])
    model = fit(X, 3)
    y = np.concatenate([np.zeros(60), np.ones(60), np.full(150, 2)])
    assert adjusted_rand_score(y, model.labels_) > 0.95
    assert len(set(model.labels_[120:])) == 1
    assert len(set(model.predict(heap[:3]))) == 1


def test_every_point_three_times_gives_the_same_clusters():
    (X, y), n_clusters = EASY["blobs"]
    labels = fit(np.repeat(X, 3, axis=0), n_clusters).labels_.reshape(-1, 3)
    assert (labels == labels[:, :1]).all()
    assert adjusted_rand_score(y, labels[:, 0]) > 0.97


@pytest.mark.parametrize("n", [2, 3, 4, 9])
def test_as_many_clusters_as_points(rng, n):
    X = rng.normal(size=(n, 2))
    model = fit(X, n)
    assert sorted(model.labels_) == list(range(n))
    # heavier points may outvote a point's own weight
    assert set(model.predict(X)) <= set(range(n))


@pytest.mark.parametrize("n", [3, 5, 8])
def test_few_points(n):
    # the last one lies apart
    X = np.concatenate([np.linspace(0, 1, n - 1), [50.0]])[:, np.newaxis]
    model = fit(X, 2)
    assert model.labels_.shape == (n,)
    assert set(model.labels_) == {0, 1}
    assert np.isfinite(model.embedding_).all()


def test_far_points_are_predicted_without_nan():
    (X, _), _ = EASY["blobs"]
    model = fitted("blobs")
    new = 1e7 * np.random.default_rng(0).normal(size=(30, 5))
    votes = model.decision_function(new)
    assert not np.isnan(votes).any()
    assert np.isfinite(votes.max(axis=1)).all()
    # at such a distance every point of the nearest 20 is as good as the nearest one
    nearest = np.argmin(((new[:, np.newaxis] - X) ** 2).sum(axis=-1), axis=1)
    assert np.mean(model.predict(new) == model.labels_[nearest]) > 0.8


@pytest.mark.parametrize(
    "parameters",
    [
        {"init": "sparse"},
        {"lam": "auto"},
        {"assign_labels": "cluster_qr"},
        {"psd": True},
    ],
    ids=str,
)
def test_other_parameters_work_with_the_default_kernel(parameters):
    (X, y), n_clusters = EASY["blobs"]
    assert adjusted_rand_score(y, fit(X, n_clusters, **parameters).labels_) > 0.9


@pytest.mark.parametrize(
    "n, n_features, max_iter",
    [
        (4000, 3, 0),
        (4000, 10, 1),
        pytest.param(6000, 2, 0, marks=pytest.mark.slow),
        pytest.param(6000, 10, 1, marks=pytest.mark.slow),
    ],
)
def test_memory_stays_far_below_a_full_matrix(n, n_features, max_iter):
    X = make_blobs(n, n_features, centers=3, random_state=0)[0]
    tracemalloc.start()
    try:
        model = fit(X, 3, n_init=1, max_iter=max_iter, tol=1.0)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * n * n / 3
    assert set(model.labels_) == {0, 1, 2}


def test_the_model_keeps_its_own_points_and_parameters():
    X, _ = unequal_blobs()
    given = X.copy()
    model = fit(given, 3)
    votes, bound = model.decision_function(X), model.generalization_bound()
    given[:] = 0.0
    model.set_params(bandwidth="std", n_neighbors=5)
    assert (model.decision_function(X) == votes).all()
    assert model.generalization_bound() == bound
