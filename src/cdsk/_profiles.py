# SPDX-License-Identifier: BSD-3-Clause
"""Profiles: what distinguishes every cluster from all other rows.

A line of a profile compares one quantity: the mean of a feature, the share of a
category, or the share of missing cells. A row counts as often as its weight says. With
p the share of a category in all rows, and s the standard deviation of a feature, the
effect of a line is the difference of means over s, or of shares over sqrt(p (1 - p)).
Its interval is the wider one of

* Welch's interval for the difference of two means, and
* t s sqrt(1 / n_in + 1 / n_out): what two random samples of these sizes may differ by.

For shares it combines the two exact (Clopper-Pearson) intervals by Newcombe's method
(Statistics in Medicine 17, 1998, method 10). All intervals of a table hold at once with
probability 0.95, by Bonferroni's correction for their number. They take the labels as
given. Lines are ranked by the end of the interval that is nearer to 0, so that a large
effect of few rows does not come before a smaller one of many.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import betainccinv, betaincinv, stdtrit

from cdsk._profile_columns import (
    Categories,
    check_distinct_names,
    check_table,
    find_feature_names,
    iter_columns,
)
from cdsk._utils import check_memory
from cdsk._validation import Array, check_sample_weight

# A column has lines for its most frequent categories only.
MAX_CATEGORIES = 50
# Probability that any interval of a table misses its difference.
_ALPHA = 0.05

NUMBER, CATEGORY, MISSING = "number", "category", "missing"


@dataclass(frozen=True)
class Moments:
    """Weights, means and sums of squared deviations, (n_clusters, n_lines) each."""

    n: Array
    mean: Array
    ss: Array

    def merge(self, other: "Moments") -> "Moments":
        """Return the moments of two disjoint sets of rows."""
        n = self.n + other.n
        part = np.divide(other.n, n, out=np.zeros_like(n), where=n > 0)
        # a mean without rows is NaN
        own, new = np.nan_to_num(self.mean), np.nan_to_num(other.mean)
        difference = new - own
        mean = np.where(n > 0, own + part * difference, np.nan)
        ss = self.ss + other.ss + self.n * part * np.square(difference)
        return Moments(n, mean, ss)

    def take(self, clusters: Any) -> "Moments":
        """Return those of some clusters."""
        return Moments(self.n[clusters], self.mean[clusters], self.ss[clusters])

    def compute_outside(self) -> "Moments":
        """Return the moments of all rows outside of each cluster.

        They are merged from both sides: nothing is subtracted, nothing cancels.
        """
        k = len(self.n)
        zeros = np.zeros_like(self.n[0])
        empty = Moments(zeros, np.full_like(zeros, np.nan), zeros)
        before, after = [empty], [empty]
        for y in range(k - 1):
            before.append(before[-1].merge(self.take(y)))
            after.append(after[-1].merge(self.take(k - 1 - y)))
        outside = [a.merge(b) for a, b in zip(before, after[::-1], strict=True)]
        return Moments(
            np.array([o.n for o in outside]),
            np.array([o.mean for o in outside]),
            np.array([o.ss for o in outside]),
        )


@dataclass(frozen=True)
class Line:
    """What a line compares; ``category`` is None but for categories."""

    column: int
    feature: str
    kind: str
    category: str | None


@dataclass(frozen=True)
class Profiles:
    """Comparison of every cluster with all other rows, by ``CDSK.profiles``.

    ``print`` shows the largest differences of every cluster in words, ``to_frame``
    returns all of them as a table. Arrays of shape (n_clusters, n_lines) have a column
    for every line: the mean of a feature, the share of a category, or the share of
    missing cells.

    Attributes
    ----------
    clusters : ndarray of shape (n_clusters,)
        Labels of the clusters that have rows; -1 is noise.
    sizes : ndarray of shape (n_clusters,)
        Number of rows, or sum of their sample weights.
    lines : tuple
        What each line compares: ``column``, ``feature``, ``kind`` ("number",
        "category" or "missing") and ``category``.
    value, elsewhere : ndarray of shape (n_clusters, n_lines)
        Mean or share in the cluster and outside of it, over cells that are present.
    effect : ndarray of shape (n_clusters, n_lines)
        Standardized difference: of means, over the standard deviation of the feature;
        of shares, over that of the category as 0 and 1.
    effect_low, effect_high : ndarray of shape (n_clusters, n_lines)
        Interval of the effect. All intervals hold at once with probability 0.95.
    lift : ndarray of shape (n_clusters, n_lines)
        Share in the cluster over the share in all rows; NaN for numbers.
    """

    clusters: NDArray[np.int64]
    sizes: Array
    lines: tuple[Line, ...]
    value: Array
    elsewhere: Array
    effect: Array
    effect_low: Array
    effect_high: Array
    lift: Array

    @cached_property
    def conservative(self) -> Array:
        """End of each interval that is nearer to 0; 0 if it contains 0."""
        low, high = self.effect_low, self.effect_high
        return np.where(low > 0, low, np.where(high < 0, high, 0.0))

    @cached_property
    def rank(self) -> NDArray[np.intp]:
        """Rank of the lines of each cluster, from 1, largest conservative end first."""
        order, ranks = self._order, np.arange(1, len(self.lines) + 1)
        rank = np.empty_like(order)
        np.put_along_axis(rank, order, np.broadcast_to(ranks, order.shape), axis=1)
        return rank

    @cached_property
    def _order(self) -> NDArray[np.intp]:
        """Lines of each cluster by rank; rounding errors do not decide it."""
        sure = np.round(np.abs(self.conservative), 9)
        effect = np.round(np.nan_to_num(self.effect), 9)
        # of two complementary shares the larger one comes first
        return np.lexsort((-effect, -np.abs(effect), -sure), axis=1)

    def order_lines(self) -> list[int]:
        """Return the lines by their largest difference in any cluster.

        Of a column of two categories only one line is returned.
        """
        sure = np.abs(self.conservative).max(axis=0, initial=0.0)
        effect = np.abs(np.nan_to_num(self.effect)).max(axis=0, initial=0.0)
        order = np.lexsort((-np.round(effect, 9), -np.round(sure, 9))).tolist()
        n_shares = Counter(line.column for line in self.lines if line.kind == CATEGORY)
        found: list[int] = []
        seen: set[int] = set()
        for i in order:
            line = self.lines[i]
            is_binary = line.kind == CATEGORY and n_shares[line.column] == 2
            if not (is_binary and line.column in seen):
                found.append(i)
            if is_binary:
                seen.add(line.column)
        return found

    def order_columns(self) -> list[int]:
        """Return the columns by their largest difference in any cluster."""
        columns = (self.lines[i].column for i in self.order_lines())
        return list(dict.fromkeys(columns))

    def to_dict(self) -> dict[str, NDArray[Any]]:
        """Return the table as arrays, one per column, sorted by cluster and rank.

        Returns
        -------
        columns : dict of ndarray
            ``cluster``, ``size``, ``feature``, ``kind``, ``category`` (None but for
            categories), ``value``, ``elsewhere``, ``effect``, ``effect_low``,
            ``effect_high``, ``lift``, ``rank``, and ``differs``: whether the interval
            excludes 0. ``polars.DataFrame`` accepts them too.
        """
        k, order = len(self.clusters), self._order
        flat = order.ravel()

        def sort(values: NDArray[Any]) -> NDArray[Any]:
            return np.take_along_axis(values, order, axis=1).ravel()

        texts = {
            key: np.array([getattr(line, key) for line in self.lines], dtype=object)
            for key in ("feature", "kind", "category")
        }
        return {
            "cluster": np.repeat(self.clusters, len(self.lines)),
            "size": np.repeat(self.sizes, len(self.lines)),
            **{key: text[flat] for key, text in texts.items()},
            "value": sort(self.value),
            "elsewhere": sort(self.elsewhere),
            "effect": sort(self.effect),
            "effect_low": sort(self.effect_low),
            "effect_high": sort(self.effect_high),
            "lift": sort(self.lift),
            "rank": np.tile(np.arange(1, len(self.lines) + 1), k),
            "differs": sort(self.conservative != 0),
        }

    def to_frame(self) -> Any:
        """Return the table of ``to_dict`` as a pandas DataFrame; requires pandas."""
        return make_frame(self.to_dict())

    def summarize(self, max_features: int = 3) -> list[dict[str, Any]]:
        """Return the largest differences of every cluster as plain data.

        Parameters
        ----------
        max_features : int, default=3
            Number of differences per cluster. A feature has at most one, and one more
            by its missing cells.

        Returns
        -------
        clusters : list of dict
            ``cluster``, ``size``, ``is_all`` (there are no other rows), ``features``,
            a list of the lines whose intervals exclude 0.
        """
        total = float(self.sizes.sum())
        return [
            {
                "cluster": int(self.clusters[y]),
                "size": int(size) if size.is_integer() else size,
                "is_all": size >= total,
                "features": self._summarize_cluster(y, max_features),
            }
            for y, size in enumerate(self.sizes.tolist())
        ]

    def _summarize_cluster(self, y: int, max_features: int) -> list[dict[str, Any]]:
        seen: set[tuple[int, bool]] = set()
        features: list[dict[str, Any]] = []
        for i in self._order[y].tolist():
            line = self.lines[i]
            mentioned = line.column, line.kind == MISSING
            if self.conservative[y, i] == 0 or len(features) == max_features:
                break
            if mentioned in seen:
                continue
            seen.add(mentioned)
            lift = float(self.lift[y, i])
            features.append(
                {
                    "column": line.column,
                    "feature": line.feature,
                    "kind": line.kind,
                    "category": line.category,
                    "value": float(self.value[y, i]),
                    "elsewhere": float(self.elsewhere[y, i]),
                    "effect": float(self.effect[y, i]),
                    "effect_low": float(self.effect_low[y, i]),
                    "effect_high": float(self.effect_high[y, i]),
                    "lift": None if line.kind == NUMBER else lift,
                }
            )
        return features

    def __str__(self) -> str:
        from cdsk.report._sentences import describe_profile

        return "\n".join(map(describe_profile, self.summarize()))

    def __repr__(self) -> str:
        return str(self)


def make_frame(columns: dict[str, NDArray[Any]]) -> Any:
    """Return a pandas DataFrame of named arrays."""
    try:
        import pandas as pd
    except ImportError:
        raise ImportError(
            "to_frame requires pandas, which is not installed: pip install pandas. "
            "to_dict returns the same table as arrays."
        ) from None
    return pd.DataFrame(columns)


@dataclass(frozen=True)
class LabeledTable:
    """A checked table with a label and a weight for each row.

    Rows of weight 0 have been left out.
    """

    X: Any
    names: list[str]
    labels: NDArray[np.int64]
    weights: Array

    @classmethod
    def from_model(
        cls,
        model: Any,
        X: Any,
        labels: ArrayLike | None,
        sample_weight: ArrayLike | None,
    ) -> "LabeledTable":
        """Check the arguments of ``CDSK.profiles`` and ``CDSK.rules``."""
        if labels is None:
            labels, described = model.label_numbers_, "rows of the fit"
            if sample_weight is None:
                sample_weight = model.sample_weight_
        else:
            labels = model._number_clusters(labels)
            labels = check_labels(labels, int(model.clusters_.max()) + 1)
            described = "rows that have labels"
        given = np.asarray(labels)
        hint = "" if described.endswith("labels") else " Pass labels for other rows."
        try:
            table = check_table(X, len(given), described)
        except ValueError as error:
            raise ValueError(f"{error}{hint * ('got shape' in str(error))}") from None
        if table.shape[1] == 0:
            raise ValueError("X must have at least one column; got none.")
        names = find_feature_names(
            table, fitted=getattr(model, "feature_names_in_", None)
        )
        check_distinct_names(names)
        weights = check_sample_weight(sample_weight, table, False)
        return cls.from_checked(table, names, given, weights)

    @classmethod
    def from_checked(
        cls,
        X: Any,
        names: Iterable[str],
        labels: NDArray[Any],
        weights: Array | None = None,
    ) -> "LabeledTable":
        """Leave out rows of weight 0."""
        labels = labels.astype(np.int64)
        weights = np.ones(len(labels)) if weights is None else weights
        if not weights.all():
            kept = np.flatnonzero(weights)
            X, labels, weights = take_rows(X, kept), labels[kept], weights[kept]
        return cls(X, list(names), labels, weights)


def take_rows(X: Any, rows: NDArray[np.intp]) -> Any:
    """Return some rows of a checked table."""
    return getattr(X, "iloc", X)[rows]


def take_columns(X: Any, columns: list[int]) -> Any:
    """Return some columns of a checked table."""
    return getattr(X, "iloc", X)[:, columns]


def check_labels(labels: ArrayLike, n_clusters: int) -> NDArray[np.int64]:
    """Return the labels of new rows, integers from -1 to n_clusters - 1."""
    values = np.asarray(labels)
    is_valid = values.ndim == 1 and values.dtype.kind in "iu" and len(values) > 0
    if not is_valid or values.min() < -1 or values.max() >= n_clusters:
        got = f"shape {values.shape} and dtype {values.dtype}"
        if is_valid:
            got = f"{values.min()} to {values.max()}"
        raise ValueError(
            "labels must hold a cluster for every row of X, as model.predict returns: "
            f"integers from -1 (noise) to {n_clusters - 1}; got {got}."
        )
    return values.astype(np.int64)


def compute_profiles(table: LabeledTable, *, is_strict: bool = True) -> Profiles:
    """Return the profiles of all columns of a table.

    ``is_strict``: as for ``iter_columns``.
    """
    clusters, codes = np.unique(table.labels, return_inverse=True)
    n, k = len(codes), len(clusters)
    members = sparse.csr_array((table.weights, (codes, np.arange(n))), shape=(k, n))
    lines: list[Line] = []
    parts: list[Moments] = []
    scales: list[Array] = []
    for block in iter_columns(table.X, is_strict=is_strict):
        if isinstance(block, Categories):
            name = table.names[block.column]
            shares, kept = _compute_shares(block, codes, table.weights, k)
            for i in kept:
                lines.append(Line(block.column, name, CATEGORY, block.names[i]))
            parts.append(shares)
            scales.append(np.ones(len(kept)))
            columns, is_present = np.array([block.column]), block.codes >= 0
            present = (members @ is_present.astype(np.float64))[:, np.newaxis]
        else:
            columns = block.columns
            lines += [Line(j, table.names[j], NUMBER, None) for j in columns.tolist()]
            moments, scale = _compute_moments(block.values, codes, members)
            parts.append(moments)
            scales.append(scale)
            present = moments.n
        sizes = members.sum(axis=1)[:, np.newaxis]
        gone = np.maximum(sizes - present, 0.0)
        share = gone.sum(axis=0) / sizes.sum()
        # of a sum of fractions nearly nothing may be left
        partly = np.flatnonzero((share > 1e-12) & (share < 1 - 1e-12))
        for j in columns[partly].tolist():
            lines.append(Line(j, table.names[j], MISSING, None))
        n_cells = np.broadcast_to(sizes, (k, len(partly)))
        parts.append(_share_moments(gone[:, partly], n_cells))
        scales.append(np.ones(len(partly)))
        check_memory(
            96 * k * len(lines), "The table of profiles", "Use fewer columns of X."
        )
    # the missing cells of a column after its other lines
    order = np.argsort([line.column for line in lines], kind="stable")
    inside = Moments(
        np.concatenate([part.n for part in parts], axis=1)[:, order],
        np.concatenate([part.mean for part in parts], axis=1)[:, order],
        np.concatenate([part.ss for part in parts], axis=1)[:, order],
    )
    lines = [lines[i] for i in order.tolist()]
    profiles = _compare(clusters, members.sum(axis=1), tuple(lines), inside)
    scale = np.concatenate(scales)[order]
    return replace(
        profiles, value=profiles.value * scale, elsewhere=profiles.elsewhere * scale
    )


def _compute_moments(
    values: Any, codes: NDArray[np.intp], members: sparse.csr_array
) -> tuple[Moments, Array]:
    """Return the moments of columns of numbers by cluster, and their units.

    Units are powers of two, so that no square overflows.
    """
    if sparse.issparse(values):
        return _compute_sparse_moments(values, codes, members)
    is_missing = np.isnan(values)
    filled = np.where(is_missing, 0.0, values)
    scale = _find_scale(np.abs(filled).max(axis=0, initial=0.0))
    filled /= scale
    shape = members.shape[0], values.shape[1]
    n = np.broadcast_to(members.sum(axis=1)[:, np.newaxis], shape).astype(np.float64)
    if is_missing.any():
        n = members @ (~is_missing).astype(np.float64)
    mean = _divide(members @ filled, n)
    # the mean of the residuals is what rounding took from the mean
    residuals = np.where(is_missing, 0.0, filled - mean[codes])
    rest = _divide(members @ residuals, n)
    ss = members @ np.square(residuals) - n * np.square(np.nan_to_num(rest))
    low = np.where(is_missing, np.inf, filled).min(axis=0, initial=np.inf)
    high = np.where(is_missing, -np.inf, filled).max(axis=0, initial=-np.inf)
    return _fix_constants(Moments(n, mean + rest, ss), low, low == high), scale


def _fix_constants(moments: Moments, values: Array, is_constant: Any) -> Moments:
    """Return moments without the rounding errors of constant columns."""
    mean = np.where(is_constant & (moments.n > 0), values, moments.mean)
    ss = np.where(is_constant, 0.0, np.maximum(moments.ss, 0.0))
    return Moments(moments.n, mean, ss)


def _compute_sparse_moments(
    X: sparse.csc_array, codes: NDArray[np.intp], members: sparse.csr_array
) -> tuple[Moments, Array]:
    """Return the moments of sparse columns; cells that are not stored are 0."""
    (k, n_rows), d = members.shape, X.shape[1]
    rows, n_stored = X.indices, np.diff(X.indptr)
    cells = codes[rows] * d + np.repeat(np.arange(d), n_stored)
    weights = np.zeros(n_rows)
    weights[members.indices] = members.data
    is_missing = np.isnan(X.data)
    values, stored = np.where(is_missing, 0.0, X.data), weights[rows]

    def add(terms: Array) -> Array:
        sums = np.bincount(cells, stored * terms, minlength=k * d)
        return sums.astype(np.float64).reshape(k, d)

    largest, smallest = np.zeros(d), np.zeros(d)
    starts = X.indptr[:-1][n_stored > 0]
    if len(starts):
        largest[n_stored > 0] = np.maximum.reduceat(values, starts)
        smallest[n_stored > 0] = np.minimum.reduceat(values, starts)
    scale = _find_scale(np.maximum(np.abs(largest), np.abs(smallest)))
    values /= np.repeat(scale, n_stored)
    sizes = members.sum(axis=1)[:, np.newaxis]
    n = sizes - add(is_missing.astype(np.float64))
    mean = _divide(add(values), n)
    residuals = np.where(is_missing, 0.0, values - mean.ravel()[cells])
    n_zero = np.maximum(sizes - add(np.ones(len(rows))), 0.0)
    ss = add(np.square(residuals)) + n_zero * np.square(np.nan_to_num(mean))
    is_constant = (n_stored == n_rows) & (largest == smallest)
    return _fix_constants(Moments(n, mean, ss), largest / scale, is_constant), scale


def _find_scale(largest: Array) -> Array:
    """Return a power of two near each number, 1 for usual ones."""
    exponent = np.frexp(largest)[1]
    return np.where(np.abs(exponent) > 200, np.ldexp(1.0, exponent), 1.0)


def _divide(sums: Array, n: Array) -> Array:
    return np.divide(sums, n, out=np.full_like(sums, np.nan), where=n > 0)


def _compute_shares(
    column: Categories, codes: NDArray[np.intp], weights: Array, k: int
) -> tuple[Moments, list[int]]:
    """Return moments of the most frequent categories, and which they are."""
    width = len(column.names) + 1
    counts = (
        np.bincount(codes * width + column.codes + 1, weights, minlength=k * width)
        .astype(np.float64)
        .reshape(k, width)[:, 1:]
    )
    totals = counts.sum(axis=0)
    used = np.flatnonzero(totals).tolist()
    kept = sorted(used, key=lambda i: (-totals[i], column.names[i]))[:MAX_CATEGORIES]
    n = np.broadcast_to(counts.sum(axis=1)[:, np.newaxis], (k, len(kept)))
    return _share_moments(counts[:, kept], n), kept


def _share_moments(counts: Array, n: Array) -> Moments:
    """Return the moments of columns of 0 and 1."""
    share = _divide(counts.astype(np.float64), n)
    return Moments(n.astype(np.float64), share, np.nan_to_num(n * share * (1 - share)))


def _compare(
    clusters: NDArray[np.int64], sizes: Array, lines: tuple[Line, ...], inside: Moments
) -> Profiles:
    """Return the profiles by the moments of every cluster."""
    outside = inside.compute_outside()
    all_rows = inside.take([0]).merge(outside.take([0]))
    is_share = np.array([line.kind != NUMBER for line in lines], dtype=bool)
    deviation = np.sqrt(_divide(all_rows.ss, all_rows.n - np.where(is_share, 0.0, 1.0)))
    alpha = _ALPHA / max(inside.n.size, 1)
    low, high = np.empty_like(inside.n), np.empty_like(inside.n)
    numbers, shares = np.flatnonzero(~is_share), np.flatnonzero(is_share)
    half = _half_widths(
        _columns(inside, numbers),
        _columns(outside, numbers),
        deviation[:, numbers],
        alpha,
    )
    difference = inside.mean - outside.mean
    low[:, numbers] = difference[:, numbers] - half
    high[:, numbers] = difference[:, numbers] + half
    low[:, shares], high[:, shares] = _share_intervals(
        _columns(inside, shares), _columns(outside, shares), alpha
    )
    varies = deviation > 0

    def standardize(values: Array) -> Array:
        # a constant column differs nowhere
        same = np.where(np.isnan(values + deviation), np.nan, 0.0)
        return np.divide(values, deviation, out=same, where=varies)

    lift = np.where(
        is_share, _divide(inside.mean, all_rows.mean + 0 * inside.n), np.nan
    )
    return Profiles(
        clusters=clusters,
        sizes=sizes,
        lines=lines,
        value=inside.mean,
        elsewhere=outside.mean,
        effect=standardize(difference),
        effect_low=standardize(low),
        effect_high=standardize(high),
        lift=lift,
    )


def _columns(moments: Moments, columns: NDArray[np.intp]) -> Moments:
    return moments.take((slice(None), columns))


def _half_widths(
    inside: Moments, outside: Moments, deviation: Array, alpha: float
) -> Array:
    """Return half the width of the interval of each difference of means.

    It is infinite if one of both has a single row, which says nothing about a spread.
    """
    n, m = inside.n, outside.n
    known = (n > 1) & (m > 1)
    n_, m_ = np.where(known, n, 2.0), np.where(known, m, 2.0)
    v, w = inside.ss / (n_ - 1) / n_, outside.ss / (m_ - 1) / m_
    error = v + w
    # the ratios do not underflow
    a = np.divide(v, error, out=np.ones_like(error), where=error > 0)
    freedom = 1.0 / (np.square(a) / (n_ - 1) + np.square(1.0 - a) / (m_ - 1))
    welch = np.sqrt(error) * -stdtrit(freedom, 0.5 * alpha)
    chance = deviation * np.sqrt(1.0 / n_ + 1.0 / m_)
    chance = chance * -stdtrit(n_ + m_ - 2.0, 0.5 * alpha)
    return np.where(known, np.maximum(welch, chance), np.inf)


def _share_intervals(
    inside: Moments, outside: Moments, alpha: float
) -> tuple[Array, Array]:
    """Return Newcombe's interval of differences of shares, with exact limits."""
    p, q = inside.mean, outside.mean
    low_p, high_p = _exact_limits(p, inside.n, alpha)
    low_q, high_q = _exact_limits(q, outside.n, alpha)
    low = p - q - np.hypot(p - low_p, high_q - q)
    high = p - q + np.hypot(high_p - p, q - low_q)
    return low, high


def _exact_limits(share: Array, n: Array, alpha: float) -> tuple[Array, Array]:
    """Return Clopper-Pearson limits of shares of n rows; 0 and 1 without rows."""
    x = np.nan_to_num(share) * n
    rest = np.maximum(n - x, 0.0)
    low = np.where(
        x > 0, betaincinv(np.maximum(x, 1e-300), rest + 1.0, 0.5 * alpha), 0.0
    )
    high = np.where(
        rest > 0, betainccinv(x + 1.0, np.maximum(rest, 1e-300), 0.5 * alpha), 1.0
    )
    return low, high
