# SPDX-License-Identifier: Apache-2.0
"""What a release is for: targets, selections and weights, read or refused in a sentence."""

from __future__ import annotations

from typing import Any

import pytest
from spec_tables import PEOPLE, demanded, fault, faults, people

from anonfit.spec.model import SelectionSpec, Spec, TargetSpec, WorkloadSpec
from anonfit.spec.parse import parse_spec, spec_of


def workload(**settings: Any) -> dict[str, Any]:
    return people(workload=settings)


def read(**settings: Any) -> WorkloadSpec:
    return spec_of(workload(**settings)).workload


# --- targets ----------------------------------------------------------------------------------------------------


def test_targets_are_names_or_tables() -> None:
    found = read(targets=["outcome", {"column": "age", "classes": [18, 65.5], "weight": 2}])
    assert found.targets == (TargetSpec("outcome"), TargetSpec("age", (18.0, 65.5), None, 2.0))
    assert read(targets=[{"column": "age", "scale": False}]).targets == (TargetSpec("age", scale=False),)
    assert read(targets=[{"column": "outcome", "equal_width": 5}]).targets == (TargetSpec("outcome", equal_width=5),)


def test_without_a_list_every_column_of_the_role_is_a_target() -> None:
    both = people({"cost": {"role": "target"}})
    assert spec_of(both).targets == (TargetSpec("outcome"), TargetSpec("cost"))
    assert spec_of(both | {"workload": {"targets": ["cost"]}}).targets == (TargetSpec("cost"),)
    assert spec_of(both | {"workload": {"targets": []}}).targets == ()


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        (5, "workload.targets[0] must be the name of a column"),
        (["outcome"], "workload.targets[0] must be the name of a column"),
        ({"weight": 2}, "workload.targets[0] has no column"),
        ({"column": None}, "workload.targets[0] has no column"),
        ({"column": 5}, "workload.targets[0].column must be the name of a column"),
        ({"column": "outcome", "wieght": 2}, "workload.targets[0].wieght is not a setting; did you mean 'weight'?"),
        ({"column": "outcome", "weight": 0}, "workload.targets[0].weight must be a number above 0"),
        ({"column": "outcome", "weight": -1}, "workload.targets[0].weight must be a number above 0"),
        ({"column": "outcome", "weight": float("inf")}, "workload.targets[0].weight must be a number above 0"),
        ({"column": "outcome", "weight": True}, "workload.targets[0].weight must be a number above 0"),
        ({"column": "outcome", "scale": 1}, "workload.targets[0].scale must be true or false"),
        ({"column": "outcome", "equal_width": 1}, "workload.targets[0].equal_width must be at least 2"),
        ({"column": "outcome", "equal_width": 2.5}, "workload.targets[0].equal_width must be a whole number"),
        ({"column": "outcome", "classes": []}, "workload.targets[0].classes must be thresholds"),
        ({"column": "outcome", "classes": 30000}, "workload.targets[0].classes must be thresholds"),
        ({"column": "outcome", "classes": [2, 1]}, "workload.targets[0].classes must be thresholds"),
        ({"column": "outcome", "classes": [1, 1]}, "workload.targets[0].classes must be thresholds"),
        ({"column": "outcome", "classes": ["low"]}, "workload.targets[0].classes must be thresholds"),
        ({"column": "outcome", "classes": [True]}, "workload.targets[0].classes must be thresholds"),
        ({"column": "outcome", "classes": [float("nan")]}, "workload.targets[0].classes must be thresholds"),
        ({"column": "outcome", "classes": [1], "equal_width": 3}, "workload.targets[0]: classes and equal_width"),
    ],
)
def test_targets_that_cannot_be_read_are_refused(target: Any, sentence: str) -> None:
    assert fault(workload(targets=[target])).startswith(sentence)


