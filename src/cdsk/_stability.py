# SPDX-License-Identifier: BSD-3-Clause
"""``stability``: clusters found again in samples (tests/test_stability.py).

Half of the rows are fitted again, many times, and each fit labels all rows. With A a
cluster of the model and B one of a resample,

    Jaccard index of A    max over B of |A and B| / |A or B|
    row x of A agrees     x is in the cluster B that is matched to A, one to one, so
                          that the sum of Jaccard indexes is largest

The same is done with data without clusters (_null_data.py), since a fit cuts them too,
and some cuts are the same in every resample. Samples are drawn without replacement:
docs/notes/2026-11-19-stability.md compares them with bootstraps.
"""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from sklearn.utils.validation import check_is_fitted

from cdsk._candidate_fits import refine
from cdsk._cdsk import CDSK
from cdsk._fit import finish, preprocess, resolve_lam
from cdsk._null_data import KINDS, NullData
from cdsk._operators.base import Array
from cdsk._partition_choice import adjusted_rand_indexes
from cdsk._result import FitResult
from cdsk._settings import FitContext, Settings
from cdsk._threads import resolve_n_threads
from cdsk._utils import (
    Progress,
    explain_memory_error,
    limit_blas_threads,
    one_thread_if_forked,
)
from cdsk._validation import (
    PRECOMPUTED_KERNELS,
    check_integer,
    check_random_state,
    iter_row_chunks,
    normalize_rows,
)
from cdsk._view_fits import fit_views

Labels = NDArray[np.int64]

# Rows of a resample, and rows that it labels.
MAX_SAMPLE, MAX_LABELED = 2000, 10_000
# A cluster is found again if its Jaccard index is at least this (Hennig, Computational
# Statistics & Data Analysis 52, 2007).
FOUND = 0.75
# Ends of an interval, quantiles of the resamples.
_ENDS = 0.05, 0.95
# A selected number of clusters is stable if so many resamples select it.
_MIN_SAME_COUNT = 0.9
# Least number of rows, and of rows per cluster.
_MIN_ROWS, _MIN_PER_CLUSTER = 20, 4
# Least number of resamples of a data set without clusters.
_MIN_NULL_RESAMPLES = 3
# Rows of least agreement that ``to_dict`` lists.
_N_LISTED = 6

STABLE, UNCLEAR, UNSTABLE = "stable", "unclear", "not stable"


