# SPDX-License-Identifier: BSD-3-Clause
"""Plot of profiles: cells, words and shapes, read back from matplotlib."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs

from cdsk import CDSK, BlockCDSK, plot

pytest.importorskip("matplotlib")

from matplotlib import pyplot
from matplotlib.figure import Figure


@pytest.fixture
def ax():
    return Figure().add_subplot()


@pytest.fixture(scope="module")
def fitted():
    """A model with noise, and a table of numbers, categories and missing cells."""
    X, _ = make_blobs(150, 3, centers=3, random_state=0)
    model = CDSK(3, noise=0.02, random_state=0).fit(X)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(X, columns=["price in $ and $", "größe", "x" * 500])
    frame["color"] = np.where(model.labels_ == 1, "red", rng.choice(["red", "b"], 150))
    frame.loc[model.labels_ == 2, "größe"] = np.nan
    return model, frame


def cells(ax):
    return ax.images[0].get_array()


def draw(ax):
    """Draw the figure; a warning is an error."""
    ax.figure.set_layout_engine("constrained")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax.figure.draw_without_rendering()


def test_cells_of_the_heat_map_are_effects(fitted, ax):
    model, frame = fitted
    assert plot.profiles(model, frame, ax=ax, title="Profiles") is ax
    found = model.profiles(frame)
    lines = found.order_lines()
    # noise is the last column
    effect = np.roll(found.effect, -1, axis=0).T[lines]
    sure = np.roll(found.conservative, -1, axis=0).T[lines] != 0
    np.testing.assert_array_equal(cells(ax).mask, ~sure)
    np.testing.assert_allclose(cells(ax).data[sure], effect[sure])
    assert sure.any() and not sure.all()
    names = [label.get_text() for label in ax.get_xticklabels()]
    assert names == ["0", "1", "2", "noise"]
    assert (ax.get_xlabel(), ax.get_title()) == ("cluster", "Profiles")
    draw(ax)


def test_means_and_shares_are_written_in_the_cells(fitted, ax):
    model, frame = fitted
    plot.profiles(model, frame, ax=ax)
    rows = [label.get_text() for label in ax.get_yticklabels()]
    written = {t.get_position(): t.get_text() for t in ax.texts}
    assert len(written) == cells(ax).size
    own = frame[model.labels_ == 0]
    assert written[0, rows.index("größe")] == f"{own['größe'].mean():.3g}"
    share = (own["color"] == "red").mean()
    row = next(i for i, name in enumerate(rows) if name.startswith("color = "))
    assert written[0, row] in (f"{share:.0%}", f"{1 - share:.0%}")
    assert written[2, rows.index("größe")] == "–"
    assert written[2, rows.index("größe missing")] == "100%"


def test_of_two_categories_one_has_a_row(fitted, ax):
    model, frame = fitted
    plot.profiles(model, frame, ax=ax)
    rows = [label.get_text() for label in ax.get_yticklabels()]
    assert sum(name.startswith("color") for name in rows) == 1


def test_names_are_shortened_and_no_formulas(fitted, ax):
    model, frame = fitted
    for kind in ("heat", "strips"):
        plot.profiles(model, frame, kind=kind, ax=ax)
        labels = ax.get_yticklabels()
        assert max(len(label.get_text()) for label in labels) == 30
        assert not any(label.get_parse_math() for label in labels)
        assert "price in $ and $" in [label.get_text() for label in labels]
        draw(ax)
        ax.clear()


@pytest.mark.parametrize("kind", ["heat", "strips"])
def test_categories_of_long_columns_are_told_apart(ax, kind):
    rng, labels = np.random.default_rng(0), np.arange(90) % 3
    city = np.array(["Lima", "Oslo", "Rome"])[labels]
    column = "customer_home_city_as_given_in_the_form"
    frame = pd.DataFrame({"x": 9.0 * labels + rng.normal(size=90), column: city})
    model = CDSK(3, random_state=0).fit(frame)
    plot.profiles(model, frame, kind=kind, ax=ax)
    names = [label.get_text() for label in ax.get_yticklabels()]
    for category in ("Lima", "Oslo", "Rome"):
        (name,) = (name for name in names if name.endswith(f"= {category}"))
        assert name.startswith("customer_home")
        assert len(name) <= 30


@pytest.mark.parametrize("kind", ["heat", "strips"])
def test_names_have_room_in_a_plain_figure(fitted, kind):
    model, frame = fitted
    figure = pyplot.figure()
    try:
        ax = plot.profiles(model, frame, kind=kind)
        figure.canvas.draw()
        box = figure.bbox
        for text in (*ax.get_yticklabels(), *ax.texts, ax.xaxis.label):
            extent = text.get_window_extent()
            assert extent.x0 >= box.x0 and extent.x1 <= box.x1
            assert extent.y0 >= box.y0 and extent.y1 <= box.y1
    finally:
        pyplot.close(figure)


def test_strips_are_distributions(fitted, ax):
    model, frame = fitted
    plot.profiles(model, frame, kind="strips", ax=ax)
    found = model.profiles(frame)
    lines = found.order_lines()
    (shapes,) = ax.collections
    paths = shapes.get_paths()
    # all rows, three clusters and noise
    assert len(paths) == 5 * len(lines)
    colors = shapes.get_facecolors()[:, :3]
    np.testing.assert_array_equal(colors[0], colors[4])
    assert len(np.unique(colors[:5], axis=0)) == 4
    for row, i in enumerate(lines):
        line = found.lines[i]
        for column in range(5):
            vertices = paths[5 * row + column].vertices
            x, y = vertices.T
            assert x.min() >= column - 0.5 and x.max() <= column + 0.5
            assert y.min() >= row - 0.5 and y.max() <= row + 0.5
            if line.kind == "number" or column == 0:
                continue
            # the height of a bar is the share
            share = np.roll(found.value, -1, axis=0)[column - 1, i]
            assert np.ptp(y) == pytest.approx(0.8 * share)


def test_of_many_features_and_clusters_some_are_named(ax):
    X, _ = make_blobs(400, 60, centers=40, random_state=0)
    model = CDSK(40, bandwidth="local", max_iter=0, random_state=0).fit(X)
    plot.profiles(model, X, ax=ax)
    n = model.labels_.max() + 1
    assert cells(ax).shape == (20, n)
    assert ax.get_xlabel() == "cluster (20 of 60 features)"
    assert len(ax.texts) == 0
    assert 10 <= len(ax.get_xticklabels()) <= 20
    other = Figure().add_subplot()
    plot.profiles(model, X, kind="strips", max_features=3, ax=other)
    assert other.get_xlabel() == "cluster (3 of 60 features)"
    assert len(other.collections[0].get_paths()) == 3 * (n + 1)


def test_new_rows_and_landmarks(fitted, ax):
    model, frame = fitted
    new = frame[:40]
    plot.profiles(model, new, labels=model.labels_[:40], ax=ax)
    X, _ = make_blobs(150, 3, centers=3, random_state=0)
    block = BlockCDSK(3, random_state=0).fit(X)
    other = Figure().add_subplot()
    plot.profiles(block, X, labels=block.labels_, kind="strips", ax=other)
    assert len(other.collections[0].get_paths()) == 3 * 4


def test_invalid_arguments(fitted, ax):
    model, frame = fitted
    with pytest.raises(ValueError, match="kind must be one of 'heat', 'strips'; got"):
        plot.profiles(model, frame, kind="bars", ax=ax)
    with pytest.raises(ValueError, match="max_features must be an integer of at least"):
        plot.profiles(model, frame, max_features=0, ax=ax)
    with pytest.raises(ValueError, match="the 150 rows of the fit"):
        plot.profiles(model, frame[:9], ax=ax)
