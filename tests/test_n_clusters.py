"""The suggested number of clusters: found where it is plain, and its curves."""

import dataclasses
import inspect

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs, make_circles, make_moons

import cdsk
from cdsk import _count_choice, suggest_n_clusters
from cdsk._count_choice import COUNT_FACTORS, _gaps, _scale_agreement


def blobs(n_clusters, size=40, seed=0):
    """Unit blobs around corners of a cube, 12 apart."""
    corners = np.indices((3, 3, 3)).reshape(3, -1).T[:n_clusters]
    return make_blobs(
        n_clusters * size, centers=12.0 * corners, random_state=seed, shuffle=True
    )[0]


def grid_of_blobs(k):
    """k x k of them in the plane."""
    corners = 12.0 * np.indices((k, k)).reshape(2, -1).T
    return make_blobs(25 * k * k, centers=corners, random_state=0)[0]


@pytest.mark.parametrize("n_clusters", range(2, 11))
def test_separated_blobs_are_counted(n_clusters):
    X = blobs(n_clusters)
    choice = suggest_n_clusters(X, random_state=0)
    assert choice.n_clusters == n_clusters
    assert choice.agreement[n_clusters - 2] == 1
    wider = suggest_n_clusters(X, (n_clusters - 1, n_clusters, 30)[n_clusters == 2 :])
    assert wider.n_clusters == n_clusters


def test_curved_clusters_are_counted():
    X, _ = make_moons(300, noise=0.05, random_state=0)
    assert suggest_n_clusters(X, random_state=0).n_clusters == 2
    X, _ = make_circles(400, noise=0.04, factor=0.4, random_state=0)
    assert suggest_n_clusters(X, random_state=0).n_clusters == 2


def test_many_points_do_not_hide_the_gap():
    X, _ = make_moons(4000, noise=0.1, random_state=0)
    assert suggest_n_clusters(X, range(2, 8), random_state=0).n_clusters == 2


@pytest.fixture(scope="module")
def touching():
    return make_blobs(300, 3, centers=5, cluster_std=1.5, random_state=3)[0]


@pytest.fixture(scope="module")
def choice(touching):
    return suggest_n_clusters(touching, random_state=0)


def test_curves(choice):
    assert choice.candidates.tolist() == list(range(2, 20))
    assert choice.factors == COUNT_FACTORS
    assert choice.eigenvalues.shape == (len(COUNT_FACTORS), 20)
    assert (np.diff(choice.eigenvalues, axis=1) <= 1e-12).all()
    assert choice.gaps.shape == (len(COUNT_FACTORS), 18)
    assert (choice.gaps >= -1e-9).all()
    assert choice.scores == pytest.approx(choice.gaps.mean(axis=0))
    assert choice.agreement.shape == (18,)
    assert (np.abs(choice.agreement) <= 1).all()
    best, second = np.argsort(-choice.scores)[:2]
    assert choice.n_clusters == choice.candidates[best]
    assert choice.runner_up == choice.candidates[second]
    assert type(choice.n_clusters) is type(choice.runner_up) is int
    with pytest.raises(dataclasses.FrozenInstanceError):
        choice.n_clusters = 3


def test_gaps_are_ratios_of_cuts():
    eigenvalues = np.array([[1.0, 0.99, 0.9, 0.2], [1.0, 1.0, 0.5, 0.4]])
    e = 1e-3
    expected = [
        np.log([(0.1 + e) / (0.01 + e), (0.8 + e) / (0.1 + e)]),
        np.log([(0.5 + e) / e, (0.6 + e) / (0.5 + e)]),
    ]
    assert _gaps(eigenvalues, np.array([2, 3]), e) == pytest.approx(np.array(expected))


def test_agreement_is_that_of_neighboring_scales():
    one, other = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    partitions = [[one, one], [one, other], [one, other]]
    # the index of the crossed pair is -0.5
    assert _scale_agreement(partitions) == pytest.approx([1.0, (-0.5 + 1.0) / 2])


