# SPDX-License-Identifier: BSD-3-Clause
"""Leading eigenvalues of the normalised similarity."""

import numpy as np

from cdsk.plot._common import (
    COLOURS,
    DARK,
    GREY,
    axes_or_current,
    require_matplotlib,
)


def eigenvalues(model, *, ax=None, title=None):
    """Draw the leading eigenvalues, with the largest gap between two of them.

    One for each cluster: as many near 1 as there are well separated groups. A large gap
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
    from matplotlib.ticker import MaxNLocator

    ax = axes_or_current(ax)
    values = model.eigenvalues_
    number = np.arange(1, len(values) + 1)
    ax.axhline(1.0, color=GREY, linewidth=0.8, zorder=1)
    ax.plot(
        *(number, values),
        color=COLOURS[0],
        marker="o",
        markersize=np.clip(150 / len(values), 2.5, 6.0),
        linewidth=0.8,
    )
    gaps = -np.diff(values)
    after = int(np.argmax(gaps))
    if gaps[after] > 0:
        middle = number[after] + 0.5
        ends = values[after], values[after + 1]
        ax.plot([middle, middle], ends, color=DARK, linewidth=1.2)
        # on the side where there is room
        right = 2 * after < len(gaps)
        ax.annotate(
            f"gap {gaps[after]:.2g}",
            (middle, np.mean(ends)),
            xytext=(5 if right else -5, 0),
            textcoords="offset points",
            ha="left" if right else "right",
            va="center",
            color=DARK,
        )
    # equal eigenvalues differ by rounding, which is not worth a picture
    spread = max(1.0 - values[-1], 1e-3)
    ax.set(ylim=(1.0 - 1.1 * spread, 1.0 + 0.1 * spread))
    ax.set(xlim=(0.5, len(values) + 0.5), xlabel="number", ylabel="eigenvalue")
    ax.set_title(title)
    ax.ticklabel_format(axis="y", useOffset=False)
    ax.xaxis.set_major_locator(MaxNLocator(8, integer=True, min_n_ticks=1))
    ax.spines[["top", "right"]].set_visible(False)
    return ax
