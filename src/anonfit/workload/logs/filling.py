# SPDX-License-Identifier: Apache-2.0
"""From the tree of a condition and the values of a statement to a predicate over the columns of a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from anonfit.tables.schema import ColumnType
from anonfit.workload.guarded import why_guarded
from anonfit.workload.literals import Form, Literal, number_in, values_of, written
from anonfit.workload.logs.shapes import Written, slot_of
from anonfit.workload.predicates import (
    ColumnKind,
    Condition,
    Holding,
    Predicate,
    Relation,
    Value,
    all_of,
    any_of,
)

__all__ = ["Columns", "Filled", "Filler", "Slots"]

Slots = Sequence[Sequence[Written]]
MOST_VALUES = 1_000
"""Values of a condition; more are no rectangle that people would ask for again."""

RELATIONS = {
    "=": Relation.IN,
    "<": Relation.LESS,
    "<=": Relation.AT_MOST,
    ">": Relation.MORE,
    ">=": Relation.AT_LEAST,
    "null": Relation.MISSING,
}


class Filled(NamedTuple):
    """A predicate that every row of a query meets: None if none is known; whole if all that meet it are the query's.

    A query that no row can meet has `is_empty`.
    """

    predicate: Predicate | None
    is_whole: bool = True
    is_empty: bool = False


UNKNOWN = Filled(None, is_whole=False)
EVERYTHING = Filled(None)
NOTHING = Filled(None, is_empty=True)


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a table by the names that queries give them, which need not be written in the same case."""

    kinds: Mapping[str, ColumnKind]
    table: str | None = None
    """The name of the table in queries; None: whatever table has a column of that name."""
    is_capped: bool = False

    def name(self, column: Sequence[Any]) -> str | None:
        """The column of a name and the tables that it may be of; None if it is none of this table."""
        name, tables = column
        if self.table is not None and self.table.lower() not in (one.lower() for one in tables):
            return None
        if name in self.kinds:
            return str(name)
        alike = [known for known in self.kinds if known.lower() == name.lower()]
        return alike[0] if len(alike) == 1 else None

    def why_not(self, name: str) -> str | None:
        """Why nothing can be selected by a column; None if it can."""
        kind = self.kinds[name]
        if not kind.is_released:
            return f"'{name}' is not released (its role is '{kind.declared.role}')"
        if why_guarded(name, kind.declared.role, is_capped=self.is_capped):
            return f"'{name}' is guarded (its role is '{kind.declared.role}')"
        return f"'{name}' holds no plain values" if kind.holding == Holding.NOTHING_PLAIN else None


class Filler:
    """Fills trees; `tell` is told why a part could not be used."""

    def __init__(self, columns: Columns, tell: Callable[[str], None]) -> None:
        self.columns = columns
        self.tell = tell
        self.known: dict[tuple[str, str, str], tuple[Value, ...] | str] = {}

    def fill(self, tree: Sequence[Any], slots: Slots, *, negated: bool = False) -> Filled:
        """The predicate of a tree, or of its opposite."""
        kind = tree[0]
        if kind == "not":
            return self.fill(tree[1], slots, negated=not negated)
        if kind in ("and", "or"):
            parts = [self.fill(part, slots, negated=negated) for part in tree[1]]
            return _all_of(parts) if (kind == "and") != negated else _any_of(parts)
        if kind == "truth":
            return EVERYTHING if tree[1] != negated else NOTHING
        if kind == "same":
            first, second = (self.written(value, slots)[0][1] for value in tree[1])
            is_same = first == second or (number_in(first) is not None and number_in(first) == number_in(second))
            return EVERYTHING if is_same != negated else NOTHING
        if kind == "?":
            return self.unknown(tree[1])
        return self.condition(tree, slots, negated=negated)

    def unknown(self, reason: str) -> Filled:
        """A part that could not be used."""
        if reason:
            self.tell(reason)
        return UNKNOWN

    def condition(self, tree: Sequence[Any], slots: Slots, *, negated: bool) -> Filled:
        """A relation between a column and values."""
        name = self.columns.name(tree[1])
        if name is None:
            return self.unknown("is of a column that is not in the spec")
        why = self.columns.why_not(name)
        if why is not None:
            return self.unknown(why)
        kind, relation = self.columns.kinds[name], RELATIONS[tree[0]]
        if relation.is_of_order and kind.type == ColumnType.NOMINAL:
            return self.unknown(f"'{name}' is nominal and compared by order")
        written = [one for value in tree[2] for one in self.written(value, slots)]
        if len(written) > MOST_VALUES:
            return self.unknown(f"'{name}' is compared with more than {MOST_VALUES:,} values")
        found: list[Value] = []
        for form, text in written:
            values = self.values(name, kind, form, text)
            if isinstance(values, str):
                return self.unknown(values)
            found += values
        if relation.is_of_order and len(found) != 1:
            return self.unknown(f"'{name}' is compared by order with several values")
        values = tuple(dict.fromkeys(found))
        return Filled(Condition(name, relation.opposite if negated else relation, values, kind=kind))

    def written(self, value: Sequence[str], slots: Slots) -> list[tuple[str, str]]:
        """The form and text of what stands in a tree for a value, or for a list of values."""
        form, text = value
        sign = "-" if form == Form.NUMBER and text.startswith("-") else ""
        slot = slot_of(text[len(sign) :])
        if slot is None or slot >= len(slots):
            return [(form, text)]
        return [(form, sign + one.text) for one in slots[slot]]

    def values(self, name: str, kind: ColumnKind, form: str, text: str) -> tuple[Value, ...] | str:
        """What a written value means in a column, or why it means nothing."""
        key = (name, form, text)
        if key not in self.known:
            # Many databases compare '50' with numbers as if it were 50.
            is_number = kind.holding == Holding.NUMBERS and form == Form.TEXT and number_in(text) is not None
            literal = Literal(Form.NUMBER if is_number else Form(form), text, text)
            try:
                found = values_of(literal, kind)
                can_be_written = all(number_in(written(one)) is not None for one in found if isinstance(one, Fraction))
            except (ValueError, OverflowError):
                found, can_be_written = (), False
            # A number too large to be written into a spec is none that a column has, either.
            self.known[key] = found if can_be_written else f"'{name}' is compared with a value that it cannot have"
        return self.known[key]


def _all_of(parts: Sequence[Filled]) -> Filled:
    """What is known of rows that meet all parts: those that are not known select more, not fewer."""
    if any(part.is_empty for part in parts):
        return NOTHING
    known = [part.predicate for part in parts if part.predicate is not None]
    return Filled(all_of(known) if known else None, all(part.is_whole for part in parts))


def _any_of(parts: Sequence[Filled]) -> Filled:
    """What is known of rows that meet some part: nothing, if one is not known."""
    left = [part for part in parts if not part.is_empty]
    if not left:
        return NOTHING
    if any(part.predicate is None and part.is_whole for part in left):
        return EVERYTHING
    known = [part.predicate for part in left if part.predicate is not None]
    if len(known) < len(left):
        return UNKNOWN
    return Filled(any_of(known), all(part.is_whole for part in left))