def test_targets_that_are_no_list_are_refused() -> None:
    assert fault(workload(targets="outcome")).startswith("workload.targets must be a list, such as")
    assert "two brackets" in fault(workload(targets={"column": "outcome"}))
    assert fault(people(workload=["outcome"])).startswith("[workload] must be a table")


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        ("illness", "a column cannot be both protected and predicted"),
        ("note", "the role of 'note' is 'insensitive'"),
        ("name", "the role of 'name' is 'identifier'"),
        ("outcom", "did you mean 'outcome'?"),
    ],
)
def test_a_target_is_a_target_or_a_quasi_identifier(column: str, sentence: str) -> None:
    assert sentence in fault(workload(targets=[column]))
    assert read(targets=["outcome", "age"]).targets == (TargetSpec("outcome"), TargetSpec("age"))


def test_a_column_is_one_target() -> None:
    assert fault(workload(targets=["outcome", {"column": "outcome", "weight": 2}])).startswith(
        "workload.targets names 'outcome' twice"
    )


@pytest.mark.parametrize("kind", ["nominal", "date"])
@pytest.mark.parametrize("made", [{"classes": [1]}, {"equal_width": 2}])
def test_classes_are_made_of_numbers(kind: str, made: dict[str, Any]) -> None:
    found = people({"outcome": {"type": kind}}, workload={"targets": [{"column": "outcome", **made}]})
    assert fault(found) == (
        f"workload.targets: {next(iter(made))} of 'outcome' makes classes of numbers; its type is '{kind}'."
    )


# --- selections and weights -------------------------------------------------------------------------------------


def test_selections_are_predicates_or_columns() -> None:
    assert read(selections=[{"where": "age > 5", "weight": 0}, {"each": "note"}, {"each": "age"}]).selections == (
        SelectionSpec("age > 5", None, 0.0),
        SelectionSpec(each="note"),
        SelectionSpec(each="age"),
    )


@pytest.mark.parametrize(
    ("selection", "sentence"),
    [
        ("age > 5", "[workload.selections[0]] must be a table"),
        ({}, "workload.selections[0] must have a where"),
        ({"weight": 2}, "workload.selections[0] must have a where"),
        ({"where": "age > 5", "each": "age"}, "workload.selections[0] must have a where"),
        ({"where": "  "}, "workload.selections[0].where is empty"),
        ({"where": 5}, "workload.selections[0].where must be a predicate"),
        ({"each": ["age"]}, "workload.selections[0].each must be the name of a column"),
        ({"where": "age > 5", "weight": -1}, "workload.selections[0].weight must be a number of at least 0"),
        ({"were": "age > 5", "each": "age"}, "workload.selections[0].were is not a setting; did you mean 'where'?"),
        ({"each": "name"}, "workload.selections: each = 'name' is not released"),
        ({"each": "citi"}, "workload.selections: each = 'citi' has no role; did you mean 'city'?"),
    ],
)
def test_selections_that_cannot_be_read_are_refused(selection: Any, sentence: str) -> None:
    assert fault(workload(selections=[selection])).startswith(sentence)


def test_selections_that_are_no_list_are_refused() -> None:
    assert "[[workload.selections]]" in fault(workload(selections={"where": "age > 5"}))
    assert fault(workload(selections=3)).startswith("workload.selections must be a list")


def test_each_may_name_a_column_of_the_default_role() -> None:
    data = {"source": "people.csv", "default_role": "insensitive"}
    found = spec_of(people(data=data, workload={"selections": [{"each": "elsewhere"}]}))
    assert found.workload.selections == (SelectionSpec(each="elsewhere"),)


def test_weights_are_of_quasi_identifiers() -> None:
    assert read(weights={"age": 2, "city": 0}).weights == {"age": 2.0, "city": 0.0}
    assert fault(workload(weights={"outcome": 2})).startswith("workload.weights names 'outcome', which is no quasi-id")
    assert "did you mean 'city'?" in fault(workload(weights={"citi": 2}))
    assert fault(workload(weights=["age"])).startswith("[workload.weights] must be a table")
    for wrong in (-1, float("nan"), float("inf"), "2", True, [2]):
        assert fault(workload(weights={"age": wrong})).startswith("workload.weights.age must be a number of at least 0")


def test_denoise_is_a_switch() -> None:
    assert read(denoise=True).denoise
    assert fault(workload(denoise="yes")).startswith("workload.denoise must be true or false")


