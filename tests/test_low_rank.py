"""The approximated Gaussian kernel, against K itself and scikit-learn's Nystroem."""

from itertools import permutations

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import chisquare
from sklearn.datasets import load_digits, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import KNeighborsTransformer

import cdsk
import reference
from cdsk import CDSK
from cdsk._operators import low_rank
from cdsk._operators.low_rank import (
    LowRankKernel,
    merge_components,
    pivoted_cholesky,
    select_pivots,
    truncate_rank,
)
from cdsk._qp import WeightProblem


def factor(K, most, tolerance=0.0, seed=0):
    def values(rows, columns=None):
        return K[rows] if columns is None else K[np.ix_(rows, columns)]

    rng = np.random.RandomState(seed)
    return pivoted_cholesky(values, len(K), most, tolerance, rng, 2)


def gram(rng, n=150, d=4, b=1.5):
    return cdsk.gaussian_gram(rng.normal(size=(n, d)), b)


def test_the_factor_reproduces_the_rows_of_its_pivots(rng):
    K = gram(rng, 300)
    found = factor(K, 140)  # more than a block
    approximation = found.F.T @ found.F
    assert len(np.unique(found.pivots)) == 140 == len(found.F)
    np.testing.assert_allclose(approximation[found.pivots], K[found.pivots], atol=1e-10)
    np.testing.assert_allclose(
        found.residual_diagonal, 1 - np.diagonal(approximation), atol=1e-12
    )
    # never above K
    assert np.linalg.eigvalsh(K - approximation).min() > -1e-10
    assert found.relative_error == pytest.approx(
        np.trace(K - approximation) / (len(K) - approximation.sum() / len(K))
    )


def test_pivots_are_drawn_as_one_after_the_other(rng):
    K = gram(rng, 4, 2)
    pairs = list(permutations(range(4), 2))
    expected = []
    for i, j in pairs:
        rest = 1 - K[i] ** 2
        expected.append(0.25 * rest[j] / rest.sum())
    draws = [tuple(factor(K, 2, seed=seed).pivots) for seed in range(500)]
    counts = [draws.count(pair) for pair in pairs]
    assert chisquare(counts, 500 * np.array(expected)).pvalue > 1e-3


def test_pivoting_stops_at_the_tolerance_or_at_rounding(rng):
    K = gram(rng, 400, 2)
    found = factor(K, 400, 0.05)
    assert found.relative_error <= 0.05
    assert len(found.F) < 60  # in two dimensions a few suffice
    exhausted = factor(K, 400)
    assert len(exhausted.F) < 400
    assert np.abs(exhausted.F.T @ exhausted.F - K).max() < 1e-9
    # what all points share does not count
    wide = 1 - 1e-6 * (1 - K)
    assert len(factor(wide, 400, 0.05).F) >= 0.5 * len(found.F)


def test_pivots_of_rounding_size_are_rejected(rng):
    square = np.diag([1.0, 1e-13, 0.5])
    kept, lower = select_pivots(square, np.random.RandomState(0))
    assert kept == [0, 2]
    np.testing.assert_allclose(lower, np.diag([1.0, 0.5**0.5]))
    assert select_pivots(np.full((3, 3), 1e-13), np.random.RandomState(0))[0] == []


def test_truncation_is_the_best_approximation_of_its_rank(rng):
    F = rng.normal(size=(12, 90)) * np.linspace(1, 3, 12)[:, np.newaxis]
    part = truncate_rank(F, 5, 2)
    _, values, right = np.linalg.svd(F, full_matrices=False)
    best = (right[:5].T * values[:5] ** 2) @ right[:5]
    np.testing.assert_allclose(part.T @ part, best, atol=1e-10)


