# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the data and points of a fit."""

import warnings
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from cdsk import CDSK, select_lambda
from cdsk import _preprocessing as module
from cdsk._partition_choice import select_partition
from cdsk._preprocessing import Points, unique_rows
from cdsk._spectral import spectral_step
from cdsk._voting import compute_margins, leave_one_out_votes
from stages import candidates_of


def in_order(X):
    points = Points.from_distinct_rows(X)
    return points.spatially_sorted(points.X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_points_are_rows_in_another_order(dtype):
    X = np.random.default_rng(0).normal(size=(500, 3)).astype(dtype)
    points = in_order(X)
    assert points.X.dtype == dtype
    np.testing.assert_array_equal(np.sort(points.first_row), np.arange(500))
    np.testing.assert_array_equal(points.X, X[points.first_row])
    np.testing.assert_array_equal(points.X[points.inverse], X)


@pytest.mark.parametrize("make", [unique_rows, Points.from_rows_as_they_are])
def test_more_rows_than_int32_can_index_raise(make):
    X = SimpleNamespace(shape=(2**31, 1))  # refused before anything is read
    with pytest.raises(ValueError, match=r"fewer than 2\*\*31 rows; got 2,147,483,648"):
        make(X)


def test_neighbors_come_near_each_other():
    X = np.random.default_rng(0).normal(size=(5000, 2))
    points = in_order(X)

    def step(X):
        return np.median(np.linalg.norm(np.diff(X, axis=0), axis=1))

    assert step(points.X) < 0.1 * step(X)


def test_given_matrices_stay_as_they_are():
    matrix = np.random.default_rng(0).normal(size=(30, 30))
    points = Points.from_rows_as_they_are(matrix)
    assert points.X is matrix
    np.testing.assert_array_equal(matrix[points.first_row], matrix)


@pytest.fixture(scope="module")
def fitted():
    X, _ = make_moons(400, noise=0.06, random_state=0)
    return X, CDSK(2, qp_tol=1e-8, random_state=0).fit(X)


def test_a_fit_speaks_of_rows(fitted):
    """What it says of a row belongs to that row, wherever the row stands."""
    X, model = fitted
    shuffled = np.random.default_rng(1).permutation(len(X))
    other = CDSK(2, qp_tol=1e-8, random_state=0).fit(X[shuffled])
    for name in ("labels_", "weights_", "margins_", "bandwidth_", "embedding_"):
        ours, theirs = getattr(model, name)[shuffled], getattr(other, name)
        np.testing.assert_array_equal(theirs, ours, err_msg=name)
    np.testing.assert_array_equal(other.predict(X), model.predict(X))


def test_first_weights_are_those_of_rows():
    X, _ = make_moons(400, noise=0.06, random_state=0)
    first = np.where(X[:, 0] > 0.5, 3.0, 1.0)
    first /= first.sum()
    model = CDSK(2, init=first, bandwidth=0.3, max_iter=0, random_state=0).fit(X)
    np.testing.assert_allclose(model.weights_, first)


# ------------------------------------------------------------------ equal rows


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("collide", [False, True])
def test_equal_rows_are_those_of_numpy(dtype, collide, monkeypatch):
    if collide:
        monkeypatch.setattr(module, "_hash_rows", lambda X: np.zeros(len(X), np.uint64))
    X = np.random.default_rng(0).integers(-2, 3, size=(300, 3)).astype(dtype)
    X[X == 0] *= -1  # -0.0 is 0.0
    row_of, point_of = unique_rows(X)
    distinct, first, inverse = np.unique(
        X, axis=0, return_index=True, return_inverse=True
    )
    np.testing.assert_array_equal(np.sort(first), np.sort(row_of))
    np.testing.assert_array_equal(X[row_of][point_of], X)
    assert len(row_of) == len(distinct)
    np.testing.assert_array_equal(first[inverse.ravel()], row_of[point_of])


def test_small_whole_numbers_have_different_hashes():
    X = np.array(np.meshgrid(*3 * [np.arange(30.0)])).reshape(3, -1).T
    assert len(np.unique(module._hash_rows(np.ascontiguousarray(X)))) == len(X)


@pytest.fixture(scope="module")
def repeated():
    """Blobs whose rows come 0 to 4 times: the rows, and how often."""
    X, _ = make_blobs(150, centers=3, cluster_std=1.2, random_state=3)
    return X, np.random.default_rng(0).integers(0, 5, len(X))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bandwidth": 1.0},
        {"bandwidth": "local"},
        {"bandwidth": 2.0, "approximation": "lowrank"},
        {"kernel": "laplacian"},
        {"lam": "auto"},
        {"init": "sparse"},
    ],
    ids=lambda options: "-".join(map(str, options.values())) or "default",
)
def test_a_weight_is_a_number_of_rows(repeated, options):
    X, times = repeated
    options = {"random_state": 0, **options}
    weighted = CDSK(3, **options).fit(X, sample_weight=times)
    rows = np.repeat(np.arange(len(X)), times)
    copied = CDSK(3, **options).fit(X[rows])
    np.testing.assert_array_equal(weighted.labels_[rows], copied.labels_)
    np.testing.assert_allclose(weighted.weights_[rows], copied.weights_, rtol=1e-12)
    np.testing.assert_allclose(weighted.margins_[rows], copied.margins_, atol=1e-12)
    np.testing.assert_allclose(
        weighted.typicality_[rows], copied.typicality_, rtol=1e-12
    )
    np.testing.assert_allclose(copied.weights_.sum(), 1.0)
    assert not weighted.weights_[times == 0].any()
    new = X + 0.1
    np.testing.assert_array_equal(weighted.predict(new), copied.predict(new))
    np.testing.assert_allclose(
        weighted.score_samples(new), copied.score_samples(new), rtol=1e-10
    )


