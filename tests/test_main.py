# SPDX-License-Identifier: BSD-3-Clause
"""The command line: tables in, labels out, and every refusal by its words."""

import csv
import inspect
import os
import runpy
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from cdsk import CDSK, __version__
from cdsk._cli import demo as _demo
from cdsk._cli import main as _cli
from cdsk._cli.tables import TableError, read_table, write_labels
from cdsk._kernels.bandwidth import RULES


@pytest.fixture(scope="module")
def points():
    return make_blobs(60, centers=3, cluster_std=0.6, random_state=0)[0]


@pytest.fixture
def data(tmp_path, points):
    path = tmp_path / "data.npy"
    np.save(path, points)
    return path


@pytest.fixture
def cdsk(capsys):
    """Run the command; return its status, standard output and standard error."""

    def run(*arguments):
        status = _cli.main([str(argument) for argument in arguments])
        return status, *capsys.readouterr()

    return run


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


@pytest.fixture
def table(tmp_path):
    """Write a text file and read it as a table."""

    def read(text, name="t.csv", columns=None, encoding="utf-8"):
        path = tmp_path / name
        path.write_bytes(text.encode(encoding))
        return read_table(path, columns)

    return read


# --- tables -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", "1,2.5\n-3e2,4\n"),
        ("t.CSV", '"1", 2.5\r\n-3e2 ,4'),
        ("t.tsv", "1\t2.5\n\n-3e2\t4\n\n"),
        ("t.txt", "  1   2.5\n-3e2\t4\n"),
    ],
)
def test_text_without_names(table, name, text):
    X, names = table(text, name)
    assert X.dtype == np.float64
    assert X.tolist() == [[1, 2.5], [-300, 4]]
    assert names is None


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_text_with_names(table, mark):
    X, names = table(mark + "a, b\n1,2\n")
    assert X.tolist() == [[1, 2]]
    assert names == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "columns", "names"),
    [
        ("a,b\n1,2\n", None, ["a", "b"]),
        ("2019,b\n1,2\n", None, ["2019", "b"]),  # text above a number
        ("id,x\nu,1\n", ["x"], ["x"]),  # no number at all
        ("5.1,setosa\n4.9,setosa\n", ["1"], None),  # text in every row: no names
    ],
)
def test_which_first_line_holds_names(table, text, columns, names):
    assert table(text, columns=columns)[1] == names


@pytest.mark.parametrize("columns", [["c", "a"], ["3", "1"], ["c", "1"]])
def test_columns_by_name_and_number(table, columns):
    X, names = table("a,b,c\n1,text,3\n4,,6\n", columns=columns)
    assert X.tolist() == [[3, 1], [6, 4]]
    assert names == ["c", "a"]


def test_a_name_goes_before_a_number(table):
    X, _ = table("x,1\n5,6\n", columns=["1"])
    assert X.tolist() == [[6]]


def test_csv_round_trip_is_exact(tmp_path):
    weights = np.random.default_rng(0).random(50) ** 40
    labels = np.arange(50) % 3
    write_labels(tmp_path / "l.csv", labels, weights)
    X, names = read_table(tmp_path / "l.csv")
    assert names == ["label", "weight"]
    np.testing.assert_array_equal(X, np.column_stack([labels, weights]))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, bool])
def test_numpy_files(tmp_path, dtype):
    A = np.array([[1, 0, 2], [0, 1, 3]], dtype=dtype)
    np.save(tmp_path / "a.npy", A)
    np.savez(tmp_path / "one.npz", whatever=A)
    np.savez_compressed(tmp_path / "two.npz", X=A, y=np.arange(2))
    for name in ("a.npy", "one.npz", "two.npz"):
        X, names = read_table(tmp_path / name)
        assert X.dtype == np.float64
        assert names is None
        np.testing.assert_array_equal(X, A)
        np.testing.assert_array_equal(
            read_table(tmp_path / name, ["3", "1"])[0], A[:, [2, 0]]
        )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"is empty: expected a row of numbers"),
        ("\n \n", r"is empty"),
        ("a,b\n", r"has column names but no rows of numbers below"),
        ("1,2\n3,4\n\n5\n", r"row 4: expected 2 cells as in row 1; got 1\."),
        ("a,b\n1,2\n3,4,5\n", r"row 3: expected 2 cells as in row 1; got 3\."),
        ("a,b\n1,2\n3,x y\n", r"row 3, column 2 \('b'\): expected a number; got 'x y'"),
        ("1,2\n3,abc\n", r"row 2, column 2: expected a number; got 'abc'\."),
        ("1,2\n3,1_0\n", r"row 2, column 2: expected a number; got '1_0'\."),
        ("a;b\n1;2\n", r"row 2, column 1 .*got '1;2'\. Are the cells separated by ';'"),
        ("a,b\n1,\n", r"row 2, column 2 \('b'\): .* an empty cell \(a missing value\)"),
        ("1,2\n3,NA\n", r"row 2, column 2: .* got 'NA' \(a missing value\)"),
        ("1,NaN\n3,4\n", r"row 1, column 2: .* got 'NaN' \(a missing value\)"),
        ("1,2\n-inf,4\n", r"row 2, column 1: expected a finite number; got '-inf'\."),
    ],
)
def test_bad_text(table, text, message):
    with pytest.raises(TableError, match=r"t\.csv.*" + message):
        table(text)


