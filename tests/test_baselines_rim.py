import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.special import entr, log_softmax, xlogy
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import cdsk
from cdsk.baselines import RIM
from cdsk.baselines._initialization import center_and_scale
from cdsk.baselines._rim import cross_entropy, minus_information, penalized

KERNELS = pytest.mark.parametrize("kernel", ["linear", "rbf"])


@pytest.mark.parametrize("name", ["information", "cross entropy"])
def test_gradients(rng, name):
    features = rng.normal(size=(30, 4))
    labels = rng.integers(5, size=30)
    loss = {
        "information": minus_information,
        "cross entropy": lambda log_p: cross_entropy(log_p, labels),
    }[name]
    arguments = features, 0.1, loss
    at = rng.normal(size=25)
    error = check_grad(
        lambda w: penalized(w, *arguments)[0],
        lambda w: penalized(w, *arguments)[1],
        at,
    )
    assert error < 1e-6 * np.linalg.norm(penalized(at, *arguments)[1])


def test_information_is_a_difference_of_entropies(rng):
    log_p = log_softmax(rng.normal(size=(20, 3)), axis=1)
    p = np.exp(log_p)
    expected = entr(p.mean(axis=0)).sum() - entr(p).sum(axis=1).mean()
    assert minus_information(log_p)[0] == pytest.approx(-expected)


def objective(probabilities, penalty):
    mean = entr(probabilities.mean(axis=0)).sum()
    return mean - entr(probabilities).sum(axis=1).mean() - penalty


@KERNELS
def test_the_objective_increases_and_is_that_of_the_model(rng, kernel):
    X = rng.normal(size=(80, 3)) * [1.0, 2.0, 3.0] + 5.0
    model = RIM(4, kernel=kernel, random_state=0).fit(X)
    assert (np.diff(model.objective_) >= 0).all()
    assert model.objective_[-1] > model.objective_[0]
    if kernel == "linear":
        squares = np.sum(model.coef_**2) * center_and_scale(X)[2] ** 2
    else:
        bandwidth = np.median(
            np.linalg.norm(X[:, np.newaxis] - X, axis=2)[np.triu_indices(80, 1)]
        )
        K = cdsk.gaussian_gram(model.pivots_, bandwidth)
        squares = np.sum(model.coef_ * (K @ model.coef_))
    found = objective(model.predict_proba(X), 0.001 / 4 * squares)
    # the factor of K leaves out up to 1e-6 of its diagonal
    assert model.objective_[-1] == pytest.approx(found, abs=1e-4)


@KERNELS
def test_labels_are_predictions(rng, kernel):
    X = rng.normal(size=(80, 2))
    model = RIM(6, kernel=kernel, regularization=0.01, random_state=0).fit(X)
    assert (model.predict(X) == model.labels_).all()
    assert (model.predict_proba(X).argmax(axis=1) == model.labels_).all()
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(1)


def test_surplus_clusters_become_empty():
    X, y = make_blobs(150, 2, centers=3, cluster_std=0.5, random_state=3)
    model = RIM(10, regularization=0.1, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1


@KERNELS
def test_boundaries_move_to_low_density(rng, kernel):
    # k-means assigns near points of a wide cluster to the narrow one next to it
    X = rng.normal(size=(300, 2))
    y = np.repeat([0, 1], 150)
    X[y == 0] *= 0.3
    X[y == 1] = 1.5 * X[y == 1] + [4.0, 0.0]
    by_kmeans = KMeans(2, n_init=5, random_state=0).fit_predict(X)
    labels = RIM(2, kernel=kernel, random_state=0).fit_predict(X)
    score = adjusted_rand_score(y, labels)
    assert score > adjusted_rand_score(y, by_kmeans) + 0.05


def test_kernel_and_linear_model_agree_where_kernels_do(rng):
    # a very wide Gaussian is 1 - |x - y|^2 / (2 b^2): linear up to a factor
    X = center_and_scale(rng.normal(size=(60, 2)))[0]
    b = 100.0
    linear = RIM(3, regularization=0.01, random_state=0).fit(X)
    wide = RIM(
        3, kernel="rbf", bandwidth=b, regularization=0.01 / b**2, random_state=0
    ).fit(X)
    assert (wide.labels_ == linear.labels_).mean() > 0.9


@pytest.mark.parametrize("unit", [1e-100, 1e120])
def test_units_do_not_matter(rng, unit):
    X = rng.normal(size=(60, 3))
    model = RIM(3, random_state=0)
    expected = model.fit(X).predict_proba(X)
    assert model.fit(unit * X).predict_proba(unit * X) == pytest.approx(expected)


@KERNELS
# fewer distinct points than clusters
@pytest.mark.filterwarnings("ignore:X has . distinct point")
def test_few_and_equal_points(kernel):
    model = RIM(3, kernel=kernel, random_state=0)
    assert (model.fit_predict(np.ones((5, 2))) == 0).all()
    assert len(model.fit_predict([[0.0], [1.0], [7.0]])) == 3


def test_convergence_warning(rng):
    with pytest.warns(ConvergenceWarning, match="RIM did not converge in 1 iterations"):
        RIM(3, max_iter=1, random_state=0).fit(rng.normal(size=(50, 2)))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"kernel": "poly"}, "kernel must be one of 'linear', 'rbf'; got 'poly'"),
        ({"bandwidth": "local"}, "bandwidth must be a number > 0 or one of"),
        ({"bandwidth": 0}, "bandwidth must be a number > 0; got 0"),
        ({"regularization": -1}, "regularization must be a number >= 0; got -1"),
        ({"n_init": 0}, "n_init must be an integer"),
        ({"max_iter": 0}, "max_iter must be an integer"),
    ],
)
def test_invalid_parameters(wrong, message):
    with pytest.raises(ValueError, match=message):
        RIM(2, **wrong).fit(np.eye(4))


def test_the_objective_is_that_of_gemclus():
    linear = pytest.importorskip("gemclus.linear")
    X = center_and_scale(make_blobs(120, 3, centers=4, random_state=1)[0])[0]
    model = RIM(4, random_state=0).fit(X)
    reg = 0.001 / 4  # the penalty of gemclus is a sum over clusters
    how = {"reg": reg, "learning_rate": 0.1, "max_iter": 3000, "batch_size": 120}

    def objective(rival):
        p = rival.predict_proba(X)
        mean = p.mean(axis=0)
        information = np.mean(np.sum(xlogy(p, p), axis=1)) - np.sum(xlogy(mean, mean))
        return information - reg * np.sum(rival.W_**2)

    # gemclus starts at random
    rivals = [linear.RIM(4, **how, random_state=seed).fit(X) for seed in range(4)]
    best = max(rivals, key=objective)
    assert objective(best) == pytest.approx(model.objective_[-1], rel=1e-5)
    assert adjusted_rand_score(best.predict(X), model.labels_) == 1
