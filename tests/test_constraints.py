import io
import json
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brute
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cdsk import CDSK, BlockCDSK, plot, stability
from cdsk._constraints import (
    assign_chains,
    match_classes,
    read_constraints,
    spread_classes,
    weigh_partitions,
)
from cdsk._operators.dense import DenseKernel

X, SPECIES = load_iris(return_X_y=True)
N = len(X)
ROWS = np.array([0, 5, 60, 70, 120, 130])
NAMES = np.array(["setosa", "versicolor", "virginica"])


def partial(y, rows=ROWS, unknown=-1):
    """Return y, unknown but for some rows."""
    known = np.full(len(y), unknown, dtype=object if unknown is None else y.dtype)
    known[rows] = y[rows]
    return known


def fit(n_clusters=3, data=X, **known):
    return CDSK(n_clusters, random_state=0, n_init=2).fit(data, **known)


@pytest.fixture(scope="module")
def alone():
    return fit()


@pytest.fixture(scope="module")
def named():
    """A fit that knows the names of two rows per class; tests leave it as it is."""
    return fit(y=partial(NAMES[SPECIES], unknown=None))


# What is known holds.


@pytest.mark.parametrize("seed", range(2))
def test_any_labels_hold_exactly(seed):
    rng = np.random.RandomState(seed)
    rows = rng.permutation(np.flatnonzero(X[:, 0] > 0))[:20]
    # equal rows of iris have equal labels
    y = partial(np.where(X[:, 0] > rng.uniform(5, 6), 7, 3), rows)
    model = fit(2 + seed % 2, y=y)
    assert (model.labels_[rows] == y[rows]).all()
    assert model.constraints_.n_labels == 20


@pytest.mark.parametrize("seed", range(2))
def test_any_links_hold(seed):
    rng = np.random.RandomState(seed)
    side = X[:, 1] > 3.0
    pairs = rng.permutation(N)[:40].reshape(-1, 2)
    same = side[pairs[:, 0]] == side[pairs[:, 1]]
    model = fit(2, must_link=pairs[same], cannot_link=pairs[~same])
    first, second = model.labels_[pairs].T
    assert ((first == second) == same).all()


def test_links_and_labels_together():
    model = fit(3, y=partial(SPECIES), must_link=[[0, 99]], cannot_link=[[60, 61]])
    assert model.labels_[99] == model.labels_[0] == 0
    assert model.labels_[61] != model.labels_[60] == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "params",
    [
        {"bandwidth": "neighbor"},
        {"kernel": "laplacian"},
        {"approximation": "lowrank", "bandwidth": "std"},
        {"representation": "whiten"},
        {"lam": "auto"},
        {"n_neighbors": 8},
    ],
    ids=str,
)
def test_labels_hold_for_any_kernel(params):
    y = partial(SPECIES)
    y[1] = 2  # against its neighbors
    model = CDSK(3, random_state=0, **params).fit(X, y, must_link=[[60, 2]])
    assert (model.labels_[y >= 0] == y[y >= 0]).all()
    assert model.labels_[2] == 1


def test_labels_hold_for_a_kernel_matrix():
    K = np.exp(-0.5 * np.square(X[:, np.newaxis] - X).sum(axis=2))
    model = CDSK(3, kernel="precomputed").fit(K, partial(SPECIES))
    assert (model.labels_[ROWS] == SPECIES[ROWS]).all()
    assert adjusted_rand_score(SPECIES, model.labels_) > 0.7


def test_labels_hold_where_noise_or_weight_0_would_change_them():
    weights = np.ones(N)
    weights[5] = 0.0
    y = partial(SPECIES, np.arange(0, N, 3))
    y[5] = 2
    model = CDSK(3, noise=0.4, random_state=0).fit(X, y, weights)
    assert (model.labels_ == -1).any()
    assert (model.labels_[y >= 0] == y[y >= 0]).all()


