"""Truncated kernels: against the definition, and the dense code with the same K."""

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import subspace_angles
from sklearn.datasets import make_blobs, make_circles

import cdsk
import reference
from cdsk import _multilevel as banded
from cdsk import _smo
from cdsk._eigensolvers import TOLERANCE
from cdsk._neighbors import Neighbors
from cdsk._operators.dense import DenseKernel, DenseSimilarity
from cdsk._operators.sparse import NeighborGraph, SparseKernel
from cdsk._qp import WeightProblem
from cdsk._rows import SparseRows
from cdsk._spectral import spectral_step


def truncated(X, k, bandwidth=None, factor=0.5):
    graph = NeighborGraph(Neighbors(X, k))
    if bandwidth is None:
        bandwidth = factor * graph.neighbors.scales
    return graph.kernel(bandwidth, 2)


def rng_state():
    return np.random.RandomState(0)


def cases():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3))
    return {
        "general": (X, 6),
        "all pairs": (X, 59),
        "more than all pairs": (X, 500),
        "one neighbor": (X, 1),
        "one feature": (X[:, :1].copy(), 6),
        "many features": (rng.normal(size=(60, 33)), 6),
        "duplicates": (np.repeat(X[:20], 3, axis=0), 6),
        "ties": (rng.integers(0, 4, size=(60, 3)).astype(float), 7),
        "far from the origin": (X + 1e6, 6),
        "float32": (X.astype(np.float32), 6),
        "two points": (X[:2], 6),
        "three points": (X[:3], 1),
        "small numbers": (1e-30 * X, 6),
    }


CASES = cases()


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


@pytest.mark.parametrize("local", [True, False])
def test_truncated_kernel_equals_reference(case, local):
    X, k = case
    graph = NeighborGraph(Neighbors(X, k))
    scales = 0.5 * graph.neighbors.scales
    bandwidth = scales if local else float(scales.mean())
    kernel = graph.kernel(bandwidth, 1)
    expected = reference.truncated_gram(X, bandwidth, graph.neighbors.indices)
    found = kernel.matrix.toarray()
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-300)
    assert (found == found.T).all()
    assert (np.diag(found) == 0).all()


def test_indicator_is_one_for_neighbors(case):
    X, k = case
    graph = NeighborGraph(Neighbors(X, k))
    near = reference.truncated_gram(X, np.inf, graph.neighbors.indices)
    assert (graph.kernel(np.inf, 1).matrix.toarray() == near).all()


@pytest.mark.parametrize("factor", [0.2, 1.0, 10.0])
def test_kernel_is_semi_definite_with_its_diagonal(case, factor):
    X, k = case
    kernel = truncated(X, k, factor=factor)
    K = kernel.as_array()
    assert (kernel.diagonal >= 1).all()
    assert (kernel.diagonal == kernel.diagonal[0]).all()
    # 1e-13: rounding of the dense eigenvalues
    assert np.linalg.eigvalsh(K)[0] >= -1e-13 * len(K) * kernel.diagonal[0]


@pytest.mark.parametrize("seed", range(5))
def test_diagonal_is_raised_no_more_than_needed(seed):
    X = np.random.default_rng(seed).normal(size=(400, 4))
    kernel = truncated(X, 8, factor=3.0)
    smallest = np.linalg.eigvalsh(kernel.matrix.toarray())[0]
    assert smallest < -1.2
    # found to 1e-3 of the largest row sum, and raised by as much more
    excess = kernel.diagonal[0] + smallest
    assert 0 <= excess <= 2e-3 * kernel.row_sums.max()


def test_diagonal_of_a_dominant_kernel_is_one():
    kernel = truncated(CASES["general"][0], 6, factor=0.1)
    assert kernel.row_sums.max() < 1
    assert (kernel.diagonal == 1).all()


@pytest.mark.parametrize("local", [True, False])
def test_all_neighbors_give_the_full_kernel(rng, local):
    X = rng.normal(size=(50, 3))
    bandwidth = rng.uniform(0.5, 1.0, size=50) if local else 0.8
    kernel = truncated(X, 49, bandwidth)
    expected = cdsk.gaussian_gram(X, bandwidth)
    np.testing.assert_allclose(
        kernel.as_array() - np.diag(kernel.diagonal), expected - np.eye(50), atol=1e-14
    )
    if not local:  # semi-definite as it is, and 1 up to what is added for safety
        np.testing.assert_allclose(
            kernel.diagonal, 1, atol=2e-3 * kernel.row_sums.max()
        )


