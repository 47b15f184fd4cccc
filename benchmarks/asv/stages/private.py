# SPDX-License-Identifier: BSD-3-Clause
"""Private names of cdsk that the benchmarks use.

They are imported here only: a renaming changes one file.
"""

from cdsk import _eigensolvers as eigen
from cdsk import _layout as layouts
from cdsk._kernel import simd_level
from cdsk._neighbors import Neighbors
from cdsk._operators.dense import DenseKernel
from cdsk._operators.sparse import NeighborGraph
from cdsk._qp import WeightProblem
from cdsk._spectral import assign_labels, kmeans, spectral_step

__all__ = [
    "DenseKernel",
    "NeighborGraph",
    "Neighbors",
    "WeightProblem",
    "assign_labels",
    "eigen",
    "kmeans",
    "layouts",
    "simd_level",
    "spectral_step",
]
