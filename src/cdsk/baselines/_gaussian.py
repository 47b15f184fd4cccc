# SPDX-License-Identifier: BSD-3-Clause
"""Gaussian affinities of baselines (tests/test_baselines_gaussian_spectral.py)."""

import numbers

import numpy as np

from cdsk._neighbors import Neighbors
from cdsk._operators.sparse import NeighborGraph
from cdsk._pairwise import estimate_bandwidth, gaussian_gram
from cdsk._threads import resolve_n_threads
from cdsk._validation import (
    BANDWIDTH_RULES,
    check_bandwidth,
    check_choice,
    check_integer,
    check_number,
)

# Rules that give one bandwidth for all points.
GLOBAL_RULES = tuple(rule for rule in BANDWIDTH_RULES if rule != "local")


def check_global_bandwidth(bandwidth):
    """Raise ValueError unless ``bandwidth`` is positive or the name of a rule."""
    if isinstance(bandwidth, numbers.Real):
        check_number(bandwidth, "bandwidth", above=0)
    else:
        check_choice(bandwidth, "bandwidth", GLOBAL_RULES, "a number > 0")


def resolve_bandwidth(X, bandwidth):
    """Return ``bandwidth`` itself, or the bandwidth of X by that rule."""
    if not isinstance(bandwidth, str):
        return float(bandwidth)
    # the kernel of equal points does not depend on the bandwidth
    if (X == X[0]).all():
        return 1.0
    return estimate_bandwidth(X, bandwidth, resolve_n_threads(None))


def check_n_neighbors(n_neighbors):
    """Raise ValueError unless ``n_neighbors`` is a positive integer or None."""
    if n_neighbors is not None:
        check_integer(n_neighbors, "n_neighbors", 1)


def find_neighbors(X, n_neighbors, **options):
    """Return the ``Neighbors`` of the rows of X; None searches the fewest possible."""
    return Neighbors(X, n_neighbors or 1, n_threads=resolve_n_threads(None), **options)


def gaussian_affinity(X, bandwidth, neighbors=None):
    """Return W_ij = exp(-|x_i - x_j|^2 / (2 b_i b_j)) with W_ii = 0.

    Between all pairs, or as a CSR array between pairs of which one is among the
    ``neighbors`` of the other.
    """
    if neighbors is None:
        W = gaussian_gram(X, bandwidth)
        np.fill_diagonal(W, 0.0)
        return W
    bandwidth = check_bandwidth(bandwidth, len(X))
    graph = NeighborGraph(neighbors)
    return graph.kernel(bandwidth, resolve_n_threads(None)).matrix