def test_order_of_points_changes_nothing(rng):
    X = rng.normal(size=(70, 3))
    order = rng.permutation(70)
    K = truncated(X, 5).matrix.toarray()
    found = truncated(X[order], 5).matrix.toarray()
    np.testing.assert_allclose(found, K[np.ix_(order, order)], rtol=1e-12)


@pytest.mark.parametrize("density", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("n", [1, 2, 9, 40])
def test_sparse_rows_equal_reference(rng, n, density):
    dense = np.where(rng.uniform(size=(n, n)) < density, rng.normal(size=(n, n)), 0)
    np.fill_diagonal(dense, 0)
    matrix = sparse.csr_array(dense)
    arrays = (
        matrix.indptr.astype(np.intp),
        matrix.indices.astype(np.intp),
        matrix.data.astype(float),
        rng.normal(size=n),
    )
    rows = SparseRows(*arrays)
    assert rows.n == n
    assert (rows.diagonal == arrays[3]).all()
    for i in [*range(n), 0]:  # the scratch of one row leaves nothing in the next
        assert (rows.row_array(i) == reference.sparse_row(*arrays, i)).all()
        assert (rows.row_array(i) == (dense + np.diag(arrays[3]))[i]).all()
    for i in (-1, n):
        with pytest.raises(
            IndexError, match=f"Row {i} is out of range for a matrix of {n} rows"
        ):
            rows.row_array(i)


def test_sparse_rows_outlive_their_arrays():
    def make():
        diagonal = np.arange(1000.0)
        none = np.empty(0)
        return SparseRows(np.zeros(1001, np.intp), none.astype(np.intp), none, diagonal)

    rows = make()
    np.ones((50, 1000))  # what a freed array would be overwritten with
    assert rows.row_array(7)[7] == 7.0


def test_kernel_members_equal_those_of_the_dense_one(case, rng):
    kernel = truncated(*case, factor=2.0)
    K = kernel.as_array()
    dense = DenseKernel(K, 1)
    vectors = rng.normal(size=(3, kernel.n))
    np.testing.assert_allclose(
        kernel.product(vectors), dense.product(vectors), atol=1e-12
    )
    assert kernel.product(vectors).flags.c_contiguous
    np.testing.assert_allclose(kernel.row_sums, dense.row_sums, rtol=1e-12)
    np.testing.assert_array_equal(kernel.diagonal, dense.diagonal)
    for i in (0, kernel.n - 1):
        np.testing.assert_array_equal(kernel.row(i), K[i])
    assert kernel.n_negative == 0


@pytest.mark.parametrize("n_threads", [1, 3])
def test_weight_rows_equal_those_of_the_dense_kernel(case, rng, n_threads):
    kernel = truncated(*case, factor=2.0)
    kernel.n_threads = n_threads
    vectors = rng.normal(size=(3, kernel.n))
    dense = DenseKernel(kernel.as_array(), 1).weight_rows(vectors, 7.0)
    found = kernel.weight_rows(vectors, 7.0)
    assert isinstance(found, SparseRows)  # not made row by row
    for i in range(kernel.n):
        np.testing.assert_allclose(
            found.row_array(i), dense.row_array(i), rtol=1e-12, atol=1e-12
        )
    np.testing.assert_allclose(found.diagonal, dense.diagonal, rtol=1e-14)


def test_weight_step_equals_that_of_the_dense_kernel(case):
    kernel = truncated(*case)
    n = kernel.n
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(2, n))
    vectors /= np.linalg.norm(vectors, axis=0)
    sparse_one, dense_one = (
        WeightProblem(k, vectors, 0.3 * n)
        for k in (kernel, DenseKernel(kernel.as_array(), 1))
    )
    found = sparse_one.solve(np.full(n, 1 / n), 1e-6)
    expected = dense_one.solve(np.full(n, 1 / n), 1e-6)
    assert found.gap <= 1e-6
    value, other = (dense_one.objective(w.x) for w in (found, expected))
    assert abs(value - other) <= 2e-6 * dense_one.scale


def both(kernel, weights, penalty):
    """The same similarity from the sparse and from the dense code."""
    K = kernel.as_array()
    dense = DenseKernel(K, 1, points=kernel.points)
    return (
        kernel.similarity(weights, penalty),
        DenseSimilarity(dense, weights, penalty),
        K,
    )


def some_weights(rng, n, penalty, zeros):
    weights = rng.uniform(0.5, 1.0, size=n) * (rng.uniform(size=n) >= zeros)
    weights /= weights.sum()
    assert weights.max() <= 1 / penalty
    return weights


