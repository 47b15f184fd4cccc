"""``python -m benchmarks.paper``, on tiny data sets with the names of the paper's."""

import csv
import itertools
import json
import signal
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import mutual_info_score

from benchmarks.paper import __main__ as paper
from benchmarks.paper import methods, sets, worker
from benchmarks.paper import run as runs
from benchmarks.paper.figure import figure
from benchmarks.paper.methods import METHODS, Method, fits
from benchmarks.paper.records import Records, read
from benchmarks.paper.report import cells, markdown, write
from benchmarks.paper.run import Task, tasks
from benchmarks.paper.scores import SCORES, accuracy, scores
from cdsk.baselines._base import AffinityBaseline

TOP = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    X, y = make_blobs(150, 6, centers=3, cluster_std=2.0, random_state=0)
    np.savez(folder / "ionosphere.npz", X=X, y=y)
    # every feature twice, with different rounding
    pixels = np.clip(np.hstack([8 * X, 7.9 * X]) + 120, 0, 255).astype(np.uint8)
    np.savez(folder / "umist.npz", X=pixels, y=y, shape=(3, 4))
    # NaN: every method raises an error
    np.savez(folder / "yale.npz", X=np.where(X > 9, np.nan, X), y=y)
    return folder


def run(data, out, *more, repeats=2):
    command = ["--data", str(data), "--out", str(out), "--repeats", str(repeats)]
    paper.main([*command, *more])


def lines(out, mode="paper"):
    text = (out / f"paper-{mode}.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


# --- scores -------------------------------------------------------------------------


def by_permutations(y, labels):
    """Best accuracy over all ways to name the clusters."""
    size = max(y.max(), labels.max()) + 1
    names = (np.array(name) for name in itertools.permutations(range(size)))
    return max(np.mean(name[labels] == y) for name in names)


@pytest.mark.parametrize(("n_classes", "n_clusters"), [(4, 4), (5, 3), (2, 5)])
def test_accuracy_is_the_best_over_all_permutations(n_classes, n_clusters, rng):
    for _ in range(5):
        y, labels = rng.integers(n_classes, size=40), rng.integers(n_clusters, size=40)
        assert accuracy(y, labels) == pytest.approx(by_permutations(y, labels))


def test_scores_follow_their_definitions(rng):
    y, labels = rng.integers(3, size=60), rng.integers(5, size=60)

    def entropy(labels):
        p = np.unique(labels, return_counts=True)[1] / len(labels)
        return -np.sum(p * np.log(p))

    found, mutual = scores(y, labels), mutual_info_score(y, labels)
    both = entropy(y), entropy(labels)
    assert found["nmi_max"] == pytest.approx(mutual / max(both))
    assert found["nmi"] == pytest.approx(mutual / np.mean(both))
    assert set(found) == set(SCORES.values())
    assert set(scores(y, 4 - y).values()) == {1.0}


# --- sets ---------------------------------------------------------------------------


def test_tables_of_the_paper_are_complete():
    found = sets.paper_scores()
    rows, columns = map(set, zip(*found, strict=True))
    assert len(found) == len(rows) * len(columns) == 11 * 14
    # they contain every set except these, and every row is one of ours
    ours = {known.name for known in sets.SETS.values()}
    assert ours - columns == {"Yale", "PIE pose 27"}
    assert {method.row for method in METHODS.values()} - {""} == rows
    # spot checks
    assert found["CDSK", "COIL-20"] == (0.93, 0.97)
    assert found["RatioRF", "MPIE S4"] == (0.62, 0.86)


def test_preparation_in_both_modes(data):
    with np.load(data / "umist.npz") as archive:
        pixels = archive["X"] / 255.0
    X, _ = sets.load(data, "umist", "default")
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0)
    # principal components preserve distances up to the variance left out
    X, _ = sets.load(data, "umist", "paper")
    share = X.var(axis=0).sum() / pixels.var(axis=0).sum()
    assert X.shape[1] < pixels.shape[1] and 0.98 <= share < 1
    with np.load(data / "ionosphere.npz") as archive:
        np.testing.assert_array_equal(
            sets.load(data, "ionosphere", "paper")[0], archive["X"]
        )
    X, _ = sets.load(data, "ionosphere", "default")
    np.testing.assert_allclose(X.std(axis=0), 1.0)


