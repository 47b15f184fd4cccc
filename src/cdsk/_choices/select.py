# SPDX-License-Identifier: BSD-3-Clause
"""``select_lambda``: the curve behind ``CDSK(lam="auto")``, to be seen and plotted."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cdsk._choices.lam import GRID, LambdaChoice
from cdsk._estimator import CDSK


def select_lambda(
    X: ArrayLike,
    n_clusters: int,
    *,
    grid: ArrayLike = GRID,
    sample: float = 0.1,
    criterion: str = "entropy",
    random_state: int | np.random.RandomState | None = None,
    **parameters: Any,
) -> LambdaChoice:
    """Regularisation chosen by fits of a random sample, without labels.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features) or (n_samples, n_samples)
        Data, or a kernel matrix if ``kernel="precomputed"``.
    n_clusters : int
        Number of clusters.
    grid : array-like, default=(0.05, 0.1, ..., 0.5)
        Values to try, in (0, 1].
    sample : float, default=0.1
        Fraction of the points in a fit; at least 100 points and 10 per cluster are
        taken, or all of them.
    criterion : {"entropy", "paper", "cut", "stability"}, default="entropy"
        What the chosen value makes smallest: the mean entropy of the softmax of the
        embedding's rows (unit rows, rotated to the axes, temperature 0.1); the same as
        the paper prints it (raw rows, temperature 1); the normalised cut of the labels
        in the graph of the kernel; the disagreement of labels between two samples.
    random_state : int, RandomState instance or None, default=None
        Draws the sample and seeds the fits.
    **parameters
        Other parameters of ``CDSK``: kernel, bandwidth, init, max_iter, ... Weights
        given as ``init`` are checked, but samples start from uniform ones. Of the six
        kernels of ``bandwidth="auto"`` only the fourth, in the middle, is judged.

    Returns
    -------
    choice : LambdaChoice
        The choice, the grid and the curve.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from cdsk import select_lambda
    >>> X, _ = make_blobs(300, centers=3, random_state=0)
    >>> choice = select_lambda(X, 3, random_state=0)
    >>> choice.lam in choice.grid, choice.curve.shape, choice.n_sample
    (True, (10,), 100)
    """
    if "lam" in parameters:
        raise ValueError(
            "select_lambda chooses lam and does not take it; use grid for the values "
            "to choose from."
        )
    model = CDSK(n_clusters, random_state=random_state, **parameters)
    return model._select_lambda(X, grid, sample, criterion)
