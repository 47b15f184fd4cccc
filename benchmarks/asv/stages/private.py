# SPDX-License-Identifier: BSD-3-Clause
"""The parts of cdsk that the benchmarks measure and that no user can import.

All of them are named here and nowhere else, so that a renaming has one place to mend.
"""

from cdsk import _eigensolvers as eigen
from cdsk._kernel import simd_level
from cdsk._neighbors import Neighbors
from cdsk._operators.dense import DenseKernel
from cdsk._operators.sparse import NeighborGraph
from cdsk._qp import WeightProblem
from cdsk._spectral import assign_labels, spectral_step

__all__ = [
    "DenseKernel",
    "NeighborGraph",
    "Neighbors",
    "WeightProblem",
    "assign_labels",
    "eigen",
    "simd_level",
    "spectral_step",
]
