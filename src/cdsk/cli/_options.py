# SPDX-License-Identifier: BSD-3-Clause
"""Options for reading a table (tests/test_main.py)."""

import argparse
from pathlib import Path

from cdsk.cli._console import UsageError, print_message

# Larger files, in bytes, take seconds to read, and a message is printed.
MAX_SILENT_FILE = 2 * 10**7

FORMATS = (
    "Text files are read by their suffix: cells are separated by commas in .csv "
    "(semicolons with --decimal ,), by tabs in .tsv, by white space in .txt. They may "
    "be compressed (.gz, .bz2, .xz, .zst). The first row is read as column names if "
    "one of its cells is text above a number, or if all are text that does not occur "
    "again; a warning is shown if this is ambiguous. Columns whose cells are all "
    "numbers hold numbers, others categories. Empty cells, NA, NaN, null and ? are "
    "missing."
)


def add_table_options(command):
    """Add the table, its columns and its text format to a parser."""
    _add_column_options(command)
    add = command.add_argument
    add(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="whether the first row contains column names (default: detected)",
    )
    add(
        "--delimiter",
        type=_parse_delimiter,
        metavar="C",
        help="between cells: one character, tab, or space for any white space",
    )
    add("--decimal", choices=[".", ","], default=".", help="decimal sign (default: .)")
    add("--threads", type=int, metavar="N", help="number of threads (default: all)")
    add("-q", "--quiet", action="store_true", help="show only warnings and errors")


def _add_column_options(command):
    command.add_argument(
        "data",
        metavar="DATA",
        help="table, one row per point: .csv .tsv .txt, also compressed, "
        ".parquet .npy .npz (array X), or - for CSV on standard input",
    )
    command.add_argument(
        "-o",
        "--output",
        default="-",
        metavar="FILE",
        help="CSV file of labels (default: -, standard output)",
    )
    command.add_argument(
        "--columns",
        type=lambda text: [part.strip() for part in text.split(",")],
        metavar="A,B",
        help="feature columns, by name or by number from 1 (default: all)",
    )
    command.add_argument(
        "--id",
        metavar="COLUMN",
        help="column of row names, written next to the labels; not a feature",
    )


def check_table_options(arguments):
    """Check that delimiter and decimal sign differ."""
    if arguments.delimiter == arguments.decimal:
        sign = arguments.decimal
        raise UsageError(
            f"--delimiter and --decimal must differ; got {sign!r} for both."
        )


def read_points(arguments, kinds=None):
    """Return the points, column names and cells of ``--id``, as ``read_table``."""
    from cdsk.cli._tables import read_table

    path = Path(arguments.data)
    if not arguments.quiet and path.is_file():
        size = path.stat().st_size
        if size > MAX_SILENT_FILE:
            print_message(f"reading {path}, {size / 1e6:.0f} MB")
    return read_table(
        arguments.data,
        columns=arguments.columns,
        id_column=arguments.id,
        header=arguments.header,
        delimiter=arguments.delimiter,
        decimal=arguments.decimal,
        kinds=kinds,
    )


def _parse_delimiter(text):
    is_character = len(text) == 1 and not text.isalnum() and text not in '"+-\r\n'
    if not is_character and text not in ("tab", "space"):
        raise argparse.ArgumentTypeError(
            "expected tab, space or one character that does not occur in numbers; got "
            f"{text!r}"
        )
    return text
