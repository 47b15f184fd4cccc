import multiprocessing
import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from cdsk import CDSK
from cdsk._threads import openmp_enabled, resolve_n_threads


def test_numbers_are_taken_as_they_are():
    expected = 3 if openmp_enabled() else 1
    assert resolve_n_threads(3) == expected
    assert resolve_n_threads(np.int64(3)) == expected
    assert resolve_n_threads(1) == 1
    assert resolve_n_threads(2**40) <= 1024


@pytest.mark.parametrize("wrong", [0, -2, 1.5, "2", True])
def test_anything_else_is_refused(wrong):
    with pytest.raises(ValueError, match="n_threads must be a positive integer"):
        resolve_n_threads(wrong)


def test_environment_sets_the_default():
    code = "from cdsk._threads import *; print(*map(resolve_n_threads, (None, -1)))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"OMP_NUM_THREADS": "5"},
        capture_output=True,
        text=True,
        check=True,
    )
    expected = "5" if openmp_enabled() else "1"
    assert done.stdout.split() == [expected, expected]


@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2,
    reason="needs two processors and a system that can bind a process to one",
)
def test_affinity_is_respected_also_if_set_after_the_import():
    code = (
        "import os; from cdsk._threads import resolve_n_threads as threads;"
        "before = threads(None);"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))});"
        "print(before, threads(None), threads(3))"
    )
    environment = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    before, bound, asked = map(int, done.stdout.split())
    if openmp_enabled():
        assert (before, bound, asked) == (len(os.sched_getaffinity(0)), 1, 3)


X = make_blobs(600, 20, centers=4, cluster_std=3.0, random_state=0)[0]


def fit_and_predict(queue=None):
    model = CDSK(4, random_state=0, bandwidth="local").fit(X)
    result = model.labels_, model.weights_, model.predict(X[:50])
    return result if queue is None else queue.put(result)


def test_a_forked_child_does_not_hang():
    # also k-means and the neighbor search of scikit-learn have used their threads here
    expected = fit_and_predict()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=fit_and_predict, args=(queue,))
    child.start()
    try:
        found = queue.get(timeout=600)
        child.join(timeout=600)
    finally:
        child.kill()
    assert child.exitcode == 0
    assert all((a == b).all() for a, b in zip(found, expected, strict=True))
