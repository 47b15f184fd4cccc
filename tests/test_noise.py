# SPDX-License-Identifier: BSD-3-Clause
"""Noise: the law against drawn points, the rule against its definition, the model."""

import pickle

import numpy as np
import pytest
from scipy import special
from scipy.spatial import KDTree
from sklearn.datasets import load_breast_cancer, make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from cdsk import CDSK
from cdsk import _voting as module
from cdsk._neighbors import Neighbors
from common_checks import not_for_clusterers

K = module.NOISE_NEIGHBOR

# with which a fifth of noise leaves the clusters as they are
OPTIONS = {"bandwidth": 1.0, "random_state": 0}


# some checks fit a few copies of one point
@pytest.mark.filterwarnings("ignore:X has . distinct point")
@parametrize_with_checks([CDSK(noise=0.05)], expected_failed_checks=not_for_clusterers)
def test_scikit_learn_common_checks(estimator, check):
    check(estimator)


def distances(X, k):
    return KDTree(X).query(X, k + 1)[0][:, -1]


@pytest.mark.parametrize(("n", "k"), [(16, 12), (200, 12), (2000, 12), (200, 1)])
def test_law_of_normal_points_is_that_of_drawn_ones(rng, n, k):
    shares = np.array([0.05, 0.1, 0.5, 0.9, 0.99])
    found = module.kth_distance_quantiles(shares, n, k)
    drawn = [
        np.log(distances(rng.standard_normal((n, 2)), k)) for _ in range(100_000 // n)
    ]
    # shares, whose errors are known, and larger where draws are dependent
    below = np.mean(np.concatenate(drawn)[:, np.newaxis] < found, axis=0)
    np.testing.assert_allclose(below, shares, atol=0.01)
    np.testing.assert_allclose(below[[0, -1]], shares[[0, -1]], atol=0.003)


def test_ratio_lies_between_those_of_powers_of_two():
    at = [module.tail_ratio(n, K, 0.01) for n in (64, 90, 128)]
    assert at[0] < at[1] < at[2]
    law = module.kth_distance_quantiles(0.99 * np.array([0.1, 0.5, 1.0]), 64, K)
    assert at[0] == pytest.approx((law[2] - law[1]) / (law[1] - law[0]))
    # fewer points than neighbors have no law
    assert module.tail_ratio(3, K, 0.01) == module.tail_ratio(16, K, 0.01)


def reference_marks(X, labels, rate, multiplicity):
    """The rule by rows repeated as often as their multiplicity, a point at a time."""
    t = np.log(distances(X, min(K, len(X) - 1)))
    clusters = range(labels.max() + 1)

    def quantile(values, share):
        return np.quantile(values, share, method="inverted_cdf")

    copies = [np.repeat(t[labels == y], multiplicity[labels == y]) for y in clusters]
    threshold = [quantile(values, 0.5) for values in copies]
    least = np.log(special.gammaincinv(K, 0.5) / special.gammaincinv(K, 0.1))
    kept = None
    while True:
        now = t <= np.array(threshold)[labels]
        if kept is not None and (now == kept).all():
            return ~kept
        kept = now
        below = [c[c <= T] for c, T in zip(copies, threshold, strict=True)]
        mid = [quantile(values, 0.5) for values in below]
        spread = [m - quantile(c, 0.1) for m, c in zip(mid, below, strict=True)]
        sizes = [len(values) for values in below]
        mean = np.dot(spread, sizes) / np.sum(sizes)
        caution = 1.5 / np.sqrt(np.sum(kept))
        for y in clusters:
            n = np.sum(kept[labels == y])
            widest = max(spread[y], mean, least / X.shape[1])
            widest *= 1.0 + caution + (K / n) ** 2
            far = mid[y] + module.tail_ratio(n, K, rate) * widest
            threshold[y] = max(threshold[y], far)


@pytest.mark.parametrize("rate", [1e-6, 0.01, 0.2, 0.5])
@pytest.mark.parametrize("n_features", [1, 2, 5])
def test_rule_equals_its_definition(rng, rate, n_features):
    X, labels = make_blobs(
        [150, 60, 5], n_features, center_box=(-30, 30), random_state=0
    )
    X = np.concatenate([X, rng.uniform(-40, 40, (40, n_features))])
    labels = np.append(labels, rng.integers(0, 3, 40))
    multiplicity = rng.integers(1, 4, len(X))
    neighbors = Neighbors(X, K, scale_neighbor=K)
    for m in (multiplicity, np.ones_like(multiplicity)):
        given = None if (m == 1).all() else m.astype(float)
        rule = module.fit_noise_rule(neighbors, labels, rate, given)
        expected = reference_marks(X, labels, rate, m)
        np.testing.assert_array_equal(rule.is_noise(), expected)
        assert expected.any()
        for y in range(3):
            kept = ~expected[labels == y]
            assert np.average(kept, weights=m[labels == y]) >= 0.5


@pytest.mark.parametrize("rate", [0.01, 0.05])
def test_false_alarm_rate_of_a_normal_cluster(rng, rate):
    share, labels = [], np.zeros(5000, dtype=int)
    for _ in range(10):
        X = rng.standard_normal((5000, 2))
        rule = module.fit_noise_rule(Neighbors(X, K, scale_neighbor=K), labels, rate)
        share.append(rule.is_noise().mean())
    # less by what the spread is enlarged for caution
    assert 0.65 * rate < np.mean(share) < 1.1 * rate


@pytest.mark.parametrize(("n", "n_clusters"), [(25, 10), (50, 5), (100, 1)])
def test_false_alarm_rate_of_small_normal_clusters(rng, n, n_clusters):
    labels = np.repeat(np.arange(n_clusters), n)
    share = []
    for _ in range(60):
        X = rng.standard_normal((len(labels), 2)) + 100.0 * labels[:, np.newaxis]
        rule = module.fit_noise_rule(Neighbors(X, K, scale_neighbor=K), labels, 0.01)
        share.append(rule.is_noise().mean())
    assert np.mean(share) < 0.03


def test_regular_grid_has_no_noise():
    grid = np.stack(np.meshgrid(np.arange(15.0), np.arange(15.0)), -1).reshape(-1, 2)
    labels = np.zeros(len(grid), dtype=int)
    rule = module.fit_noise_rule(Neighbors(grid, K, scale_neighbor=K), labels, 0.01)
    assert not rule.is_noise().any()


@pytest.fixture(scope="module")
def noisy():
    X, y = make_blobs(400, centers=[[0, 0], [9, 0], [0, 9]], random_state=1)
    rng = np.random.default_rng(0)
    outside = rng.uniform(-9, 18, (80, 2))
    return np.concatenate([X, outside]), np.append(y, np.full(80, -1))


@pytest.fixture(scope="module")
def fitted(noisy):
    return CDSK(3, noise=0.01, **OPTIONS).fit(noisy[0])


def test_noise_is_found_and_little_else(fitted, noisy):
    X, y = noisy
    found = fitted.labels_ < 0
    assert adjusted_rand_score(y[y >= 0], fitted.clusters_[y >= 0]) == 1.0
    # that between the points of a cluster cannot be told
    outside = (y < 0) & (np.abs(X - 4.5).max(axis=1) > 9)
    assert found[outside].mean() > 0.9
    # of so few points the share varies by more than the rate
    assert found[y >= 0].mean() < 0.05
    assert set(fitted.labels_) == {-1, 0, 1, 2}
    assert (fitted.labels_[~found] == fitted.clusters_[~found]).all()


def test_noise_changes_labels_only(fitted, noisy):
    X, _ = noisy
    plain = CDSK(3, **OPTIONS).fit(X)
    assert plain.noise_ is None
    np.testing.assert_array_equal(plain.labels_, plain.clusters_)
    np.testing.assert_array_equal(fitted.clusters_, plain.labels_)
    np.testing.assert_array_equal(fitted.weights_, plain.weights_)
    np.testing.assert_array_equal(fitted.margins_, plain.margins_)
    np.testing.assert_array_equal(
        fitted.decision_function(X), plain.decision_function(X)
    )
    assert fitted.generalization_bound() == plain.generalization_bound()
    off = CDSK(3, noise=0, **OPTIONS).fit(X)
    assert off.noise_ is None
    np.testing.assert_array_equal(off.labels_, plain.labels_)


def test_new_points_have_the_same_thresholds(fitted, noisy):
    X, _ = noisy
    rng = np.random.default_rng(1)
    new = rng.uniform(-9, 18, (300, 2))
    plain = CDSK(3, **OPTIONS).fit(X).predict(new)
    distance, nearest = KDTree(X).query(new, K)
    nearest_clusters = fitted.clusters_[nearest[:, 0]]
    far = distance[:, -1] > fitted.noise_.thresholds[nearest_clusters]
    assert 0 < far.sum() < len(far)
    expected = np.where(far, -1, plain)
    np.testing.assert_array_equal(fitted.predict(new), expected)
    copied = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copied.predict(new), expected)


