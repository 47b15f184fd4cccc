# SPDX-License-Identifier: BSD-3-Clause
"""Measure one method of one line in its own process, and print the results as JSON.

Memory is the peak memory of the process, including libraries, data and result.
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
from benchmarks.peers.measure import run_with_peak
from benchmarks.process import run_module

# None of these calls another. The rest are kernels, model selection and validation.
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


def measure_in_subprocess(name, method, n_threads, quick, folder, timeout):
    """Return the results of "ours" or of a peer, or why there are none."""
    return run_module(__spec__.name, [name, method, n_threads, quick, folder], timeout)


def measure(name, method, n_threads, quick, folder):
    """Return the same, measured in this process."""
    line = LINES[name]
    try:
        task = line.make(folder, quick)
        profiled = method == "ours" and isinstance(task, Fit)
        with threadpool_limits(n_threads):
            (result, times, shares), peak, _ = run_with_peak(
                _runs,
                getattr(task, METHODS[method]),
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
    """Return the last result, the times of all runs (runs, 2), and stage shares.

    If there are several runs, the profile is that of an additional run.
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
    """Return the result of a call, and its elapsed and processor time."""
    began, spent = time.perf_counter(), time.process_time()
    result = function(*arguments)
    return result, (time.perf_counter() - began, time.process_time() - spent)


def _shares(profile, seconds):
    """Return the fraction of the elapsed time in every stage."""
    total = {entry.code: entry.totaltime for entry in profile.getstats()}
    shares = {
        stage: sum(total.get(function.__code__, 0.0) for function in functions)
        / seconds
        for stage, functions in STAGES.items()
    }
    return shares | {"other": 1.0 - sum(shares.values())}


if __name__ == "__main__":
    print(json.dumps(measure(*json.loads(sys.argv[1]))))
