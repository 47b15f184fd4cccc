"""cdsk.dask.CDSK on the local schedulers of dask: the bits of BlockCDSK, lazily."""

import importlib
import pickle
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning

from cdsk import BlockCDSK
from cdsk.blocks._sample import hash_rows

dask = pytest.importorskip("dask", reason="dask is not installed")
da = pytest.importorskip("dask.array", reason="dask.array is not installed")
pytest.importorskip("distributed", reason="distributed is not installed")
recorded = importlib.import_module("dask_rows").recorded
CDSK = importlib.import_module("cdsk.dask").CDSK

HOW = {"n_clusters": 5, "n_landmarks": 100, "random_state": 0, "n_threads": 1}


@pytest.fixture(scope="module")
def X():
    return make_blobs(600, 4, centers=5, cluster_std=1.5, random_state=0)[0]


@pytest.fixture(scope="module")
def expected(X):
    return BlockCDSK(**HOW).fit(X)


def model(**parameters):
    return CDSK(**(HOW | parameters))


def assert_same_bits(found, expected, X):
    for name in ("landmarks_", "landmark_counts_"):
        assert (getattr(found, name) == getattr(expected, name)).all()
    for name in ("weights_", "embedding_", "labels_"):
        a, b = found.landmark_model_, expected.landmark_model_
        assert (getattr(a, name) == getattr(b, name)).all()
    labels = found.labels_.compute()
    assert labels.dtype == expected.labels_.dtype
    assert (labels == expected.labels_).all()
    rows = da.from_array(X, chunks=(250, 2))
    for name in ("predict", "predict_proba", "decision_function", "transform"):
        a, b = getattr(found, name)(rows), getattr(expected, name)(X)
        assert a.dtype == b.dtype
        assert (a.compute() == b).all()


@pytest.mark.parametrize(
    ("chunks", "scheduler"),
    [
        ((600, 4), "threads"),
        ((13, 4), "threads"),
        (((1, 0, 299, 300), 4), "threads"),
        ((200, (1, 3)), "synchronous"),
    ],
)
def test_same_bits_for_any_chunks(X, expected, chunks, scheduler):
    with dask.config.set(scheduler=scheduler):
        found = model().fit(da.from_array(X, chunks=chunks))
        assert_same_bits(found, expected, X)


@pytest.mark.slow
def test_same_bits_by_processes(X, expected):
    pool = ProcessPoolExecutor(1, get_context("spawn"))
    with pool, dask.config.set(scheduler="processes", pool=pool):
        found = model().fit(da.from_array(X, chunks=(200, 4)))
        assert (found.labels_.compute() == expected.labels_).all()


def test_float32(X):
    X = X.astype(np.float32)
    expected = BlockCDSK(**HOW).fit(X)
    assert_same_bits(model().fit(da.from_array(X, chunks=(99, 4))), expected, X)


def test_dataframes(X, expected):
    pandas = pytest.importorskip("pandas")
    frames = pytest.importorskip("dask.dataframe")
    table = pandas.DataFrame(X, columns=list("abcd"))
    found = model().fit(frames.from_pandas(table, npartitions=4))
    assert list(found.feature_names_in_) == list("abcd")
    assert found.labels_.chunks == ((150, 150, 150, 150),)
    labels = found.predict(frames.from_pandas(table, npartitions=3)).compute()
    assert (labels == expected.labels_).all()
    with pytest.raises(ValueError, match="feature names should match"):
        found.predict(frames.from_pandas(table[list("bacd")], npartitions=3))
    labeled = frames.from_pandas(table, npartitions=4).assign(cluster=found.labels_)
    assert (labeled.compute()["cluster"] == expected.labels_).all()


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of pandas, by dask
def test_partitions_of_files_are_kept(X, expected, tmp_path):
    pandas = pytest.importorskip("pandas")
    frames = pytest.importorskip("dask.dataframe")
    table = pandas.DataFrame(X, columns=list("abcd")).assign(e=1, f=2, g=3, h=4)
    frames.from_pandas(table, npartitions=6).to_parquet(tmp_path / "files")
    files = frames.read_parquet(tmp_path / "files")
    found = model().fit(files[list("abcd")])
    assert found.labels_.numblocks == (files.npartitions,) == (6,)
    labeled = files.assign(cluster=found.labels_).compute()
    assert (labeled["cluster"] == expected.labels_).all()
    assert found.predict(files[list("abcd")]).numblocks == (6,)


