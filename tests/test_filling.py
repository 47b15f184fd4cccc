"""Missing cells of numbers, filled from the nearest rows."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.impute import SimpleImputer
from sklearn.metrics.pairwise import nan_euclidean_distances

from cdsk import CDSK
from cdsk import _filling as module
from cdsk._filling import Filling


@pytest.fixture
def holed():
    """Return three groups in six features, complete and with holes."""
    X, y = make_blobs(300, 6, centers=3, cluster_std=0.3, random_state=0)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    holes = np.random.RandomState(0).rand(*Z.shape) < 0.2
    holes[holes.all(axis=1), 0] = False
    return Z, np.where(holes, np.nan, Z), y


def test_rows_of_groups_are_filled_by_their_group(holed):
    Z, H, y = holed
    filled = Filling.fit(H).fill(H)
    known = ~np.isnan(H)
    np.testing.assert_array_equal(filled[known], H[known])
    error = np.sqrt(np.mean((filled - Z)[~known] ** 2))
    by_mean = np.sqrt(np.mean((SimpleImputer().fit_transform(H) - Z)[~known] ** 2))
    assert error < 0.5 * by_mean
    within = np.sqrt(np.mean([np.var(Z[y == c], axis=0).mean() for c in range(3)]))
    assert error < 2.0 * within


def test_distances_are_those_of_common_cells(holed):
    _, H, _ = holed
    expected = nan_euclidean_distances(H[:20], H) ** 2 / H.shape[1]
    squares = Filling(H)._squared_distances(H[:20], 1)
    # no common cells: infinitely far, or NaN
    expected[np.isnan(expected)] = np.inf
    np.testing.assert_allclose(squares, expected, atol=1e-12)


def test_a_cell_is_the_mean_of_its_nearest_rows(monkeypatch):
    monkeypatch.setattr(module, "N_NEIGHBORS", 2)
    Z = np.array([[0.0, np.nan], [0.1, 1.0], [0.2, 3.0], [9.0, 50.0], [9.1, 70.0]])
    np.testing.assert_allclose(Filling.fit(Z).fill(Z)[0, 1], 2.0)


def test_complete_rows_stay_and_a_column_without_values_is_the_mean():
    Z = np.random.RandomState(0).normal(size=(20, 3))
    np.testing.assert_array_equal(Filling.fit(Z).fill(Z), Z)
    Z[:, 1] = np.nan
    assert (Filling.fit(Z).fill(Z)[:, 1] == 0).all()


@pytest.mark.parametrize("n_threads", [1, 2])
def test_rows_are_filled_one_by_one(holed, n_threads, monkeypatch):
    _, H, _ = holed
    filling = Filling.fit(H)
    whole = filling.fill(H, n_threads)
    parts = np.concatenate([filling.fill(row[np.newaxis]) for row in H])
    np.testing.assert_array_equal(parts, whole)
    monkeypatch.setattr(module, "_CHUNK_NUMBERS", 100)
    np.testing.assert_array_equal(filling.fill(H, n_threads), whole)


def test_many_rows_are_filled_from_a_sample(holed, monkeypatch):
    Z, H, _ = holed
    monkeypatch.setattr(module, "MAX_ROWS", 100)
    filling = Filling.fit(H)
    assert filling.rows.shape == (100, 6)
    missing = np.isnan(H)
    assert np.sqrt(np.mean((filling.fill(H) - Z)[missing] ** 2)) < 0.5


def test_a_fit_with_holes_is_that_of_its_filled_rows(holed):
    _, H, _ = holed
    model = CDSK(3, random_state=0).fit(H)
    coding = model.representation_.coding
    filled = coding.transform(H)
    known = ~np.isnan(H)
    np.testing.assert_array_equal(filled[known], H[known])
    np.testing.assert_array_equal(model.predict(filled), model.predict(H))
    assert (model.predict(H) == model.labels_).mean() > 0.98
