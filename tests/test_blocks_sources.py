import os
import re

import numpy as np
import pytest
from scipy import sparse

from cdsk._blocks.sources import as_source

pd = pytest.importorskip("pandas")


def rows_of(source, rows=7, n_features=3):
    """All rows, by parts whose numbers follow each other."""
    parts, first = [], 0
    for part in source.parts(rows):
        block = part.checked(n_features)
        assert part.first == first
        assert 0 < len(block) <= rows
        first += len(block)
        parts.append(block)
    return np.concatenate(parts)


class Sliced:
    """What zarr and h5py have: a shape, slices, no array until then."""

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype
        self.most = 0

    def __getitem__(self, rows):
        found = self.array[rows]
        self.most = max(self.most, len(found))
        return found


class Again:
    """An iterable that begins anew."""

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
def test_what_can_be_gone_through(X, files, tmp_path, rows):
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
        Again([X[:10], X[10:]]),
        Again([X[:10].tolist(), X[10:]]),
        Again([Sliced(X[:10]), Sliced(X[10:])]),
    ):
        source = as_source(given)
        for _ in range(2):
            assert (rows_of(source, rows) == X).all()


def test_no_more_is_read_at_once_than_is_allowed(X, monkeypatch):
    monkeypatch.setattr("cdsk._blocks.sources._PART_ROWS", 20)
    sliced = Sliced(X)
    assert (rows_of(as_source(sliced), 7) == X).all()
    assert sliced.most == 20


def test_h5py(X, tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = X
        assert (rows_of(as_source(file["x"])) == X).all()


def test_zarr(X, tmp_path):
    zarr = pytest.importorskip("zarr")
    array = zarr.create_array(tmp_path / "x.zarr", data=X, chunks=(20, 3))
    assert (rows_of(as_source(array)) == X).all()


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
        assert (rows_of(source, 1000) == X).all()
        sizes = [len(part.rows) for part in source.parts(1000)]
        assert sizes == [8, 8, 8, 6, 8, 8, 4]
    assert (rows_of(as_source(paths[0])) == X[:30]).all()


def test_columns_of_parquet(X, tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(X, columns=list("abc"))
    # numbers of rows that do not follow each other are a column of the file
    frame[frame["a"] > 0].to_parquet(tmp_path / "x.parquet")
    source = as_source(tmp_path / "x.parquet")
    assert (rows_of(source) == X[X[:, 0] > 0]).all()
    (part,) = source.parts()
    assert part.rows.column_names == ["a", "b", "c"]


def test_parquet_of_no_numbers(X, tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": X[:, 0], "when": pd.Timestamp("2026-01-01")})
    frame.to_parquet(tmp_path / "x.parquet")
    with pytest.raises(ValueError, match=r"got timestamp.* in column 'when'"):
        rows_of(as_source(tmp_path / "x.parquet"), n_features=2)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (
            lambda frame: frame[["a", "b"]],
            r"those of the first, a, b, c; .*1\.parquet la",
        ),
        (lambda frame: frame.assign(e=1.0), r"b, c; .*1\.parquet also has e"),
        (
            lambda frame: frame.assign(b="x"),
            r"got .*string in column 'b' of .*1\.parque",
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
        rows_of(as_source(tmp_path))


def test_cells_of_parquet_are_named_by_column(X, tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(X, columns=list("abc"))
    frame.loc[7, "b"] = np.nan
    frame.to_parquet(tmp_path / "x.parquet")
    with pytest.raises(ValueError, match="contains NaN at row 7, column 'b'"):
        rows_of(as_source(tmp_path / "x.parquet"))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("x.zarr", "x.zarr. Open it with zarr or h5py, and pass the array"),
        ("x.npy", "got a folder named .*x.npy"),
        ("empty", "got an empty folder, .*empty"),
    ],
)
def test_folders_of_another_kind(tmp_path, name, message):
    folder = tmp_path / name
    folder.mkdir()
    if name != "empty":
        (folder / "file").touch()
    with pytest.raises(ValueError, match=message):
        as_source(folder)


def test_times_are_no_numbers(X):
    times = X.astype("datetime64[s]")
    with pytest.raises(ValueError, match=r"numbers only; got datetime64\[s\]. Make"):
        rows_of(as_source(times))


def test_blocks_have_the_same_columns(X):
    frame = pd.DataFrame(X, columns=list("abc"))
    blocks = [frame[:20], frame[20:][list("cab")]]
    with pytest.raises(ValueError, match=r"Block 1 .* a, b, c; got c, a, b"):
        rows_of(as_source(blocks))


def test_small_parts_are_cut_from_what_was_read_at_once(X):
    class Chunked:
        shape, reads = X.shape, 0

        def __getitem__(self, rows):
            self.reads += 1
            return X[rows]

    array = Chunked()
    assert (rows_of(as_source(array), rows=7) == X).all()
    assert array.reads == 1


def test_parquet_of_other_types(X, tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": X[:, 0].astype(np.float32), "b": np.arange(50)})
    frame.to_parquet(tmp_path / "x.parquet")
    expected = np.column_stack([X[:, 0].astype(np.float32), np.arange(50)])
    found = rows_of(as_source(tmp_path / "x.parquet"), n_features=2)
    assert found.dtype == np.float64
    assert (found == expected).all()


def test_folder_of_npy(X, files, tmp_path):
    assert (rows_of(as_source(tmp_path)) == X).all()


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    path = tmp_path / "x.parquet"
    path.touch()
    with pytest.raises(ImportError, match=r"takes pyarrow .*; expected \.npy"):
        as_source(path)


def test_float32_stays_and_other_numbers_become_floats(X):
    for dtype, expected in ((np.float32, np.float32), (np.uint8, np.float64)):
        (part,) = as_source(np.ones((2, 3), dtype)).parts()
        assert part.checked(3).dtype == expected


TOO_LARGE = r"magnitude 5\.8e\+149 at most.*; got"


@pytest.mark.parametrize(
    ("wrong", "dtype", "said", "expected"),
    [
        (np.nan, np.float64, "Input X contains NaN", "; expected finite numbers"),
        (np.inf, np.float64, "Input X contains infinity", "; expected finite numbers"),
        (-np.inf, np.float32, "Input X contains infinity", "; expected finite numbers"),
        (6e149, np.float64, rf"{TOO_LARGE} 6\.0e\+149", r"\. Expected data in another"),
        (-1e300, np.float64, rf"{TOO_LARGE} -1\.0e\+300", r"\. Expected data in anoth"),
    ],
)
def test_the_place_of_what_is_no_ordinary_number(X, wrong, dtype, said, expected):
    X = X.astype(dtype)
    X[33, 2] = wrong
    place = f"{said} at row 33, column 2"
    with pytest.raises(ValueError, match=f"{place}{expected}"):
        rows_of(as_source(X))
    with pytest.raises(ValueError, match=rf"{place} \(row 13 of block 1\){expected}"):
        rows_of(as_source([X[:20], X[20:40], X[40:]]))
    frame = pd.DataFrame(X, columns=list("abc"))
    with pytest.raises(ValueError, match=f"{said} at row 33, column 'c'{expected}"):
        rows_of(as_source(frame))


@pytest.mark.parametrize(("dtype", "most"), [(np.float64, 5.7e149), (np.float32, 3e38)])
def test_large_numbers_are_numbers(X, dtype, most):
    X = X.astype(dtype)
    X[33, 2], X[34, 1] = most, -most
    assert (rows_of(as_source(X)) == X).all()


@pytest.mark.parametrize("cell", ["a", pd.NA, 10**400])
def test_the_place_of_what_is_no_number(X, cell):
    X = X.astype(object)
    X[33, 2] = cell
    said = re.escape(
        f"must hold numbers only; got {cell!r} at row 5, column 2. Row 0 is"
    )
    with pytest.raises(ValueError, match=rf"^X {said} row 28 of X here\.$"):
        rows_of(as_source(X), 7)
    here = "row 28 of X here, row 14 of block 1"
    with pytest.raises(ValueError, match=rf"^Block 1 of X {said} {here}\.$"):
        rows_of(as_source([X[:14], X[14:40], X[40:]]), 7)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([np.ones((4, 3)), np.ones((4, 2))], "Block 1 of X must have 3 columns; got 2"),
        ([np.ones((4, 3)), sparse.eye(3)], "Block 1 of X must be a dense array; got"),
        (Again([np.ones((4, 3)), np.ones(3)]), r"Block 1 of X must be 2-dim.*\(3,\)"),
        (np.ones(3), r"X must be 2-dimensional.*got shape \(3,\)"),
        (np.ones((3, 3, 3)), r"X must be 2-dimensional.*got shape \(3, 3, 3\)"),
        (np.array([["a", "b", "c"]]), "X must hold numbers only; got 'a' at row 0"),
        (np.ones((2, 0)), "0 feature"),
    ],
)
def test_what_is_refused_when_it_is_met(given, message):
    source = as_source(given)
    with pytest.raises(ValueError, match=message):
        rows_of(source)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (sparse.eye(3), "got a sparse matrix"),
        (
            (x for x in [np.ones((4, 3))]),
            "got a generator, which gives its blocks once",
        ),
        (iter([np.ones((4, 3))]), "got a list_iterator, which gives its blocks once"),
        (3, "X must be an array .*; got a int"),
        ({"a": np.ones((4, 3))}, "X must be an array .*; got a dict"),
        (b"x.npy", "X must be an array .*; got a bytes"),
        ([], "X must be an array .*; got an empty list"),
        ([1.0, 2.0], "X must be .*; got a list that is no .*got 1D array"),
        ([[[1.0]], [[2.0]]], "X must be .*; got a list that is no table"),
        ([np.ones((4, 3)), "x.npy"], "X must be .*; got a list that is no table"),
    ],
)
def test_what_is_refused_at_once(given, message):
    with pytest.raises(ValueError, match=message):
        as_source(given)


