# SPDX-License-Identifier: BSD-3-Clause
"""A fitted model -> the facts of its report, in types of JSON (tests/test_report.py).

Everything is read from the fitted attributes; nothing is computed anew from the data.
A row counts as many times as its weight says: all figures are those of a fit of so many
copies of it. docs/report.md says what every entry means.
"""

import math

import numpy as np

from cdsk._explain.checks import find_warnings
from cdsk._explain.margins import median
from cdsk._version import __version__

SCHEMA = "cdsk-report"
# Raised when an entry changes its meaning or goes; new ones may come without.
SCHEMA_VERSION = 1

POINTS_PER_CLUSTER = 3
OUTLIERS = 6

_GIVEN = ("precomputed", "precomputed_neighbors")


def find_facts(model):
    """The facts of a model but those of single rows, which ``add_rows`` adds."""
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "cdsk_version": __version__,
        "estimator": "CDSK",
        "blocks": None,
        "data": _data(model),
        "kernel": _kernel(model),
        "weights": _weights(model),
        "convergence": _convergence(model),
        "eigenvalues": _eigenvalues(model),
        "clusters": _clusters(model),
        "outliers": _outliers(model),
        "warnings": find_warnings(model),
    }


def add_rows(facts, model, table, drawn):
    """Add the rows that the facts name, with values of the features to be shown.

    These are decided by the rows ``drawn``.
    """
    rows = named_rows(facts)
    columns = table.columns(drawn, model.clusters_[drawn])
    facts["features"] = {
        "n_columns": table.n_columns,
        "shown": [{"column": j, "name": table.feature_names[j]} for j in columns],
    }
    names = table.names(rows) or [None] * len(rows)
    values = table.values(rows, columns)
    facts["rows"] = [
        {
            "row": row,
            "name": name,
            "cluster": int(model.clusters_[row]),
            "label": int(model.labels_[row]),
            "weight": float(model.weights_[row]),
            "margin": _finite(model.margins_[row]),
            "typicality": _finite(model.typicality_[row]),
            "values": known,
        }
        for row, name, known in zip(rows, names, values, strict=True)
    ]


def named_rows(facts):
    """Numbers of all rows that clusters and outliers name, in order."""
    named = set(facts["outliers"]["least_typical"])
    for cluster in facts["clusters"]["found"]:
        named.update(cluster["most_typical"], cluster["least_typical"])
    return sorted(named)


def effective_number(weights, counts):
    """1 / sum of squares: how many equal weights would be spread as evenly."""
    return 1.0 / np.sum(counts * np.square(weights))


def _data(model):
    counts, representation = model.sample_weight_, model.representation_
    kernel = model.params_["kernel"]
    given = isinstance(kernel, str) and kernel in _GIVEN
    scores = representation.scores.items()
    return {
        "n_points": _whole(counts.sum()),
        "n_rows": len(counts),
        "n_different": int(model.n_different_),
        "n_features": None if given else int(model.n_features_in_),
        "given_by": kernel if given else "points",
        "weighted": not np.isin(counts, (0, 1)).all().item(),
        "representation": representation.view,
        "representation_scores": {view: _finite(score) for view, score in scores},
    }


def _kernel(model):
    bandwidth, choice = model.bandwidth_, model.choice_
    if np.ndim(bandwidth):
        counts = model.sample_weight_
        used = bandwidth[counts > 0]
        bandwidth = {
            "least": float(used.min()),
            "largest": float(used.max()),
            "median": float(median(bandwidth, counts)),
        }
    elif bandwidth is not None:
        bandwidth = float(bandwidth)
    approximation = model.approximation_
    if approximation is not None:
        approximation = {
            "n_components": int(approximation.n_components),
            "trace_error": float(approximation.trace_error),
            "largest_error": float(approximation.largest_error),
        }
    return {
        "description": model.kernel_,
        "bandwidth": bandwidth,
        "approximation": approximation,
        "candidates": [
            {
                "name": name,
                "score": _finite(choice.scores[i]),
                "balance": _finite(choice.balance[i]),
                "cohesion": _finite(choice.cohesion[i]),
                "resolved": bool(choice.resolved[i]),
                "chosen": i == choice.chosen,
            }
            for i, name in enumerate(choice.names)
        ],
    }


