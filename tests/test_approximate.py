"""Approximate neighbors: what they share with exact ones, and the measured recall."""

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, make_blobs
from sklearn.neighbors import NearestNeighbors

from cdsk import CDSK
from cdsk._neighbors import Neighbors


class Inexact:
    """An index that misses every ``miss``th neighbor, and finds too few of a point."""

    miss = 5

    def __init__(self, X, n_neighbors, random_state, n_jobs):
        assert X.dtype == np.float32 and n_jobs == 1
        nearest = NearestNeighbors(n_neighbors=2 * n_neighbors).fit(X)
        indices = nearest.kneighbors(return_distance=False).astype(np.int32)
        kept = np.flatnonzero(np.arange(1, indices.shape[1] + 1) % self.miss)
        indices = np.column_stack([np.arange(len(X)), indices[:, kept]])
        indices = indices[:, :n_neighbors][:, ::-1].astype(np.int32)
        indices[3, 2:] = -1
        self.neighbor_graph = indices, np.zeros(indices.shape, np.float32)


@pytest.fixture
def inexact(monkeypatch):
    """Use it in place of pynndescent, for data of any size."""
    monkeypatch.setitem(sys.modules, "pynndescent", SimpleNamespace(NNDescent=Inexact))
    monkeypatch.setattr("cdsk._validation.check_installed", lambda: None)
    monkeypatch.setattr("cdsk._approximate.MIN_POINTS", 1)
    monkeypatch.setattr("cdsk._approximate.MIN_FEATURES", 1)


@pytest.fixture
def exact(inexact, monkeypatch):
    monkeypatch.setattr(Inexact, "miss", 10**6)


X = make_blobs(400, 5, centers=4, cluster_std=2.0, random_state=0)[0]


@pytest.mark.parametrize("shift", [0.0, 1e6])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_an_index_that_misses_none_gives_the_exact_lists(exact, shift, scale):
    points = scale * (X + shift)
    found, expected = Neighbors(points, 9, approximate=True), Neighbors(points, 9)
    assert found.recall == 1.0
    if not shift:  # else float32 decides on some of the last
        np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_allclose(found.distances, expected.distances, rtol=1e-3)
    np.testing.assert_allclose(found.scales, expected.scales, rtol=1e-3)


def test_lists_are_sorted_true_distances_to_others_and_recall_is_their_share(inexact):
    k = 12
    found, exact = Neighbors(X, k, approximate=True), Neighbors(X, k)
    distances = np.linalg.norm(X[:, np.newaxis] - X[found.indices], axis=2)
    np.testing.assert_allclose(found.distances, distances, rtol=1e-12)
    assert (np.diff(found.distances) >= 0).all()
    assert (found.indices != np.arange(400)[:, np.newaxis]).all()
    assert all(len(set(row)) == k for row in found.indices)
    # all points are in the sample
    both = zip(found.indices, exact.indices, strict=True)
    share = np.mean([np.isin(a, b) for a, b in both])
    assert found.recall == pytest.approx(share)
    assert 0.5 < found.recall < 0.9


def test_points_of_which_too_few_are_found_are_searched_exactly(inexact):
    found, exact = Neighbors(X, 12, approximate=True), Neighbors(X, 12)
    np.testing.assert_array_equal(found.indices[3], exact.indices[3])
    np.testing.assert_array_equal(found.distances[3], exact.distances[3])


def test_duplicates_are_neighbors_of_each_other(exact):
    points = np.repeat(X[:40], 3, axis=0)
    found, expected = Neighbors(points, 2, approximate=True), Neighbors(points, 2)
    np.testing.assert_array_equal(found.distances, 0.0)
    np.testing.assert_array_equal(found.indices, expected.indices)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"noise": 0.05},
        {"n_clusters": "auto"},
        {"bandwidth": 1.0, "n_neighbors": 15},
        {"lam": "auto"},
    ],
)
def test_a_fit_by_the_exact_lists_is_the_fit(exact, options):
    options = {"n_clusters": 4, "random_state": 0, **options}
    found = CDSK(neighbors="approximate", **options).fit(X)
    expected = CDSK(**options).fit(X)
    assert found.neighbor_recall_ == 1.0 and expected.neighbor_recall_ is None
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    np.testing.assert_array_equal(found.predict(X + 0.1), expected.predict(X + 0.1))
    for name in ("weights_", "embedding_", "margins_"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), rtol=1e-3, atol=1e-6
        )


def test_all_candidates_and_layouts_take_part(inexact, monkeypatch):
    monkeypatch.setattr("cdsk._view_choice._MIN_LAYOUT_POINTS", 100)
    monkeypatch.setattr("cdsk._view_choice._MIN_LAYOUT_POINTS_PER_CLUSTER", 10)
    expected = CDSK(4, random_state=0).fit(X)
    found = CDSK(4, neighbors="approximate", random_state=0).fit(X)
    assert found.choice_.names == expected.choice_.names
    support = found.representation_.support
    assert support.keys() == expected.representation_.support.keys()


def test_the_recall_is_told(inexact):
    model = CDSK(4, neighbors="approximate", random_state=0).fit(X)
    recall = model.neighbor_recall_
    report = model.report()
    sentence = f"{recall:.1%} of the neighbors of random points were found"
    assert sentence in " ".join(str(report).split())
    assert sentence in report._repr_html_()
    data = json.loads(json.dumps(report.to_dict()))
    assert data["kernel"]["neighbor_recall"] == recall
    assert any("approximate search found only" in text for text in data["warnings"])


def test_few_points_or_features_are_searched_exactly(monkeypatch):
    monkeypatch.setattr("cdsk._validation.check_installed", lambda: None)
    found = CDSK(4, neighbors="approximate", random_state=0).fit(X)
    expected = CDSK(4, random_state=0).fit(X)
    assert found.neighbor_recall_ is None
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    np.testing.assert_array_equal(found.weights_, expected.weights_)


@pytest.mark.parametrize(
    "data, options, text",
    [
        (X, {"neighbors": "annoy"}, "None or a transformer or 'approximate'"),
        (X, {"bandwidth": 1.0}, "expected an integer for n_neighbors=None|None for n_"),
        (X, {"kernel": "laplacian"}, "expected None for kernel='laplacian'"),
        (sparse.csr_array(X), {}, "needs dense points; expected None"),
        (X, {"approximation": "lowrank", "bandwidth": 1.0}, "expected None"),
    ],
)
def test_what_it_cannot_do_is_refused(inexact, data, options, text):
    with pytest.raises(ValueError, match=text):
        CDSK(4, **{"neighbors": "approximate", **options}).fit(data)


def test_without_pynndescent_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynndescent", None)
    with pytest.raises(ImportError, match=r"pip install cdsk\[approximate\]"):
        CDSK(4, neighbors="approximate").fit(X)


@pytest.mark.slow
def test_pynndescent_finds_most_neighbors_and_the_same_for_any_threads():
    pytest.importorskip("pynndescent")
    import numba

    digits, n_threads = load_digits().data, numba.get_num_threads()
    found, exact = Neighbors(digits, 20, approximate=True), Neighbors(digits, 20)
    share = np.mean(found.distances <= exact.distances[:, -1:] * (1 + 1e-9))
    assert share > 0.95
    assert found.recall == pytest.approx(share, abs=0.02)
    try:
        numba.set_num_threads(1)
        again = Neighbors(digits, 20, approximate=True, n_threads=2)
        assert numba.get_num_threads() == 1
    finally:
        numba.set_num_threads(n_threads)
    np.testing.assert_array_equal(again.indices, found.indices)
    np.testing.assert_array_equal(again.distances, found.distances)
