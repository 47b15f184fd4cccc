# SPDX-License-Identifier: BSD-3-Clause
"""The estimator of dask collections (tests/test_dask_estimator.py)."""

from contextlib import nullcontext
from typing import Any, Self

import dask.array as da
import numpy as np
from distributed import Client
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, validate_data

from cdsk._blocks.estimator import PARTS, LandmarkEstimator
from cdsk._frames import check_columns
from cdsk._progress import Progress
from cdsk._runtime import said_in_words, unchanged_if_it_fails
from cdsk.dask._cluster import Cluster
from cdsk.dask._local import Local
from cdsk.dask._passes import DaskPasses, as_rows, judged

# Labels are made when they are asked for.
_PARTS = {name: part / (1 - PARTS["labels"]) for name, part in PARTS.items()}
_PARTS["labels"] = 0.0


# No set_output: a frame of pandas or polars would be computed at once. The keyword is
# scikit-learn's, of which mypy knows nothing.
class CDSK(LandmarkEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """``BlockCDSK`` of dask arrays and DataFrames, on all workers of a cluster.

    The same rows and the same ``random_state`` give the labels of ``BlockCDSK`` to the
    bit, whatever the chunks, the workers and their number.

    ``fit`` goes through the blocks twice, once more if the sizes of chunks are not
    known: X should be persisted if that is cheaper than to make it again. The landmarks
    are clustered in the process of the caller. All that is said of rows is lazy, in the
    chunks of X.

    Parameters
    ----------
    n_clusters, n_landmarks, sample_size, landmarks, representation, n_components, \
            lam, max_iter, tol, qp_tol, assign_labels, n_init, random_state, verbose
        As for ``BlockCDSK``.
    kernel : {"rbf"}, default="rbf"
        The only one: landmarks need rows that can be compared.
    n_threads : int, default=None
        Threads for the fit of the landmarks. Tasks on blocks have one each.
    client : distributed.Client, default=None
        Whose workers to use. None: those of the current client, or the scheduler of
        dask in this process if there is none.

    Attributes
    ----------
    labels_ : dask.array.Array of shape (n_samples,)
        Cluster of each row, lazily: what ``predict`` says of it. It refers to X and is
        left out where a model is pickled.
    n_samples_, n_clusters_, landmarks_, landmark_masses_, landmark_model_, \
            representation_, choice_, lam_, n_iter_, converged_, params_, \
            n_features_in_, feature_names_in_
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

    _reported_as = "dask.CDSK"

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

    @said_in_words("A fit of blocks", "fewer landmarks")
    def fit(self, X: Any, y: object = None) -> Self:
        """Cluster the rows of X, now.

        Parameters
        ----------
        X : dask array or dask DataFrame of shape (n_samples, n_features)
            In chunks of any number of rows. Chunks of some columns are put together.
        y : Ignored
            Present for the scikit-learn API.

        Returns
        -------
        self : CDSK
        """
        with unchanged_if_it_fails(self):
            inner = self._check_parameters()
            rows = self._checked(X, reset=True)
            with self._runner() as runner, Progress(self.verbose, _PARTS) as progress:
                progress.stage("sample")
                passes = DaskPasses(rows, runner)
                return self._fit(passes, inner, progress)

    def predict(self, X: Any) -> da.Array:
        """Cluster of new rows: the one with the largest votes of the landmarks near.

        Parameters
        ----------
        X : dask array or dask DataFrame of shape (n_new, n_features)

        Returns
        -------
        labels : dask array of shape (n_new,)
        """
        return self._judged(X, "labels")

    def decision_function(self, X: Any) -> da.Array:
        """Logarithm of the votes of the landmarks for every cluster.

        Parameters
        ----------
        X : dask array or dask DataFrame of shape (n_new, n_features)

        Returns
        -------
        log_votes : dask array of shape (n_new, n_clusters)
            -inf for a cluster none of whose landmarks is near.
        """
        return self._judged(X, "log_votes")

    def predict_proba(self, X: Any) -> da.Array:
        """Share of every cluster in the votes.

        Parameters
        ----------
        X : dask array or dask DataFrame of shape (n_new, n_features)

        Returns
        -------
        shares : dask array of shape (n_new, n_clusters)
            Rows sum to 1. They are no calibrated probabilities.
        """
        return self._judged(X, "shares")

    def transform(self, X: Any) -> da.Array:
        """Rows in the embedding of the landmarks: the mean of those near.

        Parameters
        ----------
        X : dask array or dask DataFrame of shape (n_new, n_features)

        Returns
        -------
        coordinates : dask array of shape (n_new, n_clusters)
            Fewer columns where fewer rows of the sample differ.
        """
        return self._judged(X, "coordinates")

    def _judged(self, X, what):
        check_is_fitted(self, "landmarks_")
        return judged(self._checked(X, reset=False), self._judge, what)

    def _checked(self, X, reset):
        rows = as_rows(X)
        # names of the columns are those of a DataFrame without rows
        seen = X._meta if hasattr(X, "columns") else rows
        check_columns(seen, "X")
        validate_data(self, seen, reset=reset, skip_check_array=True)
        return rows

    def _check_parameters(self):
        if self.kernel != "rbf":
            raise ValueError(
                "kernel must be 'rbf', as rows are compared with landmarks; got "
                f"{self.kernel!r}. A precomputed kernel is for cdsk.CDSK."
            )
        if not isinstance(self.client, Client | None):
            raise ValueError(
                "client must be a distributed.Client or None; got "
                f"{type(self.client).__name__}."
            )
        return super()._check_parameters()

    def _runner(self):
        client = self.client
        if client is None:
            try:
                client = Client.current()
            except ValueError:
                return nullcontext(Local())
        return Cluster(client)

    def __sklearn_clone__(self):
        # a client cannot be copied
        own = self.get_params(deep=False)
        client = own.pop("client")
        return type(self)(**clone(own, safe=False), client=client)

    def __getstate__(self):
        state = dict(super().__getstate__())
        state.pop("labels_", None)
        state["client"] = None
        if "params_" in state:
            state["params_"] = state["params_"] | {"client": None}
        return state
