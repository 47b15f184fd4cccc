# SPDX-License-Identifier: BSD-3-Clause
"""The stages of a fit, in the order in which ``CDSK.fit`` calls them.

    preprocess             rows -> distinct points, representation, number of clusters
    resolve_lam            lam, or its selection on samples
    fit_views              the representation, and with many points a layout of it:
      make_candidates        points -> candidate kernels (_candidates.py)
      alternate_candidates   candidate -> alternation (Algorithm 1) and partition
      select                 partitions -> the one with most votes;
                             of one kernel, the learned or the initial weights
    guide                  labels or links of some rows -> one that agrees with them,
                             of all views
    refine                 the winner, its eigenvectors refined
    finish                 winner -> ``FitResult``

*Alternation.* similarity(alpha) -> embedding -> weights -> similarity(alpha) -> ... An
iterate is a pair of weights and their embedding; its objective is that of the weight
step. The loop ends when the objective decreases by less than ``tol``, after
``max_iter`` iterations, or with the first iterate that is not accepted: one that does
not decrease the objective, whose eigenvectors did not converge, or in which a connected
component lost all points of positive weight. The last rule is needed because a
component is a cluster, however small its weights are. So the history never increases.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cdsk._candidates import (
    N_NEIGHBORS,
    START_OF_FULL,
    Gaussian,
    OtherKernel,
    check_fit_memory,
    has_categories,
    make_candidates,
)
from cdsk._coding import CODINGS
from cdsk._columns import check_rows
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
from cdsk._count_choice import (
    CountChoice,
    default_counts,
    represent_for_counting,
    select_n_clusters,
)
from cdsk._eigensolvers import ROUGH, TOLERANCE, Eigenpairs
from cdsk._initialization import first_weights
from cdsk._lam_choice import LambdaSearch, select_lam
from cdsk._neighbors import SCALE_NEIGHBOR, NeighborIndex, Neighbors
from cdsk._operators.base import Array, Candidate, Kernel
from cdsk._operators.sparse import NeighborGraph
from cdsk._partition_choice import (
    Choice,
    adjusted_rand_indexes,
    balance,
    select_partition,
    select_weights,
)
from cdsk._preprocessing import Points, Representation, warn_few_distinct
from cdsk._qp import WeightProblem
from cdsk._result import (
    Alternation,
    CandidateFit,
    FitResult,
    Iteration,
    Predictor,
    Problem,
    ViewFit,
)
from cdsk._settings import FitContext
from cdsk._sizes import SizeChange, feasible_counts, move_points
from cdsk._spanning_tree import tree_partitions
from cdsk._spectral import (
    Embedding,
    Labels,
    assign_labels,
    spectral_step,
    warn_fewer_clusters,
    warn_unconnected,
)
from cdsk._utils import limit_blas_threads, warn
from cdsk._validation import PRECOMPUTED_KERNELS, iter_row_chunks
from cdsk._view_choice import (
    LARGE_SAMPLE,
    MIN_LAYOUT_GAIN,
    fit_layout,
    graph_of_view,
    has_points_for_layout,
    lay_out,
    make_graph,
    select_coding,
    select_representation,
)
from cdsk._voting import (
    NOISE_NEIGHBOR,
    LeaveOneOutVotes,
    NoiseRule,
    compute_margins,
    compute_new_margins,
    fit_noise_rule,
    leave_one_out_votes,
)

# The candidate kernel on whose graph known classes spread: that of half the scales.
_SPREAD_KERNEL = 1


def preprocess(X: Any, context: FitContext) -> Problem:
    """Return the distinct points in their representation, spatially sorted."""
    context.progress.stage("representation")
    settings, n_threads = context.settings, context.n_threads
    constraints, others = context.constraints, []
    if settings.kernel in PRECOMPUTED_KERNELS:
        points = Points.from_rows_as_they_are(X, context.sample_weight)
        n_clusters, count_choice = int(settings.n_clusters), None
        representation = Representation()
    else:
        points = Points.from_distinct_rows(X, context.sample_weight)
        if points.n_distinct == 1:
            points = points.split_single()
        with limit_blas_threads():
            points, n_clusters, count_choice, representation = _place(points, context)
            if constraints is not None:
                n_clusters = max(n_clusters, constraints.n_classes)
                others = _fit_other_views(points, representation, context)
    if constraints is not None:  # refuse contradictions now
        constraints.chains(points.inverse, points.row_weights)
    problem = Problem(
        points=points,
        representation=representation,
        n_requested=n_clusters,
        n_clusters=min(n_clusters, points.n_distinct),
        count_choice=count_choice,
        lam=np.nan if isinstance(settings.lam, str) else float(settings.lam),
    )
    if settings.kernel in PRECOMPUTED_KERNELS:
        return problem
    others = [_represent_points(problem, view, X, n_threads) for view in others]
    problem = _represent_points(problem, representation, X, n_threads)
    return replace(problem, others=tuple(others))


def _fit_other_views(
    points: Points, representation: Representation, context: FitContext
) -> list[Representation]:
    """Return the views that "auto" compared with the selected one, of 20 000 points."""
    is_auto = context.settings.representation == "auto"
    if not is_auto or context.n_categories is not None or len(points) > LARGE_SAMPLE:
        return []
    views = [view for view in representation.scores if view != representation.view]
    m, coding = points.relative_multiplicity, representation.coding
    return [
        replace(
            Representation.fit(
                points.X, view, multiplicity=m, n_threads=context.n_threads
            ),
            scores=representation.scores,
            coding=coding,
        )
        for view in views
    ]


def _represent_points(
    problem: Problem, representation: Representation, X: Any, n_threads: int
) -> Problem:
    """Return the problem with its points in a representation, spatially sorted."""
    points = problem.points
    transformed = representation.transform_fitted(points.X, n_threads)
    points = points.spatially_sorted(transformed)
    if len(points.zero_weight_rows):
        points = _assign_zero_weight_rows(points, representation, X, n_threads)
    return replace(problem, points=points, representation=representation)


def _assign_zero_weight_rows(
    points: Points, representation: Representation, X: Any, n_threads: int
) -> Points:
    """Return points to which every row of weight 0 is assigned by proximity."""
    X, index = X[points.zero_weight_rows], NeighborIndex(points.X)
    nearest, distances = np.empty(X.shape[0], np.int32), np.empty(X.shape[0])
    for part in iter_row_chunks(X, representation.width):
        rows = representation.transform_validated(X[part], n_threads)
        found = index.kneighbors(rows, 1, n_threads=n_threads)
        distances[part], nearest[part] = found[0][:, 0], found[1][:, 0]
    return points.assign_nearest(nearest, distances)


def _place(
    points: Points, context: FitContext
) -> tuple[Points, int, CountChoice | None, Representation]:
    """Return points with coordinates for categories and missing cells, and the rest.

    The rest: the number of clusters, how it was selected, and the representation.
    """
    completed, coding = points.completed(context)
    if context.n_categories is None:
        n_clusters, choice, representation = _count_and_represent(completed, context)
        return completed, n_clusters, choice, replace(representation, coding=coding)
    settings = replace(context.settings, representation="raw")
    as_they_are = replace(context, settings=settings)
    n_clusters, choice, _ = _count_and_represent(completed, as_they_are)
    points, representation = select_coding(points, n_clusters, context)
    return points, n_clusters, choice, representation


def _count_and_represent(
    points: Points, context: FitContext
) -> tuple[int, CountChoice | None, Representation]:
    """Return the number of clusters, how it was selected, and the representation."""
    settings = context.settings
    # a given bandwidth is in the unit of the raw data
    is_default = (settings.kernel, settings.bandwidth) == ("rbf", "auto")
    view = settings.representation
    view = "raw" if view == "auto" and not is_default else view
    represent = partial(_represent, points, view, context)
    if not isinstance(settings.n_clusters, str):
        n_clusters = int(settings.n_clusters)
        return n_clusters, None, represent(n_clusters)
    if points.n_distinct < 3:  # too few to count
        return points.n_distinct, None, represent(points.n_distinct)
    counts = default_counts(points.X)
    if settings.min_cluster_size or settings.max_cluster_size:
        counts = feasible_counts(
            counts,
            settings.min_cluster_size,
            settings.max_cluster_size,
            points.masses,
        )
    views = represent_for_counting(points, view, int(counts[-1]), context)
    context.progress.stage("count", "number of clusters")
    choice = select_n_clusters(points, views, counts, context)
    is_layout = views[0].name == "layout" and not settings.noise
    # clusters that were counted in a layout are found there
    if is_layout and has_points_for_layout(len(points), views[0], choice.n_clusters):
        return choice.n_clusters, choice, views[0]
    chosen = represent(choice.n_clusters) if view == "auto" else views[0]
    return choice.n_clusters, choice, chosen


def _represent(
    points: Points, view: str, context: FitContext, n_clusters: int
) -> Representation:
    """Return the representation that is asked for; "auto" selects a view."""
    name = "auto" if view == "layout" else view
    base = select_representation(points, name, n_clusters, context)
    if view == "layout" and points.n_distinct > 1:
        context.progress.stage("layout")
        return fit_layout(points, base, n_clusters, context)
    return base


def resolve_lam(
    problem: Problem, context: FitContext, search: LambdaSearch | None = None
) -> Problem:
    """Return the problem with lam, which is selected on samples if it is "auto"."""
    settings = context.settings
    if not isinstance(settings.lam, str):
        return problem
    context.progress.stage("lam", "choice of lam")
    points, multiplicity = problem.points, problem.points.relative_multiplicity
    # weights given for all points do not fit a sample
    init = settings.init if isinstance(settings.init, str) else "uniform"

    def make_kernel(rows: NDArray[np.intp]) -> Kernel:
        X = points.X[rows]
        if settings.kernel == "precomputed":
            X = X[:, rows]
        candidates = make_candidates(
            X if sparse.issparse(X) else np.ascontiguousarray(X),
            context,
            n_clusters=problem.n_requested,
            n_features=problem.representation.n_varying,
            multiplicity=None if multiplicity is None else multiplicity[rows],
        )
        return candidates[len(candidates) // 2].kernel()

    def fit(kernel: Kernel, lam: float) -> Alternation:
        resolved = replace(settings, n_clusters=problem.n_clusters, lam=lam)
        weights = first_weights(kernel, lam, init)
        return alternate(kernel, weights, replace(context, settings=resolved))

    n, search = points.X.shape[0], search or LambdaSearch()
    with limit_blas_threads():
        choice = select_lam(n, problem.n_clusters, make_kernel, fit, search, context)
    return replace(problem, lam=choice.lam, lambda_choice=choice)


_NO_TREES: Mapping[str, Labels] = {}

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
        fitted.append(_fit_view(replace(other, lam=problem.lam), context, span=span))
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
    fitted = _fit_view(sample, of_sample, "sample")
    if _may_have_layout(sample, context) and _can_be_beaten(fitted):
        if n <= LARGE_SAMPLE:
            return _fit_view_and_layouts(problem, context)
        rows = np.sort(order[:LARGE_SAMPLE])
        fitted = _fit_view_and_layouts(_sample(problem, rows), of_sample)
    return _fit_like_sample(fitted, rows, problem, context)


def _has_candidates(context: FitContext) -> bool:
    """Return whether there are several kernels, on a graph that a sample has too."""
    settings = context.settings
    is_default = (settings.kernel, settings.bandwidth) == ("rbf", "auto")
    return is_default and settings.neighbors is None


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
    candidates = _make_candidates(problem, context)
    i, is_initial = _winning_kernel(sampled)
    context.progress.stage("kernels", f"all points: {choice.names[choice.chosen]}")
    candidate = candidates[i]
    if is_initial:
        context = replace(context, settings=replace(context.settings, max_iter=0))
    fit = _fit_kernel(candidate, candidate.kernel(), problem, context)
    if choice.chosen >= 2 * len(sampled.fits):
        graph = cast(NeighborGraph, cast(Gaussian, candidate).graph)
        trees = _tree_partitions(graph, problem, context)
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


# Parts of the progress of the comparison: the view, each layout, and its fit. The last
# part is that of a layout of more points. The search for neighbors is a part of a fit.
_SEARCH_PART = 0.1
_VIEW_SPAN, _LAYOUT_SPAN = (0.0, 0.3), (0.9, 1.0)
_LAYOUT_SPANS = ((0.3, 0.4), (0.4, 0.6)), ((0.6, 0.7), (0.7, 0.9))


def _fit_view_and_layouts(
    problem: Problem, context: FitContext, span: tuple[float, float] = (0.0, 1.0)
) -> ViewFit:
    """Fit the view of the data and two layouts of its graph; return the best one."""
    if not _may_have_layout(problem, context):
        return _fit_view(problem, context, span=span)
    # three fits, without their kernels, are kept: measured, half as much again
    k = context.settings.n_neighbors or N_NEIGHBORS
    check_fit_memory(3 * len(problem.points) // 2, k, problem.n_clusters)
    in_view = _fit_view(problem, context, "layout", _VIEW_SPAN)
    support = {problem.representation.view: in_view.choice.support}
    best = in_view
    if _can_be_beaten(in_view):
        graph = cast(Gaussian, in_view.fits[0].candidate).graph
        in_layouts = []
        for layout_span, fit_span in _LAYOUT_SPANS:
            context.progress.stage("layout", "layout", layout_span)
            moved = _move_to_layout(problem, cast(NeighborGraph, graph), context)
            in_layouts.append(_fit_view(moved, context, "layout", fit_span))
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


def _fit_view(
    problem: Problem,
    context: FitContext,
    stage: str = "kernels",
    span: tuple[float, float] = (0.0, 1.0),
) -> ViewFit:
    """Fit the candidate kernels of a problem and select a partition."""
    begin, end = span
    if stage == "kernels":
        context.progress.stage("neighbors")
    else:
        begin += _SEARCH_PART * (end - begin)
        context.progress.stage(stage, "neighbors", (span[0], begin))
    candidates = _make_candidates(problem, context)
    trees, first = dict[str, Labels](), candidates[0]
    if len(candidates) > 1 and isinstance(first, Gaussian) and first.graph is not None:
        trees = _tree_partitions(first.graph, problem, context)
    fits = alternate_candidates(
        candidates,
        problem,
        context,
        stage=stage,
        span=(begin, end),
        trees=trees,
        all_vote=(
            # their support is compared, or their agreement with what is known
            stage == "layout"
            or _may_have_layout(problem, context)
            or context.constraints is not None
        ),
    )
    return select(fits, problem, context, trees)


def _make_candidates(problem: Problem, context: FitContext) -> list[Candidate]:
    """Return the candidate kernels of the points of a problem."""
    return make_candidates(
        problem.points.X,
        context,
        n_clusters=problem.n_requested,
        n_features=problem.representation.n_varying,
        multiplicity=problem.points.relative_multiplicity,
    )


def alternate_candidates(
    candidates: Sequence[Candidate],
    problem: Problem,
    context: FitContext,
    *,
    stage: str = "kernels",
    span: tuple[float, float] = (0.0, 1.0),
    trees: Mapping[str, Labels] = _NO_TREES,
    all_vote: bool = False,
) -> list[CandidateFit]:
    """Alternate with every candidate kernel and partition its embedding.

    Several kernels are compared by rough eigenvectors; ``refine`` refines the winner's.
    Unless ``all_vote``, kernels that cannot change the winner, given the partitions by
    ``trees``, are left out. The progress is that of a part, ``span``, of a stage.
    """
    if problem.n_clusters < problem.n_requested:
        warn_few_distinct(problem.n_clusters, problem.n_requested, problem.name)
    fits: list[CandidateFit] = []
    n = len(candidates)
    eigen_tol = ROUGH if n > 1 else TOLERANCE
    for i, candidate in enumerate(candidates):
        text = f"{problem.representation.view}, kernel {i + 1} of {n}: {candidate.name}"
        begin, end = (span[0] + (span[1] - span[0]) * t / n for t in (i, i + 1))
        context.progress.stage(stage, text, (begin, end))
        kernel = candidate.kernel()
        previous = fits[-1].alternation if fits else None
        if _is_full(candidate) and not _is_full(candidates[0]):
            previous = fits[START_OF_FULL].alternation
        fit = _fit_kernel(
            candidate,
            kernel,
            problem,
            context,
            previous,
            eigen_tol,
            with_initial=n > 1 or _compares_weights(candidate, problem, context),
        )
        if n > 1:  # the vectors of all are too many to keep
            alternation = replace(fit.alternation, initial_embedding=None)
            fit = replace(fit, alternation=alternation, kernel=None)
        fits.append(fit)
        # a single fit would be one of a single kernel
        if not all_vote and 0 < i < n - 1 and _is_decided(fits, trees, n, problem):
            break
    return fits


def _is_decided(
    fits: Sequence[CandidateFit],
    trees: Mapping[str, Labels],
    n_kernels: int,
    problem: Problem,
) -> bool:
    """Return whether one partition has more votes than all others can get.

    Partitions that are equal vote for each other, with the weight of their balance at
    least; every other one, also of kernels that are left, has a weight of at most 1.
    """
    resolved = [f for f in fits if f.alternation.convergence_message is None]
    partitions = [labels for f in resolved for labels in (f.labels, f.initial_labels)]
    partitions += trees.values()
    count = Counter(labels.tobytes() for labels in partitions)
    most, votes = count.most_common(1)[0] if count else (b"", 0)
    n_others = 2 * n_kernels + len(trees) - votes
    if votes <= n_others:
        return False
    winner, multiplicity = np.frombuffer(most, np.int64), problem.points.multiplicity
    return votes * balance(winner, problem.n_clusters, multiplicity) > n_others


def _is_full(candidate: Candidate) -> bool:
    return isinstance(candidate, Gaussian) and candidate.graph is None


def _fit_kernel(
    candidate: Candidate,
    kernel: Kernel,
    problem: Problem,
    context: FitContext,
    previous: Alternation | None = None,
    eigen_tol: float = TOLERANCE,
    *,
    with_initial: bool = False,
) -> CandidateFit:
    """Alternate with a kernel and partition its embedding.

    It begins where ``previous`` did, with a similar kernel: the same weights, and
    eigenvectors that are a first guess. ``with_initial``: partition the embedding by
    the initial weights too.
    """
    points, n_clusters, lam = problem.points, problem.n_clusters, problem.lam
    settings = replace(context.settings, n_clusters=n_clusters, lam=lam)
    is_trivial, init = n_clusters == points.n_distinct, settings.init
    settings = replace(settings, max_iter=0) if is_trivial else settings
    context = replace(context, settings=settings)
    with limit_blas_threads():
        if previous is not None:
            weights, start = previous.initial_weights, previous.first_solution
        elif isinstance(init, str) and init == "uniform":
            weights, start = np.full(kernel.n, 1.0 / kernel.n), None
        else:
            weights, start = first_weights(kernel, lam, init, points), None
        alternation = alternate(kernel, weights, context, start, eigen_tol)
        assign = partial(
            assign_labels,
            method=settings.assign_labels,
            kernel=kernel,
            multiplicity=points.multiplicity,
            n_init=settings.n_init,
            random_state=context.rng,
            n_threads=context.n_threads,
        )
        if is_trivial:
            labels = np.arange(len(points)) % n_clusters
        else:
            labels = assign(alternation.embedding.vectors)
        initial_labels = labels
        if with_initial and len(alternation.history) > 1:
            first = cast(Embedding, alternation.initial_embedding)
            initial_labels = assign(first.vectors)
    return CandidateFit(candidate, alternation, labels, initial_labels, kernel)


def alternate(
    kernel: Kernel,
    weights: Array,
    context: FitContext,
    start: Eigenpairs | None = None,
    eigen_tol: float = TOLERANCE,
) -> Alternation:
    """Alternate spectral and weight steps from the given weights (Algorithm 1).

    The settings have no "auto" left. ``start`` are eigenpairs of a similar kernel, a
    first guess; ``eigen_tol`` bounds the residual of eigenvectors.
    """
    settings, initial_weights = context.settings, weights
    report = context.progress.iteration if context.progress.verbose else None
    iterate = partial(_iterate, kernel, context, eigen_tol)
    embedding, problem, objective = iterate(weights, start)
    first, history, qp_gap = embedding, [objective], np.nan
    if report is not None:
        report(Iteration(0, objective, embedding, weights, qp_gap, True))
    message = embedding.convergence_message
    n_iter, converged = 0, settings.max_iter == 0
    while n_iter < settings.max_iter and not converged and message is None:
        n_iter += 1
        step = problem.solve(weights, settings.qp_tol)
        proposal, new_problem, objective = iterate(step.x, embedding.solution)
        message = proposal.convergence_message
        lower = objective < history[-1] and message is None
        accepted = lower and _keeps_components(first.component, proposal.component < 0)
        if report is not None:
            report(Iteration(n_iter, objective, proposal, step.x, step.gap, accepted))
        if not accepted:
            converged = True
            break
        # relative to the scale of the problem: the objective may be near 0
        converged = history[-1] - objective <= settings.tol * new_problem.scale
        weights, embedding, problem = step.x, proposal, new_problem
        qp_gap = step.gap
        history.append(objective)
    if not converged and message is None:
        message = (
            f"The alternation did not converge in max_iter={settings.max_iter} "
            "iterations: the last one decreased the objective by "
            f"{history[-2] - history[-1]:.1e} to {history[-1]:.6g}, more than "
            f"tol={settings.tol:.1e} times the largest linear term, "
            f"{problem.scale:.2g}. Increase `max_iter` or `tol`."
        )
    return Alternation(
        initial_weights=initial_weights,
        weights=weights,
        embedding=replace(embedding, solution=None),  # as large as the vectors
        history=history,
        n_iter=n_iter,
        qp_gap=qp_gap,
        initial_embedding=replace(first, solution=None),
        first_solution=first.solution,
        convergence_message=message,
    )


def _iterate(
    kernel: Kernel,
    context: FitContext,
    eigen_tol: float,
    weights: Array,
    start: Eigenpairs | None,
) -> tuple[Embedding, WeightProblem, float]:
    """Return the embedding of the weights, its weight problem, and its objective."""
    rng, settings = context.rng, context.settings
    n_clusters, solver = int(settings.n_clusters), settings.eigen_solver
    penalty = kernel.n * float(settings.lam)  # the paper's lambda
    similarity = kernel.similarity(weights, penalty)
    embedding = spectral_step(similarity, n_clusters, rng, start, solver, eigen_tol)
    problem = WeightProblem(kernel, embedding.vectors, penalty)
    return embedding, problem, problem.objective(weights)


def _keeps_components(
    components: NDArray[np.intp], unconnected: NDArray[np.bool_]
) -> bool:
    """Return whether every large component keeps points that are connected.

    Large: more points than it takes to have a local scale of its own.
    """
    size = np.bincount(components + 1)[1:]
    kept = np.bincount(components[~unconnected] + 1, minlength=len(size) + 1)[1:]
    return bool(np.all((kept > 0) | (size <= SCALE_NEIGHBOR)))


def select(
    fits: Sequence[CandidateFit],
    problem: Problem,
    context: FitContext,
    trees: Mapping[str, Labels] = _NO_TREES,
) -> ViewFit:
    """Select a partition.

    Each of several kernels has two votes, its partitions by the learned and by the
    initial weights; partitions by spanning trees have one each. A single kernel keeps
    its learned weights unless the initial ones are better.
    """
    names = [fit.candidate.name for fit in fits]
    candidate = fits[0].candidate
    if len(fits) == 1:
        fits = [_select_weights(fits[0], problem, context)]
        choice = select_partition(names, [fits[0].labels], problem.n_clusters)
        partitions = [fits[0].labels]
    else:
        names += [f"{name}, initial" for name in names]
        partitions = [fit.labels for fit in fits] + [f.initial_labels for f in fits]
        messages = [fit.alternation.embedding.convergence_message for fit in fits]
        resolved = 2 * [message is None for message in messages]
        names += trees
        partitions += trees.values()
        resolved += [True] * len(trees)
        has_graph = not has_categories(context)
        choice = select_partition(
            names,
            partitions,
            problem.n_clusters,
            candidate.kernel().neighborhood() if has_graph else None,
            resolved=resolved,
            multiplicity=problem.points.multiplicity,
        )
    return ViewFit(
        problem=problem, fits=list(fits), partitions=partitions, choice=choice
    )


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


def refine(fitted: ViewFit, context: FitContext) -> CandidateFit:
    """Return the winner, the eigenvectors of its kernel refined if needed.

    If a partition by a spanning tree wins, the kernel whose initial partition agrees
    most with it votes for new points.
    """
    problem, winner = fitted.problem, fitted.fits[0]
    if len(fitted.fits) > 1:
        winner = _refine_one_of_several(fitted, context)
    elif len(fitted.choice.names) == 1:
        # with several scales unconnected outliers are expected
        warn_unconnected(winner.alternation.embedding, cast(Kernel, winner.kernel))
    if winner.alternation.convergence_message is not None:
        warn(winner.alternation.convergence_message)
    kernel = cast(Kernel, winner.kernel)
    warn_fewer_clusters(winner.labels, problem.n_clusters, kernel)
    return winner


def _select_weights(
    fit: CandidateFit, problem: Problem, context: FitContext
) -> CandidateFit:
    """Return the fit of a single kernel with its learned or its initial weights.

    They are compared on the neighbor graph of the points.
    """
    candidate, points, alternation = fit.candidate, problem.points, fit.alternation
    first = cast(Embedding, alternation.initial_embedding)
    alternation = replace(alternation, initial_embedding=None)
    fit = replace(fit, alternation=alternation)
    is_compared = _compares_weights(candidate, problem, context)
    if not is_compared or len(alternation.history) == 1:
        return fit
    context.progress.stage("winner", "learned or initial weights")
    graph = cast(Gaussian, candidate).graph
    if graph is None:
        m = points.relative_multiplicity
        graph = make_graph(points.X, N_NEIGHBORS, m, context.n_threads)
    choice = select_weights(
        fit.labels,
        fit.initial_labels,
        list(_tree_partitions(graph, problem, context).values()),
        problem.n_clusters,
        graph.kernel(np.inf, context.n_threads),
        points.multiplicity,
    )
    if choice.kept == "learned":
        return replace(fit, weight_choice=choice)
    alternation = replace(
        alternation,
        weights=alternation.initial_weights,
        embedding=first,
        history=alternation.history[:1],
        qp_gap=np.nan,
        convergence_message=None,
    )
    return replace(
        fit,
        alternation=alternation,
        labels=fit.initial_labels,
        weight_choice=choice,
    )


def _compares_weights(
    candidate: Candidate, problem: Problem, context: FitContext
) -> bool:
    """Return whether a single kernel may return to its initial weights.

    Not if these are the caller's choice, and not if the kernel is of low rank, as a
    neighbor search would take longer than the fit.
    """
    init = context.settings.init
    is_uniform = isinstance(init, str) and init == "uniform"
    is_exact = isinstance(candidate, Gaussian) and candidate.seed is None
    return is_uniform and is_exact and problem.n_clusters > 1


def _refine_one_of_several(fitted: ViewFit, context: FitContext) -> CandidateFit:
    """Return the winner among several kernels, with its kernel and eigenvectors."""
    fits, choice, problem = fitted.fits, fitted.choice, fitted.problem
    i, is_initial = _winning_kernel(fitted)
    winner = fits[i]
    context.progress.stage("winner", f"the winner: {choice.names[choice.chosen]}")
    if is_initial:
        settings = replace(context.settings, max_iter=0)
        context = replace(context, settings=settings)
    kernel, alternation = winner.candidate.kernel(), winner.alternation
    embedding, winner = alternation.embedding, replace(winner, kernel=kernel)
    # rough eigenvectors, or those of other weights
    is_rough = TOLERANCE < embedding.residual <= embedding.tol
    if is_rough or len(alternation.history) > context.settings.max_iter + 1:
        winner = _fit_kernel(winner.candidate, kernel, problem, context, alternation)
    if choice.chosen >= 2 * len(fits):
        winner = replace(winner, labels=fitted.partitions[choice.chosen])
    return winner


def _winning_kernel(fitted: ViewFit) -> tuple[int, bool]:
    """Return the index of the winner's kernel, and whether its weights are initial.

    With initial weights every point votes for its own cluster: so does the kernel
    whose initial partition agrees most with a partition by a spanning tree.
    """
    n, choice = len(fitted.fits), fitted.choice
    if choice.chosen < 2 * n:
        return choice.chosen % n, choice.chosen >= n
    initial = slice(n, 2 * n)
    agreement = choice.agreement[choice.chosen, initial]
    return int(np.argmax(np.where(choice.resolved[initial], agreement, -2.0))), True


def _tree_partitions(
    graph: NeighborGraph, problem: Problem, context: FitContext
) -> dict[str, Labels]:
    """Return partitions by spanning trees of a neighbor graph."""
    return tree_partitions(
        graph.neighbors, problem.n_clusters, graph.multiplicity, context.n_threads
    )


def finish(
    fitted: ViewFit, winner: CandidateFit, X: Any, context: FitContext
) -> FitResult:
    """Return the result of a fit from the winner; X are the rows."""
    context.progress.stage("margins")
    problem, choice = fitted.problem, fitted.choice
    points, n_clusters = problem.points, problem.n_requested
    inverse, row_weights, m = points.inverse, points.row_weights, points.multiplicity
    noise = _fit_noise(winner.labels, problem, context)
    winner, sizes = _bound_sizes(winner, noise, problem, context)
    kernel, labels = cast(Kernel, winner.kernel), winner.labels
    alpha, embedding = winner.alternation.weights, winner.alternation.embedding
    # weights of all rows sum to 1, and so do those of the points, which vote
    point_weights = alpha if m is None else alpha * m
    total = 1.0 if m is None else np.sum(point_weights)
    clusters, has_weight = labels[inverse], row_weights > 0
    weights = (alpha / total)[inverse] * has_weight
    relative = points.relative_multiplicity
    votes = leave_one_out_votes(kernel, labels, alpha, relative, n_clusters)
    margins, typicality, unit = compute_margins(votes, labels, relative)
    shares = np.bincount(clusters, weights * row_weights, minlength=n_clusters)
    with np.errstate(divide="ignore"):
        log_votes = np.log(votes.T)[inverse]
    left_out = LeaveOneOutVotes(log_votes, clusters, row_weights, shares / shares.sum())
    point_weights = point_weights / total
    predictor = _make_predictor(
        winner, problem, context, point_weights, left_out, noise
    )
    is_noise = False if noise is None else noise.is_noise()[inverse]
    b = winner.candidate.bandwidth
    result = FitResult(
        problem=problem,
        choice=choice,
        winner=winner,
        kernel=kernel,
        predictor=predictor,
        clusters=clusters,
        labels=np.where(is_noise, -1, clusters),
        weights=weights,
        unconnected=np.flatnonzero((embedding.component < 0)[inverse] & has_weight),
        embedding=embedding.vectors.T[inverse],
        margins=margins[inverse],
        typicality=typicality[inverse],
        bandwidth=b[inverse] if isinstance(b, np.ndarray) else b,
        sizes=sizes,
    )
    if relative is not None and len(points.zero_weight_rows):
        log_unit = float(np.log(unit / np.sum(alpha * relative)))
        result = _label_zero_weight_rows(result, X, log_unit, context.n_threads)
    if context.settings.noise and context.settings.kernel not in PRECOMPUTED_KERNELS:
        result.labels[check_rows(X, context.settings.noise)] = -1
    if context.constraints is not None:
        check = cast(ConstraintCheck, fitted.constraints)
        result = _keep_constraints(result, check, context.constraints)
    return result


def _fit_noise(
    labels: Labels, problem: Problem, context: FitContext
) -> NoiseRule | None:
    """Return the rule that decides which points are noise, if that is asked for."""
    rate, k, points = context.settings.noise, NOISE_NEIGHBOR, problem.points
    if not rate:
        return None
    near = Neighbors(points.X, k, scale_neighbor=k, n_threads=context.n_threads)
    return fit_noise_rule(near, labels, rate, points.relative_multiplicity)


def _bound_sizes(
    winner: CandidateFit,
    noise: NoiseRule | None,
    problem: Problem,
    context: FitContext,
) -> tuple[CandidateFit, SizeChange | None]:
    """Return the winner with clusters of the sizes that are asked for, and the change.

    Noise keeps its cluster and is not counted. What is known holds.
    """
    settings, points = context.settings, problem.points
    least, most = settings.min_cluster_size, settings.max_cluster_size
    if least is None and most is None:
        return winner, None
    context.progress.stage("margins", "sizes of the clusters")
    left_out = _leave_out(winner, points, problem.n_requested)
    masses, known = points.masses, np.empty(0, dtype=np.intp)
    if noise is not None:
        masses = np.where(noise.is_noise(), 0.0, masses)
    if context.constraints is not None:
        inverse, row_weights = points.inverse, points.row_weights
        rows = context.constraints.all_rows  # never noise
        known = context.constraints.chains(inverse, row_weights).points
        known_masses = np.bincount(inverse[rows], row_weights[rows], len(points))
        masses = np.where(masses > 0, masses, known_masses)
    kernel = cast(Kernel, winner.kernel)
    labels, change = move_points(kernel, left_out, masses, least, most, known)
    moved = np.zeros(len(points), dtype=bool)
    moved[change.rows] = True
    rows = np.flatnonzero(moved[points.inverse] & (points.row_weights > 0))
    previous = winner.labels[points.inverse[rows]]
    return replace(winner, labels=labels), replace(change, rows=rows, previous=previous)


def _leave_out(
    winner: CandidateFit, points: Points, n_clusters: int
) -> LeaveOneOutVotes:
    """Return the leave-one-out votes of the points."""
    alpha, labels = winner.alternation.weights, winner.labels
    kernel, relative = cast(Kernel, winner.kernel), points.relative_multiplicity
    votes = leave_one_out_votes(kernel, labels, alpha, relative, n_clusters)
    shares = np.bincount(labels, alpha * points.masses, minlength=n_clusters)
    with np.errstate(divide="ignore"):
        log_votes = np.log(votes.T)
    return LeaveOneOutVotes(log_votes, labels, points.masses, shares / shares.sum())


def _keep_constraints(
    result: FitResult, check: ConstraintCheck, constraints: Constraints
) -> FitResult:
    """Return the result in which rows of weight 0 and noise are as they are known."""
    result.clusters[constraints.rows] = constraints.codes
    known = constraints.all_rows
    result.labels[known] = result.clusters[known]
    return replace(result, constraints=check.with_margins(known, result.margins))


def _make_predictor(
    winner: CandidateFit,
    problem: Problem,
    context: FitContext,
    weights: Array,
    left_out: LeaveOneOutVotes,
    noise: NoiseRule | None,
) -> Predictor:
    """Return what predicts for new points, without a copy of the data."""
    points, candidate, labels = problem.points, winner.candidate, winner.labels
    X, index = points.X, None
    if context.settings.kernel not in PRECOMPUTED_KERNELS:
        index = NeighborIndex(X)
    if isinstance(candidate, Gaussian) and candidate.graph is not None:
        neighbors = candidate.graph.neighbors
        if isinstance(neighbors, Neighbors):  # its index serves both
            index = neighbors
    votes = candidate.votes(labels, weights, problem.n_requested)
    if isinstance(candidate, OtherKernel) and candidate.values is None:
        candidate = replace(candidate, X=None)
    return Predictor(
        candidate=candidate,
        votes=votes,
        index=index,
        points=replace(points, X=None),
        lengths=winner.alternation.embedding.lengths,
        left_out=left_out,
        noise=noise,
        is_sparse=sparse.issparse(X),
    )


def _label_zero_weight_rows(
    result: FitResult, X: Any, log_unit: float, n_threads: int
) -> FitResult:
    """Return the result with rows of weight 0 treated as new points.

    ``log_unit`` is that of the typicality, for votes of weights that sum to 1.
    """
    predictor, representation = result.predictor, result.problem.representation
    log_votes, clusters = predictor.left_out.log_votes.copy(), result.clusters.copy()
    labels, embedding = result.labels.copy(), result.embedding.copy()
    margins, typicality = result.margins.copy(), result.typicality.copy()
    zero_weight_rows = predictor.points.zero_weight_rows
    X = X[zero_weight_rows]
    eigenvalues = result.winner.alternation.embedding.eigenvalues
    for part in iter_row_chunks(X, representation.width):
        rows = zero_weight_rows[part]
        new = representation.transform_validated(X[part], n_threads)
        log_votes[rows] = votes = predictor.votes.log_votes(new, n_threads)
        clusters[rows], labels[rows], _ = predictor.label(votes, new, n_threads)
        embedding[rows] = predictor.embed(
            new, n_threads, embedding=result.embedding, eigenvalues=eigenvalues
        )
        margins[rows], typicality[rows] = compute_new_margins(votes, log_unit)
    left_out = replace(predictor.left_out, log_votes=log_votes, labels=clusters)
    return replace(
        result,
        predictor=replace(predictor, left_out=left_out),
        clusters=clusters,
        labels=labels,
        embedding=embedding,
        margins=margins,
        typicality=typicality,
    )
