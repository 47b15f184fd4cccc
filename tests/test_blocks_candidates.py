import numpy as np
import pytest

from cdsk._preprocessing import Representation
from cdsk.blocks._gram import compute_gram
from cdsk.blocks._landmark_kernels import LandmarkGraph
from cdsk.blocks._landmarks import N_NEAREST, Landmarks
from cdsk.blocks._predictor import LandmarkPredictor

FACTOR = 0.5


@pytest.fixture
def graph(rng):
    landmarks = Landmarks(rng.normal(size=(30, 2)))
    gram = compute_gram(
        rng.normal(size=(400, 2)), Representation(), landmarks, [FACTOR]
    )
    counts = np.maximum(gram.counts, 1)
    return LandmarkGraph(landmarks, gram.matrices[0], FACTOR, counts, 1)


def test_kernel_is_the_gram_matrix(graph, rng):
    kernel, G = graph.kernel(), graph.gram.toarray()
    K = G / np.diagonal(G).mean()
    np.testing.assert_allclose(kernel.as_array(), K, rtol=1e-14)
    np.testing.assert_allclose(kernel.row(3), K[3], rtol=1e-14)
    vectors = rng.normal(size=(4, 30))
    rest = K - np.diag(np.diagonal(K))
    np.testing.assert_allclose(kernel.product(vectors), vectors @ rest, atol=1e-13)
    assert np.linalg.eigvalsh(kernel.as_array()).min() > -1e-12


def test_the_gram_matrix_is_not_modified(graph):
    # the kernel of the winner is computed again
    before = graph.gram.toarray()
    graph.kernel()
    assert (graph.gram.toarray() == before).all()


def test_votes(graph, rng):
    X = rng.normal(size=(50, 2))
    labels = rng.integers(0, 3, size=30)
    votes = graph.votes(labels, np.ones(30), 4)
    indices, distances = graph.landmarks.nearest(X)
    z = graph.landmarks.weights(indices, distances, FACTOR)
    expected = np.zeros((50, 4))
    for i in range(50):
        for u, value in zip(indices[i, :N_NEAREST], z[i], strict=True):
            expected[i, labels[u]] += value / 2**15
    found = votes.log_votes(X)
    np.testing.assert_allclose(np.exp(found), expected, rtol=1e-14)
    assert np.isneginf(found[:, 3]).all()
    # the share of a cluster in the votes is the mean of what is 1 in it
    ones = np.eye(4)[labels]
    shares = expected / expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(votes.average(X, ones), shares, rtol=1e-13)


def test_predictor_transforms_rows(graph, rng):
    X = rng.normal(size=(50, 2)) * [1, 1000]
    view = Representation.fit(X, "standardize")
    votes = graph.votes(rng.integers(0, 3, size=30), np.ones(30), 3)
    found = LandmarkPredictor(view, votes, np.zeros((30, 3))).decision_function(X)
    assert (found == votes.log_votes(view.transform(X))).all()
