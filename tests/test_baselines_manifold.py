"""Bandwidths learned by reconstruction: error, gradient and W by their formulas."""

import tracemalloc

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import kneighbors_graph

from cdsk.baselines import ManifoldSpectral, _manifold
from cdsk.baselines._manifold import ReconstructionError


@pytest.fixture(scope="module")
def moons():
    return make_moons(150, noise=0.06, random_state=1)


@pytest.fixture
def problem(rng):
    X = rng.normal(size=(60, 4)) * [1.0, 0.3, 2.0, 1.0]
    graph = kneighbors_graph(X, 5)
    return X, (graph + graph.T).astype(bool).astype(float).tocsr()


def brute(X, pattern, bandwidth):
    """Return W, and the mean squared error of the points reconstructed from it."""
    W = np.exp(-cdist(X / bandwidth, X / bandwidth, "sqeuclidean") / 2)
    W *= pattern.toarray()
    rebuilt = W / W.sum(axis=1, keepdims=True) @ X
    return W, np.sum((X - rebuilt) ** 2) / len(X)


def test_error_and_weights_equal_their_formulas(problem, rng):
    X, pattern = problem
    h = rng.uniform(0.5, 2, 4)
    error = ReconstructionError(X, pattern)
    W, expected = brute(X, pattern, h)
    assert error(np.log(h))[0] == pytest.approx(expected)
    found = error.weights(np.log(h))
    np.testing.assert_allclose(found.toarray(), W, rtol=1e-10, atol=1e-300)
    assert (found != found.T).nnz == 0


