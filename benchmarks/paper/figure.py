# SPDX-License-Identifier: BSD-3-Clause
"""Figure of CDSK with default settings, the best other method and the paper's CDSK."""

from pathlib import Path

from benchmarks.paper.methods import METHODS
from benchmarks.paper.report import best, cells, printed
from benchmarks.paper.sets import SETS


def figure(folder, mode, records):
    """Write paper-MODE.png: CDSK, the best other method and the paper's CDSK.

    Return whether there was anything to plot.
    """
    found = cells(records)
    names = [n for n in SETS if (n, "cdsk") in found and found[n, "cdsk"].done]
    if not names:
        return False
    # imported here: nothing else needs it
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(9, 1.4 + 0.36 * len(names)), layout="constrained")
    axes = drawn.subplots(1, 2, sharey=True)
    baselines = {
        n: best(found, n, [m for m in METHODS if not METHODS[m].ours]) for n in names
    }
    for index, (axis, key) in enumerate(
        zip(axes, ("accuracy", "nmi_max"), strict=True)
    ):
        for height, name in enumerate(names):
            _draw(axis, height, name, found, baselines[name], index, key)
        axis.set_xlim(0, 1.02)
        axis.set_xlabel(("accuracy", "NMI, over the larger entropy")[index])
        axis.grid(axis="x", color="0.9")
        axis.set_axisbelow(True)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_yticks(range(len(names)), [SETS[name].name for name in names])
    axes[0].set_ylim(len(names) - 0.5, -0.5)
    handles = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    drawn.legend(
        handles.values(), handles, loc="outside upper center", ncols=3, frameon=False
    )
    drawn.savefig(Path(folder, f"paper-{mode}.png"), dpi=150)
    return True


def _draw(axis, height, name, found, rival, index, key):
    """Plot one set: three points on a line, and the name of the other method."""
    ours = found[name, "cdsk"].mean(key)
    points = [(ours, "o", "C0", "C0", "CDSK, default settings")]
    if rival is not None:
        label = "best other method by NMI, on all points"
        points.append((found[name, rival].mean(key), "s", "C1", "C1", label))
        text = METHODS[rival].name
        axis.annotate(
            text,
            (1.02, height),
            va="center",
            fontsize=7,
            color="C1",
            annotation_clip=False,
        )
    paper = printed(name, "cdsk")
    if paper is not None:
        points.append((paper[index], "|", "0.2", "0.2", "CDSK in the paper"))
    values = [point[0] for point in points]
    axis.plot([min(values), max(values)], [height, height], color="0.8", zorder=1)
    for value, marker, edge, face, label in points:
        axis.scatter(
            value,
            height,
            110 if marker == "|" else 36,
            marker=marker,
            edgecolors=None if marker == "|" else edge,
            c=edge if marker == "|" else face,
            linewidths=2 if marker == "|" else 1.2,
            label=label,
            zorder=2,
        )
