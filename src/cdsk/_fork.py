# SPDX-License-Identifier: BSD-3-Clause
"""Work in a forked child without OpenMP's threads.

The thread pool of libgomp does not survive fork(): a child of a process that has used
it hangs at its first parallel region. Our own loops run on one thread there
(_threads.pyx); this does the same for scikit-learn's k-means.
"""

from contextlib import AbstractContextManager, nullcontext

from threadpoolctl import threadpool_limits

from cdsk._threads import in_forked_child


def one_thread_if_forked() -> AbstractContextManager[object]:
    """Limit OpenMP to one thread in a forked child; elsewhere do nothing."""
    if in_forked_child():
        return threadpool_limits(limits=1, user_api="openmp")
    return nullcontext()
