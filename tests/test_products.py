import numpy as np
import pytest

from cdsk._products import combine, inner


@pytest.mark.parametrize("n", [1, 7, 100, 2048, 4100])
@pytest.mark.parametrize(("p", "q"), [(1, 1), (3, 5), (9, 66)])
def test_inner_and_combine_equal_numpy(rng, n, p, q):
    A, B, C = rng.normal(size=(p, n)), rng.normal(size=(q, n)), rng.normal(size=(p, q))
    np.testing.assert_allclose(inner(A, B, 2), A @ B.T, atol=1e-13 * n)
    np.testing.assert_allclose(combine(C, A, 2), C.T @ A, atol=1e-12)


def test_empty_blocks(rng):
    nothing, A = np.empty((0, 50)), rng.normal(size=(3, 50))
    assert inner(nothing, A, 1).shape == (0, 3)
    assert inner(A, nothing, 1).shape == (3, 0)
    assert (combine(np.empty((0, 3)), nothing, 1) == np.zeros((3, 50))).all()
    assert combine(np.empty((3, 0)), A, 1).shape == (0, 50)


def test_threads_change_no_bit(rng):
    A, B = rng.normal(size=(40, 20_000)), rng.normal(size=(20, 20_000))
    C = rng.normal(size=(40, 20))
    for n_threads in (2, 3):
        assert (inner(A, B, n_threads) == inner(A, B, 1)).all()
        assert (combine(C, A, n_threads) == combine(C, A, 1)).all()
