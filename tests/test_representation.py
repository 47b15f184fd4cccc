"""Views against an SVD, SciPy and scikit-learn, and the choice among them."""

import dataclasses
import tracemalloc
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import norm, rankdata
from sklearn.datasets import load_iris, load_wine, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import KNeighborsTransformer
from sklearn.preprocessing import StandardScaler

import reference
from cdsk import (
    CDSK,
    BlockCDSK,
    _candidate_fits,
    _preprocessing,
    _view_choice,
    _view_fits,
    suggest_n_clusters,
)
from cdsk._preprocessing import Points, Representation
from cdsk._view_choice import _ViewComparison, select_representation
from stages import make_context

N_CLUSTERS = 10
VIEWS = "raw", "standardize", "normal_scores", "whiten"


def represented(X, view, n_clusters=2, n_components=None, multiplicity=None, seed=0):
    points = Points.from_rows_as_they_are(X, multiplicity)
    context = make_context(seed=seed, n_components=n_components)
    return select_representation(points, view, n_clusters, context)


def whitened(X, n_components=None):
    return represented(X, "whiten", n_components=n_components)


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
@pytest.mark.parametrize("n_components", [None, 1, 3, 500])
def test_whitened_data_are_those_of_an_svd(rng, shape, n_components, offset):
    n, d = SHAPES[shape]
    X = rng.normal(size=(n, d)) * np.linspace(1, 3, d) + offset
    m = min(n_components or n, n - 1, d)
    representation = whitened(X, n_components)
    assert representation.n_components == m
    assert representation.view == f"whiten {m}"
    assert representation.scores == {}
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
    full, part = (whitened(X, m).transform(X) for m in (6, 4))
    np.testing.assert_allclose(full[:, :4], part, atol=1e-10)
    strongest = np.abs(np.corrcoef(full[:, 0], X[:, 4])[0, 1])
    assert strongest > 0.9


@pytest.mark.parametrize("shape", [(60, 12), (12, 60)])
def test_directions_the_data_do_not_span_are_left_out(rng, shape):
    X = rng.normal(size=(shape[0], 4)) @ rng.normal(size=(4, shape[1]))
    for n_components in (None, 10):
        representation = whitened(X, n_components)
        assert representation.n_components == 4
        Z = representation.transform(X)
        np.testing.assert_allclose(Z.T @ Z / len(X), np.eye(4), atol=1e-8)


def test_whitening_is_affine_and_serves_new_points(rng):
    X, new = rng.normal(size=(50, 5)), rng.normal(size=(7, 5))
    representation = whitened(X)
    middle = representation.transform(0.5 * (new + X[:7]))
    ends = representation.transform(new) + representation.transform(X[:7])
    np.testing.assert_allclose(middle, 0.5 * ends, atol=1e-12)


def test_scale_rotation_and_shift_of_whitened_data_change_no_distance(rng):
    X = rng.normal(size=(40, 5)) * [1, 2, 3, 4, 5]
    Z = whitened(X).transform(X)
    other = rotated(1e3 * X) + 7
    W = whitened(other).transform(other)
    np.testing.assert_allclose(Z @ Z.T, W @ W.T, atol=1e-8)


def test_standardized_data_are_those_of_scikit_learn(rng):
    X = rng.normal(size=(60, 4)) * [1e-200, 1, 7, 1e6] + [0, 3, 1e6, 0]
    X[:, 1] = 0.1  # whose mean is not 0.1 in the last bit
    new = rng.normal(size=(9, 4)) * 1e6
    representation = represented(X, "standardize")
    Z, W = representation.transform(X), representation.transform(new)
    others = [2, 3]
    scaler = StandardScaler().fit(X[:, others])
    np.testing.assert_allclose(Z[:, others], scaler.transform(X[:, others]), atol=1e-9)
    np.testing.assert_allclose(W[:, others], scaler.transform(new[:, others]))
    # squares that are no numbers, and no deviation at all
    np.testing.assert_allclose(Z[:, 0].std(), 1)
    assert (Z[:, 1] == 0).all()
    assert (W[:, 1] == 0).all()


def scores_of(X):
    """Normal scores by SciPy, of features with few ties."""
    found = norm.ppf((rankdata(X, axis=0) - 0.5) / len(X))
    return found / found.std(axis=0)


