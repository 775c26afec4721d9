# SPDX-License-Identifier: Apache-2.0
"""What every group must hold, bound to a table: its sensitive columns coded, and models over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anonfit.criteria.objectives import OBJECTIVES, Objective
from anonfit.errors import Infeasible, SpecError, counted
from anonfit.privacy.catalogue import make_model
from anonfit.privacy.coding import sensitive_column
from anonfit.privacy.likeness import MaxConfidence
from anonfit.privacy.models import SensitiveColumn
from anonfit.tables.codebook import column_type
from anonfit.tables.schema import Column, ColumnType, KnownValues, Role, Schema
from anonfit.workload.targets import TargetRequest, classes_of, is_numeric

if TYPE_CHECKING:
    import polars as pl

    from anonfit.engines.memory.forms import Constraint


@dataclass(frozen=True, slots=True)
class DiversityRequest:
    """A model of a sensitive column, as it was asked."""

    column: str
    model: str
    parameters: Mapping[str, float | str | bool]


@dataclass(frozen=True, slots=True)
class QuasiIdentifier:
    """Columns, by name, whose every combination must be shared by k persons."""

    columns: tuple[str, ...]
    k: int


@dataclass(frozen=True, slots=True)
class Demands:
    """k persons in every group, diversity of sensitive columns, and a cap on what groups reveal of targets."""

    k: int
    diversity: tuple[DiversityRequest, ...] = ()
    max_confidence: float = 1.0
    targets: tuple[TargetRequest, ...] = ()
    criterion: str = "auto"
    """It may take numbers for classes; then these are capped."""
    quasi_identifiers: tuple[QuasiIdentifier, ...] = ()
    """Several quasi-identifiers, whose groups each hold the demands; none named: all columns are one."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """A quasi-identifier: columns, by number, on which every record shares its values with at least k persons."""

    columns: tuple[int, ...]
    k: int


def requirements_of(demands: Demands, columns: Sequence[str]) -> tuple[Requirement, ...]:
    """The quasi-identifiers that are asked for, over columns by number; without any, all columns are one."""
    if not demands.quasi_identifiers:
        return (Requirement(tuple(range(len(columns))), demands.k),)
    place = {name: number for number, name in enumerate(columns)}
    asked = demands.quasi_identifiers
    return tuple(Requirement(tuple(place[name] for name in named.columns), named.k) for named in asked)


def redundant(requirements: tuple[Requirement, ...]) -> tuple[tuple[int, int], ...]:
    """Requirements that follow from another one, and that other one, which itself follows from none."""
    places = range(len(requirements))

    def follows(number: int, other: int) -> bool:
        """Whether its columns are among the other's and its k is no more; of two that are the same the later does."""
        asked, wider = requirements[number], requirements[other]
        columns, among = set(asked.columns), set(wider.columns)
        same = columns == among and asked.k == wider.k
        return columns <= among and asked.k <= wider.k and (not same or other < number)

    implying = [[other for other in places if follows(number, other)] for number in places]
    first = ((number, (other for other in implying[number] if not implying[other])) for number in places)
    return tuple((number, next(others)) for number, others in first if implying[number])


def bind_constraints(demands: Demands, schema: Schema, values: Callable[[str], KnownValues]) -> list[Constraint]:
    """The columns that privacy models are asked of, coded; `values` gives what a column holds."""
    from anonfit.engines.memory.forms import Constraint

    declared = {column.name: column for column in schema.columns}
    constraints = []
    for name in dict.fromkeys(request.column for request in demands.diversity):
        column, codes = _coded(declared[name], values(name))
        asked = [request for request in demands.diversity if request.column == name]
        models = tuple(make_model(column, request.model, request.parameters) for request in asked)
        constraints.append(Constraint(column, codes, models))
    for target in _capped(demands, declared, values):
        column, codes = _target_classes(target, declared[target.column], values(target.column))
        constraints.append(Constraint(column, codes, (MaxConfidence(column, demands.max_confidence),)))
    return constraints


def has_classes(target: TargetRequest, column: Column, values: pl.Series, objective: Objective) -> bool:
    """Whether a target's values are classes: by what they are, or because the criterion takes them for such."""
    return not (is_numeric(target, column, values) and is_numeric(target, column, values, objective))


def not_capped(name: str, kind: ColumnType) -> str:
    """Why `max_confidence` cannot cap a target that has no classes."""
    if kind == ColumnType.DATE:
        return f"max_confidence caps classes, but target '{name}' is a date: give type = 'nominal'."
    return (
        f"max_confidence caps classes, but target '{name}' is a number: give classes, equal_width or type = 'nominal'."
    )


def _capped(
    demands: Demands, declared: Mapping[str, Column], values: Callable[[str], KnownValues]
) -> list[TargetRequest]:
    """The targets that `max_confidence` caps: all but quasi-identifiers, which are not released as they are."""
    if demands.max_confidence >= 1.0:
        return []
    targets = [request for request in demands.targets if declared[request.column].role != Role.QUASI_IDENTIFIER]
    faults = []
    for target in targets:
        column, own = declared[target.column], values(target.column).frame[target.column]
        if not has_classes(target, column, own, OBJECTIVES[demands.criterion]):
            faults.append(not_capped(target.column, column_type(column, own.dtype)))
    if faults:
        raise SpecError(faults)
    return targets


def _coded(column: Column, values: KnownValues) -> tuple[SensitiveColumn, NDArray[np.uint32]]:
    return sensitive_column(
        values.frame[column.name],
        values.persons.of_rows(),
        type=column.type,
        order=column.order,
        taxonomy=column.taxonomy,
        date_format=column.date_format,
        entities=values.persons.entities,
    )


def _target_classes(
    target: TargetRequest, column: Column, values: KnownValues
) -> tuple[SensitiveColumn, NDArray[np.uint32]]:
    """A target's classes as a sensitive column."""
    import polars as pl

    if not (target.classes or target.equal_width):
        return _coded(replace(column, taxonomy=None), values)
    classes, _ = classes_of(target, column, values.frame[column.name])
    persons = values.persons
    return sensitive_column(pl.Series(target.column, classes), persons.of_rows(), entities=persons.entities)


def refuse_infeasible(demands: Demands, persons: int, constraints: Sequence[Constraint]) -> None:
    """Refuse a table that does not hold the demands as one group: then no division of it does."""
    if persons < demands.k:
        raise Infeasible(
            f"the table is about {counted(persons, 'person')}, fewer than k = {demands.k}: no release can give each "
            f"of them {demands.k - 1} others like them."
        )
    for constraint in constraints:
        for model in constraint.models:
            if not bool(model.allows(constraint.column.whole)):
                raise Infeasible(model.why_not(constraint.column.whole))
