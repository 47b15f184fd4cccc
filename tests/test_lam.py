"""The choice of lam: its criteria against slow versions, its samples, its errors."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import entropy
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score

import cdsk
import reference
from cdsk import CDSK, select_lambda
from cdsk._lam_choice import CRITERIA, LambdaSearch, select_lam
from cdsk._operators.dense import DenseKernel
from cdsk._spectral import cluster_qr_rotation, cut_ratios, rotate_to_axes
from stages import make_context

GRID = (0.1, 0.3, 0.5)


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(240, 3, centers=4, cluster_std=2.0, random_state=0)[0]


@pytest.mark.parametrize("criterion", CRITERIA)
def test_the_smallest_of_the_curve_is_chosen(blobs, criterion):
    choice = select_lambda(blobs, 4, criterion=criterion, n_init=2, random_state=0)
    assert choice.grid.tolist() == pytest.approx(np.arange(1, 11) / 20)
    assert choice.curve.shape == (10,)
    assert np.isfinite(choice.curve).all()
    assert choice.lam == choice.grid[np.argmin(choice.curve)]
    assert choice.criterion == criterion
    with pytest.raises(dataclasses.FrozenInstanceError):
        choice.lam = 0.1


def test_ties_go_to_the_smaller(rng):
    # one fit for all values, which a rounding of the embedding cannot tell apart
    vectors = rng.normal(size=(3, 100))
    fit = SimpleNamespace(embedding=SimpleNamespace(vectors=vectors, lengths=1.0))
    choice = select_lam(
        100,
        3,
        make_kernel=lambda rows: None,
        fit=lambda kernel, lam: fit,
        search=LambdaSearch((0.5, 0.2, 0.3), sample=1.0, criterion="paper"),
        context=make_context(n_init=1),
    )
    assert np.ptp(choice.curve) == 0
    assert choice.lam == 0.2


@pytest.fixture(scope="module")
def whole(blobs):
    """Fits of all points with bandwidth 2, as a sample of everything makes them."""
    return [
        CDSK(
            4,
            bandwidth=2.0,
            lam=lam,
            init=np.full(240, 1 / 240),  # learned weights stay
            qp_tol=1e-8,
            random_state=0,
        ).fit(blobs)
        for lam in GRID
    ]


def curve(blobs, criterion):
    return select_lambda(
        blobs,
        4,
        grid=GRID,
        sample=1.0,
        criterion=criterion,
        bandwidth=2.0,
        qp_tol=1e-8,
        random_state=0,
    ).curve


def test_paper_criterion_equals_the_printed_one(blobs, whole):
    # the entropy of softmax(Y) depends on the basis of the eigenspace only by signs
    K = cdsk.gaussian_gram(blobs, 2.0)
    expected = []
    for lam, model in zip(GRID, whole, strict=True):
        A = reference.normalized(K, model.weights_, lam * 240)
        _, degrees = reference.similarity(K, model.weights_, lam * 240)
        vectors = np.linalg.eigh(A)[1][:, :-5:-1]
        peak = np.abs(vectors).argmax(axis=0)
        vectors = vectors * np.sign(vectors[peak, range(4)])
        Y = np.exp(vectors / np.sqrt(degrees)[:, np.newaxis])
        expected.append(np.mean(entropy(Y, axis=1)))
    np.testing.assert_allclose(curve(blobs, "paper"), expected, rtol=1e-4)


def test_entropy_criterion(blobs, whole):
    expected = []
    for model in whole:
        rows = rotate_to_axes(model.embedding_.T).T
        expected.append(np.mean(entropy(np.exp(rows / 0.1), axis=1)))
    np.testing.assert_allclose(curve(blobs, "entropy"), expected, rtol=1e-3)


def test_rotation_finds_the_axes_of_separate_clusters(rng):
    labels = rng.integers(4, size=200)
    rows = np.eye(4)[labels]
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    turned = rotate_to_axes(np.ascontiguousarray((rows @ turn).T)).T
    np.testing.assert_allclose(np.abs(turned @ turned.T), rows @ rows.T, atol=1e-12)
    np.testing.assert_allclose(np.sort(turned, axis=1), np.sort(rows), atol=1e-12)


def test_rotation_is_no_worse_than_its_start(rng):
    # the mean largest entry is what the turns raise
    vectors = rng.normal(size=(3, 100))
    vectors /= np.linalg.norm(vectors, axis=0)
    turned = rotate_to_axes(vectors)
    np.testing.assert_allclose(turned.T @ turned, vectors.T @ vectors, atol=1e-12)
    start = cluster_qr_rotation(vectors).T @ vectors
    assert turned.max(axis=0).mean() >= start.max(axis=0).mean()


def test_cut_criterion(blobs, whole):
    K = cdsk.gaussian_gram(blobs, 2.0)
    kernel = DenseKernel(K, 1)
    expected = [np.mean(cut_ratios(kernel, model.labels_)) for model in whole]
    np.testing.assert_allclose(curve(blobs, "cut"), expected, rtol=1e-2)


def test_stability_prefers_what_repeats(blobs):
    # far blobs in their true number are found again in every sample
    X = make_blobs(400, centers=[[0, 0], [50, 0], [0, 50]], random_state=0)[0]
    choice = select_lambda(X, 3, grid=GRID, criterion="stability", random_state=0)
    assert np.median(choice.curve) < 1e-12
    assert choice.curve[choice.grid == choice.lam] < 1e-12
    # twice as many clusters as there are do not repeat
    choice = select_lambda(X, 6, grid=GRID, criterion="stability", random_state=0)
    assert (choice.curve > 0.05).all()


@pytest.mark.parametrize(
    ("n", "sample", "expected"), [(60, 0.1, 60), (500, 0.1, 100), (500, 0.5, 250)]
)
def test_size_of_the_sample(n, sample, expected):
    X = make_blobs(n, centers=3, random_state=0)[0]
    choice = select_lambda(X, 3, grid=(0.3,), sample=sample, random_state=0)
    assert choice.n_sample == expected
    assert select_lambda(X, 12, grid=(0.3,), random_state=0).n_sample == min(n, 120)


def test_auto_is_select_lambda(blobs):
    model = CDSK(4, lam="auto", random_state=0).fit(blobs)
    choice = select_lambda(blobs, 4, random_state=0)
    assert model.lam_ == choice.lam
    assert (model.lambda_choice_.curve == choice.curve).all()
    assert (model.weights_ <= 1 / (240 * model.lam_) * (1 + 1e-12)).all()
    assert CDSK(4, random_state=0).fit(blobs).lambda_choice_ is None


@pytest.mark.parametrize("init", ["uniform", "sparse", "array"])
def test_auto_with_other_parameters(blobs, init):
    if init == "array":
        init = np.full(240, 1 / 240)
    K = cdsk.gaussian_gram(blobs, 2.0)
    model = CDSK(4, kernel="precomputed", lam="auto", init=init, random_state=0).fit(K)
    assert model.lam_ in model.lambda_choice_.grid
    model = CDSK(4, kernel="cosine", lam="auto", init=init, random_state=0).fit(blobs)
    assert model.lam_ in model.lambda_choice_.grid


def test_same_seed_same_curve_for_any_number_of_threads(blobs):
    for criterion in CRITERIA:
        curves = [
            select_lambda(
                blobs, 4, grid=GRID, criterion=criterion, random_state=0, n_threads=n
            ).curve
            for n in (1, 3)
        ]
        assert (curves[0] == curves[1]).all()


def test_the_entropy_sees_what_the_printed_one_does_not():
    X, _ = make_moons(400, noise=0.1, random_state=0)
    spreads = {"entropy": [], "paper": []}
    for criterion, found in spreads.items():
        for seed in range(5):
            choice = select_lambda(X, 2, criterion=criterion, random_state=seed)
            found.append(np.ptp(choice.curve) / choice.curve.max())
    assert np.median(spreads["entropy"]) > 3 * np.median(spreads["paper"])


def test_labels_are_as_good_as_k_means_on_easy_data():
    X, y = make_blobs(300, centers=3, random_state=0)
    own = KMeans(3, n_init=10, random_state=0).fit_predict(X)
    # a sample may mislead: lam = 0.2 joins two of them here
    found = [
        CDSK(3, bandwidth="neighbor", lam="auto", random_state=seed).fit_predict(X)
        for seed in range(5)
    ]
    scores = [adjusted_rand_score(y, labels) for labels in found]
    assert np.median(scores) > adjusted_rand_score(y, own) - 0.05


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"grid": ()}, "grid must hold at least one value; got none"),
        ({"grid": (0.1, 2.0)}, "Each value of grid must be a number > 0 and <= 1"),
        ({"grid": "abc"}, "Each value of grid must be a number .* got 'abc'"),
        ({"sample": 0}, "sample must be a number > 0 and <= 1; got 0"),
        ({"criterion": "best"}, "criterion must be one of 'entropy', 'paper', 'cut'"),
        ({"lam": 0.3}, "select_lambda selects lam and does not take it"),
        ({"n_clusters": 0}, "n_clusters must be an integer of at least 1; got 0"),
    ],
)
def test_bad_arguments(blobs, options, message):
    arguments = {"n_clusters": 4} | options
    with pytest.raises(ValueError, match=message):
        select_lambda(blobs, **arguments)


def test_bad_lam(blobs):
    with pytest.raises(
        ValueError, match=r"lam must be a number in \(0, 1\] .* got 'best'"
    ):
        CDSK(4, lam="best").fit(blobs)


def test_stability_of_too_few_points_is_refused(rng):
    with pytest.raises(
        ValueError, match=r"at least 2 \* n_clusters = 6 samples; got 5"
    ):
        select_lambda(rng.normal(size=(5, 2)), 3, criterion="stability")


def test_weights_that_do_not_fit_the_data_are_refused(blobs):
    with pytest.raises(ValueError, match=r"init must have shape \(240,\); got .*\(3,"):
        select_lambda(blobs, 4, init=np.ones(3) / 3)
