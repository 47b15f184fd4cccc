# SPDX-License-Identifier: BSD-3-Clause
"""A function of parts of X, on several threads (tests/test_blocks_passes.py).

Parts are read by the calling thread, one after the other, and no more of them than
twice the threads are under way. They are so small that Ctrl-C, which the calling thread
alone hears, waits for nothing longer than a fraction of a second.
"""

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

# Products of numbers that a part may take: a few tenths of a second.
_WORK = 2**29
_LEAST_ROWS = 2**8


def rows_for(work_per_row):
    """Rows of a part each of which takes so many products."""
    return max(_LEAST_ROWS, _WORK // max(work_per_row, 1))


def in_order(parts, function, n_threads):
    """Yield (part, function(part)) for all parts, in their order."""
    if n_threads == 1:
        for part in parts:
            yield part, function(part)
        return
    pool = ThreadPoolExecutor(n_threads)
    waiting: deque[tuple[Any, Future[Any]]] = deque()
    try:
        for part in parts:
            waiting.append((part, pool.submit(function, part)))
            if len(waiting) >= 2 * n_threads:
                done, future = waiting.popleft()
                yield done, future.result()
        while waiting:
            done, future = waiting.popleft()
            yield done, future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
