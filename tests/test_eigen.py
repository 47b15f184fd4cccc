"""Eigensolvers: every copy of every eigenvalue, whoever solves, and bounded work."""

import numpy as np
import pytest
from scipy.linalg import LinAlgError, eigh, subspace_angles
from scipy.sparse.linalg import eigsh
from sklearn.datasets import load_iris, make_blobs

import cdsk
import reference
from cdsk import CDSK
from cdsk import _eigensolvers as eigen
from cdsk._eigensolvers import (
    TOLERANCE,
    EigenProblem,
    all_eigenpairs,
    largest_eigenpairs,
    largest_eigenvalue,
    ritz_pairs,
    solve_block_lanczos,
    solve_eigsh,
    solve_randomized,
)
from cdsk._neighbors import Neighbors
from cdsk._operators.dense import DenseKernel
from cdsk._operators.sparse import NeighborGraph
from cdsk._pairwise import estimate_bandwidth
from cdsk._spectral import spectral_step
from cdsk._validation import EIGEN_SOLVERS


def uniform(n):
    return np.full(n, 1 / n)


def full(X, bandwidth):
    return DenseKernel(cdsk.gaussian_gram(X, bandwidth), 2, points=X)


def truncated(X, factor, k=20):
    graph = NeighborGraph(Neighbors(X, k, robust=True))
    return graph.kernel(factor * graph.neighbors.scales, 2)


def nine_clouds(spacing):
    """Clouds joined by edges between 1e-13 and 1e-3 of a degree."""
    grid = spacing * np.array([(i, j) for i in range(3) for j in range(3)], dtype=float)
    return make_blobs(900, centers=grid, cluster_std=0.5, random_state=0)[0]


def iris():
    return np.ascontiguousarray(load_iris().data)


# Each: kernel, number of clusters. eigsh alone finds four to seven of nine eigenvalues
# near 1 at its tolerance of 1e-6, and 0.99909 for one of iris that is 0.99968.
HARD = {
    "nine clouds, 4.0": (lambda: full(nine_clouds(4.0), 0.3), 9),
    "nine clouds, 4.5": (lambda: full(nine_clouds(4.5), 0.3), 9),
    "nine clouds, 6.0": (lambda: full(nine_clouds(6.0), 0.3), 9),
    "nine clouds, truncated": (lambda: truncated(nine_clouds(4.5), 0.25), 9),
    "iris, local": (lambda: full(iris(), estimate_bandwidth(iris(), "local")), 3),
    "iris, truncated": (lambda: truncated(iris(), 0.25), 3),
    "iris, narrow": (lambda: truncated(iris(), 0.125), 5),
}


@pytest.mark.parametrize("solver", EIGEN_SOLVERS)
@pytest.mark.parametrize("factorized", [True, False])
@pytest.mark.parametrize("name", HARD)
def test_every_copy_is_found_by_every_solver(name, solver, factorized, monkeypatch):
    monkeypatch.setattr(eigen, "DENSE_SIZE", 10)  # iris is not for LAPACK
    if not factorized:
        monkeypatch.setattr("cdsk._multilevel.MAX_OPERATIONS", 0)
    if solver == "randomized":
        monkeypatch.setattr(eigen, "MAX_BLOCK_PRODUCTS", 50)
    make, n_clusters = HARD[name]
    kernel = make()
    n = kernel.n
    similarity = kernel.similarity(uniform(n), 0.3 * n)
    A = similarity.normalized_product(np.eye(n))
    values = np.linalg.eigvalsh(A)[::-1]
    for seed in range(3):
        found = spectral_step(
            similarity, n_clusters, np.random.RandomState(seed), solver=solver
        )
        if (
            (name == "iris, narrow" and not factorized) or solver == "randomized"
        ) and found.convergence_message is not None:
            # eigenvalues within 1e-9 of 1, or so few products, may not suffice, but
            # that is told
            assert found.residual > TOLERANCE
            continue
        assert found.convergence_message is None
        assert found.residual <= TOLERANCE
        np.testing.assert_allclose(found.eigenvalues, values[:n_clusters], atol=1e-8)


@pytest.mark.parametrize("solver", EIGEN_SOLVERS)
def test_solvers_agree_with_scipy(solver):
    X = make_blobs(600, 5, centers=6, cluster_std=3.0, random_state=0)[0]
    kernel = full(X, 2.0)
    A = reference.normalized(kernel.as_array(), uniform(600), 180.0)
    values = eigsh(A, k=6, which="LA", tol=1e-12, v0=np.ones(600))[0][::-1]
    similarity = kernel.similarity(uniform(600), 180.0)
    found = spectral_step(similarity, 6, np.random.RandomState(0), solver=solver)
    np.testing.assert_allclose(found.eigenvalues, values, atol=1e-10)


