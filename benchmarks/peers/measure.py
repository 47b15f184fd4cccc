# SPDX-License-Identifier: BSD-3-Clause
"""Times of two functions called alternately, and peak memory in a subprocess."""

import gc
import os
import subprocess
import sys
import time
from pathlib import Path

# Smallest and largest number of runs, and seconds after which no further run starts.
_LEAST, _MOST, _SECONDS = 3, 15, 20.0


def max_threads():
    """Return the number of processors that this process may use (Linux)."""
    return len(os.sched_getaffinity(0))


def time_alternately(ours, peer, *, least=_LEAST, most=_MOST, seconds=_SECONDS):
    """Return the best times of two functions that return their own times.

    They are called alternately, because a busy machine or a warm cache then affects
    both. The best time counts, because other processes can only increase it.
    """
    began = time.perf_counter()
    times = []
    while len(times) < least or (
        len(times) < most and time.perf_counter() - began < seconds
    ):
        times.append((ours(), peer()))
    return tuple(min(column) for column in zip(*times, strict=True))


def time_call(function, *arguments):
    """Return the time of one call, without freeing its result."""
    gc.collect()
    began = time.perf_counter()
    result = function(*arguments)
    taken = time.perf_counter() - began
    del result
    return taken


def best_time(repeats, function, *arguments):
    """Return the best time of some calls."""
    return min(time_call(function, *arguments) for _ in range(repeats))


def peak_memory(line, method, n_threads, quick):
    """Return the peak memory of one method of a line, measured in a subprocess."""
    command = [sys.executable, "-m", __spec__.name]
    command += [line, method, str(n_threads), str(int(quick))]
    return int(subprocess.check_output(command, cwd=Path(__file__).parents[2]))


def peak_above_start(function, *arguments):
    """Run a function and return its peak memory minus the memory before."""
    _, peak, before = run_with_peak(function, *arguments)
    return peak - before


def run_with_peak(function, *arguments):
    """Return the result, the peak memory of the process, and its memory before.

    The peak is the high-water mark of Linux, which is reset first. ru_maxrss cannot be
    reset and would include the preparation and the memory of the parent process.
    """
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    result = function(*arguments)
    return result, _status("VmHWM"), before


def _status(field):
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return 1024 * int(line.split()[1])
    raise RuntimeError(f"{field} is not in /proc/self/status.")


def _main(name, method, n_threads, quick):
    # imported here, because lines.py imports this module
    from threadpoolctl import threadpool_limits

    from benchmarks.peers.lines import LINES

    line = LINES[name](quick=bool(int(quick)))
    with threadpool_limits(int(n_threads)):
        print(peak_above_start(getattr(line, method), int(n_threads)))


if __name__ == "__main__":
    _main(*sys.argv[1:])
