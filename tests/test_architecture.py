"""The folder listing is the architecture: what every module must hold."""

import ast
import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "cdsk"

# The core from the lowest layer to the highest: a module imports from those before it.
# Compiled modules are above the first of them and below all others.
LAYERS = [
    "_cgroups",
    "_utils",
    "_approximate",
    "_operators.base",
    "_validation",
    "_profile_columns",
    "_profiles",
    "_rules",
    "_distributions",
    "_neighbors",
    "_eigensolvers",
    "_multilevel",
    "_operators",
    "_constraints",
    "_settings",
    "_pairwise",
    "_voting",
    "_sizes",
    "_spectral",
    "_spanning_tree",
    "_layout",
    "_qp",
    "_filling",
    "_coding",
    "_table",
    "_columns",
    "_missing",
    "_preprocessing",
    "_layers",
    "_null_data",
    "_initialization",
    "_candidates",
    "_partition_choice",
    "_view_choice",
    "_count_choice",
    "_lam_choice",
    "_result",
    "_alternation",
    "_candidate_fits",
    "_view_fits",
    "_fit",
    "_cdsk",
    "_map",
    "_select_lambda",
    "_suggest_n_clusters",
    "_stability",
]
# The satellites, each with the others that it may import from.
SATELLITES = {
    "baselines": set(),
    "blocks": {"report"},
    "cli": {"blocks", "plot", "report"},
    "dask": {"blocks"},
    "plot": {"blocks", "report"},
    "report": set(),
    "theory": set(),
}
# Where the core imports a satellite, once it is asked for it.
LAZY_IMPORTS = {
    ("_cdsk", "report"),
    ("_cdsk", "theory"),
    ("_layers", "report"),
    ("_profiles", "report"),
    ("_rules", "report"),
    ("_stability", "report"),
}

PYTHON = sorted(PACKAGE.rglob("*.py"))
COMPILED = sorted(PACKAGE.glob("*.pyx"))
# _version.py is written by the build
MODULES = [
    path
    for path in [*PYTHON, *COMPILED]
    if not path.stem.startswith("__") and path.stem != "_version"
]


def name(path):
    return path.relative_to(PACKAGE).as_posix()


def stage(path):
    """The first part of a module's name: _fit, _operators, report."""
    return path.relative_to(PACKAGE).parts[0].partition(".")[0]


def layer(dotted):
    """The layer or satellite of a module; the interface of operators is apart."""
    first, *rest = dotted.split(".")
    return "_operators.base" if (first, *rest) == ("_operators", "base") else first


CORE = [path for path in PYTHON if stage(path) in LAYERS]
each_python_module = pytest.mark.parametrize("path", PYTHON, ids=name)


