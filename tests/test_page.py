# SPDX-License-Identifier: BSD-3-Clause
"""The page: read by a parser, and used in Chromium where there is one."""

import importlib
import json
import re
import shutil
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs

from cdsk import CDSK, BlockCDSK
from cdsk._explain.drawing import MOST_ROWS, drawn_rows
from cdsk._explain.page import shown
from cdsk.plot._common import COLOURS

NASTY = ["<script>alert(1)</script>", '"><img src=x onerror=boom()>', "&amp; $title"]
VOID = {"meta", "img", "br", "input", "link"}


class Page(HTMLParser):
    """Elements in order, (tag, attributes, text in it); refuses what is not closed."""

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

    def texts(self, tag, **attributes):
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
    names = [f"flower {i} {NASTY[0]}" for i in range(len(data))]
    model.report(data, feature_names=NASTY, row_names=names).to_html(path)
    return path


@pytest.fixture(scope="module")
def page(path):
    return Page(path.read_text("utf-8"))


def facts_for_script(page):
    (text,) = page.texts("script", id="data")
    return json.loads(text)


# --- without a browser --------------------------------------------------------------


def test_one_file_that_asks_for_nothing(page, path):
    for tag, attributes, _ in page.elements:
        assert tag not in {"link", "img", "iframe", "object", "embed", "base"}
        assert not {"src", "href", "srcset", "action"} & set(attributes)
        assert not [name for name in attributes if name.startswith("on")]
    text = path.read_text("utf-8")
    assert not re.search(r"https?:|url\(|@import|fetch\(|XMLHttpRequest", text)
    (policy,) = [a["content"] for _, a, _ in page.elements if "http-equiv" in a]
    assert policy.startswith("default-src 'none'; ")


def test_names_are_text(page, path):
    assert len(page.texts("script")) == 2
    assert NASTY[0] not in path.read_text("utf-8")
    heads = page.texts("th", scope="col")
    assert set(NASTY) <= set(heads)
    assert facts_for_script(page)["features"] == NASTY
    assert any(text.endswith(NASTY[0]) for text in page.texts("th", scope="row"))


def test_figures_of_the_clusters(page, model):
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


def test_rows_with_their_values(page, model, data):
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
        values = [shown(value) for value in data[row].tolist()]
        label = model.labels_[row]
        expected = ["noise" if label < 0 else str(label), *expected, *values]
        assert texts[-6:] == expected if len(texts) > 6 else texts == expected


def test_every_row_is_drawn_with_its_figures(page, model, data):
    told = facts_for_script(page)
    rows = np.array(told["rows"])
    assert sorted(rows) == list(range(len(data)))
    assert told["clusters"] == model.clusters_[rows].tolist()
    assert told["labels"] == model.labels_[rows].tolist()
    np.testing.assert_allclose(told["margins"], model.margins_[rows], rtol=1e-5)
    np.testing.assert_allclose(told["typicality"], model.typicality_[rows], rtol=1e-5)
    np.testing.assert_allclose(told["weights"], model.weights_[rows], rtol=1e-5)
    np.testing.assert_allclose(told["values"], data[rows], rtol=1e-5)
    # the circles have the same order
    circles, cluster = [], None
    for tag, attributes, _ in page.elements:
        cluster = attributes.get("data-cluster", cluster) if tag == "g" else cluster
        if tag == "circle" and "id" not in attributes:
            circles.append((cluster, attributes.get("class", "")))
    assert [int(y) for y, _ in circles] == told["clusters"]
    empty = ["empty" in kind for _, kind in circles]
    assert empty == (model.weights_[rows] == 0).tolist()
    noise = ["noise" in kind for _, kind in circles]
    assert noise == (model.labels_[rows] < 0).tolist()


def test_words_of_the_report(page, model):
    text = " ".join(page.texts("body")[0].split())
    facts = model.report().to_dict()
    for candidate in facts["kernel"]["candidates"]:
        assert f"{candidate['name']}{candidate['score']:.3f}" in text
    assert f"{model.n_iter_} rounds" in text
    for warning in facts["warnings"]:
        assert warning in text
    assert "rows are drawn" not in text


