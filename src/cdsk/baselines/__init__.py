# SPDX-License-Identifier: BSD-3-Clause
"""The methods that the paper compares CDSK with, as estimators; docs/baselines.md."""

from cdsk.baselines._base import spectral_labels

__all__ = ["spectral_labels"]
