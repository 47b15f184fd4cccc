# SPDX-License-Identifier: BSD-3-Clause
"""What rows are shown with: any table, its names, and which of its columns."""

import tracemalloc
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.feature_selection import f_classif

from cdsk._explain.table import MOST_FEATURES, Table, as_plain

X = np.arange(12.0).reshape(4, 3)
ROWS = np.array([2, 0])


def check_values(given):
    table = Table(given, 4, None, None)
    columns = table.columns(ROWS, np.array([0, 1]))
    assert columns == [0, 1, 2]
    assert table.values(ROWS, columns) == [[6, 7, 8], [0, 1, 2]]


@pytest.mark.parametrize(
    "given",
    [
        X,
        X.tolist(),
        sparse.csr_matrix(X),
        sparse.coo_array(X),
        pd.DataFrame(X, list("wxyz")),
    ],
    ids=lambda given: type(given).__name__,
)
def test_the_same_values_of_every_kind_of_table(given):
    check_values(given)


def test_values_of_polars():
    polars = pytest.importorskip("polars")
    check_values(polars.DataFrame(X, schema=["0", "1", "2"]))


def check_missing(frame, n_columns):
    table = Table(frame, 4, None, None)
    assert table.values([0, 1], range(n_columns)) == [[None] * n_columns, KNOWN]


KNOWN = [0.5, 3, True, "x", "2026-01-02"]


def test_missing_cells_of_pandas():
    kinds = "Float64", "Int64", "boolean", "string", "object"
    values = *KNOWN[:4], date(2026, 1, 2)
    for missing in (None, pd.NA, np.nan):
        frame = pd.DataFrame(
            {
                kind: pd.Series([missing, value] * 2, dtype=kind)
                for kind, value in zip(kinds, values, strict=True)
            }
        )
        check_missing(frame, 5)
    times = pd.DataFrame({"t": pd.to_datetime([None, "2026-01-02"] * 2)})
    assert Table(times, 4, None, None).values([0], [0]) == [[None]]
    plain = pd.DataFrame({"t": [np.nan, 0.5] * 2, "c": pd.Categorical([None, "x"] * 2)})
    assert Table(plain, 4, None, None).values([0, 1], [0, 1]) == [
        [None, None],
        [0.5, "x"],
    ]


def test_missing_cells_of_polars():
    polars = pytest.importorskip("polars", reason="polars is not installed")
    values = *KNOWN[:4], date(2026, 1, 2)
    check_missing(polars.DataFrame({str(v): [None, v] * 2 for v in values}), 5)
    frame = polars.DataFrame({"x": [float("nan"), 0.5] * 2})
    assert Table(frame, 4, None, None).values([0, 1], [0]) == [[None], [0.5]]


def test_masked_cells_are_missing():
    hidden = np.ma.masked_equal(X, 7)
    assert Table(hidden, 4, None, None).values(ROWS, [0, 1]) == [[6, None], [0, 1]]


def test_columns_with_missing_cells_are_ranked_by_the_others():
    rng = np.random.default_rng(0)
    clusters = np.arange(60) % 2
    wide = rng.normal(size=(60, MOST_FEATURES + 1))
    wide[:, 5] += 9.0 * clusters
    masked = np.ma.masked_array(wide, np.zeros(wide.shape, dtype=bool))
    masked[7, 5] = np.ma.masked
    frame = pd.DataFrame(wide).astype("Float64")
    frame.iloc[7, 5] = pd.NA
    for given in (masked, frame):
        table = Table(given, 60, None, None)
        assert table.columns(np.arange(60), clusters)[0] == 5


def test_rows_and_columns_without_a_name():
    names = ["a", None, np.nan, pd.NA]
    assert Table(X, 4, None, names).names([0, 1, 2, 3]) == ["a", None, None, None]
    assert Table(X, 4, None, ["", "b", "c", "d"]).names([0, 1]) == [None, "b"]
    assert Table(X, 4, ["a", None, ""], None).feature_names == [
        *("a", "feature 1", "feature 2")
    ]


def test_names():
    frame = pd.DataFrame(X, columns=["a", "b", 3])
    assert Table(frame, 4, None, None).feature_names == ["a", "b", "3"]
    assert Table(frame, 4, "xyz", None).feature_names == ["x", "y", "z"]
    assert Table(X, 4, None, None, ["u", "v", "w"]).feature_names == ["u", "v", "w"]
    # another table than that of the fit
    names = [f"feature {j}" for j in range(3)]
    assert Table(X, 4, None, None, ["u", "v"]).feature_names == names
    assert Table(X, 4, None, range(10, 14)).names(ROWS) == ["12", "10"]
    assert Table(X, 4, None, None).names(ROWS) is None


