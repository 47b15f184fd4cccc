import pickle
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.neighbors import KNeighborsTransformer
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

import cdsk
import reference
from cdsk import CDSK
from common_checks import not_for_clusterers

# some checks have data of fewer distinct points than the default n_clusters
FEW_POINTS = pytest.mark.filterwarnings("ignore:X has . distinct point")


@FEW_POINTS
@parametrize_with_checks(
    [
        CDSK(),
        CDSK(bandwidth="local", assign_labels="cluster_qr", lam="auto"),
        CDSK(kernel="laplacian", init="sparse"),
        CDSK("auto"),
    ],
    expected_failed_checks=not_for_clusterers,
)
def test_scikit_learn_common_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@FEW_POINTS
@parametrize_with_checks(
    [CDSK(bandwidth="local"), CDSK(assign_labels="cluster_qr"), CDSK(lam="auto")],
    expected_failed_checks=not_for_clusterers,
)
def test_common_checks_with_one_option_at_a_time(estimator, check):
    check(estimator)


@FEW_POINTS
@pytest.mark.parametrize("name", not_for_clusterers(CDSK()))
def test_what_else_is_in_the_checks_of_classifiers_holds(name):
    """They ask for a tag of classifiers, and only because there is predict_proba."""
    check = getattr(estimator_checks, name)
    with pytest.raises(AssertionError) as failed:
        check("CDSK", CDSK())
    assert "no attribute 'multi_class'" in str(failed.value.__cause__)

    class WithoutProbabilities(CDSK):
        @property
        def predict_proba(self):
            raise AttributeError("not for these checks")

    check("WithoutProbabilities", WithoutProbabilities())


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(150, 4, centers=3, cluster_std=2.0, random_state=0)[0]


@pytest.fixture(scope="module")
def fitted(blobs):
    """A model of the blobs; tests leave it as it is."""
    return CDSK(3, random_state=0).fit(blobs)


def test_attributes(fitted):
    model = fitted
    assert model.labels_.shape == (150,)
    assert model.labels_[0] == 0
    assert set(model.labels_) == {0, 1, 2}
    assert model.weights_.sum() == pytest.approx(1, abs=1e-12)
    assert (model.weights_ <= 1 / (150 * 0.2)).all()
    assert (model.support_ == np.flatnonzero(model.weights_ > 0)).all()
    assert model.embedding_.shape == (150, 3)
    np.testing.assert_allclose(np.linalg.norm(model.embedding_, axis=1), 1)
    assert model.eigenvalues_.shape == (3,)
    assert (np.diff(model.eigenvalues_) <= 0).all()
    assert (np.diff(model.history_) < 0).all()
    assert model.n_iter_ >= len(model.history_) - 1
    assert 0 <= model.qp_gap_ <= model.qp_tol
    assert model.bandwidth_.shape == (150,)
    assert (model.bandwidth_ > 0).all()
    assert model.lam_ == 0.2
    # two partitions of each of seven kernels, and ten by spanning trees
    assert model.choice_.scores.shape == (24,)
    assert model.choice_.chosen == np.argmax(model.choice_.scores)
    assert model.representation_.view == "raw"
    assert model.margins_.shape == (150,)
    assert model.n_features_in_ == 4


def test_pandas(blobs, fitted):
    frame = pd.DataFrame(blobs, columns=list("abcd"))
    model = CDSK(3, random_state=0).fit(frame)
    assert model.feature_names_in_.tolist() == list("abcd")
    assert (model.labels_ == fitted.labels_).all()
    assert (model.predict(frame) == model.predict(frame.copy())).all()
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[list("dcba")])


def test_pickle(blobs, fitted):
    again = pickle.loads(pickle.dumps(fitted))
    assert (again.predict(blobs) == fitted.predict(blobs)).all()
    assert (again.weights_ == fitted.weights_).all()


def test_clone():
    for kernel in ("rbf", cdsk.gaussian_gram):
        copy = clone(CDSK(3, kernel=kernel, lam=0.2))
        assert copy.get_params()["lam"] == 0.2
        assert not hasattr(copy, "labels_")


def test_float32_is_kept_small_and_agrees(blobs, fitted):
    model = CDSK(3, random_state=0).fit(blobs.astype(np.float32))
    assert (model.labels_ == fitted.labels_).all()
    np.testing.assert_allclose(model.weights_, fitted.weights_, atol=1e-4)


def test_input_is_not_changed(blobs):
    K = cdsk.gaussian_gram(blobs, 2.0)
    before = K.copy()
    CDSK(3, kernel="precomputed", random_state=0).fit(K)
    assert (K == before).all()


def test_same_seed_same_result_and_silent_by_default(blobs, fitted, capsys):
    again = CDSK(3, random_state=0).fit(blobs)
    assert (again.weights_ == fitted.weights_).all()
    assert (again.embedding_ == fitted.embedding_).all()
    assert (again.labels_ == fitted.labels_).all()
    assert capsys.readouterr().out == ""


def test_predict_before_fit(blobs):
    for method in ("predict", "decision_function", "score_samples"):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(CDSK(3), method)(blobs)


@pytest.mark.parametrize("verbose", [1, 2])
def test_verbose_prints_stages_and_rounds(blobs, capsys, monkeypatch, verbose):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    model = CDSK(3, bandwidth=2.0, random_state=0, verbose=verbose).fit(blobs)
    out, err = capsys.readouterr()
    assert out == ""
    assert "kernel 1 of 1: bandwidth 2" in err
    rounds = [line for line in err.splitlines() if line.startswith("[CDSK] iteration")]
    assert len(rounds) == (model.n_iter_ + 1 if verbose == 2 else 0)
    for word in ("objective", "trace", "support", "QP gap", " s"):
        assert all(word in line for line in rounds)


def test_unfinished_alternation_warns_with_figures(blobs):
    with pytest.warns(
        ConvergenceWarning, match=r"alternation .* max_iter=1 .* objective"
    ):
        CDSK(3, max_iter=1, tol=1e-9, random_state=0).fit(blobs)


def test_unconnected_points_are_counted_and_labeled(blobs):
    X = np.concatenate([blobs, [[1e6, 0, 0, 0]]])
    with pytest.warns(UserWarning, match="1 of 151 points have no similarity"):
        model = CDSK(3, bandwidth=2.0, random_state=0).fit(X)
    nearest = np.argmax(blobs[:, 0])
    assert model.labels_[150] == model.labels_[nearest]


def test_a_failed_fit_leaves_the_estimator_unfitted(blobs):
    model = CDSK(3, bandwidth=1e-6)
    with pytest.raises(ValueError, match="No two points have any similarity"):
        model.fit(blobs)
    assert vars(model) == vars(CDSK(3, bandwidth=1e-6))
    with pytest.raises(NotFittedError):
        model.predict(blobs)


def test_a_failed_fit_keeps_the_one_before(blobs):
    model = CDSK(3, random_state=0).fit(blobs)
    labels = model.predict(blobs)
    with pytest.raises(ValueError, match="contains infinity"):
        model.fit(np.full((10, 2), np.inf))
    with pytest.raises(ValueError, match="n_clusters must be at most"):
        model.fit(np.ones((2, 7)))
    assert model.n_features_in_ == 4
    assert (model.predict(blobs) == labels).all()


def test_as_many_clusters_as_points(rng):
    X = rng.normal(size=(6, 2))
    model = CDSK(6, bandwidth=1.0, random_state=0).fit(X)
    assert len(np.unique(model.labels_)) == 6


CHOSEN = {
    "default": {},
    "lam": {"lam": "auto"},
    "bandwidth": {"bandwidth": "local"},
    "kernel": {"kernel": "laplacian"},
    "whiten": {"representation": "whiten", "n_components": 2},
}


@pytest.mark.parametrize("parameters", CHOSEN.values(), ids=CHOSEN)
def test_n_clusters_chosen_by_the_data(parameters):
    X = make_blobs(160, centers=9 * np.eye(4), random_state=0)[0]
    model = CDSK("auto", random_state=0, **parameters).fit(X)
    raw = "bandwidth" in parameters or "kernel" in parameters
    view = {"representation": "raw"} if raw else {}
    names = "representation", "n_components"
    view |= {name: parameters[name] for name in names if name in parameters}
    suggested = cdsk.suggest_n_clusters(X, random_state=0, **view)
    assert model.n_clusters == "auto"
    assert type(model.n_clusters_) is int
    assert model.n_clusters_ == suggested.n_clusters == len(set(model.labels_))
    assert (model.count_choice_.scores == suggested.scores).all()
    assert model.count_choice_.runner_up == suggested.runner_up
    if "representation" not in parameters:
        assert model.n_clusters_ == 4
    given = CDSK(model.n_clusters_, random_state=0, **parameters).fit(X)
    assert (given.labels_ == model.labels_).all()
    assert given.n_clusters_ == model.n_clusters_
    assert given.count_choice_ is None
    assert model.decision_function(X).shape == (160, model.n_clusters_)
    assert (model.predict(X) == model.labels_).all()
    assert (pickle.loads(pickle.dumps(model)).predict(X) == model.labels_).all()


def test_lam_for_a_chosen_number_of_clusters():
    X = make_blobs(300, centers=9 * np.eye(12), random_state=0)[0]
    # ten points of every cluster, or 100
    choice = cdsk.select_lambda(X, "auto", grid=[0.1, 0.5], random_state=0)
    assert choice.n_sample == 120


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_clusters": "two"}, "must be an integer or 'auto'; got 'two'"),
        ({"n_clusters": 2.5}, "n_clusters must be an integer of at least 1; got 2.5"),
        ({"n_clusters": None}, "n_clusters must be an integer of at least 1; got None"),
        (
            {"n_clusters": "auto", "kernel": "precomputed"},
            "needs points; expected an integer for kernel='precomputed'",
        ),
        (
            {"n_clusters": "auto", "kernel": "precomputed_neighbors"},
            "needs points; expected an integer for kernel='precomputed_neighbors'",
        ),
    ],
)
def test_what_is_no_number_of_clusters_is_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        CDSK(**parameters).fit(np.eye(12))


def test_a_number_cannot_be_chosen_for_two_points():
    with pytest.raises(ValueError, match="minimum of 3 is required"):
        CDSK("auto").fit([[0.0], [1.0]])


def test_two_points():
    model = CDSK(2, bandwidth=1.0, random_state=0).fit([[0.0], [1.0]])
    assert model.labels_.tolist() == [0, 1]


@pytest.mark.parametrize(
    "parameters", [{}, {"bandwidth": 2.0}, {"kernel": "laplacian"}]
)
def test_one_cluster(rng, parameters, in_point_order):
    X = in_point_order(np.concatenate([rng.normal(size=(60, 2)), [[300.0, 0.0]]]))
    with warnings.catch_warnings():
        # the far point has no similarity to the others
        warnings.filterwarnings("ignore", "1 of 61 points have no similarity")
        model = CDSK(1, random_state=0, **parameters).fit(X)
    assert (model.labels_ == 0).all()
    assert (model.predict(X) == 0).all()
    assert model.decision_function(X).shape == (61, 1)
    # weights of the same QP, with all points alike: Y Y' = 1
    K = model._make_kernel().as_array()
    Q, q = reference.weight_qp(K, np.ones((1, 61)), 61 * model.lam_)
    # K is in the order of the fit
    weights = model.weights_[model._predictor.points.first_row]
    gap = reference.kkt_gap(Q, q, weights, 1 / (61 * model.lam_))
    assert gap <= 1.01e-4 * np.abs(q).max()
    assert "61 points in 1 cluster" in str(model.report())


@pytest.mark.parametrize("n_clusters", [3, 4, 7])
@pytest.mark.parametrize("parameters", [{}, {"bandwidth": 1.0}, {"bandwidth": "local"}])
def test_identical_points_are_never_split(rng, n_clusters, parameters):
    points = 10 * rng.normal(size=(3, 2))
    copies = rng.permutation(np.arange(30) % 3)
    model = CDSK(n_clusters, random_state=0, **parameters)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(points[copies])
    expected = f"3 distinct points, fewer than n_clusters={n_clusters}"
    assert [expected in str(one.message) for one in caught] == [True] * (n_clusters > 3)
    assert len(np.unique(model.labels_)) == 3
    assert len(set(zip(copies.tolist(), model.labels_.tolist(), strict=True))) == 3
    assert (model.predict(points[copies]) == model.labels_).all()


def test_fewer_connected_groups_than_clusters_warn():
    K = np.eye(10)
    K[0, 1] = K[1, 0] = 1.0
    with (
        pytest.warns(UserWarning, match="points have no similarity"),
        pytest.warns(
            ConvergenceWarning, match="Found 1 connected groups of points, fewer"
        ),
    ):
        labels = CDSK(3, kernel="precomputed", random_state=0).fit_predict(K)
    assert (labels == 0).all()


@pytest.mark.parametrize(
    "options",
    [
        *({}, {"n_clusters": "auto"}, {"bandwidth": 1.0}, {"lam": "auto"}),
        {"init": "sparse"},
        *({"n_neighbors": 3}, {"noise": 0.05}, {"kernel": "laplacian"}),
        {"neighbors": KNeighborsTransformer(mode="distance", n_neighbors=5)},
    ],
)
def test_equal_points_are_one_cluster(options):
    X = np.ones((51, 2))
    with pytest.warns(ConvergenceWarning, match="X has 1 distinct point,"):
        model = CDSK(**{**options, "n_clusters": 3}).fit(X)
    one = CDSK(**{"n_clusters": 1, **options}).fit(X)
    for found in (model, one):
        assert (found.labels_ == 0).all()
        assert (found.predict(X[:5]) == 0).all()
        np.testing.assert_allclose(found.weights_, 1 / 51)
        assert str(found.report()).startswith("CDSK: 51 points in 1 clusters")


@pytest.mark.parametrize("noise", [None, 0.05])
def test_labels_and_clusters_are_two_arrays(noise):
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = CDSK(2, noise=noise, random_state=0).fit(X)
    assert not np.shares_memory(model.labels_, model.clusters_)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_new_data_are_treated_as_those_of_the_fit(metric):
    X = make_blobs(60, 3, centers=3, random_state=0)[0] + 20.0
    model = CDSK(3, metric=metric, random_state=0).fit(X)
    labels, embedding = model.predict(X), model.transform(X)
    model.set_params(metric="cosine" if metric == "euclidean" else "euclidean")
    np.testing.assert_array_equal(model.predict(X), labels)
    np.testing.assert_array_equal(model.transform(X), embedding)
