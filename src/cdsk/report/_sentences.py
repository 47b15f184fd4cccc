# SPDX-License-Identifier: BSD-3-Clause
"""Sentences of a report, for its text and its page (tests/test_report.py).

All functions take the summary of a fit. The sentences have no final period.
"""

import math
from typing import Any

from cdsk._rules import Rules
from cdsk.report._formatting import (
    format_clusters,
    format_count,
    format_names,
    format_pair,
    format_range,
    format_representation,
    format_share,
    format_small,
    pluralize,
    shorten_name,
)

NO_BREAK_SPACE = "\u00a0"

# Longer lists of eigenvalues are abbreviated to the first and the last ones.
_MAX_EIGENVALUES = 8

_PRECOMPUTED = {
    "precomputed": "precomputed kernel matrix",
    "precomputed_neighbors": "precomputed distances to neighbors",
}


# Values by which representations were compared, by their names in the summary.
REPRESENTATION_VALUES = {
    "representation_scores": "Agreement across scales",
    "representation_support": "Support (share of the votes times balance)",
}


def describe_data(summary):
    """Return the size of the data and the scores of the representations."""
    data = summary["data"]
    n_points, n_distinct = data["n_points"], data["n_distinct"]
    points = f"{format_count(n_points)} points"
    if data["input_type"] in _PRECOMPUTED:
        return [f"{points}, {_PRECOMPUTED[data['input_type']]}"]
    if data["is_weighted"]:
        points += f" ({n_distinct} distinct, weighted)"
    elif n_distinct < n_points:
        points += f" ({n_distinct} distinct)"
    # landmarks have coordinates; their rows have features
    noun = "feature" if summary["blocks"] is None else "coordinate"
    features = pluralize(data["n_features"], noun)
    representation = format_representation(data["representation"])
    sentences = [f"{points}, {features} ({representation})"]
    if data["columns"] is not None and data["n_used"] < data["n_rows"]:
        sentences.append(
            f"Fitted to {data['n_used']} of {data['n_rows']} rows: others have weight 0"
        )
    sentences += describe_table(data)
    for name, quantity in REPRESENTATION_VALUES.items():
        values = (
            f"{format_representation(view)} {value:.3f}".replace(" ", NO_BREAK_SPACE)
            + (" (selected)" if view == data["representation"] else "")
            for view, value in data[name].items()
        )
        if data[name]:
            sentences.append(f"{quantity}: {', '.join(values)}")
    return sentences


def describe_table(data):
    """Return what the columns of a table hold, and its missing cells."""
    return _describe_columns(data) + _describe_missing(data)


def _describe_columns(data):
    """Return what the columns of a table with categories were taken for."""
    columns = data["columns"]
    if columns is None:
        return []
    categories = [f"{name} ({n})" for name, n in columns["categories"].items()]
    held = {
        "Numbers": columns["numbers"],
        "categories": categories,
        "left out": columns["left_out"],
    }
    parts = [f"{kind}: {format_names(names)}" for kind, names in held.items() if names]
    return ["; ".join(parts)]


def _describe_missing(data):
    missing = data["missing"]
    if missing is None:
        return []
    counts = sorted(missing["count"].items(), key=lambda item: -item[1])
    counts = [f"{name} ({n})" for name, n in counts if n]
    n_cells = data["n_rows"] * len(missing["count"])
    return [
        f"{missing['n_cells']} of {n_cells} cells are missing "
        f"({missing['n_cells'] / n_cells:.1%}), in {format_names(counts)}"
    ]


