"""The documentation site: public names, examples, broken links."""

import contextlib
import io
import re
import runpy
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

import cdsk

DOCS = Path(__file__).parents[1] / "docs"


def public_names():
    """Yield the full names that the package and its folders export."""
    folders = [
        f"cdsk.{found.name}" for found in iter_modules(cdsk.__path__) if found.ispkg
    ]
    for module in map(import_module, ["cdsk", *folders]):
        # folders without __all__ export through the package, or nothing
        for name in getattr(module, "__all__", []):
            if callable(getattr(module, name)):
                yield f"{module.__name__}.{name}"


def names_of_the_reference():
    """Yield the full names in the tables of the reference, one indented word a line."""
    module = None
    for line in (DOCS / "api" / "index.rst").read_text(encoding="utf-8").splitlines():
        if line.startswith(".. module::"):
            module = line.split()[-1]
        elif re.fullmatch(r"   \w+", line):
            yield f"{module}.{line.strip()}"


def test_the_reference_has_every_public_name_once():
    pytest.importorskip("distributed", reason="distributed is not installed")
    assert sorted(names_of_the_reference()) == sorted(public_names())


def test_broken_links_are_found(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "a.html").write_text(
        '<a href="deep/b.html#here">.</a><a href="deep/b.html#gone">.</a>'
        '<a href="#own">.</a><img src="none.png"><a href="https://x.org/y">.</a>'
    )
    (tmp_path / "deep" / "b.html").write_text(
        '<p id="here"><a href="../a.html">.</a><a href="a.html">.</a></p>'
    )
    broken = runpy.run_path(str(DOCS / "check_links.py"))["broken_links"](tmp_path)
    assert [(str(page), link) for page, link in broken] == [
        ("a.html", "#own"),
        ("a.html", "deep/b.html#gone"),
        ("a.html", "none.png"),
        ("deep/b.html", "a.html"),
    ]


PAGES = [
    page
    for page in sorted([*DOCS.glob("*.md"), *DOCS.glob("guide/*.md")])
    # run by tests/test_readme.py
    if page.name not in ("description.md", "distributed.md")
    and re.search(r"```python\n.*?```\n\n```\n", page.read_text("utf-8"), re.DOTALL)
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_of_a_page_print_what_is_shown(page):
    names = {}
    text = page.read_text(encoding="utf-8")
    for code, expected in re.findall(
        r"```python\n(.*?)```\n(?:\n```\n(.*?)```\n)?", text, flags=re.DOTALL
    ):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page.name, "exec"), names)
        assert printed.getvalue() == expected
