"""_kernel against tests/reference.py, and the identities that need no reference."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cdsk
import reference
from cdsk import _kernel
from cdsk._rows import HadamardRows, StoredRows

# Relative error allowed for values above 1e-30 (exponents down to -69): float64
# distances round by a few eps, times 69; float32 results are rounded once.
RELATIVE = {np.float64: 1e-12, np.float32: 1e-7}

# From 16 features on distances may be expanded, in blocks of 256 features.
SIZES = [(1, 1), (2, 3), (47, 1), (48, 2), (49, 5), (97, 4), (60, 16), (130, 300)]


def assert_close_to_exact(K, exact, dtype):
    exact = np.asarray(exact)
    large = exact > 1e-30
    error = np.abs(K - exact)[large] / exact[large]
    assert error.max(initial=0) <= RELATIVE[dtype]
    assert (K[~large] <= 1.1e-30).all()


@pytest.mark.parametrize(("n", "d"), SIZES)
def test_gram_equals_reference(rng, dtype, n, d):
    X = rng.normal(size=(n, d)).astype(dtype)
    K = cdsk.gaussian_gram(X, 0.7)
    assert K.dtype == dtype
    assert_close_to_exact(K, reference.gaussian_gram(X, 0.7), dtype)
    assert (K == K.T).all()
    assert (np.diag(K) == 1).all()


@pytest.mark.parametrize(("n", "d"), SIZES)
def test_gram_with_local_bandwidths(rng, dtype, n, d):
    X = rng.normal(size=(n, d)).astype(dtype)
    bandwidth = rng.uniform(0.3, 3, size=n)
    K = cdsk.gaussian_gram(X, bandwidth)
    assert_close_to_exact(K, reference.gaussian_gram(X, bandwidth), dtype)
    assert (K == K.T).all()
    assert (np.diag(K) == 1).all()


def test_gram_is_positive_semi_definite(rng):
    X = rng.normal(size=(150, 3))
    assert np.linalg.eigvalsh(cdsk.gaussian_gram(X, 1.0)).min() > -1e-12


def test_gram_far_from_the_origin(rng, dtype):
    # Quarter steps are exact at an offset of 1e6 in both dtypes.
    near = np.round(4 * rng.normal(size=(60, 4))).astype(dtype) / 4
    far = near + dtype(1e6)
    assert ((far - dtype(1e6)) == near).all()
    assert (cdsk.gaussian_gram(far, 1.3) == cdsk.gaussian_gram(near, 1.3)).all()


@pytest.mark.parametrize("bandwidth", [0.3, 0.55, 0.6, 1.0, 3.0])
def test_expanded_distances_are_used_only_where_they_are_exact(rng, dtype, bandwidth):
    # clusters far apart: |x|^2 / (2 b^2) of the centered points crosses the limit of 50
    centers = rng.normal(size=(4, 40)) / 8
    X = centers.repeat(30, axis=0) + 0.3 * rng.normal(size=(120, 40)) / 40**0.5 + 100
    K = cdsk.gaussian_gram(X.astype(dtype), bandwidth * 0.1)
    exact = reference.gaussian_gram(X.astype(dtype), bandwidth * 0.1)
    assert_close_to_exact(K, exact, dtype)
    assert (K == K.T).all()
    assert (np.diag(K) == 1).all()


@pytest.mark.parametrize("d", [6, 40, 600])
@pytest.mark.parametrize("bandwidth", [1e-2, 1e5])
def test_duplicates_have_similarity_one(rng, dtype, d, bandwidth):
    X = np.repeat(rng.normal(size=(30, d)), 3, axis=0).astype(dtype) * 1e3
    K = cdsk.gaussian_gram(X, bandwidth)
    same = np.repeat(np.arange(30), 3)
    assert (K[same[:, np.newaxis] == same] == 1).all()


def test_underflow_is_exactly_zero(dtype):
    X = np.array([[0.0], [13.0], [37.0], [1e150]], dtype=np.float64)
    X = X.astype(dtype) if dtype is np.float64 else np.minimum(X, 1e30).astype(dtype)
    K = cdsk.gaussian_gram(X, 1.0)
    smallest = np.finfo(dtype).tiny
    assert ((K == 0) | (K >= smallest)).all()
    assert K[0, 3] == 0
    assert K[0, 1] == pytest.approx(np.exp(-84.5), rel=1e-6)


def test_rows_equal_gram_and_reference(rng, dtype):
    A, B = (
        rng.normal(size=(101, 7)).astype(dtype),
        rng.normal(size=(53, 7)).astype(dtype),
    )
    both = np.concatenate([A, B])
    K = cdsk.gaussian_gram(both, 0.9)
    assert (cdsk.gaussian_rows(A, B, 0.9) == K[:101, 101:]).all()
    a, b = rng.uniform(0.5, 2, size=101), rng.uniform(0.5, 2, size=53)
    assert_close_to_exact(
        cdsk.gaussian_rows(A, B, a, b), reference.gaussian_rows(A, B, a, b), dtype
    )


def test_rows_of_mixed_dtype_are_float64(rng):
    A, B = rng.normal(size=(5, 2)), rng.normal(size=(4, 2)).astype(np.float32)
    assert cdsk.gaussian_rows(A, B, 1.0).dtype == np.float64


def test_input_of_every_kind_gives_the_same(rng, tmp_path):
    X = rng.integers(-5, 5, size=(70, 3))
    expected = cdsk.gaussian_gram(X.astype(float), 2.0)
    read_only = X.astype(float)
    read_only.setflags(write=False)
    np.save(tmp_path / "X.npy", X.astype(float))
    kinds = {
        "integers": X,
        "lists": X.tolist(),
        "Fortran order": np.asfortranarray(X.astype(float)),
        "strided": np.repeat(X.astype(float), 2, axis=0)[::2],
        "read-only": read_only,
        "memory map": np.load(tmp_path / "X.npy", mmap_mode="r"),
    }
    for kind, data in kinds.items():
        assert (cdsk.gaussian_gram(data, 2.0) == expected).all(), kind


def test_out_is_filled_and_returned(rng):
    X = rng.normal(size=(60, 2))
    out = np.full((60, 60), np.nan)
    assert cdsk.gaussian_gram(X, 1.0, out=out) is out
    assert (out == cdsk.gaussian_gram(X, 1.0)).all()


@pytest.mark.parametrize(
    "out",
    [
        np.empty((60, 59)),
        np.empty((60, 60), dtype=np.float32),
        np.empty((60, 60), order="F"),
        [[0.0]],
    ],
)
def test_wrong_out_is_refused(rng, out):
    with pytest.raises(
        ValueError, match="out must be a writeable C-contiguous float64"
    ):
        cdsk.gaussian_gram(rng.normal(size=(60, 2)), 1.0, out=out)


@given(
    data=st.data(),
    n=st.integers(1, 60),
    d=st.integers(1, 9),
    scale=st.floats(1e-6, 1e6),
)
@settings(max_examples=60, deadline=None)
def test_gram_properties(data, n, d, scale):
    seed = data.draw(st.integers(0, 2**32 - 1))
    X = np.random.default_rng(seed).normal(size=(n, d)) * scale
    K = cdsk.gaussian_gram(X, scale)
    assert (K == K.T).all()
    assert (np.diag(K) == 1).all()
    assert ((K >= 0) & (K <= 1)).all()
    assert_close_to_exact(K, reference.gaussian_gram(X, scale), np.float64)
    order = np.random.default_rng(seed).permutation(n)
    assert (cdsk.gaussian_gram(X[order], scale) == K[np.ix_(order, order)]).all()
    # a power of two changes no digit
    assert (cdsk.gaussian_gram(X * 4, scale * 4) == K).all()


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 17, 515])
@pytest.mark.parametrize("m", [1, 2, 3, 5, 9, 66])
def test_product_leaves_out_the_diagonal(rng, dtype, n, m):
    K = rng.uniform(size=(n, n)).astype(dtype)
    K = K + K.T
    columns = rng.normal(size=(m, n))
    out = np.empty((m, n))
    _kernel.product(K, columns, out, 2)
    np.testing.assert_allclose(out, reference.product(K, columns), atol=1e-13 * n)


def test_product_does_not_lose_small_rows():
    # the rest of a row is far below the rounding of its diagonal entry
    K = np.eye(9)
    K[0, 5] = K[5, 0] = 1e-40
    out = np.empty((1, 9))
    _kernel.product(K, np.ones((1, 9)), out, 1)
    assert out[0, 0] == 1e-40
    assert out[0, 1] == 0


def test_similarity_equals_reference(rng, dtype):
    K = cdsk.gaussian_gram(rng.normal(size=(63, 3)).astype(dtype), 1.0)
    weights = rng.uniform(size=63)
    weights /= weights.sum()
    S, degrees = cdsk.similarity_matrix(K, weights, 0.2)
    S_reference, degrees_reference = reference.similarity(K, weights, 0.2 * 63)
    assert S.dtype == dtype
    np.testing.assert_allclose(S, S_reference, rtol=4 * np.finfo(dtype).eps)
    np.testing.assert_allclose(degrees, degrees_reference, rtol=1e-12)
    assert (S == S.T).all()
    assert (S >= 0).all()


def test_similarity_in_place(rng):
    K = cdsk.gaussian_gram(rng.normal(size=(20, 2)), 1.0)
    weights = np.full(20, 1 / 20)
    expected, _ = cdsk.similarity_matrix(K, weights, 0.5)
    S, _ = cdsk.similarity_matrix(K, weights, 0.5, out=K)
    assert S is K
    assert (S == expected).all()


@pytest.mark.parametrize("d", [3, 20, 300])
@pytest.mark.parametrize("n_new", [1, 48, 100])
@pytest.mark.parametrize("n_points", [1, 47, 48, 60])
def test_log_votes_equal_reference(rng, dtype, n_new, n_points, d):
    X = rng.normal(size=(n_new, d)).astype(dtype)
    points = rng.normal(size=(n_points, d)).astype(dtype)
    weights = rng.uniform(0.1, 1, size=n_points)
    labels = np.sort(rng.integers(3, size=n_points))
    out = log_votes(X, points, weights, labels, d**0.5)
    expected = reference.log_votes(X, points, labels, weights, d**0.5, 3).astype(float)
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-13)


def log_votes(X, points, weights, labels, bandwidth):
    out = np.empty((len(X), 3))
    _kernel.gaussian_log_votes(
        X,
        points,
        np.full(len(X), bandwidth),
        np.full(len(points), bandwidth),
        weights,
        np.searchsorted(labels, np.arange(4)),
        out,
        2,
    )
    return out


def test_log_votes_far_from_all_points():
    # the nearest point decides: -d^2/2, where every kernel value underflows
    X, points = np.array([[1e6]]), np.array([[0.0], [1.0]])
    out = log_votes(X, points, np.array([0.25, 0.75]), np.array([1, 1]), 1.0)
    assert out[0, 1] == pytest.approx(-((1e6 - 1) ** 2) / 2 + np.log(0.75), rel=1e-14)
    assert out[0, 0] == out[0, 2] == -np.inf


def points_near_and_far(rng, dtype, n, d=30):
    """Points within the limit of expanded distances of the origin, and beyond it."""
    X = rng.normal(size=(n, d)) + 100
    far = X[::7]
    far += rng.normal(size=far.shape) * 10 ** rng.uniform(0, 6, size=(len(far), 1))
    return X.astype(dtype)


@pytest.mark.parametrize("n", [5, 48, 131])
def test_rows_are_exact_near_and_far(rng, dtype, n):
    A = points_near_and_far(rng, dtype, n)
    B = (rng.normal(size=(70, 30)) + 100).astype(dtype)
    assert_close_to_exact(
        cdsk.gaussian_rows(A, B, 2.0), reference.gaussian_rows(A, B, 2.0, 2.0), dtype
    )
    a = 10 ** rng.uniform(-3, 2, size=n)
    assert_close_to_exact(
        cdsk.gaussian_rows(A, B, a, 2.0), reference.gaussian_rows(A, B, a, 2.0), dtype
    )


def test_narrow_points_amid_wide_ones_keep_their_digits(rng):
    # Bandwidths a million times smaller: centering would round the wide points.
    B = rng.normal(size=(60, 30)) + 100
    A = B + 1e-3 * rng.normal(size=B.shape)
    assert_close_to_exact(
        cdsk.gaussian_rows(A, B, 1e-6, 1.0),
        reference.gaussian_rows(A, B, 1e-6, 1.0),
        np.float64,
    )


def test_log_votes_are_exact_near_and_far(rng, dtype):
    X = points_near_and_far(rng, dtype, 100)
    points = (rng.normal(size=(90, 30)) + 100).astype(dtype)
    weights = rng.uniform(0.1, 1, size=90)
    labels = np.sort(rng.integers(3, size=90))
    out = log_votes(X, points, weights, labels, 2.0)
    exponent = reference.squared_distances(X, points) / 8
    expected = np.stack(
        [
            np.logaddexp.reduce(np.log(weights[own]) - exponent[:, own], axis=1)
            for own in (labels == y for y in range(3))
        ],
        axis=1,
    ).astype(float)
    np.testing.assert_allclose(out, expected, rtol=4e-15, atol=2e-13)


def test_rows_and_votes_do_not_depend_on_other_rows(rng, dtype):
    A = points_near_and_far(rng, dtype, 150)
    B = (rng.normal(size=(70, 30)) + 100).astype(dtype)
    weights, labels = np.full(70, 1 / 70), np.repeat([0, 1], 35)
    K = cdsk.gaussian_rows(A, B, 2.0)
    votes = log_votes(A, B, weights, labels, 2.0)
    for part in ([3], [0], np.arange(0, 150, 7), np.arange(40, 137)):
        assert (cdsk.gaussian_rows(A[part], B, 2.0) == K[part]).all()
        assert (log_votes(A[part], B, weights, labels, 2.0) == votes[part]).all()


def test_copies_of_support_points_have_similarity_one(rng, dtype):
    B = (rng.normal(size=(100, 30)) + 100).astype(dtype)
    assert (np.diag(cdsk.gaussian_rows(B, B, 2.0)) == 1).all()


def test_overflowing_distances_have_no_similarity():
    # 48 points: some of one tile can be expanded, some cannot, some overflow
    A = np.zeros((48, 20))
    A[5] = 1e200
    A[17] = -1.7e308
    A[40, 3] = 1e9
    B = np.ones((30, 20))
    K = cdsk.gaussian_rows(A, B, 3.0)
    assert (K[[5, 17, 40]] == 0).all()
    np.testing.assert_allclose(K[0], np.exp(-20 / 18), rtol=1e-14)
    labels, weights = np.zeros(30, dtype=int), np.ones(30)
    votes = log_votes(A, B, weights, labels, 3.0)[:, 0]
    assert (votes[[5, 17]] == -np.inf).all()
    assert votes[40] == pytest.approx(-((1e9 - 1) ** 2 + 19) / 18, rel=1e-14)


def test_hadamard_rows_equal_reference(rng, dtype):
    K = cdsk.gaussian_gram(rng.normal(size=(37, 3)).astype(dtype), 1.0)
    columns = rng.normal(size=(5, 37))
    rows = HadamardRows(StoredRows(K), columns, 2.5)
    expected = 2.5 * K.astype(float) * (columns.T @ columns)
    for i in (0, 17, 36):
        np.testing.assert_allclose(rows.row_array(i), expected[i], atol=1e-13)
    np.testing.assert_allclose(rows.diagonal, np.diag(expected), atol=1e-13)
    with pytest.raises(
        IndexError, match="Row 37 is out of range for a matrix of 37 rows"
    ):
        rows.row_array(37)


def test_importing_leaves_floating_point_alone():
    # -ffast-math would flush these to zero in the whole process
    assert np.float64(1e-310) * np.float64(0.5) != 0
    assert np.float64(5e-324) > 0


@pytest.mark.parametrize("d", [784, 5000])
@pytest.mark.parametrize("kind", ["two levels", "zeros and ones"])
def test_long_sums_of_like_terms_keep_their_digits(rng, d, kind):
    if kind == "two levels":
        X = np.zeros((60, d))
        X[30:] = 1 / 3
        X += 1e-3 * rng.random((60, 1))
    else:
        X = (rng.random((60, d)) < 0.1).astype(float)
    exact = reference.squared_distances(X, X)
    bandwidth = float(np.sqrt(exact.max() / 120))  # exponents down to -60
    expected = np.exp(-exact / (2 * np.longdouble(bandwidth) ** 2))
    for K in (
        cdsk.gaussian_gram(X, bandwidth),
        cdsk.gaussian_rows(X, X, bandwidth),
    ):
        assert np.max(np.abs(K - expected) / expected) < 1e-12


@pytest.mark.parametrize("interval", [1e4, 1e5, 1e8])
def test_strips_change_no_bit(rng, watch_checks, interval):
    K, V = rng.random((300, 300)), rng.random((100, 300))
    A, B = rng.normal(size=(200, 20)), rng.normal(size=(300, 20))
    width_a, width_b = np.full(200, 5.0), rng.uniform(4.0, 6.0, size=300)
    alpha, offsets = rng.uniform(0.5, 1.0, size=300), np.array([0, 100, 100, 300])

    def results():
        product, gram = np.empty_like(V), np.empty((200, 200))
        rows, votes = np.empty((200, 300)), np.empty((200, 3))
        S, degrees = np.empty_like(K), np.empty(300)
        _kernel.product(K, V, product, 2)
        _kernel.gaussian_gram(A, width_a, gram, 2)
        _kernel.gaussian_rows(A, B, width_a, width_b, rows, 2)
        _kernel.gaussian_log_votes(A, B, width_a, width_b, alpha, offsets, votes, 2)
        _kernel.similarity(K, alpha, 2.0, S, degrees, 2)
        return product, gram, rows, votes, S, degrees

    with watch_checks(interval=1e9) as checks:
        expected = results()
    assert checks.n_checks == 6  # empty clusters are not computed
    with watch_checks(interval=interval):
        for found, whole in zip(results(), expected, strict=True):
            np.testing.assert_array_equal(found, whole)


def test_rows_and_votes_do_not_depend_on_strips(rng, watch_checks):
    A, B = rng.normal(size=(500, 80)), rng.normal(size=(300, 80))
    labels = np.sort(rng.integers(0, 3, size=300))
    offsets = np.searchsorted(labels, np.arange(4))
    width_a, width_b = np.full(500, 10.0), rng.uniform(8.0, 12.0, size=300)
    alpha = rng.uniform(0.5, 1.0, size=300)
    rows, votes = np.empty((500, 300)), np.empty((500, 3))
    arguments = width_b, alpha, offsets
    with watch_checks(interval=1e6) as checks:
        _kernel.gaussian_rows(A, B, width_a, width_b, rows, 2)
        _kernel.gaussian_log_votes(A, B, width_a, *arguments, votes, 2)
    assert checks.n_checks > 4
    for i in (0, 47, 48, 383, 384, 499):
        one = slice(i, i + 1)
        row, vote = np.empty((1, 300)), np.empty((1, 3))
        _kernel.gaussian_rows(A[one], B, width_a[one], width_b, row, 1)
        _kernel.gaussian_log_votes(A[one], B, width_a[one], *arguments, vote, 1)
        np.testing.assert_array_equal(rows[one], row)
        np.testing.assert_array_equal(votes[one], vote)
    expected = [np.log(rows[:, labels == y] @ alpha[labels == y]) for y in range(3)]
    np.testing.assert_allclose(votes, np.transpose(expected), rtol=1e-12)


# ---------------------------------------------------------------- damaged arguments


BAD_BANDWIDTHS = pytest.mark.parametrize("bad", [np.nan, np.inf, 0.0, -1.0, 1e-160])


@BAD_BANDWIDTHS
@pytest.mark.parametrize("d", [3, 20])
@pytest.mark.parametrize("which", ["gram", "rows a", "rows b", "votes a", "votes b"])
def test_bad_bandwidths_are_refused(rng, which, d, bad):
    A, B = rng.normal(size=(100, d)), rng.normal(size=(60, d))
    widths = {"a": np.ones(100), "b": np.ones(60)}
    widths[which[-1] if " " in which else "a"][50] = bad
    with pytest.raises(
        ValueError, match="Bandwidths must be finite and between 1e-150"
    ):
        if which == "gram":
            _kernel.gaussian_gram(A, widths["a"], np.empty((100, 100)), 1)
        elif which.startswith("rows"):
            _kernel.gaussian_rows(A, B, *widths.values(), np.empty((100, 60)), 1)
        else:
            _kernel.gaussian_log_votes(
                A,
                B,
                *widths.values(),
                np.ones(60),
                np.array([0, 30, 60]),
                np.empty((100, 2)),
                1,
            )


@pytest.mark.parametrize("where", ["a strip", "a cluster"])
def test_bad_bandwidths_are_refused_wherever_they_are(rng, watch_checks, where):
    A, B = rng.normal(size=(500, 3)), rng.normal(size=(60, 3))
    width_a, width_b = np.ones(500), np.ones(60)
    (width_a if where == "a strip" else width_b)[-1] = np.nan
    votes, offsets = np.empty((500, 2)), np.array([0, 59, 60])
    with (
        pytest.raises(ValueError, match="Bandwidths must be finite"),
        watch_checks(interval=1.0),
    ):
        _kernel.gaussian_log_votes(
            A, B, width_a, width_b, np.ones(60), offsets, votes, 1
        )


def test_bad_votes_are_refused(rng):
    A, B = rng.normal(size=(5, 3)), rng.normal(size=(4, 3))
    good = {
        "A": A,
        "B": B,
        "bandwidth_a": np.ones(5),
        "bandwidth_b": np.ones(4),
        "alpha": np.ones(4),
        "offsets": np.array([0, 2, 4]),
        "out": np.empty((5, 2)),
        "n_threads": 1,
    }
    _kernel.gaussian_log_votes(**good)
    for changed in (
        {"B": B[:, :2].copy()},
        {"bandwidth_a": np.ones(4)},
        {"bandwidth_b": np.ones(5)},
        {"alpha": np.ones(3)},
        {"out": np.empty((4, 2))},
        {"offsets": np.array([0, 4])},
        {"offsets": np.array([1, 2, 4])},
        {"offsets": np.array([0, 2, 5])},
        {"offsets": np.array([0, 5, 4])},
    ):
        with pytest.raises(ValueError, match="Inconsistent shapes of support points"):
            _kernel.gaussian_log_votes(**good | changed)
    for bad in (0.0, -1.0, np.nan, np.inf):
        alpha = np.array([1.0, 1.0, bad, 1.0])
        with pytest.raises(ValueError, match="Weights of support points must be"):
            _kernel.gaussian_log_votes(**good | {"alpha": alpha})


def test_no_points_are_no_error():
    none, some = np.empty((0, 3)), np.ones((2, 3))
    votes = np.empty((2, 2))
    _kernel.gaussian_rows(none, some, np.empty(0), np.ones(2), np.empty((0, 2)), 1)
    _kernel.gaussian_rows(some, none, np.ones(2), np.empty(0), np.empty((2, 0)), 1)
    offsets = np.zeros(3, dtype=np.intp)
    _kernel.gaussian_log_votes(
        some, none, np.ones(2), np.empty(0), np.empty(0), offsets, votes, 1
    )
    assert (votes == -np.inf).all()
