"""Every study runs on tiny data sets.

The studies import private names and take up to an hour. Without these tests, a renaming
would be noticed only when a study is next run.
"""

import importlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

import cdsk
from cdsk import _view_choice

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]


def three_clusters(d):
    return make_blobs(60, d, centers=3, cluster_std=0.3, random_state=0)


@pytest.fixture
def folder(tmp_path):
    X, y = three_clusters(70)
    np.savez(tmp_path / "images.npz", X=np.abs(X), y=y, shape=(7, 10))
    battery = tmp_path / "clustering-data-v1" / "battery"
    battery.mkdir(parents=True)
    X, y = three_clusters(2)
    np.savetxt(battery / "noisy.data.gz", X)
    # label 0 is noise
    labels = np.where(np.arange(60) < 5, 0, y + 1)
    np.savetxt(battery / "noisy.labels0.gz", labels, fmt="%d")
    (tmp_path / "out").mkdir()
    return tmp_path


def test_every_study_has_a_test():
    studies = (Path(__file__).parents[1] / "benchmarks" / "studies").glob("*.py")
    names = {path.stem for path in studies} - {"sets"}  # used by all studies
    assert names
    assert {f"test_{name}" for name in names} <= set(globals())


def run(monkeypatch, name, *arguments):
    monkeypatch.setattr("sys.argv", [name, *map(str, arguments)])
    importlib.import_module(f"benchmarks.studies.{name}").main()


def test_defaults(folder, monkeypatch):
    study = importlib.import_module("benchmarks.studies.defaults")
    few = [("few", *three_clusters(2))]
    # the generated sets are many and large
    monkeypatch.setattr(study, "_others", lambda: few)
    monkeypatch.setattr(study, "noisy", lambda rng, seed, share: few)
    run(monkeypatch, "defaults", folder, "--out", folder / "out")
    written = {path.name for path in (folder / "out").iterdir()}
    assert written == {f"defaults-{name}.md" for name in study.STUDIES}
    for path in (folder / "out").iterdir():
        assert max(map(len, path.read_text().splitlines())) <= 100  # as in docs
    text = (folder / "out" / "defaults-labels.md").read_text()
    assert text.startswith(
        "# Labels\n\nMean NMI and ARI over the 2 sets and over the 1"
    )
    assert "| kmeans | 1.000 | 1.000 |" in text
    assert "NMI of each family:\n\n|  | battery | images |" in text
    assert "\n## One kernel\n" in (folder / "out" / "defaults-rules.md").read_text()


def test_small(monkeypatch, capsys):
    study = importlib.import_module("benchmarks.studies.small")
    monkeypatch.setattr(study, "unequal", lambda seeds: [("few", *three_clusters(2))])
    monkeypatch.setattr(study, "mixed", lambda seeds: [("few", *three_clusters(4))])
    run(monkeypatch, "small", "--seeds", 1)
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("| few | 1 | 1.000/1.000 |")]
    # the drawing itself
    monkeypatch.undo()
    for family, X, y in (*study.unequal(1), *study.mixed(1)):
        assert len(X) == len(y) and np.isfinite(X).all(), family
        assert y.max() + 1 == len(np.unique(y[y >= 0]))


def test_blocks(folder, monkeypatch, capsys):
    study = importlib.import_module("benchmarks.studies.blocks")
    X, y = three_clusters(2)
    few = [("few", X, y, np.ones(len(y), bool))]
    monkeypatch.setattr(study, "drawn", lambda seed, times: few)
    monkeypatch.setattr(study, "LEAST", 50)
    run(monkeypatch, "blocks", folder, "--baselines")
    lines = capsys.readouterr().out.splitlines()
    table = lines[lines.index("| variant | half 0 | half 1 |") + 2 :]
    assert len(table) == len(study.VARIANTS) + 2
    assert table[0].startswith("| default | no set | 1.000/1.000")
    X, y, counted = study.rare(2000, 0)
    assert X.shape == (2000, 8) and counted.sum() == (y < 20).sum()


def test_blocks_by_all_rows(monkeypatch):
    study = importlib.import_module("benchmarks.studies.blocks")
    X = np.random.RandomState(0).standard_normal((2000, 3))
    X[1234] += 100.0
    chosen = study.scalable(X, np.ones(2000), 40, np.random.RandomState(0), 1)
    assert len(np.unique(chosen)) == 40
    assert 1234 in chosen
    few = {"n_landmarks": 40, "sample_size": 80, "representation": "raw"}
    for passes in (study.passes.ThreadPasses, study.AllRows):
        monkeypatch.setattr(study.estimator, "ThreadPasses", passes)
        places = study.BlockCDSK(2, random_state=0, **few).fit(X).landmarks_
        assert len(places) == 40
        assert (places.max() > 50) == (passes is study.AllRows)


