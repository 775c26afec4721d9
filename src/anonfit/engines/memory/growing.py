# SPDX-License-Identifier: Apache-2.0
"""Growing the subtree of a node with one thread; and how nodes in the order they were grown become a tree in
breadth-first order, the same for any number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.memory import forms, layout
from anonfit.engines.memory.candidates import inner_range, tighten
from anonfit.engines.memory.count import count_rows
from anonfit.engines.memory.forms import KernelConstraints, NodeView
from anonfit.engines.memory.layout import Columns, Int, Rows
from anonfit.engines.memory.route import divide, persons_between
from anonfit.engines.memory.splitting import BY_CHANCE, choose_split, draw, part_key
from anonfit.engines.tree import Tree
from anonfit.runtime.compiling import inner, kernel


@inner
def _copy(source: Any, target: Any) -> None:
    """Copy all entries to the beginning of an array: numba's own assignment would look for overlaps."""
    for entry in range(source.shape[0]):
        target[entry] = source[entry]


@inner
def _clear(row: Any) -> None:
    for entry in range(row.shape[0]):
        row[entry] = 0


@inner
def _fit_span(columns: Columns, column: Int, span: Any, tile: Any) -> None:
    """Bring FROM and TO of a column to the first and last code of its tile."""
    held = columns.facts[layout.TILE, column]
    first, last = np.int64(-1), np.int64(-1)
    for code in range(columns.facts[layout.SIZE, column]):
        if tile[held + code] == 1:
            last = np.int64(code)
            if first < 0:
                first = np.int64(code)
    span[layout.FROM, column], span[layout.TO, column] = first, last


@kernel
def child_span(node: NodeView, split: Any, part: Int, child: Any, inner_tile: Any) -> None:
    """The span and the tile of a part of a split, written to `child` and `inner_tile`."""
    facts, span, lists, side = node.columns.facts, node.span, node.scratch.lists, node.scratch.side
    column, parts, _, by_set = split
    for fact in range(layout.SPAN):
        for other in range(span.shape[1]):
            child[fact, other] = span[fact, other]
    _copy(node.tile, inner_tile)
    first, last = span[layout.FROM, column], span[layout.TO, column]
    if by_set == 0:
        first = lists[forms.PARTS, part]
        if part + 1 < parts:
            last = lists[forms.PARTS, part + 1] - 1
        child[layout.FROM, column], child[layout.TO, column] = first, last
        child[layout.LOW, column] = max(first, span[layout.LOW, column])
        child[layout.HIGH, column] = min(last, span[layout.HIGH, column])
        if first > 0:
            child[layout.GAP, column] = 0
    held = facts[layout.TILE, column]
    if held >= 0:
        for code in range(facts[layout.SIZE, column]):
            if side[code] != part if by_set == 1 else code < first or code > last:
                inner_tile[held + code] = 0
        _fit_span(node.columns, column, child, inner_tile)


# One row per node of the tree being grown. START and BEFORE are as in Tree; the rows of a node that is a region are
# BEGIN..END of buffer BUFFER (none for an empty region). SET is where a node's set stands among the members of sets
# (-1: it has none): how many codes, then the codes.
CHILD, CHILDREN, COLUMN, START, BEFORE, BEGIN, END, BUFFER, SET, FACTS = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9

# One row per node that waits to be split: its number, its rows and their buffer, its histogram, and its key.
NODE, ROW, STOP, SIDE, HISTOGRAM, KEY, WAITING = 0, 1, 2, 3, 4, 5, 6
TOO_SMALL, UNCOUNTED = -1, -2


@inner
def _room(table: Any, needed: Int) -> Any:
    """The table, or a larger copy of it, with at least so many entries."""
    if needed <= table.shape[0]:
        return table
    larger = np.empty((max(2 * table.shape[0], needed), *table.shape[1:]), table.dtype)
    _copy(table.ravel(), larger.ravel())
    return larger


@kernel
def new_nodes() -> Any:
    """A tree of one region."""
    nodes = np.zeros((64, FACTS), np.int64)
    nodes[0, COLUMN], nodes[0, BEFORE], nodes[0, SET] = -1, -1, -1
    return nodes


