"""The number of threads changes no bit; fits from several threads do not mix."""

import hashlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.datasets import make_blobs

import cdsk
from cdsk import CDSK


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(700, 5, centers=4, cluster_std=3.0, random_state=0)[0]


def results(model, X):
    return [
        model.weights_,
        model.embedding_,
        model.labels_,
        model.history_,
        model.decision_function(X),
    ]


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
        assert all((a == b).all() for a, b in zip(found, expected, strict=True))


def test_fits_are_equal_for_any_number_of_threads(blobs):
    one, two, three = (
        results(CDSK(4, random_state=0, n_threads=n).fit(blobs), blobs)
        for n in (1, 2, 3)
    )
    assert all((a == b).all() for a, b in zip(one, two, strict=True))
    assert all((a == b).all() for a, b in zip(one, three, strict=True))


SCRIPT = """
import hashlib, numpy as np
from sklearn.datasets import make_blobs
from cdsk import CDSK
X = make_blobs(700, 5, centers=4, cluster_std=3.0, random_state=0)[0]
m = CDSK(4, random_state=0).fit(X)
for a in (m.weights_, m.embedding_, m.labels_, m.history_):
    print(hashlib.sha256(np.ascontiguousarray(a)).hexdigest())
"""


def test_thread_settings_of_the_environment_change_nothing(blobs):
    # also OpenBLAS reads these
    model = CDSK(4, random_state=0).fit(blobs)
    here = [
        hashlib.sha256(np.ascontiguousarray(a)).hexdigest()
        for a in results(model, blobs)[:4]
    ]
    for n in ("1", "3"):
        environment = os.environ | {"OMP_NUM_THREADS": n, "OPENBLAS_NUM_THREADS": n}
        there = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert there.stdout.split() == here


def test_concurrent_fits_equal_the_serial_one(blobs):
    expected = results(CDSK(4, random_state=0).fit(blobs), blobs)
    with ThreadPoolExecutor(8) as pool:
        models = list(pool.map(lambda _: CDSK(4, random_state=0).fit(blobs), range(16)))
    for model in models:
        found = results(model, blobs)
        assert all((a == b).all() for a, b in zip(found, expected, strict=True))