def test_training_points_as_new_points_are_noise_as_in_the_fit(fitted, noisy):
    X, _ = noisy
    table = load_breast_cancer().data
    how = {"representation": "standardize", "random_state": 0}
    other = CDSK(2, noise=0.05, **how).fit(table)
    for model, data in ((fitted, X), (other, table)):
        votes = np.argmax(model.decision_function(data), axis=1)
        same = votes == model.clusters_
        assert same.mean() > 0.95
        found = model.predict(data)
        np.testing.assert_array_equal(found < 0, model.labels_ < 0)
        np.testing.assert_array_equal(found[same], model.labels_[same])
    assert not same.all()


def test_noise_without_votes_does_not_warn(recwarn):
    X, _ = make_blobs(60, centers=[[0, 0], [9, 0]], random_state=0)

    def kernel(A, B):
        # nothing beyond a distance of 4
        square = np.square(A[:, np.newaxis] - B).sum(axis=2)
        return np.maximum(1.0 - square / 16.0, 0.0)

    model = CDSK(2, kernel=kernel, noise=0.01, random_state=0).fit(X)
    recwarn.clear()
    assert model.predict([[100.0, 100.0]]).tolist() == [-1]
    assert not recwarn.list


def test_a_weight_is_a_number_of_rows(noisy):
    X, _ = noisy
    times = np.random.default_rng(0).integers(0, 4, len(X))
    weighted, copied = (CDSK(3, noise=0.01, **OPTIONS) for _ in range(2))
    weighted.fit(X, sample_weight=times)
    rows = np.repeat(np.arange(len(X)), times)
    copied.fit(X[rows])
    assert (copied.labels_ < 0).any()
    np.testing.assert_array_equal(weighted.labels_[rows], copied.labels_)
    np.testing.assert_array_equal(weighted.predict(X), copied.predict(X))
    ten = CDSK(3, noise=0.01, **OPTIONS).fit(X, sample_weight=10.0 * times)
    np.testing.assert_array_equal(ten.labels_, weighted.labels_)


