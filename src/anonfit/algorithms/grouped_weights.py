# SPDX-License-Identifier: Apache-2.0
"""Weights of quasi-identifiers from how well each of them alone predicts the targets, of a table that is known by its
values: pairs of a column's and a target's values are counted, and no row is looked at.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.grouped import GroupedTable
from anonfit.tables.schema import CodedColumn, Column
from anonfit.workload.objectives import LearnedWeights, class_targets, guessed, in_ranges, ranked
from anonfit.workload.targets import Workload

__all__ = ["learn_weights_outside"]

PLACE = "\0place"


def learn_weights_outside(
    table: GroupedTable, workload: Workload, columns: Sequence[Column], coded: Sequence[CodedColumn]
) -> LearnedWeights:
    """The weights of quasi-identifiers that were coded, for the targets of a workload that have classes."""
    classes = class_targets(workload, columns, lambda name: table.groups(name).frame[name])
    accuracies = {}
    for column in coded:
        found = []
        for name, (of_value, width) in classes.items():
            if name != column.name:  # a column does not predict itself
                own, other, persons = _pairs(table, column.name, name)
                places = in_ranges(column, table.codes[column.name][own].astype(np.int64), persons)
                found.append(guessed(places, of_value[other], width, persons))
        accuracies[column.name] = sum(found) / len(found) if found else 0.0
    return ranked(accuracies, set(classes))


def _pairs(
    table: GroupedTable, column: str, other: str
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The pairs of two columns' values that occur: the place of each among its column's groups, and the persons."""
    import polars as pl

    pairs = table.counted([column, other])
    found = []
    for name in (column, other):
        groups = table.groups(name).frame.select(name)
        places = groups.with_columns(pl.Series(PLACE, np.arange(len(groups)))).unique(name, keep="any")
        joined = pairs.frame.select(name).join(places, on=name, how="left", nulls_equal=True, maintain_order="left")
        found.append(joined[PLACE].to_numpy())
    return found[0], found[1], pairs.persons
