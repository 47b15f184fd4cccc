# SPDX-License-Identifier: BSD-3-Clause
"""What affinities from forests share (tests/test_baselines_ratio_rf.py)."""

import numpy as np
from scipy import sparse
from sklearn.utils import gen_batches

# Numbers of a matrix that are made at once: 2 MiB, which a cache holds.
_BLOCK = 2**18


def unit_features(X):
    """X with every feature between 0 and 1, in the precision of trees.

    Trees of scikit-learn take values that differ by 1e-7 as equal and know none above
    3e38. They ask for the order of values only, which stays.
    """
    least = X.min(axis=0)
    extent = X.max(axis=0) - least
    extent[extent == 0] = 1.0
    return ((X - least) / extent).astype(np.float32)


class Leaves:
    """The leaves of a tree that points come to.

    Attributes
    ----------
    of_point : ndarray of shape (n,)
        Leaf of each point, counted from 0.
    example : ndarray of shape (n_leaves,)
        A point of each leaf.
    paths : csr_array of shape (n_leaves, n_nodes)
        1 where a node is on the way to the leaf, which is on it too.
    """

    def __init__(self, tree, X):
        ends = tree.apply(X, check_input=False)
        _, self.example, self.of_point = np.unique(
            ends, return_index=True, return_inverse=True
        )
        paths = tree.decision_path(X[self.example], check_input=False)
        self.paths = sparse.csr_array(paths, dtype=np.float32)

    def add_rows(self, total, rows_of):
        """Add to row i of ``total`` (n, n) what ``rows_of`` says of the leaf of i.

        ``rows_of(leaves)`` has a row for each leaf of a slice.
        """
        order = np.argsort(self.of_point, kind="stable")
        ends = np.cumsum(np.bincount(self.of_point))
        first = 0
        for leaves in gen_batches(len(ends), max(1, _BLOCK // len(total))):
            rows = rows_of(leaves)
            last = ends[leaves.stop - 1]
            # a row at a time: arrays of rows that are added cost more than the sums
            for point in order[first:last]:
                mine = total[point]
                mine += rows[self.of_point[point] - leaves.start]
            first = last
