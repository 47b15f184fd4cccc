# SPDX-License-Identifier: BSD-3-Clause
"""The report agrees with the fitted attributes, for every kernel."""

import json
import pickle
import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_iris, load_wine, make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

from cdsk import CDSK, BlockCDSK
from cdsk._partition_choice import Choice
from cdsk._view_choice import MIN_CODING_GAIN, MIN_GAIN, MIN_LAYOUT_GAIN
from cdsk.report._formatting import (
    format_clusters,
    format_pair,
    format_share,
    shorten_name,
)
from cdsk.report._sentences import describe_profile
from cdsk.report._summary import MAX_FEATURES
from cdsk.report._text import MAX_CLUSTERS, WIDTH


def blobs(n=120, centers=3, seed=0):
    return make_blobs(n, 3, centers=centers, cluster_std=0.8, random_state=seed)[0]


def gaussian(A, B):
    return np.exp(-np.square(A[:, np.newaxis] - B).sum(axis=-1) / 8)


@pytest.fixture(scope="module")
def model():
    """A model with some points of weight zero."""
    X = np.concatenate([blobs(), np.random.default_rng(6).uniform(-9, 9, (20, 3))])
    model = CDSK(3, random_state=0).fit(X)
    assert 0 < len(model.support_) < len(X)
    return model


def get_section(model, title):
    """Return the lines of a section of the report, without the title."""
    lines = str(model.report()).split("\n")
    begin = next(i for i, line in enumerate(lines) if line.startswith(title))
    end = begin + 1
    while end < len(lines) and lines[end].startswith(" "):
        end += 1
    return [line[13:] for line in lines[begin:end]]


def join_section(model, title):
    """Return a section of the report as one line."""
    return " ".join(line.strip() for line in get_section(model, title))


def copy_with(model, **attributes):
    """Return a copy of a model with other attributes."""
    copy = CDSK(**model.get_params())
    copy.__dict__.update({**model.__dict__, **attributes})
    return copy


def test_length_and_width(model):
    lines = str(model.report()).split("\n")
    assert 20 <= len(lines) <= 35
    assert max(map(len, lines)) <= WIDTH
    assert all(line == line.rstrip() for line in lines)
    titles = [line.split()[0] for line in lines[2:] if not line.startswith(" ")]
    assert titles == [
        *("Data", "Kernel", "Weights", "Convergence", "Eigenvalues", "Clusters"),
        *("Outliers", "Warnings"),
    ]


def test_data(model):
    assert str(model.report()).startswith("CDSK: 140 points in 3 clusters\n")
    assert join_section(model, "Data") == "140 points, 3 features (raw)"


def test_selected_number_of_clusters(model):
    assert "runner-up" not in str(model.report())
    selected = CDSK("auto", random_state=0).fit(blobs())
    choice = selected.count_choice_
    first, second = np.sort(choice.scores)[:-3:-1]
    assert join_section(selected, "Clusters").startswith(
        f"Selected n_clusters={selected.n_clusters_} (score {first:.2f}); "
        f"runner-up {choice.runner_up} (score {second:.2f}) "
    )


def test_candidates(model):
    choice = model.choice_
    *rows, last = get_section(model, "Kernel")[-7:]
    assert last.strip() == f"and {len(choice.names) - 6} others"
    best = sorted(np.argsort(-choice.scores, kind="stable")[:6])
    assert choice.chosen in best
    for i, row in zip(best, rows, strict=True):
        assert row.startswith("> " if i == choice.chosen else "  ")
        rest = row[2:].removeprefix(choice.names[i]).split()
        shown = choice.scores[i], choice.balance[i], choice.cohesion[i]
        assert rest[:3] == [f"{value:.3f}" for value in shown]
        assert len("".join(rest[3:])) == round(8 * choice.scores[i])
    low, high = model.bandwidth_.min(), model.bandwidth_.max()
    assert f"bandwidths {low:.3g} to {high:.3g}" in join_section(model, "Kernel")
    assert choice.names[choice.chosen] in join_section(model, "Kernel").split(";")[0]


