# SPDX-License-Identifier: Apache-2.0
"""How far columns and combinations of them single records out, and which records are alone and why: minimal sample
uniques, as SUDA2 finds them. For the owner of the data only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import factorial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

MOST_COLUMNS, LARGEST_SET, SHOWN = 14, 3, 20
"""Columns that are combined, and columns of a combination, at most; records that are shown."""

Hashes = NDArray[np.uint64]


def _hashes(frame: pl.DataFrame, columns: Sequence[str]) -> list[Hashes]:
    return [frame[name].hash(seed=seed).to_numpy() for seed, name in enumerate(columns)]


def _sizes(parts: Sequence[Hashes]) -> NDArray[np.int64]:
    """For every row, how many rows have the same values in these columns."""
    total = np.zeros(len(parts[0]), dtype=np.uint64)
    for part in parts:
        total += part
    _, places, counts = np.unique(total, return_inverse=True, return_counts=True)
    return counts.astype(np.int64)[places]


def combinations_of(frame: pl.DataFrame, columns: Sequence[str], k: int) -> dict[str, Any]:
    """Uniqueness and separation of each column, of each two, and of all together."""
    known = list(columns)[:MOST_COLUMNS]
    hashes = dict(zip(known, _hashes(frame, known), strict=True))
    found = []
    for names in (*combinations(known, 1), *combinations(known, 2), *([tuple(known)] if len(known) > 2 else [])):
        sizes, rows = _sizes([hashes[name] for name in names]), frame.height
        found.append(
            {
                "columns": list(names),
                "unique": float((sizes == 1).mean()),
                "below_k": float((sizes < k).mean()),
                "separation": 1.0 - float((sizes - 1).sum()) / max(rows * (rows - 1), 1),
            }
        )
    return {"combinations": found, "left_out": list(columns)[MOST_COLUMNS:]}


def records_of(frame: pl.DataFrame, columns: Sequence[str], k: int) -> dict[str, Any]:
    """Group sizes of the raw table, and the records that fewest columns single out, with these columns."""
    known = list(columns)[:MOST_COLUMNS]
    hashes = _hashes(frame, known)
    together = _sizes(hashes)
    scores, reasons = _suda(hashes, frame.height)
    order = [int(row) for row in np.lexsort((-scores, together))[:SHOWN] if together[row] < k]
    sizes, counts = np.unique(together, return_counts=True)
    blame = np.zeros(len(known))
    for row, sets in reasons.items():
        for names in sets:
            blame[list(names)] += scores[row] / max(len(names), 1)
    return {
        "columns": known,
        "alone": int((together == 1).sum()),
        "below_k": int((together < k).sum()),
        "rows": frame.height,
        "of_size": {str(size): int(count // size) for size, count in zip(sizes.tolist(), counts.tolist(), strict=True)},
        "blame": dict(zip(known, (blame / (blame.sum() or 1)).tolist(), strict=True)),
        "records": [
            {
                "row": row + 1,
                "size": int(together[row]),
                "score": float(scores[row]),
                "values": [None if value is None else str(value) for value in frame.select(known).row(row)],
                "because": [[known[place] for place in names] for names in reasons.get(row, [])[:3]],
            }
            for row in order
        ],
    }


def _suda(hashes: Sequence[Hashes], rows: int) -> tuple[NDArray[np.float64], dict[int, list[tuple[int, ...]]]]:
    """The score of every row, and the smallest sets of columns by which it is alone."""
    scores, reasons = np.zeros(rows), dict[int, list[tuple[int, ...]]]()
    alone_by: dict[tuple[int, ...], NDArray[np.bool_]] = {}
    for names in _sets(len(hashes)):
        alone = _sizes([hashes[name] for name in names]) == 1
        minimal = alone.copy()
        for part in combinations(names, len(names) - 1):
            if part:
                minimal &= ~alone_by[part]
                alone |= alone_by[part]
        alone_by[names] = alone
        left = len(hashes) - len(names)
        scores[minimal] += factorial(left)
        for row in np.flatnonzero(minimal)[: 50 * SHOWN]:
            reasons.setdefault(int(row), []).append(names)
    return scores, reasons


def _sets(width: int) -> Iterator[tuple[int, ...]]:
    for size in range(1, min(LARGEST_SET, width) + 1):
        yield from combinations(range(width), size)
