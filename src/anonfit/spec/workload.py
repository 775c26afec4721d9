# SPDX-License-Identifier: Apache-2.0
"""The `[workload]` of a spec: read, and held against the columns and the method."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from anonfit.algorithms.demands import not_capped
from anonfit.errors import did_you_mean, listed
from anonfit.spec.application import KEYS, read_application
from anonfit.spec.faults import ABOVE_ZERO, AT_LEAST_ZERO, Faults, Numbers, without_role
from anonfit.spec.model import MethodSpec, SelectionSpec, Spec, TargetSpec, WorkloadSpec
from anonfit.spec.query_log import check_query_log, read_query_log
from anonfit.tables.schema import ColumnType, Role
from anonfit.workload.selections import why_guarded
from anonfit.workload.targets import not_scaled

__all__ = ["check_workload", "read_workload"]

ANY = Numbers("a number", lambda _: True)


def read_workload(table: dict[str, Any], faults: Faults) -> WorkloadSpec:
    """What the release is for."""
    faults.unknown(table, ("targets", "denoise", "selections", "weights", "query_log", "rules", *KEYS), "workload")
    return WorkloadSpec(
        targets=_targets(table["targets"], faults) if "targets" in table else None,
        denoise=faults.kind(table, "denoise", "workload", bool, "true or false", False),
        selections=_selections(table.get("selections", ()), faults),
        weights=_weights(faults.table(table.get("weights", {}), "workload.weights"), faults),
        query_log=read_query_log(table.get("query_log"), faults),
        rules=faults.kind(table, "rules", "workload", bool, "true or false", False),
        **read_application(table, faults),
    )


def _weights(table: dict[str, Any], faults: Faults) -> dict[str, float]:
    return {name: faults.number(table, name, "workload.weights", AT_LEAST_ZERO, 1.0) for name in table}


# --- targets ----------------------------------------------------------------------------------------------------


def _targets(value: Any, faults: Faults) -> tuple[TargetSpec, ...]:
    entries = faults.entries(value, "workload.targets", '["outcome", { column = "cost", weight = 0.5 }]')
    found = [_target(entry, f"workload.targets[{number}]", faults) for number, entry in enumerate(entries)]
    return tuple(target for target in found if target is not None)


def _target(entry: Any, where: str, faults: Faults) -> TargetSpec | None:
    if not isinstance(entry, str | Mapping):
        faults.add(
            f'{where} must be the name of a column, or a table such as {{ column = "cost", weight = 0.5 }}; '
            f"found {entry!r}."
        )
        return None
    table: dict[str, Any] = {"column": entry} if isinstance(entry, str) else faults.table(entry, where)
    faults.unknown(table, ("column", "classes", "equal_width", "weight", "scale"), where)
    if "column" not in table:
        faults.add(f"{where} has no column; name the one to predict.")
    if "classes" in table and "equal_width" in table:
        faults.add(f"{where}: classes and equal_width are two ways to make classes of numbers; remove one.")
    column = faults.kind(table, "column", where, str, "the name of a column", None)
    found = TargetSpec(
        column or "",
        classes=_classes(table, where, faults),
        equal_width=_equal_width(table, where, faults),
        weight=faults.number(table, "weight", where, ABOVE_ZERO, 1.0),
        scale=faults.kind(table, "scale", where, bool, "true or false", True),
    )
    return found if column is not None else None


def _classes(table: Mapping[str, Any], where: str, faults: Faults) -> tuple[float, ...]:
    if "classes" not in table:
        return ()
    value = table["classes"]
    if isinstance(value, list | tuple) and value and all(ANY.have(number) for number in value):
        found = tuple(float(number) for number in value)
        if all(low < high for low, high in pairwise(found)):
            return found
    faults.add(
        f"{where}.classes must be thresholds between classes, ascending numbers such as [30000, 60000]; "
        f"found {value!r}."
    )
    return ()


def _equal_width(table: Mapping[str, Any], where: str, faults: Faults) -> int | None:
    found: int | None = faults.kind(table, "equal_width", where, int, "a whole number of classes", None)
    if found is not None and found < 2:
        faults.add(f"{where}.equal_width must be at least 2, the number of classes; found {found}.")
        return None
    return found


# --- selections -------------------------------------------------------------------------------------------------


def _selections(value: Any, faults: Faults) -> tuple[SelectionSpec, ...]:
    entries = faults.entries(value, "workload.selections", '[{ where = "age >= 50" }, { each = "country" }]')
    found = [_selection(entry, f"workload.selections[{number}]", faults) for number, entry in enumerate(entries)]
    return tuple(selection for selection in found if selection is not None)


def _selection(entry: Any, where: str, faults: Faults) -> SelectionSpec | None:
    table = faults.table(entry, where)
    if not isinstance(entry, Mapping):
        return None
    faults.unknown(table, ("where", "each", "weight"), where)
    weight = faults.number(table, "weight", where, AT_LEAST_ZERO, 1.0)
    if ("where" in table) == ("each" in table):
        faults.add(f'{where} must have a where (a predicate such as "age >= 50") or an each (a column), and not both.')
        return None
    key = "where" if "where" in table else "each"
    text = faults.kind(table, key, where, str, "a predicate" if key == "where" else "the name of a column", None)
    if text is None:
        return None
    if key == "each":
        return SelectionSpec(each=text, weight=weight)
    if not text.strip():
        faults.add(f'{where}.where is empty; write which rows are meant, such as "age >= 50".')
        return None
    return SelectionSpec(where=text, weight=weight)


# --- against the columns and the method -------------------------------------------------------------------------


def check_workload(spec: Spec, faults: Faults) -> None:
    """Faults between the workload, the columns and the method."""
    twice = [name for name, times in Counter(target.column for target in spec.targets).items() if times > 1]
    if twice:
        faults.add(f"workload.targets names {listed(twice)} twice; one entry says all of a target.")
    for target in spec.workload.targets or ():
        _check_target(target, spec, faults)
    for selection in spec.workload.selections:
        if selection.each is not None:
            _check_each(selection.each, spec, faults)
    _check_quasi_identifiers(spec.workload.weights, "workload.weights", spec, faults)
    _check_quasi_identifiers(spec.method.split_on, "method.split_on", spec, faults)
    if len(set(spec.method.split_on)) < len(spec.method.split_on):
        faults.add("method.split_on names a column twice.")
    check_query_log(spec, faults)
    if not faults.within("workload") and not faults.unread:
        _check_method(spec, faults)


def _check_target(target: TargetSpec, spec: Spec, faults: Faults) -> None:
    name, column = target.column, spec.columns.get(target.column)
    if column is None:
        if name not in faults.unread:
            faults.add(f"workload.targets names {without_role(name, Role.TARGET, spec)}")
        return
    if column.role == Role.SENSITIVE and spec.method.algorithm != "tree":
        faults.add(
            f"workload.targets: '{name}' is sensitive: a column cannot be both protected and predicted, since what "
            "predicts it well tells it of persons; give it the role 'target', or leave it out of the targets."
        )
    elif column.role not in (Role.TARGET, Role.QUASI_IDENTIFIER, Role.SENSITIVE):
        faults.add(
            f"workload.targets: the role of '{name}' is '{column.role}'; a target's role is 'target' (released as it "
            "is) or 'quasi-identifier' (released generalized)."
        )
    by_classes = spec.method.criterion == "infogain" or spec.method.algorithm != "mondrian"
    is_class = target.classes or target.equal_width or column.type in (ColumnType.NOMINAL, ColumnType.ORDINAL)
    if not target.scale and (by_classes or is_class):
        faults.add(not_scaled(name))
    made = "classes" if target.classes else "equal_width" if target.equal_width else None
    if made and column.type not in (ColumnType.CONTINUOUS, None):
        faults.add(f"workload.targets: {made} of '{name}' makes classes of numbers; its type is '{column.type}'.")


def _check_each(name: str, spec: Spec, faults: Faults) -> None:
    column = spec.columns.get(name)
    if column is None:
        # Without a role of its own it has the default one; whether there is such a column, only the data can say.
        if spec.data.default_role is None and name not in faults.unread:
            faults.add(f"workload.selections: each = '{name}' has no role; {did_you_mean(name, spec.columns)}")
    elif column.role != Role.QUASI_IDENTIFIER and not column.role.is_released_raw:
        faults.add(
            f"workload.selections: each = '{name}' is not released (its role is '{column.role}'), so nobody can select "
            "by it; name a quasi-identifier or a column that is released as it is."
        )
    elif why := why_guarded(name, column.role, is_capped=spec.privacy.max_confidence < 1):
        faults.add(f"workload.selections: each = {why}")


def _check_quasi_identifiers(names: Iterable[str], where: str, spec: Spec, faults: Faults) -> None:
    known = spec.of_role(Role.QUASI_IDENTIFIER)
    for name in names if known else ():
        if name not in known and name not in faults.unread:
            faults.add(f"{where} names '{name}', which is no quasi-identifier; {did_you_mean(name, known)}")


def _check_method(spec: Spec, faults: Faults) -> None:
    """What the method and the demands need of a workload; nothing is asked in vain."""
    method, workload = spec.method, spec.workload
    some_target = "give a column the role 'target', or list one in workload.targets."
    if method.criterion in ("infogain", "lsd") and not spec.targets:
        faults.add(f"method.criterion = '{method.criterion}' needs a target: {some_target}")
    learns = workload.query_log is not None and workload.query_log.learn
    if method.criterion == "selection" and not any(one.weight for one in workload.selections) and not learns:
        faults.add(
            "method.criterion = 'selection' needs selections with a weight above 0: write them as "
            "[[workload.selections]]."
        )
    if workload.weights and not any(workload.weights.get(name, 1.0) for name in spec.of_role(Role.QUASI_IDENTIFIER)):
        faults.add("workload.weights are 0 for every quasi-identifier, so none matters; raise one, or remove them.")
    has_weights = bool(spec.weights or workload.weights_from or learns)
    if method.criterion == "weighted" and not has_weights:
        faults.add("method.criterion = 'weighted' needs weights: write them in [workload.weights].")
    is_steered = spec.targets and method.criterion not in ("median", "weighted")
    if method.min_gain > 0 and not is_steered and method.criterion not in ("clustering", "explore"):
        leaves_out = (
            f"criterion = '{method.criterion}' leaves targets out; remove min_gain, or choose another criterion."
        )
        steers = leaves_out if spec.targets else f"remove it, or {some_target}"
        faults.add(f"method.min_gain is a gain in what regions tell of targets, and none steers the splits: {steers}")
    if workload.denoise and not spec.targets:
        faults.add(f"workload.denoise has no target to work on: {some_target}")
    elif workload.denoise and method.criterion in ("median", "weighted", "clustering"):
        faults.add(
            f"workload.denoise does not go with criterion = '{method.criterion}', which uses no targets; remove it."
        )
    is_mondrian = method.algorithm == "mondrian" and method.criterion not in ("clustering", "explore")
    if method.candidates != MethodSpec().candidates and is_mondrian and (not is_steered or method.criterion == "lsd"):
        faults.add(
            "method.candidates is where cuts for the classes of targets are looked for, and none steers; remove it."
        )
    if spec.privacy.max_confidence < 1 and method.algorithm != "tree":
        _check_capped(spec, some_target, faults)
    if method.weight_rule not in (None, "first") and not has_weights:
        faults.add(f"method.weight_rule = '{method.weight_rule}' needs weights: write them in [workload.weights].")
    is_known = not faults.within("method.weight_rule")
    if method.alpha != MethodSpec().alpha and method.weight_rule not in ("blend", "combined") and is_known:
        faults.add("method.alpha is for weight_rule = 'blend' or 'combined' only; write that, or remove alpha.")


def _check_capped(spec: Spec, some_target: str, faults: Faults) -> None:
    """`max_confidence` needs a target that is released as it is, and classes of each such target."""
    if not spec.targets and not spec.of_role(Role.TARGET):
        faults.add(f"privacy.max_confidence is of targets, and there is none: {some_target}")
    elif not spec.of_role(Role.TARGET):
        faults.add(
            "privacy.max_confidence caps targets that are released as they are, and all are quasi-identifiers, which "
            "are released generalized: give a column the role 'target', or remove max_confidence."
        )
    for target in spec.capped_targets:
        column = spec.columns.get(target.column)
        if column is None or column.role != Role.TARGET or target.classes or target.equal_width or column.taxonomy:
            continue
        if column.type in (ColumnType.CONTINUOUS, ColumnType.DATE):
            faults.add(f"privacy.{not_capped(target.column, column.type)}")
