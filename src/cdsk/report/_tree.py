# SPDX-License-Identifier: BSD-3-Clause
"""Section of the page on layers: a tree with a slider (tests/test_layers.py).

The tree is drawn here, so that a printed page has it; layers.js cuts it.
"""

import math
from html import escape

from cdsk.report._formatting import format_count
from cdsk.report._svg import format_color

# In units of the drawing: its width, that of leaf labels, the height of a leaf.
_WIDTH, _LABELS, _LEAF_HEIGHT, _MARGIN = 1000, 60, 18, 12
_MIN_STROKE, _MAX_STROKE = 1.0, 8.0


def render_tree(layers):
    """Return the SVG elements of the tree of ``Layers.to_dict``, and its height."""
    nodes, n = layers["nodes"], layers["n_leaves"]
    x, y = _scale_heights(layers), [_place(node) for node in nodes]
    merged = [_MARGIN] * len(nodes)
    for node in nodes[n:]:
        for child in node["children"]:
            merged[child] = x[node["node"]]
    elements = []
    for i, node in reversed(list(enumerate(nodes))):
        share = math.sqrt(node["size"] / max(nodes[-1]["size"], 1.0))
        width = _MIN_STROKE + (_MAX_STROKE - _MIN_STROKE) * share
        color = format_color(node["cluster"]) if node["cluster"] is not None else ""
        join = ""
        if node["children"] is not None:
            top, bottom = (y[child] for child in node["children"])
            join = f'<path d="M{x[i]} {top}V{bottom}"/>'
        else:
            size = escape(format_count(node["size"]))
            join = f'<text x="{_WIDTH - _LABELS + 8}" y="{y[i]}">{size}</text>'
        elements.append(
            f'<g class="node" style="{color}">{join}<path class="life" '
            f'stroke-width="{width:.1f}" d="M{merged[i]} {y[i]}H{x[i]}"/></g>'
        )
    height = _LEAF_HEIGHT * n + 2 * _MARGIN
    cut = f'<line id="cut" x1="0" x2="0" y1="0" y2="{height}"/>'
    return "".join(reversed(elements)) + cut, height


def collect_tree(layers):
    """Return what layers.js needs."""
    nodes, n = layers["nodes"], layers["n_leaves"]
    x = _scale_heights(layers)
    # where the layers of 2, 3, ... clusters cut the tree
    ends = [_WIDTH - _LABELS, *x[n:]]
    cuts = [round((ends[n - k] + ends[n - k + 1]) / 2, 1) for k in range(2, n)]
    return {
        "fit": layers["n_clusters"],
        "children": [node["children"] for node in nodes[n:]],
        "clusters": [node["cluster"] for node in nodes[:n]],
        "sizes": [node["size"] for node in nodes],
        "persistence": [node["persistence"] for node in nodes],
        "cuts": [*cuts, round((ends[0] + ends[1]) / 2, 1)],
    }


def render_levels(layers):
    """Return buttons of the layers worth reading, that of the fit first."""
    names = {layers["n_clusters"]: f"{layers['n_clusters']} (the fit)"}
    names |= {k: str(k) for k in layers["levels"] if k != layers["n_clusters"]}
    return "".join(
        f'<button type="button" data-layer="{k}">{name}</button>'
        for k, name in names.items()
        if k >= 2
    )


def _scale_heights(layers):
    """Return the coordinate of the end of each node, that of the last one at left."""
    nodes, n = layers["nodes"], layers["n_leaves"]
    heights = [node["height"] for node in nodes[n:]]
    low, high = 0.9 * heights[0], 1.05 * heights[-1] or 1.0
    right = _WIDTH - _LABELS
    scale = (right - _MARGIN) / (high - low)
    return [right] * n + [round(right - scale * (h - low), 1) for h in heights]


def _place(node):
    return round(_MARGIN + _LEAF_HEIGHT * (node["place"] + 0.5), 1)
