# SPDX-License-Identifier: Apache-2.0
"""How the persons of every group are spread over the values of a column: what diversity models are computed from.
Only pairs of a group and a value that occur are kept, so a table of many groups and many values stays small."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from anonfit.auditing.coding import Coded, IntArray, dense
from anonfit.auditing.groups import Persons, ValueCounts, persons_in_groups

__all__ = ["BoolArray", "FloatArray", "Spread", "spread_of", "value_places"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Spread:
    """Persons per group and value. Values are called by their place among all values of the table, in rising order."""

    groups: IntArray  # (group) its number in the grouping; groups without persons are left out
    begin: IntArray  # (group) its first pair
    total: IntArray  # (group) the sum of its counts
    group: IntArray  # (pair) rising
    value: IntArray  # (pair) the value's place, rising within a group
    count: IntArray  # (pair)
    table: IntArray  # (value) persons of the whole table

    def sums(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The sum of something of the pairs, per group."""
        return np.add.reduceat(values, self.begin)

    def most(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The largest of something of the pairs, per group."""
        return np.maximum.reduceat(values, self.begin)

    @property
    def distinct(self) -> IntArray:
        """The number of different values, per group."""
        return np.diff(np.append(self.begin, len(self.group)))

    @property
    def share(self) -> FloatArray:
        """The share that each pair's value has in its group."""
        return self.count / self.total[self.group]

    @property
    def table_share(self) -> FloatArray:
        """The share that each value has in the whole table."""
        shares: FloatArray = self.table / self.table.sum()
        return shares


def value_places(column: Coded) -> tuple[IntArray, int]:
    """The place of every row's value among the different ones, in the order of their codes, and how many they are."""
    if column.bound > max(4 * len(column.codes), 2**16):
        places, first = dense(column.codes)
        return places, len(first)
    seen = np.bincount(column.codes, minlength=column.bound) > 0
    return (np.cumsum(seen) - 1)[column.codes], int(np.count_nonzero(seen))


def spread_of(persons: Persons, column: Coded, *, counts: ValueCounts) -> Spread:
    """The spread of a column whose values were counted. In the whole table, too, a person has a value once."""
    begin = np.flatnonzero(np.diff(counts.group, prepend=-1))
    groups = counts.group[begin]
    group = np.repeat(np.arange(len(begin)), np.diff(np.append(begin, len(counts.group))))
    place, different = value_places(Coded(counts.value, int(counts.value.max(initial=0)) + 1))
    if persons.entities is None:
        table = np.bincount(place, weights=counts.persons, minlength=different).astype(np.int64)
    else:
        table = persons_in_groups(persons, value_places(column)[0], different)
    total = np.add.reduceat(counts.persons, begin) if len(begin) else begin
    return Spread(groups, begin, total, group, place, counts.persons, table)
