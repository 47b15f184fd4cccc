# SPDX-License-Identifier: BSD-3-Clause
"""The HTML page: parsed, and used in Chromium if it is installed."""

import base64
import json
import re
import shutil
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from scipy.spatial import KDTree
from sklearn.datasets import make_blobs
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import KNeighborsTransformer

from cdsk import CDSK, BlockCDSK
from cdsk._map import compute_map
from cdsk.plot._common import COLORS
from cdsk.report._html import format_value
from cdsk.report._map import (
    MAX_MAP_ROWS,
    encode_hundredths,
    encode_integers,
    find_centers,
    quantize_positions,
)
from cdsk.report._plotted_rows import MAX_ROWS, sample_rows

MALICIOUS = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=boom()>',
    "&amp; $title",
]
VOID = {"meta", "img", "br", "input", "link"}


class Page(HTMLParser):
    """Elements (tag, attributes, text) in order; fails if one is not closed."""

    def __init__(self, text):
        super().__init__()
        self.elements, self._open = [], []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs), []))
        if tag not in VOID:
            self._open.append(self.elements[-1])

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs), []))

    def handle_endtag(self, tag):
        assert self._open.pop()[0] == tag

    def handle_data(self, data):
        for _, _, text in self._open:
            text.append(data)

    def get_texts(self, tag, **attributes):
        return [
            "".join(text)
            for found, given, text in self.elements
            if found == tag and attributes.items() <= given.items()
        ]


@pytest.fixture(scope="module")
def data():
    X = make_blobs(120, 3, centers=3, cluster_std=0.8, random_state=0)[0]
    return np.concatenate([X, np.random.default_rng(1).uniform(-9, 9, (20, 3))])


@pytest.fixture(scope="module")
def model(data):
    return CDSK(3, noise=0.01, random_state=0).fit(data)