@dataclass(frozen=True, repr=False)
class Stability:
    """Whether the clusters of a fit are found again in samples of its rows.

    ``print`` says it in words. A value is compared with a *limit*: the largest mean ARI
    of a data set without clusters, or the mean Jaccard index that 5 % of their clusters
    exceed. It is "stable" if its mean is above the limit and 95 % of the resamples are
    above the mean without clusters, "not stable" if neither is so, and else "unclear".

    Attributes
    ----------
    labels : ndarray of shape (n_samples,)
        Clusters of the fit; -1 for noise.
    sizes : ndarray of shape (n_clusters,)
        Number of rows of each cluster, by their weights, without noise.
    rows : ndarray of shape (n_labeled,)
        Rows that the resamples label: those of positive weight, at most 10 000.
    n_sample : int
        Number of rows in a resample, by multiplicity.
    ari : ndarray of shape (n_resamples,)
        Adjusted Rand index of the labels by each resample and those of the fit. Noise
        of the fit is left out.
    jaccard : ndarray of shape (n_resamples, n_clusters)
        Largest Jaccard index of each cluster with one of the resample; NaN for a
        cluster without labeled rows.
    agreement : ndarray of shape (n_samples,)
        Share of the resamples in which a row is in the cluster that is matched with
        that of the fit, or is noise in both; NaN for rows that are not labeled.
    assignments : ndarray of shape (n_resamples, n_labeled)
        Labels by each resample, whose numbers mean nothing beyond it; -1 for noise.
    n_clusters : ndarray of shape (n_resamples,)
        Number of clusters of each resample.
    n_selected : int or None
        Number of clusters of the fit, if it was selected by ``n_clusters="auto"``; the
        resamples then select theirs.
    null_ari : ndarray of shape (n_null, n_null_resamples)
        As ``ari``, of data sets without clusters: normal and uniform ones in turn.
    null_jaccard : ndarray of shape (n_null, largest number of clusters)
        Mean Jaccard index of each of their clusters; NaN beyond the last.
    """

    labels: Labels
    sizes: Array
    rows: NDArray[np.intp]
    n_sample: int
    ari: Array
    jaccard: Array
    agreement: Array
    assignments: NDArray[np.int32]
    n_clusters: NDArray[np.int64]
    n_selected: int | None
    null_ari: Array
    null_jaccard: Array

    @property
    def ari_interval(self) -> tuple[float, float]:
        """Ends of the interval that holds 90 % of ``ari``."""
        low, high = np.quantile(self.ari, _ENDS)
        return float(low), float(high)

    @property
    def jaccard_interval(self) -> Array:
        """Ends of the intervals that hold 90 % of ``jaccard`` (2, n_clusters)."""
        return np.asarray(np.quantile(self.jaccard, _ENDS, axis=0))

    @property
    def found(self) -> Array:
        """Share of the resamples that find each cluster: Jaccard of at least 0.75."""
        shares = np.mean(self.jaccard >= FOUND, axis=0)
        return np.where(np.isnan(self.jaccard).any(axis=0), np.nan, shares)

    @property
    def null_ari_limit(self) -> float:
        """Largest mean ARI of a data set without clusters."""
        return float(self.null_ari.mean(axis=1).max())

    @property
    def null_jaccard_limit(self) -> float:
        """Mean Jaccard index that 5 % of the clusters of such data sets exceed."""
        return float(np.nanquantile(self.null_jaccard, 1.0 - _ENDS[0]))

    @property
    def verdict(self) -> str:
        """Verdict on all clusters: "stable", "unclear" or "not stable"."""
        low, mean = self.ari_interval[0], float(self.ari.mean())
        return _judge(low, mean, float(self.null_ari.mean()), self.null_ari_limit)

    @property
    def cluster_verdicts(self) -> tuple[str, ...]:
        """Verdict on each cluster; "unclear" if none of its rows is labeled."""
        lows, means = self.jaccard_interval[0], self.jaccard.mean(axis=0)
        null = float(np.nanmean(self.null_jaccard)), self.null_jaccard_limit
        pairs = zip(lows.tolist(), means.tolist(), strict=True)
        return tuple(_judge(low, mean, *null) for low, mean in pairs)

    @property
    def count_verdict(self) -> str | None:
        """Verdict on a selected number of clusters; None if it was given.

        It is "stable" if nine in ten resamples select it and the clusters are stable,
        "not stable" if less than half of them do or the clusters are not stable.
        """
        if self.n_selected is None:
            return None
        share, verdict = np.mean(self.n_clusters == self.n_selected), self.verdict
        if share >= _MIN_SAME_COUNT and verdict == STABLE:
            return STABLE
        return UNSTABLE if share < 0.5 or verdict == UNSTABLE else UNCLEAR

    def to_dict(self) -> dict[str, Any]:
        """Return a summary as plain data that ``json.dumps`` accepts.

        Returns
        -------
        summary : dict
            The entry ``stability`` of a report, documented in ``docs/report.md``.
        """
        return {
            "n_resamples": len(self.ari),
            "n_null": len(self.null_ari),
            "n_sample": self.n_sample,
            "n_labeled": len(self.rows),
            "ari": {
                "mean": float(self.ari.mean()),
                "low": self.ari_interval[0],
                "high": self.ari_interval[1],
                "null_mean": float(self.null_ari.mean()),
                "null_limit": self.null_ari_limit,
                "verdict": self.verdict,
            },
            "clusters": self._summarize_clusters(),
            "n_clusters": self._summarize_counts(),
            "least_agreement": self._summarize_rows(),
            "n_below_half": int(np.sum(self.agreement < 0.5)),
        }

    def _summarize_clusters(self) -> list[dict[str, Any]]:
        low, high = self.jaccard_interval
        values = {
            "size": self.sizes,
            "found": self.found,
            "jaccard": self.jaccard.mean(axis=0),
            "low": low,
            "high": high,
        }
        shared = {
            "null_mean": float(np.nanmean(self.null_jaccard)),
            "null_limit": self.null_jaccard_limit,
        }
        return [
            {"cluster": y}
            | {key: _to_finite(value[y]) for key, value in values.items()}
            | shared
            | {"verdict": verdict}
            for y, verdict in enumerate(self.cluster_verdicts)
        ]

    def _summarize_counts(self) -> dict[str, Any] | None:
        if self.n_selected is None:
            return None
        counts, n = np.unique(self.n_clusters, return_counts=True)
        order = np.argsort(-n, kind="stable")
        return {
            "selected": self.n_selected,
            "share": float(np.mean(self.n_clusters == self.n_selected)),
            "counts": [[int(counts[i]), int(n[i])] for i in order],
            "verdict": self.count_verdict,
        }

    def _summarize_rows(self) -> list[dict[str, Any]]:
        agreement = self.agreement[self.rows]
        order = np.argsort(agreement, kind="stable")[:_N_LISTED]
        return [
            {"row": int(self.rows[i]), "agreement": float(agreement[i])} for i in order
        ]

    def __str__(self) -> str:
        from cdsk.report._sentences import describe_stability

        return "\n".join(describe_stability(self.to_dict()))

    def __repr__(self) -> str:
        return str(self)


