# SPDX-License-Identifier: BSD-3-Clause
"""Plots of a clustering. Requires matplotlib, which is imported by the first plot.

A cluster has the same color in all plots of a model. Every function plots on the given
axes and returns them; ``overview`` returns a figure of all plots.
"""

from cdsk.plot._choice import choice
from cdsk.plot._eigenvalues import eigenvalues
from cdsk.plot._embedding import embedding
from cdsk.plot._map import map
from cdsk.plot._margins import margins
from cdsk.plot._overview import overview
from cdsk.plot._profiles import profiles
from cdsk.plot._scatter import scatter
from cdsk.plot._similarity import similarity
from cdsk.plot._stability import stability
from cdsk.plot._tree import tree

__all__ = [
    "choice",
    "eigenvalues",
    "embedding",
    "map",
    "margins",
    "overview",
    "profiles",
    "scatter",
    "similarity",
    "stability",
    "tree",
]
