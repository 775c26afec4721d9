# SPDX-License-Identifier: Apache-2.0
"""Text files are read as they were meant, or refused in a sentence that holds no record's value."""

from __future__ import annotations

import gzip
import random
import re
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from anonfit.errors import DataError
from anonfit.tables.layout import count_led_by_zero
from anonfit.tables.reading import ReadOptions, column_names, read_table

SECRET = "SECRET4711"


def write(folder: Path, content: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    found = content.encode() if isinstance(content, str) else content
    if name.endswith(".gz"):
        found = gzip.compress(found)
    if name.endswith(".zst"):
        found = pa.compress(found, codec="zstd", asbytes=True)
    path.write_bytes(found)
    return path


@pytest.fixture
def read(tmp_path: Path) -> Any:
    """Writes a text and reads it as a table; every value as Python has it."""

    def found(content: str | bytes, name: str = "t.csv", **options: Any) -> dict[str, list[Any]]:
        return read_table(write(tmp_path, content, name), ReadOptions(**options)).to_dict(as_series=False)

    return found


PEOPLE = "age,city\n31,Rome\n42,Oslo\n"
READ = {"age": [31, 42], "city": ["Rome", "Oslo"]}


# --- packing, delimiters, headers -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.csv.zst", "t.txt", "t.data", "T.CSV"])
def test_plain_and_packed_files_are_read_alike(read: Any, name: str) -> None:
    assert read(PEOPLE, name) == READ


@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(read: Any, sign: str) -> None:
    assert read(PEOPLE.replace(",", sign)) == READ


def test_the_delimiter_is_as_given(read: Any) -> None:
    assert read("a:b\n1:x,y\n", delimiter=":") == {"a": [1], "b": ["x,y"]}
    assert read("a;b,c\n1;2,3\n", delimiter=",") == {"a;b": ["1;2"], "c": [3]}


def test_a_header_is_found_or_made(read: Any) -> None:
    assert read("31,Rome\n42,Oslo\n") == {"column_1": [31, 42], "column_2": ["Rome", "Oslo"]}
    assert list(read("name,city\nAnn,Rome\nBob,Oslo\n")) == ["name", "city"]
    # A first line of texts that stand in the data again is data.
    assert list(read("f,a\nm,b\nf,b\n")) == ["column_1", "column_2"]


def test_a_header_is_as_given(read: Any) -> None:
    assert read("2019,2020\n5,1\n", header=True) == {"2019": [5], "2020": [1]}
    assert read("a,b\nc,d\n", header=False) == {"column_1": ["a", "c"], "column_2": ["b", "d"]}


def test_names_are_told_without_reading_the_rows(tmp_path: Path) -> None:
    path = write(tmp_path, PEOPLE)
    assert column_names(path, ReadOptions()) == ("age", "city")
    assert column_names(str(path), ReadOptions(header=False)) == ("column_1", "column_2")


def test_a_file_that_was_changed_is_looked_at_again(tmp_path: Path) -> None:
    assert column_names(write(tmp_path, PEOPLE), ReadOptions()) == ("age", "city")
    assert column_names(write(tmp_path, "a;b;c\n1;2;3\n"), ReadOptions()) == ("a", "b", "c")


def test_only_the_columns_that_are_wanted_are_read(read: Any) -> None:
    assert read(PEOPLE, columns=("city",)) == {"city": ["Rome", "Oslo"]}


def test_names_that_stand_twice_are_refused(read: Any) -> None:
    with pytest.raises(DataError, match="stand twice: those of columns"):
        read("a,a\n1,2\n3,4\n")


def test_names_that_stand_twice_in_a_given_header_are_refused(read: Any) -> None:
    with pytest.raises(DataError, match="stand twice: those of columns"):
        read("a,a\n1,2\n", header=True)


def test_the_header_of_a_pandas_index_is_a_header(read: Any) -> None:
    assert read(",age,city\n0,31,Rome\n1,42,Oslo\n") == {"": [0, 1], **READ}


# --- texts ------------------------------------------------------------------------------------------------------


def test_quoted_texts_may_hold_anything(read: Any) -> None:
    found = read('a,b\n"x\ny, ""z"";",1\n"p\r\nq",2\n')
    assert found == {"a": ['x\ny, "z";', "p\r\nq"], "b": [1, 2]}
    assert list(read('"a\nb","c, d"\n1,2\n')) == ["a\nb", "c, d"]


def test_line_ends_and_byte_order_marks_are_no_part_of_values(read: Any) -> None:
    assert read(PEOPLE.replace("\n", "\r\n")) == READ
    assert read(b"\xef\xbb\xbf" + PEOPLE.encode()) == READ
    assert read(b"\xef\xbb\xbf31,Rome\n42,Oslo\n") == {"column_1": [31, 42], "column_2": ["Rome", "Oslo"]}
    assert read(PEOPLE.rstrip("\n")) == READ


def test_unicode_is_kept(read: Any) -> None:
    assert read("größe,city\n1,Zürich\n2,東京\n") == {"größe": [1, 2], "city": ["Zürich", "東京"]}


def test_codes_with_leading_zeros_stay_texts(read: Any) -> None:
    assert read("zip,n\n01234,1\n99999,2\n")["zip"] == ["01234", "99999"]
    assert read("n,m\n0,-0.5\n10,0.5\n") == {"n": [0, 10], "m": [-0.5, 0.5]}


def test_columns_declared_as_texts_stay_texts(read: Any) -> None:
    assert read("code,n\n10,1\n20,2\n", texts=frozenset(["code"]))["code"] == ["10", "20"]


def test_numbers_and_dates_are_found(read: Any) -> None:
    found = read("a,b,c,d\n1,1.5,2024-01-05,-3\n-2,1e3,1999-12-31,0\n")
    assert found == {"a": [1, -2], "b": [1.5, 1000.0], "c": [date(2024, 1, 5), date(1999, 12, 31)], "d": [-3, 0]}


@pytest.mark.parametrize("number", ["12345678901234567890", "0.12345678901234567891", "1234567890.123456789"])
def test_numbers_of_more_digits_than_a_float_holds_are_not_changed(read: Any, number: str) -> None:
    found = read(f"a,b\n{number},1\n{number},2\n")["a"][0]
    assert str(found) == number


def test_a_decimal_comma_is_found(read: Any) -> None:
    assert read("a;b;c\n1,5;x;3\n-2,25;y;4\n3;z;5\n") == {"a": [1.5, -2.25, 3.0], "b": ["x", "y", "z"], "c": [3, 4, 5]}
    # A comma between digits of a text column does not make other columns' points wrong.
    assert read("a;b\n1.5;3,5\n2.5;z\n") == {"a": [1.5, 2.5], "b": ["3,5", "z"]}


def test_a_dates_calendar_is_checked(tmp_path: Path) -> None:
    """What looks like a date but is none leaves the column a text."""
    path = write(tmp_path, "a,b\n2024-02-28,1\n2024-02-30,2\n")
    found = read_table(path, ReadOptions())
    assert found["a"].to_list() == ["2024-02-28", "2024-02-30"]


# --- missing values ---------------------------------------------------------------------------------------------


def test_declared_texts_are_missing_in_every_column(read: Any) -> None:
    found = read("a,b,c\n1,?,x\n?,2.5,NA\nNA,3,\n", missing=("?", "NA"))
    assert found == {"a": [1, None, None], "b": [None, 2.5, 3.0], "c": ["x", None, None]}


def test_padded_files_lose_their_blanks(read: Any) -> None:
    """The layout of the Adult data: a blank after each comma, and ' ?' for missing."""
    found = read("39, State-gov, 77516, ?\n50, ?, 83311, Cuba\n", missing=("?",))
    assert list(found.values()) == [[39, 50], ["State-gov", None], [77516, 83311], [None, "Cuba"]]
    assert read("age, city\n31, Rome\n42, Oslo\n") == READ


def test_padded_dates_are_dates(read: Any) -> None:
    assert read("when, n\n2024-01-05, 1\n2024-01-06, 2\n")["when"] == [date(2024, 1, 5), date(2024, 1, 6)]


def test_a_column_of_missing_values_only(read: Any) -> None:
    assert read("a,b\n,1\n,2\n") == {"a": [None, None], "b": [1, 2]}
    assert read("a,b\n?,1\n?,2\n", missing=("?",)) == {"a": [None, None], "b": [1, 2]}


@pytest.mark.parametrize(
    "content",
    [
        PEOPLE + "\n",  # as the Adult data ends
        PEOPLE + "\r\n\r\n",
        "age,city\n31,Rome\n\n42,Oslo\n",
        "\n" + PEOPLE,
    ],
)
def test_empty_lines_are_no_records(read: Any, content: str) -> None:
    assert read(content) == READ


# --- files that cannot be read ----------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [f"a,b\n1,{SECRET}\n2,y,{SECRET}\n", f"a,b\n{SECRET},x,y\n1,2\n"])
def test_lines_with_too_many_fields_are_refused(read: Any, content: str) -> None:
    with pytest.raises(DataError, match=r"t\.csv: line [23] has [13] field") as caught:
        read(content)
    assert SECRET not in str(caught.value)


def test_lines_with_too_few_fields_are_refused(read: Any) -> None:
    with pytest.raises(DataError, match=r"t\.csv: line [23] has [13] field"):
        read("a,b\n1,x\n2\n3,y\n")


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_an_encoding_that_is_not_sure_is_refused(read: Any, name: str) -> None:
    content = f"a,b\n1,{SECRET}\n2,Łódź\n".encode("cp1250")
    with pytest.raises(DataError, match="line 3 is not UTF-8") as caught:
        read(content, name)
    assert SECRET not in str(caught.value)
    assert read(content, name, encoding="cp1250")["b"] == [SECRET, "Łódź"]


def test_another_encoding_far_into_the_file_is_refused_by_its_line(read: Any) -> None:
    content = b"a,b\n" + b"x,1\n" * 90_000 + "ä,1\n".encode("latin-1") + b"x,1\n" * 200_000
    with pytest.raises(DataError, match="line 90002 is not UTF-8"):
        read(content)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
@pytest.mark.parametrize("content", ["", "\n\n", "  \n"])
def test_an_empty_file_is_refused(read: Any, name: str, content: str) -> None:
    with pytest.raises(DataError, match="is empty"):
        read(content, name)


def test_a_file_of_a_header_only_has_no_rows(read: Any) -> None:
    assert read("a,b\n") == {"a": [], "b": []}
    assert read("a,b") == {"a": [], "b": []}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv.gz", b"no gzip"),
        ("t.csv.zst", pa.compress("a,b\nä,1\n".encode("latin-1"), codec="zstd", asbytes=True)),
        ("t.csv.zst", pa.compress(b"", codec="zstd", asbytes=True)),
        ("t.parquet", b"no parquet"),
        ("t.arrow", b"no arrow"),
        ("t.xlsx", b"no table"),
    ],
)
def test_broken_files_are_refused_by_name(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    for ask in (read_table, column_names):
        with pytest.raises(DataError, match=name.replace(".", r"\.")):
            ask(tmp_path / name, ReadOptions())


@pytest.mark.parametrize("rows", [10, 50_000])
def test_a_packed_file_that_was_cut_short_is_refused(tmp_path: Path, rows: int) -> None:
    content = "a,b\n" + "".join(f"{row * 7919 % 10007},{row * 104729 % 99991}\n" for row in range(rows))
    packed = gzip.compress(content.encode(), mtime=0)
    (tmp_path / "t.csv.gz").write_bytes(packed[: len(packed) * 3 // 4])
    with pytest.raises(DataError, match=r"t\.csv\.gz"):
        read_table(tmp_path / "t.csv.gz", ReadOptions())


def test_absent_files_folders_and_empty_patterns_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_table(tmp_path / "absent.csv", ReadOptions())
    with pytest.raises(DataError, match="is a folder"):
        read_table(tmp_path, ReadOptions())
    with pytest.raises(DataError, match="no file matches"):
        read_table(tmp_path / "*.csv", ReadOptions())


# --- what the samples did not show ------------------------------------------------------------------------------


def long_file(surprise: str) -> str:
    """A file so long that a line after its first quarter is in no sample."""
    lines = [f"{row % 90},x" for row in range(200_000)]
    lines[50_000] = surprise
    return "a,b\n" + "\n".join(lines) + "\n"


def test_a_text_deep_in_a_column_of_numbers_makes_it_a_text_column(tmp_path: Path) -> None:
    found = read_table(write(tmp_path, long_file("unknown,x")), ReadOptions())
    assert found["a"].dtype == pl.String
    assert found["a"][50_000] == "unknown"
    assert len(found) == 200_000


def test_a_fraction_deep_in_a_column_of_whole_numbers_makes_it_a_column_of_numbers(tmp_path: Path) -> None:
    found = read_table(write(tmp_path, long_file("1.5,x")), ReadOptions())
    assert found["a"].dtype == pl.Float64


def test_a_line_of_too_many_fields_deep_in_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="line 50002 has 3 field"):
        read_table(write(tmp_path, long_file("1,x,y")), ReadOptions())


# --- patterns ---------------------------------------------------------------------------------------------------


def pattern(folder: Path, *contents: str, **options: Any) -> pl.DataFrame:
    for number, content in enumerate(contents):
        write(folder, content, f"part{number}.csv")
    return read_table(folder / "part*.csv", ReadOptions(**options))


def test_files_of_a_pattern_are_one_table(tmp_path: Path) -> None:
    found = pattern(tmp_path, PEOPLE, "age,city\n5,Bonn\n", "age,city\n6.5,Kiel\n")
    assert found.to_dict(as_series=False) == {"age": [31, 42, 5, 6.5], "city": ["Rome", "Oslo", "Bonn", "Kiel"]}
    assert column_names(tmp_path / "part*.csv", ReadOptions()) == ("age", "city")


def test_names_that_hold_signs_of_patterns_are_files_if_they_are_there(tmp_path: Path) -> None:
    assert len(read_table(write(tmp_path, PEOPLE, "[a]*.csv"), ReadOptions())) == 2


def test_files_of_a_pattern_with_other_columns_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"part1\.csv has other columns than part0\.csv"):
        pattern(tmp_path, PEOPLE, "age,town\n5,Bonn\n")


def test_declared_texts_of_a_pattern_are_one_column(tmp_path: Path) -> None:
    found = pattern(tmp_path, PEOPLE, "age,city\n5,Bonn\n", texts=frozenset(["city"]))
    assert found["city"].cast(pl.String).to_list() == ["Rome", "Oslo", "Bonn"]


def test_dates_in_one_file_and_numbers_in_another_are_not_mixed(tmp_path: Path) -> None:
    try:
        found = pattern(tmp_path, "a,b\n1,x\n", "a,b\n2024-01-01,y\n")["a"].to_list()
    except DataError:
        return
    assert found == ["1", "2024-01-01"]


def test_a_column_that_is_empty_in_one_file_keeps_its_type(tmp_path: Path) -> None:
    assert pattern(tmp_path, "a,b\n1,\n", "a,b\n2,5\n")["b"].to_list() == [None, 5]


# --- long lines (what is messy otherwise: messy_files) -----------------------------------------------------------


def test_an_empty_line_after_the_header_is_no_record(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a;b\n\n1;2\n3;4\n")
    assert read_table(tmp_path / "a.csv", ReadOptions()).rows() == [(1, 2), (3, 4)]


@pytest.mark.parametrize("columns", [9_000, 20_000])
def test_a_header_may_be_longer_than_the_sample(tmp_path: Path, columns: int) -> None:
    names = [f"column_{number}" for number in range(columns)]
    lines = [",".join(names), *(",".join([str(row)] * columns) for row in range(3))]
    assert len(lines[0]) > 1 << 16
    (tmp_path / "wide.csv").write_text("\n".join(lines) + "\n")
    frame = read_table(tmp_path / "wide.csv", ReadOptions(columns=tuple(names)))
    assert frame.shape == (3, columns)
    assert frame.columns == names
    assert frame[names[-1]].to_list() == [0, 1, 2]


def test_a_first_line_without_an_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anonfit.tables.layout.LONGEST_HEAD", 1 << 17)
    (tmp_path / "a.csv").write_text("a,b" * 100_000 + "\n1,2\n")
    with pytest.raises(DataError, match="line 1 does not end"):
        read_table(tmp_path / "a.csv", ReadOptions())


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_fields_that_begin_with_a_zero_are_counted(delimiter: str, tmp_path: Path, monkeypatch: Any) -> None:
    rng = random.Random(5)
    fields = [rng.choice(["0", "01", "10", "-07", "0.5", '"01"', "00", "a01", "+0", "1", ""]) for _ in range(3000)]
    lines = [delimiter.join(fields[place : place + 3]) for place in range(0, 3000, 3)]
    content = ("\n".join(["a b c".replace(" ", delimiter), *lines]) + "\n").encode()
    expected = sum(bool(re.match(r'"?[-+]?0\d', field)) for field in fields)
    assert count_led_by_zero(content.partition(b"\n")[2], delimiter, 0) == expected
    (tmp_path / "t.csv").write_bytes(content)
    for size in (2, 3, 7, 64):
        monkeypatch.setattr("anonfit.tables.layout.PIECE", size)
        assert count_led_by_zero(tmp_path / "t.csv", delimiter, 1) == expected
