# SPDX-License-Identifier: Apache-2.0
"""Growing the subtree of a node with one thread."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from anonfit.engines.memory.candidates import inner_range, tighten
from anonfit.engines.memory.constraints import KernelConstraints
from anonfit.engines.memory.count import count_rows
from anonfit.engines.memory.layout import (
    FROM,
    GAP,
    HIGH,
    LOW,
    MODE,
    SIZE,
    SPAN,
    TILE,
    TO,
    Columns,
    Int,
    Rows,
)
from anonfit.engines.memory.objective import RULE, KernelObjective
from anonfit.engines.memory.route import divide, persons_between
from anonfit.engines.memory.scratch import CHANCE, PARTS, Scratch
from anonfit.engines.memory.splitting import BY_CHANCE, choose_split
from anonfit.runtime.compiling import inner, kernel
from anonfit.tables.schema import SplitMode

GOLDEN, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB  # as in criteria.splitting


@inner
def _mixed(word: Any) -> Any:
    word = word + np.uint64(GOLDEN)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(FIRST)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(SECOND)
    return word ^ (word >> np.uint64(31))


@inner
def part_key(key: Int, part: Int) -> Any:
    """The key of a part of a node's split."""
    return np.int64(_mixed(np.uint64(key) ^ np.uint64(part + 1)))


@inner
def draw(key: Int, splits: Any) -> None:
    """Fill the row CHANCE of the columns' splits with the numbers of the node of a key."""
    for column in range(splits.shape[1]):
        word = _mixed(np.uint64(key) ^ (np.uint64(column + 1) << np.uint64(32)))
        splits[CHANCE, column] = -math.log((np.float64(word >> np.uint64(11)) + 0.5) * 2.0**-53)


@inner
def _fit_span(columns: Columns, column: Int, span: Any, tile: Any) -> None:
    """Bring FROM and TO of a column to the first and last code of its tile."""
    held = columns.facts[TILE, column]
    first, last = np.int64(-1), np.int64(-1)
    for code in range(columns.facts[SIZE, column]):
        if tile[held + code] == 1:
            last = np.int64(code)
            if first < 0:
                first = np.int64(code)
    span[FROM, column], span[TO, column] = first, last


@kernel
def child_span(
    columns: Columns, span: Any, tile: Any, column: Int, part: Int, parts: Int, lists: Any, child: Any, inner_tile: Any
) -> None:
    """The span and the tile of a part of a split by runs, written to `child` and `inner_tile`."""
    for fact in range(SPAN):
        for other in range(span.shape[1]):
            child[fact, other] = span[fact, other]
    first = lists[PARTS, part]
    last = lists[PARTS, part + 1] - 1 if part + 1 < parts else span[TO, column]
    child[FROM, column], child[TO, column] = first, last
    child[LOW, column] = max(first, span[LOW, column])
    child[HIGH, column] = min(last, span[HIGH, column])
    if first > 0:
        child[GAP, column] = 0
    for entry in range(tile.shape[0]):
        inner_tile[entry] = tile[entry]
    held = columns.facts[TILE, column]
    if held >= 0:
        for code in range(columns.facts[SIZE, column]):
            if code < first or code > last:
                inner_tile[held + code] = 0
        _fit_span(columns, column, child, inner_tile)


@kernel
def child_tile(
    columns: Columns, span: Any, tile: Any, column: Int, part: Int, sides: Any, child: Any, inner_tile: Any
) -> None:
    """The span and the tile of a part of a split by a set, written to `child` and `inner_tile`."""
    for fact in range(SPAN):
        for other in range(span.shape[1]):
            child[fact, other] = span[fact, other]
    for entry in range(tile.shape[0]):
        inner_tile[entry] = tile[entry]
    held = columns.facts[TILE, column]
    if held >= 0:
        for code in range(columns.facts[SIZE, column]):
            if sides[code] != part:
                inner_tile[held + code] = 0
        _fit_span(columns, column, child, inner_tile)


# One row per node of the tree being grown. START and BEFORE are as in Tree; the rows of a node that is a region are
# BEGIN..END of buffer BUFFER (none for an empty region). SET is where a node's set stands among the members of sets
# (-1: it has none): how many codes, then the codes.
CHILD, CHILDREN, COLUMN, START, BEFORE, BEGIN, END, BUFFER, SET, FACTS = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9

# One row per node that waits to be split: its number, its rows and their buffer, its histogram, and its key.
NODE, ROW, STOP, SIDE, HISTOGRAM, KEY, WAITING = 0, 1, 2, 3, 4, 5, 6
TOO_SMALL, UNCOUNTED = -1, -2

BINARY = int(SplitMode.BINARY)


