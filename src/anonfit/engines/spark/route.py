# SPDX-License-Identifier: Apache-2.0
"""How rows get their new nodes in Spark, how many go where, and what becomes of finished nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.engines.contract import CountRequest, Move
from anonfit.engines.spark.count import ROWS, fields_of, loaded
from anonfit.engines.spark.rows import CONTENT, NODE, apart, pack, packed, unpacked
from anonfit.engines.spark.source import quiet


@dataclass(frozen=True, slots=True)
class CodeCounts:
    """How many rows of each node that was asked for have which code of a field, in the order of the nodes."""

    field: str
    asked: frozenset[int]
    nodes: NDArray[np.int64]  # (entry,)
    codes: NDArray[np.int64]  # (entry,)
    rows: NDArray[np.int64]  # (entry,)

    def of(self, move: Move) -> NDArray[np.int64]:
        """How many rows each part of a split gets."""
        inside = slice(*np.searchsorted(self.nodes, [move.node, move.node + 1]))
        rows_of_part = np.zeros(move.parts, np.int64)
        np.add.at(rows_of_part, move.part_of(self.codes[inside]), self.rows[inside])
        return rows_of_part


def code_counts(request: CountRequest, counted: pl.DataFrame) -> CodeCounts:
    """What the counts of a request tell of its first field."""
    by_node = counted.sort(NODE)
    columns = (by_node[name].to_numpy().astype(np.int64) for name in (NODE, "by0", ROWS))
    return CodeCounts(request.by[0], frozenset(request.nodes), *columns)


def sizes_of(moves: Sequence[Move], tallies: Sequence[CodeCounts]) -> dict[int, int] | None:
    """How many rows each part gets that gets any; None where that was not counted."""
    sizes: dict[int, int] = {}
    for move in moves:
        known = next((counts for counts in tallies if counts.field == move.field and move.node in counts.asked), None)
        if known is None:
            return None
        for part, rows in enumerate(known.of(move).tolist()):
            if rows:
                sizes[move.first + part] = sizes.get(move.first + part, 0) + rows
    return sizes


@dataclass(frozen=True, slots=True)
class Route:
    """Gives rows their new nodes; a finished node n becomes -1 - n, and stays that."""

    moves: tuple[Move, ...]
    finished: tuple[int, ...]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """The same packs with other nodes."""
        asked = {move.field for move in self.moves}
        for rows in unpacked(batches):
            nodes = self.new_nodes(rows[NODE].to_numpy(), {name: rows[name].to_numpy() for name in asked})
            yield packed({CONTENT: [pack(rows.with_columns(pl.Series(NODE, nodes)))]})

    def new_nodes(self, nodes: NDArray[np.int32], fields: Mapping[str, NDArray[Any]]) -> NDArray[np.int32]:
        """The nodes that rows go to."""
        first, *later = self._rounds()
        nodes = Route(first, self.finished).at_once(nodes, fields)
        for moves in later:
            nodes = Route(moves, ()).at_once(nodes, fields)
        return nodes

    def _rounds(self) -> list[tuple[Move, ...]]:
        """Moves that can be made at once: none goes on from where another one of its round leads."""
        rounds: list[list[Move]] = [[]]
        reached: set[int] = set()
        for move in self.moves:
            if move.node in reached:
                rounds.append([])
                reached = set()
            rounds[-1].append(move)
            reached.update(range(move.first, move.first + move.parts))
        return [tuple(moves) for moves in rounds]

    def at_once(self, nodes: NDArray[np.int32], fields: Mapping[str, NDArray[Any]]) -> NDArray[np.int32]:
        """The nodes that rows go to by moves none of which goes on from another."""
        place_of = np.full(max([0, *self.finished, *(move.node for move in self.moves)]) + 2, -1, np.int32)
        place_of[list(self.finished)] = len(self.moves)
        place_of[[move.node for move in self.moves]] = np.arange(len(self.moves))
        # Nodes that nothing is said of, finished ones among them, look at the last place.
        places = place_of[np.where((nodes < 0) | (nodes >= len(place_of)), -1, nodes)]
        few = len(self.moves) < np.iinfo(np.int16).max  # which are sorted much faster
        order = np.argsort(places.astype(np.int16) if few else places, kind="stable")
        edges = np.searchsorted(places[order], np.arange(len(self.moves) + 2))
        goals = nodes.copy()
        for number, move in enumerate(self.moves):
            inside = order[edges[number] : edges[number + 1]]
            goals[inside] = move.first + move.part_of(fields[move.field][inside])
        ended = order[edges[-2] : edges[-1]]
        goals[ended] = -1 - nodes[ended]
        return goals


def routed(rows: Any, moves: Sequence[Move], finished: Collection[int]) -> Any:
    """Packs whose rows have their new nodes: the splits are sent to all executors."""
    with quiet():
        work = Route(tuple(moves), tuple(sorted(finished)))
        return rows.select(CONTENT).mapInArrow(work, f"{CONTENT} binary")


def part_by_node(nodes: Collection[int], names: Sequence[str], batches: Iterable[Any]) -> Iterator[Any]:
    """Packs of their own for the rows of each finished node that is asked for: nodes, and packs of fields."""
    marks = pl.Series([-1 - node for node in nodes], dtype=pl.Int32)
    for rows in unpacked(batches, [NODE, *names]):
        for number, part in apart(rows.filter(pl.col(NODE).is_in(marks.implode())), NODE):
            yield packed({NODE: [-1 - number], CONTENT: [pack(part)]})


def finish_node(grow: bytes, names: Sequence[str], key: tuple[Any, ...], table: Any) -> Any:
    """The subtree of one node as one row: the node, and what `grow`, the in-memory kernel as bytes, says of it."""
    import pyarrow as pa

    number = int(key[0].as_py())
    values = fields_of((content.as_buffer() for content in table.column(CONTENT)), names)
    nodes, members = loaded(grow)(number, values)
    numbers = [pa.array([entry], pa.int64()) for entry in (number, nodes.shape[1])]
    content = [pa.array([array.tobytes()], pa.binary()) for array in (nodes, members)]
    return pa.table([*numbers, *content], names=[NODE, "facts", "nodes", "members"])
