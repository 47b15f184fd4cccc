# SPDX-License-Identifier: BSD-3-Clause
"""Named columns of numbers or text, as a frame of pandas has them, without pandas.

Only what reads a frame is here: ``is_frame`` of ``_validation.py`` is true.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Column:
    """Cells of a column: float64 with NaN, or text with None, for missing ones."""

    cells: NDArray[Any]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.cells.dtype

    def to_list(self) -> list[Any]:
        """Return the cells."""
        cells: list[Any] = self.cells.tolist()
        return cells

    def to_numpy(self, dtype: Any = None, na_value: Any = None) -> NDArray[Any]:
        """Return the cells of a column of numbers, whose missing cells are NaN."""
        return self.cells.astype(self.dtype if dtype is None else dtype)


@dataclass(frozen=True)
class Table:
    """Columns of one length.

    Attributes
    ----------
    columns : sequence of str or int
        Names of the columns, or their numbers.
    arrays : sequence of ndarray of shape (n_rows,)
        Cells of the columns, as those of ``Column``.
    """

    columns: Sequence[str | int]
    arrays: Sequence[NDArray[Any]]
    index: None = None  # rows have no names
    ndim: int = 2

    @classmethod
    def from_arrow(cls, table: Any) -> "Table":
        """Return a table of pyarrow; anything but numbers becomes objects."""
        arrays = []
        for column in table.columns:
            array = column.to_numpy()
            if array.dtype.kind not in "iuf":
                array = np.empty(len(column), dtype=object)
                array[:] = column.to_pylist()
                is_decimal = str(column.type).startswith("decimal")
                array = array.astype(np.float64) if is_decimal else array
            arrays.append(array)
        return cls(table.column_names, arrays)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), len(self.arrays)

    @property
    def dtypes(self) -> list[np.dtype[Any]]:
        return [array.dtype for array in self.arrays]

    @property
    def iloc(self) -> "_Cells":
        return _Cells(self)

    def __len__(self) -> int:
        return len(self.arrays[0]) if len(self.arrays) else 0

    def to_numpy(self, dtype: Any = object, na_value: Any = None) -> NDArray[Any]:
        """Return all cells (n_rows, n_columns)."""
        return np.stack([array.astype(dtype) for array in self.arrays], axis=1)


class _Cells:
    """Rows of a table, ``[rows]``, columns ``[:, columns]``, or a column ``[:, j]``."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def __getitem__(self, place: Any) -> Table | Column:
        names, arrays = self._table.columns, self._table.arrays
        if not isinstance(place, tuple):
            return Table(names, [array[place] for array in arrays])
        j = place[1]
        if isinstance(j, int | np.integer):
            return Column(arrays[int(j)])
        return Table([names[i] for i in j], [arrays[i] for i in j])
