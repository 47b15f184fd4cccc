# SPDX-License-Identifier: BSD-3-Clause
"""One method on one set, seed after seed, in a process of its own: a record per line.

Standard output has a line when the data are there, then one per seed. The process
ends when its standard input does: whoever started it is gone.
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
from benchmarks.peers.measure import with_peak


def records(key, method, mode, seeds, folder, sample):
    """Yield {"n": ...}, then for every seed its scores, or why there are none."""
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
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            ((labels, whole), seconds), peak, _ = with_peak(_timed, labels_of)
    except Unavailable as reason:
        return {"status": "not available", "reason": str(reason)}
    except Exception as error:
        return {"status": "failed", "reason": f"{type(error).__name__}: {error}"}
    found = {"status": "done", **scores(y, labels)}
    found |= {"seconds": seconds, "memory": peak, "whole": whole}
    found["n_found"] = len(set(labels.tolist()))
    # of every kind the first
    found["warnings"] = {
        warning.category.__name__: str(warning.message) for warning in reversed(said)
    }
    return found


def _timed(function):
    began = time.process_time()
    return function(), time.process_time() - began


def _end_with_parent():
    sys.stdin.read()
    # whatever the method started too: this process leads its group
    os.killpg(0, signal.SIGKILL)


def _main():
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # the libraries stay: no need to look through them before every fit
    gc.freeze()
    # what a method prints must not get between the records
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)
        for record in records(*json.loads(sys.argv[1])):
            print(json.dumps(record), file=out, flush=True)


if __name__ == "__main__":
    _main()
