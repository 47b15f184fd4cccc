# SPDX-License-Identifier: BSD-3-Clause
"""Tables, labels and error messages of the command line."""

import bz2
import gzip
import lzma
import sys

import numpy as np
import pytest

from cdsk._table import Table
from cdsk.cli._kinds import ColumnKinds
from cdsk.cli._tables import TableError, format_labels, read_table

COMPLETE = {"kinds": ColumnKinds(allow_missing=False)}


@pytest.fixture
def table(tmp_path):
    """Write a text file and read it as a table."""

    def read(text, name="t.csv", columns=None, *, encoding="utf-8", **options):
        path = tmp_path / name
        path.write_bytes(text.encode(encoding))
        return read_table(path, columns, **options)

    return read


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", "1,2.5\n-3e2,4\n"),
        ("t.CSV", '"1", 2.5\r\n-3e2 ,4'),
        ("t.tsv", "1\t2.5\n\n-3e2\t4\n\n"),
        ("t.txt", "  1   2.5\n-3e2\t4\n"),
    ],
)
def test_text_without_names(table, name, text):
    X, names, ids = table(text, name)
    assert X.dtype == np.float64
    assert X.tolist() == [[1, 2.5], [-300, 4]]
    assert names is None
    assert ids is None


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_text_with_names(table, mark):
    X, names, _ = table(mark + "a, b\n1,2\n")
    assert X.tolist() == [[1, 2]]
    assert names == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "columns", "names"),
    [
        ("a,b\n1,2\n", None, ["a", "b"]),
        ("na,b\n1,2\n", None, ["na", "b"]),  # text above a number
        ("id,x\nu,1\n", ["x"], ["x"]),  # no number at all
        ("5.1,setosa\n4.9,setosa\n", ["1"], None),  # text in every row: no names
        ("2.5,na\n1,2\n", ["1"], None),  # a missing value is no name
        ("2.5,inf\n1,2\n", ["1"], None),
        ("Rome,1\nParis,2\n", None, None),
        ("Rome,yes\nParis,no\nRome,no\n", None, None),  # a name is no value
        ("city,sold\nParis,no\nRome,no\n", None, ["city", "sold"]),
        ("city,age\nParis,\nRome,\nRome,3\n", None, ["city", "age"]),
    ],
)
def test_header_detection(table, text, columns, names):
    assert table(text, columns=columns)[1] == names


@pytest.mark.parametrize("columns", [["c", "a"], ["3", "1"], ["c", "1"]])
def test_columns_by_name_and_number(table, columns):
    X, names, _ = table("a,b,c\n1,text,3\n4,,6\n", columns=columns)
    assert X.tolist() == [[3, 1], [6, 4]]
    assert names == ["c", "a"]


def test_names_take_precedence_over_numbers(table):
    X, _, _ = table("x,1\n5,6\n", columns=["1"], header=True)
    assert X.tolist() == [[6]]


def test_csv_round_trip_is_exact(tmp_path):
    weights = np.random.default_rng(0).random(50) ** 40
    labels = np.arange(50) % 3
    ids = ["name, other", *(f'"{i}", {i}' for i in range(50))]
    path = tmp_path / "l.csv"
    columns = {"label": labels, "weight": weights}
    path.write_text(format_labels(columns))
    X, names, _ = read_table(path)
    assert names == ["label", "weight"]
    np.testing.assert_array_equal(X, np.column_stack([labels, weights]))
    path.write_text(format_labels(columns, ids))
    again, names, cells = read_table(path, id_column="name, other")
    assert names == ["label", "weight"]
    assert cells == ids
    np.testing.assert_array_equal(again, X)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, bool])