def test_unknown_parts_of_a_workload_are_refused() -> None:
    assert fault(workload(target=["outcome"])) == "workload.target is not a setting; did you mean 'targets'?"


# --- with the method --------------------------------------------------------------------------------------------


def test_split_on_names_quasi_identifiers() -> None:
    assert spec_of(people(method={"split_on": ["city"]})).method.split_on == ("city",)
    assert "did you mean 'city'?" in fault(people(method={"split_on": ["citi"]}))
    assert fault(people(method={"split_on": ["outcome"]})).startswith("method.split_on names 'outcome'")
    assert fault(people(method={"split_on": ["age", "age"]})) == "method.split_on names a column twice."


SELECTIONS = [{"where": "age > 5"}]


@pytest.mark.parametrize(
    ("method", "settings", "sentence"),
    [
        ({"criterion": "infogain"}, {"targets": []}, "method.criterion = 'infogain' needs a target"),
        ({"criterion": "lsd"}, {"targets": []}, "method.criterion = 'lsd' needs a target"),
        ({"criterion": "selection"}, {}, "method.criterion = 'selection' needs selections"),
        ({"criterion": "weighted"}, {}, "method.criterion = 'weighted' needs weights"),
        ({}, {"targets": [], "denoise": True}, "workload.denoise has no target"),
        (
            {"min_gain": 1},
            {"targets": []},
            "method.min_gain is a gain in what regions tell of targets, and none steers",
        ),
        ({"min_gain": 1}, {"targets": [], "selections": SELECTIONS}, "method.min_gain is a gain"),
        ({"min_gain": 1, "criterion": "median"}, {}, "method.min_gain is a gain"),
        ({"min_gain": 1, "criterion": "weighted"}, {"weights": {"age": 1}}, "method.min_gain is a gain"),
        ({"weight_rule": "product"}, {}, "method.weight_rule = 'product' needs weights"),
        ({"alpha": 0.3}, {"weights": {"age": 2}}, "method.alpha is for weight_rule = 'blend' or 'combined' only"),
    ],
)
def test_a_method_without_what_it_works_on_is_refused(
    method: dict[str, Any], settings: dict[str, Any], sentence: str
) -> None:
    assert fault(people(method=method, workload=settings)).startswith(sentence)


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ({"criterion": "infogain"}, {}),
        ({"criterion": "lsd"}, {"targets": ["age"]}),
        ({"criterion": "selection"}, {"selections": SELECTIONS}),
        ({"criterion": "weighted"}, {"weights": {"age": 1}}),
        ({"criterion": "median"}, {"targets": ["outcome"], "selections": SELECTIONS}),
        ({"criterion": "auto", "weight_rule": "blend", "alpha": 0}, {"weights": {"age": 1}}),
        ({"criterion": "auto", "min_gain": 1}, {"targets": ["age"]}),
        ({"criterion": "selection", "min_gain": 1}, {"selections": SELECTIONS}),
    ],
)
def test_a_method_with_what_it_works_on_is_read(method: dict[str, Any], settings: dict[str, Any]) -> None:
    found = spec_of(people(method=method, workload=settings))
    assert found.method.criterion == method["criterion"]


def test_a_cap_on_confidence_needs_a_target() -> None:
    without = people(privacy={"k": 2, "max_confidence": 0.8})
    assert spec_of(without).privacy.max_confidence == 0.8
    without["columns"].pop("outcome")
    assert fault(without).startswith("privacy.max_confidence is of targets, and there is none")
    assert "all are quasi-identifiers" in fault(without | {"workload": {"targets": ["age"]}})


@pytest.mark.parametrize("kind", ["continuous", "date"])
def test_a_cap_on_confidence_needs_classes(kind: str) -> None:
    asked = people({"outcome": {"role": "target", "type": kind}}, privacy={"k": 2, "max_confidence": 0.8})
    assert fault(asked).startswith("privacy.max_confidence caps classes, but target 'outcome' is a ")
    assert "type = 'nominal'" in fault(asked)
    assert "'outcome' is a" in fault(asked | {"workload": {"targets": []}})  # it is capped though it steers nothing
    if kind == "continuous":
        classes = {"column": "outcome", "classes": [3]}
        assert spec_of(asked | {"workload": {"targets": [classes]}}).capped_targets[0].classes == (3.0,)


