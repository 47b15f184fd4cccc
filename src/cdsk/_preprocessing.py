# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the data -> distinct points, and their representation.

*Points.* Equal rows are one point. Its *multiplicity* is the sum of their sample
weights. A fit uses K_ij m_i m_j in the place of a kernel K, the sum of the similarities
between the duplicates of i and those of j. Points are sorted along a space-filling
order, whatever the order of the rows, so that neighbors are close in memory: a product
with the graph of a million points takes a third of the time of a random order.

*Representation.* Standardizing puts features of different units on one scale. Normal
scores do so for any distribution of a feature: its values become the normal quantiles
of their ranks. Whitening gives every principal component the same variance: it
amplifies what few components hide (faces under changing light) and blurs what they show
(digits). A layout of the neighbor graph in one of these views (_layout.py) also repels
points that are not neighbors. ``_view_choice.py`` chooses among them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import ndtri
from sklearn.utils.sparsefuncs import mean_variance_axis

from cdsk._coding import Coding, fill_means, has_missing
from cdsk._eigensolvers import largest_eigenpairs
from cdsk._layout import N_COMPONENTS, layout_of_graph
from cdsk._nearest import order_points
from cdsk._neighbors import Callback, NeighborIndex, hash_rows
from cdsk._operators.base import Array
from cdsk._operators.sparse import NeighborGraph
from cdsk._products import combine, inner
from cdsk._settings import FitContext
from cdsk._utils import check_memory, limit_blas_threads, warn
from cdsk._validation import check_extent, check_n_rows, check_points

# A feature whose most frequent value has a larger share than this has too many ties for
# normal scores and is standardized instead.
LARGEST_TIE = 0.1

# Eigenvalues of the covariance below this part of the largest are rounding.
_RANK_TOLERANCE = 1e-12

# Neighbors in the view whose median position is that of a new point in a layout.
_N_PLACING = 7

_VIEW_MEMORY = "A view of the data", "Use fewer points."

IntArray = NDArray[np.int32]


