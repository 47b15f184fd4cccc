# SPDX-License-Identifier: BSD-3-Clause
"""The facts of a report -> one HTML page that needs neither network nor other files.

page.html is the page, page.css its looks, page.js what moves. Whatever comes from the
data is escaped where it is written; the policy of the page allows its own script alone,
by its hash, and no network at all.
"""

import base64
import hashlib
import json
from functools import cache
from html import escape
from importlib.resources import files
from itertools import groupby
from string import Template

from cdsk._explain.phrases import amount, count, in_words
from cdsk._explain.table import as_plain
from cdsk._explain.words import (
    SECTIONS,
    count_in_words,
    kernel_in_words,
    least_confident,
    margins_in_words,
    marked_in_words,
)

# Of more clusters, those of lowest confidence have rows in the tables.
MOST_CLUSTERS = 100
# Of few clusters all typical rows are shown at once.
_ALL_OPEN = 3
# Of the numbers of clusters that were compared, so many are shown.
_BEST_COUNTS = 6

# The picture: half its side in units of the embedding, and its side.
_EXTENT, _SIDE = 1.32, 1000
# Colours in page.css; further clusters have shades of them.
_N_COLOURS = 10

_CONFIDENCE = (
    "Confidence is the mean margin of a cluster: 1 if all votes of other points are "
    "for it, 0 if another has as many. Typicality 1 is that of the median point, 0 "
    "that of a point far from all."
)


def make_page(facts, drawing):
    """The page as text."""
    script = _part("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return Template(_part("page.html")).substitute(
        style=_part("page.css"),
        script=script,
        script_hash=digest,
        data=_data_for_script(facts, drawing),
        title=escape(_title(facts)),
        subtitle=_subtitle(facts),
        tiles=_tiles(facts),
        warnings=_warnings(facts),
        picture=_picture(drawing),
        sample=_sample(facts, drawing),
        axes=_axes(facts, drawing),
        clusters=_clusters(facts),
        confidence=_CONFIDENCE,
        shown_features=_shown_features(facts),
        typical=_typical(facts),
        outliers=_outliers(facts),
        kernel=_kernel(facts),
        solution=_solution(facts),
        version=escape(facts["cdsk_version"]),
        schema=escape(f"{facts['schema']} {facts['schema_version']}"),
    )


@cache
def _part(name):
    return files("cdsk._explain").joinpath(name).read_text(encoding="utf-8")


def shown(value):
    """A value of a feature as a reader wants it: four digits, whole numbers whole."""
    if value is None:
        return "–"
    if not isinstance(value, float):
        return str(value)
    if value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e7 else f"{value:.4g}"


# --- from the top of the page to its end ----------------------------------------------


def _title(facts):
    n_found = len(facts["clusters"]["found"])
    rows = facts["data"]["n_points"]
    noun = "point"
    if facts["blocks"] is not None:
        rows, noun = facts["blocks"]["n_rows"], "row"
    return f"{count(amount(rows), noun)} in {count(n_found, 'cluster')}"


def _subtitle(facts):
    blocks = facts["blocks"]
    lines = [text for text in SECTIONS["Data"](facts) if isinstance(text, str)]
    if blocks is not None:
        lines = [
            f"{blocks['n_rows']} rows of {count(blocks['n_features'], 'feature')}, "
            f"{in_words(blocks['representation'])}, by "
            f"{count(blocks['n_landmarks'], 'landmark')}. The rows below are the "
            "landmarks, each counted for the rows that it is the nearest of."
        ]
    return "".join(f"<p>{escape(line)}</p>" for line in lines)


def _tiles(facts):
    n, weights = facts["data"]["n_points"], facts["weights"]
    found, outliers = facts["clusters"]["found"], facts["outliers"]
    sizes = [cluster["size"] for cluster in found]
    confidence = sum(c["confidence"] * c["size"] for c in found) / sum(sizes)
    tiles = [
        (amount(n), "points"),
        (str(len(found)), "clusters"),
        (f"{weights['n_support'] / n:.0%}", "of the points carry weight"),
        (f"{confidence:.2f}", "mean confidence"),
    ]
    if outliers["noise"] is not None:
        tiles.append((f"{outliers['noise']['n_points'] / n:.1%}", "noise"))
    return "".join(
        f"<div><dt>{what}</dt><dd>{value}</dd></div>" for value, what in tiles
    )


def _warnings(facts):
    if not facts["warnings"]:
        return '<p class="calm">No warnings.</p>'
    items = "".join(f"<li>{escape(text)}</li>" for text in facts["warnings"])
    return f'<div class="alarm"><h2 id="warnings">Warnings</h2><ul>{items}</ul></div>'