def describe_kernel(summary):
    """Return the kernel, its bandwidths and the errors of its approximation."""
    kernel = summary["kernel"]
    text, bandwidth = kernel["description"], kernel["bandwidth"]
    if isinstance(bandwidth, dict):
        interval = format_range(bandwidth["min"], bandwidth["max"])
        text += f"; bandwidths {interval}, median {bandwidth['median']:.3g}"
    sentences = [text]
    approximation = kernel["approximation"]
    if approximation is not None:
        sentences.append(
            f"Rank {approximation['rank']}; relative trace error "
            f"{approximation['trace_error']:.2g}, largest error of 10,000 random "
            f"entries {approximation['largest_error']:.2g}"
        )
    if kernel["n_sample"] is not None:
        sentences.append(
            f"Selected on a sample of {format_count(kernel['n_sample'])} points; there "
            "the partition of all points agrees with that of the sample to an adjusted "
            f"Rand index of {kernel['sample_agreement']:.2f}"
        )
    if kernel["neighbor_recall"] is not None:
        sentences.append(
            f"Approximate search: {kernel['neighbor_recall']:.1%} of the neighbors of "
            "random points were found"
        )
    return sentences


def describe_weights(summary):
    """Return the support of the weights and the selection of lam."""
    weights, data = summary["weights"], summary["data"]
    n, n_support, lam = data["n_points"], weights["n_support"], weights["lam"]
    distinct = "" if data["n_distinct"] == n else "distinct "
    sentences = [
        f"{format_count(n_support)} of {format_count(n)} points have positive weight "
        f"({n_support / n:.0%}), effective sample size "
        f"{weights['effective_sample_size']:.1f}. Minimum support for lam={lam:.3g}: "
        f"{weights['min_support']} {distinct}points"
    ]
    choice = weights["lam_choice"]
    if choice is not None:
        curve = zip(choice["grid"], choice["curve"], strict=True)
        values = ", ".join(
            f"{value:.3g}{NO_BREAK_SPACE}(lam={lam:.3g})" for lam, value in curve
        )
        sentences.append(
            f"lam minimizes the criterion {choice['criterion']!r} on a sample of "
            f"{choice['n_sample']} points: {values}"
        )
    if weights["weight_choice"] is not None:
        sentences.append(_describe_weight_choice(weights["weight_choice"]))
    return sentences


def _describe_weight_choice(choice):
    other = {"learned": "initial", "initial": "learned"}[choice["kept"]]
    values = {
        "cohesion": choice["cohesion"],
        "mean agreement with spanning trees": choice["mean_agreement"],
    }
    compared = [
        f"{name} {learned:.3f} by the learned, {initial:.3f} by the initial weights"
        for name, (learned, initial) in values.items()
    ]
    if choice["is_tree"][0] != choice["is_tree"][1]:
        name = "learned" if choice["is_tree"][0] else "initial"
        compared.append(
            f"the partition by the {name} weights equals one by a spanning tree"
        )
    return (
        f"The {choice['kept']} weights were kept, not the {other} ones. Partitions: "
        f"{'; '.join(compared)}"
    )


def describe_convergence(summary):
    """Return the number of iterations, the objective and the KKT gap."""
    convergence = summary["convergence"]
    objective, gap = convergence["objective"], convergence["qp_gap"]
    weights = "initial weights kept"
    if gap is not None:
        weights = f"KKT gap of the weights {gap:.1e}"
    return [
        f"{pluralize(convergence['n_iter'], 'iteration')}, objective "
        f"{objective[0]:.6g} to {objective[-1]:.6g}, {weights}"
    ]


def describe_eigenvalues(summary):
    """Return the eigenvalues as differences from 1, where narrow kernels crowd them."""
    eigenvalues = summary["eigenvalues"]
    differences = [format_small(1.0 - value) for value in eigenvalues["values"]]
    if len(differences) > _MAX_EIGENVALUES:
        half = _MAX_EIGENVALUES // 2
        differences = [*differences[:half], "...", *differences[-half:]]
    cut = format_small(eigenvalues["relaxed_cut"])
    sentences = [f"1 - eigenvalues: {', '.join(differences)} (relaxed cut {cut})"]
    if eigenvalues["n_negative"]:
        negative = pluralize(eigenvalues["n_negative"], "negative eigenvalue")
        n_clipped = eigenvalues["n_clipped"]
        sentences.append(
            f"The kernel has {negative}. {pluralize(n_clipped, 'pair')} of points had "
            "a negative similarity, which was set to 0"
        )
    return sentences


