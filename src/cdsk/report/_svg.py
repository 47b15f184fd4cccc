# SPDX-License-Identifier: BSD-3-Clause
"""Scatter plot of the embedding as SVG elements (tests/test_html.py)."""

from itertools import groupby

# Half the side of the plot in units of the embedding, and its side in those of SVG.
_EXTENT, _SIDE = 1.32, 1000
# Distance of the cluster numbers from the center, relative to the corners.
_LABEL_DISTANCE = 1.26
_MAX_LABELS = 40
# Colors of page.css; further clusters have shades of them.
_N_COLORS = 10


def render_scatter(plotted):
    """Return outline, points grouped by cluster, and cluster numbers."""
    layout = plotted.compute_layout()
    outline = " ".join(f"{x},{y}" for x, y in map(_to_svg, layout.outline))
    elements = [f'<polygon class="outline" points="{outline}"/>']
    clusters = plotted.clusters.tolist()
    radius = 7 if len(clusters) <= 1000 else 5
    for cluster, members in groupby(range(len(clusters)), lambda i: clusters[i]):
        circles = (
            _render_circle(layout.points[i], radius, _get_class(plotted, i))
            for i in members
        )
        elements.append(
            f'<g class="cluster" data-cluster="{cluster}" '
            f'style="{format_color(cluster)}">{"".join(circles)}</g>'
        )
    if len(layout.corners) <= _MAX_LABELS:
        for cluster, corner in enumerate(layout.corners):
            x, y = _to_svg(_LABEL_DISTANCE * corner)
            elements.append(f'<text class="corner" x="{x}" y="{y}">{cluster}</text>')
    return "".join(elements)


def format_color(cluster):
    """Return the CSS that sets the color of a cluster."""
    hue, shade = cluster % _N_COLORS, cluster // _N_COLORS
    if shade == 0:
        return f"--color:var(--c{hue})"
    mixed = "var(--ink)" if shade % 2 else "var(--paper)"
    return f"--color:color-mix(in srgb,var(--c{hue}),{mixed} 35%)"


def _render_circle(position, radius, css_class):
    x, y = _to_svg(position)
    attribute = f' class="{css_class}"' if css_class else ""
    return f'<circle cx="{x}" cy="{y}" r="{radius}"{attribute}/>'


def _get_class(plotted, i):
    noise = "noise" if plotted.labels[i] < 0 else ""
    zero_weight = "zero-weight" if plotted.weights[i] == 0 else ""
    return f"{noise} {zero_weight}".strip()


def _to_svg(position):
    x, y = position
    scale = 0.5 * _SIDE / _EXTENT
    return round(_SIDE / 2 + scale * x, 1), round(_SIDE / 2 - scale * y, 1)
