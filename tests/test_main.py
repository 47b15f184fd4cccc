# SPDX-License-Identifier: BSD-3-Clause
"""The command line: options, summary, outputs and error messages."""

import csv
import functools
import inspect
import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from cdsk import CDSK, __version__
from cdsk._validation import BANDWIDTH_RULES, METRICS, MISSING, REPRESENTATIONS
from cdsk.cli import _cluster as cluster
from cdsk.cli import _main as cli
from cdsk.cli import _options as options


@pytest.fixture(scope="module")
def points():
    return make_blobs(60, centers=3, cluster_std=0.6, random_state=0)[0]


@pytest.fixture
def data(tmp_path, points):
    path = tmp_path / "data.npy"
    np.save(path, points)
    return path


@pytest.fixture
def run_failing(cdsk):
    """Run a command that must fail, and return its error message."""

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
    assert lines[1] == f"cdsk: 3 clusters, sizes {sizes}"
    for part in (
        f"{len(model.support_)} points with positive weight",
        "bandwidth",
        "KKT gap",
    ):
        assert part in lines[2]


def test_labels_in_a_file(cdsk, data, tmp_path):
    _, expected, _ = cdsk("cluster", data, "-k", 3)
    output = tmp_path / "labels.csv"
    status, out, _ = cdsk("cluster", data, "-k", 3, "-o", output)
    assert (status, out) == (0, "")
    assert output.read_text() == expected


def test_all_formats_give_the_same_labels(cdsk, data, points, tmp_path):
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
    """Replace the standard input of this process."""
    before = os.dup(0)

    def replace(text):
        path = tmp_path / "standard input"
        path.write_bytes(text)
        with open(path, "rb") as file:
            os.dup2(file.fileno(), 0)

    yield replace
    os.dup2(before, 0)
    os.close(before)


def test_standard_input(cdsk, run_failing, data, points, tmp_path, standard_input):
    expected = cdsk("cluster", data, "-k", 3)[1]
    text = "\n".join(f"{x!r};{y!r}".replace(".", ",") for x, y in points.tolist())
    standard_input(text.encode())
    assert cdsk("cluster", "-", "-k", 3, "--decimal", ",")[:2] == (0, expected)
    standard_input(text.replace(",", ".").replace(";", "\t").encode())
    status, out, _ = cdsk("cluster", "-", "-k", 3, "--delimiter", "tab", "-o", "-")
    assert (status, out) == (0, expected)
    for text, message in (
        (b"", "expected one row per point; got no rows."),
        (b"\x93\xff", "expected UTF-8 text; got the byte 0x93."),
        (b"\0\1\2\n" * 3, "row 1, column 1: expected a finite number"),
    ):
        standard_input(text)
        error = run_failing("cluster", "-", "-k", 3)
        assert "standard input" in error
        assert message in error


def test_id_column(cdsk, data, points, tmp_path):
    labels = cdsk("cluster", data, "-k", 3)[1].splitlines()
    path = tmp_path / "named.csv"
    rows = [f"{x!r},'{i}',{y!r}" for i, (x, y) in enumerate(points.tolist())]
    path.write_text("\n".join(["x,name,y", *rows]))
    names = ["name", *(f"'{i}'" for i in range(len(points)))]
    expected = [f"{a},{b}" for a, b in zip(names, labels, strict=True)]
    status, out, err = cdsk("cluster", path, "-k", 3, "--id", "name")
    assert (status, out.splitlines()) == (0, expected)
    assert err.startswith("cdsk: 60 points, 2 features (x, y)\n")


def test_warning_about_an_ambiguous_header(cdsk, points, tmp_path):
    path = tmp_path / "years.csv"
    np.savetxt(path, points, "%.17g", ",", header="2019,2020", comments="")
    warning = "cdsk: warning: The first row ['2019', '2020'] is read as a point"
    assert warning in cdsk("cluster", path, "-k", 3)[2]
    for option, n_points in (("--header", 60), ("--no-header", 61)):
        err = cdsk("cluster", path, "-k", 3, option)[2]
        assert "first row" not in err
        assert f"cdsk: {n_points} points, 2 features" in err