def test_weights(model):
    text = join_section(model, "Weights")
    effective = 1 / np.sum(model.weights_**2)
    assert text.startswith(f"{len(model.support_)} of 140 points have positive weight")
    assert f"effective sample size {effective:.1f}. " in text
    assert text.endswith("Minimum support for lam=0.2: 28 points")


def extract_numbers(model):
    """Return all numbers of the report except row numbers, which copies change."""
    text = str(model.report())
    text = re.sub(r"Least typical points [^:]*:( *\d+ \(\d\.\d\d\),?\n?)*", "", text)
    found = []
    for line in text.split("\n"):
        is_cluster = re.match(r" {13}[ \d]\d +\S+ +\S+% ", line)
        numbers = re.findall(r"\d+(?:\.\d+)?(?:e[-+]\d+)?%?", line)
        found += numbers[:4] if is_cluster else numbers
    return found


@pytest.mark.parametrize(
    "options",
    [
        {"noise": 0.05},
        {"bandwidth": 1.0},
        {"n_clusters": 12, "bandwidth": "local"},
        {"kernel": "laplacian", "lam": 0.5},
    ],
)
def test_integer_weights_equal_repeated_rows(options):
    """All numbers equal those of a fit of the repeated rows."""
    rng = np.random.default_rng(0)
    X = np.concatenate([blobs(200), rng.uniform(-9, 9, (40, 3)), [[500.0] * 3]])
    times = rng.integers(0, 5, len(X))
    times[-1] = 1  # a cluster by itself, or noise
    options = {"n_clusters": 4, "random_state": 0, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weighted = CDSK(**options).fit(X, sample_weight=times)
        copied = CDSK(**options).fit(np.repeat(X, times, axis=0))
    assert len(extract_numbers(weighted)) > 35
    assert extract_numbers(weighted) == extract_numbers(copied)
    assert str(weighted.report()).startswith(f"CDSK: {times.sum()} points in ")
    rows = np.array(
        re.findall(r"(\d+) \(\d\.\d\d\)", join_section(weighted, "Outliers"))
    )
    assert times[rows.astype(int)].all()


def test_fractional_weights():
    X = blobs()
    model = CDSK(3, random_state=0).fit(X, sample_weight=np.full(len(X), 0.0125))
    assert str(model.report()).startswith("CDSK: 1.5 points in 3 clusters\n")
    assert "1.5 points (120 distinct, weighted)" in join_section(model, "Data")
    assert "of 1.5 points have positive weight (" in join_section(model, "Weights")
    assert "Minimum support for lam=0.2: 24 distinct points" in join_section(
        model, "Weights"
    )
    assert " 0.5 " in get_section(model, "Clusters")[-1]


def test_convergence_and_eigenvalues(model):
    history = model.history_
    assert join_section(model, "Convergence") == (
        f"{model.n_iter_} iterations, objective {history[0]:.6g} to {history[-1]:.6g}, "
        f"KKT gap of the weights {model.qp_gap_:.1e}"
    )
    pattern = r"1 - eigenvalues: (.*) \(relaxed cut (\S+)\)$"
    found = re.search(pattern, join_section(model, "Eigenvalues"))
    shown = [float(value) for value in found[1].split(", ")]
    np.testing.assert_allclose(shown, 1 - model.eigenvalues_, rtol=0.05, atol=1e-12)
    cut = np.sum(1 - model.eigenvalues_)
    assert float(found[2]) == pytest.approx(cut, rel=0.05, abs=1e-12)


def test_unconnected_points(model):
    assert "without similarity" not in join_section(model, "Outliers")
    two = copy_with(model, unconnected_=np.array([3, 5]))
    assert join_section(two, "Outliers").startswith(
        "2 points without similarity to any cluster: labeled as the nearest neighbor"
    )


def test_clusters_and_outliers(model):
    rows = get_section(model, "Clusters")[-3:]
    lead = model.margins_ * model.typicality_
    for y, row in enumerate(rows):
        members = np.flatnonzero(model.labels_ == y)
        number, size, share, margin, *points = row.split()
        assert (int(number), int(size)) == (y, len(members))
        assert share == f"{model.weights_[members].sum():.1%}"
        assert margin == f"{model.margins_[members].mean():.2f}"
        points = np.array(points, dtype=int)
        assert np.isin(points, members).all()
        ordered = np.sort(lead[members])
        np.testing.assert_array_equal(lead[points[3:]], ordered[:3])
        np.testing.assert_array_equal(lead[points[:3]], ordered[::-1][:3])
    text = join_section(model, "Outliers")
    found = re.findall(r"(\d+) \((-?\d\.\d\d)\)", text)
    lowest = np.argsort(model.typicality_, kind="stable")[: len(found)]
    assert len(found) == 6
    assert [int(point) for point, _ in found] == lowest.tolist()
    assert [t for _, t in found] == [f"{model.typicality_[i]:.2f}" for i in lowest]
    n_negative, n_zero = np.sum(model.margins_ < 0), 140 - len(model.support_)
    assert text.endswith(
        f"{n_negative} of 140 points have a negative margin, {n_zero} have zero weight"
    )


def test_distant_points_are_outliers():
    X = np.random.RandomState(0).normal(size=(203, 2)) / 3
    X[:100, 0] += 9
    X[200:] = [[4.5, 20], [30, 0], [-20, -20]]
    model = CDSK(2, random_state=0).fit(X)
    assert set(np.argsort(model.typicality_)[:3]) == {200, 201, 202}
    assert model.typicality_[200:].max() < 0.1
    found = re.findall(r"(\d+) \(", join_section(model, "Outliers"))[:3]
    assert {int(i) for i in found} == {200, 201, 202}


def test_report_ignores_later_set_params(model):
    expected = str(model.report())
    later = copy_with(model)
    later.set_params(
        n_clusters=7, bandwidth=1.0, qp_tol=1e-12, kernel="precomputed", max_iter=1
    )
    assert str(later.report()) == expected


def test_warning_about_small_clusters(model):
    labels = model.labels_.copy()
    # 10% of the mean size is 4.67
    for size, is_expected in (4, True), (5, False):
        labels[:] = np.repeat([0, 1, 2], [size, 70, 70 - size])
        text = join_section(copy_with(model, clusters_=labels), "Warnings")
        assert ("smaller than 10% of the mean cluster size" in text) == is_expected
    # five rows of total weight 4.5
    counts = np.where(labels == 0, 0.9, 1.0)
    text = join_section(
        copy_with(model, clusters_=labels, sample_weight_=counts), "Warnings"
    )
    assert "Cluster 0 is smaller than 10% of the mean cluster size" in text


@pytest.mark.parametrize(
    "options",
    [
        {"bandwidth": 1.5},
        {"bandwidth": "local"},
        {"bandwidth": "median", "n_neighbors": 10},
        {"kernel": "laplacian"},
        {"kernel": "cosine"},
        {"kernel": "polynomial", "kernel_params": {"degree": 2}},
        {"kernel": gaussian},
        {"kernel": gaussian, "psd": False},
        {"kernel": "precomputed"},
        {"kernel": "precomputed", "psd": False},
        {"max_iter": 0},
        {"representation": "whiten", "n_components": 2},
        {"representation": "normal_scores"},
        {"lam": "auto"},
        {"init": "sparse", "bandwidth": 1.5},
    ],
)
def test_every_kernel(options):
    X = blobs()
    if options.get("kernel") == "precomputed":
        X = gaussian(X, X)
    with warnings.catch_warnings():
        # warnings about the kernels are tested elsewhere
        warnings.simplefilter("ignore")
        model = CDSK(3, random_state=0, **options).fit(X)
    text = str(model.report())
    assert "nan" not in text
    assert len(text.split("\n")) <= 35
    if len(model.choice_.names) == 1:
        assert "candidate" not in text
        assert model.choice_.names[0] in join_section(model, "Kernel")


def test_precomputed_kernel():
    X = blobs()
    model = CDSK(3, kernel="precomputed", random_state=0).fit(gaussian(X, X))
    assert join_section(model, "Data") == "120 points, precomputed kernel matrix"
    assert join_section(model, "Kernel") == "precomputed"


def test_negative_eigenvalues():
    rng = np.random.default_rng(0)
    K = gaussian(blobs(), blobs()) + 0.2 * rng.random((120, 120))
    model = CDSK(3, kernel="precomputed", random_state=0).fit((K + K.T) / 2)
    assert model.n_negative_ > 0
    text = join_section(model, "Eigenvalues")
    assert f"The kernel has {model.n_negative_} negative eigenvalues. " in text
    assert f"{model.n_clipped_} pair" in text


def test_initial_weights_kept():
    model = CDSK(3, max_iter=0, random_state=0).fit(blobs())
    assert join_section(model, "Convergence").endswith("initial weights kept")
    assert "0 iterations" in join_section(model, "Convergence")


def test_selected_weights():
    X, _ = make_moons(300, noise=0.07, random_state=0)
    for bandwidth in ("local", 0.3):
        model = CDSK(2, bandwidth=bandwidth, random_state=0).fit(X)
        choice = model.weight_choice_
        assert choice.kept == ("learned" if bandwidth == "local" else "initial")
        text = join_section(model, "Weights")
        assert f"The {choice.kept} weights were kept, not the " in text
        assert f"cohesion {choice.cohesion[0]:.3f} by the learned" in text
        summary = model.report().to_dict()["weights"]["weight_choice"]
        assert summary["kept"] == choice.kept
        assert summary["mean_agreement"] == choice.mean_agreement.tolist()


def test_selected_lambda():
    model = CDSK(3, lam="auto", random_state=0).fit(blobs())
    choice = model.lambda_choice_
    text = join_section(model, "Weights")
    assert f"criterion {choice.criterion!r} on a sample of {choice.n_sample}" in text
    assert f"{choice.curve.min():.3g} (lam={choice.lam:.3g})" in text


def test_representation_scores():
    X, _ = make_blobs(150, 64, centers=3, random_state=0)
    model = CDSK(3, random_state=0).fit(X)
    text = join_section(model, "Data")
    scores = model.representation_.scores
    assert model.representation_.view == "raw"
    assert text.startswith("150 points, 64 features (raw) Agreement across scales: ")
    assert f"raw {scores['raw']:.3f} (selected), standardized " in text
    assert f" standardized {scores['standardize']:.3f}, whitened to" in text
    assert f"whitened to 20 components {scores['whiten 20']:.3f}" in text
    model = CDSK(3, representation="whiten", n_components=20, random_state=0).fit(X)
    expected = "150 points, 64 features (whitened to 20 components)"
    assert join_section(model, "Data") == expected


def test_support_of_view_and_layout(monkeypatch):
    monkeypatch.setattr("cdsk._view_choice._MIN_LAYOUT_POINTS", 100)
    monkeypatch.setattr("cdsk._view_choice._MIN_LAYOUT_POINTS_PER_CLUSTER", 10)
    X, _ = make_blobs(200, 5, centers=4, cluster_std=3.0, random_state=0)
    model = CDSK(4, representation="auto", random_state=0).fit(X)
    support = model.representation_.support
    text = join_section(model, "Data")
    assert "Support (share of the votes times balance): raw " in text
    assert f"layout in 10 dimensions {support['layout 10']:.3f}" in text
    assert "View and layout" in model.report(X)._repr_html_()


def test_eighty_clusters():
    X, _ = make_blobs(390, 4, centers=80, cluster_std=0.5, random_state=0)
    # one kernel and no iterations: 80 eigenvectors take time
    model = CDSK(80, bandwidth="local", max_iter=0, random_state=0).fit(X)
    lines = str(model.report()).split("\n")
    assert 20 <= len(lines) <= 40
    assert max(map(len, lines)) <= WIDTH
    margin = np.bincount(model.labels_, model.margins_) / np.bincount(model.labels_)
    rows = get_section(model, "Clusters")[-MAX_CLUSTERS:]
    shown = [int(row.split()[0]) for row in rows]
    hidden = np.delete(margin, shown)
    assert margin[shown].max() <= hidden.min()


@pytest.mark.parametrize("n", [2, 3, 4])
def test_few_points(n):
    model = CDSK(2, random_state=0).fit(np.arange(n)[:, np.newaxis] ** 2.0)
    assert f"CDSK: {n} points" in str(model.report())


# --- profiles -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def mixed():
    """A model with noise, and a table of numbers, text, dates and missing cells."""
    X = np.concatenate([blobs(), np.random.default_rng(6).uniform(-9, 9, (20, 3))])
    model = CDSK(3, noise=0.05, random_state=0).fit(X)
    frame = pd.DataFrame(X, columns=["a", "b" * 90, "c"])
    frame["text"] = np.where(model.labels_ == 1, "red", "blue")
    frame["day"] = pd.Timestamp("2026-01-01")
    frame.loc[model.labels_ == 2, "c"] = np.nan
    return model, frame


def test_profiles_are_those_of_the_model(mixed):
    model, frame = mixed
    report = model.report(frame)
    expected = model.profiles(frame.drop(columns="day"))
    assert report.to_dict()["profiles"] == expected.summarize(4)
    text = " ".join(str(report).split())
    for profile in expected.summarize(4):
        assert profile["features"] or profile["cluster"] < 0
        sentence = describe_profile(profile)
        assert " ".join(sentence.split()).replace(" ", "") in text.replace(" ", "")
    assert "noise, " in text
    assert max(map(len, str(report).split("\n"))) <= WIDTH


def test_without_a_table_there_are_no_profiles(model):
    assert model.report().to_dict()["profiles"] is None
    assert "Profiles" not in str(model.report())


def test_infinite_values_do_not_stop_a_report(mixed):
    model, frame = mixed
    frame = frame.copy()
    frame.loc[3, "a"] = np.inf
    missing = frame.replace(np.inf, np.nan)
    found = model.report(frame).to_dict()["profiles"]
    assert found == model.report(missing).to_dict()["profiles"]


def test_features_that_differ_most_are_shown(mixed):
    model, frame = mixed
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.normal(size=(len(frame), MAX_FEATURES + 8)))
    wide.columns = [f"x{j}" for j in range(wide.shape[1])]
    wide.insert(0, "day", frame["day"])
    wide.insert(5, "text", frame["text"])
    wide["x3"] += model.labels_ == 0
    shown = model.report(wide).to_dict()["features"]["shown"]
    names = [feature["name"] for feature in shown]
    assert names[0] == "text"
    assert "x3" in names[:3]
    assert len(names) == MAX_FEATURES
    assert "day" not in names
    profiles = model.profiles(wide.drop(columns="day"))
    columns = wide.columns.drop("day")
    assert names == [columns[j] for j in profiles.order_columns()[:MAX_FEATURES]]
    # columns that have no profile come last
    days = pd.concat([frame[["day"]]] * (MAX_FEATURES + 1), axis=1)
    days.columns = [f"d{j}" for j in range(days.shape[1])]
    shown = model.report(days.assign(text=frame["text"])).to_dict()["features"]["shown"]
    assert [f["name"] for f in shown] == ["text", *days.columns[: MAX_FEATURES - 1]]


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        ((0.78, 2.49), ("0.8", "2.5")),
        ((1115.7, 564.03), ("1116", "564")),
        ((1013.21, 1012.93), ("1013.21", "1012.93")),
        ((0.02, 11.0), ("0.02", "11")),
        ((0.0, 11.0), ("0", "11")),
        ((3.0, 3.0), ("3.0", "3.0")),
        ((0.0, 0.0), ("0", "0")),
        ((1e-9, 3e-9), ("1e-09", "3e-09")),
        ((1.23e12, 4.56e12), ("1.2e+12", "4.6e+12")),
        ((-1.7e308, 1.7e308), ("-1.7e+308", "1.7e+308")),
    ],
)
def test_pairs_show_their_difference(pair, expected):
    assert format_pair(*pair) == expected


