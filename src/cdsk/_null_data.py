# SPDX-License-Identifier: BSD-3-Clause
"""Data without clusters that are otherwise like given data (tests/test_stability.py).

There are two kinds of numbers, both as many rows as the data:

    normal    one Gaussian, with the mean and the covariance of the data
    uniform   uniform in the convex hull of the data, if these have at most three
              dimensions; else in the box of their principal components, as in the gap
              statistic (Tibshirani, Walther & Hastie, JRSS B 63, 2001)

A column of categories is permuted, so it says nothing about other columns. Missing
cells remain where they are. The entries of a sparse matrix are permuted: rows and
columns keep the number of their entries.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial import Delaunay, QhullError

from cdsk._operators.base import Array
from cdsk._preprocessing import weighted_moments

KINDS = "normal", "uniform"

# Rows by which covariance and hull are computed, and dimensions of a hull.
_MAX_ROWS, _MAX_HULL_DIMENSIONS = 2000, 3
# Singular values below this fraction of the largest are rounding errors.
_NEGLIGIBLE = 1e-8


@dataclass(frozen=True)
class Shape:
    """Mean, spread and principal components of complete numbers.

    Attributes
    ----------
    mean, spread : ndarray of shape (d,)
        Those of the columns.
    components : ndarray of shape (r, d)
        Directions of the standardized data.
    deviations : ndarray of shape (r,)
        Standard deviations along them.
    scores : ndarray of shape (n, r)
        Coordinates of the rows along them.
    """

    mean: Array
    spread: Array
    components: Array
    deviations: Array
    scores: Array

    @classmethod
    def fit(cls, X: Array, weights: Array) -> Self:
        """Return the shape of rows that count by their weights."""
        mean, spread = weighted_moments(X, weights / weights.mean())
        spread = np.where(spread > 0, spread, 1.0)
        Z = (X - mean) / spread
        share = np.sqrt(weights / weights.sum())[:, np.newaxis]
        _, s, components = np.linalg.svd(share * Z, full_matrices=False)
        kept = s > _NEGLIGIBLE * max(s.max(initial=0.0), _NEGLIGIBLE)
        components = components[kept]
        return cls(mean, spread, components, s[kept], Z @ components.T)

    def draw(self, n: int, kind: str, rng: np.random.Generator) -> Array:
        """Return n rows of a kind."""
        if kind == "normal":
            scores = rng.standard_normal((n, len(self.deviations))) * self.deviations
        else:
            scores = _draw_uniform(self.scores, n, rng)
        return self.mean + self.spread * (scores @ self.components)


class NullData:
    """Draws data without clusters: see the top of this file."""

    def __init__(
        self,
        X: Any,
        weights: Array,
        n_categories: Sequence[int | None] | None,
        rng: np.random.Generator,
    ) -> None:
        self._X = X
        if sparse.issparse(X):
            return
        is_number = [True] * X.shape[1]
        if n_categories is not None:
            is_number = [m is None for m in n_categories]
        self._numbers: NDArray[np.intp] = np.flatnonzero(is_number)
        n = len(X)
        rows = np.arange(n)
        if n > _MAX_ROWS:
            rows = np.sort(rng.choice(n, _MAX_ROWS, replace=False))
        numbers = X[rows][:, self._numbers].astype(np.float64)
        self._shape = Shape.fit(_fill(numbers, rng), weights[rows])

    def draw(self, kind: str, rng: np.random.Generator) -> Any:
        """Return data without clusters, of the shape and type of the data."""
        X = self._X
        if sparse.issparse(X):
            order = rng.permutation(X.nnz)
            # the row pointers are changed below
            parts = X.data[order], X.indices[order], X.indptr.copy()
            drawn = sparse.csr_array(parts, shape=X.shape)
            drawn.sum_duplicates()
            return drawn
        drawn = np.empty(X.shape)
        drawn[:, self._numbers] = self._shape.draw(len(X), kind, rng)
        for j in np.setdiff1d(np.arange(X.shape[1]), self._numbers):
            is_known = ~np.isnan(X[:, j])
            drawn[is_known, j] = rng.permutation(X[is_known, j])
        drawn[np.isnan(X)] = np.nan
        return drawn.astype(X.dtype)


def _fill(X: Array, rng: np.random.Generator) -> Array:
    """Return X with random values of the column in its missing cells."""
    for j in np.flatnonzero(np.isnan(X).any(axis=0)):
        missing = np.isnan(X[:, j])
        known = X[~missing, j]
        X[missing, j] = rng.choice(known, missing.sum()) if len(known) else 0.0
    return X


def _draw_uniform(scores: Array, n: int, rng: np.random.Generator) -> Array:
    """Return n points that are uniform in the hull of scores, or in their box."""
    dimension = scores.shape[1]
    if 2 <= dimension <= _MAX_HULL_DIMENSIONS:
        try:
            hull = Delaunay(scores)
        except QhullError:  # too flat
            pass
        else:
            corners = scores[hull.simplices]
            edges = corners[:, 1:] - corners[:, :1]
            volume = np.abs(np.linalg.det(edges))
            simplex = rng.choice(len(volume), n, p=volume / volume.sum())
            # uniform in a simplex
            parts = rng.dirichlet(np.ones(dimension + 1), n)
            return np.asarray(np.einsum("ij,ijk->ik", parts, corners[simplex]))
    low, high = scores.min(axis=0), scores.max(axis=0)
    return np.asarray(low + (high - low) * rng.random((n, dimension)))