def test_agreement_counts_pairs_by_multiplicity(rng):
    first, second = rng.integers(0, 3, size=(2, 9))
    times = rng.integers(1, 5, size=9)
    together = np.triu(np.multiply.outer(times, times), 1)  # of every two points
    a, b = (together * np.equal.outer(p, p) for p in (first, second))
    expected = a.sum() * b.sum() / together.sum()
    both = (a * (b > 0)).sum() - expected
    index = both / ((a.sum() + b.sum()) / 2 - expected)
    found = _scale_agreement([[first], [second]], times.astype(float))
    assert found == pytest.approx([index], rel=1e-12)
    assert abs(found - _scale_agreement([[first], [second]])) > 1e-3


def test_weights_are_repetitions(touching):
    times = np.random.RandomState(0).randint(0, 4, len(touching))
    weighted = suggest_n_clusters(touching, sample_weight=times, random_state=0)
    repeated = suggest_n_clusters(np.repeat(touching, times, axis=0), random_state=0)
    for name in ("agreement", "scores", "eigenvalues"):
        assert (getattr(weighted, name) == getattr(repeated, name)).all()
    # and they matter
    plain = suggest_n_clusters(touching[times > 0], random_state=0)
    assert np.abs(weighted.agreement - plain.agreement).max() > 1e-3


def five_blobs(seed=0):
    """In five features of similar spread."""
    box = (-6, 6)
    return make_blobs(400, 5, centers=5, center_box=box, random_state=seed)[0]


@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_a_feature_in_another_unit_is_standardized(unit):
    X = five_blobs()
    units = np.array([1.0, 1.0, 1.0, 1.0, unit])
    expected = suggest_n_clusters(X, representation="standardize", random_state=0)
    assert expected.n_clusters == 5
    found = suggest_n_clusters(X * units, random_state=0)
    assert found.view == "standardize"
    same(found, expected, 1e-9)
    # the other one a million times as large, or as small
    same(suggest_n_clusters(X * units**2, random_state=0), expected, 1e-9)
    model = cdsk.CDSK("auto", random_state=0).fit(X * units)
    assert model.n_clusters_ == expected.n_clusters


@pytest.mark.parametrize("seed", range(3))
def test_the_wider_gap_decides_where_units_may_differ(seed):
    # another unit: nothing is seen in the data as given
    X = five_blobs(seed) * [1, 1, 1, 1, 30]
    # one unit, clusters far apart along one feature: standardizing joins them
    centers = 12.0 * np.arange(4)[:, np.newaxis] * [1, 0, 0]
    Y = make_blobs(400, centers=centers, random_state=seed)[0]
    for points, view in ((X, "standardize"), (Y, "raw")):
        found = suggest_n_clusters(points, random_state=0)
        each = {
            name: suggest_n_clusters(points, representation=name, random_state=0)
            for name in ("standardize", "raw")
        }
        assert found.view == view == max(each, key=lambda v: each[v].scores.max())
        same(found, each[view], 1e-9)
    assert found.n_clusters == 4  # of Y


def test_features_of_one_spread_are_taken_as_given(touching, choice):
    assert touching.std(axis=0).max() < 2 * touching.std(axis=0).min()
    assert choice.view == "raw"
    raw = suggest_n_clusters(touching, representation="raw", random_state=0)
    assert (raw.scores == choice.scores).all()


def same(a, b, tolerance):
    assert a.n_clusters == b.n_clusters
    assert a.runner_up == b.runner_up
    assert a.eigenvalues == pytest.approx(b.eigenvalues, abs=tolerance)
    assert a.scores == pytest.approx(b.scores, abs=1e3 * tolerance)
    # eigenvectors are found to 1e-6: a point between two clusters may change sides
    likely = a.scores > 0.2
    assert a.agreement[likely] == pytest.approx(b.agreement[likely], abs=0.05)


def test_order_of_the_samples_does_not_matter(touching, choice):
    order = np.random.RandomState(0).permutation(len(touching))
    same(suggest_n_clusters(touching[order], random_state=1), choice, 1e-9)


