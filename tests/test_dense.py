"""The kernel matrix in memory and its similarity, against the definitions."""

import numpy as np
import pytest

import cdsk
import reference
from cdsk._operators.base import NEGLIGIBLE_EDGE
from cdsk._operators.dense import DenseKernel, DenseSimilarity
from cdsk._operators.indefinite import is_semidefinite
from cdsk._rows import StoredRows, components


def problem(rng, dtype, n=70):
    K = cdsk.gaussian_gram(rng.normal(size=(n, 3)).astype(dtype), 1.0)
    penalty = 0.3 * n
    weights = np.minimum(rng.uniform(size=n), 0.9)
    weights[: n // 5] = 0
    weights /= weights.sum()
    weights = np.minimum(weights, 1 / penalty)
    return K, weights, penalty


def test_normalized_product_equals_reference(rng, dtype):
    K, weights, penalty = problem(rng, dtype)
    similarity = DenseSimilarity(DenseKernel(K, 2), weights, penalty)
    A = reference.normalized(K, weights, penalty)
    vectors = rng.normal(size=(3, len(K)))
    np.testing.assert_allclose(
        similarity.normalized_product(vectors), vectors @ A, atol=1e-13
    )
    np.testing.assert_allclose(
        similarity.degrees, reference.similarity(K, weights, penalty)[1], rtol=1e-12
    )


def test_operator_is_symmetric_and_fixes_the_root_of_the_degrees(rng, dtype):
    K, weights, penalty = problem(rng, dtype)
    similarity = DenseSimilarity(DenseKernel(K, 1), weights, penalty)
    u, v = rng.normal(size=(2, 1, len(K)))
    left = (u @ similarity.normalized_product(v).T).item()
    right = (v @ similarity.normalized_product(u).T).item()
    assert abs(left - right) < 1e-12
    root = np.sqrt(similarity.degrees)[np.newaxis]
    np.testing.assert_allclose(similarity.normalized_product(root), root, rtol=1e-11)


def test_degrees_keep_their_digits_beside_a_large_diagonal():
    # Two points at similarity 1e-40: their degree is far below the rounding of K_ii.
    K = np.array([[1.0, 1e-40], [1e-40, 1.0]])
    similarity = DenseSimilarity(DenseKernel(K, 1), np.array([0.5, 0.5]), 1.0)
    np.testing.assert_allclose(similarity.degrees, 2 * 0.75 * 1e-40, rtol=1e-14)
    assert not similarity.isolated.any()


def test_isolated_points_are_marked(rng):
    X = np.concatenate([rng.normal(size=(20, 2)), [[1e4, 0.0]]])
    similarity = DenseSimilarity(
        DenseKernel(cdsk.gaussian_gram(X, 1.0), 1), np.full(21, 1 / 21), 7.0
    )
    assert np.flatnonzero(similarity.isolated).tolist() == [20]
    count, label = similarity.components()
    assert count == 2
    assert label[20] != label[0]


def test_kernel_interface(rng):
    K = cdsk.gaussian_gram(rng.normal(size=(12, 2)), 1.0)
    kernel = DenseKernel(K, 1)
    assert kernel.n == 12
    assert (kernel.diagonal == 1).all()
    assert (kernel.row(3) == K[3]).all()
    np.testing.assert_allclose(kernel.row_sums, K.sum(axis=1) - 1, rtol=1e-14)


def test_nearest_far_from_the_origin(rng):
    # above 15 features scikit-learn's search expands the square, which loses these
    X = rng.normal(size=(40, 20)) + 1e8
    points, candidates = np.arange(20), np.arange(20, 40)
    exact = reference.squared_distances(X[points], X[candidates]).argmin(axis=1)
    similarity = DenseKernel(np.eye(40), 1, points=X).similarity(
        np.full(40, 1 / 40), 9.0
    )
    found = similarity.find_nearest(points, candidates)
    assert (found == candidates[exact]).all()


def test_nearest_by_distance_and_by_similarity(rng):
    X = np.array([[0.0], [100.0], [101.0], [350.0], [40.0]])
    K = cdsk.gaussian_gram(X, 60.0)
    points, candidates = np.array([3, 4]), np.array([0, 1, 2])
    for known in (X, None):
        similarity = DenseKernel(K, 1, known).similarity(np.full(5, 0.2), 1.0)
        assert similarity.find_nearest(points, candidates).tolist() == [2, 0]


@pytest.mark.parametrize("spread", [0.5, 5, 50])
def test_components_equal_reference(rng, dtype, spread):
    X = rng.normal(size=(80, 2)) * spread
    K = cdsk.gaussian_gram(X.astype(dtype), 1.0)
    weights = np.where(rng.uniform(size=80) < 0.5, 0.0, 1.0)
    weights /= weights.sum()
    penalty = 0.5 / weights.max()
    _, degrees = reference.similarity(K, weights, penalty)
    arguments = weights, penalty, degrees, NEGLIGIBLE_EDGE
    count, label = components(StoredRows(K), None, *arguments)
    expected = reference.components(K, weights, penalty, NEGLIGIBLE_EDGE)
    assert count == expected[0]
    pairs = set(zip(label.tolist(), expected[1].tolist(), strict=True))
    assert len(pairs) == count


def test_a_semi_definite_kernel_is_its_absolute_value(rng):
    kernel = DenseKernel(cdsk.gaussian_gram(rng.normal(size=(30, 2)), 1.0), 1)
    vectors = rng.normal(size=(2, 30))
    assert (kernel.absolute_product(vectors) == kernel.product(vectors)).all()
    assert (kernel.negative_diagonal == 0).all()
    assert (kernel.absolute_rows().row_array(4) == kernel.row(4)).all()
    assert kernel.n_negative == 0


def test_semi_definite_up_to_a_tolerance():
    for smallest, tolerance, expected in (
        (0.0, 0.0, True), (1.0, 0.0, True), (-1e-3, 1e-2, True), (-1e-3, 1e-4, False)
    ):  # fmt: skip
        assert is_semidefinite(np.diag([1.0, smallest]), tolerance) is expected