def test_approximate(folder, monkeypatch, capsys):
    pytest.importorskip("pynndescent")
    run(monkeypatch, "approximate", folder, "--sizes", 60, "--shapes", "80x30")
    lines = [line for line in capsys.readouterr().out.splitlines() if "| " in line]
    assert len(lines) == 2 + 2


def test_eigensolvers(folder, monkeypatch, capsys):
    study = importlib.import_module("benchmarks.studies.eigensolvers")
    X = np.random.RandomState(0).standard_normal((300, 64))
    np.savez(folder / "mnist.npz", X=np.abs(X), y=np.arange(300) % 3, shape=(8, 8))
    monkeypatch.setattr(study, "DENSE_POINTS", 200)
    monkeypatch.setattr(study, "SIZES", (50,))
    run(monkeypatch, "eigensolvers", folder)
    text = capsys.readouterr().out
    assert text.count("\n| --- |") == 4
    line = next(line for line in text.splitlines() if "eigsh` on banded" in line)
    assert line.endswith("| 0 | 0 | 0 |")
    assert study.missed([1.0, 1.0, 0.9, 0.8], [1.0, 0.9, 0.8, 0.7]) == 1


def test_n_clusters(folder, monkeypatch, capsys):
    study = importlib.import_module("benchmarks.studies.n_clusters")
    monkeypatch.setattr(
        study, "iter_scikit_learn_sets", lambda cap: study.sets.load(folder, cap)
    )
    monkeypatch.setattr(study, "UNIT_SEEDS", range(1))
    run(monkeypatch, "n_clusters", folder, "--out", folder / "out")
    # count.md is written by hand
    assert [path.name for path in (folder / "out").iterdir()] == ["count.csv"]
    lines = (folder / "out" / "count.csv").read_text().splitlines()
    assert len(lines) == 1 + 2 * 2
    text = capsys.readouterr().out
    assert "Of the folder, use design: 2 sets" in text
    assert "| HDBSCAN |" in text
    assert "882 variants, chosen on one half of 2 sets" in text
    assert "\n| 3, 4, 6 blobs in a row | 6 / 0 | 6 / 0 | 6 / 0 | " in text


def test_indefinite(folder, monkeypatch, capsys):
    run(monkeypatch, "indefinite", folder, "--out", folder / "out")
    lines = (folder / "out" / "general.csv").read_text().splitlines()
    assert len(lines) == 1 + 2 * 4 * 4
    assert "split" in capsys.readouterr().out


def test_indefinite_cost(monkeypatch, capsys):
    run(monkeypatch, "indefinite_cost", 100)
    assert capsys.readouterr().out.count("negative: test") == 3


def test_builds(monkeypatch, capsys):
    here = Path(cdsk.__file__).parents[1]
    few = ["--only", "fit, 200", "solve_qp of 10"]
    run(monkeypatch, "builds", here, here, "--rounds", 1, *few)
    head, _, *lines = capsys.readouterr().out.splitlines()
    assert head.count(here.name) == 2
    assert [line.split(" | ")[0] for line in lines] == [
        "| import of CDSK",
        "| fit, 200",
        "| solve_qp of 10",
    ]


def test_lam(folder, monkeypatch, capsys):
    run(monkeypatch, "lam", folder, "--out", folder / "out", "--step", 5)
    lines = (folder / "out" / "lambda.csv").read_text().splitlines()
    assert len(lines) == 1 + 2 * (2 + 4)
    assert "mean NMI, ARI over 2 sets" in capsys.readouterr().out


def test_theory(capsys):
    # the rest is a quarter of an hour of cross-validation with public functions only
    importlib.import_module("benchmarks.studies.theory").bounds()
    assert capsys.readouterr().out.count("total < 1 from n =") == 4


