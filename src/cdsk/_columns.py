# SPDX-License-Identifier: BSD-3-Clause
"""Tables with categories and missing cells -> a matrix of numbers and codes.

A column holds numbers, or categories: text, truth values, or what the caller names. The
matrix has the numbers, and for a category its number among those of the fit. A missing
cell is NaN, and so is a category that the fit did not see. ``_coding.py`` gives codes
and missing cells a place among the points.
"""

import numbers
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cdsk._coding import CODINGS, has_missing
from cdsk._operators.base import Array
from cdsk._utils import warn
from cdsk._validation import (
    CATEGORIES_HINT,
    COLUMN_HINTS,
    MAX_LISTED,
    MISSING,
    check_choice,
    check_names,
    column_cells,
    column_kind,
    column_name,
    is_frame,
    is_missing,
    is_number,
)

# A column of text names its rows if so many of its values are different, and so many
# rows have one.
_MIN_DIFFERENT, _MIN_NAMED_ROWS = 0.9, 20

# Types of values in a column, each alone.
_TYPES = "text", "truth values", "numbers"

# A date as ISO 8601 writes it, maybe with a time.
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")

# A column of more values names its rows too: they are counted in little memory.
MAX_CATEGORIES = 10**5


@dataclass(frozen=True)
class Columns:
    """What the columns of a table hold.

    Attributes
    ----------
    names : tuple of str
        Names of the columns, or their numbers.
    categories : tuple
        The categories of every column in the order of their codes; None for numbers,
        empty for a column that is left out.
    """

    names: tuple[str, ...]
    categories: tuple[tuple[Any, ...] | None, ...]

    @classmethod
    def find(cls, X: Any, categorical_features: Any) -> "Columns | None":
        """Return what the columns of X hold; None if nothing but numbers in all."""
        search = ColumnSearch.of(X, categorical_features)
        return None if search is None else search.decide(search.count(X))

    @property
    def kept(self) -> list[int]:
        """Numbers of the columns that are not left out."""
        return [j for j, known in enumerate(self.categories) if known != ()]

    @property
    def n_categories(self) -> tuple[int | None, ...] | None:
        """Number of categories of every kept column, None for numbers.

        None if all of them hold numbers.
        """
        if not any(self.categories):
            return None
        known = (self.categories[j] for j in self.kept)
        return tuple(None if values is None else len(values) for values in known)

    def encode(self, X: Any, unknown: Counter[str] | None = None) -> Array:
        """Return numbers and codes of the kept columns, NaN for missing cells.

        ``unknown`` counts the cells of categories that the fit did not see, by column.
        """
        matrix = np.empty((X.shape[0], len(self.kept)))
        for place, j in enumerate(self.kept):
            categories = self.categories[j]
            if categories is None:
                matrix[:, place] = column_numbers(X, j)
            else:
                cells = _cells(X, j)
                seen = _count(cells, X, j)
                codes = {category: code for code, category in enumerate(categories)}
                matrix[:, place] = [codes.get(cell, np.nan) for cell in cells]
                if unknown is not None:
                    new = [c for c in seen if c not in codes and not is_missing(c)]
                    unknown[self.names[j]] += sum(seen[c] for c in new)
        return matrix


