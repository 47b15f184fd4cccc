# SPDX-License-Identifier: BSD-3-Clause
"""What a stage may ask of a kernel and its similarity (tests/test_dense.py).

Vectors are the rows of C-contiguous float64 arrays (m, n). K is symmetric and
non-negative; products and row sums leave its diagonal out, because the rest of a row
may be smaller than the rounding of its diagonal entry. ``penalty`` is the paper's
lambda, n times the relative ``lam`` of the estimator.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cdsk._rows import CachedRows, HadamardRows, RowSource

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# Applies a symmetric operator to each of some vectors.
Product = Callable[[Array], Array]

# Below this a degree is as good as zero: its inverse square root would overflow
# products.
SMALLEST_DEGREE = 1e-290

# An edge below this fraction of the smaller degree of its ends moves no eigenvalue of
# the spectral step by more than n times as much.
NEGLIGIBLE_EDGE = 1e-13

# Rows of |K| o G that are kept. Digits (n = 1797) asks for 5300 rows, 1100 of which are
# different ones.
_CACHE_BYTES = 16 << 20


class Kernel(ABC):
    """A kernel matrix K of n points. Complete once it is constructed.

    An indefinite K = K+ - K- has the absolute value |K| = K + 2 K-, which takes the
    place of K in the regulariser; for a semi-definite one they are equal.
    """

    n: int
    n_threads: int
    # The data K was made from; None if they are not known.
    points: NDArray[Any] | None
    # Number of negative eigenvalues that were split off.
    n_negative: int = 0
    # What makes its values larger, in the words of the estimator's parameters.
    remedy: str
    # How far it is from what it stands for; None if it is exact.
    approximation: Any = None
    # Copies that each point stands for (n,), one if None: K holds K_ij m_i m_j.
    masses: Array | None = None
    # Similarity between the copies that one point stands for, beside K_ii (n,).
    loops: Array | None = None

    @property
    @abstractmethod
    def diagonal(self) -> Array:
        """K_ii (n,)."""

    @abstractmethod
    def product(self, vectors: Array) -> Array:
        """Off-diagonal K times each vector (m, n)."""

    @abstractmethod
    def rows(self) -> RowSource:
        """Compiled access to the rows of K, diagonal entries included."""

    @abstractmethod
    def as_array(self) -> NDArray[Any]:
        """K as an n x n array; raises MemoryError where there is no room for it."""

    @abstractmethod
    def similarity(self, weights: Array, penalty: float) -> "Similarity":
        """The discriminative similarity for some weights."""

    @cached_property
    def row_sums(self) -> Array:
        """Off-diagonal row sums of K (n,)."""
        return self.product(np.ones((1, self.n)))[0]

    def row(self, i: int) -> Array:
        """Row i of K, diagonal entry included (n,)."""
        return self.rows().row_array(i)

    @property
    def of_copies(self) -> Array:
        """Similarity of a point to a copy of it (n,)."""
        return self.diagonal

    @property
    def absolute_diagonal(self) -> Array:
        """Diagonal of |K| (n,)."""
        return self.diagonal

    def absolute_product(self, vectors: Array) -> Array:
        """Off-diagonal |K| times each vector (m, n)."""
        return self.product(vectors)

    def absolute_rows(self) -> RowSource:
        """Compiled access to the rows of |K|, diagonal entries included."""
        return self.rows()

    def neighbourhood(self) -> "Kernel":
        """The kernel that is 1 for all neighbours; itself if it knows of none."""
        return self

    def weight_rows(self, vectors: Array, scale: float) -> RowSource | None:
        """Rows of scale |K| o Y'Y for ``vectors`` Y (c, n); None: they cost too much.

        Then the kernel has ``block``.
        """
        rows = HadamardRows(self.absolute_rows(), vectors, scale)
        return CachedRows(rows, _CACHE_BYTES)

    def block(self, points: Indices) -> Array:
        """Entries of |K| between some points, diagonal entries included."""
        raise TypeError(f"{type(self).__name__} has rows")


class Similarity(ABC):
    """The discriminative similarity S of a kernel and weights, as an operator.

        S_ij = 2 (alpha_i + alpha_j) K_ij - 2 penalty alpha_i alpha_j |K|_ij,    i != j
             = 2 (alpha_i + alpha_j - penalty alpha_i alpha_j) K_ij  if K = |K|

    Self-similarity is left out, but for that between the copies of a point: S_ii is
    made of the ``loops`` of the kernel. ``isolated`` points have no similarity to any
    other; their rows of the normalised operator are zero.
    """

    n: int
    n_threads: int
    # Off-diagonal row sums of S (n,).
    degrees: Array
    isolated: NDArray[np.bool_]
    # Whether a product costs far less than n^2.
    is_sparse: bool
    # Pairs of points whose similarity was negative and was set to 0.
    n_clipped: int = 0
    # That of the kernel.
    remedy: str

    def _set_degrees(self, degrees: Array) -> None:
        self.degrees = degrees
        self.isolated = degrees < SMALLEST_DEGREE
        root = 1.0 / np.sqrt(np.maximum(degrees, SMALLEST_DEGREE))
        self._inverse_root = np.where(self.isolated, 0.0, root)

    @abstractmethod
    def normalised_product(self, vectors: Array) -> Array:
        """D^-1/2 S D^-1/2 times each vector (m, n)."""

    @abstractmethod
    def components(self) -> tuple[int, Indices]:
        """Number and labels (n,) of the components, negligible edges left out.

        Points i and j are joined where S_ij > NEGLIGIBLE_EDGE min(degree_i, degree_j).
        """

    def without_fringe(self, fewest: float) -> "Similarity":
        """The similarity without small groups of less mass that hardly anything joins.

        Their points are isolated then. A kernel that has no such notion is unchanged.
        """
        return self

    @abstractmethod
    def nearest(self, points: Indices, candidates: Indices) -> Indices:
        """For each index in ``points`` the nearest one in ``candidates``."""

    @property
    def cost_of_inverse(self) -> int | None:
        """About how many products cost as much as ``inverse``; None: far too many."""
        return None

    def inverse(self, shift: float) -> Product:
        """Product with ((1 + shift) I - D^-1/2 S D^-1/2)^-1."""
        raise TypeError(f"{type(self).__name__} cannot be factorised")

    def preconditioner(self) -> Product | None:
        """Product with about the inverse of I - D^-1/2 S D^-1/2, if there is one."""
        return None


class Votes(Protocol):
    """The classifier of the paper: h(x, y) = sum_{i: y_i = y} alpha_i K(x, x_i)."""

    def log_votes(self, X: NDArray[Any], n_threads: int) -> Array:
        """Log h (n_new, n_clusters), -inf where no point of a cluster votes."""

    def mean(self, X: NDArray[Any], values: Array, n_threads: int) -> Array:
        """Mean of ``values`` (n, q) of the points of the fit by their votes (n_new, q).

        0 where nobody votes.
        """

    def log_normaliser(self, n_features: int) -> float:
        """Log of the factor that makes the votes a density; 0 if it is not known."""


class Candidate(Protocol):
    """A kernel that a fit may be made with, and what becomes of it afterwards."""

    @property
    def name(self) -> str:
        """What distinguishes it from other candidates."""

    @property
    def description(self) -> str:
        """What the report calls it."""

    @property
    def bandwidth(self) -> float | Array | None:
        """Bandwidth(s) of a Gaussian kernel."""

    @property
    def points(self) -> NDArray[Any] | None:
        """The data it is of; None if they are not known."""

    def kernel(self) -> Kernel:
        """The kernel of the data."""

    def votes(
        self, labels: NDArray[np.int64], weights: Array, n_clusters: int
    ) -> Votes:
        """The classifier of a partition."""
