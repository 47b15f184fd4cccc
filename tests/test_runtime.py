"""Threads of BLAS, memory and what is restored after an error."""

import multiprocessing
import threading

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from threadpoolctl import ThreadpoolController, threadpool_limits

import cdsk
from cdsk import CDSK, _utils
from cdsk._utils import explain_memory_error, limit_blas_threads, limit_openmp_threads

# Seconds for what takes milliseconds: no test depends on the speed of the machine.
PATIENCE = 600


def threads(user_api):
    """Return the thread limits of the libraries, as the calling thread sees them."""
    libraries = ThreadpoolController().select(user_api=user_api).info()
    return {library["num_threads"] for library in libraries}


@pytest.fixture(autouse=True)
def two_threads():
    """Offer two threads, whatever the environment says."""
    with threadpool_limits(2):
        yield


def run_in_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    return thread


def test_blas_is_limited_until_the_last_thread_leaves():
    first_inside, second_inside, seen = threading.Event(), threading.Event(), []

    def first():
        with limit_blas_threads():
            first_inside.set()
            assert second_inside.wait(PATIENCE)  # both are inside at once
        seen.append(threads("blas"))

    thread = run_in_thread(first)
    assert first_inside.wait(PATIENCE)
    with limit_blas_threads():
        second_inside.set()
        thread.join()
        assert threads("blas") == {1}
    assert seen == [{1}]
    assert threads("blas") == {2}


@pytest.mark.parametrize("last", ["main", "other"])
def test_any_thread_may_be_the_last(last):
    inside, leave, left = threading.Event(), threading.Event(), threading.Event()

    def other():
        with limit_blas_threads():
            inside.set()
            assert leave.wait(PATIENCE)
        left.set()

    with limit_blas_threads():
        thread = run_in_thread(other)
        assert inside.wait(PATIENCE)
        if last == "main":
            leave.set()
            assert left.wait(PATIENCE)
    assert threads("blas") == ({2} if last == "main" else {1})
    leave.set()
    thread.join()
    assert threads("blas") == {2}


def test_nested_limits_and_errors():
    with pytest.raises(KeyError), limit_blas_threads():
        with limit_blas_threads():
            pass
        assert threads("blas") == {1}
        raise KeyError
    assert threads("blas") == {2}


def child_of_fork(queue):
    # the thread that was inside is not there: the first to leave restores the limit
    with limit_blas_threads():
        inside = threads("blas")
    queue.put((inside, threads("blas")))


def test_fork_while_another_thread_is_inside():
    inside, leave = threading.Event(), threading.Event()

    def other():
        with limit_blas_threads():
            inside.set()
            assert leave.wait(PATIENCE)

    thread = run_in_thread(other)
    assert inside.wait(PATIENCE)
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=child_of_fork, args=(queue,))
    child.start()
    child.join(60)
    leave.set()
    thread.join()
    assert child.exitcode == 0
    assert queue.get() == ({1}, {2})


def test_fork_inside_the_limit():
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    with limit_blas_threads():
        child = context.Process(target=child_of_fork, args=(queue,))
        child.start()
        child.join(60)
    assert queue.get() == ({1}, {1})


def test_openmp_is_limited_for_the_calling_thread_only():
    inside, leave = threading.Event(), threading.Event()

    def other():
        with limit_openmp_threads():
            assert threads("openmp") == {1}
            inside.set()
            assert leave.wait(PATIENCE)

    thread = run_in_thread(other)
    assert inside.wait(PATIENCE)
    # libraries other than OpenMP, and other threads, are left alone
    assert threads("openmp") == threads("blas") == {2}
    with limit_blas_threads():
        leave.set()
        thread.join()
        assert threads("blas") == {1}


def test_too_large_a_matrix_is_refused_before_it_is_made(limit_memory, rng):
    limit_memory(79_999)
    X = rng.normal(size=(100, 2))
    fit = CDSK(2, bandwidth=1.0).fit
    for call in (lambda: fit(X), lambda: cdsk.gaussian_gram(X, 1.0)):
        with pytest.raises(MemoryError, match=r"80,000 bytes .* only 79,999 .*float32"):
            call()
    cdsk.gaussian_gram(X.astype(np.float32), 1.0)


def test_the_dense_spectral_step_checks_its_memory(limit_memory, rng):
    K = cdsk.gaussian_gram(rng.normal(size=(300, 2)), 1.0)
    limit_memory(2_000_000)
    with pytest.raises(
        MemoryError, match=r"2,880,000 bytes .*at most n_samples / 12 = 25"
    ):
        CDSK(50, kernel="precomputed").fit(K)


def test_a_million_points_are_refused_at_once():
    X = np.zeros((1_000_000, 1), dtype=np.float32)
    with pytest.raises(MemoryError, match="4,000,000,000,000 bytes"):
        cdsk.gaussian_gram(X, 1.0)


def test_unknown_memory_refuses_nothing(limit_memory):
    limit_memory(None)
    _utils.check_memory(10**30, "That", "Do less.")


def test_a_small_fit_hardly_looks_at_the_memory(monkeypatch):
    looks, look = [], _utils.available_bytes
    for module in ("_utils", "_multilevel"):
        monkeypatch.setattr(
            f"cdsk.{module}.available_bytes", lambda: looks.append(1) or look()
        )
    X, _ = make_blobs(150, 2, centers=3, random_state=0)
    CDSK(3, random_state=0).fit(X)
    assert len(looks) <= 5


def test_errors_of_memory_are_explained():
    with pytest.raises(MemoryError, match=r"^Out of memory while fitting\. Use fewer"):
        with explain_memory_error("fitting"):
            raise MemoryError
    with pytest.raises(MemoryError, match=r"while predicting \(8 GiB\)\. Do less\.$"):
        with explain_memory_error("predicting", "Do less."):
            raise MemoryError("8 GiB")


def test_files_of_the_system_are_read(tmp_path):
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:  7 kB\n")
    assert _utils._system(tmp_path / "meminfo") == 7 * 1024
    with pytest.raises(OSError, match="absent"):
        _utils._system(tmp_path / "absent")


def test_limits_that_are_not_known_are_left_out(monkeypatch):
    def fail():
        raise OSError

    monkeypatch.setattr(_utils, "_address_space", fail)
    monkeypatch.setattr(_utils.ControlGroups, "available_bytes", lambda _: None)
    monkeypatch.setattr(_utils, "_system", lambda: 5)
    assert _utils.available_bytes() == 5
    monkeypatch.setattr(_utils.ControlGroups, "available_bytes", lambda _: 4)
    assert _utils.available_bytes() == 4
    monkeypatch.setattr(_utils.ControlGroups, "available_bytes", lambda _: None)
    monkeypatch.setattr(_utils, "_system", fail)
    assert _utils.available_bytes() is None
