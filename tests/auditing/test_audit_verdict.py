# SPDX-License-Identifier: Apache-2.0
"""What an audit says: demands and claims apart, each named, claims that cannot be empty, and reports that cannot lie."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from audit_folders import Folder, K
from typer.testing import CliRunner

import anonfit as af
from anonfit.auditing.api import audit, audit_release
from anonfit.cli.main import app
from anonfit.errors import AnonfitError, DataError, ReleaseError
from waivers import waived

FILE = pl.DataFrame({"age": ["[20, 40)"] * 3 + ["≥ 40"] * 2, "ill": list("aabcc"), "id": list("vwxyz")})
NAMES = "age, country, rank"


def run(*words: str) -> Any:
    return CliRunner().invoke(app, ["audit", *words])


# --- files ----------------------------------------------------------------------------------------------------------


def test_where_nothing_is_asked_there_are_figures_and_no_verdict(tmp_path: Path) -> None:
    found = audit(FILE, quasi_identifiers=["age"], sensitive=["ill"])
    assert found.passed is None
    assert found.verdict[0].startswith("Nothing was asked")
    assert any("k of age: the smallest group has 2" in sentence for sentence in found.verdict)
    assert any("sensitive column 'ill'" in sentence for sentence in found.verdict)
    assert any("100.0 % are above tools" in sentence for sentence in found.verdict)
    assert any("'id'" in sentence for sentence in found.verdict)
    FILE.write_csv(tmp_path / "file.csv")
    shown = run(str(tmp_path / "file.csv"), "--quasi-identifiers", "age")
    assert shown.exit_code == 0
    assert "Nothing was asked" in shown.stdout
    assert "met" not in shown.stdout
    exact = json.loads(run(str(tmp_path / "file.csv"), "--quasi-identifiers", "age", "--json").stdout)
    assert exact["passed"] is None
    assert exact["verdict"][0].startswith("Nothing was asked")


def test_what_was_asked_is_named_beside_whether_it_is_met(tmp_path: Path) -> None:
    words: dict[str, Any] = {"quasi_identifiers": ["age"], "sensitive": {"ill": {"model": "beta-likeness", "beta": 3}}}
    found = audit(FILE, k=3, **words)
    assert found.verdict[:2] == ("Asked and missed: k = 3 of age (found 2).", "Asked and met: beta-likeness 3 of ill.")
    assert audit(FILE, k=2, **words).verdict[0] == "Asked and met: k = 2 of age; beta-likeness 3 of ill."
    FILE.write_csv(tmp_path / "file.csv")
    for k, status in (("2", 0), ("3", 1), ("0", 2)):
        assert run(str(tmp_path / "file.csv"), "--quasi-identifiers", "age", "--k", k).exit_code == status


def test_results_are_on_standard_output_and_progress_is_not(tmp_path: Path) -> None:
    FILE.write_csv(tmp_path / "file.csv")
    shown = run(str(tmp_path / "file.csv"), "--quasi-identifiers", "age", "--k", "2", "--max-risk", "0.5")
    assert "Asked and met: k = 2 of age; prosecutor risk 0.5." in shown.stdout
    assert "marketer" in shown.stdout
    assert "Auditing" not in shown.stdout
    assert shown.stderr == "Auditing …\n"


@pytest.mark.parametrize("sets", [[[]], [["age"], []], [["age"]], [{"columns": [], "k": 50}]])
def test_sets_that_are_empty_or_leave_a_column_out_are_refused(sets: list[Any]) -> None:
    with pytest.raises(DataError, match="set of quasi-identifiers"):
        audit(FILE, quasi_identifiers=["age", "ill"], quasi_identifier_sets=sets, k=50)


def test_no_quasi_identifiers_are_refused() -> None:
    with pytest.raises(DataError, match="needs quasi-identifiers"):
        audit(FILE, quasi_identifiers=[], k=50)


# --- claims ---------------------------------------------------------------------------------------------------------


def test_a_claim_is_named_beside_whether_it_holds(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "release")
    folder.spec["privacy"]["diversity"] = [{"column": "diagnosis", "model": "distinct-l", "l": 2}]
    found = audit_release(folder.write())
    assert found.verdict[0] == f"The release holds what it claims: k = {K} of {NAMES}; distinct-l (l = 2) of diagnosis."
    folder.spec["privacy"]["k"] = K + 1
    found = audit_release(folder.write())
    assert found.passed is False
    head = f"The release does not hold what it claims (k = {K + 1} of {NAMES}; distinct-l (l = 2) of diagnosis)"
    assert found.verdict[0] == f"{head}: k = {K + 1} of {NAMES} (found {K})."


def test_what_is_asked_of_a_release_is_judged_apart_and_first(tmp_path: Path) -> None:
    path = Folder(tmp_path / "release").write()
    found = audit_release(path, k=K + 1)
    assert found.passed is False
    assert found.verdict[:2] == (
        f"Asked and missed: k = {K + 1} of {NAMES} (found {K}).",
        f"The release holds what it claims: k = {K} of {NAMES}.",
    )
    assert audit_release(path, k=K).passed
    assert audit_release(path, k=K, max_risk=0.1).verdict[0] == "Asked and missed: prosecutor risk 0.1 (found 0.2)."
    demands = {"quasi_identifiers": ["age", "diagnosis"], "k": K}
    asked = audit_release(path, demands=demands)
    assert asked.passed is False
    assert asked.verdict[0].startswith(f"Asked and missed: k = {K} of ")


def test_what_is_asked_on_the_command_line_is_judged_and_not_ignored(tmp_path: Path) -> None:
    raw = pl.DataFrame({"age": [20, 21, 50, 51] * 5, "ill": list("abab") * 5})
    af.anonymize(raw, quasi_identifiers=["age"], sensitive=waived("ill"), k=5).save(tmp_path / "release")
    folder = str(tmp_path / "release")
    assert run(folder).exit_code == run(folder, "--k", "5").exit_code == 0
    assert run(folder, "--k", "11").exit_code == run(folder, "--max-risk", "0.05").exit_code == 1
    assert run(folder, "--sensitive", "ill").exit_code != 0
    assert isinstance(run(folder, "--sampling-fraction", "0.1").exception, DataError)
    spec = '[columns.age]\nrole = "quasi-identifier"\n[columns.ill]\nrole = "insensitive"\n[privacy]\nk = 7\n'
    (tmp_path / "spec.toml").write_text(f"version = 1\n{spec}", encoding="utf-8")
    shown = run(folder, str(tmp_path / "spec.toml"))
    assert shown.exit_code == 1
    assert shown.stdout.startswith("Asked and missed: k = 7 of age (found 5).")


EMPTY: list[Any] = [
    [{"columns": [], "k": 50}],
    [],
    [{"columns": ["age", "country"]}],
    [{"columns": ["age", "country", "rank"]}, {"columns": []}],
    [{"columns": ["age", "age", "country", "rank"]}],
    [{"columns": ["age", "country", "rank", "note"]}],
]


@pytest.mark.parametrize("sets", EMPTY)
def test_claims_that_mean_nothing_are_refused(tmp_path: Path, sets: list[Any]) -> None:
    folder = Folder(tmp_path / "release")
    folder.spec["privacy"]["quasi_identifiers"] = sets
    with pytest.raises(ReleaseError):
        audit_release(folder.write(), source=folder.raw)


PAYLOADS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a section of the manifest": lambda manifest: manifest.update(notes="p000 is ill"),
    "an engine": lambda manifest: manifest.update(engine={"rows": ["p000"]}),
    "a package": lambda manifest: manifest.update(packages={"p000": "ill"}),
    "a method": lambda manifest: manifest["spec"].update(method={"criterion": "p000; ill: x\n"}),
    "a word of the method": lambda manifest: manifest["spec"].update(method={"remarks": 1}),
    "a list in the method": lambda manifest: manifest["spec"].update(method={"split_on": ["p000"]}),
    "a workload": lambda manifest: manifest["spec"].update(workload={"notes": "p000"}),
    "a target": lambda manifest: manifest["spec"].update(workload={"targets": ["p000"]}),
    "a weight": lambda manifest: manifest["spec"].update(workload={"weights": {"p000": 1}}),
    "a part of the data": lambda manifest: manifest["data"].update(note="p000"),
}


@pytest.mark.parametrize("change", PAYLOADS.values(), ids=PAYLOADS)
def test_a_manifest_holds_nothing_beside_what_it_claims(tmp_path: Path, change: Callable[[Any], Any]) -> None:
    folder = Folder(tmp_path / "release")
    change(folder.manifest)
    with pytest.raises(AnonfitError):
        audit_release(folder.write())


def test_a_node_of_a_taxonomy_is_a_name_and_children(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "release")
    folder.recoding["columns"][1]["taxonomy"]["children"][0]["note"] = "p000"
    with pytest.raises(AnonfitError, match="unknown setting"):
        audit_release(folder.write())


# --- rows that other tools suppress ---------------------------------------------------------------------------------

RAW = pl.DataFrame({"age": [20, 21, 22, 50, 51, 52, 80], "job": list("aabbccd"), "ill": list("xyzxyzx")})
ARX = pl.DataFrame({
    "age": ["[0, 40)"] * 3 + ["[40, 60)"] * 3 + ["*"], "job": ["*"] * 7, "ill": list("xyzxyzx"),
})  # fmt: skip


def test_suppressed_rows_of_a_foreign_file_are_counted_and_tell_nothing_of_groups() -> None:
    words: dict[str, Any] = {"quasi_identifiers": ["age", "job"], "sensitive": ["ill"]}
    for rows_at_once in (None, 2):
        found = audit(ARX, rows_at_once=rows_at_once, **words)
        assert found.suppressed_rows.persons == 1
        assert found.raw_columns[0].certain.persons == 0
        assert found.diversity[0].found is not None
        assert found.diversity[0].found.value == 3
        assert any("* in every quasi-identifier" in note for note in found.notes)


def test_suppressed_rows_of_a_foreign_file_are_found_in_the_source() -> None:
    words: dict[str, Any] = {"quasi_identifiers": ["age", "job"], "withheld": 0}
    assert audit(ARX, source=RAW, **words).passed
    moved = ARX.with_columns(age=pl.Series(["*", *ARX["age"][1:6], "[0, 40)"]))
    assert not audit(moved, source=RAW.with_columns(ill=pl.Series(list("xyzxyzq"))), **words).passed
    doubled = pl.concat([ARX, ARX.tail(1)])
    assert not audit(doubled, source=RAW, **words).passed
