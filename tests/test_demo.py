# SPDX-License-Identifier: BSD-3-Clause
"""``cdsk demo``: scores, table and plot."""

import sys

import numpy as np
import pytest

from cdsk.cli import _demo


def test_scores():
    truth = np.array([0, 0, 1, 1, 1, _demo.NOISE, _demo.NOISE])
    labels = np.array([1, 1, 0, 0, 1, 0, 1])
    assert _demo.compute_scores(truth, labels)[0] == 0.8
    assert _demo.compute_scores(truth, 1 - truth) == (1.0, 1.0, 1.0)


def test_demo(capsys, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    X, y = _demo.load_images()
    monkeypatch.setattr(_demo, "load_images", lambda: (X[:100], y[:100]))  # for speed
    path = tmp_path / "demo.png"
    _demo.run(path)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["data", "method", "accuracy", "NMI", "ARI", "seconds"]
    accuracy = {line[:38].strip(): float(line.split()[-4]) for line in lines[1:9]}
    assert len(accuracy) == 8
    assert accuracy["noisy moons  CDSK"] > 0.95
    assert lines[-1] == f"Plot: {path}"
    assert path.read_bytes().startswith(b"\x89PNG")


def test_demo_without_matplotlib(capsys, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    X, y = _demo.make_noisy_moons()
    for name in ("load_images", "make_noisy_moons"):
        monkeypatch.setattr(_demo, name, lambda: (X[::6], y[::6]))  # for speed
    _demo.run(tmp_path / "demo.png")
    out = capsys.readouterr().out
    assert out.count("CDSK, uniform weights") == 2
    assert out.endswith("not installed: pip install cdsk[plot]\n")
    assert not (tmp_path / "demo.png").exists()
