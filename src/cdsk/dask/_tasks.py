# SPDX-License-Identifier: BSD-3-Clause
"""Tasks on a chunk, or on results of chunks (tests/test_dask_tasks.py).

The tasks of a fit return values of columns, a ``Sample`` or a ``Gram`` of a chunk, None
if it has no rows. Each runs on one thread, as the scheduler keeps the processors busy.
A chunk is read in the task that processes it, as dask fuses operations on chunks. In
messages a chunk is a block of X, with the index it has in ``X.blocks``.
"""

from collections import Counter
from functools import reduce
from uuid import uuid4

import numpy as np
from dask.sizeof import sizeof
from scipy import sparse

from cdsk._columns import warn_unknown
from cdsk.blocks._gram import Gram
from cdsk.blocks._landmarks import Landmarks, fit_landmarks
from cdsk.blocks._passes import (
    choose_part_rows,
    count_parts,
    predict_parts,
    sample_parts,
    sum_grams,
)
from cdsk.blocks._sample import Sample
from cdsk.blocks._sources import Source

# Number of results that one task merges.
MERGE_FAN_IN = 8


def make_key(name):
    """Return a unique task key, shown as cdsk-name by the dashboard."""
    return f"cdsk-{name}-{uuid4().hex}"


def map_chunks(X, function, name, **kwargs):
    """Return a dask array with one result of ``function`` for each chunk of X."""
    return X.map_blocks(
        function,
        name=make_key(name),
        chunks=((1,) * X.numblocks[0], (1,)),
        meta=np.empty((0, 0), dtype=object),
        **kwargs,
    )


def length_task(chunk):
    """Return the number of rows (1, 1)."""
    return np.array([[len(chunk)]])


def count_task(chunk, search, block_info=None):
    """Return the values in the columns of a ``ColumnSearch``, in a chunk."""
    return count_parts(_iter_parts(chunk, block_info), search)


def sample_task(chunk, features, seed, size, key_bound, block_info=None):
    """Return the ``Sample`` of a chunk."""
    parts = _iter_parts(chunk, block_info)
    return sample_parts(parts, features, seed=seed, size=size, key_bound=key_bound)


def gram_task(chunk, features, fitted, factors, block_info=None):
    """Return the ``Gram`` of a chunk, given the result of ``landmarks_task``."""
    representation, landmarks, _ = fitted
    return sum_grams(
        _iter_parts(chunk, block_info, landmarks.points.size),
        features,
        representation=representation,
        landmarks=landmarks,
        factors=factors,
    )


def predict_task(chunk, features, predictor, method, block_info=None):
    """Return the result of a ``LandmarkPredictor`` for a chunk, as a matrix."""
    block, first_row = _locate(block_info)
    parts = _iter_parts(chunk, block_info, predictor.work_per_row)
    try:
        results = predict_parts(parts, features, predictor, method)
        values: list[np.ndarray] = []
        unknown: Counter[str] = Counter()
        for part, value in results:
            values.append(value)
            unknown.update(part.unknown)
    except ValueError as error:
        if first_row is not None:
            raise
        raise ValueError(
            f"{error} (Chunk sizes are unknown: row numbers are relative to block "
            f"{block}.)"
        ) from None
    warn_unknown(unknown)
    output = np.concatenate([predictor.empty(method), *values])
    return output if output.ndim == 2 else output[:, np.newaxis]


def size_task(sample):
    """Return the number of rows of a ``Sample``, and that it was drawn from."""
    return (0, 0) if sample is None else (len(sample.keys), sample.n_rows)


def landmarks_task(sample, options, rng):
    """Return the representation, the landmarks and the advanced generator."""
    return *fit_landmarks(sample.points, options, rng, n_threads=1), rng


def merge_task(results, function):
    """Merge all results that are not None."""
    present = [result for result in results if result is not None]
    return reduce(function, present) if present else None


def _locate(block_info):
    """Return the index of a chunk and of its first row, None if that is unknown."""
    info = block_info[0]
    first_row = info["array-location"][0][0]
    return info["chunk-location"][0], None if np.isnan(first_row) else int(first_row)


def _iter_parts(chunk, block_info, work_per_row=0):
    block, first_row = _locate(block_info)
    source = Source(lambda: iter([chunk]), has_blocks=True)
    return source.iter_parts(
        choose_part_rows(work_per_row), first_row=first_row or 0, first_block=block
    )


# Sizes that schedulers use to decide what to move.
@sizeof.register(Sample)
def _(sample):
    return sizeof((sample.keys, sample.rows, sample.points))


@sizeof.register(Gram)
def _(gram):
    return sizeof((gram.counts, gram.missing, gram.matrices))


@sizeof.register(Landmarks)
def _(landmarks):
    # twice: the search tree holds a copy
    return 2 * sizeof(landmarks.points)


@sizeof.register(sparse.csr_array)
def _(matrix):
    return sizeof((matrix.data, matrix.indices, matrix.indptr))