def test_labels_do_not_depend_on_the_number_of_threads(cdsk, data):
    runs = [cdsk("cluster", data, "-k", 5, "--seed", 7, "--threads", t) for t in (1, 2)]
    assert runs[0][:2] == runs[1][:2]


def test_automatic_number_of_clusters(cdsk, data, points):
    status, _, err = cdsk("cluster", data, "-k", "auto", "--report")
    model = CDSK("auto", random_state=0).fit(points)
    assert status == 0
    assert err.splitlines()[1].startswith(f"cdsk: {model.n_clusters_} clusters, sizes ")
    assert f"runner-up {model.count_choice_.runner_up}" in err


def test_options_reach_the_estimator(cdsk, data, points, monkeypatch):
    received = {}

    def fit(self, X):
        received.update(self.get_params(), X=X)
        raise ValueError("stop")

    monkeypatch.setattr(CDSK, "fit", fit)
    options = "--lam 0.5 --max-iter 3 --seed 4 --threads 2 --verbose --bandwidth 1.5"
    options += " --representation whiten --components 1 --noise 0.02 --metric cosine"
    cdsk("cluster", data, "-k", 3, "--columns", "2", *options.split())
    expected = dict(n_clusters=3, lam=0.5, max_iter=3, random_state=4, n_threads=2)
    expected |= dict(verbose=1, bandwidth=1.5, noise=0.02)
    expected |= dict(representation="whiten", n_components=1, metric="cosine")
    assert {name: received[name] for name in expected} == expected
    np.testing.assert_allclose(received["X"], points[:, [1]], rtol=0, atol=1e-12)


def test_defaults_are_those_of_the_estimator():
    arguments = cli.make_parser().parse_args(["cluster", "x.csv", "-k", "2"])
    defaults = inspect.signature(CDSK).parameters
    for name in ("bandwidth", "lam", "max_iter", "metric", "representation", "noise"):
        assert getattr(arguments, name) == defaults[name].default
    assert arguments.threads == defaults["n_threads"].default
    assert cluster.BANDWIDTH_RULES == ("auto", *BANDWIDTH_RULES)
    assert cluster.REPRESENTATIONS == ("auto", *REPRESENTATIONS)
    assert cluster.METRICS == METRICS
    assert cluster.MISSING == MISSING
    assert arguments.missing == defaults["missing"].default


def test_seconds_of_the_fit(cdsk, data, monkeypatch, clock):
    """Imports and validation are not included."""
    methods = CDSK.__init__, CDSK.fit

    def add_time(seconds, method):
        @functools.wraps(method)
        def slow(*arguments, **options):
            clock.now += seconds
            return method(*arguments, **options)

        return slow

    monkeypatch.setattr(CDSK, "__init__", add_time(100.0, methods[0]))
    monkeypatch.setattr(CDSK, "fit", add_time(2.5, methods[1]))
    monkeypatch.setattr(cluster, "time", clock)
    assert cdsk("cluster", data, "-k", 3)[2].endswith(", 2.50 s\n")


def test_zero_rows_with_the_cosine_metric(cdsk, run_failing, tmp_path):
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
    for arguments in (
        ("cluster", table, "-k", 2, "--metric", "cosine"),
        ("predict", model, table),
    ):
        error = run_failing(*arguments)
        assert "zeros only in rows 3, 7 (2 in all, counted from 0)" in error
        assert "Remove such rows" in error


