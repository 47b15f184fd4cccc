# SPDX-License-Identifier: BSD-3-Clause
"""Names of rows and values of features that a report shows.

Any table with the rows of the fit is accepted, of numbers or not: the model may have
been fitted to a kernel matrix. Only the rows that are shown are read.
"""

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse

from cdsk._validation import column_cells, is_frame, is_missing

# If there are more features, those with the largest differences between clusters.
MAX_FEATURES = 12


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
        self._X: Any = None
        self.feature_names: list[str] = []
        self.n_columns = 0
        if row_names is None and X is not None:
            row_names = _frame_index(X)
        self.row_names = _check_names(row_names, n_rows, "row_names", "rows")
        if X is not None:
            self._X = _check_table(X, n_rows)
            self.n_columns = self._X.shape[1]
            self.feature_names = self._find_names(feature_names, fitted_names)
        elif feature_names is not None:
            raise ValueError("feature_names requires X; got X=None.")

    def _find_names(self, feature_names, fitted_names):
        n_columns = self.n_columns
        if feature_names is None:
            feature_names = getattr(self._X, "columns", None)
        if feature_names is None and fitted_names is not None:
            feature_names = fitted_names if len(fitted_names) == n_columns else None
        if feature_names is None:
            feature_names = [None] * n_columns
        names = _check_names(feature_names, n_columns, "feature_names", "columns of X")
        return [
            f"feature {j}" if name is None else name for j, name in enumerate(names)
        ]

    def get_row_names(self, rows):
        """Return the names of some rows, None for missing ones, or None without any."""
        return None if self.row_names is None else [self.row_names[i] for i in rows]

    def select_columns(self, rows, clusters):
        """Return the columns to show: all, or those with the largest differences.

        These have the largest fraction of the variance of ``rows`` between clusters.
        """
        if self._X is None:
            return []
        n_columns = self.n_columns
        if n_columns <= MAX_FEATURES:
            return list(range(n_columns))
        part = self._take_rows(rows)
        if sparse.issparse(part):
            ratios = _compute_sparse_variance_ratios(part, clusters)
        else:
            ratios = [
                _compute_variance_ratio(_to_float(part, j), clusters)
                for j in range(n_columns)
            ]
        return np.argsort(-np.array(ratios), kind="stable")[:MAX_FEATURES].tolist()

    def get_values(self, rows, columns):
        """Return lists of JSON values of some rows, or None for each without X."""
        if self._X is None:
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
        part = getattr(self._X, "iloc", self._X)[np.asarray(rows)]
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


def _check_table(X, n_rows):
    if sparse.issparse(X):
        X = sparse.csr_array(X)
    elif not hasattr(X, "shape"):
        X = np.asarray(X)
    if len(X.shape) != 2 or X.shape[0] != n_rows:
        raise ValueError(
            f"X must have the {n_rows} rows of the fit; got shape {tuple(X.shape)}."
        )
    return X


def _check_names(names, n, parameter, described):
    if names is None:
        return None
    # an empty name counts as missing
    names = [None if is_missing(name) else str(name) or None for name in names]
    if len(names) != n:
        raise ValueError(
            f"{parameter} must have one name for each of the {n} {described}; got "
            f"{len(names)}."
        )
    return names


def _get_cells(part, j):
    """Return the cells of a column, each of its own type."""
    return column_cells(part, j) if is_frame(part) else part[:, j].tolist()


def _to_float(part, j):
    """Return a column as float64, missing cells as NaN, a column of text as all NaN."""
    if not is_frame(part) and part.dtype.kind in "biuf":
        return np.ma.filled(part[:, j].astype(np.float64), np.nan)
    cells = _get_cells(part, j)
    try:
        return np.array([np.nan if is_missing(cell) else float(cell) for cell in cells])
    except (TypeError, ValueError, OverflowError):
        return np.full(len(cells), np.nan)


def _compute_variance_ratio(values, clusters):
    """Return the fraction of the variance between clusters, 0 without variance.

    Values are scaled by the largest to avoid overflow of squares.
    """
    is_finite = np.isfinite(values)
    values, clusters = values[is_finite], clusters[is_finite]
    if not len(values):
        return 0.0
    values = values / (np.abs(values).max() or 1.0)
    values = values - values.mean()
    total = np.sum(np.square(values))
    sizes = np.bincount(clusters)
    sums = np.bincount(clusters, values)
    between = np.sum(np.square(sums) / np.maximum(sizes, 1))
    return between / total if total > 0 else 0.0


def _compute_sparse_variance_ratios(part, clusters):
    """Return ``_compute_variance_ratio`` of every column, without a dense array."""
    part = sparse.csr_array(part, dtype=np.float64)
    largest = abs(part).max(axis=0).toarray().ravel()
    part = part @ sparse.diags_array(1.0 / np.where(largest > 0, largest, 1.0))
    n = part.shape[0]
    sizes = np.bincount(clusters)
    members = sparse.csr_array((np.ones(n), (clusters, np.arange(n))))
    sums = (members @ part).toarray()
    correction = np.square(sums.sum(axis=0)) / n
    total = part.power(2).sum(axis=0) - correction
    between = np.sum(np.square(sums) / np.maximum(sizes, 1)[:, np.newaxis], axis=0)
    # the variance of a constant column is a rounding error
    varies = total > 1e-12 * n
    return np.where(varies, (between - correction) / np.where(varies, total, 1.0), 0.0)
