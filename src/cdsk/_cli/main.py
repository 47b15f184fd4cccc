# SPDX-License-Identifier: BSD-3-Clause
"""The command ``cdsk``: what it can be told, and how it ends.

Labels go to a file or to standard output, everything else to standard error. What can
be refused is refused before the fit, and nothing is written until it has succeeded.
Libraries are imported where they are used, so that ``--help`` is not kept waiting.
"""

import argparse
import os
import sys
import warnings
from contextlib import contextmanager

from cdsk._cli import cluster, predict
from cdsk._cli.console import UsageError, check_outputs, say

FAILURE, INTERRUPTED = 2, 130

_EXIT = (
    "Exit status: 0 if all was done; 2 if arguments, data or files were refused, or "
    "memory was short; 130 if interrupted by Ctrl-C; 1 for errors of the program "
    "itself, with a traceback."
)


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
        say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # Nobody reads our output any more; Python must not try to flush it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILURE
    except (UsageError, ValueError, OSError, ImportError, MemoryError) as error:
        say(f"error: {_in_words(error)}")
        return FAILURE
    return 0


def _in_words(error):
    if isinstance(error, OSError) and error.strerror:
        return f"cannot use {error.filename or 'standard output'}: {error.strerror}."
    if isinstance(error, MemoryError):
        return str(error) or "there is too little memory."
    return str(error) or type(error).__name__


def parser():
    """Return the argument parser."""
    from cdsk._version import __version__

    top = Parser(
        prog="cdsk",
        description="Kernel clustering that learns its own similarity.",
        epilog=_EXIT,
    )
    top.add_argument("--version", action="version", version=f"cdsk {__version__}")
    commands = top.add_subparsers(required=True, metavar="{cluster,predict,demo}")
    cluster.add_to(commands)
    predict.add_to(commands)
    _add_demo(commands)
    return top


def _add_demo(commands):
    command = commands.add_parser(
        "demo",
        help="compare four methods on two data sets",
        description="Compare four methods on two data sets: a table and a picture.",
    )
    command.add_argument(
        *("-o", "--output"),
        default="demo.png",
        metavar="FILE",
        help="picture (default: %(default)s)",
    )
    command.set_defaults(run=_run_demo)


def _run_demo(arguments):
    check_outputs([], {"-o": arguments.output})
    from cdsk._cli import demo

    demo.run(arguments.output)


@contextmanager
def _warnings_in_one_line():
    def show(message, *_, **__):
        say(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield
