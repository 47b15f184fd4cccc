# SPDX-License-Identifier: BSD-3-Clause
"""Plot of what distinguishes the clusters (tests/test_plot_profiles.py)."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cdsk._cdsk import CDSK
from cdsk._distributions import compute_distributions
from cdsk._profiles import MISSING, NUMBER, LabeledTable, compute_profiles
from cdsk._validation import check_choice, check_integer
from cdsk.blocks._estimator import LandmarkEstimator
from cdsk.plot._common import DARK, GRAY, get_axes, get_fitted_model, make_palette
from cdsk.report._formatting import format_number, format_share
from cdsk.report._sentences import name_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Features that are plotted by default.
_MAX_FEATURES = {"heat": 20, "strips": 8}
# Effects beyond it have the same color.
_MAX_EFFECT = 2.0
# Values are written into the cells of at most so many clusters.
_MAX_WRITTEN = 8
_MAX_NAME = 30
# Clusters with a tick of their own.
_MAX_TICKS = 20
# Half the width of the widest bin, and the height of a row of strips.
_HALF_WIDTH, _ROW = 0.42, 0.8


def profiles(
    model: CDSK | LandmarkEstimator,
    X: Any,
    *,
    kind: str = "heat",
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    max_features: int | None = None,
    ax: "Axes | None" = None,
    title: str | None = None,
) -> "Axes":
    """Plot what distinguishes the clusters: features in rows, clusters in columns.

    Rows are the features with the largest differences, by ``CDSK.profiles``.

    Parameters
    ----------
    model : CDSK or BlockCDSK
        Fitted model; for BlockCDSK, X has the rows of its landmarks, or ``labels``.
    X : array-like, sparse matrix or data frame of shape (n_samples, n_columns)
        As for ``CDSK.profiles``.
    kind : {"heat", "strips"}, default="heat"
        "heat" colors the effect: red for larger values than elsewhere, blue for
        smaller ones, gray if chance may explain the difference. For up to 8 clusters
        means and shares are written in the cells. "strips" shows the distribution of
        each feature in every cluster and, in gray, in all rows; a share is a bar.
    labels, sample_weight : array-like of shape (n_samples,), default=None
        As for ``CDSK.profiles``.
    max_features : int, default=None
        Number of rows of the plot; None means 20, or 8 for "strips".
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
    >>> ax = plot.profiles(CDSK(3).fit(X), X, kind="strips")  # doctest: +SKIP
    """
    model = get_fitted_model(model)
    check_choice(kind, "kind", tuple(_MAX_FEATURES))
    if max_features is None:
        max_features = _MAX_FEATURES[kind]
    check_integer(max_features, "max_features", 1)
    table = LabeledTable.from_model(model, X, labels, sample_weight)
    found = compute_profiles(table)
    lines = found.order_lines()[:max_features]
    # noise comes last
    order = np.argsort(found.clusters < 0, kind="stable")
    is_given, ax = ax is not None, get_axes(ax)
    figure: Any = ax.figure
    if not is_given and len(figure.axes) == 1 and figure.get_layout_engine() is None:
        figure.set_layout_engine("constrained")  # room for the names
    if kind == "heat":
        _plot_heat(ax, found, lines, order)
    else:
        _plot_strips(ax, table, found, lines, order)
    n_lines = len(found.order_lines())
    shown = "" if len(lines) == n_lines else f" ({len(lines)} of {n_lines} features)"
    ax.set(xlabel=f"cluster{shown}", title=title)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return ax


def _label_rows(ax, found, lines, positions):
    """Name the rows, in letters that fit their number."""
    names = []
    for i in lines:
        line = found.lines[i]
        feature = {"kind": line.kind, "category": line.category}
        feature["feature"] = line.feature
        names.append(name_line(feature, length=_MAX_NAME))
    ax.set_yticks(positions, names)
    size = float(np.clip(200.0 / max(len(lines), 1), 4.0, 9.0))
    for label in ax.get_yticklabels():
        label.set_fontsize(size)
        # a dollar sign is no formula
        label.set_parse_math(False)


def _label_columns(ax, clusters, names_before=()):
    """Label the columns by their clusters, some of them if there are many."""
    names = [*names_before, *("noise" if y < 0 else str(y) for y in clusters)]
    step = -(-len(names) // _MAX_TICKS)
    ticks = [
        i
        for i, name in enumerate(names)
        if not name.isdecimal() or int(name) % step == 0
    ]
    # room for the label of noise
    if step > 1 and names[-1] == "noise" and ticks[-2] == len(names) - 2:
        del ticks[-2]
    ax.set_xticks(ticks, [names[i] for i in ticks])
    for label in ax.get_xticklabels():
        if step > 1 and not label.get_text().isdecimal():
            label.set(rotation=90)


def _plot_heat(ax, found, lines, order):
    from matplotlib import colormaps

    effect = found.effect[np.ix_(order, lines)].T
    is_sure = found.conservative[np.ix_(order, lines)].T != 0
    colors = colormaps["RdBu_r"].with_extremes(bad="#ededed")
    image = ax.imshow(
        np.ma.masked_where(~is_sure, effect),
        cmap=colors,
        vmin=-_MAX_EFFECT,
        vmax=_MAX_EFFECT,
        aspect="auto",
        interpolation="nearest",
    )
    rows, columns = effect.shape
    # lines between the cells
    ax.set_xticks(np.arange(columns + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(rows + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=min(1.5, 30.0 / columns))
    ax.tick_params(which="minor", length=0)
    _label_rows(ax, found, lines, np.arange(rows))
    _label_columns(ax, found.clusters[order])
    if columns <= _MAX_WRITTEN:
        _write_values(ax, found, lines, order, is_sure & (abs(effect) > 1.2))
    bar = ax.figure.colorbar(image, ax=ax, extend="both", shrink=0.8)
    bar.set_label("difference / standard deviation")
    bar.outline.set_visible(False)


def _write_values(ax, found, lines, order, is_dark):
    size = float(np.clip(180.0 / len(lines), 4.0, 8.0))
    for row, i in enumerate(lines):
        for column, y in enumerate(order):
            value = found.value[y, i]
            is_number = found.lines[i].kind == NUMBER
            text = format_number(value) if is_number else format_share(value)
            color = "white" if is_dark[row, column] else DARK
            ax.text(
                column,
                row,
                "–" if np.isnan(value) else text,
                ha="center",
                va="center",
                fontsize=size,
                color=color,
            )


def _plot_strips(ax, table, found, lines, order):
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import to_rgba

    columns = sorted({found.lines[i].column for i in lines})
    distributions = compute_distributions(table, columns)
    clusters = found.clusters[order]
    palette = make_palette(max(int(clusters.max()), 0) + 1)
    colors = [GRAY, *(GRAY if y < 0 else palette[y] for y in clusters)]
    # of the bin of largest share, and of the text beside a row
    polygons, faces = [], []
    for row, i in enumerate(lines):
        line, distribution = found.lines[i], distributions[found.lines[i].column]
        total, values = _take_line(found, i, distribution)
        bottom = row + 0.5 * _ROW
        for column, bins in enumerate([total, *(values[y] for y in order)]):
            is_share = line.kind != NUMBER
            polygon = _make_bar(bins) if is_share else _make_violin(bins)
            polygons.append(polygon * (1.0, -_ROW) + (column, bottom))
            faces.append(to_rgba(colors[column], 0.55 if column == 0 else 0.85))
        _write_range(ax, line, distribution, len(colors) - 0.5, bottom)
    edges = [(*color[:3], 1.0) for color in faces]
    ax.add_collection(
        PolyCollection(polygons, facecolors=faces, edgecolors=edges, linewidths=0.6)
    )
    for row in range(len(lines) + 1):
        ax.axhline(row - 0.5, color="#e4e4e4", linewidth=0.7, zorder=0)
    ax.axvline(0.5, color="#e4e4e4", linewidth=0.7, zorder=0)
    ax.set(xlim=(-0.5, len(colors) - 0.5), ylim=(len(lines) - 0.5, -0.5))
    _label_rows(ax, found, lines, np.arange(len(lines)))
    _label_columns(ax, clusters, names_before=["all"])


def _take_line(found, i, distribution):
    """Return shares of bins, or one share, of all rows and of each cluster."""
    line = found.lines[i]
    if line.kind == NUMBER:
        return distribution.total, distribution.shares
    if line.kind == MISSING:
        return distribution.total_missing, distribution.missing
    counts = found.sizes * (1.0 - distribution.missing)
    shares = np.nan_to_num(found.value[:, i])
    return float(shares @ counts / counts.sum()), shares


def _make_violin(bins):
    """Return the outline of a histogram, its bins from bottom 0 to top 1."""
    width = _HALF_WIDTH * bins / (bins.max() or 1.0)
    height = (np.arange(len(bins)) + 0.5) / len(bins)
    if len(bins) == 1:
        width, height = np.repeat(width, 2), np.array([0.3, 0.7])
    outline = np.column_stack([width, height])
    return np.concatenate([outline, (outline * (-1.0, 1.0))[::-1]])


def _make_bar(share):
    width = 0.6 * _HALF_WIDTH
    return np.array([(-width, 0.0), (-width, share), (width, share), (width, 0.0)])


def _write_range(ax, line, distribution, x, bottom):
    """Write the ends of the axis of a row on its right."""
    low, high = "0%", "100%"
    if line.kind == NUMBER:
        low, high = format_number(distribution.low), format_number(distribution.high)
    for text, y, align in ((low, bottom, "bottom"), (high, bottom - _ROW, "top")):
        ax.text(x + 0.1, y, text, va=align, fontsize=6, color=DARK, clip_on=False)
