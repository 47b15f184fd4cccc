# SPDX-License-Identifier: BSD-3-Clause
"""Selection of a partition, or of the weights of a kernel, without labels.

Tested in tests/test_partition.py.

*Partition.* Every partition votes for every other by their adjusted Rand index, and its
vote has the weight of its balance or its cohesion:

    score_i = sum_j b_j max(ARI(i, j), 0)^4 / sum_j b_j
    b_j = max(balance_j, cohesion_j^12)
    balance_j = (exp(entropy of the sizes of j) - 1) / (c - 1)
    cohesion_j = (sum_y inside_y - 1) / (c - 1)

The partition with the highest score, the *medoid*, is selected. Real clusters are found
at many scales; a kernel that is too narrow or too wide finds something of its own. The
power makes an ARI of 0.9 two thirds of a vote and 0.5 a sixteenth. Partitions that cut
off a few outliers also agree, but for the wrong reason; the weight b handles them.
Balance is 1 for clusters of equal size and 0 if one holds all points. Small clusters
may be right: then most neighbors of their points are inside. inside_y is the share of
the neighbor pairs of cluster y that lie in it: the shares sum to 1 for random labels
and to c if no pair is cut. docs/notes/2026-11-17-defaults.md and 2026-11-18-small.md
have the measurements.

*Weights.* Several kernels have two votes each, by their learned and by their initial
weights. A single Gaussian kernel keeps its learned weights if their partition is at
least as good as that of the initial weights in three respects (``select_weights``): its
cohesion, its mean agreement max(ARI, 0) with ten partitions by spanning trees, and
whether it is one of these. docs/notes/2026-11-18-weights.md has the alternatives.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from cdsk._operators.base import Array, Kernel
from cdsk._spectral import Labels, cut_ratios

_TINY = np.finfo(float).tiny

# Largest label per point that is counted in an array of so many entries.
_MAX_LABELS_PER_POINT = 8

# Partition: powers of the adjusted Rand index and of the cohesion. A cut through a
# large cluster has a cohesion of 0.95 and more.
POWER, COHESION_POWER = 4, 12


@dataclass(frozen=True)
class Choice:
    """How one partition was selected among several.

    Attributes
    ----------
    names : tuple of str
        The candidates.
    scores : ndarray of shape (n_candidates,)
        Share of all votes for each candidate, its own included; the largest wins. In a
        layout they include the votes of the candidates in a second one.
    balance : ndarray of shape (n_candidates,)
        Effective number of clusters beyond the first over n_clusters - 1, from 0 to 1.
    cohesion : ndarray of shape (n_candidates,)
        How far neighbors share a cluster: 0 as by chance, 1 if all do. NaN if there is
        one candidate, or no neighbor graph.
    agreement : ndarray of shape (n_candidates, n_candidates)
        Adjusted Rand index of every two candidates.
    resolved : ndarray of bool, shape (n_candidates,)
        Whether the eigenvectors of a candidate converged. One that did not has no vote
        and cannot win, unless none did.
    chosen : int
        Index of the winner.
    n_sample : int or None
        Number of points that were compared; None: all of them.
    sample_agreement : float
        Adjusted Rand index, on the sample, of the winner there and the partition of all
        points. NaN without a sample.
    """

    names: tuple[str, ...]
    scores: Array
    balance: Array
    cohesion: Array
    agreement: Array
    resolved: NDArray[np.bool_]
    chosen: int
    n_sample: int | None = None
    sample_agreement: float = np.nan

    @property
    def support(self) -> float:
        """Share of the votes for the winner times its balance, at most 1."""
        return float(self.scores[self.chosen] * self.balance[self.chosen])

    def restricted(self, part: slice) -> "Choice":
        """Return the choice among some candidates, which include the winner."""
        return replace(
            self,
            names=self.names[part],
            scores=self.scores[part],
            balance=self.balance[part],
            cohesion=self.cohesion[part],
            agreement=self.agreement[part, part],
            resolved=self.resolved[part],
            chosen=self.chosen - part.start,
        )


def select_partition(
    names: Sequence[str],
    partitions: Sequence[Labels],
    n_clusters: int,
    neighborhood: Kernel | None = None,
    *,
    resolved: Sequence[bool] | None = None,
    multiplicity: Array | None = None,
) -> Choice:
    """Select one of several partitions into at most ``n_clusters`` clusters.

    ``neighborhood`` is a kernel that connects neighbors; None: not known.
    """
    is_resolved = np.array(resolved or [True] * len(partitions))
    eligible = is_resolved if is_resolved.any() else ~is_resolved
    balances = _balances(partitions, n_clusters, multiplicity)
    cohesion = np.full(len(partitions), np.nan)
    if neighborhood is not None:
        cohesion = _cohesion(partitions, n_clusters, neighborhood)
    agreement = adjusted_rand_indexes(partitions, multiplicity)
    votes = np.maximum(agreement, 0.0) ** POWER
    vote_weights = np.fmax(balances, cohesion**COHESION_POWER) * eligible
    # the sum is 0 if all partitions have one cluster
    scores = votes @ vote_weights / max(vote_weights.sum(), _TINY)
    # the first of equal ones, up to rounding
    best = scores[eligible].max()
    chosen = int(np.flatnonzero(eligible & (scores >= best - 1e-12))[0])
    return Choice(
        tuple(names), scores, balances, cohesion, agreement, is_resolved, chosen
    )


@dataclass(frozen=True)
class WeightChoice:
    """Which weights of a single kernel were kept, the learned or the initial ones.

    Arrays have the value of the learned weights and that of the initial ones. The
    learned weights are kept if none of their values is smaller.

    Attributes
    ----------
    kept : str
        "learned" or "initial".
    cohesion : ndarray of shape (2,)
        How far neighbors share a cluster: 0 as by chance, 1 if all do.
    mean_agreement : ndarray of shape (2,)
        Mean adjusted Rand index with the partitions by spanning trees; negative ones
        count as 0.
    is_tree : ndarray of bool, shape (2,)
        Whether one of these partitions is the same.
    """

    kept: str
    cohesion: Array
    mean_agreement: Array
    is_tree: NDArray[np.bool_]


def select_weights(
    learned: Labels,
    initial: Labels,
    trees: Sequence[Labels],
    n_clusters: int,
    neighborhood: Kernel,
    multiplicity: Array | None = None,
) -> WeightChoice:
    """Select between the partitions by the learned and by the initial weights.

    Both are compared with the partitions by spanning ``trees``.
    """
    both = [learned, initial]
    cohesion = _cohesion(both, n_clusters, neighborhood)
    agreement = adjusted_rand_indexes([*both, *trees], multiplicity)[:2, 2:]
    mean = np.maximum(agreement, 0.0).mean(axis=1)
    # up to rounding
    is_tree = agreement.max(axis=1) >= 1.0 - 1e-9
    not_worse = [a >= b - 1e-12 for a, b in (cohesion, mean, is_tree.astype(float))]
    kept = "learned" if all(not_worse) else "initial"
    return WeightChoice(kept, cohesion, mean, is_tree)


def cohesive_agreement(
    partitions: Sequence[Labels],
    n_clusters: int,
    neighborhood: Kernel,
    multiplicity: Array | None = None,
) -> float:
    """Return the mean over pairs of (h_i h_j)^1/2 ARI_ij, h the cohesion."""
    cohesion = _cohesion(partitions, n_clusters, neighborhood)
    return _weighted_agreement(partitions, cohesion, multiplicity)


def balanced_agreement(
    partitions: Sequence[Labels], n_clusters: int, multiplicity: Array | None = None
) -> float:
    """Return the mean over pairs of (b_i b_j)^1/2 ARI_ij, b the balance."""
    balances = _balances(partitions, n_clusters, multiplicity)
    return _weighted_agreement(partitions, balances, multiplicity)


def _weighted_agreement(
    partitions: Sequence[Labels], weights: Array, multiplicity: Array | None
) -> float:
    terms = np.sqrt(np.outer(weights, weights))
    terms *= adjusted_rand_indexes(partitions, multiplicity)
    return float(np.mean(terms[np.triu_indices(len(partitions), 1)]))


def adjusted_rand_indexes(
    partitions: Sequence[Labels], multiplicity: Array | None
) -> Array:
    """Return the adjusted Rand index of every two partitions.

    scikit-learn's takes 3 ms for 200 points, mostly validation, and a fit has hundreds.
    """
    # many are equal where clusters are clear
    index = {labels.tobytes(): i for i, labels in enumerate(partitions)}
    if len(index) < len(partitions):
        distinct = [partitions[i] for i in index.values()]
        places = {key: place for place, key in enumerate(index)}
        of_all = [places[labels.tobytes()] for labels in partitions]
        return adjusted_rand_indexes(distinct, multiplicity)[np.ix_(of_all, of_all)]
    agreement = np.eye(len(partitions))
    if not partitions:
        return agreement
    within = [_count_pairs(labels, multiplicity) for labels in partitions]
    total = _count_pairs(np.zeros_like(partitions[0]), multiplicity)
    for j, i in combinations(range(len(partitions)), 2):
        a, b = partitions[i], partitions[j]
        together = _count_pairs(a * (b.max() + 1) + b, multiplicity)
        expected = within[i] * within[j] / max(total, _TINY)
        largest = 0.5 * (within[i] + within[j])
        if largest > expected:
            agreement[i, j] = (together - expected) / (largest - expected)
        else:
            agreement[i, j] = 1.0
        agreement[j, i] = agreement[i, j]
    return agreement


def _count_pairs(labels: Labels, multiplicity: Array | None) -> float:
    """Return the number of ordered pairs of points with the same label.

    A pair counts the product of multiplicities.
    """
    if labels.max() >= _MAX_LABELS_PER_POINT * len(labels):
        labels = np.unique(labels, return_inverse=True)[1]
    size = np.bincount(labels, multiplicity)
    squares = size if multiplicity is None else np.bincount(labels, multiplicity**2)
    return float(np.sum(size.astype(np.float64) ** 2 - squares))


def _balances(
    partitions: Sequence[Labels], n_clusters: int, multiplicity: Array | None
) -> Array:
    return np.array([balance(p, n_clusters, multiplicity) for p in partitions])


def balance(labels: Labels, n_clusters: int, multiplicity: Array | None) -> float:
    """Return the balance of a partition."""
    if n_clusters == 1:
        return 1.0
    size = np.bincount(labels, multiplicity)
    share = size[size > 0] / np.sum(size)
    effective = np.exp(-np.sum(share * np.log(share)))
    return float(max(effective - 1.0, 0.0) / (n_clusters - 1))


def _cohesion(
    partitions: Sequence[Labels], n_clusters: int, neighborhood: Kernel
) -> Array:
    """Return the cohesion of every partition."""
    cohesion = np.ones(len(partitions))
    for i, labels in enumerate(partitions if n_clusters > 1 else ()):
        inside = np.sum(1.0 - cut_ratios(neighborhood, labels))
        cohesion[i] = max(inside - 1.0, 0.0) / (n_clusters - 1)
    return cohesion
