# SPDX-License-Identifier: BSD-3-Clause
"""Work of libraries that must not depend on the number of threads of BLAS.

A threaded BLAS sums in an order that depends on how many threads it has. Where a
library calls it for us, it gets one thread for the time being.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

# Limits are those of the process: of two threads at once, the one that leaves first
# would lift the limit of the other.
_lock = threading.Lock()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread; threads of Python enter one at a time."""
    with _lock, _controller().limit(limits=1, user_api="blas"):
        yield


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def _new_lock() -> None:
    global _lock
    _lock = threading.Lock()


# the parent's lock may have been held by a thread that the child does not have
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_lock)
