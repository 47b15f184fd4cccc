# SPDX-License-Identifier: BSD-3-Clause
"""cdsk.dask.CDSK beside its peers: seconds of every pass, bytes, memory, scores.

usage: python -m benchmarks.dask [--sizes 100000 1000000 10000000] [--workers 1 2]
           [--peers-up-to 1000000] [--seed 1] [--timeout 1800] [--peer-timeout 240]
           [--quick] [--out docs/results]

Rows are made by the workers, in every pass anew. Each line is measured in a process of
its own, with workers of its own. dask.md is written after every line where --out tells.
"""

import argparse
import math
import shlex
import sys
import textwrap
from datetime import date
from itertools import pairwise
from pathlib import Path

from benchmarks.dask.side import METHODS, in_process
from benchmarks.peers.report import machine

OURS, *PEERS = METHODS

# heading -> figure, and what it is multiplied by
PASSES = {
    "sample": ("sample, processor", 1),
    "landmarks": ("landmarks, processor", 1),
    "Z'Z": ("similarities, processor", 1),
}
WHOLE = {
    "fit": ("fit, processor", 1),
    "clock": ("fit", 1),
    "predict": ("predict, processor", 1),
    "clock ": ("predict", 1),
    "sent": ("moved", 1e-6),
    "peak": ("peak", 1e-6),
}
EXPLAINED = (
    "Seconds of all processors, and by the clock, which others may have kept busy. "
    "Megabytes that workers sent to each other and to the caller, and that "
    "one of them held at most, libraries included. ARI of rows that are no noise."
)
WIDTH = 100


def main():
    """Run what the command line asks for."""
    options = _options()
    lines = []
    for n in options.sizes:
        lines += [(OURS, n, workers) for workers in options.workers]
        if n <= options.peers_up_to:
            lines += [(peer, n, max(options.workers)) for peer in PEERS]
    done = {}
    for line in lines:
        print(*line, "...", flush=True)
        timeout = options.timeout if line[0] == OURS else options.peer_timeout
        done[line] = in_process(*line, options.seed, timeout)
        if options.out is not None:
            options.out.mkdir(parents=True, exist_ok=True)
            (options.out / "dask.md").write_text(page(done), encoding="utf-8")
    print(page(done))


def page(done):
    """Figures of lines as Markdown."""
    ours = {line: figures for line, figures in done.items() if line[0] == OURS}
    peers = {line: figures for line, figures in done.items() if line[0] != OURS}
    command = shlex.join(["python", "-m", "benchmarks.dask", *sys.argv[1:]])
    about = f"{date.today()}, {machine()}. {EXPLAINED}"
    lines = ["# cdsk.dask on workers of one machine", "", "```", command, "```", ""]
    lines += [textwrap.fill(about, WIDTH), ""]
    lines += _table({"rows": 1, "workers": 2}, PASSES | WHOLE, ours)
    lines += ["", *_growth(ours), "", "## Peers", ""]
    lines += _table({"method": 0, "rows": 1, "workers": 2}, WHOLE, peers)
    return "\n".join([*lines, ""])


def _table(keys, columns, done):
    rows = [[*keys, *columns, "ARI"]]
    rows.append(["---"] * len(rows[0]))
    for line, figures in done.items():
        first = [f"{line[i]:,}" if i else line[i] for i in keys.values()]
        cells = [_cell(figures.get(key), unit) for key, unit in columns.values()]
        score = f"{figures['ARI']:.3f}" if "ARI" in figures else ""
        rows.append([*first, *cells, score])
    table = [f"| {' | '.join(cells)} |" for cells in rows]
    failed = [
        textwrap.shorten(f"* {method}, {n:,} rows: {figures['failed']}", WIDTH)
        for (method, n, _), figures in done.items()
        if "failed" in figures
    ]
    return [*table, "", *failed] if failed else table


def _growth(done):
    """Exponents of time in n."""
    ours = {line[1:]: figures for line, figures in done.items()}
    for workers in sorted({workers for _, workers in ours}):
        sizes = sorted(n for n, those in ours if those == workers)
        for few, many in pairwise(sizes):
            a, b = ours[few, workers], ours[many, workers]
            if "fit" in a and "fit" in b:
                exponents = [
                    f"{what} {_exponent(a, b, f'{what}, processor', many / few):.2f}"
                    for what in ("similarities", "fit", "predict")
                ]
                growth = (
                    f"* From {few:,} to {many:,} rows, {workers} workers, processor "
                    f"time grows with exponents {', '.join(exponents)}."
                )
                yield textwrap.fill(growth, WIDTH, subsequent_indent="  ")


def _exponent(a, b, what, ratio):
    return math.log(b[what] / a[what], ratio)


def _cell(value, unit):
    if value is None:
        return ""
    return f"{unit * value:.0f}" if unit * value >= 100 else f"{unit * value:.1f}"


def _options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    sizes = [100_000, 1_000_000, 10_000_000]
    parser.add_argument("--sizes", type=int, nargs="+", default=sizes)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--peers-up-to", type=int, default=1_000_000, metavar="ROWS")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=1800.0, help="s, of ours")
    parser.add_argument("--peer-timeout", type=float, default=240.0, help="s")
    parser.add_argument("--quick", action="store_true", help="small sizes, one worker")
    parser.add_argument("--out", type=Path, help="folder for dask.md")
    options = parser.parse_args()
    if options.quick:
        options.sizes, options.workers = [20_000, 40_000], [1]
    return options


if __name__ == "__main__":
    main()