def test_shares_and_names_in_words():
    shares = [0.0, 0.0001, 0.003, 0.5, 0.999, 1.0]
    expected = ["0%", "<0.1%", "<1%", "50%", ">99%", "100%"]
    assert [format_share(share) for share in shares] == expected
    assert shorten_name("a\n b") == "a b"
    assert shorten_name("x" * 99) == "x" * 39 + "…"
    assert shorten_name("عمر") == "\u2068عمر\u2069"


# --- warnings -----------------------------------------------------------------------


def test_no_warnings():
    X, _ = make_moons(300, noise=0.05, random_state=0)
    model = CDSK(2, bandwidth=0.2, random_state=0).fit(X)
    assert join_section(model, "Warnings") == "none"


def test_warnings_about_margins(model):
    margins = np.full(140, 0.5)
    margins[:8], margins[8:10] = -0.1, 0.0
    text = join_section(copy_with(model, margins_=margins), "Warnings")
    assert "8 points (6%) have a negative margin" in text
    assert "2 points have margin 0" in text


def test_warnings_about_clusters(model):
    labels = np.zeros(140, dtype=np.int64)
    labels[-2:] = 1
    weights = np.where(labels == 0, 1 / 138, 0.0)
    odd = copy_with(model, clusters_=labels, weights_=weights)
    text = join_section(odd, "Warnings")
    assert "Found 2 clusters, fewer than n_clusters=3." in text
    assert "Cluster 1 is smaller than 10% of the mean cluster size" in text
    assert "Cluster 1 has zero weight: predict never returns it." in text


