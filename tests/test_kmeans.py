"""k-means in compiled code, against scikit-learn and a plain version of its starts."""

import numpy as np
import pytest
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.metrics import adjusted_rand_score

from cdsk import _kmeans
from cdsk._spectral import kmeans

# points: within a block, its end and a part of the next, several
SIZES = [7, 1024, 1031, 5000]


def data(rng, n, d=3):
    """Points (d, n), as the compiled code takes them, and weights."""
    return rng.normal(size=(d, n)), rng.uniform(0.1, 2.0, size=n)


def seed(points, weights, c, uniforms):
    return _kmeans.seed_centers(points, weights, c, uniforms)


def lloyd(points, weights, first, tol=0.0, n_threads=1):
    return _kmeans.lloyd(points, weights, first, tol, n_threads)


def n_draws(c):
    return 1 + (c - 1) * (2 + int(np.log(c)))


def inertia(points, weights, labels, centers):
    return np.sum(weights * np.sum((points - centers[labels].T) ** 2, axis=0))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("c", [1, 2, 6])
@pytest.mark.parametrize("tol", [0.0, 1e-2])
def test_iterations_equal_those_of_scikit_learn(rng, n, c, tol):
    points, weights = data(rng, n)
    first = points[:, :c].T.copy()
    labels, centers, found = lloyd(points, weights, first, tol)
    # its tolerance is relative to the mean variance
    relative = tol / np.mean(np.var(points, axis=1))
    expected = KMeans(c, init=first, n_init=1, tol=relative)
    expected.fit(points.T.copy(), sample_weight=weights)
    assert (labels == expected.labels_).all()
    np.testing.assert_allclose(centers, expected.cluster_centers_, atol=1e-12)
    assert found == pytest.approx(expected.inertia_)
    assert found == pytest.approx(inertia(points, weights, labels, centers))


@pytest.mark.parametrize("n", SIZES)
def test_result_is_a_fixed_point(rng, n):
    points, weights = data(rng, n)
    labels, centers, found = lloyd(points, weights, points[:, :5].T.copy())
    squares = ((points[:, np.newaxis] - centers.T[:, :, np.newaxis]) ** 2).sum(axis=0)
    assert (labels == np.argmin(squares, axis=0)).all()
    for j, center in enumerate(centers):
        mean = np.average(points[:, labels == j], axis=1, weights=weights[labels == j])
        np.testing.assert_allclose(center, mean, atol=1e-12)
    again = lloyd(points, weights, centers)
    assert (again[0] == labels).all()
    assert again[2] == pytest.approx(found)


@pytest.mark.parametrize(("n", "c"), [(2, 2), (40, 1), (90, 5), (300, 12), (3000, 9)])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_starts_equal_those_of_scikit_learn(rng, n, c, is_weighted):
    points, weights = data(rng, n, 4)
    points[:, 1::3] = points[:, :1]  # some are equal
    weights = weights if is_weighted else np.ones(n)
    for number in range(5):
        states = np.random.RandomState(number), np.random.RandomState(number)
        expected, _ = kmeans_plusplus(
            points.T.copy(), c, sample_weight=weights, random_state=states[0]
        )
        found = seed(points, weights, c, states[1].random_sample(n_draws(c)))
        assert (found == expected).all()
        # as many random numbers were drawn
        assert states[0].randint(1000) == states[1].randint(1000)


