# SPDX-License-Identifier: BSD-3-Clause
"""Parameters and data -> the kernels a fit is tried with, usually one.

``bandwidth="auto"`` tries several: Gaussian kernels on the graph of the 20 nearest
neighbours, with bandwidths from 0.7 to 1/8 of the points' own scales, a factor sqrt(2)
apart; the scales of outliers are capped. partition.py keeps one of the partitions they
lead to. docs/defaults.md tells why these, and what else was tried.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cdsk._kernels.bandwidth import LOCAL_FACTOR, bandwidth_from_data, check_positive
from cdsk._kernels.dense import DenseKernel
from cdsk._kernels.gaussian import gaussian_gram
from cdsk._kernels.indefinite import split
from cdsk._kernels.neighbours import Neighbours
from cdsk._kernels.pairwise import PairwiseKernel
from cdsk._kernels.sparse import NeighbourGraph, SparseKernel
from cdsk._kernels.votes import GaussianVotes, KernelVotes, NeighbourVotes
from cdsk._validation import check_bandwidth, check_kernel_matrix

NEIGHBOURS = 20
FACTORS = tuple(2.0 ** (-0.5 * i) for i in range(1, 7))


@dataclass
class Candidate:
    """A kernel of the data, and what makes a classifier of it once it is fitted."""

    name: str
    bandwidth: float | np.ndarray | None
    kernel: DenseKernel | SparseKernel
    # (labels, weights, n_clusters) -> object with log_votes
    make_votes: Callable


def rbf_candidates(X, bandwidth, n_neighbors, psd, rng, n_threads):
    """Gaussian kernels of X: on all pairs of points, or on pairs of neighbours."""
    if bandwidth == "auto" and n_neighbors is None:
        n_neighbors = NEIGHBOURS
    if n_neighbors is None:
        return [_full(X, bandwidth, psd, rng, n_threads)]
    robust = bandwidth == "auto"
    graph = NeighbourGraph(
        Neighbours(X, n_neighbors, robust=robust, n_threads=n_threads)
    )
    scales = graph.neighbours.scales
    if bandwidth == "auto":
        check_positive(scales, X, bandwidth)
        values = {f"{factor:.3g} of the scales": factor for factor in FACTORS}
    elif bandwidth == "local":
        check_positive(scales, X, bandwidth)
        values = {"local": LOCAL_FACTOR}
    else:
        value = _resolve(X, bandwidth, n_threads)
        name = f"bandwidth {value:.4g}"
        return [_truncated(graph, name, value, None, psd, rng, n_threads)]
    return [
        _truncated(graph, name, factor * scales, factor, psd, rng, n_threads)
        for name, factor in values.items()
    ]


def other_candidate(X, kernel, parameters, psd, rng, n_threads):
    """The kernel that is a matrix, a name or a callable."""
    if kernel == "precomputed":
        K, points, values = check_kernel_matrix(X, "X"), None, None
    else:
        values = PairwiseKernel(kernel, parameters)
        K, points = check_kernel_matrix(values(X, X), "kernel(X, X)"), X
    dense = DenseKernel(K, n_threads, points=points)
    dense.negative = split(dense, psd, rng)

    def make_votes(labels, weights, n_clusters):
        return KernelVotes(values, X, labels, weights, n_clusters)

    return Candidate(getattr(kernel, "__name__", str(kernel)), None, dense, make_votes)


def _full(X, bandwidth, psd, rng, n_threads):
    value = _resolve(X, bandwidth, n_threads)
    check_bandwidth(value, len(X))
    kernel = DenseKernel(gaussian_gram(X, value, n_threads=n_threads), n_threads, X)
    # Semi-definite with one bandwidth. With local ones splitting was measured to change
    # no score and to take longer: docs/method.md, section 11.
    one = np.ndim(value) == 0
    kernel.negative = split(kernel, True if one or psd is None else psd, rng)

    def make_votes(labels, weights, n_clusters):
        return GaussianVotes(X, labels, weights, value, n_clusters, n_threads)

    name = "local" if np.ndim(value) else f"bandwidth {value:.4g}"
    return Candidate(name, value, kernel, make_votes)


def _truncated(graph, name, bandwidth, factor, psd, rng, n_threads):
    """``factor``: of the local scales; None for one bandwidth."""
    X = graph.neighbours.X
    check_bandwidth(bandwidth, len(X))
    kernel = graph.kernel(bandwidth, n_threads)
    if psd is not None:
        # Split, or taken as it is, with its diagonal of ones. K- has no zeros, so that
        # nothing is gained by a sparse K.
        K = kernel.as_array()
        np.fill_diagonal(K, 1.0)
        kernel = DenseKernel(K, n_threads, X)
        kernel.negative = split(kernel, psd, rng)

    def make_votes(labels, weights, n_clusters):
        return NeighbourVotes(
            graph.neighbours, labels, weights, bandwidth, factor, n_clusters
        )

    return Candidate(name, bandwidth, kernel, make_votes)


def _resolve(X, bandwidth, n_threads):
    if isinstance(bandwidth, str):
        return bandwidth_from_data(X, bandwidth, n_threads)
    return float(bandwidth)