def test_normal_scores_are_those_of_scipy(rng):
    X = np.exp(rng.normal(size=(80, 3)))
    X[:, 1] = np.round(X[:, 1], 1)  # ties
    Z = represented(X, "normal_scores").transform(X)
    np.testing.assert_allclose(Z, scores_of(X), atol=1e-12)


@pytest.mark.parametrize("copies", [10, 11])
def test_feature_of_a_common_value_is_standardized(rng, copies):
    X = rng.normal(size=(100, 2))
    X[:copies, 0] = 0.0
    Z = represented(X, "normal_scores").transform(X)
    np.testing.assert_allclose(Z[:, 1], scores_of(X)[:, 1], atol=1e-12)
    scaled = (X[:, 0] - X[:, 0].mean()) / X[:, 0].std()
    expected = scores_of(X)[:, 0] if copies == 10 else scaled
    np.testing.assert_allclose(Z[:, 0], expected, atol=1e-12)


def test_normal_scores_of_new_points_are_monotone(rng):
    X = np.exp(3 * rng.normal(size=(50, 1)))
    representation = represented(X, "normal_scores")
    new = np.sort(np.concatenate([X[:, 0], np.linspace(-50, 2 * X.max(), 5000)]))
    Z = representation.transform(new[:, np.newaxis])[:, 0]
    assert (np.diff(Z)[np.diff(new) > 0] > 0).all()
    # between values linear, and beyond them as steep as standardizing
    low, high = np.sort(X[:, 0])[[7, 8]]
    ends = representation.transform(np.array([[low], [high]]))
    middle = representation.transform(np.array([[0.5 * (low + high)]]))
    np.testing.assert_allclose(middle[0], ends.mean(axis=0), rtol=1e-12)
    for end, step in ((X.min(), -3.0), (X.max(), 3.0)):
        near, far = representation.transform(np.array([[end], [end + step]]))
        np.testing.assert_allclose(far - near, step / X.std(), rtol=1e-9)


def test_values_next_to_each_other_keep_their_scores():
    # a slope between them would be beyond all numbers
    x = np.concatenate([5e-324 * np.arange(12), np.arange(1.0, 40.0)])
    X = np.column_stack([x, x])
    Z = represented(X, "normal_scores").transform(X)
    np.testing.assert_allclose(Z, scores_of(X), atol=1e-12)


@pytest.mark.parametrize("view", VIEWS)
def test_a_weight_is_a_number_of_repetitions(rng, view):
    X, new = np.round(rng.normal(size=(40, 4)), 1) * [1, 1, 5, 9], np.eye(4)
    multiplicity = rng.integers(1, 6, size=40)
    weighted = represented(X, view, multiplicity=multiplicity.astype(float))
    repeated = represented(np.repeat(X, multiplicity, axis=0), view)
    np.testing.assert_allclose(weighted.spread, repeated.spread, rtol=1e-12)
    for points in (X, new):
        Z, W = (r.transform(points) for r in (weighted, repeated))
        np.testing.assert_allclose(Z @ Z.T, W @ W.T, atol=1e-9)
    Z = weighted.transform(X)
    covariance = np.cov(Z.T, ddof=0, fweights=multiplicity)
    if view == "whiten":
        np.testing.assert_allclose(covariance, np.eye(4), atol=1e-9)
    elif view != "raw":
        np.testing.assert_allclose(np.diag(covariance), 1, atol=1e-9)
        # the unit of the weights is none of the matter
        other = represented(X, view, multiplicity=0.3 * multiplicity)
        np.testing.assert_allclose(other.transform(X), Z, atol=1e-12)


@pytest.mark.parametrize("view", VIEWS)
def test_weights_of_rows_are_repetitions_to_the_estimator(rng, view):
    X = make_blobs(90, 4, centers=3, random_state=0)[0]
    weights = rng.integers(0, 4, size=90)
    weighted = CDSK(3, representation=view, random_state=0)
    weighted.fit(X, sample_weight=weights)
    repeated = CDSK(3, representation=view, random_state=0)
    repeated.fit(np.repeat(X, weights, axis=0))
    labels = np.repeat(weighted.labels_, weights)
    assert adjusted_rand_score(labels, repeated.labels_) == 1
    for points in (X, X + 1.0):
        found = [m.representation_.transform(points) for m in (weighted, repeated)]
        np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("view", VIEWS)
