"""BlockCDSK: the same bits for any blocks and threads, and its accuracy."""

import itertools
import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from cdsk import CDSK, BlockCDSK, plot
from cdsk.blocks._estimator import default_n_landmarks
from cdsk.blocks._landmark_kernels import BANDWIDTH_FACTORS
from cdsk.blocks._landmarks import FIXED_POINT_ONE, N_NEAREST
from cdsk.blocks._predictor import LandmarkPredictor
from cdsk.blocks._sample import hash_rows


@parametrize_with_checks([BlockCDSK(n_threads=1)])
@pytest.mark.filterwarnings("ignore:The sample of X has . distinct point")
def test_scikit_learn_common_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(600, 4, centers=5, cluster_std=1.5, random_state=0)


@pytest.fixture(scope="module")
def fitted(blobs):
    """A model of the blobs, which tests do not modify."""
    return BlockCDSK(5, random_state=0, n_threads=1).fit(blobs[0])


def split(X, *cuts):
    ends = [0, *cuts, len(X)]
    return [X[a:b] for a, b in itertools.pairwise(ends)]


def state(model):
    return (
        model.labels_,
        model.landmarks_,
        model.landmark_counts_,
        model.landmark_model_.weights_,
        model.landmark_model_.embedding_,
        model.decision_function(model.landmarks_[:20]),
    )


@pytest.mark.parametrize(
    ("cuts", "n_threads"),
    [((), 2), ((1,), 1), (range(50, 600, 50), 1), ((1, 2, 3, 599), 2)],
)
def test_same_bits_for_any_blocks_and_threads(blobs, fitted, cuts, n_threads):
    model = clone(fitted).set_params(n_threads=n_threads).fit(split(blobs[0], *cuts))
    for a, b in zip(state(model), state(fitted), strict=True):
        assert a.dtype == b.dtype
        assert (a == b).all()


@pytest.mark.parametrize("rows", [1, 13, 4000])
def test_same_bits_for_any_size_of_parts(blobs, fitted, rows, monkeypatch):
    X = blobs[0][:100] if rows == 1 else blobs[0]
    expected = fitted if rows > 1 else clone(fitted).fit(X)
    monkeypatch.setattr("cdsk.blocks._passes.choose_part_rows", lambda work: rows)
    monkeypatch.setattr("cdsk.blocks._sources._MAX_PART_ROWS", rows)
    model = clone(fitted).fit(X)
    for a, b in zip(state(model), state(expected), strict=True):
        assert (a == b).all()


def test_brute_force(blobs, fitted):
    """All passes again, on full matrices; the landmarks are clustered by CDSK."""
    X, n = blobs[0], 600
    model = clone(fitted).set_params(landmarks="uniform", representation="raw").fit(X)
    seed = np.random.RandomState(0).randint(2**31 - 1)
    m = default_n_landmarks(n, 5)
    U = X[np.argsort(hash_rows(seed, 0, n))[:m]]
    assert (model.landmarks_ == U).all()
    own = np.sort(cdist(U, U), axis=1)[:, 7]
    scales = np.minimum(own, 2 * np.quantile(own, 0.75))
    D = cdist(X, U)
    nearest = np.argsort(D, axis=1, kind="stable")
    assert (model.landmark_counts_ == np.bincount(nearest[:, 0], minlength=m)).all()
    row_scales = np.minimum(np.take_along_axis(D, nearest[:, 6:7], 1), scales.max())
    factor = BANDWIDTH_FACTORS[model.choice_.chosen]
    Z = np.exp(-(D**2) / (2 * factor**2 * row_scales * scales))
    np.put_along_axis(Z, nearest[:, N_NEAREST:], 0.0, axis=1)
    Z = np.rint(FIXED_POINT_ONE * Z / Z.sum(axis=1, keepdims=True))
    inner = model.landmark_model_
    G = Z.T @ Z  # whole numbers below 2^53
    K = inner._predictor.candidate.kernel().as_array()
    np.testing.assert_allclose(K, G / np.diagonal(G).mean(), rtol=1e-3, atol=1e-6)
    # a row that is a landmark has only that one's vote
    Z[D.min(axis=1) == 0] = 0
    Z[D == 0] = FIXED_POINT_ONE
    votes = Z @ (inner.labels_[:, np.newaxis] == np.arange(5))
    votes *= FIXED_POINT_ONE / votes.sum(axis=1, keepdims=True)
    # rounding by the last bit of exp may turn a tie
    clear = np.diff(np.sort(votes, axis=1)[:, -2:])[:, 0] > 2 * N_NEAREST
    assert clear.mean() > 0.95
    assert (model.labels_ == votes.argmax(axis=1))[clear].all()
    np.testing.assert_allclose(
        model.predict_proba(X), votes / FIXED_POINT_ONE, atol=1e-3
    )
    embedded = Z @ inner.embedding_ / Z.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.transform(X), embedded, atol=1e-3)
    precomputed = CDSK(5, kernel="precomputed", psd=True, random_state=0).fit(G)
    assert adjusted_rand_score(precomputed.labels_, inner.labels_) > 0.95


