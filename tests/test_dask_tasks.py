import importlib
from operator import add

import numpy as np
import pytest
from scipy import sparse

from cdsk.blocks._gram import Gram
from cdsk.blocks._landmarks import Landmarks
from cdsk.blocks._sample import sample_rows
from cdsk.blocks._sources import Features

dask = pytest.importorskip("dask", reason="dask is not installed")
da = pytest.importorskip("dask.array", reason="dask.array is not installed")
pytest.importorskip("distributed", reason="distributed is not installed")
tasks = importlib.import_module("cdsk.dask._tasks")
sizeof = importlib.import_module("dask.sizeof").sizeof


@pytest.fixture
def rows():
    def read(block_info=None):
        first, end = block_info[None]["array-location"][0]
        return np.arange(4.0 * first, 4.0 * end).reshape(-1, 4)

    return da.map_blocks(read, chunks=((30, 0, 70), (4,)), dtype=float)


def samples(X):
    options = {"features": Features(4), "seed": 3, "size": 5, "key_bound": None}
    return tasks.map_chunks(X, tasks.sample_task, "sample", **options)


def test_a_result_for_every_chunk(rows):
    found = [task.compute() for task in samples(rows).to_delayed().ravel()]
    X = rows.compute()
    for sample, (a, b) in zip(found[::2], [(0, 30), (30, 100)], strict=True):
        expected = sample_rows(X[a:b], a, 3, 5)
        assert (sample.rows == expected.rows).all()
        assert (sample.points == expected.points).all()
    assert found[1] is None


def test_reading_is_fused_with_the_task(rows):
    (graph,) = dask.optimize(samples(rows - 1.0))
    assert len(dict(graph.__dask_graph__())) == 3


def test_keys_are_unique_and_named_for_the_dashboard(rows):
    key_split = importlib.import_module("dask.utils").key_split
    assert samples(rows).name != samples(rows).name
    assert key_split(samples(rows).name) == "cdsk-sample"


def test_merge_task():
    assert tasks.merge_task([None, 1, None, 2, 3], add) == 6
    assert tasks.merge_task([None, 4], add) == 4
    assert tasks.merge_task([None], add) is None


def test_sizeof(rng):
    X = rng.normal(size=(1000, 8))
    assert sizeof(sample_rows(X, 0, 0, 500)) >= 500 * 10 * 8
    matrix = sparse.random_array((500, 500), density=0.1, format="csr")
    gram = Gram(
        (matrix, matrix),
        np.zeros(500, dtype=np.int64),
        np.zeros((2, 500, 1), np.int64),
        np.zeros((500, 8), np.int64),
        1,
    )
    assert sizeof(gram) >= 2 * (matrix.data.nbytes + matrix.indices.nbytes)
    assert sizeof(Landmarks(X)) >= 2 * X.nbytes
