# SPDX-License-Identifier: BSD-3-Clause
"""Plots: positions, colors and labels, read back from matplotlib."""

import copy
import dataclasses
import io
import sys
from itertools import pairwise

import numpy as np
import pytest
from sklearn.cluster import DBSCAN, KMeans
from sklearn.datasets import load_wine, make_blobs, make_moons
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsTransformer

from cdsk import CDSK, BlockCDSK, plot
from cdsk._map import compute_map, neighbor_graph
from cdsk.plot import _common, _files, _scatter, _similarity
from cdsk.report._layout import (
    arrange_corners,
    compute_mean_directions,
    compute_proportions,
)

pytest.importorskip("matplotlib")

from matplotlib import pyplot
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
    rng = np.random.default_rng(3)
    X = np.concatenate([blobs(2), rng.uniform(-6, 8, (20, 2))])
    model = CDSK(3, lam=0.2, random_state=0).fit(X)
    assert 0 < len(model.support_) < len(X)
    return model, X


def test_rings_for_zero_weight_and_disks_otherwise(fitted, ax):
    model, X = fitted
    assert plot.scatter(model, X, ax=ax, title="Blobs") is ax
    rings, disks = ax.collections
    order = model.support_[np.argsort(model.weights_[model.support_], kind="stable")]

    np.testing.assert_array_equal(rings.get_offsets(), X[model.weights_ == 0])
    assert len(rings.get_facecolors()) == 0
    np.testing.assert_array_equal(disks.get_offsets(), X[order])
    for values in (disks.get_sizes(), disks.get_facecolors()[:, 3]):
        assert (np.diff(values) >= 0).all()
        assert values[0] < values[-1]
    assert rings.get_sizes().max() < disks.get_sizes().max()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("feature 1", "feature 2")
    assert ax.get_title() == "Blobs"


def test_one_color_per_cluster(fitted, ax):
    model, X = fitted
    plot.scatter(model, X, ax=ax)
    rings, disks = ax.collections
    order = model.support_[np.argsort(model.weights_[model.support_], kind="stable")]
    palette = to_rgba_array(_common.COLORS)[:, :3]
    np.testing.assert_allclose(
        disks.get_facecolors()[:, :3], palette[model.labels_[order]]
    )
    empty = model.weights_ == 0
    np.testing.assert_allclose(
        rings.get_edgecolors()[:, :3], palette[model.labels_[empty]]
    )


@pytest.mark.parametrize("n_clusters", [2, 10, 11, 20, 21, 60])
def test_colors_differ(n_clusters):
    colors = _common.make_palette(n_clusters)
    assert colors.shape == (n_clusters, 4)
    assert len(np.unique(colors, axis=0)) == n_clusters


def test_axis_labels_of_principal_components(ax):
    X = blobs(5)
    plot.scatter(CDSK(3, random_state=0).fit(X), X, ax=ax)
    centered = X - X.mean(axis=0)
    share = np.linalg.svd(centered, compute_uv=False)[:2] ** 2 / (centered**2).sum()
    expected = [
        f"principal component {j} ({s:.0%} of the variance)"
        for j, s in enumerate(share, start=1)
    ]
    assert [ax.get_xlabel(), ax.get_ylabel()] == expected


@pytest.mark.parametrize("view", ["standardize", "normal_scores"])
def test_points_are_plotted_in_their_representation(ax, view):
    X = blobs(5) * [1, 10, 100, 1, 1]
    model = CDSK(3, representation=view, random_state=0).fit(X)
    plot.scatter(model, X, ax=ax)
    Z = model.representation_.transform(X)
    left, values, _ = np.linalg.svd(Z - Z.mean(axis=0), full_matrices=False)
    suffix = {"standardize": "standardized", "normal_scores": "normal scores"}
    for j, label in enumerate([ax.get_xlabel(), ax.get_ylabel()]):
        ratio = values[j] ** 2 / np.sum(values**2)
        assert label == f"principal component {j + 1} ({ratio:.0%}, {suffix[view]})"
        plotted = np.concatenate([c.get_offsets()[:, j] for c in ax.collections])
        expected = np.abs(left[:, j] * values[j])
        np.testing.assert_allclose(np.sort(np.abs(plotted)), np.sort(expected))


