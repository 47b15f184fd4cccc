# SPDX-License-Identifier: BSD-3-Clause
"""Spectral clustering of edge weights from which points rebuild each other."""

from functools import cached_property
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize, minimize_scalar

from cdsk._kernels.sparse import NeighbourGraph
from cdsk._runtime import check_memory, one_blas_thread
from cdsk._threads import resolve_n_threads
from cdsk._validation import check_choice, check_integer, check_number
from cdsk._warn import warn
from cdsk.baselines._base import AffinityBaseline
from cdsk.baselines._gaussian import neighbours_of
from cdsk.baselines._start import in_own_unit

BANDWIDTHS = "features", "scalar"

# Numbers of the differences along edges that are made at a time, 4 MiB.
_BLOCK = 2**19

# How far bandwidths may be from the first guess, as logarithms, and the trial values of
# one bandwidth. Beyond, weights are either all equal or all 0 but the nearest.
_REACH = np.log(30.0)
_TRIALS = 13


class ManifoldSpectral(AffinityBaseline):
    """Spectral clustering with bandwidths that are learned by reconstruction.

    On the graph of the nearest neighbours, of either direction, ::

        W_ij = exp(-sum_d (x_id - x_jd)^2 / (2 h_d^2)),     W_ii = 0,

    with the bandwidths h, one per feature or one for all, of the least ::

        sum_i |x_i - sum_j W_ij x_j / sum_j W_ij|^2.

    Found by L-BFGS on log h_d, or by a search over log h, from the median length of the
    edges. Spectral clustering of W follows, as in ``GaussianSpectral``. The paper calls
    it SC-MS.

    Time grows as n^2 d for the neighbours and n k d per step, of which there are up to
    ``max_iter``; memory as n d + n k. 68 clusters of 2856 points with 1024 features
    took 15 s on one core, 5 s with one bandwidth.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_neighbors : int, default=10
        k, neighbours of a point in the graph.
    bandwidth : {"features", "scalar"}, default="features"
        Whether each feature has its own bandwidth.
    max_iter : int, default=100
        Steps of L-BFGS at most.
    tol : float, default=1e-4
        L-BFGS stops when a step lowers the error by less than this part of it.
    assign_labels : {"kmeans", "cluster_qr", "discretize", "auto"}, default="kmeans"
        As in ``CDSK``.
    n_init : int, default=10
        Starts of k-means.
    random_state : int, RandomState or None, default=None
        Seed of the starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each point, numbered in the order in which they first appear.
    affinity_matrix_ : CSR array of shape (n_samples, n_samples)
        W.
    bandwidth_ : float or ndarray of shape (n_features,)
        h. It says nothing about features in which neighbours do not differ.
    history_ : ndarray
        The error as a part of the variance of X, of the first guess and after every
        step; of one bandwidth only the first and the last.
    n_iter_ : int
        Steps of L-BFGS, 1 at least.

    References
    ----------
    Karasuyama & Mamitsuka, "Manifold-based similarity adaptation for label
    propagation", NIPS 2013.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from cdsk.baselines import ManifoldSpectral
    >>> X, y = make_moons(100, noise=0.05, random_state=0)
    >>> labels = ManifoldSpectral(2, random_state=0).fit_predict(X)
    >>> bool((labels == (y != y[0])).all())
    True
    """

    affinity_matrix_: sparse.csr_array
    bandwidth_: float | NDArray[np.float64]
    history_: NDArray[np.float64]
    n_iter_: int

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_neighbors: int = 10,
        bandwidth: str = "features",
        max_iter: int = 100,
        tol: float = 1e-4,
        assign_labels: str = "kmeans",
        n_init: int = 10,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.bandwidth = bandwidth
        self.max_iter = max_iter
        self.tol = tol
        self.assign_labels = assign_labels
        self.n_init = n_init
        self.random_state = random_state

    def _check_parameters(self):
        super()._check_parameters()
        check_integer(self.n_neighbors, "n_neighbors", 1)
        check_choice(self.bandwidth, "bandwidth", BANDWIDTHS)
        check_integer(self.max_iter, "max_iter", 1)
        check_number(self.tol, "tol", above=0)

    def _affinity_of(self, X, rng):
        check_memory(2 * X.nbytes, "A copy of the data", "Use fewer points.")
        graph = NeighbourGraph(neighbours_of(X, self.n_neighbors))
        pattern = graph.indicator(resolve_n_threads(None)).matrix
        points, _, unit = in_own_unit(X)  # in which nothing overflows
        error = ReconstructionError(points, pattern)
        with one_blas_thread():
            if self.bandwidth == "scalar":
                logs, self.history_ = _one_for_all(error)
                self.bandwidth_ = float(unit * np.exp(logs[0]))
            else:
                logs, self.history_ = self._one_per_feature(error)
                self.bandwidth_ = unit * np.exp(logs)
            self.n_iter_ = max(len(self.history_) - 1, 1)
            return error.weights(logs)

    def _one_per_feature(self, error):
        first = error.first_guess
        value, gradient = error(first)
        history = [value]
        steepness = np.linalg.norm(gradient) / value if value > 0 else 0.0
        if steepness == 0:  # nothing to learn from: copies of points only
            return first, np.array(history)
        # The first step of L-BFGS is the gradient, of which each of many features has
        # a small part: without a unit in which its length is 1, that step would be
        # too small to be told from convergence.
        unit = value * min(steepness, 1.0)
        found = minimize(
            lambda logs: [part / unit for part in error(logs)],
            first,
            jac=True,
            method="L-BFGS-B",
            bounds=[(log - _REACH, log + _REACH) for log in first],
            callback=lambda intermediate_result: history.append(
                intermediate_result.fun * unit
            ),
            options={"maxiter": self.max_iter, "ftol": self.tol},
        )
        if found.nit >= self.max_iter and not found.success:
            warn(
                "The bandwidths did not converge: the reconstruction error fell from "
                f"{history[-2]:.4g} to {history[-1]:.4g} in step {self.max_iter}; "
                "expected a larger max_iter or tol.",
            )
        return found.x, np.array(history)