def test_a_sample_has_equally_many_points_of_every_class(rng):
    y = np.repeat([0, 1, 2], [500, 40, 5])[rng.permutation(545)]
    part = sets.balanced(y, 90)
    assert np.bincount(y[part]).tolist() == [30, 30, 5]
    np.testing.assert_array_equal(part, np.unique(part))
    np.testing.assert_array_equal(part, sets.balanced(y, 90))


# --- methods ------------------------------------------------------------------------


class Counted(AffinityBaseline):
    """A Gaussian affinity that counts how often it is made."""

    made = 0

    def __init__(self, n_clusters=8, *, random_state=None):
        self.n_clusters, self.random_state = n_clusters, random_state
        self.assign_labels, self.n_init = "kmeans", 3

    def _compute_affinity(self, X, rng):
        type(self).made += 1
        return np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 40)


class Random(Counted):
    made = 0
    random_affinity = True


@pytest.mark.parametrize(
    ("kind", "made", "whole"), [(Counted, 1, [1, 0, 0]), (Random, 3, [1, 1, 1])]
)
def test_an_affinity_is_computed_once_unless_it_is_random(data, kind, made, whole):
    X, _ = sets.load(data, "ionosphere", "paper")
    kind.made, make = 0, lambda seed: kind(3, random_state=seed)
    found = [labels_of() for labels_of in fits(make, X, range(3))]
    assert kind.made == made
    assert [computed for _, computed in found] == whole
    for seed, (labels, _) in enumerate(found):
        np.testing.assert_array_equal(labels, make(seed).fit(X).labels_)


# by scikit-learn, if clusters are far apart
@pytest.mark.filterwarnings("ignore:Graph is not fully connected")
def test_the_neighbor_graph_of_scikit_learn_is_computed_once(data, monkeypatch):
    X, _ = sets.load(data, "ionosphere", "paper")
    make = partial(METHODS["knn"].make, 3, len(X), "paper")
    calls, real = [], methods.SpectralClustering.fit

    def fit(model, X, y=None):
        calls.append(model.affinity)
        return real(model, X, y)

    monkeypatch.setattr(methods.SpectralClustering, "fit", fit)
    found = [labels_of()[0] for labels_of in fits(make, X, range(2))]
    assert calls == ["nearest_neighbors", "precomputed"]
    np.testing.assert_array_equal(found[1], make(1).fit(X).labels_)


def test_settings_of_the_modes_and_sizes():
    def of(name, n, mode):
        return METHODS[name].make(3, n, mode, 0).get_params()

    assert of("kmeans", 9, "paper")["n_init"] == 1
    assert of("kmeans", 9, "default")["n_init"] == 10
    assert of("cdsk-paper", 12_000, "paper")["approximation"] is None
    assert of("cdsk-paper", 12_001, "paper")["approximation"] == "lowrank"
    assert of("cdsk-paper", 9, "paper")["bandwidth"] == "variance"
    assert of("cdsk-paper", 9, "default")["bandwidth"] == "std"
    differs = {
        key: (value, of("cdsk-paper-uniform", 9, "paper")[key])
        for key, value in of("cdsk-paper", 9, "paper").items()
        if value != of("cdsk-paper-uniform", 9, "paper")[key]
    }
    assert differs == {
        "lam": ("auto", 0.2),
        "init": ("sparse", "uniform"),
        "max_iter": (20, 0),
    }


