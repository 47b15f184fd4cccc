# SPDX-License-Identifier: BSD-3-Clause
"""Files -> table of numbers, and labels -> file, for the command line.

=============  =======================================================================
.csv           cells separated by commas
.tsv           by tabs
.txt           by any white space
.npy           a NumPy array, never unpickled
.npz           its array ``X``, or the only one
=============  =======================================================================

A text file may begin with a line of column names. The first line is one if none of its
cells is a number, or if one of them is text where the line below has a number.
"""

import csv
import math
import zlib
from array import array
from itertools import chain, islice
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

_SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": None}
ENDINGS = (*_SEPARATORS, ".npy", ".npz")

_MISSING = {"", "na", "n/a", "nan", "null", "none", "?"}


class TableError(ValueError):
    """A file that is no table of numbers; the message says where and why."""


def read_table(path, columns=None):
    """Read points from a file.

    Parameters
    ----------
    path : str or Path
        File with one of ``ENDINGS``.
    columns : list of str, default=None
        Columns to keep, by name or by number from 1; other columns of a text file may
        hold anything. None keeps all.

    Returns
    -------
    X : ndarray of float64, shape (n_rows, n_columns)
    names : list of str or None
        Names of the columns, where the file has any.
    """
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise TableError(
            f"cannot tell the format of {path}: expected a name that ends in "
            f"{', '.join(ENDINGS)}."
        )
    try:
        if ending in _SEPARATORS:
            return _read_text(path, _SEPARATORS[ending], columns)
        return _read_numpy(path, columns), None
    except OSError as error:
        raise TableError(f"cannot read {path}: {error.strerror or error}.") from None


def write_labels(path, labels, weights):
    """Write labels and weights as CSV, a row per point."""
    Path(path).write_text(labels_text(labels, weights), encoding="utf-8", newline="\n")


def labels_text(labels, weights):
    """Labels and weights as CSV; the weights read back to the same bits."""
    rows = zip(labels.tolist(), weights.tolist(), strict=True)
    return "label,weight\n" + "".join(f"{label},{w!r}\n" for label, w in rows)


def _read_text(path, separator, columns):
    with open(path, encoding="utf-8-sig", newline="") as file:
        try:
            return _parse(path, _rows(file, separator), columns, separator)
        except UnicodeDecodeError as error:
            raise TableError(
                f"cannot read {path}: expected UTF-8 text; got the byte "
                f"0x{error.object[error.start]:02x}."
            ) from None
        except csv.Error as error:
            raise TableError(f"cannot read {path}: {error}.") from None


def _rows(file, separator):
    """(line number, cells) of every line that is not blank."""
    if separator is None:
        rows = ((i, line.split()) for i, line in enumerate(file, start=1))
    else:
        reader = csv.reader(file, delimiter=separator)
        rows = ((reader.line_num, cells) for cells in reader)
    return ((i, cells) for i, cells in rows if len(cells) > 1 or "".join(cells).strip())


def _parse(path, rows, columns, separator):
    head = list(islice(rows, 2))
    if not head:
        raise TableError(f"{path} is empty: expected a row of numbers for each point.")
    first_line, first = head[0]
    names = None
    if _is_header(*(cells for _, cells in head)):
        names = [cell.strip() for cell in first]
        del head[0]
        if not head:
            raise TableError(f"{path} has column names but no rows of numbers below.")
    chosen = _choose(path, columns, names, len(first))
    values = array("d")
    for line, cells in chain(head, rows):
        if len(cells) != len(first):
            raise TableError(
                f"{path}, row {line}: expected {len(first)} cells as in row "
                f"{first_line}; got {len(cells)}."
            )
        numbers = _numbers([cells[j] for j in chosen])
        if numbers is None:
            j = next(j for j in chosen if _numbers([cells[j]]) is None)
            raise TableError(
                f"{path}, row {line}, {_column(j, names)}: "
                f"{_complaint(cells[j].strip(), separator)}"
            )
        values.extend(numbers)
    X = np.array(values).reshape(-1, len(chosen))
    return X, None if names is None else [names[j] for j in chosen]


def _numbers(cells):
    """Return the cells as floats, or None if one is no finite number."""
    try:
        numbers = [float(cell) for cell in cells]
    except ValueError:
        return None
    # Python, unlike anyone else, reads 1_000 as a number.
    ordinary = all(map(math.isfinite, numbers)) and "_" not in "".join(cells)
    return numbers if ordinary else None


def _is_header(first, second=()):
    text = [_is_text(cell) for cell in first]
    if any(t and _numbers([c]) is not None for t, c in zip(text, second, strict=False)):
        return True
    return any(text) and all(_numbers([cell]) is None for cell in first)


def _is_text(cell):
    """Tell if a cell is neither a number nor a sign for a missing one."""
    try:
        float(cell)
    except ValueError:
        return cell.strip().lower() not in _MISSING
    return "_" in cell


def _complaint(cell, separator):
    if not cell:
        return "expected a number; got an empty cell (a missing value)."
    if cell.lower() in _MISSING:
        return f"expected a number; got {cell!r} (a missing value)."
    if not _is_text(cell):
        return f"expected a finite number; got {cell!r}."
    other = next((c for c in ",;\t" if c in cell and c != separator), None)
    hint = f" Are the cells separated by {other!r}?" if other else ""
    return f"expected a number; got {cell!r}.{hint}"


def _column(j, names):
    return f"column {j + 1}" + (f" ({names[j]!r})" if names and names[j] else "")


def _choose(path, columns, names, width):
    """Return the indices of the columns asked for."""
    if columns is None:
        return list(range(width))
    return [_index(path, column, names, width) for column in columns]


def _index(path, column, names, width):
    count = 0 if names is None else names.count(column)
    if count == 1:
        return names.index(column)
    if count > 1:
        raise TableError(
            f"{path} has {count} columns named {column!r}: expected a number from 1 to "
            f"{width} instead."
        )
    if column.isdecimal() and 1 <= int(column) <= width:
        return int(column) - 1
    known = "" if names is None else f", named {', '.join(names)}"
    raise TableError(
        f"{path} has no column {column!r}: expected names or numbers of its columns, "
        f"1 to {width}{known}."
    )


def _read_numpy(path, columns):
    try:
        with open(path, "rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.lib.npyio.NpzFile):
                loaded = np.asarray(loaded[_key(path, loaded.files)])
    except TableError:
        raise
    except (ValueError, EOFError, BadZipFile, zlib.error):
        raise TableError(
            f"cannot read {path}: expected a NumPy file of numbers; got one that is "
            "damaged, of another format, or of Python objects, which are never loaded."
        ) from None
    if loaded.ndim != 2 or loaded.dtype.kind not in "biuf":
        raise TableError(
            f"{path} must hold a 2-D array of numbers, a row per point; got shape "
            f"{loaded.shape} and dtype {loaded.dtype}."
        )
    if not loaded.size:
        raise TableError(f"{path} is empty: got an array of shape {loaded.shape}.")
    chosen = _choose(path, columns, None, loaded.shape[1])
    X = loaded[:, chosen].astype(np.float64)
    wrong = np.argwhere(~np.isfinite(X))
    if len(wrong):
        i, j = wrong[0]
        raise TableError(
            f"{path}, row {i + 1}, {_column(chosen[j], None)}: expected a finite "
            f"number; got {float(X[i, j])!r}."
        )
    return X


def _key(path, keys):
    if "X" in keys:
        return "X"
    if len(keys) == 1:
        return keys[0]
    raise TableError(
        f"{path} must hold an array named X or a single array; got "
        f"{', '.join(keys) or 'none'}."
    )
