# SPDX-License-Identifier: BSD-3-Clause
"""Compare cdsk with its peers: times, memory and errors in one table.

Every line runs cdsk and the peer alternately in this process, with one thread and with
all threads, and takes the best time of each. Peak memory is measured in a subprocess.
"""

import argparse
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmarks.peers.growth import growth
from benchmarks.peers.lines import LINES
from benchmarks.peers.measure import max_threads, peak_memory, time_alternately
from benchmarks.peers.report import Row, growth_table, machine, table, write


def main():
    """Run the comparison."""
    options = _options()
    where = machine()
    if options.quick:
        where += ". Small sizes to test this program: the targets do not apply."
    print(where, end="\n\n", flush=True)
    rows = []
    names = [] if options.growth else options.only or LINES
    for name in names:
        added = list(_rows(name, options.quick))
        # the header of the table only once
        print("\n".join(table(added).splitlines()[2 if rows else 0 :]), flush=True)
        rows += added
    exponents = []
    if options.growth or not options.only:
        exponents = growth(options.quick, max_threads())
        print("\n" + growth_table(exponents))
    write(options.out, where, rows, exponents)


def _rows(name, quick):
    """Yield the rows of a line, one per number of threads."""
    line = LINES[name](quick=quick)
    most = max_threads()
    for n_threads in sorted({1, most}) if line.threaded else [most]:
        row = Row(name, line.what, line.peer_name, n_threads, line.target, line.at_most)
        with threadpool_limits(n_threads):
            _measure(line, row, quick)
        yield row


def _measure(line, row, quick):
    n_threads = row.n_threads
    if hasattr(line, "matrix_bytes"):
        row.memory = peak_memory(row.name, "ours", n_threads, quick)
        row.peer_memory = line.matrix_bytes
        return
    if line.measure:
        row.measure = line.measure
        # the first run also starts the thread pools
        row.quality, row.peer_quality, row.remark = line.quality(
            line.ours(n_threads), line.peer(n_threads)
        )
        # subprocesses are too slow for a quick run, and small problems need no memory
        if not quick:
            row.memory, row.peer_memory = (
                peak_memory(row.name, method, n_threads, quick)
                for method in ("ours", "peer")
            )
    row.limit = line.limit(n_threads)
    row.seconds, row.peer_seconds = time_alternately(
        lambda: line.seconds("ours", n_threads),
        lambda: line.seconds("peer", n_threads),
        seconds=0.0 if quick else 6.0,
    )


def _options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, few runs")
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", choices=LINES, help=", ".join(LINES)
    )
    parser.add_argument("--growth", action="store_true", help="only the exponents")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path(__file__).parent / "results",
        help="folder for compare.md and compare.json",
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