@pytest.mark.parametrize("m", [1, 2, 3])
def test_whitened_points_are_plotted_by_their_first_components(ax, m):
    X = blobs(5)
    model = CDSK(3, representation="whiten", n_components=m, random_state=0).fit(X)
    plot.scatter(model, X, ax=ax)
    Z = model.representation_.transform(X)
    expected = np.column_stack([Z[:, 0], Z[:, 1] if m > 1 else model.weights_])
    plotted = np.concatenate([c.get_offsets() for c in ax.collections])
    np.testing.assert_array_equal(np.sort(plotted, axis=0), np.sort(expected, axis=0))
    second = "whitened principal component 2" if m > 1 else "weight"
    labels = [ax.get_xlabel(), ax.get_ylabel()]
    assert labels == ["whitened principal component 1", second]


def test_two_features_are_not_transformed(ax):
    X = blobs(2) * [1.0, 50.0]
    model = CDSK(3, random_state=0).fit(X)
    assert model.representation_.view == "standardize"
    plot.scatter(model, X, ax=ax)
    plotted = np.concatenate([c.get_offsets() for c in ax.collections])
    np.testing.assert_array_equal(np.sort(plotted, axis=0), np.sort(X, axis=0))
    assert ax.get_xlabel() == "feature 1"


def test_one_feature_against_the_weights(ax):
    X = blobs(1, 2)
    model = CDSK(2, random_state=0).fit(X)
    plot.scatter(model, X, ax=ax)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("feature 1", "weight")
    offsets = np.concatenate([c.get_offsets() for c in ax.collections])
    expected = np.column_stack([X[:, 0], model.weights_])
    np.testing.assert_array_equal(np.sort(offsets, axis=0), np.sort(expected, axis=0))


def test_feature_names(ax):
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


def test_noise_is_gray(fitted):
    X = fitted[1]
    model = CDSK(3, noise=0.05, random_state=0).fit(X)
    assert -1 in model.labels_
    palette = np.append(
        _common.make_palette(3)[:, :3], to_rgba_array(_common.GRAY)[:, :3], axis=0
    )
    order = model.support_[np.argsort(model.weights_[model.support_], kind="stable")]
    empty = model.weights_ == 0
    embedding = lambda model, _, ax: plot.embedding(model, ax=ax)  # noqa: E731
    for draw in (plot.scatter, plot.map, embedding):
        ax = Figure().add_subplot()
        draw(model, X, ax=ax)
        rings, disks = ax.collections
        np.testing.assert_allclose(
            disks.get_facecolors()[:, :3], palette[model.labels_[order]]
        )
        np.testing.assert_allclose(
            rings.get_edgecolors()[:, :3], palette[model.labels_[empty]]
        )
    plot.overview(model, X)
    # all points of another model may be noise
    ax = Figure().add_subplot()
    plot.scatter(DBSCAN(eps=1e-9).fit(X), X, ax=ax)
    np.testing.assert_allclose(
        np.unique(ax.collections[1].get_facecolors()[:, :3], axis=0), palette[3:]
    )


def test_boundaries_lie_between_the_clusters(ax):
    # Mirror images on the line y = 0 meet at x = 0.
    side = np.random.default_rng(0).normal((3.0, 0.0), 0.7, (40, 2))
    X = np.concatenate([side, side * (-1.0, 1.0)])
    model = CDSK(2, random_state=0).fit(X)
    plot.scatter(model, X, ax=ax, boundaries=True)
    lines = [path for c in ax.collections[2:] for path in c.get_paths()]
    vertices = np.concatenate([path.vertices for path in lines])
    width = np.diff(ax.get_xlim())[0] / _scatter._GRID_SIZE
    assert len(vertices) > 100
    assert np.abs(vertices[:, 0]).max() < width


def test_boundaries_require_two_features_and_votes(ax):
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


@pytest.mark.parametrize("shape", [(5, 2), (110,), (110, 0)])
def test_invalid_shape(fitted, ax, shape):
    model, _ = fitted
    with pytest.raises(ValueError, match=r"shape \(110, n_features\); got shape \("):
        plot.scatter(model, np.zeros(shape), ax=ax)