def test_the_report_counts_different_rows(repeated):
    X, _ = repeated
    model = CDSK(3, random_state=0).fit(np.concatenate([X, X[:30]]))
    assert model.n_distinct_ == len(X)
    report = " ".join(str(model.report()).split())
    assert "180 points (150 distinct), 2 features (raw)" in report
    assert "distinct" not in str(CDSK(3, random_state=0).fit(X).report())


def test_the_unit_of_weights_is_of_no_account(repeated):
    X, times = repeated
    one, ten = (
        CDSK(3, random_state=0).fit(X, sample_weight=unit * (times + 1.0))
        for unit in (1.0, 10.0)
    )
    np.testing.assert_array_equal(one.labels_, ten.labels_)
    np.testing.assert_allclose(10 * ten.weights_, one.weights_, rtol=1e-9)


def test_equal_rows_have_equal_labels(repeated):
    X = np.round(repeated[0])
    model = CDSK(3, random_state=0).fit(X)
    _, inverse = np.unique(X, axis=0, return_inverse=True)
    for point in range(inverse.max() + 1):
        assert len(set(model.labels_[inverse.ravel() == point])) == 1


@pytest.mark.parametrize("noise", [None, 0.01])
@pytest.mark.parametrize("how", [{}, {"bandwidth": 1.0}, {"kernel": "laplacian"}])
def test_zero_weight_rows_are_predicted_as_new_points(repeated, how, noise):
    X, times = repeated[0].copy(), repeated[1]
    none = times == 0
    far = np.flatnonzero(none)[0]
    X[far] = 1e6
    options = {"noise": noise, "random_state": 0, **how}
    model = CDSK(3, **options).fit(X, sample_weight=times)
    alone = CDSK(3, **options).fit(X[~none], sample_weight=times[~none])
    for name in ("labels_", "clusters_", "margins_", "typicality_", "weights_"):
        ours, theirs = getattr(model, name)[~none], getattr(alone, name)
        np.testing.assert_array_equal(ours, theirs, err_msg=name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of no similarity to any point
        np.testing.assert_array_equal(model.labels_[none], alone.predict(X[none]))
    assert model.labels_[far] == (-1 if noise else model.clusters_[far])
    assert model.typicality_[far] == 0.0
    assert not np.isin(np.flatnonzero(none), model.unconnected_).any()


def test_margins_without_a_weight_are_those_of_the_votes_of_all(repeated):
    X, _ = repeated
    times = np.random.default_rng(1).choice([0, 1, 1, 1, 2, 4], size=len(X))
    none = times == 0
    model = CDSK(3, bandwidth=1.5, random_state=0).fit(X, sample_weight=times)
    K = np.exp(-np.sum((X[:, np.newaxis] - X) ** 2, axis=-1) / (2 * 1.5**2))
    members = model.clusters_ == np.arange(3)[:, np.newaxis]
    votes = K @ (members * model.weights_ * times).T
    total = votes.sum(axis=1)
    lowest, second, first = np.sort(votes, axis=1).T
    expected = (first - second) / total
    np.testing.assert_allclose(model.margins_[none], expected[none], atol=1e-9)
    # all but one of the copies of a row vote for it
    others = np.repeat(total - model.weights_, times)
    expected = total / np.median(others)
    np.testing.assert_allclose(model.typicality_[none], expected[none], rtol=1e-9)
    assert lowest.max() > 0


def test_a_row_without_a_weight_that_equals_a_point_is_this_point():
    """What the votes say of it may be something else."""
    X, _ = make_moons(300, noise=0.25, random_state=0)
    model = CDSK(2, random_state=0).fit(X)
    assert (model.predict(X) != model.labels_).any()
    weights = np.append(np.ones(300), np.zeros(300))
    copies = CDSK(2, random_state=0).fit(np.tile(X, (2, 1)), sample_weight=weights)
    for name in ("labels_", "margins_", "typicality_"):
        first, second = np.split(getattr(copies, name), 2)
        np.testing.assert_array_equal(first, second)
        np.testing.assert_array_equal(first, getattr(model, name))


def test_the_similarity_of_rows_has_the_eigenvectors_of_the_embedding(repeated):
    X, times = repeated
    for weights in (None, times):
        model = CDSK(3, bandwidth=1.5, random_state=0).fit(
            np.repeat(X, 2, axis=0),
            sample_weight=None if weights is None else np.repeat(weights, 2),
        )
        A = model.similarity_operator() @ np.eye(2 * len(X))
        np.testing.assert_allclose(A, A.T, atol=1e-12)
        largest = np.linalg.eigvalsh(A)[::-1]
        np.testing.assert_allclose(largest[:3], model.eigenvalues_, atol=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {"bandwidth": 1.0},
        {"bandwidth": 1.0, "n_neighbors": 5},
        {"bandwidth": 2.0, "approximation": "lowrank"},
        {"kernel": "laplacian", "bandwidth": 1.0},
    ],
)
def test_kernels_with_multiplicity(options):
    rng = np.random.default_rng(0)
    X, multiplicity = rng.normal(size=(80, 2)), rng.uniform(1.0, 5.0, size=80)
    plain = candidates_of(X, **options)[0].kernel()
    heavy = candidates_of(X, **options, multiplicity=multiplicity)[0].kernel()
    K, M = plain.as_array(), heavy.as_array()
    np.testing.assert_array_equal(M, M.T)
    off = ~np.eye(80, dtype=bool)
    np.testing.assert_allclose(
        M[off], (K * np.outer(multiplicity, multiplicity))[off], rtol=1e-12
    )
    vectors = rng.normal(size=(3, 80))
    np.testing.assert_allclose(
        heavy.product(vectors),
        multiplicity * plain.product(multiplicity * vectors),
        atol=1e-9,
    )
    np.testing.assert_allclose(
        heavy.duplicate_similarity, multiplicity**2 * plain.duplicate_similarity
    )
    weights = rng.dirichlet(np.ones(80))
    ours, theirs = (kernel.similarity(weights, 1.0) for kernel in (heavy, plain))
    # M S M with its loops, normalized
    product = theirs.normalized_product(np.eye(80))
    S = product * np.sqrt(np.outer(theirs.degrees, theirs.degrees))
    S = S * np.outer(multiplicity, multiplicity)
    loops = np.zeros(80) if heavy.self_loops is None else heavy.self_loops
    S += np.diag(2 * (2 * weights - weights**2) * loops)
    np.testing.assert_allclose(ours.degrees, S.sum(axis=1), rtol=1e-9)
    expected = S / np.sqrt(np.outer(ours.degrees, ours.degrees))
    np.testing.assert_allclose(
        ours.normalized_product(np.eye(80)), expected, atol=1e-12
    )