# --- runs ---------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_records_every_fit_and_writes_its_tables(data, tmp_path, capfd):
    out = tmp_path / "new" / "folder"
    asked = ["--sets", "ionosphere", "yale", "--methods", "kmeans"]
    run(data, out, *asked, "--jobs", "2", "--budget", "300")
    found = lines(out)
    assert Counter(record["status"] for record in found) == {"done": 2, "failed": 2}
    done = [record for record in found if record["status"] == "done"]
    assert min(record["seconds"] for record in done) > 0
    assert min(record["memory"] for record in done) > 1e7
    text = (out / "paper-paper.md").read_text("utf-8")
    # ours / the paper's
    assert "/ .71(.13) | failed / - |" in text
    assert "Yale, K-Means: ValueError: Input X contains NaN" in text
    # nothing is left to do
    run(data, out, *asked, "--budget", "300")
    assert lines(out) == found
    capfd.readouterr()


@pytest.fixture
def processes(monkeypatch):
    """The processes that a run starts."""
    started = []
    monkeypatch.setattr(runs, "subprocess", SimpleNamespace(**vars(subprocess)))

    def start(*args, **options):
        started.append(subprocess.Popen(*args, **options))
        return started[-1]

    monkeypatch.setattr(runs.subprocess, "Popen", start)
    return started


@pytest.mark.slow
def test_ctrl_c_stops_a_run_and_its_processes(
    data, tmp_path, processes, interrupt_call, capfd
):
    asked = ["--sets", "ionosphere", "--methods", "kmeans", "cdsk-uniform"]
    # after the second of more records than the pipe can buffer
    interrupt_call("benchmarks.paper.run._Progress.add", 2)
    with pytest.raises(SystemExit, match=r"^Interrupted\. Run the same command to co"):
        run(data, tmp_path, *asked, "--jobs", "2", repeats=1000)
    assert len(lines(tmp_path)) == 2
    assert len(processes) == 2
    for process in processes:
        assert process.returncode == -signal.SIGKILL
        assert process.stdin.closed and process.stdout.closed
    capfd.readouterr()


@pytest.mark.slow
def test_an_interrupted_run_is_continued(data, tmp_path, capfd):
    asked = ["--sets", "ionosphere", "--methods", "kmeans"]
    with pytest.MonkeyPatch.context() as patch:
        add, added = runs._Progress.add, []

        def stop(progress, work):
            add(progress, work)
            added.append(work)
            if len(added) == 3:
                raise KeyboardInterrupt

        patch.setattr(runs._Progress, "add", stop)
        with pytest.raises(SystemExit):
            run(data, tmp_path, *asked, repeats=5)
    path = tmp_path / "paper-paper.jsonl"
    *before, last = path.read_text("utf-8").splitlines()
    assert len(before) == 2
    # an incomplete last line, as after a kill: that seed is run again
    path.write_text("\n".join([*before, last[:-30]]), "utf-8")
    run(data, tmp_path, *asked, repeats=5)
    after = path.read_text("utf-8").splitlines()
    assert after[: len(before)] == before
    assert after.pop(len(before)) == last[:-30]
    assert [json.loads(line)["seed"] for line in after] == list(range(5))
    capfd.readouterr()


def test_a_worker_ends_with_its_parent(data):
    # more records than the pipe can buffer: it cannot end by itself
    asked = ["ionosphere", "cdsk-uniform", "paper", list(range(1000)), str(data), None]
    command = [sys.executable, "-m", "benchmarks.paper.worker", json.dumps(asked)]
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=TOP, start_new_session=True, **options) as child:
        try:
            for _ in range(3):  # the size of the set, and two records
                assert child.stdout.readline()
            # as the system does when the parent has ended
            child.stdin.close()
            assert child.wait(timeout=600) == -signal.SIGKILL
        finally:
            child.kill()


