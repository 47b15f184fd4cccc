# SPDX-License-Identifier: BSD-3-Clause
"""Settings and points -> the candidate kernels of a fit, usually one.

``bandwidth="auto"`` gives six candidates: Gaussian kernels on the graph of the 20
nearest neighbors, with bandwidths of 1 to 1/8 of the local scale of each point; the
scales of outliers are capped. The widest, 1, is robust to noise. The factors are
sqrt(2) apart; the one after the widest is left out, as two wide kernels would outvote
narrow ones that are right. With many features and few points per cluster, 5 neighbors
are more often of the same cluster (``default_n_neighbors``). ``_model_selection.py``
selects among the partitions. docs/notes/2026-11-17-views.md has the alternatives that
were measured.

A candidate can make its kernel at any time: the fitted model keeps the selected one.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cdsk._neighbors import Neighbors, PrecomputedNeighbors, SlowSearchNotice
from cdsk._operators.base import Array, Candidate, Kernel, Votes
from cdsk._operators.dense import DenseKernel, scale_by_multiplicity
from cdsk._operators.low_rank import LowRankKernel
from cdsk._operators.sparse import (
    NeighborGraph,
    SparseKernel,
)
from cdsk._pairwise import (
    LOCAL_FACTOR,
    PairwiseKernel,
    check_nonzero_bandwidth,
    estimate_bandwidth,
    gaussian_gram,
)
from cdsk._settings import FitContext, Settings
from cdsk._utils import check_memory
from cdsk._validation import (
    check_bandwidth,
    rescale_kernel_matrix,
)
from cdsk._voting import GaussianVotes, GraphVotes, KernelVotes, NeighborVotes

Labels = NDArray[np.int64]

N_NEIGHBORS = 20
FACTORS = tuple(2.0 ** (-0.5 * i) for i in (0, 2, 3, 4, 5, 6))

# Neighbors if there are so many features and few points per cluster.
_FEWER_NEIGHBORS, MANY_FEATURES = 5, 60

# Memory of a fit of truncated kernels per point and neighbor, and per point and
# cluster: the sparse matrices of a kernel and its similarity, and the vectors of six
# fits. Slightly below the measured peak at 30 000 x 10: 2550 and 4710 bytes per point
# with 20 neighbors and 2 and 30 clusters, 5580 with 40 neighbors and 10 clusters. In
# the plane it is up to twice as much: the eigensolver checks the memory of its basis
# itself.
_NEIGHBOR_BYTES, _CLUSTER_BYTES = 115, 75


@dataclass(frozen=True)
class FullGaussian:
    """A Gaussian kernel on all pairs of points.

    ``factor`` is the bandwidth in units of the local scales; None: one bandwidth.
    """

    points: NDArray[Any]
    name: str
    bandwidth: Any
    factor: float | None
    psd: bool | None
    n_threads: int
    multiplicity: Array | None

    def kernel(self) -> Kernel:
        K = gaussian_gram(self.points, self.bandwidth, n_threads=self.n_threads)
        scale_by_multiplicity(K, self.multiplicity)
        # Positive semi-definite with one bandwidth. With local ones splitting changed
        # no score and took longer: docs/method.md, section 11.
        psd = True if self.factor is None or self.psd is None else self.psd
        return _dense_kernel(K, psd, "Increase `bandwidth`", self)

    @property
    def description(self) -> str:
        return f"Gaussian, {self.name}"

    def votes(self, labels: Labels, weights: Array, n_clusters: int) -> Votes:
        return GaussianVotes(
            self.points,
            labels,
            weights,
            bandwidth=self.bandwidth,
            factor=self.factor,
            n_clusters=n_clusters,
            n_threads=self.n_threads,
        )


@dataclass(frozen=True)
class LowRankGaussian:
    """A low-rank approximation of a Gaussian kernel of one bandwidth."""

    points: NDArray[Any]
    name: str
    bandwidth: float
    rank: int | None
    seed: int
    n_threads: int
    multiplicity: Array | None

    def kernel(self) -> Kernel:
        return LowRankKernel(
            self.points,
            self.bandwidth,
            self.rank,
            self.seed,
            self.n_threads,
            self.multiplicity,
        )

    @property
    def description(self) -> str:
        return f"Gaussian, {self.name}, low-rank approximation"

    def votes(self, labels: Labels, weights: Array, n_clusters: int) -> Votes:
        return GaussianVotes(
            self.points,
            labels,
            weights,
            bandwidth=self.bandwidth,
            factor=None,
            n_clusters=n_clusters,
            n_threads=self.n_threads,
        )


@dataclass(frozen=True)
class TruncatedGaussian:
    """A Gaussian kernel on pairs of neighbors; ``factor`` as in ``FullGaussian``."""

    graph: NeighborGraph
    name: str
    bandwidth: Any
    factor: float | None
    psd: bool | None
    n_threads: int

    @property
    def points(self) -> Any:
        return self.graph.neighbors.X

    def kernel(self) -> Kernel:
        kernel = self.graph.kernel(self.bandwidth, self.n_threads)
        return kernel if self.psd is None else _as_dense(kernel, self.psd)

    @property
    def description(self) -> str:
        neighbors, origin = self.graph.neighbors, ""
        if isinstance(neighbors, PrecomputedNeighbors):
            origin = f" by {neighbors.origin}"
        return f"Gaussian, {self.name}, between nearest neighbors{origin}"

    def votes(self, labels: Labels, weights: Array, n_clusters: int) -> Votes:
        is_given = isinstance(self.graph.neighbors, PrecomputedNeighbors)
        votes: Callable[..., Votes] = GraphVotes if is_given else NeighborVotes
        return votes(
            self.graph.neighbors,
            labels,
            weights,
            bandwidth=self.bandwidth,
            factor=self.factor,
            n_clusters=n_clusters,
        )


@dataclass(frozen=True)
class OtherKernel:
    """A kernel given by its name or as a callable."""

    points: NDArray[Any]
    values: PairwiseKernel
    psd: bool | None
    n_threads: int
    multiplicity: Array | None
    bandwidth: None = None

    @property
    def name(self) -> str:
        return getattr(self.values.kernel, "__name__", str(self.values.kernel))

    description = name

    def kernel(self) -> Kernel:
        K = rescale_kernel_matrix(self.values(self.points, self.points), "kernel(X, X)")
        K = _times_multiplicity(K, self.multiplicity)
        return _dense_kernel(K, self.psd, self.values.hint, self)

    def votes(self, labels: Labels, weights: Array, n_clusters: int) -> Votes:
        return KernelVotes(self.values, self.points, labels, weights, n_clusters)


@dataclass(frozen=True)
class Precomputed:
    """A kernel matrix, dense or sparse; None in a fitted model, as it is too large."""

    matrix: Any
    psd: bool | None
    n_threads: int
    multiplicity: Array | None
    name: str = field(default="precomputed", init=False)
    description: str = field(default="precomputed", init=False)
    bandwidth: None = field(default=None, init=False)
    points: None = field(default=None, init=False)

    def kernel(self) -> Kernel:
        hint = "Use a matrix with larger entries"
        if sparse.issparse(self.matrix):
            kernel = SparseKernel.from_similarities(
                self.matrix, "X", hint, self.n_threads, self.multiplicity
            )
            return kernel if self.psd is None else _as_dense(kernel, self.psd)
        K = rescale_kernel_matrix(self.matrix, "X")
        K = _times_multiplicity(K, self.multiplicity)
        return _dense_kernel(K, self.psd, hint, self)

    def votes(self, labels: Labels, weights: Array, n_clusters: int) -> Votes:
        return KernelVotes(None, None, labels, weights, n_clusters)


def _times_multiplicity(K: NDArray[Any], multiplicity: Array | None) -> NDArray[Any]:
    """Return K_ij m_i m_j; K itself, which may be the caller's, is not changed."""
    if multiplicity is not None:
        K = K.copy()
        scale_by_multiplicity(K, multiplicity)
    return K


