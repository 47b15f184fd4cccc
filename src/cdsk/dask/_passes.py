# SPDX-License-Identifier: BSD-3-Clause
"""The passes of a fit over a dask array (tests/test_dask_estimator.py)."""

import math
from functools import partial

import dask
import dask.array as da
import numpy as np
from dask import delayed
from dask.base import tokenize

from cdsk._blocks.gram import merge_grams
from cdsk._blocks.passes import check_same_rows
from cdsk._blocks.sample import merge_samples
from cdsk.dask._tasks import (
    decide_task,
    gram_task,
    judge_task,
    length_task,
    new_key,
    over_blocks,
    sample_task,
    size_task,
)


def as_rows(X):
    """A dask array whose chunks are whole rows."""
    if hasattr(X, "to_dask_array"):
        # tuned, a file of which some columns are read would be put with the next one
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


def judged(X, judge, what):
    """What a ``Judge`` says of the rows of X, lazily, in the chunks of X."""
    none = judge.none(what)
    columns = none.shape[1] if none.ndim == 2 else 1
    found = X.map_blocks(
        judge_task,
        name=f"cdsk-{what}-{tokenize(X, judge)}",
        chunks=(X.chunks[0], (columns,)),
        meta=none.reshape(0, columns),
        n_features=X.shape[1],
        judge=delayed(judge, pure=True, traverse=False),
        what=what,
    )
    # an axis that map_blocks drops costs a copy of every block
    return found if none.ndim == 2 else found[:, 0]


class DaskPasses:
    """The passes over X, by a runner: ``Local`` or ``Cluster``."""

    def __init__(self, X, runner):
        self._runner = runner
        self._X = self._counted(X)
        self.n_rows = self._X.shape[0]

    def sample(self, seed, size_for, told):
        size = size_for(self.n_rows)
        below = _above_smallest(size, self.n_rows)
        sample, found = self._sample(seed, size, below, told)
        if below is not None and found < size:
            sample, _ = self._sample(seed, size, None, told)
        return sample

    def decide(self, sample, rng, **how):
        name = new_key("landmarks")
        task = delayed(decide_task)(sample, rng, how, dask_key_name=name)
        self._decided = self._runner.everywhere(task)
        return self._runner.value(self._decided)

    def gram(self, factors, told):
        grams = over_blocks(
            *(self._X, gram_task, "similarities"),
            decided=self._decided,
            factors=factors,
        )
        gram = self._runner.value(self._runner.merged(grams, merge_grams, told))
        check_same_rows(self.n_rows, 0 if gram is None else gram.n_rows)
        return gram

    def labels(self, judge, told):
        return judged(self._X, judge, "labels")

    def _sample(self, seed, size, below, told):
        """The sample, wherever it is, and how many rows are in it."""
        samples = over_blocks(
            *(self._X, sample_task, "sample"), seed=seed, size=size, below=below
        )
        merge = partial(merge_samples, size=size)
        sample = self._runner.merged(samples, merge, told)
        task = delayed(size_task)(sample, dask_key_name=new_key("size"))
        found, n_rows = self._runner.value(task)
        check_same_rows(self.n_rows, n_rows)
        return sample, found

    def _counted(self, X):
        """X with known chunks, which takes a pass if they are not."""
        if not math.isnan(X.shape[0]):
            return X
        lengths = self._runner.value(over_blocks(X, length_task, "count"))
        rows = tuple(map(int, lengths[:, 0]))
        return da.Array(X.dask, X.name, (rows, X.chunks[1]), meta=X)


def _above_smallest(size, n):
    """A key that is larger than the ``size`` smallest of n, as good as certainly."""
    share = (size + 6 * math.sqrt(size) + 20) / max(n, 1)
    return np.uint64(share * 2.0**64) if share < 1 else None
