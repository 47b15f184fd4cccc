"""New points: probabilities, positions, and what rows of a fit have in common."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.integrate import trapezoid
from scipy.spatial.distance import pdist
from scipy.special import softmax
from sklearn.datasets import make_blobs, make_moons
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import KNeighborsTransformer

import cdsk
from cdsk import CDSK
from cdsk._nearest import Tiles


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(200, 4, cluster_std=3.0, random_state=0)[0]


@pytest.fixture(scope="module")
def fitted(blobs):
    """A model of the blobs; tests leave it as it is."""
    return CDSK(3, random_state=0).fit(blobs)


KERNELS = {
    "neighbors": {},
    "one bandwidth": {"bandwidth": 2.0},
    "local": {"bandwidth": "local"},
    "laplacian": {"kernel": "laplacian", "kernel_params": {"gamma": 0.1}},
    "low rank": {"bandwidth": 2.0, "approximation": "lowrank"},
    "noise": {"noise": 0.05},
}


@pytest.mark.parametrize("options", KERNELS.values(), ids=KERNELS)
def test_probabilities_are_powers_of_votes(blobs, rng, options):
    model = CDSK(3, random_state=0, **options).fit(blobs)
    new = np.concatenate([rng.normal(scale=5, size=(40, 4)), blobs[:20]])
    found = model.predict_proba(new)
    votes = model.decision_function(new)
    calibration = model._predictor.left_out.calibration
    powers = np.exp(calibration.exponent * (votes - votes.max(axis=1, keepdims=True)))
    shares = powers / powers.sum(axis=1, keepdims=True)
    expected = (1 - calibration.error) * shares + calibration.error / 3
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
    labels = model.predict(new)
    assert (np.argmax(found, axis=1) == labels)[labels >= 0].all()


def test_nothing_is_learned_before_it_is_asked_for(blobs):
    model = CDSK(3, random_state=0).fit(blobs)
    assert "calibration" not in vars(model._predictor.left_out)
    before = vars(model).copy()
    model.predict_proba(blobs[:2])
    assert "calibration" in vars(model._predictor.left_out)
    assert vars(model) == before


@pytest.mark.parametrize("name", ["probabilities_", "outlier_scores_"])
def test_attributes_that_are_computed_need_a_fit(name):
    assert not hasattr(CDSK(), name)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(CDSK(), name)


def test_precomputed_kernel(blobs):
    K = cdsk.gaussian_gram(blobs, 2.0)
    options = {"qp_tol": 1e-9, "random_state": 0}
    given = CDSK(3, kernel="precomputed", **options).fit(K)
    points = CDSK(3, bandwidth=2.0, representation="raw", **options).fit(blobs)
    # the numbers of clusters go by the order of the points, which K does not have
    number = [points.labels_[given.labels_ == y][0] for y in range(3)]
    assert (np.array(number)[given.labels_] == points.labels_).all()
    for one, other in (
        (given.predict_proba(K[:9]), points.predict_proba(blobs[:9])[:, number]),
        (given.probabilities_, points.probabilities_),
    ):
        np.testing.assert_allclose(one, other, atol=1e-4)


@pytest.mark.parametrize("noise", [None, 0.05])
def test_weights_are_repetitions_and_rows_of_none_are_new_points(blobs, rng, noise):
    counts = rng.integers(0, 3, size=len(blobs))
    options = {"noise": noise, "representation": "raw", "random_state": 0}
    model = CDSK(3, **options).fit(blobs, sample_weight=counts)
    copies = np.repeat(np.arange(len(blobs)), counts)
    copied = CDSK(3, **options).fit(blobs[copies])
    assert (model.labels_[copies] == copied.labels_).all()
    for name in ("probabilities_", "outlier_scores_"):
        found, expected = getattr(model, name), getattr(copied, name)
        np.testing.assert_allclose(found[copies], expected, rtol=1e-3)
        assert ((found >= 0) & (found <= 1)).all()
    new = blobs + 0.1
    np.testing.assert_allclose(
        model.predict_proba(new), copied.predict_proba(new), rtol=1e-3
    )
    lost = np.flatnonzero((counts == 0) & (model.labels_ >= 0))
    as_new = model.predict_proba(blobs[lost])[np.arange(len(lost)), model.labels_[lost]]
    np.testing.assert_allclose(model.probabilities_[lost], as_new, rtol=1e-12)


def test_noise_belongs_to_no_cluster(blobs, rng):
    X = np.concatenate([blobs, rng.uniform(-40, 40, size=(20, 4))])
    model = CDSK(3, noise=0.01, random_state=0).fit(X)
    noise = model.labels_ < 0
    assert noise.sum() > 10
    assert (model.probabilities_[noise] == 0).all()
    assert (model.probabilities_[~noise] > 0).all()
    # noise stands out by its score, which every row has
    assert roc_auc_score(np.arange(len(X)) >= len(blobs), model.outlier_scores_) > 0.9


def test_outlier_scores_order_as_typicality_does(fitted):
    scores, typicality = fitted.outlier_scores_, fitted.typicality_
    assert ((scores > 0) & (scores <= 1)).all()
    assert (np.argsort(-scores, kind="stable") == np.argsort(typicality)).all()
    assert np.median(scores) == pytest.approx(0.5, abs=1e-3)


def test_one_cluster_is_certain(blobs):
    model = CDSK(1, random_state=0).fit(blobs)
    assert (model.predict_proba(blobs) == 1).all()
    assert (model.probabilities_ == 1).all()


@pytest.mark.filterwarnings("ignore:X has 2 distinct points")
def test_clusters_that_do_not_exist_have_no_probability():
    X = np.repeat([[0.0], [1.0]], 5, axis=0)
    model = CDSK(3, random_state=0).fit(X)
    p = model.predict_proba([[0.1], [0.9]])
    assert p.shape == (2, 3)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert (p[:, 2] == 0).all()
    assert (model.probabilities_ > 0).all()


@pytest.mark.filterwarnings("ignore:. of . points have no similarity")
def test_points_that_nobody_votes_for_have_the_shares_of_the_clusters(blobs):
    K = cdsk.gaussian_gram(blobs, 2.0)
    model = CDSK(3, kernel="precomputed", random_state=0).fit(K)
    nothing = np.zeros((1, len(K)))
    shares = np.bincount(model.labels_, model.weights_)
    np.testing.assert_allclose(model.predict_proba(nothing)[0], shares, rtol=1e-12)
    assert model.predict(nothing)[0] == np.argmax(shares)


@pytest.mark.parametrize("options", KERNELS.values(), ids=KERNELS)
def test_rows_of_the_fit_keep_their_places(blobs, rng, options):
    X = np.concatenate([blobs, blobs[:30]])  # copies, and rows that do not count
    counts = rng.integers(0, 3, size=len(X))
    model = CDSK(3, random_state=0, **options)
    found = model.fit_transform(X, sample_weight=counts)
    np.testing.assert_array_equal(found, model.embedding_)
    np.testing.assert_array_equal(model.transform(X), model.embedding_)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize("options", KERNELS.values(), ids=KERNELS)
def test_what_finds_points_of_the_fit_is_made_once(blobs, monkeypatch, options):
    """It is as large as the data, and a row alone should not wait for it."""
    made = []

    def make(*arguments):
        made.append(arguments)
        return Tiles(*arguments)

    monkeypatch.setattr("cdsk._neighbors.Tiles", make)
    model = CDSK(3, random_state=0, **options).fit(blobs)
    first = model.transform(blobs[:1])
    made.clear()
    np.testing.assert_array_equal(model.transform(blobs[:1]), first)
    assert made == []


def test_places_are_means_by_votes(blobs, rng):
    """Written out for one bandwidth, in the unit of the eigenvectors."""
    model = CDSK(3, bandwidth=2.0, representation="raw", random_state=0).fit(blobs)
    A = model.similarity_operator() @ np.eye(len(blobs))
    theta, vectors = np.linalg.eigh(A)
    theta, vectors = theta[:-4:-1], vectors[:, :-4:-1]
    K = cdsk.gaussian_gram(blobs, 2.0)
    a = model.weights_
    S = 2 * (np.add.outer(a, a) - len(a) * model.lam_ * np.multiply.outer(a, a)) * K
    np.fill_diagonal(S, 0.0)
    Y = vectors / np.sqrt(S.sum(axis=1))[:, np.newaxis]
    new = rng.normal(scale=4, size=(30, 4))
    votes = cdsk.gaussian_rows(new, blobs, 2.0) * a
    Z = votes @ Y / votes.sum(axis=1, keepdims=True) / theta
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    found = model.transform(new)
    # eigenvectors may be turned: places relative to those of the fit
    rows = Y / np.linalg.norm(Y, axis=1, keepdims=True)
    np.testing.assert_allclose(found @ model.embedding_.T, Z @ rows.T, atol=1e-4)


def test_the_extension_is_exact_for_points_without_weight(blobs):
    # a precomputed kernel does not tell which rows are those of the fit
    K = cdsk.gaussian_gram(blobs, 2.0)
    model = CDSK(3, kernel="precomputed", random_state=0).fit(K)
    none = model.weights_ == 0
    assert none.sum() > 50
    found = model.transform(K)
    np.testing.assert_allclose(found[none], model.embedding_[none], atol=1e-4)
    distances = np.linalg.norm(found - model.embedding_, axis=1)
    assert np.quantile(distances, 0.9) < 0.05


def test_places_near_points_of_the_fit_are_near_theirs(blobs, fitted):
    near = fitted.transform(blobs + 1e-9)
    distances = np.linalg.norm(near - fitted.embedding_, axis=1)
    assert 0 < np.median(distances) < 0.01
    # and none is moved half the way to another cluster
    centers = np.array(
        [fitted.embedding_[fitted.labels_ == y].mean(0) for y in range(3)]
    )
    assert distances.max() < 0.5 * pdist(centers).min()


def test_means_of_cluster_indicators_are_shares_of_votes(blobs, rng):
    new = rng.normal(scale=5, size=(40, 4))
    K, rows = cdsk.gaussian_gram(blobs, 2.0), cdsk.gaussian_rows(new, blobs, 2.0)
    graph = KNeighborsTransformer(mode="distance", n_neighbors=9).fit(blobs)
    few = sparse.csr_array(np.where(K > 1e-6, K, 0.0))
    for options, X, asked in (
        *((options, blobs, new) for options in KERNELS.values()),
        ({"kernel": "precomputed"}, K, rows),
        ({"kernel": "precomputed"}, few, sparse.csr_array(rows)),
        (
            {"kernel": "precomputed_neighbors"},
            *(graph.transform(blobs), graph.transform(new)),
        ),
    ):
        model = CDSK(3, random_state=0, **options).fit(X)
        labels = model.clusters_[model._predictor.points.first_row]
        members = (labels[:, np.newaxis] == np.arange(3)).astype(float)
        found = model._map_rows(
            asked,
            lambda part, n, m=model, v=members: m._predictor.votes.average(part, v, n),
        )
        shares = softmax(model.decision_function(asked), axis=1)
        np.testing.assert_allclose(found, shares, atol=1e-12)
        assert np.isfinite(model.transform(asked)).all()


@pytest.mark.filterwarnings("ignore:. of . points have no similarity")
def test_nobody_votes_for_a_place(blobs):
    K = cdsk.gaussian_gram(blobs, 2.0)
    model = CDSK(3, kernel="precomputed", random_state=0).fit(K)
    assert (model.transform(np.zeros((2, len(K)))) == 0).all()


@pytest.mark.filterwarnings("ignore:X has 2 distinct points")
def test_fewer_points_than_clusters_have_places():
    X = np.repeat([[0.0], [1.0]], 5, axis=0)
    model = CDSK(3, random_state=0).fit(X)
    np.testing.assert_array_equal(model.transform(X), model.embedding_)
    assert model.get_feature_names_out().tolist() == ["cdsk0", "cdsk1"]


def test_places_come_in_the_frame_that_is_asked_for(blobs):
    frame = pd.DataFrame(blobs, columns=list("abcd"), index=np.arange(200) + 7)
    model = CDSK(3, random_state=0).set_output(transform="pandas")
    for found in (model.fit_transform(frame), model.transform(frame)):
        assert found.columns.tolist() == model.get_feature_names_out().tolist()
        assert (found.index == frame.index).all()
        np.testing.assert_array_equal(found.to_numpy(), model.embedding_)


def test_places_in_a_frame_of_polars(blobs):
    polars = pytest.importorskip("polars", reason="polars is not installed")
    frame = polars.DataFrame(blobs, schema=list("abcd"))
    model = CDSK(3, random_state=0).set_output(transform="polars").fit(frame)
    found = model.transform(frame)
    assert found.columns == model.get_feature_names_out().tolist()
    np.testing.assert_array_equal(found.to_numpy(), model.embedding_)


@pytest.mark.parametrize("options", [{}, {"bandwidth": "local"}], ids=str)
def test_threads_and_company_change_no_bit(blobs, options):
    new = blobs[:40] + 0.3
    models = [
        CDSK(3, random_state=0, n_threads=n_threads, **options).fit(blobs)
        for n_threads in (1, 3)
    ]
    for name in ("predict_proba", "transform"):
        one, three = (getattr(model, name)(new) for model in models)
        np.testing.assert_array_equal(one, three)
        alone = [getattr(models[0], name)(row[np.newaxis])[0] for row in new]
        np.testing.assert_array_equal(alone, one)
    np.testing.assert_array_equal(models[0].probabilities_, models[1].probabilities_)


@pytest.mark.parametrize("representation", ["raw", "standardize", "whiten"])
def test_density_integrates_to_one_over_points_as_they_are_represented(representation):
    X = make_moons(60, noise=0.1, random_state=0)[0] * [100, 1]
    X = np.column_stack([X, X @ [1.0, 2.0]])  # whitened to one of three dimensions
    if representation != "whiten":
        X = X[:, 1:2]
    model = CDSK(2, bandwidth=0.3, representation=representation, random_state=0)
    model.set_params(n_components=1 if representation == "whiten" else None).fit(X)
    ends = [X.mean(axis=0) + sign * 20 * X.std(axis=0) for sign in (-1, 1)]
    line = np.linspace(*ends, 20_001)
    z = model.representation_.transform(line)[:, 0]
    density = np.exp(model.score_samples(line))
    assert abs(trapezoid(density, x=z)) == pytest.approx(1, abs=1e-6)
