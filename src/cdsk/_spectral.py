# SPDX-License-Identifier: BSD-3-Clause
"""The spectral step: similarity -> embedding -> labels (tests/test_embedding.py).

Y holds D^-1/2 times the c leading eigenvectors of A = D^-1/2 S D^-1/2; the rows of Y
are scaled to unit length. At useful bandwidths the graph of S is often disconnected,
and the eigenvalue 1 multiple. Therefore the components of the graph are found first.
Each contributes the eigenvector D^1/2 1_C of eigenvalue 1, which needs no iteration;
_eigensolvers.py finds the others.

Points that belong to none of these components (isolated ones, and the components beyond
the c largest) are *unconnected*: they get the row of their nearest neighbor. So do
*weak components*: groups that are tiny compared with the mean cluster and hardly
connected to it. Their number grows with the number of points, and each would be a
leading eigenvector of its own.
"""

from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, svd

from cdsk._eigensolvers import TOLERANCE, Eigenpairs, fix_signs, leading_eigenpairs
from cdsk._kmeans import lloyd, seed_centers
from cdsk._operators.base import Array, Indices, Kernel, Similarity
from cdsk._utils import warn
from cdsk._validation import check_random_state

Labels = NDArray[np.int64]

# Size of weak components, relative to the mean cluster.
_WEAK_COMPONENT_SIZE = 0.005


@dataclass
class Embedding:
    """Spectral embedding of all points."""

    # coordinates (c, n); those of a point have unit length
    vectors: Array
    # divisors of the points (n,): Y with Y'DY = I is ``vectors * lengths``
    lengths: Array
    # leading eigenvalues of A (c,), largest first
    eigenvalues: Array
    # largest norm of A v - theta v, and its tolerance
    residual: float
    tol: float
    # component of each point (n,); -1: unconnected, with the row of its neighbor
    component: Indices
    # the pairs beyond those of the components, a start for a similar problem
    solution: Eigenpairs | None
    # pairs of points whose similarity was negative and was set to 0
    n_clipped: int
    # text of a warning if the eigenvectors did not converge, else None
    convergence_message: str | None

    @property
    def trace(self) -> float:
        """Sum of the c smallest eigenvalues of the normalized Laplacian."""
        return float(np.sum(1.0 - self.eigenvalues))


def spectral_step(
    similarity: Similarity,
    n_clusters: int,
    rng: np.random.RandomState,
    start: Eigenpairs | None = None,
    solver: str = "auto",
    tol: float = TOLERANCE,
) -> Embedding:
    """Return the ``Embedding`` of a ``Similarity``.

    ``start`` is the solution of a similar problem, used as a first guess; ``tol`` is
    the largest residual of an eigenvector.
    """
    kernel = similarity.kernel
    min_mass = _WEAK_COMPONENT_SIZE * kernel.n / n_clusters
    similarity = similarity.without_weak_components(min_mass)
    vectors, component = _component_vectors(similarity, n_clusters)
    if not len(vectors):
        raise ValueError(
            "No two points have any similarity: every kernel value between different "
            f"points is zero. {kernel.hint} to connect some."
        )
    values, k = np.ones(len(vectors)), n_clusters - len(vectors)
    solution, residual, message = None, 0.0, None
    if k > 0:
        solution = leading_eigenpairs(
            similarity, vectors, k, solver=solver, rng=rng, tol=tol, start=start
        )
        values = np.concatenate([values, solution.values])
        vectors = np.concatenate([vectors, fix_signs(solution.vectors)])
        # there may be none: all points alike
        residual = float(solution.residuals.max(initial=0.0))
        if not residual <= tol:  # NaN included
            message = (
                f"The spectral step did not converge: residual {residual:.1e} after "
                f"{solution.n_products} products, expected at most {tol:.0e}."
            )
    unit, lengths = _normalize_rows(similarity, vectors, component >= 0)
    return Embedding(
        vectors=unit,
        lengths=lengths,
        eigenvalues=values,
        residual=residual,
        tol=tol,
        component=component,
        solution=solution,
        n_clipped=similarity.n_clipped,
        convergence_message=message,
    )


def _component_vectors(
    similarity: Similarity, n_clusters: int
) -> tuple[Array, Indices]:
    """Return D^1/2 1_C of the components C of largest volume, and C of each point.

    -1 for points that are in none of them.
    """
    count, label = similarity.components()
    degrees = np.where(similarity.isolated, 0.0, similarity.degrees)
    volume = np.bincount(label, weights=degrees, minlength=count)
    largest = np.argsort(-volume, kind="stable")[:n_clusters]
    largest = largest[volume[largest] > 0]
    vectors = np.where(label == largest[:, np.newaxis], np.sqrt(degrees), 0.0)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    rank = np.full(count, -1)
    rank[largest] = np.arange(len(largest))
    return vectors, np.where(similarity.isolated, -1, rank[label])


