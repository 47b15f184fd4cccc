import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import simpson
from scipy.stats import norm

import cdsk
import reference
from cdsk.theory import KernelDensityClassifier, ise_bound, ise_similarity


def random_problem(seed, n, d):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, n)
    labels[:2] = [0, 1]
    X = rng.normal(size=(n, d)) + labels[:, np.newaxis]
    return X, labels, rng.dirichlet(np.full(n, rng.choice([0.1, 1, 100])))


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 20),
    d=st.integers(1, 4),
    bandwidth=st.floats(0.1, 5.0),
)
@settings(max_examples=60)
def test_terms_equal_the_printed_sums(seed, n, d, bandwidth):
    problem = random_problem(seed, n, d)
    bound = ise_bound(*problem, bandwidth)
    np.testing.assert_allclose(
        [bound.empirical, bound.regularizer],
        reference.ise_terms(*problem, bandwidth),
        rtol=1e-10,
        atol=1e-12 * n,
    )
    # the regularizer is a squared norm
    assert bound.regularizer >= 0


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("bandwidth", [0.3, 1.0])
def test_integral_of_the_squared_decision_function(d, bandwidth):
    X, labels, weights = random_problem(7, 25, d)
    model = KernelDensityClassifier(weights=weights, bandwidth=bandwidth)
    model.fit(X, labels)
    axes = [
        np.linspace(x.min() - 8 * bandwidth, x.max() + 8 * bandwidth, 301) for x in X.T
    ]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, d)
    density = np.exp(model.predict_joint_log_proba(grid))
    integral = ((density[:, 0] - density[:, 1]) ** 2).reshape([301] * d)
    for axis in reversed(axes):
        integral = simpson(integral, x=axis, axis=-1)
    bound = ise_bound(X, labels, weights, bandwidth)
    assert bound.tau_1 * bound.regularizer == pytest.approx(integral, rel=1e-8)


def normal_density(x, sd):
    # norm.pdf takes ten times as long
    return np.exp(-0.5 * (x / sd) ** 2) / (sd * np.sqrt(2 * np.pi))


class Mixture:
    """p(x, y) = 1/2 N(x; +-center, sd) on the line, and integrals over it on a grid."""

    def __init__(self, center, sd, bandwidth):
        self.center, self.sd, self.bandwidth = center, sd, bandwidth
        end = center + 8 * max(sd, bandwidth)
        self.grid = np.linspace(-end, end, 2001)
        self.r = (
            norm.pdf(self.grid, -center, sd) - norm.pdf(self.grid, center, sd)
        ) / 2
        self.squared_norm = simpson(self.r**2, x=self.grid)

    def sample(self, rng, n):
        labels = rng.integers(0, 2, n)
        return rng.normal((2 * labels - 1) * self.center, self.sd), labels

    def ise(self, x, labels, weights):
        """ISE of each row of weights."""
        kernels = normal_density(self.grid - x[:, np.newaxis], self.bandwidth)
        estimate = (weights * (1 - 2 * labels)) @ kernels
        return simpson((estimate - self.r) ** 2, x=self.grid, axis=-1)


# separate, overlapping, and equal classes; the last is the hardest for the deviation
MIXTURES = [
    Mixture(2.0, 0.5, 0.5),
    Mixture(0.5, 1.0, 0.3),
    Mixture(2.0, 0.2, 3.0),
    Mixture(0.0, 0.01, 1.0),
]


@pytest.mark.parametrize("mixture", MIXTURES)
def test_ise_is_below_the_bound_with_the_stated_probability(mixture, rng):
    # for all weights at once: uniform ones, and all on the point that fares worst
    n, draws, delta = 20, 100, 0.05
    weights = np.concatenate([np.full((1, n), 1 / n), np.eye(n)])
    failures = 0
    for _ in range(draws):
        x, labels = mixture.sample(rng, n)
        labels[:2] = [0, 1]
        ise = mixture.ise(x, labels, weights)
        # of the bounds for one point only tau_0 / n ISE^ differs from point to point
        signs = 1 - 2 * labels
        estimates = normal_density(x[:, np.newaxis] - x, mixture.bandwidth) @ signs
        worst = 1 + np.argmax(ise[1:] + 2 / n * signs * estimates)
        totals = [
            ise_bound(x[:, np.newaxis], labels, w, mixture.bandwidth, delta=delta).total
            for w in weights[[0, worst]]
        ]
        failures += (ise[[0, worst]] > np.array(totals) + mixture.squared_norm).any()
    assert failures <= delta * draws


