# SPDX-License-Identifier: BSD-3-Clause
"""Plot of co-assignment: cells against pairs of rows, read back from matplotlib."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_blobs

import cdsk
from cdsk import CDSK, plot

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from cdsk.plot._stability import co_assignment, sort_rows


@pytest.fixture
def ax():
    return Figure().add_subplot()


@pytest.fixture(scope="module")
def found():
    X, _ = make_blobs(60, centers=3, random_state=0)
    X[0] = 100.0
    model = CDSK(3, noise=0.05, random_state=0).fit(X)
    return cdsk.stability(model, X, 4, n_null=2, random_state=0)


def draw(ax):
    """Draw the figure; a warning is an error."""
    ax.figure.set_layout_engine("constrained")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax.figure.draw_without_rendering()


def test_cells_are_shares_of_resamples(found):
    cells, edges = co_assignment(found)
    order = sort_rows(found)
    # so few rows are groups of one
    assert edges.tolist() == list(range(61))
    for i in range(0, 60, 7):
        for j in range(60):
            a, b = found.assignments[:, order[i]], found.assignments[:, order[j]]
            assert cells[i, j] == np.mean((a == b) & (a >= 0))


def test_rows_are_sorted_by_cluster_then_agreement(found):
    order = sort_rows(found)
    labels, agreement = found.labels[order], found.agreement[order]
    clusters = np.where(labels < 0, 3, labels)
    assert (labels < 0).any() and (np.diff(clusters) >= 0).all()
    same = np.diff(clusters) == 0
    assert (np.diff(agreement)[same] <= 0).all()


def test_groups_are_means_of_their_rows():
    rng = np.random.default_rng(0)
    assignments = rng.integers(-1, 3, (3, 400)).astype(np.int32)
    labels = rng.integers(0, 3, 400)
    found = stability_of(labels, assignments)
    cells, edges = co_assignment(found)
    order = sort_rows(found)
    assert len(cells) == 160 and edges[-1] == 400
    sorted_rows = assignments[:, order]
    pairs = sorted_rows[:, :, np.newaxis] == sorted_rows[:, np.newaxis]
    pairs = (pairs & (sorted_rows >= 0)[:, :, np.newaxis]).mean(axis=0)
    for a, b in [(0, 0), (3, 100), (159, 159)]:
        block = pairs[edges[a] : edges[a + 1], edges[b] : edges[b + 1]]
        assert cells[a, b] == pytest.approx(block.mean())


def stability_of(labels, assignments):
    n_resamples, n = assignments.shape
    return cdsk.Stability(
        labels=labels,
        sizes=np.bincount(labels).astype(float),
        rows=np.arange(n),
        n_sample=n // 2,
        ari=np.ones(n_resamples),
        jaccard=np.ones((n_resamples, labels.max() + 1)),
        agreement=np.ones(n),
        assignments=assignments,
        n_clusters=np.full(n_resamples, 3),
        n_selected=None,
        null_ari=np.zeros((2, 3)),
        null_jaccard=np.zeros((2, 3)),
    )


def test_plot(found, ax):
    assert plot.stability(found, ax=ax, title="Stability") is ax
    draw(ax)
    cells, _ = co_assignment(found)
    np.testing.assert_array_equal(ax.collections[0].get_array().reshape(60, 60), cells)
    assert (ax.get_ylabel(), ax.get_title()) == ("cluster", "Stability")
    assert [label.get_text() for label in ax.get_yticklabels()] == ["0", "1", "2"]
    # a frame and a piece of the strip for each cluster, and for noise
    strip = [patch for patch in ax.patches if patch.get_x() < 0]
    assert len(strip) == len(ax.patches) - len(strip) == 4
    heights = np.bincount(found.labels[found.labels >= 0])
    assert [piece.get_height() for piece in strip[:3]] == heights.tolist()
    colors = {piece.get_facecolor() for piece in strip}
    assert len(colors) == 4


def test_a_cluster_without_rows_has_no_tick(found, ax):
    rows = np.flatnonzero(found.labels != 1)
    part = replace(found, rows=rows, assignments=found.assignments[:, rows])
    plot.stability(part, ax=ax)
    draw(ax)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["0", "2"]


def test_other_objects_are_refused():
    with pytest.raises(TypeError, match=r"must be a result of cdsk\.stability"):
        plot.stability(CDSK(3))
