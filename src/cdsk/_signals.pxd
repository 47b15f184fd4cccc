# SPDX-License-Identifier: BSD-3-Clause
"""The only place of compiled code that checks for pending signals.

A loop that may take long does about ``work_interval()`` of its work, calls
``check_signals`` with what it did, and goes on unless that raises:

    for begin in range(0, n, step):      # step * work of one row <= work_interval()
        with nogil:
            ...
        check_signals(work)

Work has one unit for all loops, so that the interval is a time: an entry that is read
in order and used once, about a nanosecond of one core. Loops that differ from that
count their entries or multiplications by the factors below.
"""

# Work of multiplications in registers, with operands from a near cache.
cdef inline double product_work(double count) noexcept nogil:
    return 0.1 * count


# Work of reading entries at random positions.
cdef inline double gather_work(double count) noexcept nogil:
    return 10.0 * count


cdef double work_interval() noexcept nogil
cdef int check_signals(double work) except -1 nogil


cdef inline int add_work(
    double* work_done, double work, double interval
) except -1 nogil:
    """Count work, and check for signals after an interval of it."""
    work_done[0] += work
    if work_done[0] > interval:
        check_signals(work_done[0])
        work_done[0] = 0.0
    return 0
