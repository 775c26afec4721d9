# SPDX-License-Identifier: Apache-2.0
"""Values of the source as the release has them: what means missing, blanks around texts, and spellings of numbers."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import anonfit as af
from json_layout import write_json
from waivers import waived

KINDS = ("csv", "parquet", "arrow")


def _failed(folder: Path, source: Any = None) -> list[str]:
    return [one.name for one in af.audit_release(folder, source=source).findings if one.met is False]


def _hashed(folder: Path, manifest: dict[str, Any]) -> None:
    for name in manifest["files"]:
        manifest["files"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    write_json(folder / "manifest.json", manifest)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("values", "missing"), [(["a", "", None, "b"], [""]), (["a", "NA", None, "b"], ["", "NA"])], ids=["empty", "word"]
)
def test_empty_texts_and_missing_ones_beside_each_other(
    tmp_path: Path, kind: str, values: list[str | None], missing: list[str]
) -> None:
    frame = pl.DataFrame({"age": [20, 30] * 20, "note": values * 10})
    release = af.anonymize(frame, quasi_identifiers=["age"], insensitive=["note"], k=5, missing=missing)
    assert _failed(release.save(tmp_path / "release", format=kind), frame) == []


def test_what_means_missing_in_the_source_means_nothing_in_the_release(tmp_path: Path) -> None:
    """A manifest that calls diagnoses missing cannot hide that they are exchanged."""
    source = tmp_path / "people.csv"
    pl.DataFrame({"age": [20, 30] * 20, "ill": ["flu", "flu", "hiv", "cold"] * 10}).write_csv(source)
    folder = af.anonymize(str(source), quasi_identifiers=["age"], sensitive=waived("ill"), k=5).save(
        tmp_path / "release", format="csv"
    )
    text = (folder / "data.csv").read_text()
    swapped = text.replace("flu", "?").replace("hiv", "flu").replace("?", "hiv").splitlines()
    (folder / "data.csv").write_text("\n".join([swapped[0], *sorted(swapped[1:])]) + "\n")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["spec"]["data"]["missing"] = ["", "flu", "hiv"]
    _hashed(folder, manifest)
    assert "released rows" in _failed(folder, str(source))


@pytest.mark.parametrize("text", [" cold", "cold ", "  cold  "])
def test_blanks_around_texts_of_a_text_file(tmp_path: Path, text: str) -> None:
    source = tmp_path / "people.csv"
    lines = [f"{20 + row % 4},{text if row % 2 else 'flu'}, {'north' if row % 3 else 'south '}" for row in range(40)]
    source.write_text("\n".join(["age,ill,place", *lines]) + "\n")
    release = af.anonymize(str(source), quasi_identifiers=["age", "place"], sensitive=waived("ill"), k=5)
    assert _failed(release.save(tmp_path / "release"), str(source)) == []


def test_values_of_persons_with_several_rows_are_those_of_the_file(tmp_path: Path) -> None:
    """In the text file one number is spelled in three ways; the release has one value, and that is what is counted."""
    source = tmp_path / "people.csv"
    lines = [f"p{row},{20 + row % 4},{['100000', '1e5', '100000.0'][row % 3]}" for row in range(60)]
    source.write_text("\n".join(["person,age,pay", *lines]) + "\n")
    release = af.anonymize(str(source), quasi_identifiers=["age"], entity="person", sensitive=waived("pay"), k=5)
    folder = release.save(tmp_path / "release")
    assert _failed(folder, str(source)) == []
    told = af.audit_release(folder, source=str(source)).diversity
    assert [one.found.value for one in told if one.found is not None] == [1]


@pytest.mark.parametrize("change", [("5", "+5"), ("5", "5.0"), ("5", "05"), ("2.5", "2.50"), ("2.5", "25e-1")])
def test_a_number_has_one_spelling_in_a_text_file(tmp_path: Path, change: tuple[str, str]) -> None:
    frame = pl.DataFrame({"age": [20] * 20, "visits": [5, 6] * 10, "cost": [2.5, 3.25] * 10})
    release = af.anonymize(frame, quasi_identifiers=["age"], insensitive=["visits", "cost"], k=5)
    folder = release.save(tmp_path / "release", format="csv")
    assert _failed(folder, frame) == []
    lines = (folder / "data.csv").read_text().splitlines()
    fields = lines[1].split(",")
    lines[1] = ",".join(change[1] if field == change[0] else field for field in fields)
    assert lines[1].split(",") != fields
    (folder / "data.csv").write_text("\n".join(lines) + "\n")
    _hashed(folder, json.loads((folder / "manifest.json").read_text()))
    assert "file content" in _failed(folder, frame)


def test_columns_of_every_type_have_their_spelling(tmp_path: Path) -> None:
    from datetime import UTC, date, datetime, time
    from decimal import Decimal

    frame = pl.DataFrame(
        {
            "age": [20] * 12,
            "whole": [2**63, 1, None] * 4,
            "real": [1e300, 5e-324, 0.1] * 4,
            "short": pl.Series([0.1, 1e15, 3.0] * 4, dtype=pl.Float32),
            "truth": [True, False, None] * 4,
            "decimal": [Decimal("1.50"), Decimal("2.00"), None] * 4,
            "day": [date(2024, 1, 2), None, date(1, 1, 1)] * 4,
            "moment": [datetime(2024, 1, 2, 3, 4, 5, 6), None, datetime(2024, 1, 1)] * 4,
            "zoned": [datetime(2024, 1, 2, tzinfo=UTC)] * 12,
            "clock": [time(1, 2, 3), time(4, 5, 6, 7), None] * 4,
        }
    )
    names = [name for name in frame.columns if name != "age"]
    release = af.anonymize(frame, quasi_identifiers=["age"], insensitive=names, release=names, k=5)
    assert _failed(release.save(tmp_path / "release", format="csv"), frame) == []


def test_who_counts_as_a_person_is_named_beside_k(tmp_path: Path) -> None:
    frame = pl.DataFrame({"age": [20, 30] * 20, "visits": [1, 2, 3, 4] * 10, "whose": [str(row) for row in range(40)]})
    counted = af.anonymize(frame.drop("whose"), quasi_identifiers=["age"], count="visits", k=5)
    told = af.anonymize(frame.drop("visits"), quasi_identifiers=["age"], entity="whose", k=5)
    assert "as 'visits' counts them" in af.audit_release(counted.save(tmp_path / "one")).verdict[0]
    assert "told apart by 'whose'" in af.audit_release(told.save(tmp_path / "two"), source=frame).verdict[0]


def test_a_limit_that_no_audit_measures_is_not_said_to_hold(tmp_path: Path) -> None:
    frame = pl.DataFrame({"age": list(range(40)), "ill": ["flu", "cold"] * 20})
    release = af.anonymize(
        frame, quasi_identifiers=["age"], sensitive={"ill": {"model": "distinct-l", "l": 2}}, k=5, attack_limit=0.9
    )
    said = af.audit_release(release.save(tmp_path / "release"), source=frame).verdict
    assert any("an audit does not measure it" in sentence for sentence in said)
    assert not any("holds" in sentence and "across groups" in sentence for sentence in said)
