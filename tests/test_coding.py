"""Coordinates of codes of categories, and which coding a fit takes."""

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from cdsk import CDSK, suggest_n_clusters
from cdsk._coding import CODINGS, Coding, fill_means, has_missing
from cdsk._columns import Columns

N = 240


@pytest.fixture
def table():
    """Return a table of numbers and categories in three groups, and the groups."""
    rng = np.random.RandomState(0)
    y = np.arange(N) % 3
    own = rng.rand(N) < 0.9
    city = np.array(["Rome", "Oslo", "Bern"])[np.where(own, y, rng.randint(3, size=N))]
    frame = pd.DataFrame(
        {
            "price": 100.0 * y + rng.normal(scale=20.0, size=N),
            "city": city,
            "sold": rng.rand(N) < 0.2 + 0.3 * y,
        }
    )
    return frame, y


def encode(frame, name):
    columns = Columns.find(frame, "from_dtype")
    X = columns.encode(frame)
    return X, Coding.fit(X, name, columns.n_categories)


@pytest.mark.parametrize("name", CODINGS)
def test_coding_by_its_definition(table, name):
    frame, _ = table
    X, coding = encode(frame, name)
    numbers = StandardScaler().fit_transform(frame[["price"]])
    blocks = [numbers]
    for column in ("city", "sold"):
        one_hot = OneHotEncoder(sparse_output=False).fit_transform(frame[[column]])
        p = one_hot.mean(axis=0)
        s = np.sum(p * (1 - p)) if name == "indicators" else p
        blocks.append((one_hot - p) / np.sqrt(s))
    expected = np.hstack(blocks)
    np.testing.assert_allclose(coding.transform(X), expected, atol=1e-12)


def test_variance_of_a_column(table):
    # that of one number, or of one less than its categories
    frame, _ = table
    for name, expected in (("indicators", [1, 1, 1]), ("chi_square", [1, 2, 1])):
        X, coding = encode(frame, name)
        variance = coding.transform(X).var(axis=0)
        parts = variance[:1], variance[1:4], variance[4:]
        np.testing.assert_allclose([part.sum() for part in parts], expected)


def test_a_missing_cell_is_the_mean(table):
    frame, _ = table
    frame = frame.astype(object)
    frame.iloc[5, 1] = None
    frame.iloc[7, 0] = np.nan
    X, coding = encode(frame.astype({"price": float}), "indicators")
    Z = coding.transform(X)
    assert (Z[5, 1:4] == 0).all()
    assert Z[7, 0] == 0
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-12)


def test_multiplicity_is_that_of_repeated_rows(table):
    frame, _ = table
    m = np.random.RandomState(0).randint(1, 4, N)
    for name in CODINGS:
        X, _ = encode(frame, name)
        weighted = Coding.fit(X, name, (None, 3, 2), m.astype(float))
        repeated = Coding.fit(np.repeat(X, m, axis=0), name, (None, 3, 2))
        np.testing.assert_allclose(weighted.transform(X), repeated.transform(X))


def test_categories_and_numbers_that_do_not_vary_say_nothing():
    X = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, np.nan]])
    Z = Coding.fit(X, "chi_square", (None, 1)).transform(X)
    assert (Z == 0).all()


@pytest.mark.parametrize("representation", ["auto", *CODINGS])
def test_groups_of_a_table_are_found(table, representation):
    frame, y = table
    model = CDSK(3, representation=representation, random_state=0).fit(frame)
    used = model.representation_
    assert used.name in CODINGS
    assert used.name == representation or set(used.scores) == set(CODINGS)
    agree = pd.crosstab(model.labels_, y).to_numpy().max(axis=1).sum()
    assert agree > 0.9 * N
    assert (model.predict(frame) == model.labels_).mean() > 0.95


def test_order_of_columns_and_names_of_categories_do_not_matter(table):
    frame, _ = table
    labels = CDSK(3, random_state=0).fit(frame).labels_
    renamed = frame.assign(city=frame["city"].map({"Rome": 7, "Oslo": 3, "Bern": 5}))
    model = CDSK(3, categorical_features=["city", "sold"], random_state=0)
    same = model.fit(renamed[["sold", "city", "price"]]).labels_
    assert len(np.unique(np.column_stack([labels, same]), axis=0)) == 3


def test_counting_of_a_table(table):
    frame, _ = table
    choice = suggest_n_clusters(frame, range(2, 6), random_state=0)
    assert choice.n_clusters == CDSK("auto", random_state=0).fit(frame).n_clusters_


def test_weights_are_repeated_rows(table):
    frame, _ = table
    w = np.random.RandomState(1).randint(1, 3, N)
    weighted = CDSK(3, random_state=0).fit(frame, sample_weight=w)
    repeated = CDSK(3, random_state=0).fit(frame.loc[frame.index.repeat(w)])
    np.testing.assert_array_equal(np.repeat(weighted.labels_, w), repeated.labels_)


def test_fill_means():
    X = np.array([[1.0, np.nan], [np.nan, 4.0]])
    assert has_missing(X)
    assert not has_missing(np.array([[1e308, 1e308, -1e308]]))
    np.testing.assert_array_equal(fill_means(X, np.array([7.0, 8.0])), [[1, 8], [7, 4]])


@pytest.mark.parametrize("name", CODINGS)
def test_the_rarest_of_many_categories_count_as_missing(name, monkeypatch):
    monkeypatch.setattr("cdsk._coding.MAX_CATEGORIES", 3)
    x = np.repeat([0.0, 1.0, 2.0, 3.0, 4.0], [9, 2, 5, 7, 1])[:, np.newaxis]
    missing = np.where(np.isin(x, [1, 4]), np.nan, x)
    rare = Coding.fit(x, name, (5,)).transform(x)
    np.testing.assert_allclose(rare, Coding.fit(missing, name, (5,)).transform(missing))
    assert rare.shape == (24, 3)
    assert (rare[np.isnan(missing[:, 0])] == 0).all()


def test_a_category_that_a_sample_lacks_counts_as_missing():
    coding = Coding.fit(np.array([[0.0], [2.0], [2.0]]), "indicators", (3,))
    assert (coding.transform(np.array([[1.0], [np.nan]])) == 0).all()


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1.0, 1e140])
@pytest.mark.parametrize("name", [*CODINGS, "fill"])
def test_coordinates_do_not_depend_on_the_unit(name, scale, rng):
    # a square of a tiny number is 0, and a scale of 0 made coordinates infinite
    X = rng.integers(-50, 50, size=(30, 2)) * scale
    X[3, 0] = np.nan
    coding = Coding.fit(X, name, [None, None])
    expected = (X - np.nanmean(X / scale, axis=0) * scale) / coding.scale
    assert np.isfinite(coding.transform(X)).all()
    assert (coding.scale[np.isfinite(coding.scale)] > 0).all()
    if scale > 1e-300:
        np.testing.assert_allclose(np.nanstd(expected, axis=0), 1.0)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_numbers_without_a_distance_are_refused(scale, rng):
    X = rng.normal(size=(40, 4)) * scale
    X[rng.random(X.shape) < 0.1] = np.nan
    with pytest.raises(ValueError, match="Use another unit"):
        CDSK("auto", random_state=0).fit(X)


def test_huge_numbers_beside_categories_are_refused(rng):
    X = np.column_stack([rng.integers(3, size=40), rng.normal(size=40) * 1e200])
    with pytest.raises(ValueError, match=r"magnitude 1\.0e\+150 at most"):
        CDSK(2, categorical_features=[0], random_state=0).fit(X)
