# SPDX-License-Identifier: BSD-3-Clause
"""The command line: options, summary, outputs, and every refusal by its words."""

import csv
import functools
import inspect
import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from cdsk import CDSK, __version__
from cdsk._choices.representation import VIEWS
from cdsk._cli import cluster, options
from cdsk._cli import main as _cli
from cdsk._kernels.bandwidth import RULES
from cdsk._parameters import METRICS


@pytest.fixture(scope="module")
def points():
    return make_blobs(60, centers=3, cluster_std=0.6, random_state=0)[0]


@pytest.fixture
def data(tmp_path, points):
    path = tmp_path / "data.npy"
    np.save(path, points)
    return path


@pytest.fixture
def refuse(cdsk):
    """Run a command that must fail; return what its one line says."""

    def run(*arguments):
        status, out, err = cdsk(*arguments)
        assert status == 2
        assert out == ""
        assert err.startswith("cdsk: error: ")
        assert err.count("\n") == 1
        return err.removeprefix("cdsk: error: ").rstrip("\n")

    return run


# --- cluster ------------------------------------------------------------------------


def test_labels_on_standard_output(cdsk, data, points):
    status, out, err = cdsk("cluster", data, "-k", 3)
    assert status == 0
    rows = list(csv.reader(out.splitlines()))
    model = CDSK(3, random_state=0).fit(points)
    assert rows[0] == ["label", "weight"]
    assert [int(label) for label, _ in rows[1:]] == model.labels_.tolist()
    assert [float(weight) for _, weight in rows[1:]] == model.weights_.tolist()

    lines = err.splitlines()
    assert all(line.startswith("cdsk: ") for line in lines)
    assert lines[0] == "cdsk: 60 points, 2 features"
    sizes = ", ".join(map(str, np.bincount(model.labels_)))
    assert lines[1] == f"cdsk: 3 clusters of {sizes} points"
    for part in (f"{len(model.support_)} points with weight", "bandwidth", "QP gap"):
        assert part in lines[2]


def test_labels_in_a_file(cdsk, data, tmp_path):
    _, expected, _ = cdsk("cluster", data, "-k", 3)
    output = tmp_path / "labels.csv"
    status, out, _ = cdsk("cluster", data, "-k", 3, "-o", output)
    assert (status, out) == (0, "")
    assert output.read_text() == expected


def test_every_format_gives_the_same_labels(cdsk, data, points, tmp_path):
    np.savez(tmp_path / "data.npz", X=points)
    np.savetxt(tmp_path / "data.csv", points, "%.17g", ",", header="u,v", comments="")
    np.savetxt(tmp_path / "data.txt", points, "%.17g")
    expected = cdsk("cluster", data, "-k", 3)[1]
    for name in ("data.npz", "data.csv", "data.txt"):
        status, out, _ = cdsk("cluster", tmp_path / name, "-k", 3)
        assert (status, out) == (0, expected)
    assert "(u, v)" in cdsk("cluster", tmp_path / "data.csv", "-k", 3)[2]


@pytest.fixture
def standard_input(tmp_path):
    """Make a text the standard input of this process."""
    before = os.dup(0)

    def become(text):
        path = tmp_path / "standard input"
        path.write_bytes(text)
        with open(path, "rb") as file:
            os.dup2(file.fileno(), 0)

    yield become
    os.dup2(before, 0)
    os.close(before)


def test_standard_input(cdsk, refuse, data, points, tmp_path, standard_input):
    expected = cdsk("cluster", data, "-k", 3)[1]
    text = "\n".join(f"{x!r};{y!r}".replace(".", ",") for x, y in points.tolist())
    standard_input(text.encode())
    assert cdsk("cluster", "-", "-k", 3, "--decimal", ",")[:2] == (0, expected)
    standard_input(text.replace(",", ".").replace(";", "\t").encode())
    status, out, _ = cdsk("cluster", "-", "-k", 3, "--delimiter", "tab", "-o", "-")
    assert (status, out) == (0, expected)
    for text, message in (
        (b"", "expected a row of numbers for each point; got nothing."),
        (b"\x93\xff", "expected UTF-8 text; got the byte 0x93."),
        (b"\0\1\2\n" * 3, "row 2, column 1"),
    ):
        standard_input(text)
        said = refuse("cluster", "-", "-k", 3)
        assert "standard input" in said
        assert message in said


