# SPDX-License-Identifier: BSD-3-Clause
"""The scikit-learn estimator: checks, attributes, and the order of the stages."""

import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from cdsk._choices.candidates import Precomputed, find_candidates
from cdsk._choices.lam import CRITERIA, GRID, LambdaChoice, choose_lambda
from cdsk._choices.n_clusters import CountChoice, choose_count, default_candidates
from cdsk._choices.partition import Choice, choose
from cdsk._choices.representation import (
    Representation,
    represent,
    represent_to_count,
)
from cdsk._explain.margins import leave_one_out, of_new_points
from cdsk._explain.noise import NEIGHBOUR, NoiseRule, find_noise
from cdsk._explain.report import Report, report_of
from cdsk._kernels.lowrank import Approximation
from cdsk._kernels.neighbours import LongSearch, Neighbours, PointSearch
from cdsk._parameters import GIVEN, check_parameters
from cdsk._points import Points, warn_of_copies
from cdsk._progress import Progress
from cdsk._runtime import (
    check_memory,
    one_thread_if_forked,
    said_in_words,
    unchanged_if_it_fails,
)
from cdsk._steps.alternate import Fit, alternate
from cdsk._steps.eigen import ROUGH, TOLERANCE
from cdsk._steps.labels import assign_labels
from cdsk._steps.spectral import warn_of_fewer_clusters, warn_of_strays
from cdsk._steps.start import check_init, first_weights
from cdsk._threads import resolve_n_threads
from cdsk._validation import (
    can_be_cut,
    check_choice,
    check_n_clusters,
    check_number,
    check_points,
    check_random_state,
    check_sample_weight,
    check_simplex_point,
    parts_of_rows,
    said_of_rows,
)
from cdsk.theory._bound import GeneralizationBound, generalization_bound


