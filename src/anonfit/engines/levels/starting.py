# SPDX-License-Identifier: Apache-2.0
"""A start on a sample (Rothko-S): splits of the upper levels are planned on some of the rows, then all rows move at
once, every part is held to its demands, and splits that violate them are undone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.contract import Counting, CountRequest, Move
from anonfit.engines.levels.shape import Shape, code_name, sensitive_name

__all__ = ["Planned", "Plans", "moved_to", "plans_that_hold"]


class Chosen(NamedTuple):
    """A chosen split as kernels left it: the split, the lists of its parts, the sides of codes, the node's span and
    tile, and whether selections chose it.
    """

    split: Any
    lists: NDArray[Any]
    side: NDArray[Any]
    span: NDArray[np.int64]
    tile: NDArray[np.uint8]
    selecting: bool


@dataclass(frozen=True, slots=True)
class Planned:
    """A split that the sample advises: how rows move, and which nodes get some."""

    node: int
    moves: tuple[Move, ...]
    parts: tuple[int, ...]
    """Nodes that have sampled rows."""
    empty: tuple[int, ...]
    """The other nodes that rows might go to: there the sample has none, and the table must have none."""
    chosen: Chosen


@dataclass(slots=True)
class Plans:
    """Planned splits, parents before their parts."""

    of_node: dict[int, Planned] = field(default_factory=dict)

    @property
    def moves(self) -> list[Move]:
        """All moves, in an order in which rows can take them."""
        return [move for plan in self.of_node.values() for move in plan.moves]

    def ends(self, node: int) -> Iterator[int]:
        """The nodes that a node's rows may end in."""
        waiting = [node]
        while waiting:
            one = waiting.pop()
            if one not in self.of_node:
                yield one
            else:
                waiting += [*self.of_node[one].parts, *self.of_node[one].empty]


def _allowed(counting: Counting, shape: Shape, k: int, nodes: Sequence[int]) -> Callable[[Sequence[int]], bool]:
    """Whether the rows of some of these nodes, taken together, may be one group."""
    asked = tuple(nodes)
    requests = [CountRequest(asked, (), (shape.persons,))]
    requests += [CountRequest(asked, (sensitive_name(place),), (shape.persons,)) for place in range(len(shape.guarded))]
    place_of = {node: place for place, node in enumerate(asked)}
    tables = []
    for counted, size in zip(counting.count(requests), [1, *(one.column.size for one in shape.guarded)], strict=True):
        table = np.zeros((len(asked), size), np.int64)
        values = counted.by[0] if len(counted.by) else np.zeros(len(counted.nodes), np.int64)
        table[[place_of[node] for node in counted.nodes.tolist()], values] = counted.sums[0]
        tables.append(table)

    def allowed(together: Sequence[int]) -> bool:
        places = [place_of[node] for node in together if node in place_of]
        persons, *sensitive = (table[places].sum(axis=0) for table in tables)
        return int(persons[0]) >= k and all(
            bool(model.allows(counts))
            for guarded, counts in zip(shape.guarded, sensitive, strict=True)
            for model in guarded.models
        )

    return allowed


def plans_that_hold(plans: Plans, counting: Counting, shape: Shape, k: int, rows: Mapping[int, int]) -> Plans:
    """The splits that all rows, which have moved, allow: every part may be a group, and where the sample has no rows
    there are none. `rows` says how many each node got.
    """
    allowed = _allowed(counting, shape, k, sorted(rows))
    held: set[int] = set()
    for plan in reversed(plans.of_node.values()):
        strays = any(rows.get(end) for node in plan.empty for end in plans.ends(node))
        if not strays and all(part in held or allowed(list(plans.ends(part))) for part in plan.parts):
            held.add(plan.node)
    # What is below an undone split is undone with it.
    kept: dict[int, Planned] = {}
    reached = {0}
    for node, plan in plans.of_node.items():
        if node in reached and node in held:
            kept[node] = plan
            reached.update(plan.parts)
    return Plans(kept)


def moved_to(plans: Plans, new: Mapping[int, int], rows: Mapping[int, int]) -> list[Move]:
    """Moves of rows that have moved by the plans to the nodes that `new` has for nodes of these; none if all are there
    already.
    """
    goal = {end: number for node, number in new.items() for end in plans.ends(node) if rows.get(end)}
    if all(end == number for end, number in goal.items()):
        return []
    # Undone splits leave gaps, so nodes get smaller numbers: a number is free when it is the next one's.
    return [Move(end, code_name(0), goal[end], (0,)) for end in sorted(goal)]
