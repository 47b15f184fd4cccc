"""Clusters of bounded size, compared with all assignments of small problems."""

import itertools

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.metrics.pairwise import rbf_kernel

from cdsk import CDSK, stability
from cdsk._sizes import find_bounds, solve_sizes


def uneven(seed=0):
    sizes, centers = [50, 30, 12], [[0, 0], [6, 0], [3, 6]]
    return make_blobs(sizes, 2, centers=centers, random_state=seed)[0]


def fit(X, **options):
    weights = options.pop("sample_weight", None)
    options = {"n_clusters": 3, "random_state": 0, **options}
    return CDSK(**options).fit(X, sample_weight=weights)


def sizes_of(model, weights=None):
    kept = model.labels_ >= 0
    weights = None if weights is None else weights[kept]
    return np.bincount(model.labels_[kept], weights, model.n_clusters_)


def make_costs(rng, n, c):
    """Costs of random moves, 0 for one cluster of each point."""
    costs = rng.exponential(size=(n, c))
    costs[np.arange(n), rng.integers(c, size=n) ** 2 // c] = 0.0
    return costs


def total_cost(costs, labels, masses=1.0):
    return np.sum(masses * costs[np.arange(len(labels)), labels])


# --- the transport problem ----------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_cheapest_of_all_assignments(seed):
    rng = np.random.default_rng(seed)
    n, c = 7, int(rng.integers(2, 4))
    costs, low, high = make_costs(rng, n, c), n // c, -(-n // c)
    assignments = (np.array(y) for y in itertools.product(range(c), repeat=n))
    least = min(
        total_cost(costs, labels)
        for labels in assignments
        if low <= np.bincount(labels, minlength=c).min()
        and np.bincount(labels).max() <= high
    )
    labels, least_cost = solve_sizes(costs, np.ones(n), low, high)
    assert total_cost(costs, labels) == pytest.approx(least)
    assert least_cost == pytest.approx(least)


def relaxed_cost(costs, masses, low, high):
    """The least cost by a linear program of all pairs, with inequalities."""
    n, c = costs.shape
    points = sparse.kron(sparse.eye_array(n), np.ones((1, c)))
    clusters = sparse.kron(np.ones((1, n)), sparse.eye_array(c))
    result = linprog(
        costs.ravel(),
        A_ub=sparse.vstack([clusters, -clusters]),
        b_ub=np.repeat([high, -low], c),
        A_eq=points,
        b_eq=masses,
    )
    return result.fun


@pytest.mark.parametrize("seed", range(6))
def test_pairs_that_are_left_out_are_not_needed(seed, monkeypatch):
    monkeypatch.setattr("cdsk._sizes.MAX_PAIRS", 20)
    rng = np.random.default_rng(seed)
    n, c = 300, int(rng.integers(2, 8))
    costs = make_costs(rng, n, c)
    low, high = int(0.9 * n / c), int(1.1 * n / c) + 1
    labels, least_cost = solve_sizes(costs, np.ones(n), low, high)
    assert least_cost == pytest.approx(relaxed_cost(costs, np.ones(n), low, high))
    assert total_cost(costs, labels) == pytest.approx(least_cost)
    sizes = np.bincount(labels, minlength=c)
    assert low <= sizes.min()
    assert sizes.max() <= high


@pytest.mark.parametrize("seed", range(10))
def test_fractional_masses(seed):
    rng = np.random.default_rng(seed)
    n, c = 60, 4
    costs, masses = make_costs(rng, n, c), rng.uniform(0.5, 1.5, size=n)
    low, high = 0.15 * masses.sum(), 0.35 * masses.sum()
    labels, least_cost = solve_sizes(costs, masses, low, high)
    sizes = np.bincount(labels, masses, c)
    assert low <= sizes.min()
    assert sizes.max() <= high
    expected = relaxed_cost(costs, masses, low, high)
    assert least_cost == pytest.approx(expected)
    # fewer points than clusters are split, and each may have to move whole
    excess = total_cost(costs, labels, masses) - expected
    assert -1e-9 <= excess <= c * (costs * masses[:, np.newaxis]).max()


@pytest.mark.parametrize("seed", range(6))
def test_points_that_stay_are_points_that_cost_too_much(seed):
    rng = np.random.default_rng(seed)
    n, c, n_staying = 60, 3, 15
    costs = make_costs(rng, n, c)
    stays = np.arange(n) < n_staying
    kept = np.bincount(costs[stays].argmin(axis=1), minlength=c)
    costly = np.where(stays[:, np.newaxis] & (costs > 0), 1e3, costs)
    low, high = 16, max(22, kept.max())
    labels, least_cost = solve_sizes(costly, np.ones(n), low, high)
    free = costs[~stays]
    found, free_cost = solve_sizes(
        free, np.ones(len(free)), np.maximum(low - kept, 0), high - kept
    )
    assert free_cost == pytest.approx(least_cost)
    assert total_cost(free, found) == pytest.approx(total_cost(costly, labels))


# --- bounds -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("least", "most", "n", "message"),
    [
        (60, None, 150, "min_cluster_size=60 and n_clusters=5 need 300 rows, X has 15"),
        (0.3, None, 100, r"min_cluster_size=0.3 .* need 5 x 30 = 150 rows, X has 100"),
        (None, 10, 60, "max_cluster_size=10 .* have room for 50 rows, X has 60"),
        (None, 0.1, 60, r"max_cluster_size=0.1 .* room for 5 x 6 = 30 rows, X has 60"),
        (9, 8, 45, "min_cluster_size=9 must not exceed max_cluster_size=8"),
        (None, 0.2, 59, "have room for 5 x 11 = 55 rows, X has 59"),
    ],
)
def test_bounds_that_exclude_each_other(least, most, n, message):
    with pytest.raises(ValueError, match=message):
        find_bounds(least, most, np.ones(n), 5)
    with pytest.raises(ValueError, match=message):
        X = np.random.default_rng(0).normal(size=(n, 2))
        CDSK(5, min_cluster_size=least, max_cluster_size=most).fit(X)