@inner
def _room(table: Any, needed: Int) -> Any:
    """The table, or a larger copy of it, with at least so many rows."""
    if needed <= table.shape[0]:
        return table
    larger = np.empty((max(2 * table.shape[0], needed), table.shape[1]), table.dtype)
    for row in range(table.shape[0]):
        for entry in range(table.shape[1]):
            larger[row, entry] = table[row, entry]
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
        for fact in range(FACTS):
            nodes[child, fact] = 0
        nodes[child, COLUMN], nodes[child, BEFORE], nodes[child, SET] = -1, -1, -1


@inner
def _narrow(nodes: Any, used: Int, node: Int, columns: Columns, column: Int, span: Any, tile: Any) -> Any:
    """Free descent: cut the tile to what the taxonomy node over the rows holds; the rest are empty regions.

    Returns the nodes in use and the node that holds the rows.
    """
    low, high, _ = inner_range(columns, column, span, tile)
    first, last = span[FROM, column], span[TO, column]
    parts = np.int64(1) + np.int64(low > first) + np.int64(high < last)
    if parts == 1:
        return used, node
    _add_children(nodes, used, node, column, parts)
    inside = used
    nodes[used, START] = first
    if low > first:
        inside += 1
        nodes[inside, START] = low
    if high < last:
        nodes[inside + 1, START] = high + 1
    span[FROM, column], span[TO, column] = low, high
    held = columns.facts[TILE, column]
    if held >= 0:
        for code in range(columns.facts[SIZE, column]):
            if code < low or code > high:
                tile[held + code] = 0
    return used + parts, inside


@inner
def _write_members(members: Any, filled: Int, size: Int, side: Any) -> Any:
    """Add the codes of a set to the members of sets (moved if they needed room), and how many entries are filled."""
    if filled + size + 1 > members.shape[0]:
        larger = np.empty(2 * members.shape[0] + size + 1, np.int64)
        for entry in range(filled):
            larger[entry] = members[entry]
        members = larger
    count = np.int64(0)
    for code in range(size):
        if side[code] == 0:
            count += 1
            members[filled + count] = code
    members[filled] = count
    return members, filled + count + 1


@kernel
def attach(
    nodes: Any,
    used: Int,
    node: Int,
    columns: Columns,
    column: Int,
    parts: Int,
    before: Int,
    by_set: Int,
    members: Any,
    filled: Int,
    span: Any,
    tile: Any,
    scratch: Scratch,
) -> Any:
    """Write a chosen split into the tree: the nodes and the members of sets (moved if they needed room), how many are
    used, and the first part's node.
    """
    nodes = _room(nodes, used + parts + 3)
    if columns.facts[MODE, column] >= BINARY:
        used, node = _narrow(nodes, used, node, columns, column, span, tile)
    _add_children(nodes, used, node, column, parts)
    if by_set == 1:
        nodes[node, SET] = filled
        members, filled = _write_members(members, filled, columns.facts[SIZE, column], scratch.side)
    else:
        for part in range(parts):
            nodes[used + part, START] = scratch.lists[PARTS, part]
        if before >= 0:
            nodes[used + 1, BEFORE] = before
    return nodes, used + parts, used, members, filled


@kernel
def finish(
    nodes: Any,
    used: Int,
    node: Int,
    rows: Rows,
    columns: Columns,
    objective: KernelObjective,
    start: Int,
    stop: Int,
    side: Int,
    histogram: Any,
    span: Any,
    tile: Any,
) -> Any:
    """Make a node a region: free descents once more, then its rows. Returns the nodes and how many are used. An empty
    histogram means: look at the rows.
    """
    width = columns.facts.shape[1]
    nodes = _room(nodes, used + 3 * width)
    for column in range(width):
        if (
            columns.facts[MODE, column] >= BINARY
            and span[FROM, column] < span[TO, column]
            and objective.weights[column] >= 0
        ):
            tighten(rows, columns, objective, column, start, stop, histogram, span)
            used, node = _narrow(nodes, used, node, columns, column, span, tile)
    nodes[node, BEGIN], nodes[node, END], nodes[node, BUFFER] = start, stop, side
    return nodes, used


@inner
def _pass_histogram(
    rows: Rows,
    columns: Columns,
    objective: KernelObjective,
    start: Int,
    stop: Int,
    k: Int,
    is_largest: bool,
    large: bool,
    slot: Int,
    free: Int,
    slots: Any,
    places: Any,
) -> Any:
    """The histogram a part gets: the largest takes its parent's, from which the others are taken away."""
    enough = persons_between(rows, columns, start, stop) >= 2 * k
    if is_largest:
        return slot if enough else np.int64(TOO_SMALL)
    if not enough:
        if large:
            count_rows(rows, columns, objective, start, stop, np.int64(-1), slots[slot], places)
        return np.int64(TOO_SMALL)
    for index in range(slots.shape[1]):
        slots[free, index] = 0
    count_rows(rows, columns, objective, start, stop, np.int64(1), slots[free], places)
    if large:
        for index in range(slots.shape[1]):
            slots[slot, index] -= slots[free, index]
    return free


