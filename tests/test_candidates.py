"""The kernels a fit is tried with, and the votes that belong to them."""

import pickle
from functools import partial

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, make_blobs

import cdsk
import reference
from cdsk import CDSK, _candidate_fits
from cdsk._candidates import (
    FACTORS,
    N_NEIGHBORS,
    default_n_neighbors,
)
from cdsk._neighbors import Neighbors
from cdsk._operators.dense import DenseKernel
from cdsk._operators.sparse import SparseKernel
from cdsk._pairwise import estimate_bandwidth
from cdsk._spanning_tree import tree_partitions
from cdsk._validation import rescale_kernel_matrix
from cdsk._voting import NeighborVotes
from stages import candidates_of


@pytest.fixture
def X(rng):
    return rng.normal(size=(80, 3))


def rbf(X, bandwidth, n_neighbors=None, kernel="rbf", kernel_params=None, psd=None):
    return candidates_of(
        X,
        kernel=kernel,
        kernel_params=kernel_params,
        psd=psd,
        bandwidth=bandwidth,
        n_neighbors=n_neighbors,
    )


def test_factors_are_one_and_a_geometric_grid_widest_first():
    assert len(FACTORS) == 6
    np.testing.assert_allclose(np.log2(FACTORS), [0, -1, -1.5, -2, -2.5, -3])


@pytest.mark.parametrize(
    ("n", "n_features", "n_clusters", "k"),
    [(249, 60, 10, 5), (250, 60, 10, 20), (249, 59, 10, 20), (30, 2, 10, 20)],
)
def test_number_of_neighbors(n, n_features, n_clusters, k):
    assert default_n_neighbors(n, n_features, n_clusters) == k


def test_number_of_neighbors_is_by_the_features_that_were_given(rng):
    X = np.zeros((100, 70))
    X[:, :60] = rng.normal(size=(100, 60))
    how = {"representation": "whiten", "n_components": 8, "random_state": 0}
    for data, k in ((X, 5), (X[:, 1:], 20)):
        model = CDSK(5, max_iter=0, n_init=1, **how).fit(data)
        assert model._predictor.votes.neighbors.k == k


@pytest.mark.parametrize("n_neighbors", [None, 5, 200])
def test_auto_gives_truncated_kernels_of_all_factors(X, n_neighbors):
    candidates = rbf(X, "auto", n_neighbors)
    neighbors = Neighbors(X, n_neighbors or N_NEIGHBORS, robust=True)
    assert (neighbors.scales < neighbors.kth_distances).any()
    assert len(candidates) == len({c.name for c in candidates}) == 7
    (full,) = (c for c in candidates if c.graph is None)
    candidates = [c for c in candidates if c.graph is not None]
    value = estimate_bandwidth(X, "neighbor")
    assert full.bandwidth == value
    np.testing.assert_allclose(
        full.kernel().as_array(), reference.gaussian_gram(X, value).astype(float)
    )
    for candidate, factor in zip(candidates, FACTORS, strict=True):
        bandwidth = factor * neighbors.scales
        np.testing.assert_allclose(candidate.bandwidth, bandwidth, rtol=1e-14)
        expected = reference.truncated_gram(X, bandwidth, neighbors.indices)
        np.testing.assert_allclose(
            candidate.kernel().matrix.toarray(), expected, rtol=1e-11, atol=1e-300
        )


@pytest.mark.parametrize("rule", ["neighbor", "std", "median", "local", 0.7])
@pytest.mark.parametrize("n_neighbors", [None, 6])
def test_other_bandwidths_give_one_kernel(X, rule, n_neighbors):
    (candidate,) = rbf(X, rule, n_neighbors)
    value = estimate_bandwidth(X, rule) if isinstance(rule, str) else rule
    np.testing.assert_allclose(candidate.bandwidth, value, rtol=1e-14)
    if n_neighbors is None:
        assert isinstance(candidate.kernel(), DenseKernel)
        expected = reference.gaussian_gram(X, value).astype(float)
        np.testing.assert_allclose(candidate.kernel().as_array(), expected, atol=1e-13)
    else:
        assert isinstance(candidate.kernel(), SparseKernel)
        indices = Neighbors(X, n_neighbors).indices
        expected = reference.truncated_gram(X, value, indices)
        found = candidate.kernel().matrix.toarray()
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-300)