def test_clusters_are_found(blobs, fitted):
    assert adjusted_rand_score(blobs[1], fitted.labels_) > 0.97
    X, y = make_moons(4000, noise=0.05, random_state=0)
    labels = BlockCDSK(2, random_state=0).fit_predict(X)
    assert adjusted_rand_score(y, labels) > 0.95


def test_a_rare_cluster_is_found(rng):
    # one point in a thousand
    centers = 10 * rng.uniform(-1, 1, size=(8, 6))
    y = np.repeat(np.arange(8), [4284] * 7 + [30])
    X = 0.5 * rng.normal(size=(len(y), 6)) + centers[y]
    order = rng.permutation(len(y))
    labels = BlockCDSK(8, random_state=0).fit(X[order]).labels_
    assert adjusted_rand_score(y[order], labels) == 1.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("d", "sizes", "gap"),
    [(2, (10_000, 1000, 100), 8), (8, (30_000, 300, 60), 20)],
)
@pytest.mark.parametrize("seed", range(2))
def test_thin_clusters_are_found(d, sizes, gap, seed):
    """Clusters with few landmarks keep their labels."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(3), sizes))
    centers = np.zeros((3, d))
    centers[:, 0], centers[:, 1] = [0, gap, 0], [0, 0, gap]
    X = rng.normal(size=(len(y), d)) + centers[y]
    labels = BlockCDSK(3, random_state=seed).fit(X).labels_
    assert adjusted_rand_score(y, labels) > 0.999


def test_many_equal_rows_are_a_cluster(rng):
    # a landmark that shares no row with another
    X = rng.normal(size=(1200, 3))
    y = np.repeat([0, 1, 2], [1000, 100, 100])
    X[y == 0] = 0.0
    X[y == 1] += 30.0
    X[y == 2] -= 30.0
    labels = BlockCDSK(3, representation="raw", random_state=0).fit(X).labels_
    assert adjusted_rand_score(y, labels) == 1.0


def test_labels_equal_predict(blobs, fitted):
    X = blobs[0]
    assert fitted.labels_.dtype == np.int64
    for given in (X, iter(split(X, 100)), split(X, 7, 8), X.tolist()):
        found = fitted.predict(given)
        assert found.dtype == np.int64
        assert (found == fitted.labels_).all()
    log_votes = fitted.decision_function(X)
    assert (log_votes.argmax(axis=1) == fitted.labels_).all()
    shares = fitted.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-12)
    votes = np.exp(log_votes)
    np.testing.assert_allclose(shares, votes / votes.sum(axis=1, keepdims=True))


def test_representation_is_selected_on_the_sample(blobs):
    X = blobs[0] * [1, 1, 1, 1e5] + 1e3
    for view in ("standardize", "normal_scores", "whiten", "auto"):
        model = BlockCDSK(5, representation=view, random_state=0).fit(X)
        if view != "auto":
            assert model.representation_.name == view
        assert adjusted_rand_score(blobs[1], model.labels_) > 0.9, view
        assert (model.predict(split(X, 400)) == model.labels_).all()


def test_pickle_and_clone(blobs, fitted):
    again = pickle.loads(pickle.dumps(fitted))
    assert (again.predict(blobs[0]) == fitted.labels_).all()
    assert str(again.report()) == str(fitted.report())
    assert not hasattr(clone(fitted), "labels_")


def test_report_and_plot_of_landmarks(fitted):
    text = str(fitted.report())
    assert text.startswith("BlockCDSK: 600 rows, 4 features (raw), 300 landmarks\n")
    assert "CDSK: 600 points in 5 clusters" in text
    sizes = "Cluster sizes: " + ", ".join(map(str, np.bincount(fitted.labels_)))
    assert sizes in text
    inner = fitted.landmark_model_
    assert isinstance(inner, CDSK)
    total = np.sum(inner.weights_ * inner.sample_weight_)
    assert total == pytest.approx(1.0)
    plot.overview(inner, fitted.landmarks_)
    assert (inner.predict(fitted.landmarks_) == inner.labels_).mean() > 0.9


def test_landmark_model_remembers_its_parameters(blobs):
    X = blobs[0] if isinstance(blobs, tuple) else blobs
    model = BlockCDSK(5, n_landmarks=50, random_state=7).fit(X)
    inner = model.landmark_model_
    assert inner.params_["random_state"] == inner.random_state == 7
    assert inner.get_params() == inner.params_
    assert model.random_state == 7


def test_feature_names_of_transform(blobs, fitted):
    names = [f"blockcdsk{i}" for i in range(5)]
    assert fitted.get_feature_names_out().tolist() == names
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(blobs[0], columns=list("abcd"), index=range(100, 700))
    model = clone(fitted).set_output(transform="pandas")
    for found in (model.fit_transform(frame), model.transform(frame)):
        assert (found.to_numpy() == fitted.transform(blobs[0])).all()
        assert found.columns.tolist() == names
        assert found.index.equals(frame.index)
    found = model.transform([frame[:100], frame[100:]])
    assert (found.to_numpy() == fitted.transform(blobs[0])).all()
    assert found.columns.tolist() == names
    few = BlockCDSK(2, random_state=0).fit(np.eye(3)[[0, 1, 1]])
    assert len(few.get_feature_names_out()) == few.transform(np.eye(3)).shape[1] == 2


def test_number_of_landmarks():
    assert default_n_landmarks(10**9, 8) == 3000
    assert default_n_landmarks(10**9, 200) == 6000
    assert default_n_landmarks(1000, 8) == 500
    assert default_n_landmarks(300, 8) == 240
    assert default_n_landmarks(100, 8) == 100
    assert default_n_landmarks(5, 8) == 8


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_clusters": 0}, "n_clusters must be an integer of at least 1; got 0"),
        ({"n_clusters": "auto"}, "must be an integer .*; got 'auto'.* suggest_n_clust"),
        ({"n_clusters": 2000}, "at most the number of samples; got n_clusters=2000"),
        ({"n_landmarks": 1}, "n_landmarks must be an integer of at least 2; got 1"),
        ({"n_landmarks": 7}, "n_landmarks must be at least n_clusters=8; got 7"),
        ({"sample_size": 1.5}, r"sample_size must be an integer of .*; got 1\.5"),
        ({"sample_size": 7}, "sample_size must be at least n_clusters=8; got 7"),
        ({"landmarks": "grid"}, "landmarks must be one of 'kmeans', 'uniform'; got"),
        ({"representation": "log"}, "representation must be one of"),
        ({"lam": "auto"}, "lam must be a number > 0 and <= 1; got 'auto'"),
        ({"assign_labels": "no"}, "assign_labels must be one of"),
        ({"max_iter": -1}, "max_iter must be an integer"),
        ({"random_state": "x"}, "random_state must be"),
    ],
)
def test_invalid_parameters(blobs, parameters, message):
    with pytest.raises(ValueError, match=message):
        BlockCDSK(**parameters).fit(blobs[0])


class Growing:
    """Blocks with more rows in a later pass."""

    def __init__(self, X, change):
        self.X, self.times, self.change = X, 0, change

    def __iter__(self):
        self.times += 1
        yield self.X
        if self.times >= self.change:
            yield self.X[:10]


@pytest.mark.parametrize("change", [2, 3])
def test_data_that_change_between_passes(blobs, change):
    with pytest.raises(ValueError, match=r"the same rows in every pass.* 600 rows in"):
        BlockCDSK(5, random_state=0).fit(Growing(blobs[0], change))


def test_invalid_data(blobs, fitted):
    X = blobs[0].copy()
    fitted = clone(fitted).set_params(missing="error").fit(X)
    before = fitted.__dict__.copy()
    X[434, 1] = np.nan
    for n_threads in (1, 2):
        model = clone(fitted).set_params(n_threads=n_threads)
        with pytest.raises(ValueError, match=r"NaN at row 434.*\(row 234 of block 1\)"):
            model.fit(split(X, 200))
        with pytest.raises(ValueError, match="Block 1 of X must have 4 columns; got 3"):
            model.fit([X[:10], X[10:, :3]])
    with pytest.raises(
        ValueError, match="X must have at least 2 rows; got n_samples=1"
    ):
        model.fit(X[:1])
    with pytest.raises(ValueError, match="at least 2 rows; got n_samples=0"):
        model.fit([X[:0], X[:0]])
    with pytest.raises(
        ValueError, match="X has 3 features, but BlockCDSK is expecting 4"
    ):
        fitted.predict(X[:, :3])
    with pytest.raises(ValueError, match="NaN at row 434"):
        fitted.predict(X)
    assert fitted.__dict__ == before


@pytest.mark.parametrize(
    ("view", "scale", "wrong", "got"),
    [
        # beyond what any data may hold
        ("raw", 1.0, 1e200, r"1\.0e\+200 at row 434, column 1 \(row 234 of block 1\)"),
        # beyond it in units of the others; row 434 is not in the sample
        (
            "raw",
            1e-5,
            1e148,
            r"at row 234\. .* to row 200 of X, row 0 of block 1\.\)",
        ),
        (
            "standardize",
            1e-5,
            1e148,
            r"at row 234\. .* to row 200 of X, row 0 ",
        ),
    ],
)
def test_rows_beyond_the_largest_coordinate(blobs, view, scale, wrong, got):
    X = scale * blobs[0]
    how = {"random_state": 0, "n_threads": 1, "representation": view}
    model = BlockCDSK(5, n_landmarks=50, sample_size=100, **how).fit(X)
    X[434, 1] = wrong
    for use in (clone(model).fit, model.predict, model.transform):
        with pytest.raises(ValueError, match=f"coordinates of magnitude .*{got}"):
            use(split(X, 200))


def test_few_distinct_rows():
    X = np.repeat([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], 20, axis=0)
    assert len(np.unique(BlockCDSK(3, random_state=0).fit_predict(X))) == 3
    with pytest.warns(UserWarning, match="The sample of X has 3 distinct points"):
        BlockCDSK(4, random_state=0).fit(X)


@pytest.mark.parametrize("view", ["auto", "raw", "standardize", "whiten"])
@pytest.mark.parametrize("n_clusters", [1, 2, 9])
def test_equal_rows_are_one_cluster(view, n_clusters):
    """As CDSK has them, its warning included."""
    X = np.full((20, 3), 7.0)
    new = X[:4] + [[0.0], [5.0], [-1e3], [1e8]]
    how = {"n_clusters": n_clusters, "representation": view, "random_state": 0}
    found = []
    for model in (CDSK(**how), BlockCDSK(**how), BlockCDSK(landmarks="uniform", **how)):
        with warnings.catch_warnings(record=True) as record:
            warnings.simplefilter("always")
            model.fit(X)
        warned = [(w.category, str(w.message).split(" has ")[1]) for w in record]
        log_votes = model.decision_function(new)
        found.append(
            [
                *(warned, model.labels_.tolist(), model.predict(new).tolist()),
                *(model.predict_proba(new).tolist(), np.isinf(log_votes).tolist()),
                *(model.transform(new).tolist(), model.transform(X).tolist()),
                model.n_clusters_,
            ]
        )
    expected, *results = found
    assert expected[1] == [0] * 20
    assert len(expected[0]) == (n_clusters > 1)
    assert results == [expected] * 2


def test_a_sample_of_equal_rows():
    X = np.zeros((1000, 2))
    X[7] = 9.0
    with pytest.warns(ConvergenceWarning, match="distinct points"):
        model = BlockCDSK(2, n_landmarks=2, sample_size=5, random_state=0).fit(X)
    assert (model.labels_ == 0).all()
    assert model.landmark_counts_.sum() == 1000
    assert "Cluster sizes: 1000, 0\n" in str(model.report())


def test_few_rows_of_many_features_need_little_memory(rng, limit_memory):
    # 30 000 of them, as many as a sample may have, would need 480 MB
    X = rng.normal(size=(40, 1000))
    X[20:] += 5.0
    limit_memory(200 * 2**20)
    for given in (X, split(X, 10)):
        labels = BlockCDSK(2, representation="raw", random_state=0).fit(given).labels_
        assert adjusted_rand_score(np.arange(40) < 20, labels) == 1.0


def test_verbose(blobs, capsys):
    BlockCDSK(5, random_state=0, verbose=1).fit(blobs[0])
    text = capsys.readouterr().err
    assert "similarities" in text and "done in" in text


LIMITED = """
import resource, sys
import numpy as np
from cdsk import BlockCDSK

