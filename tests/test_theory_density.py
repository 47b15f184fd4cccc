import numpy as np
import pytest
from scipy.integrate import simpson
from sklearn.datasets import make_blobs, make_moons
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KernelDensity
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import cdsk
import reference
from cdsk.theory import KernelDensityClassifier, generalization_bound


@parametrize_with_checks(
    [
        KernelDensityClassifier(),
        KernelDensityClassifier(bandwidth="local"),
        KernelDensityClassifier(weights="learned"),
    ]
)
def test_scikit_learn_common_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def blobs():
    X, y = make_blobs(150, 3, centers=3, cluster_std=3.0, random_state=0)
    return X, np.array(["a", "b", "c"])[y]


@pytest.mark.parametrize("kind", ["uniform", "learned", "given"])
def test_densities_equal_those_of_scikit_learn(blobs, rng, kind):
    X, y = blobs
    weights = rng.dirichlet(np.ones(150)) if kind == "given" else kind
    model = KernelDensityClassifier(weights=weights, bandwidth=1.3).fit(X, y)
    new = rng.normal(size=(40, 3)) * 8
    log_density = model.predict_joint_log_proba(new)
    for label, column in zip("abc", log_density.T, strict=True):
        own = (y == label) & (model.weights_ > 0)
        peer = KernelDensity(bandwidth=1.3, rtol=1e-12)
        peer.fit(X[own], sample_weight=model.weights_[own])
        share = np.log(model.weights_[own].sum())
        np.testing.assert_allclose(column, peer.score_samples(new) + share, rtol=1e-9)
    density = np.exp(log_density)
    total = density.sum(axis=1)
    np.testing.assert_allclose(np.exp(model.score_samples(new)), total, rtol=1e-12)
    proba = model.predict_proba(new)
    np.testing.assert_allclose(proba, density / total[:, np.newaxis], rtol=1e-9)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(new)), proba, rtol=1e-12)
    assert (model.predict(new) == model.classes_[density.argmax(axis=1)]).all()
    assert (model.decision_function(new) == log_density).all()


def test_density_integrates_to_one():
    X, y = make_moons(60, noise=0.1, random_state=0)
    model = KernelDensityClassifier(weights="learned", bandwidth=0.3).fit(X, y)
    axes = [np.linspace(x.min() - 3, x.max() + 3, 301) for x in X.T]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    density = np.exp(model.score_samples(grid)).reshape(301, 301)
    integral = simpson(simpson(density, x=axes[1]), x=axes[0])
    assert integral == pytest.approx(1, abs=1e-8)


def test_decision_of_two_classes_is_a_log_ratio(rng):
    X, y = make_moons(80, noise=0.2, random_state=0)
    model = KernelDensityClassifier(bandwidth=0.3).fit(X, y)
    # the third is so far away that both densities are zero as numbers
    new = np.array([[0.0, 1.0], [1.0, -0.5], [20.0, -20.0]])
    decision = model.decision_function(new)
    expected = reference.log_votes(new, X, y, np.full(80, 1 / 80), 0.3, 2)
    np.testing.assert_allclose(
        decision, (expected[:, 1] - expected[:, 0]).astype(float), rtol=1e-8
    )
    assert (model.predict(new) == (decision > 0)).all()
    assert np.isfinite(model.predict_proba(new)).all()


@pytest.mark.parametrize("lam", [0.1, 0.5])
def test_learned_weights_minimize_loss_and_regularizer(blobs, rng, lam):
    X, y = blobs
    K = cdsk.gaussian_gram(X, 2.0)
    model = KernelDensityClassifier(
        weights="learned", bandwidth=2.0, lam=lam, qp_tol=1e-9
    ).fit(X, y)

    def objective(weights):
        bound = generalization_bound(K, y, weights)
        return bound.similarity_loss + lam * bound.omega_plus

    least = objective(model.weights_)
    upper = 1 / (150 * lam)
    assert model.weights_.max() <= upper
    # another solver, on the matrix itself
    same = (y[:, np.newaxis] == y).astype(float)
    other = cdsk.solve_qp(
        lam * K * same, (K * (1 - 2 * same)).mean(axis=1), upper, tol=1e-9
    )
    assert least == pytest.approx(1 + other.objective, abs=1e-8)
    assert least < objective(np.full(150, 1 / 150))
    for _ in range(20):
        towards = rng.dirichlet(np.full(150, 5.0))
        towards = 0.5 * np.minimum(towards, upper) + 0.5 * model.weights_
        towards += (1 - towards.sum()) / 150
        if towards.max() <= upper:
            assert least <= objective(towards) + 1e-9


