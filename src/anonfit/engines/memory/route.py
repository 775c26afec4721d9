# SPDX-License-Identifier: Apache-2.0
"""Moving rows to the parts of a split, and routing rows down a tree to their regions: the rows a tree was grown from
and rows it has never seen go the same way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.engines.memory.count import at, persons_in, read, run_of
from anonfit.engines.memory.forms import PARTS, SIZES, NodeView
from anonfit.engines.memory.layout import BIT, MASK, PLACE, Columns, Int, Rows, code_name, rows_of
from anonfit.engines.memory.packing import pack_table
from anonfit.engines.tree import Tree, set_bits
from anonfit.runtime.compiling import inner, kernel, shared
from anonfit.runtime.process import thread_count
from anonfit.tables.schema import CodedColumn, CodedTable


@kernel
def count_parts(node: NodeView, split: Any, sizes: Any) -> None:
    """Count the rows of a node that go to each part of a split."""
    column, parts, _, by_set = split
    words, facts, side = node.rows.words, node.columns.facts, node.scratch.side
    firsts = node.scratch.lists[PARTS]
    for part in range(parts):
        sizes[part] = 0
    for row in range(node.start, node.stop):
        code = read(words, facts[BIT, column], facts[MASK, column], row)
        if by_set == 1:
            sizes[np.int64(side[code])] += 1
        else:
            sizes[run_of(firsts, parts, code)] += 1


# The rows of two parts are moved without a branch, since nobody could guess which it is, and by a loop of its own for
# each of the sizes that nearly all rows have: one loop for all is half as fast. All take words of rows as one array,
# and a field as the word it is in, how far it is from that word's lowest bit, its mask, and the second part's first
# code.


@inner
def _is_second(side: Any, by_set: bool, second: Any, code: Any) -> Any:
    return side[code] != 0 if by_set else code >= second


@inner
def _move_pairs(old: Any, new: Any, field: Any, side: Any, by_set: bool, turns: Any, low: Int, high: Int) -> Any:
    """Move rows of two words; the next free row of each part."""
    (word, shift, mask, second), (start, stop, step) = field, turns
    for row in range(start, stop, step):
        begin = at(2 * row)
        a, b = old[begin], old[begin + at(1)]
        is_second = _is_second(side, by_set, second, (old[begin + word] >> shift) & mask)
        place = at(2 * (high if is_second else low))
        new[place], new[place + at(1)] = a, b
        moved = step if is_second else np.int64(0)
        high += moved
        low += step - moved
    return low, high


@inner
def _move_triples(old: Any, new: Any, field: Any, side: Any, by_set: bool, turns: Any, low: Int, high: Int) -> Any:
    """Move rows of three words."""
    (word, shift, mask, second), (start, stop, step) = field, turns
    for row in range(start, stop, step):
        begin = at(3 * row)
        a, b, c = old[begin], old[begin + at(1)], old[begin + at(2)]
        is_second = _is_second(side, by_set, second, (old[begin + word] >> shift) & mask)
        place = at(3 * (high if is_second else low))
        new[place], new[place + at(1)], new[place + at(2)] = a, b, c
        moved = step if is_second else np.int64(0)
        high += moved
        low += step - moved
    return low, high


@inner
def _move_any(
    words: Int, old: Any, new: Any, field: Any, side: Any, by_set: bool, turns: Any, low: Int, high: Int
) -> Any:
    """Move rows of so many words."""
    (word, shift, mask, second), (start, stop, step) = field, turns
    for row in range(start, stop, step):
        begin = at(words * row)
        is_second = _is_second(side, by_set, second, (old[begin + word] >> shift) & mask)
        place = at(words * (high if is_second else low))
        for index in range(words):
            new[place + at(index)] = old[begin + at(index)]
        moved = step if is_second else np.int64(0)
        high += moved
        low += step - moved
    return low, high


@kernel
def scatter(node: NodeView, target: Rows, split: Any, start: Int, stop: Int, step: Int, places: Any) -> None:
    """Move rows start, start + step, … before stop to their parts; `places` holds the next free row of each part.

    Two threads can share a node: one goes forward from its first row, the other backward from its last, and they meet
    within every part, whose rows keep their order.
    """
    column, parts, _, by_set = split
    bit, mask = node.columns.facts[BIT, column], node.columns.facts[MASK, column]
    old, new, firsts, side = node.rows.words, target.words, node.scratch.lists[PARTS], node.scratch.side
    if parts == 2:
        field, turns = (at(bit >> 6), at(bit & 63), at(mask), at(firsts[1])), (start, stop, step)
        given, next_free = (field, side, by_set == 1, turns), (places[0], places[1])
        if old.shape[1] == 2:
            places[0], places[1] = _move_pairs(old.ravel(), new.ravel(), *given, *next_free)
        elif old.shape[1] == 3:
            places[0], places[1] = _move_triples(old.ravel(), new.ravel(), *given, *next_free)
        else:
            places[0], places[1] = _move_any(old.shape[1], old.ravel(), new.ravel(), *given, *next_free)
        return
    for row in range(start, stop, step):
        part = run_of(firsts, parts, read(old, bit, mask, row))
        for word in range(old.shape[1]):
            new[places[part], word] = old[row, word]
        places[part] += step


@inner
def persons_between(rows: Rows, columns: Columns, start: Int, stop: Int) -> Any:
    """Persons of rows start..stop, each row counted on its own."""
    if columns.counts < 0:
        return stop - start
    persons = np.int64(0)
    for row in range(start, stop):
        persons += persons_in(rows.words, columns.counts, row)
    return persons


@inner
def divide(node: NodeView, target: Rows, split: Any, edges: Any) -> Any:
    """Move a node's rows to their parts; fills `edges` (first row and row after the last, part); the largest part."""
    sizes = node.scratch.lists[SIZES]
    if node.columns.counts >= 0:
        count_parts(node, split, sizes)
    place, largest = node.start, np.int64(0)
    for part in range(split[1]):
        edges[0, part], edges[1, part] = place, place
        place += sizes[part]
        if sizes[part] > sizes[largest]:
            largest = np.int64(part)
    scatter(node, target, split, node.start, node.stop, np.int64(1), edges[1])
    return largest