def test_chunks_of_unknown_sizes(X, tmp_path):
    rows, reads = recorded(X, tmp_path, (100,) * 6)
    some = rows[rows[:, 0] > 0]
    kept = X[X[:, 0] > 0]
    expected = BlockCDSK(**HOW).fit(kept)
    found = model().fit(some)
    # counted, sampled, compared: each time it is read twice for the mask, or once
    assert max(reads()) in (3, 6)
    assert np.isnan(some.shape[0])
    assert found.labels_.shape == (len(kept),)
    assert (found.labels_.compute() == expected.labels_).all()
    lazily = found.predict(some)
    assert np.isnan(lazily.shape[0])
    assert (lazily.compute() == expected.labels_).all()


def test_passes_over_the_data(X, expected, tmp_path):
    rows, reads = recorded(X, tmp_path, (100, 150, 350))
    found = model().fit(rows)
    assert reads() == [2, 2, 2]
    outputs = [
        found.labels_,
        found.predict(rows),
        found.predict_proba(rows),
        found.decision_function(rows),
        found.transform(rows),
    ]
    assert reads() == [2, 2, 2]
    for output in outputs:
        assert output.chunks[0] == rows.chunks[0]
        assert output.ndim == 1 or output.chunks[1] == (5,)
    assert (outputs[0].blocks[1].compute() == expected.labels_[100:250]).all()
    assert reads() == [2, 3, 2]


def test_persisted_data_are_not_read_again(X, tmp_path):
    rows, reads = recorded(X, tmp_path, (300, 300))
    rows = rows.persist()
    model().fit(rows).labels_.compute()
    assert reads() == [1, 1]


def test_a_key_bound_that_is_too_low(X, expected, monkeypatch):
    how = {"sample_size": 300}
    expected = clone(expected).set_params(**how).fit(X)
    calls = []

    def too_low(size, n):
        calls.append((size, n))
        return np.uint64(2**62)

    monkeypatch.setattr("cdsk.dask._passes._bound_keys", too_low)
    found = model(**how).fit(da.from_array(X, chunks=(200, 4)))
    assert calls == [(300, 600)]
    assert (found.landmarks_ == expected.landmarks_).all()


@pytest.mark.parametrize("seed", range(20))
def test_key_bound(seed):
    _bound_keys = importlib.import_module("cdsk.dask._passes")._bound_keys
    size, n = 500, 20_000
    key_bound = _bound_keys(size, n)
    count = np.count_nonzero(hash_rows(seed, 0, n) < key_bound)
    assert size <= count < 2 * size
    assert _bound_keys(size, size) is None
    assert _bound_keys(1, 0) is None


def replace_last_chunk(chunk):
    """Return 600 x 4 in chunks of 200, the last of which is ``chunk``."""

    def put(rows, block_info=None):
        last = block_info[0]["chunk-location"][0] == 2
        return chunk if last else rows

    meta = np.empty((0, 4))
    return da.ones((600, 4), chunks=(200, 4)).map_blocks(put, meta=meta)


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (
            np.where(np.arange(800).reshape(200, 4) == 41, np.nan, 1.0),
            r"NaN at row 410, column 1 \(row 10 of block 2\)",
        ),
        (
            np.where(np.arange(800).reshape(200, 4) == 0, -np.inf, 1.0),
            r"infinity at row 400, column 0 \(row 0 of block 2\)",
        ),
        (
            np.where(np.arange(800).reshape(200, 4) == 41, 1e200, 1.0),
            r"got 1\.0e\+200 at row 410, column 1 \(row 10 of block 2\)",
        ),
        (np.ones((200, 3)), r"Block 2 of X must have 4 columns; got 3\."),
        (np.ones(200), r"Block 2 of X must be 2-dimensional.*got shape \(200,\)"),
        (sparse.csr_array(np.eye(4)), "Block 2 of X must be a dense array; got a spa"),
        (np.full((200, 4), "a"), "Block 2 of X must hold numbers only; got 'a'"),
    ],
    ids=["NaN", "infinity", "far", "narrow", "vector", "sparse", "text"],
)
def test_invalid_chunks(block, message):
    with pytest.raises(ValueError, match=message):
        model(missing="error").fit(replace_last_chunk(block))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones((9, 2)), r"X must be a dask array or a dask .*; got numpy\.ndarray"),
        (da.ones(9), r"X must be 2-dimensional, .*; got shape \(9,\)"),
        (da.ones((1, 2)), "X must have at least 2 rows; got n_samples=1"),
        (da.ones((0, 2)), "X must have at least 2 rows; got n_samples=0"),
        (da.ones((4, 2)), "at most the number of samples; got n_clusters=5"),
        (da.ones((9, 0)), "0 feature"),
    ],
    ids=["array", "vector", "row", "none", "few", "no columns"],
)
def test_invalid_data(X, message):
    with pytest.raises(ValueError, match=message):
        model().fit(X)


