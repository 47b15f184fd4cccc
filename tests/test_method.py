"""docs/method.md: every equation of the paper is shown, and mapped to code."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs" / "method.md").read_text()
# numbers of the paper's equations; those above 18 are in its appendix and proofs
NUMBERED = 46
IN_THE_TEXT = [*map(str, range(1, 19)), "9'", "9''"]


def table():
    rows = re.findall(r"^\| (.*) \|$", TEXT.split("## 8.")[1].split("## 9.")[0], re.M)
    return [row.split(" | ") for row in rows[2:]]


def test_equations_are_displayed_with_their_numbers():
    shown = re.findall(r"^ {4}.*\((\d+'*)\)$", TEXT, re.M)
    assert set(IN_THE_TEXT) <= set(shown)


def test_the_map_is_complete():
    mapped = set()
    for equation, _, _ in table():
        for first, last in re.findall(r"\((\d+'*)\)(?: - \((\d+)\))?", equation):
            last = last or first
            mapped |= {first} if "'" in first else set(range(int(first), int(last) + 1))
    assert mapped >= {*range(1, NUMBERED + 1), "9'", "9''"}


def test_the_functions_of_the_map_exist():
    source = "".join(
        path.read_text()
        for path in (ROOT / "src" / "cdsk").rglob("*")
        if path.suffix in (".py", ".pyx")
    )
    for _, _, functions in table():
        for name in re.findall(r"`([\w./]+)(?:\(\.\.\.\)[.a-z_]*)?`", functions):
            if name.endswith((".py", ".pyx")):
                assert (ROOT / "src" / "cdsk" / name).exists(), name
            else:
                assert re.search(rf"\b{name.split('.')[-1]}\b", source), name
