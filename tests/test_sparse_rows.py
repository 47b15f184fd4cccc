"""Sparse points and the cosine metric: the same as dense ones, and never filled."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import cosine_distances
from sklearn.neighbors import KNeighborsTransformer

from cdsk import CDSK, plot, select_lambda, suggest_n_clusters
from cdsk._neighbors import Neighbors, canonical_csr, hash_rows, kneighbors_sparse
from cdsk._preprocessing import Points, unique_rows


def texts(rng, n, d, n_topics=3, words=12):
    """Counts of words, most of them of a topic's own part of the vocabulary."""
    topic = rng.integers(n_topics, size=n)
    rows = np.repeat(np.arange(n), words)
    own = rng.integers(d // (4 * n_topics), size=n * words) * n_topics + topic[rows]
    any_word = rng.integers(d, size=n * words)
    columns = np.where(rng.uniform(size=n * words) < 0.8, own, any_word)
    counts = sparse.coo_array((np.ones(n * words), (rows, columns)), shape=(n, d))
    return counts.tocsr(), topic


@pytest.fixture(scope="module")
def few():
    """300 texts of 200 words, and their topics."""
    return texts(np.random.default_rng(0), 300, 200)


@pytest.fixture(scope="module", params=["euclidean", "cosine"])
def pair(request, few):
    """A fit of sparse texts and one of the same numbers, dense."""
    options = {"metric": request.param, "representation": "raw", "random_state": 0}
    X, rng = few[0].copy(), np.random.default_rng(1)
    X.data *= rng.uniform(0.5, 1.5, size=X.nnz)  # of equal distances any may be taken
    counts = rng.integers(0, 3, size=300)
    options |= {"noise": 0.05, "qp_tol": 1e-8}
    how = {"sample_weight": counts}
    ours, dense = (CDSK(3, **options).fit(one, **how) for one in (X, X.toarray()))
    return X, ours, dense


def numbers(found, expected):
    """The number in one fit of every cluster of another, which are the same."""
    assert adjusted_rand_score(found, expected) == 1
    return np.array([expected[found == y][0] for y in range(found.max() + 1)])


def test_sparse_and_dense_fits_agree(pair):
    """Their points are in other orders, so that rounding differs, and numbers do."""
    _, ours, dense = pair
    number = numbers(ours.clusters_, dense.clusters_)
    for name in ("weights_", "margins_", "typicality_", "bandwidth_"):
        found, expected = getattr(ours, name), getattr(dense, name)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(found, expected, atol=1e-3 * scale, err_msg=name)
    assert ((ours.labels_ < 0) == (dense.labels_ < 0)).all()
    new = texts(np.random.default_rng(2), 50, 200)[0]
    found, expected = ours.predict_proba(new), dense.predict_proba(new.toarray())
    np.testing.assert_allclose(found, expected[:, number], atol=0.01)
    labels = ours.predict(new)
    inside = labels >= 0
    assert (number[labels[inside]] == dense.predict(new.toarray())[inside]).all()
    found, expected = ours.transform(new), dense.transform(new.toarray())
    np.testing.assert_allclose(
        found @ ours.embedding_.T, expected @ dense.embedding_.T, atol=0.01
    )
    np.testing.assert_allclose(
        ours.score_samples(new), dense.score_samples(new.toarray()), atol=0.01
    )


def test_rows_of_the_fit_keep_their_places(pair):
    X, model, _ = pair
    np.testing.assert_array_equal(model.transform(X), model.embedding_)
    kept = model.sample_weight_ > 0
    agree = model.predict(X)[kept] == model.labels_[kept]
    assert agree.mean() > 0.97


@pytest.mark.parametrize("form", ["csc", "coo", "matrix", "int", "float32", "unsorted"])
def test_any_sparse_form(few, form):
    X, topic = few
    expected = CDSK(3, metric="cosine", random_state=0).fit(X)
    assert adjusted_rand_score(expected.labels_, topic) > 0.9
    if form == "matrix":
        other = sparse.csr_matrix(X)
    elif form in ("int", "float32"):
        other = X.astype(form)
    elif form == "unsorted":  # with zeros and columns that are there twice
        rows = np.repeat(np.arange(300), np.diff(X.indptr))
        half = np.concatenate([X.data / 2, X.data / 2, np.zeros(300)])
        rows = np.concatenate([rows, rows, np.arange(300)])
        columns = np.concatenate([X.indices, X.indices, np.full(300, 7)])
        order = np.lexsort((-columns, rows))
        ends = np.concatenate([[0], np.cumsum(np.bincount(rows))])
        parts = half[order], columns[order], ends
        other = sparse.csr_array(parts, shape=X.shape)
        before = other.copy()
    else:
        other = X.asformat(form)
    model = CDSK(3, metric="cosine", random_state=0).fit(other)
    number = numbers(model.labels_, expected.labels_)
    assert (number[model.predict(other)] == expected.predict(X)).all()
    if form == "unsorted":
        assert (before.data == other.data).all()  # the caller's is left as it was


def test_order_of_the_rows_changes_nothing(few, rng):
    X = few[0]
    order = rng.permutation(300)
    model = CDSK(3, metric="cosine", random_state=0).fit(X)
    other = CDSK(3, metric="cosine", random_state=0, n_threads=2).fit(X[order])
    for name in ("labels_", "weights_", "embedding_", "probabilities_"):
        ours, theirs = getattr(model, name)[order], getattr(other, name)
        np.testing.assert_array_equal(theirs, ours, err_msg=name)


@pytest.mark.parametrize(
    "options",
    [
        {"n_clusters": "auto"},
        {"lam": "auto"},
        {"n_neighbors": 8, "bandwidth": "local"},
        {"n_neighbors": 8, "bandwidth": "neighbor"},
        {"n_neighbors": 8, "bandwidth": 0.7},
        {"neighbors": KNeighborsTransformer(mode="distance", n_neighbors=12)},
    ],
    ids=str,
)
def test_other_options_with_sparse_points(few, options):
    X, topic = few
    model = CDSK(**{"n_clusters": 3, **options}, metric="cosine", random_state=0).fit(X)
    assert adjusted_rand_score(model.labels_, topic) > 0.8
    assert model.predict_proba(X[:5]).shape == (5, model.n_clusters_)
    assert np.isfinite(model.transform(X)).all()
    assert "300 points, 200 features" in str(model.report())


def test_clusters_of_sparse_and_dense_points_are_counted_alike(few):
    X = few[0].copy()
    X.data *= np.random.default_rng(1).uniform(0.5, 1.5, size=X.nnz)
    options = {"representation": "raw", "random_state": 0}
    ours, dense = (CDSK("auto", **options).fit(one) for one in (X, X.toarray()))
    choice, expected = ours.count_choice_, dense.count_choice_
    assert (choice.n_clusters, choice.runner_up) == (3, expected.runner_up)
    np.testing.assert_allclose(choice.scores, expected.scores, atol=1e-3)
    by_itself = suggest_n_clusters(X, **options)
    np.testing.assert_array_equal(choice.scores, by_itself.scores)


def test_clusters_are_counted_by_directions(few):
    X = few[0].copy()
    rng = np.random.default_rng(1)
    X.data *= rng.uniform(0.5, 1.5, size=X.nnz)
    lengths = rng.uniform(0.01, 100, size=X.shape[0])
    # in a layout, differences of rounding grow
    options = {"metric": "cosine", "representation": "raw", "random_state": 0}
    choice = suggest_n_clusters(X, **options)
    other = suggest_n_clusters(sparse.diags_array(lengths) @ X, **options)
    assert choice.n_clusters == other.n_clusters == 3
    np.testing.assert_allclose(choice.scores, other.scores, atol=1e-6)
    dense = suggest_n_clusters(X.toarray(), **options)
    np.testing.assert_allclose(choice.scores, dense.scores, atol=1e-3)
    with pytest.raises(ValueError, match="representation='whiten' needs dense points"):
        suggest_n_clusters(X, representation="whiten")
    with pytest.raises(ValueError, match="metric must be"):
        suggest_n_clusters(X, metric="l1")


def test_explanations_of_a_fit_of_sparse_points(few):
    X = few[0]
    model = CDSK(3, metric="cosine", random_state=0).fit(X)
    bound, again = model.generalization_bound(), model.generalization_bound(X)
    assert bound.total == again.total
    product = model.similarity_operator() @ np.ones((300, 1))
    assert np.isfinite(product).all()
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    with pytest.raises(ValueError, match=r"Pass X.toarray\(\), or use plot.embedding"):
        plot.scatter(model, X)
    choice = select_lambda(X, 3, grid=[0.2, 0.4], metric="cosine", random_state=0)
    assert choice.lam in (0.2, 0.4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bandwidth": 1.0}, "n_neighbors=None needs dense points; expected a number"),
        ({"bandwidth": "median"}, "bandwidth='median' needs dense points"),
        ({"kernel": "linear"}, "kernel='linear' needs dense points; expected 'rbf'"),
        ({"representation": "whiten"}, "expected 'raw' for a sparse X"),
        ({"init": "sparse"}, "init='sparse' needs dense points"),
        (
            {"bandwidth": 1.0, "approximation": "lowrank"},
            "approximation='lowrank' needs dense points",
        ),
    ],
)
def test_options_that_need_dense_points_are_refused(few, options, message):
    with pytest.raises(ValueError, match=message):
        CDSK(3, **options).fit(few[0])


