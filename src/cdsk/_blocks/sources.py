# SPDX-License-Identifier: BSD-3-Clause
"""What can be gone through in blocks, again and again (tests/test_blocks_sources.py).

A source is a list of *pieces*, each of which has a shape and gives slices of its rows:
one array or memory map, files, row groups, the blocks of an iterable. Nothing but one
part of a piece at a time is read, but for pieces that are in memory by themselves.
"""

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format
from scipy import sparse

from cdsk._frames import column_name, is_frame
from cdsk._validation import check_points, largest_coordinate, said_of_coordinates

# Rows and numbers of a part at most: 16 MiB of float64.
_PART_ROWS, _PART_NUMBERS = 2**16, 2**21

_EXPECTED = (
    "X must be an array or a memory map, an array of zarr or h5py, .npy or .parquet "
    "files, a pyarrow dataset, or blocks of rows that can be gone through again"
)

# Endings of files that hold several arrays.
_OPENED_FIRST = (".zarr", ".h5", ".hdf5")

# Types of Parquet columns that are numbers.
_NUMBERS = re.compile("u?int|float|double|halffloat|bool|decimal")


@dataclass(frozen=True)
class Part:
    """Rows of X that are met at a time: those from ``begin`` on of piece ``piece``."""

    rows: Any
    # number of its first row in X, and in the piece
    first: int
    begin: int
    piece: int
    # whether X has several pieces
    one_of_many: bool

    def checked(self, n_features):
        """The rows as C-contiguous floats, n_features of them, none too large."""
        what = f"Block {self.piece} of X" if self.one_of_many else "X"
        with self.counting_rows():
            rows = check_points(
                self.rows, what, ensure_all_finite=False, ensure_min_samples=0
            )
        if rows.shape[1] != n_features:
            raise ValueError(
                f"{what} must have {n_features} columns; got {rows.shape[1]}."
            )
        most = largest_coordinate(n_features)
        # float32 is compared with what it can hold
        bound = min(most, float(np.finfo(rows.dtype).max))
        fine = (rows <= bound) & (rows >= -bound)
        if not fine.all():
            row, column = np.argwhere(~fine)[0]
            value = float(rows[row, column])
            name = column_name(self.rows, column)
            place = f"row {self.first + row}, column {name}"
            if self.one_of_many:
                place += f" (row {self.begin + row} of block {self.piece})"
            if np.isfinite(value):
                raise ValueError(said_of_coordinates(most, f"{value:.1e} at {place}"))
            value = "NaN" if np.isnan(value) else "infinity"
            raise ValueError(
                f"Input X contains {value} at {place}; expected finite numbers only."
            )
        return rows

    @contextmanager
    def counting_rows(self):
        """Say of an error, which knows the part alone, where its rows are in X."""
        try:
            yield
        except ValueError as error:
            if self.first == 0:
                raise
            here = f"Row 0 is row {self.first} of X here"
            if self.one_of_many:
                here += f", row {self.begin} of block {self.piece}"
            raise ValueError(f"{error} {here}.") from None


class Source:
    """Rows in pieces; ``pieces()`` gives an iterator of all of them, every time."""

    def __init__(self, pieces, one_of_many, n_rows=None):
        self._pieces = pieces
        self._many = one_of_many
        # how many there are, where that is known before all were seen
        self.n_rows = n_rows

    def parts(self, rows=_PART_ROWS, first=0, first_piece=0) -> Iterator[Part]:
        """Parts of so many rows at most, in order.

        ``first`` and ``first_piece`` are the numbers of the first row and piece.
        """
        pieces = self._pieces()
        # a generator is closed, and with it what it has open, wherever the pass ends
        with closing(pieces) if hasattr(pieces, "close") else nullcontext():
            columns = None
            for number, piece in enumerate(pieces, first_piece):
                piece = _as_piece(piece, number, self._many)
                columns = _check_names(piece, number, columns)
                n, d = piece.shape
                # read at once, whatever the work: a chunk of a file may be compressed
                read = max(1, min(_PART_ROWS, _PART_NUMBERS // max(d, 1)))
                step = min(rows, read)
                for start in range(0, n, read):
                    found = getattr(piece, "iloc", piece)[start : start + read]
                    for begin in range(0, found.shape[0], step):
                        part = getattr(found, "iloc", found)[begin : begin + step]
                        begin += start
                        yield Part(part, first + begin, begin, number, self._many)
                first += n


def as_source(X: Any, once: bool = False) -> Source:
    """The ``Source`` of what a user calls X, which may have to be met ``once`` only."""
    if sparse.issparse(X):
        raise ValueError(f"{_EXPECTED}; got a sparse matrix. Use X.toarray() of parts.")
    if isinstance(X, str | os.PathLike):
        path = Path(X)
        # a folder is a dataset, but for one of .npy files
        files = sorted(path.glob("*.npy")) or [path]
        if path.is_dir() and not any(path.iterdir()):
            raise ValueError(f"{_EXPECTED}; got an empty folder, {path}.")
        return _of_files(files)
    if isinstance(X, list | tuple) and X:
        if all(isinstance(x, str | os.PathLike) for x in X):
            return _of_files([Path(x) for x in X])
        if all(_is_block(x) for x in X):
            return Source(lambda: iter(X), True)
    if hasattr(X, "get_fragments"):  # a dataset of pyarrow
        return Source(lambda: _row_groups(X), True)
    if hasattr(X, "__array__") and not hasattr(X, "__getitem__"):
        X = np.asarray(X)
    if hasattr(X, "shape") and hasattr(X, "__getitem__"):
        n_rows = int(X.shape[0]) if len(X.shape) == 2 else None
        return Source(lambda: iter([X]), False, n_rows)
    if isinstance(X, Iterator) and not once:
        raise ValueError(
            f"{_EXPECTED}, as a fit does so several times; got a {type(X).__name__}, "
            "which gives its blocks once. Use a list, or an object whose __iter__ "
            "begins anew."
        )
    if isinstance(X, list | tuple):
        array = _of_rows(X)
        return Source(lambda: iter([array]), False, len(array))
    if not isinstance(X, Iterable) or isinstance(X, bytes | Mapping | Set):
        raise ValueError(f"{_EXPECTED}; got a {type(X).__name__}.")
    return Source(lambda: iter(X), True)


def _of_rows(X):
    """A list of rows as an array."""
    what = type(X).__name__
    if not X:
        raise ValueError(f"{_EXPECTED}; got an empty {what}.")
    try:
        return check_points(X, ensure_all_finite=False)
    except ValueError as error:
        raise ValueError(
            f"{_EXPECTED}; got a {what} that is no table of numbers: {error}"
        ) from None


def _is_block(x):
    return sparse.issparse(x) or (np.ndim(x) == 2 and hasattr(x, "shape"))


def _as_piece(piece, number, one_of_many):
    what = f"Block {number} of X" if one_of_many else "X"
    if sparse.issparse(piece):
        raise ValueError(
            f"{what} must be a dense array; got a sparse {type(piece).__name__}."
        )
    shape = getattr(piece, "shape", None)
    if shape is None:
        piece = np.asarray(piece)
        shape = piece.shape
    if len(shape) != 2:
        raise ValueError(
            f"{what} must be 2-dimensional, rows by columns; got shape {tuple(shape)}. "
            "Reshape your data: X.reshape(-1, 1) has one column, X.reshape(1, -1) one "
            "row."
        )
    return piece


def _check_names(piece, number, expected):
    """Names of the columns of a frame, which are those of the frames before."""
    if not is_frame(piece):
        return expected
    columns = list(piece.columns)
    if expected is not None and columns != expected:
        raise ValueError(
            f"Block {number} of X must have the columns of those before, in their "
            f"order, {', '.join(map(str, expected))}; got "
            f"{', '.join(map(str, columns))}."
        )
    return columns


class NpyFile:
    """A matrix in a .npy file, of which slices of rows are read, not mapped.

    The address space may be too small for a map of the whole file.
    """

    def __init__(self, path):
        with open(path, "rb") as file:
            if format.read_magic(file) == (1, 0):
                header = format.read_array_header_1_0(file)
            else:
                header = format.read_array_header_2_0(file)
            self.shape, by_columns, self._dtype = header
            self._offset, self._path = file.tell(), path
        if self._dtype.kind not in "biuf":
            raise ValueError(f"it has the dtype {self._dtype}")
        size = self._offset + math.prod(self.shape) * self._dtype.itemsize
        if os.path.getsize(path) < size:
            raise ValueError(f"it has less than {size} bytes")
        self._mapped = np.load(path, mmap_mode="r") if by_columns else None

    def __getitem__(self, rows):
        if self._mapped is not None:
            return self._mapped[rows]
        begin, end, _ = rows.indices(self.shape[0])
        width = self.shape[1]
        found = np.fromfile(
            self._path,
            self._dtype,
            (end - begin) * width,
            offset=self._offset + begin * width * self._dtype.itemsize,
        )
        return found.reshape(end - begin, width)


def _of_files(paths):
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"X must name files that exist; got {path}.")
        if path.suffix in _OPENED_FIRST:
            raise ValueError(
                f"{_EXPECTED}; got {path}. Open it with zarr or h5py, and pass the "
                "array."
            )
        if path.suffix == ".npy" and path.is_dir():
            raise ValueError(f"{_EXPECTED}; got a folder named {path}.")
    if all(path.suffix == ".npy" for path in paths):
        return Source(lambda: map(_npy, paths), True)
    if any(path.suffix == ".npy" for path in paths):
        raise ValueError(
            "X must name files of one kind, .npy or Parquet; got both: "
            f"{', '.join(path.name for path in paths[:4])}."
        )
    dataset = _dataset(paths)
    return Source(lambda: _row_groups(dataset), True)


def _npy(path):
    try:
        return NpyFile(path)
    except ValueError as error:
        raise ValueError(
            f"X must name .npy files that hold numbers; could not read {path}: {error}"
        ) from None


def _dataset(paths):
    try:
        from pyarrow import dataset
    except ImportError:
        raise ImportError(
            f"To read {paths[0]} takes pyarrow (pip install pyarrow); expected .npy "
            "files without it."
        ) from None
    names = [str(path) for path in paths]
    try:
        return dataset.dataset(names[0] if len(names) == 1 else names, format="parquet")
    except (ValueError, OSError) as error:
        raise ValueError(
            "X must name .npy files, or Parquet files or folders of them; could not "
            f"read {names[0]}: {error}"
        ) from None


def _check_types(schema, features, where=""):
    for name in features:
        kind = schema.field(name).type
        if not _NUMBERS.match(str(kind)):
            raise ValueError(
                f"X must hold numbers only; got {kind} in column {name!r}{where}. "
                "Leave it out, or make numbers of it."
            )


def _check_file(fragment, features, index):
    """Refuse a file whose columns are not those of the first."""
    schema, path = fragment.physical_schema, getattr(fragment, "path", "a fragment")
    names = [name for name in schema.names if name not in index]
    for which, odd in (
        ("lacks", [name for name in features if name not in names]),
        ("also has", [name for name in names if name not in features]),
    ):
        if odd:
            raise ValueError(
                "X must name files of the same columns, those of the first, "
                f"{', '.join(features)}; {path} {which} {', '.join(odd)}."
            )
    _check_types(schema, features, f" of {path}")


def _row_groups(dataset):
    # pandas keeps the numbers of rows among the columns
    index = (dataset.schema.pandas_metadata or {}).get("index_columns", ())
    features = [name for name in dataset.schema.names if name not in index]
    _check_types(dataset.schema, features)
    for fragment in dataset.get_fragments():
        _check_file(fragment, features, index)
        for group in fragment.split_by_row_group():
            yield group.to_table(schema=dataset.schema, columns=features)
