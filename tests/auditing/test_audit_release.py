# SPDX-License-Identifier: Apache-2.0
"""A sound release folder is accepted; each of many planted faults is found, or refused in a sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from audit_folders import RELEASED, Folder, K, raw_rows, released_rows

from anonfit.auditing import audit_data, audit_release
from anonfit.auditing.result import Audit
from anonfit.errors import DataError, RecodingError, ReleaseError, SpecError


def missed(found: Audit) -> set[str]:
    return {finding.name for finding in found.findings if finding.met is False}


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_sound_folder_is_accepted(tmp_path: Path, kind: str) -> None:
    folder = Folder(tmp_path / "release", kind=kind)
    path = folder.write()
    alone, with_source = audit_release(path), audit_release(path, source=folder.raw)
    assert missed(alone) == missed(with_source) == set()
    assert alone.unchecked == with_source.unchecked == ()
    assert alone.k == K
    assert with_source.source is not None
    assert with_source.source.by_labels
    assert json.dumps(with_source.public(K))


def plant(folder: Folder, **values: Any) -> None:
    folder.data = pl.concat([folder.data, folder.data[:1].with_columns(**values).cast(folder.data.schema)])


def a_row_moved(folder: Folder) -> None:
    row = next(i for i, row in enumerate(folder.data.to_dicts()) if row["age"] == "[30, 60)")
    folder.edit(row, age="[60, 120]", rank="< high")


def a_label_widened(folder: Folder) -> None:
    folder.relabel("rank", "< high", "*")


def a_label_widened_beyond_a_cut(folder: Folder) -> None:
    folder.relabel("age", "[30, 60)", "[30, 120]")


def a_label_shifted(folder: Folder) -> None:
    folder.relabel("age", "[30, 60)", "[31, 61)")


def an_end_that_is_no_cut(folder: Folder) -> None:
    folder.relabel("age", "[60, 120]", "[59.5, 120]")


def a_label_narrowed(folder: Folder) -> None:
    folder.relabel("rank", "< high", "low")


def a_label_narrowed_in_empty_space(folder: Folder) -> None:
    folder.relabel("age", "[60, 120]", "[60, 119.5]")


def a_closed_interval_inside_the_domain(folder: Folder) -> None:
    folder.relabel("age", "[30, 60)", "[30, 60]")


def an_open_end_in_a_declared_domain(folder: Folder) -> None:
    folder.relabel("age", "[60, 120]", "≥ 60")


def a_label_that_cannot_be_read(folder: Folder) -> None:
    folder.relabel("age", "[30, 60)", "30-59")


def a_raw_value_in_a_label(folder: Folder) -> None:
    folder.edit(0, age="37")


def a_raw_value_for_a_whole_group(folder: Folder) -> None:
    folder.relabel("age", "[30, 60)", "45")


def a_name_out_of_the_taxonomy(folder: Folder) -> None:
    folder.relabel("country", "Asia", "Africa")


def a_name_in_another_case(folder: Folder) -> None:
    folder.relabel("country", "Asia", "asia")


def a_leaf_for_its_parent(folder: Folder) -> None:
    folder.relabel("country", "Asia", "JP")


def a_set_that_overlaps_another_group(folder: Folder) -> None:
    folder.relabel("country", "Asia", "{Asia, FR}")


def a_word_out_of_the_order(folder: Folder) -> None:
    folder.relabel("rank", "< high", "< higher")


def an_empty_label(folder: Folder) -> None:
    folder.relabel("country", "Asia", None)


def a_missing_part_forgotten(folder: Folder) -> None:
    folder.relabel("age", "missing or [0, 30)", "[0, 30)")


def a_missing_part_invented(folder: Folder) -> None:
    folder.relabel("age", "[30, 60)", "missing or [30, 60)")


def two_groups_swapped(folder: Folder) -> None:
    folder.relabel("country", "Asia", "~")
    folder.relabel("country", "Europe", "Asia")
    folder.relabel("country", "~", "Europe")


def two_groups_under_one_coarse_label(folder: Folder) -> None:
    folder.relabel("country", "Asia", "*")
    folder.relabel("age", "missing or [0, 30)", "*", country="*")


def a_group_of_k_less_one(folder: Folder) -> None:
    row = folder.data.with_row_index().filter(pl.col("rank") == "high")["index"][0]
    folder.data = pl.concat([folder.data[:row], folder.data[row + 1 :]])
    folder.recount()
    folder.manifest["rows"]["withheld"] = 1


def a_row_dropped(folder: Folder) -> None:
    folder.data = folder.data[1:]
    folder.recount()


def a_row_dropped_and_called_withheld(folder: Folder) -> None:
    folder.data = folder.data[1:]
    folder.recount()
    folder.manifest["rows"]["withheld"] = 1


def a_row_doubled(folder: Folder) -> None:
    plant(folder)
    folder.recount()


def a_row_added(folder: Folder) -> None:
    plant(folder, note=pl.lit(77))
    folder.recount()


def a_row_of_stars(folder: Folder) -> None:
    folder.edit(3, age="*", country="*", rank="*")


def a_row_replaced_by_a_copy(folder: Folder) -> None:
    folder.data = pl.concat([folder.data[1:], folder.data[-1:]])


def a_raw_value_changed(folder: Folder) -> None:
    folder.edit(5, note=9)


def a_raw_value_emptied(folder: Folder) -> None:
    folder.edit(5, note=None)


def a_raw_column_shuffled(folder: Folder) -> None:
    folder.data = folder.data.with_columns(pl.col("diagnosis").shuffle(seed=1))


def a_whole_group_lost(folder: Folder) -> None:
    folder.data = folder.data.filter(pl.col("country") != "Asia")
    folder.recount()


def an_identifier_leaked(folder: Folder) -> None:
    folder.data = folder.data.with_columns(patient=folder.raw["patient"][: folder.data.height])
    folder.manifest["data"]["columns"].append("patient")


def a_row_number_leaked(folder: Folder) -> None:
    folder.data = folder.data.with_columns(index=pl.int_range(folder.data.height))
    folder.manifest["data"]["columns"].append("index")


def a_raw_quasi_identifier_leaked(folder: Folder) -> None:
    folder.data = folder.data.with_columns(age_exact=pl.lit(5))
    folder.manifest["data"]["columns"].append("age_exact")


def a_column_lost(folder: Folder) -> None:
    folder.data = folder.data.drop("note")
    folder.manifest["data"]["columns"].remove("note")


def columns_in_another_order(folder: Folder) -> None:
    folder.data = folder.data.select(RELEASED[::-1])


def a_wrong_number_of_rows(folder: Folder) -> None:
    folder.manifest["rows"]["released"] += 1


def a_higher_k_than_there_is(folder: Folder) -> None:
    folder.spec["privacy"]["k"] = K + 1


def less_diversity_than_asked(folder: Folder) -> None:
    folder.spec["privacy"]["diversity"] = [{"column": "diagnosis", "model": "distinct-l", "l": 6}]


def a_smaller_k_of_one_set(folder: Folder) -> None:
    folder.spec["privacy"]["quasi_identifiers"] = [{"columns": ["age", "rank"], "k": K + 1}, {"columns": ["age"]}]


def a_cut_taken_from_the_recoding(folder: Folder) -> None:
    folder.recoding["columns"][0]["cuts"] = [30]


def another_domain_in_the_recoding(folder: Folder) -> None:
    folder.recoding["columns"][0]["domain"] = [0, 130]


NEEDS_SOURCE = [
    a_row_moved,
    a_row_dropped,
    a_row_dropped_and_called_withheld,
    a_row_doubled,
    a_row_added,
    a_row_replaced_by_a_copy,
    a_raw_value_changed,
    a_raw_value_emptied,
    a_raw_column_shuffled,
    a_whole_group_lost,
    two_groups_swapped,
    a_label_narrowed,
    a_missing_part_forgotten,
    a_missing_part_invented,
    a_leaf_for_its_parent,
]
IN_THE_FILE = [
    a_label_widened,
    a_label_widened_beyond_a_cut,
    a_label_shifted,
    an_end_that_is_no_cut,
    a_label_narrowed_in_empty_space,
    a_closed_interval_inside_the_domain,
    an_open_end_in_a_declared_domain,
    a_label_that_cannot_be_read,
    a_raw_value_in_a_label,
    a_raw_value_for_a_whole_group,
    a_name_out_of_the_taxonomy,
    a_name_in_another_case,
    a_set_that_overlaps_another_group,
    a_word_out_of_the_order,
    an_empty_label,
    two_groups_under_one_coarse_label,
    a_group_of_k_less_one,
    a_row_of_stars,
    an_identifier_leaked,
    a_row_number_leaked,
    a_raw_quasi_identifier_leaked,
    a_column_lost,
    columns_in_another_order,
    a_wrong_number_of_rows,
    a_higher_k_than_there_is,
    less_diversity_than_asked,
    a_smaller_k_of_one_set,
    a_cut_taken_from_the_recoding,
    another_domain_in_the_recoding,
]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("fault", [*NEEDS_SOURCE, *IN_THE_FILE], ids=lambda fault: fault.__name__)
def test_a_planted_fault_is_found(tmp_path: Path, fault: Callable[[Folder], None], kind: str) -> None:
    folder = Folder(tmp_path / "release", kind=kind)
    fault(folder)
    assert not audit_release(folder.write(), source=folder.raw).passed


@pytest.mark.parametrize("fault", IN_THE_FILE, ids=lambda fault: fault.__name__)
def test_a_fault_that_shows_in_the_file_is_found_without_the_source(
    tmp_path: Path, fault: Callable[[Folder], None]
) -> None:
    folder = Folder(tmp_path / "release")
    fault(folder)
    assert not audit_release(folder.write()).passed


def test_rows_out_of_order_are_found(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "release")
    folder.data = folder.data.sample(fraction=1.0, shuffle=True, seed=4)
    assert missed(audit_release(folder.write(sort=False))) == {"row order"}
    folder.spec["output"]["order"] = "original"
    assert audit_release(folder.write(sort=False)).passed


def test_changed_files_are_found(tmp_path: Path) -> None:
    for number, name in enumerate(["data.csv", "recoding.json", "report.json", "report.html"]):
        path = Folder(tmp_path / str(number), kind="csv").write()
        with (path / name).open("a", encoding="utf-8") as stream:
            stream.write("\n" if name != "data.csv" else "x,x,x,x,x,1\n")
        assert "files" in missed(audit_release(path))


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
    for name, finding in (("recoding.json", "files"), ("report.json", "other files")):
        files = {key: value for key, value in manifest["files"].items() if key != name}
        (path / "manifest.json").write_text(json.dumps({**manifest, "files": files}), encoding="utf-8")
        assert missed(audit_release(path)) == {finding}


def broken(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda manifest: manifest.update(changes)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (broken(version=2), ReleaseError),
        (broken(format="something"), ReleaseError),
        (broken(spec=None), ReleaseError),
        (broken(data={"file": "../release/data.parquet"}), ReleaseError),
        (broken(data={"file": "lost.parquet"}), ReleaseError),
        (broken(rows={"released": 1, "withheld": "some"}), ReleaseError),
        (lambda manifest: manifest["spec"]["columns"].update(x={"role": "quasi-identifier"}), RecodingError),
        (lambda manifest: manifest["spec"]["privacy"].update(diversity=[{"model": "t-closeness"}]), SpecError),
    ],
)
def test_folders_that_cannot_be_audited_are_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], None], error: type[Exception]
) -> None:
    folder = Folder(tmp_path / "release")
    change(folder.manifest)
    with pytest.raises(error):
        audit_release(folder.write())


def test_folders_without_a_manifest_are_refused(tmp_path: Path) -> None:
    path = Folder(tmp_path / "release").write()
    for text in ("{", "[]", None):
        (path / "manifest.json").unlink(missing_ok=True)
        if text is not None:
            (path / "manifest.json").write_text(text, encoding="utf-8")
        with pytest.raises(ReleaseError, match=r"manifest\.json"):
            audit_release(path)


def test_an_unknown_recoding_is_refused(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "release")
    folder.recoding["version"] = 9
    with pytest.raises(RecodingError):
        audit_release(folder.write())


def test_a_quasi_identifier_that_the_file_lacks_is_refused(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "release")
    folder.data = folder.data.drop("rank")
    with pytest.raises(DataError, match="rank"):
        audit_release(folder.write())


def test_withheld_rows_told_exactly_or_as_fewer_than_k(tmp_path: Path) -> None:
    for told, good in ((5, True), (4, False), ("fewer than 10", True), ("fewer than 5", False)):
        folder = Folder(tmp_path / str(told))
        folder.data = folder.data.filter(pl.col("rank") != "high")
        folder.recount()
        folder.manifest["rows"]["withheld"] = told
        assert audit_release(folder.write(), source=folder.raw).passed is good


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
    assert alone.passed
    assert [finding.name for finding in alone.unchecked] == ["entities"]
    assert audit_release(folder.write(), source=raw).passed
    high = pl.col("rank") == "high"
    twice = raw.with_columns(person=pl.when(high & (pl.col("age") >= 60)).then(pl.lit("one")).otherwise("person"))
    assert missed(audit_release(folder.write(), source=twice)) == {"k"}
    folder.data = folder.data.with_columns(person=pl.lit("x"))
    assert "undeclared columns" in missed(audit_release(folder.write(), source=raw))


def test_observed_regions_may_have_any_ends_but_stay_disjoint(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "release")
    folder.relabel("age", "[60, 120]", "[60, 119.5]")
    folder.raw = folder.raw.with_columns(age=pl.when(pl.col("age") == 120).then(119).otherwise("age"))
    folder.spec["output"]["regions"] = "observed"
    assert audit_release(folder.write(), source=folder.raw).passed
    folder.relabel("age", "[60, 119.5]", "[59, 119.5]")
    assert "disjoint groups" in missed(audit_release(folder.write(), source=folder.raw))


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


def test_representatives_are_grouped_and_raw_values_compared(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "release")
    folder.relabel("age", "[30, 60)", "45")
    folder.relabel("age", "[60, 120]", "90")
    folder.relabel("age", "missing or [0, 30)", None)
    folder.data = folder.data.with_columns(pl.col("age").cast(pl.Float64), rank=pl.lit("mid"))
    folder.spec["output"]["values"] = "representative"
    found = audit_release(folder.write(), source=folder.raw)
    assert missed(found) == set()
    assert {finding.name for finding in found.unchecked} == {"disjoint groups", "labels against source"}
    folder.edit(0, note=9)
    assert not audit_release(folder.write(), source=folder.raw).passed


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
