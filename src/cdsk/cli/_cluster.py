# SPDX-License-Identifier: BSD-3-Clause
"""``cdsk cluster``: fit a model to the rows of a table (tests/test_main.py)."""

import argparse
import json
import math
import sys
import time

from cdsk.cli._console import check_outputs, print_message, write_output
from cdsk.cli._options import (
    FORMATS,
    add_table_options,
    check_table_options,
    read_points,
)
from cdsk.report._formatting import pluralize

# Values of cdsk._validation, whose import would delay --help; a test compares them.
BANDWIDTH_RULES = ("auto", "neighbor", "variance", "std", "median", "local")
REPRESENTATIONS = (
    *("auto", "raw", "standardize", "normal_scores", "whiten", "layout"),
    *("chi_square", "indicators"),
)
METRICS = ("euclidean", "cosine")
MISSING = ("auto", "error")

# Larger fits take seconds, and their progress is shown.
MAX_SILENT_SIZE, MAX_SILENT_ROWS = 10**6, 10**4

_MAX_LISTED_NAMES = 8


def add_command(commands):
    """Add ``cluster`` to the subparsers of ``cdsk``."""
    command = commands.add_parser(
        "cluster",
        help="cluster the rows of a table",
        description="Cluster the rows of a table and write a label and a learned "
        "weight for every row.",
        epilog=FORMATS,
    )
    add_table_options(command)
    _add_data_options(command)
    _add_fit_options(command)
    _add_output_options(command)
    command.set_defaults(run=_run)


def _add_data_options(command):
    command.add_argument(
        "--categories",
        type=lambda text: tuple(part.strip() for part in text.split(",")),
        default=(),
        metavar="A,B",
        help="features that are categories although their cells are numbers, such as "
        "codes, or some of them (default: columns with text)",
    )
    command.add_argument(
        "--missing",
        choices=MISSING,
        default="auto",
        help="fill missing cells from similar rows, or refuse them (default: "
        "%(default)s)",
    )
    command.add_argument(
        "--representation",
        choices=REPRESENTATIONS,
        default="auto",
        help="transformation of the columns: none, standardization, normal scores of "
        "their ranks, whitened principal components, or a layout of the neighbor graph "
        "(default: auto, selected from the data)",
    )
    command.add_argument(
        "--components",
        type=int,
        metavar="N",
        help="number of whitened principal components (default: all) or of dimensions "
        "of a layout (default: 10)",
    )
    command.add_argument(
        "--metric",
        choices=METRICS,
        default="euclidean",
        help="distance between rows (default: %(default)s)",
    )


def _add_fit_options(command):
    command.add_argument(
        "-k",
        "--clusters",
        type=_parse_n_clusters,
        required=True,
        metavar="K",
        help="number of clusters, or auto to select it from the data",
    )
    command.add_argument(
        "--bandwidth",
        type=_parse_bandwidth,
        default="auto",
        metavar="B",
        help=f"{', '.join(BANDWIDTH_RULES)}, or a number in units of the data "
        "(default: auto)",
    )
    command.add_argument(
        "--lam",
        type=float,
        default=0.2,
        help="regularization in (0, 1]; a smaller value gives fewer points a positive "
        "weight (default: %(default)s)",
    )
    command.add_argument(
        "--max-iter",
        type=int,
        default=20,
        metavar="N",
        help="maximum number of iterations; 0 is spectral clustering with uniform "
        "weights (default: %(default)s)",
    )
    command.add_argument(
        "--noise",
        type=float,
        metavar="RATE",
        help="label noise as -1, with this expected false positive rate in [0, 0.5] "
        "(default: off)",
    )
    command.add_argument(
        "--seed", type=_parse_seed, default=0, help="random seed (default: 0)"
    )


def _add_output_options(command):
    add = command.add_argument
    add("--plot", metavar="FILE", help="scatter plot of the clusters (.png, .pdf, ...)")
    add("--report", action="store_true", help="print a report to standard error")
    add("--json", metavar="FILE", help="report as JSON (-: standard output)")
    add("--html", metavar="FILE", help="report as an HTML page")
    add("--save", metavar="MODEL", help="model for cdsk predict, written by skops")
    add(
        "--verbose",
        action="count",
        default=0,
        help="show stages and remaining time, as for large data; twice: also every "
        "iteration",
    )


def _parse_n_clusters(text):
    try:
        return text if text == "auto" else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected an integer or auto; got {text!r}"
        ) from None


def _parse_bandwidth(text):
    if text in BANDWIDTH_RULES:
        return text
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected {', '.join(BANDWIDTH_RULES)} or a number; got {text!r}"
        ) from None


def _parse_seed(text):
    if not text.isdecimal() or int(text) >= 2**32:
        raise argparse.ArgumentTypeError(
            f"expected an integer from 0 to {2**32 - 1}; got {text!r}"
        )
    return int(text)


def _run(arguments):
    _check_arguments(arguments)
    from cdsk.cli._kinds import ColumnKinds

    kinds = ColumnKinds(arguments.categories, arguments.missing == "auto")
    X, names, ids = read_points(arguments, kinds)
    model, seconds = _fit(X, arguments)
    if names is not None and all(names) and len(set(names)) == len(names):
        import numpy as np

        # as for a data frame: predict matches columns by name
        model.feature_names_in_ = np.array(names, dtype=object)

    from cdsk.cli._tables import format_labels

    text = format_labels({"label": model.labels_, "weight": model.weights_}, ids)
    write_output(arguments.output, text, "labels")
    if not arguments.quiet:
        _print_summary(model, X, names, seconds)
    _write_report(model, X, names, ids, arguments)
    if arguments.plot is not None:
        from cdsk.plot._files import save_scatter

        save_scatter(model, X, arguments.plot, feature_names=names)
    if arguments.save is not None:
        from cdsk.cli._models import save_model

        save_model(model, arguments.save)