def test_numpy_files(tmp_path, dtype):
    A = np.array([[1, 0, 2], [0, 1, 3]], dtype=dtype)
    np.save(tmp_path / "a.npy", A)
    np.savez(tmp_path / "one.npz", whatever=A)
    np.savez_compressed(tmp_path / "two.npz", X=A, y=np.arange(2))
    for name in ("a.npy", "one.npz", "two.npz"):
        X, names, _ = read_table(tmp_path / name)
        assert X.dtype == np.float64
        assert names is None
        np.testing.assert_array_equal(X, A)
        np.testing.assert_array_equal(
            read_table(tmp_path / name, ["3", "1"])[0], A[:, [2, 0]]
        )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"expected one row per point; got no rows\."),
        ("\n \n", r"got no rows"),
        ("a,b\n", r"expected one row per point; got only column names\."),
        ("1,2\n3,4\n\n5\n", r"row 4: expected 2 cells as in row 1; got 1\."),
        ("a,b\n1,2\n3,4,5\n", r"row 3: expected 2 cells as in row 1; got 3\."),
        (
            "a,b\n1,2\n3,x y\n" + 9 * "3,4\n",
            r"row 3, column 2 \('b'\): expected a number, as in 10 of the 11 cells .*; "
            r"got 'x y'\. Correct it, leave it empty, or pass --categories b if",
        ),
        (
            9 * "1,2\n" + "3,abc\n",
            r"row 10, column 2: .* got 'abc'.* --categories 2 if",
        ),
        ("1,5\n3,1_0\n", r"row 2, column 2: .* got '1_0', a number with other signs"),
        ("a,b\n1,'x'\n1,2 000\n", r"row 3, column 2 \('b'\): .* got '2 000', a nu"),
        (9 * "1,2\n" + "3," + "x" * 999, r"got 'x{40}'\. Correct it"),
        ("1,2\n3,a\0\n", r"row 2, column 2: expected a finite number; got 'a"),
        ("1,2\n-inf,4\n", r"row 2, column 1: expected a finite number; got '-inf'\."),
    ],
)
def test_invalid_text(table, text, message):
    with pytest.raises(TableError, match=r"t\.csv.*" + message):
        table(text)


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        (gzip.compress(b"a,b\n1,2\n"), "gzip: decompress it with gunzip"),
        ("a,b\n1,2\n".encode("utf-16"), "UTF-16: convert it with iconv"),
    ],
    ids=["gzip", "UTF-16"],
)
def test_hints_for_other_encodings(tmp_path, content, hint):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(TableError, match=f"UTF-8 text; got the byte .*{hint}"):
        read_table(path)


def test_invalid_encodings(table):
    with pytest.raises(TableError, match="expected UTF-8 text; got the byte 0xe9"):
        table("caf\u00e9,b\n1,2\n", encoding="latin-1")
    with pytest.raises(TableError, match="cannot read"):
        table("1," + "9" * 200_000 + "\n")  # above the field limit of csv


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("a,b\n1,2\n", "z", r"no column 'z': .* 1 to 2 or one of the names a, b\.$"),
        ("a,b\n1,2\n", "3", r"no column '3': .* 1 to 2 or one of the names a, b\.$"),
        ("1,2\n", "0", r"no column '0': .* 1 to 2\. Pass --header if row 1 cont"),
        ("a,a\n1,2\n", "a", r"2 columns 'a': expected a number from 1 to 2"),
    ],
)
def test_missing_columns(table, text, column, message):
    for options in ({"columns": [column]}, {"id_column": column}):
        with pytest.raises(TableError, match=message):
            table(text, **options)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.arange(3), r"expected a 2-D array of numbers; got shape \(3,\), int64\."),
        (np.ones((2, 2), complex), r"expected a 2-D array of numbers.* complex128"),
        (np.array([["a"]]), r"expected a 2-D array of numbers.* <U1"),
        (np.ones((0, 2)), r"expected a 2-D array of numbers; got shape \(0, 2\)"),
        (np.array([[1, 2], [-np.inf, 3]]), r"row 2, column 1: .* finite .* got -inf"),
        (np.array([[1, np.inf]]), r"row 1, column 2: .* finite number; got inf"),
        (np.array([[1, {}]], dtype=object), r"Python objects, which are never loaded"),
    ],
)
def test_invalid_arrays(tmp_path, array, message):
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    np.savez(tmp_path / "a.npz", X=array)
    for name in ("a.npy", "a.npz"):
        with pytest.raises(TableError, match=rf"{name}.*{message}"):
            read_table(tmp_path / name)


def test_invalid_numpy_files(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, a=np.ones((2, 2)), b=np.ones((2, 2)))
    with pytest.raises(TableError, match=r"a single array or one named X; got a, b\."):
        read_table(path)
    np.savez(path)
    with pytest.raises(TableError, match=r"a single array or one named X; got none\."):
        read_table(path)
    for content in (b"", b"no array", b"PK\x03\x04 no zip"):
        path.write_bytes(content)
        with pytest.raises(TableError, match="got a damaged file, another format"):
            read_table(path)