def test_id_beside_the_labels(cdsk, data, points, tmp_path):
    labels = cdsk("cluster", data, "-k", 3)[1].splitlines()
    path = tmp_path / "named.csv"
    rows = [f"{x!r},'{i}',{y!r}" for i, (x, y) in enumerate(points.tolist())]
    path.write_text("\n".join(["x,who,y", *rows]))
    names = ["who", *(f"'{i}'" for i in range(len(points)))]
    expected = [f"{a},{b}" for a, b in zip(names, labels, strict=True)]
    status, out, err = cdsk("cluster", path, "-k", 3, "--id", "who")
    assert (status, out.splitlines()) == (0, expected)
    assert err.startswith("cdsk: 60 points, 2 features (x, y)\n")


def test_doubtful_names_are_told(cdsk, points, tmp_path):
    path = tmp_path / "years.csv"
    np.savetxt(path, points, "%.17g", ",", header="2019,2020", comments="")
    said = "cdsk: warning: The first row, ['2019', '2020'], is taken for a point"
    assert said in cdsk("cluster", path, "-k", 3)[2]
    for option, n_points in (("--header", 60), ("--no-header", 61)):
        err = cdsk("cluster", path, "-k", 3, option)[2]
        assert "first row" not in err
        assert f"cdsk: {n_points} points, 2 features" in err


def test_same_seed_same_labels_for_any_number_of_threads(cdsk, data):
    runs = [cdsk("cluster", data, "-k", 5, "--seed", 7, "--threads", t) for t in (1, 2)]
    assert runs[0][:2] == runs[1][:2]


def test_number_of_clusters_may_be_chosen(cdsk, data, points):
    status, _, err = cdsk("cluster", data, "-k", "auto", "--report")
    model = CDSK("auto", random_state=0).fit(points)
    assert status == 0
    assert err.splitlines()[1].startswith(f"cdsk: {model.n_clusters_} clusters of ")
    assert f"runner-up {model.count_choice_.runner_up}" in err


def test_options_reach_the_estimator(cdsk, data, points, monkeypatch):
    seen = {}

    def fit(self, X):
        seen.update(self.get_params(), X=X)
        raise ValueError("enough")

    monkeypatch.setattr(CDSK, "fit", fit)
    options = "--lam 0.5 --max-iter 3 --seed 4 --threads 2 --verbose --bandwidth 1.5"
    options += " --representation whiten --components 1 --noise 0.02 --metric cosine"
    cdsk("cluster", data, "-k", 3, "--columns", "2", *options.split())
    expected = dict(n_clusters=3, lam=0.5, max_iter=3, random_state=4, n_threads=2)
    expected |= dict(verbose=1, bandwidth=1.5, noise=0.02)
    expected |= dict(representation="whiten", n_components=1, metric="cosine")
    assert {name: seen[name] for name in expected} == expected
    np.testing.assert_allclose(seen["X"], points[:, [1]], rtol=0, atol=1e-12)


def test_defaults_are_those_of_the_estimator():
    arguments = _cli.parser().parse_args(["cluster", "x.csv", "-k", "2"])
    defaults = inspect.signature(CDSK).parameters
    for name in ("bandwidth", "lam", "max_iter", "metric", "representation", "noise"):
        assert getattr(arguments, name) == defaults[name].default
    assert arguments.threads == defaults["n_threads"].default
    assert tuple(cluster.RULES) == ("auto", *RULES)
    assert tuple(cluster.VIEWS) == ("auto", *VIEWS)
    assert cluster.METRICS == METRICS


def test_seconds_are_those_of_the_fit(cdsk, data, monkeypatch):
    """Not those of what comes before, imports above all."""
    now = 0.0
    methods = CDSK.__init__, CDSK.fit

    def taking(seconds, method):
        @functools.wraps(method)
        def slow(*arguments, **options):
            nonlocal now
            now += seconds
            return method(*arguments, **options)

        return slow

    monkeypatch.setattr(CDSK, "__init__", taking(100.0, methods[0]))
    monkeypatch.setattr(CDSK, "fit", taking(2.5, methods[1]))
    monkeypatch.setattr(cluster, "time", SimpleNamespace(perf_counter=lambda: now))
    assert cdsk("cluster", data, "-k", 3)[2].endswith(", 2.50 s\n")


