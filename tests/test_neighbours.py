"""Nearest neighbours against all distances; ties are compared by distance alone."""

import numpy as np
import pytest

import reference
from cdsk._kernels.neighbours import Neighbours, PointSearch, nearest_among
from cdsk._nearest import nearest

# Differences of float64 numbers are exact to 1 ulp of the result in the reference; the
# sum of d squares and a root lose d + 1 ulp.
RTOL = 1e-14


def cases():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(70, 3))
    return {
        "general": X,
        "one feature": X[:, :1].copy(),
        "many features": rng.normal(size=(70, 31)),
        "duplicates": np.repeat(X[:10], 7, axis=0),
        "some duplicates": np.concatenate([X, X[:20], X[:20]]),
        "a heap": np.concatenate([np.ones((20, 3)), X[:30]]),
        "ties": np.stack(np.meshgrid(*[np.arange(6.0)] * 2), axis=-1).reshape(-1, 2),
        "far from the origin": X + 1e7,
        "float32": X.astype(np.float32),
        "float32 far from the origin": (X + 1e4).astype(np.float32),
        "two points": X[:2],
        "three points": X[:3],
        "more than a chunk": rng.normal(size=(300, 17)),
        "whole numbers": rng.integers(0, 5, size=(80, 20)).astype(float),
    }


CASES = cases()


@pytest.fixture(params=CASES)
def X(request):
    return CASES[request.param]


def without_itself(X, k):
    distances = reference.squared_distances(X, X)
    np.fill_diagonal(distances, np.inf)
    return np.sqrt(np.sort(distances, axis=1)[:, :k]).astype(float)


@pytest.mark.parametrize("k", [1, 7, 20, 1000])
def test_neighbours_are_the_nearest_others(X, k):
    found = Neighbours(X, k)
    k = min(k, len(X) - 1)
    assert found.k == k
    assert found.indices.shape == found.distances.shape == (len(X), k)
    np.testing.assert_allclose(
        found.distances, without_itself(X, k), rtol=RTOL * X.shape[1]
    )
    exact = np.sqrt(reference.squared_distances(X, X)).astype(float)
    np.testing.assert_allclose(
        np.take_along_axis(exact, found.indices, axis=1), found.distances, rtol=1e-12
    )
    for i, row in enumerate(found.indices):
        assert i not in row
        assert len(set(row)) == k


def test_distances_are_the_same_from_both_ends(X):
    # also for odd numbers of features: the truncated kernel is exactly symmetric
    found = Neighbours(X, 1000)
    D = np.zeros((len(X), len(X)))
    np.put_along_axis(D, found.indices, found.distances, axis=1)
    assert (D == D.T).all()


def test_scale_is_the_distance_to_the_seventh_other(X):
    found = Neighbours(X, 20)
    k = min(7, len(X) - 1)
    expected = without_itself(X, k)[:, -1]
    np.testing.assert_allclose(found.own_scales, expected, rtol=1e-12)
    if (expected > 0).any():
        expected = np.where(expected > 0, expected, expected[expected > 0].min())
    np.testing.assert_allclose(found.scales, expected, rtol=1e-12)


def test_scales_do_not_depend_on_how_many_neighbours_were_asked_for(X):
    expected = Neighbours(X, 20)
    for k in (1, 3, 7):
        found = Neighbours(X, k)
        assert found.indices.shape == (len(X), min(k, len(X) - 1))
        np.testing.assert_array_equal(found.scales, expected.scales)
        np.testing.assert_array_equal(found.scales_of(X), expected.scales_of(X))


def test_old_points_asked_as_new_ones_keep_their_scales(X):
    found = Neighbours(X, 20)
    np.testing.assert_allclose(found.scales_of(X), found.scales, rtol=1e-12)


def test_scales_of_new_points(rng):
    X, new = rng.normal(size=(50, 3)), rng.normal(size=(9, 3))
    expected = reference.nearest(new, X, 7)[:, 6]
    np.testing.assert_allclose(Neighbours(X, 20).scales_of(new), expected, rtol=1e-13)


def test_new_points_in_a_heap_have_the_smallest_scale(rng):
    X = np.concatenate([np.zeros((20, 2)), rng.normal(size=(50, 2)) + 5])
    found = Neighbours(X, 20)
    assert (found.own_scales[:20] == 0).all()
    positive = found.own_scales[found.own_scales > 0]
    assert found.scales_of(np.zeros((1, 2)))[0] == positive.min()


def test_nearest_to_new_points_comes_in_order(X):
    k = min(5, len(X))
    new = X[::-1] * 1.001
    indices, distances = PointSearch(X).nearest_to(new, k)
    np.testing.assert_allclose(distances, reference.nearest(new, X, k), rtol=1e-12)
    exact = np.sqrt(reference.squared_distances(new, X)).astype(float)
    np.testing.assert_allclose(
        np.take_along_axis(exact, indices, axis=1), distances, rtol=1e-12
    )


def test_nearest_among_candidates(rng):
    X = rng.normal(size=(60, 2)) + 1e6
    points, candidates = np.arange(0, 60, 3), np.arange(1, 60, 3)
    distances = reference.squared_distances(X[points], X[candidates])
    expected = candidates[np.argmin(distances, axis=1)]
    assert (nearest_among(X, points, candidates) == expected).all()


