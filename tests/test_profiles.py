# SPDX-License-Identifier: BSD-3-Clause
"""Profiles of clusters, compared with pandas and scipy.stats."""

import math
import sys
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from sklearn.datasets import make_blobs

from cdsk import CDSK
from cdsk._profiles import (
    MAX_CATEGORIES,
    LabeledTable,
    Moments,
    compute_profiles,
)


def profile(X, labels, weights=None, names=None):
    n_columns = np.shape(X)[1]
    if names is None:
        names = getattr(X, "columns", [f"feature {j}" for j in range(n_columns)])
    table = LabeledTable.from_checked(X, names, np.asarray(labels), weights)
    return compute_profiles(table)


@pytest.fixture(scope="module")
def labels():
    """Clusters of 2 to 80 rows, and noise."""
    return np.repeat([0, 1, 2, 3, -1], [80, 50, 20, 2, 8])


@pytest.fixture(scope="module")
def frame(labels):
    rng = np.random.default_rng(0)
    n = len(labels)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=n) + (labels == 0),
            "b": np.where(rng.random(n) < 0.2, np.nan, rng.exponential(size=n)),
            "color": pd.Categorical(rng.choice(["red", "green", "blue"], n)),
            "kind": np.where(labels == 1, "x", rng.choice(["x", "y"], n)),
            "is_new": rng.random(n) < 0.3,
            "text": rng.choice(["u", "v"], n),
        }
    )
    frame.loc[labels == 2, "text"] = None
    return frame


@pytest.fixture(scope="module")
def found(frame, labels):
    return profile(frame, labels)


def get_table(found):
    return found.to_frame().set_index(["cluster", "feature", "kind", "category"])


# --- identities and other implementations ---------------------------------------------


def test_means_are_those_of_pandas(found, frame, labels):
    table = get_table(found).sort_index()
    for cluster in np.unique(labels):
        for name in ("a", "b"):
            line = table.loc[cluster, name, "number"].iloc[0]
            inside, outside = frame[name][labels == cluster], frame[labels != cluster]
            deviation = frame[name].std()
            assert line["size"] == len(inside)
            assert line["value"] == pytest.approx(inside.mean(), rel=1e-12)
            assert line["elsewhere"] == pytest.approx(outside[name].mean(), rel=1e-12)
            effect = (inside.mean() - outside[name].mean()) / deviation
            assert line["effect"] == pytest.approx(effect, rel=1e-10)
            assert np.isnan(line["lift"])


def test_shares_are_those_of_pandas(found, frame, labels):
    table = found.to_frame()
    shares = table[table["kind"] == "category"]
    assert len(shares) == 5 * (3 + 2 + 2 + 2)
    for line in shares.itertuples():
        cells = frame[line.feature].astype(object)
        is_it = (cells.astype(str) == line.category)[cells.notna()].astype(float)
        own = labels[cells.notna()] == line.cluster
        if not own.any():  # all are missing
            assert np.isnan(line.value)
            continue
        assert line.value == pytest.approx(is_it[own].mean())
        assert line.elsewhere == pytest.approx(is_it[~own].mean())
        assert line.lift == pytest.approx(is_it[own].mean() / is_it.mean())
        difference = is_it[own].mean() - is_it[~own].mean()
        assert line.effect == pytest.approx(difference / is_it.std(ddof=0))
    missing = table[table["kind"] == "missing"]
    assert set(missing["feature"]) == {"b", "text"}
    for line in missing.itertuples():
        is_gone = frame[line.feature].isna()
        inside, outside = (
            is_gone[labels == line.cluster],
            is_gone[labels != line.cluster],
        )
        assert line.value == pytest.approx(inside.mean())
        assert line.elsewhere == pytest.approx(outside.mean())


