# SPDX-License-Identifier: BSD-3-Clause
"""Threads of BLAS and OpenMP, memory, progress, warnings (tests/test_runtime.py).

A threaded BLAS sums in an order that depends on the number of its threads, and waits
for them where processors are shared. A fit therefore limits it to one thread. The
thread pool of libgomp does not survive fork(): a child of a process that has used it
hangs at its first parallel region. Our own loops run on one thread there
(_threads.pyx); ``one_thread_if_forked`` does the same for those of scikit-learn.
"""

import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
from scipy.linalg.blas import dgemm
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import ThreadpoolController

from cdsk._cgroups import ControlGroups
from cdsk._threads import in_forked_child

# Size of the buffers that OpenBLAS allocates, those of NumPy and of SciPy together.
_BLAS_BUFFERS = 160 * 2**20

# Requests below this size are not compared with the available memory: that takes 0.1 ms
# to look up, and if such an allocation fails, ``explain_memory_error`` explains it.
_SMALL_REQUEST = 16 * 2**20


class SharedContext(AbstractContextManager[None]):
    """A context that the first thread to enter opens and the last to leave closes.

    For settings of the process. Threads inside run at the same time; entries may nest.
    """

    def __init__(self, make: Callable[[], AbstractContextManager[object]]) -> None:
        self._make = make
        self._context: AbstractContextManager[object] | None = None
        self._n_entries = 0
        self._lock = threading.Lock()
        self._thread = threading.local()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget_other_threads)

    def __enter__(self) -> None:
        with self._lock:
            depth = getattr(self._thread, "depth", 0) + 1
            if self._context is None:
                context = self._make()
                context.__enter__()
                self._context = context
            # no calls from here, in which Ctrl-C could leave the context open
            self._n_entries += 1
            self._thread.depth = depth

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._thread.depth -= 1
            self._n_entries -= 1
            if self._n_entries == 0 and self._context is not None:
                context, self._context = self._context, None
                context.__exit__(None, None, None)

    def _forget_other_threads(self) -> None:
        # If only they were inside, the context is closed when this thread next leaves.
        self._lock = threading.Lock()
        self._n_entries = getattr(self._thread, "depth", 0)


@contextmanager
def _limit_blas_of_process() -> Iterator[None]:
    _release_control()
    limiter = _libraries(user_api="blas").limit(limits=1)
    try:
        _release_control()
        yield
    finally:
        try:
            _release_control()
        finally:
            limiter.restore_original_limits()
            _release_control()


_blas_limit = SharedContext(_limit_blas_of_process)


@contextmanager
def limit_blas_threads() -> Iterator[None]:
    """Limit BLAS to one thread; may be nested, and entered by several threads.

    Where BLAS uses OpenMP, the limit is not that of the process but of the thread.
    """
    with _blas_limit, _libraries(threading_layer="openmp").limit(limits=1):
        allocate_blas_buffers()
        yield


@cache
def allocate_blas_buffers() -> None:
    """Let BLAS allocate its buffers while there is memory for them.

    OpenBLAS allocates them at its first product, and ends the process or waits forever
    if it gets none.
    """
    user, advice = "BLAS, at its first product,", "Raise the memory limit."
    check_memory(_BLAS_BUFFERS, user, advice)
    ones = np.ones((64, 64))
    dgemm(1.0, ones @ ones, ones)


def limit_openmp_threads() -> AbstractContextManager[object]:
    """Limit OpenMP to one thread for loops that the calling thread starts."""
    openmp = _libraries(user_api="openmp")
    return cast("AbstractContextManager[object]", openmp.limit(limits=1))


def one_thread_if_forked() -> AbstractContextManager[object]:
    """Limit OpenMP to one thread in a forked child; elsewhere do nothing."""
    return limit_openmp_threads() if in_forked_child() else nullcontext()


