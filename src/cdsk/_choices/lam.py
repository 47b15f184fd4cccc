# SPDX-License-Identifier: BSD-3-Clause
"""The regularisation chosen from the data: one fit of a sample per value of a grid.

=============  =======================================================================
"entropy"      mean entropy of softmax(row / 0.1), rows of unit length, rotated to the
               axes: how decided the embedding is
"paper"        mean entropy of softmax(row) for the rows of Y with Y'DY = I, as printed
"cut"          mean of cut / volume of the clusters in the graph of K, without weights
"stability"    1 - adjusted Rand index between the labels of one half of a sample and
               the votes of the other half's clusters for it, mean over three samples
=============  =======================================================================

Smaller is better for all of them, and ties go to the smaller lam. None sees labels.
Which is worth what: docs/method.md.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, softmax
from sklearn.metrics import adjusted_rand_score

from cdsk._steps.labels import assign_labels, cut_ratios, rotated_to_axes

CRITERIA = ("entropy", "paper", "cut", "stability")

# The paper's grid [0.05, 05] in steps of 0.05, with 05 read as 0.5.
GRID = tuple(np.round(np.arange(1, 11) * 0.05, 2).tolist())

# A sample has at least so many points, and so many per cluster, or all there are.
FEWEST_POINTS = 100
FEWEST_PER_CLUSTER = 10

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
    grid: NDArray[np.float64]
    curve: NDArray[np.float64]
    criterion: str
    n_sample: int


def choose_lambda(
    X, candidates, fit, n_clusters, *, grid, sample, criterion, n_init, rng
):
    """Return the ``LambdaChoice`` for the points X, or a kernel matrix of them.

    ``candidates(X, rows)`` are the kernels of these points of X; of several the one in
    the middle is judged. ``fit(kernel, lam)`` returns the ``Fit`` of a kernel. The rest
    is as in ``select_lambda``, checked.
    """
    grid = np.array(grid, dtype=np.float64)
    n_samples = X.shape[0]
    fewest = max(FEWEST_POINTS, FEWEST_PER_CLUSTER * n_clusters)
    size = min(max(round(sample * n_samples), fewest), n_samples)

    def make_kernel(rows):
        tried = candidates(X, rows)
        return tried[len(tried) // 2].kernel()

    def label(fit):
        return assign_labels(
            fit.embedding.vectors, "kmeans", n_init=n_init, random_state=rng
        )

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
            curves.append(_instability(make_kernel, fit, label, grid, rows, n_clusters))
        curve = np.mean(curves, axis=0)
    else:
        kernel = make_kernel(np.sort(rng.permutation(n_samples)[:size]))

        def measure(fit):
            vectors = fit.embedding.vectors
            if criterion == "cut":
                return np.mean(cut_ratios(kernel, label(fit)))
            if criterion == "paper":
                return _mean_entropy(vectors * fit.embedding.lengths)
            return _mean_entropy(rotated_to_axes(vectors) / TEMPERATURE)

        fits = [fit(kernel, lam) for lam in grid]
        curve = np.array([measure(one) for one in fits])
    best = float(grid[curve == curve.min()].min())
    return LambdaChoice(best, grid, curve, criterion, size)


def _mean_entropy(vectors):
    """Mean over the points of the entropy of the softmax of their coordinates."""
    return float(np.mean(np.sum(entr(softmax(vectors, axis=0)), axis=0)))


def _instability(make_kernel, fit, label, grid, rows, n_clusters):
    """1 - ARI of transferred and own labels of the second half, for each lam."""
    size = len(rows) // 2
    first, second = make_kernel(rows[:size]), make_kernel(rows[size:])
    whole = make_kernel(rows)
    between = np.stack([whole.row(i)[size:] for i in range(size)])
    curve = []
    for lam in grid:
        teacher, pupil = fit(first, lam), fit(second, lam)
        labels = label(teacher)
        members = (labels == np.arange(n_clusters)[:, np.newaxis]) * teacher.weights
        votes = np.einsum("yi,ij->yj", members, between)
        transferred = np.argmax(votes, axis=0)
        curve.append(1.0 - adjusted_rand_score(label(pupil), transferred))
    return curve