def test_warning_about_disagreeing_kernels(model):
    scores = np.array([0.24, 0.2])
    choice = Choice(
        ("a", "b"), scores, *np.ones((2, 2)), np.eye(2), np.ones(2, bool), 0
    )
    text = join_section(copy_with(model, choice_=choice), "Warnings")
    assert "The candidate kernels disagree (best score 0.24)" in text


@pytest.mark.parametrize(
    "name, field, gain",
    [
        ("raw", "scores", MIN_GAIN),
        ("raw", "support", MIN_LAYOUT_GAIN),
        ("chi_square", "scores", MIN_CODING_GAIN),
    ],
)
@pytest.mark.parametrize(
    "ratio, is_close", [(0.8, False), (0.95, True), (1.05, True), (1.2, False)]
)
def test_close_calls_between_views(model, name, field, gain, ratio, is_close):
    values = {name: 0.4, "whiten 20": 0.1, "layout 2": 0.4 * gain * ratio}
    representation = replace(model.representation_, name=name, **{field: values})
    text = join_section(copy_with(model, representation_=representation), "Warnings")
    assert ("close call between" in text) == is_close
    assert ("layout in 2 dimensions" in text) == is_close


def test_warnings_about_convergence():
    with pytest.warns(ConvergenceWarning, match="did not converge in max_iter=1"):
        model = CDSK(3, bandwidth=2.0, max_iter=1, random_state=0).fit(blobs())
    decrease = model.history_[-2] - model.history_[-1]
    text = join_section(model, "Warnings")
    assert "Not converged after max_iter=1: the last iteration decreased" in text
    assert f"the objective by {decrease:.1e}." in text
    # the last allowed iteration may converge
    assert not model.converged_
    assert "max_iter" not in join_section(copy_with(model, converged_=True), "Warnings")
    text = join_section(copy_with(model, qp_gap_=1e-3), "Warnings")
    assert "The KKT gap of the weights exceeds qp_tol=1.0e-04." in text