def _weights(model):
    counts, chosen = model.sample_weight_, model.lambda_choice_
    return {
        "n_support": _whole(counts[model.support_].sum()),
        "effective_number": float(effective_number(model.weights_, counts)),
        "lam": float(model.lam_),
        # the weights of copies are bound together
        "fewest": math.ceil(model.n_different_ * model.lam_ - 1e-9),
        "lam_choice": None
        if chosen is None
        else {
            "criterion": chosen.criterion,
            "n_sample": int(chosen.n_sample),
            "grid": chosen.grid.tolist(),
            "curve": [_finite(value) for value in chosen.curve],
        },
    }


def _convergence(model):
    return {
        "n_rounds": int(model.n_iter_),
        "merit": model.history_.tolist(),
        "qp_gap": _finite(model.qp_gap_),
        "converged": bool(model.converged_),
    }


def _eigenvalues(model):
    return {
        "values": model.eigenvalues_.tolist(),
        "relaxed_cut": float(np.sum(1.0 - model.eigenvalues_)),
        "n_negative": int(model.n_negative_),
        "n_clipped": int(model.n_clipped_),
    }


def _clusters(model):
    labels, counts = model.clusters_, model.sample_weight_
    size = np.bincount(labels, counts)
    share = np.bincount(labels, counts * model.weights_)
    margin = np.bincount(labels, counts * model.margins_) / size
    rows = _from_most_to_least_typical(model)
    n = POINTS_PER_CLUSTER
    choice = model.count_choice_
    return {
        "n_clusters": int(model.n_clusters_),
        "count_choice": None
        if choice is None
        else {
            "n_clusters": int(choice.n_clusters),
            "runner_up": None if choice.runner_up is None else int(choice.runner_up),
            "candidates": choice.candidates.tolist(),
            "scores": [_finite(score) for score in choice.scores],
        },
        "found": [
            {
                "cluster": y,
                "size": _whole(size[y]),
                "weight": float(share[y]),
                "confidence": _finite(margin[y]),
                "most_typical": rows[y][:n].tolist(),
                "least_typical": rows[y][::-1][:n].tolist(),
            }
            for y in range(len(size))
        ],
    }


def _from_most_to_least_typical(model):
    """Rows of every cluster by the lead of their own cluster.

    The lead in votes is small for points between clusters and for those far from all.
    """
    rows = np.flatnonzero(model.sample_weight_ > 0)
    labels = model.clusters_[rows]
    lead = (model.margins_ * model.typicality_)[rows]
    order = np.lexsort((-lead, labels))
    ends = np.searchsorted(labels[order], np.arange(1, model.clusters_.max() + 1))
    return np.split(rows[order], ends)


def _outliers(model):
    counts = model.sample_weight_
    order = np.argsort(model.typicality_, kind="stable")
    rule = model.noise_
    return {
        "least_typical": order[counts[order] > 0][:OUTLIERS].tolist(),
        "n_negative_margins": _whole(counts[model.margins_ < 0].sum()),
        "n_without_weight": _whole(counts.sum() - counts[model.support_].sum()),
        "n_strays": _whole(counts[model.strays_].sum()),
        "noise": None
        if rule is None
        else {
            "n_points": _whole(counts[model.labels_ < 0].sum()),
            "rate": float(rule.rate),
            "n_neighbors": int(rule.n_neighbors),
            "thresholds": rule.thresholds.tolist(),
        },
    }


def _whole(value):
    """A sum of weights, as an integer where it is one."""
    return int(value) if value == round(value) else float(value)


def _finite(value):
    return float(value) if math.isfinite(value) else None
