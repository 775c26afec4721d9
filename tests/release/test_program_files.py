# SPDX-License-Identifier: Apache-2.0
"""Releases as files of Excel, SPSS and Stata: the rows come back, labels survive, and nothing else is in the files."""

from __future__ import annotations

import contextlib
import json
import random
import re
import sys
import zipfile
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pyreadstat
import pytest

import anonfit as af
from anonfit.auditing.formats import check_bytes
from anonfit.auditing.reading import open_table
from anonfit.errors import DataError, SpecError
from anonfit.tables import foreign_writing
from anonfit.tables.foreign_writing import sink_statistics, sink_workbook
from anonfit.tables.layout import OF_RELEASES
from anonfit.tables.sources import FORMATS, PLAIN

sys.path.insert(0, str(Path(__file__).parents[1] / "mutation"))
from checker import check

ROWS = 120
KINDS = ("xlsx", "sav", "dta")
RAW = ("seen", "day", "smokes", "code", "rate", "count", "illness", "nothing")


def people() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "age": [18 + place * 7 % 150 for place in range(ROWS)],
            "town": [["Rome", "Oslo|x", "Bern & <b>", "a, b"][place % 4] for place in range(ROWS)],
            "income": [None if place % 11 == 0 else place % 8 * 1.25 for place in range(ROWS)],
            "seen": [datetime(2024, 1, 1 + place % 4, 12, 59, 59) for place in range(ROWS)],
            "day": [date(2024, 1, 1 + place % 4) for place in range(ROWS)],
            "smokes": [None if place % 7 == 0 else place % 3 == 0 for place in range(ROWS)],
            "code": [["01067", "007"][place % 2] for place in range(ROWS)],
            "rate": [(place % 5) / 3 for place in range(ROWS)],
            "count": [place % 3 - 1 for place in range(ROWS)],
            "illness": [["flu, bad", "=1+1", "x" * 130, None][place % 4] for place in range(ROWS)],
            "nothing": pl.Series([None] * ROWS, dtype=pl.String),
        }
    )


def written(folder: Path, kind: str, **words: Any) -> Path:
    made = af.anonymize(people(), quasi_identifiers=["age", "town", "income"], k=4, insensitive=[*RAW], **words)
    return made.save(folder / f"release-{kind}", format=kind)


@pytest.fixture(scope="module")
def release() -> af.Release:
    return af.anonymize(people(), quasi_identifiers=["age", "town", "income"], k=4, insensitive=[*RAW])


def as_texts(frame: pl.DataFrame) -> list[tuple[str | None, ...]]:
    """Values as texts; whole numbers have no decimals."""
    moments = [pl.col(name).dt.to_string("iso:strict") for name in frame.columns if frame[name].dtype == pl.Datetime]
    frame = frame.with_columns(moments)
    return frame.select(pl.all().cast(pl.String).str.strip_suffix(".0").str.strip_suffix(".000000")).rows()


@pytest.mark.parametrize("kind", KINDS)
def test_rows_come_back_and_every_audit_agrees(tmp_path: Path, release: af.Release, kind: str) -> None:
    folder = release.save(tmp_path / "out", format=kind)
    moments = pl.col(pl.Datetime).cast(pl.Datetime("us"))
    assert as_texts(af.load(folder).data.with_columns(moments)) == as_texts(release.data.with_columns(moments))
    assert af.audit_release(folder, source=people()).passed
    assert check(folder, people().to_dict(as_series=False)).faults == ()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("values", ["bounds", "representative"])
def test_other_values_are_audited_too(tmp_path: Path, kind: str, values: str) -> None:
    folder = written(tmp_path, kind, values=values)
    assert af.audit_release(folder, source=people()).passed
    assert check(folder).faults == ()


def test_every_engine_writes_the_same_bytes_at_any_time(tmp_path: Path, release: af.Release) -> None:
    other = af.anonymize(
        people(), quasi_identifiers=["age", "town", "income"], k=4, insensitive=[*RAW], engine="duckdb"
    )
    for kind in KINDS:
        first, second = (
            made.save(tmp_path / f"{kind}{place}", format=kind) for place, made in enumerate((release, other))
        )
        assert (first / f"data.{kind}").read_bytes() == (second / f"data.{kind}").read_bytes()