def test_intervals_of_means_are_those_of_welch_or_of_random_samples(
    found, frame, labels
):
    alpha = 0.05 / found.value.size
    n_welch = 0
    for i, line in enumerate(found.lines):
        if line.kind != "number":
            continue
        for y, cluster in enumerate(found.clusters):
            cells = frame[line.feature]
            inside, outside = (
                cells[part].dropna() for part in (labels == cluster, labels != cluster)
            )
            result = stats.ttest_ind(inside, outside, equal_var=False)
            low, high = result.confidence_interval(1 - alpha)
            welch = (high - low) / 2
            n, m, deviation = len(inside), len(outside), cells.std()
            chance = stats.t.isf(alpha / 2, n + m - 2) * np.sqrt(1 / n + 1 / m)
            half = max(welch / deviation, chance)
            n_welch += welch / deviation > chance
            effect = found.effect[y, i]
            assert found.effect_low[y, i] == pytest.approx(effect - half, rel=1e-8)
            assert found.effect_high[y, i] == pytest.approx(effect + half, rel=1e-8)
    assert 0 < n_welch < 10


def test_intervals_of_shares_are_newcombe_with_exact_limits(found, frame, labels):
    alpha = 0.05 / found.value.size
    n_found = 0
    for i, line in enumerate(found.lines):
        if line.kind != "category" or line.feature == "text":
            continue
        is_it = frame[line.feature].astype(str) == line.category
        for y, cluster in enumerate(found.clusters):
            limits = []
            for part in (labels == cluster, labels != cluster):
                count, n = int(is_it[part].sum()), int(part.sum())
                exact = stats.binomtest(count, n).proportion_ci(1 - alpha, "exact")
                limits.append((count / n, exact.low, exact.high))
            (p, low_p, high_p), (q, low_q, high_q) = limits
            deviation = is_it.std(ddof=0)
            low = p - q - np.hypot(p - low_p, high_q - q)
            high = p - q + np.hypot(high_p - p, q - low_q)
            assert found.effect_low[y, i] == pytest.approx(low / deviation, abs=1e-8)
            assert found.effect_high[y, i] == pytest.approx(high / deviation, abs=1e-8)
            n_found += 1
    assert n_found == 35


def test_a_sample_weight_is_a_number_of_equal_rows(frame, labels):
    times = np.random.default_rng(1).integers(0, 4, len(labels))
    repeated = np.repeat(np.arange(len(labels)), times)
    weighted = profile(frame, labels, times.astype(float))
    copied = profile(frame.iloc[repeated], labels[repeated])
    assert weighted.lines == copied.lines
    np.testing.assert_array_equal(weighted.sizes, copied.sizes)
    for key in ("value", "elsewhere", "effect", "effect_low", "effect_high", "lift"):
        expected = getattr(copied, key)
        np.testing.assert_allclose(getattr(weighted, key), expected, atol=1e-9)
    np.testing.assert_array_equal(weighted.rank, copied.rank)


def test_order_of_rows_and_columns_does_not_matter(frame, labels, found):
    rng = np.random.default_rng(2)
    rows, columns = rng.permutation(len(labels)), rng.permutation(frame.shape[1])
    other = profile(frame.iloc[rows, columns], labels[rows])
    expected, table = get_table(found).sort_index(), get_table(other).sort_index()
    pd.testing.assert_frame_equal(table, expected, rtol=1e-9)
    assert str(other) == str(found)


def test_units_do_not_matter():
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    X = rng.normal(size=(60, 5)) + labels[:, np.newaxis]
    units, shifts = 10.0 ** np.array([-300, -9, 0, 9, 300]), [0, 1e-3, 1e6, 0, 0]
    expected, other = profile(X, labels), profile(X * units + shifts, labels)
    np.testing.assert_allclose(other.effect, expected.effect, rtol=1e-8)
    np.testing.assert_allclose(other.effect_low, expected.effect_low, rtol=1e-8)
    means = expected.value * units + shifts
    np.testing.assert_allclose(other.value, means, rtol=1e-12)


def test_outliers_of_one_cluster_leave_others_exact():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 20)
    X = rng.normal(size=(60, 1))
    X[0] = 1e12
    found = profile(X, labels)
    inside, outside = (X[labels == 1, 0], X[labels == 2, 0])
    np.testing.assert_allclose(found.value[1:, 0], [inside.mean(), outside.mean()])
    # 0 is compared with 1 and 2 only
    assert found.elsewhere[0, 0] == pytest.approx(X[20:].mean(), rel=1e-12)


