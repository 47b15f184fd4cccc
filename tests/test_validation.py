"""Bad input, one case each: what was wrong, what was expected, what was received."""

import numpy as np
import pytest
from scipy import sparse

import cdsk
from cdsk import CDSK

X = np.random.default_rng(0).normal(size=(30, 3))
K = cdsk.gaussian_gram(X, 1.0)


def changed(array, place, value):
    array = array.copy()
    array[place] = value
    return array


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            changed(X, ([5, 3], [0, 2]), -np.inf),
            r"^Input X contains infinity at row 3, column 2 \(2 in all\); expected .*$",
        ),
        (X.astype(str), None),
        (changed(X.astype(object), (4, 2), "blue"), "got 'blue' at row 4, column 2"),
        (
            [["1", "x"], ["2", "3"]],
            "X must hold numbers only; got 'x' at row 0, column 1",
        ),
        (X[:, 0], "Expected 2D array, got 1D array"),
        (np.empty((0, 3)), r"0 sample\(s\)"),
        (np.empty((30, 0)), r"0 feature\(s\)"),
        (X[:1], r"1 sample\(s\).*minimum of 2"),
        (
            X[:2],
            "n_clusters must be at most the number of samples; got n_clusters=3 and",
        ),
        (X + 1j, "Complex data not supported: X must hold real numbers.$"),
        (
            [[1.0, 2.0], [3.0]],
            "rows of the same length; got 2 cells at row 0 and 1 at row 1.$",
        ),
        ([[1.0, [2.0, 3.0]], [4.0, 5.0]], r"got \[2.0, 3.0\] at row 0, column 1"),
        ({"a": 1}, "X must hold numbers only; got {'a': 1}"),
        (np.zeros((3, 2), "M8[s]"), "numbers only; got datetime64.* days since the"),
        ("data.csv", "X must hold numbers only; got 'data.csv'"),
        (None, "Expected 2D array"),
    ],
)
def test_bad_data(data, message):
    model = CDSK(3, random_state=0)
    if message is None:  # numbers written as text are numbers
        assert (model.fit(data).labels_ == CDSK(3, random_state=0).fit(X).labels_).all()
    else:
        with pytest.raises(ValueError, match=message):
            model.fit(data)


def test_sparse_data():
    with pytest.raises(TypeError, match="Sparse data was passed"):
        cdsk.gaussian_gram(sparse.csr_array(X), 1.0)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_clusters": 0}, "n_clusters must be an integer of at least 1; got 0"),
        ({"n_clusters": 2.5}, "n_clusters must be an integer of at least 1; got 2.5"),
        ({"n_clusters": True}, "n_clusters must be an integer of at least 1; got True"),
        ({"n_clusters": 31}, "got n_clusters=31 and n_samples=30"),
        ({"lam": 0}, "lam must be a number > 0 and <= 1; got 0"),
        ({"lam": 1.01}, "lam must be a number > 0 and <= 1; got 1.01"),
        ({"lam": -0.3}, "lam must be a number > 0 and <= 1; got -0.3"),
        ({"lam": np.nan}, "lam must be a number > 0 and <= 1; got nan"),
        (
            {"lam": "0.3"},
            r"lam must be a number in \(0, 1\] or 'auto'; got '0.3'",
        ),
        ({"bandwidth": 0}, "bandwidth must be a number > 0; got 0"),
        ({"bandwidth": -2.0}, "bandwidth must be a number > 0; got -2.0"),
        ({"bandwidth": np.nan}, "bandwidth must be a number > 0; got nan"),
        ({"bandwidth": np.inf}, "bandwidth must be a number > 0; got inf"),
        (
            {"bandwidth": 1e-200},
            "bandwidth must be positive and finite .between 1e-150",
        ),
        (
            {"bandwidth": "wide"},
            "bandwidth must be a number > 0 or one of 'auto', 'neighbor', .*'wide'",
        ),
        ({"bandwidth": None}, "bandwidth must be a number > 0 or one of .*; got None"),
        ({"kernel": "rbg"}, "kernel must be one of 'rbf', 'precomputed', .* got 'rbg'"),
        ({"kernel": None}, "kernel must be one of 'rbf', 'precomputed', .* got None"),
        ({"max_iter": -1}, "max_iter must be an integer of at least 0; got -1"),
        ({"tol": -1e-4}, "tol must be a number >= 0; got -0.0001"),
        ({"qp_tol": 0}, "qp_tol must be a number > 0; got 0"),
        ({"assign_labels": "x"}, "assign_labels must be one of 'kmeans', 'cluster_qr'"),
        ({"n_init": 0}, "n_init must be an integer of at least 1 .*; got 0"),
        ({"n_threads": 0}, "n_threads must be a positive integer, or None or -1"),
        ({"n_init": 10**30}, "n_init must be an integer of .* at most 1000000; got 1"),
        (
            {"random_state": "a"},
            r"random_state must be an integer between 0 and 2\*\*32 - 1, .*; got 'a'",
        ),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        CDSK(**({"n_clusters": 3} | parameters)).fit(X)


