# SPDX-License-Identifier: BSD-3-Clause
"""Columns of any table, as numbers or as codes of categories.

A table is a dense, masked or sparse array, or a frame of pandas or polars, none of
which is imported. Missing cells are None, NaN, NaT, NA and masked cells; a sparse
array has zeros where it stores nothing.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cdsk._validation import (
    Array,
    check_points,
    column_cells,
    column_name,
    is_frame,
    is_missing,
)

# Cells of a dense array that are read at once: 32 MiB.
_BLOCK_CELLS = 2**22
# Nonzero cells of a sparse array that are read at once, and entries of its columns.
_SPARSE_COLUMNS = 2**14


@dataclass(frozen=True)
class Numbers:
    """Columns of numbers (n, m), dense with NaN for missing cells, or sparse."""

    columns: NDArray[np.intp]
    values: Array | sparse.csc_array

    def get_column(self, i: int) -> Array:
        """Return the i-th of the columns, dense."""
        values: Any = self.values[:, [i]]
        dense: Array = values.toarray() if sparse.issparse(values) else values
        return dense[:, 0]


@dataclass(frozen=True)
class Categories:
    """A column of categories: ``codes`` (n,) are indices of names, -1 if missing."""

    column: int
    codes: NDArray[np.intp]
    names: tuple[str, ...]


def check_table(X: Any, n_rows: int, described: str = "rows of the fit") -> Any:
    """Return X as a frame, a CSR array or an array of two dimensions."""
    if hasattr(X, "collect") or hasattr(X, "compute"):
        raise ValueError(
            f"X must hold data; got a {type(X).__name__} that is not computed. Pass "
            f"X.{'collect' if hasattr(X, 'collect') else 'compute'}()."
        )
    if sparse.issparse(X):
        X = sparse.csr_array(X)
    elif not is_frame(X) and not (hasattr(X, "shape") and hasattr(X, "dtype")):
        try:
            found = np.asarray(X)
            # numbers next to text stay numbers
            X = np.asarray(X, dtype=object) if found.dtype.kind in "US" else found
        except ValueError:
            raise ValueError(
                "X must be a table with as many cells in every row; got rows of "
                "different lengths."
            ) from None
    if len(X.shape) != 2 or X.shape[0] != n_rows:
        raise ValueError(
            f"X must have the {n_rows} {described}; got shape {tuple(X.shape)}."
        )
    return X


def find_feature_names(
    X: Any,
    names: Iterable[object] | None = None,
    fitted: Iterable[object] | None = None,
) -> list[str]:
    """Return a name for every column: given, of the frame, of the fit, or its number.

    Names of the fit are used if X has as many columns.
    """
    n_columns = X.shape[1]
    found = getattr(X, "columns", None) if names is None else names
    if found is None and fitted is not None:
        fitted = list(fitted)
        found = fitted if len(fitted) == n_columns else None
    found = check_names(found, n_columns, "feature_names", "columns of X")
    found = [None] * n_columns if found is None else found
    return [f"feature {j}" if name is None else name for j, name in enumerate(found)]


def check_names(
    names: Iterable[object] | None, n: int, parameter: str, described: str
) -> list[str | None] | None:
    """Return n names as text, None for a missing one, or None without any."""
    if names is None:
        return None
    # an empty name counts as missing
    found = [None if is_missing(name) else str(name) or None for name in names]
    if len(found) != n:
        raise ValueError(
            f"{parameter} must have one name for each of the {n} {described}; got "
            f"{len(found)}."
        )
    return found


def check_distinct_names(names: list[str]) -> None:
    """Refuse two columns of one name."""
    first: dict[str, int] = {}
    for j, name in enumerate(names):
        if first.setdefault(name, j) != j:
            raise ValueError(
                f"X must have columns of different names; got {name!r} for columns "
                f"{first[name]} and {j}, counted from 0. Rename one."
            )


def iter_columns(X: Any, *, is_strict: bool = True) -> Iterator[Numbers | Categories]:
    """Yield all columns of a checked table, numbers in blocks.

    Infinite values, times, lists and other objects are refused, or, if not
    ``is_strict``, missing cells and left out.
    """
    if sparse.issparse(X):
        yield from _iter_sparse(X, is_strict)
    elif not is_frame(X) and X.dtype.kind in "iuf":
        step = max(1, _BLOCK_CELLS // max(X.shape[0], 1))
        for start in range(0, X.shape[1], step):
            columns = np.arange(start, min(start + step, X.shape[1]))
            block = X[:, start : start + step].astype(np.float64)
            if np.ma.isMaskedArray(block):
                block = np.ma.filled(block, np.nan)
            yield _check_finite(X, Numbers(columns, block), is_strict)
    else:
        for j in range(X.shape[1]):
            try:
                column = _read_column(X, j)
            except ValueError:
                if is_strict:
                    raise
                continue
            if isinstance(column, Numbers):
                column = _check_finite(X, column, is_strict)
            yield column


def _iter_sparse(X: Any, is_strict: bool) -> Iterator[Numbers]:
    if X.dtype.kind not in "biuf":
        raise ValueError(f"X must hold real numbers; got a sparse array of {X.dtype}.")
    if is_strict and not np.isfinite(X.data).all():
        check_points(X, accept_sparse="csr", ensure_all_finite="allow-nan")
    X = sparse.csc_array(X, dtype=np.float64)
    X.sum_duplicates()
    for start in range(0, X.shape[1], _SPARSE_COLUMNS):
        block = X[:, start : start + _SPARSE_COLUMNS]
        block.data = np.where(np.isinf(block.data), np.nan, block.data)
        yield Numbers(np.arange(start, start + block.shape[1]), block)


def _check_finite(X: Any, block: Numbers, is_strict: bool) -> Numbers:
    is_infinite = np.isinf(block.values)
    if not is_infinite.any():
        return block
    if is_strict:
        row, j = np.argwhere(is_infinite)[0]
        raise ValueError(
            f"X must hold finite numbers or missing cells; got "
            f"{block.values[row, j]} at row {row}, column "
            f"{column_name(X, int(block.columns[j]))}. Replace it, for example by NaN."
        )
    return Numbers(block.columns, np.where(is_infinite, np.nan, block.values))


def _read_column(X: Any, j: int) -> Numbers | Categories:
    """Return a column of a frame, or of an array of text, objects or booleans."""
    if not is_frame(X) and X.dtype.kind in "Mm":
        raise _refuse_cell(X, j, X[0, j])
    if not is_frame(X):
        return _read_cells(X, j, X[:, j].tolist())
    series = X.iloc[:, j] if hasattr(X, "iloc") else X.to_series(j)
    dtype = series.dtype
    if hasattr(dtype, "is_numeric"):  # polars
        if dtype.is_numeric():
            values = series.cast(float).to_numpy()
            return _as_numbers(j, np.array(values, dtype=np.float64))
    elif hasattr(dtype, "categories") and hasattr(series, "cat"):
        names = tuple(str(name) for name in dtype.categories)
        return Categories(j, series.cat.codes.to_numpy().astype(np.intp), names)
    elif dtype.kind in "iuf":
        return _as_numbers(j, series.to_numpy(dtype=np.float64, na_value=np.nan))
    return _read_cells(X, j, column_cells(X, j))


def _as_numbers(j: int, values: Array) -> Numbers:
    return Numbers(np.array([j]), values[:, np.newaxis])


def _read_cells(X: Any, j: int, cells: list[Any]) -> Numbers | Categories:
    """Return cells of any type as numbers if all are, otherwise as categories."""
    known: dict[Any, int] = {}
    try:
        codes = [known.setdefault(cell, len(known)) for cell in cells]
    except TypeError:  # a list has no hash
        raise _refuse_cell(X, j, next(filter(_is_unhashable, cells))) from None
    distinct = list(known)
    missing = np.array([is_missing(cell) for cell in distinct], dtype=bool)
    present = [cell for cell, gone in zip(distinct, missing, strict=True) if not gone]
    for cell in present:
        if not isinstance(cell, str | bytes | bool | np.bool_) and not _is_real(cell):
            raise _refuse_cell(X, j, cell)
    index = np.array(codes, dtype=np.intp)
    if present and all(_is_real(cell) for cell in present):
        values = np.full(len(distinct), np.nan)
        values[~missing] = [_to_float(cell) for cell in present]
        return _as_numbers(j, values[index])
    # equal texts are one category
    names = tuple(dict.fromkeys(map(str, present)))
    position = {name: code for code, name in enumerate(names)}
    recoded = np.full(len(distinct), -1, dtype=np.intp)
    recoded[~missing] = [position[str(cell)] for cell in present]
    return Categories(j, recoded[index], names)


def _is_real(cell: Any) -> bool:
    if isinstance(cell, bool | np.bool_):
        return False
    # Decimal is no Real, but has a value
    return isinstance(cell, Real) or type(cell).__name__ == "Decimal"


def _to_float(cell: Any) -> float:
    try:
        return float(cell)
    except OverflowError:  # 10**400
        return np.inf if cell > 0 else -np.inf


def _is_unhashable(cell: Any) -> bool:
    try:
        hash(cell)
    except TypeError:
        return True
    return False


def _refuse_cell(X: Any, j: int, cell: Any) -> ValueError:
    text = repr(cell)
    text = text if len(text) <= 60 else f"{text[:57]}..."
    return ValueError(
        "X must hold numbers, truth values or categories; got a cell of type "
        f"{type(cell).__name__} in column {column_name(X, j)}: {text}. Leave the "
        "column out, or convert it, times for example to days since the first."
    )
