# SPDX-License-Identifier: Apache-2.0
"""Kernels that grow a tree: rows are physically partitioned between two buffers, so that every node is a run of
rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from anonfit.compiling import inner, kernel
from anonfit.engines.memory.counting import at, count_rows, read, run_of
from anonfit.engines.memory.elements import inner_range, tighten
from anonfit.engines.memory.guard import Guard
from anonfit.engines.memory.guide import Guide
from anonfit.engines.memory.layout import (
    BIT,
    FROM,
    GAP,
    HIGH,
    LOW,
    MASK,
    MODE,
    QUARTER,
    SIZE,
    SPAN,
    TILE,
    TO,
    Columns,
    Int,
    Rows,
)
from anonfit.engines.memory.scratch import PARTS, SIZES, Scratch
from anonfit.engines.memory.splitting import choose_split
from anonfit.tables.coded import SplitMode

__all__ = ["attach", "child_span", "child_tile", "count_parts", "finish", "grow_subtree", "new_nodes", "scatter"]

# One row per node of the tree being grown. START and BEFORE are as in Tree; the rows of a node that is a region are
# BEGIN..END of buffer BUFFER (none for an empty region). SET is where a node's set stands among the members of sets
# (-1: it has none): how many codes, then the codes.
CHILD, CHILDREN, COLUMN, START, BEFORE, BEGIN, END, BUFFER, SET, FACTS = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9

# One row per node that waits to be split: its number, its rows and their buffer, and its histogram.
NODE, ROW, STOP, SIDE, HISTOGRAM, WAITING = 0, 1, 2, 3, 4, 5
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
    guide: Guide,
    start: Int,
    stop: Int,
    side: Int,
    span: Any,
    tile: Any,
) -> Any:
    """Make a node a region: free descents once more, then its rows. Returns the nodes and how many are used."""
    width = columns.facts.shape[1]
    nodes = _room(nodes, used + 3 * width)
    nothing = np.empty(0, np.int64)
    for column in range(width):
        if (
            columns.facts[MODE, column] >= BINARY
            and span[FROM, column] < span[TO, column]
            and guide.weights[column] >= 0
        ):
            tighten(rows, columns, guide, column, start, stop, nothing, span)
            used, node = _narrow(nodes, used, node, columns, column, span, tile)
    nodes[node, BEGIN], nodes[node, END], nodes[node, BUFFER] = start, stop, side
    return nodes, used


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


@kernel
def count_parts(
    rows: Rows,
    columns: Columns,
    column: Int,
    parts: Int,
    by_set: Int,
    start: Int,
    stop: Int,
    scratch: Scratch,
    sizes: Any,
) -> None:
    """Count the rows start..stop that go to each part."""
    words, bit, mask = rows.words, columns.facts[BIT, column], columns.facts[MASK, column]
    side, firsts = scratch.side, scratch.lists[PARTS]
    for part in range(parts):
        sizes[part] = 0
    for row in range(start, stop):
        code = read(words, bit, mask, row)
        if by_set == 1:
            sizes[np.int64(side[code])] += 1
        else:
            sizes[run_of(firsts, parts, code)] += 1


@kernel
def scatter(
    source: Rows,
    target: Rows,
    columns: Columns,
    column: Int,
    parts: Int,
    by_set: Int,
    start: Int,
    stop: Int,
    step: Int,
    scratch: Scratch,
    places: Any,
) -> None:
    """Move rows start, start + step, … before stop to their parts; `places` holds the next free row of each part.

    Two threads can share a node: one goes forward from its first row, the other backward from its last, and they meet
    within every part, whose rows keep their order.
    """
    bit, mask = columns.facts[BIT, column], columns.facts[MASK, column]
    old, new, side, firsts = source.words, target.words, scratch.side, scratch.lists[PARTS]
    words = old.shape[1]
    if parts > 2:
        for row in range(start, stop, step):
            part = run_of(firsts, parts, read(old, bit, mask, row))
            for word in range(words):
                new[places[part], word] = old[row, word]
            places[part] += step
        return
    second = firsts[1]
    low, high = places[0], places[1]
    for row in range(start, stop, step):
        code = read(old, bit, mask, row)
        below = side[at(code)] == 0 if by_set == 1 else code < second
        place = low if below else high
        if words == 2:  # most tables need two or three words
            new[at(place), 0], new[at(place), 1] = old[at(row), 0], old[at(row), 1]
        elif words == 3:
            new[at(place), 0], new[at(place), 1] = old[at(row), 0], old[at(row), 1]
            new[at(place), 2] = old[at(row), 2]
        else:
            for word in range(words):
                new[at(place), word] = old[at(row), word]
        low += step if below else 0
        high += 0 if below else step
    places[0], places[1] = low, high


@inner
def _persons(rows: Rows, columns: Columns, start: Int, stop: Int) -> Any:
    """Persons of rows start..stop, each row counted on its own."""
    if columns.counts < 0:
        return stop - start
    persons = np.int64(0)
    words, counts = rows.words, columns.counts
    for row in range(start, stop):
        persons += read(words, counts, QUARTER, row)
    return persons


@inner
def _divide(
    source: Rows,
    target: Rows,
    columns: Columns,
    column: Int,
    parts: Int,
    by_set: Int,
    start: Int,
    stop: Int,
    scratch: Scratch,
    edges: Any,
) -> Any:
    """Move a node's rows to their parts; fills `edges` (part, first row and row after the last) and returns the
    largest part.
    """
    lists = scratch.lists
    if columns.counts >= 0:
        count_parts(source, columns, column, parts, by_set, start, stop, scratch, lists[SIZES])
    place, largest = start, np.int64(0)
    for part in range(parts):
        edges[0, part], edges[1, part] = place, place
        place += lists[SIZES, part]
        if lists[SIZES, part] > lists[SIZES, largest]:
            largest = np.int64(part)
    scatter(source, target, columns, column, parts, by_set, start, stop, np.int64(1), scratch, edges[1])
    return largest


@inner
def _pass_histogram(
    rows: Rows,
    columns: Columns,
    guide: Guide,
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
    enough = _persons(rows, columns, start, stop) >= 2 * k
    if is_largest:
        return slot if enough else np.int64(TOO_SMALL)
    if not enough:
        if large:
            count_rows(rows, columns, guide, start, stop, np.int64(-1), slots[slot], places)
        return np.int64(TOO_SMALL)
    for index in range(slots.shape[1]):
        slots[free, index] = 0
    count_rows(rows, columns, guide, start, stop, np.int64(1), slots[free], places)
    if large:
        for index in range(slots.shape[1]):
            slots[slot, index] -= slots[free, index]
    return free


@kernel
def grow_subtree(
    first_rows: Rows,
    second_rows: Rows,
    columns: Columns,
    guide: Guide,
    k: Int,
    guard: Guard | None,
    start: Int,
    stop: Int,
    side: Int,
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
    waiting[0, NODE], waiting[0, ROW], waiting[0, STOP], waiting[0, SIDE], waiting[0, HISTOGRAM] = (
        0,
        start,
        stop,
        side,
        0,
    )
    for index in range(SPAN * width):
        spans[0, index] = span[index // width, index % width]
    for index in range(columns.tile):
        tiles[0, index] = tile[index]
    here, held = scratch.span, scratch.tile
    count, highest = np.int64(1), np.int64(0)
    while count > 0:
        count -= 1
        node, start, stop, side = (
            waiting[count, NODE],
            waiting[count, ROW],
            waiting[count, STOP],
            waiting[count, SIDE],
        )
        slot = waiting[count, HISTOGRAM]
        for index in range(SPAN * width):
            here[index // width, index % width] = spans[count, index]
        for index in range(columns.tile):
            held[index] = tiles[count, index]
        rows, other = (first_rows, second_rows) if side == 0 else (second_rows, first_rows)
        if slot <= UNCOUNTED:
            slot = UNCOUNTED - slot
            for index in range(length):
                slots[slot, index] = 0
            count_rows(rows, columns, guide, start, stop, np.int64(1), slots[slot], places)
        column, parts, before, by_set = np.int64(-1), np.int64(0), np.int64(-1), np.int64(0)
        if slot >= 0:
            column, parts, before, by_set = choose_split(
                rows, columns, guide, k, guard, start, stop, slots[slot], here, held, scratch
            )
        if column < 0:
            nodes, used = finish(nodes, used, node, rows, columns, guide, start, stop, side, here, held)
            continue
        nodes, used, first, members, filled = attach(
            nodes, used, node, columns, column, parts, before, by_set, members, filled, here, held, scratch
        )
        largest = _divide(rows, other, columns, column, parts, by_set, start, stop, scratch, edges)
        waiting, spans, tiles = (
            _room(waiting, count + parts),
            _room(spans, count + parts),
            _room(tiles, count + parts),
        )
        crowded = slot + parts >= kept_histograms
        large = _persons(other, columns, edges[0, largest], edges[1, largest]) >= 2 * k
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
                    guide,
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
            child = spans[count].reshape(SPAN, width)
            if by_set == 1:
                child_tile(columns, here, held, column, part, scratch.side, child, tiles[count])
            else:
                child_span(columns, here, held, column, part, parts, lists, child, tiles[count])
            count += 1
    return nodes[:used], members[:filled]
