# SPDX-License-Identifier: BSD-3-Clause
"""Plot of the tree of the layers of a fit (tests/test_layers.py)."""

from typing import TYPE_CHECKING, Any

import numpy as np

from cdsk.plot._common import DARK, GRAY, get_axes, get_fitted_model, make_palette
from cdsk.report._formatting import format_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Widths of lines, of the smallest and of the largest node.
_MIN_WIDTH, _MAX_WIDTH = 0.6, 5.0
# More leaves have no label.
_MAX_LABELS = 60
_SMALL: dict[str, Any] = {"textcoords": "offset points", "fontsize": 7, "color": DARK}


def tree(model: Any, *, ax: "Axes | None" = None, title: str | None = None) -> "Axes":
    """Plot the tree of the layers of a fit, the coarsest on the left.

    A line is a node: it begins at the height at which it is merged and ends where its
    parts are, so that long lines are clusters that persist. Its width shows the number
    of rows. Clusters of the fit and their parts have the colors of all plots; larger
    ones are dark. A vertical line through the tree cuts it into a layer: the solid one
    into the clusters of the fit, dotted ones into the layers most worth reading. At the
    leaves is their number of rows.

    Parameters
    ----------
    model : CDSK or BlockCDSK
        Fitted model. For a ``BlockCDSK``, the tree is that of its landmarks.
    ax : matplotlib Axes, default=None
        Axes to plot on; None means the current pyplot axes.
    title : str, default=None
        Title of the axes.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from cdsk import CDSK, plot
    >>> model = CDSK(3).fit(X)  # doctest: +SKIP
    >>> ax = plot.tree(model)  # doctest: +SKIP
    """
    layers = get_fitted_model(model).layers_
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgba

    ax, y = get_axes(ax), layers.places
    merges, heights = layers.linkage[:, :2].astype(int), layers.linkage[:, 2]
    n, top = layers.n_leaves, 1.05 * heights.max(initial=0.0) or 1.0
    bottom = 0.9 * heights.min(initial=top)
    made = np.concatenate([np.full(n, bottom), heights])
    merged = np.full(len(y), top)
    merged[merges] = heights[:, np.newaxis]
    palette = np.vstack([make_palette(layers.n_clusters), to_rgba(DARK)])
    colors = palette[layers.node_clusters]
    share = np.sqrt(layers.sizes / max(layers.sizes[-1], 1.0))
    widths = _MIN_WIDTH + (_MAX_WIDTH - _MIN_WIDTH) * share
    lines = [[(merged[i], y[i]), (made[i], y[i])] for i in range(len(y))]
    joins = [[(h, y[a]), (h, y[b])] for (a, b), h in zip(merges, heights, strict=True)]
    ax.add_collection(LineCollection(joins, colors=colors[n:], linewidths=0.8))
    style = {"colors": colors, "linewidths": widths, "capstyle": "butt"}
    ax.add_collection(LineCollection(lines, **style))
    _label_layers(ax, layers, bottom, top)
    if n <= _MAX_LABELS:
        for leaf in range(n):
            text = format_count(float(layers.sizes[leaf]))
            ax.annotate(text, (bottom, y[leaf]), (4, 0), va="center", **_SMALL)
    # the nodes that are the clusters of the fit, by the middle of their line
    for y_fit, node in enumerate(layers.cluster_nodes.tolist()):
        x = (merged[node] + made[node]) / 2
        ax.annotate(str(y_fit), (x, y[node]), (0, 2), ha="center", **_SMALL)
    ax.set(xlim=(top, bottom), ylim=(n - 0.4, -0.6), title=title, xlabel="height")
    ax.yaxis.set_visible(False)
    ax.spines[["top", "left", "right"]].set_visible(False)
    return ax


def _label_layers(ax, layers, bottom, top):
    """Draw the lines of the layers, with their numbers of clusters."""
    heights = np.concatenate([[bottom], layers.linkage[:, 2], [top]])
    previous = -np.inf
    for k in sorted({layers.n_clusters, *layers.levels}, reverse=True):
        begin, end = heights[layers.n_leaves - k], heights[layers.n_leaves - k + 1]
        x, is_fit = (begin + end) / 2, k == layers.n_clusters
        style = {"color": DARK, "lw": 1.0} if is_fit else {"color": GRAY, "ls": ":"}
        ax.axvline(x, zorder=0.5, **style)
        # numbers that would overlap are on two lines
        offset = 14 if x - previous < 0.04 * (top - bottom) else 3
        previous = x if offset == 3 else -np.inf
        text = f"{k} (fit)" if is_fit else str(k)
        place = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
        ax.annotate(text, (x, 1), (0, offset), ha="center", va="bottom", **place)
