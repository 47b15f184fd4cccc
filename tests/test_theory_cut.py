"""The multi-way Cheeger relation, and the proposition that the objective falls."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import circulant
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning

import cdsk
import reference
from cdsk import CDSK
from cdsk.theory import normalized_cut


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(3, 30), n_parts=st.integers(2, 6))
@settings(max_examples=100)
def test_cut_and_bound_equal_the_reference(seed, n, n_parts):
    rng = np.random.default_rng(seed)
    S = rng.uniform(size=(n, n)) ** 3
    S = S + S.T
    labels = rng.integers(0, n_parts, n)
    labels[:2] = [0, 1]
    cut = normalized_cut(S, labels)
    assert cut.value == pytest.approx(reference.normalized_cut(S, labels))
    S -= np.diag(np.diag(S))
    root = np.sqrt(S.sum(axis=1))
    laplacian = np.eye(n) - S / np.outer(root, root)
    smallest = np.linalg.eigvalsh(laplacian)[: len(np.unique(labels))]
    assert cut.lower_bound == pytest.approx(smallest.sum(), abs=1e-12)
    assert cut.lower_bound <= cut.value + 1e-12


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(10, 120),
    n_clusters=st.integers(2, 6),
    spread=st.floats(0.5, 4.0),
    lam=st.floats(0.05, 1.0),
    bandwidth=st.sampled_from(["neighbor", "std", "median", "local"]),
)
@settings(max_examples=100)
def test_fits_of_random_problems(seed, n, n_clusters, spread, lam, bandwidth):
    X = make_blobs(n, 2, centers=n_clusters, cluster_std=spread, random_state=seed)[0]
    model = CDSK(n_clusters, lam=lam, bandwidth=bandwidth, random_state=0, n_init=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        # points without similarity are warned of
        warnings.simplefilter("ignore", UserWarning)
        model.fit(X)
    # proposition CDSK-EM
    assert (np.diff(model.history_) < 0).all()
    assert len(np.unique(model.labels_)) == n_clusters
    # the spectrum bounds the cut of the returned labels from below
    K = cdsk.gaussian_gram(X, model.bandwidth_)
    S, degrees = cdsk.similarity_matrix(K, model.weights_, lam)
    if (np.bincount(model.labels_, weights=degrees) > 0).all():
        cut = normalized_cut(S, model.labels_)
        assert cut.lower_bound <= cut.value + 1e-10
        if (degrees > 1e-280).all():
            # residuals of the eigenvectors are at most 1e-6
            assert n_clusters - model.eigenvalues_.sum() == pytest.approx(
                cut.lower_bound, abs=1e-6 * n_clusters
            )


@pytest.mark.parametrize("n_parts", [2, 3, 5])
def test_separate_clusters_reach_the_bound(n_parts):
    S = np.kron(np.eye(n_parts), np.ones((4, 4)))
    cut = normalized_cut(S, np.repeat(np.arange(n_parts), 4))
    assert cut.value == 0
    assert cut.lower_bound == pytest.approx(0, abs=1e-14)


def test_no_constant_bounds_the_cut_by_the_spectrum():
    # Theorem multi-way-cheeger has no root: on a cycle of n points the best cut into
    # two is 4/n and the spectrum 1 - cos(2 pi / n)
    for n in (16, 64, 256):
        step = np.zeros(n)
        step[[1, -1]] = 1
        cut = normalized_cut(circulant(step), np.arange(n) < n // 2)
        assert cut.value == pytest.approx(4 / n)
        assert cut.lower_bound == pytest.approx(1 - np.cos(2 * np.pi / n))
        assert cut.value > cut.lower_bound * n / 5


def test_points_without_similarity_are_ignored():
    S = np.zeros((6, 6))
    S[1:5, 1:5] = np.ones((4, 4)) + np.kron(np.eye(2), np.ones((2, 2)))
    labels = np.array([1, 0, 0, 1, 1, 0])
    cut = normalized_cut(S, labels)
    assert cut == normalized_cut(S[1:5, 1:5], labels[1:5])
    with pytest.raises(ValueError, match="got none in cluster 2"):
        normalized_cut(S, [2, 0, 0, 1, 1, 0])


def test_invalid_input():
    with pytest.raises(ValueError, match="Negative values"):
        normalized_cut(-np.ones((2, 2)), [0, 1])
    with pytest.raises(ValueError, match="labels must have at least 2 classes"):
        normalized_cut(np.ones((2, 2)), [1, 1])
