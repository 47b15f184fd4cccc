# SPDX-License-Identifier: BSD-3-Clause
"""Report of a fitted model as text, plain data and an HTML page."""

import copy
import html
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from cdsk._distributions import Distribution, compute_distributions
from cdsk._profiles import LabeledTable, compute_profiles
from cdsk._stability import Stability
from cdsk.report._feature_table import FeatureTable
from cdsk.report._map import RowMap
from cdsk.report._plotted_rows import PlottedRows, sample_rows
from cdsk.report._summary import add_rows, collect_rows, summarize_model
from cdsk.report._text import format_text

# Of the page in a notebook, in pixels.
_HEIGHT = 640
# A notebook shows the map of at most so many rows, which takes about two seconds.
_MAX_NOTEBOOK_ROWS = 10_000


class Report:
    """Summary of a fit: results, selected options and warnings.

    ``print(report)`` shows it as text, a notebook as a page. A report does not change
    if the model is fitted again.
    """

    def __init__(
        self,
        summary: dict[str, Any],
        plotted: PlottedRows,
        row_map: RowMap | None,
        distributions: dict[int, Distribution],
    ) -> None:
        self._summary = summary
        self._plotted = plotted
        self._distributions = distributions
        self._row_map = row_map

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

    def to_html(self, path: str | os.PathLike[str], *, map: bool = True) -> None:
        """Write the report as a self-contained HTML page.

        At most 3000 rows are plotted, and 100 000 on the map; a page of more rows shows
        a sample and says so.

        Parameters
        ----------
        path : str or path-like
            File to write.
        map : bool, default=True
            Whether the page has a map, as ``cdsk.plot.map``. To compute it takes about
            as long as a fit. A model of a kernel matrix has none.
        """
        page = self._render_page(map)
        Path(path).write_text(page, encoding="utf-8", newline="\n")

    def _repr_html_(self) -> str:
        """Return the page in a frame, isolated from the styles of the notebook."""
        is_small = self._summary["data"]["n_rows"] <= _MAX_NOTEBOOK_ROWS
        page = html.escape(self._render_page(is_small), quote=True)
        return (
            f'<iframe title="CDSK report" sandbox="allow-scripts" srcdoc="{page}" '
            f'style="width: 100%; height: {_HEIGHT}px; border: 0"></iframe>'
        )

    def _render_page(self, has_map):
        # most reports are only printed
        from cdsk.report._html import render_page

        row_map = self._row_map if has_map else None
        return render_page(self._summary, self._plotted, row_map, self._distributions)


def make_report(
    model: Any,
    X: Any = None,
    *,
    feature_names: Iterable[str] | None = None,
    row_names: Iterable[object] | None = None,
    stability: Stability | None = None,
    layers: bool = False,
    overrides: dict[str, Any] | None = None,
) -> Report:
    """Return the ``Report`` of a fitted CDSK.

    ``overrides`` are entries of the summary of another estimator, whose landmarks the
    model has clustered.
    """
    n_rows = len(model.label_numbers_)
    table = FeatureTable(
        X,
        n_rows,
        feature_names=feature_names,
        row_names=row_names,
        fitted_names=getattr(model, "feature_names_in_", None),
    )
    summary = summarize_model(model) | (overrides or {})
    if stability is not None:
        summary["stability"] = _summarize_stability(stability, model)
    leaves = None
    if layers:
        leaves, summary["layers"] = model.layers_.leaves, model.layers_.to_dict()
    rows = sample_rows(collect_rows(summary), n_rows)
    profiles, distributions = None, {}
    if table.X is not None:
        labeled = LabeledTable.from_checked(
            table.X, table.feature_names, model.label_numbers_, model.sample_weight_
        )
        profiles = compute_profiles(labeled, is_strict=False)
    add_rows(summary, model, table, profiles)
    if profiles is not None:
        distributions = compute_distributions(labeled, _mentioned_columns(summary))
    columns = [feature["column"] for feature in summary["features"]["shown"]]
    plotted = PlottedRows.from_model(model, table, rows, columns)
    row_map = None
    if summary["data"]["input_type"] != "precomputed":
        # the copy keeps the attributes of this fit
        row_map = RowMap(copy.copy(model), table.row_names, leaves)
    return Report(summary, plotted, row_map, distributions)


def _summarize_stability(stability, model):
    if not isinstance(stability, Stability):
        raise TypeError(
            f"stability must be a result of cdsk.stability; got {stability!r}."
        )
    if not np.array_equal(stability.labels, model.label_numbers_):
        raise ValueError(
            "stability must be that of this fit; its labels are those of another one. "
            "Call cdsk.stability again."
        )
    return stability.to_dict()


def _mentioned_columns(summary):
    """Return the columns that the profiles of a summary mention."""
    lines = (line for profile in summary["profiles"] for line in profile["features"])
    return sorted({line["column"] for line in lines})
