# SPDX-License-Identifier: Apache-2.0
"""What a manifest says of a spec: enough to check every demand, and nothing that only its owner may know."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from spec_tables import demanded, people

from anonfit.errors import SpecError
from anonfit.release.bind import schema_of
from anonfit.spec.model import DiversitySpec, SelectionSpec, Spec, TargetSpec
from anonfit.spec.parse import public_spec, public_tables, spec_of
from anonfit.tables.schema import ColumnType
from anonfit.tables.taxonomy import Taxonomy


def published(spec: Spec, **types: ColumnType) -> dict[str, Any]:
    """The public tables after a journey through JSON."""
    found: dict[str, Any] = json.loads(
        json.dumps(public_tables(spec, schema_of(spec, list(spec.columns)), types=types))
    )
    return found


WHOLE = people(
    {"illness": {"diversity": None, "reason": None}},
    privacy={
        "k": 2,
        "max_confidence": 0.9,
        "diversity": [
            {"column": "illness", "model": "beta-likeness", "beta": 2, "enhanced": True},
            {"column": "illness", "model": "distinct-l", "l": 3},
        ],
    },
    workload={
        "targets": [{"column": "outcome", "scale": False}, {"column": "age", "classes": [18, 65], "weight": 0.5}],
        "denoise": True,
        "selections": [{"where": "city = 'ZQXTOWN' and age > 987"}, {"each": "city", "weight": 2}],
        "weights": {"age": 2},
    },
    method={
        "criterion": "selection",
        "split_on": ["age"],
        "weight_rule": "blend",
        "alpha": 0.3,
        "min_gain": 4,
        "seed": 77,
    },
)


def test_demands_and_workload_are_public_but_for_what_is_selected() -> None:
    found = published(spec_of(WHOLE))
    assert found["privacy"] == {
        "k": 2,
        "suppression_limit": 0.0,
        "max_confidence": 0.9,
        "diversity": [
            {"column": "illness", "model": "beta-likeness", "beta": 2.0, "enhanced": True},
            {"column": "illness", "model": "distinct-l", "l": 3},
        ],
    }
    assert found["workload"] == {
        "targets": [
            {"column": "outcome", "weight": 1.0, "scale": False},
            {"column": "age", "classes": [18.0, 65.0], "weight": 0.5, "scale": True},
        ],
        "denoise": True,
        "selections": 2,
        "weights": {"age": 2.0},
    }
    assert found["method"] == {
        "algorithm": "mondrian",
        "criterion": "selection",
        "cut_points": "simplest",
        "candidates": "boundary",
        "split_on": ["age"],
        "weight_rule": "blend",
        "alpha": 0.3,
        "min_gain": 4.0,
    }
    for secret in ("ZQXTOWN", "987", "people.csv", "where", "77"):
        assert secret not in json.dumps(found)


def test_targets_that_are_not_listed_are_not_listed_in_public() -> None:
    assert published(spec_of(people()))["workload"] == {"denoise": "auto", "selections": 0, "weights": {}}


@pytest.mark.parametrize(
    ("method", "workload", "settled"),
    [
        ({}, {}, (True, "auto")),
        ({"criterion": "infogain"}, {}, (False, 0.0)),
        ({"criterion": "median"}, {}, (False, 0.0)),
        ({"min_gain": 0}, {}, (True, 0.0)),
        ({"min_gain": 0.7}, {}, (True, 0.7)),
        ({}, {"denoise": False}, (False, 0.0)),
        ({"criterion": "infogain"}, {"denoise": True}, (True, 0.0)),
        ({}, {"weights": {"age": 2.0}}, (True, 0.0)),
        ({}, {"targets": []}, (False, 0.0)),
    ],
)
def test_what_auto_stands_for_is_public(
    method: dict[str, Any], workload: dict[str, Any], settled: tuple[Any, Any]
) -> None:
    spec = spec_of(people(method=method, workload=workload))
    found = published(spec.settled(1000))
    assert (found["workload"]["denoise"], found["method"]["min_gain"]) == settled
    assert spec.settled(1000).settled(1000) == spec.settled(1000)


def test_few_rows_are_not_denoised_unless_that_is_written() -> None:
    spec = spec_of(people()).settled(99)
    assert (spec.workload.denoise, spec.method.min_gain) == (False, 0.0)
    spec = spec_of(people(workload={"denoise": True})).settled(99)
    assert (spec.workload.denoise, spec.method.min_gain) == (True, "auto")


def test_algorithms_without_splits_have_nothing_to_settle() -> None:
    spec = spec_of(people(method={"algorithm": "tdr"}))
    assert spec.settled(1000) is spec


def test_parameters_that_no_model_has_are_not_public() -> None:
    spec = spec_of(demanded({"model": "distinct-l", "l": 2}))
    demand = DiversitySpec("illness", "distinct-l", {"l": 2, "remark": "ZQX"})
    (found,) = published(replace(spec, privacy=replace(spec.privacy, diversity=(demand,))))["privacy"]["diversity"]
    assert found == {"column": "illness", "model": "distinct-l", "l": 2}


TREE = {"name": "*", "children": [{"name": "ab", "children": [{"name": "a"}, {"name": "b"}]}, {"name": "c"}]}


@pytest.mark.parametrize(
    ("distance", "settings", "added"),
    [
        (None, {"taxonomy": TREE}, {"distance": "hierarchical", "taxonomy": TREE}),
        ("hierarchical", {"taxonomy": Taxonomy.from_tree(TREE)}, {"distance": "hierarchical", "taxonomy": TREE}),
        (None, {"type": "ordinal", "order": ["b", "a"]}, {"distance": "ordered", "order": ["b", "a"]}),
        ("equal", {"type": "ordinal"}, {"distance": "equal"}),
        (None, {"type": "continuous"}, {"distance": "ordered"}),
        (None, {"type": "nominal"}, {"distance": "equal"}),
        (None, {}, {}),
    ],
)
def test_a_public_demand_has_all_it_is_measured_by(
    distance: str | None, settings: dict[str, Any], added: dict[str, Any]
) -> None:
    demand = {"model": "t-closeness", "t": 0.2} | ({"distance": distance} if distance else {})
    spec = spec_of(demanded(demand, illness=settings))
    (found,) = published(spec)["privacy"]["diversity"]
    assert found == {"column": "illness", "model": "t-closeness", "t": 0.2, **added}


def test_a_taxonomy_is_read_from_its_file_for_the_public(tmp_path: Path) -> None:
    (tmp_path / "illness.csv").write_text("a;ab;*\nb;ab;*\nc;c;*\n")
    tables = demanded({"model": "t-closeness", "t": 0.2}, illness={"taxonomy": "illness.csv"})
    (found,) = published(spec_of(tables, folder=tmp_path))["privacy"]["diversity"]
    assert found["taxonomy"] == TREE
    assert "illness.csv" not in json.dumps(found)


def test_types_of_the_data_settle_the_distance() -> None:
    spec = spec_of(demanded({"model": "t-closeness", "t": 0.2}))
    for kind, distance in ((ColumnType.NOMINAL, "equal"), (ColumnType.DATE, "ordered")):
        (found,) = published(spec, illness=kind)["privacy"]["diversity"]
        assert found["distance"] == distance


# --- and read again ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tables",
    [
        people(),
        WHOLE,
        people(method={"criterion": "infogain"}),
        people(workload={"targets": []}),
        demanded({"model": "t-closeness", "t": 0.2}, illness={"taxonomy": TREE}),
        demanded({"model": "t-closeness", "t": 0.2}, illness={"type": "ordinal", "order": ["b", "a"]}),
        demanded({"model": "t-closeness", "t": 0.2, "distance": "equal"}, {"model": "variance", "variance": 2}),
    ],
    ids=["plain", "whole", "infogain", "no targets", "taxonomy", "order", "two"],
)
def test_the_public_part_of_a_spec_is_public_again(tables: dict[str, Any]) -> None:
    spec = spec_of(tables)
    found = published(spec)
    before = copy.deepcopy(found)
    again = public_spec(found)
    assert found == before
    assert published(again) == found
    assert again.targets == spec.targets
    assert again.workload.selections == (SelectionSpec(),) * len(spec.workload.selections)
    assert again.method == replace(spec.method, seed=0)
    assert [(demand.column, demand.model) for demand in again.privacy.diversity] == [
        (demand.column, demand.model) for demand in spec.privacy.diversity
    ]
    assert again.columns["illness"].taxonomy == spec.columns["illness"].taxonomy
    assert again.columns["illness"].order == spec.columns["illness"].order


def test_manifests_from_before_workloads_are_read() -> None:
    old = published(spec_of(people()))
    del old["workload"], old["privacy"]["diversity"], old["privacy"]["max_confidence"]
    old["method"] = {"algorithm": "mondrian", "criterion": "auto", "cut_points": "simplest"}
    spec = public_spec(old)
    assert spec.privacy.diversity == ()
    assert spec.targets == (TargetSpec("outcome"),)


@pytest.mark.parametrize("selections", [-1, "2", [{"where": "age > 5"}], 1.5])
def test_selections_of_a_manifest_are_a_number(selections: Any) -> None:
    found = published(spec_of(people()))
    found["workload"]["selections"] = selections
    with pytest.raises(SpecError, match="spec.workload.selections is .*a whole number"):
        public_spec(found)


def test_a_spec_cannot_say_only_how_many_selections_there_are() -> None:
    with pytest.raises(SpecError, match="workload.selections must be a list"):
        spec_of(people(workload={"selections": 2}))
    found = published(spec_of(people(method={"criterion": "selection"}, workload={"selections": [{"each": "age"}]})))
    found["workload"]["selections"] = 0
    with pytest.raises(SpecError, match="needs selections"):
        public_spec(found)