def test_views(folder, monkeypatch, capsys):
    study = importlib.import_module("benchmarks.studies.views")
    X, y = three_clusters(4)
    np.savez(folder / "t_units.npz", X=np.repeat(X, 2, axis=0), y=np.repeat(y, 2))
    few = [("few", *three_clusters(2))]
    monkeypatch.setattr(study, "noisy", lambda rng, seed, share: few)
    cache = folder / "cache"
    with pytest.raises(SystemExit, match="cache contains no partitions"):
        run(monkeypatch, "views", "rules", cache)
    only = "--only", "images", "units", "battery", "few 0.1 0"
    run(monkeypatch, "views", "fit", folder, cache, "--neighbors", 20, 5, *only)
    assert capsys.readouterr().out.count(" s\n") == len(list(cache.iterdir())) / 2 == 4
    with np.load(cache / "t_units~20.npz") as kept:
        assert kept["n_distinct"] == 60
        assert set(kept["views"]) == {"given", "standard", "ranks"}
        wide = kept["scales"] == 1
        for found in (*kept["learned"][wide], *kept["uniform"][wide]):
            assert adjusted_rand_score(y.repeat(2), found) == 1
    run(monkeypatch, "views", "rules", cache)
    lines = capsys.readouterr().out.splitlines()[2:]
    assert len(lines) == len(study.VARIANTS)
    # four sets, one of them twice; there is none of fcps
    assert all(" | 5 | " in line and line.endswith(" |  |  |  |  |") for line in lines)
    with pytest.raises(SystemExit, match="no data sets in"):
        run(monkeypatch, "views", "fit", cache / "none", cache)


def test_lowrank(folder, monkeypatch, capsys):
    run(monkeypatch, "lowrank", folder, "--seeds", 1, "--rank", 10)
    text = capsys.readouterr().out
    assert text.count("median | 10 |") == 4
    assert "Ours is closer in " in text


def test_mnist_full(folder, monkeypatch, capsys):
    # ten clusters far apart: labels that no rounding changes
    X, y = make_blobs(200, 64, centers=10, center_box=(40, 200), random_state=0)
    np.savez(folder / "mnist.npz", X=X.round().astype(np.uint8), y=y)
    for kernel in ("exact", "lowrank"):
        run(
            monkeypatch,
            "mnist_full",
            folder,
            kernel,
            "--bandwidth",
            0.5,
            "--out",
            folder / "out",
        )
        text = capsys.readouterr().out
        assert f"{kernel}: n=200, bandwidth 0.5, " in text
        assert "NMI 1.000, ARI 1.000" in text
    assert "ARI between the labels of both: 1.000" in text
    # it is the labels of the other that are compared
    labels = np.load(folder / "out" / "mnist-pixels-0.5-200-exact.npy")
    np.save(folder / "out" / "mnist-pixels-0.5-200-exact.npy", np.roll(labels, 1))
    run(
        monkeypatch,
        "mnist_full",
        folder,
        "lowrank",
        "--bandwidth",
        0.5,
        "--out",
        folder / "out",
    )
    assert "ARI between the labels of both: 1.000" not in capsys.readouterr().out


def test_noise(folder, monkeypatch, capsys):
    study = importlib.import_module("benchmarks.studies.noise")
    X, y = three_clusters(2)
    far = np.random.RandomState(0).uniform(-40, 40, (9, 2))
    few = [("noisy few", np.concatenate([X, far]), np.append(y, np.full(9, -1)))]
    monkeypatch.setattr(study, "generated", lambda: [("few", X, 3)])
    monkeypatch.setattr(study, "noisy", lambda rng, seed, share: few)
    monkeypatch.setattr(study, "BATTERIES", {"design": ("battery",)})
    np.savetxt(folder / "clustering-data-v1" / "battery" / "few.data.gz", X)
    labels = folder / "clustering-data-v1" / "battery" / "few.labels0.gz"
    np.savetxt(labels, y + 1, fmt="%d")
    run(monkeypatch, "noise", folder)
    text = capsys.readouterr().out
    assert text.count("\n| HDBSCAN |") == 4
    assert "| battery (design) | 1 | " in text  # noisy.data.gz is not clean
    # our own rule as the study calls it is that of a fit
    data = study.Data(few[0][1], 3)
    rule = study.noise.fit_noise_rule(data.neighbors(12), data.labels, 0.01)
    marks = rule.is_noise()
    assert marks.any()
    np.testing.assert_array_equal(study.ours(data, 0.01), marks)


