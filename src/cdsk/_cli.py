# SPDX-License-Identifier: BSD-3-Clause
"""The command ``cdsk``: cluster a file, or show the demonstration.

Labels go to a file or to standard output, everything else to standard error. What can be
refused is refused before the fit, and nothing is written until the fit has succeeded.
Libraries are imported where they are used, so that ``--help`` is not kept waiting.
"""

import argparse
import os
import sys
import time
import warnings
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

FAILURE, INTERRUPTED = 2, 130

_RULES = ("auto", "variance", "std", "median", "local")


class UsageError(Exception):
    """Wrong arguments; the message is for the user."""


class Parser(argparse.ArgumentParser):
    """An argument parser that leaves the reporting of errors to ``main``."""

    def error(self, message):
        """Raise instead of printing the usage and exiting."""
        raise UsageError(f"{message} (see {self.prog} --help)")


def main(argv=None):
    """Run the command and return its exit status."""
    try:
        arguments = parser().parse_args(argv)
        with _warnings_in_one_line():
            arguments.run(arguments)
            sys.stdout.flush()
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone; Python must not try to flush to it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILURE
    except (UsageError, ValueError, OSError, ImportError, MemoryError) as error:
        _say(f"error: {error}")
        return FAILURE
    return 0


def parser():
    """The argument parser."""
    top = Parser(
        prog="cdsk", description="Kernel clustering that learns its own similarity."
    )
    top.add_argument("--version", action=_Version, nargs=0, help="show the version")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_cluster(commands)
    _add_demo(commands)
    return top
