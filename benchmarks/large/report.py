# SPDX-License-Identifier: BSD-3-Clause
"""Measurements of large fits as tables in Markdown (100 columns) and CSV."""

import csv
import textwrap
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.large.lines import GROWTH, LARGEST_EXPONENT
from benchmarks.large.measure import STAGES

_SCORES = "ARI", "NMI", "missed", "KKT gap"


@dataclass
class Row:
    """A line and one peer; ``ours`` and ``theirs`` are results or a reason."""

    name: str
    what: str
    peer: str
    targets: tuple
    ours: dict
    theirs: dict

    def quantity(self, name):
        """Return one of our results, or None if it was not measured."""
        if "seconds" not in self.ours:
            return None
        if name == "ratio":
            # if the peer timed out, the true ratio is smaller
            theirs = self.theirs.get("seconds", self.theirs.get("timeout"))
            return None if theirs is None else self.ours["seconds"] / theirs
        return {**self.ours, **self.ours["scores"]}[name]

    def met(self, target):
        """Return whether a target is met, or None if that is unknown."""
        value = self.quantity(target.quantity)
        if value is None:
            return None
        if target.at_least:
            return value >= target.bound
        if target.quantity == "ratio" and "timeout" in self.theirs:
            # without a timeout, the ratio might be below the bound
            return value <= target.bound or None
        return value <= target.bound


def write(folder, where, rows):
    """Write large.md and large.csv."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "large.md").write_text(markdown(where, rows), encoding="utf-8")
    with open(folder / "large.csv", "w", newline="", encoding="utf-8") as file:
        records = [_record(row) for row in rows]
        writer = csv.DictWriter(file, records[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)


def markdown(where, rows):
    """Return all tables as Markdown."""
    done = [row for row in rows if "seconds" in row.ours]
    parts = [
        "# Large fits",
        textwrap.fill(where, 100, break_on_hyphens=False),
        "## Targets",
        _targets(rows),
    ]
    parts += ["## Times", _times(done), "## Memory and quality", _quality(done)]
    parts += ["## Shares of the stages", _shares(done)]
    missing = [
        f"* {row.what}, {method}: {reason}."
        for row in rows
        for method, found in (("ours", row.ours), (row.peer, row.theirs))
        if (reason := _reason(found))
    ]
    if missing:
        # without duplicates: ours is in the row of every peer
        parts += ["## Not measured", "\n".join(dict.fromkeys(missing))]
    return "\n\n".join(parts) + "\n"


def exponent(rows):
    """Return p of time = n^p for the fits of ``GROWTH``, None if one is missing."""
    sizes = {row.name: row.ours.get("n") for row in rows if row.name in GROWTH}
    seconds = [row.quantity("seconds") for row in rows if row.name in GROWTH]
    if len(sizes) < len(GROWTH) or None in seconds:
        return None
    return float(np.polyfit(np.log(list(sizes.values())), np.log(seconds), 1)[0])


def _targets(rows):
    lines = []
    for row in rows:
        for target in row.targets:
            sign = "≥" if target.at_least else "≤"
            found = row.quantity(target.quantity)
            less = target.quantity == "ratio" and "timeout" in row.theirs
            peer = f" to {row.peer}" if target.quantity == "ratio" else ""
            lines.append(
                [
                    row.what,
                    target.quantity + peer,
                    f"{sign} {_shown(target.quantity, target.bound)}",
                    ("< " if less else "") + _shown(target.quantity, found),
                    {True: "yes", False: "**no**", None: "not known"}[row.met(target)],
                ]
            )
    p = exponent(rows)
    if p is not None:
        met = "yes" if p <= LARGEST_EXPONENT else "**no**"
        bound = f"≤ {LARGEST_EXPONENT}"
        lines.append(["blobs, d = 10", "exponent of n", bound, f"{p:.2f}", met])
    return _table(["what", "quantity", "target", "found", "met"], lines)


def _times(rows):
    head = ["what", "time", "processor", "peer", "its time", "processor", "ratio"]
    lines = []
    for row in rows:
        times = [_shown(name, row.quantity(name)) for name in ("seconds", "processor")]
        if "timeout" in row.theirs:
            theirs = [f"> {_shown('seconds', row.theirs['timeout'])}", ""]
        else:
            theirs = [
                _shown(name, row.theirs.get(name)) for name in ("seconds", "processor")
            ]
        ratio = _shown("ratio", row.quantity("ratio"))
        lines.append([row.what, *times, row.peer, *theirs, ratio])
    return _table(head, lines)


def _quality(rows):
    lines = {}
    for row in rows:
        # only once: ours is in the row of every peer
        for who, found in (("cdsk", row.ours), (row.peer, row.theirs)):
            memory = _shown("memory", found.get("memory"))
            lines[row.what, who] = [row.what, who, memory, _scores(found)]
    return _table(["what", "who", "memory", "scores"], lines.values())


def _scores(found):
    return ", ".join(
        f"{name} {_shown(name, value)}"
        for name, value in found.get("scores", {}).items()
    )


def _shares(rows):
    head = ["what", *STAGES, "other"]
    lines = {
        row.what: [row.what, *(f"{row.ours['shares'][name]:.0%}" for name in head[1:])]
        for row in rows
        if row.ours.get("shares")
    }
    return _table(head, lines.values())


def _record(row):
    record = {"name": row.name, "what": row.what, "peer": row.peer}
    for prefix, found in (("", row.ours), ("peer_", row.theirs)):
        flat = found | found.get("scores", {}) | {"reason": _reason(found)}
        columns = "seconds", "processor", "memory", *_SCORES, "reason"
        record |= {prefix + name: flat.get(name, "") for name in columns}
    shares = row.ours.get("shares", {})
    record |= {name: shares.get(name, "") for name in (*STAGES, "other")}
    verdicts = [row.met(target) for target in row.targets]
    record["missed targets"] = sum(met is False for met in verdicts)
    return record


def _reason(found):
    """Return why there are no results, "" if there are."""
    if "timeout" in found:
        return f"did not finish in {found['timeout']:.0f} s"
    return found.get("skipped") or found.get("failed") or ""


def _table(head, lines):
    cells = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def _shown(quantity, value):
    if value is None:
        return ""
    if quantity in ("seconds", "processor"):
        return f"{value:.1f} s" if value >= 10 else f"{value:.3g} s"
    if quantity == "memory":
        return f"{value / 1e9:.2f} GB"
    if quantity == "missed":
        return f"{value:.0f}"
    if quantity == "KKT gap":
        return f"{value:.1e}"
    return f"{value:.2f}" if quantity == "ratio" else f"{value:.3f}"
