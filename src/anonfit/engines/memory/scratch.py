# SPDX-License-Identifier: Apache-2.0
"""Working memory of the kernels, one per thread, so that no node allocates any."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.memory.constraints import KernelConstraints
from anonfit.engines.memory.layout import BIN, SIZE, SPAN, Columns, shared
from anonfit.engines.memory.objective import SLOTS, KernelObjective


class KernelForms(NamedTuple):
    """What kernels read beside rows: the columns, the objective, and the constraints if there are any."""

    columns: Columns
    objective: KernelObjective
    constraints: KernelConstraints | None

    def shared(self) -> KernelForms:
        """The structures that kernels are given in place of these tuples."""
        constraints = None if self.constraints is None else shared(self.constraints)
        return KernelForms(shared(self.columns), shared(self.objective), constraints)


# Rows of Scratch.lists.
CODES = 0  # codes present in the node, ascending
PERSONS = 1  # persons of each
STARTS = 2  # first code of each element that may be cut off
OWN = 3  # persons of each element, every row counted on its own
LEFT = 4  # persons of this and lower elements, in the order of the elements
RIGHT = 5  # persons of higher elements
PARTS = 6  # first code of each part of the chosen split
SIZES = 7  # persons of each part, every row counted on its own
ENDS = 8  # last code of each element
ORDER = 9  # elements in the order in which they are cut
RANK = 10  # the place of each element in that order
LEGAL = 11  # 1 where a cut after the element in this place is legal
SPARE = 12
LISTS = 13

# Rows of Scratch.splits.
SPREAD = 0  # normalized range in the node, -1 where the column cannot be split
COST = 1  # cost of the column's best split, infinite where it has none
CUT = 2  # the place after which it is cut (multiway: 0, or 1 where missing is joined with the first child)
WAY = 3  # the target whose order of elements it is cut in
STATE = 4  # whether every cut was held against the privacy models
CHANCE = 5  # the number that chance gives the column at the node, where a rule draws
TOGETHER = 6  # the share of all pairs of rows that the column's split leaves together, where a rule asks for it
FACTS = 7


HISTOGRAMS = 64
"""Histograms a subtree keeps at once: enough for two-way splits of any depth; wider splits may count a node again."""
ENTRIES = 1 << 22
"""Entries that these histograms may have in all."""


class Scratch(NamedTuple):
    """Working memory of one thread."""

    lists: NDArray[np.int64]  # (list, entry)
    sums: NDArray[np.int64]  # the sums of each code, then those of each element
    dense: NDArray[np.int64]  # the sums of each code of the widest column; all zero between uses
    keys: NDArray[np.uint64]  # (2, row) keys and their sorted copy
    splits: NDArray[np.float64]  # (fact, column) what is known of the best split of each column
    below: NDArray[np.int64]  # the sums of each side of a cut
    above: NDArray[np.int64]
    whole: NDArray[np.int64]  # the sums of the node
    places: NDArray[np.int64]  # where the sums of a row's codes begin
    means: NDArray[np.float64]  # (entry,) what elements are ordered by
    histograms: NDArray[np.int64]  # (histogram, sum of a bin) of the nodes of a subtree
    span: NDArray[np.int64]  # (fact, column) of the node at hand
    tile: NDArray[np.uint8]  # of the node at hand
    side: NDArray[np.uint8]  # (code,) 0 for codes of the first part of a set split, 1 for others
    tallies: NDArray[np.int64]  # (side, value of any sensitive column) persons; all zero between uses
    totals: NDArray[np.int64]  # (side, fact, sensitive column)
    logs: NDArray[np.float64]  # (side, sensitive column) sum of x ln x of the tallies, nearly


def make_scratch(forms: KernelForms, rows: int) -> Scratch:
    """Working memory for nodes of at most `rows` rows."""
    columns, objective, constraints = forms
    size = columns.facts[SIZE]
    wide = size[columns.facts[BIN] < 0]
    entries = int(size.max(initial=1)) + 2
    width = int(objective.settings[SLOTS])
    values, sensitive = (0, 0) if constraints is None else (constraints.shares.shape[0], constraints.sensitive.shape[1])
    length = columns.bins * width
    keys = max(1, rows) if constraints else max(1, min(rows, 1 << 20)) if len(wide) else 1
    return Scratch(
        lists=np.zeros((LISTS, entries), np.int64),
        sums=np.empty(2 * entries * width, np.int64),
        dense=np.zeros(int(wide.max(initial=1)) * width, np.int64),
        keys=np.empty((2, keys), np.uint64),
        splits=np.empty((FACTS, size.shape[0]), np.float64),
        below=np.zeros(width, np.int64),
        above=np.zeros(width, np.int64),
        whole=np.zeros(width, np.int64),
        places=np.zeros(max(1, len(columns.narrow)), np.int64),
        means=np.empty(entries, np.float64),
        histograms=np.empty((max(4, min(HISTOGRAMS, ENTRIES // max(length, 1))), length), np.int64),
        span=np.zeros((SPAN, size.shape[0]), np.int64),
        tile=np.zeros(columns.tile, np.uint8),
        side=np.empty(entries, np.uint8),
        tallies=np.zeros((2, values), np.int64),
        totals=np.zeros((2, 5, sensitive), np.int64),
        logs=np.zeros((2, sensitive), np.float64),
    )
