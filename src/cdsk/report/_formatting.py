# SPDX-License-Identifier: BSD-3-Clause
"""Numbers and names as text, for all forms of a report (tests/test_report.py)."""

import math
import unicodedata

_MAX_LISTED = 8


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
    listed = [str(y) for y in clusters[:_MAX_LISTED]]
    listed += ["..."] * (len(clusters) > _MAX_LISTED)
    return f"Cluster{'' if len(clusters) == 1 else 's'} {', '.join(listed)}"


def format_names(names):
    """Return names separated by commas, at most eight of them."""
    more = [f"... ({len(names)})"] * (len(names) > _MAX_LISTED)
    return ", ".join([*names[:_MAX_LISTED], *more])


def format_representation(name):
    """Return the name of a representation: "standardized", "normal scores"."""
    name, _, n_components = name.partition(" ")
    if name == "whiten":
        return f"whitened to {pluralize(int(n_components), 'component')}"
    if name == "layout":
        return f"layout in {pluralize(int(n_components), 'dimension')}"
    texts = {
        "standardize": "standardized",
        "normal_scores": "normal scores",
        "chi_square": "chi-square coding",
        "indicators": "indicator coding",
    }
    return texts.get(name, name)


def format_number(value):
    """Return a number to three digits, without an exponent below a million."""
    return f"{value:.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.3g}"


def format_pair(first, second):
    """Return two numbers with as many digits as show their difference."""
    difference, largest = abs(first - second), max(abs(first), abs(second))
    if largest == 0 or not math.isfinite(difference):
        return f"{first:.3g}", f"{second:.3g}"
    # two significant digits of the difference
    digits = 1 - math.floor(math.log10(difference or largest))
    if not 1e-4 <= largest < 1e7 or digits > 8:
        n_digits = min(max(2, 1 + digits + math.floor(math.log10(largest))), 15)
        return f"{first:.{n_digits}g}", f"{second:.{n_digits}g}"
    digits = max(digits, 0)
    return _format_nonzero(first, digits), _format_nonzero(second, digits)


def _format_nonzero(value, digits):
    """Return a number with so many decimals, or up to two more if it would show 0."""
    for more in range(3):
        text = f"{value:.{digits + more}f}"
        if value == 0 or float(text) != 0:
            return text
    return "0"


def format_share(share):
    """Return a share in percent: "0%" and "100%" only if it is."""
    if 0 < share < 0.005:
        return "<1%" if share >= 0.0005 else "<0.1%"
    if 0.995 < share < 1:
        return ">99%"
    return f"{share:.0%}"


def shorten_name(name, length=40):
    """Return a name on one line of at most ``length`` characters.

    One that is written from right to left is isolated from the text around it.
    """
    name = " ".join(name.split())
    name = name if len(name) <= length else name[: length - 1].rstrip() + "…"
    is_reversed = any(unicodedata.bidirectional(c) in ("R", "AL") for c in name)
    return f"\u2068{name}\u2069" if is_reversed else name
