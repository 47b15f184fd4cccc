# SPDX-License-Identifier: BSD-3-Clause
"""Report as one self-contained HTML page.

page.html is the template, page.css the style sheet, page.js the interaction; map.html
and map.js are those of the map. All text from the data is escaped where it is inserted.
The content security policy of the page allows its own scripts only, by hash, and no
network.
"""

import base64
import hashlib
import json
from functools import cache
from html import escape
from importlib.resources import files
from string import Template

from cdsk.report._feature_table import to_json_value
from cdsk.report._formatting import (
    format_count,
    format_representation,
    format_share,
    pluralize,
    shorten_name,
)
from cdsk.report._profile_cards import render_profiles
from cdsk.report._sentences import (
    REPRESENTATION_VALUES,
    describe_constraints,
    describe_convergence,
    describe_data,
    describe_drift,
    describe_eigenvalues,
    describe_kernel,
    describe_layers,
    describe_margins,
    describe_n_clusters,
    describe_sizes,
    describe_stability,
    describe_table,
    describe_unlabeled,
    describe_weights,
)
from cdsk.report._svg import format_color, render_scatter
from cdsk.report._text import (
    select_least_confident,
    select_least_stable,
    select_profiles,
)
from cdsk.report._tree import collect_tree, render_levels, render_tree

# If there are more clusters, only the rows of those of lowest confidence are listed.
MAX_CLUSTERS = 100
# Tables of typical rows are expanded if there are at most this many clusters.
_MAX_EXPANDED = 3
# Numbers of clusters listed, those of highest score.
_MAX_COUNTS = 6
# Colors of typicality and margins on the map.
_N_LEVELS = 10

_CONFIDENCE = (
    "Confidence is the mean margin of a cluster: 1 if all votes of other points are "
    "for it, 0 if another cluster has as many votes. Typicality is 1 for the median "
    "point and 0 far from all points."
)


def render_page(summary, plotted, row_map, distributions):
    """Return the page as text; ``row_map`` may be None, ``distributions`` empty."""
    scripts = [_read_resource("page.js")]
    if row_map is not None:
        scripts.append(_read_resource("map.js"))
    # it tells the map which layer is shown
    if summary["layers"] is not None:
        scripts.append(_read_resource("layers.js"))
    return Template(_read_resource("page.html")).substitute(
        style=_read_resource("page.css"),
        scripts="".join(f"<script>{script}</script>" for script in scripts),
        script_hashes=" ".join(map(_hash_script, scripts)),
        data=_render_data("data", _collect_data(summary, plotted))
        + ("" if row_map is None else _render_data("map-data", row_map.encode()))
        + _render_layers_data(summary),
        title=escape(_format_title(summary)),
        subtitle=_render_subtitle(summary),
        tiles=_render_tiles(summary),
        warnings=_render_warnings(summary),
        scatter=render_scatter(plotted),
        sample=_describe_sample(summary, plotted),
        axes=_render_axes(summary, plotted),
        clusters=_render_clusters(summary),
        profiles=_render_profiles(summary, distributions),
        constraints=_render_constraints(summary),
        stability=_render_stability(summary),
        map="" if row_map is None else _render_map(summary, row_map),
        layers=_render_layers(summary),
        confidence=_CONFIDENCE,
        shown_features=_describe_features(summary),
        typical=_render_typical_rows(summary),
        outliers=_render_outliers(summary),
        selection=_render_selection(summary),
        optimization=_render_optimization(summary),
        version=escape(summary["cdsk_version"]),
        schema=escape(f"{summary['schema']} {summary['schema_version']}"),
    )


@cache
def _read_resource(name):
    return files("cdsk.report").joinpath(name).read_text(encoding="utf-8")


def _hash_script(script):
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def format_value(value):
    """Return the value of a feature: integers in full, others to four digits."""
    if value is None:
        return "–"
    if not isinstance(value, float):
        return str(value)
    if value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e7 else f"{value:.4g}"


# --- header ---------------------------------------------------------------------------


def _format_title(summary):
    n, noun = summary["data"]["n_points"], "point"
    if summary["blocks"] is not None:
        n, noun = summary["blocks"]["n_rows"], "row"
    n_clusters = len(summary["clusters"]["per_cluster"])
    return f"{pluralize(format_count(n), noun)} in {pluralize(n_clusters, 'cluster')}"


def _render_subtitle(summary):
    blocks = summary["blocks"]
    if blocks is None:
        return "".join(f"<p>{escape(line)}</p>" for line in describe_data(summary))
    text = (
        f"{pluralize(blocks['n_rows'], 'row')}, "
        f"{pluralize(blocks['n_features'], 'feature')} "
        f"({format_representation(blocks['representation'])}), "
        f"{pluralize(blocks['n_landmarks'], 'landmark')}. The rows below are the "
        "landmarks, weighted by the number of their nearest rows."
    )
    sentences = [*describe_table(blocks), *describe_drift(summary)]
    return f"<p>{escape(text)}</p>{_render_paragraphs(sentences)}"