@pytest.mark.parametrize("zeros", [0.0, 0.7])
def test_similarity_equals_the_dense_one(case, rng, zeros):
    X, k = case
    n = len(X)
    # weights of a few points lie below 1 / penalty only for a small one
    penalty = 0.2 * n if n > 10 else 0.5
    weights = some_weights(rng, n, penalty, zeros if n > 10 else 0.0)
    found, expected, K = both(truncated(X, k), weights, penalty)
    np.testing.assert_allclose(found.degrees, expected.degrees, rtol=1e-12, atol=1e-300)
    assert (found.isolated == expected.isolated).all()
    vectors = rng.normal(size=(4, n))
    np.testing.assert_allclose(
        found.normalized_product(vectors),
        expected.normalized_product(vectors),
        atol=1e-12,
    )
    count, label = found.components()
    expected_count, expected_label = expected.components()
    assert count == expected_count
    # the same partition: as many pairs of labels as labels
    assert len(set(zip(label, expected_label, strict=True))) == count
    if not found.isolated.any():
        A = reference.normalized(K, weights, penalty)
        np.testing.assert_allclose(
            found.normalized_product(np.eye(n)), A, rtol=1e-11, atol=1e-13
        )


def test_weights_at_the_upper_bound_leave_no_negative_similarity(rng):
    kernel = truncated(rng.normal(size=(60, 2)), 6)
    penalty = 0.3 * 60
    weights = np.zeros(60)
    weights[:18] = 1 / penalty
    S = kernel.similarity(weights, penalty).matrix
    assert (S.data >= 0).all()
    expected, _ = reference.similarity(kernel.matrix.toarray(), weights, penalty)
    np.testing.assert_allclose(S.toarray(), expected, atol=1e-15)


def test_factorization_solves_the_shifted_system(rng):
    kernel = truncated(rng.normal(size=(80, 2)), 6)
    weights = np.full(80, 1 / 80)
    similarity = kernel.similarity(weights, 16.0)
    A = similarity.normalized_product(np.eye(80))
    rows = rng.normal(size=(3, 80))
    solved = similarity.factorize(1e-3)(rows)
    np.testing.assert_allclose(solved @ (1.001 * np.eye(80) - A), rows, atol=1e-10)


def eigenvectors(found, degrees):
    """Orthonormal vectors D^1/2 Y from the unit rows and their lengths."""
    return (found.vectors * found.lengths * np.sqrt(degrees)).T


SPECTRA = {
    # islands, number of clusters
    "connected": ([0.0], 3),
    "as many islands as clusters": ([0.0, 1e3, 2e3], 3),
    "fewer islands than clusters": ([0.0, 1e3], 5),
    "more islands than clusters": ([0.0, 1e3, 2e3, 3e3], 2),
}


@pytest.mark.parametrize("zeros", [0.0, 0.5])
@pytest.mark.parametrize("size", [15, 150])  # solved densely, and by the inverse
@pytest.mark.parametrize("spectrum", SPECTRA)
def test_spectral_step_equals_the_dense_one(rng, spectrum, size, zeros):
    shifts, n_clusters = SPECTRA[spectrum]
    X = np.concatenate([rng.normal(size=(size, 2)) + shift for shift in shifts])
    n = len(X)
    weights = some_weights(rng, n, 0.2 * n, zeros)
    sparse_one, dense_one, _ = both(truncated(X, 8), weights, 0.2 * n)
    found = spectral_step(sparse_one, n_clusters, rng_state())
    expected = spectral_step(dense_one, n_clusters, rng_state())
    assert found.residual <= TOLERANCE
    # residuals r bound eigenvalues to r^2 / gap
    np.testing.assert_allclose(found.eigenvalues, expected.eigenvalues, atol=1e-9)
    assert ((found.component < 0) == (expected.component < 0)).all()
    used = found.component >= 0
    ours, theirs = (
        eigenvectors(e, s.degrees)[used]
        for e, s in ((found, sparse_one), (expected, dense_one))
    )
    np.testing.assert_allclose(ours.T @ ours, np.eye(n_clusters), atol=1e-9)
    assert subspace_angles(ours, theirs).max() < 1e-4
    np.testing.assert_allclose(np.linalg.norm(found.vectors, axis=0), 1, rtol=1e-12)
    # G does not depend on the basis
    np.testing.assert_allclose(
        found.vectors.T @ found.vectors,
        expected.vectors.T @ expected.vectors,
        atol=1e-3,
    )


