# SPDX-License-Identifier: BSD-3-Clause
"""What commands share: refusals, one line at a time, outputs (tests/test_main.py)."""

import os
import sys
from itertools import combinations
from pathlib import Path


class UsageError(Exception):
    """Wrong arguments; the message is for the user."""


def say(text):
    """One line on standard error."""
    print("cdsk:", *(line.strip() for line in text.splitlines()), file=sys.stderr)


def count(number, noun):
    """So many of them."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def check_outputs(inputs, outputs):
    """Refuse, before any work, outputs that could not be written or do harm.

    ``inputs`` are paths, ``outputs`` paths by their options; None and - are no files.
    """
    for option, path in outputs.items():
        if path == "-" and option not in ("-o", "--json"):
            raise UsageError(f"{option} -: expected the name of a file.")
    inputs = [path for path in inputs if path != "-"]
    files = {o: path for o, path in outputs.items() if path not in (None, "-")}
    for option, path in files.items():
        _check_output(option, path)
        for other in inputs:
            _check_different(option, path, other)
    for (_, other), (option, path) in combinations(files.items(), 2):
        _check_different(option, path, other)
    if list(outputs.values()).count("-") > 1:
        options = " and ".join(o for o, path in outputs.items() if path == "-")
        raise UsageError(
            f"{options} cannot both go to standard output, -: name a file for one."
        )


def _check_output(option, path):
    file = Path(path)
    if not file.parent.is_dir():
        raise UsageError(f"{option} {path}: the folder {file.parent} does not exist.")
    if file.is_dir():
        raise UsageError(f"{option} {path}: expected the name of a file; got a folder.")
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        raise UsageError(f"{option} {path}: no permission to write there.")


def _check_different(option, path, other):
    if Path(path).resolve() == Path(other).resolve():
        raise UsageError(f"{option} {path}: would overwrite {other}.")


def write(path, text, what):
    """Write a text to a file, or to standard output; what is lost else goes there."""
    if path == "-":
        sys.stdout.write(text)
        return
    try:
        Path(path).write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        sys.stdout.write(text)
        raise UsageError(
            f"cannot write {path}: {error.strerror}. The {what} went to stdout instead."
        ) from None
