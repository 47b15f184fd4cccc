"""Common tests of all estimators in ``cdsk.baselines``."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import cdsk
from cdsk import CDSK, baselines
from cdsk.baselines import spectral_labels
from cdsk.baselines._base import AffinityBaseline

# Parameters that make some fast enough for many fits, or accurate for 90 points.
SETTINGS = {
    "BayesianMaxMargin": {"n_sweeps": 30},
    "LaplacianL1Graph": {"tol": 0.01},
    "RatioRF": {"n_estimators": 30, "max_depth": 5},
    "RobustAffinityGraph": {"n_estimators": 50},
}
ESTIMATORS = [
    value(**SETTINGS.get(name, {}))
    for name in baselines.__all__
    if isinstance(value := getattr(baselines, name), type)
]
EVERY = pytest.mark.parametrize(
    "model", ESTIMATORS, ids=lambda model: type(model).__name__
)


# In some checks there are fewer distinct points than clusters, or the neighbor graph is
# disconnected.
@pytest.mark.filterwarnings("ignore:X has . distinct point")
@pytest.mark.filterwarnings("ignore:.*have no similarity")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_common_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(90, 3, centers=3, cluster_std=0.5, random_state=3)


@EVERY
def test_separate_blobs_are_found(model, blobs):
    X, y = blobs
    model = clone(model).set_params(n_clusters=3, random_state=0)
    labels = model.fit_predict(X)
    assert labels.dtype == np.int64
    assert adjusted_rand_score(y, labels) == 1
    # numbered in the order in which clusters first appear
    assert (np.unique(labels, return_index=True)[1].argsort() == [0, 1, 2]).all()


@EVERY
def test_same_seed_same_labels(model, blobs, rng):
    X = blobs[0] + rng.normal(size=blobs[0].shape)
    first, second = (
        clone(model).set_params(n_clusters=4, random_state=5).fit_predict(X)
        for _ in range(2)
    )
    assert (first == second).all()


@EVERY
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_clusters": 0}, "n_clusters must be an integer of at least 1; got 0"),
        ({"n_clusters": 99}, "n_clusters must be at most the number of samples"),
        ({"random_state": "x"}, "random_state must be"),
    ],
)
def test_invalid_parameters(model, blobs, wrong, message):
    with pytest.raises(ValueError, match=message):
        clone(model).set_params(**wrong).fit(blobs[0])


@EVERY
def test_invalid_data_leave_a_model_unchanged(model, blobs):
    X = blobs[0].copy()
    model = clone(model).set_params(n_clusters=3, random_state=0).fit(X)
    before = model.labels_
    X[4, 1] = np.nan
    with pytest.raises(ValueError, match="NaN at row 4, column 1"):
        model.fit(X)
    assert model.labels_ is before


@EVERY
def test_one_cluster(model, blobs):
    labels = clone(model).set_params(n_clusters=1).fit_predict(blobs[0])
    assert (labels == 0).all()


@EVERY
@pytest.mark.parametrize("n_clusters", [3, 5])
def test_equal_points_are_in_one_cluster(model, blobs, n_clusters):
    points = np.arange(36) % 3
    model = clone(model).set_params(n_clusters=n_clusters, random_state=0)
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        labels = model.fit_predict(blobs[0][[0, 40, 80]][points])
    message = "X has 3 distinct points, fewer than n_clusters=5."
    assert any(message in str(w.message) for w in record) == (n_clusters == 5)
    assert (labels == points).all()


@EVERY
@pytest.mark.filterwarnings(
    "ignore:.*have no similarity"
)  # all neighbors are duplicates
def test_more_distinct_points_than_clusters(model, blobs):
    points = np.arange(60) % 15
    model = clone(model).set_params(n_clusters=3, random_state=0)
    labels = model.fit_predict(blobs[0][::6][points])
    assert (labels == labels[:15][points]).all()


@pytest.mark.parametrize(
    "model",
    [model for model in ESTIMATORS if isinstance(model, AffinityBaseline)],
    ids=lambda model: type(model).__name__,
)
def test_affinities_are_symmetric_and_non_negative(model, blobs):
    model = clone(model).set_params(n_clusters=3, random_state=0).fit(blobs[0])
    W = model.affinity_matrix_
    assert W.shape == (90, 90)
    assert abs(W - W.T).max() <= 1e-12 * W.max()
    assert W.min() >= 0


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_spectral_labels_are_those_of_cdsk_without_iterations(blobs, kind):
    from scipy import sparse

    K = cdsk.gaussian_gram(blobs[0], 1.0)
    K[K < 1e-4] = 0.0
    if kind == "sparse":
        K = sparse.csr_array(K)
    options = {"kernel": "precomputed", "max_iter": 0, "random_state": 0}
    expected = CDSK(3, **options).fit_predict(K)
    labels = spectral_labels(K, 3, random_state=0)
    assert (labels == expected).all()


def test_spectral_labels_warns_about_unconnected_points_and_fewer_clusters():
    W = np.zeros((20, 20))
    W[0, 1] = W[1, 0] = 1.0
    with (
        pytest.warns(UserWarning, match="18 of 20 points have no similarity"),
        pytest.warns(ConvergenceWarning, match="Found 1 connected groups of points"),
    ):
        labels = spectral_labels(W, 3, random_state=0)
    assert (labels == 0).all()