@pytest.fixture(scope="module")
def path(model, data, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    names = [f"flower {i} {MALICIOUS[0]}" for i in range(len(data))]
    model.report(data, feature_names=MALICIOUS, row_names=names).to_html(path)
    return path


@pytest.fixture(scope="module")
def page(path):
    return Page(path.read_text("utf-8"))


def load_data(page):
    """Return the data of the script."""
    (text,) = page.get_texts("script", id="data")
    return json.loads(text)


def load_map(page):
    """Return the data of the map, its arrays decoded, or None without a map."""
    for text in page.get_texts("script", id="map-data"):
        found = json.loads(text)
        for key in "x y clusters margins probabilities typicality rows".split():
            if found[key] is not None:
                n_bytes, encoded = found[key]
                found[key] = np.frombuffer(base64.b64decode(encoded), f"<i{n_bytes}")
        return found
    return None


def read_page(report, tmp_path, **options):
    report.to_html(tmp_path / "page.html", **options)
    return Page((tmp_path / "page.html").read_text("utf-8"))


# --- without a browser --------------------------------------------------------------


def test_page_is_self_contained(page, path):
    for tag, attributes, _ in page.elements:
        assert tag not in {"link", "img", "iframe", "object", "embed", "base"}
        assert not {"src", "href", "srcset", "action"} & set(attributes)
        assert not [name for name in attributes if name.startswith("on")]
    text = path.read_text("utf-8")
    assert not re.search(r"https?:|url\(|@import|fetch\(|XMLHttpRequest", text)
    (policy,) = [a["content"] for _, a, _ in page.elements if "http-equiv" in a]
    assert policy.startswith("default-src 'none'; ")


def test_names_are_escaped(page, path):
    assert len(page.get_texts("script")) == 4
    assert MALICIOUS[0] not in path.read_text("utf-8")
    heads = page.get_texts("th", scope="col")
    assert set(MALICIOUS) <= set(heads)
    assert load_data(page)["features"] == MALICIOUS
    names = load_map(page)["names"]
    assert names == [f"flower {i} {MALICIOUS[0]}" for i in range(len(names))]
    assert any(
        text.endswith(MALICIOUS[0]) for text in page.get_texts("th", scope="row")
    )


def test_table_of_clusters(page, model):
    rows = [
        text
        for tag, attributes, text in page.elements
        if tag == "tr" and "data-cluster" in attributes
    ]
    assert len(rows) == 3
    for y, row in enumerate(rows):
        members = model.clusters_ == y
        assert "".join(row) == (
            f"Cluster {y}{members.sum()}{model.weights_[members].sum():.1%}"
            f"{model.margins_[members].mean():.2f}"
        )


def test_tables_of_rows(page, model, data):
    found = {}
    for (tag, attributes, text), *cells in zip(
        *(page.elements[i:] for i in range(9)), strict=False
    ):
        if tag == "tr" and "data-row" in attributes:
            found["".join(text)] = int(attributes["data-row"]), cells
    assert len(found) > 15
    for row, cells in found.values():
        texts = ["".join(text) for tag, _, text in cells if tag == "td"]
        expected = [f"{model.margins_[row]:.2f}", f"{model.typicality_[row]:.2f}"]
        values = [format_value(value) for value in data[row].tolist()]
        label = model.labels_[row]
        expected = ["noise" if label < 0 else str(label), *expected, *values]
        assert texts[-6:] == expected if len(texts) > 6 else texts == expected


def test_every_row_is_plotted_with_its_values(page, model, data):
    script_data = load_data(page)
    rows = np.array(script_data["rows"])
    assert sorted(rows) == list(range(len(data)))
    assert script_data["clusters"] == model.clusters_[rows].tolist()
    assert script_data["labels"] == model.labels_[rows].tolist()
    np.testing.assert_allclose(script_data["margins"], model.margins_[rows], rtol=1e-5)
    np.testing.assert_allclose(
        script_data["typicality"], model.typicality_[rows], rtol=1e-5
    )
    np.testing.assert_allclose(script_data["weights"], model.weights_[rows], rtol=1e-5)
    np.testing.assert_allclose(script_data["values"], data[rows], rtol=1e-5)
    # in the same order
    circles, cluster = [], None
    for tag, attributes, _ in page.elements:
        cluster = attributes.get("data-cluster", cluster) if tag == "g" else cluster
        if tag == "circle" and "id" not in attributes:
            circles.append((cluster, attributes.get("class", "")))
    assert [int(y) for y, _ in circles] == script_data["clusters"]
    zero_weight = ["zero-weight" in kind for _, kind in circles]
    assert zero_weight == (model.weights_[rows] == 0).tolist()
    noise = ["noise" in kind for _, kind in circles]
    assert noise == (model.labels_[rows] < 0).tolist()


def test_sentences_of_the_report(page, model):
    text = " ".join(page.get_texts("body")[0].split())
    summary = model.report().to_dict()
    for candidate in summary["kernel"]["candidates"]:
        assert f"{candidate['name']}{candidate['score']:.3f}" in text
    assert f"{model.n_iter_} iterations" in text
    for warning in summary["warnings"]:
        assert warning in text
    assert "rows are plotted" not in text


def test_accessible_names(page):
    for tag, attributes, _ in page.elements:
        if attributes.get("role") == "img":
            assert attributes["aria-label"].startswith("Distribution of ")
        elif tag in ("svg", "canvas"):
            assert attributes["aria-label"] and attributes["tabindex"] == "0"
            description = page.get_texts("p", id=attributes["aria-describedby"])[0]
            keys = "left and\nright arrows" if tag == "svg" else "+ and - zoom"
            assert keys in description
        if attributes.get("role") == "region":
            assert attributes["aria-label"]
        if tag == "th":
            assert attributes["scope"] in ("row", "col")
    assert len(page.get_texts("caption")) >= 6


def test_without_data(model):
    text = unescape(model.report()._repr_html_())
    assert text.startswith('<iframe title="CDSK report" sandbox="allow-scripts"')
    page = Page(text[text.index("<!doctype") : text.index("</html>") + 7])
    assert "model.report(X)" in page.get_texts("body")[0]
    assert page.get_texts("select") == []
    assert load_data(page)["values"] is None


def test_notebook_frame_contains_the_page(model, data, tmp_path):
    report = model.report(data, feature_names=MALICIOUS)
    report.to_html(tmp_path / "page.html")
    frame = Page(report._repr_html_()).elements
    assert [tag for tag, _, _ in frame] == ["iframe"]
    assert frame[0][1]["srcdoc"] == (tmp_path / "page.html").read_text("utf-8")


def test_features_of_text_are_no_axes(model, data, tmp_path):
    table = np.empty((len(data), 2), dtype=object)
    table[:, 0], table[:, 1] = "text", 1.5
    model.report(table).to_html(tmp_path / "page.html")
    page = Page((tmp_path / "page.html").read_text("utf-8"))
    assert page.get_texts("option") == ["embedding", "feature 1"] * 2


@pytest.fixture(scope="module")
def with_missing(model, data, tmp_path_factory):
    """Page of data with missing cells in every fourth row and one empty column."""
    table = data.astype(object)
    table[::4, 0], table[:, 2] = pd.NA, pd.NaT
    names = [None if i % 2 else f"flower {i}" for i in range(len(data))]
    path = tmp_path_factory.mktemp("page") / "missing.html"
    model.report(table, feature_names="xyz", row_names=names).to_html(path)
    return path


def test_missing_cells_and_names(with_missing):
    page = Page(with_missing.read_text("utf-8"))
    # an empty column is no axis
    assert page.get_texts("option") == ["embedding", "x", "y"] * 2
    script_data = load_data(page)
    columns = (script_data[key] for key in ("rows", "names", "values"))
    for row, name, values in zip(*columns, strict=True):
        assert (values[0] is None) == (row % 4 == 0)
        assert values[2] is None
        assert name == (None if row % 2 else f"flower {row}")
    for tag, attributes, text in page.elements:
        if tag == "tr" and "data-row" in attributes:
            row, text = int(attributes["data-row"]), "".join(text)
            assert text.count("–") == 1 + (row % 4 == 0)
            assert text.startswith(str(row) if row % 2 else f"flower {row}")


class RepeatedRows(CDSK):
    """A fit of 40 rows whose attributes are repeated 10^5 times."""

    probabilities_ = None


@pytest.fixture(scope="module")
def many_rows():
    """Model, report and map of 10^5 rows."""
    n, rng = 100_000, np.random.default_rng(0)
    X = rng.normal(size=(40, 20))
    model = RepeatedRows(4, max_iter=0, random_state=0).fit(X)
    model.probabilities_ = CDSK(4, max_iter=0, random_state=0).fit(X).probabilities_
    repeated = rng.integers(0, 40, n)
    names = "labels_ label_numbers_ clusters_ weights_ margins_ typicality_ embedding_"
    for name in [*names.split(), "probabilities_"]:
        setattr(model, name, getattr(model, name)[repeated])
    model.sample_weight_ = np.ones(n)
    model.support_ = np.flatnonzero(model.weights_)
    model.bandwidth_ = 1.0
    positions = rng.normal(size=(n, 2))
    positions[:, 0] += 8.0 * model.clusters_
    return model, model.report(rng.normal(size=(n, 20))), positions


@pytest.fixture
def known_map(many_rows, monkeypatch):
    """Return the positions of 10^5 rows from ``compute_map``."""
    monkeypatch.setattr("cdsk.report._map.compute_map", lambda model: many_rows[2])


def test_many_rows_are_sampled(many_rows, tmp_path):
    model, report, _ = many_rows
    n = len(model.labels_)
    page = read_page(report, tmp_path, map=False)
    assert (tmp_path / "page.html").stat().st_size < 1e6
    plotted = load_data(page)["rows"]
    assert len(plotted) == len(set(plotted)) == MAX_ROWS
    assert {row["row"] for row in report.to_dict()["rows"]} <= set(plotted)
    text = " ".join(page.get_texts("body")[0].split())
    assert f"{MAX_ROWS} of {n} rows are plotted" in text
    assert "12 of 20 features are shown" in text


def test_sample_of_rows():
    assert sample_rows([5], MAX_ROWS).tolist() == list(range(MAX_ROWS))
    many = sample_rows(range(10**6 - MAX_ROWS // 2, 10**6), 10**6)
    assert len(many) == MAX_ROWS
    assert (np.diff(many) > 0).all()
    assert (many[-MAX_ROWS // 2 :] >= 10**6 - MAX_ROWS // 2).all()
    assert len(sample_rows(range(2 * MAX_ROWS), 10**6)) == MAX_ROWS


def test_many_clusters(tmp_path):
    X = make_blobs(360, 4, centers=120, cluster_std=0.3, random_state=0)[0]
    model = CDSK(120, bandwidth="local", max_iter=0, n_init=1, random_state=0).fit(X)
    model.report(X).to_html(tmp_path / "page.html")
    page = Page((tmp_path / "page.html").read_text("utf-8"))
    n_found = model.labels_.max() + 1
    assert len(page.get_texts("button", **{"aria-pressed": "false"})) == n_found
    assert n_found > 100
    assert len(page.get_texts("details", **{"class": "profile"})) == 100
    assert len(page.get_texts("details")) == 100 + 100 + 1
    assert "The 100 clusters of lowest confidence:" in page.get_texts("p")


def test_profiles_are_sentences_and_distributions(page, model, data):
    expected = model.profiles(data).summarize(4)
    expected = [*expected[1:], expected[0]]  # noise comes last
    sections = page.get_texts("details", **{"class": "profile"})
    assert len(sections) == len(expected) == 4
    colors = [a["style"] for t, a, _ in page.elements if a.get("class") == "profile"]
    assert colors[-1] == "--color:var(--noise)"
    for profile, text in zip(expected, sections, strict=True):
        number, n = profile["cluster"], profile["size"]
        name = "noise" if number < 0 else f"cluster {number}"
        assert text.startswith(f"{name}, {n} rows: ")
    n_cards = sum(len(profile["features"]) for profile in expected)
    titles = [
        attributes["title"]
        for tag, attributes, _ in page.elements
        if "title" in attributes
    ]
    assert len(titles) == n_cards > 3
    assert set(titles) <= set(MALICIOUS)
    paths = [a for tag, a, _ in page.elements if tag == "path"]
    assert [a["class"] for a in paths] == ["all", "own"] * n_cards
    for attributes in paths:
        numbers = np.array(re.findall(r"-?[\d.]+", attributes["d"]), dtype=float)
        assert numbers.min() >= 0
        assert numbers.max() <= 160


def test_long_names_leave_room(model, data, tmp_path):
    column = "customer_home_city_" + "w" * 300
    city = np.array(["Lima", "Oslo"])[(model.labels_ == 0).astype(int)]
    frame = pd.DataFrame({column: city, "x": np.asarray(data)[:, 0]})
    page = read_page(model.report(frame), tmp_path, map=False)
    headers = [text for text in page.get_texts("th", scope="col") if "customer" in text]
    assert headers
    assert max(map(len, headers)) <= 40
    titles = [a.get("title") for tag, a, _ in page.elements if tag == "th"]
    assert column in titles
    captions = [text for text in page.get_texts("figcaption") if "customer" in text]
    assert {text.rpartition(" = ")[2] for text in captions} <= {"Lima", "Oslo"}
    assert captions and max(map(len, captions)) <= 32
    css = page.get_texts("style")[0]
    rule = re.search(r"header p \{ max-width[^}]*\}", css)
    assert "overflow-wrap: anywhere" in rule.group()


def test_profiles_of_categories_and_missing_cells(model, data, tmp_path):
    table = pd.DataFrame({"color": np.where(model.labels_ == 0, MALICIOUS[0], "blue")})
    table["size"] = np.where(model.labels_ == 1, np.nan, 3.0)
    page = read_page(model.report(table), tmp_path, map=False)
    sections = page.get_texts("details", **{"class": "profile"})
    assert f"color = {MALICIOUS[0]} (100%, elsewhere 0%)" in sections[0]
    assert "size missing (100%, elsewhere 0%)" in sections[1]
    shown = page.get_texts("title")
    assert f"blue: 0%, of all {np.mean(model.labels_ != 0):.0%}" in shown[1]
    assert "present: 0%, of all " in "".join(shown)
    assert len(page.get_texts("script", type="application/json")) == 1


def test_the_page_of_a_wide_table_is_small(tmp_path):
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(50, 1000))
    X = centers[np.arange(600) % 50] + 0.3 * rng.normal(size=(600, 1000))
    model = CDSK(50, bandwidth="local", max_iter=0, n_init=1, random_state=0).fit(X)
    names = [f"{j} " + "名前" * 5000 for j in range(1000)]
    model.report(X, feature_names=names).to_html(tmp_path / "page.html", map=False)
    text = (tmp_path / "page.html").read_text("utf-8")
    page = Page(text)
    assert len(page.get_texts("details", **{"class": "profile"})) == 50
    assert len([a for tag, a, _ in page.elements if tag == "path"]) > 100
    begin = text.index('<h2 id="profiles-title">')
    assert text.index("</section>", begin) - begin < 500_000


@pytest.mark.parametrize("n_clusters", [1, 2])
def test_few_clusters(n_clusters, data, tmp_path):
    report = CDSK(n_clusters, random_state=0).fit(data).report(data)
    report.to_html(tmp_path / "page.html")
    page = Page((tmp_path / "page.html").read_text("utf-8"))
    noun = "cluster" if n_clusters == 1 else "clusters"
    assert page.get_texts("h1") == [f"140 points in {n_clusters} {noun}"]


def test_page_of_blocks(data, tmp_path):
    model = BlockCDSK(3, random_state=0).fit(np.tile(data, (5, 1)))
    model.report().to_html(tmp_path / "page.html")
    page = Page((tmp_path / "page.html").read_text("utf-8"))
    assert page.get_texts("h1") == ["700 rows in 3 clusters"]
    assert "The rows below are the landmarks" in page.get_texts("header")[0]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((None, "–"), ("a", "a"), (True, "True"), (3, "3"), (3.0, "3")),
        (1e20, "1e+20"),
        *((0.123456, "0.1235"), (-1234.56, "-1235"), (123456.7, "123457")),
        (1.5e-7, "1.5e-07"),
    ],
)
def test_format_value(value, text):
    assert format_value(value) == text


def test_colors_are_those_of_plots(path):
    before_dark = path.read_text("utf-8").split("@media")[0]
    light = dict(re.findall(r"--c(\d): (#\w{6});", before_dark))
    assert tuple(light[str(i)] for i in range(10)) == COLORS


# --- map, without a browser -----------------------------------------------------------


def test_map_is_that_of_plot(page, model):
    found = load_map(page)
    positions = compute_map(model)
    quantized = np.column_stack([found["x"], found["y"]]).astype(float)
    # the same unit on both axes, and all 16 bits are used
    unit = np.ptp(positions, axis=0).max() / 65534
    offsets = unit * (quantized - quantized[0]) - (positions - positions[0])
    assert np.abs(offsets).max() <= unit
    assert np.ptp(quantized, axis=0).max() == 65534
    assert np.abs(quantized).max() == 32767
    noise = model.labels_ < 0
    assert 0 < noise.sum() < len(noise)
    clusters = np.where(noise, -1 - model.clusters_, model.labels_)
    np.testing.assert_array_equal(found["clusters"], clusters)
    for name in ("margins", "probabilities", "typicality"):
        values = getattr(model, f"{name}_")
        np.testing.assert_allclose(found[name] / 100, values, rtol=0, atol=0.005001)
    assert found["rows"] is None
    assert "rows are on the map" not in page.get_texts("body")[0]


def test_positions_of_equal_points():
    np.testing.assert_array_equal(quantize_positions(np.full((3, 2), 7.0)), 0)


def test_centers_are_next_to_the_median():
    rng = np.random.default_rng(0)
    positions, labels = rng.normal(size=(60, 2)), rng.integers(-1, 3, 60)
    for cluster, center in find_centers(positions, labels):
        assert labels[center] == cluster
        median = [np.median(column[labels == cluster]) for column in positions.T]
        distances = np.linalg.norm(positions - median, axis=1)
        assert distances[center] == distances[labels == cluster].min()
    sizes = [np.sum(labels == y) for y, _ in find_centers(positions, labels)]
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) == 3


def test_integers_take_as_few_bytes_as_possible():
    for values, n_bytes in (([-128, 127], 1), ([128], 2), ([-32769], 4), ([], 1)):
        values = np.array(values, dtype=np.int64)
        found, text = encode_integers(values)
        assert found == n_bytes
        decoded = np.frombuffer(base64.b64decode(text), f"<i{n_bytes}")
        np.testing.assert_array_equal(decoded, values)
    with pytest.raises(OverflowError, match="got 2147483648"):
        encode_integers(np.array([2**31]))


def test_hundredths_of_missing_and_large_values():
    n_bytes, text = encode_hundredths(np.array([np.nan, np.inf, -1.0, 0.126, 1e9]))
    decoded = np.frombuffer(base64.b64decode(text), f"<i{n_bytes}")
    assert decoded.tolist() == [-101, -101, -100, 13, 32767]


def test_map_of_many_rows_is_a_sample(model, data, tmp_path, monkeypatch):
    names = [f"flower {i}" for i in range(len(data))]
    whole = load_map(read_page(model.report(row_names=names), tmp_path))
    monkeypatch.setattr("cdsk.report._map.MAX_MAP_ROWS", 50)
    pages = [read_page(model.report(row_names=names), tmp_path) for _ in range(2)]
    found = load_map(pages[0])
    rows = found["rows"]
    assert len(rows) == 50 and (np.diff(rows) > 0).all()
    assert 0 <= rows[0] and rows[-1] < len(data)
    np.testing.assert_array_equal(rows, load_map(pages[1])["rows"])
    assert found["names"] == [names[i] for i in rows]
    for key in ("clusters", "margins", "typicality"):
        np.testing.assert_array_equal(found[key], whole[key][rows])
    # the layout is that of all rows
    x = whole["x"][rows].astype(float)
    assert np.corrcoef(found["x"], x)[0, 1] == pytest.approx(1.0)
    assert "50 of 140 rows are on the map, a random sample." in pages[0].get_texts(
        "figcaption"
    )[1].replace("\n", " ")


def test_page_of_100_000_points_is_small(many_rows, known_map, tmp_path):
    model, report, _ = many_rows
    found = load_map(read_page(report, tmp_path))
    assert len(found["x"]) == len(model.labels_) == MAX_MAP_ROWS
    assert found["rows"] is None
    assert (tmp_path / "page.html").stat().st_size < 2e6


def test_map_is_computed_once_and_only_for_pages(model, data, tmp_path, monkeypatch):
    calls = []

    def count(model):
        calls.append(model)
        return compute_map(model)

    monkeypatch.setattr("cdsk.report._map.compute_map", count)
    report = model.report(data)
    str(report), report.to_dict()
    assert load_map(read_page(report, tmp_path, map=False)) is None
    assert calls == []
    read_page(report, tmp_path)
    report._repr_html_()
    assert len(calls) == 1


def test_map_does_not_change_if_the_model_is_fitted_again(data, tmp_path):
    model = CDSK(3, random_state=0).fit(data)
    expected, later = model.report(), model.report()
    expected.to_html(tmp_path / "before.html")
    model.fit(data[:90] ** 2)
    later.to_html(tmp_path / "after.html")
    assert (tmp_path / "before.html").read_bytes() == (
        tmp_path / "after.html"
    ).read_bytes()


def test_notebooks_show_small_maps(model, monkeypatch):
    assert 'id="map"' in unescape(model.report()._repr_html_())
    monkeypatch.setattr(
        "cdsk.report._report._MAX_NOTEBOOK_ROWS", len(model.labels_) - 1
    )
    assert 'id="map"' not in unescape(model.report()._repr_html_())


def test_kernel_matrix_has_no_map(data, tmp_path):
    model = CDSK(3, kernel="precomputed", random_state=0).fit(rbf_kernel(data))
    page = read_page(model.report(data), tmp_path)
    assert load_map(page) is None
    assert page.get_texts("canvas") == []
    assert len(page.get_texts("script")) == 2
    assert "Map" not in page.get_texts("h2")


def test_map_of_a_neighbor_graph_and_of_landmarks(data, tmp_path):
    graph = KNeighborsTransformer(n_neighbors=12).fit_transform(data)
    model = CDSK(3, kernel="precomputed_neighbors", random_state=0).fit(graph)
    assert len(load_map(read_page(model.report(), tmp_path))["x"]) == len(data)
    blocks = BlockCDSK(3, random_state=0).fit(np.tile(data, (5, 1)))
    found = load_map(read_page(blocks.report(), tmp_path))
    assert len(found["x"]) == len(blocks.landmarks_)
    assert found["names"][1] == "landmark 1"


# --- in a browser ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser():
    webdriver = pytest.importorskip("selenium.webdriver")
    names = "chromium chromium-browser google-chrome"
    binary = next(filter(None, map(shutil.which, names.split())), None)
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("needs Chromium and chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for option in "headless=new no-sandbox disable-gpu disable-dev-shm-usage".split():
        options.add_argument(f"--{option}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(driver)
    with webdriver.Chrome(options=options, service=service) as browser:
        browser.set_window_size(1200, 900)
        yield browser


@pytest.fixture
def opened(browser, path):
    """Open the page; afterwards, fail if it logged an error or loaded a file."""
    browser.get(path.as_uri())
    yield browser
    assert browser.get_log("browser") == []
    loaded = "return performance.getEntriesByType('resource').length"
    assert browser.execute_script(loaded) == 0


def find_all(browser, selector):
    return browser.find_elements("css selector", selector)


def get_text(browser, selector):
    (found,) = find_all(browser, selector)
    return found.get_attribute("textContent")


def get_positions(browser):
    """Return the positions of the points."""
    script = "return [...document.querySelectorAll('g.cluster circle')].map("
    script += "c => [c.cx.baseVal.value, c.cy.baseVal.value])"
    return np.array(browser.execute_script(script), dtype=float)


def find_dimmed(browser):
    """Return the dimmed clusters."""
    return [
        int(group.get_attribute("data-cluster"))
        for group in find_all(browser, "g.cluster.dimmed")
    ]


def list_values(model, data, row):
    """Return the names and values shown for a row."""
    label = model.labels_[row]
    found = f"noise (in cluster {model.clusters_[row]})" if label < 0 else str(label)
    return [
        *("cluster", found, "margin", f"{model.margins_[row]:.2f}"),
        *("typicality", f"{model.typicality_[row]:.2f}"),
        *("weight", f"{model.weights_[row]:.4g}"),
        *(
            x
            for pair in zip(MALICIOUS, map(format_value, data[row]), strict=True)
            for x in pair
        ),
    ]


def check_equal(shown, expected):
    """Compare texts, and numbers up to their format."""
    assert len(shown) == len(expected)
    for a, b in zip(shown, expected, strict=True):
        try:
            assert float(a) == pytest.approx(float(b), rel=1e-3)
        except ValueError:
            assert a == b


def test_tooltip(opened, model, data):
    from selenium.webdriver import ActionChains

    script_data = json.loads(get_text(opened, "#data"))
    circles = find_all(opened, "g.cluster circle")
    # a point that no other covers
    positions = get_positions(opened)
    gaps = np.linalg.norm(positions[:, np.newaxis] - positions, axis=2)
    np.fill_diagonal(gaps, np.inf)
    isolated = int(gaps.min(axis=1).argmax())
    tooltip = find_all(opened, "#tooltip")[0]
    assert not tooltip.is_displayed()
    ActionChains(opened).move_to_element(circles[isolated]).perform()
    assert tooltip.is_displayed()
    row = script_data["rows"][isolated]
    assert get_text(opened, "#tooltip b") == f"flower {row} {MALICIOUS[0]}"
    cells = [
        c.get_attribute("textContent")
        for c in find_all(opened, "#tooltip td, #tooltip th")
    ]
    check_equal(cells, list_values(model, data, row))
    ActionChains(opened).move_to_element(find_all(opened, "h1")[0]).perform()
    assert not tooltip.is_displayed()


def test_click_on_a_cluster_dims_the_others(opened):
    buttons = find_all(opened, ".clusters button")
    buttons[1].click()
    assert find_dimmed(opened) == [0, 2]
    pressed = [button.get_attribute("aria-pressed") for button in buttons]
    assert pressed == ["false", "true", "false"]
    buttons[2].click()
    assert find_dimmed(opened) == [0, 1]
    find_all(opened, "#clear")[0].click()
    assert find_dimmed(opened) == []
    buttons[0].click()
    buttons[0].click()
    assert find_dimmed(opened) == []
    # a point, then one of a dimmed cluster
    find_all(opened, "g.cluster[data-cluster='2'] circle")[0].click()
    assert find_dimmed(opened) == [0, 1]
    find_all(opened, "g.cluster[data-cluster='0'] circle")[0].click()
    assert find_dimmed(opened) == [1, 2]


def test_keyboard(opened, model, data):
    from selenium.webdriver import ActionChains, Keys

    script_data = json.loads(get_text(opened, "#data"))
    opened.execute_script("document.getElementById('scatter').focus()")

    def press(key):
        ActionChains(opened).send_keys(key).perform()
        return get_text(opened, "#status")

    def expected_parts(i):
        name, row = (
            f"flower {script_data['rows'][i]} {MALICIOUS[0]}",
            script_data["rows"][i],
        )
        return name, f"margin {model.margins_[row]:.2f}"

    second = script_data["clusters"].index(1)
    for key, i in (
        *((Keys.ARROW_RIGHT, 0), (Keys.ARROW_RIGHT, 1), (Keys.ARROW_DOWN, second)),
        *((Keys.ARROW_LEFT, second - 1), (Keys.ARROW_UP, 0), (Keys.END, -1)),
    ):
        status = press(key)
        assert all(part in status for part in expected_parts(i))
    press(Keys.ENTER)
    assert find_dimmed(opened) == [0, 1]
    press(Keys.ESCAPE)
    assert find_dimmed(opened) == []
    # Tab moves the focus from the plot to the buttons of the clusters
    for _ in range(8):
        press(Keys.TAB)
        if opened.switch_to.active_element.get_attribute("data-cluster") == "0":
            break
    press(Keys.SPACE)
    assert find_dimmed(opened) == [1, 2]


def test_points_by_two_features(opened, data):
    from selenium.webdriver.support.select import Select

    script_data = json.loads(get_text(opened, "#data"))
    x_axis, y_axis = map(Select, find_all(opened, ".controls select"))

    before = get_positions(opened)
    x_axis.select_by_index(3)
    y_axis.select_by_index(2)
    x, y = data[script_data["rows"]][:, [2, 1]].T
    moved = get_positions(opened)
    assert np.corrcoef(moved[:, 0], x)[0, 1] == pytest.approx(1.0)
    assert np.corrcoef(moved[:, 1], y)[0, 1] == pytest.approx(-1.0)
    assert moved.min() > 0 and moved.max() < 1000
    assert get_text(opened, "#x-label").startswith(MALICIOUS[2])
    x_axis.select_by_index(0)
    np.testing.assert_array_equal(get_positions(opened), before)


def test_points_with_missing_coordinates_are_hidden(browser, with_missing, data):
    from selenium.webdriver import ActionChains, Keys
    from selenium.webdriver.support.select import Select

    browser.get(with_missing.as_uri())
    script_data = json.loads(get_text(browser, "#data"))
    rows = np.array(script_data["rows"])
    x_axis, y_axis = map(Select, find_all(browser, ".controls select"))
    x_axis.select_by_visible_text("x")
    y_axis.select_by_visible_text("y")
    circles = find_all(browser, "g.cluster circle")
    is_visible = np.array([circle.is_displayed() for circle in circles])
    assert (is_visible == (rows % 4 != 0)).all()
    assert get_text(browser, "#x-label").endswith("; 35 missing values not plotted")
    assert "missing" not in get_text(browser, "#y-label")
    x = data[rows[is_visible], 0]
    assert np.corrcoef(get_positions(browser)[is_visible, 0], x)[0, 1] == pytest.approx(
        1.0
    )
    # the keyboard still reaches them, by row number if they have no name
    browser.execute_script("document.getElementById('scatter').focus()")
    for i in range(np.argmax(~is_visible) + 1):
        ActionChains(browser).send_keys(Keys.ARROW_RIGHT).perform()
        name = f"Row {rows[i]}" if rows[i] % 2 else f"flower {rows[i]}"
        assert get_text(browser, "#status").startswith(f"{name}: ")
    assert "x –, " in get_text(browser, "#status")
    assert not find_all(browser, "#current")[0].is_displayed()
    x_axis.select_by_visible_text("embedding")
    assert all(circle.is_displayed() for circle in circles)
    assert browser.get_log("browser") == []


def test_all_points_as_a_table(opened, model, data):
    script_data = json.loads(get_text(opened, "#data"))
    # the listener of the page was added before this one and runs first
    opened.execute_async_script(
        "const table = document.getElementById('all-points'), done = arguments[0];"
        "table.addEventListener('toggle', () => done(), {once: true});"
        "table.querySelector('summary').click();"
    )
    rows = find_all(opened, "#all-points tbody tr")
    assert len(rows) == len(data)
    for i in (0, 70, 139):
        cells = [
            c.get_attribute("textContent")
            for c in rows[i].find_elements("css selector", "td")
        ]
        check_equal(cells, list_values(model, data, script_data["rows"][i])[1::2])


def test_displayed_table_of_clusters(opened, model):
    for y, row in enumerate(find_all(opened, ".clusters tbody tr")):
        members = model.clusters_ == y
        assert row.text.split() == [
            *("Cluster", str(y), str(members.sum())),
            f"{model.weights_[members].sum():.1%}",
            f"{model.margins_[members].mean():.2f}",
        ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_phone_and_dark_mode(opened, scheme):
    """The page fits the screen, and its text contrasts with the background."""
    opened.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
    )
    size = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        width = opened.execute_script("return document.documentElement.scrollWidth")
        style = "const s = getComputedStyle(document.body); return [s.color, "
        style += "s.backgroundColor]"
        ink, paper = (
            np.mean([int(part) for part in re.findall(r"\d+", color)[:3]])
            for color in opened.execute_script(style)
        )
    finally:
        opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert width == 360
    assert abs(ink - paper) > 150
    assert (paper < 60) == (scheme == "dark")


def test_injected_scripts_do_not_run(browser, path, tmp_path):
    """The content security policy blocks scripts even if names were not escaped."""
    text = path.read_text("utf-8")
    injected = "<script>document.title = 'broken'</script>"
    broken = tmp_path / "broken.html"
    broken.write_text(text.replace("<footer>", injected + "<footer>"), "utf-8")
    browser.get(broken.as_uri())
    assert browser.title == "140 points in 3 clusters"
    assert "Content Security Policy" in browser.get_log("browser")[0]["message"]
    browser.get(path.as_uri())
    assert browser.title == "140 points in 3 clusters"


# --- map in a browser -----------------------------------------------------------------


def wait_for_frame(browser):
    """Return after the next frame is drawn."""
    frames = "requestAnimationFrame(() => requestAnimationFrame(done))"
    browser.execute_async_script(f"const done = arguments[0]; {frames}")


def open_map(browser, path):
    """Open a page and return the canvas of its map, which is visible."""
    browser.get(path.as_uri())
    (canvas,) = find_all(browser, "#map")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    wait_for_frame(browser)
    return canvas


def search(browser, text):
    """Search a row of the map and return the status."""
    from selenium.webdriver import Keys

    (field,) = find_all(browser, "#map-query")
    field.clear()
    field.send_keys(text, Keys.ENTER)
    wait_for_frame(browser)
    return get_text(browser, "#map-status")


def hover(browser, canvas, left=0, top=0):
    """Return the row shown at some pixels from the center of the map, or None."""
    from selenium.webdriver import ActionChains

    # a move within the canvas, also if the pointer was there
    for shift in (left + 1, left):
        ActionChains(browser).move_to_element_with_offset(canvas, shift, top).perform()
    wait_for_frame(browser)
    (tooltip,) = find_all(browser, "#map-tooltip")
    return get_text(browser, "#map-tooltip b") if tooltip.is_displayed() else None


def press(browser, canvas, key):
    from selenium.webdriver import ActionChains

    browser.execute_script("arguments[0].focus()", canvas)
    ActionChains(browser).send_keys(key).perform()
    wait_for_frame(browser)


def get_picture(browser, canvas):
    return browser.execute_script("return arguments[0].toDataURL()", canvas)


def get_center_pixel(browser, canvas):
    """Return red, green, blue and opacity."""
    # Chromium warns of several reads of the canvas itself
    script = """
        const canvas = arguments[0], pixel = document.createElement("canvas");
        pixel.width = pixel.height = 1;
        const context = pixel.getContext("2d", {willReadFrequently: true});
        context.drawImage(canvas, -canvas.width / 2, -canvas.height / 2);
        return [...context.getImageData(0, 0, 1, 1).data];
    """
    return np.array(browser.execute_script(script, canvas), dtype=float)


def find_isolated(found, candidates):
    """Return the candidate that is farthest from any other point of a map."""
    points = np.column_stack([found["x"], found["y"]])
    distances = KDTree(points).query(points[candidates], 2)[0][:, 1]
    return int(candidates[distances.argmax()])


def test_search_centers_a_row(opened, path, page, model):
    canvas = open_map(opened, path)
    found = load_map(page)
    before = get_picture(opened, canvas)
    for cluster in range(3):
        row = find_isolated(found, np.flatnonzero(model.labels_ == cluster))
        name = f"flower {row} {MALICIOUS[0]}"
        status = search(opened, name.upper())
        assert status == (
            f"{name}: cluster {cluster}, margin {model.margins_[row]:.2f}, "
            f"probability {model.probabilities_[row]:.2f}, "
            f"typicality {model.typicality_[row]:.2f}."
        )
        assert hover(opened, canvas) == name
        color = COLORS[cluster].lstrip("#")
        expected = [int(color[i : i + 2], 16) for i in (0, 2, 4)]
        pixel = get_center_pixel(opened, canvas)
        np.testing.assert_allclose(pixel[:3], expected, atol=2)
        # by its number
        assert search(opened, f"{row}").endswith(status)
    assert get_picture(opened, canvas) != before
    assert search(opened, "rose").startswith("No row of the map")
    press(opened, canvas, "0")
    assert get_picture(opened, canvas) == before


def test_next_match_of_a_search(opened, path):
    open_map(opened, path)
    matches = [13, *range(130, 140)]
    for k, row in enumerate([*matches, 13]):
        status = search(opened, "flower 13")
        assert status.startswith(f"{1 + k % 11} of 11. flower {row} ")
    # after another search, from the first one
    search(opened, "flower 5")
    assert search(opened, "flower 13").startswith("1 of 11. flower 13 ")


def test_zoom_and_pan(opened, path, page):
    from selenium.webdriver import ActionChains, Keys
    from selenium.webdriver.common.actions.wheel_input import ScrollOrigin

    canvas = open_map(opened, path)
    row = find_isolated(load_map(page), np.arange(140))
    name = f"flower {row} {MALICIOUS[0]}"
    whole = get_picture(opened, canvas)
    search(opened, str(row))
    press(opened, canvas, Keys.ESCAPE)
    pictures = [whole, get_picture(opened, canvas)]

    def check(left=0, top=0):
        """The row is at this offset, and the picture is new."""
        assert hover(opened, canvas, left, top) == name
        ActionChains(opened).move_to_element(find_all(opened, "#map-in")[0]).perform()
        wait_for_frame(opened)
        picture = get_picture(opened, canvas)
        assert picture not in pictures
        pictures.append(picture)

    find_all(opened, "#map-in")[0].click()
    check()
    press(opened, canvas, "+")
    check()
    origin = ScrollOrigin.from_element(canvas)
    ActionChains(opened).scroll_from_origin(origin, 0, -100).perform()
    check()
    press(opened, canvas, Keys.ARROW_LEFT)
    check(60)
    press(opened, canvas, Keys.ARROW_DOWN)
    check(60, -60)
    ActionChains(opened).drag_and_drop_by_offset(canvas, 40, 90).perform()
    check(100, 30)
    for button in ("#map-out", "#map-reset"):
        find_all(opened, button)[0].click()
        wait_for_frame(opened)
    assert get_picture(opened, canvas) == whole


def test_click_keeps_a_point(opened, path, page):
    from selenium.webdriver import ActionChains, Keys

    canvas = open_map(opened, path)
    row = find_isolated(load_map(page), np.arange(140))
    search(opened, str(row))
    press(opened, canvas, Keys.ESCAPE)
    (tooltip,) = find_all(opened, "#map-tooltip")
    assert not tooltip.is_displayed()
    ActionChains(opened).move_to_element(canvas).click().perform()
    ActionChains(opened).move_to_element(find_all(opened, "#map-in")[0]).perform()
    wait_for_frame(opened)
    assert tooltip.is_displayed()
    assert get_text(opened, "#map-tooltip b") == f"flower {row} {MALICIOUS[0]}"
    press(opened, canvas, Keys.ESCAPE)
    press(opened, canvas, Keys.ENTER)
    assert get_text(opened, "#map-status").startswith(f"flower {row} ")


def test_map_colors_by_typicality_and_dims_clusters(opened, path, page, model):
    canvas = open_map(opened, path)
    row = find_isolated(load_map(page), np.flatnonzero(model.labels_ == 1))
    search(opened, str(row))
    by_cluster = get_center_pixel(opened, canvas)
    (legend,) = find_all(opened, "#map-legend")
    assert not legend.is_displayed()
    for name, values in (("typicality", model.typicality_), ("margin", model.margins_)):
        find_all(opened, f"#map-color [value={name}]")[0].click()
        wait_for_frame(opened)
        assert legend.text.startswith(f"{name}: 0")
        level = min(max(int(10 * round(values[row], 2)), 0), 9)
        script = "return getComputedStyle(arguments[0]).backgroundColor"
        swatch = find_all(opened, "#map-legend i")[level]
        shares = re.findall(r"[\d.]+", opened.execute_script(script, swatch))
        expected = [255 * float(share) for share in shares]
        pixel = get_center_pixel(opened, canvas)
        np.testing.assert_allclose(pixel[:3], expected, atol=3)
    find_all(opened, "#map-color [value=cluster]")[0].click()
    wait_for_frame(opened)
    np.testing.assert_array_equal(get_center_pixel(opened, canvas), by_cluster)
    # in the table of clusters
    for cluster, is_dimmed in ((0, True), (1, False)):
        script = "document.querySelectorAll('.clusters button')[arguments[0]].click()"
        opened.execute_script(script, cluster)
        wait_for_frame(opened)
        pixel = get_center_pixel(opened, canvas)
        assert (pixel[3] < 100) == is_dimmed


def test_pinch(opened, path, page):
    canvas = open_map(opened, path)
    row = find_isolated(load_map(page), np.arange(140))
    search(opened, str(row))
    before = get_picture(opened, canvas)
    box = "const b = arguments[0].getBoundingClientRect(); "
    box += "return [b.left + b.width / 2, b.top + b.height / 2]"
    left, top = opened.execute_script(box, canvas)

    def touch(kind, offset=None):
        points = [] if offset is None else [(left - offset, top), (left + offset, top)]
        points = [{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(points)]
        event = {"type": kind, "touchPoints": points}
        opened.execute_cdp_cmd("Input.dispatchTouchEvent", event)

    opened.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
    try:
        touch("touchStart", 50)
        touch("touchMove", 75)
        touch("touchMove", 100)
        touch("touchEnd")
        wait_for_frame(opened)
    finally:
        opened.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})
    assert get_picture(opened, canvas) != before
    assert hover(opened, canvas) == f"flower {row} {MALICIOUS[0]}"


def test_map_of_100_000_points(browser, many_rows, known_map, tmp_path):
    model, report, _ = many_rows
    page = read_page(report, tmp_path)
    canvas = open_map(browser, tmp_path / "page.html")
    found = load_map(page)
    whole = get_picture(browser, canvas)
    for cluster in (0, 3):
        row = find_isolated(found, np.flatnonzero(model.labels_ == cluster))
        assert search(browser, f"row {row}").startswith(f"Row {row}: cluster {cluster}")
        assert hover(browser, canvas) == f"Row {row}"
        press(browser, canvas, "+")
        assert hover(browser, canvas) == f"Row {row}"
    assert search(browser, "100000").startswith("No row of the map")
    press(browser, canvas, "0")
    assert get_picture(browser, canvas) == whole
    assert browser.get_log("browser") == []


def test_search_in_a_sample_of_rows(browser, model, tmp_path, monkeypatch):
    monkeypatch.setattr("cdsk.report._map.MAX_MAP_ROWS", 50)
    page = read_page(model.report(), tmp_path)
    open_map(browser, tmp_path / "page.html")
    rows = load_map(page)["rows"]
    assert search(browser, str(rows[7])).startswith(f"Row {rows[7]}: ")
    missing = min(set(range(140)) - set(rows.tolist()))
    assert search(browser, str(missing)).startswith("No row of the map")
    assert browser.get_log("browser") == []
