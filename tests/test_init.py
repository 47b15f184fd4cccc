# SPDX-License-Identifier: BSD-3-Clause
"""The names of the package: all there, and imported only when used."""

import ast
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import cdsk

NAMES = sorted({*cdsk._MODULES, "__version__"})
HEAVY = {"numpy", "scipy", "sklearn", "threadpoolctl", "matplotlib", "pandas"}


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
    command = {"cdsk._cli", "cdsk.__main__", *(f"cdsk._cli.{part}" for part in parts)}
    assert ours - command == {"cdsk._version"}


def test_import_brings_few_modules_on_top_of_those_of_scikit_learn():
    # benchmarks/asv has the times of both imports
    theirs = modules_after("import sklearn.cluster")
    ours = modules_after("import sklearn.cluster\nfrom cdsk import CDSK")
    assert len(ours - theirs) <= 0.1 * len(theirs)


def test_estimator_brings_no_command_line_or_plotting_library():
    # scikit-learn itself imports what it finds of some; ours is what comes on top
    before = (
        "import scipy.sparse.csgraph, scipy.sparse.linalg, scipy.spatial\n"
        "import scipy.special, sklearn.cluster, sklearn.neighbors"
    )
    modules = modules_after(f"{before}\nimport cdsk; cdsk.CDSK")
    assert "cdsk._estimator" in modules
    new = modules - modules_after(before)
    assert not {"argparse", "csv", "matplotlib", "pandas"} & new
    assert not [name for name in new if name.startswith(("cdsk._cli", "cdsk.plot"))]


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


def test_type_checkers_see_the_same_names():
    tree = ast.parse(Path(cdsk.__file__).read_text(encoding="utf-8"))
    (block,) = [
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    seen = {}
    for line in block.body:
        (name,) = line.names
        # only "as" makes a name public
        assert name.name == name.asname
        itself = line.module == "cdsk"
        seen[name.name] = f"cdsk.{name.name}" if itself else line.module
    assert seen == cdsk._MODULES


def test_unknown_name():
    with pytest.raises(AttributeError, match="module 'cdsk' has no attribute 'CSDK'"):
        cdsk.CSDK  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'CSDK' from 'cdsk'"):
        from cdsk import CSDK  # noqa: F401


def test_pickle():
    assert pickle.loads(pickle.dumps(cdsk.CDSK)) is cdsk.CDSK
    model = pickle.loads(pickle.dumps(cdsk.CDSK(3)))
    assert model.get_params() == cdsk.CDSK(3).get_params()