def test_rows_without_a_direction(cdsk, refuse, tmp_path):
    pytest.importorskip("skops", reason="skops is not installed")
    angle = np.linspace(0, 6, 12)
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    table, model = tmp_path / "table.npy", tmp_path / "model.skops"
    np.save(table, X)
    assert (
        cdsk("cluster", table, "-k", 2, "--metric", "cosine", "--save", model)[0] == 0
    )
    X[[3, 7]] = 0
    np.save(table, X)
    for asked in (
        ("cluster", table, "-k", 2, "--metric", "cosine"),
        ("predict", model, table),
    ):
        said = refuse(*asked)
        assert "zeros only in rows 3, 7 (2 in all, counted from 0)" in said
        assert "Leave such rows out" in said


def test_noise_is_counted(cdsk, tmp_path, points):
    path = tmp_path / "noisy.npy"
    np.save(path, np.concatenate([points, [[40.0, 40.0], [-40.0, 30.0]]]))
    _, out, err = cdsk("cluster", path, "-k", 3, "--noise", 0.001)
    labels = [int(line.split(",")[0]) for line in out.splitlines()[1:]]
    assert labels[60:] == [-1, -1]
    sizes = ", ".join(str(labels.count(y)) for y in range(3))
    assert f"3 clusters of {sizes} points, {labels.count(-1)} points of noise" in err
    assert "of noise" not in cdsk("cluster", path, "-k", 3)[2]


@pytest.mark.parametrize("rule", RULES)
def test_bandwidth_rules(cdsk, data, rule):
    status, _, err = cdsk("cluster", data, "-k", 3, "--bandwidth", rule)
    assert status == 0
    assert ("one per point" in err) == (rule == "local")


def test_rounds_are_reported_on_standard_error(cdsk, data):
    _, out, err = cdsk("cluster", data, "-k", 3, "--verbose", "--verbose")
    assert "[CDSK] round  1" in err
    assert "[CDSK]" not in out


@pytest.mark.parametrize("option", ["--max-iter=0", "--lam=1"])
def test_first_weights_kept(cdsk, data, option):
    assert "first weights kept" in cdsk("cluster", data, "-k", 3, option)[2]


def test_warnings_take_one_line(cdsk, data):
    status, _, err = cdsk("cluster", data, "-k", 3, "--max-iter", 1)
    (warning,) = [line for line in err.splitlines() if "warning" in line]
    assert status == 0
    assert warning.startswith("cdsk: warning: The alternation did not converge in max_")


# --- refusals -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "arguments are required: {cluster,predict,demo} (see cdsk --help)"),
        ("fly", "invalid choice: 'fly'"),
        ("cluster", "arguments are required: DATA, -k/--clusters"),
        (
            "cluster x.csv -k two",
            "-k/--clusters: expected an integer or auto; got 'two'",
        ),
        ("cluster x.csv -k 2 --lam a", "argument --lam: invalid float value: 'a'"),
        ("cluster x.csv -k 2 --bandwidth b", "std, median, local or a number; got 'b'"),
        ("cluster x.csv -k 2 --seed -1", "an integer from 0 to 4294967295; got '-1'"),
        ("cluster x.csv -k 2 --wings", "unrecognized arguments: --wings"),
        ("cluster x.csv -k 2 --delimiter ab", "tab or space; got 'ab'"),
        ("cluster x.csv -k 2 --delimiter 1", "that no number has, tab or space; got"),
        ("cluster x.csv -k 2 --decimal x", "argument --decimal: invalid choice: 'x'"),
        (
            "cluster x.csv -k 2 --decimal , --delimiter ,",
            "--delimiter and --decimal must differ; got ',' twice.",
        ),
        ("cluster none.csv -k 2", "cannot read none.csv: No such file or directory."),
        ("cluster x.doc -k 2", "cannot tell the format of x.doc"),
    ],
)
def test_bad_usage(refuse, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert message in refuse(*arguments.split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("-k 0", "n_clusters must be an integer of at least"),
        ("-k 61", "got n_clusters=61 and n_samples=60."),
        ("-k 2 --lam 2", "lam must be a number > 0 and <= 1; got 2.0."),
        ("-k 2 --noise 1", "noise must be a number >= 0 and <= 0.5; got 1.0."),
        ("-k 2 --bandwidth=-1", "bandwidth must be a number > 0; got -1.0."),
        ("-k 2 --bandwidth nan", "bandwidth must be a number > 0; got nan."),
        ("-k 2 --max-iter=-1", "max_iter must be an integer of at least 0; got -1."),
        ("-k 2 --threads 0", "n_threads must be a positive integer"),
        ("-k 2 --columns 1,z", "no columns 'z': expected a number from 1 to 2."),
        ("-k 2 --id 3", "no columns '3': expected a number from 1 to 2."),
        ("-k 2 --header", "only a text takes --header"),
    ],
)
def test_bad_options(refuse, data, options, message):
    assert message in refuse("cluster", data, *options.split())


