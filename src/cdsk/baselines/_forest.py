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
        n = len(total)
        order = np.argsort(self.of_point, kind="stable")
        # neighbours in that order share leaves, so that few rows are made twice
        for part in gen_batches(n, max(1, _BLOCK // n)):
            points = order[part]
            leaf = self.of_point[points]
            rows = rows_of(slice(leaf[0], leaf[-1] + 1))
            total[points] += rows[leaf - leaf[0]]