def test_current_axes_by_default(fitted, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    figure, mine = pyplot.subplots()
    assert plot.scatter(*fitted) is mine
    pyplot.close(figure)


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg"])
def test_image_files(fitted, tmp_path, suffix):
    path = tmp_path / f"plot.{suffix}"
    _files.check_image_path(path)
    _files.save_scatter(*fitted, path, ["length", "width"])
    assert path.stat().st_size > 1000
    if suffix == "svg":
        text = path.read_text()
        assert "length" in text and "width" in text


def test_without_matplotlib(fitted, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install cdsk\[plot\]"):
        plot.scatter(*fitted)


# --- plots of a fit -----------------------------------------------------------------

PLOTS = [
    plot.embedding,
    plot.similarity,
    plot.map,
    plot.margins,
    plot.choice,
    plot.eigenvalues,
]


@pytest.fixture(scope="module", params=["points", "kernel", "many"])
def explained(request):
    """A fitted model and its training data."""
    X = blobs(2)
    if request.param == "points":
        return CDSK(3, random_state=0).fit(X), X
    if request.param == "kernel":
        K = np.exp(-np.square(X[:, np.newaxis] - X).sum(axis=-1))
        return CDSK(3, kernel="precomputed", random_state=0).fit(K), K
    X, _ = make_blobs(390, 4, centers=80, cluster_std=0.5, random_state=0)
    # one kernel and no iterations: 80 eigenvectors take time
    return CDSK(80, bandwidth="local", max_iter=0, random_state=0).fit(X), X


def get_colors(model):
    return _common.make_palette(model.labels_.max() + 1)


def get_points(ax):
    """Return the positions and colors of the points, sorted by position."""
    positions = np.concatenate([c.get_offsets() for c in ax.collections])
    rings, disks = ax.collections
    colors = np.concatenate([rings.get_edgecolors(), disks.get_facecolors()])[:, :3]
    order = np.lexsort(positions.T)
    return positions[order], colors[order]


def test_axes_are_returned_and_pyplot_is_not_used(explained, ax):
    from matplotlib import pyplot, rcParams

    model, X = explained
    before = dict(rcParams)
    for draw in PLOTS:
        ax = Figure().add_subplot()
        options = {"X": X} if draw in (plot.similarity, plot.map) else {}
        assert draw(model, ax=ax, title="A title", **options) is ax
        assert ax.get_title() == "A title"
    plot.overview(model, X)
    assert not pyplot.get_fignums()
    assert dict(rcParams) == before


@pytest.mark.parametrize("draw", [*PLOTS, plot.scatter, plot.overview])
def test_all_plots_without_matplotlib(fitted, monkeypatch, draw):
    model, X = fitted
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    arguments = (model, X) if draw in (plot.scatter, plot.overview) else (model,)
    with pytest.raises(ImportError, match=r"pip install cdsk\[plot\]"):
        draw(*arguments)


def test_margins_are_sorted_bars_in_cluster_colors(explained, ax):
    model, _ = explained
    plot.margins(model, ax=ax)
    colors = get_colors(model)
    assert len(ax.patches) == len(colors)
    for y, bars in enumerate(ax.patches):
        values, edges, _ = bars.get_data()
        expected = np.sort(model.margins_[model.labels_ == y])[::-1]
        np.testing.assert_array_equal(values, expected)
        np.testing.assert_allclose(np.diff(edges), 1.0)
        np.testing.assert_allclose(bars.get_facecolor(), colors[y])
    assert ax.lines[1].get_xdata()[0] == model.margins_.mean()
    low, high = ax.get_xlim()
    assert low <= model.margins_.min() and model.margins_.max() <= high


def test_eigenvalues(explained, ax):
    model, _ = explained
    plot.eigenvalues(model, ax=ax)
    (curve,) = ax.lines
    np.testing.assert_array_equal(curve.get_ydata(), 1.0 - model.eigenvalues_)


def test_equal_eigenvalues(ax):
    model = CDSK(2, random_state=0).fit([[0.0], [1.0], [100.0], [101.0]])
    model.eigenvalues_ = np.ones(2)
    plot.eigenvalues(model, ax=ax)
    assert len(ax.lines) == 1
    assert ax.get_ylim()[1] == 1.0


def test_embedding_of_two_clusters(ax):
    X = blobs(2, 2)
    model = CDSK(2, random_state=0).fit(X)
    plot.embedding(model, ax=ax)
    positions, colors = get_points(ax)
    order = np.lexsort(model.embedding_.T)
    np.testing.assert_array_equal(positions, model.embedding_[order])
    expected = get_colors(model)[model.labels_[order], :3]
    # points at the same position may have any order
    unique = np.flatnonzero(np.abs(np.diff(positions, axis=0)).max(axis=1) > 0)
    np.testing.assert_allclose(colors[unique], expected[unique])


def test_pure_rows_are_at_corners_and_mixed_ones_on_edges():
    # three clusters on the axes, and a point between the first two
    rows = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0.6, 0.8, 0]])
    labels = np.array([0, 0, 1, 2, 1])
    proportions = compute_proportions(rows, np.eye(3))
    np.testing.assert_allclose(proportions[4], [0.36, 0.64, 0.0], atol=1e-12)
    corners = arrange_corners(proportions, labels)
    np.testing.assert_allclose(np.linalg.norm(corners, axis=1), 1.0)
    positions = proportions @ corners
    np.testing.assert_allclose(positions[:4], corners[[0, 0, 1, 2]], atol=1e-12)
    np.testing.assert_allclose(positions[4], 0.36 * corners[0] + 0.64 * corners[1])


