# SPDX-License-Identifier: BSD-3-Clause
"""The methods that the paper compares CDSK with, as estimators; docs/baselines.md."""

from cdsk.baselines._base import spectral_labels
from cdsk.baselines._gaussian_spectral import GaussianSpectral
from cdsk.baselines._kernel_kmeans import KernelKMeans
from cdsk.baselines._manifold import ManifoldSpectral
from cdsk.baselines._self_tuning import SelfTuningSpectral

__all__ = [
    "GaussianSpectral",
    "KernelKMeans",
    "ManifoldSpectral",
    "SelfTuningSpectral",
    "spectral_labels",
]
