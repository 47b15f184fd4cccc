"""The names other compiled code uses: pinned, complete, safe to call from anywhere."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import cdsk
import compiled

GRAM = (
    "int ({0} const *, Py_ssize_t, Py_ssize_t, double const *, Py_ssize_t, {0} *, "
    "double *, int)"
)
ROWS = (
    "int ({0} const *, Py_ssize_t, {0} const *, Py_ssize_t, Py_ssize_t, "
    "double const *, Py_ssize_t, double const *, Py_ssize_t, {0} *, double *, int)"
)
VOTES = (
    "int ({0} const *, Py_ssize_t, {0} const *, Py_ssize_t, Py_ssize_t, "
    "double const *, Py_ssize_t, double const *, Py_ssize_t, double const *, "
    "Py_ssize_t const *, Py_ssize_t, double *, double *, int)"
)
PRODUCT = "int ({0} const *, Py_ssize_t, double const *, Py_ssize_t, double *, int)"
SIMILARITY = (
    "int ({0} const *, Py_ssize_t, double const *, double, {0} *, double *, int)"
)
ROW = "double const *(*)(void *, Py_ssize_t, double *)"

PINNED = {
    "cdsk._kernel": {
        "cdsk_packed_size": "Py_ssize_t (Py_ssize_t, Py_ssize_t)",
        "cdsk_gram_f32": GRAM.format("float"),
        "cdsk_gram_f64": GRAM.format("double"),
        "cdsk_rows_f32": ROWS.format("float"),
        "cdsk_rows_f64": ROWS.format("double"),
        "cdsk_log_votes_f32": VOTES.format("float"),
        "cdsk_log_votes_f64": VOTES.format("double"),
        "cdsk_product_f32": PRODUCT.format("float"),
        "cdsk_product_f64": PRODUCT.format("double"),
        "cdsk_similarity_f32": SIMILARITY.format("float"),
        "cdsk_similarity_f64": SIMILARITY.format("double"),
    },
    "cdsk._smo": {
        "cdsk_solve_qp": (
            f"int (Py_ssize_t, {ROW}, void *, double const *, double const *, double, "
            "double, Py_ssize_t, double *, double *, double *, double *, Py_ssize_t *)"
        ),
        "cdsk_solve_qp_csr": (
            "int (Py_ssize_t, Py_ssize_t const *, int const *, double const *, "
            "double const *, double const *, double, double, Py_ssize_t, double *, "
            "double *, double *, double *, Py_ssize_t *)"
        ),
    },
}
POLICY = (
    "Compiled modules of other people look these up by name and signature, and do not "
    "load if one is missing or different, used or not. A new signature gets a new "
    "name; the old one stays. Add new names to PINNED, __init__.pxd and cdsk.h."
)
SIGNATURES = {name: s for names in PINNED.values() for name, s in names.items()}
PACKAGE = Path(cdsk.__file__).parent
HEADER = (PACKAGE / "include" / "cdsk.h").read_text(encoding="utf-8")

packed_size = compiled.function("cdsk._kernel", "cdsk_packed_size")


@pytest.mark.parametrize("module", PINNED)
def test_names_and_signatures_are_the_pinned_ones(module):
    assert compiled.signatures(module) == PINNED[module], POLICY


def test_cython_code_gets_every_name():
    text = (PACKAGE / "__init__.pxd").read_text(encoding="utf-8")
    found = {}
    for module, names in re.findall(
        r"^from (\S+) cimport (\([^)]*\)|\S+)", text, flags=re.MULTILINE
    ):
        found[module] = set(re.findall(r"\w+", names))
    assert found == {module: set(names) for module, names in PINNED.items()}, POLICY


def test_installed_pxd_files_declare_nothing_else():
    for module, names in PINNED.items():
        text = (PACKAGE / f"{module.split('.')[1]}.pxd").read_text(encoding="utf-8")
        declared = re.findall(r"^c\w+ .*", text, flags=re.MULTILINE)
        found = [re.match(r"cdef \w+ (cdsk_\w+)\(", line) for line in declared]
        assert all(found), POLICY
        assert {match.group(1) for match in found} == set(names), POLICY


def test_header_declares_every_name():
    code = re.sub(r"/\*.*?\*/", "", HEADER, flags=re.DOTALL)
    row = re.search(r"typedef const double \*\(\*cdsk_row\)\(([^)]*)\);", code)
    assert ROW == f"double const *(*)({_parameters(row.group(1))})"
    declared = {
        name: f"{result} ({_parameters(parameters)})".replace("cdsk_row", ROW)
        for result, name, parameters in re.findall(
            r"^CDSK_FUNCTION (\w+) \(\*(\w+)\)\(([^)]*)\);", code, flags=re.MULTILINE
        )
    }
    assert declared == SIGNATURES, POLICY


def test_header_looks_for_every_signature():
    strings = re.sub(r'"\s*"', "", HEADER)
    table = re.findall(r'\{"(\S+)", "(\w+)",\s*"(.*?)",\s*&(\w+)\}', strings)
    found = {}
    for module, name, signature, target in table:
        assert name == target
        found.setdefault(module, {})[name] = signature
    assert found == PINNED, POLICY


def _parameters(text):
    """Names left out and const after the type, as Cython writes it."""
    plain = []
    for parameter in " ".join(text.split()).split(", "):
        const, kind, star = re.fullmatch(r"(const )?(\w+) (\*?)\w+", parameter).groups()
        plain.append(kind + (" const" if const else "") + (" *" if star else ""))
    return ", ".join(plain)


# ---------------------------------------------------------------- calls


def gram(X, bandwidth=1.0, n_threads=1, step=0, n=None):
    f = "f32" if X.dtype == np.float32 else "f64"
    K = np.empty((len(X), len(X)), X.dtype)
    status = compiled.function("cdsk._kernel", f"cdsk_gram_{f}")(
        X,
        len(X) if n is None else n,
        X.shape[1],
        np.atleast_1d(bandwidth),
        step,
        K,
        np.empty(packed_size(*X.shape)),
        n_threads,
    )
    return status, K


def rows(A, B, bandwidth=1.0, n_threads=1, n_b=None):
    f = "f32" if A.dtype == np.float32 else "f64"
    b = np.array([bandwidth])
    K = np.empty((len(A), len(B)), A.dtype)
    work = np.empty(packed_size(*A.shape) + packed_size(*B.shape))
    status = compiled.function("cdsk._kernel", f"cdsk_rows_{f}")(
        A,
        len(A),
        B,
        len(B) if n_b is None else n_b,
        A.shape[1],
        b,
        0,
        b,
        0,
        K,
        work,
        n_threads,
    )
    return status, K


def votes(A, B, alpha, offsets, bandwidth=1.0, n_threads=1):
    f = "f32" if A.dtype == np.float32 else "f64"
    b, offsets = np.array([bandwidth]), np.array(offsets, np.intp)
    out = np.empty((len(A), max(len(offsets) - 1, 0)))
    work = np.empty(packed_size(*A.shape) + packed_size(*B.shape))
    status = compiled.function("cdsk._kernel", f"cdsk_log_votes_{f}")(
        A,
        len(A),
        B,
        len(B),
        A.shape[1],
        b,
        0,
        b,
        0,
        alpha,
        offsets,
        len(offsets) - 1,
        out,
        work,
        n_threads,
    )
    return status, out


def product(K, columns, n_threads=1, n=None):
    f = "f32" if K.dtype == np.float32 else "f64"
    out = np.empty_like(columns)
    status = compiled.function("cdsk._kernel", f"cdsk_product_{f}")(
        K, len(K) if n is None else n, columns, len(columns), out, n_threads
    )
    return status, out


def similarity(K, alpha, lam, n_threads=1, n=None):
    f = "f32" if K.dtype == np.float32 else "f64"
    S, degrees = np.empty_like(K), np.empty(len(K))
    status = compiled.function("cdsk._kernel", f"cdsk_similarity_{f}")(
        K, len(K) if n is None else n, alpha, lam, S, degrees, n_threads
    )
    return status, S, degrees


def solve_qp(Q, p, upper=1.0, x0=None, tol=1e-9, max_iter=100_000, n=None):
    x = np.full(len(p), 1 / len(p)) if x0 is None else np.array(x0)
    gradient, work = np.empty(len(p)), np.empty(4 * len(p))
    gap, n_iter = np.empty(1), np.empty(1, np.intp)
    row = compiled.ROW(lambda user, i, scratch: Q.ctypes.data + Q.strides[0] * i)
    status = compiled.function("cdsk._smo", "cdsk_solve_qp")(
        len(p) if n is None else n,
        row,
        None,
        np.diag(Q).copy(),
        p,
        upper,
        tol,
        max_iter,
        x,
        gradient,
        work,
        gap,
        n_iter,
    )
    return status, x, gradient, gap[0], n_iter[0]


def solve_qp_csr(
    Q, p, upper=1.0, x0=None, tol=1e-9, max_iter=100_000, n=None, arrays=None
):
    x = np.full(len(p), 1 / len(p)) if x0 is None else np.array(x0)
    entries = sparse.csr_array(Q - np.diag(np.diag(Q)))
    indptr, indices = entries.indptr, entries.indices
    if arrays is not None:
        indptr, indices = arrays
    gradient, work = np.empty(len(p)), np.full(3 * len(p) + 64 + 8, 7.5)
    gap, n_iter = np.empty(1), np.empty(1, np.intp)
    status = compiled.function("cdsk._smo", "cdsk_solve_qp_csr")(
        len(p) if n is None else n,
        np.array(indptr, np.intp),
        np.array(indices, np.intc),
        entries.data,
        np.diag(Q).copy(),
        p,
        upper,
        tol,
        max_iter,
        x,
        gradient,
        work,
        gap,
        n_iter,
    )
    assert (work[-8:] == 7.5).all()  # no more than stated
    return status, x, gradient, gap[0], n_iter[0]


SOLVERS = pytest.mark.parametrize("solve", [solve_qp, solve_qp_csr])


@pytest.fixture
def X(rng, dtype):
    return rng.normal(size=(130, 3)).astype(dtype)


def test_results_are_those_of_the_python_functions(X):
    n, lam = len(X), 0.3
    local = np.linspace(0.5, 1.5, n)
    K = cdsk.gaussian_gram(X, 1.0)
    assert (gram(X)[1] == K).all()
    assert (gram(X, local, step=1)[1] == cdsk.gaussian_gram(X, local)).all()
    assert (rows(X, X[:50])[1] == cdsk.gaussian_rows(X, X[:50], 1.0)).all()

    alpha = np.full(n, 1 / n)
    S, degrees = cdsk.similarity_matrix(K, alpha, lam)
    _, found_S, found_degrees = similarity(K, alpha, lam)
    assert (found_S == S).all()
    assert (found_degrees == degrees).all()

    columns = np.stack([alpha, np.linspace(-1, 1, n)])
    off_diagonal = K.astype(np.float64) - np.eye(n)
    np.testing.assert_allclose(product(K, columns)[1], columns @ off_diagonal)

    _, found = votes(X, X, alpha, [0, 40, 40, n])
    wide = X.astype(np.float64)
    first, last = (
        np.log(cdsk.gaussian_rows(wide, part, 1.0).mean(axis=1) * len(part) / n)
        for part in (wide[:40], wide[40:])
    )
    np.testing.assert_allclose(found[:, 0], first, atol=1e-12)
    assert (found[:, 1] == -np.inf).all()
    np.testing.assert_allclose(found[:, 2], last, atol=1e-12)


@SOLVERS
def test_qp_result_is_that_of_the_python_function(rng, solve):
    Q = cdsk.gaussian_gram(rng.normal(size=(80, 3)), 1.0)
    p = rng.normal(size=80)
    status, x, gradient, gap, n_iter = solve(Q, p, 0.1)
    expected = cdsk.solve_qp(Q, p, 0.1, tol=1e-9)
    assert status == 0
    assert gap <= 1e-9
    assert n_iter > 0
    assert (x >= 0).all() and (x <= 0.1).all()
    np.testing.assert_allclose(gradient, p + 2 * Q @ x, atol=1e-12)
    assert p @ x + x @ Q @ x == pytest.approx(expected.objective, abs=1e-9)


def test_qp_of_sparse_rows_takes_the_same_steps(rng):
    Q = cdsk.gaussian_gram(rng.normal(size=(90, 3)), 0.3)
    Q[Q < 0.01] = 0.0
    Q[np.diag_indices(90)] = Q.sum(axis=1)  # dominant
    p = rng.normal(size=90)
    for dense, found in zip(solve_qp(Q, p, 0.1), solve_qp_csr(Q, p, 0.1), strict=True):
        np.testing.assert_array_equal(found, dense)


@SOLVERS
def test_qp_says_when_steps_were_too_few(rng, solve):
    Q = cdsk.gaussian_gram(rng.normal(size=(80, 3)), 1.0)
    p = rng.normal(size=80)
    status, x, _, gap, n_iter = solve(Q, p, 0.1, max_iter=3)
    assert (status, n_iter) == (1, 3)
    assert gap > 1e-9
    # and goes on from where it stopped
    assert solve(Q, p, 0.1, x0=x)[0] == 0


@SOLVERS
@pytest.mark.parametrize("upper", [1.0, 2.0, 1e20, np.inf])
def test_qp_with_a_bound_that_is_none(upper, solve):
    status, x, *_ = solve(np.diag([1.0, 3.0]), np.zeros(2), upper)
    assert status == 0
    np.testing.assert_allclose(x, [0.75, 0.25], atol=1e-12)


@SOLVERS
def test_qp_with_nan_does_not_converge(solve):
    Q = np.eye(4)
    Q[1, 2] = Q[2, 1] = np.nan
    status, _, _, gap, _ = solve(Q, np.zeros(4))
    assert (status, gap) == (2, np.inf)


@pytest.mark.parametrize(
    "call",
    [
        lambda X, a: gram(X, n=0),
        lambda X, a: gram(X, n=-1),
        lambda X, a: gram(X, -1.0),
        lambda X, a: gram(X, 0.0),
        lambda X, a: gram(X, np.nan),
        lambda X, a: gram(X, np.inf),
        lambda X, a: gram(X, 1e-160),
        lambda X, a: gram(X, np.append(np.ones(len(X) - 1), -1.0), step=1),
        lambda X, a: gram(X, np.ones(2 * len(X)), step=2),
        lambda X, a: gram(X, step=-1),
        lambda X, a: gram(X, n_threads=0),
        lambda X, a: gram(X[:, :0]),
        lambda X, a: rows(X, X, n_b=0),
        lambda X, a: rows(X, X, -1.0),
        lambda X, a: rows(X, X, n_threads=-1),
        lambda X, a: votes(X[:0], X, a, [0, len(X)]),
        lambda X, a: votes(X, X, a, [0]),
        lambda X, a: votes(X, X, a, [1, len(X)]),
        lambda X, a: votes(X, X, a, [0, len(X) - 1]),
        lambda X, a: votes(X, X, a, [0, 5, 3, len(X)]),
        lambda X, a: votes(X, X, a, [0, 10**9, len(X)]),
        lambda X, a: votes(X, X, a, [0, -(10**9), len(X)]),
        lambda X, a: votes(X, X, a - a, [0, len(X)]),
        lambda X, a: votes(X, X, a * np.inf, [0, len(X)]),
        lambda X, a: votes(X, X, a, [0, len(X)], bandwidth=-1.0),
        lambda X, a: product(np.eye(2), np.ones((1, 2)), n=0),
        lambda X, a: product(np.eye(2), np.ones((1, 2)), n_threads=0),
        lambda X, a: similarity(np.eye(2), np.ones(2), 0.3, n=0),
        lambda X, a: similarity(np.eye(2), np.ones(2), 0.3, n_threads=0),
        lambda X, a: similarity(np.eye(2), np.array([1.0, -3.0]), 0.3),
        lambda X, a: similarity(np.eye(2), np.array([1.0, np.nan]), 0.3),
        lambda X, a: similarity(np.eye(2), np.ones(2), -1.0),
        lambda X, a: similarity(np.eye(2), np.ones(2), np.nan),
    ],
)
def test_kernel_arguments_out_of_range_are_refused(X, call):
    assert call(X, np.ones(len(X)))[0] == -1


@SOLVERS
@pytest.mark.parametrize(
    "change",
    [
        {"n": 0},
        {"n": -1},
        {"upper": 0.0},
        {"upper": np.nan},
        {"upper": 0.3},  # three times this is less than 1
        {"tol": -1.0},
        {"tol": np.nan},
        {"p": np.array([0.0, np.nan, 0.0])},
        {"p": np.array([0.0, np.inf, 0.0])},
        {"max_iter": -1},
        {"x0": [0.5, 0.5, 0.5]},
        {"x0": [1.5, -0.5, 0.0]},
        {"x0": [np.nan, 0.5, 0.5]},
        {"x0": [1.0, 0.0, 0.0], "upper": 0.5},
    ],
)
def test_qp_arguments_out_of_range_are_refused(change, solve):
    before = change.get("x0", np.full(3, 1 / 3))
    status, x, *_ = solve(**{"Q": np.eye(3), "p": np.zeros(3)} | change)
    assert status == -1
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize(
    ("indptr", "indices"),
    [
        ([0, 1, 2, 2], [1, 3]),  # beyond the last column
        ([0, 1, 2, 2], [1, -1]),
        ([0, 1, 2, 2], [0, 1]),  # the diagonal
        ([0, 2, 2, 2], [2, 1]),  # not ascending
        ([0, 2, 2, 2], [1, 1]),  # twice
        ([1, 1, 2, 2], [1, 0]),  # the first row does not begin at 0
        ([0, 2, 1, 2], [1, 2]),  # a row of less than no entries
        ([0, -1, 2, 2], [1, 2]),
    ],
)
def test_rows_that_are_no_csr_matrix_are_refused(indptr, indices):
    arrays = indptr, indices
    Q = np.eye(3) + 0.1 * np.eye(3, k=1) + 0.1 * np.eye(3, k=-1)
    status, x, *_ = solve_qp_csr(Q, np.zeros(3), arrays=arrays)
    assert status == -1
    np.testing.assert_array_equal(x, np.full(3, 1 / 3))


def everything(X):
    """Every function once, on two threads of its own."""
    n = len(X)
    alpha = np.linspace(1, 2, n)
    alpha /= alpha.sum()
    _, K = gram(X, n_threads=2)
    Q, p = K.astype(np.float64), np.linspace(-1, 1, n)
    return [
        K,
        rows(X, X[: n // 2], n_threads=2)[1],
        votes(X, X, alpha, [0, n // 3, n], n_threads=2)[1],
        product(K, np.stack([alpha, p]), n_threads=2)[1],
        *similarity(K, alpha, 0.3, n_threads=2)[1:],
        *solve_qp(Q, p, 0.1, tol=1e-6)[1:3],
        *solve_qp_csr(Q, p, 0.1, tol=1e-6)[1:3],
    ]


def test_calls_on_several_threads_give_the_serial_results(rng, dtype):
    data = [rng.normal(size=(n, 4)).astype(dtype) for n in (60, 150, 300, 400)]
    serial = [everything(X) for X in data]
    with ThreadPoolExecutor(len(data)) as pool:
        for _ in range(3):
            for found, expected in zip(pool.map(everything, data), serial, strict=True):
                for a, b in zip(found, expected, strict=True):
                    np.testing.assert_array_equal(a, b)
