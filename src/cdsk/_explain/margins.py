# SPDX-License-Identifier: BSD-3-Clause
"""Weights and labels -> how clearly, and how loudly, others vote for a point's label.

The votes are those of the paper's classifier with the point itself left out:

    h(i, y) = sum_{j != i, y_j = y} alpha_j K_ij
    margin_i = [h(i, y_i) - max_{y != y_i} h(i, y)] / sum_y h(i, y)
    typicality_i = sum_y h(i, y), in units of its median

A point between two clusters has a small margin. One far from all has a small
typicality, whatever its margin: the few votes it gets may all be for one cluster.
"""

import numpy as np


def leave_one_out(kernel, labels, weights, masses=None):
    """Margin and typicality of every point.

    Margins are between -1 and 1, and 0 where no other point votes. With ``masses`` m
    the kernel is K_ij m_i m_j, and all copies of a point but one vote for it.
    """
    clusters = np.arange(labels.max() + 1)
    members = (labels == clusters[:, np.newaxis]) * weights
    # those of an approximated kernel may be slightly negative
    votes = np.maximum(kernel.product(np.ascontiguousarray(members)), 0.0)
    points = np.arange(len(labels))
    if masses is not None:
        others = np.maximum(1.0 - 1.0 / masses, 0.0)
        votes[labels, points] += others * weights * kernel.of_copies
        votes /= masses
    total = votes.sum(axis=0)
    own = votes[labels, points]
    votes[labels, points] = 0.0
    margins = (own - votes.max(axis=0)) / np.where(total > 0, total, 1.0)
    # more than half of the points may be heard by none
    unit = _median(total, masses) or total.max() or 1.0
    return margins, total / unit


def _median(values, masses):
    if masses is None:
        return np.median(values)
    order = np.argsort(values)
    below = np.cumsum(masses[order])
    return values[order[np.searchsorted(below, 0.5 * below[-1])]]
