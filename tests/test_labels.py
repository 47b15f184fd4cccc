import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.cluster._spectral import cluster_qr
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_info, threadpool_limits

import cdsk
import reference
from cdsk import _spectral as _labels
from cdsk._operators.dense import DenseKernel
from cdsk._spectral import assign_labels, cut_ratios, fit_kmeans, seed_centers
from cdsk._validation import LABEL_METHODS


def embedded(rng, n_clusters=4, noise=0.1):
    """A rotated embedding near the axes, with its labels."""
    labels = np.concatenate([np.arange(n_clusters), rng.integers(n_clusters, size=96)])
    rows = np.eye(n_clusters)[labels] + noise * rng.normal(
        size=(len(labels), n_clusters)
    )
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rotation = np.linalg.qr(rng.normal(size=(n_clusters, n_clusters)))[0]
    return np.ascontiguousarray((rows @ rotation).T), labels


@pytest.mark.parametrize("method", ["kmeans", "cluster_qr", "discretize"])
def test_labels_are_found_and_numbered_in_order(rng, method):
    embedding, expected = embedded(rng)
    labels = assign_labels(embedding, method, n_init=10, random_state=0)
    assert adjusted_rand_score(expected, labels) == 1
    # the first four points are of clusters 0, 1, 2, 3, in this order
    assert (labels == expected).all()


@pytest.mark.parametrize("n_init", [1, 7])
def test_n_init_is_the_number_of_starts(rng, monkeypatch, n_init):
    starts = []

    def seed(*args):
        starts.append(args)
        return seed_centers(*args)

    monkeypatch.setattr(_labels, "seed_centers", seed)
    assign_labels(embedded(rng)[0], "kmeans", n_init=n_init, random_state=0)
    assert len(starts) == n_init


@pytest.mark.parametrize(("n", "c"), [(2, 2), (40, 1), (90, 5), (300, 60)])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_starts_of_kmeans_equal_those_of_scikit_learn(rng, n, c, is_weighted):
    points = rng.normal(size=(n, 4)).round(1)  # some are equal
    weights = rng.uniform(size=n) if is_weighted else np.ones(n)
    for seed in range(5):
        states = np.random.RandomState(seed), np.random.RandomState(seed)
        expected, _ = kmeans_plusplus(
            points, c, sample_weight=weights, random_state=states[0]
        )
        found = seed_centers(points, c, states[1], weights)
        assert (found == expected).all()
        # as many random numbers were drawn
        assert states[0].randint(1000) == states[1].randint(1000)


def test_kmeans_equals_that_of_scikit_learn(rng):
    vectors, m = embedded(rng, noise=0.5)[0], rng.uniform(size=100)
    labels = assign_labels(vectors, "kmeans", n_init=4, random_state=0, multiplicity=m)
    model = KMeans(4, n_init=4, random_state=0).fit(vectors.T, sample_weight=m)
    assert adjusted_rand_score(model.labels_, labels) == 1


@pytest.mark.parametrize("n", [100, 60_000])  # of many it starts on a sample
def test_kmeans_of_fewer_places_than_clusters_does_not_warn(n):
    places = np.eye(3)[:, np.arange(n) % 2]
    labels = assign_labels(places, "kmeans", n_init=2, random_state=0)
    assert (labels == np.arange(n) % 2).all()


def test_cluster_qr_equals_scikit_learn(rng):
    # of unequal lengths, so that the pivots are not left to rounding
    embedding = embedded(rng, noise=0.4)[0] * rng.uniform(0.5, 1.0, size=100)
    labels = assign_labels(embedding, "cluster_qr", n_init=1, random_state=0)
    assert adjusted_rand_score(cluster_qr(embedding.T.copy()), labels) == 1


def test_kmeans_stays_on_the_calling_thread(rng, monkeypatch):
    X = rng.normal(size=(300, 3))

    class Recorded(KMeans):
        def fit(self, *args, **options):
            threads = threadpool_info()
            openmp = [pool for pool in threads if pool["user_api"] == "openmp"]
            assert {pool["num_threads"] for pool in openmp} == {1}
            return super().fit(*args, **options)

    with threadpool_limits(2, user_api="openmp"):
        expected = KMeans(4, n_init=2, random_state=0).fit(X).labels_
        found = fit_kmeans(Recorded(4, n_init=2, random_state=0), X).labels_
    assert (found == expected).all()


def test_warnings_of_kmeans_are_ignored_in_all_threads():
    # the filters of the process are restored by the last thread, not by the first
    X = np.repeat(np.eye(2), 30, axis=0)
    before, n = list(warnings.filters), 4
    all_inside = threading.Barrier(n)

    class Waiting(KMeans):
        def fit(self, *args, **options):
            all_inside.wait(60)
            return super().fit(*args, **options)

    def fit(seed):
        return fit_kmeans(Waiting(3, n_init=1, random_state=seed), X).labels_

    with ThreadPoolExecutor(n) as pool:
        for labels in pool.map(fit, range(n)):
            assert len(np.unique(labels)) == 2
    assert warnings.filters == before


def test_auto_has_the_smallest_cut(rng):
    K = cdsk.gaussian_gram(rng.normal(size=(120, 2)), 0.5)
    kernel = DenseKernel(K, 1)
    embedding = np.ascontiguousarray(
        reference.embedding(K, np.full(120, 1 / 120), 1, 4)[0]
    )
    labels = {
        method: assign_labels(
            embedding, method, n_init=1, random_state=0, kernel=kernel
        )
        for method in LABEL_METHODS
    }
    cuts = {
        method: reference.normalized_cut(K, found) for method, found in labels.items()
    }
    assert cuts["auto"] == min(cuts.values())
    assert len(set(cuts.values())) > 1


def test_cut_ratios_by_hand():
    # two pairs of similarity 1 within and 0.5 between one point of each
    K = np.eye(4)
    K[0, 1] = K[1, 0] = K[2, 3] = K[3, 2] = 1.0
    K[1, 2] = K[2, 1] = 0.5
    kernel = DenseKernel(K, 1)
    for labels, expected in (([0, 0, 1, 1], [0.2, 0.2]), ([0, 1, 0, 1], [1, 1])):
        np.testing.assert_allclose(cut_ratios(kernel, np.array(labels)), expected)
    np.testing.assert_allclose(cut_ratios(kernel, np.full(4, 3)), [0])


@pytest.mark.parametrize("method", ["cluster_qr", "discretize"])
def test_rounding_of_the_embedding_changes_no_label(rng, method):
    # unit rows are equally long: which is the first pivot must not be left to rounding
    embedding = np.repeat(embedded(rng, noise=0.3)[0], 3, axis=1)
    labels = assign_labels(embedding, method, n_init=1, random_state=0)
    for _ in range(5):
        other = embedding * (1 + 1e-9 * rng.normal(size=embedding.shape))
        other /= np.linalg.norm(other, axis=0)
        found = assign_labels(other, method, n_init=1, random_state=0)
        assert (found == labels).all()


@pytest.mark.parametrize("method", ["cluster_qr", "discretize"])
def test_multiplicity_equals_repetition(rng, method):
    embedding, _ = embedded(rng, noise=0.5)
    times = rng.integers(1, 5, size=100) ** 3
    how = {"n_init": 1, "random_state": 0}
    labels = assign_labels(embedding, method, multiplicity=times.astype(float), **how)
    copies = np.repeat(embedding, times, axis=1)
    assert (assign_labels(copies, method, **how) == np.repeat(labels, times)).all()
    # and they matter
    assert (assign_labels(embedding, method, **how) != labels).any()
