# SPDX-License-Identifier: BSD-3-Clause
"""Messages and output files of the commands (tests/test_main.py)."""

import os
import sys
from itertools import combinations
from pathlib import Path


class UsageError(Exception):
    """Invalid arguments or files; the message is shown to the user."""


def print_message(text):
    """Print a text as one line to standard error."""
    print("cdsk:", *(line.strip() for line in text.splitlines()), file=sys.stderr)


def check_outputs(inputs, outputs):
    """Check before the fit that all outputs can be written and overwrite no input.

    ``inputs`` are paths, ``outputs`` paths by option. None means no output, "-" is
    standard input or output.
    """
    for option, path in outputs.items():
        if path == "-" and option not in ("-o", "--json"):
            raise UsageError(f"{option} -: expected a file name.")
    inputs = [path for path in inputs if path != "-"]
    files = {o: path for o, path in outputs.items() if path not in (None, "-")}
    for option, path in files.items():
        _check_writable(option, path)
        for input_path in inputs:
            _check_different(option, path, input_path)
    for (_, first), (option, second) in combinations(files.items(), 2):
        _check_different(option, second, first)
    if list(outputs.values()).count("-") > 1:
        options = " and ".join(o for o, path in outputs.items() if path == "-")
        raise UsageError(
            f"{options} cannot both be written to standard output (-). Pass a file "
            "name for one of them."
        )


def _check_writable(option, path):
    file = Path(path)
    if not file.parent.is_dir():
        raise UsageError(
            f"{option} {path}: the directory {file.parent} does not exist."
        )
    if file.is_dir():
        raise UsageError(f"{option} {path}: expected a file name; got a directory.")
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        raise UsageError(f"{option} {path}: permission denied.")


def _check_different(option, path, existing):
    if Path(path).resolve() == Path(existing).resolve():
        raise UsageError(f"{option} {path}: would overwrite {existing}.")


def write_output(path, text, content):
    """Write a text to a file or standard output.

    If the file cannot be written, the text is written to standard output: the result of
    a long fit is not lost.
    """
    if path == "-":
        sys.stdout.write(text)
        return
    try:
        Path(path).write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        sys.stdout.write(text)
        raise UsageError(
            f"cannot write {path}: {error.strerror}. The {content} were written to "
            "standard output instead."
        ) from None
