"""The conda recipe says what pyproject.toml and meson.build say."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

TOP = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def recipe():
    return yaml.safe_load((TOP / "recipe" / "recipe.yaml").read_text())


@pytest.fixture(scope="module")
def pyproject():
    return tomllib.loads((TOP / "pyproject.toml").read_text())


def spaced(requirements):
    """``numpy>=2.1`` as conda writes it, ``numpy >=2.1``."""
    return {re.sub(r"(?<=\w)(?=>=)", " ", line) for line in requirements}


def test_version(recipe):
    stated = re.search(r"^  version: '(.+)'", (TOP / "meson.build").read_text(), re.M)
    assert recipe["context"]["version"] == stated[1]


def test_requirements(recipe, pyproject):
    project = pyproject["project"]
    python = "python " + project["requires-python"]
    needed = spaced(project["dependencies"]) | {python}
    assert set(recipe["requirements"]["run"]) == needed
    host = {line for line in recipe["requirements"]["host"] if isinstance(line, str)}
    assert host == spaced(pyproject["build-system"]["requires"]) | {"python", "pip"}


def test_description(recipe, pyproject):
    project = pyproject["project"]
    assert recipe["about"]["summary"] == project["description"]
    assert recipe["about"]["license"] == project["license"]
    (command,) = recipe["build"]["python"]["entry_points"]
    assert command == "cdsk = " + project["scripts"]["cdsk"]
