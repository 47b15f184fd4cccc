# SPDX-License-Identifier: BSD-3-Clause
"""Stability: its counts against their definitions, and its verdicts on known data."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.spatial import ConvexHull
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score

import cdsk
from cdsk import CDSK, BlockCDSK, _stability, stability
from cdsk._null_data import NullData
from cdsk._stability import MAX_SAMPLE, compare, draw_sample

CENTERS = [[0, 0], [9, 0], [0, 9]]
FEW = {"n_resamples": 4, "n_null": 2, "random_state": 0}


@pytest.fixture(scope="module")
def X():
    return make_blobs(90, centers=CENTERS, random_state=0)[0]


@pytest.fixture(scope="module")
def model(X):
    return CDSK(3, random_state=0).fit(X)


@pytest.fixture(scope="module")
def found(model, X):
    return stability(model, X, **FEW)


# ---------------------------------------------------------------- verdicts


def test_separated_blobs_are_stable(found):
    assert found.verdict == "stable"
    assert found.cluster_verdicts == ("stable",) * 3
    assert (found.ari == 1).all() and (found.found == 1).all()
    assert (found.agreement == 1).all()
    assert found.null_ari_limit < 1


@pytest.mark.parametrize("kind", ["normal", "uniform"])
def test_data_without_clusters_are_not_stable(kind):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((90, 2)) if kind == "normal" else rng.random((90, 2))
    model = CDSK(3, random_state=0).fit(X)
    found = stability(model, X, **FEW)
    assert found.verdict != "stable"
    assert found.ari.mean() < 1


def test_a_split_blob_is_worse_than_the_others(X):
    # four clusters of three blobs: one blob is cut
    model = CDSK(4, random_state=0).fit(X)
    found = stability(model, X, **FEW)
    truth = np.argmin([((X - c) ** 2).sum(axis=1) for c in CENTERS], axis=0)
    pure = np.array(
        [np.bincount(truth[model.labels_ == y]).max() == 30 for y in range(4)]
    )
    assert 0 < pure.sum() < 4
    mean = found.jaccard.mean(axis=0)
    assert mean[pure].max() > mean[~pure].max()


@pytest.mark.parametrize(
    ("low", "mean", "verdict"),
    [
        (0.6, 0.9, "stable"),
        (0.5, 0.9, "unclear"),
        (0.6, 0.7, "unclear"),
        (0.5, 0.7, "not stable"),
        (np.nan, np.nan, "unclear"),
    ],
)
def test_verdicts(low, mean, verdict):
    assert _stability._judge(low, mean, 0.5, 0.7) == verdict


def test_a_single_cluster_is_not_stable(X):
    # it is found again in any data
    found = stability(CDSK(1, random_state=0).fit(X), X, **FEW)
    assert (found.ari == 1).all() and (found.jaccard == 1).all()
    assert found.verdict == "not stable"


# ---------------------------------------------------------------- counts


@pytest.mark.parametrize("seed", range(5))
def test_compare_is_as_defined(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(-1, 4, 60), rng.integers(-1, 3, 60)
    ari, jaccard, agrees = compare(a, b, np.ones(60), 4)
    kept = a >= 0
    # noise of a resample is a group, but no cluster
    assert ari == pytest.approx(adjusted_rand_score(a[kept], b[kept]))
    for y in range(4):
        own = set(np.flatnonzero(a == y))
        others = [set(np.flatnonzero(kept & (b == z))) for z in range(3)]
        expected = max(len(own & other) / len(own | other) for other in others)
        assert jaccard[y] == pytest.approx(expected)
    assert (agrees[~kept] == (b[~kept] < 0)).all()
    assert not agrees[kept & (b < 0)].any()


def test_compare_does_not_depend_on_numbers():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 4, 60)
    ari, jaccard, agrees = compare(a, np.array([2, 0, 3, 1])[a], np.ones(60), 4)
    assert ari == 1 and (jaccard == 1).all() and agrees.all()


def test_a_cluster_is_matched_once():
    # two clusters are one in the resample: only the larger one agrees
    a = np.repeat([0, 1, 2], [10, 20, 30])
    b = np.repeat([0, 0, 1], [10, 20, 30])
    _, jaccard, agrees = compare(a, b, np.ones(60), 3)
    np.testing.assert_allclose(jaccard, [10 / 30, 20 / 30, 1])
    assert (agrees == (a > 0)).all()


def test_weights_count_as_repeated_rows():
    rng = np.random.default_rng(0)
    a, b, w = (rng.integers(low, 4, 40) for low in (-1, -1, 1))
    weighted = compare(a, b, w.astype(float), 4)
    repeated = compare(np.repeat(a, w), np.repeat(b, w), np.ones(w.sum()), 4)
    np.testing.assert_allclose(weighted[1], repeated[1])
    np.testing.assert_array_equal(np.repeat(weighted[2], w), repeated[2])


def test_a_cluster_without_rows_is_unknown():
    _, jaccard, _ = compare(np.array([0, 0, 2]), np.zeros(3, int), np.ones(3), 3)
    assert np.isnan(jaccard).tolist() == [False, True, False]


def test_attributes_are_those_of_the_assignments(found, model):
    for i, other in enumerate(found.assignments):
        own = model.labels_[found.rows]
        ari, jaccard, _ = compare(own, other, np.ones(len(own)), 3)
        assert found.ari[i] == ari
        np.testing.assert_array_equal(found.jaccard[i], jaccard)
    assert found.sizes.tolist() == np.bincount(model.labels_).tolist()
    assert (found.n_clusters == 3).all() and found.n_sample == 45
    assert found.null_ari.shape == (2, 3) and found.null_jaccard.shape == (2, 3)


# ---------------------------------------------------------------- samples


def test_half_of_the_rows_are_drawn():
    rows, weights = draw_sample(np.ones(31), np.random.default_rng(0))
    assert len(rows) == 16 and (weights == 1).all() and (np.diff(rows) > 0).all()
    rows, _ = draw_sample(np.ones(9999), np.random.default_rng(0))
    assert len(rows) == MAX_SAMPLE


def test_rows_are_drawn_by_their_multiplicity():
    weights = np.array([1.0, 3.0, 6.0, 0.5, 2.5] * 8)
    items = np.ceil(weights)
    drawn = np.zeros(len(weights))
    n = 400
    for seed in range(n):
        rows, own = draw_sample(weights, np.random.default_rng(seed))
        assert (own <= weights[rows]).all()
        # whole items, of which one has the remainder
        assert sum(np.ceil(own)) == (items.sum() + 1) // 2
        drawn[rows] += own
    # every item is drawn in half of the samples; six standard deviations
    error = np.abs(drawn / n - weights / 2)
    assert (error <= 6 * np.sqrt(0.25 * items / n)).all()


def test_a_row_of_large_weight_is_in_every_sample():
    rows, own = draw_sample(np.array([1e6, 1e6]), np.random.default_rng(0))
    assert rows.tolist() == [0, 1] and own.sum() == MAX_SAMPLE


def test_samples_are_those_that_are_fitted(model, X, monkeypatch):
    sizes = []
    fit = _stability._fit

    def watch(X, rows, *args):
        sizes.append((len(X), len(rows)))
        return fit(X, rows, *args)

    monkeypatch.setattr(_stability, "_fit", watch)
    monkeypatch.setattr(_stability, "MAX_SAMPLE", 20)
    monkeypatch.setattr(_stability, "MAX_LABELED", 50)
    found = stability(model, X, **FEW)
    # samples, then data without clusters of at most twice the size of a sample
    null = [(40, 40), *[(40, 20)] * 3]
    assert sizes == [*[(90, 20)] * 4, *null, *null]
    assert found.n_sample == 20 and len(found.rows) == 50
    assert np.isnan(found.agreement).sum() == 40
    assert "4 resamples of 20 rows" in str(found)


# ---------------------------------------------------------------- data without clusters


def test_normal_data_have_the_covariance_of_the_data():
    rng = np.random.default_rng(0)
    A = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 0.5], [0.0, 0.0, 1e-3]])
    X = rng.standard_normal((2000, 3)) @ A + [1.0, 100.0, 0.0]
    drawn = NullData(X, np.ones(2000), None, rng).draw("normal", rng)
    unit = X.std(axis=0)
    assert (np.abs(drawn.mean(axis=0) - X.mean(axis=0)) < 6 * unit / 2000**0.5).all()
    difference = np.cov(drawn.T) - np.cov(X.T)
    assert (np.abs(difference) < 0.15 * np.outer(unit, unit)).all()


@pytest.mark.parametrize("d", [1, 2, 3])
def test_uniform_data_are_in_the_hull(d):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, d)) ** 3
    drawn = NullData(X, np.ones(300), None, rng).draw("uniform", rng)
    if d == 1:
        assert X.min() <= drawn.min() < drawn.max() <= X.max()
        return
    size = np.ptp(X)
    normals = ConvexHull(X).equations
    assert (drawn @ normals[:, :-1].T + normals[:, -1] <= 1e-9 * size).all()
    # and fill it: the means of halves are those of a uniform distribution
    volumes = ConvexHull(X).volume, ConvexHull(drawn).volume
    assert volumes[1] > 0.5 * volumes[0]


def test_uniform_data_of_many_dimensions_are_in_the_box():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5)) * [1, 2, 3, 4, 0]
    drawn = NullData(X, np.ones(200), None, rng).draw("uniform", rng)
    assert drawn.shape == X.shape and (drawn[:, 4] == 0).all()
    Z, W = X[:, :4] / X[:, :4].std(axis=0), drawn[:, :4] / X[:, :4].std(axis=0)
    mean = Z.mean(axis=0)
    axes = np.linalg.svd(Z - mean, full_matrices=False)[2]
    own, other = (Z - mean) @ axes.T, (W - mean) @ axes.T
    assert (other >= own.min(axis=0) - 1e-9).all()
    assert (other <= own.max(axis=0) + 1e-9).all()


def test_categories_are_permuted_and_missing_cells_remain():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal(200), rng.integers(0, 3, 200)])
    X[:, 1] += 0.0
    X[:7, 0] = X[3:9, 1] = np.nan
    drawn = NullData(X, np.ones(200), [None, 3], rng).draw("normal", rng)
    np.testing.assert_array_equal(np.isnan(drawn), np.isnan(X))
    np.testing.assert_array_equal(np.sort(drawn[:, 1]), np.sort(X[:, 1]))
    assert (drawn[9:, 1] != X[9:, 1]).any()


def test_entries_of_a_sparse_matrix_are_permuted():
    X = sparse.random_array((50, 400), density=0.02, rng=np.random.default_rng(0))
    X = X.tocsr()
    rng = np.random.default_rng(0)
    before = X.copy()
    drawn = NullData(X, np.ones(50), None, rng).draw("normal", rng)
    assert (before != X).nnz == 0
    assert drawn.sum() == pytest.approx(X.sum())
    np.testing.assert_allclose(drawn.sum(axis=0), X.sum(axis=0))
    assert (np.diff(drawn.indptr) <= np.diff(X.indptr)).all()
    assert (drawn != X).nnz > 0


def test_flat_and_constant_data_have_null_data():
    line = np.outer(np.arange(40.0), [1.0, 2.0, 0.0]) + [0.0, 0.0, 5.0]
    rng = np.random.default_rng(0)
    for kind in ("normal", "uniform"):
        drawn = NullData(line, np.ones(40), None, rng).draw(kind, rng)
        np.testing.assert_allclose(drawn[:, 1], 2 * drawn[:, 0], atol=1e-6)
        np.testing.assert_allclose(drawn[:, 2], 5.0)


# ---------------------------------------------------------------- kinds of data


def same(a, b):
    for key, value in vars(a).items():
        np.testing.assert_array_equal(value, vars(b)[key], err_msg=key)


def test_the_result_does_not_depend_on_threads(model, X, found):
    same(stability(model, X, **FEW, n_threads=3), found)


def test_other_seeds_draw_other_samples(model, X, found):
    other = stability(model, X, **FEW | {"random_state": 1, "n_resamples": 2})
    assert (other.assignments != found.assignments[:2]).any()


def test_the_model_and_the_data_are_unchanged(model, X):
    before, copy = vars(model).copy(), X.copy()
    filters = list(warnings.filters)
    stability(model, X, **FEW)
    assert vars(model) == before and warnings.filters == filters
    np.testing.assert_array_equal(X, copy)


def test_an_interruption_leaves_nothing(model, X, monkeypatch):
    before, filters = vars(model).copy(), list(warnings.filters)
    compare = _stability.compare
    calls = []

    def interrupt(*args):
        calls.append(args)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return compare(*args)

    monkeypatch.setattr(_stability, "compare", interrupt)
    with pytest.raises(KeyboardInterrupt):
        stability(model, X, **FEW)
    assert vars(model) == before and warnings.filters == filters


def test_tables_with_categories_and_missing_cells(X):
    rng = np.random.default_rng(0)
    truth = np.argmin([((X - c) ** 2).sum(axis=1) for c in CENTERS], axis=0)
    frame = pd.DataFrame(X, columns=["a", "b"])
    frame["kind"] = np.array(["x", "y", "z"])[truth]
    frame["other"] = rng.choice(["p", "q"], 90)
    frame["name"] = [f"row {i}" for i in range(90)]
    frame.loc[:4, "a"] = np.nan
    frame.loc[5:7, "kind"] = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CDSK(3, random_state=0).fit(frame)
        found = stability(model, frame, **FEW)
    assert adjusted_rand_score(model.labels_, truth) == 1
    assert found.ari.min() > 0.9 and len(found.rows) == 90


def test_a_sample_may_miss_a_column(X):
    # only two rows have a value
    frame = pd.DataFrame(X, columns=["a", "b"])
    frame["rare"] = pd.Series([None] * 90, dtype=object)
    frame.loc[[3, 50], "rare"] = "x"
    frame["number"] = np.nan
    frame.loc[[4, 40], "number"] = 1.0, 2.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CDSK(3, random_state=0).fit(frame)
    found = stability(model, frame, **FEW)
    assert np.isfinite(found.ari).all()


def test_sparse_data():
    rng = np.random.default_rng(0)
    X = np.zeros((60, 30))
    for i in range(60):
        words = 10 * (i % 3) + rng.choice(10, 4, replace=False)
        X[i, words] = 1.0
    model = CDSK(3, metric="cosine", random_state=0).fit(sparse.csr_array(X))
    found = stability(model, sparse.csr_array(X), **FEW)
    assert found.ari.mean() > found.null_ari.mean()


def test_noise(X):
    rng = np.random.default_rng(0)
    far = rng.uniform(-40, 40, (8, 2))
    data = np.vstack([X, far])
    model = CDSK(3, noise=0.02, random_state=0).fit(data)
    found = stability(model, data, **FEW)
    assert (model.labels_ == -1).any() and (found.assignments == -1).any()
    assert found.sizes.sum() == np.count_nonzero(model.labels_ >= 0)
    # the farthest point is noise in all resamples
    assert found.agreement[np.argmax(np.abs(data).max(axis=1))] == 1


def test_rows_of_weight_0_take_no_part(X, found):
    junk = np.vstack([X, 100.0 + X[:10] ** 2])
    weights = np.repeat([1.0, 0.0], [90, 10])
    model = CDSK(3, random_state=0).fit(junk, sample_weight=weights)
    other = stability(model, junk, **FEW)
    np.testing.assert_array_equal(other.ari, found.ari)
    assert np.isnan(other.agreement[90:]).all() and (other.rows < 90).all()


def test_weights_are_multiplicities(X):
    weights = 1.0 + np.arange(90) % 3
    model = CDSK(3, random_state=0).fit(X, sample_weight=weights)
    found = stability(model, X, **FEW)
    assert found.sizes.sum() == weights.sum()
    assert found.n_sample == weights.sum() / 2


@pytest.mark.parametrize(
    "params",
    [
        {"kernel": "chi2"},
        {"kernel": "cosine"},
        {"metric": "cosine"},
        {"bandwidth": "median", "approximation": "lowrank", "rank": 60},
        {"init": np.full(90, 1 / 90)},
        {"lam": "auto"},
        {"representation": "layout"},
        {"n_neighbors": 70},
    ],
    ids=str,
)
def test_parameters_of_the_model_are_used(X, params):
    X = X - X.min() + 0.1
    model = CDSK(3, random_state=0, **params).fit(X)
    found = stability(model, X, n_resamples=2, n_null=2, random_state=0)
    assert found.ari.shape == (2,) and np.isfinite(found.ari).all()


# ---------------------------------------------------------------- number of clusters


@pytest.fixture(scope="module")
def counted(X):
    return stability(CDSK("auto", random_state=0).fit(X), X, **FEW)


def test_a_selected_number_is_selected_again(counted):
    assert counted.n_selected == 3 and counted.count_verdict == "stable"
    assert "The number of clusters is stable: 3 was selected in 100%" in str(counted)


def test_verdicts_on_the_number(counted, found):
    assert found.count_verdict is None and "number of clusters" not in str(found)
    other = replace(counted, n_clusters=np.array([3, 3, 2, 3]))
    assert other.count_verdict == "unclear"
    assert "others: 2 in 1" in str(other)
    other = replace(counted, n_clusters=np.array([2, 3, 2, 2]))
    assert other.count_verdict == "not stable"
    unstable = replace(counted, null_ari=np.ones((2, 3)))
    assert unstable.count_verdict == "not stable"


# ---------------------------------------------------------------- text, data, report


def test_words(found):
    lines = str(found).splitlines()
    assert lines[0].startswith("The clusters are stable")
    assert lines[1].startswith("cluster 0, 30 rows: found again in 100% of resamples")
    assert len(lines) == 4 and repr(found) == str(found)


def test_rows_that_do_not_agree_are_counted(found):
    agreement = found.agreement.copy()
    agreement[[4, 7]] = 0.25
    other = replace(found, agreement=agreement)
    assert "2 rows of 90 agree with less than half" in str(other)
    rows = other.to_dict()["least_agreement"]
    assert [row["row"] for row in rows[:2]] == [4, 7]


def test_plain_data(found):
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert data["ari"]["low"] <= data["ari"]["mean"] <= data["ari"]["high"]
    assert data["ari"]["null_mean"] == pytest.approx(found.null_ari.mean())
    assert [c["cluster"] for c in data["clusters"]] == [0, 1, 2]
    unknown = replace(found, jaccard=found.jaccard * [np.nan, 1, 1])
    data = json.loads(json.dumps(unknown.to_dict(), allow_nan=False))
    assert data["clusters"][0]["jaccard"] is None
    assert "no row was drawn" in str(unknown)


def test_reports(model, X, found, tmp_path):
    plain = model.report(X)
    assert plain.to_dict()["stability"] is None and "Stability" not in str(plain)
    report = model.report(X, stability=found)
    assert report.to_dict()["stability"] == found.to_dict()
    text = " ".join(str(report).split())
    assert "Stability The clusters are stable" in text
    report.to_html(tmp_path / "page.html", map=False)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    section = page.split('<h2 id="stability-title">')[1].split("</section>")[0]
    assert section.count("<tr data-cluster") == 3
    plain.to_html(tmp_path / "page.html", map=False)
    assert "stability-title" not in (tmp_path / "page.html").read_text("utf-8")


def test_reports_of_many_clusters_list_the_least_stable(model, X, found):
    k = 12
    labels = np.arange(90) % k
    many = replace(found, labels=labels, sizes=np.bincount(labels).astype(float))
    many = replace(many, jaccard=np.tile(1 - np.arange(k) / 20, (4, 1)))
    from cdsk.report._text import _format_stability

    lines = _format_stability({"stability": many.to_dict()})
    listed = [line.split(",")[0] for line in lines if line.startswith("cluster ")]
    assert listed == [f"cluster {y}" for y in range(2, 12)]


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"X": np.zeros((5, 2))}, ValueError, "with 90 rows; got 5"),
        ({"X": np.zeros((90, 3))}, ValueError, "3 features"),
        ({"X": None}, ValueError, "with 90 rows; got None"),
        ({"model": CDSK(3)}, NotFittedError, "not fitted"),
        ({"model": BlockCDSK(3)}, TypeError, "must be a fitted CDSK"),
        ({"n_resamples": 1}, ValueError, "n_resamples"),
        ({"n_null": 1}, ValueError, "n_null"),
        ({"random_state": "a"}, ValueError, "random_state"),
    ],
)
def test_bad_input_is_refused(model, X, change, error, match):
    with pytest.raises(error, match=match):
        stability(**{"model": model, "X": X, **FEW, **change})


def test_few_rows_are_refused(X):
    few = CDSK(2, random_state=0).fit(X[:15])
    with pytest.raises(ValueError, match="at least 20 rows for 2 clusters; got 15"):
        stability(few, X[:15])
    many = CDSK(8, random_state=0).fit(X[:30])
    with pytest.raises(ValueError, match="at least 32 rows for 8 clusters; got 30"):
        stability(many, X[:30])


def test_kernel_matrices_are_refused(X):
    K = cdsk.gaussian_gram(X, 1.0)
    model = CDSK(3, kernel="precomputed", random_state=0).fit(K)
    with pytest.raises(ValueError, match="fitted with kernel='precomputed'"):
        stability(model, K)


def test_results_of_other_fits_are_refused(model, X, found):
    other = CDSK(2, random_state=0).fit(X)
    with pytest.raises(ValueError, match="labels are those of another"):
        other.report(stability=found)
    with pytest.raises(TypeError, match=r"a result of cdsk\.stability"):
        other.report(stability=1)


def test_progress(model, X, capsys):
    stability(model, X, 2, n_null=2, verbose=1)
    text = capsys.readouterr().err
    assert "done in" in text and "resamples" in text and "null" in text
    stability(model, X, 2, n_null=2)
    assert capsys.readouterr().err == ""