@dataclass(frozen=True)
class Points:
    """The distinct points of a fit and how they map to the rows of X.

    Attributes
    ----------
    X : ndarray or sparse array of shape (n_points, n_features), or a kernel matrix
        None in a fitted model, whose kernel holds the points.
    first_row : ndarray of shape (n_points,)
        First row of X that equals each point.
    inverse : ndarray of shape (n_rows,)
        Point of each row; -1 for a row of weight 0 that equals no point.
    sample_weight : ndarray of shape (n_rows,) or None
        Weights of the rows; None: 1 for each.
    n_distinct : int
        Number of distinct points, as far as it is known.
    zero_weight_rows : ndarray of shape (n_zero,)
        Rows of weight 0 that equal no point; they are labeled as new data.
    """

    X: Any
    first_row: IntArray
    inverse: IntArray
    sample_weight: Array | None
    n_distinct: int
    zero_weight_rows: NDArray[np.intp]

    @classmethod
    def from_rows_as_they_are(cls, X: Any, sample_weight: Array | None = None) -> Self:
        """Return one point per row, as for a precomputed kernel."""
        rows = np.arange(check_n_rows(X.shape[0]), dtype=np.int32)
        none = np.empty(0, dtype=np.intp)
        return cls(X, rows, rows, sample_weight, len(rows), none)

    @classmethod
    def from_distinct_rows(cls, X: Any, sample_weight: Array | None = None) -> Self:
        """Return the distinct rows of positive weight."""
        n_bytes = 2 * X.data.nbytes if sparse.issparse(X) else X.nbytes
        check_memory(n_bytes, "A copy of the data", "Use fewer points.")
        weighted = np.arange(X.shape[0])
        if sample_weight is not None and not sample_weight.all():
            weighted = np.flatnonzero(sample_weight)
        first, inverse = unique_rows(X if len(weighted) == X.shape[0] else X[weighted])
        all_inverse = np.full(X.shape[0], -1, dtype=np.int32)
        all_inverse[weighted] = inverse
        first = weighted[first].astype(np.int32)
        zero = np.flatnonzero(all_inverse < 0)
        return cls(X[first], first, all_inverse, sample_weight, len(first), zero)

    def sample(self, rows: NDArray[np.intp]) -> Self:
        """Return some of the points, each as one row of its multiplicity."""
        m, same = self.multiplicity, np.arange(len(rows), dtype=np.int32)
        weights = None if m is None else m[rows]
        return replace(
            self,
            X=self.X[rows],
            first_row=same,
            inverse=same,
            sample_weight=weights,
            n_distinct=len(rows),
            zero_weight_rows=self.zero_weight_rows[:0],
        )

    def split_single(self) -> Self:
        """Return two equal points for a single one, which has no distances.

        The rows of positive weight, at least two, are assigned to them in turn.
        """
        weighted = np.flatnonzero(self.inverse >= 0)
        inverse = self.inverse.copy()
        inverse[weighted] = np.arange(len(weighted)) % 2
        first = weighted[:2].astype(np.int32)
        return replace(self, X=self.X[[0, 0]], first_row=first, inverse=inverse)

    def coded(
        self, name: str, n_categories: Sequence[int | None], n_threads: int
    ) -> tuple[Self, Coding]:
        """Return the points with coordinates in the place of codes, and the coding."""
        m = self.relative_multiplicity
        coding = Coding.fit(self.X, name, n_categories, m)
        return replace(self, X=coding.transform(self.X, n_threads)), coding

    def completed(self, context: FitContext) -> tuple[Self, Coding | None]:
        """Return points of coordinates without missing cells, and their coding, if any.

        Every column of categories has the weight of a number.
        """
        if context.n_categories is not None:
            return self.coded("indicators", context.n_categories, context.n_threads)
        if not has_missing(self.X):
            return self, None
        return self.coded("fill", self.X.shape[1] * [None], context.n_threads)

    def spatially_sorted(self, X: Any) -> Self:
        """Return the points with coordinates X, sorted so that neighbors are close.

        Sparse points keep their order.
        """
        if sparse.issparse(X):
            return replace(self, X=X)
        X = np.ascontiguousarray(X)
        check_memory(X.nbytes, "A copy of the points", "Use fewer points.")
        order = np.empty(len(X), dtype=np.int32)
        order_points(X, order)
        rank = np.empty(len(X) + 1, dtype=np.int32)
        rank[order] = np.arange(len(X))
        rank[-1] = -1  # rows that equal no point
        first, inverse = self.first_row[order], rank[self.inverse]
        return replace(self, X=X[order], first_row=first, inverse=inverse)

    def assign_nearest(self, nearest: NDArray[Any], distances: Array) -> Self:
        """Return points to which each zero-weight row is assigned by proximity.

        Those at distance 0 are no longer ``zero_weight_rows``.
        """
        inverse = self.inverse.copy()
        inverse[self.zero_weight_rows] = nearest
        zero = self.zero_weight_rows[distances > 0]
        return replace(self, inverse=inverse, zero_weight_rows=zero)

    def __len__(self) -> int:
        return len(self.first_row)

    @cached_property
    def multiplicity(self) -> Array | None:
        """Sum of the sample weights of each point (n_points,); None: 1 for each."""
        if self.sample_weight is None and len(self.first_row) == len(self.inverse):
            return None
        inside = self.inverse >= 0
        weights = None if self.sample_weight is None else self.sample_weight[inside]
        total = np.bincount(self.inverse[inside], weights, minlength=len(self))
        return total.astype(np.float64)

    @property
    def masses(self) -> Array:
        """Multiplicity, 1 for each point if there is none."""
        return np.ones(len(self)) if self.multiplicity is None else self.multiplicity

    @property
    def relative_multiplicity(self) -> Array | None:
        """Multiplicity in units of its median; None if all are 1."""
        m = self.multiplicity
        return None if m is None else m / np.median(m)

    @property
    def row_weights(self) -> Array:
        """Sample weight of each row, 1 if none were given."""
        if self.sample_weight is None:
            return np.ones(len(self.inverse))
        return self.sample_weight

    def kernel_of_rows(self, K: NDArray[Any]) -> NDArray[Any]:
        """Return the kernel between rows of positive weight from K_ij m_i m_j."""
        m = self.relative_multiplicity
        if m is not None:
            K = K / np.multiply.outer(m, m)
        points = self.inverse[np.flatnonzero(self.row_weights)]
        return K[np.ix_(points, points)]

    def prolongation(self) -> sparse.csr_array:
        """Return E (n_rows, n_points), E_ri = sqrt(w_r / m_i) if row r is in point i.

        E'E = I: E maps eigenvectors of points to eigenvectors of rows.
        """
        n, values = len(self.inverse), np.ones(len(self.inverse))
        if self.multiplicity is not None:
            values = np.sqrt(self.row_weights / self.multiplicity[self.inverse])
        parts = values, self.inverse, np.arange(n + 1)
        return sparse.csr_array(parts, shape=(n, len(self)))


