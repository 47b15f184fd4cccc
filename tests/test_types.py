"""The types a user relies on, by two checkers, and the program they check."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("typed_program.py")

CHECKERS = {
    # without the settings of this project, which a user does not have
    "mypy": ["--strict", "--config-file=", "--no-incremental"],
    "pyright": ["--pythonpath", sys.executable],
}

# type checkers take seconds
pytestmark = pytest.mark.slow


def check(name, program, folder):
    pytest.importorskip(name, reason=f"{name} is not installed")
    command = [sys.executable, "-m", name, *CHECKERS[name], str(program)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize("name", CHECKERS)
def test_promised_types(name, tmp_path):
    result = check(name, PROGRAM, tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("name", CHECKERS)
def test_wrong_promises_are_noticed(name, tmp_path):
    wrong = tmp_path / "wrong.py"
    text = PROGRAM.read_text("utf-8")
    wrong.write_text(text.replace("np.int64", "np.int8"))
    result = check(name, wrong, tmp_path)
    assert result.stdout.count("error:") == text.count(", Labels)")


def test_the_program_runs():
    assert "cluster" in runpy.run_path(str(PROGRAM), run_name="__main__")
