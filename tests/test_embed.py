"""The examples of examples/embed, built against the installed package and run."""

import importlib.util
import io
import os
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import cdsk
import reference

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples" / "embed"
INCLUDE = sysconfig.get_path("include")

EDITABLE = not list(Path(cdsk.__file__).parent.glob("_kernel.*.so"))
needs_install = pytest.mark.skipif(
    EDITABLE, reason="compilers do not find the .pxd files of an editable install"
)
needs_compiler = pytest.mark.skipif(
    shutil.which("cc") is None
    or shutil.which("c++") is None
    or not Path(INCLUDE, "Python.h").exists(),
    reason="needs cc, c++ and Python.h",
)
needs_meson = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("mesonbuild", "Cython")),
    reason="needs meson and Cython",
)

# compilers take seconds
pytestmark = pytest.mark.slow


def run(*command, cwd):
    # tools installed beside the interpreter, whether its environment is active or not
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture
def demo(tmp_path, monkeypatch, capsys):
    """Builds an example and runs its demo.py: what it defines, and what it printed."""

    def build_and_run(name, *options):
        source = tmp_path / name
        shutil.copytree(EXAMPLES / name, source)
        meson = (sys.executable, "-m", "mesonbuild.mesonmain")
        # not optimized: it is the compilation that takes time here
        run(*meson, "setup", "build", "-Doptimization=0", *options, cwd=source)
        run(*meson, "compile", "-C", "build", cwd=source)
        monkeypatch.syspath_prepend(source / "build")
        names = runpy.run_path(str(source / "demo.py"), run_name="__main__")
        return names, capsys.readouterr().out

    return build_and_run


def labeled_weights(X, y, bandwidth, lam):
    """The weights of the Cython and C++ examples, by the Python functions."""
    n = len(X)
    K = cdsk.gaussian_gram(X, bandwidth)
    G = y[:, np.newaxis] == y
    q = (K * (1.0 - 2.0 * G)).sum(axis=1)
    return cdsk.solve_qp(n * lam * K * G, q, 1 / (n * lam), tol=1e-6).x


@needs_install
@needs_compiler
@needs_meson
def test_cython(demo):
    names, printed = demo("cython")
    support, accuracy = re.fullmatch(
        r"(\d+) of 600 points have positive weight\n"
        r"accuracy ([\d.]+) over 20 batches\n",
        printed,
    ).groups()
    assert float(accuracy) > 0.95

    X, y, model = names["X"], names["y"], names["model"]
    expected = labeled_weights(X, y, names["BANDWIDTH"], 0.3)
    assert int(support) == np.count_nonzero(model.weights)
    # the order of the points differs, and so do the steps of the solver
    np.testing.assert_allclose(model.weights, expected, atol=1e-5)
    assert model.gap <= 1e-6

    batch, truth = next(names["batches"]())
    votes = model.log_votes(batch)
    keep = model.weights > 0
    np.testing.assert_allclose(
        votes,
        reference.log_votes(
            batch, X[keep], y[keep], model.weights[keep], names["BANDWIDTH"], 2
        ).astype(float),
        atol=1e-10,
    )
    assert np.mean(votes.argmax(axis=1) == truth) > 0.95
    with pytest.raises(ValueError, match="fit failed with status -1"):
        names["StreamClassifier"](X, y, -1.0)


@needs_install
@needs_compiler
@needs_meson
def test_cpp(demo):
    names, printed = demo("cpp", "-Dwerror=true")
    table = np.loadtxt(io.StringIO(printed), skiprows=1)
    X, y, _ = names["make_data"](500, 0)
    test, truth, _ = names["make_data"](1000, 1)
    np.testing.assert_allclose(table[:, 0], names["BANDWIDTHS"])
    scores = names["scores"]()
    assert scores == names["scores"]()
    for (bandwidth, n_support, shown), (accuracy, support, gap, status) in zip(
        table, scores, strict=True
    ):
        assert status == 0
        assert gap <= 1e-6
        expected = labeled_weights(X, y, bandwidth, names["LAM"])
        assert support == n_support
        assert support == pytest.approx(np.count_nonzero(expected), abs=5)
        keep = expected > 0
        votes = reference.log_votes(
            test, X[keep], y[keep], expected[keep], bandwidth, 2
        )
        assert accuracy == pytest.approx(shown, abs=5.1e-4)
        # a point between the classes may fall to either side by rounding
        assert accuracy == pytest.approx(
            np.mean(votes.argmax(axis=1) == truth), abs=3e-3
        )


