# SPDX-License-Identifier: BSD-3-Clause
"""Map of the page: positions and statistics of rows for map.js (tests/test_html.py).

Every array is rounded to integers and written in base64: about 12 bytes per row without
names, in the order of the rows.
"""

import base64
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdsk._cdsk import CDSK
from cdsk._map import compute_map

# If there are more rows, a sample of them is drawn.
MAX_MAP_ROWS = 100_000

# Only the largest clusters are labeled if there are more.
MAX_MAP_LABELS = 40

# The larger extent of a map is from minus to plus this, the largest 16-bit integer.
_HALF_EXTENT = 2**15 - 1

# The page shows hundredths of statistics. None of these is below -1, and typicality has
# no upper limit.
_MISSING, _MAX_HUNDREDTHS = -101, 2**15 - 1


@dataclass(frozen=True)
class RowMap:
    """The map of a fitted model, computed when a page first shows it.

    ``names`` and ``leaves`` are those of all rows, or None.
    """

    model: CDSK
    names: list[str | None] | None
    leaves: NDArray[np.int64] | None = None

    @cached_property
    def rows(self):
        """Sorted rows to draw: all, or a random sample."""
        n_rows = len(self.model.label_numbers_)
        if n_rows <= MAX_MAP_ROWS:
            return np.arange(n_rows)
        # seeded, so that a page is reproducible
        rng = np.random.default_rng(0)
        return np.sort(rng.choice(n_rows, MAX_MAP_ROWS, replace=False))

    @cached_property
    def positions(self):
        """Positions of the rows to draw (n, 2)."""
        return compute_map(self.model)[self.rows]

    def encode(self) -> dict[str, Any]:
        """Return what map.js draws, as JSON types."""
        model, rows = self.model, self.rows
        clusters, labels = model.clusters_[rows], model.label_numbers_[rows]
        x, y = quantize_positions(self.positions).T
        is_sample = len(rows) < len(model.label_numbers_)
        return {
            "x": encode_integers(x),
            "y": encode_integers(y),
            # the complement marks noise
            "clusters": encode_integers(np.where(labels < 0, ~clusters, clusters)),
            "margins": encode_hundredths(model.margins_[rows]),
            "probabilities": encode_hundredths(model.probabilities_[rows]),
            "typicality": encode_hundredths(model.typicality_[rows]),
            "rows": encode_integers(rows) if is_sample else None,
            "names": None if self.names is None else [self.names[i] for i in rows],
            "leaves": None
            if self.leaves is None
            else encode_integers(self.leaves[rows]),
            "centers": find_centers(self.positions, labels),
        }


def quantize_positions(positions):
    """Return positions as 16-bit integers, both axes in the same unit."""
    low, high = positions.min(axis=0), positions.max(axis=0)
    half_extent = 0.5 * np.max(high - low) or 1.0
    scaled = (positions - 0.5 * (low + high)) * (_HALF_EXTENT / half_extent)
    return np.rint(scaled).astype(np.int16)


def encode_hundredths(values):
    """Return finite values in base64 by ``encode_integers``, others as missing."""
    hundredths = np.minimum(np.rint(100.0 * values), _MAX_HUNDREDTHS)
    missing = ~np.isfinite(values)
    return encode_integers(np.where(missing, _MISSING, hundredths).astype(np.int64))


def encode_integers(values):
    """Return the bytes per integer, as few as possible, and the base64 of integers."""
    for n_bytes in (1, 2, 4):
        narrow = values.astype(f"<i{n_bytes}")
        if np.array_equal(narrow, values):
            return [n_bytes, base64.b64encode(narrow.tobytes()).decode()]
    raise OverflowError(f"Expected 32-bit integers; got {values.max()}.")


def find_centers(positions, labels):
    """Return pairs of a cluster and the index of its member nearest to its median.

    These are the largest clusters, if there are more.
    """
    sizes = np.bincount(labels[labels >= 0])
    largest = np.argsort(-sizes, kind="stable")[:MAX_MAP_LABELS]
    centers = []
    for cluster in largest[sizes[largest] > 0].tolist():
        members = np.flatnonzero(labels == cluster)
        offsets = positions[members] - np.median(positions[members], axis=0)
        nearest = members[np.argmin(np.square(offsets).sum(axis=1))]
        centers.append([cluster, int(nearest)])
    return centers
