from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError

import cdsk
import reference
from cdsk import CDSK
from cdsk.theory import decompose_similarity, generalization_bound

problems = given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 25),
    n_classes=st.integers(2, 5),
    gamma=st.floats(1.0, 10.0),
)


def random_problem(seed, n, n_classes):
    """Similarity in [0, 1], labels of at least two classes, weights."""
    rng = np.random.default_rng(seed)
    S = rng.uniform(size=(n, n)) ** rng.choice([0.2, 1, 5])
    S = (S + S.T) / 2
    labels = rng.integers(0, n_classes, n)
    labels[:2] = [0, 1]
    weights = rng.dirichlet(np.full(n, rng.choice([0.05, 1, 100])))
    return S, labels, weights


def random_kernel(seed, n):
    rng = np.random.default_rng(seed)
    return cdsk.gaussian_gram(rng.normal(size=(n, 3)), rng.uniform(0.2, 3))


@problems
@settings(max_examples=150)
def test_both_losses_equal_the_reference_and_one_dominates(seed, n, n_classes, gamma):
    problem = random_problem(seed, n, n_classes)
    bound = generalization_bound(*problem, gamma=gamma)
    assert bound.margin_loss == pytest.approx(reference.margin_loss(*problem, gamma))
    assert bound.similarity_loss == pytest.approx(
        reference.similarity_loss(*problem, gamma)
    )
    assert bound.similarity_loss >= bound.margin_loss - 1e-13


def test_the_losses_are_equal_for_two_classes_that_are_classified_correctly(rng):
    X, labels = make_blobs(60, centers=[[0, 0], [9, 0]], random_state=0)
    K = cdsk.gaussian_gram(X, 2.0)
    weights = rng.dirichlet(np.ones(60))
    for gamma in (1.0, 3.0):
        bound = generalization_bound(K, labels, weights, gamma=gamma)
        assert bound.similarity_loss == pytest.approx(bound.margin_loss, abs=1e-13)
        assert bound.margin_loss < 1


def test_gamma_below_the_largest_similarity_breaks_the_domination():
    # why the theorem asks for gamma >= 1: beyond gamma the margin earns nothing more
    K, labels, weights = np.eye(2), [0, 1], [0.5, 0.5]
    bound = generalization_bound(K, labels, weights, gamma=0.25)
    assert bound.margin_loss == 0
    assert bound.similarity_loss == -1


@problems
@settings(max_examples=60)
def test_quadratic_form_is_at_most_c_times_omega(seed, n, n_classes, gamma):
    _, labels, weights = random_problem(seed, n, n_classes)
    K = random_kernel(seed, n)
    bound = generalization_bound(K, labels, weights, gamma=gamma)
    assert weights @ K @ weights <= bound.n_classes * bound.omega_plus + 1e-13
    assert bound.omega_minus == 0
    assert bound.radius == 1


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_quadratic_form_reaches_c_times_omega(n_classes):
    # equal classes of equal weight
    n = 5 * n_classes
    labels, weights = np.arange(n) % n_classes, np.full(n, 1 / n)
    bound = generalization_bound(np.ones((n, n)), labels, weights)
    assert bound.omega_plus * n_classes == pytest.approx(1)


@problems
@settings(max_examples=60)
def test_omega_of_both_parts(seed, n, n_classes, gamma):
    S, labels, weights = random_problem(seed, n, n_classes)
    bound = generalization_bound(S, labels, weights, gamma=gamma)
    same = labels[:, np.newaxis] == labels
    expected = [weights @ (part * same) @ weights for part in decompose_similarity(S)]
    np.testing.assert_allclose(
        [bound.omega_plus, bound.omega_minus], expected, atol=1e-13
    )
    assert bound.omega_plus - bound.omega_minus == pytest.approx(
        weights @ (S * same) @ weights, abs=1e-13
    )


@pytest.mark.parametrize("scale", [1.0, 4.0])
def test_total_is_the_theorem_as_printed(scale):
    S, labels, weights = random_problem(3, 20, 3)
    gamma, delta, n, c = 2.0, 0.01, 20, 3
    S *= scale
    bound = generalization_bound(S, labels, weights, gamma=gamma, delta=delta)
    values, vectors = np.linalg.eigh(S)
    forms = [
        sum((weights[labels == y] @ vectors[labels == y]) ** 2 for y in range(c))
        @ np.maximum(sign * values, 0)
        for sign in (1, -1)
    ]
    B = np.sqrt(forms[0]) + np.sqrt(forms[1])
    R2 = max((vectors**2 @ np.maximum(sign * values, 0)).max() for sign in (1, -1))
    assert R2 >= 1  # else the printed constant is not proved
    assert bound.total == pytest.approx(
        reference.margin_loss(S, labels, weights, gamma)
        + 8 * np.sqrt(R2) * (2 * c - 1) * c * B / (gamma * np.sqrt(n))
        + (16 * c * (2 * c - 1) * B * R2 / gamma + 1)
        * np.sqrt(np.log(4 / delta) / (2 * n))
    )