def test_mean_directions_are_the_corners(explained):
    model, _ = explained
    directions = compute_mean_directions(model.embedding_, model.labels_)
    proportions = compute_proportions(directions, directions)
    np.testing.assert_allclose(proportions, np.eye(len(directions)), atol=1e-6)


def test_similar_clusters_have_adjacent_corners():
    # a chain 2 - 0 - 3 - 1 of clusters that share points
    chain = np.array([2, 0, 3, 1])
    proportions = np.eye(4)
    for a, b in pairwise(chain):
        proportions[a, b] += 0.3
        proportions[b, a] += 0.3
    corners = arrange_corners(proportions, np.arange(4))
    steps = np.linalg.norm(np.diff(corners[chain], axis=0), axis=1)
    np.testing.assert_allclose(steps, np.sqrt(2.0))


def test_cells_are_means_of_the_normalized_similarity(explained):
    model, X = explained
    cells, edges, borders = _similarity.compute_group_means(model, X)
    order = _similarity.sort_points(model.embedding_, model.labels_)
    np.testing.assert_array_equal(np.sort(order), np.arange(len(order)))
    assert (np.diff(model.labels_[order]) >= 0).all()
    np.testing.assert_array_equal(np.diff(borders), np.bincount(model.labels_))
    assert set(borders) <= set(edges)

    K = model._predictor.points.kernel_of_rows(model._make_kernel(X).as_array())
    np.fill_diagonal(K, 0.0)
    a = model.weights_
    factor = a[:, np.newaxis] + a - len(a) * model.lam_ * np.outer(a, a)
    S = 2.0 * np.maximum(factor, 0.0) * K
    degrees = S.sum(axis=1)
    A = S / np.sqrt(np.outer(degrees, degrees))
    A = A[np.ix_(order, order)] / A.mean()
    for i, j in [(0, 0), (0, 1), (len(cells) - 1, len(cells) // 2)]:
        part = A[edges[i] : edges[i + 1], edges[j] : edges[j + 1]]
        assert cells[i, j] == pytest.approx(part.mean(), abs=1e-9)


def test_similarity_frames_the_clusters(explained, ax):
    model, X = explained
    plot.similarity(model, X, ax=ax)
    sides = [patch.get_width() for patch in ax.patches]
    np.testing.assert_array_equal(sides, np.bincount(model.labels_))
    assert ax.get_xlim() == (0, len(model.labels_))


def test_similarity_of_the_stored_data(fitted, ax):
    model, X = fitted
    stored = _similarity.compute_group_means(model)
    given = _similarity.compute_group_means(model, X)
    np.testing.assert_array_equal(stored[0], given[0])
    K = np.eye(4) + 0.5
    model = CDSK(2, kernel="precomputed", random_state=0).fit(K)
    with pytest.raises(ValueError, match="X must be the kernel matrix"):
        plot.similarity(model, ax=ax)


# --- map ----------------------------------------------------------------------------


def neighbor_purity(positions, labels, k=5):
    """Share of the nearest neighbors on a map that have the same label."""
    squares = np.square(positions[:, np.newaxis] - positions).sum(axis=-1)
    nearest = np.argsort(squares, axis=1)[:, 1 : k + 1]
    return np.mean(labels[nearest] == labels[:, np.newaxis])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"representation": "standardize"},
        {"bandwidth": 2.0},
        {"bandwidth": "local"},
        {"kernel": "laplacian"},
        {"neighbors": KNeighborsTransformer(n_neighbors=10)},
    ],
)
def test_map_separates_clusters(options, ax):
    X = blobs(5)
    model = CDSK(3, random_state=0, **options).fit(X)
    assert plot.map(model, ax=ax) is ax
    positions = compute_map(model)
    expected = positions[np.lexsort(positions.T)]
    np.testing.assert_array_equal(get_points(ax)[0], expected)
    assert neighbor_purity(positions, model.labels_) > 0.95
    assert sorted(text.get_text() for text in ax.texts) == ["0", "1", "2"]
    for text in ax.texts:
        at_label = (positions == text.xy).all(axis=1)
        assert (model.labels_[at_label] == int(text.get_text())).all()
        assert at_label.any()


