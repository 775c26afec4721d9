# SPDX-License-Identifier: Apache-2.0
"""Workbooks, files of SPSS, Stata and SAS, and others: read by the package, by engines and by the audit alike."""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from anonfit.auditing.reading import open_table
from anonfit.errors import DataError, MissingPackage
from anonfit.tables.foreign_files import variable_labels
from anonfit.tables.ingesting import ingest, scan_of
from anonfit.tables.reading import ReadOptions, column_names, read_table

pyreadstat = pytest.importorskip("pyreadstat")
xlsxwriter = pytest.importorskip("xlsxwriter")

PEOPLE = pl.DataFrame(
    {
        "age": [31, 42, None, 55],
        "city": ["Köln", "Oslo", "Bonn", "Köln"],
        "size": [1.7, 1.85, 1.6, None],
        "born": [date(1990, 1, 31), date(1980, 2, 28), date(1970, 5, 1), date(1965, 7, 2)],
    }
)
LABELS = {"sex": {1: "male", 2: "female"}, "answer": {1: "yes", 99: "no answer"}, "twice": {1: "a", 2: "a"}}
SURVEY = pl.DataFrame({"sex": [1, 2, 2], "answer": [1, 7, 99], "twice": [1, 2, 1], "age": [30.0, -9.0, 51.5]})


def read_by_all(path: Path, folder: Path, **options: Any) -> pl.DataFrame:
    """What the package reads, engines are given, and the audit reads: the same."""
    frame = read_table(path, ReadOptions(**options))
    assert column_names(path, ReadOptions(**options)) == tuple(frame.columns)
    (folder / "spill").mkdir()
    ingested = ingest(path, ReadOptions(**options), folder / "spill")
    assert scan_of(ingested, missing_texts={}, without_missing=()).collect().equals(frame)
    audited = open_table(path, columns=frame.columns).frame(frame.columns)
    if options.get("value_labels") is None:
        assert audited.equals(frame)
    return frame


def workbook(path: Path, sheets: dict[str, pl.DataFrame], above: int = 0) -> Path:
    with xlsxwriter.Workbook(path) as book:
        for name, frame in sheets.items():
            sheet = book.add_worksheet(name)
            if above:
                sheet.write(0, 0, "Export 2019")
            frame.write_excel(book, name, position=(above, 0), autofilter=False)
    return path


@pytest.mark.parametrize("above", [0, 1, 3])
def test_a_workbook_is_a_table_with_numbers_and_days_below_its_title(tmp_path: Path, above: int) -> None:
    assert read_by_all(workbook(tmp_path / "t.xlsx", {"Daten": PEOPLE}, above), tmp_path).equals(PEOPLE)


def test_of_several_sheets_one_is_chosen_by_name(tmp_path: Path) -> None:
    path = workbook(tmp_path / "t.xlsx", {"a": PEOPLE, "b": PEOPLE.head(2)})
    with pytest.raises(DataError, match=r"several sheets with tables: 'a', 'b'; write sheet"):
        read_table(path, ReadOptions())
    assert len(read_table(path, ReadOptions(sheet="b"))) == 2
    with pytest.raises(DataError, match="no sheet 'c'; it has 'a', 'b'"):
        read_table(path, ReadOptions(sheet="c"))


def test_a_sheet_of_notes_is_no_table(tmp_path: Path) -> None:
    path = workbook(tmp_path / "t.xlsx", {"notes": pl.DataFrame({"note": ["x"]}), "people": PEOPLE})
    assert read_table(path, ReadOptions()).equals(PEOPLE)


def test_a_total_below_and_names_that_stand_twice_are_refused(tmp_path: Path) -> None:
    total = pl.concat([PEOPLE.select("city", "age"), pl.DataFrame({"city": ["Total"], "age": [128]})])
    with pytest.raises(DataError, match=r"t\.xlsx: line 6 looks like a total"):
        read_table(workbook(tmp_path / "t.xlsx", {"a": total}), ReadOptions())
    with xlsxwriter.Workbook(tmp_path / "u.xlsx") as book:
        sheet = book.add_worksheet()
        for place, row in enumerate((["age", "age"], [1, 2], [3, 4])):
            sheet.write_row(place, 0, row)
    with pytest.raises(
        DataError, match=r"u\.xlsx: in line 1, column names stand twice: those of columns .*header = false"
    ):
        read_table(tmp_path / "u.xlsx", ReadOptions())


def sheet_of(path: Path, rows: list[list[Any]]) -> Path:
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        for place, row in enumerate(rows):
            sheet.write_row(place, 0, row)
    return path


AGES = [["age", "city"], [31, "Rome"], [42, "Oslo"], [27, "Bonn"]]