def test_equal_rows_are_one_cluster():
    X = np.full((20, 3), 7.0)
    new = X[:2] + [[0.0], [5.0]]
    how = {"n_clusters": 3, "random_state": 0}
    with pytest.warns(
        ConvergenceWarning, match="of X has 1 distinct point,"
    ) as by_blocks:
        expected = BlockCDSK(**how).fit(X)
    with pytest.warns(
        ConvergenceWarning, match="of X has 1 distinct point,"
    ) as by_dask:
        found = CDSK(**how).fit(da.from_array(X, chunks=(8, 3)))
    assert len(by_blocks) == len(by_dask) == 1
    assert_same_bits(found, expected, new)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"kernel": "precomputed"},
            "kernel must be 'rbf', .*got 'precomputed'. Use",
        ),
        ({"client": "tcp://x"}, "client must be a distributed.Client or None; got str"),
        ({"n_landmarks": 1}, "n_landmarks must be an integer of at least 2"),
        ({"lam": 2}, "lam must be a number"),
    ],
)
def test_invalid_parameters(X, parameters, message):
    with pytest.raises(ValueError, match=message):
        model(**parameters).fit(da.from_array(X))


def test_invalid_new_rows(X):
    found = model(missing="error").fit(da.from_array(X, chunks=(200, 4)))
    before = found.__dict__.copy()
    with pytest.raises(ValueError, match="X has 3 features, but CDSK is expecting 4"):
        found.predict(da.ones((9, 3)))
    wrong = X.copy()
    wrong[434, 1] = np.nan
    rows = da.from_array(wrong, chunks=(200, 4))
    with pytest.raises(ValueError, match=r"NaN at row 434.*\(row 34 of block 2\)"):
        found.predict(rows).compute()
    with pytest.raises(ValueError, match=r"row 34 of block 2\).*sizes are unknown"):
        found.predict(rows[da.ones(600, chunks=200) > 0]).compute()
    with pytest.raises(ValueError, match="NaN"):
        found.fit(rows)
    assert found.__dict__ == before


def test_wrong_chunk_sizes(X):
    rows = da.from_array(X, chunks=(150, 4))
    short = da.map_blocks(lambda block: block[:100], rows, meta=rows._meta)
    with pytest.raises(ValueError, match="600 rows in the first pass and 400 in"):
        model().fit(short)
    none = da.map_blocks(lambda block: block[:0], rows, meta=rows._meta)
    with pytest.raises(ValueError, match="600 rows in the first pass and 0 in"):
        model().fit(none)


@pytest.mark.parametrize("kept", [0, 10])
def test_chunks_that_change_between_passes(X, tmp_path, kept):
    rows, reads = recorded(X, tmp_path, (300, 300))

    def changed(block):
        return block[:kept] if max(reads()) > 1 else block

    with dask.config.set(scheduler="synchronous"):
        rows = da.map_blocks(changed, rows, meta=rows._meta)
        with pytest.raises(ValueError, match=f"first pass and {2 * kept} in a"):
            model().fit(rows)
    assert min(reads()) == 2


def test_error_names_columns_that_are_not_numeric(X):
    dd = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcd")).assign(when=pd.Timestamp(0))
    with pytest.raises(ValueError, match="got times in column 'when'"):
        model().fit(dd.from_pandas(frame, npartitions=2))