def test_dtype_is_kept(rng, view, dtype):
    X = rng.normal(size=(40, 5)).astype(dtype)
    Z = represented(X, view).transform(X)
    assert Z.dtype == dtype
    assert Z.flags.c_contiguous
    exact = represented(X.astype(float), view).transform(X.astype(float))
    np.testing.assert_allclose(Z, exact, atol=10 * np.finfo(dtype).eps)


@pytest.mark.parametrize("view", VIEWS)
def test_a_point_is_the_same_alone_and_among_many(rng, view, dtype):
    X = rng.normal(size=(200, 7)).astype(dtype)
    representation = represented(X, view)
    together = representation.transform(X)
    for rows in (slice(3, 4), slice(10, 27)):
        assert (representation.transform(X[rows]) == together[rows]).all()


@pytest.mark.parametrize("view", ["auto", *VIEWS])
def test_points_of_the_fit_are_the_transformed_rows(rng, view):
    X = make_blobs(150, 5, centers=3, random_state=0)[0] * [1, 2, 3, 4, 5]
    model = CDSK(3, representation=view, random_state=0).fit(X)
    inside = model._predictor.votes.neighbors.X[model._predictor.points.inverse]
    np.testing.assert_array_equal(inside, model.representation_.transform(X))


def test_raw_gives_the_same_array(rng):
    X = rng.normal(size=(40, 3))
    for view in ("raw", "auto"):
        representation = represented(X, view)
        assert representation.name == representation.view == "raw"
        assert representation.n_components is None
        assert representation.scores == {}
        assert representation.transform(X) is X


def planar(ratio):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    return X / X.std(axis=0) * [1, ratio]


@pytest.mark.parametrize(
    ("ratio", "name"), [(1.0, "raw"), (1.99, "raw"), (101.0, "standardize")]
)
def test_few_features_are_standardized_if_their_spreads_differ(ratio, name):
    X = planar(ratio)
    X = np.column_stack([X, np.full(60, 5.0)])  # what does not vary has no say
    for data in (X, 1e-3 * X + 7, X[:, ::-1]):
        representation = represented(data, "auto")
        assert representation.name == name
        assert representation.scores == {}


@pytest.mark.parametrize("ratio", [2.01, 99.0])
def test_where_units_may_be_the_same_the_data_as_given_must_pay(ratio, monkeypatch):
    seen = {"standardize": 0.5, "raw": 0.6}
    order = iter([*seen, *seen])
    monkeypatch.setattr(_ViewComparison, "_score", lambda *_: seen[next(order)])
    representation = represented(planar(ratio), "auto")
    assert representation.scores == seen
    assert representation.name == "standardize"
    seen["raw"] = 0.8
    assert represented(planar(ratio), "auto").name == "raw"


@pytest.mark.parametrize("size", [40, 200])
def test_clusters_far_apart_along_one_feature_are_found(size):
    centers = 12.0 * np.arange(4)[:, np.newaxis] * [1, 0, 0]
    X, y = make_blobs(4 * size, centers=centers, random_state=0)
    model = CDSK(4, random_state=0).fit(X)
    # standardized .69 and .97
    assert adjusted_rand_score(y, model.labels_) > 0.95


def test_views_that_are_compared(rng, monkeypatch):
    monkeypatch.setattr(_ViewComparison, "_score", lambda *_: 0.5)

    def views(n, d, n_clusters, unequal=False, rank=None):
        X = rng.normal(size=(n, d))
        if rank is not None:
            X = X[:, :rank] @ rng.normal(size=(rank, d))
        if unequal:
            X[:, 0] *= 10
        return list(represented(X, "auto", n_clusters).scores)

    assert views(60, 3, 2) == []
    assert views(60, 4, 2) == ["raw", "normal_scores"]
    assert views(60, 59, 2, unequal=True) == ["standardize", "normal_scores", "raw"]
    # fewer than 0.7 of what they can span, and what 12 centers span
    assert views(400, 60, 2) == ["raw", "standardize", *WHITENED[:2]]
    assert views(400, 150, 12, unequal=True) == ["raw", "standardize", *WHITENED[1:4]]
    assert views(30, 150, 2) == ["raw", "standardize", *WHITENED[:2]]
    # components beyond the rank are none
    assert views(100, 100, 2, rank=30) == ["raw", "standardize", *WHITENED[:2]]
    # one cluster, or few points for each, say nothing
    assert views(60, 4, 1) == views(60, 4, 13) == []


