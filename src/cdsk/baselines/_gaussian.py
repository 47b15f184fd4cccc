# SPDX-License-Identifier: BSD-3-Clause
"""Gaussian affinities of baselines (tests/test_baselines_gaussian_spectral.py)."""

import numbers

import numpy as np

from cdsk._kernels.bandwidth import RULES, bandwidth_from_data
from cdsk._kernels.gaussian import gaussian_gram
from cdsk._kernels.neighbours import Neighbours
from cdsk._kernels.sparse import NeighbourGraph
from cdsk._threads import resolve_n_threads
from cdsk._validation import check_bandwidth, check_choice, check_integer, check_number

# Those that give one number.
ONE_NUMBER = tuple(rule for rule in RULES if rule != "local")


def check_one_bandwidth(bandwidth):
    """Refuse anything but a positive number or a rule for one."""
    if isinstance(bandwidth, numbers.Real):
        check_number(bandwidth, "bandwidth", above=0)
    else:
        check_choice(bandwidth, "bandwidth", ONE_NUMBER, or_else="a number > 0 or ")


def one_bandwidth(X, bandwidth):
    """The number that ``bandwidth`` is or gives for X."""
    if not isinstance(bandwidth, str):
        return float(bandwidth)
    # of equal points any bandwidth makes the same kernel
    equal = bool((X == X[0]).all())
    return 1.0 if equal else bandwidth_from_data(X, bandwidth, resolve_n_threads(None))


def check_n_neighbors(n_neighbors):
    """Refuse anything but a positive integer or None, which means all others."""
    if n_neighbors is not None:
        check_integer(n_neighbors, "n_neighbors", 1)


def neighbours_of(X, n_neighbors, **options):
    """The nearest ``Neighbours`` of the rows of X; None asks for as few as can be."""
    how = {"n_threads": resolve_n_threads(None), **options}
    return Neighbours(X, n_neighbors or 1, **how)


def gaussian_affinity(X, bandwidth, neighbours=None):
    """W_ij = exp(-|x_i - x_j|^2 / (2 b_i b_j)) with W_ii = 0.

    Between all pairs, or, as a CSR array, between ``neighbours`` in either direction.
    """
    if neighbours is None:
        W = gaussian_gram(X, bandwidth)
        np.fill_diagonal(W, 0.0)
        return W
    bandwidth = check_bandwidth(bandwidth, len(X))
    graph = NeighbourGraph(neighbours)
    return graph.kernel(bandwidth, resolve_n_threads(None)).matrix
