import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import cdsk
import reference
from cdsk import _qp as _weights
from cdsk._operators.dense import DenseKernel
from cdsk._qp import SimplexQP, WeightProblem, choose_start


def problem(rng, dtype=np.float64, n=120, lam=0.3):
    X = np.concatenate([rng.normal(size=(n // 2, 3)), rng.normal(size=(n // 2, 3)) + 2])
    K = cdsk.gaussian_gram(X.astype(dtype), 1.0)
    columns, _ = reference.embedding(K, np.full(n, 1 / n), lam * n, 3)
    columns = np.ascontiguousarray(columns)
    Q, q = reference.weight_qp(K, columns, lam * n)
    return WeightProblem(DenseKernel(K, 2), columns, lam * n), Q, q


def test_objective_and_gradient_equal_reference(rng, dtype):
    weights_problem, Q, q = problem(rng, dtype)
    alpha = rng.uniform(size=len(q))
    alpha /= alpha.sum()
    np.testing.assert_allclose(weights_problem.q, q, atol=1e-11)
    assert weights_problem.objective(alpha) == pytest.approx(
        q @ alpha + alpha @ Q @ alpha
    )
    np.testing.assert_allclose(
        weights_problem.q + 2 * weights_problem.product(alpha),
        q + 2 * Q @ alpha,
        atol=1e-11,
    )


def test_uniform_weights_need_no_product(rng, dtype):
    weights_problem, Q, q = problem(rng, dtype)
    alpha = np.full(len(q), 1 / len(q))
    assert weights_problem.objective(alpha) == pytest.approx(
        q @ alpha + alpha @ Q @ alpha
    )
    np.testing.assert_allclose(
        weights_problem.q + 2 * weights_problem.product(alpha),
        q + 2 * Q @ alpha,
        atol=1e-11,
    )


@pytest.mark.parametrize("lam", [0.1, 1 / 3, 0.99, 1.0])
def test_start_is_feasible_and_no_worse(rng, lam):
    weights_problem, Q, q = problem(rng, lam=lam)
    n = len(q)
    upper = 1 / (n * lam)
    for alpha in (
        np.full(n, 1 / n),
        weights_problem.solve(np.full(n, 1 / n), 1e-9).x,
    ):
        qp = SimplexQP(q, weights_problem.product, upper)
        start, gradient = choose_start(qp, alpha)
        assert start.sum() == pytest.approx(1, abs=1e-12)
        assert ((start >= 0) & (start <= upper)).all()
        assert q @ start + start @ Q @ start <= q @ alpha + alpha @ Q @ alpha + 1e-9
        np.testing.assert_allclose(gradient, q + 2 * Q @ start, atol=1e-11)


@pytest.mark.parametrize("lam", [0.1, 0.3, 1.0])
def test_solution_is_optimal(rng, dtype, lam):
    weights_problem, Q, q = problem(rng, dtype, lam=lam)
    n = len(q)
    solution = weights_problem.solve(np.full(n, 1 / n), 1e-6)
    upper = 1 / (n * lam)
    assert solution.gap <= 1e-6
    scale = np.abs(q).max()
    assert reference.kkt_gap(Q, q, solution.x, upper) <= 1.01e-6 * scale
    assert abs(solution.x.sum() - 1) < 1e-12
    assert ((solution.x >= 0) & (solution.x <= upper)).all()
    # at least a fraction lam of the points carries weight
    assert np.count_nonzero(solution.x) >= lam * n * (1 - 1e-12)


def test_the_qp_is_convex(rng):
    _, Q, _ = problem(rng)
    assert np.linalg.eigvalsh(Q).min() > -1e-12 * np.abs(Q).max()


def test_uniform_weights_are_stationary_at_one_half(rng):
    # With G = 1 (one cluster) q = -K1, and at lam = 1/2 the gradient -K1 + 2 (n/2) K1/n
    # vanishes: uniform weights are optimal.
    K = cdsk.gaussian_gram(rng.normal(size=(50, 2)), 1.0)
    weights_problem = WeightProblem(DenseKernel(K, 1), np.ones((1, 50)), 25.0)
    np.testing.assert_allclose(
        weights_problem.q + 2 * weights_problem.product(np.full(50, 1 / 50)),
        0,
        atol=1e-12,
    )


def test_too_few_steps_warn_with_figures(rng, monkeypatch):
    monkeypatch.setattr(_weights, "_STEPS_PER_POINT", 1)
    weights_problem, _, q = problem(rng)
    with pytest.warns(
        ConvergenceWarning, match=r"weight step .* KKT gap .* after 120 "
    ):
        weights_problem.solve(np.full(len(q), 1 / len(q)), 1e-6)
