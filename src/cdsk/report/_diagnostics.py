# SPDX-License-Identifier: BSD-3-Clause
"""Warnings of a report, from the fitted attributes (tests/test_report.py)."""

import numpy as np

from cdsk._coding import CODINGS
from cdsk._view_choice import MIN_CODING_GAIN, MIN_GAIN, MIN_LAYOUT_GAIN
from cdsk.report._formatting import (
    format_clusters,
    format_count,
    format_representation,
    pluralize,
)

MAX_NEGATIVE_MARGINS = 0.05  # fraction of the points
MIN_RELATIVE_SIZE = 0.1  # of a cluster, relative to the mean size
MIN_RECALL = 0.9  # of an approximate search for neighbors
MIN_SCORE = 0.25  # of the selected candidate, 1/6 of which is its vote for itself
CLOSE_RATIO = 1.1  # of a score and the one that another view needs to be selected
DOMINANT_VARIANCE = 0.99  # fraction of the variance in at most ...
MAX_DOMINANT_FEATURES = 3  # ... this many features


def collect_warnings(model):
    """Return the warnings of a fitted model as a list of sentences."""
    return [text for check in _CHECKS for text in check(model)]


def _check_features(model):
    """Warn if few features have nearly all of the variance, as with a smaller unit.

    Mean squared distances are twice the variance, so all other features change
    distances by half a percent. Data in comparable units are far from that: digits need
    45 of 64 features for the same fraction, iris needs all. Other representations have
    equal variances, and other kernels may weight the features differently.
    """
    representation = model.representation_
    if model.params_["kernel"] != "rbf" or representation.name != "raw":
        return
    spread = representation.spread
    largest = np.argsort(-spread, kind="stable")[: np.count_nonzero(spread)]
    if len(largest) < 2 or not np.isfinite(spread).all():
        return
    # relative to the largest, so that no square overflows
    variance = np.cumsum(np.square(spread[largest] / spread.max()))
    n_dominant = 1 + int(np.searchsorted(variance, DOMINANT_VARIANCE * variance[-1]))
    if n_dominant > min(MAX_DOMINANT_FEATURES, len(largest) // 2):
        return
    names = getattr(model, "feature_names_in_", None)
    listed = " and ".join(
        str(j) if names is None else f"{j} ({str(names[j])!r})"
        for j in largest[:n_dominant]
    )
    is_one = n_dominant == 1
    yield (
        f"Feature{'' if is_one else 's'} {listed} {'has' if is_one else 'have'} more "
        f"than {DOMINANT_VARIANCE:.0%} of the variance and "
        f"dominate{'s' if is_one else ''} the distances. Consider "
        'representation="standardize".'
    )


def _check_views(model):
    """Tell if the best of the other views, or a layout, was nearly selected or not."""
    view = model.representation_
    gain = MIN_CODING_GAIN if view.name in CODINGS else MIN_GAIN
    comparisons = (
        ("agreement across scales", view.scores, gain),
        ("support", view.support, MIN_LAYOUT_GAIN),
    )
    for quantity, values, gain in comparisons:
        if len(values) < 2:
            continue
        first, *others = values
        other = max(others, key=values.__getitem__)
        needed = gain * values[first]
        if needed / CLOSE_RATIO < values[other] < needed * CLOSE_RATIO:
            yield (
                f"A close call between the views {format_representation(first)} and "
                f"{format_representation(other)}: the {quantity} of the second is "
                f"{values[other] / values[first]:.2f} times that of the first, and "
                f"{gain} times selects it. Compare fits of both (`representation`)."
            )


def _check_clusters(model):
    labels, sample_weight = model.clusters_, model.sample_weight_
    sizes = np.bincount(labels, sample_weight)
    weights = np.bincount(labels, sample_weight * model.weights_)
    n_clusters = model.n_clusters_
    if len(sizes) < n_clusters:
        yield f"Found {len(sizes)} clusters, fewer than n_clusters={n_clusters}."
    threshold = MIN_RELATIVE_SIZE * sample_weight.sum() / n_clusters
    small = np.flatnonzero(sizes < threshold)
    if len(small):
        verb = "is" if len(small) == 1 else "are"
        yield (
            f"{format_clusters(small)} {verb} smaller than {MIN_RELATIVE_SIZE:.0%} of "
            "the mean cluster size and may consist of outliers."
        )
    zero = np.flatnonzero(weights == 0)
    if len(zero):
        verb, pronoun = ("has", "it") if len(zero) == 1 else ("have", "them")
        yield (
            f"{format_clusters(zero)} {verb} zero weight: predict never returns "
            f"{pronoun}."
        )


def _check_missing(model):
    text = None if model.missing_ is None else model.missing_.explain()
    if text is not None:
        yield text


def _check_margins(model):
    sample_weight = model.sample_weight_
    n, n_negative = sample_weight.sum(), sample_weight[model.margins_ < 0].sum()
    if n_negative > MAX_NEGATIVE_MARGINS * n:
        yield (
            f"{format_count(n_negative)} points ({n_negative / n:.0%}) have a negative "
            "margin: the votes of the other points contradict their labels."
        )
    n_zero = sample_weight[model.margins_ == 0].sum()
    if n_zero:
        text = pluralize(format_count(n_zero), "point")
        verb, pronoun = ("has", "it") if text == "1 point" else ("have", "them")
        yield (
            f"{text} {verb} margin 0: no point of positive weight is similar to "
            f"{pronoun}, or the votes are tied."
        )


def _check_candidates(model):
    choice = model.choice_
    if len(choice.names) > 1 and choice.scores[choice.chosen] < MIN_SCORE:
        yield (
            "The candidate kernels disagree (best score "
            f"{choice.scores[choice.chosen]:.2f}): the clusters depend on the scale."
        )
    if choice.sample_agreement < MIN_SCORE:
        yield (
            f"The partition of all points disagrees with that of the "
            f"{choice.n_sample} points by which its kernel was selected (adjusted Rand "
            f"index {choice.sample_agreement:.2f})."
        )
    recall = model.neighbor_recall_
    if recall is not None and recall < MIN_RECALL:
        yield (
            f"The approximate search found only {recall:.0%} of the neighbors: use "
            "neighbors=None."
        )


def _check_convergence(model):
    if not model.converged_:
        decrease, max_iter = -np.diff(model.history_)[-1], model.params_["max_iter"]
        yield (
            f"Not converged after max_iter={max_iter}: the last iteration decreased "
            f"the objective by {decrease:.1e}."
        )
    qp_tol = model.params_["qp_tol"]
    if model.qp_gap_ > qp_tol:
        yield f"The KKT gap of the weights exceeds qp_tol={qp_tol:.1e}."


_CHECKS = (
    _check_features,
    _check_views,
    _check_clusters,
    _check_missing,
    _check_margins,
    _check_candidates,
    _check_convergence,
)
