# SPDX-License-Identifier: BSD-3-Clause
"""Fits and predictions of random data with random settings: ``make fuzz SECONDS=600``.

A case either gives valid results or is refused by a ValueError, TypeError or
MemoryError that cdsk or the validation of scikit-learn raises, within a time limit.
hypothesis shrinks a case that fails, and ``SEED`` repeats it. The case that runs is in
build/fuzz.txt, for crashes that end the process.
"""

import argparse
import faulthandler
import itertools
import re
import secrets
import signal
import time
import traceback
import warnings
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd
import sklearn
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import kneighbors_graph

import cdsk
from cdsk import CDSK, BlockCDSK

REFUSALS = ValueError, TypeError, MemoryError
_CDSK, _SKLEARN = Path(cdsk.__file__).parent, Path(sklearn.__file__).parent
OUR_FOLDERS = _CDSK, _SKLEARN / "utils", _SKLEARN / "metrics"


class TooSlow(Exception):
    """A case exceeded the time limit."""


@dataclass(frozen=True)
class Rows:
    """Recipe of random data: it is small, so that it can be shrunk and printed."""

    n: int
    d: int
    shape: str = "normal"
    scale: float = 1.0
    offset: float = 0.0
    missing: float = 0.0
    categories: int = 0
    container: str = "array"
    seed: int = 0

    def make(self, n=None, seed=0):
        """Return n rows, in the container of the recipe."""
        n, rng = self.n if n is None else n, np.random.default_rng([self.seed, seed])
        X = rng.normal(size=(n, self.d))
        if self.shape == "blobs":
            X += 8.0 * rng.integers(3, size=(n, 1))
        elif self.shape == "integers":
            X = np.round(X)
        elif self.shape == "copies":
            X = X[rng.integers(max(n // 8, 1), size=n)]
        elif self.shape == "line":
            X = np.linspace(-1.0, 1.0, n)[:, None] * np.ones(self.d)
        elif self.shape == "constant":
            X = np.ones((n, self.d))
        elif self.shape == "columns":
            X *= 10.0 ** rng.integers(-12, 12, size=self.d)
        elif self.shape == "rows":
            X *= 10.0 ** rng.integers(-12, 12, size=(n, 1))
        elif self.shape == "zeros":
            X *= rng.random((n, self.d)) < 0.1
        X = X * self.scale + self.offset
        X[rng.random(X.shape) < self.missing] = np.nan
        if self.container == "float32":
            return X.astype(np.float32)
        if self.container == "fortran":
            return np.asfortranarray(X)
        if self.container == "strided":
            return np.repeat(X, 2, axis=1)[::-1, ::2]
        if self.container == "list":
            return X.tolist()
        if self.container == "csr":
            return sparse.csr_array(X)
        if self.container == "frame":
            frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(self.d)])
            for k in range(self.categories):
                levels = rng.integers(1, 30)
                values = np.array([f"v{i}" for i in range(levels)], dtype=object)
                values = values[rng.integers(levels, size=n)]
                values[rng.random(n) < self.missing] = None
                frame[f"c{k}"] = values
            return frame
        return X


@dataclass(frozen=True)
class Case:
    """Data, sample weights and the parameters of an estimator."""

    rows: Rows
    params: dict = field(default_factory=dict)
    weights: str = "none"
    estimator: type = CDSK

    @property
    def has_weights(self):
        """Whether the estimator takes weights of rows, and has those of the kernel."""
        return issubclass(self.estimator, CDSK)

    def data(self):
        """Return X of the fit and X of new rows."""
        X, new = self.rows.make(), self.rows.make(n=7, seed=1)
        kernel = self.params.get("kernel")
        if kernel not in ("precomputed", "precomputed_neighbors"):
            return X, new
        X = replace(self.rows, container="array", missing=0.0, scale=1.0).make()
        if kernel == "precomputed_neighbors" and len(X) > 1:
            graph = kneighbors_graph(X, min(5, len(X) - 1), mode="distance")
            graph = graph * self.rows.scale
            return graph, graph[:3]
        D = pairwise_distances(X)
        K = np.exp(-((D / max(D.mean(), 1e-300)) ** 2))
        return K, K[:3]

    def sample_weight(self):
        """Return the weights of the rows, or None."""
        n, rng = self.rows.n, np.random.default_rng(self.rows.seed)
        return {
            "none": lambda: None,
            "ones": lambda: np.ones(n),
            "counts": lambda: rng.integers(0, 4, size=n),
            "spread": lambda: 10.0 ** rng.integers(-5, 1, size=n),
            "extreme": lambda: 10.0 ** rng.integers(-300, 300, size=n),
            "single": lambda: np.eye(n)[0],
            "wrong": lambda: -np.ones(n + 1),
        }[self.weights]()


# ---------------------------------------------------------------------- strategies

PARAMS = {
    "kernel": st.sampled_from(
        [
            "precomputed",
            "precomputed_neighbors",
            "chi2",
            "cosine",
            "laplacian",
            "linear",
            "poly",
            "sigmoid",
        ]
    ),
    "metric": st.just("cosine"),
    "psd": st.booleans(),
    "bandwidth": st.sampled_from(
        [
            "neighbor",
            "variance",
            "std",
            "median",
            "local",
            1e-300,
            1e-3,
            1.0,
            1e3,
            1e300,
        ]
    ),
    "n_neighbors": st.integers(1, 60),
    "approximation": st.just("lowrank"),
    "rank": st.integers(1, 40),
    "representation": st.sampled_from(
        ["raw", "standardize", "normal_scores", "whiten", "layout"]
        + ["chi_square", "indicators"]
    ),
    "n_components": st.integers(1, 20),
    "categorical_features": st.sampled_from([None, [0], [-1], [True], ["x0"]]),
    "missing": st.sampled_from(["auto", "error"]),
    "lam": st.sampled_from(["auto", 1e-12, 0.01, 0.5, 1.0]),
    "init": st.just("sparse"),
    "max_iter": st.integers(0, 40),
    "tol": st.sampled_from([0.0, 1e-14, 0.1]),
    "qp_tol": st.sampled_from([1e-14, 1e-8, 0.1]),
    "eigen_solver": st.sampled_from(["eigsh", "block_lanczos", "multilevel", "dense"]),
    "assign_labels": st.sampled_from(["cluster_qr", "discretize", "auto"]),
    "n_init": st.integers(1, 3),
    "noise": st.sampled_from([0.0, 0.01, 0.5]),
    "min_cluster_size": st.one_of(st.integers(1, 40), st.floats(0.01, 0.6)),
    "max_cluster_size": st.one_of(st.integers(1, 100), st.floats(0.01, 0.99)),
}
BLOCK_PARAMS = {
    "n_landmarks": st.integers(2, 60),
    "landmarks": st.sampled_from(["kmeans", "uniform"]),
    "lam": st.sampled_from([0.01, 0.5, 1.0]),
    "max_iter": st.integers(0, 40),
}
SCALES = st.sampled_from([1.0] * 6 + [1e-3, 1e8, 1e-30, 1e30, 1e-200, 1e160, 1e300])


@st.composite
def rows_strategy(draw):
    """Draw a recipe of data."""
    container = draw(
        st.sampled_from(
            ["array"] * 3 + ["float32", "fortran", "strided", "list", "csr", "frame"]
        )
    )
    categories = draw(st.integers(0, 4)) if container == "frame" else 0
    return Rows(
        n=draw(st.one_of(st.integers(1, 20), st.integers(5, 60), st.integers(40, 200))),
        d=draw(st.one_of(st.integers(1, 4), st.integers(5, 80))),
        shape=draw(
            st.sampled_from(
                ["normal", "blobs", "integers", "copies", "line", "constant"]
                + ["columns", "rows", "zeros"]
            )
        ),
        scale=draw(SCALES),
        offset=draw(st.sampled_from([0.0] * 4 + [1.0, 1e6, -1e15])),
        missing=draw(st.sampled_from([0.0] * 6 + [0.02, 0.02, 0.3, 0.95, 1.0])),
        categories=categories,
        container=container,
        seed=draw(st.integers(0, 2**16)),
    )


@st.composite
def case_strategy(draw):
    """Draw a case: at most four parameters are not the default."""
    estimator = draw(st.sampled_from([CDSK] * 5 + [BlockCDSK]))
    known = PARAMS if estimator is CDSK else BLOCK_PARAMS
    names = draw(st.lists(st.sampled_from(sorted(known)), max_size=4, unique=True))
    params = {name: draw(known[name]) for name in names}
    if "rank" in params:
        params |= {"approximation": "lowrank", "bandwidth": "median"}
    n_clusters = st.integers(1, 14)
    if estimator is CDSK:
        n_clusters |= st.just("auto")
    params["n_clusters"] = draw(n_clusters)
    weights = st.sampled_from(
        ["none"] * 12 + ["ones", "counts", "spread", "extreme", "single", "wrong"]
    )
    return Case(draw(rows_strategy()), params, draw(weights), estimator)


# --------------------------------------------------------------------------- check


def check(case):
    """Fit and predict; raise what must not happen. Return what did."""
    with np.errstate(all="ignore"):
        X, new = case.data()
    model = case.estimator(random_state=0, n_threads=2, **case.params)
    options = {"sample_weight": case.sample_weight()} if case.has_weights else {}
    try:
        model.fit(X, **options)
    except REFUSALS as error:
        return refusal(error)
    check_labels(model, model.labels_, case.rows.n)
    if case.has_weights:
        check_attributes(model)
    check_predictions(model, X)
    # new rows may have no value at all, or categories in place of numbers
    try:
        check_predictions(model, new)
    except REFUSALS as error:
        refusal(error)
    labels = model.labels_.copy()
    assert (model.set_params(n_threads=1).fit(X, **options).labels_ == labels).all()
    return "labels"


def check_labels(model, labels, n):
    """Labels are integers of clusters, or -1 for noise if it was asked for."""
    assert labels.shape == (n,) and labels.dtype.kind == "i", labels
    lowest = -1 if model.get_params().get("noise") else 0
    n_clusters = getattr(model, "n_clusters_", model.n_clusters)
    assert (labels >= lowest).all() and (labels < n_clusters).all(), labels


def check_predictions(model, X):
    """Predictions for rows are labels, probabilities and finite positions."""
    labels = model.predict(X)
    check_labels(model, labels, len(labels))
    probabilities = model.predict_proba(X)
    assert (probabilities >= 0).all(), probabilities  # NaN neither
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-9)
    if hasattr(model, "transform"):
        assert np.isfinite(model.transform(X)).all()