@pytest.mark.parametrize("rule", ["auto", "local"])
@pytest.mark.parametrize("n_neighbors", [None, 5])
def test_bandwidths_of_zero_are_refused_with_the_reason(rule, n_neighbors):
    with pytest.raises(ValueError, match=r"zero .* all points are equal"):
        rbf(np.ones((30, 2)), rule, n_neighbors)


@pytest.mark.parametrize("rule", ["auto", "local", "neighbor"])
def test_where_all_neighbors_are_duplicates_distinct_points_count(rng, rule):
    points = rng.normal(size=(20, 3))
    model = CDSK(2, bandwidth=rule, n_neighbors=5, random_state=0)
    expected = model.fit(points).bandwidth_
    found = model.fit(np.repeat(points, 9, axis=0)).bandwidth_
    np.testing.assert_allclose(
        np.broadcast_to(found, 180), np.repeat(np.broadcast_to(expected, 20), 9)
    )


def test_candidate_of_a_matrix_and_of_a_named_kernel(X):
    K = cdsk.gaussian_gram(X, 1.0)
    (given,) = rbf(K, "auto", kernel="precomputed", psd=True)
    assert given.name == "precomputed"
    assert given.bandwidth is None
    assert given.kernel().points is None
    assert (given.kernel().as_array() == K).all()
    (named,) = rbf(X, "auto", kernel="laplacian", kernel_params={"gamma": 0.5})
    assert named.name == "laplacian"
    city = np.abs(X[:, np.newaxis] - X).sum(axis=-1)
    np.testing.assert_allclose(
        named.kernel().as_array(), np.exp(-0.5 * city), rtol=1e-12
    )


def neighbor_votes(X, new, labels, weights, k, bandwidths, new_bandwidths, c):
    """The k nearest points that carry weight vote; sum by sum."""
    support = np.flatnonzero(weights)
    votes = np.zeros((len(new), c), dtype=np.longdouble)
    for i, row in enumerate(reference.squared_distances(new, X[support])):
        for j in support[np.argsort(row, kind="stable")[:k]]:
            distance = reference.squared_distances(new[i : i + 1], X[j : j + 1])[0, 0]
            exponent = distance / (2 * new_bandwidths[i] * bandwidths[j])
            votes[i, labels[j]] += weights[j] * np.exp(-exponent)
    with np.errstate(divide="ignore"):
        return np.log(votes).astype(float)


@pytest.mark.parametrize("local", [True, False])
@pytest.mark.parametrize("n_support", [80, 30, 4])
def test_neighbor_votes_equal_their_definition(rng, X, local, n_support):
    neighbors = Neighbors(X, 10)
    labels = rng.integers(0, 3, size=80)
    weights = np.zeros(80)
    weights[rng.permutation(80)[:n_support]] = rng.uniform(0.5, 1, size=n_support)
    new = np.concatenate([2 * rng.normal(size=(20, 3)), X[:5]])
    factor = 0.5 if local else None
    bandwidth = 0.5 * neighbors.scales if local else 0.8
    votes = NeighborVotes(neighbors, labels, weights, bandwidth, factor, 3)
    # old points do not count themselves
    scales = np.concatenate([reference.nearest(new[:20], X, 7)[:, 6], np.zeros(5)])
    scales[20:] = reference.nearest(X[:5], X, 8)[:, 7]
    expected = neighbor_votes(
        X,
        new,
        labels,
        weights,
        10,
        np.broadcast_to(bandwidth, 80),
        0.5 * scales if local else np.full(25, 0.8),
        3,
    )
    np.testing.assert_allclose(votes.log_votes(new, 1), expected, rtol=1e-11)


