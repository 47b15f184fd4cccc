# SPDX-License-Identifier: BSD-3-Clause
"""Numbers, codes of categories and missing cells -> complete coordinates.

A number x becomes (x - mean) / standard deviation. A column of m categories becomes m
coordinates, (1 - p) / s in that of its category and -p / s in the others, p their
shares. A missing cell says nothing: it is 0, the mean, in all of them. There are two
choices of s:

    indicators   s^2 = sum p (1 - p): the column has the variance of one number
    chi_square   s^2 = p: rare categories count more, those of a column m - 1 numbers

The first is the usual one; the second is that of correspondence analysis and of factor
analysis of mixed data. ``_view_choice.py`` selects one of them. A table of numbers
keeps their units, and missing cells are filled from similar rows (_filling.py): the
coding ``fill``. docs/notes/2026-11-19-tables.md has the alternatives.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cdsk._filling import Filling
from cdsk._operators.base import Array
from cdsk._utils import check_memory
from cdsk._validation import check_magnitude

CODINGS = ("chi_square", "indicators")

# Categories of a column that are told apart.
MAX_CATEGORIES = 255


@dataclass(frozen=True)
class Coding:
    """How the cells of a table become coordinates.

    Attributes
    ----------
    name : {"indicators", "chi_square", "fill"}
        The coding.
    mean, scale : ndarray of shape (n_columns,)
        Those of the numbers; the scale of a column that does not vary is infinite.
    shares : tuple
        Shares of the categories of every column; None for numbers. Of more than 255 the
        rarest have none and count as missing.
    filling : Filling or None
        Rows from which missing cells of numbers are filled.
    """

    name: str
    mean: Array
    scale: Array
    shares: tuple[Array | None, ...]
    filling: Filling | None = None

    @classmethod
    def fit(
        cls,
        X: Any,
        name: str,
        n_categories: Sequence[int | None],
        multiplicity: Array | None = None,
    ) -> Self:
        """Fit a coding to encoded rows; ``n_categories`` is None for numbers."""
        n, d = X.shape
        weights = np.ones(n) if multiplicity is None else multiplicity
        mean, scale = np.zeros(d), np.ones(d)
        shares: list[Array | None] = []
        for j, m in enumerate(n_categories):
            x = X[:, [j]].toarray().ravel() if sparse.issparse(X) else X[:, j]
            is_known = ~np.isnan(x)
            x, w = x[is_known].astype(np.float64), weights[is_known]
            share = None
            if m is not None:
                weight = np.bincount(x.astype(np.intp), w, minlength=m)
                weight[np.argsort(-weight, kind="stable")[MAX_CATEGORIES:]] = 0.0
                # shares are 0 without any values
                share = weight / (weight.sum() or 1.0)
            elif len(x):
                mean[j], scale[j] = _moments(x, w)
            shares.append(share)
        coding = cls(name, mean, scale, tuple(shares))
        if name != "fill" or sparse.issparse(X):
            return coding
        return replace(coding, filling=Filling.fit(coding._coordinates(X)))

    @property
    def sizes(self) -> list[int]:
        """Number of coordinates of every column."""
        return [1 if p is None else int(np.count_nonzero(p)) for p in self.shares]

    def transform(self, X: Any, n_threads: int = 1) -> Any:
        """Return the coordinates of encoded rows, without missing cells."""
        if sparse.issparse(X):
            return fill_means(X, self.mean)
        if self.filling is None:
            return np.nan_to_num(self._coordinates(X))
        if not has_missing(X):
            return X
        Z = self.filling.fill(self._coordinates(X), n_threads)
        # the unit of the column; one that does not vary has its mean
        filled = self.mean + Z * np.where(np.isinf(self.scale), 0.0, self.scale)
        return np.where(np.isnan(X), filled, X).astype(X.dtype)

    def _coordinates(self, X: Any) -> Array:
        """Return the coordinates of encoded rows, NaN for missing cells."""
        size = self.sizes
        check_memory(8 * len(X) * sum(size), "Coded categories", "Use fewer rows.")
        coded, start = np.zeros((len(X), sum(size))), 0
        for j, p in enumerate(self.shares):
            columns, x = slice(start, start + size[j]), X[:, j]
            start += size[j]
            if p is None:
                coded[:, columns.start] = (x - self.mean[j]) / self.scale[j]
            elif size[j] > 1:
                kept = np.flatnonzero(p)
                s = p[kept] if self.name == "chi_square" else np.sum(p * (1.0 - p))
                is_kept = np.append(p > 0, False)[np.nan_to_num(x, nan=-1).astype(int)]
                coded[:, columns] = (x[:, np.newaxis] == kept) - p[kept]
                coded[~is_kept, columns] = np.nan
                coded[:, columns] /= np.sqrt(s)
        return coded


def _moments(x: Array, weights: Array) -> tuple[float, float]:
    """Return mean and standard deviation, infinite for values that do not vary."""
    check_magnitude(x)
    mean = float(np.average(x, weights=weights))
    # a power of two, so that no square underflows, and no rounding is added
    unit = np.ldexp(1.0, int(np.frexp(np.ptp(x))[1]))
    spread = unit * np.sqrt(np.average(((x - mean) / unit) ** 2, weights=weights))
    return mean, float(spread) if spread > 0 and x.min() < x.max() else np.inf


def has_missing(X: Any) -> bool:
    """Whether X has a cell that is NaN."""
    values = X.data if sparse.issparse(X) else X
    # one pass without an array of truth values; the sum may overflow
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isnan(values.sum()) and np.isnan(values).any())


def fill_means(X: Any, mean: NDArray[Any]) -> Any:
    """Return X with the mean of the column in its missing cells."""
    if not sparse.issparse(X):
        return np.where(np.isnan(X), mean, X).astype(X.dtype)
    filled = X.copy()
    cells = np.flatnonzero(np.isnan(X.data))
    filled.data[cells] = mean[X.indices[cells]]
    return filled
