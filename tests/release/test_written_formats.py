# SPDX-License-Identifier: Apache-2.0
"""Raw columns of every type are written in every format and read back, or refused in a sentence."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from anonfit.api import Release, anonymize, load
from anonfit.auditing.api import audit_release
from anonfit.errors import DataError

TEXTS: dict[str, list[str | None]] = {
    "separators": ["a", "b, c", "d;e", None],
    "quotes": ['"', '""', "'", 'say "x"'],
    "empty": ["", "x", "", None],
    "blanks": [" a", "a ", " a", None],
    "new lines": ["a\nb", "\r\n", "a\rb", None],
    "words for nothing": ["null", "NA", "nan", "None"],
    "unicode": ["ä", "日本", "\ufeffx", "\u2028"],
    "dates": ["2024-01-01", "2024-01-02", None, "x"],
    "labels": ["[1, 2)", "*", "missing", "≥ 3"],
}
VALUES: dict[str, Any] = {
    "floats": [1.5, None, 1e300, -0.5],
    "short floats": pl.Series([0.1, None, 0.3, 0.1], dtype=pl.Float32),
    "whole": [1, None, 2**62, -3],
    "long": pl.Series([2**64 - 1, None, 1, 1], dtype=pl.UInt64),
    "longer": pl.Series([2**100, None, 1, 1], dtype=pl.Int128),
    "truths": [True, None, False, True],
    "days": [date(2024, 1, 1), None, date(1900, 1, 1), None],
    "moments": [datetime(2024, 1, 1, 1, 2, 3, 4), None, datetime(1900, 1, 1), None],
    "moments with a zone": pl.Series([datetime(2024, 1, 1, tzinfo=UTC), None, datetime(1900, 1, 1, tzinfo=UTC), None]),
    "milliseconds": pl.Series([1, None, 2, 3]).cast(pl.Datetime("ms")),
    "nanoseconds": pl.Series([1, None, 2, 3]).cast(pl.Datetime("ns")),
    "times of day": [time(1, 2), None, time(3), None],
    "durations": [timedelta(1), None, timedelta(2), None],
    "bytes": [b"a", None, b"b", None],
    "decimals": [Decimal("1.50"), None, Decimal("2.25"), None],
    "categories": pl.Series(["a", None, "b", "a"], dtype=pl.Categorical),
    "nothing": [None, None, None, None],
}


def made(values: Any) -> Release:
    frame = pl.DataFrame({"age": [1, 1, 9, 9], "raw": values})
    return anonymize(frame, quasi_identifiers=["age"], k=2, insensitive=["raw"], release=["raw"], missing=())


def as_texts(frame: pl.DataFrame) -> list[str]:
    return sorted(map(repr, frame.rows()))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("form", ["parquet", "arrow"])
@pytest.mark.parametrize("kind", [*TEXTS, *VALUES])
def test_formats_with_types_give_every_value_back(tmp_path: Path, kind: str, form: str) -> None:
    release = made((TEXTS | VALUES)[kind])
    assert as_texts(load(release.save(tmp_path / "release", format=form)).data) == as_texts(release.data)


@pytest.mark.parametrize("kind", TEXTS)
def test_csv_gives_texts_back(tmp_path: Path, kind: str) -> None:
    release = made(TEXTS[kind])
    assert as_texts(load(release.save(tmp_path / "release", format="csv")).data) == as_texts(release.data)


@pytest.mark.parametrize(
    "values", [["01", "1", "1.0", None], ["007", "008", "009", "010"], ["true", "false", "true", None]]
)
def test_csv_gives_texts_that_look_like_numbers_back(tmp_path: Path, values: list[str | None]) -> None:
    release = made(values)
    assert as_texts(load(release.save(tmp_path / "release", format="csv")).data) == as_texts(release.data)


@pytest.mark.parametrize("kind", VALUES)
def test_csv_is_written_or_refused(tmp_path: Path, kind: str) -> None:
    release = made(VALUES[kind])
    if kind in ("durations", "bytes"):
        with pytest.raises(DataError, match="which a CSV file cannot hold"):
            release.save(tmp_path / "release", format="csv")
        assert not (tmp_path / "release").exists()
        return
    found = load(release.save(tmp_path / "release", format="csv")).data
    assert found["raw"].null_count() == release.data["raw"].null_count()
    assert found["raw"].n_unique() == release.data["raw"].n_unique()


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.parametrize("name", ['a"b', '"', 'say ""x""', '"quoted"', "a,b", "line\nbreak", "a'b"])
def test_csv_has_any_name_of_a_column(tmp_path: Path, name: str, engine: str) -> None:
    frame = pl.DataFrame({name: [1, 1, 9, 9], f"{name} raw": ["x", 'q"', None, "y"]})
    words = {"quasi_identifiers": [name], "k": 2, "insensitive": [f"{name} raw"], "release": [f"{name} raw"]}
    release = anonymize(frame, engine=engine, missing=(), **words)
    folder = release.save(tmp_path / "release", format="csv")
    assert as_texts(load(folder).data) == as_texts(release.data)
    assert load(folder).data.columns == frame.columns
    assert audit_release(folder, source=frame).passed


FORMULAS = ['=HYPERLINK("http://x")', "+1+cmd", "-cmd|' /C calc'!A0", "@SUM(A1)", "\t=1", "\r=1", "-5-", "=1"]
NO_FORMULAS = ["-5", "+3.5", "-1,000.5", "-1e-5", "- 5 %", "-", "a=b", "5-4", "[1, 2)", " =x", "", None]


@pytest.mark.parametrize("text", FORMULAS)
def test_formulas_in_csv_are_told(tmp_path: Path, text: str) -> None:
    release = made(["a", text, "b", None])
    folder = release.save(tmp_path / "release", format="csv")
    report = load(folder).report
    assert report["formulas"] == ["raw"]
    assert any("formulas" in sentence and "'raw'" in sentence for sentence in report["not_covered"])
    assert "spreadsheet" in (folder / "report.html").read_text()
    assert load(folder).data["raw"].to_list().count(text) == 1
    assert load(release.save(tmp_path / "typed", format="parquet")).report["formulas"] == []


def test_numbers_and_other_texts_are_no_formulas(tmp_path: Path) -> None:
    for place, four in enumerate((NO_FORMULAS[:4], NO_FORMULAS[4:8], NO_FORMULAS[8:], [-5, 1, None, 2])):
        assert load(made(four).save(tmp_path / f"{place}", format="csv")).report["formulas"] == []


def test_a_name_that_is_a_formula_is_told(tmp_path: Path) -> None:
    frame = pl.DataFrame({"=age": [1, 1, 9, 9]})
    release = anonymize(frame, quasi_identifiers=["=age"], k=2)
    assert load(release.save(tmp_path / "release", format="csv")).report["formulas"] == ["=age"]
