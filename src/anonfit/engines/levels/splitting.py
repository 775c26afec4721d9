# SPDX-License-Identifier: Apache-2.0
"""The nodes of a level: counted by an engine, and split by the kernels that split them in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonfit.criteria.objectives import child_key, root_key
from anonfit.criteria.targets import ClassTarget, ShareTarget, Sums, Target
from anonfit.engines.contract import Counted, Counting, CountRequest, Move
from anonfit.engines.memory import forms
from anonfit.engines.memory.engine import OpenNode, TreeGrower, root_span
from anonfit.engines.memory.forms import ABSENT, KernelForms, Whole, kernel_forms, packing_of
from anonfit.engines.memory.layout import (
    BIN,
    NARROW,
    PERSONS,
    SIZE,
    Rows,
    Shape,
    code_name,
    rows_of,
    target_name,
    target_names,
)
from anonfit.engines.memory.packing import pack
from anonfit.engines.memory.selecting import Selector, Split
from anonfit.engines.memory.tallies import SensitiveTally, Tally
from anonfit.runtime.compiling import shared

EVERY = 1 << 62
"""A size that makes every column narrow."""
NOTHING = np.zeros(0, np.int64)
"""A histogram that nobody looks at."""


@dataclass(frozen=True, slots=True)
class KernelLayout:
    """How kernels see rows. `always_counts` is for rows that stand for several: those that groups were made of."""

    shape: Shape
    forms: KernelForms
    always_counts: bool

    @classmethod
    def make(cls, shape: Shape, whole: Whole, *, counted: bool) -> KernelLayout:
        """The layout of rows that kernels count, or (`counted`) of groups that were counted outside: then every column
        has a place in a node's histogram.
        """
        table, purpose, constraints = shape.with_rows({}, 0, has_counts=counted or shape.has_counts)
        size = EVERY if counted else NARROW
        return cls(shape, kernel_forms(table, purpose, constraints, whole, narrow_size=size)[1], counted)

    def selector(self, k: int) -> Selector | None:
        """What chooses splits for selections, if there are any."""
        shape, selections = self.shape, self.shape.purpose.selections
        if selections is None:
            return None
        return Selector(shape.columns, k, selections, shape.constraints, self.forms.columns)

    def pack(self, values: Mapping[str, NDArray[Any]], rows: int) -> Rows:
        """Rows of these fields, packed; fields that are not given are 0."""
        has_counts = self.always_counts or self.shape.has_counts
        return pack(packing_of(*self.shape.with_rows(values, rows, has_counts=has_counts)), rows)


def whole_table(counting: Counting, shape: Shape) -> Whole:
    """What a purpose must know of the whole table."""
    targets = shape.purpose.targets
    if not targets:
        return Whole(len(shape.columns), counting.rows, 0, ())
    requests = [CountRequest((0,), (), (shape.mass,))]
    for index, target in enumerate(targets):
        name = target_name(index)
        if isinstance(target, ClassTarget):
            requests.append(CountRequest((0,), (name,), (shape.mass,)))
        else:
            requests.append(CountRequest((0,), (), _target_sums(shape, index, target)))
    first, *others = counting.count(requests)
    mass = int(first.sums[0].sum())
    sums: list[Sums] = []
    for target, counted in zip(targets, others, strict=True):
        if isinstance(target, ClassTarget):
            by_class = np.zeros(target.width, np.int64)
            by_class[counted.by[0]] = counted.sums[0]
            sums.append(by_class)
        elif isinstance(target, ShareTarget):
            sums.append(counted.sums.sum(axis=1))
        else:
            sums.append(np.array([mass, *counted.sums.sum(axis=1)], np.int64))
    return Whole(len(shape.columns), counting.rows, mass, tuple(sums))


def _target_sums(shape: Shape, place: int, target: Target) -> tuple[tuple[str, ...], ...]:
    """What is summed of a target that has no class in each row: each share, or numbers, their squares and own ones."""
    names = target_names(place, target)
    if isinstance(target, ShareTarget):
        return tuple((*shape.mass, name) for name in names)
    number, *own = names
    return (*shape.mass, number), (*shape.mass, number, number), *((*shape.mass, name) for name in own)


HistogramOf: TypeAlias = Callable[[int], NDArray[np.int64]]
"""The histogram of a node, by its number."""


class ByNode:
    """Entries parted by the nodes they are of."""

    def __init__(self, nodes: NDArray[np.int64]) -> None:
        self.order = np.argsort(nodes, kind="stable")
        self.nodes = nodes[self.order]

    def of(self, node: int) -> NDArray[np.int64]:
        """The entries of a node."""
        first, last = np.searchsorted(self.nodes, [node, node + 1])
        return self.order[first:last]


def count_nodes(counting: Counting, layout: KernelLayout, nodes: Sequence[int]) -> HistogramOf:
    """The histogram of each of a batch of nodes."""
    requests = _histogram_requests(layout, tuple(nodes))
    width = int(layout.forms.objective.settings[forms.SLOTS])
    parts: list[list[NDArray[np.int64]]] = []
    results = counting.count([request for _, request, _ in requests])
    for (column, request, slots), counted in zip(requests, results, strict=True):
        place = (layout.forms.columns.facts[BIN, column] + counted.by[0]) * width
        if len(request.by) > 1:
            place = place + counted.by[1]  # a class
        parts += [[counted.nodes, place + slot, sums] for slot, sums in zip(slots, counted.sums, strict=True)]
    of_entry, places, values = map(np.concatenate, zip(*parts, strict=True))
    by_node, length = ByNode(of_entry), layout.forms.columns.bins * width

    def histogram_of(node: int) -> NDArray[np.int64]:
        histogram, entries = np.zeros(length, np.int64), by_node.of(node)
        histogram[places[entries]] = values[entries]
        return histogram

    return histogram_of


def _histogram_requests(layout: KernelLayout, nodes: tuple[int, ...]) -> list[tuple[int, CountRequest, list[int]]]:
    """What is asked of an engine for histograms: sums by code, and for each target with classes sums by code and class;
    with the column, and the slot of each sum.
    """
    shape, objective = layout.shape, layout.forms.objective
    sums: list[tuple[str, ...]] = []
    slots: list[int] = []
    if objective.settings[forms.LEAN] == 0:
        sums = [shape.persons, shape.mass] if shape.weighted else [shape.persons]
        slots = [0, 1] if shape.weighted else [0]
    classes = []
    for index, target in enumerate(shape.purpose.targets):
        name, slot = target_name(index), int(objective.targets[forms.SLOT, index])
        if isinstance(target, ClassTarget):
            classes.append((name, slot))
        else:
            own = _target_sums(shape, index, target)
            sums += own
            slots += range(slot, slot + len(own))
    requests = []
    for column in range(len(shape.columns)):
        by = code_name(column)
        if sums:
            requests.append((column, CountRequest(nodes, (by,), tuple(sums)), slots))
        requests += [(column, CountRequest(nodes, (by, name), (shape.mass,)), [slot]) for name, slot in classes]
    return requests


def count_tallies(
    counting: Counting, shape: Shape, columns: Mapping[int, Sequence[int]]
) -> Callable[[int, int], Tally]:
    """Count the columns that are given for each node; what a node's rows have of a column."""
    nodes: dict[int, list[int]] = {}
    for node, wanted in columns.items():
        for column in wanted:
            nodes.setdefault(column, []).append(node)
    requests = [request for column, some in nodes.items() for request in _node_requests(shape, column, tuple(some))]
    counted = [(result, ByNode(result.nodes)) for result in counting.count(requests)] if requests else []
    step = 1 + len(shape.constraints)
    of_column = {column: counted[step * place : step * (place + 1)] for place, column in enumerate(nodes)}

    def tally_of(node: int, column: int) -> Tally:
        first, *others = [_groups(result, by_node, node) for result, by_node in of_column[column]]
        by, sums = first
        signatures = shape.signatures.of(list(by[1:]), by.shape[1])
        sensitive = tuple(SensitiveTally(codes, values, persons[0]) for (codes, values), persons in others)
        return Tally(by[0].astype(np.uint32), signatures, sums[-1], sums[0], sensitive)

    return tally_of


