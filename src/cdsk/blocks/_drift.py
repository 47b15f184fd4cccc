# SPDX-License-Identifier: BSD-3-Clause
"""Whether new rows resemble those of a fit (tests/test_update.py).

The typicality of a row is the scale of its nearest landmark over its own one, the
distance to its 6th nearest landmark: a row far from all landmarks has a small one. It
is low if at most 5 % of the rows of the fit have one as low. The shares of such rows
are compared for every cluster. Of rows of the fit it is the 7th landmark: they have one
that is near because it was made of them. With the 6th, updates by rows of the same kind
gave false alarms where a landmark has few rows (docs/notes/2026-11-19-sizes.md).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from cdsk._utils import warn

# Share of the rows of the fit whose typicality is low.
LOW_SHARE = 0.05

# A share of new rows is larger than that of the fit if it exceeds it by this factor
# with all but this probability, in all clusters together.
_FACTOR, _RISK = 2.0, 1e-3


@dataclass(frozen=True)
class Drift:
    """Rows of low typicality, of the fit and of an update.

    Clusters are those after the update; a row counts for the one of its nearest
    landmark.

    Attributes
    ----------
    n_fit, n_new : ndarray of shape (n_clusters,)
        Number of rows of the fit, and of the update.
    low_fit, low_new : ndarray of shape (n_clusters,)
        Number of those of low typicality.
    """

    n_fit: NDArray[np.int64]
    n_new: NDArray[np.int64]
    low_fit: NDArray[np.int64]
    low_new: NDArray[np.int64]

    @classmethod
    def compare(cls, fitted, new, labels, n_clusters):
        """Return the drift of rows by their classes, as in ``Gram``.

        ``labels`` are those of the landmarks.
        """
        fitted, new = fitted[1], new[0]
        # from the largest distances
        cumulative = np.cumsum(fitted.sum(axis=0)[::-1])
        n_low = np.searchsorted(cumulative, LOW_SHARE * cumulative[-1], side="right")
        first = fitted.shape[1] - int(n_low)

        def count(classes):
            rows = classes.sum(axis=1)
            return np.bincount(labels, rows, n_clusters).astype(np.int64)

        return cls(
            n_fit=count(fitted),
            n_new=count(new),
            low_fit=count(fitted[:, first:]),
            low_new=count(new[:, first:]),
        )

    @property
    def share_fit(self) -> NDArray[np.float64]:
        """Shares of the rows of the fit with low typicality, 0 without rows."""
        return self.low_fit / np.maximum(self.n_fit, 1)

    @property
    def share_new(self) -> NDArray[np.float64]:
        """Shares of the new rows with low typicality, 0 without rows."""
        return self.low_new / np.maximum(self.n_new, 1)

    @property
    def has_drifted(self) -> NDArray[np.bool_]:
        """Whether the share of new rows is much larger (n_clusters,).

        Its lower confidence limit (Clopper-Pearson) is above twice the share of the
        rows of the fit, or of all clusters if that is larger.
        """
        n_high, risk = self.n_new - self.low_new, _RISK / len(self.n_new)
        limit = beta.ppf(risk, np.maximum(self.low_new, 1), n_high + 1)
        limit = np.where(self.low_new > 0, limit, 0.0)
        return np.asarray(limit > _FACTOR * np.maximum(self.share_fit, LOW_SHARE))

    def to_dict(self):
        """Return plain data: one dictionary per cluster."""
        names = ("n_fit", "n_new", "low_fit", "low_new", "has_drifted")
        values = {name: getattr(self, name).tolist() for name in names}
        return [
            {"cluster": y} | {name: values[name][y] for name in names}
            for y in range(len(self.n_fit))
        ]

    def warn(self):
        """Warn of the clusters that have drifted."""
        if self.has_drifted.any():
            parts = [
                f"{self.share_new[y]:.0%} of {self.n_new[y]} new rows in cluster {y}"
                for y in np.flatnonzero(self.has_drifted)
            ]
            warn(
                "New rows are far from the landmarks: "
                f"{', '.join(parts)} have a typicality that {LOW_SHARE:.0%} of the "
                "rows of the fit have. Fit old and new rows again, so that landmarks "
                "represent them.",
                UserWarning,
            )
