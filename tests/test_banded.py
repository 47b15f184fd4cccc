"""The banded Cholesky factorization of sparse matrices."""

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import LinAlgError

from cdsk import _multilevel as banded
from cdsk._multilevel import BandedOrdering


def laplacian(rng, n, density):
    """A sparse symmetric pattern with negative entries, and a dominant diagonal."""
    A = np.where(rng.uniform(size=(n, n)) < density, rng.uniform(size=(n, n)), 0.0)
    A = np.triu(A, 1)
    return sparse.csr_array(-(A + A.T)), (A + A.T).sum(axis=1) + 0.1


@pytest.mark.parametrize("density", [0.0, 0.05, 1.0])
@pytest.mark.parametrize("n", [1, 2, 30])
def test_solves_the_system(rng, n, density):
    off, diagonal = laplacian(rng, n, density)
    order = BandedOrdering(off)
    # in order of the points, as the caller has them
    solve = order.factorize(diagonal[order.order], off.data)
    vectors = rng.normal(size=(3, n))
    M = off.toarray() + np.diag(diagonal)
    np.testing.assert_allclose(solve(vectors) @ M, vectors, atol=1e-10)
    assert solve(vectors).flags.c_contiguous


def test_a_path_in_any_order_has_a_band_of_one(rng):
    n = 50
    path = rng.permutation(n)
    i, j = path[:-1], path[1:]
    ends = np.concatenate([i, j]), np.concatenate([j, i])
    order = BandedOrdering(sparse.csr_array((np.ones(2 * n - 2), ends), shape=(n, n)))
    assert order.width == 1


def test_an_indefinite_matrix_is_an_error(rng):
    off, diagonal = laplacian(rng, 20, 0.3)
    with pytest.raises(LinAlgError, match="not positive definite"):
        BandedOrdering(off).factorize(-diagonal, off.data)


def test_cost_is_estimated_before_a_factorization(rng, monkeypatch):
    order = BandedOrdering(laplacian(rng, 40, 0.3)[0])
    assert order.is_cheap
    with monkeypatch.context() as patch:
        patch.setattr(banded, "MAX_OPERATIONS", 40 * order.width**2 - 1)
        assert not order.is_cheap
        patch.setattr(banded, "MAX_OPERATIONS", 40 * order.width**2)
        assert order.is_cheap
    for available, expected in ((None, True), (10**9, True), (100, False)):
        monkeypatch.setattr(banded, "available_bytes", lambda a=available: a)
        assert order.is_cheap is expected