def test_new_points_may_be_dense_but_not_sparse_where_the_fit_was(few):
    X = few[0]
    ours = CDSK(3, random_state=0).fit(X)
    assert (ours.predict(X.toarray()) == ours.predict(X)).all()
    dense = CDSK(3, representation="raw", random_state=0).fit(X.toarray())
    with pytest.raises(ValueError, match="X must be dense, as the data of the fit"):
        dense.predict(X)


@pytest.mark.filterwarnings("ignore:X has 1 distinct point,")
def test_equal_rows_are_one_cluster():
    X = sparse.csr_array(np.ones((9, 1)) * [1.0, 0.0, 2.0])
    model = CDSK(2, random_state=0).fit(X)
    assert (model.labels_ == 0).all()
    assert (model.predict(X) == 0).all()


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize(
    ("wrong", "name"), [(np.inf, "infinity"), (np.nan, "NaN")], ids=str
)
def test_what_is_not_finite_is_named(few, form, wrong, name):
    X = few[0][:20].tolil()
    X[7, 3] = X[4, 150] = X[4, 11] = wrong
    message = rf"contains {name} at row 4, column 11 \(3 in all\); expected finite"
    message = message if name == "infinity" else message.split(";")[0]
    with pytest.raises(ValueError, match=message):
        CDSK(2, missing="error").fit(X.asformat(form))


