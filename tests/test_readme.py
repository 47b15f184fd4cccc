"""The README's code runs and prints what the README says."""

import contextlib
import doctest
import importlib
import io
import re
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```\n+```\n(.*?)```", README, flags=re.DOTALL)


def test_there_is_an_example():
    assert len(BLOCKS) >= 1


@pytest.mark.parametrize(("code", "expected"), BLOCKS)
def test_example_prints_what_is_said(code, expected):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    assert printed.getvalue() == expected


@pytest.mark.parametrize(
    "module",
    [
        "_choices.n_clusters",
        "_estimator",
        "_kernels.gaussian",
        "_runtime",
        "_steps.start",
        "_steps.qp",
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
    module = importlib.import_module(f"cdsk.{module}")
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
