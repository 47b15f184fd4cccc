# SPDX-License-Identifier: BSD-3-Clause
"""Columns of tables of all kinds, as numbers or codes of categories."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from cdsk._profile_columns import (
    Categories,
    check_distinct_names,
    check_table,
    find_feature_names,
    iter_columns,
)

NAN = np.nan


def read(X, **options):
    """Return every column as a list of numbers or of names, None for missing cells."""
    found = {}
    X = check_table(X, X.shape[0] if hasattr(X, "shape") else len(X))
    for block in iter_columns(X, **options):
        if isinstance(block, Categories):
            names = [*block.names, None]
            found[block.column] = [names[code] for code in block.codes]
            continue
        for i, j in enumerate(block.columns.tolist()):
            values = block.get_column(i).tolist()
            found[j] = [None if value != value else value for value in values]
    return [found[j] for j in sorted(found)]


def test_arrays_of_numbers_and_missing_cells():
    X = np.array([[1.0, NAN], [2.0, 5.0]])
    expected = [[1.0, 2.0], [None, 5.0]]
    assert read(X) == expected
    assert read(X.tolist()) == expected
    assert read(np.ma.masked_invalid(X)) == expected
    assert read(sparse.csr_array(X)) == expected
    assert read(sparse.coo_matrix(X)) == expected
    assert read(X.astype(np.float16)) == expected


def test_many_columns_are_read_in_blocks(monkeypatch):
    X = np.arange(30.0).reshape(3, 10)
    monkeypatch.setattr("cdsk._profile_columns._BLOCK_CELLS", 7)
    monkeypatch.setattr("cdsk._profile_columns._SPARSE_COLUMNS", 3)
    assert len(list(iter_columns(X))) == 5
    assert read(X) == read(sparse.csr_array(X)) == X.T.tolist()


def test_arrays_of_text_objects_and_booleans():
    assert read(np.array([["a"], ["b"], ["a"]])) == [["a", "b", "a"]]
    assert read(np.array([[True], [False]])) == [["True", "False"]]
    table = [[1, "a", None], [Decimal("0.5"), None, True], [None, "1", False]]
    assert read(table) == read(np.array(table, dtype=object))
    assert read(table) == [
        [1.0, 0.5, None],
        ["a", None, "1"],
        [None, "True", "False"],
    ]
    # numbers next to text in a list stay numbers
    assert read([[1.5, "a"], [2.5, "b"]]) == [[1.5, 2.5], ["a", "b"]]


KINDS = {
    "Int64": ([1, None, 2], [1.0, None, 2.0]),
    "Float64": ([0.5, None, 2], [0.5, None, 2.0]),
    "float32": ([0.5, None, 2], [0.5, None, 2.0]),
    "boolean": ([True, None, False], ["True", None, "False"]),
    "string": (["a", None, "b"], ["a", None, "b"]),
    "category": (["a", None, "b"], ["a", None, "b"]),
    "object": (["a", None, "b"], ["a", None, "b"]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_columns_of_pandas(kind):
    cells, expected = KINDS[kind]
    assert read(pd.DataFrame({"x": pd.Series(cells, dtype=kind)})) == [expected]


def test_categories_of_numbers_are_categories():
    frame = pd.DataFrame({"x": pd.Categorical([3, 1, 3], categories=[1, 2, 3])})
    assert read(frame) == [["3", "1", "3"]]


def test_columns_of_polars():
    polars = pytest.importorskip("polars")
    types = {
        "int": polars.Int32,
        "float": polars.Float64,
        "decimal": polars.Decimal(10, 2),
        "bool": polars.Boolean,
        "text": polars.String,
        "category": polars.Categorical,
        "enum": polars.Enum(["a", "b"]),
        "null": polars.Null,
    }
    text = ["a", None, "b"]
    cells = [
        *([1, None, 2], [0.5, None, NAN], [Decimal("0.5"), None, Decimal(2)]),
        *([True, None, False], text, text, text, [None] * 3),
    ]
    frame = polars.DataFrame(dict(zip(types, cells, strict=True)), schema=types)
    assert read(frame) == [
        *([1.0, None, 2.0], [0.5, None, None], [0.5, None, 2.0]),
        *(["True", None, "False"], text, text, text, [None] * 3),
    ]


DAY = datetime.date(2026, 1, 1)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[1.0], [np.inf]], "finite numbers or missing cells; got inf at row 1, "),
        (sparse.csr_array([[0, 1], [0, -np.inf]]), "infinity at row 1, column 1"),
        ([[1], [10**400]], "got inf at row 1, column 0"),
        (np.array([[DAY], [None]]), "a cell of type date in column 0"),
        (np.array([["2026-01-01"]], dtype="M8[s]"), "type datetime64 in column 0"),
        (pd.DataFrame({"t": pd.to_datetime(["2026-01-01"])}), "Timestamp in column 't"),
        (pd.DataFrame({"t": [[1], [2]]}), r"type list in column 't': \[1\]. Leave the"),
        (pd.DataFrame({"t": [{1}, "a"]}), "type set in column 't'"),
        (np.array([[1j]]), "type complex in column 0"),
        (sparse.csr_array([[1j]]), "real numbers; got a sparse array of complex128"),
    ],
)
def test_what_is_refused(table, message):
    n_rows = len(table) if isinstance(table, list) else table.shape[0]
    with pytest.raises(ValueError, match=message):
        list(iter_columns(check_table(table, n_rows)))


def test_what_is_refused_may_be_left_out():
    table = [[1.0, np.inf, DAY], [2.0, 3.0, None]]
    assert read(table, is_strict=False) == [[1.0, 2.0], [None, 3.0]]
    X = sparse.csr_array([[1.0, np.inf], [2.0, 3.0]])
    assert read(X, is_strict=False) == [[1.0, 2.0], [None, 3.0]]
    assert np.isinf(X.toarray()).any()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.ones((3, 2)), r"must have the 2 rows of the fit; got shape \(3, 2\)"),
        (np.ones(2), r"got shape \(2,\)"),
        (pd.Series([1, 2]), r"got shape \(2,\)"),
        ([[1, 2], [3]], "as many cells in every row"),
        (3.0, r"got shape \(\)"),
    ],
)
def test_invalid_tables(table, message):
    with pytest.raises(ValueError, match=message):
        check_table(table, 2)


def test_tables_that_are_not_computed():
    polars = pytest.importorskip("polars")
    lazy = polars.DataFrame({"x": [1, 2]}).lazy()
    with pytest.raises(ValueError, match=r"not computed. Pass X.collect\(\)"):
        check_table(lazy, 2)
    array = pytest.importorskip("dask.array")
    with pytest.raises(ValueError, match=r"not computed. Pass X.compute\(\)"):
        check_table(array.ones((2, 2)), 2)


def test_names():
    frame = pd.DataFrame([[1, 2]], columns=["a", 5])
    assert find_feature_names(frame) == ["a", "5"]
    assert find_feature_names(frame, ["x", None]) == ["x", "feature 1"]
    assert find_feature_names(np.ones((1, 2)), fitted=["u", "v"]) == ["u", "v"]
    assert find_feature_names(np.ones((1, 2)), fitted=["u"]) == [
        *("feature 0", "feature 1")
    ]
    with pytest.raises(ValueError, match="one name for each of the 2 columns of X; g"):
        find_feature_names(frame, ["x"])
    with pytest.raises(ValueError, match="got 'a' for columns 0 and 2, counted from 0"):
        check_distinct_names(["a", "b", "a"])
