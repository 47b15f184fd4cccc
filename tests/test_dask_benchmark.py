"""The benchmark of cdsk.dask: its data, its tables, and (slow) its methods."""

import importlib
import subprocess

import numpy as np
import pytest

pytest.importorskip("dask.array", reason="dask is not installed")
pytest.importorskip("distributed", reason="distributed is not installed")
sets = importlib.import_module("benchmarks.dask.sets")
measure = importlib.import_module("benchmarks.dask.measure")
program = importlib.import_module("benchmarks.dask.__main__")

OURS = {
    "sample, processor": 0.5,
    "landmarks, processor": 1,
    "similarities, processor": 10.0,
    "fit, processor": 20.0,
    "fit": 12.0,
    "predict, processor": 3.0,
    "predict": 2.0,
    "moved": 3e6,
    "peak": 345e6,
    "ARI": 0.9876,
}


def test_rows_do_not_depend_on_the_chunks():
    X, y = sets.make_dask_arrays(35_000, 10_000, 3)
    assert X.chunks == ((10_000, 10_000, 10_000, 5000), (8,))
    X, y = X.compute(), y.compute()
    for a, b in zip(sets.make_dask_arrays(35_000, 20_000, 3), (X, y), strict=True):
        assert (a.compute() == b).all()
    shares = np.bincount(y) / len(y)
    assert len(shares) == sets.CLUSTERS + 1
    assert shares[sets.CLUSTERS - 1 :] == pytest.approx(
        [sets.RARE, sets.NOISE], rel=0.5
    )


def test_page(monkeypatch):
    monkeypatch.setattr("sys.argv", ["x", "--seed", "3"])
    twice = OURS | {"similarities, processor": 20.0, "fit, processor": 40.0}
    done = {
        ("cdsk.dask", 1000, 2): OURS,
        ("cdsk.dask", 2000, 2): twice,
        ("k-means", 1000, 2): {"failed": "no labels"},
    }
    text = program.page(done)
    assert "python -m benchmarks.dask --seed 3\n" in text
    results = "| 1,000 | 2 | 0.5 | 1.0 | 10.0 | 20.0 | 12.0 | 3.0 | 2.0 | 3.0 | 345 |"
    assert f"{results} 0.988 |" in text
    assert "similarities 1.00, fit 1.00, predict 0.00." in " ".join(text.split())
    assert "* k-means, 1,000 rows: no labels" in text
    assert max(map(len, text.splitlines())) <= program.WIDTH


@pytest.mark.slow
@pytest.mark.parametrize("method", list(measure.METHODS)[:3])
def test_methods(method):
    results = measure.measure_in_subprocess(method, 20_000, 1, 1, timeout=None)
    assert results.get("failed") is None
    assert results["ARI"] > 0.7
    assert results["fit"] > 0 and results["peak"] > 1e8


def test_timeout(monkeypatch):
    def run(command, timeout, **options):
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr("subprocess.run", run)
    found = measure.measure_in_subprocess("cdsk.dask", 20_000, 1, 1, 2.5)
    assert found == {"failed": "not finished in 2.5 s"}
