"""The asv benchmarks run without asv, for few points or for their first parameters.

The lines of the large fits run in this process.
"""

import csv
import importlib.util
import inspect
import math
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from benchmarks.large import __main__ as large
from benchmarks.large.lines import GROWTH, LINES, Target
from benchmarks.large.measure import STAGES, measure, measure_in_subprocess
from benchmarks.large.report import Row, exponent, markdown

TOP = Path(__file__).parents[1]

PREFIXES = ("time_", "timeraw_", "peakmem_", "track_")

# Few points: the tests only check that the benchmarks run.
FEW = {"n": 60, "n_support": 60, "problem": "60"}


def classes_of(name):
    module = importlib.import_module(f"benchmarks.asv.stages.{name}")
    return [
        kind
        for _, kind in inspect.getmembers(module, inspect.isclass)
        if kind.__module__ == module.__name__
    ]


CLASSES = [
    kind
    for name in (
        "kernel",
        "neighbors",
        "smo",
        "embedding",
        "layout",
        "estimator",
        "imports",
    )
    for kind in classes_of(name)
]
METHODS = [
    pytest.param(kind, method, id=f"{kind.__name__}.{method}")
    for kind in CLASSES
    for method in dir(kind)
    if method.startswith(PREFIXES)
]


@pytest.mark.parametrize(
    "instead", [FEW, pytest.param({}, marks=pytest.mark.slow)], ids=["few", "first"]
)
@pytest.mark.parametrize(("kind", "method"), METHODS)
def test_benchmark_runs(kind, method, instead):
    benchmark = kind()
    parameters = [
        instead.get(name, values[0])
        for name, values in zip(kind.param_names, kind.params, strict=True)
    ]
    if hasattr(benchmark, "setup"):
        benchmark.setup(*parameters)
    result = getattr(benchmark, method)(*parameters)
    if method.startswith("track_"):
        assert math.isfinite(result)
    elif method.startswith("timeraw_"):
        assert compile(result, method, "exec")
    else:
        assert result is None


@pytest.mark.parametrize("kind", CLASSES)
def test_every_time_has_a_measure_of_accuracy(kind):
    methods = dir(kind)
    assert any(name.startswith("time") for name in methods)
    assert any(name.startswith("track_") for name in methods)


@pytest.mark.parametrize(
    "page", [TOP / "README.md", *TOP.glob("docs/**/*.md")], ids=lambda page: page.name
)
def test_benchmarks_named_in_the_documentation_exist(page):
    named = re.findall(r"benchmarks/[\w/]+\.(?:py|json)", page.read_text("utf-8"))
    run = re.findall(r"-m (benchmarks[\w.]*\w)", page.read_text("utf-8"))
    for path in (name.replace(".", "/") for name in run):
        package = (TOP / path).is_dir()
        named.append(f"{path}/__main__.py" if package else f"{path}.py")
    assert [path for path in named if not (TOP / path).is_file()] == []


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(10), 12)
    X = 40 * rng.uniform(size=(10, 64))[y] + 20 * rng.uniform(size=(120, 64))
    for name in ("mnist", "mpie_s2"):
        np.savez(folder / f"{name}.npz", X=X.astype(np.uint8), y=y, shape=(8, 8))
    return str(folder)


SIDES = [
    pytest.param(name, side, id=f"{name}-{side}")
    for name, line in LINES.items()
    for side in ("ours", *line.peers)
]


# by scikit-learn's SpectralClustering, if clusters are far apart
@pytest.mark.filterwarnings("ignore:Graph is not fully connected")
@pytest.mark.parametrize(("name", "side"), SIDES)
def test_method_of_a_large_line_runs(images, name, side):
    found = measure(name, side, 1, True, images)
    if side == "faiss flat" and importlib.util.find_spec("faiss") is None:
        assert found == {"skipped": "faiss is not installed"}
        return
    assert found["seconds"] > 0
    assert found["memory"] > 1e7
    scores = found["scores"]
    if name.startswith("search"):
        assert scores == {"missed": 0}
    elif name == "solve-qp":
        assert scores["KKT gap"] < 2e-4
    else:
        # SpectralClustering of scikit-learn 1.6 has 0.79
        assert scores["ARI"] > (0.8 if side == "ours" else 0.75)
    if side == "ours" and "ARI" in scores:
        shares = found["shares"]
        # every stage is measured
        assert min(shares[stage] for stage in STAGES) > 0
        assert sum(shares.values()) == pytest.approx(1)


