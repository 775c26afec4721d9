# SPDX-License-Identifier: Apache-2.0
"""Columns that a release guards: nothing is selected by them. Asked when a spec is read and before a table is coded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from anonfit.errors import SpecError
from anonfit.tables.schema import Column, Role
from anonfit.workload.parsing import parse_predicate
from anonfit.workload.predicates import ColumnKind, conditions_of, kinds_of
from anonfit.workload.selections import SelectionRequest, predicates_of

if TYPE_CHECKING:
    import polars as pl

__all__ = ["refuse_guarded", "why_guarded"]


def refuse_guarded(
    requests: Sequence[SelectionRequest], columns: Sequence[Column], frame: pl.DataFrame, *, is_capped: bool
) -> None:
    """Refuse selections by columns that the release guards; all faults are reported together.

    Args:
        requests: The selections of a workload.
        columns: All columns of the table.
        frame: Its raw rows.
        is_capped: Whether what groups tell of targets is capped.
    """
    predicates_of(requests, columns, frame)  # refuses those that cannot be read
    kinds = kinds_of(columns, frame)
    faults = [
        f"workload.selections[{number}]: {why}"
        for number, request in enumerate(requests)
        for name in _names(request, kinds)
        if (why := why_guarded(name, kinds[name].declared.role, is_capped=is_capped))
    ]
    if faults:
        raise SpecError(faults)


def _names(request: SelectionRequest, kinds: Mapping[str, ColumnKind]) -> Iterable[str]:
    """The columns that a selection names, each once."""
    if request.where is None:
        return () if request.each is None else (request.each,)
    return dict.fromkeys(condition.column for condition in conditions_of(parse_predicate(request.where, kinds)))


def why_guarded(name: str, role: Role, *, is_capped: bool) -> str | None:
    """Why nothing may be selected by a column; None if it may."""
    if role == Role.SENSITIVE:
        return (
            f"'{name}' is sensitive: regions made for its values, and a report of how well they are answered, would "
            "tell them of persons; select by other columns."
        )
    if role == Role.TARGET and is_capped:
        return (
            f"'{name}' is a target that privacy.max_confidence caps: a report of how well its values are answered "
            "would tell more of persons; select by other columns, or remove max_confidence."
        )
    return None