def test_labels_hold_in_a_table_of_more_rows_than_are_fitted(monkeypatch):
    monkeypatch.setattr("cdsk._candidates.MAX_TABLE_ROWS", 50)
    table = pd.DataFrame(X, columns=list("abcd")).assign(
        kind=np.where(SPECIES == 0, "a", "b")
    )
    model = fit(3, table, y=partial(SPECIES))
    assert (model.labels_[ROWS] == SPECIES[ROWS]).all()
    assert (model.sample_weight_[ROWS] == 1).all()


# Identities.


def assert_same_fit(a, b):
    np.testing.assert_array_equal(a.labels_, b.labels_)
    np.testing.assert_array_equal(a.weights_, b.weights_)
    np.testing.assert_array_equal(a.embedding_, b.embedding_)
    assert a.choice_.names == b.choice_.names


@pytest.mark.parametrize("unknown", [np.full(N, -1), [None] * N, np.full(N, np.nan)])
def test_nothing_known_is_no_y(alone, unknown):
    model = fit(y=unknown, must_link=[], cannot_link=np.empty((0, 2), int))
    assert_same_fit(model, alone)
    assert model.classes_ is None
    assert model.constraints_ is None


@pytest.mark.parametrize("y", [SPECIES, NAMES[SPECIES], X[:, 0], X[:, :2]])
def test_a_complete_y_is_ignored(alone, y):
    assert_same_fit(fit(y=y), alone)


def test_order_of_rows(named):
    order = np.random.RandomState(0).permutation(N)
    y = partial(NAMES[SPECIES], unknown=None)
    model = fit(data=X[order], y=y[order])
    np.testing.assert_array_equal(model.labels_, named.labels_[order])


def test_order_of_rows_with_links():
    order = np.random.RandomState(1).permutation(N)
    place = np.argsort(order)
    must, cannot = np.array([[60, 120], [3, 9]]), np.array([[61, 121], [0, 60]])
    model = fit(3, must_link=must, cannot_link=cannot)
    moved = fit(3, X[order], must_link=place[must], cannot_link=place[cannot])
    assert adjusted_rand_score(moved.labels_, model.labels_[order]) == 1.0


def test_names_of_classes_mean_nothing(named):
    numbers = fit(y=partial(SPECIES))
    reversed_names = fit(y=partial(np.array([30, 20, 10])[SPECIES]))
    np.testing.assert_array_equal(NAMES[numbers.labels_], named.labels_)
    np.testing.assert_array_equal(30 - 10 * numbers.labels_, reversed_names.labels_)


def test_must_links_of_equal_rows_change_nothing():
    data = np.repeat(X[::3], 2, axis=0)
    pairs = np.arange(len(data)).reshape(-1, 2)
    known = {"y": partial(np.repeat(SPECIES[::3], 2), np.arange(0, 100, 9))}
    assert_same_fit(fit(data=data, **known), fit(data=data, must_link=pairs, **known))


def test_order_and_direction_of_links():
    links = np.array([[60, 120], [3, 9], [61, 121]])
    a, b = fit(must_link=links), fit(must_link=links[::-1, ::-1])
    assert_same_fit(a, b)


def test_any_number_of_threads():
    known = {"y": partial(SPECIES), "cannot_link": [[1, 60]]}
    fits = [CDSK(3, random_state=0, n_threads=n).fit(X, **known) for n in (1, 2, 3)]
    assert_same_fit(fits[0], fits[1])
    assert_same_fit(fits[0], fits[2])


def test_repeated_rows_are_sample_weights():
    data, y = X[::2], partial(SPECIES[::2], np.array([3, 30, 60]))
    twice = fit(data=np.repeat(data, 2, axis=0), y=np.repeat(y, 2))
    weighted = fit(data=data, y=y, sample_weight=np.full(len(data), 2.0))
    assert adjusted_rand_score(twice.labels_[::2], weighted.labels_) > 0.95


# What is known helps.


