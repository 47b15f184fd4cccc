"""Graphs of distances and of similarities: as our own and as dense ones, bad graphs."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import KNeighborsTransformer

from cdsk import CDSK, gaussian_gram, select_lambda
from cdsk._neighbors import Neighbors, PrecomputedNeighbors
from cdsk._operators.sparse import NeighborGraph, SparseKernel


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(240, 3, centers=3, random_state=0)[0]


def distance_graph(X, k):
    return KNeighborsTransformer(n_neighbors=k, mode="distance").fit_transform(X)


def disordered(graph, rng, own):
    """The same distances in rows in any order, with or without those of 0."""
    rows = [[] for _ in range(graph.shape[0])]
    coo = graph.tocoo()
    for i, j, value in zip(coo.row, coo.col, coo.data, strict=True):
        if own or i != j:
            rows[i].append((j, value))
    for row in rows:
        rng.shuffle(row)
    ends = np.cumsum([0, *map(len, rows)])
    columns = np.array([int(j) for row in rows for j, _ in row])
    data = np.array([value for row in rows for _, value in row])
    return sparse.csr_array((data, columns, ends), shape=graph.shape)


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("robust", [True, False])
def test_graph_of_all_neighbors_equals_our_own(rng, blobs, own, robust):
    expected = Neighbors(blobs, 12, robust=robust)
    given = disordered(distance_graph(blobs, 12), rng, own)
    found = PrecomputedNeighbors(given, None, robust=robust)
    np.testing.assert_allclose(found.scales, expected.scales, rtol=1e-13)
    ours, theirs = (
        NeighborGraph(expected).squared_distances,
        NeighborGraph(found).squared_distances,
    )
    np.testing.assert_array_equal(theirs.indptr, ours.indptr)
    np.testing.assert_array_equal(theirs.indices, ours.indices)
    np.testing.assert_allclose(theirs.data, ours.data, rtol=1e-13)
    assert (theirs != theirs.T).nnz == 0


def test_the_nearest_of_a_longer_row_are_taken(blobs):
    longer = PrecomputedNeighbors(distance_graph(blobs, 30), 9)
    exact = PrecomputedNeighbors(distance_graph(blobs, 9), None)
    assert (longer.kneighbors_graph() != exact.kneighbors_graph()).nnz == 0
    np.testing.assert_array_equal(longer.scales, exact.scales)


def test_rows_may_be_short_empty_or_one_way():
    graph = sparse.csr_array([[0, 2.0, 3, 0], [2, 0, 0, 0], [0, 4, 0, 0], [0, 0, 0, 0]])
    found = PrecomputedNeighbors(graph, None)
    np.testing.assert_array_equal(found.kth_distances, [3, 2, 4, 0])
    np.testing.assert_array_equal(found.scales, [3, 2, 4, 2])
    squared = NeighborGraph(found).squared_distances.toarray()
    np.testing.assert_array_equal(
        squared, [[0, 4, 9, 0], [4, 0, 16, 0], [9, 16, 0, 0], [0, 0, 0, 0]]
    )


def test_distances_that_differ_between_both_ends_become_one():
    graph = sparse.csr_array([[0, 1.0], [1.001, 0]])
    squared = NeighborGraph(
        PrecomputedNeighbors(graph, None)
    ).squared_distances.toarray()
    assert squared[0, 1] == squared[1, 0]


def test_duplicates_stay_neighbors():
    X = np.repeat(np.arange(10.0)[:, np.newaxis], 2, axis=0)
    found = NeighborGraph(
        PrecomputedNeighbors(distance_graph(X, 3), None)
    ).squared_distances
    assert found.nnz > np.count_nonzero(found.data) >= 20


class Precise(TransformerMixin, BaseEstimator):
    """An index wrapped by the convention, without the points themselves."""

    def __init__(self, n_neighbors=20):
        self.n_neighbors = n_neighbors

    def fit(self, X, y=None):
        self.transformer_ = KNeighborsTransformer(n_neighbors=self.n_neighbors).fit(X)
        return self

    def transform(self, X):
        return self.transformer_.transform(X)


@pytest.mark.parametrize("transformer", [KNeighborsTransformer, Precise])
def test_transformer_gives_the_labels_of_our_own_search(blobs, transformer):
    own = CDSK(3, random_state=0, max_iter=2, n_init=2).fit(blobs)
    model = CDSK(
        3, random_state=0, max_iter=2, n_init=2, neighbors=transformer(n_neighbors=20)
    )
    np.testing.assert_array_equal(model.fit(blobs).labels_, own.labels_)
    new = blobs[::5] + 0.01
    np.testing.assert_array_equal(model.predict(new), own.predict(new))
    np.testing.assert_array_equal(model.predict(blobs), own.predict(blobs))
    assert not hasattr(model.neighbors, "n_features_in_")
    assert transformer.__name__ in " ".join(str(model.report()).split())
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(new), own.predict(new))


def test_graph_as_data_gives_the_labels_of_our_own_search(blobs, in_point_order):
    blobs = in_point_order(blobs)
    options = {"random_state": 0, "max_iter": 2, "n_init": 2}
    own = CDSK(3, representation="raw", **options).fit(blobs)
    transformer = KNeighborsTransformer(n_neighbors=20)
    graph = transformer.fit_transform(blobs)
    model = CDSK(3, kernel="precomputed_neighbors", **options).fit(graph)
    np.testing.assert_array_equal(model.labels_, own.labels_)
    new = blobs[::5] + 0.01
    np.testing.assert_array_equal(
        model.predict(transformer.transform(new)), own.predict(new)
    )
    report = " ".join(str(model.report()).split())
    assert "a given graph" in report
    assert f"{len(blobs)} points, precomputed distances to neighbors" in report


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distances_to_oneself_may_be_rounded(dtype):
    """As scikit-learn's are, which come from products where features are many."""
    X = np.random.RandomState(0).normal(size=(300, 40)).astype(dtype)
    X[:150] += 5.0
    transformer = KNeighborsTransformer(n_neighbors=20, algorithm="brute")
    graph = transformer.fit_transform(X)
    graph.setdiag(1e-6)
    options = {"random_state": 0, "max_iter": 2}
    given = CDSK(2, kernel="precomputed_neighbors", **options).fit(graph)
    found = CDSK(2, neighbors=transformer, **options).fit(X)
    for model in (given, found):
        assert adjusted_rand_score(model.labels_, np.arange(300) < 150) == 1.0