@inner
def _add_children(nodes: Any, used: Int, parent: Int, column: Int, count: Int) -> None:
    """Give a node children that are, for now, empty regions."""
    nodes[parent, CHILD], nodes[parent, CHILDREN], nodes[parent, COLUMN] = used, count, column
    for child in range(used, used + count):
        _clear(nodes[child])
        nodes[child, COLUMN], nodes[child, BEFORE], nodes[child, SET] = -1, -1, -1


@inner
def _narrow(nodes: Any, used: Int, number: Int, node: NodeView, column: Int) -> Any:
    """Free descent: cut the tile to what the taxonomy node over the rows holds; the rest are empty regions.

    Returns the nodes in use and the node that holds the rows.
    """
    columns, span, tile = node.columns, node.span, node.tile
    low, high, _ = inner_range(node, column)
    first, last = span[layout.FROM, column], span[layout.TO, column]
    parts = np.int64(1) + np.int64(low > first) + np.int64(high < last)
    if parts == 1:
        return used, number
    _add_children(nodes, used, number, column, parts)
    inside = used
    nodes[used, START] = first
    if low > first:
        inside += 1
        nodes[inside, START] = low
    if high < last:
        nodes[inside + 1, START] = high + 1
    span[layout.FROM, column], span[layout.TO, column] = low, high
    held = columns.facts[layout.TILE, column]
    if held >= 0:
        for code in range(columns.facts[layout.SIZE, column]):
            if code < low or code > high:
                tile[held + code] = 0
    return used + parts, inside


@inner
def _write_members(members: Any, filled: Int, size: Int, side: Any) -> Any:
    """Add the codes of a set to the members of sets (moved if they needed room), and how many entries are filled."""
    members = _room(members, filled + size + 1)
    count = np.int64(0)
    for code in range(size):
        if side[code] == 0:
            count += 1
            members[filled + count] = code
    members[filled] = count
    return members, filled + count + 1


@kernel
def attach(nodes: Any, used: Int, number: Int, node: NodeView, split: Any, members: Any, filled: Int) -> Any:
    """Write a chosen split into the tree: the nodes and the members of sets (moved if they needed room), how many are
    used, and the first part's node.
    """
    columns, scratch = node.columns, node.scratch
    column, parts, before, by_set = split
    nodes = _room(nodes, used + parts + 3)
    if columns.facts[layout.MODE, column] >= layout.BINARY:
        used, number = _narrow(nodes, used, number, node, column)
    _add_children(nodes, used, number, column, parts)
    if by_set == 1:
        nodes[number, SET] = filled
        members, filled = _write_members(members, filled, columns.facts[layout.SIZE, column], scratch.side)
    else:
        for part in range(parts):
            nodes[used + part, START] = scratch.lists[forms.PARTS, part]
        if before >= 0:
            nodes[used + 1, BEFORE] = before
    return nodes, used + parts, used, members, filled


@kernel
def finish(nodes: Any, used: Int, number: Int, node: NodeView, side: Int) -> Any:
    """Make a node a region: free descents once more, then its rows. Returns the nodes and how many are used. An empty
    histogram means: look at the rows.
    """
    columns, span = node.columns, node.span
    width = columns.facts.shape[1]
    nodes = _room(nodes, used + 3 * width)
    for column in range(width):
        is_free = columns.facts[layout.MODE, column] >= layout.BINARY and node.objective.weights[column] >= 0
        if is_free and span[layout.FROM, column] < span[layout.TO, column]:
            tighten(node, column)
            used, number = _narrow(nodes, used, number, node, column)
    nodes[number, BEGIN], nodes[number, END], nodes[number, BUFFER] = node.start, node.stop, side
    return nodes, used