def test_calibration(folder, monkeypatch, capsys):
    run(monkeypatch, "calibration", folder, "--fewest", 50)
    printed = capsys.readouterr().out
    assert "images" in printed
    assert "battery/noisy" in printed
    assert "mean of 2 sets" in printed
    study = importlib.import_module("benchmarks.studies.calibration")
    p = np.array([[0.9, 0.1]] * 50 + [[0.4, 0.6]] * 50)
    right = np.concatenate([np.arange(50) % 10 == 0, np.arange(50) % 10 < 6])
    assert max(study.gaps(p, right.astype(int))) < 0.2
    assert study.gaps(p, 1 - right.astype(int))[1] > 0.5


def test_voters(folder, monkeypatch, capsys):
    study = importlib.import_module("benchmarks.studies.voters")
    few = [("few", *three_clusters(2))]
    monkeypatch.setattr(study, "noisy", lambda rng, seed: few)
    monkeypatch.setattr(study, "SEEDS", range(1))
    run(monkeypatch, "voters", folder)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 * len(study.GROUPS | study.WIDE_GROUPS)
    assert all(line.endswith("1.000 / 1.000") for line in lines)


def test_layouts(folder, monkeypatch, capsys):
    monkeypatch.setattr(_view_choice, "_MIN_LAYOUT_POINTS", 50)
    monkeypatch.setattr(_view_choice, "_MIN_LAYOUT_POINTS_PER_CLUSTER", 10)
    monkeypatch.setattr(_view_choice, "MIN_FEATURES_FOR_SCORES", 2)
    run(monkeypatch, "layouts", folder, "--seeds", "0")
    *lines, last = capsys.readouterr().out.splitlines()
    assert lines
    # easy sets: all three fits find the clusters
    assert all(line.split()[1:4] == 3 * ["1.000/1.000"] for line in lines)
    assert last == f"mean gain of {len(lines)} sets: +0.000/+0.000"


def test_published(folder, monkeypatch, capsys):
    study = importlib.import_module("benchmarks.studies.published")
    battery = folder / "clustering-data-v1" / "battery"
    # a second reference, worse and of two clusters: the first one counts
    labels = np.loadtxt(battery / "noisy.labels0.gz", dtype=int)
    np.savetxt(battery / "noisy.labels1.gz", 1 + np.arange(60) % 2, fmt="%d")
    lines = [
        "Raw results for ``nmi`` (best=1.0):",
        "",
        "|               |   Genie_0.3 |   Gaussian mixtures  |",
        "|---------------|-------------|----------------------|",
        "| battery/noisy |         0.5 |                 0.75 |",
        "| other/none    |         1   |                 1    |",
        "",
    ]
    large = ["| battery/noisy |         0.1 |                 0.1  |"]
    text = [*lines, *(line.replace("nmi", "ar") for line in lines), *lines[:4], *large]
    (folder / study.SOURCE).write_text("\n".join(text))
    for index in study.INDICES:
        run(monkeypatch, "published", folder, folder, "--index", index)
        printed = capsys.readouterr().out.splitlines()
        assert printed[:3] == [
            "|  | all (1) | battery (1) |",
            "| --- | --- | --- |",
            "| CDSK | 1.000 | 1.000 |",
        ]
        assert "| Genie_0.3 | 0.500 | 0.500 |" in printed
        assert f"| {study.BEST} | 0.750 | 0.750 |" in printed
        assert printed[-1].endswith("on 1 of 1 sets.")
    run(monkeypatch, "published", folder, folder, "--sets")
    assert "| battery/noisy | 1.00 | 0.50 | 0.75 | 0.75 |" in capsys.readouterr().out
    # no score is negative: every cluster found has half of each one of the reference
    X, _ = three_clusters(2)
    crossed = np.empty(60, dtype=int)
    for cluster in range(4):
        crossed[labels == cluster] = 1 + np.arange(np.sum(labels == cluster)) % 2
    assert 0 <= study.best_score(X, [crossed], "ar") < 0.1
    with pytest.raises(SystemExit, match="no line 'Raw results for ``fm``'"):
        study.read_published(folder / study.SOURCE, "fm")
    with pytest.raises(SystemExit, match="contains no set of"):
        run(monkeypatch, "published", folder / "out", folder)