def test_clusters_are_not_counted_by_another_index(blobs):
    model = CDSK("auto", neighbors=KNeighborsTransformer())
    with pytest.raises(ValueError, match="searches for neighbors by itself"):
        model.fit(blobs)


def test_a_sample_of_a_graph_has_other_neighbors(blobs):
    with pytest.raises(ValueError, match="lam='auto' needs points"):
        select_lambda(distance_graph(blobs, 20), 3, kernel="precomputed_neighbors")


def test_votes_are_those_of_the_definition(rng, blobs):
    transformer = KNeighborsTransformer(n_neighbors=10)
    model = CDSK(3, bandwidth=0.7, neighbors=transformer, random_state=0).fit(blobs)
    new = rng.normal(size=(20, 3))
    graph = transformer.fit(blobs).transform(new).toarray()
    K = np.where(graph > 0, np.exp(-(graph**2) / (2 * 0.7**2)), 0.0)
    members = np.eye(3)[model.labels_]
    with np.errstate(divide="ignore"):
        expected = np.log(K @ (model.weights_[:, np.newaxis] * members))
    np.testing.assert_allclose(model.decision_function(new), expected, rtol=1e-10)


def test_points_without_neighbors_take_the_heaviest_cluster(blobs):
    model = CDSK(3, kernel="precomputed_neighbors", random_state=0)
    model.fit(distance_graph(blobs, 20))
    nobody = sparse.csr_array((2, len(blobs)))
    with pytest.warns(UserWarning, match="no similarity"):
        labels = model.predict(nobody)
    assert len(set(labels)) == 1


def changed(graph, entry, value):
    graph = graph.copy()
    graph.data[entry] = value
    return graph


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda graph: changed(graph, 5, -1.0), "not negative; got -1.0"),
        (lambda graph: changed(graph, 5, np.nan), "NaN"),
        (lambda graph: graph.toarray(), "must be a sparse matrix"),
        (lambda graph: graph[:, :-1], "a row and a column for each of the 240"),
        (lambda graph: graph * 0, "all of them 0"),
        (
            lambda graph: sparse.csr_array(
                (np.ones(graph.nnz), graph.indices, graph.indptr), shape=graph.shape
            ),
            "connectivity",
        ),
    ],
)
def test_bad_graphs_are_refused(blobs, wrong, message):
    graph = wrong(distance_graph(blobs, 9))
    with pytest.raises(ValueError, match=message):
        CDSK(3, kernel="precomputed_neighbors").fit(graph)


