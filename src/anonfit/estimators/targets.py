# SPDX-License-Identifier: Apache-2.0
"""The targets an estimator is given as y: as columns beside X, with what kind of values each has."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from anonfit.criteria.objectives import AUTO, OBJECTIVES, Objective
from anonfit.errors import DataError, RequestError, listed
from anonfit.estimators.inputs import array_column, is_frame
from anonfit.tables.codebook import column_type
from anonfit.tables.frames import from_frame
from anonfit.tables.schema import Column, Role
from anonfit.workload.targets import TargetRequest, is_numeric

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Targets", "targets_of"]


@dataclass(frozen=True, slots=True)
class Targets:
    """The columns of y, and the words for them that `anonymize` takes."""

    columns: tuple[pl.Series, ...] = ()
    entries: tuple[dict[str, Any], ...] = ()
    types: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.columns]


def targets_of(
    y: Any,
    settings: Sequence[str | Mapping[str, Any]] | None,
    *,
    table: pl.DataFrame,
    criterion: str = "auto",
) -> Targets:
    """y as target columns beside a table. `settings` has one entry for each column of y, and may have others for
    quasi-identifiers of the table that are targets too.
    """
    inner, outer = _settings(settings, table.columns)
    if y is None:
        if outer:
            raise RequestError("targets says how y is used, and there is no y; give y to fit.")
        return Targets(entries=tuple(inner))
    check_consistent_length(table, y)
    columns = _columns(y)
    told: list[dict[str, Any]] = outer or [{} for _ in columns]
    if len(told) != len(columns):
        raise RequestError(
            f"targets has {len(told)} entries for y, which has {len(columns)} column(s); give one for each, or none."
        )
    names = _names([column.name for column in columns], told, table.columns)
    columns = tuple(column.alias(name) for column, name in zip(columns, names, strict=True))
    _refuse_missing(columns)
    types = {
        column.name: _kind(column, entry, OBJECTIVES.get(criterion, AUTO))
        for column, entry in zip(columns, told, strict=True)
    }
    entries = [
        {key: value for key, value in entry.items() if key != "type"} | {"column": name}
        for entry, name in zip(told, names, strict=True)
    ]
    return Targets(columns, (*entries, *inner), types)


def _columns(y: Any) -> tuple[pl.Series, ...]:
    """The columns of y; those that have no name get an empty one."""
    import polars as pl

    if is_frame(y):
        found = from_frame(y)
        return tuple(found.get_columns())
    if isinstance(y, pl.Series):
        return (y,)
    if type(y).__module__.split(".")[0] == "pandas" and hasattr(y, "to_frame"):
        name = "" if getattr(y, "name", None) is None else str(y.name)
        return (from_frame(y.to_frame("y"))["y"].alias(name),)
    array = np.asarray(y)
    if array.ndim not in (1, 2) or array.shape[-1] == 0:
        raise DataError(f"y must be a column of values or several; found an array of the shape {array.shape}.")
    if array.ndim == 1:
        return (array_column("", array),)
    return tuple(array_column("", array[:, index]) for index in range(array.shape[1]))


def _settings(
    given: Sequence[str | Mapping[str, Any]] | None, taken: Collection[str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The entries of targets for columns of the table, and those for columns of y."""
    entries = [given] if isinstance(given, str | Mapping) else list(given or ())
    if not all(isinstance(entry, str | Mapping) for entry in entries):
        raise RequestError('an entry of targets is a name, or settings such as {"weight": 0.5, "type": "nominal"}.')
    tables = [{"column": entry} if isinstance(entry, str) else dict(entry) for entry in entries]
    inner = [table for table in tables if table.get("column") in taken]
    return inner, [table for table in tables if table.get("column") not in taken]


def _names(own: Sequence[str], told: Sequence[Mapping[str, Any]], taken: Collection[str]) -> list[str]:
    """A name for each target that no other column has: the one that is told, its own, or `target`."""
    found: list[str] = []
    for name, entry in zip(own, told, strict=True):
        wanted = str(entry.get("column") or name or "target")
        free, number = wanted, 1
        while free in taken or free in found:
            number += 1
            free = f"{wanted}_{number}"
        found.append(free)
    return found


def _refuse_missing(columns: Sequence[pl.Series]) -> None:
    gaps = {
        column.name: column.null_count() + (int(column.is_nan().sum()) if column.dtype.is_float() else 0)
        for column in columns
    }
    if any(gaps.values()):
        raise DataError(
            f"y has missing values ({listed(name for name, count in gaps.items() if count)}: "
            f"{max(gaps.values())} row(s)); leave those rows out of X and y, or fill them."
        )


def _kind(column: pl.Series, entry: Mapping[str, Any], objective: Objective) -> str:
    """Whether a target is of classes or of numbers: what is said, or what `anonymize` would take it for."""
    if entry.get("type"):
        return str(entry["type"])
    declared = Column(column.name, Role.TARGET)
    if entry.get("classes") or entry.get("equal_width") or is_numeric(TargetRequest(""), declared, column, objective):
        return str(column_type(declared, column.dtype))
    return "nominal"
