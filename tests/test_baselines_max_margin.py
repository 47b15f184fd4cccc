import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.cluster import KMeans
from sklearn.datasets import make_circles
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import adjusted_rand_score

import cdsk
from cdsk.baselines import MaxMarginClustering
from cdsk.baselines._initialization import center_and_scale
from cdsk.baselines._max_margin import balanced_assignment


def strips(rng, n=200):
    """Two long parallel strips with a margin between them."""
    X = np.column_stack([rng.uniform(-5, 5, n), rng.uniform(-0.3, 0.3, n)])
    y = np.arange(n) % 2
    X[:, 1] += 2.0 * y
    return X, y


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_a_margin_is_found_where_kmeans_cuts_across(rng, kernel):
    X, y = strips(rng)
    by_kmeans = KMeans(2, n_init=5, random_state=0).fit_predict(X)
    assert adjusted_rand_score(y, by_kmeans) < 0.1
    labels = MaxMarginClustering(2, kernel=kernel, random_state=0).fit_predict(X)
    assert adjusted_rand_score(y, labels) == 1


def test_a_margin_in_the_space_of_the_kernel_is_found():
    X, y = make_circles(200, noise=0.04, factor=0.4, random_state=0)
    by_kmeans = KMeans(2, n_init=5, random_state=0).fit_predict(X)
    assert adjusted_rand_score(y, by_kmeans) < 0.1
    labels = MaxMarginClustering(2, random_state=0).fit_predict(X)
    assert adjusted_rand_score(y, labels) == 1


@pytest.mark.parametrize("c", [2, 7])
def test_the_objective_decreases(rng, c):
    X = rng.normal(size=(150, 3))
    for seed in range(5):
        model = MaxMarginClustering(c, n_init=1, C=0.1, random_state=seed).fit(X)
        assert (np.diff(model.objective_) <= 0).all()
        sizes = np.bincount(model.labels_, minlength=c)
        assert sizes.min() >= 150 // (2 * c)
        assert sizes.max() <= -(-300 // c)


def test_the_objective_is_that_of_ridge_regressions(rng):
    X = rng.normal(size=(80, 2))
    model = MaxMarginClustering(3, bandwidth=1.5, C=0.5, random_state=0).fit(X)
    # a constant feature of large weight is an intercept without penalty
    K = cdsk.gaussian_gram(X, 1.5) + 1e6
    Y = np.eye(3)[model.labels_]
    ridge = KernelRidge(alpha=2.0, kernel="precomputed").fit(K, Y)
    loss = np.sum((Y - K @ ridge.dual_coef_) ** 2)
    penalty = 2.0 * np.sum(ridge.dual_coef_ * (K @ ridge.dual_coef_))
    assert model.objective_[-1] == pytest.approx((loss + penalty) / 80, rel=1e-5)


@pytest.mark.parametrize(("n", "c"), [(6, 2), (30, 4), (41, 8), (60, 20)])
@pytest.mark.parametrize("kind", ["noise", "one best", "ties"])
def test_assignments_are_those_of_linear_programming(rng, n, c, kind):
    scores = rng.normal(size=(n, c))
    if kind == "one best":
        scores[:, 0] += 10.0
        scores[:, 1] += 5.0
    elif kind == "ties":
        scores = np.round(scores)
    least, most = max(1, n // (2 * c)), -(-3 * n // (2 * c))
    labels = balanced_assignment(scores, least, most)
    sizes = np.bincount(labels, minlength=c)
    assert least <= sizes.min() <= sizes.max() <= most
    of_points = np.kron(np.eye(n), np.ones(c))
    of_clusters = np.kron(np.ones(n), np.eye(c))
    best = linprog(
        -scores.ravel(),
        A_eq=of_points,
        b_eq=np.ones(n),
        A_ub=np.vstack([of_clusters, -of_clusters]),
        b_ub=np.repeat([most, -least], c),
    )
    assert scores[np.arange(n), labels].sum() == pytest.approx(-best.fun, abs=1e-9)


def test_balance_1_gives_clusters_of_equal_size(rng):
    X = rng.normal(size=(60, 2)) + 20.0 * (np.arange(60) < 10)[:, np.newaxis]
    labels = MaxMarginClustering(3, balance=1, random_state=0).fit_predict(X)
    assert (np.bincount(labels) == 20).all()


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("unit", [1e-100, 1e120])
def test_units_and_origins_do_not_matter(rng, kernel, unit):
    X = rng.normal(size=(60, 3))
    model = MaxMarginClustering(3, kernel=kernel, random_state=0)
    expected = model.fit(X).objective_
    assert model.fit(unit * X).objective_ == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
# fewer distinct points than clusters
@pytest.mark.filterwarnings("ignore:X has . distinct point")
def test_few_and_equal_points(kernel):
    model = MaxMarginClustering(3, kernel=kernel, random_state=0)
    assert len(np.unique(model.fit_predict(np.ones((5, 2))))) == 1
    assert len(np.unique(model.fit_predict([[0.0], [1.0], [7.0]]))) == 3


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"kernel": "poly"}, "kernel must be one of 'rbf', 'linear'; got 'poly'"),
        ({"bandwidth": "local"}, "bandwidth must be a number > 0 or one of"),
        ({"bandwidth": -1}, "bandwidth must be a number > 0; got -1"),
        ({"C": 0}, "C must be a number > 0 and <= 100000000.0; got 0"),
        ({"balance": 0.5}, "balance must be a number >= 1; got 0.5"),
        ({"n_init": 0}, "n_init must be an integer"),
        ({"max_iter": 0}, "max_iter must be an integer"),
    ],
)
def test_invalid_parameters(wrong, message):
    with pytest.raises(ValueError, match=message):
        MaxMarginClustering(2, **wrong).fit(np.eye(4))


def test_center_and_scale(rng):
    X = rng.normal(size=(40, 3)) * 1e140
    points, center, unit = center_and_scale(X)
    assert np.allclose(points.mean(axis=0), 0, atol=1e-12)
    assert np.mean(np.sum(points**2, axis=1)) == pytest.approx(1)
    assert np.allclose(points * unit + center, X)
    assert center_and_scale(np.ones((3, 2)))[2] == 1


def test_convergence_warning(rng):
    X = rng.normal(size=(200, 2))
    with pytest.warns(ConvergenceWarning, match="still changed after 1 iterations"):
        MaxMarginClustering(5, max_iter=1, random_state=0).fit(X)
