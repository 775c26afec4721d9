# SPDX-License-Identifier: Apache-2.0
"""Demands on sensitive columns: every model with its parameters, and no demand that is passed over."""

from __future__ import annotations

from typing import Any

import pytest
from spec_tables import demanded, fault, faults, people

from anonfit.privacy.catalogue import MODELS
from anonfit.spec.columns import distance_of
from anonfit.spec.model import DiversitySpec
from anonfit.spec.parse import parse_spec, spec_of
from anonfit.tables.schema import ColumnType

GOOD: list[dict[str, Any]] = [
    {"model": "distinct-l", "l": 2},
    {"model": "entropy-l", "l": 1.75},
    {"model": "recursive-cl", "c": 0.5, "l": 3},
    {"model": "t-closeness", "t": 0.2},
    {"model": "t-closeness", "t": 0, "distance": "equal"},
    {"model": "alpha-k", "alpha": 0.9},
    {"model": "beta-likeness", "beta": 2.5},
    {"model": "beta-likeness", "beta": 2.5, "enhanced": True},
    {"model": "delta-disclosure", "delta": 1},
    {"model": "squared-error", "error": 1e6},
    {"model": "variance", "variance": 0.5},
]


@pytest.mark.parametrize("demand", GOOD, ids=lambda demand: "-".join(map(str, demand.values())))
def test_every_model_is_read_with_its_parameters(demand: dict[str, Any]) -> None:
    (found,) = spec_of(demanded(demand)).privacy.diversity
    assert found == DiversitySpec("illness", demand["model"], {key: demand[key] for key in demand if key != "model"})


def test_every_model_there_is_was_read_above() -> None:
    assert {demand["model"] for demand in GOOD} == set(MODELS)
    for name, entry in MODELS.items():
        given = [set(demand) - {"model"} for demand in GOOD if demand["model"] == name]
        assert set.union(*given) == {parameter.name for parameter in entry.parameters}


@pytest.mark.parametrize(
    ("demand", "sentence"),
    [
        ({"model": "distinct-l", "l": 2.5}, "privacy.diversity[0].l must be a whole number"),
        ({"model": "distinct-l", "l": 0}, "privacy.diversity[0].l must be"),
        (
            {"model": "distinct-l", "l": 1},
            "privacy.diversity[0].l must be a whole number of at least 2; found 1: ask for",
        ),
        ({"model": "distinct-l", "l": True}, "privacy.diversity[0].l must be"),
        ({"model": "distinct-l", "l": "3"}, "privacy.diversity[0].l must be"),
        ({"model": "entropy-l", "l": 0.99}, "privacy.diversity[0].l must be"),
        ({"model": "entropy-l", "l": float("inf")}, "privacy.diversity[0].l must be"),
        ({"model": "recursive-cl", "c": 0, "l": 2}, "privacy.diversity[0].c must be"),
        ({"model": "recursive-cl", "c": 1, "l": 2.5}, "privacy.diversity[0].l must be a whole number"),
        ({"model": "t-closeness", "t": 1.01}, "privacy.diversity[0].t must be"),
        ({"model": "t-closeness", "t": -0.1}, "privacy.diversity[0].t must be"),
        ({"model": "t-closeness", "t": 0.2, "distance": "order"}, "privacy.diversity[0].distance"),
        ({"model": "alpha-k", "alpha": 0}, "privacy.diversity[0].alpha must be"),
        ({"model": "alpha-k", "alpha": 1.5}, "privacy.diversity[0].alpha must be"),
        ({"model": "beta-likeness", "beta": -1}, "privacy.diversity[0].beta must be"),
        (
            {"model": "beta-likeness", "beta": 1, "enhanced": "yes"},
            "privacy.diversity[0].enhanced must be true or false",
        ),
        ({"model": "delta-disclosure", "delta": -1}, "privacy.diversity[0].delta must be"),
        ({"model": "squared-error", "error": -1}, "privacy.diversity[0].error must be"),
        ({"model": "variance", "variance": float("nan")}, "privacy.diversity[0].variance must be"),
        ({"model": "entropy-l"}, "privacy.diversity[0]: entropy-l needs l"),
        ({"model": "recursive-cl", "l": 3}, "privacy.diversity[0]: recursive-cl needs c"),
        ({"model": "entropy-l", "l": None}, "privacy.diversity[0]: entropy-l needs l"),
        ({"l": 3}, "privacy.diversity[0] has no model"),
        ({"model": None, "l": 3}, "privacy.diversity[0] has no model"),
        (
            {"model": "entropy_l", "l": 3},
            "privacy.diversity[0].model = 'entropy_l' is not known; did you mean 'entropy-l'?",
        ),
        ({"model": 5, "l": 3}, "privacy.diversity[0].model = 5 is not known"),
        ({"column": 5, "model": "distinct-l", "l": 3}, "privacy.diversity[0].column must be the name of a column"),
        ({"column": None, "model": "distinct-l", "l": 3}, "privacy.diversity[0] has no column"),
    ],
)
def test_demands_that_cannot_be_read_are_refused(demand: dict[str, Any], sentence: str) -> None:
    assert fault(demanded(demand)).startswith(sentence)


def test_unknown_parameters_are_refused_with_the_nearest_word() -> None:
    (found,) = faults(demanded({"model": "t-closeness", "t": 0.2, "distanc": "equal"}))
    assert found.startswith("privacy.diversity[0].distanc")
    assert "did you mean 'distance'?" in found
    (found,) = faults(demanded({"model": "distinct-l", "l": 2, "c": 4}))
    assert found.startswith("privacy.diversity[0].c")


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (
            {"column": "illness", "model": "distinct-l", "l": 2},
            "[privacy.diversity] is a list: write [[privacy.diversity]]",
        ),
        ("entropy-l", "privacy.diversity must be a list"),
        (["entropy-l"], "[privacy.diversity[0]] must be a table"),
    ],
)
def test_what_is_no_list_of_tables_is_refused(value: Any, sentence: str) -> None:
    assert fault(people(privacy={"k": 2, "diversity": value})).startswith(sentence)


