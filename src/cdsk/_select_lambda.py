# SPDX-License-Identifier: BSD-3-Clause
"""``select_lambda``: the selection of lam by itself (tests/test_lam.py)."""

from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from cdsk._cdsk import CDSK, validate_fit
from cdsk._fit import preprocess, resolve_lam
from cdsk._lam_choice import CRITERIA, GRID, LambdaChoice, LambdaSearch
from cdsk._utils import explain_memory_error, one_thread_if_forked
from cdsk._validation import Data, check_choice, check_number, check_simplex_point


def select_lambda(
    X: Data,
    n_clusters: int | str,
    *,
    grid: ArrayLike = GRID,
    sample: float = 0.1,
    criterion: str = "entropy",
    sample_weight: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
    **parameters: Any,
) -> LambdaChoice:
    """Select the regularization by fits of a random sample, without labels.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features) or (n_samples, n_samples)
        Data, or a kernel matrix if ``kernel="precomputed"``.
    n_clusters : int or "auto"
        Number of clusters as in ``CDSK``.
    grid : array-like, default=(0.05, 0.1, ..., 0.5)
        Values to try, in (0, 1].
    sample : float, default=0.1
        Fraction of the points in a fit; at least 100 points and 10 per cluster are
        taken, or all of them.
    criterion : {"entropy", "paper", "cut", "stability"}, default="entropy"
        What the chosen value makes smallest: the mean entropy of the softmax of the
        embedding's rows (unit rows, rotated to the axes, temperature 0.1); the same as
        the paper prints it (raw rows, temperature 1); the normalized cut of the labels
        in the graph of the kernel; the disagreement of labels between two samples.
    sample_weight : array-like of shape (n_samples,), default=None
        How many times each row counts; None means once.
    random_state : int, RandomState instance or None, default=None
        Draws the sample and seeds the fits.
    **parameters
        Other parameters of ``CDSK``: kernel, bandwidth, init, max_iter, ... Weights
        given as ``init`` are checked, but samples start from uniform ones. Of the six
        kernels of ``bandwidth="auto"`` only the fourth, in the middle, is used.

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
            "select_lambda selects lam and does not take it. Use `grid` for the values "
            "to select from."
        )
    model = CDSK(n_clusters, lam="auto", random_state=random_state, **parameters)
    X, context = validate_fit(model, X, sample_weight)
    if not isinstance(model.init, str):
        check_simplex_point(model.init, X.shape[0], 1.0, "init")
    check_number(sample, "sample", above=0, at_most=1)
    check_choice(criterion, "criterion", CRITERIA)
    values = [
        check_number(value, "Each value of grid", above=0, at_most=1)
        for value in np.ravel(grid).tolist()
    ]
    if not values:
        raise ValueError("grid must hold at least one value; got none.")
    search = LambdaSearch(values, sample, criterion)
    with (
        one_thread_if_forked(),
        explain_memory_error("selecting lam"),
        context.progress,
    ):
        problem = resolve_lam(preprocess(X, context), context, search)
    return cast(LambdaChoice, problem.lambda_choice)