def test_without_a_table():
    table = Table(None, 4, None, None)
    assert table.columns(ROWS, np.array([0, 1])) == []
    assert table.values(ROWS, []) == [None, None]


def test_columns_are_ranked_as_by_the_test_of_equal_means():
    rng = np.random.default_rng(0)
    clusters = rng.integers(0, 3, 200)
    wide = rng.normal(size=(200, 40)) + np.outer(clusters, rng.normal(size=40))
    wide *= 10.0 ** rng.integers(-150, 150, 40)
    found = Table(wide, 200, None, None).columns(np.arange(200), clusters)
    # in a unit in which squares do not overflow
    ratios, _ = f_classif(wide / np.abs(wide).max(axis=0), clusters)
    assert found == np.argsort(-ratios)[:MOST_FEATURES].tolist()


def test_columns_of_sparse_tables_are_ranked_alike():
    rng = np.random.default_rng(0)
    clusters = rng.integers(0, 3, 200)
    counts = rng.poisson(0.3 + clusters[:, np.newaxis] * rng.random(50), (200, 50))
    counts[:, :2] = 0, 3
    rows = np.arange(200)
    dense = Table(counts, 200, None, None).columns(rows, clusters)
    found = Table(sparse.csr_matrix(counts), 200, None, None).columns(rows, clusters)
    assert found == dense


def test_sparse_tables_are_not_filled():
    n, d = 1000, 10**5
    rng = np.random.default_rng(0)
    places = rng.integers(n, size=5000), rng.integers(d, size=5000)
    wide = sparse.coo_array((np.ones(5000), places), shape=(n, d))
    table = Table(wide, n, None, None)
    tracemalloc.start()
    columns = table.columns(np.arange(n), np.arange(n) % 2)
    values = table.values([0, 1], columns)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.shape(values) == (2, MOST_FEATURES)
    assert peak < 8 * n * d / 10


def test_columns_of_text_and_without_variance_come_last():
    n = MOST_FEATURES + 3
    wide = np.random.default_rng(0).normal(size=(50, n)).astype(object)
    wide[:, 0] = "text"
    wide[:, 1] = 0.1
    wide[:, 2] = np.nan
    found = Table(wide, 50, None, None).columns(np.arange(50), np.arange(50) % 2)
    assert sorted(found) == list(range(3, n))


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.float32(0.5), 0.5),
        (np.int8(3), 3),
        (np.True_, "True"),
        (True, True),
        (float("nan"), None),
        (float("-inf"), None),
        (None, None),
        (pd.NA, None),
        (pd.NaT, None),
        (np.datetime64("NaT", "s"), None),
        (Decimal("NaN"), None),
        (np.ma.masked, None),
        ("nan", "nan"),
        ([1, 2], "[1, 2]"),
        (pd.Timestamp("2020-01-02"), "2020-01-02 00:00:00"),
        ("<b>", "<b>"),
    ],
)
def test_plain_values(value, plain):
    found = as_plain(value)
    assert found == plain
    assert type(found) is type(plain)


def test_rows_of_a_frame_are_named_by_its_index():
    frame = pd.DataFrame(X, index=["a", "b", "c", "d"])
    assert Table(frame, 4, None, None).names([2, 0]) == ["c", "a"]
    assert Table(frame, 4, None, "efgh").names([2, 0]) == ["g", "e"]
    assert Table(frame[::-1].reset_index(drop=True), 4, None, None).names([2]) is None
    # rows that are left of a longer frame have the numbers they had there
    assert Table(pd.DataFrame(X)[2:], 2, None, None).names([1]) == ["3"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X[:3], 4, None, None), r"a row for each of the 4 rows .*; got shape \(3, 3"),
        (
            (X[:, 0], 4, None, None),
            r"a row for each of the 4 rows .*; got shape \(4,\)",
        ),
        ((X, 4, ["a"], None), "feature_names must hold one name for each of the 3 col"),
        ((X, 4, None, ["a"]), "row_names must hold one name for each of the 4 rows; g"),
        ((None, 4, ["a"], None), "feature_names must come with X; got X=None"),
    ],
)
def test_refusals(arguments, message):
    with pytest.raises(ValueError, match=message):
        Table(*arguments)