def test_all_faults_of_all_demands_are_told_together() -> None:
    found = faults(
        demanded(
            {"model": "entropy-l", "l": 0},
            {"model": "recursive-cl"},
            {"column": "age", "model": "distinct-l", "l": 2},
            illness={"typ": "nominal"},
        )
    )
    assert [one.split(";")[0].split(",")[0] for one in found] == [
        "columns.illness.typ is not a setting",
        "privacy.diversity[0].l must be a number above 1",
        "privacy.diversity[1]: recursive-cl needs c",
        "privacy.diversity[1]: recursive-cl needs l",
        "privacy.diversity asks distinct-l of 'age'",
    ]


# --- the columns ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        ("outcome", "cannot be both protected and predicted"),
        ("age", "whose role is 'quasi-identifier'"),
        ("note", "whose role is 'insensitive'"),
        ("name", "whose role is 'identifier'"),
        ("ilness", "did you mean 'illness'?"),
        ("pay", "which has no role; give it the role 'sensitive'"),
    ],
)
def test_a_demand_is_on_a_sensitive_column(column: str, sentence: str) -> None:
    assert sentence in fault(demanded({"column": column, "model": "distinct-l", "l": 2}))


def test_a_column_whose_role_is_misspelled_is_one_fault() -> None:
    assert "did you mean 'sensitive'?" in fault(demanded({"model": "distinct-l", "l": 2}, illness={"role": "sensitiv"}))


TREE = {"name": "*", "children": [{"name": "a"}, {"name": "b"}]}


@pytest.mark.parametrize(
    ("distance", "settings", "sentence"),
    [
        ("hierarchical", {}, "needs a taxonomy in [columns.illness]"),
        ("ordered", {"type": "ordinal"}, "needs order"),
        (None, {"type": "ordinal"}, "needs order"),
        ("ordered", {"type": "nominal"}, "its type is 'nominal'"),
        ("equal", {"taxonomy": TREE}, "the taxonomy of a sensitive column is for t-closeness"),
        ("equal", {"type": "ordinal", "order": ["a", "b"]}, "the order of a sensitive column is for t-closeness"),
        (None, {"type": "ordinal", "order": ["a", "a"]}, "names a value twice"),
        ("ordered", {"type": "continuous", "domain": [0, 1]}, "'domain' can be set for a quasi-identifier only"),
        ("hierarchical", {"taxonomy": TREE, "split": "binary"}, "'split' can be set for a quasi-identifier only"),
    ],
)
def test_a_distance_has_what_it_is_measured_on(distance: str | None, settings: dict[str, Any], sentence: str) -> None:
    demand = {"model": "t-closeness", "t": 0.2} | ({"distance": distance} if distance else {})
    assert sentence in fault(demanded(demand, illness=settings))


@pytest.mark.parametrize(
    ("distance", "settings"),
    [
        ("hierarchical", {"taxonomy": TREE}),
        (None, {"taxonomy": "illness.csv"}),
        ("ordered", {"type": "ordinal", "order": ["a", "b"]}),
        (None, {"type": "ordinal", "order": ["a", "b"]}),
        ("ordered", {"type": "continuous"}),
        ("ordered", {"type": "date", "date_format": "%d.%m.%Y"}),
        ("equal", {"type": "ordinal"}),
        ("ordered", {}),
        (None, {}),
    ],
)
def test_distances_that_can_be_measured_are_read(distance: str | None, settings: dict[str, Any]) -> None:
    demand = {"model": "t-closeness", "t": 0.2} | ({"distance": distance} if distance else {})
    spec = spec_of(demanded(demand, illness=settings))
    assert spec.privacy.diversity[0].parameters.get("distance") == distance


@pytest.mark.parametrize(
    ("given", "kind", "has_taxonomy", "expected"),
    [
        (None, ColumnType.NOMINAL, False, "equal"),
        (None, ColumnType.ORDINAL, False, "ordered"),
        (None, ColumnType.CONTINUOUS, False, "ordered"),
        (None, ColumnType.DATE, False, "ordered"),
        (None, ColumnType.CONTINUOUS, True, "hierarchical"),
        (None, None, True, "hierarchical"),
        (None, None, False, None),
        ("equal", ColumnType.CONTINUOUS, True, "equal"),
    ],
)
def test_the_distance_that_a_column_has_by_itself(
    given: str | None, kind: ColumnType | None, has_taxonomy: bool, expected: str | None
) -> None:
    parameters: dict[str, float | str | bool] = {"t": 0.1} | ({"distance": given} if given else {})
    demand = DiversitySpec("illness", "t-closeness", parameters)
    assert distance_of(demand, type=kind, has_taxonomy=has_taxonomy) == expected


def test_several_demands_on_one_column() -> None:
    text = """
        version = 1
        [columns.age]
        role = "quasi-identifier"
        [columns.illness]
        role = "sensitive"
        type = "nominal"
        [privacy]
        k = 2
        [[privacy.diversity]]
        column = "illness"
        model = "recursive-cl"
        c = 3
        l = 2
        [[privacy.diversity]]
        column = "illness"
        model = "t-closeness"
        t = 0.5
    """
    assert parse_spec(text).privacy.diversity == (
        DiversitySpec("illness", "recursive-cl", {"c": 3.0, "l": 2}),
        DiversitySpec("illness", "t-closeness", {"t": 0.5}),
    )
