"""Nearest neighbors against all distances, and where they are exact, ties too."""

import pickle
from types import SimpleNamespace

import numpy as np
import pytest

import reference
from cdsk._nearest import MAX_POINTS, Tiles, check_n_points, order_points
from cdsk._neighbors import (
    NeighborIndex,
    Neighbors,
    SlowSearchNotice,
    find_nearest,
)

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
def test_neighbors_are_the_nearest_others(X, k):
    found = Neighbors(X, k)
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
    found = Neighbors(X, 1000)
    D = np.zeros((len(X), len(X)))
    np.put_along_axis(D, found.indices, found.distances, axis=1)
    assert (D == D.T).all()


def test_scale_is_the_distance_to_the_seventh_other(X):
    found = Neighbors(X, 20)
    k = min(7, len(X) - 1)
    expected = without_itself(X, k)[:, -1]
    np.testing.assert_allclose(found.kth_distances, expected, rtol=1e-12)
    if (expected > 0).any():
        expected = np.where(expected > 0, expected, expected[expected > 0].min())
    np.testing.assert_allclose(found.scales, expected, rtol=1e-12)


def test_scales_do_not_depend_on_how_many_neighbors_were_asked_for(X):
    expected = Neighbors(X, 20)
    for k in (1, 3, 7):
        found = Neighbors(X, k)
        assert found.indices.shape == (len(X), min(k, len(X) - 1))
        np.testing.assert_array_equal(found.scales, expected.scales)
        np.testing.assert_array_equal(found.local_scales(X), expected.local_scales(X))


def test_training_points_keep_their_scales_as_new_points(X):
    found = Neighbors(X, 20)
    np.testing.assert_allclose(found.local_scales(X), found.scales, rtol=1e-12)


def test_scales_of_new_points(rng):
    X, new = rng.normal(size=(50, 3)), rng.normal(size=(9, 3))
    expected = reference.nearest(new, X, 7)[:, 6]
    np.testing.assert_allclose(Neighbors(X, 20).local_scales(new), expected, rtol=1e-13)


def test_new_points_among_duplicates_have_the_smallest_scale(rng):
    X = np.concatenate([np.zeros((20, 2)), rng.normal(size=(50, 2)) + 5])
    found = Neighbors(X, 20)
    assert (found.kth_distances[:20] == 0).all()
    positive = found.kth_distances[found.kth_distances > 0]
    assert found.local_scales(np.zeros((1, 2)))[0] == positive.min()


def test_kneighbors_of_new_points_are_sorted(X):
    k = min(5, len(X))
    new = X[::-1] * 1.001
    distances, indices = NeighborIndex(X).kneighbors(new, k)
    np.testing.assert_allclose(distances, reference.nearest(new, X, k), rtol=1e-12)
    exact = np.sqrt(reference.squared_distances(new, X)).astype(float)
    np.testing.assert_allclose(
        np.take_along_axis(exact, indices, axis=1), distances, rtol=1e-12
    )


def test_find_nearest_candidate(rng):
    X = rng.normal(size=(60, 2)) + 1e6
    points, candidates = np.arange(0, 60, 3), np.arange(1, 60, 3)
    distances = reference.squared_distances(X[points], X[candidates])
    expected = candidates[np.argmin(distances, axis=1)]
    assert (find_nearest(X, points, candidates) == expected).all()


def test_robust_scales_cap_outliers(X):
    plain, robust = Neighbors(X, 5), Neighbors(X, 5, robust=True)
    np.testing.assert_array_equal(robust.kth_distances, plain.kth_distances)
    most = 2 * np.quantile(plain.kth_distances, 0.75)
    if most == 0:  # of most points the neighbors are duplicates
        most = np.inf
    np.testing.assert_array_equal(robust.scales, np.minimum(plain.scales, most))
    # old points asked again, as long as nobody else is at their place
    if plain.kth_distances.min() > 0 and plain.distances[:, 0].min() > 0:
        np.testing.assert_allclose(robust.local_scales(X), robust.scales, rtol=1e-12)


def test_a_sparse_cluster_keeps_its_scales(rng):
    dense, sparse = rng.normal(size=(60, 2)), 50 * rng.normal(size=(30, 2))
    X = np.concatenate([dense, sparse, [[1e4, 0], [0, 1e4]]])
    found = Neighbors(X, robust=True)
    assert (found.scales < found.kth_distances).sum() <= 6
    assert (found.scales[-2:] < 0.05 * found.kth_distances[-2:]).all()