@pytest.mark.parametrize("kind", ["sav", "dta"])
def test_labels_of_a_source_survive(tmp_path: Path, kind: str) -> None:
    source = tmp_path / f"people.{kind}"
    frame = pl.DataFrame(
        {"age": [20 + place % 30 for place in range(60)], "sex": [1 + place % 2 for place in range(60)]}
    )
    frame = frame.with_columns(ill=pl.Series([place % 3 for place in range(60)]))
    labels = {"sex": {1: "männlich", 2: "weiblich"}, "ill": {0: "no", 1: "once", 2: "often"}}
    getattr(pyreadstat, f"write_{kind}")(frame, str(source), variable_value_labels=labels)
    release = af.anonymize(source, quasi_identifiers=["age", "sex"], k=3, insensitive=["ill"])
    folder = release.save(tmp_path / "out", format=kind)
    coded, about = getattr(pyreadstat, f"read_{kind}")(str(folder / f"data.{kind}"), output_format="polars")
    assert sorted(about.variable_value_labels["ill"].values()) == ["no", "often", "once"]
    assert set(about.variable_value_labels["sex"].values()) <= {"männlich", "weiblich", "*"}
    counted = (
        coded["ill"].cast(pl.Int64).replace_strict({int(a): b for a, b in about.variable_value_labels["ill"].items()})
    )
    assert sorted(counted) == sorted(labels["ill"][code] for code in frame["ill"])
    assert af.audit_release(folder, source=source).passed


@pytest.mark.parametrize("kind", ["sav", "dta"])
def test_what_a_file_says_of_its_columns_survives(tmp_path: Path, kind: str) -> None:
    titles = {"age": "Age at interview", "sex": "Sex, " + "as registered " * 8, "name": "Who"}
    frame = pl.DataFrame({"age": [20 + place % 30 for place in range(60)], "sex": ["f", "m"] * 30})
    frame = frame.with_columns(name=pl.Series([f"n{place}" for place in range(60)]))
    source = tmp_path / f"people.{kind}"
    cut = {name: title[:80] for name, title in titles.items()}
    getattr(pyreadstat, f"write_{kind}")(frame, str(source), column_labels=titles if kind == "sav" else cut)
    spec = af.propose(source, k=3, accept=True)
    assert spec.columns["age"].title == "Age at interview"
    af.write_spec(spec, tmp_path / "spec.toml")
    decided = re.sub(r"decisions = .*", "", (tmp_path / "spec.toml").read_text("utf-8"))
    (tmp_path / "spec.toml").write_text(decided, "utf-8")
    assert 'title = "Age at interview"  # from the file; it is published' in decided
    folder = tmp_path / "out"
    af.run(tmp_path / "spec.toml", folder, settings=[f"output.format={kind}", "columns.name.role='identifier'"])
    _, about = getattr(pyreadstat, f"read_{kind}")(str(folder / f"data.{kind}"))
    assert about.column_names_to_labels == {name: cut[name] for name in ("age", "sex")}
    assert "Age at interview: " in (folder / "codebook.csv").read_text("utf-8")
    assert "Age at interview" in (folder / "report.html").read_text("utf-8")
    assert af.audit_release(folder, source=source).passed
    assert check(folder).faults == ()
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    assert not check_bytes(folder / f"data.{kind}").met, "titles that the manifest does not tell"
    assert manifest["spec"]["columns"]["age"]["title"] == "Age at interview"


@pytest.mark.parametrize("title", ["", " ", "a\nb", "x" * 201])
def test_a_title_is_a_line(title: str, tmp_path: Path) -> None:
    people().write_parquet(tmp_path / "people.parquet")
    (tmp_path / "spec.toml").write_text(
        'version = 1\ndata.source = "people.parquet"\ndata.default_role = "insensitive"\nprivacy.k = 2\n'
        f'columns.age.role = "quasi-identifier"\ncolumns.age.title = {json.dumps(title)}\n'
    )
    with pytest.raises(SpecError, match="columns.age.title must be one line of at most 200 characters"):
        af.run(tmp_path / "spec.toml", tmp_path / "out")