def test_tables(tmp_path, monkeypatch, capsys):
    study = importlib.import_module("benchmarks.studies.tables")
    X, y = three_clusters(2)
    table = pd.DataFrame({"x": X[:, 0], "y": X[:, 1], "code": y, "class": y})
    table.loc[::7, "code"] = None
    for name in ("few", "left out"):
        table.to_csv(tmp_path / f"{name}.csv.gz", index=False)
    kinds = {"x": "number", "y": "number", "code": "category"}
    lines = [f"{n},{c},{k}" for n in ("few", "left out") for c, k in kinds.items()]
    (tmp_path / "columns.csv").write_text("\n".join(lines))
    run(monkeypatch, "tables", tmp_path, "--without", "left out")
    voters, fits = capsys.readouterr().out.split("\n\n")
    assert voters.startswith("| 1 tables |")
    assert voters.count("| 1.000 / 1.000 ") == 4 * len(study.VOTERS)
    assert fits.count("| 1.000 / 1.000 |") == 3 + len(study.GAINS) + 6 + 4
    (_, frame, labels), _ = study.load(tmp_path, 50)
    assert len(frame) == len(labels) == 50
    kept = np.random.RandomState(0).permutation(60)[:50]
    np.testing.assert_array_equal(frame["code"].isna(), kept % 7 == 0)


def test_gains_select_the_coding(monkeypatch):
    study = importlib.import_module("benchmarks.studies.tables")
    first, other = study.CODINGS

    class Model:
        def __init__(self, n_clusters, representation, **parameters):
            self.labels_ = representation
            self.representation_ = SimpleNamespace(scores={first: 1.0, other: 1.6})

        def fit(self, frame):
            return self

    monkeypatch.setattr(study, "CDSK", Model)
    found = study.by_gain(None, 2)
    assert [found[f"selected, gain {gain:g}"] for gain in (1.0, 1.2, 1.5)] == 3 * [
        other
    ]
    assert found["selected, gain 2"] == first
    assert found["default"] == "auto"


def test_missing(folder, monkeypatch, capsys):
    study = importlib.import_module("benchmarks.studies.missing")
    X, y = three_clusters(4)
    np.savez(folder / "t_few.npz", X=X, y=y)
    np.savez(folder / "t_wide.npz", X=np.tile(X, 20), y=y)
    names = [name for name, *_ in study.load(folder, 60)]
    assert names[:4] == ["t_few", "iris", "wine", "breast_cancer"]
    assert len(names) == 4 + 2 * 5
    few = [("few", X, y)]
    monkeypatch.setattr(study, "load", lambda folder, cap: few)
    run(monkeypatch, "missing", folder, "--repeats", 1)
    head, _, *lines = capsys.readouterr().out.splitlines()
    assert head.startswith("| 1 sets | 10% at random | 10% by another feature | 30%")
    assert len(lines) == len(study.IMPUTERS)
    assert lines[-1].startswith("| CDSK | 1.000 / 1.000 | 1.000 / 1.000 |")


@pytest.mark.parametrize("place", [0, 1])
def test_removed_cells(place):
    study = importlib.import_module("benchmarks.studies.missing")
    rng = np.random.RandomState(0)
    X, mechanism = rng.normal(size=(4000, 5)), study.MECHANISMS[place]
    holed = study.remove(X, 0.3, mechanism, rng)
    is_missing = np.isnan(holed)
    np.testing.assert_allclose(is_missing.mean(axis=0), 0.3, atol=0.03)
    np.testing.assert_array_equal(holed[~is_missing], X[~is_missing])
    assert not is_missing.all(axis=1).any()
    # how much larger the feature before is where a cell is missing
    before = np.roll(X, 1, axis=1)
    gap = before[is_missing].mean() - before[~is_missing].mean()
    assert (gap > 0.5) == bool(place)
    assert (abs(gap) < 0.1) == (not place)
    assert not np.isnan(study.remove(X[:, :1], 1.0, study.MECHANISMS[0], rng)).any()


@pytest.mark.parametrize("scheme", ["half", "bootstrap"])
def test_stability(scheme, monkeypatch, capsys):
    study = importlib.import_module("benchmarks.studies.stability")
    clear = [("clear", three_clusters(2)[0], 3)]
    monkeypatch.setattr(study, "clustered", lambda n, seed: clear)
    monkeypatch.setattr(study, "unclustered", lambda n, seed: [])
    monkeypatch.setattr(study, "N_RESAMPLES", 3)
    monkeypatch.setattr(study, "N_NULL", 3)
    monkeypatch.setattr(study._stability, "draw_sample", study._stability.draw_sample)
    run(monkeypatch, "stability", "--seeds", "1", "--scheme", scheme)
    name, ari, *_, stable, _, clusters = (
        capsys.readouterr().out.splitlines()[-1].split(" | ")
    )
    assert (name, ari, stable, clusters) == ("clear", "1.0", "1.0", "1.0")


