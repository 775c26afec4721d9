# SPDX-License-Identifier: Apache-2.0
"""The `[[privacy.diversity]]` of a spec: read, and held against the columns it is asked of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anonfit.privacy.catalogue import MODELS, Kind, parameter_faults
from anonfit.spec.faults import Faults, without_role
from anonfit.spec.model import ColumnSpec, DiversitySpec, Spec
from anonfit.tables.schema import ColumnType, Role

__all__ = ["check_diversity", "distance_of", "read_diversity", "unasked"]


def read_diversity(value: Any, faults: Faults) -> tuple[DiversitySpec, ...]:
    """The demands of `[[privacy.diversity]]`."""
    where = "privacy.diversity"
    entries = faults.entries(value, where, '[{ column = "diagnosis", model = "entropy-l", l = 3 }]')
    demands = [_demand(entry, f"{where}[{number}]", faults) for number, entry in enumerate(entries)]
    return tuple(demand for demand in demands if demand is not None)


def _demand(entry: Any, where: str, faults: Faults) -> DiversitySpec | None:
    table = faults.table(entry, where)
    if not isinstance(entry, Mapping):
        return None
    for key in ("column", "model"):
        if key not in table:
            faults.add(f"{where} has no {key}; a demand names a sensitive column and a model ({', '.join(MODELS)}).")
    column = faults.kind(table, "column", where, str, "the name of a column", None)
    model = faults.choice(table, "model", where, MODELS, None)
    if model is None:
        return None
    given = {key: value for key, value in table.items() if key not in ("column", "model")}
    for fault in parameter_faults(model, given, where=where):
        faults.add(fault)
    return DiversitySpec(column, model, _parameters(model, given)) if column is not None else None


def _parameters(model: str, given: Mapping[str, Any]) -> dict[str, float | str | bool]:
    """The parameters that are given: whole numbers, other numbers as fractions, words and switches."""
    kinds = {Kind.WHOLE: int, Kind.NUMBER: float}
    return {
        parameter.name: kinds.get(parameter.kind, lambda value: value)(given[parameter.name])
        for parameter in MODELS[model].parameters
        if parameter.name in given and parameter.accepts(given[parameter.name])
    }


def distance_of(demand: DiversitySpec, *, type: ColumnType | None, has_taxonomy: bool) -> str | None:  # noqa: A002 - the spec's word
    """The distance that t-closeness is measured by; None where only the data can say of what type the column is."""
    if "distance" in demand.parameters:
        return str(demand.parameters["distance"])
    if has_taxonomy:
        return "hierarchical"
    if type is None:
        return None
    return "equal" if type == ColumnType.NOMINAL else "ordered"


def check_diversity(spec: Spec, faults: Faults) -> None:
    """Faults between the demands and the columns they are of."""
    for demand in spec.privacy.diversity:
        column = spec.columns.get(demand.column)
        if column is not None and column.role == Role.SENSITIVE:
            _check_closeness(demand, column, faults)
        elif demand.column not in faults.unread and not _is_class(demand, spec):
            faults.add(_not_sensitive(demand, column, spec))
    if not faults.within("privacy.diversity") and spec.method.algorithm != "tree":
        for name in spec.of_role(Role.SENSITIVE):
            _check_used(name, spec, faults)
        for name, fault in unasked(spec).items():
            if f"columns.{name}" not in faults.open and not faults.within(f"columns.{name}:"):
                faults.add(fault)
    if spec.privacy.attack_limit < 1 and not spec.of_role(Role.SENSITIVE) and not faults.unread:
        faults.add("privacy.attack_limit is of sensitive columns, and there is none: give a column that role.")


def unasked(spec: Spec) -> dict[str, str]:
    """The sensitive columns of which nothing is asked though no waiver says so, or of which both is said; and why that
    is a fault.
    """
    asked = {demand.column for demand in spec.privacy.diversity}
    found = {}
    for name in spec.of_role(Role.SENSITIVE):
        is_waived = spec.columns[name].diversity is not None
        if is_waived and name in asked:
            found[name] = f"columns.{name}: diversity = 'none', and [[privacy.diversity]] asks for some; remove one."
        elif not is_waived and name not in asked:
            found[name] = (
                f"columns.{name} is sensitive and nothing is asked of it, so everybody in a group may have the same "
                f'value: ask for a model in [[privacy.diversity]] (model = "entropy-l" and l = 2 are a common start), '
                f'or write diversity = "none" and a reason = "…" in [columns.{name}].'
            )
    return found


def _is_class(demand: DiversitySpec, spec: Spec) -> bool:
    """Whether a demand is of the class that a tree tells."""
    return spec.method.algorithm == "tree" and demand.column in {target.column for target in spec.targets}


def _not_sensitive(demand: DiversitySpec, column: ColumnSpec | None, spec: Spec) -> str:
    place = f"privacy.diversity asks {demand.model} of '{demand.column}'"
    if column is None:
        return f"privacy.diversity asks {demand.model} of {without_role(demand.column, Role.SENSITIVE, spec)}"
    if column.role == Role.TARGET:
        return (
            f"{place}, whose role is 'target': a column cannot be both protected and predicted; give it the role "
            "'sensitive', or cap what groups reveal of targets with privacy.max_confidence."
        )
    return f"{place}, whose role is '{column.role}': diversity is of columns whose role is 'sensitive'."


def _check_closeness(demand: DiversitySpec, column: ColumnSpec, faults: Faults) -> None:
    """A distance needs what it is measured on."""
    if demand.model != "t-closeness":
        return
    where = f"privacy.diversity of '{demand.column}'"
    distance = distance_of(demand, type=column.type, has_taxonomy=column.taxonomy is not None)
    if distance == "hierarchical" and column.taxonomy is None:
        faults.add(f"{where}: the hierarchical distance needs a taxonomy in [columns.{demand.column}].")
    if distance == "ordered" and column.type == ColumnType.ORDINAL and not column.order:
        faults.add(
            f"{where}: the ordered distance of an ordinal column needs order = [lowest, …, highest] in "
            f"[columns.{demand.column}]."
        )
    if distance == "ordered" and column.type == ColumnType.NOMINAL:
        faults.add(
            f"{where}: the ordered distance needs an order, and its type is 'nominal'; use the distance 'equal', or "
            "type = 'ordinal' with order = [lowest, …, highest]."
        )


def _check_used(name: str, spec: Spec, faults: Faults) -> None:
    """The taxonomy or order of a sensitive column is there for a distance only."""
    column = spec.columns[name]
    distances = {
        distance_of(demand, type=column.type, has_taxonomy=column.taxonomy is not None)
        for demand in spec.privacy.diversity
        if demand.column == name and demand.model == "t-closeness"
    }
    for key, distance in (("taxonomy", "hierarchical"), ("order", "ordered")):
        if getattr(column, key) and distance not in distances:
            faults.add(
                f"columns.{name}: the {key} of a sensitive column is for t-closeness with the {distance} distance "
                f"only; ask for that in [[privacy.diversity]], or remove {key}."
            )
