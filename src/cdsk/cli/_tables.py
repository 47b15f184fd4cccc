# SPDX-License-Identifier: BSD-3-Clause
"""Read tables of numbers and format labels, for the command line.

========  ============================================================================
.csv      cells separated by commas; by semicolons if the decimal sign is a comma
.tsv      cells separated by tabs
.txt      cells separated by white space
.npy      a NumPy array, never unpickled
.npz      its array ``X``, or its only array
.parquet  numeric columns, read by pyarrow
========  ============================================================================

All formats except Parquet may be compressed (.csv.gz); standard input is read as .csv.

The first row of a text file is read as column names if none of its cells is a number,
or if one of them is text above a number. Two cases are ambiguous and raise a warning:
column names some of which are numbers, and a first row of consecutive integers
(2019,2020), if no other row has consecutive integers.
"""

import csv
import io
import math
import os
import reprlib
import warnings
import zlib
from array import array
from itertools import chain, islice, zip_longest
from zipfile import BadZipFile

import numpy as np

from cdsk.cli._compressed import OPENERS, READ_ERRORS

_DELIMITERS = {".csv": ",", ".tsv": "tab", ".txt": "space"}
_PARQUET = ".parquet"
_SUFFIXES = (*_DELIMITERS, ".npy", ".npz")
_CHARACTERS = {"tab": "\t", "space": None}  # None: any white space
# Pairs of delimiter and decimal sign.
_DIALECTS = [(d, p) for d in (";", "tab", "space", ",") for p in ".," if d != p]
_MISSING_VALUES = {"", "na", "n/a", "nan", "null", "none", "?"}
_SWAP_SIGNS = str.maketrans(",.", ".,")
_COLUMNS_HINT = (
    " Select numeric columns with --columns, or a column of row names with --id."
)

# Hints for files that are not UTF-8, by their first bytes.
_ENCODING_HINTS = {
    b"\x1f\x8b": " (gzip: decompress it with gunzip)",
    b"\xff\xfe": " (UTF-16: convert it with iconv -f UTF-16 -t UTF-8)",
    b"\xfe\xff": " (UTF-16: convert it with iconv -f UTF-16 -t UTF-8)",
}


class TableError(ValueError):
    """A file is not a table of numbers; the message says where and why."""