def parse(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def is_type_checking(node):
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def imports(node, lazy=False):
    """Yield (layer of cdsk, is it imported within a function) for all imports."""
    if isinstance(node, ast.ImportFrom) and node.module == "cdsk":
        yield from ((alias.name, lazy) for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module.startswith("cdsk."):
        yield layer(node.module.removeprefix("cdsk.")), lazy
    elif isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name.startswith("cdsk."):
                yield layer(alias.name.removeprefix("cdsk.")), lazy
    lazy = lazy or isinstance(node, ast.FunctionDef)
    for child in ast.iter_child_nodes(node):
        if not is_type_checking(child):
            yield from imports(child, lazy)


# ---------------------------------------------------------------- imports


def test_layers_and_satellites_are_all_there_is():
    known = {*LAYERS, *SATELLITES, "__init__", "__main__", "_version"}
    known -= {"_operators.base"}
    # _version.py is written by the build, if this folder was installed in place
    assert {stage(path) for path in PYTHON} | {"_version"} == known


@pytest.mark.parametrize("path", CORE, ids=name)
def test_the_core_imports_from_lower_layers(path):
    own = layer(".".join(path.relative_to(PACKAGE).with_suffix("").parts))
    # operators may import from each other
    lower = LAYERS[: LAYERS.index(own) + (own == "_operators")]
    lower = {*lower, *(compiled.stem for compiled in COMPILED), "_version"}
    for imported, lazy in imports(parse(path)):
        if not (lazy and (stage(path), imported) in LAZY_IMPORTS):
            assert imported in lower


@pytest.mark.parametrize("satellite", SATELLITES)
def test_a_satellite_imports_from_the_core(satellite):
    others = SATELLITES.keys() - SATELLITES[satellite] - {satellite}
    for path in (PACKAGE / satellite).rglob("*.py"):
        assert others.isdisjoint(imported for imported, _ in imports(parse(path)))


@pytest.mark.parametrize("path", COMPILED, ids=name)
def test_compiled_modules_import_compiled_ones(path):
    text = path.read_text(encoding="utf-8")
    imported = re.findall(r"^\s*from cdsk\.(\w+) c?import", text, re.MULTILINE)
    headers = {header.stem for header in PACKAGE.glob("*.pxd")} | {"_simd"}
    compiled = {other.stem for other in COMPILED}
    assert set(imported) <= headers | compiled | {LAYERS[0]}


def test_dask_is_imported_in_its_folder_only():
    pattern = r"^\s*(?:import|from) (?:dask|distributed)\b"
    users = {
        path.parent.name
        for path in PYTHON
        if re.search(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert users == {"dask"}


# ---------------------------------------------------------------- interfaces


@pytest.mark.parametrize("satellite", ["plot", "report"])
def test_a_report_uses_fitted_attributes_only(satellite):
    for path in (PACKAGE / satellite).glob("*.py"):
        private = re.findall(r"\bmodel\._\w+", path.read_text(encoding="utf-8"))
        assert private == [], name(path)


@pytest.mark.parametrize(
    "path",
    [
        *(PACKAGE / f"{stage}.py" for stage in LAYERS[LAYERS.index("_settings") :]),
        *(PACKAGE / "report").glob("*.py"),
        *(PACKAGE / "plot").glob("*.py"),
    ],
    ids=name,
)
def test_stages_use_the_interface_of_operators(path):
    source = (PACKAGE / "_operators" / "base.py").read_text(encoding="utf-8")
    declared = set(re.findall(r"^    (?:def )?([a-z]\w*)[:(]", source, re.MULTILINE))
    text = path.read_text(encoding="utf-8")
    used = set(re.findall(r"(?<![\w.])(?:kernel|similarity)\.([a-z_]\w*)", text))
    assert used <= declared


# ---------------------------------------------------------------- functions


def functions(tree, path=()):
    """Yield (path of names, node) for all functions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = *path, node.name
            if not isinstance(node, ast.ClassDef):
                yield inner, node
            yield from functions(node, inner)
        else:
            yield from functions(node, path)


def n_parameters(node):
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [arguments.vararg, arguments.kwarg]
    return sum(a is not None and a.arg not in ("self", "cls") for a in every)


def n_lines(node):
    """Lines of the body of a function without its docstring."""
    first = node.body[1:2] if ast.get_docstring(node) is not None else node.body
    return node.end_lineno - first[0].lineno + 1 if first else 0


def public_names():
    folders = ["", *(f".{satellite}" for satellite in SATELLITES)]
    if importlib.util.find_spec("distributed") is None:
        folders.remove(".dask")
    modules = [importlib.import_module(f"cdsk{folder}") for folder in folders]
    return {name for module in modules for name in getattr(module, "__all__", ())}


@each_python_module
def test_functions_have_at_most_7_parameters(path):
    public = public_names()
    many = [
        ".".join(names)
        for names, node in functions(parse(path))
        if n_parameters(node) > 7 and names[-1] != "__init__" and names[0] not in public
    ]
    assert many == []


@each_python_module
def test_functions_have_at_most_50_lines(path):
    long = [
        ".".join(names)
        for names, node in functions(parse(path))
        if n_lines(node) > 50 and names[-1] != "__init__"
    ]
    assert long == []


@each_python_module
def test_no_call_unpacks_a_literal(path):
    # f(*(a, b), **{"c": d}) is f(a, b, c=d)
    hidden = [
        f"line {call.lineno}: {ast.unparse(call)}"
        for call in ast.walk(parse(path))
        if isinstance(call, ast.Call)
        and (
            any(
                isinstance(argument, ast.Starred)
                and isinstance(argument.value, ast.Tuple | ast.List)
                for argument in call.args
            )
            or any(
                keyword.arg is None and isinstance(keyword.value, ast.Dict)
                for keyword in call.keywords
            )
        )
    ]
    assert hidden == []


# ---------------------------------------------------------------- tests


@pytest.fixture(scope="module")
def modules_of_tests():
    """Names of modules that tests import, or name to replace a part of them."""
    text = "".join(path.read_text("utf-8") for path in ROOT.glob("tests/test_*.py"))
    named = re.findall(r"\bcdsk((?:\.\w+)+)", text)
    for folder, joined in re.findall(r"from cdsk([\w.]*) import \(?([\w, \n]+)", text):
        named += [f"{folder}.{word}" for word in re.findall(r"\w+", joined)]
    return "\n".join(sorted(set(named)))


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_every_module_has_a_test_of_its_name_or_that_names_it(path, modules_of_tests):
    dotted = "." + ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
    own = path.stem.lstrip("_")
    tests = {f"test_{own}.py", f"test_{stage(path)}_{own}.py"}
    text = path.read_text(encoding="utf-8")
    assert (
        any((ROOT / "tests" / test).exists() for test in tests)
        or re.search(r"\((tests/test_\w+\.py)\)", text)
        or re.search(rf"^{re.escape(dotted)}\b", modules_of_tests, re.MULTILINE)
    )


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_tests_that_a_module_names_exist(path):
    named = re.findall(r"tests/test_\w+\.py", path.read_text(encoding="utf-8"))
    assert [test for test in named if not (ROOT / test).exists()] == []


# in brackets, so that a search for clocks does not find this line
CLOCKS = r"\b(sleep|monotonic|perf_[c]ounter|process_[t]ime|time\.time)\("


@pytest.mark.parametrize("path", sorted(ROOT.glob("tests/*.py")), ids=lambda p: p.stem)
def test_no_test_reads_a_clock(path):
    # Contributing: what to use instead
    assert re.findall(CLOCKS, path.read_text(encoding="utf-8")) == []


def test_every_module_of_the_core_is_installed():
    listed = (PACKAGE / "meson.build").read_text()
    files = {path.name for path in PACKAGE.glob("_*.py*") if path.suffix != ".pyx"}
    assert {file for file in files if f"'{file}'" not in listed} <= {"_version.py"}
