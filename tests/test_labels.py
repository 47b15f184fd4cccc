import numpy as np
import pytest
from sklearn.cluster._spectral import cluster_qr
from sklearn.metrics import adjusted_rand_score

import cdsk
import reference
from cdsk._operators.dense import DenseKernel
from cdsk._spectral import assign_labels, cut_ratios
from cdsk._validation import LABEL_METHODS


def embedded(rng, n_clusters=4, noise=0.1):
    """A rotated embedding near the axes, with its labels."""
    labels = np.concatenate([np.arange(n_clusters), rng.integers(n_clusters, size=96)])
    rows = np.eye(n_clusters)[labels] + noise * rng.normal(
        size=(len(labels), n_clusters)
    )
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rotation = np.linalg.qr(rng.normal(size=(n_clusters, n_clusters)))[0]
    return np.ascontiguousarray((rows @ rotation).T), labels


@pytest.mark.parametrize("method", ["kmeans", "cluster_qr", "discretize"])
def test_labels_are_found_and_numbered_in_order(rng, method):
    embedding, expected = embedded(rng)
    labels = assign_labels(embedding, method, n_init=10, random_state=0)
    assert adjusted_rand_score(expected, labels) == 1
    # the first four points are of clusters 0, 1, 2, 3, in this order
    assert (labels == expected).all()


def test_cluster_qr_equals_scikit_learn(rng):
    # of unequal lengths, so that the pivots are not left to rounding
    embedding = embedded(rng, noise=0.4)[0] * rng.uniform(0.5, 1.0, size=100)
    labels = assign_labels(embedding, "cluster_qr", n_init=1, random_state=0)
    assert adjusted_rand_score(cluster_qr(embedding.T.copy()), labels) == 1


def test_auto_has_the_smallest_cut(rng):
    K = cdsk.gaussian_gram(rng.normal(size=(120, 2)), 0.5)
    kernel = DenseKernel(K, 1)
    embedding = np.ascontiguousarray(
        reference.embedding(K, np.full(120, 1 / 120), 1, 4)[0]
    )
    labels = {
        method: assign_labels(
            embedding, method, n_init=1, random_state=0, kernel=kernel
        )
        for method in LABEL_METHODS
    }
    cuts = {
        method: reference.normalized_cut(K, found) for method, found in labels.items()
    }
    assert cuts["auto"] == min(cuts.values())
    assert len(set(cuts.values())) > 1


def test_cut_ratios_by_hand():
    # two pairs of similarity 1 within and 0.5 between one point of each
    K = np.eye(4)
    K[0, 1] = K[1, 0] = K[2, 3] = K[3, 2] = 1.0
    K[1, 2] = K[2, 1] = 0.5
    kernel = DenseKernel(K, 1)
    for labels, expected in (([0, 0, 1, 1], [0.2, 0.2]), ([0, 1, 0, 1], [1, 1])):
        np.testing.assert_allclose(cut_ratios(kernel, np.array(labels)), expected)
    np.testing.assert_allclose(cut_ratios(kernel, np.full(4, 3)), [0])


@pytest.mark.parametrize("method", ["cluster_qr", "discretize"])
def test_rounding_of_the_embedding_changes_no_label(rng, method):
    # unit rows are equally long: which is the first pivot must not be left to rounding
    embedding = np.repeat(embedded(rng, noise=0.3)[0], 3, axis=1)
    labels = assign_labels(embedding, method, n_init=1, random_state=0)
    for _ in range(5):
        other = embedding * (1 + 1e-9 * rng.normal(size=embedding.shape))
        other /= np.linalg.norm(other, axis=0)
        found = assign_labels(other, method, n_init=1, random_state=0)
        assert (found == labels).all()


@pytest.mark.parametrize("method", ["cluster_qr", "discretize"])
def test_multiplicity_equals_repetition(rng, method):
    embedding, _ = embedded(rng, noise=0.5)
    times = rng.integers(1, 5, size=100) ** 3
    how = {"n_init": 1, "random_state": 0}
    labels = assign_labels(embedding, method, multiplicity=times.astype(float), **how)
    copies = np.repeat(embedding, times, axis=1)
    assert (assign_labels(copies, method, **how) == np.repeat(labels, times)).all()
    # and they matter
    assert (assign_labels(embedding, method, **how) != labels).any()