def test_pairs_that_come_twice_are_refused():
    parts = np.ones(3), np.array([1, 1, 0]), np.array([0, 2, 3])
    with pytest.raises(ValueError, match="each pair once"):
        PrecomputedNeighbors(sparse.csr_array(parts, shape=(2, 2)), None)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"neighbors": "kd_tree"}, "neighbors must be None or a transformer"),
        ({"neighbors": KNeighborsTransformer}, "neighbors must be None or a trans"),
        ({"neighbors": KNeighborsTransformer(mode="connectivity")}, "mode='distance'"),
        (
            {"neighbors": KNeighborsTransformer(), "kernel": "linear"},
            'neighbors=.* truncates kernel="rbf" only',
        ),
        (
            {"kernel": "precomputed_neighbors", "bandwidth": "median"},
            "bandwidth='median' needs points",
        ),
        ({"kernel": "precomputed_neighbors", "lam": "auto"}, "lam='auto' needs points"),
        (
            {"kernel": "precomputed_neighbors", "representation": "whiten"},
            "representation='whiten' needs points",
        ),
    ],
)
def test_bad_parameters_are_refused(blobs, parameters, message):
    X = blobs
    if parameters.get("kernel") == "precomputed_neighbors":
        X = distance_graph(blobs, 9)
    with pytest.raises(ValueError, match=message):
        CDSK(3, **parameters).fit(X)


# --- similarities --------------------------------------------------------------------


def similarities(X, bandwidth=1.5, least=1e-2):
    """A Gaussian kernel with its small entries left out, as a dense array."""
    K = gaussian_gram(X, bandwidth)
    return np.where(K >= least, K, 0.0)


def fitted(K, **parameters):
    return CDSK(3, kernel="precomputed", random_state=0, **parameters).fit(K)


@pytest.mark.parametrize(
    "layout", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array]
)
def test_the_kernel_of_similarities_is_the_given_one(rng, blobs, layout):
    K = similarities(blobs)
    kernel = SparseKernel.from_similarities(layout(7.0 * K), "X", "a hint", 2)
    found = kernel.as_array()
    np.fill_diagonal(found, 0.0)
    np.fill_diagonal(K, 0.0)
    np.testing.assert_allclose(found, K / K.max(), rtol=1e-14)
    assert (found == found.T).all()
    vectors = rng.normal(size=(3, 240))
    np.testing.assert_allclose(
        kernel.product(vectors), vectors @ K / K.max(), atol=1e-12
    )
    lowest = np.linalg.eigvalsh(kernel.as_array())[0]
    assert lowest >= -1e-6 * kernel.row_sums.max()


def test_what_is_given_is_not_changed(blobs):
    K = sparse.csr_array(3.0 * similarities(blobs))
    before = K.copy()
    fitted(K)
    assert (K != before).nnz == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_similarities_equal_the_dense_matrix(blobs, dtype):
    # with the diagonal that makes them semi-definite, and the unit of the largest
    K = similarities(blobs).astype(dtype)
    diagonal = SparseKernel.from_similarities(sparse.csr_array(K), "X", "", 1).diagonal
    dense = K / np.max(K - np.diag(np.diag(K)))
    np.fill_diagonal(dense, diagonal)
    fits = [fitted(given, qp_tol=1e-9) for given in (dense, sparse.csr_array(K))]
    by_dense, by_sparse = fits
    np.testing.assert_array_equal(by_sparse.labels_, by_dense.labels_)
    np.testing.assert_allclose(by_sparse.history_, by_dense.history_, rtol=1e-7)
    np.testing.assert_allclose(by_sparse.weights_, by_dense.weights_, atol=1e-6)
    np.testing.assert_allclose(by_sparse.margins_, by_dense.margins_, atol=1e-6)


@pytest.mark.parametrize("scale", [1.0, 2.0**-700, 2.0**800])
def test_neither_unit_nor_diagonal_matter(blobs, scale):
    K = similarities(blobs)
    one = fitted(sparse.csr_array(K))
    np.fill_diagonal(K, 0.0)
    other = fitted(sparse.csr_array(scale * K))
    np.testing.assert_array_equal(one.labels_, other.labels_)
    np.testing.assert_array_equal(one.weights_, other.weights_)