@pytest.fixture
def no_fit(monkeypatch):
    def fit(*_):
        raise AssertionError("refused too late")

    monkeypatch.setattr(CDSK, "fit", fit)


@pytest.mark.usefixtures("no_fit")
@pytest.mark.parametrize("option", ["-o", "--plot", "--html", "--json", "--save"])
def test_bad_outputs_are_refused_before_the_fit(refuse, data, tmp_path, option):
    def said(path):
        return refuse("cluster", data, "-k", 3, option, path)

    missing = tmp_path / "none" / "a.png"
    assert said(missing) == (
        f"{option} {missing}: the folder {missing.parent} does not exist."
    )
    assert "expected the name of a file; got a folder" in said(tmp_path)
    assert f"would overwrite {data}" in said(data)


@pytest.mark.usefixtures("no_fit")
@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere"
)
def test_no_permission(refuse, data, tmp_path):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    assert "no permission" in refuse("cluster", data, "-k", 3, "-o", locked / "l.csv")


@pytest.mark.usefixtures("no_fit")
def test_picture_and_labels_must_differ(refuse, data, tmp_path):
    both = tmp_path / "a.png"
    said = refuse("cluster", data, "-k", 3, "-o", both, "--plot", both)
    assert f"--plot {both}: would overwrite {both}" in said


@pytest.mark.usefixtures("no_fit")
def test_plot_without_matplotlib(refuse, data, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    said = refuse("cluster", data, "-k", 3, "--plot", tmp_path / "a.png")
    assert said.endswith("not installed: pip install cdsk[plot]")


@pytest.mark.usefixtures("no_fit")
def test_plot_of_unknown_format(refuse, data, tmp_path):
    pytest.importorskip("matplotlib")
    said = refuse("cluster", data, "-k", 3, "--plot", tmp_path / "a.doc")
    assert "cannot tell the format of the picture" in said
    assert ".png" in said


def test_failure_leaves_the_old_output(refuse, data, tmp_path):
    output = tmp_path / "labels.csv"
    output.write_text("precious")
    refuse("cluster", data, "-k", 61, "-o", output)
    assert output.read_text() == "precious"


def test_labels_are_not_lost_if_the_disk_is_full(cdsk, data, monkeypatch, tmp_path):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    output = tmp_path / "labels.csv"
    status, out, err = cdsk("cluster", data, "-k", 3, "-o", output)
    assert status == 2
    assert out.startswith("label,weight\n")
    assert err == (
        f"cdsk: error: cannot write {output}: No space left on device. The labels went "
        "to stdout instead.\n"
    )


NO_SPACE = "cdsk: error: cannot use standard output: No space.\n"


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (KeyboardInterrupt(), 130, "cdsk: interrupted\n"),
        (MemoryError("K needs\n  9 bytes"), 2, "cdsk: error: K needs 9 bytes\n"),
        (MemoryError(), 2, "cdsk: error: there is too little memory.\n"),
        (OSError(28, "No space"), 2, NO_SPACE),
        (OSError(2, "No such", "x"), 2, "cdsk: error: cannot use x: No such.\n"),
    ],
)
def test_interruptions(cdsk, data, monkeypatch, tmp_path, error, status, message):
    def fit(*_):
        raise error

    monkeypatch.setattr(CDSK, "fit", fit)
    output = tmp_path / "labels.csv"
    assert cdsk("cluster", data, "-k", 3, "-o", output) == (status, "", message)
    assert not output.exists()


