# SPDX-License-Identifier: Apache-2.0
"""How the plain engine splits for selections: so that fewer persons are in regions that a selection only touches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from anonfit.criteria.objectives import TIE, SplitObjective
from anonfit.criteria.targets import CodedSelections
from anonfit.tables.schema import MISSING, SplitMode
from anonfit.testing.reference.records import Parts, PlainNode, PlainSplit, Records, joined


class Selecting:
    """The split after which selections retrieve the fewest persons."""

    def __init__(self, records: Records, purpose: SplitObjective, selections: CodedSelections) -> None:
        self.records = records
        self.purpose = purpose
        self.selections = selections
        self.signatures = [int(signature) for signature in selections.signatures]
        ends = np.cumsum([column.size for column in records.columns]).tolist()
        self.firsts = [0, *ends[:-1]]  # (column,) where its codes stand among those of all columns

    def touched(self, column: int, codes: Sequence[int]) -> NDArray[np.bool_]:
        """Which rectangles have one of these codes. (rectangle,)"""
        places = [self.firsts[column] + code for code in codes]
        return np.asarray(self.selections.rectangles[:, places].any(axis=1))

    def retrieved(self, rows: Sequence[int], meets: NDArray[np.bool_]) -> float:
        """The weighted mass of rows that selections retrieve from a region, given the rectangles that meet it."""
        selections = self.selections
        masses = [0] * len(selections.applies)  # (signature,)
        for row in rows:
            masses[self.signatures[row]] += self.records.masses[row]
        total = 0.0
        for selection, weight in enumerate(selections.weights):
            for signature, mass in enumerate(masses):
                if np.any(meets & (selections.selection == selection) & (selections.applies[signature] == 1)):
                    total += float(weight) * float(mass)
        return total

    def meets(self, node: PlainNode, but: int = -1) -> NDArray[np.bool_]:
        """Which rectangles have a code in common with a node's tile in every column (but one). (rectangle,)"""
        met = np.ones(len(self.selections.rectangles), np.bool_)
        for column, codes in enumerate(node.tile):
            if column != but:
                met &= self.touched(column, codes)
        return met

    def split_retrieved(self, node: PlainNode, column: int, parts: Parts) -> float:
        """The weighted mass that selections retrieve from all parts of a split."""
        beside = self.meets(node, but=column)
        total = 0.0
        for part in parts:
            total += self.retrieved(self.records.within(node, column, part), beside & self.touched(column, part))
        return total

    def first_selection(self, column: int, piece: Sequence[int]) -> int:
        """The lowest number of a selection that reaches a code of an element."""
        reached = self.selections.selection[self.touched(column, piece)].tolist()
        return min(reached, default=len(self.selections.weights))

    def candidates(self, node: PlainNode, column: int) -> Iterator[Parts]:
        """The legal splits of a column, in the order in which they are compared."""
        records, tile = self.records, node.tile[column]
        mode = records.columns[column].mode
        if mode == SplitMode.MULTIWAY:
            parts = records.multiway(node, column)
            options = [parts] if parts else []
        elif mode == SplitMode.ORDERED:
            known, gap = records.known(node, column)
            lowest = MISSING if gap else known[0]
            cuts = range(lowest + 1, known[-1] + 1)
            options = [[[code for code in tile if code < cut], [code for code in tile if code >= cut]] for cut in cuts]
        else:
            pieces = [[code] for code in tile] if mode == SplitMode.SUBSET else records.elements(node, column)
            order = sorted(pieces, key=lambda piece: self.first_selection(column, piece))
            options = [[joined(order[:cut]), joined(order[cut:])] for cut in range(1, len(order))]
        for parts in options:
            if mode == SplitMode.MULTIWAY or records.all_legal(node, column, parts):
                yield parts

    def split_of(self, column: int, parts: Parts) -> PlainSplit:
        """A split as it is kept; an ordered one may lie exactly at the boundary of a rectangle."""
        mode = self.records.columns[column].mode
        at_boundary = mode == SplitMode.ORDERED and bool(self.selections.boundaries[self.firsts[column] + parts[1][0]])
        return PlainSplit(column, parts, is_set=mode in (SplitMode.SUBSET, SplitMode.BINARY), at_boundary=at_boundary)

    def best_of(self, node: PlainNode, column: int) -> tuple[Parts, float] | None:
        """The best split of a column and what is retrieved after it per mass, if there is a legal one."""
        mass = self.records.mass(node.rows)
        best: tuple[Parts, float] | None = None
        for parts in self.candidates(node, column):
            mean = self.split_retrieved(node, column, parts) / mass
            if best is None or mean < best[1] - TIE:
                best = parts, mean
        return best

    def choose(self, node: PlainNode) -> PlainSplit | None:
        """The split of a node that reduces what is retrieved, if there is one."""
        best: PlainSplit | None = None
        best_mean, best_spread = 0.0, 0.0
        for column in range(len(self.records.columns)):
            spread = self.records.spread(node, column)
            offer = self.best_of(node, column) if spread >= 0 and self.purpose.may_split(column) else None
            if offer is None:
                continue
            parts, mean = offer
            wider = mean <= best_mean + TIE and spread > best_spread + TIE
            if best is None or mean < best_mean - TIE or wider:
                best, best_mean, best_spread = self.split_of(column, parts), mean, spread
        before = self.retrieved(node.rows, self.meets(node)) / self.records.mass(node.rows)
        return best if best is not None and before - best_mean > TIE else None
