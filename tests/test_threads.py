import multiprocessing
import os
import subprocess
import sys

import numpy as np
import pytest

import cdsk
from cdsk._threads import openmp_enabled, resolve_n_threads


def test_numbers_are_taken_as_they_are():
    expected = 3 if openmp_enabled() else 1
    assert resolve_n_threads(3) == expected
    assert resolve_n_threads(np.int64(3)) == expected
    assert resolve_n_threads(1) == 1


@pytest.mark.parametrize("wrong", [0, -2, 1.5, "2", True])
def test_anything_else_is_refused(wrong):
    with pytest.raises(ValueError, match="n_threads must be a positive integer"):
        resolve_n_threads(wrong)


def ask(n_threads, **environment):
    code = f"from cdsk._threads import *; print(resolve_n_threads({n_threads}))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


def test_environment_sets_the_default():
    for n_threads in (None, -1):
        expected = 5 if openmp_enabled() else 1
        assert ask(n_threads, OMP_NUM_THREADS="5") == expected


def gram_in_child(queue):
    queue.put(cdsk.gaussian_gram(np.arange(200.0)[:, np.newaxis], 10.0).sum())


def test_a_forked_child_does_not_hang():
    expected = cdsk.gaussian_gram(np.arange(200.0)[:, np.newaxis], 10.0).sum()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=gram_in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=30) == expected
    child.join(timeout=30)
    assert child.exitcode == 0