@pytest.mark.parametrize("value", [0, -3, 1.0, 1.5, 0.0, True, "5", np.nan])
@pytest.mark.parametrize("name", ["min_cluster_size", "max_cluster_size"])
def test_invalid_bounds(name, value):
    with pytest.raises(ValueError, match=f"{name} must be a number of rows"):
        fit(uneven(), **{name: value})


def test_numbers_of_numpy_are_bounds():
    X = uneven()
    model = fit(X, min_cluster_size=np.int64(20), max_cluster_size=np.float32(0.5))
    assert sizes_of(model).min() >= 20
    assert sizes_of(model).max() <= 0.5 * len(X)


# --- fits ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"min_cluster_size": 25},
        {"max_cluster_size": 0.4},
        {"min_cluster_size": 0.3, "max_cluster_size": 33},
        {"min_cluster_size": 25, "bandwidth": "median"},
        {"min_cluster_size": 25, "approximation": "lowrank", "bandwidth": 2.0},
        {"min_cluster_size": 25, "n_clusters": 4},
    ],
)
@pytest.mark.parametrize("seed", range(2))
def test_bounds_hold(options, seed):
    if options.get("n_clusters") == 4:
        options = options | {"min_cluster_size": 20}
    X = uneven(seed)
    model, change = fit(X, **options), None
    sizes, change = sizes_of(model), model.sizes_
    assert change.low <= sizes.min()
    assert sizes.max() <= change.high
    np.testing.assert_array_equal(change.after, sizes)
    assert change.cost == pytest.approx(change.least_cost)
    # what was moved, and from where
    plain = fit(X, **options | {"min_cluster_size": None, "max_cluster_size": None})
    assert plain.sizes_ is None
    moved = np.flatnonzero(plain.labels_ != model.labels_)
    np.testing.assert_array_equal(change.rows, moved)
    np.testing.assert_array_equal(change.previous, plain.labels_[moved])
    np.testing.assert_array_equal(change.before, sizes_of(plain))
    # nothing but labels and votes
    np.testing.assert_array_equal(model.weights_, plain.weights_)
    np.testing.assert_array_equal(model.embedding_, plain.embedding_)


def test_nothing_moves_if_the_bounds_hold():
    X = uneven()
    plain = fit(X)
    sizes = sizes_of(plain).astype(int)
    bounds = {"min_cluster_size": sizes.min(), "max_cluster_size": sizes.max()}
    model = fit(X, **bounds)
    assert (model.sizes_.cost, len(model.sizes_.rows)) == (0.0, 0)
    for name in ("labels_", "margins_", "typicality_", "probabilities_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(plain, name))
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))


def test_points_nearest_to_the_small_cluster_are_moved():
    """A gap on a line, wider than any kernel: no vote crosses it."""
    X = np.concatenate([np.linspace(0, 1, 60), np.linspace(3, 3.2, 12)])[:, np.newaxis]
    for bandwidth in ("auto", 0.05):
        model = fit(X, n_clusters=2, bandwidth=bandwidth, min_cluster_size=16)
        assert len(model.sizes_.rows) == 4
        assert 54 <= model.sizes_.rows.min() <= model.sizes_.rows.max() < 60


