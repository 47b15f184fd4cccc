import numpy as np
import pytest

import reference
from cdsk._eigh import eigh, largest_eigenpairs


def assert_eigenpairs(A, values, vectors):
    """They are the largest of A, smallest first."""
    n = len(A)
    # the error of a backward stable solver is some n eps times the norm
    unit = np.abs(A).max(initial=0) or 1.0
    allowed = 4 * max(n, 1) * np.finfo(float).eps * unit * np.linalg.norm(A / unit)
    expected = unit * reference.eigh(A / unit)[0][n - len(values) :]
    np.testing.assert_allclose(values, expected, rtol=0, atol=allowed)
    assert np.abs(A @ vectors - vectors * values).max(initial=0) <= allowed
    distance = np.abs(vectors.T @ vectors - np.eye(len(values)))
    assert distance.max(initial=0) <= 1e-14 * max(n, 1)


def assert_both(A):
    """All eigenpairs, and the larger ones alone."""
    assert_eigenpairs(A, *eigh(A))
    for m in {1, (len(A) + 1) // 2, len(A)}:
        if 0 < m <= len(A):
            values, rows = largest_eigenpairs(A, m)
            assert rows.shape == (m, len(A))
            assert_eigenpairs(A, values[::-1], rows[::-1].T)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 9, 17, 80, 203])
def test_equals_numpy(rng, n):
    A = rng.normal(size=(n, n))
    A = A + A.T
    before = A.copy()
    assert_both(A)
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
    assert_both(A)


def test_diagonal_and_blocks(rng):
    A = np.diag(rng.normal(size=15))
    assert_both(A)
    A[3:6, 3:6] = [[1, 2, 3], [2, 4, 5], [3, 5, 6]]
    assert_both(A)


def test_not_a_number_is_an_error():
    with pytest.raises(np.linalg.LinAlgError):
        eigh(np.full((5, 5), np.nan))


def test_interrupt_ends_a_long_decomposition(rng, interrupt_after):
    A = rng.normal(size=(2500, 2500))
    with pytest.raises(KeyboardInterrupt), interrupt_after(0.1):
        largest_eigenpairs(A + A.T, 3)