def test_lists_of_clusters_are_shortened():
    assert format_clusters([3]) == "Cluster 3"
    assert format_clusters(range(12)) == "Clusters 0, 1, 2, 3, 4, 5, 6, 7, ..."


def fit_quickly(data):
    """Fit without iterations: warnings about features do not depend on them."""
    model = CDSK(2, representation="raw", max_iter=0, n_init=1, random_state=0)
    return model.fit(data)


def iris_with_noise(unit, n_noise=1):
    X = load_iris().data
    noise = np.random.default_rng(0).normal(size=(len(X), n_noise))
    return np.concatenate([X, unit * noise], axis=1)


@pytest.mark.parametrize(
    "data",
    [
        load_iris().data,
        scale(load_wine().data),
        load_digits().data[:600],
        make_moons(200, noise=0.05, random_state=0)[0],
        blobs()[:, :1],
        np.concatenate([blobs()[:, :1], np.full((120, 3), 0.1)], axis=1),
        iris_with_noise(1.0),
        iris_with_noise(1e5, 4),
    ],
    ids=["iris", "wine", "digits", "moons", "one", "constant", "noise", "four"],
)
def test_features_in_comparable_units(data):
    assert "variance" not in join_section(fit_quickly(data), "Warnings")


@pytest.mark.parametrize(
    ("data", "listed"),
    [
        (load_wine(as_frame=True).data, "Feature 12 ('proline') has"),
        (load_wine().data, "Feature 12 has"),
        (iris_with_noise(1e5), "Feature 4 has"),
        (iris_with_noise(1e5, 2)[:, [4, 1, 5, 0]], "Features 2 and 0 have"),
        (1e140 * iris_with_noise(1e5), "Feature 4 has"),
        (1e-130 * iris_with_noise(1e5), "Feature 4 has"),
    ],
)
def test_warning_about_dominant_features(data, listed):
    text = join_section(fit_quickly(data), "Warnings")
    assert f"{listed} more than 99% of the variance and dominate" in text