@pytest.mark.parametrize(
    "X",
    [
        np.zeros((5, 2)),
        np.arange(2.0)[:, np.newaxis],
        np.repeat([[0.0, 1.0], [5.0, 2.0]], 20, axis=0),
        np.append(np.zeros((20, 1)), np.arange(1.0, 4.0)[:, np.newaxis], axis=0),
    ],
    ids=["equal", "two", "copies", "zeros"],
)
# some checks fit a few copies of one point
@pytest.mark.filterwarnings("ignore:X has . distinct point")
def test_few_or_equal_points_are_not_noise(X):
    model = CDSK(2, bandwidth=1.0, noise=0.05, random_state=0).fit(X)
    assert (model.labels_ >= 0).all()
    assert (model.predict(X) >= 0).all()


def test_number_of_threads_changes_nothing(noisy):
    X, _ = noisy
    one, two = (CDSK(3, noise=0.01, **OPTIONS, n_threads=n).fit(X) for n in (1, 2))
    np.testing.assert_array_equal(one.noise_.thresholds, two.noise_.thresholds)
    np.testing.assert_array_equal(one.labels_, two.labels_)


@pytest.mark.filterwarnings("ignore:1 of 201 points have no similarity")
def test_other_kernels_have_the_same_rule():
    X, _ = make_moons(200, noise=0.05, random_state=0)
    X = np.concatenate([X, [[8.0, 8.0]]])
    for options in (
        {"bandwidth": 0.3},
        {"kernel": "laplacian"},
        {"bandwidth": 0.5, "approximation": "lowrank"},
        {"representation": "whiten"},
    ):
        model = CDSK(2, noise=0.01, random_state=0, **options).fit(X)
        Z = model.representation_.transform(X)
        far = distances(Z, K) > model.noise_.thresholds[model.clusters_]
        np.testing.assert_array_equal(model.labels_ < 0, far)
        assert far[-1]
        assert far.mean() < 0.1


@pytest.mark.parametrize("noise", [-0.1, 0.6, np.nan, "label", True])
def test_a_rate_is_a_number_up_to_a_half(noise):
    with pytest.raises(ValueError, match=r"noise must be a number >= 0 and <= 0\.5; "):
        CDSK(2, noise=noise).fit(np.eye(4))


@pytest.mark.parametrize("kernel", ["precomputed", "precomputed_neighbors"])
def test_noise_needs_points(kernel):
    with pytest.raises(ValueError, match=r"noise=0\.01 needs points; expected"):
        CDSK(2, kernel=kernel, noise=0.01).fit(np.eye(4))


def test_report_shows_noise(fitted, noisy):
    count = np.sum(fitted.labels_ < 0)
    text = " ".join(str(fitted.report()).split())
    assert f"{count} of 480 points ({count / 480:.1%}) are noise (label -1)" in text
    thresholds = fitted.noise_.thresholds
    assert f"above {thresholds.min():.3g} to {thresholds.max():.3g}" in text
    assert "are noise" not in str(CDSK(3, **OPTIONS).fit(noisy[0]).report())


@pytest.mark.parametrize("n_clusters", [1, 2, "auto"])
@pytest.mark.parametrize("n_full", [0, 1])
def test_a_value_in_too_few_rows(n_clusters, n_full):
    X = np.full((5, 2), np.nan)
    X[:n_full] = 1.0
    with pytest.raises(ValueError, match=f"at least two rows .* got {n_full}"):
        CDSK(n_clusters, noise=0.1).fit(X)