def _normalize_rows(
    similarity: Similarity, vectors: Array, is_connected: NDArray[np.bool_]
) -> tuple[Array, Array]:
    """Return the coordinates of Y with unit rows, and the lengths of its rows.

    Unconnected points copy their nearest neighbor's.
    """
    unit, lengths = np.zeros_like(vectors), np.zeros(len(is_connected))
    degrees = similarity.degrees[is_connected]
    unit[:, is_connected] = vectors[:, is_connected] / np.sqrt(degrees)
    lengths[is_connected] = np.linalg.norm(unit[:, is_connected], axis=0)
    unit[:, is_connected] /= lengths[is_connected]
    if not is_connected.all():
        points, candidates = np.flatnonzero(~is_connected), np.flatnonzero(is_connected)
        nearest = similarity.find_nearest(points, candidates)
        unit[:, points], lengths[points] = unit[:, nearest], lengths[nearest]
    return unit, lengths


# Embedding -> labels, numbered in the order in which clusters first appear.

_MAX_ROTATIONS = 50

# Points on which k-means chooses among its starts, and points per cluster. Measured,
# 10^6 points and 10 clusters: 1.3 s instead of 11 s for the same labels.
_SAMPLE_SIZE = 50_000
_SAMPLE_PER_CLUSTER = 100

# k-means ends when its centers move less, relative to the mean variance of coordinates.
_KMEANS_TOL = 1e-4


def assign_labels(
    vectors: Array,
    method: str,
    *,
    n_init: int,
    random_state: Any,
    kernel: Kernel | None = None,
    multiplicity: Array | None = None,
    n_threads: int = 1,
) -> Labels:
    """Return the labels (n,) of points whose coordinates are columns of ``vectors``.

    A point counts as often as its multiplicity, once if that is None. "auto" tries all
    methods and keeps the smallest normalized cut in the graph of ``kernel``.
    """
    if method == "auto":
        assert kernel is not None
        assign = partial(
            assign_labels, vectors, n_init=n_init, random_state=random_state
        )
        methods = "kmeans", "cluster_qr", "discretize"
        partitions = [
            assign(name, multiplicity=multiplicity, n_threads=n_threads)
            for name in methods
        ]
        cuts = [np.mean(cut_ratios(kernel, labels)) for labels in partitions]
        return partitions[int(np.argmin(cuts))]
    if method == "kmeans":
        labels = kmeans(
            vectors,
            len(vectors),
            n_init=n_init,
            rng=check_random_state(random_state),
            weights=multiplicity,
            n_threads=n_threads,
        )
    elif method == "cluster_qr":
        rotated = cluster_qr_rotation(vectors, multiplicity).T @ vectors
        labels = np.argmax(np.abs(rotated), axis=0)
    else:
        labels = np.argmax(rotate_to_axes(vectors, multiplicity), axis=0)
    return relabel_by_appearance(labels)


def kmeans(
    points: Array,
    n_clusters: int,
    *,
    n_init: int,
    rng: np.random.RandomState,
    weights: Array | None = None,
    n_threads: int = 1,
) -> Labels:
    """Return the labels (n,) of the best of ``n_init`` runs of k-means.

    Coordinates of points (d, n) are rows. If there are many points, the runs are those
    of a sample; a last one of all points begins with the best centers.
    """
    points, n = np.ascontiguousarray(points), points.shape[1]
    weights = np.ones(n) if weights is None else weights
    size = max(_SAMPLE_SIZE, _SAMPLE_PER_CLUSTER * n_clusters)
    sample, counts = points, weights
    if n > size:
        chosen = np.sort(rng.choice(n, size, replace=False))
        sample, counts = np.take(points, chosen, axis=1), weights[chosen]
    shares = counts / counts.sum()
    squares = (sample - (sample @ shares)[:, np.newaxis]) ** 2
    tol = _KMEANS_TOL * float(np.mean(squares @ shares))
    n_trials = 2 + int(np.log(n_clusters))
    draws = rng.random_sample((n_init, 1 + (n_clusters - 1) * n_trials))
    starts = (seed_centers(sample, counts, n_clusters, uniforms) for uniforms in draws)
    # An iteration is short: where processors are shared, threads would wait longer.
    runs = (lloyd(sample, counts, start, tol, n_threads=1) for start in starts)
    labels, centers, _ = min(runs, key=itemgetter(2))
    if n > size:
        labels, _, _ = lloyd(points, weights, centers, tol, n_threads)
    return labels


