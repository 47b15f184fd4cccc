# SPDX-License-Identifier: BSD-3-Clause
"""``cdsk cluster``: a table in, labels, report and model out (tests/test_main.py)."""

import argparse
import json
import math
import sys
import time

from cdsk._cli.console import check_outputs, count, say, write
from cdsk._cli.options import FORMATS, add_table_options, check_table_options, read

# Those of cdsk._kernels.bandwidth; a test compares them.
RULES = ("auto", "neighbour", "variance", "std", "median", "local")
# Those of cdsk._choices.representation, too.
VIEWS = ("auto", "raw", "standardize", "normal_scores", "whiten")

# Those of cdsk._parameters, too.
METRICS = ("euclidean", "cosine")

# A fit of more numbers, or rows, takes seconds: its progress is shown.
LONG_NUMBERS, LONG_ROWS = 10**6, 10**4


def add_to(commands):
    """Add the command to a parser's."""
    command = commands.add_parser(
        "cluster",
        help="cluster the rows of a table",
        description="Cluster the rows of a table. Writes a label and a learned weight "
        "for every row.",
        epilog=FORMATS,
    )
    add_table_options(command)
    add = command.add_argument
    add(
        *("-k", "--clusters"),
        type=_clusters,
        required=True,
        metavar="K",
        help="their number, or auto to have it chosen",
    )
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
        "--metric",
        choices=METRICS,
        default="euclidean",
        help="distance between rows; cosine counts directions alone (default: "
        "%(default)s)",
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
    add("--plot", metavar="FILE", help="draw the clusters: .png, .pdf, .svg ...")
    add("--report", action="store_true", help="say what was chosen and what to trust")
    add("--json", metavar="FILE", help="the report as JSON (-: standard output)")
    add("--html", metavar="FILE", help="the report as one page for a browser")
    add("--save", metavar="MODEL", help="the model for cdsk predict, by skops")
    add(
        "--verbose",
        action="count",
        default=0,
        help="show stages and the time left, as for large data; given twice, every "
        "round too",
    )
    command.set_defaults(run=_run)


def _clusters(text):
    try:
        return text if text == "auto" else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected an integer or auto; got {text!r}"
        ) from None


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


def _run(arguments):
    check_table_options(arguments)
    check_outputs(
        [arguments.data],
        {
            "-o": arguments.output,
            "--plot": arguments.plot,
            "--json": arguments.json,
            "--html": arguments.html,
            "--save": arguments.save,
        },
    )
    if arguments.plot is not None:
        from cdsk.plot._files import check_picture

        check_picture(arguments.plot)
    if arguments.save is not None:
        from cdsk._cli.models import require_skops

        require_skops()

    X, names, ids = read(arguments)
    model, seconds = _fit(X, arguments)
    if names is not None and all(names) and len(set(names)) == len(names):
        import numpy as np

        # as of a data frame: predict finds the columns by them
        model.feature_names_in_ = np.array(names, dtype=object)

    from cdsk._cli.tables import labels_text

    text = labels_text({"label": model.labels_, "weight": model.weights_}, ids)
    write(arguments.output, text, "labels")
    if not arguments.quiet:
        _summarise(model, names, seconds)
    _explain(model, X, names, ids, arguments)
    if arguments.save is not None:
        from cdsk._cli.models import save_model

        save_model(model, arguments.save)


def _fit(X, arguments):
    """The fitted model and the seconds of its fit, those of imports not among them."""
    from cdsk._estimator import CDSK

    verbose = arguments.verbose
    if len(X) > LONG_ROWS or X.size > LONG_NUMBERS:
        verbose = max(verbose, 1)
    model = CDSK(
        arguments.clusters,
        bandwidth=arguments.bandwidth,
        metric=arguments.metric,
        representation=arguments.representation,
        n_components=arguments.components,
        lam=arguments.lam,
        max_iter=arguments.max_iter,
        noise=arguments.noise,
        random_state=arguments.seed,
        n_threads=arguments.threads,
        verbose=0 if arguments.quiet else verbose,
    )
    began = time.perf_counter()
    return model.fit(X), time.perf_counter() - began


def _explain(model, X, names, ids, arguments):
    """The report in words, as JSON and as a page, and the picture."""
    if arguments.report or arguments.json is not None or arguments.html is not None:
        report = model.report(
            X, feature_names=names, row_names=None if ids is None else ids[1:]
        )
        if arguments.report:
            print(report, file=sys.stderr)
        if arguments.json is not None:
            text = json.dumps(report.to_dict(), allow_nan=False, indent=1)
            write(arguments.json, text + "\n", "report")
        if arguments.html is not None:
            report.to_html(arguments.html)
    if arguments.plot is not None:
        from cdsk.plot._files import save_scatter

        save_scatter(model, X, arguments.plot, names)


def _summarise(model, names, seconds):
    n_samples, n_support = len(model.labels_), len(model.support_)
    sizes = [int((model.labels_ == y).sum()) for y in range(model.n_clusters_)]
    columns = "" if names is None else f" ({_shortened(names)})"
    one = isinstance(model.bandwidth_, float)
    bandwidth = f"{model.bandwidth_:.4g}" if one else "one per point"
    kept = math.isnan(model.qp_gap_)
    gap = "first weights kept" if kept else f"QP gap {model.qp_gap_:.1e}"
    features = count(model.n_features_in_, "feature")
    say(f"{count(n_samples, 'point')}, {features}{columns}")
    noise = sum(model.labels_ < 0)
    beside = f", {count(noise, 'point')} of noise" if model.noise_ is not None else ""
    say(
        f"{count(len(sizes), 'cluster')} of {', '.join(map(str, sizes))} points{beside}"
    )
    say(
        f"{count(n_support, 'point')} with weight ({n_support / n_samples:.0%}), "
        f"bandwidth {bandwidth}, {count(model.n_iter_, 'round')}, {gap}, "
        f"{seconds:.2f} s"
    )


def _shortened(names, most=8):
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")