def test_bugs_keep_their_traceback(data, monkeypatch):
    def fit(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(CDSK, "fit", fit)
    with pytest.raises(ZeroDivisionError):
        _cli.main(["cluster", str(data), "-k", "3"])


def test_report_goes_to_standard_error(cdsk, data, points):
    status, out, err = cdsk("cluster", data, "-k", 3, "--report", "--lam", 0.2)
    assert status == 0
    assert out == cdsk("cluster", data, "-k", 3, "--lam", 0.2)[1]
    model = CDSK(3, lam=0.2, random_state=0).fit(points)
    assert err.endswith(str(model.report()) + "\n")


def test_report_as_json(cdsk, points, tmp_path):
    path = tmp_path / "named.csv"
    rows = [f"{x!r},row {i},{y!r}" for i, (x, y) in enumerate(points.tolist())]
    path.write_text("\n".join(["x,who,y", *rows]))
    options = ["cluster", path, "-k", 3, "--id", "who"]
    labels = cdsk(*options)[1]
    names = [f"row {i}" for i in range(len(points))]
    model = CDSK(3, random_state=0).fit(points)
    report = model.report(points, feature_names=["x", "y"], row_names=names)
    status, out, _ = cdsk(*options, "--json", tmp_path / "report.json")
    assert (status, out) == (0, labels)
    assert json.loads((tmp_path / "report.json").read_text()) == report.to_dict()
    output = tmp_path / "labels.csv"
    status, out, _ = cdsk(*options, "-o", output, "--json", "-")
    assert (status, json.loads(out)) == (0, report.to_dict())
    assert output.read_text() == labels


def test_report_as_a_page(cdsk, data, points, tmp_path):
    page, expected = tmp_path / "report.html", tmp_path / "expected.html"
    assert cdsk("cluster", data, "-k", 3, "--html", page)[0] == 0
    CDSK(3, random_state=0).fit(points).report(points).to_html(expected)
    assert page.read_text("utf-8") == expected.read_text("utf-8")


@pytest.mark.usefixtures("no_fit")
def test_two_cannot_share_standard_output(refuse, data):
    said = refuse("cluster", data, "-k", 3, "--json", "-")
    assert said.startswith("-o and --json cannot both go to standard output")


@pytest.mark.usefixtures("no_fit")
def test_outputs_must_differ(refuse, data, tmp_path):
    both = tmp_path / "a.html"
    said = refuse("cluster", data, "-k", 3, "--json", both, "--html", both)
    assert said == f"--html {both}: would overwrite {both}."


@pytest.mark.usefixtures("no_fit")
@pytest.mark.parametrize("option", ["--html", "--save", "--plot"])
def test_what_is_no_text_does_not_go_to_standard_output(refuse, data, option):
    said = refuse("cluster", data, "-k", 3, option, "-")
    assert said == f"{option} -: expected the name of a file."


def test_progress_of_long_work(cdsk, data, monkeypatch):
    assert "[CDSK]" not in cdsk("cluster", data, "-k", 3)[2]
    monkeypatch.setattr(cluster, "LONG_ROWS", 59)
    monkeypatch.setattr(options, "LONG_FILE", 100)
    status, out, err = cdsk("cluster", data, "-k", 3)
    assert status == 0
    assert err.startswith(f"cdsk: reading {data}, 0 MB\n")
    assert "[CDSK] done in" in err
    assert "[CDSK]" not in out
    assert cdsk("cluster", data, "-k", 3, "--quiet") == (0, out, "")


def test_exit_statuses_are_documented(capsys):
    with pytest.raises(SystemExit):
        _cli.main(["--help"])
    text = " ".join(capsys.readouterr().out.split())
    for status in ("0 if all", f"{_cli.FAILURE} if", f"{_cli.INTERRUPTED} if", "1 for"):
        assert f" {status} " in text


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell's pipe")
def test_reader_that_goes_away(data):
    command = [sys.executable, "-m", "cdsk", "cluster", str(data), "-k", "3"]
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as gone:
        done = subprocess.run(
            command, stdout=gone, stderr=subprocess.PIPE, text=True, timeout=120
        )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "error" not in done.stderr


# --- the rest -----------------------------------------------------------------------


def test_version_of_the_module(monkeypatch, capsys):
    # as python -m does; test_reader_that_goes_away starts one
    monkeypatch.setattr(sys, "argv", ["cdsk", "--version"])
    with pytest.raises(SystemExit) as stop:
        runpy.run_module("cdsk", run_name="__main__")
    assert (stop.value.code, capsys.readouterr().out) == (0, f"cdsk {__version__}\n")


@pytest.mark.parametrize("arguments", [[], ["cluster"], ["predict"], ["demo"]])
def test_help(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        _cli.main([*arguments, "--help"])
    assert stop.value.code == 0
    assert "usage: cdsk" in capsys.readouterr().out


def test_demo_refuses_a_bad_picture_first(refuse, tmp_path):
    pytest.importorskip("matplotlib")
    assert "does not exist" in refuse("demo", "-o", tmp_path / "none" / "a.png")
    assert "cannot tell the format" in refuse("demo", "-o", tmp_path / "a.doc")