def test_copies_of_a_point_give_one_pivot(rng):
    K = np.kron(gram(rng, 5, 2, 0.5), np.ones((30, 30)))
    found = factor(K, 150)
    assert len(found.F) == 5 == len(np.unique(found.pivots // 30))
    np.testing.assert_allclose(found.F.T @ found.F, K, atol=1e-12)


def test_merged_components_equal_connected_components(rng):
    rows = rng.uniform(size=(30, 80)) < 0.02
    rows[0, :5] = True
    labels = merge_components(np.arange(80), rows[rows.any(axis=1)])
    edges = sum(np.outer(row, row) for row in rows.astype(float))
    expected = reference.components(edges, np.full(80, 1 / 80), 1.0, 0.0)[1]
    pairs = set(zip(labels.tolist(), expected.tolist(), strict=True))
    assert len(pairs) == len(set(labels.tolist())) == len(set(expected.tolist()))


def kernel_of(X, bandwidth, rank=None, seed=0):
    return LowRankKernel(X, bandwidth, rank, seed, 2)


def test_kernel_interface(rng, dtype):
    X = rng.normal(size=(200, 3)).astype(dtype)
    kernel = kernel_of(X, 1.0, 50)
    K = kernel.submatrix(np.arange(200))
    assert (np.diagonal(K) == kernel.diagonal).all()
    np.testing.assert_allclose(kernel.diagonal, 1, atol=1e-12)
    assert np.linalg.eigvalsh(K).min() > -1e-12
    np.testing.assert_allclose(kernel.row(7), K[7], atol=1e-15)
    part = np.array([4, 1, 120])
    np.testing.assert_allclose(
        kernel.submatrix(part), K[np.ix_(part, part)], atol=1e-15
    )
    vectors = rng.normal(size=(3, 200))
    off_diagonal = K - np.diag(np.diagonal(K))
    np.testing.assert_allclose(
        kernel.product(vectors), vectors @ off_diagonal, atol=1e-12
    )
    np.testing.assert_allclose(kernel.row_sums, off_diagonal.sum(axis=1), atol=1e-12)
    exact = kernel.as_array()
    assert (exact == cdsk.gaussian_gram(X.astype(float), 1.0)).all()
    caught = kernel.approximation
    assert caught.rank == 50
    assert caught.trace_error == pytest.approx(
        1 - np.sum(np.square(kernel.F)) / 200, abs=1e-12
    )
    # of 40 000 entries 10 000 are looked at
    error = np.sort(np.abs(exact - K).ravel())
    assert error[-4000] < caught.largest_error <= error[-1] * (1 + 1e-9)


def test_similarity_equals_reference(rng):
    X = rng.normal(size=(90, 2))
    kernel = kernel_of(X, 1.0, 90)  # exact, so that no entry is negative
    weights = np.where(np.arange(90) < 60, 1 / 60, 0)
    penalty = 30.0
    K = cdsk.gaussian_gram(X, 1.0)
    vectors = rng.normal(size=(3, 90))
    for alpha in (weights, np.full(90, 1 / 90)):
        similarity = kernel.similarity(alpha, penalty)
        assert not similarity.isolated.any()
        A = reference.normalized(K, alpha, penalty)
        np.testing.assert_allclose(
            similarity.normalized_product(vectors), vectors @ A, atol=1e-8
        )
        points, candidates = np.arange(9), np.arange(9, 90)
        nearest = reference.squared_distances(X[points], X[candidates]).argmin(axis=1)
        assert (
            similarity.find_nearest(points, candidates) == candidates[nearest]
        ).all()


def test_points_that_are_not_resolved_are_isolated(rng):
    kernel, uniform = kernel_of(rng.normal(size=(200, 2)), 1.0), np.full(200, 1 / 200)
    assert not kernel.similarity(uniform, 40.0).isolated.any()
    # unlike all others, and like some as much as unlike others
    kernel.F[:, 0] = -0.3 * kernel.F[:, 1]
    share = kernel.row_sums[3] / kernel.row_sums[4]
    kernel.F[:, 2] = kernel.F[:, 3] - share * kernel.F[:, 4]
    kernel._factor_diagonal = np.sum(np.square(kernel.F), axis=0)
    similarity = kernel.similarity(uniform, 40.0)
    used = ~similarity.isolated
    assert np.flatnonzero(~used).tolist() == [0, 2]
    S = reference.similarity(kernel.submatrix(np.arange(200)), uniform, 40.0)[0]
    np.fill_diagonal(S, 0)
    part = S[np.ix_(used, used)].astype(float)
    # they do not count for the others
    np.testing.assert_allclose(similarity.degrees[used], part.sum(axis=1), rtol=1e-9)
    A = similarity.normalized_product(np.eye(200))
    assert not A[~used].any()
    np.testing.assert_allclose(A, A.T, atol=1e-12)
    root = np.where(used, np.sqrt(similarity.degrees), 0)
    np.testing.assert_allclose(root @ A, root, atol=1e-10)


def test_far_groups_are_components(rng):
    X = np.concatenate([rng.normal(size=(50, 2)), rng.normal(size=(60, 2)) + 1e3])
    X = np.concatenate([X, [[-1e4, 0]]])
    similarity = kernel_of(X, 2.0).similarity(np.full(111, 1 / 111), 22.2)
    count, labels = similarity.components()
    assert count == 3
    assert len(set(labels[:50])) == len(set(labels[50:110])) == 1
    assert np.flatnonzero(similarity.isolated).tolist() == [110]
    with pytest.warns(UserWarning, match="1 of 111 points have no similarity"):
        model = CDSK(2, bandwidth=2.0, approximation="lowrank", random_state=0).fit(X)
    assert model.labels_[:110].tolist() == [0] * 50 + [1] * 60
    assert model.unconnected_.tolist() == [110]


def test_closer_to_the_kernel_than_nystroem():
    X = load_digits().data[::3]
    b = 0.5 * np.median(pdist(X))
    K = cdsk.gaussian_gram(X, b)
    errors = np.empty((5, 2, 2))
    for seed in range(5):
        F = kernel_of(X, b, 60, seed).F
        theirs = Nystroem(gamma=0.5 / b**2, n_components=60, random_state=seed)
        Z = theirs.fit_transform(X)
        for which, approximation in enumerate((F.T @ F, Z @ Z.T)):
            error = K - approximation
            errors[seed, which] = np.trace(error), np.linalg.norm(error)
    ours, nystroem = errors.mean(axis=0)
    assert (ours < nystroem).all(), errors


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(700, 5, centers=4, cluster_std=2.0, random_state=0)


def fitted(X, **parameters):
    return CDSK(
        4, bandwidth=5.0, approximation="lowrank", random_state=0, **parameters
    ).fit(X)


def test_a_fit_is_near_that_of_the_kernel_itself(blobs, dtype):
    X, _ = blobs
    X = X.astype(dtype)
    exact = CDSK(4, bandwidth=5.0, random_state=0).fit(X)
    assert exact.approximation_ is None
    model = fitted(X)
    assert adjusted_rand_score(exact.labels_, model.labels_) > 0.98
    assert model.history_[-1] == pytest.approx(exact.history_[-1], rel=0.01)
    assert model.qp_gap_ <= 1e-4
    assert model.approximation_.rank < 350
    # more components, more of K
    finer = fitted(X, rank=500)
    assert finer.approximation_.rank == 500
    assert finer.approximation_.trace_error < model.approximation_.trace_error
    assert finer.approximation_.largest_error < 0.01
    assert finer.history_[-1] == pytest.approx(exact.history_[-1], rel=1e-4)


def test_votes_are_those_of_the_gaussian_itself(blobs):
    X, _ = blobs
    model, new = fitted(X), X[:40] + 0.1
    rows = cdsk.gaussian_rows(new, X, 5.0) * model.weights_
    votes = np.stack([rows[:, model.labels_ == y].sum(axis=1) for y in range(4)], 1)
    np.testing.assert_allclose(model.decision_function(new), np.log(votes), rtol=1e-10)


def test_the_same_bits_for_any_number_of_threads(blobs):
    one, two, three = (fitted(blobs[0], n_threads=n) for n in (1, 2, 3))
    for name in ("weights_", "embedding_", "labels_", "history_", "margins_"):
        expected = getattr(one, name)
        assert (getattr(two, name) == expected).all()
        assert (getattr(three, name) == expected).all()
    assert one.approximation_ == two.approximation_
    other = one.set_params(random_state=1).fit(blobs[0])
    assert other.approximation_ != two.approximation_


def test_report_shows_rank_and_errors(blobs, capsys):
    model = fitted(blobs[0], rank=90, verbose=1)
    assert "kernel 1 of 1: bandwidth 5" in capsys.readouterr().err
    text = " ".join(str(model.report()).split())
    caught = model.approximation_
    assert "Gaussian, bandwidth 5, low-rank approximation Rank 90; " in text
    assert f"relative trace error {caught.trace_error:.2g}, largest error of" in text
    assert f"10,000 random entries {caught.largest_error:.2g}" in text


# the far points of heavy tails: they are what is tested
@pytest.mark.filterwarnings("ignore:.*have no similarity")
def test_margins_stay_between_their_bounds():
    X = np.random.default_rng(1).standard_cauchy((500, 2))
    model = CDSK(
        3, bandwidth=1.0, approximation="lowrank", rank=20, random_state=1
    ).fit(X)
    assert len(model.unconnected_) > 0
    assert np.abs(model.margins_).max() <= 1
    assert model.typicality_.min() >= 0


@pytest.mark.parametrize("parameters", [{"lam": "auto"}, {"init": "sparse"}])
def test_compatible_parameters(blobs, parameters):
    model = fitted(blobs[0], **parameters)
    assert adjusted_rand_score(blobs[1], model.labels_) > 0.6
    assert model.similarity_operator().shape == (700, 700)
    assert model.generalization_bound().total > 0


def test_two_points_and_equal_points():
    X = np.zeros((30, 2))
    X[:10] = 1.0
    model = CDSK(2, bandwidth=0.5, approximation="lowrank", random_state=0).fit(X)
    assert len(set(model.labels_[:10])) == len(set(model.labels_[10:])) == 1
    assert model.labels_[0] != model.labels_[-1]
    assert model.approximation_.rank == 2
    assert model.approximation_.largest_error < 1e-12
    CDSK(1, bandwidth=1.0, approximation="lowrank", random_state=0).fit([[0.0], [1.0]])


def test_kernels_of_high_rank_warn(rng, monkeypatch):
    monkeypatch.setattr(low_rank, "MAX_COMPONENTS", 40)
    X = rng.normal(size=(300, 8))
    with pytest.warns(
        ConvergenceWarning,
        match=r"300 points .* 40 components miss .* at most 5.0%.*=None, .* 0.00072 GB",
    ) as caught:
        CDSK(2, bandwidth=2.0, approximation="lowrank", random_state=0).fit(X)
    # of the line that called fit
    assert {warning.filename for warning in caught} == {__file__}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"approximation": "nystroem"}, "approximation must be None or 'lowr"),
        ({"approximation": 3}, "approximation must be None or 'lowrank'"),
        ({"approximation": None, "rank": 0}, "rank must be an integer"),
        ({"rank": 0}, "rank must be an integer of at least 1; got 0"),
        ({"rank": 2.5}, "rank must be an integer"),
        ({"kernel": "linear"}, "kernel='linear' is not .*; expected 'rbf' for"),
        ({"bandwidth": "auto"}, "bandwidth='auto' is not .*; expected a number"),
        (
            {"bandwidth": "local"},
            "bandwidth='local' is not .*; expected a number",
        ),
        ({"n_neighbors": 5}, "n_neighbors=5 is not .*; expected None"),
        ({"neighbors": KNeighborsTransformer()}, "neighbors=KN.*expected None"),
        ({"psd": False}, "psd=False is not .*; expected None or True"),
    ],
)
def test_incompatible_parameters_are_refused(rng, parameters, message):
    parameters = {"bandwidth": 1.0, "approximation": "lowrank"} | parameters
    with pytest.raises(ValueError, match=message):
        CDSK(2, **parameters).fit(rng.normal(size=(20, 2)))