ODD = {
    "list": [],
    "dict": {},
    "None": None,
    "text": "x",
    "bytes": b"x",
    "object": object(),
    "complex": 1j,
    "array": np.array([1, 2]),
    "10**30": 10**30,
    "10**400": 10**400,
    "nan": float("nan"),
    "numpy nan": np.float64("nan"),
    "inf": float("inf"),
    "-1": -1,
    "array of no dimension": np.array(3),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("value", ODD.values(), ids=ODD)
@pytest.mark.parametrize("name", CDSK().get_params())
def test_odd_values_are_of_use_or_refused_by_name(name, value, capsys):
    model = CDSK(**({"n_clusters": 3, "random_state": 0} | {name: value}))
    try:
        labels = model.fit(X).labels_
    except (ValueError, TypeError) as error:
        assert name in str(error)
    else:
        assert set(labels) == {0, 1, 2}


def test_numbers_that_are_no_floats():
    with pytest.raises(ValueError, match=r"X must hold numbers only; got 10.* at row"):
        CDSK(3).fit([[0], [10**400], [1]])
    for bandwidth in (10**400, [10**400] * 30):
        with pytest.raises(ValueError, match=r"bandwidth must be a .*; got 100"):
            cdsk.gaussian_gram(X, bandwidth)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (K[:, :20], r"X must be a square matrix; got shape \(30, 20\)"),
        (changed(K, (2, 5), 0.9), r"X must be symmetric; got 0\.9 at \(2, 5\)"),
        (K - 0.5, "Negative values in data: X must hold none, got -0.49"),
        (changed(K, (4, 4), 0.0), "X must have a positive diagonal; got 0.0 at row 4"),
        (changed(K, (4, 4), np.nan), "Input X contains NaN"),
    ],
)
def test_bad_precomputed_kernel(matrix, message):
    with pytest.raises(ValueError, match=message):
        CDSK(3, kernel="precomputed").fit(matrix)


def test_asymmetry_in_the_last_rows_is_found():
    large = cdsk.gaussian_gram(np.arange(300.0)[:, np.newaxis], 50.0)
    large[295, 290] += 1e-3
    with pytest.raises(ValueError, match=r"symmetric; got .* at \(29[05], 29[05]\)"):
        CDSK(3, kernel="precomputed").fit(large)


def test_wrong_number_of_features_at_predict():
    model = CDSK(3, random_state=0).fit(X)
    with pytest.raises(ValueError, match="X has 2 features, but CDSK is expecting 3"):
        model.predict(X[:, :2])
    with pytest.raises(ValueError, match="Input X contains infinity"):
        model.predict([[np.inf, 0, 0]])