def _groups(counted: Counted, by_node: ByNode, node: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The groups of a node: what they are made by, and their sums. (field, group), (sum, group)"""
    entries = by_node.of(node)
    return counted.by[:, entries], counted.sums[:, entries]


def _node_requests(shape: Shape, column: int, nodes: tuple[int, ...]) -> list[CountRequest]:
    code = code_name(column)
    sums = (shape.persons, shape.mass) if shape.weighted else (shape.persons,)
    requests = [CountRequest(nodes, (code, *shape.signature_names), sums)]
    return requests + [CountRequest(nodes, (code, name), (shape.persons,)) for name in shape.sensitive_names]


@dataclass(slots=True)
class LevelNode(OpenNode):
    """A node that waits to be split or handed over; its rows are elsewhere."""

    rows: int
    taken: dict[int, Rows] = field(default_factory=dict)
    """For columns that models were asked of, the groups of codes and sensitive values that stand for the rows."""


class LevelSplitter(TreeGrower):
    """Splits the nodes of one tree, level by level."""

    def __init__(self, counting: Counting, shape: Shape, k: int, hand_over: int) -> None:
        self.counting, self.shape, self.hand_over = counting, shape, hand_over
        self.whole = whole_table(counting, shape)
        self.layout = layout = KernelLayout.make(shape, self.whole, counted=True)
        super().__init__(layout.forms, k)
        self.rows = layout.pack({}, 1)
        self.shared_rows = shared(self.rows)
        self.make_scratch(1)
        self.selector = layout.selector(k)

    def make_scratch(self, rows: int) -> None:
        """Make working memory for nodes that so many rows stand for."""
        super().make_scratch(rows)
        self.scratch_rows = rows

    def root(self) -> LevelNode:
        """The node of all rows."""
        span, tile = root_span(self.columns)
        key, selecting = root_key(self.shape.purpose.seed), self.selector is not None
        return LevelNode(0, span, tile, key, selecting, self.counting.rows)

    def split_level(self, waiting: list[LevelNode]) -> tuple[list[Move], list[LevelNode], list[int]]:
        """Split the nodes of a level: what engines do for it, the parts that have rows, and nodes that stay whole."""
        histogram_of = count_nodes(self.counting, self.layout, [node.number for node in waiting])
        moves, children = self._select([node for node in waiting if node.selecting], histogram_of)
        moved = {move.node for move in moves}
        waiting = [node for node in waiting if node.number not in moved]
        regions: list[int] = []
        while waiting:
            asking: dict[int, list[LevelNode]] = {}
            for node in waiting:
                histogram = histogram_of(node.number)
                split = self.choose(node, histogram)
                if split[0] <= ABSENT:
                    asking.setdefault(ABSENT - split[0], []).append(node)
                elif split[0] < 0:
                    self.make_region(node, self.view(node, self.shared_rows, 0, node.rows, histogram), 0)
                    regions.append(node.number)
                else:
                    move, parts = self.attach(node, split)
                    moves.append(move)
                    children += parts
            self._take_groups(asking)
            waiting = [node for nodes in asking.values() for node in nodes]
        return moves, children, regions

    def _select(
        self, waiting: list[LevelNode], histogram_of: Callable[[int], NDArray[np.int64]]
    ) -> tuple[list[Move], list[LevelNode]]:
        """Split nodes for selections: what engines do for it, and the parts that have rows. Nodes in which nothing is
        gained so are from now on split otherwise.
        """
        moves: list[Move] = []
        children: list[LevelNode] = []
        if self.selector is None or not waiting:
            return moves, children
        views = [self.view(node, self.shared_rows, 0, 0, histogram_of(node.number)) for node in waiting]
        spreads = [self.selector.spreads(view) for view in views]
        columns = {node.number: list(of_node) for node, of_node in zip(waiting, spreads, strict=True)}
        tally_of = count_tallies(self.counting, self.shape, columns)
        for node, view, of_node in zip(waiting, views, spreads, strict=True):
            tally_of_column = partial(tally_of, node.number)
            split = self.selector.choose(view, of_node, tally_of_column, self.scratch) if of_node else None
            if split is None:
                node.selecting = False
                continue
            move, parts = self.attach(node, split)
            moves.append(move)
            children += parts
        return moves, children

    def choose(self, node: LevelNode, histogram: NDArray[np.int64]) -> Split:
        """A node's split from its counts."""
        rows = self.rows
        if self.constraints is not None:
            taken = self.constraints.taken
            taken[:] = ABSENT
            blocks, used = [self.rows.words], 1
            for column, groups in node.taken.items():
                taken[:, column] = used, used + len(groups.words)
                blocks.append(groups.words)
                used += len(groups.words)
            if used > self.scratch_rows:
                self.make_scratch(used)
            rows = rows_of(np.concatenate(blocks))
        return self.best_split(node, self.view(node, shared(rows), 0, 0, histogram))

    def _take_groups(self, asking: dict[int, list[LevelNode]]) -> None:
        """Get the groups that models must be asked of, for each column and the nodes that need them."""
        names, persons = self.shape.sensitive_names, self.shape.persons
        requests = [
            CountRequest(tuple(node.number for node in nodes), (code_name(column), *names), (persons,))
            for column, nodes in asking.items()
        ]
        results = self.counting.count(requests)
        for (column, nodes), request, counted in zip(asking.items(), requests, results, strict=True):
            by_node = ByNode(counted.nodes)
            for node in nodes:
                by, sums = _groups(counted, by_node, node.number)
                values: dict[str, NDArray[Any]] = dict(zip(request.by, by, strict=True))
                node.taken[column] = self.layout.pack(values | {PERSONS: sums[0]}, by.shape[1])

    def attach(self, node: LevelNode, split: Split) -> tuple[Move, list[LevelNode]]:
        """Write a chosen split into the tree."""
        sizes = self.scratch.lists[forms.SIZES, : split[1]].tolist()
        view = self.view(node, self.shared_rows, 0, 0, NOTHING)
        first = self.write_split(node, view, split)
        children = []
        for part in np.flatnonzero(sizes).tolist():
            span, tile = self.part_of(view, split, part)
            children.append(LevelNode(first + part, span, tile, child_key(node.key, part), node.selecting, 0))
        return self._move(node.number, split, first), children

    def _move(self, number: int, split: Split, first: int) -> Move:
        column, parts, _, by_set = map(int, split)
        if by_set:
            size = int(self.columns.facts[SIZE, column])
            members = np.flatnonzero(self.scratch.side[:size] == 0).tolist()
            return Move(number, code_name(column), first, members=tuple(members))
        return Move(number, code_name(column), first, tuple(self.scratch.lists[forms.PARTS, :parts].tolist()))