def test_far_points_are_given_to_the_nearest_cluster():
    X, y = make_blobs(200, centers=[[0, 0], [20, 0]], random_state=0)
    for parameters in ({}, {"bandwidth": 1.0, "n_neighbors": 10}):
        model = CDSK(2, random_state=0, **parameters).fit(X)
        left, right = model.labels_[y == 0][0], model.labels_[y == 1][0]
        assert left != right
        new = [[-1e3, 0], [1e3, 0], [-1e8, 0], [1e8, 0], [-1e12, 0], [1e12, 0]]
        votes = model.decision_function(new)
        assert not np.isnan(votes).any()
        assert np.isfinite(votes.max(axis=1)).all()
        assert model.predict(new).tolist() == [left, right] * 3
        assert np.isfinite(model.score_samples(new)).all()


@pytest.mark.parametrize("spread, n_fitted", [(0.3, 2), (2.0, 7)])
def test_estimator_tells_the_candidates(spread, n_fitted):
    X = make_blobs(120, centers=3, cluster_std=spread, random_state=0)[0]
    choice = CDSK(3, random_state=0).fit(X).choice_
    # kernels that cannot change the winner are left out
    names = [c.name for c in rbf(X, "auto")][:n_fitted]
    trees = tree_partitions(Neighbors(X, 20, robust=True), 3)
    initial = (f"{name}, initial" for name in names)
    assert choice.names == (*names, *initial, *trees)


def test_kernels_left_out_would_not_win(monkeypatch):
    X = make_blobs(120, centers=3, cluster_std=0.3, random_state=0)[0]
    few = CDSK(3, random_state=0).fit(X)
    monkeypatch.setattr(_candidate_fits, "_is_decided", lambda *_: False)
    every = CDSK(3, random_state=0).fit(X)
    assert len(few.choice_.names) < len(every.choice_.names)
    np.testing.assert_array_equal(few.labels_, every.labels_)
    np.testing.assert_array_equal(few.margins_, every.margins_)


def test_unequal_clusters_need_more_votes():
    """A vote has the weight of its balance: those of others may be larger."""
    X = make_blobs([110, 5, 5], cluster_std=0.3, random_state=0)[0]
    assert len(CDSK(3, random_state=0).fit(X).choice_.names) > 14


def test_winner_of_equal_partitions_is_the_widest_kernel():
    X = make_blobs(120, centers=3, cluster_std=0.3, random_state=0)[0]
    model = CDSK(3, random_state=0).fit(X)
    choice = model.choice_
    neighbors = Neighbors(X, 20, robust=True)
    # all agree, and the first is taken
    assert choice.chosen == np.argmax(choice.scores) == 0
    np.testing.assert_array_equal(
        model.bandwidth_, FACTORS[choice.chosen] * neighbors.scales
    )
    # old points vote with the bandwidths they were fitted with
    b = model.bandwidth_
    expected = neighbor_votes(X, X[:5], model.labels_, model.weights_, 20, b, b[:5], 3)
    np.testing.assert_allclose(model.decision_function(X[:5]), expected, rtol=1e-9)
    assert CDSK(3, bandwidth=1.0, random_state=0).fit(X).choice_.chosen == 0


def test_bound_is_that_of_the_chosen_kernel(in_point_order):
    X = make_blobs(120, centers=3, cluster_std=0.3, random_state=0)[0]
    X = in_point_order(X)
    model = CDSK(3, random_state=0).fit(X)
    K = rbf(X, "auto")[model.choice_.chosen].kernel().as_array()
    expected = cdsk.theory.generalization_bound(K, model.labels_, model.weights_)
    assert model.generalization_bound() == expected
    assert model.generalization_bound(X) == expected


