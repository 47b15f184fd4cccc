# SPDX-License-Identifier: BSD-3-Clause
"""Names and features of the rows of a report, from any kind of table."""

from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from cdsk.report._feature_table import FeatureTable, to_json_value

X = np.arange(12.0).reshape(4, 3)
ROWS = np.array([2, 0])


def check_values(given):
    table = FeatureTable(given, 4)
    assert table.get_values(ROWS, [0, 1, 2]) == [[6, 7, 8], [0, 1, 2]]


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
def test_every_table_type_has_the_same_values(given):
    check_values(given)


def test_values_of_polars_data_frames():
    polars = pytest.importorskip("polars")
    check_values(polars.DataFrame(X, schema=["0", "1", "2"]))


def check_missing(frame, n_columns):
    table = FeatureTable(frame, 4)
    assert table.get_values([0, 1], range(n_columns)) == [[None] * n_columns, KNOWN]


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
    assert FeatureTable(times, 4).get_values([0], [0]) == [[None]]
    plain = pd.DataFrame({"t": [np.nan, 0.5] * 2, "c": pd.Categorical([None, "x"] * 2)})
    assert FeatureTable(plain, 4).get_values([0, 1], [0, 1]) == [
        [None, None],
        [0.5, "x"],
    ]


def test_missing_cells_of_polars():
    polars = pytest.importorskip("polars", reason="polars is not installed")
    values = *KNOWN[:4], date(2026, 1, 2)
    check_missing(polars.DataFrame({str(v): [None, v] * 2 for v in values}), 5)
    frame = polars.DataFrame({"x": [float("nan"), 0.5] * 2})
    assert FeatureTable(frame, 4).get_values([0, 1], [0]) == [[None], [0.5]]


def test_masked_cells_are_missing():
    hidden = np.ma.masked_equal(X, 7)
    assert FeatureTable(hidden, 4).get_values(ROWS, [0, 1]) == [[6, None], [0, 1]]


def test_missing_names_of_rows_and_columns():
    names = ["a", None, np.nan, pd.NA]
    assert FeatureTable(X, 4, row_names=names).get_row_names([0, 1, 2, 3]) == [
        "a",
        None,
        None,
        None,
    ]
    assert FeatureTable(X, 4, row_names=["", "b", "c", "d"]).get_row_names([0, 1]) == [
        None,
        "b",
    ]
    assert FeatureTable(X, 4, feature_names=["a", None, ""]).feature_names == [
        *("a", "feature 1", "feature 2")
    ]


def test_names():
    frame = pd.DataFrame(X, columns=["a", "b", 3])
    assert FeatureTable(frame, 4).feature_names == ["a", "b", "3"]
    assert FeatureTable(frame, 4, feature_names="xyz").feature_names == ["x", "y", "z"]
    assert FeatureTable(X, 4, fitted_names=["u", "v", "w"]).feature_names == [
        "u",
        "v",
        "w",
    ]
    # not the table of the fit
    names = [f"feature {j}" for j in range(3)]
    assert FeatureTable(X, 4, fitted_names=["u", "v"]).feature_names == names
    assert FeatureTable(X, 4, row_names=range(10, 14)).get_row_names(ROWS) == [
        "12",
        "10",
    ]
    assert FeatureTable(X, 4).get_row_names(ROWS) is None


def test_without_a_table():
    table = FeatureTable(None, 4)
    assert table.get_values(ROWS, []) == [None, None]


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
def test_json_values(value, plain):
    found = to_json_value(value)
    assert found == plain
    assert type(found) is type(plain)


def test_index_of_a_data_frame_names_the_rows():
    frame = pd.DataFrame(X, index=["a", "b", "c", "d"])
    assert FeatureTable(frame, 4).get_row_names([2, 0]) == ["c", "a"]
    assert FeatureTable(frame, 4, row_names="efgh").get_row_names([2, 0]) == ["g", "e"]
    assert (
        FeatureTable(frame[::-1].reset_index(drop=True), 4).get_row_names([2]) is None
    )
    # rows of a longer data frame keep their index
    assert FeatureTable(pd.DataFrame(X)[2:], 2).get_row_names([1]) == ["3"]


@pytest.mark.parametrize(
    ("table", "names", "message"),
    [
        (X[:3], {}, r"must have the 4 rows of the fit; got shape \(3, 3\)"),
        (X[:, 0], {}, r"must have the 4 rows of the fit; got shape \(4,\)"),
        (X, {"feature_names": ["a"]}, "feature_names must have one name for each of t"),
        (X, {"row_names": ["a"]}, "row_names must have one name for each of the 4 row"),
        (None, {"feature_names": ["a"]}, "feature_names requires X; got X=None"),
    ],
)
def test_invalid_arguments(table, names, message):
    with pytest.raises(ValueError, match=message):
        FeatureTable(table, 4, **names)
