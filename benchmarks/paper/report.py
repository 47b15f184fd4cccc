# SPDX-License-Identifier: BSD-3-Clause
"""Records -> tables in the layout of the paper, Markdown and CSV."""

import csv
import textwrap
from collections import Counter
from datetime import date
from pathlib import Path

import numpy as np

from benchmarks.paper.methods import METHODS
from benchmarks.paper.scores import SCORES
from benchmarks.paper.sets import SETS, paper_scores
from benchmarks.peers.report import machine

# Sets side by side in a table that fits a screen.
_COLUMNS = 3
_WIDTH = 100
SAMPLED, PARTLY = "†", "‡"

_HEAD = (
    "Every cell is AC(NMI), ours / the paper's: accuracy by optimal matching, and "
    "mutual information over the larger entropy, as that group's code has it; means "
    'over the seeds. "-": the paper has no such number. Its row SC is, in its own '
    "words, the best of SCK, SC-MS and SC-NS, so it stands beside all of them. "
    f"{SAMPLED}: on a class-balanced sample, the same points for "
    "all so marked. "
    f"{PARTLY}: some seeds have no result."
)
_EVERY = (
    "Mean and standard deviation over the seeds. NMI: over the larger entropy; NMI "
    "mean: over the mean of both; ARI: adjusted Rand index. s: processor time of a "
    "whole fit; GB: the most memory the process held."
)


class Cell:
    """A method on a set: the records of its seeds, of one size."""

    def __init__(self, records):
        self.records = records
        self.done = [record for record in records if record["status"] == "done"]
        self.sampled = records[0]["sample"] is not None
        self.of = records[0]["of"]
        self.n = next((r["n"] for r in records if r.get("n")), None)

    def mean(self, name):
        return float(np.mean([record[name] for record in self.done]))

    def deviation(self, name):
        """Standard deviation over the seeds; 0 for a single one."""
        values = [record[name] for record in self.done]
        return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0

    @property
    def seconds(self):
        """Processor time of a whole fit, the affinity included; None if unknown."""
        times = [record["seconds"] for record in self.done if record["whole"]]
        return float(np.mean(times)) if times else None

    @property
    def memory(self):
        return max(record["memory"] for record in self.done)

    @property
    def marks(self):
        partly = bool(self.done) and len(self.done) < len(self.records)
        return SAMPLED * self.sampled + PARTLY * partly

    @property
    def status(self):
        """In a word, for a cell without scores."""
        return Counter(r["status"] for r in self.records).most_common(1)[0][0]

    @property
    def trouble(self):
        """What went wrong and for how many seeds, in lines."""
        said = Counter(
            f"did not end in {record['budget']:g} s"
            if record["status"] == "timeout"
            else record["reason"]
            for record in self.records
            if record["status"] != "done"
        )
        # numbers in a message differ by the seed: of every kind the first
        warned = [record["warnings"] for record in self.done]
        for kind in sorted({kind for kinds in warned for kind in kinds}):
            told = [kinds[kind] for kinds in warned if kind in kinds]
            said[f"{kind}: {told[0]}"] = len(told)
        for reason, count in said.items():
            words = textwrap.shorten(reason, 300, placeholder=" ...").rstrip(".")
            yield f"{words} ({count} of {len(self.records)} seeds)"


def cells(records):
    """(set, method) -> Cell; of several sizes the largest that has a result."""
    groups = {}
    for record in records:
        if record["set"] in SETS and record["method"] in METHODS:
            what = record["set"], record["method"], record["sample"]
            groups.setdefault(what, []).append(record)
    found = {}
    for (name, method, _), group in groups.items():
        cell, other = Cell(group), found.get((name, method))
        if other is None or _size(cell) > _size(other):
            found[name, method] = cell
    return found


def _size(cell):
    return bool(cell.done), not cell.sampled, cell.records[0]["sample"] or 0


def printed(name, method):
    """The paper's (accuracy, NMI) for a set and a method; None if it has none."""
    return paper_scores().get((METHODS[method].row, SETS[name].name))


def best(found, name, methods, sampled=False):
    """The method of highest NMI on all points of a set, or on the sample of it."""
    scored = {}
    for method in methods:
        cell = found.get((name, method))
        if cell and cell.done and cell.sampled == sampled:
            scored[method] = cell.mean("nmi_max")
    return max(scored, key=scored.__getitem__, default=None)  # of equal ones the first


def write(folder, mode, records, command):
    """Write paper-MODE.md, the same as .csv, and all figures as -scores.csv."""
    folder, found = Path(folder), cells(records)
    stem = f"paper-{mode}"
    (folder / f"{stem}.md").write_text(markdown(mode, found, command), "utf-8")
    _write_csv(folder / f"{stem}.csv", _layout(found))
    _write_csv(folder / f"{stem}-scores.csv", _long(found))