def describe_n_clusters(summary):
    """Return the selection of the number of clusters, or nothing if it was given."""
    choice = summary["clusters"]["count_choice"]
    if choice is None:
        return []
    n_clusters, runner_up = choice["n_clusters"], choice["runner_up"]
    scores = dict(zip(choice["candidates"], choice["scores"], strict=True))
    text = f"Selected n_clusters={n_clusters} (score {scores[n_clusters]:.2f})"
    if runner_up is not None:
        text += f"; runner-up {runner_up} (score {scores[runner_up]:.2f})"
    return [text]


def describe_sizes(summary):
    """Return what bounds of the sizes changed, or nothing if there are none."""
    change = summary["clusters"]["size_change"]
    if change is None:
        return []
    bounds = f"{format_count(change['low'])} to {format_count(change['high'])}"
    if not change["n_moved"]:
        return [f"Sizes are within the bounds, {bounds}, without any change"]
    sizes = ", ".join(map(format_count, change["before"]))
    rows = pluralize(format_count(change["n_moved"]), "row")
    verb = "was" if change["n_moved"] == 1 else "were"
    return [
        f"{rows} {verb} moved for sizes of {bounds}; without bounds they would be "
        f"{sizes}. Cost of the moves {change['cost']:.4g}, at least "
        f"{change['least_cost']:.4g} for any labels"
    ]


def describe_drift(summary):
    """Return how the new rows of an update differ, or nothing if there was none."""
    drift = summary["blocks"]["drift"]
    if drift is None:
        return []
    n_new, n_fit = (sum(c[key] for c in drift) for key in ("n_new", "n_fit"))
    shares = ", ".join(
        f"{c['cluster']}:{NO_BREAK_SPACE}{format_share(c['low_new'] / c['n_new'])}"
        f"{NO_BREAK_SPACE}({format_share(c['low_fit'] / max(c['n_fit'], 1))})"
        for c in drift
        if c["n_new"]
    )
    drifted = [c["cluster"] for c in drift if c["has_drifted"]]
    text = "No cluster has drifted"
    if drifted:
        verb = "has" if len(drifted) == 1 else "have"
        text = f"{format_clusters(drifted)} {verb} drifted"
    return [
        f"Update by {pluralize(n_new, 'row')}. {text}. Rows of low typicality by "
        f"cluster (of the {n_fit} rows of the fit): {shares}"
    ]


def describe_unlabeled(summary):
    """Return the numbers of unconnected points and of noise, if there are any."""
    outliers = summary["outliers"]
    sentences = []
    if outliers["n_unconnected"]:
        points = pluralize(format_count(outliers["n_unconnected"]), "point")
        sentences.append(
            f"{points} without similarity to any cluster: labeled as the nearest "
            "neighbor (unconnected_)"
        )
    if outliers["noise"] is not None:
        sentences.append(_describe_noise(summary))
    return sentences


def describe_profile(profile: dict[str, Any]) -> str:
    """Return one line on what distinguishes a cluster, by ``Profiles.summarize``."""
    name = "noise" if profile["cluster"] < 0 else f"cluster {profile['cluster']}"
    features = ", ".join(map(_describe_feature, profile["features"]))
    if profile["is_all"]:
        features = "no other rows to compare with"
    elif not features:
        features = "no feature differs by more than chance may explain"
    return f"{name}, {pluralize(format_count(profile['size']), 'row')}: {features}"