@pytest.mark.slow
def test_timeouts_are_recorded_and_repeated_with_a_larger_budget(data, tmp_path, capfd):
    asked = ["--sets", "umist", "--methods", "cdsk"]
    # shorter than any fit
    run(data, tmp_path, *asked, "--budget", "1e-9")
    assert [record["status"] for record in lines(tmp_path)] == ["timeout"] * 2
    text = (tmp_path / "paper-paper.md").read_text("utf-8")
    assert "| timeout / .67(.80) |" in text
    assert "UMIST Face, CDSK: did not finish in 1e-09 s (2 of 2 seeds)." in text
    known = read(tmp_path / "paper-paper.jsonl")

    def left(**changed):
        given = {"data": data, "sets": ["umist"], "methods": ["cdsk"], "repeats": 2}
        given |= {"redo": None, "budget": 1e-9, "sample": 10}
        return tasks(type("Options", (), given | changed), known)

    assert left() == []
    assert left(budget=1.0)[0].seeds == (0, 1)
    assert left(redo="failed")[0].seeds == (0, 1)
    assert left(repeats=3)[0].seeds == (2,)
    capfd.readouterr()


@pytest.mark.parametrize(
    ("after", "statuses"),
    [(0.0, []), (300.0, []), (300.1, ["timeout"] * 2)],
)
def test_a_worker_without_output_times_out(data, monkeypatch, clock, after, statuses):
    monkeypatch.setattr(runs, "time", clock)
    task = Task("ionosphere", "kmeans", None, 150, (0, 1))
    options = SimpleNamespace(budget=2.0, mode="paper", data=data)
    worker = runs._Worker(task, options)
    try:
        clock.now = after
        found = list(worker.iter_records(ready=False))
        assert [record["status"] for record in found] == statuses
        assert [record["budget"] for record in found] == [2.0] * len(statuses)
        assert worker.ended == bool(statuses)
    finally:
        worker.stop()


def test_progress_shows_the_time_left(monkeypatch, clock, capsys):
    task = Task("umist", "cdsk", None, 30, (0, 1, 2))
    # with tqdm and without
    for module in ({}, {"tqdm": None}):
        with monkeypatch.context() as patch:
            patch.setattr(runs, "time", clock)
            for name in module:
                patch.setitem(sys.modules, name, None)
            progress = runs._Progress(3 * task.work)
            clock.now += 10.0
            progress.show([task])
            progress.add(task.work)
            clock.now += 10.0
            progress.show([task])
            progress.close()
            printed = capsys.readouterr().err
        assert "0%" in printed and "33%" in printed
        assert "about 40 s left; cdsk on umist" in printed


def test_two_runs_cannot_write_to_one_file(tmp_path):
    with (
        Records(tmp_path / "file"),
        pytest.raises(SystemExit, match="is used by another run"),
    ):
        Records(tmp_path / "file")


def test_invalid_lines_are_ignored(tmp_path):
    path = tmp_path / "file"
    good = {"set": "a", "method": "b", "sample": None, "seed": 0}
    path.write_text('{"set": "a"}\n[1]\n\n3\n{"se', "utf-8")
    with Records(path) as records:
        records.append(good)
        records.append(good | {"status": "done"})
    assert list(read(path).values()) == [good | {"status": "done"}]


def test_error_names_missing_data(data, capsys):
    with pytest.raises(SystemExit):
        paper.main(["--data", str(data), "--sets", "mnist"])
    assert "must contain NAME.npz files; missing: mnist." in capsys.readouterr().err


# --- tables -------------------------------------------------------------------------


def record(name="coil100", method="kmeans", seed=0, **more):
    found = {"set": name, "method": method, "seed": seed, "sample": None, "of": 7200}
    found |= {"status": "done", "n": 7200, "accuracy": 0.5, "nmi_max": 0.6, "nmi": 0.7}
    found |= {"ari": -0.01, "seconds": 3.0, "memory": 2e8, "whole": True}
    return found | {"warnings": {}} | more