def test_points_without_similarity_take_the_row_of_their_nearest(rng):
    # the last two underflow: their nearest neighbors are 100 bandwidths away
    X = np.concatenate([rng.normal(size=(90, 2)), [[0.0, 150.0], [150.0, 0.0]]])
    kernel = truncated(X, 8, bandwidth=1.0)
    similarity = kernel.similarity(np.full(92, 1 / 92), 9.0)
    assert np.flatnonzero(similarity.isolated).tolist() == [90, 91]
    found = spectral_step(similarity, 2, rng_state())
    assert np.flatnonzero(found.component < 0).tolist() == [90, 91]
    distances = reference.squared_distances(X[90:], X[:90])
    for i, nearest in zip((90, 91), np.argmin(distances, axis=1), strict=True):
        assert (found.vectors[:, i] == found.vectors[:, nearest]).all()


def test_points_of_negligible_degree_count_as_isolated():
    # the first pair has similarity 1e-304: too little to divide by
    X = np.array([[0.0], [37.4], [1e4], [1e4 + 1], [2e4], [2e4 + 1]])
    found, expected, _ = both(truncated(X, 1, bandwidth=1.0), np.full(6, 1 / 6), 1.0)
    assert np.flatnonzero(found.isolated).tolist() == [0, 1]
    product = found.normalized_product(np.eye(6))
    np.testing.assert_allclose(product, expected.normalized_product(np.eye(6)))
    assert (product[:2] == 0).all()


def crowded(n=700):
    """Rings, on which eigenvalues crowd at 1."""
    return make_circles(n, noise=0.01, factor=0.5, random_state=0)[0]


def test_eigenvalues_that_crowd_at_one(rng):
    X = crowded()
    n = len(X)
    kernel = truncated(X, 6, factor=0.5)
    weights = some_weights(rng, n, 0.2 * n, 0.0)
    similarity = kernel.similarity(weights, 0.2 * n)
    found = spectral_step(similarity, 6, rng_state())
    A = reference.normalized(kernel.as_array(), weights, 0.2 * n)
    values, vectors = np.linalg.eigh(A)
    assert values[-6] > 0.995
    np.testing.assert_allclose(found.eigenvalues, values[:-7:-1], atol=1e-10)
    assert found.residual <= TOLERANCE
    V = eigenvectors(found, similarity.degrees)
    residuals = A @ V - V * found.eigenvalues
    assert np.linalg.norm(residuals, axis=0).max() <= 1.01 * TOLERANCE
    gap = values[-6] - values[-7]
    angle = subspace_angles(V, vectors[:, -6:]).max()
    assert angle <= 3 * TOLERANCE / gap + 1e-6


@pytest.mark.parametrize("n", [2000, 6000])
def test_eigenvalues_that_crowd_within_the_shift(n):
    # outliers of a narrow kernel: dozens of eigenvalues within 1e-10 of 1
    X = make_blobs(n, centers=3, random_state=0)[0]
    similarity = truncated(X, 20, factor=0.125).similarity(np.full(n, 1 / n), 0.2 * n)
    found = spectral_step(similarity, 3, rng_state())
    assert found.residual <= TOLERANCE
    assert found.eigenvalues.min() > 1 - 1e-9


@pytest.mark.parametrize("n_features", [2, 5, 20])
@pytest.mark.parametrize("seed", range(4))
def test_residuals_of_the_similarity_are_as_promised(seed, n_features):
    # those of its inverse grow on the way back
    n_clusters = 30
    X = np.random.default_rng(seed).normal(size=(200, n_features))
    similarity = truncated(X, 20).similarity(np.full(200, 1 / 200), 40.0)
    found = spectral_step(similarity, n_clusters, rng_state())
    V = eigenvectors(found, similarity.degrees).T
    residuals = similarity.normalized_product(V) - found.eigenvalues[:, np.newaxis] * V
    assert np.linalg.norm(residuals, axis=1).max() <= TOLERANCE
    assert found.residual <= TOLERANCE


@pytest.mark.parametrize("solver", ["eigsh", "block_lanczos"])
def test_products_and_factorization_agree(monkeypatch, solver):
    X = make_blobs(400, 8, centers=4, cluster_std=3.0, random_state=0)[0]
    for data, n_clusters in ((X, 4), (crowded(), 4)):
        n = len(data)
        similarity = truncated(data, 8).similarity(np.full(n, 1 / n), 0.2 * n)
        assert similarity.factorization_cost is not None
        expected = spectral_step(similarity, n_clusters, rng_state())
        with monkeypatch.context() as limits:
            limits.setattr(banded, "MAX_OPERATIONS", 0)
            assert similarity.factorization_cost is None
            found = spectral_step(similarity, n_clusters, rng_state(), solver=solver)
        np.testing.assert_allclose(found.eigenvalues, expected.eigenvalues, atol=1e-9)
        assert max(found.residual, expected.residual) <= TOLERANCE
        ours, theirs = (eigenvectors(e, similarity.degrees) for e in (found, expected))
        assert subspace_angles(ours, theirs).max() < 1e-2


