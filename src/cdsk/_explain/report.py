# SPDX-License-Identifier: BSD-3-Clause
"""A fitted model -> a summary in words: what was chosen and why, and what to trust.

Everything is read from the fitted attributes; nothing is computed anew from the data.
Points and features are named by their row and column number, from 0. A row counts as
many times as its weight says: all figures are those of a fit of so many copies of it.
"""

import textwrap

import numpy as np

from cdsk._explain.margins import median

WIDTH = 79
_INDENT = 13
_BAR = 20
# A space at which no line is broken.
_TIED = "\u00a0"

# Of more clusters, the ones of lowest confidence are shown.
MOST_CLUSTERS = 10
# Of more eigenvalues, the first and the last.
_MOST_EIGENVALUES = 8
_POINTS_PER_CLUSTER = 3
_OUTLIERS = 6

# When the report warns.
MANY_CONTRADICTED = 0.05  # share of points with a negative margin
TINY = 0.1  # of the mean size of a cluster
LOW_SCORE = 0.25  # of the chosen candidate, a sixth of it its own
DOMINANT = 0.99  # share of the variance that a few features have
FEW = 3


def describe(model):
    """Text of ``CDSK.report``."""
    sections = {
        "Data": _data(model),
        "Kernel": _kernel(model),
        "Weights": _weights(model),
        "Convergence": _convergence(model),
        "Eigenvalues": _eigenvalues(model),
        "Clusters": _clusters(model),
        "Outliers": _outliers(model),
        "Warnings": _warnings(model),
    }
    n, n_found = _amount(model.sample_weight_.sum()), model.clusters_.max() + 1
    lines = [f"CDSK: {n} points in {n_found} clusters", ""]
    for title, paragraphs in sections.items():
        lines += _section(title, paragraphs)
    return "\n".join(lines)


def typical(model, members):
    """``members`` from the most typical to the least: by the lead of their own cluster.

    The lead in votes is small for points between clusters and for those far from all.
    """
    lead = (model.margins_ * model.typicality_)[members]
    return members[np.argsort(-lead, kind="stable")]


def effective_number(weights, counts):
    """1 / sum of squares: how many equal weights would be spread as evenly."""
    return 1.0 / np.sum(counts * np.square(weights))


def _section(title, paragraphs):
    """Lines with the title in the margin; a list of lines is kept as it is."""
    lines = []
    for paragraph in paragraphs:
        if isinstance(paragraph, str):
            wrapped = textwrap.wrap(paragraph, WIDTH - _INDENT)
            lines += [line.replace(_TIED, " ") for line in wrapped]
        else:
            lines += paragraph
    first = [f"{title:<{_INDENT}}{lines[0]}".rstrip()]
    return first + [(" " * _INDENT + line).rstrip() for line in lines[1:]]


def _data(model):
    counts, d = model.sample_weight_, model.n_features_in_
    n = _amount(counts.sum())
    given = {
        "precomputed": "kernel matrix",
        "precomputed_neighbors": "distances to their neighbours",
    }
    kernel = model.params_["kernel"]
    if isinstance(kernel, str) and kernel in given:
        yield f"{n} points, given by their {given[kernel]}"
        return
    representation = model.representation_
    different, some = model.n_different_, ""
    if not np.isin(counts, (0, 1)).all():
        some = f", by the weights of {different} different ones"
    elif different < counts.sum():
        some = f", {different} of them different"
    form = in_words(representation.view)
    yield f"{n} points of {_count(d, 'feature')}{some}, {form}"
    if representation.scores:
        scores = (
            f"{in_words(view)} {score:.3f}".replace(" ", _TIED)
            + (" (chosen)" if view == representation.view else "")
            for view, score in representation.scores.items()
        )
        yield f"Balanced agreement over the scales: {', '.join(scores)}"


def in_words(view):
    """What the data are in a view, by its name."""
    name, _, components = view.partition(" ")
    if name == "whiten":
        return f"whitened to {_count(int(components), 'component')}"
    words = {"raw": "as given", "standardize": "standardised"}
    return words.get(name, "as normal scores")


