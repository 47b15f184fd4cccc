# SPDX-License-Identifier: BSD-3-Clause
"""Data -> bandwidth(s) of the Gaussian kernel.

=============  =======================================================================
"auto"         half the mean distance to the 7th nearest neighbour
"variance"     variance of the pairwise distances, as the paper prints it; depends on
               the unit of the data
"std"          their standard deviation, the scale-free reading of the same
"median"       their median
"local"        one bandwidth per point, a quarter of the distance to its 7th neighbour:
               K_ij = exp(-|x_i - x_j|^2 / (2 f^2 s_i s_j)) with f = 0.25
=============  =======================================================================
"""

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.neighbors import NearestNeighbors

RULES = ("auto", "variance", "std", "median", "local")

NEIGHBOUR = 7
GLOBAL_FACTOR = 0.5
LOCAL_FACTOR = 0.25

# Statistics of pairwise distances use this many evenly spaced points at most: two
# million distances, a sampling error far below the precision any of these rules has.
_LARGEST_SAMPLE = 2000


def _spread(distances):
    """Standard deviation; 0 if it is only the rounding of equal distances."""
    spread = np.std(distances)
    return 0.0 if spread <= 1e-12 * np.mean(distances) else spread


_STATISTICS = {
    "variance": lambda distances: _spread(distances) ** 2,
    "std": _spread,
    "median": np.median,
}


def bandwidth_from_data(X, rule):
    """Bandwidth of X by one of ``RULES``: a float, or an array if "local"."""
    if rule == "auto":
        value = GLOBAL_FACTOR * float(np.mean(neighbour_distances(X)))
    elif rule == "local":
        value = _positive(LOCAL_FACTOR * neighbour_distances(X))
    else:
        value = float(_STATISTICS[rule](_pairwise_distances(X)))
    if not np.all(value > 0):
        raise ValueError(
            f"bandwidth={rule!r} gives a bandwidth of zero for these data: "
            f"{_why_zero(X, rule)} Expected data that vary, or a bandwidth given as a "
            "number."
        )
    return value


def neighbour_distances(X, new=None):
    """Distance of each point to its 7th nearest neighbour in X.

    Points of ``new`` that are also in X do not count themselves, so that a point of X
    has the same distance whether it is asked as an old or as a new one.
    """
    centre = X.mean(axis=0, dtype=np.float64)
    k = min(NEIGHBOUR, len(X) - 1)
    search = NearestNeighbors(n_neighbors=k).fit(X - centre)
    if new is None:
        indices = search.kneighbors(return_distance=False)
        return _sorted_distances(X, X, indices)[:, -1]
    indices = search.kneighbors(new - centre, k + 1, return_distance=False)
    distances = _sorted_distances(new, X, indices)
    known = distances[:, 0] == 0
    return np.where(known, distances[:, k], distances[:, k - 1])


def _sorted_distances(A, B, indices):
    """Distances of A[i] to the points B[indices[i]], nearest first.

    From differences: those of the search lose digits in high dimensions, where it
    expands the square, and a point is then not at distance 0 of itself.
    """
    out = np.empty(indices.shape)
    for first in range(0, len(A), 256):
        rows = slice(first, first + 256)
        difference = A[rows, np.newaxis].astype(np.float64) - B[indices[rows]]
        out[rows] = np.sqrt(np.einsum("ikd,ikd->ik", difference, difference))
    return np.sort(out, axis=1)


def local_bandwidth(X, bandwidth, new):
    """Local bandwidths of new points, given those of the points X."""
    scales = LOCAL_FACTOR * neighbour_distances(X, new)
    return np.where(scales > 0, scales, bandwidth.min())


def _positive(scales):
    """Scales with zeros, as in heaps of duplicates, made the smallest of the others."""
    positive = scales > 0
    if positive.any() and not positive.all():
        scales = np.where(positive, scales, scales[positive].min())
    return scales


def _pairwise_distances(X):
    step = -(-len(X) // _LARGEST_SAMPLE)
    return pdist(X[::step].astype(np.float64, copy=False))


def _why_zero(X, rule):
    if (X == X[0]).all():
        return "all points are equal."
    if rule in ("variance", "std"):
        return "all pairwise distances are equal."
    return "too many points are duplicates."