def test_number_of_noise_points(cdsk, tmp_path, points):
    path = tmp_path / "noisy.npy"
    np.save(path, np.concatenate([points, [[40.0, 40.0], [-40.0, 30.0]]]))
    _, out, err = cdsk("cluster", path, "-k", 3, "--noise", 0.001)
    labels = [int(line.split(",")[0]) for line in out.splitlines()[1:]]
    assert labels[60:] == [-1, -1]
    sizes = ", ".join(str(labels.count(y)) for y in range(3))
    assert f"3 clusters, sizes {sizes}; {labels.count(-1)} noise points" in err
    assert "noise" not in cdsk("cluster", path, "-k", 3)[2]


@pytest.mark.parametrize("rule", BANDWIDTH_RULES)
def test_bandwidth_rules(cdsk, data, rule):
    status, _, err = cdsk("cluster", data, "-k", 3, "--bandwidth", rule)
    assert status == 0
    assert ("one per point" in err) == (rule == "local")


def test_iterations_are_shown_on_standard_error(cdsk, data):
    _, out, err = cdsk("cluster", data, "-k", 3, "--verbose", "--verbose")
    assert "[CDSK] iteration  1" in err
    assert "[CDSK]" not in out


@pytest.mark.parametrize("option", ["--max-iter=0", "--lam=1"])
def test_initial_weights_kept(cdsk, data, option):
    assert "initial weights kept" in cdsk("cluster", data, "-k", 3, option)[2]


def test_warnings_take_one_line(cdsk, data):
    status, _, err = cdsk("cluster", data, "-k", 3, "--max-iter", 1)
    (warning,) = [line for line in err.splitlines() if "warning" in line]
    assert status == 0
    assert warning.startswith("cdsk: warning: The alternation did not converge in max_")


# --- tables with categories and missing cells ---------------------------------------


@pytest.fixture
def frame():
    """Two groups by two numbers and two categories, with a name of every row."""
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    rng, y = np.random.RandomState(0), np.arange(60) % 2
    price = 100.0 * y + rng.normal(size=60)
    area = 10.0 * y + rng.normal(size=60)
    price[[3, 8]] = np.nan
    city = np.where(rng.rand(60) < 0.9, np.array(["Rome", "Oslo"])[y], "Bern")
    sold = np.where(rng.rand(60) < 0.9, np.array(["yes", "no"])[y], None)
    name = [f"house {i}" for i in range(60)]
    columns = {"name": name, "price": price, "area": area, "city": city, "sold": sold}
    return pandas.DataFrame(columns)


LEFT_OUT = "ignore:Column 'name' of X has 60 different values"


@pytest.mark.parametrize("ending", ["csv", "tsv", "txt", "csv.gz", "parquet"])
@pytest.mark.filterwarnings(LEFT_OUT)
def test_tables_of_all_formats(cdsk, frame, tmp_path, ending):
    path = tmp_path / f"t.{ending}"
    if ending == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
        frame.to_parquet(path)
    else:
        # white space separates cells
        text = frame.assign(name=frame["name"].str.replace(" ", "-"))
        sign = {"tsv": "\t", "txt": " "}.get(ending, ",")
        text.to_csv(path, sep=sign, index=False, na_rep="NA")
    status, out, err = cdsk("cluster", path, "-k", 2)
    assert status == 0
    model = CDSK(2, random_state=0).fit(frame)
    labels = [int(line.split(",")[0]) for line in out.splitlines()[1:]]
    assert labels == model.labels_.tolist()
    n_missing = 2 + int(frame["sold"].isna().sum())
    lines = err.splitlines()
    assert "warning: Column 'name' of X has 60 different values in 60" in lines[0]
    assert lines[1] == "cdsk: 60 points, 5 features"
    assert lines[2] == (
        "cdsk: numbers: price, area; categories: city (3), sold (2); left out: name; "
        f"{n_missing} missing cells in 2 columns"
    )


def test_names_of_rows_change_nothing_else(cdsk, frame, tmp_path):
    frame.to_csv(tmp_path / "all.csv", index=False)
    frame[["price", "area"]].to_csv(tmp_path / "numbers.csv", index=False)
    columns = "--columns", "name,price,area"
    named = cdsk("cluster", tmp_path / "all.csv", "-k", 2, *columns)
    alone = cdsk("cluster", tmp_path / "numbers.csv", "-k", 2)
    assert named[:2] == alone[:2]
    assert "2 features (price, area); 2 missing cells in 1 column\n" in alone[2]


