# SPDX-License-Identifier: BSD-3-Clause
"""Run one method on one data set for all seeds, and print one record per line.

The first line is printed when the data have been read, then one line per seed. The
process ends when its standard input is closed, because its parent has ended.
"""

import gc
import json
import os
import signal
import sys
import threading
import time
import warnings
from functools import partial

from benchmarks.paper import sets
from benchmarks.paper.methods import METHODS, Unavailable, fits
from benchmarks.paper.scores import scores
from benchmarks.peers.measure import run_with_peak


def records(key, method, mode, seeds, folder, sample):
    """Yield {"n": ...}, then the record of every seed: scores, or an error."""
    X, y = sets.load(folder, key, mode, sample)
    yield {"n": len(X)}
    n_clusters = len(set(y.tolist()))
    make = partial(METHODS[method].make, n_clusters, len(X), mode)
    for seed, labels_of in zip(seeds, fits(make, X, seeds), strict=True):
        began = time.perf_counter()
        found = _record(labels_of, y)
        yield {"seed": seed, "clock": time.perf_counter() - began} | found


def _record(labels_of, y):
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ((labels, whole), seconds), peak, _ = run_with_peak(_timed, labels_of)
    except Unavailable as reason:
        return {"status": "not available", "reason": str(reason)}
    except Exception as error:
        return {"status": "failed", "reason": f"{type(error).__name__}: {error}"}
    found = {"status": "done", **scores(y, labels)}
    found |= {"seconds": seconds, "memory": peak, "whole": whole}
    found["n_found"] = len(set(labels.tolist()))
    # the first one of each kind
    found["warnings"] = {
        warning.category.__name__: str(warning.message) for warning in reversed(caught)
    }
    return found


def _timed(function):
    began = time.process_time()
    return function(), time.process_time() - began


def _end_with_parent():
    sys.stdin.read()
    # the whole process group, with all that the method started
    os.killpg(0, signal.SIGKILL)


def _main():
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # objects of the libraries need not be scanned before every fit
    gc.freeze()
    # output of a method must not mix with the records
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)
        for record in records(*json.loads(sys.argv[1])):
            print(json.dumps(record), file=out, flush=True)


if __name__ == "__main__":
    _main()