def squares(seed=0):
    """Return four blobs on the corners of a square, and the columns they are in."""
    corners = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    data, corner = make_blobs(
        240, centers=6.0 * corners, cluster_std=0.9, random_state=seed
    )
    return data, corners[corner, 0], corners[corner, 1]


@pytest.mark.parametrize("axis", [0, 1])
def test_what_is_known_decides_between_equal_partitions(axis):
    data, *sides = squares()
    side = sides[axis]
    rng = np.random.RandomState(0)
    pairs = rng.permutation(len(data))[:60].reshape(-1, 2)
    same = side[pairs[:, 0]] == side[pairs[:, 1]]
    linked = fit(2, data, must_link=pairs[same], cannot_link=pairs[~same])
    labeled = fit(2, data, y=partial(side, pairs[:8].ravel()))
    for model in (linked, labeled):
        assert adjusted_rand_score(side, model.labels_) > 0.8


def test_more_clusters_than_classes():
    data, column, row = squares()
    corner = 2 * column + row
    rows = np.flatnonzero(corner < 2)[:20]
    model = fit(4, data, y=partial(np.array([5, 9, 0, 0])[corner], rows))
    assert set(model.labels_) == {5, 9, 10, 11}
    assert adjusted_rand_score(corner, model.labels_) > 0.95
    assert set(model.labels_[corner == 0]) == {5}


def test_conflicts_name_the_errors():
    y = partial(SPECIES, np.arange(0, N, 5))
    y[[10, 110]] = 2, 0
    found = fit(y=y).constraints_
    assert set(found.conflicts[:2]) == {10, 110}
    assert {10, 110} <= set(found.broken_labels)


def test_broken_links_are_those_of_the_data_alone(alone):
    pairs = np.random.RandomState(0).permutation(N)[:60].reshape(-1, 2)
    first, second = alone.labels_[pairs].T
    found = fit(must_link=pairs[:4]).constraints_
    np.testing.assert_array_equal(
        found.broken_must_link, pairs[:4][(first != second)[:4]]
    )
    far = pairs[(SPECIES[pairs[:, 0]] != SPECIES[pairs[:, 1]])][:6]
    first, second = alone.labels_[far].T
    found = fit(cannot_link=far).constraints_
    np.testing.assert_array_equal(found.broken_cannot_link, far[first == second])


# Names.


def test_labels_have_the_type_of_y(named):
    assert set(named.labels_) == set(NAMES)
    assert named.classes_.tolist() == NAMES.tolist()
    np.testing.assert_array_equal(named.classes_[named.clusters_], named.labels_)
    assert set(named.predict(X)) == set(NAMES)
    assert named.predict_proba(X[:1]).shape == (1, 3)
    agreement = (named.predict(X) == named.labels_)[ROWS].mean()
    assert agreement > 0.5


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        (["a", None], {"a", "cluster 1", "cluster 2"}),
        (["cluster 1", "-1"], {"cluster 1", "cluster 2", "cluster 3"}),
        ([4, -1], {4, 5, 6}),
        ([-7, -1], {-7, 0, 1}),
        ([2.0, np.nan], {2, 3, 4}),
        (pd.array([6, None], dtype="Int64"), {6, 7, 8}),
        (pd.Series(["b", None], dtype="category"), {"b", "cluster 1", "cluster 2"}),
        (np.ma.masked_equal([2, 0], 0), {2, 3, 4}),
    ],
)
def test_names_of_clusters_without_a_class(y, expected):
    class_, unknown = [y.iloc[i] if hasattr(y, "iloc") else y[i] for i in range(2)]
    cells = [class_] + [unknown] * (N - 1)
    dtype = getattr(y, "dtype", None)
    if isinstance(y, pd.Series):
        cells = pd.Series(cells, dtype=dtype)
    if np.ma.isMaskedArray(y):
        cells = np.ma.masked_equal(place([0], y.compressed(), N), -1)
    model = fit(y=cells)
    assert set(model.labels_) == expected


