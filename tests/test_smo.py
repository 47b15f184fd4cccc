"""The QP solver: KKT conditions, independent solvers, degenerate problems."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import OneClassSVM

import cdsk
import reference
from cdsk import _smo
from cdsk._rows import CachedRows, SparseRows, StoredRows, asymmetry


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
@settings(max_examples=80)
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
    # weights scaled by n lam; libsvm minimizes half of that quadratic form.
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
        ({"Q": sparse.eye_array(3, 2)}, r"Q must be a square matrix; got .*\(3, 2\)"),
        ({"Q": sparse.csr_array((0, 0))}, r"Q must have at least one row; .*\(0, 0\)"),
        (
            {"Q": sparse.csr_array(np.arange(9.0).reshape(3, 3))},
            r"Q must be symmetric; got 2.0 at \(0, 2\) and 6.0 at \(2, 0\)",
        ),
        ({"Q": np.nan * sparse.eye_array(3)}, "Q must hold finite numbers; got NaN"),
        ({"Q": 1j * sparse.eye_array(3)}, "Q must hold real numbers; .* complex128"),
        ({"p": [1.0, 2.0]}, r"p must have shape \(3,\)"),
        ({"p": [1.0, np.inf, 2.0]}, "p must hold finite numbers; got NaN, infinity"),
        ({"p": ["a", "b", "c"]}, r"p must hold 3 numbers; got 'a' at row 0"),
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


# ---------------------------------------------------------------- sparse rows


def sparse_problem(rng, n, n_entries, diagonal):
    """Q without its diagonal, the diagonal (dominant), and p."""
    i, j = rng.integers(0, n, size=(2, n_entries))
    values = rng.normal(size=n_entries)
    A = sparse.coo_array((values[i != j], (i[i != j], j[i != j])), shape=(n, n))
    # pairs that come twice are summed first: else Q would not be exactly symmetric
    A = A.tocsr()
    A = sparse.csr_array(A + A.T)
    sums = abs(A).sum(axis=1)
    diagonals = {
        "constant": np.full(n, sums.max() + 0.1),
        "general": sums + rng.uniform(size=n),
        "of all sizes": sums + 10.0 ** rng.uniform(-3, 3, size=n),
    }
    return A, diagonals[diagonal], rng.normal(size=n)


def sparse_rows(A, diagonal):
    return SparseRows(A.indptr, A.indices, A.data, diagonal)


def both_paths(A, diagonal, p, upper, tol=1e-9, max_iter=100_000, x0=None):
    """The result of SMO with rows in memory, and with sparse ones."""
    Q = A.toarray() + np.diag(diagonal)
    for rows in (StoredRows(Q), sparse_rows(A, diagonal)):
        x = np.full(len(p), 1 / len(p)) if x0 is None else x0.copy()
        g = p + 2 * Q @ x
        yield *_smo.solve(rows, x, g, upper, tol, max_iter), x, g


def assert_same(found, expected):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 300),
    per_row=st.floats(0, 20),
    room=st.floats(1.0, 50.0),
    diagonal=st.sampled_from(["constant", "general", "of all sizes"]),
    ties=st.booleans(),
)
@example(seed=393, n=87, per_row=12.6015625, room=3.0, diagonal="constant", ties=True)
@settings(max_examples=80)
def test_sparse_rows_take_the_same_steps(seed, n, per_row, room, diagonal, ties):
    rng = np.random.default_rng(seed)
    A, d, p = sparse_problem(rng, n, int(per_row * n), diagonal)
    p = np.round(p) if ties else p
    dense, found = both_paths(A, d, p, min(1.0, room / n))
    # to the bit: status, gap, number of steps, weights and gradient
    assert_same(found, dense)
    Q = A.toarray() + np.diag(d)
    assert (
        reference.kkt_gap(Q, p, found[3], min(1.0, room / n)) <= 1e-9 + 1e-12 * d.max()
    )


def test_every_single_step_is_the_same(rng):
    A, d, p = sparse_problem(rng, 60, 200, "general")
    for steps in range(40):
        dense, found = both_paths(A, d, p, 0.05, max_iter=steps)
        assert found[0] == _smo.Status.MAX_ITER
        assert found[2] == steps
        assert_same(found, dense)


@pytest.mark.parametrize("n", [1, 31, 32, 33, 1024, 1025, 33_000])
def test_sizes_around_those_of_the_tree(rng, n):
    # a chain; dense rows of the largest would take 9 GB
    off = np.full(max(n - 1, 0), -0.4)
    A = sparse.csr_array(sparse.diags_array([off, off], offsets=[-1, 1], shape=(n, n)))
    d, p = np.ones(n), rng.normal(size=n)
    upper = min(1.0, 3 / n)
    x = np.full(n, 1 / n)
    g = p + 2 * (A @ x + x)
    tol = 1e-6
    status, gap, _ = _smo.solve(sparse_rows(A, d), x, g, upper, tol, 100 * n)
    assert status == _smo.Status.CONVERGED
    assert gap <= tol
    np.testing.assert_allclose(g, p + 2 * (A @ x + x), atol=1e-12)
    assert _smo.kkt_gap(x, g, upper) == gap
    assert abs(x.sum() - 1) < 1e-10
    if n <= 1025:
        assert_same(*both_paths(A, d, p, upper))


@pytest.mark.parametrize("case", ["no entries", "all equal", "two copies", "full"])
def test_degenerate_sparse_rows(rng, case):
    n = 70
    A, d, p = sparse_problem(rng, n, 0 if case == "no entries" else 300, "constant")
    if case == "all equal":
        A, d, p = sparse.csr_array((n, n)), np.ones(n), np.zeros(n)
    if case == "two copies":  # curvature 0 within a pair
        A, d, p = sparse_problem(rng, n // 2, 100, "constant")
        Q = np.kron(A.toarray() + np.diag(d), np.ones((2, 2)))
        d, p = np.diag(Q).copy(), np.repeat(p, 2)
        A = sparse.csr_array(Q - np.diag(d))
    if case == "full":  # more entries than are updated together
        B = rng.normal(size=(n, n))
        d = np.diag(B @ B.T).copy()
        A = sparse.csr_array(B @ B.T - np.diag(d))
    x0 = np.zeros(n)
    x0[:10] = 0.1
    for start in (None, x0):
        dense, found = both_paths(A, d, p, 0.1, x0=start)
        assert found[0] == _smo.Status.CONVERGED
        assert_same(found, dense)


def test_sparse_rows_in_another_order_have_the_same_optimum(rng):
    A, d, p = sparse_problem(rng, 200, 1000, "general")
    order = rng.permutation(200)
    Q = sparse.csr_array(A + sparse.diags_array(d))
    plain = cdsk.solve_qp(Q, p, 0.02, tol=1e-11)
    shuffled = cdsk.solve_qp(Q[order][:, order], p[order], 0.02, tol=1e-11)
    np.testing.assert_allclose(shuffled.x, plain.x[order], atol=1e-8)


def test_no_number_in_sparse_rows_ends_the_solve(rng):
    A, d, g = sparse_problem(rng, 60, 200, "constant")
    A.data[::5] = np.nan
    _smo.solve(sparse_rows(A, d), np.full(60, 1 / 60), g, 0.1, 1e-9, 10_000)
    assert np.isnan(g).any()


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_indices_of_either_size(rng, dtype):
    A, d, p = sparse_problem(rng, 80, 300, "constant")
    rows = SparseRows(A.indptr.astype(dtype), A.indices.astype(dtype), A.data, d)
    x, g = np.full(80, 1 / 80), p + 2 * (A.sum(axis=1) + d) / 80
    found = *_smo.solve(rows, x, g.copy(), 0.1, 1e-9, 10_000), x
    x = np.full(80, 1 / 80)
    assert_same(found, (*_smo.solve(sparse_rows(A, d), x, g, 0.1, 1e-9, 10_000), x))


@pytest.mark.parametrize(
    ("starts", "columns"),
    [
        ([0, 1, 2], [1, 2]),
        ([0, 1, 2], [1, -1]),
        ([0, 1, 2], [0, 0]),
        ([0, 2, 2], [1, 1]),
    ],
)
def test_what_is_no_csr_matrix_is_refused(starts, columns):
    rows = SparseRows(np.array(starts), np.array(columns), np.ones(2), np.ones(2))
    with pytest.raises(ValueError, match="columns of a sparse matrix must ascend in"):
        _smo.solve(rows, np.full(2, 0.5), np.zeros(2), 1.0, 1e-9, 10)


def test_arrays_of_a_sparse_matrix_must_fit_together():
    with pytest.raises(ValueError, match=r"must have 3 starts, .* got 2 starts, 1 col"):
        SparseRows(np.array([0, 1]), np.array([1]), np.ones(1), np.ones(2))


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_values_of_the_weight_step_equal_reference(rng, n_threads):
    A, d, _ = sparse_problem(rng, 400, 3000, "general")
    Y = rng.normal(size=(7, 400))
    rows = sparse_rows(A, d).hadamard(Y, 2.5, n_threads)
    expected = 2.5 * (A.toarray() + np.diag(d)) * (Y.T @ Y)
    found = np.stack([rows.row_array(i) for i in range(400)])
    np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_allclose(rows.diagonal, np.diag(expected), rtol=1e-13)
    one = sparse_rows(A, d).hadamard(Y, 2.5, 1)
    np.testing.assert_array_equal(found[5], one.row_array(5))


@pytest.mark.parametrize(
    "kind", [sparse.csr_array, sparse.coo_array, sparse.csc_matrix]
)
def test_solve_qp_takes_sparse_matrices(rng, kind):
    A, d, p = sparse_problem(rng, 90, 400, "general")
    Q = A.toarray() + np.diag(d)
    result = cdsk.solve_qp(kind(Q), p, 0.1, tol=1e-10)
    assert_optimal(Q, p, 0.1, result, 1e-10)
    dense = cdsk.solve_qp(Q, p, 0.1, tol=1e-10)
    assert result.n_iter == dense.n_iter
    np.testing.assert_allclose(result.x, dense.x, atol=1e-14)


def test_sparse_matrix_of_the_user_is_left_as_it_is():
    # an entry in two parts, an empty row
    Q = sparse.csr_array(
        (
            np.array([1.0, 0.5, 0.5, 1.0]),
            np.array([0, 1, 1, 0]),
            np.array([0, 3, 4, 4]),
        ),
        shape=(3, 3),
    )
    before = Q.data.copy(), Q.indices.copy(), Q.indptr.copy()
    result = cdsk.solve_qp(Q, np.array([0.0, 1.0, 5.0]))
    dense = cdsk.solve_qp(
        [[1.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]], [0, 1, 5]
    )
    np.testing.assert_array_equal(result.x, dense.x)
    assert_same((Q.data, Q.indices, Q.indptr), before)


# ---------------------------------------------------------------- symmetry


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 200])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_asymmetry_equals_its_definition(rng, dtype, n, n_threads):
    M = rng.normal(size=(n, n)).astype(dtype)
    wide = M.astype(np.float64)
    expected = np.abs(wide).max(), np.abs(wide - wide.T).max()
    assert asymmetry(M, n_threads) == expected
    M += M.T.copy()
    assert asymmetry(M, n_threads) == (np.abs(M).max(), 0.0)
    for place in [(0, 0), (n - 1, 0), (0, n - 1), (n // 2, n // 3)]:
        for value in (np.nan, np.inf, -np.inf):
            other = M.copy()
            other[place] = value
            assert asymmetry(other, n_threads)[0] == np.inf
