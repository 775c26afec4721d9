# SPDX-License-Identifier: Apache-2.0
"""Sending rows to the parts of splits: the splits are broadcast, and every row looks up that of its node."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.contract import CountRequest, Move
from anonfit.engines.spark.session import quiet
from anonfit.engines.spark.work import NODE, ROWS

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Tally", "routed", "sizes_of", "tally"]

FINISHED = -1
WORD = 64


@dataclass(frozen=True, slots=True)
class Tally:
    """How many rows of each node that was asked for have which code of a field, in the order of the nodes."""

    field: str
    asked: frozenset[int]
    nodes: NDArray[np.int64]  # (entry,)
    codes: NDArray[np.int64]  # (entry,)
    rows: NDArray[np.int64]  # (entry,)

    def of(self, move: Move) -> NDArray[np.int64]:
        """How many rows each part of a split gets."""
        inside = slice(*np.searchsorted(self.nodes, [move.node, move.node + 1]))
        codes = self.codes[inside]
        if move.members is None:
            parts = np.searchsorted(np.array(move.starts[1:], np.int64), codes, side="right")
        else:
            parts = 1 - np.isin(codes, move.members).astype(np.int64)
        found = np.zeros(move.parts, np.int64)
        np.add.at(found, parts, self.rows[inside])
        return found


def tally(request: CountRequest, counted: pl.DataFrame) -> Tally:
    """What the counts of a request tell of its first field."""
    found = counted.sort(NODE)
    columns = (found[name].to_numpy().astype(np.int64) for name in (NODE, "by0", ROWS))
    return Tally(request.by[0], frozenset(request.nodes), *columns)


def sizes_of(moves: Sequence[Move], tallies: Sequence[Tally]) -> dict[int, int] | None:
    """How many rows each part gets that gets any; None where that was not counted."""
    sizes: dict[int, int] = {}
    for move in moves:
        known = next((one for one in tallies if one.field == move.field and move.node in one.asked), None)
        if known is None:
            return None
        for part, rows in enumerate(known.of(move).tolist()):
            if rows:
                sizes[move.first + part] = rows
    return sizes


def routed(session: Any, rows: Any, moves: Sequence[Move], finished: Collection[int]) -> Any:
    """Rows with their new nodes; a finished node n becomes -1 - n, and stays that."""
    from pyspark.sql import functions

    fields = list(dict.fromkeys(move.field for move in moves))
    others = [name for name in rows.columns if name != NODE]
    with quiet():
        splits = functions.broadcast(session.createDataFrame(_splits(moves, finished, fields)))
        joined = rows.join(splits, rows[NODE] == splits["moved"], "left")
        return joined.select(functions.expr(_new_node(fields)).alias(NODE), *others)


def _splits(moves: Sequence[Move], finished: Collection[int], fields: Sequence[str]) -> Any:
    """The splits as a small table: the field that is asked, and the first codes of parts or the bits of a set."""
    import pyarrow as pa

    ended = sorted(finished)
    return pa.table(
        {
            "moved": pa.array([*(move.node for move in moves), *ended], pa.int32()),
            "field": pa.array([*(fields.index(move.field) for move in moves), *[FINISHED] * len(ended)], pa.int32()),
            "first": pa.array([*(move.first for move in moves), *[0] * len(ended)], pa.int32()),
            "starts": pa.array(
                [*(list(move.starts[1:]) if move.members is None else None for move in moves), *[None] * len(ended)],
                pa.list_(pa.int64()),
            ),
            "bits": pa.array(
                [*(None if move.members is None else _bits(move.members) for move in moves), *[None] * len(ended)],
                pa.list_(pa.int64()),
            ),
        }
    )


def _bits(members: Sequence[int]) -> list[int]:
    """A set of codes as words of 64 bits."""
    places = np.array(members, np.int64)
    words = np.zeros(int(places.max(initial=0)) // WORD + 1, np.uint64)
    np.bitwise_or.at(words, places // WORD, np.uint64(1) << (places % WORD).astype(np.uint64))
    found: list[int] = words.view(np.int64).tolist()
    return found


def _new_node(fields: Sequence[str]) -> str:
    """The expression for the node that a row goes to."""
    if not fields:
        return f"CAST(CASE WHEN moved IS NULL THEN {NODE} ELSE -1 - {NODE} END AS INT)"
    code = " ".join(f"WHEN {place} THEN CAST({name} AS BIGINT)" for place, name in enumerate(fields))
    code = f"(CASE field {code} END)"
    by_start = f"size(filter(starts, start -> start <= {code}))"
    word = f"coalesce(get(bits, CAST({code} DIV {WORD} AS INT)), 0L)"
    by_set = f"CAST(1 - (shiftright({word}, CAST({code} % {WORD} AS INT)) & 1) AS INT)"
    return (
        f"CAST(CASE WHEN moved IS NULL THEN {NODE} WHEN field = {FINISHED} THEN -1 - {NODE} "
        f"WHEN bits IS NULL THEN first + {by_start} ELSE first + {by_set} END AS INT)"
    )
