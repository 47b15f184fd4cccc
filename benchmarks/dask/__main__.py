# SPDX-License-Identifier: BSD-3-Clause
"""Compare cdsk.dask.CDSK with its peers: time of every pass, traffic, memory, scores.

usage: python -m benchmarks.dask [--sizes 100000 1000000 10000000] [--workers 1 2]
           [--peers-up-to 1000000] [--seed 1] [--timeout 1800] [--peer-timeout 240]
           [--quick] [--out docs/results]

Workers generate the rows again in every pass. Each line is measured in its own process,
with its own workers. With --out, dask.md is written after every line.
"""

import argparse
import math
import shlex
import sys
import textwrap
from datetime import date
from itertools import pairwise
from pathlib import Path

from benchmarks.dask.measure import METHODS, measure_in_subprocess
from benchmarks.peers.report import machine

OURS, *PEERS = METHODS

# heading -> key of the result, and its factor
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
LEGEND = (
    "Seconds of processor time of all workers, and elapsed (clock), possibly on a busy "
    "machine. Megabytes that workers sent to each other and to the caller, and peak "
    "memory of a worker, including libraries. ARI without noise."
)
WIDTH = 100


def main():
    """Run the benchmark."""
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
        done[line] = measure_in_subprocess(*line, options.seed, timeout)
        if options.out is not None:
            options.out.mkdir(parents=True, exist_ok=True)
            (options.out / "dask.md").write_text(page(done), encoding="utf-8")
    print(page(done))


def page(done):
    """Return the results as Markdown."""
    ours = {line: results for line, results in done.items() if line[0] == OURS}
    peers = {line: results for line, results in done.items() if line[0] != OURS}
    command = shlex.join(["python", "-m", "benchmarks.dask", *sys.argv[1:]])
    about = f"{date.today()}, {machine()}. {LEGEND}"
    lines = ["# cdsk.dask on workers of one machine", "", "```", command, "```", ""]
    lines += [textwrap.fill(about, WIDTH), ""]
    lines += _table({"rows": 1, "workers": 2}, PASSES | WHOLE, ours)
    lines += ["", *_growth(ours), "", "## Peers", ""]
    lines += _table({"method": 0, "rows": 1, "workers": 2}, WHOLE, peers)
    return "\n".join([*lines, ""])


def _table(keys, columns, done):
    rows = [[*keys, *columns, "ARI"]]
    rows.append(["---"] * len(rows[0]))
    for line, results in done.items():
        first = [f"{line[i]:,}" if i else line[i] for i in keys.values()]
        cells = [_cell(results.get(key), unit) for key, unit in columns.values()]
        score = f"{results['ARI']:.3f}" if "ARI" in results else ""
        rows.append([*first, *cells, score])
    table = [f"| {' | '.join(cells)} |" for cells in rows]
    failed = [
        textwrap.shorten(f"* {method}, {n:,} rows: {results['failed']}", WIDTH)
        for (method, n, _), results in done.items()
        if "failed" in results
    ]
    return [*table, "", *failed] if failed else table


def _growth(done):
    """Yield sentences with the exponents p of time = n^p."""
    ours = {line[1:]: results for line, results in done.items()}
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
    parser.add_argument("--timeout", type=float, default=1800.0, help="s, of cdsk")
    parser.add_argument("--peer-timeout", type=float, default=240.0, help="s")
    parser.add_argument("--quick", action="store_true", help="small sizes, one worker")
    parser.add_argument("--out", type=Path, help="folder for dask.md")
    options = parser.parse_args()
    if options.quick:
        options.sizes, options.workers = [20_000, 40_000], [1]
    return options


if __name__ == "__main__":
    main()