def test_unreadable_files(tmp_path):
    with pytest.raises(TableError, match=r"none\.csv: No such file or directory"):
        read_table(tmp_path / "none.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(TableError, match=r"folder\.csv: Is a directory"):
        read_table(tmp_path / "folder.csv")
    with pytest.raises(
        TableError, match=r"format of .*t\.xlsx: .* \.csv, .*\.gz, .* or \.parquet"
    ):
        read_table(tmp_path / "t.xlsx")


# --- ambiguous headers --------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "reading"),
    [
        ("2019,2020\n3,7\n5,2\n", "a point, although only this row"),
        ("0,1,2\n0.5,1.5,2.5\n", "a point, although only this row"),
        ("2019\n0.5\n0.75\n", "a point, although only this row"),
        (",0\n0,5\n", "a point, although only this row has no first cell"),
        ("year,2020\n1,2\n", "column names, although some are numbers"),
        ("name,city\nann,Rome\n", "column names, although all other rows hold text"),
        ("city,2\nRome,3\nRome,7\n", "a point, although its text occurs in no other"),
    ],
)
def test_warning_about_an_ambiguous_header(table, text, reading):
    with pytest.warns(
        UserWarning, match=rf"^The first row \[.*\] is read as {reading}"
    ):
        X, names, _ = table(text)
    assert len(X) + (names is not None) == text.count("\n")
    assert len(table(text, header=True)[0]) == text.count("\n") - 1


@pytest.mark.parametrize(
    "text",
    [
        "1,2\n",  # a single row
        "1,2\n3,4\n7,5\n",  # another row of consecutive integers
        "1,3\n2,5\n",
        "0.5,1.5\n2,5\n",
        "a,b\n1,2\n",
        "city,b\nRome,2\n",
        "city,size\nRome,S\nRome,M\n",
        "Rome,1\nParis,2\nRome,5\n",
        "Oslo,1\nParis,2\nRome,5\n",
        "Rome,yes\nParis,no\nRome,no\n",
        ",2\n3,4\n,9\n",
    ],
)
def test_no_warning_about_clear_headers(table, text):
    # a warning would be an error
    assert len(table(text)[0]) > 0


def test_explicit_header(table):
    X, names, _ = table("2019,2020\n3,7\n", header=True)
    assert (X.tolist(), names) == ([[3, 7]], ["2019", "2020"])
    X, names, _ = table("2019,2020\n3,7\n", header=False)
    assert (X.tolist(), names) == ([[2019, 2020], [3, 7]], None)
    X, names, _ = table("id,2019\nu,7\n", columns=["2019"], header=True)
    assert (X.tolist(), names) == ([[7]], ["2019"])
    with pytest.raises(TableError, match=r"row 1, column 1: .* got 'a'\. Correct it"):
        table("a,b\n" + 9 * "1,2\n", header=False)
    with pytest.raises(TableError, match="got only column names"):
        table("1,2\n", header=True)


# --- numbers and categories ---------------------------------------------------------


def cells(X):
    """Columns of a table as lists, NaN as None."""
    return [
        [None if cell != cell else cell for cell in X.iloc[:, j].to_list()]
        for j in range(X.shape[1])
    ]


def test_columns_of_numbers_and_text(table):
    X, names, _ = table("city,price,sold\nRome,1.5,yes\n,2,\nOslo,NA,no\nRome,,no\n")
    assert isinstance(X, Table)
    assert names == list(X.columns) == ["city", "price", "sold"]
    city, price, sold = cells(X)
    assert city == ["Rome", None, "Oslo", "Rome"]
    assert price == [1.5, 2, None, None]
    assert sold == ["yes", None, "no", "no"]
    assert [dtype.kind for dtype in X.dtypes] == ["O", "f", "O"]


@pytest.mark.parametrize("empty", ["", "NA", "n/a", "NaN", "null", "None", "?"])
def test_missing_cells(table, empty):
    X, _, _ = table(f"a,b\n1,2\n{empty},4\n")
    np.testing.assert_array_equal(X, [[1, 2], [np.nan, 4]])
    place = r"row 3, column 1 \('a'\): expected a finite number; got '.*' \(a missing v"
    with pytest.raises(TableError, match=place):
        table(f"a,b\n1,2\n{empty},4\n", **COMPLETE)


def test_tables_without_names_count_columns_from_1(table):
    X, names, _ = table("Rome,1\nOslo,2\nRome,3\n")
    assert (names, list(X.columns)) == (None, [1, 2])


def test_columns_of_numbers_and_texts_are_categories(table):
    warning = (
        r"Column b holds 2 texts \('x' in row 3\) and 2 numbers\. All of them are read"
    )
    with pytest.warns(UserWarning, match=warning):
        X, _, _ = table("a,b\n1,1.0\n2,x\n3,01\n4,y\n5,\n")
    assert cells(X)[1] == ["1", "x", "1", "y", None]