def test_votes_are_those_of_the_changed_labels():
    X = uneven()
    K = rbf_kernel(X, gamma=0.3)
    model = fit(K, kernel="precomputed", psd=True, min_cluster_size=25)
    votes = K @ (model.weights_[:, np.newaxis] * np.eye(3)[model.labels_])
    np.testing.assert_allclose(np.exp(model.decision_function(K)), votes, rtol=1e-9)
    np.testing.assert_array_equal(model.predict(K), votes.argmax(axis=1))
    left_out = (
        votes
        - (model.weights_ * np.diag(K))[:, np.newaxis] * (np.eye(3)[model.labels_])
    )
    rows = np.arange(len(X))
    others = np.where(np.eye(3)[model.labels_] > 0, -np.inf, left_out).max(axis=1)
    margins = (left_out[rows, model.labels_] - others) / left_out.sum(axis=1)
    np.testing.assert_allclose(model.margins_, margins, atol=1e-9)


@pytest.mark.parametrize("bandwidth", ["auto", "median"])
def test_integer_weights_equal_repeated_rows(bandwidth):
    X = uneven()
    counts = np.random.default_rng(0).integers(1, 3, size=len(X))
    options = {"bandwidth": bandwidth, "min_cluster_size": 0.3}
    weighted = fit(X, sample_weight=counts, **options)
    repeated = fit(np.repeat(X, counts, axis=0), **options)
    np.testing.assert_array_equal(np.repeat(weighted.labels_, counts), repeated.labels_)
    for name in ("before", "after", "cost", "least_cost", "low", "high"):
        expected = getattr(repeated.sizes_, name)
        np.testing.assert_allclose(getattr(weighted.sizes_, name), expected, rtol=1e-6)
    assert sizes_of(weighted, counts).min() >= 0.3 * counts.sum()


def test_order_of_the_rows(rng):
    X = uneven()
    order = rng.permutation(len(X))
    first, second = (fit(rows, min_cluster_size=25) for rows in (X, X[order]))
    np.testing.assert_array_equal(first.labels_[order], second.labels_)
    assert first.sizes_.cost == pytest.approx(second.sizes_.cost)


def test_noise_and_rows_of_weight_zero_are_not_counted():
    X = np.concatenate([uneven(), [[20.0, 20.0], [-15.0, 9.0], [3.0, 3.0]]])
    weights = np.ones(len(X))
    weights[-1] = 0.0
    options = {"noise": 0.01, "sample_weight": weights}
    plain, model = fit(X, **options), fit(X, min_cluster_size=25, **options)
    np.testing.assert_array_equal(plain.labels_ < 0, model.labels_ < 0)
    assert (model.labels_ < 0).any()
    sizes = sizes_of(model, weights)
    np.testing.assert_array_equal(sizes, model.sizes_.after)
    assert sizes.min() >= 25
    assert model.sizes_.after.sum() == weights.sum() - np.sum(model.labels_ < 0)


def test_equal_rows_that_cannot_be_split_are_told():
    X = np.repeat([[0.0], [1.0], [5.0], [9.0]], [4, 4, 9, 3], axis=0)
    with pytest.warns(UserWarning, match="equal rows and rows of a weight are never"):
        model = fit(X, n_clusters=2, max_cluster_size=10)
    for point in np.unique(X):
        assert len(set(model.labels_[X[:, 0] == point])) == 1
    assert sizes_of(model).tolist() == model.sizes_.after.tolist()


# --- with known labels and links ----------------------------------------------------


BOUNDS = [
    {"min_cluster_size": 25},
    {"max_cluster_size": 35},
    {"min_cluster_size": 29, "max_cluster_size": 32},
]


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("seed", range(2))
def test_known_labels_hold_in_clusters_of_bounded_sizes(bounds, seed):
    rng, X = np.random.default_rng(seed), uneven(seed)
    plain, y = fit(X), np.full(len(X), -1)
    known = rng.permutation(len(X))[:30]
    y[known] = plain.labels_[known]
    y[known[:3]] = rng.integers(3, size=3)  # perhaps against their neighbors
    model = CDSK(3, random_state=0, **bounds).fit(X, y)
    np.testing.assert_array_equal(model.labels_[known], y[known])
    sizes = sizes_of(model)
    assert model.sizes_.low <= sizes.min() <= sizes.max() <= model.sizes_.high
    np.testing.assert_array_equal(model.sizes_.after, sizes)
    assert len(np.setdiff1d(model.sizes_.rows, known)) == len(model.sizes_.rows) > 0


