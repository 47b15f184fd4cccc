import numpy as np

import cdsk
import reference
from cdsk._kernels.dense import DenseKernel
from cdsk._kernels.similarity import Similarity


def problem(rng, dtype, n=70):
    K = cdsk.gaussian_gram(rng.normal(size=(n, 3)).astype(dtype), 1.0)
    lam = 0.3 * n
    weights = np.minimum(rng.uniform(size=n), 0.9)
    weights[: n // 5] = 0
    weights /= weights.sum()
    weights = np.minimum(weights, 1 / lam)
    return K, weights, lam


def test_normalised_product_equals_reference(rng, dtype):
    K, weights, lam = problem(rng, dtype)
    similarity = Similarity(DenseKernel(K, 2), weights, lam)
    A = reference.normalised(K, weights, lam)
    columns = rng.normal(size=(3, len(K)))
    np.testing.assert_allclose(
        similarity.normalised_product(columns), columns @ A, atol=1e-13
    )
    np.testing.assert_allclose(
        similarity.degrees, reference.similarity(K, weights, lam)[1], rtol=1e-12
    )


def test_operator_is_symmetric_and_fixes_the_root_of_the_degrees(rng, dtype):
    K, weights, lam = problem(rng, dtype)
    similarity = Similarity(DenseKernel(K, 1), weights, lam)
    u, v = rng.normal(size=(2, 1, len(K)))
    left = (u @ similarity.normalised_product(v).T).item()
    right = (v @ similarity.normalised_product(u).T).item()
    assert abs(left - right) < 1e-12
    root = np.sqrt(similarity.degrees)[np.newaxis]
    np.testing.assert_allclose(similarity.normalised_product(root), root, rtol=1e-11)


def test_degrees_keep_their_digits_beside_a_large_diagonal():
    # Two points at similarity 1e-40: their degree is far below the rounding of K_ii.
    K = np.array([[1.0, 1e-40], [1e-40, 1.0]])
    similarity = Similarity(DenseKernel(K, 1), np.array([0.5, 0.5]), 1.0)
    np.testing.assert_allclose(similarity.degrees, 2 * 0.75 * 1e-40, rtol=1e-14)
    assert not similarity.isolated.any()


def test_isolated_points_are_marked(rng):
    X = np.concatenate([rng.normal(size=(20, 2)), [[1e4, 0.0]]])
    similarity = Similarity(
        DenseKernel(cdsk.gaussian_gram(X, 1.0), 1), np.full(21, 1 / 21), 7.0
    )
    assert np.flatnonzero(similarity.isolated).tolist() == [20]
    count, label = similarity.components(1e-13)
    assert count == 2
    assert label[20] != label[0]


def test_kernel_interface(rng):
    K = cdsk.gaussian_gram(rng.normal(size=(12, 2)), 1.0)
    kernel = DenseKernel(K, 1)
    assert kernel.n == 12
    assert (kernel.diagonal == 1).all()
    assert (kernel.row(3) == K[3]).all()
    assert (kernel.rows().row_array(3) == K[3]).all()
    np.testing.assert_allclose(kernel.row_sums, K.sum(axis=1) - 1, rtol=1e-14)


def test_nearest_far_from_the_origin(rng):
    # above 15 features scikit-learn's search expands the square, which loses these
    X = rng.normal(size=(40, 20)) + 1e8
    points, candidates = np.arange(20), np.arange(20, 40)
    exact = reference.squared_distances(X[points], X[candidates]).argmin(axis=1)
    found = DenseKernel(np.eye(40), 1, points=X).nearest(points, candidates)
    assert (found == candidates[exact]).all()


def test_nearest_by_distance_and_by_similarity(rng):
    X = np.array([[0.0], [100.0], [101.0], [350.0], [40.0]])
    K = cdsk.gaussian_gram(X, 60.0)
    points, candidates = np.array([3, 4]), np.array([0, 1, 2])
    by_distance = DenseKernel(K, 1, points=X).nearest(points, candidates)
    by_similarity = DenseKernel(K, 1).nearest(points, candidates)
    assert by_distance.tolist() == [2, 0]
    assert by_similarity.tolist() == [2, 0]