def test_too_little_memory_is_refused(rng, limit_memory):
    X = rng.normal(size=(2000, 3))
    limit_memory(20 * 10**6)
    with pytest.raises(MemoryError, match=r'float32 data.* approximation="lowrank"'):
        CDSK(2, bandwidth=1.0).fit(X)
    # ... which has room for that many
    CDSK(2, bandwidth=3.0, approximation="lowrank", random_state=0).fit(X)
    limit_memory(10**6)
    with pytest.raises(MemoryError, match=r"by \d+ components needs .*`rank`"):
        CDSK(2, bandwidth=3.0, approximation="lowrank").fit(X)


def test_submatrix_sums_over_all_chunks_of_components(rng, monkeypatch):
    monkeypatch.setattr(low_rank, "_CHUNK_COMPONENTS", 16)
    kernel = kernel_of(rng.normal(size=(200, 3)), 1.0, 50)
    points = np.array([3, 50, 51, 199])
    block = kernel.submatrix(points)
    expected = kernel.F[:, points].T @ kernel.F[:, points]
    np.fill_diagonal(expected, 1.0)
    np.testing.assert_allclose(block, expected, rtol=1e-12)
    assert (block == block.T).all()


def test_interrupt(rng, check_interruptible):
    X = rng.normal(size=(2000, 20))
    check_interruptible(lambda: kernel_of(X, 2.0, 100), interval=5e6)


def test_interrupt_in_the_weight_step(rng, check_interruptible):
    # narrow: many blocks, most points of which stay between the bounds
    kernel = kernel_of(rng.normal(size=(500, 20)), 2.0, 100)
    vectors = rng.normal(size=(3, 500))
    vectors /= np.linalg.norm(vectors, axis=0)
    problem = WeightProblem(kernel, vectors, 100.0)
    start = np.full(500, 1 / 500)

    def verify():
        assert (start == 1 / 500).all()

    check_interruptible(lambda: problem.solve(start, 1e-8), interval=3e5, verify=verify)