def _picture(drawing):
    """Outline, a group of circles for every cluster, and the clusters' numbers."""
    places = drawing.places()
    clusters = drawing.clusters[drawing.rows].tolist()
    radius = 7 if len(clusters) <= 1000 else 5
    outline = " ".join(f"{x},{y}" for x, y in map(_on_page, places.outline))
    parts = [f'<polygon class="outline" points="{outline}"/>']
    spots = enumerate(places.points)
    for cluster, members in groupby(spots, lambda spot: clusters[spot[0]]):
        circles = []
        for i, place in members:
            x, y = _on_page(place)
            kind = "noise" if drawing.labels[i] < 0 else ""
            kind += "" if drawing.weights[i] > 0 else " empty"
            kind = f' class="{kind.strip()}"' if kind else ""
            circles.append(f'<circle cx="{x}" cy="{y}" r="{radius}"{kind}/>')
        parts.append(
            f'<g class="cluster" data-cluster="{cluster}" style="{_colour(cluster)}">'
            f"{''.join(circles)}</g>"
        )
    for cluster, corner in enumerate(places.corners):
        if len(places.corners) <= 40:
            x, y = _on_page(1.26 * corner)
            parts.append(f'<text class="corner" x="{x}" y="{y}">{cluster}</text>')
    return "".join(parts)


def _on_page(place):
    x, y = place
    half = 0.5 * _SIDE / _EXTENT
    return round(_SIDE / 2 + half * x, 1), round(_SIDE / 2 - half * y, 1)


def _colour(cluster):
    hue, shade = cluster % _N_COLOURS, cluster // _N_COLOURS
    if shade == 0:
        return f"--colour:var(--c{hue})"
    other = "var(--ink)" if shade % 2 else "var(--paper)"
    return f"--colour:color-mix(in srgb,var(--c{hue}),{other} 35%)"


def _sample(facts, drawing):
    n, n_drawn = facts["data"]["n_rows"], len(drawing.rows)
    if n_drawn == n:
        return ""
    return (
        f"{n_drawn} of {n} rows are drawn: those that the tables name, and others at "
        "random."
    )


def _axes(facts, drawing):
    """Two choices of features, if there are numbers to draw; else nothing."""
    features = facts["features"]["shown"]
    numbers = []
    for j in range(len(features)):
        kinds = {type(values[j]) for values in drawing.values} - {type(None)}
        if kinds and kinds <= {int, float}:
            numbers.append(j)
    if not numbers:
        return ""
    options = "".join(
        f'<option value="{j}">{escape(features[j]["name"])}</option>' for j in numbers
    )
    embedding = '<option value="">embedding</option>'
    return (
        f'<label>Across <select id="across">{embedding}{options}</select></label>'
        f'<label>Up <select id="up">{embedding}{options}</select></label>'
    )


def _clusters(facts):
    found = facts["clusters"]["found"]
    largest = max(cluster["size"] for cluster in found)
    rows = []
    for cluster in found:
        y, confidence = cluster["cluster"], cluster["confidence"]
        rows.append(
            f'<tr data-cluster="{y}" style="{_colour(y)}"><th scope="row">'
            f'<button type="button" aria-pressed="false" data-cluster="{y}">'
            f'<span class="swatch"></span>Cluster {y}</button></th>'
            f"<td>{_bar(cluster['size'] / largest, amount(cluster['size']))}</td>"
            f"<td>{cluster['weight']:.1%}</td>"
            f"<td>{_bar(confidence, _digits(confidence, 2))}</td></tr>"
        )
    return "".join(rows)


def _bar(share, text):
    """A bar as long as a share of 1, None for nothing, and the figure in words."""
    width = 100 * min(max(share or 0.0, 0.0), 1.0)
    return (
        f'<span class="bar"><span style="width:{width:.0f}%"></span></span>'
        f'<span class="figure">{text}</span>'
    )


def _digits(value, digits):
    return "–" if value is None else f"{value:.{digits}f}"


def _shown_features(facts):
    n, n_shown = facts["features"]["n_columns"], len(facts["features"]["shown"])
    if not n_shown:
        return (
            "Values of features are shown if the data are given: "
            "<code>model.report(X)</code>."
        )
    if n_shown < n:
        return (
            f"{n_shown} of {n} features are shown, those in which the clusters differ "
            "most."
        )
    return ""


def _typical(facts):
    rows = {row["row"]: row for row in facts["rows"]}
    found = facts["clusters"]["found"]
    parts = []
    if len(found) > MOST_CLUSTERS:
        parts.append(f"<p>The {MOST_CLUSTERS} clusters of lowest confidence:</p>")
    for cluster in least_confident(found, MOST_CLUSTERS):
        y, least = cluster["cluster"], cluster["least_typical"]
        listed = [("most", rows[i]) for i in cluster["most_typical"]]
        named = set(cluster["most_typical"])
        listed += [("least", rows[i]) for i in reversed(least) if i not in named]
        opened = " open" if len(found) <= _ALL_OPEN else ""
        parts.append(
            f'<details{opened} data-cluster="{y}" style="{_colour(y)}"><summary>'
            f'<span class="swatch"></span>Cluster {y}'
            f" <small>{count(amount(cluster['size']), 'point')}</small></summary>"
            f"{_table_of_rows(facts, listed, f'Rows of cluster {y}')}</details>"
        )
    return "".join(parts)


