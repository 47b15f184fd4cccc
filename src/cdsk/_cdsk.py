# SPDX-License-Identifier: BSD-3-Clause
"""The estimator ``CDSK`` (tests/test_estimator.py).

``fit`` calls the stages (``_fit.py``) in their order and copies the result to the
attributes; the other methods ask the predictor of the fit.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from scipy.special import logsumexp
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted, validate_data

from cdsk._candidate_fits import refine
from cdsk._candidates import OtherKernel, sample_rows
from cdsk._coding import has_missing
from cdsk._columns import (
    Columns,
    as_table,
    check_coding,
    check_infinity,
    check_missing,
    check_rows,
    refuse_categories,
    warn_unknown,
)
from cdsk._constraints import Constraints, cluster_names, read_constraints
from cdsk._fit import finish, preprocess, resolve_lam
from cdsk._layers import Layers, LeafPredictor, find_layers
from cdsk._missing import MissingCells
from cdsk._neighbors import canonical_csr
from cdsk._operators.base import Array, Kernel, Similarity
from cdsk._operators.low_rank import Approximation
from cdsk._profiles import LabeledTable, Profiles, compute_profiles
from cdsk._result import FitResult
from cdsk._rules import Rules, compute_rules
from cdsk._settings import FitContext, Settings
from cdsk._sizes import find_bounds
from cdsk._threads import resolve_n_threads
from cdsk._utils import (
    Progress,
    check_memory,
    explain_memory_error,
    limit_blas_threads,
    one_thread_if_forked,
    rollback_on_error,
    warn,
)
from cdsk._validation import (
    CATEGORIES_HINT,
    PRECOMPUTED_KERNELS,
    Data,
    check_integer,
    check_n_clusters,
    check_number,
    check_parameters,
    check_points,
    check_random_state,
    check_sample_weight,
    check_size_of_frame,
    is_frame,
    iter_row_chunks,
    normalize_rows,
    offset_row_numbers,
    sparse_error,
    supports_row_slicing,
)
from cdsk._view_fits import fit_views

if TYPE_CHECKING:  # satellites, imported by the methods that need them
    from cdsk._stability import Stability
    from cdsk.report._report import Report
    from cdsk.theory import GeneralizationBound

Labels = NDArray[np.int64]


class CDSK(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator
):
    """Clustering by discriminative similarity via unsupervised kernel classification.

    Alternates a spectral step on the similarity ``S_ij = 2 (a_i + a_j - n lam a_i a_j)
    K_ij`` with a quadratic program for the kernel weights ``a``, which reduce the
    influence of points that blur the clusters. The weighted votes of the points
    classify new ones. See ``docs/method.md`` for the equations.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of clusters. "auto" selects it as ``suggest_n_clusters`` does, which
        needs points. Equal points are never split: if there are fewer distinct points,
        each is a cluster, and a warning says so (not for a precomputed kernel, whose
        points are not known).
    kernel : str or callable, default="rbf"
        "rbf" is the Gaussian kernel. "precomputed" takes X as a similarity matrix; the
        diagonal of a sparse one is not used, but set to the largest similarity or to
        what makes the matrix positive semi-definite. "precomputed_neighbors" takes X as
        a sparse matrix of the distances between neighbors, and applies the Gaussian
        kernel to them. A callable ``kernel(A, B)`` returns the matrix of values between
        the rows of A and B. "chi2", "cosine", "laplacian", "linear", "polynomial"
        ("poly") and "sigmoid" are those of ``sklearn.metrics.pairwise``; cosine and
        sigmoid values k become (k + 1) / 2. Similarities must be symmetric and
        non-negative; they need not be positive semi-definite (see ``psd``).
    kernel_params : dict, default=None
        Parameters of a named kernel, or further arguments of a callable.
    metric : {"euclidean", "cosine"}, default="euclidean"
        Distance between points. "cosine" normalizes every row to unit length first:
        Euclidean distances of unit rows have the order of cosine distances. Rows of
        zeros are refused.
    psd : bool, default=None
        Whether the similarity matrix is positive semi-definite. None: "rbf" is assumed
        to be, also with local bandwidths; a sparse or truncated matrix gets a larger
        diagonal if needed; other kernels are tested. False splits the matrix into its
        positive and negative part without a test (CDS with general similarities); True
        uses it as it is. Both make the full n x n matrix.
    bandwidth : float or str, default="auto"
        Bandwidth of the Gaussian kernel. "auto" fits six kernels on the graph of
        nearest neighbors, with bandwidths of 1/8 to 1 of the distance of each point to
        its 7th neighbor, and up to 1000 points one on all pairs. Of their partitions,
        by learned and by initial weights, and of ten by minimum spanning trees, it
        keeps the one that agrees most with the others (see ``choice_``). Other rules
        and numbers give one kernel on all pairs of points, whose learned weights are
        kept if they are not worse (see ``weight_choice_``), a number in the unit of the
        data: "neighbor": half the mean distance to the 7th neighbor; "variance":
        variance of the pairwise distances, as printed in the paper; "std": its square
        root; "median": the median distance; "local": one per point, a quarter of the
        distance to its 7th neighbor.
    n_neighbors : int, default=None
        Truncates the Gaussian kernel to pairs in which one point is among the
        n_neighbors nearest of the other. None: 20 for ``bandwidth="auto"``, or 5 if
        there are at least 60 features and fewer than 25 points per cluster; otherwise
        no truncation.
    neighbors : transformer, "approximate" or None, default=None
        Finds the neighbors, of which ``n_neighbors`` are used, or all if that is None:
        ``fit_transform(X)`` returns a sparse matrix of distances, as
        ``sklearn.neighbors.KNeighborsTransformer(mode="distance")`` does; ``predict``
        calls ``transform``. A clone is fitted. "approximate": of many dense points
        with many features most neighbors are found in less time, by pynndescent
        (``pip install cdsk[approximate]``); for new points the search is exact. None:
        exact search.
    approximation : {"lowrank"} or None, default=None
        "lowrank" is for more points than a kernel matrix fits in memory: a Gaussian
        kernel of one bandwidth is approximated by a matrix of low rank, a randomly
        pivoted Cholesky factorization. None uses the exact kernel.
    rank : int, default=None
        Rank of the approximation, at most ``n_samples``; None: the smallest that
        misses at most 5 % of the trace of the centered kernel, up to 2000.
    representation : {"auto", "raw", "standardize", "normal_scores", "whiten", \
            "layout", "chi_square", "indicators"}, default="auto"
        Transformation of the data: none; every feature has mean 0 and standard
        deviation 1; its values are replaced by the normal quantiles of their ranks;
        principal components of variance 1; positions in a layout of the neighbor graph,
        in which neighbors attract and other points repel each other. "auto" takes the
        view whose partitions agree most over the scales, or standardizes if there are
        fewer than 4 features and one varies more than twice as much as another (see
        ``representation_``); with many points, it may take the layout of that view. It
        is "raw" with another ``kernel`` or ``bandwidth``. Tables with categories have
        the last two: numbers are standardized, and a column of categories has the
        variance of one number ("indicators"), or of one less than its categories, rare
        ones counting more ("chi_square"); "auto" takes one of these.
    n_components : int, default=None
        Number of components for ``representation="whiten"``, where None is the rank of
        the data, or of dimensions of a layout, at most 16, where None is 10. Not used
        by "auto".
    categorical_features : "from_dtype", None, or array-like, default="from_dtype"
        Columns of categories: those of text, truth values, objects or categories of a
        pandas or polars frame; or their names, numbers, or a mask. None: there are
        none, and such columns are refused. Columns that name rows are left out. A
        table with categories is clustered by kernels on all pairs of at most 3000
        random rows; the others have weight 0.
    missing : {"auto", "error"}, default="auto"
        "auto" accepts missing cells: NaN, None, pandas' NA, polars' null, and masked
        cells. A number is filled from the 10 nearest rows, of at most 2000 of the fit,
        or by the mean of its column, if the fit had no missing cells or X is sparse. A
        category has the mean of its coordinates. "error" refuses them.
    lam : float in (0, 1] or "auto", default=0.2
        Weight of the regularizer relative to the mean risk; the paper's lambda is
        ``n_samples * lam``. At least this fraction of the points has positive weight;
        smaller is sparser. "auto" selects it as ``select_lambda`` does.
    init : {"uniform", "sparse"} or array-like of shape (n_samples,), default="uniform"
        Initial weights. "sparse": those of ``sparse_start``, in the feature space of a
        precomputed kernel. An array has sum 1 and entries between 0 and
        ``1 / (n_samples * lam)``. Only with "uniform" may a single Gaussian kernel
        return to its initial weights (see ``weight_choice_``).
    max_iter : int, default=20
        Maximum number of iterations. 0 keeps the initial weights: plain spectral
        clustering on the kernel.
    tol : float, default=1e-4
        Decrease of the objective at which the alternation stops, relative to the
        largest linear term of the weight step.
    qp_tol : float, default=1e-4
        KKT gap at which the weight step stops, relative to its largest linear term.
    eigen_solver : {"auto", "eigsh", "block_lanczos", "multilevel", "randomized", \
            "dense"}, default="auto"
        Solver of the spectral step: ``scipy.sparse.linalg.eigsh``, on a factorized
        matrix if that is cheap; block Lanczos; the same preconditioned by a hierarchy
        of coarser graphs, for truncated kernels; randomized subspace iteration, which
        needs less memory and many more products; or LAPACK, which also solves small
        problems for all others. "auto" uses "block_lanczos" for kernel matrices in
        memory, and for truncated kernels "eigsh" or, for many points, "multilevel".
    assign_labels : {"kmeans", "cluster_qr", "discretize", "auto"}, default="kmeans"
        Method that assigns labels in the embedding. "auto" takes the labels of the
        three with the smallest normalized cut.
    n_init : int, default=10
        Number of k-means initializations.
    noise : float in [0, 0.5] or None, default=None
        Label -1 if the distance to the 12th neighbor exceeds the (1 - noise) quantile
        expected of a Gaussian cluster. It is a false positive rate, not the fraction
        of points labeled -1. Needs points; distances are Euclidean for any kernel.
        None and 0 mark nothing. See ``docs/noise.md``.
    min_cluster_size, max_cluster_size : int or float, default=None
        Bounds of the sizes of all clusters: numbers of rows of at least 1, or fractions
        of all rows below 1, as sums of sample weights, without noise. The labels that
        the votes of the other points contradict least respect them (see ``sizes_``).
        The graph, the embedding and the weights are not changed, but all votes are by
        the changed labels, also those for new points. Equal rows are never split; if
        the bounds cannot be met exactly, a warning says so. Rows with a known label or
        a link are not moved. Bounds that exclude each other are refused, and not
        considered by ``n_clusters="auto"``. None: no bound.
    random_state : int, RandomState instance or None, default=None
        Seeds the start of the eigensolver, k-means and the pivots of an approximation.
        The same seed gives the same bits for any ``n_threads``, and the same labels for
        any number of BLAS threads.
    n_threads : int, default=None
        Threads of the compiled loops; None means all.
    verbose : int, default=0
        1 shows the stages of a fit on standard error, with a bar and the time left (a
        line per stage without tqdm, ``pip install cdsk[progress]``); 2 also a line per
        iteration.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each point; -1 for noise if ``noise`` is set. The numbers do not
        depend on the order of the rows. If y of the fit names classes, it holds these
        names in the place of the numbers 0, 1, ...; clusters without a class have the
        integers that follow, or are called "cluster 4" and so on, and noise of text is
        "noise".
    classes_ : ndarray of shape (n_classes,) or None
        Classes in y, sorted: the names of the clusters 0, 1, ...; None if there are
        none.
    cluster_names_ : ndarray of shape (n_clusters,) or None
        Names of all clusters in ``labels_``, in the order of their numbers; None if
        these are numbers.
    label_numbers_ : ndarray of shape (n_samples,)
        ``labels_`` as numbers: -1 for noise, whatever the names.
    constraints_ : ConstraintCheck or None
        Number of labels and links of the fit, those that the data alone would break,
        and the rows whose neighbors contradict them; None if there are none.
    clusters_ : ndarray of shape (n_samples,)
        Cluster of each point, noise included.
    noise_ : NoiseRule or None
        Thresholds beyond which points are noise; None if ``noise`` is not set.
    sizes_ : SizeChange or None
        How labels were changed for ``min_cluster_size`` and ``max_cluster_size``: the
        bounds ``low`` and ``high``, sizes ``before`` and ``after``, ``rows`` that were
        moved and their ``previous`` clusters, the ``cost``, and the ``least_cost`` of
        any change. None without bounds.
    neighbor_recall_ : float or None
        Share of the true neighbors of 1000 random points that an approximate search
        found, the smallest if there were several; None if all searches were exact.
    n_clusters_ : int
        Number of clusters that was requested, or selected.
    count_choice_ : CountChoice or None
        How ``n_clusters_`` was selected, and its runner-up, if it was "auto".
    n_distinct_ : int
        Number of distinct rows with positive weight; of rows for a precomputed kernel.
    sample_weight_ : ndarray of shape (n_samples,)
        Sample weights of the fit, 1 if none were given.
    weights_ : ndarray of shape (n_samples,)
        Kernel weights; times ``sample_weight_`` their sum is 1.
    support_ : ndarray of shape (n_support,)
        Indices of the points with positive weight.
    unconnected_ : ndarray of shape (n_unconnected,)
        Indices of the points with no or negligible similarity to any cluster, mostly
        outliers. They have the label of their nearest neighbor; with a precomputed
        kernel that of the most similar point, or, if all similarities are 0, of the
        point with the largest degree.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        Spectral embedding with unit rows; fewer columns if there are fewer distinct
        points.
    eigenvalues_ : ndarray of shape (n_clusters,)
        Leading eigenvalues of the normalized similarity, largest first.
    history_ : ndarray of shape (n_accepted + 1,)
        Objective at the initial weights and after each accepted iteration; never
        increases.
    n_iter_ : int
        Number of iterations, including a last one that was not accepted.
    converged_ : bool
        Whether the alternation ended before ``max_iter`` was reached, and the
        eigenvectors converged.
    qp_gap_ : float
        Relative KKT gap of the weights in their quadratic program; NaN if the initial
        weights were kept.
    kernel_ : str
        Description of the kernel in use.
    bandwidth_ : float or ndarray of shape (n_samples,)
        Bandwidth(s) in use; None for other kernels.
    lam_ : float
        Regularization in use.
    probabilities_ : ndarray of shape (n_samples,)
        Probability of the cluster of each point by the votes of the others; 0 for
        noise. It is calibrated: of the points whose largest probability is p, a share
        p has the label that the others vote for. Computed on access.
    outlier_scores_ : ndarray of shape (n_samples,)
        ``1 / (1 + typicality_)``: 1 for a point without votes, 1/2 for a point of
        median typicality, near 0 in the center of a cluster. Computed on access.
    margins_ : ndarray of shape (n_samples,)
        Share of its own cluster in the kernel votes of the other points for a point,
        minus the largest share of another cluster: near 1 inside a cluster, below 0
        if the votes contradict the label.
    typicality_ : ndarray of shape (n_samples,)
        Weighted kernel votes of the other points for any cluster, in units of their
        median: near 0 for outliers, whatever their margins.
    layers_ : Layers
        Nested partitions, from 2 clusters to about 50, of which one is that of the fit.
        Computed on first access, which takes about as long as one of the kernels of the
        fit, and kept. It does not depend on ``random_state``.
    choice_ : Choice
        The candidate partitions, their scores, and which was selected. If it is one by
        a spanning tree, embedding and votes are those of the kernel whose partition by
        the initial weights agrees most with it.
    weight_choice_ : WeightChoice or None
        Of a single Gaussian kernel: whether the learned or the initial weights were
        kept, and the values compared. None if they are equal, or not compared.
    approximation_ : Approximation or None
        Rank and errors of the approximated kernel: ``rank``, the relative
        ``trace_error``, and ``largest_error`` of 10,000 random entries. None if the
        kernel is exact.
    representation_ : Representation
        The selected representation of the data, the scores of those it was compared
        with, and ``transform`` for new points.
    columns_ : Columns or None
        Names of the columns and the categories of each; None if X has only numbers.
    missing_ : MissingCells or None
        Missing cells of each column and their association with the clusters; None if X
        is complete.
    lambda_choice_ : LambdaChoice or None
        How lam was selected, if it was "auto".
    params_ : dict
        Parameters of the fit, unchanged by a later ``set_params``.
    n_negative_ : int
        Number of negative eigenvalues of the similarity matrix that were split off.
    n_clipped_ : int
        Number of pairs of points whose discriminative similarity was negative and was
        set to 0; always 0 without negative eigenvalues.
    n_features_in_ : int
        Number of features seen by ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X had any.

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
        rank: int | None = None,
        representation: str = "auto",
        n_components: int | None = None,
        categorical_features: Any = "from_dtype",
        missing: str = "auto",
        lam: float | str = 0.2,
        init: str | ArrayLike = "uniform",
        max_iter: int = 20,
        tol: float = 1e-4,
        qp_tol: float = 1e-4,
        eigen_solver: str = "auto",
        assign_labels: str = "kmeans",
        n_init: int = 10,
        noise: float | None = None,
        min_cluster_size: float | None = None,
        max_cluster_size: float | None = None,
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
        self.rank = rank
        self.representation = representation
        self.n_components = n_components
        self.categorical_features = categorical_features
        self.missing = missing
        self.lam = lam
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.qp_tol = qp_tol
        self.eigen_solver = eigen_solver
        self.assign_labels = assign_labels
        self.n_init = n_init
        self.noise = noise
        self.min_cluster_size = min_cluster_size
        self.max_cluster_size = max_cluster_size
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    def fit(
        self,
        X: Data,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        must_link: ArrayLike | None = None,
        cannot_link: ArrayLike | None = None,
    ) -> Self:
        """Cluster X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or \
                (n_samples, n_samples)
            Data, or a kernel matrix if ``kernel="precomputed"``.
        y : array-like of shape (n_samples,), default=None
            Classes of some rows, text or integers; -1, None or NaN where the class is
            not known. These rows keep their class, and ``labels_`` names clusters by
            the classes. A y that has a class for every row is ignored, as clusterers
            do in scikit-learn.
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplicity of each row, not necessarily an integer; None means 1. A row
            of weight 0 takes no part in the fit and is treated as a new point: its
            label is that of ``predict``, its margin and typicality are by the votes of
            all points, its row of ``embedding_`` is that of ``transform``. Its
            ``bandwidth_`` is that of the nearest point.
        must_link, cannot_link : array-like of shape (n_links, 2), default=None
            Pairs of rows that share a cluster, or do not: row numbers from 0, or, if X
            is a pandas frame, labels of its index.

        Returns
        -------
        self : CDSK
        """
        with (
            rollback_on_error(self),
            one_thread_if_forked(),
            explain_memory_error("fitting"),
        ):
            X, context = validate_fit(self, X, sample_weight, y, must_link, cannot_link)
            with context.progress:
                problem = preprocess(X, context)
                problem = resolve_lam(problem, context)
                fitted = fit_views(problem, context)
                winner = refine(fitted, context)
                result = finish(fitted, winner, X, context)
            self._store(result, context.constraints)
            self.missing_ = None
            if self.params_["kernel"] not in PRECOMPUTED_KERNELS:
                names = self._column_names()
                self.missing_ = MissingCells.find(X, names, self.label_numbers_)
            if self.missing_ is not None:
                self.missing_.warn()
        return self

    def _column_names(self) -> list[str]:
        """Return the names of the columns that are used, none if they have none."""
        if self.columns_ is not None:
            return [self.columns_.names[j] for j in self.columns_.kept]
        return [str(name) for name in getattr(self, "feature_names_in_", ())]

    def _name_clusters(self, numbers: Labels) -> Labels:
        """Return the names of clusters in the place of their numbers, -1 for noise."""
        names = self.cluster_names_
        if names is None:
            return numbers
        noise: str | int = -1
        if names.dtype.kind == "U":  # no class is called -1
            noise = "-1" if "noise" in names else "noise"
        return np.where(numbers < 0, noise, names[numbers])

    def _number_clusters(self, labels: ArrayLike) -> ArrayLike:
        """Return the numbers of clusters in the place of their names."""
        if self.cluster_names_ is None:
            return labels
        names = {name: i for i, name in enumerate(self.cluster_names_.tolist())}
        noise = self._name_clusters(np.array([-1]))[0]
        given = np.ravel(labels).tolist()
        if unknown := set(given) - {*names, noise}:
            raise ValueError(
                "labels must hold names of clusters, as model.predict returns them; "
                f"got {min(map(repr, unknown))}."
            )
        return np.array([names.get(name, -1) for name in given])

    def _store(self, result: FitResult, constraints: Constraints | None = None) -> None:
        """Copy the result of a fit to the attributes."""
        problem, kernel, winner = result.problem, result.kernel, result.winner
        alternation, embedding = winner.alternation, winner.alternation.embedding
        self.constraints_ = result.constraints
        self.classes_ = None if constraints is None else constraints.classes
        self.cluster_names_ = None
        if self.classes_ is not None:
            self.cluster_names_ = cluster_names(self.classes_, problem.n_requested)
        self.label_numbers_ = result.labels
        self.labels_ = self._name_clusters(result.labels)
        self.clusters_ = result.clusters
        self.noise_ = result.predictor.noise
        self.sizes_ = result.sizes
        self.neighbor_recall_ = result.neighbor_recall
        self.n_clusters_ = problem.n_requested
        self.count_choice_ = problem.count_choice
        self.n_distinct_ = problem.points.n_distinct
        self.sample_weight_ = problem.points.row_weights.copy()
        self.weights_ = result.weights
        self.support_: NDArray[np.intp] = np.flatnonzero(result.weights)
        self.unconnected_ = result.unconnected
        self.embedding_ = result.embedding
        self.eigenvalues_ = embedding.eigenvalues
        self.history_ = np.array(alternation.history)
        self.n_iter_ = alternation.n_iter
        self.converged_ = alternation.convergence_message is None
        self.qp_gap_ = alternation.qp_gap
        self.kernel_ = winner.candidate.description
        self.bandwidth_ = result.bandwidth
        self.lam_ = problem.lam
        self.margins_ = result.margins
        self.typicality_ = result.typicality
        self.choice_ = result.choice
        self.weight_choice_ = winner.weight_choice
        self.approximation_: Approximation | None = kernel.approximation
        self.representation_ = problem.representation
        self.lambda_choice_ = problem.lambda_choice
        self.params_ = self.get_params(deep=False)
        self.n_negative_ = kernel.n_negative
        self.n_clipped_ = embedding.n_clipped
        self._predictor = result.predictor
        # of an earlier fit
        self.__dict__.pop("layers_", None)

    def fit_predict(
        self,
        X: Data,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        must_link: ArrayLike | None = None,
        cannot_link: ArrayLike | None = None,
    ) -> Labels:
        """Cluster X and return ``labels_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, n_samples)
            As for ``fit``.
        y, sample_weight, must_link, cannot_link : array-like, default=None
            As for ``fit``.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        fitted = self.fit(
            X, y, sample_weight, must_link=must_link, cannot_link=cannot_link
        )
        return fitted.labels_

    def fit_transform(
        self,
        X: Data,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        must_link: ArrayLike | None = None,
        cannot_link: ArrayLike | None = None,
    ) -> Array:
        """Cluster X and return ``embedding_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, n_samples)
            As for ``fit``.
        y, sample_weight, must_link, cannot_link : array-like, default=None
            As for ``fit``.

        Returns
        -------
        embedding : ndarray of shape (n_samples, n_clusters)
        """
        fitted = self.fit(
            X, y, sample_weight, must_link=must_link, cannot_link=cannot_link
        )
        return fitted.embedding_

    def predict(self, X: Data, *, layer: int | None = None) -> Labels:
        """Predict the cluster of new points: that of the largest weighted kernel vote.

        -1 for noise, if ``noise`` is set: by the thresholds of the fit, and by the
        distances to its points.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features) or (n_new, n_samples)
            New points, or their kernel values to the training points if
            ``kernel="precomputed"``.
        layer : int, default=None
            Number of clusters of one of ``layers_``; None means the fit. Coarser
            clusters are unions of those of the fit. In finer ones a point is in the
            part of its cluster that its nearest training point there is in. Labels
            are numbers, also if clusters of the fit have names.

        Returns
        -------
        labels : ndarray of shape (n_new,)
        """
        check_is_fitted(self, "labels_")
        in_layer = None if layer is None else self._layer_predictor(layer)
        n_alone = 0

        def label(part: Any, n_threads: int) -> Labels:
            nonlocal n_alone
            votes = self._predictor.votes.log_votes(part, n_threads)
            clusters, labels, alone = self._predictor.label(votes, part, n_threads)
            n_alone += np.count_nonzero(alone & (labels >= 0))
            if in_layer is not None:
                labels = np.where(labels < 0, -1, in_layer(clusters, part, n_threads))
            return labels

        labels = self._map_rows(X, label, empty_label=-1)
        if layer is None:
            labels = self._name_clusters(labels)
        if n_alone:
            warn(
                f"{n_alone} of {len(labels)} points have no similarity to any training "
                "point and took the label of the cluster with the largest weight.",
                UserWarning,
            )
        return labels

    def _layer_predictor(self, layer: int) -> Callable[[Labels, Any, int], Labels]:
        """Return the function (clusters, rows, n_threads) -> clusters of a layer."""
        layers, groups = self.layers_, self.layers_.groups(layer)
        if layer <= layers.n_clusters:
            coarse = groups[layers.first_leaves]
            return lambda clusters, part, n_threads: coarse[clusters]
        points, index = self._predictor.points, self._predictor.index
        # a model keeps its points, or the graph that was given instead
        X = None if index is None else index.X
        candidate: Any = self._predictor.candidate
        graph = candidate.graph.neighbors if index is None else None
        predictor = LeafPredictor(layers, points, X, graph)
        return lambda *arguments: groups[predictor.predict(*arguments)]

    def predict_proba(self, X: Data) -> Array:
        """Predict the probability of every cluster: normalized powers of the votes.

        The power, and how far votes can be trusted at all, are calibrated by the
        leave-one-out votes of the fit, so that the largest probability is the share of
        points for which such a vote agrees with the label. A row of the fit is treated
        as a new point, its own vote included; ``probabilities_`` leaves it out.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features) or (n_new, n_samples)
            New points as for ``predict``.

        Returns
        -------
        probabilities : ndarray of shape (n_new, n_clusters)
            Rows sum to 1 and are largest at the cluster with the largest vote, also for
            noise. Without any votes they are the shares of the clusters in the weights.
        """
        check_is_fitted(self, "labels_")
        left_out = self._predictor.left_out
        calibrate = left_out.calibration.predict_proba
        return self._map_votes(X, lambda votes: calibrate(votes, left_out.shares))

    def decision_function(self, X: Data) -> Array:
        """Compute the logarithm of the weighted kernel votes of every cluster.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features) or (n_new, n_samples)
            New points as for ``predict``.

        Returns
        -------
        log_votes : ndarray of shape (n_new, n_clusters)
            -inf for a cluster without points of positive weight.
        """
        return self._map_votes(X, lambda votes: votes)

    def score_samples(self, X: Data) -> Array:
        """Compute the logarithm of the weighted kernel density.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features) or (n_new, n_samples)
            New points as for ``predict``.

        Returns
        -------
        log_density : ndarray of shape (n_new,)
            For the Gaussian kernel with one bandwidth the density integrates to 1 over
            the represented data; for other kernels it is the sum of the votes.
        """
        check_is_fitted(self, "labels_")
        index = self._predictor.index
        n_features = self.n_features_in_ if index is None else index.X.shape[1]
        log_norm = self._predictor.votes.log_normalizer(n_features)
        return self._map_votes(X, lambda votes: logsumexp(votes, axis=1) + log_norm)

    def transform(self, X: Data) -> Array:
        """Embed new points by their votes.

        The rows Y of the embedding, before normalization, satisfy
        ``theta Y_i = sum_j S_ij Y_j / sum_j S_ij``. A new point has no weight of its
        own, so its similarities are the votes for it: its row is the mean of those of
        the training points by their votes, over the eigenvalues theta, normalized
        (Nyström). This would be exact for a training point without weight, if the
        kernel of a new point were that of the fit, which is symmetrized where it is
        truncated to neighbors.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features) or (n_new, n_samples)
            New points as for ``predict``.

        Returns
        -------
        embedding : ndarray of shape (n_new, n_clusters)
            As many columns as ``embedding_``. A row that equals one of the fit has the
            same embedding as there, unless the kernel is precomputed. Zeros without
            any votes.
        """
        check_is_fitted(self, "labels_")
        embed = partial(
            self._predictor.embed,
            embedding=self.embedding_,
            eigenvalues=self.eigenvalues_,
        )
        return self._map_rows(X, embed)

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    def _map_votes(self, X: Data, function: Callable[[Array], Array]) -> Array:
        """Return ``function`` of the log votes for the rows of X."""
        return self._map_rows(
            X, lambda part, n: function(self._predictor.votes.log_votes(part, n))
        )

    @explain_memory_error("predicting")
    def _map_rows(
        self,
        X: Any,
        function: Callable[[Any, int], NDArray[Any]],
        empty_label: int | None = None,
    ) -> NDArray[Any]:
        """Return ``function(rows, n_threads)`` of the represented rows, by chunks.

        Only the result is made for all rows: X may be a memory map. ``empty_label`` is
        the result of rows without any value.
        """
        check_is_fitted(self, "labels_")
        n_threads, unknown = resolve_n_threads(self.n_threads), Counter[str]()
        in_chunks = supports_row_slicing(X)
        if not in_chunks:
            X = self._check_data(X, reset=False, unknown=unknown)
        result: NDArray[Any] = np.empty(0)
        for rows in iter_row_chunks(X, self.representation_.width):
            with one_thread_if_forked(), offset_row_numbers(rows):
                part = getattr(X, "iloc", X)[rows]
                if in_chunks:
                    # the first chunk tells about features
                    part = self._check_data(
                        part, reset=None if rows.start else False, unknown=unknown
                    )
                empty = check_rows(part, self.params_["noise"])
                part = self.representation_.transform_validated(part, n_threads)
                values = function(part, n_threads)
            if rows.start == 0:
                shape = X.shape[0], *values.shape[1:]
                check_memory(8 * math.prod(shape), "The result", "Use fewer rows.")
                result = np.empty(shape, dtype=values.dtype)
            result[rows] = values
            if empty_label is not None:
                result[rows][empty] = empty_label
        warn_unknown(unknown)
        return result

    def _check_data(
        self,
        X: Any,
        *,
        reset: bool | None,
        unknown: Counter[str] | None = None,
        **options: Any,
    ) -> Any:
        """Return X validated, as numbers and codes of categories.

        ``reset`` as in scikit-learn, None: names are checked. ``unknown`` counts new
        categories; without it, they are warned of.
        """
        # those of the fit, unchanged by a later set_params
        params = self.get_params(deep=False) if reset else self.params_
        kernel = params["kernel"]
        is_matrix = isinstance(kernel, str) and kernel in PRECOMPUTED_KERNELS
        validate = None if reset is None else partial(validate_data, self, reset=reset)
        if not is_matrix:
            options["ensure_all_finite"] = "allow-nan"
            X = as_table(X, params["categorical_features"])
        if reset:
            features = params["categorical_features"]
            if is_matrix:
                refuse_categories(features, "a matrix of similarities or distances")
            elif is_frame(X):
                check_size_of_frame(X)
            self.columns_ = None if is_matrix else Columns.find(X, features)
        if self.columns_ is not None:
            if validate is not None:
                validate(X, skip_check_array=True)
            counts: Counter[str] = Counter()
            X, validate = self.columns_.encode(X, counts), None
            check_infinity(X, self._column_names())
            if unknown is not None:
                unknown.update(counts)
            elif not reset:
                warn_unknown(counts)
        hint = "" if is_matrix else CATEGORIES_HINT
        options["accept_sparse"] = "csr"
        X = check_points(X, validate=validate, hint=hint, **options)
        if is_matrix:
            return X
        if not reset and self._predictor.is_sparse:
            X = sparse.csr_array(X)
        elif not reset and sparse.issparse(X):
            raise ValueError(
                "X must be dense, as the data of the fit were; got a sparse matrix. "
                "Use X.toarray(), or fit sparse data."
            )
        X = canonical_csr(X) if sparse.issparse(X) else X
        if has_missing(X):
            check_missing(X, self._column_names(), params)
        return normalize_rows(X) if str(params["metric"]) == "cosine" else X

    @property
    def probabilities_(self) -> Array:
        """Probability of the cluster of each point by the votes of the others."""
        check_is_fitted(self, "labels_")
        return np.where(
            self.label_numbers_ < 0, 0.0, self._predictor.left_out.label_probabilities()
        )

    @property
    def outlier_scores_(self) -> Array:
        """1 for a point without votes, 1/2 for one of typicality 1."""
        check_is_fitted(self, "labels_")
        return 1.0 / (1.0 + self.typicality_)

    @cached_property
    def layers_(self) -> Layers:
        """Nested partitions, coarse to fine; computed when first asked for."""
        check_is_fitted(self, "labels_")
        predictor, settings = self._predictor, Settings(**self.params_)
        candidate = predictor.candidate
        if isinstance(candidate, OtherKernel) and candidate.values is None:
            raise AttributeError(
                "layers_ needs the kernel matrix, and a model does not keep a "
                "precomputed one. Fit the points with a callable kernel, or distances "
                "of neighbors with kernel='precomputed_neighbors'."
            )
        with (
            explain_memory_error("computing the layers"),
            one_thread_if_forked(),
            limit_blas_threads(),
            Progress(self.verbose, {"layers": 1.0}) as progress,
        ):
            progress.stage("layers")
            return find_layers(
                self._make_similarity(),
                predictor.points,
                None if predictor.index is None else predictor.index.X,
                settings,
                clusters=self.clusters_,
                labels=self.label_numbers_,
                embedding=self.embedding_,
            )

    def report(
        self,
        X: Any = None,
        *,
        feature_names: Iterable[str] | None = None,
        row_names: Iterable[object] | None = None,
        stability: "Stability | None" = None,
        layers: bool = False,
    ) -> "Report":
        """Return a summary of the fit: results, selected options and warnings.

        ``print`` shows it as text, ``to_dict`` returns plain data, ``to_html`` writes a
        page. ``report`` uses fitted attributes only.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_columns), default=None
            Columns by which clusters are compared, and which typical rows and outliers
            show: the data, or any other table of the same rows. None shows row numbers
            alone.
        feature_names : iterable of str, default=None
            Names of the columns of X; None takes those of a data frame, or of ``fit``.
        row_names : iterable, default=None
            Names of the rows; None takes the index of a pandas frame, unless it only
            counts, or the row numbers, from 0.
        stability : Stability, default=None
            Result of ``cdsk.stability`` for this fit, which the report then shows.
        layers : bool, default=False
            Whether to show ``layers_``, which are computed if they have not been.

        Returns
        -------
        report : Report
        """
        from cdsk.report._report import make_report

        check_is_fitted(self, "labels_")
        report: Report = make_report(
            self,
            X,
            feature_names=feature_names,
            row_names=row_names,
            stability=stability,
            layers=layers,
        )
        return report

    @explain_memory_error("computing profiles")
    def profiles(
        self,
        X: Any,
        *,
        labels: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Profiles:
        """Compare every cluster with all other rows, by the columns of a table.

        Columns of numbers are compared by their means, others by the shares of their 50
        most frequent categories, and both by the share of missing cells, if there are
        any. Intervals make up for the number of rows and of comparisons, but take the
        labels as given: clusters differ in columns that they were made of.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_columns)
            Any columns of the rows of the fit: numbers, truth values, categories or
            text. Missing cells (None, NaN, NA, null) are left out of means and shares.
        labels : array-like of shape (n_samples,), default=None
            Clusters of the rows of X, as ``predict`` returns them, for rows other than
            those of the fit. None means ``labels_``. Noise (-1) has its own profile.
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplicity of each row. None means that of the fit, or 1 for ``labels``.

        Returns
        -------
        profiles : Profiles
            ``print`` shows the largest differences, ``to_frame`` returns all of them.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> from cdsk import CDSK
        >>> wine = load_wine()
        >>> model = CDSK(3, random_state=0).fit(wine.data)
        >>> lines = str(model.profiles(wine.data)).splitlines()
        >>> len(lines)
        3
        """
        check_is_fitted(self, "labels_")
        return compute_profiles(LabeledTable.from_model(self, X, labels, sample_weight))

    @explain_memory_error("computing rules")
    def rules(
        self,
        X: Any,
        *,
        max_depth: int = 3,
        min_precision: float = 0.8,
        labels: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Rules:
        """Describe every cluster by few conditions on the columns of a table.

        A decision tree separates each cluster from all other rows. Precision, recall
        and coverage of its best rule are measured by cross-validation; if the precision
        is too small, there is no rule. Of many rows, a random sample of at most 10,000
        is used.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_columns)
            As for ``profiles``.
        max_depth : int, default=3
            Depth of the trees, and largest number of conditions; at most 10.
        min_precision : float in (0, 1], default=0.8
            Smallest precision of a rule.
        labels, sample_weight : array-like of shape (n_samples,), default=None
            As for ``profiles``.

        Returns
        -------
        rules : Rules
            ``print`` shows them in words, ``to_frame`` returns a table.
        """
        check_is_fitted(self, "labels_")
        check_integer(max_depth, "max_depth", 1, 10)
        check_number(min_precision, "min_precision", above=0, at_most=1)
        table = LabeledTable.from_model(self, X, labels, sample_weight)
        return compute_rules(table, max_depth, min_precision)

    @explain_memory_error("computing the bound")
    def generalization_bound(
        self, X: Data | None = None, *, gamma: float = 1.0, delta: float = 0.05
    ) -> "GeneralizationBound":
        """Compute the terms of the paper's bound on the error of the votes.

        The bound is for votes by the kernel matrix of the fit. ``predict`` votes alike,
        except for a truncated kernel, the default: there it counts the neighbors of
        the new point alone, while the matrix is symmetric, so that points also count
        those whose neighbors they are, and its diagonal may have been raised to make
        it positive semi-definite. For these the bound is one for a relative of
        ``predict``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, n_samples)
            Data of the fit. Needed if ``kernel="precomputed"``, as kernel matrices are
            not kept; else None means the data kept by ``fit``.
        gamma : float, default=1.0
            Margin at which a point costs nothing, in the unit of the kernel; if its
            largest value is below 1e-100 or above 1e100, in the power of two below it.
        delta : float in (0, 1], default=0.05
            Probability with which the bound may fail.

        Returns
        -------
        bound : GeneralizationBound
            See ``cdsk.theory.generalization_bound``.
        """
        from cdsk.theory import generalization_bound

        kernel, points = self._make_kernel(X), self._predictor.points
        K = points.kernel_of_rows(kernel.as_array())
        kept = np.flatnonzero(points.row_weights)
        labels, weights = self.clusters_[kept], self.weights_[kept]
        if points.multiplicity is not None:
            weights = weights / weights.sum()
        with one_thread_if_forked():
            return generalization_bound(K, labels, weights, gamma=gamma, delta=delta)

    @explain_memory_error("computing the similarity")
    def similarity_operator(self, X: Data | None = None) -> LinearOperator:
        """Return the normalized similarity, whose eigenvectors are the embedding.

        ``D^-1/2 S D^-1/2`` with the discriminative similarity S of the selected kernel
        and the learned weights, without its diagonal, and its row sums D.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, n_samples)
            As for ``generalization_bound``.

        Returns
        -------
        operator : scipy.sparse.linalg.LinearOperator of shape (n_samples, n_samples)
        """
        similarity, points = self._make_similarity(X), self._predictor.points
        kernel = similarity.kernel

        def product(columns: ArrayLike) -> Array:
            vectors = np.asarray(columns, dtype=float).reshape(kernel.n, -1).T
            image = similarity.normalized_product(np.ascontiguousarray(vectors))
            return image.T.reshape(np.shape(columns))

        shape, E = (kernel.n, kernel.n), aslinearoperator(points.prolongation())
        return E @ LinearOperator(shape, product, matmat=product, dtype=float) @ E.T

    def _make_similarity(self, X: Any = None) -> Similarity:
        """Return the learned similarity of the points of the fit."""
        kernel, points = self._make_kernel(X), self._predictor.points
        weights = self.weights_[points.first_row]
        if points.multiplicity is not None:
            weights = weights / weights.sum()
        return kernel.similarity(weights, kernel.n * self.lam_)

    def _make_kernel(self, X: Any = None) -> Kernel:
        """Return the selected kernel of the points of the fit."""
        check_is_fitted(self, "labels_")
        candidate = self._predictor.candidate
        if X is not None:
            X = self._check_data(X, reset=False)
            if X.shape[0] != len(self.labels_):
                raise ValueError(
                    f"X must be the data of the fit, with {len(self.labels_)} rows; "
                    f"got {X.shape[0]}."
                )
        if isinstance(candidate, OtherKernel) and candidate.values is None:
            if X is None:
                raise ValueError(
                    "X must be the kernel matrix of the fit, since precomputed "
                    "matrices are not kept; got None."
                )
            candidate = replace(candidate, X=X)
        with one_thread_if_forked():
            return candidate.kernel()

    def __sklearn_tags__(self) -> Any:
        """Return the tags for scikit-learn, by the parameters."""
        tags = super().__sklearn_tags__()
        given = isinstance(self.kernel, str) and self.kernel in PRECOMPUTED_KERNELS
        tags.input_tags.pairwise = given
        tags.input_tags.sparse = given or sparse_error(self) is None
        tags.input_tags.allow_nan = not given and self.missing == "auto"
        tags.input_tags.positive_only = given and self.kernel == "precomputed"
        return tags


def validate_fit(
    model: CDSK,
    X: Data,
    sample_weight: ArrayLike | None,
    y: Any = None,
    must_link: ArrayLike | None = None,
    cannot_link: ArrayLike | None = None,
) -> tuple[Any, FitContext]:
    """Return the data and the context of a fit, both validated."""
    is_auto, index = isinstance(model.n_clusters, str), getattr(X, "index", None)
    X = model._check_data(X, reset=True, ensure_min_samples=3 if is_auto else 2)
    check_parameters(model)
    is_matrix = model.kernel in PRECOMPUTED_KERNELS
    if sparse.issparse(X) and not is_matrix and (error := sparse_error(model)):
        raise error
    if not is_auto:
        check_n_clusters(model.n_clusters, X.shape[0])
    weights = check_sample_weight(sample_weight, X, is_matrix)
    check_coding(model.representation, model.metric, model.columns_)
    context = make_context(model)
    constraints = read_constraints(X.shape[0], y, must_link, cannot_link, index)
    context = replace(context, constraints=constraints)
    if model.columns_ is not None:
        context = replace(context, n_categories=model.columns_.n_categories)
    if not is_matrix and len(empty := check_rows(X, model.noise)):
        weights = np.ones(X.shape[0]) if weights is None else weights
        weights[empty] = 0.0
        if (n_rows := np.count_nonzero(weights)) < 2:
            raise ValueError(
                "X must have a value in at least two rows of positive weight; got "
                f"{n_rows}. Fill cells, or add rows."
            )
    bounds = model.min_cluster_size, model.max_cluster_size
    if not is_auto and bounds != (None, None):
        masses = np.ones(X.shape[0]) if weights is None else weights
        find_bounds(*bounds, masses, int(model.n_clusters))
    if constraints is not None:
        constraints.check(model.n_clusters, weights)
    return X, replace(context, sample_weight=sample_rows(X, weights, context))


def make_context(model: CDSK) -> FitContext:
    """Return what the stages of a fit share, by the parameters of an estimator."""
    return FitContext(
        settings=Settings(**model.get_params(deep=False)),
        rng=check_random_state(model.random_state),
        n_threads=resolve_n_threads(model.n_threads),
        progress=Progress(model.verbose),
    )


def make_fitted(result: FitResult, n_features: int, **params: Any) -> CDSK:
    """Return the fitted model of a result whose stages were called elsewhere."""
    model = CDSK(**params)
    model.n_features_in_, model.columns_, model.missing_ = n_features, None, None
    model._store(result)
    return model