def describe_constraints(summary: dict[str, Any]) -> list[str]:
    """Return what was known of the rows, what it changed, and what contradicts it."""
    known = summary["constraints"]
    if known is None:
        return []
    kinds = {"labels": "label", "must_link": "must-link", "cannot_link": "cannot-link"}
    given = {kind: known[f"n_{kind}"] for kind in kinds if known[f"n_{kind}"]}
    counts = [pluralize(n, kinds[kind]) for kind, n in given.items()]
    broken = [
        f"{known[f'n_broken_{kind}']} of {pluralize(n, kinds[kind])}"
        for kind, n in given.items()
    ]
    sentences = [f"{', '.join(counts)}, which all hold"]
    if known["names"] is not None:
        names = [f"{y} is {shorten_name(str(n))}" for y, n in enumerate(known["names"])]
        sentences.append(f"Cluster {format_names(names)}")
    sentences.append(f"Without them the clusters would break {', '.join(broken)}")
    if known["n_conflicts"]:
        rows = ", ".join(
            f"{c['row']}{NO_BREAK_SPACE}({c['margin']:.2f})" for c in known["conflicts"]
        )
        sentences.append(
            "The votes of the other points contradict "
            f"{pluralize(known['n_conflicts'], 'row')} of these; look for errors "
            f"there. The smallest margins: {rows}"
        )
    return sentences


def describe_stability(stability: dict[str, Any]) -> list[str]:
    """Return lines on all clusters, on their number and on each, by ``to_dict``."""
    ari, n = stability["ari"], stability["n_resamples"]
    verdicts = {
        "stable": "The clusters are stable, more than those of data without clusters",
        "unclear": "It is unclear whether the clusters are stable",
        "not stable": (
            "The clusters are not stable: those of data without clusters may be found "
            "as often"
        ),
    }
    sentences = [
        f"{verdicts[ari['verdict']]}. {n} resamples of "
        f"{pluralize(stability['n_sample'], 'row')}: adjusted Rand index "
        f"{ari['mean']:.2f} (90% of them {_format_interval(ari)}), without clusters "
        f"{ari['null_mean']:.2f} (at most {ari['null_limit']:.2f} in "
        f"{stability['n_null']} data sets)"
    ]
    if stability["n_clusters"] is not None:
        sentences.append(_describe_counts(stability["n_clusters"], n))
    for cluster in stability["clusters"]:
        name = f"cluster {cluster['cluster']}"
        rows = pluralize(format_count(cluster["size"]), "row")
        sentences.append(f"{name}, {rows}: {_describe_found(cluster)}")
    if stability["n_below_half"]:
        rows = pluralize(stability["n_below_half"], "row")
        verb = "agrees" if stability["n_below_half"] == 1 else "agree"
        sentences.append(
            f"{rows} of {stability['n_labeled']} {verb} with less than half of the "
            "resamples"
        )
    return sentences


def _describe_found(cluster):
    if cluster["jaccard"] is None:
        return "no row was drawn"
    return (
        f"found again in {format_share(cluster['found'])} of resamples (Jaccard "
        f"{cluster['jaccard']:.2f}, 90% of them {_format_interval(cluster)}; without "
        f"clusters {cluster['null_mean']:.2f}, limit {cluster['null_limit']:.2f}): "
        f"{cluster['verdict']}"
    )


def _describe_counts(count, n_resamples):
    """Return whether a selected number of clusters is stable."""
    others = [f"{c} in {n}" for c, n in count["counts"] if c != count["selected"]]
    text = (
        f"The number of clusters is {count['verdict']}: {count['selected']} was "
        f"selected in {format_share(count['share'])} of {n_resamples} resamples"
    )
    if count["verdict"] == "unclear":
        text = text.replace("is unclear", "may or may not be stable")
    return f"{text}; others: {format_names(others)}" if others else text


def _format_interval(values):
    return f"{values['low']:.2f} to {values['high']:.2f}"


