# SPDX-License-Identifier: BSD-3-Clause
"""``cdsk predict``: labels of new rows by a saved model (tests/test_models.py)."""

import warnings

from cdsk._cli.console import UsageError, check_outputs, write
from cdsk._cli.options import FORMATS, add_table_options, check_table_options, read


def add_to(commands):
    """Add the command to a parser's."""
    command = commands.add_parser(
        "predict",
        help="label new rows by a saved model",
        description="Label the rows of a table by a model of cdsk cluster --save. "
        "Columns are found by their names, if the model and the table have any. A "
        "model of unknown origin can run no code, but may give any labels.",
        epilog=FORMATS,
    )
    command.add_argument("model", metavar="MODEL", help="file of cdsk cluster --save")
    add_table_options(command)
    command.set_defaults(run=_run)


def _run(arguments):
    check_table_options(arguments)
    check_outputs([arguments.model, arguments.data], {"-o": arguments.output})

    from cdsk._cli.models import load_model
    from cdsk._cli.tables import labels_text

    model = load_model(arguments.model)
    known = getattr(model, "feature_names_in_", None)
    X, _, ids = read(arguments, None if known is None else known.tolist())
    model.set_params(n_threads=arguments.threads)
    with warnings.catch_warnings():
        # the columns are in the order of the model
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        try:
            labels = model.predict(X)
        except AttributeError as error:
            raise UsageError(
                f"{arguments.model}: expected a model of cdsk cluster --save; got one "
                f"that is damaged ({error})."
            ) from None
    write(arguments.output, labels_text({"label": labels}, ids), "labels")
