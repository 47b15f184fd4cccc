"""Every asv benchmark runs without asv, on few points or at its first parameters."""

import importlib
import inspect
import math
import re
from pathlib import Path

import pytest

TOP = Path(__file__).parents[1]

PREFIXES = ("time_", "timeraw_", "peakmem_", "track_")

# Fewer points than anyone would measure: what is tested is whether they run at all.
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
    for name in ("kernel", "neighbours", "smo", "embedding", "estimator", "imports")
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
def test_every_time_has_a_quality_beside_it(kind):
    methods = dir(kind)
    assert any(name.startswith("time") for name in methods)
    assert any(name.startswith("track_") for name in methods)


@pytest.mark.parametrize(
    "page", [TOP / "README.md", *TOP.glob("docs/**/*.md")], ids=lambda page: page.name
)
def test_what_the_documents_name_is_there(page):
    named = re.findall(r"benchmarks/[\w/]+\.(?:py|json)", page.read_text("utf-8"))
    run = re.findall(r"-m (benchmarks[\w.]+)", page.read_text("utf-8"))
    named += [name.replace(".", "/") + ".py" for name in run]
    assert [path for path in named if not (TOP / path).is_file()] == []
