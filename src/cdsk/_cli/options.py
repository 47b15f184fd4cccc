# SPDX-License-Identifier: BSD-3-Clause
"""Options that say how a table is to be read (tests/test_main.py)."""

import argparse
from pathlib import Path

from cdsk._cli.console import UsageError, say

# Bytes of a file that takes seconds to read: it is told.
LONG_FILE = 2 * 10**7

FORMATS = (
    "Text is read by its ending: .csv has commas (semicolons with --decimal ,), .tsv "
    "tabs, .txt white space between the cells; each may be compressed, as .gz, .bz2, "
    ".xz or .zst. Its first row is taken for column names if none of its cells is a "
    "number, or if one is text where the row below has a number; doubtful cases are "
    "told."
)


def add_table_options(command):
    """The table, its columns, and how its text is to be read."""
    add = command.add_argument
    add(
        "data",
        metavar="DATA",
        help="table of numbers, a row per point: .csv .tsv .txt, also compressed, "
        ".parquet .npy .npz (array X), or - for CSV on standard input",
    )
    add(
        *("-o", "--output"),
        default="-",
        metavar="FILE",
        help="CSV file of labels (default: -, standard output)",
    )
    add(
        "--columns",
        type=lambda text: [part.strip() for part in text.split(",")],
        metavar="A,B",
        help="columns to use, by name or by number from 1 (default: all)",
    )
    add(
        "--id",
        metavar="COLUMN",
        help="column to write beside the labels; it is none of the features",
    )
    add(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="whether the first row holds column names (default: guessed)",
    )
    add(
        "--delimiter",
        type=_delimiter,
        metavar="C",
        help="between cells: one character, tab, or space for any white space",
    )
    add("--decimal", choices=[".", ","], default=".", help="decimal sign (default: .)")
    add("--threads", type=int, metavar="N", help="how many threads (default: all)")
    add(
        *("-q", "--quiet"),
        action="store_true",
        help="show nothing but warnings and errors",
    )


def check_table_options(arguments):
    """Refuse what contradicts itself."""
    if arguments.delimiter == arguments.decimal:
        sign = arguments.decimal
        raise UsageError(f"--delimiter and --decimal must differ; got {sign!r} twice.")


def read(arguments, known_names=None):
    """The points, names of their columns, and cells of ``--id``, as ``read_table``."""
    from cdsk._cli.tables import read_table

    path = Path(arguments.data)
    if not arguments.quiet and path.is_file() and path.stat().st_size > LONG_FILE:
        say(f"reading {path}, {path.stat().st_size / 1e6:.0f} MB")
    return read_table(
        arguments.data,
        arguments.columns,
        arguments.id,
        header=arguments.header,
        delimiter=arguments.delimiter,
        decimal=arguments.decimal,
        known_names=known_names,
    )


def _delimiter(text):
    one = len(text) == 1 and not text.isalnum() and text not in '"+-\r\n'
    if not one and text not in ("tab", "space"):
        raise argparse.ArgumentTypeError(
            f"expected one character that no number has, tab or space; got {text!r}"
        )
    return text