def test_no_feature_warning_for_other_kernels_and_representations():
    X = iris_with_noise(1e5)
    for parameters in ({}, {"representation": "whiten"}, {"kernel": "cosine"}):
        model = CDSK(2, random_state=0, **parameters).fit(X)
        assert "variance" not in join_section(model, "Warnings")
    K = gaussian(blobs(), blobs())
    model = CDSK(3, kernel="precomputed", random_state=0).fit(K)
    assert model.representation_.spread is None
    assert "variance" not in join_section(model, "Warnings")


@pytest.mark.parametrize("spread", [0.0, np.inf])
def test_zero_and_infinite_spread(model, spread):
    representation = replace(model.representation_, spread=np.full(3, spread))
    copy = copy_with(model, representation_=representation)
    assert "variance" not in join_section(copy, "Warnings")


def test_spread_is_that_of_the_raw_data():
    X = iris_with_noise(1e5)
    for view in ("auto", "raw", "normal_scores", "whiten"):
        model = CDSK(2, representation=view, random_state=0).fit(X)
        np.testing.assert_allclose(model.representation_.spread, X.std(axis=0))


# --- plain data ---------------------------------------------------------------------


def test_summary_agrees_with_the_model(model):
    summary = model.report().to_dict()
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    assert (summary["schema"], summary["schema_version"]) == ("cdsk-report", 2)
    assert (summary["estimator"], summary["blocks"]) == ("CDSK", None)
    assert summary["data"]["n_points"] == summary["data"]["n_rows"] == 140
    assert summary["eigenvalues"]["values"] == model.eigenvalues_.tolist()
    assert summary["convergence"]["objective"] == model.history_.tolist()
    assert summary["convergence"]["qp_gap"] == model.qp_gap_
    assert summary["weights"]["n_support"] == len(model.support_)
    bandwidth = summary["kernel"]["bandwidth"]
    assert bandwidth["median"] == np.median(model.bandwidth_)
    candidates = summary["kernel"]["candidates"]
    assert [c["score"] for c in candidates] == model.choice_.scores.tolist()
    assert [c["chosen"] for c in candidates].index(True) == model.choice_.chosen
    for y, cluster in enumerate(summary["clusters"]["per_cluster"]):
        members = model.clusters_ == y
        assert (cluster["cluster"], cluster["size"]) == (y, members.sum())
        assert cluster["weight"] == pytest.approx(model.weights_[members].sum())
        assert cluster["confidence"] == pytest.approx(model.margins_[members].mean())


