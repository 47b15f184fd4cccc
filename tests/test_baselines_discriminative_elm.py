import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from cdsk.baselines import DiscriminativeELM
from cdsk.baselines._discriminative_elm import hidden_layer, train


@pytest.fixture(scope="module")
def stretched():
    X, y = make_blobs(300, centers=3, random_state=170)
    return X @ np.array([[0.6, -0.6], [-0.4, 0.8]]), y


def ridge(H, labels, n_clusters, C):
    """Outputs and objective by scikit-learn."""
    T = np.eye(n_clusters)[labels]
    weights = 1 / np.bincount(labels)[labels]
    model = Ridge(1 / C, fit_intercept=False, solver="cholesky")
    outputs = model.fit(H, T, sample_weight=weights).predict(H)
    errors = weights @ ((T - outputs) ** 2).sum(axis=1)
    return outputs, errors + (model.coef_**2).sum() / C


@pytest.mark.parametrize("C", [0.1, 10, 1e4])
def test_an_iteration_is_weighted_ridge_regression(rng, C):
    H = hidden_layer(rng.normal(size=(70, 4)), 30, np.random.RandomState(0))
    labels = rng.choice(3, size=70, p=[0.6, 0.3, 0.1])
    expected, objective = ridge(H, labels, 3, C)
    outputs, value = train(H, labels, 3, C)
    np.testing.assert_allclose(outputs, expected, atol=1e-8)
    assert value == pytest.approx(objective, rel=1e-8)


def test_elongated_clusters_are_found(stretched):
    X, y = stretched
    start = KMeans(3, n_init=10, random_state=0)
    start = start.fit_predict(StandardScaler().fit_transform(X))
    assert adjusted_rand_score(y, start) < 0.6
    labels = DiscriminativeELM(3, random_state=0).fit_predict(X)
    assert adjusted_rand_score(y, labels) > 0.8


def test_the_objective_decreases_until_labels_converge(stretched):
    X = stretched[0]
    model = DiscriminativeELM(3, n_hidden=80, C=100, random_state=0).fit(X)
    assert len(model.objective_) > 3
    assert model.objective_[-1] == model.objective_.min()
    assert model.objective_[-1] < 0.8 * model.objective_[0]
    X = StandardScaler().fit_transform(X)
    H = hidden_layer(X, 80, np.random.RandomState(0))
    outputs, objective = ridge(H, model.labels_, 3, model.C)
    assert model.objective_[-1] == pytest.approx(objective, rel=1e-8)
    assert (outputs.argmax(axis=1) == model.labels_).all()


def test_units_do_not_matter(stretched):
    X = stretched[0]
    model = DiscriminativeELM(3, n_hidden=50, random_state=0)
    labels = model.fit_predict(X)
    assert (model.fit_predict(X * [2.0**400, 2.0**-300]) == labels).all()


@pytest.mark.parametrize("d", [1, 10, 1000])
def test_hidden_units_are_nonlinear_and_unsaturated(rng, d):
    H = hidden_layer(rng.normal(size=(200, d)), 100, np.random.RandomState(0))
    assert 0.1 < np.quantile(H, 0.05) < 0.3
    assert 0.7 < np.quantile(H, 0.95) < 0.9
    # outputs depend on the points, not only on the biases
    assert H.std(axis=0).mean() > 0.05


# fewer distinct points than clusters
@pytest.mark.filterwarnings("ignore:X has . distinct point")
def test_more_clusters_than_distinct_points():
    X = np.repeat(np.eye(3), 4, axis=0)
    labels = DiscriminativeELM(6, n_hidden=20, random_state=0).fit_predict(X)
    assert (labels == np.repeat(np.arange(3), 4)).all()


def test_convergence_warning(stretched):
    with pytest.warns(ConvergenceWarning, match="after max_iter=1 iterations"):
        DiscriminativeELM(3, max_iter=1, random_state=0).fit(stretched[0])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_hidden": 0}, "n_hidden must be an integer of at least 1"),
        ({"C": 0}, "C must be a number >= 1e-09 and <= 1000000000.0; got 0"),
        ({"C": "x"}, "C must be a number"),
        ({"max_iter": 0}, "max_iter must be an integer of at least 1"),
        ({"n_init": 0}, "n_init must be an integer of at least 1"),
    ],
)
def test_invalid_parameters(wrong, message):
    with pytest.raises(ValueError, match=message):
        DiscriminativeELM(2, **wrong).fit(np.eye(4))
