# SPDX-License-Identifier: BSD-3-Clause
"""Report of a fitted model as text, plain data and an HTML page."""

import copy
import html
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cdsk.report._feature_table import FeatureTable
from cdsk.report._plotted_rows import PlottedRows, sample_rows
from cdsk.report._summary import add_rows, collect_rows, summarize_model
from cdsk.report._text import format_text

# Of the page in a notebook, in pixels.
_HEIGHT = 640


class Report:
    """Summary of a fit: results, selected options and warnings.

    ``print(report)`` shows it as text, a notebook as a page. A report does not change
    if the model is fitted again.
    """

    def __init__(self, summary: dict[str, Any], plotted: PlottedRows) -> None:
        self._summary = summary
        self._plotted = plotted

    def __str__(self) -> str:
        return format_text(self._summary)

    def __repr__(self) -> str:
        return str(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data that ``json.dumps`` accepts.

        Returns
        -------
        summary : dict
            Dictionaries, lists, numbers and strings, documented in ``docs/report.md``.
            ``schema_version`` increases when an entry is removed, renamed or redefined.
        """
        return copy.deepcopy(self._summary)

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write the report as a self-contained HTML page.

        At most 3000 rows are plotted; a page of more rows shows a sample and says so.

        Parameters
        ----------
        path : str or path-like
            File to write.
        """
        Path(path).write_text(self._render_page(), encoding="utf-8", newline="\n")

    def _repr_html_(self) -> str:
        """Return the page in a frame, isolated from the styles of the notebook."""
        page = html.escape(self._render_page(), quote=True)
        return (
            f'<iframe title="CDSK report" sandbox="allow-scripts" srcdoc="{page}" '
            f'style="width: 100%; height: {_HEIGHT}px; border: 0"></iframe>'
        )

    def _render_page(self):
        # most reports are only printed
        from cdsk.report._html import render_page

        return render_page(self._summary, self._plotted)


def make_report(
    model: Any,
    X: Any = None,
    *,
    feature_names: Iterable[str] | None = None,
    row_names: Iterable[object] | None = None,
    overrides: dict[str, Any] | None = None,
) -> Report:
    """Return the ``Report`` of a fitted CDSK.

    ``overrides`` are entries of the summary of another estimator, whose landmarks the
    model has clustered.
    """
    n_rows = len(model.labels_)
    table = FeatureTable(
        X,
        n_rows,
        feature_names=feature_names,
        row_names=row_names,
        fitted_names=getattr(model, "feature_names_in_", None),
    )
    summary = summarize_model(model) | (overrides or {})
    rows = sample_rows(collect_rows(summary), n_rows)
    add_rows(summary, model, table, rows)
    columns = [feature["column"] for feature in summary["features"]["shown"]]
    return Report(summary, PlottedRows.from_model(model, table, rows, columns))
