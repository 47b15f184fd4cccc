# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the data -> the points of a fit, and back (tests/test_points.py).

Equal rows are one point, whose *mass* is the sum of their weights: so many copies of it
there are. All that a fit does with a kernel K it does with K_ij m_i m_j, the sum of the
similarities between the copies of i and those of j.

Points are in an order of their own, whatever that of the rows is, in which near ones
come together: whoever visits the neighbours of one point after the other then finds
them in a cache. A product with the graph of a million points takes a third of the time
that it takes in any order.
"""

import numpy as np
from scipy import sparse

from cdsk._kernels.sparse_rows import digests
from cdsk._nearest import order_points
from cdsk._runtime import check_memory
from cdsk._warn import warn


class Points:
    """The points of a fit.

    Attributes
    ----------
    X : what the kernels are made of, a row per point or a matrix between them
    masses : ndarray of shape (n_points,) or None
        Sums of the weights of the rows; None: 1 for each.
    row_of : ndarray of shape (n_points,)
        The first row that a point was.
    point_of : ndarray of shape (n_rows,)
        The point that a row became; -1: none, as its weight is 0.
    weights : ndarray of shape (n_rows,) or None
        Those of the rows; None: 1 for each.
    n_different : int
        How many of the points are different, as far as that is known.
    lost : ndarray of shape (n_lost,)
        Rows without a weight that equal no point: they are judged as new ones.
    """

    def __init__(self, X, row_of, point_of, weights=None):
        self.X = X
        self.row_of = row_of
        self.point_of = point_of
        self.weights = weights
        self.n_different = len(row_of)
        self.lost = np.flatnonzero(point_of < 0)
        self.masses = None
        if weights is not None or len(row_of) < len(point_of):
            inside = point_of >= 0
            w = None if weights is None else weights[inside]
            masses = np.bincount(point_of[inside], w, minlength=len(row_of))
            self.masses = masses.astype(np.float64)

    @classmethod
    def as_given(cls, X, weights=None):
        """The rows as they are."""
        rows = np.arange(X.shape[0], dtype=np.int32)
        return cls(X, rows, rows, weights)

    def halved(self):
        """One point, of which there are no distances, as two that are equal.

        The rows that have a weight, two at least, are theirs in turn.
        """
        inside = np.flatnonzero(self.point_of >= 0)
        point_of = self.point_of.copy()
        point_of[inside] = np.arange(len(inside)) % 2
        row_of = inside[:2].astype(np.int32)
        points = Points(self.X[[0, 0]], row_of, point_of, self.weights)
        points.n_different = 1
        return points

    @classmethod
    def distinct(cls, X, weights=None):
        """The different ones among the rows that have a weight."""
        n_bytes = 2 * X.data.nbytes if sparse.issparse(X) else X.nbytes
        check_memory(n_bytes, "A copy of the data", "Use fewer points.")
        if weights is None or weights.all():
            row_of, point_of = first_of_equal_rows(X)
            return cls(X[row_of], row_of, point_of, weights)
        heavy = np.flatnonzero(weights)
        row_of, of_heavy = first_of_equal_rows(X[heavy])
        point_of = np.full(X.shape[0], -1, dtype=np.int32)
        point_of[heavy] = of_heavy
        return cls(X[heavy[row_of]], heavy[row_of], point_of, weights)

    def near_together(self, X):
        """The same points, with other coordinates, in an order that these give them.

        Sparse ones stay in theirs.
        """
        if sparse.issparse(X):
            self.X = X
            return self
        X = np.ascontiguousarray(X)
        check_memory(X.nbytes, "A copy of the points", "Use fewer points.")
        order = np.empty(len(X), dtype=np.int32)
        order_points(X, order)
        place = np.empty(len(X) + 1, dtype=np.int32)
        place[order] = np.arange(len(X))
        place[-1] = -1  # of a row that is no point
        row_of, point_of = self.row_of[order], place[self.point_of]
        points = Points(X[order], row_of, point_of, self.weights)
        points.n_different = self.n_different
        return points

    def adopt(self, nearest, distances):
        """Let lost rows be told what is known of the points nearest to them.

        Those at no distance are found.
        """
        self.point_of[self.lost] = nearest
        self.lost = self.lost[distances > 0]

    def __len__(self):
        return len(self.row_of)

    @property
    def relative_masses(self):
        """Masses in units of their median, None if all are 1."""
        return None if self.masses is None else self.masses / np.median(self.masses)

    def from_rows(self, values):
        """What is known of every row, for every point."""
        return values[self.row_of]

    def to_rows(self, values):
        """What is known of every point, for every row."""
        return values[self.point_of]

    def per_copy(self, weights):
        """Weights of points for one copy each, so that those of all rows sum to 1."""
        if self.masses is None:
            return weights
        return weights / np.sum(weights * self.masses)

    def of_all_copies(self, weights):
        """Weights of points for their copies together, so that they sum to 1."""
        if self.masses is None:
            return weights
        return weights * self.masses / np.sum(weights * self.masses)

    def shares(self, labels, weights, n_clusters):
        """The parts of the clusters (n_clusters,) in the weights of all rows."""
        total = np.bincount(labels, weights * self.counts, minlength=n_clusters)
        return total / total.sum()

    @property
    def counts(self):
        """How many times each row counts."""
        return np.ones(len(self.point_of)) if self.weights is None else self.weights

    @property
    def rows(self):
        """The rows that have a weight."""
        return np.flatnonzero(self.counts)

    def between_rows(self, K):
        """The matrix of values between rows from that of K_ij m_i m_j."""
        if self.masses is not None:
            K = K / np.multiply.outer(self.relative_masses, self.relative_masses)
        points = self.point_of[self.rows]
        return K[np.ix_(points, points)]

    def folded(self, columns):
        """E' v for columns v (n_rows, m), with E_ri = sqrt(w_r / m_i) if r is in i.

        E'E = I: E takes eigenvectors of points to eigenvectors of rows.
        """
        if self.masses is None:
            return self.from_rows(columns)
        out = np.zeros((len(self), columns.shape[1]))
        np.add.at(out, self.point_of, self._shares(self.masses) * columns)
        return out

    def unfolded(self, columns):
        """E u for columns u (n_points, m)."""
        if self.masses is None:
            return self.to_rows(columns)
        return self._shares(self.masses) * self.to_rows(columns)

    def _shares(self, masses):
        return np.sqrt(self.counts / self.to_rows(masses))[:, np.newaxis]


def warn_of_copies(n_different, n_clusters, whose="X"):
    """Tell that there are fewer different points than clusters."""
    warn(
        f"{whose} has {n_different} distinct points; expected at least n_clusters="
        f"{n_clusters}. Identical points are not split: there are {n_different} "
        "clusters.",
    )


def first_of_equal_rows(X):
    """Rows that no earlier one equals, and for every row which of these it equals.

    They are in an order that depends on the rows, but not on the order of these.
    """
    if sparse.issparse(X):
        return _first_of_equal(digests(X))
    hashes = _hashes(X)
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    begins = np.append(True, ordered[1:] != ordered[:-1])
    row_of, point_of = order[begins], np.empty(len(X), dtype=np.int32)
    point_of[order] = np.cumsum(begins) - 1
    later = np.flatnonzero(row_of[point_of] != np.arange(len(X)))
    if not (X[later] == X[row_of[point_of[later]]]).all():  # rows of the same hash
        _, row_of, point_of = np.unique(
            X, axis=0, return_index=True, return_inverse=True
        )
    return row_of.astype(np.int32), point_of.ravel().astype(np.int32)


def _first_of_equal(keys):
    """The same for rows that have these keys."""
    first: dict[bytes, int] = {}
    for row, key in enumerate(keys):
        first.setdefault(key, row)
    ordered = sorted(first)
    place = {key: i for i, key in enumerate(ordered)}
    row_of = np.array([first[key] for key in ordered], dtype=np.int32)
    return row_of, np.array([place[key] for key in keys], dtype=np.int32)


def _hashes(X):
    """A number for every row, the same for equal ones, rarely for others."""
    odd = np.random.RandomState(0).randint(2**62, size=X.shape[1]).astype(np.uint64)
    hashes = np.zeros(len(X), dtype=np.uint64)
    for column, factor in zip(X.T, 2 * odd + 1, strict=True):
        # 0.0 for -0.0; small whole numbers differ in their highest bits only
        value = (column.astype(np.float64) + 0.0).view(np.uint64)
        value = (value ^ (value >> np.uint64(32))) * factor
        hashes += (value ^ (value >> np.uint64(29))) * factor
    return hashes
