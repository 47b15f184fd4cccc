# SPDX-License-Identifier: BSD-3-Clause
"""Summary of a fitted model, the data of its report (tests/test_report.py).

It is a dictionary of JSON types, documented in docs/report.md. ``report`` uses fitted
attributes only. A row counts as often as its sample weight says: all statistics equal
those of a fit of the repeated rows.
"""

import math

import numpy as np

from cdsk._version import __version__
from cdsk._voting import weighted_median
from cdsk.report._diagnostics import collect_warnings

SCHEMA = "cdsk-report"
# Increased when an entry is removed, renamed or redefined, not when one is added.
SCHEMA_VERSION = 2

N_TYPICAL = 3  # rows listed at each end of a cluster
N_OUTLIERS = 6
N_MENTIONED = 4  # features of a profile
# If there are more features, those with the largest differences between clusters.
MAX_FEATURES = 12

_PRECOMPUTED = ("precomputed", "precomputed_neighbors")


def summarize_model(model):
    """Return the summary of a fitted CDSK; ``add_rows`` completes it."""
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "cdsk_version": __version__,
        "estimator": "CDSK",
        "blocks": None,
        "data": _summarize_data(model),
        "kernel": _summarize_kernel(model),
        "weights": _summarize_weights(model),
        "convergence": _summarize_convergence(model),
        "eigenvalues": _summarize_eigenvalues(model),
        "clusters": _summarize_clusters(model),
        "outliers": _summarize_outliers(model),
        "constraints": _summarize_constraints(model),
        # measured by ``cdsk.stability``
        "stability": None,
        # computed if they are asked for
        "layers": None,
        "warnings": collect_warnings(model),
    }


def add_rows(summary, model, table, profiles):
    """Add the rows that the summary lists, with some features of a ``FeatureTable``.

    ``profiles`` of them are None without any.
    """
    rows = collect_rows(summary)
    columns = _select_columns(table.n_columns, profiles)
    summary["profiles"] = None if profiles is None else profiles.summarize(N_MENTIONED)
    summary["features"] = {
        "n_columns": table.n_columns,
        "shown": [{"column": j, "name": table.feature_names[j]} for j in columns],
    }
    names = table.get_row_names(rows) or [None] * len(rows)
    values = table.get_values(rows, columns)
    summary["rows"] = [
        {
            "row": row,
            "name": name,
            "cluster": int(model.clusters_[row]),
            "label": int(model.label_numbers_[row]),
            "weight": float(model.weights_[row]),
            "margin": _to_finite(model.margins_[row]),
            "typicality": _to_finite(model.typicality_[row]),
            "values": cells,
        }
        for row, name, cells in zip(rows, names, values, strict=True)
    ]


def _select_columns(n_columns, profiles):
    """Return the columns to show: all, or those that differ most between clusters."""
    if n_columns <= MAX_FEATURES:
        return list(range(n_columns))
    ordered = profiles.order_columns()
    # columns that have no profile come last
    rest = (j for j in range(n_columns) if j not in set(ordered[:MAX_FEATURES]))
    return [*ordered, *rest][:MAX_FEATURES]


def collect_rows(summary):
    """Return the sorted indices of all rows that a summary lists."""
    rows = set(summary["outliers"]["least_typical"])
    for cluster in summary["clusters"]["per_cluster"]:
        rows.update(cluster["most_typical"], cluster["least_typical"])
    return sorted(rows)


def sort_rows(model, rows):
    """Return rows by cluster, within it from the most to the least typical.

    Margin times typicality is the lead in votes of the own cluster. It is small for
    points between clusters and for points far from all.
    """
    lead = (model.margins_ * model.typicality_)[rows]
    return rows[np.lexsort((-lead, model.clusters_[rows]))]


