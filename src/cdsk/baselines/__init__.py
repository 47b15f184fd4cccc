# SPDX-License-Identifier: BSD-3-Clause
"""The methods that the paper compares CDSK with, as estimators; docs/baselines.md."""

from cdsk.baselines._base import spectral_labels
from cdsk.baselines._l1_graph import L1Graph
from cdsk.baselines._laplacian_l1 import LaplacianL1Graph
from cdsk.baselines._smce import SMCE

__all__ = ["SMCE", "L1Graph", "LaplacianL1Graph", "spectral_labels"]
