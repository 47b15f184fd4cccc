import numpy as np
import pytest
from sklearn.cluster import SpectralClustering
from sklearn.datasets import make_circles
from sklearn.metrics import adjusted_rand_score

from cdsk import gaussian_gram
from cdsk._operators.dense import DenseKernel
from cdsk._spectral import spectral_partition


@pytest.fixture
def kernel():
    X, _ = make_circles(200, noise=0.04, factor=0.5, random_state=0)
    return DenseKernel(gaussian_gram(X, 0.1), 1)


def test_labels_are_those_of_scikit_learn(kernel):
    rng = np.random.RandomState(0)
    labels = spectral_partition(kernel, 2, rng, method="cluster_qr")[1]
    K = kernel.as_array().copy()
    np.fill_diagonal(K, 0.0)
    how = {"affinity": "precomputed", "assign_labels": "cluster_qr"}
    expected = SpectralClustering(2, **how, random_state=0).fit_predict(K)
    assert adjusted_rand_score(expected, labels) == 1


def test_eigenvalues_are_those_of_the_normalized_kernel(kernel):
    found, _ = spectral_partition(kernel, 3, np.random.RandomState(0))
    K = kernel.as_array().copy()
    np.fill_diagonal(K, 0.0)
    root = np.sqrt(K.sum(axis=1))
    expected = np.linalg.eigvalsh(K / np.outer(root, root))[:-4:-1]
    np.testing.assert_allclose(found.eigenvalues, expected, atol=1e-9)
