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
        if not has_missing(X):
            return None
        counts, associations = [], []
        for j in range(X.shape[1]):
            x = X[:, [j]].toarray().ravel() if sparse.issparse(X) else X[:, j]
            is_missing = np.isnan(x)
            counts.append(np.count_nonzero(is_missing))
            associations.append(_association(is_missing, labels))
        names = tuple(names) or tuple(map(str, range(X.shape[1])))
        return cls(names, np.array(counts), np.array(associations), X.shape[0])

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
        """Warn if clusters may be those of missing cells."""
        if text := self.explain():
            warn(text, UserWarning)


def _association(is_missing: NDArray[np.bool_], labels: NDArray[np.int64]) -> float:
    """Return Cramér's V of two partitions, corrected for its bias, without noise."""
    kept = labels >= 0
    is_missing, labels = (
        is_missing[kept],
        np.unique(labels[kept], return_inverse=True)[1],
    )
    n, c = len(labels), int(labels.max(initial=0)) + 1
    if c < 2 or n < 2 or is_missing.all() or not is_missing.any():
        return 0.0
    table = np.stack(
        [np.bincount(labels[is_missing == v], minlength=c) for v in (0, 1)]
    )
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / n
    phi = np.sum((table - expected) ** 2 / expected) / n
    phi = max(0.0, phi - (c - 1) / (n - 1))
    ranks = min(c - (c - 1) ** 2 / (n - 1), 2 - 1 / (n - 1))
    return float(min(1.0, np.sqrt(phi / (ranks - 1)))) if ranks > 1 else 0.0
