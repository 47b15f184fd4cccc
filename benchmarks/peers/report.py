# SPDX-License-Identifier: BSD-3-Clause
"""Tables with one row per line and number of threads, as Markdown and JSON."""

import json
import os
import platform
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from threadpoolctl import threadpool_info

from benchmarks.asv.stages.private import simd_level
from benchmarks.peers.measure import max_threads


@dataclass
class Row:
    """A row of the table: times in seconds, memory in bytes, None if not measured.

    ``quality`` and ``peer_quality`` are values of ``measure``.
    """

    name: str
    what: str
    peer: str
    n_threads: int
    target: float
    at_most: bool
    seconds: float | None = None
    peer_seconds: float | None = None
    limit: float | None = None
    memory: int | None = None
    peer_memory: int | None = None
    measure: str = ""
    quality: float | None = None
    peer_quality: float | None = None
    remark: str = ""

    @property
    def ratio(self):
        """The peer's value / ours; if ``at_most``, ours / the peer's."""
        if self.seconds is None:
            return self.memory / self.peer_memory
        if self.at_most:
            return self.seconds / self.peer_seconds
        return self.peer_seconds / self.seconds

    @property
    def met(self):
        """Whether the target is met."""
        return self.ratio <= self.target if self.at_most else self.ratio >= self.target


FULL = {
    "what": lambda row: row.what,
    "peer": lambda row: row.peer,
    "threads": lambda row: str(row.n_threads),
    "time": lambda row: _seconds(row.seconds),
    "peer's": lambda row: _seconds(row.peer_seconds),
    "ratio": lambda row: f"{row.ratio:.2f}",
    "target": lambda row: _target(row),
    "limit": lambda row: _seconds(row.limit),
    "memory": lambda row: _megabytes(row.memory),
    "peer's memory": lambda row: _megabytes(row.peer_memory),
    "quality": lambda row: _quality(row, row.quality),
    "peer's quality": lambda row: _quality(row, row.peer_quality),
    "remark": lambda row: row.remark,
}
SHORT = ("what", "peer", "time", "peer's", "ratio", "target")


def table(rows, columns=tuple(FULL)):
    """Return a Markdown table."""
    lines = [columns, ["---"] * len(columns)]
    lines += [[FULL[column](row) for column in columns] for row in rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def machine():
    """Return a description of the machine and the versions."""
    blas = {
        f"{info['internal_api']} {info['version']}"
        for info in threadpool_info()
        if info["user_api"] == "blas"
    }
    packages = [
        f"{name} {version(name)}" for name in ("cdsk", "numpy", "scipy", "scikit-learn")
    ]
    return ", ".join(
        [
            _processor(),
            f"{max_threads()} cores",
            f"instructions {simd_level()}",
            f"Python {platform.python_version()}",
            *packages,
            *sorted(blas),
            f"load at the start {os.getloadavg()[0]:.1f}",
        ]
    )


def write(folder, where, rows, growth):
    """Write compare.md and compare.json."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    most = max((row.n_threads for row in rows), default=1)
    parts = [where]
    if rows:
        parts += [
            f"With {most} threads:",
            table([row for row in rows if row.n_threads == most], SHORT),
            "All results:",
            table(rows),
        ]
    if growth:
        parts += ["Time grows as n^p:", growth_table(growth)]
    (folder / "compare.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    content = {
        "machine": where,
        "rows": [asdict(row) | {"ratio": row.ratio, "met": row.met} for row in rows],
        "growth": growth,
    }
    (folder / "compare.json").write_text(json.dumps(content, indent=1) + "\n")


def growth_table(growth):
    """Return a Markdown table of times and exponents per stage."""
    sizes = [str(n) for n in growth[0]["n"]]
    lines = [["stage", *(f"n={n}" for n in sizes), "p"], ["---"] * (len(sizes) + 2)]
    for stage in growth:
        times = [_seconds(seconds) for seconds in stage["seconds"]]
        lines.append([stage["stage"], *times, f"{stage['exponent']:.2f}"])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _processor():
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def _seconds(value):
    if value is None:
        return ""
    return f"{value:.2f} s" if value >= 1 else f"{1e3 * value:.3g} ms"


def _megabytes(value):
    return "" if value is None else f"{value / 1e6:.0f} MB"


def _target(row):
    mark = "" if row.met else " (missed)"
    return f"{'≤' if row.at_most else '≥'} {row.target:g}{mark}"


def _quality(row, value):
    if value is None:
        return ""
    return f"{row.measure} {value:{'.1e' if value < 0.01 else '.3f'}}"
