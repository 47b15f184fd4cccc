# SPDX-License-Identifier: BSD-3-Clause
"""The command ``cdsk``: subcommands, messages and exit status.

Labels are written to a file or standard output, everything else to standard error.
Arguments are checked before the fit, and outputs are written after it has succeeded.
Libraries are imported where they are used, to keep ``--help`` fast.
"""

import argparse
import os
import sys
import warnings
from contextlib import contextmanager

from cdsk.cli import _cluster as cluster
from cdsk.cli import _predict as predict
from cdsk.cli._console import UsageError, check_outputs, print_message

FAILURE, INTERRUPTED = 2, 130

_EXIT_STATUS = (
    "Exit status: 0 on success; 2 for invalid arguments, data or files, or lack of "
    "memory; 130 if interrupted by Ctrl-C; 1 for an internal error, with a traceback."
)


class Parser(argparse.ArgumentParser):
    """Argument parser that raises errors, which ``main`` prints."""

    def error(self, message):
        """Raise an error instead of printing the usage and exiting."""
        raise UsageError(f"{message} (see {self.prog} --help)")


def main(argv=None):
    """Run the command and return its exit status."""
    try:
        arguments = make_parser().parse_args(argv)
        with _print_warnings():
            arguments.run(arguments)
            sys.stdout.flush()
    except KeyboardInterrupt:
        print_message("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has closed the pipe; Python must not flush stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILURE
    except (UsageError, ValueError, OSError, ImportError, MemoryError) as error:
        print_message(f"error: {_format_error(error)}")
        return FAILURE
    return 0


def _format_error(error):
    if isinstance(error, OSError) and error.strerror:
        return f"cannot use {error.filename or 'standard output'}: {error.strerror}."
    if isinstance(error, MemoryError):
        return str(error) or "out of memory."
    return str(error) or type(error).__name__


def make_parser():
    """Return the argument parser."""
    from cdsk._version import __version__

    parser = Parser(
        prog="cdsk",
        description="Kernel clustering with a learned similarity.",
        epilog=_EXIT_STATUS,
    )
    parser.add_argument("--version", action="version", version=f"cdsk {__version__}")
    commands = parser.add_subparsers(required=True, metavar="{cluster,predict,demo}")
    cluster.add_command(commands)
    predict.add_command(commands)
    _add_demo(commands)
    return parser


def _add_demo(commands):
    command = commands.add_parser(
        "demo",
        help="compare four methods on two data sets",
        description="Compare four methods on two data sets, in a table and a plot.",
    )
    command.add_argument(
        "-o",
        "--output",
        default="demo.png",
        metavar="FILE",
        help="image file of the plot (default: %(default)s)",
    )
    command.set_defaults(run=_run_demo)


def _run_demo(arguments):
    check_outputs([], {"-o": arguments.output})
    from cdsk.cli import _demo as demo

    demo.run(arguments.output)


@contextmanager
def _print_warnings():
    """Print every warning as one line."""

    def show(message, *_, **__):
        print_message(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield
