"""New points: probabilities, positions, and what rows of a fit have in common."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError

import cdsk
from cdsk import CDSK


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(300, 4, cluster_std=3.0, random_state=0)[0]


@pytest.fixture(scope="module")
def fitted(blobs):
    """A model of the blobs; tests leave it as it is."""
    return CDSK(3, random_state=0).fit(blobs)


KERNELS = {
    "neighbours": {},
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
    calibration = model._left_out.calibration
    powers = np.exp(calibration.exponent * (votes - votes.max(axis=1, keepdims=True)))
    shares = powers / powers.sum(axis=1, keepdims=True)
    expected = (1 - calibration.error) * shares + calibration.error / 3
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
    labels = model.predict(new)
    assert (np.argmax(found, axis=1) == labels)[labels >= 0].all()


def test_nothing_is_learned_before_it_is_asked_for(blobs):
    model = CDSK(3, random_state=0).fit(blobs)
    assert "calibration" not in vars(model._left_out)
    before = vars(model).copy()
    model.predict_proba(blobs[:2])
    assert "calibration" in vars(model._left_out)
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
    assert np.median(model.outlier_scores_[noise]) > 0.95
    assert np.median(model.outlier_scores_[~noise]) == pytest.approx(0.5, abs=0.1)


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
