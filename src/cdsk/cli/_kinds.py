# SPDX-License-Identifier: BSD-3-Clause
"""Numbers or categories: what a column of a file holds (tests/test_tables.py).

A column whose present cells are all numbers holds numbers; any other holds categories,
which are text. A number among categories is written in one way (1.0 and 01 are 1), so
that files of any format have the same categories. A column of numbers with a rare text,
or with a number in another notation, is a likely mistake and is refused.
"""

import math
import re
from array import array
from dataclasses import dataclass

import numpy as np

from cdsk._utils import warn

NUMBERS, CATEGORIES, LEFT_OUT = "numbers", "categories", "left out"

# Texts are rare among numbers if at most this share of the cells.
_MAX_RARE = 0.1

_MISSING_VALUES = {"", "na", "n/a", "nan", "null", "none", "?"}
_SWAP_SIGNS = str.maketrans(",.", ".,")
# Numbers with another decimal sign, or with separators of thousands.
_OTHER_NUMBER = re.compile(r"[+-]?(\d+[.,_]\d+|\d{1,3}([.,'_ ]\d{3})+([.,]\d+)?)")


class TableError(ValueError):
    """A file is not a table; the message says where and why."""


@dataclass(frozen=True)
class ColumnKinds:
    """What is known about the columns of a file before it is read.

    Attributes
    ----------
    categories : tuple of str
        Columns of categories, by name or number from 1.
    allow_missing : bool
        Whether cells may be missing.
    fitted_names : list of str or None
        Names of the features of a model, if they have names.
    fitted : tuple of str or None
        Kinds of the features of a model.
    """

    categories: tuple[str, ...] = ()
    allow_missing: bool = True
    fitted_names: list[str] | None = None
    fitted: tuple[str, ...] | None = None

    @classmethod
    def of_model(cls, model):
        """Return what the features of a fitted model are."""
        names = getattr(model, "feature_names_in_", None)
        columns = getattr(model, "columns_", None)
        fitted = (NUMBERS,) * model.n_features_in_
        if columns is not None:
            fitted = tuple(map(_describe_fitted, columns.categories))
        return cls(
            allow_missing=model.params_.get("missing", "auto") == "auto",
            fitted_names=None if names is None else names.tolist(),
            fitted=fitted,
        )

    def of_features(self, features, asked):
        """Return the kind of every feature, None if its cells tell.

        ``features`` and ``asked`` are indices of columns: of the features, and of those
        that are categories.
        """
        if self.fitted is not None:
            # the model refuses another number of features
            others = [NUMBERS] * (len(features) - len(self.fitted))
            return [*self.fitted, *others][: len(features)]
        return [CATEGORIES if j in asked else None for j in features]


def _describe_fitted(categories):
    if categories is None:
        return NUMBERS
    return CATEGORIES if categories else LEFT_OUT


def parse_number(cell, decimal):
    """Return the cell as a float, or None if it is not a number."""
    try:
        # Swapping both signs rejects 1.000 where the decimal sign is a comma.
        value = float(cell if decimal == "." else cell.translate(_SWAP_SIGNS))
    except ValueError:
        return None
    # Python reads 1_000 as a number, other programs do not.
    return None if "_" in cell else value


def is_missing_text(cell):
    """Whether a cell of a text file is empty, or says that it is missing."""
    return cell.lower() in _MISSING_VALUES


class CellCollector:
    """The cells of a column of a text file, as numbers and codes of texts."""

    def __init__(self, decimal):
        self._decimal = decimal
        self._values = array("d")
        # of the texts, -1 for other cells; empty without texts
        self._codes = array("q")
        self._text_codes: dict[str, int] = {}
        # lines where a text occurs first
        self._first_lines: list[int] = []

    def append(self, cell, line):
        """Add a cell; return "number", "text", "missing" or "invalid"."""
        value = parse_number(cell, self._decimal)
        is_text = value is None and not is_missing_text(cell)
        if is_text or self._codes:
            self._append_code(cell if is_text else None, line)
        self._values.append(math.nan if value is None else value)
        if is_text:
            # of a file that is no text
            return "invalid" if "\0" in cell else "text"
        if value is None or math.isnan(value):
            return "missing"
        return "number" if math.isfinite(value) else "invalid"

    def _append_code(self, text, line):
        missing = len(self._values) - len(self._codes)
        self._codes.extend([-1] * missing)
        code = -1
        if text is not None:
            code = self._text_codes.setdefault(text, len(self._text_codes))
            if code == len(self._first_lines):
                self._first_lines.append(line)
        self._codes.append(code)

    def finish(self, kind, place, name):
        """Return the cells as floats, or as text for categories.

        ``place(line)`` describes a cell, and ``name`` is that of the column.
        """
        values = np.array(self._values)
        codes = np.array(self._codes)
        is_number, is_text = ~np.isnan(values), codes >= 0
        if kind is None and is_text.any():
            self._check_texts(int(is_number.sum()), int(is_text.sum()), place, name)
        is_empty = not (is_number.any() or is_text.any())
        if kind == NUMBERS or not (kind or is_empty or is_text.any()):
            return values
        cells = format_numbers(values)
        if is_text.any():
            texts = np.array([*self._text_codes, None], dtype=object)
            cells = np.where(is_text, texts[codes], cells)
        return cells

    def _check_texts(self, n_numbers, n_texts, place, name):
        """Refuse likely mistakes in a column with texts; warn if there are numbers."""
        first = zip(self._text_codes, self._first_lines, strict=True)
        others = [(t, line) for t, line in first if _OTHER_NUMBER.fullmatch(t)]
        advice = f"or pass --categories {name} if the column holds categories."
        if others:
            text, line = others[0]
            raise TableError(
                f"{place(line)}: expected a number or text; got {text!r}, a number "
                "with other signs. Leave out separators of thousands, set --decimal, "
                f"{advice}"
            )
        text, line = next(zip(self._text_codes, self._first_lines, strict=True))
        if n_texts <= _MAX_RARE * (n_numbers + n_texts):
            raise TableError(
                f"{place(line)}: expected a number, as in {n_numbers} of the "
                f"{n_numbers + n_texts} cells of the column that have a value; got "
                f"{text[:40]!r}. Correct it, leave it empty, {advice}"
            )
        if n_numbers:
            warn(
                f"Column {name} holds {n_texts} texts ({text[:40]!r} in row {line}) "
                f"and {n_numbers} numbers. All of them are read as categories.",
                UserWarning,
            )


def format_numbers(values):
    """Return numbers as text, None for missing ones; whole numbers have no point."""
    distinct, inverse = np.unique(values, return_inverse=True)
    texts = [None if math.isnan(x) else _format_number(x) for x in distinct.tolist()]
    return np.array([*texts, None], dtype=object)[inverse]


def _format_number(x):
    return str(int(x)) if x.is_integer() and abs(x) < 1e15 else repr(x)


def format_cells(cells):
    """Return cells of any type as text, None for missing ones.

    A text that is a number is written as one.
    """
    texts = {cell: _format_cell(cell) for cell in set(cells)}
    found = np.empty(len(cells), dtype=object)
    found[:] = [texts[cell] for cell in cells]
    return found


def _format_cell(cell):
    if cell is None or cell != cell:
        return None
    text = str(cell).strip()
    number = None if isinstance(cell, bool) else parse_number(text, ".")
    if number is not None and math.isfinite(number):
        return _format_number(number)
    return None if is_missing_text(text) else text
