# SPDX-License-Identifier: Apache-2.0
"""A released table against its source, both read some rows at a time: rows of one group with equal raw values have one
key, and multisets of keys are compared by their number and sum; only if these differ, key by key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from anonfit.auditing.coding import Hashes, IntArray
from anonfit.auditing.hashing import Align, Shards, Side, add_hashes, aligned, plain_values, side_of
from anonfit.auditing.reading import Table
from anonfit.auditing.source import row_keys

__all__ = ["Tally", "hashers"]

_SEED = 0x3C6EF372


@dataclass(frozen=True, slots=True)
class _Lookup:
    """The different values of a column, told by hashes, and what each is where both tables have one type."""

    keys: Hashes  # (value) rising
    values: pl.Series  # (value)

    def side(self, column: Side) -> Side:
        """A column with its values replaced; missing ones are among those that are known."""
        places = np.searchsorted(self.keys, column.values.hash(seed=_SEED).to_numpy())
        return replace(column, values=self.values.gather(places))


@dataclass(frozen=True, slots=True)
class Hasher:
    """How rows of one table are hashed: by which columns, and with which values in place of theirs."""

    names: tuple[str, ...]
    lookups: Mapping[str, _Lookup]

    def hashes(self, batch: Table, rows: int) -> Hashes:
        """A hash of the raw values of every row."""
        found = np.zeros(rows, np.uint64)
        for place, series in enumerate(batch.frame(self.names).get_columns(), 1):
            side, lookup = side_of(series), self.lookups.get(series.name)
            add_hashes(
                found, replace(side, values=plain_values(side.values)) if lookup is None else lookup.side(side), place
            )
        return found


def hashers(one: Table, other: Table, names: Sequence[str], *, align: Align) -> tuple[Hasher, Hasher]:
    """How the rows of two tables are hashed, so that equal values have equal hashes. Values of types that differ, and
    texts of numbers, are made alike once for all rows.
    """
    lookups: tuple[dict[str, _Lookup], dict[str, _Lookup]] = {}, {}
    for name in names:
        kinds = [plain_values(pl.Series([], dtype=table.schema[name])).dtype for table in (one, other)]
        if kinds[0] == kinds[1] and (align is aligned or kinds[0] != pl.String):
            continue
        different = [_different(table, name) for table in (one, other)]
        for found, values, made in zip(lookups, different, align(different[0], different[1]), strict=True):
            keys = values.hash(seed=_SEED).to_numpy()
            order = np.argsort(keys)
            found[name] = _Lookup(keys[order], made.gather(order))
    return Hasher(tuple(names), lookups[0]), Hasher(tuple(names), lookups[1])


def _different(table: Table, name: str) -> pl.Series:
    """The different values of a column and a missing one."""
    found = replace(table, lazy=table.lazy.select(pl.col(name).unique())).frame([name]).to_series()
    if isinstance(found.dtype, (pl.Categorical, pl.Enum)):
        found = found.cast(pl.String)
    return found.extend(pl.Series([None], dtype=found.dtype)).unique()


class Tally:
    """The number and the sum of the keys of rows, and, if they are to be compared one by one, the keys."""

    def __init__(self, hasher: Hasher, *, keep: bool) -> None:
        self.hasher = hasher
        self.rows = self.total = 0
        self.keys = Shards() if keep else None

    def add(self, batch: Table, groups: IntArray) -> None:
        """The next rows; those of no group (-1) are left out."""
        keys = row_keys((groups, self.hasher.hashes(batch, len(groups))))
        self.rows += len(keys)
        self.total = (self.total + int(keys.sum(dtype=np.uint64))) % 2**64
        if self.keys is not None:
            self.keys.add(keys)

    def equals(self, other: Tally) -> bool:
        """Whether both are of equal multisets."""
        return (self.rows, self.total) == (other.rows, other.total)
