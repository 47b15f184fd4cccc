# SPDX-License-Identifier: BSD-3-Clause
"""Time of two things done in turn, and the peak memory of one in its own process."""

import gc
import os
import subprocess
import sys
import time
from pathlib import Path

# Every pair is run so often at least, and up to so often while it takes no longer.
_LEAST, _MOST, _SECONDS = 3, 15, 20.0


def most_threads():
    """Processors this process may use (Linux)."""
    return len(os.sched_getaffinity(0))


def in_turn(ours, peer, *, least=_LEAST, most=_MOST, seconds=_SECONDS):
    """Best times of two functions that return their own times, called in turn.

    In turn, so that a disturbance or a warm cache meets both; the best, because
    whatever else the machine does can only add to a time.
    """
    began = time.perf_counter()
    times = []
    while len(times) < least or (
        len(times) < most and time.perf_counter() - began < seconds
    ):
        times.append((ours(), peer()))
    return tuple(min(column) for column in zip(*times, strict=True))


def seconds_of(function, *arguments):
    """Time of one call; its result is freed outside of it."""
    gc.collect()
    began = time.perf_counter()
    result = function(*arguments)
    taken = time.perf_counter() - began
    del result
    return taken


def best_of(repeats, function, *arguments):
    """Best time of a few calls."""
    return min(seconds_of(function, *arguments) for _ in range(repeats))


def peak_memory(line, side, n_threads, quick):
    """Bytes by which one side of a line exceeds what the process held at its start."""
    command = [sys.executable, "-m", __spec__.name]
    command += [line, side, str(n_threads), str(int(quick))]
    return int(subprocess.check_output(command, cwd=Path(__file__).parents[2]))


def peak_above_start(function, *arguments):
    """Run and return the most memory held meanwhile, less what was held before."""
    _, peak, before = with_peak(function, *arguments)
    return peak - before


def with_peak(function, *arguments):
    """Result, the most memory held meanwhile by the process, and what it held before.

    The system's own high-water mark (Linux), reset first. ru_maxrss cannot be reset:
    it would count the preparation, and what the parent held before it started this.
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


def _main(name, side, n_threads, quick):
    # Here and not above: lines.py needs this module too.
    from threadpoolctl import threadpool_limits

    from benchmarks.peers.lines import LINES

    line = LINES[name](quick=bool(int(quick)))
    with threadpool_limits(int(n_threads)):
        print(peak_above_start(getattr(line, side), int(n_threads)))


if __name__ == "__main__":
    _main(*sys.argv[1:])