def _dense_kernel(
    K: NDArray[Any], psd: bool | None, hint: str, source: Any
) -> DenseKernel:
    """Return the dense kernel K of ``source``, a candidate or a sparse kernel."""
    return DenseKernel(
        K,
        source.n_threads,
        points=source.points,
        psd=psd,
        hint=hint,
        multiplicity=source.multiplicity,
    )


def _as_dense(kernel: SparseKernel, psd: bool) -> DenseKernel:
    """Return a sparse kernel as a dense one, split or taken as it is.

    Its diagonal is that of the kernel function. K- has no zeros, so that a sparse K
    would gain nothing.
    """
    K = kernel.as_array()
    np.fill_diagonal(K, kernel.duplicate_similarity)
    return _dense_kernel(K, psd, kernel.hint, kernel)


def default_n_neighbors(n: int, n_features: int, n_clusters: int) -> int:
    """Return the number of neighbors of each of n points: 20, or 5."""
    few = n < (N_NEIGHBORS + _FEWER_NEIGHBORS) * n_clusters
    return _FEWER_NEIGHBORS if few and n_features >= MANY_FEATURES else N_NEIGHBORS


def check_fit_memory(n: int, k: int, n_clusters: int) -> None:
    """Raise MemoryError if truncated kernels of n points would take too much."""
    check_memory(
        n * (_NEIGHBOR_BYTES * min(k, n) + _CLUSTER_BYTES * n_clusters),
        f"A fit of {n:,} points, {k} neighbors of each and {n_clusters} clusters",
        "Use fewer points or neighbors.",
    )


