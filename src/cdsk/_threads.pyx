# SPDX-License-Identifier: BSD-3-Clause
"""The number of threads of a call.

``resolve_n_threads`` is called once per public call; the result is passed down as an
int. Every compiled loop of cdsk gives the same bits for any number of threads.
"""
import numbers
import os

from cdsk._cgroups import processor_quota
from cdsk._threads cimport CDSK_OPENMP, cdsk_omp_get_max_threads

# libgomp's thread pool does not survive fork(): a child that inherits one hangs at its
# first parallel region. A forked child therefore runs on one thread.
_home_pid = os.getpid()


def openmp_enabled():
    """Return whether this build uses OpenMP."""
    return bool(CDSK_OPENMP)


def in_forked_child():
    """Return whether this process was forked after cdsk had been imported."""
    return os.getpid() != _home_pid


def resolve_n_threads(n_threads):
    """Return the number of threads to use as an int of at least 1.

    ``None`` and -1 mean ``OMP_NUM_THREADS``, or else the number of processors that this
    process may use at the moment, by its affinity and the quotas of control groups.
    """
    if n_threads is not None and (
        isinstance(n_threads, bool)
        or not isinstance(n_threads, numbers.Integral)
        or (n_threads < 1 and n_threads != -1)
    ):
        raise ValueError(
            "n_threads must be a positive integer, or None or -1 for all threads; "
            f"got {n_threads!r}."
        )
    if not CDSK_OPENMP or in_forked_child():
        return 1
    if n_threads is None or n_threads == -1:
        available = cdsk_omp_get_max_threads()
        if not os.environ.get("OMP_NUM_THREADS"):
            # OpenMP counts processors when loaded; the affinity may have changed since
            if hasattr(os, "sched_getaffinity"):
                available = min(available, len(os.sched_getaffinity(0)))
            available = min(available, processor_quota() or available)
        return max(1, available)
    # more are of no use on any machine, and the number must fit a C int
    return int(min(n_threads, 1024))
