# SPDX-License-Identifier: BSD-3-Clause
"""One BLAS thread while a fit runs.

A threaded BLAS sums in an order that depends on the number of its threads, and its threads
compete with those of the compiled loops. The BLAS calls of a fit are small (tall blocks of
a few columns), so one thread costs nothing and makes results independent of the machine's
thread settings.

The limit is a setting of the whole process. It is counted, so that fits running at the
same time in several Python threads leave it as the first one found it.
"""

import threading
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_n_inside = 0
_limit = None


@cache
def _controller():
    return ThreadpoolController()


@contextmanager
def single_threaded_blas():
    """Limit BLAS to one thread until the last of the running contexts ends."""
    global _n_inside, _limit
    with _lock:
        if _n_inside == 0:
            _limit = _controller().limit(limits=1, user_api="blas")
        _n_inside += 1
    try:
        yield
    finally:
        with _lock:
            _n_inside -= 1
            if _n_inside == 0:
                _limit.restore_original_limits()
                _limit = None
