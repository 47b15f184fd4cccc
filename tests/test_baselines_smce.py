"""Sparse manifold clustering."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.metrics import adjusted_rand_score

from cdsk.baselines import SMCE
from cdsk.baselines._sparse_codes import sparse_code


def two_knots(rng, n=100, d=10):
    """Two trefoil knots of R^4, the second beside the first, in R^d with some noise."""
    t = 2 * np.pi / n * (np.arange(n) + rng.uniform(-0.3, 0.3, (2, n)))
    x, y = np.sin(t) + 2 * np.sin(2 * t), np.cos(t) - 2 * np.cos(2 * t)
    beside = np.repeat([[0.0], [0.5]], n, axis=1)
    knots = np.stack([x, y, -np.sin(3 * t), beside], axis=2).reshape(-1, 4)
    frame = np.linalg.qr(rng.normal(size=(d, 4)))[0]
    noise = 0.002 * rng.normal(size=(2 * n, d))
    return knots @ frame.T + noise, np.repeat([0, 1], n)


@pytest.mark.parametrize("lam", [0.1, 10.0])
def test_two_close_knots_are_separated(rng, lam):
    X, y = two_knots(rng)
    labels = SMCE(2, lam=lam, random_state=0).fit_predict(X)
    assert adjusted_rand_score(y, labels) > 0.95
    neighbors = {"affinity": "nearest_neighbors", "random_state": 0}
    for rival in (KMeans(2, random_state=0), SpectralClustering(2, **neighbors)):
        assert adjusted_rand_score(y, rival.fit_predict(X)) < 0.1


def problem(X, i, k):
    """Return neighbors, distances and directions of the paper, by brute force."""
    distances = np.linalg.norm(X - X[i], axis=1)
    near = np.argsort(distances)[1 : k + 1]
    d = distances[near]
    return near, d, (X[near] - X[i]) / d[:, np.newaxis]


def least_by_scipy(gram, costs):
    """Return the smallest objective by SLSQP, with a = p - m, p >= 0 and m >= 0."""
    k = len(costs)

    def objective(pm):
        a = pm[:k] - pm[k:]
        slope = gram @ a
        value = 0.5 * a @ slope + costs @ (pm[:k] + pm[k:])
        return value, np.concatenate([slope + costs, costs - slope])

    sums_to_one = {"type": "eq", "fun": lambda pm: pm[:k].sum() - pm[k:].sum() - 1}
    start = np.append(np.full(k, 1 / k), np.zeros(k))
    found = minimize(
        objective,
        start,
        jac=True,
        method="SLSQP",
        bounds=[(0, None)] * (2 * k),
        constraints=[sums_to_one],
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    return found.fun


@pytest.mark.parametrize("lam", [0.01, 0.1, 10.0])
@pytest.mark.parametrize("d", [2, 8])
def test_codes_have_the_smallest_objective_found_by_scipy(rng, d, lam):
    X = rng.normal(size=(30, d))
    for i in range(5):
        _, distances, U = problem(X, i, 9)
        gram, costs = U @ U.T, lam * distances / distances.sum()
        nearest = np.array([0]), np.array([1.0])
        atoms, a = sparse_code(gram, np.zeros(9), costs, nearest, affine=True)
        code = np.zeros(9)
        code[atoms] = a
        assert code.sum() == pytest.approx(1, abs=1e-9)
        value = 0.5 * code @ gram @ code + costs @ np.abs(code)
        assert value == pytest.approx(least_by_scipy(gram, costs), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("lam", [0.1, 10.0])
def test_the_affinity_satisfies_the_optimality_conditions(rng, lam):
    # from W back to the codes: |a_j| is W_ij d_j up to a factor, which sum a = 1 gives
    X, k = two_knots(rng, 40, 5)[0], 15
    full = SMCE(2, lam=lam, mass=1.0, random_state=0).fit(X).affinity_matrix_.toarray()
    rows = np.zeros_like(full)
    for i in range(len(X)):
        near, d, U = problem(X, i, k)
        gram, costs = U @ U.T, lam * d / d.sum()
        nearest = np.array([0]), np.array([1.0])
        atoms, a = sparse_code(gram, np.zeros(k), costs, nearest, affine=True)
        slope = gram[:, atoms] @ a
        level = -(slope[atoms] + costs[atoms] * np.sign(a)).mean()
        # the same multiplier for all active atoms, which no inactive one violates
        np.testing.assert_allclose(
            slope[atoms] + level, -costs[atoms] * np.sign(a), atol=1e-8
        )
        assert (np.abs(slope + level) <= costs * (1 + 2e-6) + 1e-9).all()
        rows[i, near[atoms]] = np.abs(a) / d[atoms]
    rows /= rows.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(full, np.maximum(rows, rows.T), atol=1e-6)


def test_duplicates_and_units(rng):
    X, _ = two_knots(rng, 30, 4)
    W = SMCE(2, random_state=0).fit(X).affinity_matrix_.toarray()
    for factor in (1e-100, 1e100):
        again = SMCE(2, random_state=0).fit(factor * X).affinity_matrix_.toarray()
        np.testing.assert_allclose(again, W, atol=1e-6)
    model = SMCE(2, random_state=0).fit(np.concatenate([X, X[:9]]))
    assert (model.labels_[:9] == model.labels_[60:]).all()
    expected = W[:9, 9:]
    np.testing.assert_allclose(
        model.affinity_matrix_.toarray()[60:, 9:60], expected, atol=1e-6
    )


@pytest.mark.parametrize(
    "X",
    [
        np.ones((5, 3)),
        np.arange(12.0).reshape(-1, 1),
        np.array([[1.0, 2.0], [1.0, 3.0]]),
        np.stack(np.meshgrid(range(5), range(5)), axis=2).reshape(-1, 2),
        np.array([[0.0], [1e-200], [2e-200], [1.0], [1.0 + 1e-15], [2.0]]),
    ],
    ids=["equal", "a line", "two points", "a grid", "nearly equal"],
)
# fewer distinct points than clusters
@pytest.mark.filterwarnings("ignore:X has . distinct point")
def test_degenerate_data(X):
    for n_clusters in (1, 2):
        labels = SMCE(n_clusters, random_state=0).fit_predict(X)
        assert labels.max() < n_clusters


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"lam": 0}, "lam must be a number > 0; got 0"),
        ({"n_neighbors": 0}, "n_neighbors must be an integer of at least 1; got 0"),
        ({"mass": 0}, "mass must be a number > 0 and <= 1; got 0"),
    ],
)
def test_invalid_parameters(rng, wrong, message):
    with pytest.raises(ValueError, match=message):
        SMCE(2, **wrong).fit(rng.normal(size=(9, 2)))
