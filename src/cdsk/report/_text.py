# SPDX-License-Identifier: BSD-3-Clause
"""Report as text of 79 columns (tests/test_report.py).

Points and features are identified by their row and column index, from 0.
"""

import math
import statistics
import textwrap

import numpy as np

from cdsk.report._formatting import format_count, format_representation, pluralize
from cdsk.report._sentences import (
    NO_BREAK_SPACE,
    describe_constraints,
    describe_convergence,
    describe_data,
    describe_drift,
    describe_eigenvalues,
    describe_kernel,
    describe_layers,
    describe_margins,
    describe_n_clusters,
    describe_profile,
    describe_sizes,
    describe_stability,
    describe_table,
    describe_unlabeled,
    describe_weights,
)
from cdsk.report._summary import N_TYPICAL

WIDTH = 79
_INDENT = 13
_BAR_LENGTH = 8

# Rows of the table of candidates.
_MAX_CANDIDATES = 6

# If there are more clusters, only those of lowest confidence are listed.
MAX_CLUSTERS = 10


def format_text(summary):
    """Return the text of a report."""
    n = format_count(summary["data"]["n_points"])
    n_clusters = len(summary["clusters"]["per_cluster"])
    lines = [*_format_blocks(summary), f"CDSK: {n} points in {n_clusters} clusters", ""]
    for title, format_section in _SECTIONS.items():
        paragraphs = format_section(summary)
        lines += _indent_section(title, paragraphs) if paragraphs else []
    return "\n".join(lines)


def select_least_confident(clusters, max_clusters):
    """Return at most this many clusters, those of lowest confidence, in order."""
    confidence = np.array([cluster["confidence"] for cluster in clusters], dtype=float)
    order = np.argsort(confidence, kind="stable")
    return [clusters[y] for y in np.sort(order[:max_clusters])]


def _format_blocks(summary):
    blocks = summary["blocks"]
    if blocks is None:
        return []
    lines = [
        f"{summary['estimator']}: {blocks['n_rows']} rows, "
        f"{pluralize(blocks['n_features'], 'feature')} "
        f"({format_representation(blocks['representation'])}), "
        f"{pluralize(blocks['n_landmarks'], 'landmark')}"
    ]
    if blocks["sizes"] is not None:
        sizes = ", ".join(map(str, blocks["sizes"]))
        lines += textwrap.wrap(f"Cluster sizes: {sizes}", WIDTH)
    for sentence in [*describe_table(blocks), *describe_drift(summary)]:
        wrapped = textwrap.wrap(sentence, WIDTH)
        lines += [line.replace(NO_BREAK_SPACE, " ") for line in wrapped]
    return [*lines, "", "Landmarks, weighted by the number of their nearest rows:"]


def _indent_section(title, paragraphs):
    """Return lines with the title in the margin; only str paragraphs are wrapped."""
    lines = []
    for paragraph in paragraphs:
        if isinstance(paragraph, str):
            wrapped = textwrap.wrap(paragraph, WIDTH - _INDENT)
            lines += [line.replace(NO_BREAK_SPACE, " ") for line in wrapped]
        else:
            lines += paragraph
    first = [f"{title:<{_INDENT}}{lines[0]}".rstrip()]
    return first + [(" " * _INDENT + line).rstrip() for line in lines[1:]]


def _format_kernel(summary):
    paragraphs = describe_kernel(summary)
    candidates = summary["kernel"]["candidates"]
    if len(candidates) > 1:
        paragraphs.append(_format_candidates(candidates))
    return paragraphs


def _format_candidates(candidates):
    """Return a table of the best candidates, with bars for their scores."""
    ranked = sorted(candidates, key=lambda c: (c["chosen"], c["score"]), reverse=True)
    best = ranked[:_MAX_CANDIDATES]
    shown = [candidate for candidate in candidates if candidate in best]
    width = max(len(candidate["name"]) for candidate in shown)
    lines = [f"  {'candidate':<{width}}  score  balance  cohesion"]
    for candidate in shown:
        name, score = candidate["name"], candidate["score"]
        bar = "#" * round(_BAR_LENGTH * max(score, 0.0))
        cohesion = candidate["cohesion"]
        cohesion = "" if cohesion is None else f"{cohesion:.3f}"
        lines.append(
            f"{'>' if candidate['chosen'] else ' '} {name:<{width}}  {score:5.3f}  "
            f"{candidate['balance']:7.3f}  {cohesion:>8}  "
            f"{bar if candidate['resolved'] else 'unresolved'}"
        )
    if len(shown) < len(candidates):
        lines.append(f"  and {len(candidates) - len(shown)} others")
    return lines