def plain_seed(points, weights, c, uniforms):
    """Greedy k-means++ by the inverse of a cumulative distribution."""
    rows, draws = points.T, list(uniforms)
    mass, centers = weights, []
    while len(centers) < c:
        trials = []
        for _ in range(1 if not centers else (len(uniforms) - 1) // (c - 1)):
            total = np.cumsum(mass)
            row = rows[np.searchsorted(total, draws.pop(0) * total[-1], "right")]
            near = ((rows[:, np.newaxis] - [*centers, row]) ** 2).sum(2).min(1)
            trials.append((np.sum(weights * near), len(trials), row, weights * near))
        _, _, row, mass = min(trials, key=lambda trial: trial[:2])
        centers.append(row)
    return np.array(centers)


@pytest.mark.parametrize("n_trials", [1, 2, 5])
def test_starts_follow_from_the_random_numbers(rng, n_trials):
    points, weights = data(rng, 2500, 2)
    for c in (2, 7):
        uniforms = rng.random(1 + (c - 1) * n_trials)
        expected = plain_seed(points, weights, c, uniforms)
        assert (seed(points, weights, c, uniforms) == expected).all()


@pytest.mark.parametrize("uniform", [0.0, np.nextafter(1.0, 0.0)])
def test_starts_at_the_ends_of_the_distribution(uniform):
    # points without weight, and those equal to a center, are never drawn
    places = np.repeat([[5.0, 0.0, 1.0, 3.0, 9.0]], 700, axis=1)
    weights = np.repeat([0.0, 1.0, 1.0, 1.0, 0.0], 700)
    centers = seed(places, weights, 3, np.full(n_draws(3), uniform))
    assert sorted(centers[:, 0]) == [0.0, 1.0, 3.0]


@pytest.mark.parametrize("n", [60, 1000])
def test_weights_equal_repetitions(rng, n):
    points, _ = data(rng, n)
    times = rng.integers(1, 5, size=n)
    copies = np.repeat(points, times, axis=1)
    first = points[:, :4].T.copy()
    labels, centers, found = lloyd(points, times.astype(float), first)
    of_copies = lloyd(copies, np.ones(times.sum()), first)
    assert (np.repeat(labels, times) == of_copies[0]).all()
    np.testing.assert_allclose(centers, of_copies[1], atol=1e-12)
    assert found == pytest.approx(of_copies[2])
    # the same random numbers draw copies of the same points
    uniforms = rng.random(n_draws(4))
    starts = seed(points, times.astype(float), 4, uniforms)
    assert (starts == seed(copies, np.ones(times.sum()), 4, uniforms)).all()


def test_order_of_points_and_centers_does_not_matter(rng):
    points, weights = data(rng, 500)
    first, order, names = points[:, :4].T, rng.permutation(500), rng.permutation(4)
    labels, centers, found = lloyd(points, weights, first.copy())
    moved = lloyd(points[:, order].copy(), weights[order], first[names].copy())
    assert (names[moved[0]] == labels[order]).all()
    np.testing.assert_allclose(moved[1], centers[names], atol=1e-12)
    assert moved[2] == pytest.approx(found)


def test_points_far_from_the_origin(rng):
    points, weights = data(rng, 300)
    first = points[:, :4].T.copy()
    near, far = lloyd(points, weights, first), lloyd(points + 1e6, weights, first + 1e6)
    assert (near[0] == far[0]).all()
    assert near[2] == pytest.approx(far[2], rel=1e-6)


def test_threads_change_no_bit(rng):
    points, weights = data(rng, 200_000, 6)
    first = points[:, :8].T.copy()
    expected = lloyd(points, weights, first, 1e-3)
    for n_threads in (2, 3):
        found = lloyd(points, weights, first, 1e-3, n_threads)
        assert all(np.array_equal(*pair) for pair in zip(found, expected, strict=True))


def test_of_equally_near_centers_the_first_is_taken():
    points = np.array([[-1.0, 0.0, 1.0]])
    labels, _, _ = lloyd(points, np.ones(3), np.array([[-1.0], [1.0]]))
    assert labels.tolist() == [0, 0, 1]
    labels, _, _ = lloyd(points, np.ones(3), np.array([[1.0], [-1.0]]))
    assert labels.tolist() == [1, 0, 0]


@pytest.mark.parametrize("n", [1, 5, 40])
def test_as_many_clusters_as_points(rng, n):
    points, weights = data(rng, n)
    labels, centers, found = lloyd(points, weights, np.zeros((n, 3)))
    assert sorted(labels) == list(range(n))
    np.testing.assert_allclose(centers[labels], points.T, rtol=1e-15)
    assert found == pytest.approx(0)


@pytest.mark.parametrize("c", [3, 6])
def test_centers_without_points_move_to_the_farthest(rng, c):
    # all begin at one place, outside
    places = 10.0 * np.arange(c)
    points = (places[rng.integers(c, size=400)] + rng.normal(size=400)).reshape(1, -1)
    labels, centers, _ = lloyd(points, np.ones(400), np.full((c, 1), -50.0))
    assert len(np.unique(labels)) == c
    assert np.isfinite(centers).all()


def test_points_without_weight_get_labels_and_no_center(rng):
    points, weights = data(rng, 300)
    first = points[:, :4].T.copy()
    outliers = np.hstack([points, 100.0 + rng.normal(size=(3, 20))])
    labels, centers, found = lloyd(outliers, np.append(weights, np.zeros(20)), first)
    expected = lloyd(points, weights, first)
    assert (labels[:300] == expected[0]).all()
    assert found == pytest.approx(expected[2])
    nearest = ((outliers[:, 300:, np.newaxis] - centers.T[:, np.newaxis]) ** 2).sum(0)
    assert (labels[300:] == nearest.argmin(axis=1)).all()


def test_copies_of_few_points(rng, watch_checks):
    # rounding of their means is no reason to go on
    points, weights = data(rng, 900)
    points = np.take(points, np.arange(900) % 5, axis=1) + 1e3
    with watch_checks(interval=1.0) as checks:
        labels, _, found = lloyd(points, weights, points[:, :30].T.copy())
    assert checks.n_checks < 10
    assert adjusted_rand_score(labels, np.arange(900) % 5) == 1
    assert found == pytest.approx(0)


@pytest.mark.parametrize("n", [100, 60_000])  # of many it starts on a sample
def test_fewer_places_than_clusters(n):
    places = np.eye(3)[:, np.arange(n) % 2]
    labels = kmeans(places, 3, n_init=2, rng=np.random.RandomState(0))
    assert adjusted_rand_score(labels, np.arange(n) % 2) == 1


@pytest.mark.parametrize("is_weighted", [False, True])
def test_best_of_several_starts_equals_that_of_scikit_learn(rng, is_weighted):
    points, weights = data(rng, 400)
    weights = weights if is_weighted else None
    labels = kmeans(points, 5, n_init=4, rng=np.random.RandomState(0), weights=weights)
    model = KMeans(5, n_init=4, random_state=0).fit(points.T.copy(), None, weights)
    assert adjusted_rand_score(model.labels_, labels) == 1


def test_best_start_has_the_smallest_inertia(rng):
    points, weights = data(rng, 300)
    draws = np.random.RandomState(0).random_sample((6, n_draws(7)))
    runs = [lloyd(points, weights, seed(points, weights, 7, u), 1e-4) for u in draws]
    assert len({run[2] for run in runs}) > 1
    best = min(runs, key=lambda run: run[2])

    def score(labels):
        means = [points[:, labels == j] @ weights[labels == j] for j in range(7)]
        sums = np.bincount(labels, weights, 7)[:, np.newaxis]
        return inertia(points, weights, labels, np.array(means) / sums)

    rng = np.random.RandomState(0)
    labels = kmeans(points, 7, n_init=6, rng=rng, weights=weights)
    assert score(labels) == pytest.approx(score(best[0]), rel=1e-3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": np.ones(9)}, "9 weights"),
        ({"first": np.zeros((2, 4))}, "centers with 4 coordinates"),
        ({"first": np.zeros((0, 3))}, "n_clusters=0"),
        ({"points": np.zeros((0, 10)), "first": np.zeros((2, 0))}, "a coordinate"),
        ({"points": np.zeros((3, 0)), "weights": np.ones(0)}, "a point"),
    ],
)
def test_bad_shapes_are_errors(change, message):
    good = {
        "points": np.ones((3, 10)),
        "weights": np.ones(10),
        "first": np.ones((2, 3)),
    }
    with pytest.raises(ValueError, match=message):
        lloyd(**(good | change))


@pytest.mark.parametrize(("c", "n_numbers"), [(1, 0), (1, 2), (3, 2), (3, 4), (0, 1)])
def test_a_wrong_number_of_random_numbers_is_an_error(c, n_numbers):
    with pytest.raises(ValueError, match=r"random number|n_clusters=0"):
        seed(np.ones((3, 10)), np.ones(10), c, np.full(n_numbers, 0.5))
