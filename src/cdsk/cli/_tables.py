# SPDX-License-Identifier: BSD-3-Clause
"""Read tables of numbers and categories and format labels, for the command line.

========  ============================================================================
.csv      cells separated by commas; by semicolons if the decimal sign is a comma
.tsv      cells separated by tabs
.txt      cells separated by white space
.npy      a NumPy array, never unpickled
.npz      its array ``X``, or its only array
.parquet  columns of numbers, text and truth values, read by pyarrow
========  ============================================================================

All formats except Parquet may be compressed (.csv.gz); standard input is read as .csv.

``_kinds.py`` tells numbers from categories. The first row of a text file is read as
column names if one of its cells is text above a number, or if all of them are text that
does not occur again in its column. Where that is ambiguous, there is a warning: column
names some of which are numbers; column names above nothing but text that does not occur
again either; a first row of consecutive integers (2019,2020), if no other row has
consecutive integers; a first row whose text does not occur again in columns whose other
text does; and one that alone has an empty first cell. Up to 100 rows are compared.
"""

import csv
import io
import os
import reprlib
import zlib
from itertools import chain, islice
from zipfile import BadZipFile

import numpy as np

from cdsk._table import Table
from cdsk._utils import warn
from cdsk.cli._compressed import OPENERS, READ_ERRORS
from cdsk.cli._kinds import (
    CATEGORIES,
    LEFT_OUT,
    NUMBERS,
    CellCollector,
    ColumnKinds,
    TableError,
    format_cells,
    format_numbers,
    is_missing_text,
    parse_number,
)

_DELIMITERS = {".csv": ",", ".tsv": "tab", ".txt": "space"}
_PARQUET = ".parquet"
_SUFFIXES = (*_DELIMITERS, ".npy", ".npz")
_CHARACTERS = {"tab": "\t", "space": None}  # None: any white space
# Pairs of delimiter and decimal sign.
_DIALECTS = [(d, p) for d in (";", "tab", "space", ",") for p in ".," if d != p]
# Rows by which column names and dialects are detected.
_HEAD_ROWS = 100

# Hints for files that are not UTF-8, by their first bytes.
_ENCODING_HINTS = {
    b"\x1f\x8b": " (gzip: decompress it with gunzip)",
    b"\xff\xfe": " (UTF-16: convert it with iconv -f UTF-16 -t UTF-8)",
    b"\xfe\xff": " (UTF-16: convert it with iconv -f UTF-16 -t UTF-8)",
}


def read_table(
    path,
    columns=None,
    id_column=None,
    *,
    header=None,
    delimiter=None,
    decimal=".",
    kinds=None,
):
    """Read points from a file, with the options of ``cdsk cluster``.

    ``kinds`` are the ``ColumnKinds`` that are known. If ``columns`` is None and the
    table has column names, the features of a model are selected by name.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features) or Table
        float64 with NaN for missing cells, or a table if there are categories.
    names : list of str, or None
        Names of the columns.
    ids : list, or None
        Name of ``id_column``, followed by its cells.
    """
    source = "standard input" if path == "-" else path
    suffix, opener = _detect_format(path, source)
    selection = _ColumnSelection(columns, id_column, kinds or ColumnKinds())
    try:
        file_or_descriptor = os.dup(0) if path == "-" else path
        if suffix in _DELIMITERS:
            text_format = _TextFormat(header, delimiter, decimal, suffix)
            with opener(
                file_or_descriptor, "rt", encoding="utf-8-sig", newline=""
            ) as file:
                return _read_text(file, selection, text_format)
        if (header, delimiter, decimal) != (None, None, "."):
            raise TableError(
                "--header, --delimiter and --decimal apply to text files only."
            )
        if suffix == _PARQUET:
            return _read_parquet(path, selection)
        with opener(file_or_descriptor, "rb") as file:
            return _read_array(file, selection)
    except TableError as error:
        raise TableError(f"{source}: {error}") from None
    except UnicodeDecodeError as error:
        problem = _describe_decode_error(error)
    except csv.Error as error:
        problem = error
    except READ_ERRORS as error:
        problem = getattr(error, "strerror", None) or error
    raise TableError(f"cannot read {source}: {problem}.")


