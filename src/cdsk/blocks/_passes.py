# SPDX-License-Identifier: BSD-3-Clause
"""The passes over the rows of X (tests/test_blocks_passes.py).

A pass maps a function over the parts of X. The calling thread reads them one after the
other, and at most twice as many parts as threads are in progress. Only the calling
thread receives Ctrl-C; as parts are small, it takes effect within a fraction of a
second.
"""

import math
from collections import Counter, deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from cdsk._columns import ColumnSearch, warn_unknown
from cdsk._utils import check_memory
from cdsk.blocks._gram import compute_gram, merge_grams
from cdsk.blocks._landmarks import fit_landmarks
from cdsk.blocks._sample import merge_samples, sample_rows
from cdsk.blocks._sources import Features

# Multiplications for one part: a few tenths of a second.
_PART_WORK = 2**29
_MIN_PART_ROWS = 2**8


def choose_part_rows(work_per_row):
    """Return the number of rows of a part, given the multiplications per row."""
    return max(_MIN_PART_ROWS, _PART_WORK // max(work_per_row, 1))


def map_ordered(parts, function, n_threads):
    """Yield (part, function(part)) for all parts, in their order."""
    if n_threads == 1:
        for part in parts:
            yield part, function(part)
        return
    pool = ThreadPoolExecutor(n_threads)
    pending: deque[tuple[Any, Future[Any]]] = deque()
    try:
        for part in parts:
            pending.append((part, pool.submit(function, part)))
            if len(pending) >= 2 * n_threads:
                done, future = pending.popleft()
                yield done, future.result()
        while pending:
            done, future = pending.popleft()
            yield done, future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _map_rows(parts, features, function, n_threads):
    """Yield (part, function(rows, part)) with validated rows."""

    def apply(part):
        rows = part.validate(features)
        with part.explain_row_offset():
            return function(rows, part)

    return map_ordered(parts, apply, n_threads)


def count_parts(parts, search, n_threads=1):
    """Return the values in the columns of a ``ColumnSearch``, None without rows."""
    found = None

    def count(part):
        with part.explain_row_offset():
            return search.count(part.as_frame(), part.first_row)

    for _, new in map_ordered(parts, count, n_threads):
        found = new if found is None else ColumnSearch.merge(found, new)
    return found


def sample_parts(
    parts, features, seed, size, key_bound=None, n_threads=1, callback=None
):
    """Return the ``Sample`` of all parts, or None if there are no rows.

    Rows whose key is not below ``key_bound`` are skipped. ``callback`` is called with
    the number of rows read so far.
    """
    sample = None

    def sample_part(rows, part):
        return sample_rows(rows, part.first_row, seed, size, key_bound)

    for _, new in _map_rows(parts, features, sample_part, n_threads):
        sample = new if sample is None else merge_samples(sample, new, size)
        if len(sample.keys) == size:
            key_bound = sample.keys[-1]
        if callback is not None:
            callback(sample.n_rows)
    return sample


def sum_grams(
    parts, features, representation, landmarks, factors, n_threads=1, callback=None
):
    """Return the ``Gram`` of all parts, or None if there are no rows.

    ``callback`` is called with the number of rows read so far.
    """
    gram = None

    def compute_part(rows, part):
        return compute_gram(rows, representation, landmarks, factors)

    for _, new in _map_rows(parts, features, compute_part, n_threads):
        gram = new if gram is None else merge_grams(gram, new)
        if callback is not None:
            callback(gram.n_rows)
    return gram


def predict_parts(parts, features, predictor, method, n_threads=1):
    """Yield (part, result for its rows) of a method of a ``LandmarkPredictor``."""

    def predict_part(rows, part):
        return getattr(predictor, method)(rows)

    return _map_rows(parts, features, predict_part, n_threads)


class Passes(Protocol):
    """The passes of a fit, in this order.

    ``callback`` is called with the completed fraction of a pass.
    """

    # number of rows of X, and its ``Columns``, None if all of them hold numbers; both
    # are known after the sample at the latest
    n_rows: int
    columns: Any

    def sample(self, seed, choose_size, callback) -> Any:
        """Return a handle of the sample of ``choose_size(n_rows)`` rows."""

    def fit_landmarks(self, sample, options, rng) -> Any:
        """Return the representation, the landmarks and the advanced generator."""

    def gram(self, factors, callback) -> Any:
        """Return the ``Gram`` of all rows."""

    def predict_labels(self, predictor, callback) -> Any:
        """Return the labels of all rows."""


class ThreadPasses:
    """The passes over a ``Source`` on threads of this process.

    ``check_features`` is called with the first rows and returns the number of features.
    ``features`` are those of the fit, or say whether cells may be missing; then columns
    of categories are found by ``categorical``, as ``categorical_features``.
    """

    def __init__(
        self, source, check_features, n_threads, features=None, *, categorical=None
    ):
        self._source = source
        self._check_features = check_features
        self._n_threads = n_threads
        self._features = Features(0) if features is None else features
        self._categorical = categorical
        self.n_rows = source.n_rows

    @property
    def columns(self):
        return self._features.columns

    def sample(self, seed, choose_size, callback):
        parts, features = self._find_columns(*self._open())
        sample = sample_parts(
            parts,
            features,
            seed=seed,
            size=choose_size(np.iinfo(int).max),
            n_threads=self._n_threads,
            callback=self._to_fraction(callback),
        )
        self.n_rows = 0 if sample is None else sample.n_rows
        return sample and sample.head(choose_size(self.n_rows))

    def fit_landmarks(self, sample, options, rng):
        self._fitted = fit_landmarks(sample.points, options, rng, self._n_threads)
        return *self._fitted, rng

    def resume(self, representation, landmarks):
        """Take the place of ``sample`` and ``fit_landmarks``, for rows of an update."""
        self._fitted = representation, landmarks

    def gram(self, factors, callback):
        representation, landmarks = self._fitted
        parts, features = self._open(landmarks.points.size)
        gram = sum_grams(
            parts,
            features,
            representation=representation,
            landmarks=landmarks,
            factors=factors,
            n_threads=self._n_threads,
            callback=self._to_fraction(callback),
        )
        n_rows = 0 if gram is None else gram.n_rows
        if self.n_rows is None:  # the first pass of an update
            self.n_rows = n_rows
        check_same_n_rows(self.n_rows, n_rows)
        if gram is None:
            raise ValueError("X must have at least one row; got 0.")
        return gram

    def predict_labels(self, predictor, callback):
        return self.predict(predictor, "predict", callback)

    def predict(self, predictor, method, callback=None):
        """Return the result of a method of a ``LandmarkPredictor`` for all rows."""
        parts, features = self._open(predictor.work_per_row)
        # closed if a pass fails: its threads end before the error is raised
        with closing(
            predict_parts(parts, features, predictor, method, self._n_threads)
        ) as results:
            unknown: Counter[str] = Counter()
            results = _count_unknown(results, unknown)
            if self.n_rows is None:
                values = [value for _, value in results]
                output = np.concatenate(values) if values else None
            else:
                output = self._collect(results, self._to_fraction(callback))
        if output is None:
            raise ValueError("X must have at least one row; got 0.")
        warn_unknown(unknown)
        return output

    def _collect(self, results, callback):
        """Return one array of the results of all parts, which is allocated once."""
        n, n_read, output = self.n_rows, 0, None
        for part, values in results:
            if output is None:
                shape = n, *values.shape[1:]
                check_memory(8 * math.prod(shape), "The result", "Use fewer rows.")
                output = np.empty(shape, dtype=values.dtype)
            n_read = part.first_row + len(values)
            if n_read > n:
                check_same_n_rows(n, n_read)
            output[part.first_row : n_read] = values
            if callback is not None:
                callback(n_read)
        check_same_n_rows(n, n_read)
        return output

    def _to_fraction(self, callback):
        """Return a callback for numbers of rows, None if n_rows is not known."""
        n = self.n_rows
        if n is None or callback is None:
            return None
        return lambda n_read: callback(min(n_read / n, 1.0))

    def _find_columns(self, parts, features):
        """Find the columns, and return parts and features as ``_open``.

        All rows are read only if the types of the first ones are not all numbers.
        """
        first = next(parts, None)
        if first is None:
            return parts, features
        search = ColumnSearch.of(first.as_frame(), self._categorical)
        if search is None:
            return chain_parts(first, parts), features
        with closing(chain_parts(first, parts)) as parts:
            columns = search.decide(count_parts(parts, search, self._n_threads))
        self._features = replace(self._features, columns=columns)
        return self._open()

    def _open(self, work_per_row=0):
        """Return an iterator of the parts of X, and its ``Features``."""
        parts = self._source.iter_parts(choose_part_rows(work_per_row))
        first = next(parts, None)
        if first is None:
            return iter(()), self._features
        n = self._check_features(first.rows)
        return chain_parts(first, parts), replace(self._features, n=n)


def chain_parts(first, parts):
    """Yield a part and the others; they are closed with the generator."""
    with closing(parts):
        yield from () if first is None else (first,)
        yield from parts


def _count_unknown(results, unknown):
    """Yield (part, value), and add up the cells of unknown categories."""
    for part, value in results:
        unknown.update(part.unknown)
        yield part, value


def check_same_n_rows(expected, n_rows):
    """Raise ValueError if the number of rows differs from that of the first pass."""
    if n_rows != expected:
        raise ValueError(
            "X must have the same rows in every pass; got "
            f"{expected} rows in the first pass and {n_rows} in a later one."
        )
