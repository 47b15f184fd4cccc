# SPDX-License-Identifier: BSD-3-Clause
"""The kernel matrix held in memory, behind the interface the rest of the package uses.

Any kernel that offers the members of ``DenseKernel`` fits behind it: size, diagonal,
row, row sums and products with columns, all without the diagonal where noted, plus
compiled rows for the QP solver, the connected components of its similarity graph, and
the negative part that makes |K| = K + 2 K- of an indefinite one (indefinite.py). Columns are
passed as the rows of a C-contiguous (m, n) array.
"""

from functools import cached_property

import numpy as np

from cdsk import _kernel
from cdsk._kernels.indefinite import NegativePart
from cdsk._kernels.neighbours import nearest_among
from cdsk._kernels.similarity import Similarity
from cdsk._rows import StoredRows


class DenseKernel:
    """A symmetric non-negative n x n matrix K, the only n x n array of a fit.

    ``points`` are the data K was made from, None if they are not known. ``negative`` is
    empty, as of a semi-definite K, until it is set.
    """

    def __init__(self, K, n_threads, points=None):
        self.K = K
        self.n = K.shape[0]
        self.n_threads = n_threads
        self.points = points
        self.negative = NegativePart.none(self.n)

    @cached_property
    def diagonal(self):
        """K_ii as float64."""
        return np.ascontiguousarray(np.diagonal(self.K), dtype=np.float64)

    @cached_property
    def row_sums(self):
        """Sums of the rows without their diagonal entries."""
        return self.product(np.ones((1, self.n)))[0]

    def as_array(self):
        """K as an n x n array."""
        return self.K

    def row(self, i):
        """Row i, diagonal entry included."""
        return self.K[i]

    def product(self, columns):
        """(K - diag K) times each row of ``columns`` (m, n)."""
        out = np.empty_like(columns)
        _kernel.product(self.K, columns, out, self.n_threads)
        return out

    def similarity(self, weights, lam):
        """The discriminative similarity for some weights; ``lam`` is the paper's."""
        return Similarity(self, weights, lam)

    def rows(self):
        """Compiled access to the rows, diagonal entries included."""
        return StoredRows(self.K)

    def components(self, weights, lam, degrees, negligible):
        """Number and labels of the components of the similarity graph."""
        return _kernel.components(self.K, weights, lam, degrees, negligible)

    def nearest(self, points, candidates):
        """For each index in ``points`` the nearest index in ``candidates``.

        By distance where the data are known, since the kernel of far points is zero;
        else the most similar one.
        """
        if self.points is None:
            return candidates[np.argmax(self.K[np.ix_(points, candidates)], axis=1)]
        return nearest_among(self.points, points, candidates, self.n_threads)