@pytest.fixture(scope="module")
def table(X):
    """Numbers with missing cells, truth values, text and categories."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("dask.dataframe")
    rng = np.random.RandomState(0)
    frame = pandas.DataFrame((10 * X).round(), columns=list("abcd"))
    frame["city"] = np.where(X[:, 0] > 0, "Rome", "Oslo")
    frame["size"] = pandas.Categorical(
        np.array(["S", "M", "L"])[rng.randint(3, size=600)]
    )
    frame["sold"] = X[:, 1] > 0
    frame.loc[rng.rand(600) < 0.1, "a"] = np.nan
    frame.loc[rng.rand(600) < 0.1, "city"] = None
    return frame.astype({"b": "Int64"})


@pytest.mark.parametrize("npartitions", [1, 4, 37])
def test_tables_with_categories_and_missing_cells(table, npartitions):
    frames = importlib.import_module("dask.dataframe")
    expected = BlockCDSK(**HOW).fit(table)
    found = model().fit(frames.from_pandas(table, npartitions=npartitions))
    assert found.columns_ == expected.columns_
    assert (found.landmarks_ == expected.landmarks_).all()
    assert found.choice_.names == expected.choice_.names
    holes = found.missing_
    assert holes.names == expected.missing_.names
    assert holes.count.tolist() == table.isna().sum().tolist()
    assert (holes.association == expected.missing_.association).all()
    assert (found.labels_.compute() == expected.labels_).all()
    votes = found.decision_function(frames.from_pandas(table, npartitions=3))
    assert (votes.compute() == expected.decision_function(table)).all()
    new = table.assign(city="Bern")
    with pytest.warns(UserWarning, match=r"600 cells with categories .*'city' \(600\)"):
        labels = found.predict(frames.from_pandas(new, npartitions=1)).compute()
    assert (labels == found.predict(missing_city(frames, table)).compute()).all()


def missing_city(frames, table):
    return frames.from_pandas(table.assign(city=None), npartitions=2)


def test_missing_numbers(X):
    holed = np.where(np.random.RandomState(0).rand(*X.shape) < 0.1, np.nan, X)
    expected = BlockCDSK(**HOW).fit(holed)
    found = model().fit(da.from_array(holed, chunks=(99, 4)))
    assert_same_bits(found, expected, holed)


def test_codes_of_an_array_are_categories_if_told(X):
    codes = np.column_stack([X, X[:, 0] > 0])
    how = {"categorical_features": [4]}
    expected = BlockCDSK(**HOW, **how).fit(codes)
    found = model(**how).fit(da.from_array(codes, chunks=(99, 5)))
    assert found.columns_ == expected.columns_
    assert (found.labels_.compute() == expected.labels_).all()


def test_location_of_missing_integers(X):
    dd = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame((10 * X).astype(int), columns=list("abcd")).astype("Int64")
    frame.iloc[434, 1] = pd.NA
    with pytest.raises(
        ValueError,
        match=r"Block 2 of X .* got <NA> at row 34, column 1\. .* to row 400 of X",
    ):
        model(missing="error").fit(dd.from_pandas(frame, npartitions=3))


def test_pickle_clone_and_report(X, expected):
    found = model().fit(da.from_array(X, chunks=(200, 4)))
    again = pickle.loads(pickle.dumps(found))
    rows = da.from_array(X, chunks=(100, 4))
    assert (again.predict(rows).compute() == expected.labels_).all()
    assert not hasattr(again, "labels_")
    assert str(again.report()) == str(found.report())
    assert str(found.report()).startswith(
        "dask.CDSK: 600 rows, 4 features (raw), 100 landmarks\n"
    )
    assert clone(found).get_params() == found.get_params()


def test_feature_names_of_transform(X):
    found = model().fit(da.from_array(X, chunks=(200, 4)))
    assert found.get_feature_names_out().tolist() == [f"cdsk{i}" for i in range(5)]
    # lazy, whatever output scikit-learn is configured for
    assert not hasattr(found, "set_output")
    with config_context(transform_output="pandas"):
        assert isinstance(found.transform(da.from_array(X)), da.Array)


def test_verbose(X, capsys):
    model(verbose=1).fit(da.from_array(X, chunks=(100, 4)))
    text = capsys.readouterr().err
    assert "similarities" in text and "done in" in text


@pytest.mark.parametrize("k", [1, 2, 5, 12])
def test_interrupt(X, expected, k):
    rows, found = da.from_array(X, chunks=(100, 4)), model().fit(da.from_array(X[:300]))
    before, done = vars(found).copy(), []

    def interrupt(key, *args):
        done.append(key)
        if len(done) == k:
            raise KeyboardInterrupt

    with (
        pytest.raises(KeyboardInterrupt),
        dask.callbacks.Callback(posttask=interrupt),
    ):
        found.fit(rows)
    assert len(done) == k
    assert vars(found).keys() == before.keys()
    assert all(vars(found)[name] is before[name] for name in before)
    # dask's threads are free for the next fit
    assert (found.fit(rows).labels_.compute() == expected.labels_).all()


def test_without_dask(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("cdsk.dask")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "dask.array", None)
    with pytest.raises(ImportError, match=r"pip install cdsk\[dask\]"):
        importlib.import_module("cdsk.dask")
