# SPDX-License-Identifier: BSD-3-Clause
"""Reproduce the paper's tables: every method on every data set, with printed numbers.

usage: python -m benchmarks.paper --data DATA [--sets NAME ...] [--methods NAME ...]
           [--mode paper|default] [--repeats 10] [--jobs 1] [--budget 600]
           [--sample 2500] [--redo failed|all] [--out build/paper]

DATA contains NAME.npz files (X, y, and shape for images). Every fit is appended to
OUT/paper-MODE.jsonl at once, and the same command continues an interrupted run. The
tables of all fits in that file are written to OUT/paper-MODE.md, .csv and -scores.csv,
and a figure to .png. Methods that do not scale run on a class-balanced sample of large
sets.
"""

import argparse
import math
import shlex
from pathlib import Path

from benchmarks.paper.figure import figure
from benchmarks.paper.methods import METHODS
from benchmarks.paper.records import read
from benchmarks.paper.report import write
from benchmarks.paper.run import run
from benchmarks.paper.sets import MODES, SETS


def main(arguments=None):
    """Run the benchmark."""
    options = _options(arguments)
    path = options.out / f"paper-{options.mode}.jsonl"

    def report():
        write(options.out, options.mode, read(path).values(), _command(options))

    try:
        run(options, path, report)
    except KeyboardInterrupt:
        raise SystemExit("Interrupted. Run the same command to continue.") from None
    report()
    drawn = figure(options.out, options.mode, read(path).values())
    written = f"{options.out}/paper-{options.mode}.md, .csv, -scores.csv"
    print(f"{written}, .png" if drawn else written)


def _command(options):
    """Return the command without options that depend on the machine."""
    words = ["python", "-m", "benchmarks.paper", "--data", "DATA"]
    words += ["--mode", options.mode]
    for name in ("repeats", "jobs", "budget", "sample"):
        words += [f"--{name}", f"{getattr(options, name):g}"]
    for name in options.chosen:
        words += [f"--{name}", *getattr(options, name)]
    return shlex.join(words)


def _options(arguments):
    parser = argparse.ArgumentParser(
        "python -m benchmarks.paper", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--data", required=True, help="folder of NAME.npz files")
    for name, known in (("sets", SETS), ("methods", METHODS)):
        parser.add_argument(
            f"--{name}",
            nargs="+",
            metavar="NAME",
            choices=known,
            help=f"default: all of {', '.join(known)}",
        )
    parser.add_argument("--mode", choices=MODES, default="paper", help="preparation")
    parser.add_argument("--repeats", type=_positive, default=10, help="seeds")
    parser.add_argument("--jobs", type=_positive, default=1, help="parallel processes")
    parser.add_argument("--budget", type=_seconds, default=600.0, help="s per fit")
    parser.add_argument(
        "--sample", type=_positive, default=2500, help="points for slow methods"
    )
    parser.add_argument(
        "--redo", choices=("failed", "all"), help="repeat failed or all recorded fits"
    )
    parser.add_argument("--out", type=Path, default=Path("build/paper"))
    options = parser.parse_args(arguments)
    there = [name for name in SETS if Path(options.data, f"{name}.npz").is_file()]
    missing = [name for name in options.sets or () if name not in there]
    if missing or not there:
        names = ", ".join(missing or SETS)
        parser.error(f"{options.data} must contain NAME.npz files; missing: {names}.")
    options.chosen = [n for n in ("sets", "methods") if getattr(options, n)]
    # without duplicates
    options.sets = list(dict.fromkeys(options.sets or there))
    options.methods = list(dict.fromkeys(options.methods or METHODS))
    try:
        options.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"--out must be a writable folder; got {error}.")
    return options


def _seconds(text):
    return _number(text, float, "a number of seconds above 0")


def _positive(text):
    return _number(text, int, "an integer of at least 1")


def _number(text, kind, expected):
    """Return a text as a positive and finite number."""
    try:
        if 0 < kind(text) < math.inf:
            return kind(text)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"must be {expected}; got {text!r}")


if __name__ == "__main__":
    main()
