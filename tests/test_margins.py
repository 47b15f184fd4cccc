"""Margins of the votes against their definition."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs

import cdsk
import reference
from cdsk import CDSK
from cdsk._neighbors import Neighbors
from cdsk._operators.dense import DenseKernel
from cdsk._operators.sparse import NeighborGraph
from cdsk._voting import (
    compute_margins,
    compute_new_margins,
    leave_one_out_votes,
    weighted_median,
)


def problem(rng, n=80, n_clusters=3):
    X = rng.normal(size=(n, 2))
    weights = rng.uniform(size=n) * (rng.uniform(size=n) < 0.6)
    labels = rng.integers(0, n_clusters, size=n)
    labels[:n_clusters] = np.arange(n_clusters)
    return X, labels, weights / weights.sum()


@pytest.mark.parametrize("n_clusters", [1, 2, 3, 7])
def test_margins_of_a_full_kernel_equal_the_definition(rng, dtype, n_clusters):
    X, labels, weights = problem(rng, n_clusters=n_clusters)
    K = cdsk.gaussian_gram(X.astype(dtype), 0.7)
    found, typicality, unit = compute_margins(
        leave_one_out_votes(DenseKernel(K, 2), labels, weights), labels
    )
    expected, total = reference.leave_one_out(K.astype(float), labels, weights)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert unit == pytest.approx(np.median(total), rel=1e-12)
    np.testing.assert_allclose(typicality * unit, total, rtol=1e-12)
    assert (np.abs(found) <= 1).all()


@pytest.mark.parametrize("bandwidth", [0.05, 0.5, 5.0])
def test_margins_of_a_truncated_kernel_equal_the_definition(rng, bandwidth):
    X, labels, weights = problem(rng)
    kernel = NeighborGraph(Neighbors(X, 6)).kernel(bandwidth, 1)
    found, typicality, unit = compute_margins(
        leave_one_out_votes(kernel, labels, weights), labels
    )
    expected, total = reference.leave_one_out(kernel.as_array(), labels, weights)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert unit == pytest.approx(np.median(total), rel=1e-12)
    np.testing.assert_allclose(typicality * unit, total, rtol=1e-12)
    assert (np.abs(found) <= 1).all()


def test_margin_is_zero_without_votes():
    X, labels = np.array([[0.0], [1.0], [1e4]]), np.array([0, 0, 1])
    K = cdsk.gaussian_gram(X, 1.0)
    margins, typicality, _ = compute_margins(
        leave_one_out_votes(DenseKernel(K, 1), labels, np.full(3, 1 / 3)), labels
    )
    assert margins.tolist() == [1.0, 1.0, 0.0]
    assert typicality.tolist() == [1.0, 1.0, 0.0]


def test_a_wrong_label_has_a_negative_margin():
    X, y = make_blobs(60, centers=[[0, 0], [9, 0]], random_state=0)
    K, wrong = cdsk.gaussian_gram(X, 1.0), y.copy()
    wrong[5] = 1 - wrong[5]
    votes = leave_one_out_votes(DenseKernel(K, 1), wrong, np.full(60, 1 / 60))
    margins, *_ = compute_margins(votes, wrong)
    assert margins[5] < -0.9
    assert np.delete(margins, 5).min() > 0


def test_margins_of_the_estimator(rng):
    X = make_blobs(200, centers=3, cluster_std=1.5, random_state=0)[0]
    model = CDSK(3, bandwidth=1.0, random_state=0).fit(X)
    K = reference.gaussian_gram(X, 1.0).astype(float)
    expected, total = reference.leave_one_out(K, model.labels_, model.weights_)
    np.testing.assert_allclose(model.margins_, expected, atol=1e-12)
    np.testing.assert_allclose(model.typicality_, total / np.median(total), rtol=1e-9)


def test_typicality_if_most_points_have_no_votes():
    X = np.array([[0.0], [1.0], [1e4], [2e4], [3e4]])
    K = cdsk.gaussian_gram(X, 1.0)
    labels = np.array([0, 0, 1, 1, 1])
    votes = leave_one_out_votes(DenseKernel(K, 1), labels, np.full(5, 0.2))
    _, typicality, _ = compute_margins(votes, labels)
    assert typicality.tolist() == [1.0, 1.0, 0.0, 0.0, 0.0]
    votes = leave_one_out_votes(DenseKernel(np.eye(5), 1), labels, np.full(5, 0.2))
    _, typicality, _ = compute_margins(votes, labels)
    assert typicality.tolist() == [0.0] * 5


@pytest.mark.parametrize("n_clusters", [1, 2, 3])
def test_new_points_have_the_votes_of_all(rng, n_clusters):
    votes = rng.uniform(size=(40, n_clusters))
    votes[0] = 0.0  # nobody's
    with np.errstate(divide="ignore"):
        margins, typicality = compute_new_margins(np.log(votes), np.log(0.3))
    second = np.sort(np.pad(votes, ((0, 0), (1, 0))), axis=1)[:, -2]
    total = votes.sum(axis=1)
    expected = (votes.max(axis=1) - second)[1:] / total[1:]
    np.testing.assert_allclose(margins, np.append(0.0, expected), atol=1e-12)
    np.testing.assert_allclose(typicality, total / 0.3, rtol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_weighted_median_is_the_median_of_copies(rng, n):
    for _ in range(20):
        values, times = rng.integers(0, 9, n).astype(float), rng.integers(0, 4, n)
        times[0] += 1
        expected = np.median(np.repeat(values, times))
        assert weighted_median(values, times.astype(float)) == expected
