# SPDX-License-Identifier: BSD-3-Clause
"""Scatter plot of the points, colored by cluster (tests/test_plot.py)."""

import warnings
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted

from cdsk._preprocessing import Representation
from cdsk.plot._common import (
    GRAY,
    get_axes,
    get_point_colors,
    plot_points,
    require_matplotlib,
)
from cdsk.report._formatting import format_representation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Points on each side of the grid on which boundaries are computed.
_GRID_SIZE = 300

# Differences of log votes are clipped to this absolute value.
_MAX_LEAD = 30.0


def scatter(
    model: ClusterMixin,
    X: ArrayLike,
    *,
    ax: "Axes | None" = None,
    title: str | None = None,
    boundaries: bool = False,
) -> "Axes":
    """Plot points colored by cluster, larger and more opaque for larger weights.

    Points of zero weight are small and hollow, noise (label -1) is gray. More than two
    features are projected to the first two principal components, in the representation
    of the fit. A single feature is plotted against the weights.

    Parameters
    ----------
    model : CDSK
        Fitted model. Other fitted clusterers are plotted with equal weights.
    X : array-like of shape (n_samples, n_features)
        The training points; for a precomputed kernel, any coordinates of them.
    ax : matplotlib Axes, default=None
        Axes to plot on; None means the current pyplot axes.
    title : str, default=None
        Title of the axes.
    boundaries : bool, default=False
        Plot the decision boundaries of ``model.predict``; requires a model of two
        features.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from cdsk import CDSK, plot
    >>> ax = plot.scatter(CDSK(3).fit(X), X, title="Three clusters")  # doctest: +SKIP
    """
    require_matplotlib()
    points, labels, weights = _check_points(model, X)
    if boundaries:
        _check_boundaries(model)
    ax = get_axes(ax)
    positions, names = _project(model, points, weights)
    plot_points(ax, positions, get_point_colors(labels), weights)
    if boundaries:
        _plot_boundaries(ax, model)
    ax.set(xlabel=names[0], ylabel=names[1], title=title)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _check_points(model, X):
    check_is_fitted(model, "labels_")
    X = _complete(model, X)
    try:
        points = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        hint = " Pass X.toarray(), or use plot.embedding." if issparse(X) else ""
        raise ValueError(
            f"X must contain numbers; got {type(X).__name__}.{hint}"
        ) from None
    labels = np.asarray(getattr(model, "label_numbers_", model.labels_))
    if not np.isfinite(points).all():
        raise ValueError("X must contain finite numbers; got NaN or infinity.")
    if points.ndim != 2 or len(points) != len(labels) or not points.size:
        raise ValueError(
            f"X must contain the training points, shape ({len(labels)}, n_features); "
            f"got shape {points.shape}."
        )
    weights = getattr(model, "weights_", None)
    return points, labels, np.ones(len(labels)) if weights is None else weights


def _complete(model, X):
    """Return a table with categories or missing cells as complete coordinates."""
    columns = getattr(model, "columns_", None)
    if columns is not None and len(np.shape(X)) == 2:
        X = columns.encode(X)
    coding = getattr(getattr(model, "representation_", None), "coding", None)
    return X if coding is None else coding.transform(np.asarray(X, dtype=np.float64))


def _check_boundaries(model):
    n_features = getattr(model, "n_features_in_", None)
    is_precomputed = getattr(model, "kernel", None) == "precomputed"
    if n_features != 2 or is_precomputed or not hasattr(model, "decision_function"):
        raise ValueError(
            "boundaries=True requires a CDSK model of 2 features; got "
            f"{type(model).__name__} of {n_features} features"
            f"{' with a precomputed kernel' if is_precomputed else ''}."
        )


def _project(model, points, weights):
    """Return two coordinates per point, and their names."""
    n_features = points.shape[1]
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        names = [f"feature {j + 1}" for j in range(n_features)]
    # other clusterers do not have one
    representation = getattr(model, "representation_", Representation())
    name = representation.name
    if n_features > 2 and name != "raw":
        points = representation.transform(points)
        if name == "whiten":
            # already principal components, all of the same variance
            n_features = min(points.shape[1], 2)
            names = [f"whitened principal component {j + 1}" for j in range(n_features)]
            points = points[:, :2]
        if name == "layout":
            n_features = points.shape[1]
            names = [f"layout {j + 1}" for j in range(n_features)]
    if n_features == 2:
        return points, names
    if n_features == 1:
        return np.column_stack([points[:, 0], weights]), [names[0], "weight"]
    from sklearn.decomposition import PCA

    pca = PCA(2, random_state=0)
    with np.errstate(invalid="ignore"):  # identical points have zero variance
        positions = pca.fit_transform(points)
    # short enough for a panel of ``overview``
    view = format_representation(representation.view)
    suffix = " of the variance" if name == "raw" else f", {view}"
    return positions, [
        f"principal component {j + 1} ({ratio:.0%}{suffix})"
        for j, ratio in enumerate(np.nan_to_num(pca.explained_variance_ratio_))
    ]


def _plot_boundaries(ax, model):
    """Plot lines around the region of every cluster, within the current limits."""
    limits = ax.get_xlim(), ax.get_ylim()
    x, y = (np.linspace(low, high, _GRID_SIZE) for low, high in limits)
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    with warnings.catch_warnings():
        # the grid has no feature names
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        votes = model.decision_function(grid).T
    for label in range(len(votes) if len(votes) > 1 else 0):
        # The lead of a cluster over the others changes sign at its boundary. It is
        # infinite where one of both has no votes, and NaN where neither has any.
        with np.errstate(invalid="ignore"):
            lead = votes[label] - np.delete(votes, label, axis=0).max(axis=0)
        lead = np.nan_to_num(np.clip(lead, -_MAX_LEAD, _MAX_LEAD), nan=-_MAX_LEAD)
        if lead.min() < 0 < lead.max():
            ax.contour(
                x,
                y,
                lead.reshape(_GRID_SIZE, _GRID_SIZE),
                levels=[0.0],
                colors=GRAY,
                linewidths=0.7,
                zorder=1.5,
            )
    ax.set(xlim=limits[0], ylim=limits[1])