@pytest.mark.parametrize("column", ["b", "2"])
def test_columns_that_are_said_to_be_categories(table, column):
    kinds = ColumnKinds(categories=(column,))
    X, _, _ = table("a,b\n1,1.0\n2,2.5\n3,1\n", kinds=kinds)
    assert cells(X)[1] == ["1", "2.5", "1"]
    # texts that would be mistakes
    text = "a,b\n1,x\n2,1_0\n" + 20 * "3,4\n"
    assert cells(table(text, kinds=kinds)[0])[1][:3] == ["x", "1_0", "4"]
    with pytest.raises(TableError, match="no column 'z'"):
        table(text, kinds=ColumnKinds(categories=("z",)))
    with pytest.raises(TableError, match="--categories b: expected a feature; got a c"):
        table(text, columns=["a"], kinds=kinds)


def test_categories_of_arrays(tmp_path):
    A = np.array([[1.5, 3], [np.nan, 4], [2, np.nan]])
    np.save(tmp_path / "a.npy", A)
    X = read_table(tmp_path / "a.npy")[0]
    np.testing.assert_array_equal(X, A)
    kinds = ColumnKinds(categories=("2",))
    X = read_table(tmp_path / "a.npy", kinds=kinds)[0]
    assert cells(X) == [[1.5, None, 2], ["3", "4", None]]
    with pytest.raises(TableError, match=r"row 2, column 1: .* got a missing value"):
        read_table(tmp_path / "a.npy", **COMPLETE)


def test_columns_of_a_model(table):
    kinds = ColumnKinds(
        fitted_names=["n", "c", "name"], fitted=("numbers", "categories", "left out")
    )
    # numbers among the categories, and no column of names
    X, names, _ = table("c,n\n1,2\n1.0,\n", kinds=kinds)
    assert cells(X) == [[2, None], ["1", "1"], [None, None]]
    assert len(names) == 3
    with pytest.raises(TableError, match=r"row 2, column 2 \('n'\): .* got 'x'\.$"):
        table("c,n\nu,x\n", header=True, kinds=kinds)
    with pytest.raises(TableError, match="expected one column 'c', a feature"):
        table("d,n\nu,1\n", kinds=kinds)


def test_a_column_without_values_is_no_number(table):
    assert cells(table("a,b\n1,\n2,NA\n")[0]) == [[1, 2], [None, None]]


def test_numbers_written_in_other_columns(table):
    # a pair of numbers in a cell is text if the names have no such delimiter
    X, _, _ = table("name,place\nu,1 2\nv,3 4\nu,1 2\n", delimiter=",")
    assert cells(X)[1] == ["1 2", "3 4", "1 2"]
    assert cells(table("name,place\nu,1 2\nv,3 4\nu,1 2\n")[0])[1] == cells(X)[1]
    # quoted delimiters
    X, _, _ = table('a,b\n"Rome, Italy",2\n"Rome, Italy",3\n')
    assert cells(X) == [["Rome, Italy"] * 2, [2, 3]]


# --- dialects -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name", "options"),
    [
        ("1;2.5\n-3e2;4", "t.csv", {"delimiter": ";"}),
        ("1;2,5\n-3e2;4", "t.csv", {"decimal": ","}),
        ("1;2,5\n-3e2;4", "t.txt", {"delimiter": ";", "decimal": ","}),
        ("1\t2,5\n-3e2\t4", "t.tsv", {"decimal": ","}),
        ("1\t2.5\n-3e2\t4", "t.csv", {"delimiter": "tab"}),
        (" 1  2.5\n-3e2\t4", "t.csv", {"delimiter": "space"}),
        ("1 2,5\n-3e2 4", "t.txt", {"decimal": ","}),
        ("1|2.5\n-3e2|4", "t.csv", {"delimiter": "|"}),
    ],
)
def test_dialects(table, text, name, options):
    assert table(text, name, **options)[0].tolist() == [[1, 2.5], [-300, 4]]