@pytest.mark.parametrize("kind", ["sav", "dta"])
def test_codes_follow_the_numbers_in_labels(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"data.{kind}"
    words = ["≥ 100", "[20, 100)", "< 3", "[3, 20)", None]
    sink_statistics(kind, pl.LazyFrame({"age": words}), path, PLAIN)
    _, about = getattr(pyreadstat, f"read_{kind}")(str(path))
    assert list(about.variable_value_labels["age"].values()) == ["< 3", "[3, 20)", "[20, 100)", "≥ 100"]


def test_other_readers_read_the_workbook(tmp_path: Path, release: af.Release) -> None:
    folder = release.save(tmp_path / "out", format="xlsx")
    found = pl.read_excel(folder / "data.xlsx", sheet_name="data", infer_schema_length=None)
    assert found["code"].to_list() == release.data["code"].to_list()
    assert found["day"].to_list() == release.data["day"].to_list()
    assert found["smokes"].to_list() == release.data["smokes"].to_list()
    assert found["rate"].to_list() == release.data["rate"].to_list()
    assert found["illness"].to_list() == release.data["illness"].to_list()


@pytest.mark.parametrize("kind", KINDS)
def test_notes_say_how_the_file_is_opened(tmp_path: Path, release: af.Release, kind: str) -> None:
    folder = release.save(tmp_path / "out", format=kind)
    text = (folder / "README.txt").read_text("utf-8")
    assert f"data.{kind}" in text
    for program, how in FORMATS[kind].opened(PLAIN):
        assert program in text
        assert how in re.sub(r"\s+", " ", text)
    assert json.loads((folder / "report.json").read_text("utf-8"))["formulas"] == []


# --- what else a file could hold ----------------------------------------------------------------------------------


def rezipped(change: Callable[[dict[str, bytes]], None], **options: Any) -> Callable[[Path], None]:
    def apply(path: Path) -> None:
        with zipfile.ZipFile(path) as book:
            parts = {name: book.read(name) for name in book.namelist()}
        change(parts)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
            for name, content in parts.items():
                part = zipfile.ZipInfo(name, **options)
                part.compress_type, part.create_system, part.external_attr = zipfile.ZIP_DEFLATED, 0, 0o600 << 16
                book.writestr(part, content)

    return apply


def in_sheet(old: bytes, new: bytes) -> Callable[[Path], None]:
    def change(parts: dict[str, bytes]) -> None:
        sheet = parts["xl/worksheets/sheet1.xml"]
        assert old in sheet
        parts["xl/worksheets/sheet1.xml"] = sheet.replace(old, new, 1)

    return rezipped(change)


def appended(content: bytes) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(path.read_bytes() + content) and None


WORKBOOKS: dict[str, Callable[[Path], None]] = {
    "a date": rezipped(lambda _: None, date_time=(2024, 1, 1, 0, 0, 0)),
    "one more part": rezipped(lambda parts: parts.update({"docProps/core.xml": b"<creator>Ann</creator>"})),
    "another style": rezipped(lambda parts: parts.update({"xl/styles.xml": parts["xl/styles.xml"] + b"<!-- Ann -->"})),
    "a comment in the sheet": in_sheet(b"<row>", b"<!-- Ann --><row>"),
    "a hidden row": in_sheet(b"<row>", b'<row hidden="1">'),
    "a formula": in_sheet(b"<v>1</v>", b"<f>1</f><v>1</v>"),
    "a number spelled otherwise": in_sheet(b"<v>1</v>", b"<v>1.0</v>"),
    "a number that is a text": in_sheet(b"<c><v>1</v></c>", b'<c t="str"><v>1</v></c>'),
    "a place for a cell": in_sheet(b"<c><v>1</v></c>", b'<c r="J2"><v>1</v></c>'),
    "cells beside the table": in_sheet(b"</row></sheetData>", b"<c><v>7</v></c></row></sheetData>"),
    "bytes behind": appended(b"Ann"),
}


@pytest.mark.parametrize("change", WORKBOOKS)
def test_a_workbook_that_holds_more_is_found(tmp_path: Path, change: str) -> None:
    path = tmp_path / "data.xlsx"
    sink_workbook(people().lazy(), path)
    assert check_bytes(path).met
    rezipped(lambda _: None)(path)
    assert check_bytes(path).met, "the same parts, packed again"
    WORKBOOKS[change](path)
    assert not check_bytes(path).met


def rewritten(**options: Any) -> Callable[[Path], None]:
    def apply(path: Path) -> None:
        kind = path.suffix.removeprefix(".")
        frame, about = getattr(pyreadstat, f"read_{kind}")(str(path), output_format="polars")
        labels = {
            name: {int(code): word for code, word in words.items()}
            for name, words in about.variable_value_labels.items()
        }
        labels["smokes"] |= options.get("more", {})
        given = {name: value for name, value in options.items() if name != "more"}
        given |= {"row_compress": True} if kind == "sav" else {"version": 14}
        getattr(pyreadstat, f"write_{kind}")(
            frame.with_columns(pl.col(list(labels)).cast(pl.Int32)), str(path), variable_value_labels=labels, **given
        )
        with_moment(path, b"01 Jan 7000:00:00" if kind == "sav" else b"01 Jan 1970 00:00")

    return apply


def with_moment(path: Path, moment: bytes) -> None:
    content = path.read_bytes()
    begin = 92 if path.suffix == ".sav" else content.index(b"<timestamp>") + 12
    path.write_bytes(content[:begin] + moment + content[begin + 17 :])


STATISTICS: dict[str, Callable[[Path], None]] = {
    "a label that no row has": rewritten(more={3: "Ann"}),
    "the name of the file": rewritten(file_label="Ann"),
    "what a column is called": rewritten(column_labels={"age": "Ann"}),
    "another moment": lambda path: with_moment(path, b"02 Feb 1971 00:00"),
    "bytes behind": appended(b"Ann"),
}


@pytest.mark.parametrize("kind", ["sav", "dta"])
@pytest.mark.parametrize("change", STATISTICS)
def test_a_file_of_a_statistics_program_that_holds_more_is_found(tmp_path: Path, kind: str, change: str) -> None:
    path = tmp_path / f"data.{kind}"
    sink_statistics(kind, people().lazy(), path, PLAIN)
    assert check_bytes(path).met
    rewritten()(path)
    assert check_bytes(path).met, "the same values, written again"
    STATISTICS[change](path)
    assert not check_bytes(path).met


# --- what such files cannot hold ----------------------------------------------------------------------------------

NAMES = {
    "xlsx": [" a", "a\x01", "a_x0041_"],
    "sav": ["a b", "1a", "_a", "all", "a.", "a" * 65, "ä" * 33],
    "dta": ["a b", "1a", "a.b", "double", "a" * 33],
}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in NAMES.items() for name in names])
def test_names_that_a_program_does_not_know_are_refused_before_any_work(tmp_path: Path, kind: str, name: str) -> None:
    people().select(pl.col("age").alias(name), "town").write_parquet(tmp_path / "people.parquet")
    spec = tmp_path / "spec.toml"
    spec.write_text(
        f'version = 1\ndata.source = "people.parquet"\ncolumns.{json.dumps(name)}.role = "quasi-identifier"\n'
        f'columns.town.role = "insensitive"\nprivacy.k = 2\noutput.format = "{kind}"\n'
    )
    program = {"xlsx": "Excel", "sav": "SPSS", "dta": "Stata"}[kind]
    with pytest.raises(DataError, match=f"^{program} knows no columns of such names: .*rename them in the source, or"):
        af.run(spec, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_names_that_differ_in_case_are_one_to_spss(tmp_path: Path) -> None:
    frame = pl.LazyFrame({"a": [1], "A": [2]})
    FORMATS["dta"].refuse(frame.collect_schema().names())
    with pytest.raises(DataError, match="SPSS knows no columns of such names: 'a', 'A'|a and A"):
        FORMATS["sav"].refuse(frame.collect_schema().names())


VALUES: dict[str, tuple[list[Any], tuple[str, ...]]] = {
    "signs that are not shown": (["a\x01b", "c"], KINDS),
    "what stands for signs": (["_x0041_", "c"], KINDS),
    "blanks around": ([" a", "c"], ("sav", "dta")),
    "long texts": (["a" * 33_000, "b"], KINDS),
    "long numbers": ([2**60 + 1, 1], KINDS),
    "infinite numbers": ([float("inf"), 1.0], KINDS),
    "early days": ([date(1899, 1, 1), date(2000, 1, 1)], ("xlsx",)),
    "parts of seconds": ([datetime(2024, 1, 1, 1, 1, 1, 5), datetime(2024, 1, 1)], KINDS),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", VALUES)
def test_values_that_would_be_changed_are_refused(tmp_path: Path, kind: str, what: str) -> None:
    values, refused_by = VALUES[what]
    release = af.anonymize(
        pl.DataFrame({"age": [1, 1, 9, 9], "raw": values * 2}), quasi_identifiers=["age"], k=2, insensitive=["raw"]
    )
    if kind in refused_by:
        with pytest.raises(DataError, match="^column 'raw' has .*use the format csv or parquet"):
            release.save(tmp_path / "out", format=kind)
        assert not (tmp_path / "out").exists()
    else:
        assert af.audit_release(release.save(tmp_path / "out", format=kind)).passed


EVERY: dict[str, pl.DataFrame] = {
    "numbers": pl.DataFrame(
        {
            "u8": pl.Series([1, 2, 255], dtype=pl.UInt8),
            "i64": [2**53 - 1, -5, None],
            "f32": pl.Series([0.1, None, 3e38], dtype=pl.Float32),
            "large": [1e22, 1.0, -1e-300],
            "zeros": [-0.0, 0.0, 1.5],
        }
    ),
    "days": pl.DataFrame(
        {
            "day": [date(1900, 3, 1), None, date(9999, 12, 31)],
            "moment": [datetime(2024, 12, 31, 23, 59, 59), datetime(1900, 3, 1), None],
            "midnight": [datetime(2024, 1, 1), datetime(2024, 1, 2), None],
        }
    ),
    "texts": pl.DataFrame({"much": ["ü" * 500, "a" * 2000, None], "many": ["日本", '<&>"', "=1+1"]}),
    "categories": pl.DataFrame(
        {"a": pl.Series(["b", None, "c"], dtype=pl.Enum(["c", "b", "z"])), "b": ["", None, "x"]}
    ),
    "many texts": pl.DataFrame({"a": [f"ä{place}" for place in range(3000)]}),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", EVERY)
def test_values_of_every_kind_come_back_to_both_readers(tmp_path: Path, kind: str, name: str) -> None:
    frame, path = EVERY[name], tmp_path / f"data.{kind}"
    FORMATS[kind].sink(frame.lazy(), path, PLAIN)
    assert check_bytes(path).met
    scan = FORMATS[kind].scan
    assert scan is not None
    for found in (scan(path, OF_RELEASES).collect(), open_table(path).frame(frame.columns)):
        for column in frame:
            if column.dtype.is_numeric():
                assert found[column.name].cast(pl.Float64).to_list() == column.cast(pl.Float64).to_list()
            elif column.dtype.is_temporal():
                assert found[column.name].cast(pl.Datetime("us")).to_list() == column.cast(pl.Datetime("us")).to_list()
            else:
                assert found[column.name].to_list() == [value or None for value in column.to_list()]


@pytest.mark.parametrize("kind", KINDS)
def test_types_that_programs_do_not_know_are_refused(tmp_path: Path, kind: str) -> None:
    frame = pl.DataFrame({"age": [1, 1, 9, 9], "raw": pl.Series(["1.5"] * 4).cast(pl.Decimal(5, 1))})
    with pytest.raises(DataError, match=f"which a {kind.upper()} file cannot hold; use the format csv or parquet or"):
        af.anonymize(frame, quasi_identifiers=["age"], k=2, insensitive=["raw"]).save(tmp_path / "out", format=kind)


def test_a_table_that_no_sheet_holds_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign_writing, "ROWS_OF_SHEET", 100)
    with pytest.raises(DataError, match="a sheet of Excel has at most 99 rows"):
        sink_workbook(people().lazy(), tmp_path / "data.xlsx")


def test_many_texts_stay_texts(tmp_path: Path) -> None:
    path = tmp_path / "data.sav"
    sink_statistics("sav", pl.LazyFrame({"a": [f"x{place}" for place in range(1001)]}), path, PLAIN)
    frame, about = pyreadstat.read_sav(str(path), output_format="polars")
    assert frame["a"][1000] == "x1000"
    assert not about.variable_value_labels
    assert check_bytes(path).met


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_cut_short_is_no_table_and_holds_no_release(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"data.{kind}"
    FORMATS[kind].sink(people().lazy(), path, PLAIN)
    content = path.read_bytes()
    for part in (0.0, 0.1, 0.5, 0.9, 0.999):
        path.write_bytes(content[: int(part * len(content))])
        assert not check_bytes(path).met
        if part:  # what is left of a file of SPSS may be rows
            with contextlib.suppress(DataError):
                assert open_table(path).height() < ROWS


@pytest.mark.parametrize("seed", range(20))
def test_a_broken_workbook_is_refused_and_never_taken_for_good(tmp_path: Path, seed: int) -> None:
    path, rng = tmp_path / "data.xlsx", random.Random(seed)
    sink_workbook(people().lazy(), path)
    content = bytearray(path.read_bytes())
    for _ in range(3):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)
    assert not check_bytes(path).met
    with contextlib.suppress(DataError):
        open_table(path)