def warn_few_distinct(n_distinct: int, n_clusters: int, name: str = "X") -> None:
    """Warn that there are fewer distinct points than clusters."""
    points = "1 distinct point" if n_distinct == 1 else f"{n_distinct} distinct points"
    warn(
        f"{name} has {points}, fewer than n_clusters={n_clusters}. "
        "Equal points are never split: there are as many clusters as distinct points."
    )


def unique_rows(X: Any) -> tuple[IntArray, IntArray]:
    """Return the first row of each distinct one, and for every row which it equals.

    As ``np.unique(X, axis=0)``, but in time O(n d). The order of the distinct rows
    depends on their values alone, not on the order of X.
    """
    n, is_sparse = check_n_rows(X.shape[0]), sparse.issparse(X)
    hashes: NDArray[Any] = np.array(hash_rows(X)) if is_sparse else _hash_rows(X)
    _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    later = np.flatnonzero(first[inverse] != np.arange(n))
    if not is_sparse and _differ(X[later], X[first[inverse[later]]]):  # a collision
        _, first, inverse = np.unique(X, axis=0, return_index=True, return_inverse=True)
    return first.astype(np.int32), inverse.ravel().astype(np.int32)


def _differ(A: NDArray[Any], B: NDArray[Any]) -> bool:
    """Whether two arrays differ; missing cells, NaN, are equal."""
    differ = A != B
    return bool(differ.any() and (differ & ~(np.isnan(A) & np.isnan(B))).any())


def _hash_rows(X: NDArray[Any]) -> NDArray[np.uint64]:
    """Return a 64-bit hash of every row (n,)."""
    odd = np.random.RandomState(0).randint(2**62, size=(X.shape[1],)).astype(np.uint64)
    hashes = np.zeros(len(X), dtype=np.uint64)
    for column, factor in zip(X.T, 2 * odd + 1, strict=True):
        # 0.0 for -0.0; small integers differ in their highest bits only
        value = (column.astype(np.float64) + 0.0).view(np.uint64)
        value = (value ^ (value >> np.uint64(32))) * factor
        hashes += (value ^ (value >> np.uint64(29))) * factor
    return hashes