def test_weights_of_lam_one_are_uniform(blobs):
    model = KernelDensityClassifier(weights="learned", lam=1.0).fit(*blobs)
    np.testing.assert_allclose(model.weights_, 1 / 150, rtol=1e-12)
    assert len(model.support_) == 150


@pytest.mark.parametrize("noise", [0.2, 0.3])
def test_accuracy_of_learned_weights(noise):
    # default parameters on all sides (docs/theory.md has a bandwidth rule that fails
    # here); 1000 test points, so +-0.02 is chance
    X, y = make_moons(1300, noise=noise, random_state=0)
    train_X, test_X, train_y, test_y = train_test_split(
        X, y, train_size=300, random_state=0
    )
    learned = KernelDensityClassifier(weights="learned").fit(train_X, train_y)
    accuracy = learned.score(test_X, test_y)
    assert len(learned.support_) < 250
    peer = SVC().fit(train_X, train_y).score(test_X, test_y)
    density = [
        KernelDensity(bandwidth=learned.bandwidth_).fit(train_X[train_y == k])
        for k in (0, 1)
    ]
    by_density = np.argmax([k.score_samples(test_X) for k in density], axis=0)
    assert accuracy >= peer - 0.04
    assert accuracy >= (by_density == test_y).mean() - 0.04


def test_a_class_without_weight_warns():
    X = np.concatenate([np.zeros((50, 1)), 100.0 * np.arange(1, 6)[:, np.newaxis]])
    y = np.repeat([0, 1], [50, 5])
    model = KernelDensityClassifier(weights="learned", bandwidth=1.0)
    with pytest.warns(UserWarning, match="1 of 2 classes have no weight"):
        model.fit(X, y)
    assert (model.predict([[0.0], [100.0]]) == 0).all()
    assert (model.predict_proba([[100.0]]) == [[1.0, 0.0]]).all()
    assert np.isneginf(model.decision_function([[100.0]])).all()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"weights": "heavy"}, "weights must be one of 'uniform', 'learned'"),
        ({"weights": np.ones(150)}, "weights must sum to 1"),
        ({"weights": np.ones(3) / 3}, r"weights must have shape \(150,\)"),
        ({"bandwidth": 0.0}, "bandwidth must be a number > 0"),
        ({"bandwidth": "wide"}, "bandwidth must be one of"),
        ({"lam": 1.5}, "lam must be a number > 0 and <= 1"),
        ({"qp_tol": 0.0}, "qp_tol must be a number > 0"),
    ],
)
def test_invalid_parameters(blobs, parameters, message):
    with pytest.raises(ValueError, match=message):
        KernelDensityClassifier(**parameters).fit(*blobs)


def test_one_class(blobs):
    with pytest.raises(ValueError, match="at least 2 classes; got 1"):
        KernelDensityClassifier().fit(blobs[0], np.zeros(150))


def test_probabilities_of_distant_points_sum_to_one():
    model = KernelDensityClassifier(bandwidth=1.0)
    model.fit([[0.0], [0.0], [1.0], [1.0]], [0, 1, 0, 1])
    far = model.predict_proba([[1e6], [1e8], [1e9]])
    np.testing.assert_allclose(far, 0.5)


@pytest.mark.parametrize("bandwidth", [1.0, "local"])
def test_points_beyond_the_range_of_squares(rng, bandwidth):
    X = rng.normal(size=(40, 2))
    model = KernelDensityClassifier(bandwidth=bandwidth).fit(X, X[:, 0] > 0)
    with pytest.raises(
        ValueError, match=r"of magnitude at most .*got 1.0e\+155 at row"
    ):
        model.predict_proba([[1e155, 0.0]])
    proba = model.predict_proba([[1e140, 0.0]])
    assert proba.sum() == pytest.approx(1.0)