def test_noise_of_text_classes():
    model = CDSK(3, noise=0.4, random_state=0).fit(
        X, partial(NAMES[SPECIES], ROWS, None)
    )
    assert set(model.labels_) == {*NAMES, "noise"}
    assert set(model.predict(X + 50.0)) == {"noise"}
    assert (model.probabilities_[model.labels_ == "noise"] == 0).all()


def test_n_clusters_auto_is_at_least_the_number_of_classes():
    data = make_blobs(90, centers=[[0, 0], [20, 0]], random_state=0)[0]
    y = partial(np.arange(90) % 4, np.arange(8))
    assert CDSK("auto").fit(data).n_clusters_ == 2
    assert CDSK("auto").fit(data, y).n_clusters_ == 4


def test_names_survive_pickling_and_cloning(named):
    joblib.dump(named, stream := io.BytesIO())
    stream.seek(0)
    for copy in (pickle.loads(pickle.dumps(named)), joblib.load(stream)):
        np.testing.assert_array_equal(copy.labels_, named.labels_)
        np.testing.assert_array_equal(copy.predict(X), named.predict(X))
    model = clone(named)
    assert not hasattr(model, "classes_")
    assert model.fit(X).classes_ is None
    assert model.labels_.dtype.kind == "i"


def test_fit_predict_fit_transform_and_pipelines(named):
    y, model = partial(NAMES[SPECIES], unknown=None), CDSK(3, random_state=0, n_init=2)
    np.testing.assert_array_equal(model.fit_predict(X, y), named.labels_)
    np.testing.assert_array_equal(model.fit_transform(X, y), named.embedding_)
    pipeline = make_pipeline(StandardScaler(), CDSK(3, random_state=0)).fit(X, y)
    assert set(pipeline.predict(X)) == set(NAMES)
    links = pipeline.fit(X, cdsk__must_link=[[0, 60]])[-1]
    assert links.labels_[0] == links.labels_[60]


def test_index_labels_of_a_frame_name_rows():
    index = [f"row {i}" for i in range(N)]
    frame = pd.DataFrame(X, index=index, columns=list("abcd"))
    model = fit(data=frame, must_link=[["row 0", "row 60"]])
    assert_same_fit(model, fit(must_link=[[0, 60]]))
    # integer labels are labels, not positions
    backwards = pd.DataFrame(X, index=np.arange(N)[::-1])
    model = fit(data=backwards, must_link=[[0, 60]])
    assert_same_fit(model, fit(must_link=[[N - 1, N - 61]]))


# Reports, plots and other users of labels.


def test_names_in_everything_that_follows(named):
    report = named.report(X)
    assert "versicolor" in str(report)
    known = json.loads(json.dumps(report.to_dict()))["constraints"]
    assert known["names"] == NAMES.tolist()
    assert known["n_labels"] == len(ROWS)
    assert "Known labels and links" in report._repr_html_()
    plain = fit(y=partial(SPECIES))
    assert str(named.profiles(X)) == str(plain.profiles(X))
    profiles = named.profiles(X[:90], labels=named.predict(X[:90]))
    assert str(profiles) == str(plain.profiles(X[:90], labels=plain.predict(X[:90])))
    with pytest.raises(ValueError, match="names of clusters"):
        named.profiles(X[:2], labels=["setosa", "rose"])
    assert str(named.rules(X)) == str(plain.rules(X))


def test_a_fit_without_constraints_does_not_report_them(alone):
    assert alone.report().to_dict()["constraints"] is None
    assert "Known" not in str(alone.report())


def test_names_in_plots(named):
    pytest.importorskip("matplotlib").use("agg")
    for draw in (plot.scatter, plot.embedding):
        ax = draw(named, X) if draw is plot.scatter else draw(named)
        drawn = [len(collection.get_offsets()) for collection in ax.collections]
        assert sum(drawn) >= len(X)
        ax.figure.clear()


