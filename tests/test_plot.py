# SPDX-License-Identifier: BSD-3-Clause
"""Pictures: what is drawn where, read back from matplotlib."""

import sys

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from cdsk import CDSK, plot

pytest.importorskip("matplotlib")

from matplotlib.colors import to_rgba_array
from matplotlib.figure import Figure


def blobs(n_features, n_clusters=3):
    X, _ = make_blobs(90, n_features, centers=n_clusters, random_state=0)
    return X


@pytest.fixture
def ax():
    return Figure().add_subplot()


@pytest.fixture(scope="module")
def fitted():
    """A model with some points of weight zero, and its data."""
    rng = np.random.default_rng(0)
    X = np.concatenate([blobs(2), rng.uniform(-6, 8, (20, 2))])
    model = CDSK(3, lam=0.2, random_state=0).fit(X)
    assert 0 < len(model.support_) < len(X)
    return model, X


def test_rings_without_weight_and_discs_by_weight(fitted, ax):
    model, X = fitted
    assert plot.scatter(model, X, ax=ax, title="Blobs") is ax
    rings, discs = ax.collections
    order = model.support_[np.argsort(model.weights_[model.support_], kind="stable")]

    np.testing.assert_array_equal(rings.get_offsets(), X[model.weights_ == 0])
    assert len(rings.get_facecolors()) == 0
    np.testing.assert_array_equal(discs.get_offsets(), X[order])
    for values in (discs.get_sizes(), discs.get_facecolors()[:, 3]):
        assert (np.diff(values) >= 0).all()
        assert values[0] < values[-1]
    assert rings.get_sizes().max() < discs.get_sizes().max()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("feature 1", "feature 2")
    assert ax.get_title() == "Blobs"


def test_one_colour_per_cluster(fitted, ax):
    model, X = fitted
    plot.scatter(model, X, ax=ax)
    rings, discs = ax.collections
    order = model.support_[np.argsort(model.weights_[model.support_], kind="stable")]
    palette = to_rgba_array(plot._COLOURS)[:, :3]
    np.testing.assert_allclose(
        discs.get_facecolors()[:, :3], palette[model.labels_[order]]
    )
    empty = model.weights_ == 0
    np.testing.assert_allclose(
        rings.get_edgecolors()[:, :3], palette[model.labels_[empty]]
    )


@pytest.mark.parametrize("n_clusters", [2, 10, 11, 20, 21, 60])
def test_colours_differ(n_clusters):
    colours = plot._palette(n_clusters)
    assert colours.shape == (n_clusters, 4)
    assert len(np.unique(colours, axis=0)) == n_clusters


def test_principal_components_say_so(ax):
    X = blobs(5)
    plot.scatter(CDSK(3, random_state=0).fit(X), X, ax=ax)
    centred = X - X.mean(axis=0)
    share = np.linalg.svd(centred, compute_uv=False)[:2] ** 2 / (centred**2).sum()
    expected = [
        f"principal component {j} ({s:.0%} of the variance)"
        for j, s in enumerate(share, start=1)
    ]
    assert [ax.get_xlabel(), ax.get_ylabel()] == expected


def test_one_feature_against_the_weights(ax):
    X = blobs(1, 2)
    model = CDSK(2, random_state=0).fit(X)
    plot.scatter(model, X, ax=ax)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("feature 1", "weight")
    offsets = np.concatenate([c.get_offsets() for c in ax.collections])
    expected = np.column_stack([X[:, 0], model.weights_])
    np.testing.assert_array_equal(np.sort(offsets, axis=0), np.sort(expected, axis=0))


def test_names_of_the_features(ax):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(blobs(2), columns=["length", "width"])
    plot.scatter(CDSK(3, random_state=0).fit(X), X, ax=ax)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("length", "width")


def test_other_clusterers_and_precomputed_kernels(ax):
    X = blobs(2)
    plot.scatter(KMeans(3, n_init=1, random_state=0).fit(X), X, ax=ax)
    assert len(np.unique(ax.collections[1].get_sizes())) == 1
    K = np.exp(-np.square(X[:, np.newaxis] - X).sum(axis=-1))
    model = CDSK(3, kernel="precomputed", random_state=0).fit(K)
    plot.scatter(model, X, ax=ax)


def test_boundaries_lie_between_the_clusters(ax):
    # Mirror images on the line y = 0 meet at x = 0.
    side = np.random.default_rng(0).normal((3.0, 0.0), 0.7, (40, 2))
    X = np.concatenate([side, side * (-1.0, 1.0)])
    model = CDSK(2, random_state=0).fit(X)
    plot.scatter(model, X, ax=ax, boundaries=True)
    lines = [path for c in ax.collections[2:] for path in c.get_paths()]
    vertices = np.concatenate([path.vertices for path in lines])
    width = np.diff(ax.get_xlim())[0] / plot._GRID
    assert len(vertices) > 100
    assert np.abs(vertices[:, 0]).max() < width


def test_boundaries_need_two_features_and_votes(ax):
    X = blobs(5)
    with pytest.raises(ValueError, match="2 features; got CDSK of 5 features"):
        plot.scatter(CDSK(3, random_state=0).fit(X), X, ax=ax, boundaries=True)
    X = blobs(2)
    with pytest.raises(ValueError, match=r"a CDSK model .* got KMeans of 2 features"):
        plot.scatter(KMeans(3, n_init=1).fit(X), X, ax=ax, boundaries=True)
    model = CDSK(2, kernel="precomputed", random_state=0).fit([[1, 0.5], [0.5, 1]])
    with pytest.raises(ValueError, match="with a precomputed kernel"):
        plot.scatter(model, [[0.0, 0.0], [1.0, 1.0]], ax=ax, boundaries=True)
    assert not ax.collections


@pytest.mark.parametrize("shape", [(5, 2), (90,), (90, 0)])
def test_wrong_points(ax, shape):
    model = CDSK(3, random_state=0).fit(blobs(2))
    with pytest.raises(ValueError, match=r"shape \(90, n_features\); got shape \("):
        plot.scatter(model, np.zeros(shape), ax=ax)


def test_current_axes_by_default(fitted, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    figure, mine = pyplot.subplots()
    assert plot.scatter(*fitted) is mine
    pyplot.close(figure)


@pytest.mark.parametrize("ending", ["png", "pdf", "svg"])
def test_saved_pictures(fitted, tmp_path, ending):
    path = tmp_path / f"picture.{ending}"
    plot.check_picture(path)
    plot.save_scatter(*fitted, path, ["length", "width"])
    assert path.stat().st_size > 1000
    if ending == "svg":
        text = path.read_text()
        assert "length" in text and "width" in text


def test_without_matplotlib(fitted, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install cdsk\[plot\]"):
        plot.scatter(*fitted)
