# SPDX-License-Identifier: BSD-3-Clause
"""The demonstration: its scores, its table and its picture."""

import sys

import numpy as np
import pytest

from cdsk._cli import demo as _demo


def test_scores():
    truth = np.array([0, 0, 1, 1, 1, _demo.NOISE, _demo.NOISE])
    labels = np.array([1, 1, 0, 0, 1, 0, 1])
    assert _demo.scores(truth, labels)[0] == 0.8
    assert _demo.scores(truth, 1 - truth) == (1.0, 1.0, 1.0)


def test_demo(capsys, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    X, y = _demo.digits()
    monkeypatch.setattr(_demo, "digits", lambda: (X[:100], y[:100]))  # for speed
    picture = tmp_path / "demo.png"
    _demo.run(picture)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["data", "method", "accuracy", "NMI", "ARI", "seconds"]
    accuracy = {line[:38].strip(): float(line.split()[-4]) for line in lines[1:9]}
    assert len(accuracy) == 8
    assert accuracy["noisy moons  CDSK"] > 0.95
    assert lines[-1] == f"Picture: {picture}"
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_demo_without_matplotlib(capsys, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    X, y = _demo.noisy_moons()
    for name in ("digits", "noisy_moons"):
        monkeypatch.setattr(_demo, name, lambda: (X[::6], y[::6]))  # for speed
    _demo.run(tmp_path / "demo.png")
    out = capsys.readouterr().out
    assert out.count("CDSK, uniform weights") == 2
    assert out.endswith("not installed: pip install cdsk[plot]\n")
    assert not (tmp_path / "demo.png").exists()