@pytest.mark.parametrize("approximation", [None, "lowrank"])
def test_full_kernels_of_points_see_what_those_of_rows_see(approximation):
    """With uniform weights, eigenvalues are those of the similarity of all rows."""
    rng = np.random.default_rng(0)
    X, times = rng.normal(size=(40, 2)), rng.choice([1, 1, 1, 2, 4], size=40)
    X, options = np.repeat(X, times, axis=0), {"max_iter": 0, "random_state": 0}
    model = CDSK(3, bandwidth=1.0, approximation=approximation, **options).fit(X)
    S = np.exp(-0.5 * np.sum((X[:, np.newaxis] - X) ** 2, axis=-1))
    np.fill_diagonal(S, 0.0)
    root = 1.0 / np.sqrt(S.sum(axis=1))
    expected = np.linalg.eigvalsh(root[:, np.newaxis] * S * root)[::-1][:3]
    near = 1e-6 if approximation is None else 1e-3
    np.testing.assert_allclose(model.eigenvalues_, expected, atol=near)


@pytest.mark.parametrize("solver", ["block_lanczos", "multilevel", "eigsh", "dense"])
def test_heaps_of_copies_are_loops_of_a_graph(solver):
    rng = np.random.default_rng(0)
    X, multiplicity = rng.normal(size=(400, 2)), np.ones(400)
    multiplicity[::50] = 300.0
    options = {"n_neighbors": 9, "bandwidth": 1.0, "multiplicity": multiplicity}
    kernel = candidates_of(X, **options)[0].kernel()
    np.testing.assert_allclose(kernel.self_loops[::50], 300.0 * (299.0 - 9.0))
    assert np.count_nonzero(kernel.self_loops) == 8
    similarity = kernel.similarity(np.full(400, 1 / 400), 80.0)
    A = similarity.normalized_product(np.eye(400))
    np.testing.assert_allclose(A, A.T, atol=1e-14)
    assert (np.diagonal(A)[::50] > 0.1).all()
    step = spectral_step(similarity, 5, np.random.RandomState(0), solver=solver)
    expected = np.linalg.eigvalsh(A)[::-1][:5]
    np.testing.assert_allclose(step.eigenvalues, expected, atol=1e-8)


