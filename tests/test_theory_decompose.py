import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cdsk
from cdsk.theory import decompose_similarity


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 30), scale=st.floats(1e-6, 1e6))
@settings(max_examples=60)
def test_parts_are_semi_definite_and_differ_by_the_similarity(seed, n, scale):
    S = scale * np.random.default_rng(seed).normal(size=(n, n))
    S += S.T
    positive, negative = decompose_similarity(S)
    rounding = 100 * n * np.finfo(float).eps * np.abs(S).max()
    np.testing.assert_allclose(positive - negative, S, rtol=0, atol=rounding)
    for part in (positive, negative):
        np.testing.assert_allclose(part, part.T, rtol=0, atol=rounding)
        assert np.linalg.eigvalsh(part).min() >= -rounding
    # no smaller parts would do: each acts where the other does not
    np.testing.assert_allclose(
        positive @ negative, 0, rtol=0, atol=n * rounding * np.abs(S).max()
    )


@pytest.mark.parametrize("bandwidth", [0.01, 1.0, 100.0])
def test_a_kernel_has_no_negative_part(rng, dtype, bandwidth):
    K = cdsk.gaussian_gram(rng.normal(size=(60, 2)).astype(dtype), bandwidth)
    positive, negative = decompose_similarity(K)
    assert (positive == K).all()
    assert (negative == 0).all()


def test_a_small_negative_eigenvalue_is_found(rng):
    vectors = np.linalg.qr(rng.normal(size=(20, 20)))[0]
    values = np.linspace(0.1, 1, 20)
    values[3] = -1e-12
    S = (vectors * values) @ vectors.T
    negative = decompose_similarity((S + S.T) / 2)[1]
    expected = 1e-12 * np.outer(vectors[:, 3], vectors[:, 3])
    np.testing.assert_allclose(negative, expected, rtol=0, atol=1e-14)


def test_zero_and_single():
    for S in (np.zeros((3, 3)), np.array([[2.0]])):
        positive, negative = decompose_similarity(S)
        assert (positive == S).all()
        assert (negative == 0).all()
    assert decompose_similarity([[-2.0]])[1] == [[2.0]]


def test_asymmetric_matrix():
    with pytest.raises(ValueError, match="similarity must be symmetric"):
        decompose_similarity([[0.0, 1.0], [2.0, 0.0]])
