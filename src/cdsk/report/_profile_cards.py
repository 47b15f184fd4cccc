# SPDX-License-Identifier: BSD-3-Clause
"""Profiles on the page: sentences, and small distributions (tests/test_html.py)."""

from html import escape

from cdsk.report._formatting import format_pair, format_share, shorten_name
from cdsk.report._sentences import describe_profile, format_values, name_line
from cdsk.report._svg import format_color

# Distributions are expanded if there are at most this many clusters.
_MAX_EXPANDED = 6
# Size of a distribution in units of SVG.
_WIDTH, _HEIGHT = 160, 44
# Length of the heading of a card, of two lines, and of a name in its tooltip.
_MAX_HEADING, _MAX_TITLE = 32, 200


def render_profiles(profiles, all_profiles, distributions):
    """Return an element per profile, with a card for each feature that it mentions.

    ``all_profiles`` are those of all clusters, in the order of the ``distributions``.
    """
    position = {profile["cluster"]: i for i, profile in enumerate(all_profiles)}
    expanded = " open" if len(profiles) <= _MAX_EXPANDED else ""
    elements = []
    for profile in sorted(profiles, key=lambda profile: profile["cluster"] < 0):
        y = profile["cluster"]
        color = "--color:var(--noise)" if y < 0 else format_color(y)
        cards = "".join(
            _render_card(feature, distributions[feature["column"]], position[y])
            for feature in profile["features"]
        )
        elements.append(
            f'<details{expanded} class="profile" style="{color}"><summary>'
            f'<span class="swatch"></span>{escape(describe_profile(profile))}</summary>'
            f'<div class="cards">{cards}</div></details>'
        )
    return "".join(elements)


def _render_card(feature, distribution, i):
    value, elsewhere = format_values(feature)
    name = escape(name_line(feature), quote=True)
    heading = escape(name_line(feature, length=_MAX_HEADING))
    title = escape(shorten_name(feature["feature"], _MAX_TITLE), quote=True)
    return (
        f'<figure class="card"><figcaption title="{title}"><b>{heading}</b>'
        "</figcaption>"
        f"{_render_distribution(feature, distribution, i, name)}"
        f"<p>{escape(value)}, elsewhere {escape(elsewhere)}</p></figure>"
    )


def _render_distribution(feature, distribution, i, name):
    """Return the bins of a cluster, in its color, before those of all rows."""
    own, total, names = distribution.shares[i], distribution.total, distribution.names
    if feature["kind"] == "missing":
        share, total_share = distribution.missing[i], distribution.total_missing
        own, total = [1 - share, share], [1 - total_share, total_share]
        names = "present", "missing"
    highest = max(*own, *total) or 1.0
    has_gaps = names is not None or len(own) <= 2
    draw = _draw_bars if has_gaps else _draw_curve
    paths = "".join(
        f'<path class="{name}" d="{draw(shares, highest)}"/>'
        for name, shares in (("all", total), ("own", own))
    )
    title = _describe_bins(names, own, total, distribution)
    return (
        f'<svg class="distribution" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'preserveAspectRatio="none" aria-label="Distribution of {name}">'
        f"<title>{title}</title>{paths}</svg>"
    )


def _describe_bins(names, own, total, distribution):
    if names is None:
        low, high = format_pair(distribution.low, distribution.high)
        return f"{low} to {high}"
    return escape(
        "; ".join(
            f"{shorten_name(name, 30)}: {format_share(a)}, of all {format_share(b)}"
            for name, a, b in zip(names, own, total, strict=True)
        )
    )


def _draw_curve(shares, highest):
    step = _WIDTH / len(shares)
    points = " ".join(
        f"{step * (i + 0.5):.0f},{_HEIGHT * (1 - share / highest):.0f}"
        for i, share in enumerate(shares)
    )
    return f"M0,{_HEIGHT}L{points} {_WIDTH},{_HEIGHT}Z"


def _draw_bars(shares, highest):
    step = _WIDTH / len(shares)
    gap = min(0.15 * step, 6)
    return "".join(
        f"M{step * i + gap:.0f},{_HEIGHT}V{_HEIGHT * (1 - share / highest):.0f}"
        f"H{step * (i + 1) - gap:.0f}V{_HEIGHT}Z"
        for i, share in enumerate(shares)
    )
