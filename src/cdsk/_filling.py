# SPDX-License-Identifier: BSD-3-Clause
"""Missing cells of a table of numbers, filled from the nearest rows.

Every feature is standardized. A missing cell becomes the mean of those of the 10
nearest rows that have one, and 0, the mean, if none has. The distance of two rows is
that of the cells that both have, scaled to all cells, as in scikit-learn's
``KNNImputer``. The rows to choose from are at most 2000 of the fit, so that many rows
take linear time. Rows of the fit and new ones are filled in the same way.
docs/notes/2026-11-19-tables.md compares it with imputers of scikit-learn.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from cdsk._operators.base import Array
from cdsk._products import inner

N_NEIGHBORS, MAX_ROWS = 10, 2000

# Numbers of a chunk: distances to the rows, or cells of neighbors. 64 MB.
_CHUNK_NUMBERS = 2**23


@dataclass(frozen=True)
class Filling:
    """Rows of the fit, by which others are filled.

    Attributes
    ----------
    rows : ndarray of shape (n_rows, n_features)
        Standardized rows, NaN for missing cells.
    """

    rows: Array

    @classmethod
    def fit(cls, Z: Array) -> Self:
        """Keep standardized rows to fill others from."""
        if len(Z) <= MAX_ROWS:
            return cls(Z)
        kept = np.random.RandomState(0).choice(len(Z), MAX_ROWS, replace=False)
        return cls(Z[np.sort(kept)])

    def fill(self, Z: Array, n_threads: int = 1) -> Array:
        """Return standardized rows, old or new, without missing cells."""
        filled = np.nan_to_num(Z)
        holed = np.flatnonzero(np.isnan(Z).any(axis=1))
        # a row is its own nearest one, and has nothing to say about its missing cells
        k = min(N_NEIGHBORS + 1, len(self.rows))
        step = max(1, _CHUNK_NUMBERS // max(len(self.rows), k * Z.shape[1]))
        for part in (holed[i : i + step] for i in range(0, len(holed), step)):
            squares = self._squared_distances(Z[part], n_threads)
            nearest = np.argpartition(squares, k - 1, axis=1)[:, :k]
            cells = self.rows[nearest]  # (rows, neighbors, features)
            count = (~np.isnan(cells)).sum(axis=1)
            mean = np.nan_to_num(cells).sum(axis=1) / np.maximum(count, 1)
            filled[part] = np.where(np.isnan(Z[part]), mean, filled[part])
        return filled

    def _squared_distances(self, Z: Array, n_threads: int) -> Array:
        """Return the mean squared difference of the cells that two rows both have."""
        known, other_known = (~np.isnan(A) * 1.0 for A in (Z, self.rows))
        values, other_values = np.nan_to_num(Z), np.nan_to_num(self.rows)
        # not by BLAS, whose rounding depends on the number of rows
        terms = np.hstack([values**2, -2.0 * values, known])
        other_terms = np.hstack([other_known, other_values, other_values**2])
        squares = inner(terms, other_terms, n_threads)
        count = inner(known, other_known, n_threads)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(count > 0, np.maximum(squares, 0.0) / count, np.inf)
