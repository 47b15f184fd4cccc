# SPDX-License-Identifier: BSD-3-Clause
"""Data -> bandwidth(s) of the Gaussian kernel.

=============  =======================================================================
"neighbour"    half the mean distance to the 7th nearest neighbour
"variance"     variance of the pairwise distances, as the paper prints it; depends on
               the unit of the data
"std"          their standard deviation, the scale-free reading of the same
"median"       their median
"local"        one bandwidth per point, a quarter of the distance to its 7th neighbour:
               K_ij = exp(-|x_i - x_j|^2 / (2 f^2 s_i s_j)) with f = 0.25
=============  =======================================================================
"""

from collections.abc import Callable

import numpy as np
from scipy.spatial.distance import pdist

from cdsk._kernels.neighbours import Neighbours

RULES = ("neighbour", "variance", "std", "median", "local")

GLOBAL_FACTOR = 0.5
LOCAL_FACTOR = 0.25

# Statistics of pairwise distances use this many evenly spaced points at most: two
# million distances, a sampling error far below the precision any of these rules has.
_LARGEST_SAMPLE = 2000


def _spread(distances):
    """Standard deviation; 0 if it is only the rounding of equal distances."""
    spread = np.std(distances)
    return 0.0 if spread <= 1e-12 * np.mean(distances) else spread


_STATISTICS: dict[str, Callable[[np.ndarray], float]] = {
    "variance": lambda distances: _spread(distances) ** 2,
    "std": _spread,
    "median": np.median,
}


def bandwidth_from_data(X, rule, n_threads=1):
    """Bandwidth of X by one of ``RULES``: a float, or an array if "local"."""
    if rule == "neighbour":
        scales = Neighbours(X, n_threads=n_threads).own_scales
        value = GLOBAL_FACTOR * float(np.mean(scales))
    elif rule == "local":
        value = LOCAL_FACTOR * Neighbours(X, n_threads=n_threads).scales
    else:
        sample = X[:: -(-len(X) // _LARGEST_SAMPLE)].astype(np.float64, copy=False)
        value = float(_STATISTICS[rule](pdist(sample)))
    return check_positive(value, X, rule)


def check_positive(value, X, rule):
    """Refuse a bandwidth of zero with the reason."""
    if not np.all(value > 0):
        raise ValueError(
            f"bandwidth={rule!r} gives a bandwidth of zero for these data: "
            f"{_why_zero(X, rule)} Expected data that vary, or a bandwidth given as a "
            "number."
        )
    return value


def _why_zero(X, rule):
    if (X == X[0]).all():
        return "all points are equal."
    if rule in ("variance", "std"):
        return "all pairwise distances are equal."
    return "more than half of all pairs are duplicates."
