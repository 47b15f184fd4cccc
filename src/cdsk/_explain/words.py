# SPDX-License-Identifier: BSD-3-Clause
"""The facts of a report -> a text of 79 columns (tests/test_report.py).

Points and features are named by their row and column number, from 0.
"""

import statistics
import textwrap

import numpy as np

from cdsk._explain.facts import POINTS_PER_CLUSTER
from cdsk._explain.phrases import amount, count, from_to, in_words, small

WIDTH = 79
_INDENT = 13
_BAR = 20
# A space at which no line is broken.
_TIED = "\u00a0"

# Of more clusters, the ones of lowest confidence are shown.
MOST_CLUSTERS = 10
# Of more eigenvalues, the first and the last.
_MOST_EIGENVALUES = 8

_GIVEN_BY = {
    "precomputed": "kernel matrix",
    "precomputed_neighbors": "distances to their neighbours",
}


def describe(facts):
    """Text of a report."""
    lines = [*_blocks(facts), headline(facts), ""]
    for title, paragraphs in SECTIONS.items():
        lines += _section(title, paragraphs(facts))
    return "\n".join(lines)


def headline(facts):
    """What was clustered into how many."""
    n, n_found = amount(facts["data"]["n_points"]), len(facts["clusters"]["found"])
    return f"CDSK: {n} points in {n_found} clusters"


def least_confident(found, most):
    """At most so many clusters, those of lowest confidence, in their order."""
    confidence = np.array([cluster["confidence"] for cluster in found], dtype=float)
    return [found[y] for y in np.sort(np.argsort(confidence, kind="stable")[:most])]


def _blocks(facts):
    blocks = facts["blocks"]
    if blocks is None:
        return []
    lines = [
        f"{facts['estimator']}: {blocks['n_rows']} rows of {blocks['n_features']} "
        f"features ({blocks['representation']}), through {blocks['n_landmarks']} "
        "landmarks"
    ]
    if blocks["sizes"] is not None:
        sizes = " ".join(map(str, blocks["sizes"]))
        lines += textwrap.wrap(f"Rows of the clusters: {sizes}", WIDTH)
    return [
        *lines,
        "",
        "Landmarks, each counted for the rows that it is the nearest of:",
    ]


def _section(title, paragraphs):
    """Lines with the title in the margin; a list of lines is kept as it is."""
    lines = []
    for paragraph in paragraphs:
        if isinstance(paragraph, str):
            wrapped = textwrap.wrap(paragraph, WIDTH - _INDENT)
            lines += [line.replace(_TIED, " ") for line in wrapped]
        else:
            lines += paragraph
    first = [f"{title:<{_INDENT}}{lines[0]}".rstrip()]
    return first + [(" " * _INDENT + line).rstrip() for line in lines[1:]]


def _data(facts):
    data = facts["data"]
    points, different = data["n_points"], data["n_different"]
    n = amount(points)
    if data["given_by"] in _GIVEN_BY:
        yield f"{n} points, given by their {_GIVEN_BY[data['given_by']]}"
        return
    some = ""
    if data["weighted"]:
        some = f", by the weights of {different} different ones"
    elif different < points:
        some = f", {different} of them different"
    form = in_words(data["representation"])
    yield f"{n} points of {count(data['n_features'], 'feature')}{some}, {form}"
    if data["representation_scores"]:
        scores = (
            f"{in_words(view)} {score:.3f}".replace(" ", _TIED)
            + (" (chosen)" if view == data["representation"] else "")
            for view, score in data["representation_scores"].items()
        )
        yield f"Cohesive agreement over the scales: {', '.join(scores)}"


def _kernel(facts):
    yield from kernel_in_words(facts)
    candidates = facts["kernel"]["candidates"]
    if len(candidates) > 1:
        yield _curve(candidates)


def kernel_in_words(facts):
    """The kernel in use and its approximation."""
    kernel = facts["kernel"]
    text, bandwidth = kernel["description"], kernel["bandwidth"]
    if isinstance(bandwidth, dict):
        extent = from_to(bandwidth["least"], bandwidth["largest"])
        text += f"; bandwidths {extent}, median {bandwidth['median']:.3g}"
    yield text
    approximation = kernel["approximation"]
    if approximation is not None:
        yield (
            f"{count(approximation['n_components'], 'component')}; "
            f"{approximation['trace_error']:.2g} of the trace missing, largest error "
            f"of 10,000 random entries {approximation['largest_error']:.2g}"
        )


def _curve(candidates):
    """Table of the candidates with a bar for their scores, the chosen one marked."""
    width = max(len(candidate["name"]) for candidate in candidates)
    lines = [f"  {'candidate':<{width}}  score  balance  cohesion"]
    for candidate in candidates:
        name, score = candidate["name"], candidate["score"]
        bar = "#" * round(_BAR * max(score, 0.0))
        mark = ">" if candidate["chosen"] else " "
        note = bar if candidate["resolved"] else "unresolved"
        both = f"{candidate['balance']:7.3f}  {candidate['cohesion']:8.3f}"
        lines.append(f"{mark} {name:<{width}}  {score:5.3f}  {both}  {note}")
    return lines


def _weights(facts):
    weights, data = facts["weights"], facts["data"]
    n, support = data["n_points"], weights["n_support"]
    whose = "" if data["n_different"] == n else " different ones"
    yield (
        f"{amount(support)} of {amount(n)} points carry weight ({support / n:.0%}), "
        f"effective number {weights['effective_number']:.1f}; lam "
        f"{weights['lam']:.3g} asks for at least {weights['fewest']}{whose}"
    )
    chosen = weights["lam_choice"]
    if chosen is not None:
        curve = zip(chosen["grid"], chosen["curve"], strict=True)
        values = ", ".join(f"{lam:.3g}: {value:.3g}" for lam, value in curve)
        yield (
            f"lam by the smallest {chosen['criterion']} of a sample of "
            f"{chosen['n_sample']} points ({values})"
        )


