# SPDX-License-Identifier: BSD-3-Clause
"""Selection without labels: partition, representation, number of clusters, lam.

*Partition.* Every partition votes for every other by their adjusted Rand index, and its
vote has the weight of its balance or its cohesion:

    score_i = sum_j b_j max(ARI(i, j), 0)^4 / sum_j b_j
    b_j = max(balance_j, cohesion_j^12)
    balance_j = (exp(entropy of the sizes of j) - 1) / (c - 1)
    cohesion_j = (sum_y inside_y - 1) / (c - 1)

The partition with the highest score, the *medoid*, is selected. Real clusters are found
at many scales; a kernel that is too narrow or too wide finds something of its own. The
power makes an ARI of 0.9 two thirds of a vote and 0.5 a sixteenth. Partitions that cut
off a few outliers also agree, but for the wrong reason; the weight b handles them.
Balance is 1 for clusters of equal size and 0 if one holds all points. Small clusters
may be right: then most neighbors of their points are inside. inside_y is the share of
the neighbor pairs of cluster y that lie in it: the shares sum to 1 for random labels
and to c if no pair is cut. docs/notes/2026-11-17-defaults.md and 2026-11-18-small.md
have the measurements.

*Weights.* Several kernels have two votes each, by their learned and by their initial
weights. A single Gaussian kernel keeps its learned weights if their partition is at
least as good as that of the initial weights in three respects (``select_weights``): its
cohesion, its mean agreement max(ARI, 0) with ten partitions by spanning trees, and
whether it is one of these. docs/notes/2026-11-18-weights.md has the alternatives.

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

*Number of clusters.* Let l_1 >= l_2 >= ... be the eigenvalues of the normalized
similarity of a neighbor graph. With c clusters, 1 - l_c is about the cut between them
and 1 - l_{c+1} the smallest cut within one:

    score(c) = mean over scales of log (1 - l_{c+1} + e) / (1 - l_c + e),

where e is a negligible cut. The number with the largest score is suggested. Agreement
between scales is reported but not used: no rule with it was better on held-out sets
(docs/results/count.md). If the spreads of few features differ, clusters are counted in
the raw and in the standardized data, and the larger best score decides. Those of many
features are counted in a layout.

*lam.* One fit of a sample per value of a grid; smaller criteria are better, and ties go
to the smaller lam:

=============  =======================================================================
"entropy"      mean entropy of softmax(row / 0.1) of unit rows of the embedding, rotated
               to the axes
"paper"        mean entropy of softmax(row) for the rows of Y with Y'DY = I, as printed
"cut"          mean of cut / volume of the clusters in the graph of K, without weights
"stability"    1 - ARI between the labels of one half of a sample and the votes of the
               clusters of the other half for it, mean over three samples
=============  =======================================================================
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import entr, softmax
from sklearn.metrics import adjusted_rand_score

from cdsk._candidates import (
    FACTORS,
    MANY_FEATURES,
    N_NEIGHBORS,
    check_fit_memory,
    default_n_neighbors,
)
from cdsk._eigensolvers import ROUGH
from cdsk._nearest import order_points
from cdsk._neighbors import SCALE_NEIGHBOR, Neighbors
from cdsk._operators.base import Array, Kernel, Similarity
from cdsk._operators.sparse import NeighborGraph, SparseKernel
from cdsk._preprocessing import Points, Representation, weighted_moments
from cdsk._settings import FitContext
from cdsk._spectral import (
    Embedding,
    assign_labels,
    cut_ratios,
    rotate_to_axes,
    spectral_partition,
    spectral_step,
)
from cdsk._utils import warn
from cdsk._validation import check_extent

Labels = NDArray[np.int64]

_TINY = np.finfo(float).tiny

# Largest label per point that is counted in an array of so many entries.
_MAX_LABELS_PER_POINT = 8

# Partition: powers of the adjusted Rand index and of the cohesion. A cut through a
# large cluster has a cohesion of 0.95 and more.
POWER, COHESION_POWER = 4, 12

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

# Ratio of supports that replaces a view by a layout.
MIN_LAYOUT_GAIN = 1.5

# Scales and numbers of points with which views are compared: those of a fit but the
# narrowest, or three if there are few features. A sample of a large set may mislead, so
# the best view of a sample is compared again on up to 20 000 points.
_SCALES, _SCALES_FEW_FEATURES = FACTORS[:5], FACTORS[1:4]
_SAMPLE, _SAMPLE_MANY_FEATURES, LARGE_SAMPLE = 800, 2000, 20_000
_N_INIT, _MIN_PER_CLUSTER = 3, 5

# A layout is tried from so many points on, in all and per cluster: with fewer, it tears
# clusters apart.
_MIN_LAYOUT_POINTS, _MIN_LAYOUT_POINTS_PER_CLUSTER = 2000, 100

# Number of clusters: bandwidths in units of the distance to the 7th neighbor, wider
# than those of a fit, as narrow kernels resolve clusters within clusters; the largest
# default candidate; and n times the negligible cut e, about two of the 20 n edges. In
# the plane cuts within a cluster decrease like 1 / n. Between 0.05 and 0.4 the number
# of hits changes by two in 47.
COUNT_FACTORS = (1.0, 2.0**-0.5, 0.5)
MAX_CLUSTERS, MAX_CLUSTERS_MANY_FEATURES = 19, 100
NEGLIGIBLE_CUT = 0.1

# lam: the paper's grid [0.05, 05] in steps of 0.05, with 05 read as 0.5; the smallest
# sample, in all and per cluster; the temperature of "entropy".
CRITERIA = ("entropy", "paper", "cut", "stability")
GRID = tuple(np.round(np.arange(1, 11) * 0.05, 2).tolist())
MIN_SAMPLE, MIN_SAMPLE_PER_CLUSTER = 100, 10
TEMPERATURE = 0.1
_STABILITY_SAMPLES = 3


@dataclass(frozen=True)
class Choice:
    """How one partition was selected among several.

    Attributes
    ----------
    names : tuple of str
        The candidates.
    scores : ndarray of shape (n_candidates,)
        Share of all votes for each candidate, its own included; the largest wins. In a
        layout they include the votes of the candidates in a second one.
    balance : ndarray of shape (n_candidates,)
        Effective number of clusters beyond the first over n_clusters - 1, from 0 to 1.
    cohesion : ndarray of shape (n_candidates,)
        How far neighbors share a cluster: 0 as by chance, 1 if all do. NaN if there is
        one candidate, or no neighbor graph.
    agreement : ndarray of shape (n_candidates, n_candidates)
        Adjusted Rand index of every two candidates.
    resolved : ndarray of bool, shape (n_candidates,)
        Whether the eigenvectors of a candidate converged. One that did not has no vote
        and cannot win, unless none did.
    chosen : int
        Index of the winner.
    """

    names: tuple[str, ...]
    scores: Array
    balance: Array
    cohesion: Array
    agreement: Array
    resolved: NDArray[np.bool_]
    chosen: int

    @property
    def support(self) -> float:
        """Share of the votes for the winner times its balance, at most 1."""
        return float(self.scores[self.chosen] * self.balance[self.chosen])

    def restricted(self, part: slice) -> "Choice":
        """Return the choice among some candidates, which include the winner."""
        return replace(
            self,
            names=self.names[part],
            scores=self.scores[part],
            balance=self.balance[part],
            cohesion=self.cohesion[part],
            agreement=self.agreement[part, part],
            resolved=self.resolved[part],
            chosen=self.chosen - part.start,
        )


def select_partition(
    names: Sequence[str],
    partitions: Sequence[Labels],
    n_clusters: int,
    neighborhood: Kernel | None = None,
    *,
    resolved: Sequence[bool] | None = None,
    multiplicity: Array | None = None,
) -> Choice:
    """Select one of several partitions into at most ``n_clusters`` clusters.

    ``neighborhood`` is a kernel that connects neighbors; None: not known.
    """
    is_resolved = np.array(resolved or [True] * len(partitions))
    eligible = is_resolved if is_resolved.any() else ~is_resolved
    balance = _balance(partitions, n_clusters, multiplicity)
    cohesion = np.full(len(partitions), np.nan)
    if neighborhood is not None:
        cohesion = _cohesion(partitions, n_clusters, neighborhood)
    agreement = _agreement(partitions, multiplicity)
    votes = np.maximum(agreement, 0.0) ** POWER
    vote_weights = np.fmax(balance, cohesion**COHESION_POWER) * eligible
    # the sum is 0 if all partitions have one cluster
    scores = votes @ vote_weights / max(vote_weights.sum(), _TINY)
    # the first of equal ones, up to rounding
    best = scores[eligible].max()
    chosen = int(np.flatnonzero(eligible & (scores >= best - 1e-12))[0])
    return Choice(
        tuple(names), scores, balance, cohesion, agreement, is_resolved, chosen
    )


@dataclass(frozen=True)
class WeightChoice:
    """Which weights of a single kernel were kept, the learned or the initial ones.

    Arrays have the value of the learned weights and that of the initial ones. The
    learned weights are kept if none of their values is smaller.

    Attributes
    ----------
    kept : str
        "learned" or "initial".
    cohesion : ndarray of shape (2,)
        How far neighbors share a cluster: 0 as by chance, 1 if all do.
    mean_agreement : ndarray of shape (2,)
        Mean adjusted Rand index with the partitions by spanning trees; negative ones
        count as 0.
    is_tree : ndarray of bool, shape (2,)
        Whether one of these partitions is the same.
    """

    kept: str
    cohesion: Array
    mean_agreement: Array
    is_tree: NDArray[np.bool_]


def select_weights(
    learned: Labels,
    initial: Labels,
    trees: Sequence[Labels],
    n_clusters: int,
    neighborhood: Kernel,
    multiplicity: Array | None = None,
) -> WeightChoice:
    """Select between the partitions by the learned and by the initial weights.

    Both are compared with the partitions by spanning ``trees``.
    """
    both = [learned, initial]
    cohesion = _cohesion(both, n_clusters, neighborhood)
    agreement = _agreement([*both, *trees], multiplicity)[:2, 2:]
    mean = np.maximum(agreement, 0.0).mean(axis=1)
    # up to rounding
    is_tree = agreement.max(axis=1) >= 1.0 - 1e-9
    not_worse = [a >= b - 1e-12 for a, b in (cohesion, mean, is_tree.astype(float))]
    kept = "learned" if all(not_worse) else "initial"
    return WeightChoice(kept, cohesion, mean, is_tree)


def cohesive_agreement(
    partitions: Sequence[Labels],
    n_clusters: int,
    neighborhood: Kernel,
    multiplicity: Array | None = None,
) -> float:
    """Return the mean over pairs of (h_i h_j)^1/2 ARI_ij, h the cohesion."""
    cohesion = np.sqrt(_cohesion(partitions, n_clusters, neighborhood))
    terms = np.outer(cohesion, cohesion) * _agreement(partitions, multiplicity)
    return float(np.mean(terms[np.triu_indices(len(partitions), 1)]))


def _agreement(partitions: Sequence[Labels], multiplicity: Array | None) -> Array:
    """Return the adjusted Rand index of every two partitions.

    scikit-learn's takes 3 ms for 200 points, mostly validation, and a fit has hundreds.
    """
    agreement = np.eye(len(partitions))
    if not partitions:
        return agreement
    within = [_count_pairs(labels, multiplicity) for labels in partitions]
    total = _count_pairs(np.zeros_like(partitions[0]), multiplicity)
    for j, i in combinations(range(len(partitions)), 2):
        a, b = partitions[i], partitions[j]
        together = _count_pairs(a * (b.max() + 1) + b, multiplicity)
        expected = within[i] * within[j] / max(total, _TINY)
        largest = 0.5 * (within[i] + within[j])
        if largest > expected:
            agreement[i, j] = (together - expected) / (largest - expected)
        else:
            agreement[i, j] = 1.0
        agreement[j, i] = agreement[i, j]
    return agreement


def _count_pairs(labels: Labels, multiplicity: Array | None) -> float:
    """Return the number of ordered pairs of points with the same label.

    A pair counts the product of multiplicities.
    """
    if labels.max() >= _MAX_LABELS_PER_POINT * len(labels):
        labels = np.unique(labels, return_inverse=True)[1]
    size = np.bincount(labels, multiplicity)
    squares = size if multiplicity is None else np.bincount(labels, multiplicity**2)
    return float(np.sum(size.astype(np.float64) ** 2 - squares))


def _balance(
    partitions: Sequence[Labels], n_clusters: int, multiplicity: Array | None
) -> Array:
    """Return the balance of every partition."""
    balance = np.ones(len(partitions))
    for i, labels in enumerate(partitions if n_clusters > 1 else ()):
        size = np.bincount(labels, multiplicity)
        share = size[size > 0] / np.sum(size)
        effective = np.exp(-np.sum(share * np.log(share)))
        balance[i] = max(effective - 1.0, 0.0) / (n_clusters - 1)
    return balance


def _cohesion(
    partitions: Sequence[Labels], n_clusters: int, neighborhood: Kernel
) -> Array:
    """Return the cohesion of every partition."""
    cohesion = np.ones(len(partitions))
    for i, labels in enumerate(partitions if n_clusters > 1 else ()):
        inside = np.sum(1.0 - cut_ratios(neighborhood, labels))
        cohesion[i] = max(inside - 1.0, 0.0) / (n_clusters - 1)
    return cohesion


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
    if len(views) > 1 and 1 < n_clusters <= len(X) // _MIN_PER_CLUSTER:
        d = int(np.count_nonzero(spread))
        comparison = _ViewComparison(X, m, d, n_clusters, n_threads)
        best, scores = comparison.compare(views, context.rng)
    return replace(fit(best), scores=scores)


def _best_view(scores: dict[str, float], first: str) -> str:
    """Return the view of the largest score if its gain suffices, else the first."""
    best = max(scores, key=scores.__getitem__)
    return best if scores[best] > MIN_GAIN * scores[first] else first


def represent_for_counting(
    points: Points, representation: str, largest: int, context: FitContext
) -> list[Representation]:
    """Fit the representations in which clusters are counted.

    One, unless few features may or may not share a unit: then standardized and raw.
    With many features it is the layout in the view that is selected for the largest
    number of clusters: in the data themselves, eigenvalues show two or three groups.
    """
    is_auto = representation == "auto"
    if is_auto and not sparse.issparse(points.X):
        check_extent(points.X)
        m = points.relative_multiplicity
        spread = weighted_moments(points.X, m)[1]
        if np.count_nonzero(spread) < MANY_FEATURES:
            views = _views_by_units(spread)
            return [Representation.fit(points.X, v, multiplicity=m) for v in views]
    name = "auto" if representation == "layout" else representation
    view = select_representation(points, name, largest, context)
    if representation == "layout" or (is_auto and view.n_varying >= MANY_FEATURES):
        return [fit_layout(points, view, largest, context)]
    return [view]


def _views_by_units(spread: Array) -> list[str]:
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
    first, *others = _views_by_units(spread)
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
    return make_graph(X, k, multiplicity, context.n_threads)


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


@dataclass(frozen=True)
class CountChoice:
    """How the number of clusters was suggested.

    Attributes
    ----------
    n_clusters : int
        The candidate with the largest score.
    runner_up : int or None
        The second best; None if there was one candidate.
    candidates : ndarray of shape (n_candidates,)
        Numbers of clusters that were compared, in increasing order.
    scores : ndarray of shape (n_candidates,)
        Mean of the gaps over the scales.
    gaps : ndarray of shape (n_scales, n_candidates)
        Logarithm of the ratio of the cut that one more cluster would need to the cut
        that this number needs; at least 0.
    agreement : ndarray of shape (n_candidates,)
        Mean adjusted Rand index of the partitions at consecutive scales: near 1 if
        the clusters do not depend on the scale. Points count with their multiplicity.
    eigenvalues : ndarray of shape (n_scales, largest candidate + 1)
        Leading eigenvalues of the normalized similarity, largest first.
    factors : tuple of float
        The scales: bandwidths in units of the distance to the 7th neighbor.
    view : str
        The representation in which the clusters were counted.
    """

    n_clusters: int
    runner_up: int | None
    candidates: NDArray[np.int64]
    scores: Array
    gaps: Array
    agreement: Array
    eigenvalues: Array
    factors: tuple[float, ...]
    view: str


def default_counts(X: Any) -> NDArray[np.int64]:
    """Return the numbers of clusters that are compared by default for points X."""
    n, d = X.shape
    largest = MAX_CLUSTERS
    if d >= MANY_FEATURES:
        largest = max(largest, min(MAX_CLUSTERS_MANY_FEATURES, n // _MIN_PER_CLUSTER))
    return np.arange(2, max(min(largest + 1, n), 3))


def select_n_clusters(
    points: Points,
    views: Sequence[Representation],
    candidates: NDArray[np.int64],
    context: FitContext,
) -> CountChoice:
    """Count clusters in each view and return the count of the largest best score."""
    check_fit_memory(len(points), N_NEIGHBORS, int(candidates[-1]))
    choices = [_count(points, view, candidates, context) for view in views]
    return max(choices, key=lambda choice: choice.scores.max())


def _count(
    points: Points,
    view: Representation,
    candidates: NDArray[np.int64],
    context: FitContext,
) -> CountChoice:
    """Count clusters in one view."""
    X = view.transform_fitted(points.X, context.n_threads)
    points, largest = points.spatially_sorted(X), int(candidates[-1])
    embeddings = _embed_at_scales(points, largest + 1, context)
    partitions = [_partitions(e, candidates, points.multiplicity) for e in embeddings]
    for embedding in embeddings:
        if embedding.convergence_message is not None:
            warn(embedding.convergence_message)
    eigenvalues = np.array([embedding.eigenvalues for embedding in embeddings])
    gaps = _gaps(eigenvalues, candidates, NEGLIGIBLE_CUT / len(points))
    scores = gaps.mean(axis=0)
    if (eigenvalues == 1).all():
        warn(
            f"The neighbor graph of the representation {view.view!r} has more "
            f"connected components than the largest candidate, so {largest} clusters "
            "are suggested. Try larger candidates.",
            UserWarning,
        )
    # ties go to the larger: with that many components all gaps are zero
    order = candidates[np.lexsort((-candidates, -scores))].tolist()
    return CountChoice(
        n_clusters=order[0],
        runner_up=order[1] if len(order) > 1 else None,
        candidates=candidates,
        scores=scores,
        gaps=gaps,
        agreement=_scale_agreement(partitions, points.multiplicity),
        eigenvalues=eigenvalues,
        factors=COUNT_FACTORS,
        view=view.view,
    )


def _embed_at_scales(
    points: Points,
    n_vectors: int,
    context: FitContext,
    factors: tuple[float, ...] = COUNT_FACTORS,
) -> list[Embedding]:
    """Return the spectral embedding of the points at every scale."""
    rng, n_threads = context.rng, context.n_threads
    neighbors = Neighbors(points.X, N_NEIGHBORS, n_threads=n_threads)
    graph = NeighborGraph(neighbors, points.relative_multiplicity)
    embeddings: list[Embedding] = []
    for factor in factors:
        kernel = graph.kernel(factor * neighbors.scales, n_threads)
        start = embeddings[-1].solution if embeddings else None
        # eigenvalues have the square of this error, negligible beside e
        similarity = _similarity_without_outliers(kernel)
        embeddings.append(spectral_step(similarity, n_vectors, rng, start, tol=ROUGH))
    return embeddings


def _similarity_without_outliers(kernel: SparseKernel) -> Similarity:
    """Return the uniform similarity of a kernel without its tiny components.

    A component of at most 7 points owes its scale to points outside: it is far from
    everything, but too small for a cluster.
    """
    uniform = np.full(kernel.n, 1.0 / kernel.n)
    # with uniform weights the similarity is a multiple of K for every penalty
    similarity = kernel.similarity(uniform, 1.0)
    _, label = similarity.components()
    kept = np.bincount(label, kernel.multiplicity)[label] > SCALE_NEIGHBOR
    if kept.all() or not kept.any():
        return similarity
    return kernel.similarity(uniform, 1.0, kept)


def _partitions(
    embedding: Embedding, counts: NDArray[np.int64], multiplicity: Array | None
) -> list[Labels]:
    """Return the partition for every number of clusters c, from c eigenvectors."""
    coordinates = embedding.vectors * embedding.lengths
    assign = partial(assign_labels, method="cluster_qr", n_init=1, random_state=None)
    partitions = []
    for c in counts:
        # components beyond the first c have zero rows; they join the first cluster
        lengths = np.maximum(np.linalg.norm(coordinates[:c], axis=0), _TINY)
        labels = assign(coordinates[:c] / lengths, multiplicity=multiplicity)
        partitions.append(labels)
    return partitions


def _gaps(eigenvalues: Array, candidates: NDArray[np.int64], cut: float) -> Array:
    """Return the log ratios of cuts (n_scales, n_candidates)."""
    cuts = np.log(1.0 - np.minimum(eigenvalues, 1.0) + cut)
    return cuts[:, candidates] - cuts[:, candidates - 1]


def _scale_agreement(
    partitions: list[list[Labels]], multiplicity: Array | None = None
) -> Array:
    """Return the mean ARI of consecutive scales, whose lists are ``partitions``."""
    scores = [
        [_agreement(pair, multiplicity)[0, 1] for pair in zip(*scales, strict=True)]
        for scales in pairwise(partitions)
    ]
    return np.asarray(np.mean(scores, axis=0))


@dataclass(frozen=True)
class LambdaChoice:
    """Result of ``select_lambda``.

    Attributes
    ----------
    lam : float
        The value of the grid with the smallest criterion.
    grid : ndarray of shape (n_values,)
        Values tried.
    curve : ndarray of shape (n_values,)
        Criterion at each of them; smaller is better.
    criterion : str
        Name of the criterion.
    n_sample : int
        Number of points in a fit.
    """

    lam: float
    grid: Array
    curve: Array
    criterion: str
    n_sample: int


@dataclass(frozen=True)
class LambdaSearch:
    """What ``select_lambda`` is asked for: see there."""

    grid: Sequence[float] = GRID
    sample: float = 0.1
    criterion: str = "entropy"


def select_lam(
    n_samples: int,
    n_clusters: int,
    make_kernel: Callable[[NDArray[np.intp]], Kernel],
    fit: Callable[[Kernel, float], Any],
    search: LambdaSearch,
    context: FitContext,
) -> LambdaChoice:
    """Return the ``LambdaChoice`` for points of which samples are fitted.

    ``make_kernel(rows)`` returns the kernel of some points, ``fit(kernel, lam)`` the
    ``Alternation`` of a kernel.
    """
    rng, n_init = context.rng, context.settings.n_init
    grid, criterion = np.array(search.grid, dtype=np.float64), search.criterion
    smallest = max(MIN_SAMPLE, MIN_SAMPLE_PER_CLUSTER * n_clusters)
    size = min(max(round(search.sample * n_samples), smallest), n_samples)

    def label(fitted: Any) -> Labels:
        vectors = fitted.embedding.vectors
        return assign_labels(vectors, "kmeans", n_init=n_init, random_state=rng)

    if criterion == "stability":
        if n_samples < 2 * n_clusters:
            raise ValueError(
                'criterion="stability" clusters halves of the data and needs at least '
                f"2 * n_clusters = {2 * n_clusters} samples; got {n_samples}."
            )
        size = max(min(size, n_samples // 2), n_clusters)
        curves = []
        for _ in range(_STABILITY_SAMPLES):
            rows = rng.permutation(n_samples)[: 2 * size]
            curves.append(_instability(make_kernel, fit, label, grid, rows))
        curve = np.mean(curves, axis=0)
    else:
        kernel = make_kernel(np.sort(rng.permutation(n_samples)[:size]))

        def measure(fitted: Any) -> float:
            vectors = fitted.embedding.vectors
            if criterion == "cut":
                return float(np.mean(cut_ratios(kernel, label(fitted))))
            if criterion == "paper":
                return _mean_entropy(vectors * fitted.embedding.lengths)
            return _mean_entropy(rotate_to_axes(vectors) / TEMPERATURE)

        fits = [fit(kernel, lam) for lam in grid]
        curve = np.array([measure(fitted) for fitted in fits])
    best = float(grid[curve == curve.min()].min())
    return LambdaChoice(best, grid, curve, criterion, size)


def _mean_entropy(vectors: Array) -> float:
    """Return the mean entropy of the softmax of the columns of vectors (c, n)."""
    return float(np.mean(np.sum(entr(softmax(vectors, axis=0)), axis=0)))


def _instability(
    make_kernel: Callable[[NDArray[np.intp]], Kernel],
    fit: Callable[[Kernel, float], Any],
    label: Callable[[Any], Labels],
    grid: Array,
    rows: NDArray[np.intp],
) -> list[float]:
    """Return 1 - ARI of transferred and own labels of the second half, per lam."""
    size = len(rows) // 2
    first, second = make_kernel(rows[:size]), make_kernel(rows[size:])
    both = make_kernel(rows)
    between = np.stack([both.row(i)[size:] for i in range(size)])
    curve = []
    for lam in grid:
        fit_first, fit_second = fit(first, lam), fit(second, lam)
        labels = label(fit_first)
        clusters = np.arange(labels.max() + 1)[:, np.newaxis]
        votes = np.einsum(
            "yi,ij->yj", (labels == clusters) * fit_first.weights, between
        )
        transferred = np.argmax(votes, axis=0)
        curve.append(1.0 - adjusted_rand_score(label(fit_second), transferred))
    return curve
