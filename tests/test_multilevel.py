"""Graphs in compiled code, and the hierarchy of smaller graphs."""

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.datasets import make_blobs, make_moons

from cdsk._graph import (
    aggregate,
    coarsen,
    components,
    product,
    scale_entries,
    similarity,
)
from cdsk._multilevel import Multilevel
from cdsk._spectral import spectral_step


def random_graph(n, density, seed):
    rng = np.random.RandomState(seed)
    matrix = sparse.random_array(
        (n, n), density=density, random_state=rng, format="csr"
    )
    matrix = (matrix + matrix.T).tocsr()
    matrix.setdiag(0.0)
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix


def grid(side):
    """The graph of a square of side x side points."""
    path = sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(side, side))
    eye = sparse.eye_array(side)
    return (sparse.kron(path, eye) + sparse.kron(eye, path)).tocsr()


def normalized(S):
    degrees = np.asarray(S.sum(axis=1)).ravel()
    root = sparse.diags_array(1.0 / np.sqrt(degrees))
    matrix = (root @ S @ root).tocsr()
    matrix.sort_indices()
    return matrix, degrees


def parts(matrix, dtype=np.int32):
    return matrix.indptr.astype(dtype), matrix.indices.astype(dtype), matrix.data


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("m", [1, 3, 14])
def test_product_is_scipys(dtype, m):
    matrix = random_graph(500, 0.02, 0)
    block = np.random.RandomState(1).standard_normal((500, m))
    found = product(*parts(matrix, dtype), block, 1)
    np.testing.assert_allclose(found, matrix @ block, atol=1e-13)
    for n_threads in (2, 3):
        other = product(*parts(matrix, dtype), block, n_threads)
        np.testing.assert_array_equal(found, other)


def test_product_in_single_precision():
    matrix = random_graph(300, 0.02, 0)
    block = np.random.RandomState(1).standard_normal((300, 9)).astype(np.float32)
    starts, columns, values = parts(matrix)
    found = product(starts, columns, values.astype(np.float32), block, 2)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, matrix @ block, atol=1e-5)


def test_product_of_a_matrix_without_entries_is_zero():
    empty = sparse.csr_array((4, 4))
    assert not product(*parts(empty), np.ones((4, 2)), 1).any()


@pytest.mark.parametrize("n_threads", [1, 2])
def test_similarity_and_scaling_are_numpys(n_threads):
    matrix = random_graph(300, 0.05, 1)
    a = np.random.RandomState(0).uniform(0.0, 0.3, 300)
    dense = matrix.toarray()
    S = dense * 2.0 * np.maximum(a[:, np.newaxis] + a - 5.0 * np.outer(a, a), 0.0)
    values = similarity(*parts(matrix), a, 5.0, n_threads)
    i, j = matrix.tocoo().coords
    np.testing.assert_allclose(values, S[i, j], rtol=1e-14)
    values = scale_entries(*parts(matrix), a, n_threads)
    np.testing.assert_array_equal(values, (dense * np.outer(a, a))[i, j])


@pytest.mark.parametrize("seed", range(3))
def test_components_are_scipys(seed):
    matrix = random_graph(300, 0.01, seed)
    bounds = np.random.RandomState(seed).uniform(0.0, 0.8, 300)
    count, label = components(*parts(matrix), bounds)
    edges = matrix.tocoo()
    kept = edges.data > np.minimum(bounds[edges.row], bounds[edges.col])
    graph = sparse.coo_array(
        (edges.data[kept], (edges.row[kept], edges.col[kept])), shape=matrix.shape
    )
    expected_count, expected = connected_components(graph, directed=False)
    assert count == expected_count
    np.testing.assert_array_equal(label, expected)


def strongly_joined(matrix, strength):
    """The strong edges, by NumPy."""
    dense = matrix.toarray()
    np.fill_diagonal(dense, 0.0)
    largest = dense.max(axis=1)
    smaller = np.minimum(largest[:, np.newaxis], largest)
    return (dense > 0) & (dense >= strength * smaller)


@pytest.mark.parametrize("strength", [0.1, 0.5, 0.9])
def test_groups_hold_together(strength):
    matrix = random_graph(200, 0.03, 2)
    matrix = sparse.block_diag([matrix, np.zeros((2, 2))], format="csr")
    group, count = aggregate(*parts(matrix), strength)
    alone = np.asarray(matrix.sum(axis=1)).ravel() == 0
    np.testing.assert_array_equal(group == -1, alone)
    np.testing.assert_array_equal(np.unique(group[~alone]), np.arange(count))
    strong = strongly_joined(matrix, strength)
    for g in range(count):
        members = np.flatnonzero(group == g)
        inside = strong[np.ix_(members, members)] | (
            matrix.toarray()[np.ix_(members, members)] > 0
        )
        assert connected_components(sparse.csr_array(inside))[0] == 1
        # one of them has all its strong neighbors here
        complete = [set(np.flatnonzero(strong[i])) <= set(members) for i in members]
        assert any(complete)