@pytest.mark.slow
def test_stability_of_a_fit_with_names(named):
    found = stability(named, X, n_resamples=4, n_null=2, random_state=0)
    assert len(named.report(stability=found).to_dict()["stability"]["clusters"]) == 3


@pytest.mark.parametrize("y", [partial(SPECIES), partial(NAMES[SPECIES], ROWS, None)])
def test_blocks_refuse_labels_of_some_rows(y):
    with pytest.raises(ValueError, match="clustered without labels"):
        BlockCDSK(3).fit(X, y)


# Parts.


def test_spread_solves_its_equations():
    rng = np.random.RandomState(0)
    K = np.exp(-np.abs(np.subtract.outer(*2 * [rng.rand(12)])))
    np.fill_diagonal(K, 1.0)
    kernel = DenseKernel(K.copy(), 1)
    rows, codes = np.array([0, 3, 4, 9]), np.array([0, 1, 1, 0])
    constraints = read_constraints(12, place(rows, codes, 12), None, None)
    chains = constraints.chains(np.arange(12), np.ones(12))
    W = K - np.diag(np.diag(K))
    A = W / np.sqrt(np.multiply.outer(W.sum(axis=0), W.sum(axis=0)))
    Y = (place(rows, codes, 12)[:, np.newaxis] == [0, 1]).astype(float)
    H = np.linalg.solve(np.eye(12) - 0.95 * A, Y)
    H /= H.sum(axis=0)
    H /= H.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(spread_classes(kernel, chains), H, rtol=1e-5)


def place(rows, codes, n):
    y = np.full(n, -1)
    y[rows] = codes
    return y


@pytest.mark.parametrize("seed", range(5))
def test_chains_apart_have_the_largest_votes_possible(seed):
    rng = np.random.RandomState(seed)
    votes, cannot = rng.rand(6, 3), np.array([[0, 1], [1, 2], [2, 3], [0, 4], [4, 5]])
    constraints = read_constraints(6, place([3], [0], 6), [[0, 5]], cannot)
    chains = constraints.chains(np.arange(6), np.ones(6))

    def cost(labels):
        labels = np.asarray(labels, dtype=int)
        a, b = labels[cannot].T
        broken = (a == b).any() or labels[0] != labels[5] or labels[3] != 0
        return np.inf if broken else -np.log(votes[np.arange(6), labels]).sum()

    best = brute(cost, 6 * [slice(0, 3)], finish=None).astype(int)
    found = assign_chains(votes.argmax(axis=1), votes, chains)
    np.testing.assert_array_equal(found, best)


def test_partitions_that_agree_weigh_more():
    constraints = read_constraints(6, place([0, 1, 4, 5], [0, 0, 1, 1], 6), None, None)
    chains = constraints.chains(np.arange(6), np.ones(6))
    right, wrong = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 1, 0, 1, 0, 1])
    weights = weigh_partitions([right, wrong, right], np.full(3, 0.5), chains)
    assert weights[0] == weights[2] > weights[1]
    np.testing.assert_array_equal(match_classes(1 - right, chains, 2), right)


# Bad input.

