# SPDX-License-Identifier: BSD-3-Clause
"""Image files of plots, without pyplot or a display (tests/test_plot.py)."""

from pathlib import Path

from cdsk.plot._common import require_matplotlib
from cdsk.plot._scatter import scatter


def check_image_path(path):
    """Raise an error if matplotlib does not support the format of an image file."""
    require_matplotlib()
    from matplotlib.backend_bases import FigureCanvasBase

    formats = FigureCanvasBase.get_supported_filetypes()
    if Path(path).suffix[1:].lower() not in formats:
        raise ValueError(
            f"unknown image format of {path}: expected a file name ending in "
            f"{', '.join('.' + suffix for suffix in sorted(formats))}."
        )


def save_scatter(model, X, path, feature_names=None):
    """Write the scatter plot of a model to an image file.

    ``feature_names`` label the axes of a model that was fitted without names.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 4.4), layout="constrained")
    ax = scatter(model, X, ax=figure.add_subplot())
    if feature_names is not None and len(feature_names) <= 2:
        ax.set_xlabel(feature_names[0])
        if len(feature_names) == 2:
            ax.set_ylabel(feature_names[1])
    figure.savefig(path, dpi=200)