def test_rows_of_the_summary(model):
    X = np.random.default_rng(0).normal(size=(140, 2))
    names = [f"row {i}" for i in range(140)]
    summary = model.report(X, feature_names="ab", row_names=names).to_dict()
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    assert summary["features"] == {
        "n_columns": 2,
        "shown": [{"column": 0, "name": "a"}, {"column": 1, "name": "b"}],
    }
    listed = set(summary["outliers"]["least_typical"])
    for cluster in summary["clusters"]["per_cluster"]:
        listed |= {*cluster["most_typical"], *cluster["least_typical"]}
    assert {row["row"] for row in summary["rows"]} == listed
    for row in summary["rows"]:
        i = row["row"]
        assert row["name"] == names[i]
        assert row["values"] == X[i].tolist()
        for entry, attribute in (
            ("cluster", model.clusters_),
            ("label", model.labels_),
            ("weight", model.weights_),
            ("margin", model.margins_),
            ("typicality", model.typicality_),
        ):
            assert row[entry] == attribute[i]


@pytest.mark.parametrize(
    "options",
    [
        {"noise": 0.05},
        {"min_cluster_size": 40, "max_cluster_size": 0.5},
        {"n_clusters": "auto", "lam": "auto"},
        {"bandwidth": 1.5, "max_iter": 0},
        {"kernel": "precomputed", "psd": False},
        {"approximation": "lowrank", "bandwidth": 1.5},
    ],
)
def test_summary_of_every_selection_is_plain_data(options):
    X = blobs()
    X = gaussian(X, X) if options.get("kernel") == "precomputed" else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CDSK(**{"n_clusters": 3, "random_state": 0, **options}).fit(X)
    summary = model.report().to_dict()
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    if "noise" in options:
        noise = summary["outliers"]["noise"]
        assert noise["n_points"] == np.sum(model.labels_ < 0)
        assert noise["thresholds"] == model.noise_.thresholds.tolist()
    if "lam" in options:
        assert summary["weights"]["lam_choice"]["curve"] == list(
            model.lambda_choice_.curve
        )
        assert summary["clusters"]["count_choice"]["scores"] == list(
            model.count_choice_.scores
        )
    if "approximation" in options:
        error = model.approximation_.trace_error
        assert summary["kernel"]["approximation"]["trace_error"] == error