def test_means_are_exact_far_from_0(rng):
    X = 1e9 + rng.random((40_000, 3))
    labels = np.arange(len(X)) % 2
    found = profile(X, labels)
    for y in range(2):
        exact = [math.fsum(column) / 20_000 for column in X[labels == y].T.tolist()]
        assert (np.abs(found.value[y] - exact) <= 2 * np.spacing(1e9)).all()


def test_constant_columns_differ_nowhere(rng):
    constants, labels = rng.normal(size=200), np.repeat([0, 1, 2], [70, 50, 13])
    X = np.tile(constants, (133, 1))
    for table in (X, sparse.csr_array(X)):
        found = profile(table, labels)
        np.testing.assert_array_equal(found.effect, 0.0)
        np.testing.assert_array_equal(found.effect_low, 0.0)
        np.testing.assert_array_equal(found.value, X[:3])


def test_moments_merge_as_of_all_rows():
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=(n, 3)) * 10.0**n for n in (1, 4, 6)]
    inside = Moments(
        np.array([np.full(3, len(part)) for part in parts], dtype=float),
        np.array([part.mean(axis=0) for part in parts]),
        np.array([part.var(axis=0) * len(part) for part in parts]),
    )
    outside = inside.compute_outside()
    for y in range(3):
        rest = np.concatenate(parts[:y] + parts[y + 1 :])
        np.testing.assert_array_equal(outside.n[y], len(rest))
        np.testing.assert_allclose(outside.mean[y], rest.mean(axis=0))
        np.testing.assert_allclose(outside.ss[y], rest.var(axis=0) * len(rest))


def test_all_kinds_of_tables_have_the_same_profiles(labels):
    rng = np.random.default_rng(0)
    X = rng.poisson(0.6, (len(labels), 6)).astype(float) * (1 + (labels == 1))[:, None]
    X[3:40, 2] = np.nan
    X[:, 4], X[:, 5] = 0.3, 0.0
    expected = profile(X, labels)
    tables = [sparse.csr_array(X), np.ma.masked_invalid(X), pd.DataFrame(X)]
    for table in tables:
        other = profile(table, labels, names=[f"feature {j}" for j in range(6)])
        assert other.lines == expected.lines
        np.testing.assert_allclose(other.value, expected.value, atol=1e-12)
        np.testing.assert_allclose(other.effect_low, expected.effect_low, atol=1e-9)
        np.testing.assert_array_equal(other.rank, expected.rank)
    # constant columns differ nowhere
    np.testing.assert_array_equal(expected.effect[:, -2:], 0.0)


def test_frames_of_polars(frame, labels, found):
    polars = pytest.importorskip("polars")
    columns = {
        name: frame[name].astype(object).where(frame[name].notna(), None).tolist()
        for name in frame
    }
    other = profile(polars.DataFrame(columns), labels)
    assert other.lines == found.lines
    np.testing.assert_allclose(other.effect_low, found.effect_low, atol=1e-9)
    table = polars.DataFrame(other.to_dict())
    assert table["feature"].to_list() == found.to_frame()["feature"].tolist()


def test_sparse_tables_are_not_converted_to_dense():
    n, d = 1000, 10**5
    rng = np.random.default_rng(0)
    places = rng.integers(n, size=5000), rng.integers(d, size=5000)
    wide = sparse.csr_array(sparse.coo_array((np.ones(5000), places), shape=(n, d)))
    table = LabeledTable.from_checked(wide, map(str, range(d)), np.arange(n) % 2)
    tracemalloc.start()
    found = compute_profiles(table)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.value.shape == (2, d)
    assert peak < 8 * n * d / 8


# --- honesty --------------------------------------------------------------------------