def _render_tiles(summary):
    n, weights = summary["data"]["n_points"], summary["weights"]
    clusters, noise = summary["clusters"]["per_cluster"], summary["outliers"]["noise"]
    sizes = [cluster["size"] for cluster in clusters]
    confidence = sum(c["confidence"] * c["size"] for c in clusters) / sum(sizes)
    tiles = {
        "points": format_count(n),
        "clusters": str(len(clusters)),
        "points with positive weight": f"{weights['n_support'] / n:.0%}",
        "mean confidence": f"{confidence:.2f}",
    }
    if noise is not None:
        tiles["noise"] = f"{noise['n_points'] / n:.1%}"
    return "".join(
        f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in tiles.items()
    )


def _render_warnings(summary):
    if not summary["warnings"]:
        return '<p class="no-warnings">No warnings.</p>'
    items = "".join(f"<li>{escape(text)}</li>" for text in summary["warnings"])
    return (
        f'<div class="warnings"><h2 id="warnings">Warnings</h2><ul>{items}</ul></div>'
    )


# --- scatter plot and table of clusters -----------------------------------------------


def _describe_sample(summary, plotted):
    n, n_plotted = summary["data"]["n_rows"], len(plotted.rows)
    if n_plotted == n:
        return ""
    return (
        f"{n_plotted} of {n} rows are plotted: those listed in the tables and a random "
        "sample."
    )


def _render_axes(summary, plotted):
    """Return two menus of the numeric features, or nothing without any."""
    features = summary["features"]["shown"]
    numeric = []
    for j in range(len(features)):
        types = {type(values[j]) for values in plotted.values} - {type(None)}
        if types and types <= {int, float}:
            numeric.append(j)
    if not numeric:
        return ""
    options = '<option value="">embedding</option>' + "".join(
        f'<option value="{j}">{escape(features[j]["name"])}</option>' for j in numeric
    )
    return (
        f'<label>x axis <select id="x-axis">{options}</select></label>'
        f'<label>y axis <select id="y-axis">{options}</select></label>'
    )


def _render_clusters(summary):
    clusters = summary["clusters"]["per_cluster"]
    max_size = max(cluster["size"] for cluster in clusters)
    rows = []
    for cluster in clusters:
        y, size, confidence = (cluster[k] for k in ("cluster", "size", "confidence"))
        rows.append(
            f'<tr data-cluster="{y}" style="{format_color(y)}"><th scope="row">'
            f'<button type="button" aria-pressed="false" data-cluster="{y}">'
            f'<span class="swatch"></span>Cluster {y}</button></th>'
            f"<td>{_render_bar(size / max_size, format_count(size))}</td>"
            f"<td>{cluster['weight']:.1%}</td>"
            f"<td>{_render_bar(confidence, _format_fixed(confidence, 2))}</td></tr>"
        )
    return "".join(rows)


def _render_bar(fraction, text):
    """Return a bar of a length in [0, 1], None for 0, and its value as text."""
    width = 100 * min(max(fraction or 0.0, 0.0), 1.0)
    return (
        f'<span class="bar"><span style="width:{width:.0f}%"></span></span>'
        f'<span class="bar-value">{text}</span>'
    )


def _format_fixed(value, digits):
    return "–" if value is None else f"{value:.{digits}f}"


# --- profiles -------------------------------------------------------------------------


def _render_profiles(summary, distributions):
    """Return the section on what distinguishes the clusters, nothing without X."""
    if not summary["profiles"]:
        return ""
    shown = select_profiles(summary, MAX_CLUSTERS)
    profiles = render_profiles(shown, summary["profiles"], distributions)
    if len(shown) < len(summary["profiles"]):
        n_shown, n_all = len(shown), len(summary["profiles"])
        profiles = f"<p>{n_shown} of {n_all}, those of lowest confidence:</p>{profiles}"
    return Template(_read_resource("profiles.html")).substitute(profiles=profiles)


# --- known labels and links -----------------------------------------------------------


def _render_constraints(summary):
    """Return the section on known labels and links, nothing if there were none."""
    sentences = describe_constraints(summary)
    if not sentences:
        return ""
    return (
        '<section aria-labelledby="known-title"><h2 id="known-title">Known labels and '
        f"links</h2>{_render_paragraphs(sentences)}</section>"
    )


# --- stability ------------------------------------------------------------------------


