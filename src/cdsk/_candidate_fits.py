# SPDX-License-Identifier: BSD-3-Clause
"""Points of a view -> fits of all candidate kernels, and the winner of their votes.

fit_candidates           all of this, for the points of a problem:
make_candidates          points -> candidate kernels (_candidates.py)
tree_partitions          their neighbors -> partitions (_spanning_tree.py)
alternate_candidates     candidate -> alternation and partition
select                   partitions -> the one with most votes;
of one kernel, the learned or the initial weights
refine                   the winner, its eigenvectors refined
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import cast

import numpy as np

from cdsk._alternation import alternate
from cdsk._candidates import (
    N_NEIGHBORS,
    START_OF_FULL,
    Gaussian,
    has_categories,
    make_candidates,
)
from cdsk._eigensolvers import ROUGH, TOLERANCE
from cdsk._initialization import first_weights
from cdsk._operators.base import Candidate, Kernel
from cdsk._operators.sparse import NeighborGraph
from cdsk._partition_choice import (
    balance,
    select_partition,
    select_weights,
)
from cdsk._preprocessing import warn_few_distinct
from cdsk._result import (
    Alternation,
    CandidateFit,
    Problem,
    ViewFit,
)
from cdsk._settings import FitContext
from cdsk._spanning_tree import tree_partitions
from cdsk._spectral import (
    Embedding,
    Labels,
    assign_labels,
    warn_fewer_clusters,
    warn_unconnected,
)
from cdsk._utils import limit_blas_threads, warn
from cdsk._view_choice import make_graph

_NO_TREES: Mapping[str, Labels] = {}

# Part of a fit in the search for neighbors.
_SEARCH_PART = 0.1


def fit_candidates(
    problem: Problem,
    context: FitContext,
    stage: str = "kernels",
    span: tuple[float, float] = (0.0, 1.0),
    *,
    all_vote: bool = False,
) -> ViewFit:
    """Fit the candidate kernels of a problem and select a partition.

    Unless ``all_vote``, kernels that cannot change the winner are left out. The
    progress is that of a part, ``span``, of a stage.
    """
    begin, end = span
    if stage == "kernels":
        context.progress.stage("neighbors")
    else:
        begin += _SEARCH_PART * (end - begin)
        context.progress.stage(stage, "neighbors", (span[0], begin))
    candidates = candidates_of(problem, context)
    trees, first = dict[str, Labels](), candidates[0]
    if len(candidates) > 1 and isinstance(first, Gaussian) and first.graph is not None:
        trees = partitions_by_trees(first.graph, problem, context)
    fits = alternate_candidates(
        candidates,
        problem,
        context,
        stage=stage,
        span=(begin, end),
        trees=trees,
        all_vote=all_vote,
    )
    return select(fits, problem, context, trees)


def candidates_of(problem: Problem, context: FitContext) -> list[Candidate]:
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
    Kernels may be left out as in ``fit_candidates``, given the partitions by ``trees``.
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
        fit = fit_kernel(
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


def fit_kernel(
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
        list(partitions_by_trees(graph, problem, context).values()),
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
    i, is_initial = winning_kernel(fitted)
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
        winner = fit_kernel(winner.candidate, kernel, problem, context, alternation)
    if choice.chosen >= 2 * len(fits):
        winner = replace(winner, labels=fitted.partitions[choice.chosen])
    return winner


def winning_kernel(fitted: ViewFit) -> tuple[int, bool]:
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


def partitions_by_trees(
    graph: NeighborGraph, problem: Problem, context: FitContext
) -> dict[str, Labels]:
    """Return partitions by spanning trees of a neighbor graph."""
    return tree_partitions(
        graph.neighbors, problem.n_clusters, graph.multiplicity, context.n_threads
    )
