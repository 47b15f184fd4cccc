"""The folder listing is the architecture: what every module must hold."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "cdsk"
MODULES = [
    path
    for path in sorted([*PACKAGE.rglob("*.py"), *PACKAGE.glob("*.pyx")])
    if not path.stem.startswith("__")
]
# The folders of stages, each with those it may import from.
MAY_IMPORT = {
    "_linalg": {"_linalg"},
    "_kernels": {"_kernels", "_linalg"},
    "_steps": {"_kernels", "_linalg", "_steps"},
    "_choices": {"_choices", "_kernels", "_linalg", "_steps"},
    "_blocks": {"_blocks", "_choices", "_explain", "_kernels", "_linalg", "_steps"},
    # who makes the passes of _blocks, and nothing else of them
    "dask": {"_blocks"},
    "_explain": {"_explain"},
    # rivals use what is below the choices of CDSK
    "baselines": {"_kernels", "_linalg", "_steps"},
}


def name(path):
    return path.relative_to(PACKAGE).as_posix()


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_every_module_has_a_test_of_its_name_or_tells_where(path):
    first_line = re.search(r'"""(.*)', path.read_text(encoding="utf-8"))[1]
    told = re.search(r"\((tests/test_\w+\.py)\)", first_line)
    folder = path.parent.name
    folder = f"{folder}_" if folder in ("baselines", "theory") else ""
    own = f"tests/test_{folder}{path.stem.lstrip('_')}.py"
    assert (ROOT / (told[1] if told else own)).exists(), own
    if path.parent.name == "plot":  # stages have tests of the same names
        assert told


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_stages_import_from_those_below(folder):
    for path in (PACKAGE / folder).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("cdsk._"):
                stage = node.module.split(".")[1]
                known = not (PACKAGE / stage).is_dir() or stage in MAY_IMPORT[folder]
                assert known, f"{name(path)} imports {node.module}"


def test_dask_is_imported_in_its_folder_only():
    pattern = r"^\s*(?:import|from) (?:dask|distributed)\b"
    users = {
        path.parent.name
        for path in PACKAGE.rglob("*.py")
        if re.search(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert users == {"dask"}


@pytest.mark.parametrize("folder", ["_explain", "plot"])
def test_what_explains_a_model_asks_nothing_private_of_it(folder):
    for path in (PACKAGE / folder).glob("*.py"):
        private = re.findall(r"\bmodel\._\w+", path.read_text(encoding="utf-8"))
        assert private == [], name(path)


@pytest.mark.parametrize("folder", ["_steps", "_choices", "_explain", "plot"])
def test_stages_reach_nothing_behind_the_interface(folder):
    # what a kernel or a similarity declares is all that others may ask
    source = (PACKAGE / "_kernels" / "interface.py").read_text(encoding="utf-8")
    declared = set(re.findall(r"^    (?:def )?([a-z]\w*)[:(]", source, re.MULTILINE))
    # of the neighbour graph of suggest_n_clusters alone
    declared |= {"restricted_to"}
    for path in (PACKAGE / folder).glob("*.py"):
        text = path.read_text(encoding="utf-8")
        asked = set(re.findall(r"\b(?:kernel|similarity)\.([a-z_]\w*)", text))
        asked -= {"interface", "kernel"}  # modules
        assert asked <= declared, f"{name(path)}: {asked - declared}"
