# SPDX-License-Identifier: BSD-3-Clause
"""The command ``cdsk``: cluster a file, or show the demonstration.

Labels go to a file or to standard output, everything else to standard error. What can
be refused is refused before the fit, and nothing is written until it has succeeded.
Libraries are imported where they are used, so that ``--help`` is not kept waiting.
"""

import argparse
import math
import os
import sys
import time
import warnings
from contextlib import contextmanager
from pathlib import Path

FAILURE, INTERRUPTED = 2, 130

# Those of cdsk._kernels.bandwidth; a test compares them.
RULES = ("auto", "neighbour", "variance", "std", "median", "local")
# Those of cdsk._choices.representation, too.
VIEWS = ("auto", "raw", "standardize", "normal_scores", "whiten")


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
        # Nobody reads our output any more; Python must not try to flush it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILURE
    except (UsageError, ValueError, OSError, ImportError, MemoryError) as error:
        _say(f"error: {str(error) or type(error).__name__}")
        return FAILURE
    return 0


def parser():
    """Return the argument parser."""
    from cdsk._version import __version__

    top = Parser(
        prog="cdsk", description="Kernel clustering that learns its own similarity."
    )
    top.add_argument("--version", action="version", version=f"cdsk {__version__}")
    commands = top.add_subparsers(required=True, metavar="{cluster,demo}")
    _add_cluster(commands)
    _add_demo(commands)
    return top


def _add_cluster(commands):
    command = commands.add_parser(
        "cluster",
        help="cluster the rows of a table",
        description="Cluster the rows of a table. Writes a label and a learned weight "
        "for every row.",
        epilog="Text is read by its ending: .csv has commas (semicolons with --decimal "
        ",), .tsv tabs, .txt white space between the cells. Its first row is taken for "
        "column names if none of its cells is a number, or if one is text where the "
        "row below has a number; doubtful cases are told.",
    )
    add = command.add_argument
    add(
        "data",
        metavar="DATA",
        help="table of numbers, a row per point: .csv .tsv .txt .npy .npz (array X), "
        "each also as .gz, or - for CSV on standard input",
    )
    add(
        *("-k", "--clusters"),
        type=_clusters,
        required=True,
        metavar="K",
        help="their number, or auto to have it chosen",
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
    add(
        "--representation",
        choices=VIEWS,
        default="auto",
        help="what becomes of the columns first: nothing, mean 0 and standard "
        "deviation 1, normal scores of their ranks, or whitened principal components "
        "(default: auto, decided by the data)",
    )
    add(
        "--components",
        type=int,
        metavar="N",
        help="how many of them are whitened (default: all)",
    )
    add(
        "--bandwidth",
        type=_bandwidth,
        default="auto",
        metavar="B",
        help=f"{', '.join(RULES)}, or a number in the unit of the data (default: auto)",
    )
    add(
        "--lam",
        type=float,
        default=0.2,
        help="smaller gives weight to fewer points, in (0, 1] (default: %(default)s)",
    )
    add(
        "--max-iter",
        type=int,
        default=20,
        metavar="N",
        help="most rounds; 0 is plain spectral clustering (default: %(default)s)",
    )
    add(
        "--noise",
        type=float,
        metavar="RATE",
        help="label noise -1, at this rate of false alarms, in [0, 0.5] (default: off)",
    )
    add("--seed", type=_seed, default=0, help="of the random numbers (default: 0)")
    add("--threads", type=int, metavar="N", help="how many threads (default: all)")
    add("--plot", metavar="FILE", help="draw the clusters: .png, .pdf, .svg ...")
    add("--report", action="store_true", help="say what was chosen and what to trust")
    add(
        "--verbose",
        action="count",
        default=0,
        help="show stages and the time left; given twice, every round too",
    )
    command.set_defaults(run=_run_cluster)


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


def _clusters(text):
    try:
        return text if text == "auto" else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected an integer or auto; got {text!r}"
        ) from None


def _delimiter(text):
    one = len(text) == 1 and not text.isalnum() and text not in '"+-\r\n'
    if not one and text not in ("tab", "space"):
        raise argparse.ArgumentTypeError(
            f"expected one character that no number has, tab or space; got {text!r}"
        )
    return text


def _bandwidth(text):
    if text in RULES:
        return text
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected {', '.join(RULES)} or a number; got {text!r}"
        ) from None


