# SPDX-License-Identifier: BSD-3-Clause
"""Names of rows and values of features that a report shows.

Any table with the rows of the fit is accepted, of numbers or not: the model may have
been fitted to a kernel matrix.
"""

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse

from cdsk._profile_columns import check_names, check_table, find_feature_names
from cdsk._validation import column_cells, is_frame, is_missing


class FeatureTable:
    """Rows of a fit with their names and features.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n_rows, n_columns), or None
    n_rows : int
    feature_names, row_names : iterable of str, default=None
        None takes the names of a data frame.
    fitted_names : array-like of str, default=None
        Feature names seen by ``fit``, used if X has as many columns but no names.
    """

    def __init__(
        self, X, n_rows, *, feature_names=None, row_names=None, fitted_names=None
    ):
        self.X: Any = None
        self.feature_names: list[str] = []
        self.n_columns = 0
        if row_names is None and X is not None:
            row_names = _frame_index(X)
        self.row_names = check_names(row_names, n_rows, "row_names", "rows")
        if X is not None:
            self.X = check_table(X, n_rows)
            self.n_columns = self.X.shape[1]
            self.feature_names = find_feature_names(self.X, feature_names, fitted_names)
        elif feature_names is not None:
            raise ValueError("feature_names requires X; got X=None.")

    def get_row_names(self, rows):
        """Return the names of some rows, None for missing ones, or None without any."""
        return None if self.row_names is None else [self.row_names[i] for i in rows]

    def get_values(self, rows, columns):
        """Return lists of JSON values of some rows, or None for each without X."""
        if self.X is None:
            return [None] * len(rows)
        part = self._take_rows(rows)
        if sparse.issparse(part):
            part, columns = part[:, columns].toarray(), range(len(columns))
        cells = [_get_cells(part, j) for j in columns]
        return [
            [to_json_value(column[i]) for column in cells] for i in range(len(rows))
        ]

    def _take_rows(self, rows):
        """Return rows as a data frame, a sparse matrix or a (masked) array."""
        part = getattr(self.X, "iloc", self.X)[np.asarray(rows)]
        if sparse.issparse(part) or is_frame(part) or np.ma.isMaskedArray(part):
            return part
        return np.asarray(part)


def to_json_value(value):
    """Return a value of a type that JSON has, None if it is missing or not finite."""
    if is_missing(value):
        return None
    if isinstance(value, bool | str):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else None
    return str(value)


def _frame_index(X):
    """Return the index of a pandas frame; None if it only counts the rows."""
    if not (is_frame(X) and hasattr(X, "iloc")):
        return None
    index = X.index
    is_range = type(index).__name__ == "RangeIndex"
    return None if is_range and (index.start, index.step) == (0, 1) else index


def _get_cells(part, j):
    """Return the cells of a column, each of its own type."""
    return column_cells(part, j) if is_frame(part) else part[:, j].tolist()
