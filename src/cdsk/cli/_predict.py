# SPDX-License-Identifier: BSD-3-Clause
"""``cdsk predict``: label new rows with a saved model (tests/test_models.py)."""

import warnings

from cdsk.cli._console import UsageError, check_outputs, write_output
from cdsk.cli._options import (
    FORMATS,
    add_table_options,
    check_table_options,
    read_points,
)


def add_command(commands):
    """Add ``predict`` to the subparsers of ``cdsk``."""
    command = commands.add_parser(
        "predict",
        help="label new rows with a saved model",
        description="Label the rows of a table with a model of cdsk cluster --save. "
        "Columns are matched by name if both the model and the table have names. "
        "Categories that the model has not seen count as missing. A "
        "model from an untrusted source cannot run code, but its labels may be "
        "arbitrary.",
        epilog=FORMATS,
    )
    command.add_argument("model", metavar="MODEL", help="file of cdsk cluster --save")
    add_table_options(command)
    command.set_defaults(run=_run)


def _run(arguments):
    check_table_options(arguments)
    check_outputs([arguments.model, arguments.data], {"-o": arguments.output})

    from cdsk.cli._kinds import ColumnKinds
    from cdsk.cli._models import load_model
    from cdsk.cli._tables import format_labels

    model = load_model(arguments.model)
    X, _, ids = read_points(arguments, ColumnKinds.of_model(model))
    model.set_params(n_threads=arguments.threads)
    with warnings.catch_warnings():
        # columns already have the order of the model
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        try:
            labels = model.predict(X)
        except AttributeError as error:
            raise UsageError(
                f"{arguments.model}: expected a model of cdsk cluster --save; got a "
                f"damaged one ({error})."
            ) from None
    write_output(arguments.output, format_labels({"label": labels}, ids), "labels")