def test_margins_with_multiplicity_equal_those_of_copies():
    rng = np.random.default_rng(0)
    X, times = rng.normal(size=(40, 2)), rng.choice([1, 1, 1, 2, 4], size=40)
    rows = np.repeat(np.arange(40), times)
    labels, weights = rng.integers(0, 3, size=40), rng.dirichlet(np.ones(40))
    multiplicity = times.astype(float)
    merged = candidates_of(X, bandwidth=1.0, multiplicity=multiplicity)[0].kernel()
    copied = candidates_of(X[rows], bandwidth=1.0)[0].kernel()
    votes = leave_one_out_votes(merged, labels, weights, multiplicity)
    found = compute_margins(votes, labels, multiplicity)
    votes = leave_one_out_votes(copied, labels[rows], weights[rows])
    expected = compute_margins(votes, labels[rows])
    np.testing.assert_allclose(found[0][rows], expected[0], atol=1e-12)
    np.testing.assert_allclose(found[1][rows], expected[1], rtol=1e-12)


def test_votes_of_partitions_count_multiplicity():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 3, size=(2, 50))
    multiplicity = np.ones(50)
    plain = select_partition("ab", [a, b], 3)
    again = select_partition("ab", [a, b], 3, multiplicity=7.0 * multiplicity)
    np.testing.assert_allclose(plain.agreement[0, 1], adjusted_rand_score(a, b))
    np.testing.assert_allclose(again.agreement, plain.agreement)
    np.testing.assert_allclose(again.balance, plain.balance)
    # points of next to no mass do not count
    multiplicity[:25] = 1e-9
    light = select_partition("ab", [a, b], 3, multiplicity=multiplicity)
    np.testing.assert_allclose(
        light.agreement,
        select_partition("ab", [a[25:], b[25:]], 3).agreement,
        atol=1e-6,
    )


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(5), r"a number for each of the 60 rows of X; got shape \(5,\)"),
        (["a"] * 60, "got shape .* dtype <U1"),
        (np.append(np.ones(59), -1), "finite and not negative; got -1"),
        (np.append(np.ones(59), np.nan), "finite and not negative; got nan"),
        (np.append(np.ones(59), 1e-9), "differ by a factor of 1e.06 at most"),
        (np.full(60, 1e300), "between 1e-100 and 1e100"),
        (np.eye(60)[0], "must be positive for at least two rows; got 1"),
        (np.array(["1"] * 60, dtype=object), "got shape .* dtype object"),
        (np.array([1j] * 60, dtype=object), "must hold numbers; got 1j"),
        (np.array([None] * 60), "finite and not negative; got nan"),
        (np.ma.masked_less(np.arange(60), 3), "must not be a masked array"),
    ],
)
def test_bad_weights(weights, message):
    X = np.random.default_rng(0).normal(size=(60, 2))
    for use in (CDSK(2).fit, lambda X, **how: select_lambda(X, 2, **how)):
        with pytest.raises(ValueError, match=message):
            use(X, sample_weight=weights)


