import os
import re

import numpy as np
import pytest
from scipy import sparse

from cdsk._validation import CATEGORIES_HINT
from cdsk.blocks._sources import Features, as_source

pd = pytest.importorskip("pandas")

COMPLETE = {"allow_missing": False}


def read_rows(source, max_rows=7, n_features=3, **options):
    """Return all rows, read in consecutive parts; options as of ``Features``."""
    parts, first_row = [], 0
    features = Features(n_features, **options)
    for part in source.iter_parts(max_rows):
        rows = part.validate(features)
        assert part.first_row == first_row
        assert 0 < len(rows) <= max_rows
        first_row += len(rows)
        parts.append(rows)
    return np.concatenate(parts)


class Sliced:
    """Array like those of zarr and h5py: a shape, and slices read on demand."""

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype
        self.largest_read = 0

    def __getitem__(self, rows):
        found = self.array[rows]
        self.largest_read = max(self.largest_read, len(found))
        return found


class ReIterable:
    """An iterable whose iterators start again."""

    def __init__(self, blocks):
        self.blocks = blocks

    def __iter__(self):
        return (block for block in self.blocks)


@pytest.fixture
def X(rng):
    return rng.normal(size=(50, 3))


@pytest.fixture
def files(X, tmp_path):
    paths = [tmp_path / f"{i}.npy" for i in range(3)]
    np.save(paths[0], X[:20])
    np.save(paths[1], np.asfortranarray(X[20:31]))
    np.save(paths[2], X[31:])
    return paths


@pytest.mark.parametrize("rows", [1, 7, 50, 1000])
def test_supported_inputs(X, files, tmp_path, rows):
    np.save(tmp_path / "all.npy", X)
    for given in (
        X,
        X.tolist(),
        pd.DataFrame(X, columns=list("abc")),
        np.load(tmp_path / "all.npy", mmap_mode="r"),
        Sliced(X),
        tmp_path / "all.npy",
        str(tmp_path / "all.npy"),
        files,
        [str(path) for path in files],
        [X[:1], X[1:40], X[40:]],
        (X[:10], np.empty((0, 3)), X[10:]),
        [pd.DataFrame(X[:10]), X[10:]],
        ReIterable([X[:10], X[10:]]),
        ReIterable([X[:10].tolist(), X[10:]]),
        ReIterable([Sliced(X[:10]), Sliced(X[10:])]),
    ):
        source = as_source(given)
        for _ in range(2):
            assert (read_rows(source, rows) == X).all()


def test_largest_read(X, monkeypatch):
    monkeypatch.setattr("cdsk.blocks._sources._MAX_PART_ROWS", 20)
    sliced = Sliced(X)
    assert (read_rows(as_source(sliced), 7) == X).all()
    assert sliced.largest_read == 20


def test_h5py(X, tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = X
        assert (read_rows(as_source(file["x"])) == X).all()


def test_zarr(X, tmp_path):
    zarr = pytest.importorskip("zarr")
    array = zarr.create_array(tmp_path / "x.zarr", data=X, chunks=(20, 3))
    assert (read_rows(as_source(array)) == X).all()


def test_parquet_by_row_groups(X, tmp_path):
    pytest.importorskip("pyarrow")
    from pyarrow import dataset, parquet, table

    folder = tmp_path / "parts"
    folder.mkdir()
    paths = [folder / "0.parquet", folder / "1.parquet"]
    for path, block in zip(paths, (X[:30], X[30:]), strict=True):
        parquet.write_table(
            table(dict(zip("abc", block.T, strict=True))), path, row_group_size=8
        )
    for given in (paths, folder, str(folder), dataset.dataset(folder)):
        source = as_source(given)
        assert (read_rows(source, 1000) == X).all()
        sizes = [len(part.rows) for part in source.iter_parts(1000)]
        assert sizes == [8, 8, 8, 6, 8, 8, 4]
    assert (read_rows(as_source(paths[0])) == X[:30]).all()


def test_columns_of_parquet(X, tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(X, columns=list("abc"))
    # pandas stores an index that is not a range as a column of the file
    frame[frame["a"] > 0].to_parquet(tmp_path / "x.parquet")
    source = as_source(tmp_path / "x.parquet")
    assert (read_rows(source) == X[X[:, 0] > 0]).all()
    (part,) = source.iter_parts()
    assert part.rows.column_names == ["a", "b", "c"]


def test_parquet_columns_that_are_not_numeric(X, tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": X[:, 0], "when": pd.Timestamp("2026-01-01")})
    frame.to_parquet(tmp_path / "x.parquet")
    with pytest.raises(ValueError, match=r"got timestamp.* in column 'when'"):
        read_rows(as_source(tmp_path / "x.parquet"), n_features=2)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (
            lambda frame: frame[["a", "b"]],
            r"columns of the first file, a, b, c; .*1\.parquet la",
        ),
        (lambda frame: frame.assign(e=1.0), r"b, c; .*1\.parquet also has e"),
        (
            lambda frame: frame.assign(b="x"),
            r"one type in column 'b'; got .*string of .*1\.parquet and double before",
        ),
    ],
    ids=["fewer", "more", "text"],
)
def test_parquet_files_have_the_same_columns(X, tmp_path, second, message):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(X, columns=list("abc"))
    frame.to_parquet(tmp_path / "0.parquet")
    second(frame).to_parquet(tmp_path / "1.parquet")
    with pytest.raises(ValueError, match=message):
        read_rows(as_source(tmp_path))


def test_error_names_the_parquet_column(X, tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(X, columns=list("abc"))
    frame.loc[7, "b"] = np.nan
    frame.to_parquet(tmp_path / "x.parquet")
    with pytest.raises(ValueError, match="contains NaN at row 7, column 'b'"):
        read_rows(as_source(tmp_path / "x.parquet"), allow_missing=False)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("x.zarr", "x.zarr. Open it with zarr or h5py and pass the array"),
        ("x.npy", "got a folder named .*x.npy"),
        ("empty", "got an empty folder, .*empty"),
    ],
)
def test_unsupported_folders(tmp_path, name, message):
    folder = tmp_path / name
    folder.mkdir()
    if name != "empty":
        (folder / "file").touch()
    with pytest.raises(ValueError, match=message):
        as_source(folder)