def test_expensive_factorizations_are_not_offered(monkeypatch):
    X = np.random.default_rng(0).normal(size=(200, 10))
    similarity = truncated(X, 8).similarity(np.full(200, 1 / 200), 40.0)
    assert similarity.factorization_cost is not None
    monkeypatch.setattr(banded, "available_bytes", lambda: 1000)
    assert similarity.factorization_cost is None


def test_same_seed_same_embedding_and_a_start_changes_nothing():
    X = crowded()
    n = len(X)
    similarity = truncated(X, 8).similarity(np.full(n, 1 / n), 0.2 * n)
    first, second = (spectral_step(similarity, 5, rng_state()) for _ in range(2))
    assert (first.vectors == second.vectors).all()
    warm = spectral_step(similarity, 5, np.random.RandomState(9), start=first.solution)
    np.testing.assert_allclose(warm.eigenvalues, first.eigenvalues, atol=1e-10)


@pytest.mark.parametrize("factor", [0.3, 3.0])  # the second has a raised diagonal
def test_weight_problem_equals_the_dense_one(rng, factor):
    n, lam = 150, 0.25
    X = make_blobs(n, 2, centers=3, cluster_std=1.5, random_state=0)[0]
    kernel = truncated(X, 10, factor=factor)
    K = kernel.as_array()
    uniform = np.full(n, 1 / n)
    vectors = spectral_step(kernel.similarity(uniform, lam * n), 3, rng_state()).vectors
    Q, q = reference.weight_qp(K, vectors, lam * n)
    assert np.linalg.eigvalsh(Q)[0] >= -1e-12 * np.abs(Q).max()
    sparse_one = WeightProblem(kernel, vectors, lam * n)
    dense_one = WeightProblem(DenseKernel(K, 1), vectors, lam * n)
    np.testing.assert_allclose(sparse_one.q, q, atol=1e-11)
    for alpha in (uniform, some_weights(rng, n, lam * n, 0.3)):
        assert sparse_one.objective(alpha) == pytest.approx(
            q @ alpha + alpha @ Q @ alpha
        )
        assert sparse_one.objective(alpha) == pytest.approx(dense_one.objective(alpha))
        np.testing.assert_allclose(
            sparse_one.q + 2 * sparse_one.product(alpha),
            dense_one.q + 2 * dense_one.product(alpha),
            atol=1e-11,
        )
        np.testing.assert_allclose(
            sparse_one.q + 2 * sparse_one.product(alpha), q + 2 * Q @ alpha, atol=1e-11
        )
    ours, theirs = (p.solve(uniform, 1e-7) for p in (sparse_one, dense_one))
    upper = 1 / (lam * n)
    for solution in (ours, theirs):
        assert solution.gap <= 1e-7
        alpha = solution.x
        gap = reference.kkt_gap(Q, q, alpha, upper)
        assert gap <= 1.01e-7 * np.abs(q).max()
        assert _smo.kkt_gap(alpha, q + 2 * Q @ alpha, upper) == pytest.approx(
            gap, abs=1e-12
        )
        assert alpha.sum() == pytest.approx(1, abs=1e-12)
        assert ((alpha >= 0) & (alpha <= upper)).all()
    # gaps of 1e-7 bound the distance of both values from the optimum
    assert sparse_one.objective(ours.x) == pytest.approx(
        dense_one.objective(theirs.x), abs=2e-7 * np.abs(q).max()
    )


def test_a_kernel_without_pairs_is_refused():
    # every similarity underflows
    X = np.arange(90.0)[:, np.newaxis]
    kernel = truncated(X, 3, bandwidth=0.01)
    assert isinstance(kernel, SparseKernel)
    with pytest.raises(ValueError, match="No two points have any similarity"):
        spectral_step(kernel.similarity(np.full(90, 1 / 90), 9.0), 2, rng_state())


def test_full_matrix_of_too_many_points_is_refused_with_figures():
    X = np.random.default_rng(0).normal(size=(50, 2))
    kernel = truncated(X, 5)
    kernel.n = 10**9
    with pytest.raises(MemoryError, match="The kernel as a full matrix needs"):
        kernel.as_array()