@dataclass(frozen=True)
class Representation:
    """The representation of the data that a fit uses.

    Attributes
    ----------
    name : {"raw", "standardize", "normal_scores", "whiten", "layout", \
            "chi_square", "indicators"}
        The view; the last two are those of tables with categories.
    n_components : int or None
        Components of the whitened data or of the layout, None for other views.
    scores : dict
        Cohesive agreement of every view that was compared, by its name, "whiten 20" for
        20 components; the first is taken unless another has 1.4 times its score. Those
        two were compared on up to 20 000 points, others on a sample of at most 2000.
        Empty if there was nothing to compare.
    support : dict
        Share of the votes for the best partition times its balance, at most 1, on at
        most 20 000 points: in the view, and in two layouts that vote together. A layout
        is taken if it has 1.5 times the support of the view; if that is 2/3 or more, no
        layout is made. Empty if layouts are not considered.
    spread : ndarray of shape (n_features,) or None
        Standard deviation of every feature of the original data; None for a
        precomputed kernel.
    """

    name: str = "raw"
    n_components: int | None = None
    scores: dict[str, float] = field(default_factory=dict)
    support: dict[str, float] = field(default_factory=dict)
    spread: Array | None = field(default=None, repr=False)
    # of the features; the scale of a constant feature is infinite
    mean: Array | None = field(default=None, repr=False)
    scale: Array | None = field(default=None, repr=False)
    # principal directions over their standard deviations (n_features, n_components)
    directions: Array | None = field(default=None, repr=False)
    # values of every feature and their normal scores; None: it is standardized
    ranks: tuple[tuple[Array, Array] | None, ...] = field(default=(), repr=False)
    # of a layout: the view of its graph, the points there, and their positions
    base: "Representation | None" = None
    # of a table with categories or missing cells: its coordinates come first
    coding: Coding | None = field(default=None, repr=False)
    index: NeighborIndex | None = field(default=None, repr=False)
    positions: Array | None = field(default=None, repr=False)

    @property
    def n_varying(self) -> int:
        """Number of features that vary."""
        return 0 if self.spread is None else int(np.count_nonzero(self.spread))

    @property
    def view(self) -> str:
        """Name with the number of components, a key of ``scores``."""
        m = self.n_components
        return self.name if m is None else f"{self.name} {m}"

    @property
    def width(self) -> int:
        """Number of coordinates of a row before the view."""
        return 0 if self.coding is None else sum(self.coding.sizes)

    @classmethod
    def fit(
        cls,
        X: Any,
        view: str,
        *,
        multiplicity: Array | None = None,
        n_components: int | None = None,
        n_threads: int = 1,
    ) -> Self:
        """Fit a view to points X (n, d) of the given multiplicity.

        ``n_components`` limits the number of whitened components, as a name "whiten 20"
        does; None: the rank of the data. Equal points have rank 0 and stay as they are.
        """
        view, _, components = view.partition(" ")
        n_components = int(components) if components else n_components
        if sparse.issparse(X):  # every other view would make them dense
            mean, variance = mean_variance_axis(X, 0, multiplicity)
            return cls(spread=np.sqrt(variance), mean=mean)
        if view != "raw":
            check_extent(X)
        copies = 2 if view in ("whiten", "normal_scores") else 1
        check_memory(8 * X.size * copies, *_VIEW_MEMORY)
        # extreme magnitudes are refused where squares are needed
        with np.errstate(over="ignore", invalid="ignore"):
            mean, spread = weighted_moments(X, multiplicity)
        if view == "whiten":
            rank = min(X.shape) if n_components is None else n_components
            directions = _principal_directions(X - mean, multiplicity, rank, n_threads)
            if m := directions.shape[1]:
                return cls(view, m, spread=spread, mean=mean, directions=directions)
        elif view != "raw":
            scale = np.where(spread > 0, spread, np.inf)  # constant features become 0
            ranks: tuple[tuple[Array, Array] | None, ...] = ()
            if view == "normal_scores":
                ranks = tuple(_normal_scores(x, multiplicity) for x in X.T)
            return cls(view, spread=spread, mean=mean, scale=scale, ranks=ranks)
        return cls(spread=spread, mean=mean)

    @classmethod
    def from_coding(
        cls, coding: Coding, X: Array, multiplicity: Array | None = None
    ) -> Self:
        """Return the coding of a table with categories; X are its coordinates."""
        spread = weighted_moments(X, multiplicity)[1]
        return cls(coding.name, spread=spread, coding=coding)

    @classmethod
    def from_layout(
        cls,
        base: Self,
        graph: NeighborGraph,
        *,
        n_components: int | None = None,
        seed: int = 0,
        n_threads: int = 1,
        callback: Callback | None = None,
    ) -> Self:
        """Fit the layout of a neighbor graph of points in the view ``base``."""
        positions = layout_of_graph(
            graph,
            n_components or N_COMPONENTS,
            seed=seed,
            n_threads=n_threads,
            callback=callback,
        )
        return cls(
            "layout",
            positions.shape[1],
            scores=base.scores,
            spread=base.spread,
            base=replace(base, scores={}),
            index=NeighborIndex(graph.neighbors.X),
            positions=positions,
        )

    def transform_fitted(self, X: Any, n_threads: int = 1) -> Any:
        """Return ``transform_validated`` of the points of the fit, in order.

        X are their coordinates by the coding, if there is one.
        """
        if self.positions is not None:
            return self.positions.astype(X.dtype)
        return self._transform_coded(X, n_threads)

    def transform(self, X: Any, n_threads: int = 1) -> Any:
        """Return X in this representation, in its own dtype."""
        X = check_points(X, ensure_all_finite="allow-nan" if self.coding else True)
        if self.spread is not None and X.shape[1] != len(self.spread):
            raise ValueError(
                f"X has {X.shape[1]} features, but the representation was fitted to "
                f"{len(self.spread)} features."
            )
        return self.transform_validated(X, n_threads)

    def transform_validated(self, X: Any, n_threads: int = 1) -> Any:
        """Return ``transform(X)`` for data that have been validated."""
        if self.coding is not None:
            X = self.coding.transform(X, n_threads)
        elif self.mean is not None and has_missing(X):
            X = fill_means(X, self.mean)
        return self._transform_coded(X, n_threads)

    def _transform_coded(self, X: Any, n_threads: int) -> Any:
        if self.base is not None:
            return self._place(self.base.transform_validated(X, n_threads), n_threads)
        if self.directions is not None:
            d, m = self.directions.shape
            check_memory(8 * len(X) * (d + max(d, 2 * m)), *_VIEW_MEMORY)
            # not by BLAS, whose rounding depends on the number of points
            centered = np.ascontiguousarray((X - self.mean).T)
            whitened = combine(self.directions, centered, n_threads)
            return np.ascontiguousarray(whitened.T, dtype=X.dtype)
        if self.scale is None:
            return X
        check_memory(8 * X.size, *_VIEW_MEMORY)
        Z = X - self.mean
        Z /= self.scale
        for j, ranks in enumerate(self.ranks):
            if ranks is not None:
                Z[:, j] = _interpolate_scores(X[:, j], *ranks, self.scale[j])
        return np.ascontiguousarray(Z, dtype=X.dtype)

    def _place(self, Z: Any, n_threads: int) -> Any:
        """Return positions in the layout of rows Z of its view.

        The median of those of the nearest points: a mean may lie between two clusters.
        A row of the fit has the position that it has there.
        """
        assert self.index is not None and self.positions is not None
        k = min(_N_PLACING, len(self.positions))
        distances, nearest = self.index.kneighbors(Z, k, n_threads=n_threads)
        is_old = distances[:, :1] == 0
        placed = np.median(self.positions[nearest], axis=1)
        placed = np.where(is_old, self.positions[nearest[:, 0]], placed)
        return np.ascontiguousarray(placed, dtype=Z.dtype)