def test_times_are_not_numeric(X):
    times = X.astype("datetime64[s]")
    with pytest.raises(ValueError, match=r"numbers only; got datetime64\[s\]. Convert"):
        read_rows(as_source(times))


def test_blocks_have_the_same_columns(X):
    frame = pd.DataFrame(X, columns=list("abc"))
    blocks = [frame[:20], frame[20:][list("cab")]]
    with pytest.raises(ValueError, match=r"Block 1 .* a, b, c; got c, a, b"):
        read_rows(as_source(blocks))


def test_small_parts_share_one_read(X):
    class Chunked:
        shape, reads = X.shape, 0

        def __getitem__(self, rows):
            self.reads += 1
            return X[rows]

    array = Chunked()
    assert (read_rows(as_source(array), max_rows=7) == X).all()
    assert array.reads == 1


def test_parquet_of_other_types(X, tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": X[:, 0].astype(np.float32), "b": np.arange(50)})
    frame.to_parquet(tmp_path / "x.parquet")
    expected = np.column_stack([X[:, 0].astype(np.float32), np.arange(50)])
    found = read_rows(as_source(tmp_path / "x.parquet"), n_features=2)
    assert found.dtype == np.float64
    assert (found == expected).all()


def test_folder_of_npy(X, files, tmp_path):
    assert (read_rows(as_source(tmp_path)) == X).all()


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    path = tmp_path / "x.parquet"
    path.touch()
    with pytest.raises(ImportError, match=r"requires pyarrow .*use \.npy"):
        as_source(path)


def test_dtypes(X):
    for dtype, expected in ((np.float32, np.float32), (np.uint8, np.float64)):
        (part,) = as_source(np.ones((2, 3), dtype)).iter_parts()
        assert part.validate(Features(3)).dtype == expected


TOO_LARGE = r"magnitude 5\.8e\+149 at most.*; got"


@pytest.mark.parametrize(
    ("wrong", "dtype", "message", "expected"),
    [
        (np.nan, np.float64, "Input X contains NaN", "; expected finite numbers"),
        (np.inf, np.float64, "Input X contains infinity", "; expected finite numbers"),
        (-np.inf, np.float32, "Input X contains infinity", "; expected finite numbers"),
        (6e149, np.float64, rf"{TOO_LARGE} 6\.0e\+149", r"\. Use another unit"),
        (-1e300, np.float64, rf"{TOO_LARGE} -1\.0e\+300", r"\. Use another unit"),
    ],
)
def test_location_of_nonfinite_and_large_numbers(X, wrong, dtype, message, expected):
    X = X.astype(dtype)
    X[33, 2] = wrong
    location = f"{message} at row 33, column 2"
    with pytest.raises(ValueError, match=f"{location}{expected}"):
        read_rows(as_source(X), **COMPLETE)
    with pytest.raises(ValueError, match=rf"{location} \(row 13 of .* 1\){expected}"):
        read_rows(as_source([X[:20], X[20:40], X[40:]]), **COMPLETE)
    frame = pd.DataFrame(X, columns=list("abc"))
    with pytest.raises(ValueError, match=f"{message} at row 33, column 'c'{expected}"):
        read_rows(as_source(frame), **COMPLETE)


@pytest.mark.parametrize(
    ("dtype", "largest"), [(np.float64, 5.7e149), (np.float32, 3e38)]
)
def test_largest_numbers(X, dtype, largest):
    X = X.astype(dtype)
    X[33, 2], X[34, 1] = largest, -largest
    assert (read_rows(as_source(X)) == X).all()


@pytest.mark.parametrize("cell", [np.nan, None, pd.NA, np.ma.masked])
def test_missing_cells(X, cell):
    expected = X.copy()
    expected[[3, 33], [1, 2]] = np.nan
    given = X.astype(object) if cell is None or cell is pd.NA else np.ma.array(X)
    given[[3, 33], [1, 2]] = cell
    for source in (as_source(given), as_source([given[:20], given[20:]])):
        np.testing.assert_array_equal(read_rows(source), expected)
    given[33] = cell
    with pytest.raises(ValueError, match=r"every row; got none at row 33\. Leave"):
        read_rows(as_source(given))
    with pytest.raises(ValueError, match=r"none at row 33 \(row 13 of block 1\)\. L"):
        read_rows(as_source([given[:20], given[20:]]))


@pytest.mark.parametrize(
    ("cell", "hint"),
    [("a", CATEGORIES_HINT + " "), (pd.NA, ""), (10**400, "")],
)
def test_location_of_cells_that_are_not_numbers(X, cell, hint):
    X = X.astype(object)
    X[33, 2] = cell
    message = f"must hold numbers only; got {cell!r} at row 5, column 2. {hint}"
    message = re.escape(message + "(Row numbers are relative to row 28 of X")
    with pytest.raises(ValueError, match=rf"^X {message}\.\)$"):
        read_rows(as_source(X), 7, **COMPLETE)
    block = "Block 1 of X"
    with pytest.raises(
        ValueError, match=rf"^{block} {message}, row 14 of block 1\.\)$"
    ):
        read_rows(as_source([X[:14], X[14:40], X[40:]]), 7, **COMPLETE)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([np.ones((4, 3)), np.ones((4, 2))], "Block 1 of X must have 3 columns; got 2"),
        ([np.ones((4, 3)), sparse.eye(3)], "Block 1 of X must be a dense array; got"),
        (
            ReIterable([np.ones((4, 3)), np.ones(3)]),
            r"Block 1 of X must be 2.*\(3,\)",
        ),
        (np.ones(3), r"X must be 2-dimensional.*got shape \(3,\)"),
        (np.ones((3, 3, 3)), r"X must be 2-dimensional.*got shape \(3, 3, 3\)"),
        (np.array([["a", "b", "c"]]), "X must hold numbers only; got 'a' at row 0"),
        (np.ones((2, 0)), "0 feature"),
    ],
)
def test_invalid_blocks(given, message):
    source = as_source(given)
    with pytest.raises(ValueError, match=message):
        read_rows(source)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (sparse.eye(3), "got a sparse matrix"),
        (
            (x for x in [np.ones((4, 3))]),
            "got a generator, which can be iterated once",
        ),
        (iter([np.ones((4, 3))]), "got a list_iterator, which can be iterated once"),
        (3, "X must be an array .*; got a int"),
        ({"a": np.ones((4, 3))}, "X must be an array .*; got a dict"),
        (b"x.npy", "X must be an array .*; got a bytes"),
        ([], "X must be an array .*; got an empty list"),
        ([1.0, 2.0], "X must be .*; got a list that is not .*got 1D array"),
        ([[[1.0]], [[2.0]]], "X must be .*; got a list that is not a table"),
        ([np.ones((4, 3)), "x.npy"], "X must be .*; got a list that is not a table"),
    ],
)
def test_unsupported_inputs(given, message):
    with pytest.raises(ValueError, match=message):
        as_source(given)


