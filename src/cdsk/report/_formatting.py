# SPDX-License-Identifier: BSD-3-Clause
"""Numbers and names as text, for all forms of a report (tests/test_report.py)."""

_MAX_LISTED_CLUSTERS = 8


def format_count(value):
    """Return a sum of sample weights: integers in full, others to three digits."""
    is_integer = value >= 100 or value == round(value)
    return f"{value:.0f}" if is_integer else f"{value:.3g}"


def pluralize(number, noun):
    """Return the number and its noun: "1 point", "2 points"."""
    return f"{number} {noun}{'' if str(number) == '1' else 's'}"


def format_small(value):
    """Return a number in [0, 2] to two digits; rounding errors become 0."""
    return f"{value:.2g}" if value > 1e-12 else "0"


def format_range(low, high):
    """Return "low to high", or one number if both are printed alike."""
    low, high = f"{low:.3g}", f"{high:.3g}"
    return low if low == high else f"{low} to {high}"


def format_clusters(clusters):
    """Return "Cluster 3" or "Clusters 0, 1, ...", at most eight of them."""
    listed = [str(y) for y in clusters[:_MAX_LISTED_CLUSTERS]]
    listed += ["..."] * (len(clusters) > _MAX_LISTED_CLUSTERS)
    return f"Cluster{'' if len(clusters) == 1 else 's'} {', '.join(listed)}"


def format_representation(name):
    """Return the name of a representation: "standardized", "normal scores"."""
    name, _, n_components = name.partition(" ")
    if name == "whiten":
        return f"whitened to {pluralize(int(n_components), 'component')}"
    if name == "layout":
        return f"layout in {pluralize(int(n_components), 'dimension')}"
    texts = {"standardize": "standardized", "normal_scores": "normal scores"}
    return texts.get(name, name)
