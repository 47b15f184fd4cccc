# SPDX-License-Identifier: BSD-3-Clause
"""The passes over the rows of X (tests/test_blocks_passes.py).

Each is a function of parts of X. Parts are read by the calling thread, one after the
other, and no more of them than twice the threads are under way. They are so small that
Ctrl-C, which the calling thread alone hears, waits for nothing longer than a fraction
of a second.
"""

import math
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from typing import Any, Protocol

import numpy as np

from cdsk._blocks.gram import gram_of_block, merge_grams
from cdsk._blocks.landmarks import decide
from cdsk._blocks.sample import merge_samples, sample_of_block
from cdsk._runtime import check_memory

# Products of numbers that a part may take: a few tenths of a second.
_WORK = 2**29
_LEAST_ROWS = 2**8


def rows_for(work_per_row):
    """Rows of a part each of which takes so many products."""
    return max(_LEAST_ROWS, _WORK // max(work_per_row, 1))


def in_order(parts, function, n_threads):
    """Yield (part, function(part)) for all parts, in their order."""
    if n_threads == 1:
        for part in parts:
            yield part, function(part)
        return
    pool = ThreadPoolExecutor(n_threads)
    waiting: deque[tuple[Any, Future[Any]]] = deque()
    try:
        for part in parts:
            waiting.append((part, pool.submit(function, part)))
            if len(waiting) >= 2 * n_threads:
                done, future = waiting.popleft()
                yield done, future.result()
        while waiting:
            done, future = waiting.popleft()
            yield done, future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def sample_of_parts(parts, n_features, seed, size, below=None, n_threads=1, told=None):
    """The ``Sample`` of all parts, of keys ``below`` it; None if there are no rows.

    ``told`` is called with the rows that were seen.
    """
    sample = None

    def of_part(part):
        block = part.checked(n_features)
        return sample_of_block(block, part.first, seed, size, below)

    for _, found in in_order(parts, of_part, n_threads):
        sample = found if sample is None else merge_samples(sample, found, size)
        if len(sample.keys) == size:
            below = sample.keys[-1]
        if told is not None:
            told(sample.n_rows)
    return sample


def gram_of_parts(
    parts, n_features, representation, landmarks, factors, n_threads=1, told=None
):
    """The ``Gram`` of all parts; None if there are no rows.

    ``told`` is called with the rows that were seen.
    """
    gram = None

    def of_part(part):
        block = part.checked(n_features)
        with part.counting_rows():
            return gram_of_block(block, representation, landmarks, factors)

    for _, found in in_order(parts, of_part, n_threads):
        gram = found if gram is None else merge_grams(gram, found)
        if told is not None:
            told(gram.n_rows)
    return gram


def judge_parts(parts, n_features, judge, what, n_threads=1):
    """Yield (part, what a ``Judge`` says of its rows)."""

    def of_part(part):
        block = part.checked(n_features)
        with part.counting_rows():
            return getattr(judge, what)(block)

    return in_order(parts, of_part, n_threads)


class Passes(Protocol):
    """What a fit asks for, in this order.

    ``told`` is called with the share of a pass that is done.
    """

    # rows of X, known after the sample at the latest
    n_rows: int

    def sample(self, seed, size_for, told) -> Any:
        """The sample of ``size_for(n_rows)`` rows, wherever it is."""

    def decide(self, sample, rng, **how) -> Any:
        """What ``decide`` gives of it, and the random numbers after that."""

    def gram(self, factors, told) -> Any:
        """The ``Gram`` of all rows."""

    def labels(self, judge, told) -> Any:
        """The labels of all rows."""


class ThreadPasses:
    """The passes over a ``Source`` on threads of this process.

    ``meet`` is called with the first rows, and gives the number of features.
    """

    def __init__(self, source, meet, n_threads):
        self._source = source
        self._meet = meet
        self._n_threads = n_threads
        self.n_rows = source.n_rows

    def sample(self, seed, size_for, told):
        size = size_for(np.iinfo(int).max)
        parts, n_features = self._met()
        sample = sample_of_parts(
            *(parts, n_features, seed, size, None, self._n_threads),
            told=self._share(told),
        )
        self.n_rows = 0 if sample is None else sample.n_rows
        return sample and sample.first(size_for(self.n_rows))

    def decide(self, sample, rng, **how):
        self._decided = decide(sample.points, **how, rng=rng, n_threads=self._n_threads)
        return *self._decided, rng

    def gram(self, factors, told):
        representation, landmarks = self._decided
        parts, n_features = self._met(landmarks.points.size)
        gram = gram_of_parts(
            *(parts, n_features, representation, landmarks, factors, self._n_threads),
            told=self._share(told),
        )
        check_same_rows(self.n_rows, 0 if gram is None else gram.n_rows)
        return gram

    def labels(self, judge, told):
        return self.judged(judge, "labels", told)

    def judged(self, judge, what, told=None):
        """What a ``Judge`` says of all rows: nothing else is made of all of them."""
        n, found, pieces, seen = self.n_rows, None, [], 0
        parts, n_features = self._met(judge.work_per_row)
        for part, values in judge_parts(
            parts, n_features, judge, what, self._n_threads
        ):
            if n is None:
                pieces.append(values)
                continue
            if found is None:
                shape = n, *values.shape[1:]
                check_memory(8 * math.prod(shape), "The result", "Use fewer rows.")
                found = np.empty(shape, dtype=values.dtype)
            end = part.first + len(values)
            if end > n:
                check_same_rows(n, end)
            found[part.first : end] = values
            seen = end
            if told is not None:
                told(seen / n)
        if n is None:
            found = np.concatenate(pieces) if pieces else None
        else:
            check_same_rows(n, seen)
        if found is None:
            raise ValueError("X must have at least one row; got 0.")
        return found

    def _share(self, told):
        """What is to be called with rows that were seen, if all are known."""
        n = self.n_rows
        return None if n is None else lambda seen: told(min(seen / n, 1.0))

    def _met(self, work_per_row=0):
        """The parts of X, and how many features they have."""
        parts = self._source.parts(rows_for(work_per_row))
        first = next(parts, None)
        if first is None:
            return iter(()), 0
        return chain([first], parts), self._meet(first.rows)


def check_same_rows(n, seen):
    """Refuse data that have other rows when they are gone through again."""
    if seen != n:
        raise ValueError(
            "X must give the same blocks every time it is gone through; got "
            f"{n} rows at first and {seen} later."
        )