def test_bad_text_encodings(table):
    with pytest.raises(TableError, match="expected UTF-8 text; got the byte 0xe9"):
        table("caf\u00e9,b\n1,2\n", encoding="latin-1")
    with pytest.raises(TableError, match="cannot read"):
        table("1," + "9" * 200_000 + "\n")  # beyond the csv module's largest cell


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("a,b\n1,2\n", "z", r"has no column 'z': .* 1 to 2, named a, b\."),
        ("a,b\n1,2\n", "3", r"has no column '3': .* 1 to 2, named a, b\."),
        ("1,2\n", "0", r"has no column '0': .* 1 to 2\."),
        ("a,a\n1,2\n", "a", r"has 2 columns named 'a': expected a number from 1 to 2"),
    ],
)
def test_missing_columns(table, text, column, message):
    with pytest.raises(TableError, match=message):
        table(text, columns=[column])


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.arange(3), r"must hold a 2-D array .* got shape \(3,\) and dtype int64"),
        (np.ones((2, 2), complex), r"must hold a 2-D array of numbers.* complex128"),
        (np.array([["a"]]), r"must hold a 2-D array of numbers.* <U1"),
        (np.ones((0, 2)), r"is empty: got an array of shape \(0, 2\)"),
        (np.array([[1, 2], [np.nan, 3]]), r"row 2, column 1: .* finite .* got nan"),
        (np.array([[1, np.inf]]), r"row 1, column 2: .* finite number; got inf"),
        (np.array([[1, {}]], dtype=object), r"Python objects, which are never loaded"),
    ],
)
def test_bad_arrays(tmp_path, array, message):
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    np.savez(tmp_path / "a.npz", X=array)
    for name in ("a.npy", "a.npz"):
        with pytest.raises(TableError, match=rf"{name}.*{message}"):
            read_table(tmp_path / name)


def test_bad_numpy_files(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, a=np.ones((2, 2)), b=np.ones((2, 2)))
    with pytest.raises(TableError, match=r"named X or a single array; got a, b\."):
        read_table(path)
    np.savez(path)
    with pytest.raises(TableError, match=r"named X or a single array; got none\."):
        read_table(path)
    for content in (b"", b"no array", b"PK\x03\x04 no zip"):
        path.write_bytes(content)
        with pytest.raises(TableError, match="damaged, of another format"):
            read_table(path)