WHITENED = [f"whiten {m}" for m in (10, 20, 50, 100, 200)]


@pytest.mark.parametrize("weighted", [False, True])
def test_score_is_the_cohesive_agreement_of_the_partitions(rng, monkeypatch, weighted):
    X, seen = make_blobs(150, 4, centers=5, cluster_std=3, random_state=0)[0], []
    multiplicity = rng.uniform(1, 3, size=150) if weighted else None
    partition = _view_choice.spectral_partition

    def record(*args, **how):
        found, labels = partition(*args, **how)
        seen.append((labels, args[0].graph.kernel(np.inf, 1)))
        return found, labels

    monkeypatch.setattr(_view_choice, "spectral_partition", record)
    scores = represented(X, "auto", 5, multiplicity=multiplicity).scores
    size = 3
    assert len(seen) == 2 * size
    for i, score in enumerate(scores.values()):
        part, graphs = zip(*seen[i * size : (i + 1) * size], strict=True)
        if not weighted:
            held = [reference.cohesion(p, 5, graphs[0].matrix.toarray()) for p in part]
            terms = [
                np.sqrt(held[i] * held[j]) * adjusted_rand_score(p, q)
                for i, p in enumerate(part)
                for j, q in enumerate(part[:i])
            ]
            assert score == pytest.approx(np.mean(terms), rel=1e-12)
        assert 0 < score < 1


@pytest.mark.parametrize("factor, chosen", [(1.41, "normal_scores"), (1.39, "raw")])
def test_another_view_must_pay(rng, monkeypatch, factor, chosen):
    scores = iter([0.4, 0.4 * factor])
    monkeypatch.setattr(_ViewComparison, "_score", lambda *_: next(scores))
    representation = represented(rng.normal(size=(60, 4)), "auto")
    assert representation.scores == {"raw": 0.4, "normal_scores": 0.4 * factor}
    assert representation.view == chosen


@pytest.mark.parametrize("seed", range(3))
def test_whitening_is_chosen_where_large_components_hide_the_clusters(seed):
    X, _ = hidden_clusters(seed=seed)
    representation = represented(X, "auto", N_CLUSTERS)
    scores = representation.scores
    assert set(scores) == {"raw", "standardize", "whiten 10", "whiten 20", "whiten 50"}
    assert representation.view == "whiten 20"
    assert scores["whiten 20"] == max(scores.values()) > 0.8
    np.testing.assert_array_equal(
        representation.transform(X), whitened(X, 20).transform(X)
    )


@pytest.mark.parametrize("seed", range(3))
def test_whitening_is_not_chosen_where_large_components_show_them(seed):
    X, _ = open_clusters(seed=seed)
    representation = represented(X, "auto", N_CLUSTERS)
    assert len(representation.scores) == 5
    assert representation.view == "raw"
    assert representation.transform(X) is X


@pytest.mark.parametrize(
    ("d", "attribute"), [(80, "_SAMPLE_MANY_FEATURES"), (20, "_SAMPLE")]
)
def test_decision_is_made_on_a_sample(monkeypatch, d, attribute):
    X, _ = hidden_clusters(n=300, d=d)
    everything = represented(X, "auto", N_CLUSTERS).scores
    monkeypatch.setattr(_view_choice, attribute, 150)
    some = [represented(X, "auto", N_CLUSTERS, seed=s) for s in (0, 0, 1)]
    assert some[0].scores == some[1].scores != some[2].scores
    assert some[0].scores != everything
    # the transform is that of all points
    np.testing.assert_array_equal(
        some[0].transform(X),
        represented(X, some[0].name, n_components=some[0].n_components).transform(X),
    )


def test_what_is_best_on_a_sample_must_be_so_on_more_points(monkeypatch):
    """Here two whitenings mislead in samples, and one of them on all points too."""
    score = {
        150: {"raw": 0.2, 20: 0.5, 50: 0.4, 100: 0.3},
        300: {"raw": 0.25, 20: 0.35, 50: 0.4},
    }

    def told(self, X, *_):
        name = "raw" if X.shape[1] == 120 else X.shape[1]
        return score[len(X)].get(name, 0.0)

    monkeypatch.setattr(_view_choice, "_SAMPLE_MANY_FEATURES", 150)
    monkeypatch.setattr(_ViewComparison, "_score", told)
    X = np.random.default_rng(0).normal(size=(300, 120))
    found = represented(X, "auto", N_CLUSTERS)
    assert found.view == "whiten 50"
    views = "raw", "whiten 20", "whiten 50"
    assert [found.scores[view] for view in views] == [0.25, 0.35, 0.4]


