# SPDX-License-Identifier: BSD-3-Clause
"""A fitted model -> sentences on what to be wary of (tests/test_report.py)."""

import numpy as np

from cdsk._explain.phrases import amount, clusters_named, count

MANY_CONTRADICTED = 0.05  # share of points with a negative margin
TINY = 0.1  # of the mean size of a cluster
LOW_SCORE = 0.25  # of the chosen candidate, a sixth of it its own
DOMINANT = 0.99  # share of the variance that a few features have
FEW = 3


def find_warnings(model):
    """All of them, none if there is nothing to warn of."""
    return [text for check in _CHECKS for text in check(model)]


def _warn_of_features(model):
    """Of a few features that have nearly all of the variance, as in a smaller unit.

    Mean squared distances are twice the variance, so that the other features, most of
    those that vary, change distances by half a percent. That is far from what data in
    comparable units show: digits need 45 of 64 features for the same share, iris all.
    In other views all have equal variances, and of kernels other than the Gaussian it
    is not known how they weigh the features.
    """
    representation = model.representation_
    if model.params_["kernel"] != "rbf" or representation.name != "raw":
        return
    spread = representation.spread
    largest = np.argsort(-spread, kind="stable")[: np.count_nonzero(spread)]
    if len(largest) < 2 or not np.isfinite(spread).all():
        return
    # in units of the largest, so that no square overflows
    shares = np.cumsum(np.square(spread[largest] / spread.max()))
    few = 1 + int(np.searchsorted(shares, DOMINANT * shares[-1]))
    if few > min(FEW, len(largest) // 2):
        return
    names = getattr(model, "feature_names_in_", None)
    named = " and ".join(
        str(i) if names is None else f"{i} ({str(names[i])!r})" for i in largest[:few]
    )
    yield (
        (f"Feature {named} has" if few == 1 else f"Features {named} have")
        + f" more than {DOMINANT:.0%} of the variance: distances hardly see the "
        'others. Try representation="standardize"?'
    )


def _warn_of_clusters(model):
    labels, counts = model.clusters_, model.sample_weight_
    size = np.bincount(labels, counts)
    share = np.bincount(labels, counts * model.weights_)
    n_clusters = model.n_clusters_
    if len(size) < n_clusters:
        yield f"{n_clusters} clusters were asked for, {len(size)} were found."
    tiny = np.flatnonzero(size < TINY * counts.sum() / n_clusters)
    if len(tiny):
        named = clusters_named(tiny)
        yield f"{named} below a tenth of the mean size: outliers, perhaps."
    empty = np.flatnonzero(share == 0)
    if len(empty):
        yield f"{clusters_named(empty)} without weight: predict never returns it."


def _warn_of_margins(model):
    counts = model.sample_weight_
    n, contradicted = counts.sum(), counts[model.margins_ < 0].sum()
    if contradicted > MANY_CONTRADICTED * n:
        yield (
            f"{amount(contradicted)} points ({contradicted / n:.0%}) have a negative "
            "margin: the votes of the others contradict their label."
        )
    unheard = counts[model.margins_ == 0].sum()
    if unheard:
        yield (
            f"{count(amount(unheard), 'point')} of margin 0: no point with weight is "
            "similar to them, or clusters tie."
        )


def _warn_of_choice(model):
    choice = model.choice_
    if len(choice.names) > 1 and choice.scores[choice.chosen] < LOW_SCORE:
        yield (
            f"The kernels disagree (best score {choice.scores[choice.chosen]:.2f}): "
            "the clusters depend on the scale."
        )


def _warn_of_convergence(model):
    if not model.converged_:
        fall, max_iter = -np.diff(model.history_)[-1], model.params_["max_iter"]
        yield (
            f"The rounds ended at max_iter={max_iter} while the merit still fell by "
            f"{fall:.1e}."
        )
    qp_tol = model.params_["qp_tol"]
    if model.qp_gap_ > qp_tol:
        yield f"KKT gap of the weights above qp_tol={qp_tol:.1e}."


_CHECKS = (
    _warn_of_features,
    _warn_of_clusters,
    _warn_of_margins,
    _warn_of_choice,
    _warn_of_convergence,
)
