# SPDX-License-Identifier: Apache-2.0
"""The upper levels of a tree from a sample of the rows, checked by exact counts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.criteria.targets import ClassTarget
from anonfit.engines.contract import Counted, Counting, CountRequest, Draw, Move, first_of_run
from anonfit.engines.levels.growing import LevelGrower
from anonfit.engines.levels.splitting import LevelNode, LevelSplitter
from anonfit.engines.memory import layout
from anonfit.engines.memory.forms import PARTS, SIZES
from anonfit.engines.memory.growing import CHILD, START
from anonfit.engines.memory.layout import Shape, code_name, target_names
from anonfit.engines.memory.selecting import Split

CHANCE = 1e-4
"""How likely a part of fewer than k persons may be to look as if it had enough."""

FACTORS = (12_582_917, 6_291_469, 3_145_739, 1_572_869, 786_433, 393_241, 196_613, 98_317, 49_157)
"""Large numbers, so that sums of products differ where rows do; used in turns, a little smaller for each field."""


def draw_of(fields: Sequence[str], share: float) -> Draw:
    """A draw of about this share of all rows by what their fields hold: the same in every engine and order of rows."""
    factors = tuple(FACTORS[place % len(FACTORS)] - place for place in range(len(fields)))
    return Draw(tuple(fields), factors, int(share * Draw.MODULUS))


def least_sampled(k: int, share: float) -> int:
    """The least number of sampled persons that a part of fewer than k persons hardly ever has.

    How many are sampled of few is distributed by Poisson's law.
    """
    mean = k * share
    if mean > 500:  # the law is that of Gauss, nearly
        return int(mean + 4 * mean**0.5) + 1
    chance = tail = exp(-mean)
    count = 0
    while 1 - tail > CHANCE:
        count += 1
        chance *= mean / count
        tail += chance
    return max(1, count + 1)


class SampledRows:
    """Rows in arrays, by field, counted and routed as an engine does."""

    def __init__(self, values: Mapping[str, NDArray[Any]], rows: int) -> None:
        self.values, self.rows = dict(values), rows
        self.node = np.zeros(rows, np.int64)

    def count(self, requests: Sequence[CountRequest]) -> list[Counted]:
        """Count a batch of nodes."""
        return [self._count(request) for request in requests]

    def _count(self, request: CountRequest) -> Counted:
        inside = np.isin(self.node, request.nodes)
        if request.within is not None:
            name, first, stop = request.within
            inside &= (self.values[name] >= first) & (self.values[name] < stop)
        chosen = np.flatnonzero(inside)
        keys = {"node": self.node[chosen]}
        for place, (name, starts) in enumerate(zip(request.by, request.starts, strict=True)):
            codes = self.values[name][chosen].astype(np.int64)
            keys[f"by{place}"] = first_of_run(codes, starts) if starts else codes
        sums = {}
        for place, factors in enumerate(request.sums):
            sums[f"sum{place}"] = np.ones(len(chosen), np.int64)
            for name in factors:
                sums[f"sum{place}"] *= self.values[name][chosen].astype(np.int64)
        return Counted.of(pl.DataFrame(keys | sums).group_by(list(keys)).agg(pl.all().sum()), request)

    def route(self, moves: Sequence[Move], finished: Collection[int]) -> dict[int, int]:
        """Send rows to the parts of splits; how many rows each part got. A finished node n becomes -1 - n."""
        ended = np.isin(self.node, list(finished))
        self.node[ended] = -1 - self.node[ended]
        for move in moves:
            rows = np.flatnonzero(self.node == move.node)
            self.node[rows] = move.first + move.part_of(self.values[move.field][rows])
        nodes, sizes = np.unique(self.node[self.node >= 0], return_counts=True)
        return dict(zip(nodes.tolist(), sizes.tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class Planned:
    """A split that the sample advises: how rows move, which nodes get some, and what kernels left of it: the split, the
    lists of its parts, the sides of codes, the node's span and tile, and whether selections chose it.
    """

    moves: tuple[Move, ...]
    parts: tuple[int, ...]
    """Nodes that have sampled rows."""
    empty: tuple[int, ...]
    """The other nodes that rows might go to: there the sample has none, and the table must have none."""
    split: Split
    lists: NDArray[np.int64]
    side: NDArray[np.uint8]
    span: NDArray[np.int64]
    tile: NDArray[np.uint8]
    selecting: bool


Plans: TypeAlias = dict[int, Planned]
"""The planned splits of nodes, parents before their parts."""


def ends_of(plans: Plans, node: int) -> Iterator[int]:
    """The nodes that a node's rows may end in."""
    if node not in plans:
        yield node
        return
    for part in (*plans[node].parts, *plans[node].empty):
        yield from ends_of(plans, part)