# Rows of Routes.nodes.
COLUMN, CHILD, CHILDREN, START = 0, 1, 2, 3
SET = 4  # the first byte of its set in Routes.members, -1 without one

UNKNOWN = -1
"""The cell of a value that the recoding does not know: its row stays at the node that asks for it."""


class Routes(NamedTuple):
    """A tree as the kernel reads it, and the cell of every code of every column."""

    nodes: NDArray[np.int32]  # (fact, node)
    members: NDArray[np.uint8]  # the bits of all sets, one after the other
    cells: NDArray[np.int32]  # (code of any column,)


def make_routes(tree: Tree, cells: list[NDArray[np.int32]], sizes: list[int]) -> Routes:
    """Routes for rows whose codes stand for these cells; `sizes` is the number of cells of each column."""
    place = np.full(len(tree.column), -1, np.int32)
    members = [np.zeros(0, np.uint8)]
    used = 0
    for column in np.unique(tree.column[tree.set_of >= 0]).tolist():
        divided, which, bits = set_bits(tree, column, sizes[column])
        place[divided] = used + which * bits.shape[1]
        used += bits.size
        members.append(bits.ravel())
    nodes = np.stack([tree.column, tree.first_child, tree.children, tree.start, place]).astype(np.int32)
    return Routes(nodes, np.concatenate(members), np.concatenate([np.zeros(0, np.int32), *cells]))


@kernel
def _route(rows: Rows, columns: Columns, routes: Routes, start: int, stop: int, ends: Any) -> None:
    """Write the node that each of the rows start..stop ends in."""
    words, nodes, members, cells, facts = rows.words, routes.nodes, routes.members, routes.cells, columns.facts
    for row in range(start, stop):
        node = np.int64(0)
        while nodes[COLUMN, node] >= 0:
            column = nodes[COLUMN, node]
            cell = cells[facts[PLACE, column] + read(words, facts[BIT, column], facts[MASK, column], row)]
            if cell < 0:
                break
            first = np.int64(nodes[CHILD, node])
            if nodes[SET, node] >= 0:
                byte = members[nodes[SET, node] + (cell >> 3)]
                node = first + 1 - np.int64((byte >> (7 - (cell & 7))) & 1)
                continue
            low, high = first, first + nodes[CHILDREN, node] - 1
            while low < high:
                middle = (low + high + 1) >> 1
                if nodes[START, middle] <= cell:
                    low = middle
                else:
                    high = middle - 1
            node = low
        ends[row] = node


def route_packed(rows: Rows, columns: Columns, routes: Routes, *, threads: int | None = None) -> NDArray[np.int32]:
    """The node of each packed row, in their order."""
    count = len(rows.words)
    ends = np.empty(count, np.int32)
    workers = thread_count(threads)
    given = shared(rows), shared(columns), shared(routes)
    if workers == 1 or count < 1 << 16:
        _route(*given, 0, count, ends)
        return ends
    edges = np.linspace(0, count, 4 * workers + 1).astype(int).tolist()
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda start, stop: _route(*given, start, stop, ends), edges[:-1], edges[1:]))
    return ends


def route_regions(
    rows: Rows, columns: Columns, routes: Routes, begins: NDArray[np.int64], *, threads: int | None = None
) -> NDArray[np.int32]:
    """The node of each packed row, in their order, where those of a region stand together from each of `begins` on.

    Rows of one region have been sent there by the same splits: one of them goes down the tree for all.
    """
    nodes = route_packed(rows_of(rows.words[begins]), columns, routes, threads=threads)
    return np.repeat(nodes, np.diff(np.append(begins, len(rows.words))))


def route_table(
    table: CodedTable, tree: Tree, cells: list[NDArray[np.int32]], sizes: list[int], *, threads: int | None = None
) -> NDArray[np.int32]:
    """The node of each row of a table, in the table's order."""
    packed, columns = pack_table(table, threads=thread_count(threads))
    nodes = np.empty(table.rows, np.int32)
    nodes[packed.field(columns.number)] = route_packed(
        packed, columns, make_routes(tree, cells, sizes), threads=threads
    )
    return nodes


@dataclass(frozen=True, slots=True)
class RankedRegions:
    """The way of codes to regions, and the rank of each node's region."""

    columns: tuple[CodedColumn, ...]
    routes: Routes
    rank_of_node: NDArray[np.int64]  # (node,) -1 where no row is
    regions: pl.DataFrame

    @property
    def fields(self) -> Sequence[str]:
        """The fields that ranks are found from."""
        return [code_name(column) for column in range(len(self.columns))]

    def ranks(self, codes: Mapping[str, NDArray[Any]]) -> NDArray[np.uint32]:
        """The rank of each row, from its codes."""
        ranks = self.rank_of_node[self.nodes(codes)]
        assert (ranks >= 0).all(), "a row is in a region that no row was in"
        return ranks.astype(np.uint32)

    def nodes(self, codes: Mapping[str, NDArray[Any]]) -> NDArray[np.int32]:
        """The node of each row."""
        values = tuple(codes[name] for name in self.fields)
        packed, columns = pack_table(CodedTable(self.columns, values, len(values[0])))
        return route_packed(packed, columns, self.routes, threads=1)