def make_candidates(
    X: Any,
    settings: Settings,
    context: FitContext,
    *,
    n_clusters: int = 1,
    n_features: int = 1,
    multiplicity: Array | None = None,
) -> list[Candidate]:
    """Return the candidate kernels of the points X.

    With a relative ``multiplicity`` m (n,), of median 1, they are K_ij m_i m_j.
    ``n_features`` is the number of features of the original data that vary.
    """
    kernel, psd, n_threads = settings.kernel, settings.psd, context.n_threads
    if kernel == "precomputed":
        return [Precomputed(X, psd, n_threads, multiplicity)]
    is_graph = kernel == "precomputed_neighbors"
    if not is_graph and kernel != "rbf":
        values = PairwiseKernel(kernel, settings.kernel_params or {})
        return [OtherKernel(X, values, psd, n_threads, multiplicity)]
    if not is_graph and X.shape[0] == 2 and (X[[0]] != X[[1]]).sum() == 0:
        settings = _settings_of_single_point(settings, sparse.issparse(X))
    k = settings.n_neighbors
    searches = not is_graph and settings.neighbors is None
    if searches and k is None and settings.bandwidth == "auto":
        k = default_n_neighbors(X.shape[0], n_features, n_clusters)
    if searches and k is None:
        return [_full_gaussian(X, settings, context, multiplicity)]
    n = X.shape[0]
    nnz_per_row = X.nnz // n if is_graph and sparse.issparse(X) else N_NEIGHBORS
    check_fit_memory(n, k or nnz_per_row, n_clusters)
    robust = settings.bandwidth == "auto"
    neighbors: Neighbors | PrecomputedNeighbors
    if k is not None and searches:
        callback = context.progress.callback(SlowSearchNotice(context.progress.write))
        neighbors = Neighbors(
            X, k, robust=robust, n_threads=n_threads, progress=callback
        )
    else:
        neighbors = PrecomputedNeighbors(X, k, settings.neighbors, robust=robust)
    return _truncated_gaussians(
        X, NeighborGraph(neighbors, multiplicity), settings, n_threads
    )


def _settings_of_single_point(settings: Settings, is_sparse: bool) -> Settings:
    """Return settings for one point, split in two: any bandwidth, no search."""
    bandwidth = 1.0 if settings.bandwidth == "auto" else settings.bandwidth
    k = 1 if is_sparse else settings.n_neighbors
    return replace(settings, bandwidth=bandwidth, n_neighbors=k, neighbors=None)


def _full_gaussian(
    X: NDArray[Any], settings: Settings, context: FitContext, multiplicity: Array | None
) -> Candidate:
    """Return the Gaussian kernel on all pairs, or its low-rank approximation."""
    n_threads = context.n_threads
    bandwidth = _resolve_bandwidth(X, settings.bandwidth, n_threads)
    check_bandwidth(bandwidth, len(X))
    name = "local" if np.ndim(bandwidth) else f"bandwidth {bandwidth:.4g}"
    if settings.approximation is None:
        factor = LOCAL_FACTOR if settings.bandwidth == "local" else None
        return FullGaussian(
            points=X,
            name=name,
            bandwidth=bandwidth,
            factor=factor,
            psd=settings.psd,
            n_threads=n_threads,
            multiplicity=multiplicity,
        )
    return LowRankGaussian(
        points=X,
        name=name,
        bandwidth=bandwidth,
        rank=settings.rank,
        seed=context.rng.randint(2**31 - 1),
        n_threads=n_threads,
        multiplicity=multiplicity,
    )


def _truncated_gaussians(
    X: Any, graph: NeighborGraph, settings: Settings, n_threads: int
) -> list[Candidate]:
    """Return the Gaussian kernels on a graph of neighbors, one per bandwidth."""

    def truncated(name: str, bandwidth: Any, factor: float | None) -> Candidate:
        check_bandwidth(bandwidth, X.shape[0])
        return TruncatedGaussian(
            graph, name, bandwidth, factor, settings.psd, n_threads
        )

    rule = settings.bandwidth
    if rule not in ("auto", "local"):
        bandwidth = _resolve_bandwidth(X, rule, n_threads)
        return [truncated(f"bandwidth {bandwidth:.4g}", bandwidth, None)]
    scales = graph.neighbors.scales
    if not (scales > 0).all():
        check_nonzero_bandwidth(scales, X, rule)
    if rule == "local":
        return [truncated("local", LOCAL_FACTOR * scales, LOCAL_FACTOR)]
    return [
        truncated(f"{factor:.3g} of the scales", factor * scales, factor)
        for factor in FACTORS
    ]


def _resolve_bandwidth(X: Any, bandwidth: float | str, n_threads: int) -> Any:
    if isinstance(bandwidth, str):
        return estimate_bandwidth(X, bandwidth, n_threads)
    return float(bandwidth)
