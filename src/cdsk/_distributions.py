# SPDX-License-Identifier: BSD-3-Clause
"""Histograms of columns, of every cluster and of all rows, for pages and plots."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cdsk._profile_columns import Categories, iter_columns
from cdsk._profiles import LabeledTable, take_columns
from cdsk._validation import Array

N_BINS = 24
# Bars of a column of categories; the last one is of all others.
MAX_BARS = 8
# Values beyond these quantiles are counted in the first and the last bin.
_QUANTILES = 0.005, 0.995


@dataclass(frozen=True)
class Distribution:
    """Histogram of a column.

    Attributes
    ----------
    shares : ndarray of shape (n_clusters, n_bins)
        Share of each bin in the present cells of each cluster, 0 without any.
    total : ndarray of shape (n_bins,)
        The same of all rows.
    missing : ndarray of shape (n_clusters,)
        Share of missing cells in each cluster.
    total_missing : float
        The same of all rows.
    names : tuple of str or None
        Category of each bin; None for numbers.
    low, high : float
        Ends of the first and of the last bin; NaN for categories.
    """

    shares: Array
    total: Array
    missing: Array
    total_missing: float
    names: tuple[str, ...] | None
    low: float = np.nan
    high: float = np.nan


def compute_distributions(
    table: LabeledTable, columns: list[int]
) -> dict[int, Distribution]:
    """Return the histograms of some columns, by clusters in the order of labels."""
    _, codes = np.unique(table.labels, return_inverse=True)
    found: dict[int, Distribution] = {}
    if not columns:
        return found
    part = take_columns(table.X, columns)
    for block in iter_columns(part, is_strict=False):
        if isinstance(block, Categories):
            bins, names = _merge_rare(block, table.weights)
            counted = _count(bins, codes, table.weights, len(names))
            found[columns[block.column]] = Distribution(*counted, names)
            continue
        for i, j in enumerate(block.columns.tolist()):
            values = block.get_column(i)
            bins, n_bins, low, high = _assign_bins(values, table.weights)
            counted = _count(bins, codes, table.weights, n_bins)
            found[columns[j]] = Distribution(*counted, None, low, high)
    return found


def _count(
    bins: NDArray[np.intp], codes: NDArray[np.intp], weights: Array, n_bins: int
) -> tuple[Array, Array, Array, float]:
    """Return shares of the bins and of missing cells, by cluster and of all rows."""
    k, width = int(codes.max()) + 1, n_bins + 1
    counts = np.bincount(codes * width + bins + 1, weights, k * width)
    counts = counts.reshape(k, width)
    shares = np.concatenate([counts, counts.sum(axis=0, keepdims=True)])
    missing = shares[:, 0] / shares.sum(axis=1)
    shares = shares[:, 1:]
    present = shares.sum(axis=1, keepdims=True)
    shares = np.divide(shares, present, out=np.zeros_like(shares), where=present > 0)
    return shares[:-1], shares[-1], missing[:-1], float(missing[-1])


def _merge_rare(
    column: Categories, weights: Array
) -> tuple[NDArray[np.intp], tuple[str, ...]]:
    """Return the bin of each row, -1 if missing, and the names of the bins."""
    is_present = column.codes >= 0
    totals = np.bincount(
        column.codes[is_present], weights[is_present], len(column.names)
    )
    used = np.flatnonzero(totals).tolist()
    order = sorted(used, key=lambda i: (-totals[i], column.names[i]))
    kept = order if len(order) <= MAX_BARS else order[: MAX_BARS - 1]
    names = [column.names[i] for i in kept]
    bins = np.full(len(column.names) + 1, len(kept), dtype=np.intp)
    bins[kept] = np.arange(len(kept))
    bins[-1] = -1
    if len(kept) < len(order):
        names.append(f"{len(order) - len(kept)} others")
    return bins[column.codes], tuple(names)


def _assign_bins(
    values: Array, weights: Array
) -> tuple[NDArray[np.intp], int, float, float]:
    """Return the bin of each number, -1 if missing, the number of bins, their ends."""
    is_present = ~np.isnan(values)
    present = values[is_present]
    bins = np.full(len(values), -1, dtype=np.intp)
    if not len(present):
        return bins, 1, np.nan, np.nan
    low, high = _compute_quantiles(present, weights[is_present])
    if low == high:
        low, high = float(present.min()), float(present.max())
    n_bins = N_BINS
    # one bin for each of few integers
    if high - low < N_BINS and not np.any(present != np.floor(present)):
        low, high = low - 0.5, high + 0.5
        n_bins = round(high - low)
    elif low == high:
        n_bins = 1
    # halves, so that no difference overflows
    half = high / 2 - low / 2
    position = (present / 2 - low / 2) / (half if half > 0 else 1.0)
    bins[is_present] = np.clip(np.floor(position * n_bins), 0, n_bins - 1)
    return bins, n_bins, low, high


def _compute_quantiles(values: Array, weights: Array) -> tuple[float, float]:
    """Return the values at which the sum of weights passes the quantiles."""
    order = np.argsort(values)
    cumulative = np.cumsum(weights[order])
    at = np.searchsorted(cumulative, np.multiply(_QUANTILES, cumulative[-1]))
    low, high = values[order[np.minimum(at, len(order) - 1)]].tolist()
    return low, high