def format_labels(columns, ids=None):
    """Return arrays by column name as CSV text; floats are written exactly.

    ``ids`` is the first column, as returned by ``read_table``.
    """
    lists = [[name, *values.tolist()] for name, values in columns.items()]
    rows = zip(*([ids] if ids else []), *lists, strict=True)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _detect_format(path, source):
    """Return the suffix of a file without that of its compression, and its opener."""
    stem, suffix = os.path.splitext("-.csv" if path == "-" else str(path).lower())
    opener = OPENERS.get(suffix, open)
    if suffix in OPENERS:
        suffix = os.path.splitext(stem)[1]
    if suffix not in _SUFFIXES and (suffix != _PARQUET or opener is not open):
        raise TableError(
            f"unknown format of {source}: expected a file name ending in "
            f"{', '.join(_SUFFIXES)}, one of these followed by {', '.join(OPENERS)}, "
            f"or {_PARQUET}."
        )
    return suffix, opener


def _describe_decode_error(error):
    content = error.object
    hints = (
        hint for start, hint in _ENCODING_HINTS.items() if content.startswith(start)
    )
    byte = f"0x{content[error.start]:02x}"
    return f"expected UTF-8 text; got the byte {byte}{next(hints, '')}"


# --- columns --------------------------------------------------------------------------


class _ColumnSelection:
    """Selection of feature columns and of a column of row names.

    Columns are names or numbers from 1. Features of a model are matched by name only.
    """

    def __init__(self, columns, id_column, kinds):
        self._columns = columns
        self._id_column = id_column
        self._kinds = kinds
        self.allow_missing = kinds.allow_missing

    def find_indices(self, names, n_columns, hint=""):
        """Return the indices of the features, their kinds, and that of the row names.

        ``names`` is empty for a table without column names. The index is None for a
        feature that a model leaves out, if the table lacks it, and for no row names.
        """

        def find(column):
            return _find_column(column, names, n_columns, hint)

        id_index = None if self._id_column is None else find(self._id_column)
        asked = {find(column) for column in self._kinds.categories}
        indices = range(n_columns)
        if self._columns is not None:
            indices = map(find, self._columns)
        elif names and self._kinds.fitted_names is not None:
            indices = self._find_fitted(names)
        features = [j for j in indices if j is None or j != id_index]
        if not features:
            raise TableError("expected at least one column besides --id; got none.")
        for j in asked.difference(features):
            raise TableError(
                f"--categories {names[j] if names else j + 1}: expected a feature; got "
                "a column that --columns or --id leaves out."
            )
        return features, self._kinds.of_features(features, asked), id_index

    def _find_fitted(self, names):
        fitted = zip(self._kinds.fitted_names, self._kinds.fitted, strict=True)
        for name, kind in fitted:
            count = names.count(name)
            if count == 0 and kind == LEFT_OUT:
                yield None
            elif count != 1:
                raise TableError(
                    f"expected one column {name!r}, a feature of the model; got "
                    f"{count} among {', '.join(names)}."
                )
            else:
                yield names.index(name)


def _find_column(column, names, n_columns, hint):
    """Return the index of a column given by its name or its number."""
    count = names.count(column) if names else 0
    if count == 1:
        return names.index(column)
    if not count and column.isdecimal() and 1 <= int(column) <= n_columns:
        return int(column) - 1
    alternatives = f" or one of the names {', '.join(names)}" if names else ""
    raise TableError(
        f"{f'{count} columns' if count else 'no column'} {column!r}: expected a number "
        f"from 1 to {n_columns}{alternatives}.{hint}"
    )


# --- text -----------------------------------------------------------------------------


class _TextFormat:
    """Header, delimiter and decimal sign of a text file, given or by its suffix."""

    def __init__(self, header, delimiter, decimal, suffix):
        self.header = header
        self.is_detected = header is None
        self.has_default_dialect = delimiter is None and decimal == "."
        self.delimiter = delimiter or _DELIMITERS[suffix].replace(decimal, ";")
        self.decimal = decimal

    def suggest_dialect(self, cells):
        """Return a hint at a dialect that reads more cells of a row as numbers."""
        return _suggest_dialect([cells], (self.delimiter, self.decimal))


