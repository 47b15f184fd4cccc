"""Stages, fractions and the time left, on standard error alone."""

import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from cdsk import CDSK, select_lambda
from cdsk._neighbors import SlowSearchNotice
from cdsk._utils import _STAGES, Progress

ITERATION = SimpleNamespace(
    number=0,
    objective=1.0,
    embedding=SimpleNamespace(trace=0.5),
    weights=[0.5, 0.0, 0.5],
    qp_gap=1e-5,
    accepted=False,
)


@pytest.fixture
def wait(clock, monkeypatch):
    """Let some seconds pass."""
    monkeypatch.setattr("cdsk._utils.time", clock)

    def wait(seconds):
        clock.now += seconds

    return wait


@pytest.fixture
def without_tqdm(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)


def fit(**parameters):
    X, _ = make_blobs(300, 3, centers=3, random_state=0)
    return CDSK(3, random_state=0, **parameters).fit(X)


def test_fractions_sum_to_one():
    assert sum(_STAGES.values()) == pytest.approx(1)


def test_silence(capsys):
    with Progress(0) as progress:
        progress.stage("neighbors")
        progress.update(0.5)
        progress.iteration(ITERATION)
    assert capsys.readouterr() == ("", "")


def test_lines_show_the_fraction_and_the_time_left(wait, capsys, without_tqdm):
    with Progress(1) as progress:
        progress.stage("representation")
        wait(4)
        progress.stage("kernels", "kernel 2 of 2", span=(0.5, 1.0))
        wait(5)
        progress.update(0.1)  # within ten seconds of the last line
        wait(7)
        progress.update(0.5)
        progress.iteration(ITERATION)
    *lines, last = capsys.readouterr().err.splitlines()
    # 65 % skipped; of the rest, 5 % of representation, and half of 20 % as if done
    assert lines == [
        "[CDSK]   0%  representation",
        "[CDSK]  43%  kernel 2 of 2  (about 5 s left)",
        "[CDSK]  57%  kernel 2 of 2  (about 12 s left)",
    ]
    assert last == "[CDSK] done in 16.0 s: representation 25%, kernels 75%"


def test_kernels_of_view_and_layouts_advance(monkeypatch, capsys, without_tqdm):
    monkeypatch.setattr("cdsk._view_choice._MIN_LAYOUT_POINTS", 100)
    monkeypatch.setattr("cdsk._view_choice._MIN_LAYOUT_POINTS_PER_CLUSTER", 10)
    X, _ = make_blobs(200, 5, centers=4, cluster_std=3.0, random_state=0)
    model = CDSK(4, random_state=0, verbose=1).fit(X)
    assert len(model.representation_.support) == 2
    lines = capsys.readouterr().err.splitlines()
    fractions = [int(line[6:10]) for line in lines if "kernel " in line]
    assert len(fractions) == 3 * 7
    assert (np.diff(fractions) > 0).all()


def test_it_never_goes_back(capsys, wait, without_tqdm):
    with Progress(1) as progress:
        for begin in (0.5, 0.2, 0.9):
            progress.stage("lam", span=(begin, 1.0))
    percents = [int(n) for n in re.findall(r"(\d+)%  lam", capsys.readouterr().err)]
    assert len(percents) == 3
    assert percents == sorted(percents)


def test_rounds_are_for_two(capsys, without_tqdm):
    with Progress(2) as progress:
        progress.stage("winner")
        progress.iteration(ITERATION)
    err = capsys.readouterr().err
    assert "iteration  0  objective 1  trace 0.5  support 2  QP gap 1.0e-05" in err
    assert "not accepted" in err


def test_a_search_shows_its_fraction(capsys, wait, without_tqdm):
    with Progress(1) as progress:
        progress.stage("neighbors")
        callback = SlowSearchNotice(progress, np.empty((2, 2)))
        wait(20)
        callback(0.5)
    assert capsys.readouterr().err.count("neighbors  (about") == 1


def test_an_error_is_not_called_done(capsys, without_tqdm):
    with pytest.raises(ValueError, match="no"), Progress(1) as progress:
        progress.stage("kernels")
        raise ValueError("no")
    assert "done" not in capsys.readouterr().err


@pytest.mark.parametrize("installed", [True, False])
def test_a_fit_goes_through_its_stages(capsys, monkeypatch, installed):
    if installed:
        pytest.importorskip("tqdm")
    else:
        monkeypatch.setitem(sys.modules, "tqdm", None)
    silent = fit()
    told = fit(verbose=1)
    assert (told.labels_ == silent.labels_).all()
    out, err = capsys.readouterr()
    assert out == ""
    assert ("|" in err) == installed  # a bar
    stages = ["representation", "neighbors"]
    stages += [f"kernel {i} of 7" for i in (1, 2)]  # the others cannot win
    places = [err.index(stage) for stage in [*stages, "the winner", "done in"]]
    assert places == sorted(places)
    assert "round" not in err


@pytest.mark.parametrize("installed", [True, False])
def test_lam(capsys, monkeypatch, installed):
    if not installed:
        monkeypatch.setitem(sys.modules, "tqdm", None)
    X, _ = make_blobs(120, 2, centers=2, random_state=0)
    select_lambda(X, 2, grid=[0.2], random_state=0, max_iter=2, verbose=2)
    out, err = capsys.readouterr()
    assert out == ""
    assert "choice of lam" in err
    assert "iteration  0" in err
