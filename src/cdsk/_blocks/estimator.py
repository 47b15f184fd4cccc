# SPDX-License-Identifier: BSD-3-Clause
"""The order of the passes over blocks (tests/test_blocks_estimator.py)."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted, validate_data

from cdsk._blocks.candidates import FACTORS, LandmarkGraph
from cdsk._blocks.gram import check_rows
from cdsk._blocks.judge import Judge
from cdsk._blocks.landmarks import WAYS
from cdsk._blocks.passes import ThreadPasses
from cdsk._blocks.sources import as_source
from cdsk._choices.partition import Choice
from cdsk._choices.representation import Representation, check_representation
from cdsk._estimator import CDSK
from cdsk._explain.report import Report, report_of
from cdsk._parameters import check_parameters
from cdsk._points import Points, first_of_equal_rows
from cdsk._progress import Progress
from cdsk._runtime import (
    one_thread_if_forked,
    said_in_words,
    unchanged_if_it_fails,
)
from cdsk._threads import resolve_n_threads
from cdsk._validation import (
    check_choice,
    check_integer,
    check_n_clusters,
    check_number,
    check_random_state,
)
from cdsk._warn import warn

# Landmarks: so many, more if there are many clusters, fewer if there are few rows. So
# many points of the sample for each.
LANDMARKS, LANDMARKS_PER_CLUSTER, ROWS_PER_LANDMARK = 3000, 30, 2
SAMPLE_PER_LANDMARK = 10

# Stages of a fit, and about what part of its time each takes.
PARTS = {
    "sample": 0.05,
    "landmarks": 0.15,
    "similarities": 0.40,
    "neighbours": 0.01,
    "kernels": 0.10,
    "winner": 0.03,
    "margins": 0.01,
    "labels": 0.25,
}


def default_landmarks(n_rows, n_clusters):
    """How many landmarks so many rows and clusters get."""
    most = max(LANDMARKS, LANDMARKS_PER_CLUSTER * n_clusters)
    fewest = max(n_clusters, min(n_rows, LANDMARKS_PER_CLUSTER * n_clusters))
    return max(fewest, min(most, n_rows // ROWS_PER_LANDMARK))


class LandmarkCDSK(CDSK):
    """``CDSK`` on landmarks, whose kernels are given by all points.

    The points of the fit are the landmarks as they are; the rest is inherited.
    """

    _counted = "The sample of X"

    def fit_landmarks(self, landmarks, gram, rng, progress):
        """Fit the kernels of ``Landmarks`` and their ``Gram``."""
        # one that is nobody's nearest counts as one
        counts = np.maximum(gram.counts, 1).astype(np.float64)
        n_threads = resolve_n_threads(self.n_threads)
        self._given = [
            LandmarkGraph(landmarks, matrix, factor, counts, n_threads)
            for matrix, factor in zip(gram.matrices, FACTORS, strict=True)
        ]
        self.n_features_in_ = landmarks.points.shape[1]
        state, self.random_state = self.random_state, rng
        try:
            return self._fit(landmarks.points, counts, progress)
        finally:
            self.random_state = state
            del self._given

    def _points_of(self, X, sample_weight):
        points = Points.as_given(X, sample_weight)
        points.n_different = len(first_of_equal_rows(X)[0])
        return points

    def _represent_and_count(self, points, X, rng, n_threads, progress):
        self.count_choice_ = None
        self.n_clusters_ = int(self.n_clusters)
        self.representation_ = Representation.fit(X, "raw")
        return points

    def _candidates(self, X, rng, n_threads, progress, masses=None):
        return self._given


class LandmarkEstimator(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator
):
    """Clustering by landmarks: all but who makes the passes over the rows."""

    _reported_as: str  # name in reports

    n_samples_: int
    n_clusters_: int
    landmarks_: NDArray[np.float64]
    landmark_masses_: NDArray[np.int64]
    landmark_model_: CDSK
    representation_: Representation
    choice_: Choice
    lam_: float
    n_iter_: int
    converged_: bool
    params_: dict[str, Any]
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
        """Summary of the fit: of the rows, and of the fit of the landmarks.

        Returns
        -------
        report : Report
            As that of ``CDSK``; its rows are the landmarks.
        """
        check_is_fitted(self, "landmarks_")
        raw = self.representation_.name == "raw"
        return report_of(
            self.landmark_model_,
            self.landmarks_ if raw else None,
            getattr(self, "feature_names_in_", None) if raw else None,
            row_names=[f"landmark {i}" for i in range(len(self.landmarks_))],
            owner={
                "estimator": self._reported_as,
                "blocks": {
                    "n_rows": self.n_samples_,
                    "n_features": self.n_features_in_,
                    "representation": self.representation_.view,
                    "n_landmarks": len(self.landmarks_),
                    "sizes": self._sizes(),
                },
            },
        )

    def _sizes(self):
        """Rows of every cluster, or None if nobody has counted them."""
        return None

    @property
    def _n_features_out(self):
        return self.landmark_model_.embedding_.shape[1]

    def _check_parameters(self):
        """The estimator of the landmarks, its parameters checked, and ours."""
        if self.n_clusters == "auto":
            raise ValueError(
                "n_clusters must be an integer of at least 1; got 'auto', for which "
                "all rows are needed at once. suggest_n_clusters counts the clusters "
                "of a sample."
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
        check_choice(self.landmarks, "landmarks", WAYS)
        check_representation(self.representation, self.n_components)
        same = "lam max_iter tol qp_tol assign_labels n_init n_threads verbose"
        inner = LandmarkCDSK(
            self.n_clusters,
            representation="raw",
            **{name: getattr(self, name) for name in same.split()},
        )
        check_parameters(inner)
        return inner

    def _fit(self, passes, inner, progress):
        rng = check_random_state(self.random_state)
        progress.stage("sample")
        seed = rng.randint(2**31 - 1)
        sample = passes.sample(seed, self._size_of_sample, progress.share)
        n = self.n_samples_ = passes.n_rows
        if n < 2:
            raise ValueError(f"X must have at least 2 rows; got n_samples={n}.")
        check_n_clusters(self.n_clusters, n)
        check_rows(n)

        progress.stage("landmarks")
        representation, landmarks, rng = passes.decide(
            sample,
            rng,
            n_clusters=self.n_clusters,
            m=self._most_landmarks(n),
            how=self.landmarks,
            view=self.representation,
            n_components=self.n_components,
        )
        progress.stage("similarities")
        gram = passes.gram(FACTORS, progress.share)

        inner.fit_landmarks(landmarks, gram, rng, progress)
        progress.stage("labels")
        self.n_clusters_ = int(self.n_clusters)
        self.landmarks_ = landmarks.points
        self.landmark_masses_ = gram.counts
        self.landmark_model_ = inner
        self.representation_ = representation
        self.choice_ = inner.choice_
        self.lam_ = inner.lam_
        self.n_iter_ = inner.n_iter_
        self.converged_ = inner.converged_
        self.params_ = self.get_params(deep=False)
        self._judge = Judge(representation, inner._votes, inner.embedding_)
        self.labels_ = passes.labels(self._judge, progress.share)
        return self

    def _most_landmarks(self, n):
        return self.n_landmarks or default_landmarks(n, self.n_clusters)

    def _size_of_sample(self, n):
        return self.sample_size or SAMPLE_PER_LANDMARK * self._most_landmarks(n)


class BlockCDSK(LandmarkEstimator):
    """CDSK of data that are gone through in blocks of rows, by landmarks.

    For more rows than there is memory for, or time: every row is compared with some
    3000 *landmarks* instead of all other rows. Landmarks are as similar as there are
    rows near both, so that all rows inform the similarity; ``CDSK`` clusters the
    landmarks, and those near a row vote for its label.

    Time grows with n_samples x n_landmarks x n_features at worst and less with few
    features, in three passes over the data (four if they are labelled by ``predict``
    again). Memory is that of the sample and the landmarks, of some parts of 16 MiB for
    each thread, and of the labels; it does not grow with the data otherwise.

    Rows have no weights, as sums over them are exact for whole numbers only, and none
    is marked as noise: the distances that ``noise`` of ``CDSK`` judges are those of
    points as they were drawn, and landmarks are spread more evenly.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters. It is not counted here: the rule of ``suggest_n_clusters``
        is for neighbours, not for landmarks, and a sample may miss rare clusters. If
        fewer rows of the sample differ, they are the clusters, and a warning says so.
    n_landmarks : int, default=None
        Number of landmarks, fewer if fewer rows of the sample differ. None: 3000, or 30
        for each cluster if that is more, but one for 2 rows at most.
    sample_size : int, default=None
        Rows from which landmarks are made, and the representation is decided; None: 10
        for each landmark.
    landmarks : {"kmeans", "uniform"}, default="kmeans"
        Centres of k-means on the sample, or rows of the sample.
    representation : {"auto", "raw", "standardize", "normal_scores", "whiten"}, \
            default="auto"
        As for ``CDSK``; decided on the sample and applied in all passes.
    n_components : int, default=None
        Number of components for ``representation="whiten"``; None takes as many as the
        sample spans.
    lam : float in (0, 1], default=0.2
        Weight of the regulariser, as for ``CDSK``.
    max_iter : int, default=20
        Most rounds.
    tol : float, default=1e-4
        Decrease of the merit at which the alternation stops, as for ``CDSK``.
    qp_tol : float, default=1e-4
        KKT gap at which the weight step stops, as for ``CDSK``.
    assign_labels : {"kmeans", "cluster_qr", "discretize", "auto"}, default="kmeans"
        How the embedding of the landmarks becomes labels.
    n_init : int, default=10
        Number of k-means starts for these labels.
    random_state : int, RandomState instance or None, default=None
        Draws the sample and seeds the fit. The same seed gives the same bits for any
        blocks that the same rows come in, and for any ``n_threads``.
    n_threads : int, default=None
        Blocks that are worked on at a time; None means as many as there are processors.
    verbose : int, default=0
        1 shows the stages of a fit on standard error, 2 the rounds as well.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row: what ``predict`` says of it.
    n_samples_ : int
        Number of rows.
    n_clusters_ : int
        Number of clusters that was asked for.
    landmarks_ : ndarray of shape (n_landmarks, n_components)
        The landmarks, as the data are represented: all different, but for two equal
        ones if all rows of the sample are.
    landmark_masses_ : ndarray of shape (n_landmarks,)
        Number of rows that each is the nearest landmark of.
    landmark_model_ : CDSK
        The fit of the landmarks, which ``cdsk.plot`` draws, ``landmarks_`` its data;
        its ``weights_``, ``margins_``, ``embedding_``, ... are theirs.
    representation_ : Representation
        The view of the data that was taken.
    choice_ : Choice
        The scales that were tried, their scores, and which was kept.
    lam_ : float
        Regularisation in use.
    n_iter_ : int
        Number of rounds made.
    converged_ : bool
        Whether the rounds ended before ``max_iter`` was exhausted.
    params_ : dict
        Parameters of the fit, whatever has been set since.
    n_features_in_ : int
        Number of features seen by ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, where X had any.

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

    _reported_as = "BlockCDSK"

    labels_: NDArray[np.int64]

    def fit(self, X: Any, y: object = None) -> Self:
        """Cluster the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), files or blocks
            An array or a memory map; an array of zarr, h5py or the like; the path of a
            ``.npy`` file, of a Parquet file or of a folder of these, or a list of such
            paths; a dataset of pyarrow; or blocks of rows in a list or in any iterable
            that can be gone through again. All columns of a dataset are features, but
            for an index of pandas.
        y : Ignored
            Present for the scikit-learn API.

        Returns
        -------
        self : BlockCDSK
        """
        with (
            unchanged_if_it_fails(self),
            one_thread_if_forked(),
            said_in_words("A fit of blocks", "fewer landmarks"),
        ):
            inner = self._check_parameters()
            with Progress(self.verbose, PARTS) as progress:
                self._fit(self._passes(as_source(X), True), inner, progress)
        n_found = np.count_nonzero(self._sizes())
        of_landmarks = len(np.unique(self.landmark_model_.labels_))
        if n_found < of_landmarks:
            warn(
                f"Rows are in {n_found} clusters, as those near them vote for no "
                f"others; expected the {of_landmarks} of the landmarks. More landmarks "
                "may separate more.",
            )
        return self

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Cluster of new rows: the one with the largest votes of the landmarks near.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features), files or blocks
            As for ``fit``; blocks need not come a second time.

        Returns
        -------
        labels : ndarray of shape (n_new,)
        """
        return self._judged(X, "labels")

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Logarithm of the votes of the landmarks for every cluster.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features), files or blocks
            As for ``predict``.

        Returns
        -------
        log_votes : ndarray of shape (n_new, n_clusters)
            -inf for a cluster none of whose landmarks is near.
        """
        return self._judged(X, "log_votes")

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Share of every cluster in the votes.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features), files or blocks
            As for ``predict``.

        Returns
        -------
        shares : ndarray of shape (n_new, n_clusters)
            Rows sum to 1. They are no calibrated probabilities.
        """
        return self._judged(X, "shares")

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Rows in the embedding of the landmarks: the mean of those near.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features), files or blocks
            As for ``predict``.

        Returns
        -------
        coordinates : ndarray of shape (n_new, n_clusters)
            Fewer columns where fewer rows of the sample differ.
        """
        return self._judged(X, "coordinates")

    def _sizes(self):
        return np.bincount(self.labels_, minlength=self.n_clusters_).tolist()

    def _passes(self, source, reset):
        def meet(rows):
            nonlocal reset
            validate_data(self, rows, reset=reset, skip_check_array=True)
            reset = False
            return self.n_features_in_

        return ThreadPasses(source, meet, resolve_n_threads(self.n_threads))

    @said_in_words("Voting for so many rows")
    def _judged(self, X, what):
        check_is_fitted(self, "labels_")
        with one_thread_if_forked():
            passes = self._passes(as_source(X, once=True), False)
            return passes.judged(self._judge, what)