def test_once_will_do(X):
    assert (rows_of(as_source(iter([X[:9], X[9:]]), once=True)) == X).all()


def test_files_that_are_none(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"exist; got .*no\.npy"):
        as_source(tmp_path / "no.npy")
    for name in ("x.npy", "x.csv"):
        (tmp_path / name).write_text("no array")
    with pytest.raises(ValueError, match=r"could not read .*x\.npy"):
        list(as_source(tmp_path / "x.npy").parts())
    with pytest.raises(ValueError, match="files of one kind"):
        as_source([tmp_path / "x.npy", tmp_path / "x.csv"])
    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(ValueError, match=r"could not read .*objects\.npy: .*object"):
        list(as_source(tmp_path / "objects.npy").parts())
    np.save(tmp_path / "short.npy", np.ones((9, 3)))
    os.truncate(tmp_path / "short.npy", 300)
    with pytest.raises(ValueError, match=r"short\.npy: it has less than 344 bytes"):
        list(as_source(tmp_path / "short.npy").parts())


def test_text_files(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "x.csv").write_text("no parquet")
    with pytest.raises(ValueError, match=r"or Parquet files .*x\.csv"):
        list(as_source(tmp_path / "x.csv").parts())


def test_what_is_open_is_closed(X):
    closed = []

    class Opened:
        def __iter__(self):
            try:
                yield X
                yield X
            finally:
                closed.append(True)

    parts = as_source(Opened()).parts()
    next(parts)
    parts.close()
    assert closed == [True]