def _summarize_data(model):
    sample_weight, representation = model.sample_weight_, model.representation_
    kernel = model.params_["kernel"]
    is_precomputed = isinstance(kernel, str) and kernel in _PRECOMPUTED
    scores, support = representation.scores.items(), representation.support.items()
    return {
        "n_points": _to_number(sample_weight.sum()),
        "n_rows": len(sample_weight),
        "n_used": int(np.count_nonzero(sample_weight)),
        "n_distinct": int(model.n_distinct_),
        "n_features": None if is_precomputed else int(model.n_features_in_),
        "input_type": kernel if is_precomputed else "points",
        "is_weighted": not np.isin(sample_weight, (0, 1)).all().item(),
        "columns": summarize_columns(model.columns_),
        "missing": summarize_missing(model.missing_),
        "representation": representation.view,
        "representation_scores": {name: _to_finite(score) for name, score in scores},
        "representation_support": {name: _to_finite(value) for name, value in support},
    }


def summarize_columns(columns):
    """Return what the columns of a table with categories hold."""
    if columns is None:
        return None
    held = list(zip(columns.names, columns.categories, strict=True))
    return {
        "numbers": [name for name, known in held if known is None],
        "categories": {name: len(known) for name, known in held if known},
        "left_out": [name for name, known in held if known == ()],
    }


def summarize_missing(missing):
    """Return the missing cells of the columns."""
    if missing is None:
        return None
    return {
        "n_cells": int(missing.count.sum()),
        "count": dict(zip(missing.names, missing.count.tolist(), strict=True)),
        "association": dict(
            zip(missing.names, missing.association.tolist(), strict=True)
        ),
    }


def _summarize_kernel(model):
    approximation, choice = model.approximation_, model.choice_
    if approximation is not None:
        approximation = {
            "rank": int(approximation.rank),
            "trace_error": float(approximation.trace_error),
            "largest_error": float(approximation.largest_error),
        }
    return {
        "description": model.kernel_,
        "bandwidth": _summarize_bandwidth(model),
        "approximation": approximation,
        "candidates": [
            {
                "name": name,
                "score": _to_finite(choice.scores[i]),
                "balance": _to_finite(choice.balance[i]),
                "cohesion": _to_finite(choice.cohesion[i]),
                "resolved": bool(choice.resolved[i]),
                "chosen": i == choice.chosen,
            }
            for i, name in enumerate(choice.names)
        ],
        "n_sample": choice.n_sample,
        "sample_agreement": _to_finite(choice.sample_agreement),
        "neighbor_recall": model.neighbor_recall_,
    }


def _summarize_bandwidth(model):
    bandwidth, sample_weight = model.bandwidth_, model.sample_weight_
    if np.ndim(bandwidth) == 0:
        return None if bandwidth is None else float(bandwidth)
    used = bandwidth[sample_weight > 0]
    return {
        "min": float(used.min()),
        "max": float(used.max()),
        "median": float(weighted_median(bandwidth, sample_weight)),
    }


def _summarize_weights(model):
    sample_weight, choice = model.sample_weight_, model.lambda_choice_
    weight_choice = model.weight_choice_
    sum_of_squares = np.sum(sample_weight * np.square(model.weights_))
    return {
        "n_support": _to_number(sample_weight[model.support_].sum()),
        "effective_sample_size": float(1.0 / sum_of_squares),
        "lam": float(model.lam_),
        # repeated rows share one weight
        "min_support": math.ceil(model.n_distinct_ * model.lam_ - 1e-9),
        "lam_choice": None
        if choice is None
        else {
            "criterion": choice.criterion,
            "n_sample": int(choice.n_sample),
            "grid": choice.grid.tolist(),
            "curve": [_to_finite(value) for value in choice.curve],
        },
        "weight_choice": None
        if weight_choice is None
        else {
            "kept": weight_choice.kept,
            "cohesion": weight_choice.cohesion.tolist(),
            "mean_agreement": weight_choice.mean_agreement.tolist(),
            "is_tree": weight_choice.is_tree.tolist(),
        },
    }


def _summarize_convergence(model):
    return {
        "n_iter": int(model.n_iter_),
        "objective": model.history_.tolist(),
        "qp_gap": _to_finite(model.qp_gap_),
        "converged": bool(model.converged_),
    }


