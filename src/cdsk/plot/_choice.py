# SPDX-License-Identifier: BSD-3-Clause
"""Plot of the selection of representation and kernel (tests/test_plot.py)."""

from typing import TYPE_CHECKING

import numpy as np

from cdsk._cdsk import CDSK
from cdsk.blocks._estimator import LandmarkEstimator
from cdsk.plot._common import COLORS, DARK, GRAY, get_axes, get_fitted_model
from cdsk.report._formatting import format_representation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Heights relative to the curves: the matrix, the space above it, the legend of the
# curves, and the bar of a representation.
_MATRIX, _SPACE, _LEGEND, _BAR = 2.0, 0.12, 0.3, 0.16


def choice(
    model: CDSK | LandmarkEstimator,
    *,
    ax: "Axes | None" = None,
    title: str | None = None,
) -> "Axes":
    """Plot score, balance and cohesion of the candidates, and their agreement.

    The matrix below the curves shows the adjusted Rand index of each pair of
    candidates. A frame marks the selected candidate. If several representations of the
    data were compared, bars at the top show their scores, the selected one in dark.

    Parameters
    ----------
    model : CDSK or BlockCDSK
        Fitted model; for BlockCDSK, its landmarks are plotted.
    ax : matplotlib Axes, default=None
        Axes to plot on; None means the current pyplot axes.
    title : str, default=None
        Title of the axes.

    Returns
    -------
    ax : matplotlib Axes
    """
    model = get_fitted_model(model)
    ax = get_axes(ax)
    ax.set(title=title)
    ax.spines[:].set_visible(False)
    selection = model.choice_
    if len(selection.names) == 1:
        ax.text(
            x=0.5,
            y=0.5,
            s=f"one kernel: {selection.names[0]}",
            ha="center",
            va="center",
            transform=ax.transAxes,
        )
        ax.set(xticks=[], yticks=[])
        return ax
    column = np.arange(len(selection.names))
    _plot_matrix(ax, selection)
    _plot_curves(ax, selection, column)
    rows = -_SPACE - _MATRIX * (column + 0.5) / len(column)
    # columns have the names of the rows of the matrix
    ax.set_xticks([])
    labels, bars, top = _plot_representations(ax, model.representation_, len(column))
    ax.set_yticks(
        [0.0, 0.5, 1.0, *rows, *bars], ["0", "0.5", "1", *selection.names, *labels]
    )
    ax.tick_params(length=0, labelsize="x-small")
    ax.set(xlabel="candidate")
    ax.set(xlim=(-0.5, len(column) - 0.5), ylim=(-_SPACE - _MATRIX, top))
    return ax


def _plot_representations(ax, representation, width):
    """Plot a bar for the score of every representation; a score of 1 has full width.

    Return the names, the vertical positions of the bars, and the upper limit.
    """
    scores, bottom = representation.scores, 1.0 + _LEGEND
    if len(scores) < 2:
        return [], [], bottom
    top = bottom + _BAR * len(scores) + _SPACE
    heights = top - _BAR * (np.arange(len(scores)) + 0.5)
    lengths = width * np.clip(list(scores.values()), 0.0, 1.0)
    is_selected = [name == representation.view for name in scores]
    ax.barh(
        heights,
        lengths,
        left=-0.5,
        height=0.8 * _BAR,
        color=[DARK if selected else GRAY for selected in is_selected],
    )
    for height, length, score, selected in zip(
        heights, lengths, scores.values(), is_selected, strict=True
    ):
        # inside of long bars, which leave no space
        is_inside = length > 0.85 * width
        ax.text(
            x=length - 0.5,
            y=height,
            s=f" {score:.3f}{', selected' * selected} ",
            ha="right" if is_inside else "left",
            va="center_baseline",
            size="x-small",
            color="white" if is_inside else DARK,
        )
    names = [format_representation(name).removesuffix(" components") for name in scores]
    return names, heights, top


def _plot_curves(ax, selection, column):
    from matplotlib.patches import Rectangle

    ax.axhline(0.0, color=DARK, linewidth=0.6)
    for i, name, marker in ((2, "cohesion", "^"), (1, "balance", "s")):
        values = getattr(selection, name)
        ax.plot(column, values, color=COLORS[i], marker=marker, ms=4, label=name)
    ax.plot(column, selection.scores, color=COLORS[0], marker="o", ms=5, label="score")
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
            (selection.chosen - 0.5, -_SPACE - _MATRIX),
            width=1.0,
            height=_MATRIX + _SPACE + 1.08,
            fill=False,
            ec=DARK,
            lw=1.2,
            clip_on=False,
            zorder=3,
        )
    )


def _plot_matrix(ax, selection):
    size = len(selection.names)
    edges = -_SPACE - _MATRIX * np.arange(size + 1) / size
    ax.pcolormesh(
        np.arange(size + 1) - 0.5,
        edges,
        selection.agreement,
        cmap="Blues",
        vmin=0.0,
        vmax=1.2,
        edgecolors="white",
        linewidth=0.5,
    )
