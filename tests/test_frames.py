"""Frames of pandas and polars: names are kept, and columns of no numbers are named."""

import datetime

import numpy as np
import pandas as pd
import pytest

from cdsk import CDSK
from cdsk._validation import check_columns, check_points, is_frame

NUMBERS = np.random.default_rng(0).normal(size=(30, 2))
LETTERS = ["x", "y"] * 15


def in_pandas(values):
    return pd.DataFrame({"a": NUMBERS[:, 0], "b": NUMBERS[:, 1], "third": values})


def in_polars(values):
    polars = pytest.importorskip("polars", reason="polars is not installed")
    kinds = {
        "category": polars.Categorical,
        "datetime64[us]": polars.Datetime,
        "object": polars.String,
        "Int64": polars.Int64,
    }
    dtype = kinds.get(str(getattr(values, "dtype", "")))
    series = polars.Series([None if cell is pd.NA else cell for cell in values])
    series = series if dtype is None else series.cast(dtype)
    return polars.DataFrame({"a": NUMBERS[:, 0], "b": NUMBERS[:, 1], "third": series})


each_library = pytest.mark.parametrize("frame_of", [in_pandas, in_polars])


@each_library
@pytest.mark.parametrize(
    "values",
    [
        NUMBERS[:, 0].astype(np.float32),
        np.arange(30),
        pd.array(np.arange(30), dtype="Int64"),
    ],
    ids=["float32", "int", "nullable"],
)
def test_numbers_of_any_kind(frame_of, values):
    frame = frame_of(values)
    model = CDSK(2, random_state=0).fit(frame)
    assert model.feature_names_in_.tolist() == ["a", "b", "third"]
    plain = np.column_stack([NUMBERS, np.asarray(values, dtype=float)])
    np.testing.assert_array_equal(check_points(frame), plain)
    expected = CDSK(2, random_state=0).fit(plain)
    assert (model.labels_ == expected.labels_).all()
    assert (model.predict(frame) == expected.predict(plain)).all()


@each_library
@pytest.mark.parametrize(
    ("values", "message"),
    [
        (LETTERS, r"got text in column 'third' \('x' at row 0\). .*OneHotEncoder"),
        (
            ["1.5", "2"] * 15,
            r"got text in column 'third' \('1.5' at row 0\). .*convert",
        ),
        (pd.Categorical(LETTERS), "got categories in column 'third' .*OneHotEncoder"),
        (
            pd.date_range("2026-01-01", periods=30, unit="us"),
            "got times in column 'third' .*days since the first",
        ),
    ],
    ids=["text", "numbers as text", "categories", "times"],
)
def test_columns_of_no_numbers_are_named(frame_of, values, message):
    frame = frame_of(values)
    with pytest.raises(ValueError, match=f"X must hold numbers only; {message}"):
        CDSK(2, categorical_features=None).fit(frame)
    model = CDSK(2, random_state=0).fit(NUMBERS[:, [0, 1, 0]])
    with pytest.raises(ValueError, match=r"got .* in column 'third'"):
        model.predict(frame)


def test_objects_may_be_numbers_but_not_mixed_with_text():
    numbers = in_pandas(np.arange(30).astype(object))
    assert CDSK(2, random_state=0).fit(numbers).labels_.shape == (30,)
    mixed = np.arange(30).astype(object)
    mixed[4] = "red"
    message = r"one type of values in column 'third'; got 'red' at row 4 and 0 at row 0"
    with pytest.raises(ValueError, match=message):
        CDSK(2).fit(in_pandas(mixed))


@pytest.mark.parametrize("cell", [datetime.date(2026, 1, 1), [1, 2], {"a": 1}, 1j])
def test_objects_that_have_no_value_are_named(cell):
    cells = np.empty(30, dtype=object)
    cells[:] = [cell] * 30
    with pytest.raises(ValueError, match=r"got .* in column 'third'.* at row 0"):
        CDSK(2).fit(in_pandas(cells))


@each_library
def test_missing_values_are_named(frame_of):
    values = pd.array(np.arange(30), dtype="Int64")
    values[[3, 5]] = pd.NA
    with pytest.raises(
        ValueError, match=r"contains NaN at row 3, column 'third' \(2 in all\)"
    ):
        CDSK(2, missing="error").fit(frame_of(values))


def test_columns_of_one_name_are_refused():
    frame = in_pandas(np.arange(30)).set_axis(["a", "b", "a"], axis=1)
    with pytest.raises(ValueError, match="got 'a' for columns 0 and 2, counted from 0"):
        CDSK(2).fit(frame)


def test_a_frame_that_is_not_computed():
    lazy = in_polars(np.arange(30)).lazy()
    with pytest.raises(ValueError, match=r"not computed. Expected X.collect\(\)"):
        CDSK(2).fit(lazy)


def test_lists_are_no_numbers():
    frame = in_polars([[1, 2]] * 30)
    with pytest.raises(ValueError, match="got no numbers in column 'third'"):
        check_columns(frame, "X")


def test_what_is_a_frame():
    assert is_frame(in_pandas(np.arange(30)))
    for other in (NUMBERS, NUMBERS.tolist(), pd.Series(NUMBERS[:, 0]), None):
        assert not is_frame(other)
        check_columns(other, "X")