# A limiter restores all libraries of its controller, so each has those it limits only.
@cache
def _libraries(**attributes: str) -> ThreadpoolController:
    return ThreadpoolController().select(**attributes)


def _release_control() -> None:
    """Let any thread set the limit of OpenBLAS.

    threadpoolctl >= 3.8 ignores all threads but the first that has set a limit. Here
    the last thread to leave, which may be another one, restores it.
    """
    for library in _libraries(user_api="blas").lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


class MemoryShortage(MemoryError):
    """A MemoryError with an explanation."""


def check_memory(n_bytes: int, what: str, advice: str) -> None:
    """Raise MemoryError, with both sizes, if ``n_bytes`` are not available."""
    if n_bytes < _SMALL_REQUEST:
        return
    available = available_bytes()
    if available is not None and n_bytes > available:
        raise MemoryShortage(
            f"{what} needs {n_bytes:,} bytes ({n_bytes / 2**30:.1f} GiB), but only "
            f"{available:,} bytes ({available / 2**30:.1f} GiB) are available. {advice}"
        )


@contextmanager
def explain_memory_error(
    action: str, advice: str = "Use fewer points or raise the memory limit."
) -> Iterator[None]:
    """Say in a MemoryError during which ``action`` it occurred, and what to do."""
    try:
        yield
    except MemoryShortage:
        raise
    except MemoryError as error:
        detail = f"{action} ({error})" if str(error) else action
        raise MemoryShortage(f"Out of memory while {detail}. {advice}") from None


@contextmanager
def rollback_on_error(estimator: object) -> Iterator[None]:
    """Restore the attributes of an estimator if its fit fails or is interrupted."""
    before = estimator.__dict__.copy()
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise


def available_bytes() -> int | None:
    """Return the memory this process may still allocate, or None if unknown."""
    sizes = []  # those that are known and limited
    for size in (_system, _address_space):
        with suppress(ImportError, LookupError, OSError, ValueError):
            sizes.append(size())
    if (in_groups := ControlGroups().available_bytes()) is not None:
        sizes.append(in_groups)
    return min(sizes, default=None)


def _address_space() -> int:
    """Return what is left of a limit of the address space (``ulimit -v``)."""
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        raise ValueError("no limit")
    pages = Path("/proc/self/statm").read_text().split()[0]
    return max(limit - int(pages) * resource.getpagesize(), 0)


def _system(meminfo: Path = Path("/proc/meminfo")) -> int:
    """Return what is available to all processes."""
    lines = meminfo.read_text().splitlines()
    sizes = dict(line.split(":", 1) for line in lines if ":" in line)
    return int(sizes.get("MemAvailable", "").removesuffix("kB")) * 1024


