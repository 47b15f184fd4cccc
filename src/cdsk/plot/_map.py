# SPDX-License-Identifier: BSD-3-Clause
"""Map of the points by the layout of their neighbor graph (tests/test_plot.py)."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from cdsk._cdsk import CDSK
from cdsk._map import compute_map
from cdsk.blocks._estimator import LandmarkEstimator
from cdsk.plot._common import (
    DARK,
    get_axes,
    get_fitted_model,
    get_point_colors,
    plot_points,
)
from cdsk.report._map import find_centers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Points (1/72 inch) between a label and its point.
_LABEL_OFFSET = 4


def map(
    model: CDSK | LandmarkEstimator,
    X: ArrayLike | None = None,
    *,
    ax: "Axes | None" = None,
    title: str | None = None,
    n_neighbors: int | None = None,
    random_state: int | np.random.RandomState | None = 0,
) -> "Axes":
    """Plot a map of the neighbor graph, points larger and more opaque by weight.

    Neighbors attract each other and all points repel each other, as in UMAP. The graph
    is that of the selected kernel, or else of the nearest neighbors in the
    representation of the fit. Near points are neighbors; far distances, sizes and
    axes have no meaning. Numbers mark the clusters, noise (label -1) is gray. Points of
    zero weight are small and hollow; rows of zero ``sample_weight`` are plotted on the
    point that is nearest to them in the embedding.

    Parameters
    ----------
    model : CDSK or BlockCDSK
        Fitted model; for BlockCDSK, its landmarks are plotted.
    X : array-like of shape (n_samples, n_features), default=None
        Any coordinates of the training points, required if ``kernel="precomputed"``;
        otherwise not used, because the model has its points.
    ax : matplotlib Axes, default=None
        Axes to plot on; None means the current pyplot axes.
    title : str, default=None
        Title of the axes.
    n_neighbors : int, default=None
        Number of neighbors of each point; of a given graph at most those that it has.
        None means the graph of the fit, or 20 if it has none.
    random_state : int, RandomState or None, default=0
        The same number gives the same map.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from cdsk import CDSK, plot
    >>> ax = plot.map(CDSK(3).fit(X), title="Three clusters")  # doctest: +SKIP
    """
    model = get_fitted_model(model)
    positions = compute_map(model, X, n_neighbors, random_state)
    ax = get_axes(ax)
    plot_points(ax, positions, get_point_colors(model.label_numbers_), model.weights_)
    _label_clusters(ax, positions, model.label_numbers_)
    ax.set(aspect="equal", title=title)
    ax.set_axis_off()
    return ax


def _label_clusters(ax, positions, labels):
    """Write the number of each cluster above the member nearest to its median."""
    from matplotlib.patheffects import withStroke

    for cluster, center in find_centers(positions, labels):
        ax.annotate(
            str(cluster),
            positions[center],
            # a number would hide a small cluster
            xytext=(0, _LABEL_OFFSET),
            textcoords="offset points",
            color=DARK,
            ha="center",
            va="bottom",
            weight="bold",
            path_effects=[withStroke(linewidth=2.5, foreground="white")],
            zorder=3,
        )
