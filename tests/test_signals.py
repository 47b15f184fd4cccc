"""The counted checks for signals of compiled code, and what interrupts them.

tests/test_compiled_loops.py uses them to bound the work of every long loop.
"""

import _thread
import operator
import signal
import threading
from functools import partial

import numpy as np
import pytest

from cdsk import _products


def call():
    """A product of 8 pieces, which checks after each if the interval is small."""
    return _products.combine(np.ones((2, 2)), np.ones((2, 8 * 2048)), 1)


def test_checks_are_counted(watch_checks):
    with watch_checks(interval=1.0) as checks:
        call()
        assert checks.n_checks == 8
    assert checks.interval == 1.0
    assert checks.total_work == 8 * checks.largest_work > 0
    call()
    assert checks.n_checks == 8


def test_work_between_checks_follows_the_interval(watch_checks):
    with watch_checks(interval=1.0) as each:
        call()
    with watch_checks(interval=2 * each.largest_work) as pairs:
        call()
    with watch_checks() as default:
        call()
    assert (pairs.n_checks, default.n_checks) == (4, 1)
    assert pairs.total_work == default.total_work == each.total_work


@pytest.mark.parametrize("k", [1, 4, 8])
def test_the_kth_check_raises(watch_checks, k):
    with pytest.raises(KeyboardInterrupt), watch_checks(k, interval=1.0) as checks:
        call()
    assert checks.n_checks == k
    np.testing.assert_array_equal(call(), 2.0)


def test_a_later_check_does_not_raise(watch_checks):
    with watch_checks(9, interval=1.0):
        np.testing.assert_array_equal(call(), 2.0)


def test_watches_are_nested(watch_checks):
    with watch_checks(interval=1.0) as outer:
        call()
        with watch_checks() as inner:
            call()
        call()
    assert (outer.n_checks, inner.n_checks) == (16, 1)


def test_other_threads_are_not_watched(watch_checks):
    with watch_checks(1, interval=1.0) as checks:
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
    assert checks.n_checks == 0


def test_a_pending_signal_ends_the_call():
    done = []
    # no bytecode between these calls, so that only compiled code can notice the signal
    calls = [
        _thread.interrupt_main,
        partial(_products.combine, np.ones((2, 2)), np.ones((2, 10)), 1),
        partial(done.append, "not interrupted"),
    ]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            list(map(operator.call, calls))
    finally:
        signal.signal(signal.SIGINT, before)
    assert done == []