def weighted_moments(
    X: NDArray[Any], multiplicity: Array | None
) -> tuple[Array, Array]:
    """Return mean and standard deviation of the features, 0 for constant ones."""
    extent = np.ptp(X, axis=0).astype(np.float64)
    if multiplicity is None:
        mean = X.mean(axis=0, dtype=np.float64)
    else:
        share = (multiplicity / multiplicity.sum())[:, np.newaxis]
        mean = np.sum(X * share, axis=0)
    unit = np.where(extent > 0, extent, 1.0)  # so that no square underflows
    squares = X - mean
    squares /= unit
    np.square(squares, out=squares)
    if multiplicity is not None:
        squares *= (multiplicity / multiplicity.mean())[:, np.newaxis]
    spread = unit * np.sqrt(squares.mean(axis=0, dtype=np.float64))
    return mean, np.where(extent > 0, spread, 0.0)  # no rounding of the mean


def _principal_directions(
    centered: Array, multiplicity: Array | None, n_components: int, n_threads: int
) -> Array:
    """Return principal directions (d, m) over their standard deviations.

    The largest come first; m is at most ``n_components`` and the rank of the data.
    """
    n, d = centered.shape
    share = np.full(n, 1.0 / n)
    if multiplicity is not None:
        share = multiplicity / multiplicity.sum()
    centered = centered * np.sqrt(share)[:, np.newaxis]
    # the smaller of the two Gram matrices has the same eigenvalues
    smaller = np.ascontiguousarray(centered.T if d <= n else centered)
    gram = inner(smaller, smaller, n_threads)
    with limit_blas_threads():
        values, vectors = largest_eigenpairs(gram, min(n_components, n, d))
    largest = max(values[0], np.finfo(float).tiny)
    m = int(np.sum(values > _RANK_TOLERANCE * largest))
    values, vectors = values[:m], vectors[:m]
    if d > n and m:
        by_point = np.ascontiguousarray(vectors.T / np.sqrt(values))
        vectors = combine(by_point, centered, n_threads)
    return np.ascontiguousarray(vectors.T / np.sqrt(values))


def _normal_scores(
    x: NDArray[Any], multiplicity: Array | None
) -> tuple[Array, Array] | None:
    """Return the values of a feature and their normal scores; None: too many ties."""
    total = len(x) if multiplicity is None else multiplicity.sum()
    values, inverse = np.unique(x.astype(np.float64), return_inverse=True)
    share = np.bincount(inverse, multiplicity) / total
    if share.max() > LARGEST_TIE:
        return None
    scores = ndtri(np.cumsum(share) - 0.5 * share)
    mean = np.sum(share * scores)
    return values, scores / np.sqrt(np.sum(share * (scores - mean) ** 2))


def _interpolate_scores(
    x: NDArray[Any], values: Array, scores: Array, scale: float
) -> Array:
    """Interpolate scores linearly; extrapolate with the slope of standardizing."""
    x = x.astype(np.float64)
    left = np.clip(np.searchsorted(values, x, "right") - 1, 0, len(values) - 2)
    low, high = values[left], values[left + 1]
    part = np.clip((x - low) / (high - low), 0.0, 1.0)
    inside = scores[left] + part * np.diff(scores)[left]
    # rounding must keep the order, and give the values exactly their scores
    score = np.where(part < 1, np.minimum(inside, scores[left + 1]), scores[left + 1])
    outside = x - np.clip(x, values[0], values[-1])
    return np.asarray(score + outside / scale)
