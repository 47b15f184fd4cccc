"""The number of threads changes no bit; fits from several threads do not mix.

Here of the full kernel; of the default one see test_defaults.py.
"""

import hashlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from threadpoolctl import threadpool_info

import cdsk
from cdsk import CDSK


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(700, 5, centers=4, cluster_std=3.0, random_state=0)[0]


def results(X, **parameters):
    model = CDSK(4, random_state=0, **parameters).fit(X)
    return [
        model.weights_,
        model.embedding_,
        model.labels_,
        model.history_,
        model.decision_function(X),
    ]


def assert_equal(found, expected):
    assert all((a == b).all() for a, b in zip(found, expected, strict=True))


def test_functions_are_equal_for_any_number_of_threads(blobs, dtype):
    X = blobs.astype(dtype)
    weights = np.full(700, 1 / 700)
    expected = None
    for n_threads in (1, 2, 3):
        K = cdsk.gaussian_gram(X, 2.0, n_threads=n_threads)
        rows = cdsk.gaussian_rows(X[:99], X, 2.0, n_threads=n_threads)
        S, degrees = cdsk.similarity_matrix(K, weights, 0.3, n_threads=n_threads)
        found = [K, rows, S, degrees]
        expected = found if expected is None else expected
        assert_equal(found, expected)


def test_fits_are_equal_for_any_number_of_threads(blobs):
    one, two, three = (results(blobs, bandwidth=2.0, n_threads=n) for n in (1, 2, 3))
    assert_equal(two, one)
    assert_equal(three, one)


SCRIPT = """
import hashlib, numpy as np
from sklearn.datasets import make_blobs
from cdsk import CDSK
X = make_blobs(700, 5, centers=4, cluster_std=3.0, random_state=0)[0]
wide = make_blobs(500, 90, centers=4, cluster_std=6.0, random_state=0)[0]
for model in (
    CDSK(4, bandwidth=2.0, random_state=0).fit(X),
    CDSK(4, random_state=0).fit(X[:300]),
    CDSK(4, random_state=0).fit(X[:60]),
    # many points at equal distances
    CDSK(4, random_state=0).fit(np.round(wide / 8)),
    CDSK(4, random_state=0, representation="whiten", n_components=30).fit(wide),
):
    for name in ("weights_", "embedding_", "labels_", "history_"):
        array = np.ascontiguousarray(getattr(model, name))
        print(hashlib.sha256(array).hexdigest())
"""


@pytest.mark.slow
def test_thread_settings_of_the_environment_change_nothing(blobs):
    # also OpenBLAS reads these
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT],
            env=os.environ | {"OMP_NUM_THREADS": n, "OPENBLAS_NUM_THREADS": n},
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in ("1", "3")
    ]
    wide = make_blobs(500, 90, centers=4, cluster_std=6.0, random_state=0)[0]
    here = [
        hashlib.sha256(np.ascontiguousarray(array)).hexdigest()
        for found in (
            results(blobs, bandwidth=2.0),
            results(blobs[:300]),
            results(blobs[:60]),
            results(np.round(wide / 8)),
            results(wide, representation="whiten", n_components=30),
        )
        for array in found[:4]
    ]
    for run in runs:
        assert run.communicate()[0].split() == here
        assert run.returncode == 0


def blas_threads():
    return [info["num_threads"] for info in threadpool_info()
            if info["user_api"] == "blas"]  # fmt: skip


@pytest.mark.slow
def test_concurrent_fits_equal_the_serial_ones(blobs):
    # of different data: what got from one fit into another would show
    jobs = [
        (blobs[start : start + 300], parameters)
        for start in (0, 200, 400)
        for parameters in ({}, {"bandwidth": 2.0})
    ]

    def run(job):
        X, parameters = job
        return results(X, **parameters)

    expected = [run(job) for job in jobs]
    before = blas_threads()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(run, 2 * jobs))
    # the fits limit them, one after the other
    assert blas_threads() == before
    for one, other in zip(found, 2 * expected, strict=True):
        assert_equal(one, other)


@pytest.mark.parametrize(
    "parameters",
    [{}, {"bandwidth": "local"}, {"noise": 0.05}],
    ids=str,
)
def test_one_model_predicts_from_many_threads(blobs, parameters):
    # what is made at the first call is made by several threads at once
    parts = np.array_split(blobs[300:], 16)
    alone, shared = (
        CDSK(4, random_state=0, **parameters).fit(blobs[:300]) for _ in range(2)
    )

    def judge(model, part):
        names = "predict predict_proba decision_function score_samples transform"
        return [getattr(model, name)(part) for name in names.split()]

    expected = [judge(alone, part) for part in parts]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(judge, 3 * len(parts) * [shared], 3 * parts))
    for one, other in zip(found, 3 * expected, strict=True):
        assert_equal(one, other)


@pytest.mark.skipif(
    getattr(sys, "_is_gil_enabled", lambda: True)(),
    reason="needs a free-threaded Python",
)
def test_no_compiled_module_asks_for_the_gil():
    # in a process of its own: other packages may have asked for it here
    modules = sorted(Path(cdsk.__file__).parent.glob("*.so"))
    assert modules
    for name in (f"cdsk.{path.name.split('.')[0]}" for path in modules):
        code = f"import sys, {name}; sys.exit(sys._is_gil_enabled())"
        warnings = ["-W", "error:The global interpreter lock:RuntimeWarning"]
        subprocess.run([sys.executable, *warnings, "-c", code], check=True)