def test_unreadable_files(tmp_path):
    with pytest.raises(TableError, match=r"none\.csv: No such file or directory"):
        read_table(tmp_path / "none.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(TableError, match=r"folder\.csv: Is a directory"):
        read_table(tmp_path / "folder.csv")
    with pytest.raises(TableError, match=r"format of .*t\.xlsx: .* \.csv, .*\.npz\."):
        read_table(tmp_path / "t.xlsx")


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


def test_same_seed_same_labels_for_any_number_of_threads(cdsk, data):
    runs = [cdsk("cluster", data, "-k", 5, "--seed", 7, "--threads", t) for t in (1, 2)]
    assert runs[0][:2] == runs[1][:2]


def test_options_reach_the_estimator(cdsk, data, points, monkeypatch):
    seen = {}

    def fit(self, X):
        seen.update(self.get_params(), X=X)
        raise ValueError("enough")

    monkeypatch.setattr(CDSK, "fit", fit)
    options = "--lam 0.5 --max-iter 3 --seed 4 --threads 2 --verbose --bandwidth 1.5"
    cdsk("cluster", data, "-k", 3, "--standardize", "--columns", "2", *options.split())
    expected = dict(n_clusters=3, lam=0.5, max_iter=3, random_state=4, n_threads=2)
    expected |= dict(verbose=1, bandwidth=1.5)
    assert {name: seen[name] for name in expected} == expected
    column = points[:, [1]]
    standardized = (column - column.mean()) / column.std()
    np.testing.assert_allclose(seen["X"], standardized, rtol=0, atol=1e-12)


def test_defaults_are_those_of_the_estimator():
    arguments = _cli.parser().parse_args(["cluster", "x.csv", "-k", "2"])
    defaults = inspect.signature(CDSK).parameters
    for name in ("bandwidth", "lam", "max_iter"):
        assert getattr(arguments, name) == defaults[name].default
    assert arguments.threads == defaults["n_threads"].default
    assert tuple(_cli.RULES) == ("auto", *RULES)


@pytest.mark.parametrize("rule", RULES)
def test_bandwidth_rules(cdsk, data, rule):
    status, _, err = cdsk("cluster", data, "-k", 3, "--bandwidth", rule)
    assert status == 0
    assert ("one per point" in err) == (rule == "local")


def test_rounds_are_reported_on_standard_error(cdsk, data):
    _, out, err = cdsk("cluster", data, "-k", 3, "--verbose")
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
        ("", "arguments are required: {cluster,demo} (see cdsk --help)"),
        ("fly", "invalid choice: 'fly'"),
        ("cluster", "arguments are required: DATA, -k/--clusters"),
        ("cluster x.csv -k two", "-k/--clusters: invalid int value: 'two'"),
        ("cluster x.csv -k 2 --lam a", "argument --lam: invalid float value: 'a'"),
        ("cluster x.csv -k 2 --bandwidth b", "std, median, local or a number; got 'b'"),
        ("cluster x.csv -k 2 --seed -1", "an integer from 0 to 4294967295; got '-1'"),
        ("cluster x.csv -k 2 --wings", "unrecognized arguments: --wings"),
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
        ("-k 1", "n_clusters must be an integer of at least 2; got 1."),
        ("-k 61", "got n_clusters=61 and n_samples=60."),
        ("-k 2 --lam 2", "lam must be a number > 0 and <= 1; got 2.0."),
        ("-k 2 --bandwidth=-1", "bandwidth must be a number > 0; got -1.0."),
        ("-k 2 --bandwidth nan", "bandwidth must be a number > 0; got nan."),
        ("-k 2 --max-iter=-1", "max_iter must be an integer of at least 0; got -1."),
        ("-k 2 --threads 0", "n_threads must be a positive integer"),
        ("-k 2 --columns 1,z", "has no column 'z'"),
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
@pytest.mark.parametrize("option", ["-o", "--plot"])
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
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("cdsk._cli.tables.write_labels", full)
    output = tmp_path / "labels.csv"
    status, out, err = cdsk("cluster", data, "-k", 3, "-o", output)
    assert status == 2
    assert out.startswith("label,weight\n")
    assert err == (
        f"cdsk: error: cannot write {output}: No space left on device. The labels went "
        "to stdout instead.\n"
    )


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (KeyboardInterrupt(), 130, "cdsk: interrupted\n"),
        (MemoryError("K needs\n  9 bytes"), 2, "cdsk: error: K needs 9 bytes\n"),
        (MemoryError(), 2, "cdsk: error: MemoryError\n"),
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
    assert err.endswith(CDSK(3, lam=0.2, random_state=0).fit(points).report() + "\n")


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


@pytest.mark.parametrize("arguments", [[], ["cluster"], ["demo"]])
def test_help(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        _cli.main([*arguments, "--help"])
    assert stop.value.code == 0
    assert "usage: cdsk" in capsys.readouterr().out


def test_scores():
    truth = np.array([0, 0, 1, 1, 1, _demo.NOISE, _demo.NOISE])
    labels = np.array([1, 1, 0, 0, 1, 0, 1])
    assert _demo.scores(truth, labels)[0] == 0.8
    assert _demo.scores(truth, 1 - truth) == (1.0, 1.0, 1.0)


def test_demo(cdsk, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    X, y = _demo.digits()
    monkeypatch.setattr(_demo, "digits", lambda: (X[:100], y[:100]))  # for speed
    picture = tmp_path / "demo.png"
    status, out, _ = cdsk("demo", "-o", picture)
    assert status == 0
    lines = out.splitlines()
    assert lines[0].split() == ["data", "method", "accuracy", "NMI", "ARI", "seconds"]
    accuracy = {line[:38].strip(): float(line.split()[-4]) for line in lines[1:9]}
    assert len(accuracy) == 8
    assert accuracy["noisy moons  CDSK"] > 0.95
    assert lines[-1] == f"Picture: {picture}"
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_demo_without_matplotlib(cdsk, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    X, y = _demo.noisy_moons()
    for name in ("digits", "noisy_moons"):
        monkeypatch.setattr(_demo, name, lambda: (X[::6], y[::6]))  # for speed
    status, out, _ = cdsk("demo", "-o", tmp_path / "demo.png")
    assert status == 0
    assert out.count("CDSK, uniform weights") == 2
    assert out.endswith("not installed: pip install cdsk[plot]\n")
    assert not (tmp_path / "demo.png").exists()


def test_demo_refuses_a_bad_picture_first(refuse, tmp_path):
    pytest.importorskip("matplotlib")
    assert "does not exist" in refuse("demo", "-o", tmp_path / "none" / "a.png")
    assert "cannot tell the format" in refuse("demo", "-o", tmp_path / "a.doc")