def test_methods_that_do_not_scale_run_on_a_marked_sample(data, tmp_path, monkeypatch):
    small = Method("Small", "RAG", METHODS["kmeans"].make, limit=100)
    monkeypatch.setitem(METHODS, "small", small)
    given = {"data": data, "sets": ["ionosphere"], "methods": ["kmeans", "small"]}
    given |= {"redo": None, "budget": 1.0, "sample": 30, "repeats": 1}
    whole, part = tasks(type("Options", (), given), {})
    assert (whole.sample, part.sample) == (None, 30)
    size, found = worker.records("ionosphere", "small", "paper", [0], data, 30)
    assert size == {"n": 30} and found["status"] == "done"
    made = [whole.record(n=150, **found), part.record(n=30, **found)]
    text = markdown("paper", cells(made), "command")
    assert "| Small† |" in text and "150 points; † 30 of them." in text
    assert "† / .70(.11) |" in text
    assert (whole.work, part.work) == (150, 30)
    # separately for all points and for the sample
    assert "| highest NMI | K-Means |" in text and "| highest NMI† | Small |" in text


def test_only_sampled_methods_run_on_samples_only(data, monkeypatch):
    given = {"data": data, "sets": ["ionosphere"], "methods": ["one"]}
    given |= {"redo": None, "budget": 1.0, "sample": 30, "repeats": 1}
    for limit, expected in ((100, [30]), (1000, [])):
        one = Method("One", "", METHODS["kmeans"].make, limit, only_sampled=True)
        monkeypatch.setitem(METHODS, "one", one)
        found = tasks(type("Options", (), given), {})
        assert [task.sample for task in found] == expected


def test_records_of_other_data_are_not_reused(data):
    given = {"data": data, "sets": ["ionosphere"], "methods": ["kmeans"]}
    given |= {"redo": None, "budget": 1.0, "sample": 30, "repeats": 1}
    options = type("Options", (), given)
    for n, left in ((150, 0), (151, 1)):
        known = {("ionosphere", "kmeans", None, 0): {"status": "done", "of": n}}
        assert len(tasks(options, known)) == left


def test_unreadable_files_are_tasks_too(tmp_path):
    (tmp_path / "yale.npz").write_bytes(b"no archive")
    np.savez(tmp_path / "umist.npz", X=np.ones((5, 2)))
    (tmp_path / "coil20.npz").write_bytes(b"")
    half = (tmp_path / "umist.npz").read_bytes()[:100]
    (tmp_path / "coil100.npz").write_bytes(half)
    names = ["yale", "umist", "coil20", "coil100"]
    given = {"data": tmp_path, "sets": names, "methods": ["kmeans"]}
    given |= {"redo": None, "budget": 1.0, "sample": 30, "repeats": 1}
    assert [task.of for task in tasks(type("Options", (), given), {})] == [0] * 4


def test_missing_labels_are_an_error(tmp_path):
    np.savez(tmp_path / "yale.npz", X=np.ones((5, 2)), y=np.arange(4))
    with pytest.raises(ValueError, match="a label for each row; got 5 rows and 4 labe"):
        sets.load(tmp_path, "yale", "paper")


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--repeats", "x", "must be an integer of at least 1; got 'x'"),
        ("--jobs", "0", "must be an integer of at least 1; got '0'"),
        ("--budget", "x", "must be a number of seconds above 0; got 'x'"),
        ("--budget", "inf", "must be a number of seconds above 0; got 'inf'"),
    ],
)
def test_invalid_options(data, capsys, option, value, message):
    with pytest.raises(SystemExit):
        paper.main(["--data", str(data), option, value])
    printed = capsys.readouterr().err
    assert message in printed and printed.startswith(
        "usage: python -m benchmarks.paper"
    )


def test_ties_name_the_first_method():
    made = [record(method=m, accuracy=0.5) for m in ("cdsk-uniform", "cdsk")]
    text = markdown("paper", cells(made), "command")
    assert "| highest NMI | CDSK |" in text


