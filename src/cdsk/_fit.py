# SPDX-License-Identifier: BSD-3-Clause
"""The stages of a fit, in the order in which ``CDSK.fit`` calls them.

    preprocess             rows -> distinct points, representation, number of clusters
    resolve_lam            lam, or its selection on samples
    make_candidates        points -> candidate kernels (_candidates.py)
    alternate_candidates   candidate -> alternation (Algorithm 1) and partition
    select                 partitions -> the winner, its eigenvectors refined
    finish                 winner -> ``FitResult``

*Alternation.* similarity(alpha) -> embedding -> weights -> similarity(alpha) -> ... An
iterate is a pair of weights and their embedding; its objective is that of the weight
step. The loop ends when the objective decreases by less than ``tol``, after
``max_iter`` rounds, or with the first iterate that is not accepted: one that does not
decrease the objective, whose eigenvectors did not converge, or in which a connected
component lost all points of positive weight. The last rule is needed because a
component is a cluster, however small its weights are beside the others. So the history
never increases.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cdsk._candidates import Precomputed, TruncatedGaussian, make_candidates
from cdsk._eigensolvers import ROUGH, TOLERANCE, Eigenpairs
from cdsk._initialization import first_weights
from cdsk._model_selection import (
    Choice,
    CountChoice,
    LambdaChoice,
    LambdaSearch,
    default_counts,
    represent_for_counting,
    select_lam,
    select_n_clusters,
    select_partition,
    select_representation,
)
from cdsk._neighbors import SCALE_NEIGHBOR, NeighborIndex, Neighbors
from cdsk._operators.base import Array, Candidate, Kernel
from cdsk._preprocessing import Points, Representation, warn_few_distinct
from cdsk._qp import WeightProblem
from cdsk._result import FitResult, Predictor
from cdsk._settings import FitContext, Settings
from cdsk._spectral import (
    Embedding,
    assign_labels,
    spectral_step,
    warn_fewer_clusters,
    warn_unconnected,
)
from cdsk._utils import limit_blas_threads, warn
from cdsk._validation import PRECOMPUTED_KERNELS, iter_row_chunks
from cdsk._voting import (
    NOISE_NEIGHBOR,
    LeaveOneOutVotes,
    NoiseRule,
    compute_margins,
    compute_new_margins,
    fit_noise_rule,
    leave_one_out_votes,
)

Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Problem:
    """What a fit solves: distinct points, their number of clusters, and lam."""

    points: Points
    representation: Representation
    # number of clusters that was asked for, or selected
    n_requested: int
    count_choice: CountChoice | None = None
    lam: float = np.nan
    lambda_choice: LambdaChoice | None = None
    # of the data, in warnings
    name: str = "X"

    @cached_property
    def n_clusters(self) -> int:
        """Number of clusters, at most that of distinct points.

        If it is theirs, every cluster is one distinct point and nothing is learned.
        """
        return min(self.n_requested, self.points.n_distinct)


@dataclass(frozen=True, kw_only=True)
class AlternationSettings:
    """Settings of ``alternate``; ``eigen_tol`` bounds the residual of eigenvectors."""

    n_clusters: int
    lam: float
    max_iter: int = 20
    tol: float = 1e-4
    qp_tol: float = 1e-4
    eigen_solver: str = "auto"
    eigen_tol: float = TOLERANCE


@dataclass(frozen=True)
class Round:
    """A round of the alternation, as it is reported."""

    number: int
    objective: float
    embedding: Embedding
    weights: Array
    qp_gap: float
    accepted: bool


@dataclass(frozen=True, kw_only=True)
class Alternation:
    """Result of ``alternate``."""

    initial_weights: Array
    weights: Array
    embedding: Embedding
    history: list[float]
    n_iter: int
    qp_gap: float
    # eigenpairs of the first weights: a start for a similar kernel
    first_solution: Eigenpairs | None
    # warning of the fit that is selected; None if it converged
    convergence_message: str | None


@dataclass(frozen=True)
class CandidateFit:
    """A candidate with its alternation and partition."""

    candidate: Candidate
    alternation: Alternation
    labels: Labels
    # None if there are several candidates: their kernels are made again when needed
    kernel: Kernel | None


def preprocess(X: Any, settings: Settings, context: FitContext) -> Problem:
    """Return the distinct points in their representation, spatially sorted."""
    context.progress.stage("representation")
    lam = np.nan if isinstance(settings.lam, str) else float(settings.lam)
    if settings.kernel in PRECOMPUTED_KERNELS:
        points = Points.from_rows_as_they_are(X, context.sample_weight)
        return Problem(points, Representation(), int(settings.n_clusters), lam=lam)
    points = Points.from_distinct_rows(X, context.sample_weight)
    if len(points) == 1:
        points = points.split_single()
    with limit_blas_threads():
        n_clusters, count_choice, representation = _count_and_represent(
            points, settings, context
        )
    transformed = representation.transform_validated(points.X, context.n_threads)
    points = points.spatially_sorted(transformed)
    if len(points.zero_weight_rows):
        rows = X[points.zero_weight_rows]
        rows = representation.transform_validated(rows, context.n_threads)
        index = NeighborIndex(points.X)
        distances, nearest = index.kneighbors(rows, 1, n_threads=context.n_threads)
        points = points.assign_nearest(nearest[:, 0], distances[:, 0])
    return Problem(points, representation, n_clusters, count_choice, lam)


def _count_and_represent(
    points: Points, settings: Settings, context: FitContext
) -> tuple[int, CountChoice | None, Representation]:
    """Return the number of clusters, how it was selected, and the representation."""
    # a given bandwidth is in the unit of the raw data
    is_default = (settings.kernel, settings.bandwidth) == ("rbf", "auto")
    view = settings.representation
    view = "raw" if view == "auto" and not is_default else view
    represent = partial(
        select_representation,
        points.X,
        view,
        rng=context.rng,
        n_threads=context.n_threads,
        n_components=settings.n_components,
        multiplicity=points.relative_multiplicity,
    )
    if not isinstance(settings.n_clusters, str):
        n_clusters = int(settings.n_clusters)
        return n_clusters, None, represent(n_clusters)
    if points.n_distinct < 3:  # too few to count
        return points.n_distinct, None, represent(points.n_distinct)
    counts = default_counts(len(points))
    views = represent_for_counting(represent, points, view, int(counts[-1]))
    context.progress.stage("count", "number of clusters")
    choice = select_n_clusters(points, views, counts, context.rng, context.n_threads)
    chosen = represent(choice.n_clusters) if view == "auto" else views[0]
    return choice.n_clusters, choice, chosen


def resolve_lam(
    problem: Problem,
    settings: Settings,
    context: FitContext,
    search: LambdaSearch | None = None,
) -> Problem:
    """Return the problem with lam, which is selected on samples if it is "auto"."""
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
            settings,
            context,
            n_clusters=problem.n_requested,
            n_features=problem.representation.n_varying,
            multiplicity=None if multiplicity is None else multiplicity[rows],
        )
        return candidates[len(candidates) // 2].kernel()

    def fit(kernel: Kernel, lam: float) -> Alternation:
        weights = first_weights(kernel, lam, init)
        # a sample of few distinct points is fitted as any other
        options = replace(
            _alternation_settings(problem, settings),
            lam=lam,
            max_iter=settings.max_iter,
        )
        return alternate(
            kernel,
            weights,
            options,
            context.rng,
            report=context.progress.round if context.progress.verbose else None,
        )

    with limit_blas_threads():
        choice = select_lam(
            points.X.shape[0],
            problem.n_clusters,
            make_kernel,
            fit,
            search=search or LambdaSearch(),
            n_init=settings.n_init,
            rng=context.rng,
        )
    return replace(problem, lam=choice.lam, lambda_choice=choice)


def _alternation_settings(
    problem: Problem, settings: Settings, eigen_tol: float = TOLERANCE
) -> AlternationSettings:
    return AlternationSettings(
        n_clusters=problem.n_clusters,
        lam=problem.lam,
        max_iter=0
        if problem.n_clusters == problem.points.n_distinct
        else settings.max_iter,
        tol=settings.tol,
        qp_tol=settings.qp_tol,
        eigen_solver=settings.eigen_solver,
        eigen_tol=eigen_tol,
    )


def alternate_candidates(
    candidates: Sequence[Candidate],
    problem: Problem,
    settings: Settings,
    context: FitContext,
) -> list[CandidateFit]:
    """Alternate with every candidate kernel and partition its embedding.

    Several kernels are compared by rough eigenvectors; ``select`` refines the winner's.
    """
    if problem.n_clusters < problem.n_requested:
        warn_few_distinct(problem.n_clusters, problem.n_requested, problem.name)
    n = len(candidates)
    options = _alternation_settings(problem, settings, ROUGH if n > 1 else TOLERANCE)
    fits: list[CandidateFit] = []
    weights = start = None
    for i, candidate in enumerate(candidates):
        context.progress.stage(
            "kernels",
            f"kernel {i + 1} of {n}: {candidate.name}",
            span=(i / n, (i + 1) / n),
        )
        kernel = candidate.kernel()
        with limit_blas_threads():
            if weights is None:  # the same for all kernels
                weights = _initial_weights(kernel, problem, settings)
            alternation = alternate(
                kernel,
                weights,
                options,
                context.rng,
                start=start,
                report=context.progress.round if context.progress.verbose else None,
            )
            labels = _partition(kernel, alternation, problem, settings, context.rng)
        # the next kernel is slightly narrower and has similar eigenvectors
        start = alternation.first_solution
        kept = kernel if n == 1 else None
        fits.append(CandidateFit(candidate, alternation, labels, kept))
    return fits


def _initial_weights(kernel: Kernel, problem: Problem, settings: Settings) -> Array:
    if isinstance(settings.init, str) and settings.init == "uniform":
        return np.full(kernel.n, 1.0 / kernel.n)
    return first_weights(kernel, problem.lam, settings.init, problem.points)


def _partition(
    kernel: Kernel,
    alternation: Alternation,
    problem: Problem,
    settings: Settings,
    rng: np.random.RandomState,
) -> Labels:
    """Return the labels of the points by their embedding."""
    if problem.n_clusters == problem.points.n_distinct:
        return np.arange(len(problem.points)) % problem.n_clusters
    return assign_labels(
        alternation.embedding.vectors,
        settings.assign_labels,
        kernel=kernel,
        multiplicity=problem.points.multiplicity,
        n_init=settings.n_init,
        random_state=rng,
    )


def alternate(
    kernel: Kernel,
    weights: Array,
    settings: AlternationSettings,
    rng: np.random.RandomState,
    *,
    start: Eigenpairs | None = None,
    report: Callable[[Round], object] | None = None,
) -> Alternation:
    """Alternate spectral and weight steps from the given weights (Algorithm 1).

    ``start`` are eigenpairs of a similar kernel, a first guess; ``report`` is called
    after every round.
    """
    initial_weights = weights
    embedding, problem, objective = _iterate(kernel, weights, settings, rng, start)
    first, history, qp_gap = embedding, [objective], np.nan
    if report is not None:
        report(Round(0, objective, embedding, weights, qp_gap, True))
    message = embedding.convergence_message
    n_iter, converged = 0, settings.max_iter == 0
    while n_iter < settings.max_iter and not converged and message is None:
        n_iter += 1
        step = problem.solve(weights, settings.qp_tol)
        proposal, new_problem, objective = _iterate(
            kernel, step.x, settings, rng, embedding.solution
        )
        message = proposal.convergence_message
        lower = objective < history[-1] and message is None
        accepted = lower and _keeps_components(first.component, proposal.component < 0)
        if report is not None:
            report(Round(n_iter, objective, proposal, step.x, step.gap, accepted))
        if not accepted:
            converged = True
            break
        # relative to the scale of the problem: the objective may be near 0
        converged = history[-1] - objective <= settings.tol * new_problem.scale
        weights, embedding, problem = step.x, proposal, new_problem
        qp_gap = step.gap
        history.append(objective)
    if not converged and message is None:
        message = _not_converged(settings, history, problem.scale)
    return Alternation(
        initial_weights=initial_weights,
        weights=weights,
        embedding=replace(embedding, solution=None),  # as large as the vectors
        history=history,
        n_iter=n_iter,
        qp_gap=qp_gap,
        first_solution=first.solution,
        convergence_message=message,
    )


def _iterate(
    kernel: Kernel,
    weights: Array,
    settings: AlternationSettings,
    rng: np.random.RandomState,
    start: Eigenpairs | None,
) -> tuple[Embedding, WeightProblem, float]:
    """Return the embedding of the weights, its weight problem, and its objective."""
    penalty = kernel.n * settings.lam  # the paper's lambda
    embedding = spectral_step(
        kernel.similarity(weights, penalty),
        settings.n_clusters,
        rng,
        start,
        settings.eigen_solver,
        settings.eigen_tol,
    )
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


def _not_converged(
    settings: AlternationSettings, history: list[float], scale: float
) -> str:
    return (
        f"The alternation did not converge in max_iter={settings.max_iter} rounds: the "
        f"last one decreased the objective by {history[-2] - history[-1]:.1e} to "
        f"{history[-1]:.6g}, more than tol={settings.tol:.1e} times the largest linear "
        f"term, {scale:.2g}. Increase `max_iter` or `tol`."
    )


def select(
    fits: Sequence[CandidateFit],
    problem: Problem,
    settings: Settings,
    context: FitContext,
) -> tuple[Choice, CandidateFit]:
    """Select a candidate by its partition, and refine its eigenvectors if needed."""
    neighborhood = None
    if len(fits) > 1:
        neighborhood = fits[0].candidate.kernel().neighborhood()
    choice = select_partition(
        [fit.candidate.name for fit in fits],
        [fit.labels for fit in fits],
        problem.n_clusters,
        neighborhood,
        resolved=[f.alternation.embedding.convergence_message is None for f in fits],
        multiplicity=problem.points.multiplicity,
    )
    winner = fits[choice.chosen]
    kernel = winner.kernel
    if kernel is not None:  # with several scales unconnected outliers are expected
        warn_unconnected(winner.alternation.embedding, kernel)
    else:
        context.progress.stage("winner", f"the winner: {winner.candidate.name}")
        kernel = winner.candidate.kernel()
        winner = replace(winner, kernel=kernel)
        embedding = winner.alternation.embedding
        if TOLERANCE < embedding.residual <= embedding.tol:  # rough eigenvectors
            winner = _refine(winner, kernel, problem, settings, context)
    if winner.alternation.convergence_message is not None:
        warn(winner.alternation.convergence_message)
    warn_fewer_clusters(winner.labels, problem.n_clusters, kernel)
    return choice, winner


def _refine(
    winner: CandidateFit,
    kernel: Kernel,
    problem: Problem,
    settings: Settings,
    context: FitContext,
) -> CandidateFit:
    """Return the winner fitted again with accurate eigenvectors."""
    with limit_blas_threads():
        alternation = alternate(
            kernel,
            winner.alternation.initial_weights,
            _alternation_settings(problem, settings),
            context.rng,
            start=winner.alternation.first_solution,
            report=context.progress.round if context.progress.verbose else None,
        )
        labels = _partition(kernel, alternation, problem, settings, context.rng)
    return replace(winner, alternation=alternation, labels=labels)


def finish(
    choice: Choice,
    winner: CandidateFit,
    problem: Problem,
    X: Any,
    settings: Settings,
    context: FitContext,
) -> FitResult:
    """Return the attributes of the fitted model from the winner; X are the rows."""
    context.progress.stage("margins")
    points, alternation, candidate = (
        problem.points,
        winner.alternation,
        winner.candidate,
    )
    kernel, embedding = cast(Kernel, winner.kernel), alternation.embedding
    to_rows, has_weight = points.to_rows, points.row_weights > 0
    clusters = to_rows(winner.labels)
    labels, noise = _mark_noise(clusters, winner.labels, points, settings, context)
    weights = to_rows(points.weights_per_row(alternation.weights)) * has_weight
    votes = _vote_left_out(winner, kernel, problem, weights, clusters)
    bandwidth: Any = candidate.bandwidth
    result = FitResult(
        labels=labels,
        clusters=clusters,
        noise=noise,
        n_clusters=problem.n_requested,
        n_distinct=points.n_distinct,
        count_choice=problem.count_choice,
        sample_weight=points.row_weights.copy(),
        weights=weights,
        support=np.flatnonzero(weights),
        unconnected=np.flatnonzero(to_rows(embedding.component < 0) & has_weight),
        embedding=to_rows(embedding.vectors.T),
        eigenvalues=embedding.eigenvalues,
        history=np.array(alternation.history),
        n_iter=alternation.n_iter,
        converged=alternation.convergence_message is None,
        qp_gap=alternation.qp_gap,
        kernel=candidate.description,
        bandwidth=to_rows(bandwidth) if np.ndim(bandwidth) else bandwidth,
        lam=problem.lam,
        margins=to_rows(votes.margins),
        typicality=to_rows(votes.typicality),
        choice=choice,
        approximation=kernel.approximation,
        representation=problem.representation,
        lambda_choice=problem.lambda_choice,
        n_negative=kernel.n_negative,
        n_clipped=embedding.n_clipped,
        predictor=_make_predictor(winner, problem, votes, noise),
    )
    if len(points.zero_weight_rows):
        _label_zero_weight_rows(result, X, votes.log_unit, context.n_threads)
    return result


def _mark_noise(
    clusters: Labels,
    labels: Labels,
    points: Points,
    settings: Settings,
    context: FitContext,
) -> tuple[Labels, NoiseRule | None]:
    """Return the labels of the rows, -1 for noise, and the rule that marks it."""
    if not settings.noise:
        return clusters.copy(), None
    neighbors = Neighbors(
        points.X,
        NOISE_NEIGHBOR,
        scale_neighbor=NOISE_NEIGHBOR,
        n_threads=context.n_threads,
    )
    noise = fit_noise_rule(
        neighbors, labels, settings.noise, points.relative_multiplicity
    )
    return np.where(points.to_rows(noise.is_noise()), -1, clusters), noise


@dataclass(frozen=True)
class _Votes:
    """Leave-one-out votes of a fit: of its rows, and margins of its points."""

    left_out: LeaveOneOutVotes
    margins: Array
    typicality: Array
    # unit of the typicality, for votes of weights that sum to 1
    log_unit: float


def _vote_left_out(
    winner: CandidateFit,
    kernel: Kernel,
    problem: Problem,
    weights: Array,
    clusters: Labels,
) -> _Votes:
    """Let all points vote for every other one.

    ``weights`` and ``clusters`` are those of the rows.
    """
    points, m = problem.points, problem.points.relative_multiplicity
    point_weights = winner.alternation.weights
    votes = leave_one_out_votes(
        kernel, winner.labels, point_weights, m, problem.n_requested
    )
    margins, typicality, unit = compute_margins(votes, winner.labels, m)
    shares = np.bincount(
        clusters, weights * points.row_weights, minlength=problem.n_requested
    )
    with np.errstate(divide="ignore"):
        log_votes = points.to_rows(np.log(votes.T))
    left_out = LeaveOneOutVotes(
        log_votes, clusters, points.row_weights, shares / shares.sum()
    )
    total = 1.0 if m is None else np.sum(point_weights * m)
    return _Votes(left_out, margins, typicality, float(np.log(unit / total)))


def _make_predictor(
    winner: CandidateFit, problem: Problem, votes: _Votes, noise: NoiseRule | None
) -> Predictor:
    """Return what predicts for new points, without a copy of the data."""
    points, candidate = problem.points, winner.candidate
    vote_weights = points.weights_per_point(winner.alternation.weights)
    index = None if candidate.points is None else NeighborIndex(candidate.points)
    if isinstance(candidate, TruncatedGaussian):
        neighbors = candidate.graph.neighbors
        if isinstance(neighbors, Neighbors):  # its index serves both
            index = neighbors.index
    if isinstance(candidate, Precomputed):
        candidate = replace(candidate, matrix=None)
    return Predictor(
        candidate=candidate,
        votes=winner.candidate.votes(winner.labels, vote_weights, problem.n_requested),
        index=index,
        points=replace(points, X=None),
        lengths=winner.alternation.embedding.lengths,
        left_out=votes.left_out,
        noise=noise,
        is_sparse=sparse.issparse(points.X),
    )


def _label_zero_weight_rows(
    result: FitResult, X: Any, log_unit: float, n_threads: int
) -> None:
    """Set the attributes of rows without weight as those of new points."""
    predictor = result.predictor
    zero_weight_rows = predictor.points.zero_weight_rows
    X = X[zero_weight_rows]
    for part in iter_row_chunks(X):
        rows = zero_weight_rows[part]
        new = result.representation.transform_validated(X[part], n_threads)
        votes = predictor.votes.log_votes(new, n_threads)
        clusters, labels, _ = predictor.label(votes, new, n_threads)
        result.clusters[rows], result.labels[rows] = clusters, labels
        predictor.left_out.log_votes[rows] = votes
        result.embedding[rows] = predictor.embed(
            new, result.embedding, result.eigenvalues, n_threads
        )
        result.margins[rows], result.typicality[rows] = compute_new_margins(
            votes, log_unit
        )
