# SPDX-License-Identifier: BSD-3-Clause
"""What somebody else found, as a sparse matrix: distances of neighbours, similarities.

Distances: by the convention of scikit-learn row i holds the distances of point i to
some training points, its own of 0 among them or not. Rows may have different lengths
and any order, and j need not be a neighbour of i where i is one of j. Recall is the
affair of whoever made the graph.

Similarities: a symmetric matrix without negative entries. As those of our own graphs
they have the unit of the largest, and a diagonal that makes them semi-definite
(sparse.py), whatever the given one is.
"""

import numpy as np
from scipy import sparse
from sklearn.base import clone

from cdsk._kernels.neighbours import SAME_POINT, SCALE_NEIGHBOUR, Scales
from cdsk._kernels.sparse import SparseKernel
from cdsk._linalg.banded import BandOrder
from cdsk._runtime import check_memory
from cdsk._validation import check_kernel_values, check_symmetric_sparse

# A distance of a point to itself, as a part of the largest of its row, that is no
# rounding.
_NOT_ITSELF = 0.01


def check_graph(graph, n, name):
    """Return the graph as a CSR array of finite distances to n training points."""
    if not sparse.issparse(graph):
        raise ValueError(
            f"{name} must be a sparse matrix of distances; got {type(graph).__name__}."
        )
    if graph.ndim != 2 or graph.shape[1] != n:
        raise ValueError(
            f"{name} must have a column for each of the {n} training points; got shape "
            f"{graph.shape}."
        )
    graph = sparse.csr_array(graph, dtype=np.float64, copy=True)
    if not (graph.data >= 0).all() or np.isinf(graph.data).any():
        wrong = graph.data[~((graph.data >= 0) & np.isfinite(graph.data))]
        raise ValueError(
            f"{name} must hold distances, finite and not negative; got {wrong[0]}."
        )
    graph.sort_indices()
    if not graph.has_canonical_format:
        raise ValueError(f"{name} must hold each pair once; got some pair twice.")
    return graph


def given_similarities(matrix, name, remedy, n_threads, masses=None):
    """The ``SparseKernel`` of a sparse matrix of similarities."""
    check_memory(60 * matrix.nnz, "A fit of these similarities", "Use fewer of them.")
    matrix = check_symmetric_sparse(matrix, name)
    check_kernel_values(matrix, name)
    matrix = _kept(matrix, ~_own(matrix) & (matrix.data > 0))
    # exactly symmetric
    matrix = (0.5 * matrix + 0.5 * matrix.T).tocsr()
    matrix.data /= matrix.data.max(initial=np.finfo(float).tiny)
    return SparseKernel(matrix, BandOrder(matrix), n_threads, None, remedy, masses)


def _own(graph):
    """Whether an entry is of a point with itself."""
    return np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr)) == graph.indices


def _without_diagonal(graph, name):
    own = _own(graph)
    farthest = graph.max(axis=1).toarray().ravel()[graph.indices[own]]
    # distances from products of many features are not quite 0
    if (graph.data[own] > _NOT_ITSELF * farthest).any():
        raise ValueError(
            f"{name} must hold distances, so that a point has a distance of 0 to "
            f"itself; got {graph.data[own].max()}. Was it made with "
            'mode="connectivity"? Expected mode="distance".'
        )
    return _kept(graph, ~own)


def _kept(graph, kept):
    """The graph of those entries; zeros stay."""
    ends = np.concatenate([[0], np.cumsum(kept)])[graph.indptr]
    parts = graph.data[kept], graph.indices[kept], ends
    return sparse.csr_array(parts, shape=graph.shape)


def _ranks(graph):
    """Place of each entry in its row from the nearest on, ties by column."""
    row = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    order = np.lexsort((graph.indices, graph.data, row))
    ranks = np.empty(graph.nnz, dtype=np.intp)
    ranks[order] = np.arange(graph.nnz) - graph.indptr[row]
    return ranks


def _scales(graph):
    """Distance to the 7th neighbour, or the last; 0 where there is none."""
    scales = np.zeros(graph.shape[0])
    row = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    last = np.minimum(np.diff(graph.indptr), SCALE_NEIGHBOUR)[row] - 1
    found = _ranks(graph) == last
    scales[row[found]] = graph.data[found]
    return scales


class GivenNeighbours(Scales):
    """Neighbours by a transformer of points, or by a graph of distances.

    ``X`` are points, or the graph itself if ``transformer`` is None. Of each row the k
    nearest count, all if k is None.
    """

    def __init__(self, X, k, transformer=None, *, robust=False):
        self.transformer = None
        self.X, graph, self.name, self.origin = None, X, "X", "a given graph"
        if transformer is not None:
            self.transformer = clone(transformer)
            self.X, self.origin = X, str(type(transformer).__name__)
            self.name = f"The graph by {self.origin}"
            graph = self.transformer.fit_transform(X)
        self.n = X.shape[0]
        if graph.shape != (self.n, self.n):
            raise ValueError(
                f"{self.name} must have a row and a column for each of the {self.n} "
                f"points; got shape {graph.shape}."
            )
        graph = _without_diagonal(check_graph(graph, self.n, self.name), self.name)
        if not graph.data.any():
            raise ValueError(
                f"{self.name} must hold distances between different points; got "
                f"{graph.nnz} entries, all of them 0."
            )
        super().__init__(_scales(graph), robust)
        self._graph = graph if k is None else _kept(graph, _ranks(graph) < k)

    def graph(self):
        """Distances to the neighbours, a row per point."""
        return self._graph

    def graph_of(self, new):
        """The same for new points: what the transformer says, or is given."""
        if self.transformer is not None:
            new = self.transformer.transform(new)
        return check_graph(new, self.n, self.name)

    def scales_in(self, graph):
        """Scales of the new points of ``graph_of``; old ones keep theirs."""
        scales = np.minimum(_scales(graph), self._largest_scale)
        scales = np.where(scales > 0, scales, self.scales.min())
        row = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
        same = graph.data <= SAME_POINT * self.scales[graph.indices]
        scales[row[same]] = self.scales[graph.indices[same]]
        return scales
