"""The code in README and in the package description prints what they show."""

import contextlib
import doctest
import importlib
import io
import re
import shlex
from importlib.metadata import metadata
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_blobs

import cdsk
from cdsk.cli._main import main

TOP = Path(__file__).parents[1]
README = (TOP / "README.md").read_text(encoding="utf-8")
DISTRIBUTED = (TOP / "docs" / "distributed.md").read_text(encoding="utf-8")
# as a package index receives it
DESCRIPTION = metadata("cdsk")["Description"]


# dask's Parquet files by a newer pandas
@pytest.mark.filterwarnings("ignore:The inplace keyword")
@pytest.mark.parametrize(
    "text",
    [README, DISTRIBUTED, DESCRIPTION],
    ids=["README", "distributed", "description"],
)
def test_examples_print_what_is_shown(text, tmp_path, monkeypatch):
    if text is DISTRIBUTED:
        pytest.importorskip("dask.dataframe", reason="dask is not installed")
        pytest.importorskip("distributed", reason="distributed is not installed")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```\n+```\n(.*?)```", text, flags=re.DOTALL)
    assert blocks
    for code, expected in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "example", "exec"), {})
        assert printed.getvalue() == expected


def commands_of_readme():
    """Return the words of each line of blocks without a language, comments removed."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    lines = [line for name, block in blocks if not name for line in block.splitlines()]
    return [shlex.split(line, comments=True) for line in lines]


def test_commands_of_readme_for_make():
    targets = set(
        re.findall(r"^([\w-]+):", (TOP / "Makefile").read_text(), re.MULTILINE)
    )
    asked = [words[1] for words in commands_of_readme() if words[:1] == ["make"]]
    assert asked == ["demo", "test"]
    inline = re.findall(r"`make ([\w-]+)", README)
    assert set(inline) <= targets


def test_readme_is_short():
    assert len(README.splitlines()) <= 120


def test_commands_of_readme_for_the_shell(tmp_path, monkeypatch, capsys):
    pytest.importorskip("skops", reason="skops is not installed")
    monkeypatch.chdir(tmp_path)
    X = make_blobs(60, 2, centers=10, random_state=0)[0]
    for name in ("points.csv", "new.csv"):
        np.savetxt(name, X, delimiter=",", header="x,y", comments="")
    commands = [words[1:] for words in commands_of_readme() if words[:1] == ["cdsk"]]
    assert [command[0] for command in commands] == ["cluster", "predict"]
    assert "--html" in commands[0]
    for command in commands:
        assert main(command) == 0, capsys.readouterr().err
    outputs = "labels.csv report.html model.skops new-labels.csv".split()
    assert all(Path(name).stat().st_size > 0 for name in outputs)
    # the install line installs what they need
    extras = re.search(r'^pip install "\.\[(.*)\]"', README, re.MULTILINE)[1]
    assert "skops" in extras.split(",")


def test_description_needs_no_other_file():
    links = re.findall(r"\]\((.*?)\)|(?:src|href)=[\"'](.*?)[\"']", DESCRIPTION)
    targets = ["".join(link) for link in links]
    assert [target for target in targets if not target.startswith("https://")] == []
    # reference-style definitions
    assert not re.findall(r"^\s*\[[^\]]+\]:", DESCRIPTION, flags=re.MULTILINE)


def test_metadata_for_an_index():
    fields = metadata("cdsk")
    assert fields["Description-Content-Type"].startswith("text/markdown")
    assert fields["Author"] == "The cdsk developers"
    assert fields["License-Expression"] == "BSD-3-Clause"
    assert fields["Summary"] and "\n" not in fields["Summary"]


PACKAGE = Path(cdsk.__file__).parent
MODULES_WITH_EXAMPLES = [
    "cdsk." + path.relative_to(PACKAGE).with_suffix("").as_posix().replace("/", ".")
    for path in sorted(PACKAGE.rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("module", MODULES_WITH_EXAMPLES)
def test_examples_of_docstrings(module):
    if module.startswith("cdsk.dask"):
        pytest.importorskip("distributed", reason="distributed is not installed")
    result = doctest.testmod(importlib.import_module(module))
    assert result.attempted > 0
    assert result.failed == 0
