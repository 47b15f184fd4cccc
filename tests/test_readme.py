"""Code of README and of the package's description runs and prints what is said."""

import contextlib
import doctest
import importlib
import io
import re
from importlib.metadata import metadata
from pathlib import Path

import pytest

TOP = Path(__file__).parents[1]
README = (TOP / "README.md").read_text(encoding="utf-8")
DISTRIBUTED = (TOP / "docs" / "distributed.md").read_text(encoding="utf-8")
# as an index gets it
DESCRIPTION = metadata("cdsk")["Description"]


# dask's Parquet files by a newer pandas
@pytest.mark.filterwarnings("ignore:The inplace keyword")
@pytest.mark.parametrize(
    "text",
    [README, DISTRIBUTED, DESCRIPTION],
    ids=["README", "distributed", "description"],
)
def test_example_prints_what_is_said(text, tmp_path, monkeypatch):
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


@pytest.mark.parametrize(
    "module",
    [
        "_blocks.estimator",
        "_choices.n_clusters",
        "_estimator",
        "_kernels.gaussian",
        "_runtime",
        "_select_lambda",
        "_steps.start",
        "_steps.qp",
        "dask._estimator",
        "plot._overview",
        "plot._scatter",
        "theory._bound",
        "theory._cut",
        "theory._decompose",
        "theory._density",
        "theory._ise",
    ],
)
def test_examples_of_docstrings(module):
    if module.startswith("dask"):
        pytest.importorskip("distributed", reason="distributed is not installed")
    module = importlib.import_module(f"cdsk.{module}")
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