@pytest.mark.parametrize(
    ("text", "name", "options"),
    [
        ("1,5;2,5\n3,5;4,5\n", "t.csv", "--delimiter ';' --decimal ','"),
        ("x;y\n1,5;2,5\n", "t.csv", "--delimiter ';' --decimal ','"),
        ("x;y\n1;2\n", "t.csv", "--delimiter ';' --decimal '.'"),
        ("x;y\nu;2\n", "t.csv", "--delimiter ';' --decimal '.'"),
        ("1\t2\n3\t4\n", "t.csv", "--delimiter 'tab' --decimal '.'"),
        ("1 2\n3 4\n", "t.csv", "--delimiter 'space' --decimal '.'"),
        ("1,2\n3,4\n", "t.txt", "--delimiter ',' --decimal '.'"),
        ("1,5\t2\n3,5\t4\n", "t.tsv", "--delimiter 'tab' --decimal ','"),
    ],
)
def test_errors_suggest_a_dialect(table, text, name, options):
    with pytest.raises(TableError, match=f"Try {options}") as error:
        table(text, name)
    _, delimiter, _, decimal = options.replace("'", "").split()
    X = table(text, name, id_column="1", delimiter=delimiter, decimal=decimal)[0]
    assert X.shape[1] == 1
    assert "row " in str(error.value)


def test_thousands_separators_are_rejected(table):
    message = r"column 1: .* got '1\.000,5', a number with other signs\. Leave out sep"
    for text in ("2,5;1\n1.000,5;2\n", "1.000,5;1\n1.000,5;2\n"):
        with pytest.raises(TableError, match=message):
            table(text, decimal=",")


def test_arrays_have_no_text_format(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((2, 2)))
    for options in ({"header": False}, {"delimiter": ";"}, {"decimal": ","}):
        with pytest.raises(TableError, match="apply to text files only"):
            read_table(tmp_path / "a.npy", **options)


# --- column of row names ------------------------------------------------------------


@pytest.mark.parametrize("columns", [None, ["a", "c"], ["name", "a", "c"]])
def test_id_column(table, columns):
    text = "a,name,c\n1, u ,3\n4,,6\n"
    X, names, ids = table(text, columns=columns, id_column="name")
    assert X.tolist() == [[1, 3], [4, 6]]
    assert names == ["a", "c"]
    assert ids == ["name", "u", ""]


def test_id_column_without_a_name(table, tmp_path):
    assert table("1,u\n2,v\n", id_column="2")[2] == ["id", "u", "v"]
    assert table(",a\n1,2\n", id_column="1", header=True)[2] == ["id", "1"]
    np.save(tmp_path / "a.npy", np.array([[7, 1], [8, 2]]))
    X, _, ids = read_table(tmp_path / "a.npy", id_column="1")
    assert (X.tolist(), ids) == ([[1], [2]], ["id", 7, 8])


def test_id_column_must_not_be_the_only_one(table):
    with pytest.raises(TableError, match="at least one column besides --id; got none"):
        table("a\n1\n", id_column="a")


# --- compressed files ---------------------------------------------------------------


def compress_zstd(content):
    return pytest.importorskip("zstandard").compress(content)


each_compression = pytest.mark.parametrize(
    ("ending", "compress"),
    [
        ("gz", gzip.compress),
        ("bz2", bz2.compress),
        ("xz", lzma.compress),
        ("zst", compress_zstd),
    ],
)


@each_compression
def test_compressed(tmp_path, ending, compress):
    A = np.array([[1, 2.5], [-300, 4]])
    np.save(tmp_path / "t.npy", A)
    np.savez(tmp_path / "t.npz", X=A)
    np.savetxt(tmp_path / "t.csv", A, delimiter=",")
    np.savetxt(tmp_path / "t.tsv", A, delimiter="\t")
    np.savetxt(tmp_path / "t.txt", A)
    for kind in ("csv", "tsv", "txt", "npy", "npz"):
        path = tmp_path / f"t.{kind}.{ending.upper()}"
        path.write_bytes(compress((tmp_path / f"t.{kind}").read_bytes()))
        np.testing.assert_array_equal(read_table(path)[0], A)


@each_compression
@pytest.mark.parametrize("kind", ["csv", "npy"])
def test_damaged_compressed_files(tmp_path, kind, ending, compress):
    path = tmp_path / f"t.{kind}.{ending}"
    namele = compress(np.random.default_rng(0).random(999).tobytes().hex().encode())
    for content in (b"1,2", namele[:99], namele[:20] + b"?" * 20 + namele[40:]):
        path.write_bytes(content)
        with pytest.raises(TableError, match=rf"t\.{kind}\.{ending}: .*\.$"):
            read_table(path)


