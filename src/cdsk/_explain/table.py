# SPDX-License-Identifier: BSD-3-Clause
"""What a reader knows rows by: their names, and values of features.

Any table will do, numbers or not: it need not be what the model was fitted to, which
may have been a kernel matrix. Only rows that are shown are looked at.
"""

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse

from cdsk._frames import column_cells, index_of, is_frame, is_missing

# Of more features, those in which the clusters differ most.
MOST_FEATURES = 12


class Table:
    """``n_rows`` rows, of which ``X`` and ``row_names`` may say more, or None.

    ``known_names`` are those of the features that were seen by the fit.
    """

    def __init__(self, X, n_rows, feature_names, row_names, known_names=None):
        self._X: Any = None
        self.feature_names: list[str] = []
        self.n_columns = 0
        if row_names is None and X is not None:
            row_names = index_of(X)
        self.row_names = _names(row_names, n_rows, "row_names", "rows")
        if X is None:
            if feature_names is not None:
                raise ValueError("feature_names must come with X; got X=None.")
            return
        if sparse.issparse(X):
            X = sparse.csr_array(X)
        elif not hasattr(X, "shape"):
            X = np.asarray(X)
        if len(X.shape) != 2 or X.shape[0] != n_rows:
            raise ValueError(
                f"X must have a row for each of the {n_rows} rows of the fit; got "
                f"shape {tuple(X.shape)}."
            )
        self._X, d = X, X.shape[1]
        self.n_columns = d
        if feature_names is None:
            feature_names = getattr(X, "columns", None)
        if feature_names is None and known_names is not None and len(known_names) == d:
            feature_names = known_names
        if feature_names is None:
            feature_names = [None] * d
        names = _names(feature_names, d, "feature_names", "columns of X")
        self.feature_names = [
            f"feature {j}" if name is None else name for j, name in enumerate(names)
        ]

    def names(self, rows):
        """Names of some rows, None for those that have none, or if none has any."""
        return None if self.row_names is None else [self.row_names[i] for i in rows]

    def columns(self, rows, clusters):
        """The columns to show: all, or those that differ most between clusters.

        Judged by the share of the variance of some rows that is between clusters.
        """
        if self._X is None:
            return []
        d = self.n_columns
        if d <= MOST_FEATURES:
            return list(range(d))
        part = self._part(rows)
        if sparse.issparse(part):
            shares = _shares_of_sparse(part, clusters)
        else:
            shares = [_share_between(_numbers(part, j), clusters) for j in range(d)]
        return np.argsort(-np.array(shares), kind="stable")[:MOST_FEATURES].tolist()

    def values(self, rows, columns):
        """Lists of values of some rows, of plain types; None without a table."""
        if self._X is None:
            return [None] * len(rows)
        part = self._part(rows)
        if sparse.issparse(part):
            part, columns = part[:, columns].toarray(), range(len(columns))
        cells = [_cells(part, j) for j in columns]
        return [[as_plain(column[i]) for column in cells] for i in range(len(rows))]

    def _part(self, rows):
        """Some rows: a frame, a sparse matrix, or an array, which may be masked."""
        part = getattr(self._X, "iloc", self._X)[np.asarray(rows)]
        if sparse.issparse(part) or is_frame(part) or np.ma.isMaskedArray(part):
            return part
        return np.asarray(part)


def _cells(part, j):
    """Cells of a column, each of its own type."""
    return column_cells(part, j) if is_frame(part) else part[:, j].tolist()


def _numbers(part, j):
    """A column as float64, NaN for what is missing or, if it has text, for all."""
    if not is_frame(part) and part.dtype.kind in "biuf":
        return np.ma.filled(part[:, j].astype(np.float64), np.nan)
    cells = _cells(part, j)
    try:
        return np.array([np.nan if is_missing(cell) else float(cell) for cell in cells])
    except (TypeError, ValueError, OverflowError):
        return np.full(len(cells), np.nan)


def as_plain(value):
    """A number or text as JSON has them; None for what is neither finite nor there."""
    if is_missing(value):
        return None
    if isinstance(value, bool | str):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else None
    return str(value)


def _names(names, n, what, of):
    if names is None:
        return None
    # an empty name says as little as one that is missing
    names = [None if is_missing(name) else str(name) or None for name in names]
    if len(names) != n:
        raise ValueError(
            f"{what} must hold one name for each of the {n} {of}; got {len(names)}."
        )
    return names


def _share_between(values, clusters):
    """Share of the variance between clusters; 0 for what varies not or has no number.

    In units of the largest, so that no square overflows.
    """
    known = np.isfinite(values)
    values, clusters = values[known], clusters[known]
    if not len(values):
        return 0.0
    values = values / (np.abs(values).max() or 1.0)
    values = values - values.mean()
    total = np.sum(np.square(values))
    sizes = np.bincount(clusters)
    sums = np.bincount(clusters, values)
    between = np.sum(np.square(sums) / np.maximum(sizes, 1))
    return between / total if total > 0 else 0.0


def _shares_of_sparse(part, clusters):
    """The same of all columns of a sparse table, which is not filled."""
    part = sparse.csr_array(part, dtype=np.float64)
    largest = abs(part).max(axis=0).toarray().ravel()
    part = part @ sparse.diags_array(1.0 / np.where(largest > 0, largest, 1.0))
    n = part.shape[0]
    sizes = np.bincount(clusters)
    members = sparse.csr_array((np.ones(n), (clusters, np.arange(n))))
    sums = (members @ part).toarray()
    of_mean = np.square(sums.sum(axis=0)) / n
    total = part.power(2).sum(axis=0) - of_mean
    between = np.sum(np.square(sums) / np.maximum(sizes, 1)[:, np.newaxis], axis=0)
    # what rounding leaves of a column that does not vary
    varies = total > 1e-12 * n
    return np.where(varies, (between - of_mean) / np.where(varies, total, 1.0), 0.0)