def test_scales_of_outliers_are_kept_down(X):
    plain, robust = Neighbours(X, 5), Neighbours(X, 5, robust=True)
    np.testing.assert_array_equal(robust.own_scales, plain.own_scales)
    most = 2 * np.quantile(plain.own_scales, 0.75)
    if most == 0:  # of most points the neighbours are duplicates
        most = np.inf
    np.testing.assert_array_equal(robust.scales, np.minimum(plain.scales, most))
    # old points asked again, as long as nobody else is at their place
    if plain.own_scales.min() > 0 and plain.distances[:, 0].min() > 0:
        np.testing.assert_allclose(robust.scales_of(X), robust.scales, rtol=1e-12)


def test_a_sparse_cluster_keeps_its_scales(rng):
    dense, sparse = rng.normal(size=(60, 2)), 50 * rng.normal(size=(30, 2))
    X = np.concatenate([dense, sparse, [[1e4, 0], [0, 1e4]]])
    found = Neighbours(X, robust=True)
    assert (found.scales < found.own_scales).sum() <= 6
    assert (found.scales[-2:] < 0.05 * found.own_scales[-2:]).all()


def whole_numbers(rng, n=200, d=20):
    """Points of which many are at equal distances, all of them exact."""
    return rng.integers(0, 3, size=(n, d)).astype(float)


def test_of_points_at_equal_distances_the_first_ones_are_taken(rng, dtype):
    X = whole_numbers(rng).astype(dtype)
    squared = reference.squared_distances(X, X).astype(float)
    indices, _ = PointSearch(X).nearest_to(X, 9)
    expected = np.argsort(squared, axis=1, kind="stable")[:, :9]
    np.testing.assert_array_equal(indices, expected)
    np.fill_diagonal(squared, np.inf)
    expected = np.argsort(squared, axis=1, kind="stable")[:, :9]
    found = Neighbours(X, 9)
    np.testing.assert_array_equal(found.indices, expected)
    np.testing.assert_array_equal(
        found.distances, np.sqrt(np.take_along_axis(squared, expected, axis=1))
    )


@pytest.mark.parametrize("d", [2, 20])
def test_number_of_threads_changes_nothing(rng, d):
    X = whole_numbers(rng, 3000, d)
    one, two, three = (Neighbours(X, 20, n_threads=n) for n in (1, 2, 3))
    for other in (two, three):
        np.testing.assert_array_equal(other.indices, one.indices)
        np.testing.assert_array_equal(other.distances, one.distances)
        np.testing.assert_array_equal(
            other.scales_of(X[:99] + 0.25, n_threads=3), one.scales_of(X[:99] + 0.25)
        )


def test_points_at_infinite_distances_are_neighbours_too(rng):
    # squared distances overflow; nothing may be left unset
    X = rng.normal(size=(30, 9)) * np.where(np.arange(30) < 25, 1.0, 1e200)[:, None]
    indices, distances = np.full((30, 29), -1), np.empty((30, 29))
    nearest(X, X, True, indices, distances, 1)
    for i, row in enumerate(indices):
        assert sorted(row) == [j for j in range(30) if j != i]
    assert np.isfinite(distances[:25, :24]).all()
    assert np.isinf(distances[:25, 24:]).all()


@pytest.mark.parametrize("d", [2, 20])
@pytest.mark.parametrize("unit", [1e155, 1e-160, 1e-300])
def test_data_whose_squared_distances_are_no_ordinary_numbers_are_refused(rng, d, unit):
    with pytest.raises(ValueError, match=r"X must (vary by|hold coord).*; got"):
        Neighbours(unit * rng.normal(size=(30, d)))


@pytest.mark.parametrize("d", [3, 9])
def test_order_of_the_array_in_memory_does_not_matter(rng, d):
    X = rng.normal(size=(30, d))
    np.testing.assert_array_equal(
        Neighbours(np.asfortranarray(X)).distances, Neighbours(X).distances
    )


def test_where_all_are_duplicates_distinct_points_count(rng):
    points = rng.normal(size=(30, 2))
    X = np.repeat(points, 9, axis=0)
    found, distinct = Neighbours(X, 8), Neighbours(points, 8)
    assert found.k == 72
    np.testing.assert_array_equal(found.own_scales, np.repeat(distinct.own_scales, 9))
    np.testing.assert_array_equal(found.scales_of(X), found.scales)
    # 8 copies, then all 9 of each neighbour; of the last one there are 8
    np.testing.assert_array_equal(found.distances[:, :8], 0)
    np.testing.assert_array_equal(
        found.distances[:, 8::9], np.repeat(distinct.distances, 9, axis=0)
    )


@pytest.mark.parametrize("d", [3, 9])
def test_no_new_points_have_no_neighbours(rng, d):
    X = rng.normal(size=(30, d))
    indices, distances = PointSearch(X).nearest_to(X[:0], 4)
    assert indices.shape == distances.shape == (0, 4)


def test_interrupt_ends_a_long_search(rng, interrupt_after):
    X = rng.normal(size=(20_000, 300))
    with pytest.raises(KeyboardInterrupt), interrupt_after(0.1):
        Neighbours(X, 7)