@inner
def _pass_histogram(
    rows: Rows, node: NodeView, start: Int, stop: Int, is_largest: bool, large: bool, slot: Int, free: Int
) -> Any:
    """The histogram a part of a node gets: the largest takes its parent's, from which the others are taken away."""
    columns, objective, slots = node.columns, node.objective, node.scratch.histograms
    enough = persons_between(rows, columns, start, stop) >= 2 * node.k
    if is_largest:
        return slot if enough else np.int64(TOO_SMALL)
    if not enough:
        if large:
            count_rows(rows, columns, objective, start, stop, np.int64(-1), slots[slot])
        return np.int64(TOO_SMALL)
    _clear(slots[free])
    count_rows(rows, columns, objective, start, stop, np.int64(1), slots[free])
    if large:
        for index in range(slots.shape[1]):
            slots[slot, index] -= slots[free, index]
    return free


@kernel
def grow_subtree(root: NodeView, other: Rows, constraints: KernelConstraints | None, side: Int, key: Int) -> Any:
    """Grow the tree below one node, depth first; returns its nodes and the members of their sets. Its rows are in the
    buffer `side`, and `other` is the other one.
    """
    columns, objective, scratch, k = root.columns, root.objective, root.scratch, root.k
    first_rows, second_rows = (root.rows, other) if side == 0 else (other, root.rows)
    nodes, members = new_nodes(), np.empty(64, np.int64)
    used, filled = np.int64(1), np.int64(0)
    slots, here, held = scratch.histograms, scratch.span, scratch.tile
    width, flat = here.shape[1], here.ravel()
    _copy(root.histogram, slots[0])
    edges = np.empty((2, scratch.lists.shape[1]), np.int64)
    waiting = np.empty((64, WAITING), np.int64)
    spans = np.empty((64, layout.SPAN * width), np.int64)
    tiles = np.empty((64, columns.tile), np.uint8)
    waiting[0, NODE], waiting[0, ROW], waiting[0, STOP] = 0, root.start, root.stop
    waiting[0, SIDE], waiting[0, HISTOGRAM], waiting[0, KEY] = side, 0, key
    _copy(root.span.ravel(), spans[0])
    _copy(root.tile, tiles[0])
    by_chance = objective.settings[forms.RULE] == BY_CHANCE
    nothing = np.empty(0, np.int64)
    count, highest = np.int64(1), np.int64(0)
    while count > 0:
        count -= 1
        number, start, stop = waiting[count, NODE], waiting[count, ROW], waiting[count, STOP]
        side, slot, key = waiting[count, SIDE], waiting[count, HISTOGRAM], waiting[count, KEY]
        _copy(spans[count], flat)
        _copy(tiles[count], held)
        rows, others = (first_rows, second_rows) if side == 0 else (second_rows, first_rows)
        if slot <= UNCOUNTED:
            slot = UNCOUNTED - slot
            _clear(slots[slot])
            count_rows(rows, columns, objective, start, stop, np.int64(1), slots[slot])
        node = NodeView(rows, columns, objective, scratch, k, start, stop, slots[max(slot, 0)], here, held)
        split = (np.int64(-1), np.int64(0), np.int64(-1), np.int64(0))
        if slot >= 0:
            if by_chance:
                draw(key, scratch.splits)
            split = choose_split(node, constraints)
        if split[0] < 0:
            region = NodeView(rows, columns, objective, scratch, k, start, stop, nothing, here, held)
            nodes, used = finish(nodes, used, number, region, side)
            continue
        nodes, used, first, members, filled = attach(nodes, used, number, node, split, members, filled)
        parts = split[1]
        largest = divide(node, others, split, edges)
        waiting, spans, tiles = _room(waiting, count + parts), _room(spans, count + parts), _room(tiles, count + parts)
        crowded = slot + parts >= slots.shape[0]
        large = persons_between(others, columns, edges[0, largest], edges[1, largest]) >= 2 * k
        highest = slot
        for turn in range(parts):
            # The largest part is pushed first, so it is taken up last: the others may use the histograms above its own.
            part = largest if turn == 0 else np.int64(turn - 1 if turn <= largest else turn)
            start, stop = edges[0, part], edges[1, part]
            if start == stop:
                continue
            kept = UNCOUNTED - slot
            if not crowded:
                kept = _pass_histogram(others, node, start, stop, part == largest, large, slot, highest + 1)
                highest = max(highest, kept)
            waiting[count, NODE], waiting[count, ROW], waiting[count, STOP] = first + part, start, stop
            waiting[count, SIDE], waiting[count, HISTOGRAM] = 1 - side, kept
            waiting[count, KEY] = part_key(key, part)
            child_span(node, split, part, spans[count].reshape(layout.SPAN, width), tiles[count])
            count += 1
    return nodes[:used], members[:filled]


