# SPDX-License-Identifier: Apache-2.0
"""Reports of release folders that cannot lie: what they say is recounted, follows from what was, or is named as neither."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from jinja2 import UndefinedError
from typer.testing import CliRunner

import anonfit as af
from anonfit.auditing.api import audit_release
from anonfit.cli.main import app
from anonfit.errors import ReleaseError
from anonfit.release import publish
from anonfit.release.folder import expected_report
from anonfit.report.page import report_page
from json_layout import write_json
from waivers import waived


def run(*words: str) -> Any:
    return CliRunner().invoke(app, ["audit", *words])


RAW_ROWS = pl.DataFrame({"age": [20, 21, 50, 51, 70] * 8, "ill": list("abcab") * 8, "sex": list("fm") * 20})


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("published") / "release"
    af.anonymize(RAW_ROWS, quasi_identifiers=["age", "sex"], sensitive=waived("ill"), k=5).save(path)
    return path


def rewritten(original: Path, copy: Path, change: Callable[[dict[str, Any]], Any], *, page: bool = True) -> Path:
    """A copy with another report and, if that is said, the page of it; manifest and hashes agree with both."""
    copy.mkdir()
    for file in original.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    report = json.loads((copy / "report.json").read_text(encoding="utf-8"))
    change(report)
    write_json(copy / "report.json", report)
    manifest = json.loads((copy / "manifest.json").read_text(encoding="utf-8"))
    manifest["audit"]["findings"] = report["audit"]["findings"]
    for name in ("report.json", "report.html"):
        if page and name == "report.html":
            (copy / name).write_text(report_page(report, manifest), encoding="utf-8")
        manifest["files"][name] = hashlib.sha256((copy / name).read_bytes()).hexdigest()
    write_json(copy / "manifest.json", manifest)
    return copy


def test_a_report_as_it_was_written_is_accepted(published: Path, tmp_path: Path) -> None:
    assert af.audit_release(rewritten(published, tmp_path / "same", lambda _: None)).passed
    found = af.audit_release(published, thresholds=[0.3])
    assert {one.met for one in found.findings if one.name.startswith("report")} == {True}
    assert [one.threshold for one in found.prosecutor.above] == [0.3]
    assert "Not recounted" in found.verdict[1]
    assert "attack, detail" in found.verdict[1]


LIES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "k": lambda report: report["audit"].update(k=500),
    "the smallest group": lambda report: report["audit"]["sizes"].update(smallest=500),
    "rows": lambda report: report["audit"].update(rows=4000),
    "what was asked": lambda report: report["asked"].update(k=500),
    "a sentence": lambda report: report["asked"]["sentences"].append("k = 500: nobody can be found."),
    "the board": lambda report: report["board"][0]["sentences"].append("The threshold is k = 500."),
    "the risk": lambda report: report["audit"]["prosecutor"].update(highest=0.001),
    "a column": lambda report: report["audit"]["raw_columns"][0].update(certain={"persons": 12, "share": 0.3}),
    "a diversity": lambda report: report["audit"]["diversity"][0].update(found=99),
    "a finding": lambda report: report["audit"]["findings"].append(
        {"name": "k", "asked": 500, "found": 500, "met": True, "sentence": "k = 500 holds.", "where": None}
    ),
    "rows that were read": lambda report: report["rows"].update(withheld=7),
    "a section": lambda report: report.update(remarks=["p000 is ill"]),
    "another format": lambda report: report.update(version=2),
    "a verdict": lambda report: report["verdict"].update(met=["The written file is 500-anonymous."]),
    "what nobody asked": lambda report: report["verdict"].update(not_asked=[]),
    "a reason why nothing is asked": lambda report: report["asked"]["waived"].update(ill="p000 is ill"),
    "a demand": lambda report: report["asked"]["diversity"].append({"column": "ill", "model": "entropy-l", "l": 20.0}),
    "a k of a finding": lambda report: finding(report, "k").update(asked=500, found=500),
    "a finding of another model": lambda report: report["audit"]["findings"].append(
        {**finding(report, "k"), "name": "t-closeness", "where": "ill"}
    ),
    "a finding on the source": lambda report: finding(report, "whole groups").update(sentence="k = 500 holds."),
    "no finding on k": lambda report: report["audit"]["findings"].remove(finding(report, "k")),
    "a single group": lambda report: report.update(group_sizes=[{"low": 40, "high": 40, "groups": 1, "persons": 40}]),
    "a bin left out": lambda report: report["group_sizes"].pop(),
    "thresholds": lambda report: report["audit"]["prosecutor"].update(above=[]),
    "a share above a threshold": lambda report: report["audit"]["prosecutor"]["above"][2]["above"].update(persons=0),
    "what is not covered": lambda report: report.update(not_covered=[]),
    "the attacker": lambda report: report.update(attacker="There is none."),
    "columns": lambda report: report.update(columns=[]),
    "a role": lambda report: report["columns"][0].update(role="insensitive"),
    "a technique": lambda report: report["columns"][1].update(technique="removed"),
    "different labels": lambda report: report["columns"][0].update(different=99),
    "the detail of a column": lambda report: report["detail"][0].update(frequent_persons=3),
    "the label of a detail": lambda report: report["detail"][0].update(frequent_label="p000"),
    "an engine": lambda report: report["engine"].update(reason="p000 is ill"),
    "another engine": lambda report: report["engine"].update(name="spark"),
    "a method": lambda report: report["asked"].update(algorithm="magic"),
    "a sentence of the attack": lambda report: report["attack"]["sentences"].append("Nobody can be found."),
    "a note in the attack": lambda report: report["attack"].update(note="p000 is ill"),
    "a text for a figure": lambda report: report["attack"]["re_identification"].update(highest="p000 is ill"),
    "an attack on no secret": lambda report: report["attack"].update(inference=[]),
    "a text for a column": lambda report: report["columns_lost"]["columns"][0].update(column="p000 is ill"),
    "rows that were never read": lambda report: report["rows"].update(read=4000),
    "formulas": lambda report: report.update(formulas=["ill"]),
    "notes": lambda report: report["audit"].update(notes=["p000 is ill"]),
    "the source": lambda report: report["audit"]["source"].update(compared=["p000 is ill"]),
    "labels that were read": lambda report: report["audit"]["labels"]["unreadable"].update(age=7),
}


def test_a_model_may_be_demanded_of_a_column_twice(tmp_path: Path) -> None:
    twice = [{"model": "beta-likeness", "beta": beta} for beta in (1000.0, 4.0)]
    release = af.anonymize(RAW_ROWS, quasi_identifiers=["age", "sex"], sensitive={"ill": twice}, k=5)
    release.save(tmp_path / "release")
    assert audit_release(tmp_path / "release", source=RAW_ROWS).passed
    first = rewritten(tmp_path / "release", tmp_path / "first", told_twice)
    findings = {finding.name: finding.met for finding in audit_release(first).findings}
    assert findings["report findings"] is False


def told_twice(report: dict[str, Any]) -> None:
    """The weaker demand in the place of the stronger one."""
    weak, strong = (finding for finding in report["audit"]["findings"] if finding["name"] == "beta-likeness")
    strong.update(weak)


def test_what_who_audits_brings_is_not_held_against_the_report(published: Path) -> None:
    found = af.audit_release(published, population=RAW_ROWS, source=RAW_ROWS, other=published, max_risk=0.3)
    assert [one.name for one in found.missed if one.name.startswith("report")] == []
    assert found.journalist is not None
    assert found.joint is not None


def finding(report: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in report["audit"]["findings"] if one["name"] == name)
    return found


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_report_that_says_something_else_is_found(
    published: Path, tmp_path: Path, lie: Callable[[dict[str, Any]], Any]
) -> None:
    folders = [rewritten(published, tmp_path / "lie", lie, page=False)]
    with contextlib.suppress(KeyError, TypeError, IndexError, ValueError):  # some lies have no page
        folders.append(rewritten(published, tmp_path / "lie with its page", lie))
    for folder in folders:
        found = af.audit_release(folder)
        assert found.passed is False
        assert all(one.name.startswith("report") for one in found.missed)


@pytest.mark.parametrize("empty", [None, {}, []], ids=str)
@pytest.mark.parametrize("name", ["attack", "detail", "initial_risk", "columns_lost"])
def test_a_section_that_every_report_has_cannot_be_left_out(
    published: Path, tmp_path: Path, name: str, empty: object
) -> None:
    """Whatever is said of it anew: a report without an attack would not even be named as one whose attack is not
    recounted.
    """

    def leave_out(report: dict[str, Any]) -> None:
        report[name] = empty
        with contextlib.suppress(KeyError, TypeError, IndexError, ValueError, UndefinedError):
            manifest = json.loads((published / "manifest.json").read_text(encoding="utf-8"))
            report.update(expected_report(published, manifest, report)[0])

    found = af.audit_release(rewritten(published, tmp_path / "less", leave_out, page=False))
    assert "report content" in {one.name for one in found.missed}


def test_figures_of_raw_rows_are_said_not_to_be_recounted(published: Path, tmp_path: Path) -> None:
    """Nobody can recount what came of an attack; so its figures are not among those that were checked."""
    lie = rewritten(published, tmp_path / "lie", lambda report: report["initial_risk"].update(average=0.0001))
    found = af.audit_release(lie)
    assert [one.name for one in found.missed] == ["report texts", "report page"]  # the board tells it, too
    assert "initial risk" in found.verdict[1]
    assert run(str(published)).output.replace("\n", " ").count("Not recounted") == 1


def test_a_page_that_does_not_follow_from_the_report_is_found(published: Path, tmp_path: Path) -> None:
    folder = rewritten(published, tmp_path / "lie", lambda _: None)
    for old, new in (("k = 5", "k = 500"), ("</body>", "<p>p000 is ill</p></body>")):
        text = (published / "report.html").read_text(encoding="utf-8")
        assert old in text
        (folder / "report.html").write_text(text.replace(old, new), encoding="utf-8")
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        manifest["files"]["report.html"] = hashlib.sha256((folder / "report.html").read_bytes()).hexdigest()
        write_json(folder / "manifest.json", manifest)
        assert [one.name for one in af.audit_release(folder).missed] == ["report page"]
        assert run(str(folder)).exit_code == 1
    (page,) = [one for one in audit_release(folder).findings if one.name == "report page"]
    assert "Not compared" in page.sentence
    manifest["anonfit"] = "0.0.1"
    write_json(folder / "manifest.json", manifest)
    found = af.audit_release(folder)
    assert [one.name for one in found.unchecked] == ["report texts", "report page", "report notes"]
    assert found.passed is False
    assert "not checked in full" in found.verdict[0]


@pytest.mark.parametrize("words", [("algorithm",), ("engine",), ("packages", "polars"), ("anonfit",)])
def test_what_made_a_release_is_not_told_in_words_of_its_own(
    published: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    folder = rewritten(published, tmp_path / "lie", lambda _: None)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    inside = manifest
    for word in words[:-1]:
        inside = inside[word]
    inside[words[-1]] = "p000 is ill"
    write_json(folder / "manifest.json", manifest)
    with contextlib.suppress(ReleaseError):
        assert not af.audit_release(folder).passed


OWN_TEXTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a reason": ({}, {"sensitive": {"z": {"model": "none", "reason": "our board says k = 7 is enough <script>"}}}),
    "a quasi-identifier": ({"k = 500": [1, 2, 3, 4] * 10}, {"quasi_identifiers": ["q", "k = 500"]}),
    "a raw column": ({"k is 500": list("abcd") * 10}, {"insensitive": ["z", "k is 500"]}),
    "a value": ({"q": ["k = 500", "<script>", "b", "c"] * 10}, {"insensitive": ["z"]}),
    "a formula": ({"=q": ["@k = 500", "b"] * 20}, {"insensitive": ["z", "=q"]}),
}


@pytest.mark.parametrize(("columns", "words"), OWN_TEXTS.values(), ids=OWN_TEXTS)
def test_a_release_is_accepted_whatever_its_owner_calls_things(
    tmp_path: Path, columns: dict[str, Any], words: dict[str, Any]
) -> None:
    raw = pl.DataFrame({"q": list(range(40)), "z": list("abcd") * 10} | columns)
    asked: dict[str, Any] = {"k": 5, "quasi_identifiers": ["q"], "insensitive": ["z"]} | words
    if "sensitive" in words:
        del asked["insensitive"]
    af.anonymize(raw, **asked).save(tmp_path / "release", format="csv")
    assert af.audit_release(tmp_path / "release").passed
    assert af.audit_release(tmp_path / "release", source=raw).passed
    assert run(str(tmp_path / "release")).exit_code == 0


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_values_in_rules_are_those_of_the_file(tmp_path: Path, kind: str) -> None:
    """However a file writes them: rules name values as they are."""
    days = [datetime(2024, 1, 1 + number % 3, 12) for number in range(60)]
    raw = pl.DataFrame({
        "q": [number // 3 for number in range(60)], "truth": [day.day == 1 for day in days], "day": days,
        "share": [float(day.day) for day in days], "time": [day - days[0] for day in days],
        "word": [f"k = {day.day}, x" for day in days],
    })  # fmt: skip
    if kind == "csv":
        raw = raw.drop("time")
    raw.write_parquet(tmp_path / "raw.parquet")
    roles = "".join(f'[columns.{name}]\nrole = "insensitive"\n' for name in raw.columns[1:])
    spec = f"""version = 1
