# SPDX-License-Identifier: Apache-2.0
"""What the labels of a column mean: its type, order, domain and taxonomy, read from plain mappings.
The entries of "columns" in recoding.json have this form; users of `audit` may write it by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any, Literal, cast

from anonfit.auditing.scalars import moment, number
from anonfit.auditing.settings import Settings
from anonfit.errors import RecodingError, did_you_mean

__all__ = ["TYPES", "ColumnType", "Meaning", "Tree", "read_meaning"]

ColumnType = Literal["continuous", "date", "ordinal", "nominal"]
TYPES = ("continuous", "date", "ordinal", "nominal")
Ends = tuple[Decimal | None, Decimal | None]


@dataclass(frozen=True, slots=True)
class Tree:
    """A taxonomy: its leaves in depth-first order, and the run of leaves below every name."""

    leaves: tuple[str, ...]
    below: Mapping[str, tuple[int, int]]  # name -> first and last leaf


@dataclass(frozen=True, slots=True)
class Meaning:
    """How the labels of one column are read."""

    name: str
    type: ColumnType
    order: tuple[str, ...] = ()
    domain: Ends = (None, None)
    tree: Tree | None = None
    cuts: frozenset[Decimal] | None = None  # None: not stated
    other: str | None = None
    date_format: str | None = None
    missing: bool | None = None  # whether missing values are among those of the column; None: not stated
    scale: str | None = None  # of dates: whether they are days ("date") or moments ("time")

    def scalar(self, text: str) -> Decimal | None:
        """The place on the line of a continuous or date column that a text states."""
        return moment(text) if self.type == "date" else number(text)


def read_meaning(name: str, entry: Mapping[str, Any]) -> Meaning:
    """One column's meaning from its mapping; faults are errors that name the column."""
    given = Settings(entry, f"the meaning of column '{name}'", RecodingError)
    kind = entry.get("type")
    if kind not in TYPES:
        hint = did_you_mean(str(kind), TYPES)
        raise RecodingError(f"The meaning of column '{name}' has an unknown type: {hint}")
    shell = Meaning(name, cast("ColumnType", kind))
    order = tuple(str(word) for word in given.get("order", list, None) or ())
    if kind == "ordinal" and (not order or len(set(order)) < len(order)):
        raise RecodingError(f"The meaning of ordinal column '{name}' needs an order of different words.")
    taxonomy, cuts = given.get("taxonomy", dict, None), given.get("cuts", list, None)
    tree, other = None if taxonomy is None else _tree(name, taxonomy), given.get("other", str, None)
    if tree is not None and other is not None and other not in tree.leaves:
        raise RecodingError(f"The name of all others in column '{name}' is no leaf of its taxonomy.")
    ordered = kind in ("continuous", "date")
    return Meaning(
        name,
        shell.type,
        order=order,
        domain=_domain(shell, given.get("domain", list, None)) if ordered else (None, None),
        tree=tree,
        cuts=_cuts(shell, cuts) if ordered and cuts is not None else None,
        other=other,
        date_format=given.get("date_format", str, None),
        missing=given.get("missing", bool, None),
        scale=given.word("scale", ("number", "date", "time"), None),
    )


def _cuts(shell: Meaning, values: Sequence[object]) -> frozenset[Decimal]:
    """The cuts as they are compared; a recoding counts its cells by them, so they must rise."""
    cuts = [_end(shell, cut) for cut in values]
    if any(low >= high for low, high in pairwise(cuts)):
        raise RecodingError(f"The cuts of column '{shell.name}' are not in rising order.")
    return frozenset(cuts)


def _end(shell: Meaning, value: object) -> Decimal:
    found = shell.scalar(str(value))
    if found is None:
        kind = "a date (2024-03-01)" if shell.type == "date" else "a number"
        raise RecodingError(f"A cut or end of the domain of column '{shell.name}' is not {kind}.")
    return found


def _domain(shell: Meaning, value: Sequence[object] | None) -> Ends:
    if value is None:
        return None, None
    if len(value) != 2:
        raise RecodingError(f"The domain of column '{shell.name}' is not a pair of ends.")
    low, high = (None if end is None else _end(shell, end) for end in value)
    return low, high


def _tree(name: str, taxonomy: Mapping[str, Any]) -> Tree:
    """The runs of leaves of a nested mapping, without recursion: a taxonomy may be deep."""
    leaves: list[str] = []
    below: dict[str, tuple[int, int]] = {}
    stack: list[tuple[Mapping[str, Any], int | None]] = [(taxonomy, None)]
    while stack:
        node, first = stack.pop()
        if not isinstance(node, Mapping) or "name" not in node:
            raise RecodingError(f"The taxonomy of column '{name}' is not made of nodes with a name and children.")
        settings = Settings(node, f"the taxonomy of column '{name}'", RecodingError).known(("name", "children"))
        children = settings.get("children", list, None) or ()
        if first is None and children:
            stack.append((node, len(leaves)))
            stack.extend((child, None) for child in reversed(children))
            continue
        if first is None:
            leaves.append(str(node["name"]))
        run = (len(leaves) - 1 if first is None else first, len(leaves) - 1)
        if below.setdefault(str(node["name"]), run) != run:
            raise RecodingError(f"The taxonomy of column '{name}' has the name '{node['name']}' at two places.")
    return Tree(tuple(leaves), below)
