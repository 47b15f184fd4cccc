"""The QP solver: KKT conditions, independent solvers, degenerate problems."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import OneClassSVM

import cdsk
import reference
from cdsk import _smo
from cdsk._rows import CachedRows, StoredRows


def assert_optimal(Q, p, upper, result, tol):
    """Primal feasibility, and the KKT gap from the definition."""
    x = result.x
    rounding = 1e-13 * (np.abs(p).max() + 2 * np.abs(Q).max())
    assert (x >= 0).all()
    assert (x <= upper).all()
    assert abs(x.sum() - 1) < 1e-12
    assert result.status == "converged"
    assert result.gap <= tol
    assert reference.kkt_gap(Q.astype(float), p, x, upper) <= tol + rounding
    assert result.objective == pytest.approx(p @ x + x @ Q.astype(float) @ x, rel=1e-9)


def random_problem(rng, n, rank):
    A = rng.normal(size=(n, rank))
    return A @ A.T / n, rng.normal(size=n)


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 40),
    rank=st.integers(1, 40),
    room=st.floats(1.0, 50.0),
)
@settings(max_examples=80, deadline=None)
def test_random_problems_are_solved(seed, n, rank, room):
    Q, p = random_problem(np.random.default_rng(seed), n, rank)
    upper = min(1.0, room / n)
    result = cdsk.solve_qp(Q, p, upper, tol=1e-9, max_iter=1_000_000)
    assert_optimal(Q, p, upper, result, 1e-9)


@pytest.mark.parametrize("upper", [None, 0.2])
def test_agrees_with_slsqp(rng, upper):
    Q, p = random_problem(rng, 12, 20)
    bound = 1.0 if upper is None else upper
    result = cdsk.solve_qp(Q, p, upper, tol=1e-10)
    other = minimize(
        lambda x: p @ x + x @ Q @ x,
        np.full(12, 1 / 12),
        jac=lambda x: p + 2 * Q @ x,
        bounds=[(0, bound)] * 12,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert result.objective == pytest.approx(other.fun, abs=1e-9)
    np.testing.assert_allclose(result.x, other.x, atol=1e-5)


def test_agrees_with_reference_twin(rng):
    Q, p = random_problem(rng, 25, 40)
    x = reference.smo(Q, p, 0.1, 1e-9)
    np.testing.assert_allclose(cdsk.solve_qp(Q, p, 0.1, tol=1e-9).x, x, atol=1e-6)


@pytest.mark.parametrize("lam", [0.1, 0.3, 0.7])
def test_agrees_with_libsvm_on_a_weight_step(rng, lam):
    # min q'a + a'(n lam K o G)a is a one-class SVM: 2 Q + q1' + 1q' as its kernel,
    # weights scaled by n lam; libsvm minimises half of that quadratic form.
    n = 150
    X = np.concatenate([rng.normal(size=(75, 2)), rng.normal(size=(75, 2)) + 3])
    K = cdsk.gaussian_gram(X, 1.0)
    columns, _ = reference.embedding(K, np.full(n, 1 / n), n * lam, 2)
    Q, q = reference.weight_qp(K, columns, n * lam)
    H = 2 * Q + q[:, np.newaxis] + q
    # any multiple of 11' changes the objective by a constant, and makes H definite
    H += np.abs(H).max() * 10
    svm = OneClassSVM(kernel="precomputed", nu=lam, tol=1e-9).fit(H)
    a = np.zeros(n)
    a[svm.support_] = svm.dual_coef_[0] / (n * lam)
    result = cdsk.solve_qp(Q, q, 1 / (n * lam), tol=1e-9)
    ours, theirs = result.objective, q @ a + a @ Q @ a
    assert abs(ours - theirs) <= 1e-6 * abs(theirs)


def test_two_variables_by_hand():
    # x = (t, 1-t): t^2 + 3 (1-t)^2 is least at t = 3/4
    np.testing.assert_allclose(
        cdsk.solve_qp(np.diag([1.0, 3.0]), np.zeros(2)).x, [0.75, 0.25], atol=1e-12
    )
    # cut off at the box
    np.testing.assert_allclose(
        cdsk.solve_qp(np.diag([1.0, 3.0]), np.zeros(2), 0.6).x, [0.6, 0.4], atol=1e-12
    )


@pytest.mark.parametrize("upper", [1.0, 1e10, 1e20])
def test_a_large_bound_is_none(upper):
    result = cdsk.solve_qp(np.diag([1.0, 3.0]), np.zeros(2), upper)
    np.testing.assert_allclose(result.x, [0.75, 0.25], atol=1e-12)


def test_three_variables_by_hand():
    # gradient (2 x_i + p_i) equal on the support: x = (5/8, 3/8, 0)
    x = cdsk.solve_qp(np.eye(3), np.array([0.0, 0.5, 3.0])).x
    np.testing.assert_allclose(x, [0.625, 0.375, 0], atol=1e-9)
    assert x[2] == 0


def test_linear_problem_ends_in_a_vertex():
    result = cdsk.solve_qp(np.zeros((4, 4)), np.array([3.0, 1.0, 2.0, 4.0]))
    assert (result.x == [0, 1, 0, 0]).all()
    assert result.objective == 1


def test_a_vertex_has_one_point_of_support(rng):
    # both ends of a step are put on their bounds, no rest of rounding size stays
    Q, p = random_problem(rng, 40, 40)
    x = cdsk.solve_qp(1e-3 * Q, 100 * p).x
    assert np.count_nonzero(x) == 1
    assert x.max() == 1


def test_one_variable():
    result = cdsk.solve_qp([[2.0]], [1.0])
    assert (result.x == [1]).all()
    assert result.objective == 3


def test_bounds_that_pin_all(rng):
    Q, p = random_problem(rng, 8, 8)
    result = cdsk.solve_qp(Q, p, 1 / 8)
    np.testing.assert_allclose(result.x, 1 / 8, rtol=1e-15)
    assert result.gap == 0
    assert result.n_iter == 0


def test_equal_columns(rng):
    # duplicates: curvature 0 between the copies
    A = np.repeat(rng.normal(size=(10, 4)), 3, axis=0)
    Q, p = A @ A.T, np.repeat(rng.normal(size=10), 3)
    result = cdsk.solve_qp(Q, p, 0.2, tol=1e-9)
    assert_optimal(Q, p, 0.2, result, 1e-9)


def test_warm_start_finds_the_same_optimum_in_fewer_steps(rng):
    Q, p = random_problem(rng, 60, 80)
    cold = cdsk.solve_qp(Q, p, 0.05, tol=1e-9)
    warm = cdsk.solve_qp(Q, p, 0.05, x0=cold.x, tol=1e-9)
    assert warm.n_iter < cold.n_iter / 10
    assert warm.objective == pytest.approx(cold.objective, rel=1e-12)


def test_float32_matrix_is_solved_in_double(rng):
    Q, p = random_problem(rng, 50, 60)
    Q = Q.astype(np.float32)
    result = cdsk.solve_qp(Q, p, 0.1, tol=1e-10)
    assert_optimal(Q, p, 0.1, result, 1e-10)


def test_too_few_steps_are_reported_with_the_gap(rng):
    Q, p = random_problem(rng, 30, 30)
    with pytest.warns(ConvergenceWarning, match=r"max_iter.*KKT gap .* after 1 steps"):
        result = cdsk.solve_qp(Q, p, max_iter=1)
    assert result.status == "max_iter"
    assert result.n_iter == 1
    assert result.gap > 1e-8


def test_impossible_tolerance_ends(rng):
    Q, p = random_problem(rng, 30, 30)
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        result = cdsk.solve_qp(1e6 * Q, p, tol=0.0, upper=0.5, max_iter=100_000)
    assert 0 < result.gap < 1e-6


def test_objective_is_within_the_gap_of_the_minimum(rng):
    Q, p = random_problem(rng, 40, 40)
    rough, fine = (cdsk.solve_qp(Q, p, 0.1, tol=tol) for tol in (1e-2, 1e-11))
    assert fine.objective <= rough.objective <= fine.objective + rough.gap


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Q": np.ones((3, 2))}, r"Q must be a square matrix; got shape \(3, 2\)"),
        ({"Q": np.arange(9.0).reshape(3, 3)}, "Q must be symmetric"),
        ({"Q": np.full((3, 3), np.nan)}, "Q contains NaN"),
        ({"p": [1.0, 2.0]}, r"p must have shape \(3,\)"),
        ({"p": [1.0, np.inf, 2.0]}, "p must hold finite numbers; got NaN, infinity"),
        ({"p": ["a", "b", "c"]}, r"p must hold 3 numbers; got \['a'"),
        ({"p": None}, "p must hold finite numbers"),
        ({"upper": 0.3}, r"upper must be at least 1 / n = 0.333333"),
        ({"upper": -1}, "upper must be a number > 0; got -1"),
        ({"x0": [0.5, 0.5, 0.5]}, "x0 must sum to 1; got the sum 1.5"),
        ({"x0": [1.5, -0.5, 0.0]}, "x0 must lie between 0 and the upper bound 1"),
        ({"x0": [1.0]}, r"x0 must have shape \(3,\)"),
        ({"tol": -1.0}, "tol must be a number >= 0"),
        ({"max_iter": 1.5}, "max_iter must be an integer of at least 0; got 1.5"),
    ],
)
def test_bad_input_is_refused(change, message):
    arguments = {"Q": np.eye(3), "p": np.zeros(3)} | change
    with pytest.raises(ValueError, match=message):
        cdsk.solve_qp(**arguments)


def test_kkt_gap_by_hand():
    x, g = np.array([0.0, 0.5, 0.5]), np.array([1.0, 3.0, 2.0])
    assert _smo.kkt_gap(x, g, 1.0) == 2.0
    assert _smo.kkt_gap(x, g, 0.5) == 2.0
    assert _smo.kkt_gap(np.array([0.5, 0.5]), np.array([1.0, 2.0]), 0.5) == 0.0


def test_interrupt_ends_a_long_solve(rng, interrupt_after):
    # a problem so ill-conditioned that this tolerance takes millions of steps
    Q = cdsk.gaussian_gram(rng.normal(size=(2000, 2)), 5.0)
    p = -Q @ rng.uniform(size=2000) / 500
    began = time.perf_counter()
    with pytest.raises(KeyboardInterrupt), interrupt_after(0.5):
        cdsk.solve_qp(Q, p, 1 / 500, tol=1e-15, max_iter=2 * 10**7)
    assert time.perf_counter() - began < 10


@pytest.mark.parametrize("slots", [0, 1, 2, 3, 50])
def test_cached_rows_change_nothing(rng, slots):
    Q, p = random_problem(rng, 50, 30)
    p = 0.1 * p
    # float32: rows that are made, not found
    rows = StoredRows(Q.astype(np.float32))
    found = []
    for source in (rows, CachedRows(rows, slots * 8 * 50)):
        x = np.full(50, 1 / 50)
        g = p + 2 * Q @ x
        status, gap, n_iter = _smo.solve(source, x, g, 0.1, 1e-12, 10_000)
        assert n_iter > 50  # rows are asked for again and again
        found.append((x.tobytes(), g.tobytes(), status, gap, n_iter))
    assert found[0] == found[1]
    np.testing.assert_array_equal(source.diagonal, rows.diagonal)
    for i in (3, 5, 4, 3, 3):
        np.testing.assert_array_equal(source.row_array(i), rows.row_array(i))


def test_rows_in_memory_need_no_cache(rng):
    Q, _ = random_problem(rng, 20, 20)
    cached = CachedRows(StoredRows(Q), 10_000)
    np.testing.assert_array_equal(cached.row_array(7), Q[7])
    np.testing.assert_array_equal(cached.row_array(7), Q[7])


def test_start_at_a_vertex_saves_steps(rng):
    # a nearly linear problem: the best vertex is all but the solution
    n = 200
    Q, p = 1e-3 * np.eye(n), rng.normal(size=n)
    uniform = np.full(n, 1 / n)
    slow = cdsk.solve_qp(Q, p, 0.05, x0=uniform)
    fast = cdsk.solve_qp(Q, p, 0.05)
    assert fast.n_iter < slow.n_iter / 10
    np.testing.assert_allclose(fast.x, slow.x, atol=1e-6)
