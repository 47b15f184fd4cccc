# SPDX-License-Identifier: BSD-3-Clause
"""``suggest_n_clusters``: count clusters by eigengaps (tests/test_n_clusters.py)."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cdsk._cdsk import CDSK, validate_fit
from cdsk._count_choice import (
    CountChoice,
    default_counts,
    represent_for_counting,
    select_n_clusters,
)
from cdsk._preprocessing import Points
from cdsk._utils import (
    explain_memory_error,
    limit_blas_threads,
    one_thread_if_forked,
)
from cdsk._validation import (
    Data,
    check_integer,
)


def suggest_n_clusters(
    X: Data,
    n_clusters: Iterable[int] | None = None,
    *,
    metric: str = "euclidean",
    representation: str = "auto",
    n_components: int | None = None,
    sample_weight: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_threads: int | None = None,
) -> CountChoice:
    """Suggest the number of clusters by eigengaps at several scales, without labels.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Data.
    n_clusters : iterable of int, default=None
        Candidates: at least 2, below the number of samples. None means 2 to 19, or with
        60 features or more up to 100 if there are 5 samples each, as far as there are
        samples. A single cluster is not considered.
    metric : {"euclidean", "cosine"}, default="euclidean"
        Distance between points, as in ``CDSK``.
    representation : {"auto", "raw", "standardize", "normal_scores", "whiten", \
            "layout"}, default="auto"
        How the data are represented, as in ``CDSK``; a sparse X is "raw". Below 60
        features "auto" is "raw" if no standard deviation of a feature is more than
        twice another, "standardize" if one is more than a hundred times another, and in
        between the one of the two with the larger best score; else it is the layout in
        the view that is selected for the largest candidate.
    n_components : int, default=None
        Number of whitened components, or of dimensions of a layout; None as in
        ``CDSK``.
    sample_weight : array-like of shape (n_samples,), default=None
        How many times each row counts; None means once.
    random_state : int, RandomState instance or None, default=None
        Seeds the eigensolver's start.
    n_threads : int, default=None
        Threads of the compiled loops; None means all. The result does not depend on it.

    Returns
    -------
    choice : CountChoice
        The suggestion, the runner-up, and the curves behind them.

    Notes
    -----
    A suggestion, no more: about half were right on benchmark sets with known clusters,
    and seven in ten within one. Look at the curve and at the runner-up; data may well
    have two answers.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from cdsk import suggest_n_clusters
    >>> X, _ = make_blobs(300, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    >>> choice = suggest_n_clusters(X, range(2, 10), random_state=0)
    >>> choice.n_clusters, choice.scores.shape
    (3, (8,))
    """
    model = CDSK(
        "auto",
        metric=metric,
        representation=representation,
        n_components=n_components,
        random_state=random_state,
        n_threads=n_threads,
    )
    X, context = validate_fit(model, X, sample_weight)
    points = Points.from_distinct_rows(X, context.sample_weight)
    if len(points) < 3:
        raise ValueError(
            f"X must hold at least 3 distinct points; got {len(points)} in "
            f"{X.shape[0]} rows."
        )
    candidates = default_counts(points.X)
    if n_clusters is not None:
        candidates = _check_candidates(n_clusters)
    largest = int(candidates[-1])
    if largest >= len(points):
        raise ValueError(
            "n_clusters must hold numbers below the number of samples; got "
            f"{largest} and n_samples={X.shape[0]}, {len(points)} of them different."
        )
    with (
        one_thread_if_forked(),
        explain_memory_error("computing eigenvectors"),
        limit_blas_threads(),
    ):
        points, _ = points.completed(context)
        if context.n_categories is not None:
            representation = "raw"
        views = represent_for_counting(points, representation, largest, context)
        return select_n_clusters(points, views, candidates, context)


def _check_candidates(n_clusters: Iterable[int]) -> NDArray[np.int64]:
    """Return the candidates as a sorted array of distinct numbers."""
    try:
        values = list(n_clusters)
    except TypeError:
        raise ValueError(
            "n_clusters must hold several integers, as range(2, 20) does; got "
            f"{n_clusters!r}."
        ) from None
    if not values:
        raise ValueError("n_clusters must hold at least one integer; got none.")
    return np.unique([check_integer(c, "Each value of n_clusters", 2) for c in values])