def test_every_column_with_the_role_of_a_target_is_capped() -> None:
    for targets in ([], ["age"], ["outcome"], None):
        settings = {} if targets is None else {"targets": targets}
        found = spec_of(people(workload=settings, privacy={"k": 2, "max_confidence": 0.8}))
        named = [target.column for target in found.capped_targets]
        assert named.count("outcome") == 1
        assert set(named) == {"outcome", *(targets or ())}


def test_nothing_is_selected_by_a_column_that_is_guarded() -> None:
    each = {"workload": {"selections": [{"each": "illness"}]}}
    assert fault(people() | each).startswith("workload.selections: each = 'illness' is sensitive")
    each = {"workload": {"selections": [{"each": "outcome"}]}}
    assert spec_of(people() | each).workload.selections[0].each == "outcome"
    assert "max_confidence caps" in fault(people(privacy={"k": 2, "max_confidence": 0.8}) | each)


def test_faults_that_follow_from_others_are_not_told() -> None:
    assert "did you mean 'target'?" in fault(people({"outcome": {"role": "targt"}}, method={"criterion": "infogain"}))
    assert "[0].weight" in fault(
        people(method={"criterion": "lsd"}, workload={"targets": [{"column": "outcome", "weight": 0}]})
    )
    assert fault(people(method={"weight_rule": "blnd", "alpha": 0.3}, workload={"weights": {"age": 1}})).startswith(
        "method.weight_rule = 'blnd'"
    )


def test_faults_of_all_parts_are_told_together() -> None:
    found = faults(
        demanded({"model": "distinct-l"})
        | {
            "method": {"criterion": "weighted", "split_on": ["town"]},
            "workload": {
                "targets": ["illness", {"column": "outcome", "classes": [2, 1]}],
                "selections": [{"where": ""}, {"each": "name"}],
                "weights": {"agee": -1},
            },
        }
    )
    starts = [
        "privacy.diversity[0]: distinct-l needs l",
        "workload.targets[1].classes",
        "workload.selections[0].where",
        "workload.weights.agee must be",
        "workload.targets: 'illness'",
        "workload.selections: each = 'name'",
        "workload.weights names 'agee'",
        "method.split_on names 'town'",
    ]
    assert len(found) == len(starts)
    assert all(one.startswith(start) for one, start in zip(found, starts, strict=True))


def test_the_whole_section_in_toml() -> None:
    text = (
        PEOPLE
        + """
[workload]
targets = ["outcome", { column = "age", equal_width = 4 }]
denoise = true
[[workload.selections]]
where = "age between 3 and 5"
[[workload.selections]]
each = "city"
weight = 0.5
[workload.weights]
city = 3
"""
    )
    spec: Spec = parse_spec(text)
    assert spec.workload == WorkloadSpec(
        (TargetSpec("outcome"), TargetSpec("age", equal_width=4)),
        True,
        (SelectionSpec("age between 3 and 5"), SelectionSpec(each="city", weight=0.5)),
        {"city": 3.0},
    )


def test_a_column_without_a_role_is_told_with_what_to_do() -> None:
    asked = people(workload={"targets": ["gain"]})
    assert fault(asked) == "workload.targets names 'gain', which has no role; give it the role 'target'."
    asked["workload"] = {"targets": ["outcme"]}
    begin = "workload.targets names 'outcme', which has"
    assert fault(asked) == f"{begin} no role; give it the role 'target', or did you mean 'outcome'?"
    asked["data"] = {"source": "people.csv", "default_role": "insensitive"}
    assert fault(asked) == (
        f"{begin} the default role 'insensitive'; give it the role 'target', or did you mean 'outcome'?"
    )
    asked = demanded({"column": "wealth", "model": "distinct-l", "l": 2})
    assert fault(asked).endswith("of 'wealth', which has no role; give it the role 'sensitive'.")