def test_a_column_without_a_name_is_shown_by_its_number(cdsk, frame, tmp_path):
    frame[["area", "city"]].to_csv(tmp_path / "t.csv")  # with the index of pandas
    err = cdsk("cluster", tmp_path / "t.csv", "-k", 2)[2]
    assert "cdsk: numbers: 1, area; categories: city (3)\n" in err


def test_codes_are_categories_if_asked_for(cdsk, frame, tmp_path):
    codes = frame["city"].map({"Rome": 300, "Oslo": 20, "Bern": 1})
    frame = frame[["price", "area", "city"]]
    frame.to_csv(tmp_path / "text.csv", index=False)
    frame.assign(city=codes).to_csv(tmp_path / "codes.csv", index=False)
    status, out, err = cdsk(
        "cluster", tmp_path / "codes.csv", "-k", 2, "--categories", "city"
    )
    assert (status, out) == cdsk("cluster", tmp_path / "text.csv", "-k", 2)[:2]
    assert "categories: city (3)" in err
    assert "warning" not in err


def test_missing_cells_are_refused_if_asked_for(run_failing, frame, tmp_path):
    frame.to_csv(tmp_path / "t.csv", index=False)
    error = run_failing("cluster", tmp_path / "t.csv", "-k", 2, "--missing", "error")
    assert "row 5, column 2 ('price'): expected a finite number; got ''" in error


@pytest.mark.filterwarnings(LEFT_OUT)
def test_outputs_of_a_table(cdsk, frame, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    page, plot = tmp_path / "r.html", tmp_path / "p.png"
    options = "-o", tmp_path / "l.csv", "--json", "-", "--html", page, "--plot", plot
    status, out, err = cdsk("cluster", path, "-k", 2, *options, "--report")
    assert status == 0
    report = CDSK(2, random_state=0).fit(frame).report(frame)
    assert json.loads(out)["profiles"] == report.to_dict()["profiles"]
    assert "city" in page.read_text("utf-8")
    assert plot.stat().st_size > 0
    assert err.endswith(f"{report}\n")


@pytest.mark.filterwarnings(LEFT_OUT)
def test_a_model_of_a_table(cdsk, frame, tmp_path):
    pytest.importorskip("skops", reason="skops is not installed")
    path, saved, new = tmp_path / "t.csv", tmp_path / "m.skops", tmp_path / "new.csv"
    frame.to_csv(path, index=False)
    assert cdsk("cluster", path, "-k", 2, "--save", saved)[0] == 0
    model = CDSK(2, random_state=0).fit(frame)
    status, out, err = cdsk("predict", saved, path)
    assert (status, err) == (0, "")
    assert list(map(int, out.split()[1:])) == model.predict(frame).tolist()
    # another order, no names, another column, and a new city
    other = frame[["sold", "city", "area", "price"]].assign(more="x")
    other.loc[[1, 2], "city"] = "Paris"
    other.to_csv(new, index=False)
    status, out, err = cdsk("predict", saved, new)
    assert status == 0
    assert "warning: X has 2 cells with categories that the fit did not see" in err
    assert "column 'city' (2)" in err
    missing = frame.copy()
    missing.loc[[1, 2], "city"] = None
    assert list(map(int, out.split()[1:])) == model.predict(missing).tolist()
    other.drop(columns="area").to_csv(new, index=False)
    assert "expected one column 'area'" in cdsk("predict", saved, new)[2]


# --- errors -------------------------------------------------------------------------


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
        ("cluster x.csv -k 2 --delimiter ab", "expected tab, space or one character"),
        ("cluster x.csv -k 2 --delimiter 1", "that does not occur in numbers; got '1'"),
        ("cluster x.csv -k 2 --decimal x", "argument --decimal: invalid choice: 'x'"),
        (
            "cluster x.csv -k 2 --decimal , --delimiter ,",
            "--delimiter and --decimal must differ; got ',' for both.",
        ),
        ("cluster none.csv -k 2", "cannot read none.csv: No such file or directory."),
        ("cluster x.doc -k 2", "unknown format of x.doc"),
    ],
)
def test_invalid_usage(run_failing, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert message in run_failing(*arguments.split())


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
        ("-k 2 --columns 1,z", "no column 'z': expected a number from 1 to 2."),
        ("-k 2 --id 3", "no column '3': expected a number from 1 to 2."),
        ("-k 2 --header", "apply to text files only"),
    ],
)
def test_invalid_options(run_failing, data, options, message):
    assert message in run_failing("cluster", data, *options.split())