def test_every_key_is_documented(model):
    text = (Path(__file__).parents[1] / "docs" / "report.md").read_text("utf-8")
    with_all = CDSK(
        "auto", lam="auto", noise=0.05, min_cluster_size=2, random_state=0
    ).fit(blobs())
    block = BlockCDSK(3, random_state=0).fit(blobs())
    low = CDSK(3, approximation="lowrank", bandwidth=1.5, random_state=0).fit(blobs())
    frame = pd.DataFrame({"number": [0.0, 1.0, None] * 30, "city": ["a", "b"] * 45})
    table = CDSK(2, random_state=0).fit(frame)

    by_column = ("count", "association", "categories")

    def keys(summary):
        if isinstance(summary, dict):
            for name, value in summary.items():
                yield name
                # the keys of some are representations or columns
                if not name.startswith("representation_s") and name not in by_column:
                    yield from keys(value)
        elif isinstance(summary, list):
            for value in summary:
                yield from keys(value)

    for fitted in (model, with_all, block, low, table):
        X = None if fitted is block else np.zeros((len(fitted.labels_), 1))
        report = fitted.report() if X is None else fitted.report(X)
        for name in set(keys(report.to_dict())):
            assert f"`{name}`" in text, name


def test_summary_of_blocks():
    model = BlockCDSK(3, random_state=0).fit(blobs(600))
    summary = model.report().to_dict()
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    assert summary["estimator"] == "BlockCDSK"
    assert summary["blocks"]["sizes"] == np.bincount(model.labels_).tolist()
    assert summary["blocks"]["n_landmarks"] == summary["data"]["n_rows"]
    assert summary["rows"][0]["name"].startswith("landmark ")


def test_report_does_not_change_with_its_model(model):
    later = copy_with(model)
    report = later.report()
    before, text = report.to_dict(), str(report)
    later.fit(blobs(seed=1))
    summary = report.to_dict()
    summary["clusters"].clear()
    assert report.to_dict() == before
    assert str(report) == repr(report) == text
    assert str(pickle.loads(pickle.dumps(report))) == text