def _kernel(model):
    choice, kernel = model.choice_, model.kernel_
    if np.ndim(model.bandwidth_):
        counts = model.sample_weight_
        used = model.bandwidth_[counts > 0]
        middle = median(model.bandwidth_, counts)
        kernel += f"; bandwidths {_range(used)}, median {middle:.3g}"
    yield kernel
    approximation = model.approximation_
    if approximation is not None:
        yield (
            f"{_count(approximation.n_components, 'component')}; "
            f"{approximation.trace_error:.2g} of the trace missing, largest error of "
            f"10,000 random entries {approximation.largest_error:.2g}"
        )
    if len(choice.names) > 1:
        yield _curve(choice)


def _curve(choice):
    """Table of the candidates with a bar for their scores, the chosen one marked."""
    width = max(map(len, choice.names))
    lines = [f"  {'candidate':<{width}}  score  balance"]
    for i, name in enumerate(choice.names):
        score = choice.scores[i]
        bar = "#" * round(_BAR * max(score, 0.0))
        mark = ">" if i == choice.chosen else " "
        note = bar if choice.resolved[i] else "unresolved"
        lines.append(
            f"{mark} {name:<{width}}  {score:5.3f}  {choice.balance[i]:7.3f}  {note}"
        )
    return lines


def _weights(model):
    counts, different = model.sample_weight_, model.n_different_
    n, support = counts.sum(), counts[model.support_].sum()
    # the weights of copies are bound together
    least = int(np.ceil(different * model.lam_ - 1e-9))
    whose = "" if different == n else " different ones"
    yield (
        f"{_amount(support)} of {_amount(n)} points carry weight ({support / n:.0%}), "
        f"effective number {effective_number(model.weights_, counts):.1f}; lam "
        f"{model.lam_:.3g} asks for at least {least}{whose}"
    )
    chosen = model.lambda_choice_
    if chosen is not None:
        curve = zip(chosen.grid, chosen.curve, strict=True)
        values = ", ".join(f"{lam:.3g}: {value:.3g}" for lam, value in curve)
        yield (
            f"lam by the smallest {chosen.criterion} of a sample of {chosen.n_sample} "
            f"points ({values})"
        )


def _convergence(model):
    history, gap = model.history_, model.qp_gap_
    kept = np.isnan(gap)
    weights = "first weights kept" if kept else f"KKT gap of the weights {gap:.1e}"
    yield (
        f"{_count(model.n_iter_, 'round')}, merit {history[0]:.6g} to "
        f"{history[-1]:.6g}, {weights}"
    )


def _eigenvalues(model):
    # by how much they fall short of 1: narrow kernels crowd them there
    values = 1.0 - model.eigenvalues_
    shown = [_small(value) for value in values]
    if len(shown) > _MOST_EIGENVALUES:
        half = _MOST_EIGENVALUES // 2
        shown = [*shown[:half], "...", *shown[-half:]]
    yield f"1 minus {' '.join(shown)}; relaxed cut {_small(values.sum())}, their sum"
    if model.n_negative_:
        yield (
            f"{_count(model.n_negative_, 'negative eigenvalue')} of the kernel split "
            f"off; {_count(model.n_clipped_, 'pair')} of points had a negative "
            "similarity, set to 0"
        )


def _clusters(model):
    labels, counts = model.clusters_, model.sample_weight_
    size = np.bincount(labels, counts)
    share = np.bincount(labels, counts * model.weights_)
    margin = np.bincount(labels, counts * model.margins_) / size
    if model.count_choice_ is not None:
        yield _count_choice(model.count_choice_)
    shown = np.sort(np.argsort(margin, kind="stable")[:MOST_CLUSTERS])
    if len(size) > len(shown):
        yield (
            f"{_amount(size.min())} to {_amount(size.max())} points, median "
            f"{_amount(np.median(size))}; "
            f"confidence, the mean margin of the votes, {margin.min():.2f} to "
            f"{margin.max():.2f}; the {len(shown)} clusters of lowest confidence:"
        )
    else:
        yield (
            "Confidence is the mean margin: 1 if all votes of other points are for "
            "their cluster, 0 if another has as many."
        )
    digits = len(str(len(labels) - 1))
    column = _POINTS_PER_CLUSTER * (digits + 1) + 1
    lines = [f"   size weight confidence  {'most typical':<{column}}  least typical"]
    for y in shown:
        order = typical(model, np.flatnonzero((labels == y) & (counts > 0)))
        most = _numbers(order[:_POINTS_PER_CLUSTER], digits)
        least = _numbers(order[::-1][:_POINTS_PER_CLUSTER], digits)
        lines.append(
            f"{y:2d} {_amount(size[y]):>4} {share[y]:6.1%} {margin[y]:10.2f}  "
            f"{most:<{max(column, 12)}}  {least}"
        )
    yield lines


