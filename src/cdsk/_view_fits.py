# SPDX-License-Identifier: BSD-3-Clause
"""Problem -> fits in its view, in two layouts and of a sample; the best of them.

fit_views                the candidates of a problem (_candidate_fits.py):
with many points in two layouts of its view too;
with even more, of a sample, then the winner of all points
guide                    labels or links of some rows -> a partition that agrees
with them, of all views
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cdsk._candidate_fits import (
    candidates_of,
    fit_candidates,
    fit_kernel,
    partitions_by_trees,
    winning_kernel,
)
from cdsk._candidates import (
    N_NEIGHBORS,
    Gaussian,
    check_fit_memory,
)
from cdsk._coding import CODINGS
from cdsk._constraints import (
    ConstraintCheck,
    Constraints,
    assign_chains,
    combine,
    match_classes,
    spread_classes,
    vote_on_clusters,
    weigh_partitions,
)
from cdsk._operators.base import Kernel
from cdsk._operators.sparse import NeighborGraph
from cdsk._partition_choice import (
    Choice,
    adjusted_rand_indexes,
    select_partition,
)
from cdsk._result import (
    Problem,
    ViewFit,
)
from cdsk._settings import FitContext
from cdsk._spectral import (
    Labels,
)
from cdsk._view_choice import (
    LARGE_SAMPLE,
    MIN_LAYOUT_GAIN,
    graph_of_view,
    has_points_for_layout,
    lay_out,
)

# The candidate kernel on whose graph known classes spread: that of half the scales.
_SPREAD_KERNEL = 1


# Points of a sample that decides for all of them, in all and per cluster. It does if
# there are twice as many: docs/notes/2026-11-19-sample.md.
_SAMPLE, _SAMPLE_PER_CLUSTER = 5000, 100


def fit_views(problem: Problem, context: FitContext) -> ViewFit:
    """Fit the view of a problem; if anything is known of the rows, the others too."""
    if context.constraints is None:
        return _fit_selected_view(problem, context)
    return guide(fit_all_views(problem, context), context.constraints)


def fit_all_views(problem: Problem, context: FitContext) -> list[ViewFit]:
    """Fit the view of a problem, and those that it was compared with."""
    n = 1 + len(problem.others)
    spans = [(i / n, (i + 1) / n) for i in range(n)]
    fitted = [_fit_selected_view(problem, context, spans[0])]
    for other, span in zip(problem.others, spans[1:], strict=True):
        fitted.append(
            fit_candidates(
                replace(other, lam=problem.lam), context, span=span, all_vote=True
            )
        )
    return fitted


def _fit_selected_view(
    problem: Problem, context: FitContext, span: tuple[float, float] = (0.0, 1.0)
) -> ViewFit:
    """Fit the view of a problem, and two layouts of it if there are many points.

    With even more, a sample decides, and all points are fitted once, as its winner was.
    """
    n, size = len(problem.points), _SAMPLE_PER_CLUSTER * problem.n_clusters
    size = max(_SAMPLE, size)
    is_guided = context.constraints is not None  # by partitions of all points
    if n < 2 * size or is_guided or not _has_candidates(context):
        return _fit_view_and_layouts(problem, context, span)
    check_fit_memory(n, context.settings.n_neighbors or N_NEIGHBORS, problem.n_clusters)
    settings = context.settings
    if not isinstance(settings.init, str):  # weights of all points
        settings = replace(settings, init="uniform")
    of_sample = replace(context, settings=settings)
    order = context.rng.permutation(n)
    rows = np.sort(order[:size])
    sample = _sample(problem, rows)
    may_have_layout = _may_have_layout(sample, context)
    fitted = fit_candidates(sample, of_sample, "sample", all_vote=may_have_layout)
    if may_have_layout and _can_be_beaten(fitted):
        if n <= LARGE_SAMPLE:
            return _fit_view_and_layouts(problem, context)
        rows = np.sort(order[:LARGE_SAMPLE])
        fitted = _fit_view_and_layouts(_sample(problem, rows), of_sample)
    return _fit_like_sample(fitted, rows, problem, context)


def _has_candidates(context: FitContext) -> bool:
    """Return whether there are several kernels, on a graph that a sample has too."""
    settings = context.settings
    is_default = (settings.kernel, settings.bandwidth) == ("rbf", "auto")
    return is_default and settings.transformer is None


def _sample(problem: Problem, rows: NDArray[np.intp]) -> Problem:
    """Return the problem of some of its points."""
    return replace(problem, points=problem.points.sample(rows))


def _fit_like_sample(
    sampled: ViewFit, rows: NDArray[np.intp], problem: Problem, context: FitContext
) -> ViewFit:
    """Fit all points with the kernel and the view that won on a sample, some rows."""
    view, choice = sampled.problem.representation, sampled.choice
    first_row = problem.points.first_row[rows]
    if view.name == "layout":
        context.progress.stage("layout", "layout", _LAYOUT_SPAN)
        graph = graph_of_view(
            problem.points.X,
            problem.representation,
            problem.n_clusters,
            problem.points.relative_multiplicity,
            context,
        )
        problem = _move_to_layout(problem, graph, context)
    view = replace(problem.representation, support=view.support)
    problem, points = replace(problem, representation=view), problem.points
    context.progress.stage("neighbors")
    candidates = candidates_of(problem, context)
    i, is_initial = winning_kernel(sampled)
    context.progress.stage("kernels", f"all points: {choice.names[choice.chosen]}")
    candidate = candidates[i]
    if is_initial:
        context = replace(context, settings=replace(context.settings, max_iter=0))
    fit = fit_kernel(candidate, candidate.kernel(), problem, context)
    if choice.chosen >= 2 * len(sampled.fits):
        graph = cast(NeighborGraph, cast(Gaussian, candidates[0]).graph)
        trees = partitions_by_trees(graph, problem, context)
        fit = replace(fit, labels=trees[choice.names[choice.chosen]])
    of_sample = sampled.partitions[choice.chosen][sampled.problem.points.inverse]
    both = [of_sample, fit.labels[points.inverse[first_row]]]
    agreement = adjusted_rand_indexes(both, sampled.problem.points.multiplicity)[0, 1]
    choice = replace(choice, n_sample=len(rows), sample_agreement=agreement)
    return ViewFit(problem=problem, fits=[fit], partitions=[fit.labels], choice=choice)


def _may_have_layout(problem: Problem, context: FitContext) -> bool:
    """Return whether a layout may be better than the view of the data.

    Not with ``noise``, as layouts move outliers into clusters.
    """
    settings, points = context.settings, problem.points
    return (
        _has_candidates(context)
        and settings.representation == "auto"
        and not settings.noise
        and not sparse.issparse(points.X)
        and problem.representation.name not in ("layout", *CODINGS)
        and has_points_for_layout(
            len(points), problem.representation, problem.n_clusters
        )
    )


def _can_be_beaten(in_view: ViewFit) -> bool:
    """Return whether the support in a view allows more in a layout: at most 1."""
    return in_view.choice.support * MIN_LAYOUT_GAIN < 1.0


# Parts of the progress of a comparison: the view, each layout and its fit, and a layout
# of more points.
_VIEW_SPAN, _LAYOUT_SPAN = (0.0, 0.3), (0.9, 1.0)
_LAYOUT_SPANS = ((0.3, 0.4), (0.4, 0.6)), ((0.6, 0.7), (0.7, 0.9))


def _fit_view_and_layouts(
    problem: Problem, context: FitContext, span: tuple[float, float] = (0.0, 1.0)
) -> ViewFit:
    """Fit the view of the data and two layouts of its graph; return the best one."""
    if not _may_have_layout(problem, context):
        is_guided = context.constraints is not None
        return fit_candidates(problem, context, span=span, all_vote=is_guided)
    # three fits, without their kernels, are kept: measured, half as much again
    k = context.settings.n_neighbors or N_NEIGHBORS
    check_fit_memory(3 * len(problem.points) // 2, k, problem.n_clusters)
    fit = partial(fit_candidates, context=context, stage="layout", all_vote=True)
    in_view = fit(problem, span=_VIEW_SPAN)
    support = {problem.representation.view: in_view.choice.support}
    best = in_view
    if _can_be_beaten(in_view):
        graph = cast(Gaussian, in_view.fits[0].candidate).graph
        in_layouts = []
        for layout_span, fit_span in _LAYOUT_SPANS:
            context.progress.stage("layout", "layout", layout_span)
            moved = _move_to_layout(problem, cast(NeighborGraph, graph), context)
            in_layouts.append(fit(moved, span=fit_span))
        in_layout = _select_among_layouts(in_layouts, in_view)
        if in_layout.choice.support > MIN_LAYOUT_GAIN * in_view.choice.support:
            best = in_layout
        support[in_layout.problem.representation.view] = in_layout.choice.support
    representation = replace(best.problem.representation, support=support)
    return replace(best, problem=replace(best.problem, representation=representation))


def _select_among_layouts(in_layouts: Sequence[ViewFit], in_view: ViewFit) -> ViewFit:
    """Return the fit of the layout whose partition gets most votes of all of them."""
    choice, _, parts = _select_among_views(in_layouts, in_view)
    best = next(i for i, part in enumerate(parts) if choice.chosen < part.stop)
    return replace(in_layouts[best], choice=choice.restricted(parts[best]))


def _select_among_views(
    in_views: Sequence[ViewFit], in_view: ViewFit
) -> tuple[Choice, list[Labels], list[slice]]:
    """Return the choice among all partitions, these, and the part of every view.

    Cohesion is measured on the neighbor graph of ``in_view``, whose points they have.
    """
    points = in_view.problem.points
    names: list[str] = []
    partitions: list[Labels] = []
    resolved: list[bool] = []
    parts: list[slice] = []
    for fitted in in_views:
        inverse = fitted.problem.points.inverse[points.first_row]
        parts.append(slice(len(names), len(names) + len(fitted.partitions)))
        names += fitted.choice.names
        partitions += [labels[inverse] for labels in fitted.partitions]
        resolved += fitted.choice.resolved.tolist()
    choice = select_partition(
        names,
        partitions,
        in_view.problem.n_clusters,
        _neighborhood(in_view),
        resolved=resolved,
        multiplicity=points.multiplicity,
    )
    return choice, partitions, parts


def _neighborhood(fitted: ViewFit) -> Kernel | None:
    """Return the kernel that is 1 for neighbors; None if there is no neighbor graph."""
    candidate = fitted.fits[0].candidate
    has_graph = isinstance(candidate, Gaussian) and candidate.graph is not None
    return candidate.kernel().neighborhood() if has_graph else None


def _move_to_layout(
    problem: Problem, graph: NeighborGraph, context: FitContext
) -> Problem:
    """Return the problem in the layout of the neighbor graph of its points."""
    layout = lay_out(problem.representation, graph, context)
    points = problem.points
    points = points.spatially_sorted(layout.transform_fitted(points.X))
    return replace(problem, points=points, representation=layout)


def guide(in_views: Sequence[ViewFit], constraints: Constraints) -> ViewFit:
    """Return the view that agrees most with what is known, and a partition that does.

    The partition is one more candidate of the view, as those by spanning trees are.
    """
    selected = in_views[0]
    n_clusters = selected.problem.n_requested
    points = selected.problem.points
    chains = constraints.chains(points.inverse, points.row_weights)
    alone = selected.partitions[selected.choice.chosen]
    check = ConstraintCheck.of(
        constraints, match_classes(alone, chains, n_clusters)[points.inverse]
    )
    choice, partitions, parts = _select_among_views(in_views, selected)
    scores = choice.scores * choice.resolved
    weights = weigh_partitions(partitions, scores, chains)
    best = int(np.argmax([weights[part].sum() for part in parts]))
    # the same in the order of the points of that view
    fitted = in_views[best]
    points = fitted.problem.points
    inverse = selected.problem.points.inverse[points.first_row]
    partitions = [labels[inverse] for labels in partitions]
    chains = constraints.chains(points.inverse, points.row_weights)
    chosen = match_classes(partitions[int(np.argmax(weights))], chains, n_clusters)
    vote = partial(vote_on_clusters, partitions, weights, n_clusters)
    if chains.n_classes == n_clusters:
        candidates = [fit.candidate for fit in fitted.fits]
        kernel = candidates[min(_SPREAD_KERNEL, len(candidates) - 1)].kernel()
        votes = vote(chains.known, chains.codes)
        votes = combine(votes, spread_classes(kernel, chains), chains)
        labels = np.argmax(votes, axis=1)
    else:
        votes, labels = vote(np.arange(len(points)), chosen), chosen
    labels = assign_chains(labels, votes, chains)
    return replace(_with_partition(fitted, labels), constraints=check)


def _with_partition(fitted: ViewFit, labels: Labels) -> ViewFit:
    """Return the fit of a view with the partition that agrees with what is known."""
    if len(fitted.fits) == 1:
        fits = [replace(fitted.fits[0], labels=labels)]
        return replace(fitted, fits=fits, partitions=[labels])
    partitions = [*fitted.partitions, labels]
    choice = select_partition(
        [*fitted.choice.names, "with what is known"],
        partitions,
        fitted.problem.n_clusters,
        _neighborhood(fitted),
        resolved=[*fitted.choice.resolved, True],
        multiplicity=fitted.problem.points.multiplicity,
    )
    choice = replace(choice, chosen=len(fitted.partitions))
    return replace(fitted, partitions=partitions, choice=choice)
