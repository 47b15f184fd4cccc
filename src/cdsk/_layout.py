# SPDX-License-Identifier: BSD-3-Clause
"""Layout of a neighbor graph by attraction along its edges and repulsion of all points.

    neighbors --> fuzzy_weights, graph_weights --> layout --> positions
    kernel -----> spectral_start --------------------^
    rows of an embedding --> principal_start --------^

``layout_of_graph`` does it all for a ``NeighborGraph``.

Eigenvectors of a graph only attract: clusters that are connected by some edges overlap
in a spectral embedding. A layout starts from them and also repels points that are not
neighbors, with the loss of UMAP (_forces.pyx); clusters become dense and gaps empty.
Memory is O(n k).
"""

import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cdsk._eigensolvers import ROUGH
from cdsk._forces import SOFTENING, WIDTH, Forces
from cdsk._neighbors import Callback, IndexArray, entry_rows
from cdsk._operators.base import Array, Kernel
from cdsk._operators.sparse import NeighborGraph
from cdsk._spectral import spectral_step
from cdsk._utils import check_memory, limit_blas_threads

MAX_COMPONENTS = WIDTH
N_COMPONENTS = 10
N_EPOCHS = 300

# Random points that repel an end of an edge whenever it attracts.
N_NEGATIVES = 5

# Halvings of the interval that holds the decay of a point's weights, and the shortest
# decay, relative to the mean distance to its neighbors: as in UMAP.
_N_HALVINGS = 40
_MIN_DECAY = 1e-3

# Memory of the weights per pair of neighbors: the measured peaks at 20 000 points with
# 20 neighbors, in 2 and 10 dimensions, are 112 and 106 bytes.
_WEIGHT_BYTES = 112

# Largest coordinate of a start, and the standard deviation of the noise that separates
# points with equal eigenvectors.
_START_EXTENT, _START_NOISE = 10.0, 1e-2

# Singular values of the eigenvectors below this, relative to the largest, are rounding.
_RANK_TOLERANCE = 1e-6

# Squared distances of pairs that are computed at a time.
_CHUNK_SIZE = 2**22


# Weights of edges.


def fuzzy_weights(distances: Array, indices: IndexArray) -> sparse.csr_array:
    """Return symmetric weights (n, n) between 0 and 1 of the edges to k neighbors.

    Those of UMAP: a_ij = exp(-(d_ij - p_i) / t_i), at most 1, where p_i is the distance
    to the nearest point at another place and t_i makes sum_j a_ij = log2(k + 1); then
    a_ij + a_ji - a_ij a_ji. Every point has an edge of weight 1.

    Parameters
    ----------
    distances, indices : arrays (n, k)
        The neighbors of each point without itself, nearest first.
    """
    n, k = distances.shape
    starts = np.arange(0, n * k + 1, k) if k else np.zeros(n + 1, dtype=np.int64)
    parts = distances.ravel(), indices.ravel(), starts
    return graph_weights(sparse.csr_array(parts, shape=(n, n)))


def graph_weights(graph: sparse.csr_array) -> sparse.csr_array:
    """Return ``fuzzy_weights`` of a graph whose rows may have different lengths.

    Parameters
    ----------
    graph : csr_array (n, n)
        Row i holds the distances of point i to its neighbors, in any order and without
        itself; explicit zeros are distances.
    """
    # the directed weights, their transpose, sum and product, and what they come from
    n_bytes = _WEIGHT_BYTES * graph.nnz
    check_memory(n_bytes, "The graph of the layout", "Use fewer neighbors.")
    values, sizes = np.empty(graph.nnz), np.diff(graph.indptr)
    for k in np.unique(sizes[sizes > 0]):
        entries = graph.indptr[:-1][sizes == k, np.newaxis] + np.arange(k)
        values[entries] = _directed_weights(graph.data[entries].astype(np.float64))
    directed = sparse.csr_array((values, graph.indices, graph.indptr), graph.shape)
    transposed = directed.T.tocsr()
    weights = sparse.csr_array(
        directed + transposed - directed.multiply(transposed).tocsr()
    )
    weights.eliminate_zeros()
    weights.sort_indices()
    return weights


def _directed_weights(distances: Array) -> Array:
    """Return a_ij (n, k) of distances (n, k)."""
    beyond = _distances_beyond_nearest(distances)
    decays = _decays(beyond, _MIN_DECAY * distances.mean(axis=1))
    return np.asarray(np.exp(-beyond / decays[:, np.newaxis]))


def _distances_beyond_nearest(distances: Array) -> Array:
    """Return the distances (n, k) minus that to the nearest point at another place."""
    nearest = np.where(distances > 0, distances, np.inf).min(axis=1)
    nearest = np.where(np.isfinite(nearest), nearest, 0.0)
    beyond: Array = np.maximum(distances - nearest[:, np.newaxis], 0.0)
    return beyond