def test_run_of_large_lines_writes_its_tables(monkeypatch, tmp_path, capsys):
    only = ["--only", "solve-qp", "mnist", "--quick", "--out", str(tmp_path)]
    monkeypatch.setattr("sys.argv", ["large", *only, "--threads", "1"])
    # in this process: starting another one takes longer than the rest
    monkeypatch.setattr(
        large, "measure_in_subprocess", lambda *what: measure(*what[:-1])
    )
    large.main()
    text = (tmp_path / "large.md").read_text("utf-8")
    assert text in capsys.readouterr().out
    assert "* MNIST, 70 000 x 784, ours: no file mnist.npz in the folder" in text
    with open(tmp_path / "large.csv", newline="", encoding="utf-8") as file:
        qp, mnist = csv.DictReader(file)
    assert float(qp["seconds"]) > 0 < float(qp["peer_seconds"])
    assert (mnist["seconds"], mnist["peer"]) == ("", "SpectralClustering")


@pytest.mark.slow
def test_measurement_in_a_subprocess_and_its_errors():
    found = measure_in_subprocess("moons-200", "ours", 1, True, None, None)
    assert found["scores"] == {"ARI": 1.0, "NMI": 1.0}
    found = measure_in_subprocess("moons-200", "brute force", 1, True, None, None)
    assert "no attribute 'brute'" in found["failed"]


def test_timeout(monkeypatch):
    def run(command, timeout, **options):
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr("subprocess.run", run)
    assert measure_in_subprocess("moons-200", "ours", 1, True, None, 2.5) == {
        "timeout": 2.5
    }


def row(name="moons-20k", theirs=None, targets=(), **ours):
    ours = {
        "seconds": 10.0,
        "scores": {"ARI": 0.9},
        "memory": 1e9,
        "processor": 1,
    } | ours
    return Row(name, "moons", "peer", targets, ours, theirs or {"seconds": 5.0})


def test_tables_of_large_lines_have_at_most_100_columns():
    rows = [
        Row(name, line.what, peer, line.targets, row().ours, row().ours)
        for name, line in LINES.items()
        for peer in line.peers
    ]
    for n, made in enumerate(rows, start=100):
        made.ours["scores"] = {"ARI": 0.1, "NMI": 0.2}
        made.ours["shares"] = dict.fromkeys([*STAGES, "other"], 0.2)
        made.ours["n"] = n
    text = markdown(10 * "a processor, its versions ", rows)
    assert max(map(len, text.splitlines())) <= 100  # as in docs


@pytest.mark.parametrize(
    ("figure", "bound", "theirs", "met"),
    [
        ("ratio", 2.0, {"seconds": 5.0}, True),
        ("ratio", 1.9, {"seconds": 5.0}, False),
        ("ratio", 0.2, {"timeout": 50.0}, True),
        # the peer timed out: the ratio may be smaller
        ("ratio", 0.1, {"timeout": 50.0}, None),
        ("ratio", 2.0, {"failed": "no memory"}, None),
        ("ARI", 0.9, None, True),
        ("ARI", 0.91, None, False),
        ("memory", 0.9e9, None, False),
    ],
)
def test_targets_of_large_lines(figure, bound, theirs, met):
    target = Target(figure, bound)
    line = row(theirs=theirs, targets=(target,))
    assert line.met(target) is met
    shown = {True: "yes", False: "**no**", None: "not known"}[met]
    assert f" | {shown} |" in markdown("here", [line])


def test_exponent_of_large_fits():
    sizes = (10**4, 10**5, 10**6)
    rows = [
        row(name, n=n, seconds=3 * (n / 10**4) ** 1.2)
        for name, n in zip(GROWTH, sizes, strict=True)
    ]
    assert exponent(rows) == pytest.approx(1.2)
    assert exponent(rows[:2]) is None
    assert "| exponent of n | ≤ 1.3 | 1.20 | yes |" in markdown("here", rows)
