import threading
import time

import numpy as np
import pytest

from cdsk._blocks.candidates import FACTORS
from cdsk._blocks.passes import ThreadPasses, in_order, rows_for
from cdsk._blocks.sources import as_source


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_in_order_and_not_all_at_once(n_threads):
    read, given = [], 0

    def parts():
        for i in range(50):
            read.append(i)
            assert len(read) - given <= 2 * n_threads
            yield i

    def square(i):
        time.sleep(0.002 * (i % 3))
        return i * i

    for part, value in in_order(parts(), square, n_threads):
        assert (part, value) == (given, given * given)
        given += 1
    assert given == 50


def test_on_so_many_threads():
    barrier = threading.Barrier(3, timeout=10)
    done = list(in_order(range(3), lambda i: barrier.wait() >= 0, 3))
    assert done == [(0, True), (1, True), (2, True)]


@pytest.mark.parametrize("n_threads", [1, 2])
def test_errors_end_the_pass_and_its_threads(n_threads):
    before, called = threading.active_count(), []

    def fail(i):
        called.append(i)
        if i == 3:
            raise ValueError("three")
        return i

    with pytest.raises(ValueError, match="three"):
        list(in_order(range(1000), fail, n_threads))
    assert len(called) < 20
    assert threading.active_count() == before


def test_rows():
    assert rows_for(0) == 2**29
    assert rows_for(2**20) == 512
    assert rows_for(2**40) == 256


def test_shares_of_the_passes_are_told(rng, monkeypatch):
    monkeypatch.setattr("cdsk._blocks.sources._PART_ROWS", 25)
    X, told = rng.normal(size=(100, 3)), []
    for given, of_sample in ((X, [0.25, 0.5, 0.75, 1.0]), ([X[:50], X[50:]], [])):
        passes = ThreadPasses(as_source(given), lambda rows: 3, 1)
        # of blocks it is not known before how many rows they have
        sample = passes.sample(0, lambda n: 40, told.append)
        assert told == of_sample
        told.clear()
        how = {"how": "uniform", "view": "raw", "n_components": None}
        passes.decide(sample, np.random.RandomState(0), n_clusters=2, m=9, **how)
        passes.gram(FACTORS, told.append)
        assert told == [0.25, 0.5, 0.75, 1.0]
        told.clear()
