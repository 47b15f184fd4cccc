"""The Laplacian regularized l1-graph."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import kneighbors_graph

from cdsk.baselines import L1Graph, LaplacianL1Graph
from test_baselines_l1_graph import planes, unit, violation

EXACT = {"tol": 1e-13, "max_iter": 2000, "random_state": 0}


def laplacian(X, k=5):
    S = kneighbors_graph(unit(X), k).toarray()
    S = np.maximum(S, S.T)
    return np.diag(S.sum(axis=1)) - S


def objective(X, A, L, alpha, gamma):
    residual = unit(X) - A @ unit(X)
    smoothness = np.trace(A.T @ L @ A)  # rows of A are codes
    return 0.5 * (residual**2).sum() + alpha * abs(A).sum() + 0.5 * gamma * smoothness


@pytest.mark.parametrize("graph", ["fixed", "learned"])
def test_intersecting_planes_are_found_in_noise(rng, graph):
    X, y = planes(rng, noise=0.02)
    labels = LaplacianL1Graph(3, graph=graph, random_state=0).fit_predict(X)
    assert adjusted_rand_score(y, labels) > 0.95


@pytest.mark.parametrize("graph", ["fixed", "learned"])
def test_without_a_graph_codes_are_those_of_the_l1_graph(rng, graph):
    X = rng.normal(size=(50, 12))
    plain = L1Graph(2, random_state=0).fit(X)
    model = LaplacianL1Graph(2, gamma=0.0, graph=graph, random_state=0).fit(X)
    np.testing.assert_allclose(model.coef_.toarray(), plain.coef_.toarray(), atol=1e-9)
    assert (model.labels_ == plain.labels_).all()
    assert model.objective_[0] == pytest.approx(model.objective_[-1], rel=1e-12)


@pytest.mark.parametrize("graph", ["fixed", "learned"])
@pytest.mark.parametrize("gamma", [0.1, 2.0])
def test_the_objective_decreases(rng, graph, gamma):
    X = rng.normal(size=(40, 4))
    options = {"gamma": gamma, "graph": graph, "n_graphs": 1, "random_state": 0}
    model = LaplacianL1Graph(2, **options).fit(X)
    assert len(model.objective_) > 2
    assert (np.diff(model.objective_) <= 1e-12 * model.objective_[0]).all()
    assert model.objective_[-1] < model.objective_[0]


def test_the_objective_equals_its_formula(rng):
    X, gamma = rng.normal(size=(40, 6)), 0.3
    L = laplacian(X)
    model = LaplacianL1Graph(2, gamma=gamma, random_state=0).fit(X)
    for A, value in (
        (L1Graph(2, random_state=0).fit(X).coef_, model.objective_[0]),
        (model.coef_, model.objective_[-1]),
    ):
        expected = objective(X, A.toarray(), L, 0.1, gamma)
        assert value == pytest.approx(expected, rel=1e-9)


def test_optimality_conditions_of_all_codes(rng):
    X, alpha, gamma = rng.normal(size=(40, 6)), 0.1, 0.3
    model = LaplacianL1Graph(2, alpha=alpha, gamma=gamma, **EXACT).fit(X)
    A = model.coef_.toarray()
    assert (np.diagonal(A) == 0).all()
    slope = (unit(X) - A @ unit(X)) @ unit(X).T - gamma * laplacian(X) @ A
    assert violation(slope, A, alpha) <= 1e-5


def test_the_objective_is_that_of_proximal_gradient_descent(rng):
    X, alpha, gamma = rng.normal(size=(30, 5)), 0.1, 0.3
    L, G = laplacian(X), unit(X) @ unit(X).T
    step = 1 / (np.linalg.eigvalsh(G)[-1] + gamma * np.linalg.eigvalsh(L)[-1])
    A = V = np.zeros((30, 30))
    for t in range(3000):
        V = V - step * (V @ G - G + gamma * L @ V)
        B = np.sign(V) * np.maximum(np.abs(V) - step * alpha, 0)
        np.fill_diagonal(B, 0.0)
        A, V = B, B + t / (t + 3) * (B - A)
    model = LaplacianL1Graph(2, alpha=alpha, gamma=gamma, **EXACT).fit(X)
    expected = objective(X, A, L, alpha, gamma)
    assert model.objective_[-1] == pytest.approx(expected, rel=1e-8)


def test_codes_of_neighbors_are_more_similar_with_larger_gamma(rng):
    X = rng.normal(size=(30, 4))
    L, roughness = laplacian(X), []
    for gamma in (0.0, 0.1, 1.0):
        A = LaplacianL1Graph(2, gamma=gamma, random_state=0).fit(X).coef_.toarray()
        roughness.append(np.trace(A.T @ L @ A))
    assert (np.diff(roughness) < 0).all()


def test_a_learned_graph_is_that_of_the_previous_codes(rng):
    X, gamma = rng.normal(size=(40, 6)), 0.3
    first = abs(L1Graph(2, random_state=0).fit(X).coef_.toarray())
    S = (first + first.T) / 2
    L = np.diag(S.sum(axis=1)) - S
    options = {"gamma": gamma, "graph": "learned", "n_graphs": 1, "random_state": 0}
    model = LaplacianL1Graph(2, **options).fit(X)
    expected = objective(X, model.coef_.toarray(), L, 0.1, gamma)
    assert model.objective_[-1] == pytest.approx(expected, rel=1e-9)


def test_convergence_warning(rng):
    with pytest.warns(ConvergenceWarning, match="in max_iter=1 iterations"):
        LaplacianL1Graph(2, max_iter=1).fit(rng.normal(size=(40, 4)))


@pytest.mark.parametrize("graph", ["fixed", "learned"])
@pytest.mark.parametrize(
    "X",
    [
        np.ones((5, 3)),
        np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 2.0], [1.0, 2.1]]),
        np.arange(6.0).reshape(-1, 1),
        np.array([[1.0, 2.0], [1.0, 3.0]]),
    ],
    ids=["equal", "zeros", "one feature", "two points"],
)
# fewer distinct points than clusters
@pytest.mark.filterwarnings("ignore:X has . distinct point")
# graphs of few neighbors are disconnected
@pytest.mark.filterwarnings("ignore:.*have no similarity")
# equal points
@pytest.mark.filterwarnings("ignore:Found . connected groups")
def test_degenerate_data(X, graph):
    for n_clusters in (1, 2):
        model = LaplacianL1Graph(n_clusters, graph=graph, random_state=0)
        assert model.fit_predict(X).max() < n_clusters


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"gamma": -1}, "gamma must be a number >= 0; got -1"),
        ({"graph": "x"}, "graph must be one of 'fixed', 'learned'; got 'x'"),
        ({"n_neighbors": 0}, "n_neighbors must be an integer of at least 1; got 0"),
        ({"n_graphs": 0}, "n_graphs must be an integer of at least 1; got 0"),
        ({"max_iter": 0}, "max_iter must be an integer of at least 1; got 0"),
        ({"tol": -1}, "tol must be a number >= 0; got -1"),
    ],
)
def test_invalid_parameters(rng, wrong, message):
    with pytest.raises(ValueError, match=message):
        LaplacianL1Graph(2, **wrong).fit(rng.normal(size=(9, 2)))