def test_numbers_in_an_array_of_objects_are_weights(repeated):
    X, times = repeated
    objects = np.array([Fraction(int(t)) if t > 2 else int(t) for t in times])
    assert objects.dtype == object
    ours, theirs = (
        CDSK(3, random_state=0).fit(X, sample_weight=weights).weights_
        for weights in (objects, times)
    )
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("light", [0.03, 1e-5])
def test_one_light_row_changes_little(light):
    X, _ = make_moons(400, noise=0.1, random_state=0)
    weights = np.ones(400)
    weights[200] = light
    plain = CDSK(2, random_state=0).fit(X)
    model = CDSK(2, random_state=0).fit(X, sample_weight=weights)
    others = weights == 1
    assert adjusted_rand_score(plain.labels_[others], model.labels_[others]) > 0.95


def test_multiplicity_adds_few_steps_to_the_weight_step():
    """A constant diagonal: the partner of a pair is found without a search."""
    X = np.random.default_rng(0).integers(0, 12, size=(3000, 3)).astype(float)
    points = Points.from_distinct_rows(X)
    kernel = candidates_of(
        points.X,
        n_neighbors=20,
        bandwidth="local",
        multiplicity=points.relative_multiplicity,
    )[0].kernel()
    assert kernel.multiplicity.max() > 2 * kernel.multiplicity.min()
    assert (kernel.diagonal == kernel.diagonal[0]).all()
    # and large enough
    assert np.linalg.eigvalsh(kernel.as_array())[0] > -1e-2 * kernel.diagonal[0]


def test_one_different_row_with_a_weight_is_one_cluster():
    X = np.array([[0.0], [0.0], [1.0], [2.0], [0.0]])
    with pytest.warns(ConvergenceWarning, match="X has 1 distinct point,"):
        model = CDSK(2).fit(X, sample_weight=[1, 2, 0, 0, 1])
    assert not model.labels_.any()
    np.testing.assert_allclose(model.weights_, [0.25, 0.25, 0, 0, 0.25])
    assert str(model.report()).startswith("CDSK: 4 points in 1 clusters")


def test_equal_rows_take_no_matrix_of_all_pairs():
    model = CDSK(1, random_state=0).fit(np.ones((10**6, 2)))
    assert not model.labels_.any()
    np.testing.assert_allclose(model.weights_, 1e-6)


def test_the_heaviest_cluster_counts_weights_of_rows():
    K = np.kron(np.eye(2), np.ones((30, 30)))[:40, :40]
    weights = np.where(np.arange(40) < 30, 1.0, 50.0)
    model = CDSK(2, kernel="precomputed", max_iter=0, random_state=0)
    model.fit(K, sample_weight=weights)
    with pytest.warns(UserWarning, match="cluster with the largest weight"):
        assert model.predict(np.zeros((1, 40))) == model.labels_[-1]


def test_weights_of_a_matrix_are_positive():
    K = np.ones((60, 60))
    weights = np.append(np.ones(59), 0.0)
    with pytest.raises(ValueError, match="Remove the row and the column"):
        CDSK(2, kernel="precomputed").fit(K, sample_weight=weights)
