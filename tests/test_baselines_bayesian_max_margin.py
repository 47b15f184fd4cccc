from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import logsumexp
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from cdsk.baselines import BayesianMaxMargin
from cdsk.baselines._bayesian_max_margin import (
    Chain,
    Hyperparameters,
    NormalWishart,
    discriminant_conditional,
    draw_scales,
)

HYPERPARAMETERS = Hyperparameters(penalty=0.3, margin=2.0, variance=1.5, alpha=0.7)


def make_chain(X, labels, c, seed=0, **changes):
    rng = np.random.RandomState(seed)
    return Chain(X, labels, c, replace(HYPERPARAMETERS, **changes), rng)


def sum_hinges(discriminants, inputs, labels, margin):
    """Return the sum of max(0, zeta), point by point."""
    total = 0.0
    for x, y in zip(inputs, labels, strict=True):
        values = discriminants @ x
        total += max(0.0, margin - values[y] + np.delete(values, y).max())
    return total


@pytest.mark.parametrize("u", [-2.5, -0.3, 0.0, 0.3, 2.5])
def test_a_hinge_is_a_mixture_of_gaussians_over_its_scale(u):
    def density(s):
        return np.exp(-((s + u) ** 2) / (2 * s)) / np.sqrt(2 * np.pi * s)

    total = quad(density, 0, 1)[0] + quad(density, 1, np.inf)[0]
    assert total == pytest.approx(np.exp(-2 * max(0, u)), rel=1e-6)

    # and draws of the scale have that density
    scales = draw_scales(np.full(4000, u), np.random.RandomState(0))

    def distribution(at):
        return np.array([quad(density, 0, s)[0] for s in np.atleast_1d(at)]) / total

    sample = scales[::20]
    assert stats.kstest(sample, distribution).pvalue > 0.01
    if u:
        inverse = stats.invgauss(mu=1 / abs(u), scale=1)
        assert stats.kstest(1 / scales, inverse.cdf).pvalue > 0.01


def test_scales_at_the_margin_are_finite():
    scales = draw_scales(np.array([0.0, 1e-300, 1e300]), np.random.RandomState(0))
    assert np.isfinite(scales).all()
    assert (scales > 0).all()


def test_a_discriminant_is_gaussian_given_the_scales(rng):
    inputs, scales = rng.normal(size=(12, 2)), rng.uniform(0.2, 2.0, size=12)
    offset, sign = rng.normal(size=12), rng.choice([-1.0, 1.0], size=12)
    mean, factor = discriminant_conditional(inputs, offset, sign, scales, 0.4, 1.5)
    factor = np.tril(factor)

    def log_density(eta):
        zeta = offset - sign * (inputs @ eta)
        hinges = -((scales + 0.4 * zeta) ** 2) / (2 * scales)
        return hinges.sum() - eta @ eta / (2 * 1.5)

    gaussian = stats.multivariate_normal(mean, np.linalg.inv(factor @ factor.T))
    at = rng.normal(size=(20, 2))
    difference = [log_density(eta) - gaussian.logpdf(eta) for eta in at]
    assert np.ptp(difference) < 1e-9


@pytest.mark.parametrize("c", [2, 4])
def test_hinges(rng, c):
    X, labels = rng.normal(size=(25, 3)), rng.integers(c, size=25)
    chain = make_chain(X, labels, c)
    inputs = np.column_stack([X, np.ones(25)])
    for k in range(c):
        expected = sum_hinges(chain.discriminants, inputs, np.full(25, k), 2.0)
        assert chain._hinges()[:, k].sum() == pytest.approx(expected)


@pytest.mark.parametrize("c", [2, 3])
def test_discriminants_have_the_posterior_given_the_labels(c):
    # Points at 0: values are c constants, whose density can be summed on a grid.
    X, labels = np.zeros((5, 1)), np.array([0, 0, 0, 1, c - 1])
    chain = make_chain(X, labels, c, penalty=1.0, margin=1.0, variance=1.0)
    draws = np.empty((3000, c))
    for draw in draws:
        chain._draw_discriminants()
        draw[:] = chain.discriminants[:, 1]
    grid = np.linspace(-4, 4, 41)
    values = np.stack(np.meshgrid(*[grid] * c, indexing="ij"), axis=-1).reshape(-1, c)
    log_density = -0.5 * np.sum(values**2, axis=1)
    for y in labels:
        rival = np.delete(values, y, axis=1).max(axis=1)
        log_density -= 2.0 * np.maximum(1.0 - values[:, y] + rival, 0.0)
    weights = np.exp(log_density - logsumexp(log_density))
    # all of them together move slowly, their differences do not
    values -= values.mean(axis=1, keepdims=True)
    draws -= draws.mean(axis=1, keepdims=True)
    mean = weights @ values
    spread = np.sqrt(weights @ (values - mean) ** 2)
    assert mean[0] > 0.3  # the prior's is 0
    assert draws.mean(axis=0) == pytest.approx(mean, abs=4 * 0.4 / np.sqrt(1000))
    assert draws.std(axis=0) == pytest.approx(spread, rel=0.1)


