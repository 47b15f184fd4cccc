"""Ctrl-C ends long calls at any moment and leaves nothing behind."""

import copy
import os
import signal
import subprocess
import sys
import tempfile
import threading
import warnings

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from threadpoolctl import threadpool_info

import cdsk
from cdsk import CDSK, BlockCDSK, baselines
from cdsk._spectral import assign_labels
from cdsk._utils import limit_blas_threads

# few points have no clusters to converge to
pytestmark = pytest.mark.filterwarnings("ignore:The alternation did not converge")

FITS = {
    "CDSK": CDSK(3, random_state=0),
    "lam": CDSK(3, lam="auto", random_state=0),
    "n_clusters": CDSK("auto", random_state=0),
    "local": CDSK(3, bandwidth="local", random_state=0),
    "lowrank": CDSK(3, bandwidth=3.0, approximation="lowrank", random_state=0),
    "noise": CDSK(3, noise=0.1, random_state=0),
    "block": BlockCDSK(3, n_threads=2, random_state=0),
    **{
        name: getattr(baselines, name)(3, random_state=0)
        for name in baselines.__all__
        if name != "spectral_labels"
    },
}
for name in ("RatioRF", "RobustAffinityGraph"):
    FITS[name].set_params(n_estimators=5)


@pytest.fixture(scope="module")
def X():
    return make_blobs(60, 4, centers=3, cluster_std=2.0, random_state=0)[0]


def surroundings():
    """What a call may not change of its process."""
    return {
        "limits": [library["num_threads"] for library in threadpool_info()],
        "handler": signal.getsignal(signal.SIGINT),
        "warnings": list(warnings.filters),
        "errors of NumPy": np.geterr(),
    }


@pytest.fixture
def unchanged(tmp_path, monkeypatch):
    """Check that nothing is left behind: threads, limits, temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    threads, before = set(threading.enumerate()), surroundings()

    def check():
        assert set(threading.enumerate()) <= threads
        assert surroundings() == before
        assert os.listdir(tmp_path) == []

    yield check
    check()


def some(count, n):
    """Return up to n numbers of calls from the first to the last of ``count``."""
    if count == 0:
        return []
    return sorted({1 + round(share * (count - 1)) for share in np.linspace(0, 1, n)})


@pytest.mark.parametrize("name", FITS)
def test_fit(X, unchanged, interruption, watch_checks, name):
    model = FITS[name].fit(X)
    with interruption() as calls, watch_checks(interval=1e4) as checks:
        model.fit(X)
    labels = model.labels_
    assert calls.n_calls > 10

    def check(interrupted):
        state = vars(model).copy()
        with pytest.raises(KeyboardInterrupt), interrupted:
            model.fit(X)
        assert vars(model).keys() == state.keys()
        # the former fit as a whole, unless the new one had just ended
        if model.labels_ is state["labels_"]:
            assert all(vars(model)[key] is state[key] for key in state)
        assert (model.labels_ == labels).all()
        unchanged()

    for k in some(calls.n_calls, 4):
        check(interruption(k))
    for k in some(checks.n_checks, 2):
        check(watch_checks(k, interval=1e4))


def test_a_first_fit(X, interruption):
    for _ in range(2):  # what is computed once is there the second time
        model = CDSK(3, random_state=0)
        with interruption() as calls:
            model.fit(X)
    for k in some(calls.n_calls, 4):
        model = CDSK(3, random_state=0)
        before = vars(model).copy()
        with pytest.raises(KeyboardInterrupt), interruption(k):
            model.fit(X)
        assert vars(model) == before


USES = {
    "predict": lambda X, model: model.predict(X),
    "predict_proba": lambda X, model: model.predict_proba(X),
    "transform": lambda X, model: model.transform(X),
    "layers": lambda X, model: copy.copy(model).predict(X, layer=5),
    "report": lambda X, model: str(model.report(X)),
    "suggest_n_clusters": lambda X, model: cdsk.suggest_n_clusters(X, random_state=0),
    "select_lambda": lambda X, model: cdsk.select_lambda(
        X, 3, grid=[0.1, 0.3], random_state=0
    ),
    "stability": lambda X, model: cdsk.stability(model, X, 2, n_null=2, random_state=0),
}


@pytest.mark.parametrize("use", USES)
def test_other_calls(X, unchanged, interruption, use):
    model = CDSK(3, random_state=0).fit(X)
    USES[use](X, model)  # what is computed once is there
    state = vars(model).copy()
    with interruption() as calls:
        USES[use](X, model)
    for k in some(calls.n_calls, 4):
        with pytest.raises(KeyboardInterrupt), interruption(k):
            USES[use](X, model)
        assert all(vars(model)[key] is state[key] for key in state)
        unchanged()


# What makes a fit of a baseline longer, and by how many rounds.
ROUNDS = {
    "BayesianMaxMargin": ("n_sweeps", 10, 20),
    "KernelKMeans": ("n_init", 2, 6),
    "RatioRF": ("n_estimators", 10, 20),
}


@pytest.mark.parametrize("name", ROUNDS)
def test_rounds_of_a_baseline_are_calls(X, interruption, name):
    # between which Ctrl-C is heard
    parameter, few, many = ROUNDS[name]
    counts = []
    for value in (few, many):
        model = getattr(baselines, name)(3, random_state=0, **{parameter: value})
        with interruption() as calls:
            model.fit(X)
        counts.append(calls.n_calls)
    assert counts[1] - counts[0] >= many - few


def test_rounds_of_k_means_are_calls(rng, interruption):
    points = rng.normal(size=(3, 500))
    with interruption() as calls:
        assign_labels(points, "kmeans", n_init=5, random_state=0)
    assert calls.n_calls > 5


def hold_limits():
    with limit_blas_threads():
        pass


def label_few_points():
    assign_labels(np.eye(3, 12), "kmeans", n_init=2, random_state=0)


@pytest.mark.parametrize("call", [hold_limits, label_few_points])
def test_settings_of_the_process_are_restored_after_any_call(
    unchanged, interruption, call
):
    call()
    with interruption() as calls:
        call()
    for k in range(1, calls.n_calls + 1):
        with pytest.raises(KeyboardInterrupt), interruption(k):
            call()
        unchanged()


ENDLESS = """
import signal

from sklearn.datasets import make_blobs

import cdsk

# a process that is started in the background may ignore the signal
signal.signal(signal.SIGINT, signal.default_int_handler)
X = make_blobs(5000, 30, centers=8, cluster_std=9.0, random_state=0)[0]
print("begun", flush=True)
while True:
    cdsk.CDSK(8, random_state=0).fit(X)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs signals of POSIX")
def test_a_real_signal_ends_a_process():
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", ENDLESS],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        try:
            assert child.stdout.readline() == "begun\n"
            child.send_signal(signal.SIGINT)
            _, said = child.communicate(timeout=600)
        finally:
            child.kill()
    assert said.endswith("KeyboardInterrupt\n")
    assert child.returncode == -signal.SIGINT
