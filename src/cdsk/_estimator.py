# SPDX-License-Identifier: BSD-3-Clause
"""The scikit-learn estimator: checks, attributes, and the order of the stages."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import ClusterMixin
from sklearn.utils.validation import validate_data

from cdsk._choices.candidates import Precomputed
from cdsk._choices.lam import GRID, LambdaChoice
from cdsk._choices.n_clusters import CountChoice
from cdsk._choices.partition import Choice, choose
from cdsk._choices.representation import Representation
from cdsk._explain.margins import leave_one_out, left_out_votes, of_new_points
from cdsk._explain.noise import NEIGHBOUR, NoiseRule, find_noise
from cdsk._explain.probabilities import LeftOutVotes
from cdsk._inspection import Inspection
from cdsk._kernels.lowrank import Approximation
from cdsk._kernels.neighbours import Neighbours
from cdsk._kernels.sparse_rows import canonical
from cdsk._parameters import (
    GIVEN,
    check_for_sparse,
    check_parameters,
    refused_for_sparse,
)
from cdsk._points import warn_of_copies
from cdsk._prediction import Prediction, search_among
from cdsk._progress import Progress
from cdsk._runtime import (
    one_thread_if_forked,
    said_in_words,
    unchanged_if_it_fails,
)
from cdsk._stages import Stages
from cdsk._steps.alternate import Fit
from cdsk._steps.eigen import ROUGH, TOLERANCE
from cdsk._steps.spectral import warn_of_fewer_clusters, warn_of_strays
from cdsk._steps.start import check_init, first_weights
from cdsk._threads import resolve_n_threads
from cdsk._validation import (
    Data,
    check_n_clusters,
    check_points,
    check_random_state,
    check_sample_weight,
    parts_of_rows,
    unit_rows,
)
from cdsk._warn import warn


class CDSK(ClusterMixin, Prediction, Inspection, Stages):
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
    metric : {"euclidean", "cosine"}, default="euclidean"
        Distance between points. "cosine" divides every row by its length before
        anything else, so that directions count alone: Euclidean distances of unit rows
        are in the order of the cosine ones. Rows of zeros are refused.
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
    probabilities_ : ndarray of shape (n_samples,)
        Probability of the cluster of each point by the votes of the others; 0 for
        noise. It is calibrated: of the points whose largest probability is p, a share
        p has the label that the others vote for. Computed when it is asked for.
    outlier_scores_ : ndarray of shape (n_samples,)
        ``1 / (1 + typicality_)``: 1 for a point that no other votes for, 1/2 for a
        middling one, near 0 in the midst of a cluster. Computed when it is asked for.
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
    feature_names_in_ : ndarray of shape (n_features,)
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
        metric: str = "euclidean",
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
        self.metric = metric
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
        self, X: Data, y: object = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Cluster X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or \
                (n_samples, n_samples)
            Data, or a kernel matrix if ``kernel="precomputed"``.
        y : Ignored
            Present for the scikit-learn API.
        sample_weight : array-like of shape (n_samples,), default=None
            How many times each row counts, in whole or broken numbers; None means
            once. A row of weight 0 takes no part in the fit and is judged as a new
            point is: its label is that of ``predict``, its margin and typicality are
            those of the votes of all points, its place in ``embedding_`` is that of
            ``transform``. Its ``bandwidth_`` is that of the nearest point.

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
            warn_of_copies(n_clusters, self.n_clusters_, self._counted)
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
        choice = choose(
            *(names, partitions, n_clusters),
            candidates[0].kernel().neighbourhood() if several else None,
            **{"resolved": resolved, "masses": points.masses},
        )
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
            warn_of_strays(fit.embedding, kernel)
        if fit.complaint is not None:
            warn(fit.complaint)
        warn_of_fewer_clusters(labels, n_clusters, kernel)

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
        self._lengths = fit.embedding.lengths
        self.eigenvalues_ = fit.embedding.eigenvalues
        others = left_out_votes(kernel, labels, fit.weights, masses, self.n_clusters_)
        margins, typicality, unit = leave_one_out(others, labels, masses)
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
        self._search = search_among(candidate)
        with np.errstate(divide="ignore"):
            others = of_rows(np.log(others.T))
        shares = points.shares(self.clusters_, self.weights_, self.n_clusters_)
        self._left_out = LeftOutVotes(
            others, self.clusters_, self.sample_weight_, shares
        )
        if isinstance(candidate, Precomputed):
            candidate = replace(candidate, matrix=None)
        self._candidate = candidate
        self.n_different_ = points.n_different
        self._is_sparse = sparse.issparse(points.X)
        points.X = None  # the candidate has it
        self._points = points
        if len(points.lost):
            total = 1.0 if masses is None else np.sum(fit.weights * masses)
            self._judge_lost(X, np.log(unit / total), n_threads)
        return self

    def _judge_lost(self, X, log_unit, n_threads):
        """Judge rows of the fit that have no weight as new points are."""
        lost, place = X[self._points.lost], self._placed()
        for part in parts_of_rows(lost):
            rows = self._points.lost[part]
            new = self.representation_.of_checked(lost[part], n_threads)
            votes = self._votes.log_votes(new, n_threads)
            clusters, labels, _ = self._judged(votes, new, n_threads)
            self.clusters_[rows], self.labels_[rows] = clusters, labels
            self._left_out.log_votes[rows] = votes
            self.embedding_[rows] = place(new)
            self.margins_[rows], self.typicality_[rows] = of_new_points(votes, log_unit)

    def fit_predict(
        self, X: Data, y: object = None, sample_weight: ArrayLike | None = None
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

    def __sklearn_tags__(self):
        """Tags for scikit-learn: what X may be, by the parameters."""
        tags = super().__sklearn_tags__()
        given = isinstance(self.kernel, str) and self.kernel in GIVEN
        tags.input_tags.pairwise = given
        tags.input_tags.sparse = given or refused_for_sparse(self) is None
        tags.input_tags.positive_only = given and self.kernel == "precomputed"
        return tags

    def _check_all(self, X):
        fewest = 3 if isinstance(self.n_clusters, str) else 2
        X = self._check_data(X, reset=True, ensure_min_samples=fewest)
        check_parameters(self)
        if sparse.issparse(X) and self.kernel not in GIVEN:
            check_for_sparse(self)
        if not isinstance(self.n_clusters, str):
            check_n_clusters(self.n_clusters, X.shape[0])
        return X

    def _check_data(self, X, *, reset, **options):
        """X checked; ``reset`` is scikit-learn's, None: its features are known."""
        validate = None if reset is None else partial(validate_data, self, reset=reset)
        X = check_points(X, validate=validate, accept_sparse="csr", **options)
        if isinstance(self.kernel, str) and self.kernel in GIVEN:
            return X
        if not reset:
            X = self._as_fitted(X)
        X = canonical(X) if sparse.issparse(X) else X
        is_cosine = isinstance(self.metric, str) and self.metric == "cosine"
        return unit_rows(X) if is_cosine else X

    def _as_fitted(self, X):
        """New points as sparse or dense as those of the fit."""
        if self._is_sparse:
            return sparse.csr_array(X)
        if sparse.issparse(X):
            raise ValueError(
                "X must be dense, as the data of the fit were; got a sparse matrix. "
                "Expected X.toarray(), or a fit of sparse data."
            )
        return X
