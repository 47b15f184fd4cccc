"""Tables with categories and missing cells: what is read from them, and refused."""

import datetime

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from cdsk import CDSK, _candidates
from cdsk._columns import Columns

N = 60
RNG = np.random.RandomState(0)
Y = np.arange(N) % 2
NUMBERS = 5.0 * Y + RNG.normal(size=N)
COLORS = np.where(RNG.rand(N) < 0.9, np.array(["red", "blue"])[Y], "green")


def in_pandas(**columns):
    return pd.DataFrame({"number": NUMBERS, "color": COLORS} | columns)


def in_polars(**columns):
    polars = pytest.importorskip("polars", reason="polars is not installed")
    data = {"number": NUMBERS, "color": COLORS.tolist()} | columns
    return polars.DataFrame({k: list(v) for k, v in data.items()}, strict=False)


each_library = pytest.mark.parametrize("frame_of", [in_pandas, in_polars])


def fit(X, **parameters):
    return CDSK(2, random_state=0, **parameters).fit(X)


# ------------------------------------------------------------------ what is read


@each_library
def test_kinds_of_columns(frame_of):
    frame = frame_of(flag=Y == 1, count=np.arange(N), city=[None, "x", "y"] * 20)
    columns = Columns.find(frame, "from_dtype")
    assert columns.names == ("number", "color", "flag", "count", "city")
    known = None, ("blue", "green", "red"), (False, True), None, ("x", "y")
    assert columns.categories == known
    X = columns.encode(frame)
    np.testing.assert_array_equal(X[:, 0], NUMBERS)
    np.testing.assert_array_equal(X[:, 2], Y)
    assert np.isnan(X[::3, 4]).all()
    assert not np.isnan(X[:, :4]).any()


def test_types_of_pandas_are_the_same_table():
    labels = fit(in_pandas()).labels_
    for color in (
        pd.Categorical(COLORS),
        pd.Categorical(COLORS, categories=["unused", "red", "green", "blue"]),
        pd.array(COLORS, dtype="string"),
        COLORS.astype(object),
    ):
        np.testing.assert_array_equal(fit(in_pandas(color=color)).labels_, labels)


def test_pandas_and_polars_agree():
    expected = fit(in_pandas())
    model = fit(in_polars())
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    np.testing.assert_array_equal(model.predict(in_polars()), model.labels_)


@pytest.mark.parametrize("told", [[1], [-1], [False, True], np.array([1])], ids=str)
def test_columns_of_an_array_are_told(told):
    codes = np.unique(COLORS, return_inverse=True)[1]
    expected = fit(in_pandas()).labels_
    for X in (
        np.column_stack([NUMBERS, codes]),
        np.column_stack([NUMBERS.astype(object), COLORS]),
        [[number, color] for number, color in zip(NUMBERS, COLORS, strict=True)],
    ):
        model = fit(X, categorical_features=told)
        np.testing.assert_array_equal(model.labels_, expected)
        np.testing.assert_array_equal(model.predict(X), expected)


@pytest.mark.parametrize(
    ("told", "got"),
    [(["none"], "'none'"), ([2], "2"), ([True], "mask of 1"), ("color", "'color'")],
)
def test_wrong_columns_are_refused(told, got):
    with pytest.raises(ValueError, match=f"categorical_features must be .*got .*{got}"):
        fit(in_pandas(), categorical_features=told)


@each_library
def test_columns_that_name_rows_are_left_out(frame_of):
    frame = frame_of(name=[f"row {i}" for i in range(N)], empty=[None] * N)
    with pytest.warns(UserWarning) as told:
        model = fit(frame)
    texts = " ".join(str(warning.message) for warning in told)
    assert "Column 'name' of X has 60 different values in 60 rows" in texts
    np.testing.assert_array_equal(model.labels_, fit(frame_of()).labels_)
    with pytest.warns(UserWarning), pytest.raises(ValueError, match="left out"):
        fit(in_pandas()[[]].assign(name=[f"row {i}" for i in range(N)]))


def test_numbers_and_names_are_a_table_of_numbers():
    frame = pd.DataFrame({"a": NUMBERS, "b": Y + 0.1 * RNG.normal(size=N)})
    expected = fit(frame, representation="standardize")
    named = frame.assign(name=[f"row {i}" for i in range(N)])
    with pytest.warns(UserWarning, match="names rows"):
        model = fit(named, representation="standardize")
    np.testing.assert_array_equal(model.weights_, expected.weights_)
    np.testing.assert_array_equal(model.predict(named), expected.predict(frame))


def test_many_categories_and_rare_ones():
    many = np.array([f"{i}" + "x" for i in range(300)])[RNG.randint(300, size=900)]
    number = np.repeat([0.0, 9.0], 450) + RNG.normal(size=900)
    frame = pd.DataFrame({"number": number, "many": many, "other": number > 4})
    model = fit(frame)
    assert len(model.columns_.categories[1]) > 255
    assert (model.predict(frame) == model.labels_).all()