def test_of_random_labels_nothing_is_mentioned():
    rng = np.random.default_rng(0)
    n_wrong = 0
    for _ in range(60):
        X = rng.normal(size=(100, 6))
        X[:, 3:] = X[:, 3:] > 0.8
        frame = pd.DataFrame(X).astype({3: str, 4: str, 5: str})
        found = profile(frame, rng.integers(0, 5, 100) ** 2 // 4, names=list("abcdef"))
        n_wrong += (found.conservative != 0).any()
    # the promise is 5 %
    assert n_wrong <= 6


@pytest.mark.parametrize("size", [1, 2])
def test_small_clusters_do_not_shout(size):
    """Nor if all of its few rows are equal, as a count often is."""
    rng = np.random.default_rng(0)
    X = (rng.random((200, 1)) < 0.5).astype(float)
    X[:size] = 1.0
    labels = (np.arange(200) >= size).astype(int)
    for table in (X, X.astype(str)):
        assert (profile(table, labels).conservative == 0).all()
    # but the mean of many is
    X[:30], labels[:30] = 1.0, 0
    assert (profile(X, labels).conservative != 0).all()


def test_ranks_are_by_the_conservative_end():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], [60, 140])
    X = rng.normal(size=(200, 2))
    X[:60, 0] += 1.0
    # a larger effect, of three rows that have a value
    X[:60, 1] = np.nan
    X[:3, 1] = [1.0, 2.0, 3.0]
    found = profile(X, labels)
    assert found.effect[0, 1] > found.effect[0, 0]
    assert found.rank[0, 0] < found.rank[0, 1]


def test_ranks_sort_the_table(found):
    table = found.to_frame()
    for y, cluster in enumerate(found.clusters):
        part = table[table["cluster"] == cluster]
        n_lines = len(found.lines)
        assert part["rank"].tolist() == list(range(1, n_lines + 1))
        low, high = part["effect_low"], part["effect_high"]
        sure = np.where(low > 0, low, np.where(high < 0, -high, 0.0))
        assert (np.diff(sure) <= 1e-9).all()
        np.testing.assert_array_equal(part["differs"], sure > 0)
        order = np.argsort(found.rank[y])
        assert part["feature"].tolist() == [found.lines[i].feature for i in order]


# --- words ----------------------------------------------------------------------------


def test_words():
    labels = np.repeat([0, 1, -1], [60, 60, 1])
    n = len(labels)
    frame = pd.DataFrame(
        {
            "height": np.where(labels == 0, 10.0, 2.0) + np.arange(n) % 2,
            "color": np.where(labels == 1, "red", "blue"),
            "none": 1.0,
        }
    )
    frame.loc[labels == 1, "height"] = np.nan
    lines = str(profile(frame, labels)).splitlines()
    assert lines[0] == (
        "noise, 1 row: no feature differs by more than chance may explain"
    )
    assert lines[1] == (
        "cluster 0, 60 rows: color = blue (100%, elsewhere 2%), "
        "height rarely missing (0%, elsewhere 98%)"
    )
    assert lines[2] == (
        "cluster 1, 60 rows: height missing (100%, elsewhere 0%), "
        "color = red (100%, elsewhere 0%)"
    )
    frame["height"] = np.where(labels == 0, 10.0, 2.0) + np.arange(n) % 2
    lines = str(profile(frame[["height"]], labels)).splitlines()
    assert lines[1:] == [
        "cluster 0, 60 rows: height high (10.5, elsewhere 2.5)",
        "cluster 1, 60 rows: height low (2.5, elsewhere 10.4)",
    ]


def test_a_feature_is_mentioned_once(found):
    for cluster in found.summarize(20):
        names = [(f["column"], f["kind"] == "missing") for f in cluster["features"]]
        assert len(set(names)) == len(names)
    assert all(len(c["features"]) <= 1 for c in found.summarize(1))


def test_only_one_cluster(frame):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = profile(frame, np.zeros(len(frame), dtype=int))
    assert str(found) == "cluster 0, 160 rows: no other rows to compare with"
    assert np.isnan(found.elsewhere).all()
    assert not found.to_frame()["differs"].any()


