"""Spectral clustering of one Gaussian: W by its formula, labels by scikit-learn's."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist, pdist
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score

from cdsk.baselines import GaussianSpectral


@pytest.fixture(scope="module")
def moons():
    return make_moons(150, noise=0.06, random_state=1)


def among_neighbors(D, k):
    """Whether one of i and j is among the k nearest others of the other."""
    D = D + np.diag(np.full(len(D), np.inf))
    rank = D.argsort(axis=1).argsort(axis=1)
    return (rank < k) | (rank < k).T


@pytest.mark.parametrize("k", [None, 1, 6, 500])
# graphs of few neighbors are disconnected
@pytest.mark.filterwarnings("ignore:.*have no similarity")
def test_affinity_equals_its_formula(moons, k):
    X, _ = moons
    model = GaussianSpectral(2, bandwidth=0.3, n_neighbors=k, random_state=0).fit(X)
    D = cdist(X, X)
    expected = np.exp(-(D**2) / (2 * 0.3**2))
    np.fill_diagonal(expected, 0)
    W = model.affinity_matrix_
    assert sparse.issparse(W) == (k is not None)
    if k is not None:
        W = W.toarray()
        expected *= among_neighbors(D, k)
    np.testing.assert_allclose(W, expected, rtol=1e-10, atol=1e-14)
    assert (W == W.T).all()


@pytest.mark.parametrize(
    ("rule", "statistic"),
    [("variance", np.var), ("std", np.std), ("median", np.median)],
)
def test_bandwidth_rules(moons, rule, statistic):
    X, _ = moons
    model = GaussianSpectral(2, bandwidth=rule, random_state=0).fit(X)
    assert model.bandwidth_ == pytest.approx(statistic(pdist(X)))


@pytest.mark.parametrize("k", [None, 25])
def test_moons_are_found_as_by_scikit_learn_and_not_by_kmeans(moons, k):
    X, y = moons
    model = GaussianSpectral(2, bandwidth=0.1, n_neighbors=k, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1
    peer = SpectralClustering(2, affinity="precomputed", random_state=0)
    peer.fit(model.affinity_matrix_)
    assert adjusted_rand_score(peer.labels_, model.labels_) == 1
    assert adjusted_rand_score(y, KMeans(2, random_state=0).fit_predict(X)) < 0.7


def test_labels_are_kmeans_of_unit_rows_of_eigenvectors():
    X, _ = make_blobs(120, 3, centers=4, cluster_std=2.0, random_state=8)
    model = GaussianSpectral(4, bandwidth="median", n_init=30, random_state=0).fit(X)
    W = model.affinity_matrix_
    root = np.sqrt(W.sum(axis=1))
    vectors = np.linalg.eigh(W / np.outer(root, root))[1][:, -4:]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    expected = KMeans(4, n_init=30, random_state=0).fit_predict(vectors)
    assert adjusted_rand_score(expected, model.labels_) == 1


# graphs of few neighbors are disconnected
@pytest.mark.filterwarnings("ignore:.*have no similarity")
def test_duplicates_constant_features_and_few_points(moons):
    X = np.repeat(moons[0][:40], 3, axis=0)
    X = np.column_stack([X, np.full(len(X), 5.0)])
    for k in (None, 2, 10):
        labels = GaussianSpectral(3, n_neighbors=k, random_state=0).fit_predict(X)
        assert (labels.reshape(-1, 3) == labels[::3, np.newaxis]).all()
    labels = GaussianSpectral(3, random_state=0).fit_predict([[0.0], [1.0], [5.0]])
    assert (labels == [0, 1, 2]).all()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"bandwidth": 0}, "bandwidth must be a number > 0; got 0"),
        (
            {"bandwidth": "local"},
            "bandwidth must be a number > 0 or one of .* got 'l",
        ),
        ({"bandwidth": 1e-200}, "bandwidth must be positive and finite"),
        ({"n_neighbors": 0}, "n_neighbors must be an integer of at least 1; got 0"),
        ({"n_neighbors": 3, "bandwidth": 1e-200}, "must be positive and finite"),
        ({"n_init": 0}, "n_init must be an integer"),
        ({"assign_labels": "x"}, "assign_labels must be one of"),
    ],
)
def test_invalid_parameters(moons, wrong, message):
    with pytest.raises(ValueError, match=message):
        GaussianSpectral(2, **wrong).fit(moons[0])


@pytest.mark.parametrize("k", [None, 5])
def test_a_bandwidth_that_is_too_small(moons, k):
    # the variance of distances is their square: 1e-12 where they are 1e-6
    with pytest.raises(ValueError, match="All affinities are 0 for the bandwidth"):
        GaussianSpectral(2, bandwidth="variance", n_neighbors=k).fit(1e-6 * moons[0])
    GaussianSpectral(2, n_neighbors=k).fit(1e-6 * moons[0])


# fewer distinct points than clusters
@pytest.mark.filterwarnings("ignore:X has . distinct point")
def test_affinities_of_equal_points_are_equal():
    W = GaussianSpectral(2, random_state=0).fit(np.ones((5, 2))).affinity_matrix_
    assert (W == 1.0 - np.eye(5)).all()