def _check_arguments(arguments):
    """Check all options before the data are read."""
    check_table_options(arguments)
    outputs = {
        "-o": arguments.output,
        "--plot": arguments.plot,
        "--json": arguments.json,
        "--html": arguments.html,
        "--save": arguments.save,
    }
    check_outputs([arguments.data], outputs)
    if arguments.plot is not None:
        from cdsk.plot._files import check_image_path

        check_image_path(arguments.plot)
    if arguments.save is not None:
        from cdsk.cli._models import import_skops

        import_skops()


def _fit(X, arguments):
    """Return the fitted model and the seconds of its fit, without imports."""
    from cdsk._cdsk import CDSK

    verbose = arguments.verbose
    n, d = X.shape
    if n > MAX_SILENT_ROWS or n * d > MAX_SILENT_SIZE:
        verbose = max(verbose, 1)
    model = CDSK(
        arguments.clusters,
        bandwidth=arguments.bandwidth,
        metric=arguments.metric,
        representation=arguments.representation,
        n_components=arguments.components,
        categorical_features=_find_categorical(X, arguments.categories),
        missing=arguments.missing,
        lam=arguments.lam,
        max_iter=arguments.max_iter,
        noise=arguments.noise,
        random_state=arguments.seed,
        n_threads=arguments.threads,
        verbose=0 if arguments.quiet else verbose,
    )
    start = time.perf_counter()
    return model.fit(X), time.perf_counter() - start


def _find_categorical(X, asked):
    """Return the columns of categories; by their types, if none is asked for."""
    if not asked:
        return "from_dtype"
    return [j for j, dtype in enumerate(X.dtypes) if dtype.kind == "O"]


def _write_report(model, X, names, ids, arguments):
    """Write the report as text, JSON and HTML, if requested."""
    if not arguments.report and arguments.json is None and arguments.html is None:
        return
    row_names = None if ids is None else ids[1:]
    report = model.report(X, feature_names=names, row_names=row_names)
    if arguments.report:
        print(report, file=sys.stderr)
    if arguments.json is not None:
        text = json.dumps(report.to_dict(), allow_nan=False, indent=1)
        write_output(arguments.json, text + "\n", "contents of the report")
    if arguments.html is not None:
        report.to_html(arguments.html)


def _print_summary(model, X, names, seconds):
    n_samples, n_support = len(model.labels_), len(model.support_)
    features = pluralize(model.n_features_in_, "feature")
    if model.columns_ is None:
        columns = "" if names is None else f" ({_shorten_list(names)})"
        missing = _describe_missing(X)
        missing = f"; {missing}" if missing else ""
        print_message(f"{pluralize(n_samples, 'point')}, {features}{columns}{missing}")
    else:
        print_message(f"{pluralize(n_samples, 'point')}, {features}")
        print_message(_describe_columns(model.columns_, X))

    sizes = [int((model.labels_ == y).sum()) for y in range(model.n_clusters_)]
    clusters = f"{pluralize(len(sizes), 'cluster')}, sizes {', '.join(map(str, sizes))}"
    n_noise = sum(model.labels_ < 0)
    noise = "" if model.noise_ is None else f"; {pluralize(n_noise, 'noise point')}"
    print_message(clusters + noise)

    has_one_bandwidth = isinstance(model.bandwidth_, float)
    bandwidth = f"{model.bandwidth_:.4g}" if has_one_bandwidth else "one per point"
    gap = f"KKT gap {model.qp_gap_:.1e}"
    if math.isnan(model.qp_gap_):
        gap = "initial weights kept"
    print_message(
        f"{pluralize(n_support, 'point')} with positive weight "
        f"({n_support / n_samples:.0%}), bandwidth {bandwidth}, "
        f"{pluralize(model.n_iter_, 'iteration')}, {gap}, {seconds:.2f} s"
    )


def _describe_columns(columns, X):
    """Return what the columns of a table were taken for."""
    # a column without a name has its number
    names = [name or str(j) for j, name in enumerate(columns.names, start=1)]
    known = list(zip(names, columns.categories, strict=True))
    numbers = [name for name, categories in known if categories is None]
    grouped = [f"{name} ({len(found)})" for name, found in known if found]
    left_out = [name for name, found in known if found == ()]
    lists = {"numbers": numbers, "categories": grouped, "left out": left_out}
    parts = [
        f"{kind}: {_shorten_list(names)}" for kind, names in lists.items() if names
    ]
    missing = _describe_missing(columns.encode(X))
    return "; ".join([*parts, missing] if missing else parts)


def _describe_missing(X):
    """Return the number of missing cells of an array, and of columns with some."""
    import numpy as np

    count = np.isnan(X).sum(axis=0)
    if not count.any():
        return ""
    cells = pluralize(int(count.sum()), "missing cell")
    return f"{cells} in {pluralize(int(np.count_nonzero(count)), 'column')}"


def _shorten_list(names):
    ellipsis = ", ..." if len(names) > _MAX_LISTED_NAMES else ""
    return ", ".join(names[:_MAX_LISTED_NAMES]) + ellipsis
