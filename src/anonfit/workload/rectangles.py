# SPDX-License-Identifier: Apache-2.0
"""Predicates as disjoint rectangles: a product of one set of codes per quasi-identifier each. Sets are the bits of a
whole number, so that meeting and parting them is one step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonfit.errors import SpecError
from anonfit.workload.predicates import And, Condition, Predicate, all_of, any_of, column_of

LIMIT = 10_000
"""Rectangles of a workload."""

Rectangle: TypeAlias = dict[int, int]
"""The set of codes of each quasi-identifier that is restricted; sets are never empty."""

Part: TypeAlias = tuple[int, int] | bool
"""What a predicate over one column selects: a quasi-identifier and a set of its codes; or, where it is over a column
that is released raw, whether it holds.
"""


def set_of(mask: NDArray[np.uint8]) -> int:
    """A mask of codes as the bits of a number."""
    return int.from_bytes(np.packbits(mask, bitorder="little").tobytes(), "little")


def masks_of(rectangles: Sequence[Rectangle], sizes: Sequence[int]) -> NDArray[np.uint8]:
    """(rectangle, code of any quasi-identifier) 1 where within; the columns have these many codes."""
    masks = np.ones((len(rectangles), sum(sizes)), np.uint8)
    first = np.cumsum([0, *sizes])
    for row, rectangle in enumerate(rectangles):
        for column, codes in rectangle.items():
            size = sizes[column]
            packed = np.frombuffer(codes.to_bytes(-(-size // 8), "little"), np.uint8)
            masks[row, first[column] : first[column] + size] = np.unpackbits(packed, count=size, bitorder="little")
    return masks


def by_column(predicate: Predicate) -> Predicate:
    """The same predicate with parts over one and the same column put together: they are one set of codes."""
    if isinstance(predicate, Condition):
        return predicate
    grouped: dict[str | int, list[Predicate]] = {}
    for place, part in enumerate(predicate.parts):
        inner = by_column(part)
        column = column_of(inner)
        grouped.setdefault(place if column is None else column, []).append(inner)
    join = all_of if isinstance(predicate, And) else any_of
    parts = tuple(join(parts) for parts in grouped.values())
    return parts[0] if len(parts) == 1 else type(predicate)(parts)


def rectangles_of(predicate: Predicate, part: Callable[[Predicate], Part], sizes: Sequence[int]) -> list[Rectangle]:
    """Disjoint rectangles that together are what a predicate selects, which is put together by column; `part` says what
    its parts over one column select, and `sizes` how many codes each quasi-identifier has.
    """
    return _Parter(part, [(1 << size) - 1 for size in sizes]).of(predicate)


class _Parter:
    """Puts rectangles together so that they stay disjoint."""

    def __init__(self, part: Callable[[Predicate], Part], everything: Sequence[int]) -> None:
        self.part = part
        self.everything = everything

    def of(self, predicate: Predicate) -> list[Rectangle]:
        """The rectangles of a predicate."""
        if isinstance(predicate, Condition) or column_of(predicate) is not None:
            selected = self.part(predicate)
            if isinstance(selected, bool):
                return [{}] if selected else []
            column, codes = selected
            return [] if codes == 0 else [{} if codes == self.everything[column] else {column: codes}]
        parts = sorted((self.of(part) for part in predicate.parts), key=len)
        return self.all_of(parts) if isinstance(predicate, And) else self.any_of(parts)

    def all_of(self, parts: Sequence[list[Rectangle]]) -> list[Rectangle]:
        """What lies in all parts. Each is disjoint, so what their rectangles share is."""
        product: list[Rectangle] = [{}]
        for part in parts:
            shared = (_shared(rectangle, other) for rectangle in product for other in part)
            product = _bounded([both for both in shared if both is not None])
        return product

    def any_of(self, parts: Sequence[list[Rectangle]]) -> list[Rectangle]:
        """What lies in some part: of each what the parts before it leave over."""
        union: list[Rectangle] = []
        last = 0
        for part in parts:
            rest = part
            for taken in union:
                rest = _bounded([piece for rectangle in rest for piece in self.beside(rectangle, taken)])
            union = _bounded([*union, *rest])
            if len(union) > 2 * last:
                union = self.joined(union)
                last = len(union)
        return self.joined(union)

    def beside(self, rectangle: Rectangle, taken: Rectangle) -> list[Rectangle]:
        """What is left of a rectangle when another is taken from it, in disjoint pieces: one per column."""
        if any(not rectangle.get(column, codes) & codes for column, codes in taken.items()):
            return [rectangle]
        pieces, inner = [], dict(rectangle)
        for column, codes in taken.items():
            held = inner.get(column, self.everything[column])
            if held & ~codes:
                pieces.append({**inner, column: held & ~codes})
            inner[column] = held & codes
        return pieces

    def joined(self, rectangles: list[Rectangle]) -> list[Rectangle]:
        """Fewer rectangles: those that differ in one column only are one."""
        for column in sorted({column for rectangle in rectangles for column in rectangle}):
            alike: dict[tuple[tuple[int, int], ...], int] = {}
            for rectangle in rectangles:
                others = tuple(sorted((at, codes) for at, codes in rectangle.items() if at != column))
                alike[others] = alike.get(others, 0) | rectangle.get(column, self.everything[column])
            if len(alike) < len(rectangles):
                whole = self.everything[column]
                rectangles = [
                    dict(others) if codes == whole else {**dict(others), column: codes}
                    for others, codes in alike.items()
                ]
        return rectangles


def _shared(rectangle: Rectangle, other: Rectangle) -> Rectangle | None:
    """What two rectangles share, if anything."""
    shared = dict(rectangle)
    for column, codes in other.items():
        shared[column] = shared[column] & codes if column in shared else codes
        if shared[column] == 0:
            return None
    return shared


def _bounded(rectangles: list[Rectangle]) -> list[Rectangle]:
    if len(rectangles) > LIMIT:
        raise SpecError([f"it needs more than {LIMIT:,} rectangles of values; divide it into several selections."])
    return rectangles