def test_several_zstandard_frames(tmp_path):
    path = tmp_path / "t.csv.zst"
    path.write_bytes(compress_zstd(b"1,2\n") + compress_zstd(b"3,4\n"))
    assert read_table(path)[0].tolist() == [[1, 2], [3, 4]]


def test_without_zstandard(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    (tmp_path / "t.csv.zst").write_bytes(b"")
    with pytest.raises(ImportError, match=r"pip install cdsk\[zstd\]"):
        read_table(tmp_path / "t.csv.zst")


# --- features of a fitted model -----------------------------------------------------


def numbers(*names):
    """What is known of a model of numbers."""
    fitted = ("numbers",) * len(names)
    return ColumnKinds(fitted_names=list(names), fitted=fitted)


def test_fitted_names_are_not_column_numbers(table):
    with pytest.raises(
        TableError, match="expected one column '1', a feature of the model; got 0"
    ):
        table("zzz,b,c\n1,2,3\n4,5,6\n", kinds=numbers("1", "b"))


def test_columns_by_fitted_names(table):
    text = "b,name,a\n1,x,2\n3,y,4\n"
    X, names, _ = table(text, kinds=numbers("a", "b"))
    assert (X.tolist(), names) == ([[2, 1], [4, 3]], ["a", "b"])
    # --columns takes precedence; a table without names has the order of the fit
    assert table(text, columns=["b"], kinds=numbers("a", "b"))[0].tolist() == [[1], [3]]
    assert table("1,2\n", kinds=numbers("a", "b"))[0].tolist() == [[1, 2]]
    with pytest.raises(
        TableError, match=r"one column 'c', .*; got 0 among b, name, a\.$"
    ):
        table(text, kinds=numbers("a", "c"))


# --- Parquet ------------------------------------------------------------------------


@pytest.fixture
def parquet(tmp_path):
    """Write columns and read them as a table."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    def read(content, *arguments, **options):
        path = tmp_path / "t.parquet"
        parquet.write_table(pyarrow.table(content), path)
        return read_table(path, *arguments, **options)

    return read


def test_parquet(parquet):
    columns = {
        "x": np.array([0.1, 2.5]),
        "name": ["a", "b"],
        "n": np.array([3, -4], np.int16),
        "yes": [True, False],
    }
    X, names, ids = parquet(columns, ["n", "x"], "name")
    assert X.dtype == np.float64
    assert X.tolist() == [[3, 0.1], [-4, 2.5]]
    assert names == ["n", "x"]
    assert ids == ["name", "a", "b"]
    X, names, _ = parquet(columns, None, "name")
    assert names == ["x", "n", "yes"]
    assert X.iloc[:, 2].to_list() == ["True", "False"]
    # a model of numbers has truth values as numbers
    assert parquet(columns, kinds=numbers("yes"))[0].tolist() == [[1], [0]]
    assert parquet(columns, kinds=numbers("n"))[0].tolist() == [[3], [-4]]
    assert parquet({"x": [1.0, 2.0], "name": ["a", None]}, None, "name")[2][2] == ""


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (
            {"a": ["u", "v"]},
            {"kinds": numbers("a")},
            r"column 'a': expected numbers; got type string\.",
        ),
        ({"a": [1.0, None]}, COMPLETE, r"row 2, column 'a': .* got a missing value"),
        ({"a": [1, None]}, COMPLETE, r"row 2, column 'a': .* got a missing value"),
        ({"a": ["u", None]}, COMPLETE, r"row 2, column 'a': .* got a missing value"),
        ({"a": [[1], [2]]}, {}, r"column 'a': expected numbers, text .* got type list"),
        ({"a": [1.0, np.inf]}, {}, r"row 2, column 'a': .* finite number; got inf"),
        ({"a": np.empty(0)}, {}, "one row per point; got no rows"),
        ({"a": [1.0]}, {"columns": ["b"]}, "no column 'b': .* of the names a"),
        ({"a": [1.0]}, {"header": True}, "apply to text files only"),
    ],
)
def test_invalid_parquet(parquet, content, options, message):
    with pytest.raises(TableError, match=r"t\.parquet: .*" + message):
        parquet(content, **options)


def test_other_formats_are_not_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "t.parquet").write_text("1,2\n")
    with pytest.raises(TableError, match="expected a Parquet file; got another format"):
        read_table(tmp_path / "t.parquet")
    with pytest.raises(TableError, match=r"cannot read .*none.*No such file"):
        read_table(tmp_path / "none.parquet")


def test_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install cdsk\[parquet\]"):
        read_table(tmp_path / "t.parquet")
