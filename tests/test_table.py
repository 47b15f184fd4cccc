"""Tables without pandas: they are read as frames of pandas are."""

import numpy as np
import pandas as pd
import pytest

from cdsk import CDSK
from cdsk._profile_columns import iter_columns
from cdsk._table import Table
from cdsk._validation import is_frame, supports_row_slicing

N = 60
Y = np.arange(N) % 2
NUMBERS = np.where(Y == 0, 0.0, 5.0) + np.random.RandomState(0).normal(size=N)
COLORS = np.array(["red", "blue"], dtype=object)[Y]
COLORS[::7] = None
FRAME = pd.DataFrame({"number": NUMBERS, "color": pd.Series(COLORS, dtype=object)})
TABLE = Table(["number", "color"], [NUMBERS, COLORS])


def test_a_table_is_a_frame():
    assert is_frame(TABLE)
    assert supports_row_slicing(TABLE)
    assert TABLE.shape == FRAME.shape
    np.testing.assert_array_equal(TABLE.to_numpy(), FRAME.to_numpy())


@pytest.mark.parametrize("rows", [slice(3, 9), np.array([5, 1]), [7]], ids=str)
def test_rows(rows):
    part, expected = TABLE.iloc[rows], FRAME.iloc[rows]
    assert len(part) == len(expected)
    np.testing.assert_array_equal(part.to_numpy(), expected.to_numpy())


def test_columns():
    assert TABLE.iloc[:, 1].to_list() == FRAME.iloc[:, 1].to_list()
    np.testing.assert_array_equal(TABLE.iloc[:, 0].to_numpy(), NUMBERS)
    assert list(TABLE.iloc[:, [1, 0]].columns) == ["color", "number"]


def test_a_fit_is_that_of_a_frame():
    model, expected = (CDSK(2, random_state=0).fit(X) for X in (TABLE, FRAME))
    np.testing.assert_array_equal(model.weights_, expected.weights_)
    assert model.columns_ == expected.columns_
    np.testing.assert_array_equal(model.predict(TABLE), expected.predict(FRAME))
    assert model.profiles(TABLE).to_frame().equals(expected.profiles(FRAME).to_frame())
    assert len(list(iter_columns(TABLE))) == 2


def test_tables_of_pyarrow():
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    columns = {
        "whole": pyarrow.array([1, None, 3]),
        "real": pyarrow.array([0.5, 1.5, None]),
        "text": pyarrow.array(["a", None, "b"]),
        "coded": pyarrow.array(["a", None, "a"]).dictionary_encode(),
        "truth": pyarrow.array([True, False, None]),
        "exact": pyarrow.array([1, 2, None], pyarrow.decimal128(9, 2)),
    }
    table = Table.from_arrow(pyarrow.table(columns))
    assert list(table.columns) == list(columns)
    for j, (name, cells) in enumerate(columns.items()):
        found = table.iloc[:, j]
        assert found.dtype.kind == ("f" if name in ("whole", "real", "exact") else "O")
        values = [None if cell != cell else cell for cell in found.to_list()]
        assert values == cells.to_pylist()
