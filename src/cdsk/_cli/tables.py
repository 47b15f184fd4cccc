# SPDX-License-Identifier: BSD-3-Clause
"""Files -> table of numbers, and labels -> text, for the command line.

========  ============================================================================
.csv      cells separated by commas; by semicolons if the decimal sign is a comma
.tsv      by tabs
.txt      by any white space
.npy      a NumPy array, never unpickled
.npz      its array ``X``, or the only one
.parquet  columns of numbers, by pyarrow
========  ============================================================================

All but Parquet may be compressed (.csv.gz); standard input is read as .csv.

The first row of a text is taken for column names if none of its cells is a number, or
if one of them is text where the row below has a number. Two guesses are in doubt, and
told in a warning: names some of which are numbers, and a first point of whole numbers
each one more than the last (2019,2020), as no other row is.
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

from cdsk._cli.compressed import OPENERS, UNREADABLE

_DELIMITERS = {".csv": ",", ".tsv": "tab", ".txt": "space"}
_ARRAYS = (".npy", ".npz")
_PARQUET = ".parquet"
_ENDINGS = (*_DELIMITERS, *_ARRAYS)
_CHARACTERS = {"tab": "\t", "space": None}  # None: any white space
_DIALECTS = [(d, p) for d in (";", "tab", "space", ",") for p in ".," if d != p]
_MISSING = {"", "na", "n/a", "nan", "null", "none", "?"}
_SWAPPED = str.maketrans(",.", ".,")
_OF_NUMBERS = " Name columns of numbers with --columns, or one of names with --id."


# What bytes that are no UTF-8 text look like by their beginning.
_OTHER_BYTES = {
    b"\x1f\x8b": ", of what is compressed by gzip: pipe it through gunzip",
    b"\xff\xfe": ", of UTF-16: convert it, as iconv -f UTF-16 -t UTF-8 does",
    b"\xfe\xff": ", of UTF-16: convert it, as iconv -f UTF-16 -t UTF-8 does",
}


class TableError(ValueError):
    """A file that is no table of numbers; the message says where and why."""


def read_table(
    path,
    columns=None,
    id_column=None,
    *,
    header=None,
    delimiter=None,
    decimal=".",
    known_names=None,
):
    """Read points; the arguments are those of ``cdsk cluster``.

    ``known_names`` are the columns if none are chosen and the table has names.

    Returns the points as float64, the names of their columns or None, and the name of
    ``id_column`` with its cells in one list or None.
    """
    shown = "standard input" if path == "-" else path
    stem, ending = os.path.splitext("-.csv" if path == "-" else str(path).lower())
    opener = OPENERS.get(ending, open)
    ending = os.path.splitext(stem)[1] if ending in OPENERS else ending
    parquet = ending == _PARQUET and opener is open
    if ending not in _ENDINGS and not parquet:
        raise TableError(
            f"cannot tell the format of {shown}: expected a name that ends in "
            f"{', '.join(_ENDINGS)}, one of these with {', '.join(OPENERS)}, or "
            f"{_PARQUET}."
        )
    chosen = _Columns(columns, id_column, known_names)
    try:
        source = os.dup(0) if path == "-" else path
        if ending in _DELIMITERS:
            delimiter = delimiter or _DELIMITERS[ending].replace(decimal, ";")
            with opener(source, "rt", encoding="utf-8-sig", newline="") as file:
                return _read_text(file, chosen, header, delimiter, decimal)
        if (header, delimiter, decimal) != (None, None, "."):
            raise TableError("only a text takes --header, --delimiter or --decimal.")
        if parquet:
            return _read_parquet(path, chosen)
        with opener(source, "rb") as file:
            return _read_array(file, chosen)
    except TableError as error:
        raise TableError(f"{shown}: {error}") from None
    except UnicodeDecodeError as error:
        problem = f"expected UTF-8 text; got the byte 0x{error.object[error.start]:02x}"
        for beginning, hint in _OTHER_BYTES.items():
            if error.object.startswith(beginning):
                problem += hint
    except csv.Error as error:
        problem = error
    except UNREADABLE as error:
        problem = getattr(error, "strerror", None) or error
    raise TableError(f"cannot read {shown}: {problem}.")


def labels_text(columns, ids=None):
    """Arrays by their names as CSV, with ``ids`` before them; floats to the same bits.

    ``ids`` are a name and its cells, as ``read_table`` returns them.
    """
    lists = [[name, *values.tolist()] for name, values in columns.items()]
    rows = zip(*([ids] if ids else []), *lists, strict=True)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _read_text(file, columns, header, delimiter, decimal):
    rows = _rows(file, delimiter)
    head = list(islice(rows, 2))
    guessed = header is None
    header = _is_header(decimal, *(row for _, row in head)) if guessed else header
    if len(head) <= header:
        got = "column names alone" if head else "nothing"
        raise TableError(f"expected a row of numbers for each point; got {got}.")
    top, first = head[0]
    names = first if header else []
    hint = "" if header or not guessed else f" Pass --header if row {top} holds names."
    chosen, beside = columns.among(names, len(first), hint)
    ids = None if beside is None else [(names[beside] if names else "") or "id"]
    values = array("d")
    for line, cells in chain(head[header:], rows):
        if len(cells) != len(first):
            raise TableError(
                f"row {line}: expected {len(first)} cells as in row {top}; got "
                f"{len(cells)}.{_advice(cells, delimiter, decimal)}"
            )
        for j in chosen:
            value = _number(cells[j], decimal)
            if value is None or not math.isfinite(value):
                name = f" ({names[j]!r})" if names and names[j] else ""
                is_missing = cells[j].lower() in _MISSING
                missing = " (a missing value)" if is_missing else ""
                advice = _advice(cells, delimiter, decimal) or hint * (line == top)
                if len(chosen) > 1 and names and cells[j][:1].isalpha():
                    advice = advice or _OF_NUMBERS * (not is_missing)
                raise TableError(
                    f"row {line}, column {j + 1}{name}: expected a finite number; got "
                    f"{reprlib.repr(cells[j])}{missing}.{advice}"
                )
            values.append(value)
        if ids:
            ids.append(cells[beside])
    X = np.array(values).reshape(-1, len(chosen))
    if guessed:
        _warn_if_in_doubt(X, [first[j] for j in chosen], header, decimal)
    return X, [names[j] for j in chosen] if names else None, ids


def _rows(file, delimiter):
    """(line number, cells) of every line that is not blank."""
    if delimiter == "space":
        rows = ((i, line.split()) for i, line in enumerate(file, start=1))
    else:
        reader = csv.reader(file, delimiter=str(_CHARACTERS.get(delimiter, delimiter)))
        rows = ((reader.line_num, [cell.strip() for cell in row]) for row in reader)
    return ((i, cells) for i, cells in rows if len(cells) > 1 or any(cells))


def _number(cell, decimal):
    """Return the cell as a float, or None if it is no number."""
    try:
        # With the two signs swapped, 1.000 is refused where the comma is the decimal.
        value = float(cell if decimal == "." else cell.translate(_SWAPPED))
    except ValueError:
        return None
    # Python, unlike anyone else, reads 1_000 as a number.
    return None if "_" in cell else value


def _is_header(decimal, first=(), second=()):
    def kind(cell):
        if _number(cell, decimal) is not None:
            return "number"
        return "missing" if cell.lower() in _MISSING else "text"

    kinds = [(kind(a), kind(b)) for a, b in zip_longest(first, second, fillvalue="")]
    above = {a for a, _ in kinds}
    return ("text", "number") in kinds or ("text" in above and "number" not in above)


def _warn_if_in_doubt(X, first, header, decimal):
    if header:
        doubt = any(_number(cell, decimal) is not None for cell in first)
        taken = "column names, though some are numbers"
    else:
        counts = (X % 1 == 0).all(axis=1) & (np.diff(X) == 1).all(axis=1)
        doubt = len(X) > 1 and counts[0] and not counts[1:].any()
        taken = "a point, though it counts up by one as no other row does"
    if doubt:
        warnings.warn(
            f"The first row, {reprlib.repr(first)}, is taken for {taken}. Pass "
            "--header or --no-header to say which.",
            stacklevel=2,
        )


def _advice(cells, *dialect):
    """Name the dialect in which more cells of the row are numbers, if there is one."""

    def share(other):
        parts = line.split(_CHARACTERS.get(other[0], other[0])) or [""]
        known = [_number(part, other[1]) is not None for part in parts]
        return (len(parts) > 1) * np.mean(known), sum(known)

    line = (_CHARACTERS.get(dialect[0], dialect[0]) or " ").join(cells)
    best = max((dialect, *_DIALECTS), key=share)
    advice = " Perhaps pass --delimiter {!r} --decimal {!r}.".format(*best)
    return "" if best == dialect else advice


class _Columns:
    """Which columns of a table are features, and which one names the rows."""

    def __init__(self, features, beside, known):
        self._features = features
        self._beside = beside
        self._known = known

    def among(self, names, width, hint=""):
        """Indices of the features, and that of the names or None.

        Of a table of so many columns, whose ``names`` may be empty.
        """

        def index(column):
            count = names.count(column) if names else 0
            if count == 1:
                return names.index(column)
            number = not count and column.isdecimal()
            if number and 1 <= int(column) <= width:
                return int(column) - 1
            known = f" or one of the names {', '.join(names)}" if names else ""
            raise TableError(
                f"{count or 'no'} columns {column!r}: expected a number from 1 to "
                f"{width}{known}.{hint}"
            )

        beside = None if self._beside is None else index(self._beside)
        asked = range(width)
        if self._features is not None:
            asked = map(index, self._features)
        elif names and self._known is not None:
            # by name alone, also if that is a number
            for column in self._known:
                if names.count(column) != 1:
                    raise TableError(
                        f"expected one column {column!r}, as the model has; got "
                        f"{names.count(column)} among {', '.join(names)}."
                    )
            asked = map(names.index, self._known)
        chosen = [j for j in asked if j != beside]
        if not chosen:
            raise TableError(
                "expected a column of numbers besides that of --id; got none."
            )
        return chosen, beside


def _read_array(file, columns):
    try:
        A = np.load(file, allow_pickle=False)
        if isinstance(A, np.lib.npyio.NpzFile):
            keys = A.files
            A = A[keys[0] if len(keys) == 1 else "X"]
    except KeyError:
        raise TableError(
            f"expected an array named X, or one alone; got {', '.join(keys) or 'none'}."
        ) from None
    except (ValueError, EOFError, BadZipFile, zlib.error):
        raise TableError(
            "expected a NumPy file of numbers; got one that is damaged, of another "
            "format, or of Python objects, which are never loaded."
        ) from None
    if A.ndim != 2 or A.dtype.kind not in "biuf" or not A.size:
        raise TableError(
            f"expected a 2-D array of numbers; got shape {A.shape}, {A.dtype}."
        )
    chosen, beside = columns.among([], A.shape[1])
    X = A[:, chosen].astype(np.float64)
    for i, j in np.argwhere(~np.isfinite(X))[:1]:
        where = f"row {i + 1}, column {chosen[j] + 1}"
        raise TableError(f"{where}: expected a finite number; got {X[i, j]}.")
    return X, None, None if beside is None else ["id", *A[:, beside].tolist()]


def _read_parquet(path, columns):
    try:
        from pyarrow import ArrowInvalid, parquet, types
    except ImportError:
        raise ImportError(
            f"To read {path} takes pyarrow, which is not installed: pip install "
            "cdsk[parquet]"
        ) from None
    try:
        # by itself, not as a part of what its folder may be
        file = parquet.ParquetFile(path)
    except ArrowInvalid:
        raise TableError("expected a Parquet file; got another kind of file.") from None
    with file:
        schema = file.schema_arrow
        names = list(schema.names)
        chosen, beside = columns.among(names, len(names))
        for j in chosen:
            kind = schema.types[j]
            if not any(
                is_kind(kind)
                for is_kind in (types.is_integer, types.is_floating, types.is_boolean)
            ):
                raise TableError(
                    f"column {names[j]!r}: expected numbers; got the type {kind}."
                    f"{_OF_NUMBERS}"
                )
        table = file.read()
    X = np.empty((table.num_rows, len(chosen)))
    for k, j in enumerate(chosen):
        X[:, k] = table.column(j).to_numpy(zero_copy_only=False).astype(np.float64)
    if not X.size:
        raise TableError("expected a row of numbers for each point; got nothing.")
    for i, k in np.argwhere(~np.isfinite(X))[:1]:
        value = table.column(chosen[k])[int(i)].as_py()
        shown = "a missing value" if value is None else value
        raise TableError(
            f"row {i + 1}, column {names[chosen[k]]!r}: expected a finite number; got "
            f"{shown}."
        )
    ids = None
    if beside is not None:
        cells = table.column(beside).to_pylist()
        ids = [names[beside], *("" if c is None else str(c) for c in cells)]
    return X, [names[j] for j in chosen], ids
