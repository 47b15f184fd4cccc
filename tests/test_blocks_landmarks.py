import pickle

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from cdsk.blocks._landmarks import (
    FIXED_POINT_ONE,
    N_NEAREST,
    Landmarks,
    place_landmarks,
)


def reference_weights(X, U, factor):
    """Return dense Z (n, m), from all distances."""
    between = np.sort(cdist(U, U), axis=1)
    own = between[:, 7]
    scales = np.minimum(own, 2 * np.quantile(own, 0.75))
    D = cdist(X, U)
    Z = np.zeros(D.shape, dtype=np.int64)
    for i, row in enumerate(D):
        order = np.argsort(row, kind="stable")
        scale = min(row[order[6]], scales.max())
        near = order[:N_NEAREST]
        z = np.exp(-(row[near] ** 2) / (2 * factor**2 * scale * scales[near]))
        Z[i, near] = np.rint(FIXED_POINT_ONE * z / z.sum())
    return Z


def reference_seeds(X, m, rng):
    """Return indices of seeds; m is a multiple of five."""
    chosen = list(range(m // 5))
    for _ in range(4):
        D = cdist(X, X[chosen]).min(axis=1)
        with np.errstate(divide="ignore"):
            keys = rng.exponential(size=len(X)) / D**2
        chosen += np.argsort(keys)[: m // 5].tolist()
    return chosen


def reference_kmeans(X, centers):
    for _ in range(5):
        nearest = np.argmin(cdist(X, centers), axis=1)
        for j in np.unique(nearest):
            centers[j] = X[nearest == j].mean(axis=0)
    return centers


@pytest.mark.parametrize("factor", [1.0, 0.5, 0.25])
def test_weights(rng, factor):
    X, U = rng.normal(size=(200, 3)), rng.normal(size=(40, 3))
    landmarks = Landmarks(U)
    indices, distances = landmarks.nearest(X)
    z = landmarks.weights(indices, distances, factor)
    assert z.dtype == np.int64
    found = np.zeros((200, 40), dtype=np.int64)
    np.put_along_axis(found, indices[:, :N_NEAREST].astype(int), z, axis=1)
    expected = reference_weights(X, U, factor)
    # the last bit of exp may change the rounding
    assert np.abs(found - expected).max() <= 1
    assert (found != expected).mean() < 1e-3
    assert np.abs(z.sum(axis=1) - FIXED_POINT_ONE).max() <= N_NEAREST / 2


def test_weights_of_a_distant_point(rng):
    landmarks = Landmarks(rng.normal(size=(30, 2)))
    z = landmarks.weights(*landmarks.nearest([[1e6, 0.0]]), 0.25)
    assert abs(z.sum() - FIXED_POINT_ONE) <= 2


def test_weights_of_a_landmark(rng):
    U = rng.normal(size=(30, 2))
    landmarks = Landmarks(U)
    indices, distances = landmarks.nearest(U)
    z = landmarks.weights(indices, distances, 0.25)
    assert (indices[:, 0] == np.arange(30)).all()
    assert (z.argmax(axis=1) == 0).all()


def test_few_landmarks(rng):
    landmarks = Landmarks(rng.normal(size=(3, 2)))
    indices, distances = landmarks.nearest(rng.normal(size=(10, 2)))
    assert indices.shape == (10, 3)
    assert landmarks.weights(indices, distances, 1.0).shape == (10, 3)


def place(X, m, method="kmeans", n_threads=1):
    return place_landmarks(X, m, method, np.random.RandomState(0), n_threads)


def test_kmeans(rng):
    X = rng.normal(size=(500, 4))
    first = reference_seeds(X, 30, np.random.RandomState(0))
    found = place(X, 30)
    np.testing.assert_allclose(found, reference_kmeans(X, X[first]), rtol=1e-12)
    assert (place(X, 30, n_threads=2) == found).all()
    assert (place(X, 30, "uniform") == X[:30]).all()


def test_distant_rows_have_landmarks(rng):
    # 5 rows of 5000, which a uniform choice of 50 would miss
    X = rng.normal(size=(5000, 3))
    X[4000:4005] += 100.0
    assert (place(X, 50)[:, 0] > 50).any()
    assert not (place(X, 50, "uniform")[:, 0] > 50).any()


@pytest.mark.parametrize("m", [2, 3, 4, 7, 299])
def test_any_number_of_landmarks(rng, m):
    assert len(place(rng.normal(size=(300, 3)), m)) == m


def test_landmarks_are_distinct(rng):
    X = rng.integers(0, 2, size=(300, 3)).astype(float)
    for method in ("kmeans", "uniform"):
        found = place(X, 50, method)
        assert len(np.unique(found, axis=0)) == len(found) == 8
    X = rng.integers(0, 9, size=(300, 2)).astype(float)
    found = place(X, 50)
    assert len(np.unique(found, axis=0)) == len(found)


def test_pickle(rng):
    landmarks = Landmarks(rng.normal(size=(30, 2)))
    X = rng.normal(size=(100, 2))
    before = landmarks.nearest(X)
    after = pickle.loads(pickle.dumps(landmarks)).nearest(X)
    assert all((a == b).all() for a, b in zip(before, after, strict=True))
