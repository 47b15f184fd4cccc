# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the data and points of a fit."""

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.metrics import adjusted_rand_score

from cdsk import CDSK
from cdsk._points import Points


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_points_are_rows_in_another_order(dtype):
    X = np.random.default_rng(0).normal(size=(500, 3)).astype(dtype)
    points = Points.near_together(X)
    assert points.X.dtype == dtype
    np.testing.assert_array_equal(np.sort(points.row_of), np.arange(500))
    np.testing.assert_array_equal(points.X, points.from_rows(X))
    np.testing.assert_array_equal(points.to_rows(points.X), X)


def test_neighbours_come_near_each_other():
    X = np.random.default_rng(0).normal(size=(5000, 2))
    points = Points.near_together(X)

    def step(X):
        return np.median(np.linalg.norm(np.diff(X, axis=0), axis=1))

    assert step(points.X) < 0.1 * step(X)


def test_given_matrices_stay_as_they_are():
    matrix = np.random.default_rng(0).normal(size=(30, 30))
    points = Points.as_given(matrix)
    assert points.X is matrix
    np.testing.assert_array_equal(points.from_rows(matrix), matrix)


@pytest.fixture(scope="module")
def fitted():
    X, _ = make_moons(400, noise=0.06, random_state=0)
    return X, CDSK(2, qp_tol=1e-8, random_state=0).fit(X)


def test_a_fit_speaks_of_rows(fitted):
    """What it says of a row belongs to that row, wherever the row stands."""
    X, model = fitted
    shuffled = np.random.default_rng(1).permutation(len(X))
    other = CDSK(2, qp_tol=1e-8, random_state=0).fit(X[shuffled])
    assert adjusted_rand_score(model.labels_[shuffled], other.labels_) == 1.0
    assert other.labels_[0] == 0  # clusters are numbered as their rows come
    np.testing.assert_allclose(other.bandwidth_, model.bandwidth_[shuffled])
    for name in ("weights_", "typicality_", "margins_"):
        ours, theirs = getattr(model, name)[shuffled], getattr(other, name)
        np.testing.assert_allclose(theirs, ours, atol=1e-3 * ours.max(), err_msg=name)


def test_first_weights_are_those_of_rows():
    X, _ = make_moons(400, noise=0.06, random_state=0)
    first = np.where(X[:, 0] > 0.5, 3.0, 1.0)
    first /= first.sum()
    model = CDSK(2, init=first, bandwidth=0.3, max_iter=0, random_state=0).fit(X)
    np.testing.assert_allclose(model.weights_, first)
