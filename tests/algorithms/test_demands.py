# SPDX-License-Identifier: Apache-2.0
"""Demands bound to a table: which columns are guarded by what, who is counted, and what is refused from the start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from anonfit.algorithms.demands import Demands, DiversityRequest, bind_constraints, refuse_infeasible
from anonfit.engines.memory.forms import Constraint
from anonfit.errors import Infeasible, SpecError
from anonfit.tables.schema import Column, ColumnType, KnownValues, Persons, Role, Schema
from anonfit.tables.taxonomy import Taxonomy
from anonfit.workload.targets import TargetRequest

FRAME = pl.DataFrame(
    {
        "age": [1, 2, 3, 4, 5, 6],
        "ward": ["a", "a", "b", None, "b", "a"],
        "cost": [10.0, 20.0, 30.0, 10.0, 20.0, 90.0],
        "died": [False, False, True, False, True, False],
    }
)
SCHEMA = Schema(
    (
        Column("age", Role.QUASI_IDENTIFIER),
        Column("ward", Role.SENSITIVE),
        Column("cost", Role.SENSITIVE),
        Column("died", Role.TARGET),
    )
)


def values_of(frame: pl.DataFrame, *, counts: Any = None, entities: Any = None) -> Callable[[str], KnownValues]:
    persons = Persons(len(frame), counts, entities)
    return lambda name: KnownValues(frame.select(name), None, persons)


def guarded(demands: Demands, schema: Schema = SCHEMA, **words: Any) -> list[Constraint]:
    return bind_constraints(demands, schema, values_of(FRAME, **words))


def asked(column: str, model: str, **parameters: Any) -> DiversityRequest:
    return DiversityRequest(column, model, parameters)


def test_without_demands_nothing_is_guarded() -> None:
    assert guarded(Demands(3, targets=(TargetRequest("died"),))) == []


def test_models_of_a_column_guard_it_together() -> None:
    one, other = guarded(
        Demands(
            2,
            (
                asked("ward", "distinct-l", l=2),
                asked("cost", "variance", variance=1.0),
                asked("ward", "alpha-k", alpha=0.9),
            ),
        )
    )
    assert (one.column.name, [model.name for model in one.models]) == ("ward", ["distinct-l", "alpha-k"])
    assert (other.column.name, [model.name for model in other.models]) == ("cost", ["variance"])
    assert one.codes.tolist() == [1, 1, 2, 0, 2, 1]
    assert one.column.whole.tolist() == [1, 3, 2]


def test_counts_and_entities_say_who_is_counted() -> None:
    demand = Demands(2, (asked("ward", "distinct-l", l=2),))
    counts = np.array([1, 1, 5, 2, 1, 1], np.uint32)
    assert guarded(demand, counts=counts)[0].column.whole.tolist() == [2, 3, 6]
    entities = np.array([0, 0, 0, 1, 1, 1], np.uint32)
    assert guarded(demand, entities=entities)[0].column.whole.tolist() == [1, 2, 2]


def test_what_is_declared_of_a_sensitive_column_counts() -> None:
    tree = Taxonomy.from_tree({"name": "*", "children": [{"name": "b"}, {"name": "x", "children": [{"name": "a"}]}]})
    schema = Schema((Column("age", Role.QUASI_IDENTIFIER), Column("ward", Role.SENSITIVE, taxonomy=tree)))
    found = guarded(Demands(2, (asked("ward", "t-closeness", t=0.4),)), schema)[0]
    assert found.codes.tolist() == [2, 2, 1, 0, 1, 2]
    ordinal = Column("ward", Role.SENSITIVE, ColumnType.ORDINAL, order=("b", "a"))
    found = guarded(Demands(2, (asked("ward", "t-closeness", t=0.4),)), Schema((ordinal,)))[0]
    assert found.column.ordered
    assert found.codes.tolist() == [2, 2, 1, 0, 1, 2]


# --- max_confidence ---------------------------------------------------------------------------------------------


def confidence(*targets: TargetRequest, schema: Schema = SCHEMA) -> list[Constraint]:
    return guarded(Demands(2, max_confidence=0.8, targets=targets), schema)


def test_every_target_is_held_to_the_largest_confidence() -> None:
    (one,) = confidence(TargetRequest("died"))
    assert [model.name for model in one.models] == ["max_confidence"]
    assert one.column.whole.tolist() == [4, 2]


def test_of_a_number_the_classes_are_held() -> None:
    schema = Schema((Column("age", Role.QUASI_IDENTIFIER), Column("cost", Role.TARGET)))
    (one,) = confidence(TargetRequest("cost", classes=(15.0, 40.0)), schema=schema)
    assert one.codes.tolist() == [0, 1, 1, 0, 1, 2]
    (one,) = confidence(TargetRequest("cost", equal_width=2), schema=schema)
    assert one.codes.tolist() == [0, 0, 0, 0, 0, 1]


def test_a_number_that_is_estimated_has_no_classes_to_be_sure_of() -> None:
    schema = Schema((Column("age", Role.QUASI_IDENTIFIER), Column("cost", Role.TARGET, ColumnType.CONTINUOUS)))
    with pytest.raises(SpecError, match="target 'cost' is a number: give classes, equal_width or type = 'nominal'"):
        confidence(TargetRequest("cost"), schema=schema)


def test_numbers_that_the_criterion_takes_for_classes_are_held() -> None:
    frame = pl.DataFrame({"age": range(30), "grade": range(30)})
    schema = Schema((Column("age", Role.QUASI_IDENTIFIER), Column("grade", Role.TARGET)))

    def held(criterion: str) -> list[Constraint]:
        demands = Demands(2, max_confidence=0.8, targets=(TargetRequest("grade"),), criterion=criterion)
        return bind_constraints(demands, schema, values_of(frame))

    assert held("infogain")[0].column.whole.tolist() == [1] * 30
    for criterion in ("auto", "lsd", "median"):
        with pytest.raises(SpecError, match="'grade' is a number"):
            held(criterion)
    few = frame.with_columns(grade=pl.col("grade") % 2)
    demands = Demands(2, max_confidence=0.8, targets=(TargetRequest("grade"),), criterion="lsd")
    assert bind_constraints(demands, schema, values_of(few))[0].column.whole.tolist() == [15, 15]


def test_dates_have_no_classes_to_be_sure_of() -> None:
    frame = pl.DataFrame({"age": range(3), "told": pl.Series([1, 2, 3], dtype=pl.Int32).cast(pl.Date)})
    schema = Schema((Column("age", Role.QUASI_IDENTIFIER), Column("told", Role.TARGET)))
    demands = Demands(2, max_confidence=0.8, targets=(TargetRequest("told"),))
    with pytest.raises(SpecError, match="'told' is a date: give type = 'nominal'"):
        bind_constraints(demands, schema, values_of(frame))


def test_a_quasi_identifier_that_is_a_target_is_not_released_raw_and_not_held() -> None:
    assert confidence(TargetRequest("age", classes=(3.0,))) == []


# --- what no division can mend ----------------------------------------------------------------------------------


def test_too_few_persons_are_told_first() -> None:
    demands = Demands(7, (asked("ward", "distinct-l", l=9),))
    with pytest.raises(Infeasible, match="6 person"):
        refuse_infeasible(demands, 6, guarded(demands))


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        (asked("ward", "distinct-l", l=4), "ward has 3 distinct values, missing among them,.* l cannot exceed 3"),
        (asked("ward", "entropy-l", l=3.0), "ward has entropy 1.459 bits .* l cannot exceed 2.74"),
        (asked("ward", "alpha-k", alpha=0.49), "50.00% .* alpha must be at least 0.5"),
        (asked("cost", "variance", variance=5000.0), "cost has variance 766.66.* cannot exceed 766.6;"),
    ],
)
def test_a_table_that_does_not_hold_a_demand_is_refused_with_its_own_figures(
    request_: DiversityRequest, sentence: str
) -> None:
    demands = Demands(2, (asked("ward", "distinct-l", l=2), request_))
    with pytest.raises(Infeasible, match=sentence):
        refuse_infeasible(demands, 6, guarded(demands))


def test_a_table_that_holds_all_demands_passes() -> None:
    demands = Demands(
        6, (asked("ward", "distinct-l", l=3), asked("cost", "variance", variance=700.0)), 0.7, (TargetRequest("died"),)
    )
    refuse_infeasible(demands, 6, guarded(demands))


def test_a_target_that_is_too_certain_is_told_in_its_own_words() -> None:
    demands = Demands(2, max_confidence=0.6, targets=(TargetRequest("died"),))
    with pytest.raises(Infeasible, match="max_confidence must be at least 0.666"):
        refuse_infeasible(demands, 6, guarded(demands))


def test_a_model_of_numbers_is_refused_for_words() -> None:
    with pytest.raises(SpecError, match="variance is for numbers"):
        guarded(Demands(2, (asked("ward", "variance", variance=1.0),)))