def test_unavailable_methods_are_shown_and_tried_again(data, monkeypatch):
    missing = partial(methods._baseline, "NoSuchMethod")
    monkeypatch.setitem(METHODS, "missing", Method("Missing", "MMC", missing))
    _, found = worker.records("ionosphere", "missing", "paper", [0], data, None)
    assert found["status"] == "not available"
    given = {"data": data, "sets": ["ionosphere"], "methods": ["missing"]}
    given |= {"redo": None, "budget": 1.0, "sample": 30, "repeats": 1}
    options = type("Options", (), given)
    (task,) = tasks(options, {})
    made = task.record(n=150, **found)
    text = markdown("paper", cells([made]), "command")
    assert "| not available / .75(.21) |" in text
    assert "cdsk.baselines has no NoSuchMethod (1 of 1 seeds)" in text
    known = {("ionosphere", "missing", None, 0): made}
    assert len(tasks(options, known)) == 1


def test_tables_show_means_deviations_and_errors(tmp_path):
    scored = [record(seed=0), record(seed=1, accuracy=0.7, seconds=9, whole=False)]
    failed = record(seed=2, status="failed", reason="ValueError: no")
    warned = record(method="knn", warnings={"ConvergenceWarning": "1e-3."})
    write(tmp_path, "paper", [*scored, failed, warned], "command")
    text = (tmp_path / "paper-paper.md").read_text("utf-8")
    assert "| K-Means | .60(.60)‡ / .49(.75) |" in text
    shown = (
        "| K-Means‡ | .600±.14 | .600±.00 | .49(.75) | .700±.00 | -.010±.00 | 2 | 3 |"
    )
    assert shown in text
    assert "COIL-100, K-Means: ValueError: no (1 of 3 seeds)." in text
    assert "COIL-100, k-NN spectral: ConvergenceWarning: 1e-3 (1 of 1 seeds)." in text
    with open(tmp_path / "paper-paper.csv", newline="", encoding="utf-8") as file:
        kmeans, knn = csv.DictReader(file)
    assert (kmeans["COIL-100 AC"], kmeans["COIL-100 paper AC"]) == ("0.6000", "0.49")
    assert (knn["COIL-100 NMI"], knn["COIL-100 paper NMI"]) == ("0.6000", "")
    path = tmp_path / "paper-paper-scores.csv"
    with open(path, newline="", encoding="utf-8") as file:
        kmeans, _ = csv.DictReader(file)
    assert float(kmeans["AC deviation"]) == pytest.approx(0.1414, abs=1e-4)
    assert (kmeans["seeds"], kmeans["asked"]) == ("2", "3")


def test_tables_have_at_most_100_columns_and_the_figure_is_written(tmp_path):
    some = {"of": 70_000, "n": 2500, "sample": 2500, "seconds": 12345.6}
    made = [
        record(name, method, seed, **some | {"memory": 3e10})
        for name in sets.SETS
        for method in METHODS
        for seed in range(2)
    ]
    made += [
        record(name, "kmeans", 2, status="failed", reason="E: " + 40 * "word ")
        for name in sets.SETS
    ]
    command = "python -m benchmarks.paper " + 10 * "--methods-and-sets "
    text = markdown("paper", cells(made), command)
    assert max(map(len, text.splitlines())) <= 100  # as in docs
    for known in sets.SETS.values():
        assert f"### {known.name}\n" in text
    figure(tmp_path, "paper", made)
    assert (tmp_path / "paper-paper.png").stat().st_size > 10_000


def test_kmeans_is_that_of_scikit_learn(data):
    X, y = sets.load(data, "ionosphere", "paper")
    _, found = worker.records("ionosphere", "kmeans", "paper", [5], data, None)
    labels = KMeans(3, n_init=1, random_state=5).fit(X).labels_
    assert found["accuracy"] == accuracy(y, labels)