def test_a_group_is_a_point_with_its_strong_neighbors():
    # a path of six points, the edge in the middle weak
    weights = np.array([1.0, 1.0, 0.1, 1.0, 1.0])
    path = sparse.diags_array([weights, weights], offsets=[-1, 1]).tocsr()
    group, count = aggregate(*parts(path), 0.5)
    assert count == 2
    np.testing.assert_array_equal(group, [0, 0, 0, 1, 1, 1])


def test_an_edge_of_zero_joins_nobody():
    starts, columns = np.int32([0, 2, 4, 6]), np.int32([1, 2, 0, 2, 0, 1])
    values = np.array([1.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    group, count = aggregate(starts, columns, values, 0.5)
    assert count == 1
    np.testing.assert_array_equal(group, [0, 0, -1])


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("count", [1, 7, 200])
def test_coarsen_is_a_product_of_three(dtype, count):
    matrix = random_graph(200, 0.05, 3)
    rng = np.random.RandomState(0)
    group = rng.randint(-1, count, 200).astype(np.intc)
    root = rng.uniform(size=200)
    joined = np.flatnonzero(group >= 0)
    way = (root[joined], (joined, group[joined]))
    way = sparse.coo_array(way, shape=(200, count)).tocsr()
    how = parts(matrix, dtype), group, root, count
    found = [coarsen(*how[0], *how[1:], n_threads) for n_threads in (1, 2, 3)]
    assert found[0][1].dtype == dtype
    between = sparse.csr_array(found[0], shape=(count, count))
    expected = (way.T @ matrix @ way).toarray()
    np.testing.assert_allclose(between.toarray(), expected, atol=1e-13)
    assert between.nnz == np.count_nonzero(expected)
    for other in found[1:]:
        for ours, theirs in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_coarsen_of_nothing_is_nothing():
    empty, nobody = sparse.csr_array((4, 4)), np.full(4, -1, dtype=np.intc)
    for group, count in ((nobody, 0), (nobody, 2), (nobody + 1, 1)):
        values, columns, starts = coarsen(*parts(empty), group, np.ones(4), count, 1)
        assert len(values) == len(columns) == 0
        np.testing.assert_array_equal(starts, np.zeros(count + 1))


@pytest.mark.parametrize("side", [20, pytest.param(45, marks=pytest.mark.slow)])
def test_it_is_close_to_the_inverse_on_a_grid(side):
    """M L has eigenvalues between two numbers that hardly depend on the size."""
    matrix, degrees = normalized(grid(side))
    n, shift = len(degrees), 1e-8
    inverse = Multilevel(matrix, degrees, shift, 1)
    assert len(inverse._levels) > 1 or side == 20
    # on what is orthogonal to the null space, which the search leaves out
    null = np.sqrt(degrees / degrees.sum())
    rest = np.eye(n) - np.outer(null, null)
    M = inverse(rest) @ rest
    np.testing.assert_allclose(M, M.T, atol=1e-6 * np.abs(M).max())
    L = (1.0 + shift) * np.eye(n) - matrix.toarray()
    values = np.linalg.eigvals(M @ L)
    assert np.abs(values.imag).max() < 1e-4
    values = np.sort(values.real)
    assert abs(values[0]) < 1e-6
    assert values[1] > 0.05 and values[-1] < 2.0
    np.testing.assert_allclose(L @ null, shift * null, atol=1e-12)


def test_isolated_points_do_no_harm():
    matrix, degrees = normalized(grid(40))
    matrix = sparse.block_diag([matrix, np.zeros((3, 3))], format="csr")
    inverse = Multilevel(matrix, np.append(degrees, np.zeros(3)), 1e-8, 1)
    assert np.isfinite(inverse(np.eye(1603)[-5:])).all()


def test_the_result_does_not_depend_on_threads():
    matrix, degrees = normalized(grid(60))
    vectors = np.random.RandomState(0).standard_normal((3, 3600))
    one, two = (Multilevel(matrix, degrees, 1e-8, t)(vectors) for t in (1, 2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("which", [0, 3])
@pytest.mark.parametrize("data", ["plane", "many"])
def test_eigenvalues_are_those_of_lapack(default_kernels, data, which):
    if data == "plane":
        X, c = make_moons(1500, noise=0.12, random_state=0)[0], 4
    else:
        X = make_blobs(1500, 12, centers=6, cluster_std=3.0, random_state=0)[0]
        c = 6
    kernel = default_kernels(X)[which]
    weights = np.full(kernel.n, 1.0 / kernel.n)

    def embed(solver):
        similarity = kernel.similarity(weights, 1.0)
        return spectral_step(similarity, c, np.random.RandomState(0), None, solver)

    found, expected = embed("multilevel"), embed("dense")
    assert found.convergence_message is None
    np.testing.assert_allclose(found.eigenvalues, expected.eigenvalues, atol=1e-9)
