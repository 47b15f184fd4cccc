"""Ctrl-C ends every long compiled loop.

Without a clock: compiled code counts its work (src/cdsk/_signals.pyx), which is bounded
between two checks for signals, and any check may be made to raise KeyboardInterrupt.
"""

import numpy as np
import pytest
from scipy import sparse

import cdsk
from cdsk import CDSK, _graph, _kernel, _kmeans, _nearest, _products, _rows, _smo
from cdsk._multilevel import Multilevel


def points(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def ring(n, k):
    """The graph that connects each of n points on a ring with the k next ones."""
    steps = np.concatenate([np.arange(-k, 0), np.arange(1, k + 1)])
    columns = (np.arange(n, dtype=np.int32)[:, np.newaxis] + steps) % n
    starts = np.arange(0, 2 * k * n + 1, 2 * k)
    matrix = sparse.csr_array(
        (np.full(2 * k * n, 0.05), columns.ravel(), starts), shape=(n, n)
    )
    matrix.sort_indices()
    return matrix


def csr_parts(matrix):
    return matrix.indptr, matrix.indices, matrix.data


def negative_rows(n, r):
    F = points(r, n)
    return _rows.NegativeRows(F, np.ascontiguousarray(F.T))


# ---------------------------------------------------------------- compiled loops


def gaussian_gram():
    X = points(500, 20)
    return _kernel.gaussian_gram(X, np.ones(500), np.empty((500, 500)), 1)


def gaussian_rows():
    A, B = points(500, 20), points(400, 20)
    out = np.empty((500, 400))
    return _kernel.gaussian_rows(A, B, np.ones(500), np.ones(400), out, 1)


def gaussian_log_votes():
    A, B = points(500, 20), points(400, 20)
    offsets, out = np.array([0, 200, 400]), np.empty((500, 2))
    weights = np.full(400, 0.1)
    return _kernel.gaussian_log_votes(
        A, B, np.ones(500), np.ones(400), weights, offsets, out, 1
    )


def kernel_product():
    return _kernel.product(points(600, 600), points(5, 600), np.empty((5, 600)), 1)


def kernel_similarity():
    K, out = points(600, 600), np.empty((600, 600))
    return _kernel.similarity(K, np.full(600, 0.1), 2.0, out, np.empty(600), 1)


def inner():
    A = np.ones((4, 60_000))
    return _products.inner(A, A, 1)


def combine():
    return _products.combine(np.ones((4, 4)), np.ones((4, 60_000)), 1)


def kmeans_seed():
    A = np.ones((4, 60_000))
    return _kmeans.seed_centers(A, A[0], 3, np.full(5, 0.5))


def kmeans_lloyd():
    A = np.arange(240_000.0).reshape(4, -1)
    return _kmeans.lloyd(A, A[0], A[:, :3].T.copy(), 0.0, 1)


def graph_product():
    return _graph.product(*csr_parts(ring(5000, 5)), np.ones((5000, 8)), 1)


def graph_similarity():
    weights = np.full(5000, 0.1)
    return _graph.similarity(*csr_parts(ring(5000, 5)), weights, 2.0, 1)


def graph_scale_entries():
    return _graph.scale_entries(*csr_parts(ring(5000, 5)), np.ones(5000), 1)


def graph_components():
    return _graph.components(*csr_parts(ring(5000, 5)), np.zeros(5000))


def graph_aggregate():
    return _graph.aggregate(*csr_parts(ring(5000, 5)), 0.5)


def graph_coarsen():
    group = np.repeat(np.arange(500, dtype=np.intc), 10)
    return _graph.coarsen(*csr_parts(ring(5000, 5)), group, np.ones(5000), 500, 1)


def multilevel_hierarchy():
    return Multilevel(ring(20_000, 5), np.ones(20_000), 1e-8, 2)


def asymmetry():
    return _rows.asymmetry(points(600, 600), 1)


def sparse_hadamard():
    starts, columns, values = csr_parts(ring(5000, 5))
    rows = _rows.SparseRows(starts, columns, values, np.ones(5000))
    return rows.hadamard(np.ones((3, 5000)), 1.0, 1)


def clipped_pairs():
    rows = _rows.StoredRows(points(300, 300))
    negative = negative_rows(300, 40)
    return _rows.clipped_pairs(
        rows, negative, np.full(300, 0.1), 2.0, np.ones(300), 1e-3
    )


def components():
    rows = _rows.StoredRows(np.eye(600))
    return _rows.components(rows, None, np.full(600, 0.1), 2.0, np.ones(600), 1e-3)


def indefinite_components():
    rows = _rows.StoredRows(np.eye(300))
    negative = _rows.NegativeRows(np.zeros((40, 300)), np.zeros((300, 40)))
    return _rows.components(rows, negative, np.full(300, 0.1), 2.0, np.ones(300), 1e-3)


def order_points():
    return _nearest.order_points(points(20_000, 2), np.empty(20_000, np.int32))


def build_tiles():
    return _nearest.Tiles(points(5000, 20))


def nearest_others(d):
    search, shape = _nearest.Tiles(points(3000, d)), (3000, 5)
    return lambda: search.nearest_others(np.empty(shape, np.int32), np.empty(shape), 1)


def nearest_to_one_tile():
    A, shape = points(40, 70, seed=1), (40, 5)
    search = _nearest.Tiles(points(20_000, 70))
    return lambda: search.nearest_to(A, np.empty(shape, np.int32), np.empty(shape), 1)


# The loop, and the work of its largest indivisible step beyond the interval of 1e5.
LOOPS = [
    (gaussian_gram, 0),
    (gaussian_rows, 0),
    (gaussian_log_votes, 0),
    (kernel_product, 0),
    (kernel_similarity, 0),
    (inner, 0),
    (combine, 0),
    (kmeans_seed, 1e6),  # a center
    (kmeans_lloyd, 0),
    (graph_product, 0),
    (graph_similarity, 0),
    (graph_scale_entries, 0),
    (graph_components, 200),
    (graph_aggregate, 200),
    (graph_coarsen, 0),
    (multilevel_hierarchy, 200),
    (asymmetry, 0),
    (sparse_hadamard, 0),
    (clipped_pairs, 0),
    (components, 0),
    (indefinite_components, 0),
    (order_points, 1e5),  # a pass over all keys
    (build_tiles, 1e5),
]


@pytest.mark.parametrize(
    ("call", "step"), LOOPS, ids=lambda x: getattr(x, "__name__", "")
)
def test_compiled_loops(check_interruptible, call, step):
    check_interruptible(call, interval=1e5, step=step)


@pytest.mark.parametrize(
    ("search", "step"),
    [
        # a tile of query points; the work of a strip is predicted by the one before
        (nearest_others(2), 2e5),
        # two groups of 8 tiles
        (nearest_others(70), 3e6),
        # one group of the 53 that the tile of query points visits
        (nearest_to_one_tile(), 3e5),
    ],
    ids=["others", "others by pairs", "to one tile"],
)
def test_neighbor_search(check_interruptible, search, step):
    check_interruptible(search, interval=1e5, step=step)


# ---------------------------------------------------------------- the QP solver


def absolute_rows(n=100, r=80):
    K = cdsk.gaussian_gram(points(n, 2), 3.0)
    return _rows.AbsoluteRows(_rows.StoredRows(K), negative_rows(n, r))


SOURCES = {
    "stored": lambda: _rows.StoredRows(cdsk.gaussian_gram(points(100, 2), 3.0)),
    "absolute": absolute_rows,
    "hadamard": lambda: _rows.HadamardRows(absolute_rows(), points(3, 100), 1.0),
    "cached": lambda: _rows.CachedRows(absolute_rows(), 800),
}


def test_work_of_a_row_includes_its_computation():
    n, r, c = 100, 80, 20
    stored = _rows.StoredRows(np.eye(n))
    absolute = absolute_rows(n, r)
    hadamard = _rows.HadamardRows(absolute, points(c, n), 1.0)
    assert stored.row_work >= n
    # a combination of r rows of the factor
    assert absolute.row_work >= stored.row_work + 0.1 * n * r
    assert hadamard.row_work >= absolute.row_work + 0.1 * n * c
    assert _rows.CachedRows(hadamard, 800).row_work >= hadamard.row_work
    # a stored negative part costs no more than to read it
    negative = _rows.NegativeRows(np.eye(n))
    assert _rows.AbsoluteRows(stored, negative).row_work <= 4 * n


@pytest.mark.parametrize("source", SOURCES)
def test_qp_solver(check_interruptible, source):
    rows = SOURCES[source]()
    Q = np.array([rows.row_array(i) for i in range(100)])
    x, g, p = np.empty(100), np.empty(100), np.linspace(0, 1e-3, 100)

    def call():
        x[:] = 1 / 100
        g[:] = p + 2 * Q @ x
        return _smo.solve(rows, x, g, 0.1, 0.0, 300)

    def verify():
        np.testing.assert_allclose(g, p + 2 * Q @ x, atol=1e-9)
        assert (x >= 0).all() and abs(x.sum() - 1) < 1e-9

    interval = 20 * rows.row_work
    checks = check_interruptible(call, interval=interval, verify=verify)
    # a step takes two rows
    assert checks.total_work >= 2 * rows.row_work * checks.n_checks


def test_sparse_qp_solver(check_interruptible):
    # a long chain moves weight by one point at a time
    n = 2000
    off = np.full(n - 1, -1.0)
    A = sparse.csr_array(sparse.diags_array([off, off], offsets=[-1, 1]))
    p, x, g = np.linspace(0, 1e-3, n) ** 2, np.empty(n), np.empty(n)
    rows = _rows.SparseRows(A.indptr, A.indices, A.data, np.full(n, 2.0))

    def call():
        x[:] = 1 / n
        g[:] = p + 2 * (A @ x + 2 * x)
        return _smo.solve(rows, x, g, 10 / n, 0.0, 20_000)

    def verify():
        np.testing.assert_allclose(g, p + 2 * (A @ x + 2 * x), atol=1e-12)
        assert abs(x.sum() - 1) < 1e-9

    # a step visits the children of a few nodes
    check_interruptible(call, interval=1e5, step=1e5, verify=verify)


# ---------------------------------------------------------------- whole calls


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The alternation did not converge")
@pytest.mark.parametrize(("n", "d"), [(300, 10), (2000, 2)])
def test_an_interrupted_fit_leaves_the_estimator_as_it_was(watch_checks, n, d):
    model = CDSK(4, random_state=0, n_threads=1).fit(points(100, d))
    before = model.__dict__.copy()
    X = points(n, d, seed=1)
    with watch_checks(interval=1e5) as checks:
        CDSK(4, random_state=0, n_threads=1).fit(X)
    for share in (0.0, 0.2, 0.5, 0.8, 1.0):
        k = max(1, int(share * checks.n_checks))
        with (
            pytest.raises(KeyboardInterrupt),
            watch_checks(interrupt_at=k, interval=1e5),
        ):
            model.fit(X)
        assert model.__dict__.keys() == before.keys()
        assert all(model.__dict__[name] is before[name] for name in before)


@pytest.mark.filterwarnings("ignore:The alternation did not converge")
def test_suggest_n_clusters(check_interruptible):
    X = points(300, 10)
    check_interruptible(
        lambda: cdsk.suggest_n_clusters(X, random_state=0, n_threads=1),
        interval=1e5,
        step=1e6,
    )