def whole_numbers(rng, n=200, d=20):
    """Points of which many are at equal distances, all of them exact."""
    return rng.integers(0, 3, size=(n, d)).astype(float)


def test_of_points_at_equal_distances_the_first_ones_are_taken(rng, dtype):
    X = whole_numbers(rng).astype(dtype)
    squared = reference.squared_distances(X, X).astype(float)
    _, indices = NeighborIndex(X).kneighbors(X, 9)
    expected = np.argsort(squared, axis=1, kind="stable")[:, :9]
    np.testing.assert_array_equal(indices, expected)
    np.fill_diagonal(squared, np.inf)
    expected = np.argsort(squared, axis=1, kind="stable")[:, :9]
    found = Neighbors(X, 9)
    np.testing.assert_array_equal(found.indices, expected)
    np.testing.assert_array_equal(
        found.distances, np.sqrt(np.take_along_axis(squared, expected, axis=1))
    )


@pytest.mark.parametrize("d", [2, 20, 80])
def test_number_of_threads_changes_nothing(rng, d):
    X = whole_numbers(rng, 3000, d)
    one, two, three = (Neighbors(X, 20, n_threads=n) for n in (1, 2, 3))
    for other in (two, three):
        np.testing.assert_array_equal(other.indices, one.indices)
        np.testing.assert_array_equal(other.distances, one.distances)
        np.testing.assert_array_equal(
            other.local_scales(X[:99] + 0.25, n_threads=3),
            one.local_scales(X[:99] + 0.25),
        )


# Points in several groups of tiles, of which boxes leave out much, little or nothing;
# from 64 features on each pair is taken once.
def large_cases():
    rng = np.random.default_rng(1)
    blobs = rng.normal(size=(1500, 10)) + 20 * rng.integers(0, 4, size=(1500, 1))
    near = 1e-3 * rng.normal(size=(500, 10))
    return {
        "one feature": rng.normal(size=(1300, 1)),
        "plane": rng.normal(size=(1500, 2)),
        "blobs": blobs,
        "blobs in many features": np.tile(blobs, 8),
        "middle": rng.normal(size=(1200, 12)),
        "many features": rng.normal(size=(1000, 70)),
        "more than one sum": rng.normal(size=(900, 200)),
        "float32": rng.normal(size=(1000, 90)).astype(np.float32),
        "far from the origin": rng.normal(size=(1000, 5)) + 1e8,
        "many features far from the origin": rng.normal(size=(900, 64)) + 1e8,
        "far from each other": np.concatenate([near, near[::-1] * 1.5 + 1e6]),
        "an outlier": np.concatenate(
            [rng.normal(size=(800, 70)), np.full((1, 70), 1e30)]
        ),
        "tiny": 1e-120 * rng.normal(size=(900, 64)),
        "huge": 1e140 * rng.normal(size=(900, 64)),
        "of all units": 10.0 ** rng.uniform(-60, 60, size=(900, 3)),
        "grid": rng.integers(0, 12, size=(1500, 2)).astype(float),
        "grid in many features": rng.integers(0, 2, size=(1200, 64)).astype(float),
        "grid in float32": rng.integers(0, 5, size=(1200, 3)).astype(np.float32),
        "equal points": np.ones((900, 3)),
        "equal points in many features": np.ones((900, 64)),
    }


LARGE = large_cases()


