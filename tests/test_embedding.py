"""The spectral step against a dense eigen-decomposition: subspaces, never vectors."""

import numpy as np
import pytest
from scipy.linalg import subspace_angles
from sklearn.datasets import make_blobs

import cdsk
import reference
from cdsk._eigensolvers import TOLERANCE
from cdsk._operators.dense import DenseKernel, DenseSimilarity
from cdsk._spectral import spectral_step

PRODUCT = DenseSimilarity.normalized_product


def similarity_of(X, bandwidth, weights=None, lam=0.3):
    n = len(X)
    K = cdsk.gaussian_gram(X, bandwidth)
    weights = np.full(n, 1 / n) if weights is None else weights
    return K, DenseSimilarity(DenseKernel(K, 2, points=X), weights, lam * n)


def rng_state():
    return np.random.RandomState(0)


@pytest.mark.parametrize("n", [50, 90, 700])  # the first is solved densely
@pytest.mark.parametrize("n_clusters", [2, 5])
def test_embedding_spans_the_leading_eigenspace(rng, n, n_clusters):
    X = make_blobs(n, 4, centers=5, cluster_std=2.0, random_state=1)[0]
    weights = rng.uniform(size=n)
    weights /= weights.sum()
    lam = min(0.3, 0.9 / (n * weights.max()))
    K, similarity = similarity_of(X, 2.0, weights, lam)
    found = spectral_step(similarity, n_clusters, rng_state())
    _, values = reference.embedding(K, weights, lam * n, n_clusters)
    np.testing.assert_allclose(found.eigenvalues, values[:n_clusters], atol=1e-9)
    A = reference.normalized(K, weights, lam * n)
    exact = np.linalg.eigh(A)[1][:, ::-1][:, :n_clusters]
    # back from unit rows to eigenvectors: the row scale is 1 / |row of D^-1/2 V|
    rows = exact / np.sqrt(similarity.degrees)[:, np.newaxis]
    ours = found.vectors.T * np.linalg.norm(rows, axis=1)[:, np.newaxis]
    assert subspace_angles(ours, rows).max() < 1e-4
    np.testing.assert_allclose(np.linalg.norm(found.vectors, axis=0), 1, rtol=1e-12)
    assert found.residual <= TOLERANCE
    assert found.trace == pytest.approx(np.sum(1 - values[:n_clusters]), abs=1e-8)


@pytest.mark.parametrize("copies", [3, 6])
def test_multiple_eigenvalues_are_all_found(copies):
    # `copies` identical clouds, far enough apart to be joined by nothing but tiny
    # similarities: every eigenvalue is repeated `copies` times up to about 1e-7.
    cloud = np.random.default_rng(3).normal(size=(150, 2))
    X = np.concatenate([cloud + [9.5 * i, 0] for i in range(copies)])
    K, similarity = similarity_of(X, 1.0)
    found = spectral_step(similarity, copies, rng_state())
    _, values = reference.embedding(
        K, np.full(len(X), 1 / len(X)), 0.3 * len(X), copies
    )
    assert values[copies - 1] > 0.999
    np.testing.assert_allclose(found.eigenvalues, values[:copies], atol=1e-8)