@pytest.mark.parametrize("components", [(2, 3), (2, 4)])
def test_no_fewer_components_than_the_centers_span(monkeypatch, components):
    monkeypatch.setattr(_view_choice, "COMPONENTS", components)
    X, _ = hidden_clusters()
    found = represented(X, "auto", 5)
    assert set(found.scores) == {"raw", "standardize", "whiten 4"}


@pytest.mark.parametrize("view", ["standardize", "normal_scores", "auto"])
@pytest.mark.parametrize("data", ["blobs", "iris"])
def test_units_of_the_features_change_no_cluster(data, view):
    X = np.unique(load_iris().data, axis=0)
    if data == "blobs":
        X = make_blobs(120, 6, centers=3, cluster_std=2.0, random_state=0)[0]
    # so different that they have no unit in common
    X = X / X.std(axis=0) * np.geomspace(1, 250, X.shape[1])
    rng = np.random.default_rng(1)
    unit, zero = 10 ** rng.uniform(-4, 4, X.shape[1]), rng.normal(size=X.shape[1])
    model, other = (
        CDSK(3, representation=view, random_state=0).fit(Z)
        for Z in (X, (X + zero) * unit)
    )
    assert adjusted_rand_score(model.labels_, other.labels_) == 1
    assert model.representation_.view == other.representation_.view != "raw"
    for points in (X, 3 * X):
        Z = model.representation_.transform(points)
        W = other.representation_.transform((points + zero) * unit)
        np.testing.assert_allclose(Z, W, atol=1e-9)


def test_monotone_maps_change_no_label_of_normal_scores():
    X = np.unique(load_wine().data, axis=0)
    model, other = (
        CDSK(3, representation="normal_scores", random_state=0).fit(Z)
        for Z in (X[:, [0, 1, 6]], np.exp(X[:, [0, 1, 6]]))
    )
    assert all(ranks is not None for ranks in model.representation_.ranks)
    assert adjusted_rand_score(model.labels_, other.labels_) == 1


def test_estimator_whitens_fits_and_predicts():
    X, y = hidden_clusters()
    model = CDSK(N_CLUSTERS, random_state=0).fit(X)
    assert model.representation_.view == "whiten 20"
    assert adjusted_rand_score(y, model.labels_) > 0.9
    assert np.mean(model.predict(X) == model.labels_) > 0.98
    assert model.n_features_in_ == 80
    raw = CDSK(N_CLUSTERS, representation="raw", random_state=0).fit(X)
    assert adjusted_rand_score(y, raw.labels_) < 0.5
    # the same as whitening by hand
    Z = whitened(X, 20).transform(X)
    by_hand = CDSK(N_CLUSTERS, representation="raw", random_state=0).fit(Z)
    assert adjusted_rand_score(by_hand.labels_, model.labels_) == 1
    new, new_y = hidden_clusters(n=600)
    assert adjusted_rand_score(model.predict(new), new_y) > 0.85