def _read_text(file, selection, text_format):
    rows = _iter_rows(file, text_format.delimiter)
    head = list(islice(rows, _HEAD_ROWS))
    _check_dialect(head, text_format)
    header = text_format.header
    if header is None:
        header = _detect_header([row for _, row in head], text_format.decimal)
    if len(head) <= header:
        content = "only column names" if head else "no rows"
        raise TableError(f"expected one row per point; got {content}.")
    names, hint = head[0][1] if header else [], ""
    if text_format.is_detected and not header:
        hint = f" Pass --header if row {head[0][0]} contains column names."
    reader = _RowReader(head[0], names, hint, text_format)
    ids = reader.read(chain(head[header:], rows), selection)
    if text_format.is_detected:
        _warn_if_ambiguous([row for _, row in head], header, text_format.decimal)
    return *reader.finish(), ids


class _RowReader:
    """Cells of the features of all rows of a text file.

    ``top`` are the line and the cells of the first row.
    """

    def __init__(self, top, names, hint, text_format):
        self._top_line, self._top = top
        self._names, self._hint, self._format = names, hint, text_format

    def read(self, rows, selection):
        """Collect the cells of (line, cells), and return those of row names, if any."""
        names, width = self._names, len(self._top)
        found = selection.find_indices(names, width, self._hint)
        self._features, self._kinds, id_index = found
        ids = None if id_index is None else [(names[id_index] if names else "") or "id"]
        decimal = self._format.decimal
        self._collectors = [CellCollector(decimal) for _ in self._features]
        refused = {"invalid"} if selection.allow_missing else {"invalid", "missing"}
        places = [
            (j, collector.append, refused | ({"text"} if kind == NUMBERS else set()))
            for j, kind, collector in zip(
                self._features, self._kinds, self._collectors, strict=True
            )
        ]
        for line, cells in rows:
            if len(cells) != width:
                raise TableError(
                    f"row {line}: expected {width} cells as in row {self._top_line}; "
                    f"got {len(cells)}.{self._format.suggest_dialect(cells)}"
                )
            for j, append, invalid in places:
                cell = "" if j is None else cells[j]
                if append(cell, line) in invalid and j is not None:
                    raise TableError(self._explain_cell(j, line, cells))
            if ids:
                ids.append(cells[id_index])
        return ids

    def _explain_cell(self, j, line, cells):
        advice = self._format.suggest_dialect(cells)
        advice = advice or (self._hint if line == self._top_line else "")
        return f"{self._describe_place(j, line)}: {_describe_cell(cells[j])}.{advice}"

    def _describe_place(self, j, line):
        name = f" ({self._names[j]!r})" if self._names and self._names[j] else ""
        return f"row {line}, column {j + 1}{name}"

    def finish(self):
        """Return X and the names of its columns."""
        names, arrays = self._names, []
        for j, kind, collector in zip(
            self._features, self._kinds, self._collectors, strict=True
        ):
            name = "" if j is None else (names[j] if names else "") or str(j + 1)

            def place(line, j=j):
                return self._describe_place(j, line)

            arrays.append(collector.finish(kind, place, name))
        return _join(arrays, self._features, names)


def _join(arrays, features, names):
    """Return columns as an array, or as a table if any holds categories, and names."""
    if names:
        # a feature that the table lacks is left out
        names = ["" if j is None else names[j] for j in features]
    if all(array.dtype.kind == "f" for array in arrays):
        return np.stack(arrays, axis=1), names or None
    return Table(names or [j + 1 for j in features], arrays), names or None


def _iter_rows(file, delimiter):
    """Yield (line number, cells) of every line that is not blank."""
    if delimiter == "space":
        rows = ((i, line.split()) for i, line in enumerate(file, start=1))
    else:
        reader = csv.reader(file, delimiter=str(_CHARACTERS.get(delimiter, delimiter)))
        rows = ((reader.line_num, [cell.strip() for cell in row]) for row in reader)
    return ((i, cells) for i, cells in rows if len(cells) > 1 or any(cells))


def _describe_cell(cell):
    suffix = " (a missing value)" if is_missing_text(cell) else ""
    return f"expected a finite number; got {reprlib.repr(cell)}{suffix}"


def _get_type(cell, decimal):
    if is_missing_text(cell):
        return "missing"
    return "text" if parse_number(cell, decimal) is None else "number"