def _judge(low: float, mean: float, null_mean: float, limit: float) -> str:
    """Return the verdict on a value; NaN is unclear."""
    if mean > limit and low > null_mean:
        return STABLE
    return UNSTABLE if mean <= limit and low <= null_mean else UNCLEAR


def _to_finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


@explain_memory_error("measuring stability")
def stability(
    model: CDSK,
    X: Any,
    n_resamples: int = 50,
    *,
    n_null: int = 10,
    random_state: int | np.random.RandomState | None = None,
    n_threads: int | None = None,
    verbose: int = 0,
) -> Stability:
    """Measure whether the clusters of a fit are found again in samples of its rows.

    Half of the rows, at most 2000, are drawn without replacement and fitted again with
    the parameters of the model; the fit labels all other rows by its votes. These
    labels are compared with those of the model. Since clusters of data that have none
    may also be found again, the same is done with data sets without clusters, of the
    same size: Gaussian ones with the mean and the covariance of X, and uniform ones in
    its hull.

    Parameters
    ----------
    model : CDSK
        Fitted model. It is not changed. A kernel matrix has no rows to draw from.
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        Data of the fit, in the same order. Rows of weight 0 take no part, and a row of
        weight w is drawn as w rows are. Categories are permuted for data without
        clusters, and so are the entries of a sparse X.
    n_resamples : int, default=50
        Number of resamples, at least 2.
    n_null : int, default=10
        Number of data sets without clusters, at least 2; each has ``n_resamples /
        n_null`` resamples, at least 3. Half of them are Gaussian, the others uniform.
        More of them make a false "stable" rarer.
    random_state : int, RandomState instance or None, default=None
        Draws samples and data and seeds the fits.
    n_threads : int, default=None
        Threads of the compiled loops; None means those of the model. The result does
        not depend on it.
    verbose : int, default=0
        1 shows the progress on standard error.

    Returns
    -------
    stability : Stability
        ``print`` says it in words, ``to_dict`` returns plain data,
        ``model.report(X, stability=...)`` and ``cdsk.plot.stability`` show it.

    Notes
    -----
    The cost is that of about 100 fits of half the rows, at most 2000, and ``n_null`` of
    all, at most 4000: on one core 40 seconds for 1000 rows, 90 for 20 000.
    Resamples run one after the other; threads work within a fit. Warnings of these fits
    are not shown. Models with bounded sizes of clusters are refused.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from cdsk import CDSK, stability
    >>> X, _ = make_blobs(60, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    >>> model = CDSK(3, random_state=0).fit(X)
    >>> found = stability(model, X, n_resamples=5, n_null=2, random_state=0)
    >>> found.verdict, found.jaccard.shape
    ('stable', (5, 3))
    """
    data = _check(model, X)
    check_integer(n_resamples, "n_resamples", 2)
    check_integer(n_null, "n_null", 2)
    rng = check_random_state(random_state)
    context = _make_context(model, n_threads)
    n_each = max(-(-n_resamples // n_null), _MIN_NULL_RESAMPLES)
    with (
        one_thread_if_forked(),
        limit_blas_threads(),
        warnings.catch_warnings(),
        Progress(verbose, {"resamples": 0.5, "null": 0.5}) as progress,
    ):
        # the fit has given its own
        warnings.simplefilter("ignore")
        progress.stage("resamples")
        compared = _resample(data, n_resamples, context, rng, progress)
        progress.stage("null", "data without clusters")
        null = _resample_null(data, (n_null, n_each), context, rng, progress)
    used = np.flatnonzero(model.sample_weight_)
    agreement = np.full(len(model.label_numbers_), np.nan)
    agreement[used[compared.rows]] = compared.agreement
    return Stability(
        labels=model.label_numbers_.copy(),
        sizes=_count(data),
        rows=used[compared.rows],
        n_sample=_sample_size(data.weights),
        ari=compared.ari,
        jaccard=compared.jaccard,
        agreement=agreement,
        assignments=compared.assignments,
        n_clusters=compared.n_clusters,
        n_selected=None if model.count_choice_ is None else int(model.n_clusters_),
        null_ari=np.array([one.ari for one in null]),
        null_jaccard=_stack([one.jaccard.mean(axis=0) for one in null]),
    )


@dataclass(frozen=True)
class _Data:
    """Encoded rows of positive weight with the labels of their fit."""

    X: Any
    weights: Array
    labels: Labels
    n_clusters: int


@dataclass(frozen=True)
class _Compared:
    """Labels of some rows by resamples, compared with those of the fit."""

    rows: NDArray[np.intp]
    assignments: NDArray[np.int32]
    n_clusters: NDArray[np.int64]
    ari: Array
    jaccard: Array
    agreement: Array


def _check(model: Any, X: Any) -> _Data:
    """Return the rows of a fitted model that have a weight."""
    if not isinstance(model, CDSK):
        raise TypeError(
            f"model must be a fitted CDSK; got {model!r}. Of a larger model, fit a "
            "CDSK to a sample of the rows."
        )
    check_is_fitted(model, "labels_")
    kernel = model.params_["kernel"]
    if isinstance(kernel, str) and kernel in PRECOMPUTED_KERNELS:
        raise ValueError(
            f"stability draws samples of points and compares them with points that "
            f"have no clusters; the model was fitted with kernel={kernel!r}. Fit the "
            "points themselves, with a callable kernel if need be."
        )
    if model.sizes_ is not None:
        raise ValueError(
            "stability is that of clusters that the data alone support; those of the "
            "model have bounded sizes. Fit without min_cluster_size and "
            "max_cluster_size."
        )
    n = len(model.label_numbers_)
    if X is None:
        raise ValueError(
            f"X must be the data of the fit, with {n} rows; got None. A model keeps "
            "too little of them to draw samples."
        )
    X = model._check_data(X, reset=False)
    if X.shape[0] != n:
        raise ValueError(
            f"X must be the data of the fit, with {n} rows; got {X.shape[0]}."
        )
    used = np.flatnonzero(model.sample_weight_)
    weights = model.sample_weight_[used].astype(np.float64)
    n_clusters = int(model.clusters_.max()) + 1
    least = max(_MIN_ROWS, _MIN_PER_CLUSTER * n_clusters)
    if (n_rows := int(np.ceil(weights).sum())) < least:
        raise ValueError(
            f"stability fits halves of the rows and needs at least {least} rows for "
            f"{n_clusters} clusters; got {n_rows}. Use more rows or fewer clusters."
        )
    X = X if len(used) == n else X[used]
    return _Data(X, weights, model.label_numbers_[used], n_clusters)


def _make_context(model: CDSK, n_threads: int | None) -> FitContext:
    """Return the context of the fits of samples, by the parameters of the model."""
    params = dict(model.params_)
    if not isinstance(params["init"], str):  # weights of all rows
        params["init"] = "uniform"
    columns = model.columns_
    n_threads = model.n_threads if n_threads is None else n_threads
    return FitContext(
        settings=Settings(**params),
        rng=np.random.RandomState(0),
        n_threads=resolve_n_threads(
            model.n_threads if n_threads is None else n_threads
        ),
        progress=Progress(),
        n_categories=None if columns is None else columns.n_categories,
    )


def _count(data: _Data) -> Array:
    """Return the sizes of the clusters, without noise."""
    kept = data.labels >= 0
    sizes = np.bincount(data.labels[kept], data.weights[kept], data.n_clusters)
    return sizes.astype(np.float64)


def _sample_size(weights: Array) -> int:
    return min((int(np.ceil(weights).sum()) + 1) // 2, MAX_SAMPLE)


def draw_sample(
    weights: Array, rng: np.random.Generator
) -> tuple[NDArray[np.intp], Array]:
    """Return half of the rows, at most MAX_SAMPLE, and their weights.

    A row of weight w counts as floor(w) rows and one of the remaining weight.
    """
    ends = np.cumsum(np.ceil(weights).astype(np.int64))
    size = _sample_size(weights)
    items = rng.choice(int(ends[-1]), size, replace=False, shuffle=False)
    row = np.searchsorted(ends, items, side="right")
    remainder = weights[row] - np.ceil(weights[row]) + 1.0
    worth = np.where(items == ends[row] - 1, remainder, 1.0)
    drawn = np.bincount(row, worth, minlength=len(weights)).astype(np.float64)
    rows = np.flatnonzero(drawn)
    return rows, drawn[rows]


def _resample(
    data: _Data,
    n_resamples: int,
    context: FitContext,
    rng: np.random.RandomState,
    progress: Progress,
) -> _Compared:
    """Fit samples of data and compare their labels of all rows."""
    n = len(data.weights)
    rows = np.arange(n)
    if n > MAX_LABELED:
        rows = np.sort(rng.choice(n, MAX_LABELED, replace=False))
    labels, weights = data.labels[rows], data.weights[rows]
    compared, counts = [], []
    assignments = np.empty((n_resamples, len(rows)), dtype=np.int32)
    for i in range(n_resamples):
        seed = rng.randint(2**31 - 1)
        sample = draw_sample(data.weights, np.random.default_rng(seed))
        result = _fit(data.X, *sample, seed, context)
        assignments[i] = _label(result, data.X, sample[0], rows, context.n_threads)
        compared.append(compare(labels, assignments[i], weights, data.n_clusters))
        counts.append(result.problem.n_clusters)
        progress.update((i + 1) / n_resamples)
    ari, jaccard, agrees = zip(*compared, strict=True)
    return _Compared(
        rows,
        assignments,
        np.array(counts),
        np.array(ari),
        np.array(jaccard),
        np.mean(agrees, axis=0),
    )


def _resample_null(
    data: _Data,
    n_sets_and_resamples: tuple[int, int],
    context: FitContext,
    rng: np.random.RandomState,
    progress: Progress,
) -> list[_Compared]:
    """Do the same with data sets without clusters, of the same shape."""
    n_sets, n_resamples = n_sets_and_resamples
    X, weights = data.X, data.weights
    if len(weights) > 2 * MAX_SAMPLE:
        rows = np.sort(rng.choice(len(weights), 2 * MAX_SAMPLE, replace=False))
        X, weights = X[rows], weights[rows]
    generator = np.random.default_rng(rng.randint(2**31 - 1))
    source, every = NullData(X, weights, context.n_categories, generator), []
    for i in range(n_sets):
        null_X = source.draw(KINDS[i % len(KINDS)], generator)
        null_X = _restrict(null_X, X, context.settings)
        all_rows = np.arange(len(weights))
        result = _fit(null_X, all_rows, weights, rng.randint(2**31 - 1), context)
        n_clusters = int(result.clusters.max()) + 1
        null = _Data(null_X, weights, result.labels, n_clusters)
        every.append(_resample(null, n_resamples, context, rng, Progress()))
        progress.update((i + 1) / n_sets)
    return every


def _restrict(null_X: Any, X: Any, settings: Settings) -> Any:
    """Return data without clusters within the domain of the kernel and the metric."""
    if settings.kernel != "rbf" and not sparse.issparse(X) and X.min() >= 0:
        null_X = np.maximum(null_X, 0.0)
    return normalize_rows(null_X) if settings.metric == "cosine" else null_X


def _fit(
    X: Any, rows: NDArray[np.intp], weights: Array, seed: int, context: FitContext
) -> FitResult:
    """Return the fit of some rows."""
    settings = context.settings
    if settings.rank is not None:
        settings = replace(settings, rank=min(settings.rank, len(rows)))
    context = replace(
        context,
        settings=settings,
        rng=np.random.RandomState(seed),
        sample_weight=None if (weights == 1).all() else weights,
    )
    X = X[rows]
    problem = resolve_lam(preprocess(X, context), context)
    fitted = fit_views(problem, context)
    return finish(fitted, refine(fitted, context), X, context)


def _label(
    result: FitResult,
    X: Any,
    sample: NDArray[np.intp],
    rows: NDArray[np.intp],
    n_threads: int,
) -> Labels:
    """Return labels of ``rows`` by the fit of a sample."""
    labels = np.empty(X.shape[0], dtype=np.int64)
    labels[sample] = result.labels
    others = np.setdiff1d(rows, sample)
    X, predictor = X[others], result.predictor
    for part in iter_row_chunks(X):
        if len(others):
            Z = result.problem.representation.transform_validated(X[part], n_threads)
            votes = predictor.votes.log_votes(Z, n_threads)
            labels[others[part]] = predictor.label(votes, Z, n_threads)[1]
    return labels[rows]


def _stack(values: list[Array]) -> Array:
    """Return arrays as rows, NaN beyond their ends."""
    stacked = np.full((len(values), max(map(len, values))), np.nan)
    for row, value in zip(stacked, values, strict=True):
        row[: len(value)] = value
    return stacked


def compare(
    labels: Labels, other: Labels, weights: Array, n_clusters: int
) -> tuple[float, Array, NDArray[np.bool_]]:
    """Return ARI, Jaccard index of each cluster, and whether rows agree.

    Rows of noise in ``labels`` agree if they are noise; they count in nothing else.
    """
    is_kept = labels >= 0
    a, b, w = labels[is_kept], other[is_kept], weights[is_kept]
    n_other = int(other.max(initial=-1)) + 1
    # the last column is noise
    b = np.where(b < 0, n_other, b)
    n_pairs = n_clusters * (n_other + 1)
    pairs = np.bincount(a * (n_other + 1) + b, w, n_pairs)
    pairs = pairs.reshape(n_clusters, n_other + 1)
    shared = pairs[:, :n_other]
    size = pairs.sum(axis=1)
    union = size[:, np.newaxis] + shared.sum(axis=0) - shared
    jaccard = np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)
    best = np.where(size > 0, jaccard.max(axis=1, initial=0.0), np.nan)
    matched = np.full(n_clusters, -2)
    own, found = linear_sum_assignment(jaccard, maximize=True)
    matched[own] = found
    agrees = np.where(is_kept, other == matched[labels], other < 0)
    ari = float(adjusted_rand_indexes([a, b], w)[0, 1]) if len(a) else 1.0
    return ari, best, agrees
