# SPDX-License-Identifier: BSD-3-Clause
"""Tables of the records in the layout of the paper, as Markdown and CSV."""

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

# Number of data sets in a table of 100 columns.
_COLUMNS = 3
_WIDTH = 100
SAMPLED, PARTLY = "†", "‡"

_HEAD = (
    "Every cell is AC(NMI), ours / the paper's: accuracy by optimal matching, and "
    "mutual information divided by the larger entropy, as in the code of the paper's "
    'authors; means over the seeds. "-": not in the paper. The paper\'s row SC is, '
    "according to its text, the best of SCK, SC-MS and SC-NS, and is shown next to "
    f"all of them. {SAMPLED}: on a class-balanced sample, the same points for all "
    f"methods. {PARTLY}: some seeds have no result."
)
_EVERY = (
    "Mean and standard deviation over the seeds. NMI: divided by the larger entropy; "
    "NMI mean: by the mean of both; ARI: adjusted Rand index. s: processor time of a "
    "whole fit; GB: peak memory of the process."
)


class Cell:
    """Records of a method on a data set for all seeds, with equally many points."""

    def __init__(self, records):
        self.records = records
        self.done = [record for record in records if record["status"] == "done"]
        self.sampled = records[0]["sample"] is not None
        self.of = records[0]["of"]
        self.n = next((r["n"] for r in records if r.get("n")), None)

    def mean(self, name):
        return float(np.mean([record[name] for record in self.done]))

    def deviation(self, name):
        """Return the standard deviation over the seeds; 0 for a single one."""
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
        """The most common status, for a cell without scores."""
        return Counter(r["status"] for r in self.records).most_common(1)[0][0]

    @property
    def trouble(self):
        """Yield errors and warnings, with the number of seeds."""
        messages = Counter(
            f"did not finish in {record['budget']:g} s"
            if record["status"] == "timeout"
            else record["reason"]
            for record in self.records
            if record["status"] != "done"
        )
        # numbers in messages differ between seeds: show the first one of each kind
        warned = [record["warnings"] for record in self.done]
        for kind in sorted({kind for kinds in warned for kind in kinds}):
            texts = [kinds[kind] for kinds in warned if kind in kinds]
            messages[f"{kind}: {texts[0]}"] = len(texts)
        for reason, count in messages.items():
            words = textwrap.shorten(reason, 300, placeholder=" ...").rstrip(".")
            yield f"{words} ({count} of {len(self.records)} seeds)"


def cells(records):
    """Return {(set, method): Cell}, of several sizes the largest with a result."""
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
    """Return the paper's (accuracy, NMI) for a set and a method, or None."""
    return paper_scores().get((METHODS[method].row, SETS[name].name))


def best(found, name, methods, sampled=False):
    """Return the method of highest NMI on all points of a set, or on its sample."""
    scored = {}
    for method in methods:
        cell = found.get((name, method))
        if cell and cell.done and cell.sampled == sampled:
            scored[method] = cell.mean("nmi_max")
    return max(scored, key=scored.__getitem__, default=None)  # ties: the first


def write(folder, mode, records, command):
    """Write paper-MODE.md, the same as .csv, and all figures as -scores.csv."""
    folder, found = Path(folder), cells(records)
    stem = f"paper-{mode}"
    (folder / f"{stem}.md").write_text(markdown(mode, found, command), "utf-8")
    _write_csv(folder / f"{stem}.csv", _layout(found))
    _write_csv(folder / f"{stem}-scores.csv", _long(found))


def markdown(mode, found, command):
    """Return all tables as Markdown."""
    names = [name for name in SETS if any(key[0] == name for key in found)]
    where = f"{machine()}; {date.today()}. Preprocessing mode `{mode}`. Last run:"
    parts = [f"# The paper's tables, {mode} mode", _filled(where)]
    # lines end with a backslash, so the command can be copied
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
        parts += ["## Failures, timeouts and warnings", "\n".join(trouble)]
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
    """Return AC(NMI), ours / the paper's."""
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
    """Return one row per method: our AC and NMI of every set, and the paper's."""
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
    """Return one row per set and method with all results."""
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
