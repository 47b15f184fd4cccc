"""Whitening against an SVD, and the decision for or against it."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

import reference
from cdsk import CDSK
from cdsk._choices import representation as _whiten
from cdsk._choices.representation import represent

N_CLUSTERS = 10


def rng_state():
    return np.random.RandomState(0)


def represented(X, whiten, n_clusters=2):
    return represent(X, n_clusters, whiten, rng_state(), 1)


def rotated(X, seed=0):
    rng = np.random.default_rng(seed)
    return X @ np.linalg.qr(rng.normal(size=(X.shape[1], X.shape[1])))[0]


def hidden_clusters(n=500, d=80, seed=0):
    """Ten clusters in nine directions, behind five directions of larger variance."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % N_CLUSTERS)
    X = 0.01 * rng.normal(size=(n, d))
    X[:, :5] += 100 * rng.normal(size=(n, 5))
    X[:, 5:15] += 10 * np.eye(N_CLUSTERS)[y] + rng.normal(size=(n, 10))
    return rotated(X, seed), y


def open_clusters(n=500, d=80, seed=0):
    """Ten clusters in the directions of largest variance, and noise in the others."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % N_CLUSTERS)
    X = rng.normal(size=(n, d))
    X[:, :4] += 8 * rng.normal(size=(N_CLUSTERS, 4))[y]
    return rotated(X, seed), y


SHAPES = {"tall": (60, 8), "wide": (20, 45), "square": (30, 30), "one feature": (25, 1)}


@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("whiten", [True, 1, 3, 500])
def test_whitened_data_are_those_of_an_svd(rng, shape, whiten, offset):
    n, d = SHAPES[shape]
    X = rng.normal(size=(n, d)) * np.linspace(1, 3, d) + offset
    rank = min(n - 1, d)
    m = rank if whiten is True else min(whiten, rank)
    representation = represented(X, whiten)
    assert representation.n_components == m
    assert representation.cuts == {}
    Z = representation.transform(X)
    assert Z.shape == (n, m)
    assert Z.flags.c_contiguous
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(Z.T @ Z / n, np.eye(m), atol=1e-8)
    # each component up to its sign
    cosine = np.abs(np.sum(Z * reference.whitened(X, m), axis=0)) / n
    np.testing.assert_allclose(cosine, 1, atol=1e-7)


def test_components_come_in_order_of_their_variance(rng):
    X = rng.normal(size=(100, 6)) * [1, 5, 3, 2, 6, 4]
    full, part = (represented(X, m).transform(X) for m in (6, 4))
    np.testing.assert_allclose(full[:, :4], part, atol=1e-10)
    strongest = np.abs(np.corrcoef(full[:, 0], X[:, 4])[0, 1])
    assert strongest > 0.9


@pytest.mark.parametrize("shape", [(60, 12), (12, 60)])
def test_directions_the_data_do_not_span_are_left_out(rng, shape):
    X = rng.normal(size=(shape[0], 4)) @ rng.normal(size=(4, shape[1]))
    for whiten in (True, 10):
        representation = represented(X, whiten)
        assert representation.n_components == 4
        Z = representation.transform(X)
        np.testing.assert_allclose(Z.T @ Z / len(X), np.eye(4), atol=1e-8)


def test_transform_is_affine_and_serves_new_points(rng):
    X, new = rng.normal(size=(50, 5)), rng.normal(size=(7, 5))
    representation = represented(X, True)
    middle = representation.transform(0.5 * (new + X[:7]))
    ends = representation.transform(new) + representation.transform(X[:7])
    np.testing.assert_allclose(middle, 0.5 * ends, atol=1e-12)


def test_scale_rotation_and_shift_of_the_data_change_no_distance(rng):
    X = rng.normal(size=(40, 5)) * [1, 2, 3, 4, 5]
    Z = represented(X, True).transform(X)
    other = rotated(1e3 * X) + 7
    W = represented(other, True).transform(other)
    np.testing.assert_allclose(Z @ Z.T, W @ W.T, atol=1e-8)


def test_dtype_is_kept(rng, dtype):
    X = rng.normal(size=(40, 5)).astype(dtype)
    Z = represented(X, 3).transform(X)
    assert Z.dtype == dtype
    exact = represented(X.astype(float), 3).transform(X.astype(float))
    np.testing.assert_allclose(Z, exact, atol=10 * np.finfo(dtype).eps)


def test_no_whitening_gives_the_same_array(rng):
    X = rng.normal(size=(40, 5))
    for whiten in (False, "auto"):
        representation = represented(X, whiten)
        assert representation.n_components is None
        assert representation.cuts == {}
        assert representation.transform(X) is X


@pytest.mark.parametrize("n_clusters", [2, 5])
def test_cut_is_that_of_the_neighbour_graph(rng, n_clusters):
    X = rng.normal(size=(150, 3))
    found = _whiten._cut(X, n_clusters, rng_state(), 1)
    # no partition cuts less than the relaxed one
    assert reference.relaxed_cut(X, 5, n_clusters) <= found < 1


def test_cut_is_that_of_the_labels(rng, monkeypatch):
    X, labels = rng.normal(size=(150, 3)), np.arange(150) % 4
    monkeypatch.setattr(_whiten, "assign_labels", lambda *_, **__: labels)
    expected = reference.normalised_cut(reference.neighbour_graph(X, 5), labels) / 4
    assert _whiten._cut(X, 4, rng_state(), 1) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_whitening_is_chosen_where_large_components_hide_the_clusters(seed):
    X, _ = hidden_clusters(seed=seed)
    representation = represented(X, "auto", N_CLUSTERS)
    assert representation.n_components == 20
    cuts = representation.cuts
    assert set(cuts) == {0, 20}  # at most half of the features
    assert cuts[20] < 0.75 * cuts[0]
    assert cuts[0] >= reference.relaxed_cut(X, 5, N_CLUSTERS)
    assert cuts[20] >= reference.relaxed_cut(reference.whitened(X, 20), 5, N_CLUSTERS)
    np.testing.assert_array_equal(
        representation.transform(X), represented(X, 20).transform(X)
    )


@pytest.mark.parametrize("seed", range(3))
def test_whitening_is_not_chosen_where_large_components_show_them(seed):
    X, _ = open_clusters(seed=seed)
    representation = represented(X, "auto", N_CLUSTERS)
    assert set(representation.cuts) == {0, 20}
    assert representation.n_components is None
    assert representation.transform(X) is X


@pytest.mark.parametrize("cut, chosen", [(0.359, 20), (0.361, None)])
def test_whitening_must_lower_the_cut_by_a_tenth(monkeypatch, cut, chosen):
    X, _ = hidden_clusters()
    monkeypatch.setattr(_whiten, "_cut", lambda X, *_: 0.4 if X.shape[1] == 80 else cut)
    representation = represented(X, "auto", N_CLUSTERS)
    assert representation.cuts == {0: 0.4, 20: cut}
    assert representation.n_components == chosen


def test_of_several_numbers_of_components_the_lowest_cut_wins():
    X, _ = hidden_clusters(d=120)
    representation = represented(X, "auto", N_CLUSTERS)
    cuts = representation.cuts
    assert set(cuts) == {0, 20, 50}
    assert cuts[20] < cuts[50]
    assert representation.n_components == 20


def test_whitening_is_not_chosen_where_it_cannot_lower_the_cut():
    # 21 clusters far apart span the 20 components: both graphs fall into 21 parts
    rng = np.random.default_rng(0)
    y = np.arange(420) % 21
    X = 100 * np.eye(21, 70)[y] + 0.1 * rng.normal(size=(420, 70))
    representation = represented(X, "auto", 21)
    assert representation.cuts == {0: 0.0, 20: 0.0}
    assert representation.n_components is None


def test_components_beyond_the_rank_are_not_tried():
    X, _ = hidden_clusters(d=120)
    rng = np.random.default_rng(1)
    X = X[:, :30] @ rng.normal(size=(30, 120))
    assert set(represented(X, "auto", N_CLUSTERS).cuts) == {0, 20}
    # nothing is left to try
    X = X[:, :10] @ rng.normal(size=(10, 120))
    representation = represented(X, "auto", N_CLUSTERS)
    assert representation.cuts == {}
    assert representation.n_components is None


@pytest.mark.parametrize("n, d", [(500, 59), (40, 80), (500, 2)])
def test_nothing_is_tried_on_few_features_or_points(n, d):
    X, _ = hidden_clusters(n=n, d=max(d, 20))
    X = np.ascontiguousarray(X[:, :d])
    representation = represented(X, "auto", 2)
    assert representation.cuts == {}
    assert representation.n_components is None


def test_decision_is_made_on_a_sample(monkeypatch):
    X, _ = hidden_clusters(n=1000)
    monkeypatch.setattr(_whiten, "_LARGEST_SAMPLE", 501)
    representation = represented(X, "auto", N_CLUSTERS)
    assert representation.cuts == represented(X[::2], "auto", N_CLUSTERS).cuts
    # the transform is that of all points
    Z = representation.transform(X)
    np.testing.assert_allclose(Z.T @ Z / 1000, np.eye(20), atol=1e-8)


def test_estimator_whitens_fits_and_predicts():
    X, y = hidden_clusters()
    model = CDSK(N_CLUSTERS, random_state=0).fit(X)
    assert model.representation_.n_components == 20
    assert adjusted_rand_score(y, model.labels_) > 0.9
    assert np.mean(model.predict(X) == model.labels_) > 0.98
    assert model.n_features_in_ == 80
    raw = CDSK(N_CLUSTERS, whiten=False, random_state=0).fit(X)
    assert adjusted_rand_score(y, raw.labels_) < 0.5
    # the same as whitening by hand
    Z = represented(X, 20).transform(X)
    by_hand = CDSK(N_CLUSTERS, whiten=False, random_state=0).fit(Z)
    assert adjusted_rand_score(by_hand.labels_, model.labels_) == 1
    new, new_y = hidden_clusters(n=600)
    assert adjusted_rand_score(model.predict(new), new_y) > 0.85


def test_points_predicted_one_by_one_have_the_same_votes():
    # the rounding of a transform depends on how many points it is applied to
    X, _ = hidden_clusters(n=200)
    model = CDSK(N_CLUSTERS, whiten=20, random_state=0).fit(X)
    together = model.decision_function(X[:40])
    alone = np.concatenate([model.decision_function(X[i : i + 1]) for i in range(40)])
    np.testing.assert_allclose(alone, together, rtol=1e-6)


def test_given_bandwidth_or_kernel_means_the_data_as_they_are():
    X, _ = hidden_clusters(n=200)
    for parameters in (
        {"bandwidth": 100.0},
        {"bandwidth": "local"},
        {"kernel": "laplacian"},
    ):
        model = CDSK(3, random_state=0, **parameters).fit(X)
        assert model.representation_.n_components is None
        assert model.representation_.cuts == {}
    model = CDSK(3, random_state=0, bandwidth=3.0, whiten=5).fit(X)
    assert model.representation_.n_components == 5


@pytest.mark.parametrize("whiten", [True, False])
def test_truth_values_of_numpy_are_taken_as_such(rng, whiten):
    X = rng.normal(size=(60, 3))
    model = CDSK(2, whiten=np.bool_(whiten), random_state=0).fit(X)
    assert model.representation_.n_components == (3 if whiten else None)
    assert CDSK(2, whiten=np.int64(2)).fit(X).representation_.n_components == 2


@pytest.mark.parametrize("whiten", [True, 3, "auto"])
def test_equal_points_are_refused_in_the_same_words_when_whitened(whiten):
    with pytest.raises(ValueError, match="all points are equal"):
        CDSK(2, whiten=whiten).fit(np.ones((200, 80)))


@pytest.mark.parametrize("whiten", ["yes", "", 0, -3, 2.5, None, [3]])
def test_bad_values_are_refused_in_words(rng, whiten):
    with pytest.raises(ValueError, match=r"whiten must be .*; got"):
        CDSK(2, whiten=whiten).fit(rng.normal(size=(30, 3)))


def test_kernel_matrix_is_not_whitened():
    X, _ = make_blobs(80, 3, centers=2, random_state=0)
    K = reference.gaussian_gram(X, 2.0).astype(float)
    for whiten in (False, "auto"):
        model = CDSK(2, kernel="precomputed", whiten=whiten, random_state=0).fit(K)
        assert model.representation_.n_components is None
    for whiten in (True, 5):
        with pytest.raises(ValueError, match="whiten needs points"):
            CDSK(2, kernel="precomputed", whiten=whiten).fit(K)


@pytest.mark.parametrize("whiten", [True, 20, "auto"])
@pytest.mark.parametrize("unit", [1e160, 1e-155])
def test_units_whose_squares_are_no_ordinary_numbers_are_refused(rng, whiten, unit):
    X = unit * rng.normal(size=(90, 100))
    with pytest.raises(ValueError, match=r"X must (vary by|hold coord).*; got"):
        CDSK(3, whiten=whiten).fit(X)
