# SPDX-License-Identifier: BSD-3-Clause
"""Scores of a partition, as in the paper."""

from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix

# AC, NMI with the larger entropy as in the paper, NMI with the mean entropy, ARI.
SCORES = {"AC": "accuracy", "NMI": "nmi_max", "NMI mean": "nmi", "ARI": "ari"}


def accuracy(y, labels):
    """Return the accuracy under the best matching of clusters to classes."""
    counts = contingency_matrix(y, labels)
    return float(counts[linear_sum_assignment(counts, maximize=True)].sum() / len(y))


def scores(y, labels):
    """Return all scores, by their names in a record."""
    nmi = normalized_mutual_info_score
    return {
        "accuracy": accuracy(y, labels),
        "nmi_max": float(nmi(y, labels, average_method="max")),
        "nmi": float(nmi(y, labels, average_method="arithmetic")),
        "ari": float(adjusted_rand_score(y, labels)),
    }