@pytest.mark.parametrize("solver", EIGEN_SOLVERS)
def test_every_solver_gives_the_same_clusters(solver, monkeypatch):
    monkeypatch.setattr(eigen, "MAX_BLOCK_PRODUCTS", 10**5)
    X = make_blobs(300, 3, centers=4, cluster_std=1.0, random_state=0)[0]
    # Weights are learned to 1e-4 only, and pass on what solvers differ by. Eigenvectors
    # of another sign lead k-means elsewhere: to the best of many starts all the same.
    options = {"max_iter": 0, "n_init": 50, "random_state": 0}
    # among several kernels, scores that are nearly equal would decide
    neighbors = {"bandwidth": 2.0, "n_neighbors": 30}
    for kernel in ({"bandwidth": "local"}, {"bandwidth": 2.0}, neighbors):
        expected = CDSK(4, **options, **kernel).fit(X)
        found = CDSK(4, eigen_solver=solver, **options, **kernel).fit(X)
        assert (found.labels_ == expected.labels_).all()
        np.testing.assert_allclose(found.eigenvalues_, expected.eigenvalues_, atol=1e-8)


def search(method, product, start, k, locked, tol=1e-9):
    problem = EigenProblem(product, k, locked, n_threads=2)
    if method == "eigsh":
        rng = np.random.RandomState(0)
        return solve_eigsh(
            problem, start, tol=tol, n_basis=30, max_products=2000, rng=rng
        )
    if method == "randomized":
        return solve_randomized(problem, start, tol=tol, max_products=5000)
    return solve_block_lanczos(problem, start, tol=tol, max_products=200)


METHODS = ["eigsh", "block_lanczos", "randomized"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("copies", [1, 3, 8])
def test_multiple_eigenvalues_from_a_start_in_one_krylov_space(rng, method, copies):
    values = np.concatenate(
        [np.full(copies, 0.9), np.linspace(0.5, -0.5, 300 - copies)]
    )
    basis = np.linalg.qr(rng.normal(size=(300, 300)))[0]
    A = basis * values @ basis.T
    start = np.concatenate([basis[:, [0, -1, -2]].T, rng.normal(size=(copies, 300))])
    found = search(method, lambda v: v @ A, start, copies, np.empty((0, 300)))
    np.testing.assert_allclose(found.values, 0.9, atol=1e-10)
    assert subspace_angles(found.vectors.T, basis[:, :copies]).max() < 1e-6
    assert found.residuals.max() <= 1e-8


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [20, 50, 200])
def test_locked_vectors_are_left_out(rng, method, n):
    A = np.diag(np.linspace(1, -1, n))
    locked = np.eye(n)[:2]
    start = rng.normal(size=(5, n))
    found = search(method, lambda v: v @ A, start, 3, locked)
    np.testing.assert_allclose(found.values, np.diag(A)[2:5], atol=1e-10)
    assert np.abs(found.vectors @ locked.T).max() < 1e-10
    np.testing.assert_allclose(found.vectors @ found.vectors.T, np.eye(3), atol=1e-10)


@pytest.mark.parametrize("crowd", [0.5, 1 - 1e-6])
def test_block_method_gives_up_where_the_pace_is_too_slow(rng, crowd):
    values = np.concatenate([[1.0, 0.9, 0.8], np.linspace(crowd, -0.5, 297)])
    found = solve_block_lanczos(
        EigenProblem(lambda vectors: vectors * values, 3, np.empty((0, 300)), 1),
        rng.normal(size=(6, 300)),
        tol=1e-9,
        max_products=60,
        stop_if_slow=True,
    )
    if crowd == 0.5:
        np.testing.assert_allclose(found.values, [1, 0.9, 0.8], atol=1e-12)
    else:
        assert found.residuals.max() > 1e-9
        # a quarter of the products, and what is made between two looks
        assert 15 <= found.n_products < 25


