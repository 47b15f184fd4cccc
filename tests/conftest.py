import contextlib
import os
import signal
import threading
import time

import pytest

# Idle threads of OpenMP sleep instead of spinning, and OpenBLAS starts none for its
# small products: other processes that want the cores would double the time of the
# tests. Set before the libraries are loaded, as they read it only then.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np


@pytest.fixture(scope="session")
def in_point_order():
    """Put rows in the order of the points of a fit, which then are the rows."""

    def ordered(X):
        from cdsk._points import Points

        points = Points.distinct(X)
        return points.near_together(points.X).X

    return ordered


@pytest.fixture(scope="session")
def default_kernels():
    """The kernels of a default fit of points that are not merged or represented."""

    def kernels(X):
        from cdsk._choices.candidates import find_candidates

        found = find_candidates(
            X,
            kernel="rbf",
            kernel_params=None,
            psd=None,
            bandwidth="auto",
            n_neighbors=None,
            n_threads=1,
        )
        return [candidate.kernel() for candidate in found]

    return kernels


@pytest.fixture
def interrupt_after():
    """``with interrupt_after(seconds):`` sends this process a Ctrl-C.

    What it interrupts must stop within a second of work on each of two threads, however
    long that takes on a busy machine. Python's own handler is installed for it: a
    process that was started in the background ignores the signal.
    """

    @contextlib.contextmanager
    def context(seconds):
        sent = []

        def interrupt():
            sent.append(time.process_time())
            os.kill(os.getpid(), signal.SIGINT)

        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        timer = threading.Timer(seconds, interrupt)
        timer.start()
        try:
            yield
        except KeyboardInterrupt:
            assert time.process_time() - sent[0] < 2.0
            raise
        finally:
            timer.cancel()
            timer.join()
            signal.signal(signal.SIGINT, before)

    return context


@pytest.fixture
def cdsk(capsys):
    """Run the command; return its status, standard output and standard error."""

    def run(*arguments):
        from cdsk._cli.main import main

        status = main([str(argument) for argument in arguments])
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def rng():
    """Random numbers; CDSK_TEST_SEED tries others than 0."""
    return np.random.default_rng(int(os.environ.get("CDSK_TEST_SEED", "0")))


@pytest.fixture(params=[np.float64, np.float32], ids=["f64", "f32"])
def dtype(request):
    return request.param