def test_numbers_as_text_are_told():
    codes = in_pandas(code=["1", "2"] * (N // 2))
    model = fit(codes, categorical_features=["color", "code"])  # no warning
    assert model.columns_.categories[2] == ("1", "2")
    with pytest.warns(UserWarning, match=r"'code' of X holds numbers as text \('1"):
        fit(in_pandas(code=["1", "2"] * (N // 2)))


# ------------------------------------------------------------------ new rows


def test_new_categories_count_as_missing():
    model = fit(in_pandas())
    color = COLORS.copy().astype(object)
    color[:3] = "pink"
    missing = color.copy()
    missing[:3] = None
    with pytest.warns(UserWarning, match=r"3 cells .* in column 'color' \(3\)"):
        labels = model.predict(in_pandas(color=color))
    np.testing.assert_array_equal(labels, model.predict(in_pandas(color=missing)))


def test_counts_of_new_categories_are_those_of_all_rows(monkeypatch):
    model = fit(in_pandas())
    monkeypatch.setattr("cdsk._validation._CHUNK_ROWS", 7)
    with pytest.warns(UserWarning, match=r"60 cells .*'color' \(60\)") as told:
        model.predict(in_pandas(color=["pink"] * N))
    assert len(told) == 1


def test_other_columns_are_refused():
    model = fit(in_pandas())
    with pytest.raises(ValueError, match="in the same order"):
        model.predict(in_pandas()[["color", "number"]])
    with pytest.raises(ValueError, match="feature"):
        model.predict(in_pandas()[["number"]])
    with pytest.raises(ValueError, match=r"numbers in column 'number'; got 'a' at row"):
        model.predict(in_pandas(number=["a"] * N))


# ------------------------------------------------------------------ missing cells


def test_spellings_of_a_missing_cell():
    holes = NUMBERS.copy()
    holes[::7] = np.nan
    expected = fit(np.column_stack([holes, Y])).labels_
    nothing = [None if np.isnan(cell) else cell for cell in holes]
    masked = np.ma.masked_invalid(np.column_stack([holes, Y]))
    for X in (
        pd.DataFrame({"a": holes, "b": Y}),
        pd.DataFrame({"a": pd.array(nothing, dtype="Float64"), "b": Y}),
        pd.DataFrame({"a": np.array(nothing, dtype=object), "b": Y}),
        masked,
    ):
        np.testing.assert_array_equal(fit(X).labels_, expected)


def test_a_complete_fit_fills_new_rows_by_means():
    X = np.column_stack([NUMBERS, RNG.normal(size=N)])
    model = fit(X)
    new, filled = X.copy(), X.copy()
    new[:5, 1], filled[:5, 1] = np.nan, X[:, 1].mean()
    np.testing.assert_array_equal(model.predict(new), model.predict(filled))


def test_rows_without_values():
    X = np.column_stack([NUMBERS, Y.astype(float)])
    X[[3, 8]] = np.nan
    with pytest.raises(ValueError, match=r"got none in rows 3, 8 \(2 in all"):
        fit(X)
    model = fit(X, noise=0.01)
    assert (model.labels_[[3, 8]] == -1).all()
    rest = np.delete(X, [3, 8], axis=0)
    expected = fit(rest, noise=0.01)
    np.testing.assert_array_equal(np.delete(model.labels_, [3, 8]), expected.labels_)
    assert (model.predict(X)[[3, 8]] == -1).all()
    with pytest.raises(ValueError, match="got none in row 0"):
        fit(rest).predict([[np.nan, np.nan]])


def test_missing_cells_of_a_sparse_matrix():
    dense = RNG.rand(80, 30) * (RNG.rand(80, 30) < 0.3)
    dense[:40, 0] = 5.0
    X = sparse.csr_array(dense)
    holed = X.copy()
    holed.data[3] = np.nan
    column = X.indices[3]
    row = int(np.searchsorted(X.indptr, 3, "right")) - 1
    dense[row, column] = 0.0
    mean = dense[:, column].sum() / 79  # absent entries are zeros
    filled = X.copy()
    filled.data[3] = mean
    model = fit(holed)
    np.testing.assert_array_equal(model.labels_, fit(filled).labels_)
    np.testing.assert_array_equal(model.predict(holed), model.labels_)


def test_a_sparse_row_of_stored_missing_cells():
    X = sparse.lil_array(RNG.rand(N, 3) + 1.0)
    X[7] = np.nan
    X[8, :2] = np.nan
    X[9] = [0.0, np.nan, np.nan]  # an absent entry is 0, a value
    X = sparse.csr_array(X)
    with pytest.raises(ValueError, match=r"got none in row 7 \(1 in all"):
        fit(X)
    assert fit(X, noise=0.01).labels_[7] == -1


def test_infinity_stays_an_error():
    for X in (np.array([[1.0, np.inf]] * N), in_pandas(number=[np.inf] * N)):
        with pytest.raises(ValueError, match="infinity"):
            fit(X)


def test_infinity_is_named_by_its_column():
    crown = np.where(np.arange(N) == 7, np.inf, NUMBERS)
    frame = in_pandas(crown=crown)
    frame.insert(0, "name", [f"row {i}" for i in range(N)])  # left out
    with (
        pytest.warns(UserWarning, match="names rows"),
        pytest.raises(ValueError, match=r"infinity at row 7, column 'crown' \(1 in"),
    ):
        fit(frame)
    with pytest.raises(ValueError, match="infinity at row 7, column 0 "):
        fit(np.column_stack([crown, Y]), categorical_features=[1])


def test_names_are_kept_as_they_are():
    names = ["it's", "'quoted'", "a\\b", "two\nlines"]
    frame = in_pandas(**dict.fromkeys(names, COLORS))
    frame["it's"] = None
    frame["a\\b"] = np.where(Y == 1, None, COLORS)
    with pytest.warns(UserWarning) as found:
        model = fit(frame)
    assert model.columns_.names == ("number", "color", *names)
    assert any(repr("a\\b") in str(warning.message) for warning in found)
    assert "a\\b" in model.report().to_dict()["data"]["missing"]["count"]


def test_a_column_of_numbers_without_values_is_told():
    with pytest.warns(UserWarning, match="no values in column 'empty': no cluster"):
        model = fit(in_pandas(empty=np.nan))
    np.testing.assert_array_equal(model.labels_, fit(in_pandas()).labels_)


@pytest.mark.parametrize("dates", ["2021-01-{:02d}", "2021-01-{:02d}T10:00"])
def test_dates_as_text_are_told(dates):
    day = [dates.format(1 + i % 5) for i in range(N)]
    with pytest.warns(UserWarning, match="'day' of X holds dates as text .*days since"):
        fit(in_pandas(day=day))


def test_empty_frames():
    frame = in_pandas()
    for part, noun in ((frame[[]], "column"), (frame[:0], "row"), (frame[[]][:0], "c")):
        with pytest.raises(ValueError, match=f"at least one {noun}.* got a frame of"):
            fit(part)


def test_text_in_an_array_points_to_the_parameter():
    X = np.column_stack([NUMBERS, COLORS]).astype(object)
    with pytest.raises(ValueError, match=r"got .* Name columns of categories in `cat"):
        fit(X)


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([[1, 2]] * N, r"one value per cell; got \[1, 2\] in column 'wrong' at row 0"),
        (["a", 1] * (N // 2), "one type of values in column 'wrong'; got 'a' at row 0"),
        ([True, 2.5] * (N // 2), "'wrong'; got True at row 0 and 2.5 at row 1"),
        ([1, True] * (N // 2), "'wrong'; got True at row 1 and 1 at row 0"),
        ([None, 1, np.True_] * (N // 3), "'wrong'; got .*True.* at row 2 and 1 at row"),
        ([datetime.date(2026, 1, 1)] * N, "got times in column 'wrong'"),
        (pd.date_range("2026-01-01", periods=N), "got times in column 'wrong'"),
        ([object()] * N, "got no numbers in column 'wrong'"),
    ],
    ids=["lists", "mixed", "truth", "one", "numpy", "dates", "times", "objects"],
)
def test_columns_of_other_things(column, message):
    with pytest.raises(ValueError, match=message):
        fit(in_pandas(wrong=pd.Series(column, dtype=object)))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"representation": "whiten"}, "representation='whiten' .* is for numbers"),
        ({"metric": "cosine"}, "metric='cosine' is for numbers"),
        ({"missing": "drop"}, "missing must be one of 'auto', 'error'"),
        ({"categorical_features": None}, "must hold numbers only; got text"),
    ],
)
def test_parameters_that_do_not_fit(parameters, message):
    with pytest.raises(ValueError, match=message):
        fit(in_pandas(), **parameters)


def test_categories_of_other_data_are_refused():
    dense = np.column_stack([NUMBERS, Y]) + 10.0
    for X, how in (
        (sparse.csr_array(dense), {}),
        (dense @ dense.T, {"kernel": "precomputed"}),
    ):
        with pytest.raises(ValueError, match=r"categorical_features=\[1\] needs a fr"):
            fit(X, categorical_features=[1], **how)


def test_missing_is_checked_before_its_use():
    X = np.column_stack([NUMBERS, np.where(Y == 1, np.nan, 1.0)])
    with pytest.raises(ValueError, match="missing must be one of 'auto', 'error'"):
        fit(X, missing="foo")


def test_codings_are_for_categories():
    with pytest.raises(ValueError, match="'chi_square' is for tables"):
        fit(NUMBERS.reshape(-1, 1), representation="chi_square")


# ------------------------------------------------------------------ many rows


def test_large_tables_are_fitted_to_a_sample(monkeypatch):
    monkeypatch.setattr(_candidates, "MAX_TABLE_ROWS", 30)
    model = fit(in_pandas())
    assert np.count_nonzero(model.sample_weight_) == 30
    assert (model.predict(in_pandas()) == model.labels_).all()
    assert len(np.unique(np.column_stack([model.labels_, Y]), axis=0)) == 2
