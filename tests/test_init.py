# SPDX-License-Identifier: BSD-3-Clause
"""The names of the package: all there, and imported only when used."""

import pickle
import subprocess
import sys

import pytest

import cdsk

HEAVY = {"numpy", "scipy", "sklearn", "threadpoolctl", "matplotlib", "pandas"}
NAMES = """
    BlockCDSK CDSK ConstraintCheck CountChoice LambdaChoice Layers Profiles QPResult
    Report Rules SparseStart Stability __version__ baselines gaussian_gram gaussian_rows
    get_include plot select_lambda similarity_matrix solve_qp sparse_start stability
    suggest_n_clusters theory
""".split()


def modules_after(code):
    """Names of the modules that a fresh interpreter has after ``code``."""
    code = f"import sys\n{code}\nprint(*sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


@pytest.mark.parametrize(
    "code",
    [
        "import cdsk; cdsk.__version__; dir(cdsk)",
        *(
            f"sys.argv[1:] = {arguments}\n"
            "try: import runpy; runpy.run_module('cdsk', run_name='__main__')\n"
            "except SystemExit as end: assert end.code in (0, None)"
            for arguments in (["--help"], ["cluster", "--help"], ["--version"])
        ),
    ],
    ids=["import", "help", "help of cluster", "version"],
)
def test_nothing_is_imported_before_it_is_used(code):
    modules = modules_after(code)
    assert not HEAVY & modules
    ours = {name for name in modules if name.startswith("cdsk.")}
    parts = ("main", "console", "options", "cluster", "predict")
    command = {"cdsk.cli", "cdsk.__main__", *(f"cdsk.cli._{part}" for part in parts)}
    light = {"cdsk._version", "cdsk.report", "cdsk.report._formatting"}
    assert ours - command <= light


@pytest.mark.slow
def test_import_brings_few_modules_on_top_of_those_of_scikit_learn():
    # benchmarks/asv has the times of both imports
    theirs = modules_after("import sklearn.cluster")
    ours = modules_after("import sklearn.cluster\nfrom cdsk import CDSK")
    assert len(ours - theirs) <= 0.1 * len(theirs)


@pytest.mark.slow
def test_estimator_brings_no_command_line_or_plotting_library():
    # scikit-learn itself imports what it finds of some; ours is what comes on top
    before = (
        "import scipy.sparse.csgraph, scipy.sparse.linalg, scipy.spatial\n"
        "import scipy.special, sklearn.cluster, sklearn.neighbors"
    )
    modules = modules_after(f"{before}\nimport cdsk; cdsk.CDSK")
    assert "cdsk._cdsk" in modules
    new = modules - modules_after(before)
    assert not {"argparse", "csv", "matplotlib", "pandas"} & new
    assert not [name for name in new if name.startswith(("cdsk.cli", "cdsk.plot"))]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["plot", "theory"])
def test_submodules_after_the_plain_import(name):
    assert f"cdsk.{name}" in modules_after(f"import cdsk; cdsk.{name}.__all__")


def test_every_name_is_there():
    star = {}
    exec("from cdsk import *", star)
    assert cdsk.__all__ == NAMES == sorted(star.keys() - {"__builtins__"})
    assert set(NAMES) <= set(dir(cdsk))
    for name in NAMES:
        assert star[name] is getattr(cdsk, name)


def test_unknown_name():
    with pytest.raises(AttributeError, match="No cdsk attribute CSDK"):
        cdsk.CSDK  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'CSDK' from 'cdsk'"):
        from cdsk import CSDK  # noqa: F401


def test_pickle():
    assert pickle.loads(pickle.dumps(cdsk.CDSK)) is cdsk.CDSK
    model = pickle.loads(pickle.dumps(cdsk.CDSK(3)))
    assert model.get_params() == cdsk.CDSK(3).get_params()