def _seed(text):
    if not text.isdecimal() or int(text) >= 2**32:
        raise argparse.ArgumentTypeError(
            f"expected an integer from 0 to {2**32 - 1}; got {text!r}"
        )
    return int(text)


def _run_cluster(arguments):
    if arguments.delimiter == arguments.decimal:
        sign = arguments.decimal
        raise UsageError(f"--delimiter and --decimal must differ; got {sign!r} twice.")
    _check_output("-o", arguments.output, arguments.data)
    _check_output("--plot", arguments.plot, arguments.data, arguments.output)
    if arguments.plot is not None:
        from cdsk.plot._files import check_picture

        check_picture(arguments.plot)

    from cdsk._cli.tables import labels_text, read_table

    X, names, ids = read_table(
        arguments.data,
        arguments.columns,
        arguments.id,
        header=arguments.header,
        delimiter=arguments.delimiter,
        decimal=arguments.decimal,
    )
    began = time.perf_counter()
    model = _fit(X, arguments)
    seconds = time.perf_counter() - began

    _write(arguments.output, labels_text(model.labels_, model.weights_, ids))
    _summarise(model, names, seconds)
    if arguments.report:
        print(model.report(), file=sys.stderr)
    if arguments.plot is not None:
        from cdsk.plot._files import save_scatter

        save_scatter(model, X, arguments.plot, names)


def _fit(X, arguments):
    from cdsk._estimator import CDSK

    model = CDSK(
        arguments.clusters,
        bandwidth=arguments.bandwidth,
        representation=arguments.representation,
        n_components=arguments.components,
        lam=arguments.lam,
        max_iter=arguments.max_iter,
        noise=arguments.noise,
        random_state=arguments.seed,
        n_threads=arguments.threads,
        verbose=arguments.verbose,
    )
    return model.fit(X)


def _write(path, text):
    if path == "-":
        sys.stdout.write(text)
        return
    try:
        Path(path).write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        sys.stdout.write(text)
        raise UsageError(
            f"cannot write {path}: {error.strerror}. The labels went to stdout instead."
        ) from None


def _summarise(model, names, seconds):
    n_samples, n_support = len(model.labels_), len(model.support_)
    sizes = [int((model.labels_ == y).sum()) for y in range(model.n_clusters_)]
    columns = "" if names is None else f" ({_shortened(names)})"
    one = isinstance(model.bandwidth_, float)
    bandwidth = f"{model.bandwidth_:.4g}" if one else "one per point"
    kept = math.isnan(model.qp_gap_)
    gap = "first weights kept" if kept else f"QP gap {model.qp_gap_:.1e}"
    features = _count(model.n_features_in_, "feature")
    _say(f"{_count(n_samples, 'point')}, {features}{columns}")
    noise = sum(model.labels_ < 0)
    beside = f", {_count(noise, 'point')} of noise" if model.noise_ is not None else ""
    _say(
        f"{_count(len(sizes), 'cluster')} of {', '.join(map(str, sizes))} points"
        + beside
    )
    _say(
        f"{_count(n_support, 'point')} with weight ({n_support / n_samples:.0%}), "
        f"bandwidth {bandwidth}, {_count(model.n_iter_, 'round')}, {gap}, "
        f"{seconds:.2f} s"
    )


def _count(number, noun):
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _shortened(names, most=8):
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")


def _run_demo(arguments):
    _check_output("-o", arguments.output)
    from cdsk._cli import demo

    demo.run(arguments.output)


def _check_output(option, path, *others):
    """Refuse, before any work, an output that could not be written or does harm."""
    if path in (None, "-"):
        return
    file = Path(path)
    if not file.parent.is_dir():
        raise UsageError(f"{option} {path}: the folder {file.parent} does not exist.")
    if file.is_dir():
        raise UsageError(f"{option} {path}: expected the name of a file; got a folder.")
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        raise UsageError(f"{option} {path}: no permission to write there.")
    for other in others:
        if other not in (None, "-") and file.resolve() == Path(other).resolve():
            raise UsageError(f"{option} {path}: would overwrite {other}.")


@contextmanager
def _warnings_in_one_line():
    def show(message, *_, **__):
        _say(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield


def _say(text):
    """One line on standard error."""
    print("cdsk:", *(line.strip() for line in text.splitlines()), file=sys.stderr)
