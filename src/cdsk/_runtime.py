# SPDX-License-Identifier: BSD-3-Clause
"""The process around a fit: threads of BLAS, fork, memory, the folder of the header.

A threaded BLAS sums in an order that depends on how many threads it has, and waits for
them where processors are shared. Where a library calls it for us, it gets one thread
for the time being. The thread pool of libgomp does not survive fork(): a child of a
process that has used it hangs at its first parallel region. Our own loops run on one
thread there (_threads.pyx); ``one_thread_if_forked`` does the same for scikit-learn's.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from pathlib import Path

import numpy as np
from scipy.linalg.blas import dgemm
from threadpoolctl import ThreadpoolController, threadpool_limits

from cdsk._threads import in_forked_child

# What the buffers of both may take.
_BLAS_BUFFERS = 160 * 2**20

# Limits are those of the process: of two threads at once, the one that leaves first
# would lift the limit of the other.
_lock = threading.RLock()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread; threads of Python enter one at a time."""
    with _lock, _controller().limit(limits=1, user_api="blas"):
        take_blas_buffers()
        yield


@cache
def take_blas_buffers() -> None:
    """Let BLAS take its buffers while there is room for them.

    OpenBLAS takes them at its first product, of NumPy and of SciPy each, and ends the
    process or waits for ever if it gets none.
    """
    check_memory(
        _BLAS_BUFFERS, "BLAS, at its first product,", "Expected a larger limit."
    )
    ones = np.ones((64, 64))
    dgemm(1.0, ones @ ones, ones)


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def _new_lock() -> None:
    global _lock
    _lock = threading.RLock()


# the parent's lock may have been held by a thread that the child does not have
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_lock)


def one_thread_if_forked() -> AbstractContextManager[object]:
    """Limit OpenMP to one thread in a forked child; elsewhere do nothing."""
    if in_forked_child():
        return threadpool_limits(limits=1, user_api="openmp")
    return nullcontext()


class MemoryShortage(MemoryError):
    """Too little memory, said in our words."""


def check_memory(n_bytes, what, advice):
    """Raise MemoryError with figures if ``n_bytes`` are known not to be available."""
    available = available_bytes()
    if available is not None and n_bytes > available:
        raise MemoryShortage(
            f"{what} needs {n_bytes:,} bytes ({n_bytes / 2**30:.1f} GiB), but only "
            f"{available:,} bytes ({available / 2**30:.1f} GiB) are available. {advice}"
        )


@contextmanager
def said_in_words(what: str, fewer: str = "fewer points") -> Iterator[None]:
    """Say what ran out of memory where a library only says that something did.

    ``fewer`` of what would help.
    """
    try:
        yield
    except MemoryShortage:
        raise
    except MemoryError as error:
        raise MemoryShortage(
            f"{what} needs more memory than there is ({str(error) or 'no size told'}). "
            f"Expected a larger limit, or {fewer}."
        ) from None


@contextmanager
def unchanged_if_it_fails(estimator: object) -> Iterator[None]:
    """Leave an estimator as it was where its fit fails or is interrupted."""
    before = estimator.__dict__.copy()
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise


def available_bytes() -> int | None:
    """Memory this process may still take, or None where it cannot be told."""
    sizes = _system(), _control_group(), _address_space()
    known = [size for size in sizes if size is not None]
    return min(known) if known else None


def _address_space(statm=Path("/proc/self/statm")):
    """What is left of a limit of the address space (``ulimit -v``)."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit == resource.RLIM_INFINITY:
            return None
        used = int(statm.read_text().split()[0]) * resource.getpagesize()
        return max(limit - used, 0)
    except (ImportError, OSError, ValueError, IndexError):
        return None


def _system(meminfo=Path("/proc/meminfo")):
    try:
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None


def _control_group(folder=Path("/sys/fs/cgroup")):
    """What is left of a container's limit (cgroup v2), page cache not counted."""
    try:
        limit = (folder / "memory.max").read_text().strip()
        if limit == "max":
            return None
        used = int((folder / "memory.current").read_text())
        statistics = dict(
            line.split() for line in (folder / "memory.stat").read_text().splitlines()
        )
        cache = int(statistics.get("inactive_file", 0))
        return max(int(limit) - used + cache, 0)
    except (OSError, ValueError):
        return None


def get_include() -> str:
    """Folder of ``cdsk.h``, for the include path of C and C++ code.

    Cython code needs no header: ``from cdsk cimport ...`` finds the installed
    declarations (it finds none of an editable install).

    Returns
    -------
    path : str

    Examples
    --------
    >>> import os
    >>> from cdsk import get_include
    >>> os.listdir(get_include())
    ['cdsk.h']
    """
    return str(Path(__file__).parent / "include")
