import numpy as np
import pytest

import reference
from cdsk._eigh import eigh


def assert_eigenpairs(A, values, vectors):
    n = len(A)
    # the error of a backward stable solver is some n eps times the norm
    unit = np.abs(A).max(initial=0) or 1.0
    allowed = 4 * max(n, 1) * np.finfo(float).eps * unit * np.linalg.norm(A / unit)
    expected = unit * reference.eigh(A / unit)[0]
    np.testing.assert_allclose(values, expected, rtol=0, atol=allowed)
    assert np.abs(A @ vectors - vectors * values).max(initial=0) <= allowed
    assert np.abs(vectors.T @ vectors - np.eye(n)).max(initial=0) <= 1e-14 * max(n, 1)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 9, 17, 80, 203])
def test_equals_numpy(rng, n):
    A = rng.normal(size=(n, n))
    A = A + A.T
    before = A.copy()
    assert_eigenpairs(A, *eigh(A))
    assert (A == before).all()


@pytest.mark.parametrize(
    "values",
    [
        np.zeros(20),
        np.ones(20),
        np.repeat([1.0, 0.5], 10),
        np.repeat([1.0, 0.0], [3, 17]),
        1 - 1e-12 * np.arange(20),
        10.0 ** -np.arange(20),
        1e-200 * np.arange(20),
    ],
    ids=["zero", "one", "two", "deficient", "crowded", "graded", "tiny"],
)
def test_hard_spectra(rng, values):
    Q = np.linalg.qr(rng.normal(size=(20, 20)))[0]
    A = (Q * values) @ Q.T
    A = 0.5 * (A + A.T)
    assert_eigenpairs(A, *eigh(A))


def test_diagonal_and_blocks(rng):
    A = np.diag(rng.normal(size=15))
    assert_eigenpairs(A, *eigh(A))
    A[3:6, 3:6] = [[1, 2, 3], [2, 4, 5], [3, 5, 6]]
    assert_eigenpairs(A, *eigh(A))


def test_not_a_number_is_an_error():
    with pytest.raises(np.linalg.LinAlgError):
        eigh(np.full((5, 5), np.nan))
