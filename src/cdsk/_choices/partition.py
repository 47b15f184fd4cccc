# SPDX-License-Identifier: BSD-3-Clause
"""Several partitions of the same points -> the one that the others speak for.

Every partition votes for every other by their adjusted Rand index, and its vote counts
as much as it is balanced, or cohesive:

    score_i = sum_j b_j max(ARI(i, j), 0)^4 / sum_j b_j
    b_j = max(balance_j, cohesion_j^12)
    balance_j = (exp(entropy of the sizes of j) - 1) / (c - 1)
    cohesion_j = (sum_y inside_y - 1) / (c - 1)

The partition with the highest score is the *medoid*. Scales at which the clusters are
really there find them again and again; a kernel too narrow or too wide finds something
of its own. The power lets a partition count for what it confirms, not for what it
half resembles: 0.9 gives two thirds of a vote, 0.5 a sixteenth. Partitions that cut
off a few outliers agree with their like for the wrong reason, which is what b is for.
Balance is 1 for clusters of equal size and 0 if one holds all points. Small clusters
may be right, though: then most neighbours of their points are inside. inside_y is the
share of the pairs of neighbours of cluster y that lie in it. These shares sum to 1 for
random labels and to c if no pair is cut; outliers have their neighbours elsewhere. Only
partitions and neighbours are compared: no labels, nothing that depends on the unit of a
kernel. docs/notes/2026-11-17-defaults.md and 2026-11-18-small.md have the measurements.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from cdsk._steps.labels import cut_ratios

# Of the adjusted Rand index in a vote, and of cohesion in its weight: a cut through a
# large cluster has 0.95 and more. The notes compare others.
POWER, COHESION_POWER = 4, 12

_TINY = np.finfo(float).tiny


@dataclass(frozen=True)
class Choice:
    """How one partition was chosen among several.

    Attributes
    ----------
    names : tuple of str
        The candidates.
    scores : ndarray of shape (n_candidates,)
        Share of the votes of all for each candidate, its own among them; the largest
        wins.
    balance : ndarray of shape (n_candidates,)
        Effective number of clusters beyond the first over n_clusters - 1, from 0 to 1.
    cohesion : ndarray of shape (n_candidates,)
        How far neighbours are in the same cluster: 0 as by chance, 1 if all are. NaN if
        there are no candidates to choose among, or no neighbours.
    agreement : ndarray of shape (n_candidates, n_candidates)
        Adjusted Rand index of every two candidates.
    resolved : ndarray of bool, shape (n_candidates,)
        Whether the eigenvectors of a candidate were found. One that was not has no vote
        and cannot win, unless all are like it.
    chosen : int
        Index of the winner.
    """

    names: tuple[str, ...]
    scores: NDArray[np.float64]
    balance: NDArray[np.float64]
    cohesion: NDArray[np.float64]
    agreement: NDArray[np.float64]
    resolved: NDArray[np.bool_]
    chosen: int


def choose(
    names, partitions, n_clusters, neighbourhood=None, *, resolved=None, masses=None
):
    """The ``Choice`` among partitions into at most ``n_clusters`` clusters.

    ``neighbourhood`` is a ``Kernel`` that joins neighbours; None: not known. A point
    counts as much as its mass, 1 if they are None.
    """
    size = len(partitions)
    resolved = np.ones(size, dtype=bool) if resolved is None else np.array(resolved)
    in_play = resolved if resolved.any() else ~resolved
    balance = np.array([_balance(labels, n_clusters, masses) for labels in partitions])
    cohesion = np.full(size, np.nan)
    if neighbourhood is not None:
        cohesion = _cohesion(partitions, n_clusters, neighbourhood)
    agreement = _agreement(partitions, masses)
    votes = np.maximum(agreement, 0.0) ** POWER
    counted = np.fmax(balance, cohesion**COHESION_POWER) * in_play
    # the tiny one: all may have put every point in one cluster
    scores = votes @ counted / max(counted.sum(), _TINY)
    # the first of equal ones, rounding aside
    best = scores[in_play].max()
    chosen = int(np.flatnonzero(in_play & (scores >= best - 1e-12))[0])
    return Choice(tuple(names), scores, balance, cohesion, agreement, resolved, chosen)


def cohesive_agreement(partitions, n_clusters, neighbourhood, masses=None):
    """Mean over pairs of partitions of h_i h_j ARI_ij, h their cohesion."""
    cohesion = _cohesion(partitions, n_clusters, neighbourhood)
    pairs = np.triu_indices(len(partitions), 1)
    terms = np.outer(cohesion, cohesion) * _agreement(partitions, masses)
    return float(np.mean(terms[pairs]))


def _agreement(partitions, masses):
    """Adjusted Rand index of every two partitions."""
    agreement = np.eye(len(partitions))
    for j, i in combinations(range(len(partitions)), 2):
        index = rand_index(partitions[i], partitions[j], masses)
        agreement[i, j] = agreement[j, i] = index
    return agreement


def rand_index(a, b, masses=None):
    """Adjusted Rand index of two partitions; a pair counts as the product of masses.

    That of scikit-learn took 3 ms for 200 points, with its checks, and fifteen of them
    a quarter of a fit.
    """
    masses = np.ones(len(a)) if masses is None else masses

    def pairs(labels):
        size, squares = np.bincount(labels, masses), np.bincount(labels, masses**2)
        return float(np.sum(size**2 - squares))

    together, in_a, in_b = pairs(a * (b.max() + 1) + b), pairs(a), pairs(b)
    expected = in_a * in_b / max(pairs(np.zeros_like(a)), _TINY)
    most = 0.5 * (in_a + in_b)
    return 1.0 if most <= expected else (together - expected) / (most - expected)


def _balance(labels, n_clusters, masses):
    """(exp(entropy of the cluster sizes) - 1) / (n_clusters - 1); 1 for one cluster."""
    if n_clusters == 1:
        return 1.0
    size = np.bincount(labels, masses)
    share = size[size > 0] / np.sum(size)
    effective = np.exp(-np.sum(share * np.log(share)))
    return float(max(effective - 1.0, 0.0) / (n_clusters - 1))


def _cohesion(partitions, n_clusters, neighbourhood):
    """Of each, (sum of the shares inside - 1) / (n_clusters - 1); 1 for one cluster."""
    if n_clusters == 1:
        return np.ones(len(partitions))
    inside = [np.sum(1.0 - cut_ratios(neighbourhood, p)) for p in partitions]
    return np.maximum(np.array(inside) - 1.0, 0.0) / (n_clusters - 1)
