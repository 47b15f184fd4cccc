# SPDX-License-Identifier: BSD-3-Clause
"""Points coloured by cluster (tests/test_plot.py)."""

import warnings
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted

from cdsk._choices.representation import Representation
from cdsk._explain.phrases import in_words
from cdsk.plot._common import (
    GREY,
    axes_or_current,
    draw_points,
    point_colours,
    require_matplotlib,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Points along each side of the grid on which boundaries are drawn.
_GRID = 300

# Log votes beyond which a lead is as good as infinite.
_MOST_LEAD = 30.0


def scatter(
    model: ClusterMixin,
    X: ArrayLike,
    *,
    ax: "Axes | None" = None,
    title: str | None = None,
    boundaries: bool = False,
) -> "Axes":
    """Draw points coloured by cluster, large and opaque where they carry weight.

    Points without weight are small and hollow, noise (label -1) is grey. Data of more
    than two features are shown by their first two principal components in the
    representation of the fit, data of one feature against their weights.

    Parameters
    ----------
    model : CDSK
        Fitted model. Another fitted clusterer is drawn with equal weights.
    X : array-like of shape (n_samples, n_features)
        The points it was fitted to; for a precomputed kernel, any coordinates of them.
    ax : matplotlib Axes, default=None
        Where to draw; None means the current ones of pyplot.
    title : str, default=None
        Title of the axes.
    boundaries : bool, default=False
        Draw the boundaries between the regions of ``model.predict``; for models of two
        features only.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from cdsk import CDSK, plot
    >>> ax = plot.scatter(CDSK(3).fit(X), X, title="Three clusters")  # doctest: +SKIP
    """
    require_matplotlib()
    points, labels, weights = _check(model, X)
    if boundaries:
        _check_boundaries(model)
    ax = axes_or_current(ax)
    places, names = _plane(model, points, weights)
    draw_points(ax, places, point_colours(labels), weights)
    if boundaries:
        _draw_boundaries(ax, model)
    ax.set(xlabel=names[0], ylabel=names[1], title=title)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _check(model, X):
    check_is_fitted(model, "labels_")
    try:
        points = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        hint = " Expected X.toarray(), or plot.embedding." if issparse(X) else ""
        got = type(X).__name__
        raise ValueError(f"X must hold numbers; got {got}.{hint}") from None
    labels = np.asarray(model.labels_)
    if not np.isfinite(points).all():
        raise ValueError("X must hold finite numbers; got NaN or infinity.")
    if points.ndim != 2 or len(points) != len(labels) or not points.size:
        raise ValueError(
            f"X must hold the points of the model, shape ({len(labels)}, n_features); "
            f"got shape {points.shape}."
        )
    weights = getattr(model, "weights_", None)
    return points, labels, np.ones(len(labels)) if weights is None else weights


def _check_boundaries(model):
    n_features = getattr(model, "n_features_in_", None)
    precomputed = getattr(model, "kernel", None) == "precomputed"
    if n_features != 2 or precomputed or not hasattr(model, "decision_function"):
        raise ValueError(
            "boundaries needs a CDSK model of 2 features; got "
            f"{type(model).__name__} of {n_features} features"
            f"{' with a precomputed kernel' if precomputed else ''}."
        )


def _plane(model, points, weights):
    """Two coordinates per point, and what they are."""
    n_features = points.shape[1]
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        names = [f"feature {j + 1}" for j in range(n_features)]
    # other clusterers have none
    representation = getattr(model, "representation_", Representation())
    view = representation.name
    if n_features > 2 and view != "raw":
        points = representation.transform(points)
        if view == "whiten":
            # these are principal components, and no direction has more variance
            n_features = min(points.shape[1], 2)
            names = [f"whitened principal component {j + 1}" for j in range(n_features)]
            points = points[:, :2]
    if n_features == 2:
        return points, names
    if n_features == 1:
        return np.column_stack([points[:, 0], weights]), [names[0], "weight"]
    from sklearn.decomposition import PCA

    pca = PCA(2, random_state=0)
    with np.errstate(invalid="ignore"):  # equal points have shares of nothing
        places = pca.fit_transform(points)
    form = " of the variance" if view == "raw" else f", {in_words(view)}"
    return places, [
        f"principal component {j + 1} ({share:.0%}{form})"
        for j, share in enumerate(np.nan_to_num(pca.explained_variance_ratio_))
    ]


def _draw_boundaries(ax, model):
    """Thin lines around the region of every cluster, within the present limits."""
    limits = ax.get_xlim(), ax.get_ylim()
    x, y = (np.linspace(low, high, _GRID) for low, high in limits)
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    with warnings.catch_warnings():
        # the grid has no feature names, the data may have had
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        votes = model.decision_function(grid).T
    for label in range(len(votes) if len(votes) > 1 else 0):
        # The lead of a cluster over the others changes its sign at its boundary. It is
        # infinite where one side has no votes, and nothing where none has any.
        with np.errstate(invalid="ignore"):
            lead = votes[label] - np.delete(votes, label, axis=0).max(axis=0)
        lead = np.nan_to_num(np.clip(lead, -_MOST_LEAD, _MOST_LEAD), nan=-_MOST_LEAD)
        if lead.min() < 0 < lead.max():
            ax.contour(
                *(x, y, lead.reshape(_GRID, _GRID)),
                levels=[0.0],
                colors=GREY,
                linewidths=0.7,
                zorder=1.5,
            )
    ax.set(xlim=limits[0], ylim=limits[1])
