# SPDX-License-Identifier: BSD-3-Clause
"""Affinities of the leaves of decision trees (tests/test_baselines_ratio_rf.py)."""

import numpy as np
from scipy import sparse
from sklearn.utils import gen_batches

# Entries of a matrix that are computed at a time: 2 MiB, which fit into a cache.
_BATCH_SIZE = 2**18


def scale_features(X):
    """Return X with every feature scaled to [0, 1], in the precision of trees.

    Trees of scikit-learn treat values that differ by 1e-7 as equal and accept none
    above 3e38. They depend on the order of values only, which is preserved.
    """
    least = X.min(axis=0)
    extent = X.max(axis=0) - least
    extent[extent == 0] = 1.0
    return ((X - least) / extent).astype(np.float32)


class Leaves:
    """The leaves of a tree that contain points.

    Attributes
    ----------
    leaf_of : ndarray of shape (n,)
        Leaf of each point, counted from 0.
    example : ndarray of shape (n_leaves,)
        Index of a point of each leaf.
    paths : csr_array of shape (n_leaves, n_nodes)
        1 for the nodes on the path from the root to the leaf, both included.
    """

    def __init__(self, tree, X):
        ends = tree.apply(X, check_input=False)
        _, self.example, self.leaf_of = np.unique(
            ends, return_index=True, return_inverse=True
        )
        paths = tree.decision_path(X[self.example], check_input=False)
        self.paths = sparse.csr_array(paths, dtype=np.float32)

    def add_rows(self, total, compute_rows):
        """Add to row i of ``total`` (n, n) the row of the leaf of point i.

        ``compute_rows(leaves)`` returns the rows of a slice of leaves.
        """
        order = np.argsort(self.leaf_of, kind="stable")
        ends = np.cumsum(np.bincount(self.leaf_of))
        first = 0
        for leaves in gen_batches(len(ends), max(1, _BATCH_SIZE // len(total))):
            rows = compute_rows(leaves)
            last = ends[leaves.stop - 1]
            # row by row: gathering the rows first costs more than the sums
            for point in order[first:last]:
                row = total[point]
                row += rows[self.leaf_of[point] - leaves.start]
            first = last