@pytest.mark.parametrize("solver", METHODS)
def test_unresolved_steps_are_bounded_and_reported(monkeypatch, solver):
    # thousands of products would be needed: a long chain of points
    monkeypatch.setattr("cdsk._multilevel.MAX_OPERATIONS", 0)
    monkeypatch.setattr(eigen, "MAX_PRODUCTS", 300)
    monkeypatch.setattr(eigen, "MAX_BLOCK_PRODUCTS", 20)
    X = np.random.default_rng(0).uniform(size=(3000, 1))
    similarity = truncated(X, 0.5).similarity(uniform(3000), 600.0)
    count, product = 0, type(similarity).normalized_product

    def counted(self, vectors):
        nonlocal count
        count += len(vectors)
        return product(self, vectors)

    monkeypatch.setattr(type(similarity), "normalized_product", counted)
    found = spectral_step(similarity, 8, np.random.RandomState(0), solver=solver)
    assert count <= 500
    assert found.residual > TOLERANCE
    assert "The spectral step did not converge: residual" in found.convergence_message
    assert np.isfinite(found.vectors).all()
    np.testing.assert_allclose(np.linalg.norm(found.vectors, axis=0), 1, rtol=1e-10)


def test_ritz_pairs_of_an_invariant_space_are_exact(rng):
    values = np.linspace(1, 0, 40)
    basis = np.linalg.qr(rng.normal(size=(40, 40)))[0]
    A = basis * values @ basis.T
    mixed = (basis[:, :6] @ rng.normal(size=(6, 6))).T
    for vectors in (np.ascontiguousarray(mixed), np.asfortranarray(mixed)):
        found = ritz_pairs(lambda vectors: vectors @ A, vectors, 4, 1)
        np.testing.assert_allclose(found.values, values[:4], atol=1e-10)
        assert found.residuals.max() < 1e-10


@pytest.mark.parametrize("n", [1, 2, 17, 80])
def test_dense_eigenpairs_equal_numpy(rng, n):
    A = rng.normal(size=(n, n))
    A = A + A.T
    expected = np.linalg.eigvalsh(A)[::-1]
    values, columns = all_eigenpairs(A)
    np.testing.assert_allclose(values, expected, atol=1e-12 * n)
    np.testing.assert_allclose(A @ columns, columns * values, atol=1e-12 * n)
    k = (n + 1) // 2
    values, vectors = largest_eigenpairs(A.copy(), k)
    np.testing.assert_allclose(values, expected[:k], atol=1e-12 * n)
    assert vectors.shape == (k, n)
    np.testing.assert_allclose(
        vectors @ A, values[:, np.newaxis] * vectors, atol=1e-12 * n
    )


@pytest.mark.parametrize("n", [1, 2, 10, 33, 300])
@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_largest_eigenvalue_is_a_little_more_than_it_is(rng, n, scale):
    A = rng.normal(size=(n, n))
    A = A + A.T
    bound = np.abs(A).sum(axis=1).max()
    found = largest_eigenvalue(lambda v: scale * (v @ A), scale * bound, n, 1) / scale
    exact = np.linalg.eigvalsh(A)[-1]
    assert exact <= found <= exact + 2e-3 * bound
    assert largest_eigenvalue(lambda v: 0 * v, 0.0, n, 1) == 0


def test_memory_for_the_basis_is_checked(rng, limit_memory):
    start = rng.normal(size=(5, 1000))
    problem = EigenProblem(lambda vectors: vectors, 2, start[:0], n_threads=1)
    limit_memory(16 * 80 * 1000 - 1)
    with pytest.raises(MemoryError, match="The basis of the spectral step"):
        solve_block_lanczos(problem, start, tol=1e-6, max_products=3)
    limit_memory(16 * 80 * 1000)
    solve_block_lanczos(problem, start, tol=1e-6, max_products=3)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("finds_none", [False, True])
def test_where_lapack_gives_up_on_some_pairs_all_are_found(
    rng, monkeypatch, order, finds_none
):
    K = rng.normal(size=(40, 40))
    K = K + K.T

    def gives_up(matrix, **how):
        found = eigh(matrix, **how)  # which overwrites the matrix, if it can
        if "subset_by_index" not in how:
            return found
        if finds_none:
            return found[0][:0], found[1][:, :0]
        raise LinAlgError("Internal Error.")

    monkeypatch.setattr("cdsk._eigensolvers.eigh", gives_up)
    values, vectors = largest_eigenpairs(np.array(K, order=order), 19)
    np.testing.assert_allclose(K @ vectors.T, vectors.T * values, atol=1e-12)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(K)[::-1][:19], atol=1e-12)


def test_as_many_clusters_as_a_heap_of_copies_has_not():
    K = np.ones((31, 31))
    labels = CDSK(20, kernel="precomputed", random_state=0).fit_predict(K)
    assert labels.shape == (31,)
