# SPDX-License-Identifier: BSD-3-Clause
"""Discriminative clustering by a network of random units, Huang et al. (2015)."""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve
from scipy.special import expit
from sklearn.preprocessing import StandardScaler

from cdsk._utils import check_memory, warn
from cdsk._validation import check_integer, check_number
from cdsk.baselines._base import Baseline
from cdsk.baselines._initialization import run_kmeans


class DiscriminativeELM(Baseline):
    """Discriminative clustering by an extreme learning machine.

    H (n, n_hidden) are the outputs of random sigmoid units. Labels y, as rows of
    indicators t_i, and output weights B minimize ::

        J(B, y) = sum_i |t_i - h_i B|^2 / n_{y_i} + |B|^2 / C

    in turn: B by ridge regression, in which all clusters have the same weight whatever
    their size n_k, and y_i by the largest output of h_i B (the paper's first method,
    iterated weighted ELM), until labels do not change. The initial labels are those of
    k-means. The update of y neglects the change of n_k, so J may increase a little. The
    method corrects k-means for elongated clusters, but keeps a wrong partition that a
    network separates well, such as both halves of two rings.

    Features are standardized, and the input of a unit is (x . r) / sqrt(d) + b with r
    and b uniform in [-1, 1]: units are nonlinear and unsaturated for any d.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_hidden : int, default=1000
        Number of random units.
    C : float, default=10.0
        Weight of the errors relative to ``|B|^2``, between 1e-9 and 1e9.
    max_iter : int, default=100
        Maximum number of iterations.
    n_init : int, default=10
        Number of k-means initializations.
    random_state : int, RandomState or None, default=None
        Seed of the units and of k-means.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each point. There may be fewer clusters than ``n_clusters``.
    objective_ : ndarray of shape (n_iter,)
        J before each iteration with the best B, first for the labels of k-means. An
        empty cluster contributes 1, as one that is not separated at all.
    n_iter_ : int
        Number of iterations, including the last one, which changed no label.

    Notes
    -----
    An iteration takes O(n n_hidden^2 + n_hidden^3), 0.4 s on one core for 3000 points,
    and 16 (n + n_hidden) n_hidden bytes of memory.

    References
    ----------
    G. Huang, T. Liu, Y. Yang, Z. Lin, S. Song, C. Wu. Discriminative clustering via
    extreme learning machine. Neural Networks, 2015.
    """

    objective_: NDArray[np.float64]
    n_iter_: int

    def __init__(
        self,
        n_clusters=8,
        *,
        n_hidden=1000,
        C=10.0,
        max_iter=100,
        n_init=10,
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.n_hidden = n_hidden
        self.C = C
        self.max_iter = max_iter
        self.n_init = n_init
        self.random_state = random_state

    def _check_parameters(self):
        check_integer(self.n_hidden, "n_hidden", 1, 10**6)
        check_number(self.C, "C", at_least=1e-9, at_most=1e9)
        check_integer(self.max_iter, "max_iter", 1, 10**6)
        check_integer(self.n_init, "n_init", 1, 10**6)

    def _cluster(self, X, rng):
        size = 16 * (len(X) + self.n_hidden) * self.n_hidden
        check_memory(size, "The hidden layer", "Use fewer units.")
        X = StandardScaler().fit_transform(X)
        H = hidden_layer(X, self.n_hidden, rng)
        labels = run_kmeans(X, self.n_clusters, self.n_init, rng)
        return self._alternate(H, labels.astype(np.intp))

    def _alternate(self, H, labels):
        values: list[float] = []
        visited = set()
        while len(values) < self.max_iter:
            outputs, value = train(H, labels, self.n_clusters, self.C)
            values.append(value)
            visited.add(labels.tobytes())
            new = outputs.argmax(axis=1)
            if new.tobytes() in visited:  # no change, or a cycle
                break
            labels = new
        else:
            warn(
                "DiscriminativeELM did not converge: labels still changed after "
                f"max_iter={self.max_iter} iterations. Increase max_iter, or change C.",
            )
        self.objective_ = np.array(values)
        self.n_iter_ = len(values)
        return labels


def hidden_layer(X, n_hidden, rng):
    """Return the outputs (n, n_hidden) of random sigmoid units; X is standardized."""
    d = X.shape[1]
    weights = rng.uniform(-1, 1, size=(d, n_hidden)) / np.sqrt(d)
    return expit(X @ weights + rng.uniform(-1, 1, size=n_hidden))


def train(H, labels, n_clusters, C):
    """Return the outputs (n, n_clusters) of the network trained on labels, and J."""
    sizes = np.bincount(labels, minlength=n_clusters)
    A = H.T @ (H / sizes[labels, None])
    A.flat[:: len(A) + 1] += 1.0 / C
    # the mean hidden output of each cluster
    means = H.T @ (np.eye(n_clusters)[labels] / np.maximum(sizes, 1))
    B = solve(A, means, assume_a="pos")
    return H @ B, n_clusters - np.sum(means * B)
