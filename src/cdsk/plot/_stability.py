# SPDX-License-Identifier: BSD-3-Clause
"""Plot of co-assignment in resamples (tests/test_plot_stability.py)."""

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from cdsk._stability import Stability
from cdsk.plot._common import (
    DARK,
    get_axes,
    get_point_colors,
    label_clusters,
    require_matplotlib,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Groups of rows on each side; a cell is the mean of two groups.
_N_GROUPS = 160
# Width of the strip of clusters, relative to that of the heat map.
_STRIP = 0.04


def stability(
    stability: Stability, *, ax: "Axes | None" = None, title: str | None = None
) -> "Axes":
    """Plot how often two rows share a cluster in the resamples of a fit.

    Rows are sorted by the cluster of the fit, noise last, and within it by their
    agreement with the resamples. Black cells: the rows share a cluster in all
    resamples; white: in none. Clusters that are stable are black squares on white; a
    cluster that is split has lighter squares within, and clusters that are merged have
    gray cells between them. Of many rows, groups are averaged. The strip on the left
    has the colors of the clusters.

    Parameters
    ----------
    stability : Stability
        Result of ``cdsk.stability``.
    ax : matplotlib Axes, default=None
        Axes to plot on; None means the current pyplot axes.
    title : str, default=None
        Title of the axes.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from cdsk import CDSK, plot, stability
    >>> model = CDSK(3).fit(X)  # doctest: +SKIP
    >>> ax = plot.stability(stability(model, X))  # doctest: +SKIP
    """
    require_matplotlib()
    if not isinstance(stability, Stability):
        raise TypeError(
            f"stability must be a result of cdsk.stability; got {stability!r}."
        )
    from matplotlib.patches import Rectangle

    cells, edges = co_assignment(stability)
    order = sort_rows(stability)
    labels = stability.labels[stability.rows][order]
    n = len(order)
    ax = get_axes(ax)
    ax.pcolormesh(edges, edges, cells, cmap="Greys", vmin=0, vmax=1, rasterized=True)
    borders = np.flatnonzero(np.diff(labels, prepend=-2, append=-2))
    colors, width = get_point_colors(labels), _STRIP * n
    for begin, end in pairwise(borders.tolist()):
        side = end - begin
        ax.add_patch(Rectangle((begin, begin), side, side, fill=False, ec=DARK, lw=0.6))
        strip = -1.5 * width, begin
        ax.add_patch(Rectangle(strip, width, side, color=colors[begin], lw=0))
    ax.set(xlim=(-1.5 * width, n), ylim=(n, 0), aspect="equal", title=title)
    # clusters may have no row, and noise is last
    clusters = labels[borders[:-1]]
    centers = np.full(int(labels.max()) + 1, np.nan)
    centers[clusters[clusters >= 0]] = ((borders[:-1] + borders[1:]) / 2)[clusters >= 0]
    label_clusters(ax.yaxis, centers, min_distance=n / 20)
    ax.tick_params(length=0)
    ax.set(xticks=[], ylabel="cluster")
    ax.spines[:].set_visible(False)
    return ax


def sort_rows(stability):
    """Return places in ``rows``, by cluster, noise last, and by agreement."""
    labels = stability.labels[stability.rows]
    cluster = np.where(labels < 0, labels.max() + 1, labels)
    return np.lexsort((-stability.agreement[stability.rows], cluster))


def co_assignment(stability):
    """Return the mean share of resamples in which rows of two groups share a cluster.

    Also return the first row of each group in the sorted order, and their number. Rows
    that are noise in a resample share no cluster there.
    """
    order = sort_rows(stability)
    assignments = stability.assignments[:, order]
    n = len(order)
    edges = np.unique(np.linspace(0, n, min(n, _N_GROUPS) + 1).round().astype(int))
    sizes = np.diff(edges)
    group = np.repeat(np.arange(len(sizes)), sizes)
    cells = np.zeros((len(sizes), len(sizes)))
    for labels in assignments:
        is_kept = labels >= 0
        members = np.zeros((len(sizes), int(labels.max(initial=0)) + 1))
        np.add.at(members, (group[is_kept], labels[is_kept]), 1.0)
        members /= sizes[:, np.newaxis]
        cells += members @ members.T
    return cells / len(assignments), edges
