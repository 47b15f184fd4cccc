# SPDX-License-Identifier: BSD-3-Clause
"""Frames of pandas and polars: columns that are no numbers, named, and what to do.

Neither library is imported: a frame says itself what its columns are.
"""

import numpy as np

_ADVICE = {
    "text": "Leave it out, convert numbers that were read as text, or encode it, as "
    "sklearn.preprocessing.OneHotEncoder does.",
    "categories": "Leave it out, or encode it, as sklearn.preprocessing.OneHotEncoder "
    "does.",
    "times": "Leave it out, or make numbers of it, such as days since the first.",
    "no numbers": "Leave it out, or make numbers of it.",
}


def is_frame(X):
    """Whether X has named columns, each of a type."""
    return all(hasattr(X, name) for name in ("to_numpy", "columns", "dtypes"))


def check_columns(X, name):
    """Refuse a frame with a column of anything but numbers or truth values."""
    if hasattr(X, "collect") and not is_frame(X):
        raise ValueError(
            f"{name} must hold data; got a {type(X).__name__} that is not computed. "
            f"Expected {name}.collect()."
        )
    if not is_frame(X):
        return
    first: dict[object, int] = {}
    for j, column in enumerate(X.columns):
        if first.setdefault(column, j) != j:
            raise ValueError(
                f"{name} must have columns of different names; got {column!r} for "
                f"columns {first[column]} and {j}, counted from 0."
            )
    for j, dtype in enumerate(X.dtypes):
        kind = _kind(dtype)
        if kind == "numbers":
            continue
        cells = column_cells(X, j)
        row = _first_no_number(cells) if kind in ("text", "objects") else 0
        if row is None:  # objects may well be numbers
            continue
        if kind == "objects":
            kind = "text" if isinstance(cells[row], str) else "no numbers"
        cell = f" ({cells[row]!r} at row {row})" if row < X.shape[0] else ""
        raise ValueError(
            f"{name} must hold numbers only; got {kind} in column "
            f"{X.columns[j]!r}{cell}. {_ADVICE[kind]}"
        )


def as_numbers(X):
    """X as an array of float64, with NaN for what is missing."""
    if is_frame(X) and hasattr(X, "iloc"):
        return X.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.asarray(X, dtype=np.float64)


def index_of(X):
    """Names of rows in the index of pandas; None if it only counts them."""
    if not (is_frame(X) and hasattr(X, "iloc")):
        return None
    index = X.index
    is_range = type(index).__name__ == "RangeIndex"
    return None if is_range and (index.start, index.step) == (0, 1) else index


def column_name(X, j):
    """What to call a column: its name in quotes, or its number."""
    names = X.columns if is_frame(X) else getattr(X, "column_names", None)
    return str(j) if names is None else repr(names[j])


def column_cells(X, j):
    """Cells of a column of a frame, as objects."""
    cells = X.iloc[:, j] if hasattr(X, "iloc") else X.to_series(j)
    return cells.to_list()


def _kind(dtype):
    """What a column of this type holds, in a word."""
    if hasattr(dtype, "is_numeric"):  # polars
        name = str(dtype)
        if dtype.is_numeric() or name == "Boolean":
            return "numbers"
        if dtype.is_temporal():
            return "times"
        if name.startswith(("Categorical", "Enum")):
            return "categories"
        return "text" if name == "String" else "no numbers"
    if dtype.kind in "biufc":
        return "numbers"
    if dtype.kind in "Mm":
        return "times"
    if hasattr(dtype, "categories"):
        return "categories"
    return "objects" if dtype == np.dtype(object) else "text"


def _first_no_number(cells):
    """The first row that holds text or what has no value; None if there is none."""
    return next((i for i, cell in enumerate(cells) if not _is_number(cell)), None)


def _is_number(cell):
    has_value = not isinstance(cell, str) and hasattr(cell, "__float__")
    return has_value or is_missing(cell)


def is_missing(cell):
    """Whether nothing is known: None, NaN, NaT, NA or what a mask hides."""
    if cell is None or cell is np.ma.masked or type(cell).__name__ == "NAType":
        return True
    differs = cell != cell  # but for these no value differs from itself
    return isinstance(differs, bool | np.bool_) and bool(differs)