@pytest.mark.parametrize(
    ("rows", "line", "text"),
    [
        ([*AGES, ["Summe", None]], 5, r"line 5 looks like a total.*skip_rows = \[5\]"),
        ([AGES[0], ["years", "name"], *AGES[1:]], 2, r"line 2 reads like a second header.*skip_rows = \[2\]"),
    ],
    ids=["total", "units"],
)
def test_a_line_of_a_sheet_is_left_out_as_the_refusal_says(tmp_path: Path, rows: Any, line: int, text: str) -> None:
    path = sheet_of(tmp_path / "t.xlsx", rows)
    with pytest.raises(DataError, match=text):
        read_table(path, ReadOptions())
    known = {"age": [31, 42, 27], "city": ["Rome", "Oslo", "Bonn"]}
    assert read_table(path, ReadOptions(skip_rows=(line,))).to_dict(as_series=False) == known
    audited = open_table(path, columns=["age", "city"], layout={"skip_rows": (line,)}).frame(["age", "city"])
    assert audited.to_dict(as_series=False) == known


def test_an_empty_row_of_a_sheet_is_no_record_and_a_header_below_it_another_table(tmp_path: Path) -> None:
    path = sheet_of(tmp_path / "t.xlsx", [*AGES[:2], [], [None, " "], *AGES[2:]])
    known = {"age": [31, 42, 27], "city": ["Rome", "Oslo", "Bonn"]}
    assert read_table(path, ReadOptions()).to_dict(as_series=False) == known
    path = sheet_of(tmp_path / "u.xlsx", [*AGES, [], ["sex", "pay"], ["f", 100]])
    with pytest.raises(DataError, match=r"u\.xlsx: line 6 reads like the header of another table"):
        read_table(path, ReadOptions())


def test_what_only_has_the_ending_of_a_workbook_is_called_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "t.xls"
    for content, what in (
        (b"<html><table><tr><td>age</td></tr></table></html>", "no workbook but a web page; open it in Excel"),
        (b"age\tcity\n31\tRome\n", "no workbook but text; name it .csv"),
        (bytes(2000), "cannot be read as a workbook: it is broken, protected, or none"),
    ):
        path.write_bytes(content)
        with pytest.raises(DataError, match=what):
            read_table(path, ReadOptions())


def test_open_document_sheets_are_read(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("odf")
    path = tmp_path / "t.ods"
    pandas.DataFrame({"age": [31, 42], "city": ["Köln", "Oslo"]}).to_excel(str(path), index=False, engine="odf")
    assert read_by_all(path, tmp_path).rows() == [(31, "Köln"), (42, "Oslo")]


@pytest.mark.parametrize("ending", ["sav", "zsav", "dta"])
def test_labels_become_names_where_every_value_has_one_of_its_own(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"t.{ending}"
    if ending == "dta":
        pyreadstat.write_dta(SURVEY, path, variable_value_labels=LABELS, column_labels={"age": "Age in years"})
    else:
        compress = {"compress": True} if ending == "zsav" else {}
        pyreadstat.write_sav(
            SURVEY, path, variable_value_labels=LABELS, column_labels={"age": "Age in years"},
            missing_ranges={"age": [-9]}, **compress
        )  # fmt: skip
    found = read_by_all(path, tmp_path)
    assert found["sex"].to_list() == ["male", "female", "female"]
    assert found["answer"].to_list() == [1, 7, 99]  # a number of which some values have labels
    assert found["twice"].to_list() == [1, 2, 1]  # two codes of one label would be one value
    assert found["age"].to_list() == [30.0, -9.0 if ending == "dta" else None, 51.5]
    assert variable_labels(path) == {"age": "Age in years"}
    codes = read_table(path, ReadOptions(value_labels=False))
    assert codes["sex"].to_list() == [1, 2, 2]
    assert read_table(path, ReadOptions(value_labels=True))["answer"].to_list() == ["yes", "7", "no answer"]


def test_files_of_sas_json_lines_avro_and_orc_are_read(tmp_path: Path) -> None:
    frame = PEOPLE.select("age", "city", "size")
    pyreadstat.write_xport(frame.drop_nulls(), tmp_path / "t.xpt")
    pyreadstat.write_por(frame.select("age", "size").drop_nulls(), tmp_path / "t.por")
    frame.write_ndjson(tmp_path / "t.jsonl")
    frame.write_avro(tmp_path / "t.avro")
    from pyarrow import orc

    orc.write_table(frame.to_arrow(), str(tmp_path / "t.orc"))
    for name in ("t.jsonl", "t.avro", "t.orc"):
        (tmp_path / name[2:]).mkdir()
        assert read_by_all(tmp_path / name, tmp_path / name[2:]).equals(frame)
    assert read_by_all(tmp_path / "t.xpt", tmp_path).equals(frame.drop_nulls())
    (tmp_path / "por").mkdir()
    assert read_by_all(tmp_path / "t.por", tmp_path / "por").rows() == frame.select("age", "size").drop_nulls().rows()


@pytest.mark.parametrize(
    "name", ["t.xlsx", "t.ods", "t.sav", "t.dta", "t.por", "t.sas7bdat", "t.xpt", "t.orc", "t.avro", "t.jsonl"]
)
def test_broken_files_are_refused_by_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"no such file" * 100)
    with pytest.raises(DataError, match=name.replace(".", r"\.")):
        read_table(tmp_path / name, ReadOptions())


BROKEN = {
    "t.xlsx": "t.xlsx is no workbook but text; name it .csv, or open it in Excel and save it as .xlsx.",
    "t.sav": "t.sav cannot be read: it is broken, cut short, or of another encoding; write data.encoding, or save it anew.",
    "t.orc": "t.orc cannot be read as ORC: it is broken, or none.",
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_refused_in_these_words(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"no such file" * 100)
    with pytest.raises(DataError) as caught:
        read_table(tmp_path / name, ReadOptions())
    assert str(caught.value) == BROKEN[name]


@pytest.mark.parametrize(
    ("layout", "text"),
    [
        ({"header_row": 99}, "t.xlsx: there is no row 99 of names; mend data.header_row or data.skip_rows."),
        ({"sheet": "x"}, "t.xlsx has no sheet 'x'; it has 'a'."),
        (
            {"header_row": 2},
            "t.xlsx: in line 2, column names stand twice: those of columns 1, 2; rename them, or write header = false "
            "and skip_rows = 2 in [data].",
        ),
    ],
)
def test_what_is_given_of_a_sheet_and_does_not_fit_is_refused(tmp_path: Path, layout: Any, text: str) -> None:
    path = workbook(tmp_path / "t.xlsx", {"a": pl.DataFrame({"age": [1, 2, 3], "size": [1, 4, 5]})})
    with pytest.raises(DataError) as caught:
        read_table(path, ReadOptions(**layout))
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("name", "package", "extra"), [("t.xlsx", "fastexcel", "excel"), ("t.sav", "pyreadstat", "statistics")]
)
def test_a_package_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, package: str, extra: str
) -> None:
    (tmp_path / name).write_bytes(b"x")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        MissingPackage, match=rf"needs the package {package}: install it with pip install 'anonfit\[{extra}\]'"
    ):
        read_table(tmp_path / name, ReadOptions())