def test_numba(capsys):
    try:
        import numba  # noqa: F401
    except ImportError as error:  # also if this NumPy is too new for it
        pytest.skip(f"needs numba: {error}")
    names = runpy.run_path(str(EXAMPLES / "numba_votes.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert len(re.findall(r"batch \d: mean log density -\d", printed)) == 3

    X, weights, b = names["X"], names["weights"], names["bandwidth"]
    Q = 0.5 * cdsk.gaussian_gram(X, np.sqrt(2) * b)
    p = -2 * cdsk.gaussian_gram(X, b).mean(axis=1)
    expected = cdsk.solve_qp(Q, p, tol=1e-6)
    assert names["gap"] <= 1e-6
    assert weights.sum() == pytest.approx(1)
    assert p @ weights + weights @ Q @ weights == pytest.approx(
        expected.objective, abs=1e-6
    )
    assert printed.startswith(f"{np.count_nonzero(weights)} of 1000 points")
    np.testing.assert_allclose(
        names["reduced"],
        np.log(cdsk.gaussian_rows(names["batch"], X, b) @ weights),
        atol=1e-10,
    )


def test_ctypes(capsys):
    names = runpy.run_path(str(EXAMPLES / "ctypes_gram.py"), run_name="__main__")
    X = np.array(names["X"], np.float32).reshape(500, 3)
    K = cdsk.gaussian_gram(X, 1.0)
    assert (np.array(names["K"], np.float32).reshape(500, 500) == K).all()
    assert f"mean {K.mean():.4f}, K[0, 1] = {K[0, 1]:.4f}" in capsys.readouterr().out


def test_ctypes_with_sparse_rows(capsys):
    names = runpy.run_path(str(EXAMPLES / "ctypes_qp.py"), run_name="__main__")
    n, (indptr, indices, values, diagonal) = names["n"], names["arrays"]
    C = sparse.csr_array((values, indices, indptr), shape=(n, n))
    C = C + sparse.diags_array(np.array(diagonal))
    x, tol = np.array(names["x"]), 1e-3 * names["equal"]
    assert names["equal"] == pytest.approx(C.sum() / n**2)
    expected = cdsk.solve_qp(C, np.zeros(n), 10 / n, tol=tol)
    assert x @ (C @ x) == pytest.approx(expected.objective, abs=tol)
    assert names["variance"] == pytest.approx(x @ (C @ x))
    assert names["gap"] <= tol
    steps, shown = names["n_iter"], names["variance"]
    assert f"variance {shown:.3e} after {steps} steps" in capsys.readouterr().out


# ---------------------------------------------------------------- the header

MODULE = """
#include <cdsk.h>

static PyObject *packed_size(PyObject *self, PyObject *args)
{
    Py_ssize_t n, d;
    (void)self;
    if (!PyArg_ParseTuple(args, "nn", &n, &d))
        return NULL;
    return PyLong_FromSsize_t(cdsk_packed_size(n, d));
}

static PyMethodDef methods[] = {
    {"packed_size", packed_size, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "NAME", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_NAME(void)
{
    return cdsk_import() == 0 ? PyModule_Create(&module) : NULL;
}
"""


@pytest.mark.skipif(sys.platform != "linux", reason="calls the compiler as on Linux")
@needs_compiler
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ((), None),
        (
            ("int (double const *, Py", "int (long const *, Py"),
            r"compiled for.*has int",
        ),
        (('"cdsk_solve_qp"', '"cdsk_solved_qp"'), "solved_qp: .* has nothing"),
        (('"cdsk._smo"', '"cdsk._sma"'), "No module named 'cdsk._sma'"),
    ],
    ids=["same", "signature", "name", "module"],
)
def test_another_version_is_refused_at_import(tmp_path, request, changed, message):
    name = f"embedded_{request.node.callspec.id}"
    header = Path(cdsk.get_include(), "cdsk.h").read_text()
    (tmp_path / "cdsk.h").write_text(header.replace(*changed) if changed else header)
    (tmp_path / "module.c").write_text(MODULE.replace("NAME", name))
    library = tmp_path / (name + sysconfig.get_config_var("EXT_SUFFIX"))
    run(
        "cc",
        "-std=c11",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-fPIC",
        "-shared",
        f"-I{tmp_path}",
        f"-I{INCLUDE}",
        "module.c",
        "-o",
        library,
        cwd=tmp_path,
    )
    spec = importlib.util.spec_from_file_location(name, library)
    if message is None:
        assert importlib.util.module_from_spec(spec).packed_size(1, 2) > 0
    else:
        with pytest.raises(ImportError, match=message):
            importlib.util.module_from_spec(spec)


@needs_compiler
@pytest.mark.parametrize(
    ("compiler", "standard", "file"),
    [("cc", "c99", "a.c"), ("c++", "c++17", "a.cpp")],
)
def test_unused_header_compiles_without_warnings(tmp_path, compiler, standard, file):
    (tmp_path / file).write_text("#include <cdsk.h>\nint nothing;\n")
    run(
        compiler,
        f"-std={standard}",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-c",
        file,
        f"-I{cdsk.get_include()}",
        f"-I{INCLUDE}",
        cwd=tmp_path,
    )


# ---------------------------------------------------------------- documentation


def blocks(document, languages):
    text = (ROOT / document).read_text(encoding="utf-8")
    return re.findall(rf"```(?:{languages})\n(.*?)```", text, flags=re.DOTALL)


def test_excerpts_are_lines_of_the_examples():
    files = [p for p in EXAMPLES.rglob("*") if p.suffix in {".py", ".pyx", ".cpp"}]
    files += EXAMPLES.rglob("meson.build")
    texts = [re.sub(r"^ +", "", p.read_text(), flags=re.MULTILINE) for p in files]
    excerpts = blocks("docs/embedding.md", "cython|cpp|python|meson")
    assert len(excerpts) >= 4
    for excerpt in excerpts:
        for part in re.split(r"\n*^ *(?:#|//) \.\.\.\n*", excerpt, flags=re.MULTILINE):
            lines = re.sub(r"^ +", "", part, flags=re.MULTILINE).strip("\n")
            assert any(lines in text for text in texts), part