@dataclass(frozen=True)
class Values:
    """Values of a column and how often they occur, without missing cells.

    Attributes
    ----------
    counts, first_rows : dict
        Number of cells and first row of every value, in the order of first rows; empty
        if there are more than ``MAX_CATEGORIES`` values.
    first_types : dict
        First cell, and its row, of text, of numbers and of truth values: 1 and True
        are one value of two types.
    has_too_many : bool
        Whether there are more.
    """

    counts: dict[Any, int]
    first_rows: dict[Any, int]
    first_types: dict[str, tuple[Any, int]]
    has_too_many: bool = False

    @classmethod
    def of(cls, cells: Sequence[Any], counts: Counter[Any], first_row: int) -> Self:
        """Return the values of cells, given how often each occurs."""
        present = {cell: n for cell, n in counts.items() if not is_missing(cell)}
        rows = range(first_row + len(cells) - 1, first_row - 1, -1)
        first = dict(zip(reversed(cells), rows, strict=True))
        first = {cell: first[cell] for cell in present}
        return cls(present, first, _first_types(cells, first, first_row))._limited()

    def merge(self, other: Self) -> Self:
        """Return the values of the rows of both, in any order of the two."""
        types = dict(self.first_types)
        for name, cell_and_row in other.first_types.items():
            types[name] = _earlier(cell_and_row, types.get(name, cell_and_row))
        if self.has_too_many or other.has_too_many:
            return type(self)({}, {}, types, True)
        if min(self.first_rows.values(), default=0) > min(
            other.first_rows.values(), default=0
        ):
            self, other = other, self
        counts, first = Counter(self.counts), dict(self.first_rows)
        counts.update(other.counts)
        for cell, row in other.first_rows.items():
            first[cell] = min(row, first.get(cell, row))
        order = sorted(first, key=first.__getitem__)
        return type(self)(
            {c: counts[c] for c in order}, {c: first[c] for c in order}, types
        )._limited()

    def _limited(self) -> Self:
        if len(self.counts) <= MAX_CATEGORIES:
            return self
        return type(self)({}, {}, self.first_types, True)


@dataclass(frozen=True)
class ColumnSearch:
    """What is known of the columns of a table by their types, before a pass over it.

    Attributes
    ----------
    names : tuple
        Names of the columns, or their numbers.
    kinds : tuple of str or None
        Kind of every column, as by ``column_kind``; None for numbers.
    asked : frozenset of int
        Columns that the caller says are categories.
    """

    names: tuple[Any, ...]
    kinds: tuple[str | None, ...]
    asked: frozenset[int]

    @classmethod
    def of(cls, X: Any, categorical_features: Any) -> Self | None:
        """Return what types say; None if all columns of X hold numbers.

        X may be the first rows of a table, or none of them.
        """
        if sparse.issparse(X):
            refuse_categories(categorical_features, "a sparse matrix")
        if not _has_columns(X):
            return None
        asked = _asked_columns(X, categorical_features)
        if is_frame(X):
            check_names(X, "X")
        by_type = isinstance(categorical_features, str) and is_frame(X)
        kinds: list[str | None] = []
        for j in range(X.shape[1]):
            dtype = _dtype(X, j)
            kind = column_kind(dtype)
            has_truth = str(dtype).lower().startswith("bool") and is_frame(X)
            has_categories = kind != "numbers" or has_truth
            is_searched = j in asked or (by_type and has_categories)
            kinds.append(kind if is_searched else None)
        if all(kind is None for kind in kinds):
            return None
        names = tuple(X.columns) if is_frame(X) else tuple(range(X.shape[1]))
        return cls(names, tuple(kinds), asked)

    def count(self, X: Any, first_row: int = 0) -> tuple[Values | None, ...]:
        """Return the values in the rows of X, None for columns of numbers."""
        found: list[Values | None] = []
        for j, kind in enumerate(self.kinds):
            if kind is None:
                found.append(None)
                continue
            cells = _cells(X, j)
            values = Values.of(cells, _count(cells, X, j), first_row)
            if values.first_rows and kind in ("times", "no numbers"):
                cell, row = next(iter(values.first_rows.items()))
                _refuse(cell, row, repr(self.names[j]), kind)
            found.append(values)
        return tuple(found)

    @staticmethod
    def merge(
        a: tuple[Values | None, ...], b: tuple[Values | None, ...]
    ) -> tuple[Values | None, ...]:
        """Return the values in two parts of the rows."""
        pairs = zip(a, b, strict=True)
        return tuple(None if x is None or y is None else x.merge(y) for x, y in pairs)

    def decide(self, found: Sequence[Values | None]) -> Columns | None:
        """Return the columns, given the values in all rows; None if all are numbers."""
        categories = [
            None if values is None else self._decide(j, values)
            for j, values in enumerate(found)
        ]
        if all(known is None for known in categories):
            return None
        if not any(known is None or known for known in categories):
            raise ValueError(
                "X must have a column of numbers, or of categories that rows share; "
                "all its columns are left out."
            )
        return Columns(tuple(map(str, self.names)), tuple(categories))

    def _decide(self, j: int, values: Values) -> tuple[Any, ...] | None:
        """Return the categories of a column in order, None if it holds numbers.

        There are none if the column is left out.
        """
        kind, name, present = self.kinds[j], repr(self.names[j]), list(values.counts)
        is_text = kind in ("objects", "text") and j not in self.asked
        if kind != "categories":
            _check_one_type(values, name)
        has_truth = "truth values" in values.first_types
        if is_text and present and not has_truth and all(map(is_number, present)):
            return None
        if kind != "categories":
            _check_cells(values, name)
        if is_text and present and all(map(_is_number_text, present)):
            warn(
                f"Column {name} of X holds numbers as text ({present[0]!r}), which "
                "count as categories. Convert them to numbers if they are measured.",
                UserWarning,
            )
        if is_text and present and all(map(_is_date_text, present)):
            warn(
                f"Column {name} of X holds dates as text ({present[0]!r}), which count "
                f"as categories. {COLUMN_HINTS['times']}",
                UserWarning,
            )
        n_present, n_values = sum(values.counts.values()), len(present)
        names_rows = n_present >= _MIN_NAMED_ROWS and (
            n_values > _MIN_DIFFERENT * n_present
        )
        if values.has_too_many or names_rows:
            number = f"{n_values:,} different values in {n_present:,} rows"
            if values.has_too_many:
                number = f"more than {MAX_CATEGORIES:,} different values"
            warn(
                f"Column {name} of X has {number}. It names rows instead of grouping "
                "them, and is left out.",
                UserWarning,
            )
            return ()
        if not present:
            warn(f"Column {name} of X has no values and is left out.", UserWarning)
        try:
            return tuple(sorted(present))
        except TypeError:  # no order among them
            return tuple(sorted(present, key=str))


