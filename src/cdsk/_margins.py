# SPDX-License-Identifier: BSD-3-Clause
"""Weights and labels -> how clearly the other points vote for each point's label.

The votes are those of the paper's classifier with the point itself left out:

    h(i, y) = sum_{j != i, y_j = y} alpha_j K_ij
    margin_i = [h(i, y_i) - max_{y != y_i} h(i, y)] / sum_y h(i, y)
"""

import numpy as np


def vote_margins(kernel, labels, weights):
    """Margin of every point, between -1 and 1; 0 where no other point votes."""
    clusters = np.arange(labels.max() + 1)
    members = (labels == clusters[:, np.newaxis]) * weights
    votes = kernel.product(np.ascontiguousarray(members))
    total = votes.sum(axis=0)
    points = np.arange(len(labels))
    own = votes[labels, points]
    votes[labels, points] = 0.0
    return (own - votes.max(axis=0)) / np.where(total > 0, total, 1.0)
