# SPDX-License-Identifier: BSD-3-Clause
"""How view and kernel were chosen: scores above agreement (tests/test_plot.py)."""

from typing import TYPE_CHECKING

import numpy as np

from cdsk._blocks.estimator import LandmarkEstimator
from cdsk._estimator import CDSK
from cdsk._explain.phrases import in_words
from cdsk.plot._common import COLOURS, DARK, GREY, axes_or_current, drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Heights of the matrix, of the space between it and the curves, whose own height is
# 1, of the legend above them, and of the bar of a view above all.
_HEIGHT, _SPACE, _LEGEND, _BAR = 1.0, 0.12, 0.3, 0.16

# Up to so many candidates the agreement is written into its cell.
_MOST_WRITTEN = 8


def choice(
    model: CDSK | LandmarkEstimator,
    *,
    ax: "Axes | None" = None,
    title: str | None = None,
) -> "Axes":
    """Draw score, balance and cohesion of each candidate, and how far each two agree.

    The curves are above, the adjusted Rand index of every two candidates below, in the
    same columns. The chosen candidate is framed. Where views of the data were compared,
    bars on top show their scores, the chosen one in dark.

    Parameters
    ----------
    model : CDSK or BlockCDSK
        Fitted model; of blocks the landmarks are drawn.
    ax : matplotlib Axes, default=None
        Where to draw; None means the current ones of pyplot.
    title : str, default=None
        Title of the axes.

    Returns
    -------
    ax : matplotlib Axes
    """
    model = drawn(model)
    ax = axes_or_current(ax)
    ax.set(title=title)
    ax.spines[:].set_visible(False)
    tried = model.choice_
    if len(tried.names) == 1:
        ax.text(
            *(0.5, 0.5, f"one kernel: {tried.names[0]}"),
            ha="center",
            va="center",
            transform=ax.transAxes,
        )
        ax.set(xticks=[], yticks=[])
        return ax
    column = np.arange(len(tried.names))
    _draw_matrix(ax, tried)
    _draw_curves(ax, tried, column)
    names, common = without_common_ending(tried.names)
    rows = -_SPACE - _HEIGHT * (column + 0.5) / len(column)
    ax.set_xticks(column, names)
    views, bars, top = _draw_views(ax, model.representation_, len(column))
    ax.set_yticks([0.0, 0.5, 1.0, *rows, *bars], ["0", "0.5", "1", *names, *views])
    ax.tick_params(length=0)
    ax.set(xlabel=f"kernel (... {common})" if common else "kernel")
    ax.set(xlim=(-0.5, len(column) - 0.5), ylim=(-_SPACE - _HEIGHT, top))
    return ax


def _draw_views(ax, representation, width):
    """A bar for the score of every view, as wide as the axes for 1.

    Returns the names of the views, the heights of their bars, and where they end.
    """
    scores, below = representation.scores, 1.0 + _LEGEND
    if len(scores) < 2:
        return [], [], below
    top = below + _BAR * len(scores) + _SPACE
    heights = top - _BAR * (np.arange(len(scores)) + 0.5)
    lengths = width * np.clip(list(scores.values()), 0.0, 1.0)
    chosen = [view == representation.view for view in scores]
    ax.barh(
        *(heights, lengths),
        left=-0.5,
        height=0.8 * _BAR,
        color=[DARK if is_chosen else GREY for is_chosen in chosen],
    )
    for height, length, score, is_chosen in zip(
        heights, lengths, scores.values(), chosen, strict=True
    ):
        # within a bar that leaves no room beside it
        inside = length > 0.85 * width
        ax.text(
            *(length - 0.5, height, f" {score:.3f}{', chosen' * is_chosen} "),
            ha="right" if inside else "left",
            va="center_baseline",
            size="x-small",
            color="white" if inside else DARK,
        )
    names = [in_words(view).removesuffix(" components") for view in scores]
    return names, heights, top


def without_common_ending(names):
    """The names without the words that all end in, and those words."""
    words = [name.split() for name in names]
    shortest = min(map(len, words))
    count = 0
    while count + 1 < shortest and len({w[-count - 1] for w in words}) == 1:
        count += 1
    if not count:
        return list(names), ""
    return [" ".join(w[:-count]) for w in words], " ".join(words[0][-count:])


def _draw_curves(ax, tried, column):
    from matplotlib.patches import Rectangle

    ax.axhline(0.0, color=DARK, linewidth=0.6)
    for i, name, marker in ((2, "cohesion", "^"), (1, "balance", "s")):
        values = getattr(tried, name)
        ax.plot(column, values, color=COLOURS[i], marker=marker, ms=4, label=name)
    ax.plot(column, tried.scores, color=COLOURS[0], marker="o", ms=5, label="score")
    ax.legend(
        loc="upper right",
        bbox_to_anchor=(len(column) - 0.5, 1.0 + _LEGEND),
        bbox_transform=ax.transData,
        ncols=3,
        frameon=False,
        fontsize="small",
        borderpad=0,
    )
    ax.add_patch(
        Rectangle(
            (tried.chosen - 0.5, -_SPACE - _HEIGHT),
            *(1.0, _HEIGHT + _SPACE + 1.08),
            fill=False,
            ec=DARK,
            lw=1.2,
            clip_on=False,
            zorder=3,
        )
    )


def _draw_matrix(ax, tried):
    size = len(tried.names)
    ends = -_SPACE - _HEIGHT * np.arange(size + 1) / size
    ax.pcolormesh(
        *(np.arange(size + 1) - 0.5, ends, tried.agreement),
        cmap="Blues",
        vmin=0.0,
        vmax=1.2,
        edgecolors="white",
        linewidth=0.5,
    )
    if size > _MOST_WRITTEN:
        return
    for i in range(size):
        for j in range(size):
            # + 0.0: no minus before a zero
            value = np.round(tried.agreement[i, j], 2) + 0.0
            ax.text(
                *(j, (ends[i] + ends[i + 1]) / 2, f"{value:.2f}"),
                ha="center",
                va="center",
                size="x-small",
                color="white" if value > 0.55 else DARK,
            )