# ------------------------------------------------------------------ metric


@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e200])
def test_cosine_of_dense_rows_counts_directions_only(rng, unit):
    X, y = make_blobs(90, centers=9 * np.eye(3), random_state=0)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    lengths = rng.uniform(1, 100, size=(90, 1)) * unit
    model = CDSK(3, metric="cosine", random_state=0).fit(lengths * X)
    assert adjusted_rand_score(model.labels_, y) == 1
    plain = CDSK(3, random_state=0).fit(X)
    number = numbers(model.labels_, plain.labels_)
    votes = plain.decision_function(X)[:, number]
    np.testing.assert_allclose(model.decision_function(lengths * X), votes, rtol=1e-3)
    found = model._predictor.candidate.graph.neighbors.distances**2 / 2
    expected = np.sort(cosine_distances(X), axis=1)[:, 1:21]
    np.testing.assert_allclose(
        found[model._predictor.points.inverse], expected, atol=1e-12
    )


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_rows_of_zeros_have_no_direction(form):
    X = np.eye(9)
    model = CDSK(2, metric="cosine", random_state=0).fit(form(X))
    asked = "predict", "predict_proba", "decision_function", "score_samples"
    methods = [getattr(model, name) for name in (*asked, "transform")]
    X[4] = 0.0
    more = np.concatenate([X, np.zeros((6, 9))])
    for ask in (CDSK(2, metric="cosine").fit, *methods):
        with pytest.raises(
            ValueError,
            match=r"got zeros only in row 4 \(1 in all, counted from 0\)\. Remove such "
            r"rows: .* Or fit with metric=\"euclidean\"\.$",
        ):
            ask(form(X))
        with pytest.raises(
            ValueError, match=r"in rows 4, 9, 10, 11, 12, \.\.\. \(7 in"
        ):
            ask(form(more))


