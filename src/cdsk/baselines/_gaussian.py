# SPDX-License-Identifier: BSD-3-Clause
"""The one bandwidth of a Gaussian kernel (tests/test_baselines_max_margin.py)."""

from cdsk._kernels.bandwidth import RULES, bandwidth_from_data
from cdsk._validation import check_choice, check_number

# A kernel with a bandwidth per point need not be semi-definite.
_ONE = tuple(rule for rule in RULES if rule != "local")


def check_one_bandwidth(bandwidth):
    """Refuse anything but a positive number and the name of a rule."""
    if isinstance(bandwidth, str):
        check_choice(bandwidth, "bandwidth", _ONE, "a number or ")
    else:
        check_number(bandwidth, "bandwidth", above=0)


def one_bandwidth(X, bandwidth):
    """The number that a checked ``bandwidth`` is for X."""
    if not isinstance(bandwidth, str):
        return float(bandwidth)
    # of equal points any bandwidth makes the same kernel
    return 1.0 if (X == X[0]).all() else bandwidth_from_data(X, bandwidth)
