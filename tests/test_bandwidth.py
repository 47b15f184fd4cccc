import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

import reference
from cdsk import CDSK
from cdsk._neighbors import Neighbors
from cdsk._pairwise import LOCAL_FACTOR, estimate_bandwidth
from cdsk._validation import BANDWIDTH_RULES


def local_bandwidth(X, new):
    return LOCAL_FACTOR * Neighbors(X).local_scales(new)


def distances(X):
    return np.sqrt(reference.squared_distances(X, X).astype(float))


def test_rules_by_definition(rng):
    X = rng.normal(size=(60, 3)) + 1e4
    d = distances(X)
    pairs = d[np.triu_indices(60, 1)]
    seventh = np.sort(d, axis=1)[:, 7]
    assert estimate_bandwidth(X, "neighbor") == pytest.approx(seventh.mean() / 2)
    assert estimate_bandwidth(X, "variance") == pytest.approx(pairs.var())
    assert estimate_bandwidth(X, "std") == pytest.approx(pairs.std())
    assert estimate_bandwidth(X, "median") == pytest.approx(np.median(pairs))
    np.testing.assert_allclose(estimate_bandwidth(X, "local"), seventh / 4)


def test_sampled_statistics_are_close(rng):
    X = rng.normal(size=(4500, 2))
    exact = pdist(X)
    assert estimate_bandwidth(X, "median") == pytest.approx(np.median(exact), rel=0.03)
    assert estimate_bandwidth(X, "std") == pytest.approx(exact.std(), rel=0.03)


@pytest.mark.parametrize("rule", ["neighbor", "std", "median", "local"])
def test_scale_free_rules_follow_the_unit(rng, rule):
    X = rng.normal(size=(50, 2))
    np.testing.assert_allclose(
        estimate_bandwidth(1000 * X, rule), 1000 * estimate_bandwidth(X, rule)
    )


def test_fewer_points_than_neighbors(rng):
    X = rng.normal(size=(4, 2))
    assert estimate_bandwidth(X, "neighbor") == pytest.approx(
        distances(X).max(1).mean() / 2
    )


def test_new_points_at_training_points_have_their_bandwidth(rng):
    X = rng.normal(size=(50, 2))
    expected = estimate_bandwidth(X, "local")
    assert (local_bandwidth(X, X[10:20]) == expected[10:20]).all()


def test_many_features_keep_a_point_at_distance_zero_of_itself(rng):
    # above 15 features scikit-learn's search expands the square
    X = rng.normal(size=(300, 40)).astype(np.float32) + 5
    expected = estimate_bandwidth(X, "local")
    assert (local_bandwidth(X, X) == expected).all()


def test_duplicates_get_a_positive_local_bandwidth(rng):
    X = np.concatenate([np.zeros((20, 2)), rng.normal(size=(20, 2)) + 5])
    local = estimate_bandwidth(X, "local")
    assert (local > 0).all()
    assert (local[:20] == local[20:].min()).all()
    # a new point in the heap is treated as an old one, alone or in company
    assert local_bandwidth(X, X[:1]) == local[0]
    assert (local_bandwidth(X, X) == local).all()


@pytest.mark.parametrize("rule", BANDWIDTH_RULES)
def test_constant_data_are_refused(rule):
    with pytest.raises(ValueError, match=r"bandwidth of zero .* all points are equal"):
        CDSK(2, bandwidth=rule).fit(np.ones((20, 3)))


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_rows_that_missing_cells_make_equal(container):
    X = container(np.array([[1.0, np.nan], [np.nan, 2.0], [1.0, 2.0]]))
    with pytest.raises(ValueError, match=r"bandwidth of zero .* all points are equal"):
        CDSK(1).fit(X)


def test_message_names_equal_distances_and_duplicates():
    corners = np.eye(10)
    with pytest.raises(ValueError, match="all pairwise distances are equal"):
        estimate_bandwidth(corners, "variance")
    many = np.zeros((40, 2))
    many[:9] = 1
    with pytest.raises(ValueError, match="more than half of all pairs are duplicates"):
        estimate_bandwidth(many, "median")
    # the distance to the only other point
    model = CDSK(2, bandwidth="neighbor").fit(many)
    assert model.bandwidth_ == pytest.approx(np.sqrt(2) / 2)


@pytest.mark.parametrize("rule", ["auto", *BANDWIDTH_RULES, 1.5])
def test_every_rule_clusters(rule):
    X, y = make_blobs(120, 2, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    model = CDSK(3, bandwidth=rule, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1
    assert np.all(np.asarray(model.bandwidth_) > 0)
