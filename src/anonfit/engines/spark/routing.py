# SPDX-License-Identifier: Apache-2.0
"""Sending rows to the parts of splits: the splits are broadcast, and every row looks up that of its node."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from anonfit.engines.contract import Move
from anonfit.engines.spark.session import quiet
from anonfit.engines.spark.work import NODE

__all__ = ["routed"]

FINISHED = -1
WORD = 64


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
