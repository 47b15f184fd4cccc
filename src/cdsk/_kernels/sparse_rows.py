# SPDX-License-Identifier: BSD-3-Clause
"""Rows of sparse data, as texts have: equal ones, unit ones, nearest ones.

The search is scikit-learn's, by all pairs, a part of the rows at a time; the distances
of those that it finds are summed from differences, as products lose the digits of near
points. Nothing here has a number for every row and column of the data.
"""

from hashlib import blake2b

import numpy as np
from scipy import sparse
from sklearn.metrics import pairwise_distances_chunked

from cdsk._runtime import check_memory

# MiB of distances at a time: Ctrl-C and progress are between them.
_WORKING_MEMORY = 64


def canonical(X):
    """X as a CSR array with sorted columns, each once, and without zeros."""
    X = sparse.csr_array(X)
    if X.has_canonical_format and X.data.all():
        return X
    X = X.copy()
    X.sum_duplicates()
    X.eliminate_zeros()
    return X


def digests(X):
    """What is equal for equal rows only, of a canonical X."""
    ends = zip(X.indptr[:-1], X.indptr[1:], strict=True)
    columns = X.indices.astype(np.int64)
    return [
        blake2b(columns[i:j].tobytes() + X.data[i:j].tobytes(), digest_size=16).digest()
        for i, j in ends
    ]


def largest_of_rows(X):
    """Largest magnitude in every row (n,)."""
    return abs(X).max(axis=1).toarray().ravel().astype(np.float64)


def nearest_rows(new, X, k, *, others=False, progress=None):
    """Indices and distances (m, k) of the rows of X nearest to new ones, in order.

    ``others``: new is X, and no row is its own neighbour. ``progress`` is called now
    and then with the share that is done.
    """
    m = new.shape[0]
    check_memory(12 * m * k, "The neighbours of all points", "Use fewer points.")
    indices, distances = np.empty((m, k), dtype=np.int32), np.empty((m, k))

    def keep(squares, begin):
        rows = np.arange(begin, begin + len(squares))
        if others:
            squares[rows - begin, rows] = np.inf
        found = np.argpartition(squares, k - 1, axis=1)[:, :k]
        exact = _distances(new[rows], X, found)
        order = np.lexsort((found, exact))
        indices[rows] = np.take_along_axis(found, order, axis=1)
        distances[rows] = np.take_along_axis(exact, order, axis=1)
        if progress is not None:
            progress((begin + len(squares)) / m)
        return rows

    parts = pairwise_distances_chunked(
        *(new, X), reduce_func=keep, working_memory=_WORKING_MEMORY, squared=True
    )
    for _ in parts:
        pass
    return indices, distances


def _distances(new, X, found):
    """Distances (m, k) between new rows and those that were found for them."""
    pairs = np.repeat(np.arange(new.shape[0]), found.shape[1])
    differences = new[pairs] - X[found.ravel()]
    squares = differences.astype(np.float64).power(2).sum(axis=1)
    return np.sqrt(squares).reshape(found.shape)
