"""``make wheels``: which Pythons it takes, and that it refuses what it should."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

from tools import wheels

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


@pytest.fixture
def pythons(tmp_path, monkeypatch):
    """A path with interpreters of these names that print these lines, or fail."""

    def make(answers):
        for name, answer in answers.items():
            file = tmp_path / name
            file.write_text(f"#!/bin/sh\necho {answer}\n" if answer else "#!/bin/false")
            file.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "none"))
        return wheels.find_pythons()

    return make


@pytest.mark.skipif(sys.platform == "win32", reason="needs scripts as interpreters")
def test_supported_pythons_are_found(pythons):
    found = pythons(
        {
            "python3.10": "3 10 /at/3.10",
            "python3.98": "3 98 /at/3.98",
            "python3.99": "3 99 /at/3.99",
            "python3.99t": "3 99 /at/3.99t t",
            "python3": "3 97 /at/3.97t t",  # free-threaded, by a plain name
            "python3.96": None,
            "python3-config": "3 95 /at/3.95",
        }
    )
    here = sys.version_info[:2]
    assert list(found) == [here, (3, 98), (3, 99)]
    assert found[3, 99] == Path("/at/3.99")


def test_two_builds_that_differ_are_refused(tmp_path, capsys):
    files = [tmp_path / folder / "cdsk.whl" for folder in ("first", "second")]
    for file in files:
        file.parent.mkdir()
        file.write_bytes(b"wheel")
    wheels.check_same(files[:1], files[1:])
    assert "two builds, sha256" in capsys.readouterr().out
    files[1].write_bytes(b"Wheel")
    with pytest.raises(SystemExit, match="Two builds differ"):
        wheels.check_same(files[:1], files[1:])


@pytest.mark.parametrize(
    ("tag", "good"),
    [
        ("cp311-abi3-manylinux_2_28_x86_64", True),
        ("cp311-abi3-linux_x86_64", False),
        ("cp311-cp311-manylinux_2_28_x86_64", False),
        ("cp312-abi3-manylinux_2_28_x86_64", False),
    ],
)
def test_tag_of_the_wheel(tag, good):
    wheel = Path(f"cdsk-0.1.0-{tag}.whl")
    if good:
        wheels.check_tag(wheel, (3, 11))
    else:
        with pytest.raises(SystemExit, match="Expected a wheel named"):
            wheels.check_tag(wheel, (3, 11))


def test_oldest_python_is_the_same_everywhere():
    major, minor = wheels.oldest_supported()
    build = (ROOT / "src" / "cdsk" / "meson.build").read_text("utf-8")
    assert re.findall(r"limited_api: '(.*)'", build) == [f"{major}.{minor}"]
    settings = PROJECT["tool"]["cibuildwheel"]
    assert settings["build"][0] == f"cp{major}{minor}-*"
    # a workflow that builds for nobody would go unnoticed
    assert wheels.ABI3.split("=", 1)[1] in settings["config-settings"]["setup-args"]


def test_free_threaded_wheels_are_not_abi3():
    settings = PROJECT["tool"]["cibuildwheel"]
    threaded = [name for name in settings["build"] if name.endswith("t-*")]
    (override,) = settings["overrides"]
    assert [override["select"]] == threaded
    assert not any(
        "limited_api" in a for a in override["config-settings"]["setup-args"]
    )
