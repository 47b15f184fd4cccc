# SPDX-License-Identifier: BSD-3-Clause
"""Both distributions as an index would get them, checked: ``make wheels``.

One abi3 wheel for every CPython from the oldest supported on, with a manylinux tag. It
is built twice, from a source distribution made twice, and must have the same hash;
abi3audit must find nothing; the fast tests run from it on every Python found.
(tests/test_make_wheels.py)

usage: python tools/wheels.py [--no-tests] [OUT]
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORK = ROOT / "build" / "wheels"
ABI3 = "-Csetup-args=-Dpython.allow_limited_api=true"
ASK = "import sys; print(*sys.version_info[:2], sys.executable, sys.abiflags)"


def oldest_supported():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (minor,) = re.fullmatch(r">=3\.(\d+)", project["requires-python"]).groups()
    return 3, int(minor)


def run(*command, **options):
    print("+", *command, flush=True)
    subprocess.run([str(part) for part in command], check=True, **options)


def found_pythons():
    """{(major, minor): interpreter}: on the path, of pyenv, and this one.

    Free-threaded ones are left out: before 3.15 they cannot load abi3 extensions.
    """
    folders = [Path(folder) for folder in os.environ["PATH"].split(os.pathsep)]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    folders += sorted(pyenv.glob("versions/*/bin"))
    candidates = [Path(sys.executable)]
    for folder in folders:
        candidates += sorted(folder.glob("python3*"))
    found = {}
    for path in candidates:
        if re.fullmatch(r"python(3(\.\d+)?)?", path.name):
            asked = subprocess.run([path, "-c", ASK], capture_output=True, text=True)
            if asked.returncode == 0:
                major, minor, real, *flags = asked.stdout.split()
                version = int(major), int(minor)
                if not flags and version >= oldest_supported():
                    found.setdefault(version, Path(real))
    return dict(sorted(found.items()))


def environment(python, folder, *requirements):
    """The interpreter of a new virtual environment with these installed."""
    run(python, "-m", "venv", "--clear", folder)
    inside = folder / "bin" / "python"
    pip = (inside, "-m", "pip", "--disable-pip-version-check", "--quiet", "install")
    run(*pip, "pip>=25.1")
    run(*pip, *requirements, cwd=ROOT)
    return inside


def active(python, **variables):
    """The variables of the virtual environment of this interpreter."""
    path = f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, **variables}


def build(python, folder):
    """The source distribution and, built from it, the repaired wheel."""
    shutil.rmtree(folder, ignore_errors=True)
    # of the last commit: what is built has the time of what it is built from
    time = ["git", "log", "-1", "--format=%ct"]
    epoch = subprocess.check_output(time, cwd=ROOT, text=True).strip()
    variables = active(python, SOURCE_DATE_EPOCH=epoch)
    run(python, "-m", "build", ABI3, "--outdir", folder, cwd=ROOT, env=variables)
    (raw,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    # libgomp comes along, as in the wheels of scikit-learn: systems may have none
    repair = ("-m", "auditwheel", "repair", "--wheel-dir", folder / "repaired", raw)
    run(python, *repair, env=variables)
    (wheel,) = (folder / "repaired").glob("*.whl")
    return source, wheel


def sha256(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


def check_same(files, others):
    for file, other in zip(files, others, strict=True):
        if (file.name, sha256(file)) != (other.name, sha256(other)):
            sys.exit(f"Two builds differ: {file} and {other}.")
        print(f"{file.name}: two builds, sha256 {sha256(file)}")


def check_tag(wheel, oldest):
    expected = rf"cdsk-[^-]+-cp{oldest[0]}{oldest[1]}-abi3-manylinux_.*\.whl"
    if not re.fullmatch(expected, wheel.name):
        sys.exit(f"Expected a wheel named {expected}, got {wheel.name}.")


def test(wheel, version, python):
    """Run the fast tests from the wheel; the sources are in no path."""
    folder = WORK / f"python{version[0]}.{version[1]}"
    inside = environment(python, folder, f"{wheel}[plot]", "--group", "test")
    tests = ("-n", "2", "--dist", "loadfile", "-q", "-m", "not slow")
    run(inside, "-m", "pytest", *tests, cwd=ROOT, env=active(inside))


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("out", nargs="?", type=Path, default=ROOT / "dist")
    parser.add_argument("--no-tests", action="store_true")
    options = parser.parse_args()
    pythons = found_pythons()
    print("found Python", *(f"{major}.{minor}" for major, minor in pythons))
    oldest, interpreter = next(iter(pythons.items()))
    if oldest != oldest_supported():
        print("The oldest supported Python is not here: the wheel is for newer ones.")
    tools = environment(interpreter, WORK / "tools", "--group", "wheels")
    source, wheel = build(tools, WORK / "first")
    check_same((source, wheel), build(tools, WORK / "second"))
    check_tag(wheel, oldest)
    run(tools, "-m", "abi3audit", "--strict", wheel)
    for version, python in pythons.items():
        if not options.no_tests:
            test(wheel, version, python)
    options.out.mkdir(parents=True, exist_ok=True)
    for file in (source, wheel):
        shutil.copy(file, options.out)
        print("made", options.out / file.name)


if __name__ == "__main__":
    main()