def by_brute_force(A, X, k, itself):
    """Squared distances of the k nearest, and their order, the first of equal ones."""
    squared = np.array([np.square(X.astype(float) - a).sum(axis=1) for a in A])
    if itself:
        np.fill_diagonal(squared, np.inf)
    order = np.argsort(squared, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(squared, order, axis=1)


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("itself", [True, False])
def test_search_equals_brute_force(name, itself):
    X = LARGE[name]
    k = 20 if "equal" in name else min(len(X) - 1, 25)
    new = X if itself or "grid" in name or "equal" in name else X[::3] * 1.0001
    found = NeighborIndex(X).kneighbors(None if itself else new, k, n_threads=2)
    order, squared = by_brute_force(new, X, k, itself)
    np.testing.assert_allclose(found[0], np.sqrt(squared), rtol=1e-13)
    if "grid" in name or "equal" in name:
        np.testing.assert_array_equal(found[1], order)
    else:
        # rounding may exchange two that are as far but for the last digit
        exchanged = found[1] != order
        assert exchanged.mean() < 1e-3
        i = np.nonzero(exchanged)[0]
        distances = np.linalg.norm(
            X[found[1][exchanged]] - new[i].astype(float), axis=1
        )
        np.testing.assert_allclose(distances, found[0][exchanged], rtol=1e-13)


@pytest.mark.parametrize("name", ["plane", "many features"])
def test_all_others_in_order(name):
    X = LARGE[name][:700]
    distances, indices = NeighborIndex(X).kneighbors(None, len(X) - 1)
    order, squared = by_brute_force(X, X, len(X) - 1, True)
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_allclose(distances, np.sqrt(squared), rtol=1e-13)


@pytest.mark.parametrize("name", ["blobs", "blobs in many features", "grid", "float32"])
def test_results_do_not_depend_on_the_order_of_the_points(rng, name):
    # other tiles, other boxes, other products: the same neighbors to the bit
    X = LARGE[name]
    shuffled = rng.permutation(len(X))
    distances, _ = NeighborIndex(X).kneighbors(None, 15)
    index = NeighborIndex(X[shuffled])
    np.testing.assert_array_equal(index.kneighbors(None, 15)[0], distances[shuffled])
    np.testing.assert_array_equal(index.kneighbors(X, 16)[0][:, 1:], distances)


def test_new_points_in_chunks_and_another_dtype(rng, monkeypatch):
    monkeypatch.setattr("cdsk._neighbors._CHUNK_SIZE", 0)
    monkeypatch.setattr("cdsk._neighbors._MIN_CHUNK_ROWS", 7)
    X, new = rng.normal(size=(300, 5)).astype(np.float32), rng.normal(size=(100, 5))
    distances, indices = NeighborIndex(X).kneighbors(new, 4)
    order, squared = by_brute_force(new, X, 4, False)
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_allclose(distances, np.sqrt(squared), rtol=1e-14)


@pytest.mark.parametrize("scale", [1.0, 1e140])
def test_new_points_very_far_away(rng, scale):
    X = rng.normal(size=(500, 6))
    new = scale * 1e8 * rng.normal(size=(60, 6))
    distances, _ = NeighborIndex(X).kneighbors(new, 3)
    _, squared = by_brute_force(new, X, 3, False)
    np.testing.assert_allclose(distances, np.sqrt(squared), rtol=1e-14)


def test_order_of_points_is_a_permutation_of_compact_tiles(rng):
    X = rng.uniform(size=(5000, 2))
    order = np.empty(5000, dtype=np.int32)
    order_points(X, order)
    np.testing.assert_array_equal(np.sort(order), np.arange(5000))
    tiles = [X[order[i : i + 48]] for i in range(0, 5000, 48)]
    areas = [np.prod(np.ptp(tile, axis=0)) for tile in tiles]
    # tiles of the square do not overlap
    assert 0.3 < sum(areas) < 1.0


@pytest.mark.parametrize("d", [2, 70])
def test_progress_is_reported(rng, d):
    shares = []
    index = NeighborIndex(rng.normal(size=(3000, d)))
    index.kneighbors(None, 5, callback=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_a_slow_search_is_reported_once_with_the_time_left(monkeypatch, clock):
    monkeypatch.setattr("cdsk._neighbors.time", clock)
    lines = []
    progress = SimpleNamespace(write=lines.append, update=print)
    notice = SlowSearchNotice(progress, np.empty((200, 3)))
    for clock.now, fraction in ((1.0, 0.01), (3.0, 0.02), (4.0, 0.03)):
        notice(fraction)
    assert len(lines) == 1
    assert lines[0].endswith("about 147 s more")


@pytest.mark.parametrize("approximate, is_named", [(30.0, True), (50.0, False)])
def test_a_slow_search_names_one_that_saves_a_minute(
    monkeypatch, clock, approximate, is_named
):
    monkeypatch.setattr("cdsk._neighbors.time", clock)
    monkeypatch.setattr("cdsk._neighbors.estimate_seconds", lambda *_: approximate)
    lines = []
    progress = SimpleNamespace(write=lines.append, update=print)
    notice = SlowSearchNotice(progress, np.broadcast_to(0.0, (10**6, 100)))
    clock.now = 5.0
    notice(0.05)  # 95 s more
    assert len(lines) == 1
    assert ('neighbors="approximate"' in lines[0]) is is_named


def test_a_fast_search_is_not_reported(monkeypatch, clock):
    monkeypatch.setattr("cdsk._neighbors.time", clock)
    lines = []
    progress = SimpleNamespace(write=lines.append, update=print)
    notice = SlowSearchNotice(progress, np.empty((200, 3)))
    for clock.now, fraction in ((3.0, 0.5), (4.0, 0.6)):
        notice(fraction)
    assert lines == []


def test_search_survives_pickling(rng):
    X = rng.normal(size=(200, 3))
    found = Neighbors(X, 9)
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(
        again.local_scales(X[:9] + 1), found.local_scales(X[:9] + 1)
    )


def test_search_is_refused_where_there_is_no_memory(rng, limit_memory):
    limit_memory(10**4)
    with pytest.raises(MemoryError, match=r"neighbors.*needs"):
        Neighbors(rng.normal(size=(500, 9)), 7)


def test_points_at_infinite_distances_are_neighbors_too(rng):
    # squared distances overflow; nothing may be left unset
    X = rng.normal(size=(30, 9)) * np.where(np.arange(30) < 25, 1.0, 1e200)[:, None]
    indices, distances = np.full((30, 29), -1, dtype=np.int32), np.empty((30, 29))
    Tiles(X).nearest_others(indices, distances, 1)
    for i, row in enumerate(indices):
        assert sorted(row) == [j for j in range(30) if j != i]
    assert np.isfinite(distances[:25, :24]).all()
    assert np.isinf(distances[:25, 24:]).all()


@pytest.mark.parametrize("d", [2, 20])
@pytest.mark.parametrize("unit", [1e155, 1e-160, 1e-300])
def test_data_whose_squared_distances_are_no_ordinary_numbers_are_refused(rng, d, unit):
    with pytest.raises(ValueError, match=r"X must (vary by|hold coord).*; got"):
        Neighbors(unit * rng.normal(size=(30, d)))


@pytest.mark.parametrize("d", [3, 9])
def test_order_of_the_array_in_memory_does_not_matter(rng, d):
    X = rng.normal(size=(30, d))
    np.testing.assert_array_equal(
        Neighbors(np.asfortranarray(X)).distances, Neighbors(X).distances
    )


@pytest.mark.parametrize("d", [3, 9])
def test_no_new_points_have_no_neighbors(rng, d):
    X = rng.normal(size=(30, d))
    distances, indices = NeighborIndex(X).kneighbors(X[:0], 4)
    assert indices.shape == distances.shape == (0, 4)


@pytest.mark.parametrize(
    ("n", "d", "interval"), [(2000, 300, 7e6), (3000, 40, 2e6), (3000, 3, 1e5)]
)
def test_interrupt_ends_a_long_search(rng, check_interruptible, n, d, interval):
    X = rng.normal(size=(n, d))
    # the work of a strip is known when it is done: up to twice as much as expected
    check_interruptible(lambda: Neighbors(X, 7), interval=interval, step=interval)


def test_more_points_than_int32_can_index_are_refused():
    # an array that claims 2**31 rows and has no memory for them
    X = np.lib.stride_tricks.as_strided(np.zeros(1), (2**31, 1), (8, 8))
    assert X.flags.c_contiguous
    with pytest.raises(ValueError, match=r"at most 2147483647 points; got 2147483648"):
        Tiles(X)
    with pytest.raises(ValueError, match="at most 2147483647 points"):
        order_points(X, np.empty(1, np.int32))
    result = np.empty((1, 1), np.int32), np.empty((1, 1))
    with pytest.raises(ValueError, match="at most 2147483647 points"):
        Tiles(np.zeros((2, 1))).nearest_to(X, *result, 1)
    check_n_points(MAX_POINTS)
    with pytest.raises(ValueError, match="at most 2147483647 points"):
        check_n_points(MAX_POINTS + 1)
