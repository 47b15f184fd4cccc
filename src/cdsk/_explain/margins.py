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
from scipy.special import logsumexp


def left_out_votes(kernel, labels, weights, masses=None, n_clusters=None):
    """Votes h (c, n) of the other points for every point.

    c is ``n_clusters``, or as many as have a point. With ``masses`` m the kernel is
    K_ij m_i m_j, and all copies of a point but one vote for it.
    """
    clusters = np.arange(n_clusters or labels.max() + 1)
    members = (labels == clusters[:, np.newaxis]) * weights
    # those of an approximated kernel may be slightly negative
    votes = np.maximum(kernel.product(np.ascontiguousarray(members)), 0.0)
    if masses is not None:
        others = np.maximum(1.0 - 1.0 / masses, 0.0)
        copies = others * weights * kernel.of_copies
        votes[labels, np.arange(len(labels))] += copies
        votes /= masses
    return votes


def leave_one_out(votes, labels, masses=None):
    """Margin and typicality of every point by ``votes`` (c, n), and the latter's unit.

    Margins are between -1 and 1, and 0 where no other point votes.
    """
    points = np.arange(len(labels))
    total = votes.sum(axis=0)
    own = votes[labels, points]
    votes = votes.copy()
    votes[labels, points] = 0.0
    margins = (own - votes.max(axis=0)) / np.where(total > 0, total, 1.0)
    # more than half of the points may be heard by none
    unit = median(total, masses) or total.max() or 1.0
    return margins, total / unit, unit


def of_new_points(log_votes, log_unit):
    """The same of points that have no vote, by those of all points for them (m, c).

    Their label is that of the largest vote.
    """
    total = logsumexp(log_votes, axis=1)
    ordered = np.sort(log_votes, axis=1)[:, ::-1]
    shares = np.exp(ordered - np.where(np.isneginf(total), 0.0, total)[:, np.newaxis])
    margins = shares[:, 0] - (shares[:, 1] if shares.shape[1] > 1 else 0.0)
    return margins, np.exp(total - log_unit)


def median(values, masses=None):
    """The median of values that count as much as their masses, 1 if they are None."""
    if masses is None:
        return np.median(values)
    order = np.argsort(values)
    order = order[masses[order] > 0]
    below = np.cumsum(masses[order])
    # where a half ends between two values it is their mean, as for any copies
    sides = [
        np.searchsorted(below, 0.5 * below[-1], side) for side in ("left", "right")
    ]
    return np.mean(values[order[sides]])
