# SPDX-License-Identifier: BSD-3-Clause
"""Rows plotted on the page, and their positions (tests/test_html.py)."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdsk.report._layout import Layout, compute_layout
from cdsk.report._summary import sort_rows

# If there are more rows, a sample is plotted: a page of 3000 has half a megabyte.
MAX_ROWS = 3000

# Points of a cluster are spread over a disk. Its radius, at most this fraction of the
# distance between adjacent corners, and the distance from the corner up to which points
# are moved.
_MAX_RADIUS, _MAX_RADIUS_PER_SPACING, _MAX_DISTANCE = 0.2, 0.42, 0.5
_GOLDEN_ANGLE = math.pi * (3.0 - math.sqrt(5.0))


def sample_rows(required, n_rows):
    """Return sorted rows to plot: all, or the required ones and a random sample."""
    if n_rows <= MAX_ROWS:
        return np.arange(n_rows)
    # seeded, so that a report is reproducible
    sample = np.random.default_rng(0).choice(n_rows, MAX_ROWS, replace=False)
    return np.sort(list(dict.fromkeys([*required, *sample.tolist()]))[:MAX_ROWS])


@dataclass(frozen=True)
class PlottedRows:
    """Rows of a fit, by cluster and from the most typical to the least.

    Arrays have one entry per plotted row, except ``all_clusters`` and ``embedding``,
    which have one per row of the fit: the layout depends on all of them.
    """

    rows: NDArray[np.intp]
    names: list[str] | None
    values: list[list[Any]] | list[None]
    labels: NDArray[np.int64]
    weights: NDArray[np.float64]
    margins: NDArray[np.float64]
    typicality: NDArray[np.float64]
    all_clusters: NDArray[np.int64]
    embedding: NDArray[np.float64]

    @classmethod
    def from_model(cls, model, table, rows, columns):
        """Take rows of a fitted model, with columns of a ``FeatureTable``."""
        rows = sort_rows(model, rows)
        return cls(
            rows=rows,
            names=table.get_row_names(rows),
            values=table.get_values(rows, columns),
            labels=model.label_numbers_[rows],
            weights=model.weights_[rows],
            margins=model.margins_[rows],
            typicality=model.typicality_[rows],
            all_clusters=model.clusters_,
            embedding=model.embedding_,
        )

    @property
    def clusters(self):
        """Cluster of each plotted row."""
        return self.all_clusters[self.rows]

    def compute_layout(self):
        """Return the ``Layout`` of the plotted rows, without overlapping points.

        All points of a well separated cluster are at its corner. They are spread over a
        disk around it, the most typical ones in the center.
        """
        layout = compute_layout(self.embedding, self.all_clusters)
        clusters, corners = self.clusters, layout.corners
        points = np.array(layout.points[self.rows])
        sizes = np.bincount(clusters, minlength=len(corners))
        spacing = 2.0 * math.sin(math.pi / max(len(sizes), 2))
        max_radius = min(_MAX_RADIUS, _MAX_RADIUS_PER_SPACING * spacing)
        for y in np.flatnonzero(sizes):
            members = np.flatnonzero(clusters == y)
            # sunflower pattern
            index = np.arange(len(members))
            fraction = np.sqrt((index + 0.5) / len(members))
            radius = max_radius * math.sqrt(len(members) / sizes.max()) * fraction
            angle = index * _GOLDEN_ANGLE
            distance = np.linalg.norm(points[members] - corners[y], axis=1)
            closeness = np.maximum(1.0 - distance / _MAX_DISTANCE, 0.0)
            step = np.column_stack([np.cos(angle), np.sin(angle)])
            points[members] += (closeness * radius)[:, np.newaxis] * step
        return Layout(points=points, corners=corners, outline=layout.outline)