def cluster_qr_rotation(vectors: Array, multiplicity: Array | None = None) -> Array:
    """Return an orthogonal R such that the clusters in R' vectors lie near the axes.

    Damle, Minden & Ying (2019): pivoted QR picks one representative per cluster; the
    polar factor of their rows is R.

    Points of unit length are all equally good as the first pivot, and rounding would
    choose. So those in the direction of many others are made a very little longer.
    """
    multiplicity = np.ones(vectors.shape[1]) if multiplicity is None else multiplicity
    covariance = (vectors * (multiplicity / multiplicity.sum())) @ vectors.T
    scale = 1.0 + 1e-9 * np.einsum("ln,lm,mn->n", vectors, covariance, vectors)
    _, _, pivots = qr(vectors * scale, mode="economic", pivoting=True)
    left, _, right = svd(vectors[:, pivots[: len(vectors)]])
    rotation: Array = left @ right
    return rotation


def rotate_to_axes(vectors: Array, multiplicity: Array | None = None) -> Array:
    """Return the embedding (c, n) in the basis whose axes its points lie nearest to.

    Yu & Shi (2003): each point is assigned to its largest entry, and the basis is
    rotated so that points lie as near as possible to their axes, until no assignment
    changes. The start is that of ``cluster_qr``.
    """
    weighted = vectors if multiplicity is None else vectors * multiplicity
    rotated, labels = cluster_qr_rotation(vectors, multiplicity).T @ vectors, None
    for _ in range(_MAX_ROTATIONS):
        old, labels = labels, np.argmax(rotated, axis=0)
        if old is not None and (labels == old).all():
            break
        members = labels == np.arange(len(vectors))[:, np.newaxis]
        left, _, right = svd(np.einsum("ln,yn->ly", weighted, members.astype(float)))
        rotated = (left @ right).T @ vectors
    return rotated


def cut_ratios(kernel: Kernel, labels: NDArray[np.integer]) -> Array:
    """Return cut(A, rest) / vol(A) of every cluster A in the graph of K.

    Their sum is the normalized cut. That of a cluster without any similarity is 1.
    """
    members = (labels == np.unique(labels)[:, np.newaxis]).astype(np.float64)
    inside = np.sum(members * kernel.product(members), axis=1)
    volume = np.sum(members * kernel.row_sums, axis=1)
    cut = volume - inside
    if kernel.self_loops is not None:
        volume += np.sum(members * kernel.self_loops, axis=1)
    ratios: Array = np.ones(len(volume))
    np.divide(cut, volume, out=ratios, where=volume > 0)
    return ratios


def relabel_by_appearance(labels: NDArray[np.integer]) -> Labels:
    """Renumber the clusters in the order in which they first appear."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))  # of every cluster, by its first point
    return rank[inverse].astype(np.int64, copy=False)


def spectral_partition(
    kernel: Kernel,
    n_clusters: int,
    rng: np.random.RandomState,
    *,
    method: str = "kmeans",
    n_init: int = 10,
    tol: float = TOLERANCE,
    start: Eigenpairs | None = None,
) -> tuple[Embedding, Labels]:
    """Return the ``Embedding`` of a ``Kernel``, all weights equal, and the labels.

    Callers limit BLAS to one thread.
    """
    # with equal weights S is a multiple of K, whatever the penalty
    similarity = kernel.similarity(np.full(kernel.n, 1.0 / kernel.n), 1.0)
    embedding = spectral_step(similarity, n_clusters, rng, start, tol=tol)
    labels = assign_labels(
        embedding.vectors,
        method,
        n_init=n_init,
        random_state=rng,
        kernel=kernel,
        multiplicity=kernel.multiplicity,
        n_threads=kernel.n_threads,
    )
    return embedding, labels


def warn_unconnected(embedding: Embedding, kernel: Kernel) -> None:
    """Warn of points of an ``Embedding`` without similarity to any cluster."""
    count = np.count_nonzero(embedding.component < 0)
    if count and len(embedding.vectors) > 1:  # one cluster is similar to all
        whose = "their nearest neighbor"
        if kernel.points is None:
            whose = "the most similar point, or of that with the largest similarities"
        warn(
            f"{count} of {kernel.n} points have no similarity to any cluster and took "
            f"the label of {whose}. {kernel.hint} to connect them.",
            UserWarning,
        )


def warn_fewer_clusters(labels: Labels, n_clusters: int, kernel: Kernel) -> None:
    """Warn if labels, numbered from 0, have fewer than ``n_clusters`` clusters."""
    found = int(labels.max()) + 1
    if found < n_clusters:
        warn(
            f"Found {found} connected groups of points, fewer than n_clusters="
            f"{n_clusters}. {kernel.hint} to connect more points."
        )
