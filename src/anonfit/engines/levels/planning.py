# SPDX-License-Identifier: Apache-2.0
"""Growing the upper levels of a tree on a sample of its rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from anonfit.criteria.targets import NumberTarget
from anonfit.engines.contract import Move
from anonfit.engines.levels.growing import LevelGrower
from anonfit.engines.levels.sampling import SampledRows, draw_of, least_sampled
from anonfit.engines.levels.shape import Shape, code_name, sensitive_name, target_name
from anonfit.engines.levels.splitting import LevelSplitter, Node
from anonfit.engines.levels.starting import Chosen, Planned, Plans, moved_to, plans_that_hold
from anonfit.engines.memory.growing import CHILD, START
from anonfit.engines.memory.layout import FROM, GAP, HIGH, LOW, MISSING, SIZE, TO
from anonfit.engines.memory.scratch import PARTS, SIZES
from anonfit.engines.memory.selecting import Split

__all__ = ["start_on_sample"]


class Planner(LevelSplitter):
    """Grows a tree over sampled rows that nobody keeps: only its splits are noted."""

    def __init__(self, rows: SampledRows, shape: Shape, k: int, hand_over: int) -> None:
        super().__init__(rows, shape, k, hand_over)
        self.plans = Plans()

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

    def attach(self, node: Node, split: Split) -> tuple[Move, list[Node]]:
        """Write a chosen split into the tree, and note it."""
        size = int(self.layout.columns.facts[SIZE, int(split[0])])
        lists, side = self.scratch.lists[[PARTS, SIZES], : int(split[1])].copy(), self.scratch.side[:size].copy()
        chosen = Chosen(_safe(split, lists[0]), lists, side, node.span.copy(), node.tile.copy(), node.selecting)
        before = self.used
        move, children = super().attach(node, split)
        moves = self._from_inside(move, before)
        reached = {one.first + part for one in moves for part in range(one.parts)} - {one.node for one in moves}
        parts = tuple(child.number for child in children)
        empty = tuple(sorted(reached - set(parts)))
        self.plans.of_node[node.number] = Planned(node.number, tuple(moves), parts, empty, chosen)
        return move, children

    def _from_inside(self, move: Move, before: int) -> list[Move]:
        """A split's moves: where its column was narrowed to what sampled rows have, rows that have something else go to
        the nodes beside.
        """
        if move.first == before:
            return [move]
        beside = self.nodes[before : move.first]
        inside = before + int(np.flatnonzero(beside[:, CHILD] == move.first)[0])
        return [Move(move.node, move.field, before, tuple(beside[:, START].tolist())), replace(move, node=inside)]


def _safe(split: Split, starts: NDArray[np.int64]) -> Split:
    """A split whose cut lies right below where its upper part starts, or there: rows that were not drawn may reach
    there.
    """
    column, parts, before, by_set = split
    return column, parts, max(before, int(starts[1]) - 1) if before >= 0 else before, by_set


def start_on_sample(grower: LevelGrower, root: Node, rows: int) -> list[Node]:
    """Split the upper levels as a sample of about so many rows advises; the nodes that all rows are then in."""
    engine, shape = grower.engine, grower.shape
    share = rows / engine.rows
    if share >= 1:
        return [root]
    sampled = SampledRows(engine.sample(draw_of(_drawn_by(shape), share), shape.names))
    if sampled.rows == 0:
        return [root]
    planner = Planner(sampled, shape, least_sampled(grower.k, share), max(1, int(grower.hand_over * share)))
    plans = planner.plan()
    if not plans.of_node:
        return [root]
    found = engine.route(plans.moves, ())
    held = plans_that_hold(plans, engine, shape, grower.k, found)
    nodes = _written(grower, root, held)
    for node, old in nodes:
        node.rows = sum(found.get(end, 0) for end in plans.ends(old))
    if moves := moved_to(plans, {old: node.number for node, old in nodes}, found):
        engine.route(moves, ())
    return [node for node, _ in nodes]


def _drawn_by(shape: Shape) -> list[str]:
    """The fields that decide which rows are drawn: all that are never negative."""
    found = [code_name(column) for column in range(len(shape.columns))]
    found += [
        target_name(place) for place, target in enumerate(shape.purpose.targets) if not isinstance(target, NumberTarget)
    ]
    found += [sensitive_name(place) for place in range(len(shape.guarded))]
    return [*found, *shape.signature_names]


def _written(grower: LevelGrower, root: Node, plans: Plans) -> list[tuple[Node, int]]:
    """Write planned splits into the grower's tree: the nodes at their ends, and the planned node that each is."""
    nodes = {0: root}
    for number, plan in plans.of_node.items():
        node, chosen = nodes.pop(number), plan.chosen
        grower.scratch.lists[[PARTS, SIZES], : chosen.lists.shape[1]] = chosen.lists
        grower.scratch.side[: len(chosen.side)] = chosen.side
        node.span, node.tile, node.selecting = chosen.span.copy(), chosen.tile.copy(), chosen.selecting
        _, children = grower.attach(node, chosen.split)
        nodes.update(zip(plan.parts, children, strict=True))
    for node in nodes.values():
        _widen(grower, node)
    return [(node, number) for number, node in nodes.items()]


def _widen(grower: LevelGrower, node: Node) -> None:
    """Let a node's span reach as far as its rows may: the sample's may reach less far."""
    facts, span = grower.layout.columns.facts, node.span
    has_missing = (facts[MISSING] == 1) & (span[FROM] == 0)
    span[LOW], span[HIGH] = span[FROM] + has_missing, span[TO]
    span[GAP] = has_missing
