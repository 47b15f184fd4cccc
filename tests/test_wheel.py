"""What the installed distribution holds, and what its compiled parts link to."""

import re
import shutil
import subprocess
from importlib.metadata import distribution
from pathlib import Path

import pytest

DISTRIBUTION = distribution("cdsk")
EDITABLE = '"editable": true' in (DISTRIBUTION.read_text("direct_url.json") or "")
FILES = [file for file in DISTRIBUTION.files or [] if "__pycache__" not in file.parts]
LIBRARIES = [file for file in FILES if file.suffix == ".so"]

# The C runtime and OpenMP, also under the names auditwheel gives to copies.
ALLOWED = r"(lib(c|m|pthread|gcc_s|gomp|omp|iomp5)(-[0-9a-f]+)?|ld-linux-[\w-]+)\.so\S*"

pytestmark = pytest.mark.skipif(EDITABLE, reason="an editable install holds no files")


def readelf(*arguments):
    if shutil.which("readelf") is None or not LIBRARIES:
        pytest.skip("needs readelf and ELF files")
    return subprocess.run(
        ["readelf", "--wide", *arguments], capture_output=True, text=True, check=True
    ).stdout


def test_nothing_outside_the_package():
    tops = {file.parts[0] for file in FILES if file.name != "cdsk"}
    # cdsk.libs: the OpenMP runtime, in wheels for an index
    assert tops - {"cdsk.libs"} == {"cdsk", f"cdsk-{DISTRIBUTION.version}.dist-info"}


def test_a_bundled_runtime_comes_with_its_license():
    bundled = [file.name for file in FILES if file.parts[0] == "cdsk.libs"]
    assert [name for name in bundled if not name.startswith("libgomp-")] == []
    assert [file for file in FILES if file.parts[-2:] == ("LICENSES", "libgomp.txt")]


def test_no_sources_and_no_tests():
    package = [file for file in FILES if file.parts[0] == "cdsk"]
    kinds = {file.suffix for file in package if file.name != "py.typed"}
    page = {".html", ".css", ".js"}  # of the report
    assert kinds == {".py", ".pyi", ".pxd", ".h", ".so"} | page
    assert not [file for file in package if "test" in str(file)]


def test_files_for_other_code_are_there():
    names = {file.as_posix() for file in FILES}
    assert {name for name in names if name.endswith((".pxd", ".h"))} == {
        "cdsk/__init__.pxd",
        "cdsk/_kernel.pxd",
        "cdsk/_smo.pxd",
        "cdsk/include/cdsk.h",
    }
    assert "cdsk/py.typed" in names
    for library in LIBRARIES:
        assert f"cdsk/{library.name.split('.')[0]}.pyi" in names
    assert [name for name in names if name.endswith("licenses/LICENSE")]


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda file: Path(file).name)
def test_only_the_c_runtime_and_openmp_are_linked(library):
    dynamic = readelf("--dynamic", str(library.locate()))
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
    assert needed
    assert [name for name in needed if not re.fullmatch(ALLOWED, name)] == []


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda file: Path(file).name)
def test_only_the_init_function_is_visible(library):
    symbols = readelf("--dyn-syms", str(library.locate()))
    # Cython 3.1 makes critical sections, whose locks gcc always shares by name
    visible = re.findall(r"(?:GLOBAL|WEAK) +DEFAULT +\d+ (?!\.gomp_)(\S+)", symbols)
    assert visible == [f"PyInit_{library.name.split('.')[0]}"]
