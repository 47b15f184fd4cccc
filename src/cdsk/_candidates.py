# SPDX-License-Identifier: BSD-3-Clause
"""Settings and points -> the candidate kernels of a fit, usually one.

``bandwidth="auto"`` gives six candidates: Gaussian kernels on the graph of the 20
nearest neighbors, with bandwidths of 1 to 1/8 of the local scale of each point; the
scales of outliers are capped. The widest, 1, is robust to noise. The factors are
sqrt(2) apart; the one after the widest is left out, as two wide kernels would outvote
narrow ones that are right. With many features and few points per cluster, 5 neighbors
are more often of the same cluster (``default_n_neighbors``). Up to 1000 points there is
a seventh candidate, on all pairs with one bandwidth, which is robust to noise too.
``_partition_choice.py`` selects among the partitions. The alternatives that were
measured are in docs/notes/2026-11-17-views.md and 2026-11-18-voters.md.

A candidate can make its kernel at any time: the fitted model keeps the selected one.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cdsk._approximate import is_worthwhile
from cdsk._neighbors import (
    SCALE_NEIGHBOR,
    Neighbors,
    PrecomputedNeighbors,
    SlowSearchNotice,
)
from cdsk._operators.base import Array, Candidate, Kernel, Votes
from cdsk._operators.dense import DenseKernel, scale_by_multiplicity
from cdsk._operators.low_rank import LowRankKernel
from cdsk._operators.sparse import NeighborGraph, SparseKernel
from cdsk._pairwise import (
    LOCAL_FACTOR,
    PairwiseKernel,
    check_nonzero_bandwidth,
    estimate_bandwidth,
    gaussian_gram,
)
from cdsk._settings import FitContext, Settings
from cdsk._utils import check_memory
from cdsk._validation import check_bandwidth, rescale_kernel_matrix
from cdsk._voting import GaussianVotes, KernelVotes, NeighborVotes

Labels = NDArray[np.int64]

N_NEIGHBORS = 20
FACTORS = tuple(2.0 ** (-0.5 * i) for i in (0, 2, 3, 4, 5, 6))

# Neighbors if there are so many features and few points per cluster.
_FEWER_NEIGHBORS, MANY_FEATURES = 5, 60

# Points up to which a kernel on all pairs is tried too: 8 MB. Of 1500 points it would
# take a third of a fit; in noise that changes one of 24 sets.
MAX_FULL_POINTS = 1000

# Bandwidths of the kernels of tables with categories, in units of the median distance,
# besides that of the seventh candidate: docs/notes/2026-11-19-tables.md.
WIDE_FACTORS = 0.25, 0.5, 1.0

# Rows up to which they are fitted to all; of more, to so many random ones.
MAX_TABLE_ROWS = 3000

# The candidate whose eigenvectors are a start for it, 0.25 of the scales: a fit of 800
# points takes 0.7 of the time.
START_OF_FULL = 3

# Memory of a fit of truncated kernels per point and neighbor, and per point and
# cluster: the sparse matrices of a kernel and its similarity, and the vectors of six
# fits. About the measured peak at 30 000 x 10: 2120 and 3980 bytes per point with 20
# neighbors and 2 and 30 clusters, 4050 with 40 neighbors and 10 clusters. In
# the plane it is up to twice as much: the eigensolver checks the memory of its basis
# itself.
_NEIGHBOR_BYTES, _CLUSTER_BYTES = 90, 75


@dataclass(frozen=True, kw_only=True)
class Gaussian:
    """A Gaussian kernel on all pairs of points, or on the pairs of a neighbor graph.

    ``factor`` is the bandwidth in units of the local scales; None: one bandwidth. With
    a ``seed`` the kernel on all pairs is approximated by a matrix of low rank.
    """

    # the points; None with a graph, which has them
    X: Any
    graph: NeighborGraph | None
    name: str
    description: str
    bandwidth: Any
    factor: float | None
    psd: bool | None
    rank: int | None
    seed: int | None
    n_threads: int
    multiplicity: Array | None

    def kernel(self) -> Kernel:
        """Return the kernel of the points."""
        X, b, psd = self.X, self.bandwidth, self.psd
        n_threads, m = self.n_threads, self.multiplicity
        if self.graph is not None:
            kernel = self.graph.kernel(b, n_threads)
            return kernel if psd is None else _as_dense(kernel, psd)
        if self.seed is not None:
            return LowRankKernel(X, b, self.rank, self.seed, n_threads, m)
        K = gaussian_gram(X, b, n_threads=n_threads)
        scale_by_multiplicity(K, m)
        # Positive semi-definite with one bandwidth. With local ones splitting changed
        # no score and took longer: docs/method.md, section 11.
        psd = True if self.factor is None or psd is None else psd
        hint = "Increase `bandwidth`"
        return DenseKernel(K, n_threads, X, psd=psd, hint=hint, multiplicity=m)

    def votes(self, labels: Labels, weights: Array, n_clusters: int) -> Votes:
        """Return the classifier of a partition."""
        b, factor, n_threads = self.bandwidth, self.factor, self.n_threads
        if self.graph is None:
            return GaussianVotes(
                self.X, labels, weights, b, factor, n_clusters, n_threads
            )
        return NeighborVotes(
            self.graph.neighbors, labels, weights, b, factor, n_clusters
        )


@dataclass(frozen=True, kw_only=True)
class OtherKernel:
    """A kernel given by its name, as a callable, or as a matrix, dense or sparse.

    ``values`` computes it from the points X; None: X is the matrix. A fitted model
    does not keep a matrix, as it is too large.
    """

    X: Any
    name: str
    description: str
    values: PairwiseKernel | None
    psd: bool | None
    n_threads: int
    multiplicity: Array | None
    bandwidth: None = None

    def kernel(self) -> Kernel:
        """Return the kernel of the points."""
        K, name, hint = self.X, "X", "Use a matrix with larger entries"
        n_threads, m = self.n_threads, self.multiplicity
        if self.values is not None:
            K, name = self.values(self.X, self.X), "kernel(X, X)"
            hint = self.values.hint
        elif sparse.issparse(K):
            kernel = SparseKernel.from_similarities(K, name, hint, n_threads, m)
            return kernel if self.psd is None else _as_dense(kernel, self.psd)
        K = rescale_kernel_matrix(K, name)
        if m is not None:
            K = K.copy()  # it may be the caller's
            scale_by_multiplicity(K, m)
        X = None if self.values is None else self.X
        return DenseKernel(K, n_threads, X, psd=self.psd, hint=hint, multiplicity=m)

    def votes(self, labels: Labels, weights: Array, n_clusters: int) -> Votes:
        """Return the classifier of a partition."""
        return KernelVotes(self.values, self.X, labels, weights, n_clusters)


def _as_dense(kernel: SparseKernel, psd: bool) -> DenseKernel:
    """Return a sparse kernel as a dense one, split or taken as it is.

    Its diagonal is that of the kernel function. K- has no zeros, so that a sparse K
    would gain nothing.
    """
    K = kernel.as_array()
    np.fill_diagonal(K, kernel.duplicate_similarity)
    hint, m = kernel.hint, kernel.multiplicity
    return DenseKernel(
        K, kernel.n_threads, kernel.points, psd=psd, hint=hint, multiplicity=m
    )


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


def find_neighbors(X: Any, k: int, context: FitContext, **options: Any) -> Neighbors:
    """Return the k nearest neighbors of each point, of large X as it is asked for."""
    is_asked = isinstance(context.settings.neighbors, str)
    options["approximate"] = is_asked and is_worthwhile(*X.shape)
    neighbors = Neighbors(X, k, n_threads=context.n_threads, **options)
    if neighbors.recall is not None:
        context.recalls.append(neighbors.recall)
    return neighbors


def make_candidates(
    X: Any,
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
    settings, n, n_threads = context.settings, X.shape[0], context.n_threads
    kernel, is_graph = settings.kernel, settings.kernel == "precomputed_neighbors"
    if kernel != "rbf" and not is_graph:
        name, values = getattr(kernel, "__name__", str(kernel)), None
        if kernel != "precomputed":
            values = PairwiseKernel(kernel, settings.kernel_params or {})
        other = OtherKernel(
            X=X,
            name=name,
            description=name,
            values=values,
            psd=settings.psd,
            n_threads=n_threads,
            multiplicity=multiplicity,
        )
        return [other]
    if not is_graph and n == 2 and (X[[0]] != X[[1]]).sum() == 0:
        # one point, split in two: any bandwidth, no search
        b = 1.0 if settings.bandwidth == "auto" else settings.bandwidth
        k = 1 if sparse.issparse(X) else settings.n_neighbors
        settings = replace(settings, bandwidth=b, n_neighbors=k, neighbors=None)
    k, is_auto = settings.n_neighbors, settings.bandwidth == "auto"
    if is_auto and has_categories(context):
        return wide_candidates(X, context, multiplicity)
    neighbors: Neighbors | PrecomputedNeighbors | None = None
    if is_graph or settings.transformer is not None:
        nnz_per_row = X.nnz // n if is_graph and sparse.issparse(X) else N_NEIGHBORS
        check_fit_memory(n, k or nnz_per_row, n_clusters)
        neighbors = PrecomputedNeighbors(X, k, settings.transformer, robust=is_auto)
    elif k is not None or is_auto:
        k = k or default_n_neighbors(n, n_features, n_clusters)
        check_fit_memory(n, k, n_clusters)
        progress = context.progress
        callback = SlowSearchNotice(progress, X) if progress.verbose else None
        neighbors = find_neighbors(X, k, context, robust=is_auto, callback=callback)
    graph = None if neighbors is None else NeighborGraph(neighbors, multiplicity)
    candidates = _gaussians(X, graph, settings, context, multiplicity)
    is_found = isinstance(neighbors, Neighbors) and not sparse.issparse(X)
    if is_auto and is_found and SCALE_NEIGHBOR < n <= MAX_FULL_POINTS:
        # one more, on all pairs
        settings = replace(settings, bandwidth="neighbor")
        candidates += _gaussians(X, None, settings, context, multiplicity)
    return candidates


def has_categories(context: FitContext) -> bool:
    """Whether X has columns of categories, and its kernels are those of tables."""
    settings = context.settings
    is_default = settings.kernel == "rbf" and settings.bandwidth == "auto"
    is_free = settings.n_neighbors is None and settings.transformer is None
    return context.n_categories is not None and is_default and is_free


def sample_rows(
    X: Any, sample_weight: Array | None, context: FitContext
) -> Array | None:
    """Return weights of 0 for rows that are left out of a large table with categories.

    They are labeled as new rows. Rows of which anything is known are kept.
    """
    n = X.shape[0]
    weights = np.ones(n) if sample_weight is None else sample_weight
    rows = np.flatnonzero(weights)
    if not has_categories(context) or len(rows) <= MAX_TABLE_ROWS:
        return sample_weight
    kept = context.rng.choice(rows, MAX_TABLE_ROWS, replace=False)
    if context.constraints is not None:
        kept = np.union1d(kept, context.constraints.all_rows)
    return np.where(np.isin(np.arange(n), kept), weights, 0.0)


def wide_candidates(
    X: Any, context: FitContext, multiplicity: Array | None
) -> list[Candidate]:
    """Return the kernels on all pairs that tables with categories are clustered by.

    Many of their points are equally far, so that the nearest neighbors say little.
    """
    median = estimate_bandwidth(X, "median", context.n_threads)
    wide = [factor * float(median) for factor in WIDE_FACTORS]
    rules: list[str | float] = ["neighbor", *wide]
    candidates: list[Candidate] = []
    for rule in rules if len(X) > SCALE_NEIGHBOR else rules[1:]:
        settings = replace(context.settings, bandwidth=rule)
        candidates += _gaussians(X, None, settings, context, multiplicity)
    return candidates


def _gaussians(
    X: Any,
    graph: NeighborGraph | None,
    settings: Settings,
    context: FitContext,
    multiplicity: Array | None,
) -> list[Candidate]:
    """Return the Gaussian kernels on all pairs or on a graph, one per bandwidth."""
    rule, n_threads, seed, suffix = settings.bandwidth, context.n_threads, None, ""
    factors: tuple[float | None, ...] = FACTORS if rule == "auto" else (None,)
    factors = (LOCAL_FACTOR,) if rule == "local" else factors
    if graph is not None:
        suffix, scales = ", between nearest neighbors", graph.neighbors.scales
        if isinstance(graph.neighbors, PrecomputedNeighbors):
            suffix += f" by {graph.neighbors.origin}"
        if factors[0] is not None and not (scales > 0).all():
            check_nonzero_bandwidth(scales, X, str(rule))
    elif settings.approximation is not None:
        suffix, seed = ", low-rank approximation", context.rng.randint(2**31 - 1)
    candidates: list[Candidate] = []
    for factor in factors:
        if graph is not None and factor is not None:
            bandwidth: Any = factor * scales
        elif isinstance(rule, str):
            bandwidth = estimate_bandwidth(X, rule, n_threads)
        else:
            bandwidth = float(rule)
        check_bandwidth(bandwidth, X.shape[0])
        name = "local" if factor is not None else f"bandwidth {bandwidth:.4g}"
        name = f"{factor:.3g} of the scales" if rule == "auto" else name
        candidate = Gaussian(
            X=X if graph is None else None,
            graph=graph,
            name=name,
            description=f"Gaussian, {name}{suffix}",
            bandwidth=bandwidth,
            factor=factor,
            psd=settings.psd,
            rank=settings.rank,
            seed=seed,
            n_threads=n_threads,
            multiplicity=multiplicity,
        )
        candidates.append(candidate)
    return candidates