@pytest.mark.parametrize("bounds", BOUNDS)
def test_links_hold_in_clusters_of_bounded_sizes(bounds):
    rng, X = np.random.default_rng(0), uneven()
    side = X[:, 1] > 0.5
    pairs = rng.permutation(len(X))[:30].reshape(-1, 2)
    same = side[pairs[:, 0]] == side[pairs[:, 1]]
    assert 0 < same.sum() < len(same)
    model = CDSK(3, random_state=0, **bounds)
    model.fit(X, must_link=pairs[same], cannot_link=pairs[~same])
    first, second = model.labels_[pairs].T
    np.testing.assert_array_equal(first == second, same)
    sizes = sizes_of(model)
    assert model.sizes_.low <= sizes.min() <= sizes.max() <= model.sizes_.high
    assert not np.intersect1d(model.sizes_.rows, pairs).size


def test_known_rows_are_counted_though_they_are_noise():
    X = np.concatenate([uneven(), [[20.0, 20.0], [-15.0, 9.0], [3.0, 3.0]]])
    weights, y = np.ones(len(X)), np.full(len(X), -1)
    weights[-1] = 0.0
    y[:20] = fit(X[:92]).labels_[:20]
    y[92], y[94] = 0, 1
    model = CDSK(3, noise=0.05, min_cluster_size=25, random_state=0)
    model.fit(X, y, weights)
    assert model.labels_[93] == -1
    np.testing.assert_array_equal(model.labels_[y >= 0], y[y >= 0])
    np.testing.assert_array_equal(model.sizes_.after, sizes_of(model, weights))
    assert model.sizes_.after.min() >= 25


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        (
            {"max_cluster_size": 35},
            "max_cluster_size=35 allows 35 rows, but cluster 0 has 40 rows with a",
        ),
        (
            {"min_cluster_size": 30},
            "min_cluster_size=30 needs 55 more rows .* but only 47 can be",
        ),
    ],
)
def test_bounds_that_exclude_what_is_known(bounds, message):
    y = np.full(92, -1)
    y[:40], y[40:44], y[44] = 0, 1, 2
    X = make_blobs([40, 30, 22], centers=[[0, 0], [9, 0], [4, 9]], shuffle=False)[0]
    with pytest.raises(ValueError, match=message):
        CDSK(3, random_state=0, **bounds).fit(X, y)


def test_numbers_of_clusters_that_bounds_exclude_are_not_selected():
    centers = [[0, 0], [9, 0], [4, 9]]
    X = make_blobs([40, 30, 22], centers=centers, random_state=0)[0]
    assert fit(X, n_clusters="auto").n_clusters_ == 3
    model = fit(X, n_clusters="auto", max_cluster_size=20)
    assert model.n_clusters_ >= 5
    assert model.count_choice_.candidates.min() == 5
    assert sizes_of(model).max() <= 20
    model = fit(uneven(), n_clusters="auto", min_cluster_size=40)
    assert model.count_choice_.candidates.tolist() == [2]
    with pytest.raises(ValueError, match="No number of clusters from 2 to 19 respects"):
        fit(X, n_clusters="auto", min_cluster_size=60)


def test_parameters_are_cloned_and_reported():
    model = fit(uneven(), min_cluster_size=25, max_cluster_size=0.5)
    again = clone(model)
    assert (again.min_cluster_size, again.max_cluster_size) == (25, 0.5)
    sentence = f"{len(model.sizes_.rows)} rows were moved for sizes of 25 to 46"
    assert sentence in " ".join(str(model.report()).split())
    assert sentence in model.report()._repr_html_()
    change = model.report().to_dict()["clusters"]["size_change"]
    assert change["before"] == model.sizes_.before.tolist()
    assert change["n_moved"] == len(model.sizes_.rows)


def test_stability_of_bounded_sizes_is_refused():
    X, _ = make_blobs(60, centers=3, random_state=0)
    model = CDSK(3, min_cluster_size=10, random_state=0).fit(X)
    with pytest.raises(ValueError, match="Fit without min_cluster_size"):
        stability(model, X)


def test_least_size_of_more_rows_than_there_are():
    X, _ = make_blobs(60, centers=3, random_state=0)
    with pytest.raises(ValueError, match="need 210 rows, X has 60"):
        CDSK(3, min_cluster_size=70).fit(X)