def test_iterators_for_a_single_pass(X):
    assert (read_rows(as_source(iter([X[:9], X[9:]]), single_pass=True)) == X).all()


def test_invalid_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"exist; got .*no\.npy"):
        as_source(tmp_path / "no.npy")
    for name in ("x.npy", "x.csv"):
        (tmp_path / name).write_text("no array")
    with pytest.raises(ValueError, match=r"could not read .*x\.npy"):
        list(as_source(tmp_path / "x.npy").iter_parts())
    with pytest.raises(ValueError, match="files of one kind"):
        as_source([tmp_path / "x.npy", tmp_path / "x.csv"])
    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(ValueError, match=r"could not read .*objects\.npy: .*object"):
        list(as_source(tmp_path / "objects.npy").iter_parts())
    np.save(tmp_path / "short.npy", np.ones((9, 3)))
    os.truncate(tmp_path / "short.npy", 300)
    with pytest.raises(ValueError, match=r"short\.npy: expected 344 bytes; the file"):
        list(as_source(tmp_path / "short.npy").iter_parts())


def test_text_files(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "x.csv").write_text("no parquet")
    with pytest.raises(ValueError, match=r"or Parquet files .*x\.csv"):
        list(as_source(tmp_path / "x.csv").iter_parts())


def test_generators_are_closed(X):
    closed = []

    class Opened:
        def __iter__(self):
            try:
                yield X
                yield X
            finally:
                closed.append(True)

    parts = as_source(Opened()).iter_parts()
    next(parts)
    parts.close()
    assert closed == [True]
