# SPDX-License-Identifier: BSD-3-Clause
"""Positions of the points of a fitted model on a map (tests/test_plot.py).

The layout starts from the embedding of the fit, so that clusters do not have to cross
each other. Then only the neighbor graph acts, not the labels.
"""

from typing import Any

import numpy as np
from scipy import sparse

from cdsk._candidates import N_NEIGHBORS, Gaussian
from cdsk._cdsk import CDSK
from cdsk._layout import graph_weights, layout, principal_start
from cdsk._neighbors import NeighborIndex, Neighbors, PrecomputedNeighbors
from cdsk._operators.base import Array
from cdsk._threads import resolve_n_threads
from cdsk._utils import (
    check_memory,
    explain_memory_error,
    limit_blas_threads,
    one_thread_if_forked,
)
from cdsk._validation import check_integer, check_points, check_random_state, is_frame


@explain_memory_error("computing the map")
def compute_map(
    model: CDSK,
    X: Any = None,
    n_neighbors: int | None = None,
    random_state: int | np.random.RandomState | None = 0,
) -> Array:
    """Return the position of each row of a fit (n_rows, 2).

    The parameters are those of ``cdsk.plot.map``. Equal rows have the same position. A
    row of weight 0 that equals no point has that of the nearest one in the embedding.
    """
    if n_neighbors is not None:
        check_integer(n_neighbors, "n_neighbors", 1)
    rng = check_random_state(random_state)
    n_threads = resolve_n_threads(model.n_threads)
    points, rows = model._predictor.points, model.embedding_
    with one_thread_if_forked(), limit_blas_threads():
        graph = neighbor_graph(model, X, n_neighbors, n_threads)
        # the rows of the points, centered, and their singular vectors
        check_memory(4 * rows.nbytes, "The start of the map", "Use fewer points.")
        start = principal_start(rows[points.first_row], 2, rng)
        seed = rng.randint(2**31 - 1)
        positions = layout(
            graph_weights(graph), start, random_state=seed, n_threads=n_threads
        )
        inverse, zero = points.inverse, points.zero_weight_rows
        if len(zero):
            index = NeighborIndex(rows[points.first_row])
            _, nearest = index.kneighbors(rows[zero], 1, n_threads=n_threads)
            inverse = inverse.copy()
            inverse[zero] = nearest[:, 0]
    return np.asarray(positions[inverse])


def neighbor_graph(
    model: CDSK, X: Any = None, k: int | None = None, n_threads: int = 1
) -> sparse.csr_array:
    """Return the distances of every point of a fit to its neighbors.

    k None: the graph of the selected kernel, if it has one.
    """
    predictor, n_rows = model._predictor, len(model.label_numbers_)
    # a model keeps its points, but no kernel matrix
    if X is not None and (predictor.index is None or not is_frame(X)):
        X = check_points(X, accept_sparse="csr", ensure_all_finite=False)
    if X is not None and X.shape[0] != n_rows:
        raise ValueError(
            f"X must have a row for each of the {n_rows} training points; got "
            f"{X.shape[0]}."
        )
    candidate, neighbors = predictor.candidate, None
    if isinstance(candidate, Gaussian) and candidate.graph is not None:
        neighbors = candidate.graph.neighbors
    if isinstance(neighbors, PrecomputedNeighbors):
        graph = neighbors.kneighbors_graph()
        return graph if k is None else PrecomputedNeighbors(graph, k).kneighbors_graph()
    if neighbors is not None and k in (None, neighbors.k):
        return neighbors.kneighbors_graph()
    if predictor.index is not None:
        Z = predictor.index.X
    elif X is not None:
        Z = X[predictor.points.first_row]
    else:
        raise ValueError(
            "A map requires points, and this model was fitted to a kernel matrix. Pass "
            "coordinates of its rows as X, or use plot.embedding."
        )
    return Neighbors(Z, k or N_NEIGHBORS, n_threads=n_threads).kneighbors_graph()