def refuse_categories(categorical_features: Any, got: str) -> None:
    """Refuse columns of categories that the caller names, where X has none."""
    is_told = not isinstance(categorical_features, str | type(None))
    if is_told and np.size(categorical_features):
        raise ValueError(
            f"categorical_features={categorical_features!r} needs a frame or a dense "
            f"array with these columns; X is {got}. Leave it at 'from_dtype', or pass "
            "the table."
        )


def as_table(X: Any, categorical_features: Any) -> Any:
    """Return X with columns: lists as an array, masked cells as NaN."""
    is_told = not isinstance(categorical_features, str | type(None))
    if is_told and not hasattr(X, "shape"):
        X = np.array(X, dtype=object)
    if np.ma.isMaskedArray(X):
        dtype = object if X.dtype.kind in "OUS" else np.result_type(X, np.float32)
        X = np.ma.filled(X.astype(dtype), np.nan)
    return X


def check_infinity(X: Array, names: Sequence[str]) -> None:
    """Refuse infinite cells of encoded rows, by the names of the columns."""
    cells = np.argwhere(np.isinf(X))
    if len(cells):
        row, name = cells[0][0], names[cells[0][1]]
        name = name if name.isdecimal() else repr(name)
        raise ValueError(
            f"Input X contains infinity at row {row}, column {name} "
            f"({len(cells)} in all); expected finite numbers only."
        )


def check_missing(X: Any, names: Sequence[str], params: Mapping[str, Any]) -> None:
    """Refuse missing cells where the parameters do not allow them.

    ``names`` are those of the columns, none if they have only numbers.
    """
    check_choice(params["missing"], "missing", MISSING)
    if params["missing"] == "auto" and str(params["metric"]) != "cosine":
        return
    cells = np.argwhere(np.isnan(X.toarray() if sparse.issparse(X) else X))
    row, j = cells[0]
    name = repr(str(names[j])) if len(names) else j
    reason = 'missing="error"' if params["missing"] == "error" else 'metric="cosine"'
    raise ValueError(
        f"Input X contains NaN at row {row}, column {name} ({len(cells)} in all); "
        f"{reason} needs complete rows. Fill the cells, or leave the rows out."
    )