def test_table_in_its_own_units_is_standardized():
    X, y = load_wine(return_X_y=True)
    model = CDSK(3, random_state=0).fit(X)
    assert set(model.representation_.scores) == {"standardize", "normal_scores"}
    raw = CDSK(3, representation="raw", random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.7
    assert adjusted_rand_score(y, raw.labels_) < 0.4


@pytest.mark.parametrize("view", VIEWS)
def test_points_predicted_one_by_one_have_the_same_votes(view):
    X, _ = hidden_clusters(n=200)
    m = 20 if view == "whiten" else None
    model = CDSK(N_CLUSTERS, representation=view, n_components=m, random_state=0)
    together = model.fit(X).decision_function(X[:40])
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
        assert model.representation_.view == "raw"
        assert model.representation_.scores == {}
    how = {"bandwidth": 3.0, "representation": "whiten"}
    model = CDSK(3, random_state=0, n_components=5, **how).fit(X)
    assert model.representation_.n_components == 5


@pytest.mark.parametrize("view", ["auto", *VIEWS])
def test_equal_points_are_one_cluster_in_every_view(view):
    with pytest.warns(ConvergenceWarning, match="X has 1 distinct point,"):
        model = CDSK(2, representation=view).fit(np.ones((200, 80)))
    assert not model.labels_.any()


@pytest.mark.parametrize("view", VIEWS)
def test_new_points_are_checked(rng, view):
    X = rng.normal(size=(60, 4))
    found = Representation.fit(X, view)
    np.testing.assert_array_equal(
        found.transform(X.tolist()), found.transform_validated(X)
    )
    whole = np.arange(8).reshape(2, 4)
    expected = found.transform_validated(whole.astype(float))
    np.testing.assert_array_equal(found.transform(whole), expected)
    hole = X.copy()
    hole[3, 2] = np.nan
    for wrong, message in (
        (X[:, :3], "X has 3 features, but the representation was fitted to 4 features"),
        (hole, r"Input X contains NaN at row 3, column 2 \(1 in all\)"),
        ([["a"] * 4], "X must hold numbers only; got 'a' at row 0"),
        (X[0], "Expected 2D array"),
    ):
        with pytest.raises(ValueError, match=message):
            found.transform(wrong)


@pytest.mark.parametrize("view", VIEWS[1:])
def test_room_for_copies_is_asked_before_they_are_made(rng, view, monkeypatch):
    """And about as much as is taken."""
    X, asked = rng.normal(size=(4000, 50)), []
    found = Representation.fit(X, view)

    def peak_of(run):
        tracemalloc.start()
        run()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    def refuse(n_bytes, *words):
        raise MemoryError

    def refused(run):
        with pytest.raises(MemoryError):
            run()

    for run in (partial(Representation.fit, X, view), partial(found.transform, X)):
        monkeypatch.setattr(
            _preprocessing, "check_memory", lambda n, *words: asked.append(n)
        )
        assert 0.8 < peak_of(run) / asked.pop() < 1.3
        monkeypatch.setattr(_preprocessing, "check_memory", refuse)
        assert peak_of(partial(refused, run)) < 0.5 * X.nbytes


@pytest.mark.parametrize("view", ["yes", "", True, 3, None, ["raw"]])
def test_bad_views_raise(rng, view):
    X = rng.normal(size=(30, 3))
    for refused in (
        lambda: CDSK(2, representation=view).fit(X),
        lambda: suggest_n_clusters(X, [2], representation=view),
    ):
        with pytest.raises(ValueError, match=r"representation must be one of .*; got"):
            refused()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"representation": "whiten", "n_components": 0}, "n_components must be .*got"),
        ({"representation": "raw", "n_components": 2}, "expected None .* got 2"),
        ({"representation": "standardize", "n_components": 2}, "expected None .*got 2"),
    ],
)
def test_components_of_nothing_are_refused(rng, parameters, message):
    with pytest.raises(ValueError, match=message):
        CDSK(2, **parameters).fit(rng.normal(size=(30, 3)))


def test_kernel_matrix_has_no_views():
    X, _ = make_blobs(80, 3, centers=2, random_state=0)
    K = reference.gaussian_gram(X, 2.0).astype(float)
    for view in ("auto", "raw"):
        model = CDSK(2, kernel="precomputed", representation=view, random_state=0)
        assert model.fit(K).representation_.view == "raw"
        assert model.representation_.spread is None
    for view in VIEWS[1:]:
        with pytest.raises(ValueError, match=f"representation='{view}' needs points"):
            CDSK(2, kernel="precomputed", representation=view).fit(K)


@pytest.mark.parametrize("view", ["auto", *VIEWS])
@pytest.mark.parametrize("unit", [1e160, 1e-155])
def test_units_whose_squares_are_no_ordinary_numbers_are_refused(rng, view, unit):
    X = unit * rng.normal(size=(90, 100))
    with pytest.raises(ValueError, match=r"X must (vary by|hold coord).*; got"):
        CDSK(3, representation=view).fit(X)


def test_what_is_printed_is_the_view_and_the_scores(rng):
    X = rng.normal(size=(90, 70))
    shown = repr(represented(X, "auto", 3))
    assert shown.startswith("Representation(name='")
    assert "scores={'raw': 0." in shown
    assert "array" not in shown


