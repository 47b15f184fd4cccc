# SPDX-License-Identifier: BSD-3-Clause
"""Parameters that the stages of a fit receive (tests/test_alternate.py)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cdsk._constraints import Constraints
from cdsk._operators.base import Array
from cdsk._utils import Progress


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Validated parameters of ``CDSK``, whose docstring describes them."""

    n_clusters: int | str
    kernel: str | Callable[..., ArrayLike]
    kernel_params: dict[str, Any] | None
    metric: str
    psd: bool | None
    bandwidth: float | str
    n_neighbors: int | None
    neighbors: Any
    approximation: str | None
    rank: int | None
    representation: str
    n_components: int | None
    categorical_features: Any
    missing: str
    lam: float | str
    init: str | ArrayLike
    max_iter: int
    tol: float
    qp_tol: float
    eigen_solver: str
    assign_labels: str
    n_init: int
    noise: float | None
    min_cluster_size: float | None
    max_cluster_size: float | None
    random_state: int | np.random.RandomState | None
    n_threads: int | None
    verbose: int

    @property
    def transformer(self) -> Any:
        """The transformer that finds neighbors; None: cdsk searches."""
        return None if isinstance(self.neighbors, str) else self.neighbors


@dataclass(frozen=True)
class FitContext:
    """What all stages of one fit share."""

    settings: Settings
    rng: np.random.RandomState
    n_threads: int
    progress: Progress
    # weights of the rows of X (n_rows,); None: 1 for each
    sample_weight: Array | None = None
    # categories of every column of X, None for numbers; None: all are numbers
    n_categories: tuple[int | None, ...] | None = None
    # what is known of the rows of X; None: nothing
    constraints: Constraints | None = None
    # of every approximate search for neighbors so far
    recalls: list[float] = field(default_factory=list)