def get_include() -> str:
    """Return the folder of ``cdsk.h``, for the include path of C and C++ code.

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


# Progress of a fit, on standard error, so that a pipe gets the results alone. With tqdm
# there is a bar, without it a line per stage and, in long ones, every ten seconds.

# The stages of a fit in their order, and the fraction of its time each takes, roughly.
_STAGES = {
    "representation": 0.05,
    "count": 0.05,
    "lam": 0.05,
    "sample": 0.20,
    "layout": 0.30,
    "neighbors": 0.05,
    "kernels": 0.20,
    "winner": 0.07,
    "margins": 0.03,
}

# Seconds between two lines of a stage, and before the time left is estimated.
_LINE_INTERVAL, _ESTIMATE_DELAY = 10.0, 1.0


class Progress(AbstractContextManager["Progress"]):
    """Report the progress of a fit while its ``with`` block lasts.

    ``verbose`` is 0 for silence, 1 for stages, 2 for the iterations as well. ``stages``
    maps the stages of another estimator to their fractions of its time.
    """

    def __init__(self, verbose: int = 0, stages: Mapping[str, float] = _STAGES) -> None:
        self.verbose = int(verbose)
        self._stages = stages
        self._bar: Any = None
        self._seconds: dict[str, float] = {}  # in every stage that was entered
        self._name, self._description, self._span = "", "", (0.0, 1.0)
        self._done = 0.0
        self._begun = self._entered = self._last_line = time.perf_counter()
        if self.verbose:
            with suppress(ImportError):
                from tqdm import tqdm

                self._bar = tqdm(
                    total=1.0,
                    file=sys.stderr,
                    leave=False,
                    dynamic_ncols=True,
                    bar_format="{desc} {percentage:3.0f}%|{bar}| {elapsed}{postfix}",
                )

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self.verbose and kind is None:
            self._leave_stage()
            total = time.perf_counter() - self._begun
            fractions = [
                f"{name} {seconds / max(total, 1e-9):.0%}"
                for name, seconds in self._seconds.items()
            ]
            self.write(f"[CDSK] done in {total:.1f} s: {', '.join(fractions)}")
        if self._bar is not None:
            self._bar.close()

    def stage(
        self,
        name: str,
        description: str | None = None,
        span: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        """Enter a stage, or the part of it between the fractions of ``span``."""
        if self.verbose:
            self._leave_stage()
            self._name, self._description, self._span = name, description or name, span
            self._show(0.0, always=True)

    def update(self, fraction: float) -> None:
        """Report the fraction of the stage that is done."""
        if self.verbose:
            self._show(fraction)

    def iteration(self, result: Any) -> None:
        """Report the ``Iteration`` of an alternation."""
        if self.verbose > 1:
            status = "" if result.accepted else "  not lower: not accepted"
            self.write(
                f"[CDSK] iteration {result.number:2d}  objective "
                f"{result.objective:.6g}  trace {result.embedding.trace:.4g}  support "
                f"{np.count_nonzero(result.weights)}  QP gap {result.qp_gap:.1e}"
                f"{status}"
            )
        # the number of iterations to follow is unknown: assume as many again
        self.update(1.0 - 0.5 ** (result.number + 1))

    def write(self, line: str) -> None:
        """Print a line, above the bar if there is one."""
        if self._bar is None:
            print(line, file=sys.stderr, flush=True)
        else:
            self._bar.write(line, file=sys.stderr)

    def _leave_stage(self) -> None:
        now = time.perf_counter()
        if self._name:
            spent = self._seconds.get(self._name, 0.0)
            self._seconds[self._name] = spent + now - self._entered
        self._entered = now

    def _show(self, fraction: float, always: bool = False) -> None:
        names = list(self._stages)
        earlier = {n: self._stages[n] for n in names[: names.index(self._name)]}
        skipped = sum(earlier[name] for name in earlier if name not in self._seconds)
        begin, end = self._span
        done = self._stages[self._name] * (begin + (end - begin) * fraction)
        # the fits of a stage each begin anew
        done = self._done = max(sum(earlier.values()) + done, self._done)
        now = time.perf_counter()
        spent, left = now - self._begun, ""
        if done > skipped and spent >= _ESTIMATE_DELAY:
            left = f"about {spent * (1.0 - done) / (done - skipped):.0f} s left"
        done = (done - skipped) / (1.0 - skipped)
        if self._bar is not None:
            self._bar.set_description_str(f"[CDSK] {self._description}", refresh=False)
            self._bar.set_postfix_str(left, refresh=False)
            self._bar.n = done
            self._bar.refresh()
        elif always or now - self._last_line >= _LINE_INTERVAL:
            self._last_line = now
            line = f"[CDSK] {done:4.0%}  {self._description}"
            self.write(f"{line}  ({left})" if left else line)


def warn(message: str, category: type[Warning] = ConvergenceWarning) -> None:
    """Warn at the innermost line of code outside of cdsk and scikit-learn."""
    # what ``skip_file_prefixes`` does, from Python 3.12 on
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None:
        # fit_predict and set_output are scikit-learn's
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        if package not in ("cdsk", "sklearn"):
            break
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
