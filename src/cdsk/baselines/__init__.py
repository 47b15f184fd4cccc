# SPDX-License-Identifier: BSD-3-Clause
"""The methods that the paper compares CDSK with, as estimators; docs/baselines.md."""

from cdsk.baselines._base import spectral_labels
from cdsk.baselines._discriminative_elm import DiscriminativeELM
from cdsk.baselines._ratio_rf import RatioRF
from cdsk.baselines._robust_affinity import RobustAffinityGraph

__all__ = [
    "DiscriminativeELM",
    "RatioRF",
    "RobustAffinityGraph",
    "spectral_labels",
]
