# SPDX-License-Identifier: BSD-3-Clause
"""The parts of cdsk that the benchmarks measure and that no user can import.

All of them are named here and nowhere else, so that a renaming has one place to mend.
"""

from cdsk._kernel import simd_level
from cdsk._kernels.dense import DenseKernel
from cdsk._kernels.neighbours import Neighbours
from cdsk._kernels.sparse import NeighbourGraph
from cdsk._steps import eigen
from cdsk._steps.embedding import spectral_step
from cdsk._steps.labels import assign_labels
from cdsk._steps.weights import WeightProblem

__all__ = [
    "DenseKernel",
    "NeighbourGraph",
    "Neighbours",
    "WeightProblem",
    "assign_labels",
    "eigen",
    "simd_level",
    "spectral_step",
]
