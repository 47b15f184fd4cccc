# SPDX-License-Identifier: BSD-3-Clause
"""Selection of the number of clusters, without labels (tests/test_n_clusters.py).

Let l_1 >= l_2 >= ... be the eigenvalues of the normalized
similarity of a neighbor graph. With c clusters, 1 - l_c is about the cut between them
and 1 - l_{c+1} the smallest cut within one:

    score(c) = mean over scales of log (1 - l_{c+1} + e) / (1 - l_c + e),

where e is a negligible cut. The number with the largest score is suggested. Agreement
between scales is reported but not used: no rule with it was better on held-out sets
(docs/results/count.md). If the spreads of few features differ, clusters are counted in
the raw and in the standardized data, and the larger best score decides. Those of many
features are counted in a layout.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cdsk._candidates import (
    MANY_FEATURES,
    N_NEIGHBORS,
    check_fit_memory,
    find_neighbors,
)
from cdsk._eigensolvers import ROUGH
from cdsk._neighbors import SCALE_NEIGHBOR
from cdsk._operators.base import Array, Similarity
from cdsk._operators.sparse import NeighborGraph, SparseKernel
from cdsk._partition_choice import adjusted_rand_indexes
from cdsk._preprocessing import Points, Representation, weighted_moments
from cdsk._settings import FitContext
from cdsk._spectral import Embedding, Labels, assign_labels, spectral_step
from cdsk._utils import warn
from cdsk._validation import check_extent
from cdsk._view_choice import (
    MIN_PER_CLUSTER,
    fit_layout,
    select_representation,
    views_by_units,
)

# Bandwidths in units of the distance to the 7th neighbor, wider
# than those of a fit, as narrow kernels resolve clusters within clusters; the largest
# default candidate; and n times the negligible cut e, about two of the 20 n edges. In
# the plane cuts within a cluster decrease like 1 / n. Between 0.05 and 0.4 the number
# of hits changes by two in 47.
COUNT_FACTORS = (1.0, 2.0**-0.5, 0.5)
MAX_CLUSTERS, MAX_CLUSTERS_MANY_FEATURES = 19, 100
NEGLIGIBLE_CUT = 0.1


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
        largest = max(largest, min(MAX_CLUSTERS_MANY_FEATURES, n // MIN_PER_CLUSTER))
    return np.arange(2, max(min(largest + 1, n), 3))


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
            views = views_by_units(spread)
            return [Representation.fit(points.X, v, multiplicity=m) for v in views]
    name = "auto" if representation == "layout" else representation
    view = select_representation(points, name, largest, context)
    has_many = view.n_varying >= MANY_FEATURES and not sparse.issparse(points.X)
    if representation == "layout" or (is_auto and has_many):
        return [fit_layout(points, view, largest, context)]
    return [view]


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
    # of eigenvectors that did not converge some may be missing
    n_found = min(len(embedding.eigenvalues) for embedding in embeddings)
    candidates = candidates[: max(np.searchsorted(candidates, n_found), 1)]
    partitions = [_partitions(e, candidates, points.multiplicity) for e in embeddings]
    for embedding in embeddings:
        if embedding.convergence_message is not None:
            warn(embedding.convergence_message)
    eigenvalues = np.array([e.eigenvalues[:n_found] for e in embeddings])
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
    neighbors = find_neighbors(points.X, N_NEIGHBORS, context)
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
        lengths = np.maximum(
            np.linalg.norm(coordinates[:c], axis=0), np.finfo(float).tiny
        )
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
        [
            adjusted_rand_indexes(pair, multiplicity)[0, 1]
            for pair in zip(*scales, strict=True)
        ]
        for scales in pairwise(partitions)
    ]
    return np.asarray(np.mean(scores, axis=0))