def test_map_has_a_seed(fitted):
    model, X = fitted
    one, same, other = (compute_map(model, random_state=s) for s in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    np.testing.assert_array_equal(one, compute_map(model, X))
    pictures = [io.BytesIO(), io.BytesIO()]
    for picture in pictures:
        plot.map(model, ax=Figure().add_subplot()).figure.savefig(picture, format="png")
    assert pictures[0].getvalue() == pictures[1].getvalue()


def test_map_does_not_depend_on_threads(fitted):
    model = copy.copy(fitted[0])
    maps = [compute_map(model.set_params(n_threads=n)) for n in (1, 3)]
    np.testing.assert_array_equal(*maps)


def test_equal_rows_are_one_point_of_the_map(ax):
    X = np.repeat(blobs(3), 2, axis=0)
    weight = np.tile([1.0, 2.0], 90)
    # of both copies, and one copy only
    weight[:2], weight[2] = 0.0, 0.0
    model = CDSK(3, random_state=0).fit(X, sample_weight=weight)
    positions = compute_map(model)
    np.testing.assert_array_equal(positions[2::2], positions[3::2])
    assert len(np.unique(positions, axis=0)) == 89
    # a row that is no point lies on a point of its cluster
    at_same_place = (positions == positions[0]).all(axis=1)
    assert (model.labels_[at_same_place] == model.labels_[0]).all()
    assert np.count_nonzero(at_same_place) == 4
    plot.map(model, ax=ax)
    assert len(get_points(ax)[0]) == len(X)


def test_number_of_neighbors_of_a_map(fitted):
    model, _ = fitted
    graphs = [neighbor_graph(model, k=k) for k in (None, 4, 30, 1000)]
    sizes = [np.unique(np.diff(graph.indptr)).tolist() for graph in graphs]
    assert sizes == [[20], [4], [30], [109]]
    with pytest.raises(ValueError, match="n_neighbors must be"):
        plot.map(model, n_neighbors=0)
    assert not pyplot.get_fignums()


def test_map_of_a_given_graph(fitted, ax):
    X = fitted[1]
    transformer = KNeighborsTransformer(n_neighbors=12)
    graph = transformer.fit_transform(X)
    # rows of different lengths
    graph[np.arange(5), graph.indices.reshape(110, -1)[:5, -1]] = 0.0
    graph.eliminate_zeros()
    model = CDSK(3, kernel="precomputed_neighbors", random_state=0).fit(graph)
    plot.map(model, ax=ax)
    assert np.isfinite(get_points(ax)[0]).all()
    sizes = np.diff(neighbor_graph(model, k=3).indptr)
    assert (sizes == 3).all()


def test_map_of_a_kernel_matrix_requires_points(ax):
    X = blobs(2)
    K = np.exp(-np.square(X[:, np.newaxis] - X).sum(axis=-1))
    model = CDSK(3, kernel="precomputed", random_state=0).fit(K)
    with pytest.raises(ValueError, match="requires points, and this model was fitted"):
        plot.map(model)
    for rows in (X[:5], np.zeros((91, 2))):
        with pytest.raises(ValueError, match="a row for each of the 90 training poi"):
            plot.map(model, rows)
    assert not pyplot.get_fignums()
    plot.map(model, X, ax=ax)
    # the clusters overlap in the plane
    assert neighbor_purity(compute_map(model, X), model.labels_) > 0.85


@pytest.mark.parametrize("n", [2, 3, 5])
def test_map_of_few_points(n, tmp_path):
    for X in (np.arange(n, dtype=float)[:, np.newaxis] ** 2, np.ones((n, 2))):
        model = CDSK(1 if not np.ptp(X) else 2, random_state=0).fit(X)
        ax = plot.map(model, ax=Figure().add_subplot())
        assert np.isfinite(get_points(ax)[0]).all()
        ax.figure.savefig(tmp_path / "few.png", dpi=40)


def test_map_labels_the_largest_clusters(ax, monkeypatch):
    X, _ = make_blobs([10, 40, 30], 2, random_state=0)
    model = CDSK(3, bandwidth="local", random_state=0).fit(X)
    monkeypatch.setattr("cdsk.report._map.MAX_MAP_LABELS", 2)
    plot.map(model, ax=ax)
    sizes = np.bincount(model.labels_)
    largest = sorted(np.argsort(-sizes, kind="stable")[:2].tolist())
    assert sorted(int(text.get_text()) for text in ax.texts) == largest


def test_map_asks_for_memory(fitted, monkeypatch):
    monkeypatch.setattr("cdsk._utils._SMALL_REQUEST", 0)
    monkeypatch.setattr("cdsk._utils.available_bytes", lambda: 10_000)
    with pytest.raises(MemoryError, match=r"needs .* bytes"):
        plot.map(fitted[0])
    assert not pyplot.get_fignums()


def test_choice_shows_curves_and_agreement(fitted, ax):
    model, _ = fitted
    selection = model.choice_
    plot.choice(model, ax=ax)
    curves = {line.get_label(): line.get_ydata() for line in ax.lines}
    np.testing.assert_array_equal(curves["score"], selection.scores)
    np.testing.assert_array_equal(curves["balance"], selection.balance)
    np.testing.assert_array_equal(curves["cohesion"], selection.cohesion)
    np.testing.assert_array_equal(ax.collections[0].get_array(), selection.agreement)
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names[3:] == list(selection.names)


def test_choice_shows_the_scores_of_the_representations(ax):
    X = load_wine().data
    model = CDSK(3, random_state=0).fit(X)
    scores = model.representation_.scores
    assert list(scores) == ["standardize", "normal_scores"]
    plot.choice(model, ax=ax)
    bars = ax.containers[0].patches
    widths = [bar.get_width() / len(model.choice_.names) for bar in bars]
    np.testing.assert_allclose(widths, list(scores.values()))
    ticks = zip(ax.get_yticklabels(), ax.get_yticks(), strict=True)
    labels = {tick.get_text(): height for tick, height in ticks}
    written = {t.get_position()[1]: t.get_text().strip() for t in ax.texts}
    names = ("standardized", "normal scores")
    for (key, score), name, bar in zip(scores.items(), names, bars, strict=True):
        height = bar.get_y() + bar.get_height() / 2
        is_selected = key == model.representation_.view
        assert labels[name] == pytest.approx(height)
        assert written[labels[name]] == f"{score:.3f}" + ", selected" * is_selected
        color = _common.DARK if is_selected else _common.GRAY
        np.testing.assert_array_equal([bar.get_facecolor()], to_rgba_array(color))
        assert 1.0 < height < ax.get_ylim()[1]
    figure = plot.overview(model, X)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert any(title.endswith("Model selection") for title in titles)
    one = CDSK(3, representation="standardize", random_state=0).fit(X)
    assert not plot.choice(one, ax=Figure().add_subplot()).containers


def test_points_of_a_cluster_are_sorted_along_it(rng):
    angle = rng.permutation(np.linspace(0, 1.5, 40))
    rows = np.column_stack([np.cos(angle), np.sin(angle)])
    labels = (angle > 0.7).astype(int)
    order = _similarity.sort_points(rows, labels)
    for y in (0, 1):
        steps = np.diff(angle[order][labels[order] == y])
        assert (steps > 0).all() or (steps < 0).all()


@pytest.mark.parametrize("chosen", [0, 3])
def test_frame_of_the_selected_kernel(fitted, ax, chosen):
    model = copy.copy(fitted[0])
    model.choice_ = dataclasses.replace(model.choice_, chosen=chosen)
    plot.choice(model, ax=ax)
    (frame,) = ax.patches
    assert frame.get_x() + 0.5 == chosen


PLOTS_OF_MODELS = [
    *(plot.choice, plot.eigenvalues, plot.embedding, plot.margins, plot.similarity),
    plot.map,
    lambda model: plot.overview(model, np.zeros((9, 2))),
    lambda model: plot.scatter(model, np.zeros((9, 2))),
]


@pytest.mark.parametrize("draw", PLOTS_OF_MODELS)
def test_models_must_be_fitted(draw):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        draw(CDSK(3))
    assert not pyplot.get_fignums()


@pytest.mark.parametrize("draw", PLOTS_OF_MODELS[:-1])
def test_other_models_are_rejected(draw):
    with pytest.raises(TypeError, match=r"model must be a fitted CDSK; got KMeans"):
        draw(KMeans(2, n_init=1).fit(np.eye(9)))
    assert not pyplot.get_fignums()


@pytest.mark.parametrize(
    "name",
    ["choice", "eigenvalues", "embedding", "map", "margins", "overview", "similarity"],
)
def test_landmarks_of_blocks_are_plotted(name, tmp_path):
    model = BlockCDSK(2, random_state=0).fit(make_moons(400, random_state=0)[0])
    draw = getattr(plot, name)
    options = {"X": model.landmarks_} if name == "overview" else {}
    found, expected = tmp_path / "found.png", tmp_path / "expected.png"
    for path, fitted, arguments in (
        (found, model, {}),
        (expected, model.landmark_model_, options),
    ):
        plotted = draw(fitted, **arguments)
        getattr(plotted, "figure", plotted).savefig(path)
        pyplot.close("all")
    assert found.read_bytes() == expected.read_bytes()
    with pytest.raises(NotFittedError, match="not fitted yet"):
        draw(BlockCDSK(2))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([["a", "b"]] * 5, "X must contain numbers; got list"),
        (np.full((5, 2), np.nan), "X must contain finite numbers; got NaN"),
        (np.zeros((4, 2)), r"shape \(5, n_features\); got shape \(4, 2\)"),
    ],
)
def test_invalid_points_are_rejected(X, message):
    model = CDSK(2, random_state=0).fit(np.arange(5.0)[:, np.newaxis])
    with pytest.raises(ValueError, match=message):
        plot.scatter(model, X)