@pytest.fixture
def no_fit(monkeypatch):
    def fit(*_):
        raise AssertionError("expected an error before the fit")

    monkeypatch.setattr(CDSK, "fit", fit)


@pytest.mark.usefixtures("no_fit")
@pytest.mark.parametrize("option", ["-o", "--plot", "--html", "--json", "--save"])
def test_invalid_outputs_fail_before_the_fit(run_failing, data, tmp_path, option):
    def get_error(path):
        return run_failing("cluster", data, "-k", 3, option, path)

    missing = tmp_path / "none" / "a.png"
    assert get_error(missing) == (
        f"{option} {missing}: the directory {missing.parent} does not exist."
    )
    assert "expected a file name; got a directory" in get_error(tmp_path)
    assert f"would overwrite {data}" in get_error(data)


@pytest.mark.usefixtures("no_fit")
@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere"
)
def test_permission_denied(run_failing, data, tmp_path):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    assert "permission denied" in run_failing(
        "cluster", data, "-k", 3, "-o", locked / "l.csv"
    )


@pytest.mark.usefixtures("no_fit")
def test_plot_and_labels_must_differ(run_failing, data, tmp_path):
    both = tmp_path / "a.png"
    error = run_failing("cluster", data, "-k", 3, "-o", both, "--plot", both)
    assert f"--plot {both}: would overwrite {both}" in error