def _one_for_all(error):
    """Logarithms of the best single bandwidth, and the errors at first and last."""

    def at(log):
        return error(np.full_like(error.first_guess, log))[0]

    # the error may have several minima: the best of a grid, improved between its ends
    grid = error.first_guess[0] + np.linspace(-_REACH, _REACH, _TRIALS)
    values = [at(log) for log in grid]
    best = int(np.argmin(values))
    ends = grid[max(best - 1, 0)], grid[min(best + 1, _TRIALS - 1)]
    found = minimize_scalar(at, bounds=ends, method="bounded", options={"xatol": 1e-3})
    log, last = min(
        [(found.x, found.fun), (grid[best], values[best])], key=itemgetter(1)
    )
    return np.full_like(error.first_guess, log), np.array([values[_TRIALS // 2], last])


class ReconstructionError:
    """The mean squared error of points rebuilt from their neighbours in a graph.

    A function of the logarithms of the bandwidths (d,), with its gradient. With
    E_ij = sum_d (x_id - x_jd)^2 / (2 h_d^2), P_ij = exp(-E_ij) / sum_l exp(-E_il) and
    r_i = x_i - sum_j P_ij x_j,

        error = sum_i |r_i|^2 / n,
        d error / d E_ij = 2 P_ij r_i'(x_j - x_i + r_i) / n.

    ``pattern`` is a CSR array in which every row has an entry. Differences are made of
    some rows at a time, and again in every call: those of all edges may be large.
    """

    def __init__(self, X, pattern):
        self.X = X
        self.pattern = pattern

    @cached_property
    def first_guess(self):
        """All features have the median length of an edge, of which some are not 0."""
        lengths = np.concatenate(
            [np.linalg.norm(step, axis=1) for _, _, step in self._blocks()]
        )
        length = np.median(lengths) or np.mean(lengths) or 1.0
        # of copies with a little noise it is no scale of anything
        return np.full(self.X.shape[1], np.log(max(length, 1e-9)))

    def __call__(self, logs):
        """The error and its gradient."""
        half = 0.5 * np.exp(-2.0 * logs)
        error, slope = 0.0, np.zeros_like(logs)
        for ends, counts, step in self._blocks():
            squares = step**2
            E = squares @ half
            # P does not change, and no row vanishes
            E -= np.repeat(np.minimum.reduceat(E, ends[:-1]), counts)
            P = np.exp(-E)
            P /= np.repeat(np.add.reduceat(P, ends[:-1]), counts)
            parts = P, np.arange(len(P)), ends
            r = sparse.csr_array(parts, shape=(len(counts), len(P))) @ step
            errors = np.einsum("nd,nd->n", r, r)
            along = np.einsum("ed,ed->e", step, np.repeat(r, counts, axis=0))
            error += errors.sum()
            slope += (2.0 * P * (np.repeat(errors, counts) - along)) @ squares
        n = len(self.X)
        return error / n, slope * (-2.0 / n * half)

    def weights(self, logs):
        """W of the graph, symmetric to the last bit."""
        half = 0.5 * np.exp(-2.0 * logs)
        values = [np.exp(-(step**2 @ half)) for _, _, step in self._blocks()]
        parts = np.concatenate(values), self.pattern.indices, self.pattern.indptr
        W = sparse.csr_array(parts, shape=self.pattern.shape)
        return (0.5 * (W + W.T)).tocsr()

    def _blocks(self):
        """Ends and numbers of the edges of some rows, and x_i - x_j along each."""
        indptr, indices = self.pattern.indptr, self.pattern.indices
        most = max(_BLOCK // self.X.shape[1], 1)
        begin, n = 0, len(self.X)
        while begin < n:
            end = np.searchsorted(indptr, indptr[begin] + most, side="right") - 1
            end = min(max(end, begin + 1), n)
            edges = slice(indptr[begin], indptr[end])
            counts = np.diff(indptr[begin : end + 1])
            step = np.repeat(self.X[begin:end], counts, axis=0)
            step -= self.X[indices[edges]]
            yield indptr[begin : end + 1] - indptr[begin], counts, step
            begin = end
