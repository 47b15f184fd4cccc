# SPDX-License-Identifier: BSD-3-Clause
"""One side of one line, measured in a process of its own, to JSON.

Memory is all that the process holds at most while it works: libraries, data, result.
"""

import cProfile
import json
import sys
import time

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.asv.stages.private import (
    Neighbors,
    WeightProblem,
    assign_labels,
    spectral_step,
)
from benchmarks.large.lines import LINES, METHODS, Fit, Unavailable
from benchmarks.peers.measure import with_peak
from benchmarks.process import figures_of

# None of these calls another. What is left are kernels, the choice and the checks.
STAGES = {
    "neighbors": (Neighbors.__init__,),
    "spectral steps": (spectral_step,),
    "weight steps": (
        WeightProblem.__init__,
        WeightProblem.objective,
        WeightProblem.solve,
    ),
    "labels": (assign_labels,),
}


def in_process(name, side, n_threads, quick, folder, timeout):
    """Figures of one side, "ours" or a peer's name, or why there are none."""
    return figures_of(__spec__.name, [name, side, n_threads, quick, folder], timeout)


def measure(name, side, n_threads, quick, folder):
    """The same in this process."""
    line = LINES[name]
    try:
        task = line.make(folder, quick)
        profiled = side == "ours" and isinstance(task, Fit)
        with threadpool_limits(n_threads):
            (result, times, shares), peak, _ = with_peak(
                _runs,
                getattr(task, METHODS[side]),
                n_threads,
                1 if quick else line.runs,
                profiled,
            )
    except Unavailable as reason:
        return {"skipped": str(reason)}
    seconds, processor = np.median(times, axis=0)
    return {
        "n": task.n,
        "seconds": seconds,
        "processor": processor,
        "memory": peak,
        "scores": {what: float(value) for what, value in task.scores(result).items()},
        "shares": shares,
    }


def _runs(function, n_threads, runs, profiled):
    """The last result, times of every run (runs, 2), and shares of the stages.

    Where several runs are made, one more is profiled, which does not count.
    """
    times, shares = [], {}
    for _ in range(0 if profiled and runs == 1 else runs):
        result, taken = _timed(function, n_threads)
        times.append(taken)
    if profiled:
        profile = cProfile.Profile()
        result, taken = _timed(profile.runcall, function, n_threads)
        shares = _shares(profile, taken[0])
        times = times or [taken]
    return result, times, shares


def _timed(function, *arguments):
    """Result, and wall and processor time."""
    began, spent = time.perf_counter(), time.process_time()
    result = function(*arguments)
    return result, (time.perf_counter() - began, time.process_time() - spent)


def _shares(profile, seconds):
    """Part of the wall time that every stage took."""
    total = {entry.code: entry.totaltime for entry in profile.getstats()}
    shares = {
        stage: sum(total.get(function.__code__, 0.0) for function in functions)
        / seconds
        for stage, functions in STAGES.items()
    }
    return shares | {"other": 1.0 - sum(shares.values())}


if __name__ == "__main__":
    print(json.dumps(measure(*json.loads(sys.argv[1]))))
