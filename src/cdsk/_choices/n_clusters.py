# SPDX-License-Identifier: BSD-3-Clause
"""``suggest_n_clusters``: how many clusters the data fall into.

On the graph of the 20 nearest neighbours with Gaussian weights, let l_1 >= l_2 >= ...
be the eigenvalues of the normalised similarity. If there are c clusters, c of them are
near 1: 1 - l_c is about the cut between the clusters, 1 - l_{c+1} the least cut within
one. Their ratio says how much harder it is to split once more,

    score(c) = mean over scales of log (1 - l_{c+1} + e) / (1 - l_c + e),

where e is a cut so small that a smaller one would mean nothing. The suggestion is the c
with the largest score: its gap is wide, and at every scale. Eigenvectors are nested, so
one spectral step per scale serves every c, and their partitions come almost for free:
if the clusters are really there, those of neighbouring scales agree. That agreement is
told but has no say: no rule with it was better on sets it was not chosen on
(docs/results/count.md).

Where the spreads of few features differ, and their units may or may not, clusters are
counted in the data as given and standardised, and the larger of the best scores
decides: a view that moves clusters together has no wide gap
(docs/notes/2026-11-17-count.md).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from cdsk._choices.candidates import NEIGHBOURS, check_room
from cdsk._choices.partition import rand_index
from cdsk._choices.representation import check_representation, represent_to_count
from cdsk._kernels.neighbours import SCALE_NEIGHBOUR, Neighbours
from cdsk._kernels.sparse import NeighbourGraph
from cdsk._kernels.sparse_rows import canonical
from cdsk._points import Points
from cdsk._runtime import one_thread_if_forked, said_in_words
from cdsk._steps.eigen import ROUGH
from cdsk._steps.embedding import Embedding, spectral_step
from cdsk._steps.labels import assign_labels
from cdsk._threads import resolve_n_threads
from cdsk._validation import (
    METRICS,
    Data,
    check_choice,
    check_integer,
    check_points,
    check_random_state,
    check_sample_weight,
    needs_dense,
    unit_rows,
)
from cdsk._warn import warn

# Bandwidths, in units of the distance to the 7th neighbour. Wider than those of a fit:
# narrow kernels see clusters within clusters.
FACTORS = (1.0, 2.0**-0.5, 0.5)

# Largest candidate if none are given.
MOST_CLUSTERS = 19

# e above, times n: some two of the 20 n edges. In the plane cuts within a cluster fall
# like 1 / n; a fixed e would hide them where there are many points. Between 0.05 and
# 0.4 the hits change by two in 47.
SMALLEST_CUT = 0.1

_TINY = np.finfo(float).tiny


@dataclass(frozen=True)
class CountChoice:
    """How the number of clusters was suggested.

    Attributes
    ----------
    n_clusters : int
        The candidate with the largest score.
    runner_up : int or None
        The second; None if there was one candidate.
    candidates : ndarray of shape (n_candidates,)
        Numbers of clusters that were compared, in increasing order.
    scores : ndarray of shape (n_candidates,)
        Mean of the gaps over the scales.
    gaps : ndarray of shape (n_scales, n_candidates)
        Logarithm of the ratio of the cut that one more cluster would need to the cut
        that this number needs; at least 0.
    agreement : ndarray of shape (n_candidates,)
        Mean adjusted Rand index of the partitions at neighbouring scales: near 1 if
        the clusters do not depend on the scale. Points count as often as their rows.
    eigenvalues : ndarray of shape (n_scales, largest candidate + 1)
        Leading eigenvalues of the normalised similarity, largest first.
    factors : tuple of float
        The scales: bandwidths in units of the distance to the 7th neighbour.
    view : str
        The representation in which the clusters were counted.
    """

    n_clusters: int
    runner_up: int | None
    candidates: NDArray[np.int64]
    scores: NDArray[np.float64]
    gaps: NDArray[np.float64]
    agreement: NDArray[np.float64]
    eigenvalues: NDArray[np.float64]
    factors: tuple[float, ...]
    view: str


def suggest_n_clusters(
    X: Data,
    n_clusters: Iterable[int] | None = None,
    *,
    metric: str = "euclidean",
    representation: str = "auto",
    n_components: int | None = None,
    sample_weight: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_threads: int | None = None,
) -> CountChoice:
    """Number of clusters suggested by eigengaps at several scales, without labels.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Data.
    n_clusters : iterable of int, default=None
        Candidates: at least 2, below the number of samples. None means 2 to 19, as far
        as there are samples. That there is but one cluster is not tested.
    metric : {"euclidean", "cosine"}, default="euclidean"
        Distance between points, as in ``CDSK``.
    representation : {"auto", "raw", "standardize", "normal_scores", "whiten"}, \
            default="auto"
        How the data are represented, as in ``CDSK``; a sparse X is "raw". Below 60
        features "auto" is "raw" if no standard deviation of a feature is more than
        twice another, "standardize" if one is more than a hundred times another, and in
        between the one of the two with the larger best score; else it decides with the
        largest candidate for the number of clusters.
    n_components : int, default=None
        Number of whitened components; None: as many as there are.
    sample_weight : array-like of shape (n_samples,), default=None
        How many times each row counts; None means once.
    random_state : int, RandomState instance or None, default=None
        Seeds the eigensolver's start.
    n_threads : int, default=None
        Threads of the compiled loops; None means all. The result does not depend on it.

    Returns
    -------
    choice : CountChoice
        The suggestion, the runner-up, and the curves behind them.

    Notes
    -----
    A suggestion, no more: about half were right on benchmark sets with known clusters,
    and seven in ten within one. Look at the curve and at the runner-up; data may well
    have two answers.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from cdsk import suggest_n_clusters
    >>> X, _ = make_blobs(300, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    >>> choice = suggest_n_clusters(X, range(2, 10), random_state=0)
    >>> choice.n_clusters, choice.scores.shape
    (3, (8,))
    """
    X = check_points(X, ensure_min_samples=3, accept_sparse="csr")
    check_representation(representation, n_components)
    check_choice(metric, "metric", METRICS)
    if sparse.issparse(X):
        if representation not in ("auto", "raw"):
            raise needs_dense("representation", representation, "'raw'")
        X = canonical(X)
    X = unit_rows(X) if metric == "cosine" else X
    points = Points.distinct(X, check_sample_weight(sample_weight, X, False))
    if len(points) == 1:
        raise ValueError(f"X must hold different points; got {X.shape[0]} equal ones.")
    candidates = default_candidates(len(points))
    if n_clusters is not None:
        candidates = _check_candidates(n_clusters)
    largest = int(candidates[-1])
    if largest >= len(points):
        raise ValueError(
            "n_clusters must hold numbers below the number of samples; got "
            f"{largest} and n_samples={X.shape[0]}, {len(points)} of them different."
        )
    rng = check_random_state(random_state)
    n_threads = resolve_n_threads(n_threads)
    with one_thread_if_forked(), said_in_words("The eigenvectors of so many points"):
        views = represent_to_count(
            *(points.X, largest, representation, rng, n_threads),
            *(n_components, points.relative_masses),
        )
        return choose_count(points, views, candidates, rng, n_threads)


def default_candidates(n):
    """Numbers of clusters that are compared if none are given, for n points."""
    return np.arange(2, max(min(MOST_CLUSTERS + 1, n), 3))


def choose_count(points, views, candidates, rng, n_threads):
    """The ``CountChoice`` of the view whose best score is largest, the first of equal.

    ``views`` are fitted representations of the points.
    """
    check_room(len(points), NEIGHBOURS, int(candidates[-1]))
    found = [_count(points, view, candidates, rng, n_threads) for view in views]
    return max(found, key=lambda choice: choice.scores.max())


def _count(points, view, candidates, rng, n_threads):
    """The ``CountChoice`` in one view."""
    points = points.near_together(view.of_checked(points.X, n_threads))
    largest = int(candidates[-1])
    embeddings = _embeddings(points, largest + 1, rng, n_threads)
    partitions = [_partitions(one, candidates, points.masses) for one in embeddings]
    for complaint in filter(None, (embedding.complaint for embedding in embeddings)):
        warn(complaint)
    eigenvalues = np.array([embedding.eigenvalues for embedding in embeddings])
    gaps = _gaps(eigenvalues, candidates, SMALLEST_CUT / len(points))
    scores = gaps.mean(axis=0)
    if (eigenvalues == 1).all():
        warn(
            f"The neighbour graph of the view {view.view!r} has more components than "
            f"the largest candidate, {largest}, which it therefore suggests. Try "
            "larger ones.",
            UserWarning,
        )
    # Ties go to the larger: with that many components all gaps are zero.
    order = candidates[np.lexsort((-candidates, -scores))].tolist()
    return CountChoice(
        n_clusters=order[0],
        runner_up=order[1] if len(order) > 1 else None,
        candidates=candidates,
        scores=scores,
        gaps=gaps,
        agreement=_agreement(partitions, points.masses),
        eigenvalues=eigenvalues,
        factors=FACTORS,
        view=view.view,
    )


def _check_candidates(n_clusters):
    """The candidates as a sorted array without repetitions."""
    try:
        values = list(n_clusters)
    except TypeError:
        raise ValueError(
            "n_clusters must hold several integers, as range(2, 20) does; got "
            f"{n_clusters!r}."
        ) from None
    if not values:
        raise ValueError("n_clusters must hold at least one integer; got none.")
    return np.unique([check_integer(c, "Each value of n_clusters", 2) for c in values])


def _embeddings(points, n_vectors, rng, n_threads, factors=FACTORS):
    """Spectral embedding at every scale."""
    neighbours = Neighbours(points.X, NEIGHBOURS, n_threads=n_threads)
    graph = NeighbourGraph(neighbours, points.relative_masses)
    scales = neighbours.scales
    embeddings: list[Embedding] = []
    for factor in factors:
        similarity = _without_outliers(graph.kernel(factor * scales, n_threads))
        start = embeddings[-1].solution if embeddings else None
        # eigenvalues are off by the square of it: next to nothing beside e above
        found = spectral_step(similarity, n_vectors, rng, start, tol=ROUGH)
        embeddings.append(found)
    return embeddings


def _without_outliers(kernel):
    """Uniform similarity of the kernel; points in tiny components have none.

    A component of at most 7 points owes its scale to points outside: it lies far from
    everything, but so few points make no cluster.
    """
    uniform = np.full(kernel.n, 1.0 / kernel.n)
    # with uniform weights the similarity is a multiple of K for every penalty
    similarity = kernel.similarity(uniform, 1.0)
    _, label = similarity.components()
    kept = np.bincount(label, kernel.masses)[label] > SCALE_NEIGHBOUR
    if kept.all() or not kept.any():
        return similarity
    return kernel.restricted_to(kept).similarity(uniform, 1.0)


def _partitions(embedding, candidates, masses=None):
    """Partition for every candidate, from its share of the eigenvectors."""
    coordinates = embedding.vectors * embedding.lengths

    def partition(vectors):
        # of more than c components some have no row; they count as one with the first
        vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=0), _TINY)
        how = {"n_init": 1, "random_state": None, "masses": masses}
        return assign_labels(vectors, "cluster_qr", **how)

    return [partition(coordinates[:c]) for c in candidates]


def _gaps(eigenvalues, candidates, smallest_cut):
    """Log ratios of cuts (n_scales, n_candidates)."""
    cuts = np.log(1.0 - np.minimum(eigenvalues, 1.0) + smallest_cut)
    return cuts[:, candidates] - cuts[:, candidates - 1]


def _agreement(partitions, masses=None):
    """Mean ARI of neighbouring scales; ``partitions`` has a list per scale."""
    scores = [
        [rand_index(a, b, masses) for a, b in zip(*scales, strict=True)]
        for scales in pairwise(partitions)
    ]
    return np.mean(scores, axis=0)