def _detect_header(rows, decimal):
    """Return whether the first of some rows contains column names."""
    if not rows:
        return False
    types = [_get_type(cell, decimal) for cell in rows[0]]
    columns = _columns_below(rows)
    for above, column in zip(types, columns, strict=True):
        below = (_get_type(cell, decimal) for cell in column)
        present = next((kind for kind in below if kind != "missing"), None)
        if (above, present) == ("text", "number"):
            return True
    if "text" not in types or "number" in types:
        return False
    return not any(
        kind == "text" and cell in column
        for kind, cell, column in zip(types, rows[0], columns, strict=True)
    )


def _columns_below(rows):
    """Return the cells of every column but those of the first row."""
    return [[row[j] for row in rows[1:] if j < len(row)] for j in range(len(rows[0]))]


def _warn_if_ambiguous(rows, header, decimal):
    """Warn if the first of some rows may be something else."""
    first, columns = rows[0], _columns_below(rows)
    types = [_get_type(cell, decimal) for cell in first]
    kinds = [{_get_type(cell, decimal) for cell in column} for column in columns]
    reading = None
    if header and "number" in types:
        reading = "column names, although some are numbers"
    elif header and not any("number" in kind for kind in kinds):
        # above text that occurs again, a name is clearly no value
        if not any(len(set(column)) < len(column) for column in columns):
            reading = "column names, although all other rows hold text too"
    elif not header and _is_only_consecutive(rows, types, decimal):
        reading = "a point, although only this row has consecutive integers"
    elif not header and types[0] == "missing" and "missing" not in kinds[0]:
        reading = "a point, although only this row has no first cell"
    elif not header and "text" in types:
        texts = [j for j, kind in enumerate(types) if kind == "text"]
        if all(first[j] not in columns[j] and _recur(columns[j]) for j in texts):
            reading = "a point, although its text occurs in no other row"
    if reading is not None:
        warn(
            f"The first row {reprlib.repr(first)} is read as {reading}. Pass --header "
            "or --no-header to confirm or change this.",
            UserWarning,
        )


def _recur(cells):
    """Whether at least half of some cells occur more than once."""
    counts = [cells.count(cell) for cell in cells]
    return len(cells) > 1 and np.mean(np.array(counts) > 1) >= 0.5


