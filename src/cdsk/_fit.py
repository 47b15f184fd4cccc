# SPDX-License-Identifier: BSD-3-Clause
"""The stages of a fit, in the order of ``CDSK.fit`` (tests/test_estimator.py).

preprocess    rows -> distinct points, representation, number of clusters
resolve_lam   lam, or its selection on samples
fit_views     candidate kernels -> the partition with most votes (_view_fits.py)
refine        the winner, its eigenvectors refined (_candidate_fits.py)
finish        winner -> ``FitResult``
"""

from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cdsk._alternation import alternate
from cdsk._candidates import (
    Gaussian,
    OtherKernel,
    find_neighbors,
    make_candidates,
)
from cdsk._columns import check_rows
from cdsk._constraints import (
    ConstraintCheck,
    Constraints,
)
from cdsk._count_choice import (
    CountChoice,
    default_counts,
    represent_for_counting,
    select_n_clusters,
)
from cdsk._initialization import first_weights
from cdsk._lam_choice import LambdaSearch, select_lam
from cdsk._neighbors import NeighborIndex, Neighbors
from cdsk._operators.base import Array, Kernel
from cdsk._preprocessing import Points, Representation
from cdsk._result import (
    Alternation,
    CandidateFit,
    FitResult,
    Predictor,
    Problem,
    ViewFit,
)
from cdsk._settings import FitContext
from cdsk._sizes import SizeChange, feasible_counts, move_points
from cdsk._spectral import (
    Labels,
)
from cdsk._utils import limit_blas_threads
from cdsk._validation import PRECOMPUTED_KERNELS, iter_row_chunks
from cdsk._view_choice import (
    LARGE_SAMPLE,
    fit_layout,
    has_points_for_layout,
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
        neighbor_recall=min(context.recalls, default=None),
    )
    if relative is not None and len(points.zero_weight_rows):
        log_unit = float(np.log(unit / np.sum(alpha * relative)))
        result = _label_zero_weight_rows(result, X, log_unit, context.n_threads)
    if context.settings.noise and context.settings.kernel not in PRECOMPUTED_KERNELS:
        result.labels[check_rows(X, context.settings.noise)] = -1
    return _keep_constraints(result, fitted.constraints, context.constraints)


def _fit_noise(
    labels: Labels, problem: Problem, context: FitContext
) -> NoiseRule | None:
    """Return the rule that decides which points are noise, if that is asked for."""
    rate, k, points = context.settings.noise, NOISE_NEIGHBOR, problem.points
    if not rate:
        return None
    near = find_neighbors(points.X, k, context, scale_neighbor=k)
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
    result: FitResult, check: ConstraintCheck | None, constraints: Constraints | None
) -> FitResult:
    """Return the result in which rows of weight 0 and noise are as they are known."""
    if check is None or constraints is None:
        return result
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
