# SPDX-License-Identifier: BSD-3-Clause
"""What all pictures share: axes, colours, points (tests/test_plot.py)."""

from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.validation import check_is_fitted

from cdsk._blocks.estimator import LandmarkEstimator
from cdsk._estimator import CDSK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colours that colour-blind readers can tell apart: Okabe & Ito's without black, and
# three of Paul Tol's.
COLOURS = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#F0E442"),
    *("#882255", "#332288", "#999933"),
)
GREY = "#9a9a9a"
DARK = "#333333"


def require_matplotlib():
    """Refuse in words if matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ImportError(
            "Pictures need matplotlib, which is not installed: pip install cdsk[plot]"
        ) from None


def drawn(model):
    """The fitted CDSK that is drawn: the model, or that of its landmarks.

    Anything else is refused in words, and all if matplotlib is not installed.
    """
    require_matplotlib()
    if isinstance(model, LandmarkEstimator):
        check_is_fitted(model, "landmark_model_")
        model = model.landmark_model_
    if not isinstance(model, CDSK):
        raise TypeError(f"model must be a fitted CDSK; got {model!r}.")
    check_is_fitted(model, "labels_")
    return model


def axes_or_current(ax: "Axes | None") -> "Axes":
    """The axes that were given, or the current ones of pyplot."""
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.gca()


def palette(n_clusters):
    """Colours of the clusters, an (n_clusters, 4) array.

    Ten hues; further clusters repeat them in darker and lighter shades, so that
    clusters of neighbouring numbers differ in hue.
    """
    from matplotlib.colors import to_rgba_array

    base = to_rgba_array(COLOURS)
    number = np.arange(n_clusters)
    colours = base[number % len(base)]
    shades = (n_clusters - 1) // len(base)
    if shades:
        # 0, then one darker, one lighter, one darker still ...
        shade = number // len(base)
        target = (shade % 2 == 0).astype(float)
        amount = np.where(target, 0.65, 0.4) * ((shade + 1) // 2 / ((shades + 1) // 2))
        colours[:, :3] *= 1.0 - amount[:, np.newaxis]
        colours[:, :3] += (amount * target)[:, np.newaxis]
    return colours


def cluster_colours(labels):
    """The palette for the clusters of these labels."""
    return palette(int(labels.max()) + 1)


def point_colours(labels):
    """The colour of the cluster of each point, grey for noise, label -1."""
    from matplotlib.colors import to_rgba_array

    # the last one is that of -1
    return np.concatenate([cluster_colours(labels), to_rgba_array(GREY)])[labels]


def draw_points(ax, places, colours, weights):
    """Points with weight as discs, light ones first; others as small rings."""
    share = np.sqrt(weights / weights.max())
    area = np.clip(20000 / len(places), 6.0, 42.0)
    empty = np.flatnonzero(share == 0)
    ax.scatter(
        *places[empty].T,
        s=0.4 * area,
        facecolors="none",
        edgecolors=colours[empty],
        linewidths=0.5,
        alpha=0.6,
        zorder=1.9,
    )
    full = np.flatnonzero(share)
    full = full[np.argsort(share[full], kind="stable")]
    share = share[full]
    ax.scatter(
        *places[full].T,
        s=area * (0.3 + 0.7 * share),
        c=colours[full],
        alpha=0.25 + 0.65 * share,
        edgecolors="white",
        linewidths=0.25,
        zorder=2,
    )


def number_ticks(axis, places, gap):
    """Label ``places`` along an axis by the number of their cluster.

    Where they are closer than ``gap``, some are left out.
    """
    shown, last = [], -np.inf
    for y, place in enumerate(places):
        if place - last >= gap:
            shown.append(y)
            last = place
    axis.set_ticks(places[shown], [str(y) for y in shown])
