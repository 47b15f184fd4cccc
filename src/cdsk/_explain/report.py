# SPDX-License-Identifier: BSD-3-Clause
"""The report of a fitted model: one set of facts as text, plain data and a page."""

import copy
import html
import os
from pathlib import Path
from typing import Any

from cdsk._explain.drawing import Drawing, drawn_rows
from cdsk._explain.facts import add_rows, find_facts, named_rows
from cdsk._explain.table import Table
from cdsk._explain.words import describe

# Height of the page in a notebook, in pixels.
_HEIGHT = 640


class Report:
    """What a fit found, what was chosen and why, and what to trust.

    ``print(report)`` shows it in words, a notebook as a page. It stays as it is
    whatever becomes of the model.
    """

    def __init__(self, facts: dict[str, Any], drawing: Drawing) -> None:
        self._facts = facts
        self._drawing = drawing

    def __str__(self) -> str:
        return describe(self._facts)

    def __repr__(self) -> str:
        return str(self)

    def to_dict(self) -> dict[str, Any]:
        """The facts in dictionaries, lists, numbers and strings, as JSON has them.

        Returns
        -------
        facts : dict
            ``schema_version`` is raised when an entry changes its meaning or goes;
            ``docs/report.md`` says what they are.
        """
        return copy.deepcopy(self._facts)

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write one page that needs neither network nor other files.

        Of more than 3000 rows the page draws a sample, and says so.

        Parameters
        ----------
        path : str or path-like
            The file to write.
        """
        Path(path).write_text(self._page(), encoding="utf-8", newline="\n")

    def _repr_html_(self) -> str:
        """The page in a frame: a notebook's styles and those of the page are apart."""
        page = html.escape(self._page(), quote=True)
        return (
            f'<iframe title="Report of CDSK" sandbox="allow-scripts" srcdoc="{page}" '
            f'style="width: 100%; height: {_HEIGHT}px; border: 0"></iframe>'
        )

    def _page(self):
        # not with the estimator: few fits are made a page of
        from cdsk._explain.page import make_page

        return make_page(self._facts, self._drawing)


def report_of(model, X=None, feature_names=None, row_names=None, owner=None):
    """The ``Report`` of a fitted CDSK.

    ``owner`` replaces facts if it clustered the landmarks of another estimator.
    """
    n_rows = len(model.labels_)
    known = getattr(model, "feature_names_in_", None)
    table = Table(X, n_rows, feature_names, row_names, known)
    facts = find_facts(model)
    facts |= owner or {}
    rows = drawn_rows(named_rows(facts), n_rows)
    add_rows(facts, model, table, rows)
    columns = [feature["column"] for feature in facts["features"]["shown"]]
    return Report(facts, Drawing.of(model, table, rows, columns))
