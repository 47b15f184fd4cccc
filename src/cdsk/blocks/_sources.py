# SPDX-License-Identifier: BSD-3-Clause
"""Data that can be read in blocks repeatedly (tests/test_blocks_sources.py).

A source is a sequence of *blocks*, each with a shape and slices of rows: one array or
memory map, files, row groups, the items of an iterable. Blocks are read in *parts*, one
part at a time, unless a block is in memory anyway.
"""

import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format
from scipy import sparse

from cdsk._columns import Columns
from cdsk._table import Table
from cdsk._validation import (
    CATEGORIES_HINT,
    check_points,
    column_name,
    coordinate_message,
    is_frame,
    is_missing,
    max_coordinate,
)

# Rows and entries of a part at most: 16 MiB of float64.
_MAX_PART_ROWS, _MAX_PART_SIZE = 2**16, 2**21

_SUPPORTED = (
    "X must be an array or a memory map, an array of zarr or h5py, .npy or .parquet "
    "files, a pyarrow dataset, or a re-iterable collection of blocks of rows"
)

# Suffixes of files that may hold several arrays.
_CONTAINER_SUFFIXES = (".zarr", ".h5", ".hdf5")

# Types of Parquet columns: numbers, and others that may be categories.
_NUMERIC_TYPE = re.compile("u?int|float|double|halffloat|decimal")
_OTHER_TYPE = re.compile("bool|(large_)?string|dictionary|null")


@dataclass(frozen=True)
class Features:
    """What the rows of X must hold.

    Attributes
    ----------
    n : int
        Number of columns.
    columns : Columns or None
        What they hold; None if all hold numbers.
    allow_missing : bool
        Whether cells may be missing.
    """

    n: int
    columns: Columns | None = None
    allow_missing: bool = True

    def describe(self, rows, column):
        """Return the name of a column of validated rows in quotes, or its number."""
        if self.columns is None:
            return column_name(rows, column)
        name = self.columns.names[self.columns.kept[column]]
        return name if name.isdecimal() else repr(name)


@dataclass(frozen=True)
class Part:
    """Consecutive rows of a block that are processed at a time.

    Attributes
    ----------
    rows : array-like of shape (n, d)
        The rows, not validated.
    first_row : int
        Index of the first row in X.
    first_row_in_block : int
        Index of the first row in its block.
    block : int
        Index of the block.
    has_blocks : bool
        Whether X has several blocks; messages then name the block.
    unknown : Counter
        Number of cells of categories that the fit did not see, by column; counted by
        ``validate``.
    """

    rows: Any
    first_row: int
    first_row_in_block: int
    block: int
    has_blocks: bool
    unknown: Counter[str] = field(default_factory=Counter, compare=False)

    def validate(self, features):
        """Return the rows as C-contiguous floats, numbers and codes of categories.

        Missing cells are NaN.
        """
        name = f"Block {self.block} of X" if self.has_blocks else "X"
        with self.explain_row_offset():
            rows = self._read(name, features)
        largest = max_coordinate(features.n)
        # float32 is compared with its own largest number
        bound = min(largest, float(np.finfo(rows.dtype).max))
        is_valid = (rows <= bound) & (rows >= -bound)
        if is_valid.all():
            return rows
        is_missing_cell = np.isnan(rows)
        if features.allow_missing:
            is_valid |= is_missing_cell
        if not is_valid.all():
            row, column = np.argwhere(~is_valid)[0]
            location = f"{self._locate(row)[0]}, column "
            location += features.describe(self.rows, column) + self._locate(row)[1]
            _raise_invalid(float(rows[row, column]), location, largest)
        for row in np.flatnonzero(is_missing_cell.all(axis=1))[:1]:
            raise ValueError(
                f"X must have a value in every row; got none at "
                f"{''.join(self._locate(row))}. Leave the row out."
            )
        return rows

    def _read(self, name, features):
        """Return the rows as floats of any value."""
        rows, n = self.rows, self.rows.shape[1]
        if features.columns is None:
            if features.allow_missing:
                rows = _fill_missing(rows)
            rows = check_points(
                rows,
                name,
                hint=CATEGORIES_HINT,
                ensure_all_finite=False,
                ensure_min_samples=0,
            )
        if n != features.n:
            raise ValueError(f"{name} must have {features.n} columns; got {n}.")
        if features.columns is not None:
            return features.columns.encode(self.as_frame(), self.unknown)
        return rows

    def as_frame(self):
        """Return the rows with columns that can be read one by one."""
        has_names = hasattr(self.rows, "column_names")  # of pyarrow
        return Table.from_arrow(self.rows) if has_names else self.rows

    def _locate(self, row):
        """Return the row in X, and a remark on that in the block."""
        in_block = ""
        if self.has_blocks:
            in_block = f" (row {self.first_row_in_block + row} of block {self.block})"
        return f"row {self.first_row + row}", in_block

    @contextmanager
    def explain_row_offset(self):
        """Add the first row of this part to errors, whose row numbers start there."""
        try:
            yield
        except ValueError as error:
            if self.first_row == 0:
                raise
            origin = f"row {self.first_row} of X"
            if self.has_blocks:
                origin += f", row {self.first_row_in_block} of block {self.block}"
            raise ValueError(
                f"{error} (Row numbers are relative to {origin}.)"
            ) from None


def _raise_invalid(value, location, largest):
    if np.isfinite(value):
        raise ValueError(coordinate_message(largest, f"{value:.1e} at {location}"))
    kind = "NaN" if np.isnan(value) else "infinity"
    raise ValueError(
        f"Input X contains {kind} at {location}; expected finite numbers only."
    )


def _fill_missing(rows):
    """Return rows with NaN for masked cells, and for missing ones among objects."""
    if np.ma.isMaskedArray(rows):
        return np.ma.filled(rows.astype(np.result_type(rows, np.float32)), np.nan)
    if isinstance(rows, np.ndarray) and rows.dtype.kind == "O":
        cells = [np.nan if is_missing(cell) else cell for cell in rows.ravel()]
        filled = np.empty(len(cells), dtype=object)
        filled[:] = cells
        return filled.reshape(rows.shape)
    return rows


class Source:
    """Rows in blocks; ``open_blocks()`` returns a new iterator of all blocks."""

    def __init__(self, open_blocks, has_blocks, n_rows=None):
        self._open_blocks = open_blocks
        self._has_blocks = has_blocks
        # None if it is known only after a pass
        self.n_rows = n_rows

    def iter_parts(
        self, max_rows=_MAX_PART_ROWS, first_row=0, first_block=0
    ) -> Iterator[Part]:
        """Yield parts of at most ``max_rows`` rows, in order.

        ``first_row`` and ``first_block`` are the indices of the first row and block.
        """
        blocks = self._open_blocks()
        # close a generator, and with it its files, also if the pass fails
        with closing(blocks) if hasattr(blocks, "close") else nullcontext():
            columns = None
            for number, block in enumerate(blocks, first_block):
                block = _check_block(block, number, self._has_blocks)
                columns = _check_column_names(block, number, columns)
                n, d = block.shape
                # read as a whole, because chunks of a file may be compressed
                read = max(1, min(_MAX_PART_ROWS, _MAX_PART_SIZE // max(d, 1)))
                for start in range(0, n, read):
                    buffer = getattr(block, "iloc", block)[start : start + read]
                    step = min(max_rows, read)
                    for begin in range(0, buffer.shape[0], step):
                        yield Part(
                            getattr(buffer, "iloc", buffer)[begin : begin + step],
                            first_row=first_row + start + begin,
                            first_row_in_block=start + begin,
                            block=number,
                            has_blocks=self._has_blocks,
                        )
                first_row += n


def as_source(X: Any, single_pass: bool = False) -> Source:
    """Return X as a ``Source``; iterators are accepted for a ``single_pass`` only."""
    if sparse.issparse(X):
        raise ValueError(f"{_SUPPORTED}; got a sparse matrix. Pass dense blocks of X.")
    if isinstance(X, str | os.PathLike):
        path = Path(X)
        # a folder is a Parquet dataset unless it has .npy files
        files = sorted(path.glob("*.npy")) or [path]
        if path.is_dir() and not any(path.iterdir()):
            raise ValueError(f"{_SUPPORTED}; got an empty folder, {path}.")
        return _source_of_files(files)
    if isinstance(X, list | tuple) and X:
        if all(isinstance(x, str | os.PathLike) for x in X):
            return _source_of_files([Path(x) for x in X])
        if all(_is_block(x) for x in X):
            return Source(lambda: iter(X), True)
    if hasattr(X, "get_fragments"):  # a pyarrow dataset
        return Source(lambda: _iter_row_groups(X), True)
    if hasattr(X, "__array__") and not hasattr(X, "__getitem__"):
        X = np.asarray(X)
    if hasattr(X, "shape") and (hasattr(X, "__getitem__") or hasattr(X, "iloc")):
        n_rows = int(X.shape[0]) if len(X.shape) == 2 else None
        return Source(lambda: iter([X]), False, n_rows)
    if isinstance(X, Iterator) and not single_pass:
        raise ValueError(
            f"{_SUPPORTED}, as a fit makes several passes; got a {type(X).__name__}, "
            "which can be iterated once. Use a list, or an object whose __iter__ "
            "returns a new iterator."
        )
    if isinstance(X, list | tuple):
        array = _as_table(X)
        return Source(lambda: iter([array]), False, len(array))
    if not isinstance(X, Iterable) or isinstance(X, bytes | Mapping | Set):
        raise ValueError(f"{_SUPPORTED}; got a {type(X).__name__}.")
    return Source(lambda: iter(X), True)


def _as_table(X):
    """Return a list of rows as an array."""
    kind = type(X).__name__
    if not X:
        raise ValueError(f"{_SUPPORTED}; got an empty {kind}.")
    try:
        return check_points(X, ensure_all_finite=False)
    except ValueError as error:
        raise ValueError(
            f"{_SUPPORTED}; got a {kind} that is not a table of numbers: {error}"
        ) from None


def _is_block(x):
    return sparse.issparse(x) or (np.ndim(x) == 2 and hasattr(x, "shape"))


def _check_block(block, number, has_blocks):
    """Return a block that has a 2-dimensional shape."""
    name = f"Block {number} of X" if has_blocks else "X"
    if sparse.issparse(block):
        raise ValueError(
            f"{name} must be a dense array; got a sparse {type(block).__name__}."
        )
    shape = getattr(block, "shape", None)
    if shape is None:
        block = np.asarray(block)
        shape = block.shape
    if len(shape) != 2:
        raise ValueError(
            f"{name} must be 2-dimensional, rows by columns; got shape {tuple(shape)}. "
            "Reshape your data: X.reshape(-1, 1) has one column, X.reshape(1, -1) one "
            "row."
        )
    return block


def _check_column_names(block, number, expected):
    """Return the column names of a frame, which must equal those of earlier ones."""
    if not is_frame(block):
        return expected
    columns = list(block.columns)
    if not columns:
        raise ValueError(
            f"Block {number} of X must have at least one column; got a frame without."
        )
    if expected is not None and columns != expected:
        raise ValueError(
            f"Block {number} of X must have the same columns as earlier blocks, in the "
            f"same order, {', '.join(map(str, expected))}; got "
            f"{', '.join(map(str, columns))}."
        )
    return columns


class NpyFile:
    """Matrix in a .npy file whose slices of rows are read rather than mapped.

    The address space may be too small to map the whole file.
    """

    def __init__(self, path):
        with open(path, "rb") as file:
            if format.read_magic(file) == (1, 0):
                header = format.read_array_header_1_0(file)
            else:
                header = format.read_array_header_2_0(file)
            self.shape, is_fortran, self._dtype = header
            self._offset, self._path = file.tell(), path
        if self._dtype.kind not in "biuf":
            raise ValueError(f"expected numbers; got dtype {self._dtype}")
        size = self._offset + math.prod(self.shape) * self._dtype.itemsize
        if os.path.getsize(path) < size:
            raise ValueError(f"expected {size} bytes; the file is shorter")
        self._mapped = np.load(path, mmap_mode="r") if is_fortran else None

    def __getitem__(self, rows):
        if self._mapped is not None:
            return self._mapped[rows]
        begin, end, _ = rows.indices(self.shape[0])
        width = self.shape[1]
        entries = np.fromfile(
            self._path,
            dtype=self._dtype,
            count=(end - begin) * width,
            offset=self._offset + begin * width * self._dtype.itemsize,
        )
        return entries.reshape(end - begin, width)


def _source_of_files(paths):
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"X must name files that exist; got {path}.")
        if path.suffix in _CONTAINER_SUFFIXES:
            raise ValueError(
                f"{_SUPPORTED}; got {path}. Open it with zarr or h5py and pass the "
                "array."
            )
        if path.suffix == ".npy" and path.is_dir():
            raise ValueError(f"{_SUPPORTED}; got a folder named {path}.")
    if all(path.suffix == ".npy" for path in paths):
        return Source(lambda: map(_open_npy, paths), True)
    if any(path.suffix == ".npy" for path in paths):
        raise ValueError(
            "X must name files of one kind, .npy or Parquet; got both: "
            f"{', '.join(path.name for path in paths[:4])}."
        )
    dataset = _open_parquet(paths)
    return Source(lambda: _iter_row_groups(dataset), True)


def _open_npy(path):
    try:
        return NpyFile(path)
    except ValueError as error:
        raise ValueError(
            f"X must name .npy files that hold numbers; could not read {path}: {error}"
        ) from None


def _open_parquet(paths):
    try:
        from pyarrow import dataset
    except ImportError:
        raise ImportError(
            f"Reading {paths[0]} requires pyarrow (pip install pyarrow). Without it, "
            "use .npy files."
        ) from None
    names = [str(path) for path in paths]
    try:
        return dataset.dataset(names[0] if len(names) == 1 else names, format="parquet")
    except (ValueError, OSError) as error:
        raise ValueError(
            "X must name .npy files, or Parquet files or folders of them; could not "
            f"read {names[0]}: {error}"
        ) from None


def _check_types(schema, features, expected, where=""):
    """Refuse columns that hold neither numbers nor categories, or not as expected."""
    for name in features:
        kind, first = (str(s.field(name).type) for s in (schema, expected))
        is_number = bool(_NUMERIC_TYPE.match(kind))
        if not is_number and not _OTHER_TYPE.match(kind):
            raise ValueError(
                f"X must hold numbers or categories; got {kind} in column {name!r}"
                f"{where}. Drop or convert the column."
            )
        if is_number != bool(_NUMERIC_TYPE.match(first)):
            raise ValueError(
                f"X must name files of one type in column {name!r}; got {kind}{where} "
                f"and {first} before. Convert one of them."
            )


def _check_schema(fragment, expected, features, index):
    """Raise ValueError if the columns of a file are not those of the first."""
    schema, path = fragment.physical_schema, getattr(fragment, "path", "a fragment")
    names = [name for name in schema.names if name not in index]
    for verb, columns in (
        ("lacks", [name for name in features if name not in names]),
        ("also has", [name for name in names if name not in features]),
    ):
        if columns:
            raise ValueError(
                "X must name files with the columns of the first file, "
                f"{', '.join(features)}; {path} {verb} {', '.join(columns)}."
            )
    _check_types(schema, features, expected, f" of {path}")


def _iter_row_groups(dataset):
    # pandas stores its index among the columns
    index = (dataset.schema.pandas_metadata or {}).get("index_columns", ())
    features = [name for name in dataset.schema.names if name not in index]
    _check_types(dataset.schema, features, dataset.schema)
    for fragment in dataset.get_fragments():
        _check_schema(fragment, dataset.schema, features, index)
        for group in fragment.split_by_row_group():
            yield group.to_table(schema=dataset.schema, columns=features)