def test_fit_is_what_represent_returns(rng):
    X = rng.normal(size=(30, 4))
    by_fit = Representation.fit(X, "whiten", n_components=2)
    np.testing.assert_array_equal(by_fit.transform(X), whitened(X, 2).transform(X))


# Layout.


def separated(seed=0, n=240):
    return make_blobs(n, 6, centers=4, cluster_std=0.7, random_state=seed)


@pytest.mark.parametrize("n_components", [None, 2])
def test_clusters_in_a_layout(n_components):
    X, y = separated()
    model = CDSK(
        4, representation="layout", n_components=n_components, random_state=0
    ).fit(X)
    view = model.representation_
    assert view.view == f"layout {n_components or 10}"
    assert view.positions.shape == (240, n_components or 10)
    assert adjusted_rand_score(y, model.labels_) == 1
    assert (model.predict(X) == model.labels_).all()
    new, expected = separated(n=400)
    assert adjusted_rand_score(expected, model.predict(new)) == 1


def test_positions_of_points_in_a_layout(rng):
    X, _ = separated()
    view = CDSK(4, representation="layout", random_state=0).fit(X).representation_
    Z = view.index.X
    rows = view.base.transform(X)
    order = [int(np.flatnonzero((Z == row).all(axis=1))[0]) for row in rows]
    np.testing.assert_array_equal(view.transform(X), view.positions[order])
    new = X[:20] + rng.normal(0, 0.1, size=(20, 6))
    rows = view.base.transform(new)[:, np.newaxis]
    nearest = np.argsort(np.linalg.norm(rows - Z, axis=2), axis=1)[:, :7]
    expected = np.median(view.positions[nearest], axis=1)
    np.testing.assert_array_equal(view.transform(new), expected)


def test_a_layout_does_not_depend_on_threads_or_the_order_of_rows(rng):
    X, _ = separated()
    models = [
        CDSK(4, representation="layout", random_state=0, n_threads=t).fit(X)
        for t in (1, 3)
    ]
    first, second = (model.representation_.positions for model in models)
    np.testing.assert_array_equal(first, second)
    order = rng.permutation(len(X))
    other = CDSK(4, representation="layout", random_state=0).fit(X[order])
    np.testing.assert_array_equal(
        other.representation_.transform(X), models[0].representation_.transform(X)
    )


@pytest.fixture
def few_points_for_a_layout(monkeypatch):
    monkeypatch.setattr(_view_choice, "_MIN_LAYOUT_POINTS", 100)
    monkeypatch.setattr(_view_choice, "_MIN_LAYOUT_POINTS_PER_CLUSTER", 10)


def overlapping(n=200):
    return make_blobs(n, 5, centers=4, cluster_std=3.0, random_state=0)[0]


@pytest.mark.parametrize("ratio, taken", [(1.45, False), (1.55, True)])
def test_a_layout_must_have_more_support_than_the_view(
    few_points_for_a_layout, monkeypatch, ratio, taken
):
    select, votes = _view_fits.select_partition, []

    def scale(names, partitions, *args, **options):
        """The choice with the support .5 in the view, .5 ratio in the two layouts."""
        choice = select(names, partitions, *args, **options)
        votes.append((partitions, args[1]))
        support = 0.5 * (ratio if len(votes) == 4 else 1.0)
        factor = support / choice.support
        return dataclasses.replace(choice, scores=factor * choice.scores)

    for module in (_candidate_fits, _view_fits):
        monkeypatch.setattr(module, "select_partition", scale)
    X = overlapping()
    model = CDSK(4, random_state=0).fit(X)
    (ours, near), (first, _), (second, _), (both, same) = votes
    assert len(both) == len(first) + len(second) == 2 * len(ours)
    np.testing.assert_array_equal(near.row_sums, same.row_sums)
    view = model.representation_
    assert list(view.support) == ["raw", "layout 10"]
    np.testing.assert_allclose(list(view.support.values()), [0.5, 0.5 * ratio])
    assert (view.name == "layout") == taken
    # the choice is that among the partitions of the view or of one layout
    assert len(model.choice_.names) == len(ours)
    assert model.choice_.support == pytest.approx(view.support[view.view])


