# SPDX-License-Identifier: Apache-2.0
"""The SQL of the DuckDB engine."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from anonfit.engines.contract import CountRequest, Draw, Move

NODE = "node"
BITS = 63
"""Bits of a whole number that is not negative."""
TYPES = {"u1": "UTINYINT", "u2": "USMALLINT", "u4": "UINTEGER", "i4": "INTEGER", "i8": "BIGINT"}


def text(value: str) -> str:
    """A text as SQL writes it."""
    return "'" + value.replace("'", "''") + "'"


def sql_type(dtype: np.dtype[Any]) -> str:
    """The type of a column that holds such whole numbers."""
    return TYPES[f"{dtype.kind}{dtype.itemsize}"]


def node_list(nodes: Collection[int]) -> str:
    """The condition that a row is in one of some nodes: a bit of one number tells it fastest, if they are near."""
    if not nodes:
        return "false"
    low, high = min(nodes), max(nodes)
    if high - low >= BITS:
        return f"{NODE} IN ({', '.join(str(node) for node in sorted(nodes))})"
    bits = sum(1 << (node - low) for node in set(nodes))
    return f"{NODE} BETWEEN {low} AND {high} AND ({bits}::BIGINT >> ({NODE} - {low})::BIGINT) & 1 = 1"


def _sum(factors: tuple[str, ...]) -> str:
    if not factors:
        return "count(*)::BIGINT"
    return f"sum({' * '.join(f'{name}::BIGINT' for name in factors)})::BIGINT"


def count_query(request: CountRequest, table: str, *, every: bool) -> str:
    """The query that counts; `every` says that the request is about all nodes of the table."""
    fields = zip(request.by, request.starts, strict=True)
    keys = [NODE, *(_between(name, starts, list(map(str, starts))) if starts else name for name, starts in fields)]
    named = [f"{key} AS key{index}" for index, key in enumerate(keys)]
    sums = [f"{_sum(factors)} AS sum{index}" for index, factors in enumerate(request.sums)]
    conditions = [] if every else [node_list(request.nodes)]
    if request.within is not None:
        name, first, stop = request.within
        conditions.append(f"{name} >= {first} AND {name} < {stop}")
    where = f" WHERE {' AND '.join(f'({condition})' for condition in conditions)}" if conditions else ""
    places = ", ".join(str(1 + index) for index in range(len(keys)))
    return f"SELECT {', '.join([*named, *sums])} FROM {table}{where} GROUP BY {places}"  # noqa: S608 - our names


def _runs(members: Sequence[int]) -> list[tuple[int, int]]:
    """The runs of codes that a set consists of."""
    runs: list[tuple[int, int]] = []
    for code in sorted(members):
        if runs and runs[-1][1] == code - 1:
            runs[-1] = (runs[-1][0], code)
        else:
            runs.append((code, code))
    return runs


def _in_set(column: str, members: Sequence[int]) -> str:
    """The condition that a code is in a set, as short as it can be said."""
    runs = _runs(members)
    if 2 * len(runs) < len(members):
        return " OR ".join(f"{column} BETWEEN {low} AND {high}" for low, high in runs)
    return f"{column} IN ({', '.join(str(code) for code in sorted(members))})" if members else "false"


def part_of(column: str, starts: Sequence[int], members: Sequence[int] | None, parts: Sequence[str]) -> str:
    """The expression for the part that a row goes to, each part being one of the given expressions."""
    if members is not None:
        return f"CASE WHEN {_in_set(column, members)} THEN {parts[0]} ELSE {parts[1]} END"
    return _between(column, starts, parts)


def _between(column: str, starts: Sequence[int], parts: Sequence[str]) -> str:
    """The part by binary search for the last start that is not above the code."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    low = _between(column, starts[:middle], parts[:middle])
    high = _between(column, starts[middle:], parts[middle:])
    return f"CASE WHEN {column} < {starts[middle]} THEN {low} ELSE {high} END"


def routed_node(moves: Sequence[Move], nodes: Collection[int]) -> str:
    """The expression for the node that a row of one of these nodes goes to by moves that are made one after another:
    its own node is found by binary search.
    """
    at = {move.node: place for place, move in enumerate(moves)}

    def goal(node: int, before: int) -> str:
        place = at.get(node, -1)
        if place <= before:  # no move, or one that was made before the row came here
            return str(node)
        move = moves[place]
        parts = [goal(move.first + part, place) for part in range(move.parts)]
        return part_of(move.field, move.starts, move.members, parts)

    first = sorted(nodes)
    return _between(NODE, first, [goal(node, -1) for node in first])


def drawn(draw: Draw) -> str:
    """The condition that a row is drawn."""
    products = " + ".join(
        f"({name}::BIGINT & 4294967295) * {factor}" for name, factor in zip(draw.fields, draw.factors, strict=True)
    )
    first = f"(({products}) % {Draw.MODULUS})"
    second = f"(({first} * {first} + {Draw.ADDED}) % {Draw.MODULUS})"
    return f"({second} * {second}) % {Draw.MODULUS} < {draw.below}"