def test_names_for_screen_readers(page):
    for tag, attributes, _ in page.elements:
        if tag == "svg":
            assert attributes["aria-label"] and attributes["tabindex"] == "0"
            described = attributes["aria-describedby"]
            assert page.texts("p", id=described)[0].count("arrows") == 1
        if attributes.get("role") == "region":
            assert attributes["aria-label"]
        if tag == "th":
            assert attributes["scope"] in ("row", "col")
    assert len(page.texts("caption")) >= 6


def test_without_data(model):
    text = unescape(model.report()._repr_html_())
    assert text.startswith('<iframe title="Report of CDSK" sandbox="allow-scripts"')
    page = Page(text[text.index("<!doctype") : text.index("</html>") + 7])
    assert "model.report(X)" in page.texts("body")[0]
    assert page.texts("select") == []
    assert facts_for_script(page)["values"] is None


def test_a_frame_holds_the_page_as_it_is(model, data, tmp_path):
    report = model.report(data, feature_names=NASTY)
    report.to_html(tmp_path / "page.html")
    frame = Page(report._repr_html_()).elements
    assert [tag for tag, _, _ in frame] == ["iframe"]
    assert frame[0][1]["srcdoc"] == (tmp_path / "page.html").read_text("utf-8")


def test_text_in_place_of_numbers(model, data, tmp_path):
    table = np.empty((len(data), 2), dtype=object)
    table[:, 0], table[:, 1] = "text", 1.5
    model.report(table).to_html(tmp_path / "page.html")
    page = Page((tmp_path / "page.html").read_text("utf-8"))
    assert page.texts("option") == ["embedding", "feature 1"] * 2


@pytest.fixture(scope="module")
def with_missing(model, data, tmp_path_factory):
    """A page of data with a hole in every fourth row, and a column of holes alone."""
    table = data.astype(object)
    table[::4, 0], table[:, 2] = pd.NA, pd.NaT
    names = [None if i % 2 else f"flower {i}" for i in range(len(data))]
    path = tmp_path_factory.mktemp("page") / "missing.html"
    model.report(table, feature_names="xyz", row_names=names).to_html(path)
    return path


def test_missing_cells_and_names(with_missing):
    page = Page(with_missing.read_text("utf-8"))
    # what is missing everywhere is no axis
    assert page.texts("option") == ["embedding", "x", "y"] * 2
    told = facts_for_script(page)
    columns = (told[key] for key in ("rows", "names", "values"))
    for row, name, values in zip(*columns, strict=True):
        assert (values[0] is None) == (row % 4 == 0)
        assert values[2] is None
        assert name == (None if row % 2 else f"flower {row}")
    for tag, attributes, text in page.elements:
        if tag == "tr" and "data-row" in attributes:
            row, text = int(attributes["data-row"]), "".join(text)
            assert text.count("–") == 1 + (row % 4 == 0)
            assert text.startswith(str(row) if row % 2 else f"flower {row}")


def test_many_rows_are_a_sample(tmp_path):
    """A page of 10^5 rows, none of which takes a fit."""
    n = 100_000
    rng = np.random.default_rng(0)
    small = CDSK(4, max_iter=0, random_state=0).fit(rng.normal(size=(40, 20)))
    times = rng.integers(0, 40, n)
    for name in "labels_ clusters_ weights_ margins_ typicality_ embedding_".split():
        setattr(small, name, getattr(small, name)[times])
    small.sample_weight_ = np.ones(n)
    small.support_ = np.flatnonzero(small.weights_)
    small.bandwidth_ = 1.0
    report = small.report(rng.normal(size=(n, 20)))
    report.to_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size < 1e6
    page = Page((tmp_path / "page.html").read_text("utf-8"))
    drawn = facts_for_script(page)["rows"]
    assert len(drawn) == len(set(drawn)) == MOST_ROWS
    assert {row["row"] for row in report.to_dict()["rows"]} <= set(drawn)
    text = " ".join(page.texts("body")[0].split())
    assert f"{MOST_ROWS} of {n} rows are drawn" in text
    assert "12 of 20 features are shown" in text