def test_psd_of_a_truncated_kernel_is_respected(rng):
    X = rng.normal(size=(80, 2))
    split, raised, as_it_is = (
        CDSK(3, bandwidth=2.0, n_neighbors=7, psd=psd, random_state=0).fit(X)
        for psd in (False, None, True)
    )
    assert split.n_negative_ > 0
    assert raised.n_negative_ == as_it_is.n_negative_ == 0
    assert raised._make_kernel().diagonal[0] > 1
    assert (as_it_is._make_kernel().diagonal == 1).all()


def test_warning_says_how_to_increase_the_kernel(X):
    K = cdsk.gaussian_gram(X, 1.0)
    remedies = {
        "Increase `bandwidth`": rbf(X, 1.0),
        "Increase `bandwidth` or `n_neighbors`": rbf(X, 1.0, 5),
        "Use a matrix with larger entries": rbf(K, "auto", kernel="precomputed"),
        "Decrease `gamma`": rbf(X, "auto", kernel="laplacian"),
        "Use a kernel with larger values": rbf(X, "auto", kernel="cosine"),
    }
    for hint, (candidate,) in remedies.items():
        assert candidate.kernel().hint == hint
    (split,) = rbf(X, 1.0, 5, psd=False)
    assert split.kernel().hint == "Increase `bandwidth` or `n_neighbors`"


def test_the_model_keeps_its_candidate_but_no_matrix(X, in_point_order):
    X = in_point_order(X)
    K = cdsk.gaussian_gram(X, 1.0)
    for parameters, data in (({}, X), ({"kernel": "precomputed"}, K)):
        model = CDSK(2, random_state=0, **parameters).fit(data)
        kernel = model._make_kernel(data)
        A = model.similarity_operator(data) @ np.eye(80)
        expected = reference.normalized(
            kernel.as_array(), model.weights_, 80 * model.lam_
        )
        np.testing.assert_allclose(A, expected, atol=1e-12)
        copy = pickle.loads(pickle.dumps(model))
        again = copy.similarity_operator(data) @ np.eye(80)
        assert (again == A).all()
    assert model._predictor.candidate.X is None
    with pytest.raises(ValueError, match=r"X must be the kernel matrix .* got None"):
        model.similarity_operator()


def blobs_and_rows(kernel):
    X = make_blobs(120, 3, centers=4, cluster_std=1.5, random_state=0)[0]
    return X, kernel(X, X), kernel(X[:20] + 0.3, X)


def gaussian(A, B):
    return cdsk.gaussian_rows(A, B, 2.0)


def indefinite(A, B):
    return 1.0 / (1.0 + np.abs(cdist(A, B) - 1.0))


@pytest.mark.parametrize("kernel", [gaussian, indefinite])
@pytest.mark.parametrize(
    ("dtype", "unit"),
    [
        *((np.float64, unit) for unit in (1e-300, 1e-200, 1e200, 1e300)),
        *((np.float64, 2.0**power) for power in (-990, -660, 660, 990)),
        *((np.float32, unit) for unit in (1e-30, 1e30)),
    ],
)
def test_the_unit_of_a_kernel_matrix_changes_nothing(kernel, dtype, unit):
    _, K, rows = blobs_and_rows(kernel)
    K, rows, unit = K.astype(dtype), rows.astype(dtype), dtype(unit)
    # converged far enough for weights to be compared
    model = CDSK(4, kernel="precomputed", qp_tol=1e-9, random_state=0)
    expected, found = clone(model).fit(K), clone(model).fit(K * unit)
    assert (found.labels_ == expected.labels_).all()
    assert (found.predict(rows * unit) == expected.predict(rows)).all()
    assert found.n_negative_ == expected.n_negative_
    close = partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-5)
    close(found.weights_, expected.weights_)
    close(found.history_ / found.history_[0], expected.history_ / expected.history_[0])
    for name in ("decision_function", "score_samples"):
        scores = getattr(found, name)(rows * unit)
        close(scores - np.log(float(unit)), getattr(expected, name)(rows))
    if np.frexp(unit)[0] == 0.5 and K.max() == 1:  # scaled to the same bits
        assert (found.weights_ == expected.weights_).all()