def check_rows(X: Any, noise: float | None) -> NDArray[np.intp]:
    """Return the rows without any value, and refuse them unless there may be noise."""
    rows = np.empty(0, dtype=np.intp)
    if has_missing(X):
        if sparse.issparse(X):  # an absent entry is 0, a value
            owners = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
            n_missing = np.bincount(owners[np.isnan(X.data)], minlength=X.shape[0])
        else:
            n_missing = np.isnan(X).sum(axis=1)
        rows = np.flatnonzero(n_missing == X.shape[1])
    if len(rows) and not noise:
        listed = ", ".join(map(str, rows[:MAX_LISTED]))
        more = ", ..." if len(rows) > MAX_LISTED else ""
        raise ValueError(
            f"X must have a value in every row; got none in row"
            f"{'' if len(rows) == 1 else 's'} {listed}{more} ({len(rows)} in all, "
            "counted from 0). Leave them out, or set `noise`, which labels them -1."
        )
    return rows


def check_coding(representation: str, metric: str, columns: Columns | None) -> None:
    """Check that the representation and the metric fit the columns."""
    if columns is None or columns.n_categories is None:
        if representation in CODINGS:
            raise ValueError(
                f"representation={representation!r} is for tables with columns of "
                "categories; got numbers only. Use 'standardize'."
            )
    elif representation not in ("auto", *CODINGS) or metric == "cosine":
        expected = "'auto', 'chi_square' or 'indicators' with metric='euclidean'"
        raise ValueError(
            f"representation={representation!r} with metric={metric!r} is for numbers; "
            f"expected {expected}, as column "
            f"{columns.names[_first_category(columns)]!r} of X holds categories."
        )


def _first_category(columns: Columns) -> int:
    return next(j for j in columns.kept if columns.categories[j] is not None)


def warn_unknown(unknown: Counter[str]) -> None:
    """Warn about the categories that the fit did not see."""
    columns = [f"{name!r} ({count:,})" for name, count in unknown.items() if count]
    if columns:
        more = ", ..." if len(columns) > MAX_LISTED else ""
        warn(
            f"X has {sum(unknown.values()):,} cells with categories that the fit did "
            f"not see, in column{'' if len(columns) == 1 else 's'} "
            f"{', '.join(columns[:MAX_LISTED])}{more}. They count as missing.",
            UserWarning,
        )


def column_numbers(X: Any, j: int) -> NDArray[Any]:
    """Return a column of numbers, NaN for missing cells."""
    dtype = _dtype(X, j)
    if getattr(dtype, "kind", "") in "biuf" and hasattr(X, "iloc"):
        return np.asarray(X.iloc[:, j].to_numpy(dtype=np.float64, na_value=np.nan))
    if isinstance(X, np.ndarray) and dtype.kind in "biuf":
        return np.asarray(X[:, j], dtype=np.float64)
    values = np.empty(X.shape[0])
    for i, cell in enumerate(_cells(X, j)):
        if not is_number(cell):
            raise ValueError(
                f"X must hold numbers in column {column_name(X, j)}; got {cell!r} at "
                f"row {i}. {CATEGORIES_HINT}"
            )
        values[i] = np.nan if is_missing(cell) else float(cell)
    return values


def _has_columns(X: Any) -> bool:
    is_table = is_frame(X) or isinstance(X, np.ndarray)
    return is_table and len(X.shape) == 2


