# SPDX-License-Identifier: BSD-3-Clause
"""``BlockCDSK``, a fit in passes over blocks (tests/test_blocks_estimator.py)."""

import copy
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted, validate_data

from cdsk._candidate_fits import alternate_candidates, refine, select
from cdsk._candidates import has_categories, wide_candidates
from cdsk._cdsk import CDSK, make_context, make_fitted
from cdsk._columns import Columns, check_coding
from cdsk._constraints import refuse_labels
from cdsk._fit import finish
from cdsk._missing import MissingCells
from cdsk._operators.base import Candidate
from cdsk._partition_choice import Choice
from cdsk._preprocessing import Points, Representation, unique_rows
from cdsk._result import Problem
from cdsk._threads import resolve_n_threads
from cdsk._utils import (
    Progress,
    explain_memory_error,
    limit_blas_threads,
    one_thread_if_forked,
    rollback_on_error,
    warn,
)
from cdsk._validation import (
    check_choice,
    check_integer,
    check_n_clusters,
    check_number,
    check_parameters,
    check_random_state,
)
from cdsk.blocks._drift import Drift
from cdsk.blocks._gram import Gram, check_n_rows, merge_grams
from cdsk.blocks._landmark_kernels import (
    BANDWIDTH_FACTORS,
    TABLE_FACTOR,
    LandmarkGraph,
    LandmarkVotes,
)
from cdsk.blocks._landmarks import LANDMARK_METHODS, LandmarkOptions, Landmarks
from cdsk.blocks._passes import ThreadPasses
from cdsk.blocks._predictor import LandmarkPredictor
from cdsk.blocks._sources import Features, as_source
from cdsk.report._diagnostics import collect_warnings
from cdsk.report._report import Report, make_report
from cdsk.report._summary import summarize_columns, summarize_missing

# Default number of landmarks: this many, or this many per cluster if that is more, but
# at most one per this many rows. The sample has this many rows per landmark.
N_LANDMARKS, LANDMARKS_PER_CLUSTER, ROWS_PER_LANDMARK = 3000, 30, 2
SAMPLE_PER_LANDMARK = 10

# Stages of a fit, and their approximate fractions of the time.
STAGE_SHARES = {
    "sample": 0.05,
    "landmarks": 0.15,
    "similarities": 0.40,
    "neighbors": 0.01,
    "kernels": 0.10,
    "winner": 0.03,
    "margins": 0.01,
    "labels": 0.25,
}
# Those of an update: it has landmarks.
UPDATE_SHARES = {
    name: share / 0.8
    for name, share in STAGE_SHARES.items()
    if name not in ("sample", "landmarks")
}