@pytest.mark.parametrize("scale", [1.0, 1e-300])
def test_votes_of_sparse_rows_are_those_of_dense_ones(rng, blobs, scale):
    model = fitted(sparse.csr_array(similarities(blobs)))
    rows = scale * np.where(rng.random((50, 240)) < 0.1, rng.random((50, 240)), 0.0)
    expected = model.decision_function(rows)
    for layout in (sparse.csr_array, sparse.csc_array, sparse.coo_matrix):
        found = model.decision_function(layout(rows))
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    members = np.eye(3)[model.labels_]
    votes = rows / scale @ (model.weights_[:, np.newaxis] * members)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(expected, np.log(votes) + np.log(scale), rtol=1e-9)
    K = sparse.csr_array(similarities(blobs))
    assert (model.predict(K) == model.labels_).mean() > 0.95


def test_points_without_similarity_warn_and_are_labeled(blobs):
    K = similarities(blobs)
    K[:2], K[:, :2] = 0.0, 0.0
    alone = fitted(sparse.csr_array(K[2:, 2:]))
    with pytest.warns(UserWarning, match=r"2 of 240 .* with the largest similarities"):
        model = fitted(sparse.csr_array(K))
    np.testing.assert_array_equal(model.unconnected_, [0, 1])
    np.fill_diagonal(K, 0.0)
    assert (model.labels_[:2] == model.labels_[np.argmax(K.sum(axis=1))]).all()
    assert adjusted_rand_score(model.labels_[2:], alone.labels_) == 1
    nobody = sparse.csr_array((1, 240))
    with pytest.warns(UserWarning, match="cluster with the largest weight"):
        model.predict(nobody)


@pytest.mark.parametrize("psd", [True, False])
def test_psd_makes_the_full_matrix(blobs, psd):
    K = similarities(blobs)
    K /= np.max(K - np.diag(np.diag(K)))
    np.fill_diagonal(K, 1.0)
    by_sparse, by_dense = fitted(sparse.csr_array(K), psd=psd), fitted(K, psd=psd)
    np.testing.assert_array_equal(by_sparse.labels_, by_dense.labels_)
    assert by_sparse.n_negative_ == by_dense.n_negative_
    assert (by_sparse.n_negative_ > 0) == (not psd)


def test_what_else_takes_the_matrix(blobs):
    K = sparse.csr_array(similarities(blobs))
    model = fitted(K, init="sparse", lam="auto")
    assert model.lam_ in model.lambda_choice_.grid
    assert select_lambda(K, 3, kernel="precomputed", random_state=0).n_sample == 100
    operator = model.similarity_operator(K)
    top = np.linalg.eigvalsh(operator @ np.eye(240))[::-1][:3]
    np.testing.assert_allclose(top, model.eigenvalues_, atol=1e-6)
    assert model.generalization_bound(K).total > 0
    assert "precomputed" in str(model.report())
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(K), model.predict(K))
    with pytest.raises(ValueError, match="must be the kernel matrix"):
        model.similarity_operator()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda K: K[:, :-1], r"X must be a square matrix; got shape \(240, 239\)"),
        (lambda K: changed(K, 5, -1.0), "X must be symmetric; got -1.0 at"),
        (lambda K: -1.0 * K, "Negative values in data: X must hold none"),
        (lambda K: changed(K, 5, np.nan), "contains NaN at row \\d+, column"),
        (lambda K: changed(K, 5, np.inf), "contains infinity at row \\d+, column"),
        (
            lambda K: 0.0 * K,
            r"No two points have .* Use a matrix with larger entries to",
        ),
        (
            lambda K: sparse.eye_array(240, format="csr"),
            r"No two points have .* Use a matrix with larger entries to",
        ),
        (lambda K: sparse.csr_array((240, 240)), "No two points have any similarity"),
    ],
)
def test_bad_similarities_are_refused(blobs, wrong, message):
    with pytest.raises(ValueError, match=message):
        fitted(wrong(sparse.csr_array(similarities(blobs))))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda rows: -rows, "Negative values in data"),
        (lambda rows: rows[:, :-1], "239 features"),
        (lambda rows: changed(rows, 0, np.nan), "contains NaN"),
    ],
)
def test_bad_rows_of_similarities_are_refused(blobs, wrong, message):
    K = sparse.csr_array(similarities(blobs))
    model = fitted(K)
    with pytest.raises(ValueError, match=message):
        model.predict(wrong(K[:4]))