def test_rare_categories_have_no_line():
    rng = np.random.default_rng(0)
    names = np.array([f"id {i}" for i in range(80)])
    cells = rng.permutation(np.repeat(names, np.arange(80) + 1))
    found = profile(cells[:, np.newaxis], rng.integers(0, 2, len(cells)))
    kept = {line.category for line in found.lines}
    assert kept == set(names[-MAX_CATEGORIES:])


# --- the estimator --------------------------------------------------------------------


@pytest.fixture(scope="module")
def data():
    return make_blobs(150, 3, centers=3, random_state=0)[0]


@pytest.fixture(scope="module")
def model(data):
    return CDSK(3, noise=0.02, random_state=0).fit(data)


def test_labels_of_the_fit(model, data):
    assert (model.labels_ < 0).any()
    found = model.profiles(data)
    np.testing.assert_array_equal(found.clusters, [-1, 0, 1, 2])
    expected = profile(data, model.labels_)
    np.testing.assert_array_equal(found.effect_low, expected.effect_low)
    assert [line.feature for line in found.lines] == [f"feature {j}" for j in range(3)]


def test_labels_of_new_rows(model, data):
    new = np.random.default_rng(0).normal(size=(40, 3)) + data[:40]
    labels = model.predict(new)
    other = pd.DataFrame({"size": new[:, 0], "name": np.where(labels == 0, "a", "b")})
    found = model.profiles(other, labels=labels)
    assert {line.feature for line in found.lines} == {"size", "name"}
    np.testing.assert_array_equal(found.clusters, np.unique(labels))
    weights = np.arange(1.0, 41.0)
    weighted = model.profiles(other, labels=labels, sample_weight=weights)
    assert weighted.sizes.sum() == weights.sum()


def test_weights_of_the_fit_are_used(data):
    times = np.arange(150) % 3
    model = CDSK(3, random_state=0).fit(data, sample_weight=times)
    assert model.profiles(data).sizes.sum() == times.sum()
    ones = np.ones(150)
    assert model.profiles(data, sample_weight=ones).sizes.sum() == 150


def test_selected_number_of_clusters(data):
    model = CDSK("auto", random_state=0).fit(data)
    assert len(model.profiles(data).clusters) == model.n_clusters_


def test_names_of_the_fit(data):
    frame = pd.DataFrame(data, columns=["größe", "高さ", "ارتفاع"])
    model = CDSK(3, random_state=0).fit(frame)
    found = model.profiles(data)
    assert [line.feature for line in found.lines] == frame.columns.tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"X": np.ones((9, 2))},
            r"the 150 rows of the fit; got shape \(9, 2\). Pass l",
        ),
        ({"X": np.ones((9, 2)), "labels": [0] * 8}, "the 8 rows that have labels; got"),
        ({"X": np.ones((2, 2)), "labels": [0, 3]}, r"from -1 \(noise\) to 2; got 0 to"),
        ({"X": np.ones((2, 2)), "labels": [0.0, 1.0]}, "labels must hold a cluster"),
        ({"X": np.ones((0, 2)), "labels": []}, "labels must hold a cluster for every "),
        ({"X": np.ones((150, 0))}, "at least one column; got none"),
        ({"X": np.full((150, 1), np.inf)}, "got inf at row 0, column 0"),
        ({"X": pd.DataFrame({"t": [[1]] * 150})}, "type list in column 't'"),
        ({"X": np.ones((150, 2)), "sample_weight": [1]}, "`sample_weight` must hold a"),
        (
            {"X": pd.DataFrame(np.ones((150, 2)), columns=["a", "a"])},
            "columns of different names; got 'a' for columns 0 and 1",
        ),
    ],
)
def test_invalid_arguments(model, options, message):
    for method in (model.profiles, model.rules):
        with pytest.raises(ValueError, match=message):
            method(**options)


def test_without_pandas(found, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="to_frame requires pandas"):
        found.to_frame()
    assert len(found.to_dict()["cluster"]) == found.value.size