def check_attributes(model):
    """Results of a fit are finite, and in their ranges."""
    weights = model.weights_ * model.sample_weight_
    assert (weights >= 0).all(), weights
    np.testing.assert_allclose(weights.sum(), 1.0, rtol=1e-9)
    for name in ("margins_", "typicality_", "embedding_", "eigenvalues_", "history_"):
        assert np.isfinite(getattr(model, name)).all(), name
    for name in ("probabilities_", "outlier_scores_"):
        values = getattr(model, name)
        assert ((values >= 0) & (values <= 1)).all(), name
    assert (np.abs(model.margins_) <= 1 + 1e-9).all()
    str(model.report())


def refusal(error):
    """Return the message of an error in our words; raise any other."""
    frames = traceback.extract_tb(error.__traceback__)
    where = Path(frames[-1].filename)
    is_compiled = where.match("cdsk/*.pyx")
    is_ours = is_compiled or any(folder in where.parents for folder in OUR_FOLDERS)
    if not is_ours or not str(error):
        raise error
    words = re.sub(r"\d[\d, ]*", "# ", str(error))
    return f"{type(error).__name__}: {words[:70]}"


# ------------------------------------------------------------------------- program


@contextmanager
def time_limit(seconds):
    """Raise TooSlow after some seconds, as soon as compiled code checks for signals."""

    def stop(*_):
        raise TooSlow(f"more than {seconds} s")

    # a loop that checks none ends the process, with a traceback
    faulthandler.dump_traceback_later(seconds + 60.0, exit=True)
    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        faulthandler.cancel_dump_traceback_later()


