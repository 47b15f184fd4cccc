# SPDX-License-Identifier: BSD-3-Clause
"""Selection of a representation, and when a layout may replace it, without labels.

Tested in tests/test_representation.py.

*Representation.* At several scales the points are clustered with uniform weights, and a
view scores its *cohesive agreement*, the mean over pairs of scales of
(h_i h_j)^1/2 ARI_ij with the cohesion h. The first view is taken unless another one has
``MIN_GAIN`` times its score. A view with one feature of large spread is nearly
one-dimensional, and so are few components: all scales agree there, so ``_views`` leaves
these out. docs/notes/2026-11-17-views.md and 2026-11-18-voters.md have alternatives.

*Layout.* With many points, layouts of the neighbor graph of that view compete with it.
A layout tears continuous data into pieces, which are as cohesive there as clusters and
the same at all scales, but others with another seed. So the partitions of two layouts
vote together. The layout of the winner is taken if the *support* of the winner, its
share of the votes times its balance, is ``MIN_LAYOUT_GAIN`` times that of the winner
in the view. docs/notes/2026-11-18-layout-view.md has the alternatives.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from cdsk._candidates import (
    FACTORS,
    MANY_FEATURES,
    default_n_neighbors,
    find_neighbors,
    has_categories,
    wide_candidates,
)
from cdsk._coding import CODINGS
from cdsk._eigensolvers import ROUGH
from cdsk._nearest import order_points
from cdsk._neighbors import Neighbors
from cdsk._operators.base import Array
from cdsk._operators.sparse import NeighborGraph
from cdsk._partition_choice import balanced_agreement, cohesive_agreement
from cdsk._preprocessing import Points, Representation, weighted_moments
from cdsk._settings import FitContext
from cdsk._spectral import Labels, spectral_partition
from cdsk._validation import check_extent

# Representation: with MANY_FEATURES whitening is tried with these numbers of components
# if they are at least c - 1, which c centers span, and less than this part of the rank
# bound min(n, d); if all are too small, with c - 1.
COMPONENTS = (10, 20, 50, 100, 200)
_MAX_RANK_PART = 0.7

# With fewer features they are standardized if the ratio of the largest to the smallest
# standard deviation exceeds the first number. Up to the second they may share a unit,
# and clusters far apart along one feature cause the ratio: then "raw" competes. Normal
# scores are tried from so many features on.
UNEQUAL_SPREAD, DIFFERENT_UNITS = 2.0, 100.0
MIN_FEATURES_FOR_SCORES = 4

# Ratio of scores that replaces the first view. Components that few dimensions hold are
# more cohesive than the data, whatever they are: up to 1.3 times for embeddings.
MIN_GAIN = 1.4

# The same for the codings of tables with categories.
MIN_CODING_GAIN = 1.5

# Ratio of supports that replaces a view by a layout.
MIN_LAYOUT_GAIN = 1.5

# Scales and numbers of points with which views are compared: those of a fit but the
# narrowest, or three if there are few features. A sample of a large set may mislead, so
# the best view of a sample is compared again on up to 20 000 points.
_SCALES, _SCALES_FEW_FEATURES = FACTORS[:5], FACTORS[1:4]
_SAMPLE, _SAMPLE_MANY_FEATURES, LARGE_SAMPLE = 800, 2000, 20_000
_N_INIT, MIN_PER_CLUSTER = 3, 5

# A layout is tried from so many points on, in all and per cluster: with fewer, it tears
# clusters apart.
_MIN_LAYOUT_POINTS, _MIN_LAYOUT_POINTS_PER_CLUSTER = 2000, 100


def select_representation(
    points: Points, representation: str, n_clusters: int, context: FitContext
) -> Representation:
    """Fit the representation that is asked for, or the best one for "auto"."""
    X, m, n_threads = points.X, points.relative_multiplicity, context.n_threads
    fit = partial(Representation.fit, X, multiplicity=m, n_threads=n_threads)
    if representation != "auto" or sparse.issparse(X):
        return fit(representation, n_components=context.settings.n_components)
    check_extent(X)
    spread = weighted_moments(X, m)[1]
    views = _views(spread, n_clusters)
    scores: dict[str, float] = {}
    best = views[0]
    # fewer points per cluster have no scale, and one cluster has no views
    if len(views) > 1 and 1 < n_clusters <= len(X) // MIN_PER_CLUSTER:
        d = int(np.count_nonzero(spread))
        comparison = _ViewComparison(X, m, d, n_clusters, n_threads)
        best, scores = comparison.compare(views, context.rng)
    return replace(fit(best), scores=scores)


def select_coding(
    points: Points, n_clusters: int, context: FitContext
) -> tuple[Points, Representation]:
    """Code the points of a table with categories as asked, or in the best way.

    A coding scores the balanced agreement of the partitions by its wide kernels, all
    weights equal, on at most 800 points.
    """
    settings, m, scores = context.settings, points.relative_multiplicity, {}
    names = CODINGS if settings.representation == "auto" else (settings.representation,)
    if not has_categories(context):
        names = names[-1:]
    assert context.n_categories is not None
    coded = {
        name: points.coded(name, context.n_categories, context.n_threads)
        for name in names
    }
    best = names[0]
    if len(names) > 1 and 1 < n_clusters <= len(points) // MIN_PER_CLUSTER:
        seed, rows = context.rng.randint(2**31 - 1), np.arange(len(points))
        if len(points) > _SAMPLE:
            rows = np.random.RandomState(seed).choice(len(rows), _SAMPLE, replace=False)
        part = None if m is None else m[rows]
        for name, (those, _) in coded.items():
            rng, partitions = np.random.RandomState(seed), []
            for candidate in wide_candidates(those.X[rows], context, part):
                kernel = candidate.kernel()
                partitions.append(
                    spectral_partition(kernel, n_clusters, rng, tol=ROUGH)[1]
                )
            scores[name] = balanced_agreement(partitions, n_clusters, part)
        best = _best_view(scores, best, MIN_CODING_GAIN)
    points, coding = coded[best]
    representation = Representation.from_coding(coding, points.X, m)
    return points, replace(representation, scores=scores)


def _best_view(scores: dict[str, float], first: str, min_gain: float = MIN_GAIN) -> str:
    """Return the view of the largest score if its gain suffices, else the first."""
    best = max(scores, key=scores.__getitem__)
    return best if scores[best] > min_gain * scores[first] else first


def views_by_units(spread: Array) -> list[str]:
    """Return the views for few features of these standard deviations, default first.

    Standardizing a feature along which clusters are far apart moves them together;
    not standardizing one in a smaller unit makes the data one-dimensional.
    """
    spread = spread[spread > 0]
    ratio = spread.max() / spread.min() if len(spread) else 1.0
    if ratio <= UNEQUAL_SPREAD:
        return ["raw"]
    return ["standardize", "raw"] if ratio <= DIFFERENT_UNITS else ["standardize"]


def _views(spread: Array, n_clusters: int) -> list[str]:
    """Return the names of the views to compare, the default first."""
    d = np.count_nonzero(spread)
    if d >= MANY_FEATURES:
        components = [m for m in COMPONENTS if m >= n_clusters - 1] or [n_clusters - 1]
        return ["raw", "standardize", *(f"whiten {m}" for m in components)]
    first, *others = views_by_units(spread)
    scores = ["normal_scores"] if d >= MIN_FEATURES_FOR_SCORES else []
    return [first, *scores, *others]


@dataclass(frozen=True)
class _ViewComparison:
    """Views of points X of which some features vary, compared by their partitions."""

    X: Array
    multiplicity: Array | None
    n_features: int
    n_clusters: int
    n_threads: int

    def compare(
        self, views: list[str], rng: np.random.RandomState
    ) -> tuple[str, dict[str, float]]:
        """Return the best view and the score of each; the first is the default."""
        first, n = views[0], len(self.X)
        size = _SAMPLE_MANY_FEATURES if self.n_features >= MANY_FEATURES else _SAMPLE
        scores = self._score_views(views, size, rng.randint(2**31 - 1))
        confirmed = {first} if n > size else set(views)
        while (best := _best_view(scores, first)) not in confirmed:
            seed = rng.randint(2**31 - 1)
            scores |= self._score_views([first, best], LARGE_SAMPLE, seed)
            confirmed.add(best)
        return best, scores

    def _score_views(self, views: list[str], size: int, seed: int) -> dict[str, float]:
        """Return the scores of views on at most ``size`` points.

        Impossible whitenings are left out.
        """
        X, m = self.X, self.multiplicity
        if len(X) > size:
            rows = np.random.RandomState(seed).choice(len(X), size, replace=False)
            X, m = X[rows], None if m is None else m[rows]
        fit = partial(Representation.fit, X, multiplicity=m, n_threads=self.n_threads)
        whitened = [view for view in views if view.startswith("whiten")]
        transformed = {
            view: fit(view).transform_validated(X, self.n_threads)
            for view in views
            if view not in whitened
        }
        components = [int(view.split()[1]) for view in whitened]
        components = [c for c in components if c < _MAX_RANK_PART * min(X.shape)]
        if components:
            largest = fit("whiten", n_components=max(components))
            Z = largest.transform_validated(X, self.n_threads)
            # components are sorted, so the first c of them are the whitening to c
            rank = largest.n_components or 0
            transformed |= {f"whiten {c}": Z[:, :c] for c in components if c <= rank}
        # k-means depends on the order: take one that does not depend on the unit
        order = np.empty(len(X), dtype=np.int32)
        order_points(np.ascontiguousarray(transformed[views[0]]), order)
        m = None if m is None else m[order]
        return {view: self._score(Z[order], m, seed) for view, Z in transformed.items()}

    def _score(self, X: Array, multiplicity: Array | None, seed: int) -> float:
        """Return the cohesive agreement of the partitions of X over the scales."""
        k = default_n_neighbors(len(self.X), self.n_features, self.n_clusters)
        graph = make_graph(X, k, multiplicity, self.n_threads)
        has_many = self.n_features >= MANY_FEATURES
        scales = _SCALES if has_many else _SCALES_FEW_FEATURES
        partitions = partition_at_scales(
            graph, self.n_clusters, scales, seed, self.n_threads
        )
        neighborhood = graph.kernel(np.inf, self.n_threads)
        return cohesive_agreement(
            partitions, self.n_clusters, neighborhood, multiplicity
        )


def make_graph(
    X: Any, k: int, multiplicity: Array | None, n_threads: int
) -> NeighborGraph:
    """Return the graph of the k nearest neighbors of points X."""
    X = X if sparse.issparse(X) else np.ascontiguousarray(X)
    neighbors = Neighbors(X, k, robust=True, n_threads=n_threads)
    return NeighborGraph(neighbors, multiplicity)


def partition_at_scales(
    graph: NeighborGraph,
    n_clusters: int,
    scales: Sequence[float],
    seed: int,
    n_threads: int,
) -> list[Labels]:
    """Return the partitions of a graph, all weights equal, one per scale."""
    rng, start, partitions = np.random.RandomState(seed), None, []
    for scale in scales:
        kernel = graph.kernel(scale * graph.neighbors.scales, n_threads)
        embedding, labels = spectral_partition(
            kernel, n_clusters, rng, n_init=_N_INIT, tol=ROUGH, start=start
        )
        start = embedding.solution
        partitions.append(labels)
    return partitions


def has_points_for_layout(n: int, base: Representation, n_clusters: int) -> bool:
    """Return whether n points of some features are enough to trust a layout."""
    enough = max(_MIN_LAYOUT_POINTS, _MIN_LAYOUT_POINTS_PER_CLUSTER * n_clusters)
    has_features = base.n_varying >= MIN_FEATURES_FOR_SCORES
    return n >= enough and has_features and n_clusters > 1


def fit_layout(
    points: Points, base: Representation, n_clusters: int, context: FitContext
) -> Representation:
    """Lay out the neighbor graph of the points in a view."""
    X = base.transform_validated(points.X, context.n_threads)
    graph = graph_of_view(X, base, n_clusters, points.relative_multiplicity, context)
    return lay_out(base, graph, context)


def graph_of_view(
    X: Array,
    base: Representation,
    n_clusters: int,
    multiplicity: Array | None,
    context: FitContext,
) -> NeighborGraph:
    """Return the neighbor graph of points whose coordinates in a view are X."""
    default = default_n_neighbors(X.shape[0], base.n_varying, n_clusters)
    k = context.settings.n_neighbors or default
    X = X if sparse.issparse(X) else np.ascontiguousarray(X)
    neighbors = find_neighbors(X, k, context, robust=True)
    return NeighborGraph(neighbors, multiplicity)


def lay_out(
    base: Representation, graph: NeighborGraph, context: FitContext
) -> Representation:
    """Return the layout of a neighbor graph of a view."""
    settings = context.settings
    is_asked = settings.representation == "layout"
    return Representation.from_layout(
        base,
        graph,
        n_components=settings.n_components if is_asked else None,
        seed=context.rng.randint(2**31 - 1),
        n_threads=context.n_threads,
        callback=context.progress.update,
    )