@pytest.mark.parametrize(("unit", "origin"), [(1e-6, 0.0), (1e5, 1e5)])
def test_unit_and_origin_of_the_data_do_not_matter(touching, choice, unit, origin):
    moved = unit * touching + origin
    same(suggest_n_clusters(moved, random_state=0), choice, 1e-7)


def test_number_of_threads_does_not_matter(touching):
    first, second = (
        suggest_n_clusters(touching, random_state=0, n_threads=n) for n in (1, 3)
    )
    assert (first.eigenvalues == second.eigenvalues).all()
    assert (first.scores == second.scores).all()


def test_same_seed_same_curve(touching, choice):
    again = suggest_n_clusters(touching, random_state=0)
    assert (again.scores == choice.scores).all()


def test_candidates_may_come_in_any_form(touching, choice):
    some = suggest_n_clusters(touching, iter([9, 4, np.int32(6), 4]), random_state=0)
    assert some.candidates.tolist() == [4, 6, 9]
    assert some.eigenvalues.shape == (len(COUNT_FACTORS), 10)
    assert some.gaps == pytest.approx(choice.gaps[:, [2, 4, 7]], abs=1e-9)


def test_one_candidate_has_no_runner_up(touching):
    only = suggest_n_clusters(touching, [7], random_state=0)
    assert (only.n_clusters, only.runner_up) == (7, None)


def test_few_far_points_are_no_cluster():
    rng = np.random.RandomState(0)
    far = np.array([300.0, 0.0, 0.0]) + rng.standard_normal((3, 3))
    X = np.concatenate([blobs(3), far, [[0.0, -500.0, 0.0]]])
    assert suggest_n_clusters(X, random_state=0).n_clusters == 3


def test_more_components_than_candidates():
    message = "'raw' has more connected components .* so 4 clusters are suggested"
    with pytest.warns(UserWarning, match=message) as warned:
        choice = suggest_n_clusters(blobs(9)[:, 1:], range(2, 5), random_state=0)
    assert choice.n_clusters == 4
    assert (choice.gaps == 0).all()
    assert warned[0].filename == __file__
    # told where the other view decides, too: the first feature has a small spread
    with pytest.warns(UserWarning, match=message):
        suggest_n_clusters(blobs(9), range(2, 5), random_state=0)
    with pytest.warns(UserWarning, match="so 19 clusters are suggested") as warned:
        cdsk.CDSK("auto", random_state=0).fit(grid_of_blobs(5))
    assert warned[0].filename == __file__


def test_duplicates():
    X = np.repeat(blobs(4, size=20), 3, axis=0)
    assert suggest_n_clusters(X, random_state=0).n_clusters == 4
    # every point has seven duplicates and more
    X = np.repeat(blobs(3, size=20), 9, axis=0)
    assert suggest_n_clusters(X, range(2, 8), random_state=0).n_clusters == 3
    # a heap beside other points
    X = np.concatenate([blobs(2), np.full((40, 3), -12.0)])
    assert suggest_n_clusters(X, random_state=0).n_clusters == 3


@pytest.mark.parametrize("n", [3, 15, 30])
def test_candidates_if_none_are_given(n):
    X = np.random.RandomState(n).standard_normal((n, 2))
    choice = suggest_n_clusters(X, random_state=0)
    assert choice.candidates.tolist() == list(range(2, min(n, 20)))


@pytest.mark.parametrize("n", [3, 4, 7, 8, 9, 21])
def test_few_points(n):
    X = np.random.RandomState(n).standard_normal((n, 2))
    choice = suggest_n_clusters(X, range(2, n), random_state=0)
    assert choice.n_clusters in range(2, n)
    assert np.isfinite(choice.scores).all()
    assert np.isfinite(choice.agreement).all()


def test_float32_and_many_features():
    X = np.random.RandomState(0).standard_normal((120, 80)).astype(np.float32)
    X[:60, :5] += 20
    assert suggest_n_clusters(X, range(2, 8), random_state=0).n_clusters == 2
    how = {"representation": "whiten", "n_components": 20, "random_state": 0}
    whitened = suggest_n_clusters(X, range(2, 8), **how)
    assert whitened.eigenvalues[0, 1] < 0.999