def read_table(
    path,
    columns=None,
    id_column=None,
    *,
    header=None,
    delimiter=None,
    decimal=".",
    fitted_names=None,
):
    """Read points from a file, with the options of ``cdsk cluster``.

    If ``columns`` is None and the table has column names, ``fitted_names`` selects
    columns by name.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features), float64
    names : list of str, or None
        Names of the columns.
    ids : list, or None
        Name of ``id_column``, followed by its cells.
    """
    source = "standard input" if path == "-" else path
    suffix, opener = _detect_format(path, source)
    selection = _ColumnSelection(columns, id_column, fitted_names)
    try:
        file_or_descriptor = os.dup(0) if path == "-" else path
        if suffix in _DELIMITERS:
            delimiter = delimiter or _DELIMITERS[suffix].replace(decimal, ";")
            with opener(
                file_or_descriptor, "rt", encoding="utf-8-sig", newline=""
            ) as file:
                return _read_text(file, selection, header, delimiter, decimal)
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

    Columns are names or numbers from 1. Fitted names are matched as names only.
    """

    def __init__(self, columns, id_column, fitted_names):
        self._columns = columns
        self._id_column = id_column
        self._fitted_names = fitted_names

    def find_indices(self, names, n_columns, hint=""):
        """Return the indices of the features, and that of the row names or None.

        ``names`` is empty for a table without column names.
        """

        def find(column):
            return _find_column(column, names, n_columns, hint)

        id_index = None if self._id_column is None else find(self._id_column)
        indices = range(n_columns)
        if self._columns is not None:
            indices = map(find, self._columns)
        elif names and self._fitted_names is not None:
            indices = self._find_fitted(names)
        features = [j for j in indices if j != id_index]
        if not features:
            raise TableError("expected at least one column besides --id; got none.")
        return features, id_index

    def _find_fitted(self, names):
        for name in self._fitted_names:
            if names.count(name) != 1:
                raise TableError(
                    f"expected one column {name!r}, a feature of the model; got "
                    f"{names.count(name)} among {', '.join(names)}."
                )
        return map(names.index, self._fitted_names)


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


def _read_text(file, selection, header, delimiter, decimal):
    rows = _iter_rows(file, delimiter)
    head = list(islice(rows, 2))
    is_detected = header is None
    if is_detected:
        header = _detect_header([row for _, row in head], decimal)
    if len(head) <= header:
        content = "only column names" if head else "no rows"
        raise TableError(f"expected one row of numbers per point; got {content}.")
    top, first = head[0]
    names = first if header else []
    hint = ""
    if is_detected and not header:
        hint = f" Pass --header if row {top} contains column names."
    features, id_index = selection.find_indices(names, len(first), hint)
    ids = None if id_index is None else [(names[id_index] if names else "") or "id"]
    values = array("d")
    for line, cells in chain(head[header:], rows):
        if len(cells) != len(first):
            raise TableError(
                f"row {line}: expected {len(first)} cells as in row {top}; got "
                f"{len(cells)}.{_suggest_dialect(cells, (delimiter, decimal))}"
            )
        for j in features:
            value = _parse_number(cells[j], decimal)
            if value is None or not math.isfinite(value):
                advice = _suggest_dialect(cells, (delimiter, decimal))
                advice = advice or (hint if line == top else "")
                if len(features) > 1 and names:
                    advice = advice or _suggest_columns(cells[j])
                name = f" ({names[j]!r})" if names and names[j] else ""
                place = f"row {line}, column {j + 1}{name}"
                raise TableError(f"{place}: {_describe_cell(cells[j])}.{advice}")
            values.append(value)
        if ids:
            ids.append(cells[id_index])
    X = np.array(values).reshape(-1, len(features))
    if is_detected:
        _warn_if_ambiguous(X, [first[j] for j in features], header, decimal)
    return X, [names[j] for j in features] if names else None, ids


def _iter_rows(file, delimiter):
    """Yield (line number, cells) of every line that is not blank."""
    if delimiter == "space":
        rows = ((i, line.split()) for i, line in enumerate(file, start=1))
    else:
        reader = csv.reader(file, delimiter=str(_CHARACTERS.get(delimiter, delimiter)))
        rows = ((reader.line_num, [cell.strip() for cell in row]) for row in reader)
    return ((i, cells) for i, cells in rows if len(cells) > 1 or any(cells))


def _parse_number(cell, decimal):
    """Return the cell as a float, or None if it is not a number."""
    try:
        # Swapping both signs rejects 1.000 where the decimal sign is a comma.
        value = float(cell if decimal == "." else cell.translate(_SWAP_SIGNS))
    except ValueError:
        return None
    # Python reads 1_000 as a number, other programs do not.
    return None if "_" in cell else value


def _is_missing(cell):
    return cell.lower() in _MISSING_VALUES


def _describe_cell(cell):
    suffix = " (a missing value)" if _is_missing(cell) else ""
    return f"expected a finite number; got {reprlib.repr(cell)}{suffix}"


def _suggest_columns(cell):
    """Return a hint if a cell of a feature is text."""
    return _COLUMNS_HINT if cell[:1].isalpha() and not _is_missing(cell) else ""


def _detect_header(rows, decimal):
    """Return whether the first of at most two rows contains column names."""

    def get_type(cell):
        if _parse_number(cell, decimal) is not None:
            return "number"
        return "missing" if _is_missing(cell) else "text"

    first, second = [*rows, [], []][:2]
    cells = zip_longest(first, second, fillvalue="")
    types = [(get_type(above), get_type(below)) for above, below in cells]
    first_types = {above for above, _ in types}
    is_text = "text" in first_types and "number" not in first_types
    return ("text", "number") in types or is_text


def _warn_if_ambiguous(X, first, header, decimal):
    if header:
        is_ambiguous = any(_parse_number(cell, decimal) is not None for cell in first)
        reading = "column names, although some are numbers"
    else:
        is_consecutive = (X % 1 == 0).all(axis=1) & (np.diff(X) == 1).all(axis=1)
        is_unique = is_consecutive[0] and not is_consecutive[1:].any()
        is_ambiguous = len(X) > 1 and is_unique
        reading = "a point, although only this row has consecutive integers"
    if is_ambiguous:
        warnings.warn(
            f"The first row {reprlib.repr(first)} is read as {reading}. Pass --header "
            "or --no-header to confirm or change this.",
            stacklevel=2,
        )


def _suggest_dialect(cells, dialect):
    """Return a hint at a dialect that reads more cells of a row as numbers."""

    def score(candidate):
        delimiter, decimal = candidate
        parts = line.split(_CHARACTERS.get(delimiter, delimiter)) or [""]
        is_number = [_parse_number(part, decimal) is not None for part in parts]
        return (len(parts) > 1) * np.mean(is_number), sum(is_number)

    delimiter, _ = dialect
    line = (_CHARACTERS.get(delimiter, delimiter) or " ").join(cells)
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
    features, id_index = selection.find_indices([], A.shape[1])
    X = A[:, features].astype(np.float64)
    for i, j in np.argwhere(~np.isfinite(X))[:1]:
        raise TableError(
            f"row {i + 1}, column {features[j] + 1}: expected a finite number; got "
            f"{X[i, j]}."
        )
    return X, None, None if id_index is None else ["id", *A[:, id_index].tolist()]


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
        features, id_index = selection.find_indices(names, len(names))
        _check_column_types(file.schema_arrow, features)
        table = file.read()
    X = np.empty((table.num_rows, len(features)))
    for k, j in enumerate(features):
        X[:, k] = table.column(j).to_numpy(zero_copy_only=False).astype(np.float64)
    if not X.size:
        raise TableError("expected one row of numbers per point; got no rows.")
    for i, k in np.argwhere(~np.isfinite(X))[:1]:
        value = table.column(features[k])[int(i)].as_py()
        raise TableError(
            f"row {i + 1}, column {names[features[k]]!r}: expected a finite number; "
            f"got {'a missing value' if value is None else value}."
        )
    ids = None
    if id_index is not None:
        cells = table.column(id_index).to_pylist()
        ids = [names[id_index], *("" if c is None else str(c) for c in cells)]
    return X, [names[j] for j in features], ids


def _check_column_types(schema, features):
    from pyarrow import types

    for j in features:
        dtype = schema.types[j]
        checks = types.is_integer, types.is_floating, types.is_boolean
        if not any(is_type(dtype) for is_type in checks):
            raise TableError(
                f"column {schema.names[j]!r}: expected numbers; got type {dtype}."
                f"{_COLUMNS_HINT}"
            )
