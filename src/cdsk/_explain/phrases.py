# SPDX-License-Identifier: BSD-3-Clause
"""Numbers and names in words, for text and page alike (tests/test_report.py)."""


def amount(value):
    """A sum of weights: whole numbers as they are, others to three digits at least."""
    whole = value >= 100 or value == round(value)
    return f"{value:.0f}" if whole else f"{value:.3g}"


def count(number, noun):
    """So many of them."""
    return f"{number} {noun}{'' if str(number) == '1' else 's'}"


def small(value):
    """Two digits of a number between 0 and 2; what rounding leaves is 0."""
    return f"{value:.2g}" if value > 1e-12 else "0"


def from_to(least, largest):
    """Both, or one if they look the same."""
    low, high = f"{least:.3g}", f"{largest:.3g}"
    return low if low == high else f"{low} to {high}"


def clusters_named(clusters):
    """The clusters in words, at most eight by number."""
    names = ", ".join(map(str, clusters[:8])) + (", ..." if len(clusters) > 8 else "")
    return f"Cluster{'' if len(clusters) == 1 else 's'} {names}"


def in_words(view):
    """What the data are in a view, by its name."""
    name, _, components = view.partition(" ")
    if name == "whiten":
        return f"whitened to {count(int(components), 'component')}"
    words = {"raw": "as given", "standardize": "standardised"}
    return words.get(name, "as normal scores")
