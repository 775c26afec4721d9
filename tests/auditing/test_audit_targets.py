# SPDX-License-Identifier: Apache-2.0
"""How certain groups make the value of a target: every target by its values, or by classes of its numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from audit_folders import Folder, raw_rows

from anonfit.auditing.api import audit, audit_release
from anonfit.auditing.result import Audit
from anonfit.errors import DataError, ReleaseError, SpecError

FRAME = pl.DataFrame(
    {
        "q": ["a"] * 5 + ["b"] * 5,
        "outcome": ["ill"] * 4 + ["well"] + ["ill", "well"] * 2 + [None],
        "cost": [0.0, 9.5, 10.0, 20.0, 30.0, 5.0, 5.0, 25.0, None, 40.0],
    }
)


def found_of(most: float, *targets: Any, frame: object = FRAME) -> Any:
    return audit(frame, quasi_identifiers=["q"], targets=targets, max_confidence=most)


def shares(found: Audit) -> list[Any]:
    return [(one.where, one.found, one.met) for one in found.findings if one.name == "max_confidence"]


def test_values_of_a_nominal_target() -> None:
    assert shares(found_of(0.8, "outcome")) == [("outcome", 0.8, True)]
    assert shares(found_of(0.79, "outcome")) == [("outcome", 0.8, False)]
    assert not found_of(0.79, "outcome").passed
    with pytest.raises(SpecError, match="none is named"):
        found_of(0.79)
    assert shares(audit(FRAME, quasi_identifiers=["q"], targets=["outcome"])) == []


def test_targets_are_not_sensitive() -> None:
    assert not any(column.sensitive for column in found_of(0.8, "outcome").raw_columns)


def test_classes_by_thresholds() -> None:
    # first group: 0, 9.5 | 10 | 20, 30; second: 5, 5 | | 25, 40, missing
    assert shares(found_of(0.4, {"column": "cost", "classes": [10, 20]})) == [("cost", 0.4, True)]
    assert shares(found_of(0.5, {"column": "cost", "classes": [20]})) == [("cost", 0.6, False)]
    assert shares(found_of(0.6, {"column": "cost", "classes": [20]})) == [("cost", 0.6, True)]
    # a threshold begins its class: below 10.5 are three of the first group
    assert shares(found_of(1, {"column": "cost", "classes": [10.5, 20]})) == [("cost", 0.6, True)]
    assert found_of(1, {"column": "cost", "classes": [20]}).diversity[0].settings == {"classes": [20.0]}


def test_classes_of_equal_width() -> None:
    # from 0 to 40 by four: [0, 10) [10, 20) [20, 30) [30, 40]; first group 2, 1, 1, 1; second 2, 0, 1, 1 and missing
    assert shares(found_of(0.5, {"column": "cost", "equal_width": 4})) == [("cost", 0.4, True)]
    # by two: [0, 20) [20, 40]; first group 3, 2
    assert shares(found_of(0.5, {"column": "cost", "equal_width": 2})) == [("cost", 0.6, False)]
    assert shares(found_of(0.8, {"column": "cost", "equal_width": 1})) == [("cost", 1.0, False)]
    same = FRAME.with_columns(cost=pl.lit(7))
    assert shares(found_of(0.8, {"column": "cost", "equal_width": 3}, frame=same)) == [("cost", 1.0, False)]
    tenths = pl.DataFrame({"q": ["a"] * 4, "cost": [0.0, 0.3, 0.35, 1.0]})  # 0.3 is a threshold and begins a class
    assert shares(found_of(0.5, {"column": "cost", "equal_width": 10}, frame=tenths)) == [("cost", 0.5, True)]
    nothing = FRAME.with_columns(cost=pl.lit(None, dtype=pl.Float64))
    assert shares(found_of(0.8, {"column": "cost", "equal_width": 3}, frame=nothing)) == [("cost", 1.0, False)]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_classes_of_a_written_file(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"data.{kind}"
    FRAME.write_csv(path) if kind == "csv" else FRAME.write_parquet(path)
    targets = ["outcome", {"column": "cost", "classes": [20]}]
    assert shares(found_of(0.8, *targets, frame=path)) == [("outcome", 0.8, True), ("cost", 0.6, True)]


def test_numbers_without_classes_are_not_checked(tmp_path: Path) -> None:
    FRAME.write_csv(tmp_path / "data.csv")
    for frame in (FRAME, tmp_path / "data.csv", FRAME.with_columns(pl.col("cost").cast(pl.Int64))):
        found = found_of(0.1, "cost", frame=frame)
        assert shares(found) == [("cost", None, None)]
        assert "no classes" in found.findings[0].sentence
    named = {"column": "cost", "type": "nominal"}
    assert shares(found_of(0.4, named)) == [("cost", 0.4, True)]
    assert shares(found_of(0.4, named, frame=tmp_path / "data.csv")) == [("cost", 0.4, True)]
    texts = FRAME.with_columns(pl.col("cost").cast(pl.String))
    assert shares(found_of(0.4, "cost", frame=texts)) == [("cost", 0.4, True)]


def test_nothing_is_asked_of_a_target_that_is_generalized() -> None:
    found = found_of(0.8, "q", "outcome")
    assert shares(found) == [("outcome", 0.8, True)]
    assert "quasi-identifier" in found.diversity[1].sentence
    assert found.diversity[1].asked is None
    assert found.passed
    with pytest.raises(DataError, match="all those named are quasi-identifiers"):
        found_of(0.8, "q")


def test_targets_count_persons() -> None:
    frame = FRAME.with_columns(n=pl.Series([1, 1, 1, 1, 6, 1, 1, 1, 1, 1]))
    found = audit(frame, quasi_identifiers=["q"], targets=["outcome"], max_confidence=0.6, count="n")
    assert shares(found) == [("outcome", 0.6, True)]
    whose = FRAME.with_columns(who=pl.Series(["u"] * 4 + ["v", "u", "v", "w", "x", "y"]))
    found = audit(whose, quasi_identifiers=["q"], targets=["outcome"], max_confidence=0.5, entity="who")
    assert shares(found) == [("outcome", 0.5, True)]


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ({"column": "cost", "classes": [20, 10]}, "rising"),
        ({"column": "cost", "classes": 20}, "rising"),
        ({"column": "cost", "classes": ["low"]}, "rising"),
        ({"column": "cost", "equal_width": 0}, "whole number"),
        ({"column": "cost", "equal_width": 2.5}, "whole number"),
        ({"column": "cost", "equal_width": 2, "classes": [1]}, "both"),
        ({"column": "cost", "bins": 3}, "unknown setting 'bins'"),
        ({"column": "cost", "type": "number"}, "unknown 'type'"),
        ({"classes": [3]}, "mapping with 'column'"),
        (3, "name of a column"),
    ],
)
def test_wrong_targets_are_refused_in_a_sentence(target: Any, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        found_of(0.5, target)


@pytest.mark.parametrize("most", [0, -1, 1.5, "high", True])
def test_a_confidence_that_is_none_is_refused(most: Any) -> None:
    with pytest.raises(SpecError, match="max_confidence"):
        found_of(most, "outcome")


def test_targets_that_cannot_be_read_are_refused() -> None:
    with pytest.raises(DataError, match="no numbers"):
        found_of(0.5, {"column": "outcome", "classes": [1]})
    with pytest.raises(DataError, match="'price'"):
        found_of(0.5, "price")
    with pytest.raises(SpecError, match="list"):
        audit(FRAME, quasi_identifiers=["q"], targets="outcome", max_confidence=0.5)


# --- release folders ----------------------------------------------------------------------------------------------


def certain(folder: Folder, source: object = None) -> list[Any]:
    return shares(audit_release(folder.write(), source=source))


def largest_share(folder: Folder, column: str) -> float:
    counts = folder.data.group_by("age", "country", "rank", column).len()
    sizes = folder.data.group_by("age", "country", "rank").len(name="size")
    joined = counts.join(sizes, on=["age", "country", "rank"])
    return float((joined["len"] / joined["size"]).max())  # type: ignore[arg-type]


def test_all_targets_of_a_folder_are_checked(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "release")
    most = largest_share(folder, "outcome")
    folder.spec["privacy"]["max_confidence"] = most
    assert certain(folder) == certain(folder, folder.raw) == [("outcome", most, True)]
    folder.spec["privacy"]["max_confidence"] = most - 1e-6
    assert certain(folder) == [("outcome", most, False)]
    folder.spec["privacy"]["max_confidence"] = 1
    assert certain(folder) == []


def test_targets_of_the_workload_are_checked_by_their_classes(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "release")
    folder.spec["columns"]["note"]["role"] = "target"
    folder.spec["privacy"]["max_confidence"] = 0.99
    assert [(where, met) for where, _, met in certain(folder)] == [("outcome", True), ("note", None)]
    folder.spec["workload"] = {"targets": [{"column": "note", "classes": [3], "weight": 2.0, "scale": True}]}
    folder.data = folder.data.with_columns(half=pl.col("note") >= 3)
    most = largest_share(folder, "half")
    folder.data = folder.data.drop("half")
    assert [(where, met) for where, _, met in certain(folder)] == [("outcome", True), ("note", True)]
    assert certain(folder)[1][1] == most
    folder.spec["workload"] = {"targets": ["age", "outcome"], "denoise": True, "selections": 3, "weights": {}}
    assert [(where, met) for where, _, met in certain(folder)] == [("outcome", True), ("note", None)]
    assert not audit_release(folder.write()).passed
    folder.spec["columns"]["note"]["role"] = "insensitive"
    for targets in (["age", "outcome"], ["age"], []):
        folder.spec["workload"] = {"targets": targets}
        assert [(where, met) for where, _, met in certain(folder)] == [("outcome", True)]
        assert audit_release(folder.write()).passed


def test_texts_of_digits_are_names_if_the_manifest_says_so(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "release", kind="csv")
    folder.data = folder.data.with_columns(outcome=pl.when(pl.col("outcome") == "well").then(1).otherwise(0))
    folder.spec["privacy"]["max_confidence"] = 0.99
    assert [met for _, _, met in certain(folder)] == [None]
    folder.manifest["data"]["texts"] = ["age", "outcome"]
    assert [met for _, _, met in certain(folder)] == [True]
    folder.manifest["data"]["texts"] = []
    folder.spec["columns"]["outcome"]["type"] = "nominal"
    assert [met for _, _, met in certain(folder)] == [True]


def test_a_workload_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "release")
    folder.spec["privacy"]["max_confidence"] = 0.9
    for workload, error in (
        ({"targets": "outcome"}, ReleaseError),
        ({"targets": ["lost"]}, ReleaseError),
        ({"targets": [{"column": "note", "bins": 3}]}, SpecError),
        ([], ReleaseError),
    ):
        folder.spec["workload"] = workload
        with pytest.raises(error):
            audit_release(folder.write())


def test_persons_that_only_the_source_knows_leave_targets_unchecked(tmp_path: Path) -> None:
    raw = raw_rows().with_columns(person=pl.col("patient"))
    folder = Folder(tmp_path / "release", raw=raw)
    folder.spec["columns"]["person"] = {"role": "entity"}
    folder.spec["privacy"]["max_confidence"] = 0.99
    assert certain(folder) == [("outcome", None, None)]
    assert [met for _, _, met in certain(folder, raw)] == [True]