path, limit, megabytes, m = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
rng = np.random.default_rng(0)
BlockCDSK(2, random_state=0, n_threads=1).fit(rng.normal(size=(300, 3)))
pages = int(open("/proc/self/statm").read().split()[0])
more = pages * resource.getpagesize() if limit == "more" else 0
limit = "RLIMIT_AS" if limit == "more" else limit
size = megabytes * 2**20 + more
resource.setrlimit(getattr(resource, limit), (size, size))
X = path if limit == "RLIMIT_AS" else np.load(path, mmap_mode="r")
how = {"n_landmarks": m, "sample_size": 4000, "representation": "raw"}
model = BlockCDSK(3, random_state=0, n_threads=1, **how)
labels = model.fit(X).labels_
print(*np.bincount(labels))
"""


def large_file(path, n, d):
    """A file full of holes, which cost no space: zeros, and two clusters."""
    X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=(n, d))
    rng = np.random.default_rng(0)
    for k, value in enumerate((1.0, -1.0)):
        block = np.full((n // 100, d), value)
        block[:, :2] += 0.1 * rng.normal(size=(n // 100, 2))
        X[k * n // 2 : k * n // 2 + len(block)] = block
    X.flush()
    return n - 2 * (n // 100), n // 100


def sizes_under(limit, path, megabytes, m):
    child = subprocess.run(
        [sys.executable, "-c", LIMITED, path, limit, str(megabytes), str(m)],
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert child.returncode == 0, child.stderr
    return sorted(map(int, child.stdout.split()))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are Linux's")
@pytest.mark.parametrize(
    ("limit", "n", "megabytes"),
    [
        # beyond what the libraries take; the file has 256
        ("more", 2**17, 160),
        *(
            pytest.param(limit, 2**21, 1500, marks=pytest.mark.slow)
            for limit in ("RLIMIT_AS", "RLIMIT_DATA")
        ),
    ],
)
def test_data_larger_than_memory(tmp_path, limit, n, megabytes):
    # a map of all rows is not part of RLIMIT_DATA; what a fit makes of them is
    path = tmp_path / "large.npy"
    zeros, others = large_file(path, n, 256)
    assert sizes_under(limit, path, megabytes, 40) == [others, others, zeros]


def test_transform_of_landmarks_is_their_embedding():
    X, _ = make_blobs(500, 3, centers=3, cluster_std=2.0, random_state=1)
    model = BlockCDSK(3, n_landmarks=40, random_state=0, n_threads=1).fit(X)
    inner = model.landmark_model_
    assert (inner.transform(model.landmarks_) == inner.embedding_).all()


@pytest.mark.parametrize("n_distinct", [4, 6, 8])
def test_copies_of_few_rows_are_clustered(n_distinct):
    points = 10.0 * np.random.default_rng(0).normal(size=(n_distinct, 3))
    model = BlockCDSK(3, random_state=0).fit(np.repeat(points, 50, axis=0))
    assert np.bincount(model.labels_).min() >= 50
    assert (model.labels_.reshape(n_distinct, 50).T == model.predict(points)).all()


def test_clusters_without_rows_warn(monkeypatch):
    X, _ = make_blobs(300, 2, centers=3, random_state=0)
    monkeypatch.setattr(
        LandmarkPredictor, "predict", lambda _, X: np.zeros(len(X), int)
    )
    with pytest.warns(ConvergenceWarning, match="Only 1 of 3 landmark clusters"):
        BlockCDSK(3, random_state=0).fit(X)