def _allowed(counting: Counting, shape: Shape, k: int, nodes: Sequence[int]) -> Callable[[Sequence[int]], bool]:
    """Whether the rows of some of these nodes, taken together, may be one group."""
    asked = tuple(nodes)
    requests = [CountRequest(asked, (), (shape.persons,))]
    requests += [CountRequest(asked, (name,), (shape.persons,)) for name in shape.sensitive_names]
    place_of = {node: place for place, node in enumerate(asked)}
    sizes = [1, *(constraint.column.size for constraint in shape.constraints)]
    tables = []
    for counted, size in zip(counting.count(requests), sizes, strict=True):
        table = np.zeros((len(asked), size), np.int64)
        values = counted.by[0] if len(counted.by) else np.zeros(len(counted.nodes), np.int64)
        table[[place_of[node] for node in counted.nodes.tolist()], values] = counted.sums[0]
        tables.append(table)

    def allowed(together: Sequence[int]) -> bool:
        places = [place_of[node] for node in together if node in place_of]
        persons, *sensitive = (table[places].sum(axis=0) for table in tables)
        return int(persons[0]) >= k and all(
            bool(model.allows(counts))
            for constraint, counts in zip(shape.constraints, sensitive, strict=True)
            for model in constraint.models
        )

    return allowed


def plans_that_hold(plans: Plans, counting: Counting, shape: Shape, k: int, rows: Mapping[int, int]) -> Plans:
    """The splits that all rows, which have moved, allow: every part may be a group, and where the sample has no rows
    there are none. `rows` says how many each node got.
    """
    allowed = _allowed(counting, shape, k, sorted(rows))
    held: set[int] = set()
    for split_node, plan in reversed(plans.items()):
        strays = any(rows.get(end) for node in plan.empty for end in ends_of(plans, node))
        if not strays and all(part in held or allowed(list(ends_of(plans, part))) for part in plan.parts):
            held.add(split_node)
    # What is below an undone split is undone with it.
    kept: Plans = {}
    reached = {0}
    for node, plan in plans.items():
        if node in reached and node in held:
            kept[node] = plan
            reached.update(plan.parts)
    return kept


def moved_to(plans: Plans, new: Mapping[int, int], rows: Mapping[int, int]) -> list[Move]:
    """Moves that bring rows from where the plans sent them to the nodes of `new`; none if all are there already."""
    goal = {end: number for node, number in new.items() for end in ends_of(plans, node) if rows.get(end)}
    if all(end == number for end, number in goal.items()):
        return []
    # Undone splits leave gaps, so nodes get smaller numbers: a number is free when it is the next one's.
    return [Move(end, code_name(0), goal[end], (0,)) for end in sorted(goal)]