def _format_clusters(summary):
    clusters = summary["clusters"]["per_cluster"]
    listed = select_least_confident(clusters, MAX_CLUSTERS)
    paragraphs = describe_n_clusters(summary) + describe_sizes(summary)
    if len(clusters) > len(listed):
        sizes = [cluster["size"] for cluster in clusters]
        confidence = [cluster["confidence"] for cluster in clusters]
        paragraphs.append(
            f"Sizes {format_count(min(sizes))} to {format_count(max(sizes))}, median "
            f"{format_count(statistics.median(sizes))}; confidence (mean margin) "
            f"{min(confidence):.2f} to {max(confidence):.2f}. The {len(listed)} "
            "clusters of lowest confidence:"
        )
    else:
        paragraphs.append(
            "Confidence is the mean margin: 1 if all votes of other points are for the "
            "cluster, 0 if another cluster has as many votes."
        )
    n_rows = summary["data"]["n_rows"]
    return [*paragraphs, _format_cluster_table(listed, digits=len(str(n_rows - 1)))]


def _format_cluster_table(clusters, digits):
    width = N_TYPICAL * (digits + 1) + 1
    lines = [f"   size weight confidence  {'most typical':<{width}}  least typical"]
    for cluster in clusters:
        most, least = (
            " ".join(f"{row:>{digits}}" for row in cluster[key])
            for key in ("most_typical", "least_typical")
        )
        lines.append(
            f"{cluster['cluster']:2d} {format_count(cluster['size']):>4} "
            f"{cluster['weight']:6.1%} {cluster['confidence']:10.2f}  "
            f"{most:<{max(width, 12)}}  {least}"
        )
    return lines


def select_profiles(summary, max_clusters):
    """Return the profiles of noise and of the clusters of lowest confidence."""
    listed = select_least_confident(summary["clusters"]["per_cluster"], max_clusters)
    numbers = {-1, *(cluster["cluster"] for cluster in listed)}
    return [p for p in summary["profiles"] or [] if p["cluster"] in numbers]


def _format_profiles(summary):
    # noise comes last
    profiles = select_profiles(summary, MAX_CLUSTERS)
    profiles.sort(key=lambda profile: profile["cluster"] < 0)
    return [describe_profile(profile) for profile in profiles]


def _format_stability(summary):
    stability = summary["stability"]
    if stability is None:
        return []
    listed = select_least_stable(stability, MAX_CLUSTERS)
    sentences = describe_stability(stability | {"clusters": listed})
    if len(listed) < len(stability["clusters"]):
        sentences.insert(1, f"The {len(listed)} clusters that are found least often")
    return sentences


def select_least_stable(stability, max_clusters):
    """Return at most this many clusters, those found least often, in order."""
    clusters = stability["clusters"]
    found = [math.inf if c["jaccard"] is None else c["jaccard"] for c in clusters]
    order = np.argsort(found, kind="stable")
    return [clusters[y] for y in np.sort(order[:max_clusters])]


def _format_layers(summary):
    return [] if summary["layers"] is None else describe_layers(summary["layers"])


def _format_outliers(summary):
    typicality = {row["row"]: row["typicality"] for row in summary["rows"]}
    points = ", ".join(
        f"{row}{NO_BREAK_SPACE}({typicality[row]:.2f})"
        for row in summary["outliers"]["least_typical"]
    )
    return [
        *describe_unlabeled(summary),
        f"Least typical points (typicality, median 1): {points}",
        describe_margins(summary),
    ]


def _format_warnings(summary):
    return [f"- {text}" for text in summary["warnings"]] or ["none"]


_SECTIONS = {
    "Data": describe_data,
    "Kernel": _format_kernel,
    "Weights": describe_weights,
    "Convergence": describe_convergence,
    "Eigenvalues": describe_eigenvalues,
    "Clusters": _format_clusters,
    "Known": describe_constraints,
    "Profiles": _format_profiles,
    "Stability": _format_stability,
    "Layers": _format_layers,
    "Outliers": _format_outliers,
    "Warnings": _format_warnings,
}
