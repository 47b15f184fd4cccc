import threading
from types import SimpleNamespace

import numpy as np
import pytest

from cdsk.blocks._landmark_kernels import BANDWIDTH_FACTORS
from cdsk.blocks._landmarks import LandmarkOptions
from cdsk.blocks._passes import ThreadPasses, choose_part_rows, map_ordered
from cdsk.blocks._sources import as_source

# Timeout in seconds; nothing waits that long unless a test fails.
PATIENCE = 600
OPTIONS = LandmarkOptions(
    n_clusters=2,
    n_landmarks=9,
    method="uniform",
    representation="raw",
    n_components=None,
)


@pytest.fixture
def no_thread_is_left():
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_parts_are_mapped_in_order_with_bounded_lookahead(n_threads, no_thread_is_left):
    read, given = [], 0
    finished = [threading.Event() for _ in range(50)]

    def parts():
        for i in range(50):
            read.append(i)
            assert len(read) - given <= 2 * n_threads
            yield i

    def square(i):
        # of two consecutive parts the second one finishes first
        if n_threads > 1 and i % 2 == 0:
            assert finished[i + 1].wait(PATIENCE)
        finished[i].set()
        return i * i

    for part, value in map_ordered(parts(), square, n_threads):
        assert (part, value) == (given, given * given)
        given += 1
    assert given == 50


def test_number_of_threads():
    barrier = threading.Barrier(3, timeout=PATIENCE)
    done = list(map_ordered(range(3), lambda i: barrier.wait() >= 0, 3))
    assert done == [(0, True), (1, True), (2, True)]


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_errors_end_the_pass_and_its_threads(n_threads, error, no_thread_is_left):
    called = []

    def fail(i):
        called.append(i)
        if i == 3:
            raise error("three")
        return i

    with pytest.raises(error, match="three"):
        list(map_ordered(range(1000), fail, n_threads))
    assert len(called) <= 3 + 2 * n_threads


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("reader", [True, False], ids=["reading", "merging"])
def test_ctrl_c_ends_the_pass_and_its_threads(n_threads, reader, no_thread_is_left):
    called = []

    def parts():
        for i in range(1000):
            if reader and i == 7:
                raise KeyboardInterrupt
            yield i

    with pytest.raises(KeyboardInterrupt):
        for part, _ in map_ordered(parts(), called.append, n_threads):
            if not reader and part == 7:
                raise KeyboardInterrupt
    assert len(called) <= 8 + 2 * n_threads


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("method", ["sample", "gram", "predict"])
def test_ctrl_c_during_a_pass(rng, monkeypatch, no_thread_is_left, method, k):
    monkeypatch.setattr("cdsk.blocks._sources._MAX_PART_ROWS", 10)
    X, fractions = rng.normal(size=(100, 3)), []

    def interrupt(fraction):
        fractions.append(fraction)
        if len(fractions) == k:
            raise KeyboardInterrupt

    passes = ThreadPasses(as_source(X), lambda rows: 3, 2)
    sample = passes.sample(0, lambda n: 40, lambda fraction: None)
    passes.fit_landmarks(sample, OPTIONS, np.random.RandomState(0))
    predictor = SimpleNamespace(work_per_row=1, norms=lambda X: np.sum(X**2, axis=1))
    call = {
        "sample": lambda: passes.sample(0, lambda n: 40, interrupt),
        "gram": lambda: passes.gram(BANDWIDTH_FACTORS, interrupt),
        "predict": lambda: passes.predict(predictor, "norms", interrupt),
    }[method]
    with pytest.raises(KeyboardInterrupt):
        call()
    assert fractions == [(i + 1) / 10 for i in range(k)]


def test_choose_part_rows():
    assert choose_part_rows(0) == 2**29
    assert choose_part_rows(2**20) == 512
    assert choose_part_rows(2**40) == 256


def test_callbacks_of_the_passes(rng, monkeypatch):
    monkeypatch.setattr("cdsk.blocks._sources._MAX_PART_ROWS", 25)
    X, fractions = rng.normal(size=(100, 3)), []
    for given, expected in ((X, [0.25, 0.5, 0.75, 1.0]), ([X[:50], X[50:]], [])):
        passes = ThreadPasses(as_source(given), lambda rows: 3, 1)
        # the number of rows of several blocks is not known before the first pass
        sample = passes.sample(0, lambda n: 40, fractions.append)
        assert fractions == expected
        fractions.clear()
        passes.fit_landmarks(sample, OPTIONS, np.random.RandomState(0))
        passes.gram(BANDWIDTH_FACTORS, fractions.append)
        assert fractions == [0.25, 0.5, 0.75, 1.0]
        fractions.clear()
