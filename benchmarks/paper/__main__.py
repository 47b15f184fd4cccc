# SPDX-License-Identifier: BSD-3-Clause
"""The tables of the paper: every method on every set, the printed numbers beside ours.

usage: python -m benchmarks.paper --data DATA [--sets NAME ...] [--methods NAME ...]
           [--mode paper|default] [--repeats 10] [--jobs 1] [--budget 600]
           [--sample 2500] [--redo failed|all] [--out build/paper]

DATA holds NAME.npz files (X, y, of images also shape). Every fit is appended at once to
OUT/paper-MODE.jsonl: a run that was stopped, even killed, goes on where it was. Tables
of all that is in that file are in OUT/paper-MODE.md, .csv and -scores.csv, the figure
in .png. Methods that do not scale are run on a class-balanced sample of large sets.
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
    """Run what the command line asks for."""
    options = _options(arguments)
    path = options.out / f"paper-{options.mode}.jsonl"

    def report():
        write(options.out, options.mode, read(path).values(), _command(options))

    try:
        run(options, path, report)
    except KeyboardInterrupt:
        raise SystemExit("Stopped. The same command goes on from here.") from None
    report()
    drawn = figure(options.out, options.mode, read(path).values())
    written = f"{options.out}/paper-{options.mode}.md, .csv, -scores.csv"
    print(f"{written}, .png" if drawn else written)


def _command(options):
    """The command without what is true on one machine only."""
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
            help=f"all if not given: {', '.join(known)}",
        )
    parser.add_argument("--mode", choices=MODES, default="paper", help="preparation")
    parser.add_argument("--repeats", type=_positive, default=10, help="seeds")
    parser.add_argument("--jobs", type=_positive, default=1, help="pairs at a time")
    parser.add_argument("--budget", type=_seconds, default=600.0, help="s, of one fit")
    parser.add_argument(
        "--sample", type=_positive, default=2500, help="points for those not scaling"
    )
    parser.add_argument(
        "--redo", choices=("failed", "all"), help="measure again what is recorded"
    )
    parser.add_argument("--out", type=Path, default=Path("build/paper"))
    options = parser.parse_args(arguments)
    there = [name for name in SETS if Path(options.data, f"{name}.npz").is_file()]
    missing = [name for name in options.sets or () if name not in there]
    if missing or not there:
        names = ", ".join(missing or SETS)
        parser.error(f"{options.data} must hold NAME.npz; there is no {names}.")
    options.chosen = [n for n in ("sets", "methods") if getattr(options, n)]
    # each once
    options.sets = list(dict.fromkeys(options.sets or there))
    options.methods = list(dict.fromkeys(options.methods or METHODS))
    try:
        options.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"--out must be a folder that can be written to; got {error}.")
    return options


def _seconds(text):
    return _number(text, float, "a number of seconds above 0")


def _positive(text):
    return _number(text, int, "an integer of at least 1")


def _number(text, kind, expected):
    """The positive and finite number that a text is."""
    try:
        if 0 < kind(text) < math.inf:
            return kind(text)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"must be {expected}; got {text!r}")


if __name__ == "__main__":
    main()
