# SPDX-License-Identifier: BSD-3-Clause
"""Interfaces of kernels, similarities, votes, candidates (tests/test_dense.py).

Vectors are the rows of C-contiguous float64 arrays (m, n). K is symmetric and
non-negative; products and row sums leave its diagonal out, because the other entries of
a row may be smaller than the rounding of its diagonal entry. ``penalty`` is the paper's
lambda, n times the relative ``lam`` of the estimator.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cdsk._rows import RowSource

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# Applies a symmetric operator to each of some vectors.
Product = Callable[[Array], Array]

# Smaller degrees count as 0: their inverse square roots would overflow in products.
MIN_DEGREE = 1e-290

# An edge below this fraction of the smaller degree of its ends moves no eigenvalue of
# the spectral step by more than n times as much.
NEGLIGIBLE_EDGE = 1e-13


class Kernel(ABC):
    """A kernel matrix K of n points.

    An indefinite K = K+ - K- has the absolute value |K| = K + 2 K-, which replaces K in
    the regularizer; for a semi-definite one they are equal.
    """

    n: int
    n_threads: int
    # The data K was computed from; None if they are not known.
    points: NDArray[Any] | None
    # Number of negative eigenvalues that were split off, and diagonal of K- (n,).
    n_negative: int = 0
    negative_diagonal: Array | float = 0.0
    # A clause that says how to increase its values: "Increase `bandwidth`".
    hint: str
    # An ``Approximation``; None if K is exact.
    approximation: Any = None
    # Number of copies of each point (n,), one if None: K holds K_ij m_i m_j.
    multiplicity: Array | None = None
    # Similarity between the copies of one point, beside K_ii (n,); None: there is none.
    self_loops: Array | None = None

    @property
    @abstractmethod
    def diagonal(self) -> Array:
        """K_ii (n,)."""

    @property
    def duplicate_similarity(self) -> Array:
        """Similarity of a point to a copy of it (n,)."""
        return self.diagonal

    @cached_property
    def row_sums(self) -> Array:
        """Off-diagonal row sums of K (n,)."""
        return self.product(np.ones((1, self.n))).ravel()

    @abstractmethod
    def product(self, vectors: Array) -> Array:
        """Return off-diagonal K times each vector (m, n)."""

    @abstractmethod
    def absolute_product(self, vectors: Array) -> Array:
        """Return off-diagonal |K| times each vector (m, n)."""

    @abstractmethod
    def row(self, i: int) -> Array:
        """Return row i of K, diagonal entry included (n,)."""

    @abstractmethod
    def weight_rows(self, vectors: Array, scale: float) -> RowSource | None:
        """Return rows of scale |K| o Y'Y for ``vectors`` Y (c, n).

        None if a row costs as much as a product; then there is ``submatrix``.
        """

    def submatrix(self, points: Indices) -> Array:
        """Return the entries of |K| between some points, diagonal entries included."""
        raise TypeError(f"{type(self).__name__} offers rows in place of submatrices")

    @abstractmethod
    def as_array(self) -> NDArray[Any]:
        """Return K as an n x n array; raise MemoryError if it is too large."""

    @abstractmethod
    def similarity(self, weights: Array, penalty: float) -> "Similarity":
        """Return the discriminative similarity for kernel weights (n,)."""

    def neighborhood(self) -> "Kernel":
        """Return the kernel that is 1 for all neighbors; itself if it is not sparse."""
        return self


class Similarity(ABC):
    """The discriminative similarity S of a kernel and weights, as an operator.

        S_ij = 2 (alpha_i + alpha_j) K_ij - 2 penalty alpha_i alpha_j |K|_ij,    i != j
             = 2 (alpha_i + alpha_j - penalty alpha_i alpha_j) K_ij  if K = |K|

    Self-similarity is left out, except between the copies of a point: S_ii follows from
    the ``self_loops`` of the kernel. ``isolated`` points have no similarity to any
    other; their rows of the normalized operator are zero.
    """

    kernel: Kernel
    # Off-diagonal row sums of S (n,).
    degrees: Array
    isolated: NDArray[np.bool_]
    # Whether a product costs far less than n^2.
    is_sparse: bool
    # Pairs of points whose similarity was negative and was set to 0.
    n_clipped: int = 0

    @abstractmethod
    def normalized_product(self, vectors: Array) -> Array:
        """Return D^-1/2 S D^-1/2 times each vector (m, n)."""

    @abstractmethod
    def components(self) -> tuple[int, NDArray[np.integer]]:
        """Return number and labels (n,) of the connected components.

        Points are connected where S_ij > NEGLIGIBLE_EDGE min(degree_i, degree_j).
        """

    def without_weak_components(self, min_mass: float) -> "Similarity":
        """Return the similarity with weakly connected small groups isolated.

        Groups of ``min_mass`` or more are kept; kernels that are not sparse, all.
        """
        return self

    @abstractmethod
    def find_nearest(self, points: Indices, candidates: Indices) -> Indices:
        """Return for each index in ``points`` the nearest one in ``candidates``."""

    @property
    def factorization_cost(self) -> int | None:
        """Cost of ``factorize`` in products, about; None if it is far too large."""
        return None

    def factorize(self, shift: float) -> Product:
        """Return the product with ((1 + shift) I - D^-1/2 S D^-1/2)^-1."""
        raise TypeError(f"{type(self).__name__} cannot be factorized")

    def preconditioner(self) -> Product | None:
        """Return an approximate inverse of I - D^-1/2 S D^-1/2, if there is one."""
        return None


class Votes(Protocol):
    """The classifier of the paper: h(x, y) = sum_{i: y_i = y} alpha_i K(x, x_i)."""

    def log_votes(self, X: Any, n_threads: int) -> Array:
        """Return log h (n_new, n_clusters), -inf where no point of a cluster votes."""

    def average(self, X: Any, values: Array, n_threads: int) -> Array:
        """Return the means (n_new, q) of ``values`` (n, q) weighted by the votes.

        ``values`` belong to the training points; 0 where none of them votes.
        """

    def log_normalizer(self, n_features: int) -> float:
        """Return the log of the factor that makes the votes a density, 0 if unknown."""
        return 0.0


class Candidate(Protocol):
    """A kernel that may be used in a fit, and its classifier."""

    @property
    def name(self) -> str:
        """Name that distinguishes it from other candidates."""

    @property
    def description(self) -> str:
        """Name in the report."""

    @property
    def bandwidth(self) -> float | Array | None:
        """Bandwidth(s) of a Gaussian kernel."""

    def kernel(self) -> Kernel:
        """Return the kernel of the data."""

    def votes(
        self, labels: NDArray[np.int64], weights: Array, n_clusters: int
    ) -> Votes:
        """Return the classifier of a partition."""