def describe_layers(layers: dict[str, Any]) -> list[str]:
    """Return lines on the layers that are worth reading, by ``to_dict``."""
    n_clusters, n_leaves = layers["n_clusters"], layers["n_leaves"]
    persistence = layers["layer_persistence"]
    levels = [f"{k} ({persistence[k - 2]:.2f})" for k in layers["levels"]]
    text = (
        f"Layers of 2 to {n_leaves} clusters, each a union of those of the next. The "
        f"fit is that of {n_clusters}"
    )
    if 2 <= n_clusters < n_leaves:
        text += f" (persistence {persistence[n_clusters - 2]:.2f})"
    if not levels:
        return [text]
    return [text, f"Most persistent layers: {format_names(levels)}"]


def describe_rules(rules: Rules) -> list[str]:
    """Return one line per rule of a ``Rules``, and one about the sample if there is."""
    sentences = []
    for rule in rules.rules:
        name = "noise" if rule.cluster < 0 else f"cluster {rule.cluster}"
        text = " and ".join(map(str, rule.conditions)) + (
            f" (precision {rule.precision:.2f}, recall {rule.recall:.2f}, covers "
            f"{format_share(rule.coverage)} of all rows)"
        )
        if math.isnan(rule.precision):
            text = "too few different rows to measure a rule"
        elif not rule.conditions:
            best, _ = format_pair(rule.precision, rules.min_precision)
            text = (
                f"no rule of depth {rules.max_depth} reaches precision "
                f"{rules.min_precision:.3g} (best {best})"
            )
        sentences.append(f"{name}, {pluralize(format_count(rule.size), 'row')}: {text}")
    if rules.n_used < rules.n_rows:
        sentences.append(
            f"By a random sample of {rules.n_used} of {rules.n_rows} rows."
        )
    return sentences


def name_line(feature, is_rare=False, length=70):
    """Return what a line of a profile compares: "age", "color = red", "age missing".

    Of a rare category or missing cell: "color rarely red", "age rarely missing". Of a
    long name, at most ``length`` characters: the column is shortened most.
    """
    end = ""
    if feature["kind"] == "category":
        sign = "rarely" if is_rare else "="
        end = f" {sign} {shorten_name(feature['category'], min(30, length // 2))}"
    elif feature["kind"] == "missing":
        end = " rarely missing" if is_rare else " missing"
    return shorten_name(feature["feature"], min(40, length - len(end))) + end


def format_values(feature):
    """Return the value of a line in the cluster, and elsewhere."""
    values = feature["value"], feature["elsewhere"]
    if feature["kind"] == "number":
        return format_pair(*values)
    return format_share(values[0]), format_share(values[1])


def _describe_feature(feature):
    value, elsewhere = format_values(feature)
    is_number, is_more = feature["kind"] == "number", feature["effect"] > 0
    line = name_line(feature, is_rare=not (is_number or is_more))
    if is_number:
        line += " high" if is_more else " low"
    return f"{line} ({value}, elsewhere {elsewhere})"


def describe_margins(summary):
    """Return the numbers of negative margins and of zero weights."""
    outliers, n = summary["outliers"], summary["data"]["n_points"]
    return (
        f"{format_count(outliers['n_negative_margins'])} of {format_count(n)} points "
        f"have a negative margin, {format_count(outliers['n_zero_weight'])} have zero "
        "weight"
    )


def _describe_noise(summary):
    noise, n = summary["outliers"]["noise"], summary["data"]["n_points"]
    thresholds = format_range(min(noise["thresholds"]), max(noise["thresholds"]))
    if " " in thresholds:
        thresholds += " (depending on the cluster)"
    n_noise = noise["n_points"]
    return (
        f"{format_count(n_noise)} of {format_count(n)} points ({n_noise / n:.1%}) are "
        f"noise (label -1): distance to neighbor {noise['n_neighbors']} above "
        f"{thresholds}, expected false positive rate {noise['rate']:.3g}. All other "
        "statistics include them in their clusters (clusters_)"
    )
