# SPDX-License-Identifier: BSD-3-Clause
"""The alternation of the paper's Algorithm 1.

    similarity(alpha) -> embedding -> weights -> similarity(alpha) -> ...

An iterate is a pair of weights and the embedding that belongs to them. Its merit is the
objective of the weight step. An iterate that does not lower the merit is not accepted
and ends the loop, so the history never increases. Nor is one whose eigenvectors could
not be resolved; where that holds for the first, there is nothing to go on with. Nor is
one in which a component is lost for want of weight: weights fade out points, and a
group that nothing joins to the others is a cluster, however thin it is beside them.
"""

import time
from dataclasses import dataclass, replace

import numpy as np

from cdsk._kernels.neighbours import SCALE_NEIGHBOUR
from cdsk._linalg.block_lanczos import Eigenpairs
from cdsk._steps.eigen import TOLERANCE
from cdsk._steps.embedding import Embedding, spectral_step
from cdsk._steps.weights import WeightProblem


@dataclass
class Fit:
    """Result of the alternation."""

    weights: np.ndarray
    embedding: Embedding
    history: list[float]
    n_iter: int
    qp_gap: float
    # Eigenpairs of the first weights: a start for a similar kernel.
    first_solution: Eigenpairs | None
    # What to warn of, None if the rounds converged. The caller knows whether this fit
    # is the one that counts.
    complaint: str | None

    @property
    def resolved(self):
        """Whether the eigenvectors of the embedding were found."""
        return self.embedding.complaint is None

    @property
    def is_rough(self):
        """Whether the eigenvectors were found as well as was asked, but no better."""
        return self.resolved and self.embedding.residual > TOLERANCE


@dataclass
class Round:
    """What is reported after each round."""

    number: int
    merit: float
    trace: float
    n_support: int
    qp_gap: float
    seconds: float
    accepted: bool


def alternate(
    kernel,
    n_clusters,
    lam,
    weights,
    *,
    max_iter,
    tol,
    qp_tol,
    eigen_solver,
    rng,
    eigen_tol=TOLERANCE,
    start=None,
    report=None,
):
    """Alternate spectral and weight steps from the given weights; return a ``Fit``.

    ``start`` are the eigenpairs of a similar kernel, a first guess.
    """
    # the paper's lambda
    penalty = kernel.n * lam

    def iterate(weights, start):
        similarity = kernel.similarity(weights, penalty)
        embedding = spectral_step(
            similarity, n_clusters, rng, start, eigen_solver, eigen_tol
        )
        problem = WeightProblem(kernel, embedding.vectors, penalty)
        return embedding, problem, problem.merit(weights)

    def tell(number, merit, embedding, weights, gap, since, accepted):
        if report is not None:
            n_support = int(np.count_nonzero(weights))
            seconds = time.perf_counter() - since
            report(
                Round(number, merit, embedding.trace, n_support, gap, seconds, accepted)
            )

    began = time.perf_counter()
    embedding, problem, merit = iterate(weights, start)
    first_solution, history, qp_gap = embedding.solution, [merit], np.nan
    components = embedding.component
    tell(0, merit, embedding, weights, qp_gap, began, True)

    complaint = embedding.complaint
    n_iter, converged = 0, max_iter == 0
    while n_iter < max_iter and not converged and complaint is None:
        began = time.perf_counter()
        n_iter += 1
        step = problem.solve(weights, qp_tol)
        new_embedding, new_problem, merit = iterate(step.alpha, embedding.solution)
        complaint = new_embedding.complaint
        lower = merit < history[-1] and complaint is None
        accepted = lower and _keeps(components, new_embedding.stray)
        tell(n_iter, merit, new_embedding, step.alpha, step.gap, began, accepted)
        if not accepted:
            converged = True
            break
        # not relative to the merit, which may be near 0
        converged = history[-1] - merit <= tol * new_problem.scale
        weights, embedding, problem = step.alpha, new_embedding, new_problem
        qp_gap = step.gap
        history.append(merit)
    if not converged and complaint is None:
        complaint = (
            f"The alternation did not converge in max_iter={max_iter} rounds: in the "
            f"last one the merit fell by {history[-2] - history[-1]:.1e} to "
            f"{history[-1]:.6g}, expected at most tol={tol:.1e} of the largest linear "
            f"term, {problem.scale:.2g}."
        )
    embedding = replace(embedding, solution=None)  # as large as what is wanted of it
    return Fit(weights, embedding, history, n_iter, qp_gap, first_solution, complaint)


def _keeps(components, stray):
    """Whether of every component that is large enough some points are not stray.

    That is more points than it takes to have a scale of their own.
    """
    size = np.bincount(components + 1)[1:]
    kept = np.bincount(components[~stray] + 1, minlength=len(size) + 1)[1:]
    return bool(np.all((kept > 0) | (size <= SCALE_NEIGHBOUR)))
