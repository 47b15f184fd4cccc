import tracemalloc
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.integrate import quad
from sklearn.datasets import make_blobs
from sklearn.metrics.pairwise import laplacian_kernel

import cdsk
import reference
from cdsk import CDSK, _validation, _voting


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(200, 3, centers=3, cluster_std=2.0, random_state=0)[0]


def test_decision_function_equals_reference(blobs, rng, dtype):
    X = blobs.astype(dtype)
    model = CDSK(3, bandwidth="neighbor", random_state=0).fit(X)
    new = (rng.normal(size=(70, 3)) * 6).astype(dtype)
    expected = reference.log_votes(
        new, X, model.labels_, model.weights_, model.bandwidth_, 3
    ).astype(float)
    votes = model.decision_function(new)
    np.testing.assert_allclose(votes, expected, rtol=1e-12, atol=1e-12)
    assert (model.predict(new) == expected.argmax(axis=1)).all()


def test_only_the_support_counts(blobs, rng):
    options = {"bandwidth": "neighbor", "lam": 0.1, "random_state": 0}
    model = CDSK(3, init=np.full(200, 1 / 200), **options).fit(blobs)
    assert len(model.support_) < 200
    kept = model.support_
    expected = reference.log_votes(
        blobs,
        blobs[kept],
        model.labels_[kept],
        model.weights_[kept],
        model.bandwidth_,
        3,
    )
    np.testing.assert_allclose(
        model.decision_function(blobs), expected.astype(float), atol=1e-11
    )


def test_far_points_take_the_nearest_cluster():
    X, y = make_blobs(200, centers=[[0, 0], [20, 0]], random_state=0)
    model = CDSK(2, bandwidth="neighbor", random_state=0).fit(X)
    left, right = model.labels_[y == 0][0], model.labels_[y == 1][0]
    far = np.array([[-1e6, 0], [1e6, 0], [-1e6, 1e6], [1e6, 1e7]])
    votes = model.decision_function(far)
    assert np.isfinite(votes).all()
    assert model.predict(far).tolist() == [left, right, left, right]
    assert np.isfinite(model.score_samples(far)).all()


def test_score_samples_is_the_log_of_a_density():
    X, _ = make_blobs(60, 1, centers=2, random_state=0)
    model = CDSK(2, bandwidth="neighbor", random_state=0).fit(X)

    def density(x):
        return np.exp(model.score_samples([[x]])[0])

    points = np.linspace(X.min() - 3, X.max() + 3, 40)
    pieces = [quad(density, a, b)[0] for a, b in pairwise(points)]
    assert sum(pieces) == pytest.approx(1, abs=1e-6)


def test_predicting_a_part_or_in_pieces_changes_nothing(blobs, rng):
    model = CDSK(3, random_state=0).fit(blobs)
    new = rng.normal(size=(150, 3)) * 5
    votes = model.decision_function(new)
    assert (votes[::-1] == model.decision_function(new[::-1])).all()
    assert (votes[17:18] == model.decision_function(new[17:18])).all()


def test_precomputed_and_callable_kernels_equal_rbf(blobs, rng, in_point_order):
    blobs = in_point_order(blobs)
    new = rng.normal(size=(30, 3)) * 3
    uniform = np.full(len(blobs), 1 / len(blobs))  # learned weights stay
    direct = CDSK(3, bandwidth=2.0, init=uniform, random_state=0).fit(blobs)

    def kernel(A, B):
        return cdsk.gaussian_rows(A, B, 2.0)

    by_call = CDSK(3, kernel=kernel, random_state=0).fit(blobs)
    precomputed = CDSK(3, kernel="precomputed", random_state=0)
    precomputed.fit(cdsk.gaussian_gram(blobs, 2.0))
    for other, X in ((by_call, new), (precomputed, kernel(new, blobs))):
        assert (other.labels_ == direct.labels_).all()
        np.testing.assert_allclose(other.weights_, direct.weights_, atol=1e-12)
        np.testing.assert_allclose(
            other.decision_function(X), direct.decision_function(new), atol=1e-10
        )
    # the density of an unknown kernel is the sum of its votes
    np.testing.assert_allclose(
        by_call.score_samples(new) - 3 * np.log(np.sqrt(2 * np.pi) * 2.0),
        direct.score_samples(new),
        atol=1e-10,
    )


def test_chunks_of_kernel_values_change_nothing(blobs, rng, monkeypatch):
    K = cdsk.gaussian_gram(blobs, 2.0)
    model = CDSK(3, kernel="precomputed", random_state=0).fit(K)
    whole = model.decision_function(K)
    monkeypatch.setattr(_voting, "_CHUNK_VALUES", 7 * len(model.support_))
    np.testing.assert_allclose(model.decision_function(K), whole, rtol=1e-13)


def test_another_kernel_of_scikit_learn(blobs):
    model = CDSK(3, kernel=laplacian_kernel, random_state=0).fit(blobs)
    assert (model.predict(blobs) == model.labels_).mean() > 0.95
    assert model.bandwidth_ is None


def test_local_bandwidths_know_their_training_points(blobs):
    model = CDSK(3, bandwidth="local", random_state=0).fit(blobs)
    assert model.bandwidth_.shape == (200,)
    votes = model.decision_function(blobs)
    K = reference.gaussian_gram(blobs, model.bandwidth_) * model.weights_
    expected = np.log(
        np.stack([K[:, model.labels_ == y].sum(axis=1) for y in range(3)], axis=1)
    )
    np.testing.assert_allclose(votes, expected.astype(float), atol=1e-10)
    assert (model.predict(blobs) == model.labels_).mean() > 0.95


