# SPDX-License-Identifier: BSD-3-Clause
"""The rows that a page draws, and where (tests/test_page.py)."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdsk._explain.places import in_plane

# Of more rows a sample is drawn: a page of them takes half a megabyte.
MOST_ROWS = 3000

# Radius of the disc in which the points of a corner are spread, of the unit circle or
# of the distance of two corners; and how near they must be to be moved.
_DISC, _DISC_OF_DISTANCE, _NEAR = 0.2, 0.42, 0.5
_GOLDEN_ANGLE = math.pi * (3.0 - math.sqrt(5.0))


def drawn_rows(named, n_rows):
    """Rows to draw, in order: all, or the named ones and others at random."""
    if n_rows <= MOST_ROWS:
        return np.arange(n_rows)
    # the same rows every time
    others = np.random.default_rng(0).choice(n_rows, MOST_ROWS, replace=False)
    return np.sort(list(dict.fromkeys([*named, *others.tolist()]))[:MOST_ROWS])


@dataclass(frozen=True)
class Drawing:
    """Rows of a fit, by cluster and from the most typical to the least.

    Arrays have an entry for each of ``rows``, but ``embedding`` and ``clusters``, which
    are those of all rows of the fit: places in the plane depend on them.
    """

    rows: NDArray[np.intp]
    names: list[str] | None
    values: list[list[Any]] | list[None]
    labels: NDArray[np.int64]
    weights: NDArray[np.float64]
    margins: NDArray[np.float64]
    typicality: NDArray[np.float64]
    clusters: NDArray[np.int64]
    embedding: NDArray[np.float64]

    @classmethod
    def of(cls, model, table, rows, columns):
        """Some rows of a fitted model, with some columns of a ``Table``."""
        lead = (model.margins_ * model.typicality_)[rows]
        rows = rows[np.lexsort((-lead, model.clusters_[rows]))]
        return cls(
            rows=rows,
            names=table.names(rows),
            values=table.values(rows, columns),
            labels=model.labels_[rows],
            weights=model.weights_[rows],
            margins=model.margins_[rows],
            typicality=model.typicality_[rows],
            clusters=model.clusters_,
            embedding=model.embedding_,
        )

    def places(self):
        """The ``Places`` of the rows, those that would hide each other spread out.

        Points of a cluster that is well separated are all at its corner. They become a
        disc around it, the most typical ones inside.
        """
        places = in_plane(self.embedding, self.clusters)
        clusters = self.clusters[self.rows]
        points = np.array(places.points[self.rows])
        sizes = np.bincount(clusters, minlength=len(places.corners))
        spacing = 2.0 * math.sin(math.pi / max(len(sizes), 2))
        radius = min(_DISC, _DISC_OF_DISTANCE * spacing)
        for y in np.flatnonzero(sizes):
            members = np.flatnonzero(clusters == y)
            rank = np.arange(len(members))
            share = np.sqrt((rank + 0.5) / len(members))
            disc = radius * math.sqrt(len(members) / sizes.max()) * share
            angle = rank * _GOLDEN_ANGLE
            distance = np.linalg.norm(points[members] - places.corners[y], axis=1)
            near = np.maximum(1.0 - distance / _NEAR, 0.0)
            step = np.column_stack([np.cos(angle), np.sin(angle)])
            points[members] += (near * disc)[:, np.newaxis] * step
        return type(places)(points, places.corners, places.outline)