def _render_stability(summary):
    """Return the section on resamples, nothing if they were not measured."""
    stability = summary["stability"]
    if stability is None:
        return ""
    whole = describe_stability(stability | {"clusters": []})
    listed = select_least_stable(stability, MAX_CLUSTERS)
    if len(listed) < len(stability["clusters"]):
        whole.append(f"The {len(listed)} clusters that are found least often")
    rows = []
    for c in listed:
        y, jaccard = c["cluster"], c["jaccard"]
        interval = "–" if jaccard is None else f"{c['low']:.2f} to {c['high']:.2f}"
        rows.append(
            f'<tr data-cluster="{y}" style="{format_color(y)}"><th scope="row">'
            f'<span class="swatch"></span>Cluster {y}</th>'
            f"<td>{_render_bar(jaccard, _format_fixed(jaccard, 2))}</td>"
            f"<td>{interval}</td><td>{c['null_mean']:.2f}, "
            f"{c['null_limit']:.2f}</td>"
            f"<td>{'–' if jaccard is None else format_share(c['found'])}</td>"
            f"<td>{c['verdict']}</td></tr>"
        )
    return Template(_read_resource("stability.html")).substitute(
        sentences=_render_paragraphs(whole), rows="".join(rows)
    )


# --- map ------------------------------------------------------------------------------


def _render_map(summary, row_map):
    n, n_drawn = summary["data"]["n_rows"], len(row_map.rows)
    levels = (
        f'<i style="--level:{100 * i / (_N_LEVELS - 1):.0f}%"></i>'
        for i in range(_N_LEVELS)
    )
    return Template(_read_resource("map.html")).substitute(
        placeholder="number" if row_map.names is None else "name or number",
        levels="".join(levels),
        sample=""
        if n_drawn == n
        else f"{n_drawn} of {n} rows are on the map, a random sample.",
    )


# --- layers ---------------------------------------------------------------------------


def _render_layers(summary):
    """Return the section on layers, nothing without them."""
    layers = summary["layers"]
    if layers is None:
        return ""
    tree, height = render_tree(layers)
    return Template(_read_resource("layers.html")).substitute(
        sentences=_render_paragraphs(describe_layers(layers)),
        n_leaves=layers["n_leaves"],
        n_clusters=layers["n_clusters"],
        levels=render_levels(layers),
        height=height,
        tree=tree,
    )


def _render_layers_data(summary):
    if summary["layers"] is None:
        return ""
    return _render_data("layers-data", collect_tree(summary["layers"]))


# --- tables of rows -------------------------------------------------------------------


def _describe_features(summary):
    features = summary["features"]
    n_columns, n_shown = features["n_columns"], len(features["shown"])
    if not n_shown:
        return (
            "To show values of features, pass the data: <code>model.report(X)</code>."
        )
    if n_shown < n_columns:
        return (
            f"{n_shown} of {n_columns} features are shown, those that differ most "
            "between clusters."
        )
    return ""


def _render_typical_rows(summary):
    rows = {row["row"]: row for row in summary["rows"]}
    clusters = summary["clusters"]["per_cluster"]
    elements = []
    if len(clusters) > MAX_CLUSTERS:
        elements.append(f"<p>The {MAX_CLUSTERS} clusters of lowest confidence:</p>")
    expanded = " open" if len(clusters) <= _MAX_EXPANDED else ""
    for cluster in select_least_confident(clusters, MAX_CLUSTERS):
        y, most = cluster["cluster"], cluster["most_typical"]
        least = [i for i in reversed(cluster["least_typical"]) if i not in most]
        listed = [("most", rows[i]) for i in most]
        listed += [("least", rows[i]) for i in least]
        table = _render_row_table(summary, listed, caption=f"Rows of cluster {y}")
        elements.append(
            f'<details{expanded} data-cluster="{y}" style="{format_color(y)}"><summary>'
            f'<span class="swatch"></span>Cluster {y}'
            f" <small>{pluralize(format_count(cluster['size']), 'point')}</small>"
            f"</summary>{table}</details>"
        )
    return "".join(elements)


def _render_outliers(summary):
    rows = {row["row"]: row for row in summary["rows"]}
    listed = [("", rows[i]) for i in summary["outliers"]["least_typical"]]
    sentences = [*describe_unlabeled(summary), describe_margins(summary)]
    table = _render_row_table(summary, listed, caption="Least typical rows")
    return _render_paragraphs(sentences) + table