def test_small_similarities_scale_as_the_proof_says():
    # S and gamma scaled together describe the same classifier and the same margins, so
    # B R / gamma and every term stay as they are. B R^2 would shrink with the unit.
    S, labels, weights = random_problem(4, 15, 2)
    S /= decompose_similarity(S)[0].diagonal().max()
    one = generalization_bound(S, labels, weights)
    small = generalization_bound(S / 16, labels, weights, gamma=1 / 16)
    assert one.radius == pytest.approx(1)
    assert small.radius == pytest.approx(1 / 4)
    for term in ("margin_loss", "similarity_loss", "complexity", "confidence", "total"):
        assert getattr(small, term) == pytest.approx(getattr(one, term))


def ball_suprema(S, B, signs):
    """sup |1/n sum_i sigma_i h(x_i)| over both balls, for each row of signs."""
    suprema = 0.0
    for part, b in zip(decompose_similarity(S), B, strict=True):
        form = np.einsum("si,ij,sj->s", signs, part, signs)
        suprema = suprema + b * np.sqrt(np.maximum(form, 0)) / len(S)
    return suprema


def all_signs(n):
    return np.array(list(product([-1.0, 1.0], repeat=n)))


def rademacher(bound):
    """The lemma's bound on the complexity of the margins, without its deviation."""
    return bound.complexity * bound.gamma / 8


@pytest.mark.parametrize("kind", ["kernel", "indefinite"])
@pytest.mark.parametrize("seed", range(5))
def test_rademacher_bound_of_the_classes(kind, seed):
    # expectation over all 2^10 signs, the supremum over the balls in closed form
    S, labels, weights = random_problem(seed, 10, 3)
    labels = np.arange(10) % 3
    if kind == "kernel":
        S = random_kernel(seed, 10)
    bound = generalization_bound(S, labels, weights)
    B = np.sqrt([bound.omega_plus, bound.omega_minus])
    assert (B[1] > 0) == (kind == "indefinite")
    classes = 3 * ball_suprema(S, B, all_signs(10)).mean()
    assert classes <= rademacher(bound) / (2 * 3 - 1)


def test_rademacher_bound_of_the_classes_is_reached():
    # orthonormal features: every choice of signs gives the same norm
    n, labels = 10, np.arange(10) % 3
    bound = generalization_bound(np.eye(n), labels, np.full(n, 1 / n))
    suprema = ball_suprema(np.eye(n), [np.sqrt(bound.omega_plus), 0], all_signs(n))
    assert 3 * suprema.mean() == pytest.approx(rademacher(bound) / (2 * 3 - 1))


def test_rademacher_bound_of_the_margins_by_monte_carlo(rng):
    # Two classes: m(x, y) = +-(h_1 - h_2)(x), so the supremum over both balls is known.
    # Data, labels and signs are drawn; the balls are those of the first draw.
    n, draws = 12, 4000
    X = rng.normal(size=(n, 2))
    labels = np.arange(n) % 2
    bound = generalization_bound(cdsk.gaussian_gram(X, 1.0), labels, np.full(n, 1 / n))
    B = np.sqrt(bound.omega_plus)
    drawn = rng.normal(size=(draws, n, 2))
    distances = np.square(drawn[:, :, np.newaxis] - drawn[:, np.newaxis]).sum(axis=-1)
    signs = rng.choice([-1.0, 1.0], (draws, n)) * rng.choice([-1.0, 1.0], (draws, n))
    forms = np.einsum("si,sij,sj->s", signs, np.exp(-distances / 2), signs)
    suprema = 2 * B * np.sqrt(forms) / n
    assert np.mean(suprema) + 3 * np.std(suprema) / np.sqrt(draws) <= rademacher(bound)
    # hypotheses of the class itself, with weights in the simplex, stay below the balls
    weights = rng.dirichlet(np.ones(n), 2000)
    same = labels[:, np.newaxis] == labels
    K = cdsk.gaussian_gram(X, 1.0)
    inside = np.einsum("wi,ij,wj->w", weights, K * same, weights) <= bound.omega_plus
    assert inside.any()
    signed_weights = weights[inside] * (1 - 2 * labels)
    signs = rng.choice([-1.0, 1.0], (200, n))
    values = np.abs(signed_weights @ K @ signs.T).max(axis=0) / n
    assert (values <= 2 * ball_suprema(K, [B, 0], signs)).all()


