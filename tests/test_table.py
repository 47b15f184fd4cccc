# SPDX-License-Identifier: BSD-3-Clause
"""What rows are shown with: any table, its names, and which of its columns."""

import tracemalloc

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
        (pd.Timestamp("2020-01-02"), "2020-01-02 00:00:00"),
        ("<b>", "<b>"),
    ],
)
def test_plain_values(value, plain):
    found = as_plain(value)
    assert found == plain
    assert type(found) is type(plain)


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
