# SPDX-License-Identifier: BSD-3-Clause
"""Build and check the source distribution and the wheel: ``make wheels``.

The abi3 wheel is for all supported versions of CPython, with a manylinux tag. Both
distributions are built twice and must have the same hashes. abi3audit checks the wheel,
and the fast tests run from it on every Python found (tests/test_make_wheels.py).

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


def find_pythons():
    """Return {(major, minor): interpreter} on the path and in pyenv, and this one.

    Free-threaded interpreters are skipped: before 3.15 they cannot load abi3
    extensions.
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


def create_environment(python, folder, *requirements):
    """Create a virtual environment with these packages; return its interpreter."""
    run(python, "-m", "venv", "--clear", folder)
    inside = folder / "bin" / "python"
    pip = (inside, "-m", "pip", "--disable-pip-version-check", "--quiet", "install")
    run(*pip, "pip>=25.1")
    run(*pip, *requirements, cwd=ROOT)
    return inside


def activated(python, **variables):
    """Return the variables that activate the virtual environment of an interpreter."""
    path = f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, **variables}


def build(python, folder):
    """Return the source distribution and the repaired wheel built from it."""
    shutil.rmtree(folder, ignore_errors=True)
    # files have the time of the last commit, so builds are reproducible
    time = ["git", "log", "-1", "--format=%ct"]
    epoch = subprocess.check_output(time, cwd=ROOT, text=True).strip()
    variables = activated(python, SOURCE_DATE_EPOCH=epoch)
    run(python, "-m", "build", ABI3, "--outdir", folder, cwd=ROOT, env=variables)
    (raw,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    # this adds libgomp, which systems may lack, as in the wheels of scikit-learn
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
    """Run the fast tests against the installed wheel, not the sources."""
    folder = WORK / f"python{version[0]}.{version[1]}"
    inside = create_environment(python, folder, f"{wheel}[plot]", "--group", "test")
    tests = ("-n", "2", "--dist", "loadfile", "-q", "-m", "not slow")
    run(inside, "-m", "pytest", *tests, cwd=ROOT, env=activated(inside))


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("out", nargs="?", type=Path, default=ROOT / "dist")
    parser.add_argument("--no-tests", action="store_true")
    options = parser.parse_args()
    pythons = find_pythons()
    print("Found Python", *(f"{major}.{minor}" for major, minor in pythons))
    oldest, interpreter = next(iter(pythons.items()))
    if oldest != oldest_supported():
        print(
            f"Python {'.'.join(map(str, oldest_supported()))}, the oldest supported, "
            "was not found. Install it to build a wheel for all versions."
        )
    tools = create_environment(interpreter, WORK / "tools", "--group", "wheels")
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
        print("Wrote", options.out / file.name)


if __name__ == "__main__":
    main()