def test_unknown_metrics_are_refused():
    with pytest.raises(ValueError, match="metric must be one of 'euclidean', 'cosine'"):
        CDSK(2, metric="manhattan").fit(np.eye(5))
    with pytest.raises(ValueError, match="metric='cosine' needs points"):
        CDSK(2, metric="cosine", kernel="precomputed").fit(np.eye(5))


# ------------------------------------------------------------------ search


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_kneighbors_equal_all_distances(rng, dtype, monkeypatch):
    monkeypatch.setattr("cdsk._neighbors._WORKING_MEMORY", 0.05)
    X = rng.normal(size=(90, 40)) * (rng.uniform(size=(90, 40)) < 0.2)
    X = np.concatenate([X, X + 1e-7 * (X != 0)]).astype(dtype)  # near ones
    S = sparse.csr_array(X)
    D = np.linalg.norm(X[:, np.newaxis] - X.astype(np.float64), axis=2)
    shares = []
    for found, expected in (
        (kneighbors_sparse(S[:20], S, 7), D[:20]),
        (
            kneighbors_sparse(S, S, 7, exclude_self=True, callback=shares.append),
            D + np.diag(np.full(180, np.inf)),
        ),
    ):
        distances, indices = found
        np.testing.assert_allclose(distances, np.sort(expected, axis=1)[:, :7])
        chosen = np.take_along_axis(expected, indices.astype(int), axis=1)
        np.testing.assert_allclose(distances, chosen)
    assert shares[-1] == 1
    assert len(shares) > 2


def test_scales_of_sparse_points_are_those_of_dense_ones(few):
    X = few[0]
    distinct = X[unique_rows(X)[0]]
    ours, dense = Neighbors(distinct, 5), Neighbors(distinct.toarray(), 5)
    np.testing.assert_allclose(ours.kth_distances, dense.kth_distances)
    np.testing.assert_allclose(ours.local_scales(X), dense.local_scales(X.toarray()))


def test_equal_sparse_rows_are_those_of_dense_ones(rng):
    X = rng.integers(0, 2, size=(200, 6)).astype(float)
    S = canonical_csr(sparse.csr_array(X))
    row_of, point_of = unique_rows(S)
    assert len(row_of) == len(np.unique(X, axis=0)) == len(set(hash_rows(S)))
    np.testing.assert_array_equal(X[row_of][point_of], X)
    points = Points.from_distinct_rows(S, np.arange(200.0) % 3)
    np.testing.assert_array_equal(points.X.toarray(), X[points.first_row])
    assert points.multiplicity.sum() == (np.arange(200) % 3).sum()


def peak_bytes(function):
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("n", "n_clusters"),
    [
        (800, 3),
        pytest.param(800, "auto", marks=pytest.mark.slow),
        pytest.param(20_000, 3, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_sparse_data_are_not_densified(n, n_clusters):
    """50,000 words would be 8 GB for 20,000 texts, and 320 MB for 800."""
    X, topic = texts(np.random.default_rng(0), n, 50_000, words=40)
    model = CDSK(n_clusters, metric="cosine", random_state=0)
    new = X[: n // 10]

    def work():
        if n_clusters == "auto":
            suggest_n_clusters(X, metric="cosine", random_state=0)
        model.fit(X)
        model.predict_proba(new)
        model.transform(new)

    # 64 MiB of distances, as many again of their products, and places of the smallest
    most = 4 * 64 * 2**20 + 10_000 * n
    assert peak_bytes(work) < most < n * 50_000 * 8
    assert adjusted_rand_score(model.labels_, topic) > 0.9
