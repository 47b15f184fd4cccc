import functools
import importlib
import os
import pkgutil
import sys

import pytest

# Idle threads of OpenMP sleep instead of spinning, and OpenBLAS starts none for its
# small products: other processes that want the cores would double the time of the
# tests. Set before the libraries are loaded, as they read it only then.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from hypothesis import HealthCheck, settings

# No test depends on the speed of the machine.
settings.register_profile(
    "cdsk", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("cdsk")


@pytest.fixture(scope="session", autouse=True)
def first_fit():
    """Load what a first fit loads: tests are the same in any order.

    Above all the buffers of BLAS, before a test limits the memory.
    """
    from cdsk import CDSK

    CDSK(2, random_state=0).fit(np.arange(20.0).reshape(10, 2) ** 2)


@pytest.fixture(scope="session")
def in_point_order():
    """Put rows in the order of the points of a fit, which then are the rows."""

    def ordered(X):
        from cdsk._preprocessing import Points

        points = Points.from_distinct_rows(X)
        return points.spatially_sorted(points.X).X

    return ordered


@pytest.fixture(scope="session")
def default_kernels():
    """The kernels of a default fit of points that are not merged or represented."""

    def kernels(X):
        from stages import candidates_of

        return [candidate.kernel() for candidate in candidates_of(X)]

    return kernels


@pytest.fixture
def limit_memory(monkeypatch):
    """``limit_memory(n_bytes)`` pretends that no more are available."""

    def limit(n_bytes):
        from cdsk import _utils

        _utils.allocate_blas_buffers()
        monkeypatch.setattr(_utils, "available_bytes", lambda: n_bytes)
        # small requests are checked too
        monkeypatch.setattr(_utils, "_SMALL_REQUEST", 0)

    return limit


class Interruption:
    """A Ctrl-C at the k-th call of a Python function of cdsk; never if k is None.

    ``n_calls`` counts the calls of the main thread while the ``with`` block lasts. The
    interpreter raises KeyboardInterrupt between any two instructions; the calls are
    points that are the same in every run. Methods ``__exit__`` are left out: a Ctrl-C
    at the first instruction of one is beyond what Python code can handle.
    """

    def __init__(self, k=None):
        self.k, self.n_calls = k, 0

    def __enter__(self):
        self._folder = os.path.dirname(importlib.import_module("cdsk").__file__)
        self._former = sys.getprofile()
        sys.setprofile(self._count)
        return self

    def __exit__(self, *error):
        sys.setprofile(self._former)

    def _count(self, frame, event, argument):
        code = frame.f_code
        if (
            event == "call"
            and code.co_name != "__exit__"
            and code.co_filename.startswith(self._folder)
        ):
            self.n_calls += 1
            if self.n_calls == self.k:
                raise KeyboardInterrupt


@pytest.fixture
def interruption():
    """``with interruption(k):`` is ended by a Ctrl-C at the k-th call within cdsk."""
    return Interruption


@pytest.fixture
def interrupt_call(monkeypatch):
    """``interrupt_call(target, k)``: a Ctrl-C at the k-th call of ``target``.

    Returns the list of the arguments of all calls.
    """

    def replace(target, k):
        function, calls = pkgutil.resolve_name(target), []

        @functools.wraps(function)
        def interrupted(*args, **kwargs):
            calls.append(args)
            if len(calls) == k:
                raise KeyboardInterrupt
            return function(*args, **kwargs)

        monkeypatch.setattr(target, interrupted)
        return calls

    return replace


class Clock:
    """Replaces the module ``time``: all its clocks show ``now``."""

    now = 0.0

    def __getattr__(self, name):
        return lambda: self.now


@pytest.fixture
def clock():
    """A clock that stands still until the test sets ``clock.now``."""
    return Clock()


@pytest.fixture(scope="session")
def watch_checks():
    """Count or interrupt the checks for signals of compiled code, without a clock.

    ``with watch_checks(interval=1e5) as checks:`` counts them (``checks.n_checks``) and
    the most work between two (``checks.largest_work``);
    ``with watch_checks(interrupt_at=k, interval=1e5):`` raises KeyboardInterrupt at the
    k-th. With a small interval, a small problem is as good as a large one.
    """
    from cdsk._signals import watch_checks

    return watch_checks


@pytest.fixture(scope="session")
def check_interruptible(watch_checks):
    """``check_interruptible(call)``: Ctrl-C ends a call at any of its checks.

    The work between two checks is at most ``interval`` and that of one indivisible
    step. Then the first check, one in the middle and the last one raise
    KeyboardInterrupt, after which ``verify()`` is called if there is one. Returns the
    record of the call that was not interrupted.
    """

    def check(call, *, interval=1e5, step=0.0, verify=None):
        with watch_checks(interval=interval) as checks:
            call()
        assert checks.n_checks >= 3, "too few checks: the problem is too small"
        assert checks.largest_work <= interval + step
        for k in (1, checks.n_checks // 2, checks.n_checks):
            with (
                pytest.raises(KeyboardInterrupt),
                watch_checks(interrupt_at=k, interval=interval),
            ):
                call()
            if verify is not None:
                verify()
        return checks

    return check


@pytest.fixture
def cdsk(capsys):
    """Run the command; return its status, standard output and standard error."""

    def run(*arguments):
        from cdsk.cli._main import main

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