def test_a_column_of_names_alone_is_read_as_missing(tmp_path: Path) -> None:
    frame = PEOPLE.with_columns(nothing=pl.lit(None, pl.String))
    assert read_by_all(workbook(tmp_path / "t.xlsx", {"a": frame}), tmp_path).equals(frame)


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("t.rds", "write_parquet"),
        ("t.json", "jsonl"),
        ("t.mdb", "export"),
        ("t.xyz", "save it as CSV"),
        ("t.pdf", "save its table as CSV from a spreadsheet"),
        ("t.zip", "unpack it first"),
        ("t.db", "name it as a database: sqlite:FILE or duckdb:FILE, with a table"),
    ],
)
def test_an_ending_that_is_not_known_says_which_are_and_how_to_convert(tmp_path: Path, name: str, how: str) -> None:
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(DataError, match=rf"{how}.*Known endings: \.csv.*\.xlsx.*\.sav.*\.dta.*\.sas7bdat"):
        read_table(tmp_path / name, ReadOptions())


def test_codes_mean_missing_in_their_column_only(tmp_path: Path) -> None:
    frame = pl.DataFrame({"age": [31, -9, 999], "n": [-9, 1, 2], "city": ["Rome", "-9", "unknown"]})
    codes = {"age": ("-9", "999"), "city": ("unknown",)}
    expected = {"age": [31, None, None], "n": [-9, 1, 2], "city": ["Rome", "-9", None]}
    frame.write_csv(tmp_path / "t.csv")
    frame.write_parquet(tmp_path / "t.parquet")
    for source in (frame, tmp_path / "t.csv", tmp_path / "t.parquet"):
        assert read_table(source, ReadOptions(missing_in=codes)).to_dict(as_series=False) == expected
        folder = tmp_path / "spill"
        folder.mkdir(exist_ok=True)
        ingested = ingest(source, ReadOptions(missing_in=codes), folder)
        assert scan_of(ingested, missing_texts={}, without_missing=()).collect().to_dict(as_series=False) == expected


def test_a_text_that_means_missing_leaves_its_column_numbers(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age,city\n31,Rome\nunknown,Oslo\n42,Bonn\n")
    found = read_table(tmp_path / "t.csv", ReadOptions(missing_in={"age": ("unknown",)}))
    assert found["age"].to_list() == [31, None, 42]
