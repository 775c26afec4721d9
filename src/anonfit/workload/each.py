# SPDX-License-Identifier: Apache-2.0
"""One selection per value of a column."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any

import numpy as np

from anonfit.errors import SpecError
from anonfit.tables.domains import Domain, NominalDomain, name_positions
from anonfit.tables.scales import on_axis
from anonfit.tables.schema import ColumnType
from anonfit.tables.taxonomy_leaves import leaf_positions
from anonfit.workload.literals import written
from anonfit.workload.predicates import ColumnKind, Condition, Holding, Relation, Value
from anonfit.workload.rectangles import LIMIT
from anonfit.workload.truth import ColumnValues

__all__ = ["selections_of_each"]


def selections_of_each(column: ColumnValues, domain: Domain | None) -> list[tuple[str, Condition]]:
    """A condition per value that rows have, missing first, each with the text that says it.

    Args:
        column: The values of the column.
        domain: What its codes stand for, if it is a quasi-identifier: its leaves are its values.
    """
    kind = column.kind
    name = kind.declared.name
    shown = name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else '"' + name.replace('"', '""') + '"'
    found = []
    if column.missing_rows:
        found.append((f"{shown} IS NULL", Condition(name, Relation.MISSING, kind=kind)))
    if isinstance(domain, NominalDomain):
        found += _of_leaves(shown, column, domain)
    elif kind.type == ColumnType.ORDINAL:
        words = [kind.declared.order[rank] for rank in sorted(set(column.ranks.tolist()))]
        found += [(f"{shown} = {written(word)}", _equal(kind, word)) for word in words]
    elif kind.holding in (Holding.TEXTS, Holding.TRUTHS):
        found += [(f"{shown} = {written(word)}", _equal(kind, word)) for word in sorted(column.names)]
    else:
        on_axis(column.distinct)  # refuses numbers that are infinite
        values = [_value(value) for value in column.distinct.to_list()]
        found += [(f"{shown} = {written(value)}", _equal(kind, value)) for value in values]
    if len(found) > LIMIT:
        raise SpecError(
            [f"column '{name}' has {len(found):,} values; one selection each would be more than {LIMIT:,}."]
        )
    return found


def _equal(kind: ColumnKind, value: Value) -> Condition:
    return Condition(kind.declared.name, Relation.IN, (value,), kind=kind)


def _of_leaves(shown: str, column: ColumnValues, domain: NominalDomain) -> list[tuple[str, Condition]]:
    """A condition per leaf that rows have; values too rare to be named are one."""
    kind, leaves = column.kind, domain.taxonomy.leaves
    if kind.declared.taxonomy is not None:
        truths = kind.holding == Holding.TRUTHS
        present = leaf_positions(domain.taxonomy, column.distinct == "true" if truths else column.distinct)
    else:
        present = name_positions(leaves, column.distinct)
        if domain.other is not None:  # a value that happens to be written as that leaf is itself not named
            present[present == domain.taxonomy.leaf_position[domain.other]] = -1
    found = [
        (f"{shown} = {written(leaves[position])}", _equal(kind, _name(leaves[position], kind)))
        for position in np.unique(present[present >= 0]).tolist()
    ]
    if domain.other is not None and (present < 0).any():
        others = tuple(_name(leaf, kind) for leaf in leaves if leaf != domain.other)
        rare = Condition(kind.declared.name, Relation.NOT_IN, others, kind=kind)
        found.append((f"{shown} is none of its frequent values", rare))
    return found


def _name(leaf: str, kind: ColumnKind) -> str:
    return leaf.lower() if kind.holding == Holding.TRUTHS else leaf


def _value(value: Any) -> Value:
    """A value of a frame as a condition compares it."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    return datetime(value.year, value.month, value.day) if isinstance(value, date) else Fraction(value)
