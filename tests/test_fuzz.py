"""A short search by the fuzzer (``make fuzz``), and that it sees what is wrong."""

import signal
import sys
import warnings

import numpy as np
import pytest

from benchmarks import fuzz
from cdsk import CDSK


def quietly(case):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fuzz.check(case)


def test_cases_have_labels_or_are_refused():
    outcomes = []
    fuzz.search(0, 30, lambda case: outcomes.append(quietly(case)))
    assert {"labels"} < set(outcomes)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("labels_", lambda values: values + 2),
        ("labels_", lambda values: values - 1),
        ("weights_", lambda values: 2.0 * values),
        ("embedding_", lambda values: values * np.nan),
    ],
)
def test_wrong_results_are_seen(monkeypatch, name, wrong):
    class Broken(CDSK):
        def fit(self, X, y=None, sample_weight=None):
            super().fit(X, y, sample_weight)
            setattr(self, name, wrong(getattr(self, name)))
            return self

    rows = fuzz.Rows(n=20, d=2)
    params = {"n_clusters": 2}
    assert quietly(fuzz.Case(rows, params)) == "labels"
    with pytest.raises(AssertionError):
        quietly(fuzz.Case(rows, params, estimator=Broken))


def test_errors_of_other_packages_are_seen():
    def fail():
        return np.zeros((2, 2)).reshape(3)

    with pytest.raises(ValueError, match="reshape"):
        try:
            fail()
        except ValueError as error:
            fuzz.refusal(error)
    refused = quietly(fuzz.Case(fuzz.Rows(n=20, d=2), {"n_clusters": 0}))
    assert refused.startswith("ValueError: n_clusters")


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGALRM")
def test_a_case_is_stopped():
    with pytest.raises(fuzz.TooSlow), fuzz.time_limit(1000.0):
        signal.raise_signal(signal.SIGALRM)
