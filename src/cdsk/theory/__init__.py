# SPDX-License-Identifier: BSD-3-Clause
"""Functions that evaluate the theorems of the paper; see docs/theory.md."""

from cdsk.theory._bound import GeneralizationBound, generalization_bound
from cdsk.theory._cut import NormalizedCut, normalized_cut
from cdsk.theory._decompose import decompose_similarity
from cdsk.theory._density import KernelDensityClassifier
from cdsk.theory._ise import ISEBound, ise_bound, ise_similarity

__all__ = [
    "GeneralizationBound",
    "ISEBound",
    "KernelDensityClassifier",
    "NormalizedCut",
    "decompose_similarity",
    "generalization_bound",
    "ise_bound",
    "ise_similarity",
    "normalized_cut",
]
