"""The documents: width of lines, links, and names of files."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
WIDTH = 100

each_document = pytest.mark.parametrize(
    "document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT))
)


def without_code(text):
    text = re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`]*`", "", text)


def anchors(text):
    """Return the anchors of headings, as on GitHub."""
    text = re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)
    found = set()
    for heading in re.findall(r"^#+ +(.*?) *$", text, flags=re.MULTILINE):
        shown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        name = base = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        count = 0
        while name in found:
            count += 1
            name = f"{base}-{count}"
        found.add(name)
    return found


def links(text):
    return re.findall(r"\]\(([^)\s]+)\)", without_code(text))


def test_all_documents_are_found():
    names = {path.relative_to(ROOT).as_posix() for path in DOCUMENTS}
    assert {"README.md", "CHANGELOG.md", "docs/method.md"} <= names


@each_document
def test_lines_are_at_most_100_columns_wide(document):
    lines = re.sub(r"https?://\S+", "", document.read_text(encoding="utf-8"))
    wide = {
        number: line
        for number, line in enumerate(lines.splitlines(), start=1)
        if len(line) > WIDTH
    }
    assert not wide


@each_document
def test_links_have_existing_targets(document):
    text = document.read_text(encoding="utf-8")
    for link in links(text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, heading = link.partition("#")
        target = document.parent / path if path else document
        assert target.exists(), link
        if heading:
            assert heading in anchors(target.read_text(encoding="utf-8")), link


def test_notes_are_dated_and_listed():
    notes = ROOT / "docs" / "notes"
    listed = links((notes / "README.md").read_text(encoding="utf-8"))
    for note in notes.glob("*.md"):
        if note.name != "README.md":
            assert re.match(r"\d{4}-\d\d-\d\d-", note.name)
            assert note.name in listed


def test_architecture_names_existing_files():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    package = ROOT / "src" / "cdsk"
    existing = {path.name for path in package.rglob("*")}
    named = re.findall(r"\b_[a-z]\w*\.(?:py|pyx|pxd)\b", text)
    assert named
    assert [name for name in named if name not in existing] == []
    listed = {path.name for path in package.glob("_[a-z]*.py*")}
    listed = {name for name in listed if name.endswith((".py", ".pyx"))}
    listed -= {"_version.py"}
    assert listed <= set(named)


def test_changelog_keeps_its_form():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## (.*)$", text, flags=re.MULTILINE)
    kinds = re.findall(r"^### (.*)$", text, flags=re.MULTILINE)
    released = r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d"
    assert versions[0] == "[Unreleased]"
    assert [name for name in versions[1:] if not re.fullmatch(released, name)] == []
    allowed = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(kinds) <= allowed
    assert kinds


def test_anchors_and_links_are_parsed():
    text = "# A `b`, c\n\n## A b c\n```\n# no\n```\n[x](y.md#z) `[q](r)`"
    assert anchors(text) == {"a-b-c", "a-b-c-1"}
    assert links(text) == ["y.md#z"]
