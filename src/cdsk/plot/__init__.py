# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of a clustering. Needs matplotlib, imported only when a picture is made.

A cluster has the same colour in every picture of a model. Every function draws into the
axes it is given and returns them; ``overview`` makes a figure of all.
"""

from cdsk.plot._choice import choice
from cdsk.plot._eigenvalues import eigenvalues
from cdsk.plot._embedding import embedding
from cdsk.plot._margins import margins
from cdsk.plot._overview import overview
from cdsk.plot._scatter import scatter
from cdsk.plot._similarity import similarity

__all__ = [
    "choice",
    "eigenvalues",
    "embedding",
    "margins",
    "overview",
    "scatter",
    "similarity",
]