def _count_choice(choice):
    scores = dict(zip(choice.candidates.tolist(), choice.scores, strict=True))
    text = f"{choice.n_clusters} chosen, score {scores[choice.n_clusters]:.2f}"
    if choice.runner_up is not None:
        second = choice.runner_up
        text += f"; runner-up {second}, score {scores[second]:.2f}"
    return text


def _outliers(model):
    counts, typicality = model.sample_weight_, model.typicality_
    order = np.argsort(typicality, kind="stable")
    lowest = order[counts[order] > 0][:_OUTLIERS]
    points = ", ".join(f"{i}{_TIED}({typicality[i]:.2f})" for i in lowest)
    n, negative = counts.sum(), counts[model.margins_ < 0].sum()
    empty = n - counts[model.support_].sum()
    if len(model.strays_):
        strays = counts[model.strays_].sum()
        yield (
            f"{_count(_amount(strays), 'point')} similar to no cluster took the label "
            "of the nearest neighbour (strays_)"
        )
    if model.noise_ is not None:
        yield _noise(model)
    yield f"Least typical: {points}; the median point has 1"
    yield (
        f"{_amount(negative)} of {_amount(n)} margins are negative, {_amount(empty)} "
        "points carry no weight"
    )


def _noise(model):
    rule, counts = model.noise_, model.sample_weight_
    n, marked = counts.sum(), counts[model.labels_ < 0].sum()
    distances = _range(rule.thresholds)
    if " " in distances:
        distances += ", by cluster"
    return (
        f"{_amount(marked)} of {_amount(n)} points ({marked / n:.1%}) are noise, label "
        f"-1, at a rate of {rule.rate:.3g} of false alarms: neighbour "
        f"{rule.n_neighbors} farther than {distances}. Above they count in the cluster "
        "in which they were found (clusters_)"
    )


def _warnings(model):
    found = [text for check in _CHECKS for text in check(model)]
    return [f"- {text}" for text in found] or ["none"]


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
        yield f"{_named(tiny)} below a tenth of the mean size: outliers, perhaps."
    empty = np.flatnonzero(share == 0)
    if len(empty):
        yield f"{_named(empty)} without weight: predict never returns it."


def _warn_of_margins(model):
    counts = model.sample_weight_
    n, contradicted = counts.sum(), counts[model.margins_ < 0].sum()
    if contradicted > MANY_CONTRADICTED * n:
        yield (
            f"{_amount(contradicted)} points ({contradicted / n:.0%}) have a negative "
            "margin: the votes of the others contradict their label."
        )
    unheard = counts[model.margins_ == 0].sum()
    if unheard:
        yield (
            f"{_count(_amount(unheard), 'point')} of margin 0: no point with weight is "
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


def _range(values):
    low, high = f"{values.min():.3g}", f"{values.max():.3g}"
    return low if low == high else f"{low} to {high}"


def _named(clusters):
    """The clusters in words, at most eight by number."""
    names = ", ".join(map(str, clusters[:8])) + (", ..." if len(clusters) > 8 else "")
    return f"Cluster{'' if len(clusters) == 1 else 's'} {names}"


def _small(value):
    """Two digits of a number between 0 and 2; what rounding leaves is 0."""
    return f"{value:.2g}" if value > 1e-12 else "0"


def _numbers(points, digits):
    return " ".join(f"{i:>{digits}}" for i in points)


def _count(number, noun):
    return f"{number} {noun}{'' if str(number) == '1' else 's'}"


def _amount(value):
    """A sum of weights: whole numbers as they are, others to three digits at least."""
    whole = value >= 100 or value == round(value)
    return f"{value:.0f}" if whole else f"{value:.3g}"