def _outliers(facts):
    rows = {row["row"]: row for row in facts["rows"]}
    listed = [("", rows[i]) for i in facts["outliers"]["least_typical"]]
    words = [*marked_in_words(facts), margins_in_words(facts)]
    return _paragraphs(words) + _table_of_rows(facts, listed, "Least typical rows")


def _table_of_rows(facts, listed, caption):
    """Rows with their figures and features; ``listed`` pairs a word with a row."""
    typical = any(kind for kind, _ in listed)
    names = [escape(feature["name"]) for feature in facts["features"]["shown"]]
    head = ["Row", *["Typical"] * typical, "Cluster", "Margin", "Typicality", *names]
    lines = []
    for kind, row in listed:
        name = str(row["row"] if row["name"] is None else row["name"])
        label = "noise" if row["label"] < 0 else row["cluster"]
        cells = [
            *[kind] * typical,
            label,
            *(_digits(row[figure], 2) for figure in ("margin", "typicality")),
            *(shown(value) for value in row["values"] or []),
        ]
        cells = "".join(f"<td>{escape(str(cell))}</td>" for cell in cells)
        lines.append(
            f'<tr data-row="{row["row"]}"><th scope="row">{escape(name)}</th>{cells}'
            "</tr>"
        )
    heads = "".join(f'<th scope="col">{name}</th>' for name in head)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{caption}">'
        f'<table><caption class="unseen">{caption}</caption>'
        f"<thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def _kernel(facts):
    kernel, data = facts["kernel"], facts["data"]
    parts = [_paragraphs(kernel_in_words(facts))]
    if len(kernel["candidates"]) > 1:
        candidates = [
            (c["name"], c["score"], c["chosen"], "" if c["resolved"] else "unresolved")
            for c in kernel["candidates"]
        ]
        parts.append(_scores("Kernels that were tried", "agreement", candidates))
    if data["representation_scores"]:
        views = [
            (in_words(view), score, view == data["representation"], "")
            for view, score in data["representation_scores"].items()
        ]
        parts.append(_scores("Representation of the data", "agreement", views))
    choice = facts["clusters"]["count_choice"]
    if choice is not None:
        scores = zip(choice["candidates"], choice["scores"], strict=True)
        best = sorted(scores, key=lambda pair: -(pair[1] or 0.0))[:_BEST_COUNTS]
        numbers = [
            (number, score, number == choice["n_clusters"], "")
            for number, score in sorted(best)
        ]
        parts.append(_scores("Number of clusters, the best", "score", numbers))
        parts.append(_paragraphs(count_in_words(facts)))
    return "".join(parts)


def _scores(caption, what, scores):
    """A table with bars, (name, score, chosen, note) each."""
    largest = max([1.0, *(score for _, score, _, _ in scores if score is not None)])
    lines = []
    for name, score, chosen, note in scores:
        mark = '<span class="chosen">chosen</span>' if chosen else escape(note)
        lines.append(
            f'<tr{" class=picked" if chosen else ""}><th scope="row">'
            f"{escape(str(name))}</th>"
            f"<td>{_bar((score or 0.0) / largest, _digits(score, 3))}</td>"
            f"<td>{mark}</td></tr>"
        )
    return (
        f'<table class="scores"><caption>{escape(caption)}</caption><thead><tr>'
        f'<th scope="col">candidate</th><th scope="col">{what}</th>'
        '<th scope="col"><span class="unseen">choice</span></th></tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table>"
    )


def _solution(facts):
    parts = []
    for title in ("Weights", "Convergence", "Eigenvalues"):
        words = _paragraphs(SECTIONS[title](facts))
        parts.append(f"<div><dt>{title}</dt><dd>{words}</dd></div>")
    return "".join(parts)


def _paragraphs(texts):
    return "".join(f"<p>{escape(text)}.</p>" for text in texts)


# --- for the script -------------------------------------------------------------------


def _data_for_script(facts, drawing):
    """What the script shows of every circle, in their order, as JSON."""
    data = {
        "features": [feature["name"] for feature in facts["features"]["shown"]],
        "rows": drawing.rows.tolist(),
        "names": drawing.names,
        "clusters": drawing.clusters[drawing.rows].tolist(),
        "labels": drawing.labels.tolist(),
        "weights": _rounded(drawing.weights.tolist()),
        "margins": _rounded(drawing.margins.tolist()),
        "typicality": _rounded(drawing.typicality.tolist()),
        "values": None
        if not facts["features"]["shown"]
        else [_rounded(values) for values in drawing.values],
    }
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    # nothing in it can end the element that holds it
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _rounded(values):
    """Numbers of six digits; whole ones, and what is no number, as they are."""
    return [
        float(f"{value:.6g}")
        if isinstance(value, float) and not value.is_integer()
        else value
        for value in map(as_plain, values)
    ]