class CDSK(ClusterMixin, BaseEstimator):
    """Clustering by discriminative similarity via unsupervised kernel classification.

    Alternates a spectral step on the similarity ``S_ij = 2 (a_i + a_j - n lam a_i a_j)
    K_ij`` with a quadratic program for the kernel weights ``a``, which fade out points
    that blur the clusters. The weighted votes of the points are a classifier for new
    ones. See ``docs/method.md`` for the equations.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of clusters; "auto" chooses it as ``suggest_n_clusters`` does, which
        needs points. Identical points are never split: if there are fewer
        distinct ones, they are the clusters, and a warning says so (not for a
        precomputed kernel, whose points are not known).
    kernel : str or callable, default="rbf"
        "rbf" is the Gaussian kernel. "precomputed" takes X as a similarity matrix. Of a
        sparse one the diagonal is not used: it is the largest similarity, or what
        makes the matrix semi-definite. "precomputed_neighbors" takes X as a sparse
        matrix of the distances between neighbours, and puts the Gaussian kernel on
        them. A callable ``kernel(A, B)`` returns the
        matrix of values between the rows of A and B. "chi2", "cosine", "laplacian",
        "linear", "polynomial" ("poly") and "sigmoid" are those of
        ``sklearn.metrics.pairwise``; cosine and sigmoid values k become (k + 1) / 2.
        Similarities must be symmetric and non-negative; they need not be positive
        semi-definite (see ``psd``).
    kernel_params : dict, default=None
        Parameters of a named kernel, or further arguments of a callable.
    psd : bool, default=None
        Whether the similarity matrix is positive semi-definite. None tests it, but
        takes "rbf" for it, local bandwidths included, and raises the diagonal of one
        that is truncated to neighbours, or sparse, until it is. False splits it into
        its positive and negative part without a test, as an indefinite one needs it
        (CDS with general similarities); True uses it as it is, without a test. Both
        make the full n x n matrix.
    bandwidth : float or str, default="auto"
        Bandwidth of the Gaussian kernel. "auto" fits six kernels on the graph of the
        nearest neighbours, with bandwidths of 1/8 to 1 of each point's distance to
        its 7th neighbour, and keeps the partition that the others agree with most (see
        ``choice_``). Other rules and numbers give one kernel on all pairs of points, a
        number in the unit of the data: "neighbour": half the mean distance to the 7th
        neighbour; "variance": variance of the pairwise distances, as the paper prints
        it; "std": its square root; "median": the median distance; "local": one per
        point, a quarter of the distance to its 7th neighbour.
    n_neighbors : int, default=None
        Truncates the Gaussian kernel to pairs of which one is among the n_neighbors
        nearest of the other. None: 20 for ``bandwidth="auto"``, or 5 if there are at
        least 60 features and fewer than 25 points for a cluster; no truncation else.
    neighbors : transformer, default=None
        Finds the neighbours, of which ``n_neighbors`` are used, or all if that is None:
        ``fit_transform(X)`` gives a sparse matrix of distances, as
        ``sklearn.neighbors.KNeighborsTransformer(mode="distance")`` does; ``transform``
        is asked by ``predict``. A clone is fitted. None: an exact search.
    approximation : {"lowrank"} or None, default=None
        "lowrank" is for more points than a kernel matrix has room for: a Gaussian
        kernel with one bandwidth becomes a matrix of low rank, by a randomly pivoted
        Cholesky factorisation. None uses the kernel as it is.
    n_components : int, default=None
        Rank of the approximation, at most ``n_samples``; None takes that at which a
        twentieth of the trace of the centred kernel is missing, and 2000 at most. Or
        the number of components for ``representation="whiten"``; None takes as many as
        the data span. With "auto" it means nothing.
    representation : {"auto", "raw", "standardize", "normal_scores", "whiten"}, \
            default="auto"
        What becomes of the data before anything else: nothing; every feature has mean
        0 and standard deviation 1; its values are replaced by the normal quantiles of
        their ranks; principal components of variance 1. "auto" takes the view whose
        partitions agree most over the scales, or standardises if there are less than 4
        features and one varies more than twice as much as another (see
        ``representation_``); with another ``kernel`` or ``bandwidth`` it is "raw".
    lam : float in (0, 1] or "auto", default=0.2
        Weight of the regulariser relative to the mean risk; the paper's lambda is
        ``n_samples * lam``. At least this fraction of the points carries weight;
        smaller means sparser. "auto" chooses it as ``select_lambda`` does.
    init : {"uniform", "sparse"} or array-like of shape (n_samples,), default="uniform"
        First weights. "sparse": those of ``sparse_start``, in the feature space of the
        kernel if it is precomputed. An array has sum 1 and entries between 0 and
        ``1 / (n_samples * lam)``.
    max_iter : int, default=20
        Most rounds. 0 keeps the first weights: plain spectral clustering on the kernel.
    tol : float, default=1e-4
        Decrease of the merit at which the alternation stops, relative to the largest
        linear term of the weight step.
    qp_tol : float, default=1e-4
        KKT gap at which the weight step stops, relative to its largest linear term.
    eigen_solver : {"auto", "eigsh", "block", "levels", "dense"}, default="auto"
        Who solves the spectral step: ``scipy.sparse.linalg.eigsh``, on a factorised
        matrix where that is cheap; block Lanczos; the same with a hierarchy of smaller
        graphs, for kernels truncated to neighbours; or LAPACK, which solves small
        problems whoever is asked. "auto" takes "block" for kernel matrices in memory,
        and for kernels truncated to neighbours "eigsh" or, where there are many points,
        "levels".
    assign_labels : {"kmeans", "cluster_qr", "discretize", "auto"}, default="kmeans"
        How the rows of the embedding become labels. "auto" takes those of the three
        whose clusters have the smallest normalised cut.
    n_init : int, default=10
        Number of k-means starts.
    noise : float in [0, 0.5] or None, default=None
        Marks noise, labels -1: points farther from their 12th neighbour than all but
        this share of the points of a normal cluster would be. It is a rate of false
        alarms, not the share that is marked. Needs points; distances are Euclidean,
        whatever the kernel. None and 0 mark nothing. See ``docs/noise.md``.
    random_state : int, RandomState instance or None, default=None
        Seeds the eigensolver's start, k-means and the pivots of an approximation. The
        same seed gives the same bits for any ``n_threads``, and the same labels for any
        number of threads of BLAS.
    n_threads : int, default=None
        Threads of the compiled loops; None means all.
    verbose : int, default=0
        1 shows the stages of a fit on standard error, with a bar and the time left (a
        line per stage without tqdm, ``pip install cdsk[progress]``); 2 also a line per
        round.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each point; -1 for noise, if ``noise`` asks for it. The numbers do
        not depend on the order of the rows.
    clusters_ : ndarray of shape (n_samples,)
        The same with the cluster in which it was found for noise too.
    noise_ : NoiseRule or None
        Which points are noise: the distances beyond which they are, per cluster.
    n_clusters_ : int
        Number of clusters that was asked for, or chosen.
    count_choice_ : CountChoice or None
        How ``n_clusters_`` was chosen, and its runner-up, if it was "auto".
    n_different_ : int
        Number of different rows that have a weight; of a precomputed kernel, of rows.
    sample_weight_ : ndarray of shape (n_samples,)
        How many times each row counts, 1 where nothing else was said.
    weights_ : ndarray of shape (n_samples,)
        Kernel weights; times ``sample_weight_`` their sum is 1.
    support_ : ndarray of shape (n_support,)
        Indices of the points with positive weight.
    strays_ : ndarray of shape (n_strays,)
        Indices of the points that have no similarity to any cluster, or next to none,
        outliers mostly. They have the label of their nearest neighbour; with a
        precomputed kernel that of the point most similar to them, or, if all are 0, of
        that with the largest similarities.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        Spectral embedding with unit rows; fewer columns where there are fewer distinct
        points.
    eigenvalues_ : ndarray of shape (n_clusters,)
        Leading eigenvalues of the normalised similarity, largest first.
    history_ : ndarray of shape (n_accepted + 1,)
        Merit of the first weights and after each accepted round; never increases.
    n_iter_ : int
        Number of rounds made, a last one that was not accepted included.
    converged_ : bool
        Whether the rounds ended before ``max_iter`` was exhausted.
    qp_gap_ : float
        Relative KKT gap of the weights in their quadratic program; NaN if the first
        weights were kept.
    kernel_ : str
        The kernel in use, in words.
    bandwidth_ : float or ndarray of shape (n_samples,)
        Bandwidth(s) in use; None for other kernels.
    lam_ : float
        Regularisation in use.
    margins_ : ndarray of shape (n_samples,)
        Share of its own cluster in the kernel votes of the other points for a point,
        less the largest share of another cluster: near 1 inside a cluster, below 0
        where the votes contradict the label.
    typicality_ : ndarray of shape (n_samples,)
        Weighted kernel votes of the other points for any cluster, in units of their
        median: near 0 for outliers, whatever their margins.
    choice_ : Choice
        The kernels that were tried, their scores, and which was kept.
    approximation_ : Approximation or None
        Rank and errors of the approximated kernel: ``n_components``, ``trace_error``,
        relative, and ``largest_error``, that of 10,000 random entries. None if the
        kernel is exact.
    representation_ : Representation
        The view of the data that was taken, the scores of those it was compared with,
        and ``transform`` for new points.
    lambda_choice_ : LambdaChoice or None
        How lam was chosen, if it was "auto".
    params_ : dict
        Parameters of the fit, whatever has been set since.
    n_negative_ : int
        Number of negative eigenvalues of the similarity matrix that were split off.
    n_clipped_ : int
        Number of pairs of points whose discriminative similarity was negative and was
        set to 0; always 0 without negative eigenvalues.
    n_features_in_ : int
        Number of features seen by ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X had any.

    References
    ----------
    Yingzhen Yang and Ping Li. Discriminative Similarity for Data Clustering. ICLR 2022.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from cdsk import CDSK
    >>> X, _ = make_moons(200, noise=0.05, random_state=0)
    >>> model = CDSK(n_clusters=2, random_state=0).fit(X)
    >>> model.predict([[0.0, 1.0], [1.0, -0.5]]).tolist() == model.predict(
    ...     [[-0.5, 0.9], [1.5, -0.4]]
    ... ).tolist()
    True
    """

    labels_: NDArray[np.int64]
    clusters_: NDArray[np.int64]
    noise_: NoiseRule | None
    n_clusters_: int
    n_different_: int
    count_choice_: CountChoice | None
    sample_weight_: NDArray[np.float64]
    weights_: NDArray[np.float64]
    support_: NDArray[np.intp]
    strays_: NDArray[np.intp]
    embedding_: NDArray[np.float64]
    eigenvalues_: NDArray[np.float64]
    history_: NDArray[np.float64]
    n_iter_: int
    converged_: bool
    qp_gap_: float
    kernel_: str
    bandwidth_: float | NDArray[np.float64] | None
    lam_: float
    margins_: NDArray[np.float64]
    typicality_: NDArray[np.float64]
    choice_: Choice
    approximation_: Approximation | None
    representation_: Representation
    lambda_choice_: LambdaChoice | None
    params_: dict[str, Any]
    n_negative_: int
    n_clipped_: int
    n_features_in_: int
    feature_names_in_: NDArray[Any]

    def __init__(
        self,
        n_clusters: int | str = 8,
        *,
        kernel: str | Callable[..., ArrayLike] = "rbf",
        kernel_params: dict[str, Any] | None = None,
        psd: bool | None = None,
        bandwidth: float | str = "auto",
        n_neighbors: int | None = None,
        neighbors: Any = None,
        approximation: str | None = None,
        n_components: int | None = None,
        representation: str = "auto",
        lam: float | str = 0.2,
        init: str | ArrayLike = "uniform",
        max_iter: int = 20,
        tol: float = 1e-4,
        qp_tol: float = 1e-4,
        eigen_solver: str = "auto",
        assign_labels: str = "kmeans",
        n_init: int = 10,
        noise: float | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.psd = psd
        self.bandwidth = bandwidth
        self.n_neighbors = n_neighbors
        self.neighbors = neighbors
        self.approximation = approximation
        self.n_components = n_components
        self.representation = representation
        self.lam = lam
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.qp_tol = qp_tol
        self.eigen_solver = eigen_solver
        self.assign_labels = assign_labels
        self.n_init = n_init
        self.noise = noise
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    def fit(
        self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Cluster X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, n_samples)
            Data, or a kernel matrix if ``kernel="precomputed"``.
        y : Ignored
            Present for the scikit-learn API.
        sample_weight : array-like of shape (n_samples,), default=None
            How many times each row counts, in whole or broken numbers; None means
            once. A row of weight 0 takes no part in the fit and is judged as a new
            point is: its label is that of ``predict``, its margin and typicality are
            those of the votes of all points. Its rows of ``embedding_`` and
            ``bandwidth_`` are those of the nearest point.

        Returns
        -------
        self : CDSK
        """
        with (
            unchanged_if_it_fails(self),
            one_thread_if_forked(),
            said_in_words("A fit of so many points"),
        ):
            X = self._check_all(X)
            weights = check_sample_weight(sample_weight, X, self.kernel in GIVEN)
            with Progress(self.verbose) as progress:
                return self._fit(X, weights, progress)

    def _fit(self, X, sample_weight, progress):
        rng = check_random_state(self.random_state)
        n_threads = resolve_n_threads(self.n_threads)
        points = self._points_of(X, sample_weight)
        points = self._represent_and_count(points, X, rng, n_threads, progress)
        n_clusters = min(self.n_clusters_, points.n_different)
        # where every cluster is one point there is nothing to learn
        only_copies = points.n_different <= self.n_clusters_
        max_iter = 0 if only_copies else self.max_iter

        masses = points.relative_masses
        lam, lambda_choice = self.lam, None
        if isinstance(lam, str):
            progress.stage("lam", "choice of lam")
            lambda_choice = self._choose_lambda(
                *(points, n_clusters, rng, n_threads, progress),
                **{"grid": GRID, "sample": 0.1, "criterion": "entropy"},
            )
            lam = lambda_choice.lam
        progress.stage("neighbours")
        candidates = self._candidates(points.X, rng, n_threads, progress, masses)
        if n_clusters < self.n_clusters_:
            warn_of_copies(n_clusters, self.n_clusters_, stacklevel=4)
        fits: list[Fit] = []
        weights, partitions = None, []
        # several kernels are compared by rough eigenvectors; the winner's are refined
        several = len(candidates) > 1
        eigen_tol = ROUGH if several else TOLERANCE

        def label(kernel, fit):
            if only_copies:
                return np.arange(len(points)) % n_clusters
            return self._label(kernel, fit, rng, points.masses)

        for i, candidate in enumerate(candidates):
            progress.stage(
                "kernels",
                f"kernel {i + 1} of {len(candidates)}: {candidate.name}",
                span=(i / len(candidates), (i + 1) / len(candidates)),
            )
            kernel = candidate.kernel()
            if weights is None:  # from the points alone, which all kernels share
                init = check_init(self.init, points, lam)
                weights = first_weights(kernel, lam, init)
            # the next kernel is a little narrower, and so are its eigenvectors similar
            start = fits[-1].first_solution if fits else None
            fit = self._alternate(
                *(kernel, n_clusters, lam, weights, max_iter, rng, progress),
                *(eigen_tol, start),
            )
            fits.append(fit)
            partitions.append(label(kernel, fit))
        names = [candidate.name for candidate in candidates]
        resolved = [fit.resolved for fit in fits]
        choice = choose(names, partitions, n_clusters, resolved, points.masses)
        candidate, fit = candidates[choice.chosen], fits[choice.chosen]
        labels = partitions[choice.chosen]
        if several:
            progress.stage("winner", f"the winner: {candidate.name}")
            kernel = candidate.kernel()
            if fit.is_rough:
                fit = self._alternate(
                    *(kernel, n_clusters, lam, weights, max_iter, rng, progress),
                    start=fit.first_solution,
                )
                labels = label(kernel, fit)
        else:  # where the data chose, outliers are to be expected
            warn_of_strays(fit.embedding, kernel, stacklevel=4)
        if fit.complaint is not None:
            warnings.warn(fit.complaint, ConvergenceWarning, stacklevel=3)
        warn_of_fewer_clusters(labels, n_clusters, kernel, stacklevel=4)

        progress.stage("margins")
        of_rows = points.to_rows
        self.clusters_ = of_rows(labels)
        self.labels_ = self.clusters_.copy()
        self.noise_ = None
        if self.noise:
            neighbours = Neighbours(
                *(points.X, NEIGHBOUR), rank=NEIGHBOUR, n_threads=n_threads
            )
            self.noise_ = find_noise(neighbours, labels, self.noise, masses)
            self.labels_[of_rows(self.noise_.marks())] = -1
        self.sample_weight_ = points.counts.copy()
        has_weight = self.sample_weight_ > 0
        self.weights_ = of_rows(points.per_copy(fit.weights)) * has_weight
        self.support_ = np.flatnonzero(self.weights_)
        self.strays_ = np.flatnonzero(of_rows(fit.embedding.stray) & has_weight)
        self.embedding_ = of_rows(fit.embedding.vectors.T)
        self.eigenvalues_ = fit.embedding.eigenvalues
        margins, typicality, unit = leave_one_out(kernel, labels, fit.weights, masses)
        self.margins_, self.typicality_ = of_rows(margins), of_rows(typicality)
        self.history_ = np.array(fit.history)
        self.n_iter_ = fit.n_iter
        self.converged_ = fit.complaint is None
        self.qp_gap_ = fit.qp_gap
        self.kernel_ = candidate.description
        bandwidth = candidate.bandwidth
        self.bandwidth_ = of_rows(bandwidth) if np.ndim(bandwidth) else bandwidth
        self.lam_ = float(lam)
        self.choice_ = choice
        self.approximation_ = kernel.approximation
        self.lambda_choice_ = lambda_choice
        self.params_ = self.get_params(deep=False)
        self.n_negative_ = kernel.n_negative
        self.n_clipped_ = fit.embedding.n_clipped
        votes = points.of_all_copies(fit.weights)
        self._votes = candidate.votes(labels, votes, self.n_clusters_)
        if isinstance(candidate, Precomputed):
            candidate = replace(candidate, matrix=None)
        self._candidate = candidate
        self.n_different_ = points.n_different
        points.X = None  # the candidate has it
        self._points = points
        if len(points.lost):
            total = 1.0 if masses is None else np.sum(fit.weights * masses)
            self._judge_lost(X, np.log(unit / total), n_threads)
        return self

    def _judge_lost(self, X, log_unit, n_threads):
        """Judge rows of the fit that have no weight as new points are."""
        lost = X[self._points.lost]
        for part in parts_of_rows(lost):
            rows = self._points.lost[part]
            new = self.representation_.of_checked(lost[part], n_threads)
            votes = self._votes.log_votes(new, n_threads)
            clusters, labels, _ = self._judged(votes, new, n_threads)
            self.clusters_[rows], self.labels_[rows] = clusters, labels
            self.margins_[rows], self.typicality_[rows] = of_new_points(votes, log_unit)

    def fit_predict(
        self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> NDArray[np.int64]:
        """Cluster X and return ``labels_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, n_samples)
            As for ``fit``.
        y : Ignored
            Present for the scikit-learn API.
        sample_weight : array-like of shape (n_samples,), default=None
            As for ``fit``.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        return self.fit(X, sample_weight=sample_weight).labels_

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Cluster of new points: the one with the largest weighted kernel vote.

        -1 for noise, if ``noise`` asks for it: by the thresholds of the fit, and by the
        distances to its points.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features) or (n_new, n_samples)
            New points, or their kernel values to the training points if
            ``kernel="precomputed"``.

        Returns
        -------
        labels : ndarray of shape (n_new,)
        """
        check_is_fitted(self, "labels_")
        n_threads = resolve_n_threads(self.n_threads)
        lost = 0

        def label(votes, part):
            nonlocal lost
            _, labels, alone = self._judged(votes, part, n_threads)
            lost += np.count_nonzero(alone & (labels >= 0))
            return labels

        labels = self._from_votes(X, label)
        if lost:
            warnings.warn(
                f"{lost} of {len(labels)} points have no similarity to any "
                "training point and took the label of the heaviest cluster.",
                UserWarning,
                stacklevel=2,
            )
        return labels

    def _judged(self, log_votes, new, n_threads):
        """Clusters and labels of new points, and which of them nobody votes for."""
        alone = np.isneginf(log_votes.max(axis=1))
        clusters = np.argmax(log_votes, axis=1)
        if alone.any():
            clusters[alone] = self._points.heaviest(self.clusters_, self.weights_)
        labels = clusters.copy()
        if self.noise_ is not None:
            labels[self.noise_.marks_new(new, n_threads)] = -1
        return clusters, labels, alone

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Logarithm of the weighted kernel votes of every cluster.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features) or (n_new, n_samples)
            New points as for ``predict``.

        Returns
        -------
        log_votes : ndarray of shape (n_new, n_clusters)
            -inf for a cluster none of whose points carries weight.
        """
        check_is_fitted(self, "labels_")
        return self._from_votes(X, lambda votes, _: votes)

    def score_samples(self, X: ArrayLike) -> NDArray[np.float64]:
        """Logarithm of the weighted kernel density.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features) or (n_new, n_samples)
            New points as for ``predict``.

        Returns
        -------
        log_density : ndarray of shape (n_new,)
            For the Gaussian kernel with one bandwidth the density integrates to 1; for
            other kernels it is the sum of the votes.
        """
        check_is_fitted(self, "labels_")
        normaliser = self._votes.log_normaliser(self.n_features_in_)
        return self._from_votes(
            X, lambda votes, _: logsumexp(votes, axis=1) + normaliser
        )

    def report(
        self,
        X: Any = None,
        *,
        feature_names: Iterable[str] | None = None,
        row_names: Iterable[object] | None = None,
    ) -> Report:
        """Summary of the fit: what was chosen and why, and what to trust.

        ``print`` shows it in words, ``to_dict`` has it as plain data, ``to_html`` makes
        a page of it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_columns), default=None
            What typical rows and outliers are to be shown with: the data, or any other
            table of the same rows. None shows their numbers alone.
        feature_names : iterable of str, default=None
            Names of the columns of X; None takes those of a data frame, or of ``fit``.
        row_names : iterable, default=None
            Names of the rows; None means their numbers, from 0.

        Returns
        -------
        report : Report
        """
        check_is_fitted(self, "labels_")
        return report_of(self, X, feature_names, row_names)

    @said_in_words("The bound for so many points")
    def generalization_bound(
        self, X: ArrayLike | None = None, *, gamma: float = 1.0, delta: float = 0.05
    ) -> GeneralizationBound:
        """Terms of the paper's bound on the error of the votes.

        The bound is for votes by the kernel matrix of the fit. ``predict`` votes alike,
        but for a kernel that is truncated to neighbours, as the default one is: there
        it counts the neighbours of the new point alone, while the matrix is symmetric,
        so that points also count those whose neighbours they are, and its diagonal was
        raised until it was semi-definite. For these the bound is one for a relative
        of ``predict``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, n_samples)
            What the model was fitted to. Needed if ``kernel="precomputed"``, as kernel
            matrices are not kept; else None means the data kept by ``fit``.
        gamma : float, default=1.0
            Margin at which a point costs nothing, in the unit of the kernel; where its
            largest value is below 1e-100 or above 1e100, in the power of two below it.
        delta : float in (0, 1], default=0.05
            Probability with which the bound may fail.

        Returns
        -------
        bound : GeneralizationBound
            See ``cdsk.theory.generalization_bound``.
        """
        check_is_fitted(self, "labels_")
        K = self._points.between_rows(self._kernel_of(X).as_array())
        kept = self._points.rows
        labels, weights = self.clusters_[kept], self.weights_[kept]
        if self._points.masses is not None:
            weights = weights / weights.sum()
        with one_thread_if_forked():
            return generalization_bound(K, labels, weights, gamma=gamma, delta=delta)

    @said_in_words("The similarity of so many points")
    def similarity_operator(self, X: ArrayLike | None = None) -> LinearOperator:
        """The normalised similarity, whose leading eigenvectors are the embedding.

        ``D^-1/2 S D^-1/2`` with the discriminative similarity S of the chosen kernel
        and the learned weights, its diagonal left out, and its row sums D.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, n_samples)
            As for ``generalization_bound``.

        Returns
        -------
        operator : scipy.sparse.linalg.LinearOperator of shape (n_samples, n_samples)
        """
        check_is_fitted(self, "labels_")
        kernel = self._kernel_of(X)
        points, n = self._points, len(self.labels_)
        weights = points.from_rows(self.weights_)
        if points.masses is not None:
            weights = weights / weights.sum()
        similarity = kernel.similarity(weights, kernel.n * self.lam_)

        def product(columns):
            columns = np.asarray(columns, dtype=float)
            vectors = points.folded(columns.reshape(n, -1)).T
            image = similarity.normalised_product(np.ascontiguousarray(vectors))
            return points.unfolded(image.T).reshape(columns.shape)

        return LinearOperator((n, n), matvec=product, matmat=product, dtype=float)

    def __sklearn_tags__(self):
        """Tags for scikit-learn: a precomputed kernel is pairwise."""
        tags = super().__sklearn_tags__()
        given = isinstance(self.kernel, str) and self.kernel in GIVEN
        tags.input_tags.pairwise = tags.input_tags.sparse = given
        tags.input_tags.positive_only = given and self.kernel == "precomputed"
        return tags

    def _check_all(self, X):
        fewest = 3 if isinstance(self.n_clusters, str) else 2
        X = self._check_data(X, reset=True, ensure_min_samples=fewest)
        check_parameters(self)
        if not isinstance(self.n_clusters, str):
            check_n_clusters(self.n_clusters, X.shape[0])
        return X

    def _check_data(self, X, *, reset, **options):
        """X checked; ``reset`` is scikit-learn's, None: its features are known."""
        validate = None if reset is None else partial(validate_data, self, reset=reset)
        if isinstance(self.kernel, str) and self.kernel in GIVEN:
            options["accept_sparse"] = "csr"
        return check_points(X, validate=validate, **options)

    @said_in_words("Voting for so many points")
    def _from_votes(self, X, function):
        """``function`` of log votes for rows of X, and of these, a part at a time.

        Nothing is made of all rows but the result: X may be a memory map.
        """
        n_threads = resolve_n_threads(self.n_threads)
        checked = not can_be_cut(X)
        if checked:
            X = self._check_data(X, reset=False)
        n, found = X.shape[0], None
        for rows in parts_of_rows(X):
            with one_thread_if_forked(), said_of_rows(rows):
                part = getattr(X, "iloc", X)[rows]
                if not checked:
                    first = rows.start == 0
                    part = self._check_data(part, reset=False if first else None)
                part = self.representation_.of_checked(part, n_threads)
                values = function(self._votes.log_votes(part, n_threads), part)
            if found is None:
                shape = n, *values.shape[1:]
                check_memory(8 * math.prod(shape), "The result", "Use fewer rows.")
                found = np.empty(shape, dtype=values.dtype)
            found[rows] = values
        return found

    def _points_of(self, X, sample_weight):
        """The points of X, not yet represented."""
        if self.kernel in GIVEN:
            return Points.as_given(X, sample_weight)
        points = Points.distinct(X, sample_weight)
        return points if len(points) > 1 else points.halved()

    def _in_order(self, points, X, n_threads):
        """The points as they are represented, near ones together."""
        if self.kernel in GIVEN:
            return points
        representation = self.representation_
        points = points.near_together(representation.of_checked(points.X, n_threads))
        if len(points.lost):
            new = representation.of_checked(X[points.lost], n_threads)
            nearest, distances = PointSearch(points.X).nearest_to(new, 1, n_threads)
            points.adopt(nearest[:, 0], distances[:, 0])
        return points

    def _represent_and_count(self, points, X, rng, n_threads, progress):
        """The points as they are represented.

        Sets ``representation_``, ``n_clusters_`` and ``count_choice_``.
        """
        progress.stage("representation")
        self.count_choice_ = None
        # of two points there is nothing to count
        few = points.n_different < 3
        if few or not isinstance(self.n_clusters, str):
            counted = isinstance(self.n_clusters, str)
            self.n_clusters_ = points.n_different if counted else int(self.n_clusters)
            self._represent(points, self.n_clusters_, rng, n_threads)
            return self._in_order(points, X, n_threads)
        counts = default_candidates(len(points))
        views = self._represented(
            represent_to_count, points, int(counts[-1]), rng, n_threads
        )
        progress.stage("count", "number of clusters")
        self.count_choice_ = choose_count(
            points, views, counts, rng, n_threads, stacklevel=5
        )
        self.n_clusters_ = self.count_choice_.n_clusters
        if self.representation == "auto":
            self._represent(points, self.n_clusters_, rng, n_threads)
        else:
            (self.representation_,) = views
        return self._in_order(points, X, n_threads)

    def _represent(self, points, n_clusters, rng, n_threads):
        """Set ``representation_``."""
        self.representation_ = Representation()
        if self.kernel not in GIVEN:
            self.representation_ = self._represented(
                represent, points, n_clusters, rng, n_threads
            )

    def _represented(self, how, points, n_clusters, rng, n_threads):
        """What ``represent``, or another function of its arguments, finds."""
        view = self.representation
        # a bandwidth that was given means the data as they were given
        if view == "auto" and (self.kernel, self.bandwidth) != ("rbf", "auto"):
            view = "raw"
        more = self.n_components, points.relative_masses
        return how(points.X, n_clusters, view, rng, n_threads, *more)

    def _candidates(self, X, rng, n_threads, progress, masses=None):
        bandwidth, neighbors = self.bandwidth, self.neighbors
        if self.kernel not in GIVEN and len(X) == 2 and (X[0] == X[1]).all():
            # one point, halved: nothing is to be searched for, any scale will do
            neighbors = None
            bandwidth = 1.0 if bandwidth == "auto" else bandwidth
        return find_candidates(
            X,
            kernel=self.kernel,
            kernel_params=self.kernel_params,
            psd=self.psd,
            bandwidth=bandwidth,
            n_neighbors=self.n_neighbors,
            n_clusters=self.n_clusters_,
            n_features=self.representation_.n_varying,
            neighbors=neighbors,
            progress=progress.listener(LongSearch(progress.say)),
            approximation=self.approximation,
            n_components=self.n_components,
            rng=rng,
            n_threads=n_threads,
            masses=masses,
        )

    def _kernel_of(self, X=None):
        """The chosen kernel of the points of the fit."""
        candidate = self._candidate
        if X is not None:
            X = self._check_data(X, reset=False)
            if X.shape[0] != len(self.labels_):
                raise ValueError(
                    "X must be what the model was fitted to, with "
                    f"{len(self.labels_)} rows; got {X.shape[0]}."
                )
        if isinstance(candidate, Precomputed):
            if X is None:
                raise ValueError(
                    "X must be the kernel matrix that the model was fitted to, since "
                    "precomputed matrices are not kept; got None."
                )
            candidate = replace(candidate, matrix=X)
        with one_thread_if_forked():
            return candidate.kernel()

    def _label(self, kernel, fit, rng, masses):
        return assign_labels(
            fit.embedding.vectors,
            self.assign_labels,
            kernel=kernel,
            masses=masses,
            n_init=self.n_init,
            random_state=rng,
        )

    def _alternate(
        self,
        kernel,
        n_clusters,
        lam,
        weights,
        max_iter,
        rng,
        progress,
        eigen_tol=TOLERANCE,
        start=None,
    ):
        return alternate(
            kernel,
            n_clusters,
            lam,
            weights,
            max_iter=max_iter,
            tol=self.tol,
            qp_tol=self.qp_tol,
            eigen_solver=self.eigen_solver,
            rng=rng,
            eigen_tol=eigen_tol,
            start=start,
            report=progress.round if progress.verbose else None,
        )

    def _choose_lambda(self, points, n_clusters, rng, n_threads, progress, **how):
        """The ``LambdaChoice``; ``how`` are grid, sample and criterion."""
        masses = points.relative_masses

        def candidates(X, rows):
            part = X[rows][:, rows] if self.kernel == "precomputed" else X[rows]
            part = part if sparse.issparse(part) else np.ascontiguousarray(part)
            theirs = None if masses is None else masses[rows]
            return self._candidates(part, rng, n_threads, progress, theirs)

        # weights given for all points are none for a sample
        init = self.init if isinstance(self.init, str) else "uniform"

        def fit(kernel, lam):
            weights = first_weights(kernel, lam, init)
            return self._alternate(
                kernel, n_clusters, lam, weights, self.max_iter, rng, progress
            )

        options = {"n_init": self.n_init, "rng": rng, **how}
        return choose_lambda(points.X, candidates, fit, n_clusters, **options)


