"""The l1-graph, and the sparse codes it shares with its relatives."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from cdsk.baselines import L1Graph
from cdsk.baselines._sparse_codes import keep_largest_entries, sparse_code


def planes(rng, n=60, noise=0.0):
    """Three planes of R^6 that cross in the origin, each two at an angle of 66 deg."""
    axes = np.linalg.qr(rng.normal(size=(6, 6)))[0].reshape(3, 2, 6)
    spans = axes + 0.5 * np.roll(axes, 1, axis=0)
    X = rng.normal(size=(3, n, 2)) @ spans
    return (X + noise * rng.normal(size=X.shape)).reshape(-1, 6), np.repeat(range(3), n)


def unit(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def violation(slope, A, alpha):
    """By how much |slope| <= alpha, and slope = alpha sign(a) if a != 0, are wrong."""
    slope, on = slope.copy(), A != 0
    np.fill_diagonal(slope, 0.0)
    inside = np.abs(slope - alpha * np.sign(A))[on]
    return max(inside.max(initial=0), (np.abs(slope) - alpha).max())


def test_intersecting_planes_are_found(rng):
    X, y = planes(rng)
    labels = L1Graph(3, random_state=0).fit_predict(X)
    assert adjusted_rand_score(y, labels) > 0.95
    for rival in (KMeans(3, random_state=0), SpectralClustering(3, random_state=0)):
        assert adjusted_rand_score(y, rival.fit_predict(X)) < 0.3


@pytest.mark.parametrize("alpha", [0.3, 0.1, 1e-3])
@pytest.mark.parametrize("shape", [(60, 90), (90, 10), (150, 2), (40, 1)], ids=str)
# graphs of few neighbors are disconnected
@pytest.mark.filterwarnings("ignore:.*have no similarity")
def test_optimality_conditions_of_all_atoms(rng, shape, alpha):
    # 150 directions in the plane: many atoms are nearly parallel
    X = rng.normal(size=shape)
    A = L1Graph(3, alpha=alpha, random_state=0).fit(X).coef_.toarray()
    assert (np.diagonal(A) == 0).all()
    slope = (unit(X) - A @ unit(X)) @ unit(X).T
    assert violation(slope, A, alpha) <= 2e-6 * alpha


def test_codes_are_those_of_coordinate_descent(rng):
    X, alpha = rng.normal(size=(30, 12)), 0.05
    A = L1Graph(3, alpha=alpha, random_state=0).fit(X).coef_.toarray()
    lasso = Lasso(alpha / 12, fit_intercept=False, tol=1e-14, max_iter=10**6)
    for i, x in enumerate(unit(X)):
        others = np.delete(unit(X), i, axis=0)
        expected = lasso.fit(others.T, x).coef_
        np.testing.assert_allclose(np.delete(A[i], i), expected, atol=1e-7)


def test_the_affinity_is_symmetrized(rng):
    model = L1Graph(2, random_state=0).fit(rng.normal(size=(40, 5)))
    A = np.abs(model.coef_.toarray())
    np.testing.assert_allclose(model.affinity_matrix_.toarray(), (A + A.T) / 2)


def test_an_initial_code_does_not_change_the_result(rng):
    X = unit(rng.normal(size=(50, 20)))
    gram = X @ X.T
    atoms, values = sparse_code(gram, gram[0], 0.1, excluded=[0])
    guess = np.array([3, 7, 11]), np.array([1.0, -2.0, 0.5])
    others, again = sparse_code(gram, gram[0], 0.1, guess, excluded=[0])
    first, second = np.argsort(atoms), np.argsort(others)
    assert (atoms[first] == others[second]).all()
    np.testing.assert_allclose(values[first], again[second], atol=1e-9)


def test_keep_largest_entries(rng):
    A = rng.normal(size=(20, 15)) * (rng.random((20, 15)) < 0.6)
    A[4] = 0.0
    kept = keep_largest_entries(sparse.csr_array(A), 0.8).toarray()
    assert ((kept == A) | (kept == 0)).all()
    for whole, part in zip(np.abs(A), np.abs(kept), strict=True):
        ordered = np.sort(whole)[::-1]
        m = np.searchsorted(np.cumsum(ordered), 0.8 * whole.sum()) + 1
        expected = ordered[:m] if whole.any() else []
        np.testing.assert_allclose(np.sort(part[part > 0])[::-1], expected)
    assert (keep_largest_entries(sparse.csr_array(A), 1.0) != A).sum() == 0


def test_duplicates_have_the_same_neighbors_and_labels(rng):
    X, _ = planes(rng, 20, noise=0.01)
    copies = np.concatenate([X, X[:7], X[:2]])
    W = L1Graph(3, random_state=0).fit(X).affinity_matrix_.toarray()
    model = L1Graph(3, random_state=0).fit(copies)
    point = np.concatenate([np.arange(60), np.arange(7), np.arange(2)])
    expected = W[np.ix_(point, point)]
    expected[(point == point[:, np.newaxis]) & ~np.eye(69, dtype=bool)] = W.max()
    np.testing.assert_allclose(model.affinity_matrix_.toarray(), expected, atol=1e-9)
    assert (model.labels_ == model.labels_[point]).all()
    # the codes still reconstruct the points
    residual = unit(copies) - model.coef_ @ unit(copies)
    slope = residual @ unit(copies).T
    slope[point == point[:, np.newaxis]] = 0.0
    assert violation(slope, model.coef_.toarray(), 0.1) <= 1e-6


def test_lengths_and_units_do_not_matter(rng):
    X, _ = planes(rng, 20)
    expected = L1Graph(3, random_state=0).fit(X).affinity_matrix_.toarray()
    for factor in (1e-100, 1e100, np.exp(3 * rng.normal(size=(60, 1)))):
        W = L1Graph(3, random_state=0).fit(factor * X).affinity_matrix_.toarray()
        np.testing.assert_allclose(W, expected, atol=1e-7)


@pytest.mark.parametrize(
    "X",
    [
        np.ones((5, 3)),
        np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 2.0], [1.0, 2.1]]),
        np.arange(6.0).reshape(-1, 1),
        np.array([[1.0, 2.0], [1.0, 3.0]]),
        np.repeat(np.eye(3), 2, axis=0),
    ],
    ids=["equal", "zeros", "one feature", "two points", "orthogonal copies"],
)
# fewer distinct points than clusters
@pytest.mark.filterwarnings("ignore:X has . distinct point")
# graphs of few neighbors are disconnected
@pytest.mark.filterwarnings("ignore:.*have no similarity")
# equal points
@pytest.mark.filterwarnings("ignore:Found . connected groups")
def test_degenerate_data(X):
    for n_clusters in (1, 2):
        labels = L1Graph(n_clusters, random_state=0).fit_predict(X)
        assert labels.max() < n_clusters


def test_the_same_bits_on_any_number_of_threads(rng):
    X = rng.normal(size=(300, 200))
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(L1Graph(3, random_state=0).fit(X).affinity_matrix_)
    assert (found[0] != found[1]).nnz == 0


def test_convergence_warning(rng, monkeypatch):
    monkeypatch.setattr("cdsk.baselines._sparse_codes._MAX_ITER", 2)
    with pytest.warns(ConvergenceWarning, match="did not converge in 2 iterations"):
        L1Graph(2, random_state=0).fit(rng.normal(size=(30, 5)))


def test_memory_error(rng, limit_memory):
    X = rng.normal(size=(200, 2))
    limit_memory(8 * 200**2 - 1)
    with pytest.raises(MemoryError, match="Gram matrix of all points needs 320,000"):
        L1Graph(2).fit(X)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"alpha": 0}, "alpha must be a number > 0; got 0"),
        ({"mass": 1.5}, "mass must be a number > 0 and <= 1; got 1.5"),
        ({"alpha": 1}, r"alpha must be less than the largest \|cosine\|.*; got 1"),
        ({"assign_labels": "x"}, "assign_labels must be one of"),
    ],
)
def test_invalid_parameters(rng, wrong, message):
    with pytest.raises(ValueError, match=message):
        L1Graph(2, **wrong).fit(rng.normal(size=(9, 2)))