def _render_row_table(summary, listed, caption):
    """Return a table of (kind, row) pairs with statistics and features."""
    has_kind = any(kind for kind, _ in listed)
    header = ["Row", *["Typical"] * has_kind, "Cluster", "Margin", "Typicality"]
    header = [f'<th scope="col">{name}</th>' for name in header]
    for feature in summary["features"]["shown"]:
        name, short = feature["name"], shorten_name(feature["name"])
        title = f' title="{escape(name, quote=True)}"' if "…" in short else ""
        header.append(f'<th scope="col"{title}>{escape(short)}</th>')
    lines = []
    for kind, row in listed:
        name = str(row["row"] if row["name"] is None else row["name"])
        cells = [
            *[kind] * has_kind,
            "noise" if row["label"] < 0 else row["cluster"],
            *(_format_fixed(row[key], 2) for key in ("margin", "typicality")),
            *(format_value(value) for value in row["values"] or []),
        ]
        cells = "".join(f"<td>{escape(str(cell))}</td>" for cell in cells)
        lines.append(
            f'<tr data-row="{row["row"]}"><th scope="row">{escape(name)}</th>{cells}'
            "</tr>"
        )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{caption}">'
        f'<table><caption class="visually-hidden">{caption}</caption>'
        f"<thead><tr>{''.join(header)}</tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


# --- model selection and optimization -------------------------------------------------


def _render_selection(summary):
    kernel, data = summary["kernel"], summary["data"]
    elements = [_render_paragraphs(describe_kernel(summary))]
    if len(kernel["candidates"]) > 1:
        candidates = [
            (c["name"], c["score"], c["chosen"], "" if c["resolved"] else "unresolved")
            for c in kernel["candidates"]
        ]
        elements.append(_render_scores("Candidate kernels", "agreement", candidates))
    captions = "Representations", "View and layout"
    for name, caption in zip(REPRESENTATION_VALUES, captions, strict=True):
        if data[name]:
            views = [
                (format_representation(view), value, view == data["representation"], "")
                for view, value in data[name].items()
            ]
            quantity = "agreement" if name.endswith("scores") else "support"
            elements.append(_render_scores(caption, quantity, views))
    choice = summary["clusters"]["count_choice"]
    if choice is not None:
        scores = zip(choice["candidates"], choice["scores"], strict=True)
        best = sorted(scores, key=lambda pair: -(pair[1] or 0.0))[:_MAX_COUNTS]
        counts = [
            (n_clusters, score, n_clusters == choice["n_clusters"], "")
            for n_clusters, score in sorted(best)
        ]
        elements.append(_render_scores("Best numbers of clusters", "score", counts))
        elements.append(_render_paragraphs(describe_n_clusters(summary)))
    elements.append(_render_paragraphs(describe_sizes(summary)))
    return "".join(elements)


def _render_scores(caption, quantity, candidates):
    """Return a table of (name, score, is_selected, note) with bars."""
    scores = [score for _, score, _, _ in candidates if score is not None]
    max_score = max([1.0, *scores])
    lines = []
    for name, score, is_selected, note in candidates:
        mark = '<span class="mark">selected</span>' if is_selected else escape(note)
        bar = _render_bar((score or 0.0) / max_score, _format_fixed(score, 3))
        lines.append(
            f'<tr{" class=selected" if is_selected else ""}><th scope="row">'
            f"{escape(str(name))}</th><td>{bar}</td><td>{mark}</td></tr>"
        )
    return (
        f'<table class="scores"><caption>{escape(caption)}</caption><thead><tr>'
        f'<th scope="col">candidate</th><th scope="col">{quantity}</th>'
        '<th scope="col"><span class="visually-hidden">selection</span></th></tr>'
        f"</thead><tbody>{''.join(lines)}</tbody></table>"
    )


def _render_optimization(summary):
    sections = {
        "Weights": describe_weights(summary),
        "Convergence": describe_convergence(summary),
        "Eigenvalues": describe_eigenvalues(summary),
    }
    return "".join(
        f"<div><dt>{title}</dt><dd>{_render_paragraphs(sentences)}</dd></div>"
        for title, sentences in sections.items()
    )


def _render_paragraphs(sentences):
    return "".join(f"<p>{escape(sentence)}.</p>" for sentence in sentences)


# --- data of the scripts --------------------------------------------------------------


def _render_data(element_id, data):
    """Return a script element that holds JSON."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    # no text can close the script element
    text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return f'<script type="application/json" id="{element_id}">{text}</script>'


def _collect_data(summary, plotted):
    """Return what page.js shows of every point, in the order of the circles."""
    features = [feature["name"] for feature in summary["features"]["shown"]]
    values = [_round_values(values) for values in plotted.values] if features else None
    return {
        "features": features,
        "rows": plotted.rows.tolist(),
        "names": plotted.names,
        "clusters": plotted.clusters.tolist(),
        "labels": plotted.labels.tolist(),
        "weights": _round_values(plotted.weights.tolist()),
        "margins": _round_values(plotted.margins.tolist()),
        "typicality": _round_values(plotted.typicality.tolist()),
        "values": values,
    }


def _round_values(values):
    """Return JSON values with floats rounded to six digits."""
    return [
        float(f"{value:.6g}")
        if isinstance(value, float) and not value.is_integer()
        else value
        for value in map(to_json_value, values)
    ]