def select_lambda(
    X: ArrayLike,
    n_clusters: int | str,
    *,
    grid: ArrayLike = GRID,
    sample: float = 0.1,
    criterion: str = "entropy",
    sample_weight: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
    **parameters: Any,
) -> LambdaChoice:
    """Regularisation chosen by fits of a random sample, without labels.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features) or (n_samples, n_samples)
        Data, or a kernel matrix if ``kernel="precomputed"``.
    n_clusters : int or "auto"
        Number of clusters as in ``CDSK``.
    grid : array-like, default=(0.05, 0.1, ..., 0.5)
        Values to try, in (0, 1].
    sample : float, default=0.1
        Fraction of the points in a fit; at least 100 points and 10 per cluster are
        taken, or all of them.
    criterion : {"entropy", "paper", "cut", "stability"}, default="entropy"
        What the chosen value makes smallest: the mean entropy of the softmax of the
        embedding's rows (unit rows, rotated to the axes, temperature 0.1); the same as
        the paper prints it (raw rows, temperature 1); the normalised cut of the labels
        in the graph of the kernel; the disagreement of labels between two samples.
    sample_weight : array-like of shape (n_samples,), default=None
        How many times each row counts; None means once.
    random_state : int, RandomState instance or None, default=None
        Draws the sample and seeds the fits.
    **parameters
        Other parameters of ``CDSK``: kernel, bandwidth, init, max_iter, ... Weights
        given as ``init`` are checked, but samples start from uniform ones. Of the six
        kernels of ``bandwidth="auto"`` only the fourth, in the middle, is judged.

    Returns
    -------
    choice : LambdaChoice
        The choice, the grid and the curve.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from cdsk import select_lambda
    >>> X, _ = make_blobs(300, centers=3, random_state=0)
    >>> choice = select_lambda(X, 3, random_state=0)
    >>> choice.lam in choice.grid, choice.curve.shape, choice.n_sample
    (True, (10,), 100)
    """
    if "lam" in parameters:
        raise ValueError(
            "select_lambda chooses lam and does not take it; use grid for the values "
            "to choose from."
        )
    model = CDSK(n_clusters, lam="auto", random_state=random_state, **parameters)
    X = model._check_all(X)
    if not isinstance(model.init, str):
        check_simplex_point(model.init, X.shape[0], 1.0, "init")
    check_number(sample, "sample", above=0, at_most=1)
    check_choice(criterion, "criterion", CRITERIA)
    grid = [
        check_number(value, "Each value of grid", above=0, at_most=1)
        for value in np.ravel(grid).tolist()
    ]
    if not grid:
        raise ValueError("grid must hold at least one value; got none.")
    sample_weight = check_sample_weight(sample_weight, X, model.kernel in GIVEN)
    points = model._points_of(X, sample_weight)
    rng = check_random_state(random_state)
    n_threads = resolve_n_threads(model.n_threads)
    with (
        one_thread_if_forked(),
        said_in_words("Choosing lam"),
        Progress(model.verbose) as progress,
    ):
        points = model._represent_and_count(points, X, rng, n_threads, progress)
        n_clusters = min(model.n_clusters_, points.n_different)
        progress.stage("lam", "choice of lam")
        return model._choose_lambda(
            *(points, n_clusters, rng, n_threads, progress),
            **{"grid": grid, "sample": sample, "criterion": criterion},
        )