BAD = [
    (
        {"y": place([0, 1], [3, 4], N), "must_link": [[0, 7], [7, 1]]},
        "rows 0 and 1 are connected by must_link, but y has 3 and 4",
    ),
    (
        {"must_link": [[0, 1], [1, 2]], "cannot_link": [[2, 0]]},
        "rows 2 and 0, but y has the same class",
    ),
    ({"y": place([0, 9], [2, 2], N), "cannot_link": [[0, 9]]}, "rows 0 and 9"),
    ({"cannot_link": [[4, 4]]}, "these are one row"),
    ({"cannot_link": [[101, 142]]}, "equal rows are never split"),
    ({"y": place([101, 142], [0, 1], N)}, "rows 101 and 142 are equal"),
    (
        {"y": place([0, 1, 2, 3], [0, 1, 2, 3], N)},
        "at least the number of classes in y",
    ),
    (
        {"cannot_link": [[0, 1], [1, 2], [2, 0], [0, 3], [1, 3], [2, 3]]},
        "cannot be kept by n_clusters=3",
    ),
    ({"y": [0, -1]}, r"for each of the 150 rows of X; got shape \(2,\)"),
    ({"y": [0.5] + [-1] * 149}, "got 0.5 at row 0"),
    ({"y": [0, "a"] + [None] * 148}, "one type"),
    ({"y": [(1, 2)] + [None] * 148}, "y must"),
    ({"must_link": [[0, 150]]}, "from 0 to 149; got 150"),
    ({"must_link": [[0, -1]]}, "from 0 to 149; got -1"),
    ({"must_link": [0, 1]}, r"shape \(n_links, 2\); got shape \(2,\)"),
    ({"cannot_link": [[0.5, 1]]}, "row numbers, which are integers"),
    ({"cannot_link": [["a", "b"]]}, "row numbers, which are integers"),
    (
        {"must_link": [[0, 1]], "sample_weight": (np.arange(N) != 1).astype(float)},
        "the weight of row 1 is 0",
    ),
    (
        {"y": place([7], [0], N), "sample_weight": (np.arange(N) != 7).astype(float)},
        "row of positive weight",
    ),
]


@pytest.mark.parametrize(("known", "message"), BAD)
def test_bad_input_is_refused_in_words(known, message):
    with pytest.raises(ValueError, match=message):
        fit(**known)


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ([["r1", "zz"]], "got 'zz', which is not there"),
        ([["r1", "r2"]], "'r1' and 'r2'"),
    ],
)
def test_names_of_rows_in_messages(links, message):
    frame = pd.DataFrame(X, index=[f"r{i}" for i in range(N)])
    with pytest.raises(ValueError, match=message):
        fit(data=frame, cannot_link=links, must_link=[["r1", "r2"]])


def test_an_index_that_repeats_labels_is_refused():
    frame = pd.DataFrame(X, index=np.arange(N) // 2)
    with pytest.raises(ValueError, match="same label"):
        fit(data=frame, must_link=[[0, 1]])


def test_classes_1_and_minus_1_raise_a_warning():
    with pytest.warns(UserWarning, match="-1 means that the class is not known"):
        fit(2, y=np.where(SPECIES == 0, 1, -1))


@pytest.mark.parametrize("make", [list, np.array])
def test_text_and_nan_are_partial_labels(make):
    X, _ = make_blobs(60, centers=3, cluster_std=0.3, random_state=0)
    y = [np.nan] * 60
    y[0] = "first"
    model = CDSK(3, random_state=0).fit(X, make(y))
    assert model.classes_.tolist() == ["first"]
    assert model.labels_[0] == "first"


@pytest.mark.parametrize("y", [["a", "b"], {0: "a"}, 5, "abc", np.arange(59)])
def test_labels_of_other_rows_are_refused(y):
    X, _ = make_blobs(60, centers=3, random_state=0)
    with pytest.raises(ValueError, match="for each of the 60 rows"):
        CDSK(3, random_state=0).fit(X, y)


def test_a_class_may_be_called_noise():
    X, _ = make_blobs(60, centers=2, cluster_std=0.3, random_state=0)
    X = np.vstack([X, [[50.0, 50.0]]])
    y = np.full(61, None)
    y[0] = "noise"
    model = CDSK(2, noise=0.05, random_state=0).fit(X, y)
    assert model.label_numbers_[60] == -1
    assert model.labels_[0] == "noise"
    assert model.labels_[60] == "-1"


def test_updates_of_blocks_refuse_labels():
    X, _ = make_blobs(200, centers=2, random_state=0)
    with pytest.raises(ValueError, match="clustered without labels"):
        BlockCDSK(2, n_landmarks=20).partial_fit(X, [0] + 199 * [-1])
