# SPDX-License-Identifier: BSD-3-Clause
"""Tasks: what is done with a block, or with results (tests/test_dask_tasks.py).

Those of a fit give a ``Sample`` or a ``Gram`` for a block, None for one without rows,
and run on one thread each: the scheduler keeps the processors busy. A block is read in
the task that works on it, as dask fuses operations on blocks.
"""

from functools import reduce
from uuid import uuid4

import numpy as np
from dask.sizeof import sizeof
from scipy import sparse

from cdsk._blocks.gram import Gram
from cdsk._blocks.landmarks import Landmarks, decide
from cdsk._blocks.passes import (
    gram_of_parts,
    judge_parts,
    rows_for,
    sample_of_parts,
)
from cdsk._blocks.sample import Sample
from cdsk._blocks.sources import Source

# Results that are merged at a time.
FAN = 8


def new_key(name):
    """A key of a task that is nobody else's, shown as cdsk-name by the dashboard."""
    return f"cdsk-{name}-{uuid4().hex}"


def over_blocks(X, function, name, **how):
    """A dask array with a result of ``function`` in the place of every block of X."""
    return X.map_blocks(
        function,
        name=new_key(name),
        chunks=((1,) * X.numblocks[0], (1,)),
        meta=np.empty((0, 0), dtype=object),
        n_features=X.shape[1],
        **how,
    )


def length_task(block, n_features):
    """Number of rows."""
    return np.array([[len(block)]])


def sample_task(block, n_features, seed, size, below, block_info=None):
    """The ``Sample`` of a block."""
    return sample_of_parts(_parts(block, block_info), n_features, seed, size, below)


def gram_task(block, n_features, decided, factors, block_info=None):
    """The ``Gram`` of a block, by what ``decide_task`` gave."""
    representation, landmarks, _ = decided
    parts = _parts(block, block_info, landmarks.points.size)
    return gram_of_parts(parts, n_features, representation, landmarks, factors)


def judge_task(block, n_features, judge, what, block_info=None):
    """What a ``Judge`` says of a block, in columns."""
    number, first = _place(block_info)
    parts = _parts(block, block_info, judge.work_per_row)
    try:
        found = [values for _, values in judge_parts(parts, n_features, judge, what)]
    except ValueError as error:
        if first is not None:
            raise
        raise ValueError(
            f"{error} (Chunk sizes are not known: rows are counted from the first of "
            f"block {number}.)"
        ) from None
    found = np.concatenate([judge.none(what), *found])
    return found if found.ndim == 2 else found[:, np.newaxis]


def size_task(sample):
    """Number of rows in a ``Sample``, and of those that it was drawn from."""
    return (0, 0) if sample is None else (len(sample.keys), sample.n_rows)


def decide_task(sample, rng, how):
    """Representation and landmarks for a sample, and the random numbers after that."""
    return *decide(sample.points, **how, rng=rng, n_threads=1), rng


def merge_task(results, merge):
    """What all results that are not None merge to."""
    some = [result for result in results if result is not None]
    return reduce(merge, some) if some else None


def _place(block_info):
    """Number of a block and of its first row, None if that is not known."""
    block = block_info[0]
    first = block["array-location"][0][0]
    return block["chunk-location"][0], None if np.isnan(first) else int(first)


def _parts(block, block_info, work_per_row=0):
    number, first = _place(block_info)
    source = Source(lambda: iter([block]), True)
    return source.parts(rows_for(work_per_row), first or 0, number)


# Schedulers weigh what they move.
@sizeof.register(Sample)
def _(sample):
    return sizeof((sample.keys, sample.rows, sample.points))


@sizeof.register(Gram)
def _(gram):
    return sizeof((gram.counts, gram.matrices))


@sizeof.register(Landmarks)
def _(landmarks):
    # once more in their search
    return 2 * sizeof(landmarks.points)


@sizeof.register(sparse.csr_array)
def _(matrix):
    return sizeof((matrix.data, matrix.indices, matrix.indptr))
