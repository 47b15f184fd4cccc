import numpy as np
import pytest
from scipy.spatial.distance import pdist
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

import reference
from cdsk import CDSK
from cdsk._kernels.bandwidth import LOCAL_FACTOR, RULES, bandwidth_from_data
from cdsk._kernels.neighbours import Neighbours


def local_bandwidth(X, new):
    return LOCAL_FACTOR * Neighbours(X).scales_of(new)


def distances(X):
    return np.sqrt(reference.squared_distances(X, X).astype(float))


def test_rules_by_definition(rng):
    X = rng.normal(size=(60, 3)) + 1e4
    d = distances(X)
    pairs = d[np.triu_indices(60, 1)]
    seventh = np.sort(d, axis=1)[:, 7]
    assert bandwidth_from_data(X, "neighbour") == pytest.approx(seventh.mean() / 2)
    assert bandwidth_from_data(X, "variance") == pytest.approx(pairs.var())
    assert bandwidth_from_data(X, "std") == pytest.approx(pairs.std())
    assert bandwidth_from_data(X, "median") == pytest.approx(np.median(pairs))
    np.testing.assert_allclose(bandwidth_from_data(X, "local"), seventh / 4)


def test_sampled_statistics_are_close(rng):
    X = rng.normal(size=(4500, 2))
    exact = pdist(X)
    assert bandwidth_from_data(X, "median") == pytest.approx(np.median(exact), rel=0.03)
    assert bandwidth_from_data(X, "std") == pytest.approx(exact.std(), rel=0.03)


@pytest.mark.parametrize("rule", ["neighbour", "std", "median", "local"])
def test_scale_free_rules_follow_the_unit(rng, rule):
    X = rng.normal(size=(50, 2))
    np.testing.assert_allclose(
        bandwidth_from_data(1000 * X, rule), 1000 * bandwidth_from_data(X, rule)
    )


def test_fewer_points_than_neighbours(rng):
    X = rng.normal(size=(4, 2))
    assert bandwidth_from_data(X, "neighbour") == pytest.approx(
        distances(X).max(1).mean() / 2
    )


def test_new_points_at_training_points_have_their_bandwidth(rng):
    X = rng.normal(size=(50, 2))
    expected = bandwidth_from_data(X, "local")
    assert (local_bandwidth(X, X[10:20]) == expected[10:20]).all()


def test_many_features_keep_a_point_at_distance_zero_of_itself(rng):
    # above 15 features scikit-learn's search expands the square
    X = rng.normal(size=(300, 40)).astype(np.float32) + 5
    expected = bandwidth_from_data(X, "local")
    assert (local_bandwidth(X, X) == expected).all()


def test_heaps_of_duplicates_get_a_positive_local_bandwidth(rng):
    X = np.concatenate([np.zeros((20, 2)), rng.normal(size=(20, 2)) + 5])
    local = bandwidth_from_data(X, "local")
    assert (local > 0).all()
    assert (local[:20] == local[20:].min()).all()
    # a new point in the heap is treated as an old one, alone or in company
    assert local_bandwidth(X, X[:1]) == local[0]
    assert (local_bandwidth(X, X) == local).all()


@pytest.mark.parametrize("rule", RULES)
def test_constant_data_are_refused(rule):
    with pytest.raises(ValueError, match=r"bandwidth of zero .* all points are equal"):
        CDSK(2, bandwidth=rule).fit(np.ones((20, 3)))


def test_equal_distances_and_duplicates_are_named():
    corners = np.eye(10)
    with pytest.raises(ValueError, match="all pairwise distances are equal"):
        bandwidth_from_data(corners, "variance")
    many = np.zeros((40, 2))
    many[:9] = 1
    with pytest.raises(ValueError, match="more than half of all pairs are duplicates"):
        bandwidth_from_data(many, "median")
    # the distance to the only other point
    model = CDSK(2, bandwidth="neighbour").fit(many)
    assert model.bandwidth_ == pytest.approx(np.sqrt(2) / 2)


@pytest.mark.parametrize("rule", ["auto", *RULES, 1.5])
def test_every_rule_clusters(rule):
    X, y = make_blobs(120, 2, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    model = CDSK(3, bandwidth=rule, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1
    assert np.all(np.asarray(model.bandwidth_) > 0)