class Planner(LevelSplitter):
    """Grows a tree over sampled rows that nobody keeps: only its splits are noted."""

    def __init__(self, rows: SampledRows, shape: Shape, k: int, hand_over: int) -> None:
        super().__init__(rows, shape, k, hand_over)
        self.plans: Plans = {}

    def plan(self) -> Plans:
        """The splits of all nodes that are too large to be handed over."""
        waiting = [self.root()]
        while waiting:
            moves, children, _ = self.split_level(waiting)
            sizes = self.counting.route(moves, ())
            for child in children:
                child.rows = sizes[child.number]
            waiting = [child for child in children if child.rows > self.hand_over]
        return self.plans

    def attach(self, node: LevelNode, split: Split) -> tuple[Move, list[LevelNode]]:
        """Write a chosen split into the tree, and note it."""
        size = int(self.columns.facts[layout.SIZE, int(split[0])])
        lists, side = self.scratch.lists[[PARTS, SIZES], : int(split[1])].copy(), self.scratch.side[:size].copy()
        chosen = _safe(split, lists[0]), lists, side, node.span.copy(), node.tile.copy(), node.selecting
        before = self.used
        move, children = super().attach(node, split)
        moves = self._from_inside(move, before)
        reached = {step.first + part for step in moves for part in range(step.parts)} - {step.node for step in moves}
        parts = tuple(child.number for child in children)
        empty = tuple(sorted(reached - set(parts)))
        self.plans[node.number] = Planned(tuple(moves), parts, empty, *chosen)
        return move, children

    def _from_inside(self, move: Move, before: int) -> list[Move]:
        """A split's moves: rows outside of what the sample narrowed its column to go to the nodes beside."""
        if move.first == before:
            return [move]
        beside = self.nodes[before : move.first]
        inside = before + int(np.flatnonzero(beside[:, CHILD] == move.first)[0])
        return [Move(move.node, move.field, before, tuple(beside[:, START].tolist())), replace(move, node=inside)]


def _safe(split: Split, starts: NDArray[np.int64]) -> Split:
    """A split whose cut lies right below its upper part: rows that were not drawn may reach up to there."""
    column, parts, before, by_set = split
    return column, parts, max(before, int(starts[1]) - 1) if before >= 0 else before, by_set


def start_on_sample(grower: LevelGrower, root: LevelNode, rows: int) -> list[LevelNode]:
    """Split the upper levels as a sample of about so many rows advises; the nodes that all rows are then in."""
    engine, shape = grower.engine, grower.shape
    share = rows / engine.rows
    if share >= 1:
        return [root]
    values = engine.sample(draw_of(_drawn_by(shape), share), shape.names)
    sampled = SampledRows(values, len(values[shape.names[0]]))
    if sampled.rows == 0:
        return [root]
    planner = Planner(sampled, shape, least_sampled(grower.k, share), max(1, int(grower.hand_over * share)))
    plans = planner.plan()
    if not plans:
        return [root]
    rows_of_node = engine.route([move for plan in plans.values() for move in plan.moves], ())
    held = plans_that_hold(plans, engine, shape, grower.k, rows_of_node)
    nodes = _written(grower, root, held)
    for node, old in nodes:
        node.rows = sum(rows_of_node.get(end, 0) for end in ends_of(plans, old))
    if moves := moved_to(plans, {old: node.number for node, old in nodes}, rows_of_node):
        engine.route(moves, ())
    return [node for node, _ in nodes]


def _drawn_by(shape: Shape) -> list[str]:
    """The fields that decide which rows are drawn: codes and classes, not counts, numbers or shares."""
    others = {
        name
        for place, target in enumerate(shape.purpose.targets)
        if not isinstance(target, ClassTarget)
        for name in target_names(place, target)
    }
    return [name for name in shape.names if name not in {layout.PERSONS, layout.MASS, *others}]


def _written(grower: LevelGrower, root: LevelNode, plans: Plans) -> list[tuple[LevelNode, int]]:
    """Write planned splits into the grower's tree: the nodes at their ends, and the planned node that each is."""
    nodes = {0: root}
    for number, plan in plans.items():
        node = nodes.pop(number)
        grower.scratch.lists[[PARTS, SIZES], : plan.lists.shape[1]] = plan.lists
        grower.scratch.side[: len(plan.side)] = plan.side
        node.span, node.tile, node.selecting = plan.span.copy(), plan.tile.copy(), plan.selecting
        _, children = grower.attach(node, plan.split)
        nodes.update(zip(plan.parts, children, strict=True))
    for node in nodes.values():
        _widen(grower, node)
    return [(node, number) for number, node in nodes.items()]


def _widen(grower: LevelGrower, node: LevelNode) -> None:
    """Let a node's span reach as far as its rows may: the sample's may reach less far."""
    facts, span = grower.columns.facts, node.span
    has_missing = (facts[layout.MISSING] == 1) & (span[layout.FROM] == 0)
    span[layout.LOW], span[layout.HIGH] = span[layout.FROM] + has_missing, span[layout.TO]
    span[layout.GAP] = has_missing
