# SPDX-License-Identifier: BSD-3-Clause
"""Large fits beside their peers: times, memory, scores and the share of every stage.

usage: python -m benchmarks.large [--data DATA] [--only NAME ...] [--threads N]
           [--timeout 900] [--quick] [--out docs/results]

Each side of a line runs in a process of its own. DATA holds mnist.npz and mpie_s2.npz
(X, y, shape); lines that need them are skipped without it. large.md and large.csv are
written after every line. A run of some lines, or a quick one, writes them only where it
is told to.
"""

import argparse
from pathlib import Path

from benchmarks.large.lines import LINES
from benchmarks.large.report import Row, markdown, write
from benchmarks.large.side import in_process
from benchmarks.peers.measure import most_threads
from benchmarks.peers.report import machine


def main():
    """Run what the command line asks for."""
    options = _options()
    where = f"{machine()}, {options.threads} threads in use."
    if options.quick:
        where += " Small sizes: a test of this program, the targets do not apply."
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
    """A row for every peer of a line; ours is measured once."""
    line, common = LINES[name], (options.threads, options.quick, options.data)
    # ours has twice the time: without it there is no line
    ours = in_process(name, "ours", *common, 2 * options.timeout)
    for peer in line.peers:
        theirs = ours
        if "skipped" not in ours:
            theirs = in_process(name, peer, *common, options.timeout)
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
    parser.add_argument("--threads", type=int, default=most_threads())
    parser.add_argument("--timeout", type=float, default=900.0, help="s, of a peer")
    parser.add_argument("--quick", action="store_true", help="small sizes, few runs")
    parser.add_argument("--out", type=Path, help="folder for large.md and large.csv")
    return parser.parse_args()


if __name__ == "__main__":
    main()