def test_partitions_of_two_layouts_vote_for_the_same_rows(
    few_points_for_a_layout, monkeypatch
):
    """They are in the order of the points of the view, so that both layouts agree.

    Rows in another order would leave half of the votes, those of the same layout.
    """
    monkeypatch.setattr(_view_fits, "MIN_LAYOUT_GAIN", 0.0)
    X, y = separated()
    model = CDSK(4, random_state=0).fit(X)
    view = model.representation_
    assert view.name == "layout"
    assert adjusted_rand_score(y, model.labels_) == 1
    in_view, in_layout = view.support.values()
    assert in_view == pytest.approx(1.0)
    # a narrow kernel or a tree may be wrong in one layout
    assert in_layout > 0.75


def test_no_layout_where_the_view_cannot_be_beaten(few_points_for_a_layout):
    X, _ = separated()
    view = CDSK(4, random_state=0).fit(X).representation_
    assert list(view.support) == [view.view]
    assert view.support[view.view] > 0.99


@pytest.mark.parametrize("is_weighted", [False, True])
def test_many_points_are_compared_by_a_sample(
    few_points_for_a_layout, monkeypatch, is_weighted
):
    monkeypatch.setattr(_view_choice, "_MIN_LAYOUT_POINTS", 80)
    monkeypatch.setattr(_view_fits, "_SAMPLE", 80)
    monkeypatch.setattr(_view_fits, "_SAMPLE_PER_CLUSTER", 10)
    monkeypatch.setattr(_view_fits, "LARGE_SAMPLE", 120)
    monkeypatch.setattr(_view_fits, "MIN_LAYOUT_GAIN", 0.0)
    X, y = separated()
    weights = np.arange(240) % 3 if is_weighted else None
    init = np.ones(240) if weights is None else (weights > 0).astype(float)
    init /= init.sum()
    for start in ("uniform", init):
        model = CDSK(4, init=start, random_state=0).fit(X, sample_weight=weights)
        view = model.representation_
        assert len(view.positions) == (240 if weights is None else 160)
        assert len(view.support) == 2
        assert adjusted_rand_score(y, model.labels_) == 1
        assert (model.predict(X) == model.labels_).all()


def test_layouts_are_compared_for_default_kernels_of_dense_points(
    few_points_for_a_layout, monkeypatch
):
    monkeypatch.setattr(_view_fits, "MIN_LAYOUT_GAIN", 0.0)
    X, _ = separated()
    others = (
        {"representation": "raw"},
        {"bandwidth": "neighbor"},
        {"noise": 0.01},
        {"neighbors": KNeighborsTransformer(n_neighbors=10)},
        {"kernel": "cosine"},
    )
    for options in others:
        view = CDSK(4, random_state=0, **options).fit(X).representation_
        assert view.support == {}
        assert view.name != "layout"
    view = CDSK(4, random_state=0).fit(sparse.csr_array(X)).representation_
    assert view.support == {}


def test_dimensions_of_a_layout():
    X, _ = separated()
    with pytest.raises(ValueError, match=r"a layout must be .* at most 16; got 17"):
        CDSK(4, representation="layout", n_components=17).fit(X)
    with pytest.raises(ValueError, match="got 'layout', which requires all rows"):
        BlockCDSK(4, representation="layout").fit(X)


def test_clusters_of_many_features_are_counted_in_a_layout(few_points_for_a_layout):
    X, y = make_blobs(300, 80, centers=25, cluster_std=1.0, random_state=0)
    model = CDSK("auto", random_state=0).fit(X)
    assert model.count_choice_.view == "layout 10"
    assert model.count_choice_.candidates[-1] == 60
    assert model.n_clusters_ == 25
    assert adjusted_rand_score(y, model.labels_) == 1


def test_outliers_have_no_layout(few_points_for_a_layout, monkeypatch):
    monkeypatch.setattr(_view_fits, "MIN_LAYOUT_GAIN", 0.0)
    X, _ = separated()
    assert CDSK(4, random_state=0).fit(X).representation_.name == "layout"
    assert CDSK(4, noise=0.01, random_state=0).fit(X).representation_.name != "layout"
    with pytest.raises(ValueError, match="moves outliers into clusters"):
        CDSK(4, representation="layout", noise=0.01).fit(X)


def test_one_distinct_point_has_no_layout():
    with pytest.warns(ConvergenceWarning, match="1 distinct point,"):
        model = CDSK(2, representation="layout", random_state=0).fit(np.ones((9, 3)))
    assert (model.labels_ == 0).all()