def _asked_columns(X: Any, features: Any) -> frozenset[int]:
    """Return the numbers of the columns that the caller says are categories."""
    if features is None or (isinstance(features, str) and features == "from_dtype"):
        return frozenset()
    d, values = X.shape[1], np.asarray(features)
    expected = (
        "categorical_features must be 'from_dtype', None, or names, numbers or a mask "
        f"of the {d} columns of X"
    )
    if values.ndim != 1 or isinstance(features, str):
        raise ValueError(f"{expected}; got {features!r}.")
    if values.dtype.kind == "b":
        if len(values) != d:
            raise ValueError(f"{expected}; got a mask of {len(values)}.")
        return frozenset(np.flatnonzero(values).tolist())
    names = list(X.columns) if is_frame(X) else []
    found = []
    for value in values.tolist():
        if value in names:
            found.append(names.index(value))
        elif isinstance(value, int) and -d <= value < d:
            found.append(value % d)
        else:
            raise ValueError(f"{expected}; got {value!r}.")
    return frozenset(found)


def _dtype(X: Any, j: int) -> Any:
    return list(X.dtypes)[j] if is_frame(X) else X.dtype


def _cells(X: Any, j: int) -> Sequence[Any]:
    cells: Sequence[Any] = column_cells(X, j) if is_frame(X) else X[:, j].tolist()
    return cells


def _count(cells: Sequence[Any], X: Any, j: int) -> Counter[Any]:
    """Return how often each value occurs; refuse lists and the like."""
    try:
        return Counter(cells)
    except TypeError:
        row = next(i for i, cell in enumerate(cells) if cell.__hash__ is None)
        raise ValueError(
            f"X must hold one value per cell; got {cells[row]!r} in column "
            f"{column_name(X, j)} at row {row}. {COLUMN_HINTS['no numbers']}"
        ) from None


def _type_of(cell: Any) -> str | None:
    """Return what a cell holds, None for other things and for a missing one."""
    if is_missing(cell):
        return None
    if isinstance(cell, bool | np.bool_):
        return "truth values"
    if isinstance(cell, str):
        return "text"
    return "numbers" if isinstance(cell, numbers.Real | np.generic) else None


def _first_types(
    cells: Sequence[Any], first_rows: Mapping[Any, int], first_row: int
) -> dict[str, tuple[Any, int]]:
    """Return the first cell of each type, and its row, given those of the values."""
    found: dict[str, tuple[Any, int]] = {}
    firsts = list(first_rows.items())
    kinds = set(map(type, cells))
    if kinds & {bool, np.bool_} and len(kinds) > 1:  # True and 1 are one value
        for kind in kinds:
            rows = (
                (cell, row)
                for row, cell in enumerate(cells, first_row)
                if type(cell) is kind and not is_missing(cell)
            )
            firsts += [first for first in [next(rows, None)] if first is not None]
    for first in firsts:
        if (name := _type_of(first[0])) is not None:
            found[name] = _earlier(first, found.get(name, first))
    return found


def _earlier(a: tuple[Any, int], b: tuple[Any, int]) -> tuple[Any, int]:
    return a if a[1] <= b[1] else b


def _check_one_type(values: Values, name: str) -> None:
    """Refuse a column of two of text, numbers and truth values."""
    first = values.first_types
    if len(first) > 1:
        found = [first[kind] for kind in _TYPES if kind in first]
        (cell, row), (other, other_row) = found[:2]
        raise ValueError(
            f"X must hold one type of values in column {name}; got {cell!r} at row "
            f"{row} and {other!r} at row {other_row}. Make all of them text, or "
            "numbers."
        )


def _check_cells(values: Values, name: str) -> None:
    """Refuse a column of anything but text, numbers and truth values."""
    for cell, row in values.first_rows.items():
        if _type_of(cell) is None:
            kind = "times" if hasattr(cell, "year") else "no numbers"
            _refuse(cell, row, name, kind)


def _is_date_text(cell: Any) -> bool:
    try:
        return bool(_DATE.match(cell)) and bool(datetime.fromisoformat(cell))
    except (TypeError, ValueError):
        return False


def _is_number_text(cell: Any) -> bool:
    try:
        return isinstance(cell, str) and float(cell) == float(cell)
    except ValueError:
        return False


def _refuse(cell: Any, row: int, name: str, kind: str) -> None:
    raise ValueError(
        f"X must hold numbers or categories; got {kind} in column {name} ({cell!r} at "
        f"row {row}). {COLUMN_HINTS[kind]}"
    )
