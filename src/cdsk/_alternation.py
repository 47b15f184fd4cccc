# SPDX-License-Identifier: BSD-3-Clause
"""Kernel -> weights, embedding and objective: the alternation, Algorithm 1.

    similarity(alpha) -> embedding -> weights -> similarity(alpha) -> ...

An iterate is a pair of weights and their embedding; its objective is that of the weight
step. The loop ends when the objective decreases by less than ``tol``, after
``max_iter`` iterations, or with the first iterate that is not accepted: one that does
not decrease the objective, whose eigenvectors did not converge, or in which a connected
component lost all points of positive weight. The last rule is needed because a
component is a cluster, however small its weights are. So the history never increases.
"""

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from cdsk._eigensolvers import TOLERANCE, Eigenpairs
from cdsk._neighbors import SCALE_NEIGHBOR
from cdsk._operators.base import Array, Kernel
from cdsk._qp import WeightProblem
from cdsk._result import (
    Alternation,
    Iteration,
)
from cdsk._settings import FitContext
from cdsk._spectral import (
    Embedding,
    spectral_step,
)


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
