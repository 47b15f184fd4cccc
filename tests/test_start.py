"""First weights: the sparse start, the projection on the simplex, given weights."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, nnls
from sklearn.datasets import load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning

import cdsk
import reference
from cdsk import CDSK, sparse_start
from cdsk import _initialization as _init
from cdsk._initialization import (
    SparseObjective,
    first_weights,
    project_to_simplex,
    threshold_iteratively,
)
from cdsk._operators.dense import DenseKernel


@settings(max_examples=40)
@given(st.integers(0, 2**31), st.integers(3, 30), st.integers(1, 6))
def test_objective_is_the_printed_one_and_never_increases(seed, n, d):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + rng.normal(size=d)
    result = sparse_start(X, tau=0.1)
    assert (np.diff(result.objective) <= 0).all()
    assert len(result.objective) == result.n_iter + 1
    last = reference.sparse_objective(X, result.coefficients, 0.1)
    assert result.objective[-1] == pytest.approx(last, rel=1e-9, abs=1e-9)
    first = reference.sparse_objective(X, np.full(n, 1 / n), 0.1)
    assert result.objective[0] == pytest.approx(first, rel=1e-9, abs=1e-9)
    assert (result.coefficients >= 0).all()
    assert result.weights.sum() == pytest.approx(1, abs=1e-12)
    assert ((result.weights > 0) == (result.coefficients > 0)).all() or (
        not result.coefficients.any()
    )


def brute_force(X, tau):
    """Least objective over all supports; on each a non-negative least squares."""
    n = len(X)
    A, s = X @ X.T, (X**2).sum(axis=1)
    Q, p = (n - 2) * A + np.diag(s), 2 * (s - A.sum(axis=1))
    best = s.sum()
    root = np.linalg.cholesky(Q + 1e-12 * np.eye(n))
    for size in range(1, n + 1):
        for chosen in map(list, combinations(range(n), size)):
            # a'Qa + p'a = |R'a + R^-1 p / 2|^2 - const
            a, _ = nnls(root.T[:, chosen], -0.5 * np.linalg.solve(root, p))
            value = a @ Q[np.ix_(chosen, chosen)] @ a + p[chosen] @ a
            best = min(best, value + s.sum() + tau * np.count_nonzero(a))
    return best


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("tau", [0.01, 0.1, 1.0])
def test_no_better_than_brute_force_and_a_fixed_point(seed, tau):
    X = np.random.default_rng(seed).normal(size=(6, 8)) + 0.5
    result = sparse_start(X, tau=tau, max_iter=20_000)
    best = brute_force(X, tau)
    assert best <= result.objective[-1] * (1 + 1e-9) + 1e-9
    # a local solution: with its support fixed, nothing is better
    a, n = result.coefficients, len(X)
    chosen = np.flatnonzero(a)
    if len(chosen):
        A, s = X @ X.T, (X**2).sum(axis=1)
        gradient = 2 * ((n - 2) * A + np.diag(s)) @ a + 2 * (s - A.sum(axis=1))
        assert np.abs(gradient[chosen]).max() < 1e-2 * np.abs(s - A.sum(axis=1)).max()


def test_without_a_price_it_is_the_convex_problem(rng):
    X = rng.normal(size=(12, 4)) + 1.0
    found = minimize(
        lambda a: reference.sparse_objective(X, a, 0.0),
        np.full(12, 1 / 12),
        bounds=[(0, None)] * 12,
        options={"ftol": 1e-15, "maxiter": 10_000, "maxfun": 10**6},
    )
    result = sparse_start(X, tau=0.0, max_iter=100_000)
    assert result.objective[-1] == pytest.approx(found.fun, rel=1e-5)


def test_a_higher_price_leaves_fewer_points(rng):
    X = rng.normal(size=(60, 5)) + 1.0
    sizes = [
        np.count_nonzero(sparse_start(X, tau=tau).coefficients)
        for tau in (0.0, 0.1, 1.0, 10.0, 1e6)
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[3] > sizes[-1] == 0
    assert (sparse_start(X, tau=1e6).weights == 1 / 60).all()


def test_the_cost_is_the_papers(rng):
    X = rng.normal(size=(60, 5)) + 1.0
    one, two, other = sparse_start(X), sparse_start(X, tau=0.1), sparse_start(X, tau=10)
    assert (one.coefficients == two.coefficients).all()
    assert (one.objective == two.objective).all()
    assert (one.coefficients != other.coefficients).any()


def test_iris_converges_where_thresholding_alone_takes_thousands_of_steps():
    X = load_iris().data
    result = sparse_start(X)
    assert result.converged
    assert result.n_iter < 200
    # where thresholding alone ends after 25,000 steps, with 39 points
    assert result.objective[-1] < 675.86
    # a fixed point: the least sum of squares on the support, and no entry comes back
    A, s, n = X @ X.T, (X**2).sum(axis=1), len(X)
    Q, p = (n - 2) * A + np.diag(s), 2 * (s - A.sum(axis=1))
    a = result.coefficients
    gradient = 2 * Q @ a + p
    assert np.abs(gradient[a > 0]).max() < 1e-6 * np.abs(p).max()
    curvature = 2 * np.linalg.eigvalsh(Q)[-1]
    gain = np.sqrt(2 * 0.1 / curvature)
    assert (-gradient[a == 0] / curvature <= gain).all()


def test_a_start_that_is_cut_short_says_so():
    message = (
        r"not converge in 3 iterations: .* decreased .* to 698.*of 150 points are left"
    )
    with pytest.warns(ConvergenceWarning, match=message):
        result = sparse_start(load_iris().data, max_iter=3)
    assert not result.converged
    assert result.n_iter == 3


def test_numbers_too_large_to_be_squared(rng):
    X = rng.normal(size=(10, 2))
    with pytest.raises(
        ValueError, match=r"X must hold numbers .* at most; got .*e\+200"
    ):
        sparse_start(X * 1e200)
    assert sparse_start(X * 1e100).converged
    assert (sparse_start(X * 1e-200).weights == 0.1).all()


def test_too_long_steps_are_shortened(rng, monkeypatch):
    monkeypatch.setattr(_init, "largest_eigenvalue", lambda *args: 1e-6)
    X = rng.normal(size=(30, 3)) + 1.0
    result = sparse_start(X, tau=0.01)
    assert (np.diff(result.objective) <= 0).all()
    assert result.objective[-1] < result.objective[0] - 1.0


def test_points_at_the_origin():
    result = sparse_start(np.zeros((5, 2)))
    assert (result.weights == 0.2).all()


def test_kernel_matrix_as_gram_matrix(rng):
    X = rng.normal(size=(40, 3))
    kernel = DenseKernel(X @ X.T, 1)
    one = threshold_iteratively(SparseObjective.from_points(X, 0.1, 1), 1.0)
    two = threshold_iteratively(SparseObjective.from_kernel(kernel, 0.1), 1.0)
    np.testing.assert_allclose(one.weights, two.weights, atol=1e-8)


@settings(max_examples=100)
@given(st.integers(0, 2**31), st.integers(1, 40), st.floats(0.01, 1.0))
def test_projection_on_the_simplex(seed, n, lam):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(n, 0.2))
    upper = min(1 / (n * lam), 1.0)
    found = project_to_simplex(weights, upper)
    assert found.sum() == pytest.approx(1, abs=1e-12)
    assert ((found >= 0) & (found <= upper)).all()
    # optimal: (w - found)'(z - found) <= 0 for every feasible z, so for the vertices
    # that are best for this linear function
    direction = weights - found
    best, rest = 0.0, 1.0
    for gain in np.sort(direction)[::-1]:
        best += gain * min(upper, rest)
        rest -= min(upper, rest)
    assert best - direction @ found <= 1e-12
    if (weights <= upper).all():
        np.testing.assert_allclose(found, weights, atol=1e-14)


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(150, 4, centers=3, random_state=0)[0]


@pytest.mark.parametrize("lam", [0.05, 0.3, 1.0])
def test_sparse_start_of_a_fit_is_feasible(blobs, lam):
    kernel = DenseKernel(cdsk.gaussian_gram(blobs, 1.0), 2, points=blobs)
    weights = first_weights(kernel, lam, "sparse")
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    assert ((weights >= 0) & (weights <= 1 / (150 * lam) * (1 + 1e-15))).all()
    assert (weights == sparse_start(blobs, lam=lam).weights).all()
    # precomputed: in feature space
    kernel.points = None
    other = first_weights(kernel, lam, "sparse")
    assert ((other >= 0) & (other <= 1 / (150 * lam) * (1 + 1e-15))).all()


def test_fits_from_all_starts(blobs, in_point_order):
    blobs = in_point_order(blobs)
    # with no rounds the weights are the start
    sparse = CDSK(3, init="sparse", max_iter=0, random_state=0).fit(blobs)
    assert (sparse.weights_ == sparse_start(blobs, lam=0.2).weights).all()
    given_weights = sparse.weights_.copy()
    model = CDSK(3, init=given_weights, max_iter=0, random_state=0).fit(blobs)
    assert (model.weights_ == given_weights).all()
    assert model.weights_ is not given_weights
    model = CDSK(3, init=given_weights, random_state=0).fit(blobs)
    assert (given_weights == sparse.weights_).all()
    uniform = CDSK(3, init=np.full(150, 1 / 150), random_state=0).fit(blobs)
    plain = CDSK(3, random_state=0).fit(blobs)
    assert (uniform.weights_ == plain.weights_).all()


def test_threads_change_no_bit():
    X = make_blobs(3000, 20, random_state=0)[0]
    one, two = (sparse_start(X, tau=1e3, n_threads=n) for n in (1, 3))
    assert one.n_iter > 1
    assert (one.weights == two.weights).all()
    assert (one.objective == two.objective).all()


@pytest.mark.parametrize(
    ("init", "message"),
    [
        ("random", "init must be one of 'uniform', 'sparse'; got 'random'"),
        (np.ones(3) / 3, r"init must have shape \(150,\); got shape \(3,\)"),
        (None, r"init must have shape \(150,\)"),
        (
            np.ones(150),
            "init must lie between 0 and the upper bound 0.0333333; got 1.0",
        ),
        (np.zeros(150), "init must sum to 1; got the sum 0"),
        (np.full(150, np.nan), "init must lie between 0 .*; got nan"),
        (["a"] * 150, "init must hold numbers"),
    ],
)
def test_bad_starts(blobs, init, message):
    with pytest.raises(ValueError, match=message):
        CDSK(3, init=init).fit(blobs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tau": -1}, "tau must be a number >= 0; got -1"),
        ({"lam": 2}, "lam must be a number > 0 and <= 1; got 2"),
        ({"max_iter": -1}, "max_iter must be an integer of at least 0; got -1"),
    ],
)
def test_bad_arguments(blobs, options, message):
    with pytest.raises(ValueError, match=message):
        sparse_start(blobs, **options)