def search(first_seed, n_examples, run):
    """Let hypothesis run ``n_examples`` cases, and shrink those that fail."""

    @seed(first_seed)
    @settings(
        max_examples=n_examples,
        deadline=None,
        database=None,
        print_blob=False,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(case_strategy())
    def cases(case):
        run(case)

    cases()


def main():
    """Run rounds of 100 cases, each with its own seed, until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, help="of the first round; default: random")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds of a case")
    arguments = parser.parse_args()
    first = secrets.randbelow(2**30) if arguments.seed is None else arguments.seed
    current = Path("build/fuzz.txt")
    current.parent.mkdir(exist_ok=True)
    outcomes, failed = Counter(), 0

    def run(case):
        current.write_text(f"{case}\n")
        with (
            time_limit(arguments.limit),
            warnings.catch_warnings(record=True) as caught,
        ):
            warnings.simplefilter("always", RuntimeWarning)
            outcome = check(case)
            outcomes[outcome] += 1
        if outcome == "labels" and any(w.category is RuntimeWarning for w in caught):
            # a number went wrong, and nobody was told: where?
            with warnings.catch_warnings():
                warnings.simplefilter("error", RuntimeWarning)
                check(case)

    start = time.monotonic()
    for round_seed in itertools.count(first):
        if time.monotonic() - start > arguments.seconds:
            break
        try:
            search(round_seed, 100, run)
        except Exception:
            failed += 1
            traceback.print_exc()
            print(f"To repeat: make fuzz SECONDS=1 SEED={round_seed}", flush=True)
    for outcome, count in outcomes.most_common():
        print(f"{count:6d}  {outcome}")
    print(
        f"Seeds {first} to {round_seed - 1}: {outcomes.total()} cases, {failed} failed"
    )
    return failed > 0


if __name__ == "__main__":
    faulthandler.enable()
    raise SystemExit(main())
