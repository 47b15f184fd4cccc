# SPDX-License-Identifier: BSD-3-Clause
"""Checks for pending signals, and how tests interrupt compiled code without a clock.

Compiled loops call ``check_signals(work)`` of _signals.pxd, which raises what the
handler of a signal raises: ``KeyboardInterrupt`` for Ctrl-C. Tests watch these checks:

    with watch_checks(interval=1e5) as checks:
        call()
    assert checks.n_checks > 1 and checks.largest_work <= 2e5

    with pytest.raises(KeyboardInterrupt), watch_checks(interrupt_at=3):
        call()                                       # the third check raises

With a small interval, small problems check as often as large ones do otherwise.

A watch counts and interrupts the checks of its own thread, as Python runs the handlers
of signals in one thread only. Without a watch, a check costs a comparison more than
PyErr_CheckSignals.
"""
from cpython.exc cimport PyErr_CheckSignals

cdef struct check_record:
    Py_ssize_t interrupt_at  # number of the check that raises, 0: none
    double interval
    Py_ssize_t n_checks
    double largest_work
    double total_work

cdef extern from *:
    """
    static _Thread_local void* cdsk_watched = NULL;
    """
    void* cdsk_watched       # check_record of this thread, or NULL

# Work between two checks: 0.1 to 0.3 seconds of one core.
cdef double WORK_INTERVAL = 1e8


cdef double work_interval() noexcept nogil:
    """Return the work that a loop may do between two checks."""
    cdef const check_record* record = <const check_record*> cdsk_watched
    return WORK_INTERVAL if record == NULL else record.interval


cdef int check_signals(double work) except -1 nogil:
    """Raise what the handler of a pending signal raises.

    ``work`` is what the caller did since its last check.
    """
    cdef check_record* record = <check_record*> cdsk_watched
    if record != NULL:
        record.n_checks += 1
        record.largest_work = max(record.largest_work, work)
        record.total_work += work
    with gil:
        if record != NULL and record.n_checks == record.interrupt_at:
            raise KeyboardInterrupt
        PyErr_CheckSignals()
    return 0


cdef class watch_checks:
    """Count the checks of this thread within a ``with`` block, or interrupt one.

    Parameters
    ----------
    interrupt_at : int, default=0
        Number of the check that raises ``KeyboardInterrupt``, from 1; 0 for none.
    interval : float, default=1e8
        Work that a loop may do between two checks.

    Attributes
    ----------
    n_checks : int
        Number of checks so far.
    largest_work, total_work : float
        The most work between two checks and the work of all, about a nanosecond each.
    """

    cdef check_record record
    cdef void* outer         # record of the block around this one, or NULL

    def __cinit__(self, Py_ssize_t interrupt_at=0, double interval=WORK_INTERVAL):
        self.record = check_record(interrupt_at, interval, 0, 0.0, 0.0)

    @property
    def interval(self):
        return self.record.interval

    @property
    def n_checks(self):
        return self.record.n_checks

    @property
    def largest_work(self):
        return self.record.largest_work

    @property
    def total_work(self):
        return self.record.total_work

    def __enter__(self):
        global cdsk_watched
        self.outer = cdsk_watched
        cdsk_watched = &self.record
        return self

    def __exit__(self, *exception):
        global cdsk_watched
        cdsk_watched = self.outer
