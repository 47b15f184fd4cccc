# SPDX-License-Identifier: BSD-3-Clause
"""Pictures as files, without pyplot or a screen (tests/test_plot.py)."""

from pathlib import Path

from cdsk.plot._common import require_matplotlib
from cdsk.plot._scatter import scatter


def check_picture(path):
    """Refuse a picture that could not be written for its format."""
    require_matplotlib()
    from matplotlib.backend_bases import FigureCanvasBase

    known = FigureCanvasBase.get_supported_filetypes()
    if Path(path).suffix[1:].lower() not in known:
        raise ValueError(
            f"cannot tell the format of the picture {path}: expected a name that ends "
            f"in {', '.join('.' + ending for ending in sorted(known))}."
        )


def save_scatter(model, X, path, names=None):
    """Write ``scatter`` of a model as a picture.

    ``names`` are those of the features, for a model that was fitted without.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 4.4), layout="constrained")
    ax = scatter(model, X, ax=figure.add_subplot())
    if names is not None and len(names) <= 2:
        ax.set(**dict(zip(("xlabel", "ylabel"), names, strict=False)))
    figure.savefig(path, dpi=200)