@pytest.mark.parametrize(
    "data",
    [
        changed(X, ([3, 5], 1), np.nan),
        changed(X.astype(object), ([3, 5], 1), None),
        np.ma.masked_array(X, changed(np.zeros(X.shape, bool), ([3, 5], 1), True)),
    ],
    ids=["NaN", "None", "masked"],
)
def test_missing_cells_may_be_refused(data):
    message = r"contains NaN at row 3, column 1 \(2 in all\); missing=\"error\" needs"
    with pytest.raises(ValueError, match=message):
        CDSK(3, missing="error").fit(data)
    model = CDSK(3, missing="error", random_state=0).fit(X)
    with pytest.raises(ValueError, match=message):
        model.predict(data)
    assert CDSK(3, random_state=0).fit(data).labels_.min() == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cdsk.gaussian_gram(X, np.ones(29)), r"array of shape \(30,\)"),
        (lambda: cdsk.gaussian_gram(X, "wide"), "bandwidth must be a positive number"),
        (lambda: cdsk.gaussian_gram(X, 0.0), "bandwidth must be positive and finite"),
        (lambda: cdsk.gaussian_rows(X, X[:, :2], 1.0), "got 3 and 2"),
        (lambda: cdsk.gaussian_rows(X, X, np.ones(30)), "bandwidth_b must be given"),
        (
            lambda: cdsk.similarity_matrix(K, np.ones(30), 0.3),
            "weights must lie between",
        ),
        (lambda: cdsk.similarity_matrix(K, np.zeros(30), 0.3), "weights must sum to 1"),
        (lambda: cdsk.similarity_matrix(K, np.ones(3) / 3, 0.3), r"weights .* \(30,\)"),
        (
            lambda: cdsk.similarity_matrix(K, np.ones(30) / 30, 2),
            "lam must be a number",
        ),
        (lambda: cdsk.similarity_matrix(K[:5], np.ones(5), 1), "K must be a square"),
    ],
)
def test_bad_arguments_of_functions(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("model", "data", "advice"),
    [
        (CDSK(2, kernel="precomputed"), np.eye(5), "Use a matrix with larger entries"),
        (CDSK(2, bandwidth=1e-9), X[:5], "Increase `bandwidth`"),
        (
            CDSK(2, bandwidth=1e-9, n_neighbors=2),
            X[:5],
            "Increase `bandwidth` or `n_neighbors`",
        ),
        (
            CDSK(2, kernel="laplacian", kernel_params={"gamma": 1e9}),
            X[:5],
            "Decrease `gamma`",
        ),
        (
            CDSK(2, kernel=lambda A, B: np.eye(len(A), len(B))),
            X[:5],
            "Use a kernel with larger values",
        ),
    ],
)
def test_advice_is_that_of_the_kernel(model, data, advice):
    with pytest.raises(
        ValueError, match=f"No two points have any .*{advice} to connect some"
    ):
        model.fit(data)


def test_advice_for_unconnected_points_is_that_of_the_kernel():
    unconnected = np.eye(31)
    unconnected[:30, :30] = K
    message = "1 of 31 .* Use a matrix with larger entries to connect them"
    with pytest.warns(UserWarning, match=message):
        CDSK(2, kernel="precomputed", random_state=0).fit(unconnected)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"gamma": -1}, r"kernel_params\['gamma'\] must be a number >= 0; got -1"),
        ({"gamma": "a"}, r"kernel_params\['gamma'\] must be a number >= 0; got 'a'"),
        ({"degree": 0}, r"kernel_params\['degree'\] must be a number >= 1; got 0"),
        ({"coef0": np.inf}, r"kernel_params\['coef0'\] must be a finite number; got i"),
    ],
)
def test_bad_values_of_kernel_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        CDSK(3, kernel="polynomial", kernel_params=parameters).fit(X)


def test_a_kernel_that_returns_a_sparse_matrix():
    def kernel(A, B):
        return sparse.csr_array(cdsk.gaussian_rows(A, B, 1.0))

    with pytest.raises(ValueError, match="dense array; got a sparse one"):
        CDSK(3, kernel=kernel).fit(X)


def test_text_among_weights_is_named_and_not_printed_as_a_whole():
    message = "^init must hold numbers; got 'a' at row 0.$"
    with pytest.raises(ValueError, match=message):
        CDSK(3, init=["a"] * 30).fit(X)


def test_bound_of_other_points():
    model = CDSK(3, random_state=0).fit(X)
    with pytest.raises(
        ValueError, match=r"X must be the data of the fit, with 30 rows; got 20"
    ):
        model.generalization_bound(X[:20])


@pytest.mark.parametrize("parameters", [{}, {"bandwidth": 1.0}, {"bandwidth": "local"}])
def test_points_beyond_the_range_of_squares(parameters):
    model = CDSK(3, random_state=0, **parameters).fit(X)
    message = r"X must hold coordinates of .* at most.*; got 1.0e\+154 at row 1"
    for ask in (model.predict, model.decision_function, model.score_samples):
        with pytest.raises(ValueError, match=message):
            ask(np.array([[0.0, 0.0, 0.0], [1.0, 1e154, 0.0]]))
    far = model.decision_function([[0.0, 1e140, 0.0]])
    assert np.isfinite(far.max())
    assert not np.isnan(far).any()
