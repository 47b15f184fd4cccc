"""Self-tuning spectral clustering: W by its formula, clusters of unequal density."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.cluster import SpectralClustering
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from cdsk.baselines import GaussianSpectral, SelfTuningSpectral


@pytest.fixture(scope="module")
def dense_and_sparse():
    """Return a dense blob within a wide, sparse ring."""
    rng = np.random.default_rng(4)
    angle = rng.uniform(0, 2 * np.pi, 100)
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    ring *= rng.normal(5, 0.2, (100, 1))
    X = np.concatenate([rng.normal(size=(100, 2)) * 0.1, ring])
    return X, np.repeat([0, 1], 100)


@pytest.mark.parametrize("rank", [1, 7, 500])
@pytest.mark.parametrize("k", [None, 2, 12])
# graphs of few neighbors are disconnected
@pytest.mark.filterwarnings("ignore:.*have no similarity")
def test_affinity_equals_its_formula(dense_and_sparse, rank, k):
    X, _ = dense_and_sparse
    model = SelfTuningSpectral(2, scale_neighbor=rank, n_neighbors=k, random_state=0)
    W = model.fit(X).affinity_matrix_
    D = cdist(X, X)
    others = np.sort(D, axis=1)[:, 1:]  # the first is the point itself
    s = others[:, min(rank, len(X) - 1) - 1]
    np.testing.assert_allclose(model.scales_, s, rtol=1e-12)
    expected = np.exp(-(D**2) / np.outer(s, s))
    np.fill_diagonal(expected, 0)
    assert sparse.issparse(W) == (k is not None)
    if k is not None:
        W = W.toarray()
        near = others[:, [k - 1]] >= D
        expected *= near | near.T
    np.testing.assert_allclose(W, expected, rtol=1e-9, atol=1e-14)
    assert (W == W.T).all()


@pytest.mark.parametrize("k", [None, 10])
def test_clusters_of_unequal_density(dense_and_sparse, k):
    X, y = dense_and_sparse
    model = SelfTuningSpectral(2, n_neighbors=k, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1
    if k is None:  # scikit-learn warns about a disconnected graph
        peer = SpectralClustering(2, affinity="precomputed", random_state=0)
        labels = peer.fit_predict(model.affinity_matrix_)
        assert adjusted_rand_score(labels, model.labels_) == 1
    one_scale = GaussianSpectral(2, random_state=0).fit_predict(X)
    assert adjusted_rand_score(y, one_scale) < 0.7


@pytest.mark.parametrize("unit", [1e-100, 1e100])
@pytest.mark.parametrize("k", [None, 5])
# graphs of few neighbors are disconnected
@pytest.mark.filterwarnings("ignore:.*have no similarity")
def test_the_unit_does_not_matter(dense_and_sparse, unit, k):
    X, _ = dense_and_sparse
    model = SelfTuningSpectral(2, n_neighbors=k, random_state=0).fit(X)
    other = SelfTuningSpectral(2, n_neighbors=k, random_state=0).fit(unit * X)
    assert abs(other.affinity_matrix_ - model.affinity_matrix_).max() < 1e-9
    assert (other.labels_ == model.labels_).all()


@pytest.mark.parametrize("k", [None, 3, 12])
# graphs of few neighbors are disconnected
@pytest.mark.filterwarnings("ignore:.*have no similarity")
def test_points_with_many_duplicates(dense_and_sparse, k):
    X, y = dense_and_sparse
    heap = np.repeat(X[[0, -1]], 10, axis=0)  # more copies than neighbors
    model = SelfTuningSpectral(2, n_neighbors=k, random_state=0)
    model.fit(np.concatenate([X, heap]))
    W = model.affinity_matrix_
    assert np.isfinite(W if k is None else W.data).all()
    others = model.scales_[1:199]
    assert (model.scales_[200:] == others.min()).all()
    assert (model.scales_ > 0).all()
    if k is None:
        copies = np.concatenate([y, np.repeat([0, 1], 10)])
        assert adjusted_rand_score(copies, model.labels_) == 1


@pytest.mark.parametrize("k", [None, 3])
def test_all_points_have_many_duplicates(k):
    X = np.repeat([[0.0], [1.0], [9.0]], 20, axis=0)
    model = SelfTuningSpectral(3, n_neighbors=k, random_state=0).fit(X)
    assert (model.scales_ == 1).all()
    assert (model.labels_ == np.repeat([0, 1, 2], 20)).all()


def test_few_points():
    labels = SelfTuningSpectral(2, random_state=0).fit_predict([[0.0], [1.0], [9.0]])
    assert (labels == [0, 0, 1]).all()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"scale_neighbor": 0},
            "scale_neighbor must be an integer of at least 1; got 0",
        ),
        ({"n_neighbors": 2.5}, "n_neighbors must be an integer of at least 1; got 2.5"),
    ],
)
def test_invalid_parameters(dense_and_sparse, wrong, message):
    with pytest.raises(ValueError, match=message):
        SelfTuningSpectral(2, **wrong).fit(dense_and_sparse[0])


# all eigenvectors are equally good, and rounding decides whether there are two groups
@pytest.mark.filterwarnings("ignore:Found 1 connected groups")
def test_equal_points_are_one_cluster():
    model = SelfTuningSpectral(2, random_state=0)
    with pytest.warns(ConvergenceWarning, match="X has 1 distinct point,"):
        model.fit(np.ones((20, 2)))
    assert (model.labels_ == 0).all()
    assert (model.scales_ == 1).all()