@pytest.mark.parametrize("unit", [1e-300, 1e300])
def test_the_unit_of_a_callable_changes_nothing(unit):
    X, *_ = blobs_and_rows(gaussian)
    model = CDSK(4, kernel=gaussian, random_state=0).fit(X)
    scaled = CDSK(4, kernel=lambda A, B: unit * gaussian(A, B), random_state=0).fit(X)
    assert (scaled.labels_ == model.labels_).all()
    assert (scaled.predict(X + 0.1) == model.predict(X + 0.1)).all()


def test_an_ordinary_kernel_matrix_is_not_copied():
    K = np.full((3, 3), 1e99) + np.eye(3)
    assert rescale_kernel_matrix(K, "K") is K
    assert rescale_kernel_matrix(100 * K, "K").max() < 2


def test_distances_in_the_place_of_similarities():
    X, *_ = blobs_and_rows(gaussian)
    model, D = CDSK(4, kernel="precomputed", random_state=0), cdist(X, X)
    message = r"distance matrix D\? exp\(-D\*\*2 / \(2 \* b\*\*2\)\) makes"
    with pytest.raises(ValueError, match="positive diagonal; got 0.0 .*" + message):
        model.fit(D)
    with pytest.warns(UserWarning, match="X has its smallest .*" + message):
        model.fit(D + 1)
    # what the message says
    model.fit(np.exp(-(D**2) / (2 * 2.0**2)))
    K = gaussian(X, X)
    assert (model.labels_ == model.fit(K).labels_).all()


def test_equal_similarities_are_no_distances():
    # warnings are errors in the tests
    assert (rescale_kernel_matrix(np.ones((5, 5)), "K") == 1).all()


@pytest.mark.parametrize(
    ("n_neighbors", "n_clusters", "estimate"), [(None, 3, 2025), (10, 30, 3150)]
)
def test_memory_of_a_fit_is_asked_for_before_the_search(
    rng, monkeypatch, n_neighbors, n_clusters, estimate, limit_memory
):
    X = rng.normal(size=(1000, 4))

    def no_search(*args, **options):
        raise AssertionError("searched")

    monkeypatch.setattr("cdsk._candidates.Neighbors", no_search)
    model = CDSK(n_clusters, n_neighbors=n_neighbors, bandwidth="auto")
    for available, error in (
        (
            1000 * estimate - 1,
            pytest.raises(MemoryError, match="A fit of 1,000 points"),
        ),
        (1000 * estimate, pytest.raises(AssertionError, match="searched")),
    ):
        limit_memory(available)
        with error:
            model.fit(X)


def test_a_partition_by_a_tree_has_the_classifier_of_the_kernel_nearest_to_it():
    X = make_blobs(120, centers=3, random_state=0)[0]
    model = CDSK(3, random_state=0).fit(X)
    choice = model.choice_
    winner = choice.names[choice.chosen]
    assert "tree" in winner
    neighbors = Neighbors(np.ascontiguousarray(model._predictor.index.X), 20)
    labels = tree_partitions(neighbors, 3)[winner]
    np.testing.assert_array_equal(
        model.labels_, labels[model._predictor.points.inverse]
    )
    nearest = 7 + int(np.argmax(choice.agreement[choice.chosen, 7:14]))
    assert choice.names[nearest].startswith(model._predictor.candidate.name)
    assert np.mean(model.predict(X) == model.labels_) > 0.98


def test_a_partition_by_the_initial_weights_has_these():
    X = load_breast_cancer().data
    model = CDSK(2, random_state=0).fit(X)
    choice = model.choice_
    assert choice.names[choice.chosen].endswith(", initial")
    np.testing.assert_array_equal(model.weights_, np.full(569, 1 / 569))
    assert model.n_iter_ == 0
    assert len(model.history_) == 1
    assert model.converged_
