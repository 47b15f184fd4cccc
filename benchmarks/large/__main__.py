# SPDX-License-Identifier: BSD-3-Clause
"""Compare large fits with their peers: time, memory, scores, share of every stage.

usage: python -m benchmarks.large [--data DATA] [--only NAME ...] [--threads N]
           [--timeout 900] [--quick] [--out docs/results]

Each method of a line runs in its own process. DATA contains mnist.npz and mpie_s2.npz
(X, y, shape); without it, lines that need them are skipped. large.md and large.csv are
written after every line. With --only or --quick they are written only if --out is
given.
"""

import argparse
from pathlib import Path

from benchmarks.large.lines import LINES
from benchmarks.large.measure import measure_in_subprocess
from benchmarks.large.report import Row, markdown, write
from benchmarks.peers.measure import max_threads
from benchmarks.peers.report import machine


def main():
    """Run the benchmark."""
    options = _options()
    where = f"{machine()}, {options.threads} threads in use."
    if options.quick:
        where += " Small sizes to test this program: the targets do not apply."
    out = options.out
    if out is None and not (options.only or options.quick):
        out = Path("docs/results")
    rows = []
    for name in options.only or LINES:
        print(f"{name} ...", flush=True)
        rows += _rows(name, options)
        if out is not None:
            write(out, where, rows)
    print(markdown(where, rows))


def _rows(name, options):
    """Yield a row for every peer of a line; ours is measured once."""
    line, common = LINES[name], (options.threads, options.quick, options.data)
    # twice the timeout for ours, which every row needs
    ours = measure_in_subprocess(name, "ours", *common, 2 * options.timeout)
    for peer in line.peers:
        theirs = ours
        if "skipped" not in ours:
            theirs = measure_in_subprocess(name, peer, *common, options.timeout)
        yield Row(
            name,
            line.what,
            peer,
            tuple(target for target in line.targets if target.peer in ("", peer)),
            ours,
            theirs,
        )


def _options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder of mnist.npz and mpie_s2.npz")
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", choices=LINES, help=", ".join(LINES)
    )
    parser.add_argument("--threads", type=int, default=max_threads())
    parser.add_argument("--timeout", type=float, default=900.0, help="s, of a peer")
    parser.add_argument("--quick", action="store_true", help="small sizes, few runs")
    parser.add_argument("--out", type=Path, help="folder for large.md and large.csv")
    return parser.parse_args()


if __name__ == "__main__":
    main()
