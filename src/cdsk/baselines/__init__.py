# SPDX-License-Identifier: BSD-3-Clause
"""The methods that the paper compares CDSK with, as estimators; docs/baselines.md."""

from cdsk.baselines._base import spectral_labels
from cdsk.baselines._bayesian_max_margin import BayesianMaxMargin
from cdsk.baselines._max_margin import MaxMarginClustering
from cdsk.baselines._rim import RIM

__all__ = ["RIM", "BayesianMaxMargin", "MaxMarginClustering", "spectral_labels"]
