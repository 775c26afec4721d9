# SPDX-License-Identifier: Apache-2.0
"""How rows get their new nodes in SQL: conditions and expressions over nodes and codes."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from anonfit.engines.contract import Move

NODE = "node"
BITS = 63
"""Bits of a whole number that is not negative."""


def node_list(nodes: Collection[int]) -> str:
    """The condition that a row is in one of some nodes: a bit of one number tells it fastest, if they are near."""
    if not nodes:
        return "false"
    low, high = min(nodes), max(nodes)
    if high - low >= BITS:
        return f"{NODE} IN ({', '.join(str(node) for node in sorted(nodes))})"
    bits = sum(1 << (node - low) for node in set(nodes))
    return f"{NODE} BETWEEN {low} AND {high} AND ({bits}::BIGINT >> ({NODE} - {low})::BIGINT) & 1 = 1"


def _in_set(column: str, members: Sequence[int]) -> str:
    """The condition that a code is in a set, as short as it can be said."""
    codes = np.sort(np.array(members, np.int64))
    runs = np.split(codes, np.flatnonzero(np.diff(codes) > 1) + 1)
    if 2 * len(runs) < len(codes):
        return " OR ".join(f"{column} BETWEEN {run[0]} AND {run[-1]}" for run in runs)
    return f"{column} IN ({', '.join(map(str, codes.tolist()))})" if members else "false"


def between(column: str, starts: Sequence[int], parts: Sequence[str]) -> str:
    """The expression for the part that a row goes to, by binary search for the last start that is not above its code;
    each part is one of the given expressions.
    """
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    low = between(column, starts[:middle], parts[:middle])
    high = between(column, starts[middle:], parts[middle:])
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
        if move.members is None:
            return between(move.field, move.starts, parts)
        return f"CASE WHEN {_in_set(move.field, move.members)} THEN {parts[0]} ELSE {parts[1]} END"

    first = sorted(nodes)
    return between(NODE, first, [goal(node, -1) for node in first])
