# SPDX-License-Identifier: Apache-2.0
"""What a report is headed by: the owner's words, the day, the version, and the hashes of the files beside it."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from reported import released

import anonfit as af
from anonfit.errors import ReleaseError, SpecError
from anonfit.report.page import report_page
from json_layout import write_json

WORDS = {"title": "Stays & outcomes", "table_name": "Stays <2024>", "contact": "data@hospital.example"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return released("blind", **WORDS).save(tmp_path_factory.mktemp("headed") / "release")


def test_a_report_is_headed_by_the_owners_words_the_day_the_version_and_hashes(folder: Path) -> None:
    page = (folder / "report.html").read_text(encoding="utf-8")
    manifest = json.loads((folder / "manifest.json").read_text())
    for text in (
        "Stays &amp; outcomes",
        "Stays &lt;2024&gt;",
        WORDS["contact"],
        manifest["created"],
        manifest["anonfit"],
    ):
        assert text in page
    for name in ("data.parquet", "recoding.json", "report.json"):
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() in page
    assert page.count('<div class="signatures">') == 1
    assert af.audit_release(folder).passed


def test_the_day_is_today_or_what_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for stated, day in (("86400", "1970-01-02"), (None, datetime.now(UTC).date().isoformat())):
        if stated is None:
            monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
        else:
            monkeypatch.setenv("SOURCE_DATE_EPOCH", stated)
        made = released("blind").save(tmp_path / str(stated))
        assert json.loads((made / "manifest.json").read_text())["created"] == day
        assert f"<dd>{day}</dd>" in (made / "report.html").read_text(encoding="utf-8")


def test_a_heading_that_was_changed_is_found(folder: Path, tmp_path: Path) -> None:
    for number, (key, value) in enumerate((("created", "2001-01-01"), ("title", "Other words"))):
        copy = tmp_path / str(number)
        copy.mkdir()
        for path in folder.iterdir():
            (copy / path.name).write_bytes(path.read_bytes())
        manifest = json.loads((copy / "manifest.json").read_text())
        (manifest if key in manifest else manifest["spec"]["report"])[key] = value
        write_json(copy / "manifest.json", manifest)
        assert [finding.name for finding in af.audit_release(copy).missed] == ["report page", "report notes"]


@pytest.mark.parametrize("value", ["yesterday", "2001-01-01 by me", 5])
def test_a_day_that_is_none_is_refused(folder: Path, tmp_path: Path, value: object) -> None:
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    manifest = json.loads((tmp_path / "manifest.json").read_text()) | {"created": value}
    write_json(tmp_path / "manifest.json", manifest)
    with pytest.raises(ReleaseError, match="day|created"):
        af.audit_release(tmp_path)


@pytest.mark.parametrize("value", ["", " ", "two\nlines", "x" * 201])
def test_what_is_no_line_is_refused(value: str) -> None:
    with pytest.raises((SpecError, af.RequestError), match=r"one line of at most 200"):
        released("blind", title=value)


def test_without_a_manifest_nothing_is_made_up() -> None:
    page = report_page(released("blind").report)
    assert "<title>Anonymized release: public report</title>" in page
    assert not re.search(r"\d{4}-\d\d-\d\d</dd>", page)