X = np.arange(40.0).reshape(20, 2)


@pytest.mark.parametrize(
    ("data", "candidates", "message"),
    [
        (X, range(2, 21), "below the number of samples; got 20 and n_samples=20"),
        (X, [], "n_clusters must hold at least one integer; got none"),
        (X, 5, "n_clusters must hold several integers.* got 5"),
        (X, [2, 3.5], "Each value of n_clusters must be an integer.* got 3.5"),
        (X, [1, 2], "Each value of n_clusters must be an integer of at least 2; got 1"),
        (X, [True], "Each value of n_clusters must be an integer.* got True"),
        (X, "23", "Each value of n_clusters must be an integer.* got '2'"),
        (np.where(X == 7, np.inf, X), [2], "X contains infinity"),
        (X[:2], [2], "2 sample"),
        (X[:, 0], [2], "2D array"),
        (np.ones((20, 2)), [2], "at least 3 distinct points; got 1 in 20 rows"),
        (np.repeat(np.eye(2), 9, axis=0), None, "3 distinct points; got 2 in 18 rows"),
        ([["a", "b"]] * 9, [2], "X must hold numbers only; got 'a' at row 0"),
    ],
)
def test_bad_input_raises(data, candidates, message):
    with pytest.raises(ValueError, match=message):
        suggest_n_clusters(data, candidates)


def test_bad_representation_is_refused():
    with pytest.raises(ValueError, match="representation must be"):
        suggest_n_clusters(X, [2], representation="perhaps")
    with pytest.raises(ValueError, match=r"n_components is for .* got 2"):
        suggest_n_clusters(X, [2], representation="raw", n_components=2)


def test_scores_by_their_definition():
    # all eigenvalues short of 1: the smallest cut matters little, but it matters
    X = np.random.RandomState(0).standard_normal((60, 3))
    choice = suggest_n_clusters(X, range(2, 8), random_state=0)
    cuts = 1.0 - choice.eigenvalues + 0.1 / 60
    expected = np.log(cuts[:, 2:8] / cuts[:, 1:7]).mean(axis=0)
    np.testing.assert_allclose(choice.scores, expected, rtol=1e-9)


def test_signature():
    assert "suggest_n_clusters" in cdsk.__all__
    parameters = inspect.signature(suggest_n_clusters).parameters
    assert list(parameters)[:2] == ["X", "n_clusters"]


@pytest.mark.parametrize(
    "count", [suggest_n_clusters, cdsk.CDSK("auto", representation="raw").fit]
)
def test_memory_is_asked_for_before_the_search(rng, monkeypatch, count, limit_memory):
    def no_search(*args, **options):
        raise AssertionError("searched")

    monkeypatch.setattr("cdsk._count_choice.find_neighbors", no_search)
    limit_memory(1_000_000)
    with pytest.raises(MemoryError, match="A fit of 1,000 points, 20 neighbors"):
        count(rng.normal(size=(1000, 4)))


def test_missing_eigenvectors_limit_the_candidates(monkeypatch):
    # expanders without edges between them: 95 eigenvectors do not converge
    X = make_blobs(600, n_features=40, centers=6, random_state=2)[0]
    embed = _count_choice._embed_at_scales

    def embed_fewer(*args, **options):
        embeddings = embed(*args, **options)
        shorter = embeddings[1].eigenvalues[:9]
        embeddings[1] = dataclasses.replace(embeddings[1], eigenvalues=shorter)
        return embeddings

    monkeypatch.setattr(_count_choice, "_embed_at_scales", embed_fewer)
    choice = suggest_n_clusters(X, range(2, 20), random_state=0)
    assert choice.n_clusters == 6
    np.testing.assert_array_equal(choice.candidates, range(2, 9))


def test_sparse_points_are_counted_as_they_are():
    X = sparse.csr_array(make_blobs(2100, 60, centers=4, random_state=2)[0])
    model = cdsk.CDSK("auto", random_state=0).fit(X)
    assert model.representation_.name == "raw"
    np.testing.assert_array_equal(model.predict(X), model.labels_)
