# SPDX-License-Identifier: BSD-3-Clause
"""Leading eigenvalues of the normalised similarity, as their distance from 1."""

import numpy as np

from cdsk.plot._common import COLOURS, DARK, axes_or_current, require_matplotlib


def eigenvalues(model, *, ax=None, title=None):
    """Draw 1 minus the leading eigenvalues, with the largest gap between two of them.

    One for each cluster: as many near 0 as there are well separated groups. A large gap
    early on means that fewer clusters would be cut more clearly.

    Parameters
    ----------
    model : CDSK
        Fitted model.
    ax : matplotlib Axes, default=None
        Where to draw; None means the current ones of pyplot.
    title : str, default=None
        Title of the axes.

    Returns
    -------
    ax : matplotlib Axes
    """
    require_matplotlib()
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    ax = axes_or_current(ax)
    values = 1.0 - model.eigenvalues_
    number = np.arange(1, len(values) + 1)
    ax.plot(
        *(number, values),
        color=COLOURS[0],
        marker="o",
        markersize=np.clip(150 / len(values), 2.5, 6.0),
        linewidth=0.8,
    )
    gaps = np.diff(values)
    after = int(np.argmax(gaps))
    if gaps[after] > 0:
        _mark_gap(ax, number[after] + 0.5, values[after], values[after + 1])
    # nothing but rounding is not worth a scale of its own
    top = 1.1 * values[-1] if values[-1] > 1e-12 else 1.0
    ax.set(xlim=(0.5, len(values) + 0.5), ylim=(-0.05 * top, top), title=title)
    ax.set(xlabel="number", ylabel="1 - eigenvalue")
    # no common factor above the axis, which would push the title up
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
    ax.xaxis.set_major_locator(MaxNLocator(8, integer=True, min_n_ticks=1))
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _mark_gap(ax, place, low, high):
    """A line from one value to the next, with their difference on its left."""
    ax.plot([place, place], [low, high], color=DARK, linewidth=1.2)
    ax.annotate(
        f"gap {high - low:.2g}",
        (place, (low + high) / 2),
        xytext=(-5, 0),
        textcoords="offset points",
        ha="right",
        va="center",
        color=DARK,
    )
