# SPDX-License-Identifier: BSD-3-Clause
"""The spectral step: similarity -> leading eigenvectors -> unit rows.

Y holds D^-1/2 times the c leading eigenvectors of A = D^-1/2 S D^-1/2; the rows of Y
are scaled to unit length. At useful bandwidths the graph of S is often disconnected,
and the eigenvalue 1 multiple. Therefore the components of the graph are found first.
Each contributes the vector D^1/2 1_C (eigenvalue 1), known without any iteration;
eigen.py finds the others.

Points that belong to no component in use (isolated ones, and the components beyond the
c largest) are *stray*: they have no similarity to judge by and take the row of their
nearest neighbour. So is the *fringe*: groups that are tiny beside the mean cluster and
joined to it by next to nothing. There are the more of them the more points there are,
and each would be a leading eigenvector of its own.
"""

from dataclasses import dataclass

import numpy as np

from cdsk._linalg.block_lanczos import Eigenpairs
from cdsk._linalg.dense import fixed_sign
from cdsk._steps.eigen import TOLERANCE, leading_eigenpairs

# Fewer points than this part of the mean cluster may be fringe.
_SMALLEST_GROUP = 0.005


@dataclass
class Embedding:
    """Spectral embedding of all points."""

    # coordinates (c, n); those of a point have unit length
    vectors: np.ndarray
    # what the points were divided by (n,): Y with Y'DY = I is ``vectors * lengths``
    lengths: np.ndarray
    # leading eigenvalues of A (c,), largest first
    eigenvalues: np.ndarray
    # largest norm of A v - theta v
    residual: float
    n_products: int
    # what the residual was to be
    tol: float
    # the component of each point (n,), -1 if it took the row of its nearest neighbour
    component: np.ndarray
    # the pairs beyond the components', a start for a similar problem
    solution: Eigenpairs | None
    # pairs of points whose similarity was negative and was set to 0
    n_clipped: int

    @property
    def stray(self):
        """Whether a point took the row of its nearest neighbour (n,)."""
        return self.component < 0

    @property
    def trace(self):
        """Sum of the c smallest eigenvalues of the normalised Laplacian."""
        return float(np.sum(1.0 - self.eigenvalues))

    @property
    def complaint(self):
        """What to warn of if the eigenvectors were not resolved, else None."""
        if self.residual <= self.tol:
            return None
        return (
            f"The spectral step did not converge: residual {self.residual:.1e} after "
            f"{self.n_products} products, expected at most {self.tol:.0e}."
        )


def spectral_step(
    similarity, n_clusters, rng, start=None, solver="auto", tol=TOLERANCE
):
    """Return the ``Embedding`` of a ``Similarity``.

    ``start`` is the solution of a similar problem, used as a first guess; ``tol`` the
    largest residual of an eigenvector.
    """
    similarity = similarity.without_fringe(_SMALLEST_GROUP * similarity.n / n_clusters)
    known, component = _component_vectors(similarity, n_clusters)
    if not len(known):
        raise ValueError(
            "No two points have any similarity: every kernel value between different "
            "points is zero. Expected some that are not. This takes "
            f"{similarity.remedy}."
        )
    values, vectors, found = np.ones(len(known)), known, None
    if len(known) < n_clusters:
        found = leading_eigenpairs(
            similarity,
            known,
            n_clusters - len(known),
            solver=solver,
            rng=rng,
            tol=tol,
            start=start,
        )
        values = np.concatenate([values, found.values])
        vectors = np.concatenate([known, fixed_sign(found.vectors)])
    unit, lengths = _unit_rows(similarity, vectors, component >= 0)
    return Embedding(
        vectors=unit,
        lengths=lengths,
        eigenvalues=values,
        # none is found where S has fewer eigenvectors: all points alike
        residual=0.0 if found is None else float(found.residuals.max(initial=0.0)),
        n_products=0 if found is None else found.n_products,
        tol=tol,
        component=component,
        solution=found,
        n_clipped=similarity.n_clipped,
    )


def _component_vectors(similarity, n_clusters):
    """Vectors D^1/2 1_C of the components C of largest volume, and C of each point.

    -1 for points that are in none of them.
    """
    count, label = similarity.components()
    degrees = np.where(similarity.isolated, 0.0, similarity.degrees)
    volume = np.bincount(label, weights=degrees, minlength=count)
    largest = np.argsort(-volume, kind="stable")[:n_clusters]
    largest = largest[volume[largest] > 0]
    vectors = np.where(label == largest[:, np.newaxis], np.sqrt(degrees), 0.0)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    place = np.full(count, -1)
    place[largest] = np.arange(len(largest))
    return vectors, np.where(similarity.isolated, -1, place[label])


def _unit_rows(similarity, vectors, used):
    """Coordinates of Y with unit rows, and their lengths before.

    Stray points copy their nearest neighbour's.
    """
    unit, lengths = np.zeros_like(vectors), np.zeros(similarity.n)
    unit[:, used] = vectors[:, used] / np.sqrt(similarity.degrees[used])
    lengths[used] = np.linalg.norm(unit[:, used], axis=0)
    unit[:, used] /= lengths[used]
    if not used.all():
        stray, candidates = np.flatnonzero(~used), np.flatnonzero(used)
        nearest = similarity.nearest(stray, candidates)
        unit[:, stray], lengths[stray] = unit[:, nearest], lengths[nearest]
    return unit, lengths