def _is_only_consecutive(rows, types, decimal):
    """Whether the numbers of the first row, and of no other, are consecutive."""
    numbers = [j for j, kind in enumerate(types) if kind == "number"]
    if not numbers or len(rows) < 2:
        return False
    X = [
        [parse_number(row[j] if j < len(row) else "", decimal) for j in numbers]
        for row in rows
    ]
    X = np.array(X, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        is_consecutive = (X % 1 == 0).all(axis=1) & (np.diff(X) == 1).all(axis=1)
    return is_consecutive[0] and not is_consecutive[1:].any()


def _check_dialect(head, text_format):
    """Refuse a file that another dialect clearly reads better.

    Only if none was given: it splits all rows into as many cells, of which more are
    numbers.
    """
    if text_format.has_default_dialect and head:
        dialect = text_format.delimiter, text_format.decimal
        hint = _suggest_dialect([cells for _, cells in head], dialect)
        if hint:
            line, cells = head[min(1, len(head) - 1)]  # the first may be names
            raise TableError(
                f"row {line}: expected cells separated by {text_format.delimiter!r}; "
                f"got {reprlib.repr(cells)}.{hint}"
            )


def _suggest_dialect(rows, dialect):
    """Return a hint at a dialect that reads more cells of some rows as numbers."""
    sign = _CHARACTERS.get(dialect[0], dialect[0]) or " "
    lines = [sign.join(row) for row in rows]

    def score(candidate):
        delimiter, decimal = candidate
        split = rows  # cells in quotes may contain the delimiter
        if delimiter != dialect[0]:
            sign = _CHARACTERS.get(delimiter, delimiter)
            split = [line.split(sign) for line in lines]
        if len(set(map(len, split))) != 1 or len(split[0]) < 2:
            return 0.0, 0
        types = [_get_type(part, decimal) == "number" for row in split for part in row]
        return float(np.mean(types)), sum(types)

    best = max((dialect, *_DIALECTS), key=score)
    if best == dialect:
        return ""
    delimiter, decimal = best
    return f" Try --delimiter {delimiter!r} --decimal {decimal!r}."


# --- NumPy and Parquet ----------------------------------------------------------------


def _read_array(file, selection):
    try:
        A = np.load(file, allow_pickle=False)
        if isinstance(A, np.lib.npyio.NpzFile):
            keys = A.files
            A = A[keys[0] if len(keys) == 1 else "X"]
    except KeyError:
        raise TableError(
            f"expected a single array or one named X; got {', '.join(keys) or 'none'}."
        ) from None
    except (ValueError, EOFError, BadZipFile, zlib.error):
        raise TableError(
            "expected a NumPy file of numbers; got a damaged file, another format, or "
            "Python objects, which are never loaded."
        ) from None
    if A.ndim != 2 or A.dtype.kind not in "biuf" or not A.size:
        raise TableError(
            f"expected a 2-D array of numbers; got shape {A.shape}, {A.dtype}."
        )
    features, kinds, id_index = selection.find_indices([], A.shape[1])
    arrays = []
    for j, kind in zip(features, kinds, strict=True):
        values = A[:, j].astype(np.float64)
        _check_values(values, f"column {j + 1}", selection.allow_missing)
        is_text = kind in (CATEGORIES, LEFT_OUT)
        arrays.append(format_numbers(values) if is_text else values)
    ids = None if id_index is None else ["id", *A[:, id_index].tolist()]
    return *_join(arrays, features, []), ids


def _check_values(values, column, allow_missing):
    """Refuse infinite numbers, and missing ones if they are not allowed."""
    invalid = np.isinf(values) if allow_missing else ~np.isfinite(values)
    for i in np.flatnonzero(invalid)[:1]:
        got = "a missing value" if np.isnan(values[i]) else values[i]
        raise TableError(f"row {i + 1}, {column}: expected a finite number; got {got}.")


def _read_parquet(path, selection):
    try:
        from pyarrow import ArrowInvalid, parquet
    except ImportError:
        raise ImportError(
            f"Reading {path} requires pyarrow, which is not installed: pip install "
            "cdsk[parquet]"
        ) from None
    try:
        # not read_table, which infers partitions from the directory
        file = parquet.ParquetFile(path)
    except ArrowInvalid:
        raise TableError("expected a Parquet file; got another format.") from None
    with file:
        names = list(file.schema_arrow.names)
        features, kinds, id_index = selection.find_indices(names, len(names))
        table = file.read()
    if not table.num_rows:
        raise TableError("expected one row per point; got no rows.")
    arrays = []
    for j, kind in zip(features, kinds, strict=True):
        if j is None:
            arrays.append(np.full(table.num_rows, None, dtype=object))
        else:
            column = table.select([j])
            arrays.append(_read_column(column, kind, selection.allow_missing))
    ids = None
    if id_index is not None:
        cells = table.column(id_index).to_pylist()
        ids = [names[id_index], *("" if c is None else str(c) for c in cells)]
    return *_join(arrays, features, names), ids


def _read_column(column, kind, allow_missing):
    """Return a table of one column as floats, or as text for categories."""
    (name,), (dtype,) = column.column_names, column.schema.types
    (cells,) = Table.from_arrow(column).arrays
    place = f"column {name!r}"
    if cells.dtype.kind in "iuf":
        cells = cells.astype(np.float64)
        _check_values(cells, place, allow_missing)
        return format_numbers(cells) if kind in (CATEGORIES, LEFT_OUT) else cells
    present = {type(cell) for cell in cells if cell is not None}
    if not present <= {str, bool}:
        raise TableError(
            f"{place}: expected numbers, text or truth values; got type {dtype}. "
            "Select other columns with --columns, or convert it to numbers."
        )
    if kind == NUMBERS and present == {bool}:
        return np.array([np.nan if c is None else c for c in cells], dtype=np.float64)
    if kind == NUMBERS and present:
        raise TableError(f"{place}: expected numbers; got type {dtype}.")
    cells = np.full(len(cells), np.nan) if kind == NUMBERS else format_cells(cells)
    if not allow_missing:
        _check_values(np.where(cells == None, np.nan, 0.0), place, False)  # noqa: E711
    return cells