[data]
source = "raw.parquet"
[columns.q]
role = "quasi-identifier"
{roles}[privacy]
k = 5
[workload]
rules = true
[output]
format = "{kind}"
"""
    (tmp_path / "spec.toml").write_text(spec, encoding="utf-8")
    af.run(tmp_path / "spec.toml", tmp_path / "release")
    assert af.audit_release(tmp_path / "release").passed
    named = json.loads((tmp_path / "release" / "report.json").read_text(encoding="utf-8"))["rules"]["rules"]
    assert {one["then"].partition(" ")[0] for one in named} >= {"truth", "day", "share", "word"}
    lie = rewritten(tmp_path / "release", tmp_path / "lie", lambda it: it["rules"]["rules"][0].update(then="word p000"))
    assert {"report content"} <= {one.name for one in af.audit_release(lie).missed}


def test_what_the_audit_of_a_folder_refuses_is_not_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = pl.DataFrame({"q": list(range(40)), "z": list("abcd") * 10})
    made = af.anonymize(raw, quasi_identifiers=["q"], insensitive=["z"], k=5)
    pages = publish.pages_of
    monkeypatch.setattr(publish, "pages_of", lambda *given: pages(*given) | {"report.html": "<p>another page</p>"})
    with pytest.raises(af.AuditFailed, match="The page says something else"):
        made.save(tmp_path / "release")
    assert list(tmp_path.iterdir()) == []


def places_in(content: Any) -> list[tuple[Any, Any]]:
    """Every object or list of some JSON, with each of its keys or numbers."""
    if not isinstance(content, dict | list):
        return []
    keys = list(content) if isinstance(content, dict) else list(range(len(content)))
    return [(content, key) for key in keys] + [place for key in keys for place in places_in(content[key])]


@pytest.mark.sampled(101)
@pytest.mark.parametrize("part", range(100))
@pytest.mark.parametrize("name", ["report.json", "manifest.json", "recoding.json"])
def test_another_kind_of_value_anywhere_is_an_answer_and_never_a_crash(tmp_path: Path, name: str, part: int) -> None:
    """Each value of the folder's files in its turn becomes an object, a list, a number, a text or nothing."""
    raw = RAW_ROWS.with_columns(much=pl.int_range(pl.len()) % 7 * 1.5, who=pl.int_range(pl.len()) // 2)
    words: dict[str, Any] = {"sensitive": {"ill": {"model": "distinct-l", "l": 2}}, "targets": ["much"]}
    if part % 2:
        words["entity"] = "who"
    else:
        raw = raw.drop("who")
    folder = tmp_path / "release"
    af.anonymize(raw, quasi_identifiers=["age", "sex"], k=5, **words).save(folder)
    kept = {file.name: file.read_bytes() for file in folder.iterdir()}
    for number in range(part, len(places_in(json.loads(kept[name]))), 100):
        for value in ({}, {"a": 1}, [], [{}], 7, None, "text"):
            content = json.loads(kept[name])
            inside, key = places_in(content)[number]
            inside[key] = value
            write_json(folder / name, content)
            manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
            if name != "manifest.json":
                manifest["files"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
                write_json(folder / "manifest.json", manifest)
            for source in (raw, None):
                with contextlib.suppress(af.AnonfitError):
                    af.audit_release(folder, source=source)
        for file, content in kept.items():
            (folder / file).write_bytes(content)