@pytest.mark.usefixtures("no_fit")
def test_plot_without_matplotlib(run_failing, data, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    error = run_failing("cluster", data, "-k", 3, "--plot", tmp_path / "a.png")
    assert error.endswith("not installed: pip install cdsk[plot]")


@pytest.mark.usefixtures("no_fit")
def test_plot_of_unknown_format(run_failing, data, tmp_path):
    pytest.importorskip("matplotlib")
    error = run_failing("cluster", data, "-k", 3, "--plot", tmp_path / "a.doc")
    assert "unknown image format of" in error
    assert ".png" in error


def test_failure_keeps_the_existing_output(run_failing, data, tmp_path):
    output = tmp_path / "labels.csv"
    output.write_text("existing")
    run_failing("cluster", data, "-k", 61, "-o", output)
    assert output.read_text() == "existing"


def test_labels_go_to_standard_output_if_the_disk_is_full(
    cdsk, data, monkeypatch, tmp_path
):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    output = tmp_path / "labels.csv"
    status, out, err = cdsk("cluster", data, "-k", 3, "-o", output)
    assert status == 2
    assert out.startswith("label,weight\n")
    assert err == (
        f"cdsk: error: cannot write {output}: No space left on device. The labels were "
        "written to standard output instead.\n"
    )


NO_SPACE = "cdsk: error: cannot use standard output: No space.\n"


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (KeyboardInterrupt(), 130, "cdsk: interrupted\n"),
        (MemoryError("K needs\n  9 bytes"), 2, "cdsk: error: K needs 9 bytes\n"),
        (MemoryError(), 2, "cdsk: error: out of memory.\n"),
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


def test_internal_errors_keep_their_traceback(data, monkeypatch):
    def fit(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(CDSK, "fit", fit)
    with pytest.raises(ZeroDivisionError):
        cli.main(["cluster", str(data), "-k", "3"])


def test_report_goes_to_standard_error(cdsk, data, points):
    status, out, err = cdsk("cluster", data, "-k", 3, "--report", "--lam", 0.2)
    assert status == 0
    assert out == cdsk("cluster", data, "-k", 3, "--lam", 0.2)[1]
    model = CDSK(3, lam=0.2, random_state=0).fit(points)
    assert err.endswith(str(model.report(points)) + "\n")


def test_report_as_json(cdsk, points, tmp_path):
    path = tmp_path / "named.csv"
    rows = [f"{x!r},row {i},{y!r}" for i, (x, y) in enumerate(points.tolist())]
    path.write_text("\n".join(["x,name,y", *rows]))
    options = ["cluster", path, "-k", 3, "--id", "name"]
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
def test_only_one_output_to_standard_output(run_failing, data):
    error = run_failing("cluster", data, "-k", 3, "--json", "-")
    assert error.startswith("-o and --json cannot both be written to standard output")


@pytest.mark.usefixtures("no_fit")
def test_outputs_must_differ(run_failing, data, tmp_path):
    both = tmp_path / "a.html"
    error = run_failing("cluster", data, "-k", 3, "--json", both, "--html", both)
    assert error == f"--html {both}: would overwrite {both}."


@pytest.mark.usefixtures("no_fit")
@pytest.mark.parametrize("option", ["--html", "--save", "--plot"])
def test_binary_outputs_require_a_file_name(run_failing, data, option):
    error = run_failing("cluster", data, "-k", 3, option, "-")
    assert error == f"{option} -: expected a file name."


def test_progress_of_long_fits(cdsk, data, monkeypatch):
    assert "[CDSK]" not in cdsk("cluster", data, "-k", 3)[2]
    monkeypatch.setattr(cluster, "MAX_SILENT_ROWS", 59)
    monkeypatch.setattr(options, "MAX_SILENT_FILE", 100)
    status, out, err = cdsk("cluster", data, "-k", 3)
    assert status == 0
    assert err.startswith(f"cdsk: reading {data}, 0 MB\n")
    assert "[CDSK] done in" in err
    assert "[CDSK]" not in out
    assert cdsk("cluster", data, "-k", 3, "--quiet") == (0, out, "")


def test_exit_statuses_are_documented(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    text = " ".join(capsys.readouterr().out.split())
    for status in ("0 on", f"{cli.FAILURE} for", f"{cli.INTERRUPTED} if", "1 for"):
        assert f" {status} " in text


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell's pipe")
def test_closed_pipe(data):
    command = [sys.executable, "-m", "cdsk", "cluster", str(data), "-k", "3"]
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as gone:
        done = subprocess.run(
            command, stdout=gone, stderr=subprocess.PIPE, text=True, timeout=600
        )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "error" not in done.stderr


# --- the rest -----------------------------------------------------------------------


def test_version_of_the_module(monkeypatch, capsys):
    # as python -m does; test_closed_pipe starts a process
    monkeypatch.setattr(sys, "argv", ["cdsk", "--version"])
    with pytest.raises(SystemExit) as stop:
        runpy.run_module("cdsk", run_name="__main__")
    assert (stop.value.code, capsys.readouterr().out) == (0, f"cdsk {__version__}\n")


@pytest.mark.parametrize("arguments", [[], ["cluster"], ["predict"], ["demo"]])
def test_help(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main([*arguments, "--help"])
    assert stop.value.code == 0
    assert "usage: cdsk" in capsys.readouterr().out


def test_demo_checks_its_output_first(run_failing, tmp_path):
    pytest.importorskip("matplotlib")
    assert "does not exist" in run_failing("demo", "-o", tmp_path / "none" / "a.png")
    assert "unknown image format" in run_failing("demo", "-o", tmp_path / "a.doc")