def default_n_landmarks(n_rows, n_clusters):
    """Return the default number of landmarks."""
    largest = max(N_LANDMARKS, LANDMARKS_PER_CLUSTER * n_clusters)
    smallest = max(n_clusters, min(n_rows, LANDMARKS_PER_CLUSTER * n_clusters))
    return max(smallest, min(largest, n_rows // ROWS_PER_LANDMARK))


def fit_landmark_model(
    model: CDSK,
    landmarks: Landmarks,
    gram: Gram,
    rng: np.random.RandomState,
    progress: Progress,
    previous: NDArray[np.int64] | None = None,
    n_categories: tuple[int | None, ...] | None = None,
) -> CDSK:
    """Return a fit of the landmarks with the parameters of ``model``.

    The stages are those of ``CDSK.fit``, but the candidate kernels are the Gram
    matrices of the landmarks, computed from all rows of the data; of tables with
    categories those of ``CDSK``, and a landmark counts as the rows that it is nearest
    to. Clusters have the numbers of the ``previous`` labels, if there are any, that
    share most rows.
    """
    X = landmarks.points
    # a landmark that is nearest to no row counts as one row
    counts = np.maximum(gram.counts, 1).astype(np.float64)
    context = replace(
        make_context(model),
        rng=rng,
        progress=progress,
        sample_weight=counts,
        n_categories=n_categories,
    )
    points = Points.from_rows_as_they_are(X, counts)
    n_clusters, n_distinct = int(model.n_clusters), len(unique_rows(X)[0])
    problem = Problem(
        points=replace(points, n_distinct=n_distinct),
        representation=Representation.fit(X, "raw"),
        n_requested=n_clusters,
        n_clusters=min(n_clusters, n_distinct),
        lam=float(model.lam),
        name="The sample of X",
    )
    progress.stage("neighbors")
    candidates: list[Candidate]
    if has_categories(context):
        candidates = wide_candidates(X, context, problem.points.relative_multiplicity)
    else:
        candidates = [
            LandmarkGraph(landmarks, matrix, factor, counts, context.n_threads)
            for matrix, factor in zip(gram.matrices, BANDWIDTH_FACTORS, strict=True)
        ]
    fits = alternate_candidates(candidates, problem, context)
    fitted = select(fits, problem, context)
    winner = refine(fitted, context)
    if previous is not None:
        labels = match_labels(winner.labels, previous, counts)
        winner = replace(winner, labels=labels)
    result = finish(fitted, winner, X, context)
    return make_fitted(result, X.shape[1], **model.get_params(deep=False))


def match_labels(
    labels: NDArray[np.int64], previous: NDArray[np.int64], counts: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return labels renumbered so that most counts have their previous labels."""
    # numbers stay consecutive if there are fewer clusters than before
    n, n_previous = int(labels.max()) + 1, int(previous.max()) + 1
    shared = np.zeros((n, max(n, n_previous)))
    np.add.at(shared, (labels, previous), counts)
    return linear_sum_assignment(shared[:, :n], maximize=True)[1][labels]


class LandmarkEstimator(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator
):
    """Base class of landmark estimators; subclasses run the passes over the rows."""

    _report_name: str

    n_samples_: int
    n_clusters_: int
    landmarks_: NDArray[np.float64]
    landmark_counts_: NDArray[np.int64]
    landmark_model_: CDSK
    representation_: Representation
    columns_: Columns | None
    missing_: MissingCells | None
    choice_: Choice
    lam_: float
    n_iter_: int
    converged_: bool
    params_: dict[str, Any]
    drift_: Drift | None
    n_features_in_: int
    feature_names_in_: NDArray[Any]

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_landmarks: int | None = None,
        sample_size: int | None = None,
        landmarks: str = "kmeans",
        representation: str = "auto",
        n_components: int | None = None,
        categorical_features: Any = "from_dtype",
        missing: str = "auto",
        lam: float = 0.2,
        max_iter: int = 20,
        tol: float = 1e-4,
        qp_tol: float = 1e-4,
        assign_labels: str = "kmeans",
        n_init: int = 10,
        random_state: int | np.random.RandomState | None = None,
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_landmarks = n_landmarks
        self.sample_size = sample_size
        self.landmarks = landmarks
        self.representation = representation
        self.n_components = n_components
        self.categorical_features = categorical_features
        self.missing = missing
        self.lam = lam
        self.max_iter = max_iter
        self.tol = tol
        self.qp_tol = qp_tol
        self.assign_labels = assign_labels
        self.n_init = n_init
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    def report(self) -> Report:
        """Return a summary of the rows and of the fit of the landmarks.

        Returns
        -------
        report : Report
            As for ``CDSK``; its rows are the landmarks.
        """
        check_is_fitted(self, "landmarks_")
        raw = self.representation_.name == "raw"
        warnings = collect_warnings(self.landmark_model_)
        if self.missing_ is not None and (text := self.missing_.explain()):
            warnings.append(text)
        return make_report(
            self.landmark_model_,
            self.landmarks_ if raw else None,
            feature_names=getattr(self, "feature_names_in_", None) if raw else None,
            row_names=[f"landmark {i}" for i in range(len(self.landmarks_))],
            overrides={
                "estimator": self._report_name,
                "warnings": warnings,
                "blocks": {
                    "n_rows": self.n_samples_,
                    "n_features": self.n_features_in_,
                    "representation": self.representation_.view,
                    "columns": summarize_columns(self.columns_),
                    "missing": summarize_missing(self.missing_),
                    "n_landmarks": len(self.landmarks_),
                    "sizes": self._cluster_sizes(),
                    "drift": None if self.drift_ is None else self.drift_.to_dict(),
                },
            },
        )

    def _get_features(self, reset):
        """Return what is known of the features before a pass."""
        if reset:
            return Features(0, allow_missing=self.missing == "auto")
        # those of the fit, unchanged by a later set_params
        allow_missing = self.params_["missing"] == "auto"
        return Features(self.n_features_in_, self.columns_, allow_missing)

    def _cluster_sizes(self):
        """Return the number of rows of every cluster, or None if labels are lazy."""
        return None

    def __sklearn_tags__(self) -> Any:
        """Return the tags for scikit-learn, by the parameters."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "auto"
        return tags

    @property
    def _n_features_out(self):
        return self.landmark_model_.embedding_.shape[1]

    def _check_parameters(self):
        """Check all parameters, and return the estimator of the landmarks."""
        if self.n_clusters == "auto":
            raise ValueError(
                "n_clusters must be an integer of at least 1; got 'auto', which "
                "requires all rows at once. Use suggest_n_clusters on a sample."
            )
        check_integer(self.n_clusters, "n_clusters", 1)
        check_number(self.lam, "lam", above=0, at_most=1)
        for name in ("n_landmarks", "sample_size"):
            value = getattr(self, name)
            if value is None:
                continue
            check_integer(value, name, 2)
            if value < self.n_clusters:
                raise ValueError(
                    f"{name} must be at least n_clusters={self.n_clusters}; got "
                    f"{value}."
                )
        check_choice(self.landmarks, "landmarks", LANDMARK_METHODS)
        if self.representation == "layout":
            raise ValueError(
                "representation must be 'auto' or a view of single rows; got 'layout', "
                "which requires all rows at once. Use CDSK on a sample."
            )
        landmark_model = CDSK(
            self.n_clusters,
            representation=self.representation,
            n_components=self.n_components,
            missing=self.missing,
            lam=self.lam,
            max_iter=self.max_iter,
            tol=self.tol,
            qp_tol=self.qp_tol,
            assign_labels=self.assign_labels,
            n_init=self.n_init,
            random_state=self.random_state,
            n_threads=self.n_threads,
            verbose=self.verbose,
        )
        check_parameters(landmark_model)
        return landmark_model.set_params(representation="raw", n_components=None)

    def _fit(self, passes, landmark_model, progress):
        rng = check_random_state(self.random_state)
        progress.stage("sample")
        seed = rng.randint(2**31 - 1)
        sample = passes.sample(seed, self._choose_sample_size, progress.update)
        n, columns = passes.n_rows, passes.columns
        self.n_samples_, self.columns_ = n, columns
        check_coding(self.representation, "euclidean", columns)
        if n < 2:
            raise ValueError(f"X must have at least 2 rows; got n_samples={n}.")
        check_n_clusters(self.n_clusters, n)
        check_n_rows(n)

        progress.stage("landmarks")
        options = LandmarkOptions(
            n_clusters=self.n_clusters,
            n_landmarks=self._choose_n_landmarks(n),
            method=self.landmarks,
            representation=self.representation,
            n_components=self.n_components,
            n_categories=self._n_categories,
        )
        representation, landmarks, rng = passes.fit_landmarks(sample, options, rng)
        progress.stage("similarities")
        gram = passes.gram(self._factors, progress.update)

        self.n_clusters_ = int(self.n_clusters)
        self.representation_ = representation
        self.params_ = self.get_params(deep=False)
        self.drift_ = None
        self._gram, self._fit_classes, self._rng = gram, gram.classes, rng
        self._cluster_landmarks(landmark_model, landmarks, progress)
        progress.stage("labels")
        self.labels_ = passes.predict_labels(self._predictor, progress.update)
        return self

    def _update(self, passes, progress):
        """Add the rows of the passes to the sums, and cluster the landmarks again."""
        previous, landmarks = self.landmark_model_, self._predictor.votes.landmarks
        passes.resume(self.representation_, landmarks)
        progress.stage("similarities")
        new = passes.gram(self._factors, progress.update)
        self._gram = merge_grams(self._gram, new)
        model = CDSK(**previous.get_params(deep=False))
        self._cluster_landmarks(model, landmarks, progress, previous.labels_)
        labels = self.landmark_model_.labels_
        self.drift_ = Drift.compare(
            self._fit_classes, new.classes, labels, self.n_clusters_
        )
        progress.stage("labels")
        self.labels_ = passes.predict_labels(self._predictor, progress.update)
        return self

    def _cluster_landmarks(self, model, landmarks, progress, previous=None):
        """Fit the landmarks to the sums over the rows, and store the result."""
        # an update begins with the same random numbers
        gram, rng = self._gram, copy.deepcopy(self._rng)
        landmark_model = fit_landmark_model(
            model, landmarks, gram, rng, progress, previous, self._n_categories
        )
        self.n_samples_ = gram.n_rows
        self.landmarks_ = landmarks.points
        self.landmark_counts_ = gram.counts
        self.landmark_model_ = landmark_model
        self.choice_ = landmark_model.choice_
        self.lam_ = landmark_model.lam_
        self.n_iter_ = landmark_model.n_iter_
        self.converged_ = landmark_model.converged_
        votes: Any = landmark_model._predictor.votes
        if self._n_categories is not None:
            votes = LandmarkVotes(
                landmarks, TABLE_FACTOR, landmark_model.labels_, model.n_clusters
            )
        self.missing_ = self._find_missing()
        if self.missing_ is not None:
            self.missing_.warn()
        self._predictor = LandmarkPredictor(
            self.representation_, votes, landmark_model.embedding_
        )

    def _find_missing(self):
        """Return the missing cells of the rows, by the clusters of their landmarks."""
        labels, gram = self.landmark_model_.labels_, self._gram
        n_clusters = int(labels.max()) + 1
        # the first line is that of noise
        sizes = np.bincount(labels + 1, gram.counts, n_clusters + 1).astype(np.int64)
        count = np.zeros((n_clusters + 1, gram.missing.shape[1]), dtype=np.int64)
        np.add.at(count, labels + 1, gram.missing)
        return MissingCells.from_counts(count, sizes, self._column_names())

    def _column_names(self):
        if self.columns_ is not None:
            return [self.columns_.names[j] for j in self.columns_.kept]
        return [str(name) for name in getattr(self, "feature_names_in_", ())]

    @property
    def _n_categories(self):
        return None if self.columns_ is None else self.columns_.n_categories

    @property
    def _factors(self):
        """Bandwidths in units of the scales; none for the kernels of tables."""
        return BANDWIDTH_FACTORS if self._n_categories is None else ()

    def _choose_n_landmarks(self, n_rows):
        return self.n_landmarks or default_n_landmarks(n_rows, self.n_clusters)

    def _choose_sample_size(self, n_rows):
        return self.sample_size or (
            SAMPLE_PER_LANDMARK * self._choose_n_landmarks(n_rows)
        )


class BlockCDSK(LandmarkEstimator):
    """CDSK for data that are read in blocks of rows, by landmarks.

    Use it for data that do not fit in memory, or for which ``CDSK`` takes too long.
    Every row is compared with about 3000 *landmarks* instead of all other rows. Two
    landmarks are similar if many rows are close to both, so all rows contribute to the
    similarity. ``CDSK`` clusters the landmarks, and the landmarks near a row vote for
    its label.

    A fit makes three passes over the data, and one more if they have categories. Its
    time is at worst proportional to n_samples x n_landmarks x n_features, and less with
    few features. Its memory holds the sample, the landmarks, a few parts of 16 MiB for
    each thread, and the labels; only the labels grow with the data.

    ``sample_weight`` is not supported, because sums over rows are exact for integers
    only. ``noise`` is not supported, because its threshold is for distances between
    sampled points, and landmarks are spread more evenly.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters. "auto" is not supported: the rule of ``suggest_n_clusters``
        is for neighbor graphs, not for landmarks, and a sample may miss rare clusters.
        If the sample has fewer distinct rows, each of them is a cluster, with a
        warning.
    n_landmarks : int, default=None
        Number of landmarks; fewer if the sample has fewer distinct rows. None: 3000, or
        30 per cluster if that is more, but at most one per 2 rows.
    sample_size : int, default=None
        Number of rows from which the landmarks are computed and the representation is
        selected. None: 10 per landmark.
    landmarks : {"kmeans", "uniform"}, default="kmeans"
        Centers of k-means on the sample, or rows of the sample.
    representation : {"auto", "raw", "standardize", "normal_scores", "whiten", \
            "chi_square", "indicators"}, default="auto"
        As for ``CDSK``; selected on the sample and applied in all passes.
    n_components : int, default=None
        Number of components for ``representation="whiten"``. None: the rank of the
        sample.
    categorical_features : "from_dtype", None, or array-like, default="from_dtype"
        Columns of categories, as for ``CDSK``; by the types of the first block, also of
        Parquet files. Their categories are counted in one more pass. A column with more
        than 100 000 values is left out.
    missing : {"auto", "error"}, default="auto"
        "auto" fills missing cells as ``CDSK`` does, from rows of the sample. "error"
        refuses them.
    lam : float in (0, 1], default=0.2
        Weight of the regularizer, as for ``CDSK``.
    max_iter : int, default=20
        Maximum number of iterations.
    tol : float, default=1e-4
        Decrease of the objective at which the alternation stops, as for ``CDSK``.
    qp_tol : float, default=1e-4
        KKT gap at which the weight step stops, as for ``CDSK``.
    assign_labels : {"kmeans", "cluster_qr", "discretize", "auto"}, default="kmeans"
        Method that assigns labels in the embedding of the landmarks.
    n_init : int, default=10
        Number of k-means initializations for these labels.
    random_state : int, RandomState instance or None, default=None
        Draws the sample and seeds the fit. The same seed gives the same bits for any
        partition of the rows into blocks, and for any ``n_threads``.
    n_threads : int, default=None
        Number of blocks that are processed in parallel; None uses all processors.
    verbose : int, default=0
        1 prints the stages of a fit to standard error, 2 also the iterations.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row, as returned by ``predict``; after ``partial_fit`` those of
        its rows.
    n_samples_ : int
        Number of rows of all calls.
    n_clusters_ : int
        Requested number of clusters.
    landmarks_ : ndarray of shape (n_landmarks, n_components)
        The landmarks in the representation of the data. They are distinct, except for
        two equal ones if all rows of the sample are equal.
    landmark_counts_ : ndarray of shape (n_landmarks,)
        Number of rows whose nearest landmark each is.
    landmark_model_ : CDSK
        The fit of the landmarks. Its ``weights_``, ``margins_``, ``embedding_``, ...
        refer to the landmarks; ``cdsk.plot`` draws it with ``landmarks_`` as data.
    representation_ : Representation
        The selected representation of the data.
    drift_ : Drift or None
        Of ``partial_fit``, for every cluster: the numbers ``n_fit`` and ``n_new`` of
        rows of the fit and new ones, ``low_fit`` and ``low_new`` of them with low
        typicality, far from the landmarks, their shares, and ``has_drifted``. None
        after ``fit``.
    columns_ : Columns or None
        Names of the columns and the categories of each; None if X has only numbers.
    missing_ : MissingCells or None
        Missing cells of every column, and how far they go with the clusters of the
        nearest landmarks; None if there are none.
    choice_ : Choice
        The bandwidth factors that were tried, their scores, and the selected one.
    lam_ : float
        Regularization in use.
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether the fit converged within ``max_iter`` iterations.
    params_ : dict
        Parameters of the fit, unchanged by a later ``set_params``.
    n_features_in_ : int
        Number of features seen by ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X had any.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from cdsk import BlockCDSK
    >>> X, _ = make_moons(5000, noise=0.05, random_state=0)
    >>> model = BlockCDSK(n_clusters=2, random_state=0).fit(X)
    >>> blocks = [X[:100], X[100:]]
    >>> other = BlockCDSK(n_clusters=2, random_state=0).fit(blocks)
    >>> bool((model.labels_ == other.labels_).all())
    True
    """

    _report_name = "BlockCDSK"

    labels_: NDArray[np.int64]

    def fit(self, X: Any, y: object = None) -> Self:
        """Cluster the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), files or blocks
            An array or a memory map; an array of zarr, h5py or the like; the path of a
            ``.npy`` file, of a Parquet file or of a folder of these, or a list of such
            paths; a pyarrow dataset; or blocks of rows in a list or in any iterable
            that can be iterated repeatedly. All columns of a dataset are features,
            except for a pandas index.
        y : Ignored
            Present for the scikit-learn API. If it is -1, None or NaN for some rows, it
            is refused: ``cdsk.CDSK`` takes labels of some rows.

        Returns
        -------
        self : BlockCDSK
        """
        refuse_labels(y)
        with (
            rollback_on_error(self),
            one_thread_if_forked(),
            limit_blas_threads(),
            explain_memory_error("fitting blocks", "Use fewer landmarks."),
        ):
            landmark_model = self._check_parameters()
            passes = self._make_passes(as_source(X), reset=True)
            with Progress(self.verbose, STAGE_SHARES) as progress:
                self._fit(passes, landmark_model, progress)
            n_found = np.count_nonzero(self._cluster_sizes())
            n_landmark_clusters = len(np.unique(self.landmark_model_.labels_))
            if n_found < n_landmark_clusters:
                warn(
                    f"Only {n_found} of {n_landmark_clusters} landmark clusters "
                    "received any rows. Increase `n_landmarks` to separate more "
                    "clusters.",
                )
        return self

    def partial_fit(self, X: Any, y: object = None) -> Self:
        """Add rows to the fit, without those of earlier calls.

        The representation and the landmarks are those of ``fit``, or of the first call.
        New rows are added to the sums over all rows, and the landmarks are clustered
        again: sums, votes and ``decision_function`` are those of a fit of all rows by
        these landmarks, whatever the calls. Clusters keep the numbers of those that
        they share most rows with. ``drift_`` compares the new rows with those of the
        fit; a warning names clusters whose new rows are far from the landmarks.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features), files or blocks
            As for ``fit``, with the same columns. The first call needs enough rows for
            landmarks of the later ones.
        y : Ignored
            Present for the scikit-learn API. As in ``fit``, labels of some rows are
            refused.

        Returns
        -------
        self : BlockCDSK
            ``labels_`` are those of X; ``predict`` labels earlier rows again.
        """
        refuse_labels(y)
        if not hasattr(self, "landmark_model_"):
            return self.fit(X)
        with (
            rollback_on_error(self),
            one_thread_if_forked(),
            limit_blas_threads(),
            explain_memory_error("fitting blocks", "Use fewer landmarks."),
        ):
            passes = self._make_passes(as_source(X), reset=False)
            with Progress(self.verbose, UPDATE_SHARES) as progress:
                self._update(passes, progress)
            cast(Drift, self.drift_).warn()
        return self

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the cluster of new rows with the largest vote of nearby landmarks.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features), files or blocks
            As for ``fit``; blocks are read once.

        Returns
        -------
        labels : ndarray of shape (n_new,)
        """
        return self._predict(X, "predict")

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the logarithm of the votes of the landmarks for every cluster.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features), files or blocks
            As for ``predict``.

        Returns
        -------
        log_votes : ndarray of shape (n_new, n_clusters)
            -inf for a cluster without nearby landmarks.
        """
        return self._predict(X, "decision_function")

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the share of every cluster in the votes.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features), files or blocks
            As for ``predict``.

        Returns
        -------
        shares : ndarray of shape (n_new, n_clusters)
            Rows sum to 1. They are not calibrated.
        """
        return self._predict(X, "predict_proba")

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return the rows in the embedding: weighted means of nearby landmarks.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features), files or blocks
            As for ``predict``.

        Returns
        -------
        coordinates : ndarray of shape (n_new, n_clusters)
            Fewer columns if the sample has fewer distinct rows.
        """
        return self._predict(X, "transform")

    def _cluster_sizes(self):
        if len(self.labels_) < self.n_samples_:  # those of the last update
            return None
        return np.bincount(self.labels_, minlength=self.n_clusters_).tolist()

    def _make_passes(self, source, reset):
        is_new = reset

        def check_features(rows):
            nonlocal is_new
            validate_data(self, rows, reset=is_new, skip_check_array=True)
            is_new = False
            return self.n_features_in_

        return ThreadPasses(
            source,
            check_features,
            resolve_n_threads(self.n_threads),
            self._get_features(reset),
            categorical=self.categorical_features if reset else None,
        )

    @explain_memory_error("predicting")
    def _predict(self, X, method):
        check_is_fitted(self, "labels_")
        with one_thread_if_forked():
            passes = self._make_passes(as_source(X, single_pass=True), reset=False)
            return passes.predict(self._predictor, method)
