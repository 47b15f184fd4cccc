# SPDX-License-Identifier: BSD-3-Clause
"""Parameters and data -> the kernels a fit is tried with, usually one.

``bandwidth="auto"`` tries several: Gaussian kernels on the graph of the 20 nearest
neighbours, with bandwidths of 1 to 1/8 of the points' own scales; the scales of
outliers are capped. The widest, 1, sees through noise; between it and the others,
which are a factor sqrt(2) apart, one is left out, or two wide ones would outvote
narrow ones that are right. Where there are many features and few points to a cluster,
5 neighbours are more often of the same cluster (``default_neighbours``). partition.py
keeps one of the partitions they lead to. docs/notes/2026-11-17-views.md tells why
these, and what else was tried.

A candidate can make its kernel at any time: the fitted model keeps the chosen one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from cdsk._kernels.bandwidth import LOCAL_FACTOR, bandwidth_from_data, check_positive
from cdsk._kernels.dense import DenseKernel, scale_by_masses
from cdsk._kernels.gaussian import gaussian_gram
from cdsk._kernels.graph import GivenNeighbours, given_similarities
from cdsk._kernels.indefinite import split
from cdsk._kernels.interface import Candidate
from cdsk._kernels.lowrank import LowRankKernel
from cdsk._kernels.matrix import SymmetricMatrix
from cdsk._kernels.neighbours import Neighbours
from cdsk._kernels.pairwise import PairwiseKernel
from cdsk._kernels.sparse import NeighbourGraph
from cdsk._kernels.votes import GaussianVotes, GraphVotes, KernelVotes, NeighbourVotes
from cdsk._runtime import check_memory
from cdsk._validation import (
    check_bandwidth,
    check_random_state,
    ordinary_kernel_matrix,
)

NEIGHBOURS = 20
FACTORS = tuple(2.0 ** (-0.5 * i) for i in (0, 2, 3, 4, 5, 6))

# Neighbours where there are so many features and few points to a cluster.
_FEWER_NEIGHBOURS, MANY_FEATURES = 5, 60

# Bytes of a fit of truncated kernels, for every point and neighbour, and for every
# point and cluster: the sparse matrices of a kernel and its similarity, and the vectors
# of six fits. A little less than measured at the peak, 50 000 x 10: 4195, 4804 and 7980
# for a point with 20 neighbours and 2, 10 and 30 clusters, 8014 with 40 neighbours and
# 10 clusters. In the plane it is up to twice as much: the eigensolver asks for the room
# of its basis itself.
_NEIGHBOUR_BYTES, _CLUSTER_BYTES = 170, 100


@dataclass(frozen=True)
class FullGaussian:
    """A Gaussian kernel on all pairs of points; ``factor`` of local scales or None."""

    points: np.ndarray
    name: str
    bandwidth: Any
    factor: float | None
    psd: bool | None
    n_threads: int
    masses: np.ndarray | None

    def kernel(self):
        K = gaussian_gram(self.points, self.bandwidth, n_threads=self.n_threads)
        scale_by_masses(K, self.masses)
        # Semi-definite with one bandwidth. With local ones splitting was measured to
        # change no score and to take longer: docs/method.md, section 11.
        psd = True if self.factor is None or self.psd is None else self.psd
        how = self.n_threads, "a larger bandwidth", self.masses
        return _dense(K, self.points, psd, *how)

    @property
    def description(self):
        return f"Gaussian, {self.name}"

    def votes(self, labels, weights, n_clusters):
        return GaussianVotes(
            *(self.points, labels, weights, self.bandwidth, self.factor),
            *(n_clusters, self.n_threads),
        )


@dataclass(frozen=True)
class LowRankGaussian:
    """A Gaussian kernel of one bandwidth on all pairs of points, approximated."""

    points: np.ndarray
    name: str
    bandwidth: float
    n_components: int | None
    seed: int
    n_threads: int
    masses: np.ndarray | None

    def kernel(self):
        return LowRankKernel(
            *(self.points, self.bandwidth, self.n_components, self.seed),
            *(self.n_threads, self.masses),
        )

    @property
    def description(self):
        return f"Gaussian, {self.name}, by a matrix of low rank"

    def votes(self, labels, weights, n_clusters):
        return GaussianVotes(
            *(self.points, labels, weights, self.bandwidth, None),
            *(n_clusters, self.n_threads),
        )


@dataclass(frozen=True)
class TruncatedGaussian:
    """A Gaussian kernel on pairs of neighbours; ``factor`` of local scales or None."""

    graph: NeighbourGraph
    name: str
    bandwidth: Any
    factor: float | None
    psd: bool | None
    n_threads: int

    @property
    def points(self):
        return self.graph.neighbours.X

    def kernel(self):
        kernel = self.graph.kernel(self.bandwidth, self.n_threads)
        return kernel if self.psd is None else _full(kernel, self.psd)

    @property
    def description(self):
        given = isinstance(self.graph.neighbours, GivenNeighbours)
        origin = f" by {self.graph.neighbours.origin}" if given else ""
        return f"Gaussian, {self.name}, between nearest neighbours{origin}"

    def votes(self, labels, weights, n_clusters):
        given = isinstance(self.graph.neighbours, GivenNeighbours)
        return (GraphVotes if given else NeighbourVotes)(
            *(self.graph.neighbours, labels, weights),
            *(self.bandwidth, self.factor, n_clusters),
        )


@dataclass(frozen=True)
class OtherKernel:
    """A kernel that has a name or is a callable."""

    points: np.ndarray
    values: PairwiseKernel
    psd: bool | None
    n_threads: int
    masses: np.ndarray | None
    bandwidth: None = None

    @property
    def name(self):
        return getattr(self.values.kernel, "__name__", str(self.values.kernel))

    description = name

    def kernel(self):
        K = self.values(self.points, self.points)
        K = ordinary_kernel_matrix(K, "kernel(X, X)")
        K = _with_masses(K, self.masses)
        how = self.n_threads, self.values.remedy, self.masses
        return _dense(K, self.points, self.psd, *how)

    def votes(self, labels, weights, n_clusters):
        return KernelVotes(self.values, self.points, labels, weights, n_clusters)


@dataclass(frozen=True)
class Precomputed:
    """A kernel matrix, dense or sparse, which is too large to be kept.

    The fitted model has None.
    """

    matrix: Any
    psd: bool | None
    n_threads: int
    masses: np.ndarray | None
    name: str = field(default="precomputed", init=False)
    description: str = field(default="precomputed", init=False)
    bandwidth: None = field(default=None, init=False)
    points: None = field(default=None, init=False)

    def kernel(self):
        remedy = "a matrix with larger entries"
        if sparse.issparse(self.matrix):
            how = "X", remedy, self.n_threads, self.masses
            kernel = given_similarities(self.matrix, *how)
            return kernel if self.psd is None else _full(kernel, self.psd)
        K = _with_masses(ordinary_kernel_matrix(self.matrix, "X"), self.masses)
        return _dense(K, None, self.psd, self.n_threads, remedy, self.masses)

    def votes(self, labels, weights, n_clusters):
        return KernelVotes(None, None, labels, weights, n_clusters)


def _with_masses(K, masses):
    """K_ij m_i m_j; K may be that of the caller."""
    if masses is not None:
        K = K.copy()
        scale_by_masses(K, masses)
    return K


def _dense(K, points, psd, n_threads, remedy, masses):
    negative = split(SymmetricMatrix(K, n_threads), psd)
    return DenseKernel(K, n_threads, points, negative, remedy, masses)


def _full(kernel, psd):
    """A sparse kernel, split or taken as it is, with its diagonal of ones.

    K- has no zeros, so that nothing is gained by a sparse K.
    """
    K = kernel.as_array()
    np.fill_diagonal(K, kernel.of_copies)
    how = kernel.n_threads, kernel.remedy, kernel.masses
    return _dense(K, kernel.points, psd, *how)


def default_neighbours(n, n_features, n_clusters):
    """How many neighbours of each of n points the kernels have: 20, or 5."""
    few = n < (NEIGHBOURS + _FEWER_NEIGHBOURS) * n_clusters
    fewer = few and n_features >= MANY_FEATURES
    return _FEWER_NEIGHBOURS if fewer else NEIGHBOURS


def check_room(n, k, n_clusters):
    """Raise MemoryError where truncated kernels of n points would take too much."""
    check_memory(
        n * (_NEIGHBOUR_BYTES * min(k, n) + _CLUSTER_BYTES * n_clusters),
        f"A fit of {n:,} points, {k} neighbours of each and {n_clusters} clusters",
        "Use fewer points or neighbours.",
    )


def find_candidates(
    X: Any,
    *,
    kernel: Any,
    kernel_params: Mapping[str, Any] | None,
    psd: bool | None,
    bandwidth: float | str,
    n_neighbors: int | None,
    n_threads: int,
    n_clusters: int = 1,
    n_features: int = 1,
    neighbors: Any = None,
    progress: Callable[[float], object] | None = None,
    approximation: str | None = None,
    n_components: int | None = None,
    rng: np.random.RandomState | None = None,
    masses: np.ndarray | None = None,
) -> list[Candidate]:
    """The kernels of X that the parameters of the estimator ask for.

    With ``masses`` m (n,), of median 1, they are K_ij m_i m_j. ``n_features`` is how
    many of the data vary.
    """
    if kernel == "precomputed":
        return [Precomputed(X, psd, n_threads, masses)]
    given = neighbors is not None or kernel == "precomputed_neighbors"
    if kernel != "rbf" and not given:
        values = PairwiseKernel(kernel, kernel_params or {})
        return [OtherKernel(X, values, psd, n_threads, masses)]
    if bandwidth == "auto" and n_neighbors is None and not given:
        n_neighbors = default_neighbours(X.shape[0], n_features, n_clusters)
    if n_neighbors is None and not given:
        value = _resolve(X, bandwidth, n_threads)
        factor = LOCAL_FACTOR if bandwidth == "local" else None
        check_bandwidth(value, len(X))
        if approximation is not None:
            how = n_components, check_random_state(rng).randint(2**31 - 1), n_threads
            return [LowRankGaussian(X, _name(value), value, *how, masses)]
        return [FullGaussian(X, _name(value), value, factor, psd, n_threads, masses)]

    n = X.shape[0]
    is_graph = kernel == "precomputed_neighbors" and sparse.issparse(X)
    k = n_neighbors or (X.nnz // n if is_graph else NEIGHBOURS)
    check_room(n, k, n_clusters)
    robust = bandwidth == "auto"
    if given:
        neighbours = GivenNeighbours(X, n_neighbors, neighbors, robust=robust)
    else:
        neighbours = Neighbours(
            X, n_neighbors, robust=robust, n_threads=n_threads, progress=progress
        )
    graph = NeighbourGraph(neighbours, masses)

    def truncated(name, value, factor):
        check_bandwidth(value, X.shape[0])
        return TruncatedGaussian(graph, name, value, factor, psd, n_threads)

    if bandwidth not in ("auto", "local"):
        value = _resolve(X, bandwidth, n_threads)
        return [truncated(_name(value), value, None)]
    scales = check_positive(neighbours.scales, X, bandwidth)
    if bandwidth == "local":
        return [truncated("local", LOCAL_FACTOR * scales, LOCAL_FACTOR)]
    return [
        truncated(f"{factor:.3g} of the scales", factor * scales, factor)
        for factor in FACTORS
    ]


def _name(bandwidth):
    return "local" if np.ndim(bandwidth) else f"bandwidth {bandwidth:.4g}"


def _resolve(X, bandwidth, n_threads):
    if isinstance(bandwidth, str):
        return bandwidth_from_data(X, bandwidth, n_threads)
    return float(bandwidth)