def test_means_and_precisions_have_their_distribution(rng):
    A = rng.normal(size=(3, 3))
    S = A @ A.T + np.eye(3)
    many = 4000
    found = NormalWishart(
        np.tile([1.0, 2.0, 3.0], (many, 1)),
        np.full(many, 4.0),
        np.full(many, 9.0),
        np.tile(np.linalg.cholesky(S), (many, 1, 1)),
    )
    means, precisions, log_determinants = found.draw(np.random.RandomState(0))
    assert log_determinants == pytest.approx(np.linalg.slogdet(precisions)[1])
    expected = 9.0 * np.linalg.inv(S)
    assert np.allclose(precisions.mean(axis=0), expected, atol=0.1 * expected.max())
    # means are t distributed: 9 - 3 + 1 degrees of freedom
    marginal = stats.t(7, loc=2.0, scale=np.sqrt(S[1, 1] / (4.0 * 7)))
    assert stats.kstest(means[:, 1], marginal.cdf).pvalue > 0.01


def test_the_evidence_is_a_product_of_predictive_distributions(rng):
    """Moving a point changes log p(y, eta) as t distributions say, and the hinges."""
    X, c, d = rng.normal(size=(12, 2)), 3, 2
    chain = make_chain(X, rng.integers(c, size=12), c)
    prior_scale = c ** (-2 / d)

    def log_predictive(x, members):
        n = len(members)
        kappa, freedom = prior_scale + n, d + 2 + n
        mean = members.sum(axis=0) / kappa
        S = prior_scale * np.eye(d) + members.T @ members
        S = S - kappa * np.outer(mean, mean)
        df = freedom - d + 1
        return stats.multivariate_t(mean, S * (kappa + 1) / (kappa * df), df=df).logpdf(
            x
        )

    rest = np.arange(12) != 5
    inputs = np.column_stack([X, np.ones(12)])
    found, expected = [], []
    for k in range(c):
        chain.labels = np.where(rest, chain.labels, k)
        found.append(chain.log_posterior())
        members = X[rest & (chain.labels == k)]
        hinge = sum_hinges(chain.discriminants, inputs, chain.labels, 2.0)
        expected.append(
            np.log(len(members) + 0.7) + log_predictive(X[5], members) - 0.6 * hinge
        )
    assert np.diff(found) == pytest.approx(np.diff(expected))


def test_labels_are_drawn_from_their_conditional(rng):
    X, labels = rng.normal(size=(4, 2)), np.array([0, 1, 2, 0])
    chain = make_chain(X, labels, 3, alpha=1e6)  # equal weights of the components
    means = rng.normal(size=(3, 2))
    precisions = np.array([np.eye(2), 2 * np.eye(2), 3 * np.eye(2)])
    log_determinants = np.linalg.slogdet(precisions)[1]
    logits = np.array(
        [
            stats.multivariate_normal(m, np.linalg.inv(P)).logpdf(X)
            for m, P in zip(means, precisions, strict=True)
        ]
    ).T
    logits = logits - 2 * 0.3 * chain._hinges()
    expected = np.exp(logits - logsumexp(logits, axis=1, keepdims=True))
    draws = np.array(
        [chain._draw_labels(means, precisions, log_determinants) for _ in range(2000)]
    )
    shares = np.mean(draws[..., np.newaxis] == np.arange(3), axis=0)
    assert shares == pytest.approx(expected, abs=4 * 0.5 / np.sqrt(2000))


def test_the_posterior_increases_from_random_labels():
    X, _ = make_blobs(150, 2, centers=3, cluster_std=0.7, random_state=3)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    start = np.random.RandomState(0).randint(3, size=150)
    chain = make_chain(X, start, 3, alpha=1.0)
    first = chain.log_posterior()
    found = []
    for _ in range(40):
        chain.sweep()
        found.append(chain.log_posterior())
    assert min(found[-10:]) > first


def test_elongated_clusters_are_found(rng):
    X = rng.normal(size=(300, 2)) * [8.0, 0.3]
    y = np.arange(300) % 2
    X[:, 1] += 3.0 * y
    model = BayesianMaxMargin(2, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1
    assert model.objective_.shape == (100,)


def test_many_features_of_low_rank_and_constant_ones(rng):
    X, y = make_blobs(60, 2, centers=3, cluster_std=0.3, random_state=3)
    X = np.column_stack([X @ rng.normal(size=(2, 50)), np.ones(60)])
    labels = BayesianMaxMargin(3, random_state=0, n_sweeps=20).fit_predict(X)
    assert adjusted_rand_score(y, labels) == 1


@pytest.mark.parametrize("unit", [1e-100, 1e120])
def test_units_do_not_matter(rng, unit):
    X, y = make_blobs(60, 2, centers=3, cluster_std=0.3, random_state=3)
    labels = BayesianMaxMargin(3, random_state=0, n_sweeps=10).fit_predict(unit * X)
    assert adjusted_rand_score(y, labels) == 1


# fewer distinct points than clusters
@pytest.mark.filterwarnings("ignore:X has . distinct point")
def test_few_and_equal_points():
    model = BayesianMaxMargin(3, random_state=0, n_sweeps=5)
    assert (model.fit_predict(np.ones((5, 2))) == 0).all()
    assert len(model.fit_predict([[0.0], [1.0], [7.0]])) == 3
    assert len(model.fit_predict([[0.0]] * 5 + [[1.0]])) == 6


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"penalty": -1}, "penalty must be a number >= 0"),
        ({"margin": "wide"}, "margin must be a number >= 0"),
        ({"variance": 0}, "variance must be a number > 0"),
        ({"alpha": 0}, "alpha must be a number > 0"),
        ({"n_components": 0}, "n_components must be an integer of at least 1"),
        ({"n_sweeps": 0}, "n_sweeps must be an integer of at least 1"),
    ],
)
def test_invalid_parameters(wrong, message):
    with pytest.raises(ValueError, match=message):
        BayesianMaxMargin(2, **wrong).fit(np.eye(4))
