# SPDX-License-Identifier: BSD-3-Clause
"""Axes, colors and points of all plots (tests/test_plot.py)."""

from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.validation import check_is_fitted

from cdsk._cdsk import CDSK
from cdsk.blocks._estimator import LandmarkEstimator

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Safe for color-blind readers: the colors of Okabe & Ito without black, and three of
# Paul Tol.
_OKABE_ITO = "#0072B2 #E69F00 #009E73 #CC79A7 #D55E00 #56B4E9 #F0E442"
_TOL = "#882255 #332288 #999933"
COLORS = (*_OKABE_ITO.split(), *_TOL.split())
GRAY = "#9a9a9a"
DARK = "#333333"


def require_matplotlib():
    """Raise an ImportError with a hint if matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ImportError(
            "Plots require matplotlib, which is not installed: pip install cdsk[plot]"
        ) from None


def get_fitted_model(model):
    """Return the fitted CDSK to plot: the model, or the model of its landmarks.

    Raises an error for any other model, and if matplotlib is not installed.
    """
    require_matplotlib()
    if isinstance(model, LandmarkEstimator):
        check_is_fitted(model, "landmark_model_")
        model = model.landmark_model_
    if not isinstance(model, CDSK):
        raise TypeError(f"model must be a fitted CDSK; got {model!r}.")
    check_is_fitted(model, "labels_")
    return model


def get_axes(ax: "Axes | None") -> "Axes":
    """Return the given axes, or the current pyplot axes."""
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.gca()


def make_palette(n_clusters):
    """Return the RGBA colors of the clusters, (n_clusters, 4).

    Clusters beyond the tenth repeat the ten hues in darker and lighter shades, so that
    consecutive clusters differ in hue.
    """
    from matplotlib.colors import to_rgba_array

    base = to_rgba_array(COLORS)
    cluster = np.arange(n_clusters)
    colors = base[cluster % len(base)]
    n_shades = (n_clusters - 1) // len(base)
    if n_shades:
        # alternately mixed with black and white, in increasing amounts
        shade = cluster // len(base)
        is_lighter = (shade % 2 == 0).astype(float)
        level = (shade + 1) // 2 / ((n_shades + 1) // 2)
        amount = np.where(is_lighter, 0.65, 0.4) * level
        colors[:, :3] *= 1.0 - amount[:, np.newaxis]
        colors[:, :3] += (amount * is_lighter)[:, np.newaxis]
    return colors


def get_point_colors(labels):
    """Return the color of the cluster of each point, gray for noise (label -1)."""
    from matplotlib.colors import to_rgba_array

    palette = make_palette(int(labels.max()) + 1)
    # index -1 is the last color
    return np.concatenate([palette, to_rgba_array(GRAY)])[labels]


def plot_points(ax, positions, colors, weights):
    """Plot points of positive weight as disks, the others as small rings."""
    size = np.sqrt(weights / weights.max())
    area = np.clip(20000 / len(positions), 6.0, 42.0)
    zero = np.flatnonzero(size == 0)
    ax.scatter(
        *positions[zero].T,
        s=0.4 * area,
        facecolors="none",
        edgecolors=colors[zero],
        linewidths=0.5,
        alpha=0.6,
        zorder=1.9,
    )
    positive = np.flatnonzero(size)
    # the largest weights on top
    positive = positive[np.argsort(size[positive], kind="stable")]
    size = size[positive]
    ax.scatter(
        *positions[positive].T,
        s=area * (0.3 + 0.7 * size),
        c=colors[positive],
        alpha=0.25 + 0.65 * size,
        edgecolors="white",
        linewidths=0.25,
        zorder=2,
    )


def label_clusters(axis, positions, min_distance):
    """Label positions on an axis by the number of their cluster.

    Labels closer than ``min_distance`` to the previous one are omitted.
    """
    labeled, previous = [], -np.inf
    for y, position in enumerate(positions):
        if position - previous >= min_distance:
            labeled.append(y)
            previous = position
    axis.set_ticks(positions[labeled], [str(y) for y in labeled])
