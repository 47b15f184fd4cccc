# SPDX-License-Identifier: BSD-3-Clause
"""``CDSK`` of dask collections (tests/test_dask_estimator.py)."""

from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Self

import dask.array as da
import numpy as np
from distributed import Client
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, validate_data

from cdsk._columns import ColumnSearch
from cdsk._constraints import refuse_labels
from cdsk._utils import Progress, explain_memory_error, rollback_on_error
from cdsk._validation import check_columns
from cdsk.blocks._estimator import STAGE_SHARES, LandmarkEstimator
from cdsk.dask._cluster import Cluster
from cdsk.dask._local import Local
from cdsk.dask._passes import DaskPasses, as_row_chunks, predict_lazily

# Labels are lazy and take no time.
_LABELS_SHARE = STAGE_SHARES["labels"]
_STAGE_SHARES = {
    name: share / (1 - _LABELS_SHARE) for name, share in STAGE_SHARES.items()
} | {"labels": 0.0}


# No set_output: a frame of pandas or polars would be computed at once. mypy does not
# know this keyword of scikit-learn.
class CDSK(LandmarkEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """``BlockCDSK`` of dask arrays and DataFrames, on all workers of a cluster.

    The same rows and the same ``random_state`` give the same bits as ``BlockCDSK``,
    whatever the chunks, the workers and their number.

    ``fit`` makes two passes over the chunks, one more if chunk sizes are unknown, and
    one more if there are categories: persist X if that is cheaper than computing it
    again. The landmarks are clustered in the process of the caller. Labels and
    predictions are lazy, with the chunks of X; each chunk warns of new categories.

    Parameters
    ----------
    n_clusters, n_landmarks, sample_size, landmarks, representation, n_components, \
            categorical_features, missing, lam, max_iter, tol, qp_tol, assign_labels, \
            n_init, random_state, verbose
        As for ``BlockCDSK``.
    kernel : {"rbf"}, default="rbf"
        Only "rbf" is supported, as rows are compared with landmarks.
    n_threads : int, default=None
        Number of threads for the fit of the landmarks. Tasks on chunks use one each.
    client : distributed.Client, default=None
        Client of the workers to use. None: the current client, or the scheduler of
        dask in this process if there is none.

    Attributes
    ----------
    labels_ : dask.array.Array of shape (n_samples,)
        Cluster of each row, lazily, as returned by ``predict``. It refers to X and is
        not pickled.
    n_samples_, n_clusters_, landmarks_, landmark_counts_, landmark_model_, \
            representation_, columns_, missing_, choice_, lam_, n_iter_, converged_, \
            params_, n_features_in_, feature_names_in_
        As for ``BlockCDSK``.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import make_moons
    >>> from cdsk.dask import CDSK
    >>> X, _ = make_moons(5000, noise=0.05, random_state=0)
    >>> X = da.from_array(X, chunks=(1000, 2))
    >>> CDSK(n_clusters=2, random_state=0).fit(X).labels_.chunks
    ((1000, 1000, 1000, 1000, 1000),)
    """

    labels_: da.Array

    _report_name = "dask.CDSK"

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_landmarks: int | None = None,
        sample_size: int | None = None,
        landmarks: str = "kmeans",
        kernel: str = "rbf",
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
        client: Client | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            n_clusters,
            n_landmarks=n_landmarks,
            sample_size=sample_size,
            landmarks=landmarks,
            representation=representation,
            n_components=n_components,
            categorical_features=categorical_features,
            missing=missing,
            lam=lam,
            max_iter=max_iter,
            tol=tol,
            qp_tol=qp_tol,
            assign_labels=assign_labels,
            n_init=n_init,
            random_state=random_state,
            n_threads=n_threads,
            verbose=verbose,
        )
        self.kernel = kernel
        self.client = client

    @explain_memory_error("fitting blocks", "Use fewer landmarks.")
    def fit(self, X: Any, y: object = None) -> Self:
        """Cluster the rows of X immediately.

        Parameters
        ----------
        X : dask array or dask DataFrame of shape (n_samples, n_features)
            Chunks may have any number of rows. Chunks along the columns are joined.
        y : Ignored
            Present for the scikit-learn API. If it is -1, None or NaN for some rows, it
            is refused: ``cdsk.CDSK`` takes labels of some rows.

        Returns
        -------
        self : CDSK
        """
        refuse_labels(y)
        with rollback_on_error(self):
            landmark_model = self._check_parameters()
            rows = self._validate(X, reset=True)
            search = ColumnSearch.of(_get_meta(X, rows), self.categorical_features)
            with (
                self._make_runner() as runner,
                Progress(self.verbose, _STAGE_SHARES) as progress,
            ):
                progress.stage("sample")
                features = replace(self._get_features(True), n=self.n_features_in_)
                passes = DaskPasses(rows, runner, features, search)
                return self._fit(passes, landmark_model, progress)

    def predict(self, X: Any) -> da.Array:
        """Return the cluster of new rows with the largest vote of nearby landmarks.

        Parameters
        ----------
        X : dask array or dask DataFrame of shape (n_new, n_features)

        Returns
        -------
        labels : dask array of shape (n_new,)
        """
        return self._predict(X, "predict")

    def decision_function(self, X: Any) -> da.Array:
        """Return the logarithm of the votes of the landmarks for every cluster.

        Parameters
        ----------
        X : dask array or dask DataFrame of shape (n_new, n_features)

        Returns
        -------
        log_votes : dask array of shape (n_new, n_clusters)
            -inf for a cluster without nearby landmarks.
        """
        return self._predict(X, "decision_function")

    def predict_proba(self, X: Any) -> da.Array:
        """Return the share of every cluster in the votes.

        Parameters
        ----------
        X : dask array or dask DataFrame of shape (n_new, n_features)

        Returns
        -------
        shares : dask array of shape (n_new, n_clusters)
            Rows sum to 1. They are not calibrated.
        """
        return self._predict(X, "predict_proba")

    def transform(self, X: Any) -> da.Array:
        """Return the rows in the embedding: weighted means of nearby landmarks.

        Parameters
        ----------
        X : dask array or dask DataFrame of shape (n_new, n_features)

        Returns
        -------
        coordinates : dask array of shape (n_new, n_clusters)
            Fewer columns if the sample has fewer distinct rows.
        """
        return self._predict(X, "transform")

    def _predict(self, X, method):
        check_is_fitted(self, "landmarks_")
        rows = self._validate(X, reset=False)
        return predict_lazily(rows, self._get_features(False), self._predictor, method)

    def _validate(self, X, reset):
        rows = as_row_chunks(X)
        meta = _get_meta(X, rows)
        if reset and self.categorical_features is None:
            check_columns(meta, "X")
        validate_data(self, meta, reset=reset, skip_check_array=True)
        return rows

    def _check_parameters(self):
        if self.kernel != "rbf":
            raise ValueError(
                "kernel must be 'rbf', as rows are compared with landmarks; got "
                f"{self.kernel!r}. Use cdsk.CDSK for a precomputed kernel."
            )
        if not isinstance(self.client, Client | None):
            raise ValueError(
                "client must be a distributed.Client or None; got "
                f"{type(self.client).__name__}."
            )
        return super()._check_parameters()

    def _make_runner(self):
        client = self.client
        if client is None:
            try:
                client = Client.current()
            except ValueError:
                return nullcontext(Local())
        return Cluster(client)

    def __sklearn_clone__(self):
        # a client cannot be copied
        params = self.get_params(deep=False)
        client = params.pop("client")
        return type(self)(**clone(params, safe=False), client=client)

    def __getstate__(self):
        state = dict(super().__getstate__())
        # the others are for partial_fit, which this class does not have
        for name in ("labels_", "_gram", "_fit_classes", "_rng"):
            state.pop(name, None)
        state["client"] = None
        if "params_" in state:
            state["params_"] = state["params_"] | {"client": None}
        return state


def _get_meta(X, rows):
    """Return X without its rows: the columns of a DataFrame have names and types."""
    return X._meta if hasattr(X, "columns") else np.empty((0, rows.shape[1]))