def markdown(mode, found, command):
    """All tables."""
    names = [name for name in SETS if any(key[0] == name for key in found)]
    where = (
        f"{machine()}; {date.today()}. Data prepared in the mode `{mode}`. Last run:"
    )
    parts = [f"# The paper's tables, {mode} mode", _filled(where)]
    # a command is for copying: its lines are joined by the shell
    command = " \\\n    ".join(textwrap.wrap(command, 90, break_on_hyphens=False))
    parts += [f"```\n{command}\n```", _filled(_HEAD), "## AC(NMI)"]
    for start in range(0, len(names), _COLUMNS):
        parts.append(_overview(names[start : start + _COLUMNS], found))
    parts += ["## Every set", _filled(_EVERY)]
    for name in names:
        parts += [_heading(name, found), _details(name, found)]
    trouble = [
        _filled(f"* {SETS[name].name}, {METHODS[method].name}: {line}.", "  ")
        for name in names
        for method in METHODS
        if (name, method) in found
        for line in found[name, method].trouble
    ]
    if trouble:
        parts += ["## Failures, time-outs and warnings", "\n".join(trouble)]
    return "\n\n".join(parts) + "\n"


def _filled(text, indent=""):
    return textwrap.fill(
        text,
        _WIDTH,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )


def _methods_of(names, found):
    return [m for m in METHODS if any((name, m) in found for name in names)]


def _overview(names, found):
    methods = _methods_of(names, found)
    lines = []
    for method in methods:
        shown = [_beside(found.get((n, method)), printed(n, method)) for n in names]
        lines.append([METHODS[method].name, *shown])
    for sampled in (False, True):
        winners = [best(found, name, methods, sampled) for name in names]
        if any(winners):
            title = f"highest NMI{SAMPLED * sampled}"
            lines.append([title, *(METHODS[w].name if w else "" for w in winners)])
    return _table(["", *(SETS[name].name for name in names)], lines)


def _beside(cell, paper):
    """AC(NMI) of ours / the paper's."""
    theirs = "-" if paper is None else f"{_two(paper[0])}({_two(paper[1])})"
    if cell is None:
        return f"not run / {theirs}"
    ours = cell.status
    if cell.done:
        ours = f"{_two(cell.mean('accuracy'))}({_two(cell.mean('nmi_max'))})"
    return f"{ours}{cell.marks} / {theirs}"


def _heading(name, found):
    some = [cell for (key, _), cell in found.items() if key == name]
    sizes = {cell.n for cell in some if cell.sampled and cell.n}
    said = f"{some[0].of} points"
    if sizes:
        said += f"; {SAMPLED} {', '.join(map(str, sorted(sizes)))} of them"
    if SETS[name].remark:
        said += f" ({SETS[name].remark})"
    return f"### {SETS[name].name}\n\n{_filled(said[0].upper() + said[1:] + '.')}"


def _details(name, found):
    lines = []
    for method in _methods_of([name], found):
        cell, paper = found[name, method], printed(name, method)
        theirs = "-" if paper is None else f"{_two(paper[0])}({_two(paper[1])})"
        line = [METHODS[method].name + cell.marks]
        if cell.done:
            shown = [_spread(cell, key) for key in SCORES.values()]
            line += [*shown[:2], theirs, *shown[2:], str(len(cell.done))]
            line += [_seconds(cell.seconds), f"{cell.memory / 1e9:.2g}"]
        else:
            line += [cell.status, "", theirs, *[""] * 5]
        lines.append(line)
    ac, nmi, *others = SCORES
    return _table(["", ac, nmi, "paper", *others, "seeds", "s", "GB"], lines)


def _spread(cell, name):
    mean = f"{cell.mean(name):.3f}".replace("0.", ".", 1)
    return f"{mean}±{_two(cell.deviation(name))}"


def _two(value):
    return f"{value:.2f}".replace("0.", ".", 1) if value < 0.995 else f"{value:.2f}"


def _seconds(value):
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def _table(head, lines):
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _layout(found):
    """A row per method; of every set our AC and NMI and the paper's."""
    names = [name for name in SETS if any(key[0] == name for key in found)]
    for method in _methods_of(names, found):
        row = {"method": METHODS[method].name}
        for name in names:
            cell, paper = found.get((name, method)), printed(name, method)
            ours = ["", ""] if cell is None else [cell.status] * 2
            if cell is not None and cell.done:
                means = [cell.mean(key) for key in ("accuracy", "nmi_max")]
                ours = [f"{mean:.4f}" for mean in means]
            title = SETS[name].name
            row |= dict(zip((f"{title} AC", f"{title} NMI"), ours, strict=True))
            row[f"{title} marks"] = "" if cell is None else cell.marks
            row[f"{title} paper AC"], row[f"{title} paper NMI"] = paper or ("", "")
        yield row


def _long(found):
    """A row per set and method with all figures."""
    for name in SETS:
        for method in METHODS:
            cell = found.get((name, method))
            if cell is None:
                continue
            paper = printed(name, method) or ("", "")
            row = {"set": name, "method": method, "points": cell.n, "of": cell.of}
            row |= {"seeds": len(cell.done), "asked": len(cell.records)}
            for title, key in SCORES.items():
                values = "", ""
                if cell.done:
                    values = f"{cell.mean(key):.4f}", f"{cell.deviation(key):.4f}"
                row[title], row[f"{title} deviation"] = values
            row["paper AC"], row["paper NMI"] = paper
            known = bool(cell.done) and cell.seconds is not None
            row["seconds"] = f"{cell.seconds:.3g}" if known else ""
            row["memory"] = cell.memory if cell.done else ""
            row["trouble"] = "; ".join(cell.trouble)
            yield row


def _write_csv(path, rows):
    rows = list(rows)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0] if rows else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
