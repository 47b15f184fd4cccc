# SPDX-License-Identifier: BSD-3-Clause
"""The methods that the paper compares CDSK with, as estimators (docs/baselines.md)."""

from cdsk.baselines._base import spectral_labels
from cdsk.baselines._bayesian_max_margin import BayesianMaxMargin
from cdsk.baselines._discriminative_elm import DiscriminativeELM
from cdsk.baselines._gaussian_spectral import GaussianSpectral
from cdsk.baselines._kernel_kmeans import KernelKMeans
from cdsk.baselines._l1_graph import L1Graph
from cdsk.baselines._laplacian_l1 import LaplacianL1Graph
from cdsk.baselines._manifold import ManifoldSpectral
from cdsk.baselines._max_margin import MaxMarginClustering
from cdsk.baselines._ratio_rf import RatioRF
from cdsk.baselines._rim import RIM
from cdsk.baselines._robust_affinity import RobustAffinityGraph
from cdsk.baselines._self_tuning import SelfTuningSpectral
from cdsk.baselines._smce import SMCE

__all__ = [
    "RIM",
    "SMCE",
    "BayesianMaxMargin",
    "DiscriminativeELM",
    "GaussianSpectral",
    "KernelKMeans",
    "L1Graph",
    "LaplacianL1Graph",
    "ManifoldSpectral",
    "MaxMarginClustering",
    "RatioRF",
    "RobustAffinityGraph",
    "SelfTuningSpectral",
    "spectral_labels",
]