@pytest.mark.parametrize("n_clusters", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("size", [20, 120])
def test_exact_blocks_have_constant_rows(n_clusters, size):
    cloud = np.random.default_rng(0).normal(size=(size, 2))
    X = np.concatenate([cloud + [1e3 * i, 0] for i in range(n_clusters)])
    _, similarity = similarity_of(X, 1.0)
    found = spectral_step(similarity, n_clusters, rng_state())
    assert (found.eigenvalues == 1).all()
    G = found.vectors.T @ found.vectors
    block = np.arange(n_clusters).repeat(size)
    np.testing.assert_allclose(G, block[:, np.newaxis] == block, atol=1e-12)


@pytest.mark.parametrize("size", [60, 300])
def test_fewer_components_than_clusters(size):
    # two far islands of two clouds each: the vectors beyond the islands' own split them
    cloud = np.random.default_rng(0).normal(size=(size, 2))
    X = np.concatenate(
        [cloud + shift for shift in ([0, 0], [5, 0], [1e4, 0], [1e4, 5])]
    )
    K, similarity = similarity_of(X, 1.0)
    found = spectral_step(similarity, 4, rng_state())
    assert (found.eigenvalues[:2] == 1).all()
    assert (found.eigenvalues[2:] < 1).all()
    _, values = reference.embedding(K, np.full(len(X), 1 / len(X)), 0.3 * len(X), 4)
    np.testing.assert_allclose(found.eigenvalues, values[:4], atol=1e-8)


def test_small_components_and_isolated_points_follow_their_neighbor():
    cloud = np.random.default_rng(0).normal(size=(40, 2))
    pair = np.array([[0.0, 100.0], [0.1, 100.0]])
    X = np.concatenate([cloud, cloud + [1e3, 0], pair, [[1e3, -200.0]]])
    _, similarity = similarity_of(X, 1.0)
    found = spectral_step(similarity, 2, rng_state())
    assert np.flatnonzero(found.component < 0).tolist() == [80, 81, 82]
    G = found.vectors.T @ found.vectors
    np.testing.assert_allclose(G[80:82, 0], 1)
    np.testing.assert_allclose(G[82, 79], 1)
    np.testing.assert_allclose(G[82, 0], 0, atol=1e-12)


def test_components_of_negligible_degree_are_unconnected():
    # the first pair has similarity 1e-304: too little to work with, yet not zero
    X = np.array([[0.0], [37.4], [1e4], [1e4 + 1], [2e4], [2e4 + 1]])
    _, similarity = similarity_of(X, 1.0)
    found = spectral_step(similarity, 3, rng_state())
    assert np.isfinite(found.vectors).all()
    assert np.flatnonzero(found.component < 0).tolist() == [0, 1]


def test_no_similarity_at_all_is_refused():
    X = 1e4 * np.arange(10.0)[:, np.newaxis]
    _, similarity = similarity_of(X, 1.0)
    with pytest.raises(ValueError, match="No two points have any similarity"):
        spectral_step(similarity, 2, rng_state())


def test_same_seed_same_embedding_and_warm_start_agrees(monkeypatch):
    X = make_blobs(600, 3, centers=4, cluster_std=2.5, random_state=0)[0]
    _, similarity = similarity_of(X, 1.5)
    first, second = (spectral_step(similarity, 4, rng_state()) for _ in range(2))
    assert (first.vectors == second.vectors).all()
    products = []
    monkeypatch.setattr(
        DenseSimilarity,
        "normalized_product",
        lambda self, rows: products.append(len(rows)) or PRODUCT(self, rows),
    )
    spectral_step(similarity, 4, rng_state())
    cold, _ = sum(products), products.clear()
    warm = spectral_step(similarity, 4, rng_state(), start=first.solution)
    assert sum(products) < 0.7 * cold
    np.testing.assert_allclose(warm.eigenvalues, first.eigenvalues, atol=1e-10)
    assert subspace_angles(warm.vectors.T, first.vectors.T).max() < 1e-4


def fringe_of(kernel, n_clusters):
    similarity = kernel.similarity(np.full(kernel.n, 1.0 / kernel.n), 1.0)
    embedding = spectral_step(similarity, n_clusters, np.random.RandomState(0))
    return np.flatnonzero(embedding.component < 0)


def test_a_few_outliers_of_many_points_are_unconnected(default_kernels):
    rng = np.random.RandomState(0)
    near, far = rng.normal(size=(3000, 2)), rng.normal([30.0, 0.0], 0.5, size=(3, 2))
    kernel = default_kernels(np.vstack([near, far]))[0]
    assert set(fringe_of(kernel, 2)) >= {3000, 3001, 3002}


@pytest.mark.parametrize("spread", [0.1, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_small_cluster_far_away_is_not(default_kernels, seed, spread):
    """Though all its edges are weak where its points are far apart."""
    rng = np.random.RandomState(seed)
    large = rng.normal(size=(8000, 2))
    small = rng.normal([0.0, 30.0], spread, size=(60, 2))
    kernel = default_kernels(np.vstack([large, small]))[0]
    assert np.sum(fringe_of(kernel, 2) >= 8000) < 40


@pytest.mark.parametrize("size", [15, 25])
def test_more_points_than_neighbors_are_no_fringe(default_kernels, size):
    """However many others there are: 25 are less than 1/200 of the mean cluster."""
    rng = np.random.RandomState(0)
    large = rng.normal(size=(12_000, 2))
    small = rng.normal([0.0, 30.0], 0.5, size=(size, 2))
    kernel = default_kernels(np.vstack([large, small]))[0]
    lost = np.sum(fringe_of(kernel, 2) >= 12_000)
    assert (lost == size) if size < 21 else (lost <= 1)