def test_choice_of_a_single_kernel(ax):
    model = CDSK(3, bandwidth=2.0, random_state=0).fit(blobs(2))
    plot.choice(model, ax=ax)
    assert [text.get_text() for text in ax.texts] == ["one kernel: bandwidth 2"]


@pytest.mark.parametrize(
    ("options", "panels"),
    [
        ({}, "Points Embedding Similarity Margins Model Eigenvalues"),
        ({"bandwidth": 2.0}, "Margins Points Embedding Similarity Eigenvalues"),
        ({"kernel": "precomputed"}, "Embedding Similarity Margins Eigenvalues"),
    ],
)
def test_panels_of_the_overview(options, panels, tmp_path):
    X = blobs(2)
    if "kernel" in options:
        X = np.exp(-np.square(X[:, np.newaxis] - X).sum(axis=-1))
    figure = plot.overview(CDSK(3, random_state=0, **options).fit(X), X)
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert [title.split()[1] for title in titles] == panels.split()
    assert [title[5] for title in titles] == list("abcdef")[: len(titles)]
    figure.savefig(tmp_path / "overview.png", dpi=40)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_plots_of_few_points(n, tmp_path):
    X = np.arange(n, dtype=float)[:, np.newaxis] ** 2
    figure = plot.overview(CDSK(2, random_state=0).fit(X), X)
    assert len(figure.axes) >= 5
    figure.savefig(tmp_path / "few.png", dpi=40)
    assert (tmp_path / "few.png").stat().st_size > 1000


def test_plots_of_one_cluster(rng):
    for n_features in (1, 2, 3):
        X = rng.normal(size=(60, n_features))
        for points in (X, np.ones_like(X)):
            figure = plot.overview(CDSK(1, random_state=0).fit(points), points)
            figure.savefig(io.BytesIO())
            # identical points have a single candidate kernel
            assert len(figure.axes) == 5 + (points is X)


@pytest.mark.parametrize("n_components", [1, 2, 10])
def test_scatter_of_a_layout(ax, n_components):
    X = blobs(4)
    model = CDSK(
        3, representation="layout", n_components=n_components, random_state=0
    ).fit(X)
    plot.scatter(model, X, ax=ax)
    assert "layout" in ax.get_xlabel()
