# SPDX-License-Identifier: BSD-3-Clause
"""How well a partition agrees with the labels, by the measures of the paper."""

from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix

# AC and NMI as that group has them, MI over the larger entropy; then the usual NMI.
SCORES = {"AC": "accuracy", "NMI": "nmi_max", "NMI mean": "nmi", "ARI": "ari"}


def accuracy(y, labels):
    """Share of the points in the best one-to-one matching of clusters and classes."""
    counts = contingency_matrix(y, labels)
    return float(counts[linear_sum_assignment(counts, maximize=True)].sum() / len(y))


def scores(y, labels):
    """All measures, under the names of a record."""
    nmi = normalized_mutual_info_score
    return {
        "accuracy": accuracy(y, labels),
        "nmi_max": float(nmi(y, labels, average_method="max")),
        "nmi": float(nmi(y, labels, average_method="arithmetic")),
        "ari": float(adjusted_rand_score(y, labels)),
    }
