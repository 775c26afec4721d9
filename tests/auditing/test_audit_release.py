# SPDX-License-Identifier: Apache-2.0
"""A sound release folder is accepted; each of many planted faults is found, or refused in a sentence."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from audit_folders import RELEASED, Folder, K, raw_rows, released_rows

import anonfit as af
from anonfit.auditing.api import audit_data, audit_release
from anonfit.auditing.result import Audit
from anonfit.errors import AnonfitError, DataError, ReleaseError
from json_layout import write_json


def missed(found: Audit) -> set[str]:
    return {finding.name for finding in found.findings if finding.met is False}


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_sound_folder_is_accepted(tmp_path: Path, kind: str) -> None:
    folder = Folder(tmp_path / "release", kind=kind)
    path = folder.write()
    alone, with_source = audit_release(path), audit_release(path, source=folder.raw)
    assert missed(alone) == missed(with_source) == set()
    for found in (alone, with_source):  # the texts of a report are compared by the door that everybody has
        assert [one.name for one in found.unchecked] == ["report texts", "report page"]
    assert alone.k == K
    assert with_source.source is not None
    assert with_source.source.by_labels
    assert json.dumps(with_source.public(K))


def test_rows_out_of_order_are_found(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "release")
    folder.data = folder.data.sample(fraction=1.0, shuffle=True, seed=4)
    assert missed(audit_release(folder.write(sort=False))) == {"row order"}
    folder.spec["output"]["order"] = "original"
    assert missed(audit_release(folder.write(sort=False))) == {"consent"}
    folder.spec["output"]["consent"] = True
    assert audit_release(folder.write(sort=False)).passed


def test_changed_files_are_found(tmp_path: Path) -> None:
    for number, name in enumerate(["data.csv", "recoding.json", "report.json", "report.html"]):
        path = Folder(tmp_path / str(number), kind="csv").write()
        with (path / name).open("a", encoding="utf-8") as stream:
            stream.write("\n" if name != "data.csv" else "x,x,x,x,x,1\n")
        assert "files" in missed(audit_release(path))


OTHERWISE: dict[str, Callable[[str], str]] = {
    "white space": lambda text: text.replace(": ", ":  ", 1),
    "a line": lambda text: text + "\n",
    "an escape": lambda text: text.replace("format", "f\\u006frmat", 1),
    "digits": lambda text: text.replace('"version": 1', '"version": 1.000', 1),
    "no lines": lambda text: json.dumps(json.loads(text), ensure_ascii=False) + "\n",
}


@pytest.mark.parametrize("name", ["recoding.json", "report.json", "manifest.json"])
@pytest.mark.parametrize("how", OTHERWISE)
def test_a_json_file_that_is_written_otherwise_is_found(tmp_path: Path, name: str, how: str) -> None:
    path = Folder(tmp_path / "release").write()
    text = OTHERWISE[how]((path / name).read_text(encoding="utf-8"))
    (path / name).write_text(text, encoding="utf-8")
    if name != "manifest.json":
        manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
        files = {**manifest["files"], name: hashlib.sha256(text.encode()).hexdigest()}
        write_json(path / "manifest.json", {**manifest, "files": files})
    try:
        assert "layout" in missed(audit_release(path))
    except AnonfitError:  # a whole number with a point is none
        assert how == "digits"


def test_other_and_lost_files_are_found(tmp_path: Path) -> None:
    path = Folder(tmp_path / "release").write()
    (path / ".notes").write_text("x", encoding="utf-8")
    assert missed(audit_release(path)) == {"other files"}
    (path / ".notes").unlink()
    (path / "inner").mkdir()
    assert missed(audit_release(path)) == {"other files"}
    (path / "inner").rmdir()
    (path / "report.html").unlink()
    assert missed(audit_release(path)) == {"files"}


def test_a_file_that_the_manifest_forgets_is_found(tmp_path: Path) -> None:
    path = Folder(tmp_path / "release").write()
    manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
    for name in ("recoding.json", "report.json", "report.html", "data.parquet"):
        files = {key: value for key, value in manifest["files"].items() if key != name}
        write_json(path / "manifest.json", {**manifest, "files": files})
        assert missed(audit_release(path)) == {"files"}


def test_a_file_that_is_none_of_a_release_is_found_though_the_manifest_lists_it(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "release")
    path = folder.write()
    folder.raw.write_csv(path / "raw.csv")
    manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
    manifest["files"]["raw.csv"] = hashlib.sha256((path / "raw.csv").read_bytes()).hexdigest()
    write_json(path / "manifest.json", manifest)
    assert missed(audit_release(path)) == {"other files"}


def test_folders_without_a_manifest_are_refused(tmp_path: Path) -> None:
    path = Folder(tmp_path / "release").write()
    for text in ("{", "[]", None):
        (path / "manifest.json").unlink(missing_ok=True)
        if text is not None:
            (path / "manifest.json").write_text(text, encoding="utf-8")
        with pytest.raises(ReleaseError, match=r"manifest\.json"):
            audit_release(path)


def test_a_folder_may_say_how_it_was_made(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "release")
    folder.spec["method"] = {"algorithm": "mondrian", "criterion": "auto"}
    folder.spec.update(engine={"name": "memory"}, version=1)
    folder.spec["privacy"]["suppression_limit"] = 0
    assert audit_release(folder.write()).passed


def test_a_quasi_identifier_that_the_file_lacks_is_refused(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "release")
    folder.data = folder.data.drop("rank")
    with pytest.raises(DataError, match="rank"):
        audit_release(folder.write())


def test_withheld_rows_told_exactly_or_as_fewer_than_k(tmp_path: Path) -> None:
    for told, good in ((5, True), (4, False), ("fewer than 5", False)):
        folder = Folder(tmp_path / str(told))
        folder.data = folder.data.filter(pl.col("rank") != "high")
        folder.recount()
        folder.manifest["rows"]["withheld"] = told
        folder.spec["privacy"]["suppression_limit"] = 0.5
        found = missed(audit_release(folder.write(), source=folder.raw))
        assert "withheld groups" in found  # it has enough persons
        assert ("withheld rows" not in found) is good


@pytest.mark.parametrize(
    "told", ["fewer than 1000000", "fewer than 10", "fewer than 0", "fewer than 99999999999999999999"]
)
def test_few_rows_are_fewer_than_k(tmp_path: Path, told: str) -> None:
    folder = Folder(tmp_path / "release")
    folder.manifest["rows"]["withheld"] = told
    with pytest.raises(ReleaseError, match="fewer than"):
        audit_release(folder.write())


def test_no_more_rows_are_withheld_than_the_manifest_allows(tmp_path: Path) -> None:
    """Whole groups taken out, and called withheld."""
    for number, (limit, good) in enumerate(((0.0, False), (0.02, False), (0.05, True))):
        folder = Folder(tmp_path / str(number))
        folder.data = folder.data.filter(pl.col("rank") != "high")
        folder.recount()
        folder.manifest["rows"]["withheld"] = K
        folder.spec["privacy"]["suppression_limit"] = limit
        path = folder.write()
        for source in (None, folder.raw):
            found = missed(audit_release(path, source=source))
            assert ("suppression limit" not in found) is good
            assert ("withheld groups" in found) is (source is not None)


def test_rows_dropped_by_the_missing_policy(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "release")
    lost = folder.raw.filter(pl.col("age").is_null()).height
    folder.data = released_rows(folder.raw.drop_nulls("age"))
    folder.recount()
    folder.manifest["rows"]["dropped"] = lost
    found = audit_release(folder.write(), source=folder.raw)
    assert "whole groups" in missed(found)
    folder.spec["data"] = {"missing_policy": "drop"}
    assert "whole groups" not in missed(audit_release(folder.write(), source=folder.raw))


def test_entities_are_counted_only_with_the_source(tmp_path: Path) -> None:
    raw = raw_rows().with_columns(person=pl.col("patient"))
    folder = Folder(tmp_path / "release", raw=raw)
    folder.spec["columns"]["person"] = {"role": "entity"}
    alone = audit_release(folder.write())
    assert not alone.passed
    assert [finding.name for finding in alone.missed] == ["entities", "k"]
    assert [finding.met for finding in alone.missed] == [None, None]
    assert alone.k is None
    assert alone.counted == "rows in place of persons"
    assert audit_release(folder.write(), source=raw).passed
    high = pl.col("rank") == "high"
    twice = raw.with_columns(person=pl.when(high & (pl.col("age") >= 60)).then(pl.lit("one")).otherwise("person"))
    assert missed(audit_release(folder.write(), source=twice)) == {"k", "report figures", "report findings"}
    folder.data = folder.data.with_columns(person=pl.lit("x"))
    assert "undeclared columns" in missed(audit_release(folder.write(), source=raw))


def test_observed_regions_may_have_any_ends_but_stay_disjoint(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "release")
    folder.relabel("age", "[60, 120]", "[60, 119.5]")
    folder.raw = folder.raw.with_columns(age=pl.when(pl.col("age") == 120).then(119).otherwise("age"))
    folder.spec["output"]["regions"] = "observed"
    assert missed(audit_release(folder.write())) == {"consent"}
    folder.spec["output"]["consent"] = True
    assert audit_release(folder.write()).passed
    assert missed(audit_release(folder.write(), source=folder.raw)) == {"observed labels"}
    folder.relabel("age", "[60, 119.5]", "[59, 119.5]")
    assert "regions" in missed(audit_release(folder.write()))


def test_bounds_in_a_folder(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "release")
    bounds = {
        "missing or [0, 30)": (0.0, 30.0, "possible"), "[30, 60)": (30.0, 60.0, "no"), "[60, 120]": (60.0, 120.0, "no"),
    }  # fmt: skip
    ages = [bounds[label] for label in folder.data["age"]]
    words = {"*": (None, None), "< high": (None, "high"), "high": ("high", None)}
    ranks = [words[label] for label in folder.data["rank"]]
    folder.data = folder.data.select(
        pl.Series("age_lower", [one[0] for one in ages]), pl.Series("age_upper", [one[1] for one in ages]),
        pl.Series("age_missing", [one[2] for one in ages]), "country",
        pl.Series("rank_lower", [one[0] for one in ranks], dtype=pl.String),
        pl.Series("rank_upper", [one[1] for one in ranks], dtype=pl.String), "outcome", "diagnosis", "note",
    )  # fmt: skip
    folder.data = folder.data.sort(folder.data.columns)
    folder.manifest["data"]["columns"] = folder.data.columns
    folder.spec["output"]["values"] = "bounds"
    assert missed(audit_release(folder.write(sort=False), source=folder.raw)) == set()
    good = folder.data
    folder.data = good.with_columns(age_upper=pl.col("age_upper").replace(30.0, 31.0))
    assert missed(audit_release(folder.write(sort=False), source=folder.raw)) >= {"label ends", "disjoint groups"}
    folder.data = good.with_columns(age=pl.lit(5))
    folder.manifest["data"]["columns"] = folder.data.columns
    assert not audit_release(folder.write(sort=False), source=folder.raw).passed


def test_whether_bounds_tell_of_missing_values_is_as_the_recoding_says(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "release")
    bounds = {"missing or [0, 30)": (0, 30), "[30, 60)": (30, 60), "[60, 120]": (60, 120)}
    words = {"*": (None, None), "< high": (None, "high"), "high": ("high", None)}
    for name, ends in (("age", bounds), ("rank", words)):
        for place, end in enumerate(("lower", "upper")):
            values = [ends[label][place] for label in folder.data[name]]
            folder.data = folder.data.with_columns(pl.Series(f"{name}_{end}", values, strict=False))
    folder.data = folder.data.select(
        "age_lower", "age_upper", "country", "rank_lower", "rank_upper", "outcome", "diagnosis", "note"
    )
    folder.data = folder.data.sort(folder.data.columns)
    folder.manifest["data"]["columns"] = folder.data.columns
    folder.spec["output"]["values"] = "bounds"
    assert missed(audit_release(folder.write(sort=False))) == {"missing columns", "regions", "report figures"}
    folder.recoding["columns"][0]["missing"] = False
    folder.recoding["nodes"]["start"][1:4] = [0, 1, 2]
    assert missed(audit_release(folder.write(sort=False))) == set()


def test_the_quasi_identifiers_of_a_spec_are_the_columns_of_the_recoding(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "release")
    folder.spec["columns"]["rank"]["role"] = "insensitive"
    assert "quasi-identifiers" in missed(audit_release(folder.write()))
    folder.data = folder.data.drop("rank")
    folder.spec["columns"]["rank"]["role"] = "identifier"
    for named in ("columns", "texts"):
        folder.manifest["data"][named].remove("rank")
    assert missed(audit_release(folder.write())) == {"quasi-identifiers"}


def test_representatives_follow_from_regions(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "release")
    folder.relabel("age", "[30, 60)", "45")
    folder.relabel("age", "[60, 120]", "90")
    folder.relabel("age", "missing or [0, 30)", None)
    middle = {"*": "mid", "< high": "low", "high": "high"}
    folder.data = folder.data.with_columns(pl.col("age").cast(pl.Float64), pl.col("rank").replace_strict(middle))
    folder.spec["output"]["values"] = "representative"
    for rows_at_once in (None, 23):
        found = audit_release(folder.write(), source=folder.raw, rows_at_once=rows_at_once)
        assert missed(found) == set()
        assert found.source is not None
        assert found.source.by_labels
    sound = folder.data
    changes: list[tuple[pl.Expr, set[str]]] = [
        (pl.col("age") + 1000, {"labels", "regions"}),
        (pl.col("age").replace(45.0, 90.0), {"regions"}),
        (pl.col("age").fill_null(15.0), {"labels", "regions"}),
        (pl.col("rank").replace("high", "mid"), {"released rows"}),
        (pl.lit("Asia").alias("country"), {"regions"}),
    ]
    for change, names in changes:
        folder.data = sound.with_columns(change)
        for source in (None, folder.raw):
            found = audit_release(folder.write(), source=source)
            assert not found.passed or (source is None and names == {"released rows"})
        assert missed(found) >= names


def test_two_releases_of_one_table(tmp_path: Path) -> None:
    one, other = Folder(tmp_path / "one"), Folder(tmp_path / "other")
    other.relabel("country", "Asia", "*")
    other.relabel("country", "Europe", "*")
    found = audit_release(one.write(), source=one.raw, other=other.write())
    assert found.passed
    assert found.joint is not None
    assert found.joint.smallest == K
    asia = pl.col("country").is_in(["JP", "IN"])
    region = pl.when(asia).then(pl.lit("Asia")).otherwise(pl.lit("Europe"))
    other.data = other.raw.select(
        pl.lit("*").alias("age"), region.alias("country"), pl.lit("*").alias("rank"), *RELEASED[3:]
    )
    crossed = audit_release(one.write(), source=one.raw, other=other.write())
    assert missed(crossed) == {"joint cells"}  # the five persons of the smallest group live on two continents
    assert crossed.joint is not None
    assert crossed.joint.persons_below_k is not None
    assert crossed.joint.persons_below_k.persons >= K
    head, _, lines = one.raw.write_csv().partition("\n")
    (tmp_path / "raw.csv").write_text(f"{head}\n" + re.sub(",(?=[A-Z])", ", ", lines))
    of_file = audit_release(one.path, source=tmp_path / "raw.csv", other=other.path, max_risk=0.01)
    assert of_file.joint == crossed.joint  # however the blanks in the file are read, this is what both together tell
    assert missed(of_file) == {"joint cells", "prosecutor risk"}


def test_two_releases_of_other_rows_than_the_source_s_are_not_known_to_hold_together(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "one").write()
    strangers = Folder(tmp_path / "other").raw.with_columns(country=pl.lit("nowhere"))
    found = audit_release(folder, source=strangers, other=folder)
    assert [finding.met for finding in found.findings if finding.name == "joint cells"] == [None]


def test_data_that_is_not_yet_in_a_folder() -> None:
    raw = raw_rows()
    folder = Folder(Path("unused"), raw=raw)
    found = audit_data(
        folder.data, spec=folder.spec, recoding=folder.recoding, source=raw, withheld=0, columns=RELEASED
    )
    assert found.passed
    assert not audit_data(folder.data[1:], spec=folder.spec, recoding=folder.recoding, source=raw, withheld=0).passed


def test_findings_and_messages_hold_no_values_of_records(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "release")
    folder.edit(0, age="SECRET-37", diagnosis="SECRET-D")
    found = audit_release(folder.write(), source=folder.raw)
    assert not found.passed
    assert "SECRET" not in json.dumps(found.to_dict())


@pytest.mark.parametrize("name", ["../secret.csv", "/etc/passwd", "a/b"])
def test_a_manifest_does_not_lead_the_audit_out_of_the_folder(tmp_path: Path, name: str) -> None:
    frame = pl.DataFrame({"age": [20, 30] * 10})
    folder = af.anonymize(frame, quasi_identifiers=["age"], k=5).save(tmp_path / "out")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"][name] = "0" * 64
    write_json(folder / "manifest.json", manifest)
    with pytest.raises(ReleaseError, match="not in the folder"):
        af.audit_release(folder)


@pytest.mark.parametrize(
    "text", ['{"a": 1, "a": 2}', "[" * 100_000, '{"a": NaN}', '{"a": 1e999}', '{"a": "\\ud800"}', "[]"]
)
def test_the_audit_refuses_json_with_traps(tmp_path: Path, text: str) -> None:
    frame = pl.DataFrame({"age": [20, 30] * 10})
    folder = af.anonymize(frame, quasi_identifiers=["age"], k=5).save(tmp_path / "out")
    for name in ("recoding.json", "manifest.json"):
        (folder / name).write_text(text)
        with pytest.raises(ReleaseError, match="cannot be read"):
            af.audit_release(folder)
