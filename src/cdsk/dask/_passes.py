# SPDX-License-Identifier: BSD-3-Clause
"""The passes of a fit over a dask array (tests/test_dask_estimator.py)."""

import math
from dataclasses import replace
from functools import partial

import dask
import dask.array as da
import numpy as np
from dask import delayed
from dask.base import tokenize

from cdsk._columns import ColumnSearch
from cdsk.blocks._gram import merge_grams
from cdsk.blocks._passes import check_same_n_rows
from cdsk.blocks._sample import merge_samples
from cdsk.dask._tasks import (
    count_task,
    gram_task,
    landmarks_task,
    length_task,
    make_key,
    map_chunks,
    predict_task,
    sample_task,
    size_task,
)


def as_row_chunks(X):
    """Return X as a dask array whose chunks have all columns."""
    if hasattr(X, "to_dask_array"):
        # tuning would combine files if only some columns are read
        with dask.config.set({"optimization.tune.active": False}):
            X = X.to_dask_array()
    if not isinstance(X, da.Array):
        raise ValueError(
            "X must be a dask array or a dask DataFrame; got "
            f"{type(X).__module__}.{type(X).__name__}. Use dask.array.from_array, or "
            "cdsk.BlockCDSK for data on one machine."
        )
    if X.ndim != 2:
        raise ValueError(
            f"X must be 2-dimensional, rows by columns; got shape {X.shape}."
        )
    if math.isnan(X.shape[1]):
        raise ValueError(f"X must have a known number of columns; got {X.shape[1]}.")
    return X.rechunk({1: -1}) if X.numblocks[1] > 1 else X


def predict_lazily(X, features, predictor, method):
    """Return a dask array of a ``LandmarkPredictor`` method, in the chunks of X."""
    empty = predictor.empty(method)
    n_columns = empty.shape[1] if empty.ndim == 2 else 1
    output = X.map_blocks(
        predict_task,
        name=f"cdsk-{method}-{tokenize(X, features, predictor)}",
        chunks=(X.chunks[0], (n_columns,)),
        meta=empty.reshape(0, n_columns),
        features=features,
        predictor=delayed(predictor, pure=True, traverse=False),
        method=method,
    )
    # dropping the axis in map_blocks would copy every chunk
    return output if empty.ndim == 2 else output[:, 0]


class DaskPasses:
    """The passes over X, by a runner: ``Local`` or ``Cluster``.

    ``search`` is a ``ColumnSearch`` by the types of X, None if all are numbers.
    """

    def __init__(self, X, runner, features, search=None):
        self._runner = runner
        self._features, self._search = features, search
        self._X = self._with_known_chunks(X)
        self.n_rows = self._X.shape[0]

    @property
    def columns(self):
        return self._features.columns

    def sample(self, seed, choose_size, callback):
        if self._search is not None:
            self._features = replace(self._features, columns=self._find_columns())
        size = choose_size(self.n_rows)
        key_bound = _bound_keys(size, self.n_rows)
        sample, n_sampled = self._sample(seed, size, key_bound, callback)
        if key_bound is not None and n_sampled < size:
            sample, _ = self._sample(seed, size, None, callback)
        return sample

    def fit_landmarks(self, sample, options, rng):
        key = make_key("landmarks")
        task = delayed(landmarks_task)(sample, options, rng, dask_key_name=key)
        self._fitted = self._runner.replicate(task)
        return self._runner.compute(self._fitted)

    def gram(self, factors, callback):
        grams = map_chunks(
            self._X,
            gram_task,
            "similarities",
            features=self._features,
            fitted=self._fitted,
            factors=factors,
        )
        gram = self._runner.compute(self._runner.merge(grams, merge_grams, callback))
        check_same_n_rows(self.n_rows, 0 if gram is None else gram.n_rows)
        return gram

    def predict_labels(self, predictor, callback):
        return predict_lazily(self._X, self._features, predictor, "predict")

    def _find_columns(self):
        """Return the columns by the values in all rows."""
        counts = map_chunks(self._X, count_task, "categories", search=self._search)
        task = self._runner.merge(counts, ColumnSearch.merge, lambda fraction: None)
        found = self._runner.compute(task)
        return None if found is None else self._search.decide(found)

    def _sample(self, seed, size, key_bound, callback):
        """Return a task with the sample, and the number of rows in it."""
        samples = map_chunks(
            self._X,
            sample_task,
            "sample",
            features=self._features,
            seed=seed,
            size=size,
            key_bound=key_bound,
        )
        merge = partial(merge_samples, size=size)
        sample = self._runner.merge(samples, merge, callback)
        task = delayed(size_task)(sample, dask_key_name=make_key("size"))
        n_sampled, n_rows = self._runner.compute(task)
        check_same_n_rows(self.n_rows, n_rows)
        return sample, n_sampled

    def _with_known_chunks(self, X):
        """Return X with known chunk sizes, counted in an extra pass if necessary."""
        if not math.isnan(X.shape[0]):
            return X
        lengths = self._runner.compute(map_chunks(X, length_task, "count"))
        sizes = tuple(map(int, lengths[:, 0]))
        return da.Array(X.dask, X.name, (sizes, X.chunks[1]), meta=X)


def _bound_keys(size, n):
    """Return a key almost certainly larger than the ``size`` smallest of n keys."""
    share = (size + 6 * math.sqrt(size) + 20) / max(n, 1)
    return np.uint64(share * 2.0**64) if share < 1 else None
