# SPDX-License-Identifier: BSD-3-Clause
"""Clusters of bounded size: the least costly change of labels (tests/test_sizes.py).

A point i of mass m_i moves from its label to a cluster y at the cost

    C_iy = m_i log(1 + p_i(label) / p_i(y)),     0 if it keeps its label,

the surprise at y, if only these two were possible. p are the calibrated probabilities
by leave-one-out votes, but where votes say nothing, the share e of points, they are not
the same for all clusters: they are shares of the clusters among the ends of random
walks of 1, 2, ... steps on the kernel, so that near points move first, also where no
vote reaches. The cheapest labels of bounded sizes are a transport problem,

    min sum_iy C_iy x_iy,     sum_y x_iy = 1,     low <= sum_i m_i x_iy <= high.

Its dual has one price per cluster: every point takes the cluster of the smallest cost
minus price. Prices of a sample tell which pairs (i, y) may be used; HiGHS solves the
problem of these pairs, and pairs that its prices show to be cheaper are added until
there are none. That solves the problem of all pairs. Vertices are integral if all
masses are 1; otherwise fewer points than clusters are split, and take the cluster of
their largest part. Bounds that this violates are tightened by what is missing, and the
problem is solved again.

Points with a known label or a link keep their clusters. Their masses are taken from the
bounds of these.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

from cdsk._operators.base import Array, Kernel
from cdsk._utils import warn
from cdsk._voting import LeaveOneOutVotes

Labels = NDArray[np.int64]

# Pairs of a point and a cluster in one linear program, beside the first of each point.
# HiGHS takes about half a second for them; Ctrl-C waits for it.
MAX_PAIRS = 10_000

# Every fourth point gives the first prices of all.
_SAMPLING = 4

# Longest random walk. Twenty steps on a graph of 20 neighbors cross most clusters.
_MAX_STEPS = 30

# Rounds of tighter bounds, for masses other than 1.
_MAX_ROUNDS = 10

# Slack of reduced costs, larger than the dual tolerance of HiGHS, and of sums.
_TOLERANCE = 1e-6
_ROUNDING = 1e-9


@dataclass(frozen=True)
class SizeChange:
    """How labels were changed to bound the sizes of clusters.

    Sizes are sums of sample weights; noise is not counted.

    Attributes
    ----------
    low, high : float
        Bounds of the sizes.
    before, after : ndarray of shape (n_found,)
        Sizes of the clusters without and with the change.
    rows : ndarray of shape (n_moved,)
        Rows that were moved, in increasing order.
    previous : ndarray of shape (n_moved,)
        Clusters from which they were moved.
    cost : float
        Sum of the costs of all moves, per unit of weight; 0 if none was needed.
    least_cost : float
        That of the best change that may split points: no change costs less.
    """

    low: float
    high: float
    before: Array
    after: Array
    rows: NDArray[np.intp]
    previous: Labels
    cost: float
    least_cost: float


def find_bounds(
    least: float | None,
    most: float | None,
    masses: Array,
    n_clusters: int,
) -> tuple[float, float]:
    """Return the bounds of sizes; raise ValueError if they exclude each other.

    ``least`` and ``most`` are numbers, or fractions of the sum of ``masses``.
    """
    total = float(masses.sum())
    low, high = _as_size(least, total, 0.0), _as_size(most, total, total)
    if np.array_equal(masses, np.round(masses)):
        low, high = math.ceil(low - _ROUNDING), math.floor(high + _ROUNDING)
    name, of_all = f"n_clusters={n_clusters}", f"X has {total:.15g}"
    if low > high and most is not None:
        raise ValueError(
            f"min_cluster_size={least!r} must not exceed max_cluster_size={most!r}: "
            f"sizes would be from {low:.15g} to {high:.15g} of {total:.15g} rows."
        )
    if n_clusters * low > total * (1.0 + _ROUNDING):
        raise ValueError(
            f"min_cluster_size={least!r} and {name} need "
            f"{_multiply(n_clusters, low, least)}, {of_all}. Use smaller or fewer "
            "clusters."
        )
    if n_clusters * high < total * (1.0 - _ROUNDING):
        raise ValueError(
            f"max_cluster_size={most!r} and {name} have room for "
            f"{_multiply(n_clusters, high, most)}, {of_all}. Use larger or more "
            "clusters."
        )
    return low, high


def _as_size(bound: float | None, total: float, default: float) -> float:
    if bound is None:
        return default
    # more than that many rows are none
    return float(bound * total if bound < 1 else min(bound, 2**53))


def _multiply(n_clusters: int, size: float, bound: Any) -> str:
    text = f"{n_clusters * size:.15g} rows"
    return text if bound == size else f"{n_clusters} x {size:.15g} = {text}"


def feasible_counts(
    counts: NDArray[np.int64], least: float | None, most: float | None, masses: Array
) -> NDArray[np.int64]:
    """Return the numbers of clusters that bounds allow; ValueError without any."""
    error: ValueError | None = None
    kept = []
    for count in counts:
        try:
            find_bounds(least, most, masses, int(count))
        except ValueError as refused:
            error = refused
        else:
            kept.append(count)
    if not kept:
        raise ValueError(
            f"No number of clusters from {counts[0]} to {counts[-1]} respects the "
            f"bounds. {error}"
        )
    return np.array(kept)


def move_points(
    kernel: Kernel,
    left_out: LeaveOneOutVotes,
    masses: Array,
    least: float | None,
    most: float | None,
    known: NDArray[np.intp],
) -> tuple[Labels, SizeChange]:
    """Return labels (n,) of clusters of bounded sizes, and the change; rows are points.

    ``masses`` (n,) are 0 for points that keep their labels and are not counted. Points
    that are ``known`` keep their labels and are counted.
    """
    labels = left_out.labels
    n_found = int(labels.max()) + 1
    low, high = find_bounds(least, most, masses, n_found)
    before = np.bincount(labels, masses, n_found).astype(np.float64)
    new, least_cost, cost = labels, 0.0, 0.0
    if before.min() < low or before.max() > high:
        kept: Array = np.bincount(labels[known], masses[known], n_found).astype(float)
        _check_known(kept, least, most, low, high, masses.sum())
        movable = np.setdiff1d(np.flatnonzero(masses), known)
        costs = moving_costs(kernel, left_out)[movable, :n_found]
        lows: Array = np.maximum(low - kept, 0.0)
        chosen, least_cost = solve_sizes(costs, masses[movable], lows, high - kept)
        new = labels.copy()
        new[movable] = chosen
        cost = float(masses[movable] @ costs[np.arange(len(movable)), chosen])
    after = np.bincount(new, masses, n_found).astype(np.float64)
    _warn_if_violated(after, low, high)
    rows = np.flatnonzero(new != labels)
    return new, SizeChange(
        low=low,
        high=high,
        before=before,
        after=after,
        rows=rows,
        previous=labels[rows],
        cost=cost,
        least_cost=least_cost,
    )


def _check_known(
    kept: Array,
    least: float | None,
    most: float | None,
    low: float,
    high: float,
    total: float,
) -> None:
    """Refuse bounds that cannot be met if the masses ``kept`` (n_found,) stay."""
    slack, largest = _ROUNDING * total, int(np.argmax(kept))
    if kept[largest] > high + slack:
        raise ValueError(
            f"max_cluster_size={most!r} allows {high:.15g} rows, but cluster {largest} "
            f"has {kept[largest]:.15g} rows with a known label or a link, which are "
            "not moved. Use larger clusters, or leave out some of what is known."
        )
    missing, movable = np.maximum(low - kept, 0.0).sum(), total - kept.sum()
    if missing > movable + slack:
        raise ValueError(
            f"min_cluster_size={least!r} needs {missing:.15g} more rows beside those "
            "with a known label or a link, which are not moved, but only "
            f"{movable:.15g} can be. Use smaller clusters, or leave out some of what "
            "is known."
        )


def _warn_if_violated(sizes: Array, low: float, high: float) -> None:
    slack = _ROUNDING * sizes.sum()
    wrong = np.flatnonzero((sizes < low - slack) | (sizes > high + slack))
    if len(wrong):
        listed = ", ".join(f"cluster {y} has {sizes[y]:.6g}" for y in wrong)
        warn(
            f"Sizes must be from {low:.6g} to {high:.6g}, but {listed}: equal rows and "
            "rows of a weight are never split. Use wider bounds.",
            UserWarning,
        )


def moving_costs(kernel: Kernel, left_out: LeaveOneOutVotes) -> Array:
    """Return the costs of moving every point to every cluster (n, c), per mass."""
    calibration, rows = left_out.calibration, np.arange(len(left_out.labels))
    voted = replace(calibration, error=0.0)
    proba = voted.predict_proba(left_out.log_votes, left_out.shares)
    proba *= 1.0 - calibration.error
    proba += calibration.error * _walk(kernel, left_out.labels, proba.shape[1])
    log_proba = np.log(np.maximum(proba, np.finfo(float).tiny))
    own = log_proba[rows, left_out.labels]
    costs: Array = np.logaddexp(0.0, own[:, np.newaxis] - log_proba)
    costs[rows, left_out.labels] = 0.0
    return costs


def _walk(kernel: Kernel, labels: Labels, n_clusters: int) -> Array:
    """Return the shares (n, c) of the clusters among the ends of random walks.

    Walks of 1, 2, ... steps count alike, until some end in every cluster.
    """
    shares = (labels == np.arange(n_clusters)[:, np.newaxis]).astype(float)
    degrees = np.where(kernel.row_sums > 0, kernel.row_sums, 1.0)
    found = np.bincount(labels, minlength=n_clusters) > 0
    total = np.zeros_like(shares)
    for _ in range(_MAX_STEPS):
        shares = np.maximum(kernel.product(shares), 0.0) / degrees
        total += shares
        if total[found].all():
            break
    return np.asarray((total / np.maximum(total.sum(axis=0), 1.0)).T)


def solve_sizes(
    costs: Array, masses: Array, low: float | Array, high: float | Array
) -> tuple[Labels, float]:
    """Return the cheapest labels (n,) of bounded sizes, and the least relaxed cost.

    ``costs`` (n, c) are per unit of ``masses`` (n,); bounds are for all clusters, or
    (c,).
    """
    n_clusters, least_cost = costs.shape[1], np.inf
    lows = np.broadcast_to(low, n_clusters).astype(np.float64)
    highs = np.broadcast_to(high, n_clusters).astype(np.float64)
    for i in range(_MAX_ROUNDS):
        shares, _, cost = _solve_relaxed(costs, masses, lows, highs)
        least_cost = min(least_cost, cost)  # tighter bounds cost more
        labels = np.argmax(shares, axis=1)
        sizes = np.bincount(labels, masses, n_clusters)
        missing, extra = np.maximum(low - sizes, 0.0), np.maximum(sizes - high, 0.0)
        if not (missing.any() or extra.any()):
            break
        lows = np.minimum(lows + 2**i * missing, high)
        highs = np.maximum(highs - 2**i * extra, low)
    return labels, least_cost


def _solve_relaxed(
    costs: Array, masses: Array, lows: Array, highs: Array
) -> tuple[Array, Array, float]:
    """Return the shares (n, c) of an optimal transport, its prices (c,) and cost.

    Pairs are added until no pair is cheaper by the prices.
    """
    pairs = np.ones(costs.shape, dtype=bool)
    if costs.size > MAX_PAIRS:
        sample = slice(None, None, _SAMPLING)
        part = masses[sample].sum() / masses.sum()
        _, prices, _ = _solve_relaxed(
            costs[sample], masses[sample], part * lows, part * highs
        )
        gaps = costs - prices
        gaps -= gaps.min(axis=1, keepdims=True)
        n_kept = min(len(costs) + MAX_PAIRS, costs.size) - 1
        pairs = gaps <= np.partition(gaps, n_kept, axis=None)[n_kept]
    while True:
        shares, prices, cost = _solve_pairs(costs, masses, lows, highs, pairs)
        reduced = costs - prices
        paid = np.where(pairs, reduced, np.inf).min(axis=1, keepdims=True)
        cheaper = reduced < paid - _TOLERANCE
        if not cheaper.any():
            return shares, prices, cost
        pairs |= cheaper


def _solve_pairs(
    costs: Array, masses: Array, lows: Array, highs: Array, pairs: NDArray[np.bool_]
) -> tuple[Array, Array, float]:
    """Return shares, prices (c,) and cost of the transport by some pairs only.

    Missing and extra masses are allowed at a price that no chain of moves reaches, so
    that there always is a solution.
    """
    n_clusters, n_pairs = costs.shape[1], pairs.sum(axis=1)
    shares = np.where(pairs, 1.0, 0.0)
    is_open = n_pairs > 1
    fixed = masses[~is_open] @ shares[~is_open]
    open_costs, open_masses = costs[is_open], masses[is_open]
    rows, clusters = np.nonzero(pairs[is_open])
    m, k = len(open_masses), len(rows)
    # columns: pairs, sizes of the clusters, extra and missing masses
    identity = sparse.eye_array(n_clusters)
    of_points = sparse.coo_array((np.ones(k), (rows, np.arange(k))), shape=(m, k))
    of_clusters = sparse.coo_array(
        (np.ones(k), (clusters, np.arange(k))), shape=(n_clusters, k)
    )
    matrix = sparse.block_array(
        [
            [of_points, None, None, None],
            [of_clusters, -identity, -identity, identity],
        ],
        format="csr",
    )
    largest = (n_clusters + 1.0) * (1.0 + costs.max())
    prices = np.repeat([0.0, largest, largest], n_clusters)
    unlimited = np.full(k + 2 * n_clusters, np.inf)
    upper = np.insert(unlimited, k, highs)
    lower = np.zeros_like(upper)
    lower[k : k + n_clusters] = lows
    # the simplex method: its solution is a vertex
    result = linprog(
        np.concatenate([open_costs[rows, clusters], prices]),
        A_eq=matrix,
        b_eq=np.concatenate([open_masses, -fixed]),
        bounds=np.column_stack([lower, upper]),
        method="highs-ds",
    )
    if not result.success:
        raise RuntimeError(f"HiGHS did not bound the sizes: {result.message}")
    open_shares = np.zeros((m, n_clusters))
    open_shares[rows, clusters] = result.x[:k] / open_masses[rows]
    shares[is_open] = open_shares
    cost = float(np.sum(masses[:, np.newaxis] * costs * shares))
    return shares, result.eqlin.marginals[m:], cost
