# SPDX-License-Identifier: BSD-3-Clause
"""Several partitions of the same points -> the one that the others speak for.

Every partition votes for every other with their adjusted Rand index, and a vote counts
as much as both are balanced:

    score_i = b_i sum_j b_j ARI(i, j) / sum_j b_j,     b = exp(entropy of sizes) / c

The partition with the highest score is the *medoid*. Scales at which the clusters are
really there agree with each other; a kernel too narrow or too wide finds something of
its own. A partition that cuts off a few outliers agrees with its like for the wrong
reason, which is what b is for. Only partitions are compared: no labels, no distances,
nothing that depends on the unit of a kernel. docs/defaults.md has the measurements.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score


@dataclass(frozen=True)
class Choice:
    """How one partition was chosen among several.

    Attributes
    ----------
    names : tuple of str
        The candidates.
    scores : ndarray of shape (n_candidates,)
        Agreement of each candidate with all, weighted by balance; the largest wins.
    balance : ndarray of shape (n_candidates,)
        Effective number of clusters over their number, between 1 / c and 1.
    agreement : ndarray of shape (n_candidates, n_candidates)
        Adjusted Rand index of every two candidates.
    chosen : int
        Index of the winner.
    """

    names: tuple[str, ...]
    scores: NDArray[np.float64]
    balance: NDArray[np.float64]
    agreement: NDArray[np.float64]
    chosen: int


def choose(names, partitions, n_clusters):
    """The ``Choice`` among partitions into at most ``n_clusters`` clusters."""
    size = len(partitions)
    balance = np.array([_balance(labels, n_clusters) for labels in partitions])
    agreement = np.eye(size)
    for i in range(size):
        for j in range(i):
            agreement[i, j] = agreement[j, i] = adjusted_rand_score(
                partitions[i], partitions[j]
            )
    scores = balance * (agreement @ balance) / balance.sum()
    return Choice(tuple(names), scores, balance, agreement, int(np.argmax(scores)))


def _balance(labels, n_clusters):
    """exp(entropy of the cluster sizes) / n_clusters."""
    share = np.bincount(labels) / len(labels)
    share = share[share > 0]
    return float(np.exp(-np.sum(share * np.log(share))) / n_clusters)