def test_terms_shrink_with_n_and_grow_with_confidence():
    S, labels, weights = random_problem(5, 10, 2)
    small = generalization_bound(S, labels, weights)
    # each point four times with a quarter of its weight: the same classifier
    large = generalization_bound(
        np.kron(S, np.ones((4, 4))), np.repeat(labels, 4), np.repeat(weights, 4) / 4
    )
    assert large.margin_loss == pytest.approx(small.margin_loss)
    assert large.omega_plus == pytest.approx(small.omega_plus)
    assert large.complexity == pytest.approx(small.complexity / 2)
    assert large.confidence == pytest.approx(small.confidence / 2)
    sure = generalization_bound(S, labels, weights, delta=1e-6)
    assert sure.confidence > small.confidence
    assert sure.complexity == small.complexity


@pytest.mark.parametrize("bandwidth", ["auto", "local", 2.0])
def test_method_of_a_fitted_model(bandwidth, dtype, in_point_order):
    X = make_blobs(90, 3, centers=3, random_state=0)[0].astype(dtype)
    X = in_point_order(X)
    how = {"bandwidth": bandwidth, "representation": "raw"}
    model = CDSK(3, random_state=0, **how).fit(X)
    K = cdsk.gaussian_gram(X, model.bandwidth_)
    if bandwidth == "auto":
        K = model._make_kernel(X).as_array()
        near = np.argsort(reference.squared_distances(X, X), axis=1)[:, 1:21]
        expected = reference.truncated_gram(X, model.bandwidth_, near)
        np.testing.assert_allclose(K - np.diag(np.diag(K)), expected, atol=1e-6)
    expected = generalization_bound(
        K, model.labels_, model.weights_, gamma=2.0, delta=0.1
    )
    assert model.generalization_bound(gamma=2.0, delta=0.1) == expected
    assert model.generalization_bound(X, gamma=2.0, delta=0.1) == expected
    assert model.generalization_bound().gamma == 1.0


def test_method_of_a_model_of_other_kernels(in_point_order):
    X = in_point_order(make_blobs(90, 3, centers=3, random_state=0)[0])
    K = cdsk.gaussian_gram(X, 2.0)
    expected = CDSK(3, bandwidth=2.0, random_state=0).fit(X).generalization_bound()

    def kernel(A, B):
        return cdsk.gaussian_rows(A, B, 2.0)

    called = CDSK(3, kernel=kernel, random_state=0).fit(X).generalization_bound()
    assert called.total == pytest.approx(expected.total)
    model = CDSK(3, kernel="precomputed", random_state=0).fit(K)
    assert model.generalization_bound(K).total == pytest.approx(expected.total)
    with pytest.raises(ValueError, match="X must be the kernel matrix"):
        model.generalization_bound()
    with pytest.raises(NotFittedError):
        CDSK(3).generalization_bound()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"similarity": np.ones((2, 3))}, "similarity must be a square matrix"),
        ({"similarity": -np.ones((4, 4))}, "Negative values in data"),
        ({"labels": [0, 0, 0, 0]}, "labels must have at least 2 classes; got 1"),
        ({"labels": [0, 1]}, r"labels must have shape \(4,\)"),
        ({"weights": [1.0, 1.0, 0.0, 0.0]}, "weights must sum to 1"),
        ({"weights": [2.0, -1.0, 0.0, 0.0]}, "weights must lie between 0"),
        ({"gamma": 0.0}, "gamma must be a number > 0"),
        ({"delta": 2.0}, "delta must be a number > 0 and <= 1"),
    ],
)
def test_invalid_input(change, message):
    arguments = {
        "similarity": np.eye(4),
        "labels": ["a", "a", "b", "b"],
        "weights": np.full(4, 0.25),
    }
    assert generalization_bound(**arguments).n_classes == 2
    with pytest.raises(ValueError, match=message):
        generalization_bound(**(arguments | change))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0.0, np.nan, 1.0, 1.0], "labels must have a class .*; got NaN at row 1"),
        (np.array([0, 1, float("nan"), 1], object), "got NaN at row 2"),
        (
            np.array([0, "a", 1, 1], object),
            "labels must have one type.*; got int, str",
        ),
    ],
)
def test_invalid_labels(labels, message):
    with pytest.raises(ValueError, match=message):
        generalization_bound(np.eye(4), labels, np.full(4, 0.25))
