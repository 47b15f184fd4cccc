# SPDX-License-Identifier: BSD-3-Clause
"""Selection of lam, without labels (tests/test_lam.py).

One fit of a sample per value of a grid; smaller criteria are better, and ties go
to the smaller lam:

=============  =======================================================================
"entropy"      mean entropy of softmax(row / 0.1) of unit rows of the embedding, rotated
               to the axes
"paper"        mean entropy of softmax(row) for the rows of Y with Y'DY = I, as printed
"cut"          mean of cut / volume of the clusters in the graph of K, without weights
"stability"    1 - ARI between the labels of one half of a sample and the votes of the
               clusters of the other half for it, mean over three samples
=============  =======================================================================
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, softmax
from sklearn.metrics import adjusted_rand_score

from cdsk._operators.base import Array, Kernel
from cdsk._settings import FitContext
from cdsk._spectral import Labels, assign_labels, cut_ratios, rotate_to_axes

# lam: the paper's grid [0.05, 05] in steps of 0.05, with 05 read as 0.5; the smallest
# sample, in all and per cluster; the temperature of "entropy".
CRITERIA = ("entropy", "paper", "cut", "stability")
GRID = tuple(np.round(np.arange(1, 11) * 0.05, 2).tolist())
MIN_SAMPLE, MIN_SAMPLE_PER_CLUSTER = 100, 10
TEMPERATURE = 0.1
_STABILITY_SAMPLES = 3


@dataclass(frozen=True)
class LambdaChoice:
    """Result of ``select_lambda``.

    Attributes
    ----------
    lam : float
        The value of the grid with the smallest criterion.
    grid : ndarray of shape (n_values,)
        Values tried.
    curve : ndarray of shape (n_values,)
        Criterion at each of them; smaller is better.
    criterion : str
        Name of the criterion.
    n_sample : int
        Number of points in a fit.
    """

    lam: float
    grid: Array
    curve: Array
    criterion: str
    n_sample: int


@dataclass(frozen=True)
class LambdaSearch:
    """What ``select_lambda`` is asked for: see there."""

    grid: Sequence[float] = GRID
    sample: float = 0.1
    criterion: str = "entropy"


def select_lam(
    n_samples: int,
    n_clusters: int,
    make_kernel: Callable[[NDArray[np.intp]], Kernel],
    fit: Callable[[Kernel, float], Any],
    search: LambdaSearch,
    context: FitContext,
) -> LambdaChoice:
    """Return the ``LambdaChoice`` for points of which samples are fitted.

    ``make_kernel(rows)`` returns the kernel of some points, ``fit(kernel, lam)`` the
    ``Alternation`` of a kernel.
    """
    rng, n_init = context.rng, context.settings.n_init
    grid, criterion = np.array(search.grid, dtype=np.float64), search.criterion
    smallest = max(MIN_SAMPLE, MIN_SAMPLE_PER_CLUSTER * n_clusters)
    size = min(max(round(search.sample * n_samples), smallest), n_samples)

    def label(fitted: Any) -> Labels:
        vectors = fitted.embedding.vectors
        return assign_labels(vectors, "kmeans", n_init=n_init, random_state=rng)

    if criterion == "stability":
        if n_samples < 2 * n_clusters:
            raise ValueError(
                'criterion="stability" clusters halves of the data and needs at least '
                f"2 * n_clusters = {2 * n_clusters} samples; got {n_samples}."
            )
        size = max(min(size, n_samples // 2), n_clusters)
        curves = []
        for _ in range(_STABILITY_SAMPLES):
            rows = rng.permutation(n_samples)[: 2 * size]
            curves.append(_instability(make_kernel, fit, label, grid, rows))
        curve = np.mean(curves, axis=0)
    else:
        kernel = make_kernel(np.sort(rng.permutation(n_samples)[:size]))

        def measure(fitted: Any) -> float:
            vectors = fitted.embedding.vectors
            if criterion == "cut":
                return float(np.mean(cut_ratios(kernel, label(fitted))))
            if criterion == "paper":
                return _mean_entropy(vectors * fitted.embedding.lengths)
            return _mean_entropy(rotate_to_axes(vectors) / TEMPERATURE)

        fits = [fit(kernel, lam) for lam in grid]
        curve = np.array([measure(fitted) for fitted in fits])
    best = float(grid[curve == curve.min()].min())
    return LambdaChoice(best, grid, curve, criterion, size)


def _mean_entropy(vectors: Array) -> float:
    """Return the mean entropy of the softmax of the columns of vectors (c, n)."""
    return float(np.mean(np.sum(entr(softmax(vectors, axis=0)), axis=0)))


def _instability(
    make_kernel: Callable[[NDArray[np.intp]], Kernel],
    fit: Callable[[Kernel, float], Any],
    label: Callable[[Any], Labels],
    grid: Array,
    rows: NDArray[np.intp],
) -> list[float]:
    """Return 1 - ARI of transferred and own labels of the second half, per lam."""
    size = len(rows) // 2
    first, second = make_kernel(rows[:size]), make_kernel(rows[size:])
    both = make_kernel(rows)
    between = np.stack([both.row(i)[size:] for i in range(size)])
    curve = []
    for lam in grid:
        fit_first, fit_second = fit(first, lam), fit(second, lam)
        labels = label(fit_first)
        clusters = np.arange(labels.max() + 1)[:, np.newaxis]
        votes = np.einsum(
            "yi,ij->yj", (labels == clusters) * fit_first.weights, between
        )
        transferred = np.argmax(votes, axis=0)
        curve.append(1.0 - adjusted_rand_score(label(fit_second), transferred))
    return curve
