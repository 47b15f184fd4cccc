"""The QP without rows, against SMO, the KKT conditions and the definitions."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import cdsk
import reference
from cdsk import _qp as _weights
from cdsk import _smo
from cdsk._operators.dense import DenseKernel
from cdsk._qp import SimplexQP, WeightProblem, choose_working_set, solve_blocks


class WithoutRows(DenseKernel):
    """A kernel matrix that offers submatrices and no rows."""

    def weight_rows(self, vectors, scale):
        return None

    def submatrix(self, points):
        return self.K[np.ix_(points, points)].astype(float)


def quadratic(rng, n, rank):
    factor = rng.normal(size=(n, rank))
    return factor @ factor.T / rank + 1e-3 * np.eye(n), rng.normal(size=n)


def solve(Q, p, x, upper, tol, size, max_iter=1000):
    values = []

    def product(x):
        values.append(p @ x + x @ Q @ x)
        return Q @ x

    def block(chosen):
        return np.ascontiguousarray(Q[np.ix_(chosen, chosen)])

    qp = SimplexQP(p, product, upper)
    return solve_blocks(qp, block, size, x, qp.gradient(x), tol, max_iter), values


@pytest.mark.parametrize("upper", [1.0, 0.02, 1 / 150])
@pytest.mark.parametrize("size", [4, 30, 400])
def test_solution_equals_that_of_smo(rng, upper, size):
    Q, p = quadratic(rng, 150, 20)
    x = np.full(150, 1 / 150)
    found, values = solve(Q, p, x, upper, 1e-7, size)
    assert found.status == "converged"
    assert found.x is x
    assert found.gap == pytest.approx(
        max(reference.kkt_gap(Q, p, x, upper), 0), abs=1e-12
    )
    assert found.gap <= 1e-7
    assert found.objective == pytest.approx(values[-1], abs=1e-12)
    assert ((x >= 0) & (x <= upper)).all()
    assert x.sum() == pytest.approx(1, abs=1e-12)
    best = cdsk.solve_qp(Q, p, upper, tol=1e-9).objective
    assert values[-1] == pytest.approx(best, abs=1e-7)
    assert len(values) == found.n_iter + 1
    assert (np.diff(values) <= 1e-12).all()
    if size == 400:
        assert found.n_iter <= 1  # all of it


@pytest.mark.parametrize("size", [4, 7, 20, 99])
def test_working_set_has_the_worst_pair_and_free_coordinates(rng, size):
    x = rng.choice([0.0, 0.5, 1.0], size=50)
    gradient = rng.normal(size=50)
    chosen = choose_working_set(x, gradient, 1.0, size)
    assert (np.diff(chosen) > 0).all()
    assert len(chosen) <= size
    assert np.flatnonzero(x < 1)[np.argmin(gradient[x < 1])] in chosen
    assert np.flatnonzero(x > 0)[np.argmax(gradient[x > 0])] in chosen
    free = np.flatnonzero((x > 0) & (x < 1))
    assert size <= len(chosen) or np.isin(free, chosen).all()


def test_status_of_an_early_end(rng):
    Q, p = quadratic(rng, 80, 10)
    x = np.full(80, 1 / 80)
    found, _ = solve(Q, p, x, 0.1, 1e-9, 4, max_iter=2)
    assert (found.n_iter, found.status) == (2, "max_iter")
    assert found.gap == pytest.approx(_smo.kkt_gap(x, p + 2 * Q @ x, 0.1))
    x = np.full(80, 1 / 80)
    found, _ = solve(Q, p, x, 0.1, 0.0, 80)
    assert found.status in ("converged", "stalled")


def problem(rng, kind, n=400, lam=0.2, bandwidth=1.0):
    X = np.concatenate([rng.normal(size=(n // 2, 3)), rng.normal(size=(n // 2, 3)) + 2])
    K = cdsk.gaussian_gram(X, bandwidth)
    columns, _ = reference.embedding(K, np.full(n, 1 / n), lam * n, 3)
    columns = np.ascontiguousarray(columns)
    return WeightProblem(kind(K, 2), columns, lam * n), K, columns


@pytest.mark.parametrize("bandwidth", [0.3, 1.0, 3.0])
def test_weight_step_equals_that_with_rows(rng, monkeypatch, bandwidth):
    monkeypatch.setattr(_weights, "_MIN_BLOCK", 50)
    seed = rng.integers(2**31)
    start = np.full(400, 1 / 400)
    problems = [
        problem(np.random.default_rng(seed), kind, bandwidth=bandwidth)
        for kind in (DenseKernel, WithoutRows)
    ]
    (by_rows, K, columns), (by_blocks, _, _) = problems
    found, expected = by_blocks.solve(start, 1e-6), by_rows.solve(start, 1e-6)
    assert found.gap <= 1e-6
    Q, q = reference.weight_qp(K, columns, 80.0)
    assert reference.kkt_gap(Q, q, found.x, 1 / 80) <= 1.01e-6 * by_rows.scale
    assert by_blocks.objective(found.x) == pytest.approx(
        by_rows.objective(expected.x), abs=1e-6 * by_rows.scale
    )


def test_too_few_blocks_warn_with_figures(rng, monkeypatch):
    monkeypatch.setattr(_weights, "_MAX_BLOCKS", 1)
    monkeypatch.setattr(_weights, "_MIN_BLOCK", 4)
    monkeypatch.setattr(_weights, "_MAX_BLOCK", 4)
    weights_problem, _, _ = problem(rng, WithoutRows)
    with pytest.warns(ConvergenceWarning, match="weight step .* KKT gap .* after 1 "):
        weights_problem.solve(np.full(400, 1 / 400), 1e-6)


def test_interrupt_within_a_block(rng, check_interruptible):
    Q, p = quadratic(rng, 1000, 200)
    check_interruptible(
        lambda: solve(Q, p, np.full(1000, 1 / 1000), 1 / 350, 1e-12, 1000)
    )