def test_points_of_no_similarity_take_the_heaviest_cluster(blobs):
    K = cdsk.gaussian_gram(blobs, 2.0)
    model = CDSK(3, kernel="precomputed", random_state=0).fit(K)
    with pytest.warns(UserWarning, match="1 of 2 points have no similarity"):
        labels = model.predict(np.stack([np.zeros(200), K[5]]))
    weight = [model.weights_[model.labels_ == y].sum() for y in range(3)]
    assert labels.tolist() == [np.argmax(weight), model.labels_[5]]


def test_mixed_dtypes_use_the_wider(blobs):
    # quarter steps at an offset of 1e6 fit float32, the training data do not
    X = blobs + 1e6
    model = CDSK(3, random_state=0).fit(X)
    new = np.round(4 * X[:40]).astype(np.float32) / 4
    assert (new == np.round(4 * X[:40]) / 4).all()
    assert (
        model.decision_function(new) == model.decision_function(new.astype(float))
    ).all()


def test_kernel_values_of_wrong_shape_are_refused(blobs):
    with pytest.raises(ValueError, match=r"kernel\(A, B\) must return .* \(200, 200\)"):
        CDSK(3, kernel=lambda A, B: np.ones((2, 2))).fit(blobs)
    model = CDSK(3, kernel="precomputed", random_state=0)
    model.fit(cdsk.gaussian_gram(blobs, 2.0))
    with pytest.raises(ValueError, match="Negative values in data"):
        model.predict(np.full((1, 200), -1.0))


METHODS = ("predict", "decision_function", "score_samples")


@pytest.mark.parametrize(
    "parameters",
    [{}, {"bandwidth": 2.0}, {"bandwidth": "local"}, {"representation": "whiten"}],
)
@pytest.mark.parametrize("method", METHODS)
def test_parts_of_rows_change_no_bit(blobs, rng, monkeypatch, parameters, method):
    model = CDSK(3, random_state=0, **parameters).fit(blobs)
    new = rng.normal(size=(100, 3)) * 5
    whole = getattr(model, method)(new)
    for rows in (1, 17):
        monkeypatch.setattr(_validation, "_CHUNK_ROWS", rows)
        for same in (new, np.asfortranarray(new), new.tolist()):
            found = getattr(model, method)(same)
            assert found.dtype == whole.dtype
            assert (found == whole).all()


def test_parts_of_a_frame_and_of_a_graph(blobs, monkeypatch, recwarn):
    frame = pd.DataFrame(blobs, columns=list("abc"))
    model = CDSK(3, random_state=0).fit(frame)
    graph = sparse.random_array((40, 200), density=0.1, random_state=0, format="csr")
    by_graph = CDSK(3, kernel="precomputed_neighbors", random_state=0).fit(
        sparse.csr_array(np.hypot(*(blobs[:, [i]] - blobs[:, i] for i in (0, 1))))
    )
    whole = model.predict(frame), by_graph.decision_function(graph)
    monkeypatch.setattr(_validation, "_CHUNK_ROWS", 7)
    assert (model.predict(frame) == whole[0]).all()
    for same in (graph, graph.tocsc()):
        assert (by_graph.decision_function(same) == whole[1]).all()
    assert not recwarn.list
    # told once, not of every part
    with pytest.warns(UserWarning, match="valid feature names") as told:
        model.predict(blobs)
    assert len(told) == 1


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 1e200])
def test_errors_name_the_row(blobs, monkeypatch, wrong):
    model = CDSK(3, missing="error", random_state=0).fit(blobs)
    new = blobs[:50].copy()
    new[33, 1] = wrong
    monkeypatch.setattr(_validation, "_CHUNK_ROWS", 10)
    with pytest.raises(ValueError, match=r"row 3\b.* are relative to row 30 of X\.\)"):
        model.predict(new)
    new[3, 1] = wrong
    with pytest.raises(ValueError, match=r"row 3\b") as told:
        model.predict(new)
    assert "relative" not in str(told.value)


def peak_beyond_result(ask, X):
    tracemalloc.start()
    found = ask(X)
    peak = tracemalloc.get_traced_memory()[1] - found.nbytes
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize("parameters", [{}, {"bandwidth": 2.0}])
def test_memory_does_not_grow_with_the_rows(blobs, tmp_path, monkeypatch, parameters):
    monkeypatch.setattr(_validation, "_CHUNK_ROWS", 2**13)
    model = CDSK(3, random_state=0, **parameters).fit(blobs[:60])
    path = tmp_path / "rows"
    rows = np.memmap(path, np.float32, "w+", shape=(100_000, 3), order="F")
    rows[:] = np.resize(blobs, rows.shape)
    for method in METHODS:
        ask = getattr(model, method)
        few, many = (peak_beyond_result(ask, rows[:n]) for n in (20_000, 100_000))
        assert many < 1.05 * few
        assert few < 16 * 2**20


@pytest.mark.slow
def test_ten_million_rows_of_a_memory_map(blobs, tmp_path):
    model = CDSK(3, random_state=0).fit(blobs[:60])
    rows = np.memmap(tmp_path / "rows", np.float64, "w+", shape=(10**7, 3))
    for i in range(0, len(rows), 10**6):
        rows[i : i + 10**6] = np.resize(blobs, (10**6, 3))
    few, many = (peak_beyond_result(model.predict, rows[:n]) for n in (150_000, 10**7))
    assert many < 1.05 * few
    assert few < 128 * 2**20