def _decays(beyond: Array, least: Array) -> Array:
    """Return t_i > 0 with sum_j exp(-beyond_ij / t_i) = log2(k + 1), or the least.

    The sum grows with t_i from the number of zeros to k. If there are more zeros than
    the target, t_i is the least.
    """
    k = beyond.shape[1]
    target = np.log2(k + 1)
    least = np.maximum(least, np.finfo(np.float64).tiny)
    # at this t_i one term is 1 and each at least exp(-1 / k): above the target
    low, high = least, np.maximum(least, k * beyond.max(axis=1))
    for _ in range(_N_HALVINGS):
        # the geometric mean: t_i may be far below the largest distance
        middle = np.sqrt(low) * np.sqrt(high)
        sums = np.exp(-beyond / middle[:, np.newaxis]).sum(axis=1)
        low, high = np.where(sums < target, [middle, high], [low, middle])
    return np.asarray(high)


# Start.


def spectral_start(kernel: Kernel, n_components: int, random_state: int = 0) -> Array:
    """Return the leading eigenvectors of a graph as a start (n, n_components).

    Rough ones do: the layout moves all points far.
    """
    rng = np.random.RandomState(random_state)
    if kernel.n < 2:
        return _START_NOISE * rng.standard_normal((kernel.n, n_components))
    with limit_blas_threads():
        similarity = kernel.similarity(np.full(kernel.n, 1.0 / kernel.n), 1.0)
        n_vectors = min(n_components + 1, kernel.n - 1)
        embedding = spectral_step(similarity, n_vectors, rng, tol=ROUGH)
        Y = (embedding.vectors * embedding.lengths).T
        return principal_start(Y, n_components, rng)


def principal_start(Y: Array, n_components: int, rng: np.random.RandomState) -> Array:
    """Return a start (n, n_components): the principal components of rows Y (n, c).

    Each gets the same variance. If there are too few, the other coordinates are noise.
    """
    vectors, values, _ = np.linalg.svd(Y - Y.mean(axis=0), full_matrices=False)
    rank = np.count_nonzero(values > _RANK_TOLERANCE * np.linalg.norm(Y))
    rank = min(rank, n_components)
    start = np.zeros((len(Y), n_components))
    start[:, :rank] = vectors[:, :rank]
    if rank:
        start *= _START_EXTENT / np.abs(start).max()
    return start + _START_NOISE * rng.standard_normal(start.shape)


# Layout.


def layout_of_graph(
    graph: NeighborGraph,
    n_components: int,
    *,
    seed: int = 0,
    n_threads: int = 1,
    callback: Callback | None = None,
) -> Array:
    """Return the positions (n, n_components) of the points of a neighbor graph."""
    neighbors = graph.neighbors
    kernel = graph.kernel(neighbors.scales, n_threads)
    return layout(
        graph_weights(neighbors.kneighbors_graph()),
        spectral_start(kernel, n_components, seed),
        random_state=seed,
        n_threads=n_threads,
        callback=callback,
    )


def layout(
    weights: sparse.csr_array,
    start: NDArray[np.floating],
    *,
    n_epochs: int = N_EPOCHS,
    random_state: int = 0,
    n_threads: int = 1,
    callback: Callback | None = None,
    ids: Any = None,
) -> Array:
    """Return the positions (n, n_components) of points after some epochs.

    The length of a step decreases linearly from 1 to 0. The result is the same for any
    number of threads.

    Parameters
    ----------
    weights : csr_array (n, n)
        Symmetric weights of the edges, not negative, without a diagonal. Edges act in
        proportion to them, the heaviest in every epoch.
    start : array (n, n_components)
        First positions, about as far apart as those of ``spectral_start``. At most
        ``MAX_COMPONENTS`` columns.
    n_epochs : int, default=300
        Number of moves of each point.
    random_state : int, default=0
        Seed of the random numbers, at least 0.
    n_threads : int, default=1
        Number of threads.
    callback : callable, default=None
        Called after each epoch with the fraction that is done.
    ids : array (n,), default=None
        A permutation of 0 ... n - 1 that random numbers and the order of the edges of a
        point belong to, instead of the order of the points: then that does not change
        the layout beyond rounding. None: a fixed random one. In spatial order, edges of
        one direction act one after the other, and the last ones count most.
    """
    n, n_components = _check_start(start, weights.shape[0])
    # both buffers; column, rate and phase of an entry, and what they are made from
    check_memory(
        n * (8 * WIDTH + 24) + 64 * weights.nnz, "The layout", "Use fewer points."
    )
    center = np.sum(start, axis=0, dtype=np.float64) / max(n, 1)
    positions = np.zeros((n, WIDTH), dtype=np.float32)
    # near 0 float32 has most digits
    positions[:, :n_components] = start - center
    moved = np.empty_like(positions)
    if ids is None:
        ids = np.random.RandomState(0).permutation(n)
    forces = make_forces(weights, seed=operator.index(random_state), ids=ids)
    for epoch in range(n_epochs):
        forces.move(positions, moved, epoch, 1.0 - epoch / n_epochs, n_threads)
        positions, moved = moved, positions
        if callback is not None:
            callback((epoch + 1) / n_epochs)
    return positions[:, :n_components] + center