def _convergence(facts):
    convergence = facts["convergence"]
    merit, gap = convergence["merit"], convergence["qp_gap"]
    weights = "first weights kept"
    if gap is not None:
        weights = f"KKT gap of the weights {gap:.1e}"
    yield (
        f"{count(convergence['n_rounds'], 'round')}, merit {merit[0]:.6g} to "
        f"{merit[-1]:.6g}, {weights}"
    )


def _eigenvalues(facts):
    eigenvalues = facts["eigenvalues"]
    # by how much they fall short of 1: narrow kernels crowd them there
    shown = [small(1.0 - value) for value in eigenvalues["values"]]
    if len(shown) > _MOST_EIGENVALUES:
        half = _MOST_EIGENVALUES // 2
        shown = [*shown[:half], "...", *shown[-half:]]
    cut = small(eigenvalues["relaxed_cut"])
    yield f"1 minus {' '.join(shown)}; relaxed cut {cut}, their sum"
    if eigenvalues["n_negative"]:
        yield (
            f"{count(eigenvalues['n_negative'], 'negative eigenvalue')} of the kernel "
            f"split off; {count(eigenvalues['n_clipped'], 'pair')} of points had a "
            "negative similarity, set to 0"
        )


def _clusters(facts):
    found = facts["clusters"]["found"]
    yield from count_in_words(facts)
    shown = least_confident(found, MOST_CLUSTERS)
    if len(found) > len(shown):
        size = [cluster["size"] for cluster in found]
        confidence = [cluster["confidence"] for cluster in found]
        yield (
            f"{amount(min(size))} to {amount(max(size))} points, median "
            f"{amount(statistics.median(size))}; "
            f"confidence, the mean margin of the votes, {min(confidence):.2f} to "
            f"{max(confidence):.2f}; the {len(shown)} clusters of lowest confidence:"
        )
    else:
        yield (
            "Confidence is the mean margin: 1 if all votes of other points are for "
            "their cluster, 0 if another has as many."
        )
    digits = len(str(facts["data"]["n_rows"] - 1))
    column = POINTS_PER_CLUSTER * (digits + 1) + 1
    lines = [f"   size weight confidence  {'most typical':<{column}}  least typical"]
    for cluster in shown:
        most, least = (
            " ".join(f"{row:>{digits}}" for row in cluster[which])
            for which in ("most_typical", "least_typical")
        )
        lines.append(
            f"{cluster['cluster']:2d} {amount(cluster['size']):>4} "
            f"{cluster['weight']:6.1%} {cluster['confidence']:10.2f}  "
            f"{most:<{max(column, 12)}}  {least}"
        )
    yield lines


def count_in_words(facts):
    """How the number of clusters was chosen, if it was."""
    choice = facts["clusters"]["count_choice"]
    if choice is None:
        return
    scores = dict(zip(choice["candidates"], choice["scores"], strict=True))
    text = f"{choice['n_clusters']} chosen, score {scores[choice['n_clusters']]:.2f}"
    if choice["runner_up"] is not None:
        second = choice["runner_up"]
        text += f"; runner-up {second}, score {scores[second]:.2f}"
    yield text


def _outliers(facts):
    typicality = {row["row"]: row["typicality"] for row in facts["rows"]}
    points = ", ".join(
        f"{row}{_TIED}({typicality[row]:.2f})"
        for row in facts["outliers"]["least_typical"]
    )
    yield from marked_in_words(facts)
    yield f"Least typical: {points}; the median point has 1"
    yield margins_in_words(facts)


def marked_in_words(facts):
    """Strays and noise, if there are any."""
    outliers = facts["outliers"]
    if outliers["n_strays"]:
        yield (
            f"{count(amount(outliers['n_strays']), 'point')} similar to no cluster "
            "took the label of the nearest neighbour (strays_)"
        )
    if outliers["noise"] is not None:
        yield _noise(facts)


def margins_in_words(facts):
    """How many points the votes speak against, and how many have none."""
    outliers, n = facts["outliers"], facts["data"]["n_points"]
    return (
        f"{amount(outliers['n_negative_margins'])} of {amount(n)} margins are "
        f"negative, {amount(outliers['n_without_weight'])} points carry no weight"
    )


def _noise(facts):
    noise, n = facts["outliers"]["noise"], facts["data"]["n_points"]
    distances = from_to(min(noise["thresholds"]), max(noise["thresholds"]))
    if " " in distances:
        distances += ", by cluster"
    marked = noise["n_points"]
    return (
        f"{amount(marked)} of {amount(n)} points ({marked / n:.1%}) are noise, label "
        f"-1, at a rate of {noise['rate']:.3g} of false alarms: neighbour "
        f"{noise['n_neighbors']} farther than {distances}. Above they count in the "
        "cluster in which they were found (clusters_)"
    )


def _warnings(facts):
    return [f"- {text}" for text in facts["warnings"]] or ["none"]


SECTIONS = {
    "Data": _data,
    "Kernel": _kernel,
    "Weights": _weights,
    "Convergence": _convergence,
    "Eigenvalues": _eigenvalues,
    "Clusters": _clusters,
    "Outliers": _outliers,
    "Warnings": _warnings,
}