@kernel
def grow_subtree(
    first_rows: Rows,
    second_rows: Rows,
    columns: Columns,
    objective: KernelObjective,
    k: Int,
    constraints: KernelConstraints | None,
    start: Int,
    stop: Int,
    side: Int,
    key: Int,
    histogram: Any,
    span: Any,
    tile: Any,
    scratch: Scratch,
) -> Any:
    """Grow the tree below one node, depth first; returns its nodes and the members of their sets."""
    width = columns.facts.shape[1]
    lists, places = scratch.lists, scratch.places
    nodes, members = new_nodes(), np.empty(64, np.int64)
    used, filled = np.int64(1), np.int64(0)
    length = histogram.shape[0]
    slots = scratch.histograms
    kept_histograms = slots.shape[0]
    for index in range(length):
        slots[0, index] = histogram[index]
    edges = np.empty((2, lists.shape[1]), np.int64)
    waiting = np.empty((64, WAITING), np.int64)
    spans = np.empty((64, SPAN * width), np.int64)
    tiles = np.empty((64, columns.tile), np.uint8)
    waiting[0, NODE], waiting[0, ROW], waiting[0, STOP] = 0, start, stop
    waiting[0, SIDE], waiting[0, HISTOGRAM], waiting[0, KEY] = side, 0, key
    by_chance = objective.settings[RULE] == BY_CHANCE
    for index in range(SPAN * width):
        spans[0, index] = span[index // width, index % width]
    for index in range(columns.tile):
        tiles[0, index] = tile[index]
    here, held = scratch.span, scratch.tile
    nothing = np.empty(0, np.int64)
    count, highest = np.int64(1), np.int64(0)
    while count > 0:
        count -= 1
        node, start, stop = waiting[count, NODE], waiting[count, ROW], waiting[count, STOP]
        side, slot, key = waiting[count, SIDE], waiting[count, HISTOGRAM], waiting[count, KEY]
        for index in range(SPAN * width):
            here[index // width, index % width] = spans[count, index]
        for index in range(columns.tile):
            held[index] = tiles[count, index]
        rows, other = (first_rows, second_rows) if side == 0 else (second_rows, first_rows)
        if slot <= UNCOUNTED:
            slot = UNCOUNTED - slot
            for index in range(length):
                slots[slot, index] = 0
            count_rows(rows, columns, objective, start, stop, np.int64(1), slots[slot], places)
        column, parts, before, by_set = np.int64(-1), np.int64(0), np.int64(-1), np.int64(0)
        if slot >= 0:
            if by_chance:
                draw(key, scratch.splits)
            column, parts, before, by_set = choose_split(
                rows, columns, objective, k, constraints, start, stop, slots[slot], here, held, scratch
            )
        if column < 0:
            nodes, used = finish(nodes, used, node, rows, columns, objective, start, stop, side, nothing, here, held)
            continue
        nodes, used, first, members, filled = attach(
            nodes, used, node, columns, column, parts, before, by_set, members, filled, here, held, scratch
        )
        largest = divide(rows, other, columns, column, parts, by_set, start, stop, scratch, edges)
        waiting, spans = _room(waiting, count + parts), _room(spans, count + parts)
        tiles = _room(tiles, count + parts)
        crowded = slot + parts >= kept_histograms
        large = persons_between(other, columns, edges[0, largest], edges[1, largest]) >= 2 * k
        highest = slot
        for turn in range(parts):
            # The largest part is pushed first, so it is taken up last: the others may use the histograms above its own.
            part = largest if turn == 0 else np.int64(turn - 1 if turn <= largest else turn)
            start, stop = edges[0, part], edges[1, part]
            if start == stop:
                continue
            kept = UNCOUNTED - slot
            if not crowded:
                kept = _pass_histogram(
                    other,
                    columns,
                    objective,
                    start,
                    stop,
                    k,
                    part == largest,
                    large,
                    slot,
                    highest + 1,
                    slots,
                    places,
                )
                highest = max(highest, kept)
            waiting[count, NODE], waiting[count, ROW], waiting[count, STOP] = first + part, start, stop
            waiting[count, SIDE], waiting[count, HISTOGRAM] = 1 - side, kept
            waiting[count, KEY] = part_key(key, part)
            child = spans[count].reshape(SPAN, width)
            if by_set == 1:
                child_tile(columns, here, held, column, part, scratch.side, child, tiles[count])
            else:
                child_span(columns, here, held, column, part, parts, lists, child, tiles[count])
            count += 1
    return nodes[:used], members[:filled]