def _check_start(start: NDArray[np.floating], n: int) -> tuple[int, int]:
    """Return the shape of a start for n points."""
    if start.ndim != 2 or len(start) != n or not 1 <= start.shape[1] <= MAX_COMPONENTS:
        raise ValueError(
            f"start must have a row for each of the {n} points and 1 to "
            f"{MAX_COMPONENTS} columns; got shape {start.shape}."
        )
    if not np.isfinite(start).all():
        raise ValueError("start must be finite; got NaN or infinity.")
    return len(start), start.shape[1]


def make_forces(
    weights: sparse.csr_array,
    *,
    n_negatives: int = N_NEGATIVES,
    seed: int = 0,
    ids: Any = None,
) -> Forces:
    """Return the compiled ``Forces`` of a graph with these symmetric weights."""
    n = weights.shape[0]
    ids = np.arange(n) if ids is None else np.asarray(ids)
    if not np.array_equal(np.sort(ids), np.arange(n)):
        raise ValueError(f"ids must be a permutation of 0 ... {n - 1}; got others.")
    ids = ids.astype(np.int32)
    # the entries of a row in the order of their ids
    by_id = sparse.csr_array(
        (weights.data, ids[weights.indices], weights.indptr), shape=(n, n), copy=True
    )
    by_id.sort_indices()
    points = np.empty_like(ids)
    points[ids] = np.arange(n, dtype=np.int32)
    units = np.minimum(np.rint(_rates(by_id) * 2.0**32), 2.0**32 - 1)
    return Forces(
        by_id.indptr.astype(np.int64),
        points[by_id.indices],
        units.astype(np.uint32),
        _phases(ids[entry_rows(by_id)], by_id.indices, seed),
        ids,
        n_negatives=n_negatives,
        seed=seed,
    )


def _rates(weights: sparse.csr_array) -> Array:
    """Return the share of the epochs in which each entry acts (n_entries,)."""
    largest = weights.data.max(initial=0.0)
    rates: Array = weights.data / (largest if largest > 0 else 1.0)
    return rates


def _phases(i: Any, j: Any, seed: int) -> NDArray[np.uint32]:
    """Return random numbers of pairs of ids, the same for (i, j) and (j, i).

    The finalizer of MurmurHash3, which _simd/simd.c uses too.
    """
    x = np.minimum(i, j).astype(np.uint64) << np.uint64(32)
    x |= np.maximum(i, j).astype(np.uint64)
    for number in (seed, 0):
        x ^= np.uint64(number)
        for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
            x ^= x >> np.uint64(33)
            x *= np.uint64(factor)
        x ^= x >> np.uint64(33)
    phases: NDArray[np.uint32] = (x >> np.uint64(32)).astype(np.uint32)
    return phases


# Loss.


def layout_loss(
    weights: sparse.csr_array,
    positions: NDArray[np.floating],
    n_negatives: int = N_NEGATIVES,
) -> Array:
    """Return the loss of each point (n,), which its moves decrease: _forces.pyx.

    All pairs are computed, O(n^2), some rows at a time.
    """
    n, Y = len(positions), positions.astype(np.float64)
    Y -= Y.sum(axis=0) / max(n, 1)
    rates, rows = _rates(weights), entry_rows(weights)
    squares = ((Y[rows] - Y[weights.indices]) ** 2).sum(axis=1)
    loss, degrees = np.zeros(n), np.zeros(n)
    np.add.at(loss, rows, 2.0 * rates * np.log1p(squares))
    np.add.at(degrees, rows, rates)
    factor = n_negatives / (1.0 - SOFTENING) * degrees / max(n, 1)
    norms, step = (Y**2).sum(axis=1), 1 + _CHUNK_SIZE // (n + 1)
    with limit_blas_threads():
        for begin in range(0, n, step):
            chunk = slice(begin, begin + step)
            squares = norms[chunk, np.newaxis] + norms - 2.0 * (Y[chunk] @ Y.T)
            squares = np.maximum(squares, 0.0)
            terms = np.log((1.0 + squares) / (SOFTENING + squares)).sum(axis=1)
            # a point does not repel itself
            terms += np.log(SOFTENING)
            loss[chunk] += factor[chunk] * terms
    return loss
