"""BlockCDSK of tables with categories and missing cells: the same for any blocks."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist
from sklearn.metrics import adjusted_rand_score

from cdsk import CDSK, BlockCDSK
from cdsk import _columns as module
from cdsk._columns import Columns
from cdsk._missing import MissingCells
from cdsk._table import Table

N = 400
RNG = np.random.RandomState(0)
Y = RNG.randint(2, size=N)
HOW = {"n_clusters": 2, "n_landmarks": 60, "random_state": 0, "n_threads": 1}


def with_holes(values, share=0.1):
    cells = np.array(values, dtype=object)
    cells[RNG.rand(N) < share] = None
    return cells


FRAME = pd.DataFrame(
    {
        "price": with_holes(9.0 * Y + RNG.normal(size=N)).astype(float),
        "city": with_holes(np.array(["Rome", "Oslo", "Bern"])[Y + (RNG.rand(N) < 0.1)]),
        "sold": (RNG.rand(N) < 0.1) != (Y == 1),
        "area": Y + 0.3 * RNG.normal(size=N),
    }
)
HOLED = np.column_stack([with_holes(5.0 * Y + RNG.normal(size=N)) for _ in range(4)])
HOLED = HOLED.astype(float)
HOLED[np.isnan(HOLED).all(axis=1), 0] = 0.0


def fit(X, **parameters):
    return BlockCDSK(**(HOW | parameters)).fit(X)


def split(X, *cuts):
    ends = [0, *cuts, N]
    rows = getattr(X, "iloc", X)
    return [rows[a:b] for a, b in itertools.pairwise(ends)]


def assert_same_bits(found, expected, X):
    assert found.columns_ == expected.columns_
    for name in ("labels_", "landmarks_", "landmark_counts_"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    for method in ("decision_function", "predict_proba", "transform"):
        values = getattr(found, method)(X), getattr(expected, method)(X)
        np.testing.assert_array_equal(*values)


CUTS = [((), 2), ((1, 2, 399), 1), (tuple(range(7, N, 7)), 2)]


@pytest.mark.parametrize("X", [FRAME, HOLED], ids=["categories", "numbers"])
@pytest.mark.parametrize(("cuts", "n_threads"), CUTS)
def test_same_bits_for_any_blocks_and_threads(X, cuts, n_threads):
    expected = fit(X)
    assert_same_bits(fit(split(X, *cuts), n_threads=n_threads), expected, X)


@pytest.mark.parametrize("rows", [13, 4000])
def test_same_bits_for_any_size_of_parts(rows, monkeypatch):
    expected = fit(FRAME)
    monkeypatch.setattr("cdsk.blocks._passes.choose_part_rows", lambda work: rows)
    monkeypatch.setattr("cdsk.blocks._sources._MAX_PART_ROWS", rows)
    assert_same_bits(fit(FRAME), expected, FRAME)


def test_groups_are_found():
    assert adjusted_rand_score(Y, fit(HOLED).labels_) > 0.9
    assert adjusted_rand_score(Y, fit(FRAME, n_landmarks=None).labels_) > 0.7


def three_kinds():
    """Return a table of three groups that no column tells alone, and the groups."""
    rng = np.random.RandomState(1)
    y = rng.randint(3, size=600)
    city = np.where(rng.rand(600) < 0.85, y, rng.randint(3, size=600))
    table = {
        "height": 3 * y + rng.normal(size=600),
        "crown": 3 * (y == 1) + rng.normal(size=600),
        "city": np.array(["Rome", "Oslo", "Lima"])[city],
        "flag": rng.rand(600) < np.array([0.1, 0.5, 0.9])[y],
        "kind": np.array(list("abcdef"))[rng.randint(6, size=600)],
    }
    return pd.DataFrame(table), y


@pytest.mark.parametrize("method", ["kmeans", "uniform"])
def test_kernels_are_the_wide_ones_of_cdsk(method):
    X, y = three_kinds()
    model = BlockCDSK(3, landmarks=method, random_state=0).fit(X)
    # six categories that say nothing split the rows by nearest landmarks
    assert adjusted_rand_score(y, model.labels_) > 0.85
    names = CDSK(3, random_state=0).fit(X).choice_.names
    assert len(model.choice_.names) == len(names)
    assert all(name.startswith("bandwidth") for name in model.choice_.names)


def test_updates_keep_the_kernels_of_tables():
    X, y = three_kinds()
    model = BlockCDSK(3, random_state=0).fit(X[:400]).partial_fit(X[400:])
    assert all(name.startswith("bandwidth") for name in model.choice_.names)
    assert model.landmark_counts_.sum() == model.n_samples_ == 600
    assert adjusted_rand_score(y, model.predict(X)) > 0.85


def test_landmarks_of_all_rows_have_the_kernels_and_labels_of_cdsk():
    X, _ = three_kinds()
    how = {"n_landmarks": 600, "landmarks": "uniform", "representation": "indicators"}
    model = BlockCDSK(3, random_state=0, **how).fit(X)
    other = CDSK(3, random_state=0, representation="indicators").fit(X)
    assert sorted(model.choice_.names) == sorted(other.choice_.names)
    assert adjusted_rand_score(model.labels_, other.labels_) > 0.95


def test_missing_cells_are_told():
    X, y = three_kinds()
    X.loc[y == 1, "kind"] = None
    X.loc[::50, "height"] = np.nan
    with pytest.warns(UserWarning, match="missing cells of column 'kind'"):
        model = BlockCDSK(3, random_state=0).fit([X[:100], X[100:]])
    holes = model.missing_
    assert dict(zip(holes.names, holes.count, strict=True)) == X.isna().sum().to_dict()
    assert holes.n_rows == len(X)
    report = model.report()
    text = " ".join(str(report).split())
    n = X.isna().sum().sum()
    assert f"{n} of {X.size} cells are missing" in text
    assert f"kind ({(y == 1).sum()})" in text
    assert "600 rows, 5 features" in text
    assert "Numbers: height, crown; categories: city (3), flag (2), kind (6)" in text
    assert "they may tell who did not answer" in text
    data = report.to_dict()["data"]
    assert f"{data['n_features']} coordinates (raw)" in text


def test_association_is_that_of_the_labels_of_landmarks():
    model = fit(HOLED, n_landmarks=N, landmarks="uniform")
    rows = model.representation_.transform_validated(HOLED)
    nearest = cdist(rows, model.landmarks_).argmin(axis=1)
    labels = model.landmark_model_.labels_[nearest]
    expected = MissingCells.find(HOLED, (), labels)
    np.testing.assert_array_equal(model.missing_.count, expected.count)
    np.testing.assert_allclose(model.missing_.association, expected.association)


def test_missing_cells_of_updates_add_up():
    model = fit(HOLED[:200])
    model.partial_fit(HOLED[200:])
    np.testing.assert_array_equal(model.missing_.count, np.isnan(HOLED).sum(axis=0))
    assert model.missing_.n_rows == N
    assert fit(np.nan_to_num(HOLED)).missing_ is None


def test_a_frame_without_columns():
    with pytest.raises(ValueError, match="must have at least one column; got a frame"):
        fit(FRAME[[]])


def test_columns_are_those_of_cdsk():
    model = fit(split(FRAME, 100))
    assert model.columns_ == Columns.find(FRAME, "from_dtype")
    assert model.columns_ == CDSK(2, random_state=0).fit(FRAME).columns_
    assert model.feature_names_in_.tolist() == list(FRAME.columns)


def test_means_and_shares_are_those_of_the_rows():
    # all rows are in the sample
    coding = fit(split(FRAME, 100)).representation_.coding
    means = FRAME[["price", "area"]].mean()
    np.testing.assert_allclose(coding.mean[[0, 3]], means, rtol=1e-12)
    for j, name in ((1, "city"), (2, "sold")):
        shares = FRAME[name].value_counts(normalize=True).sort_index()
        np.testing.assert_allclose(coding.shares[j], shares, rtol=1e-12)


def test_missing_numbers_are_filled_as_by_cdsk():
    model = fit(HOLED, representation="standardize")
    filled = model.representation_.coding.transform(HOLED)
    known = ~np.isnan(HOLED)
    np.testing.assert_array_equal(filled[known], HOLED[known])
    np.testing.assert_array_equal(model.predict(filled), model.labels_)
    # within the spread of a group
    error = np.sqrt(np.mean((filled - 5.0 * Y[:, np.newaxis])[~known] ** 2))
    assert error < 1.5


def test_a_complete_fit_fills_new_rows_by_means():
    X = np.nan_to_num(HOLED)
    model, new, filled = fit(X), X.copy(), X.copy()
    new[:5, 1], filled[:5, 1] = np.nan, X.mean(axis=0)[1]
    np.testing.assert_array_equal(model.predict(new), model.predict(filled))


def test_files_of_parquet(tmp_path):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    expected = fit(FRAME)
    FRAME[:150].to_parquet(tmp_path / "0.parquet", row_group_size=40)
    FRAME[150:].to_parquet(tmp_path / "1.parquet")
    found = fit(tmp_path)
    assert_same_bits(found, expected, FRAME)
    assert found.feature_names_in_.tolist() == list(FRAME.columns)
    np.testing.assert_array_equal(found.predict(tmp_path), expected.labels_)


def test_polars_and_tables_without_pandas():
    expected = fit(FRAME)
    columns = {name: FRAME[name].to_list() for name in FRAME}
    arrays = [np.array(cells, dtype=object) for cells in columns.values()]
    arrays[0], arrays[3] = arrays[0].astype(float), arrays[3].astype(float)
    table = Table(list(columns), arrays)
    found = fit(table)
    assert found.columns_ == expected.columns_
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    np.testing.assert_array_equal(found.predict(table), expected.labels_)
    polars = pytest.importorskip("polars", reason="polars is not installed")
    frame = polars.from_pandas(FRAME)
    assert_same_bits(fit([frame[:90], frame[90:]]), expected, FRAME)


def test_codes_of_arrays_are_categories_if_told():
    codes = FRAME.assign(city=FRAME["city"].map({"Bern": 0, "Oslo": 1, "Rome": 2}))
    X = codes.to_numpy(dtype=float, na_value=np.nan)
    expected = fit(FRAME)
    found = fit(split(X, 80), categorical_features=[1, 2])
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    np.testing.assert_array_equal(found.landmarks_, expected.landmarks_)


def test_new_categories_are_counted_over_all_blocks():
    model, new, missing = fit(FRAME), FRAME.copy(), FRAME.copy()
    new.loc[[3, 300], "city"] = "Paris"
    missing.loc[[3, 300], "city"] = None
    with pytest.warns(UserWarning, match=r"2 cells .* in column 'city' \(2\)") as told:
        labels = model.predict(split(new, 50, 200))
    assert len(told) == 1
    np.testing.assert_array_equal(labels, model.predict(missing))


def test_columns_that_name_rows_are_left_out(monkeypatch):
    names = FRAME.assign(name=[f"row {i}" for i in range(N)])
    with pytest.warns(UserWarning, match="'name' of X has 400 different values in 400"):
        found = fit(split(names, 15, 90))
    expected = fit(FRAME)
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    monkeypatch.setattr(module, "MAX_CATEGORIES", 100)
    with pytest.warns(UserWarning, match="'name' of X has more than 100 different"):
        found = fit(split(names, 90, 180, 270))  # none of them has 100
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    alone = names[["price", "area", "name"]]
    with pytest.warns(UserWarning, match="names rows"):
        found = fit(alone, representation="standardize")
    expected = fit(FRAME[["price", "area"]], representation="standardize")
    np.testing.assert_array_equal(found.labels_, expected.labels_)


def test_values_of_blocks_do_not_depend_on_their_order():
    search = module.ColumnSearch.of(FRAME, "from_dtype")
    a, b, c = (
        search.count(part, first)
        for part, first in zip(split(FRAME, 50, 200), (0, 50, 200), strict=True)
    )
    merge, whole = search.merge, search.count(FRAME)
    for merged in (merge(merge(a, b), c), merge(c, merge(b, a)), merge(b, merge(c, a))):
        assert merged == whole
        for found, expected in zip(merged, whole, strict=True):
            assert found is None or list(found.counts) == list(expected.counts)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (
            ["a"] * 350 + [1] * 50,
            "one type .* 'wrong'; got 'a' at row 0 and 1 at row 350",
        ),
        ([0.5] * 350 + ["b"] * 50, "'wrong'; got 'b' at row 350 and 0.5 at row 0"),
        ([pd.Timestamp(0)] * N, "got times in column 'wrong'"),
        ([[1]] * N, r"one value per cell; got \[1\] in column 'wrong'"),
    ],
    ids=["text", "numbers", "times", "lists"],
)
def test_columns_of_other_things(column, message):
    frame = FRAME.assign(wrong=pd.Series(column, dtype=object))
    with pytest.raises(ValueError, match=message):
        fit(split(frame, 90, 320))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"missing": "error"}, r"NaN at row \d+, column '\w+' \(row \d+ of block 0\)"),
        ({"missing": "drop"}, "missing must be one of 'auto', 'error'"),
        ({"categorical_features": None}, "must hold numbers only; got text"),
        ({"categorical_features": ["none"]}, "categorical_features must be"),
        ({"representation": "whiten"}, "representation='whiten' .* is for numbers"),
    ],
)
def test_parameters_that_do_not_fit(parameters, message):
    with pytest.raises(ValueError, match=message):
        fit(split(FRAME, 200), **parameters)


def test_codings_are_for_categories():
    with pytest.raises(ValueError, match="'chi_square' is for tables"):
        fit(HOLED, representation="chi_square")
