# SPDX-License-Identifier: BSD-3-Clause
"""The l1-graph whose codes vary little over a graph of the points."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cdsk._kernels.neighbours import Neighbours
from cdsk._runtime import check_memory
from cdsk._validation import check_choice, check_integer, check_number
from cdsk._warn import warn
from cdsk.baselines._codes import matrix_of, sparse_code
from cdsk.baselines._l1_graph import L1Graph

GRAPHS = ("fixed", "learned")


class LaplacianL1Graph(L1Graph):
    """Laplacian regularised l1-graph: near points are made of the same others.

    The codes a_i of all points, scaled to unit length, minimise together ::

        sum_i 1/2 |x_i - sum_j a_ij x_j|^2 + alpha |a_i|_1
            + gamma/2 sum_ij L_ij a_i'a_j,   a_ii = 0,

    where L = D - S is the Laplacian of a graph S of the points, and
    ``W = (|A| + |A'|) / 2`` is clustered (Yang et al., AAAI 2014). It is half of
    ``|x_i - ...|^2 + lam |a_i|_1 + gamma Tr(A L A')`` with lam = 2 alpha: with gamma =
    0 the codes are those of ``L1Graph``. One code after the other is set to its best,
    from those of ``L1Graph`` on: the objective falls in every round. Equal rows count
    as one point.

    A round takes O(n^2 s) and more where atoms are alike, with s points in a
    combination; memory is O(n^2). On one core 2,414 faces of 1,024 pixels take 20 s.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    alpha : float, default=0.1
        Weight of the l1 norm.
    gamma : float, default=0.1
        Weight of the graph.
    graph : {"fixed", "learned"}, default="fixed"
        S is 1 where one of two points is among the nearest neighbours of the other, or
        it is ``(|A| + |A'|) / 2`` of the codes found so far, first of ``L1Graph``, and
        both are found in turn.
    n_neighbors : int, default=5
        Neighbours in the fixed graph.
    n_graphs : int, default=5
        How often a graph is learned.
    max_iter : int, default=50
        Rounds with one graph.
    tol : float, default=1e-4
        Rounds end when the objective falls by less than this part of it.
    mass : float, default=1.0
        Of each code the largest coefficients stay that have this share of its l1 norm.
    assign_labels : {"kmeans", "cluster_qr", "discretize", "auto"}, default="kmeans"
        As in ``CDSK``.
    n_init : int, default=10
        Starts of k-means.
    random_state : int, RandomState or None, default=None
        Seed of the starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample, numbered in order of appearance.
    objective_ : ndarray
        The objective at first and after each round, of the last graph.
    n_iter_ : int
        Rounds with the last graph.
    coef_ : csr_array of shape (n_samples, n_samples)
        A: row i is the combination that sample i is, before ``mass``.
    affinity_matrix_ : csr_array of shape (n_samples, n_samples)
        W.

    References
    ----------
    Y. Yang, Z. Wang, J. Yang, J. Wang, S. Chang, T. S. Huang. Data clustering by
    Laplacian regularized l1-graph. AAAI, 2014.
    """

    objective_: NDArray[np.float64]
    n_iter_: int

    def __init__(
        self,
        n_clusters=8,
        *,
        alpha=0.1,
        gamma=0.1,
        graph="fixed",
        n_neighbors=5,
        n_graphs=5,
        max_iter=50,
        tol=1e-4,
        mass=1.0,
        assign_labels="kmeans",
        n_init=10,
        random_state=None,
    ):
        how = {"assign_labels": assign_labels, "n_init": n_init}
        super().__init__(
            n_clusters, alpha=alpha, mass=mass, random_state=random_state, **how
        )
        self.gamma = gamma
        self.graph = graph
        self.n_neighbors = n_neighbors
        self.n_graphs = n_graphs
        self.max_iter = max_iter
        self.tol = tol

    def _check_parameters(self):
        super()._check_parameters()
        check_number(self.gamma, "gamma", at_least=0)
        check_choice(self.graph, "graph", GRAPHS)
        check_integer(self.n_neighbors, "n_neighbors", 1)
        check_integer(self.n_graphs, "n_graphs", 1)
        check_integer(self.max_iter, "max_iter", 1)
        check_number(self.tol, "tol", at_least=0)

    def _codes_of(self, points, gram):
        codes = super()._codes_of(points, gram)
        for _ in range(1 if self.graph == "fixed" else self.n_graphs):
            S = self._graph_of(points, codes)
            history = [self._objective(gram, S, codes)]
            for _ in range(self.max_iter):
                self._improve(gram, S, codes)
                history.append(self._objective(gram, S, codes))
                if history[-2] - history[-1] <= self.tol * history[-2]:
                    break
            else:
                warn(
                    f"The codes did not converge in max_iter={self.max_iter} rounds: "
                    f"the last one changed the objective {history[-2]:.6g} by "
                    f"{history[-2] - history[-1]:.1e}, expected at most tol={self.tol}"
                    " of it.",
                )
        self.objective_, self.n_iter_ = np.array(history), len(history) - 1
        return codes

    def _graph_of(self, points, codes):
        """S as a CSR array."""
        if self.graph == "learned" or len(points) == 1:
            A = abs(matrix_of(codes))
            return sparse.csr_array((A + A.T) / 2)
        S = Neighbours(points, self.n_neighbors).graph()
        S.data[:] = 1.0
        return sparse.csr_array(S.maximum(S.T))

    def _improve(self, gram, S, codes):
        """Set every code to its best, given the others."""
        for i in range(len(gram)):
            pull, neighbours = np.zeros(len(gram)), slice(*S.indptr[i : i + 2])
            for j, s in zip(S.indices[neighbours], S.data[neighbours], strict=True):
                atoms, values = codes[j]
                pull[atoms] += self.gamma * s * values
            ridge = self.gamma * S.data[neighbours].sum()
            codes[i] = sparse_code(
                gram, gram[i] + pull, self.alpha, codes[i], ridge=ridge, barred=[i]
            )

    def _objective(self, gram, S, codes):
        A = matrix_of(codes)
        errors = np.trace(gram) + sum(
            a @ (gram[np.ix_(atoms, atoms)] @ a - 2 * gram[i, atoms])
            for i, (atoms, a) in enumerate(codes)
        )
        L = sparse.diags_array(S.sum(axis=1)) - S
        most = min(len(gram) ** 2, int(((L != 0) @ np.diff(A.indptr)).sum()))
        check_memory(12 * most, "The Laplacian of all codes", "Use a larger alpha.")
        smoothness = (A * (L @ A)).sum()
        return 0.5 * errors + self.alpha * abs(A).sum() + 0.5 * self.gamma * smoothness