def test_rows_to_draw():
    assert drawn_rows([5], MOST_ROWS).tolist() == list(range(MOST_ROWS))
    many = drawn_rows(range(10**6 - MOST_ROWS // 2, 10**6), 10**6)
    assert len(many) == MOST_ROWS
    assert (np.diff(many) > 0).all()
    assert (many[-MOST_ROWS // 2 :] >= 10**6 - MOST_ROWS // 2).all()
    assert len(drawn_rows(range(2 * MOST_ROWS), 10**6)) == MOST_ROWS


def test_many_clusters(tmp_path):
    X = make_blobs(360, 4, centers=120, cluster_std=0.3, random_state=0)[0]
    how = {"bandwidth": "local", "max_iter": 0, "n_init": 1, "random_state": 0}
    model = CDSK(120, **how).fit(X)
    model.report(X).to_html(tmp_path / "page.html")
    page = Page((tmp_path / "page.html").read_text("utf-8"))
    n_found = model.labels_.max() + 1
    assert len(page.texts("button", **{"aria-pressed": "false"})) == n_found
    assert n_found > 100
    assert len(page.texts("details")) == 100 + 1
    assert "The 100 clusters of lowest confidence:" in page.texts("p")


@pytest.mark.parametrize("n_clusters", [1, 2])
def test_few_clusters(n_clusters, data, tmp_path):
    report = CDSK(n_clusters, random_state=0).fit(data).report(data)
    report.to_html(tmp_path / "page.html")
    page = Page((tmp_path / "page.html").read_text("utf-8"))
    noun = "cluster" if n_clusters == 1 else "clusters"
    assert page.texts("h1") == [f"140 points in {n_clusters} {noun}"]


def test_page_of_blocks(data, tmp_path):
    model = BlockCDSK(3, random_state=0).fit(np.tile(data, (5, 1)))
    model.report().to_html(tmp_path / "page.html")
    page = Page((tmp_path / "page.html").read_text("utf-8"))
    assert page.texts("h1") == ["700 rows in 3 clusters"]
    assert "The rows below are the landmarks" in page.texts("header")[0]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((None, "–"), ("a", "a"), (True, "True"), (3, "3"), (3.0, "3")),
        (1e20, "1e+20"),
        *((0.123456, "0.1235"), (-1234.56, "-1235"), (123456.7, "123457")),
        (1.5e-7, "1.5e-07"),
    ],
)
def test_values_for_readers(value, text):
    assert shown(value) == text


def test_colours_are_those_of_pictures(path):
    before_dark = path.read_text("utf-8").split("@media")[0]
    light = dict(re.findall(r"--c(\d): (#\w{6});", before_dark))
    assert tuple(light[str(i)] for i in range(10)) == COLOURS


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
    """The page just opened; at the end nothing was complained of or loaded."""
    browser.get(path.as_uri())
    yield browser
    assert browser.get_log("browser") == []
    loaded = "return performance.getEntriesByType('resource').length"
    assert browser.execute_script(loaded) == 0


def all_of(browser, selector):
    return browser.find_elements("css selector", selector)


def text_of(browser, selector):
    (found,) = all_of(browser, selector)
    return found.get_attribute("textContent")


def places_of(browser):
    """Where the points are drawn."""
    script = "return [...document.querySelectorAll('g.cluster circle')].map("
    script += "c => [c.cx.baseVal.value, c.cy.baseVal.value])"
    return np.array(browser.execute_script(script), dtype=float)


def dimmed(browser):
    return [
        int(group.get_attribute("data-cluster"))
        for group in all_of(browser, "g.cluster.dimmed")
    ]


def figures(model, data, row):
    """What is shown of a row, in the words of the page."""
    label = model.labels_[row]
    found = f"noise, found in {model.clusters_[row]}" if label < 0 else str(label)
    return [
        *("cluster", found, "margin", f"{model.margins_[row]:.2f}"),
        *("typicality", f"{model.typicality_[row]:.2f}"),
        *("weight", f"{model.weights_[row]:.4g}"),
        *(x for pair in zip(NASTY, map(shown, data[row]), strict=True) for x in pair),
    ]


def same(shown, expected):
    """Text equal, numbers but for the way they are written."""
    assert len(shown) == len(expected)
    for a, b in zip(shown, expected, strict=True):
        try:
            assert float(a) == pytest.approx(float(b), rel=1e-3)
        except ValueError:
            assert a == b


def test_point_at_a_point(opened, model, data):
    from selenium.webdriver import ActionChains

    told = json.loads(text_of(opened, "#data"))
    circles = all_of(opened, "g.cluster circle")
    # one that no other covers
    places = places_of(opened)
    gaps = np.linalg.norm(places[:, np.newaxis] - places, axis=2)
    np.fill_diagonal(gaps, np.inf)
    alone = int(gaps.min(axis=1).argmax())
    tip = all_of(opened, "#tip")[0]
    assert not tip.is_displayed()
    ActionChains(opened).move_to_element(circles[alone]).perform()
    assert tip.is_displayed()
    row = told["rows"][alone]
    assert text_of(opened, "#tip b") == f"flower {row} {NASTY[0]}"
    cells = [c.get_attribute("textContent") for c in all_of(opened, "#tip td, #tip th")]
    same(cells, figures(model, data, row))
    ActionChains(opened).move_to_element(all_of(opened, "h1")[0]).perform()
    assert not tip.is_displayed()


def test_click_on_a_cluster_dims_the_others(opened):
    buttons = all_of(opened, ".clusters button")
    buttons[1].click()
    assert dimmed(opened) == [0, 2]
    pressed = [button.get_attribute("aria-pressed") for button in buttons]
    assert pressed == ["false", "true", "false"]
    buttons[2].click()
    assert dimmed(opened) == [0, 1]
    all_of(opened, "#clear")[0].click()
    assert dimmed(opened) == []
    buttons[0].click()
    buttons[0].click()
    assert dimmed(opened) == []
    # a point of the picture, then one of a dimmed cluster
    all_of(opened, "g.cluster[data-cluster='2'] circle")[0].click()
    assert dimmed(opened) == [0, 1]
    all_of(opened, "g.cluster[data-cluster='0'] circle")[0].click()
    assert dimmed(opened) == [1, 2]


def test_keyboard(opened, model, data):
    from selenium.webdriver import ActionChains, Keys

    told = json.loads(text_of(opened, "#data"))
    opened.execute_script("document.getElementById('picture').focus()")

    def press(key):
        ActionChains(opened).send_keys(key).perform()
        return text_of(opened, "#said")

    def said(i):
        name, row = f"flower {told['rows'][i]} {NASTY[0]}", told["rows"][i]
        return name, f"margin {model.margins_[row]:.2f}"

    second = told["clusters"].index(1)
    for key, i in (
        *((Keys.ARROW_RIGHT, 0), (Keys.ARROW_RIGHT, 1), (Keys.ARROW_DOWN, second)),
        *((Keys.ARROW_LEFT, second - 1), (Keys.ARROW_UP, 0), (Keys.END, -1)),
    ):
        heard = press(key)
        assert all(words in heard for words in said(i))
    press(Keys.ENTER)
    assert dimmed(opened) == [0, 1]
    press(Keys.ESCAPE)
    assert dimmed(opened) == []
    # by Tab from the picture to what follows it, down to the buttons of clusters
    for _ in range(8):
        press(Keys.TAB)
        if opened.switch_to.active_element.get_attribute("data-cluster") == "0":
            break
    press(Keys.SPACE)
    assert dimmed(opened) == [1, 2]


def test_points_by_two_features(opened, data):
    from selenium.webdriver.support.select import Select

    told = json.loads(text_of(opened, "#data"))
    across, up = map(Select, all_of(opened, ".controls select"))

    before = places_of(opened)
    across.select_by_index(3)
    up.select_by_index(2)
    x, y = data[told["rows"]][:, [2, 1]].T
    moved = places_of(opened)
    assert np.corrcoef(moved[:, 0], x)[0, 1] == pytest.approx(1.0)
    assert np.corrcoef(moved[:, 1], y)[0, 1] == pytest.approx(-1.0)
    assert moved.min() > 0 and moved.max() < 1000
    assert text_of(opened, "#axis-across").startswith(NASTY[2])
    across.select_by_index(0)
    np.testing.assert_array_equal(places_of(opened), before)


def test_points_without_a_coordinate_are_not_drawn(browser, with_missing, data):
    from selenium.webdriver import ActionChains, Keys
    from selenium.webdriver.support.select import Select

    browser.get(with_missing.as_uri())
    told = json.loads(text_of(browser, "#data"))
    rows = np.array(told["rows"])
    across, up = map(Select, all_of(browser, ".controls select"))
    across.select_by_visible_text("x")
    up.select_by_visible_text("y")
    circles = all_of(browser, "g.cluster circle")
    drawn = np.array([circle.is_displayed() for circle in circles])
    assert (drawn == (rows % 4 != 0)).all()
    assert text_of(browser, "#axis-across").endswith("; 35 missing, not drawn")
    assert "missing" not in text_of(browser, "#axis-up")
    x = data[rows[drawn], 0]
    assert np.corrcoef(places_of(browser)[drawn, 0], x)[0, 1] == pytest.approx(1.0)
    # the keyboard comes to them all the same, by their number if they have no name
    browser.execute_script("document.getElementById('picture').focus()")
    for i in range(np.argmax(~drawn) + 1):
        ActionChains(browser).send_keys(Keys.ARROW_RIGHT).perform()
        name = f"Row {rows[i]}" if rows[i] % 2 else f"flower {rows[i]}"
        assert text_of(browser, "#said").startswith(f"{name}: ")
    assert "x –, " in text_of(browser, "#said")
    assert not all_of(browser, "#current")[0].is_displayed()
    across.select_by_visible_text("embedding")
    assert all(circle.is_displayed() for circle in circles)
    assert browser.get_log("browser") == []


def test_all_points_as_a_table(opened, model, data):
    told = json.loads(text_of(opened, "#data"))
    all_of(opened, "#all-points summary")[0].click()
    # the page hears of it a moment later
    wait = importlib.import_module("selenium.webdriver.support.wait").WebDriverWait
    rows = wait(opened, 10).until(lambda page: all_of(page, "#all-points tbody tr"))
    assert len(rows) == len(data)
    for i in (0, 70, 139):
        cells = [
            c.get_attribute("textContent")
            for c in rows[i].find_elements("css selector", "td")
        ]
        same(cells, figures(model, data, told["rows"][i])[1::2])


def test_numbers_in_the_table_of_clusters(opened, model):
    for y, row in enumerate(all_of(opened, ".clusters tbody tr")):
        members = model.clusters_ == y
        assert row.text.split() == [
            *("Cluster", str(y), str(members.sum())),
            f"{model.weights_[members].sum():.1%}",
            f"{model.margins_[members].mean():.2f}",
        ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_phone_and_dark_mode(opened, scheme):
    """Nothing is wider than the screen, and text stands out from what is behind it."""
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
            np.mean([int(part) for part in re.findall(r"\d+", colour)[:3]])
            for colour in opened.execute_script(style)
        )
    finally:
        opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert width == 360
    assert abs(ink - paper) > 150
    assert (paper < 60) == (scheme == "dark")


def test_names_run_no_code(browser, path, tmp_path):
    """Not even if they were not escaped: the policy allows the page's script alone."""
    text = path.read_text("utf-8")
    alarm = "<script>document.title = 'broken'</script>"
    broken = tmp_path / "broken.html"
    broken.write_text(text.replace("<footer>", alarm + "<footer>"), "utf-8")
    browser.get(broken.as_uri())
    assert browser.title == "140 points in 3 clusters"
    assert "Content Security Policy" in browser.get_log("browser")[0]["message"]
    browser.get(path.as_uri())
    assert browser.title == "140 points in 3 clusters"
