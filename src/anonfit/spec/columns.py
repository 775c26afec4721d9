# SPDX-License-Identifier: Apache-2.0
"""The `[columns.NAME]` of a spec: read, and each held against itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import date, datetime
from pathlib import Path
from typing import Any

from anonfit.errors import listed
from anonfit.spec.faults import Faults
from anonfit.spec.model import ColumnSpec
from anonfit.tables.schema import ColumnType, Role, Split

__all__ = ["read_column"]


def read_column(name: str, table: dict[str, Any], faults: Faults, *, is_tree: bool = False) -> ColumnSpec | None:
    """What is declared of a column; None if that is not even a role. A tree may test raw columns, too."""
    where = f"columns.{name}"
    faults.unknown(table, [setting.name for setting in fields(ColumnSpec)], where)
    if "role" not in table:
        faults.add(f"{where} has no role; give it one of: {', '.join(Role)}.")
        return None
    role = faults.choice(table, "role", where, Role, None)
    kind = faults.choice(table, "type", where, ColumnType, None)
    split = faults.choice(table, "split", where, Split, None)
    found = ColumnSpec(
        role=Role(role or Role.IDENTIFIER),
        type=ColumnType(kind) if kind else None,
        order=faults.texts(table, "order", where, ()),
        domain=_domain(table, where, faults),
        date_format=faults.kind(table, "date_format", where, str, "a text such as '%d.%m.%Y'", None),
        taxonomy=_taxonomy(table, where, faults),
        split=Split(split) if split else None,
        release=faults.kind(table, "release", where, bool, "true or false", False),
        diversity=_diversity(table, where, faults),
        reason=faults.kind(table, "reason", where, str, "a text", None),
    )
    if role is None:
        return None
    _check_column(where, found, faults, is_tested=is_tree and role in (Role.SENSITIVE, Role.INSENSITIVE))
    return found


def _taxonomy(table: dict[str, Any], where: str, faults: Faults) -> Any:
    value = table.get("taxonomy")
    if value is None or isinstance(value, str | Path | Mapping) or hasattr(value, "leaves"):
        return value
    faults.add(f"{where}.taxonomy must be the name of a taxonomy file; found {value!r}.")
    return None


def _domain(table: dict[str, Any], where: str, faults: Faults) -> tuple[Any, ...]:
    value = table.get("domain")
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or not value:
        faults.add(
            f"{where}.domain must be a list: [lowest, highest], or the names of a nominal column; found {value!r}."
        )
        return ()
    if not all(isinstance(item, str | int | float | date | datetime) for item in value):
        faults.add(f"{where}.domain must hold numbers, dates or texts; found {value!r}.")
        return ()
    return tuple(value)


def _diversity(table: dict[str, Any], where: str, faults: Faults) -> str | None:
    """What a column itself can say of diversity: that none is asked."""
    value = table.get("diversity")
    if value not in (None, "none"):
        faults.add(
            f"{where}.diversity can be 'none' only, with a reason; what is asked of a column stands in "
            f"[[privacy.diversity]]; found {value!r}."
        )
        return None
    return None if value is None else "none"


def _check_waiver(where: str, column: ColumnSpec, faults: Faults) -> None:
    """Nothing is asked of a sensitive column only where that is said, and why."""
    if column.diversity is None and column.reason is None:
        return
    if column.role != Role.SENSITIVE:
        faults.add(
            f"{where}: diversity = 'none' and its reason are for sensitive columns; its role is '{column.role}'."
        )
    elif column.diversity is None:
        faults.add(f"{where}: a reason stands beside diversity = 'none' only; add that, or remove the reason.")
    elif not (column.reason or "").strip():
        faults.add(f"{where}: diversity = 'none' needs a reason = \"…\", which the report publishes.")


def _check_column(where: str, column: ColumnSpec, faults: Faults, *, is_tested: bool) -> None:
    """Faults between the settings of one column; a tree may test it, though it is not generalized."""
    _check_waiver(where, column, faults)
    is_sensitive, is_generalized = column.role == Role.SENSITIVE, column.role == Role.QUASI_IDENTIFIER or is_tested
    if not is_generalized:
        refused = ("domain", "split") if is_sensitive else ("order", "domain", "taxonomy", "split")
        is_left_out = column.role in (Role.IDENTIFIER, Role.ENTITY)
        unused = ("type", "date_format", *(["release"] if is_left_out else []))
        if column.role in (Role.IDENTIFIER, Role.ENTITY, Role.COUNT, Role.SAMPLE_WEIGHT):
            for key in unused:
                if getattr(column, key):
                    faults.add(f"{where}: {key} says nothing of a column whose role is '{column.role}'; remove it.")
        if given := [key for key in refused if getattr(column, key)]:
            faults.add(f"{where}: {listed(given)} can be set for a quasi-identifier only; its role is '{column.role}'.")
    if is_sensitive or is_generalized:
        if column.order and column.type != ColumnType.ORDINAL:
            faults.add(f"{where}: order is for type = 'ordinal' only.")
        if len(set(column.order)) < len(column.order):
            faults.add(f"{where}: order names a value twice.")
        if column.taxonomy and (column.order or (column.domain and is_generalized)):
            faults.add(f"{where}: a taxonomy already says which values there are; remove domain and order.")
    if is_generalized:
        _check_generalized(where, column, faults)


def _check_generalized(where: str, column: ColumnSpec, faults: Faults) -> None:
    """Faults between the settings of a column whose values are told apart in part."""
    if column.release and column.role == Role.QUASI_IDENTIFIER:
        faults.add(f"{where}: release = true is for columns released as they are; a quasi-identifier is generalized.")
    if column.type == ColumnType.ORDINAL and not column.order:
        faults.add(f"{where}: an ordinal column needs order = [lowest, …, highest].")
    if column.split and column.type not in (ColumnType.NOMINAL, None) and not column.taxonomy:
        faults.add(f"{where}: split is for nominal columns and columns with a taxonomy only.")
    if column.domain and column.type == ColumnType.ORDINAL:
        faults.add(f"{where}: order already says which values there are; remove domain.")
    if column.date_format and column.type not in (ColumnType.DATE, None):
        faults.add(f"{where}: date_format is for dates; its type is '{column.type}'.")
    is_range = column.type in (ColumnType.CONTINUOUS, ColumnType.DATE)
    if column.domain and is_range and (len(column.domain) != 2 or not _ascending(column.domain)):
        faults.add(f"{where}: the domain of an ordered column is [lowest, highest].")
    if (
        column.domain
        and column.type in (ColumnType.NOMINAL, None)
        and len({str(name) for name in column.domain}) < len(column.domain)
    ):
        faults.add(f"{where}: domain names a value twice.")


def _ascending(domain: tuple[Any, ...]) -> bool:
    try:
        return bool(domain[0] < domain[1])
    except TypeError:
        return False
