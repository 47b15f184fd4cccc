# SPDX-License-Identifier: BSD-3-Clause
"""Whether clusters are those of missing cells.

Rows that miss the same cells may be alike for that reason alone. The association of a
cluster label and of whether a cell is missing is Cramér's V, corrected for its bias
(Bergsma, A bias-correction for Cramér's V and Tschuprow's T, 2013): 0 if both are
independent, 1 if one tells the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cdsk._coding import has_missing
from cdsk._operators.base import Array
from cdsk._utils import warn
from cdsk._validation import MAX_LISTED

# Association from which clusters are called those of missing cells, if a column misses
# so large a part of its cells.
_MIN_ASSOCIATION, _MIN_PART = 0.5, 0.05


@dataclass(frozen=True)
class MissingCells:
    """Missing cells of the columns of a fit.

    Attributes
    ----------
    names : tuple of str
        The columns.
    count : ndarray of shape (n_columns,)
        Missing cells of each.
    association : ndarray of shape (n_columns,)
        Cramér's V of the labels and of whether the cell is missing, from 0 to 1.
    n_rows : int
        Number of rows.
    """

    names: tuple[str, ...]
    count: NDArray[np.int64]
    association: Array
    n_rows: int

    @classmethod
    def find(
        cls, X: Any, names: Sequence[str], labels: NDArray[np.int64]
    ) -> Self | None:
        """Return the missing cells of encoded rows, None if there are none."""
        return cls.from_counts(*count_missing(X, labels), names)

    @classmethod
    def from_counts(
        cls, count: NDArray[np.int64], sizes: NDArray[np.int64], names: Sequence[str]
    ) -> Self | None:
        """Return them by the counts of ``count_missing``, None if there are none."""
        if not count.any():
            return None
        columns = count.sum(axis=0)
        # noise, the first line, is no cluster
        associations = [_association(column[1:], sizes[1:]) for column in count.T]
        names = tuple(names) or tuple(map(str, range(len(columns))))
        return cls(names, columns, np.array(associations), int(sizes.sum()))

    @property
    def suspects(self) -> list[int]:
        """Columns whose missing cells the clusters may be those of."""
        is_often = self.count >= _MIN_PART * self.n_rows
        found = is_often & (self.association >= _MIN_ASSOCIATION)
        order = np.argsort(-self.association, kind="stable")
        return [int(j) for j in order if found[j]]

    def explain(self) -> str | None:
        """Return a warning, if clusters may be those of missing cells."""
        if not self.suspects:
            return None
        j = self.suspects[0]
        return (
            f"The clusters go with the missing cells of column {self.names[j]!r} "
            f"(Cramér's V {self.association[j]:.2f}, {self.count[j]:,} of "
            f"{self.n_rows:,} cells are missing): they may tell who did not answer, "
            "not who is alike. Compare with a fit without this column."
        )

    def warn(self) -> None:
        """Warn if clusters may be those of missing cells, and of empty columns."""
        empty = np.flatnonzero(self.count == self.n_rows)
        if len(empty):
            listed = ", ".join(repr(self.names[j]) for j in empty[:MAX_LISTED])
            more = ", ..." if len(empty) > MAX_LISTED else ""
            warn(
                f"X has no values in column{'' if len(empty) == 1 else 's'} {listed}"
                f"{more}: no cluster depends on {'it' if len(empty) == 1 else 'them'}.",
                UserWarning,
            )
        if text := self.explain():
            warn(text, UserWarning)


def count_missing(
    X: Any, labels: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the missing cells of every cluster and column, and the clusters' sizes.

    The first line is that of noise, label -1.
    """
    rows, sizes = labels + 1, np.bincount(labels + 1)
    count = np.zeros((len(sizes), X.shape[1]), dtype=np.int64)
    if sparse.issparse(X):
        cells = X.tocoo()
        is_nan = np.isnan(cells.data)
        np.add.at(count, (rows[cells.row[is_nan]], cells.col[is_nan]), 1)
    elif has_missing(X):
        cells = np.nonzero(np.isnan(X))
        np.add.at(count, (rows[cells[0]], cells[1]), 1)
    return count, sizes


def _association(count: NDArray[np.int64], sizes: NDArray[np.int64]) -> float:
    """Return Cramér's V of clusters and missing cells, corrected for its bias."""
    count, sizes = count[sizes > 0], sizes[sizes > 0]
    n, c, n_missing = int(sizes.sum()), len(sizes), count.sum()
    if c < 2 or n < 2 or n_missing in (0, n):
        return 0.0
    table = np.stack([sizes - count, count])
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / n
    phi = np.sum((table - expected) ** 2 / expected) / n
    phi = max(0.0, phi - (c - 1) / (n - 1))
    ranks = min(c - (c - 1) ** 2 / (n - 1), 2 - 1 / (n - 1))
    return float(min(1.0, np.sqrt(phi / (ranks - 1)))) if ranks > 1 else 0.0