def _summarize_eigenvalues(model):
    return {
        "values": model.eigenvalues_.tolist(),
        "relaxed_cut": float(np.sum(1.0 - model.eigenvalues_)),
        "n_negative": int(model.n_negative_),
        "n_clipped": int(model.n_clipped_),
    }


def _summarize_clusters(model):
    labels, sample_weight = model.clusters_, model.sample_weight_
    sizes = np.bincount(labels, sample_weight)
    weights = np.bincount(labels, sample_weight * model.weights_)
    margins = np.bincount(labels, sample_weight * model.margins_) / sizes
    rows = sort_rows(model, np.flatnonzero(sample_weight > 0))
    members = np.split(rows, np.searchsorted(labels[rows], np.arange(1, len(sizes))))
    choice = model.count_choice_
    return {
        "n_clusters": int(model.n_clusters_),
        "count_choice": None
        if choice is None
        else {
            "n_clusters": int(choice.n_clusters),
            "runner_up": None if choice.runner_up is None else int(choice.runner_up),
            "candidates": choice.candidates.tolist(),
            "scores": [_to_finite(score) for score in choice.scores],
        },
        "size_change": _summarize_sizes(model.sizes_),
        "per_cluster": [
            {
                "cluster": y,
                "size": _to_number(sizes[y]),
                "weight": float(weights[y]),
                "confidence": _to_finite(margins[y]),
                "most_typical": members[y][:N_TYPICAL].tolist(),
                "least_typical": members[y][::-1][:N_TYPICAL].tolist(),
            }
            for y in range(len(sizes))
        ],
    }


def _summarize_sizes(change):
    if change is None:
        return None
    return {
        "low": _to_number(change.low),
        "high": _to_number(change.high),
        "before": [_to_number(size) for size in change.before],
        "n_moved": len(change.rows),
        "cost": float(change.cost),
        "least_cost": float(change.least_cost),
    }


def _summarize_outliers(model):
    sample_weight = model.sample_weight_
    order = np.argsort(model.typicality_, kind="stable")
    noise = model.noise_
    n_support = sample_weight[model.support_].sum()
    return {
        "least_typical": order[sample_weight[order] > 0][:N_OUTLIERS].tolist(),
        "n_negative_margins": _to_number(sample_weight[model.margins_ < 0].sum()),
        "n_zero_weight": _to_number(sample_weight.sum() - n_support),
        "n_unconnected": _to_number(sample_weight[model.unconnected_].sum()),
        "noise": None
        if noise is None
        else {
            "n_points": _to_number(sample_weight[model.label_numbers_ < 0].sum()),
            "rate": float(noise.rate),
            "n_neighbors": int(noise.n_neighbors),
            "thresholds": noise.thresholds.tolist(),
        },
    }


def _summarize_constraints(model):
    """Return what was known of the rows; conflicts come with their margins."""
    found = model.constraints_
    if found is None:
        return None
    return {
        "names": None if model.classes_ is None else model.cluster_names_.tolist(),
        "n_classes": 0 if model.classes_ is None else len(model.classes_),
        "n_labels": found.n_labels,
        "n_must_link": found.n_must_link,
        "n_cannot_link": found.n_cannot_link,
        "n_broken_labels": len(found.broken_labels),
        "n_broken_must_link": len(found.broken_must_link),
        "n_broken_cannot_link": len(found.broken_cannot_link),
        "n_conflicts": len(found.conflicts),
        "conflicts": [
            {"row": int(row), "margin": _to_finite(model.margins_[row])}
            for row in found.conflicts[:N_OUTLIERS]
        ],
    }


def _to_number(value):
    """Return a sum of sample weights, as an int if it is an integer."""
    return int(value) if value == round(value) else float(value)


def _to_finite(value):
    """Return a float, or None in place of NaN and infinity."""
    return float(value) if math.isfinite(value) else None