@pytest.mark.parametrize("mixture", MIXTURES)
def test_the_terms_estimate_the_ise_without_bias(mixture, rng):
    # tau_0 / n ISE^ made tau_0 (ISE^ + 2) / (n - 1), the sum without its own points
    n, draws = 40, 300
    weights = np.full(n, 1 / n)
    errors = []
    for _ in range(draws):
        x, labels = mixture.sample(rng, n)
        bound = ise_bound(x[:, np.newaxis], labels, weights, mixture.bandwidth)
        square = bound.tau_1 * bound.regularizer
        product = bound.total - bound.remainder - square
        product = (n * product + 2 * bound.tau_0) / (n - 1)
        estimate = square + product + mixture.squared_norm
        errors.append(estimate - mixture.ise(x, labels, weights))
    assert abs(np.mean(errors)) <= 4 * np.std(errors) / np.sqrt(draws)


def test_the_bound_as_printed_is_wrong(rng):
    # Theorem ise leaves out the integral of r^2. Its right-hand side can be negative,
    # an integrated square cannot.
    n, mixture = 1000, Mixture(2.0, 0.3, 0.3)
    x, labels = mixture.sample(rng, n)
    weights = np.full(n, 1 / n)
    bound = ise_bound(x[:, np.newaxis], labels, weights, 0.3)
    printed = (
        bound.tau_0 / n * bound.empirical
        + bound.tau_1 * bound.regularizer
        + 2 * bound.tau_0 * (1 / (n - 1) + bound.epsilon)
    )
    assert printed < 0
    assert mixture.ise(x, labels, weights) <= bound.total + mixture.squared_norm


@pytest.mark.parametrize("n", [2, 50, 1000])
@pytest.mark.parametrize("delta", [0.01, 0.5])
def test_deviation_is_hoeffding_for_every_point(n, delta, rng):
    X = rng.normal(size=(n, 1))
    bound = ise_bound(X, np.arange(n) % 2, np.full(n, 1 / n), 1.0, delta=delta)
    assert n * np.exp(-2 * (n - 1) * bound.epsilon**2) == pytest.approx(delta)
    # 2 tau_0 (2 epsilon) for the deviation, 2 tau_0 (1/n + 1/n) for the own points
    assert bound.remainder == pytest.approx(4 * bound.tau_0 * (1 / n + bound.epsilon))
    assert bound.tau_0 == pytest.approx(norm.pdf(0))
    assert bound.tau_1 == pytest.approx(norm.pdf(0, scale=np.sqrt(2)))


def test_similarity_is_twice_that_of_the_clustering(rng, dtype):
    n, lam = 30, 0.4
    K = cdsk.gaussian_gram(rng.normal(size=(n, 2)).astype(dtype), 1.0)
    a = rng.dirichlet(np.full(n, 50.0))
    similarity = ise_similarity(K, a, lam)
    expected = 4 * (a[:, np.newaxis] + a - n * lam * np.outer(a, a)) * K
    rtol = 10 * np.finfo(dtype).eps
    np.testing.assert_allclose(similarity, expected, rtol=rtol)
    np.testing.assert_allclose(
        similarity, 2 * reference.similarity(K, a, n * lam)[0], rtol=rtol
    )


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 20), lam=st.floats(0.01, 0.2))
@settings(max_examples=60)
def test_similarity_bounds_the_cost(seed, n, lam):
    # ISE^ + L K(a) <= sum_{i<j} S_ij 1(y_i != y_j) - sum (a_i + a_j) K + L a'K_wide a
    X, labels, _ = random_problem(seed, n, 2)
    a = np.full(n, 1 / n)
    K, wide = cdsk.gaussian_gram(X, 1.0), cdsk.gaussian_gram(X, np.sqrt(2))
    bound = ise_bound(X, labels, a, 1.0)
    between = np.triu(labels[:, np.newaxis] != labels)
    rest = ((a[:, np.newaxis] + a) * K).sum()
    upper = (ise_similarity(K, a, lam) * between).sum() - rest + n * lam * a @ wide @ a
    cost = bound.empirical + n * lam * bound.regularizer
    assert cost <= upper + 1e-12 * n
    # with the wide kernel in the quadratic part of S it is an equality
    exact = upper - 4 * n * lam * (np.outer(a, a) * (wide - K) * between).sum()
    assert cost == pytest.approx(exact)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.ones(4)}, "Expected 2D array"),
        ({"X": np.array([["a"]] * 4)}, "X must hold numbers only"),
        ({"labels": [0, 1, 2, 0]}, "labels must have 2 classes; got 3"),
        ({"weights": np.ones(4)}, "weights must sum to 1"),
        ({"bandwidth": "auto"}, "bandwidth must be a number > 0"),
        ({"bandwidth": 1e-200}, "bandwidth must be positive"),
        ({"X": np.zeros((4, 2000))}, "beyond the range of floating-point"),
        ({"delta": 0}, "delta must be a number > 0"),
    ],
)
def test_invalid_input(change, message):
    arguments = {
        "X": np.arange(4.0)[:, np.newaxis],
        "labels": [0, 0, 1, 1],
        "weights": np.full(4, 0.25),
        "bandwidth": 1.0,
    }
    ise_bound(**arguments)
    with pytest.raises(ValueError, match=message):
        ise_bound(**(arguments | change))