def test_sizes(monkeypatch, capsys):
    run(monkeypatch, "sizes", "--sizes", 300, 3000, "--seeds", 1)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert "3000 points, 50 clusters" in lines[-1]
    assert "-> 54 to 66, moved" in lines[-1]


def test_updates(monkeypatch, capsys):
    run(monkeypatch, "updates", "--seeds", 1, "--n", 150)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 * 2 * 5
    assert all("% alarms" in line for line in lines)


@pytest.mark.parametrize("half", ["even", "odd"])
def test_constraints(half, folder, monkeypatch, capsys):
    run(monkeypatch, "constraints", folder, "--half", half, "--draws", "2")
    lines = capsys.readouterr().out.splitlines()
    # three clear clusters; without ten labels per class nobody is told of all rows
    blobs = [i for i, line in enumerate(lines) if line.startswith("halves of")]
    means = [
        line.split() for line in lines[: min(blobs)] if line.startswith("3 labels")
    ]
    assert len(means) == 2
    assert all(mean[2:5] == ["1", "1.000", "1.000"] for mean in means)


def test_labels_of_constraints_are_drawn():
    study = importlib.import_module("benchmarks.studies.constraints")
    y = np.repeat(np.arange(4), 25)
    drawn = study.draw_labels(y, 10, 0.5, np.random.RandomState(0))
    assert np.count_nonzero(drawn >= 0) == 40
    # a quarter of the redrawn ones is right
    assert 5 <= np.count_nonzero((drawn >= 0) & (drawn != y)) <= 25
    must, cannot = study.draw_links(y, 30, 0.0, np.random.RandomState(0))
    assert len(must) + len(cannot) == 30
    assert (y[must[:, 0]] == y[must[:, 1]]).all()
    assert (y[cannot[:, 0]] != y[cannot[:, 1]]).all()


def test_layers(folder, monkeypatch, capsys):
    run(monkeypatch, "layers", "--data", folder)
    *lines, header, even, odd = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if line]) == 2
    assert header.split(" | ")[1] == "layers"
    # three clear clusters: every tree has them
    assert even.split(" | ")[:2] == ["even", "1.0"]
    assert odd.split(" | ")[:2] == ["odd", "1.0"]


def test_sample(folder, monkeypatch, capsys):
    run(monkeypatch, "sample", folder, "--n", 400, "--sizes", 200, 25)
    lines = capsys.readouterr().out.splitlines()
    # seven generated sets, the last two and those of the folder with 60 points
    assert len(lines) == 9
    *_, spirals, images, noisy = (line.split() for line in lines)
    assert spirals[:2] == ["spirals", "400"]
    # nothing is sampled without room for 100 points per cluster
    assert images[2::3] == noisy[2::3] == 3 * ["1.000/1.000"]


def test_dendrogram_purity():
    study = importlib.import_module("benchmarks.studies.layers")
    rng = np.random.default_rng(0)
    y, leaves = rng.integers(0, 3, 40), rng.permutation(np.arange(40) % 6)
    merges = [(0, 1), (2, 3), (6, 4), (7, 8), (9, 5)]
    rows = [set(np.flatnonzero(leaves == leaf)) for leaf in range(6)]
    rows += [set() for _ in merges]
    for i, (a, b) in enumerate(merges):
        rows[6 + i] = rows[a] | rows[b]
    shares = []
    for i in range(40):
        for j in range(i):
            if y[i] == y[j]:
                smallest = min((own for own in rows if {i, j} <= own), key=len)
                shares.append(np.mean(y[list(smallest)] == y[i]))
    purity = study.dendrogram_purity(merges, leaves, y)
    np.testing.assert_allclose(purity, np.mean(shares))
    # the same tree as a condensed one, whose points are children of their leaf
    node = [
        50 - i for i in range(11)
    ]  # the last merge is 40, children have larger ones
    parents = [node[leaf] for leaf in leaves]
    children = list(range(40))
    for i, pair in enumerate(merges):
        parents += [node[6 + i]] * 2
        children += [node[child] for child in pair]
    tree = {"parent": np.array(parents), "child": np.array(children)}
    np.testing.assert_allclose(study.condensed_purity(tree, y), purity)