Subtree = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Nodes, and the members of their sets."""


@kernel
def _shift(subtree: Any, before: Int, filled: Int) -> None:
    """Let nodes point to children and sets behind so many nodes and members of others."""
    for node in range(subtree.shape[0]):
        if subtree[node, CHILDREN] > 0:
            subtree[node, CHILD] += before
        if subtree[node, SET] >= 0:
            subtree[node, SET] += filled


def join_subtrees(
    top: NDArray[np.int64], members: NDArray[np.int64], numbers: Sequence[int], subtrees: Sequence[Subtree]
) -> Subtree:
    """Hang subtrees on the nodes of the top that they grew from; all nodes and the members of their sets."""
    blocks, sets = [top], [members]
    used, filled = len(top), len(members)
    for number, (subtree, own) in zip(numbers, subtrees, strict=True):
        _shift(subtree, used - 1, filled)
        kept = top[number, [START, BEFORE]]
        top[number] = subtree[0]
        top[number, [START, BEFORE]] = kept
        blocks.append(subtree[1:])
        sets.append(own)
        used += len(subtree) - 1
        filled += len(own)
    return np.concatenate(blocks), np.concatenate(sets)


@kernel
def _breadth_first_order(nodes: Any) -> Any:
    order = np.empty(nodes.shape[0], np.int64)
    order[0] = 0
    used = 1
    for index in range(nodes.shape[0]):
        node = order[index]
        for child in range(nodes[node, CHILDREN]):
            order[used] = nodes[node, CHILD] + child
            used += 1
    return order


@kernel
def settle(nodes: Any, first: Any, second: Any) -> None:
    """Bring the rows of regions into the first buffer, each run to its own place. first, second: (row, word)."""
    for node in range(nodes.shape[0]):
        if nodes[node, COLUMN] < 0 and nodes[node, BUFFER] == 1:
            for row in range(nodes[node, BEGIN], nodes[node, END]):
                for word in range(first.shape[1]):
                    first[row, word] = second[row, word]


def begins_of(nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The first rows of the regions that have any, ascending."""
    has_rows = (nodes[:, COLUMN] < 0) & (nodes[:, END] > nodes[:, BEGIN])
    return np.sort(nodes[has_rows, BEGIN])


@kernel
def _in_order(nodes: Any, facts: Any) -> Any:
    """Write what a tree holds of each node, breadth first; where its sets stand among the members of sets, in that
    order. facts: (column, children, start, before, set; node).
    """
    order, places, used = _breadth_first_order(nodes), np.empty(nodes.shape[0], np.int64), np.int64(0)
    for index in range(nodes.shape[0]):
        node = order[index]
        facts[0, index], facts[1, index] = nodes[node, COLUMN], nodes[node, CHILDREN]
        facts[2, index], facts[3, index], facts[4, index] = nodes[node, START], nodes[node, BEFORE], -1
        if nodes[node, SET] >= 0:
            facts[4, index], places[used] = used, nodes[node, SET]
            used += 1
    return places[:used]


def breadth_first(nodes: NDArray[np.int64], members: NDArray[np.int64]) -> Tree:
    """The tree of these nodes; `members` has the codes of their sets."""
    facts = np.empty((5, len(nodes)), np.int32)
    places = _in_order(nodes, facts)
    codes = members.astype(np.int32)
    ends = (places + 1 + members[places]).tolist() if len(places) else []
    sets = tuple(codes[begin + 1 : end] for begin, end in zip(places.tolist(), ends, strict=True))
    column, children, start, before, set_of = facts
    return Tree(column=column, children=children, start=start, before=before, set_of=set_of, sets=sets)


def region_sizes(nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows of each node that is a region, 0 for others, in the order of the tree."""
    facts = nodes[_breadth_first_order(nodes)]
    return np.where(facts[:, COLUMN] < 0, facts[:, END] - facts[:, BEGIN], 0)
