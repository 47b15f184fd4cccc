"""Kernel k-means is k-means on any vectors whose inner products are the kernel."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs, make_circles
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import cdsk
from cdsk.baselines import KernelKMeans
from cdsk.baselines._kernel_kmeans import kernel_kmeans, run_lloyd


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(120, 3, centers=4, cluster_std=2.5, random_state=8)[0]


def factor(K):
    """Return vectors whose inner products are K."""
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0))


def objective_of(K, labels):
    members = labels == np.unique(labels)[:, np.newaxis]
    return np.trace(K) - sum(K[np.ix_(m, m)].sum() / m.sum() for m in members)


def mean_vectors(points, labels):
    return np.array([points[labels == k].mean(axis=0) for k in np.unique(labels)])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("bandwidth", [1.0, 4.0, 50.0])
def test_iterations_are_those_of_kmeans_on_a_factor_of_the_kernel(
    blobs, bandwidth, seed
):
    K = cdsk.gaussian_gram(blobs, bandwidth)
    start = np.random.default_rng(seed).integers(0, 4, len(K))
    labels, history, converged = run_lloyd(K, start, 4)
    points = factor(K)
    peer = KMeans(4, init=mean_vectors(points, start), n_init=1, tol=0)
    assert (peer.fit_predict(points) == labels).all()
    assert history[-1] == pytest.approx(peer.inertia_, rel=1e-9)
    assert converged
    assert len(history) > 2


def test_with_inner_products_it_is_kmeans(blobs):
    X = blobs - blobs.mean(axis=0)
    found = kernel_kmeans(X @ X.T, 4, np.random.RandomState(0), n_init=20)
    peer = KMeans(4, n_init=20, random_state=0).fit(X)
    assert adjusted_rand_score(peer.labels_, found.labels) == 1
    assert found.history[-1] == pytest.approx(peer.inertia_, rel=1e-9)


def test_with_a_very_wide_kernel_it_is_kmeans(blobs):
    b = 1e4
    model = KernelKMeans(4, bandwidth=b, n_init=20, random_state=0).fit(blobs)
    peer = KMeans(4, n_init=20, random_state=0).fit(blobs)
    assert adjusted_rand_score(peer.labels_, model.labels_) == 1
    # 1 - K is |x_i - x_j|^2 / (2 b^2), with only a few digits left
    assert model.objective_ * b**2 == pytest.approx(peer.inertia_, rel=1e-4)


def test_circles_are_found_and_not_by_kmeans():
    X, y = make_circles(300, factor=0.2, noise=0.05, random_state=0)
    model = KernelKMeans(2, bandwidth=0.5, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1
    assert adjusted_rand_score(y, KMeans(2, random_state=0).fit_predict(X)) < 0.1


@pytest.mark.parametrize("bandwidth", ["variance", "neighbor", 0.7])
def test_the_objective_decreases_in_every_iteration(blobs, bandwidth):
    model = KernelKMeans(6, bandwidth=bandwidth, random_state=1).fit(blobs)
    assert model.history_.shape == (model.n_iter_,)
    assert (np.diff(model.history_) < 0).all()
    K = cdsk.gaussian_gram(blobs, model.bandwidth_)
    expected = objective_of(K, model.labels_)
    assert model.objective_ == model.history_[-1] == pytest.approx(expected, rel=1e-9)


def test_every_point_has_the_label_of_its_nearest_mean(blobs):
    model = KernelKMeans(5, bandwidth=2.0, random_state=1).fit(blobs)
    points = factor(cdsk.gaussian_gram(blobs, 2.0))
    means = mean_vectors(points, model.labels_)
    nearest = ((points[:, np.newaxis] - means) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == model.labels_).all()


def test_initializations(blobs):
    fits = [
        KernelKMeans(8, bandwidth=3.0, n_init=n, random_state=0).fit(blobs).objective_
        for n in (1, 20)
    ]
    assert fits[1] <= fits[0]
    K = cdsk.gaussian_gram(blobs, 3.0)
    rng = np.random.RandomState(0)
    seeded = [kernel_kmeans(K, 8, rng, n_init=1).history[0] for _ in range(20)]
    drawn = [run_lloyd(K, rng.randint(8, size=len(K)), 8).history[0] for _ in range(20)]
    assert np.mean(seeded) < 0.8 * np.mean(drawn)


@pytest.mark.parametrize("n_clusters", [3, 5])
def test_empty_clusters_are_filled_and_the_objective_decreases(blobs, n_clusters):
    K = cdsk.gaussian_gram(blobs, 2.0)
    labels, history, _ = run_lloyd(K, np.zeros(len(K), dtype=np.intp), n_clusters)
    assert len(np.unique(labels)) == n_clusters
    assert (np.diff(history) < 0).all()
    assert history[-1] == pytest.approx(objective_of(K, labels), rel=1e-9)


# fewer distinct points than clusters
@pytest.mark.filterwarnings("ignore:X has . distinct point")
def test_fewer_distinct_points_than_clusters():
    X = np.repeat([[0.0], [1.0], [5.0]], 4, axis=0)
    model = KernelKMeans(5, random_state=0).fit(X)
    assert (model.labels_ == np.repeat([0, 1, 2], 4)).all()
    assert model.objective_ == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("unit", [1e-100, 1e100])
def test_bandwidth_rules_scale_with_the_data(blobs, unit):
    labels = KernelKMeans(4, bandwidth="std", random_state=0).fit_predict(blobs)
    other = KernelKMeans(4, bandwidth="std", random_state=0).fit_predict(unit * blobs)
    assert (labels == other).all()


def test_convergence_warning(blobs):
    model = KernelKMeans(8, max_iter=1, n_init=1, random_state=0)
    with pytest.warns(ConvergenceWarning, match="did not converge in max_iter=1 iter"):
        model.fit(blobs)
    assert model.n_iter_ == 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"bandwidth": -1.0}, "bandwidth must be a number > 0; got -1.0"),
        (
            {"bandwidth": "local"},
            "bandwidth must be a number > 0 or one of .* got 'l",
        ),
        ({"n_init": 0}, "n_init must be an integer of at least 1"),
        ({"max_iter": 0}, "max_iter must be an integer of at least 1; got 0"),
    ],
)
def test_invalid_parameters(blobs, wrong, message):
    with pytest.raises(ValueError, match=message):
        KernelKMeans(2, **wrong).fit(blobs)
