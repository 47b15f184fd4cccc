"""Indefinite similarities: the split, and everything that is made of it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.datasets import make_blobs
from threadpoolctl import threadpool_limits

import cdsk
import reference
from cdsk import CDSK
from cdsk._operators import indefinite
from cdsk._operators.base import NEGLIGIBLE_EDGE
from cdsk._operators.dense import DenseKernel, DenseSimilarity
from cdsk._operators.indefinite import NEGLIGIBLE_EIGENVALUE
from cdsk._qp import WeightProblem
from cdsk._rows import StoredRows


def few_negative(rng, n, dtype=np.float64, r=3):
    """A non-negative matrix with unit diagonal and r or so large negative eigenvalues.

    A Gaussian kernel plus a bipartite graph within each of r groups.
    """
    K = cdsk.gaussian_gram(rng.normal(size=(n, 3)), 1.0)
    group = np.arange(n) % (2 * r)
    K += 0.5 * (group == group[:, np.newaxis] ^ 1)
    return K.astype(dtype)


def many_negative(rng, n, dtype=np.float64):
    """A truncated kernel: a large part of its spectrum is negative."""
    K = cdsk.gaussian_gram(rng.normal(size=(n, 2)), 1.0)
    # every point keeps its nearest neighbor
    nearest = np.sort(K, axis=1)[:, -2]
    kept = (K > 0.5) | (K == nearest) | (K == nearest[:, np.newaxis])
    return np.where(kept, K, 0.0).astype(dtype)


def general_kernel(K, n_threads=2):
    return DenseKernel(K, n_threads, psd=False)


def is_semidefinite(K):
    return indefinite._is_semidefinite_kernel(DenseKernel(K, 1))


def weights_in_box(rng, n, lam):
    weights = rng.uniform(size=n) * (rng.uniform(size=n) < 0.8)
    weights /= weights.sum()
    return np.minimum(weights, 1 / lam)


@pytest.mark.parametrize("make", [few_negative, many_negative])
def test_split_equals_the_eigendecomposition(rng, make, dtype):
    K = make(rng, 150, dtype)
    kernel = general_kernel(K)
    _, negative = reference.split(K)
    bound = K.sum(axis=1).max()
    values = np.linalg.eigvalsh(K.astype(float))
    factor = kernel.negative.factor
    assert len(factor) == (values < -NEGLIGIBLE_EIGENVALUE * bound).sum() > 0
    np.testing.assert_allclose(
        factor.T @ factor, negative, atol=NEGLIGIBLE_EIGENVALUE * bound
    )
    # K+ = K + K- has no negative eigenvalue but what was neglected
    assert (
        np.linalg.eigvalsh(K + factor.T @ factor)[0]
        > -1.1 * NEGLIGIBLE_EIGENVALUE * bound
    )


def test_both_methods_of_splitting_agree(rng, monkeypatch):
    K = few_negative(rng, 300)
    by_lapack = general_kernel(K).negative
    monkeypatch.setattr(indefinite, "_LAPACK_SIZE", 0)
    monkeypatch.setattr(indefinite, "_factor_by_lapack", None)  # must not be asked
    by_block = general_kernel(K).negative
    assert len(by_block.factor) == len(by_lapack.factor)
    np.testing.assert_allclose(
        by_block.factor.T @ by_block.factor,
        by_lapack.factor.T @ by_lapack.factor,
        atol=10 * indefinite._TOLERANCE * K.sum(axis=1).max(),
    )


def test_without_a_factorization_the_search_decides(rng, monkeypatch):
    monkeypatch.setattr(indefinite, "_LAPACK_SIZE", 0)
    monkeypatch.setattr(indefinite, "_MAX_DENSE_SIZE", 0)
    # what it is at 10,000 points, beyond which this is the case
    monkeypatch.setattr(indefinite, "_MIN_PRODUCTS", 2500)
    monkeypatch.setattr(indefinite, "_is_complete", None)
    K = few_negative(rng, 200)
    _, negative = reference.split(K)
    factor = general_kernel(K).negative.factor
    np.testing.assert_allclose(
        factor.T @ factor, negative, atol=NEGLIGIBLE_EIGENVALUE * K.sum(axis=1).max()
    )


def test_more_negative_eigenvalues_than_the_first_batch(rng, monkeypatch):
    monkeypatch.setattr(indefinite, "_LAPACK_SIZE", 0)
    monkeypatch.setattr(indefinite, "_factor_by_lapack", None)
    monkeypatch.setattr(indefinite, "_MIN_PRODUCTS", 100_000)
    K = many_negative(rng, 150)
    values = np.linalg.eigvalsh(K)
    expected = (values < -NEGLIGIBLE_EIGENVALUE * K.sum(axis=1).max()).sum()
    assert general_kernel(K).n_negative == expected > 8


def test_lapack_is_used_if_block_lanczos_is_slow(rng, monkeypatch):
    monkeypatch.setattr(indefinite, "_LAPACK_SIZE", 0)
    monkeypatch.setattr(indefinite, "_MIN_PRODUCTS", 24)
    K = many_negative(rng, 120)
    _, negative = reference.split(K)
    factor = general_kernel(K).negative.factor
    np.testing.assert_allclose(factor.T @ factor, negative, atol=1e-5)


@pytest.mark.parametrize("largest_dense", [6000, 0])
def test_semidefinite_or_not(rng, dtype, monkeypatch, largest_dense):
    monkeypatch.setattr(indefinite, "_MAX_DENSE_SIZE", largest_dense)
    X = rng.normal(size=(200, 3))
    for bandwidth in (0.1, 1.0, 30.0):
        K = cdsk.gaussian_gram(X.astype(dtype), bandwidth)
        assert is_semidefinite(K)
    # exactly singular
    assert is_semidefinite(np.ones((200, 200)))
    # one eigenvalue of -1 among 200 of 1
    K = np.eye(200, dtype=dtype)
    K[3, 4] = K[4, 3] = 2.0
    for matrix in (K, few_negative(rng, 200, dtype), many_negative(rng, 200, dtype)):
        assert not is_semidefinite(matrix)


def test_psd_decides_on_the_split(rng):
    K = many_negative(rng, 60)
    assert DenseKernel(K, 1, psd=True).n_negative == 0
    assert DenseKernel(K, 1, psd=None).n_negative > 0
    assert DenseKernel(K, 1, psd=False).n_negative > 0


@pytest.mark.parametrize("make", [few_negative, many_negative])
def test_absolute_rows_and_products(rng, make, dtype):
    K = make(rng, 90, dtype)
    kernel = general_kernel(K)
    positive, negative = reference.split(K)
    rows = kernel.absolute_rows()
    atol = 2 * NEGLIGIBLE_EIGENVALUE * K.sum(axis=1).max()
    for i in (0, 41, 89):
        np.testing.assert_allclose(
            rows.row_array(i), (positive + negative)[i], atol=atol
        )
    np.testing.assert_allclose(rows.diagonal, np.diag(positive + negative), atol=atol)
    vectors = rng.normal(size=(3, 90))
    np.testing.assert_allclose(
        kernel.negative.product(vectors),
        vectors @ (negative - np.diag(np.diag(negative))),
        atol=atol * 90,
    )


@pytest.mark.parametrize("make", [few_negative, many_negative])
def test_similarity_is_clipped_and_counted(rng, make, dtype):
    n, lam = 120, 36.0
    K = make(rng, n, dtype)
    weights = weights_in_box(rng, n, lam)
    similarity = DenseSimilarity(general_kernel(K), weights, lam)
    _, degrees, raw = reference.general_similarity(K, weights, lam)
    # entries of the size of what was neglected may fall on either side of 0
    noise = 4 * weights.max() * NEGLIGIBLE_EIGENVALUE * K.sum(axis=1).max()
    upper = raw[np.triu_indices(n, 1)]
    assert (upper < -noise).sum() <= similarity.n_clipped <= (upper < noise).sum()
    assert similarity.n_clipped > 0
    np.testing.assert_allclose(similarity.degrees, degrees, atol=n * noise)
    A = reference.general_normalized(K, weights, lam)
    vectors = rng.normal(size=(3, n))
    np.testing.assert_allclose(
        similarity.normalized_product(vectors), vectors @ A, atol=1e-3 * np.abs(A).max()
    )


def test_a_stored_negative_part_gives_the_same(rng, monkeypatch):
    n, lam = 90, 27.0
    K = many_negative(rng, n)
    weights, vectors = weights_in_box(rng, n, lam), rng.normal(size=(2, n))
    found = []
    for part in (0.0, 1.0):  # always stored, never stored
        monkeypatch.setattr(indefinite, "_STORED_SHARE", part)
        kernel = general_kernel(K, 1)
        similarity = DenseSimilarity(kernel, weights, lam)
        rows = kernel.absolute_rows()
        absolute = np.stack([rows.row_array(i) for i in range(n)])
        clipped = similarity.normalized_product(vectors)
        found.append((absolute, rows.diagonal, clipped, similarity.components()[1]))
    for stored, made in zip(*found, strict=True):
        np.testing.assert_allclose(stored, made, rtol=1e-12, atol=1e-12)


def test_components_of_the_clipped_graph(rng, monkeypatch):
    # two groups without similarity to each other, one of them indefinite
    n = 60
    K = np.zeros((n, n))
    K[:40, :40] = many_negative(rng, 40)
    K[40:, 40:] = cdsk.gaussian_gram(rng.normal(size=(20, 2)), 1.0)
    weights = np.full(n, 1 / n)
    similarity = DenseSimilarity(general_kernel(K), weights, 0.3 * n)
    S, degrees, _ = reference.general_similarity(K, weights, 0.3 * n)
    for negligible in (NEGLIGIBLE_EDGE, 1e-2, 0.1, 0.5):
        monkeypatch.setattr("cdsk._operators.dense.NEGLIGIBLE_EDGE", negligible)
        count, label = similarity.components()
        joined = S > negligible * np.minimum.outer(degrees, degrees)
        np.fill_diagonal(joined, True)
        reach = np.linalg.matrix_power(joined.astype(float), n) > 0
        assert count == len(np.unique(reach, axis=0)) > 1
        assert (reach == (label == label[:, np.newaxis])).all()


@settings(max_examples=60)
@given(st.integers(0, 2**31), st.floats(0.02, 1.0))
def test_pairs_that_are_never_clipped(seed, lam):
    # with weights up to 1 / lambda, S_ij >= 2 max(a_i, a_j) (K_ij - 2 K-_ij)
    rng = np.random.default_rng(seed)
    n = 25
    K = many_negative(rng, n)
    weights = weights_in_box(rng, n, lam * n)
    _, _, raw = reference.general_similarity(K, weights, lam * n)
    _, negative = reference.split(K)
    safe = K >= 2 * negative
    assert (raw[safe] >= -1e-14).all()
    kernel = general_kernel(K, 1)
    clipped = kernel.negative.clipped_entries(
        StoredRows(K), weights, lam * n, np.zeros(n)
    ).toarray()
    assert (clipped[K >= 2 * negative + 1e-5] == 0).all()
    assert (clipped == clipped.T).all()
    np.testing.assert_allclose(
        clipped, np.where(np.eye(n), 0, np.maximum(-raw, 0)), atol=1e-6
    )


@pytest.mark.parametrize("make", [few_negative, many_negative])
@pytest.mark.parametrize("lam", [0.1, 0.5])
def test_weight_step_is_the_convex_qp_of_the_absolute_kernel(rng, make, lam, dtype):
    n = 100
    K = make(rng, n, dtype)
    vectors = rng.normal(size=(3, n))
    vectors /= np.linalg.norm(vectors, axis=0)
    problem = WeightProblem(general_kernel(K), vectors, lam * n)
    Q, q = reference.general_weight_qp(K.astype(float), vectors, lam * n)
    assert np.linalg.eigvalsh(Q)[0] > -1e-12 * np.abs(Q).max()
    # K itself would not do
    assert np.linalg.eigvalsh(reference.weight_qp(K, vectors, lam * n)[0])[0] < -1e-2
    scale = np.abs(q).max()
    np.testing.assert_allclose(problem.q, q, atol=1e-10)
    alpha = weights_in_box(rng, n, lam * n)
    np.testing.assert_allclose(
        problem.q + 2 * problem.product(alpha), q + 2 * Q @ alpha, atol=1e-5 * scale
    )
    assert problem.objective(alpha) == pytest.approx(
        q @ alpha + alpha @ Q @ alpha, abs=1e-5 * scale
    )
    solution = problem.solve(np.full(n, 1 / n), 1e-6)
    gap = reference.kkt_gap(Q, q, solution.x, 1 / (lam * n))
    assert gap <= 2e-5 * scale


def test_weights_equal_those_of_another_solver(rng):
    n, lam = 15, 0.3 * 15
    K = many_negative(rng, n)
    vectors = rng.normal(size=(2, n))
    vectors /= np.linalg.norm(vectors, axis=0)
    Q, q = reference.general_weight_qp(K, vectors, lam)
    found = minimize(
        lambda a: q @ a + a @ Q @ a,
        np.full(n, 1 / n),
        jac=lambda a: q + 2 * Q @ a,
        bounds=[(0, 1 / lam)] * n,
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    problem = WeightProblem(general_kernel(K), vectors, lam)
    alpha = problem.solve(np.full(n, 1 / n), 1e-9).x
    assert q @ alpha + alpha @ Q @ alpha == pytest.approx(found.fun, abs=1e-5)


def results(model):
    return model.weights_, model.embedding_, model.labels_, model.history_


def test_psd_does_not_change_the_fit_of_a_semidefinite_kernel():
    X = make_blobs(300, 3, centers=3, cluster_std=2.0, random_state=0)[0]
    K = cdsk.gaussian_gram(X, 1.5)
    models = [
        CDSK(3, kernel="precomputed", psd=psd, random_state=0).fit(K)
        for psd in (True, False, None)
    ]
    assert all(model.n_negative_ == model.n_clipped_ == 0 for model in models)
    for model in models[1:]:
        pairs = zip(results(model), results(models[0]), strict=True)
        assert all((a == b).all() for a, b in pairs)


def test_a_round_of_an_indefinite_similarity_equals_the_reference():
    n, lam = 90, 0.3
    X = make_blobs(n, 2, centers=3, cluster_std=1.5, random_state=1)[0]
    K = cdsk.gaussian_gram(X, 2.0)
    K = np.where(K > 0.3, K, 0.0)
    model = CDSK(
        3, kernel="precomputed", lam=lam, qp_tol=1e-8, max_iter=1, tol=1e9,
        random_state=0,
    ).fit(K)  # fmt: skip
    assert model.n_negative_ > 5
    vectors, start = None, np.full(n, 1 / n)
    objectives = []
    for alpha in (start, model.weights_):
        _, degrees, _ = reference.general_similarity(K, alpha, lam * n)
        values, vectors = np.linalg.eigh(
            reference.general_normalized(K, alpha, lam * n)
        )
        rows = vectors[:, -3:] / np.sqrt(degrees)[:, np.newaxis]
        vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).T
        Q, q = reference.general_weight_qp(K, vectors, lam * n)
        objectives.append(q @ alpha + alpha @ Q @ alpha)
        if alpha is start:
            expected = reference.smo(Q, q, 1 / (lam * n), 1e-8)
    np.testing.assert_allclose(model.weights_, expected, atol=1e-2 / n)
    np.testing.assert_allclose(model.eigenvalues_, values[:-4:-1], atol=1e-5)
    np.testing.assert_allclose(model.history_, objectives, rtol=1e-4)


def test_indefinite_similarities_of_a_callable_and_local_bandwidths():
    X = make_blobs(200, 2, centers=3, random_state=0)[0]

    def truncated(A, B):
        K = cdsk.gaussian_rows(A, B, 1.0)
        return np.where(K > 0.02, K, 0.0)

    model = CDSK(3, kernel=truncated, random_state=0).fit(X)
    assert model.n_negative_ > 0
    assert (np.diff(model.history_) < 0).all()
    assert (model.predict(X) == model.labels_).mean() > 0.9
    assert CDSK(3, kernel=truncated, psd=True, random_state=0).fit(X).n_negative_ == 0


def test_local_bandwidths_are_split_only_on_demand(rng):
    # scales over many orders of magnitude make the kernel indefinite
    X = np.sort(rng.lognormal(sigma=2.0, size=(120, 1)), axis=0)
    local = {"bandwidth": "local", "random_state": 0}
    model = CDSK(2, **local).fit(X)
    values = np.linalg.eigvalsh(cdsk.gaussian_gram(X, model.bandwidth_))
    assert values[0] < -1e-4
    assert model.n_negative_ == 0
    model = CDSK(2, psd=False, **local).fit(X)
    bound = cdsk.gaussian_gram(X, model.bandwidth_).sum(axis=1).max()
    assert model.n_negative_ == (values < -NEGLIGIBLE_EIGENVALUE * bound).sum()
    # one bandwidth is never split
    assert CDSK(2, psd=False, bandwidth=1.0, random_state=0).fit(X).n_negative_ == 0


def test_points_without_neighbors_stay_unconnected(rng, monkeypatch):
    K = np.zeros((201, 201))
    K[:200, :200] = few_negative(rng, 200)
    K[200, 200] = 1.0
    monkeypatch.setattr(indefinite, "_LAPACK_SIZE", 0)
    monkeypatch.setattr(indefinite, "_factor_by_lapack", None)
    assert (general_kernel(K).negative.factor[:, 200] == 0).all()
    with pytest.warns(UserWarning, match="1 of 201 points have no similarity"):
        model = CDSK(2, kernel="precomputed", random_state=0).fit(K)
    assert model.n_negative_ > 0


@pytest.mark.parametrize("make", [few_negative, many_negative])
def test_threads_change_no_bit(rng, monkeypatch, make):
    monkeypatch.setattr(indefinite, "_LAPACK_SIZE", 100)
    K = make(rng, 300)
    found = []
    for n_threads in (1, 2, 3):
        # OpenBLAS of SciPy 1.14 crashes in cholesky if it is raised from 1 to 3
        with threadpool_limits(limits=min(n_threads, 2), user_api="blas"):
            kernel = general_kernel(K, n_threads)
            weights = weights_in_box(np.random.default_rng(0), 300, 90.0)
            similarity = DenseSimilarity(kernel, weights, 90.0)
            angle = np.linspace(0, 3, 300)
            vectors = np.stack([np.cos(angle), np.sin(angle)])
            product = similarity.normalized_product(vectors)
            problem = WeightProblem(kernel, vectors, 90.0)
            alpha = problem.solve(np.full(300, 1 / 300), 1e-6).x
        found.append((kernel.negative.factor, similarity.degrees, product, alpha))
    for other in found[1:]:
        assert all((a == b).all() for a, b in zip(other, found[0], strict=True))


def test_refused_with_figures_and_advice(rng, monkeypatch):
    # as above 10,000 points: the test and the search run as they do there
    monkeypatch.setattr(indefinite, "_MAX_DENSE_SIZE", 1000)
    monkeypatch.setattr(indefinite, "eigh", None)
    monkeypatch.setattr(indefinite, "_is_complete", None)
    vectors = 0
    product = DenseKernel.product

    def counted(self, rows):
        nonlocal vectors
        vectors += len(rows)
        return product(self, rows)

    monkeypatch.setattr(DenseKernel, "product", counted)
    K = cdsk.gaussian_gram(rng.normal(size=(1300, 2)), 0.5)
    K[K < 0.5] = 0.0
    message = (
        r"1300 points is not .* in 720 products with a vector.* about 0 s and "
        r"40,560,000 bytes.*at most 1000 points.*psd=True.*diagonal"
    )
    with pytest.raises(ValueError, match=message):
        CDSK(3, kernel="precomputed", random_state=0).fit(K)
    # the test of definiteness is a short search here, and each block is as wide as its
    # guesses and guards
    assert vectors <= 1.1 * indefinite._max_products(1300) + 50


def test_refused_for_lack_of_memory(rng, limit_memory):
    K = many_negative(rng, 100)
    limit_memory(1000)
    with pytest.raises(MemoryError, match=r"Testing if a similarity .*psd=True"):
        CDSK(3, kernel="precomputed").fit(K)
    with pytest.raises(MemoryError, match="Splitting an indefinite similarity"):
        CDSK(3, kernel="precomputed", psd=False).fit(K)


@pytest.mark.parametrize("psd", ["yes", 1, 0.5])
def test_bad_psd(rng, psd):
    with pytest.raises(ValueError, match="psd must be True, False or None; got"):
        CDSK(3, psd=psd).fit(rng.normal(size=(20, 2)))