@pytest.mark.parametrize("log", [-2.0, 0.0, 1.0])
def test_gradient_equals_differences(problem, rng, log):
    X, pattern = problem
    error = ReconstructionError(X, pattern)
    logs = log + 0.5 * rng.normal(size=4)
    step = 1e-5
    pairs = [(error(logs + e)[0], error(logs - e)[0]) for e in step * np.eye(4)]
    expected = [(after - before) / (2 * step) for after, before in pairs]
    gradient = error(logs)[1]
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-8)
    assert np.abs(gradient).max() > 1e-3
    forward = approx_fprime(logs, lambda logs: error(logs)[0])
    np.testing.assert_allclose(gradient, forward, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("batch_size", [1, 100])
def test_any_batch_size(problem, monkeypatch, batch_size):
    X, pattern = problem
    logs = np.zeros(4)
    whole = ReconstructionError(X, pattern)
    expected = whole(logs), whole.weights(logs), whole.initial_logs
    monkeypatch.setattr(_manifold, "_BATCH_SIZE", batch_size)
    batched = ReconstructionError(X, pattern)
    assert len(list(batched._batches())) > 1
    np.testing.assert_allclose(batched(logs)[0], expected[0][0], rtol=1e-12)
    np.testing.assert_allclose(batched(logs)[1], expected[0][1], rtol=1e-10)
    assert abs(batched.weights(logs) - expected[1]).max() < 1e-15
    np.testing.assert_allclose(batched.initial_logs, expected[2], rtol=1e-12)


def test_memory_does_not_grow_with_all_edges(rng):
    X = rng.normal(size=(1000, 300))
    pattern = kneighbors_graph(X, 10).tocsr()
    error = ReconstructionError(X, pattern)
    tracemalloc.start()
    error(np.zeros(300))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * pattern.nnz * 300


@pytest.mark.parametrize("bandwidth", ["features", "scalar"])
def test_affinity_is_the_formula_at_the_learned_bandwidths(moons, bandwidth):
    X = moons[0] * [1.0, 3.0] + 7.0
    model = ManifoldSpectral(2, bandwidth=bandwidth, random_state=0).fit(X)
    assert np.shape(model.bandwidth_) == ((2,) if bandwidth == "features" else ())
    graph = kneighbors_graph(X, 10)
    pattern = (graph + graph.T).astype(bool).astype(float)
    W, error = brute(X, pattern, model.bandwidth_)
    np.testing.assert_allclose(model.affinity_matrix_.toarray(), W, rtol=1e-9)
    variance = X.var(axis=0).sum()
    assert model.history_[-1] == pytest.approx(error / variance)
    # initial bandwidth: the median length of an edge, for all features
    lengths = cdist(X, X)[pattern.toarray() > 0]
    _, error = brute(X, pattern, np.median(lengths))
    assert model.history_[0] == pytest.approx(error / variance)


def test_the_error_decreases_to_a_stationary_point(rng):
    X = rng.normal(size=(80, 5)) * [1.0, 0.2, 3.0, 1.0, 0.5]
    model = ManifoldSpectral(2, tol=1e-12, random_state=0).fit(X)
    assert len(model.history_) > 3
    assert (np.diff(model.history_) <= 0).all()
    assert model.history_[-1] < model.history_[0]
    graph = kneighbors_graph(X, 10)
    error = ReconstructionError(X, (graph + graph.T).tocsr())
    value, gradient = error(np.log(model.bandwidth_))
    # except for bandwidths at the end of their range
    inside = np.abs(np.log(model.bandwidth_) - error.initial_logs) < np.log(29)
    assert inside.any()
    assert np.abs(gradient[inside]).max() < 1e-3 * value


def test_each_of_many_features_is_learned(rng):
    # a noisy curve in 400 dimensions: one feature contributes little to the error
    t = rng.uniform(0, 1, (120, 1))
    X = np.sin(6 * t * rng.uniform(0.2, 1, 400)) + 0.1 * rng.normal(size=(120, 400))
    errors = [
        ManifoldSpectral(2, bandwidth=bandwidth, random_state=0).fit(X).history_[-1]
        for bandwidth in ("features", "scalar")
    ]
    assert errors[0] < errors[1]


def test_the_scalar_bandwidth_is_the_best_of_many(problem):
    X, _ = problem
    model = ManifoldSpectral(2, bandwidth="scalar", random_state=0).fit(X)
    graph = kneighbors_graph(X, 10)
    pattern = (graph + graph.T).astype(bool).astype(float)
    others = model.bandwidth_ * np.geomspace(0.2, 5, 41)
    least = min(brute(X, pattern, h)[1] for h in others)
    assert model.history_[1] * X.var(axis=0).sum() <= least * (1 + 1e-6)
    assert model.history_[1] <= model.history_[0]


@pytest.mark.parametrize("bandwidth", ["features", "scalar"])
def test_moons_are_found_as_by_scikit_learn_and_not_by_kmeans(moons, bandwidth):
    X, y = moons
    model = ManifoldSpectral(2, bandwidth=bandwidth, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1
    peer = SpectralClustering(2, affinity="precomputed", random_state=0)
    labels = peer.fit_predict(model.affinity_matrix_)
    assert adjusted_rand_score(labels, model.labels_) == 1
    assert adjusted_rand_score(y, KMeans(2, random_state=0).fit_predict(X)) < 0.7


@pytest.mark.parametrize("bandwidth", ["features", "scalar"])
@pytest.mark.parametrize("unit", [1e-100, 1e100])
def test_the_unit_does_not_matter(moons, bandwidth, unit):
    X, _ = moons
    model = ManifoldSpectral(2, bandwidth=bandwidth, random_state=0).fit(X)
    other = ManifoldSpectral(2, bandwidth=bandwidth, random_state=0).fit(unit * X)
    np.testing.assert_allclose(other.bandwidth_, unit * model.bandwidth_, rtol=1e-3)
    assert (other.labels_ == model.labels_).all()


@pytest.mark.parametrize("bandwidth", ["features", "scalar"])
# fewer distinct points than clusters
@pytest.mark.filterwarnings("ignore:X has . distinct point")
# graphs of few neighbors are disconnected
@pytest.mark.filterwarnings("ignore:.*have no similarity")
def test_duplicates_constant_features_and_few_points(moons, bandwidth):
    model = ManifoldSpectral(2, bandwidth=bandwidth, random_state=0)
    heaps = np.repeat([[0.0, 1.0, 3.0], [4.0, 4.0, 3.0]], 20, axis=0)
    assert (model.fit_predict(heaps) == np.repeat([0, 1], 20)).all()
    assert model.history_[-1] == 0
    X = np.column_stack([np.repeat(moons[0][:50], 3, axis=0), np.full(150, 5.0)])
    model.fit(X)
    assert np.isfinite(model.affinity_matrix_.data).all()
    assert (model.fit_predict([[0.0], [1.0], [9.0], [9.5]]) == [0, 0, 1, 1]).all()
    assert (model.fit(np.ones((12, 2))).affinity_matrix_.data == 1).all()


def test_convergence_warning(rng):
    X = rng.normal(size=(80, 5)) * [1.0, 0.2, 3.0, 1.0, 0.5]
    with pytest.warns(ConvergenceWarning, match="did not converge in max_iter=1 it"):
        ManifoldSpectral(2, max_iter=1, tol=1e-12, random_state=0).fit(X)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"bandwidth": "median"}, "bandwidth must be one of 'features', 'scalar'; got"),
        ({"n_neighbors": 0}, "n_neighbors must be an integer of at least 1; got 0"),
        ({"max_iter": 0}, "max_iter must be an integer of at least 1; got 0"),
        ({"tol": 0}, "tol must be a number > 0; got 0"),
    ],
)
def test_invalid_parameters(moons, wrong, message):
    with pytest.raises(ValueError, match=message):
        ManifoldSpectral(2, **wrong).fit(moons[0])
