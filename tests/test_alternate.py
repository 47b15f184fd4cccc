"""The alternation: one round equals the reference, and what must hold for all."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import kneighbors_graph

import cdsk
import reference
from cdsk import CDSK
from cdsk import _eigensolvers as eigen
from cdsk import _spectral as embedding
from cdsk._alternation import alternate
from cdsk._operators.dense import DenseKernel
from stages import make_context


def run(K, n_clusters, lam, **options):
    """Of a kernel, or of a matrix."""
    kernel = DenseKernel(K, 2) if isinstance(K, np.ndarray) else K
    options = {"qp_tol": 1e-6, **options}
    report = options.pop("report", lambda round: None)
    progress = SimpleNamespace(verbose=1, iteration=report)
    context = make_context(n_clusters=n_clusters, lam=lam, **options)
    context = replace(context, progress=progress)
    return alternate(kernel, np.full(kernel.n, 1 / kernel.n), context)


def test_one_round_equals_the_reference():
    n, lam = 80, 0.3
    X = make_blobs(n, 2, centers=3, cluster_std=2.0, random_state=2)[0]
    K = cdsk.gaussian_gram(X, 1.5)
    fit = run(K, 3, lam, max_iter=1, tol=0.0, qp_tol=1e-9)
    assert fit.convergence_message.startswith(
        "The alternation did not converge in max_iter=1"
    )
    start = np.full(n, 1 / n)
    columns, _ = reference.embedding(K, start, lam * n, 3)
    Q, q = reference.weight_qp(K, columns, lam * n)
    assert fit.history[0] == pytest.approx(q @ start + start @ Q @ start)
    alpha = reference.smo(Q, q, 1 / (lam * n), 1e-9)
    np.testing.assert_allclose(fit.weights, alpha, atol=1e-6)
    columns, values = reference.embedding(K, alpha, lam * n, 3)
    Q, q = reference.weight_qp(K, columns, lam * n)
    assert fit.history[1] == pytest.approx(q @ alpha + alpha @ Q @ alpha, rel=1e-6)
    np.testing.assert_allclose(fit.embedding.eigenvalues, values[:3], atol=1e-6)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("lam", [0.1, 0.5])
def test_history_never_increases(seed, lam):
    X = make_blobs(150, 2, centers=4, cluster_std=2.5, random_state=seed)[0]
    rounds = []
    K = cdsk.gaussian_gram(X, 1.0)
    fit = run(K, 4, lam, tol=0.0, max_iter=30, report=rounds.append)
    assert len(fit.history) >= 2
    # what is returned is the last accepted round, whatever came after it
    last = [r for r in rounds if r.accepted][-1]
    assert (fit.qp_gap, fit.history[-1]) == (last.qp_gap, last.objective)
    assert fit.weights is last.weights
    assert (np.diff(fit.history) < 0).all()
    assert fit.n_iter in (len(fit.history) - 1, len(fit.history))


def test_no_rounds_keep_the_first_weights():
    X = make_blobs(60, 2, centers=2, random_state=0)[0]
    fit = run(cdsk.gaussian_gram(X, 1.0), 2, 0.3, max_iter=0)
    assert (fit.weights == 1 / 60).all()
    assert fit.n_iter == 0
    assert len(fit.history) == 1
    assert np.isnan(fit.qp_gap)


@pytest.mark.parametrize("n", [120, 600])
def test_uniform_weights_are_normalized_cut_spectral_clustering(n):
    # S = 2 (2/n - lam n / n^2) K is a multiple of K, so the embedding is that of K
    # itself
    X = make_blobs(n, 3, centers=4, cluster_std=2.0, random_state=5)[0]
    K = cdsk.gaussian_gram(X, 1.2)
    model = CDSK(4, bandwidth=1.2, lam=0.5, max_iter=0, random_state=0).fit(X)
    W = K - np.eye(n)
    degrees = W.sum(axis=1)
    values, vectors = np.linalg.eigh(W / np.sqrt(np.outer(degrees, degrees)))
    rows = vectors[:, -4:] / np.sqrt(degrees)[:, np.newaxis]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    np.testing.assert_allclose(model.eigenvalues_, values[:-5:-1], atol=1e-9)
    np.testing.assert_allclose(
        model.embedding_ @ model.embedding_.T, rows @ rows.T, atol=1e-4
    )
    labels = KMeans(4, n_init=10, random_state=0).fit_predict(rows)
    assert adjusted_rand_score(labels, model.labels_) == 1


def thin_cluster(sizes, gap=20.0, seed=0):
    """Blobs of unit variance far from each other, and their labels."""
    rng = np.random.RandomState(seed)
    y = np.repeat(np.arange(len(sizes)), sizes)
    X = rng.normal(size=(len(y), 2))
    X[:, 0] += gap * y
    return X, y


@pytest.mark.parametrize("sizes", [(1500, 15), (700, 70, 8)])
def test_no_component_loses_all_weight(default_kernels, sizes):
    X, _ = thin_cluster(sizes)
    n_refused = 0
    for kernel in default_kernels(X):
        rounds = []
        fit = run(kernel, len(sizes), 0.2, qp_tol=1e-4, report=rounds.append)
        n_refused += (
            not rounds[-1].accepted and rounds[-1].objective < rounds[-2].objective
        )
        first = run(kernel, len(sizes), 0.2, max_iter=0).embedding.component
        assert len(np.unique(first[first >= 0])) > 1
        for component in range(first.max() + 1):
            mine = first == component
            assert np.sum(mine) < 8 or fit.weights[mine].sum() > 0
    assert n_refused > 0  # what would have lowered the objective


def test_a_few_outliers_may_lose_theirs(default_kernels):
    X, y = thin_cluster((600, 5))
    fit = run(default_kernels(X)[1], 2, 0.2)
    assert len(fit.history) > 1
    assert (fit.weights[y == 1] == 0).all()


@pytest.mark.parametrize("sizes", [(4950, 50), (980, 25), (1000, 100, 30)])
@pytest.mark.parametrize("gap", [12, 20])
@pytest.mark.parametrize("seed", range(2))
def test_small_clusters_far_away_are_found(sizes, gap, seed):
    X, y = thin_cluster(sizes, gap, seed)
    model = CDSK(len(sizes), random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.99


@pytest.mark.parametrize("d", [4, 8])
def test_small_clusters_do_not_cost_the_right_view(d):
    # normal scores of a feature move a small cluster next to the large one
    X, y = thin_cluster((900, 60, 30))
    X = np.hstack([X, np.random.RandomState(1).normal(size=(len(X), d - 2))])
    model = CDSK(3, random_state=0).fit(X)
    assert model.representation_.view != "normal_scores"
    assert adjusted_rand_score(y, model.labels_) > 0.99


def test_rounds_are_reported():
    rounds = []
    X = make_blobs(80, 2, centers=2, cluster_std=3, random_state=0)[0]
    fit = run(cdsk.gaussian_gram(X, 1.0), 2, 0.3, report=rounds.append)
    assert [r.number for r in rounds] == list(range(fit.n_iter + 1))
    assert [r.objective for r in rounds if r.accepted] == fit.history
    assert all(np.count_nonzero(r.weights) <= 80 for r in rounds)


@pytest.mark.parametrize("n", [150, 600])
def test_permuting_the_samples_permutes_the_result(rng, n):
    X = make_blobs(n, centers=[[0, 0], [8, 0], [0, 8]], random_state=1)[0]
    order = rng.permutation(n)
    parameters = {"bandwidth": "neighbor", "qp_tol": 1e-8, "random_state": 0}
    one = CDSK(3, **parameters).fit(X)
    two = CDSK(3, **parameters).fit(X[order])
    assert adjusted_rand_score(one.labels_[order], two.labels_) == 1
    np.testing.assert_allclose(two.weights_, one.weights_[order], atol=1e-3 / n)
    np.testing.assert_allclose(one.history_, two.history_, rtol=1e-5)


@pytest.mark.parametrize("n_clusters", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("labels", ["kmeans", "cluster_qr"])
def test_disconnected_blobs_are_exact(n_clusters, labels):
    centers = 1e3 * np.arange(n_clusters)[:, np.newaxis] * [1.0, 0.5]
    X, y = make_blobs(40 * n_clusters, centers=centers, random_state=0)
    model = CDSK(n_clusters, bandwidth=1.0, assign_labels=labels, random_state=0)
    assert adjusted_rand_score(y, model.fit_predict(X)) == 1
    np.testing.assert_allclose(model.eigenvalues_, 1)


def test_learned_weights_fade_out_noise(rng):
    X, _ = make_blobs(300, centers=[[0, 0], [8, 0]], random_state=0)
    noise = rng.uniform(-6, 14, size=(60, 2))
    model = CDSK(2, bandwidth="neighbor", random_state=0)
    model.fit(np.concatenate([X, noise]))
    assert model.weights_[:300].mean() > 2 * model.weights_[300:].mean()


def test_an_unresolved_start_ends_the_alternation(rng, monkeypatch):
    # a kernel so narrow that eigenvalues crowd, and a single product to tell them apart
    monkeypatch.setattr("cdsk._eigensolvers.MAX_BLOCK_PRODUCTS", 1)
    K = cdsk.gaussian_gram(rng.uniform(size=(900, 2)), 0.03)
    fit = run(K, 6, 0.3)
    assert fit.embedding.convergence_message is not None
    assert fit.n_iter == 0
    assert (fit.weights == 1 / 900).all()
    assert re.search(
        r"spectral step .* residual .* after 1 products", fit.convergence_message
    )


def test_a_round_that_is_not_resolved_is_not_accepted(rng, monkeypatch):
    X = make_blobs(200, 2, centers=3, cluster_std=2.5, random_state=0)[0]
    K = cdsk.gaussian_gram(X, 1.0)
    expected = run(K, 3, 0.2, max_iter=0)
    solve, calls = eigen.leading_eigenpairs, []

    def fails_later(*args, **options):
        calls.append(1)
        found = solve(*args, **options)
        return found if len(calls) == 1 else replace(found, residuals=np.ones(3))

    monkeypatch.setattr(embedding, "leading_eigenpairs", fails_later)
    fit = run(K, 3, 0.2)
    assert len(calls) == 2
    assert fit.embedding.convergence_message is None
    assert "spectral step did not converge" in fit.convergence_message
    assert (fit.weights == expected.weights).all()
    assert fit.history == expected.history


def ring_with_outliers():
    """A blob in a ring, and three points far away: three clusters."""
    rng = np.random.RandomState(0)
    angle = rng.uniform(0, 2 * np.pi, 300)
    ring = 5 * np.column_stack([np.cos(angle), np.sin(angle)])
    ring += rng.normal(scale=0.2, size=ring.shape)
    far = 30 + np.array([[0.0, 0.0], [0.0, 0.5], [0.4, 0.0]])
    X = np.concatenate([rng.normal(scale=0.5, size=(200, 2)), ring, far])
    return X, np.repeat([0, 1, 2], [200, 300, 3])


def test_a_single_kernel_returns_to_its_initial_weights():
    X, y = ring_with_outliers()
    model = CDSK(3, bandwidth="neighbor", random_state=0).fit(X)
    uniform = CDSK(3, bandwidth="neighbor", max_iter=0, random_state=0).fit(X)
    assert model.weight_choice_.kept == "initial"
    assert model.weight_choice_.is_tree.tolist() == [False, True]
    assert adjusted_rand_score(y, model.labels_) == 1
    assert model.converged_
    assert model.n_iter_ > 0
    assert np.isnan(model.qp_gap_)
    for name in ("weights_", "embedding_", "eigenvalues_", "history_", "margins_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(uniform, name))
    assert (model.predict(X) == uniform.predict(X)).all()


def test_a_single_kernel_keeps_weights_that_fade_out_noise():
    X, y = make_blobs(
        540, centers=5, cluster_std=0.5, center_box=(-6, 6), random_state=1
    )
    noise = np.random.RandomState(0).uniform(X.min(0) - 3, X.max(0) + 3, (60, 2))
    X = np.concatenate([X, noise])
    model = CDSK(5, bandwidth="neighbor", random_state=0).fit(X)
    assert model.weight_choice_.kept == "learned"
    assert len(model.history_) > 1
    assert adjusted_rand_score(y, model.labels_[:540]) > 0.9
    model.set_params(max_iter=0).fit(X)
    assert model.weight_choice_ is None
    assert adjusted_rand_score(y, model.labels_[:540]) < 0.9


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"kernel": "laplacian"},
        {"bandwidth": 1.0, "approximation": "lowrank"},
        {"bandwidth": 1.0, "n_clusters": 1},
        {"bandwidth": 1.0, "init": "sparse"},
        {"bandwidth": 1.0, "init": np.full(500, 1 / 500)},
    ],
)
def test_weights_that_are_not_compared(options):
    X = ring_with_outliers()[0][:500]  # without outliers
    model = CDSK(**{"n_clusters": 3, "random_state": 0} | options).fit(X)
    assert model.weight_choice_ is None


@pytest.mark.parametrize("n_neighbors", [None, 10])
def test_equal_rows_count_where_weights_are_compared(n_neighbors):
    X, _ = ring_with_outliers()
    repeats = np.random.RandomState(0).randint(1, 4, len(X))
    options = {"bandwidth": 0.5, "n_neighbors": n_neighbors, "random_state": 0}
    repeated = CDSK(3, **options).fit(np.repeat(X, repeats, axis=0))
    weighted = CDSK(3, **options).fit(X, sample_weight=repeats)
    assert repeated.weight_choice_.kept == weighted.weight_choice_.kept
    np.testing.assert_array_equal(
        repeated.weight_choice_.mean_agreement, weighted.weight_choice_.mean_agreement
    )


def test_weights_of_few_points_and_of_a_graph():
    X, _ = ring_with_outliers()
    for n in (2, 3, 5, 10, 21):
        CDSK(2, bandwidth=1.0, random_state=0).fit(X[:n])
    graph = kneighbors_graph(X, 15, mode="distance")
    model = CDSK(3, kernel="precomputed_neighbors", bandwidth=0.5, random_state=0)
    assert model.fit(graph).weight_choice_ is not None
